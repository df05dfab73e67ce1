"""Boxes are stacked, and all solvers compute the forces between them.

python examples/contacts/stack.py [folder of the plot]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from figures import Figure, G, Part, label, show
from towers import compared, tower

from dyn_core.simulation.simulator import simulate


def stack(short: bool = False) -> Part:
    """Boxes are stacked, and all solvers compute the forces between them.

    Source: spec case C6.
    """
    figures, heights, tried = [], (2, 5) if short else (2, 5, 10), {}
    for count in heights:
        tried[count] = compared(count)
        print(f"    {count} boxes: solver, residual of its law, exact laws, steps, ms")
        for name, (solution, seconds) in tried[count].items():
            r = solution.residuals
            print(
                f"      {name:24}{r.law:9.1e}{max(r[:4]):9.1e}"
                f"{solution.iterations:6d}{seconds:8.1f}  {solution.status}"
            )
    count = heights[-1]
    model, q = tower(count)
    run = simulate(model, world={}, q0=q, duration=0.3, period=0.01)
    carried = np.array([forces_under(row[0], count) for row in run.reports])
    for k in sorted({0, count // 2, count - 1}):
        name = f"{count} boxes: force under box {k} [N]"
        figures.append(Figure(name, carried[-1, k], (count - k) * G))
    sunk = abs(run.q[-1] - q).max()
    figures.append(Figure("    farthest way of one in 0.3 s [m]", sunk, 0.0))

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for mark, (size, results) in zip("o^s", tried.items(), strict=False):
            for color, (name, (solution, _)) in enumerate(results.items()):
                left.loglog(
                    solution.iterations, max(solution.residuals.law, 1e-17), mark,
                    color=f"C{color}", label=name if size == count else None,
                )  # fmt: skip
        left.set_xlabel("iterations")
        label(left, f"residual; {', '.join(map(str, heights))} boxes: o ^ s", None)
        right.plot(run.t, carried)
        for k in range(count):
            right.axhline((count - k) * G, color="k", ls="--", lw=0.6)
        label(right, "force under each box [N]")

    return Part(figures, draw)


def forces_under(report: Any, count: int) -> np.ndarray:
    """Return the vertical force under each box of a tower."""
    force = np.zeros(count)
    for c in report.contacts:
        names = [x for x in (c.link_a, c.link_b) if x.startswith("box")]
        upper = max(int(x[3:]) for x in names)
        force[upper] += abs(c.force[2])
    return force


if __name__ == "__main__":
    show(stack, *sys.argv[1:2])
