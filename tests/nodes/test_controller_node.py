"""The controller's node: stops, messages, times and words, driven directly."""

import time
import warnings
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control.reference.following import TimedTrajectory

pytestmark = pytest.mark.ros
Q = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
NAMES = [f"joint{k}" for k in range(1, 8)]
PERIOD = 0.004  # of the states that are fed [s]


@pytest.fixture
def make(controller_node):
    """Return a function that makes an active node, and keeps what it sends."""

    def keep(node):
        node.sent = []
        node._send = lambda tau: node.sent.append((time.monotonic(), tau.copy()))

    def node(active=True, **values):
        one = controller_node(active, keep, **{"engine": "graph", **values})
        assert one.failure is None
        return one

    return node


def _state(q=Q, stamp=0.0):
    from sensor_msgs.msg import JointState

    message = JointState(name=NAMES, position=[float(x) for x in q])
    message.velocity = [0.0] * 7
    message.header.stamp.sec = int(stamp)
    message.header.stamp.nanosec = int((stamp - int(stamp)) * 1e9)
    return message


def _feed(node, count=3, q=Q):
    """Feed states and return the last effort sent.

    They arrive 4 ms apart, however slow this machine is: gains that a loop of the
    measured period cannot carry stop the robot, and the first states compile.
    """
    import ros_nodes.computed_torque_node as module

    # Not before the last one, which may have arrived ahead of this machine's clock.
    begin = max(time.monotonic(), getattr(node, "fed", 0.0) + PERIOD)
    for k in range(count):
        node.fed = begin + k * PERIOD
        clock = SimpleNamespace(monotonic=lambda: node.fed)
        with patch.object(module, "time", clock):
            node._on_state(_state(q))
    return node.sent[-1][1]


def _trajectory(points=2, seconds=1.0, shift=0.2, effort=0):
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    message = JointTrajectory(joint_names=NAMES)
    for k in range(points):
        share = (k + 1) / points
        point = JointTrajectoryPoint(positions=[x + share * shift for x in Q])
        point.effort = [float(effort)] * (7 if effort else 0)
        due = seconds * share
        point.time_from_start.sec = int(due)
        point.time_from_start.nanosec = int((due - int(due)) * 1e9)
        message.points.append(point)
    return message


def _wire(message):
    from rclpy.serialization import serialize_message

    return serialize_message(message)


def _delivered(node):
    """Wait for the worker, and hand over what it has."""
    deadline = time.monotonic() + 20
    while not node.worker.ready:
        assert time.monotonic() < deadline
    node.worker.deliver()


def test_a_joint_with_limits_is_not_wrapped(controller_node):
    """The sentence has the parameter, the joint and its limits."""
    node = controller_node(gains__joint4__angle_wraparound=True, engine="graph")
    assert "angle_wraparound): joint 'joint4' has position limits" in node.failure
    assert "valid: none of its joints" in node.failure


# Messages


