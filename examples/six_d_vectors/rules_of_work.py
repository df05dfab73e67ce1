"""Section 4: rules of power, and of forces that do no work.

python examples/six_d_vectors/rules_of_work.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from clouds import point_forces
from common import apart, random_force, random_motion, velocity_at
from output import picture_folder, tell

from dyn_core.spatial.guide import geometry


def rule_power(rng: np.random.Generator) -> float:
    """Return f . v, against the power of each force at the particle where it acts.

    Source: GUIDE, section 5; SV-3.4.
    """
    v = random_motion(rng)
    F, x, total = point_forces(rng)
    return abs(total @ v - float((F * velocity_at(v, x)).sum()))


def rule_scaling(rng: np.random.Generator) -> float:
    """Return (k v) . (n f) = k n v . f, with the lines of v and f unmoved.

    Source: GUIDE, section 5; SV-3.5, SV-2.4.
    """
    v, f, k, n = random_motion(rng), random_force(rng), -1.7, 2.4
    one, other = geometry.to_screw(v), geometry.to_screw(v * k)
    line = max(apart(one.point, other.point), apart(one.direction, -other.direction))
    return max(line, abs((v * k) @ (f * n) - k * n * (v @ f)))


def rule_constraint_force(rng: np.random.Generator) -> float:
    """Return T of a random S: its forces do no work, and no other force does none.

    Source: GUIDE, section 5; SV-3.11.
    """
    r = int(rng.integers(1, 6))
    S = rng.normal(size=(6, r))
    T = geometry.complement(S)
    idle = rng.normal(size=6)
    idle = idle - S @ np.linalg.lstsq(S, idle, rcond=None)[0]  # any f with S.T f = 0
    coefficients = np.linalg.lstsq(T, idle, rcond=None)[0]
    return max(float(np.abs(T.T @ S).max()), apart(T @ coefficients, idle))


RULES: tuple[Callable[[np.random.Generator], float], ...] = (
    rule_power,
    rule_scaling,
    rule_constraint_force,
)


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    rng = np.random.default_rng(0)
    tell("4. Rules of work", {rule.__name__[5:]: rule(rng) for rule in RULES})


if __name__ == "__main__":
    main(picture_folder())
