"""States that cannot be are refused, good ones never; one wrong sample moves little."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Bounds, Controller, Rules, StateBounds
from dyn_core.control.safety.health import ERROR, WARN, Health
from dyn_core.control.settings import FULL_EFFORT
from dyn_core.control.states.plausibility import (
    BEYOND,
    DISAGREE,
    DRIFT,
    JITTER,
    TOO_FAST,
    LongMotion,
    StateCheck,
    allocate_state_rows,
)
from dyn_core.control.states.state_samples import Samples

NAMES = ("swing", "slide", "spin")
LINK = """<link name="{0}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{1}" type="{2}"><parent link="{3}"/><child link="{0}"/>
<axis xyz="0 1 0"/><limit {4} effort="50"/></joint>"""
THREE = f"""<robot name="three"><link name="base"/>
{LINK.format("a", "swing", "revolute", "base", 'lower="-2" upper="1" velocity="4"')}
{LINK.format("b", "slide", "prismatic", "a", 'lower="0" upper="0.1" velocity="0.2"')}
{LINK.format("c", "spin", "continuous", "b", 'velocity="6"')}</robot>"""


def _campaign():
    path = Path(__file__).with_name("state_campaign.py")
    spec = importlib.util.spec_from_file_location("state_campaign", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CAMPAIGN = _campaign()


@pytest.fixture(scope="module")
def three():
    """Return a robot with a revolute, a sliding and a continuous joint."""
    return dyn.load_urdf(THREE)


# One state alone


def test_the_bounds_come_from_the_model(three):
    """Slack by kind of joint, ten velocity limits, twice the limit of velocity."""
    check = StateCheck(three, StateBounds())
    np.testing.assert_allclose(check.low, [-2.2, -0.05, -np.inf])
    np.testing.assert_allclose(check.high, [1.2, 0.15, np.inf])
    np.testing.assert_allclose(check.fastest, [40.0, 2.0, 60.0])
    np.testing.assert_allclose(check.mismatch, [8.0, 0.5, 12.0])
    assert check.untested == ()


@pytest.mark.parametrize(
    ("joint", "q", "qd", "kind"),
    [
        (0, -2.21, 0.0, BEYOND),
        (0, 1.21, 0.0, BEYOND),
        (0, 57.3, 0.0, BEYOND),
        (1, 0.16, 0.0, BEYOND),
        (0, 0.0, 40.1, TOO_FAST),
        (1, 0.05, -2.1, TOO_FAST),
        (2, 0.0, 61.0, TOO_FAST),
        (0, -2.19, 39.0, None),
        (1, -0.04, 1.9, None),
        (2, 1e3, 59.0, None),
    ],
)
def test_a_state_beyond_the_bounds_is_refused_and_counted(three, joint, q, qd, kind):
    """Position and velocity by joint; a continuous joint may be anywhere."""
    controller = Controller(three, engine="graph")
    positions, velocities = np.array([0.0, 0.05, 0.0]), np.zeros(3)
    positions[joint], velocities[joint] = q, qd
    if kind is None:
        controller.update(0.0, positions, velocities)
        assert not controller.counters
        return
    with pytest.raises(dyn.StateError, match=f"joint '{NAMES[joint]}'") as error:
        controller.update(0.0, positions, velocities)
    assert error.value.kind == kind
    assert "believed" in str(error.value)
    assert controller.counters[kind] == 1
    assert controller.q is None


def test_limits_that_say_nothing_are_told_by_joint():
    """Such a joint is not tested there; positions still test its velocity."""
    bare = dyn.load_urdf(
        THREE.replace('lower="-2" upper="1" velocity="4"', 'lower="1" upper="1"')
    )
    controller = Controller(bare, engine="graph")
    assert [s.split("'")[1] for s in controller.untested] == ["swing", "swing"]
    assert "lower >= upper" in controller.untested[0]
    assert "no velocity limit" in controller.untested[1]
    place = np.array([500.0, 0.0, 0.0])
    for k in range(3):
        controller.update(0.002 * k, place, 0 * place)
    with pytest.raises(dyn.StateError, match="velocity_mismatch"):
        controller.update(0.006, place, np.array([1e3, 0.0, 0.0]))


def test_settings_of_the_bounds_are_checked_and_can_be_turned_off(three):
    """One number, one a joint, numbers by name; None believes all that is finite."""
    made = StateCheck(three, StateBounds({"slide": 0.5}, 2.0, [1.0, 2.0, 3.0]))
    np.testing.assert_allclose(made.high, [1.2, 0.6, np.inf])
    np.testing.assert_allclose(made.fastest, [8.0, 0.4, 12.0])
    np.testing.assert_allclose(made.mismatch, [1.0, 2.0, 3.0])
    for bad in ({"position_slack": -1.0}, {"velocity_mismatch": {"no": 1.0}}):
        with pytest.raises(dyn.SettingError):
            StateCheck(three, StateBounds(**bad))
    for bad in (0.5, np.nan, "x", None):
        with pytest.raises(dyn.SettingError, match="velocity_factor"):
            StateBounds(velocity_factor=bad)
    controller = Controller(three, engine="graph", state_bounds=None)
    controller.update(0.0, np.full(3, 1e6), np.full(3, 1e6))
    assert not controller.counters
    assert controller.untested == ()


# Two states


def _checked(three, change, before, after, dt, period=0.002, made=False):
    moved, *rates = (np.array([x, 0.0, 0.0], float) for x in (change, before, after))
    check = StateCheck(three, StateBounds(), made)
    check.check_motion(moved, *rates, dt, period)


@pytest.mark.parametrize(
    ("change", "before", "after", "dt", "good"),
    [
        (0.002, 1.0, 1.0, 0.002, True),
        (0.0, 0.0, 7.9, 0.002, True),  # within velocity_mismatch
        (0.0, 0.0, 17.0, 0.002, False),  # more than twice: of no mean of both ends
        (0.0, 12.0, 12.0, 0.002, False),
        (0.004, 12.0, -10.0, 0.002, True),  # an impact within the step
        (0.024, 12.0, 12.0, 1e-5, True),  # stamps that are nearly equal
        (0.024, 12.0, 12.0, 0.05, True),  # one of a burst that waited
        (0.024, 12.0, 12.0, 0.0039, True),
        (0.49, 0.0, 0.0, 0.002, False),
        (-0.1, 0.0, 0.0, 0.002, False),
        (0.6, 0.0, 0.0, 0.1, True),  # may have happened meanwhile
        (1.5, 0.0, 0.0, 0.1, False),
        (0.0, -20.0, 20.0, 0.002, True),
    ],
)
def test_positions_and_velocities_are_of_one_motion(
    three, change, before, after, dt, good
):
    """The mean velocity is that at the end, or the mean of both ends; dt may be off."""
    if good:
        _checked(three, change, before, after, dt)
        return
    with pytest.raises(dyn.StateError, match=r"joint 'swing' moved at") as error:
        _checked(three, change, before, after, dt)
    assert error.value.kind == DISAGREE


def test_a_slow_source_may_arrive_in_bursts(three):
    """The mean period counts where less time has passed."""
    _checked(three, 0.24, 12.0, 12.0, 1e-5, period=0.02)
    with pytest.raises(dyn.StateError):
        _checked(three, 0.24, 12.0, 12.0, 1e-5, period=0.002)


def test_velocities_made_from_positions_are_compared_with_the_one_before(three):
    """Neither by factor, nor with positions that they come from."""
    _checked(three, 0.004, 2.0, 1e3, 0.002, made=True)
    assert not np.isfinite(StateCheck(three, StateBounds(), True).fastest).any()
    with pytest.raises(dyn.StateError):
        _checked(three, 0.3, 0.0, 100.0, 0.002, made=True)
    rules = Rules(differentiate=True)
    controller = Controller(three, engine="graph", rules=rules)
    q = np.array([0.0, 0.05, 0.0])
    for k in range(5):
        controller.update(0.002 * k, q, None)
    with pytest.raises(dyn.StateError):
        controller.update(0.01, q + [0.4, 0.0, 0.0], None)
    assert controller.update(0.012, q, None) is not None
    quick = Rules(differentiate=True, filter_time=1e-9)  # they agree with any jump
    controller = Controller(three, engine="graph", rules=quick)
    for k in range(5):
        controller.update(0.002 * k, q, None)
    with pytest.raises(dyn.StateError):
        controller.update(0.01, q + [0.4, 0.0, 0.0], None)


def test_several_disagreements_in_a_row_are_two_robots(three):
    """As jumps are: zero effort until none has come for state_timeout."""
    controller = Controller(three, engine="graph")
    q, refused = np.array([0.0, 0.05, 0.0]), 0
    for k in range(60):
        other = 0.3 if k >= 20 and k % 2 else 0.0
        try:
            tau = controller.update(0.002 * k, q + [other, 0.0, 0.0], 0 * q)
        except dyn.StateError:
            refused += 1
    assert refused > 15
    assert not tau.any()
    assert Health(controller, 1.0).conditions(0.119)[0].key == "alternate"


@pytest.mark.parametrize("speed", [0.5, 1.0, 3.0, -3.0])
def test_positions_that_stand_while_velocities_do_not_are_found(three, speed):
    """Once both differ by DRIFT velocity_mismatch, until a whole window agrees."""
    check = StateCheck(three, StateBounds())
    rows = allocate_state_rows(np.zeros(3), check)
    motion = LongMotion(NAMES, rows, 1.0, 0.1)
    still, moves = np.zeros(3), np.array([speed, 0.0, 0.0])

    def add(t, q, qd):
        rows.q[:], rows.qd[:] = q, qd
        motion.add(t)

    t = 0.0
    with pytest.raises(dyn.StateError, match="moved by 0 in"):
        while t < 2.0:
            add(t, still, moves)
            t += 0.002
    assert t == pytest.approx(DRIFT * 8.0 / abs(speed), abs=0.005)
    doubted = t
    while motion.doubt is not None and t < doubted + 3.0:
        try:
            add(t, still, still)
        except dyn.StateError:
            pass
        t += 0.002
    assert t - doubted == pytest.approx(1.0, abs=0.01)
    add(t + 0.11, still + 5.0, moves)  # after a gap a new window begins
    assert motion.doubt is None


def test_a_doubt_ends_once_positions_and_velocities_agree_again():
    """Also where nothing was believed meanwhile for longer than state_timeout."""
    controller = Controller(dyn.load("arm7"), engine="graph")
    q, still = CAMPAIGN.HOLD, np.zeros(7)
    sent, refused = [], []
    for k in range(1000):
        qd = still + 3.0 if 50 <= k < 150 else still
        try:
            tau = controller.update(0.004 * k, q, qd, 100 + 0.004 * k)
            sent.append((k, tau.any()))
        except dyn.StateError:
            refused.append(k)
    assert 60 < refused[0] < 75
    assert refused[-1] == pytest.approx(150 + 250, abs=30)  # a window of 1 s
    assert [k for k, any_effort in sent if any_effort][-1] == 999


def test_the_period_is_measured_and_known_after_some_samples():
    """The mean of stamps, or of arrivals where there are none."""
    model = dyn.load("two_link")
    for stamped in (True, False):
        samples = Samples(model.joint_names, Rules(), np.zeros(2, bool), {})
        rng = np.random.default_rng(0)
        for k in range(300):
            assert (samples.period is None) == (k <= 10)
            t = 0.002 * k + rng.uniform(0, 1e-3)
            samples.accept(t, np.zeros(2), np.zeros(2), t if stamped else None, t)
        assert samples.period == pytest.approx(0.002, rel=0.05)


def test_a_jump_is_no_lasting_doubt():
    """A simulator's reset is a new start: torque comes with the next good states."""
    stand = CAMPAIGN.Stand().run(0.1)
    stand.q = stand.q + [0.0, 0.6, 0.0, 0.6, 0.0, -0.6, 0.0]
    stand.run(0.02)
    assert stand.controller.counters["position jumped"] == 1
    assert not stand.refused
    assert stand.sent[-1].any()