@pytest.mark.parametrize("count", [1, 2, 3, 50])
@pytest.mark.parametrize("fields", ["p", "pv", "pva", "pe", "pvae"])
@pytest.mark.parametrize("frame", ["", "base", "links"])
def test_trajectories_are_read_from_the_wire(ros, count, fields, frame):
    """As the Python message has them, whatever lies before the numbers."""
    from trajectory_arrays import trajectory_arrays

    from ros_nodes.messages.trajectory_messages import read_trajectory

    rng = np.random.default_rng(7)
    message = _trajectory(count)
    message.header.frame_id = frame
    message.header.stamp.sec, message.header.stamp.nanosec = 12, 345_000_000
    for point in message.points:
        for key, name in zip("pvae", ("positions", "velocities", "accelerations",
                                      "effort"), strict=True):  # fmt: skip
            row = rng.normal(size=7).tolist() if key in fields else []
            setattr(point, name, row)
    stamp, arrays, efforts = read_trajectory(_wire(message), 50)
    assert stamp == pytest.approx(12.345, abs=1e-9)
    expected = trajectory_arrays(message)
    assert arrays.names == expected.names
    for got, wanted in zip(arrays[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert efforts.shape == (count, 7 if "e" in fields else 0)
    if "e" in fields:
        np.testing.assert_array_equal(efforts[-1], message.points[-1].effort)


def test_trajectories_that_are_not_alike_have_their_words(ros):
    """A point of another size, too many points, a message that is cut."""
    from ros_nodes.messages.trajectory_messages import read_trajectory

    message = _trajectory(30)
    message.points[20].positions = [0.0] * 6
    with pytest.raises(dyn.TrajectoryError, match="point 20 has 6 positions; needs 7"):
        read_trajectory(_wire(message), 100)
    data = _wire(_trajectory(30))
    with pytest.raises(dyn.TrajectoryError, match=r"^30 points; valid: at most 29 "):
        read_trajectory(data, 29)
    for size in (3, 20, 60, len(data) // 2):
        with pytest.raises(dyn.TrajectoryError, match="cut off|plain CDR"):
            read_trajectory(data[:size], 100)
    with pytest.raises(dyn.TrajectoryError, match="not in plain CDR"):
        read_trajectory(b"\x00\x07" + data[2:], 100)
    empty = read_trajectory(_wire(_trajectory(0)), 100)
    assert empty.stamp is None
    assert empty.arrays.times.size == 0


def test_long_trajectories_take_little_time(ros):
    """Reading the wire takes less than 2 us a point; as Python objects it is 20."""
    from ros_nodes.messages.trajectory_messages import read_trajectory

    data, seconds = _wire(_trajectory(2000)), []
    for _ in range(3):
        started = time.process_time()
        read_trajectory(data, 2000)
        seconds.append(time.process_time() - started)
    assert min(seconds) < 2000 * 2e-6


@pytest.mark.parametrize("partial", [False, True])
def test_a_mode_that_follows_no_trajectory_says_so(make, capfd, partial):
    """Before joints are looked at, with the modes that follow one."""
    node = make(mode="gravity", allow_partial_joints_goal=partial)
    _feed(node)
    message = _trajectory()
    message.joint_names = NAMES[:1]
    node.trajectories.on_message(_wire(message))
    reason = "mode gravity follows no trajectory; valid: mode computed_torque, impedanc"
    assert reason in capfd.readouterr().err
    assert node.counters["trajectory refused"] == 1


def test_publishers_of_nodes_that_are_not_known_yet(ros):
    """A guard that starts has a publisher before its node has a name."""
    from ros_nodes.controller.guard_topics import publishers_beside_guard

    def count(*names):
        infos = [SimpleNamespace(node_name=name) for name in names]
        node = SimpleNamespace(
            resolve_topic_name=lambda name: name,
            count_publishers=lambda name: len(infos),
            get_publishers_info_by_topic=lambda name: infos,
        )
        return publishers_beside_guard(node, "commands")

    assert count("computed_torque", "_NODE_NAME_UNKNOWN_") == 1
    assert count("computed_torque", "guard") == 1
    assert count("computed_torque", "other", "guard") == 2


def test_a_trajectory_is_followed_when_it_is_ready(make, capfd):
    """Not before; a newer one supersedes it, a stop in between discards it."""
    node = make()
    _feed(node)
    node.trajectories.on_message(_wire(_trajectory()))
    assert node.controller.trajectory is None
    _delivered(node)
    assert node.controller.trajectory is not None
    first = node.controller.trajectory
    node.trajectories.on_message(_wire(_trajectory(shift=0.1)))
    node.trajectories.on_message(_wire(_trajectory(effort=3)))
    while len(node.worker.ready) < 2:
        pass
    _feed(node)
    assert node.controller.trajectory is not first
    logged = capfd.readouterr().err
    assert "a newer one came while it was read" in logged
    assert "its efforts are not added (feed_forward is false)" in logged
    last = node.controller.trajectory
    node.trajectories.on_message(_wire(_trajectory()))
    node.controller.safety.gate.close()
    _delivered(node)
    assert node.controller.trajectory is last
    reason = "the controller stopped while it was read; valid: send it again once the"
    assert f"{reason} controller is active" in capfd.readouterr().err
    node.trajectories.on_message(_wire(_trajectory(12_000)))
    _delivered(node)
    logged = capfd.readouterr().err
    assert "12000 points; valid: at most 10000 (max_trajectory_points)" in logged
    assert len(logged) < 300
    assert node.counters["trajectory refused"] == 3


def test_a_new_description_is_read_by_the_worker(make, capfd):
    """While the robot is controlled; a bad one is refused as before."""
    from std_msgs.msg import String

    node = make(robot_description=dyn.robots.path("arm7").read_text())
    node.set_parameters = None
    node.value = {"robot_description": "", "robot_description_file": "",
                  "model_check": "warn", "autostart": False, "package_paths": [],
                  "xacro_arguments": []}.__getitem__  # fmt: skip
    text = dyn.robots.path("two_link").read_text()
    node._on_description(String(data=text))
    assert node._urdf == ""
    _delivered(node)
    assert node._urdf == text
    node._on_description(String(data="<robot>"))
    _delivered(node)
    assert node._urdf == text
    assert "malformed XML" in capfd.readouterr().err


# Stops


@pytest.mark.parametrize("kind", ["zero", "ramp", "hold"])
def test_an_emergency_stop_acts_as_its_rule_says(make, kind):
    """It latches, enabling is refused, and the way out is a new activation."""
    from std_srvs.srv import SetBool, Trigger

    node = make(on_estop=kind)
    assert _feed(node).any()
    count = len(node.sent)
    answer = node._on_estop(Trigger.Request(), Trigger.Response())
    assert answer.success
    assert ("zero" in answer.message) == (kind != "hold")
    assert len(node.sent) == count + (kind == "zero")
    assert _feed(node).any() == (kind != "zero")
    refused = node._on_enable(SetBool.Request(data=True), SetBool.Response())
    assert not refused.success
    assert refused.message == node.controller.idle
    more = "; trajectory stopped: ~/estop" if node.health.dropped else ""
    assert node.status()[:2] == (b"\x02", f"{node.controller.idle}{more}")
    node.trigger_deactivate()
    assert not node.sent[-1][1].any()
    node.trigger_activate()
    assert _feed(node).any()


@pytest.mark.parametrize("configured", [False, True])
def test_an_emergency_stop_before_activation_says_how_it_will_act(make, configured):
    """As on_estop says, which need not be zero; nothing is braked or held yet."""
    from std_srvs.srv import Trigger

    node = make(on_estop="hold")
    node.trigger_deactivate()
    if not configured:
        node.trigger_cleanup()
    answer = node._on_estop(Trigger.Request(), Trigger.Response())
    assert answer.message == "stopped: the next activation begins with the stop 'hold'"
    assert answer.success


@pytest.mark.parametrize("kind", ["zero", "ramp", "hold"])
def test_a_node_winds_down_before_its_last_zero(make, monkeypatch, kind):
    """States that come meanwhile are answered, for stop_time; the last one is zero.

    Time passes only when all states are taken: how fast this machine is has no effect.
    """
    import ros_nodes.computed_torque_node as module

    values = {} if kind == "zero" else {"stop_time": 0.05}
    node = make(on_shutdown=kind, **values)
    assert _feed(node).any()
    node.sent.clear()
    waiting, clock = [_state()] * 5, SimpleNamespace(now=node.fed)

    class Handle:
        @staticmethod
        def take_message(*_):
            if waiting:
                return waiting.pop(), None
            clock.now += 0.06
            return None

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    before = node.states_in
    node.states_in = SimpleNamespace(handle=Handle(), topic_name=before.topic_name)
    with monkeypatch.context() as context:
        context.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
        node.trigger_deactivate()
    taken = [tau for _, tau in node.sent]
    assert len(waiting) == (5 if kind == "zero" else 0)
    assert len(taken) == (1 if kind == "zero" else 6)
    assert all(tau.any() for tau in taken[:-1])
    assert not taken[-1].any()
    node.watchdog._thread.join(30.0)  # its own wait for the thread is short
    assert not node.watchdog.alive
    if kind == "zero":
        return
    node.trigger_activate()
    _feed(node)
    node.controller.rules.__dict__["stop_time"] = 1e6
    node.wind_down(lambda: True)  # a second signal
    assert node.controller.stopped.cause == "shutdown"
    node.controller.reset_stop()
    node.controller.begin()
    node.wind_down()  # without a state there is nothing to bring to rest
    assert node.controller.stopped is None


def test_an_emergency_stop_ends_the_way_to_rest(make, until):
    """Over DDS: it acts at once and is answered, also where no executor spins."""
    from rclpy.node import Node
    from std_srvs.srv import Trigger

    node, probe = make(on_shutdown="ramp", stop_time=20.0), Node("probe")
    try:
        client = probe.create_client(Trigger, "computed_torque/estop")
        until(client.service_is_ready, probe, node)
        first = client.call_async(Trigger.Request())
        until(first.done, probe, node, expected="a first answer")
        node.controller.reset_stop()
        assert _feed(node).any()
        asked = client.call_async(Trigger.Request())
        started = time.monotonic()
        node.wind_down()
        assert time.monotonic() - started < 10.0
        stop = node.controller.stopped
        assert (stop.kind, stop.reason) == ("zero", "~/estop")
        assert not node.sent[-1][1].any()
        until(asked.done, probe, node, expected="the answer")
        assert asked.result().message == "stopped: effort is zero"
        assert node.controller.counters["stopped: estop"] == 2
    finally:
        probe.destroy_node()


def test_what_is_computed_during_the_end_is_discarded(make):
    """The final zero is the last one, whatever a thread still has."""
    node = make()
    _feed(node)
    ticket = node.controller.safety.ticket
    node.send_final_command()
    assert not node.controller.safety.gate.send(ticket, node._send, np.ones(7))
    assert not node.sent[-1][1].any()


class SteppedClock:
    """Time that passes only while the watchdog waits, until the first answer.

    Attributes:
        now: The time [s].
        late: By how much each wait is longer than asked [s].
        asked: The waits [s].
        answers: (time, effort) of each answer.
    """

    def __init__(self, now, late):
        self.now, self.late, self.asked, self.answers = now, late, [], []

    def monotonic(self):
        return self.now

    def send(self, tau):
        self.answers.append((self.now, tau.copy()))

    def wait(self, period):
        """Wait as an Event that is set by the first answer."""
        assert len(self.asked) < 1000, "no answer to silence"
        if not self.answers:
            self.asked.append(period)
            self.now += period + self.late
        return bool(self.answers)


@pytest.mark.parametrize("kind", ["zero", "ramp"])
@pytest.mark.parametrize("timeout", [0.004, 0.02, 0.1])
def test_silence_is_answered_within_two_periods_and_5_ms(
    make, monkeypatch, kind, timeout
):
    """The chosen stop is sent in the first look after state_timeout.

    That is within a period, and within two and 5 ms where each wake-up is late by a
    period and 5 ms; together 15 ms at most. The node's own watchdog looks here, by a
    clock that this test moves.
    """
    from ros_nodes.running import watchdog as module

    node = make(state_timeout=timeout, on_stale=kind)
    watchdog, period = node.watchdog, min(timeout / 4, 0.005)
    watchdog.stop()
    for late in (0.0, 0.4 * period, period + 0.005):
        for phase in (0.0, 0.3, 0.6, 0.999):
            node._on_state(_state())
            due = node.controller.seen + timeout
            clock = SteppedClock(due - timeout - phase * period, late)
            monkeypatch.setattr(module, "time", clock)
            monkeypatch.setattr(watchdog, "_ended", clock)
            node._send = clock.send
            watchdog._run()
            assert set(clock.asked) == {period}
            ((t, tau),) = clock.answers
            assert tau.any() == (kind == "ramp")
            assert -1e-9 < t - due <= period + late + 1e-9
            assert t - due <= 2 * period + 0.005 + 1e-9 <= 0.015 + 1e-8


# Times


def test_trajectories_follow_simulated_time(make):
    """At half speed they last twice as long; where the clock stands, they stand."""
    from rclpy.clock import ROSClock
    from rclpy.time import Time

    node = make()
    clock: ROSClock = node.get_clock()

    def set_clock(seconds):
        nanoseconds = int(seconds * 1e9)
        clock.set_ros_time_override(Time(nanoseconds=nanoseconds,
                                         clock_type=clock.clock_type))  # fmt: skip

    assert node.reference_time(5.0) == 5.0
    clock._set_ros_time_is_active(True)
    set_clock(100.0)
    assert node.reference_time(5.0) == 100.0
    _feed(node)
    node.trajectories.follow(
        node.controller.make_trajectory(NAMES, [1.0], [np.add(Q, 0.2)]), None
    )
    motion = node.controller.follower.running
    assert isinstance(motion, TimedTrajectory)
    assert motion.start == 100.0
    for k in range(10):
        set_clock(100.0 + 0.05 * k)
        _feed(node, 1)
    half = node.controller.reference.q
    _feed(node, 10)
    np.testing.assert_array_equal(node.controller.reference.q, half)
    with pytest.raises(dyn.TrajectoryError, match=r"ended 7.550 s ago"):
        node.trajectories.follow(motion.asked, 91.9)
    node.trajectories.follow(motion.asked, 101.0)
    assert node.controller.follower.pending.start == pytest.approx(101.0)
    set_clock(50.0)
    _feed(node, 1)
    assert node.controller.trajectory is None
    assert node.controller.counters["time went back"] == 1


def test_states_of_another_time_are_refused(make):
    """By the clock of the node; 0 lets them pass."""
    for longest, passed in ((0.0, 3), (5.0, 1)):
        node = make(max_state_age=longest)
        now = time.time()
        for stamp in (now - 10.0, now, now + 10.0):
            node._on_state(_state(stamp=stamp))
        assert node.report.states == passed
        assert node.counters["joint state refused"] == 3 - passed


# Words


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("gains.joint1.p", 100, "gains.joint1.p is 100; valid: write 100.0"),
        ("gains.joint1.i", 1.0, "ki without a limit winds up"),
        ("envelope.joint_power", [1.0, 2.0], "2 numbers; valid: none, one, or 7"),
        ("envelope.tool_speed", 1.0, "tool_speed and frame go together"),
        ("shadow.plugin_name", "rnee", "no solver is called 'rnee'; did you mean"),
        ("inverse_dynamics.plugin_name", "rnee", "for inverse_dynamics"),
        ("cartesian_control.plugin_name", "zz", "for cartesian_control"),
        ("optimal_control.plugin_name", "aba", "not optimal_control; valid"),
    ],
)
def test_bad_settings_are_said_in_the_diagnostics(make, name, value, expected):
    """Also where the node could not be configured."""
    node = make(active=False, **{name: value})
    heard = []
    node.diagnostics = SimpleNamespace(publish=lambda x: heard.append(x.status[0]))
    node.trigger_configure()
    assert expected in node.failure
    assert heard[-1].level == b"\x02"
    assert heard[-1].message.startswith("cannot configure: ")
    assert expected in heard[-1].message


def test_a_whole_number_at_the_start_says_what_to_write(make):
    """Where rclpy would only name two types."""
    with pytest.raises(dyn.ModelError, match=r"state_timeout is 1; valid: write 1.0"):
        make(active=False, state_timeout=1)


def test_settings_reach_the_controller(make):
    """Envelope, shadow, rules, gains of the integral; live ones at once."""
    from rclpy.parameter import Parameter

    values = {
        "envelope.effort_rate": [900.0], "envelope.tracking_error": [0.5] * 7,
        "envelope.kinetic_energy": 9.0, "shadow.plugin_name": "rnea_spatial",
        "shadow.engine": "graph", "mode": "impedance", "gains.joint2.i": 0.1,
        "gains.joint2.i_clamp": 4.0, "robot_compensates_gravity": True,
        "on_violation": "hold", "last_good_cycles": 7, "feed_forward": True,
    }  # fmt: skip
    soft = {
        f"gains.{joint}.{k}": x for joint in NAMES for k, x in (("p", 1.0), ("d", 0.02))
    }
    node = make(**values, **soft)
    controller = node.controller
    rows = dict(zip(controller.safety.envelope.names,
                    controller.safety.envelope.bounds, strict=True))  # fmt: skip
    assert rows["effort_rate", "joint3"] == 900.0
    assert rows["tracking_error", "joint7"] == 0.5
    assert rows["kinetic_energy", ""] == 9.0
    assert controller.safety.shadow.settings.engine == "graph"
    assert controller.rules.on_violation == "hold"
    assert controller.rules.last_good_cycles == 7
    assert controller.ki[1] == 0.1
    assert controller.feed_forward
    assert np.abs(_feed(node)).max() < 1e-9  # a robot at rest that carries itself

    def assign(**new):
        rows = [Parameter(k.replace("__", "."), value=v) for k, v in new.items()]
        return node.set_parameters_atomically(rows)

    refused = assign(gains__joint1__p=7.0, gains__joint1__i=1.0)
    assert not refused.successful
    assert "gains.joint1.i needs gains.joint1.i_clamp > 0" in refused.reason
    assert controller.kp[0] == 1.0
    assert assign(gains__joint1__i=0.1, gains__joint1__i_clamp=2.0).successful
    assert (controller.ki[0], controller.integral_limit[0]) == (0.1, 2.0)
    # What is refused too late would end the node of a moving robot.
    refused = assign(gains__joint1__i_clamp=0.0)
    assert "gains.joint1.i needs gains.joint1.i_clamp > 0" in refused.reason
    assert node.value("gains.joint1.i_clamp") == 2.0
    assert assign(gains__joint1__i=0.0, gains__joint1__i_clamp=0.0).successful
    assert assign(large_error=0.7).successful
    assert node.health.large_error == 0.7


@pytest.fixture
def period(monkeypatch):
    """Return a function that sets the period of states which is measured."""
    from dyn_core.control.states.state_samples import Samples

    measured = [0.002]
    read = property(lambda _: measured[0], lambda *_: None)
    monkeypatch.setattr(Samples, "period", read, raising=False)
    return lambda x: measured.__setitem__(0, x)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "gains.joint1.p",
            1e9,
            "gains.joint1.p out of range Min: 0.0, Max: 400000000.0",
        ),
        (
            "gains.joint1.p",
            1e8,
            "position gain p of joint 'joint1' is 1e+08; valid: le",
        ),
        (
            "gains.joint3.d",
            1e4,
            "velocity gain d of joint 'joint3' is 10000; valid: le",
        ),
        ("payload.mass", 1000.0, "a payload of 1000 kg cannot be carried: joint 'joi"),
        ("payload.mass", 1e9, "payload.mass out of range Min: 0.0, Max: 100000.0"),
    ],
)
def test_live_parameters_beyond_physics_are_refused(make, period, name, value, reason):
    """In words; what was set stays, and the effort does not change."""
    from rclpy.parameter import Parameter

    node = make(**{"payload.link": "tool"})
    before = _feed(node, 5)
    (result,) = node.set_parameters([Parameter(name, value=value)])
    assert not result.successful
    assert reason in result.reason
    np.testing.assert_allclose(_feed(node, 1), before, atol=1e-9)
    assert node.value(name) != value
    period(0.09)  # between check and change: the node lives, and says it
    values = {"gains.joint1.d": 30.0}
    node.changed(values)
    assert node.counters["gains not applied"] == 1


