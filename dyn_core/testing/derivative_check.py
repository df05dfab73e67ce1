"""The command `dyn check-derivatives`: derivatives of a robot by several methods.

Analytic derivatives are compared with complex steps and forward mode through the
algorithms of inverse and forward dynamics, and with eighth-order differences;
derivatives of a semi-implicit time step with complex steps. Second derivatives
(--second) are compared with complex steps of the first ones.

COLUMNS are id_derivatives, fd_derivatives (Jacobians), id_directional, fd_directional,
steps (in time) and differences (against complex steps); SECOND_COLUMNS are id_second,
id_contracted, fd_second and fd_contracted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.model.sources.arguments import add_robot, load_robot
from dyn_core.plots import check_plot, save
from dyn_core.plots.table_plots import plot_errors
from dyn_core.solving.registry import solver
from dyn_core.testing.case import derivative
from dyn_core.testing.laws.derivatives.second_laws import complex_slopes
from dyn_core.testing.laws.step_laws import complex_change
from dyn_core.testing.tolerances import TOLERANCES

SECOND_COLUMNS = ("id_second", "id_contracted", "fd_second", "fd_contracted")


def examine_second(
    model: Model, states: int, seed: int, engine: str
) -> dict[str, dict[str, float]]:
    """Return the largest errors, {joint: {one of SECOND_COLUMNS: error}}.

    The reference is a complex step of the first derivatives; the robot has no loops.
    Errors are relative to max(1, largest entry), infinity for NaN. They belong to the
    joint of a tensor's last index, which is qdd or tau for the derivative of H or Hinv;
    accelerations are compared as joint forces H qdd. A humanoid takes minutes.
    """
    rng = np.random.default_rng(seed)
    inputs = ["time"] if model.driven else []
    programs = {
        name: solver(name).build(model, engine=engine, inputs=inputs)
        for name in ("crba", *map(_solver_of, SECOND_COLUMNS))
    }
    firsts = {
        problem: solver(f"{problem}_derivatives").build(
            model, engine="plain", inputs=inputs
        )
        for problem in ("id", "fd")
    }
    worst = {name: dict.fromkeys(SECOND_COLUMNS, 0.0) for name in model.joint_names}
    for _ in range(states):
        state = [model.random(rng), *rng.normal(size=(2, model.nv))]
        tail = [rng.uniform()] if inputs else []
        H = np.asarray(programs["crba"](state[0], *tail))
        for problem, first in firsts.items():
            expected = complex_slopes(model, first, state, *tail)
            expected[3] = expected[3].transpose(0, 2, 1)
            weight = H if problem == "fd" else np.eye(model.nv)
            for column in (c for c in SECOND_COLUMNS if c[:2] == problem):
                program = programs[_solver_of(column)]
                if column.endswith("contracted"):
                    weights = rng.normal(size=model.nv) @ weight
                    got = list(program(*state, weights, *tail))
                    wanted = [np.tensordot(weights, x, 1)[None] for x in expected]
                    got = [np.asarray(x)[None] for x in got]
                else:
                    got = _ordered(problem, program(*state, *tail))
                    got = [np.tensordot(weight, x, 1) for x in got]
                    wanted = [np.tensordot(weight, x, 1) for x in expected]
                _note(model, worst, column, got, wanted)
    return worst


def _solver_of(column: str) -> str:
    """Return the name of the solver of a column, one of SECOND_COLUMNS."""
    return {
        "id_contracted": "id_second_contracted",
        "fd_contracted": "fd_second_contracted",
    }.get(column, f"{column}_derivatives")


def _ordered(problem: str, results: Any) -> list[np.ndarray]:
    """Return second derivatives as four arrays; the fourth by q, then by qdd or tau."""
    tensors = [np.asarray(x) for x in results]
    if problem == "id":
        tensors[3] = tensors[3].transpose(0, 2, 1)
    return tensors


def _note(
    model: Model,
    worst: dict[str, dict[str, float]],
    column: str,
    results: list[np.ndarray],
    expected: list[np.ndarray],
) -> None:
    """Update `worst`, {joint: {column: error}}, by the last index of the tensors.

    Errors are relative to max(1, largest entry of the expected tensor).
    """
    for got, wanted in zip(results, expected, strict=True):
        scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
        error = np.abs(got - wanted).max(axis=(0, 1), initial=0.0) / scale
        error = np.where(np.isfinite(error), error, np.inf)
        for name in worst:
            entries = [worst[name][column], *map(float, error[model.v_slice(name)])]
            worst[name][column] = max(entries)


STATES = 3  # default number of random states
_TINY = 1e-30  # complex step; it has no cancellation
_STEP = 1e-3  # step of the differences
COLUMNS = (
    "id_derivatives",
    "fd_derivatives",
    "id_directional",
    "fd_directional",
    "steps",
    "differences",
)
_DT = 1e-2  # length of a step in time [s]


def add_check_derivatives(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn check-derivatives`; `run` becomes its function."""
    add_robot(parser)
    parser.add_argument("--states", type=int, default=STATES, help="random states")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random states")
    parser.add_argument("--engine", default="graph", help="default: %(default)s")
    parser.add_argument(
        "--second", action="store_true", help="check second derivatives, too"
    )
    parser.add_argument("--plot", metavar="FILE", help="picture of the errors by joint")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.states < 1 or arguments.seed < 0:
        raise SettingError("--states: 1 or more, --seed: 0 or more", "states")
    if arguments.plot is not None:
        check_plot(arguments.plot)
    model = load_robot(arguments)
    choices = arguments.states, arguments.seed, arguments.engine
    errors = examine(model, *choices)
    if arguments.second:
        second = examine_second(_tree(model), *choices)
        errors = {name: {**row, **second[name]} for name, row in errors.items()}
    for line in report(model, errors):
        print(line)
    if arguments.plot is not None:
        title = f"{model.name}: errors of derivatives, scaled"
        save(plot_errors(errors, TOLERANCES["law"], title), arguments.plot)
    return 0 if _passes(errors) else 1


