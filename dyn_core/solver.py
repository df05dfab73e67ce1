"""Solvers: a name, a Signature, and a way to become a Program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dyn_core.border import Border, flat_numbers
from dyn_core.engines import ENGINES, Program, default_engine
from dyn_core.engines.base import Recipe, RowProgram
from dyn_core.errors import (
    RequireError,
    ShapeError,
    SignatureError,
    SolverNotFound,
    UnsupportedError,
)
from dyn_core.matrices import FORMS, places
from dyn_core.model import Model, coordinates, parameters
from dyn_core.signature import Port, Signature
from dyn_core.spatial import Vector

Lookup = Callable[[str], "Solver"]


class Solver(ABC):
    """Something that solves the problem of its Signature for any robot it supports.

    A leaf states `name` and `signature` and writes `build`. Most are TextSolvers; one
    that calls a library for each state derives from ArraySolver.

    Attributes:
        name: By which it is asked for.
        signature: What it solves.
        source: Where the algorithm is from.
        origin: Distribution and module that offered it; the registry notes it.
    """

    name: str
    signature: Signature
    source: str = ""
    origin: str = ""
    lookup: Lookup | None = None

    @abstractmethod
    def build(self, model: Model, **choices: Any) -> Program:
        """Give a Program for a robot.

        Args:
            model: Robot.
            choices: engine, inputs, joint_friction, finite, f_ext_frame, threads,
                wait, matrices; and the solver's own slots and options.
        """

    def refusal(self, model: Model) -> str | None:
        """Say why this robot is not served and what would be valid; None if it is."""
        return None

    def bound(self, origin: str, lookup: Lookup) -> Solver:
        """Give the Solver with what the registry knows."""
        self.origin, self.lookup = origin, lookup
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.lookup is not None:
            return _look_up, (self.lookup, self.name)
        return super().__reduce__()  # type: ignore[return-value]


def _look_up(lookup: Lookup, name: str) -> Solver:
    return lookup(name)


@dataclass(frozen=True)
class _Common:
    """Choices every Program understands."""

    engine: str | None = None
    inputs: tuple[str, ...] = ()
    joint_friction: bool = False
    finite: bool = False
    f_ext_frame: str = "body"
    threads: int | None = None
    wait: bool = True
    matrices: str = "dense"

    @classmethod
    def split(
        cls, solver: Solver, choices: Mapping[str, Any], own: Sequence[str]
    ) -> tuple[_Common, dict[str, Any]]:
        """Part the common choices from the solver's own; refuse unknown ones."""
        common = {k: v for k, v in choices.items() if k in cls.__dataclass_fields__}
        rest = {k: v for k, v in choices.items() if k not in common}
        unknown = [key for key in rest if key not in own]
        if unknown:
            valid = ", ".join([*cls.__dataclass_fields__, *own])
            raise UnsupportedError(
                f"{solver.name}: unknown choice {', '.join(unknown)}; valid: {valid}"
            )
        if isinstance(common.get("inputs"), str):
            common["inputs"] = (common["inputs"],)
        common["inputs"] = tuple(common.get("inputs", ()))
        result = cls(**common)
        if result.f_ext_frame not in ("body", "base"):
            raise UnsupportedError(
                f"{solver.name}: f_ext_frame {result.f_ext_frame!r}; valid: body, base"
            )
        if result.threads is not None and result.threads < 1:
            raise UnsupportedError(
                f"{solver.name}: threads must be >= 1, got {result.threads}"
            )
        if result.matrices not in FORMS:
            valid = ", ".join(FORMS)
            raise UnsupportedError(
                f"{solver.name}: matrices {result.matrices!r}; valid: {valid}"
            )
        return result, rest

    def ports(
        self, model: Model, signature: Signature, sizes: Mapping[str, int]
    ) -> tuple[list[Port], list[Port], list[str]]:
        """Give sized inputs, outputs, and which inputs are parameter paths."""
        optional = [p.name for p in signature.inputs if p.optional]
        paths = [name for name in self.inputs if name not in optional]
        sizes = {"nq": model.nq, "nv": model.nv, "nb": model.nb, **sizes}
        inputs = [
            port.sized(sizes)
            for port in signature.inputs
            if not port.optional or port.name in self.inputs
        ]
        for path in paths:
            count = parameters.size(model, path)
            unit = parameters.UNITS[path.rpartition(".")[2]]
            inputs.append(Port(path, () if count == 1 else (count,), unit))
        outputs = []
        for port in signature.outputs:
            kept = places(model, port.kind, self.matrices)
            shape = port.shape if kept is None else (len(kept[0]),)
            outputs.append(replace(port, shape=shape, places=kept).sized(sizes))
        return inputs, outputs, paths


