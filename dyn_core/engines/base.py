"""Programs: what an engine returns. Here arrays are checked, once per call."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from dyn_core.engines.graph import Requirement
from dyn_core.errors import (
    NonFiniteError,
    RequireError,
    ShapeError,
    UnsupportedError,
)
from dyn_core.matrices import dense
from dyn_core.model import Model
from dyn_core.signature import Port, Signature

BLOCK = 512  # rows of a batch that are evaluated at a time


@dataclass(frozen=True)
class Recipe:
    """How a Program was asked for; enough to build it again elsewhere.

    Attributes:
        solver: The Solver.
        model: The robot.
        choices: All keyword arguments of build.
    """

    solver: Any
    model: Model
    choices: Mapping[str, Any] = field(default_factory=dict)


@cache
def result_type(names: tuple[str, ...]) -> Any:
    """Make the named tuple of several outputs; it pickles by its names."""
    base: Any = namedtuple("Result", list(names))  # type: ignore[misc]

    def reduce(self: Any) -> tuple[Any, ...]:
        return make_result, (names, tuple(self))

    return type("Result", (base,), {"__slots__": (), "__reduce__": reduce})


def make_result(names: tuple[str, ...], values: Sequence[Any]) -> Any:
    """Give several outputs as a named tuple."""
    return result_type(names)(*values)


class Program:
    """A solver built for a robot: call it with arrays.

        tau = program(q, qd, qdd)                one state: (nv,)
        tau = program(Q, Qd, Qdd)                a batch: (batch, nv)
        program(q, qd, qdd, out=tau)             into an array of exactly that shape
        tau, status = program(Q, Qd, Qdd, status=True)

    Inputs go by position or name; one without the batch axis is shared by all rows; a
    parameter input that is left out has the Model's own value. Several outputs come as
    a named tuple. What a text requires raises (a batch with `.rows`); with status=True
    failed rows are NaN and status counts from 1 which requirement failed, 0 if none.

    Attributes:
        signature, model: What is solved, for which robot.
        inputs, outputs: Ports with their sizes.
        engine: Name of the engine.
        threads: Most threads a batch may use; None for DYN_THREADS or all cores.
        wait: Whether a first call waits for its machine code.
    """

    engine = ""

    def __init__(
        self,
        recipe: Recipe,
        signature: Signature,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        defaults: Mapping[str, np.ndarray],
        finite: bool,
        threads: int | None = None,
        wait: bool = True,
    ) -> None:
        self.threads, self.wait = threads, wait
        self.recipe, self.signature, self.model = recipe, signature, recipe.model
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.defaults, self.finite = dict(defaults), finite
        self._names = tuple(port.name for port in outputs)

    def prepare(self, batch: bool = False) -> None:
        """Do now what a first call would have to wait for; with batch also a batch."""

    def run_row(self, numbers: Sequence[Any]) -> tuple[Any, int]:
        """Give flat outputs and status of one state's flat inputs."""
        raise NotImplementedError

    def run_block(self, columns: Sequence[Any], rows: int) -> tuple[Any, Any]:
        """Give flat output columns and status of a block of rows."""
        raise NotImplementedError

    def dense(self, name: str, values: Any) -> np.ndarray:
        """Give matrices (..., nv, nv) from an output built packed or sparse."""
        port = {port.name: port for port in self.outputs}[name]
        return dense(self.model, port.kind, port.places, values)

    def requirement(self, number: int) -> Requirement:
        """Give the requirement that a status names."""
        raise NotImplementedError

    def __call__(
        self, *args: Any, out: Any = None, status: bool = False, **named: Any
    ) -> Any:
        """Evaluate; see the class."""
        arrays = [
            _as_array(port, value)
            for port, value in zip(self.inputs, self._bind(args, named), strict=True)
        ]
        if any(array.dtype.kind == "c" for array in arrays):
            return self._complex(arrays, out)
        if self.finite:
            self._check_finite(arrays, self.inputs, "input")
        rows = self._rows(arrays)
        targets = self._targets(out, rows)
        state: Any
        if rows is None:
            results, state = self._single(arrays)
        else:
            results, state = self._batch(arrays, rows, targets)
        if not status:
            self._raise(state, rows)
        if self.finite:
            self._check_finite(results, self.outputs, "result", state)
        if out is None:
            single = [x if x.ndim else float(x) for x in results]
            given = single[0] if len(single) == 1 else make_result(self._names, single)
        else:
            given = out
            for result, target in zip(results, targets or (), strict=True):
                if result is not target:
                    target[...] = result
        return (given, state) if status else given

    def _bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Put arguments in the order of the inputs."""
        names = [port.name for port in self.inputs]
        if len(args) > len(names):
            wanted = f"{len(names)} inputs ({', '.join(names)})"
            raise ShapeError("arguments", wanted, str(len(args)))
        values = dict(zip(names, args, strict=False))
        for name, value in named.items():
            if name not in names or name in values:
                what = "given twice" if name in values else "unknown"
                raise ShapeError(name, f"one of {', '.join(names)}, each once", what)
            values[name] = value
        for name in names:
            if name not in values:
                if name not in self.defaults:
                    raise ShapeError(name, "an array", "nothing")
                values[name] = self.defaults[name]
        return [values[name] for name in names]

    def _rows(self, arrays: Sequence[np.ndarray]) -> int | None:
        """Give the batch size, None for a single state."""
        rows = None
        for port, array in zip(self.inputs, arrays, strict=True):
            if array.ndim == len(port.shape):
                continue
            if rows is None:
                rows = len(array)
            elif rows != len(array):
                wanted = f"a batch of {rows} rows like the inputs before it"
                raise ShapeError(port.name, wanted, f"{len(array)} rows")
        return rows

    def _single(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        numbers = [x for array in arrays for x in array.ravel().tolist()]
        flat, state = self.run_row(numbers)
        values = np.array(flat, float)
        if state:
            values[:] = np.nan
        return self._split(values), state

    def _batch(
        self, arrays: Sequence[np.ndarray], rows: int, targets: Any
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Give outputs and status of the rows; outputs may be the targets."""
        flat = [
            array.reshape(
                (len(array), port.size)
                if array.ndim > len(port.shape)
                else (port.size,)
            )
            for port, array in zip(self.inputs, arrays, strict=True)
        ]
        values = np.empty((rows, sum(port.size for port in self.outputs)))
        state = np.zeros(rows, int)
        for start in range(0, rows, BLOCK):
            stop = min(start + BLOCK, rows)
            columns: list[Any] = []
            for x in flat:
                part = x if x.ndim == 1 else np.ascontiguousarray(x[start:stop].T)
                columns += part.tolist() if x.ndim == 1 else list(part)
            results, failed = self.run_block(columns, stop - start)
            for k, column in enumerate(results):
                values[start:stop, k] = column
            state[start:stop] = failed
        values[state != 0] = np.nan
        return self._split(values), state

    def _split(self, values: np.ndarray) -> list[np.ndarray]:
        """Cut flat values (size,) or (rows, size) into the outputs."""
        results, at = [], 0
        for port in self.outputs:
            part = values[..., at : at + port.size]
            at += port.size
            shaped = part.reshape((*values.shape[:-1], *port.shape))
            results.append(np.ascontiguousarray(shaped) if shaped.ndim else shaped)
        return results

    def _raise(self, state: Any, rows: int | None) -> None:
        """Raise what the status names, for the first requirement that failed."""
        if rows is None:
            if state:
                requirement = self.requirement(state)
                raise requirement.error(requirement.item)
            return
        failed = np.flatnonzero(state)
        if len(failed):
            requirement = self.requirement(int(state[failed[0]]))
            raise requirement.error(requirement.item, failed.tolist())

    def _targets(self, out: Any, rows: int | None) -> list[np.ndarray] | None:
        """Give the arrays of `out`, checked."""
        if out is None:
            return None
        targets = [out] if len(self.outputs) == 1 else list(out)
        if len(targets) != len(self.outputs):
            wanted = f"{len(self.outputs)} arrays"
            raise ShapeError("out", wanted, str(len(targets)))
        lead = () if rows is None else (rows,)
        for port, target in zip(self.outputs, targets, strict=True):
            _check_out(port, (*lead, *port.shape), target)
        return targets

    def _check_finite(
        self,
        arrays: Sequence[np.ndarray],
        ports: Sequence[Port],
        what: str,
        state: Any = 0,
    ) -> None:
        """Refuse NaN and infinity; rows that failed a requirement are known already."""
        for port, array in zip(ports, arrays, strict=True):
            good = np.isfinite(array)
            if good.all():
                continue
            if array.ndim == len(port.shape):
                if np.all(state == 0):
                    raise NonFiniteError(f"{what} {port.name} is not finite", port.name)
                continue
            good = good.reshape(len(array), -1).all(axis=1)
            bad = np.flatnonzero(~good & (np.broadcast_to(state, good.shape) == 0))
            if len(bad):
                shown = ", ".join(map(str, bad[:8]))
                message = f"{what} {port.name} is not finite in rows {shown}"
                raise NonFiniteError(message, port.name, bad.tolist())

    def _complex(self, arrays: Sequence[np.ndarray], out: Any) -> Any:
        """Evaluate complex inputs (complex-step checks) on the plain engine."""
        raise UnsupportedError(f"engine {self.engine} takes no complex numbers")

    def __reduce__(self) -> tuple[Any, ...]:
        return _build_again, (self.recipe,)

    def __repr__(self) -> str:
        name, robot = self.recipe.solver.name, self.model.name
        return f"<Program {name} for {robot!r} on {self.engine}: {self.signature}>"


