"""What stands between the control law and the robot: every check has its fault."""

import threading

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Bounds, Controller, Gate, Rules, ShadowSettings
from dyn_core.control.safety.envelope import JOINT, WHOLE, Envelope
from dyn_core.control.safety.shadow import Shadow

LINK = """<link name="{name}"><inertial><origin xyz="0.3 0 0"/><mass value="2"/>
<inertia ixx="0.01" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
"""
JOINT_XML = """<joint name="{name}" type="revolute"><parent link="{parent}"/>
<child link="{child}"/><origin xyz="{x} 0 0"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="60" velocity="4"/></joint>
"""
TWO = f"""<robot name="two"><link name="base"/>{LINK.format(name="upper")}
{LINK.format(name="lower")}<link name="tool"/>
{JOINT_XML.format(name="shoulder", parent="base", child="upper", x=0)}
{JOINT_XML.format(name="elbow", parent="upper", child="lower", x=0.6)}
<joint name="grip" type="fixed"><parent link="lower"/><child link="tool"/>
<origin xyz="0.5 0 0.1"/></joint></robot>
"""
Q, QD = np.array([0.4, -0.9]), np.array([0.7, -1.1])


class Faulty(dyn.authoring.NumpySolver):
    """Inverse dynamics that does what a test asks of it."""

    name, signature = "faulty", dyn.problems.INVERSE_DYNAMICS

    def __init__(self, model):
        self.exact = dyn.solver("rnea").build(model, engine="graph")
        self.act = lambda tau: tau

    def solve(self, model, q, qd, qdd, f_ext):
        """Return tau = act(rnea)."""
        return self.act(self.exact(q, qd, qdd))


class Watched(Controller):
    """A controller with the solver of its law: only subclasses may have attributes."""

    faulty = None


@pytest.fixture(scope="module")
def two():
    """Return an arm of two joints."""
    return dyn.load_urdf(TWO)


# Settings of a controller that checks efforts alone: states may be any.
ANY_STATE = {"state_bounds": None, "effort_slew": 1e12}
ZERO = {"good_samples": 1, "on_violation": "zero"}


def _controller(model, **settings):
    rules = Rules(**{**ZERO, **settings.pop("rules", {})})
    faulty = Faulty(model)
    settings = {**ANY_STATE, "engine": "graph", **settings}
    made = Watched(model, inverse_dynamics=faulty, rules=rules, **settings)
    made.faulty = faulty
    return made


def _run(controller, cycles, start=0, q=Q, qd=None):
    """Feed states; return the last torque."""
    for k in range(start, start + cycles):
        tau = controller.update(0.01 * k, q, 0 * Q if qd is None else qd)
    return tau


def _weight(model):
    return dyn.solver("gravity").build(model, engine="graph")(Q)


# The envelope


