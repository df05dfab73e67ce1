"""Lifecycle transitions and parameters, driven directly, without communication."""

import os
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn

LINKAGE = str(Path(__file__).parents[2] / "examples" / "four_bar" / "four_bar.urdf")
pytestmark = pytest.mark.ros


@pytest.fixture
def make(ros):
    """Return a function that makes a node with parameters, in a namespace."""
    from rclpy.lifecycle import TransitionCallbackReturn
    from rclpy.parameter import Parameter

    made = []

    def node(kind, namespace="", **values):
        if kind == "simulator":
            from ros_nodes.simulator_node import SimulatorNode as Kind
        else:
            from ros_nodes.computed_torque_node import ComputedTorqueNode as Kind
        settings = {"robot_description_file": "arm7", "autostart": False, **values}
        overrides = [
            Parameter(k.replace("__", "."), value=v) for k, v in settings.items()
        ]
        made.append(Kind(parameter_overrides=overrides, namespace=namespace))
        made[-1].good = TransitionCallbackReturn.SUCCESS
        made[-1].bad = TransitionCallbackReturn.FAILURE
        return made[-1]

    yield node
    for each in made:
        each.destroy_node()


def _set(node, name, value):
    from rclpy.parameter import Parameter

    return node.set_parameters([Parameter(name, value=value)])[0]


def test_a_robot_is_all_that_load_takes(make, tmp_path, monkeypatch):
    """A package:// address with its folders; the root as the source says."""
    (tmp_path / "p").mkdir()
    text = dyn.robots.path("two_link").read_text(encoding="utf-8")
    (tmp_path / "p" / "r.urdf").write_text(text)
    place = {"robot_description_file": "package://p/r.urdf", "engine": "graph"}
    node = make("simulator", package_paths=[str(tmp_path)], **place)
    assert node.trigger_configure() == node.good
    assert node.model.source.file == str(tmp_path / "p" / "r.urdf")
    node = make("simulator", **place)
    assert node.trigger_configure() == node.bad
    assert "searched: package_paths (none)" in node.failure
    monkeypatch.setattr("dyn_core.robots.root_joint", lambda path: "floating")
    for root, nv in (("declared", 8), ("fixed", 2)):
        choice = {"robot_description_file": "two_link", "engine": "graph"}
        node = make("simulator", root_joint=root, **choice)
        assert node.trigger_configure() == node.good, node.failure
        assert node.model.nv == nv
    node = make("computed_torque", robot_description="arm7")  # is text, no name
    assert node.trigger_configure() == node.bad
    assert "malformed XML" in node.failure
    node = make("computed_torque", xacro_arguments=["mass"])
    assert node.trigger_configure() == node.bad
    assert "xacro_arguments 'mass'; valid: NAME=VALUE" in node.failure


