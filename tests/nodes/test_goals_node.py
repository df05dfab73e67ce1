"""Goals in the controller's node: constraints, partial trajectories, the action."""

import json
import sys
import time
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

import dyn_core as dyn

pytestmark = pytest.mark.ros
START = (0.2, 0.3)
PERIOD = 0.01


def _feedback():
    """Return a message with the fields of the action's feedback."""
    from std_msgs.msg import Header
    from trajectory_msgs.msg import JointTrajectoryPoint

    points = {k: JointTrajectoryPoint() for k in ("desired", "actual", "error")}
    return SimpleNamespace(header=Header(), joint_names=[], **points)


class Driven:
    """A node whose time and states come from the test, without communication."""

    def __init__(self, monkeypatch, **values):
        from rclpy.parameter import Parameter
        from sensor_msgs.msg import JointState

        from ros_nodes import computed_torque_node
        from ros_nodes.controller import trajectory_action, trajectory_input

        self.t = 1000.0
        clock = SimpleNamespace(monotonic=lambda: self.t)
        for module in (computed_torque_node, trajectory_action, trajectory_input):
            monkeypatch.setattr(module, "time", clock)
        settings = {"robot_description_file": "two_link", "engine": "graph", **values}
        self.node = computed_torque_node.ComputedTorqueNode(
            parameter_overrides=[Parameter(k, value=v) for k, v in settings.items()]
        )
        assert self.node.start(), self.node.failure
        self.node.watchdog.stop()  # it has the time of the machine
        self.names = list(self.node.controller.model.joint_names)
        self.off, self.message = np.zeros(2), JointState(name=self.names)
        self.run(0.05)

    def run(self, seconds):
        """Feed states of a robot that is where the reference is, but for a deviation."""
        controller = self.node.controller
        while seconds > 0:
            self.t += PERIOD
            q, qd = np.array(START), np.zeros(2)
            if controller.reference is not None:
                controller.follower.advance(self.t)
                q, qd = controller.reference[:2]
            self.message.position = (q - self.off).tolist()
            self.message.velocity = qd.tolist()
            self.node._on_state(self.message)
            self.node.goals._deliver()
            seconds -= PERIOD

    def settle(self):
        """Wait for what the worker prepares, and take it over."""
        deadline = time.monotonic() + 20
        while not self.node.worker.ready:
            assert time.monotonic() < deadline
        self.node.worker.deliver()

    def trajectory(self, names, q, seconds=0.5):
        """Return a JointTrajectory to a place at rest."""
        from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

        point = JointTrajectoryPoint(positions=list(q), velocities=[0.0] * len(q))
        point.accelerations = [0.0] * len(q)
        point.time_from_start.nanosec = int(seconds * 1e9)
        return JointTrajectory(joint_names=list(names), points=[point])

    def publish(self, *what):
        """Let a trajectory of the topic come, as it comes over the wire."""
        from rclpy.serialization import serialize_message

        self.node.trajectories.on_message(serialize_message(self.trajectory(*what)))
        self.settle()

    def send(self, *what, **more):
        """Let a goal of the action come; return its handle, with its result."""
        duration = SimpleNamespace(sec=0, nanosec=0)
        rest = {"path_tolerance": [], "goal_tolerance": []}
        request = {"trajectory": self.trajectory(*what), **rest, **more}
        handle = MagicMock(is_cancel_requested=False)
        handle.request = SimpleNamespace(goal_time_tolerance=duration, **request)
        handle.goal_id.uuid = np.frombuffer(np.int64(id(handle)).tobytes(), np.uint8)
        service = self.node.goals.service
        service.action = SimpleNamespace(Result=SimpleNamespace, Feedback=_feedback)
        service.finish = lambda handle, result: setattr(handle, "result", result)
        service.accept(handle)
        if self.node.active:
            self.settle()
        return handle


@pytest.fixture
def drive(ros, monkeypatch):
    """Return a function that makes a Driven node."""
    made = []

    def begin(**values):
        made.append(Driven(monkeypatch, **values))
        return made[-1]

    yield begin
    for driven in made:
        driven.node.destroy_node()