def test_gains_set_before_states_are_no_torque_with_words(make, period, capfd):
    """Corrected live, then activated again, they drive."""
    from rclpy.parameter import Parameter

    node = make(**{"gains.joint1.d": 1.5e4})
    assert not _feed(node, 5).any()
    node._look()
    level, message, _ = node.status()
    assert level == b"\x02"
    said = (
        "stopped: gains: velocity gain d of joint 'joint1' is 15000; valid: less than 1"
    )
    assert message.startswith(said)
    assert said in capfd.readouterr().err
    (result,) = node.set_parameters([Parameter("gains.joint1.d", value=30.0)])
    assert result.successful
    assert not _feed(node, 3).any()
    node.trigger_deactivate()
    node.trigger_activate()
    assert _feed(node, 5).any()
    assert node.status()[1] == "holding"


def test_a_raised_effort_limit_is_told(make, capfd):
    """Once in the log, and in /diagnostics for as long as it is."""
    node = make(**{"effort_limits.joint1": 1e6, "effort_limits.joint2": 10.0})
    node._look()
    sentence = "effort limit of joint1 is raised from 87 to 1e+06"
    assert capfd.readouterr().err.count(sentence) == 1
    _feed(node, 5)
    level, message, _ = node.status()
    assert (level, sentence in message) == (b"\x01", True)


