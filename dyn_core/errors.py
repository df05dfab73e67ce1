"""All exceptions of the project; messages name fault, location and valid values."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from dyn_core.known_words import LISTED_BY, MEANT, OTHER_NAMES, SYNONYMS

SHOWN = 12  # maximum number of valid names in a message
_NAMES = 300  # and, where they are shortened, characters of all of them
LONGEST = 600  # maximum characters of a message on one line
MOST = 4000  # maximum characters of any message
_INSIDE = sys.stdlib_module_names | {"dyn_core", "dyn_plugins", "ros_nodes"}
_RUN = 200  # maximum characters of a word in a message
_LONG = re.compile(rf"\S{{{_RUN + 1},}}")


def cut(message: str) -> str:
    """Return a message of at most MOST (4000) characters, words above 200 shortened.

    The reason: quoted names and values of files and parameters can have any length.
    """
    if len(message) <= _RUN:
        return message
    text = _LONG.sub(lambda run: f"{run[0][:150]}...{run[0][-40:]}", message)
    return text if len(text) <= MOST else f"{text[: MOST - 4]} ..."


def one_line(message: str) -> str:
    """Return a message on one line of at most LONGEST (600) characters, see `cut`.

    Characters that are not printable, such as line ends of a file, become escapes.
    """
    if len(message) <= _RUN and message.isprintable():
        return message
    text = cut(message)[: 4 * LONGEST]
    clean = "".join(x if x.isprintable() else ascii(x)[1:-1] for x in text)
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 4]} ..."


def unknown_name(
    kind: str,
    name: object,
    valid: Iterable[str],
    purpose: str = "",
    limit: int | None = SHOWN,
) -> str:
    """Return the sentence for an unknown name: the nearest valid ones, then the list.

        no KIND is called 'NAME'; did you mean 'A'? valid for PURPOSE: A, B, ...

    The table MEANT has sentences for some unknown names; such a sentence stands in
    place of the nearest names. In the list, names that begin with the unknown one, or
    with its first component before a dot, come first; else it is ordered as `valid`.

    Args:
        kind: Noun for the name: solver, link, build option, ...
        name: The unknown name.
        valid: All valid names; "none" is listed if there are none.
        purpose: Restriction of the valid names ("valid for PURPOSE"); empty for none.
        limit: Maximum number of listed names, of 300 characters in all; None for all. A
            shortened list ends with the command that prints all names of this kind, if
            there is one.
    """
    names = list(dict.fromkeys(valid))
    guess = guesses(name, names)
    group = str(name).split(".")[0] + "."  # for gains.kp: "gains.", as gains.JOINT.p
    names.sort(key=lambda x: not (_begins(x, str(name)) or x.startswith(group)))
    listed = [one_line(x) for x in names[:limit]]
    while limit is not None and len(", ".join(listed)) > _NAMES and len(listed) > 1:
        listed.pop()
    shown, cut = ", ".join(listed) or "none", len(listed) < len(names)
    command = LISTED_BY.get(kind.split()[-1], "").replace("PROBLEM", purpose).rstrip()
    more = f", ... ({len(names)} in all{command and f': {command}'})" if cut else ""
    what = f" for {purpose}" if purpose else ""
    called = one_line(str(name)[:_RUN])
    return f"no {kind} is called '{called}'{guess} valid{what}: {shown}{more}"


def guesses(name: object, valid: Sequence[str], limit: int = 3) -> str:
    """Return what follows an unknown name in a message, up to the list of valid names.

    It is "; SENTENCE;" if MEANT has one for this name and a name in `valid`, else
    "; did you mean 'A' or 'B'?" with the names of `nearest`, or ";" without such.
    """
    spellings = {str(name), str(name).lower()}
    for where, these, sentence in MEANT:
        if where in valid and spellings.intersection(these):
            return f"; {sentence};"
    near = [repr(one_line(x)) for x in nearest(name, valid, limit)]
    return f"; did you mean {' or '.join(near)}?" if near else ";"


def why_unread(error: Exception) -> str:
    """Return why a file cannot be opened: words of the system, or an invalid path."""
    return getattr(error, "strerror", None) or "no path has such characters"


def why_no_json(error: Exception) -> str:
    """Return why text is not valid JSON, with line and column where known.

    Any error but JSONDecodeError and RecursionError means a number of too many digits.
    """
    if isinstance(error, RecursionError):
        return "lists and objects are nested too deep"
    line, column = getattr(error, "lineno", 0), getattr(error, "colno", 0)
    reason = getattr(error, "msg", "a number has too many digits")
    return f"line {line}, column {column}: {reason}" if line else str(reason)


def nearest(name: object, valid: Iterable[str], limit: int = 3) -> list[str]:
    """Return up to `limit` valid names similar to `name`, best first; may be empty.

    Synonyms of `name` come first, then the name that differs only in case, names that
    begin with `name`, and those with similar spelling; where there are none, those that
    `name` begins with, as "sim" for "simulate". Case is ignored, except where synonyms
    are looked up; of valid names that differ only in case the first one counts.
    """
    called, same = str(name), str(name)[:_RUN].lower()
    folded: dict[str, str] = {}
    for known in valid:
        folded.setdefault(known[:_RUN].lower(), known)
    synonyms = [x for group in SYNONYMS if called in group for x in group]
    first = [x for x in (*map(str.lower, synonyms), same) if x in folded]
    longer = [x for x in folded if _begins(x, called)]
    cutoff = 0.6 if len(called) > 2 else 0.5  # one of two letters is wrong: qo for q0
    close = get_close_matches(same, folded, limit, cutoff)
    shorter = [x for x in folded if len(x) > 2 and same.startswith(x)]
    near = dict.fromkeys([*first, *longer, *close] or shorter)
    return [folded[x] for x in near][:limit]


class UnknownAttribute(AttributeError):
    """An object has no such attribute; the message names near ones when it is read.

    `hasattr` and `getattr` with a default ask in vain for many names: neither the
    attributes are listed then, nor near ones searched. `otherwise` is the sentence for
    a name that is near none.
    """

    def __init__(self, owner: object, name: str, otherwise: str = "") -> None:
        super().__init__(owner, name, otherwise)

    def __str__(self) -> str:
        owner, name, otherwise = self.args
        valid = [x for x in dir(owner) if not x.startswith("_")]
        guess = guesses(name, valid).strip("; ") or otherwise or "dir() lists all"
        return f"'{type(owner).__name__}' object has no attribute '{name}'; {guess}"

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)  # the object does not go along


class NearAttributes:
    """Base of classes whose unknown attributes lead to near ones, else to OTHERWISE."""

    __slots__ = ()
    OTHERWISE = ""

    if not TYPE_CHECKING:  # with __getattr__, type checkers would accept any name

        def __getattr__(self, name: str) -> Any:
            """Raise UnknownAttribute; for __NAME__ or a property its AttributeError."""
            if name.startswith("__") or hasattr(type(self), name):
                return object.__getattribute__(self, name)
            raise UnknownAttribute(self, name, self.OTHERWISE)


class FixedAttributes:
    """Base of classes whose objects get no further attributes once `_fixed` is True.

    Setting a property that has no setter, or a new name that begins with no underscore,
    raises an AttributeError that ends with OTHERWISE: what to use instead.
    """

    OTHERWISE = ""
    _fixed = False

    if not TYPE_CHECKING:  # with __setattr__, type checkers would accept any name

        def __setattr__(self, name: str, value: Any) -> None:
            """Set an attribute; AttributeError for one that would change nothing."""
            if name not in self.__dict__:
                self._check_new(name)
            object.__setattr__(self, name, value)

    def _check_new(self, name: str) -> None:
        """Raise an AttributeError unless this further attribute may be set."""
        kind, known = type(self), getattr(type(self), name, None)
        if isinstance(known, property) and known.fset is None:
            fault = f"'{name}' of a '{kind.__name__}' object cannot be set;"
        elif self._fixed and name[:1] != "_" and not hasattr(kind, name):
            public = [x for x in self.__dict__ if x[:1] != "_"]
            fault = f"'{kind.__name__}' object has no attribute '{name}'"
            fault += guesses(name, public)
        else:
            return
        raise AttributeError(f"{fault} {self.OTHERWISE}")


def _begins(known: str, name: str) -> bool:
    """Check whether `known` begins with `name`, ignoring case; False for ""."""
    return bool(name) and known.lower().startswith(name[:_RUN].lower())


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning that names the user's line: outside of dyn_ros and Python."""
    frame, name = sys._getframe(1), "__name__"
    while frame.f_back and str(frame.f_globals.get(name)).split(".")[0] in _INSIDE:
        frame = frame.f_back
    scope, code = frame.f_globals, frame.f_code
    where = code.co_filename, frame.f_lineno, scope.get(name)
    seen = scope.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, *where, seen)


