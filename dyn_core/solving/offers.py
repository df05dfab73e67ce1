"""Checks of the objects that plugins offer; errors name the plugin and valid values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dyn_core.errors import PluginError
from dyn_core.problems import Signature
from dyn_core.problems.system import SystemKind
from dyn_core.solving.control_mode import GAINS, ControlMode, ModeTopic
from dyn_core.solving.solver import AUTO, Solver, is_function
from dyn_core.validation import Field

Law = Callable[[Any], Iterator[tuple[Any, Any]]]  # yields pairs that must agree


@contextmanager
def isolated(who: str, what: str) -> Iterator[None]:
    """Convert an exception inside a block into a PluginError that names the plugin.

    KeyboardInterrupt and a PluginError that names this plugin already pass unchanged.
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
    """Return a plugin's object as text by `show`, or its type where `show` raises."""
    try:
        return show(value)
    except Exception:
        return f"an object of {type(value).__name__} that cannot be shown"


def listed(offer: Any, hook: str, who: str) -> list[Any]:
    """Return the entries of a hook's offer; PluginError if it is not iterable."""
    if not isinstance(offer, Iterable):
        raise PluginError(f"{who}: {hook} gave {shown(offer)}; valid: a list", who)
    return list(offer)


def solvers(offer: Any, who: str) -> list[Solver]:
    """Return the Solvers in an offer of the hook dyn_solvers, checked.

    Args:
        offer: Return value of the hook.
        who: Distribution and module of the plugin.

    Raises:
        PluginError: The offer is not iterable, an object is not a Solver, a name is no
            ASCII identifier, occurs twice or is "auto", or a signature is not a
            Signature.
    """
    offered: list[Solver] = _named(offer, Solver, "solver", "dyn_solvers", who)
    for solver in offered:
        if solver.name == AUTO:
            raise PluginError(
                f"{who} offers a solver called '{AUTO}', which stands for the default"
                " solver of a problem; valid: another name",
                who,
            )
        if not isinstance(solver.signature, Signature):
            raise PluginError(
                f"{who} offers the solver '{solver.name}' of"
                f" {shown(solver.signature)}; valid: a Signature",
                who,
            )
    return offered


def refuse_second_default(
    known: Iterable[Solver], offered: Sequence[Solver], who: str
) -> None:
    """Raise PluginError if a problem would have two defaults for the same robots.

    These are two solvers with default=True, one Signature and equal closes_loops.
    """
    first: dict[tuple[Signature, bool], Solver] = {}
    for solver in (*known, *offered):
        if not solver.default:
            continue
        other = first.setdefault((solver.signature, solver.closes_loops), solver)
        if other is not solver:
            robots = "robots with loops" if solver.closes_loops else "trees"
            raise PluginError(
                f"{who} offers '{solver.name}' as the default solver of"
                f" {solver.signature.name} for {robots}, which is '{other.name}';"
                " valid: default=False",
                who,
            )


def new_problems(known: Any, offer: Any, who: str) -> dict[str, Signature]:
    """Return the checked Signatures offered by dyn_problems, by name."""
    return _new(known, offer, Signature, "problem", "dyn_problems", who)


def new_systems(known: Any, offer: Any, who: str) -> dict[str, SystemKind]:
    """Return the checked SystemKinds offered by dyn_systems, by name."""
    return _new(known, offer, SystemKind, "kind of system", "dyn_systems", who)


def new_modes(
    known: Mapping[str, ControlMode], offer: Any, who: str
) -> dict[str, ControlMode]:
    """Return the checked ControlModes offered by dyn_control_modes, by name."""
    modes = _new(known, offer, ControlMode, "mode", "dyn_control_modes", who)
    every = [*known.values()]
    for mode in modes.values():
        _check_mode(mode, who)
        owners = {field.name: each.name for each in every for field in each.parameters}
        for name in (field.name for field in mode.parameters):
            if name in owners:
                raise PluginError(
                    f"{who} offers the mode '{mode.name}' with the parameter '{name}'"
                    f" of mode '{owners[name]}'; valid: a name of its own",
                    who,
                )
        every.append(mode)
    return modes


def _check_mode(mode: ControlMode, who: str) -> None:
    """Raise PluginError if a part of a mode is invalid.

    Its problem, solver, law, a parameter or a topic has the wrong type, a gain is not
    one of GAINS, or two parameters have the same name. Gains, parameters or topics that
    are not iterable raise TypeError.
    """
    for part, fits, valid in (
        ("problem", isinstance(mode.problem, Signature), "a Signature"),
        ("solver", isinstance(mode.solver, str), "the name of a solver"),
        ("law", mode.law is None or is_function(mode.law), "a function, or None"),
        ("gains", set(mode.gains) <= set(GAINS), f"some of {', '.join(GAINS)}"),
        ("parameters", _all(mode.parameters, Field), "Fields"),
        ("topics", _all(mode.topics, ModeTopic), "ModeTopics"),
    ):
        if not fits:
            value = shown(getattr(mode, part))
            raise PluginError(
                f"{who} offers the mode '{mode.name}' with {part} {value};"
                f" valid: {valid}",
                who,
            )
    names = [field.name for field in mode.parameters]
    _refuse_twice(f"parameter of mode '{mode.name}'", names, who)


def _all(items: Any, kind: type) -> bool:
    """Return whether all items of a sequence are of a type; True for no items."""
    return all(isinstance(item, kind) for item in items)


def more_laws(
    known: Mapping[Signature, tuple[Law, ...]], offer: Any, who: str
) -> dict[Signature, tuple[Law, ...]]:
    """Return all laws, known, then new, of each problem in an offer of dyn_laws."""
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
    """Return offered objects by name, checked by _named; `known` names are refused."""
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
    """Return the offered objects of one type as a list, with valid and unique names.

    PluginError: one is not of the type, or its name is no ASCII identifier or occurs
    twice.
    """
    offered = listed(offer, hook, who)
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
    """Raise PluginError if a name occurs twice; `what` is the noun for the objects."""
    for name in names:
        if names.count(name) > 1:
            raise PluginError(f"{who} offers the {what} '{name}' twice", who)
