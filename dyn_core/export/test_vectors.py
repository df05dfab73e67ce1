"""Test vectors: states of a Program, and the bits of its results for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.engines.native_program import NativeProgram
from dyn_core.engines.status import NOT_FINITE_INPUT
from dyn_core.model import Model
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.problems import Port

GOOD = 4  # number of states without a failure
_TRIES = 40
_FAR = {"float64": 1e15, "float32": 1e6}  # beyond the range of polynomials [rad]
_STEP = 1e-3  # value of a time input [s]


@dataclass(frozen=True)
class TestVector:
    """States of a Program, and its results for them, one row each.

    Flat inputs and outputs, (rows, entries), have the Program's dtype and the order of
    the ports. Outputs are NaN where the status, int64 (rows,), is not 0 (no failure).
    """

    __test__ = False  # no class of tests, as its name might say

    inputs: np.ndarray
    outputs: np.ndarray
    status: np.ndarray

    @property
    def fails(self) -> bool:
        """Whether some state has a status other than 0."""
        return bool(self.status.any())


def bits(values: np.ndarray) -> list[str]:
    """Return the bits of floating-point numbers, in C order, as hexadecimal digits.

    Each number has a string of 16 digits for float64, 8 for float32, highest first.
    """
    digits = 2 * values.dtype.itemsize
    whole = values.view(np.uint64 if digits == 16 else np.uint32)
    return [f"{int(x):0{digits}x}" for x in whole.ravel()]


def test_vector(program: NativeProgram, seed: int = 1) -> TestVector:
    """Return random states of a Program, one with large angles, and one that fails.

    They are rows in this order:

    - four random states that do not fail, or fewer if 40 tries do not suffice; if all
      fail, only the last one;
    - for a robot with a position among the inputs: a state with large angles;
    - if the algorithm has conditions and no row fails so far: a state that fails, if
      one of the candidates does;
    - with finite=True: the first row with NaN as last input, and the status -1.
    """
    rows: list[tuple[np.ndarray, np.ndarray, int]] = []
    rng = np.random.default_rng(seed)
    for _ in range(_TRIES):
        row = _row(program, _state(program, rng))
        if row[2] == 0:
            rows.append(row)
        if len(rows) == GOOD:
            break
    if not rows:
        rows.append(row)
    if isinstance(program.model, Model) and any(
        port.kind == "position" and port.size == program.model.nq
        for port in program.inputs
    ):
        units = coordinates_of(program.model).position_units
        away = np.where(np.array(units) == "rad", _FAR[str(program.dtype)], 0.0)
        far = _state(program, rng, position=lambda q: q + away)
        rows.append(_row(program, far))
    if program.graph.requirements and not any(row[2] for row in rows):
        candidates = (_row(program, x) for x in _doubtful(program, rng))
        rows += [row for row in candidates if row[2]][:1]
    if program.finite:
        numbers = rows[0][0].copy()
        numbers[-1] = np.nan
        rows.append((numbers, np.full_like(rows[0][1], np.nan), NOT_FINITE_INPUT))
    inputs, outputs, status = zip(*rows, strict=True)
    return TestVector(np.stack(inputs), np.stack(outputs), np.array(status, np.int64))


test_vector.__test__ = False  # type: ignore[attr-defined]


def _row(
    program: NativeProgram, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return flat inputs in the Program's dtype, flat outputs and status of a state."""
    with np.errstate(over="ignore"):
        numbers = numbers.astype(program.dtype)
    values, status = program.run_row(numbers.tolist())
    return numbers, np.array(values, program.dtype), status


def _state(
    program: NativeProgram, rng: np.random.Generator, position: Any = None
) -> np.ndarray:
    """Return flat inputs of a random state; `position` maps those of the robot."""
    parts = [np.zeros(0)]
    for port in program.inputs:
        value = _value(program, port, rng)
        whole = port.kind == "position" and port.size == program.model.sizes.get("nq")
        if whole and position is not None:
            value = position(value)
        parts.append(np.asarray(value, float).ravel())
    return np.concatenate(parts)


def _value(program: NativeProgram, port: Port, rng: np.random.Generator) -> Any:
    """Return an input's value in its shape: its default, else one by its kind."""
    if port.name in program.defaults:
        return program.defaults[port.name]
    model = program.model
    if port.kind == "position" and isinstance(model, Model) and port.size == model.nq:
        return model.random(rng)
    if port.kind == "poses":
        poses = np.tile(np.eye(4), (*port.shape[:-2], 1, 1))
        poses[..., :3, 3] = rng.normal(size=(*port.shape[:-2], 3))
        return poses
    if port.unit == "s":
        return np.full(port.shape, _STEP)
    return rng.normal(size=port.shape)


def _doubtful(program: NativeProgram, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield flat inputs that may violate a condition of the algorithm."""
    usual = _state(program, rng)
    yield 0.0 * usual
    if isinstance(program.model, Model):
        yield _state(program, rng, position=lambda q: 2.0 * q)
        yield _state(program, rng, position=lambda q: 1e-3 * q)
        yield _state(program, rng, position=lambda q: q + _FAR[str(program.dtype)])
    # 1e200: products overflow
    for number in (1.0, -1.0, 1e200, np.inf, np.nan):
        yield np.full_like(usual, number)
