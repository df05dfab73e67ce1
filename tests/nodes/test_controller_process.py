"""The controller as a process: what holds up its executor, and how it ends."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from ros_nodes.graphs import COMPUTED_TORQUE

pytestmark = [pytest.mark.ros, pytest.mark.timeout(120)]
START = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
NAMES = [f"joint{k}" for k in range(1, 8)]
STALL = 1.5  # [s]
TIMEOUT = 0.7  # of states [s]; a machine that others share may stop for a moment
PARAMS = f"""\
computed_torque:
  ros__parameters:
    robot_description_file: arm7
    inverse_dynamics.plugin_name: stalling
    state_timeout: {TIMEOUT}
    on_shutdown: ramp
    stop_time: 2.0
    use_sim_time: true
    diagnostic_updater.period: 0.1
"""
PLUGIN = f'''"""A solver that stalls once, when a file is there."""
import os
import time

import dyn_core as dyn
from dyn_core.authoring import NumpySolver, hookimpl


class Stalling(NumpySolver):
    """rnea, late."""

    name, signature = "stalling", dyn.problems.INVERSE_DYNAMICS

    def solve(self, model, q, qd, qdd, f_ext):
        """Return rnea."""
        if os.path.exists(os.environ["STALL_FILE"]):
            os.remove(os.environ["STALL_FILE"])
            time.sleep({STALL})
        if not hasattr(self, "exact"):
            self.exact = dyn.solver("rnea").build(model, engine="graph")
        return self.exact(q, qd, qdd)


@hookimpl
def dyn_solvers():
    """Offer it."""
    return [Stalling()]
'''


def _package(folder):
    """Install the plugin in a folder; return the environment that finds it."""
    (folder / "stalling_dyn.py").write_text(PLUGIN)
    info = folder / "stalling_dyn-1.0.dist-info"
    info.mkdir()
    name = "Metadata-Version: 2.1\nName: stalling_dyn\nVersion: 1\n"
    (info / "METADATA").write_text(name)
    (info / "entry_points.txt").write_text("[dyn_core]\nstalling = stalling_dyn\n")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "STALL_FILE": str(folder / "stall")}


def _long_trajectory(count):
    """Return a serialized trajectory, so that sending it takes no time."""
    from rclpy.serialization import serialize_message
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    message = JointTrajectory(joint_names=NAMES)
    for k in range(count):
        point = JointTrajectoryPoint(positions=START)
        point.time_from_start.nanosec = (k + 1) * 10_000
        message.points.append(point)
    return serialize_message(message)


class Robot:
    """A robot at rest, over best-effort messages, that hears efforts and diagnostics."""

    def __init__(self, ros):
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.node import Node
        from rclpy.qos import QoSProfile, ReliabilityPolicy
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        self.node, self.efforts, self.said, self.count = Node("robot"), [], "", 0
        listen, speak = self.node.create_subscription, self.node.create_publisher
        commands = "effort_controller/commands"
        listen(Float64MultiArray, commands, self._on_effort, 100)
        listen(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        best = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.states = speak(JointState, "joint_states", best)
        self.message = JointState(name=NAMES, position=START, velocity=[0.0] * 7)
        self.node.create_timer(0.004, lambda: self.states.publish(self.message))

    def _on_effort(self, message):
        self.efforts.append((time.monotonic(), np.array(message.data)))

    def _on_diagnostics(self, message):
        self.said, self.count = message.status[0].message, self.count + 1

    def since(self, t):
        """Return the efforts that came after a time, and their times."""
        return [row for row in self.efforts if row[0] > t]

    def drives(self, count=20):
        """Whether the last efforts were none of zero."""
        last = self.efforts[-count:]
        return len(last) == count and all(tau.any() for _, tau in last)


@pytest.fixture
def robot(ros):
    """Return a Robot."""
    made = Robot(ros)
    yield made
    made.node.destroy_node()


def test_what_holds_up_the_executor_and_how_it_ends(start, robot, until, tmp_path):
    """A solver that stalls, without a clock: zeros meanwhile, then torque again. A
    trajectory that is too long: a sentence, and the torque goes on. All parameters can
    be read at once. At a deactivation and at the end a ramp, then zero: neither is a
    hang, however long it lasts."""
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from rcl_interfaces.srv import GetParameters, ListParameters
    from trajectory_msgs.msg import JointTrajectory

    data = _long_trajectory(12_000)
    extra = _package(tmp_path)
    process = start([COMPUTED_TORQUE], PARAMS, extra=extra)["computed_torque"]
    node = robot.node
    until(robot.drives, node, expected="torque", detail=lambda: process.output)
    until(lambda: robot.said == "holding", node, detail=lambda: robot.said)

    stalled = time.monotonic()
    (tmp_path / "stall").touch()
    until(lambda: any(not tau.any() for _, tau in robot.since(stalled)), node)
    zero = next(t for t, tau in robot.since(stalled) if not tau.any())
    assert TIMEOUT <= zero - stalled < STALL - 0.3
    until(robot.drives, node, expected="torque after the stall")

    sender = node.create_publisher(
        JointTrajectory, "computed_torque/joint_trajectory", 10
    )
    until(lambda: sender.get_subscription_count() > 0, node)
    sent = time.monotonic()
    sender.publish(data)
    until(lambda: "12000 points; valid: at most 10000" in process.output, node)
    until(lambda: len(robot.since(sent)) > 50, node)
    assert all(tau.any() for _, tau in robot.since(sent))

    def ask(kind, name, **fields):
        client = node.create_client(kind, f"computed_torque/{name}")
        until(client.service_is_ready, node, expected=name)
        future = client.call_async(kind.Request(**fields))
        until(future.done, node, expected=name)
        return future.result()

    names = ask(ListParameters, "list_parameters").result.names
    assert len(ask(GetParameters, "get_parameters", names=names).values) == len(names)

    for number in (4, 3):  # deactivate, activate
        transition = Transition(id=number)
        assert ask(ChangeState, "change_state", transition=transition).success
    until(robot.drives, node, expected="torque after the activation")
    assert process.output.count("the executor has not answered") == 1  # the stall
    assert "is still in solve (stalling_dyn.py, line" in process.output

    ended = time.monotonic()
    process.popen.send_signal(signal.SIGTERM)
    until(lambda: process.popen.poll() is not None, node, expected="the end")
    until(lambda: not robot.efforts[-1][1].any(), node, expected="the last zero")
    assert process.popen.returncode == 0
    carried = [t for t, tau in robot.since(ended) if tau.any()]
    assert carried[-1] - ended > 1.6


FAILING = """\
computed_torque:
  ros__parameters:
    robot_description_file: arm7
    inverse_dynamics.plugin_name: fails_by_KIND
    state_timeout: 0.1
    diagnostic_updater.period: 30.0
