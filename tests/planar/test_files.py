"""Planar chains as YAML files: there and back, and errors that name file and key."""

import math

import numpy as np
import pytest
import yaml

from dyn_core.errors import ModelError
from dyn_core.planar import (
    from_angles,
    make_chain,
    make_chain_like,
    planar_object,
)
from dyn_core.planar.chain import files
from dyn_core.planar.chain.files import (
    chain_data,
    load_chain,
    load_chain_file,
    save_chain,
)
from dyn_plugins.planar._testing.chains import random_chain


def example():
    """Return the file of the module's docstring."""
    return files.__doc__.split("\n\n")[1]


def test_the_file_of_the_docstring():
    """Each key does what it says."""
    loaded = load_chain_file(example())
    chain, constraints = loaded.chain, loaded.chain.constraints
    assert chain.joint_names == ("hip", "knee", "foot")
    assert (chain.lengths, chain.masses) == ((0.5, 0.4), (1.0, 0.7, 0.5))
    assert chain.gravity == (0.0, -9.81)
    assert (chain.k_omega, chain.k_v) == ((0.0, 0.1, 0.0), (0.02,) * 3)
    assert (chain.lower[1], chain.upper[1]) == (-2.0, 0.1)
    assert math.isinf(chain.lower[0])
    assert chain.link_masses == (0.0, 0.3)
    plane = chain.ground[0]
    assert (plane.z, plane.joints, plane.mode) == ((0.0, 1.0), (2,), "stick")
    assert constraints.active == (False, True, False)
    assert constraints.s[2] == (0.0, 1.0)
    assert (loaded.dt, loaded.window) == (0.001, 0.005)
    wanted = from_angles(chain, (0.0, 1.0), (0.0, 0.0), (-1.2, 0.3), (0.0, 0.0))
    np.testing.assert_array_equal(loaded.start, wanted)
    line = example().replace("base: fixed", "normal: [0, 1]\nbase: line")
    assert "base: line" in line
    assert load_chain(line).constraints.s[0] == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(12))
def test_there_and_back(seed, tmp_path):
    """A file gives every number of a chain back, exactly."""
    chain = random_chain(seed, massive=0.5).chain
    last = chain.n - 1
    fields = {
        key: getattr(chain.constraints, key) for key in ("kind", "a_w", "s", "active")
    }
    fields["alpha_w"] = np.multiply(fields["active"], chain.constraints.alpha_w)
    chain = make_chain_like(
        chain,
        constraints=fields,
        gravity=(0.5, -1 / 3),
        upper={0: 1 / 7} if last else {},
        ground=[{"z": (0.6, 0.8), "joints": [last], "mode": "slide"}, {}],
        name=f"chain: {seed}",
    )
    path = tmp_path / "chain.yaml"
    angles = np.linspace(0, 1, last)
    start = {"x0": (1, 2), "theta": angles}
    save_chain(chain, path, start, dt=0.01)
    loaded = load_chain_file(path)
    assert loaded.dt == 0.01
    assert loaded.window is None
    zero = np.zeros(last)
    np.testing.assert_array_equal(
        loaded.start, from_angles(chain, (1, 2), (0, 0), angles, zero)
    )
    for one in (
        loaded.chain,
        load_chain(path.read_text()),
        load_chain(chain_data(chain)),
    ):
        for key in vars(chain):
            assert getattr(one, key) == getattr(chain, key), key


def test_short_files():
    """Lengths and masses alone; numbers for names; one number for all."""
    chain = load_chain({"lengths": [1], "masses": [1, 2]})
    assert chain.constraints.kind == (0.0, 0.0)
    assert chain.gravity == (0.0, -9.81)
    assert load_chain("lengths: []\nmasses: [1]").n == 1
    data = {
        "lengths": [1],
        "masses": [1, 2],
        "gravity": 1.5,
        "k_v": [0, 1],
        "limits": {0: [None, 1]},
    }
    chain = load_chain(data)
    assert (chain.gravity, chain.k_v) == ((0.0, -1.5), (0.0, 1.0))
    assert chain.upper == (1.0, math.inf)


