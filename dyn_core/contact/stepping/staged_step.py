"""A step whose problem is solved between two calls of machine code.

    begin_step -> impact, if its law is not Newton's -> solver -> finish_step

A solver of Rows solves in machine code, too; any other takes a ConstraintProblem.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.solution import ContactSolution
from dyn_core.contact.problem.solving import contact_solver, impossible, solve
from dyn_core.contact.solvers.work import (
    CONVERGED,
    INFEASIBLE,
    ITERATIONS,
    MAX_ITERATIONS,
    WEDGED,
)
from dyn_core.contact.stepping.assembly import (
    apply_impulses,
    fill_problem,
    write_velocity,
)
from dyn_core.contact.stepping.block_rows import gap_rule
from dyn_core.contact.stepping.composite_step import (
    DONE,
    RowOutcomes,
    StepKernels,
    StepLog,
    begin_step,
    finish_step,
    settle,
    solve_state,
)
from dyn_core.contact.stepping.fast_pairs import find_passed, is_passing
from dyn_core.contact.stepping.impacts import (
    impact_of,
    poisson_impacts,
    sequential_impacts,
)
from dyn_core.contact.stepping.solver_choice import ChosenSolver, takes_rows
from dyn_core.contact.stepping.step_matrices import problem_of
from dyn_core.contact.stepping.step_memory import StepSetup
from dyn_core.contact.stepping.step_tables import Scene, StepArrays
from dyn_core.contact.stepping.wedges import leave_out_pushes
from dyn_core.contact.stepping.world import World
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import NonFiniteError

# What a status says of a push that is left out: see leave_out_pushes.
_LIKE = {"not_unique": CONVERGED, "ray": INFEASIBLE}


class StagedStep:
    """The step of a single state, called like take_step."""

    def __init__(
        self,
        setup: StepSetup,
        step: StepArrays,
        kernels: StepKernels,
        solver: ChosenSolver,
        outcomes: RowOutcomes,
        log: StepLog,
    ) -> None:
        """Tie the machine code to the memory.

        Args:
            setup: Robot, world and rule.
            step, kernels, solver, outcomes, log: As in take_step.
        """
        scene, self._step, self._log = setup.scene, step, log
        self._outcomes = outcomes
        self._begin = compiled(begin_step).bind(scene, step, kernels, outcomes)
        self._finish = compiled(finish_step).bind(
            scene, step, kernels, solver, outcomes, log
        )
        self._problem = ProblemSolver(setup.of.world, step, solver)
        self._impacts = ImpactLaw(setup.of.world, scene, step)
        self._write, self._passing, self._find, self._fill = (
            compiled(function).bind(scene, step)
            for function in (write_velocity, is_passing, find_passed, fill_problem)
        )
        self._first = step.terms.q.shape[1] + 2 * step.terms.qd.shape[1] + 5

    def __call__(self) -> int:
        """Take the step; return what take_step returns."""
        result, blocks, m = self._begin()
        if result != DONE:
            return int(result)
        impulse, before = self._impacts(blocks, m)
        status = self._problem.solve(blocks, m)
        while impulse is None and self._write(0, blocks) and self._passing(0):
            touching = int(self._find(0, int(self._outcomes.contacts[0])))
            if touching < 0:
                return touching
            if not self._step.fast.changed[0]:
                break
            blocks, m = self._fill(0, touching)
            self._outcomes.contacts[0], self._outcomes.rows[0] = touching, m
            status = self._problem.solve(blocks, m)
        status = status if before == CONVERGED else before
        result = int(self._finish(blocks, status))
        if impulse is not None and result == DONE:
            self._log.reals[self._first : self._first + m] += impulse
        return result


class ProblemSolver:
    """The solver of a world, for the problem in prepared arrays."""

    def __init__(self, world: World, step: StepArrays, solver: ChosenSolver) -> None:
        """Tie the machine code to the memory.

        Args:
            world: Its solver, with options.
            step, solver: Arrays of the problem, and the solver's memory.
        """
        self._solver, self._options = contact_solver(world.solver), world.solver_options
        self._step, self._report = step, solver.reports[0]
        self._by_rows: Callable[[int, int], int] | None = None
        if takes_rows(world):
            self._by_rows = compiled(solve_state).bind(step, solver)
        else:
            self._leave_out = compiled(leave_out_pushes).bind(step.rows, step.blocks)
            self._settle = compiled(settle).bind(step, solver)

    def solve(self, blocks: int, m: int) -> int:
        """Replace the impulses of the rows by the solution; return its status.

        Args:
            blocks, m: Numbers of blocks and rows.

        Raises:
            NonFiniteError: The solver returned impulses that are not finite.
        """
        if self._by_rows is not None:
            status = int(self._by_rows(blocks, m))
            lost = status == MAX_ITERATIONS
            if lost and impossible(problem_of(self._step, blocks, m)):
                status = INFEASIBLE
            return status
        status = self._by_matrix(blocks, m)
        if self._leave_out(blocks, _LIKE.get(STATUSES[status], status)):
            status = self._by_matrix(blocks, m)
            status = WEDGED if status == CONVERGED else status
        return int(self._settle(blocks, m, status))

    def _by_matrix(self, blocks: int, m: int) -> int:
        """Solve the problem by any solver of CONTACT_SOLVE; return its status."""
        rows = self._step.rows
        problem, warm = problem_of(self._step, blocks, m), rows.impulse[:m].copy()
        solution = solve(problem, self._solver, warm, **self._options)
        if not np.isfinite(solution.impulses).all():
            raise NonFiniteError(
                f"contacts: {self._solver.name} returned impulses that are not finite",
                "impulse",
            )
        rows.impulse[:m] = solution.impulses
        self._report[:5] = solution.residuals
        self._report[ITERATIONS] = solution.iterations
        return STATUSES.index(solution.status)


class ImpactLaw:
    """Impacts of a world before its steps, where the law is not Newton's."""

    def __init__(self, world: World, scene: Scene, step: StepArrays) -> None:
        """Tie the machine code to the memory.

        Args:
            world: Its law, and the solver of Poisson's problems.
            scene, step: Robot and rule, and the arrays of the problem.
        """
        self._world, self._scene, self._step = world, scene, step
        self._apply = compiled(apply_impulses).bind(scene, step)
        self._worst = CONVERGED

    def __call__(self, blocks: int, m: int) -> tuple[np.ndarray | None, int]:
        """Let a prepared step begin behind its impact.

        Args:
            blocks, m: Numbers of blocks and rows.

        Returns:
            Impulses of the rows, None without an impact; and the worst status of the
            problems that were solved for them.
        """
        world, scene, step = self._world, self._scene, self._step
        if world.impacts == "simultaneous" and world.restitution == "newton":
            return None, CONVERGED
        impact = impact_of(scene, step, blocks, m)
        if impact is None:
            return None, CONVERGED
        self._worst = CONVERGED
        if world.impacts == "sequential":
            impulse = sequential_impacts(impact, world.restitution_threshold)
        else:
            impulse = poisson_impacts(impact, self._solve)
        if not impulse.any():
            return None, self._worst
        rows, facts = step.rows, step.blocks
        warm = rows.impulse[:m].copy()
        rows.impulse[:m] = impulse
        self._apply(0, blocks)
        rows.impulse[:m] = warm
        after = np.maximum(impact.after(impulse), 0.0)
        for block in np.flatnonzero(impact.fast):
            row, gap = rows.start[block], min(float(facts.gap[block]), 0.0)
            _, bias, _ = gap_rule(scene.rule, gap, 0.0, 0.0, 0.0)
            bias = min(float(bias), -float(after[block]))
            rows.b[row] += bias - facts.bias[row]
            facts.bias[row] = bias
        return impulse, self._worst

    def _solve(self, problem: ConstraintProblem) -> ContactSolution:
        """Return the solution of a problem of an impact; keep a status that is bad."""
        options = dict(self._world.solver_options)
        solution = solve(problem, self._world.solver, **options)
        if solution.status not in ("converged", "not_unique"):
            self._worst = STATUSES.index(solution.status)
        return solution
