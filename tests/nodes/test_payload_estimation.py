"""The payload that the controller's node estimates: over DDS, with noise."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Payload
from dyn_core.model.payload import PayloadInput
from dyn_core.simulation.contacts import WrenchSensor
from ros_nodes.controller.controller_settings import without_effect

pytestmark = pytest.mark.ros
DT = 2e-3
Q = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8])
SIZE = np.array([0.3, 0.2, 0.3, 0.2, 0.4, 0.3, 0.4])
RATE = np.array([3.0, 4.0, 3.5, 4.5, 4.0, 5.0, 4.5])
LOAD = Payload(1.2, (0.02, -0.01, 0.09), (0.006, 0.0, 0.0, 0.008, 0.0, 0.004))
WATCH = {
    "payload.link": "tool",
    "payload_estimation.plugin_name": "payload_filter",
}


@pytest.fixture
def make(controller_node):
    """Return a function that makes a controller with parameters."""

    def node(active=True, **values):
        stamped = {"engine": "graph", "max_state_age": 0.0}  # stamps are of no clock
        one = controller_node(active, **{**stamped, **values})
        if active:
            assert one.failure is None
        else:
            one.trigger_configure()
        return one

    return node


def _state(node, q, qd, tau, t):
    from sensor_msgs.msg import JointState

    message = JointState(name=list(node.controller.model.joint_names))
    message.position, message.velocity = q.tolist(), qd.tolist()
    message.effort = [] if tau is None else tau.tolist()
    message.header.stamp.sec = int(t)
    message.header.stamp.nanosec = round((t - int(t)) * 1e9)
    return message


class _Arm:
    """A simulated arm with a payload; it measures with noise."""

    def __init__(self, seed):
        self.model, self.rng = dyn.load("arm7"), np.random.default_rng(seed)
        self.step = dyn.solver("rk4").build(
            self.model, engine="graph", joint_friction=True, inputs=["tool.payload"]
        )
        self.q, self.qd, self.tau, self.t = Q.copy(), np.zeros(7), np.zeros(7), 1.0
        self.payload = LOAD

    def move(self, tau):
        """Move by a cycle under an effort."""
        self.tau = tau
        self.q, self.qd = self.step(self.q, self.qd, tau, DT, self.payload.parameters)
        self.t += DT

    def message(self, node, effort=True):
        """Return what is measured: encoders, velocities and efforts with noise."""
        noise = self.rng.normal(size=(2, 7))
        q = np.round(self.q / 5e-5) * 5e-5
        tau = self.tau + 0.2 * noise[1] if effort else None
        return _state(node, q, self.qd + 1e-3 * noise[0], tau, self.t)


def _watch(node):
    (see,) = node.after_answers
    return see.__self__


def _waving(names):
    """Return a trajectory of two seconds that excites all joints."""
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    message = JointTrajectory(joint_names=list(names))
    for k in range(1, 42):
        t = 0.05 * k
        grow = min(t / 0.3, 1.0)
        point = JointTrajectoryPoint(
            positions=(Q + grow * SIZE * np.sin(RATE * t)).tolist()
        )
        point.time_from_start.sec = int(t)
        point.time_from_start.nanosec = round((t - int(t)) * 1e9)
        message.points.append(point)
    return message


def test_two_seconds_of_motion_show_the_payload(make, until):
    """Mass to 2 %, first moments to 5 %, inertia within what its deviations say."""
    from geometry_msgs.msg import InertiaStamped
    from rclpy.node import Node
    from rosgraph_msgs.msg import Clock
    from std_msgs.msg import Float64MultiArray
    from trajectory_msgs.msg import JointTrajectory

    node = make(
        allow_nonzero_velocity_at_trajectory_end=True, use_sim_time=True, **WATCH
    )
    watch = _watch(node)
    probe, arm, heard = Node("probe"), _Arm(0), {"payload": [], "payload_deviation": []}
    sent = []
    names = node.controller.model.joint_names
    try:
        for topic, kept in heard.items():
            topic = f"computed_torque/{topic}"
            probe.create_subscription(InertiaStamped, topic, kept.append, 10)
        commands = "computed_torque/commands"
        probe.create_subscription(Float64MultiArray, commands, sent.append, 1)
        states = probe.create_publisher(
            type(_state(node, Q, Q, Q, 0)), "joint_states", 1
        )
        clock = probe.create_publisher(Clock, "/clock", 1)
        tracks = probe.create_publisher(
            JointTrajectory, "computed_torque/joint_trajectory", 1
        )

        def cycle():
            count, patience = len(sent), time.monotonic() + 0.2
            message = arm.message(node)
            clock.publish(Clock(clock=message.header.stamp))
            states.publish(message)
            until(lambda: len(sent) > count or time.monotonic() > patience, probe, node)
            arm.move(np.array(sent[-1].data) if sent else np.zeros(7))

        until(
            lambda: node.count_publishers("joint_states")
            and probe.count_subscribers("computed_torque/joint_trajectory")
            and probe.count_publishers(commands),
            probe, node,
        )  # fmt: skip
        while len(sent) < 5:
            cycle()
        tracks.publish(_waving(names))
        until(lambda: node.controller.trajectory is not None or cycle(), probe, node)
        watch.estimator.forget()
        begin = arm.t
        while arm.t < begin + 2.0:
            cycle()
        count = len(heard["payload"])
        until(
            lambda: len(heard["payload"]) > count + 1
            and len(heard["payload_deviation"]) > count + 1,
            probe, node,
        )  # fmt: skip
        estimate = watch.estimator.estimate
        truth = LOAD.parameters
        assert abs(estimate.mass / LOAD.mass - 1) < 0.02
        miss = np.linalg.norm(estimate.moments - truth[1:4])
        assert miss < 0.05 * np.linalg.norm(truth[1:4])
        normal = (estimate.ten - truth) / estimate.deviations
        assert np.abs(normal).max() < 4.0, normal
        assert estimate.deviations[[4, 6, 9]].max() < 0.004
        assert watch.estimator.changes == 0
        message = heard["payload"][-1]
        assert message.header.frame_id == "tool"
        body, spread = message.inertia, heard["payload_deviation"][-1].inertia
        assert body.m == pytest.approx(float(estimate.mass), abs=1e-9)
        assert [body.com.x, body.com.y, body.com.z] == pytest.approx(LOAD.com, abs=0.01)
        assert body.ixx == pytest.approx(estimate.inertia[0], abs=1e-9)
        assert body.iyy == pytest.approx(estimate.inertia[3], abs=1e-9)
        assert spread.m == pytest.approx(float(estimate.deviations[0]), rel=1e-6)
        values = node.status()[2]
        assert " kg ± 0.0" in values["payload estimate"]
        assert values["payload estimate: changes"] == 0
        assert not np.any(node.controller.carried.values)  # the torque knows nothing
    finally:
        probe.destroy_node()


def _feed(node, cycles, effort=True, seed=1):
    """Feed cycles of an arm that holds its payload."""
    arm = _Arm(seed)
    sent = []
    node._send = lambda tau: sent.append(tau.copy())
    for _ in range(cycles):
        node._on_state(arm.message(node, effort))
        arm.move(sent[-1] if sent else np.zeros(7))
    return arm


@pytest.mark.parametrize("effort", ["measured", "sent"])
def test_efforts_are_those_of_the_message_or_of_the_controller(make, effort):
    """An arm that holds still shows mass times distance: its weight is seen."""
    node = make(**WATCH, **{"payload_estimation.effort": effort})
    arm = _feed(node, 300, effort == "measured")
    estimator = _watch(node).estimator
    weight = dyn.solver("gravity").build(
        arm.model, engine="graph", inputs=["tool.payload"]
    )
    torque, spread = (
        weight(arm.q, x) - weight(arm.q, np.zeros(10))
        for x in (estimator.estimate.ten, LOAD.parameters)
    )
    assert np.abs(spread).max() > 3
    np.testing.assert_allclose(torque, spread, atol=0.3)
    assert "effort" not in node.status()[1]


def test_without_efforts_nothing_is_learned_and_said_so(make):
    """The condition names the parameter; with efforts it is gone."""
    node = make(**WATCH)
    arm = _feed(node, 30, effort=False)
    assert _watch(node).estimator.estimate is None
    assert "joint_states has no effort" in node.status()[1]
    assert "payload_estimation.effort: sent" in node.status()[1]
    assert node.status()[2]["payload estimate"] == "none yet"
    for _ in range(5):
        node._on_state(arm.message(node))
        arm.move(np.zeros(7))
    assert "no effort" not in node.status()[1]


def _wrench(reading, frame="flange"):
    from geometry_msgs.msg import WrenchStamped

    message = WrenchStamped()
    message.header.frame_id = frame
    torque, force = message.wrench.torque, message.wrench.force
    torque.x, torque.y, torque.z, force.x, force.y, force.z = reading.tolist()
    return message


def test_a_force_torque_sensor_takes_the_place_of_efforts(make, monkeypatch):
    """A turning arm shows mass and centre; silence and another frame are told."""
    sensor = {"payload_estimation.wrench_topic": "/wrist/wrench"}
    node = make(active=False, **WATCH, **sensor)
    assert "needs payload_estimation.sensor_link" in node.failure
    sensor |= {"payload_estimation.sensor_link": "flange"}
    node = make(**WATCH, **sensor)
    watch, payload = _watch(node), PayloadInput("tool")
    assert node.count_subscribers("/wrist/wrench") == 1
    read = WrenchSensor(node.controller.model, "flange", payload, "graph").read
    clock, none = SimpleNamespace(now=5.0), np.zeros((7, 6))
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    for k in range(600):
        times = DT * k - np.array([0.0, DT / 2])[:, None]
        s, c = SIZE * np.sin(RATE * times), SIZE * RATE * np.cos(RATE * times)
        motion = Q + s[1], c[1], -(RATE**2) * s[1], none
        watch.take(_wrench(read(motion, [LOAD.parameters])))
        node._on_state(_state(node, Q + s[0], c[0], None, 1.0 + DT * k))
        clock.now += DT
    estimate = watch.estimator.estimate
    np.testing.assert_allclose(estimate.mass, LOAD.mass, rtol=5e-3)
    np.testing.assert_allclose(estimate.com, LOAD.com, atol=1e-3)
    assert "not estimated" not in node.status()[1]
    for bad in (_wrench(np.zeros(6), "tool"), _wrench(np.full(6, np.nan))):
        watch.take(bad)
    assert node.counters["wrench refused"] == 2
    clock.now += 0.1
    node._on_state(_state(node, Q + s[0], c[0], None, 1.0 + DT * 600))
    assert "not estimated: /wrist/wrench is silent" in node.status()[1]
    assert watch.estimator.estimate is estimate


def test_old_readings_of_a_sensor_are_refused(make):
    """A recording that is played again, or a source that queues, is no measurement."""
    sensor = {"payload_estimation.wrench_topic": "/wrist/wrench",
              "payload_estimation.sensor_link": "flange"}  # fmt: skip
    node = make(**WATCH, **sensor, max_state_age=0.5)
    watch, said = _watch(node), []
    node.refuse = lambda kind, why: said.append((kind, why))
    now = node.get_clock().now().nanoseconds // 10**9
    for seconds in (now - 100, now + 100):
        message = _wrench(np.ones(6))
        message.header.stamp.sec = seconds
        watch.take(message)
    assert watch.reading is None
    (kind, old), (_, ahead) = said
    assert kind == "wrench refused"
    assert old.startswith("/wrist/wrench: the reading is 10") and "s old; valid" in old
    assert "ahead of the clock; valid: at most 0.5 s (max_state_age)" in ahead
    message.header.stamp = node.get_clock().now().to_msg()
    for fresh in message, _wrench(np.ones(6)):
        watch.reading = None
        watch.take(fresh)
        assert watch.reading is not None


def test_a_sensor_and_sent_efforts_exclude_each_other(make):
    """With a sensor, effort has no effect; without one, sensor_link has none."""
    more = {"payload_estimation.sensor_link": "flange",
            "payload_estimation.effort": "sent"}  # fmt: skip
    topic = {"payload_estimation.wrench_topic": "/wrist/wrench"}
    for settings, idle in (
        (more, "payload_estimation.sensor_link"),
        (more | topic | {"robot_compensates_gravity": True},
         "payload_estimation.effort"),
    ):  # fmt: skip
        node = make(**WATCH, **settings)
        names = node.controller.model.joint_names
        assert without_effect(node.value, names) == [idle]


def test_brakes_teach_nothing(make):
    """Disabled, the arm stands still without effort: the payload is kept."""
    node = make(**WATCH)
    arm = _feed(node, 200)
    before = _watch(node).estimator.estimate
    node.controller.enabled = False
    rest = arm.q.copy()
    for _ in range(100):
        node._on_state(arm.message(node))
        arm.q, arm.qd, arm.tau, arm.t = rest, np.zeros(7), np.zeros(7), arm.t + DT
    node.controller.enabled = True
    assert _watch(node).estimator.estimate is before
    assert _watch(node).estimator.changes == 0


def test_a_limit_stop_teaches_nothing(make):
    """What a stop carries is no payload: at a limit the estimate stays."""
    node = make(**WATCH)
    arm = _feed(node, 200)
    estimator = _watch(node).estimator
    before = estimator.estimate
    arm.q[3], arm.qd[:] = arm.model.upper[3] + 0.01, 0.0
    for _ in range(40):
        node._on_state(arm.message(node))
        arm.t += DT
    assert estimator.estimate is before
    assert estimator.time is None


def test_a_payload_that_changes_all_the_time_is_a_warning(make):
    """Forces to and fro are no payloads: said once, and kept out of the log."""
    node, said = make(**WATCH), []
    node.get_logger = lambda: SimpleNamespace(info=said.append)
    arm = _feed(node, 50)
    for k in range(500):
        message = arm.message(node)
        push = 8.0 if k // 100 % 2 else -8.0
        message.effort = [x + push for x in message.effort]
        node._on_state(message)
        arm.t += DT
    assert _watch(node).estimator.changes > 3
    assert "3 other payloads in 5 s: something touches" in node.status()[1]
    assert said.count("the payload is another one: estimated anew") == 2


def test_noise_that_is_worse_than_said_is_a_warning(make):
    """It says how many times; the deviations are larger by as much."""
    quiet = {"payload_estimation.effort_noise": [0.01] * 7}
    quiet["payload_estimation.velocity_noise"] = [3e-4]
    quiet["payload_estimation.options.gate"] = 100.0
    node = make(**WATCH, **quiet)
    estimator = _watch(node).estimator
    assert estimator.effort_noise.tolist() == [0.01] * 7
    _feed(node, 300)
    assert estimator.mismatch > 4
    assert "times those of payload_estimation.velocity_noise" in node.status()[1]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"payload.link": ""}, "needs payload.link"),
        ({"payload.link": "link0"}, "nothing moves link 'link0'"),
        ({"payload_estimation.plugin_name": "rnea"}, "solves inverse_dynamics"),
        ({"payload_estimation.plugin_name": "payload_filtr"}, "payload_filter"),
        ({"payload_estimation.options.gat": 3.0}, "gate"),
        ({"payload_estimation.velocity_noise": [0.0]}, "velocity_noise"),
        *(
            (
                {
                    "payload_estimation.wrench_topic": name,
                    "payload_estimation.sensor_link": "link7",
                },
                f"'{name}' is no name of a topic; valid: letters, digits",
            )
            for name in ("my topic", "a//b", "1st")
        ),
        ({"payload_estimation.effort_noise": [0.1] * 3}, "a number, or 7"),
        (
            {"payload_estimation.effort": "sent", "robot_compensates_gravity": True},
            "valid: measured",
        ),
    ],
)
def test_settings_are_refused_in_words(make, values, reason):
    """The node says what is wrong and stays unconfigured."""
    node = make(active=False, **{**WATCH, **values})
    assert node.failure is not None
    assert reason in node.failure


def test_efforts_are_in_the_order_of_the_joints():
    """Those of other joints are left out; none at all are None."""
    from ros_nodes.conversions import JointReader, MissingJoint

    reader = JointReader(["b", "a"])
    message = SimpleNamespace(name=["a", "c", "b"], effort=[1.0, 2.0, 3.0])
    assert reader.effort(message).tolist() == [3.0, 1.0]
    assert reader.effort(SimpleNamespace(name=["a", "b"], effort=[])) is None
    with pytest.raises(dyn.ShapeError, match="effort"):
        reader.effort(SimpleNamespace(name=["a", "b"], effort=[1.0]))
    with pytest.raises(MissingJoint, match="'b'"):
        reader.effort(SimpleNamespace(name=["a"], effort=[1.0]))


def test_nothing_is_estimated_without_a_solver(make):
    """There is no topic; a setting without effect is named."""
    node = make(**{"payload_estimation.drift": 0.1})
    idle = without_effect(node.value, node.controller.model.joint_names)
    assert idle == ["payload_estimation.drift"]
    assert not node.after_answers
    topics = [name for name, _ in node.get_topic_names_and_types()]
    assert not any(name.endswith("/payload") for name in topics)
    assert "payload estimate" not in node.status()[2]