def test_gains_that_another_callback_refuses_are_not_applied(make):
    """They are applied when the whole set is accepted."""
    from rcl_interfaces.msg import SetParametersResult
    from rclpy.parameter import Parameter

    node = make()
    node._on_set_parameters_callbacks.append(
        lambda _: SetParametersResult(successful=False, reason="no")
    )
    assert not node.set_parameters([Parameter("gains.joint1.p", value=7.0)])[
        0
    ].successful
    assert node.controller.kp[0] == 100.0


def test_lists_without_a_value_are_lists(make):
    """So that `ros2 param dump` shows all parameters."""
    from rclpy.parameter import Parameter

    node = make(active=False)
    for name in ("joints", "envelope.joint_power", "cpu_affinity"):
        assert node.get_parameter(name).type_ != Parameter.Type.NOT_SET
        assert node.value(name) == []
    assert len(node.get_parameters(list(node.specs))) == len(node.specs)


def test_the_start_is_reported_once(make, capfd):
    """A later activation says nothing of the start of the process."""
    node = make()
    node.trigger_deactivate()
    node.trigger_activate()
    logged = capfd.readouterr().err
    assert logged.count("after the start") == 1
    assert logged.count("]: active") == 2
    assert node.autostart()
    assert "autostart is false: waiting for the transitions" in capfd.readouterr().err


