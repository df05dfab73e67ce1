"""Tables of keys and parameters: they check values and generate their documentation.

A Field defines the name, kind, unit, default and meaning of one value; a Table is a
mapping of Fields. docs/make_reference.py prints the tables; nodes declare their
parameters from them.
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
        name: Key of the file, or parameter name with dots.
        kind: Kind of the value; for a table that contains itself, a function without
            arguments that returns the kind.
        doc: Meaning, one sentence.
        unit: SI unit, as printed in the documentation.
        default: Value if the key is missing; None: the key is then omitted from the
            result. REQUIRED: a missing key is an error.
        structure: For a parameter of a node: whether it is fixed while the node has a
            robot.
    """

    name: str
    kind: Kind | Callable[[], Kind]
    doc: str
    unit: str = ""
    default: Any = None
    structure: bool = True

    @property
    def value_kind(self) -> Kind:
        """The kind of the value, also where `kind` is a function."""
        return self.kind if isinstance(self.kind, Kind) else self.kind()

    def read(self, where: str, value: Any) -> Any:
        """Return the checked value.

        A null entry stands for the `empty` value of the kind, unless the key is
        required; it is an error if the kind has no such value.

        Raises:
            ModelError: The value is not valid.
        """
        kind = self.value_kind
        empty = value is None and self.default is not REQUIRED
        return kind.read(where, kind.empty if empty else value)


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

        Missing keys, and keys read as None, get their defaults; keys with the default
        None are omitted. An instance of `made` is returned as it is.

        Raises:
            ModelError: A key is unknown, a required key is missing, or a value is not
                valid. Errors of `make` pass through.
        """
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
    """A mapping whose keys depend on the value of one key, such as the type of a shape.

    Args:
        tag: Key that selects the table.
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

        That table reads the whole mapping, the tag included.

        Raises:
            ModelError: The tag is missing or unknown, or the table refuses the value.
        """
        name = self.tag.name
        if name not in value:
            raise ModelError(f"{where}: {name} is missing; valid: {self.valid}", name)
        chosen = self.tag.read(f"{where}: {name}", value[name])
        return self.tables[chosen].read(where, value)
