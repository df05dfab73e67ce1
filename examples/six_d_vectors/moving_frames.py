"""Sections 5 and 6: derivatives in moving frames, and spatial acceleration.

python examples/six_d_vectors/moving_frames.py [folder for the pictures]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import (  # lies beside this file
    apart,
    array,
    empty_figure,
    picture_folder,
    random_force,
    random_motion,
    tell,
    transform_of,
    velocity_at,
)

from dyn_core.authoring import Motion, Transform, cross
from dyn_core.spatial import conventions
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


def cross_products(rng: np.random.Generator) -> dict[str, float]:
    """Return how well the identities of x and x* hold.

    Source: GUIDE (17), (18); SV-5.3.
    """
    u, v, m = (random_motion(rng) for _ in range(3))
    f = random_force(rng)
    a, b = se3.crm(array(v)), se3.crm(array(m))
    start, w = se3.exp(rng.normal(size=6)), array(v)

    def X(t: float) -> np.ndarray:
        return array(transform_of(start @ se3.exp(w * t)))

    rate = geometry.central_difference(X, 0.0)
    return {
        "v x v = 0": apart(cross(v, v), np.zeros(6)),
        "u x v = -v x u": apart(cross(u, v), -cross(v, u)),
        "(v x m) x = v x m x - m x v x": apart(
            se3.crm(array(cross(v, m))), a @ b - b @ a
        ),
        "(v x m) . f = -m . (v x* f)": abs(cross(v, m) @ f + m @ cross(v, f)),
        "dX/dt = -(v x) X": apart(
            rate, geometry.transform_rate(transform_of(start), v)
        ),
    }


STEADY = geometry.screw_axis((0, 0, 1), (1.0, 0.5, 0.0)) * 2.0


def steady_rotation(x: np.ndarray) -> np.ndarray:
    """Return the classical acceleration at points x, (n, 3), of a steady turn [m/s²].

    The spatial acceleration is zero all the while: the velocity field does not change.

    Source: GUIDE (21), (22); SV-6.1, SV-6.2.
    """
    v = [array(geometry.shifted(STEADY, point)) for point in x]
    return conventions.classical_from_spatial(np.zeros((len(x), 6)), v)[:, 3:]


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
        axes.plot(
            rates.t,
            rates.intrinsic[:, column],
            linewidth=4,
            alpha=0.4,
            label="A(dm/dt)",
        )
        axes.plot(rates.t, rates.corrected[:, column], label="d(Am)/dt + v x m")
        axes.set(title=title, xlabel="t [s]")
        axes.legend()
    figure.savefig(path)


def draw_steady_rotation(path: Path) -> None:
    """Draw velocities and classical accelerations of a steady turn, from above.

    Source: GUIDE, section 6.4; SV-6.2.
    """
    grid = np.linspace(-1.0, 3.0, 9)
    x = np.array([(a, b, 0.0) for a in grid for b in grid])
    figure = empty_figure((6.0, 5.5))
    axes = figure.subplots()
    for field, color, name in (
        (velocity_at(STEADY, x), "tab:blue", "velocity"),
        (steady_rotation(x), "tab:orange", "classical acceleration"),
    ):
        axes.quiver(*x[:, :2].T, *field[:, :2].T, color=color, label=name)
    axes.plot(1.0, 0.5, "k+", markersize=12, label="axis")
    axes.plot(0.0, 0.0, "kx", label="origin")
    axes.set(
        title="steady turn: spatial acceleration 0 everywhere",
        xlabel="x [m]",
        ylabel="y [m]",
        aspect="equal",
    )
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.06), ncols=4, fontsize=8)
    figure.savefig(path)


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    rates = moving_frame(np.linspace(0.0, 4.0, 5))
    off = {"d(Am)/dt + v x m": apart(rates.intrinsic, rates.corrected)}
    tell("5. Moving frames", off | cross_products(np.random.default_rng(0)))
    tell("6. Acceleration")
    at_origin = steady_rotation(np.zeros((1, 3)))[0]
    print(f"  steady turn: spatial 0, classical at the origin {at_origin} m/s²")
    draw_moving_frame(folder / "moving_frame.png")
    draw_steady_rotation(folder / "steady_rotation.png")


if __name__ == "__main__":
    main(picture_folder())