class RowProgram(Program):
    """A Program that runs row by row on the spot; errors are noted as a status."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **parts)
        self._noted: list[RequireError] = []

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Evaluate; see Program."""
        self._noted = []
        return super().__call__(*args, **named)

    def note(self, error: RequireError) -> tuple[list[float], int]:
        """Give NaN for a row that failed, and the status that names the error."""
        self._noted.append(error)
        size = sum(port.size for port in self.outputs)
        return [float("nan")] * size, len(self._noted)

    def run_block(self, columns: Sequence[Any], rows: int) -> tuple[Any, Any]:
        """Run each row."""
        results, states = [], []
        for row in range(rows):
            numbers = [
                float(x[row]) if isinstance(x, np.ndarray) else x for x in columns
            ]
            result, state = self.run_row(numbers)
            results.append(result)
            states.append(state)
        return np.array(results, float).T, np.array(states)

    def dense(self, name: str, values: Any) -> np.ndarray:
        """Give matrices (..., nv, nv) from an output built packed or sparse."""
        port = {port.name: port for port in self.outputs}[name]
        return dense(self.model, port.kind, port.places, values)

    def requirement(self, number: int) -> Requirement:
        """Give what was noted under this number."""
        error = self._noted[number - 1]
        return Requirement(0, type(error), error.item)


