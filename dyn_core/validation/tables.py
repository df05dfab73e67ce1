"""Tables of what files and nodes take: they check values and document them.

A Field gives a value its name, kind, unit, default and meaning; a Table is a mapping of
Fields. docs/make_reference.py prints the tables, nodes declare their parameters from
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dyn_core.errors import ModelError
from dyn_core.validation.kinds import Kind, Name, known_name

REQUIRED = "required"  # the default of a Field that must be there


@dataclass(frozen=True)
class Field:
    """One key of a file, or one parameter of a node.

    Attributes:
        name: Key; for parameters with dots.
        kind: What the value may be; for tables that contain themselves a function of
            no arguments that returns it.
        doc: Meaning, one sentence.
        unit: SI unit, as the pages print it.
        default: Value where the key is missing; None: left out of what is read.
            REQUIRED: the key must be there.
        structure: Of a node's parameter: fixed while the node has a robot.
    """

    name: str
    kind: Kind | Callable[[], Kind]
    doc: str
    unit: str = ""
    default: Any = None
    structure: bool = True

    @property
    def value_kind(self) -> Kind:
        """What the value may be."""
        return self.kind if isinstance(self.kind, Kind) else self.kind()

    def read(self, where: str, value: Any) -> Any:
        """Return the checked value; an empty entry is the empty one of its kind."""
        kind = self.value_kind
        empty = value is None and self.default is not REQUIRED
        return kind.read(where, kind.empty if empty else value)


class Table(Kind):
    """A mapping with known keys.

    Attributes:
        fields: Fields by name.
        make: What is made of the checked values as keywords; None: a dict.
        made: Type of values that pass unchecked: they are made already.
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
        """Mappings, and what is made already."""
        return isinstance(value, Mapping) or (
            self.made is not None and isinstance(value, self.made)
        )

    def convert(self, where: str, value: Any) -> Any:
        """Return the checked values; unknown and missing keys are refused."""
        if not isinstance(value, Mapping):
            return value
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
    """A mapping whose keys depend on one of them, such as the type of a shape."""

    def __init__(self, tag: str, tables: Mapping[str, Table]) -> None:
        self.tag, self.tables = Field(tag, Name(tuple(tables)), ""), tables
        self.valid = f"a mapping with {tag}: {', '.join(tables)}"

    def takes(self, value: Any) -> bool:
        """Mappings."""
        return isinstance(value, Mapping)

    def convert(self, where: str, value: Any) -> Any:
        """Return what the table of this type returns."""
        name = self.tag.name
        if name not in value:
            raise ModelError(f"{where}: {name} is missing; valid: {self.valid}", name)
        chosen = self.tag.read(f"{where}: {name}", value[name])
        return self.tables[chosen].read(where, value)
