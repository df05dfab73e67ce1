"""The command `dyn check-derivatives`: a user's robot, derivative by derivative.

Closed forms are compared with the complex step and forward mode through the texts of
inverse and forward dynamics, and all of them with eighth-order differences.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.model import Model, load_urdf
from dyn_core.registry import solver
from dyn_core.testing.case import derivative
from dyn_core.testing.tolerances import TOLERANCES

STATES = 3  # random states unless the user says otherwise
_TINY = 1e-30  # of the complex step: no difference is taken, so nothing cancels
_STEP = 1e-3  # of the differences
COLUMNS = (
    "id_derivatives",
    "fd_derivatives",
    "id_directional",
    "fd_directional",
    "differences",
)


def add(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the parser of `dyn`."""
    made = subparsers.add_parser(
        "check-derivatives", help="derivatives of a robot against other ways to them"
    )
    made.add_argument("urdf", help="path, or the name of a shipped robot")
    made.add_argument("--root-joint", choices=("fixed", "floating"), default="fixed")
    made.add_argument("--extras", help="YAML file with what URDF cannot say")
    made.add_argument("--states", type=int, default=STATES, help="random states")
    made.add_argument("--seed", type=int, default=0, help="of the random states")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    name = arguments.urdf
    path = str(robots.path(name)) if name in robots.names() else name
    model = load_urdf(path, root_joint=arguments.root_joint, extras=arguments.extras)
    errors = examine(model, max(1, arguments.states), arguments.seed)
    for line in report(model, errors):
        print(line)
    return 0 if _good(errors) else 1