def _build_again(recipe: Recipe) -> Program:
    return recipe.solver.build(recipe.model, **recipe.choices)


def _as_array(port: Port, value: Any) -> np.ndarray:
    """Give a float64 (or complex) array of a Port's shape, with or without batch."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ShapeError(port.name, f"shape {port.shape}", "a ragged list") from error
    if array.dtype.kind not in "fiubc":
        raise ShapeError(port.name, "numbers", f"dtype {array.dtype}")
    if array.dtype.kind != "c":
        array = array.astype(np.float64, copy=False)
    dims = len(port.shape)
    if (
        array.ndim not in (dims, dims + 1)
        or array.shape[array.ndim - dims :] != port.shape
    ):
        batch = ", ".join(["batch", *map(str, port.shape)])
        wanted = f"shape {port.shape} or ({batch})"
        raise ShapeError(port.name, wanted, f"shape {array.shape}")
    return array


def _check_out(port: Port, shape: tuple[int, ...], target: Any) -> None:
    """Refuse an `out` that does not fit exactly."""
    wanted = f"a writeable float64 array of shape {shape}"
    if not isinstance(target, np.ndarray):
        raise ShapeError(f"out {port.name}", wanted, type(target).__name__)
    if target.shape != shape or target.dtype != np.float64:
        got = f"{target.dtype} of shape {target.shape}"
        raise ShapeError(f"out {port.name}", wanted, got)
    if not target.flags.writeable:
        raise ShapeError(f"out {port.name}", wanted, "a read-only array")