def test_a_free_body_of_mjcf_has_an_initial_pose(make):
    """As a floating root has; a robot on a hinge has none."""
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    body = (
        '<mujoco><worldbody><body><{}/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    choice = {"robot_description_file": "", "engine": "graph"}
    pose = {"initial_root_position": [0.0, 0.0, 2.0]}
    node = make(
        "simulator", robot_description=body.format("freejoint"), **choice, **pose
    )
    assert node.trigger_configure() == node.good, node.failure
    assert list(node.robot.q[:3]) == [0.0, 0.0, 2.0]
    node = make("simulator", robot_description=body.format("joint"), **choice, **pose)
    assert node.trigger_configure() == node.bad
    assert "is for a floating root" in node.failure


@pytest.mark.parametrize("kind", ["simulator", "computed_torque"])
def test_a_whole_life(make, kind):
    """configure, activate, deactivate, cleanup, and the same again."""
    node = make(kind)
    for _ in range(2):
        assert node.trigger_configure() == node.good
        assert node.model.nv == 7
        assert node.trigger_activate() == node.good
        assert node.active
        assert node.trigger_deactivate() == node.good
        assert not node.active
        assert node.trigger_cleanup() == node.good
        assert node.model is None
    assert node.trigger_shutdown() == node.good


def _request(node, number, label=""):
    """Send a request to the node's change_state service, without communication."""
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState

    request = ChangeState.Request(transition=Transition(id=number, label=label))
    (serve,) = (
        service.callback
        for service in node.services
        if service.srv_name.endswith("change_state")
    )
    return serve(request, ChangeState.Response()).success


@pytest.mark.parametrize(
    "kind",
    [
        {"kind": "computed_torque"},
        {"kind": "simulator"},
        {"kind": "simulator", "robot_description_file": "", "chain_file": "hopper"},
        {"kind": "simulator", "contact.enabled": True},
    ],
    ids=["computed_torque", "simulator", "chain", "contact"],
)
def test_transitions_that_do_not_fit_are_refused(make, kind, capfd):
    """In no state does a request that does not fit end the node or change it."""
    node = make(**kind)
    states = [("unconfigured", 1), ("inactive", 3), ("active", 7), ("finalized", None)]
    for state, leave in states:
        valid = {t[0] for t in node._state_machine.available_transitions}
        for number in {*range(9), 10, 50, 60, 99} - valid:
            assert not _request(node, number), number
            assert node._state_machine.current_state[1] == state
            assert node.active == (state == "active")
        assert not _request(node, 0, "jump")
        assert (
            f"transition jump does not fit the state {state}" in capfd.readouterr().err
        )
        assert leave is None or _request(node, leave)


def test_a_robot_that_comes_after_the_end_changes_nothing(make):
    """A finalized node cannot be configured again, and a message does not end it."""
    from std_msgs.msg import String

    from dyn_core import robots

    node = make("computed_torque", robot_description_file="", autostart=True)
    assert node.trigger_shutdown() == node.good
    node._on_description(String(data=robots.path("arm7").read_text()))
    assert node._state_machine.current_state[1] == "finalized"


@pytest.mark.parametrize("autostart", [True, False])
def test_a_robot_that_comes_late_starts_the_node(make, autostart):
    """Nothing is configured before; with autostart the message configures and starts."""
    from std_msgs.msg import String

    from dyn_core import robots

    choice = {"robot_description_file": "", "autostart": autostart}
    node = make("computed_torque", **choice)
    assert node.start()
    assert node._state_machine.current_state[1] == "unconfigured"
    node._on_description(String(data=robots.path("two_link").read_text()))
    state = "active" if autostart else "unconfigured"
    assert node._state_machine.current_state[1] == state
    assert node.active == autostart


def test_what_makes_the_robot_is_structure(ros):
    """The parameters of the robot are for state unconfigured; nodes start themselves."""
    from ros_nodes.parameters import ROBOT

    fields = {field.name: field for field in ROBOT}
    assert [name for name, field in fields.items() if not field.structure] == []
    assert fields["autostart"].default is True


def test_simulated_time_stands_while_paused(make):
    """A period moves it by a period, unless the robot is paused."""
    node = make("simulator", robot_description_file="two_link")
    assert node.trigger_configure() == node.good, node.failure
    node._move(0.0)
    assert node.elapsed == node.period > 0
    node.robot.paused = True
    node._move(0.0)
    assert node.elapsed == node.period


def test_a_request_by_label_still_works(make):
    """The label of a request decides; the number is for requests without one."""
    node = make("computed_torque")
    assert _request(node, 99, "configure")
    assert not _request(node, 3, "cleanup after me")
    assert _request(node, 99, "cleanup")
    assert _request(node, 99, "shutdown")


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (
            "simulator",
            {"forward_dynamics__plugin_name": "abba"},
            "no solver is called 'abba'",
        ),
        (
            "simulator",
            {"step__plugin_name": "rnea"},
            "unknown option|SignatureError|rnea",
        ),
        (
            "simulator",
            {"forward_dynamics__plugin_name": "rnea"},
            "slot forward_dynamics",
        ),
        ("computed_torque", {"inverse_dynamics__plugin_name": "x"}, "valid.*: .*rnea"),
        (
            "computed_torque",
            {
                "inverse_dynamics__plugin_name": "gaus",
                "inverse_dynamics__options__columns": 1,
            },
            "valid for inverse_dynamics: closed_form, rnea",
        ),
        (
            "computed_torque",
            {"inverse_dynamics__plugin_name": "aba"},
            "inverse_dynamics",
        ),
        (
            "simulator",
            {"robot_description_file": "nowhere.urdf"},
            "cannot read the URDF",
        ),
        ("simulator", {"robot_description": "<robot"}, "malformed XML"),
        (
            "simulator",
            {"robot_description_file": ""},
            "no robot: set robot_description",
        ),
        ("simulator", {"joints": ["joint1"]}, "leaves out joint2.*unlisted_joints"),
        ("simulator", {"joints": ["elbow"]}, "'elbow' must be one of joint1"),
        ("simulator", {"initial_positions": [1.0, 2.0]}, "2 numbers for 7 joints"),
        (
            "computed_torque",
            {"robot_description_file": "cart_pole"},
            "effort_limits.hinge",
        ),
        ("computed_torque", {"engine": "steam"}, "valid: plain, graph"),
        ("simulator", {"model_extras": "nowhere.yaml"}, "cannot read the sidecar"),
    ],
)
def test_configure_fails_with_a_reason(make, kind, values, expected):
    """The node stays unconfigured and its failure says why."""
    import re

    node = make(kind, **values)
    assert node.trigger_configure() == node.bad
    assert node.model is None
    assert re.search(expected, node.failure), node.failure


