"""Identified robots as files and pictures; an arm that is identified blind."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import dyn_core as dyn
from dyn_core import cli
from dyn_core.authoring import sin, tanh
from dyn_core.errors import DynWarning, ModelWarning
from dyn_core.identification import (
    evaluate,
    with_table,
    write_sidecar,
    write_table,
)
from dyn_core.identification.fitting.sought_robot import with_paths
from dyn_core.identification.identified_files import urdf_of, write_robot
from dyn_core.model import parameter_paths
from dyn_core.recordings import MotionRecord

EXAMPLES = Path(__file__).parents[2] / "examples"
TRUTH = {
    "joint1": {
        "damping": 0.6,
        "friction": [0.5, 0.3],
        "friction_speed": 0.03,
        "stribeck": 0.2,
        "armature": 0.1,
    },
    "joint2": {"damping": 0.3, "friction": 0.2, "stribeck": 0.1, "stribeck_speed": 0.2},
}


def _motion(seed=0, n=2000, dt=0.01):
    rng = np.random.default_rng(seed)
    t = np.arange(n) * dt
    w, phase = 2 * np.pi * rng.uniform(0.1, 0.6, (2, 4)), rng.uniform(0, 6, (2, 4))
    angle = w * t[:, None, None] + phase
    return (
        t, 0.4 * np.sin(angle).sum(axis=2), 0.4 * (w * np.cos(angle)).sum(axis=2),
        -0.4 * (w * w * np.sin(angle)).sum(axis=2),
    )  # fmt: skip


@pytest.fixture(scope="module")
def result():
    """All of an arm with two links, whose file lacks friction and rotors."""
    truth = dyn.load("two_link", extras={"joints": TRUTH})
    truth = truth.with_values({"link2.mass": 1.4, "link2.com": [0.4, 0.0, 0.0]})
    _, q, qd, qdd = _motion()
    tau = dyn.solver("rnea").build(truth, joint_friction=True)(q, qd, qdd)
    options = {"friction": "full", "consistent": True, "partial": True}
    model = dyn.load("two_link")
    return dyn.identify(model, q, qd, qdd, tau, friction_speed=True, **options)


def _torques(model):
    _, q, qd, qdd = _motion(seed=3, n=50)
    choices = {"joint_friction": True, "joint_springs": True, "engine": "graph"}
    return dyn.solver("rnea").build(model, **choices)(q, qd, qdd)


def test_a_urdf_and_its_sidecar_hold_the_robot(result, tmp_path):
    """Loaded again they give the same joint forces; the rest of the file is as it was."""
    files = result.save(tmp_path / "arm.urdf")
    assert [x.name for x in files] == ["arm.urdf", "arm.dyn.yaml"]
    again = dyn.load_urdf(files[0])
    assert again.parameter("joint1.friction_speed")[0] == pytest.approx(0.03, rel=0.1)
    np.testing.assert_allclose(_torques(again), _torques(result.model), atol=1e-10)
    assert abs(_torques(again) - _torques(result.before)).max() > 0.1
    old = Path(dyn.robots.path("two_link")).read_text(encoding="utf-8")
    new = files[0].read_text(encoding="utf-8")
    for mark in ("<limit", "<axis", "<parent", "<visual", "<!--"):
        assert new.count(mark) == old.count(mark)
    assert new[: new.index("<robot")] == old[: old.index("<robot")]


def test_an_unchanged_robot_keeps_its_numbers():
    """Nothing is written anew that does not differ."""
    model = dyn.load("arm7")
    old = Path(dyn.robots.path("arm7")).read_text(encoding="utf-8")
    assert urdf_of(model) == old


ODD = """<?xml version='1.0' encoding="iso-8859-1"?>
<!-- <robot> of Andr\xe9: masses by <hand> -->
<robot  name = 'odd'\txmlns:xacro="http://www.ros.org/wiki/xacro" >
  <link name="base"/>
  <link  name='rod' rank="1"><!-- weighed -->
    <inertial><!-- about -->\r
      <inertia izz='0.02' ixy="0" ixx="+2.e-2" iyy="0.0100" iyz="-0.0" ixz="0"/>
      <mass   unit=" value='9'"  value = '1.50' />
      <origin rpy="0 0 0.0" xyz=".1  0.20000000000000001\t0"/>
    </inertial>
    <sensor type="imu">a &lt; b &amp; c</sensor>
  </link>
  <link name="tip"/>
  <joint type="continuous" name="hinge"><parent link='base'/><child link="rod"/>
    <dynamics friction="0.2" damping='0.100' />
    <axis xyz="0 0 1"/><spare  value="7"/></joint>
  <joint name="last" type="continuous">
    <parent link="rod"/>
    <child link="tip"/>
    <origin xyz="1 0 0"/>
  </joint>
  <transmission name="t"><joint name="hinge"><dynamics damping="3"/></joint></transmission>
  <gazebo reference="rod"><link name="rod"><mass value="5"/></link><![CDATA[<mass/>]]></gazebo>
