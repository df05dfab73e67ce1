"""Sections 1 to 3: two spaces, twists and wrenches as screws, Pluecker coordinates.

python examples/six_d_vectors/screws.py [folder for the pictures]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import (  # lies beside this file
    apart,
    array,
    empty_figure,
    moment_at,
    picture_folder,
    random_force,
    random_motion,
    tell,
    transform_of,
    velocity_at,
)

import dyn_core as dyn
from dyn_core.authoring import Force, Motion, cross
from dyn_core.spatial import conventions
from dyn_core.spatial.guide import geometry, se3


def duality(rng: np.random.Generator) -> dict[str, float]:
    """Return how well m . f survives a change of basis, and refuse what has no meaning.

    Motions add, forces add, a motion times a force is a number; nothing else is.

    Source: GUIDE (1)-(3); SV-1.1, SV-1.2, SV-1.3.
    """
    m, f = random_motion(rng), random_force(rng)
    for label, meaningless in (("m + f", lambda: m + f), ("m . m", lambda: m @ m)):
        try:
            meaningless()
        except TypeError as error:
            print(f"  {label}: {error}")
    D = rng.normal(size=(6, 6))
    m_D = np.linalg.solve(D, array(m))
    f_D = np.linalg.solve(geometry.dual_basis(D), array(f))
    X = rng.normal(size=(6, 6))
    moved = (X @ array(m)) @ (geometry.dual(X) @ array(f))
    return {
        "m . f in a dual basis": abs(m_D @ f_D - m @ f),
        "m . f after X and X*": abs(moved - m @ f),
    }


def named_frames() -> str:
    """The error of a sum across frames: numbers alone do not say where they live.

    Source: GUIDE, section 3; SV-1.4.
    """
    try:
        return str(Motion.of(range(6), "camera") + Motion.of(range(6), "hand"))
    except dyn.FrameMismatchError as error:
        return str(error)


def stacked_jacobian(model: dyn.Model, q: np.ndarray) -> np.ndarray:
    """Return J of all links, 6N x nv: V = J qd stacks their velocities, tau = J.T F.

    M6 and F6 stacked N times are dual again: the operators of spatial operator algebra.

    Source: GUIDE, sections 3 and 8; SV-1.5, SV-11.4.
    """
    solver = dyn.solver("jacobian")
    parts = [
        solver.build(model, engine="plain", frame=name)(q) for name in model.frame_names
    ]
    return np.concatenate(parts)


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


def pluecker(rng: np.random.Generator) -> dict[str, float]:
    """Return how well bases, transforms and the other order of blocks fit together.

    Source: GUIDE (4)-(13); SV-4.1, SV-4.2, SV-4.3, SV-4.4, SV-4.5.
    """
    T = se3.exp(rng.normal(size=6))
    X, v, m = transform_of(T), random_motion(rng), random_motion(rng)
    motions, forces = geometry.pluecker_bases(X.inverse)
    turn = geometry.screw_axis(T[:3, 0], T[:3, 3])
    swapped = conventions.swap_matrix(array(X)) @ conventions.swap_blocks(array(m))
    return {
        "12 basis vectors are dual": apart(motions.T @ forces, np.eye(6)),
        "d_Ox is the turn about the x axis": apart(motions[0], turn),
        "X* is the dual of X": apart(X.force_matrix(), geometry.dual(array(X))),
        "X (v x m) = (X v) x (X m)": apart(X @ cross(v, m), cross(X @ v, X @ m)),
        "linear part first": apart(conventions.swap_blocks(swapped), X @ m),
    }


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
    rng = np.random.default_rng(0)
    tell("1. Two spaces", duality(rng))
    print(f"  {named_frames()}")
    arm = dyn.load("arm7")
    J = stacked_jacobian(arm, arm.neutral())
    print(f"  stacked: J of the {len(arm.frame_names)} links of an arm is {J.shape}")
    tell("2. Twists and wrenches", screws(rng))
    tell("3. Pluecker coordinates", pluecker(rng))
    draw_screw(TWIST, folder / "twist.png")
    draw_screw(WRENCH, folder / "wrench.png")


if __name__ == "__main__":
    main(picture_folder())