def examine(
    model: Model, states: int = STATES, seed: int = 0, engine: str = "graph"
) -> dict[str, dict[str, float]]:
    """Return the largest errors at random states, {joint: {one of COLUMNS: error}}.

    Errors of joint forces are relative to max(1, largest entry of the block), infinity
    for NaN, and belong to the joint by whose coordinate the derivative is taken;
    accelerations are compared as joint forces H dqdd. Loops are opened. For a few
    states engine "graph" finishes before machine code is compiled.

    Source: KIM-4.6.
    """
    rng = np.random.default_rng(seed)
    methods = _Methods(_tree(model), engine)
    names = model.joint_names
    worst = {name: dict.fromkeys(COLUMNS, 0.0) for name in names}
    for _ in range(states):
        for column, by_coordinate in methods.errors(rng).items():
            for name in names:
                entries = by_coordinate[model.v_slice(name)]
                worst[name][column] = max(worst[name][column], *map(float, entries))
    return worst


def _tree(model: Model) -> Model:
    """Return the robot with its loops opened; a robot without loops unchanged."""
    return model.without_loops() if model.loops else model


class _Methods:
    """Programs that compute the same derivatives of a tree by different methods."""

    def __init__(self, model: Model, engine: str) -> None:
        self.model, self.engine = model, engine
        self.inputs = ["time"] if model.driven else []
        names = (*COLUMNS[:4], "rnea", "aba", "crba")
        forward_modes = [f"{name}_forward_mode" for name in COLUMNS[2:4]]
        self.programs = {name: self._build(name) for name in (*names, *forward_modes)}
        self.plain = {
            name: self._build(name, engine="plain")
            for name in ("rnea", "aba", "semi_implicit_euler")
        }
        name = "semi_implicit_euler_derivatives"
        self.programs[name] = self._build(name)

    def _build(self, name: str, **choices: Any) -> Any:
        choices = {"engine": self.engine, "inputs": self.inputs, **choices}
        return solver(name).build(self.model, **choices)

    def errors(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return errors {column of COLUMNS: (nv,)} by coordinate at a random state.

        Accelerations are compared as joint forces.
        """
        model = self.model
        q, nv = model.random(rng), model.nv
        qd, last = rng.normal(size=(2, nv))
        tail = [rng.uniform()] if self.inputs else []
        H = np.asarray(self.programs["crba"](q, *tail))
        errors = dict.fromkeys(COLUMNS, np.zeros(nv))
        for name, weight in (("rnea", np.eye(nv)), ("aba", H)):
            problem = "id" if name == "rnea" else "fd"
            blocks = self.programs[f"{problem}_derivatives"](q, qd, last, *tail)
            blocks = list(blocks)[-3:]
            steps = self._by_complex_step(name, q, qd, last, tail)
            moved = self._by_differences(name, q, qd, last, tail)
            column = f"{problem}_derivatives"
            for block, step, change in zip(blocks, steps, moved, strict=True):
                error = _by_columns(weight @ block, weight @ step)
                errors[column] = np.maximum(errors[column], error)
                error = _by_columns(weight @ step, weight @ change)
                errors["differences"] = np.maximum(errors["differences"], error)
            errors[f"{problem}_directional"] = self._directional(
                problem, (q, qd, last), tail, rng, weight, steps
            )
        errors["steps"] = self._steps(q, qd, last, tail)
        return errors

    def _steps(self, q: Any, qd: Any, tau: Any, tail: list[Any]) -> np.ndarray:
        """Return by coordinate the largest error of a step's derivatives, (nv,).

        The state after one step of 0.01 s is compared with complex steps. `tail` has
        the time of driven joints, or nothing.
        """
        more = _DT, *tail
        program = self.programs["semi_implicit_euler_derivatives"]
        plain, nv = self.plain["semi_implicit_euler"], self.model.nv
        result = program(q, qd, tau, *more)
        blocks = [result.A[:, :nv], result.A[:, nv:], result.B]
        errors, zero = np.zeros(nv), np.zeros(nv)
        for k, block in enumerate(blocks):
            columns = []
            for unit in np.eye(nv):
                changes = [zero] * 3
                changes[k] = unit
                state = q, qd, tau
                columns.append(complex_change(self.model, plain, state, changes, more))
            expected = np.array(columns).reshape(nv, 2 * nv).T
            errors = np.maximum(errors, _by_columns(block, expected))
        return errors

    def _by_complex_step(
        self, name: str, q: Any, qd: Any, last: Any, tail: list[Any]
    ) -> list[np.ndarray]:
        """Return the Jacobians by q, qd and `last` (qdd or tau) by complex steps."""
        program = self.plain[name]

        def along(dq: Any, dqd: Any, dlast: Any) -> np.ndarray:
            moved = q + 1j * _TINY * self.model.position_rate(q, dq)
            state = moved, qd + 1j * _TINY * dqd, last + 1j * _TINY * dlast
            return np.asarray(program(*state, *tail)).imag / _TINY

        return self._blocks(along)

    def _by_differences(
        self, name: str, q: Any, qd: Any, last: Any, tail: list[Any]
    ) -> list[np.ndarray]:
        """Return Jacobians as _by_complex_step, by differences of order eight."""
        program, integrate = self.programs[name], self.model.integrate

        def along(dq: Any, dqd: Any, dlast: Any) -> np.ndarray:
            def state_at(t: float) -> Any:
                state = integrate(q, t * dq), qd + t * dqd, last + t * dlast
                return program(*state, *tail)

            return derivative(state_at, _STEP)

        return self._blocks(along)

    def _blocks(self, along: Callable[..., np.ndarray]) -> list[np.ndarray]:
        nv, units = self.model.nv, np.eye(self.model.nv)
        zero, errors = np.zeros(nv), []
        for k in range(3):
            columns = []
            for unit in units:
                seeds = [zero, zero, zero]
                seeds[k] = unit
                columns.append(along(*seeds))
            errors.append(np.array(columns).reshape(nv, nv).T)
        return errors

    def _directional(
        self,
        problem: str,
        state: Any,
        tail: list[Any],
        rng: Any,
        weight: Any,
        steps: Any,
    ) -> np.ndarray:
        """Return the largest error of directional derivatives by direction, (nv,).

        In direction j all three inputs change, in coordinate j alone. The analytic
        derivative is compared with forward mode and with the Jacobians `steps`.
        `weight`, (nv, nv), maps results to joint forces.
        """
        nv = self.model.nv
        scales = rng.normal(size=(3, nv))
        seeds = [np.diag(scale) for scale in scales]
        states = [np.tile(x, (nv, 1)) for x in state]
        times = [np.tile(x, nv) for x in tail]
        analytic = self.programs[f"{problem}_directional"](*states, *seeds, *times)[1]
        name = f"{problem}_directional_forward_mode"
        forward_mode = self.programs[name](*states, *seeds, *times)[1]
        blocks = sum(M * scale for M, scale in zip(steps, scales, strict=True))
        error = _by_columns(
            weight @ np.asarray(analytic).T, weight @ np.asarray(forward_mode).T
        )
        other = _by_columns(weight @ np.asarray(analytic).T, weight @ blocks)
        return np.maximum(error, other)


def _by_columns(result: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the largest absolute difference in each column, or infinity with NaN.

    It is relative to max(1, largest absolute entry of `expected`).
    """
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    error = (
        np.abs(np.asarray(result, float) - expected).max(axis=0, initial=0.0) / scale
    )
    return np.where(np.isfinite(error), error, np.inf)


def _passes(errors: dict[str, dict[str, float]]) -> bool:
    allowed = TOLERANCES["law"]
    return all(x <= allowed for row in errors.values() for x in row.values())


def report(model: Model, errors: dict[str, dict[str, float]]) -> list[str]:
    """Return the lines of a table of the errors by joint; the last is a verdict.

    It is "ok: " with the largest error, or "FAIL: " with the joints that exceed the
    tolerance "law". A line before it says if loops are opened.

    Args:
        model: Robot.
        errors: {joint: {column: error}}, as `examine` and examine_second return.
    """
    columns = next(iter(errors.values()), dict.fromkeys(COLUMNS, 0.0))
    rows: list[tuple[str, ...]] = [("joint", "kind", *columns)]
    for name, row in errors.items():
        cells = [f"{row[column]:.1e}" for column in columns]
        rows.append((name, model.joint_kind(name), *cells))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [f"{model.name}: errors of derivatives, scaled"]
    for line in rows:
        label_cells = [x.ljust(w) for x, w in zip(line[:2], widths[:2], strict=True)]
        value_cells = [x.rjust(w) for x, w in zip(line[2:], widths[2:], strict=True)]
        lines.append("  " + "  ".join([*label_cells, *value_cells]))
    if model.loops:
        lines.append("the loops of the robot are opened")
    allowed = TOLERANCES["law"]
    bad = [name for name, row in errors.items() if max(row.values()) > allowed]
    largest = max((max(row.values()) for row in errors.values()), default=0.0)
    lines.append(
        f"FAIL: derivatives disagree at {', '.join(bad)} (allowed {allowed:.0e})"
        if bad
        else f"ok: largest error {largest:.1e} (allowed {allowed:.0e})"
    )
    return lines
