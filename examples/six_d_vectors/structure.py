"""What structure saves over dense matrices: time and multiplications.

python examples/six_d_vectors/structure.py
"""

from __future__ import annotations

import timeit
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dense import PRODUCTS
from output import picture_folder, tell

import dyn_core as dyn
from dyn_core.testing.flat_programs import flat_program


@dataclass(frozen=True)
class Cost:
    """What one product costs, by structure and as dense 6x6 matrices.

    Attributes:
        name: The product.
        times: Structured, dense [ns].
        multiplications: Structured, dense.
    """

    name: str
    times: tuple[float, float]
    multiplications: tuple[int, int]


def timing_report(rows: int = 500, repeats: int = 100) -> list[Cost]:
    """Return what products cost by structure and by dense matrices, in the best engine.

    Args:
        rows: States in a batch.
        repeats: Batches in a measurement; the best of five counts.

    Source: GUIDE, introduction; SV-11.3.
    """
    rng, engine = np.random.default_rng(0), dyn.default_engine()
    costs = []
    for name, *ways in PRODUCTS:
        times, products = [], []
        for function, width, outputs in ways:
            x = rng.normal(size=(rows, width))
            program = flat_program(function, width, outputs, engine=engine)
            runs = timeit.repeat(lambda p=program, x=x: p(x), number=repeats, repeat=5)
            times.append(min(runs) / repeats / rows * 1e9)
            plain = flat_program(function, width, outputs, engine="plain")
            products.append(dyn.count(plain, x[0])["mul"])
        costs.append(Cost(name, tuple(times), tuple(products)))
    return costs


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    tell("12. What structure saves: structured and dense, time and multiplications")
    for cost in timing_report():
        (fast, slow), (few, many) = cost.times, cost.multiplications
        print(f"  {cost.name:8s} {fast:7.1f} ns {slow:7.1f} ns {few:5d} {many:5d}")


if __name__ == "__main__":
    main(picture_folder())
