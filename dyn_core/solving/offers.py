"""Checks of what plugins offer: each refusal names the plugin and what is valid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dyn_core.errors import PluginError
from dyn_core.problems import Signature
from dyn_core.problems.system import SystemKind
from dyn_core.solving.solver import Solver

Law = Callable[[Any], Iterator[tuple[Any, Any]]]  # of a case: pairs that must agree


@contextmanager
def isolated(who: str, what: str) -> Iterator[None]:
    """Turn whatever a plugin raises into a PluginError; Ctrl-C goes through.

    Args:
        who: Distribution and module.
        what: What it failed at.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a plugin does not end the process
        if isinstance(error, PluginError) and error.plugin == who:
            raise
        reason = " ".join(shown(error, str).split())
        message = f"{who} {what}: {type(error).__name__}: {reason}"
        raise PluginError(message, who) from error


def shown(value: Any, show: Callable[[Any], str] = repr) -> str:
    """Return a plugin's object as text, even where its own repr fails."""
    try:
        return show(value)
    except Exception:
        return f"an object of {type(value).__name__} that cannot be shown"


def solvers(offer: Any, who: str) -> list[Solver]:
    """Return what dyn_solvers returned, checked.

    Raises:
        PluginError: Something is no Solver, or would spoil the list of all solvers.
    """
    offered: list[Solver] = _named(offer, Solver, "solver", "dyn_solvers", who)
    for solver in offered:
        if not isinstance(solver.signature, Signature):
            raise PluginError(
                f"{who} offers the solver '{solver.name}' of"
                f" {shown(solver.signature)}; valid: a Signature",
                who,
            )
    return offered


def new_problems(known: Any, offer: Any, who: str) -> dict[str, Signature]:
    """Return the problems that dyn_problems returned, by name, none of them known."""
    return _new(known, offer, Signature, "problem", "dyn_problems", who)


def new_systems(known: Any, offer: Any, who: str) -> dict[str, SystemKind]:
    """Return the kinds of System that dyn_systems returned, none of them known."""
    return _new(known, offer, SystemKind, "kind of system", "dyn_systems", who)


def more_laws(
    known: Mapping[Signature, tuple[Law, ...]], offer: Any, who: str
) -> dict[Signature, tuple[Law, ...]]:
    """Return the laws of the problems of which dyn_laws returned some, all of them."""
    if not isinstance(offer, Mapping):
        raise PluginError(
            f"{who}: dyn_laws gave {shown(offer)};"
            " valid: a mapping of Signatures to lists of functions",
            who,
        )
    offered = {}
    for problem, functions in offer.items():
        if not isinstance(problem, Signature):
            raise PluginError(
                f"{who}: dyn_laws gave laws of {shown(problem)}; valid: a Signature",
                who,
            )
        laws = (*known.get(problem, ()), *functions)
        for law in laws:
            if not callable(law) or not isinstance(getattr(law, "__name__", 0), str):
                raise PluginError(
                    f"{who} offers {shown(law)} as a law of {problem.name};"
                    " valid: a function of a case that yields pairs",
                    who,
                )
        _refuse_twice(f"law of {problem.name}", [law.__name__ for law in laws], who)
        offered[problem] = laws
    return offered


def _new(
    known: Any, offer: Any, kind: type, what: str, hook: str, who: str
) -> dict[str, Any]:
    """Return offered objects by name; one that is known spoils the offer."""
    offered = {item.name: item for item in _named(offer, kind, what, hook, who)}
    for name in offered:
        if name in known:
            raise PluginError(
                f"{who} offers a {what} '{name}' that there is already;"
                " valid: a name of its own",
                who,
            )
    return offered


def _named(offer: Any, kind: type, what: str, hook: str, who: str) -> list[Any]:
    """Return a list of objects of a type, with names of their own."""
    offered = list(offer)
    for item in offered:
        if not isinstance(item, kind):
            raise PluginError(
                f"{who}: {hook} gave {shown(item)}, not a {kind.__name__}", who
            )
        name = item.name  # type: ignore[attr-defined]
        if not isinstance(name, str) or not (name.isidentifier() and name.isascii()):
            raise PluginError(
                f"{who} offers a {what} called {shown(name)};"
                " valid: letters a-z, digits and underscores, no digit first",
                who,
            )
    _refuse_twice(what, [item.name for item in offered], who)
    return offered


def _refuse_twice(what: str, names: list[str], who: str) -> None:
    """Refuse a name that stands in a list twice."""
    for name in names:
        if names.count(name) > 1:
            raise PluginError(f"{who} offers the {what} '{name}' twice", who)
