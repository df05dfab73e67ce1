"""Every key of a file and every parameter of a node, with wrong values of each kind.

The tables of Fields make the values: of other types, not finite, beyond each bound, of
another length, with unknown words and keys. Each goes the way of a user's input.
nodes/test_set_parameters.py sets them on nodes, parameters of joints too.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from wrong_values import entries, wrong

import dyn_core as dyn
from dyn_core import control
from dyn_core.contact.world import WORLD
from dyn_core.control import rules
from dyn_core.model import sidecar
from dyn_core.model.description import Description
from dyn_core.planar.chain.files import CHAIN, load_chain
from dyn_core.validation import Field, Kind, Table
from ros_nodes.messages.trajectory_files import MESSAGE, read_trajectories
from ros_nodes.parameter_tables.parameter_files import NODES, read_parameters

ROBOT = Description("robot", (), (), ())


@dataclass(frozen=True)
class Reader:
    """A function that reads values as a user gives them, and its table of Fields.

    Attributes:
        table: Table that checks them.
        where: Beginning of each error.
        read: Function that reads a mapping as a user's file.
        flat: Whether its keys are parameters: other tests misspell them, and a
            mapping is a group of them.
    """

    table: Kind
    where: str
    read: Callable[[Any], Any]
    flat: bool = False


def _parameters(node):
    """Return the reader of a node's parameter file."""

    def read(values):
        return read_parameters({node: {"ros__parameters": values}})

    fields = NODES[node].values()
    return Reader(Table(*fields), f"parameters: {node}", read, True)


def _rules():
    """Return the reader of the rules of a controller, which are keywords."""
    fields = (Field(name, kind, "") for name, kind in rules._RULES.items())
    return Reader(Table(*fields), "", lambda x: control.Rules(**x), True)


def _trajectory(folder):
    """Return a function that reads a trajectory from a file in `folder`."""

    def read(message):
        path = folder / "move.json"
        path.write_text(json.dumps(message))
        return read_trajectories("move.json")

    return read


READERS = {
    "sidecar": Reader(sidecar.SIDECAR, "extras", lambda x: sidecar.apply(ROBOT, x)),
    "chain": Reader(CHAIN, "chain", load_chain),
    "world": Reader(WORLD, "world", dyn.World.of),
    "trajectory": Reader(MESSAGE, "move.json", _trajectory),
    **{node: _parameters(node) for node in NODES},
    "rules": _rules(),
}
ENTRIES = [
    pytest.param(reader, entry, id=f"{name} {entry.where}")
    for name, reader in READERS.items()
    for entry in entries(reader.table, reader.where)
    if not (reader.flat and entry.kind is reader.table)
]


@pytest.mark.parametrize(("reader", "entry"), ENTRIES)
def test_wrong_values_are_refused_where_they_stand(
    reader, entry, tmp_path, monkeypatch
):
    """The error begins with file and key, shows the value and says what is valid."""
    monkeypatch.chdir(tmp_path)
    read = reader.read(tmp_path) if reader.table is MESSAGE else reader.read
    wrongs = list(wrong(entry.kind))
    if entry.kind is reader.table:  # anything else names a file
        wrongs = [each for each in wrongs if isinstance(each.value, dict)]
    elif reader.flat:
        wrongs = [each for each in wrongs if not isinstance(each.value, dict)]
    assert wrongs
    for each in wrongs:
        with pytest.raises(dyn.DynError) as caught:
            read(entry.whole(each.value))
        message = str(caught.value)
        assert message.startswith(f"{entry.where}{each.said}".removeprefix(": "))
        if isinstance(caught.value, dyn.ModelError) and each.said.startswith(" is "):
            assert caught.value.element == entry.where.rpartition(": ")[2]
        valid = message.rpartition("valid: ")[2]
        assert [word for word in each.valid if word not in valid] == [], message
