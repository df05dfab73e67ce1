"""Programs as functions of JAX: jit, vmap, grad, jvp, scan; needs the extra `jax`.

    from dyn_core.bridges import jax as dyn_jax

    rnea = dyn_jax.function(dyn.solver("rnea").build(model))
    tau = rnea(q, qd, qdd)
    jax.jit(jax.grad(lambda q: rnea(q, qd, qdd).sum()))(q)

XLA calls the machine code of the Program by its foreign function interface
(ffi_code.py). A batch, or `vmap`, is one call of the batch kernel; inputs that all rows
share are not copied. docs/bridges.md explains the derivatives, and which code runs
where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyn_core.bridges import ffi_handler
from dyn_core.bridges.chain_rule import ChainRule
from dyn_core.bridges.coordinates import coordinates
from dyn_core.bridges.derivatives import Derivatives
from dyn_core.bridges.sources import Source
from dyn_core.engines import Program
from dyn_core.engines.results import make_result
from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.problems import Port
from dyn_core.sharing import Lock

try:
    import jax
    import jax.ffi
    import jax.numpy as jnp
    from jax.custom_batching import custom_vmap
    from jax.custom_derivatives import SymbolicZero
except ImportError as error:
    raise UnsupportedError(
        "this bridge needs JAX, which is not installed: pip install 'dyn_ros[jax]'"
    ) from error

_HANDLERS: dict[str, ffi_handler.CallHandler] = {}  # XLA may call them until exit
_REGISTERING = Lock()


def function(program: Program[Any], status: bool = False) -> JaxFunction:
    """Return a Program as a function of JAX arrays.

    Args:
        program: Program of engine native, of a robot. A Program of float64 needs
            `jax_enable_x64`; without it, build with dtype="float32".
        status: Whether calls return (results, status); the status is int32: 0, or a
            number that program.failure(number) explains. Results and derivatives of
            failed rows are NaN either way.

    Raises:
        UnsupportedError: The Program has no machine code or is not of a robot, it is of
            float64 and JAX is set to float32, or JAX's version is not supported.
        CompileError: LLVM failed.
    """
    return JaxFunction(program, status)


def export_checks() -> list[Any]:
    """Return the safety checks that jax.export must disable to serialise our functions.

        jax.export.export(f, disabled_checks=export_checks())(q).serialize()

    They cover the functions that this process has made before. The exported file refers
    to machine code by name and does not contain it. The process that loads it must
    create the same functions first, on the same kind of machine, with this release.
    """
    return [jax.export.DisabledSafetyCheck.custom_call(name) for name in _HANDLERS]


class JaxFunction:
    """A Program as a function of JAX arrays, for jit, vmap and derivatives.

    `function` returns one. Inputs are passed by position or name, as with the Program,
    with a batch axis or shared by all rows; an omitted parameter has the value of the
    model. Quaternions in positions are scaled to unit length; a zero one becomes NaN. A
    row that fails has NaN in its results and derivatives. Taking a derivative that no
    solver computes raises UnsupportedError. `status`: calls return (outputs, status).
    """

    def __init__(self, program: Program[Any], status: bool) -> None:
        _demand_x64(program)
        self.program, self._status = program, status
        self._core = _JaxOperation(program, status)
        self._names = tuple(port.name for port in program.outputs)
        self._coordinates = _coordinates(program)
        self._compiled: dict[tuple[int | None, ...], Callable[..., Any]] = {}
        self.__name__ = program.recipe.solver.name

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the outputs: an array, or a named tuple of several.

        If any input has a batch axis, all outputs have one. With status=True the result
        is a pair of the outputs and the status, int32, () or (rows,). Failed rows are
        NaN.

        Raises:
            ShapeError: An input has another shape, a larger floating-point type, masked
                entries or complex numbers, see _checked; or inputs are missing,
                unknown, given twice or too many.
            TypeError, ValueError: JAX makes no array of an input, or (ValueError)
                inputs have different numbers of rows, such as 1 and 5.
            UnsupportedError: JAX was set to float32 in the meantime.
        """
        _demand_x64(self.program)
        ports, dtype = self.program.inputs, self.program.dtype
        values: Sequence[Any] = args
        if named or len(args) != len(ports):
            values = self.program._bind(args, named)
        arrays = [_checked(*pair, dtype) for pair in zip(ports, values, strict=True)]
        axes = tuple(
            0 if x.ndim > len(port.shape) else None
            for port, x in zip(ports, arrays, strict=True)
        )
        if any(isinstance(x, jax.core.Tracer) for x in arrays):
            *results, state = self._over(axes)(*arrays)
        else:  # without jit, the operations of a call would cost a hundred times more
            if axes not in self._compiled:
                self._compiled[axes] = jax.jit(self._over(axes))
            *results, state = self._compiled[axes](*arrays)
        value = results[0] if len(results) == 1 else make_result(self._names, results)
        return (value, state) if self._status else value

    def _over(self, axes: tuple[int | None, ...]) -> Callable[..., Any]:
        """Return the function of arrays that runs the Program for these batch axes.

        It returns a tuple of all outputs, then the status; all with a batch axis first
        if an input (axis 0) has one, else of one state.
        """
        return self._run if set(axes) <= {None} else jax.vmap(self._run, in_axes=axes)

    def _run(self, *arrays: Any) -> Any:
        """Return a tuple of the outputs, then the status, of one state.

        Quaternions are scaled to unit length first.
        """
        ports = self.program.inputs
        unit = [
            self._coordinates.normalized(jnp, x) if port.kind == "position" else x
            for port, x in zip(ports, arrays, strict=True)
        ]
        return self._core(*unit)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.program, self._status)

    def __repr__(self) -> str:
        return f"<function of JAX: {self.program!r}>"