def examine(
    model: Model, states: int = STATES, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Give the largest errors by joint and column of COLUMNS, over random states.

    Errors of joint forces are over max(1, largest entry of the block); accelerations
    are compared by the joint forces that they take, H dqdd. Loops are left open.

    Args:
        model: Robot.
        states: Number of random states.
        seed: Of the random numbers.

    Source: KIM-4.6.
    """
    rng = np.random.default_rng(seed)
    ways = _Ways(model.without_loops() if model.loops else model)
    names = model.joint_names
    worst = {name: dict.fromkeys(COLUMNS, 0.0) for name in names}
    for _ in range(states):
        for column, by_coordinate in ways.errors(rng).items():
            for name in names:
                own = by_coordinate[model.v_slice(name)]
                worst[name][column] = max(worst[name][column], *map(float, own))
    return worst


class _Ways:
    """Programs that give the same derivatives in different ways."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.inputs = ["time"] if model.driven else []
        names = (*COLUMNS[:4], "rnea", "aba", "crba")
        twins = [f"{name}_forward_mode" for name in COLUMNS[2:4]]
        self.programs = {name: self._build(name) for name in (*names, *twins)}
        self.plain = {
            name: self._build(name, engine="plain") for name in ("rnea", "aba")
        }

    def _build(self, name: str, **choices: Any) -> Any:
        return solver(name).build(self.model, inputs=self.inputs, **choices)

    def errors(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Give by column the error of each coordinate, at one random state."""
        model = self.model
        q, nv = model.random(rng), model.nv
        qd, last = rng.normal(size=(2, nv))
        tail = [rng.uniform()] if self.inputs else []
        H = np.asarray(self.programs["crba"](q, *tail))
        found = dict.fromkeys(COLUMNS, np.zeros(nv))
        for name, weight in (("rnea", np.eye(nv)), ("aba", H)):
            problem = "id" if name == "rnea" else "fd"
            blocks = self.programs[f"{problem}_derivatives"](q, qd, last, *tail)
            blocks = list(blocks)[-3:]
            steps = self._by_complex_step(name, q, qd, last, tail)
            moved = self._by_differences(name, q, qd, last, tail)
            column = f"{problem}_derivatives"
            for block, step, change in zip(blocks, steps, moved, strict=True):
                off = _by_columns(weight @ block, weight @ step)
                found[column] = np.maximum(found[column], off)
                off = _by_columns(weight @ step, weight @ change)
                found["differences"] = np.maximum(found["differences"], off)
            found[f"{problem}_directional"] = self._directional(
                problem, (q, qd, last), tail, rng, weight, steps
            )
        return found

    def _by_complex_step(
        self, name: str, q: Any, qd: Any, last: Any, tail: list[Any]
    ) -> list[np.ndarray]:
        """Give the blocks by q, qd and the last input, one column for each unit."""
        program = self.plain[name]

        def along(dq: Any, dqd: Any, dlast: Any) -> np.ndarray:
            moved = q + 1j * _TINY * self.model.position_rate(q, dq)
            state = moved, qd + 1j * _TINY * dqd, last + 1j * _TINY * dlast
            return np.asarray(program(*state, *tail)).imag / _TINY

        return self._blocks(along)

    def _by_differences(
        self, name: str, q: Any, qd: Any, last: Any, tail: list[Any]
    ) -> list[np.ndarray]:
        """Give the same blocks by eighth-order differences."""
        program, integrate = self.programs[name], self.model.integrate

        def along(dq: Any, dqd: Any, dlast: Any) -> np.ndarray:
            def at(t: float) -> Any:
                state = integrate(q, t * dq), qd + t * dqd, last + t * dlast
                return program(*state, *tail)

            return derivative(at, _STEP)

        return self._blocks(along)

    def _blocks(self, along: Callable[..., np.ndarray]) -> list[np.ndarray]:
        nv, units = self.model.nv, np.eye(self.model.nv)
        zero, found = np.zeros(nv), []
        for k in range(3):
            columns = []
            for unit in units:
                seeds = [zero, zero, zero]
                seeds[k] = unit
                columns.append(along(*seeds))
            found.append(np.array(columns).reshape(nv, nv).T)
        return found

    def _directional(
        self,
        problem: str,
        state: Any,
        tail: list[Any],
        rng: Any,
        weight: Any,
        steps: Any,
    ) -> np.ndarray:
        """Compare derivatives along each coordinate's own random direction."""
        nv = self.model.nv
        scales = rng.normal(size=(3, nv))
        seeds = [np.diag(scale) for scale in scales]
        given = [np.tile(x, (nv, 1)) for x in state]
        late = [np.tile(x, nv) for x in tail]
        here = self.programs[f"{problem}_directional"](*given, *seeds, *late)[1]
        name = f"{problem}_directional_forward_mode"
        there = self.programs[name](*given, *seeds, *late)[1]
        blocks = sum(M * scale for M, scale in zip(steps, scales, strict=True))
        off = _by_columns(weight @ np.asarray(here).T, weight @ np.asarray(there).T)
        other = _by_columns(weight @ np.asarray(here).T, weight @ blocks)
        return np.maximum(off, other)


def _by_columns(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Give the largest difference in each column, scaled by the whole block."""
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    off = np.abs(np.asarray(got, float) - wanted).max(axis=0, initial=0.0) / scale
    return np.where(np.isfinite(off), off, np.inf)


def _good(errors: dict[str, dict[str, float]]) -> bool:
    allowed = TOLERANCES["law"]
    return all(x <= allowed for row in errors.values() for x in row.values())


def report(model: Model, errors: dict[str, dict[str, float]]) -> list[str]:
    """Say how large the errors are, joint by joint, and what follows from them."""
    rows: list[tuple[str, ...]] = [("joint", "kind", *COLUMNS)]
    for name, row in errors.items():
        cells = [f"{row[column]:.1e}" for column in COLUMNS]
        rows.append((name, model.joint_kind(name), *cells))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [f"{model.name}: errors of derivatives, scaled"]
    for line in rows:
        left = [x.ljust(w) for x, w in zip(line[:2], widths[:2], strict=True)]
        right = [x.rjust(w) for x, w in zip(line[2:], widths[2:], strict=True)]
        lines.append("  " + "  ".join([*left, *right]))
    if model.loops:
        lines.append("the robot's loops are left open")
    allowed = TOLERANCES["law"]
    bad = [name for name, row in errors.items() if max(row.values()) > allowed]
    largest = max((max(row.values()) for row in errors.values()), default=0.0)
    lines.append(
        f"FAIL: derivatives disagree at {', '.join(bad)} (allowed {allowed:.0e})"
        if bad
        else f"ok: largest error {largest:.1e} (allowed {allowed:.0e})"
    )
    return lines
