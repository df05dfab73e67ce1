"""Section 4: rules of inertia and momentum, against a cloud of particles.

python examples/six_d_vectors/rules_of_inertia.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from clouds import Cloud, random_cloud
from common import apart, array, random_motion
from output import picture_folder, tell

from dyn_core.spatial.guide import bodies, geometry, se3


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


RULES: tuple[Callable[[np.random.Generator], float], ...] = (
    rule_inertias_add,
    rule_momentum,
    rule_force,
)


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    rng = np.random.default_rng(0)
    tell("4. Rules of inertia", {rule.__name__[5:]: rule(rng) for rule in RULES})


if __name__ == "__main__":
    main(picture_folder())