</robot>
<!-- the end -->
"""


def _with(model, values):
    """Return the robot as an identification of these paths does."""
    return with_paths(model, {k: np.atleast_1d(x) for k, x in values.items()})


def _odd(tmp_path):
    file = tmp_path / "odd.urdf"
    file.write_bytes(ODD.encode("iso-8859-1"))
    with pytest.warns(ModelWarning):
        return dyn.load_urdf(file)


def test_only_changed_numbers_of_a_urdf_differ(tmp_path):
    """Comments, order, quotes, spaces and unknown elements stay, also of equal names."""
    model = _odd(tmp_path)
    same = ODD.replace("iso-8859-1", "utf-8")
    assert urdf_of(model) == same
    heavy = _with(model, {"hinge.damping": 0.25, "last.friction": 1 / 3})
    expected = same.replace("damping='0.100'", "damping='0.25'").replace(
        '<origin xyz="1 0 0"/>',
        f'<origin xyz="1 0 0"/>\n    <dynamics friction="{1 / 3!r}"/>',
    )
    assert urdf_of(heavy) == expected
    heavy = _with(model, {"rod.mass": 1.75})  # about the same centre of mass
    assert urdf_of(heavy) == same.replace("value = '1.50'", "value = '1.75'")
    heavy = _with(model, {"rod.com": [0.1, 0.25, 0.0]})
    assert urdf_of(heavy) == same.replace("0.20000000000000001\t0", "0.25 0").replace(
        ".1  0.25", ".1 0.25"
    )


def test_bodies_appear_and_vanish_in_a_urdf(tmp_path):
    """An <inertial> is written whole where mass comes, and has zeros where it goes."""
    loaded = _with(
        _odd(tmp_path),
        {"tip.mass": 0.5, "tip.com": [0.0, 0.1, 0.0], "rod.mass": 0.0},
    )
    text = urdf_of(loaded)
    assert '<link name="tip">\n    <inertial>' in text
    assert text.count("<inertial>") == 2 and "<sensor" in text
    (tmp_path / "new.urdf").write_text(text, encoding="utf-8", newline="")
    with pytest.warns(ModelWarning):
        again = dyn.load_urdf(tmp_path / "new.urdf")
    assert again.parameter("tip.mass")[0] == 0.5
    assert again.parameter("rod.mass")[0] == 0.0
    assert urdf_of(again) == text


@pytest.mark.parametrize("turn", ['rpy="0.3 0.2 0.1"', 'quat_xyzw="0.1 0.2 0.3 0.9"'])
def test_places_and_turned_inertias_are_read_back(turn, tmp_path):
    """An origin's angles; an inertia whose axes in the file are not the link's."""
    text = Path(dyn.robots.path("two_link")).read_text(encoding="utf-8")
    turned = text
    for old in ("0.35 0 0", "0.8 0 0"):  # of an inertia, and of a joint
        assert f'xyz="{old}"/>' in text
        turned = turned.replace(f'xyz="{old}"/>', f'xyz="{old}" {turn}/>')
    (tmp_path / "turned.urdf").write_text(turned, encoding="utf-8")
    place = [0.7, 0.1, -0.2, 0.3, -0.1, 0.2]
    values = {"joint2.origin": place, "link1.mass": 2.5}
    made = _with(dyn.load_urdf(tmp_path / "turned.urdf"), values)
    write_robot(tmp_path / "made.urdf", made)
    again = dyn.load_urdf(tmp_path / "made.urdf")
    assert again.parameter("joint2.origin") == pytest.approx(place, abs=1e-12)
    for path in ("link1.mass", "link1.com", "link1.inertia"):
        np.testing.assert_allclose(
            again.parameter(path), made.parameter(path), rtol=1e-12, atol=1e-15
        )


def test_a_number_with_a_character_reference_is_read(tmp_path):
    """XML may write a point as &#46;."""
    text = Path(dyn.robots.path("two_link")).read_text(encoding="utf-8")
    file = tmp_path / "odd.urdf"
    file.write_text(text.replace('value="1.7"', 'value="1&#46;7"'), encoding="utf-8")
    model = dyn.load_urdf(file)
    moved = urdf_of(_with(model, {"link1.com": [0.5, 0.0, 0.0]}))
    assert 'xyz="0.5 0 0"' in moved and 'value="1&#46;7"' in moved
    assert 'value="1.75"' in urdf_of(_with(model, {"link1.mass": 1.75}))


