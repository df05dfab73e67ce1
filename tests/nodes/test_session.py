"""What one configuration owns goes with it, and what hooks raise ends nothing."""

import gc
import importlib
import os
import sys
import threading
import time

import pytest

import dyn_core as dyn

pytestmark = pytest.mark.ros
START = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
CYCLE = ("deactivate", "cleanup", "configure", "activate")


class Driven:
    """An active controller of arm7 to which the test gives joint states."""

    def __init__(self, **values):
        from rclpy.parameter import Parameter
        from sensor_msgs.msg import JointState

        from ros_nodes.computed_torque_node import ComputedTorqueNode

        settings = {"robot_description_file": "arm7", "state_timeout": 10.0, **values}
        self.node = ComputedTorqueNode(
            parameter_overrides=[Parameter(k, value=v) for k, v in settings.items()]
        )
        assert self.node.start(), self.node.failure
        names = list(dyn.load("arm7").joint_names)
        self.message = JointState(name=names, position=START, velocity=[0.0] * 7)
        self.sent = []
        self.node._send = lambda tau: self.sent.append(tau)
        self.feed(5)

    def feed(self, count=1):
        """Give joint states, as the executor does where answers are quick."""
        for _ in range(count):
            self.node._on_state(self.message)

    def drives(self):
        """Whether a joint state has an effort for an answer."""
        count = len(self.sent)
        self.feed()
        return len(self.sent) == count + 1 and bool(self.sent[-1].any())

    def change(self, *names):
        """Make transitions."""
        for name in names:
            getattr(self.node, f"trigger_{name}")()


@pytest.fixture
def drive(ros):
    """Return a function that makes a Driven node."""
    made = []

    def begin(**values):
        made.append(Driven(**values))
        return made[-1]

    yield begin
    for driven in made:
        driven.node.destroy_node()


def test_a_job_of_an_earlier_configuration_does_nothing(drive, capfd):
    """An event of a timer may wait in the executor while its timer is destroyed."""
    driven = drive()
    node, old = driven.node, driven.node.motion_topics.publish
    heard, state = node.states_in.callback, driven.message
    driven.change(*CYCLE)
    driven.feed(5)
    node.idle.due(old)
    assert driven.drives()  # an old job that is done all the same fails alone
    assert "MotionTopics.publish fails: InvalidHandle" in capfd.readouterr().err
    count = len(driven.sent)
    heard(state)
    assert len(driven.sent) == count


def _late(driven):
    """Return what the executor may still call of this configuration, once it is gone."""
    calls = [job.call for job in driven.node.session.periodic.jobs]
    return [*calls, driven.node.session.periodic.tick]


@pytest.mark.parametrize("after", [CYCLE[:2], CYCLE], ids=["cleaned up", "configured"])
def test_late_events_of_every_timer_are_nothing(drive, capfd, after):
    """In unconfigured, and in the next configuration."""
    driven = drive()
    late = _late(driven)
    assert len(late) > 5
    driven.change(*after)
    for call in late:
        call()
    assert "fails" not in capfd.readouterr().err


def _raises(*_):
    raise KeyError("my recorder is full")


def _failing_job(node):
    node.idle.due(_raises)


def _failing_take(node):
    node.session.submit("mine", lambda: 1, _raises)
    deadline = time.monotonic() + 20
    while not node.worker.ready:
        assert time.monotonic() < deadline


HOOKS = {
    "after_answers": lambda node: node.after_answers.append(_raises),
    "idle": _failing_job,
    "worker": _failing_take,
    "conditions": lambda node: node.conditions.append(_raises),
    "further_values": lambda node: node.further_values.append(_raises),
    "every": lambda node: node.every(0.01, _raises),
}


@pytest.mark.parametrize("hook", HOOKS)
def test_what_a_hook_raises_goes_no_further(drive, capfd, hook):
    """One line of the log, a WARN in /diagnostics, and the torque goes on."""
    driven = drive()
    node, said = driven.node, []
    node.diagnostics.publish = said.append
    HOOKS[hook](node)
    for _ in range(3):
        assert driven.drives()
        for job in node.session.periodic.jobs:
            job.call()
    node.diagnose()
    logged = capfd.readouterr().err
    assert logged.count("my recorder is full") == 1
    assert "_raises fails: KeyError: 'my recorder is full' (test_session.py, line" in (
        logged
    )
    status = said[-1].status[0]
    assert status.level == b"\x01" and "_raises fails: KeyError" in status.message
    assert driven.drives()


def test_diagnostics_that_fail_end_nothing(drive, capfd):
    """Neither the answer to a state nor the timer of /diagnostics."""
    driven = drive()
    node = driven.node
    node.status = _raises
    for _ in range(3):
        node._diagnosing.callback()
        assert driven.drives()
    assert capfd.readouterr().err.count("my recorder is full") == 1


