"""`dyn view --live`: joint states that come in, and the command over DDS on loopback."""

import signal
import subprocess
import sys
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from ros_nodes.live_view.view_follower import JointFollower


def _message(name=(), position=(), effort=()):
    return SimpleNamespace(
        name=list(name), position=list(position), effort=list(effort)
    )


def test_joint_states_become_a_position():
    """By name, in any order; foreign joints, gaps and numbers that are not finite change nothing."""
    model = dyn.load("arm7")
    names = model.joint_names
    follower = JointFollower(model, np.zeros(model.nq))
    follower.take(_message(["wheel"], [7.0]))
    assert not follower.changed and follower.count == 0
    assert follower.note == (
        "joint states have wheel; valid: joints of the robot, joint1, joint2, joint3,"
        " joint4, joint5, joint6, joint7"
    )
    follower.note = ""  # it is said once
    follower.take(_message(["wheel"], [7.0]))
    assert not follower.note
    follower.take(_message([names[2], "wheel", names[0]], [0.2, 9.0, 0.1]))
    assert follower.changed and follower.count == 1
    assert follower.shares is None
    follower.take(_message([names[2], names[1]], [np.nan, 0.5], [10.0, np.inf]))
    assert follower.q == pytest.approx([0.1, 0.5, 0.2, 0, 0, 0, 0])
    expected = np.zeros(7)
    expected[2] = 10.0 / model.effort_limit[2]
    assert follower.shares == pytest.approx(expected)
    follower.take(_message([names[3]]))
    assert follower.q[3] == 0.0


def test_it_meets_nodes_of_this_machine_alone_unless_asked(monkeypatch):
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    pytest.importorskip("viser", reason="viser is not installed (extra view)")
    from ros_nodes.live_view import view_live

    for name in view_live.CHOSEN:
        monkeypatch.delenv(name, raising=False)
    view_live.keep_to_this_machine(network=True)
    assert view_live.RANGE not in view_live.os.environ
    view_live.keep_to_this_machine(network=False)
    assert view_live.os.environ[view_live.RANGE] == "LOCALHOST"
    monkeypatch.setenv(view_live.RANGE, "SUBNET")
    view_live.keep_to_this_machine(network=False)
    assert view_live.os.environ[view_live.RANGE] == "SUBNET"


@pytest.mark.ros
@pytest.mark.timeout(180)
def test_the_command_follows_joint_states(environment, ros, until):
    """It serves a page, counts what came on the topic, and Ctrl-C ends it with success."""
    pytest.importorskip("viser", reason="viser is not installed (extra view)")
    from rclpy.node import Node
    from sensor_msgs.msg import JointState

    command = [
        sys.executable,
        "-m",
        "dyn_core.cli",
        "view",
        "arm7",
        "--live",
        "--port",
        "0",
    ]
    options = ["--joint-states", "/arm/joint_states"]
    process = subprocess.Popen(
        [*command, *options],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    node = Node("source")
    node.create_publisher(JointState, "/left/joint_states", 10)
    sent = JointState(name=list(dyn.load("arm7").joint_names), position=[0.1] * 7)
    try:
        line = process.stdout.readline()
        assert line.startswith("arm7: http://127.0.0.1:"), process.stderr.read()
        for waits in process.stderr:  # before anything is sent
            assert waits.startswith(
                "dyn: waiting for joint states on /arm/joint_states;"
            )
            if waits.endswith("; there are: /left/joint_states\n"):
                break  # a node that was there before is seen after up to 3 s
        publisher = node.create_publisher(JointState, "/arm/joint_states", 10)
        node.create_timer(0.02, lambda: publisher.publish(sent))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(line.split()[1], timeout=30) as page:
            assert page.status == 200
        until(publisher.get_subscription_count, node, expected="a subscription")
        count = []
        node.create_timer(0.02, lambda: count.append(1))
        until(lambda: len(count) > 50, node, expected="messages")
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
        assert int(out.splitlines()[-1].split()[0]) > 5
        assert "Traceback" not in error
    finally:
        process.kill()
        process.wait()
        node.destroy_node()
