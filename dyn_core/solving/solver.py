"""Solvers: named implementations of a Signature that build Programs."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NoReturn

from dyn_core.engines import ENGINES, Program, default_engine
from dyn_core.engines.base import Recipe
from dyn_core.engines.results import Built
from dyn_core.errors import (
    SettingError,
    SignatureError,
    SolverNotFound,
    UnsupportedError,
    unknown_name,
)
from dyn_core.model import Model
from dyn_core.model.checks.inertias import lack_of_inertia
from dyn_core.problems import InstanceDoc, Port, Signature
from dyn_core.problems.system import System
from dyn_core.solving.adapter import Adapter, Deferred, named_errors
from dyn_core.solving.build_options import (
    BuildOptions,
    check_names,
    option_values,
    read_option,
)
from dyn_core.solving.help_pages import describe_solver
from dyn_core.validation import shown

Lookup = Callable[..., "Solver"]
AUTO = "auto"  # in place of a solver's name: the default solver of the problem
_PIVOT_FLOAT32 = 1e-6  # Tree.pivot for float32: its mantissa has 24 bits
_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


class Solver(ABC, Generic[Built]):
    """An implementation of a Signature for every System that it supports.

    A leaf states `name` and `signature` and implements `build`. Most are TracedSolvers;
    one that calls a library for each state derives from NumpySolver. `help(solver)`
    prints the result of `describe`. For type checkers Solver[X] means that calls of its
    Programs return X.

    Attributes:
        name: Unique name.
        signature: Kind of problem that it solves.
        source: Literature of the algorithm.
        reference: Whether it exists for comparison with other solvers; lists of solvers
            leave it out unless references are asked for.
        origin: Distribution and module that offered it; set by the registry.
        lookup: Returns the solver of a name; set by the registry, else None.
        closes_loops: Whether it satisfies the loop-closure constraints of a robot.
        default: Whether it is the default solver of its problem: for robots with loops
            if it closes them, else for trees.
        former: Name in the last minor version, which still finds it, with a warning.
        changed_options: Options that with_options changed.
        numbered: Words for numbers in its outputs, by what the number is: for exports.
        valid: By option, a Kind of dyn_core.validation, or a function (model, value)
            that raises for an invalid value; its model is None if it is not known yet.
            Options without a rule must have the type of their default if that is a
            bool, int, float or str; read_option describes the other cases.
    """

    name: str
    signature: Signature
    source: str = ""
    reference: bool = False
    origin: str = ""
    lookup: Lookup | None = None
    closes_loops: bool = False
    default: bool = False
    former: str = ""
    changed_options: Mapping[str, Any] = {}
    numbered: Mapping[str, Mapping[int, str]] = {}
    valid: Mapping[str, Any] = {}

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls.__doc__ = InstanceDoc(cls.__dict__.get("__doc__"))  # type: ignore[assignment]

    @abstractmethod
    def build(self, model: Any, **options: Any) -> Program[Built]:
        """Return a Program for a robot or another System.

        Args:
            model: System of the Signature's kind.
            options: Options of every build (BuildOptions), and slots and options of the
                solver.

        Raises:
            UnsupportedError: The System is of another kind or not supported, or an
                option is invalid. Subclasses may raise other DynErrors.
        """

    def __call__(self, *inputs: Any, **named: Any) -> NoReturn:
        """Raise SignatureError: a Solver is built for a robot; a Program is called."""
        raise SignatureError(
            f"solver '{self.name}' is no function; valid: {self._usage}"
        )

    @property
    def _usage(self) -> str:
        required = ", ".join(x.name for x in self.signature.inputs if not x.optional)
        return f"dyn.solver({self.name!r}).build(model)({required})"

    def describe(
        self,
        inputs: Sequence[Port] | None = None,
        outputs: Sequence[Port] | None = None,
    ) -> str:
        """Return the help page: problem, inputs and outputs, options, source, plugin.

        Args:
            inputs, outputs: Sized Ports of a Program to show; None: the Signature's.
        """
        return describe_solver(self, inputs, outputs)

    def refusal(self, model: Any) -> str | None:
        """Return why this robot is not supported, with valid alternatives, or None.

        This class supports every robot.

        Args:
            model: Robot or another System of the Signature's kind.
        """
        return None

    def for_model(self, model: Any) -> Solver[Built]:
        """Return the solver whose Program `build` returns for a System: this one.

        A DefaultSolver returns the solver that it chooses.
        """
        return self

    def lack(self, model: Any, options: Mapping[str, Any]) -> str | None:
        """Return why no solution exists for lack of inertia, or None.

        It is None for every robot if the Signature does not divide by inertia. Joints
        in loops are not checked.

        Args:
            model: Robot; for another System the result is None.
            options: Values of the solver's options, by name. Joints in the option
                `prescribed` need no inertia; other options have no effect.
        """
        if not self.signature.divides_by_inertia:
            return None
        return lack_of_inertia(model, options)

    def demand_kind(self, system: System, more: Sequence[Any] = ()) -> None:
        """Raise UnsupportedError if the system's kind differs from the Signature's.

        Args:
            system: System of a build.
            more: Further arguments by position, which are refused, too.
        """
        if more:
            option = next(iter(getattr(self, "options", ())), "engine")
            raise UnsupportedError(
                f"{self.name}: build takes options by name, got {shown(more[0])};"
                f" valid: build(model, {option}={shown(more[0])})"
            )
        if getattr(system, "kind", None) != self.signature.system:
            wanted = self.signature.system
            valid = f"a System of the kind '{wanted}'"
            if wanted == "robot":
                valid = "what dyn.load returns"
            if isinstance(system, System):
                valid = f"solvers of a Signature whose system is '{system.kind}'"
            other = str(system) if isinstance(system, System) else repr(system)
            raise UnsupportedError(
                f"{self.name} is for a {wanted}, not for {other}; valid: {valid}"
            )

    def bound(self, origin: str, lookup: Lookup) -> Solver[Built]:
        """Set origin and lookup of this Solver, in place, and return it.

        Args:
            origin: Distribution and module that offered it.
            lookup: Returns the solver of a name: lookup(name) or lookup(name,
                signature).
        """
        self.origin, self.lookup = origin, lookup
        return self

    def with_options(self, **options: Any) -> Solver[Built]:
        """Return a copy of the solver with other defaults of its options.

        Args:
            options: New defaults by option, valid as in `build`. Slots and options of
                every build are refused.

        Raises:
            UnsupportedError: The option does not exist or the value is invalid; the
                message lists valid ones. A function in `valid` may raise others.
        """
        defaults = dict(getattr(self, "options", {}))
        for key, value in options.items():
            if key not in defaults:
                raise UnsupportedError(
                    f"{self.name}: {unknown_name('option', key, defaults)}"
                )
            value = read_option(self, None, key, value)
            defaults[key] = value
        changed = object.__new__(type(self))  # a copy would be looked up again
        changed.__dict__.update(
            self.__dict__,
            options=defaults,
            changed_options={**self.changed_options, **options},
        )
        return changed

    def __reduce__(self) -> tuple[Any, ...]:
        if self.lookup is not None:
            return _look_up, (self.lookup, self.name, dict(self.changed_options))
        return super().__reduce__()  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.signature}>"


def is_function(value: Any) -> bool:
    """Return whether a value can be called; a Solver counts as none, a class as one."""
    return callable(value) and not isinstance(value, Solver)


def takes(function: Any, count: int) -> bool:
    """Return whether `count` arguments fit by position; True if nothing is known."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def check_function(name: str, value: Any, valid: str) -> None:
    """Raise SettingError if an argument is no function; a Solver is none, either."""
    if isinstance(value, Solver):
        raise SettingError(
            f"{name} is the solver '{value.name}', no function; valid: {valid}; it is"
            f" called as {value._usage}",
            name,
        )
    if not is_function(value):
        raise SettingError(f"{name} is {shown(value)}; valid: {valid}", name)