def test_faults_have_a_level_and_one_line_each(make, capfd, monkeypatch):
    """When they begin, and when they end: a second source, a free root, a failure."""
    from sensor_msgs.msg import MultiDOFJointState

    from ros_nodes.controller import controller_report

    monkeypatch.setattr(controller_report, "GRAPH", 0.0)
    node = make(last_good_cycles=1000)
    node._look()
    assert "level" not in capfd.readouterr().err
    assert node.status()[1] == "no joint state yet"
    _feed(node)
    assert node.status()[:2] == (b"\x00", "holding")
    torque = node.controller._torque
    node.controller._torque = lambda law: 1 / 0
    _feed(node)
    node._on_poses(MultiDOFJointState(joint_names=["root_joint"]))
    monkeypatch.setattr(controller_report, "publishers_beside_guard", lambda *_: 2)
    for _ in range(3):
        node._look()
    level, message, values = node.status()
    assert level == b"\x02"
    assert "torque not finite: ZeroDivisionError" in message
    assert "multi_dof_joint_states has root_joint: this controller drives" in message
    assert "2 publishers on /joint_states" in message
    assert values["torque not finite"] == 3
    logged = capfd.readouterr().err
    assert logged.count("ZeroDivisionError") == 1
    assert logged.count("2 publishers on /joint_states") == 1
    node.controller._torque = torque
    monkeypatch.setattr(controller_report, "publishers_beside_guard", lambda *_: 1)
    node.report.log_changes(time.monotonic() + 2.0)
    node.report.log_changes(time.monotonic() + 4.0)
    logged = capfd.readouterr().err
    assert logged.count("no longer: torque not finite") == 1
    assert logged.count("no longer: 2 publishers on /joint_states") == 1
    assert logged.count("no longer: multi_dof_joint_states has root_joint") == 1
    node.trigger_deactivate()
    assert node.status()[:2] == (b"\x00", "inactive: no effort is sent")


