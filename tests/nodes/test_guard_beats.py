"""A controller under its guard over DDS: killed, stopped, restarted, awaited."""

import signal
import time

import pytest
from guard_watch import Watched

from ros_nodes.graphs import COMPUTED_TORQUE, GUARD

pytestmark = [pytest.mark.ros, pytest.mark.timeout(120)]
DEACTIVATE, ACTIVATE, CLEANUP = 4, 3, 2
BUSY = 0.3  # by which a machine of tests may be late [s]
PARAMS = """
/**:
  ros__parameters:
    robot_description_file: arm7
    engine: graph
    effort_timeout: 0.5
    diagnostic_updater.period: 0.05
    on_violation: zero
"""


@pytest.fixture
def stand(start, fed, until):
    """Return guard and controller as processes, driving; and what waits for things."""
    return Stand(start, fed, until)


class Stand:
    """A guard and a controller, each a process of its own."""

    def __init__(self, start, fed, until, params=PARAMS):
        self.start, self.fed, self._until, self.params = start, fed, until, params
        self.guard = self.new_guard()
        self.controller = start([COMPUTED_TORQUE], params)["computed_torque"]
        self.drives("torque under the guard")
        self.hears(1)  # who never heard a guard misses none

    def new_guard(self):
        """Start a guard."""
        return self.start([GUARD], self.params)["guard"]

    def until(self, done, expected):
        """Spin until something holds."""

        def detail():
            started = [
                vars(self)[x] for x in ("guard", "controller") if x in vars(self)
            ]
            return self.fed.said, [process.output for process in started]

        self._until(done, self.fed.node, expected=expected, detail=detail)

    def drives(self, what):
        """Wait for torque that a guard hears."""
        self.fed.said.clear()

        def heard():
            said = self.fed.said.get("guard") == "watching: torque stands"
            return said and self.fed.drives()

        self.until(heard, what)

    def stays_at_zero(self, efforts=100):
        """Look at the next efforts of the controller: none is torque.

        But for those that waited here, on a busy machine, when the log said that it has
        stopped: a tenth of a second of them at most.
        """
        del self.fed.rows[:]

        def zeros():
            return [
                k
                for k, (_, torque) in enumerate(self.fed.of_controller())
                if not torque
            ]

        self.until(lambda: len(zeros()) > efforts, "efforts")
        waited = zeros()[0]
        assert waited <= 20
        assert not any(torque for _, torque in self.fed.of_controller()[waited:])

    def said(self, text):
        """Wait for the controller's diagnostics."""
        self.until(lambda: text in self.fed.said.get("computed_torque", ""), text)

    def printed(self, text):
        """Wait for text in the log of the controller."""
        self.until(lambda: text in self.controller.output, text)

    def change(self, number, success=True):
        """Have the controller perform a transition."""
        future = self.fed.transition(number, lambda done: self.until(done, "a service"))
        self.until(future.done, f"the answer to transition {number}")
        assert future.result().success == success

    def restart(self):
        """Deactivate and activate the controller."""
        self.change(DEACTIVATE)
        self.change(ACTIVATE)

    def hears(self, guards):
        """Wait until the controller hears a number of guards."""

        def heard():
            return self.fed.values.get("computed_torque", {}).get("guards heard")

        self.until(lambda: heard() == str(guards), f"{guards} guards")


def test_a_guard_that_is_killed_is_missed(stand):
    """Zero within guard_timeout; it stays so under a new guard, until an activation."""
    stand.guard.popen.kill()
    killed = time.monotonic()
    stand.said("stopped: the guard is silent for 0.2 s")
    zeros = [t for t, torque in stand.fed.of_controller() if not torque and t > killed]
    assert 0.1 < zeros[0] - killed < 0.2 + 2 * 5e-3 + 5e-3 + BUSY
    stand.printed("stopped: the guard is silent")
    stand.stays_at_zero()
    stand.hears(0)
    stand.guard = stand.new_guard()
    stand.hears(1)
    stand.stays_at_zero()
    stand.restart()
    stand.drives("torque under the new guard")


