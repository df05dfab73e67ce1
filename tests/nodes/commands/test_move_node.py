"""`dyn move` against a running controller, over DDS on loopback."""

import json
import os
import re
import signal
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from dyn_core import cli
from dyn_core.errors import DynError
from ros_nodes.graphs import GRAPHS

pytestmark = [pytest.mark.ros, pytest.mark.timeout(120)]
PARAMS = """\
simulator:
  ros__parameters:
    robot_description_file: arm7
    update_rate: 500
    brakes: true
    joint_friction: false  # it would hold a soft tool 0.02 rad away
    initial_positions: [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
computed_torque:
  ros__parameters:
    robot_description_file: arm7
    mode: cartesian
    cartesian: {frame: tool}
"""


def test_the_tool_is_led_to_a_pose(start, environment, monkeypatch, capfd):
    """It arrives; beyond its reach it does not, and the command says so.

    Ctrl-C ends the targets. Refused are speeds that would jump, the pose of another
    link, and other nodes.
    """
    from rclpy.parameter import Parameter

    from ros_nodes.moving import move

    def run(*arguments):
        status = cli.main(["move", *arguments])
        said = capfd.readouterr()
        return status, said.out, said.err

    start(GRAPHS["demo"].nodes, PARAMS)
    to = ["--to", "0.4", "0.1", "0.5", "--speed", "0.4", "--timeout", "20"]
    deadline = time.monotonic() + 40
    status, out, err = run(*to)
    while status and time.monotonic() < deadline:  # the nodes are not active yet
        status, out, err = run(*to)
    assert status == 0, out + err
    distance, angle = map(
        float, re.search(r"arrived: (\S+) mm, (\S+) rad", out).groups()
    )
    assert distance <= 10
    assert angle <= 0.02
    beside = ["--to", "0.4", "0.05", "0.5", "--position-only", *to[4:]]
    status, out, err = run(*beside)
    assert status == 0, out + err
    assert re.search(r"arrived: \S+ mm from the target", out), out
    status, _, err = run(*to, "--speed", "20")
    assert (status, "--speed 20; valid: at most 5, because" in err) == (1, True), err
    read = move.values
    other = {move.FRAME: Parameter(move.FRAME, value="link5").get_parameter_value()}
    with monkeypatch.context() as patch:
        patch.setattr(move, "values", lambda *asked: read(*asked) | other)
        status, _, err = run(*to)
    assert (status, "publishes the pose of 'link5', and its tool is 'tool'" in err) == (
        1,
        True,
    ), err
    sent, pose = [], move.ToolPath.pose

    def interrupted(path, t):
        sent.append(t)
        if len(sent) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return pose(path, t)

    with monkeypatch.context() as patch:
        patch.setattr(move.ToolPath, "pose", interrupted)
        status, out, err = run("--to", "0.4", "0.0", "0.5", *to[4:])
    assert (status, "holds the last target" in out, len(sent)) == (1, True, 20), err
    monkeypatch.setattr(move, "SETTLE", 0.5)
    status, out, err = run("--to", "0.9", "0.1", "0.9", "--speed", "0.25")
    assert (status, "not there" in out) == (1, True), out + err
    again = ["lifecycle", "set", "/computed_torque", "deactivate", "activate"]
    hold = f"to hold the tool where it is: dyn {' '.join(again)}"
    assert f"the reference stays at the target; {hold}" in out, out + err
    status, _, err = run(*to)
    assert (status, f"so lead it there; or {hold}" in err) == (1, True), err
    assert cli.main(again) == 0
    status, out, err = run("--to", "1.5", "0.1", "0.5", "--speed", "2.0")
    assert (status, "not there" in out) == (1, True), out + err
    status, _, err = run("--to", "400", "0", "500")
    assert (status, " m from the tool; is it in millimetres?" in err) == (1, True), err
    assert cli.main(["call", "/computed_torque/estop"]) == 0
    monkeypatch.setattr(move, "SETTLE", 30.0)
    began = time.monotonic()
    status, out, err = run(*to, "--speed", "0.05")
    assert time.monotonic() < began + 10.0, "it does not wait for the end of the path"
    refusal = "/computed_torque: target_pose refused: "
    assert (status, refusal in err, "out of reach" in out) == (1, True, False), out
    assert "no target is followed: stopped: " in err
    status, _, err = run("/nobody", *to[:4], "--timeout", "0.5")
    assert (status, "node /nobody is not there" in err) == (1, True)
    other = {move.MODE: Parameter(move.MODE, value="gravity").get_parameter_value()}
    with monkeypatch.context() as patch:  # a recorder subscribes to its target poses
        patch.setattr(move, "values", lambda *asked: read(*asked) | other)
        status, _, err = run(*to)
    assert (status, "follows no target poses; valid: a node" in err) == (1, True), err
    status, _, err = run("/simulator", *to[:4], "--timeout", "5")
    assert (status, "follows no target poses" in err) == (1, True)