@pytest.mark.parametrize("kind", ["simulator", "computed_torque"])
def test_errors_of_any_kind_in_a_transition_are_logged(make, kind, capfd, monkeypatch):
    """With their trace; the node then is unconfigured, and can be configured again."""
    node = make(kind, engine="graph")

    def fails(*_):
        raise TypeError("my_rnea() takes 4 positional arguments")

    for step, name in (("configure", "build"), ("activate", "activated")):
        with monkeypatch.context() as patch:
            patch.setattr(node, name, fails)
            if step == "activate":
                assert node.trigger_configure() == node.good
            assert getattr(node, f"trigger_{step}")() not in (node.good, None)
        assert node.failure == "TypeError: my_rnea() takes 4 positional arguments"
        assert node._state_machine.current_state[1] == "unconfigured"
        assert node.model is None
        logged = capfd.readouterr().err
        assert f"cannot {step}: Traceback" in logged and "my_rnea()" in logged
    assert node.start()


def test_gears_of_a_sidecar_reach_the_nodes(make, tmp_path):
    """The simulator simulates a geared robot; the geared joint is published as well."""
    extras = tmp_path / "gears.yaml"
    extras.write_text("gears:\n  - {joints: [joint5, joint6], ratio: -2.0}\n")
    node = make("simulator", model_extras=str(extras))
    assert node.trigger_configure() == node.good, node.failure
    assert node.model.nv == 6
    assert node.model.followers["joint6"].leader == "joint5"
    assert "joint6" in list(node.topics.message.name)


def test_structure_changes_in_unconfigured_only(make):
    """cleanup -> set -> configure swaps a solver; before that it is refused with a reason."""
    node = make("simulator")
    node.trigger_configure()
    name = "forward_dynamics.plugin_name"
    refused = _set(node, name, "dense")
    assert not refused.successful
    assert "clean up first" in refused.reason
    node.trigger_cleanup()
    assert _set(node, name, "dense").successful
    assert node.trigger_configure() == node.good
    assert node.robot.forward_dynamics == "dense"


def test_gains_are_live_and_checked(make):
    """A gain changes while active; a negative or non-finite one is refused."""
    node = make("computed_torque")
    node.trigger_configure()
    node.trigger_activate()
    assert _set(node, "gains.joint3.p", 55.0).successful
    assert node.controller.kp[2] == 55.0
    for bad in (-1.0, float("nan")):
        refused = _set(node, "gains.joint3.p", bad)
        assert not refused.successful
        assert refused.reason
    assert node.controller.kp[2] == 55.0