def test_constraints_hold_for_the_topic(drive, capfd):
    """Who leaves the path brakes and holds; live parameters, refused ones too."""
    from rclpy.parameter import Parameter

    driven = drive(**{"constraints.joint2.trajectory": 0.05})
    node, (_, second) = driven.node, driven.names
    driven.publish(driven.names, (0.2, 0.7))
    driven.run(0.2)
    driven.off = np.array([0.0, 0.06])
    driven.run(0.02)
    logged = capfd.readouterr().err
    assert "PATH_TOLERANCE_VIOLATED" in logged
    assert f"joint '{second}' is off by 0.06; tolerance 0.05" in logged
    driven.off = np.zeros(2)
    driven.run(0.5)
    assert node.controller.trajectory is None
    assert not node.controller.reference.qd.any()
    assert node.controller.reference.q[1] < 0.6
    name = "constraints.joint2.trajectory"
    assert node.set_parameters([Parameter(name, value=0.2)])[0].successful
    refused = node.set_parameters([Parameter(name, value=-1.0)])[0]
    assert not refused.successful and "out of range" in refused.reason
    driven.publish(driven.names, (0.2, 0.7))
    driven.off = np.array([0.0, 0.1])
    driven.run(0.6)
    assert np.allclose(node.controller.reference.q, (0.2, 0.7))
    assert "aborted" not in capfd.readouterr().err


def test_a_stale_command_is_a_warning(drive, capfd):
    """Once, with what it is; the robot holds where it is. The parameter is live."""
    from rclpy.parameter import Parameter

    driven = drive(cmd_timeout=0.4)
    node = driven.node
    driven.publish(driven.names, (0.3, 0.5))
    driven.run(0.55)
    driven.off = np.array([0.02, 0.0])
    driven.run(0.5)
    assert np.allclose(node.controller.reference.q, (0.28, 0.5))
    node._look()
    driven.run(0.5)
    node._look()
    logged = capfd.readouterr().err
    assert logged.count("cmd_timeout 0.4 s") == 1
    assert "[WARN]" in logged and "the robot holds where it is" in logged
    for name, value in (("constraints.goal_time", 0.4), ("cmd_timeout", -1.0)):
        refused = node.set_parameters([Parameter(name, value=value)])[0]
        assert not refused.successful
    assert (
        "more than constraints.goal_time"
        in node.set_parameters([Parameter("constraints.goal_time", value=1.0)])[
            0
        ].reason
    )
    assert node.set_parameters([Parameter("cmd_timeout", value=0.0)])[0].successful
    driven.off = np.zeros(2)
    driven.publish(driven.names, (0.3, 0.5))
    driven.run(0.55)
    driven.off = np.array([0.02, 0.0])
    driven.run(1.0)
    assert np.allclose(node.controller.reference.q, (0.3, 0.5))


def test_a_timeout_that_goals_outlast_is_refused(ros):
    """At the start, in a sentence."""
    from rclpy.parameter import Parameter

    from ros_nodes.computed_torque_node import ComputedTorqueNode

    values = {"robot_description_file": "two_link", "engine": "graph",
              "cmd_timeout": 1.0, "constraints.goal_time": 2.0}  # fmt: skip
    node = ComputedTorqueNode(
        parameter_overrides=[Parameter(k, value=v) for k, v in values.items()]
    )
    try:
        assert not node.start()
        assert "more than constraints.goal_time (2)" in str(node.failure)
    finally:
        node.destroy_node()


def test_a_trajectory_of_the_future_is_said_to_wait(drive, capfd):
    """With its start in ROS time and the time until then; more than a day is refused."""
    from rclpy.serialization import serialize_message

    driven = drive()
    now = driven.node.get_clock().now().nanoseconds // 10**9
    for wait in (100, 90_000):
        message = driven.trajectory(driven.names, (0.3, 0.5))
        message.header.stamp.sec = now + wait
        driven.node.trajectories.on_message(serialize_message(message))
        driven.settle()
    logged = capfd.readouterr().err
    assert (
        f"a trajectory of 0.500 s waits until {now + 100}.000 s of ROS time" in logged
    )
    assert "s from now" in logged and "following" not in logged
    assert "valid: at most 86400 s, a day" in logged
    assert driven.node.counters["trajectory refused"] == 1


