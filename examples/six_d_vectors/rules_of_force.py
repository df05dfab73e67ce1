"""Section 4: rules of forces, against Newton and Euler, particle by particle.

python examples/six_d_vectors/rules_of_force.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from clouds import point_forces, random_cloud
from common import apart, array, random_force, random_motion, velocity_at
from output import picture_folder, tell

from dyn_core.authoring import Motion
from dyn_core.spatial.guide import bodies
from dyn_core.spatial.guide import two_bodies as pair


def rule_forces_add(rng: np.random.Generator) -> float:
    """Return the acceleration by a sum of forces, against Newton and Euler's equations.

    Source: GUIDE, section 5; SV-3.2.
    """
    I = random_cloud(rng).inertia()
    F, x, total = point_forces(rng)
    a = bodies.acceleration(I, Motion.zero(), total)
    c = array(I.c)
    turn = np.linalg.solve(array(I.Ic), np.cross(x - c, F).sum(0))
    return max(apart(a.ang, turn), apart(velocity_at(a, c), F.sum(0) / I.m))


def rule_reaction(rng: np.random.Generator) -> float:
    """Return d(h1 + h2)/dt = f: what passes through the joint adds nothing.

    Source: GUIDE, section 5; SV-3.3.
    """
    I1, I2 = random_cloud(rng).inertia(), random_cloud(rng).inertia()
    s, f = random_motion(rng), random_force(rng)
    state = pair.Moving(random_motion(rng), 0.7, -0.4, (0.0, 0.0, 0.0))
    result = pair.two_body_moving(I1, I2, s, f, state)
    rate1 = bodies.equation_of_motion(I1, state.v1, result.a1)
    rate2 = bodies.equation_of_motion(I2, state.v1 + s * state.qd, result.a2)
    return max(apart(rate1, f - result.f_J), apart(rate1 + rate2, f))


RULES: tuple[Callable[[np.random.Generator], float], ...] = (
    rule_forces_add,
    rule_reaction,
)


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    rng = np.random.default_rng(0)
    tell("4. Rules of force", {rule.__name__[5:]: rule(rng) for rule in RULES})


if __name__ == "__main__":
    main(picture_folder())
