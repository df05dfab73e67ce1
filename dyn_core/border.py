"""The border of a text: flat numbers to spatial values and back, once each way.

Here, and only here, coordinates are split by joint, followers are expanded and
contracted, external forces change frames, joint friction and springs are added. The
text in between sees one problem and none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.matrices import places
from dyn_core.model import Model, coordinates
from dyn_core.model.passive import damping_matrix, resistance, stiffness_matrix
from dyn_core.model.regroup import regroup
from dyn_core.scalar import Number
from dyn_core.signature import Port, Signature
from dyn_core.spatial import Force, Matrix, Transform, Vector


@dataclass(frozen=True)
class Border:
    """A text with its surroundings fixed: a function of flat numbers.

    Attributes:
        text: The algorithm; called as text(model, *inputs, **slots, **options).
        signature: What it solves.
        by_joint: Whether the text takes coordinates split by joint.
        slots: What fills each slot: a Border, or a Program that is no text.
        options: Options of the text.
        joint_friction: Whether joint forces carry damping and dry friction here.
        joint_springs: Whether they carry springs and the user's forces here.
        f_ext_frame: body or base.
        regrouped: Whether the text gets a Model with inertia moved to the parents.
        matrices: Form of joint-space matrices (matrices.py).
    """

    text: Callable[..., Any]
    signature: Signature
    by_joint: bool
    slots: Mapping[str, Any]
    options: Mapping[str, Any]
    joint_friction: bool = False
    joint_springs: bool = False
    f_ext_frame: str = "body"
    regrouped: bool = False
    matrices: str = "dense"

    def flat(
        self, model: Model, inputs: Sequence[Port], paths: Sequence[str]
    ) -> FlatText:
        """Give the function of flat numbers that an engine runs or traces.

        Args:
            model: Robot.
            inputs: Sized Ports of the Program, parameter paths last.
            paths: Which of them are parameter paths.
        """
        return FlatText(self, model, tuple(inputs), tuple(paths))

    def apply(self, model: Model, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Give the outputs, as Vectors, Matrices and numbers, for such inputs."""
        inputs = [self._input(model, port, values) for port in self.signature.inputs]
        slots = {name: _Slot(name, what, model) for name, what in self.slots.items()}
        robot = regroup(model) if self.regrouped else model
        results = self.text(robot, *inputs, **slots, **self.options)
        if len(self.signature.outputs) == 1:
            results = (results,)
        outputs = zip(self.signature.outputs, results, strict=True)
        return tuple(self._output(model, port, x, values) for port, x in outputs)

    def _input(self, model: Model, port: Port, values: Mapping[str, Any]) -> Any:
        """Give an input as the text wants it."""
        value: Any = values.get(port.name)
        if port.kind == "wrenches":
            return self._wrenches(model, value, values)
        if port.kind == "joint_force":
            value = value - self._friction(model, values)
        if not self.by_joint:
            return value
        if port.kind == "position":
            return coordinates.split_q(model, value)
        if port.kind in ("velocity", "joint_force"):
            return coordinates.split_v(model, value)
        return value

    def _output(
        self, model: Model, port: Port, result: Any, values: Mapping[str, Any]
    ) -> Any:
        """Give an output of the text in independent coordinates."""
        if self.by_joint:
            join: Any = {
                "velocity": coordinates.join_v,
                "joint_force": coordinates.join_force,
                "joint_matrix": coordinates.join_matrix,
                "joint_slopes": coordinates.join_slopes,
                "joint_damping": coordinates.join_slopes,
                "joint_stiffness": coordinates.join_slopes,
                "jacobian": coordinates.join_columns,
            }.get(port.kind)
            result = result if join is None else join(model, result)
        if port.kind == "joint_force":
            result = result + self._friction(model, values)
        at, acts = self.signature.friction_at, (self.joint_friction, self.joint_springs)
        if at is not None and port.kind == "joint_damping" and any(acts):
            result = result + damping_matrix(model, values["q"], values[at], *acts)
        if at is not None and port.kind == "joint_stiffness" and self.joint_springs:
            result = result + stiffness_matrix(model, values["q"], values[at])
        kept = places(model, port.kind, self.matrices)
        if kept is not None:
            result = Vector(result[i, j] for i, j in zip(*kept, strict=True))
        return result

    def _friction(self, model: Model, values: Mapping[str, Any]) -> Vector:
        """Give what friction and springs take at this Signature's state, or zeros."""
        at, acts = self.signature.friction_at, (self.joint_friction, self.joint_springs)
        if at is None or not any(acts):
            return Vector.zeros(model.nv)
        return resistance(model, values["q"], values[at], *acts)

    def _wrenches(
        self, model: Model, value: Sequence[Force] | None, values: Mapping[str, Any]
    ) -> Sequence[Force]:
        """Give external forces in body coordinates; entry 0 is unused."""
        if value is None:
            return [Force.zero()] * (model.nb + 1)
        forces = [Force.zero(), *value]
        if self.f_ext_frame == "base" and len(forces) == model.nb + 1:
            parts = coordinates.split_q(model, values["q"])
            X = [Transform.identity()]
            for i in model.bodies:
                XJ = model.joint[i].X(parts[i])
                X.append(XJ @ model.Xtree[i] @ X[model.parent[i]])
                forces[i] = X[i] @ forces[i]
        return forces


