"""Section 5: derivatives in moving frames.

python examples/six_d_vectors/moving_frames.py [folder for the pictures]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import apart, array, transform_of
from output import empty_figure, picture_folder, tell

from dyn_core.authoring import Motion, Transform
from dyn_core.spatial.guide import geometry, se3

K5_M = Motion.of((0.4, 0.5, -0.6, 0.1, -0.2, 0.3))
K5_RATE = Motion.of((0.2, -0.1, 0.05, 0.6, 0.3, -0.4))
K5_V = Motion.of((0.3, -0.5, 0.4, 0.2, 0.1, -0.3))
K5_POSE = np.array((-0.35, 0.6, 0.2, 0.2, 0.3, -0.5))


@dataclass(frozen=True)
class Rates:
    """Rates of one motion vector at some times, rows of six.

    Attributes:
        t: Times [s].
        components: Rate of its components in the moving frame, by differences.
        intrinsic: Its own derivative, in the axes of the moving frame.
        corrected: components + v x m: what (15) says is `intrinsic`.
    """

    t: np.ndarray
    components: np.ndarray
    intrinsic: np.ndarray
    corrected: np.ndarray


def moving_frame(times: np.ndarray) -> Rates:
    """Return the rates of m(t) = m + m1 t as a frame sees it that moves with K5_V.

        A(dm/dt) = d(Am)/dt + v x m

    Source: GUIDE (14)-(16); SV-5.1, SV-5.2.
    """

    def to_A(t: float) -> Transform:
        return transform_of(se3.exp(K5_POSE) @ se3.exp(array(K5_V) * t))

    def seen(t: float) -> Motion:
        return to_A(t) @ (K5_M + K5_RATE * t)

    components = [geometry.central_difference(seen, t) for t in times]
    intrinsic = [to_A(t) @ K5_RATE for t in times]
    corrected = [
        geometry.derivative_in_frame(rate, K5_V, seen(t))
        for rate, t in zip(components, times, strict=True)
    ]
    columns = (components, intrinsic, corrected)
    return Rates(times, *(np.array([array(x) for x in column]) for column in columns))


def draw_moving_frame(path: Path) -> None:
    """Draw the rates of a vector's components and of the vector itself.

    Source: GUIDE (15); SV-5.2.
    """
    rates = moving_frame(np.linspace(0.0, 4.0, 81))
    figure = empty_figure((8.0, 4.0))
    for k, (axes, title) in enumerate(
        zip(figure.subplots(1, 2), ("angular x", "linear z"), strict=True)
    ):
        column = 5 * k
        axes.plot(rates.t, rates.components[:, column], "--", label="d(Am)/dt")
        wide = {"lw": 4, "alpha": 0.4}
        axes.plot(rates.t, rates.intrinsic[:, column], label="A(dm/dt)", **wide)
        axes.plot(rates.t, rates.corrected[:, column], label="d(Am)/dt + v x m")
        axes.set(title=title, xlabel="t [s]")
        axes.legend()
    figure.savefig(path)


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    rates = moving_frame(np.linspace(0.0, 4.0, 5))
    off = {"d(Am)/dt + v x m": apart(rates.intrinsic, rates.corrected)}
    tell("5. Moving frames", off)
    draw_moving_frame(folder / "moving_frame.png")


if __name__ == "__main__":
    main(picture_folder())