def test_an_unknown_parameter_is_named_with_the_nearest_one(make):
    """Also of several that are set at once; rclpy would leave out which."""
    from rclpy.exceptions import ParameterNotDeclaredException
    from rclpy.parameter import Parameter

    node = make("computed_torque")
    values = [
        Parameter("on_stale", value="zero"), Parameter("state_timeuot", value=1.0)
    ]  # fmt: skip
    message = "no parameter is called 'state_timeuot'; did you mean 'state_timeout'"
    with pytest.raises(ParameterNotDeclaredException, match=message):
        node.set_parameters(values)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gains__joint1__p", -5.0),
        ("state_timeout", -1.0),
        ("state_timeout", float("nan")),
        ("mode", "magic"),
        ("update_rate", 0),
        ("on_stale", "panic"),
    ],
)
def test_bad_start_values_are_refused(make, name, value):
    """Values from a file or the command line are checked, too."""
    kind = "simulator" if name == "update_rate" else "computed_torque"
    with pytest.raises(dyn.ModelError, match=name.split("__")[0]):
        node = make(kind, **{name: value})
        assert node.trigger_configure() == node.bad
        raise dyn.ModelError(node.failure)


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("gains__joint1__p", 5, r"write 5\.0"),
        ("gains__joint1__p", -5, "a number from 0 to 4e"),
        ("gravity", [0, 0, -10], r"write \[0\.0, 0\.0, -10\.0\]"),
    ],
)
def test_whole_numbers_are_refused_with_a_valid_one(make, name, value, valid):
    """What a message recommends is not refused in its turn."""
    with pytest.raises(dyn.ModelError, match=f"is .*; valid: {valid}"):
        node = make("computed_torque", **{name: value})
        assert node.trigger_configure() == node.bad
        raise dyn.ModelError(node.failure)


def test_every_parameter_says_what_it_is(make):
    """Type, description and range or choices are declared."""
    for kind in ("simulator", "computed_torque"):
        node = make(kind)
        node.trigger_configure()
        for name in node.specs:
            described = node.describe_parameter(name)
            assert described.description, name
            assert described.type != 0 or name == "joints", name
    assert "1/s²" in node.describe_parameter("gains.joint1.p").description


def test_joints_give_order_and_locks(make):
    """`joints` orders the arrays; the rest is locked where asked for."""
    names = ["joint7", "joint1"]
    node = make(
        "computed_torque", joints=names, unlisted_joints="lock", lock__joint4=-1.0
    )
    assert node.trigger_configure() == node.good
    assert node.model.joint_names == tuple(names)
    assert node.model.build.lock["joint4"] == -1.0


def test_any_message_without_a_state_gives_no_torque(make):
    """Deactivation and stopping send zero, never anything else."""
    node = make("computed_torque")
    node.trigger_configure()
    sent = []
    node._send = lambda tau: sent.append(tau)
    node.trigger_activate()
    node._watch(time.monotonic() + 1.0)
    assert sent == []
    node.trigger_deactivate()
    assert len(sent) == 1
    assert not sent[0].any()


def test_silence_after_enabling_again_is_answered_by_zero(make):
    """~/enable false and true with no state between does not silence the watchdog."""
    from sensor_msgs.msg import JointState
    from std_srvs.srv import SetBool

    node = make("computed_torque", state_timeout=0.01)
    node.trigger_configure()
    node.trigger_activate()
    sent = []
    node._send = lambda tau: sent.append(tau)
    q = [0, -0.6, 0, -2.2, 0, 1.6, 0.8]
    names = list(node.model.joint_names)
    state = JointState(name=names, position=[float(x) for x in q], velocity=[0.0] * 7)
    node.controller.rules = replace(node.controller.rules, state_timeout=1e9)
    for _ in range(5):
        node._on_state(state)
    assert sent[-1].any()
    node.controller.rules = replace(node.controller.rules, state_timeout=0.01)
    for data in (False, True):
        assert node._on_enable(SetBool.Request(data=data), SetBool.Response()).success
    count = len(sent)
    node._watch(time.monotonic() + 1.0)
    assert len(sent) > count
    assert not sent[-1].any()
    node.trigger_deactivate()
    node.trigger_activate()
    sent.clear()
    node._watch(time.monotonic() + 1.0)
    assert sent == []


