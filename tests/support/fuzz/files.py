"""Files for the fuzzer: generated ones, and shipped ones that were changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import yaml

from dyn_core import robots
from dyn_core.contact.world import WORLD
from dyn_core.errors import UnsupportedError, unknown_name
from dyn_core.model.sidecar import SIDECAR
from dyn_core.planar.chain.files import CHAIN
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.sharing import once
from dyn_core.solving.registry import solvers
from fuzz.draws import Draws
from fuzz.fuzz_file import FuzzFile
from fuzz.mesh_files import draw_mesh
from fuzz.mjcf_files import draw_mjcf
from fuzz.mutations import change_bytes
from fuzz.option_files import draw_options
from fuzz.recording_files import draw_bag, draw_csv, draw_npz
from fuzz.urdf_files import change_elements, draw_robot
from fuzz.xacro_text import draw_xacro
from fuzz.yaml_files import ValueGrammar, change_data

Names = Mapping[str, tuple[str, ...]]
_SIZES = {  # of lists in a chain, less the number of joints
    "joint_names": 0, "masses": 0, "k_omega": 0, "k_v": 0, "lengths": -1,
    "link_masses": -1, "link_coms": -1, "link_inertias": -1, "theta": -1,
    "theta_dot": -1,
}  # fmt: skip


def draw_file(kind: str, seed: int, number: int) -> FuzzFile:
    """Return a file of a kind, the same for the same seed and number."""
    if kind not in _DRAWN:
        raise UnsupportedError(unknown_name("kind of file", kind, _DRAWN))
    file = FuzzFile(kind, seed, number, b"")
    draws = file.draws
    file = replace(
        file,
        deep=draws.chance(0.1),
        root_joint=draws.choice(("fixed", "fixed", "floating")),
    )
    return _DRAWN[kind](draws, file)


def _urdf(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw a URDF: valid, odd, or with changed elements or bytes."""
    style = draws.choices(("valid", "odd", "elements", "bytes"), (15, 25, 35, 25))[0]
    if style in ("valid", "odd"):
        odd = 0.0 if style == "valid" else draws.choice((0.01, 0.05))
        robot = draw_robot(draws, odd)
    elif draws.chance(0.7):
        robot = ElementTree.fromstring(_shipped(draws.choice(robots.names())))
    else:
        robot = draw_robot(draws, 0.0)
    return _written(draws, file, robot, style)