def test_an_envelope_measures_what_others_compute():
    """Effort, rate, power and error by joint; energy and speed by other solvers."""
    two = dyn.load_urdf(TWO, extras={"armature": {"elbow": 0.3}})
    made = Envelope(two, Bounds(tool_speed=1.0, frame="tool"), np.ones(2), "graph")
    tau, before, error = np.array([3.0, -5.0]), np.array([2.0, 1.0]), np.array([0.1, 2])
    values = made.program(Q, QD, tau, before, error, 0.9 * QD, 0.01, made.bounds).values
    H = dyn.solver("crba").build(two, engine="graph")(Q)
    twist = dyn.solver("frame_velocity").build(two, frame="tool", engine="graph")(Q, QD)
    expected = [
        *tau,
        *((tau - before) / 0.01),
        *(tau * QD),
        *error,
        *(0.9 * QD),
        tau @ QD,
        QD @ H @ QD / 2,
        np.linalg.norm(twist[3:]),
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    assert made.names[3] == ("effort_rate", "elbow")
    assert [name for name, _ in made.names[10:]] == list(WHOLE)


@pytest.mark.parametrize("quantity", [*JOINT, *WHOLE])
def test_each_bound_is_checked_and_named(two, quantity):
    """A value below its bound passes; above it, the report names joint and bound."""
    tau, before, error = (
        np.array([3.0, -5.0]),
        np.array([3.1, -5.1]),
        np.array([0.1, 2]),
    )
    load = (Q, QD, tau, before, error, QD, 0.01)
    frame = "tool" if quantity == "tool_speed" else None
    free = {"tracking_error": None, "velocity": None}
    loose = Envelope(
        two, Bounds(tool_speed=1e9, frame="tool", **free), np.full(2, 1e9), "graph"
    )
    k = [name for name, _ in loose.names].index(quantity) + (quantity in JOINT)
    value = abs(loose.program(*load, loose.bounds).values[k])
    assert value > 0.01
    for share, inside in ((1.001, True), (0.999, False)):
        bound = share * value
        if quantity in JOINT:
            bound = {"elbow": bound} if quantity != "effort" else [1e9, bound]
        made = Envelope(
            two,
            Bounds(**free | {quantity: bound}, frame=frame),
            np.full(2, 1e9),
            "graph",
        )
        violation = made.violation(*load)
        assert (violation is None) == inside
    assert (violation.quantity, violation.joint) == (
        quantity,
        "elbow" if k < 10 else "",
    )
    assert violation.bound == pytest.approx(0.999 * value)
    assert quantity.replace("_", " ") in str(violation)
    assert "bound" in str(violation)


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_outside_every_bound(two, place, bad):
    """Also where nothing is bounded."""
    made = Envelope(two, Bounds(), np.full(2, 1e300), "graph")
    load = [Q.copy(), QD.copy(), np.ones(2), np.ones(2), np.zeros(2), QD.copy()]
    assert made.violation(*load, 0.01) is None
    load[place][1] = bad
    if place == 0 and bad == np.inf:
        load[place][1] = 1e400  # sin of it is not a number either
    with np.errstate(invalid="ignore"):
        assert made.violation(*load, 0.01) is not None


def test_a_violation_after_a_pause_names_the_pause(two):
    """Of the control loop, within 2 s; a limp robot falls meanwhile."""
    bound = ", its bound 4 [rad/s | m/s]"
    fast = np.array([0.0, 5.0])
    for pause, later, end in (
        (31, 80, "; the control loop paused for 0.31 s, 0.8 s before"),
        (31, 0, "; the control loop paused for 0.31 s, 0 s before"),
        (31, 210, ""),  # long ago
        (9, 80, ""),  # within state_timeout
    ):
        bounds = Bounds(velocity=4.0, tracking_error=None)
        controller = _controller(two, bounds=bounds, rules={"state_timeout": 0.1})
        _run(controller, 3)
        resumed = 2 + pause
        if later:
            _run(controller, later, start=resumed)
        _run(controller, 1, start=resumed + later, q=Q + 0.01 * fast, qd=fast)
        assert controller.stopped.reason.endswith(f"{bound}{end}")
        controller.begin()
        controller.reset_stop()
        _run(controller, 1, start=resumed + later + 1, qd=fast)
        assert controller.stopped.reason.endswith(bound)


FAULTS = {
    "effort": (30.0, 2.0),
    "effort_rate": (100.0, 1.2),
    "joint_power": (25.0, 1.6),
    "power": (25.0, 1.6),
}


@pytest.mark.parametrize("quantity", list(FAULTS))
def test_a_bad_effort_is_not_sent_in_its_cycle(two, quantity):
    """The solver begins to err; the same cycle sends zero, and the reason is there."""
    bound, factor = FAULTS[quantity]
    controller = _controller(two, bounds=Bounds(**{quantity: bound}), kp=0.0, kd=0.0)
    qd = np.array([1.0, 0.0])
    _run(controller, 1)  # at rest, so that the reference rests
    assert _run(controller, 2, start=1, qd=qd).any()
    assert controller.stopped is None
    controller.faulty.act = lambda tau: factor * tau
    assert not _run(controller, 1, start=3, qd=qd).any()
    assert controller.stopped.cause == "violation"
    assert quantity.replace("_", " ") in controller.stopped.reason
    controller.faulty.act = lambda tau: tau
    assert not _run(controller, 5, start=4).any()
    assert controller.counters["stopped: violation"] == 1


@pytest.mark.parametrize(
    ("bounds", "q", "qd", "expected"),
    [
        (
            {"tracking_error": 0.1},
            Q + [0.0, 0.2],
            0 * Q,
            "tracking error of joint 'elb",
        ),
        ({"kinetic_energy": 1.0}, Q, [3.0, 0.0], "kinetic energy is"),
        ({"tool_speed": 0.5, "frame": "tool"}, Q, [0.0, 1.5], "tool speed is 0.76"),
    ],
)
def test_a_bad_state_stops_in_its_cycle(two, bounds, q, qd, expected):
    """Far from the reference, or too fast: the report says what and where."""
    controller = _controller(two, bounds=Bounds(**bounds))
    assert _run(controller, 3).any()
    assert not controller.update(0.03, q, qd).any()
    assert expected in controller.stopped.reason


def test_the_envelope_sees_the_effort_as_it_is_sent(two):
    """Within the limits that the clip keeps; the first effort has no rate."""
    controller = _controller(two, bounds=Bounds(effort_rate=1e3), kp=1e3)
    tau = _run(controller, 1)
    assert tau.any()
    controller.faulty.act = lambda tau: tau + 5.0
    assert _run(controller, 1, start=1).any()
    limited = _controller(two, bounds=Bounds(), effort_limits={"shoulder": 5.0})
    assert _run(limited, 3)[0] == -5.0
    assert limited.stopped is None
    limited.safety.limit = np.full(2, 60.0)  # as if nothing were clipped
    _run(limited, 1, start=3)
    assert "effort of joint 'shoulder'" in limited.stopped.reason


def test_the_envelope_is_compiled_apart(two):
    """Its Program is none of the law's; what falsifies the law leaves it alone."""
    controller = _controller(two, bounds=Bounds())
    program = controller.safety.envelope.program
    assert program is not controller.law
    assert program.recipe.solver.name == "envelope"


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"effort": 0.0}, "effort is 0.0; valid: > 0"),
        ({"power": np.inf}, "power is inf; valid: > 0"),
        ({"power": "3"}, "power is '3'; valid: "),
        ({"power": True}, "power is True; valid: "),
        ({"tracking_error": {"shoulder": "1_0"}}, "tracking_error is '1_0'; valid: "),
        ({"kinetic_energy": "much"}, "kinetic_energy is 'much'"),
        ({"effort_rate": [1.0]}, "effort_rate: .* numbers; valid: one, or 2"),
        (
            {"effort_rate": [1.0, [2.0, 3.0]]},
            r"effort_rate is \[2.0, 3.0\]; valid: > 0",
        ),
        ({"joint_power": {"elbo": 1.0}}, "joint_power: .*did you mean 'elbow'"),
        ({"tool_speed": 1.0}, "tool_speed and frame go together"),
        ({"frame": "tool"}, "tool_speed and frame go together"),
        ({"tool_speed": 1.0, "frame": "tol"}, "did you mean 'tool'"),
    ],
)
def test_bad_bounds_are_refused(two, bounds, expected):
    """In a sentence."""
    with pytest.raises(dyn.SettingError, match=expected):
        Envelope(two, Bounds(**bounds), np.ones(2), "graph")
    with pytest.raises(dyn.SettingError, match=r"^bounds is .*; valid: Bounds\("):
        Envelope(two, bounds, np.ones(2), "graph")


