"""Adapters: an algorithm with slots and options bound, as a function of flat numbers.

Only this module splits coordinates by joint, expands and contracts followers, changes
the frame of external forces, adds joint friction and springs, and checks the results of
an algorithm. The algorithm itself sees only its mathematical problem.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dyn_core.errors import DynError, ShapeError, TraceError, UnsupportedError
from dyn_core.model import Model, coordinates
from dyn_core.model.assembly.regroup_inertia import regroup
from dyn_core.model.coordinates.matrix_forms import kept_places
from dyn_core.model.passive_forces import (
    damping_matrix,
    resistance,
    stiffness_matrix,
)
from dyn_core.numbers.scalar import Number
from dyn_core.problems import REST, Port, Signature
from dyn_core.spatial import Force, Matrix, Transform, Vector

_JOIN: dict[str, Callable[..., Any]] = {
    "velocity": coordinates.join_v,
    "joint_force": coordinates.join_force,
    "joint_matrix": coordinates.join_matrix,
    "joint_slopes": coordinates.join_slopes,
    "joint_damping": coordinates.join_slopes,
    "joint_stiffness": coordinates.join_slopes,
    "jacobian": coordinates.join_columns,
}
_BY_BODY = ("position", "velocity", "joint_force", "wrenches")
# Modules whose frames are skipped when an error names the line of an algorithm.
_BELOW = (
    *("dyn_core.numbers", "dyn_core.spatial", "dyn_core.model", "dyn_core.engines"),
    "dyn_core.errors",
    __name__,
)


@dataclass(frozen=True)
class Adapter:
    """An algorithm with slots and options bound, between flat numbers.

    Attributes:
        name: Solver and, in brackets, its plugin; used in errors.
        algorithm: Called as algorithm(model, *inputs, **slots, **options).
        signature: Kind of problem that it solves.
        by_joint: Whether the algorithm takes coordinates split by joint.
        slots: By name, the Adapter, Program of a NumpySolver, or Deferred in each slot.
        options: Options of the algorithm.
        joint_friction: Whether damping and dry friction are added here: to joint forces
            that are outputs; they are subtracted from joint forces that are inputs.
        joint_springs: Likewise for springs and the forces of Model.with_forces.
        f_ext_frame: Frame of external forces: body or base.
        regrouped: Whether the algorithm gets a Model with inertia moved to the parents.
        matrices: Form of joint-space matrices: dense, packed or sparse
            (model/coordinates/matrix_forms.py).
    """

    name: str
    algorithm: Callable[..., Any]
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
        self,
        model: Model,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        paths: Sequence[str],
        checked: bool = False,
    ) -> FlatFunction:
        """Return the function of flat numbers that an engine runs or traces.

        The algorithm is not called yet.

        Args:
            model: Robot or other System.
            inputs, outputs: Sized Ports of the Program, parameter paths last.
            paths: Names of the inputs that are parameter paths.
            checked: Whether positions are checked, such as the length of quaternions.
        """
        ports = tuple(inputs), tuple(outputs)
        return FlatFunction(self, model, *ports, tuple(paths), checked)

    def apply(self, model: Model, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the outputs, structured and in independent coordinates.

        Args:
            model: Robot or other System.
            values: Inputs by name, structured as their Ports; optional ones may be
                absent.

        Returns:
            One value for each output Port: a Vector, Matrix or number, or the result of
            the algorithm as it is. A packed or sparse matrix is a Vector.

        Raises:
            ShapeError: The algorithm returned a wrong number of outputs or a wrong
                size.
            TraceError: The algorithm raised an error that is not a DynError.
            DynError: An error of the algorithm or of a slot, such as RequireError,
                passes through.
        """
        inputs = [self._input(model, port, values) for port in self.signature.inputs]
        slots = {name: _Slot(name, what, model) for name, what in self.slots.items()}
        robot = regroup(model) if self.regrouped else model
        with named_errors(self.name):
            results = self.algorithm(robot, *inputs, **slots, **self.options)
        ports = self.signature.outputs
        if len(ports) == 1:
            results = (results,)
        if not isinstance(results, (tuple, list)) or len(results) != len(ports):
            names = ", ".join(port.name for port in ports)
            wanted = f"{len(ports)} results ({names})"
            raise ShapeError(self.name, wanted, _count(results))
        outputs = zip(ports, results, strict=True)
        return tuple(self._output(model, port, x, values) for port, x in outputs)

    def _input(self, model: Model, port: Port, values: Mapping[str, Any]) -> Any:
        """Return an input in the form that the algorithm takes.

        Joint forces are reduced by friction and springs. External forces are a list in
        body coordinates, entry 0 unused; zero forces if absent. If by_joint,
        coordinates are split into a list by body. Another absent optional input is
        None.
        """
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
        """Return an output of the algorithm in independent coordinates.

        Friction and springs are added to joint forces, their derivatives to derivatives
        of joint forces. Of a matrix in packed or sparse form the entries are returned
        as a Vector.
        """
        if self.by_joint and port.kind in _JOIN and not isinstance(result, Vector):
            self._check_parts(model, port, result)
            with named_errors(self.name):
                result = _JOIN[port.kind](model, result)
        if port.kind == "joint_force":
            if isinstance(result, (list, tuple)):
                result = Vector(result)
            if not hasattr(result, "__len__") or len(result) != model.nv:
                wanted = f"{model.nv} numbers"
                raise ShapeError(f"{self.name}: {port.name}", wanted, _count(result))
            friction = self._friction(model, values)
            with named_errors(self.name):
                result = result + friction
        qd, acts = self.signature.friction_at, (self.joint_friction, self.joint_springs)
        if qd is not None and port.kind == "joint_damping" and any(acts):
            speed = self._speed(model, values)
            result = result + damping_matrix(model, values["q"], speed, *acts)
        if qd is not None and port.kind == "joint_stiffness" and self.joint_springs:
            speed = self._speed(model, values)
            result = result + stiffness_matrix(model, values["q"], speed)
        kept = kept_places(model, port.kind, self.matrices)
        if kept is not None:
            result = Vector(result[i, j] for i, j in zip(*kept, strict=True))
        return result

    def _friction(self, model: Model, values: Mapping[str, Any]) -> Vector:
        """Return the joint forces that overcome friction and springs, (nv,) [N·m | N].

        They are zero where this Adapter adds neither.
        """
        qd, acts = self.signature.friction_at, (self.joint_friction, self.joint_springs)
        if qd is None or not any(acts):
            return Vector.zeros(model.nv)
        return resistance(model, values["q"], self._speed(model, values), *acts)

    def _speed(self, model: Model, values: Mapping[str, Any]) -> Vector:
        """Return the velocity at which friction acts, (nv,) [rad/s | m/s].

        It is zero if friction acts at rest, or is not added here.
        """
        name = self.signature.friction_at
        return Vector.zeros(model.nv) if name in (None, REST) else values[name]

    def _check_parts(self, model: Model, port: Port, parts: Any) -> None:
        """Raise ShapeError if an output by joint has a wrong size.

        Bodies may be missing in a mapping of columns of a Jacobian. Other forms of a
        Jacobian, other kinds, entry 0 and velocities of followers are not checked.
        """
        if port.kind in ("velocity", "joint_force"):
            size, wanted = model.nb + 1, "body, entry 0 of the base unused"
            if not isinstance(parts, (list, tuple)) or len(parts) != size:
                wanted = f"a list of {size} entries, one for each {wanted}"
                raise ShapeError(f"{self.name}: {port.name}", wanted, _count(parts))
            forces = port.kind == "joint_force"
            for i in model.bodies if forces else model.independent:
                self._check_part(model, port, i, parts[i])
        elif port.kind == "jacobian" and isinstance(parts, Mapping):
            for i, columns in parts.items():
                self._check_part(model, port, i, columns)

    def _check_part(self, model: Model, port: Port, i: int, part: Any) -> None:
        """Raise ShapeError unless `part` has one entry per velocity of joint i.

        A bare number is refused, even for one velocity.
        """
        wanted = model.joint[i].nv
        if not hasattr(part, "__len__") or len(part) != wanted:
            joint = f"{self.name}: {port.name} of joint '{model.names[i]}'"
            numbers = f"{wanted} number" + ("" if wanted == 1 else "s")
            if not hasattr(part, "__len__"):
                numbers = f"a Vector of {numbers}, as Vector([x]) is of one"
            raise ShapeError(joint, numbers, _count(part))

    def _wrenches(
        self, model: Model, value: Sequence[Force] | None, values: Mapping[str, Any]
    ) -> Sequence[Force]:
        """Return external forces in body coordinates, behind an unused entry 0.

        The given ones, None for zero, are on bodies 1 to nb, without entry 0, in the
        frame f_ext_frame. A list of another length is not transformed.
        """
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
class FlatFunction:
    """An Adapter bound to one robot: a function of flat numbers.

    Inputs and outputs are sized Ports, parameter `paths` last. `checked`: whether
    positions are checked, such as the length of quaternions.
    """

    adapter: Adapter
    model: Model
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    paths: tuple[str, ...]
    checked: bool = False

    def __call__(self, numbers: Sequence[Any]) -> list[Any]:
        """Return the flat outputs for flat inputs, both in the order of the Ports.

        An array is flat row by row. The number of inputs is not checked: surplus ones
        are ignored, too few make arrays too short.

        Raises:
            ShapeError: An output of the algorithm has a wrong number of entries.
            RequireError: A condition of the algorithm does not hold, or a position is
                invalid where positions are checked. With traced numbers the Program
                raises it.
            TraceError: The algorithm raised an error that is not a DynError.
            DynError: Another error of the algorithm or of a slot passes through.
        """
        values, changed, start = {}, {}, 0
        for port in self.inputs:
            part = numbers[start : start + port.size]
            start += port.size
            if port.name in self.paths:
                changed[port.name] = part
            else:
                values[port.name] = _structured(port, part)
            if self.checked and port.kind == "position":
                self.model.require_position(part)
        model = self.model
        robot = model.with_values(changed) if changed else model
        results = self.adapter.apply(robot, values)
        flat = [flat_numbers(result) for result in results]
        for port, part in zip(self.outputs, flat, strict=True):
            if len(part) != port.size:
                wanted = f"{port.size} numbers, shape {port.shape}"
                name = f"{self.adapter.name}: {port.name}"
                raise ShapeError(name, wanted, f"{len(part)} numbers")
        return [x for part in flat for x in part]


