"""Programs as functions of PyTorch: autograd, vmap, compile; needs the extra `torch`.

    from dyn_core.bridges import torch as dyn_torch

    rnea = dyn_torch.function(dyn.solver("rnea").build(model))
    tau = rnea(q, qd, qdd)
    tau.sum().backward()

Each Program becomes a custom operation on CPU tensors, which share their memory with
the Program's input and output arrays. docs/bridges.md explains the derivatives.

TorchOperation.__call__ chooses between plain tensors, autograd, vmap and the compiler.
If only autograd records a call, values and first derivatives are computed with NumPy
arrays on the memory of the tensors: an operation of PyTorch costs more than a kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.bridges.chain_rule import ChainRule
from dyn_core.bridges.coordinates import coordinates
from dyn_core.bridges.derivatives import Derivatives
from dyn_core.bridges.sources import Source
from dyn_core.engines import Program
from dyn_core.engines.arrays import as_array
from dyn_core.engines.results import make_result
from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.problems import Port

try:
    import torch
    from torch import Tensor
    from torch.autograd import forward_ad
except ImportError as error:
    raise UnsupportedError(
        "this bridge needs PyTorch, which is not installed:"
        " pip install 'dyn_ros[torch]'"
    ) from error

DTYPES = {"float64": torch.float64, "float32": torch.float32}
_NUMBERS = itertools.count()
try:  # not public: without them no call is plain
    _transforms = torch._C._are_functorch_transforms_active
    _modes = torch._C._len_torch_dispatch_stack
    _KNOWN = forward_ad._current_level == -1
except AttributeError:  # pragma: no cover
    _KNOWN = False


def is_plain() -> bool:
    """Return whether nothing but autograd's backward pass may record a call.

    False with a compiler, torch.func transform, dual number or dispatch mode, and if
    this release of PyTorch does not tell.
    """
    return (
        not torch.compiler.is_compiling()
        and _KNOWN
        and not _transforms()
        and forward_ad._current_level < 0
        and not _modes()
    )


class TorchOperation:
    """A Program as a custom operation with derivatives; positions must be unit.

    With `status` calls return the status behind the results, with NaN in failed rows;
    else such rows raise a RowError.
    """

    def __init__(self, program: Program[Any], status: bool) -> None:
        self.program, self._status = program, status
        self._dtype = DTYPES[program.dtype.name]
        derivatives = Derivatives(program)
        self._sources: dict[Source, TorchOperation] = {}
        self._chain = ChainRule(
            program, derivatives, torch, self._dtype, self._of_source
        )
        self._on_arrays = ChainRule(
            program, derivatives, np, program.dtype, self._arrays_of_source
        )
        solver = program.recipe.solver.name
        inputs = ", ".join(f"Tensor x{k}" for k in range(len(program.inputs)))
        outputs = ", ".join(["Tensor"] * (len(program.outputs) + 1))
        self._call = torch.library.custom_op(
            f"dyn_core::{solver}_{next(_NUMBERS)}",
            self._with_status,
            mutates_args=(),
            device_types="cpu",
            schema=f"({inputs}) -> ({outputs})",
        )
        self._call.register_fake(self._shapes)
        self._call.register_autograd(self._backward, setup_context=self._keep)
        self._call.register_vmap(self._vmap)
        self._recorded, self._transformed = _recorded(self), _transformed(self)

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        """Return the outputs as a tuple, followed by the status if it was requested.

        The compiler and dispatch modes see the custom operation as one node with its
        own backward; the transforms of torch.func need an autograd.Function with rules
        of its own, which is slower in each call.

        Args:
            tensors: Inputs in order: CPU tensors of the Program's dtype, (*port.shape)
                or (rows, *port.shape); positions with unit quaternions.

        Returns:
            Outputs, (rows, *port.shape) if any input has rows, else (*port.shape); then
            the status, int64, (rows,) or ().

        Raises:
            ShapeError: Shapes or numbers of rows do not fit.
            RuntimeError: Within a vmap, batches have different numbers of rows.
            RowError: A row fails, and the status was not requested.
        """
        if is_plain():
            if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
                return self._recorded.apply(*tensors)
            return self.run(tensors)
        opaque = torch.compiler.is_compiling() or (_KNOWN and _modes())
        call = self._call if opaque else self._transformed.apply
        results = call(*tensors)
        return results if self._status else results[:-1]

    def run(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Return outputs, then the requested status (int64); record no derivatives."""
        return self.of_arrays([x.numpy(force=True) for x in tensors])

    def of_arrays(self, arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
        """Run the Program on input arrays; return its outputs as a tuple of tensors.

        They share the memory of the Program's output arrays; single numbers are copied.
        The status (int64) is last if it was requested.
        """
        if not self._status:
            values = self.program(*arrays)
            if type(values) is np.ndarray:
                return (torch.from_numpy(values),)
            return self._tensors(values)
        values, state = self.program(*arrays, status=True)
        return (*self._tensors(values), torch.as_tensor(state, dtype=torch.int64))

    def _tensors(self, values: Any) -> tuple[Any, ...]:
        """Return the outputs of a call, without the status, as a tuple of tensors.

        Tensors share the memory of arrays; single numbers are copied.
        """
        parts = (values,) if len(self.program.outputs) == 1 else values
        return tuple(
            torch.from_numpy(x)
            if isinstance(x, np.ndarray)
            else torch.tensor(x, dtype=self._dtype)
            for x in parts
        )

    def _with_status(self, *tensors: Any) -> tuple[Any, ...]:
        """Return outputs and status (int64) of a call; status 0 if it is not requested.

        The status is (rows,), or () without a batch axis.
        """
        results = self.run(tensors)
        if self._status:
            return results
        return (*results, torch.zeros(self._lead(tensors), dtype=torch.int64))

    def _lead(self, tensors: Sequence[Any]) -> tuple[int, ...]:
        """Return the batch axis of a call with these inputs: () or (rows,)."""
        for port, x in zip(self.program.inputs, tensors, strict=True):
            if x.dim() > len(port.shape):
                return (x.shape[0],)
        return ()

    def _shapes(self, *tensors: Any) -> Any:
        """Return uninitialised outputs and status (int64), of which shapes are read."""
        lead = self._lead(tensors)
        results = [
            torch.empty((*lead, *port.shape), dtype=self._dtype)
            for port in self.program.outputs
        ]
        return (*results, torch.empty(lead, dtype=torch.int64))

    def _vmap(self, info: Any, in_dims: Sequence[Any], *tensors: Any) -> Any:
        """Return outputs and status within vmap, and their vmap axes, all 0."""
        return self._rows_of(self._call, info, in_dims, tensors)

    def _rows_of(
        self, call: Any, info: Any, in_dims: Sequence[Any], tensors: Sequence[Any]
    ) -> Any:
        """Call with one merged axis of rows for the axes of a vmap and of a batch.

        The outputs have the axis of the vmap first, then the axis of the batch if there
        is one; a tuple of their vmap axes, all 0, is second. A batch must have one row
        or as many as that of the last input with a batch, else RuntimeError.
        """
        size, rows = info.batch_size, None
        moved = []
        for port, x, axis in zip(self.program.inputs, tensors, in_dims, strict=True):
            x = x if axis is None else x.movedim(axis, 0)
            if x.dim() > len(port.shape) + (axis is not None):
                rows = x.shape[axis is not None]
            moved.append(x)
        flat = [
            _rows(*values, size, rows)
            for values in zip(self.program.inputs, moved, in_dims, strict=True)
        ]
        results = call(*flat)
        if rows is not None:
            results = [x.reshape((size, rows, *x.shape[1:])) for x in results]
        return tuple(results), (0,) * len(results)

    def _keep(self, ctx: Any, inputs: Any, output: Any) -> None:
        """Save inputs and results of a call in its context, for the derivatives.

        The status, if there is one, is marked as not differentiable.
        """
        ctx.save_for_backward(*inputs, *output)
        for state in output[len(self.program.outputs) :]:
            ctx.mark_non_differentiable(state)

    def _saved(self, ctx: Any) -> tuple[Sequence[Any], Sequence[Any], Any]:
        """Return inputs, results and status (None if not requested) of a call."""
        saved, count = ctx.saved_tensors, len(self.program.inputs)
        end = count + len(self.program.outputs)
        state = saved[end] if self._status else None
        return saved[:count], saved[count:end], state

    def _forward(self, ctx: Any, rates: Sequence[Any]) -> Any:
        """Return a tuple: the rate of each output, then None, also without a status.

        Rates of failed rows are NaN if the status was requested. The rate of an input
        that does not change is None.
        """
        inputs, results, state = self._saved(ctx)
        values = self._chain.values(inputs)
        outward = self._chain.rates(values, inputs, results, rates)
        return (*self._failed_to_nan(outward, state), None)

    def _failed_to_nan(self, tensors: Sequence[Any], state: Any) -> Sequence[Any]:
        """Return tensors, one for each output, with NaN in rows whose status is not 0.

        Entries that are None stay None; without a status (None) nothing changes.
        """
        if state is None:
            return tensors
        good = torch.where(state == 0, 1.0, torch.nan).to(self._dtype)
        return [
            None if x is None else x * good.reshape(good.shape + (1,) * len(port.shape))
            for port, x in zip(self.program.outputs, tensors, strict=True)
        ]

    def _backward(self, ctx: Any, *cotangents: Any) -> Any:
        """Return the gradient by each input, None if it needs none.

        It is the sum over outputs of cotangents times slopes; a failed row makes it NaN
        if the status was requested. The cotangent of the status, the last, is ignored;
        None is zero.
        """
        inputs, results, state = self._saved(ctx)
        cotangents = tuple(self._failed_to_nan(cotangents[: len(results)], state))
        wanted = ctx.needs_input_grad
        plain = None
        if not torch.is_grad_enabled():
            plain = _arrays(inputs, results, cotangents)
        if plain is None:
            values = self._chain.values(inputs)
            return tuple(
                self._chain.gradients(values, inputs, results, cotangents, wanted)
            )
        values = self._on_arrays.values(plain[0])
        gradients = self._on_arrays.gradients(values, *plain, wanted)
        return tuple(
            None if x is None else torch.from_numpy(np.asarray(x)) for x in gradients
        )

    def _of_source(self, source: Source, tensors: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs of a derivative Program by name, differentiable in turn.

        The status is left out. The Program's operation is created at first use.
        """
        operation = self._sources.get(source)
        if operation is None:
            operation = TorchOperation(source.program, self._status)
            self._sources[source] = operation
        ports = source.program
        results = operation(*(tensors[port.name] for port in ports.inputs))
        return {p.name: x for p, x in zip(ports.outputs, results, strict=False)}

    def _arrays_of_source(
        self, source: Source, arrays: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the outputs of a derivative Program by name, as NumPy arrays.

        A failed row has NaN if the status was requested, else it raises RowError.
        """
        program = source.program
        inputs = [arrays[port.name] for port in program.inputs]
        if self._status:
            values, _ = program(*inputs, status=True)
        else:
            values = program(*inputs)
        ports = program.outputs
        parts = (values,) if len(ports) == 1 else values
        return {p.name: np.asarray(x) for p, x in zip(ports, parts, strict=True)}


def _arrays(
    inputs: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]
) -> tuple[list[Any], list[Any], list[Any]] | None:
    """Return the NumPy arrays of three lists of tensors as three lists, or None.

    They share the tensors' memory where possible. None if the call is not plain
    (is_plain), or a tensor has no NumPy array. Entries that are None stay None.
    """

    def read(tensors: Sequence[Any]) -> list[Any]:
        return [None if x is None else x.numpy(force=True) for x in tensors]

    if not is_plain():
        return None
    try:
        return read(inputs), read(results), read(cotangents)
    except RuntimeError:  # cotangents with a hidden axis of PyTorch
        return None


def _rows(port: Port, x: Any, axis: Any, size: int, rows: Any) -> Any:
    """Return an input as (size * rows, *port.shape), rows varying fastest.

    It is unchanged if all rows share it, or if `rows` is None. The axis of vmap, in
    front of the batch axis, is there unless `axis` is None. A batch of one row is
    repeated; one of any other number than `rows` raises RuntimeError.
    """
    of_rows = x.dim() > len(port.shape) + (axis is not None)
    if rows is None or (axis is None and not of_rows):
        return x
    if axis is None:
        x = x[None]
    elif not of_rows:
        x = x[:, None]
    return x.expand(size, rows, *port.shape).reshape(size * rows, *port.shape)


def _recorded(operation: TorchOperation) -> Any:
    """Return the autograd.Function of plain calls (is_plain).

    It returns the outputs, then the status if it was requested.
    """

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            results = operation.run(tensors)
            operation._keep(ctx, tensors, results)
            return results

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            return operation._backward(ctx, *cotangents)

    return Recorded


def _transformed(operation: TorchOperation) -> Any:
    """Return the autograd.Function of calls within transforms of torch.func.

    It returns the outputs and the status, as _with_status does.
    """

    class Transformed(torch.autograd.Function):
        @staticmethod
        def forward(*tensors: Any) -> Any:
            return operation._with_status(*tensors)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            operation._keep(ctx, inputs, output)
            ctx.save_for_forward(*inputs, *output)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            return operation._backward(ctx, *cotangents)

        @staticmethod
        def jvp(ctx: Any, *rates: Any) -> Any:
            return operation._forward(ctx, rates)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *tensors: Any) -> Any:
            return operation._rows_of(Transformed.apply, info, in_dims, tensors)

    return Transformed


