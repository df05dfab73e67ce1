"""Finds plugins, keeps a broken one from hurting the rest, looks solvers up by name."""

from __future__ import annotations

import importlib
import pkgutil
import threading
import warnings
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import pluggy

from dyn_core import hookspecs
from dyn_core.errors import PluginError, SolverNotFound
from dyn_core.signature import Signature
from dyn_core.solver import Solver

GROUP = "dyn_core"
OWN = ("dyn_plugins", "ros_nodes")


class Registry:
    """Plugins and their solvers.

    Built-ins and third parties come through the same entry points, group dyn_core: a
    module, or a package whose modules (without leading underscore) are all taken.
    Whatever fails is kept in `failures` and warned of once; the rest serves.
    """

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self.failures: list[PluginError] = []
        self._solvers: dict[str, Solver] = {}
        self._taken: dict[str, list[str]] = {}

    def load(self) -> None:
        """Load every installed plugin, the project's own first."""
        seen = set()
        found = sorted(entry_points(group=GROUP), key=lambda p: _package(p) not in OWN)
        for point in found:
            key = (point.name, point.value)
            if key not in seen:
                seen.add(key)
                self._load(point)

    def _load(self, point: EntryPoint) -> None:
        who = f"{point.dist.name if point.dist else 'unknown'} ({point.value})"
        try:
            plugin = point.load()
        except Exception as error:
            self._fail(who, f"cannot be loaded: {error!r}", error)
            return
        for module in self._modules(plugin, who):
            self._try(module, f"{who.split(' (')[0]} ({module.__name__})")

    def _modules(self, plugin: Any, who: str) -> Iterator[Any]:
        """Give the plugin itself and, of a package, each public module."""
        yield plugin
        for found in pkgutil.iter_modules(getattr(plugin, "__path__", ())):
            if found.name.startswith("_"):
                continue
            try:
                module = importlib.import_module(f"{plugin.__name__}.{found.name}")
            except Exception as error:
                self._fail(
                    who, f"module {found.name} cannot be loaded: {error!r}", error
                )
                continue
            yield from self._modules(module, who) if found.ispkg else (module,)

    def _try(self, plugin: Any, who: str) -> None:
        try:
            self.register(plugin, who)
        except PluginError as error:
            self.failures.append(error)
            warnings.warn(f"plugin left out: {error}", RuntimeWarning, stacklevel=2)

    def _fail(self, who: str, what: str, cause: Exception) -> None:
        error = PluginError(f"{who} {what}", who)
        error.__cause__ = cause
        self.failures.append(error)
        warnings.warn(f"plugin left out: {error}", RuntimeWarning, stacklevel=2)

    def register(self, plugin: Any, who: str | None = None) -> None:
        """Take a module or object with hook implementations.

        Raises:
            PluginError: An unknown hook, a failing hook, something that is no Solver,
                or a name that is taken. The plugin is then left out as a whole; a name
                offered twice serves neither, so that no robot moves by the wrong one.
        """
        default = getattr(plugin, "__name__", type(plugin).__name__)
        who = who or str(default)
        _check_hooks(plugin, who)
        self.manager.register(plugin, name=who)
        try:
            offered = self._offered(plugin, who)
        except PluginError:
            self.manager.unregister(plugin)
            raise
        taken = [
            s.name for s in offered if s.name in self._solvers or s.name in self._taken
        ]
        for name in taken:
            first = self._solvers.get(name)
            owners = self._taken.setdefault(name, [first.origin] if first else [])
            owners.append(who)
        if taken:
            self.manager.unregister(plugin)
            owners = self._taken[taken[0]]
            raise PluginError(
                f"{who} offers a solver '{taken[0]}' that {owners[0]} offers too;"
                " solver names must differ",
                who,
            )
        for offer in offered:
            self._solvers[offer.name] = offer.bound(who, solver)

    def _offered(self, plugin: Any, who: str) -> list[Solver]:
        """Call the plugin's own dyn_solvers hook."""
        function = getattr(plugin, "dyn_solvers", None)
        if function is None or not _is_hook(function):
            return []
        try:
            offered = list(function())
        except Exception as error:
            raise PluginError(f"{who}: dyn_solvers failed: {error!r}", who) from error
        for offer in offered:
            if not isinstance(offer, Solver):
                raise PluginError(
                    f"{who}: dyn_solvers gave {offer!r}, not a Solver", who
                )
        names = [offer.name for offer in offered]
        for name in names:
            if names.count(name) > 1:
                raise PluginError(f"{who} offers the solver '{name}' twice", who)
        return offered

    def solver(self, name: str | Solver) -> Solver:
        """Give the solver of a name; a Solver is given back as it is.

        Raises:
            SolverNotFound: Lists the known names and what failed to load.
            PluginError: Two plugins offer this name.
        """
        if isinstance(name, Solver):
            return name
        if name in self._taken:
            owners = " and ".join(self._taken[name])
            raise PluginError(f"the solver name '{name}' is offered by {owners}")
        if name not in self._solvers:
            raise SolverNotFound(name, self.names(), [str(e) for e in self.failures])
        return self._solvers[name]

    def names(self, signature: Signature | None = None) -> list[str]:
        """Give the names of all solvers, or of those of a Signature, sorted."""
        found = self._solvers.items()
        return sorted(n for n, s in found if signature in (None, s.signature))


def _package(point: EntryPoint) -> str:
    return point.value.partition(":")[0].partition(".")[0]


def _is_hook(function: Any) -> bool:
    return getattr(function, f"{hookspecs.PROJECT}_impl", None) is not None


def _check_hooks(plugin: Any, who: str) -> None:
    """Refuse hook implementations that no hook asks for."""
    known = {
        name
        for name in dir(hookspecs)
        if getattr(getattr(hookspecs, name), f"{hookspecs.PROJECT}_spec", None)
        is not None
    }
    for name in dir(plugin):
        if name.startswith("__") or name in known:
            continue
        value = getattr(plugin, name, None)
        own = not isinstance(plugin, ModuleType) or (
            getattr(value, "__module__", None) == plugin.__name__
        )
        if own and _is_hook(value):
            hooks = ", ".join(sorted(known))
            raise PluginError(f"{who}: no hook is called '{name}'; known: {hooks}", who)


_registry: Registry | None = None
_lock = threading.RLock()


def default_registry() -> Registry:
    """Give the Registry of the installed plugins, loaded at the first call."""
    global _registry
    with _lock:
        if _registry is None:
            fresh = Registry()
            fresh.load()
            _registry = fresh
    return _registry


def solver(name: str | Solver) -> Solver:
    """Give the installed solver of a name; see Registry.solver."""
    return default_registry().solver(name)


def solvers(signature: Signature | None = None) -> list[str]:
    """Give the names of all installed solvers, or of those of a Signature."""
    return default_registry().names(signature)