"""
WAIT = "the executor has not answered for 0.1"


def _begin_failing(start, robot, until, kind):
    """Return the process of a controller whose solver has begun to fail, and when."""
    entry = replace(COMPUTED_TORQUE, module="ros_nodes.tools.faulty_controller")
    params = FAILING.replace("KIND", kind)
    process = start([entry], params)["computed_torque"]
    until(robot.drives, robot.node, expected="torque", detail=lambda: process.output)
    failed = time.monotonic()
    process.popen.send_signal(signal.SIGUSR1)
    until(lambda: any(not tau.any() for _, tau in robot.since(failed)), robot.node)
    return process, failed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_solver_that_hangs(start, robot, until, number):
    """Zero, one line of the log and one of /diagnostics; a signal ends the process."""
    process, failed = _begin_failing(start, robot, until, "hangs")
    zero = next(t for t, tau in robot.since(failed) if not tau.any())
    assert zero - failed < 1.0
    until(lambda: WAIT in process.output and WAIT in robot.said, robot.node,
          expected="a sentence", detail=lambda: f"{robot.said} {process.output}")  # fmt: skip
    assert (
        "ComputedTorqueNode._on_event is still in _hangs (faulty_controller.py, "
        in (robot.said)
    )
    assert "on_stale (zero) is in force" in process.output
    count = robot.count
    until(lambda: time.monotonic() - failed > 1.0, robot.node)
    assert process.output.count("the executor has not answered") == 1
    assert robot.count == count
    signaled = time.monotonic()
    process.popen.send_signal(number)
    until(lambda: process.popen.poll() is not None, robot.node, expected="the end")
    assert time.monotonic() - signaled < 3.0
    assert process.popen.returncode == 1
    until(lambda: "the executor does not come back" in process.output, robot.node,
          detail=lambda: process.output)  # fmt: skip
    assert not any(tau.any() for _, tau in robot.since(zero))
    assert robot.since(signaled), "no last zero"


def test_a_solver_that_comes_back(start, robot, until):
    """A line when it does, and the end of the process is an ordinary one."""
    process, _ = _begin_failing(start, robot, until, "stalls")
    until(lambda: "the executor answers again, after" in process.output, robot.node,
          expected="a sentence", detail=lambda: process.output)  # fmt: skip
    process.popen.send_signal(signal.SIGTERM)
    until(lambda: process.popen.poll() is not None, robot.node, expected="the end")
    assert process.popen.returncode == 0


def test_a_constructor_that_hangs_can_be_ended(tmp_path):
    """Before there is a node, too."""
    code = (
        "import ctypes, os, signal, threading\nfrom ros_nodes.running import runtime\n"
        + (
            "def make():\n"
            "    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()\n"
            "    while True:\n        ctypes.CDLL(None).sleep(1000)\n"
            "raise SystemExit(runtime.run(make))\n"
        )
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "ROS_LOG_DIR": str(tmp_path)},
    )
    assert done.returncode == 1 and time.monotonic() - started < 20.0
    assert "ended 1.5 s after SIGTERM: the executor does not come back" in done.stderr
    assert "it is in make (<string>, line" in done.stderr


CYCLE = 4, 2, 1, 3  # deactivate, cleanup, configure, activate
PLAIN = """\
computed_torque:
  ros__parameters:
    robot_description_file: arm7
    diagnostic_updater.period: 0.05
    publish_rate: 100.0
