"""Runs: states and forces at a time, files, films; planar systems."""

import hashlib
import re
from dataclasses import replace as changed
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cli, envs, robots
from dyn_core.errors import (
    InfeasibleError,
    ModelError,
    NonFiniteError,
    SettingError,
    ShapeError,
    SingularError,
    UnsupportedError,
)
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.model.sources import example_robots
from dyn_core.planar.chain.files import load_chain_file
from dyn_core.planar.chain.states import from_angles
from dyn_core.recordings import (
    MotionRecord,
    Recording,
    read_motion,
    run_record,
    write_motion,
)
from dyn_core.recordings.files import is_recording
from dyn_core.recordings.runs import saved_robot
from dyn_core.view import command, film, painter, replay
from dyn_core.view.colors import torque_color, torque_legend
from dyn_core.view.painter import Drawn, Painter, grid_step, simplified
from dyn_core.view.planar_scene import ChainScene, ObjectScene
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.scene import Camera
from dyn_core.view.show import run_of, scene_of
from dyn_core.view.solids import ball, box


@pytest.fixture(scope="module")
def run():
    """A fall of the quadruped onto the floor: its first steps."""
    model = dyn.load("quadruped")
    q0 = RobotScene(model).start()
    return dyn.simulate(model, world={}, duration=0.02, q0=q0)


def _arm_run(rows=5):
    model = dyn.load("arm7")
    t = 0.1 * np.arange(rows) + 2.0
    q = np.linspace(0.0, 0.8, rows)[:, None] * np.ones(model.nq)
    tau = np.outer(np.arange(rows), np.ones(model.nv))
    return model, Recording(
        MotionRecord(coordinates_of(model), t, q, 0 * q, tau=tau), model, 0 * t
    )


def test_a_replay_has_the_poses_of_a_time():
    """At rows those of the rows, between them those of the library's own way from one to the other."""
    model, recording = _arm_run()
    shown = replay.of_recording(model, recording)
    scene = shown.scene
    assert shown.duration == pytest.approx(0.4)
    for k in range(5):
        assert shown.poses(0.1 * k) == pytest.approx(
            scene.poses(recording.q[k]), abs=1e-7
        )
    between = model.integrate(
        recording.q[1], 0.25 * model.difference(recording.q[1], recording.q[2])
    )
    assert shown.poses(0.125) == pytest.approx(scene.poses(between), abs=1e-9)
    assert shown.poses(9.0) == pytest.approx(scene.poses(recording.q[-1]), abs=0)
    assert shown.row(0.25) == 2
    assert shown.shares(0.25) == pytest.approx(2.0 / model.effort_limit)


def test_joint_forces_without_a_limit_are_shares_of_the_largest():
    model = dyn.load("planar3")
    rows = np.array([[1.0, -2.0, 0.0], [-4.0, 1.0, 0.0]])
    t, q = np.array([0.0, 1.0]), np.zeros((2, 3))
    limit = np.asarray(model.effort_limit)
    shown = replay.of_arrays(model, t, q, rows)
    expected = np.where(limit > 0, limit, [4.0, 2.0, 1.0])
    assert shown.shares(1.0) == pytest.approx(rows[1] / expected)


@pytest.mark.parametrize(
    ("tau", "limited", "said"),
    [
        ([5.0, -6.0], [20.0, 40.0], "share of the effort limit; at most 25 % here"),
        ([0.0, 0.0], [20.0, 40.0], "no joint force in this run"),
        ([5.0, -6.0], [0.0, 0.0], "share of the largest joint force"),
        ([np.nan, 0.0], [20.0, 0.0], "no joint force in this run"),
        ([30.0, 1.0], [20.0, 0.0], "share of the effort limit; at most 150 % here"),
    ],
)
def test_the_legend_of_the_colours_says_why_a_run_is_grey(tau, limited, said):
    """Without joint forces, or far below the limits, all bodies are grey."""
    scene = RobotScene(dyn.load("two_link"))
    scene.effort_limit = np.array(limited)
    rows = np.array([np.zeros(2), tau])
    shown = replay.Replay(scene, np.arange(2.0), np.zeros((2, 2)), tau=rows)
    assert shown.share_meaning == said