def _no_sizes(model: Model, options: Mapping[str, Any]) -> dict[str, int]:
    return {}


@dataclass(eq=False)
class TextSolver(Solver):
    """A Solver whose algorithm is a text.

    Attributes:
        text: The algorithm, text(model, *inputs, **slots, **options).
        slots: Signature of each slot.
        fills: What fills a slot unless build says otherwise: a name or a Solver.
        options: Options of the text with their defaults.
        sizes: Gives named sizes of Ports that depend on options.
        by_joint: Whether the text takes coordinates split by joint; else it takes
            Vectors of independent coordinates.
        regrouped: Whether the text may get a Model whose inertia was moved towards the
            base (model/regroup.py): right where only joint forces, accelerations and H
            come out.
        supports: Says why a robot is not served, in words that name the joint and what
            would be valid, or gives None; None if the text serves every robot.
        source: Where the algorithm is from.
    """

    name: str
    signature: Signature
    text: Callable[..., Any]
    slots: Mapping[str, Signature] = field(default_factory=dict)
    fills: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    sizes: Callable[[Model, Mapping[str, Any]], Mapping[str, int]] = _no_sizes
    by_joint: bool = True
    regrouped: bool = False
    supports: Callable[[Model], str | None] | None = None
    source: str = ""
    origin: str = ""
    lookup: Lookup | None = None

    def __post_init__(self) -> None:
        doc = self.text.__doc__ or ""
        if not self.source and "Source:" in doc:
            tail = doc[doc.index("Source:") + 7 :].strip()
            self.source = " ".join(tail.split("\n\n")[0].split())

    def refusal(self, model: Model) -> str | None:
        """Say why this robot is not served and what would be valid; None if it is."""
        return None if self.supports is None else self.supports(model)

    def build(self, model: Model, **choices: Any) -> Program:
        """Give a Program for a robot.

        Args:
            model: Robot.
            engine: native (default where it can be had), graph or plain.
            inputs: Optional Ports (f_ext) and parameter paths that become inputs.
            joint_friction: Whether damping and dry friction act in the joints.
            finite: Whether NaN and infinity are refused.
            f_ext_frame: Coordinates of external forces: body or base.
            threads: Most threads a batch may use (default: DYN_THREADS, all cores).
            wait: Whether a first call waits for its machine code; with False it is
                served by engine graph until then, and last bits change when it comes.
            matrices: Form of joint-space matrices: dense, packed or sparse
                (matrices.py); Program.dense makes them dense again.
            choices: Slots (a solver's name or a Solver) and options of the text.

        Raises:
            SignatureError: A slot is filled with a solver of another kind.
            UnsupportedError: An unknown choice or engine, or a robot that the text does
                not serve.
        """
        own = [*self.slots, *self.options]
        common, rest = _Common.split(self, choices, own)
        name = common.engine or default_engine()
        if name not in ENGINES:
            valid = ", ".join(ENGINES)
            raise UnsupportedError(f"no engine is called '{name}'; valid: {valid}")
        robot = model if common.joint_friction else model.without_friction()
        if model.driven and "time" not in common.inputs:
            raise UnsupportedError(
                f"{self.name}: the place of {', '.join(model.driven)} is driven; give"
                " the time: build(model, inputs=['time'])"
            )
        border = self._border(robot, common, rest)
        sizes = self.sizes(model, border.options)
        inputs, outputs, paths = common.ports(model, self.signature, sizes)
        return ENGINES[name](
            text=border.flat(robot, inputs, paths),
            recipe=Recipe(self, model, dict(choices)),
            signature=self.signature,
            inputs=inputs,
            outputs=outputs,
            defaults={
                p.name: parameters.value(model, p.name).reshape(p.shape)
                for p in inputs
                if p.name in paths
            },
            finite=common.finite,
            threads=common.threads,
            wait=common.wait,
        )

    def _border(self, model: Model, common: _Common, rest: Mapping[str, Any]) -> Border:
        """Give the text with its slots filled for a robot."""
        reason = self.refusal(model)
        if reason is not None:
            raise UnsupportedError(f"{self.name}: {reason}")
        here = common.joint_friction and self.signature.friction_at is not None
        slots = {}
        for slot, wanted in self.slots.items():
            solver = self._fill(slot, wanted, rest.get(slot, self.fills.get(slot)))
            below = common.joint_friction and not here
            passed = replace(
                common, joint_friction=below, f_ext_frame="body", matrices="dense"
            )
            slots[slot] = _slot_filling(solver, model, passed)
        options = {key: rest.get(key, value) for key, value in self.options.items()}
        return Border(
            self.text,
            self.signature,
            self.by_joint,
            slots,
            options,
            here,
            common.f_ext_frame,
            self.regrouped,
            common.matrices,
        )

    def _fill(self, slot: str, wanted: Signature, what: Any) -> Solver:
        """Find the Solver for a slot and check its kind."""
        if isinstance(what, str):
            if self.lookup is None:
                raise SolverNotFound(what, ())
            what = self.lookup(what)
        if not isinstance(what, Solver):
            raise SignatureError(
                f"{self.name}: slot {slot} needs a Solver, got {what!r}"
            )
        if what.signature != wanted:
            raise SignatureError(
                f"{self.name}: slot {slot} needs a solver of {wanted.name};"
                f" '{what.name}' solves {what.signature.name}"
            )
        return what


