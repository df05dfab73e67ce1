"""Section 8: the equation of motion.

python examples/six_d_vectors/equation_of_motion.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from clouds import random_cloud
from common import apart, array, moment_at, random_motion, velocity_at
from output import picture_folder, tell

from dyn_core.authoring import Motion, cross
from dyn_core.spatial.guide import bodies


def motion_facts(rng: np.random.Generator) -> dict[str, float]:
    """Return how well the forms of the equation of motion agree.

    Source: GUIDE (27)-(30); SV-8.1, SV-8.2, SV-8.3, SV-8.4.
    """
    I, v, a = random_cloud(rng).inertia(), random_motion(rng), random_motion(rng)
    f, g = bodies.equation_of_motion(I, v, a), rng.normal(size=3) * 9.81
    c, w = array(I.c), array(v.ang)
    a_c = velocity_at(a, c) + np.cross(w, velocity_at(v, c))  # classical, of the CoM
    newton = I.m * a_c
    Ic = array(I.Ic)
    euler = Ic @ array(a.ang) + np.cross(w, Ic @ w)
    weight, up = bodies.gravity_force(I, g), Motion((0.0, 0.0, 0.0), (-g).tolist())
    falls = bodies.acceleration(I, v, f + weight)
    trick = bodies.acceleration(I, v, f) - up
    return {
        "Newton at the centre of mass": apart(f.lin, newton),
        "Euler about it": apart(moment_at(f, c), euler),
        "f = I a + p": apart(f, I @ a + bodies.bias_force(I, v)),
        "(dI/dt) v = v x* I v": apart(
            bodies.inertia_rate(I, v) @ array(v), cross(v, I @ v)
        ),
        "weight acts at the centre of mass": apart(moment_at(weight, c), np.zeros(3)),
        "gravity is a base that accelerates up": apart(falls, trick),
    }


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    tell("8. Equation of motion", motion_facts(np.random.default_rng(0)))


if __name__ == "__main__":
    main(picture_folder())
