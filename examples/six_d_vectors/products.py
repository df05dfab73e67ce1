"""Section 5: the cross products of motions and forces.

python examples/six_d_vectors/products.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import apart, array, random_force, random_motion, transform_of
from output import picture_folder, tell

from dyn_core.authoring import cross
from dyn_core.spatial.guide import geometry, se3


def cross_products(rng: np.random.Generator) -> dict[str, float]:
    """Return how well the identities of x and x* hold.

    Source: GUIDE (17), (18); SV-5.3.
    """
    u, v, m = (random_motion(rng) for _ in range(3))
    f = random_force(rng)
    a, b = se3.crm(array(v)), se3.crm(array(m))
    start, w = se3.exp(rng.normal(size=6)), array(v)

    def X(t: float) -> np.ndarray:
        return array(transform_of(start @ se3.exp(w * t)))

    rate = geometry.central_difference(X, 0.0)
    return {
        "v x v = 0": apart(cross(v, v), np.zeros(6)),
        "u x v = -v x u": apart(cross(u, v), -cross(v, u)),
        "(v x m) x = v x m x - m x v x": apart(
            se3.crm(array(cross(v, m))), a @ b - b @ a
        ),
        "(v x m) . f = -m . (v x* f)": abs(cross(v, m) @ f + m @ cross(v, f)),
        "dX/dt = -(v x) X": apart(
            rate, geometry.transform_rate(transform_of(start), v)
        ),
    }


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    tell("5. Cross products", cross_products(np.random.default_rng(0)))


if __name__ == "__main__":
    main(picture_folder())
