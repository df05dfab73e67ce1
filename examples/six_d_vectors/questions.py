"""Questions that the guide leaves to its reader, and motions as elements of se(3).

python examples/six_d_vectors/questions.py
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
from common import apart, array, transform_of
from output import picture_folder, tell

from dyn_core.spatial import conventions
from dyn_core.spatial.guide import se3


def reader_questions() -> str:
    """Return the answers to the three questions that the guide leaves to its reader.

    Source: GUIDE, sections 4, 6.4 and 6.6; SV-11.2, SV-6.4, SV-8.2.
    """
    answers = (
        """(a) Why is the term (ds/dt) qd of a joint's acceleration equal to v1 x v2?
        The axis s is fixed in body 2, so ds/dt = v2 x s. Then (v2 x s) qd =
        v2 x (v2 - v1) = -v2 x v1 = v1 x v2. Were s fixed in body 1, v1 x (v2 - v1)
        gives the same.""",
        """(b) How does f = I a + v x* I v follow from the rate of inertia? f is the
        rate of the momentum I v, so f = (dI/dt) v + I a, and (dI/dt) v =
        v x* I v - I (v x v), whose last term is zero.""",
        """(c) How can a velocity need no reference point? [w; v_O] are the coordinates
        of a field, or of a screw: a line, an angular and a linear magnitude. Another
        origin gives other numbers, v_O + w x r, but the same line, the same
        magnitudes, and the same velocity of each particle.""",
    )
    margin = {"initial_indent": "  ", "subsequent_indent": "  "}
    filled = (textwrap.fill(" ".join(x.split()), 78, **margin) for x in answers)
    return "\n".join(filled)


def relatives(rng: np.random.Generator) -> dict[str, float]:
    """Return how well motions as elements of se(3) agree with motions as six numbers.

    Source: GUIDE, section 8; SV-11.4.
    """
    x, y = rng.normal(size=(2, 6))
    T = se3.exp(x)
    Ad = conventions.adjoint(T[:3, :3], T[:3, 3])
    bracket = se3.hat(x) @ se3.hat(y) - se3.hat(y) @ se3.hat(x)
    moved = T @ se3.hat(y) @ np.linalg.inv(T)
    return {
        "ad: hat(x x y) = [hat x, hat y]": apart(se3.hat(se3.crm(x) @ y), bracket),
        "Ad: hat(Ad y) = T hat(y) T^-1": apart(se3.hat(Ad @ y), moved),
        "exp(log T) = T": apart(se3.exp(se3.log(T)), T),
        "Ad is the inverse of X": apart(Ad @ array(transform_of(T)), np.eye(6)),
    }


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    tell("10. Questions to the reader")
    print(reader_questions())
    tell("11. Relatives", relatives(np.random.default_rng(0)))


if __name__ == "__main__":
    main(picture_folder())
