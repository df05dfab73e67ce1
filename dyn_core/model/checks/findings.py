"""Findings about a robot: warnings, or errors where the check is strict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from warnings import warn

from dyn_core.errors import ModelError, ModelWarning, one_line

SHOWN = 3  # names in a warning about many links or joints; warnings in one of Python's
PASS = "check='warn' lets it pass"


class Hint(str):
    """A warning about a robot that nobody need act on: Python's warnings are silent."""

    __slots__ = ()


class Findings:
    """What is doubtful about a robot, collected while it is read and put together.

    Attributes:
        strict: Whether doubtful means unusable.
    """

    def __init__(self, strict: bool = False, earlier: Iterable[str] = ()) -> None:
        self.strict = strict
        self._owners: dict[tuple[str, str, bool], list[str]] = {}
        for warning in earlier:
            self.note("", "", warning, isinstance(warning, Hint))

    def note(self, kind: str, name: str, what: str, hint: bool = False) -> None:
        """Add a warning.

        Args:
            kind: link or joint, or nothing where it concerns the whole robot.
            name: Of the link or joint.
            what: What is doubtful, and what is done about it.
            hint: Whether nobody need act on it.
        """
        self._owners.setdefault((kind, what, hint), []).append(name)

    def doubt(self, kind: str, name: str, what: str, instead: str = "") -> None:
        """Add a warning, or raise a ModelError where the check is strict.

        Args:
            kind, name, what: As in `note`.
            instead: What is done about it where the check is not strict.
        """
        if self.strict:
            owner = f"{kind} '{name}': " if kind else ""
            raise ModelError(f"{owner}{what}; {PASS}", name or None)
        self.note(kind, name, f"{what}; {instead}" if instead else what)

    def doubtful(self, error: ModelError, instead: str) -> None:
        """Add a warning of an error that is none but where the check is strict."""
        if self.strict:
            raise ModelError(f"{error}; {PASS}", error.element) from error
        self.note("", "", f"{error}; {instead}")

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings, hints among them; one for the same of many links or joints."""
        return tuple(
            (Hint if hint else str)(one_line(_sentence(kind, what, names)))
            for (kind, what, hint), names in self._owners.items()
        )


def _sentence(kind: str, what: str, names: list[str]) -> str:
    """Return a warning with the links or joints that it concerns."""
    if not kind:
        return what if len(names) == 1 else f"{what}, {len(names)} times"
    owners = list(dict.fromkeys(names))
    return f"{kind}{'s' * (len(owners) > 1)} {short_list(owners)}: {what}"


def short_list(names: Iterable[str], shown: int = SHOWN) -> str:
    """Return the first of some names in quotes, and how many more there are."""
    quoted = [f"'{name}'" for name in names]
    more = len(quoted) - shown
    return ", ".join(quoted[:shown]) + (f" and {more} more" if more > 0 else "")


def warn_of(robot: str, warnings: Sequence[str], stacklevel: int) -> None:
    """Warn of the first warnings about a robot, hints left out, as a ModelWarning."""
    doubts = [x for x in warnings if not isinstance(x, Hint)]
    more = len(doubts) - SHOWN
    rest = f"; and {more} more in model.warnings" if more > 0 else ""
    if doubts:
        message = f"robot '{robot}': {'; '.join(doubts[:SHOWN])}{rest}"
        warn(message, ModelWarning, stacklevel=stacklevel + 1)


def labelled(warning: str) -> str:
    """Return a line of output for a warning or hint."""
    return f"{'hint' if isinstance(warning, Hint) else 'warning'}: {warning}"