def test_a_trajectory_of_some_joints(drive, capfd):
    """Refused without allow_partial_joints_goal; with it the others stay."""
    driven = drive()
    first, second = driven.names
    driven.publish([second], (0.5,))
    assert driven.node.counters["trajectory refused"] == 1
    assert "missing joints" in capfd.readouterr().err
    from rclpy.parameter import Parameter

    driven.node.set_parameters([Parameter("allow_partial_joints_goal", value=True)])
    driven.publish([second], (0.5,))
    driven.run(0.6)
    assert np.allclose(driven.node.controller.reference.q, (0.2, 0.5))
    driven.publish(["elbow"], (0.5,))
    assert driven.node.counters["trajectory refused"] == 2
    assert "no joint is called 'elbow'" in capfd.readouterr().err


def test_goals_of_the_action(drive):
    """Reached, refused, canceled, replaced by the topic, ended by the node."""
    driven = drive(**{"constraints.goal_time": 0.3, "constraints.joint1.goal": 0.01})
    node, names = driven.node, driven.names
    handle = driven.send(names, (0.4, 0.5))
    driven.run(0.3)
    node.goals._report()
    ((message,), _) = handle.publish_feedback.call_args
    assert message.joint_names == names
    assert 0.2 < message.desired.positions[0] < 0.4
    assert message.desired.accelerations and message.error.velocities
    assert message.actual.time_from_start.nanosec > 0
    driven.run(0.3)
    handle.succeed.assert_called_once_with()
    assert handle.result.error_code == 0
    assert driven.send(names[:1], (0.4,)).result.error_code == -2
    driven.off = np.array([0.02, 0.0])
    late = driven.send(names, (0.2, 0.5))
    driven.run(0.9)
    late.abort.assert_called_once_with()
    assert late.result.error_code == -5
    driven.off = np.zeros(2)
    driven.run(0.1)
    handle = driven.send(names, (0.4, 0.6))
    driven.run(0.2)
    assert node.goals.service.cancel(handle)
    handle.is_cancel_requested = True
    driven.run(0.3)
    handle.canceled.assert_called_once_with()
    assert not node.controller.reference.qd.any()
    handle = driven.send(names, (0.4, 0.6))
    driven.run(0.1)
    driven.publish(names, (0.1, 0.2))
    driven.run(0.02)
    assert handle.result.error_string == "another trajectory has taken over"
    handle = driven.send(names, (0.4, 0.6))
    driven.run(0.1)
    assert node.trigger_deactivate() is not None
    assert handle.result.error_string == "the controller was deactivated"
    handle = driven.send(names, (0.4, 0.6))
    assert handle.result.error_string == "the controller is not active"
    values = node.status()[2]
    assert (values["goal succeeded"], values["goal canceled"]) == (1, 1)
    assert values["goal aborted"] == 5


def test_a_goal_of_silence(drive):
    """The timer of the node notices it, where no state comes."""
    driven = drive()
    handle = driven.send(driven.names, (0.4, 0.5))
    driven.run(0.1)
    driven.t += 0.2
    driven.node.goals._deliver()
    assert handle.result.error_string == "the joint state is stale"
    assert handle.result.error_code == -1


def test_a_burst_of_goals(drive):
    """Each of fifty goals has one result; the last one is followed to its end."""
    driven = drive()
    driven.settle = lambda: None  # not between the goals
    handles = [driven.send(driven.names, (0.4, 0.5)) for _ in range(50)]
    worker, deadline = driven.node.worker, time.monotonic() + 20
    while len(worker.ready) < 50:
        assert time.monotonic() < deadline
    worker.deliver()
    driven.run(0.7)
    *others, last = [handle.result for handle in handles]
    assert last.error_code == 0, last
    assert {r.error_string for r in others} == {
        "a newer goal came while this one was read"
    }
    handles[-1].succeed.assert_called_once_with()
    assert sum(handle.abort.call_count for handle in handles) == 49


