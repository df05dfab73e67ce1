"""Kinds of values: each returns what is valid, and refuses the rest in words."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np

from dyn_core.errors import ModelError, nearest, unknown_name


class _Short(reprlib.Repr):
    """Short representations of plain values; of other objects only what they are."""

    def repr_instance(self, x: Any, level: int) -> str:
        """Represent an object without its address, in one line."""
        text = super().repr_instance(x, level)
        return f"a {type(x).__name__}" if text[:1] == "<" else " ".join(text.split())


_LIMITS = _Short()
_LIMITS.maxlevel, _LIMITS.maxstring, _LIMITS.maxother = 3, 60, 60
LONGEST = 60  # characters of a name in an error


def shown(value: object) -> str:
    """Return a short representation of any value; long and deep ones are cut."""
    try:
        text = "empty" if value is None else _LIMITS.repr(value)
        return text if len(text) <= 2 * LONGEST else f"{text[: 2 * LONGEST]}..."
    except ValueError:  # an int of thousands of digits
        return f"a long {type(value).__name__}"


def label(name: object) -> str:
    """Return a name for an error, cut where it is long."""
    return name[:LONGEST] if isinstance(name, str) else shown(name)


def refuse(where: str, value: object, valid: str) -> NoReturn:
    """Raise the ModelError of a value that is not valid; its element is the key."""
    element = where.rpartition(": ")[2]
    raise ModelError(f"{where} is {shown(value)}; valid: {valid}", element)


def known_name(where: str, kind: str, name: object, names: Any) -> str:
    """Return a name that is one of these; refuse others with the nearest ones."""
    if isinstance(name, str) and name in names:
        return name
    unknown = label(name)
    raise ModelError(f"{where}: {unknown_name(kind, unknown, names)}", unknown)


class Kind:
    """What one value may be; a leaf says `valid`, `takes` and `convert`.

    Attributes:
        valid: What is valid, for errors and for the pages of docs/.
        empty: What an empty entry of a file stands for; None: empty is refused.
    """

    valid = ""
    empty: Any = None

    def takes(self, value: Any) -> bool:
        """Whether the value has the right type; its parts may still be wrong."""
        raise NotImplementedError

    def convert(self, where: str, value: Any) -> Any:
        """Return a value of the right type in its final form."""
        return value

    def read(self, where: str, value: Any) -> Any:
        """Return the checked value.

        Args:
            where: What errors call it.
            value: Anything.

        Raises:
            ModelError: It is not valid; the message says what would be.
        """
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if not self.takes(value):
            refuse(where, value, self.valid)
        return self.convert(where, value)


@dataclass(frozen=True)
class Quantity(Kind):
    """A finite number, from low to high; `above`: more than low."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    @property
    def valid(self) -> str:  # type: ignore[override]
        """Say the range."""
        if self.above:
            return f"a number above {self.low:g}"
        if self.high < math.inf:
            return f"a number from {self.low:g} to {self.high:g}"
        return f"a number, {self.low:g} or more" if self.low > -math.inf else "a number"

    def takes(self, value: Any) -> bool:
        """Numbers, but no booleans and no strings."""
        return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))

    def convert(self, where: str, value: Any) -> float:
        """Return a float in the range."""
        try:
            x = float(value)
        except OverflowError:
            x = math.inf
        if not math.isfinite(x):
            refuse(where, x, "a finite number")
        if not self.low <= x <= self.high or (self.above and x == self.low):
            refuse(where, value, self.valid)
        return x


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number, from low to high."""

    low: int = 0
    high: int | None = None

    @property
    def valid(self) -> str:  # type: ignore[override]
        """Say the range."""
        upper = " or more" if self.high is None else f" to {self.high}"
        return f"a whole number, {self.low}{upper}"

    def takes(self, value: Any) -> bool:
        """Integers in the range."""
        if not isinstance(value, Integral) or isinstance(value, (bool, np.bool_)):
            return False
        return self.low <= int(value) <= (math.inf if self.high is None else self.high)

    def convert(self, where: str, value: Any) -> int:
        """Return an int."""
        return int(value)


class Nothing(Kind):
    """An empty entry, where it says something else than a missing one."""

    valid = "null"

    def takes(self, value: Any) -> bool:
        """None alone."""
        return value is None


class Switch(Kind):
    """True or false."""

    valid = "true or false"

    def takes(self, value: Any) -> bool:
        """Booleans alone: the string "no" would count as true."""
        return isinstance(value, (bool, np.bool_))


@dataclass(frozen=True)
class Name(Kind):
    """A string, one of the choices if there are any; `also` are other types taken."""

    choices: tuple[str, ...] = ()
    also: tuple[type, ...] = ()
    what: str = "a name"

    @property
    def valid(self) -> str:  # type: ignore[override]
        """Say the choices."""
        return ", ".join(self.choices) if self.choices else self.what

    def takes(self, value: Any) -> bool:
        """Strings."""
        return isinstance(value, (str, *self.also))

    def convert(self, where: str, value: Any) -> Any:
        """Return one of the choices."""
        if self.choices and isinstance(value, str) and value not in self.choices:
            near = nearest(label(value), self.choices, 1)
            guess = f"{self.valid}; did you mean '{near[0]}'?" if near else self.valid
            refuse(where, value, guess)
        return value


@dataclass(frozen=True)
class ListOf(Kind):
    """A list: of any length, of one length, or of `least` entries or more."""

    kind: Kind
    length: int | None = None
    least: int = 0

    @property
    def empty(self) -> tuple[Any, ...] | None:  # type: ignore[override]
        """Return no entries, if that is valid."""
        return () if self.takes(()) else None

    @property
    def valid(self) -> str:  # type: ignore[override]
        """Say the length and what an entry is."""
        one = re.match(r"an? ((?:whole )?\w+)(.*)", self.kind.valid)
        many = f"entries, each {self.kind.valid}"
        if one and not isinstance(self.kind, Either):
            many = f"{one[1]}s{one[2]}"
        if self.length is not None:
            return f"a list of {self.length} {many}"
        return f"a list of {f'{self.least} or more ' if self.least else ''}{many}"

    def takes(self, value: Any) -> bool:
        """Lists and tuples of the right length."""
        if not isinstance(value, (list, tuple)) or len(value) < self.least:
            return False
        return self.length is None or len(value) == self.length

    def convert(self, where: str, value: Any) -> tuple[Any, ...]:
        """Return a tuple of checked entries."""
        return tuple(self.kind.read(f"{where}[{i}]", x) for i, x in enumerate(value))


@dataclass(frozen=True)
class ByName(Kind):
    """A mapping from names, of joints or links, to values of one kind."""

    kind: Kind
    of: str = "name"

    @property
    def empty(self) -> dict[Any, Any]:  # type: ignore[override]
        """Return no entries."""
        return {}

    @property
    def valid(self) -> str:  # type: ignore[override]
        """Say whose names the keys are."""
        return f"a mapping from {self.of} to: {self.kind.valid}"

    def takes(self, value: Any) -> bool:
        """Mappings."""
        return isinstance(value, Mapping)

    def convert(self, where: str, value: Any) -> dict[Any, Any]:
        """Return a dict of checked values."""
        read = self.kind.read
        return {key: read(f"{where}: {label(key)}", x) for key, x in value.items()}


@dataclass(frozen=True)
class Either(Kind):
    """A value of the first of several kinds that takes it."""

    kinds: tuple[Kind, ...]

    @property
    def valid(self) -> str:  # type: ignore[override]
        """Say each kind."""
        return ", or ".join(kind.valid for kind in self.kinds)

    def takes(self, value: Any) -> bool:
        """Whatever one of them takes."""
        return any(kind.takes(value) for kind in self.kinds)

    def convert(self, where: str, value: Any) -> Any:
        """Return the value as the kind that takes it does."""
        kind = next(kind for kind in self.kinds if kind.takes(value))
        return kind.convert(where, value)


def kind_like(value: Any) -> Kind:
    """Return the kind of values that can stand for this one: of its type."""
    for kind in (Switch(), Whole(-(10**12), 10**12), Quantity(), Name()):
        if kind.takes(value):
            return kind
    if isinstance(value, (list, tuple)):
        return ListOf(kind_like(value[0]) if value else Name())
    raise ModelError(f"{shown(value)}; valid: a switch, number, name or a list")


def numbers(length: int | None = None) -> ListOf:
    """Return the kind of a list of finite numbers."""
    return ListOf(Quantity(), length)