def test_floating_states_turn_the_short_way():
    """Between two rotations of a free base the shown one is unit and half as far."""
    model = dyn.load("quadruped")
    scene = RobotScene(model)
    a = scene.start()
    dv = np.zeros(model.nv)
    dv[2], dv[4] = 1.0, 0.3
    b = np.asarray(model.integrate(a, dv))
    half = scene.between(a, b, 0.5)
    assert np.linalg.norm(half[3:7]) == pytest.approx(1.0)
    assert model.difference(a, half) == pytest.approx(dv / 2, abs=1e-9)


def test_contact_forces_of_a_run_are_those_of_its_reports(run):
    model = run.model
    shown = replay.of_recording(model, run)
    row = next(k for k in range(len(run.t)) if run.reports[k][-1].contacts)
    contacts = run.reports[row][-1].contacts
    arrows = shown.arrows(float(run.t[row]))
    assert len(arrows) == len(contacts) > 0
    assert arrows[0] == pytest.approx(np.array([contacts[0].point, contacts[0].force]))
    weight = float(model.mass) * 9.81
    assert shown.scene.weight == pytest.approx(weight)
    forces = np.array(
        [
            [[0, 0, 0], [0, 0, weight]],
            [[1, 0, 0], [0, 0, 100 * weight]],
            [[0, 0, 0], [0, 0, 0]],
        ],
        float,
    )
    ends = replay.arrow_ends(shown.scene, 2.0, forces)
    assert [float(end[2]) for _, end in ends] == pytest.approx([2.0, 3.0])


def test_a_saved_run_shows_the_same(run, tmp_path):
    """States, forces and robot come back from the file."""
    path = tmp_path / "run.npz"
    run.save(path)
    assert saved_robot(str(path)) == ("quadruped", "floating")
    model = dyn.load("quadruped")
    a, b = replay.of_recording(run.model, run), command.read_run(str(path), model)
    for time in (0.0, 0.011, 0.018):
        assert b.poses(time) == pytest.approx(a.poses(time), abs=0)
        assert b.arrows(time) == pytest.approx(a.arrows(time), abs=0)
        assert b.shares(time) == pytest.approx(a.shares(time), abs=0)


def test_a_motion_file_of_a_floating_robot_is_shown(run, tmp_path):
    """What `dyn sim` writes: all columns of q, and the file the robot was read from."""
    path = tmp_path / "motion.npz"
    write_motion(run_record(run), path)
    robot, root_joint = saved_robot(str(path))
    assert (robot, root_joint) == ("quadruped", "floating")
    shown = command.read_run(str(path), dyn.load(robot))
    assert shown.poses(0.011) == pytest.approx(
        replay.of_recording(run.model, run).poses(0.011), abs=0
    )


def test_a_saved_run_names_an_installed_robot(tmp_path):
    """One of a collection, by the name that it was loaded by."""
    if example_robots.home() is None:
        pytest.skip("example-robot-data is not installed")
    run = dyn.simulate(dyn.load("ur5"), duration=0.01, progress=False)
    run.save(tmp_path / "run.npz")
    assert saved_robot(str(tmp_path / "run.npz")) == ("ur5", "fixed")


def test_files_that_are_no_recordings_say_which_are(tmp_path, capsys):
    """They were read as a URDF, and `dyn evaluate` asked for a robot first."""
    for name in ("a.npy", "a.gif"):
        (tmp_path / name).write_bytes(b"GIF89a")
        for command_name in ("view", "evaluate"):
            assert cli.main([command_name, str(tmp_path / name)]) == 1
            said = capsys.readouterr().err
            assert f"{name}: no recording; valid: a folder of a bag, .mcap, " in said
            assert ("np.savez('run.npz', t=t, q=q, qd=qd)" in said) == ("npy" in name)