def _look_up(lookup: Lookup, name: str, options: Mapping[str, Any]) -> Solver:
    """Return the registered solver of a name, with changed options if there are any.

    Used by pickle.
    """
    return lookup(name).with_options(**options) if options else lookup(name)


def _no_sizes(model: Model, options: Mapping[str, Any]) -> dict[str, int]:
    return {}


@dataclass(eq=False, repr=False)
class TracedSolver(Solver):
    """A Solver whose algorithm can be traced and compiled.

    Attributes:
        algorithm: Called as algorithm(model, *inputs, **slots, **options); an absent
            optional input is passed as None, or as zero forces.
        slots: By slot, the Signature of its solver.
        fills: By slot, the default solver: a name, "auto" for the default solver of
            the slot's Signature, or a Solver.
        options: Options of the algorithm with their defaults.
        sizes: Returns named sizes of Ports that depend on options: sizes(model,
            options).
        valid: Rules for option values, see Solver.
        by_joint: Whether the algorithm takes coordinates split by joint; else it takes
            Vectors of independent coordinates.
        regrouped: Whether the algorithm may get a Model whose inertia was moved towards
            the base (model/assembly/regroup_inertia.py): correct where only joint
            forces, accelerations and H are outputs.
        closes_loops: Whether it satisfies the loop-closure constraints of a robot; else
            robots with loops are refused where forces or accelerations would be of the
            open tree.
        supports: Returns None for a supported robot, else the reason, which names the
            joint and valid alternatives; None if every robot is supported.
        source: Literature of the algorithm; default: "Source:" of its docstring.
        reference: Whether it exists for comparison with other solvers.
        origin, lookup, default: As in Solver.

    Raises:
        SignatureError: The algorithm does not take the Signature's inputs, slots and
            options.
    """

    name: str
    signature: Signature
    algorithm: Callable[..., Any]
    slots: Mapping[str, Signature] = field(default_factory=dict)
    fills: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    valid: Mapping[str, Any] = field(default_factory=dict)
    sizes: Callable[[Model, Mapping[str, Any]], Mapping[str, int]] = _no_sizes
    by_joint: bool = True
    regrouped: bool = False
    closes_loops: bool = False
    supports: Callable[[Model], str | None] | None = None
    source: str = ""
    reference: bool = False
    origin: str = ""
    lookup: Lookup | None = None
    default: bool = False

    def __post_init__(self) -> None:
        if not callable(self.algorithm):
            what = f"{self.name}: the algorithm is {shown(self.algorithm)}"
            raise SignatureError(f"{what}; valid: a function (model, *inputs)")
        doc = self.algorithm.__doc__ or ""
        if not self.source and "Source:" in doc:
            tail = doc[doc.index("Source:") + 7 :].strip()
            self.source = " ".join(tail.split("\n\n")[0].split())
        check_names(f"{self.name}: fills: no slot", self.fills, list(self.slots))
        if isinstance(self.signature, Signature):  # else the registry refuses it
            _check_parameters(self)

    def refusal(self, model: Model) -> str | None:
        """Return why this robot is not supported, with valid alternatives, or None.

        It is the result of `supports`; None if there is no such function. `build` may
        still refuse the robot: for its loops, or where a joint has no inertia.

        Raises:
            TraceError: `supports` raised an error that is not a DynError.
        """
        if self.supports is None:
            return None
        with named_errors(f"{self.name} ({self.origin})" if self.origin else self.name):
            return self.supports(model)

    def build(self, model: Any, *more: Any, **options: Any) -> Program[Any]:
        """Return a Program for a robot or another System.

        Args:
            model: System of the Signature's kind.
            more: Must be empty, else UnsupportedError: options have names.
            options: Options of every build (BuildOptions); slots (a solver's name or a
                Solver) and options of the algorithm.

        Raises:
            SignatureError: The solver has no Signature, or a slot is filled with a
                solver of another kind.
            SolverNotFound: The name of a solver for a slot is unknown.
            PluginError: Two plugins offer that name.
            UnsupportedError: An option or engine is unknown or invalid, or the System
                is of another kind or not supported.
            ModelError: A parameter path in `inputs` is unknown.
            TraceError, ShapeError: The algorithm cannot be traced, or returns outputs
                of a wrong number or size. Engines other than native raise them at a
                call.
            SettingError: An environment variable DYN_... has an invalid value.
        """
        if not isinstance(self.signature, Signature):
            what = f"{self.name}: the signature is {shown(self.signature)}"
            valid = "a Signature, such as dyn_core.problems.INVERSE_DYNAMICS"
            raise SignatureError(f"{what}; valid: {valid}")
        common, chosen = BuildOptions.parse(self, options, [*self.slots, *self.options])
        self.demand_kind(model, more)
        robot: Any = model.resisting(common.joint_friction, common.joint_springs)
        if common.dtype == "float32" and isinstance(robot, Model):
            robot = replace(robot, pivot=_PIVOT_FLOAT32)
        missing = model.missing(common.inputs)
        if missing is not None:
            raise UnsupportedError(f"{self.name}: {missing}")
        adapter = self._adapter(robot, common, chosen)
        sizes = self.sizes(model, adapter.options)
        inputs, outputs, paths = common.ports(model, self.signature, sizes)
        return ENGINES[common.engine or default_engine()](
            function=adapter.flat(robot, inputs, outputs, paths, common.finite),
            recipe=Recipe(self, model, dict(options)),
            signature=self.signature,
            inputs=inputs,
            outputs=outputs,
            defaults={
                port.name: model.value(port.name).reshape(port.shape)
                for port in inputs
                if port.name in paths
            },
            finite=common.finite,
            threads=common.threads,
            wait=common.wait,
            dtype=common.dtype,
        )

    def _adapter(
        self, model: Model, common: BuildOptions, chosen: Mapping[str, Any]
    ) -> Adapter:
        """Return the Adapter of the algorithm with its slots filled for a robot.

        `chosen` are slots and options of the algorithm that were given; others are
        default. Other names are ignored.
        """
        reason = (
            self.refusal(model)
            or _open(self, model)
            or self.lack(model, {**self.options, **chosen})
        )
        if reason is not None:
            raise UnsupportedError(f"{self.name}: {reason}")
        values = option_values(self, model, chosen)
        resists = self.signature.friction_at is not None
        passed = replace(common, f_ext_frame="body", matrices="dense")
        if resists:
            passed = replace(passed, joint_friction=False, joint_springs=False)
        slots = {}
        for slot, wanted in self.slots.items():
            solver = self._fill(slot, wanted, chosen.get(slot, self.fills.get(slot)))
            slots[slot] = _slot_filling(solver, model, passed)
        return Adapter(
            name=f"{self.name} ({self.origin})" if self.origin else self.name,
            algorithm=self.algorithm,
            signature=self.signature,
            by_joint=self.by_joint,
            slots=slots,
            options=values,
            joint_friction=common.joint_friction and resists,
            joint_springs=common.joint_springs and resists,
            f_ext_frame=common.f_ext_frame,
            regrouped=self.regrouped,
            matrices=common.matrices,
        )

    def filling(self, slot: str, model: Any, what: Any = None) -> Solver:
        """Return the solver that a slot has in a Program for a System.

        Args:
            slot: Name of the slot.
            model: System.
            what: Solver, name or "auto" that `build` gets for the slot; None: the
                default of the slot.

        Raises:
            UnsupportedError: There is no such slot, or a DefaultSolver in it cannot
                choose a solver with its changed options.
            SignatureError: `what` is not a Solver or solves another problem; it is None
                and the slot has no default; or it is a name and there is no registry.
            SolverNotFound: The name is unknown.
            PluginError: Two plugins offer the name.
        """
        check_names(f"{self.name}: unknown slot", [slot], list(self.slots))
        what = self.fills.get(slot) if what is None else what
        return self._fill(slot, self.slots[slot], what).for_model(model)

    def _fill(self, slot: str, wanted: Signature, what: Any) -> Solver:
        """Return the Solver for a slot; a name, or "auto" (default), is looked up.

        A solver of another Signature than `wanted` is refused.
        """
        if isinstance(what, str):
            if self.lookup is None:
                name = wanted.name if what == AUTO else what
                why = f"no plugin offers {self.name}; valid: dyn.solver('{name}')"
                raise SignatureError(f"{self.name}: slot {slot} is '{what}', but {why}")
            what = self.lookup(what, wanted)
        if not isinstance(what, Solver):
            why = f"needs a Solver, got {what!r}; valid: a Solver or its name here, or"
            why += f" as a default in fills={{'{slot}': ...}}"
            raise SignatureError(f"{self.name}: slot {slot} {why}")
        if what.signature != wanted:
            raise SignatureError(
                f"{self.name}: slot {slot} needs a solver of {wanted.name};"
                f" '{what.name}' solves {what.signature.name}"
            )
        return what


