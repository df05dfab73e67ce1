"""Every exception of the project: what went wrong, where, and what would be valid."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

SHOWN = 12  # names of a list of valid ones
LONGEST = 600  # characters of a message about a file
MOST = 4000  # characters of any other message
_RUN = 200  # characters without a space that a message shows
_LONG = re.compile(rf"\S{{{_RUN + 1},}}")


def cut(message: str) -> str:
    """Return a message with its lines, in which long words and a long end are cut.

    Names and values of files, messages and parameters can have any length.
    """
    if len(message) <= _RUN:
        return message
    text = _LONG.sub(lambda run: f"{run[0][:150]}...{run[0][-40:]}", message)
    return text if len(text) <= MOST else f"{text[: MOST - 4]} ..."


def one_line(message: str) -> str:
    """Return a message in one line: what files bring in cut, control characters shown.

    Names and numbers of a file can have any length and hold line ends.
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
    listed_by: str = "",
) -> str:
    """Return the sentence for an unknown name: the nearest valid ones, then all.

    Names that begin with it stand before the others, and of names with dots those with
    the same first part.

    Args:
        kind: What the name should be of: solver, link, build option, ...
        name: The unknown name.
        valid: Every name that would do.
        purpose: For what the valid ones are valid, if only for that.
        limit: Most names that are listed; None for all.
        listed_by: Command or function that lists all, where they are more.
    """
    names = list(valid)
    near = [repr(one_line(x)) for x in nearest(name, names)]
    guess = f"; did you mean {' or '.join(near)}?" if near else ";"
    group = str(name).split(".")[0] + "."  # of gains.kp, that are gains.JOINT.p, ...
    names.sort(key=lambda x: not (_begins(x, str(name)) or x.startswith(group)))
    shown = ", ".join(map(one_line, names[:limit])) or "none"
    cut = limit is not None and len(names) > limit
    command = f": {listed_by}" if listed_by else ""
    more = f", ... ({len(names)} in all{command})" if cut else ""
    what = f" for {purpose}" if purpose else ""
    called = one_line(str(name)[:_RUN])
    return f"no {kind} is called '{called}'{guess} valid{what}: {shown}{more}"


def why_unread(error: Exception) -> str:
    """Return why a file cannot be opened, without the words of the program."""
    return getattr(error, "strerror", None) or "no path has such characters"


def why_no_json(error: Exception) -> str:
    """Return what is wrong with JSON and where, without the words of the program."""
    if isinstance(error, RecursionError):
        return "lists and objects are nested too deep"
    line, column = getattr(error, "lineno", 0), getattr(error, "colno", 0)
    reason = getattr(error, "msg", "a number has too many digits")
    return f"line {line}, column {column}: {reason}" if line else str(reason)


def nearest(name: object, valid: Iterable[str], limit: int = 3) -> list[str]:
    """Return the valid names that look most like this one, the best first.

    Those that begin with it come before those that differ in a few letters.
    """
    called = str(name)
    folded: dict[str, str] = {}
    for known in valid:
        folded.setdefault(known[:_RUN].lower(), known)
    longer = [x for x in folded if _begins(x, called)]
    close = get_close_matches(called[:_RUN].lower(), folded, limit)
    return [folded[x] for x in dict.fromkeys([*longer, *close])][:limit]


def _begins(known: str, name: str) -> bool:
    """Check whether a valid name begins with another one, small or capital."""
    return bool(name) and known.lower().startswith(name[:_RUN].lower())


def warn(message: str, stacklevel: int = 2) -> None:
    """Warn of what was got round; where warnings are errors, print it instead."""
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=stacklevel + 1)
    except RuntimeWarning:
        print(f"warning: {message}", file=sys.stderr)