def test_a_recording_that_names_its_robot_is_evaluated_by_it(tmp_path, capsys):
    """--robot was required; a file of measured joints alone still needs it."""
    path = str(tmp_path / "run.npz")
    motion = ["--q0", "joint1=0.5", "--duration", "1", "-o", path]
    assert cli.main(["sim", "planar3", *motion]) == 0
    assert cli.main(["evaluate", path]) == 0
    assert "measured effort against 'planar3'" in capsys.readouterr().out
    record = read_motion(path)
    write_motion(changed(record, facts={}), path)
    assert cli.main(["evaluate", path]) == 1
    assert "does not say whose run it is; give --robot" in capsys.readouterr().err


def _own_run(folder, *options):
    """Write a robot, and a run of it that is loaded with the options; return both."""
    robot, path = folder / "r.urdf", folder / "r.npz"
    robot.write_text(Path(dyn.load("two_link").source.file).read_text())
    motion = ["--q0", "joint2=0.5", "--duration", "1", *options, "-o", str(path)]
    assert cli.main(["sim", str(robot), *motion]) == 0
    return robot, path


USES = [["evaluate"], ["view", "--picture", "a.png"], ["report", "-o", "a.html"]]


@pytest.mark.parametrize("use", USES[:2])
def test_a_run_says_which_robot_is_gone(tmp_path, monkeypatch, capsys, use):
    """It said that the file does not say whose run it is."""
    monkeypatch.chdir(tmp_path)
    robot, path = _own_run(tmp_path)
    robot.rename(tmp_path / "other.urdf")
    capsys.readouterr()
    assert cli.main([use[0], str(path), *use[1:]]) == 1
    said = f"{path} is of {robot}, which is not there; valid: --robot PATH"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--lock", "joint1=0.2"]])
@pytest.mark.parametrize("use", USES)
def test_a_robot_that_was_edited_after_its_run_is_told(
    tmp_path, monkeypatch, capsys, use, options
):
    """Once; not for an unchanged robot, and not for one that differs in a comment."""
    monkeypatch.chdir(tmp_path)
    robot, path = _own_run(tmp_path, *options)
    # A report has no --lock: it cannot tell a comment from another robot then.
    locked = [] if use[0] == "report" else options
    command_line, before = [use[0], str(path), *use[1:], *locked], robot.read_text()
    edits = {"": 0, "<!-- c -->": 0, "mass": 1}
    for edit, count in edits.items():
        if edit == "mass":
            robot.write_text(
                re.sub(r'<mass value="[^"]*"', '<mass value="9.5"', before)
            )
        else:
            robot.write_text(before.replace("</robot>", f"{edit}</robot>"))
        capsys.readouterr()
        assert cli.main(command_line) == 0
        said = f"{path}: the robot r.urdf has changed since this run"
        if not (edit.startswith("<!") and options and not locked):
            assert capsys.readouterr().err.count(said) == count, edit


@pytest.mark.parametrize(
    ("name", "options"),
    [("arm7", {}), ("arm7", {"gravity": [0, 0, -1.6]}), ("arm7", {"lock": {"joint3": 0}}),
     ("quadruped", {"extras": "quadruped_stand"}), ("ur5", {})],
)  # fmt: skip
def test_unchanged_robots_are_not_called_changed(
    tmp_path, monkeypatch, capsys, name, options
):
    """Also if the run had it with another gravity, locked joints or a sidecar."""
    if name == "ur5" and example_robots.home() is None:
        pytest.skip("example-robot-data is not installed")
    monkeypatch.chdir(tmp_path)
    dyn.simulate(dyn.load(name, **options), duration=0.1).save("r.npz")
    lock = [f"--lock={k}={x}" for k, x in options.get("lock", {}).items()]
    for use in USES[1:]:
        assert cli.main([use[0], "r.npz", *use[1:], *lock * (use[0] == "view")]) == 0
    assert "changed" not in capsys.readouterr().err


