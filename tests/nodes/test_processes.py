"""Two real processes over DDS on loopback: each fault gets its words, no wrong torque."""

import argparse
import io
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

from dyn_core import cli, robots
from dyn_core.errors import SettingError
from dyn_core.signals import note_signals
from ros_nodes import start_commands as commands
from ros_nodes.demo import demo_command as demo
from ros_nodes.graphs import COMPUTED_TORQUE, GRAPHS, SIMULATOR, NodeEntry
from ros_nodes.processes import Process, Processes, private_environment
from ros_nodes.running import runtime

pytestmark = [pytest.mark.ros, pytest.mark.timeout(120)]
START = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
NAMES = [f"joint{k}" for k in range(1, 8)]


def _params(sim="", control=""):
    gains = "".join(f"    gains.{n}.p: 400.0\n    gains.{n}.d: 40.0\n" for n in NAMES)
    base = f"""\
simulator:
  ros__parameters:
    robot_description_file: arm7
    update_rate: 250
    initial_positions: {START}
    diagnostic_updater.period: 0.1
{textwrap.indent(textwrap.dedent(sim), "    ")}
computed_torque:
  ros__parameters:
    robot_description_file: arm7
    diagnostic_updater.period: 0.1
    publish_rate: 100.0
{gains}{textwrap.indent(textwrap.dedent(control), "    ")}
"""
    return base


