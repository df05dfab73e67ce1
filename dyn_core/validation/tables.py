"""Tables of keys and parameters: they check values and generate their documentation.

A Field defines the name, kind, unit, default and meaning of one value; a Table is a
mapping of Fields. docs/make_reference.py prints the tables; nodes declare their
parameters from them.

A kind converts valid values and raises ModelError for others. `where` is the path of a
value for error messages.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np

from dyn_core.errors import ModelError, nearest, renamed, unknown_name


class _Short(reprlib.Repr):
    """Short representations: the repr, or the type of objects without a plain repr."""

    def repr_instance(self, x: Any, level: int) -> str:
        """Return the repr of an object, truncated and on one line.

        It is "a TYPE" if the repr begins with "<", as reprs with an address do, and
        "the type NAME" for a class. A NumPy scalar is shown as the Python number.
        """
        if isinstance(x, type):
            return f"the type {x.__name__[:LONGEST]}"
        text = super().repr_instance(
            x.item() if isinstance(x, np.generic) else x, level
        )
        return f"a {type(x).__name__}" if text[:1] == "<" else " ".join(text.split())


_LIMITS = _Short()
_LIMITS.maxlevel, _LIMITS.maxstring, _LIMITS.maxother = 3, 60, 60
LONGEST = 60  # characters of a name in an error


def shown(value: object) -> str:
    """Return a short representation of any value for an error message.

    It has at most 2 LONGEST + 3 characters. Nested values are truncated; None is shown
    as "empty", a class as "the type NAME", other objects without a plain representation
    as "a TYPE", and an int of too many digits as "a long int".
    """
    try:
        text = "empty" if value is None else _LIMITS.repr(value)
        return text if len(text) <= 2 * LONGEST else f"{text[: 2 * LONGEST]}..."
    except ValueError:  # an int of thousands of digits
        return f"a long {type(value).__name__}"


def label(name: object) -> str:
    """Return a name for an error message: a string cut to LONGEST (60) characters.

    Of an object that is no string it is the text of `shown`.
    """
    return name[:LONGEST] if isinstance(name, str) else shown(name)


def refuse(where: str, value: object, valid: str) -> NoReturn:
    """Raise the ModelError of an invalid value.

    Args:
        where: Path of the value, `file: key: key`; its last key becomes the element
            that the error names.
        value: The invalid value.
        valid: Description of valid values.
    """
    element = where.rpartition(": ")[2]
    raise ModelError(f"{where} is {shown(value)}; valid: {valid}", element)


def known_name(where: str, kind: str, name: object, names: Any) -> str:
    """Return `name` if it is one of `names`; else raise ModelError.

    Args:
        where: Path of the value, for the error message.
        kind: Kind of the name, such as "key", for the error message.
        name: Name to look up; of any type.
        names: Container of the valid names, which can be iterated.

    Raises:
        ModelError: `name` is not a string, or not among `names`; lists the nearest
            names. Of a key of digits it says that decimals have a point.
    """
    if isinstance(name, str) and name in names:
        return name
    unknown = label(name)
    message = f"{where}: {unknown_name(kind, unknown, names)}"
    if kind == "key" and unknown.isdigit():  # YAML reads {damping: 0,5} as 0 and a key
        message += "; a number has a decimal point, as in 0.5, not a comma"
    raise ModelError(message, unknown)


class Kind:
    """Base class of the kinds of values.

    A subclass defines `valid`, `takes` and `convert`.

    Attributes:
        valid: Description of valid values, for errors and for the pages of docs/.
        empty: Value that replaces a null entry of a file, see Field.read; None: null is
            checked like any other value.
    """

    valid = ""
    empty: Any = None

    def takes(self, value: Any) -> bool:
        """Return whether the value has the right type; `convert` checks its entries.

        The base class raises NotImplementedError.
        """
        raise NotImplementedError

    def convert(self, where: str, value: Any) -> Any:
        """Return a value of the right type in its final form, checked.

        The base class returns it unchanged.

        Args:
            where: Path of the value, for error messages.
            value: A value for which `takes` is true.

        Raises:
            ModelError: The value or one of its entries is not valid.
        """
        return value

    def read(self, where: str, value: Any) -> Any:
        """Return the checked and converted value.

        Args:
            where: Path of the value, for error messages.
            value: Anything; NumPy arrays are read as lists.

        Raises:
            ModelError: The value is not valid; the message describes valid ones.
        """
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if not self.takes(value):
            refuse(where, value, self.valid)
        return self.convert(where, value)


@dataclass(frozen=True)
class Quantity(Kind):
    """A finite number from `low` to `high`, both included.

    Attributes:
        low, high: Minimum and maximum; infinite: none.
        above: Whether `low` itself is excluded.
        unit: SI unit, for the description of valid values; empty: not said.
    """

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    unit: str = ""

    @property
    def valid(self) -> str:  # type: ignore[override]
        """The range in words, with the unit."""
        unit = f" [{self.unit}]" if self.unit else ""
        if self.above:
            most = f", at most {self.high:g}" if self.high < math.inf else ""
            return f"a number above {self.low:g}{most}{unit}"
        if self.high < math.inf:
            return f"a number from {self.low:g} to {self.high:g}{unit}"
        more = f", {self.low:g} or more" if self.low > -math.inf else ""
        return f"a number{more}{unit}"

    def takes(self, value: Any) -> bool:
        """Return whether the value is a real number, also NaN; not True or "1"."""
        return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))

    def convert(self, where: str, value: Any) -> float:
        """Return a value for which `takes` is true as a float; others are not checked.

        Raises:
            ModelError: It is not finite, or outside the range.
        """
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
    """An integer from `low` to `high`, both included; `high` None: unbounded."""

    low: int = 0
    high: int | None = None

    @property
    def valid(self) -> str:  # type: ignore[override]
        """The range, in words."""
        upper = " or more" if self.high is None else f" to {self.high}"
        return f"a whole number, {self.low}{upper}"

    def takes(self, value: Any) -> bool:
        """Return whether the value is an integer in the range, not 2.0 or True.

        NumPy's integers are.
        """
        if not isinstance(value, Integral) or isinstance(value, (bool, np.bool_)):
            return False
        return self.low <= int(value) <= (math.inf if self.high is None else self.high)

    def convert(self, where: str, value: Any) -> int:
        """Return a value for which `takes` is true as an int; nothing is checked."""
        return int(value)


class Nothing(Kind):
    """An explicit null, such as an entry of a list that means "none".

    As the value of a key of a Table, null gets the default, as a missing key does.
    """

    valid = "null"

    def takes(self, value: Any) -> bool:
        """Return whether the value is None."""
        return value is None


class Switch(Kind):
    """A boolean."""

    valid = "true or false"

    def takes(self, value: Any) -> bool:
        """Return whether the value is a boolean, also numpy's; "no" and 0 are not."""
        return isinstance(value, (bool, np.bool_))