def test_a_run_of_an_address_names_its_robot(tmp_path, monkeypatch, capsys):
    """Of package://, which was taken for a file that is gone."""
    folder = tmp_path / "pkg"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    robot, path = _own_run(folder)
    (folder / "package.xml").write_text("<package><name>pkg</name></package>")
    run = dyn.simulate(
        dyn.load("package://pkg/r.urdf", package_paths=[folder]), duration=1.0
    )
    run.save(path)
    assert saved_robot(str(path)) == ("package://pkg/r.urdf", "fixed")
    assert cli.main(["evaluate", str(path), "--package-path", str(folder)]) == 0
    assert "changed" not in capsys.readouterr().err
    robot.unlink()
    assert cli.main(["evaluate", str(path), "--package-path", str(folder)]) == 1
    assert "does not say whose" not in capsys.readouterr().err


def test_a_damaged_file_is_named_and_no_robot_is_asked_for(tmp_path, capsys):
    """It may well name its robot, but cannot be read."""
    damaged = tmp_path / "run.npz"
    damaged.write_bytes(b"PK damaged")
    with pytest.raises(SettingError, match=r"run\.npz: no NPZ that can be read"):
        saved_robot(str(damaged))
    assert cli.main(["view", str(damaged)]) == 1
    assert "--robot" not in capsys.readouterr().err


def test_a_saved_run_of_an_arm_is_read_by_the_other_commands(tmp_path):
    model, recording = _arm_run()
    recording.save(tmp_path / "arm.npz")
    record = read_motion(tmp_path / "arm.npz")
    assert record.names("q") == model.joint_names
    assert record.q == pytest.approx(recording.q)
    recording.save(tmp_path / "arm.csv")
    assert read_motion(tmp_path / "arm.csv").q == pytest.approx(recording.q)
    with pytest.raises(SettingError, match=r"arm\.txt.*\.npz, \.csv, \.mcap"):
        recording.save(tmp_path / "arm.txt")


def test_measured_joints_are_matched_by_name():
    """Columns in another order; a joint that was not measured stays, and is said."""
    model = dyn.load("arm7")
    names = model.joint_names
    q = np.array([[0.1, 0.2], [0.3, 0.4]])
    shown = replay.of_motion(
        model, MotionRecord.of_joints((names[2], names[0]), np.array([0.0, 1.0]), q)
    )
    assert shown.states[1, [0, 2]] == pytest.approx([0.4, 0.3])
    assert names[1] in shown.scene.notes[-1]
    with pytest.raises(SettingError, match="another robot"):
        replay.of_motion(
            model, MotionRecord.of_joints(("elbow",), np.zeros(1), np.zeros((1, 1)))
        )


def test_joints_that_only_the_recording_has_are_said():
    """A run of the arm beside another robot; followers of a robot are its own."""
    model, (_, recording) = dyn.load("two_link"), _arm_run()
    shown = replay.of_motion(model, recording.motion)
    assert shown.scene.notes[-1] == (
        "recorded, and no moving joints of 'two_link':"
        " joint3, joint4, joint5, joint6, joint7"
    )
    shown.scene.parts()  # reads meshes, and notes what they lack
    assert shown.scene.notes[0].startswith("recorded, and no moving joints")
    same, recording = _arm_run()
    assert not replay.of_motion(same, recording.motion).scene.notes


def test_one_state_is_shown_without_a_time():
    """Of a robot and of an object: a posture, not a run."""
    arm, pole = dyn.load("arm7"), dyn.planar.planar_object("cart_pole")
    for what, q in ((arm, np.full(7, 0.3)), (pole, [0.1, 0.2])):
        shown = run_of(what, q, None)
        assert shown.t.tolist() == [0.0]
        assert len(shown.states) == 1
    np.testing.assert_array_equal(
        run_of(arm, np.full(7, 0.3), None).states, [[0.3] * 7]
    )


