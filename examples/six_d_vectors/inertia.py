"""Section 7: spatial inertia.

python examples/six_d_vectors/inertia.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from clouds import Cloud, random_cloud
from common import apart, array, random_motion, transform_of, velocity_at
from output import picture_folder, tell

from dyn_core.authoring import RigidInertia
from dyn_core.spatial.guide import bodies, geometry, se3


def inertia_facts(rng: np.random.Generator) -> dict[str, float]:
    """Return how well the laws of spatial inertia hold.

    Source: GUIDE (23)-(28); SV-7.1, SV-7.2, SV-7.3, SV-7.4, SV-7.5.
    """
    cloud, v = random_cloud(rng), random_motion(rng)
    I, T = cloud.inertia(), se3.exp(rng.normal(size=6))
    X = transform_of(T)
    back = X.inverse
    moved = back.T @ I @ back
    seen = Cloud(cloud.m, (cloud.x - T[:3, 3]) @ T[:3, :3])
    energy = 0.5 * cloud.m @ (velocity_at(v, cloud.x) ** 2).sum(1)

    def carried(t: float) -> np.ndarray:
        to = transform_of(se3.exp(array(v) * t))
        return array(to.T @ I @ to)

    rate = geometry.central_difference(carried, 0.0)
    cylinder = bodies.cylinder(2.0, 0.1, 0.5)
    return {
        "I in another frame": apart(moved, seen.inertia()),
        "dI/dt = v x* I - I v x": apart(rate, bodies.inertia_rate(I, v)),
        "kinetic energy": abs(energy - bodies.kinetic_energy(I, v)),
        "kinetic energy in another frame": abs(
            bodies.kinetic_energy(moved, X @ v) - bodies.kinetic_energy(I, v)
        ),
        "ten numbers and back": apart(
            RigidInertia.of_parameters(cylinder.parameters), cylinder
        ),
    }


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    tell("7. Inertia", inertia_facts(np.random.default_rng(0)))


if __name__ == "__main__":
    main(picture_folder())
