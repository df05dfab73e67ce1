"""Section 4: rules of velocities and accelerations, against differences.

python examples/six_d_vectors/rules_of_motion.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import apart, array, random_force, random_motion, transform_of
from output import picture_folder, tell

from dyn_core.authoring import Motion, cross
from dyn_core.spatial import MotionSubspace
from dyn_core.spatial.guide import bodies, geometry, se3


def rule_relative_velocity(rng: np.random.Generator) -> float:
    """Return v_rel = v2 - v1, against the rate of one body's pose as seen by the other.

    Source: GUIDE, section 5; SV-3.1.
    """
    v1, v2 = random_motion(rng), random_motion(rng)
    start = se3.exp(rng.normal(size=(2, 6)))

    def seen(t: float) -> np.ndarray:
        T1, T2 = se3.exp(np.array([array(v1), array(v2)]) * t) @ start
        return np.linalg.inv(T1) @ T2

    rate = geometry.central_difference(seen, 0.0) @ np.linalg.inv(seen(0.0))
    turned = np.array([rate[2, 1], rate[0, 2], rate[1, 0], *rate[:3, 3]])
    return apart(transform_of(start[0]) @ (v2 - v1), turned)


def rule_derivative(rng: np.random.Generator) -> float:
    """Return v x m and v x* f, against differences of what is carried along.

    Source: GUIDE, section 5; SV-3.6, SV-5.4.
    """
    v = random_motion(rng)
    worst = 0.0
    for s in (random_motion(rng), random_force(rng)):

        def carried(t: float, s: Any = s) -> Any:
            return transform_of(se3.exp(array(v) * t)).inverse @ s

        rate = geometry.central_difference(carried, 0.0)
        worst = max(worst, apart(rate, cross(v, s)))
    return worst


def rule_acceleration(rng: np.random.Generator) -> float:
    """A2 = a1 + a_rel, against differences of velocities; it transforms like them.

    Source: GUIDE, section 5; SV-3.7, SV-6.3.
    """
    v1, a1, s = (random_motion(rng) for _ in range(3))
    qd, qdd = rng.normal(size=2)
    X = transform_of(se3.exp(rng.normal(size=6)))
    v2 = v1 + s * qd

    def velocity(t: float) -> Motion:
        axis = transform_of(se3.exp(array(v2) * t)).inverse @ s
        return X @ (v1 + a1 * t + axis * (qd + qdd * t))

    a_rel = bodies.joint_acceleration(v2, MotionSubspace([s]), [qd], [qdd])
    return apart(X @ (a1 + a_rel), geometry.central_difference(velocity, 0.0))


RULES: tuple[Callable[[np.random.Generator], float], ...] = (
    rule_relative_velocity,
    rule_derivative,
    rule_acceleration,
)


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    rng = np.random.default_rng(0)
    tell("4. Rules of motion", {rule.__name__[5:]: rule(rng) for rule in RULES})


if __name__ == "__main__":
    main(picture_folder())