def test_a_stop_of_the_controller_lasts_until_the_next_activation(make):
    """Diagnostics name its reason, torque stays zero, enabling is refused."""
    from sensor_msgs.msg import JointState
    from std_srvs.srv import SetBool

    node = make("computed_torque", state_timeout=10.0)
    node.trigger_configure()
    node.trigger_activate()
    sent = []
    node._send = lambda tau: sent.append(tau)
    names = list(node.model.joint_names)
    q = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
    state = JointState(name=names, position=q, velocity=[0.0] * 7)

    def feed():
        for _ in range(5):
            node._on_state(state)
        return sent[-1].any()

    assert feed()
    node.controller.safety.stop(0.0, "violation", "zero", "torque not finite")
    assert not feed()
    level, message, _ = node.status()
    assert (level, message) == (b"\x02", node.controller.idle)
    answer = node._on_enable(SetBool.Request(data=True), SetBool.Response())
    assert not answer.success
    assert "stopped: torque not finite; valid: deactivate" in answer.message
    node.trigger_deactivate()
    node.trigger_activate()
    assert feed()
    update = node.controller.update

    def stopped_meanwhile(*state):
        tau = update(*state)
        node.controller.safety.gate.close()
        return tau

    node.controller.update = stopped_meanwhile
    sent.clear()
    node._on_state(state)
    assert sent == []


def test_the_end_waits_until_the_last_zero_has_arrived(make, monkeypatch, capfd):
    """What is in flight when its publisher goes may be lost; the wait is bounded.

    A busy subscriber answers late, and LastResort takes a longer wait for a hang.
    """
    from rclpy.executors import SingleThreadedExecutor

    from ros_nodes.running import runtime

    node = make("computed_torque", autostart=True)
    node.wait_for_delivery()  # nothing is configured: nothing to wait for
    assert node.start()
    waits = []

    def unanswered(bound):
        waits.append(bound)
        return False

    monkeypatch.setattr(node.efforts, "wait_for_all_acked", unanswered)
    monkeypatch.setattr(node, "send_final_command", lambda: waits.append("zero"))
    monkeypatch.setattr(runtime, "note_signals", lambda *_: [1])
    monkeypatch.setattr(runtime, "make_executor", SingleThreadedExecutor)
    monkeypatch.setattr("rclpy.init", lambda **_: None)
    monkeypatch.setattr("rclpy.try_shutdown", lambda: None)
    monkeypatch.setattr(node, "destroy_node", lambda: waits.append("end"))
    assert runtime.run(lambda: node) == 0
    zero, wait, end = waits
    assert (zero, end) == ("zero", "end")
    assert 0.5 < wait.nanoseconds * 1e-9 < runtime.PATIENCE
    lost = "no acknowledgement of the last message on /computed_torque/commands"
    assert lost in capfd.readouterr().err


def test_hybrid_mode_follows_accelerations(make):
    """Listed joints follow accelerations; the others obey efforts; bad ones are refused."""
    from std_msgs.msg import Float64MultiArray

    node = make("simulator", **{"prescribed.joints": ["joint2"]})
    assert node.trigger_configure() == node.good, node.failure
    assert node.trigger_activate() == node.good
    robot = node.robot
    node.topics.on_accelerations(Float64MultiArray(data=[0.5]))
    start, now = robot.q.copy(), time.monotonic()  # however long a step takes
    for _ in range(50):
        robot.advance(now)
    t = 50 * robot.period
    index = node.model.v_slice("joint2").start
    np.testing.assert_allclose(robot.qd[index], 0.5 * t, rtol=1e-9)
    assert robot.q[index] > start[index]
    node.topics.on_accelerations(Float64MultiArray(data=[1.0, 2.0]))
    node.topics.on_accelerations(Float64MultiArray(data=[float("nan")]))
    assert robot.counters["acceleration of wrong size"] == 1
    assert robot.counters["acceleration not finite"] == 1
    np.testing.assert_array_equal(robot.qdd_u, [0.5])
    bad = make("simulator", **{"prescribed.joints": ["elbow"]})
    assert bad.trigger_configure() == bad.bad
    assert "'elbow' must be one of joint1" in bad.failure


