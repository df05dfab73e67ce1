"""Tools without ROS: evaluation of recordings, parameter values, what commands print."""

import argparse
import csv
import dataclasses
import itertools
import re
import sys
from array import array
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import dyn_core as dyn
from dyn_core import cli
from dyn_core.control.controller_fields import gain_fields
from dyn_core.errors import DynError, SettingError
from dyn_core.identification import evaluate, with_table
from dyn_core.recordings import (
    MotionRecord,
    inverse_dynamics,
    read_motion,
    write_motion,
)
from dyn_core.recordings.bags import read_bag
from dyn_core.recordings.smoothing import smooth_motion
from dyn_core.testing import bit_flips
from ros_nodes.graphs import GRAPHS
from ros_nodes.parameter_tables.controller_parameters import CONTROLLER
from ros_nodes.parameter_tables.parameter_files import read_parameters
from ros_nodes.tools import check_node, fault_list, faults
from ros_nodes.tools.parameter_values import dumped, typed_value, value_line

RATE = 200.0


def _robot(**joints):
    """Return the double pendulum with friction."""
    rows = {"joint1": {"damping": 0.3, "friction": 0.8}, "joint2": {"damping": 0.1, "friction": 0.4}}  # fmt: skip
    for name, change in joints.items():
        rows[name] = {**rows[name], **change}
    return dyn.load("two_link", extras={"joints": rows})


