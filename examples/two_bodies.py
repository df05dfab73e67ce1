"""Two bodies and a hinge, solved four ways: the worked example of the guide.

The ways stand in dyn_core.spatial.guide.two_bodies; here they are compared.

    python examples/two_bodies.py
"""

from __future__ import annotations

import numpy as np

from dyn_core.spatial.guide.two_bodies import (
    K7,
    K8,
    same_answer,
    two_body_3d,
    two_body_kkt,
    two_body_moving,
    two_body_spatial,
)


def counts() -> dict[str, int]:
    """Return how many quantities each statement of the problem needs.

    3-D: m1, I1, C1, m2, I2, C2, P, s; f, n and a1, wd1; and on the way eight vectors
    that belong to other points, with the equations (S5)-(S11) that move them there.
    Spatial: I1, I2, s; f; a1; a2, f_J, alpha.

    Source: GUIDE, section 2; SV-11.1.
    """
    return {
        "3-D, model": 8,
        "3-D, load and response": 2 + 2,
        "3-D, vectors on the way": 8,
        "3-D, equations that move them": 7,
        "spatial, all together": 8,
    }


def main() -> None:
    """Solve the reference cases and print what agrees."""
    case, s = K7, K7.axis()
    I1, I2 = case.body1.spatial(), case.body2.spatial()
    plain = two_body_3d(case)
    rest = two_body_spatial(I1, I2, s, case.load())
    moved = same_answer(case, rest)
    print("At rest                  3-D vectors                spatial vectors, at C1")
    for name in ("a1", "wd1"):
        left, right = (np.array2string(getattr(x, name)) for x in (plain, moved))
        print(f"  {name:10s} {left:35s} {right}")
    print(f"  {'alpha':10s} {plain.alpha:<35.9g} {moved.alpha:.9g}")
    print(f"  f_J        {np.array(list(rest.f_J))}, s . f_J = {s @ rest.f_J:.1e}")
    print(f"  eigenvalues of IA {np.linalg.eigvalsh(rest.IA)}")
    print(f"  6x6 matrices differ by {np.abs(plain.matrix - moved.matrix).max():.1e}")
    print("Moving                   joint eliminated by s     joint as constraint by T")
    one = two_body_moving(I1, I2, s, case.load(), K8)
    two = two_body_kkt(I1, I2, s, case.load(), K8)
    print(f"  {'qdd':10s} {one.qdd:<35.12g} {two.qdd:.12g}")
    for name in ("a1", "a2", "f_J"):
        left, right = (np.array(list(getattr(x, name))) for x in (one, two))
        print(f"  {name:10s} {left}  differ by {np.abs(left - right).max():.1e}")
    print("How many quantities each way needs")
    for name, count in counts().items():
        print(f"  {name:32s} {count}")


if __name__ == "__main__":
    main()