def test_loops_reach_the_nodes(make):
    """The simulator closes a linkage and moves it; a solver for trees is refused."""
    choice = {"robot_description_file": LINKAGE}
    node = make("simulator", **choice)
    assert node.trigger_configure() == node.good, node.failure
    assert node.robot.forward_dynamics == "aba_loops"
    trees = make("simulator", **choice, **{"forward_dynamics.plugin_name": "aba"})
    assert trees.trigger_configure() == trees.bad
    assert "has loops (D)" in trees.failure
    solvers = {
        "forward_dynamics.plugin_name": "aba_loops",
        "step.plugin_name": "projected_euler",
    }
    node = make("simulator", **choice, **solvers)
    assert node.trigger_configure() == node.good, node.failure
    assert node.trigger_activate() == node.good
    gap = dyn.solver("loop_constraints").build(node.model)
    for _ in range(200):
        node.robot.advance(time.monotonic())
    assert np.abs(node.robot.qd).max() > 0.01
    assert np.abs(gap(node.robot.q, node.robot.qd).f).max() < 1e-8


@pytest.mark.parametrize("chosen", [None, "auto", "", "rnea_loops"])
def test_nodes_take_the_solver_of_the_robot_and_say_so(make, chosen):
    """Of a linkage that which closes loops, without a choice; /diagnostics names it."""
    linkage = {"robot_description_file": LINKAGE}
    name = "inverse_dynamics.plugin_name"
    choice = {} if chosen is None else {name: chosen}
    for robot, wanted in ((linkage, "rnea_loops"), ({}, "rnea")):
        if chosen == "rnea_loops" and not robot:
            continue
        law = make("computed_torque", **robot, **choice)
        assert law.trigger_configure() == law.good, law.failure
        assert law.status()[2]["inverse dynamics"] == wanted
    if chosen == "rnea_loops":
        return
    choice = {} if chosen is None else {"forward_dynamics.plugin_name": chosen}
    options = {"forward_dynamics.options.alpha": 50.0}
    for more in ({}, options):
        node = make("simulator", **linkage, **choice, **more)
        assert node.trigger_configure() == node.good, node.failure
        assert node.topics.channels.values()["forward dynamics"] == "aba_loops"
    assert node.robot.forward_dynamics.options["alpha"] == 50.0


FLAT = """<robot name="flat"><link name="a"/><link name="b"><inertial><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.9" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>
<limit lower="-3" upper="3" effort="9" velocity="9"/></joint></robot>"""


def test_diagnostics_of_two_robots_are_two_entries(ros):
    """The name has the namespace, and no slash before it."""
    from rclpy.parameter import Parameter

    from ros_nodes.computed_torque_node import ComputedTorqueNode

    values = {"robot_description_file": "two_link", "engine": "graph"}
    overrides = [Parameter(k, value=v) for k, v in values.items()]
    names = []
    for namespace in ("", "left", "right/hand"):
        node = ComputedTorqueNode(parameter_overrides=overrides, namespace=namespace)
        assert node.trigger_configure() == node.trigger_cleanup(), node.failure
        node.diagnostics = SimpleNamespace(publish=lambda x: names.append(x.status[0]))
        node.status = lambda: (b"\x00", "fine", {})
        node.diagnose()
        node.destroy_node()
    kind = ": ComputedTorqueNode"
    expected = [f"{x}computed_torque{kind}" for x in ("", "left/", "right/hand/")]
    assert [status.name for status in names] == expected