# Torques that are not finite


@pytest.mark.parametrize("cycles", [0, 2])
@pytest.mark.parametrize("fault", ["nan", "shape", "raise"])
def test_the_last_good_torque_bridges_some_cycles(two, cycles, fault):
    """Then the stop; a good cycle between starts the count anew."""

    def act(tau):
        if fault == "raise":
            raise ZeroDivisionError
        return np.full(2, np.nan) if fault == "nan" else np.zeros(3)

    controller = _controller(two, rules={"last_good_cycles": cycles})
    good = _run(controller, 2)
    for start in (2, 10):
        controller.faulty.act = act
        for k in range(start, start + cycles):
            np.testing.assert_array_equal(_run(controller, 1, start=k), good)
        if cycles:
            controller.faulty.act = lambda tau: tau
            _run(controller, 1, start=start + cycles)
            assert controller.stopped is None
    controller.faulty.act = act
    assert not _run(controller, 1 + cycles, start=30).any()
    assert "torque not finite" in controller.stopped.reason


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [np.inf, 0.0], [1.0], [1.0] * 3, 1.0])
def test_what_is_no_effort_passes_no_check(two, bad):
    """Where the Program itself did not refuse it: a second line."""
    controller = _controller(two)
    good = _run(controller, 2)
    passed = controller.safety.effort(
        0.02, Q, QD, lambda: np.zeros(2), lambda: np.array(bad)
    )
    np.testing.assert_array_equal(passed, good)