def test_no_new_guard_and_no_stray_message_lifts_the_stop_of_a_killed_one(
    start, fed, until, ask
):
    """Only an activation under a guard that is not stopped does."""
    from diagnostic_msgs.msg import DiagnosticStatus
    from std_msgs.msg import Bool

    from ros_nodes.base.node import LATCHED

    # Silence would be a fault, which no reset ends; guards are silent on a busy machine.
    stand = Stand(start, fed, until, PARAMS + "    guard_timeout: 2.0\n")
    assert ask(fed, "guard/estop").success
    stand.said("stopped: the guard has stopped it (~/estop was called)")
    stray = fed.node.create_publisher(Bool, "guard/stopped", LATCHED)
    noise = fed.node.create_publisher(DiagnosticStatus, "guard/latch", 1)
    stand.until(lambda: noise.get_subscription_count() > 0, "a subscriber")
    for _ in range(10):
        stray.publish(Bool(data=False))
        noise.publish(DiagnosticStatus())
    stand.stays_at_zero()
    stand.printed("beat refused: no beat of a guard")
    stand.guard.popen.kill()
    stand.said("the guard that has stopped it is gone")
    stand.hears(0)
    stray.publish(Bool(data=False))
    stand.stays_at_zero()
    stand.guard = stand.new_guard()
    stand.hears(1)
    assert ask(fed, "guard/reset").success  # it has nothing to reset
    stand.stays_at_zero()
    assert ask(fed, "guard/estop").success
    stand.restart()
    stand.stays_at_zero()
    assert ask(fed, "guard/reset").success
    stand.restart()
    stand.drives("torque under the new guard")
    assert ask(fed, "guard/estop").success
    stand.stays_at_zero()
    assert ask(fed, "guard/reset").success
    stand.drives("torque after a reset of the same guard")


def test_a_guard_that_stood_is_missed_and_its_beats_do_not_end_that(stand):
    """SIGSTOP and SIGCONT."""
    try:
        stand.guard.popen.send_signal(signal.SIGSTOP)
        stand.said("stopped: the guard is silent for 0.2 s")
    finally:
        stand.guard.popen.send_signal(signal.SIGCONT)
    stand.hears(1)
    stand.stays_at_zero()
    stand.restart()
    stand.drives("torque")


def test_a_guard_that_ends_says_so(start, fed, until, ask):
    """A controller that needs one stops, also at rest, and goes on under another one.

    A process may take longer than the usual 0.2 s to end, which would be silence; and
    a busy machine may suspend all of them for longer than the usual timeouts.
    """
    params = PARAMS.replace("effort_timeout: 0.5", "effort_timeout: 5.0")
    params += (
        "    require_guard: true\n    guard_timeout: 5.0\n    state_timeout: 2.0\n"
    )
    stand = Stand(start, fed, until, params)
    second = stand.new_guard()
    stand.said("2 guards are heard; valid: one")
    assert stand.guard.end() == 0  # while torque stands
    stand.said("the guard ends while torque stands")
    stand.stays_at_zero()
    stand.guard = second
    stand.change(DEACTIVATE)
    stand.change(ACTIVATE)
    stand.drives("torque under the second")
    stand.fed.pause()
    stand.until(lambda: fed.said["guard"] == "watching: effort is zero", "rest")
    assert second.end() == 0
    stand.fed.feed()
    stand.said("stopped: the guard has ended")
    stand.stays_at_zero()


def test_a_node_waits_for_the_guard_that_it_needs(start, fed, until):
    """It fails alive, it succeeds when the guard comes, and a signal ends the wait."""
    params = PARAMS + "    require_guard: true\n    guard_wait: 1.0\n"
    controller = start([COMPUTED_TORQUE], params)["computed_torque"]

    def printed(text, process=controller):
        until(lambda: text in process.output, fed.node, expected=text,
              detail=lambda: process.output)  # fmt: skip

    printed("waiting for the guard: 0 of 1 s (no guard is heard; valid: start the node")
    printed("cannot activate: no guard is heard; valid: start the node guard in this")
    until(lambda: "inactive: cannot activate: no guard is heard" in
          fed.said.get("computed_torque", ""), fed.node)  # fmt: skip
    assert controller.popen.poll() is None
    assert not fed.rows
    guard = start([GUARD], params)["guard"]
    until(lambda: fed.values["computed_torque"]["guards heard"] == "1", fed.node,
          expected="beats")  # fmt: skip
    future = fed.transition(ACTIVATE, lambda done: until(done, fed.node))
    until(future.done, fed.node, expected="an answer")
    assert future.result().success
    until(fed.drives, fed.node, expected="torque",
          detail=lambda: (fed.said, controller.output))  # fmt: skip
    assert guard.end() == 0
    assert controller.end() == 0

    waits = start([COMPUTED_TORQUE], params.replace("1.0", "100.0"))["computed_torque"]
    printed("waiting for the guard: 1 of 100 s", waits)
    assert waits.end() == 0