@pytest.mark.parametrize("kind", ["simulator", "computed_torque"])
def test_another_node_of_the_same_name_is_a_warning(make, kind, until, capfd):
    """As after a second `dyn up demo`; one log line for its begin, one for its end."""
    node, sent = make(kind), []
    node.status = lambda: (b"\x02", "stopped", {})
    node._without_robot = lambda: (b"\x00", "fine", {})
    node.diagnostics = SimpleNamespace(publish=lambda x: sent.append(x.status[0]))
    elsewhere = make(kind, namespace="left")

    def last():
        node.diagnose()
        return sent[-1]

    other = (elsewhere.get_name(), "/left")
    until(lambda: other in node.get_node_names_and_namespaces(), node, elsewhere)
    assert (last().level, last().message) == (b"\x00", "fine")
    second = make(kind)
    until(lambda: last().level == b"\x01", node, second)
    domain = os.environ["ROS_DOMAIN_ID"]
    said = f"another node /{kind} runs in this domain (ROS_DOMAIN_ID {domain})"
    valid = "valid: end it, or choose --namespace or another ROS_DOMAIN_ID"
    assert last().message == f"fine; {said}; {valid}"
    assert node._level == b"\x00"  # that of the node's own status
    assert node.trigger_configure() == node.good
    assert (last().level, last().message) == (b"\x02", f"stopped; {said}; {valid}")
    assert capfd.readouterr().err.count(f"[{kind}]: {said}; {valid}") == 1
    second.destroy_node()
    until(lambda: last().message == "stopped", node)
    assert capfd.readouterr().err.count(f"no longer: {said}") == 1


@pytest.mark.parametrize("kind", ["simulator", "computed_torque"])
def test_findings_are_warnings_in_diagnostics(make, kind):
    """What is doubtful about the robot is a WARN with the finding; strict refuses it.

    A hint, such as an element of another program, is a value alone.
    """
    levels = {}
    text = dyn.robots.path("arm7").read_text(encoding="utf-8")
    hinted = text.replace("</robot>", "<gazebo/></robot>")
    for name, robot in (("flat", FLAT), ("arm", ""), ("hinted", hinted)):
        node = make(kind, name, robot_description=robot, mode="gravity")
        assert node.trigger_configure() == node.good, node.failure
        sent = []
        node.status = lambda: (b"\x00", "fine", {})
        node.diagnostics = SimpleNamespace(publish=sent.append)
        node.diagnose()
        levels[name] = sent[0].status[0]
        assert node._level == b"\x00"
        assert node.trigger_cleanup() == node.good
    assert levels["arm"].level == b"\x00"
    assert levels["hinted"].level == b"\x00" and levels["hinted"].message == "fine"
    assert any("gazebo" in pair.value for pair in levels["hinted"].values)
    assert levels["flat"].level == b"\x01"
    assert "link 'b'" in levels["flat"].message
    values = {pair.key: pair.value for pair in levels["flat"].values}
    assert "link 'b'" in values["finding 1"]
    strict = make(kind, robot_description=FLAT, model_check="error")
    assert strict.trigger_configure() == strict.bad
    node = make(kind)
    described = node.describe_parameter("model_check").description
    assert "/diagnostics (WARN)" in described


def test_the_simulator_asks_for_effort_limits(make):
    """A joint without one takes no command; the parameter is the limit of another."""
    from std_msgs.msg import Float64MultiArray

    node = make("simulator", robot_description_file="cart_pole")
    assert node.trigger_configure() == node.good, node.failure
    assert node.trigger_activate() == node.good
    limited, loose = node.joints.index("slide"), node.joints.index("hinge")
    data = [0.0, 0.0]
    data[limited] = 0.25
    node.commands.on_array(Float64MultiArray(data=data))
    assert node.robot.tau.tolist() == data
    data[loose] = 1e-3
    node.commands.on_array(Float64MultiArray(data=data))
    assert not node.robot.tau[loose]
    assert node.counters["command without limit"] == 1
    chosen = make(
        "simulator", robot_description_file="cart_pole", effort_limits__hinge=0.5
    )
    assert chosen.trigger_configure() == chosen.good, chosen.failure
    assert chosen.trigger_activate() == chosen.good
    data[loose] = 3.0
    chosen.commands.on_array(Float64MultiArray(data=data))
    assert chosen.robot.tau[loose] == 0.5
    wrong = make(
        "simulator", robot_description_file="cart_pole", effort_limits__hing=0.5
    )
    assert wrong.trigger_configure() == wrong.bad
    assert "'effort_limits.hinge'" in wrong.failure