def test_stamps_that_jump_ahead_are_no_duration():
    """Then arrivals count, and at least the mean period; neither is a long gap."""
    model = dyn.load("two_link")
    samples = Samples(model.joint_names, Rules(), np.zeros(2, bool), {})
    still = np.zeros(2)
    for k in range(20):
        samples.accept(0.002 * k, still, still, 5.0 + 0.002 * k, 0.002 * k)
    assert samples._elapsed(0.04, 5.04) == pytest.approx(0.002)
    assert samples._elapsed(0.04, 5.13) == pytest.approx(0.092)
    assert samples._elapsed(0.05, 99.0) == pytest.approx(0.012)
    assert samples._elapsed(0.0381, None) == pytest.approx(0.002)
    samples.accept(9.0, still, still, 99.0, 9.0)
    samples.accept(18.0, still, still, 108.0, 18.0)
    assert samples.period == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("velocity", "rate"),
    [(0.2, 0.2), (0.5, 0.5), (3.0, 0.5), (-3.0, 0.0), (0.0, 0.0)],
)
def test_the_rate_is_what_positions_and_velocities_agree_on(velocity, rate):
    """The smaller one; zero where signs differ; the velocity of a first state."""
    model = dyn.load("two_link")
    samples = Samples(model.joint_names, Rules(), np.zeros(2, bool), {})
    first, second = np.array([0.1, 0.0]), np.array([0.101, 0.0])
    samples.accept(0.0, first, np.array([velocity, 0.0]), None, 0.0)
    assert samples.rate[0] == velocity
    samples.accept(0.002, second, np.array([velocity, 0.0]), None, 0.002)
    np.testing.assert_allclose(samples.rate, [rate, 0.0])
    samples.accept(0.004, first, np.array([-velocity, 0.0]), None, 0.004)
    np.testing.assert_allclose(samples.rate, [-rate, 0.0])