def test_no_torque_of_before_a_restart_is_a_last_good_one(two):
    """Without one, zero bridges."""
    controller = _controller(two)
    assert _run(controller, 3).any()
    controller.reset()
    controller.faulty.act = lambda tau: tau * np.nan
    assert not _run(controller, 1, start=3).any()
    assert controller.stopped is None


# Stops


def _begin(controller, cause, t):
    if cause == "violation":
        controller.safety.envelope.bounds = controller.safety.envelope.bounds * 1e-9
        controller.update(t, Q, 0 * Q)
        controller.safety.envelope.bounds = controller.safety.envelope.bounds * 1e9
    elif cause == "estop":
        controller.estop(t)
    else:
        controller.shut_down(t)


@pytest.mark.parametrize("cause", ["violation", "estop", "shutdown"])
@pytest.mark.parametrize("kind", ["zero", "ramp", "hold"])
def test_each_stop_does_what_its_rule_says(two, cause, kind):
    """Zero at once; the weight for stop_time, then zero; or the position is held."""
    rules = {f"on_{cause}": kind, "on_stale": "ramp", "stop_time": 0.5}
    controller = _controller(two, rules=rules, bounds=Bounds())
    _run(controller, 3)
    _begin(controller, cause, 0.03)
    assert (controller.stopped.cause, controller.stopped.kind) == (cause, kind)
    weight = _weight(two)
    nothing = 0 * weight
    tau = controller.update(0.04, Q, 0 * Q)
    np.testing.assert_allclose(tau, nothing if kind == "zero" else weight, atol=1e-9)
    braking = controller.update(0.05, Q, QD)
    assert (kind == "zero") == (not braking.any())
    assert kind == "zero" or (braking - weight) @ QD < 0
    for k in range(11):
        tau = controller.update(0.06 + 0.05 * k, Q, 0 * Q)
    np.testing.assert_allclose(tau, weight if kind == "hold" else nothing, atol=1e-9)


def test_a_stop_latches_until_a_person_resets_it(two):
    """Neither silence, a reset, enabling nor new states end it; a second one counts."""
    controller = _controller(two)
    _run(controller, 3)
    controller.estop(0.03, "pressed")
    assert controller.stopped.reason == "pressed"
    controller.reset()
    assert not _run(controller, 3, start=4).any()
    assert controller.watch(5.0) is not None
    controller.begin()
    controller.enabled = True
    assert not _run(controller, 3, start=600).any()
    path = controller.make_trajectory(["shoulder", "elbow"], [1.0], [Q])
    with pytest.raises(dyn.SettingError, match="stopped"):
        controller.follow(path, 6.1)
    controller.estop(6.2, "again")
    assert controller.stopped.reason == "pressed"
    controller.reset_stop()
    assert controller.stopped is None
    moved = Q + 0.3
    assert _run(controller, 3, start=630, q=moved).any()
    np.testing.assert_array_equal(controller.reference.q, moved)


