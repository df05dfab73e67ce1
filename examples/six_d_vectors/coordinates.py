"""Section 3: Pluecker bases and coordinates.

python examples/six_d_vectors/coordinates.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import apart, array, random_motion, transform_of
from output import picture_folder, tell

from dyn_core.authoring import cross
from dyn_core.spatial import conventions
from dyn_core.spatial.guide import geometry, se3


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


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    tell("3. Pluecker coordinates", pluecker(np.random.default_rng(0)))


if __name__ == "__main__":
    main(picture_folder())