@pytest.mark.parametrize("turns", [1, -1, 2, 3, -3])
def test_more_than_one_turn_in_a_sample_is_a_jump(three, turns):
    """A turn is the wrap of an encoder; several are a new start."""
    controller = Controller(three, engine="graph")
    q = np.array([0.0, 0.05, 0.3])
    for k in range(5):
        tau = controller.update(0.002 * k, q, 0 * q)
    tau = controller.update(0.01, q + [0, 0, 2 * np.pi * turns], 0 * q)
    assert tau.any() == (abs(turns) == 1)
    assert controller.counters["position jumped"] == (abs(turns) > 1)


# Good states, and faults


@pytest.mark.parametrize("source", CAMPAIGN.SOURCES)
def test_no_good_state_is_refused(source):
    """At the limits of velocity, however they are delivered; a million by hand."""
    counters, seen = CAMPAIGN.alarms(source, 1200)
    counters.pop("torque slewed", None)
    assert seen == 1200
    assert not counters


@pytest.mark.parametrize("fault", CAMPAIGN.FAULTS)
def test_a_state_that_cannot_be_becomes_no_torque(fault):
    """Refused at once, or once it has contradicted positions; then silence is zero."""
    stand = CAMPAIGN.fault(fault, 0.4)
    driven = np.flatnonzero([tau.any() for tau in stand.sent])
    slow = fault == "velocity 3 rad/s"
    last = driven[-1] * CAMPAIGN.PERIOD
    assert last <= (0.2 if slow else 0.1)
    assert len(stand.refused) > 100
    if not slow:
        share = np.abs(np.array(stand.sent) / stand.controller.limit).max()
        assert share < 0.3  # that of the weight


