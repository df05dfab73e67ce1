"""Random values of the tables that check sidecars, chains and worlds.

The table of a file is its grammar: what it takes is drawn from it, so that a new key is
drawn too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dyn_core.validation import (
    REQUIRED,
    ByName,
    Either,
    Field,
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
from fuzz.draws import Draws

_DEEPEST = 3  # levels of tables that contain themselves
Path = tuple[Any, ...]  # keys and numbers that lead to a value


@dataclass(frozen=True)
class ValueGrammar:
    """Draws of values that a table takes, some of them odd.

    Attributes:
        draws: Random generator.
        names: Names by what they are of: joint, link; and values of certain keys.
        odd: Part of the values that are odd.
        rare: Probability that a key which need not be there is there.
        length: Of lists without a length of their own.
    """

    draws: Draws
    names: Mapping[str, tuple[str, ...]]
    odd: float
    rare: float
    length: int = 2

    def value(self, kind: Kind, key: str = "", depth: int = 0) -> Any:
        """Return a value of a kind, odd once in a while."""
        if self.draws.chance(self.odd):
            return copied(self.draws.odd_value(self.names.get("joint", ())))
        if isinstance(kind, Table):
            return self.entries(kind, depth)
        if isinstance(kind, Tagged):
            tag = self.draws.choice(sorted(kind.tables))
            return {**self.entries(kind.tables[tag], depth), kind.tag.name: tag}
        if isinstance(kind, ByName):
            names = self.names.get(kind.of.split()[0], ("a", "b"))
            chosen = self.draws.sample(names, min(len(names), self.draws.randrange(3)))
            return {name: self.value(kind.kind, key, depth) for name in chosen}
        if isinstance(kind, ListOf):
            length = kind.length
            if length is None:
                length = max(kind.least, self.length - self.draws.randrange(2))
            return [self.value(kind.kind, key, depth) for _ in range(length)]
        return self.single(kind, key, depth)

    def single(self, kind: Kind, key: str, depth: int) -> Any:
        """Return a value that has no parts."""
        if isinstance(kind, Either):
            return self.value(self.draws.choice(kind.kinds), key, depth)
        if isinstance(kind, Nothing):
            return None
        if isinstance(kind, Switch):
            return self.draws.chance(0.5)
        if isinstance(kind, Whole):
            high = kind.low + 5 if kind.high is None else kind.high
            return self.draws.randint(kind.low, min(high, kind.low + 10**6))
        if isinstance(kind, Quantity):
            low = max(kind.low, -5.0) + (1e-3 if kind.above else 0.0)
            return self.draws.number(low, min(kind.high, 5.0))
        if isinstance(kind, Name) and kind.known:
            return self.draws.choice(kind.known)
        return self.draws.choice(self.names.get(key, ("a", "b", "c")))

    def entries(self, table: Table, depth: int) -> dict[str, Any]:
        """Return a mapping with the keys of a table."""
        entries = {}
        for name, field in table.fields.items():
            needed = field.default is REQUIRED
            if needed or (depth < _DEEPEST and self.draws.chance(self.rare)):
                entries[name] = self.field(field, depth + 1)
        if self.draws.chance(self.odd):
            entries[self.draws.odd_name(tuple(table.fields))] = 1
        return entries

    def field(self, field: Field, depth: int) -> Any:
        """Return the value of a key."""
        return self.value(field.value_kind, field.name, depth)


def places(data: Any, path: Path = ()) -> Iterator[Path]:
    """Return the path of each entry of a file."""
    if isinstance(data, Mapping):
        entries = list(data.items())
    else:
        entries = list(enumerate(data)) if isinstance(data, list) else []
    for key, value in entries:
        yield (*path, key)
        if len(path) < 12:
            yield from places(value, (*path, key))


def copied(data: Any) -> Any:
    """Return a copy of mappings and lists; what else they hold is shared."""
    if isinstance(data, dict):
        return {key: copied(value) for key, value in data.items()}
    return [copied(value) for value in data] if isinstance(data, list) else data


def part_of(data: Any, path: Path) -> Any:
    """Return the value that a path leads to."""
    for key in path:
        data = data[key]
    return data


def change_data(draws: Draws, data: Any, names: tuple[str, ...]) -> Any:
    """Return data with up to four entries replaced, left out, doubled or moved."""
    data = copied(data)
    for _ in range(draws.randrange(1, 5)):
        paths = list(places(data))
        if not paths:
            return data
        *parents, last = draws.choice(paths)
        part = part_of(data, tuple(parents))
        what = draws.randrange(9)
        if what < 3:
            part[last] = copied(draws.odd_value(names))
        elif what == 3:
            del part[last]
        elif what == 4:
            part[last] = copied(part_of(data, draws.choice(paths)))
        elif what == 5 and isinstance(part, list):
            part.append(copied(part[last]))
        elif what == 5:
            part[draws.odd_name(names)] = part.pop(last)
        elif what == 6 and isinstance(part[last], (int, float)):
            part[last] = _scaled(draws, part[last])
        elif what == 7:
            part[last] = [part[last]] * draws.randrange(3)
        else:
            part[last] = {draws.odd_name(names): part[last]}
    return data


def _scaled(draws: Draws, number: float) -> float:
    """Return a number far from common, of the same sign or not."""
    power = draws.choice((-300, -150, -30, -12, 8, 12, 30, 77, 99, 150, 200, 300))
    try:
        return number * draws.choice((1.0, -1.0)) * 10.0**power
    except OverflowError:
        return math.inf
