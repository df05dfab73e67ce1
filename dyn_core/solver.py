"""Solvers: a name, a Signature, and a way to become a Program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dyn_core.border import Border, Deferred
from dyn_core.engines import ENGINES, Program, default_engine
from dyn_core.engines.base import Recipe
from dyn_core.errors import (
    SignatureError,
    SolverNotFound,
    UnsupportedError,
)
from dyn_core.matrices import FORMS, places
from dyn_core.model import Model
from dyn_core.signature import Port, Signature
from dyn_core.system import System

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
    def build(self, model: Any, **choices: Any) -> Program:
        """Give a Program for a robot or another System.

        Args:
            model: Robot, or System of the kind that the Signature says.
            choices: engine, inputs, joint_friction, joint_springs, finite, threads,
                f_ext_frame, wait, matrices; the solver's own slots and options.
        """

    def refusal(self, model: Any) -> str | None:
        """Say why this robot is not served and what would be valid; None if it is."""
        return None

    def demand_kind(self, system: System) -> None:
        """Refuse a system of another kind than the Signature's."""
        if getattr(system, "kind", None) != self.signature.system:
            wanted = self.signature.system
            valid = f"a System of the kind '{wanted}'"
            if isinstance(system, System):
                valid = f"solvers of a Signature whose system is '{system.kind}'"
            raise UnsupportedError(
                f"{self.name} is for a {wanted}, not for {system!r}; valid: {valid}"
            )

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
class Common:
    """Choices every Program understands."""

    engine: str | None = None
    inputs: tuple[str, ...] = ()
    joint_friction: bool = False
    joint_springs: bool = False
    finite: bool = False
    f_ext_frame: str = "body"
    threads: int | None = None
    wait: bool = True
    matrices: str = "dense"

    @classmethod
    def split(
        cls, solver: Solver, choices: Mapping[str, Any], own: Sequence[str]
    ) -> tuple[Common, dict[str, Any]]:
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
        sizes = {**model.sizes, **sizes}
        inputs = [
            port.sized(sizes)
            for port in signature.inputs
            if not port.optional or port.name in self.inputs
        ]
        for path in paths:
            count = len(model.parameter(path))
            shape = () if count == 1 else (count,)
            inputs.append(Port(path, shape, model.unit(path)))
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
        closes_loops: Whether it holds the loops of a robot; else robots with loops are
            refused where forces or accelerations would be those of the open tree.
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
    closes_loops: bool = False
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

    def build(self, model: Any, **choices: Any) -> Program:
        """Give a Program for a robot.

        Args:
            model: Robot.
            engine: native (default where it can be had), graph or plain.
            inputs: Optional Ports (f_ext) and parameter paths that become inputs.
            joint_friction: Whether damping and dry friction act in the joints.
            joint_springs: Whether springs act, and what Model.with_forces gave.
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
        common, rest = Common.split(self, choices, own)
        name = common.engine or default_engine()
        if name not in ENGINES:
            valid = ", ".join(ENGINES)
            raise UnsupportedError(f"no engine is called '{name}'; valid: {valid}")
        self.demand_kind(model)
        robot: Any = model.resisting(common.joint_friction, common.joint_springs)
        missing = model.missing(common.inputs)
        if missing is not None:
            raise UnsupportedError(f"{self.name}: {missing}")
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
                p.name: model.value(p.name).reshape(p.shape)
                for p in inputs
                if p.name in paths
            },
            finite=common.finite,
            threads=common.threads,
            wait=common.wait,
        )

    def _border(self, model: Model, common: Common, rest: Mapping[str, Any]) -> Border:
        """Give the text with its slots filled for a robot."""
        reason = self.refusal(model) or _open(self, model)
        if reason is not None:
            raise UnsupportedError(f"{self.name}: {reason}")
        here = self.signature.friction_at is not None
        slots = {}
        for slot, wanted in self.slots.items():
            solver = self._fill(slot, wanted, rest.get(slot, self.fills.get(slot)))
            passed = replace(common, f_ext_frame="body", matrices="dense")
            if here:
                passed = replace(passed, joint_friction=False, joint_springs=False)
            slots[slot] = _slot_filling(solver, model, passed)
        options = {key: rest.get(key, value) for key, value in self.options.items()}
        return Border(
            self.text,
            self.signature,
            self.by_joint,
            slots,
            options,
            common.joint_friction and here,
            common.joint_springs and here,
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


def _open(solver: TextSolver, model: Model) -> str | None:
    """Say why a solver for trees does not serve a robot with loops, or give None."""
    if solver.closes_loops or model.kind != "robot" or not model.loops:
        return None
    if any(slot.of_trees for slot in solver.slots.values()):
        return None  # what fills the slot is asked itself
    if not solver.signature.of_trees:
        return None
    names = ", ".join(loop.name for loop in model.loops)
    return (
        f"the robot has loops ({names}) and this is for trees; valid: aba_loops,"
        " rnea_loops and the loop_... solvers; model.without_loops() is the open tree"
    )


def _slot_filling(
    solver: Solver, model: Any, common: Common
) -> Border | Program | Deferred:
    """Give a text as a Border to trace inline, anything else as a Program."""
    if solver.signature.system != model.kind:
        return Deferred(solver, _filling_of_another)
    if isinstance(solver, TextSolver):
        return solver._border(model, replace(common, inputs=()), {})
    if any(path not in ("f_ext",) for path in common.inputs):
        raise UnsupportedError(
            f"slot solver '{solver.name}' is not a text; parameter inputs"
            f" {', '.join(common.inputs)} cannot reach it"
        )
    keys = ("joint_friction", "joint_springs")
    choices: dict[str, Any] = {key: getattr(common, key) for key in keys}
    if "f_ext" in common.inputs:
        choices["inputs"] = ("f_ext",)
    return solver.build(model, **choices)


def _filling_of_another(
    solver: Solver, system: Any, **options: Any
) -> Border | Program:
    """Give what fills a slot for a system of another kind than the outer one."""
    solver.demand_kind(system)
    if isinstance(solver, TextSolver):
        own = (*solver.slots, *solver.options)
        common, rest = Common.split(solver, options, own)
        return solver._border(system, common, rest)
    return solver.build(system, **options)