def test_joints_are_led_to_positions(start, environment, monkeypatch, capfd, tmp_path):
    """By positions, and along a file, also to its first point.

    What the controller says of a trajectory that it does not follow is told.
    """
    from ros_nodes.moving import joint_move

    def run(*arguments):
        status = cli.main(["move", *arguments, "--timeout", "20"])
        said = capfd.readouterr()
        return status, said.out, said.err

    start(
        GRAPHS["demo"].nodes,
        PARAMS.replace("cartesian\n    cartesian: {frame: tool}", "computed_torque"),
    )
    to = ["--joints", "joint2=-0.4", "joint4=-2.0", "--duration"]
    deadline = time.monotonic() + 40
    status, out, err = run(*to, "1.5")
    while status and time.monotonic() < deadline:  # the nodes are not active yet
        status, out, err = run(*to, "1.5")
    assert status == 0, out + err
    assert re.fullmatch(
        r"1\.5 s to the last point\narrived: joint 'joint\d' is the farthest, 0\.00\d\d"
        r" rad or m from the last point\n",
        out,
    )
    status, _, err = run(*to, "0.05")
    assert status == 0, "the joints are there already"
    status, _, err = run("--joints", "joint2=90", "--duration", "2")
    assert status == 1
    assert "/computed_torque: trajectory refused: " in err
    assert "joint2" in err
    status, _, err = run("--joints", "jiont2=0.1", "--duration", "2")
    assert (status, "did you mean 'joint2'" in err) == (1, True), err
    points = [
        {"positions": [q, -1.8], "time_from_start": {"sec": t}}
        for t, q in enumerate((-0.7, -0.6))
    ]
    names = [f"joint{k}" for k in range(1, 8)]
    rest = [0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8]
    for point in points:
        q = rest.copy()
        q[1], q[3] = point["positions"]
        point["positions"] = q
    path = tmp_path / "motion.json"
    path.write_text(json.dumps({"joint_names": names, "points": points}))
    status, _, err = run("--trajectory", str(path))
    assert (status, "start_tolerance" in err) == (1, True), err
    status, out, err = run("--trajectory", str(path), "--duration", "1.5")
    assert status == 0, out + err
    assert out.startswith("2.5 s to the last point")
    away, there = points
    points = [  # it rests for a second, leaves, and comes back
        {**point, "time_from_start": {"sec": t}}
        for t, point in enumerate((there, there, away, there))
    ]
    path.write_text(json.dumps({"joint_names": names, "points": points}))
    waits, arrival = [], joint_move._arrival

    def timed(*arguments):
        began = time.monotonic()
        status = arrival(*arguments)
        waits.append(time.monotonic() - began)
        return status

    monkeypatch.setattr(joint_move, "_arrival", timed)
    status, out, err = run("--trajectory", str(path))
    assert status == 0, out + err
    assert waits[0] > 2.0, "a round trip is over before it began"
    status, _, err = run("/simulator", *to, "2")
    assert (status, "listens to no trajectories" in err) == (1, True), err


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([(30, "trajectory dropped: joint state is stale")], "trajectory dropped: jo"),
        ([(30, "trajectory stopped: envelope")], "trajectory stopped: envelope"),
        ([(40, "stopped: x"), (20, "following a trajectory of 1 s")], None),
    ],
)
def test_a_motion_that_ends_early_says_why(lines, said, ros, monkeypatch, capsys):
    """By the log of the node since the trajectory was sent."""
    from rcl_interfaces.msg import Log
    from sensor_msgs.msg import JointState

    from ros_nodes.moving import joint_move

    live = SimpleNamespace(node=SimpleNamespace(create_subscription=lambda *_: None))
    watch = joint_move.Watch(live, "/node")
    watch.sent, ends = 0.0, time.monotonic()
    monkeypatch.setattr(joint_move, "SETTLE", 0.1)
    for level, text in lines:
        watch._on_log(Log(name="node", level=level, msg=text))
    watch.reference = watch.error = JointState(name=["j"], position=[0.0])
    content = {"joint_names": ["j"], "points": [{"positions": [1.0]}]}
    live.spin = lambda: None
    if said:
        with pytest.raises(DynError, match=f"/node: {said}"):
            joint_move._arrival(live, watch, "/node", content, ends, [])
    else:
        assert joint_move._arrival(live, watch, "/node", content, ends, []) == 1
        out = capsys.readouterr().out
        assert "; the node's last warning: stopped: x\n" in out


