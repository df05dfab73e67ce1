"""Entries and arrays: what is valid comes back, the rest is refused in words."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import validation


def test_valid_entries_come_back():
    """Numbers become floats, lists tuples, names strings."""
    assert validation.finite_number("a", 3) == 3.0
    assert validation.finite_numbers("a", [1, 2.5, 3]) == (1.0, 2.5, 3.0)
    assert validation.number_or_numbers("a", 2) == 2.0
    assert validation.number_or_numbers("a", [2, 3]) == (2.0, 3.0)
    assert validation.finite_array("a", 2, 3) == (2.0, 2.0, 2.0)
    assert validation.finite_array("a", (), 2) == (0.0, 0.0)
    assert validation.known_name("file", "link", "arm", ["arm"]) == "arm"
    validation.known_keys("file", {"a": 1}, ("a", "b"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: validation.finite_number("a", True), "a: needs a number, got True"),
        (lambda: validation.finite_number("a", "1"), "a: needs a number, got '1'"),
        (lambda: validation.finite_number("a", np.inf), "a: inf is not finite"),
        (lambda: validation.finite_numbers("a", [1, 2]), "a needs 3 numbers"),
        (lambda: validation.finite_array("a", ["x"]), "a: numbers wanted"),
        (lambda: validation.finite_array("a", [1, 2], 3), "a: 3 numbers wanted"),
        (lambda: validation.finite_array("a", [1, np.nan]), r"a\[1\] is not finite"),
        (lambda: validation.known_keys("file", {"c": 1}, ("a", "b")), "valid: a, b"),
        (lambda: validation.known_keys("file", [1], ("a",)), "needs a mapping with a"),
        (lambda: validation.known_name("file", "link", "leg", ["arm"]), "links are: arm"),
    ],
)  # fmt: skip
def test_bad_entries_are_refused(call, words):
    """Each error is a ModelError that says what would be valid."""
    with pytest.raises(dyn.ModelError, match=words):
        call()


def test_arrays_of_states():
    """One state or a batch; complex numbers pass, other lengths and shapes do not."""
    assert validation.state_array("q", [1, 2], 2).dtype == float
    assert validation.state_array("q", np.ones((5, 2)), 2).shape == (5, 2)
    assert validation.state_array("q", [1j, 2], 2).dtype == complex
    for bad in (np.ones(3), np.ones((2, 2, 2)), np.array(1.0)):
        with pytest.raises(dyn.ShapeError, match="q: wanted shape"):
            validation.state_array("q", bad, 2)