def test_runs_of_another_robot_are_refused():
    model, recording = _arm_run()
    with pytest.raises(ShapeError, match="planar3"):
        replay.of_recording(dyn.load("planar3"), recording)
    with pytest.raises(SettingError, match="without rows"):
        replay.of_arrays(model, np.zeros(0), np.zeros((0, model.nq)))
    with pytest.raises(SettingError, match="not fall"):
        replay.of_arrays(model, np.array([1.0, 0.0]), np.zeros((2, model.nq)))


@pytest.mark.parametrize("name", robots.chains())
def test_links_of_a_planar_chain_lie_between_its_joints(name):
    """Each link's x axis points from joint to joint; sliders give the state back."""
    content = load_chain_file(robots.chain_path(name))
    scene = ChainScene(content.chain, content.start)
    rng = np.random.default_rng(2)
    values = [rng.uniform(x.low, x.high) for x in scene.sliders]
    state = scene.state(values)
    rates, free = np.zeros(content.chain.n - 1), len(values) - content.chain.n + 1
    place = values[:free] or content.start.x[0]
    points = from_angles(content.chain, place, (0, 0), values[free:], rates).x
    poses = scene.poses(np.array([state, state]))
    assert poses.shape == (2, content.chain.n + 1, 4, 4)
    for k, length in enumerate(content.chain.lengths):
        ends = [poses[1, k + 1] @ (x, 0, 0, 1) for x in (0.0, length)]
        assert np.array(ends)[:, [0, 2]] == pytest.approx(points[k : k + 2], abs=1e-12)
        assert np.linalg.det(poses[1, k + 1, :3, :3]) == pytest.approx(1.0)
    assert scene.values(state) == pytest.approx(values, abs=1e-9)
    shown = {part.name for part in scene.parts()}
    assert shown >= {f"rod/{k}" for k in range(len(content.chain.lengths))}


@pytest.mark.parametrize(
    ("constraints", "names"),
    [
        ({}, ["joint0 x", "joint0 y"]),
        ({"kind": {0: "fixed"}}, []),
        ({"kind": {0: "line"}, "s": {0: (0.6, 0.8)}}, ["joint0 along its line"]),
    ],
)
def test_sliders_of_a_chain_move_what_can_move(constraints, names):
    """The pin of the double pendulum went up and down in its film."""
    chain = dyn.make_chain([0.5, 0.4], [1.0, 0.7, 0.5], constraints=constraints)
    scene = ChainScene(chain)
    assert [x.name for x in scene.sliders][:-2] == names
    values = np.array([x.start for x in scene.sliders]) + 0.3
    state = scene.state(values)
    assert scene.values(state) == pytest.approx(values)
    moved = state[:2] - scene.start()[:2]
    assert np.linalg.norm(moved) == pytest.approx(0.3 * np.sqrt(len(names)))
    if len(names) == 1:
        assert moved @ (0.6, 0.8) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["cart_pole", "acrobot", "cart_three_poles"])
def test_planar_objects_are_shown_as_their_rods(name):
    system = dyn.planar.planar_object(name)
    scene = ObjectScene(system)
    q = [0.2 * (k + 1) for k in range(system.nq)]
    x0, v0, theta, rates = system.chain_state(q, [0.0] * system.nq)
    points = from_angles(system.to_chain(), x0, v0, theta, rates).x
    assert scene.state(q) == pytest.approx(np.ravel(points))
    assert [x.name for x in scene.sliders] == list(system.coordinates)
    shown = run_of(system, [q, q], [0.0, 1.0])
    assert shown.state(0.5) == pytest.approx(np.ravel(points))


@pytest.mark.parametrize("count", [-1, 1])
def test_another_number_of_values_than_sliders_is_refused(count):
    """A scene leaves none out, and repeats none; nor does it keep those values."""
    chain, system = (dyn.planar.planar_object("acrobot") for _ in range(2))
    for scene in (
        RobotScene(dyn.load("arm7")),
        RobotScene(dyn.load("two_link")),
        ChainScene(chain.to_chain()),
        ObjectScene(system),
    ):
        start = scene.values(scene.start()).tolist()
        values = start[:count] if count < 0 else [*start, 0.1]
        with pytest.raises(ShapeError, match="wanted"):
            scene.state(values)
        assert scene.values(scene.start()).tolist() == start
        state = scene.state(start)
        assert scene.state(np.array(start)) == pytest.approx(state, abs=0)


