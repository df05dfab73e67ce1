"""Chain rule for a Program, from the slopes of derivatives.py, with any array library.

    rate of an output     = sum over inputs of slope times rate of the input
    gradient by an input  = sum over outputs of cotangent times slope

Arrays are of NumPy, PyTorch or JAX, for one state or with a leading batch axis.
Positions are vectors of nq numbers here (coordinates.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from dyn_core.bridges.coordinates import coordinates
from dyn_core.bridges.derivatives import Derivatives
from dyn_core.bridges.sources import Arrays, Source, Values
from dyn_core.engines import Program
from dyn_core.problems import Port


class ChainRule:
    """The derivatives of one Program with arrays of one library.

    Inputs, results, rates, cotangents and wanted have one entry per input or output of
    the Program, in order. `xp` is numpy, torch or jax.numpy, `dtype` a type of it;
    `call` is a function of a Source and inputs by name that returns outputs by name.
    """

    def __init__(
        self,
        program: Program[Any],
        derivatives: Derivatives,
        xp: Any,
        dtype: Any,
        call: Callable[[Source, dict[str, Any]], Arrays],
    ) -> None:
        self._inputs, self._outputs = program.inputs, program.outputs
        self._coordinates = coordinates(program.model)
        nv = program.model.nv
        self._tangent = {  # shape of the tangents of each port
            port.name: (nv,) if port.kind == "position" else port.shape
            for port in (*program.inputs, *program.outputs)
        }
        self._derivatives, self._xp, self._dtype = derivatives, xp, dtype
        self._call = call

    def values(self, inputs: Sequence[Any]) -> Values:
        """Return the lazy results of the derivative Programs at some inputs.

        An input is (*port.shape) or (batch, *port.shape); quaternions have length 1.
        """
        named = {p.name: x for p, x in zip(self._inputs, inputs, strict=True)}
        return Values(self._call, named, self._zeros)

    def rates(
        self,
        values: Values,
        inputs: Sequence[Any],
        results: Sequence[Any],
        rates: Sequence[Any],
    ) -> list[Any]:
        """Return the rate of each output (forward mode), in the shape of the output.

        `values` are at the same inputs; a rate None is zero. UnsupportedError: an input
        that changes has no derivative.
        """
        xp, convert = self._xp, self._coordinates
        moved = [
            (port, convert.velocity(xp, x, r) if port.kind == "position" else r)
            for port, x, r in zip(self._inputs, inputs, rates, strict=True)
            if r is not None
        ]
        outward = []
        for port, y in zip(self._outputs, results, strict=True):
            rate = self._rate(port, y, moved, values)
            if port.kind == "position":
                rate = convert.rate(xp, y, rate)
            outward.append(rate)
        return outward

    def _rate(
        self, output: Port, y: Any, moved: Sequence[tuple[Port, Any]], values: Values
    ) -> Any:
        """Return the rate of one output; of a position in tangent coordinates (nv).

        It is zero if no input changes, and for outputs in derivatives.CONSTANT. `moved`
        has port and rate of each input that changes; of positions in tangent
        coordinates.
        """
        shape = self._tangent[output.name]
        total = self._zeros((*y.shape[: y.ndim - len(output.shape)], *shape))
        for port, rate in moved:
            slope = self._derivatives.slope(output.name, port.name)
            if slope is None:
                continue
            matrix = self._matrix(slope(values), output, port)
            axes = rate.ndim - len(self._tangent[port.name])
            column = rate.reshape((*rate.shape[:axes], matrix.shape[-1], 1))
            change = (matrix @ column)[..., 0]
            total = total + change.reshape((*change.shape[:-1], *shape))
        return total

    def gradients(
        self,
        values: Values,
        inputs: Sequence[Any],
        results: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool],
    ) -> list[Any]:
        """Return the gradient by each wanted input (reverse mode); None for the others.

        `values` are at the same inputs. Gradients have the shape of the input, and are
        the sum over the batch if it has no batch axis; cotangents have that of the
        output (nq numbers for a position), None is zero.
        """
        inner = [
            self._coordinates.adjoint_rate(self._xp, y, c)
            if c is not None and port.kind == "position"
            else c
            for port, y, c in zip(self._outputs, results, cotangents, strict=True)
        ]
        return [
            self._gradient(port, x, inner, values) if needed else None
            for port, x, needed in zip(self._inputs, inputs, wanted, strict=True)
        ]

    def _gradient(
        self, port: Port, x: Any, cotangents: Sequence[Any], values: Values
    ) -> Any:
        """Return the gradient by one input, in the shape of its value (nq, a position).

        It is zero if no output depends on the input, and summed over the batch axis if
        x has none. Cotangents are in the shapes of outputs, of positions in tangent
        coordinates (..., nv); None is zero.
        """
        total = None
        for output, c in zip(self._outputs, cotangents, strict=True):
            slope = self._derivatives.slope(output.name, port.name)
            if slope is None or c is None:
                continue
            matrix = self._matrix(slope(values), output, port)
            axes = c.ndim - len(self._tangent[output.name])
            row = c.reshape((*c.shape[:axes], 1, matrix.shape[-2]))
            part = (row @ matrix)[..., 0, :]
            total = part if total is None else total + part
        if total is None:
            return self._xp.zeros_like(x)
        lead = total.shape[:-1]
        if port.kind == "position":
            total = self._coordinates.adjoint_velocity(self._xp, x, total)
        total = total.reshape((*lead, *port.shape))
        return total.sum(0) if total.ndim > x.ndim else total

    def _matrix(self, slope: Any, output: Port, port: Port) -> Any:
        """Return a slope (..., *output, *input) as matrices (..., output, input).

        Positions have nv tangents.
        """
        rows, columns = self._tangent[output.name], self._tangent[port.name]
        lead = slope.ndim - len(rows) - len(columns)
        sizes = prod(rows), prod(columns)
        return slope.reshape((*slope.shape[:lead], *sizes))

    def _zeros(self, shape: tuple[int, ...]) -> Any:
        return self._xp.zeros(shape, dtype=self._dtype)