@pytest.mark.parametrize("way", [("deactivate",), ("deactivate", "cleanup")])
def test_goals_that_are_still_checked_at_the_end(drive, way):
    """Each has its result at once, and what the worker brings later changes nothing."""
    driven = drive()
    driven.settle = lambda: None
    handles = [driven.send(driven.names, (0.4, 0.5)) for _ in range(5)]
    node, deadline = driven.node, time.monotonic() + 20
    for name in way:
        getattr(node, f"trigger_{name}")()
    assert {x.result.error_string for x in handles} == {
        "the controller was deactivated"
    }
    while len(node.worker.ready) < 5:
        assert time.monotonic() < deadline
    node.worker.deliver()
    assert [handle.abort.call_count for handle in handles] == [1] * 5


def test_a_goal_whose_check_fails_in_an_unknown_way(drive):
    """It is aborted with the type and the text of the error."""
    driven = drive()

    def fails(*_, **__):
        raise KeyError("a bug")

    service = driven.node.goals.service
    service.settings, driven.settle = fails, lambda: None
    handle = driven.send(driven.names, (0.4, 0.5))
    assert handle.result.error_code == -1
    assert handle.result.error_string == "KeyError: 'a bug'"
    assert not service.handles


def test_the_queues_of_the_action_are_deep(ros, monkeypatch):
    """A request that is lost has a client that waits for ever."""
    from ros_nodes.controller import trajectory_action

    made = MagicMock()
    monkeypatch.setattr(trajectory_action, "CycleActionServer", made)
    trajectory_action.make_server(MagicMock(), None)
    deep = made.call_args.kwargs
    for name in ("goal", "result", "cancel"):
        assert deep[f"{name}_service_qos_profile"].depth >= 1000


def test_an_emergency_stop_while_a_goal_is_checked(drive):
    """The goal is not followed, nor after a reset."""
    driven = drive()
    service, worker = driven.node.goals.service, driven.node.worker
    kept = []
    worker.submit = lambda kind, make, take, superseded: kept.append((make, take))
    worker.ready.append(None)
    worker.deliver = lambda: worker.ready.clear()
    handle = driven.send(driven.names, (0.4, 0.5))
    ((make, take),) = kept
    made = make()
    driven.node.controller.estop(driven.t, "door open")
    driven.node.controller.reset_stop()
    take(made)
    assert "stopped while the goal was read" in handle.result.error_string
    assert service.handles == {}


def test_the_action_over_dds(start, ros, until):
    """Goals succeed, break a tolerance, lack joints, and are canceled."""
    reason = "control_msgs has no wheel; it comes with ROS 2 from packages"
    action = pytest.importorskip("control_msgs.action", reason=reason)
    from action_msgs.msg import GoalStatus
    from control_msgs.msg import JointTolerance
    from rclpy.action import ActionClient
    from rclpy.node import Node
    from sensor_msgs.msg import JointState

    from ros_nodes.graphs import GRAPHS

    succeeded, aborted = GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_ABORTED
    place = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
    settings = {"robot_description_file": "arm7", "initial_positions": place,
                "update_rate": 200, "state_timeout": 1.0,
                "allow_partial_joints_goal": True}  # fmt: skip
    params = json.dumps({"/**": {"ros__parameters": settings}})
    start(GRAPHS["demo"].nodes, params)
    node, errors, seen = Node("client"), [], []
    node.create_subscription(JointState, "computed_torque/error", errors.append, 1)
    name = "computed_torque/follow_joint_trajectory"
    client = ActionClient(node, action.FollowJointTrajectory, name)
    until(client.server_is_ready, node, expected="the server")
    until(lambda: errors, node, expected="an active controller")

    def ask(shift, seconds, joints=7, **more):
        names = dyn.load("arm7").joint_names[:joints]
        goal = action.FollowJointTrajectory.Goal(**more)
        where = [q + shift for q in place[:joints]]
        goal.trajectory = Driven.trajectory(None, names, where, seconds % 1)
        goal.trajectory.points[0].time_from_start.sec = int(seconds)
        sent = client.send_goal_async(goal, feedback_callback=seen.append)
        until(sent.done, node, expected="an answer")
        return sent.result()

    def end(handle):
        result = handle.get_result_async()
        until(result.done, node, expected="a result")
        return result.result().status, result.result().result

    try:
        status, result = end(ask(0.05, 0.5))
        assert (status, result.error_code) == (succeeded, 0), result
        assert seen[-1].feedback.joint_names[0] == "joint1"
        assert seen[-1].feedback.desired.positions[0] == pytest.approx(0.05, abs=0.02)
        status, result = end(ask(0.1, 0.5, joints=1))
        assert (status, result.error_code) == (succeeded, 0), result
        tight = [JointTolerance(name="joint2", position=1e-9)]
        status, result = end(ask(0.2, 0.5, path_tolerance=tight))
        assert (status, result.error_code) == (aborted, -4), result
        assert "joint 'joint2' is off" in result.error_string
        seen.clear()
        handle = ask(0.3, 5)
        until(lambda: seen, node, expected="feedback")
        canceled = handle.cancel_goal_async()
        result = handle.get_result_async()
        until(lambda: canceled.done() and result.done(), node, expected="the end")
        assert "brakes and holds" in result.result().result.error_string
    finally:
        client.destroy()
        node.destroy_node()