def test_values_set_after_loading_are_written(tmp_path):
    """with_values and without_friction change the robot that is written."""
    values = {"joint1.damping": 3.5, "joint2.armature": 0.25, "link1.mass": 7.5}
    made = dyn.load("two_link").with_values(values)
    write_robot(tmp_path / "made.urdf", made)
    again = dyn.load_urdf(tmp_path / "made.urdf")
    assert {path: again.parameter(path)[0] for path in values} == values
    np.testing.assert_allclose(_torques(again), _torques(made), rtol=1e-13)
    write_robot(tmp_path / "made.yaml", made)
    again = dyn.load_urdf(
        dyn.robots.path("two_link"), extras=str(tmp_path / "made.yaml")
    )
    assert again.parameter("joint2.armature")[0] == 0.25
    write_robot(tmp_path / "made.urdf", dyn.load("two_link").without_friction())
    again = dyn.load_urdf(tmp_path / "made.urdf")
    assert again.parameter("joint1.damping")[0] == 0.0
    with pytest.raises(dyn.ModelError, match="link1"):
        urdf_of(made.with_values({"link1.payload": [-9.0, *[0.0] * 9]}))


@pytest.mark.parametrize("name", ["two_link", "arm7", "quadruped", "every_joint"])
def test_saved_numbers_are_read_back(name, tmp_path):
    """Masses, damping and friction to the last bit, inertias to rounding."""
    model = dyn.load(name)
    rng = np.random.default_rng(0)
    described = model.build.description
    joints = [x.name for x in described.joints if x.name in model.names]
    moving = {x.child for x in described.joints if x.name in joints}
    links = [x.name for x in described.links if x.name in moving and x.inertia.m]
    values = {f"{x}.mass": rng.uniform(0.1, 9.0) for x in links}
    values |= {f"{x}.com": rng.normal(size=3) for x in links}
    values |= {f"{x}.damping": rng.uniform(0.1, 9.0) for x in joints}
    made = _with(model, values)
    file = tmp_path / "made.urdf"
    write_robot(file, made)
    again = dyn.load_urdf(file, check="warn")
    for key, value in values.items():
        exact = key.endswith((".mass", ".damping"))
        np.testing.assert_allclose(
            again.parameter(key), value, rtol=0 if exact else 1e-14, atol=0
        )
    for one, other in zip(
        made.build.description.links, again.build.description.links, strict=True
    ):
        np.testing.assert_allclose(
            np.array(one.inertia.parameters, float),
            np.array(other.inertia.parameters, float), rtol=1e-13, atol=1e-14,
        )  # fmt: skip
    assert urdf_of(again) == file.read_text(encoding="utf-8")