BAD = {
    "sizes": (
        {"masses": [1, 2]},
        "lengths: 2 links for 2 joints; valid: n joints, n-1 links",
    ),
    "massless": ({"masses": [1, 0, 1]}, r"masses\[1\] of a joint that is free"),
    "no normal": ({"base": "line"}, "base line needs a normal"),
    "normal": ({"normal": [0, 1]}, "others have none; base is free"),
    "joint": (
        {"limits": {"toe": [0, 1]}},
        "limits: no joint is called 'toe'; valid: a, b, c or 0..2",
    ),
    "twice": ({"limits": {"a": [0, 1], 0: [0, 2]}}, "limits: a is given twice"),
    "order": ({"limits": {"a": [1, 0]}}, r"lower\[0\] is above upper\[0\]"),
    "last limit": ({"limits": {"c": [0, 1]}}, "the last joint has no angle"),
    "no s": (
        {"constraints": {"b": {"kind": "line"}}},
        "is on a line and needs the line's normal",
    ),
    "both": (
        {"base": "fixed", "constraints": {"a": {"kind": "free"}}},
        "base says its kind already",
    ),
    "active": ({"active": {"a": 1}}, r"active\[0\]: joint 0 is free"),
    "k": ({"k_omega": [1, 2]}, "k_omega: 3 numbers wanted"),
    "links": ({"link_masses": [1]}, "link_masses: 2 numbers wanted"),
    "names count": ({"joint_names": ["a"]}, "3 different names wanted"),
    "start": ({"start": {"theta": [1]}}, "start: theta has 1 numbers; valid: 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case, tmp_path):
    """Each error names the file, the key, and what would be valid."""
    changes, why = BAD[case]
    data = {
        "lengths": [1, 1],
        "masses": [1, 1, 1],
        "joint_names": ["a", "b", "c"],
    } | changes
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(ModelError, match=f"bad.yaml: .*{why}"):
        load_chain(path)
    with pytest.raises(ModelError, match=f"^chain: .*{why}"):
        load_chain(data)


def test_files_that_are_none(tmp_path):
    """A file that is not there, no YAML, no mapping, nothing needed."""
    path = tmp_path / "bad.yaml"
    with pytest.raises(ModelError, match="cannot read the chain file .*bad.yaml"):
        load_chain(path)
    for text, why in (
        ("a: [", ": not YAML"),
        ("[1, 2]", " is .1, 2.; valid: a mapping"),
        ("", " is empty; valid: a map"),
        ("name: x", ": lengths is missing; valid: a list"),
    ):
        path.write_text(text)
        with pytest.raises(ModelError, match=f"bad.yaml{why}"):
            load_chain(path)


def test_saving_checks_what_it_writes(tmp_path):
    """A start that does not fit is refused, and no file is made."""
    path, chain = tmp_path / "x.yaml", random_chain(1, 3).chain
    with pytest.raises(ModelError, match="start: theta has 1 numbers; valid: 2"):
        save_chain(chain, path, {"theta": [1.0]})
    assert not path.exists()


def test_units_of_unknown_parameters_are_refused():
    chain = make_chain((0.5,), (0.4, 0.6))
    assert chain.unit("masses") == "kg"
    for ask in (chain.unit, chain.parameter):
        with pytest.raises(
            ModelError, match="no parameter path 'mass'; valid: lengths"
        ):
            ask("mass")


def test_new_parameters_are_as_many_as_the_old_ones():
    """Of chains and objects: a shorter list would leave joints without numbers."""
    chain, pole = make_chain([1.0, 1.0], [1.0, 1.0, 1.0]), planar_object("cart_pole")
    assert chain.with_values({"lengths": [3.0, 2]}).lengths == (3.0, 2)
    assert pole.with_values({"l": 2.0}).parameters["l"] == 2.0
    for system, path, values, message in (
        (chain, "lengths", [3.0], "lengths takes 2 numbers, got 1"),
        (chain, "lengths", 3.0, "lengths takes 2 numbers, got 1"),
        (chain, "masses", [1.0] * 4, "masses takes 3 numbers, got 4"),
        (chain, "masses", "abc", "masses takes numbers, got 'abc'"),
        (chain, "gravity", [], "gravity takes 2 numbers, got 0"),
        (pole, "l", [1.0, 2.0], "l takes 1 numbers, got 2"),
        (pole, "l", [], "l takes 1 numbers, got 0"),
        (pole, "l", [None], "l takes numbers"),
    ):
        with pytest.raises(ModelError, match=message) as caught:
            system.with_values({path: values})
        assert caught.value.element == path


def test_joints_are_whole_numbers():
    """True is not joint 1; an integer of NumPy is one."""
    lower = {np.int64(1): -1.0}
    assert make_chain([1.0] * 2, [1.0] * 3, lower=lower).lower[1] == -1.0
    for key in (True, 1.0, "1", -1, 3, None, np.True_):
        with pytest.raises(ModelError, match=r"lower: joint .* is not one of 0\.\.2"):
            make_chain([1.0] * 2, [1.0] * 3, lower={key: -1.0})


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (5, "start is 5; valid: a mapping"),
        ({"x0": 1.0}, "start: x0: a list wanted"),
        ({"x0": ["a", 1.0]}, "start: x0 is"),
        ({"theta": None}, "start: theta"),
        ({"theta": [1.0, float("nan")]}, "start: theta.1. is not finite"),
    ],
    ids=str,
)
def test_wrong_starts_are_not_written(tmp_path, start, message):
    """The key is named; no file is there afterwards."""
    path = tmp_path / "chain.yaml"
    with pytest.raises(ModelError, match=message):
        save_chain(load_chain(example()), path, start=start)
    assert not path.exists()