def _motion(model, seconds=8.0, seed=0):
    """Return times and a motion of three sines a joint, its derivatives exact."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 1.0 / RATE)
    q, qd, qdd = np.zeros((3, len(t), model.nv))
    for w in 2 * np.pi * np.array([0.3, 0.7, 1.3]):
        phase = rng.uniform(0, 2 * np.pi, model.nv)
        angle, size = w * t[:, None] + phase, 0.8 / w**0.5
        q += size * np.sin(angle)
        qd += size * w * np.cos(angle)
        qdd -= size * w * w * np.sin(angle)
    return t, q, qd, qdd


def _record(model, noise=0.02, seed=0, **changes):
    """Return what a robot would be measured to do."""
    rng = np.random.default_rng(seed + 100)
    t, q, qd, qdd = _motion(model, seed=seed)
    rnea = dyn.solver("rnea").build(model, joint_friction=True, engine="graph")
    tau = rnea(q, qd, qdd) + noise * rng.normal(size=q.shape)
    q, qd = q + 1e-5 * rng.normal(size=q.shape), qd + 1e-3 * rng.normal(size=q.shape)
    columns = {
        "names": model.joint_names,
        "t": t,
        "q": q,
        "qd": qd,
        "tau": tau,
        **changes,
    }
    return MotionRecord.of_joints(**columns)


def test_what_is_left_out_of_a_recording_is_told():
    """Of 3856 samples with two pauses 3057 counted, and joints that moved were "still"."""
    model = _robot()
    t, q, qd, _ = _motion(model, seconds=12.0)
    q[:, 1], qd[:, 1] = 0.01 * q[:, 1], 0.01 * qd[:, 1]
    tau = dyn.solver("rnea").build(model)(q, qd, np.zeros_like(q))
    whole = (t < 4.0) | (t > 4.5)
    record = MotionRecord.of_joints(
        model.joint_names, t[whole], q[whole], qd=qd[whole], tau=tau[whole]
    )
    notes = evaluate(model, record, cutoff=5.0).notes
    pieces = "pauses of more than 5 periods part the recording into 2 pieces, each"
    assert f"{pieces} without 0.4 s at both ends" in notes
    assert "hardly any motion of joint2: slower than 0.1 rad/s (m/s), rms" in notes


@pytest.mark.parametrize("with_velocity", [True, False])
def test_filtered_motion_has_no_phase(with_velocity):
    """Derivatives of sines are where and as large as the exact ones, also without qd."""
    t, q, qd, qdd = _motion(_robot())
    motion = smooth_motion(t, q, qd if with_velocity else None, q, cutoff=15.0)
    rows = np.searchsorted(t, motion.t - 1e-9)
    np.testing.assert_allclose(motion.q, q[rows], atol=2e-4)
    np.testing.assert_allclose(motion.qd, qd[rows], atol=5e-3)
    np.testing.assert_allclose(motion.qdd, qdd[rows], atol=0.1)
    assert 0.96 < len(rows) / len(t) < 1.0


def test_samples_that_are_bad_are_left_out_and_gaps_part():
    """NaN, a stamp that goes back, one that is there twice, and half a second of nothing."""
    robot = _robot()
    record = _record(robot)
    t, q = record.t.copy(), record.q.copy()
    t[100], t[200], q[300, 1] = t[80], t[199], np.nan
    keep = np.r_[0:600, 700 : len(t)]
    broken = MotionRecord.of_joints(
        robot.joint_names, t[keep], q[keep], qd=record.qd[keep], tau=record.tau[keep]
    )
    good, bad = evaluate(robot, record), evaluate(robot, broken)
    assert (bad.motion.dropped, len(bad.motion.parts)) == (3, 1)
    assert bad.rms.max() < 1.5 * good.rms.max()
    assert any("3 of 1500 samples were left out" in note for note in bad.notes)
    assert any("2 pieces" in note for note in bad.notes)
    assert good.notes == ()


def test_wrong_friction_shows_and_identification_removes_it():
    """The residual is mostly friction, where it is; identified on one motion, small on another."""
    truth, prior = _robot(), _robot(joint1={"friction": 0.0, "damping": 0.0})
    before = evaluate(prior, _record(truth))
    assert before.causes == ("friction", "")
    assert before.explained["friction"][0] > 0.95
    assert before.share[0] > 20 * before.share[1]
    assert "friction (" in before.lines()[2]
    result = before.identify()
    other = evaluate(prior, _record(truth, seed=1))
    after = other.of(result.model)
    assert (after.rms < [0.03 * other.rms[0], 0.02]).all()
    assert after.causes == ("", "")
    assert evaluate(truth, _record(truth)).rms.max() < 0.03


def test_a_joint_without_load_has_no_share():
    """Rounding over rounding says nothing: an arm at rest has joints of 1e-36 N·m."""
    robot = _robot()
    record = _record(robot)
    still = evaluate(robot, _record(robot, tau=record.tau * [1.0, 1e-40]))
    lines = still.lines()
    assert "%" in lines[2].split("max at")[0]
    assert "%" not in lines[3].split("max at")[0].partition("(")[0]
    q = np.tile([0.3, -0.4], (400, 1))
    weight = np.array(dyn.solver("gravity").build(robot)(q[0]))
    at_rest = MotionRecord.of_joints(
        (), 0.002 * np.arange(400), q, qd=0 * q, tau=0 * q + weight
    )
    *table, said = evaluate(robot, at_rest).lines()
    assert said.startswith("note: nothing moves: ")
    assert not any("offset" in line for line in table)


@pytest.mark.parametrize(
    ("change", "cause"),
    [({"tau": lambda tau: tau + [0.5, 0.0]}, "an offset"),
     ({"tau": lambda tau: tau * [-1.0, 1.0]}, None)],
)  # fmt: skip
def test_other_causes(change, cause):
    """An offset of a sensor is called one; a wrong sign is no offset and large."""
    robot = _robot()
    record = _record(robot)
    changed = MotionRecord.of_joints(
        robot.joint_names,
        record.t,
        record.q,
        qd=record.qd,
        tau=change["tau"](record.tau),
    )
    result = evaluate(robot, changed)
    assert result.causes[1] == ""
    if cause:
        assert result.causes[0] == cause
        assert result.bias[0] == pytest.approx(0.5, abs=0.02)
    else:
        assert result.share[0] == pytest.approx(2.0, abs=0.05)


def test_commands_serve_where_no_effort_was_measured():
    """And a velocity that is not the slope of the position is named."""
    robot = _robot()
    record = _record(robot)
    alone = MotionRecord.of_joints(
        robot.joint_names, record.t, record.q, qd=2 * record.qd, command=record.tau
    )
    result = evaluate(robot, alone)
    assert result.against == "command"
    assert sum("is not the slope of its position" in note for note in result.notes) == 2
    with pytest.raises(
        dyn.errors.IdentificationError, match="valid: efforts in the joint"
    ):
        evaluate(robot, MotionRecord.of_joints(robot.joint_names, record.t, record.q))


TIMES = {"ms": 1e3, "µs": 1e6, "ns": 1e9}
SLOPES = {
    "a time in ms": lambda t, q, qd: (1e3 * t, q, qd),
    "q and qd exchanged": lambda t, q, qd: (t, qd, q),
    "joints exchanged": lambda t, q, qd: (t, q, qd[:, ::-1]),
    "degrees a second": lambda t, q, qd: (t, q, np.degrees(qd)),
}


@pytest.mark.parametrize("what", SLOPES)
def test_inverse_dynamics_names_velocities_that_are_no_slopes(what, tmp_path, capsys):
    """`dyn id` computed torques from them in silence, `dyn evaluate` had notes."""
    robot = _robot()
    t, q, qd, _ = _motion(robot)
    for rows, change in ((len(t), SLOPES[what]), (60, SLOPES[what])):
        t_, q_, qd_ = change(*(x[:rows] for x in (t, q, qd)))
        record = MotionRecord.of_joints(robot.joint_names, t_, q_, qd=qd_)
        with pytest.warns(dyn.errors.DynWarning) as issued:
            inverse_dynamics(robot, record)
        said = [str(x.message) for x in issued]
        assert any("is not the slope of its position" in x for x in said)
        assert any("is t in ms?" in x for x in said) == (what == "a time in ms")
    path = tmp_path / "r.npz"
    write_motion(record, path)
    assert cli.main(["id", "two_link", str(path)]) == 0
    assert "is not the slope of its position" in "".join(capsys.readouterr())


@pytest.mark.parametrize("unit", TIMES)
@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_times_that_are_no_seconds_are_asked_about(unit, suffix, tmp_path, capsys):
    """Without velocities nothing contradicted them, and inertia vanished."""
    robot = _robot()
    t = np.arange(0.0, 5.0, 0.01)
    q = np.column_stack([np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)])
    record = MotionRecord.of_joints(robot.joint_names, TIMES[unit] * t, q, tau=q)
    assert any(f"is t in {unit}?" in note for note in evaluate(robot, record).notes)
    path = tmp_path / f"r{suffix}"
    write_motion(record, path)
    assert cli.main(["id", "two_link", str(path)]) == 0
    assert f"is t in {unit}?" in "".join(capsys.readouterr())


def test_slow_motion_and_poses_are_not_asked_about(recwarn):
    """A sine of minutes with its velocities, poses a second apart, a joint at rest."""
    robot, t = _robot(), np.arange(0.0, 600.0)
    w = 2 * np.pi / 600
    slow = np.column_stack([np.sin(w * t), np.cos(w * t)])
    rate = w * np.column_stack([np.cos(w * t), -np.sin(w * t)])
    poses = np.random.default_rng(0).uniform(-1, 1, slow.shape)
    for t_, q, qd in (
        (t, slow, rate), (t, poses, None), (t, poses, 0 * poses), (t, 0 * slow, None),
        (0.01 * t, 0.015 * slow, None),
    ):  # fmt: skip
        record = MotionRecord.of_joints(robot.joint_names, t_, q, qd=qd)
        inverse_dynamics(robot, record)
    assert not [str(x.message) for x in recwarn]


def test_joints_are_matched_by_name():
    """A gripper between and another order change nothing; a missing joint is named."""
    robot = _robot()
    record = _record(robot)
    names, order = ("joint2", "gripper", "joint1"), [1, 0, 0]
    shuffled = MotionRecord.of_joints(
        names,
        record.t,
        record.q[:, order],
        qd=record.qd[:, order],
        tau=record.tau[:, order],
    )
    np.testing.assert_array_equal(
        evaluate(robot, shuffled).rms, evaluate(robot, record).rms
    )
    with pytest.raises(
        dyn.SettingError, match="no column is called 'q.joint2.'.*is locked: --lock"
    ):
        evaluate(robot, MotionRecord.of_joints(("joint1",), record.t, record.q[:, :1]))
    with pytest.raises(dyn.UnsupportedError, match="has loops"):
        closed = {"name": "D", "kind": "pin", "b": "link2", "a": "link1"}
        evaluate(dyn.load("two_link", extras={"loops": [closed]}), record)


def test_bounds_of_the_filter():
    """Too high a frequency, too short a recording, too few samples: in words."""
    robot = _robot()
    record = _record(robot)
    with pytest.raises(
        dyn.SettingError, match="at most 80 Hz with 200 samples a second"
    ):
        evaluate(robot, record, cutoff=90.0)
    t, q, qd, tau = (x[:20] for x in (record.t, record.q, record.qd, record.tau))
    short = MotionRecord.of_joints(robot.joint_names, t, q, qd=qd, tau=tau)
    with pytest.raises(dyn.errors.IdentificationError, match="no part without a gap"):
        evaluate(robot, short)
    with pytest.raises(
        dyn.errors.IdentificationError, match="0 of 20 samples are finite"
    ):
        evaluate(robot, replace(short, q=np.nan * short.q))


def _write_csv(path, record):
    header = [
        "t",
        *(
            f"{kind}.{name}"
            for kind in ("q", "qd", "tau")
            for name in record.names(kind)
        ),
    ]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(
            np.column_stack([record.t, record.q, record.qd, record.tau]).tolist()
        )


def test_files_of_recordings(tmp_path):
    """NPZ with the names of dyn.simulate's Recording, and CSV, hold the same numbers."""
    record = _record(_robot())
    arrays = {"t": record.t, "q": record.q, "qd": record.qd, "tau": record.tau}
    np.savez(tmp_path / "a.npz", **arrays, energy=record.t)
    np.savez(tmp_path / "b.npz", **arrays, names=record.names("q"))
    _write_csv(tmp_path / "c.csv", record)
    for name in ("a.npz", "b.npz", "c.csv"):
        read = read_motion(tmp_path / name).of(_robot())
        assert read.coordinates == record.of(_robot()).coordinates
        for kind in arrays:
            np.testing.assert_array_equal(getattr(read, kind), getattr(record, kind))
    (tmp_path / "bad.csv").write_text("t,q.joint1,q.joint2,qd.joint1\n0,1,2,3\n")
    with pytest.raises(dyn.SettingError, match=r"no column is called 'qd.joint2.'"):
        read_motion(tmp_path / "bad.csv", _robot())
    (tmp_path / "one.csv").write_text("t,q.joint1\n0,1\n1\n")
    with pytest.raises(dyn.SettingError, match="no CSV that can be read"):
        read_motion(tmp_path / "one.csv")
    (tmp_path / "no.npz").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(dyn.SettingError, match="no NPZ that can be read"):
        read_motion(tmp_path / "no.npz")
    np.save(tmp_path / "x.npy", record.t)
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    with pytest.raises(dyn.SettingError, match="it holds one array"):
        read_motion(tmp_path / "x.npz")
    np.savez(tmp_path / "t.npz", q=record.q)
    with pytest.raises(dyn.SettingError, match="t missing; valid: t, q, qd, qdd, tau"):
        read_motion(tmp_path / "t.npz")
    with pytest.raises(dyn.ShapeError, match="wanted 2 columns"):
        MotionRecord.of_joints((), record.t, record.q[:, :1]).of(_robot())
    turned = _robot().reorder(("joint2", "joint1"))
    swapped = MotionRecord.of_joints(("joint1", "joint2"), record.t, record.q).of(
        turned
    )
    np.testing.assert_array_equal(swapped.q, record.q[:, ::-1])
    with pytest.raises(dyn.ShapeError, match="t: wanted numbers of shape"):
        MotionRecord.of_joints((), [10**400], [[0.0, 0.0]])
    with pytest.raises(
        dyn.SettingError, match=r"q.joint1. is there 2 times; valid: onc"
    ):
        MotionRecord.of_joints(("joint1", "joint1"), record.t, record.q).of(_robot())
    np.savez(tmp_path / "one.npz", t=record.t, q=record.q[:, :1], names="joint1")
    assert read_motion(tmp_path / "one.npz").names("q") == ("joint1",)