def test_a_sidecar_keeps_what_stood_in_the_one_before(tmp_path):
    """Other sections and other keys of joints stay; identified numbers are new."""
    sidecar = tmp_path / "before.dyn.yaml"
    sidecar.write_text("joints: {joint1: {effort: 9.0}}\narmature: {joint2: 0.3}\n")
    model = dyn.load_urdf(dyn.robots.path("two_link"), extras=str(sidecar))
    _, q, qd, qdd = _motion()
    tau = dyn.solver("rnea").build(model, joint_friction=True)(q, qd, qdd)
    tau += 0.7 * qd
    result = dyn.identify(model, q, qd, qdd, tau, only="friction")
    (file,) = result.save(tmp_path / "after.yaml")
    content = yaml.safe_load(file.read_text())
    assert content["joints"]["joint1"]["effort"] == 9.0
    assert content["joints"]["joint2"]["armature"] == 0.3
    assert "armature" not in content
    again = dyn.load_urdf(dyn.robots.path("two_link"), extras=str(file))
    np.testing.assert_allclose(_torques(again), _torques(result.model), atol=1e-12)


def test_a_sidecar_of_identified_masses_warns(tmp_path):
    """It cannot say them: they were lost without a word."""
    model = dyn.load("two_link")
    _, q, qd, qdd = _motion()
    tau = 1.1 * dyn.solver("rnea").build(model)(q, qd, qdd)
    result = dyn.identify(model, q, qd, qdd, tau, only="link2.mass")
    with pytest.warns(DynWarning, match="no masses and inertias.*valid: NAME.urdf"):
        result.save(tmp_path / "after.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "joints:\nsprings:\narmature:\nrotors:\n",
        "joints: {joint1: {effort: 2e1}, joint2: {armature: 1e-1}}\nloops:\n",
        "",
    ],
)
def test_a_sidecar_with_empty_sections_is_written_again(text, tmp_path):
    """Whatever `load` reads, with its numbers; the robot of the new file is the same."""
    sidecar, path = tmp_path / "before.dyn.yaml", dyn.robots.path("two_link")
    sidecar.write_text(text)
    model = dyn.load_urdf(path, extras=str(sidecar))
    write_robot(tmp_path / "after.yaml", model)
    again = dyn.load_urdf(path, extras=str(tmp_path / "after.yaml"))
    np.testing.assert_array_equal(again.effort_limit, model.effort_limit)
    assert _torques(again).tolist() == _torques(model).tolist()


def test_a_sidecar_keeps_drives_of_joints_that_are_locked(tmp_path):
    """Written by a robot with a locked joint, it is one of the whole robot."""
    sidecar = tmp_path / "before.dyn.yaml"
    sidecar.write_text(
        "armature: {joint1: 0.2, joint2: 0.3}\nsprings: {joint2: {stiffness: 2.0}}\n"
        "rotors: {joint2: {inertia: 0.001, ratio: 10.0}}\n"
    )
    path = dyn.robots.path("two_link")
    model = dyn.load_urdf(path, extras=str(sidecar)).lock({"joint2": 0.1})
    write_robot(tmp_path / "after.yaml", model)
    again = dyn.load_urdf(path, extras=str(tmp_path / "after.yaml"))
    np.testing.assert_allclose(again.parameter("armature"), [0.2, 0.4])
    assert again.parameter("joint2.stiffness") == [2.0]


def test_a_spring_that_is_gone_does_not_stay_in_the_sidecar(tmp_path):
    """The file before had one; the robot that is written has none there."""
    sidecar = tmp_path / "before.dyn.yaml"
    sidecar.write_text("springs: {joint1: {stiffness: 3.0}, joint2: {stiffness: 2.0}}")
    path = dyn.robots.path("two_link")
    model = dyn.load_urdf(path, extras=str(sidecar))
    slack = model.with_values({"joint1.stiffness": [0.0]})
    write_robot(tmp_path / "after.yaml", slack)
    again = dyn.load_urdf(path, extras=str(tmp_path / "after.yaml"))
    assert again.parameter("joint1.stiffness") == [0.0]
    assert again.parameter("joint2.stiffness") == [2.0]