def test_tasks_and_environments_are_shown():
    task = envs.planar_task("walker")
    states = task.start(np.random.default_rng(0), 1)
    shown = run_of(task, np.repeat(states, 3, axis=0))
    assert shown.duration == pytest.approx(2 * task.interval)
    assert shown.states[1] == pytest.approx(np.ravel(task.points(states[0])))
    walk = envs.robot_task("quadruped_walk")
    assert scene_of(walk).model is walk.model
    with pytest.raises(UnsupportedError, match="a list is not shown"):
        scene_of([])


def test_recordings_are_runs_of_robots_and_of_their_tasks():
    """A task of a robot shows its robot; what has no Recording says so."""
    walk = envs.robot_task("quadruped_walk")
    recording = dyn.simulate(walk.model, duration=0.01)
    shown = run_of(walk, recording)
    assert shown.states == pytest.approx(run_of(walk.model, recording).states, abs=0)
    for what in (envs.planar_task("walker"), dyn.planar.planar_object("acrobot"), 3):
        with pytest.raises(UnsupportedError, match="no run of .*valid: a Model"):
            run_of(what, recording)
    with pytest.raises(ShapeError, match="t: wanted None"):
        run_of(walk, recording, recording.t)


@pytest.mark.parametrize("name", ["robot", "robot's task", "chain", "object", "task"])
@pytest.mark.parametrize(
    "states", [[], "abc", [[]], np.zeros((2, 5)), np.zeros((2, 3, 3)), [[1], [2, 3]]]
)
def test_states_that_do_not_fit_are_refused(name, states):
    """Of each kind of system, by shape and type."""
    task = envs.planar_task("planar_chain")
    what = {
        "robot": dyn.load("arm7"), "robot's task": envs.robot_task("reach"),
        "chain": task.system, "object": dyn.planar.planar_object("acrobot"), "task": task,
    }[name]  # fmt: skip
    with pytest.raises(ShapeError, match="states: wanted"):
        run_of(what, states, [0.0, 1.0])


@pytest.mark.parametrize("t", [5.0, [], [[5.0]], [1.0, 2.0]])
def test_times_that_do_not_fit_are_refused(t):
    """One time for each state, also for one state alone."""
    arm = dyn.load("arm7")
    with pytest.raises(ShapeError, match=r"t: wanted shape \(1,\), got shape"):
        run_of(arm, arm.neutral(), t)


def test_joint_forces_have_a_row_for_each_time():
    model, recording = _arm_run()
    with pytest.raises(ShapeError, match="tau: wanted 5 rows as t has, got 4"):
        replay.of_arrays(model, recording.t, recording.q, recording.tau[:4])


def test_an_episode_of_an_environment_is_a_run():
    pytest.importorskip("gymnasium", reason="gymnasium is not installed (extra env)")
    shown = command.episode("dyn_ros/Pendulum-v0", duration=0.5)
    assert shown.duration == pytest.approx(0.5)
    again = command.episode("dyn_ros/Pendulum-v0", duration=0.5)
    assert len(shown.t) == 6
    assert shown.states == pytest.approx(again.states, abs=0)
    with pytest.raises(SettingError, match="Pendulum"):
        command.episode("dyn_ros/Pendulm-v0")


def test_names_of_chains_and_runs():
    assert command.is_chain("hopper") and command.is_chain("my.yaml")
    assert not command.is_chain("arm7") and not command.is_chain("cart_pole")
    assert is_recording("a.npz") and is_recording("b.mcap") and not is_recording("arm7")
    assert command.chain_scene("hopper").start()[:2] == pytest.approx([0.0, 0.3])
    with pytest.raises(ModelError, match=r"gone\.yaml"):
        command.chain_scene("gone.yaml")


