"""Errors of a robot's second derivatives, for `dyn check-derivatives --second`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.model import Model
from dyn_core.solving.registry import solver
from dyn_core.testing.laws.derivatives.second_laws import complex_slopes

COLUMNS = ("id_second", "id_contracted", "fd_second", "fd_contracted")


def examine_second(
    model: Model, states: int, seed: int, engine: str
) -> dict[str, dict[str, float]]:
    """Return the largest errors by joint and column of COLUMNS, over random states.

    The reference is a complex step of the first derivatives. Errors are relative to
    max(1, largest entry), and belong to the joint of a tensor's last index;
    accelerations are compared as joint forces H qdd. A humanoid takes minutes.

    Args:
        model: Robot without loops.
        states: Number of random states.
        seed: Of the random numbers.
        engine: Engine of the second derivatives.

    Returns:
        {joint: {column: error}}; infinity for NaN.
    """
    rng = np.random.default_rng(seed)
    inputs = ["time"] if model.driven else []
    programs = {
        name: solver(name).build(model, engine=engine, inputs=inputs)
        for name in ("crba", *map(_solver_of, COLUMNS))
    }
    firsts = {
        problem: solver(f"{problem}_derivatives").build(
            model, engine="plain", inputs=inputs
        )
        for problem in ("id", "fd")
    }
    worst = {name: dict.fromkeys(COLUMNS, 0.0) for name in model.joint_names}
    for _ in range(states):
        state = [model.random(rng), *rng.normal(size=(2, model.nv))]
        tail = [rng.uniform()] if inputs else []
        H = np.asarray(programs["crba"](state[0], *tail))
        for problem, first in firsts.items():
            expected = complex_slopes(model, first, state, *tail)
            expected[3] = expected[3].transpose(0, 2, 1)
            weight = H if problem == "fd" else np.eye(model.nv)
            for column in (c for c in COLUMNS if c[:2] == problem):
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
    """Return the name of a column's solver."""
    return {
        "id_contracted": "id_second_contracted",
        "fd_contracted": "fd_second_contracted",
    }.get(column, f"{column}_derivatives")


def _ordered(problem: str, results: Any) -> list[np.ndarray]:
    """Return the tensors as arrays, the last one by q and then by qdd or tau."""
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
    """Store the largest error of each joint, by the last index, in `worst`.

    Args:
        model: Robot.
        worst: {joint: {column: error}}, changed in place.
        column: One of COLUMNS.
        results, expected: Tensors to compare.
    """
    for got, wanted in zip(results, expected, strict=True):
        scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
        error = np.abs(got - wanted).max(axis=(0, 1), initial=0.0) / scale
        error = np.where(np.isfinite(error), error, np.inf)
        for name in worst:
            entries = [worst[name][column], *map(float, error[model.v_slice(name)])]
            worst[name][column] = max(entries)