"""


def _pipelined(start, robot, until, count):
    """Send transitions from eight clients without waiting; return all answers.

    Args:
        count: Number of requests.
    """
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from rclpy.qos import qos_profile_parameters

    process = start([COMPUTED_TORQUE], PLAIN)["computed_torque"]
    node, name = robot.node, "computed_torque/change_state"
    clients = [
        node.create_client(ChangeState, name, qos_profile=qos_profile_parameters)
        for _ in range(8)
    ]
    until(
        lambda: all(x.service_is_ready() for x in clients),
        node,
        expected=name,
        detail=lambda: str([x.service_is_ready() for x in clients]) + process.output,
    )
    until(robot.drives, node, expected="torque", detail=lambda: process.output)

    def ask(k):
        request = ChangeState.Request(transition=Transition(id=CYCLE[k % 4]))
        return clients[k // 4 % 8].call_async(request)

    answers = []
    for first in range(0, count, 400):  # as many as the queues of the node hold
        asked = [ask(k) for k in range(first, min(first + 400, count))]
        until(lambda a=asked: all(x.done() for x in a) or process.popen.poll() is not None,
              node, expected="answers", patience=240.0,
              detail=lambda a=asked: f"{sum(x.done() for x in a)} of {len(a)}")  # fmt: skip
        assert process.popen.poll() is None, process.output[-2000:]
        answers += [x.result().success for x in asked]
    for number in CYCLE:
        last = clients[0].call_async(
            ChangeState.Request(transition=Transition(id=number))
        )
        until(last.done, node, expected="the last answers")
    since = time.monotonic()
    until(lambda: robot.since(since) and robot.drives(), node, expected="torque again")
    assert "Warning" not in process.output
    return answers


def test_transitions_that_do_not_wait_for_each_other(start, robot, until):
    """Each of 400 requests of eight clients is answered, and the node drives on."""
    answers = _pipelined(start, robot, until, 400)
    assert len(answers) == 400 and sum(answers) > 100


@pytest.mark.full
@pytest.mark.timeout(1500)
def test_ten_thousand_transitions(start, robot, until):
    """Some minutes: 2500 configurations, each of which reads the robot."""
    answers = _pipelined(start, robot, until, 10_000)
    assert len(answers) == 10_000 and sum(answers) > 2500
