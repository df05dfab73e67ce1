"""Robots as files have them: every oddity loads with a warning, or is refused in words."""

import pickle
import re
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from urdf_parser_py.xml_reflection import core as reflection

import dyn_core as dyn
from dyn_core import errors
from dyn_core.model.checks.findings import Hint
from dyn_core.problems import PROBLEMS
from dyn_core.reports.doctor.examine import doctor
from dyn_core.simulation.robot_overview import describe

MOMENTS = '<inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0.01" ixz="0" iyz="0"/>'
COM = '<origin xyz="0.1 0.2 0.3" rpy="0.1 0 0"/>'
BODY = f'<inertial>{COM}<mass value="2"/>{MOMENTS}</inertial>'
LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
AXIS = '<axis xyz="0 1 0"/>'


def shape(inside, role="collision"):
    return f"<{role}><geometry>{inside}</geometry></{role}>"


def inertial(inside):
    return f"<inertial>{inside}</inertial>"


def joint(name, parent, child, inside=LIMIT, kind="revolute", origin="0 0 1"):
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{origin}"/>'
        f'<parent link="{parent}"/><child link="{child}"/>{inside}</joint>'
    )


def robot(
    a=BODY, j=AXIS + LIMIT, b=BODY, k=AXIS + LIMIT, more="", tag='robot name="r"'
):
    """Return a chain base -j- a -k- b; what is given stands inside link or joint."""
    return (
        f'<{tag}><link name="base"/><link name="a">{a}</link><link name="b">{b}</link>'
        f"{joint('j', 'base', 'a', j)}{joint('k', 'a', 'b', k)}{more}</robot>"
    )


def fixed_tool(inside):
    return '<link name="tool"/>' + joint("f", "b", "tool", inside, "fixed")


