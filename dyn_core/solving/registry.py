"""Registry of plugins: loads them, isolates broken ones, returns solvers by name."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, overload

import numpy as np
import pluggy

from dyn_core.engines import Results
from dyn_core.errors import (
    PluginError,
    SignatureError,
    SolverNotFound,
    renamed,
    unknown_name,
    warn,
)
from dyn_core.problems import Signature
from dyn_core.problems.system import SystemKind
from dyn_core.sharing import once
from dyn_core.solving import hookspecs, offers
from dyn_core.solving.control_mode import ControlMode
from dyn_core.solving.default_solver import DefaultSolver
from dyn_core.solving.hookspecs import BUILT_IN, LEFT_OUT
from dyn_core.solving.offers import Law, isolated
from dyn_core.solving.shipped_names import OneArray, SeveralArrays, WithNumbers
from dyn_core.solving.solver import AUTO, Solver
from dyn_core.validation import known_keywords, shown

GROUP = "dyn_core"


class Registry:
    """Plugins and their solvers.

    Built-in and third-party plugins are entry points of the group dyn_core: a module,
    or a package of which every module without leading underscore is loaded. An error of
    a plugin is stored in `failures` and reported by one warning; other plugins are not
    affected. A plugin that calls sys.exit has failed too; KeyboardInterrupt passes
    through.

    Attributes:
        failures: PluginErrors so far.
        manager: pluggy's manager of the plugins.
    """

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self.failures: list[PluginError] = []
        self._loaded: set[tuple[str, str]] = set()
        self._solvers: dict[str, Solver] = {}
        self._taken: dict[str, list[str]] = {}
        self._problems: dict[str, Signature] = {}
        self._problems_of: dict[str, tuple[str, ...]] = {}
        self._laws: dict[Signature, tuple[Law, ...]] | None = None
        self._systems: dict[str, SystemKind] | None = None
        self._modes: dict[str, ControlMode] | None = None

    def load(self) -> None:
        """Load every installed plugin, first the plugins of this project.

        Errors are stored in `failures` and warned of, not raised. A further call loads
        only plugins that were installed since; those that failed are not tried again.
        """
        points = entry_points(group=GROUP)
        for point in sorted(points, key=lambda point: _package(point) not in BUILT_IN):
            key = (point.name, point.value)
            if key not in self._loaded:
                self._loaded.add(key)
                self._load(point)

    def _load(self, point: EntryPoint) -> None:
        """Load and register the plugin of an entry point, and the modules of a package.

        Errors are stored in `failures` and warned of, not raised.
        """
        distribution = normalized(point.dist.name) if point.dist else "unknown"
        who = f"{distribution} ({point.value})"
        try:
            with isolated(who, "cannot be loaded"):
                plugin = point.load()
        except PluginError as error:
            self.report(error)
            return
        for module in self._modules(plugin, who):
            try:
                self.register(module, f"{distribution} ({_name(module)})")
            except PluginError as error:
                self.report(error)

    def _modules(self, plugin: Any, who: str) -> Iterator[Any]:
        """Yield the plugin itself and, for a package, each public module, recursively.

        A module that cannot be imported is skipped; its error is stored in `failures`
        and warned of.
        """
        yield plugin
        if not isinstance(plugin, ModuleType):
            return
        for entry in pkgutil.iter_modules(vars(plugin).get("__path__", ())):
            if entry.name.startswith("_"):
                continue
            try:
                with isolated(who, f"module {entry.name} cannot be loaded"):
                    module = importlib.import_module(f"{plugin.__name__}.{entry.name}")
            except PluginError as error:
                self.report(error)
                continue
            yield from self._modules(module, who) if entry.ispkg else (module,)

    def report(self, error: PluginError) -> None:
        """Store an error of a plugin in `failures` and issue a RuntimeWarning.

        Where warnings are errors, it is printed to stderr instead. Nothing happens if
        an error with the same message is stored already.
        """
        if str(error) not in map(str, self.failures):
            self.failures.append(error)
            warn(f"{LEFT_OUT}: {error}")

    def register(self, plugin: Any, who: str | None = None) -> None:
        """Register a module or object with hook implementations.

        Only dyn_problems and dyn_solvers are called; the other hooks are called when
        their offers are needed.

        Args:
            plugin: Module or object.
            who: Distribution and module, its name in `manager` and in messages; None:
                the name of the module, or of the object's class.

        Raises:
            PluginError: It or its name `who` is registered already; a hook is unknown
                or has unknown arguments; one of the two fails or offers an invalid
                object, a name that is in use or a second default of a problem for the
                same robots (with or without loops). It is then not registered. A solver
                name that another plugin offers is from then on refused by `solver`, so
                that no robot moves by the wrong solver.
        """
        who = who or _name(plugin)
        if self._has(plugin):
            raise PluginError(f"{who} is registered already", who)
        try:
            with isolated(who, "has hooks that cannot be used"):
                _check_hooks(plugin, who)
                self.manager.register(plugin, name=who)
            with isolated(who, "dyn_problems failed"):
                offer = _call(plugin, "dyn_problems")
                problems = offers.new_problems(self._problems, offer, who)
            with isolated(who, "dyn_solvers failed"):
                offer = offers.listed(_call(plugin, "dyn_solvers"), "dyn_solvers", who)
            with isolated(who, "offers a Solver that cannot be used"):
                offered = offers.solvers(offer, who)
                self._refuse_taken([offer.name for offer in offered], who)
                offers.refuse_second_default(self._solvers.values(), offered, who)
                bound = {offer.name: offer.bound(who, solver) for offer in offered}
        except BaseException:
            if self._has(plugin):
                self.manager.unregister(plugin)
            raise
        self._solvers.update(bound)
        self._problems.update(problems)
        self._problems_of[who] = tuple(problems)
        self._laws = self._systems = self._modes = None

    def unregister(self, plugin: Any) -> None:
        """Remove a plugin with all its offers.

        A solver name that both it and another plugin offered is unknown afterwards; the
        other plugin was left out and stays so.

        Raises:
            PluginError: It is not registered.
        """
        who = self.manager.get_name(plugin) if self._has(plugin) else None
        if who is None:
            raise PluginError(f"{_name(plugin)} is not registered", _name(plugin))
        self.manager.unregister(plugin)
        for name, owned in list(self._solvers.items()):
            if owned.origin == who:
                del self._solvers[name]
        for name, owners in list(self._taken.items()):
            if who in owners:
                del self._taken[name]  # the other plugin is not registered either
        for name in self._problems_of.pop(who):
            del self._problems[name]
        self._laws = self._systems = self._modes = None

    def _has(self, plugin: Any) -> bool:
        """Check whether this object is registered as a plugin."""
        return any(plugin is known for known in self.manager.get_plugins())

    def _refuse_taken(self, names: list[str], who: str) -> None:
        """Raise PluginError if another plugin offers a solver of one of these names.

        Such names are recorded first; `solver` then refuses them.
        """
        taken = [name for name in names if name in self._solvers or name in self._taken]
        for name in taken:
            first = self._solvers.get(name)
            owners = self._taken.setdefault(name, [first.origin] if first else [])
            owners.append(who)
        if taken:
            owners = self._taken[taken[0]]
            raise PluginError(
                f"{who} offers a solver '{taken[0]}' that {owners[0]} offers too;"
                " solver names must differ",
                who,
            )

    def commands(self) -> list[pluggy.HookImpl]:
        """Return the dyn_commands hooks of the registered plugins, uncalled.

        They are in loading order. No plugins are loaded here; `load` does that.
        """
        return self._hooks("dyn_commands")

    def _hooks(self, name: str) -> list[pluggy.HookImpl]:
        """Return registered plugins' implementations of a hook, in loading order."""
        hooks = getattr(self.manager.hook, name).get_hookimpls()
        known = [name for name, _ in self.manager.list_name_plugin()]
        return sorted(hooks, key=lambda hook: known.index(hook.plugin_name))

    def solver(
        self, name: str | Solver, signature: Signature | str | None = None
    ) -> Solver:
        """Return the solver of a name; a Solver is returned unchanged.

        The name of a problem stands for its default solver (DefaultSolver), unless a
        solver has this name; "auto" stands for the default solver of `signature`. The
        former name of a solver finds it, with a DeprecationWarning.

        Args:
            name: Name of a solver or of a problem, "auto", or a Solver.
            signature: Kind of problem that it should solve, or its name; needed for
                "auto". Otherwise only the error for an unknown name depends on it,
                which then lists only solvers of this kind: a solver of another kind is
                returned as well.

        Raises:
            SolverNotFound: The name is unknown, or the problem has no default solver;
                lists near names and failed plugins.
            SignatureError: `name` is neither a name nor a Solver, `signature` is
                unknown, or "auto" comes without `signature`.
            PluginError: Two plugins offer this name.
        """
        if isinstance(name, Solver):
            return name
        if not isinstance(name, str):
            raise SignatureError(f"a solver is a name or a Solver, got {shown(name)}")
        wanted = None if signature is None else self.problem(signature)
        if name in self._taken:
            owners = " and ".join(self._taken[name])
            raise PluginError(f"the solver name '{name}' is offered by {owners}")
        if name in self._solvers:
            return self._solvers[name]
        if name == AUTO and wanted is None:
            raise SignatureError(
                f"'{AUTO}' is the default solver of a problem; valid: '{AUTO}' with a"
                " signature, or the name of the problem"
            )
        problem = wanted if name == AUTO else self._problems.get(name)
        default = None if problem is None else self.default(problem)
        if default is not None:
            return default
        for each in self._solvers.values():
            if each.former and each.former == name:
                renamed("solver", name, each.name)
                return each
        wanted = wanted or problem
        known = self._of_signature(wanted, references=True)
        if wanted is None:  # names of problems stand for their default solvers
            known += [x for x, each in self._problems.items() if self.default(each)]
        failures = [str(error) for error in self.failures]
        raise SolverNotFound(name, known, failures, wanted.name if wanted else "")

    def default(self, problem: Signature) -> DefaultSolver | None:
        """Return the default solver of a problem.

        It is None if no registered solver of the problem has default=True. Its `lookup`
        is the function `solver` of this module, which searches the installed plugins,
        not this Registry.
        """
        marked = [
            each
            for each in self._solvers.values()
            if each.default and each.signature == problem
        ]
        return DefaultSolver(problem, marked, solver) if marked else None

    def problem(self, name: str | Signature) -> Signature:
        """Return the kind of problem of a name; a Signature is returned unchanged.

        Args:
            name: Signature, or a name in upper or lower case; of names that differ in
                case only, an equal one prevails.

        Raises:
            SignatureError: No plugin offers a problem of this name; lists near names.
        """
        if isinstance(name, Signature):
            return name
        known = {key.lower(): each for key, each in self._problems.items()}
        known |= self._problems
        if problem := known.get(str(name)) or known.get(str(name).lower()):
            return problem
        raise SignatureError(unknown_name("problem", name, sorted(self._problems)))

    def problems(self) -> list[Signature]:
        """Return the kinds of problem registered so far, sorted by name."""
        return [self._problems[name] for name in sorted(self._problems)]

    def laws(self, problem: str | Signature) -> tuple[Law, ...]:
        """Return the laws that every solver of a kind of problem must satisfy.

        The first call after a change of plugins calls their hooks dyn_laws; a plugin
        whose hook fails is left out, stored in `failures` and warned of.

        Args:
            problem: Signature, or its name in upper or lower case.

        Raises:
            SignatureError: No plugin offers a problem of this name.
            PluginError: No plugin offers this Signature, or no law of it.
        """
        problem = self.problem(problem)
        if self._problems.get(problem.name) != problem:
            known = ", ".join(sorted(self._problems))
            raise PluginError(
                f"no plugin offers the problem '{problem.name}' (hook dyn_problems);"
                f" known: {known}"
            )
        laws = self._laws
        if laws is None:
            laws = self._laws = self._collected("dyn_laws", offers.more_laws)
        if problem not in laws:
            raise PluginError(
                f"no plugin offers a law of the problem '{problem.name}';"
                " valid: one or more by the hook dyn_laws"
            )
        return laws[problem]

    def system(self, name: str) -> SystemKind:
        """Return the SystemKind of a name.

        The first call after a change of plugins calls their hooks dyn_systems; a plugin
        whose hook fails is left out, stored in `failures` and warned of.

        Raises:
            PluginError: No plugin offers it; lists the known ones.
        """
        systems = self._systems
        if systems is None:
            systems = self._collected("dyn_systems", offers.new_systems)
            self._systems = systems
        if name not in systems:
            known = ", ".join(sorted(systems))
            raise PluginError(
                f"no plugin offers the kind of system '{name}' (hook dyn_systems);"
                f" known: {known}"
            )
        return systems[name]

    def modes(self) -> dict[str, ControlMode]:
        """Return the modes of the controller by name, in the order of their offers.

        The first call after a change of plugins calls their hooks dyn_control_modes; a
        plugin whose hook fails is left out, stored in `failures` and warned of. The
        dict is new at each call.
        """
        if self._modes is None:
            self._modes = self._collected("dyn_control_modes", offers.new_modes)
        return dict(self._modes)

    def _collected(
        self, hook: str, read: Callable[..., dict[Any, Any]]
    ) -> dict[Any, Any]:
        """Call a hook of all plugins and return the entries of their offers in a dict.

        A plugin whose hook fails, or whose offer has an invalid object, is reported and
        none of its entries is returned. read(collected, offer, who) checks the offer of
        one plugin and returns its entries; `collected` has those of earlier plugins.
        """
        collected: dict[Any, Any] = {}
        for offer in self._hooks(hook):
            who = offer.plugin_name
            try:
                with isolated(who, f"{hook} failed"):
                    collected.update(read(collected, offer.function(), who))
            except PluginError as error:
                self.report(error)
        return collected

    def names(
        self, signature: Signature | str | None = None, references: bool = False
    ) -> list[str]:
        """Return the names of all solvers, or of the solvers of one problem, sorted.

        Args:
            signature: Signature or its name; None for all problems.
            references: Whether reference solvers are included.

        Raises:
            SignatureError: The problem is unknown.
        """
        problem = None if signature is None else self.problem(signature)
        return self._of_signature(problem, references)

    def _of_signature(self, signature: Signature | None, references: bool) -> list[str]:
        """Return the sorted names of the solvers of a Signature; None for all."""
        return sorted(
            name
            for name, solver in self._solvers.items()
            if signature in (None, solver.signature)
            and (references or not solver.reference)
        )


