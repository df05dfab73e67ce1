"""Section 2: twists and wrenches as screws.

python examples/six_d_vectors/screws.py [folder for the pictures]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import apart, moment_at, velocity_at
from output import empty_figure, picture_folder, tell

from dyn_core.authoring import Force, Motion
from dyn_core.spatial.guide import geometry

TWIST = Motion.of((1, 2, 2, 0.3, -0.6, 0.9))


WRENCH = Force.of((0.5, -1, 2, 2, -1, 2))


def screws(rng: np.random.Generator) -> dict[str, float]:
    """Return how well the screw survives a shift of the reference point and a scaling.

    Source: GUIDE, section 4; SV-2.1, SV-2.2, SV-2.3, SV-2.4.
    """
    r = rng.normal(size=3)
    errors = {}
    for name, s in (("twist", TWIST), ("wrench", WRENCH)):
        line, there = geometry.to_screw(s), geometry.to_screw(geometry.shifted(s, r))
        twice = geometry.to_screw(s * -2.0)
        off = np.cross(there.point + r - line.point, line.direction)
        print(
            f"  {name}: {line.magnitude:.6g} along {line.direction} through"
            f" {line.point}, pitch {line.pitch:.6g}"
        )
        errors[f"{name}: line and pitch after a shift"] = max(
            abs(there.pitch - line.pitch), float(np.abs(off).max())
        )
        errors[f"{name}: line and pitch of -2 times it"] = max(
            abs(twice.pitch - line.pitch), apart(twice.point, line.point)
        )
    return errors


def _rings(screw: geometry.Screw) -> np.ndarray:
    """Return points on rings around a screw's line, (n, 3)."""
    d = screw.direction
    e = np.cross(d, (0.0, 0.0, 1.0) if abs(d[2]) < 0.9 else (1.0, 0.0, 0.0))
    e = e / np.linalg.norm(e)
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)[:, None]
    ring = np.cos(angles) * e + np.sin(angles) * np.cross(d, e)
    shifts = [screw.point + along * d for along in (-0.6, 0.0, 0.6)]
    return np.concatenate([x + size * ring for x in shifts for size in (0.3, 0.7)])


def draw_screw(s: Motion | Force, path: Path) -> None:
    """Draw the line of a twist or wrench, and its field around that line.

    Source: GUIDE, section 4; SV-2.1, SV-2.2.
    """
    screw, twist = geometry.to_screw(s), isinstance(s, Motion)
    points = _rings(screw)
    field = velocity_at(s, points) if twist else moment_at(s, points)
    figure = empty_figure()
    axes = figure.add_subplot(projection="3d")
    ends = screw.point + np.array([[-1.1], [1.1]]) * screw.direction
    axes.plot(*ends.T, color="black", label=f"line, pitch {screw.pitch:.3g}")
    arrows = 0.2 * field
    axes.quiver(*points.T, *arrows.T, color="tab:blue" if twist else "tab:red")
    axes.scatter(*screw.point, color="black")
    axes.scatter(0, 0, 0, marker="x", color="gray", label="origin")
    what = "twist: velocity of particles" if twist else "wrench: moment about points"
    axes.set(title=what, xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    axes.set_aspect("equal")
    axes.view_init(elev=25, azim=-110)
    axes.legend()
    figure.savefig(path)


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    tell("2. Twists and wrenches", screws(np.random.default_rng(0)))
    draw_screw(TWIST, folder / "twist.png")
    draw_screw(WRENCH, folder / "wrench.png")


if __name__ == "__main__":
    main(picture_folder())