def _open(solver: TracedSolver, model: Model) -> str | None:
    """Return why a solver does not support a robot because of its loops, or None.

    It is also None if loops change the outputs of the Signature of a slot: the solver
    in that slot is checked itself.
    """
    if solver.closes_loops or model.kind != "robot" or not model.loops:
        return None
    if any(slot.of_trees for slot in solver.slots.values()):
        return None  # the solver in the slot is checked itself
    if not solver.signature.of_trees:
        return None
    names = ", ".join(loop.name for loop in model.loops)
    return (
        f"the robot has loops ({names}) and this is for trees; valid:"
        f" {_closing(solver, model)}model.without_loops(), the open tree"
    )


def _closing(solver: TracedSolver, model: Model) -> str:
    """Return "NAME; " of the default solver of the same problem that closes loops.

    Empty if there is none, or no plugin offers `solver`.
    """
    if solver.lookup is None:
        return ""
    try:
        other = solver.lookup(AUTO, solver.signature).for_model(model)
    except SolverNotFound:  # the problem has no default
        return ""
    return f"{other.name}; " if other.closes_loops else ""


def _slot_filling(
    solver: Solver, model: Any, common: BuildOptions
) -> Adapter | Program[Any] | Deferred:
    """Return a solver for a slot in the form in which an algorithm calls it.

    A TracedSolver becomes an Adapter, which is traced inline; a NumpySolver a Program;
    one for another kind of System a Deferred, unchecked. Slots and options of the
    solver have their defaults. Of the outer solver's build options a Program gets only
    friction and springs that change its outputs, and "f_ext" of `inputs`; another path
    is refused.
    """
    if solver.signature.system != model.kind:
        return Deferred(solver, _filling_of_another)
    solver = solver.for_model(model)
    if isinstance(solver, TracedSolver):
        return solver._adapter(model, replace(common, inputs=()), {})
    if any(path != "f_ext" for path in common.inputs):
        raise UnsupportedError(
            f"slot solver '{solver.name}' is a NumpySolver; parameter inputs"
            f" {', '.join(common.inputs)} cannot reach it"
        )
    keys = solver.signature.acting
    options: dict[str, Any] = {key: getattr(common, key) for key in keys}
    if "f_ext" in common.inputs:
        options["inputs"] = ("f_ext",)
    return solver.build(model, **options)