def test_what_the_control_callback_raises_stops_the_robot(drive, capfd):
    """Zero is sent, and the stop lasts until the next activation."""
    driven = drive()
    node = driven.node
    node.controller.update = _raises
    driven.feed(3)
    assert not driven.sent[-1].any()
    assert node.status()[0] == b"\x02"
    assert "the control callback fails: KeyError" in node.status()[1]
    assert capfd.readouterr().err.count("my recorder is full") == 1
    del node.controller.update
    assert not driven.drives()
    driven.change("deactivate", "activate")
    driven.feed(5)
    assert driven.drives()


def test_refusals_that_differ_in_numbers_are_one_line_a_second(drive, monkeypatch):
    """Each is counted; another joint has a line of its own, and the memory is bounded."""
    from types import SimpleNamespace

    from ros_nodes.base import node as module

    node, logged, now = drive().node, [], [100.0]
    node.get_logger = lambda: SimpleNamespace(warning=logged.append)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def refuse(count):
        for k in range(count):
            for joint in ("joint1", "joint2", "gripper_3"):
                rate, dt = (-1) ** k * (1.37 + k), 10.0 ** -(1 + k % 11)
                moved = f"joint '{joint}' moved at {rate:.6g} by its positions in"
                node.refuse("state refused", f"{moved} {dt:.6g} s")

    refuse(331)
    names = [line.split("'")[1] for line in logged]
    assert names == ["joint1", "joint2", "gripper_3"]
    moved = "joint 'joint1' moved at 1.37 by its positions in 0.1 s"
    assert logged[0] == f"state refused: {moved}"
    assert node.counters["state refused"] == 3 * 331
    now[0] += module.QUIET
    refuse(331)
    assert len(logged) == 6
    for k in range(1000):
        node.refuse("state refused", f"joint 'j{k}' is not finite")
    assert len(logged) == 1006
    assert len(node._last_logged) <= 101
    for number in (1, 2):
        node.refuse("refused", f"transition {number} does not fit")
    assert logged[-2:] == [f"refused: transition {k} does not fit" for k in (1, 2)]


def test_a_service_that_fails_answers(drive, capfd):
    """With success false and a sentence, whatever it raises."""
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter
    from std_srvs.srv import Trigger

    driven = drive()
    node = driven.node
    estop = next(s for s in node.services if s.srv_name.endswith("estop"))
    node.controller.estop = _raises
    answer = estop.callback(Trigger.Request(), Trigger.Response())
    assert not answer.success
    assert "fails: KeyError: 'my recorder is full'" in answer.message
    node.live["mine"] = type("Part", (), {"check": _raises, "change": _raises})()
    change = Parameter("large_error", value=0.3).to_parameter_msg()
    service = next(s for s in node.services if s.srv_name.endswith("set_parameters"))
    request = SetParameters.Request(parameters=[change])
    (result,) = service.callback(request, SetParameters.Response()).results
    assert not result.successful and "my recorder is full" in result.reason
    node.live["mine"] = type("Part", (), {"check": lambda *_: 0, "change": _raises})()
    (result,) = service.callback(request, SetParameters.Response()).results
    assert result.successful and node.value("large_error") == 0.3
    assert driven.drives()
    change = next(s for s in node.services if s.srv_name.endswith("change_state"))
    request = ChangeState.Request(transition=Transition(id=4))
    node._state_machine = None
    assert not change.callback(request, ChangeState.Response()).success


def _odd_requests(kind):
    """Return requests of a service that nobody should send."""
    from lifecycle_msgs.msg import Transition
    from rcl_interfaces.msg import Parameter, ParameterValue

    requests = [kind.Request()]
    fields = kind.Request.get_fields_and_field_types()
    if "names" in fields:
        requests.append(kind.Request(names=["", "nothing", "large_error", "x" * 9999]))
    if "parameters" in fields:
        values = [ParameterValue(type=k) for k in (*range(11), 255)]
        for name in ("", "large_error", "joints", "use_sim_time", "gains.joint1.p"):
            rows = [Parameter(name=name, value=value) for value in values]
            requests += [
                kind.Request(parameters=rows),
                kind.Request(parameters=rows[:1]),
            ]
    if "prefixes" in fields:
        requests.append(kind.Request(prefixes=["", ".", "gains"], depth=2**64 - 1))
    if "transition" in fields:
        for label in ("", "\x00", "configure" * 999):
            transition = Transition(id=255, label=label)
            requests.append(kind.Request(transition=transition))
    if "data" in fields:
        requests.append(kind.Request(data=True))
    return requests


