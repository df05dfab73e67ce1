"""Section 8: a body on which nothing acts turns over.

python examples/six_d_vectors/turning_over.py [folder for the pictures]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from flight import Flight, free_flight
from output import empty_figure, picture_folder

from dyn_core.authoring import Motion
from dyn_core.spatial.guide import bodies


def _flip() -> Flight:
    """Simulate the body of SV-8.1 and print what it keeps."""
    I = bodies.rigid_body(1.0, (0, 0, 0), np.diag((0.1, 0.2, 0.3)))
    flight = free_flight(I, Motion.of((0.01, 2.0, 0.01, 0, 0, 0)), 10.0)
    energy, momentum = flight.drifts()
    flipped = flight.t[np.argmax(flight.v[:, 1] < 0)]
    print(f"  free flight: energy drifts by {energy:.1e}, momentum by {momentum:.1e}")
    print(f"  it turns over: w_y is negative first at {flipped:.2f} s")
    return flight


def draw_flight(flight: Flight, path: Path) -> None:
    """Draw the angular velocity of a body that flips about its middle axis.

    Source: GUIDE (29); SV-8.1.
    """
    figure = empty_figure()
    axes = figure.subplots()
    for k, name in enumerate("xyz"):
        axes.plot(flight.t, flight.v[:, k], label=f"w_{name}")
    axes.axhline(0.0, color="gray", linewidth=0.5)
    axes.set(title="turning about the middle axis", xlabel="t [s]", ylabel="[rad/s]")
    axes.legend()
    figure.savefig(path)


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    draw_flight(_flip(), folder / "flip.png")


if __name__ == "__main__":
    main(picture_folder())