@dataclass(frozen=True)
class Name(Kind):
    """A string.

    Attributes:
        choices: Valid strings; empty: any string.
        also: Further types whose values pass unchecked.
        what: Description of valid values if there are no choices.
        offered: Function that returns the choices, called at each check; None:
            `choices`. It is for names that plugins offer.
    """

    choices: tuple[str, ...] = ()
    also: tuple[type, ...] = ()
    what: str = "a name"
    offered: Callable[[], Iterable[str]] | None = None

    @property
    def known(self) -> tuple[str, ...]:
        """The choices, now; empty: any string."""
        return self.choices if self.offered is None else tuple(self.offered())

    @property
    def valid(self) -> str:  # type: ignore[override]
        """The choices, separated by commas, or `what` if there are none."""
        return ", ".join(self.known) or self.what

    def takes(self, value: Any) -> bool:
        """Return whether the value is a string or of a type in `also`."""
        return isinstance(value, (str, *self.also))

    def convert(self, where: str, value: Any) -> Any:
        """Return the value unchanged.

        Raises:
            ModelError: It is a string that is not among the choices.
        """
        known = self.known
        if known and isinstance(value, str) and value not in known:
            near = nearest(label(value), known, 1)
            guess = f"{self.valid}; did you mean '{near[0]}'?" if near else self.valid
            refuse(where, value, guess)
        return value


@dataclass(frozen=True)
class ListOf(Kind):
    """A list whose entries are of one kind.

    Attributes:
        kind: Kind of the entries.
        length: Number of entries; None: any.
        least: Minimum number of entries.
    """

    kind: Kind
    length: int | None = None
    least: int = 0

    @property
    def empty(self) -> tuple[Any, ...] | None:  # type: ignore[override]
        """Empty tuple if a list without entries is valid, else None."""
        return () if self.takes(()) else None

    @property
    def valid(self) -> str:  # type: ignore[override]
        """The length and the kind of the entries, in words."""
        # "a number above 0" -> "numbers above 0"; other wordings become "entries, each
        # ...".
        one = re.match(r"an? ((?:whole )?\w+)(.*)", self.kind.valid)
        many = f"entries, each {self.kind.valid}"
        if one and not isinstance(self.kind, Either):
            many = f"{one[1]}s{one[2]}"
        if self.length is not None:
            return f"a list of {self.length} {many}"
        return f"a list of {f'{self.least} or more ' if self.least else ''}{many}"

    def takes(self, value: Any) -> bool:
        """Return whether the value is a list or tuple of a valid length."""
        if not isinstance(value, (list, tuple)) or len(value) < self.least:
            return False
        return self.length is None or len(value) == self.length

    def convert(self, where: str, value: Any) -> tuple[Any, ...]:
        """Return a tuple of the checked and converted entries of a list or tuple.

        Its length is not checked; `takes` does that.

        Raises:
            ModelError: An entry is not valid.
        """
        return tuple(self.kind.read(f"{where}[{i}]", x) for i, x in enumerate(value))


