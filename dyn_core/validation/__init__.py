"""Checks of what users write: entries of files, arguments, arrays of states."""

from dyn_core.validation.arrays import state_array
from dyn_core.validation.entries import (
    finite_array,
    finite_number,
    finite_numbers,
    known_keys,
    known_name,
    number_or_numbers,
)

__all__ = [
    "finite_array",
    "finite_number",
    "finite_numbers",
    "known_keys",
    "known_name",
    "number_or_numbers",
    "state_array",
]