GEARS_AND_SPRINGS = """
gears: [{joints: [shoulder, slide], ratio: 2.0, offset: 0.1}]
point_springs:
  - {b: plate, at_a: [0.3, 0, 1], stiffness: 40.0, rest_length: 0.3}
  - {b: turner, at_a: [0, 0.3, 1], stiffness: 7.0, damping: 0.5}
"""
ALIKE = ("turn", "tilt", "pan", "sheet", "sensor_mount", "finger_b", "drone", "sensor",
         "upper", "rotor", "flight", "mount", "base", "slider", "ball")  # fmt: skip
NO_PLACE = {"mounting.plug", "wrist_ball.stiffness"}


def test_every_number_of_a_robot_is_read_back(tmp_path, full):
    """Each parameter of a robot of all kinds, also of followers, changed alone.

    Without --full a third of those that have a place in a file.
    """
    file, described = tmp_path / "made.urdf", Path(dyn.robots.path("every_joint"))
    sidecar, lost, refused = tmp_path / "own.dyn.yaml", [], set()
    text = described.with_suffix(".dyn.yaml").read_text(encoding="utf-8")
    sidecar.write_text(text + GEARS_AND_SPRINGS, encoding="utf-8")
    model = dyn.load_urdf(described, extras=str(sidecar))
    rng = np.random.default_rng(0)
    motion = model.random(rng), *rng.normal(size=(2, model.nv))

    def torques(robot):
        choices = {"joint_friction": True, "joint_springs": True, "engine": "graph"}
        return dyn.solver("rnea").build(robot, **choices)(*motion)

    for number, path in enumerate(parameter_paths.paths(model)):
        what = path.rpartition(".")[2]
        skipped = what in ("payload", "friction_asymmetry")
        skipped |= not full and number % 3 > 0 and path not in NO_PLACE
        if skipped or path.partition(".")[0] in ALIKE or "." not in path:
            continue
        value = np.array(parameter_paths.value(model, path))
        shift = [0.1, 0, 0, 0.1, 0, 0.1] if what == "inertia" else 0.05
        made = model.with_values({path: (1.1 * value + shift).tolist()})
        try:
            write_robot(file, made)
        except dyn.ModelError:
            refused.add(path)
            continue
        again, wanted = torques(dyn.load_urdf(file)), torques(made)
        if not np.allclose(again, wanted, rtol=1e-9, atol=1e-10):
            lost.append(path)
    assert not lost and refused == NO_PLACE


def test_the_sidecar_of_a_command_keeps_gears(tmp_path):
    """A robot has one sidecar: in the new one joints still follow, by new ratios."""
    sidecar, path = tmp_path / "before.dyn.yaml", dyn.robots.path("two_link")
    sidecar.write_text("gears: [{joints: [joint1, joint2], ratio: -3.0}]")
    model = dyn.load_urdf(path, extras=str(sidecar))
    write_sidecar(tmp_path / "after.yaml", model, "a test")
    again = dyn.load_urdf(path, extras=str(tmp_path / "after.yaml"))
    assert again.nv == 1 and again.parameter("joint2.ratio") == [-3.0]


def test_gears_of_extras_that_are_no_file_are_not_lost(tmp_path):
    """The saved robot would have a joint more; numbers of joints are written."""
    path, gear = dyn.robots.path("two_link"), {"joints": ["joint1", "joint2"]}
    geared = dyn.load_urdf(path, extras={"gears": [gear]})
    for name in ("made.urdf", "made.yaml"):
        with pytest.raises(dyn.ModelError, match="extras, which is no file"):
            write_robot(tmp_path / name, geared)
    assert not [*tmp_path.iterdir()]
    dry = dyn.load_urdf(path, extras={"joints": {"joint1": {"friction": [0.6, 0.4]}}})
    write_robot(tmp_path / "made.urdf", dry)
    again = dyn.load_urdf(tmp_path / "made.urdf")
    assert again.parameter("joint1.friction_asymmetry") == pytest.approx([0.1])


