"""Section 9: constraints of a joint.

python examples/six_d_vectors/constraints.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import apart, array
from output import picture_folder, tell

from dyn_core.authoring import Force, Motion
from dyn_core.spatial.guide import bodies, geometry


def hinge_facts(rng: np.random.Generator) -> dict[str, float]:
    """Return how well velocity, acceleration and force across a joint fit together.

    Source: GUIDE (31)-(34); SV-9.1, SV-9.2, SV-9.3, SV-9.4, SV-9.5, SV-9.6.
    """
    q, qd = rng.normal(size=(2, 2))
    S = geometry.universal(q)
    rows = geometry.constraint_rows(array(S))
    v_rel, tau = S @ qd, rng.normal(size=2)

    def twist(t: float) -> Motion:
        return geometry.universal(q + qd * t) @ qd

    ring = geometry.central_difference(twist, 0.0)
    S6 = array(S)
    f_J = S6 @ np.linalg.solve(S6.T @ S6, tau) + rows.T @ rng.normal(size=4)
    force = Force.of(f_J.tolist())
    return {
        "T.T (v2 - v1) = 0": float(np.abs(rows @ array(v_rel)).max()),
        "(dS/dt) qd of a universal joint": apart(ring, geometry.universal_ring(q, qd)),
        "S.T f_J = tau": apart(bodies.joint_force(S, force), tau),
        "f_J . v_rel = tau . qd": abs(force @ v_rel - float(tau @ qd)),
    }


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    tell("9. Constraints", hinge_facts(np.random.default_rng(0)))


if __name__ == "__main__":
    main(picture_folder())
