"""Programs, the objects that engines build. They check arrays once per call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from dyn_core import forwards
from dyn_core.engines.arrays import as_array, check_finite, check_out
from dyn_core.engines.graph.graph import Requirement
from dyn_core.engines.program_description import (
    CallSignature,
    SolverDescription,
    page,
    summary,
)
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
    NearAttributes,
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

ROWS_AT_A_TIME = 512  # rows of a block of a batch, on engines in Python
Function = Callable[[Sequence[Any]], Sequence[Any]]  # flat inputs to flat outputs
Result = TypeVar("Result", covariant=True)
Out = TypeVar("Out")


@dataclass(frozen=True)
class Recipe:
    """Solver, model and `choices` (options, slots), to build a Program elsewhere."""

    solver: SolverDescription
    model: Model
    choices: Mapping[str, Any] = field(default_factory=dict)


class Program(NearAttributes, Generic[Result]):
    """A solver built for a robot: call it with arrays.

        tau = program(q, qd, qdd)                one state: (nv,)
        tau = program(Q, Qd, Qdd)                a batch: (batch, nv)
        program(q, qd, qdd, out=tau)             into an array of exactly that shape
        tau, status = program(Q, Qd, Qdd, status=True)

    Inputs are passed by position or name. An input without the batch axis is shared by
    all rows; a parameter input that is left out has the value of the Model. Several
    outputs are a named tuple; for them `out` is a tuple or list of arrays. An output
    that is one number is a float for one state, an array (batch,) for a batch.

    An error is raised (for a batch with `.rows`) where a requirement of the algorithm
    does not hold or, in a Program built with finite=True, where a number is NaN or
    infinite. With status=True no such error is raised: the outputs of these rows are
    NaN, and the status is not 0 (engines/status.py); `failure` returns the error of a
    status. Arrays of wrong shape or type raise ShapeError.

    For type checkers a Program is generic in the result of a call: np.ndarray for one
    output, else Results. They know it for the solvers of this library; annotate
    Programs of others, or results whose fields should be known by name, as Program[X],
    where X is a NamedTuple of arrays.

    Attributes:
        signature, model: Kind of problem and System.
        inputs, outputs: Ports with their sizes.
        engine: Name of the engine.
        threads: Maximum number of threads of a batch; None: DYN_THREADS or all cores.
        wait: Whether a first call waits for the compiler. If not, and the kernel is a
            large one of float64, a slower form with the same bits answers until it is
            ready.
        dtype: Data type of its arrays: float64, or float32 (machine code only).
        defaults: Value of each parameter input that may be left out.
        finite: Whether non-finite numbers are errors.
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
        """Compile or load the machine code now, and wait for it.

        Engines without machine code, such as this class, do nothing. Others raise
        TraceError or CompileError if the algorithm cannot be traced or compiled.

        Args:
            batch: Whether the code for batches is prepared in addition to the code for
                one state.
        """

    @property
    def on_one_thread(self) -> Program[Result]:
        """This Program with threads=1: the same object, or one built at the first use.

        It is the same object on other engines than native, and if it has threads=1
        already.
        """
        if self.engine != "native" or self.threads == 1:
            return self  # not cached: it would keep itself alive
        return self._one_thread

    @cached_property
    def _one_thread(self) -> Program[Result]:
        return _build_again(self.recipe, threads=1)

    def run_row(self, numbers: Sequence[Any]) -> tuple[Any, int]:
        """Return (flat outputs, status) for the flat inputs of one state.

        Engines implement this method and `run_rows`; this class raises
        NotImplementedError.

        Args:
            numbers: Entries of all inputs in the order of the Ports, arrays row by row.
                Outputs have the same layout.
        """
        raise NotImplementedError

    def run_rows(self, columns: Sequence[Any], rows: int) -> tuple[Any, Any]:
        """Return (output columns, status of each row) for a block of rows.

        An output column, like the status, is an array (rows,), or one number that is
        valid for all rows. Engines implement this method; this class raises
        NotImplementedError.

        Args:
            columns: For each flat input an array (rows,), or a float shared by all
                rows.
            rows: Number of rows.
        """
        raise NotImplementedError

    def dense(self, name: str, values: Any) -> np.ndarray:
        """Return full matrices (..., nv, nv) from an output built packed or sparse.

        Entries of any other output are returned unchanged, as float64.

        Args:
            name: Name of an output; others raise KeyError.
            values: Value of that output, (..., size).
        """
        port = {port.name: port for port in self.outputs}[name]
        return dense(self.model, port.kind, port.places, values)

    def require_positions(self, numbers: Sequence[Any]) -> None:
        """Raise a RequireError if a position in the inputs of one state is invalid.

        For robots it is a QuaternionError: the length of a quaternion differs from 1 by
        more than 0.001. Traced algorithms contain these checks themselves
        (solving/adapter.py).

        Args:
            numbers: Flat inputs of the state, in the order of the Ports.
        """
        start = 0
        for port in self.inputs:
            if port.kind == "position":
                self.model.require_position(numbers[start : start + port.size])
            start += port.size

    def requirements(self) -> Sequence[Requirement]:
        """Return the requirements of the algorithm; status k stands for entry k - 1.

        Empty where they are not known before a call, as in this class and on engine
        plain.
        """
        return ()

    def failure(self, number: int, rows: Sequence[int] | None = None) -> RowError:
        """Return the error for a status that is not 0; for -1 and -2 a NonFiniteError.

        Args:
            number: Status of a state or row from a call of this Program. Numbers of
                errors raised in Python, as on the engine plain, are valid until the
                next call.
            rows: Rows of a batch with this status, for the error; None for a single
                state.

        Raises:
            ShapeError: No error has this number, such as 0.
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
        """Store the error of a row that failed in Python, for `failure`.

        The next call of the Program removes it.

        Returns:
            (flat outputs, all NaN; status of the error).
        """
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
        """Return the outputs for one state or a batch; see the class.

        Args:
            args, named: Inputs by position and by name.
            out: Array for the output, or a sequence of arrays for several outputs:
                filled, and returned in place of new arrays. Its content is undefined
                after a RowError.
            status: Whether to return (outputs, status) instead of raising for failed
                rows; the status is an int, or an array (rows,) of a batch.

        Raises:
            ShapeError: An input is missing, unknown, given twice, or of wrong shape or
                type; batches have different numbers of rows; or `out` has the wrong
                number, shape, dtype or writability.
            TypeError: There are several outputs, and `out` is not iterable.
            RowError: A row has no result, or finite=True and a number is not finite;
                never with status=True. Complex inputs must always be finite.
            UnsupportedError: Inputs are complex, and they are a batch, `out` is given,
                an operation has no complex form (such as the call of a NumpySolver in a
                slot), or the engine does not support them.
            TraceError, CompileError: At the first call, if the algorithm cannot be
                traced or compiled.
            SettingError: DYN_THREADS or DYN_CACHE_LIMIT is read and is invalid.
        """
        arrays = [
            as_array(port, value, self.dtype, self.model)
            for port, value in zip(self.inputs, self._bind(args, named), strict=True)
        ]
        if any(array.dtype.kind == "c" for array in arrays):
            return self._complex(arrays, out, status)
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
        """Return (wanted, got) of a ShapeError about an unknown or second keyword."""
        wanted = f"one of {', '.join(names)}, each once"
        if name in values:
            return wanted, "a second value"
        if name in {port.name for port in self.signature.inputs}:
            return f"{wanted}, or a Program built with inputs=['{name}']", "no input"
        near = nearest(name, names)
        guess = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
        return wanted + guess, "an unknown name"

    def _bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Return the values of all inputs in the order of the Ports, not converted."""
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
        """Return the number of rows of the batch; None for a single state."""
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
        """Return the status, with -1 or -2 for numbers that are not finite.

        A non-finite input sets -1, also in place of a failed requirement, as in
        exported code: a requirement that fails on NaN is not informative. A non-finite
        result sets -2 where the status is 0. Then all results of rows with a status are
        set to NaN, in place.
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
        """Return the outputs, each of port.shape, and the status of one state, an int.

        Outputs are NaN if the state failed. Errors stored by `note` are removed before.
        """
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
        """Return the outputs, (rows, *port.shape), and the status of each row, (rows,).

        Outputs are NaN in rows that failed. Errors stored by `note` are removed before.
        A returned output may be its target itself; this class returns new arrays.
        """
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
        """Return the outputs from flat values (size,) or (rows, size), by Port.

        Complex values stay complex, others get the dtype of the Program; only a single
        number, of shape (), keeps the dtype of `values`.
        """
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
        """Raise the error of the first row whose status is not 0; else do nothing.

        The `rows` of the error are all failed rows, whatever their status.
        """
        if rows is None:
            if state:
                raise self.failure(state)
            return
        failed = np.flatnonzero(state)
        if len(failed):
            raise self.failure(int(state[failed[0]]), failed.tolist())

    def _targets(self, out: Any, rows: int | None) -> list[np.ndarray] | None:
        """Return `out` as a list of checked arrays, one for each output, or None."""
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

    def _complex(self, arrays: Sequence[np.ndarray], out: Any, status: bool) -> Any:
        """Return the complex outputs of one state; if `status`, (outputs, status).

        Batches and `out` are refused. An input that is not finite is an error, also
        without finite=True. With `status` no RowError is raised: outputs are NaN, and
        the status of an input that is not finite is -1.
        """
        if out is not None or self._rows(arrays) is not None:
            raise UnsupportedError("complex numbers: one state at a time, without out")
        self._noted = []
        numbers = [complex(x) for array in arrays for x in array.ravel()]
        finite, state = bool(np.isfinite(numbers).all()), 0
        if not (finite or status):
            raise NonFiniteError("a complex input is not finite")
        try:
            flat = self.run_complex(numbers) if finite else []
        except RowError as error:
            if not status:
                raise
            flat, state = self.note(error)
        if not finite:
            flat = [np.nan] * sum(port.size for port in self.outputs)
            state = NOT_FINITE_INPUT
        results = self._split(np.array(flat, complex))
        value = results[0] if len(results) == 1 else make_result(self._names, results)
        return (value, state) if status else value

    def run_complex(self, numbers: Sequence[complex]) -> Sequence[Any]:
        """Return the flat outputs of one state for flat complex inputs.

        They serve complex-step derivatives. Engines may implement this method.

        Args:
            numbers: Flat inputs in the order of the Ports.

        Raises:
            UnsupportedError: Always, in this class.
        """
        raise UnsupportedError(f"engine {self.engine} takes no complex numbers")

    def __reduce__(self) -> tuple[Any, ...]:
        return _build_again, (self.recipe,)

    def export(self, folder: str, **options: Any) -> Any:
        """Write the Program as machine code or C source, for programs without Python.

        Args:
            folder: Target folder, also of the header, test vector and package files.
            options: target, variant, form, name, multiply_add, checked; see
                dyn_core.export.export.

        Returns:
            The result of dyn_core.export.export.

        Raises:
            UnsupportedError: An option is invalid, or the Program is not of engine
                native.
            SettingError: The folder has other files of these names, or cannot be
                written.
            CompileError: There is no compiler, or it fails.
        """
        return forwards.export(self, folder, **options)

    def map(self, *args: Any, **options: Any) -> Any:
        """Return the results of a batch of any size, computed chunk by chunk.

        Args:
            args: NumPy arrays, memory maps, zarr or Dask arrays; or a function that
                returns arrays for a row range, called as function(first, last), with
                last excluded.
            options: Inputs by name; out, status, reduce, count, scheduler, ...: see
                dyn_core.batch.map_rows.

        Returns:
            Outputs as of a call; with `reduce` the reduced value; with status=True a
            pair with the failed rows. The errors are those of dyn_core.batch.map_rows.
        """
        return forwards.map_rows(self, *args, **options)

    def describe(self) -> str:
        """Return the help page: build options, inputs, outputs, options, source."""
        return page(self)

    def __repr__(self) -> str:
        return summary(self)


def _build_again(recipe: Recipe, **choices: Any) -> Program[Any]:
    """Return a Program of a Recipe; `choices` replace or complete those of it."""
    return recipe.solver.build(recipe.model, **{**recipe.choices, **choices})
