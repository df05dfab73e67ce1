"""Solvers that compute one state at a time with NumPy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.engines import Program
from dyn_core.engines.base import Recipe
from dyn_core.engines.row_program import RowProgram
from dyn_core.errors import PluginError, ShapeError, SignatureError, UnsupportedError
from dyn_core.model import Model
from dyn_core.model.passive_forces import resistance
from dyn_core.problems import REST
from dyn_core.solving.adapter import flat_numbers, named_errors
from dyn_core.solving.build_options import option_values
from dyn_core.solving.solver import BuildOptions, Solver
from dyn_core.spatial import Vector
from dyn_core.validation import shaped_array


class ArraySolver(Solver):
    """A Solver that computes one state at a time from arrays, without being traced.

    A leaf implements `outputs`, or derives from NumpySolver and implements `solve`.
    Where the Signature has friction_at, joint friction and springs are added outside of
    `outputs`, whose model has none. Otherwise that model has the friction and springs
    that the build options ask for. A RequireError raised by `outputs` becomes the
    status of the row.

    Attributes:
        options: Options with their defaults.
    """

    options: Mapping[str, Any] = {}

    def sizes(self, model: Model, options: Mapping[str, Any]) -> Mapping[str, int]:
        """Return named sizes of Ports that depend on options; empty in this class.

        Args:
            model: System.
            options: A value of each option of the solver.
        """
        return {}

    @abstractmethod
    def outputs(self, model: Model, *inputs: Any, **options: Any) -> Any:
        """Return the outputs of one state, float arrays in independent coordinates.

        Args:
            model: Robot, or another System.
            inputs: Arrays shaped like the Ports; optional inputs are None unless the
                Program was built with them. Where the Signature has friction_at, joint
                forces come reduced by friction and springs.
            options: A value of each entry of `options`.

        Returns:
            One array, or a tuple of arrays in the order of the Ports.
        """

    def read_options(
        self, model: Any, options: Mapping[str, Any]
    ) -> tuple[BuildOptions, dict[str, Any]]:
        """Return (common build options, value of each option of the solver by name).

        Args:
            model: Robot, or another System; None if it is not known yet: required
                options may then be missing.
            options: Keyword arguments of build.

        Raises:
            UnsupportedError: An option is unknown, needs tracing, or has an invalid
                value.
        """
        common, chosen = BuildOptions.parse(self, dict(options), tuple(self.options))
        self._refuse_what_needs_tracing(common)
        return common, option_values(self, model, chosen)

    def build(self, model: Any, *more: Any, **options: Any) -> Program[Any]:
        """Return a Program that runs state by state.

        Args:
            model: System of the Signature's kind.
            more: Must be empty, else UnsupportedError: options have names.
            options: Options of every build (BuildOptions) and of the solver.

        Raises:
            SignatureError: The class has no name, or no signature.
            UnsupportedError: The system is of another kind or not supported, or an
                option is unknown, invalid or needs tracing, such as inputs that are
                parameter paths, or threads.
        """
        for part, valid in (("name", "'my_solver'"), ("signature", "FORWARD_DYNAMICS")):
            if not hasattr(self, part):
                who = type(self).__name__
                raise SignatureError(f"{who} has no {part}; valid: {part} = {valid}")
        self.demand_kind(model, more)
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
        """Raise UnsupportedError for options that only a TracedSolver supports.

        They are threads, wait, dtype, matrices, f_ext_frame, and parameter paths in
        `inputs`.
        """
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

    A leaf implements `solve(model, *inputs, **options)`: inputs are arrays shaped like
    the Ports (optional ones None unless built with them), the result is an array or a
    tuple.

    Attributes:
        options: Options of `solve` with their defaults.
    """

    @abstractmethod
    def solve(self, model: Model, *inputs: Any, **options: Any) -> Any:
        """Return the outputs of one state, float arrays in independent coordinates.

        A RequireError that it raises becomes the status of the state.

        Args:
            model: Robot, or another System.
            inputs: Arrays shaped like the Ports; optional inputs are None unless the
                Program was built with them. Where the Signature has friction_at, joint
                forces come reduced by friction and springs.
            options: A value of each entry of `options`.

        Returns:
            One array, or a tuple of arrays in the order of the Ports.
        """

    def outputs(self, model: Model, *inputs: Any, **options: Any) -> Any:
        """Return the result of `solve`, with its arguments and errors."""
        return self.solve(model, *inputs, **options)


class _ArrayProgram(RowProgram):
    """The Program of an ArraySolver.

    The last of `parts` is (acts, options, robot): whether friction and whether springs
    act, option values by name, and the model for the solver.
    """

    engine = "array"

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts[:-1])
        self.acts, self.options, self.robot = parts[-1]

    def solve_row(self, numbers: Sequence[Any]) -> Sequence[Any]:
        """Return the flat outputs for the flat inputs of one state.

        Both are in the order of the Ports, arrays row by row.
        """
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
        """Return the flat outputs, checked, with friction added to joint forces.

        `friction` is the resistance of friction and springs, (nv,) [N·m | N], or 0.0.
        """
        name = self.recipe.solver.name
        results = results if isinstance(results, tuple) else (results,)
        if len(results) != len(self.outputs):
            names = ", ".join(port.name for port in self.outputs)
            wanted = f"{len(self.outputs)} arrays ({names})"
            raise ShapeError(name, wanted, str(len(results)))
        flat: list[Any] = []
        for port, result in zip(self.outputs, results, strict=True):
            array = shaped_array(f"{name}: {port.name}", result, port.shape)
            flat += flat_numbers(
                array + friction if port.kind == "joint_force" else array.ravel()
            )
        return flat

    def _friction(self, values: Mapping[str, np.ndarray]) -> Any:
        """Return the joint forces that overcome friction and springs, (nv,) [N·m | N].

        It is 0.0 if neither acts, or the Signature has no friction_at.
        """
        velocity = self.signature.friction_at
        if not any(self.acts) or velocity is None:
            return 0.0
        still = np.zeros(self.model.nv)
        parts = values["q"], still if velocity == REST else values[velocity]
        q, qd = (Vector(part.tolist()) for part in parts)
        return np.array(list(resistance(self.model, q, qd, *self.acts)), float)


def solve_failed(message: str, name: str) -> PluginError:
    """Return the PluginError for a solver whose `solve` raised `message`."""
    return PluginError(f"{name}: solve failed: {message}", name)
