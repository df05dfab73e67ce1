"""Solvers that compute one state at a time with NumPy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.engines import Program
from dyn_core.engines.base import Recipe
from dyn_core.engines.row_program import RowProgram
from dyn_core.errors import PluginError, ShapeError, UnsupportedError
from dyn_core.model import Model
from dyn_core.model.passive_forces import resistance
from dyn_core.problems import REST
from dyn_core.solving.adapter import flat_numbers, named_errors
from dyn_core.solving.build_options import option_values
from dyn_core.solving.solver import BuildOptions, Solver
from dyn_core.spatial import Vector
from dyn_core.validation import float_array


class ArraySolver(Solver):
    """A Solver that computes one state at a time from arrays, without being traced.

    A leaf writes `outputs`, or derives from NumpySolver and writes `solve`. Joint
    friction and springs are added around it where the Signature says at which velocity;
    elsewhere the model that it gets has those that were asked for, and no others.
    RequireErrors that it raises become the status of the row.

    Attributes:
        options: Options with their defaults.
    """

    options: Mapping[str, Any] = {}

    def sizes(self, model: Model, options: Mapping[str, Any]) -> Mapping[str, int]:
        """Return named sizes of Ports that depend on options."""
        return {}

    @abstractmethod
    def outputs(self, model: Model, *inputs: Any, **options: Any) -> Any:
        """Return the outputs of one state, float arrays in independent coordinates.

        Args:
            model: Robot, or another System.
            inputs: Arrays shaped like the Ports; optional ones are None unless asked
                for.
            options: Each of `options`.
        """

    def read_options(
        self, model: Any, options: Mapping[str, Any]
    ) -> tuple[BuildOptions, dict[str, Any]]:
        """Return the options of every build, and a value of each of its own.

        Args:
            model: Robot, or another System; None where it is not known yet.
            options: Those that are given.

        Raises:
            UnsupportedError: An option is unknown, or does not take the value.
        """
        common, chosen = BuildOptions.parse(self, dict(options), tuple(self.options))
        self._refuse_what_needs_tracing(common)
        return common, option_values(self, model, chosen)

    def build(self, model: Any, **options: Any) -> Program[Any]:
        """Return a Program; parameter inputs are refused."""
        self.demand_kind(model)
        common, chosen = self.read_options(model, options)
        reason = self.refusal(model) or self.lack(model, chosen)
        if reason is not None:
            raise UnsupportedError(f"{self.name}: {reason}")
        around = self.signature.friction_at is not None
        robot = model.resisting(
            common.joint_friction and not around, common.joint_springs and not around
        )
        sizes = self.sizes(model, chosen)
        inputs, outputs, _ = common.ports(model, self.signature, sizes)
        return _ArrayProgram(
            Recipe(self, model, dict(options)),
            self.signature,
            inputs,
            outputs,
            {},
            common.finite,
            ((common.joint_friction, common.joint_springs), chosen, robot),
        )

    def _refuse_what_needs_tracing(self, common: BuildOptions) -> None:
        """Refuse options that only a TracedSolver can follow."""
        common.refuse_native(self.name, "in a NumpySolver")
        optional = {port.name for port in self.signature.inputs if port.optional}
        refused = sorted({*common.inputs} - optional)
        if common.matrices != "dense":
            refused.append(f"matrices={common.matrices!r}")
        if common.f_ext_frame != "body":
            refused.append("f_ext_frame")
        if refused:
            raise UnsupportedError(
                f"{self.name} is a NumpySolver and cannot take {', '.join(refused)}"
            )


class NumpySolver(ArraySolver):
    """A Solver that computes one state at a time with NumPy, or calls a library.

    A leaf writes `solve(model, *inputs, **options)`: arrays shaped like the Ports
    (optional ones are None unless asked for) come in, an array or a tuple goes out.

    Attributes:
        options: Options of `solve` with their defaults.
    """

    @abstractmethod
    def solve(self, model: Model, *inputs: Any, **options: Any) -> Any:
        """Return the outputs of one state, float arrays in independent coordinates."""

    def outputs(self, model: Model, *inputs: Any, **options: Any) -> Any:
        """Return what `solve` returns."""
        return self.solve(model, *inputs, **options)


class _ArrayProgram(RowProgram):
    """The Program of an ArraySolver."""

    engine = "array"

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts[:-1])
        self.acts, self.options, self.robot = parts[-1]

    def solve_row(self, numbers: Sequence[Any]) -> Sequence[Any]:
        """Solve one state."""
        values, start = {}, 0
        for port in self.inputs:
            part = np.array(numbers[start : start + port.size], float)
            values[port.name] = part.reshape(port.shape)
            start += port.size
        solver: Any = self.recipe.solver  # an ArraySolver
        if self.finite:
            self.require_positions(numbers)
        friction = self._friction(values)
        for port in self.inputs:
            if port.kind == "joint_force":
                values[port.name] = values[port.name] - friction
        arrays = [values.get(port.name) for port in self.signature.inputs]
        name = f"{solver.name} ({solver.origin})" if solver.origin else solver.name
        with named_errors(name, solve_failed):
            results = solver.outputs(self.robot, *arrays, **self.options)
        return self._flat(results, friction)

    def _flat(self, results: Any, friction: Any) -> list[Any]:
        """Return the flat outputs of the arrays that `solve` returned, checked."""
        name = self.recipe.solver.name
        results = results if isinstance(results, tuple) else (results,)
        if len(results) != len(self.outputs):
            names = ", ".join(port.name for port in self.outputs)
            wanted = f"{len(self.outputs)} arrays ({names})"
            raise ShapeError(name, wanted, str(len(results)))
        flat: list[Any] = []
        for port, result in zip(self.outputs, results, strict=True):
            output = f"{name}: {port.name}"
            array = float_array(output, result, f"shape {port.shape}")
            if array.shape != port.shape:
                got = f"shape {array.shape}"
                raise ShapeError(output, f"shape {port.shape}", got)
            flat += flat_numbers(
                array + friction if port.kind == "joint_force" else array.ravel()
            )
        return flat

    def _friction(self, values: Mapping[str, np.ndarray]) -> Any:
        velocity = self.signature.friction_at
        if not any(self.acts) or velocity is None:
            return 0.0
        still = np.zeros(self.model.nv)
        parts = values["q"], still if velocity == REST else values[velocity]
        q, qd = (Vector(part.tolist()) for part in parts)
        return np.array(list(resistance(self.model, q, qd, *self.acts)), float)


def solve_failed(message: str, name: str) -> PluginError:
    """Return the error of a solver whose `solve` raised."""
    return PluginError(f"{name}: solve failed: {message}", name)