def _mjcf(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw an MJCF: valid, odd, or with changed elements or bytes."""
    style = draws.choices(("valid", "odd", "elements", "bytes"), (15, 25, 35, 25))[0]
    robot = draw_mjcf(draws, draws.choice((0.01, 0.05)) if style == "odd" else 0.0)
    return _written(draws, file, robot, style)


def _written(
    draws: Draws, file: FuzzFile, robot: ElementTree.Element, style: str
) -> FuzzFile:
    """Write the XML of a robot; its style says what is changed in it."""
    if style == "elements":
        robot = change_elements(draws, robot)
    text = ElementTree.tostring(robot, encoding="unicode")
    content = text.encode("utf-8", "surrogatepass")
    if style == "bytes":
        content = change_bytes(draws, content)
    source = draws.choice(("bytes", "bytes", "text", "path"))
    return replace(file, content=content, source=source, valid=style == "valid")


@once
def _shipped(name: str) -> bytes:
    """Return the URDF of a shipped robot."""
    return robots.path(name).read_bytes()


def _sidecar(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw a sidecar of a shipped robot."""
    file = replace(file, robot=draws.choice(robots.names()))
    tree = ElementTree.fromstring(_shipped(file.robot))
    joints = tuple(x.get("name", "") for x in tree.iter("joint"))
    links = tuple(x.get("name", "") for x in tree.iter("link"))
    pairs = {"allow": (*links, "*"), "deny": (*links, "*", "world")}
    names = {"joint": joints, "joints": joints, "link": (*links, "default")}
    names |= {"a": links, "b": links, "name": ("loop_a", "loop_b"), **pairs}
    grammar = _grammar(draws, names, 0.12)
    return _as_yaml(draws, file, grammar.value(SIDECAR), joints)


def _grammar(draws: Draws, names: Names, rare: float) -> ValueGrammar:
    """Return the grammar of one file, whose values are odd or not."""
    odd = draws.choice((0.0, 0.0, 0.01, 0.05))
    return ValueGrammar(draws, names, odd, draws.choice((rare, 3 * rare)))


def _chain(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw a planar chain, most of them with lists of the right lengths."""
    if draws.chance(0.2):
        path = robots.chain_path(draws.choice(robots.chains()))
        content = change_bytes(draws, path.read_bytes())
        return replace(file, content=content, source=draws.choice(("text", "path")))
    n = draws.randrange(1, 6)
    joints = tuple(f"j{k}" for k in range(n))
    grammar = _grammar(draws, {"joint": joints, "joints": joints}, 0.25)
    data = grammar.value(CHAIN)
    if isinstance(data, dict) and draws.chance(0.9):
        _fit(draws, data, n)
        data["joint_names"] = list(joints)
        if (data.get("base") == "line") != ("normal" in data) and draws.chance(0.9):
            data.pop("normal", None)
            data["base"] = draws.choice(("fixed", "free"))
    return _as_yaml(draws, file, data, joints)


def _fit(draws: Draws, data: dict[str, Any], n: int) -> None:
    """Bring lists in a chain to the length that belongs to n joints."""
    for key, more in _SIZES.items():
        row = data.get(key)
        if isinstance(row, list):
            length = n + more
            data[key] = (row + [round(draws.uniform(0.1, 2), 3)] * length)[:length]
    if isinstance(data.get("masses"), list):
        data["masses"] = [abs(x) if isinstance(x, float) else x for x in data["masses"]]
    if isinstance(data.get("start"), dict):
        _fit(draws, data["start"], n)


def _world(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw a world for a robot of two links."""
    joints = ("joint1", "joint2")
    names: dict[str, tuple[str, ...]] = {"joints": joints, "package": ("a", "b")}
    names |= {"solver": tuple(solvers(CONTACT_SOLVE)), "name": ("floor", "wall")}
    names |= {"option": ("tolerance", "max_iterations", "iterations", "rho")}
    data = _grammar(draws, names, 0.12).value(WORLD)
    if isinstance(data, dict) and draws.chance(0.8):
        for key in ("erp", "push_out_speed", "stiffness", "damping", "max_impacts",
                    "solver_options"):  # fmt: skip
            if draws.chance(0.7):  # what acts beside certain other settings only
                data.pop(key, None)
    return _as_yaml(draws, file, data, joints)


def _as_yaml(
    draws: Draws, file: FuzzFile, data: Any, names: tuple[str, ...]
) -> FuzzFile:
    """Return the file of data, which may be changed once more, given in some form."""
    if draws.chance(0.3):
        data = change_data(draws, data, names)
    source = draws.choice(("mapping", "text", "path"))
    if source != "mapping":
        try:
            style = draws.choice((True, False, None))
            text = yaml.safe_dump(data, default_flow_style=style, allow_unicode=True)
        except (yaml.YAMLError, ValueError):  # what only a mapping can have
            return replace(file, content=data, source="mapping")
        content = text.encode("utf-8", "surrogatepass")
        if draws.chance(0.4):
            content = change_bytes(draws, content)
        return replace(file, content=content, source=source)
    return replace(file, content=data, source="mapping")


_DRAWN = {
    "urdf": _urdf, "mjcf": _mjcf, "sidecar": _sidecar, "chain": _chain, "world": _world,
    "xacro": draw_xacro, "npz": draw_npz, "csv": draw_csv, "bag": draw_bag,
    "mesh": draw_mesh, "options": draw_options,
}  # fmt: skip