def test_an_evaluation_keeps_its_joints():
    """Another order of joints, or a choice that would count as True, is refused."""
    model = _robot()
    t, *motion = _motion(model)
    q, qd, qdd = motion[:3]
    tau = dyn.solver("rnea").build(model, engine="graph")(q, qd, qdd)
    record = MotionRecord.of_joints(model.joint_names, t, q, qd=qd, tau=tau)
    report = evaluate(model, record, joint_friction=False)
    with pytest.raises(dyn.SettingError, match="those of the evaluation in their ord"):
        report.of(model.reorder(model.joint_names[::-1]))
    with pytest.raises(dyn.SettingError, match="joint_friction is 'no'; valid: True"):
        evaluate(model, record, joint_friction="no")
    with pytest.raises(dyn.SettingError, match="cutoff is 'a'; valid: more than 0"):
        evaluate(model, record, cutoff="a")


def test_files_of_an_identification_have_a_folder(capsys):
    """Said before the recording is read; a name that ends with a slash has one, too."""
    robot = ["--robot", "two_link"]
    for name in ("nodir/", "nodir/mine"):
        assert cli.main(["evaluate", "no.npz", *robot, "--identify", name]) == 1
        assert f"--identify {name}: no such folder" in capsys.readouterr().err


def test_a_recording_that_could_not_be_kept_does_not_start(tmp_path, capsys):
    """One file of MCAP holds no SQLite; the recording would be lost at its end."""
    output = tmp_path / "run.mcap"
    assert cli.main(["record", "-o", str(output), "--storage", "sqlite3"]) == 1
    assert "valid: the name of a new folder" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def _message(number, **fields):
    return SimpleNamespace(type=number, **fields)