# What loads: the file, what its warning says, and whether check='error' refuses it.
LOADS = {
    "triangle": (robot(b=BODY.replace('"0.2"', '"0.9"')), "link 'b': inertia breaks the triangle", True),
    "moments without mass": (robot(b=BODY.replace('"2"', '"0"')), "link 'b': mass is 0 but", True),
    "not definite": (robot(b=BODY.replace('"0.01"', '"0.5"')), "link 'b': inertia is not positive definite", True),
    "empty tip": (robot(b=""), "joint 'k': nothing it carries has inertia along it", True),
    "kinematics only": (robot(a="", b=""), "joints 'j', 'k': nothing that they carry", True),
    "lower above upper": (robot(k=AXIS + '<limit lower="1" upper="-1" effort="1" velocity="1"/>'),
                          "joint 'k': limits need lower <= upper, got 1 and -1; taken as none", True),
    "limits beyond 1e100": (robot(k=AXIS + '<limit lower="-1.8e308" upper="1.8e308" effort="1" velocity="1"/>'),
                            "joint 'k': lower limit -1.8e308 is read as none", False),
    "infinite effort": (robot(k=AXIS + '<limit lower="-1" upper="1" effort="inf" velocity="1"/>'),
                        "joint 'k': effort limit inf is read as none", False),
    "velocity 0": (robot(k=AXIS + LIMIT.replace('"2"', '"0"')), "joint 'k': velocity limit 0 is read as none", False),
    "soft limits": (robot(k=AXIS + LIMIT + '<safety_controller k_velocity="1" soft_lower_limit="-0.8" soft_upper_limit="2"/>'),
                    "joint 'k': soft_lower_limit -0.8 of <safety_controller> is not used; the limits of <limit> are", False),
    "no limit": (robot(k=AXIS), "joint 'k': revolute without <limit>; taken as free", False),
    "lost mimic": (robot(k=AXIS + LIMIT + '<mimic joint="x"/>'), "joint 'k': mimics 'x', which does not exist", True),
    "mimic of itself": (robot(k=AXIS + LIMIT + '<mimic joint="k"/>'), "joint 'k': mimics itself", True),
    "mimic of a fixed joint": (robot(k=AXIS + LIMIT + '<mimic joint="f"/>', more=fixed_tool("")),
                               "joint 'k': mimics 'f', which is fixed", True),
    "one mesh scale": (robot(b=BODY + shape('<mesh filename="x.stl" scale="0.1"/>')),
                       "link 'b': one scale of a <mesh> is taken for x, y and z", False),
    "two shapes": (robot(b=BODY + shape('<box size="1 1 1"/><sphere radius="1"/>')),
                   "link 'b': <collision> has 2 shapes in one <geometry>; <box> is taken", False),
    "no shape": (robot(b=BODY + shape("")), "link 'b': <collision> with nothing is left out", False),
    "negative radius": (robot(b=BODY + shape('<sphere radius="-1"/>')), "link 'b': <collision> 1: <sphere>: size -1", True),
    "no radius": (robot(b=BODY + shape("<sphere/>", "visual")), "link 'b': <visual>: <sphere> has no radius", True),
    "bad visual": (robot(b=BODY + shape('<box size="1 a 1"/>', "visual")), "link 'b': <box> size=.*'a' is not a number", True),
    "misspelt axis of a fixed joint": (robot(more=fixed_tool('<axis xzy="1 0 0"/>')), "joint 'f': unknown attribute 'xzy'", True),
    "bad axis of a fixed joint": (robot(more=fixed_tool('<axis xyz=""/>')), "joint 'f': <axis> xyz=.*of a fixed joint is left out", True),
    "mimic of a fixed follower": (robot(more=fixed_tool('<mimic joint="k"/>')), "joint 'f': the <mimic> of a fixed joint", False),
    "left-over xacro": (robot(more='<xacro:property name="${x}" value="1"/>'), "left-over <xacro:property> is left out", False),
    "left-over xacro in a link": (robot(b=BODY + "<xacro:leg/>"), "link 'b': left-over <xacro:leg>", False),
    "default namespace": (robot(tag='robot name="r" xmlns="http://drake.mit.edu"'), "the namespace of <robot", False),
    "undeclared prefix": (robot(more="<gazebo><sensor:camera/></gazebo>"), "<gazebo> is for another program", False),
    "drake": (robot(more="<drake:linear_bushing_rpy/>"), "<drake:linear_bushing_rpy> is for another", False),
    "unknown element": (robot(more="<sensor/>"), "unknown element <sensor> is left out", False),
    "unknown attribute": (robot(k=AXIS + LIMIT + '<dynamics mu="1"/>'), "joint 'k': unknown attribute 'mu' of <dynamics>", False),
    "two inertials": (robot(b=BODY + BODY), "link 'b': another <inertial> is left out", False),
    "two origins": (robot(b=BODY.replace(COM, COM + COM)), "link 'b': another <origin> in <inertial>", False),
    "two limits": (robot(k=AXIS + LIMIT + LIMIT), "joint 'k': another <limit> is left out", False),
    "products left out": (robot(b=inertial('<mass value="1"/><inertia ixx="1" iyy="1" izz="1"/>')),
                          "link 'b': <inertia> has no ixy, ixz, iyz", True),
    "no mass element": (robot(b=inertial(COM)), "link 'b': <inertial> has no <mass>", True),
    "point mass": (robot(b=inertial(COM + '<mass value="1"/>')), "link 'b': <inertial> has no <inertia>", False),
    "no name": (robot(tag="robot"), "<robot> has no name", False),
    "version": (robot(tag='robot name="r" version="3.7"'), "version '3.7' of URDF is read as 1.2", False),
    "world is not a link": (robot(more=joint("w", "world", "base", "", "fixed")), "link 'world': the file has none", False),
    "limits of followers": (robot(k=AXIS + LIMIT.replace("-1", "0.9") + '<mimic joint="j" multiplier="-1" offset="9"/>'),
                            "joint 'j' keeps its limits", False),
}  # fmt: skip


HINTS = ("undeclared prefix", "drake", "unknown attribute")