class DynError(Exception):
    """Base of all errors that dyn_ros raises on purpose.

    What a message quotes of files, messages and parameters is cut, see `cut`.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(cut(str(message)))


class ModelError(DynError, ValueError):
    """The robot cannot be used; names the element.

    Attributes:
        element: Name of the link, joint or tag at fault, or None.
    """

    def __init__(self, message: str, element: str | None = None) -> None:
        super().__init__(one_line(message))
        self.element = element


class ModelWarning(UserWarning):
    """What is doubtful about a robot that was loaded; model.warnings has all of it."""


class ShapeError(DynError, ValueError):
    """An array has the wrong size or dtype.

    Attributes:
        name: The input or output at fault.
        wanted: The shape that would be valid, in words.
        got: The shape or type that came.
    """

    def __init__(self, name: str, wanted: str, got: str) -> None:
        super().__init__(f"{name}: wanted {wanted}, got {got}")
        self.name, self.wanted, self.got = name, wanted, got

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.wanted, self.got)


class SolverNotFound(DynError, LookupError):
    """No solver has this name; names the nearest and what failed to load.

    Attributes:
        name: The name asked for.
        known: Names that would be valid.
        failures: What plugins failed at.
        problem: Name of the problem that it should solve; empty for any.
    """

    def __init__(
        self,
        name: str,
        known: Sequence[str],
        failures: Sequence[str] = (),
        problem: str = "",
    ) -> None:
        message = unknown_name("solver", name, known, problem, listed_by="dyn plugins")
        if failures:
            message += "; plugins that failed to load: " + "; ".join(failures)
        super().__init__(message)
        self.name, self.known, self.failures = name, tuple(known), tuple(failures)
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.known, self.failures, self.problem)


class PluginError(DynError):
    """A plugin cannot be loaded, offers a taken name or an unknown hook.

    Attributes:
        plugin: The distribution and module at fault.
    """

    def __init__(self, message: str, plugin: str | None = None) -> None:
        super().__init__(message)
        self.plugin = plugin


class SignatureError(DynError, TypeError):
    """A solver of one kind stands where another kind is needed."""


class UnsupportedError(DynError, ValueError):
    """This solver, engine or option does not serve this model or call."""


class FrameMismatchError(DynError, ValueError):
    """Two spatial quantities with different frame labels were combined."""


class TraceError(DynError, TypeError):
    """An algorithm did what it may not; names the solver, file and line.

    Attributes:
        solver: The solver and, in brackets, who offers it; None if not known.
    """

    def __init__(self, message: str, solver: str | None = None) -> None:
        super().__init__(message if solver is None else f"{solver}: {message}")
        self.solver = solver

    def __reduce__(self) -> tuple[Any, ...]:
        return _trace_error, (str(self), self.solver)


def _trace_error(message: str, solver: str | None) -> TraceError:
    error = TraceError(message)
    error.solver = solver
    return error


class CompileError(DynError, RuntimeError):
    """An engine could not build a Program."""


class RowError(DynError):
    """A state, or some rows of a batch, have no result.

    Attributes:
        rows: Rows of the batch at fault, or None for a single state.
    """

    rows: tuple[int, ...] | None

    def of_rows(self, rows: Sequence[int] | None) -> RowError:
        """Return the same error, with all that it keeps, for rows of a batch."""
        raise NotImplementedError


class NonFiniteError(RowError, ValueError):
    """An input or result holds NaN or infinity.

    Attributes:
        name: The input or output at fault.
        rows: Rows of the batch at fault, or None for a single state.
    """

    def __init__(
        self, message: str, name: str | None = None, rows: Sequence[int] | None = None
    ) -> None:
        super().__init__(message)
        self.name = name
        self.rows = None if rows is None else tuple(int(row) for row in rows)

    def of_rows(self, rows: Sequence[int] | None) -> NonFiniteError:
        """Return the same error for rows of a batch."""
        where = "" if rows is None else f" in rows {_first_rows(rows)}"
        what = str(self).split(" in rows ")[0]
        return NonFiniteError(what + where, self.name, rows)


class RequireError(RowError, ArithmeticError):
    """A condition that an algorithm requires does not hold.

    Attributes:
        item: The joint, row or quantity at fault.
        rows: Rows of the batch at fault, or None for a single state.
    """

    what = "a required condition does not hold"

    def __init__(self, item: str, rows: Sequence[int] | None = None) -> None:
        where = "" if rows is None else f" (rows {_first_rows(rows)})"
        super().__init__(f"{self.what}: {item}{where}")
        self.item = item
        self.rows = None if rows is None else tuple(int(row) for row in rows)

    def of_rows(self, rows: Sequence[int] | None) -> RequireError:
        """Return the same error, with all that it keeps, for rows of a batch."""
        kind, (item, _, *more) = self.__reduce__()
        error: RequireError = kind(item, rows, *more)
        error.__dict__.update({**self.__dict__, "rows": error.rows})
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.item, self.rows)


class SingularError(RequireError):
    """A pivot vanished: no unique solution; names the joint or row."""

    what = "singular"


class QuaternionError(RequireError, ValueError):
    """A quaternion in a position is not of unit length; names the joint."""

    what = "the quaternion's length is not 1 within 0.001; model.normalize(q) repairs"


class RotationError(RequireError, ValueError):
    """The rotation of a pose is none; names the input."""

    what = "the rotation is not orthonormal with determinant 1, within 1e-6"


class InfeasibleError(RequireError):
    """No solution exists within the tolerance; keeps the residual."""

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
        setting: Its name.
    """

    def __init__(self, message: str, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class StateError(DynError, ValueError):
    """A measured state that cannot be: beyond limits, contradictory, or too old.

    Attributes:
        kind: Name of the check, by which refusals are counted.
    """

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class IdentificationError(DynError, ValueError):
    """Measured data do not show what is asked of them; says what they lack."""


class BatchError(DynError, RuntimeError):
    """A batch cannot begin, go on or be resumed; what is done is kept, and said."""


class TrajectoryError(DynError, ValueError):
    """A trajectory cannot be followed; names the point and joint."""


class GoalError(TrajectoryError):
    """A goal of a trajectory is refused; says what it lacks.

    Attributes:
        code: That of dyn_core.control.reference.goals.GoalCode which tells the client.
    """

    def __init__(self, message: str, code: int = -1) -> None:
        super().__init__(message)
        self.code = code


def _first_rows(rows: Sequence[int], limit: int = 8) -> str:
    """Return the numbers of the first few rows."""
    numbers = ", ".join(str(int(row)) for row in rows[:limit])
    return numbers + (", ..." if len(rows) > limit else "")