def _part(first, last, stamp=0.0, velocity=True):
    """Return the state of some joints."""
    message = _state(stamp=stamp)
    message.name = message.name[first:last]
    message.position = message.position[first:last]
    message.velocity = message.velocity[first:last] if velocity else []
    return message


def _other(joint="finger"):
    from sensor_msgs.msg import JointState

    return JointState(name=[joint], position=[0.02], velocity=[0.0])


def test_states_of_other_joints_are_skipped(make, capfd, monkeypatch):
    """A gripper beside an arm is neither refused nor a second robot."""
    from ros_nodes.controller import controller_report

    monkeypatch.setattr(controller_report, "GRAPH", 0.0)
    monkeypatch.setattr(controller_report, "publishers_beside_guard", lambda *_: 2)
    node = make()
    node._on_state(_other())
    conditions = {c.key: c.message for c in node.report.conditions(time.monotonic())}
    message = "joint states have finger, and none of this robot's joints: joint1, "
    assert conditions["other joints"].startswith(message)
    sent = len(node.sent)
    _feed(node)
    node._on_state(_other())
    assert len(node.sent) == sent + 3
    assert not node.counters
    conditions = {c.key for c in node.report.conditions(time.monotonic())}
    assert "publishers of states" not in conditions
    assert not {"refused", "other joints"} & conditions
    node._on_state(_other("thumb"))
    monkeypatch.setattr(controller_report, "publishers_beside_guard", lambda *_: 4)
    conditions = {c.key: c.message for c in node.report.conditions(time.monotonic())}
    assert conditions["publishers of states"].startswith("2 publishers on /joint_st")
    assert "refused" not in capfd.readouterr().err


FINGERS = """<robot name="r"><link name="base"/>
  <link name="a"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="c"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="leader" type="revolute"><parent link="base"/><child link="a"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="50" velocity="9"/></joint>
  <joint name="follower" type="revolute"><parent link="a"/><child link="b"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="50" velocity="9"/>
    <mimic joint="leader" multiplier="-0.5" offset="0.1"/></joint>
  <joint name="still" type="continuous"><parent link="b"/><child link="c"/>
    <axis xyz="0 1 0"/><limit effort="50" velocity="9"/></joint></robot>"""


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("follower", "still", "said"),
    [
        (-0.3, 1.4, ""),
        (-0.25, 1.45, ""),
        (-0.3, 1.4 - 2 * np.pi, ""),
        (0.5, 1.4, "joint 'follower' stands at 0.5; the robot's model has it at -0.3"),
        (-0.3, 0.4, "joint 'still' stands at 0.4; the robot's model has it at 1.4"),
        (float("nan"), 1.4, ""),
    ],
)
def test_a_joint_that_is_not_where_the_model_has_it_is_a_warning(
    make, follower, still, said, apart
):
    """A locked joint, or a follower: weight and inertia are those of another posture."""
    from sensor_msgs.msg import JointState

    node = make(
        robot_description_file="",
        robot_description=FINGERS,
        joints=["leader"],
        unlisted_joints="lock",
        lock__still=1.4,
    )
    parts = {"leader": 0.8, "follower": follower, "still": still}
    for _ in range(4):
        rows = [{x: parts[x]} for x in parts] if apart else [parts]
        for row in rows:
            message = JointState(name=list(row), position=list(row.values()))
            message.velocity = [0.0] * len(row)
            node._on_state(message)
    conditions = {c.key: c.message for c in node.report.conditions(time.monotonic())}
    assert ("elsewhere" in conditions) == bool(said)
    assert conditions.get("elsewhere", "").startswith(said)