@dataclass(frozen=True)
class Deferred:
    """A slot for another kind of System, which the algorithm passes at each call.

    The System comes first, then the Signature's inputs; keywords are options of the
    solver. `fill(solver, system, **options)` returns an Adapter or a Program.
    """

    solver: Any
    fill: Callable[..., Any]


class _Slot:
    """A solver inside an algorithm, called with the inputs of its Signature.

    Coordinates may be Vectors of all independent coordinates, or lists by body, whose
    entries of the base and of followers are dropped; external forces may include an
    entry 0 or not. The result is in independent coordinates.

    A keyword that is a parameter path (such as armature) replaces that parameter.
    """

    def __init__(self, name: str, what: Any, model: Model) -> None:
        self.name, self.what, self.model = name, what, model

    def __call__(self, *args: Any, **changed: Sequence[Any]) -> Any:
        """Return the result: one value, or a tuple of several.

        The first of the inputs of a Deferred is the System; its keywords are options of
        its solver, not parameters.
        """
        if isinstance(self.what, Deferred):
            system, *inputs = args
            filling = self.what.fill(self.what.solver, system, **changed)
            return _Slot(self.name, filling, system)(*inputs)
        if isinstance(self.what, Adapter):
            model = self.model.with_values(changed) if changed else self.model
            results = self.what.apply(model, self._by_name(self.what.signature, args))
        else:
            results = self._call(args, changed)
        return results[0] if len(results) == 1 else results

    def _by_name(self, signature: Signature, args: Sequence[Any]) -> dict[str, Any]:
        """Return the inputs by name, without the base entry of lists by body.

        A list of nb + 1 entries by body becomes a Vector of the independent
        coordinates. The entries of the base and of followers are dropped; joint forces
        of followers are not added to their leaders. Of a list of nb + 1 external forces
        only entry 0 is dropped. Optional inputs at the end may be missing, and surplus
        ones are ignored.
        """
        if not all(port.optional for port in signature.inputs[len(args) :]):
            names = ", ".join(p.name for p in signature.inputs if not p.optional)
            raise ShapeError(f"slot {self.name}", f"inputs {names}", f"{len(args)}")
        inputs = {}
        for port, x in zip(signature.inputs, args, strict=False):
            by_body = isinstance(x, (list, tuple)) and port.kind in _BY_BODY
            if by_body and len(x) == self.model.nb + 1:
                if port.kind == "wrenches":
                    x = x[1:]
                else:
                    x = Vector(y for i in self.model.independent for y in x[i])
            inputs[port.name] = x
        return inputs

    def _call(self, args: Sequence[Any], changed: Mapping[str, Any]) -> tuple[Any, ...]:
        """Call the Program of a NumpySolver; return its outputs as a tuple.

        While an algorithm is traced, the call is recorded, and the outputs are symbols.
        """
        program = self.what
        if changed:
            explicit = (
                "; valid: a step that is explicit, such as rk4, or semi_implicit_euler"
                " with implicit=False"
            )
            raise UnsupportedError(
                f"slot {self.name}: {program.recipe.solver.name} is a NumpySolver and"
                f" cannot take {', '.join(changed)} per call"
                f"{explicit if 'armature' in changed else ''}"
            )
        inputs = self._by_name(program.signature, args)
        values: list[Any] = []
        for port in program.inputs:  # an optional input that is missing is zero
            values += flat_numbers(inputs.get(port.name, [0.0] * port.size))
        wanted = sum(port.size for port in program.inputs)
        if len(values) != wanted:
            raise ShapeError(f"slot {self.name}", f"{wanted} numbers", str(len(values)))
        number = next((x for x in values if isinstance(x, Number)), None)
        if number is not None:
            flat = number.apply("call", program, values)
        else:
            flat = _run(program, values)
        results, start = [], 0
        for port in program.outputs:
            results.append(_structured(port, flat[start : start + port.size]))
            start += port.size
        return tuple(results)


