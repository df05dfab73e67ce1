"""Lifecycle transitions and parameters, driven directly, without communication."""

import time
from dataclasses import replace

import numpy as np
import pytest

import dyn_core as dyn

pytestmark = pytest.mark.ros


@pytest.fixture
def make(ros):
    """Return a function that makes a node with parameters."""
    from rclpy.lifecycle import TransitionCallbackReturn
    from rclpy.parameter import Parameter

    made = []

    def node(kind, **values):
        if kind == "simulator":
            from ros_nodes.simulator_node import SimulatorNode as Kind
        else:
            from ros_nodes.computed_torque_node import ComputedTorqueNode as Kind
        given = {"robot_description_file": "arm7", "autostart": False, **values}
        overrides = [Parameter(k.replace("__", "."), value=v) for k, v in given.items()]
        made.append(Kind(parameter_overrides=overrides))
        made[-1].good = TransitionCallbackReturn.SUCCESS
        made[-1].bad = TransitionCallbackReturn.FAILURE
        return made[-1]

    yield node
    for each in made:
        each.destroy_node()


def _set(node, name, value):
    from rclpy.parameter import Parameter

    return node.set_parameters([Parameter(name, value=value)])[0]


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
    serve = node._service_change_state.callback
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


def test_gears_of_a_sidecar_reach_the_nodes(make, tmp_path):
    """The simulator simulates a geared robot; the geared joint is published as well."""
    extras = tmp_path / "gears.yaml"
    extras.write_text("gears:\n  - {joints: [joint5, joint6], ratio: -2.0}\n")
    node = make("simulator", model_extras=str(extras))
    assert node.trigger_configure() == node.good, node.failure
    assert node.model.nv == 6
    assert node.model.followers["joint6"].leader == "joint5"
    assert "joint6" in node.writer.names


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
    from rclpy.exceptions import ParameterException

    with pytest.raises(ParameterException, match=name.split("__")[0]):
        node = make(kind, **{name: value})
        assert node.trigger_configure() == node.bad
        raise ParameterException(node.failure, [])


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
    node._check_stale()
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
    time.sleep(0.02)
    node._check_stale()
    assert not sent[-1].any()
    node.trigger_deactivate()
    node.trigger_activate()
    sent.clear()
    node._check_stale()
    assert sent == []


def test_the_end_waits_until_the_last_zero_has_arrived(make, monkeypatch):
    """What is in flight when its publisher goes may be lost; the wait is bounded."""
    from rclpy.executors import SingleThreadedExecutor

    from ros_nodes import _runtime

    node = make("computed_torque", autostart=True)
    node.wait_for_delivery()  # nothing is configured: nothing to wait for
    assert node.start()
    waits = []
    monkeypatch.setattr(node.efforts, "wait_for_all_acked", waits.append)
    monkeypatch.setattr(node, "send_final_command", lambda: waits.append("zero"))
    monkeypatch.setattr(_runtime, "note_signals", lambda: [1])
    monkeypatch.setattr(_runtime, "make_executor", SingleThreadedExecutor)
    monkeypatch.setattr("rclpy.init", lambda **_: None)
    monkeypatch.setattr("rclpy.try_shutdown", lambda: None)
    monkeypatch.setattr(node, "destroy_node", lambda: waits.append("end"))
    assert _runtime.run(lambda: node) == 0
    zero, wait, end = waits
    assert (zero, end) == ("zero", "end")
    assert 0.0 < wait.nanoseconds * 1e-9 <= 0.2


def test_hybrid_mode_follows_accelerations(make):
    """Listed joints follow accelerations; the others obey efforts; bad ones are refused."""
    from std_msgs.msg import Float64MultiArray

    node = make("simulator", **{"prescribed.joints": ["joint2"]})
    assert node.trigger_configure() == node.good, node.failure
    assert node.trigger_activate() == node.good
    robot = node.robot
    node._on_accelerations(Float64MultiArray(data=[0.5]))
    start, now = robot.q.copy(), time.monotonic()  # however long a step takes
    for _ in range(50):
        robot.advance(now)
    t = 50 * robot.period
    at = node.model.v_slice("joint2").start
    np.testing.assert_allclose(robot.qd[at], 0.5 * t, rtol=1e-9)
    assert robot.q[at] > start[at]
    node._on_accelerations(Float64MultiArray(data=[1.0, 2.0]))
    node._on_accelerations(Float64MultiArray(data=[float("nan")]))
    assert robot.counters["acceleration of wrong size"] == 1
    assert robot.counters["acceleration not finite"] == 1
    np.testing.assert_array_equal(robot.qdd_u, [0.5])
    bad = make("simulator", **{"prescribed.joints": ["elbow"]})
    assert bad.trigger_configure() == bad.bad
    assert "'elbow' must be one of joint1" in bad.failure


def test_loops_reach_the_nodes(make):
    """The simulator closes a linkage and moves it; a solver for trees is refused."""
    from pathlib import Path

    linkage = Path(__file__).parents[2] / "examples" / "four_bar" / "four_bar.urdf"
    choice = {"robot_description_file": str(linkage)}
    node = make("simulator", **choice)
    assert node.trigger_configure() == node.bad
    assert "has loops (D)" in node.failure
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
    law = make(
        "computed_torque", **choice, **{"inverse_dynamics.plugin_name": "rnea_loops"}
    )
    assert law.trigger_configure() == law.good, law.failure