@pytest.mark.parametrize(
    ("stamps", "speed", "within"),
    [("equal", 0.0, 0.11), ("equal", 0.5, 0.11), ("fresh", 2.0, 0.25), ("fresh", 0.5, 0.6)],
)  # fmt: skip
def test_a_source_that_repeats_itself_is_silent(stamps, speed, within):
    """Equal stamps are no new sample; fresh ones contradict their velocity."""
    seconds, stand = CAMPAIGN.frozen(stamps, speed)
    assert 0.05 < seconds < within
    (first, *_) = Health(stand.controller, 1.0).conditions(stand.t)
    assert first.level == ERROR
    assert ("stamp stands still" in first.message) == (stamps == "equal")


@pytest.mark.parametrize(
    ("place", "size"),
    [
        (0, 1e-3), (0, 5e-3), (0, 0.015), (0, -5e-3), (1, 0.1), (1, 1.0), (1, 3.0),
        (1, 8.0), (1, -8.0),
    ],
)  # fmt: skip
def test_one_legal_wrong_sample_moves_an_effort_by_its_slew(place, size):
    """By no more than effort_slew times the cycle, and it stops nothing."""
    change, refused, stopped = CAMPAIGN.spike(place, size)
    assert not stopped
    assert refused or 0 < change <= 1.0001 * CAMPAIGN.PERIOD / FULL_EFFORT