def _call(plugin: Any, hook: str) -> Any:
    """Return the result of a plugin's hook; () if it does not implement the hook."""
    function = getattr(plugin, hook, None)
    return function() if function is not None and _is_hook(function) else ()


def _name(plugin: Any) -> str:
    """Return the name of a module, or the class name of another object."""
    name = getattr(plugin, "__name__", None)
    return name if isinstance(name, str) else type(plugin).__name__


def normalized(distribution: str) -> str:
    """Return a distribution's name as in wheels (PEP 503): lower case, underscores."""
    return re.sub(r"[-_.]+", "_", distribution).lower()


def _package(point: EntryPoint) -> str:
    """Return the top-level package of an entry point."""
    return point.value.partition(":")[0].partition(".")[0]


def _is_hook(function: Any) -> bool:
    """Check whether a function is marked by `hookimpl`."""
    return getattr(function, f"{hookspecs.PROJECT}_impl", None) is not None


def _check_hooks(plugin: Any, who: str) -> None:
    """Raise PluginError for a hook without `hookimpl`, or a marked name of no hook.

    Functions that a module imports from other modules are ignored.
    """
    hooks = [
        name
        for name in dir(hookspecs)
        if hasattr(getattr(hookspecs, name), f"{hookspecs.PROJECT}_spec")
    ]
    for name in dir(plugin):
        if name.startswith("__"):
            continue
        value = getattr(plugin, name, None)
        defined_there = not isinstance(plugin, ModuleType) or (
            getattr(value, "__module__", None) == plugin.__name__
        )
        if not defined_there:
            continue
        if name in hooks and callable(value) and not _is_hook(value):
            raise PluginError(f"{who}: {name} is not marked; valid: @hookimpl", who)
        if name not in hooks and _is_hook(value):
            raise PluginError(f"{who}: {unknown_name('hook', name, hooks)}", who)