def test_parts_are_refused_with_the_parameter_that_merges_them(make, capfd):
    """One sentence; nothing is sent."""
    node = make()
    node._on_state(_part(0, 4))
    node._on_state(_part(4, 7))
    assert node.counters == {"joint state refused": 2}
    said = "joint 'joint5': wanted one entry in name, got not there; valid: all joints,"
    logged = capfd.readouterr().err
    assert f"{said} or merge_joint_states: true" in logged
    assert not node.sent


def test_parts_are_merged_where_asked(make):
    """The effort of two parts is that of the whole state; a dead part is silence."""
    whole, merged = (
        make(max_state_age=0.0),
        make(merge_joint_states=True, max_state_age=0.0),
    )
    for k in range(1, 5):
        whole._on_state(_state(stamp=0.01 * k))
        merged._on_state(_part(0, 4, 0.01 * k))
        merged._on_state(_part(4, 7, 0.01 * k + 0.001))
    assert len(merged.sent) == len(whole.sent) == 4
    np.testing.assert_array_equal(merged.sent[-1][1], whole.sent[-1][1])
    assert merged.controller.samples.stamp == pytest.approx(0.04)
    assert not merged.counters
    for k in range(5, 50):
        merged._on_state(_part(0, 4, 0.01 * k))
    assert len(merged.sent) == 4
    assert merged.controller.seen is not None
    silence = merged.controller.rules.state_timeout + 1.0
    assert merged.controller.watch(merged.controller.seen + silence) is not None
    merged._on_state(_part(4, 7, 99.0))  # of another clock
    assert merged.counters == {"joint state refused": 1}


def test_the_time_of_a_merged_state_is_that_of_its_oldest_part(make):
    """For silence: one publisher that is late makes the state old."""
    node = make(merge_joint_states=True, max_state_age=0.0)
    node._on_state(_part(0, 4, 0.01))
    first = node.states.merger._t[0]
    node._on_state(_part(4, 7, 0.011))
    assert node.controller.seen == first
    node.trigger_deactivate()
    node.trigger_activate()
    node._on_state(_part(0, 4, 0.02))
    node.trigger_deactivate()
    node.trigger_activate()
    node._on_state(_part(4, 7, 0.021))
    assert node.controller.seen is None  # the first part came before


def test_two_publishers_of_parts_drive_over_dds(make, until):
    """Neither part replaces the other in the queue."""
    from sensor_msgs.msg import JointState

    node = make(merge_joint_states=True, max_state_age=0.0)
    senders = [node.create_publisher(JointState, "joint_states", 10) for _ in range(2)]
    matched = [sender.get_subscription_count for sender in senders]
    until(lambda: all(count() == 1 for count in matched), node)
    rounds = 20
    for k in range(1, rounds + 1):
        for sender, ends in zip(senders, ((0, 4), (4, 7)), strict=True):
            sender.publish(_part(*ends, 0.01 * k))
        until(lambda k=k: len(node.sent) >= k, node, patience=5.0)
    assert len(node.sent) == rounds
    assert not node.counters


def test_a_best_effort_publisher_of_trajectories_is_a_warning(make, until):
    """It is not heard; a reliable one is, and is no warning."""
    from rclpy.node import Node
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from trajectory_msgs.msg import JointTrajectory

    node, probe = make(), Node("sender", namespace="/planning")
    topic = "/computed_torque/joint_trajectory"
    try:
        probe.create_publisher(JointTrajectory, topic, 1)
        until(lambda: node.count_publishers(topic) == 1, node, probe)
        _feed(node)
        assert node.status()[:2] == (b"\x00", "holding")
        best = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        deaf = probe.create_publisher(JointTrajectory, topic, best)
        until(lambda: node.status()[0] == b"\x01", node, probe, expected="a warning")
        assert node.status()[1] == (
            f"/planning/sender publishes {topic} as best effort, which is not heard;"
            " valid: reliability reliable"
        )
        probe.destroy_publisher(deaf)
        until(lambda: node.status()[0] == b"\x00", node, probe, expected="its end")
    finally:
        probe.destroy_node()


def test_a_loop_without_time_to_spare_is_a_warning(make):
    """Where answers take most of a second."""
    node = make()
    _feed(node)
    now = time.monotonic()
    assert node.report.status(now)[0] == b"\x00"
    node.report.answered(now, now + 0.9)
    level, message, _ = node.report.status(now + 0.95)
    assert level == b"\x01"
    assert "of the time: some are missed" in message
    node.report.status(now + 1.0)
    assert node.report.status(now + 2.1)[0] == b"\x00"


