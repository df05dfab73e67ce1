"""Section 4: the rules of use, each against a cloud of particles or differences.

python examples/six_d_vectors/rules.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import (  # lies beside this file
    Cloud,
    apart,
    array,
    picture_folder,
    point_forces,
    random_cloud,
    random_force,
    random_motion,
    tell,
    transform_of,
    velocity_at,
)

from dyn_core.authoring import Motion, cross
from dyn_core.spatial import MotionSubspace
from dyn_core.spatial.guide import bodies, geometry, se3
from dyn_core.spatial.guide import two_bodies as pair


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


def rule_inertias_add(rng: np.random.Generator) -> float:
    """Return I1 + I2, against the inertia of both clouds as one.

    Source: GUIDE, section 5; SV-3.8, SV-7.2.
    """
    one, two = random_cloud(rng), random_cloud(rng)
    both = Cloud(np.concatenate([one.m, two.m]), np.concatenate([one.x, two.x]))
    return apart(one.inertia() + two.inertia(), both.inertia())


def rule_momentum(rng: np.random.Generator) -> float:
    """Return I v, against the momenta of the particles.

    Source: GUIDE, section 5; SV-3.9.
    """
    cloud, v = random_cloud(rng), random_motion(rng)
    return apart(bodies.momentum(cloud.inertia(), v), cloud.momentum(v))


def rule_force(rng: np.random.Generator) -> float:
    """Return f = I a + v x* I v, against the rate of the momenta of the particles.

    Source: GUIDE, section 5; SV-3.10.
    """
    cloud, v, a = random_cloud(rng), random_motion(rng), random_motion(rng)

    def momentum(t: float) -> np.ndarray:
        T = se3.exp(array(v) * t)
        moved = Cloud(cloud.m, cloud.x @ T[:3, :3].T + T[:3, 3])
        return moved.momentum(v + a * t)

    rate = geometry.central_difference(momentum, 0.0)
    return apart(bodies.equation_of_motion(cloud.inertia(), v, a), rate)


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
    rule_relative_velocity,
    rule_forces_add,
    rule_reaction,
    rule_power,
    rule_scaling,
    rule_derivative,
    rule_acceleration,
    rule_inertias_add,
    rule_momentum,
    rule_force,
    rule_constraint_force,
)


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    rng = np.random.default_rng(0)
    tell("4. Rules of use", {rule.__name__[5:]: rule(rng) for rule in RULES})


if __name__ == "__main__":
    main(picture_folder())