@pytest.mark.parametrize(("place", "size"), [(0, 0.05), (0, 0.49), (1, 10.0), (1, 1e3)])
def test_one_wrong_sample_that_cannot_be_moves_nothing(place, size):
    """It is refused, and the next good one goes on."""
    change, refused, stopped = CAMPAIGN.spike(place, size)
    assert refused
    assert not stopped
    assert change == 0.0


def test_the_slew_can_be_set(three):
    """By joint; stops act at once."""
    q = np.array([0.0, 0.05, 0.0])
    slow = Controller(three, engine="graph", effort_slew={"swing": 10.0})
    np.testing.assert_allclose(slow.slew, [10.0, 50 / FULL_EFFORT, 50 / FULL_EFFORT])
    for k in range(4):
        tau = slow.update(0.002 * k, q, 0 * q)
    moved = slow.update(0.008, q + [0.01, 0.0, 0.0], 0 * q)
    assert abs(moved - tau)[0] == pytest.approx(0.02)
    assert slow.counters["torque slewed"] == 1
    slow.estop(0.009)
    assert not slow.update(0.01, q, 0 * q).any()
    with pytest.raises(dyn.SettingError, match="effort_slew"):
        Controller(three, effort_slew=-1.0)


def test_a_ramp_acts_at_once_and_then_changes_at_the_slew(three):
    """Its first effort is the weight's, whatever was sent before."""
    rules = Rules(on_estop="ramp", good_samples=1)
    settings = {"state_bounds": None, "rules": rules, "engine": "graph"}
    controller = Controller(three, effort_slew=20.0, **settings)
    q, still = np.array([0.0, 0.05, 0.0]), np.zeros(3)
    weight = dyn.solver("gravity").build(three, engine="graph")(q)
    elsewhere = controller.update(0.0, q - [0.49, 0.0, 0.0], still)
    assert np.abs(elsewhere - weight).max() > 0.3
    controller.estop(0.003)
    for k in range(2):
        tau = controller.update(0.004 + 0.002 * k, q, still)
        np.testing.assert_allclose(tau, weight, atol=1e-9)
    for qd in ([3.0, 0.0, 0.0], [-3.0, 0.0, 0.0]):
        before, t = tau, controller.seen + 0.002
        tau = controller.update(t, q, np.array(qd))
        assert np.abs(tau - before).max() == pytest.approx(0.04)