def test_after_a_stop_the_robot_rests_where_it_is(two):
    """It does not go back to the reference of before; good samples are counted anew."""
    controller = _controller(two, rules={"good_samples": 2})
    _run(controller, 3)
    controller.estop(0.03)
    controller.update(0.03, Q + 0.2, 0 * Q)
    controller.reset_stop()
    assert not controller.update(0.04, Q + 0.2, 0 * Q).any()
    assert controller.update(0.05, Q + 0.2, 0 * Q).any()
    np.testing.assert_array_equal(controller.reference.q, Q + 0.2)


def test_a_stronger_stop_replaces_a_weaker_one(two):
    """Zero overrides ramp and hold, never the other way round."""
    controller = _controller(two, rules={"on_estop": "hold", "on_shutdown": "ramp"})
    _run(controller, 3)
    controller.estop(0.03)
    controller.shut_down(0.04)
    assert controller.stopped.kind == "ramp"
    controller.estop(0.05)
    assert controller.stopped.kind == "ramp"


def test_a_held_position_is_where_the_reference_comes_to_rest(two):
    """An emergency stop brakes the reference, a violation starts from the robot."""
    rules = {"on_estop": "hold", "on_violation": "hold", "deceleration": 10.0}
    path = ([0.0, 1.0, 2.0], [Q, Q + 1.0, Q + 2.0])
    ends = []
    for cause in ("estop", "violation"):
        controller = _controller(two, rules=rules, bounds=Bounds())
        _run(controller, 1)
        controller.follow(controller.make_trajectory(two.joint_names, *path), 0.0)
        for k in range(1, 21):
            t = 0.01 * k
            controller.update(t, Q + t - 0.01, np.ones(2))
        last = controller.reference
        assert 0.9 < last.qd[0] < 1.2
        _begin(controller, cause, 0.2)
        assert controller.stopped.kind == "hold"
        for k in range(21, 60):
            controller.update(0.01 * k, Q + 0.2, 0 * Q)
        ends.append(controller.reference)
    np.testing.assert_allclose(ends[0].q, last.q + last.qd**2 / 20.0, atol=1e-9)
    np.testing.assert_allclose(ends[1].q, Q, atol=1e-9)  # measured at rest there
    assert not ends[0].qd.any()


def test_a_held_position_is_checked_after_its_time(two):
    """What still violates the envelope then, or has no finite torque, ends in zero."""
    rules = {"on_estop": "hold", "stop_time": 0.1}
    for act, reason in ((lambda x: x * np.nan, "not finite"), (None, "tracking error")):
        controller = _controller(two, rules=rules, bounds=Bounds(tracking_error=0.1))
        _run(controller, 3)
        controller.estop(0.03)
        assert controller.update(0.06, Q + 0.2, 0 * Q).any()
        if act is not None:
            controller.faulty.act = act
        assert not controller.update(0.14, Q + 0.2, 0 * Q).any()
        assert controller.stopped.kind == "zero"
        assert reason in controller.stopped.reason


@pytest.mark.parametrize("mode", ["computed_torque", "gravity"])
def test_a_ramp_does_not_need_the_solver_that_failed(two, mode):
    """The weight comes from a solver of ours; where that fails, too, there is zero."""
    rules = {"on_violation": "ramp", "last_good_cycles": 0}
    controller = _controller(two, rules=rules, mode=mode)
    _run(controller, 3)
    controller.faulty.act = lambda tau: tau * np.nan
    tau = controller.update(0.03, Q, 0 * Q)
    np.testing.assert_allclose(tau, _weight(two), atol=1e-9)
    assert "NonFiniteError" in controller.stopped.reason
    controller.safety.weight = lambda q, qd: q * np.nan
    assert not controller.update(0.04, Q, 0 * Q).any()
    assert controller.counters["torque not finite"] == 2