def test_gravity_is_in_no_file_of_a_robot(tmp_path):
    """It is refused, not left out; a table has it."""
    model = dyn.load("two_link", gravity=(0.0, -9.81, 0.0))
    _, q, qd, qdd = _motion()
    tau = dyn.solver("rnea").build(model)(q, qd, qdd)
    result = dyn.identify(model, q, qd, qdd, tau, only=["gravity:x", "gravity:y"])
    with pytest.raises(dyn.ModelError, match="gravity"):
        result.save(tmp_path / "made.urdf")
    result.save(tmp_path / "made.csv")


def test_tables_are_taken_up_again(result, tmp_path):
    """Numbers of bodies and of paths, by name; a delay is none of the robot's."""
    table = tmp_path / "all.csv"
    write_table(table, result)
    made = with_table(dyn.load("two_link"), table)
    np.testing.assert_allclose(_torques(made), _torques(result.model), atol=1e-10)
    rows = table.read_text().splitlines()
    some = [rows[0], *(x for x in rows if "stribeck" in x), "delay,0.002,0,0.001"]
    table.write_text("\n".join(some))
    made = with_table(dyn.load("two_link"), table)
    assert made.parameter("joint2.stribeck")[0] == result["joint2.stribeck"]
    table.write_text("name,value\njoint9.damping,1.0\n")
    with pytest.raises(dyn.SettingError, match="joint9"):
        with_table(dyn.load("two_link"), table)
    for text in ("joint1.damping,1.0", "joint1:m,1.0", "delay,0.1"):
        table.write_text(f"name,value\n{text}\n")
        with pytest.raises(dyn.UnsupportedError, match="not for 'two_link'"):
            with_table("two_link", table)


def test_files_that_cannot_be_are_refused(result, tmp_path):
    """Other kinds, folders that are not there, robots without a file."""
    with pytest.raises(dyn.SettingError, match=r"valid: a file.*\.urdf, \.yaml, \.csv"):
        result.save(tmp_path / "robot.xml")
    with pytest.raises(dyn.SettingError, match="in a folder that is there"):
        result.save(tmp_path / "nowhere" / "robot.urdf")
    typed = dyn.load(Path(dyn.robots.path("two_link")).read_text(encoding="utf-8"))
    with pytest.raises(dyn.ModelError, match="was not read from a URDF file"):
        urdf_of(typed)