def test_bursts_of_goals_over_dds(start, ros, until):
    """Of fifty goals at once each is accepted and has a result, while states come."""
    reason = "control_msgs has no wheel; it comes with ROS 2 from packages"
    action = pytest.importorskip("control_msgs.action", reason=reason)
    from rclpy.action import ActionClient
    from rclpy.node import Node
    from rclpy.qos import qos_profile_parameters
    from sensor_msgs.msg import JointState

    from ros_nodes.graphs import GRAPHS

    place = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
    settings = {"robot_description_file": "arm7", "initial_positions": place,
                "update_rate": 200, "state_timeout": 1.0}  # fmt: skip
    params = json.dumps({"/**": {"ros__parameters": settings}})
    start(GRAPHS["demo"].nodes, params)
    node, errors = Node("client"), []
    node.create_subscription(JointState, "computed_torque/error", errors.append, 1)
    services = ("goal", "result", "cancel")
    client = ActionClient(
        node, action.FollowJointTrajectory, "computed_torque/follow_joint_trajectory",
        **{f"{name}_service_qos_profile": qos_profile_parameters for name in services},
    )  # fmt: skip
    until(client.server_is_ready, node, expected="the server")
    until(lambda: errors, node, expected="an active controller")
    goal = action.FollowJointTrajectory.Goal()
    goal.trajectory = Driven.trajectory(None, dyn.load("arm7").joint_names, place)
    try:
        for _ in range(3):
            sent = [client.send_goal_async(goal) for _ in range(50)]
            until(lambda s=sent: all(x.done() for x in s), node, expected="answers",
                  detail=lambda s=sent: f"{sum(x.done() for x in s)} of 50")  # fmt: skip
            assert all(x.result().accepted for x in sent)
            ends = [x.result().get_result_async() for x in sent]
            until(lambda s=ends: all(x.done() for x in s), node, expected="results",
                  detail=lambda s=ends: f"{sum(x.done() for x in s)} of 50")  # fmt: skip
            codes = [x.result().result.error_code for x in ends]
            assert set(codes) <= {0, -1}  # -1: superseded
            canceled = [x.result().cancel_goal_async() for x in sent]
            until(lambda s=canceled: all(x.done() for x in s), node, expected="cancels")
    finally:
        client.destroy()
        node.destroy_node()


def test_no_action_where_control_msgs_cannot_be_loaded(ros, monkeypatch):
    """Its Python part may be there without its libraries; the node drives on."""
    from rosidl_generator_py.import_type_support_impl import UnsupportedTypeSupport

    from ros_nodes.controller.trajectory_action import action_type

    class Generated(type):
        _TYPE_SUPPORT = None

        @classmethod
        def __import_type_support__(cls):
            raise UnsupportedTypeSupport("control_msgs")

    package = SimpleNamespace(FollowJointTrajectory=Generated("Action", (), {}))
    monkeypatch.setitem(sys.modules, "control_msgs", SimpleNamespace(action=package))
    monkeypatch.setitem(sys.modules, "control_msgs.action", package)
    assert action_type() is None
