"""Towers of boxes, and what each solver computes for their first step."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
from urdf_text import joint, link, robot

import dyn_core as dyn
from dyn_core.authoring import ContactSolver
from dyn_core.contact import ConstraintProblem, ContactSolution, solve


def tower(count: int) -> tuple[dyn.Model, np.ndarray]:
    """Return floating boxes of 1 kg, and the position of a tower."""
    names = [f"box{k}" for k in range(count)]
    urdf = robot(
        "tower", '<link name="world"/>',
        *(link(name, 1.0, size=(0.4, 0.4, 0.2)) for name in names),
        *(joint(f"free_{name}", "floating", "world", name) for name in names),
    )  # fmt: skip
    model = dyn.load_urdf(urdf, extras={"materials": {"default": {"mu": 0.5}}})
    q = model.neutral()
    for k, name in enumerate(names):
        q[model.q_slice(f"free_{name}").start + 2] = 0.1 + 0.2 * k
    return model, q


# The compile time of Gauss-Seidel grows with the square of the rows; for the few calls
# here it is interpreted.
SOLVERS: Mapping[str, Mapping[str, Any]] = {
    "admm": {},
    "lemke": {},
    "convex_newton": {},
    "interior_point": {},
    "soft_contact": {},
    "projected_gauss_seidel": {"engine": "plain", "max_iterations": 200},
}


class Keeping(ContactSolver):
    """The solver lemke, which keeps the problems that it is given."""

    name = "keeping"

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[ConstraintProblem] = []

    def solve(
        self, problem: ConstraintProblem, warm: np.ndarray | None = None
    ) -> ContactSolution:
        """Return the solution of a problem."""
        self.problems.append(problem)
        return solve(problem, "lemke", warm=warm)


def compared(count: int) -> dict[str, Any]:
    """Return solution and time [ms] of each solver for the first step of a tower."""
    model, q = tower(count)
    keeping = Keeping()
    world = dyn.World(solver=keeping)
    dyn.ContactSimulator(model, world, period=0.01, q0=q).advance(0.0)
    problem, results = keeping.problems[0], {}
    for name, options in SOLVERS.items():
        started = perf_counter()
        try:
            solution = solve(problem, name, **options)
        except dyn.UnsupportedError as error:
            print(f"    {name}: {error}")
            continue
        results[name] = solution, 1e3 * (perf_counter() - started)
    return results