def test_a_sweep_moves_each_slider_through_its_range():
    scene = RobotScene(dyn.load("two_link"))
    shown = command.sweep(scene)
    for k, slider in enumerate(scene.sliders):
        seen = shown.states[:, k]
        reach = slider.high - slider.low
        assert np.ptp(seen) > 0.95 * reach
        assert seen.min() >= slider.low - 1e-9
        assert seen.max() <= slider.high + 1e-9


@pytest.mark.parametrize("error", [InfeasibleError, SingularError, NonFiniteError])
def test_a_sweep_goes_past_positions_that_do_not_close(error):
    """The state stays where the loops do not close; other errors pass through."""
    scene = RobotScene(dyn.load("two_link"))
    low = scene.start()[0] - 0.1

    def state(values, moved=None):
        if values[0] < low:
            raise error("loop 'a'")
        return np.array(values)

    scene.state = state
    seen = command.sweep(scene).states[:, 0]
    assert len(seen) == 1 + 2 * 38 and seen.min() >= low and np.ptp(seen) > 0.1
    error = ValueError
    with pytest.raises(ValueError, match="loop 'a'"):
        command.sweep(scene)


# Pictures.

CAMERA = Camera(np.array([3.0, 0.0, 1.0]), np.zeros(3), 1.0, -0.5)


def test_the_nearer_of_two_surfaces_is_seen():
    """In either order; where they cut each other, each where it is nearer."""
    red, blue = (255, 0, 0), (0, 0, 255)
    pose = np.eye(4)
    pose[:3, 3] = (0.5, 0.0, 1 / 6)  # on the line of sight
    near = box((0.2, 0.2, 0.2)).moved(pose)
    far = box((0.2, 0.6, 0.6))
    renderer = Painter(CAMERA, 64, 48)
    pictures = [
        renderer.paint(x)
        for x in (
            [Drawn(near, red), Drawn(far, blue)],
            [Drawn(far, blue), Drawn(near, red)],
        )
    ]
    assert (pictures[0] == pictures[1]).all()
    image = pictures[0].astype(int)
    middle, side = image[24, 32], image[24, 27]
    assert middle[0] > 2 * middle[2]
    assert side[2] > 2 * side[0]


def test_triangles_cover_the_subpixels_inside_them():
    """Of random ones, cut by the picture's sides, thin, seen from both sides, doubled."""
    lens, rng = painter._Lens(CAMERA, 40, 30), np.random.default_rng(3)
    for _ in range(40):
        corners = rng.uniform((-25, -25, 1.0), (65, 55, 3.0), (12, 3))
        corners[3:6, 1] = corners[3, 1] + rng.uniform(0, 1.5, 3)  # thin
        corners[6:9, :2] = np.round(corners[6:9, :2]) + 0.5  # corners on subpixels
        corners[9] = np.nan  # behind the camera
        faces = np.array([(0, 1, 2), (3, 4, 5), (8, 7, 6), (9, 10, 11), (0, 2, 2)])
        depth, front = painter._nearest(lens, corners, faces)
        best = np.full((30, 40), np.inf)
        for k in range(3):
            ends = np.vstack([corners[faces[k], :2].T, np.ones(3)])
            x, y = np.meshgrid(np.arange(40) + 0.5, np.arange(30) + 0.5)
            weights = np.linalg.solve(ends, np.stack([x, y, x * 0 + 1]).reshape(3, -1))
            near = weights.T @ (1 / corners[faces[k], 2])
            inside = (weights >= -1e-9).all(axis=0).reshape(30, 40)
            edge = (np.abs(weights).min(axis=0) < 1e-9).reshape(30, 40)
            reached = np.where(inside, 1 / near.reshape(30, 40), np.inf)
            best = np.minimum(best, reached)
            assert (inside | (front != k)).all()
            assert ((depth <= reached * (1 + 1e-9)) | edge).all()
        assert ((front >= 0) == np.isfinite(depth)).all()
        assert (best <= depth * (1 + 1e-9)).all()


