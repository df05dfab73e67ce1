"""Any URDF, sidecar, chain or world that a slip makes: read, or an error in words."""

import copy
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.planar.chain.files import load_chain

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
    fields = element.get(key).split()
    element.set(key, " ".join([*fields[:-1], value]) if len(fields) > 1 else value)
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


def _two_link(extras):
    return dyn.load_urdf(robots.path("two_link"), extras=extras)


CHAIN = {
    "name": "c", "joint_names": ["a", "b", "c"], "lengths": [0.5, 0.4],
    "masses": [1.0, 0.7, 0.5], "gravity": [0.0, -9.81], "base": "line",
    "normal": [0.0, 1.0], "active": {"b": 0.0}, "limits": {"b": [-2.0, None]},
    "constraints": {"c": {"kind": "line", "s": [0.0, 1.0], "a_w": [0.0, 0.0]}},
    "k_omega": {"b": 0.1}, "k_v": 0.02, "link_masses": [0.0, 0.3],
    "link_coms": [0.0, 0.2], "link_inertias": [0.0, 0.01], "dt": 0.001,
    "ground": [{"z0": [0.0, 0.0], "z": [0.0, 1.0], "joints": ["c"], "mode": "stick"}],
    "start": {"x0": [0.0, 1.0], "theta": [-1.2, 0.3]}, "window": 0.005,
}  # fmt: skip
WORLD = {
    "half_spaces": [{"name": "floor", "point": [0, 0, 0], "normal": [0, 0, 1],
                     "material": {"mu": 0.8, "restitution": 0.1}}],
    "margin": 0.02, "packages": {"a": "b"}, "solver": "admm", "erp": 0.2,
    "solver_options": {"max_iterations": 9, "tolerance": 1e-9}, "stepper": "event_driven",
    "stabilisation": "none", "impacts": "sequential", "contacts": True,
    "gears": [{"joints": ["a", "b"], "ratio": 2.0, "offset": 0.0}, ["a", "b", 1, 0]],
    "max_impacts": 9,
}  # fmt: skip
SIDECAR_FILE = {
    "joints": {"joint1": {"type": "product", "damping": 0.1, "passive": False,
                          "friction": [0.2, 0.1],
                          "factors": [{"type": "revolute", "axis": [0, 0, 1]}],
                          "plug": {"xyz": [0, 0, 0.1], "rpy": [0, 0, 0]}}},
    "springs": {"joint1": {"stiffness": 50.0, "rest": 0.1}},
    "point_springs": [{"name": "s", "a": "link1", "b": "link2", "at_a": [0, 0, 0.1],
                       "at_b": [1, 0, 0], "stiffness": 9.0, "rest_length": 0.1}],
    "armature": {"joint1": 0.02}, "rotors": {"joint2": {"inertia": 2e-5, "ratio": 9}},
    "gears": [{"joints": ["joint1", "joint2"], "ratio": -3.0, "offset": 0.0}],
    "loops": [{"name": "D", "kind": "pin", "b": "link2", "a": "link1",
               "at_b": {"xyz": [1, 0, 0]}, "at_a": {"xyz": [2, 0, 0]}}],
    "collisions": {"link1": [{"type": "sphere", "radius": 0.02, "xyz": [0, 0, -0.2]}],
                   "link2": {"replace": [{"type": "box", "size": [1, 1, 1]}]}},
    "pairs": {"allow": [["link1", "link2"]], "deny": [["base", "*"]]},
    "materials": {"default": {"mu": 0.8}},
}  # fmt: skip
LOOP = {}
LOOP["loop"] = [LOOP]
ANYTHING = st.one_of(
    VALUE,
    st.sampled_from(
        (["x"], [[1.0]], [None], {"x": [1]}, {1: 2}, "joint1", "link2", "a", "line",
         "pin", 10**400, 10**5000, True, [[["x"]]], LOOP)
    ),
)  # fmt: skip


def places(data, path=()):
    """Return the path of each entry of a file."""
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in entries:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


@st.composite
def changed(draw, data):
    """Draw a file with one entry replaced, left out, or renamed."""
    all_places = list(places(data))
    data = copy.deepcopy(data)
    *path, last = draw(st.sampled_from(all_places))
    part = data
    for key in path:
        part = part[key]
    what = draw(st.sampled_from(("put", "put", "put", "drop", "rename")))
    if what == "put":
        part[last] = draw(ANYTHING)
    elif what == "drop" or isinstance(part, list):
        del part[last]
    else:
        part[draw(st.sampled_from(("kidn", 3, "x" * 300, "joint1")))] = part.pop(last)
    return data


