"""Solvers that are no texts: they compute one state at a time with arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.border import flat_numbers
from dyn_core.engines import Program
from dyn_core.engines.base import Recipe, RowProgram
from dyn_core.errors import RequireError, ShapeError, UnsupportedError
from dyn_core.model import Model
from dyn_core.model.passive import resistance
from dyn_core.solver import Common, Solver
from dyn_core.spatial import Vector


class ArraySolver(Solver):
    """A Solver that is not a text: it computes one state at a time with arrays.

    A leaf writes `solve(model, *inputs, **options)`, arrays shaped like the Ports
    (optional ones are None unless asked for), and gives an array or a tuple. Joint
    friction and springs are added around it where the Signature says at which velocity;
    elsewhere the model that it gets has those that were asked for, and no others.
    RequireErrors it raises become the status of the row.

    Attributes:
        options: Options of `solve` with their defaults.
    """

    options: Mapping[str, Any] = {}

    def sizes(self, model: Model, options: Mapping[str, Any]) -> Mapping[str, int]:
        """Give named sizes of Ports that depend on options."""
        return {}

    @abstractmethod
    def solve(self, model: Model, *inputs: Any, **options: Any) -> Any:
        """Give the outputs of one state, float arrays in independent coordinates."""

    def build(self, model: Any, **choices: Any) -> Program:
        """Give a Program; parameter inputs are refused."""
        self.demand_kind(model)
        reason = self.refusal(model)
        if reason is not None:
            raise UnsupportedError(f"{self.name}: {reason}")
        common, rest = Common.split(self, choices, tuple(self.options))
        options = {**self.options, **rest}
        optional = {p.name for p in self.signature.inputs if p.optional}
        refused = sorted({*common.inputs} - optional)
        if common.matrices != "dense":
            refused.append(f"matrices={common.matrices!r}")
        if common.f_ext_frame != "body":
            refused.append("f_ext_frame")
        if refused:
            what = ", ".join(refused)
            raise UnsupportedError(f"{self.name} is not a text and cannot take {what}")
        here = self.signature.friction_at is not None
        robot = model.resisting(
            common.joint_friction and not here, common.joint_springs and not here
        )
        sizes = self.sizes(model, options)
        inputs, outputs, _ = common.ports(model, self.signature, sizes)
        return _ArrayProgram(
            Recipe(self, model, dict(choices)),
            self.signature,
            inputs,
            outputs,
            {},
            common.finite,
            ((common.joint_friction, common.joint_springs), options, robot),
        )


class _ArrayProgram(RowProgram):
    """The Program of an ArraySolver."""

    engine = "array"

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts[:-1])
        self.acts, self.options, self.robot = parts[-1]

    def run_row(self, numbers: Sequence[Any]) -> tuple[Any, int]:
        """Solve one state."""
        values, at = {}, 0
        for port in self.inputs:
            part = np.array(numbers[at : at + port.size], float)
            values[port.name] = part.reshape(port.shape)
            at += port.size
        friction = self._friction(values)
        for port in self.inputs:
            if port.kind == "joint_force":
                values[port.name] = values[port.name] - friction
        arrays = [values.get(port.name) for port in self.signature.inputs]
        try:
            results = self.recipe.solver.solve(self.robot, *arrays, **self.options)
        except RequireError as error:
            return self.note(error)
        results = results if isinstance(results, tuple) else (results,)
        flat: list[Any] = []
        for port, result in zip(self.outputs, results, strict=True):
            array = np.asarray(result, float)
            if array.shape != port.shape:
                raise ShapeError(port.name, f"shape {port.shape}", f"{array.shape}")
            flat += flat_numbers(
                array + friction if port.kind == "joint_force" else array.ravel()
            )
        return flat, 0

    def _friction(self, values: Mapping[str, np.ndarray]) -> Any:
        at = self.signature.friction_at
        if not any(self.acts) or at is None:
            return 0.0
        q, qd = (Vector(float(x) for x in values[name]) for name in ("q", at))
        return np.array(list(resistance(self.model, q, qd, *self.acts)), float)
