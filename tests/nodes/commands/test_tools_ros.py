"""Tools against running nodes, over DDS on loopback: parameters, states, recordings."""

import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from fnmatch import fnmatch
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
import yaml

import dyn_core as dyn
from dyn_core import cli
from dyn_core.errors import DynError
from dyn_core.recordings import read_motion
from ros_nodes.graphs import GRAPHS
from ros_nodes.tools.fault_list import FAULTS
from ros_nodes.tools.faults import ALONE
from ros_nodes.tools.parameter_values import typed_value

pytestmark = [pytest.mark.ros, pytest.mark.timeout(120)]
START = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
GAINS = "".join(
    f"    gains.joint{k}.p: 400.0\n    gains.joint{k}.d: 40.0\n" for k in range(1, 8)
)
PARAMS = f"""\
simulator:
  ros__parameters:
    robot_description_file: arm7
    update_rate: 100
    brakes: true
    initial_positions: {START}
computed_torque:
  ros__parameters:
    robot_description_file: arm7
{GAINS}"""


@pytest.fixture
def run(capfd):
    """Return a function that runs a command; it gives status and output."""

    def command(*arguments):
        status = cli.main([*arguments])
        said = capfd.readouterr()
        return status, said.out, said.err

    return command


@pytest.fixture
def shared(monkeypatch):
    """One connection for many commands: to join the graph may take seconds."""
    from ros_nodes.tools import lifecycle, live, param

    with live.connect(10.0) as one:

        @contextmanager
        def connect(timeout):
            one.timeout = timeout
            yield one

        for module in (param, lifecycle):
            monkeypatch.setattr(module, "connect", connect)
        yield


def _wait_for(run, node, wanted):
    deadline = time.monotonic() + 30
    while run("lifecycle", "get", node)[1] != wanted:
        assert time.monotonic() < deadline, run("lifecycle", "get", node)


def _load(run, node, path):
    """What `dyn param load` says of a file: all of it is taken, or nothing."""
    path.write_text(
        "/**/computed_torque:\n  ros__parameters:\n    mode: computed_torque\n"
        "    gains: {joint1: {p: 450, d: 42}, joint2: {p: 390.5}}\n"
    )
    wanted = "gains.joint1.p: 450.0\ngains.joint1.d: 42.0\ngains.joint2.p: 390.5\n"
    wanted += f"3 of 4 parameters of {path} were new to {node}\n"
    assert run("param", "load", node, str(path))[:2] == (0, wanted)
    path.write_text(
        "/**: {ros__parameters: {gains.joint1.p: 460.0, gains.joint2.p: -1.0}}\n"
    )
    status, _, err = run("param", "load", node, str(path))
    begin = f"no parameter of {path} is set: Parameter gains.joint2.p out of range"
    assert (status, begin in err) == (1, True), err
    for content, message in (
        (
            "/**: {ros__parameters: {gains.jiont1.p: 1}}",
            "did you mean 'gains.joint1.p'",
        ),
        (
            "/simulator: {ros__parameters: {period: 1}}",
            "parameters of /simulator; valid",
        ),
        ("/**: {ros__parameters: {gains.joint1.p: [1]}}", "'[1]'; valid: a double"),
        ("/**: {ros__parameters: {payload.link: }}", "payload.link has no value in"),
    ):
        path.write_text(content)
        status, _, err = run("param", "load", node, str(path))
        assert (status, message in err) == (1, True), err
    assert run("param", "get", node, "gains.joint1.p")[1] == "Double value is: 450.0\n"