def test_an_extension_is_called_with_the_configured_node(make, monkeypatch):
    """It may watch each state, and add to the diagnostics."""
    from dyn_core.control.safety.health import WARN, Condition
    from ros_nodes.computed_torque_node import ComputedTorqueNode

    rows = []

    class Watcher:
        def restart(self):
            return None

        def observe(self, t, q, qd, tau):
            rows.append(tau)

    def extend(node):
        node.controller.observers.append(Watcher())
        node.conditions.append(lambda t: [Condition(WARN, "x", "it is warm")])

    every = [*ComputedTorqueNode.extensions, extend]
    monkeypatch.setattr(ComputedTorqueNode, "extensions", every)
    node = make()
    tau = _feed(node, 3)
    assert len(rows) == 3
    np.testing.assert_array_equal(rows[-1], tau)
    assert node.status()[:2] == (b"\x01", "it is warm")


def test_what_the_system_refuses_is_a_warning(make, capfd, monkeypatch):
    """The node works on without it."""
    from ros_nodes.running import realtime

    for name in ("lock_memory", "use_cpus", "raise_priority"):
        monkeypatch.setattr(realtime, name, lambda *_, name=name: f"{name}: refused")
    node = make(memory_lock=True, cpu_affinity=[0], priority=20)
    logged = capfd.readouterr().err
    for name in ("lock_memory", "use_cpus", "raise_priority"):
        assert f"{name}: refused" in logged
    assert _feed(node).any()


def test_the_order_of_the_efforts_is_told(make, capfd):
    """A driver takes them by their places: another order there moves other joints."""
    node = make(joints=NAMES[::-1])
    said = f"efforts on {node.efforts.topic_name}: {', '.join(NAMES[::-1])}, in this"
    assert f"{said} order, which the driver must have, too" in capfd.readouterr().err


def test_settings_without_effect_are_named(make, capfd):
    """Those of a shadow, of collisions and of stops act only where there is one."""
    idle = {
        "stop_time": 1.0, "velocity_filter_time": 0.02, "shadow.engine": "plain",
        "shadow.tolerance": 1e-3, "collision.gain": 50.0,
    }  # fmt: skip
    with warnings.catch_warnings():  # said once, in the log
        warnings.simplefilter("error")
        make(**idle, on_violation="zero")
    logged = capfd.readouterr().err
    assert f"without effect here: {', '.join(idle)}" in logged
    used = {
        "on_estop": "hold", "differentiate_velocity": True,
        "shadow.plugin_name": "rnea_spatial", "collision.thresholds.joint1": 20.0,
    }  # fmt: skip
    node = make(**idle, **used)
    assert "without effect" not in capfd.readouterr().err
    chosen = {
        f"{x}.plugin_name": "auto" for x in ("cartesian_control", "inverse_dynamics")
    }
    make(**chosen)
    assert "without effect" not in capfd.readouterr().err
    chosen["inverse_dynamics.plugin_name"] = "rnea_spatial"
    chosen["cartesian_control.plugin_name"] = "operational_space"
    make(**chosen, mode="cartesian", **{"cartesian.frame": "tool"})
    logged = capfd.readouterr().err
    assert "without effect here: inverse_dynamics.plugin_name\n" in logged
    make(**chosen)
    logged = capfd.readouterr().err
    assert "without effect here: cartesian_control.plugin_name\n" in logged
    assert (node.controller.rules.stop_time, node.controller.shadow.engine) == (
        1.0,
        "plain",
    )


def test_an_emergency_stop_of_an_inactive_node_outlasts_its_activation(make):
    """It was asked for before; the next deactivation and activation end it."""
    from std_srvs.srv import Trigger

    node = make()
    assert any(_feed(node))
    node.trigger_deactivate()
    answer = node._on_estop(Trigger.Request(), Trigger.Response())
    assert answer.success
    assert answer.message == "stopped: the next activation begins with the stop 'zero'"
    node.trigger_activate()
    assert not any(_feed(node))
    assert node.controller.stopped.cause == "estop"
    node.trigger_deactivate()
    node.trigger_activate()
    assert node.controller.stopped is None
    assert any(_feed(node))


def test_errors_have_the_sign_of_goals(make, monkeypatch):
    """~/error is reference - position; its size alone was tested once."""
    node, said = make(), []
    _feed(node)
    _feed(node, 1, [x - 0.01 for x in Q])
    monkeypatch.setattr(
        node.motion_topics, "errors", SimpleNamespace(publish=said.append)
    )
    node.motion_topics.publish()
    np.testing.assert_allclose(said[0].position, [0.01] * 7, atol=1e-12)


def test_slow_answers_leave_time_to_other_callbacks(make, monkeypatch):
    """Else each state that comes meanwhile waits, and ~/estop behind all of them."""
    node, clock = make(), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    update = node.controller.update

    def slow(*inputs):
        clock[0] += node.slowness
        return update(*inputs)

    monkeypatch.setattr(node.controller, "update", slow)

    def answered(slowness, wait):
        node.slowness, before = slowness, node.report.states
        clock[0] += wait
        node._on_event(_state())
        return node.report.states > before

    assert all(answered(0.0, 0.004) for _ in range(12))
    assert all(answered(0.02, 0.001) for _ in range(3))
    assert not answered(0.02, 0.001)
    assert not answered(0.02, 0.001)
    assert answered(0.0005, 0.003)
    assert answered(0.0005, 0.0)  # as in a burst of states that is answered quickly
