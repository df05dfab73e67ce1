"""Section 1: two spaces that do not mix, and what can be stacked.

python examples/six_d_vectors/spaces.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import array, random_force, random_motion
from output import picture_folder, tell

import dyn_core as dyn
from dyn_core.authoring import Motion
from dyn_core.spatial.guide import geometry


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


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    tell("1. Two spaces", duality(np.random.default_rng(0)))
    print(f"  {named_frames()}")
    arm = dyn.load("arm7")
    J = stacked_jacobian(arm, arm.start())
    print(f"  stacked: J of the {len(arm.frame_names)} links of an arm is {J.shape}")


if __name__ == "__main__":
    main(picture_folder())
