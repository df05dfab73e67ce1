"""Any URDF or sidecar that a slip of the hand can make: a Model, or an error in words."""

import copy
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots

pytest.importorskip("hypothesis", reason="hypothesis is not installed (extra test)")
from hypothesis import assume, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

QUIET = settings(max_examples=100, derandomize=True, deadline=None, database=None)
TREES = {
    name: ET.fromstring(robots.path(name).read_bytes())
    for name in ("two_link", "arm7", "cart_pole", "quadruped")
}
NO_NUMBERS = (
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "0x10",
    "1,5",
    "one",
    "1.0.0",
    "--1",
)
INFINITE = ("inf", "-inf", "1e999")
ODD = (
    *NO_NUMBERS, "0", "-1", "1e-300", "1e30", "1 2", "1 2 3", "1 2 3 4", "0 0 0",
    "base", "link1", "joint1", "nobody", "revolute", "prismatic", "continuous",
    "fixed", "floating", "planar", "mimic", "\u0664\u0662", "\u221e", "a\nb", "x" * 300,
)  # fmt: skip
TAGS = ("link", "joint", "inertial", "mass", "origin", "mimic", "limit", "robot", "x")
NUMERIC = ("mass", "inertia", "origin", "axis", "limit", "dynamics")


def spoil(tree, draw):
    """Change one thing of a file: a value, an attribute, an element or its name."""
    parents = [x for x in tree.iter() if len(x)]
    parent = draw(st.sampled_from(parents))
    child = draw(st.sampled_from(list(parent)))
    kind = draw(
        st.sampled_from(
            ("value", "value", "value", "drop", "cut", "twice", "tag", "text")
        )
    )
    if kind == "value" and child.attrib:
        child.set(
            draw(st.sampled_from(sorted(child.attrib))), draw(st.sampled_from(ODD))
        )
    elif kind == "drop" and child.attrib:
        del child.attrib[draw(st.sampled_from(sorted(child.attrib)))]
    elif kind == "twice":
        parent.append(copy.deepcopy(child))
    elif kind == "tag":
        child.tag = draw(st.sampled_from(TAGS))
    elif kind == "text":
        child.text = draw(st.sampled_from(ODD))
    else:
        parent.remove(child)


@st.composite
def spoiled(draw):
    """Draw a shipped robot with up to three things changed, as XML."""
    tree = copy.deepcopy(TREES[draw(st.sampled_from(sorted(TREES)))])
    for _ in range(draw(st.integers(1, 3))):
        spoil(tree, draw)
    return ET.tostring(tree, encoding="unicode")


@QUIET
@given(
    spoiled(),
    st.sampled_from(("fixed", "floating")),
    st.sampled_from(("error", "warn")),
)
def test_a_spoiled_urdf_is_read_or_refused_in_words(xml, root_joint, check):
    """A Model of which gravity forces come, or a ModelError with a message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = dyn.load_urdf(xml, root_joint=root_joint, check=check)
        except dyn.ModelError as error:
            assert len(str(error)) > 10
            return
    tau = dyn.solver("gravity").build(model, engine="plain")(model.neutral())
    assert np.shape(tau) == (model.nv,)


def numbers_of(tree):
    """Return each attribute of a file that holds numbers which dynamics use."""
    skipped = {
        id(x)
        for tag in ("visual", "collision")
        for y in tree.iter(tag)
        for x in y.iter()
    }
    return [
        (k, key)
        for k, element in enumerate(tree.iter())
        if element.tag in NUMERIC and id(element) not in skipped
        for key in sorted(element.attrib)
    ]


@QUIET
@given(st.sampled_from(sorted(TREES)).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(numbers_of(TREES[name])))),
    st.sampled_from(NO_NUMBERS))  # fmt: skip
def test_what_is_no_number_is_never_read_as_one(place, value):
    """Masses, inertias, origins, axes, limits: refused. A limit may be infinite."""
    name, (k, key) = place
    tree = copy.deepcopy(TREES[name])
    element = list(tree.iter())[k]
    assume(element.tag != "limit" or value not in INFINITE)
    words = element.get(key).split()
    element.set(key, " ".join([*words[:-1], value]) if len(words) > 1 else value)
    with pytest.raises(dyn.ModelError) as caught:
        dyn.load_urdf(ET.tostring(tree, encoding="unicode"), check="warn")
    assert len(str(caught.value)) > 10


JOINTS = ("joint1", "joint2", "nobody")
NUMBER = st.sampled_from(
    (0.0, 1.0, -2.5, 1e-9, 1e12, float("nan"), float("inf"), 3, -1)
)
ODD_VALUES = st.sampled_from(
    ("abc", "", None, True, [], {}, [1.0], [1, 2, 3], {"a": 1})
)
VALUE = st.one_of(NUMBER, NUMBER, ODD_VALUES)
"""Values of the wrong type stand where a number may stand. Lists, mappings and numbers
where names of kinds, links or joints are asked for are left out: see below."""


def table(keys, values=VALUE):
    """Draw a mapping with some of the keys."""
    return st.dictionaries(st.sampled_from(keys), values, max_size=3)


JOINT = table(
    (
        "damping",
        "friction",
        "armature",
        "effort",
        "swing",
        "twist",
        "axis",
        "passive",
        "pitch",
        "dampign",
    )
)
TYPED = st.tuples(JOINT, st.sampled_from(("revolute", "spherical", "fixed", "helical", "universal", "ball"))).map(
    lambda pair: {**pair[0], "type": pair[1]})  # fmt: skip
GEAR = st.fixed_dictionaries(
    {"joints": st.permutations(JOINTS).map(lambda x: list(x[:2]))},
    optional={"ratio": NUMBER, "offset": NUMBER, "rato": NUMBER},
)
SIDECAR = st.fixed_dictionaries({}, optional={
    "joints": st.dictionaries(st.sampled_from(JOINTS), st.one_of(JOINT, TYPED, ODD_VALUES), max_size=2),
    "armature": st.one_of(table(JOINTS), ODD_VALUES),
    "rotors": st.dictionaries(st.sampled_from(JOINTS), table(("inertia", "ratio", "x")), max_size=2),
    "springs": st.dictionaries(st.sampled_from(JOINTS), table(("stiffness", "rest", "x")), max_size=2),
    "gears": st.lists(GEAR, max_size=2),
    "jionts": VALUE,
})  # fmt: skip


@QUIET
@given(SIDECAR)
def test_a_spoiled_sidecar_is_read_or_refused_in_words(extras):
    """A Model, or a ModelError with a message; never another exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = dyn.load_urdf(robots.path("two_link"), extras=extras)
        except dyn.ModelError as error:
            assert len(str(error)) > 10
            return
    tau = dyn.solver("gravity").build(model, engine="plain")(model.neutral())
    assert np.isfinite(tau).all()