@pytest.mark.parametrize(
    ("typed", "number", "value"),
    [("5", 3, 5.0), ("1e-5", 3, 1e-5), ("5", 2, 5), ("5", 4, "5"), ("on", 4, "on"), ("true", 1, True),
     ("[1, 2.5]", 8, [1.0, 2.5]), ("[a, 1]", 9, ["a", "1"]), ("[]", 9, []), ("[1, 2]", 7, [1, 2])],
)  # fmt: skip
def test_a_typed_value_takes_the_type_of_the_parameter(typed, number, value):
    """5 is a number for a double, and a string for a string."""
    assert typed_value(typed, number, "x") == (number, value)


@pytest.mark.parametrize(
    ("typed", "number"),
    [("much", 3), ("5.5", 2), ("true", 3), ("1", 1), ("[1", 8), ("5", 8), ("[a]", 7), ("[true]", 8),
     ("{a: 1}", 3), ("300", 5), ("2001-13-45", 3), ("!!int ''", 2), ("!!bool maybe", 1), ("[" * 3000, 8),
     ("9" * 20, 2), ("[-" + "9" * 20 + "]", 7), ("1" * 5000, 2)],
)  # fmt: skip
def test_a_typed_value_of_another_type_is_refused(typed, number):
    """In a sentence with the type."""
    with pytest.raises(dyn.SettingError, match=r"x: .*; valid: an? "):
        typed_value(typed, number, "x")


@pytest.mark.parametrize(
    ("number", "example"),
    [(8, r"'\[1\.0\]'"), (7, r"'\[1\]'"), (6, r"'\[true\]'"), (9, r"'\[a\]'")],
)
def test_a_number_for_an_array_is_answered_with_an_example(number, example):
    """Which is itself a value of the type."""
    with pytest.raises(dyn.SettingError, match=f"array, such as {example}$") as error:
        typed_value("-1", number, "x")
    assert typed_value(str(error.value).split("'")[-2], number, "x")[0] == number


def test_a_value_without_a_declared_type_has_its_own():
    """As YAML reads it."""
    kinds = {
        "5": 2,
        "5.0": 3,
        "true": 1,
        "word": 4,
        "[1, 2.0]": 8,
        "[1]": 7,
        "[a]": 9,
        "[true]": 6,
    }
    assert {typed: typed_value(typed, 0, "x")[0] for typed in kinds} == kinds


def test_values_are_shown_as_ros2_shows_them():
    """Type in front, unless it is hidden; arrays are lists."""
    assert value_line(_message(1, bool_value=True)) == "Boolean value is: True"
    assert value_line(_message(3, double_value=0.1), hide_type=True) == "0.1"
    many = _message(8, double_array_value=array("d", [1.0, 2.0]))
    assert value_line(many) == "Double values are: [1.0, 2.0]"
    assert value_line(_message(0)) == "Parameter not set."


def test_a_dump_is_what_the_parser_of_ros_reads():
    """Names with dots are branches, strings have quotes, unset arrays are comments."""
    values = {
        "a.b": 1e-5,
        "a.c": ["y", "2"],
        "mode": "on",
        "plain": True,
        "a": 5,
        "n": [1, 2],
        "e": [],
    }
    page = dumped("/x", values, {"joints": 9})
    read = yaml.safe_load(page)["/x"]["ros__parameters"]
    assert read == {
        "a": 5,
        "a.b": 1e-5,
        "a.c": ["y", "2"],
        "mode": "on",
        "n": [1, 2],
        "plain": True,
    }
    assert '"on"' in page
    assert page.endswith(
        "    # e: [] is left out\n    # joints: not set (string array)\n"
    )
    nested = yaml.safe_load(dumped("/x", {"gains.j.p": 1.0, "gains.j.d": 2.0}))
    assert nested["/x"]["ros__parameters"] == {"gains": {"j": {"d": 2.0, "p": 1.0}}}


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Files of a robot with friction, and of one whose sidecar lacks it."""
    monkeypatch.chdir(tmp_path)
    record = _record(_robot())
    np.savez(
        "run.npz",
        names=record.names("q"),
        t=record.t,
        q=record.q,
        qd=record.qd,
        tau=record.tau,
    )
    without = {name: {"damping": 0.0, "friction": 0.0} for name in record.names("q")}
    (tmp_path / "without.dyn.yaml").write_text(yaml.safe_dump({"joints": without}))
    return [
        "evaluate",
        "run.npz",
        "--robot",
        "two_link",
        "--extras",
        "without.dyn.yaml",
    ]


def _shares(out):
    """Return the shares of the residuals by joint, in percent."""
    return [float(x) for x in re.findall(r"^joint\d.* ([\d.]+) %  ", out, re.MULTILINE)]


def test_evaluate_identifies_and_takes_up_the_result(recorded, capsys):
    """The command names friction; its files make another run agree with the recording."""
    assert cli.main([*recorded, "--identify", "found"]) == 0
    before, after = capsys.readouterr().out.split(
        "identified 11 combinations of 28 parameters"
    )
    assert before.count("friction (") == 2
    assert min(_shares(before)) > 1.0 > 3 * max(_shares(after))
    assert cli.main([*recorded, "--parameters", "found.parameters.csv"]) == 0
    assert max(_shares(capsys.readouterr().out)) < 0.3
    sidecar = yaml.safe_load(open("found.dyn.yaml", encoding="utf-8"))["joints"]
    assert sidecar["joint1"]["friction"] == pytest.approx(0.8, rel=0.03)
    assert cli.main([*recorded[:-1], "found.dyn.yaml"]) == 0
    assert max(_shares(capsys.readouterr().out)) < 0.5
    with pytest.raises(dyn.SettingError, match="the parameter joint3:m is missing"):
        with_table(dyn.load("arm7"), "found.parameters.csv")


def test_plots(recorded, capsys):
    """Of a recording, and of an evaluation; the file's kind is asked for first."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    assert cli.main(["plot", "run.npz", "-o", "run.svg"]) == 0
    page = open("run.svg", encoding="utf-8").read()
    assert all(
        f"<!-- {word}" in page
        for word in ("position", "velocity", "joint force", "joint2")
    )
    assert cli.main([*recorded, "--plot", "torque.png"]) == 0
    assert open("torque.png", "rb").read(4) == b"\x89PNG"
    assert cli.main([*recorded, "--plot", "torque.xyz"]) == 1
    assert "valid: a file that ends with ." in capsys.readouterr().err
    assert cli.main(["plot", "run.npz", "-o", "nowhere/run.png"]) == 1


