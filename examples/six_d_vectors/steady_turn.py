"""Section 6: spatial acceleration, and that of particles.

python examples/six_d_vectors/steady_turn.py [folder for the pictures]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import array, velocity_at
from output import empty_figure, picture_folder, tell

from dyn_core.spatial import conventions
from dyn_core.spatial.guide import geometry

STEADY = geometry.screw_axis((0, 0, 1), (1.0, 0.5, 0.0)) * 2.0


def steady_rotation(x: np.ndarray) -> np.ndarray:
    """Return the classical acceleration at points x, (n, 3), of a steady turn [m/s²].

    The spatial acceleration is zero all the while: the velocity field does not change.

    Source: GUIDE (21), (22); SV-6.1, SV-6.2.
    """
    v = [array(geometry.shifted(STEADY, point)) for point in x]
    return conventions.classical_from_spatial(np.zeros((len(x), 6)), v)[:, 3:]


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
    tell("6. Acceleration")
    at_origin = steady_rotation(np.zeros((1, 3)))[0]
    print(f"  steady turn: spatial 0, classical at the origin {at_origin} m/s²")
    draw_steady_rotation(folder / "steady_rotation.png")


if __name__ == "__main__":
    main(picture_folder())