def _params(run, path):
    """What `dyn param` says of the running controller."""
    node = "/computed_torque"
    status, out, _ = run("param", "list", "computed_torque")
    names = [line.strip() for line in out.splitlines()]
    assert status == 0
    assert {"gains.joint1.p", "joints", "mode", "use_sim_time"} <= {*names}
    assert out == "".join(f"  {name}\n" for name in sorted(names))
    assert run("param", "get", node, "gains.joint1.p")[:2] == (
        0,
        "Double value is: 400.0\n",
    )
    assert run("param", "get", node, "mode", "--hide-type")[1] == "computed_torque\n"
    assert run("param", "get", node, "joints")[1] == "String values are: []\n"
    assert (
        run("param", "set", node, "gains.joint1.p", "500")[1]
        == "Set parameter successful\n"
    )
    assert run("param", "get", node, "gains.joint1.p")[1] == "Double value is: 500.0\n"
    _load(run, node, path)
    status, _, err = run("param", "set", node, "mode", "gravity")
    assert (status, "Setting parameter failed: mode is structure" in err) == (1, True)
    status, _, err = run("param", "set", node, "gains.joint1.p", "much")
    assert (status, "'much'; valid: a double" in err) == (1, True)
    status, _, err = run("param", "get", node, "gains.jiont1.p")
    assert (status, "did you mean 'gains.joint1.p'" in err) == (1, True)
    page = run("param", "describe", node, "state_timeout")[1]
    assert page.startswith(
        "Parameter name: state_timeout\n  Type: double\n  Description: age at"
    )
    assert (
        "  Constraints:\n    Min value: 0.001\n    Max value: 10.0\n    Step: 0.0\n"
        in page
    )
    return names


def _dump(run, names, path):
    """What `dyn param dump` says is all there is, and what ROS reads back."""
    status, out, _ = run("param", "dump", "computed_torque")
    assert status == 0
    path.write_text(out)
    flat = {}

    def walk(tree, head=""):
        for key, value in tree.items():
            if isinstance(value, dict):
                walk(value, f"{head}{key}.")
            else:
                flat[head + key] = value

    walk(yaml.safe_load(out)["/computed_torque"]["ros__parameters"])
    unset = re.findall(r"# (\S+): \[\] is left out", out)
    assert sorted([*flat, *unset]) == names
    assert "joints" in unset
    return flat


def _read_back(path, flat):
    import rclpy
    from rclpy.node import Node

    context = rclpy.context.Context()
    rclpy.init(args=["--ros-args", "--params-file", str(path)], context=context)
    node = Node(
        "computed_torque",
        context=context,
        automatically_declare_parameters_from_overrides=True,
    )
    try:
        for name, value in flat.items():
            assert node.get_parameter(name).value == value, name
    finally:
        node.destroy_node()
        context.try_shutdown()


def _states(run):
    """What `dyn lifecycle` says, and a cleanup that is undone."""
    assert run("lifecycle", "get", "/simulator")[1] == "active [3]\n"
    assert (
        run("lifecycle", "get")[1]
        == "/computed_torque: active [3]\n/simulator: active [3]\n"
    )
    out = run("lifecycle", "list", "simulator")[1]
    assert "- deactivate [4]\n\tStart: active\n\tGoal: deactivating\n" in out
    status, _, err = run("lifecycle", "set", "simulator", "deactivat")
    assert (status, "did you mean 'deactivate'" in err) == (1, True)
    status, _, err = run("lifecycle", "set", "simulator", "configure")
    assert status == 1
    assert "no transition of /simulator in state active is called 'configure'" in err
    assert (
        run("lifecycle", "set", "simulator", "deactivate")[1]
        == "Transitioning successful\n"
    )
    assert run("lifecycle", "get", "simulator")[1] == "inactive [2]\n"
    assert run("lifecycle", "set", "simulator", "3")[0] == 0
    status, _, err = run("param", "set", "computed_torque", "mode", "impedance")
    assert status == 1
    assert "dyn lifecycle set /computed_torque deactivate cleanup, " in err, err
    assert "dyn lifecycle set /computed_torque configure activate\n" in err, err
    ways = ["deactivate", "cleanup", "configure", "activate"]
    status, out, err = run("lifecycle", "set", "computed_torque", *ways)
    assert (status, out) == (0, "Transitioning successful\n" * 4), err
    status, out, err = run("lifecycle", "set", "computed_torque", "deactivate", "shut")
    assert (status, out) == (1, ""), "refused before the first one"
    assert "did you mean 'shutdown'" in err, err
    status, out, err = run("lifecycle", "set", "computed_torque", "deactivate", "4")
    assert (status, out) == (1, "Transitioning successful\n"), err
    assert "in state inactive is called '4'" in err, err
    status, _, err = run("lifecycle", "set", "computed_torque", "cleanup")
    assert status == 0, err
    option = ["computed_torque", "inverse_dynamics.options.level"]
    assert run("param", "set", *option, "2")[1] == "Set parameter successful\n"
    assert run("param", "get", *option)[1] == "Integer value is: 2\n"
    status, _, err = run("lifecycle", "set", "computed_torque", "configure")
    assert (status, f"dyn param delete /{option[0]} NAME takes" in err) == (1, True), (
        err
    )
    assert run("param", "delete", *option)[1] == "Delete parameter successful\n"
    status, _, err = run("param", "delete", "computed_torque", "mode")
    assert (status, "Deleting parameter failed: " in err) == (1, True), err
    status, _, err = run("param", "set", *option[:1], "inverse_dynamics.opt.level", "2")
    assert (status, "no parameter of /computed_torque is" in err) == (1, True), err
    run("param", "set", "computed_torque", "require_guard", "true")
    run("param", "set", "computed_torque", "guard_wait", "0.5")
    status, _, err = run("lifecycle", "set", "computed_torque", "configure", "activate")
    assert status == 1
    assert "/computed_torque is inactive [2]; inactive: cannot activate: " in err, err