@pytest.mark.parametrize("case", LOADS)
def test_what_is_odd_loads_with_a_warning(case):
    """In model.warnings and, but for hints, in one of Python's; `error` refuses some."""
    xml, message, refused = LOADS[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = dyn.load_urdf(xml)
    assert len(caught) == (case not in HINTS)
    for warning in caught:
        assert warning.category is dyn.errors.ModelWarning
        assert re.search(message.split(":")[-1], str(warning.message))
        assert Path(warning.filename).name == "test_oddities.py"
    assert any(re.search(message, warning) for warning in model.warnings)
    assert not any("check=" in warning for warning in model.warnings)
    tau = dyn.solver("rnea").build(model, engine="plain")(*_state(model))
    assert np.isfinite(tau).all()
    if refused:
        with pytest.raises(dyn.ModelError, match=r"check='warn' lets it pass$"):
            dyn.load_urdf(xml, check="error")
    else:
        assert _quiet(xml, check="error").warnings == model.warnings


def test_warnings_point_to_the_line_that_loads():
    """Of dyn.load as of dyn.load_urdf, which check keywords before they load."""
    xml = '<robot name="odd"><link name="base"/><unknown/></robot>'
    for reader in (dyn.load, dyn.load_urdf):
        with pytest.warns(dyn.errors.ModelWarning) as caught:
            reader(xml)
        assert [warning.filename for warning in caught] == [__file__]


def _quiet(xml, **options):
    """Load without Python's warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dyn.errors.ModelWarning)
        return dyn.load_urdf(xml, **options)


def _state(model):
    """Return a state without symmetry."""
    rng = np.random.default_rng(1)
    return model.random(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


BAD_NUMBERS = {
    "underscore": ("1_0", "'1_0' is not a number"),
    "arabic": ("\u0661", "is not a number"),
    "fullwidth": ("\uff11", "is not a number"),
    "space of another script": ("1\u00a0", "is not a number"),
    "hexadecimal": ("0x10", "'0x10' is not a number"),
    "comma": ("1,5", "is not a number"),
    "word": ("one", "is not a number"),
    "nothing": ("", "one number is needed"),
    "two": ("1 2", "one number is needed"),
    "nan": ("nan", "'nan' is not finite"),
    "inf": ("-inf", "'-inf' is not finite"),
    "overflow": ("1e999", "too large; valid: up to 1e100"),
    "large": ("1e101", "too large; valid: up to 1e100"),
}


@pytest.mark.parametrize("case", BAD_NUMBERS)
def test_what_is_no_number_is_refused_whatever_the_check(case):
    """Masses, moments, places and rules: the error names link or joint and attribute."""
    value, message = BAD_NUMBERS[case]
    follower = '<mimic joint="j" multiplier="{}"/>'
    for xml, where, name in (
        (robot(b=BODY.replace('value="2"', f'value="{value}"')), "link 'b': <mass> value=", "b"),
        (robot(b=BODY.replace('"0.15"', f'"{value}"')), "link 'b': <inertia> izz=", "b"),
        (robot(k=AXIS + LIMIT + follower.format(value)), "joint 'k': <mimic> multiplier=", "k"),
        (robot(k=AXIS + LIMIT + f'<dynamics damping="{value}"/>'), "joint 'k': <dynamics> damping=", "k"),
    ):  # fmt: skip
        with pytest.raises(dyn.ModelError, match=message) as caught:
            dyn.load_urdf(xml)
        assert where in str(caught.value)
        assert caught.value.element == name
    three = message.replace("one number is", "3 numbers are")
    with pytest.raises(dyn.ModelError, match=three.replace("1e999", value)):
        dyn.load_urdf(robot(b=BODY.replace('xyz="0.1 0.2 0.3"', f'xyz="{value}"' if "needed" in message else f'xyz="0 0 {value}"')))  # fmt: skip


REFUSED = {
    "mass as text": (robot(b=inertial("<mass>5</mass>")), "link 'b': <mass> has no value; valid: <mass value"),
    "axis of two numbers": (robot(k='<axis xyz="1 0"/>' + LIMIT), "joint 'k': <axis> xyz=.*3 numbers are needed"),
    "axis without numbers": (robot(k="<axis/>" + LIMIT), "joint 'k': <axis> has no xyz; valid: <axis xyz"),
    "misspelt axis": (robot(k='<axis xzy="1 0 0"/>' + LIMIT), "joint 'k': <axis> has no xyz"),
    "xacro expression": (robot(k='<axis xyz="${a} 0 0"/>' + LIMIT), "expand them first"),
    "xacro name": (robot(more='<link name="${a}"/>'), "expand them first"),
    "only xacro": ('<robot name="r"><xacro:leg/></robot>', "xacro robot.urdf.xacro >"),
    "two rotations": (robot(b=BODY.replace("rpy=", 'quat_xyzw="0 0 0 1" rpy=')), "link 'b': <origin> quat_xyzw: rpy is there"),
    "no rotation": (robot(b=BODY.replace('rpy="0.1 0 0"', 'quat_xyzw="0 0 0 0"')), "link 'b': .*length 0"),
    "follows no name": (robot(k=AXIS + LIMIT + "<mimic/>"), "joint 'k': <mimic> has no joint"),
    "negative mass": (robot(b=BODY.replace('"2"', '"-2"')), "link 'b': mass -2.0 is negative"),
    "mass without digits": (robot(b=BODY.replace('"2"', '".1e-320"')), "link 'b': mass 1e-321 has no full digits"),
    "entity": ('<!DOCTYPE r [<!ENTITY x "1">]>' + robot(), "entities"),
    "bytes that are not UTF-8": ('<robot name="\u00e9"/>'.encode("latin-1"), "not in the encoding utf-8"),
    "unknown encoding": (b'<?xml version="1.0" encoding="klingon"?><robot/>', "encoding 'klingon', which is not known"),
    "not text at all": (b'<?xml version="1.0" encoding="base64"?><robot/>', "encoding 'base64', which is not known"),
    "lone surrogate": ("<robot name='\ud800'/>", "malformed XML"),
    "nothing": (None, "a path, XML or an open file, not NoneType"),
    "undefined entity": ("<robot name='&x;'/>", "malformed XML: undefined entity"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_whatever_the_check(case):
    """The error says what and where, not that another check would let it pass."""
    source, message = REFUSED[case]
    for check in ("warn", "error"):
        with pytest.raises(dyn.ModelError, match=message) as caught:
            dyn.load_urdf(source, check=check)
        assert "check=" not in str(caught.value)


def test_quaternions_of_urdf_1_1_are_used():
    """The pose is that of rpy, also where the pitch is a quarter turn."""
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(2)
    turns = [*Rotation.random(5, random_state=3), *(
        Rotation.from_euler("xyz", (a, s * np.pi / 2, 0.3)) for a in (0.0, 0.7) for s in (1, -1))]  # fmt: skip
    for turn in turns:
        x = " ".join(map(repr, (turn.as_quat() * rng.uniform(0.5, 2)).tolist()))
        text = robot(b=BODY + shape('<box size="1 2 3"/>')).replace(
            "<collision>", f'<collision><origin quat_xyzw="{x}"/>'
        )
        text = text.replace(
            '<origin xyz="0 0 1"/>', f'<origin xyz="0 0 1" quat_xyzw="{x}"/>'
        )
        model = _quiet(text)
        assert model.warnings == ()
        np.testing.assert_allclose(
            np.asarray(model.Xtree[1].E.T), turn.as_matrix(), atol=2e-15
        )
        R = np.asarray(model.shapes[0].shape.X.E.T)
        np.testing.assert_allclose(R, turn.as_matrix(), atol=2e-15)


def test_a_shape_with_two_rotations_is_left_out_with_a_warning():
    """As a link or joint with both is refused; neither of them is taken silently."""
    both = '<collision><origin rpy="1 0 0" quat_xyzw="0 0 0 1"/>'
    text = shape('<box size="1 2 3"/>').replace("<collision>", both)
    with pytest.warns(dyn.errors.ModelWarning, match="quat_xyzw: rpy is there, too"):
        model = dyn.load_urdf(robot(b=BODY + text))
    assert model.shapes == ()


def test_capsules_and_limits_of_urdf_1_2_are_read():
    """A capsule is a shape; limits of acceleration and jerk belong to the Model."""
    limit = LIMIT.replace("/>", ' acceleration="7" deceleration="6" jerk="9"/>')
    model = dyn.load_urdf(robot(
        b=BODY + shape('<capsule radius="0.1" length="0.4"/>'), k=AXIS + limit,
        tag='robot name="r" version="1.2"'), check="error")  # fmt: skip
    (capsule,) = [placed.shape for placed in model.shapes]
    assert (capsule.kind, capsule.radius, capsule.length) == ("capsule", 0.1, 0.4)
    assert model.acceleration_limit.tolist() == [np.inf, 6.0]
    assert model.jerk_limit.tolist() == [np.inf, 9.0]
    assert model.warnings == ()


def test_free_where_limits_are_none():
    """Lower above upper, and limits beyond 1e100: the joint has no limits."""
    for case in ("lower above upper", "limits beyond 1e100"):
        model = _quiet(LOADS[case][0])
        assert (model.lower[1], model.upper[1]) == (-np.inf, np.inf)
    assert _quiet(LOADS["infinite effort"][0]).effort_limit[1] == 0.0
    assert _quiet(LOADS["velocity 0"][0]).velocity_limit[1] == np.inf


def test_followers_in_a_circle_have_one_leader():
    """The first joint of the circle is free, the others follow it."""
    xml = robot(
        j=AXIS + LIMIT + '<mimic joint="k"/>', k=AXIS + LIMIT + '<mimic joint="j"/>'
    )
    model = _quiet(xml)
    assert model.joint_names == ("j",)
    assert list(model.followers) == ["k"]
    assert "joint 'j': mimics in a circle (j -> k -> j)" in model.warnings[0]


@pytest.mark.parametrize("encoding", ("latin-1", "utf-16", "utf-8-sig", "cp1252"))
def test_bytes_are_read_as_they_are_declared(encoding, tmp_path):
    """Bytes, a file and an open file: the same names, none with a replacement."""
    text = robot(tag='robot name="\u00e9"').replace('"a"', '"gr\u00fcn"')
    declared = encoding.removesuffix("-sig")
    data = f'<?xml version="1.0" encoding="{declared}"?>{text}'.encode(encoding)
    path = tmp_path / "r.urdf"
    path.write_bytes(data)
    with path.open("rb") as file:
        for source in (data, path, file):
            model = dyn.load_urdf(source)
            assert model.name == "\u00e9"
            assert model.frame_names == ("base", "gr\u00fcn", "b")
    wrong = data.replace(b"utf-16", b"utf-8") if encoding == "utf-8-sig" else data
    assert "\ufffd" not in dyn.load_urdf(wrong).frame_names


def test_a_joint_called_root_joint_is_not_the_root():
    """The floating root takes another name, and says so."""
    xml = robot().replace('"k"', '"root_joint"')
    model = _quiet(xml, root_joint="floating")
    assert model.joint_names == ("root_joint_", "j", "root_joint")
    assert model.v_slice("root_joint") == slice(7, 8)
    assert any("joint of the floating root is called" in w for w in model.warnings)
    assert dyn.load_urdf(xml).warnings == ()


def test_locks_that_contradict_a_rule_are_refused():
    """Leader and follower may both be locked, but only as the rule has it."""
    xml = robot(
        k=AXIS + LIMIT + '<mimic joint="j" multiplier="0.5" offset="0.1"/>',
    )
    assert dyn.load_urdf(xml, lock={"j": 0.4, "k": 0.3}).nv == 0
    with pytest.raises(dyn.ModelError, match=r"joint 'k' is given \[0.9\].*\[0.3\]"):
        dyn.load_urdf(xml, lock={"j": 0.4, "k": 0.9})
    for value in ("abc", None, [], {}, [1.0, 2.0], np.nan):
        with pytest.raises(
            dyn.ModelError, match="joint 'j' needs 1 finite number, got"
        ):
            dyn.load_urdf(xml, lock={"j": value})


@pytest.mark.parametrize("gravity", (None, "abc", (1, 2), (0, 0, np.nan), 9.81, "123"))
def test_gravity_needs_three_numbers(gravity):
    """Anything else is refused in words."""
    with pytest.raises(dyn.ModelError, match="gravity needs three finite numbers"):
        dyn.load_urdf(robot(), gravity=gravity)


def _divisions():
    """Return the solvers of robots that divide by inertia, references too."""
    names = []
    for problem in PROBLEMS:
        if problem.divides_by_inertia:
            names += dyn.solvers(problem, references=True)
    return names


EMPTY_TIP = robot(b="")


def test_solvers_that_divide_by_inertia_refuse_when_built():
    """Each names the joint and what would do; armature or a lock is enough."""
    model = _quiet(EMPTY_TIP)
    assert model.without_inertia == ("k",)
    names = _divisions()
    assert {"aba", "dense", "rk4", "hybrid", "mass_matrix_inverse"} <= {*names}
    message = "joint 'k': nothing it carries has inertia along it; give a link below"
    for name in names:
        with pytest.raises(dyn.UnsupportedError, match=message):
            dyn.solver(name).build(model, engine="plain", **OPTIONS.get(name, {}))
    for good in (
        model.lock({"k": 0.1}),
        _quiet(EMPTY_TIP, extras={"armature": {"k": 0.1}}),
    ):
        assert good.without_inertia == ()
        assert np.isfinite(dyn.solver("aba").build(good, engine="plain")(
            *np.zeros((3, good.nv)))).all()  # fmt: skip


OPTIONS = {}


def test_what_needs_no_inertia_works_without():
    """Kinematics, inverse dynamics, H, and hybrid dynamics with the joint prescribed."""
    model = _quiet(EMPTY_TIP)
    q, qd, qdd = _state(model)

    def run(name, *inputs, **options):
        return dyn.solver(name).build(model, engine="plain", **options)(*inputs)

    tau, H = run("rnea", q, qd, qdd), run("crba", q)
    np.testing.assert_allclose(tau, H @ qdd + run("bias", q, qd), atol=1e-12)
    tau_u, qdd_v = run("hybrid", q, qd, qdd[1:], tau[:1], prescribed=["k"])
    np.testing.assert_allclose(tau_u, tau[1:], atol=1e-12)
    np.testing.assert_allclose(qdd_v, qdd[:1], atol=1e-12)
    with pytest.raises(dyn.UnsupportedError, match="joint 'k'"):
        run("hybrid", q, qd, qdd[:1], tau[1:], prescribed=["j"])
    assert np.isfinite(run("jacobian", q, frame="b")).all()
    with pytest.raises(dyn.SingularError, match="joint k"):
        run("hybrid_mask", q, qd, np.zeros(2), qdd, tau)
    got, _ = run("hybrid_mask", q, qd, np.array([0.0, 1.0]), qdd, tau)
    np.testing.assert_allclose(got, tau, atol=1e-12)


def test_a_floating_robot_without_mass_has_kinematics():
    """Its root is named where something would divide."""
    model = _quiet(robot(a="", b=""), root_joint="floating")
    assert model.without_inertia == ("root_joint", "j", "k")
    assert model.mass == 0.0
    with pytest.raises(dyn.UnsupportedError, match="joint 'root_joint'"):
        dyn.solver("aba").build(model)


def test_threads_do_not_mix_warnings():
    """Eight threads load a clean and an odd robot: each has its own, nothing is patched."""
    odd, clean = robot(k=AXIS + LIMIT + '<dynamics mu="1"/>' + LIMIT), robot()
    before, counts = reflection.on_error, set()

    def load():
        for _ in range(6):
            for xml in (odd, clean):
                counts.add((xml is odd, len(dyn.load_urdf(xml).warnings)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dyn.errors.ModelWarning)
        threads = [threading.Thread(target=load) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts == {(True, 2), (False, 0)}
    assert reflection.on_error is before


def test_one_warning_says_how_many_more_there_are():
    """Python's warning has the first three; the Model has all, the same ones in one."""
    more = "".join(f"<sensor{k}/>" for k in range(5)) + "<gazebo/>" * 4
    with pytest.warns(dyn.errors.ModelWarning, match="and 2 more in model.warnings"):
        model = dyn.load_urdf(robot(more=more))
    assert (
        model.warnings[-1] == "<gazebo> is for another program and is left out, 4 times"
    )


def test_hints_are_no_warnings_of_python():
    """Nobody can act on them: they stand in model.warnings and `dyn info` alone."""
    foreign = '<gazebo/><transmission name="t"/><ros2_control name="c" type="system"/>'
    dynamics = '<dynamics damping="1" mu_viscous="0.1" D="1" {}="3"/>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = dyn.load_urdf(
            robot(k=AXIS + LIMIT + dynamics.format("K"), more=foreign)
        )
    assert [type(x) for x in model.warnings] == [Hint] * 6
    assert sum(line.startswith("hint: ") for line in describe(model)) == 6
    again = pickle.loads(pickle.dumps(model)).lock({"k": 0.0})
    assert [type(x) for x in again.warnings] == [Hint] * 6
    report = doctor(model, samples=10)
    assert [x for x in report.findings if "mu_viscous" in str(x)][0] in report.hints
    misspelt = robot(k=AXIS + LIMIT + dynamics.format("frction"), more="<sensor/>")
    with pytest.warns(dyn.errors.ModelWarning) as caught:
        dyn.load_urdf(misspelt)
    message = str(caught[0].message)
    assert "attribute 'frction'" in message and "<sensor>" in message
    assert "mu_viscous" not in message and "'D'" not in message
    alone = robot(k=AXIS + LIMIT + '<dynamics d="1"/>')
    with pytest.warns(dyn.errors.ModelWarning, match="attribute 'd' of"):
        dyn.load_urdf(alone)  # it may be meant as damping