def _filling_of_another(
    solver: Solver, system: Any, **options: Any
) -> Adapter | Program[Any]:
    """Return the Adapter or Program of a slot's solver for another kind of System."""
    solver.demand_kind(system)
    solver = solver.for_model(system)
    if isinstance(solver, TracedSolver):
        names = (*solver.slots, *solver.options)
        common, chosen = BuildOptions.parse(solver, options, names)
        return solver._adapter(system, common, chosen)
    return solver.build(system, **options)


def _check_parameters(solver: TracedSolver) -> None:
    """Raise SignatureError if an algorithm does not take inputs, slots and options.

    It is called with the model and the inputs of the Signature by position, and with
    slots and options by keyword. A builtin without an inspectable signature is
    accepted.
    """
    try:
        taken = inspect.signature(solver.algorithm).parameters.values()
    except (TypeError, ValueError):
        return  # a builtin without a signature
    kinds = inspect.Parameter
    places = [x.name for x in taken if x.kind in _POSITIONAL]
    inputs = [port.name for port in solver.signature.inputs]
    keywords = [*solver.slots, *solver.options]
    call = ", ".join(["model", *inputs, *(f"{name}=..." for name in keywords)])
    starred = {x.kind for x in taken}
    first = [name for name in places if name not in keywords]
    problems = []
    if kinds.VAR_POSITIONAL not in starred and len(first) <= len(inputs):
        lacking = [x for x in inputs if x not in first] or inputs[len(first) - 1 :]
        problems.append(f"it takes no input {', '.join(lacking)}")
    if any(name in keywords for name in places[: len(inputs) + 1]) and not problems:
        problems.append("inputs come before slots and options")
    if kinds.VAR_KEYWORD not in starred:
        names = [x.name for x in taken if x.kind != kinds.POSITIONAL_ONLY]
        lacking = [name for name in keywords if name not in names]
        if lacking:
            problems.append(f"it takes no slot or option {', '.join(lacking)}")
    filled = {*first[: len(inputs) + 1], *keywords}
    empty = [
        x.name
        for x in taken
        if x.default is kinds.empty
        and x.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
        and x.name not in filled
    ]
    if empty:
        problems.append(f"nothing fills {', '.join(empty)}")
    if problems:
        name = getattr(solver.algorithm, "__name__", "algorithm")
        raise SignatureError(
            f"{solver.name}: the algorithm is called as {name}({call})"
            f" for {solver.signature.name}, but {'; '.join(problems)}"
        )