def test_pictures_of_numbers_and_friction(result, tmp_path):
    """Both are written; friction is drawn before and after."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    result.plot(tmp_path / "numbers.png")
    figure = result.plot_friction(tmp_path / "friction.png")
    for name in ("numbers.png", "friction.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
    identified, before = figure.axes[0].lines[:2]
    right = identified.get_ydata()[-1]
    top = identified.get_xdata()[-1]
    assert right == pytest.approx(0.6 * top + 0.5, rel=0.02)
    assert abs(right - before.get_ydata()[-1]) > 0.1


def test_joint_forces_that_are_late_are_moved_back():
    """A record and an evaluation without the delay agree with one that has none."""
    t, q, qd, qdd = _motion()
    model = dyn.load("two_link").without_friction()
    rnea = dyn.solver("rnea").build(model, engine="graph")
    tau = rnea(q, qd, qdd)
    late = np.column_stack([np.interp(t - 0.03, t, x) for x in tau.T])
    record = MotionRecord.of_joints(model.joint_names, t, q, qd=qd, tau=late)
    before = evaluate(model, record)
    for after in (
        before.without_delay(0.03), evaluate(model, record.without_delay(0.03))
    ):  # fmt: skip
        assert after.rms.max() < 0.1 * before.rms.max()
    asked = {"only": "payload", "delay": True, "consistent": False}
    sought = before.identify(**asked)
    assert sought.delay == pytest.approx(0.03, rel=0.1)
    assert sought.prior[-1] == 0.0
    bounds = {"delay": (0.0, 0.02)}
    assert before.identify(bounds=bounds, **asked).delay == pytest.approx(0.02)
    near = np.array([*sought.prior[:-1], 0.01])
    for prior in ({"delay": 0.01}, {"delay": [0.01]}, near, list(near)):
        result = before.identify(prior=prior, **asked)
        assert result.prior[-1] == 0.01
        assert result.delay == pytest.approx(0.03, rel=0.1)
    for entry in ((0.01, 1e-7), ([0.01], [1e-7])):
        result = before.identify(prior={"delay": entry}, **asked)
        assert result.prior[-1] == 0.01
        assert result.delay == pytest.approx(0.01, rel=1e-2)


@pytest.mark.parametrize("late", [0.0, 0.004])
def test_friction_that_does_not_act_is_not_subtracted(late):
    """Of torques without friction, as some motors report them, nothing is left over."""
    model = dyn.load("two_link", gravity=(0.0, -9.81, 0.0))
    t, q, qd, qdd = _motion(n=3000)
    true = model.with_values({"link2.mass": [2.0]})
    tau = dyn.solver("rnea").build(true)(q, qd, qdd)
    tau = np.column_stack([np.interp(t - late, t, x) for x in tau.T])
    record = MotionRecord.of_joints(model.joint_names, t, q, qd=qd, tau=tau)
    report = evaluate(model, record, joint_friction=False)
    result = report.identify(only="link2.mass", delay=bool(late))
    assert result.residual_rms.max() < 0.02  # friction is 0.3 N·m
    assert result["link2.mass"] == pytest.approx(2.0, rel=2e-3)
    assert result.delay == pytest.approx(late, abs=1e-4)
    same = result.model.parameter("joint1.damping"), model.parameter("joint1.damping")
    assert same[0] == same[1]


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), "a", None, True])
def test_a_delay_that_is_no_number_is_refused(seconds):
    """By a record and by an evaluation, with one error."""
    t, q, qd, _ = _motion()
    model = dyn.load("two_link")
    record = MotionRecord.of_joints(model.joint_names, t, q, qd=qd, tau=0 * q)
    for late in (record, evaluate(model, record)):
        with pytest.raises(dyn.SettingError, match="delay .*; valid: a number"):
            late.without_delay(seconds)


@pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.full)])
def test_an_arm_is_identified_blind(full, monkeypatch, tmp_path, capsys):
    """Joint forces of other motions are predicted to 1 % rms, knowing only the URDF.

    The whole minute of motion is simulated with --full only: it takes long.
    """
    monkeypatch.syspath_prepend(str(EXAMPLES))
    make, script = (
        importlib.import_module(x) for x in ("identify_blind_record", "identify_blind")
    )
    make.main(tmp_path, *((60.0, 20.0) if full else (10.0, 3.0)))
    errors = script.main(tmp_path, folds=4 if full else 0)
    assert set(errors) == {"slow", "fast"}
    for before, after in errors.values():
        assert before > 0.03
        assert after < (0.004 if full else 0.006)
    assert "late" in capsys.readouterr().out
    again = dyn.load_urdf(tmp_path / "identified.urdf")
    assert again.parameter("joint3.stribeck")[0] > 0.0


def _odd_friction(model, q, qd):
    """Friction that no law has: it falls as 1 / (1 + w²), saturates, has a ripple."""
    sizes = (1.0, 1.0, 0.8, 0.8, 0.4, 0.3, 0.3)
    forces = []
    for size, x, v in zip(sizes, q, qd, strict=True):
        w = v / 0.15
        near = tanh(v / 0.005) / (1.0 + w * w)
        forces.append(
            -size * (0.15 * near + 0.2 * tanh(1.5 * v) + 0.08 * sin(24.0 * x))
        )
    return forces


@pytest.mark.full
def test_friction_outside_of_all_laws_costs_little(monkeypatch, tmp_path):
    """An arm with friction of another kind is still predicted to 1 % rms."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    make, script = (
        importlib.import_module(x) for x in ("identify_blind_record", "identify_blind")
    )
    arm = make.true_arm()
    stribeck = dict.fromkeys((f"joint{k}.stribeck" for k in range(1, 8)), 0.0)
    odd = replace(arm.with_values(stribeck), forces=(_odd_friction,))
    monkeypatch.setattr(make, "true_arm", lambda: odd)
    make.main(tmp_path, 6.0, 3.0)
    for before, after in script.main(tmp_path, folds=0).values():
        assert after < 0.01 < 0.03 < before


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A recording of an arm whose file lacks friction, as arguments of a command."""
    monkeypatch.chdir(tmp_path)
    truth = dyn.load("two_link", extras={"joints": TRUTH})
    t, q, qd, qdd = _motion()
    tau = dyn.solver("rnea").build(truth, joint_friction=True)(q, qd, qdd)
    np.savez("run.npz", names=truth.joint_names, t=t, q=q, qd=qd, tau=tau)
    return ["evaluate", "run.npz", "--robot", "two_link"]


def test_the_command_identifies_what_is_asked(recorded, capsys):
    """Friction by a law, cross-validation, a URDF and a report; less is left over."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    asked = ["--only", "friction", "rotors", "--friction", "full", "--folds", "3"]
    more = ["--urdf", "--report", "mine.html"]
    assert cli.main([*recorded, "--identify", "mine", *asked, *more]) == 0
    out = capsys.readouterr().out
    assert "identified 14 combinations of 14 parameters" in out
    assert "3 blocks of time" in out
    assert "robot: mine.urdf, mine.dyn.yaml" in out
    assert dyn.load_urdf("mine.urdf").parameter("joint1.armature")[0] == pytest.approx(
        0.1, abs=0.01
    )
    content = Path("mine.html").read_text(encoding="utf-8")
    for mark in ("Friction", "held-out", "Residuals", "joint2.stribeck_speed", "rad/s"):
        assert mark in content
    assert content.count("<img") == 3
    assert "http" not in content.replace("http-equiv", "")
    before, after = out.split("identified 14")
    assert float(before.split("%")[0].split()[-1]) > 5
    assert float(after.split(" %  ")[0].split()[-1]) < 2