def function(program: Program[Any], status: bool = False) -> TorchFunction:
    """Return a Program as a function of CPU tensors.

    Args:
        program: Program of any engine, of a robot.
        status: Whether calls return (results, status); the status is int64: 0, or a
            number that program.failure(number) explains, with NaN in results and
            derivatives of such rows. Without it a failed row raises its error.

    Raises:
        UnsupportedError: The Program is not of a robot.
    """
    return TorchFunction(program, status)


class TorchFunction:
    """A Program as a function of CPU tensors, for autograd, vmap and torch.compile.

    `function` returns one. Inputs are passed by position or name, as with the Program,
    with a batch axis or shared by all rows; an omitted parameter has the value of the
    model. Quaternions in positions are scaled to unit length; a zero one becomes NaN.
    Inputs of another dtype are converted to the dtype of the Program, but a tensor of a
    larger floating-point type raises a ShapeError. Taking a derivative that no solver
    computes raises UnsupportedError. With `status` calls return (outputs, status), with
    NaN in failed rows; else a row that fails raises a RowError.
    """

    def __init__(self, program: Program[Any], status: bool) -> None:
        if program.signature.system != "robot":
            raise UnsupportedError(
                f"{program.recipe.solver.name} is for a {program.signature.system};"
                " valid: Programs of a robot"
            )
        self.program, self._status = program, status
        self._operation = TorchOperation(program, status)
        self._ports = program.inputs
        self._dtype = DTYPES[program.dtype.name]
        self._names = tuple(port.name for port in program.outputs)
        self._coordinates = coordinates(program.model)
        # Without quaternions arrays need no conversion; else -1, which no call matches.
        self._count = len(self._ports) if self._coordinates.plain else -1
        self._single = len(self._names) == 1 and not status
        self._defaults = {
            name: torch.tensor(value, dtype=self._dtype)
            for name, value in program.defaults.items()
        }

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the outputs: a tensor, or a named tuple of several.

        With status=True a pair of the outputs and the status, int64, () or (rows,).

        Raises:
            ShapeError: An input has another shape, masked entries or no real numbers; a
                tensor has a larger floating-point type than the Program, or is not on
                the CPU; or inputs are missing, unknown, given twice or too many, or
                have different numbers of rows (within a vmap a RuntimeError).
            RowError: A row fails, and the function returns no status.
        """
        arrays = None if named else self._arrays(args)
        if arrays is not None:
            results = self._operation.of_arrays(arrays)
        else:
            values = self._bound(args, named)
            pairs = zip(self._ports, values, strict=True)
            results = self._operation(*[self._tensor(*pair) for pair in pairs])
        if self._single:
            return results[0]
        values = results[:-1] if self._status else results
        value = values[0] if len(values) == 1 else make_result(self._names, values)
        return (value, results[-1]) if self._status else value

    def _arrays(self, args: Sequence[Any]) -> list[np.ndarray] | None:
        """Return the NumPy arrays of plain tensors, without any conversion, or None.

        They share the tensors' memory. None if the robot has quaternions, the call is
        not plain (is_plain), another number of inputs is given, or one is no plain CPU
        tensor of the Program's dtype or has requires_grad, even under no_grad. The
        Program checks shapes.
        """
        if len(args) != self._count or not is_plain():
            return None
        dtype, arrays = self._dtype, []
        for x in args:
            if type(x) is not Tensor or x.dtype is not dtype or x.requires_grad:
                return None
            try:
                arrays.append(x.numpy())
            except (RuntimeError, TypeError):  # not on the CPU, or a lazy negation
                return None
        return arrays

    def _bound(self, args: Sequence[Any], named: dict[str, Any]) -> Sequence[Any]:
        """Return the arguments in the order of the inputs, with defaults."""
        if len(args) == len(self._ports) and not named:
            return args
        names = [port.name for port in self._ports]
        values = {**self._defaults, **dict(zip(names, args, strict=False)), **named}
        twice = set(names[: len(args)]) & set(named)
        if len(args) > len(names) or twice or set(values) != set(names):
            self.program._bind(args, named)  # raises the error
        return [values[name] for name in names]

    def _tensor(self, port: Port, value: Any) -> Any:
        """Return an argument as a CPU tensor of the Program's dtype.

        Quaternions of a position are scaled to unit length.
        """
        fits = type(value) is Tensor and value.dtype is self._dtype and value.is_cpu
        if not fits or port.shape not in (value.shape, value.shape[1:]):
            value = self._converted(port, value)
        if port.kind == "position":
            value = self._coordinates.normalized(torch, value)
        return value

    def _converted(self, port: Port, value: Any) -> Any:
        """Return an argument as a CPU tensor of the Program's dtype.

        A tensor that has this dtype already is returned itself; a larger floating-point
        type is refused.
        """
        if not isinstance(value, Tensor):
            value = self._from_array(port, value)
        if value.device.type != "cpu":
            wanted = "a tensor on the CPU (x.cpu())"
            raise ShapeError(port.name, wanted, f"one on {value.device}")
        if value.is_complex():
            raise ShapeError(port.name, "real numbers", f"dtype {value.dtype}")
        if value.is_floating_point() and value.itemsize > self._dtype.itemsize:
            wanted = f"{self._dtype}, that of the Program, or smaller"
            raise ShapeError(port.name, wanted, f"{value.dtype}")
        lead = value.dim() - len(port.shape)
        if lead not in (0, 1) or tuple(value.shape[lead:]) != port.shape:
            batch = ", ".join(["batch", *map(str, port.shape)])
            wanted = f"shape {port.shape} or ({batch})"
            raise ShapeError(port.name, wanted, f"shape {tuple(value.shape)}")
        return value.to(self._dtype)

    def _from_array(self, port: Port, value: Any) -> Any:
        """Return an argument other than a tensor as a tensor of the Program's dtype.

        It is a copy, as autograd may save it, except within the compiler. Complex
        numbers stay complex.
        """
        if torch.compiler.is_compiling():  # the compiler cannot trace the checks
            return torch.as_tensor(value, dtype=self._dtype)
        return torch.from_numpy(np.array(as_array(port, value, self.program.dtype)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.program, self._status)

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchFunction:
        return self  # immutable; a copy would register its operations again

    def __repr__(self) -> str:
        return f"<function of PyTorch: {self.program!r}>"
