"""Programs as functions of PyTorch: autograd, vmap, compile; needs the extra `torch`.

    from dyn_core.bridges import torch as dyn_torch

    rnea = dyn_torch.function(dyn.solver("rnea").build(model))
    tau = rnea(q, qd, qdd)
    tau.sum().backward()

Each Program becomes a custom operation on CPU tensors, which share their memory with
the arrays of the Program, in and out. docs/bridges.md says what derivatives are by.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.bridges.coordinates import coordinates
from dyn_core.bridges.derivatives import Derivatives, Source, Values
from dyn_core.engines import Program
from dyn_core.engines.results import make_result
from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.problems import Port

try:
    import torch
except ImportError as error:
    raise UnsupportedError(
        "this bridge needs PyTorch, which is not installed:"
        " pip install 'dyn_ros[torch]'"
    ) from error

_NUMBERS = itertools.count()
_DTYPES = {"float64": torch.float64, "float32": torch.float32}


def function(program: Program[Any], status: bool = False) -> TorchFunction:
    """Return a Program as a function of CPU tensors.

    Args:
        program: Of any engine.
        status: Whether calls return (results, status): 0, or the number of the
            requirement that failed, int64, with NaN in the results of such rows.
            Without it a failed requirement raises its error.
    """
    return TorchFunction(program, status)


class TorchFunction:
    """A Program that PyTorch can differentiate, batch and compile around.

    Inputs go by position or name, as with the Program; with a batch axis, or shared by
    all rows; a parameter that is left out has the value of the model.

    Attributes:
        program: The Program.
    """

    def __init__(self, program: Program[Any], status: bool = False) -> None:
        if program.signature.system != "robot":
            raise UnsupportedError(
                f"{program.recipe.solver.name} is for a {program.signature.system};"
                " valid: Programs of a robot"
            )
        self.program, self._status = program, status
        self._operation = _TorchOperation(program, status)
        self._ports = program.inputs
        self._dtype = _DTYPES[program.dtype.name]
        self._names = tuple(port.name for port in program.outputs)
        self._coordinates = coordinates(program.model)
        self._defaults = {
            name: torch.tensor(value, dtype=self._dtype)
            for name, value in program.defaults.items()
        }

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Evaluate; see the class."""
        tensors = [self._tensor(*pair) for pair in self._bound(args, named)]
        *results, state = self._operation(*tensors)
        value = results[0] if len(results) == 1 else make_result(self._names, results)
        return (value, state) if self._status else value

    def _bound(self, args: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """Return each port with its argument."""
        names = [port.name for port in self._ports]
        values = {**self._defaults, **dict(zip(names, args, strict=False)), **named}
        twice = set(names[: len(args)]) & set(named)
        if len(args) > len(names) or twice or set(values) != set(names):
            self.program._bind(args, named)  # says what is wrong
        return [(port, values[port.name]) for port in self._ports]

    def _tensor(self, port: Port, value: Any) -> Any:
        """Return an argument as a CPU tensor of the Program's dtype, checked."""
        if not isinstance(value, torch.Tensor):
            value = torch.as_tensor(value, dtype=self._dtype)
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
        value = value.to(self._dtype)
        if port.kind == "position":
            value = self._coordinates.normalized(torch, value)
        return value

    def __repr__(self) -> str:
        return f"<function of PyTorch: {self.program!r}>"


class _TorchOperation:
    """A Program as a custom operation with derivatives; positions are unit."""

    def __init__(self, program: Program[Any], status: bool = False) -> None:
        self.program, self._status = program, status
        self._derivatives = Derivatives(program)
        self._sources: dict[Source, _TorchOperation] = {}
        self._coordinates = coordinates(program.model)
        self._dtype = _DTYPES[program.dtype.name]
        solver = program.recipe.solver.name
        inputs = ", ".join(f"Tensor x{k}" for k in range(len(program.inputs)))
        outputs = ", ".join(["Tensor"] * (len(program.outputs) + 1))
        self._call = torch.library.custom_op(
            f"dyn_core::{solver}_{next(_NUMBERS)}",
            self.run,
            mutates_args=(),
            device_types="cpu",
            schema=f"({inputs}) -> ({outputs})",
        )
        self._call.register_fake(self._shapes)
        self._call.register_autograd(self.backward, setup_context=_keep)
        self._call.register_vmap(self._vmap)
        self._differentiable = _differentiable(self)

    def __call__(self, *tensors: Any) -> Any:
        """Return the outputs and the status.

        The compiler takes the custom operation as one node with its own backward; the
        transforms of torch.func ask for an autograd.Function.
        """
        if torch.compiler.is_compiling():
            return self._call(*tensors)
        return self._differentiable.apply(*tensors)

    def run(self, *tensors: Any) -> Any:
        """Return outputs and status, whose memory is that of NumPy arrays."""
        arrays = [x.detach().numpy() for x in tensors]
        state: Any = 0
        if self._status:
            values, state = self.program(*arrays, status=True)
        else:
            values = self.program(*arrays)
        parts = (values,) if len(self.program.outputs) == 1 else values
        results = [
            torch.from_numpy(x)
            if isinstance(x, np.ndarray)
            else torch.tensor(x, dtype=self._dtype)
            for x in parts
        ]
        if not self._status:
            return (*results, torch.zeros(self._lead(tensors), dtype=torch.int64))
        return (*results, torch.as_tensor(state, dtype=torch.int64))

    def _lead(self, tensors: Sequence[Any]) -> tuple[int, ...]:
        """Return the batch axis of a call, as a tuple of no or one size."""
        for port, x in zip(self.program.inputs, tensors, strict=True):
            if x.dim() > len(port.shape):
                return (x.shape[0],)
        return ()

    def _shapes(self, *tensors: Any) -> Any:
        lead = self._lead(tensors)
        results = [
            torch.empty((*lead, *port.shape), dtype=self._dtype)
            for port in self.program.outputs
        ]
        return (*results, torch.empty(lead, dtype=torch.int64))

    def _vmap(self, info: Any, in_dims: Sequence[Any], *tensors: Any) -> Any:
        return self.rows_of(self._call, info, in_dims, tensors)

    def rows_of(
        self, call: Any, info: Any, in_dims: Sequence[Any], tensors: Sequence[Any]
    ) -> Any:
        """Call with one axis of rows for the axes of a vmap and of a batch."""
        size, rows = info.batch_size, None
        moved = []
        for port, x, axis in zip(self.program.inputs, tensors, in_dims, strict=True):
            x = x if axis is None else x.movedim(axis, 0)
            if x.dim() > len(port.shape) + (axis is not None):
                rows = x.shape[axis is not None]
            moved.append(x)
        flat = [
            self._rows(*values, size, rows)
            for values in zip(self.program.inputs, moved, in_dims, strict=True)
        ]
        results = call(*flat)
        if rows is not None:
            results = [x.reshape((size, rows, *x.shape[1:])) for x in results]
        return tuple(results), (0,) * len(results)

    def _rows(self, port: Port, x: Any, axis: Any, size: int, rows: Any) -> Any:
        """Return an input with one axis of rows, or without where all share it."""
        of_rows = x.dim() > len(port.shape) + (axis is not None)
        if rows is None or (axis is None and not of_rows):
            return x
        if axis is None:
            x = x[None]
        elif not of_rows:
            x = x[:, None]
        return x.expand(size, rows, *port.shape).reshape(size * rows, *port.shape)

    def _values(self, saved: Sequence[Any]) -> tuple[Any, Any, Values]:
        """Return inputs and outputs of a call, and the Values there."""
        ports = self.program.inputs
        inputs, results = saved[: len(ports)], saved[len(ports) :]
        named = {port.name: x for port, x in zip(ports, inputs, strict=True)}
        zeros = lambda shape: torch.zeros(shape, dtype=self._dtype)  # noqa: E731
        return inputs, results, Values(self._of_source, named, zeros)

    def forward_mode(self, saved: Sequence[Any], rates: Sequence[Any]) -> Any:
        """Return the rate of each output from those of the inputs, None where still."""
        inputs, results, values = self._values(saved)
        moved = [
            (port, self._coordinates.velocity(torch, x, r))
            if port.kind == "position"
            else (port, r)
            for port, x, r in zip(self.program.inputs, inputs, rates, strict=True)
            if r is not None
        ]
        outward = []
        for output, y in zip(self.program.outputs, results, strict=True):
            total = self._rate(output, y, moved, values)
            if output.kind == "position":
                total = self._coordinates.rate(torch, y, total)
            outward.append(total)
        return (*outward, None)

    def _rate(self, output: Port, y: Any, moved: Any, values: Values) -> Any:
        shape = _tangent(self.program, output)
        lead = y.shape[: y.dim() - len(output.shape)]
        total = torch.zeros((*lead, *shape), dtype=self._dtype)
        for port, rate in moved:
            slope = self._derivatives.slope(output.name, port.name)
            if slope is not None:
                part = self._matrix(slope(values), output, port)
                size = part.shape[-1]
                axes = rate.dim() - len(_tangent(self.program, port))
                column = rate.reshape((*rate.shape[:axes], size, 1))
                change = (part @ column)[..., 0]
                total = total + change.reshape((*change.shape[:-1], *shape))
        return total

    def _matrix(self, slope: Any, output: Port, port: Port) -> Any:
        """Return a slope as a matrix (..., size of output, size of input)."""
        rows, columns = (_tangent(self.program, x) for x in (output, port))
        lead = slope.dim() - len(rows) - len(columns)
        sizes = int(np.prod(rows)), int(np.prod(columns))
        return slope.reshape((*slope.shape[:lead], *sizes))

    def backward(self, ctx: Any, *cotangents: Any) -> Any:
        """Return the sum over outputs of cotangents times slopes, by each input."""
        ports = self.program.inputs
        inputs, results, values = self._values(ctx.saved_tensors)
        inner = [
            c if c is None or port.kind != "position" else self._adjoint_rate(y, c)
            for port, y, c in zip(
                self.program.outputs, results, cotangents[:-1], strict=True
            )
        ]
        wanted = ctx.needs_input_grad
        return tuple(
            self._gradient(port, x, inner, values) if needed else None
            for port, x, needed in zip(ports, inputs, wanted, strict=True)
        )

    def _gradient(self, port: Port, x: Any, cotangents: Any, values: Values) -> Any:
        total = None
        for output, c in zip(self.program.outputs, cotangents, strict=True):
            slope = self._derivatives.slope(output.name, port.name)
            if slope is None or c is None:
                continue
            matrix = self._matrix(slope(values), output, port)
            axes = c.dim() - len(_tangent(self.program, output))
            row = c.reshape((*c.shape[:axes], 1, matrix.shape[-2]))
            part = (row @ matrix)[..., 0, :]
            total = part if total is None else total + part
        if total is None:
            return torch.zeros_like(x)
        lead = total.shape[:-1]
        if port.kind == "position":
            total = self._adjoint_velocity(x, total)
        total = total.reshape((*lead, *port.shape))
        return total.sum(0) if total.dim() > x.dim() else total

    def _adjoint_rate(self, q: Any, cotangent: Any) -> Any:
        return self._coordinates.adjoint_rate(torch, q, cotangent)

    def _adjoint_velocity(self, q: Any, cotangent: Any) -> Any:
        return self._coordinates.adjoint_velocity(torch, q, cotangent)

    def _of_source(self, source: Source, tensors: dict[str, Any]) -> dict[str, Any]:
        operation = self._sources.get(source)
        if operation is None:
            operation = _TorchOperation(source.program, self._status)
            self._sources[source] = operation
        ports = source.program
        results = operation(*(tensors[port.name] for port in ports.inputs))
        return {p.name: x for p, x in zip(ports.outputs, results, strict=False)}


def _differentiable(operation: _TorchOperation) -> Any:
    """Return the autograd.Function of an operation."""

    class Differentiable(torch.autograd.Function):
        @staticmethod
        def forward(*tensors: Any) -> Any:
            return operation.run(*tensors)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            _keep(ctx, inputs, output)
            ctx.save_for_forward(*inputs, *output[:-1])

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            return operation.backward(ctx, *cotangents)

        @staticmethod
        def jvp(ctx: Any, *rates: Any) -> Any:
            return operation.forward_mode(ctx.saved_tensors, rates)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *tensors: Any) -> Any:
            return operation.rows_of(Differentiable.apply, info, in_dims, tensors)

    return Differentiable


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    """Keep what the derivatives are taken of."""
    ctx.save_for_backward(*inputs, *output[:-1])
    ctx.mark_non_differentiable(output[-1])


def _tangent(program: Program[Any], port: Port) -> tuple[int, ...]:
    """Return the shape of a tangent of a port."""
    return (program.model.nv,) if port.kind == "position" else port.shape