@pytest.mark.parametrize(
    ("on_estop", "on_stale", "carried_until"),
    [
        ("zero", "ramp", 0.0),
        ("ramp", "zero", 0.53),
        ("hold", "ramp", 0.62),
        ("hold", "zero", 0.0),
    ],
)
def test_silence_during_a_stop(two, on_estop, on_stale, carried_until):
    """Without fresh states a ramp ends in its time, and nothing is held."""
    rules = {"on_estop": on_estop, "on_stale": on_stale, "on_shutdown": "ramp"}
    rules |= {"stop_time": 0.5}
    controller = _controller(two, rules=rules)
    _run(controller, 3)  # the last state is of 0.02 s, stale at 0.12 s
    controller.estop(0.03)
    for t in (0.13, 0.3, 0.52, 0.54, 0.61, 0.63, 9.0):
        tau = controller.watch(t)
        expected = _weight(two) if t < carried_until else np.zeros(2)
        np.testing.assert_allclose(tau, expected, atol=1e-9)


# The gate


def test_an_effort_of_before_a_stop_does_not_pass():
    """Whatever was computed with an older ticket is discarded, and counted."""
    gate, sent = Gate(), []
    ticket = gate.ticket()
    assert gate.send(ticket, sent.append, 1)
    gate.close(lambda: sent.append(0))
    assert not gate.send(ticket, sent.append, 2)
    assert gate.discarded == 1
    assert gate.send(gate.ticket(), sent.append, 3)
    assert sent == [1, 0, 3]


def test_a_stop_waits_for_the_effort_that_is_being_sent():
    """A stop in another thread comes before or after an effort, never within."""
    gate, order = Gate(), []
    inside, closing = threading.Event(), threading.Event()

    def publish():
        inside.set()
        closing.wait(5)
        order.append("effort")

    def stop():
        inside.wait(5)
        closing.set()
        gate.close(lambda: order.append("zero"))

    other = threading.Thread(target=stop)
    other.start()
    assert gate.send(gate.ticket(), publish)
    other.join(5)
    assert order == ["effort", "zero"]
    assert gate.generation == 1


def test_a_stop_during_a_computation_replaces_its_effort(two):
    """The law is still at work when the button is pressed."""
    controller = _controller(two)
    _run(controller, 3)
    before = controller.safety.ticket

    def act(tau):
        controller.estop(0.03)
        return tau

    controller.faulty.act = act
    assert not controller.update(0.03, Q, 0 * Q).any()
    gate, sent = controller.safety.gate, []
    assert not gate.send(before, sent.append, 1)
    assert gate.send(controller.safety.ticket, sent.append, 2)


def test_a_stop_and_its_reset_during_a_computation_discard_its_effort(two):
    """What began before both is not sent, though no stop is in force any more."""
    controller = _controller(two)
    _run(controller, 3)

    def act(tau):
        controller.estop(0.03)
        controller.safety.reset()
        return tau

    controller.faulty.act = act
    assert not controller.update(0.03, Q, 0 * Q).any()


def test_rates_count_from_efforts_of_the_law(two):
    """After a restart the first effort has no rate, however far it is from the last."""
    controller = _controller(two, bounds=Bounds(effort_rate=20.0))
    for k in range(3):
        assert _run(controller, 1, start=10 * k).any()
        controller.reset()
        controller.faulty.act = lambda tau, k=k: tau + 5.0 * k
    _run(controller, 1, start=30)
    controller.enabled = False
    assert not _run(controller, 1, start=31).any()
    controller.enabled = True
    controller.faulty.act = lambda tau: tau - 5.0
    assert _run(controller, 1, start=32).any()
    assert controller.stopped is None