@pytest.mark.parametrize(
    ("library", "command"),
    [("matplotlib.figure", ["plot", "run.npz"]), ("rosbags.highlevel", ["plot", "bag"]),
     ("rosbags.highlevel", ["record", "-o", "bag2"])],
)  # fmt: skip
def test_a_missing_library_is_named_with_its_extra(
    recorded, monkeypatch, tmp_path, capsys, library, command
):
    """In one line."""
    (tmp_path / "bag").mkdir()
    (tmp_path / "bag" / "metadata.yaml").touch()
    monkeypatch.setitem(sys.modules, library, None)
    assert cli.main(command) == 1
    extra = "plot" if "matplotlib" in library else "bags"
    assert f"pip install 'dyn_ros[{extra}]'" in capsys.readouterr().err


def _bag(path, states, commands=(), storage="mcap"):
    """Write a bag of joint states and commands, as ros2 bag does."""
    rosbag2 = pytest.importorskip(
        "rosbags.rosbag2", reason="rosbags is not installed (extra bags)"
    )
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    types = store.types
    kind = rosbag2.StoragePlugin[storage.upper()]
    with rosbag2.Writer(path, version=9, storage_plugin=kind) as writer:
        topics = {}
        for topic in dict.fromkeys(
            [*(row[0] for row in states), *(row[0] for row in commands)]
        ):
            name = (
                "std_msgs/msg/Float64MultiArray"
                if "commands" in topic
                else "sensor_msgs/msg/JointState"
            )
            topics[topic] = writer.add_connection(topic, name, typestore=store)
        for topic, t, names, *fields in states:
            stamp = types["builtin_interfaces/msg/Time"](
                sec=int(t), nanosec=round(t % 1 * 1e9)
            )
            header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
            arrays = [np.array(x, float) for x in fields]
            message = types["sensor_msgs/msg/JointState"](header, list(names), *arrays)
            data = store.serialize_cdr(message, message.__msgtype__)
            writer.write(topics[topic], round(1e9 * (t + 7.0)), data)
        for topic, t, values in commands:
            layout = types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
            message = types["std_msgs/msg/Float64MultiArray"](
                layout, np.array(values, float)
            )
            data = store.serialize_cdr(message, message.__msgtype__)
            writer.write(topics[topic], round(1e9 * (t + 7.0)), data)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_bag_is_read_by_joint(tmp_path, storage):
    """Shuffled, extra and partial messages, empty fields; commands as they stood."""
    a, b = ("joint2", "gripper", "joint1"), ("joint1", "joint2")
    states = [
        ("/joint_states", 1.0, a, [2, 9, 1], [20, 0, 10], [200, 0, 100]),
        ("/joint_states", 2.0, ("gripper",), [9], [0], [0]),
        ("/joint_states", 3.0, b, [3, 4], [], [300, 400]),
        ("/other/error", 3.0, b, [3, 4], [], []),
    ]
    commands = [("/arm/commands", 1.5, [5, 6]), ("/arm/commands", 2.5, [7, 8])]
    _bag(tmp_path / "bag", states, commands, storage)
    record = read_bag(tmp_path / "bag", joints=b)
    np.testing.assert_array_equal(record.t, [0.0, 2.0])
    np.testing.assert_array_equal(record.q, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(record.qd, [[10, 20], [np.nan, np.nan]])
    np.testing.assert_array_equal(record.tau, [[100, 200], [300, 400]])
    np.testing.assert_array_equal(record.command, [[np.nan, np.nan], [7, 8]])
    assert record.notes == ("1 of 3 messages of /joint_states lack a joint",)
    assert read_bag(tmp_path / "bag", joint_states="other/error").tau is None
    with pytest.raises(dyn.SettingError, match="did you mean '/joint_states'"):
        read_bag(tmp_path / "bag", joint_states="/joint_state")
    with pytest.raises(dyn.SettingError, match="no message that has elbow"):
        read_bag(tmp_path / "bag", joints=("elbow",))


@pytest.mark.parametrize(
    "content", [b"", b"\x89MCAP0\r\n" + b"x" * 50, bytes(range(256)) * 9]
)
def test_a_broken_bag_is_refused_in_words(tmp_path, content):
    """Whatever the file holds."""
    pytest.importorskip("rosbags", reason="rosbags is not installed (extra bags)")
    for name in ("a.mcap", "a.db3", "a.bag"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(dyn.SettingError, match="no bag that can be read"):
            read_bag(tmp_path / name)
    with pytest.raises(dyn.SettingError, match="no metadata.yaml in it"):
        read_bag(tmp_path)


def test_only_what_talks_to_nodes_imports_ros():
    """The other modules of the tools serve without it."""
    folder = Path(__file__).parents[2] / "ros_nodes" / "tools"
    live = {
        "live.py",
        "param.py",
        "lifecycle.py",
        "recorder.py",
        "stand.py",
        "fault_stand.py",
        "neighbours.py",
    }
    modules = {
        path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.py")
    }
    talking = {
        n
        for n, page in modules.items()
        if re.search(
            r"^ *(from|import) (rclpy|rcl_|\w+_msgs|builtin_interfaces)", page, re.M
        )
    }
    assert talking == live
    assert len(modules) > 8


class Stand:
    """A test stand whose controller answers as the test says."""

    def __init__(self, answers, said="computed_torque: ok", pause=0.0, lines=()):
        self.lines = list(lines)
        first = SimpleNamespace(t=0.0, values=np.array([1.0, 2.0]))
        self.answers, self.said, self.pause, self.tries = answers, said, pause, 0
        self.seen = {faults.COMMANDS: [first], faults.APPLIED: [first]}
        self.sound = [np.array(GO), np.array(ELSEWHERE)]
        self.slew = np.array([10.0, 5.0])

    def ensure(self, fault):
        for seen in self.seen.values():
            seen[:] = [SimpleNamespace(t=0.0, values=np.array([1.0, 2.0]))]
        self.tries += 1

    def begin(self):
        for seen in self.seen.values():
            seen.clear()
        return 5.0

    def watch(self, seconds, done=lambda: False):
        efforts = [
            SimpleNamespace(t=5.0 + t, values=np.array(x, float))
            for t, x in self.answers
        ]
        for seen in self.seen.values():
            seen[:] = efforts

    def log(self):
        return self.lines

    def end_all(self):
        self.ended = True

    def worst_said(self):
        return self.said

    def longest_pause(self):
        return self.pause


GO, ZERO, ELSEWHERE = [1.0, 2.0], [0.0, 0.0], [-3.0, 1.0]
STOPPING = faults.Fault("stop", "", lambda stand: None)
GOING = faults.Fault("go", "", lambda stand: None, follows=faults.GOES_ON)
RETURNING = faults.Fault("return", "", lambda stand: None, follows=faults.RETURNS)
SOUND = faults.Fault("sound", "", lambda stand: None, follows=faults.SOUND, says="two")
NEAR = faults.Fault("near", "", lambda stand: None, follows=faults.FOLLOWS)
QUIET = faults.Fault("quiet", "", lambda stand: None, follows=faults.QUIET)
VIOLATING = faults.Fault("raise", "", lambda stand: None, after="violation")
ANSWERS = {
    "zero in time": (STOPPING, [(0.05, GO), (0.1, ZERO), (0.2, ZERO)], ""),
    "zero too late": (STOPPING, [(0.2, GO), (0.3, ZERO)], "it took 0.300 s"),
    "zero, then effort": (STOPPING, [(0.1, ZERO), (0.2, GO)], "does not stay zero"),
    "nothing": (STOPPING, [], "no effort was seen"),
    "not finite": (STOPPING, [(0.05, [np.nan, 0.0]), (0.1, ZERO)], "not finite"),
    "as before": (GOING, [(0.1, GO), (0.2, GO)], ""),
    "another": (GOING, [(0.1, GO), (0.2, [1.0, 2.1])], "the effort changed"),
    "a zero": (GOING, [(0.1, GO), (0.15, ZERO), (0.2, GO)], "an effort was zero"),
    "a gap": (GOING, [(0.1, GO), (0.4, GO)], "no effort for 0.300 s"),
    "a pause at zero": (RETURNING, [(0.1, GO), (0.25, ZERO), (0.9, GO)], ""),
    "a pause at an effort": (
        RETURNING,
        [(0.1, GO), (0.4, ZERO), (0.5, GO)],
        "stood for 0.300 s",
    ),
    "a pause without a zero": (RETURNING, [(0.4, GO), (0.5, GO)], "stood for 0.400 s"),
    "no return": (RETURNING, [(0.1, GO), (0.2, ZERO)], "does not come back"),
    "no warning": (SOUND, [(0.1, GO), (0.2, ELSEWHERE)], "no diagnostics of two"),
    "of no robot": (SOUND, [(0.1, GO), (0.2, [40.0, 1.0])], "that of no robot"),
    "near": (NEAR, [(0.1, [1.07, 2.03]), (0.2, GO)], ""),
    "far": (NEAR, [(0.1, [1.0, 2.05]), (0.2, GO)], "more than effort_slew"),
    "near, and a zero": (NEAR, [(0.1, ZERO), (0.2, GO)], "an effort was zero"),
    "quiet": (QUIET, [(0.1, ZERO)], ""),
    "silent": (QUIET, [], ""),
    "not quiet": (QUIET, [(0.1, GO), (0.2, ZERO)], "there was an effort"),
    "last good, then zero": (VIOLATING, [(0.004, GO), (0.016, ZERO)], ""),
    "a bad one, then zero": (
        VIOLATING,
        [(0.004, [9.0, 2.0]), (0.016, ZERO)],
        "nor zero",
    ),
    "zero after many cycles": (VIOLATING, [(0.04, GO), (0.05, ZERO)], "took 0.050 s"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_the_fault_campaign_sees_what_is_wrong(case):
    """An answer that is late, missing, changed or not finite fails with its reason."""
    fault, answers, reason = ANSWERS[case]
    limits = faults.bounds({"computed_torque": {"on_violation": "zero"}})
    result = check_node._tried(Stand(answers), fault, limits)
    assert reason in result.reason
    assert bool(reason) == bool(result.reason)
    assert ("pass" in result.line()) == (not reason)
    if case == "zero in time":
        assert result.zero == pytest.approx(0.1)
        assert result.line().startswith(
            "stop                          0.100  0.115  pass"
        )


def test_a_fault_is_tried_again_where_the_machine_paused():
    """Five times at most, then the pause is named; it excuses lateness, no wrong effort."""
    limits = faults.bounds({})
    for fault, pause, tries in ((GOING, 0.2, 5), (GOING, 0.01, 1), (QUIET, 0.2, 1)):
        stand = Stand([(0.1, GO), (0.5, GO)], pause=pause)
        reason = check_node._tried(stand, fault, limits).reason
        assert stand.tries == tries
        assert ("the machine paused 0.200 s" in reason) == (tries == 5)
    for pause, reason in ((0.0, "it took 0.150 s"), (0.03, "")):
        late = Stand([(0.15, ZERO)], pause=pause)
        assert check_node._tried(late, STOPPING, limits).reason == reason


def test_faults_that_are_over_when_they_say_so():
    """What inject returns is waited for; what it raises later is the reason."""
    limits = faults.bounds({})

    def refused():
        raise DynError("it was accepted")

    for over, reason in ((lambda: True, ""), (lambda: False, "not over"),
                         (refused, "it was accepted")):  # fmt: skip
        fault = dataclasses.replace(GOING, inject=lambda stand, over=over: over)
        result = check_node._tried(Stand([(0.1, GO)]), fault, limits)
        assert reason in result.reason
        assert bool(reason) == bool(result.reason)


@pytest.mark.parametrize(
    ("changes", "lines", "reason"),
    [
        ({"until": "refused"}, ["old", "trajectory refused"], "said nothing of it"),
        ({"logs": "hangs"}, ["it hangs"], ""),
        ({"logs": "hangs"}, ["it hangs", "it hangs"], "log says 2 times"),
        ({"logs": "hangs"}, ["it stands"], "log says 0 times"),
        ({"says": "ok"}, [], ""),
        ({"unsaid": "ok"}, [], "diagnostics of ok"),
    ],
)
def test_faults_have_their_words(changes, lines, reason):
    """Lines of the log, once and not too long, and diagnostics that say, or do not."""
    fault, limits = dataclasses.replace(GOING, **changes), faults.bounds({})
    result = check_node._tried(Stand([(0.1, GO)], lines=lines), fault, limits)
    assert reason in result.reason
    assert bool(reason) == bool(result.reason)


def test_a_line_of_the_log_is_not_too_long():
    """A name of a million characters is not repeated in full; older lines are others'."""
    log = ["x" * 9999, "y" * 2001]
    assert "2001 characters" in check_node._why_silent(GOING, log, 1, "ok")
    assert not check_node._why_silent(GOING, log, 2, "ok")


def test_a_controller_that_does_not_come_is_ended():
    """The next fault begins anew."""

    class Absent(Stand):
        def ensure(self, fault):
            raise DynError("no effort within 30 s")

    stand = Absent([])
    result = check_node._tried(stand, GOING, faults.bounds({}))
    assert (result.reason, stand.ended) == ("no effort within 30 s", True)


@pytest.mark.parametrize(
    ("lower", "upper", "place"),
    [
        (-0.5, 2.0, 0.4),
        (3.0, 4.0, 3.6),
        (2.0, np.inf, 3.2),
        (-np.inf, -2.0, -2.8),
        (-np.inf, 0.5, -0.1),
        (-np.inf, np.inf, 0.2),
    ],
)
def test_the_robot_stands_within_limits_of_one_side(lower, upper, place):
    """A missing limit beside one outside [-1, 1] gives no infinite position, nor NaN."""
    limits = SimpleNamespace(lower=np.array([lower]), upper=np.array([upper]))
    np.testing.assert_allclose(check_node._place(limits), place)


def test_the_campaign_has_the_parameters_that_are_shipped():
    """Those of the demo and of computed_torque.yaml: the same controller in all three."""
    none = argparse.Namespace(
        params=None, robot=None, package_path=[], xacro_argument=[]
    )
    tried, model = check_node._settings(none)
    values, different = {}, {"gravity", "diagnostic_updater.period", "joints"}
    table = [*CONTROLLER, *gain_fields(model.joint_names)]
    for name in ("demo", "computed_torque", "check-node"):
        nodes = (
            tried if name == "check-node" else read_parameters(GRAPHS[name].params_file)
        )
        there = nodes["computed_torque"]
        assert {*there} <= {field.name for field in table}
        values[name] = {x.name: there.get(x.name, x.default) for x in table}
    for name in ("computed_torque", "check-node"):
        assert {
            x for x in values[name] if values[name][x] != values["demo"][x]
        } <= different
    assert {*tried["guard"]} == {"diagnostic_updater.period", "robot_description_file"}


def test_what_a_robot_or_parameters_lack_is_not_tried():
    """Ages that do not count, and limits that there are not or that are set otherwise."""
    arm, lacking = dyn.load("arm7"), check_node._lacking
    tool, of_joints = ["cartesian"], ["moving", "solver"]
    assert lacking({"computed_torque": {}}, arm) == tool
    assert lacking({"computed_torque": {"mode": "cartesian"}}, arm) == of_joints
    old = lacking({"computed_torque": {"max_state_age": 0.0}}, arm)
    assert old == ["age", *tool]
    bounded = lacking({"computed_torque": {"velocity_factor": 90.0}}, arm)
    assert bounded == ["limits", *tool]
    free = SimpleNamespace(
        lower=arm.lower, upper=arm.lower, velocity_limit=arm.velocity_limit
    )
    assert lacking({"computed_torque": {}}, free) == ["limits", *tool]
    (moving,) = fault_list.chosen(["nan-position-moving"])
    (solver,) = fault_list.chosen(["solver-nan"])
    assert all(check_node._lacks(x, of_joints) for x in (moving, solver))
    assert not any(check_node._lacks(x, tool) for x in (moving, solver))
    with pytest.raises(
        SettingError, match="effort_slew has 3 numbers; valid: one number"
    ):
        check_node._slew({"effort_slew": [1.0, 2.0, 3.0]}, arm)
    slew = check_node._slew({"effort_limits.joint1": 10.0}, arm)
    np.testing.assert_allclose(slew[:2], [200.0, 1740.0])
    q = check_node._place(arm)
    far = check_node._elsewhere(arm, q)
    assert ((far >= arm.lower) & (far <= arm.upper)).all()
    np.testing.assert_allclose(np.abs(far - q), 1.0, atol=0.3)


def test_bounds_of_faults_follow_the_parameters():
    """Timeouts and their watchdogs, and the time to brake where a stop is a ramp."""
    control = {
        "state_timeout": 0.2,
        "on_stale": "ramp",
        "stop_time": 1.5,
        "on_violation": "hold",
        "on_shutdown": "ramp",
        "last_good_cycles": 0,
    }
    limits = faults.bounds(
        {
            "computed_torque": control,
            "simulator": {"command_timeout": 0.008},
            "guard": {"effort_timeout": 0.4},
        }
    )
    assert limits == pytest.approx(
        {
            "state": 0.2,
            "stale": 0.2 + 0.015 + 1.5,
            "command": 0.008 + 2 * 0.002 + 0.005,
            "cycle": 0.004,
            "violation": np.inf,
            "doubt": 0.25 + 0.2 + 0.015 + 1.5,
            "law": np.inf,
            "estop": 0.1,
            "end": 0.017 + 1.5,
            "guard": 0.405,
            "latch": 0.1,
            "lost": np.inf,
        }
    )
    shipped = faults.bounds({})  # on_violation auto brakes for stop_time
    assert (shipped["violation"], shipped["law"]) == pytest.approx((2.016, 2.5))
    assert (shipped["stale"], shipped["guard"]) == pytest.approx((0.115, 0.205))


def test_each_state_has_its_faults():
    """Most faults come while the robot is held and while it moves, some when inactive."""
    names = {fault.name: fault for fault in fault_list.FAULTS}
    assert len(names) == len(fault_list.FAULTS)
    states = [fault.state for fault in fault_list.FAULTS]
    assert min(states.count(s) for s in (faults.HOLDING, faults.MOVING)) > 25
    for name, fault in names.items():
        quiet = fault.state == faults.INACTIVE
        assert quiet == name.endswith("-inactive")
        assert fault.follows == faults.QUIET or not quiet
        assert (fault.state == faults.MOVING) == name.endswith("-moving")
        assert fault.after in faults.bounds({})
        assert fault.needs in ("", "age", "limits", "cartesian")


def test_bit_flips_are_a_row_of_the_table(monkeypatch):
    """It counts what flips did; a wrong effort that passed fails, by the exit status."""
    (fault,) = fault_list.chosen(["bit-flips"])
    asked, status = [], 0
    out = "9 bit flips in 7 bytes\n     8 no difference\n     0 crashed\n     1 {}\n"

    def run(command, **_):
        asked.append(command)
        what = "wrong effort passed" if status else "seen by the shadow"
        return SimpleNamespace(returncode=status, stdout=out.format(what), stderr="")

    monkeypatch.setattr(check_node.subprocess, "run", run)
    sound = check_node._flipped(fault, 7)
    assert (sound.said, sound.reason) == (
        "8 harmless, 1 caught, 0 ended or hung, 0 passed",
        "",
    )
    assert asked[0][-4:] == ["--n", str(check_node.FLIPS), "--seed", "7"]
    status = 1
    line = check_node._flipped(fault, 7).line()
    assert re.search("FAIL: ended with 1 8 harmless, .* 1 passed", line)
    assert {kind for kinds in check_node.FLIPPED.values() for kind in kinds} == {
        *bit_flips.OUTCOMES
    }


def test_faults_are_listed_and_chosen_by_name(capsys):
    """A line for each; a misspelt one is refused with the nearest."""
    assert cli.main(["check-node", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(fault_list.FAULTS) > 70
    assert cli.main(["check-node", "--list", "--only", "nan-*", "old-*"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    pairs = itertools.product(
        ("", "-moving", "-inactive"), ("nan-position", "old-stamps")
    )
    assert names == [name + state for state, name in pairs]
    assert cli.main(["check-node", "--only", "nan-positon"]) == 1
    assert "did you mean 'nan-position'" in capsys.readouterr().err


def test_failing_solvers_are_right_until_they_fail(monkeypatch):
    """Then one raises, one returns NaN, one too little."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    from ros_nodes.tools import faulty_controller

    robot, state = _robot(), (np.array([0.3, -0.2]), np.ones(2), np.ones(2))
    right = dyn.solver("rnea").build(robot, engine="graph")(*state)
    raising, nan, short = faulty_controller.dyn_solvers()[:3]
    for solver in (raising, nan, short):
        np.testing.assert_allclose(solver.build(robot)(*state), right)
    monkeypatch.setattr(faulty_controller.FailingSolver, "failing", True)
    assert np.isnan(nan.build(robot)(*state)).all()
    with pytest.raises(dyn.DynError, match="shape"):
        short.build(robot)(*state)
    with pytest.raises(dyn.PluginError, match="fails on purpose"):
        raising.build(robot)(*state)


def test_parameters_without_a_value_hide_no_others():
    """A node of rclpy answers with nothing where one of the names has no value."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    from ros_nodes.tools import param

    known = {name: _message(2, integer_value=k) for k, name in enumerate("abcdefg")}
    asked = []

    class Live:
        def call(self, kind, name, request):
            asked.append(len(request.names))
            missing = [name for name in request.names if name in ("unset", "other")]
            return SimpleNamespace(
                values=[] if missing else [known[n] for n in request.names]
            )

    names = [*"abcd", "unset", *"ef", "other", "g"]
    got = param.values(Live(), "/x", names)
    assert {name: got[name].type for name in names} == {
        **dict.fromkeys("abcdefg", 2),
        "unset": 0,
        "other": 0,
    }
    assert all(got[name] is known[name] for name in known)
    assert param.values(Live(), "/x", []) == {}