def test_long_lists_are_cut():
    """An error about a thousand links is no page of names."""
    links = "".join(f'<link name="l{k}"/>' for k in range(1000))
    with pytest.raises(dyn.ModelError, match=r"\(1001 in all\)") as caught:
        dyn.load_urdf(robot(more=links))
    assert len(str(caught.value)) < 300


def test_only_messages_above_the_limit_are_cut():
    """A message of exactly the longest length is whole."""
    message = "word " * (errors.MOST // 5)
    assert errors.cut(message) == message
    assert errors.cut(f"{message}.") == f"{message[: errors.MOST - 4]} ..."


# Read by Pinocchio, too: the same inverse dynamics.
NOT_IN_PINOCCHIO = (
    # Refused there.
    "infinite effort",
    "world is not a link",
    "no limit",
    "limits beyond 1e100",
    "unknown attribute",
    "no name",
    "products left out",  # the whole inertia is left out there
    "no mass element",
    "point mass",
    "version",
)


@pytest.mark.parametrize("case", [x for x in LOADS if x not in NOT_IN_PINOCCHIO])
def test_odd_robots_have_pinocchios_inverse_dynamics(case):
    """To 1e-12, in Pinocchio's order of joints."""
    pin = pytest.importorskip("pinocchio", reason="pinocchio is not installed")
    xml = LOADS[case][0]
    model, theirs = _quiet(xml), pin.buildModelFromXML(xml)
    if model.followers:
        pytest.skip("Pinocchio reads followers as free joints")
    q, qd, qdd = _state(model)
    wanted = pin.rnea(theirs, theirs.createData(), q, qd, qdd)
    tau = dyn.solver("rnea").build(model, engine="plain")(q, qd, qdd)
    np.testing.assert_allclose(tau, wanted, atol=1e-12 * max(1.0, np.abs(wanted).max()))


DATA = "cmeel.prefix/share/example-robot-data/robots"
FORMERLY_REFUSED = (
    "pr2_description/urdf/pr2.urdf",
    "romeo_description/urdf/romeo.urdf",
    "romeo_description/urdf/romeo_small.urdf",
    "alex_description/urdf/alex_psyonic_hands.urdf",
)


@pytest.mark.parametrize("name", FORMERLY_REFUSED)
def test_robots_that_were_refused_load(name):
    """Inverse dynamics works; forward dynamics where all joints carry something."""
    folders = [Path(place) / DATA / name for place in sys.path]
    path = next((x for x in folders if x.exists()), None)
    if path is None:
        pytest.skip("example-robot-data is not installed")
    model = _quiet(path)
    assert model.warnings
    tau = dyn.solver("rnea").build(model, engine="plain")(*_state(model))
    assert np.isfinite(tau).all()
