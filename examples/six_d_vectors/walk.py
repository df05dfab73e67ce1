"""A walk through 6-D vectors with this library: what they are and how to use them.

It follows the guide, section by section; each file of this folder computes what the
guide claims and prints how far both sides are apart. Pictures need matplotlib.

    python examples/six_d_vectors/walk.py [folder for the pictures]
"""

from pathlib import Path

import constraints
import coordinates
import equation_of_motion
import inertia
import moving_frames
import products
import questions
import rules_of_force
import rules_of_inertia
import rules_of_motion
import rules_of_work
import screws
import spaces
import steady_turn
import structure
import turning_over
from output import picture_folder  # all of these lie beside this file

SECTIONS = (
    spaces,
    screws,
    coordinates,
    rules_of_motion,
    rules_of_force,
    rules_of_work,
    rules_of_inertia,
    moving_frames,
    products,
    steady_turn,
    inertia,
    equation_of_motion,
    turning_over,
    constraints,
    questions,
    structure,
)


def main(folder: Path) -> None:
    """Walk through the guide; save the pictures in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for section in SECTIONS:
        section.main(folder)
    print(f"Pictures are in {folder}")


if __name__ == "__main__":
    main(picture_folder())