def test_resetting_a_stop_discards_too(two):
    """The effort of a stop is none of the time after it."""
    controller = _controller(two)
    _run(controller, 3)
    controller.estop(0.03)
    controller.update(0.04, Q, 0 * Q)
    old = controller.safety.ticket
    controller.reset_stop()
    assert not controller.safety.gate.send(old, list)


# The shadow


def test_a_shadow_agrees_with_what_is_right(two):
    """Another solver on another engine: no count, no stop."""
    controller = Controller(
        two,
        engine="graph",
        rules=Rules(good_samples=1),
        shadow=ShadowSettings("rnea_spatial", engine="plain"),
        bounds=Bounds(),
    )
    for k in range(3):
        tau = controller.update(0.01 * k, Q + 0.01 * k, QD)
    assert tau.any()
    assert not controller.counters
    assert controller.safety.shadow.law() is not None


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("mode", ["computed_torque", "gravity"])
def test_a_shadow_sees_a_percent(two, mode, stop):
    """The joint is named; the effort is replaced in that cycle, or it is counted."""
    watch = ShadowSettings("rnea", relative=1e-3, stop=stop)
    controller = _controller(two, shadow=watch, mode=mode)
    _run(controller, 3)
    assert not controller.counters
    controller.faulty.act = lambda tau: tau * [1.01, 1.0]
    tau = _run(controller, 1, start=3)
    assert tau.any() == (not stop)
    assert controller.counters["shadow disagrees"] == 1
    if stop:
        assert "joint 'shoulder'" in controller.stopped.reason
        assert "shadow 'rnea'" in controller.stopped.reason
    else:
        assert controller.stopped is None


@pytest.mark.parametrize("act", [lambda x: x * np.nan, lambda x: x + 2e-3])
def test_a_shadow_that_errs_stops_as_well(two, act):
    """Which of the two is wrong is not known."""
    watcher = Faulty(two)
    controller = _controller(two, shadow=ShadowSettings(watcher, absolute=1e-3))
    _run(controller, 3)
    assert controller.stopped is None
    watcher.act = act
    assert not _run(controller, 1, start=3).any()
    assert "shadow 'faulty'" in controller.stopped.reason


@pytest.mark.parametrize("law", [lambda: 1 / 0, lambda: [1.0], lambda: "none"])
def test_whatever_fails_in_a_shadow_is_a_disagreement(law):
    """An exception that is not ours, or a wrong shape, does not end the controller."""
    shadow = Shadow(ShadowSettings("rnea"), ("a", "b"), law)
    assert "the shadow 'rnea' fails: " in shadow.disagreement(np.zeros(2))


def test_a_shadow_without_a_number_disagrees():
    """Nothing is near what is no number."""
    watcher = Shadow(ShadowSettings(), ("a", "b"), lambda: np.array([1.0, np.nan]))
    assert "joint 'b'" in watcher.disagreement(np.ones(2))


@pytest.mark.parametrize("name", ["absolute", "relative"])
def test_a_shadow_allows_its_tolerances(name):
    """Each adds to what is allowed; the relative one counts from the largest effort."""
    settings = ShadowSettings(**{"absolute": 0.0, "relative": 0.0, name: 1e-3})
    scale = 1.0 if name == "absolute" else 10.0
    for share, agrees in ((0.9, True), (1.1, False)):
        other = np.array([10.0, 1.0 + share * 1e-3 * scale])
        watcher = Shadow(settings, ("a", "b"), lambda other=other: other)
        assert (watcher.disagreement(np.array([10.0, 1.0])) is None) == agrees


@pytest.mark.parametrize("name", ["absolute", "relative"])
def test_tolerances_of_a_shadow_are_checked(name):
    """Finite numbers, not negative; a stop is a switch."""
    for bad in (-1.0, np.nan, np.inf, "x", None, True, [1.0]):
        with pytest.raises(dyn.SettingError, match=f"shadow.{name} is"):
            ShadowSettings(**{name: bad})
    with pytest.raises(dyn.SettingError, match="shadow.stop is 'no'; valid: true or"):
        ShadowSettings(stop="no")
