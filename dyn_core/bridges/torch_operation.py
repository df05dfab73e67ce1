"""A Program as an operation of PyTorch: of plain tensors, autograd, vmap, the compiler.

TorchOperation.__call__ chooses between these. If only autograd records a call, values
and first derivatives are computed with NumPy arrays on the memory of the tensors: an
operation of PyTorch costs more than a kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from dyn_core.bridges.chain_rule import ChainRule
from dyn_core.bridges.derivatives import Derivatives
from dyn_core.bridges.sources import Source
from dyn_core.engines import Program
from dyn_core.problems import Port

DTYPES = {"float64": torch.float64, "float32": torch.float32}
_NUMBERS = itertools.count()
try:  # not public: without them no call is plain
    _transforms = torch._C._are_functorch_transforms_active
    _modes = torch._C._len_torch_dispatch_stack
    _KNOWN = forward_ad._current_level == -1
except AttributeError:  # pragma: no cover
    _KNOWN = False


def is_plain() -> bool:
    """Return whether nothing but autograd's backward may record a call.

    There is then no compiler, torch.func transform, dual number or dispatch mode. False
    in every case if this release of PyTorch lacks the internal functions that tell it.
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

    Args:
        program: Program of a robot.
        status: Whether calls return the status behind the results, with NaN in failed
            rows; else such rows raise an error.
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
        """Return the outputs, followed by the status if it was requested.

        The compiler and dispatch modes see the custom operation as one node with its
        own backward; the transforms of torch.func need an autograd.Function with rules
        of its own, which is slower in each call.
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
        """Return the outputs of tensors without recording derivatives."""
        return self.of_arrays([x.numpy(force=True) for x in tensors])

    def of_arrays(self, arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
        """Return the outputs as tensors on the memory of the Program's arrays.

        They are followed by the status if it was requested; else a failed row raises
        RowError.
        """
        if not self._status:
            values = self.program(*arrays)
            if type(values) is np.ndarray:
                return (torch.from_numpy(values),)
            return self._tensors(values)
        values, state = self.program(*arrays, status=True)
        return (*self._tensors(values), torch.as_tensor(state, dtype=torch.int64))

    def _tensors(self, values: Any) -> tuple[Any, ...]:
        """Return the return value of the Program as a tuple of tensors."""
        parts = (values,) if len(self.program.outputs) == 1 else values
        return tuple(
            torch.from_numpy(x)
            if isinstance(x, np.ndarray)
            else torch.tensor(x, dtype=self._dtype)
            for x in parts
        )

    def _with_status(self, *tensors: Any) -> tuple[Any, ...]:
        """Return outputs and status; the status is 0 if it was not requested."""
        results = self.run(tensors)
        if self._status:
            return results
        return (*results, torch.zeros(self._lead(tensors), dtype=torch.int64))

    def _lead(self, tensors: Sequence[Any]) -> tuple[int, ...]:
        """Return the batch axis of a call: () or (number of rows,)."""
        for port, x in zip(self.program.inputs, tensors, strict=True):
            if x.dim() > len(port.shape):
                return (x.shape[0],)
        return ()

    def _shapes(self, *tensors: Any) -> Any:
        """Return uninitialised results of the right shapes, for the compiler."""
        lead = self._lead(tensors)
        results = [
            torch.empty((*lead, *port.shape), dtype=self._dtype)
            for port in self.program.outputs
        ]
        return (*results, torch.empty(lead, dtype=torch.int64))

    def _vmap(self, info: Any, in_dims: Sequence[Any], *tensors: Any) -> Any:
        """Return outputs and their vmap axes of the custom operation, see _rows_of."""
        return self._rows_of(self._call, info, in_dims, tensors)

    def _rows_of(
        self, call: Any, info: Any, in_dims: Sequence[Any], tensors: Sequence[Any]
    ) -> Any:
        """Call with one merged axis of rows for the axes of a vmap and of a batch.

        Returns the outputs and their vmap axes, all 0.

        Args:
            call: Operation to be called.
            info: Information of PyTorch's vmap rule; has batch_size.
            in_dims: Axis of the vmap in each input, or None.
            tensors: Inputs.
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
        """Save inputs and results of a call in its context, for the derivatives."""
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
        """Return the rate of each output, and None for the status.

        Args:
            ctx: Saved tensors of the call.
            rates: Rate of each input; None for an input that does not change.
        """
        inputs, results, state = self._saved(ctx)
        values = self._chain.values(inputs)
        outward = self._chain.rates(values, inputs, results, rates)
        return (*self._failed_to_nan(outward, state), None)

    def _failed_to_nan(self, tensors: Sequence[Any], state: Any) -> Sequence[Any]:
        """Return tensors with NaN in rows whose status is not 0.

        None entries stay None; without a status nothing changes.
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

        It is the sum over outputs of cotangents times slopes.
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
        """Return the outputs of a derivative Program by name, differentiable."""
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
        """Return the outputs of a derivative Program by name, as NumPy arrays."""
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
    """Return the NumPy arrays of three lists of tensors; None if a tensor is not plain.

    Entries that are None stay None.
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
    """Return an input with one axis of size * rows, or unchanged if all rows share it.

    Args:
        port: Port of the input.
        x: Input, with the axis of vmap in front.
        axis: Axis of the vmap in the original input; None if it has none.
        size: Size of the axis of vmap.
        rows: Number of rows of the batch within vmap; None for one state.
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
    """Return the autograd.Function of plain calls, see is_plain."""

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
    """Return the autograd.Function of calls within transforms of torch.func."""

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