class _JaxOperation:
    """A Program as a primitive with a derivative rule; positions must be unit.

    Calls return the status in any case; with `status`, callers of the function get it,
    too, and tangents of failed rows are set to NaN.
    """

    def __init__(self, program: Program[Any], status: bool) -> None:
        self.program, self._status = program, status
        self._target = _registered(program)
        self._derivatives = Derivatives(program)
        self._sources: dict[Source, _JaxOperation] = {}
        self._chain = ChainRule(
            program, self._derivatives, jnp, program.dtype, self._of_source
        )
        self._differentiable = jax.custom_jvp(self._batchable(None))
        self._differentiable.defjvp(self._rule, symbolic_zeros=True)

    def __call__(self, *arrays: Any) -> Any:
        """Return a tuple of the outputs, and last the status (int32), of one state.

        Outputs of a failed state are NaN. Positions must have unit quaternions.
        """
        return self._differentiable(*arrays)

    def _batchable(self, rows: int | None) -> Any:
        """Return a function that calls the machine code, with its rule for vmap.

        It returns a tuple: the outputs, then the status. Under vmap there is one call
        for the rows of all axes.
        """

        @custom_vmap
        def call(*arrays: Any) -> Any:
            return self._foreign(rows, arrays)

        @call.def_vmap
        def rule(size: int, batched: Sequence[bool], *arrays: Any) -> Any:
            flat = [
                self._rows(port, x, size if is_batched else None, size, rows)
                for port, x, is_batched in zip(
                    self.program.inputs, arrays, batched, strict=True
                )
            ]
            results = self._batchable(size * (1 if rows is None else rows))(*flat)
            if rows is not None:
                results = [x.reshape((size, rows, *x.shape[1:])) for x in results]
            return tuple(results), (True,) * len(results)

        return call

    def _rows(
        self, port: Port, x: Any, batched: int | None, size: int, rows: int | None
    ) -> Any:
        """Return an input as (size * rows, *port.shape), rows varying fastest.

        It is unchanged if all rows share it, or if `rows` is None. The axis of vmap
        (not None in `batched`) is in front of the batch axis. A batch of one row is
        repeated; one of any other number than `rows` raises ValueError.
        """
        of_rows = x.ndim - len(port.shape) - (batched is not None)
        if rows is None or (batched is None and not of_rows):
            return x
        if batched is None:
            x = x[None]
        elif not of_rows:
            x = x[:, None]
        whole = jnp.broadcast_to(x, (size, rows, *port.shape))
        return whole.reshape((size * rows, *port.shape))

    def _foreign(self, rows: int | None, arrays: Sequence[Any]) -> Any:
        """Return a tuple of the outputs and the status (int32) from the machine code.

        They are (*port.shape) and (), or with a batch axis (rows, ...) in front. Inputs
        without a batch axis are shared by all rows. Outputs of failed rows are NaN.
        """
        lead = () if rows is None else (rows,)
        results = [
            jax.ShapeDtypeStruct((*lead, *port.shape), self.program.dtype)
            for port in self.program.outputs
        ]
        results.append(jax.ShapeDtypeStruct(lead, np.int32))
        return tuple(jax.ffi.ffi_call(self._target, results)(*arrays))

    def _rule(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Return outputs and their tangents, the sums of slopes times input tangents.

        Both are tuples that end with the status, whose tangent is zero (float0). The
        tangent of an input that does not change is a SymbolicZero.
        """
        values = self._chain.values(primals)
        rates = [None if isinstance(t, SymbolicZero) else t for t in tangents]
        *results, state = self._differentiable(*primals)
        if any(x is not None for x in rates) and not self._status:
            # derivative Programs return these values, too: XLA drops the unused call
            known = self._derivatives.values
            results = [
                known[port.name](values) if port.name in known else x
                for port, x in zip(self.program.outputs, results, strict=True)
            ]
        outward = self._chain.rates(values, primals, results, rates)
        if self._status:
            good = jnp.where(state == 0, 1.0, jnp.nan).astype(self.program.dtype)
            outward = [x * good for x in outward]
        still = np.zeros(np.shape(state), jax.dtypes.float0)
        return (*results, state), (*outward, still)

    def _of_source(self, source: Source, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs of a derivative Program by name, differentiable in turn.

        The status is left out. The Program's operation is created at first use.
        """
        operation = self._sources.get(source)
        if operation is None:
            operation = _JaxOperation(source.program, self._status)
            self._sources[source] = operation
        ports = source.program
        results = operation(*(arrays[port.name] for port in ports.inputs))
        return {p.name: x for p, x in zip(ports.outputs, results, strict=False)}


def _coordinates(program: Program[Any]) -> Any:
    """Return the PositionRates of a Program's robot, cached."""
    if program.signature.system != "robot":
        raise UnsupportedError(
            f"{program.recipe.solver.name} is for a {program.signature.system};"
            " valid: Programs of a robot"
        )
    return coordinates(program.model)


def _demand_x64(program: Program[Any]) -> None:
    """Refuse a Program of float64 where JAX computes in float32."""
    if program.dtype == np.float64 and not jax.config.jax_enable_x64:
        raise UnsupportedError(
            f"{program.recipe.solver.name} is built for float64, and JAX is set to"
            " float32; valid: jax.config.update('jax_enable_x64', True) at the start,"
            " or build(model, dtype='float32')"
        )


def _registered(program: Program[Any]) -> str:
    """Return the name of the Program's XLA target, which is registered on first use."""
    minor = ffi_handler.require_version(jax.ffi.include_dir())
    name = ffi_handler.target_name(program)
    with _REGISTERING:
        if name not in _HANDLERS:
            handler = _HANDLERS[name] = ffi_handler.CallHandler(program, minor)
            capsule = jax.ffi.pycapsule(handler.pointer)
            jax.ffi.register_ffi_target(name, capsule, platform="cpu")
    return name


def _checked(port: Port, value: Any, dtype: np.dtype) -> Any:
    """Return an argument as an array of a Port's shape, with or without a batch axis.

    With this dtype and shape, a JAX array is returned itself, and a NumPy array as a
    NumPy copy, since the caller may change it while XLA still computes. Any other value
    goes through jnp.asarray. With jax_enable_x64, it makes float64 of lists of floats;
    without, it rounds NumPy's float64 to float32. So float64 is refused for float32
    only with jax_enable_x64. Smaller floating-point types are converted; a single
    Python float is never too large.
    """
    if isinstance(value, np.ndarray):
        if np.ma.is_masked(value):
            wanted = "an array without masked entries"
            raise ShapeError(port.name, wanted, "masked ones")
        value = np.array(value)  # the caller may change it while XLA still computes
    if isinstance(value, jax.Array | np.ndarray) and value.dtype == dtype:
        if value.shape == port.shape or value.shape[1:] == port.shape:
            return value
    array = jnp.asarray(value)
    weak = getattr(array, "weak_type", False)
    real = jnp.issubdtype(array.dtype, jnp.floating)
    number = real or jnp.issubdtype(array.dtype, jnp.integer) or array.dtype == bool
    if not number:
        raise ShapeError(port.name, "real numbers", f"dtype {array.dtype}")
    if real and array.dtype.itemsize > dtype.itemsize and not weak:
        wanted = f"{dtype}, that of the Program, or smaller"
        raise ShapeError(port.name, wanted, f"{array.dtype}")
    dims = len(port.shape)
    lead = array.ndim - dims
    if lead not in (0, 1) or array.shape[lead:] != port.shape:
        batch = ", ".join(["batch", *map(str, port.shape)])
        wanted = f"shape {port.shape} or ({batch})"
        raise ShapeError(port.name, wanted, f"shape {array.shape}")
    return array.astype(dtype)