def test_a_stop_before_the_first_torque_is_told(ros, monkeypatch):
    """Its line is in the log, which is kept for late listeners; later ones count anew.

    A line on a motion before this one is no answer.
    """
    from rcl_interfaces.msg import Log

    from ros_nodes.moving import joint_move

    subscribed = {}
    node = SimpleNamespace(
        create_subscription=lambda kind, topic, take, _: subscribed.update(
            {topic: take}
        ),
        create_publisher=lambda *_: SimpleNamespace(get_subscription_count=lambda: 1),
    )

    def until(done, seconds, what=""):
        line = "envelope: joint2 is at 2.9 rad"
        subscribed["/rosout"](Log(name="arm.law", level=40, msg=line))
        subscribed["/rosout"](Log(name="arm.law", level=20, msg="trajectory dropped"))
        return bool(done())

    @contextmanager
    def connect(_):
        yield SimpleNamespace(node=node, require=lambda x: x, until=until)

    monkeypatch.setattr(joint_move, "connect", connect)
    asked = SimpleNamespace(node="/arm/law", timeout=0.1)
    said = "no reference;.*no stop holds, see dyn diagnostics /arm/law; .* warning: env"
    with pytest.raises(DynError, match=said):
        joint_move.run(asked)
    watch = joint_move.Watch(SimpleNamespace(node=node), "/arm/law")
    until(lambda: True, 0.0)
    assert (watch.answers, "envelope" in watch.warning) == ([], True)
    watch.begin()
    until(lambda: True, 0.0)
    assert (watch.answers, watch.warning) == ([], "")


@pytest.mark.parametrize(
    ("there", "status"), [((0, 6.2831853), 0), ((6.2831853, 0), 1)]
)
def test_whole_turns_are_left_out_of_turning_joints_alone(
    there, status, monkeypatch, capsys
):
    """A slider 6.28 m from the last point is not there, nor a joint with limits."""
    from sensor_msgs.msg import JointState

    from ros_nodes.moving import joint_move

    monkeypatch.setattr(joint_move, "SETTLE", 0.0)
    names = ["slider", "endless"]
    watch = SimpleNamespace(
        reference=JointState(name=names, position=[0.0, 0.0]),
        error=JointState(name=names, position=[0.0, 0.0]),
        turning=["endless"],
        moved=0.0,
        refused=lambda name: None,
        warning="",
    )
    live = SimpleNamespace(spin=lambda: None)
    content = {"joint_names": names, "points": [{"positions": list(there)}]}
    assert joint_move._arrival(live, watch, "/node", content, 0.0, []) == status
    assert ("not there: joint 'slider'" in capsys.readouterr().out) == bool(status)