def _services(run):
    """What `dyn call` and `dyn diagnostics` do, and what they refuse."""
    status, out, _ = run("diagnostics")
    assert status == 0 and re.search(r"^(OK|WARN) computed_torque: ", out, re.M), out
    out = run("diagnostics", "/simulator")[1]
    assert "  real-time factor: " in out and "computed_torque" not in out, out
    status, _, err = run("diagnostics", "/simulatr")
    assert (status, "no diagnostics of simulatr are heard; names" in err) == (1, True)
    status, _, err = run("call", "/computed_torque/estpo", "--timeout", "2")
    assert (status, "did you mean '/computed_torque/estop'" in err) == (1, True)
    status, _, err = run("call", "/computed_torque/estop", "true")
    assert (status, "value is true; valid: no value" in err) == (1, True)
    status, _, err = run("call", "/simulator/pause")
    assert (status, "valid: true or false" in err) == (1, True)
    status, _, err = run("call", "/simulator/pause", "5")
    said = "value is 5; valid: true or false; /simulator/pause is a std_srvs/"
    assert (status, said in err) == (1, True), err
    status, _, err = run("call", "/simulator/get_parameters")
    assert (status, "ros2 service call /simulator/get_parameters " in err) == (1, True)
    assert run("call", "simulator/pause", "true")[0] == 0
    assert run("call", "/simulator/pause", "false")[0] == 0
    assert run("call", "/computed_torque/estop")[0] == 0
    status, out, _ = run("diagnostics", "computed_torque")
    assert (status, "ERROR computed_torque: " in out) == (1, True), out


def _nobody(run):
    status, _, err = run("param", "list", "/simulatr", "--timeout", "2")
    assert status == 1
    assert err == (
        "dyn: waiting for node /simulatr; there are: /computed_torque, /simulator\n"
        "dyn: node /simulatr is not there after 2 s; did you mean /simulator?;"
        " there are: /computed_torque, /simulator\n"
    )
    status, _, err = run("lifecycle", "get", "nobody", "--timeout", "0.1")
    assert (status, "node /nobody is not there" in err) == (1, True)


def _evaluated(run, bag):
    """A recording of the arm that the controller holds: the model's own torques."""
    status, out, err = run("evaluate", bag, "--robot", "arm7", "--cutoff", "5")
    assert (status, err) == (0, "")
    rows = [
        line.split()
        for line in out.splitlines()
        if line.startswith("joint") and "unit" not in line
    ]
    assert [row[0] for row in rows] == [f"joint{k}" for k in range(1, 8)]
    measured, rms = np.array([[float(row[2]), float(row[3])] for row in rows]).T
    assert measured.max() > 2.0
    # An arm at rest may be held by dry friction, half a newton metre at joint4, and by the
    # stop of a joint, where it fell to before the controller was active.
    model = dyn.load("arm7")
    q = read_motion(bag, model).q
    free = ((q > model.lower + 1e-3) & (q < model.upper - 1e-3)).all(axis=0)
    assert free.sum() >= 5, q[0]
    assert (rms[free] < 0.1 * measured.max()).all(), out