def _swinging(efforts):
    """Return when a law of alternating efforts is stopped [s], and by what."""
    model, rows = dyn.load("two_link"), iter(efforts)
    controller = Controller(
        model, engine="graph", bounds=None, effort_slew=model.effort_limit / 0.05
    )
    controller.law = lambda *_: next(rows) * model.effort_limit
    for k in range(200):
        controller.update(0.002 * k, np.zeros(2), np.zeros(2))
        if controller.stopped is not None:
            return 0.002 * k, controller.stopped.reason
    return None, None


def test_a_law_that_oscillates_at_the_slew_is_stopped():
    """After 1.4 swings from limit to limit; one swing is none."""
    when, reason = _swinging([0.0, *((-1.0) ** k for k in range(300))])
    assert when == pytest.approx(0.14, abs=0.012)
    assert reason.startswith("the effort of joint 'joint1' has changed")
    assert "the law oscillates" in reason
    once = [0.0, *([-1.0] * 40), *([1.0] * 300)]
    assert _swinging(once) == (None, None)


# Motions that are true


@pytest.mark.parametrize("kind", ["ramp", "hold", "auto"])
def test_an_arm_that_falls_is_caught(kind):
    """Its states are believed, told, and brought to rest; then it can be activated."""
    stand = CAMPAIGN.fall(kind, 1.5)
    assert stand.speed > 3.0
    assert not stand.refused
    assert stand.controller.stopped.kind == ("hold" if kind == "hold" else "ramp")
    assert "velocity of joint" in stand.controller.stopped.reason
    assert np.abs(stand.qd).max() < 0.01
    stand.controller.reset_stop()
    stand.run(1.0)
    assert stand.controller.stopped is None
    assert np.abs(stand.qd).max() < 0.01


def test_after_silence_a_moving_robot_is_led_to_rest():
    """Not braked at full effort: the reference begins with its velocity."""
    rules = Rules(state_timeout=0.02)
    stand = CAMPAIGN.Stand(q=[0, -0.3, 0, -1.2, 0, 1.6, 0.8], rules=rules)
    stand.run(0.2)
    stand.run(0.13, drives=False)
    speed = np.abs(stand.qd).max()
    assert 0.8 < speed < 3.0
    stand.sent.clear()
    stand.run(0.008)
    assert np.abs(stand.controller.reference.qd).max() > 0.8 * speed
    stand.run(0.6)
    share = np.abs(np.array(stand.sent) / stand.controller.limit).max()
    assert share < 0.75
    assert np.abs(stand.qd).max() < 0.01
    assert stand.controller.stopped is None


@pytest.mark.parametrize(
    "law",
    [
        {"factor": -1.0}, {"factor": 1e9}, {"gain": 1000.0},
        {"factor": -1.0, "later": 0.3}, {"factor": 1e9, "later": 0.3},
    ],
)  # fmt: skip
def test_a_wrong_law_is_stopped(law):
    """Wrong sign, a thousandfold gain, a factor: within 0.2 s, by the default bounds."""
    seconds, stand = CAMPAIGN.wrong_law(**law)
    assert seconds < 0.2
    expected = "gains" if "gain" in law else "violation"
    assert stand.controller.stopped.cause == expected


@pytest.mark.one_of(2)
@pytest.mark.parametrize("seed", range(25))
def test_random_lives_stop_nothing(seed):
    """Activations, silences, gains and trajectories; a thousand by hand."""
    stand = CAMPAIGN.random_life(seed)
    assert stand.controller.stopped is None
    assert not stand.refused


