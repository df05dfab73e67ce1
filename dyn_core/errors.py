"""Every exception of the project: what went wrong, where, and what would be valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class DynError(Exception):
    """Base of all errors that dyn_ros raises on purpose."""


class ModelError(DynError, ValueError):
    """The robot cannot be used; names the element.

    Attributes:
        element: Name of the link, joint or tag at fault, or None.
    """

    def __init__(self, message: str, element: str | None = None) -> None:
        super().__init__(message)
        self.element = element


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
    """No solver has this name; lists the known ones and what failed to load.

    Attributes:
        name: The name asked for.
        known: Names that would be valid.
    """

    def __init__(
        self, name: str, known: Sequence[str], failures: Sequence[str] = ()
    ) -> None:
        message = f"no solver is called '{name}'; known: {', '.join(known) or 'none'}"
        if failures:
            message += "; plugins that failed to load: " + "; ".join(failures)
        super().__init__(message)
        self.name, self.known, self.failures = name, tuple(known), tuple(failures)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.known, self.failures)


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
    """A text did what a text may not; names file and line of the text."""


class CompileError(DynError, RuntimeError):
    """An engine could not build a Program."""


class NonFiniteError(DynError, ValueError):
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


class RequireError(DynError, ArithmeticError):
    """A condition that a text requires does not hold.

    Attributes:
        item: The joint, row or quantity at fault.
        rows: Rows of the batch at fault, or None for a single state.
    """

    what = "a required condition does not hold"

    def __init__(self, item: str, rows: Sequence[int] | None = None) -> None:
        where = "" if rows is None else f" (rows {_some(rows)})"
        super().__init__(f"{self.what}: {item}{where}")
        self.item = item
        self.rows = None if rows is None else tuple(int(row) for row in rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.item, self.rows)


class SingularError(RequireError):
    """A pivot vanished: no unique solution; names the joint or row."""

    what = "singular"


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


class SettingError(DynError, ValueError):
    """A setting of a node, a simulator or the environment is missing or out of range.

    Attributes:
        setting: Its name.
    """

    def __init__(self, message: str, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class IdentificationError(DynError, ValueError):
    """Measured data do not show what is asked of them; says what they lack."""


class TrajectoryError(DynError, ValueError):
    """A trajectory cannot be followed; names the point and joint."""


def _some(rows: Sequence[int], most: int = 8) -> str:
    """Name the first few rows."""
    text = ", ".join(str(int(row)) for row in rows[:most])
    return text + (", ..." if len(rows) > most else "")
