"""Public names: those that are listed are there, and none is missing from the list."""

from pathlib import Path

from public_names import public_names

LIST = Path(__file__).with_name("public_names.txt")


def test_public_names_are_those_of_the_list():
    """A name that goes has an alias first (docs/design.md); a new one is listed.

    `python tests/house/public_names.py > tests/house/public_names.txt` writes the list.
    """
    listed, current = set(LIST.read_text("utf-8").splitlines()), set(public_names())
    assert len(current) > 900
    assert listed - current == set(), "promised, and gone"
    assert current - listed == set(), "public, and not listed"