def test_a_node_that_plans_is_led_to_postures_and_poses(
    start, environment, capfd, tmp_path
):
    """All joints are named: what is left out has a target that the node alone knows."""

    def run(*arguments):
        status = cli.main(["move", *arguments, "--timeout", "20"])
        said = capfd.readouterr()
        return status, said.out, said.err

    parameters = PARAMS.replace("arm7", "two_link").replace(
        "    initial_positions: [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]\n", ""
    )
    start(
        GRAPHS["demo"].nodes,
        parameters.replace(
            "cartesian\n    cartesian: {frame: tool}",
            "predictive\n    predictive: {knots: 25, posture_weight: [100.0]}",
        ),
    )
    to = ["--joints", "joint1=0.3", "joint2=-0.2", "--duration", "3"]
    deadline = time.monotonic() + 40
    status, out, err = run(*to)
    while status and time.monotonic() < deadline:  # the nodes are not active yet
        status, out, err = run(*to)
    assert status == 0, out + err
    assert "/computed_torque/target_posture; plans choose the way" in out
    assert "arrived: joint" in out
    status, _, err = run("--joints", "joint2=0.1", "--duration", "1")
    assert status == 1
    assert "--joints lacks joint1; valid for /computed_torque" in err
    assert "joint1, joint2, as on /computed_torque/target_posture" in err
    status, _, err = run("--joints", "joint1=0.1", "joint2=90", "--duration", "1")
    assert (status, "target_posture refused: " in err) == (1, True), err
    path = tmp_path / "motion.json"
    point = {"positions": [0.0, 0.0], "time_from_start": {"sec": 1}}
    path.write_text(
        json.dumps({"joint_names": ["joint1", "joint2"], "points": [point]})
    )
    status, _, err = run("--trajectory", str(path))
    assert (status, "follows no trajectory; valid: --joints" in err) == (1, True), err
    status, _, err = run("--to", "0.3", "0.1", "0.5")
    assert (status, "valid: predictive.frame set to a link, or" in err) == (1, True)


def test_the_tool_of_a_node_that_plans_is_led(start, environment, monkeypatch, capfd):
    """Along the path, near its end: plans rest where their costs balance.

    Out of reach, the command names the weights; after a stop, the node's refusal.
    """
    from ros_nodes.moving import move

    start(
        GRAPHS["demo"].nodes,
        PARAMS.replace(
            "cartesian\n    cartesian: {frame: tool}",
            "predictive\n    predictive:\n      {frame: tool, knots: 25,"
            " posture_weight: [0.0], effort_weight: [1.0e-6],"
            " pose_weight: [100.0, 100.0, 100.0, 1000.0, 1000.0, 1000.0]}",
        ),
    )
    to = ["--to", "0.4", "0.1", "0.5", "--speed", "20", "--timeout", "20"]
    deadline, status = time.monotonic() + 40, 1
    while status and time.monotonic() < deadline:  # the nodes are not active yet
        status = cli.main(["move", *to])
        said = capfd.readouterr()
    assert status == 0, said
    assert "arrived: " in said.out
    monkeypatch.setattr(move, "SETTLE", 0.5)
    assert cli.main(["move", "--to", "1.5", "0.1", "0.5", *to[4:]]) == 1
    out = capfd.readouterr().out
    assert "see dyn diagnostics /computed_torque\n" in out
    assert "a larger predictive.pose_weight, or a smaller posture_weight" in out
    monkeypatch.setattr(move, "SETTLE", 3.0)
    assert cli.main(["call", "/computed_torque/estop"]) == 0
    assert cli.main(["move", *to]) == 1
    said = capfd.readouterr()
    assert "/computed_torque: target_pose refused: " in said.err, said


def test_a_refused_target_comes_with_the_last_warning():
    """An arm that a pause had let fall was far from the reference; nothing said why."""
    from ros_nodes.moving import move

    def refused(name):
        raise DynError(f"{name}: target_pose refused: 0.2 m from the reference")

    pause = "; the node's last warning: stopped: the control loop paused for 0.15 s"
    watch = SimpleNamespace(refused=refused, warning=pause)
    with pytest.raises(
        DynError, match=r"reference; or to hold .* activate; the node's"
    ):
        move._check_answers(watch, "/law")