READERS = {
    "sidecar": (_two_link, SIDECAR_FILE),
    "chain": (load_chain, CHAIN),
    "world": (dyn.World.of, WORLD),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_changed_file_is_read_or_refused_in_words(reader):
    """Each entry replaced by anything: read, or a short error of ours."""
    read, data = READERS[reader]

    @settings(QUIET, max_examples=60)
    @given(changed(data))
    def check(file):
        try:
            read(file)
        except dyn.DynError as error:  # a World looks for its solver, too
            assert 10 < len(str(error)) < 1000

    check()
    if reader != "sidecar":  # its loop does not fit the two joints
        read(data)


DEEP = [0]
for _ in range(4):
    DEEP = [DEEP] * 9
LOOPS = [{"kind": "pin", "b": "link2"}]
GEARS = [{"joints": ["joint1", "joint2"]}]


def _first(entries, **changes):
    return [{**entries[0], **changes}]


@pytest.mark.parametrize(
    ("extras", "message"),
    [
        ({"loops": _first(LOOPS, at_a={"xyz": ["a", "b", "c"]})}, "at_a: xyz.0. is 'a'"),
        ({"loops": _first(LOOPS, at_a={"xyz": 3})}, "xyz is 3; valid: a list of 3"),
        ({"loops": _first(LOOPS, at_a={"xyz": None})}, "xyz is empty; valid: a list"),
        ({"loops": _first(LOOPS, kind=["x"])}, "kind is .'x'.; valid: point, pin"),
        ({"loops": _first(LOOPS, b=["x"])}, "b is .'x'.; valid: a name"),
        ({"loops": _first(LOOPS, b="nose")}, "no link is called 'nose'; valid: base"),
        ({"loops": [{"kind": "axes", "b": "link2"}]}, "axes is missing; valid: a list"),
        ({"loops": [{"kind": "distance", "b": "link2"}]}, "length is missing"),
        ({"joints": {"joint1": {"type": ["x"]}}}, "type is .'x'.; valid: fixed, rev"),
        ({"joints": {"joint1": {"type": "product", "factors": [{"type": ["x"]}]}}},
         "factors.0.: type is .'x'.; valid"),
        ({"joints": {"joint1": {"damping": "2e-5"}}}, "damping is '2e-5'; valid: a num"),
        ({"collisions": {"link1": [{"type": ["x"]}]}}, "type is .'x'.; valid: sphere"),
        ({"gears": [{"joints": [["a"], "b"]}]}, "joints.0. is .'a'.; valid: a name"),
        ({"gears": _first(GEARS, ratio=DEEP)}, "ratio.0..0. is .*; valid: a number"),
        ({"gears": _first(GEARS, ratio=LOOP["loop"])}, "nested more than 32 deep"),
        ({"gears": _first(GEARS, ratio=[[1, 2], [3]])}, "ratio needs 1 rows of 1"),
        ({"armature": {"joint1": DEEP}}, "joint1 is ...*; valid: a number"),
        ({"armature": {"joint1": 10**400}}, "joint1 is inf; valid: a finite number"),
        ({"springs": {"joint1": {"stiffness": 1, "rest": DEEP}}}, "rest.0. is"),
        ({"rotors": {"joint1": {"inertia": 1e300, "ratio": 1e300}}}, "not finite"),
        ({"rotors": {"joint1": {"inertia": 1e-5, "ratio": 0}}}, "joint1: ratio is 0;"),
        ({"rotors": {"joint1": {"inertia": -1e-5}}}, "inertia.*valid: .*0 or more"),
        ({"armature": {"joint1": [DEEP] * 9}}, "more than 20000 values, aliases expanded; valid: fewer"),
        (3, "the sidecar is 3; valid: a path, YAML text or a mapping"),
        ("a\0b", "cannot read the sidecar"),
    ],
)  # fmt: skip
def test_files_of_others_do_no_harm(extras, message):
    """What once raised a foreign exception, hung or filled the screen."""
    with pytest.raises(dyn.ModelError, match=message) as caught:
        _two_link(extras)
    assert len(str(caught.value)) < 400
