"""A walk through 6-D vectors with this library: what they are and how to use them.

It follows the guide, section by section; each file of this folder computes what the
guide claims and prints how far both sides are apart. Pictures need matplotlib.

    python examples/six_d_vectors/walk.py [folder for the pictures]
"""

from pathlib import Path

import motion_of_bodies
import moving_frames
import rules
import screws
import structure
from common import picture_folder  # all of these lie beside this file

SECTIONS = (screws, rules, moving_frames, motion_of_bodies, structure)


def main(folder: Path) -> None:
    """Walk through the guide; save the pictures in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for section in SECTIONS:
        section.main(folder)
    print(f"Pictures are in {folder}")


if __name__ == "__main__":
    main(picture_folder())