def test_places_on_the_picture_are_those_of_a_camera():
    """A ball a metre to the right and one up appear by the tangent of their angles."""
    renderer = Painter(
        Camera(np.array([0.0, -5.0, 0.0]), np.zeros(3), 1.0, -3.0), 400, 400
    )
    pose = np.eye(4)
    pose[:3, 3] = (1.0, 0.0, 1.0)
    image = renderer.paint([Drawn(ball(0.05).moved(pose), (0, 0, 0))]).astype(int)
    rows, columns = np.nonzero(image.sum(axis=2) < 400)
    half = np.tan(0.35) * 5.0  # of the picture's height, at the depth of the ball
    assert columns.mean() == pytest.approx(200 + 200 / half, abs=1.5)
    assert rows.mean() == pytest.approx(200 - 200 / half, abs=1.5)


def test_what_is_under_the_floor_is_hidden():
    renderer = Painter(Camera(np.array([3.0, 0.0, 1.0]), np.zeros(3), 1.0, 0.5), 64, 48)
    empty = renderer.paint([])
    assert (renderer.paint([Drawn(ball(0.2), (255, 0, 0))]) == empty).all()


def test_fewer_triangles_keep_the_size():
    fine = ball(1.0, 128)
    coarse = simplified(fine, 0.1)
    assert len(coarse.faces) < len(fine.faces) / 4
    assert np.ptp(coarse.vertices, axis=0) == pytest.approx([2.0, 2.0, 2.0], abs=0.1)


@pytest.mark.parametrize(
    "size, step", [(1.0, 0.1), (3.0, 0.5), (0.2, 0.02), (12.0, 2.0)]
)
def test_the_grid_has_round_steps(size, step):
    assert grid_step(size) == pytest.approx(step)


def test_a_film_has_its_pictures_and_equal_bytes(tmp_path):
    """As many pictures as time and rate say; a robot that moves, moves; twice the same file."""
    image = pytest.importorskip(
        "PIL.Image", reason="Pillow is not installed (extra view)"
    )
    model, recording = _arm_run()
    shown = replay.of_recording(model, recording)
    digests = set()
    for name in ("a.gif", "b.gif"):
        assert film.write_film(shown, tmp_path / name, fps=10.0, speed=2.0) == 3
        digests.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(digests) == 1
    with image.open(tmp_path / "a.gif") as opened:
        assert opened.n_frames == 3
        assert opened.info["duration"] == 100
        first = np.asarray(opened.convert("RGB")).astype(int)
        opened.seek(2)
        last = np.asarray(opened.convert("RGB")).astype(int)
    assert (np.abs(first - last).max(axis=2) > 60).sum() > 500


def test_colours_of_joint_forces():
    """Grey at zero, apart at both ends, cut off beyond; a body has that of its joint."""
    assert torque_color(0.0) == torque_color(float("nan"))
    assert torque_color(1.0) == torque_color(3.0) != torque_color(-1.0)
    scene = RobotScene(dyn.load("arm7"))
    shares = np.zeros(7)
    shares[2] = -1.0
    shown = film.colors_of_bodies(scene, shares)
    assert shown[3] == torque_color(-1.0)
    assert shown[1] == torque_color(0.0)
    assert film.colors_of_bodies(scene, None) == {}


@pytest.mark.parametrize(
    "path, fps, why",
    [
        ("a.mp4", 10.0, "ends with"),
        ("gone/a.gif", 10.0, "no such folder"),
        ("a.gif", 0.0, "fps"),
    ],
)
def test_films_that_cannot_be_are_refused(path, fps, why, tmp_path):
    pytest.importorskip("PIL", reason="Pillow is not installed (extra view)")
    model, recording = _arm_run()
    with pytest.raises(SettingError, match=why):
        film.write_film(replay.of_recording(model, recording), tmp_path / path, fps)
    with pytest.raises(SettingError, match="lower fps or a higher speed"):
        film.frame_times(1e6, 20.0, 1.0)


def test_a_label_of_the_colours_is_text():
    assert "<span>a &lt;b&gt; &amp; c</span>" in torque_legend("a <b> & c")