def test_the_default_envelope_is_of_the_model_and_the_law():
    """Tracking error in computed torque alone; velocities where there are limits."""
    arm = dyn.load("arm7")
    made = Bounds().resolved(arm, tracks=True)
    np.testing.assert_allclose(made.velocity, 1.5 * arm.velocity_limit)
    assert made.tracking_error == [0.5] * 7
    assert Bounds().resolved(arm, tracks=False).tracking_error is None
    pole = dyn.load("cart_pole")
    made = Bounds(tracking_error=0.1).resolved(pole, tracks=True)
    assert made.velocity == [15.0, None]
    assert made.tracking_error == 0.1
    three = Bounds().resolved(dyn.load_urdf(THREE), tracks=True)
    assert three.tracking_error == [0.5, 0.05, 0.5]
    none = Bounds(velocity=None, tracking_error=None).resolved(arm, tracks=True)
    assert (none.velocity, none.tracking_error) == (None, None)


@pytest.mark.parametrize(("effort", "kind"), [(87.0, "ramp"), (5.0, "zero")])
def test_a_violation_ramps_where_efforts_carry_the_weight(effort, kind):
    """The default: an arm that its efforts cannot carry falls slower at zero."""
    arm = dyn.load("arm7")
    limits = {"joint2": effort}
    controller = Controller(arm, engine="graph", effort_limits=limits)
    for k in range(4):
        controller.update(0.002 * k, CAMPAIGN.HOLD, np.zeros(7))
    controller.safety.violated(0.008, "a test")
    assert controller.stopped.kind == kind


# Time that stands


def test_a_clock_that_stands_pauses():
    """Zero effort, no error; the trajectory waits and goes on."""
    arm = dyn.load("arm7")
    controller = Controller(arm, engine="graph")
    clock = [10.0]
    controller.samples.clock = lambda: clock[0]
    health, t = Health(controller, 1.0), 0.0

    def feed(cycles, stands=False):
        nonlocal t
        for _ in range(cycles):
            t += 0.002
            clock[0] += 0.0 if stands else 0.002
            q = (
                CAMPAIGN.HOLD
                if controller.reference is None
                else controller.reference.q
            )
            qd = 0 * q if controller.reference is None else controller.reference.qd
            tau = controller.update(t, q, qd, stamp=clock[0], now=clock[0])
        return tau

    feed(20)
    names = arm.joint_names
    controller.follow(
        controller.make_trajectory(names, [0.4], [CAMPAIGN.HOLD + 0.1]), clock[0]
    )
    assert feed(20).any()
    trajectory = controller.trajectory
    assert feed(200, stands=True) is None
    assert not controller.watch(t).any()
    (first, *_) = health.conditions(t)
    assert (first.level, first.key) == (WARN, "paused")
    assert controller.stopped is None
    assert controller.trajectory is trajectory
    assert not feed(2).any()
    assert feed(300).any()
    assert controller.trajectory is None
    np.testing.assert_allclose(controller.reference.q, CAMPAIGN.HOLD + 0.1)
    assert not controller.counters["stale"]
    clock[0] += 0.001  # a clock that goes on without states is no pause
    clock[0] += 0.2
    assert health.conditions(t + 0.2)[0].level == ERROR


@pytest.mark.parametrize("stamped", [True, False])
def test_states_without_stamps_are_taken_and_told(three, stamped):
    """Neither refused nor tested for age."""
    controller = Controller(three, engine="graph")
    q = np.array([0.0, 0.05, 0.0])
    for k in range(5):
        stamp = 50.0 + 0.002 * k if stamped else None
        tau = controller.update(0.002 * k, q, 0 * q, stamp=stamp, clock=50.0)
    assert tau.any()
    assert controller.samples.age.unstamped != stamped
    old = {"stamp": 55.0 if stamped else None, "clock": 90.0}
    if stamped:
        with pytest.raises(dyn.StateError, match="35 s old; valid: at most 0.5 s"):
            controller.update(0.02, q, 0 * q, **old)
        assert controller.counters["state of another time"] == 1
    else:
        assert controller.update(0.02, q, 0 * q, **old) is not None


def test_the_margin_of_time_is_that_of_the_campaign():
    """The jitter that is allowed is the one that good sources have."""
    jitters = [x.get("stamp_jitter", 0.0) for x in CAMPAIGN.SOURCES.values()]
    assert max(jitters) == JITTER
