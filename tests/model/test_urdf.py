"""Loading URDF: defaults, joints, merging, and errors that name the element."""

import gc
import io
import math
from xml.etree.ElementTree import Element

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.model import urdf
from dyn_core.model.checks.findings import Findings
from dyn_core.model.frames import on_links, origin
from dyn_core.model.garbage import SELDOM, seldom_collected
from dyn_core.model.joints import Prismatic, Revolute, Spherical
from dyn_core.model.joints.many import joint_transforms
from dyn_core.model.urdf_xml.attributes import attributes, texts
from dyn_core.model.urdf_xml.cleaning import clean_robot
from dyn_core.model.urdf_xml.xml_text import parse_xml
from dyn_core.spatial import RigidInertia, Symmetric, Transform, Vector

BODY = """<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"
 ixy="0" ixz="0" iyz="0"/></inertial>"""


def _robot(*parts):
    return '<robot name="r">' + "".join(parts) + "</robot>"


def _link(name, inside=BODY):
    return f'<link name="{name}">{inside}</link>'


def _joint(name, parent, child, kind="revolute", inside=""):
    limit = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/>{inside or limit}</joint>'
    )


TWO = (_link("base"), _link("a"), _joint("j", "base", "a"))


def _inertia(ixx, iyy, izz, ixy=0, mass=1):
    return (
        f'<inertial><mass value="{mass}"/><inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}"'
        f' ixy="{ixy}" ixz="0" iyz="0"/></inertial>'
    )


