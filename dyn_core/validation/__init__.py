"""Validation of user input: files against tables, bounded YAML, arrays, keywords."""

from dyn_core.validation.arrays import (
    finite_array,
    float_array,
    is_finite,
    one_state,
    state_array,
)
from dyn_core.validation.keywords import check_keywords, known_keywords
from dyn_core.validation.kinds import (
    ByName,
    Either,
    Kind,
    ListOf,
    Name,
    Nothing,
    Quantity,
    Switch,
    Whole,
    kind_like,
    known_name,
    label,
    numbers,
    refuse,
    shown,
)
from dyn_core.validation.quoting import mended_name
from dyn_core.validation.tables import REQUIRED, Field, Table, Tagged
from dyn_core.validation.written_files import writing
from dyn_core.validation.yaml_files import read_yaml

__all__ = [
    "REQUIRED",
    "ByName",
    "Either",
    "Field",
    "Kind",
    "ListOf",
    "Name",
    "Nothing",
    "Quantity",
    "Switch",
    "Table",
    "Tagged",
    "Whole",
    "check_keywords",
    "finite_array",
    "float_array",
    "is_finite",
    "kind_like",
    "known_keywords",
    "known_name",
    "label",
    "mended_name",
    "numbers",
    "one_state",
    "read_yaml",
    "refuse",
    "shown",
    "state_array",
    "writing",
]