@contextmanager
def named_errors(
    name: str, kind: Callable[[str, str], DynError] = TraceError
) -> Iterator[None]:
    """Convert exceptions inside a block into a DynError with solver, file and line.

    SystemExit is converted too. DynErrors, KeyboardInterrupt, MemoryError and
    RecursionError pass, but a TraceError without a solver gets `name`, the solver and,
    in brackets, its plugin. Others become kind(message, name).
    """
    try:
        yield
    except TraceError as error:
        if error.solver is not None:
            raise  # a solver in a slot is named already
        raise TraceError(_explained(error), name) from error
    except (DynError, MemoryError, RecursionError):
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.walk_tb(error.__traceback__)
        places = [
            (frame.f_code.co_filename, line, frame.f_code.co_name)
            for frame, line in frames
            if not frame.f_globals.get("__name__", "").startswith(_BELOW)
        ]
        place = ""
        if places:
            file, line, function = places[-1]
            place = f" at {file}:{line}, in {function}"
        message = f"{type(error).__name__}: {_explained(error)}{place}"
        raise kind(message, name) from error


def _explained(error: BaseException) -> str:
    """Return the text of an error; if it speaks of NoneType, with a hint on None."""
    none = "; None is an entry that was never set, or the result of require()"
    return f"{error}{none if 'NoneType' in str(error) else ''}"


def _run(program: Any, values: Sequence[float]) -> list[float]:
    """Return the flat results of a Program for flat inputs of one state.

    Inputs and results are in the order of the Ports, each row by row.
    """
    results, state = program.run_row(values)
    if state:
        raise program.failure(state)
    return list(results)


def _count(value: Any) -> str:
    """Return the number of values as text, for messages: "a number" for a number."""
    if isinstance(value, (Number, float, int)):
        return "a number"
    if not hasattr(value, "__len__"):
        return type(value).__name__
    return f"{len(value)}"


def _structured(port: Port, numbers: Sequence[Any]) -> Any:
    """Return flat numbers in the form of a Port: number, Vector, Matrix or Forces.

    Six numbers of kind "wrenches" become one Force. An array of two or more axes
    becomes a Matrix, each row along its last axis.
    """
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
    """Return the numbers of a value as a list; matrices and nested lists row by row.

    An array must have one axis; a single number becomes a list of one.
    """
    if isinstance(value, Matrix):
        return [x for row in value.rows for x in row]
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in flat_numbers(part)]
    return list(value) if hasattr(value, "__iter__") else [value]