def _slot_filling(solver: Solver, model: Model, common: _Common) -> Border | Program:
    """Give a text as a Border to trace inline, anything else as a Program."""
    if isinstance(solver, TextSolver):
        return solver._border(model, replace(common, inputs=()), {})
    if any(path not in ("f_ext",) for path in common.inputs):
        raise UnsupportedError(
            f"slot solver '{solver.name}' is not a text; parameter inputs"
            f" {', '.join(common.inputs)} cannot reach it"
        )
    choices: dict[str, Any] = {"joint_friction": common.joint_friction}
    if "f_ext" in common.inputs:
        choices["inputs"] = ("f_ext",)
    return solver.build(model, **choices)


class ArraySolver(Solver):
    """A Solver that is not a text: it computes one state at a time with arrays.

    A leaf writes `solve(model, *inputs)`, arrays shaped like the Ports (optional ones
    are None unless asked for), and gives an array or a tuple. Joint friction is added
    around it. RequireErrors it raises become the status of the row.
    """

    @abstractmethod
    def solve(self, model: Model, *inputs: Any) -> Any:
        """Give the outputs of one state, float arrays in independent coordinates."""

    def build(self, model: Model, **choices: Any) -> Program:
        """Give a Program; parameter inputs are refused."""
        common, _ = _Common.split(self, choices, ())
        optional = [p.name for p in self.signature.inputs if p.optional]
        refused = [name for name in common.inputs if name not in optional]
        if common.matrices != "dense":
            refused.append(f"matrices={common.matrices!r}")
        if common.f_ext_frame != "body":
            refused.append("f_ext_frame")
        if refused:
            what = ", ".join(refused)
            raise UnsupportedError(f"{self.name} is not a text and cannot take {what}")
        inputs, outputs, _ = common.ports(model, self.signature, {})
        return _ArrayProgram(
            Recipe(self, model, dict(choices)),
            self.signature,
            inputs,
            outputs,
            {},
            common.finite,
            common.joint_friction,
        )


class _ArrayProgram(RowProgram):
    """The Program of an ArraySolver."""

    engine = "array"

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts[:-1])
        self.joint_friction = parts[-1]

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
            results = self.recipe.solver.solve(self.model, *arrays)
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

    def _friction(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        at = self.signature.friction_at
        if not self.joint_friction or at is None:
            return np.zeros(self.model.nv)
        qd = Vector(float(x) for x in values[at])
        return np.array(list(coordinates.friction_force(self.model, qd)), float)