@dataclass(frozen=True)
class ByName(Kind):
    """A mapping from names to values of one kind.

    Attributes:
        kind: Kind of the values.
        of: Noun for the keys, such as "joint", for the description. Keys are not
            checked.
    """

    kind: Kind
    of: str = "name"

    @property
    def empty(self) -> dict[Any, Any]:  # type: ignore[override]
        """A new empty dict."""
        return {}

    @property
    def valid(self) -> str:  # type: ignore[override]
        """The noun for the keys and the kind of the values, in words."""
        return f"a mapping from {self.of} to {self.kind.valid}"

    def takes(self, value: Any) -> bool:
        """Return whether the value is a mapping."""
        return isinstance(value, Mapping)

    def convert(self, where: str, value: Any) -> dict[Any, Any]:
        """Return a dict of the checked and converted values, in the same order.

        `value` must be a mapping; others are not checked.

        Raises:
            ModelError: A value is not valid.
        """
        read = self.kind.read
        return {key: read(f"{where}: {label(key)}", x) for key, x in value.items()}


@dataclass(frozen=True)
class Either(Kind):
    """A value of one of several kinds; the first kind that takes it converts it.

    Attributes:
        kinds: Kinds, in the order in which they are tried.
    """

    kinds: tuple[Kind, ...]

    @property
    def valid(self) -> str:  # type: ignore[override]
        """The descriptions of all kinds, joined by "or"."""
        return ", or ".join(kind.valid for kind in self.kinds)

    def takes(self, value: Any) -> bool:
        """Return whether one of the kinds accepts the type of the value."""
        return any(kind.takes(value) for kind in self.kinds)

    def convert(self, where: str, value: Any) -> Any:
        """Return the value as converted by the first kind that takes it.

        Raises:
            ModelError: That kind refuses the value.
            StopIteration: No kind takes it.
        """
        kind = next(kind for kind in self.kinds if kind.takes(value))
        return kind.convert(where, value)


def kind_like(value: Any) -> Kind:
    """Return the kind of values that may replace `value`: of its type, in any range.

    Bool: Switch; integer up to 1e12 in magnitude: Whole with this bound; other number,
    a larger integer too: Quantity; string: Name; list or tuple: ListOf the kind of its
    first entry, of names if empty, with any length.

    Raises:
        ModelError: `value` (or a first entry) is no boolean, number, string, list or
            tuple.
    """
    for kind in (Switch(), Whole(-(10**12), 10**12), Quantity(), Name()):
        if kind.takes(value):
            return kind
    if isinstance(value, (list, tuple)):
        return ListOf(kind_like(value[0]) if value else Name())
    raise ModelError(f"{shown(value)}; valid: a switch, number, name or a list")


def numbers(length: int | None = None) -> ListOf:
    """Return the kind of a list of `length` finite numbers; None: of any length."""
    return ListOf(Quantity(), length)


REQUIRED = "required"  # the default of a Field that must be there


@dataclass(frozen=True)
class Field:
    """One key of a file, or one parameter of a node.

    Attributes:
        name: Key of the file, or parameter name with dots.
        kind: Kind of the value; for a table that contains itself, a function without
            arguments that returns the kind.
        doc: Meaning, one sentence.
        unit: SI unit, as printed in the documentation.
        default: Value if the key is missing; None: the key is then omitted from the
            result. REQUIRED: a missing key is an error.
        structure: For a parameter of a node: whether it is fixed while the node has a
            robot.
        former: Name in the last minor version, which is still read, with a warning.
    """

    name: str
    kind: Kind | Callable[[], Kind]
    doc: str
    unit: str = ""
    default: Any = None
    structure: bool = True
    former: str = ""

    @property
    def value_kind(self) -> Kind:
        """The kind of the value, also where `kind` is a function."""
        return self.kind if isinstance(self.kind, Kind) else self.kind()

    def read(self, where: str, value: Any) -> Any:
        """Return the checked and converted value.

        None is first replaced by the `empty` value of the kind, unless the default is
        REQUIRED. If None remains, it is an error unless the kind takes null.

        Args:
            where: Path of the value, for error messages.
            value: Value of the key.

        Raises:
            ModelError: The value is not valid.
        """
        kind = self.value_kind
        if self.unit and isinstance(kind, Quantity):
            kind = replace(kind, unit=self.unit)
        empty = value is None and self.default is not REQUIRED
        return kind.read(where, kind.empty if empty else value)