@pytest.fixture
def needy(ros):
    """Return a function that makes a controller in this process, not configured."""
    from rclpy.parameter import Parameter

    from ros_nodes.computed_torque_node import ComputedTorqueNode

    made = []

    def make(**settings):
        settings = {"robot_description_file": "two_link", "engine": "graph",
                    "autostart": False, "require_guard": True, **settings}  # fmt: skip
        overrides = [Parameter(name, value=value) for name, value in settings.items()]
        made.append(ComputedTorqueNode(parameter_overrides=overrides))
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()


@pytest.mark.parametrize("kind", ["EventsExecutor", "SingleThreadedExecutor"])
def test_while_an_activation_waits_all_else_is_served(ros, needy, kind, monkeypatch):
    """Answers, parameters, diagnostics; another transition is refused in words."""
    from lifecycle_msgs.srv import GetState
    from rcl_interfaces.srv import GetParameters
    from rclpy import executors, experimental
    from std_srvs.srv import Trigger

    node, watched = needy(guard_wait=2.0), Watched()
    spun = getattr(experimental, kind, None) or getattr(executors, kind)
    executor = spun()
    for each in (node, watched.node):
        executor.add_node(each)

    def until(done):
        deadline = time.monotonic() + 30.0
        while not done():
            executor.spin_once(timeout_sec=0.02)
            assert time.monotonic() < deadline

    def call(of, name, request):
        client = watched.client(of, f"computed_torque/{name}")
        until(client.service_is_ready)
        future = client.call_async(request)
        until(future.done)
        return future.result()

    try:
        assert node.start()
        node.activation.end()
        began = time.monotonic()
        waits = watched.transition(ACTIVATE, until)
        until(lambda: "computed_torque" in watched.said and not waits.done()
              and watched.said["computed_torque"] == "waiting for the guard: 0 of 2 s")  # fmt: skip
        state = call(GetState, "get_state", GetState.Request()).current_state
        assert state.label == "inactive"
        request = GetParameters.Request(names=["guard_wait"])
        assert (
            call(GetParameters, "get_parameters", request).values[0].double_value == 2
        )
        assert call(Trigger, "estop", Trigger.Request()).success
        for number in (ACTIVATE, DEACTIVATE, CLEANUP, 6):
            refused = watched.transition(number, until)
            until(refused.done)
            assert not refused.result().success
        assert node.counters["transition refused"] == 4
        assert time.monotonic() - began < 2.0
        until(waits.done)
        assert not waits.result().success
        assert 2.0 <= time.monotonic() - began < 2.0 + BUSY
        assert not node.active
        assert "cannot activate: no guard is heard" in node.status()[1]
        refused = watched.transition(CLEANUP, until)
        until(refused.done)
        assert refused.result().success
    finally:
        executor.shutdown(timeout_sec=1.0)
        watched.node.destroy_node()


def test_an_activation_is_completed_when_the_guard_comes(needy, until):
    """Also one of the start, before anything spins; a stopped guard is waited for."""
    from ros_nodes.guard_node import GuardNode

    node, watched = needy(guard_wait=30.0), Watched()
    assert node.start()
    assert not node.active
    guard = GuardNode()
    try:
        spun = node, guard, watched.node
        until(lambda: node.active, *spun, expected="an activation")
        node.trigger_deactivate()
        guard._stop("a person")
        until(lambda: any(x.latch is not None for x in node.guard_link.guards.values()),
              *spun, expected="the stop")  # fmt: skip
        future = watched.transition(ACTIVATE, lambda done: until(done, *spun))
        until(lambda: "waiting for the guard" in watched.said.get("computed_torque", ""),
              *spun, expected="a wait")  # fmt: skip
        assert not future.done()
        guard._on_reset(None, type("Answer", (), {})())
        until(future.done, *spun, expected="an answer")
        assert future.result().success
        assert node.active
        assert node.controller.stopped is None
    finally:
        guard.destroy_node()
        watched.node.destroy_node()


def test_an_activation_without_its_guard_fails_however_it_is_asked_for(needy):
    """A transition that does not wait drives nothing."""
    from rclpy.lifecycle import TransitionCallbackReturn

    node = needy()
    node.trigger_configure()
    assert node.trigger_activate() == TransitionCallbackReturn.FAILURE
    assert not node.active


def test_a_wait_without_a_guard_to_wait_for_is_without_effect(needy, capfd):
    """And is told so."""
    node = needy(require_guard=False, guard_wait=3.0)
    node.trigger_configure()
    assert "without effect here: guard_wait" in capfd.readouterr().err