BAD = {
    "empty": ("", "the URDF is empty"),
    "malformed": ("<robot><link", "malformed XML"),
    "not a robot": ("<sdf/>", "root element is <sdf>"),
    "entity": ('<!DOCTYPE r [<!ENTITY x "1">]><robot name="r"/>', "entities"),
    "xacro": ('<robot name="r"><xacro:leg/></robot>', "xacro robot.urdf.xacro >"),
    "no link": (_robot(), "has no <link>"),
    "two roots": (_robot(*TWO, _link("b")), "2 roots: base, b"),
    "cycle": (
        _robot(*TWO, _link("b"), _link("c"), _joint("k", "b", "c"), _joint("l", "c", "b")),
        "links b, c form a cycle",
    ),
    "all cycle": (
        _robot(_link("b"), _link("c"), _joint("k", "b", "c"), _joint("l", "c", "b")),
        "form a cycle",
    ),
    "two parents": (
        _robot(*TWO, _link("b"), _joint("k", "base", "b"), _joint("l", "a", "b")),
        "link 'b' is the child of two joints, 'k' and 'l'",
    ),
    "unknown link": (
        _robot(*TWO, _joint("k", "a", "ghost")),
        "child link 'ghost' does not exist; links are: base, a",
    ),
    "no child": (
        _robot(*TWO, '<joint name="k" type="fixed"><parent link="a"/></joint>'),
        "joint 'k' lacks <child",
    ),
    "same link": (_robot(*TWO, _link("a")), "two <link>s are called 'a'"),
    "negative mass": (
        _robot(*TWO[:1], _link("a", _inertia(1, 1, 1, mass=-2)), TWO[2]),
        "link 'a': mass -2.0 is negative",
    ),
    "triangle": (
        _robot(*TWO[:1], _link("a", _inertia(0.1, 0.1, 0.3)), TWO[2]),
        r"link 'a': .*triangle.*0\.1, 0\.1, 0\.3",
    ),
    "not definite": (
        _robot(*TWO[:1], _link("a", _inertia(0.1, 0.1, 0.1, ixy=0.5)), TWO[2]),
        "not positive definite: principal moments -0.4",
    ),
    "massless inertia": (
        _robot(*TWO[:1], _link("a", _inertia(0.1, 0.1, 0.1, mass=0)), TWO[2]),
        "mass is 0 but",
    ),
    "nothing along": (
        _robot(_link("base"), _link("a", ""), _joint("j", "base", "a")),
        "joint 'j': nothing it carries has inertia along it",
    ),
    "zero axis": (
        _robot(*TWO[:2], _joint("j", "base", "a", inside='<axis xyz="0 0 0"/>')),
        "joint 'j': axis .* has no direction",
    ),
    "unknown type": (
        _robot(*TWO[:2], _joint("j", "base", "a", kind="rubber")),
        "unknown type 'rubber'; valid: fixed, revolute",
    ),
    "mimic unknown": (
        _robot(*TWO[:2], _joint("j", "base", "a", inside='<mimic joint="x"/>')),
        "joint 'j': mimics 'x', which does not exist; check='warn'",
    ),
    "mimic itself": (
        _robot(*TWO[:2], _joint("j", "base", "a", inside='<mimic joint="j"/>')),
        "mimics itself",
    ),
    "nan": (
        _robot(*TWO[:2], _joint("j", "base", "a", inside='<origin xyz="nan 0 0"/>')),
        "joint 'j': <origin> xyz=.*'nan' is not finite",
    ),
    "nan mass": (
        _robot(*TWO[:1], _link("a", _inertia(1, 1, 1, mass="nan")), TWO[2]),
        "link 'a': <mass> value=.*'nan' is not finite",
    ),
    "word": (
        _robot(*TWO[:2], _joint("j", "base", "a", inside='<axis xyz="up"/>')),
        "joint 'j': <axis> xyz=.*3 numbers are needed",
    ),
    "limits": (
        _robot(*TWO[:2], _joint("j", "base", "a",
               inside='<limit lower="2" upper="1" effort="1" velocity="1"/>')),
        "limits need lower <= upper",
    ),
    "damping": (
        _robot(*TWO[:2], _joint("j", "base", "a", inside='<dynamics damping="-1"/>')),
        "damping -1.0 must be >= 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_words(case):
    """Each error names the element and says what would be valid."""
    text, message = BAD[case]
    with pytest.raises(dyn.ModelError, match=message):
        dyn.load_urdf(text, check="error")


def test_errors_carry_the_element():
    """The element at fault is data, too."""
    with pytest.raises(dyn.ModelError) as caught:
        dyn.load_urdf(BAD["triangle"][0], check="error")
    assert caught.value.element == "a"


def test_check_warn_lets_real_files_through():
    """Implausible inertias become warnings; negative masses never pass."""
    model = dyn.load_urdf(BAD["triangle"][0])
    assert any("triangle" in warning for warning in model.warnings)
    with pytest.raises(dyn.ModelError, match="negative"):
        dyn.load_urdf(BAD["negative mass"][0], check="warn")
    for choice, message in (
        ({"sidecar": "no"}, "sidecar is 'no'; valid: True, False"),
        ({"lock": 3}, "lock is 3; valid: a mapping from joint to position"),
    ):
        with pytest.raises(dyn.ModelError, match=message):
            dyn.load_urdf(BAD["triangle"][0], **choice)
    with pytest.raises(dyn.ModelError, match="valid are error, warn"):
        dyn.load_urdf(BAD["triangle"][0], check="off")


def test_path_text_and_file_are_one_model(tmp_path):
    """The three kinds of source give the same robot; a missing file is named."""
    path = robots.path("two_link")
    text = path.read_text()
    models = [dyn.load_urdf(x) for x in (path, str(path), text, io.StringIO(text))]
    models.append(dyn.load_urdf(io.BytesIO(text.encode())))
    q = np.array([0.3, -0.4])
    H = [dyn.solver("crba").build(model)(q) for model in models]
    for other in H[1:]:
        np.testing.assert_array_equal(other, H[0])
    with pytest.raises(dyn.ModelError, match=r"cannot read.*missing\.urdf"):
        dyn.load_urdf(tmp_path / "missing.urdf")


def test_a_sidecar_that_extras_replace_is_named(tmp_path):
    """Not where it is left out by choice, or is the extras itself."""
    path, beside = tmp_path / "r.urdf", tmp_path / "r.dyn.yaml"
    path.write_text(_robot(*TWO))
    beside.write_text("springs: {j: {stiffness: 5.0}}")
    extras = {"armature": {"j": 0.1}}
    (warning,) = dyn.load_urdf(path, extras=extras).warnings
    assert warning == "r.dyn.yaml beside the file is not read: extras are given"
    assert dyn.load_urdf(path, extras=extras, sidecar=False).warnings == ()
    for model in (dyn.load_urdf(path), dyn.load_urdf(path, extras=beside)):
        assert (model.warnings, model.stiffness[1][0]) == ((), 5.0)


@pytest.mark.parametrize("name", ["r.dyn.yml", "r_dyn.yaml"])
def test_a_sidecar_with_another_ending_is_named(tmp_path, name):
    """Its springs were ignored in silence; r.yaml may be anything."""
    path, near = tmp_path / "r.urdf.xacro", tmp_path / name
    path.write_text(_robot(*TWO))
    (tmp_path / "r.yaml").write_text("[]")
    assert dyn.load_urdf(path).warnings == ()
    near.write_text("springs: {j: {stiffness: 5.0}}")
    with pytest.warns(
        dyn.errors.ModelWarning, match=f"{name} is not read; valid: r.dyn.yaml"
    ):
        model = dyn.load_urdf(path)
    assert (len(model.warnings), model.stiffness[1][0]) == (1, 0.0)
    for arguments in ({"sidecar": False}, {"extras": near}):
        assert dyn.load_urdf(path, **arguments).warnings == ()
    near.rename(tmp_path / "r.dyn.yaml")
    assert dyn.load_urdf(path).warnings == ()


def test_omitted_elements_get_defaults():
    """No inertial, origin, axis, limit or dynamics: URDF's defaults."""
    inside = "<!-- nothing -->"
    model = dyn.load_urdf(_robot(_link("base", ""), _link("a"),
                                 _joint("j", "base", "a", "continuous", inside)))  # fmt: skip
    assert model.joint[1].axis == (1.0, 0.0, 0.0)
    assert np.array_equal(np.asarray(model.Xtree[1]), np.eye(6))
    assert model.lower[0] == -math.inf
    assert model.upper[0] == math.inf
    assert model.effort_limit[0] == 0.0
    assert model.damping[1][0] == model.friction[1][0] == 0.0


def test_limits_and_dynamics_are_kept():
    """Damping, friction and all limits belong to the Model."""
    inside = (
        '<limit lower="-1" upper="2" effort="5" velocity="3"/>'
        '<dynamics damping="0.7" friction="0.2"/>'
    )
    model = dyn.load_urdf(_robot(*TWO[:2], _joint("j", "base", "a", inside=inside)))
    assert (model.lower[0], model.upper[0]) == (-1, 2)
    assert (model.velocity_limit[0], model.effort_limit[0]) == (3, 5)
    assert (model.flat("damping")[0], model.flat("friction")[0]) == (0.7, 0.2)


def test_unknown_elements_are_left_out_with_a_warning():
    """A stranger's tags do not stop loading; those of other programs are hints."""
    strange = '<transmission/><sensor name="s"/>'
    link = _link(
        "a", BODY + "<colour/><collision><geometry><capsule/></geometry></collision>"
    )
    model = dyn.load_urdf(_robot(TWO[0], link, TWO[2], strange))
    assert "unknown element <sensor> is left out" in model.warnings
    assert any("<colour>" in w for w in model.warnings)
    assert any("<capsule>" in w for w in model.warnings)
    assert any("<transmission> is for another program" in w for w in model.warnings)


def test_mesh_paths_are_kept_not_needed():
    """package:// and relative meshes stay as they are."""
    mesh = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    paths = ("package://arm/meshes/a.stl", "meshes/b.dae")
    parts = BODY + "".join(mesh.format(p) for p in paths)
    model = dyn.load_urdf(_robot(TWO[0], _link("a", parts), TWO[2]))
    shapes = model.build.description.link("a").geometry
    assert tuple(shape.mesh for shape in shapes) == paths


def test_fixed_links_are_merged_exactly_and_stay_frames():
    """A rod with a weight welded on equals one link with the sum."""
    weld = '<origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/>'
    text = _robot(*TWO, _link("tool", _inertia(0.2, 0.3, 0.4, 0.01, mass=3)),
                  _joint("w", "a", "tool", "fixed", weld))  # fmt: skip
    model = dyn.load_urdf(text)
    assert model.nb == 1
    assert model.frame_names == ("base", "a", "tool")
    assert model.body_of("tool") == model.body_of("a") == 1
    assert model.mass == pytest.approx(4)
    X = np.asarray(model.frame("tool").X)
    tool = np.asarray(urdf.describe(parse_xml(text)).link("tool").inertia)
    alone = np.asarray(dyn.load_urdf(_robot(*TWO)).I[1])
    np.testing.assert_allclose(
        np.asarray(model.I[1]), alone + X.T @ tool @ X, atol=1e-14
    )


def test_massless_intermediate_bodies_are_legal():
    """A cross of two axes without a body between has dynamics all the same."""
    text = _robot(_link("base", ""), _link("cross", ""), _link("a"),
                  _joint("x", "base", "cross", inside='<axis xyz="1 0 0"/>'),
                  _joint("y", "cross", "a", inside='<axis xyz="0 1 0"/>'))  # fmt: skip
    model = dyn.load_urdf(text)
    qdd = dyn.solver("aba").build(model)([0.1, 0.2], [0, 0], [1, 0])
    assert np.isfinite(qdd).all()


def test_a_singular_position_names_the_joint():
    """Two equal axes in a row without a body between: no unique answer."""
    text = _robot(_link("base", ""), _link("mid", ""), _link("a"),
                  _joint("first", "base", "mid"), _joint("second", "mid", "a"))  # fmt: skip
    model = dyn.load_urdf(text)
    for name in ("aba", "dense"):
        for engine in ("graph", "plain"):
            with pytest.raises(dyn.SingularError, match="joint (first|second)"):
                fd = dyn.solver(name).build(model, engine=engine)
                fd([0.1, 0.2], [0, 0], [1, 0])


def test_the_same_quarter_turn_is_exact():
    """rpy of quarter turns written with ten digits or as pi/2 gives zeros, not 1e-17."""
    turn = f'<origin rpy="{math.pi / 2!r} 0 {math.pi!r}"/>'
    text = _robot(*TWO[:2], _joint("j", "base", "a", inside=turn))
    E = np.asarray(dyn.load_urdf(text).Xtree[1].E)
    assert set(np.unique(np.abs(E))) == {0.0, 1.0}


def test_what_the_parser_says_often_is_said_once():
    """Unknown attributes of many joints are one warning with their names."""
    odd = '<limit lower="-1" upper="1" effort="5" velocity="2"/><dynamics mu="1"/>'
    parts = [_link("l0")]
    for k in range(1, 4):
        parts += [_link(f"l{k}"), _joint(f"j{k}", f"l{k - 1}", f"l{k}", inside=odd)]
    (warning,) = dyn.load_urdf(_robot(*parts)).warnings
    owners = "joints 'j1', 'j2', 'j3'"
    assert warning == f"{owners}: unknown attribute 'mu' of <dynamics> is left out"


MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
ANGLES = (0.0, -0.0, 0.3, -1.2, math.pi / 2, -math.pi)


def _spaced(numbers):
    return " ".join(map(repr, numbers))


def _bits(*parts):
    """Return numbers so that equal ones are equal to the last bit, zeros' signs too."""
    numbers = (np.asarray(part, float).ravel().tolist() for part in parts)
    return [[x.hex() for x in row] for row in numbers]


def test_many_places_are_those_of_one_to_the_last_bit():
    """Placements of many joints at once are the numbers of each alone."""
    rng = np.random.default_rng(1)
    rpy = rng.choice(ANGLES, (60, 3))
    xyz = rng.choice((0.0, -0.0, 0.2, -1.7), (60, 3))
    many = on_links(xyz, rpy)
    for X, place, angles in zip(many, xyz.tolist(), rpy.tolist(), strict=True):
        one = origin(place, angles) @ Transform.identity()
        assert _bits(X.E, X.r) == _bits(one.E, one.r)


def test_many_joint_transforms_are_those_of_one_to_the_last_bit():
    """E and r of joints of all kinds at once are the numbers of each alone."""
    rng = np.random.default_rng(2)
    axes = [*np.eye(3).tolist(), *rng.normal(size=(5, 3)).tolist()]
    joints = [kind(axis) for axis in axes for kind in (Revolute, Prismatic)]
    joints.append(Spherical())
    places = [[Vector(joint.random(rng)) for _ in range(3)] for joint in joints]
    E, r = joint_transforms(joints, places)
    alone = [
        joint.X(q)
        for joint, positions in zip(joints, places, strict=True)
        for q in positions
    ]
    for k, X in enumerate(alone):
        assert _bits(E[k], r[k]) == _bits(X.E, X.r)


def test_many_inertias_are_those_of_one_to_the_last_bit():
    """Inertias of many links are the numbers of each alone, wherever they are given."""
    rng = np.random.default_rng(3)
    rows = []
    for k in range(16):
        xyz = (rng.normal(size=3) * (k & 1)).tolist()
        rpy = (rng.choice(ANGLES, 3) * (k >> 1 & 1)).tolist()
        rows.append((rng.uniform(0.1, 9.0), xyz, rpy, rng.normal(size=6).tolist()))
    links, bodies = [_link("base", "")], []
    for k, (m, xyz, rpy, six) in enumerate(rows):
        I = " ".join(f'{name}="{x!r}"' for name, x in zip(MOMENTS, six, strict=True))
        place = f'xyz="{_spaced(xyz)}" rpy="{_spaced(rpy)}"'
        inside = f'<origin {place}/><mass value="{m!r}"/><inertia {I}/>'
        links.append(_link(f"l{k}", f"<inertial>{inside}</inertial>"))
        if any(rpy):
            six = Symmetric(six).rotated(origin(xyz, rpy).E.T).entries
        zero = RigidInertia(m, Vector((0.0, 0.0, 0.0)), Symmetric(six))
        bodies.append(RigidInertia.of(m, xyz, six) if any(xyz) else zero)
    read = urdf.describe(parse_xml(_robot(*links))).links[1:]
    for link, body in zip(read, bodies, strict=True):
        assert _bits(link.inertia.parameters) == _bits(body.parameters)


def test_equal_elements_are_handed_to_the_parser_once():
    """Links and joints that share an element all have what it says; others have not."""
    limit = '<limit lower="-1" upper="{}" effort="5" velocity="2"/>'
    parts = [_link("l0")]
    for k in range(1, 7):
        inside = limit.format(2 if k < 6 else 3)
        body = _inertia(0.1, 0.2, 0.2, 0.0, mass=1 if k < 6 else 2)
        parts += [
            _link(f"l{k}", body),
            _joint(f"j{k}", f"l{k - 1}", f"l{k}", inside=inside),
        ]
    text = _robot(*parts)
    clean = clean_robot(parse_xml(text), Findings())
    assert len(clean.element.findall("joint")) == 6
    assert len(clean.element.findall("joint/limit")) == 2
    model = dyn.load_urdf(text)
    assert model.upper.tolist() == [2.0] * 5 + [3.0]
    assert model.effort_limit.tolist() == [5.0] * 6
    assert [model.I[i].m for i in model.bodies] == [1.0] * 5 + [2.0]


NUMBERS = (
    "1", "-0", "+.5", " 1. ", "1e9", "1e10", "2E+3", "1e-400", "1e100", "1e101", "1e400",
    "123456789012", "0." + "1" * 500, "", " ", ".", "-", "e5", "1 2", "1|2", "1_0", "0x1",
    "nan", "inf", "-Infinity", "\u0664", "1\u00a02", "${x}", "1\n", "1,5",
)  # fmt: skip


def _outcome(function, element):
    try:
        return function(Findings(), ("joint", "j"), element)
    except dyn.ModelError as error:
        return str(error)


def test_the_parser_reads_the_numbers_that_were_checked():
    """What is handed on as it is in the file means what a closer look found in it."""
    for value in NUMBERS:
        for element in (
            Element("limit", effort=value, velocity="1.5"),
            Element("mass", value=value),
            Element("origin", xyz=f"{value} 2 {value}"),
            Element("mimic", joint=value, offset="0.5"),
        ):
            read, numbers = (_outcome(f, element) for f in (texts, attributes))
            if isinstance(read, str):
                assert read == numbers
                continue
            for key, values in numbers.items():
                if isinstance(values, str):
                    assert read[key] == values
                else:
                    assert tuple(map(float, read[key].split())) == values


def test_the_escapes_of_python_are_no_encoding():
    """They would make Python warn of what is in the file."""
    text = _robot(*TWO).replace('"r"', '"a\\]"')
    for name in ("unicode_escape", "raw-unicode-escape"):
        content = f'<?xml version="1.0" encoding="{name}"?>{text}'.encode()
        with pytest.raises(dyn.ModelError, match=f"'{name}', which is not known"):
            dyn.load_urdf(content)


def test_thresholds_of_the_collector_are_put_back():
    """After a robot, after an error, and not where somebody else has set them."""
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 11, 12)
        dyn.load_urdf(_robot(*TWO))
        assert gc.get_threshold() == (700, 11, 12)
        with pytest.raises(dyn.ModelError):
            dyn.load_urdf(_robot(*TWO, _link("b")))
        assert gc.get_threshold() == (700, 11, 12)
        with seldom_collected():
            assert gc.get_threshold() == (SELDOM, 11, 12)
            with seldom_collected():  # of another thread
                pass
            assert gc.get_threshold() == (SELDOM, 11, 12)
            gc.set_threshold(800, 3, 3)
        assert gc.get_threshold() == (800, 3, 3)
        gc.set_threshold(0)
        with seldom_collected():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
