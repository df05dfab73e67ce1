"""Findings about a robot: warnings, or errors where the check is strict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dyn_core.errors import ModelError, ModelWarning, one_line, warn_user

SHOWN = 3  # maximum number of names in one warning, and of warnings in a ModelWarning
PASS = "check='warn' lets it pass"


class Hint(str):
    """A warning about a robot that needs no action and raises no Python warning."""

    __slots__ = ()


class Findings:
    """Collector of a robot's warnings; if `strict`, doubts are ModelErrors."""

    def __init__(self, strict: bool = False, earlier: Iterable[str] = ()) -> None:
        self.strict = strict
        self._owners: dict[tuple[str, str, bool], list[str]] = {}
        for warning in earlier:
            self.note("", "", warning, isinstance(warning, Hint))

    def note(self, kind: str, name: str, what: str, hint: bool = False) -> None:
        """Add a warning; it never raises an error.

        `kind` is the noun for the element, empty for the whole robot; `what` is the
        finding and the action taken. A hint needs no action by the user.
        """
        self._owners.setdefault((kind, what, hint), []).append(name)

    def doubt(self, kind: str, name: str, what: str, instead: str = "") -> None:
        """Add a warning, or raise a ModelError if `strict`; `instead`: action taken."""
        if self.strict:
            owner = f"{kind} '{name}': " if kind else ""
            raise ModelError(f"{owner}{what}; {PASS}", name or None)
        self.note(kind, name, f"{what}; {instead}" if instead else what)

    def doubtful(self, error: ModelError, instead: str) -> None:
        """Add an error as a warning, with the action taken, or raise it if `strict`."""
        if self.strict:
            raise ModelError(f"{error}; {PASS}", error.element) from error
        self.note("", "", f"{error}; {instead}")

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings, and hints as Hint, in the order of their first occurrence.

        Equal findings about several elements of one kind are one warning, with the
        first three names and the number of the others.
        """
        return tuple(
            (Hint if hint else str)(one_line(_sentence(kind, what, names)))
            for (kind, what, hint), names in self._owners.items()
        )


def _sentence(kind: str, what: str, names: list[str]) -> str:
    """Return a warning with the names of the elements that it concerns.

    It is "joints 'a', 'b': WHAT", with each name once, and of more than three names the
    number of the others; for the whole robot WHAT, or "WHAT, 2 times".
    """
    if not kind:
        return what if len(names) == 1 else f"{what}, {len(names)} times"
    owners = list(dict.fromkeys(names))
    return f"{kind}{'s' * (len(owners) > 1)} {short_list(owners)}: {what}"


def short_list(names: Iterable[str], shown: int = SHOWN) -> str:
    """Return the first names in quotes, and how many others: "'a', 'b' and 4 more"."""
    quoted = [f"'{name}'" for name in names]
    more = len(quoted) - shown
    return ", ".join(quoted[:shown]) + (f" and {more} more" if more > 0 else "")


def warn_of(robot: str, warnings: Sequence[str]) -> None:
    """Issue one ModelWarning with the first 3 (SHOWN) warnings that are no hints."""
    doubts = [x for x in warnings if not isinstance(x, Hint)]
    more = len(doubts) - SHOWN
    rest = f"; and {more} more in model.warnings" if more > 0 else ""
    if doubts:
        message = f"robot '{robot}': {'; '.join(doubts[:SHOWN])}{rest}"
        warn_user(message, ModelWarning)


def labelled(warning: str) -> str:
    """Return a line of output: "hint: TEXT" for a Hint, else "warning: TEXT"."""
    return f"{'hint' if isinstance(warning, Hint) else 'warning'}: {warning}"
