"""Random parameter files of nodes and files of trajectories: read, or one sentence."""

import json
from dataclasses import replace

import pytest
from fuzz import Campaign, doors, files
from fuzz.mutations import change_bytes
from fuzz.yaml_files import ValueGrammar, change_data

from dyn_core.validation import Table
from ros_nodes.messages.trajectory_files import MESSAGE, read_trajectories
from ros_nodes.parameter_tables.parameter_files import NODES, read_parameters

JOINTS = ("joint1", "joint2")
SECTIONS = (
    "/**",
    "simulator",
    "computed_torque",
    "/**/guard",
    "ns/feed_forward",
    "sim",
)


def _parameters(draws, file):
    """Draw sections with parameters of their tables, as ROS reads them."""
    grammar = ValueGrammar(draws, {"joint": JOINTS}, draws.choice((0.0, 0.02)), 0.1)
    data = {}
    for key in draws.sample(SECTIONS, draws.randrange(1, 3)):
        fields = NODES[draws.choice(sorted(NODES))]
        values = grammar.value(Table(*fields.values()))
        data[key] = {"ros__parameters": values}
    if draws.chance(0.3):
        data = change_data(draws, data, (*JOINTS, *SECTIONS))
    return files._as_yaml(draws, file, data, JOINTS)


def _trajectory(draws, file):
    """Draw messages in JSON or YAML."""
    grammar = ValueGrammar(draws, {"joint": JOINTS}, draws.choice((0.0, 0.02)), 0.4)
    data = grammar.value(MESSAGE)
    if draws.chance(0.3):
        data = change_data(draws, data, JOINTS)
    try:
        content = json.dumps(data).encode()
    except (TypeError, ValueError):  # what only a mapping can have
        content = b"{}"
    if draws.chance(0.4):
        content = change_bytes(draws, content)
    suffix = draws.choice((".json", ".yaml"))
    return replace(file, content=content, source="path", suffix=suffix)


def _read_parameters(file, mode):
    return doors._from_file(file, read_parameters)


def _read_trajectory(file, mode):
    return doors._from_file(file, read_trajectories)


KINDS = {
    "parameters": (_parameters, _read_parameters),
    "trajectory": (_trajectory, _read_trajectory),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_random_file_of_a_node_fails(kind, full, monkeypatch):
    """Each is read, or refused in one sentence; many with --full."""
    draw, read = KINDS[kind]
    monkeypatch.setitem(files._DRAWN, kind, draw)
    monkeypatch.setitem(doors.DOORS, kind, doors.Door(("",), read, lambda *_: None))
    campaign = Campaign(kind, 1000 if full else 50, seed=21, budget=5.0)
    campaign.run()
    assert campaign.failures == []
    assert campaign.outcomes["loaded"] >= 2
    assert campaign.outcomes["refused"] >= 4