class Probe:
    """A node that listens and speaks for a test."""

    def __init__(self, ros):
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.node import Node
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        self.node = Node("probe")
        self.efforts, self.states, self.errors, self.said = [], [], [], {}
        listen, speak = self.node.create_subscription, self.node.create_publisher
        listen(Float64MultiArray, "effort_controller/commands", self._on_effort, 10)
        listen(JointState, "joint_states", self.states.append, 10)
        listen(JointState, "computed_torque/error", self._on_error, 10)
        listen(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self.to_controller = speak(JointState, "joint_states", 1)
        self.to_simulator = speak(Float64MultiArray, "effort_controller/commands", 1)

    def _on_effort(self, message):
        self.efforts.append((time.monotonic(), np.array(message.data)))

    def _on_error(self, message):
        self.errors.append(np.array(message.position))

    def _on_diagnostics(self, message):
        for status in message.status:
            who = status.name.split(":")[0]
            values = {v.key: v.value for v in status.values}
            self.said[who] = (status.level, status.message, values)

    def value(self, who, key, default="0"):
        """Return a diagnostic value of a node."""
        return self.said.get(who, (b"", "", {}))[2].get(key, default)

    def state(self, position=START, names=NAMES, velocity=None):
        """Make a JointState now."""
        from sensor_msgs.msg import JointState

        message = JointState(name=list(names), position=[float(x) for x in position])
        velocity = [0.0] * len(position) if velocity is None else velocity
        message.velocity = [float(x) for x in velocity]
        message.header.stamp = self.node.get_clock().now().to_msg()
        return message


@pytest.fixture
def probe(ros):
    """Return a Probe."""
    made = Probe(ros)
    yield made
    made.node.destroy_node()


@pytest.fixture
def feed(probe, until):
    """Return a function that repeats a joint state until something is so."""

    def send(make, done, expected, patience=20.0):
        timer = probe.node.create_timer(
            0.004, lambda: probe.to_controller.publish(make())
        )
        try:
            until(done, probe.node, expected=expected, patience=patience,
                  detail=lambda: str(probe.said))  # fmt: skip
        finally:
            probe.node.destroy_timer(timer)

    return send


def _send_trajectory(probe, until, offset=0.3, duration=1.5):
    from rclpy.duration import Duration
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    sender = probe.node.create_publisher(
        JointTrajectory, "computed_torque/joint_trajectory", 10
    )
    until(
        lambda: sender.get_subscription_count() > 0, probe.node, expected="a subscriber"
    )
    order = list(reversed(range(7)))
    message = JointTrajectory(joint_names=[NAMES[k] for k in order])
    for part, shift in ((0.5, offset), (1.0, 0.0)):
        point = JointTrajectoryPoint(positions=[START[k] + shift for k in order])
        point.velocities = point.accelerations = [0.0] * 7
        point.time_from_start = Duration(seconds=part * duration).to_msg()
        message.points.append(point)
    sender.publish(message)


def _span(states):
    """Return how far each joint has moved [rad]."""
    return np.ptp([np.array(m.position) for m in states], axis=0)


def test_the_arm_tracks_a_trajectory_with_other_solvers(start, probe, until):
    """Tracking error below 0.05 rad; a line of YAML swaps the solver.

    tests/commands/test_cli.py::test_demo_over_ros tracks with the solvers of the shipped file.
    Brakes hold the arm until the first effort, as in the shipped file; a machine that
    stops a process for a while may spoil a tenth of the samples.
    """
    sim = "forward_dynamics.plugin_name: dense\nstep.plugin_name: rk4\nbrakes: true"
    params = _params(sim, "inverse_dynamics.plugin_name: rnea_spatial")
    nodes = start(GRAPHS["demo"].nodes, params)
    until(lambda: int(probe.value("simulator", "answered")) > 20, probe.node,
          expected="the loop", detail=lambda: [p.output for p in nodes.all])  # fmt: skip
    probe.errors.clear()
    until(lambda: probe.errors and np.abs(probe.errors[-1]).max() < 5e-3,
          probe.node, expected="the arm to hold")  # fmt: skip
    probe.errors.clear()
    probe.states.clear()
    _send_trajectory(probe, until)
    started = time.monotonic()
    until(lambda: time.monotonic() - started > 2.0 and _span(probe.states).min() > 0.25,
          probe.node, expected="the trajectory")  # fmt: skip
    assert len(probe.errors) > 50
    assert np.quantile(np.abs(probe.errors).max(axis=1), 0.9) < 0.05
    assert probe.value("simulator", "forward dynamics") == "dense"
    assert probe.value("simulator", "step") == "rk4"
    assert probe.value("computed_torque", "inverse dynamics") == "rnea_spatial"
    assert [p.end() for p in nodes.all] == [0, 0]


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def ends_with_zero(probe, feed, until):
    """Return a function that ends a controller under torque by a signal.

    The last command is zero, and the process ends by itself with 0.
    """

    def end(controller, number):
        feed(probe.state, lambda: np.abs(probe.efforts[-1][1]).max() > 1, "torque")
        controller.popen.send_signal(number)
        until(lambda: controller.popen.poll() is not None, probe.node)
        until(lambda: not probe.efforts[-1][1].any(), probe.node, expected="a zero")
        assert controller.popen.returncode == 0

    return end


@pytest.fixture
def up(environment, tmp_path):
    """Return a function that runs `dyn up demo`; it gives the process and its nodes."""
    path = tmp_path / "up.yaml"
    path.write_text(_params())
    command = [sys.executable, "-m", "dyn_core.cli", "up", "demo", "--params", path]
    log = (tmp_path / "up.log").open("w+")
    parent = subprocess.Popen(
        command, env=environment, stdout=log, stderr=log, start_new_session=True
    )
    nodes = []

    def begin():
        listed = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text()
        nodes[:] = [os.pidfd_open(int(pid)) for pid in listed.split()]
        return parent, nodes

    yield begin
    parent.kill()
    parent.wait()
    for node in nodes:
        if not _ended(node):
            signal.pidfd_send_signal(node, signal.SIGKILL)
        os.close(node)
    log.close()


def _ended(node):
    """Whether the process of a pidfd has ended, whoever its parent is now."""
    return bool(select.select([node], [], [], 0)[0])


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_the_nodes_end_with_dyn_up(up, probe, until, number, tmp_path):
    """However it ends, its nodes end, and the last effort is zero.

    SIGINT ends it in test_guard.py; SIGTERM is noted like the others, see below.
    """
    until(lambda: len(probe.efforts) > 20 and probe.efforts[-1][1].any(), probe.node,
          expected="torque")  # fmt: skip
    parent, nodes = up()
    assert len(nodes) == 2
    until(lambda: "ready: simulator, computed_torque" in (tmp_path / "up.log").read_text(),
          probe.node, expected="the line of dyn up")  # fmt: skip
    assert not any(_ended(node) for node in nodes)
    parent.send_signal(number)
    until(lambda: all(_ended(node) for node in nodes), probe.node, patience=15,
          expected="the end of the nodes")  # fmt: skip
    until(lambda: not probe.efforts[-1][1].any(), probe.node, expected="the last zero")
    wanted = -signal.SIGKILL if number == signal.SIGKILL else 0
    assert parent.wait(10) == wanted, (tmp_path / "up.log").read_text()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_hangup_that_is_ignored_stays_ignored(ignored):
    """As nohup asks for; otherwise it is noted like the other signals."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
        stop = note_signals(*SIGNALS)
        for number in SIGNALS:
            signal.raise_signal(number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert stop == (SIGNALS[:2] if ignored else SIGNALS)


def test_output_is_read_on_where_the_terminal_is_gone(monkeypatch):
    """Otherwise a process that says much would stand with its pipe full."""

    tries = []

    class Gone:
        def write(self, text):
            tries.append(text)
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stdout", Gone())
    process = Process(NodeEntry("this", "this"), [], os.environ)
    assert process.popen.wait(30) == 0
    process.reader.join(10)
    assert len(process.lines) > 20
    assert len(tries) == 1
    assert process.end() == 0


@pytest.mark.parametrize("error", [UnicodeEncodeError("ascii", "°", 0, 1, "x"), None])
def test_output_that_is_no_text_is_read_on(monkeypatch, tmp_path, error):
    """Bytes that no encoding has; a standard output that cannot show them, or is closed."""
    (tmp_path / "says_bytes.py").write_text(
        "import sys\nfor k in range(9):\n    sys.stdout.buffer.write(b'\\xff\\n')\n"
    )

    class Narrow:
        def write(self, text):
            raise error or ValueError("I/O operation on closed file.")

    monkeypatch.setattr(sys, "stdout", Narrow())
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = Process(NodeEntry("says", "says_bytes"), [], environment)
    assert process.popen.wait(30) == 0
    process.reader.join(10)
    assert process.lines == ["\\xff"] * 9
    assert process.end() == 0


class Stubborn:
    """A child that ends by SIGKILL only; it records the signals."""

    stdin, returncode = None, None

    def __init__(self):
        self.signals = []

    def poll(self):
        return self.returncode

    def send_signal(self, number):
        self.signals.append(number)

    def wait(self, patience):
        if self.signals[-1] != signal.SIGKILL:
            raise subprocess.TimeoutExpired("stubborn", patience)
        self.returncode = -signal.SIGKILL


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (signal.SIGINT, [signal.SIGTERM, signal.SIGKILL]),
        (signal.SIGTERM, [signal.SIGKILL]),
        (signal.SIGHUP, [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]),
        (signal.SIGKILL, []),
    ],
)
def test_a_process_that_ignores_signals_is_killed(first, then):
    """Whatever the first signal is, each next one is harder, and the last is SIGKILL."""
    process = object.__new__(Process)
    process.popen, process.reader = Stubborn(), MagicMock()
    assert process.end(first) == -signal.SIGKILL
    assert process.popen.signals == [first, *then]


def test_a_node_that_still_imports_is_ended_without_a_traceback(tmp_path):
    """A Ctrl-C while the nodes started printed the KeyboardInterrupt of an import."""
    (tmp_path / "slow_node.py").write_text(
        "import time\nprint('imports', flush=True)\ntime.sleep(60)\n"
    )
    entry = NodeEntry("slow_node", "slow_node", robot="")
    place = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with Processes([entry], "", place, show=False) as processes:
        slow = processes["slow_node"]
        deadline = time.monotonic() + 30
        while "imports" not in slow.output and time.monotonic() < deadline:
            time.sleep(0.02)
        assert processes.end() == [-signal.SIGTERM]
    assert slow.output == "imports"


def test_an_unknown_process_is_refused_with_the_names():
    """It was a StopIteration, which ends a generator without a word."""
    processes = Processes([], "", os.environ)
    processes.all = [SimpleNamespace(name="simulator"), SimpleNamespace(name="guard")]
    assert processes["guard"].name == "guard"
    with pytest.raises(SettingError, match="'gard'; did you mean 'guard'.*simulator"):
        processes["gard"]


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_an_executor_is_made_without_a_standard_error(ros, monkeypatch, stream):
    """As in a notebook, whose streams are no files."""
    from rclpy.executors import SingleThreadedExecutor

    monkeypatch.setattr(sys, "stderr", stream)
    executor = runtime.make_executor()
    assert isinstance(executor, SingleThreadedExecutor)
    executor.shutdown(timeout_sec=1.0)


def test_a_node_without_ros_ends_with_status_one(monkeypatch, capsys):
    """It says what to install; 2 would be a wrong command line."""
    monkeypatch.setattr(runtime, "note_signals", lambda *_: [])
    monkeypatch.setitem(sys.modules, "rclpy", None)
    assert runtime.run(lambda: None) == 1
    assert "pip install 'dyn_ros[ros]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "codes", "wanted"), [(0, [0, 0], 0), (0, [0, -6], 1), (1, [0, 0], 1)]
)
def test_the_status_of_dyn_up(monkeypatch, status, codes, wanted):
    """0 where the nodes end well after a signal; 1 where one fails or ends before."""
    nodes = MagicMock()
    nodes.__enter__.return_value = nodes
    nodes.wait.return_value, nodes.end.return_value = status, codes
    monkeypatch.setattr(commands, "Processes", lambda *_: nodes)
    monkeypatch.setattr(commands, "ros_fault", lambda: None)
    parser = argparse.ArgumentParser()
    commands.add_up(parser)
    assert commands._up(parser.parse_args(["demo"])) == wanted


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("gains: {jiont1: {p: 30.0}}", "mine.yaml: computed_torque: .*gains.joint1.p"),
        ("robot_description_file: nowhere.urdf", "nowhere.urdf"),
        (
            "inverse_dynamics.plugin_name: rnaa",
            "mine.yaml: computed_torque: inverse_dynamics.plugin_name: .*did you mean"
            " 'rnea'.*valid for inverse_dynamics: closed_form, rnea",
        ),
    ],
)
@pytest.mark.parametrize("command", ["up demo", "demo"])
def test_what_a_file_says_wrongly_is_refused_before_a_start(
    row, message, command, monkeypatch, tmp_path, capsys
):
    """A joint, a robot and a solver; nodes would say it after they have started."""
    monkeypatch.setattr(commands, "Processes", lambda *_: pytest.fail("it starts"))
    monkeypatch.setattr(demo, "plan_waypoints", lambda *_: pytest.fail("it starts"))
    monkeypatch.setattr(commands, "ros_fault", lambda: None)
    monkeypatch.chdir(tmp_path)
    rows = {"robot_description_file": "arm7", **dict([row.split(": ", 1)])}
    text = "\n".join(f"    {key}: {value}" for key, value in rows.items())
    Path("mine.yaml").write_text(
        f"/**/simulator:\n  ros__parameters: {{robot_description_file: arm7}}\n"
        f"computed_torque:\n  ros__parameters:\n{text}\n"
    )
    if "robot_description" in row and command == "demo":
        Path("mine.yaml").write_text(f"/**:\n  ros__parameters:\n{text}\n")
    assert cli.main([*command.split(), "--params", "mine.yaml"]) == 1
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize("mass", [3.0, 900.0])
def test_dyn_up_warns_of_a_robot_with_findings(mass, monkeypatch, tmp_path, capsys):
    """In one line, which names the command that says more."""
    nodes = MagicMock()
    nodes.__enter__.return_value = nodes
    nodes.wait.return_value, nodes.end.return_value = 0, [0, 0]
    monkeypatch.setattr(commands, "Processes", lambda *_: nodes)
    monkeypatch.setattr(commands, "ros_fault", lambda: None)
    text = (Path(robots.__file__).parent / "arm7.urdf").read_text("utf-8")
    head, link, tail = text.partition('<link name="link4">')
    tail = re.sub('<mass value="[^"]*"', f'<mass value="{mass}"', tail, count=1)
    (tmp_path / "heavy.urdf").write_text(head + link + tail)
    assert cli.main(["up", "demo", "--robot", str(tmp_path / "heavy.urdf")]) == 0
    said = capsys.readouterr().err
    line = (
        "dyn up: warning: robot 'arm7': Radius of gyration does not fit the robot; Too"
        f" weak for its own weight: dyn doctor {tmp_path / 'heavy.urdf'} says more\n"
    )
    assert said == line * (mass > 100)


def test_dyn_up_says_once_that_all_nodes_are_active(monkeypatch, capsys):
    """Not before the last one is."""
    processes, stop, turns = Processes([], "", os.environ), [], []
    runs = SimpleNamespace(poll=lambda: None)
    processes.all = [
        SimpleNamespace(name=name, active=name == "guard", popen=runs)
        for name in ("guard", "simulator")
    ]

    def sleep(_):
        turns.append(capsys.readouterr().out)
        processes.all[1].active = len(turns) >= 2
        stop.extend([2] * (len(turns) == 5))

    monkeypatch.setattr("time.sleep", sleep)
    assert processes.wait(stop) == 0
    assert turns == ["", "", "ready: guard, simulator; Ctrl-C ends them\n", "", ""]


PLUGIN = '''"""A foreign solver for a node's YAML."""
from dyn_core.problems import INVERSE_DYNAMICS
from dyn_core.authoring import TracedSolver, hookimpl
from dyn_plugins.dynamics.rnea import rnea


@hookimpl
def dyn_solvers():
    """Offer it."""
    return [TracedSolver("foreign_rnea", INVERSE_DYNAMICS, rnea)]
'''


@pytest.fixture
def foreign(tmp_path):
    """Return the PYTHONPATH of a package with one entry point, the solver above."""
    (tmp_path / "foreign_dyn.py").write_text(PLUGIN)
    info = tmp_path / "foreign_dyn-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: foreign_dyn\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text("[dyn_core]\nforeign = foreign_dyn\n")
    return os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])


def test_bad_states_never_become_torque(
    start, probe, feed, until, foreign, ends_with_zero
):
    """Shuffled and extra joints serve; NaN, empty, short and missing are refused.

    The solver is that of a foreign package, used by a line of YAML.
    """
    params = _params(control="inverse_dynamics.plugin_name: foreign_rnea")
    nodes = start([COMPUTED_TORQUE], params, extra={"PYTHONPATH": foreign})
    feed(probe.state, lambda: len(probe.efforts) > 10 and probe.value(
        "computed_torque", "inverse dynamics") == "foreign_rnea", "torque")  # fmt: skip
    wanted = probe.efforts[-1][1]

    def shuffled():
        order = [3, 0, 6, 5, 1, 4, 2]
        names = ["gripper", *(NAMES[k] for k in order)]
        return probe.state([0.04, *(START[k] for k in order)], names)

    probe.efforts.clear()
    feed(shuffled, lambda: len(probe.efforts) > 10, "torque from shuffled joints")
    np.testing.assert_allclose(probe.efforts[-1][1], wanted, atol=1e-9)

    bad = {
        "position of joint4 is not finite":
            lambda: probe.state([*START[:3], float("nan"), *START[4:]]),
        "velocity of joint2 is not finite":
            lambda: probe.state(velocity=[0, float("inf"), 0, 0, 0, 0, 0]),
        "velocity: wanted": lambda: probe.state(velocity=[]),
        "joint 'joint7': wanted one entry": lambda: probe.state(START[:6], NAMES[:6]),
        "position: wanted 7": lambda: probe.state(START[:5]),
    }  # fmt: skip
    output = nodes["computed_torque"]
    for expected, make in bad.items():
        before = len(probe.efforts)
        said = int(probe.value("computed_torque", "refused: joint state refused"))
        feed(make, lambda said=said: int(probe.value(
            "computed_torque", "refused: joint state refused")) > said + 5, expected)  # fmt: skip
        for _, tau in probe.efforts[before:]:
            assert not tau.any() or np.allclose(tau, wanted, atol=1e-9)
        feed(probe.state, lambda: probe.efforts[-1][1].any(), "torque again")
    until(lambda: all(w in output.output for w in bad), probe.node, patience=10,
          expected="all words", detail=lambda: output.output)  # fmt: skip
    ends_with_zero(output, signal.SIGTERM)


def test_silence_becomes_zero_torque_without_a_clock(start, probe, feed, until):
    """When states stop, zero is sent within the timeout, and diagnostics say why.

    The watchdog and the diagnostics do not wait for a /clock that stands: the node is
    paused, which is no error.
    """
    start([COMPUTED_TORQUE], _params(control="use_sim_time: true\nstate_timeout: 0.1"))
    feed(probe.state, lambda: len(probe.efforts) > 10, "torque")
    stopped = time.monotonic()
    assert probe.efforts[-1][1].any()
    until(lambda: not probe.efforts[-1][1].any(), probe.node, expected="zero")
    zero = next(t for t, tau in probe.efforts if t > stopped and not tau.any())
    assert zero - stopped < 0.4
    said = "paused: /clock stands"
    until(lambda: probe.said.get("computed_torque", (b"", ""))[1].startswith(said),
          probe.node, expected="the diagnostics", patience=5)  # fmt: skip
    assert probe.said["computed_torque"][0] == b"\x01"


def test_the_simulator_zeroes_stale_and_refuses_bad_efforts(start, probe, until):
    """Wrong size and NaN are refused with a reason; old commands become zero effort.

    It moves by its own time, also where /clock stands.
    """
    from std_msgs.msg import Float64MultiArray

    nodes = start([SIMULATOR], _params(sim="command_timeout: 0.2\nuse_sim_time: true"))
    until(lambda: len(probe.states) > 10, probe.node, expected="joint states")
    assert list(probe.states[-1].name) == NAMES
    for data, key in (([1.0] * 6, "command of wrong size"),
                      ([float("nan")] * 7, "command not finite")):  # fmt: skip
        probe.to_simulator.publish(Float64MultiArray(data=data))
        until(lambda key=key: int(probe.value("simulator", f"refused: {key}")) == 1,
              probe.node, expected=key)  # fmt: skip
        assert not np.array(probe.states[-1].effort).any()
    probe.to_simulator.publish(Float64MultiArray(data=[3.0] * 7))
    until(
        lambda: np.array(probe.states[-1].effort).any(), probe.node, expected="effort"
    )
    until(
        lambda: not np.array(probe.states[-1].effort).any(), probe.node, expected="zero"
    )
    assert int(probe.value("simulator", "refused: command stale", "1")) >= 1
    assert "wrong size" in nodes["simulator"].output
    assert "not finite" in nodes["simulator"].output


def _check_reset_and_pause(probe, until, answer):
    """reset goes back to the start; paused it stands."""
    from std_srvs.srv import SetBool, Trigger

    until(lambda: probe.states and abs(probe.states[-1].position[1] - START[1]) > 0.3,
          probe.node, expected="falling")  # fmt: skip
    reset = probe.node.create_client(Trigger, "simulator/reset")
    pause = probe.node.create_client(SetBool, "simulator/pause")
    assert answer(pause, SetBool.Request(data=True), probe.node).success
    assert answer(reset, Trigger.Request(), probe.node).success
    probe.states.clear()
    until(lambda: len(probe.states) > 20, probe.node)
    np.testing.assert_array_equal(probe.states[-1].position, START)


def _check_addresses(pid):
    """No socket of a node listens on an address of another interface."""
    with open(f"/proc/{pid}/net/udp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    addresses = [row[1].split(":")[0] for row in rows if row[9] in inodes]
    assert addresses
    assert set(addresses) <= {"0100007F", "0101FFEF", "0100FFEF"}, (
        addresses
    )  # 127.0.0.1, 239.255.0.1


def test_a_solver_is_swapped_on_a_running_node(start, probe, until, answer):
    """deactivate, cleanup, set, configure, activate through the node's services.

    Before, that node falls, stands and is put back; DDS stays on this machine.
    """
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    nodes = start([SIMULATOR], _params())
    until(lambda: probe.value("simulator", "forward dynamics") == "aba", probe.node)
    _check_reset_and_pause(probe, until, answer)
    _check_addresses(nodes["simulator"].popen.pid)
    change = probe.node.create_client(ChangeState, "simulator/change_state")
    assign = probe.node.create_client(SetParameters, "simulator/set_parameters")
    until(lambda: change.service_is_ready() and assign.service_is_ready(), probe.node)

    def call(client, request):
        future = client.call_async(request)
        until(future.done, probe.node, expected="an answer")
        return future.result()

    def step(number):
        request = ChangeState.Request(transition=Transition(id=number))
        return call(change, request).success

    name = "forward_dynamics.plugin_name"
    value = Parameter(name, value="dense").to_parameter_msg()
    refused = call(assign, SetParameters.Request(parameters=[value])).results[0]
    assert not refused.successful
    assert "clean up first" in refused.reason
    assert step(Transition.TRANSITION_DEACTIVATE)
    assert step(Transition.TRANSITION_CLEANUP)
    assert call(assign, SetParameters.Request(parameters=[value])).results[0].successful
    assert step(Transition.TRANSITION_CONFIGURE)
    assert step(Transition.TRANSITION_ACTIVATE)
    probe.states.clear()
    until(lambda: probe.value("simulator", "forward dynamics") == "dense"
          and len(probe.states) > 5, probe.node)  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "line", "expected"),
    [
        (SIMULATOR, "forward_dynamics.plugin_name: abba", "no solver is called 'abba'"),
        (COMPUTED_TORQUE, "gains.joint2.p: fast", r"gains.joint2.p"),
    ],
)
def test_bad_parameters_end_a_node_with_a_reason(start, entry, line, expected):
    """Status 1, the reason printed, and no torque was ever sent."""
    import re

    text = _params(line, line)
    if line.startswith("gains.joint2.p"):
        text = text.replace("    gains.joint2.p: 400.0\n", "")
    process = start([entry], text)[entry.executable]
    assert process.popen.wait(30) == 1
    process.reader.join(5)
    assert re.search(expected, process.output, re.DOTALL), process.output


def test_a_robot_may_come_by_topic(start, probe, until):
    """robot_description: a bad one is refused with a reason, a good one starts the node."""
    from std_msgs.msg import String

    from dyn_core import robots
    from ros_nodes.base.node import LATCHED

    sim = "robot_description_file: ''\n"
    text = _params(sim).replace("    robot_description_file: arm7\n", "", 1)
    text = text.replace(f"    initial_positions: {START}\n", "")
    nodes = start([SIMULATOR], text)
    speaker = probe.node.create_publisher(String, "robot_description", LATCHED)
    speaker.publish(String(data="<robot>"))
    until(lambda: "robot_description refused" in nodes["simulator"].output, probe.node)
    assert "malformed XML" in nodes["simulator"].output
    speaker.publish(String(data=robots.path("planar3").read_text()))
    until(lambda: probe.states, probe.node, expected="joint states")
    assert list(probe.states[-1].name) == ["joint1", "joint2", "joint3"]


def test_a_floating_robot_publishes_poses_and_time(start, probe, until):
    """MultiDOFJointState beside joint_states, /clock when asked, 12 efforts taken."""
    from rosgraph_msgs.msg import Clock
    from sensor_msgs.msg import MultiDOFJointState
    from std_msgs.msg import Float64MultiArray

    sim = "root_joint: floating\npublish_clock: true"
    text = _params(sim).replace("robot_description_file: arm7", "robot_description_file:"
                                " quadruped", 1)  # fmt: skip
    text = text.replace(f"    initial_positions: {START}\n", "", 1)
    poses, times = [], []
    probe.node.create_subscription(
        MultiDOFJointState, "multi_dof_joint_states", poses.append, 10
    )
    probe.node.create_subscription(Clock, "/clock", times.append, 10)
    start([SIMULATOR], text)
    until(
        lambda: len(poses) > 50 and len(times) > 50, probe.node, expected="poses, clock"
    )
    assert len(probe.states[-1].name) == 12
    assert list(poses[-1].joint_names) == ["root_joint"]
    assert poses[-1].transforms[0].translation.z < poses[0].transforms[0].translation.z
    stamps = [t.clock.sec + 1e-9 * t.clock.nanosec for t in times]
    assert np.diff(stamps) == pytest.approx(0.004, abs=1e-6)
    efforts = Float64MultiArray(data=[1.0] * 12)

    def takes():  # for effort_timeout only, so that one command may be missed
        probe.to_simulator.publish(efforts)
        return np.array(probe.states[-1].effort).any()

    until(takes, probe.node, expected="effort")


def test_transitions_enable_and_estop(start, probe, feed, until):
    """A transition that does not fit is refused in words in the log; torque goes on.

    Disabled and stopped mean zero effort; after a stop only a restart helps.
    """
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from std_srvs.srv import SetBool, Trigger

    nodes = start([COMPUTED_TORQUE], _params())
    feed(probe.state, lambda: len(probe.efforts) > 10, "torque")
    client = probe.node.create_client
    change = client(ChangeState, "computed_torque/change_state")
    enable = client(SetBool, "computed_torque/enable")
    estop = client(Trigger, "computed_torque/estop")
    until(lambda: all(x.service_is_ready() for x in (change, enable, estop)),
          probe.node, expected="the services")  # fmt: skip

    def ask(service, request):
        future = service.call_async(request)
        feed(probe.state, future.done, "an answer")
        return future.result()

    def step(number):
        request = ChangeState.Request(transition=Transition(id=number))
        return ask(change, request).success

    def goes_on(torque):
        probe.efforts.clear()

        def last():
            return [bool(tau.any()) for _, tau in probe.efforts][-10:]

        # Where the machine pauses the states, torque comes again; zero has to stay.
        feed(probe.state, lambda: last() == [torque] * 10, "efforts")
        assert torque or not any(tau.any() for _, tau in probe.efforts)

    for number in (0, 1, 2, 3, 99):
        assert not step(number), number
    goes_on(True)
    assert ask(enable, SetBool.Request(data=False)).success
    goes_on(False)
    assert ask(enable, SetBool.Request(data=True)).success
    feed(probe.state, lambda: probe.efforts[-1][1].any(), "torque again")
    assert ask(estop, Trigger.Request()).success
    refused = ask(enable, SetBool.Request(data=True))
    assert not refused.success
    assert "deactivate and activate" in refused.message
    goes_on(False)
    assert step(Transition.TRANSITION_DEACTIVATE)
    assert step(Transition.TRANSITION_ACTIVATE)
    feed(probe.state, lambda: probe.efforts[-1][1].any(), "torque after a restart")
    assert step(Transition.TRANSITION_DEACTIVATE)
    until(lambda: not probe.efforts[-1][1].any(), probe.node, expected="the last zero")
    controller = nodes["computed_torque"]
    assert controller.end(signal.SIGHUP) == 0
    assert "transition 2 does not fit the state active" in controller.output


def test_bad_trajectories_are_refused_and_the_arm_holds(
    start, probe, feed, ends_with_zero
):
    """A trajectory with NaN or a wrong joint changes nothing and is counted."""
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    # A machine that stops for a moment must not stop the arm: that refuses all.
    nodes = start([COMPUTED_TORQUE], _params(control="state_timeout: 10.0"))
    feed(probe.state, lambda: len(probe.efforts) > 10, "torque")
    wanted = probe.efforts[-1][1]
    sender = probe.node.create_publisher(
        JointTrajectory, "computed_torque/joint_trajectory", 10
    )
    feed(probe.state, lambda: sender.get_subscription_count() > 0, "a subscriber")
    point = JointTrajectoryPoint(positions=[float("nan")] * 7)
    point.time_from_start.sec = 1
    key = "refused: trajectory refused"
    reasons = {"positions are not finite": NAMES, "unknown joints elbow": ["elbow"]}
    for k, (reason, names) in enumerate(reasons.items(), 1):
        sender.publish(JointTrajectory(joint_names=names, points=[point]))
        feed(probe.state, lambda k=k: int(probe.value("computed_torque", key)) == k,
             "refusals")  # fmt: skip
        feed(probe.state, lambda x=reason: x in nodes["computed_torque"].output, reason)
    np.testing.assert_allclose(probe.efforts[-1][1], wanted, atol=1e-9)
    ends_with_zero(nodes["computed_torque"], signal.SIGINT)


def test_a_given_folder_of_logs_is_used_and_no_other_made(monkeypatch, tmp_path):
    """An empty folder stayed behind at each call."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("ROS_LOG_DIR", "/somewhere")
    assert private_environment()["ROS_LOG_DIR"] == "/somewhere"
    assert not list(tmp_path.iterdir())
    monkeypatch.delenv("ROS_LOG_DIR")
    made = private_environment()["ROS_LOG_DIR"]
    assert [str(x) for x in tmp_path.iterdir()] == [made]