def default_registry() -> Registry:
    """Return the Registry of the installed plugins; the first call loads them."""
    return _installed()


@once
def _installed() -> Registry:
    registry = Registry()
    registry.load()
    return registry


# A name of this project's solvers returns its own solver or, if offered twice, raises.
# So the type of results is known. Another Registry may have other solvers of this name.
@overload
def solver(
    name: OneArray, signature: Signature | str | None = None
) -> Solver[np.ndarray]: ...
@overload
def solver(
    name: SeveralArrays, signature: Signature | str | None = None
) -> Solver[Results]: ...
@overload
def solver(
    name: WithNumbers, signature: Signature | str | None = None
) -> Solver[Results[Any]]: ...
@overload
def solver(name: str | Solver, signature: Signature | str | None = None) -> Solver: ...
@known_keywords
def solver(name: str | Solver, signature: Signature | str | None = None) -> Solver:
    """Return the installed solver of a name, or the default solver of a problem.

    `solver("forward_dynamics")` builds aba, and for a robot with loops aba_loops. The
    method `for_model` of this result returns the solver that is chosen for a robot.

    Args:
        name: Name of a solver; name of a problem, for its default solver, unless a
            solver has this name; or "auto", for the default solver of `signature`. A
            Solver is returned unchanged.
        signature: Kind of problem that it should solve, or its name; needed for "auto".
            Otherwise only the error for an unknown name depends on it, which then lists
            only solvers of this kind: a solver of another kind is returned as well.

    Raises:
        SolverNotFound: The name is unknown, or the problem has no default solver; lists
            near names and failed plugins.
        SignatureError: `name` is neither a name nor a Solver, `signature` is unknown,
            or "auto" comes without `signature`.
        PluginError: Two plugins offer this name.
        SettingError: A keyword is unknown.
    """
    return default_registry().solver(name, signature)


@known_keywords
def solvers(
    signature: Signature | str | None = None, references: bool = False
) -> list[str]:
    """Return the names of all installed solvers, or of the solvers of one problem.

    The names are sorted.

    Args:
        signature: Kind of problem, such as dyn.problems.FORWARD_DYNAMICS or
            "forward_dynamics"; None for all.
        references: Whether reference solvers (original forms of the sources, baselines)
            are included.

    Raises:
        SignatureError: The problem is unknown.
        SettingError: A keyword is unknown.
    """
    return default_registry().names(signature, references)


def solver_of(name: str | Solver, *problems: Signature) -> Solver:
    """Return the solver of a name, which must solve one of some problems.

    The name of a problem stands for its default solver, "auto" for that of the first
    problem.
    """
    chosen = default_registry().solver(name, problems[0])
    if chosen.signature not in problems:
        valid = ", ".join(x for problem in problems for x in solvers(problem))
        wanted = " or ".join(problem.name for problem in problems)
        solved = f"'{chosen.name}' solves {chosen.signature.name}"
        raise SignatureError(f"{solved}, not {wanted}; valid: {valid}")
    return chosen