def _record(output, *arguments):
    command = [sys.executable, "-m", "dyn_core.cli", "record", "-o", output, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _recorded(process):
    """Return the status of a recording, and how many messages it has by topic."""
    out = process.stdout.read()
    lines = re.findall(r"^ +(\d+)  (\S+)", out, re.MULTILINE)
    return process.wait(30), {topic: int(count) for count, topic in lines}


def test_values_of_a_file_are_typed_as_they_are_read():
    """Text in lists keeps its backslashes, quotes and what YAML takes for a number."""
    from ros_nodes.tools.param import _text

    for value, number in (
        (["a\\b", "it's", "1e-5", "on"], 9), ("on", 4), ([1, 2.5], 8), (True, 1), (1e-9, 3),
    ):  # fmt: skip
        assert typed_value(_text("f", "x", value), number, "x") == (number, value)


def test_a_value_of_a_file_has_the_type_of_the_parameter_of_now(monkeypatch):
    """Also where the node lets the type change: 5 would make an integer of a double."""
    from ros_nodes.tools import param

    described = [SimpleNamespace(name="gain", type=3, dynamic_typing=True)]
    for name, answer in (
        ("parameter_names", lambda *_: ["gain"]),
        ("descriptors", lambda *_: described),
        ("values", lambda *_: {"gain": SimpleNamespace(type=3)}),
    ):
        monkeypatch.setattr(param, name, answer)
    for kind in (3, 0):
        described[0].type = kind
        (parameter,) = param._typed(None, "/driver", {"gain": "5"})
        assert (parameter.value.type, parameter.value.double_value) == (3, 5.0)


def test_tools_against_running_nodes(start, environment, shared, run, tmp_path):
    """One graph: `dyn param` and `dyn lifecycle` as ros2cli prints, recordings, their use."""
    pytest.importorskip("rosbags", reason="rosbags is not installed (extra bags)")
    nodes = start(GRAPHS["demo"].nodes, PARAMS)
    for node in ("computed_torque", "simulator"):
        _wait_for(run, node, "active [3]\n")
    bag, folder = str(tmp_path / "run.mcap"), str(tmp_path / "all")
    topics = ["joint_states", "effort_controller/commands"]
    some = _record(bag, "--duration", "4", "--topics", *topics)
    every = _record(folder)
    names = _params(run, tmp_path / "mine.yaml")
    flat = _dump(run, names, tmp_path / "dump.yaml")
    _read_back(tmp_path / "dump.yaml", flat)
    _nobody(run)
    status, counts = _recorded(some)
    assert (status, set(counts)) == (0, {f"/{topic}" for topic in topics})
    assert counts["/joint_states"] > 100
    every.send_signal(signal.SIGINT)
    status, counts = _recorded(every)
    assert (status, counts["/joint_states"] > 100) == (0, True)
    assert {"/diagnostics", "/computed_torque/error"} <= set(counts)
    _services(run)
    _states(run)
    assert [p.end() for p in nodes.all] == [0, 0]
    _evaluated(run, bag)
    record = read_motion(folder)
    assert len(record.t) == counts["/joint_states"]
    assert record.command.shape == record.tau.shape == (len(record.t), 7)


def _slow_graph(monkeypatch, appearing, timeout=5.0, later=0.0, mute=()):
    """Return a Live and its clock; nodes appear at some times, a turn takes 0.1 s.

    Their services appear `later`; those of `mute` never.
    """
    from ros_nodes.tools import live

    one, clock = live.Live.__new__(live.Live), [0.0]
    one.timeout = timeout
    one.spin = lambda: clock.__setitem__(0, clock[0] + 0.1)
    one.nodes = lambda: [x for x, when in appearing.items() if when <= clock[0]]

    def services():
        there = [x for x in appearing if x not in mute]
        there = [x for x in there if appearing[x] + later <= clock[0]]
        return [(f"{x}/get_state", ["lifecycle_msgs/srv/GetState"]) for x in there]

    one.node = SimpleNamespace(get_service_names_and_types=services)
    monkeypatch.setattr(live.time, "monotonic", lambda: clock[0])
    return one, clock


def test_nodes_that_appear_late_are_waited_for(monkeypatch):
    """The first one until the timeout, as on a busy machine; then while more appear."""
    live, clock = _slow_graph(monkeypatch, {"/a": 1.5, "/b": 1.9, "/c": 4.0})
    assert live.all_nodes() == ["/a", "/b"]
    assert clock[0] == pytest.approx(3.3, abs=0.25)
    # One whose first answer was lost comes with its next announcement, 3 s later.
    live, clock = _slow_graph(monkeypatch, {"/a": 0.1, "/b": 3.0})
    assert live.all_nodes() == ["/a", "/b"]
    assert clock[0] == pytest.approx(3.5, abs=0.25)
    live, clock = _slow_graph(monkeypatch, {"/a": 1.5})
    assert live.all_nodes(expected=False) == []
    assert clock[0] == pytest.approx(0.5, abs=0.25)


def test_services_that_appear_late_are_waited_for(monkeypatch, capsys):
    """A node is known before its services are: no list leaves it out in silence."""
    from ros_nodes.tools import lifecycle

    live, clock = _slow_graph(monkeypatch, {"/a": 0.0, "/b": 0.3}, 20.0, later=0.7)
    monkeypatch.setattr(
        lifecycle, "state", lambda live, node: SimpleNamespace(label="active", id=3)
    )
    assert lifecycle._all(live, "get") == 0
    assert capsys.readouterr() == ("/a: active [3]\n/b: active [3]\n", "")
    assert clock[0] < 3.5
    live, clock = _slow_graph(monkeypatch, {"/a": 0.0, "/b": 0.3}, 20.0, 1.5, ["/b"])
    assert lifecycle._all(live, "get") == 0
    out, err = capsys.readouterr()
    assert out == "/a: active [3]\n" and clock[0] < 8.0
    assert "waiting for services of /a" in err
    assert "no services of /b within 5 s: whether it has a life cycle is not" in err


def test_a_wait_says_for_what(monkeypatch, capsys):
    """Nodes that come up are waited for; a name that is not there for 5 s is not."""
    live, clock = _slow_graph(monkeypatch, {"/a": 6.0, "/b": 9.0}, 20.0)
    assert live.require("b") == "/b"
    said = capsys.readouterr().err
    assert said == (
        "dyn: waiting for node /b; no node is seen yet, which can take some seconds\n"
        "dyn: waiting for node /b; there are: /a\n"
    )
    assert 9.0 <= clock[0] < 9.5
    with pytest.raises(dyn.SettingError, match="node /c is not there after 5 s"):
        live.require("/c")
    assert 14.0 <= clock[0] < 14.5


@pytest.mark.parametrize("what", ["param", "lifecycle"])
def test_where_no_node_is_the_tools_say_so(what, monkeypatch):
    """A sentence, where `ros2` would print nothing."""
    from ros_nodes.tools import lifecycle, param

    live, _ = _slow_graph(monkeypatch, {}, 2.0)
    with pytest.raises(DynError, match="no nodes within 2 s in domain .*valid: nodes"):
        param._list_all(live) if what == "param" else lifecycle._all(live, "get")


def test_ctrl_c_comes_behind_the_callbacks(capfd):
    """An executor would log it as FATAL in a callback, with lines of source."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    from ros_nodes.tools.live import connect

    handler, calls = signal.default_int_handler, []

    def interrupted():
        signal.raise_signal(signal.SIGINT)
        calls.append(1)

    before = signal.signal(signal.SIGINT, handler)  # ignored in a background process
    try:
        with connect(10.0) as live:
            live.node.create_timer(0.001, interrupted)
            with pytest.raises(KeyboardInterrupt):
                live.until(lambda: False, 10.0)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls
    assert capfd.readouterr().err == ""


def _campaign(*arguments, patience=240):
    command = [
        sys.executable,
        "-m",
        "dyn_core.cli",
        "check-node",
        "--robot",
        "two_link",
    ]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=patience
    )
    return done.returncode, done.stdout


def test_a_guard_has_seen_torque_before_a_fault_comes():
    """Before that it has nothing to stop; nothing is started here."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    from ros_nodes.tools.stand import NodeStand

    live = MagicMock()
    live.until = lambda done, _: any(done() for _ in range(9))
    stand = NodeStand(live, ("joint1",), np.zeros(1), "", seed=0)
    said = iter(["", "watching: no torque", "watching: torque stands"])
    stand._start, stand._reach = lambda name: True, lambda state: None
    stand._last_said = lambda name: next(said)
    stand.ensure(next(x for x in FAULTS if x.guard and x.mode == ALONE))
    assert next(said, "all was read") == "all was read"


@pytest.mark.parametrize(("label", "requests"), [("active", 1), ("inactive", 2)])
def test_a_lost_answer_of_a_transition_is_asked_for(label, requests):
    """A node that just started drops the answer to a client it does not know yet.

    The state says whether the transition was made; if not, it is requested again.
    """
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    from ros_nodes.tools import stand as module

    answered, lost = MagicMock(), MagicMock()
    answered.done.return_value, lost.done.return_value = True, False
    live = MagicMock()
    live.until = lambda done, _: done()
    live.call.return_value.current_state.label = label
    stand = module.NodeStand(live, ("joint1",), np.zeros(1), "", seed=0)
    stand.log = lambda: ["the last line"]
    stand._transition.call_async.side_effect = [lost, answered]
    stand._change(3)
    assert stand._transition.call_async.call_count == requests
    stand._transition.call_async.side_effect = [lost, lost, lost]
    live.call.return_value.current_state.label = "inactive"
    with pytest.raises(DynError, match="no answer to transition 3 within 30 s"):
        stand._change(3)


def test_faults_of_states_are_answered_in_time(environment, tmp_path):
    """Some that must stop the robot, some that must not; a row for each, and the count.

    While it is held, while it moves, and inactive. The timeout is long: other processes
    of a test run may stop these for a while.
    """
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    params = tmp_path / "slow.yaml"
    params.write_text("""\
computed_torque: {ros__parameters: {state_timeout: 0.8, gravity: [5.0, 4.0, -7.0]}}
simulator: {ros__parameters: {gravity: [5.0, 4.0, -7.0]}}
""")
    names = ["nan-position", "shuffled-joints", "lost-states", "estop", "estop-moving",
             "wrong-transitions-inactive", "frozen-state", "position-30", "gain-1e9",
             "spike-position", "disabled", "other-joints"]  # fmt: skip
    status, out = _campaign("--params", str(params), "--seed", "3", "--only", *names)
    assert (status, out.splitlines()[-1]) == (0, "12 faults, 0 failed; seed 3"), out
    assert re.search(
        r"^nan-position +0\.\d{3}  0\.815  pass  computed_torque ERROR: ", out, re.M
    )


@pytest.mark.parametrize(
    "names",
    [
        ["tool-twist-large", "tool-old-stamp", "tool-stopped"],
        pytest.param(["tool-*"], marks=pytest.mark.full),
    ],
)
def test_faults_of_a_tool_are_answered(environment, tmp_path, names):
    """Targets that are refused change no effort, and end no stop; all with --full.

    Faults of trajectories and of other solvers are left out in this mode.
    """
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    params = tmp_path / "tool.yaml"
    stiffness = [5.0] * 3 + [100.0] * 3
    params.write_text(f"""\
computed_torque: {{ros__parameters: {{state_timeout: 0.8, mode: cartesian,
  cartesian: {{frame: link2, stiffness: {stiffness}, ratio: [0.5]}}}}}}
simulator: {{ros__parameters: {{}}}}
""")
    others = ["estop-moving", "solver-nan"]
    status, out = _campaign("--params", str(params), "--only", *names, *others)
    count = sum(any(fnmatch(x.name, name) for name in names) for x in FAULTS)
    assert (status, out.splitlines()[-1]) == (0, f"{count} faults, 0 failed; seed 0"), (
        out
    )
    assert "not tried, parameters or limits say nothing: " in out
    assert all(name in out for name in others)


@pytest.mark.full
@pytest.mark.timeout(1900)
def test_every_fault_is_answered(environment):
    """Minutes of starting and killing nodes: with --full only.

    What fails is late, where the machine has other work, and says so.
    """
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    status, out = _campaign(patience=1800)
    failed = re.findall(r"^\S+ .* FAIL: .*", out, re.MULTILINE)
    tried = [fault for fault in FAULTS if fault.needs != "cartesian"]
    assert out.splitlines()[-1].startswith(f"{len(tried)} faults, "), out
    assert status == bool(failed)
    ways = "it took|no effort for|an effort stood|an effort was zero"
    late = re.compile(f"FAIL: ({ways}).*machine paused")
    assert all(late.search(line) for line in failed), out


def test_recordings_of_nothing_and_rates(environment, capsys, tmp_path):
    """Nothing that came leaves nothing; a rate is of the time in which messages came."""
    pytest.importorskip("rosbags", reason="rosbags is not installed (extra bags)")
    from ros_nodes.tools import recorder

    for name in ("b", "b.mcap"):
        output = tmp_path / name
        arguments = SimpleNamespace(
            output=output, topics=["/nobody"], storage="mcap", timeout=0.2, duration=0.1
        )
        assert recorder.run(arguments) == 1
        assert "0 messages" in capsys.readouterr().out
        assert list(tmp_path.iterdir()) == []
    made = recorder.TopicRecorder(None, None, [])
    made.seconds = 10.0
    for k, topic in enumerate(("/once", "/often")):
        made.types[topic], made.counts[topic] = "x", 1 + 100 * k
        made.spans[topic] = 3.0, 3.0 + 2 * k
    assert made.report("b") == 0
    out = capsys.readouterr().out
    assert "  101  /often  50.0 Hz\n" in out
    assert "  1  /once\n" in out
    made.wanted, made.seen = ["/ofen"], ["/ofen", "/often", "/other"]
    assert made.report("b") == 1
    assert "on /ofen; did you mean /often? recorded: " in capsys.readouterr().err


PUBLISHER = """
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String

rclpy.init()
node = rclpy.create_node("speaker")
create = node.create_publisher
latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
create(String, "robot_description", latched).publish(String(data="<robot/>"))
create(String, "silent", 1)
states = create(JointState, "joint_states", 10)
statuses = create(DiagnosticStatus, "status", 10)
state = JointState(name=["joint1", "joint2"], position=[0.5, float("nan")])
state.header.stamp.sec = 7
tick = lambda: (states.publish(state), statuses.publish(DiagnosticStatus(level=b"\\2")))
node.create_timer(0.05, tick)
rclpy.spin(node)
"""
STATE = """\
header:
  stamp:
    sec: 7
    nanosec: 0
  frame_id: ''
name:
- joint1
- joint2
position:
- 0.5
- .nan
velocity: []
effort: []
---
"""


def _echo(*arguments):
    command = [sys.executable, "-m", "dyn_core.cli", "echo", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_messages_of_a_topic_are_read_as_yaml(environment):
    """As ros2 topic echo prints them; latched ones, too; Ctrl-C ends with status 0."""
    speaker = subprocess.Popen([sys.executable, "-c", PUBLISHER])
    try:
        wait = ("--timeout", "20")
        endless = _echo("joint_states", *wait)
        some = [
            _echo("/joint_states", "--count", "2", *wait),
            _echo("/robot_description", "--once", *wait),
            _echo("/status", "--once", *wait),
            _echo("/jiont_states", "--once"),
            _echo("/silent", "--once"),
        ]
        said = [process.communicate(timeout=60) for process in some]
        assert [process.returncode for process in some] == [0, 0, 0, 1, 1], said
        assert said[0][0] == 2 * STATE
        assert said[1][0] == "data: <robot/>\n---\n"
        assert said[2][0].startswith("level: 2\n")
        assert "waiting for topic /jiont_states; there are: " in said[3][1]
        assert "no topic is called '/jiont_states'" in said[3][1]
        assert "did you mean '/joint_states'" in said[3][1]
        assert "nothing came on /silent (std_msgs/msg/String) within 5 s" in said[4][1]
        assert "Traceback" not in str(said)
        first = "".join(endless.stdout.readline() for _ in STATE.splitlines())
        assert first == STATE
        endless.send_signal(signal.SIGINT)
        error = endless.communicate(timeout=20)[1]  # at most that it waited
        assert (endless.returncode, "Traceback" in error) == (0, False), error
    finally:
        speaker.kill()
        speaker.wait()