def with_present_names(
    where: str,
    values: Mapping[Any, Any],
    fields: Iterable[Field],
    what: str = "key",
    tell: Callable[[str], object] | None = None,
) -> Mapping[Any, Any]:
    """Return values with the former names of Fields replaced by the present ones.

    Each replaced name causes a DeprecationWarning. If there is none, `values` itself is
    returned; it is never changed.

    Args:
        where: File or section, for the error message.
        values: Values by name.
        fields: Fields that have a present, and perhaps a former name.
        what: "key" or "parameter", for the warning.
        tell: Called with the sentence of each warning, too; None: not called.

    Raises:
        ModelError: A value has both its former and its present name.
    """
    for field in fields:
        if field.former and field.former in values:
            if field.name in values:
                raise ModelError(
                    f"{where}: {field.former} is now {field.name}, and both are there;"
                    f" valid: {field.name} alone",
                    field.name,
                )
            sentence = renamed(what, field.former, field.name)
            if tell is not None:
                tell(sentence)
            now = {field.former: field.name}
            values = {now.get(name, name): value for name, value in values.items()}
    return values


class Table(Kind):
    """A mapping with known keys.

    Attributes:
        fields: Fields by name.
        make: Function or class that gets the checked values as keywords; None: they are
            returned as a dict.
        made: Type whose instances are accepted and returned unchecked; by default
            `make`, if that is a class.
    """

    empty: Mapping[str, Any] = {}

    def __init__(
        self,
        *fields: Field,
        make: Callable[..., Any] | None = None,
        made: type | None = None,
    ) -> None:
        self.fields = {field.name: field for field in fields}
        self.make = make
        self.made = make if made is None and isinstance(make, type) else made
        self.valid = f"a mapping with {', '.join(self.fields)}"

    def takes(self, value: Any) -> bool:
        """Return whether the value is a mapping or an instance of `made`."""
        return isinstance(value, Mapping) or (
            self.made is not None and isinstance(value, self.made)
        )

    def convert(self, where: str, value: Any) -> Any:
        """Return the checked values, as a dict or as the result of `make`.

        Missing keys, and keys that Field.read reads as None, get their defaults; keys
        with the default None are omitted. A null that the kind replaces by its `empty`
        value, as that of a list by (), gets no default. A former name is read with a
        DeprecationWarning. What is no mapping is returned as it is, unchecked.

        Raises:
            ModelError: A key is unknown, a required key is missing, or a value is not
                valid.
            Exception: Errors of `make` pass through.
        """
        if not isinstance(value, Mapping):
            return value
        value = with_present_names(where, value, self.fields.values())
        for key in value:
            known_name(where, "key", key, self.fields)
        values = {}
        for name, field in self.fields.items():
            entry = None
            if name in value:
                entry = field.read(f"{where}: {name}", value[name])
            elif field.default is REQUIRED:
                valid = field.value_kind.valid
                raise ModelError(f"{where}: {name} is missing; valid: {valid}", name)
            entry = field.default if entry is None else entry
            if entry is not None:
                values[name] = entry
        return values if self.make is None else self.make(**values)


class Tagged(Kind):
    """A mapping whose keys depend on the value of one key, such as the type of a shape.

    Attributes:
        tag: Field of the key that selects the table.
        tables: Tables by value of that key.

    Args:
        tag: Name of the key that selects the table.
        tables: Tables by value of that key; each has the key `tag` itself.
    """

    def __init__(self, tag: str, tables: Mapping[str, Table]) -> None:
        self.tag, self.tables = Field(tag, Name(tuple(tables)), ""), tables
        self.valid = f"a mapping with {tag}: {', '.join(tables)}"

    def takes(self, value: Any) -> bool:
        """Return whether the value is a mapping."""
        return isinstance(value, Mapping)

    def convert(self, where: str, value: Any) -> Any:
        """Return the value as the table selected by its tag converts it.

        That table reads the whole mapping, the tag included. `value` must be a
        mapping; others are not checked.

        Raises:
            ModelError: The tag is missing or unknown, or the table refuses the value.
        """
        name = self.tag.name
        if name not in value:
            raise ModelError(f"{where}: {name} is missing; valid: {self.valid}", name)
        chosen = self.tag.read(f"{where}: {name}", value[name])
        return self.tables[chosen].read(where, value)
