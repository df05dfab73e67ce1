"""Programs: what an engine returns. Here arrays are checked, once per call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from dyn_core import forwards
from dyn_core.engines.arrays import as_array, check_finite, check_out
from dyn_core.engines.describe import CallSignature, SolverDescription, page, summary
from dyn_core.engines.graph.graph import Requirement
from dyn_core.engines.results import make_result
from dyn_core.engines.status import (
    NOT_FINITE,
    NOT_FINITE_INPUT,
    NOT_FINITE_RESULT,
    Status,
    fill_failed,
    mark_not_finite,
)
from dyn_core.errors import (
    NonFiniteError,
    RowError,
    ShapeError,
    UnsupportedError,
    nearest,
)
from dyn_core.model import Model
from dyn_core.model.coordinates.matrix_forms import dense
from dyn_core.problems import InstanceDoc, Port, Signature
from dyn_core.sharing import cached_property

ROWS_AT_A_TIME = 512  # of a batch that Python evaluates
Function = Callable[[Sequence[Any]], Sequence[Any]]  # of flat numbers of any kind
Result = TypeVar("Result", covariant=True)
Out = TypeVar("Out")


@dataclass(frozen=True)
class Recipe:
    """How a Program was asked for; enough to build it again elsewhere.

    Attributes:
        solver: The Solver.
        model: The robot.
        choices: All keyword arguments of build.
    """

    solver: SolverDescription
    model: Model
    choices: Mapping[str, Any] = field(default_factory=dict)


class Program(Generic[Result]):
    """A solver built for a robot: call it with arrays.

        tau = program(q, qd, qdd)                one state: (nv,)
        tau = program(Q, Qd, Qdd)                a batch: (batch, nv)
        program(q, qd, qdd, out=tau)             into an array of exactly that shape
        tau, status = program(Q, Qd, Qdd, status=True)

    Inputs go by position or name; one without the batch axis is shared by all rows; a
    parameter input that is left out has the value of the Model. Several outputs come as
    a named tuple. Where a requirement of the algorithm does not hold or, in a Program
    built with finite=True, a number is NaN or infinite, an error is raised (for a batch
    with `.rows`). With status=True nothing is raised: the outputs of such rows are NaN,
    and the status is not 0 (engines/status.py); `failure` returns its error.

    For type checkers a Program is generic in what a call returns: np.ndarray where
    there is one output, else Results. They know it of the solvers that come with the
    library; annotate Programs of others, or where fields should be known by name, as
    Program[a NamedTuple of arrays].

    Attributes:
        signature, model: What is solved, for which robot.
        inputs, outputs: Ports with their sizes.
        engine: Name of the engine.
        threads: Most threads a batch may use; None for DYN_THREADS or all cores.
        wait: Whether a first call waits for the compiler. If not, and its kernel is a
            large one of float64, a slower form with the same bits answers until it is
            ready.
        dtype: Of its arrays: float64, or float32 of machine code.
    """

    engine = ""
    __doc__ = InstanceDoc(__doc__)  # type: ignore[assignment]
    __signature__ = CallSignature()

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls.__doc__ = InstanceDoc(cls.__dict__.get("__doc__"))  # type: ignore[assignment]

    def __init__(
        self,
        recipe: Recipe,
        signature: Signature,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        defaults: Mapping[str, np.ndarray],
        finite: bool,
        threads: int | None = None,
        wait: bool = False,
        dtype: str = "float64",
    ) -> None:
        self.threads, self.wait, self.dtype = threads, wait, np.dtype(dtype)
        self.recipe, self.signature, self.model = recipe, signature, recipe.model
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.defaults, self.finite = dict(defaults), finite
        self._names = tuple(port.name for port in outputs)
        self._noted: list[RowError] = []

    def prepare(self, batch: bool = False) -> None:
        """Compile or load now, and wait for it; with batch also the form for rows."""

    @cached_property
    def on_one_thread(self) -> Program[Result]:
        """The same Program with threads=1, built at the first use; often itself."""
        if self.engine != "native" or self.threads == 1:
            return self
        return _build_again(self.recipe, threads=1)

    def run_row(self, numbers: Sequence[Any]) -> tuple[Any, int]:
        """Return flat outputs and status of one state's flat inputs."""
        raise NotImplementedError

    def run_rows(self, columns: Sequence[Any], rows: int) -> tuple[Any, Any]:
        """Return flat output columns and status of a block of rows."""
        raise NotImplementedError

    def dense(self, name: str, values: Any) -> np.ndarray:
        """Return matrices (..., nv, nv) from an output built packed or sparse."""
        port = {port.name: port for port in self.outputs}[name]
        return dense(self.model, port.kind, port.places, values)

    def require_positions(self, numbers: Sequence[Any]) -> None:
        """Require of one state's flat inputs that positions are such.

        Traced algorithms do so themselves (solving/adapter.py).
        """
        start = 0
        for port in self.inputs:
            if port.kind == "position":
                self.model.require_position(numbers[start : start + port.size])
            start += port.size

    def requirements(self) -> Sequence[Requirement]:
        """Return the requirements of the algorithm, as far as they are known ahead."""
        return ()

    def failure(self, number: int, rows: Sequence[int] | None = None) -> RowError:
        """Return the error of a status that is not 0.

        Args:
            number: The status. Errors that Python notes, as on the engine plain, have
                numbers that hold until the next call.
            rows: Rows of a batch that have it; None for a single state.
        """
        number = int(number)
        if number in NOT_FINITE:
            return NonFiniteError(NOT_FINITE[number]).of_rows(rows)
        known = self.requirements()
        if 1 <= number <= len(known):
            requirement = known[number - 1]
            return requirement.error(requirement.item, rows)
        if 0 < number - len(known) <= len(self._noted):
            return self._noted[number - len(known) - 1].of_rows(rows)
        valid = ", ".join(map(str, (*NOT_FINITE, f"1 to {len(known)}")))
        raise ShapeError("status", f"that of a row that failed ({valid})", f"{number}")

    def note(self, error: RowError) -> tuple[list[float], int]:
        """Return NaN for a row that failed in Python, and the status of the error."""
        self._noted.append(error)
        size = sum(port.size for port in self.outputs)
        return [float("nan")] * size, len(self.requirements()) + len(self._noted)

    @overload
    def __call__(
        self,
        *args: ArrayLike,
        out: None = None,
        status: Literal[False] = False,
        **named: ArrayLike,
    ) -> Result: ...

    @overload
    def __call__(
        self,
        *args: ArrayLike,
        out: Out,
        status: Literal[False] = False,
        **named: ArrayLike,
    ) -> Out: ...

    @overload
    def __call__(
        self,
        *args: ArrayLike,
        out: None = None,
        status: Literal[True],
        **named: ArrayLike,
    ) -> tuple[Result, Status]: ...

    @overload
    def __call__(
        self, *args: ArrayLike, out: Out, status: Literal[True], **named: ArrayLike
    ) -> tuple[Out, Status]: ...

    def __call__(
        self, *args: Any, out: Any = None, status: bool = False, **named: Any
    ) -> Any:
        """Evaluate; see the class."""
        arrays = [
            as_array(port, value, self.dtype)
            for port, value in zip(self.inputs, self._bind(args, named), strict=True)
        ]
        if any(array.dtype.kind == "c" for array in arrays):
            return self._complex(arrays, out)
        if self.finite and not status:
            check_finite(self.model, arrays, self.inputs, "input")
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
                check_finite(self.model, results, self.outputs, "result", state)
        elif self.finite:
            state = self._marked(arrays, results, state)
        if out is None:
            single = [x if x.ndim else float(x) for x in results]
            value = single[0] if len(single) == 1 else make_result(self._names, single)
        else:
            value = out
            for result, target in zip(results, targets or (), strict=True):
                if result is not target:
                    target[...] = result
        return (value, state) if status else value

    def _unexpected(
        self, name: str, names: Sequence[str], values: Mapping[str, Any]
    ) -> tuple[str, str]:
        """Return what would be valid where an argument is not, and what came."""
        wanted = f"one of {', '.join(names)}, each once"
        if name in values:
            return wanted, "a second value"
        if name in {port.name for port in self.signature.inputs}:
            return f"{wanted}, or a Program built with inputs=['{name}']", "no input"
        near = nearest(name, names)
        guess = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
        return wanted + guess, "an unknown name"

    def _bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Put arguments in the order of the inputs."""
        names = [port.name for port in self.inputs]
        if len(args) > len(names):
            wanted = f"{len(names)} inputs ({', '.join(names)})"
            raise ShapeError("arguments", wanted, str(len(args)))
        values = dict(zip(names, args, strict=False))
        for name, value in named.items():
            if name not in names or name in values:
                raise ShapeError(name, *self._unexpected(name, names, values))
            values[name] = value
        for name in names:
            if name not in values:
                if name not in self.defaults:
                    wanted = f"an array, as in program({', '.join(names)})"
                    raise ShapeError(name, wanted, "nothing")
                values[name] = self.defaults[name]
        return [values[name] for name in names]

    def _rows(self, arrays: Sequence[np.ndarray]) -> int | None:
        """Return the batch size, None for a single state."""
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

    def _marked(
        self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray], state: Any
    ) -> Any:
        """Return the status with what is not finite; set results of such rows to NaN.

        Inputs come first, as in exported code: a requirement of NaN says nothing.
        """
        if isinstance(state, np.ndarray):
            none: Any = np.zeros_like(state)
            first = mark_not_finite(self.inputs, arrays, none, NOT_FINITE_INPUT)
            state = np.where(first, first, state)
        else:
            state = mark_not_finite(self.inputs, arrays, 0, NOT_FINITE_INPUT) or state
        state = mark_not_finite(self.outputs, results, state, NOT_FINITE_RESULT)
        fill_failed(results, state)
        return state

    def _single(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        self._noted = []
        numbers = [x for array in arrays for x in array.ravel().tolist()]
        flat, state = self.run_row(numbers)
        values = np.array(flat, float)
        if state:
            values[:] = np.nan
        return self._split(values), state

    def _batch(
        self, arrays: Sequence[np.ndarray], rows: int, targets: Any
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return outputs and status of the rows; outputs may be the targets."""
        flat = [
            array.reshape(
                (len(array), port.size)
                if array.ndim > len(port.shape)
                else (port.size,)
            )
            for port, array in zip(self.inputs, arrays, strict=True)
        ]
        self._noted = []
        values = np.empty((rows, sum(port.size for port in self.outputs)))
        state = np.zeros(rows, int)
        for start in range(0, rows, ROWS_AT_A_TIME):
            stop = min(start + ROWS_AT_A_TIME, rows)
            columns: list[Any] = []
            for x in flat:
                part = x if x.ndim == 1 else np.ascontiguousarray(x[start:stop].T)
                columns += part.tolist() if x.ndim == 1 else list(part)
            results, failed = self.run_rows(columns, stop - start)
            for k, column in enumerate(results):
                values[start:stop, k] = column
            state[start:stop] = failed
        values[state != 0] = np.nan
        return self._split(values), state

    def _split(self, values: np.ndarray) -> list[np.ndarray]:
        """Cut flat values (size,) or (rows, size) into the outputs."""
        results, start = [], 0
        dtype = complex if values.dtype.kind == "c" else self.dtype
        for port in self.outputs:
            part = values[..., start : start + port.size]
            start += port.size
            shaped = part.reshape((*values.shape[:-1], *port.shape))
            results.append(
                np.ascontiguousarray(shaped, dtype) if shaped.ndim else shaped
            )
        return results

    def _raise(self, state: Any, rows: int | None) -> None:
        """Raise what the status names, for the first requirement that failed."""
        if rows is None:
            if state:
                raise self.failure(state)
            return
        failed = np.flatnonzero(state)
        if len(failed):
            raise self.failure(int(state[failed[0]]), failed.tolist())

    def _targets(self, out: Any, rows: int | None) -> list[np.ndarray] | None:
        """Return the arrays of `out`, checked."""
        if out is None:
            return None
        targets = [out] if len(self.outputs) == 1 else list(out)
        if len(targets) != len(self.outputs):
            wanted = f"{len(self.outputs)} arrays"
            raise ShapeError("out", wanted, str(len(targets)))
        lead = () if rows is None else (rows,)
        for port, target in zip(self.outputs, targets, strict=True):
            check_out(port, (*lead, *port.shape), target, self.dtype)
        return targets

    def _complex(self, arrays: Sequence[np.ndarray], out: Any) -> Any:
        """Evaluate complex inputs (complex-step checks) on the plain engine."""
        raise UnsupportedError(f"engine {self.engine} takes no complex numbers")

    def __reduce__(self) -> tuple[Any, ...]:
        return _build_again, (self.recipe,)

    def export(self, folder: str, **options: Any) -> Any:
        """Write it as machine code or C source, for programs without Python.

        Args:
            folder: Where; header, test vector and package files go there, too.
            options: target, variant, form, name, multiply_add, checked; see
                dyn_core.export.
        """
        return forwards.export(self, folder, **options)

    def map(self, *args: Any, **options: Any) -> Any:
        """Return the results of a batch of any size, computed chunk by chunk.

        Args:
            args: NumPy arrays, memory maps, zarr or Dask arrays; or a function of the
                row range that makes them.
            options: Inputs by name; out, status, reduce, count, scheduler, ...: see
                dyn_core.batch.map_rows.
        """
        return forwards.map_rows(self, *args, **options)

    def describe(self) -> str:
        """Return the help page: how it was built, inputs, outputs, options, source."""
        return page(self)

    def __repr__(self) -> str:
        return summary(self)


def _build_again(recipe: Recipe, **choices: Any) -> Program[Any]:
    return recipe.solver.build(recipe.model, **{**recipe.choices, **choices})
