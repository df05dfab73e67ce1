"""Right and wrong values of a Kind, and the place of each Kind in a whole file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dyn_core.validation import (
    REQUIRED,
    ByName,
    Either,
    Kind,
    ListOf,
    Name,
    Nothing,
    Quantity,
    Switch,
    Table,
    Tagged,
    Whole,
)

KEY = "a"  # the key of each mapping by name
# Candidates where several kinds are valid: a value of each type that YAML has.
ANY_TYPE = (True, 1.5, "x", [], ["x"], {}, {"x": 1}, None)


@dataclass(frozen=True)
class Entry:
    """A value inside a file.

    Attributes:
        where: Path of the value, as errors print it.
        kind: Kind of the value.
        whole: Function that returns the content of a file with the given value there.
    """

    where: str
    kind: Kind
    whole: Callable[[Any], Any]


@dataclass(frozen=True)
class Wrong:
    """A wrong value and what its error must contain.

    Attributes:
        value: The value.
        valid: Words of the error that say what is valid: bounds, choices, keys.
        said: Beginning of the error after the path of the value.
    """

    value: Any
    valid: tuple[str, ...]
    said: str


def entries(kind: Kind, where: str, whole=lambda x: x, above=()) -> Iterator[Entry]:
    """Yield the entry of a kind and all entries inside it, a recursive table once."""
    yield Entry(where, kind, whole)
    if any(kind is other for other in above):
        return
    inside = partial(entries, above=(*above, kind))
    if isinstance(kind, Table):
        for name, field in kind.fields.items():
            put = partial(_in_table, whole, kind, name)
            yield from inside(field.value_kind, f"{where}: {name}", put)
    elif isinstance(kind, Tagged):
        for tag, table in kind.tables.items():
            for entry in inside(table, where, partial(_in_tagged, whole, kind, tag)):
                if entry.kind is not table and not entry.where.endswith(kind.tag.name):
                    yield entry
    elif isinstance(kind, ListOf):
        yield from inside(kind.kind, f"{where}[0]", partial(_in_list, whole, kind))
    elif isinstance(kind, ByName):
        yield from inside(kind.kind, f"{where}: {KEY}", lambda x: whole({KEY: x}))
    elif isinstance(kind, Either):
        for one in kind.kinds:
            for entry in inside(one, where, whole):
                if entry.kind is not one:
                    yield entry


def _in_table(whole, table, name, value):
    """Return a file with a value in a table that has its required keys."""
    return whole({**right(table), name: value})


def _in_tagged(whole, kind, tag, values):
    """Return a file with values in the table that a tag selects."""
    return whole({**values, kind.tag.name: tag})


def _in_list(whole, kind, value):
    """Return a file with a value as the first of a list."""
    return whole([value, *right(kind)[1:]])


def right(kind: Kind) -> Any:
    """Return a valid value, with required keys alone."""
    if isinstance(kind, Table):
        fields = kind.fields.values()
        return {x.name: right(x.value_kind) for x in fields if x.default is REQUIRED}
    if isinstance(kind, Tagged):
        tag, table = next(iter(kind.tables.items()))
        return {**right(table), kind.tag.name: tag}
    if isinstance(kind, ListOf):
        count = max(1, kind.least) if kind.length is None else kind.length
        return [right(kind.kind)] * count
    if isinstance(kind, ByName):
        return {KEY: right(kind.kind)}
    if isinstance(kind, Either):
        return right(kind.kinds[0])
    if isinstance(kind, Name):
        return kind.known[0] if kind.known else "b"
    if isinstance(kind, Quantity):
        low = kind.low if np.isfinite(kind.low) else min(kind.high, 0.0)
        return low if not kind.above else min(low + 1.0, (low + kind.high) / 2)
    if isinstance(kind, Whole):
        return kind.low
    return True if isinstance(kind, Switch) else None


def wrong(kind: Kind) -> Iterator[Wrong]:
    """Yield wrong values of a kind: of other types, beyond each bound, unknown words."""
    if isinstance(kind, Either):
        taken = lambda x: [k for k in kind.kinds if k.takes(x)]  # noqa: E731
        yield from (_is(x, kind) for x in ANY_TYPE if not taken(x))
        for one in kind.kinds:
            yield from (x for x in wrong(one) if taken(x.value)[:1] == [one])
    elif isinstance(kind, (Table, Tagged)):
        yield from (_is(x, kind) for x in (1.5, "x", True, ["x"]))
        if isinstance(kind, Tagged):
            yield Wrong({}, _valid(kind), f": {kind.tag.name} is missing; valid: ")
            near = next(iter(kind.tables)) + "x"
            said = f": {kind.tag.name} is '{near}'; valid: "
            yield Wrong({kind.tag.name: near}, tuple(kind.tables), said)
        else:
            yield from _wrong_keys(kind)
    elif isinstance(kind, ListOf):
        yield from (_is(x, kind) for x in (1.5, "x", True, {"x": 1}))
        if kind.length is not None:
            yield _is([*right(kind), *right(kind)[:1]], kind)
        if kind.length or kind.least:
            yield _is(right(kind)[:-1], kind)
    else:
        values = {
            ByName: (1.5, "x", ["x"]),
            Name: (3, 1.5, True, ["x"], None),
            Switch: ("no", 1, 0.0, [True], None),
            Whole: ("1", 1.5, True, np.nan, np.inf, [1], None),
            Quantity: ("1", "x", True, [1.0], None),
        }
        for known, wrongs in values.items():
            if isinstance(kind, known):
                yield from (_is(x, kind) for x in wrongs)
        yield from _beyond(kind)


def _wrong_keys(table: Table) -> Iterator[Wrong]:
    """Yield mappings with a misspelt key, and without each required key."""
    known = next(iter(table.fields))
    said = f": no key is called '{known}x'; did you mean '"
    listed = tuple(table.fields)[:3]  # of many keys the error lists the first
    yield Wrong({**right(table), f"{known}x": 1}, listed, said)
    for name in right(table):
        rest = {key: x for key, x in right(table).items() if key != name}
        valid = _valid(table.fields[name].value_kind)
        yield Wrong(rest, valid, f": {name} is missing; valid: ")


def _beyond(kind: Kind) -> Iterator[Wrong]:
    """Yield values of the right type beyond each bound, and misspelt choices."""
    if isinstance(kind, Name) and kind.known:
        yield _is(f"{kind.known[0]}x", kind)
        yield _is(f"{kind.known[-1]}x", kind)
    if isinstance(kind, (Whole, Quantity)):
        high = np.inf if kind.high is None else kind.high
        if np.isfinite(kind.low):
            yield _is(kind.low - 1, kind)
        if np.isfinite(high):
            yield _is(high + max(1, abs(high)), kind)
    if isinstance(kind, Quantity):
        if kind.above:
            yield _is(kind.low, kind)
        for number in (np.nan, np.inf, -np.inf):
            yield Wrong(number, ("a finite number",), f" is {number}; valid: ")
        yield Wrong(10**400, ("a finite number",), " is inf; valid: ")


def _is(value: Any, kind: Kind) -> Wrong:
    """Return a value that is refused as a whole, whose beginning the error shows."""
    text = "empty" if value is None else repr(value)
    said = f" is {text}; valid: " if len(text) < 20 else f" is {text[:10]}"
    return Wrong(value, _valid(kind), said)


def _valid(kind: Kind) -> tuple[str, ...]:
    """Return words that must say what is valid: bounds, lengths, choices, keys."""
    if isinstance(kind, (Table, Tagged)):
        return tuple(kind.fields if isinstance(kind, Table) else kind.tables)
    if isinstance(kind, ListOf):
        length = kind.length or kind.least
        return ("list", *([str(length)] if length else []), *_valid(kind.kind))
    if isinstance(kind, ByName):
        return ("mapping", kind.of, *_valid(kind.kind))
    if isinstance(kind, Either):
        return tuple(word for one in kind.kinds for word in _valid(one))
    if isinstance(kind, Name):
        return kind.known or (kind.what.split()[1].rstrip(","),)
    if isinstance(kind, (Whole, Quantity)):
        bounds = [x for x in (kind.low, kind.high) if x is not None and np.isfinite(x)]
        form = str if isinstance(kind, Whole) else "{:g}".format
        return ("number", *map(form, bounds))
    return ("null",) if isinstance(kind, Nothing) else ("true", "false")
