"""Programs as functions of PyTorch: autograd, vmap, compile; needs the extra `torch`.

    from dyn_core.bridges import torch as dyn_torch

    rnea = dyn_torch.function(dyn.solver("rnea").build(model))
    tau = rnea(q, qd, qdd)
    tau.sum().backward()

Each Program becomes a custom operation on CPU tensors, which share their memory with
the Program's input and output arrays. docs/bridges.md explains the derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.bridges.coordinates import coordinates
from dyn_core.engines import Program
from dyn_core.engines.arrays import as_array
from dyn_core.engines.results import make_result
from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.problems import Port

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise UnsupportedError(
        "this bridge needs PyTorch, which is not installed:"
        " pip install 'dyn_ros[torch]'"
    ) from error

from dyn_core.bridges.torch_operation import (
    DTYPES,
    TorchOperation,
    is_plain,
)


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

    `function` returns one. Inputs are passed by position or name, as with the
    Program, with a batch axis or shared by all rows; an omitted parameter has the
    value of the model. Inputs of a smaller dtype are converted to the dtype of the
    Program; a larger floating-point type raises a ShapeError.

    Args:
        program: Program of a robot.
        status: Whether calls return (outputs, status), with NaN in failed rows;
            otherwise a row that fails raises a RowError.

    Attributes:
        program: The Program.

    Raises:
        UnsupportedError: The Program is not of a robot.
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

        With status=True a pair of the outputs and the status.

        Raises:
            ShapeError: An input has another shape, a larger dtype, no real numbers, or
                is not on the CPU; or names are missing or unknown.
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
        """Return the NumPy arrays of plain tensors, without any conversion; else None.

        None if an input needs a conversion or a derivative. The Program checks shapes.
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
        """Return the arguments in the order of the inputs, with defaults.

        Raises ShapeError if names are missing, unknown or given twice.
        """
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

        Quaternions of a position are scaled to unit length. Raises ShapeError if the
        argument does not fit the Port.
        """
        fits = type(value) is Tensor and value.dtype is self._dtype and value.is_cpu
        if not fits or port.shape not in (value.shape, value.shape[1:]):
            value = self._converted(port, value)
        if port.kind == "position":
            value = self._coordinates.normalized(torch, value)
        return value

    def _converted(self, port: Port, value: Any) -> Any:
        """Return an argument as a CPU tensor of the Program's dtype.

        Raises:
            ShapeError: It is on another device, has no real numbers, a larger
                floating-point type than the Program, or another shape.
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
        """Return an argument other than a tensor as a tensor of its own memory.

        Autograd may save the tensor. Raises ShapeError if it does not fit the Port.
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