@dataclass(frozen=True)
class FlatText:
    """A text at its border, for one robot: a function of flat numbers.

    Attributes:
        border, model: What is applied, to which robot.
        inputs: Sized Ports, parameter paths last.
        paths: Which of them are parameter paths.
    """

    border: Border
    model: Model
    inputs: tuple[Port, ...]
    paths: tuple[str, ...]

    def __call__(self, numbers: Sequence[Any]) -> list[Any]:
        """Give the flat outputs."""
        values, changed, at = {}, {}, 0
        for port in self.inputs:
            part = numbers[at : at + port.size]
            at += port.size
            if port.name in self.paths:
                changed[port.name] = part
            else:
                values[port.name] = _structured(port, part)
        model = self.model
        robot = model.with_values(changed) if changed else model
        results = self.border.apply(robot, values)
        return [x for result in results for x in flat_numbers(result)]


@dataclass(frozen=True)
class Deferred:
    """A slot for another kind of system: the text says at the call for which.

    The first argument of the call is the System; the rest are the Signature's inputs,
    and by keyword options of the solver.

    Attributes:
        solver: What fills the slot.
        fill: Gives a Border or a Program: fill(solver, system, **options).
    """

    solver: Any
    fill: Callable[..., Any]


class _Slot:
    """Another solver inside a text: call it with the values of its Signature.

    A keyword that is a parameter path (such as armature) replaces that parameter.
    """

    def __init__(self, name: str, what: Any, model: Model) -> None:
        self.name, self.what, self.model = name, what, model

    def __call__(self, *args: Any, **changed: Sequence[Any]) -> Any:
        """Give the result: one value, or a tuple of several."""
        if isinstance(self.what, Deferred):
            system, *inputs = args
            filling = self.what.fill(self.what.solver, system, **changed)
            return _Slot(self.name, filling, system)(*inputs)
        if isinstance(self.what, Border):
            names = [port.name for port in self.what.signature.inputs]
            model = self.model.with_values(changed) if changed else self.model
            results = self.what.apply(model, dict(zip(names, args, strict=False)))
        else:
            results = self._call(args, changed)
        return results[0] if len(results) == 1 else results

    def _call(self, args: Sequence[Any], changed: Mapping[str, Any]) -> tuple[Any, ...]:
        """Call a Program that is not a text."""
        program = self.what
        if changed:
            raise UnsupportedError(
                f"slot {self.name}: {program.recipe.solver.name} is not a text and"
                f" cannot take {', '.join(changed)} per call"
            )
        names = [port.name for port in program.signature.inputs]
        given = dict(zip(names, args, strict=False))
        values = [x for port in program.inputs for x in flat_numbers(given[port.name])]
        wanted = sum(port.size for port in program.inputs)
        if len(values) != wanted:
            raise ShapeError(f"slot {self.name}", f"{wanted} numbers", str(len(values)))
        number = next((x for x in values if isinstance(x, Number)), None)
        if number is not None:
            flat = number.apply("call", program, values)
        else:
            flat = _run(program, values)
        results, at = [], 0
        for port in program.outputs:
            results.append(_structured(port, flat[at : at + port.size]))
            at += port.size
        return tuple(results)


def _run(program: Any, values: Sequence[float]) -> list[float]:
    """Call a Program with flat floats."""
    results, state = program.run_row(values)
    if state:
        requirement = program.requirement(state)
        raise requirement.error(requirement.item)
    return list(results)


def _structured(port: Port, numbers: Sequence[Any]) -> Any:
    """Give flat numbers the form of a Port: number, Vector, Matrix or Forces."""
    if port.kind == "wrenches":
        rows = range(0, len(numbers), 6)
        return [Force.of(numbers[k : k + 6]) for k in rows]
    if not port.shape:
        return numbers[0]
    if len(port.shape) == 1:
        return Vector(numbers)
    width = max(int(port.shape[-1]), 1)
    return Matrix(numbers[k : k + width] for k in range(0, len(numbers), width))


def flat_numbers(value: Any) -> list[Any]:
    """Give the numbers of a value, row by row."""
    if isinstance(value, Matrix):
        return [x for row in value.rows for x in row]
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in flat_numbers(part)]
    return list(value) if hasattr(value, "__iter__") else [value]