def test_a_report_needs_no_matplotlib(recorded, monkeypatch, capsys):
    """Without it the page has its tables, and one sentence for each picture."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    asked = ["--only", "friction", "--report", "mine.html"]
    assert cli.main([*recorded, "--identify", "mine", *asked]) == 0
    assert "report: mine.html (no pictures: matplotlib is" in capsys.readouterr().out
    content = Path("mine.html").read_text(encoding="utf-8")
    assert "<img" not in content
    assert content.count("pip install") == 3
    assert "joint2.damping" in content


@pytest.mark.parametrize(
    "option",
    [
        ["--only", "payload"],
        ["--delay"],
        ["--urdf"],
        ["--report", "a.html"],
        ["--no-friction-speed"],
    ],
)
def test_options_of_an_identification_need_one(recorded, capsys, option):
    """They would change nothing."""
    assert cli.main([*recorded, *option]) == 1
    assert "changes nothing without --identify NAME" in capsys.readouterr().err


def test_rounding_below_zero_is_zero(tmp_path):
    """A rotor of -4.6e-16 kg m2, as a fit at its bound returns, is written; not -1e-3."""
    model = dyn.load("arm7")
    groups = {"friction": True, "rotors": True}
    names, values = (
        dyn.parameter_names(model, **groups),
        dyn.parameters_of(model, **groups),
    )
    for k, name in enumerate(names):
        if name.startswith("joint2.") and name.rpartition(".")[2] in (
            "armature",
            "damping",
        ):
            values[k] = -4.6e-16
    before = values.copy()
    made = dyn.with_linear_parameters(model, values, **groups)
    assert (values == before).all()
    assert made.flat("armature")[1] == made.flat("damping")[1] == 0.0
    path = tmp_path / "arm.dyn.yaml"
    write_sidecar(path, made, "a fit")
    assert dyn.load("arm7", extras=path).flat("armature")[1] == 0.0
    values[names.index("joint2.armature")] = -1e-3
    with pytest.raises(dyn.ModelError, match="joint2.armature is -0.001"):
        dyn.with_linear_parameters(model, values, **groups)