@pytest.mark.parametrize(
    "kind", ["computed_torque", "simulator", "feed_forward", "guard"]
)
@pytest.mark.parametrize("configured", [True, False])
def test_every_service_answers_odd_requests(ros, kind, configured):
    """In each state, each service of each node has a response."""
    from rclpy.parameter import Parameter

    values = {"robot_description_file": "two_link", "engine": "graph"}
    values = {} if kind == "guard" else values
    overrides = [Parameter(k, value=v) for k, v in values.items()]
    node = _node_class(kind)(parameter_overrides=overrides)
    count = 0
    try:
        if configured and kind != "guard":
            assert node.start(), node.failure
        for service in list(node.services):
            for request in _odd_requests(service.srv_type):
                answer = service.callback(request, service.srv_type.Response())
                assert isinstance(answer, service.srv_type.Response)
                count += 1
        assert count > 30
        if kind != "guard" and configured:
            assert node._state_machine.current_state[1] == "active"
    finally:
        node.destroy_node()


def _node_class(kind):
    """Return the class of a node."""
    module = importlib.import_module(f"ros_nodes.{kind}_node")
    name = f"{kind.replace('_', '')}node"
    return next(x for k, x in vars(module).items() if k.lower() == name)


def test_an_emergency_stop_outlives_configurations(drive):
    """Its service answers in every state, and the next activation is stopped."""
    from std_srvs.srv import SetBool, Trigger

    driven = drive()
    node = driven.node
    estop, enable = (
        next(s for s in node.services if s.srv_name.endswith(name)).callback
        for name in ("estop", "enable")
    )
    for between in (CYCLE[:1], CYCLE[:2], CYCLE[:3]):
        driven.change(*between)
        answer = estop(Trigger.Request(), Trigger.Response())
        assert answer.success and "stopped: " in answer.message
        driven.change(*CYCLE[len(between) :])
        driven.feed(5)
        assert "~/estop" in node.status()[1] and not driven.drives()
        driven.change(*CYCLE)
        driven.feed(5)
        assert driven.drives()
    driven.change(*CYCLE[:2])
    answer = enable(SetBool.Request(data=True), SetBool.Response())
    assert not answer.success and "not configured" in answer.message


def _resident():
    """Return the memory of this process [MB]."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _owned(node):
    """Return the numbers of what a node has."""
    kinds = ("timers", "subscriptions", "publishers", "services", "clients")
    counts = {kind: len(list(getattr(node, kind))) for kind in kinds}
    return {**counts, "threads": threading.active_count()}


@pytest.mark.parametrize("kind", ["computed_torque", "simulator", "feed_forward"])
def test_sixty_configurations_leave_nothing_behind(ros, until, capfd, kind):
    """Neither threads nor timers nor memory, and no raw line on the standard error."""
    from rclpy.parameter import Parameter

    values = {"robot_description_file": "two_link", "engine": "graph"}
    values["payload.link"] = "link2" if kind != "feed_forward" else ""
    values = {k: v for k, v in values.items() if v}
    node = _node_class(kind)(
        parameter_overrides=[Parameter(k, value=v) for k, v in values.items()]
    )
    assert node.start(), node.failure
    turns, seen = iter(range(10**6)), []

    def cycle():
        for name in CYCLE:
            assert getattr(node, f"trigger_{name}")() is not None
        turn = next(turns)
        until(lambda: next(turns) > turn + 5, node)  # the executor sees what is new

    try:
        for count in range(60):
            cycle()
            if count in (9, 59):
                gc.collect()
                seen.append((_owned(node), _resident()))
    finally:
        node.destroy_node()
    (owned, memory), (last, later) = seen
    assert owned == last
    assert later - memory < 8.0
    sys.stdout.flush()
    out, err = capfd.readouterr()
    assert [x for x in err.splitlines() if not x.startswith("[")] == []
    assert "Warning" not in out


def test_periodic_jobs_keep_their_rates(drive, monkeypatch):
    """One a turn, in the order of being due; what was missed is not made up."""
    from ros_nodes.base import session

    driven = drive()
    now = [time.monotonic()]
    monkeypatch.setattr(session.time, "monotonic", lambda: now[0])
    jobs, done = session.PeriodicJobs(driven.node.session), []
    jobs.add(0.01, lambda: done.append("fast"))
    jobs.add(0.025, lambda: done.append("slow"))
    for _ in range(1000):
        now[0] += 1e-3
        jobs.tick()
    assert done.count("fast") in (99, 100) and done.count("slow") in (39, 40)
    now[0] += 5.0
    done.clear()
    for _ in range(5):
        jobs.tick()
    assert sorted(done) == ["fast", "slow"]


def test_a_node_owns_what_it_can_destroy(drive):
    """Anything else is refused, with what it could be."""
    node = drive().node
    with pytest.raises(TypeError, match="keep: dict; valid: publisher, subscription"):
        node.keep({})