def warn(message: str) -> None:
    """Issue a DynWarning; where warnings are errors, print it to stderr instead."""
    try:
        warn_user(message, DynWarning)
    except DynWarning:
        print(f"warning: {message}", file=sys.stderr)


def renamed(what: str, old: str, new: str) -> str:
    """Return the sentence about a name that changed, and issue a DeprecationWarning.

    Where warnings are errors it is not issued: the old name is still valid.
    """
    message = (
        f"the {what} '{old}' is now '{new}'; the old name goes with the next release"
    )
    with contextlib.suppress(DeprecationWarning):
        warn_user(message, DeprecationWarning)
    return message


class DynError(Exception):
    """Base of all errors that dyn_ros raises on purpose.

    Long words and long messages are shortened; see `cut`.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(cut(str(message)))


class ModelError(DynError, ValueError):
    """A robot description is invalid; the message names the element.

    Attributes:
        element: Name of the link, joint or tag at fault, or None.
    """

    def __init__(self, message: str, element: str | None = None) -> None:
        super().__init__(one_line(message))
        self.element = element


class DynWarning(RuntimeWarning):
    """A warning of `warn` for the user; the `dyn` commands print it as one line."""


class ModelWarning(UserWarning):
    """A doubtful property of a loaded robot; model.warnings lists all of them."""


class ShapeError(DynError, ValueError):
    """An array or argument has the wrong shape, type or count.

    Attributes:
        name: The input or output at fault.
        wanted: The valid shape or type, in words.
        got: The actual shape or type, in words.
    """

    def __init__(self, name: str, wanted: str, got: str) -> None:
        super().__init__(f"{name}: wanted {wanted}, got {got}")
        self.name, self.wanted, self.got = name, wanted, got

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.wanted, self.got)


class SolverNotFound(DynError, LookupError):
    """No solver has this name; the message lists near names and plugins that failed.

    Attributes:
        name: The requested name.
        known: Valid names.
        failures: Messages of plugins that failed to load.
        problem: Name of the requested Signature; empty for any.
    """

    def __init__(
        self,
        name: str,
        known: Sequence[str],
        failures: Sequence[str] = (),
        problem: str = "",
    ) -> None:
        message = unknown_name("solver", name, known, problem)
        if not problem:
            message += f"; {OTHER_NAMES}"
        if failures:
            message += "; plugins that failed to load: " + "; ".join(failures)
        super().__init__(message)
        self.name, self.known, self.failures = name, tuple(known), tuple(failures)
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.known, self.failures, self.problem)


class PluginError(DynError):
    """A plugin cannot be loaded, offers a name that is in use, or fails in a hook.

    Attributes:
        plugin: Distribution and module of the plugin; or None.
    """

    def __init__(self, message: str, plugin: str | None = None) -> None:
        super().__init__(message)
        self.plugin = plugin


class SignatureError(DynError, TypeError):
    """A solver or problem of one kind was given where another kind is needed."""


class UnsupportedError(DynError, ValueError):
    """A solver, engine or option cannot be used for this model or call."""


class FrameMismatchError(DynError, ValueError):
    """Two spatial quantities with different frame labels were combined."""


class TraceError(DynError, TypeError):
    """An algorithm did something that cannot be traced; names solver, file and line.

    Attributes:
        solver: Solver and, in brackets, its plugin; None if not known.
    """

    def __init__(self, message: str, solver: str | None = None) -> None:
        super().__init__(message if solver is None else f"{solver}: {message}")
        self.solver = solver

    def __reduce__(self) -> tuple[Any, ...]:
        return _trace_error, (str(self), self.solver)


def _trace_error(message: str, solver: str | None) -> TraceError:
    """Return a TraceError with exactly this message; used by pickle."""
    error = TraceError(message)
    error.solver = solver
    return error


class CompileError(DynError, RuntimeError):
    """Machine code cannot be compiled, loaded or linked, here or for an export."""


class RowError(DynError):
    """A state (rows None), or those of a batch with indices `rows`, have no result."""

    rows: tuple[int, ...] | None

    def of_rows(self, rows: Sequence[int] | None) -> RowError:
        """Return a copy of the error for other rows; None stands for a single state."""
        raise NotImplementedError


class NonFiniteError(RowError, ValueError):
    """An input or result contains NaN or infinity.

    Attributes:
        name: The input or output at fault, or None.
        rows: Indices of the rows at fault, or None for a single state.
    """

    def __init__(
        self, message: str, name: str | None = None, rows: Sequence[int] | None = None
    ) -> None:
        super().__init__(message)
        self.name = name
        self.rows = None if rows is None else tuple(int(row) for row in rows)

    def of_rows(self, rows: Sequence[int] | None) -> NonFiniteError:
        """Return a copy of the error for other rows; None stands for a single state.

        The message names the first eight rows.
        """
        where = "" if rows is None else f" in rows {_first_rows(rows)}"
        what = str(self).split(" in rows ")[0]
        return NonFiniteError(what + where, self.name, rows)


class RequireError(RowError, ArithmeticError):
    """A condition that an algorithm requires does not hold.

    Attributes:
        item: The joint, row or quantity at fault.
        rows: Indices of the rows at fault, or None for a single state.

    Class attributes:
        what: Beginning of the message.
    """

    what = "a required condition does not hold"

    def __init__(self, item: str, rows: Sequence[int] | None = None) -> None:
        where = "" if rows is None else f" (rows {_first_rows(rows)})"
        super().__init__(f"{self.what}: {item}{where}")
        self.item = item
        self.rows = None if rows is None else tuple(int(row) for row in rows)

    def of_rows(self, rows: Sequence[int] | None) -> RequireError:
        """Return a copy of the error for other rows; None stands for a single state.

        The copy has the same attributes, except for `rows` and the rows in the message.
        """
        kind, (item, _, *more) = self.__reduce__()
        error: RequireError = kind(item, rows, *more)
        error.__dict__.update({**self.__dict__, "rows": error.rows})
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.item, self.rows)


class SingularError(RequireError):
    """A pivot or divisor vanished, so no unique solution exists; names joint or row."""

    what = "singular"


class QuaternionError(RequireError, ValueError):
    """A quaternion is not of unit length; names the joint or input."""

    what = "the quaternion's length is not 1 within 0.001; model.normalize(q) scales q"


class RotationError(RequireError, ValueError):
    """The rotation of a pose is not a rotation matrix, within 1e-6; names the input."""

    what = "the rotation is not orthonormal with determinant 1, within 1e-6"


class InfeasibleError(RequireError):
    """No solution exists within the tolerance.

    Attributes:
        residual: Residual of the solution attempt, or None.
    """

    what = "infeasible"

    def __init__(
        self,
        item: str,
        rows: Sequence[int] | None = None,
        residual: float | None = None,
    ) -> None:
        super().__init__(item, rows)
        self.residual = residual

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.item, self.rows, self.residual)


class SettingError(DynError, ValueError):
    """A setting of a node, a simulator or the environment is missing or out of range.

    Attributes:
        setting: Name of the setting, or None.
    """

    def __init__(self, message: str, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class StateError(DynError, ValueError):
    """A measured state is invalid: beyond limits, contradictory, or too old.

    Attributes:
        kind: Name of the check that failed; refusals are counted by it.
    """

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class IdentificationError(DynError, ValueError):
    """Measured data are insufficient for an identification; names the missing data."""


class BatchError(DynError, RuntimeError):
    """A batch cannot start, continue or resume; finished chunks remain stored."""


class TrajectoryError(DynError, ValueError):
    """A trajectory is invalid or cannot be followed; names the point and joint."""


class TargetError(DynError, ValueError):
    """A target of the tool is refused; names the topic and what would be valid."""


class GoalError(TrajectoryError):
    """A goal of a trajectory is refused, with a GoalCode for the client."""

    def __init__(self, message: str, code: int = -1) -> None:
        super().__init__(message)
        self.code = code


def _first_rows(rows: Sequence[int], limit: int = 8) -> str:
    """Return the first `limit` row numbers as text, with ", ..." if there are more."""
    numbers = ", ".join(str(int(row)) for row in rows[:limit])
    return numbers + (", ..." if len(rows) > limit else "")
