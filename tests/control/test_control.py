"""The controller: tracks, and never makes a torque of bad data."""

import warnings

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Controller, Rules
from dyn_core.control.reference.trajectory import Reference, make_trajectory
from dyn_core.control.safety.health import ERROR, WARN, Health
from dyn_core.export.cycle.controller_cycle import control_cycle
from dyn_core.simulation.simulator import simulate

Q0 = np.array([0, -0.6, 0, -2.2, 0, 1.6, 0.8])


@pytest.fixture
def arm(shipped):
    """Return the 7-joint arm."""
    return shipped["arm7"]


def _warm(controller, q=Q0, samples=5):
    """Feed good states until torque flows."""
    for k in range(samples):
        tau = controller.update(0.002 * k, q, 0 * q)
    return tau


def _trajectory(model, q):
    n = model.joint_names
    still = [np.zeros(7)] * 2
    return make_trajectory(n, n, [0.5, 1.0], [q + 0.3, q], still, still)


@pytest.mark.parametrize("forward", ["aba", "dense"])
def test_tracks_below_a_hundredth_of_a_radian(arm, forward):
    """Simulated with friction, by either solver of forward dynamics."""
    controller = Controller(arm, 400.0, 40.0)
    run = simulate(
        arm,
        controller,
        duration=1.5,
        q0=Q0,
        forward_dynamics=forward,
        begin=lambda t: controller.follow(_trajectory(arm, Q0), t),
    )
    error = np.abs(run.q - run.q_ref)
    assert np.nanmax(error) < 0.005
    assert np.ptp(run.q, axis=0).min() > 0.25
    assert np.isfinite(run.energy).all()
    assert not controller.counters


def test_gravity_mode_floats(arm):
    """The torque is the weight, whatever the velocity."""
    controller = Controller(arm, mode="gravity")
    tau = _warm(controller)
    np.testing.assert_allclose(tau, dyn.solver("gravity").build(arm)(Q0), atol=1e-12)
    again = controller.update(0.02, Q0, np.ones(7))
    np.testing.assert_allclose(again, tau, atol=1e-12)


def test_activation_holds_where_the_robot_is(arm):
    """The first reference is the measured position: no jump, torque is the weight."""
    controller = Controller(arm)
    for k in range(2):
        assert not controller.update(0.001 * k, Q0, 0 * Q0).any()
    tau = controller.update(0.002, Q0, 0 * Q0)
    np.testing.assert_allclose(tau, dyn.solver("gravity").build(arm)(Q0), atol=1e-9)


@pytest.mark.parametrize(
    ("q", "qd", "error", "counter"),
    [
        (np.full(7, np.nan), np.zeros(7), dyn.NonFiniteError, "position not finite"),
        (Q0, np.full(7, np.inf), dyn.NonFiniteError, "velocity not finite"),
        (Q0[:6], np.zeros(7), dyn.ShapeError, "position of wrong size"),
        (Q0, np.zeros(8), dyn.ShapeError, "velocity of wrong size"),
        (Q0, None, dyn.ShapeError, "velocity missing"),
    ],
)
def test_bad_samples_raise_count_and_change_nothing(arm, q, qd, error, counter):
    """The last good state is kept, and the words name the field."""
    controller = Controller(arm)
    _warm(controller)
    with pytest.raises(error, match=counter.split()[0]):
        controller.update(0.02, q, qd)
    assert controller.counters == {counter: 1}
    np.testing.assert_array_equal(controller.q, Q0)
    assert controller.update(0.022, Q0, 0 * Q0).any()


def test_silence_is_answered_by_zero_then_good_samples(arm):
    """Stale: zero at once; torque only after good states in a row; reference anew."""
    controller = Controller(arm, rules=Rules(state_timeout=0.05, good_samples=4))
    _warm(controller)
    assert controller.watch(0.05) is None
    np.testing.assert_array_equal(controller.watch(0.2), np.zeros(7))
    moved = Q0 + 0.2
    for k in range(3):
        assert not controller.update(0.3 + 0.002 * k, moved, 0 * Q0).any()
    assert controller.update(0.31, moved, 0 * Q0).any()
    np.testing.assert_array_equal(controller.reference.q, moved)
    assert controller.counters["stale"] == 1


def test_a_ramp_is_bounded_in_time(arm):
    """An arm without brakes is carried for stop_time, then let go."""
    rules = Rules(state_timeout=0.05, on_stale="ramp", stop_time=1.0)
    controller = Controller(arm, rules=rules)
    _warm(controller)
    carried = controller.watch(0.5)
    np.testing.assert_allclose(
        carried, dyn.solver("gravity").build(arm)(Q0), atol=1e-12
    )
    assert not controller.watch(2.0).any()


def test_time_that_goes_back_resets(arm):
    """A stamp before the last one gives no torque for that sample."""
    controller = Controller(arm)
    for k in range(5):
        controller.update(0.002 * k, Q0, 0 * Q0, stamp=10.0 + 0.002 * k)
    assert controller.update(0.02, Q0, 0 * Q0, stamp=1.0) is None
    assert controller.counters["time went back"] == 1
    assert not controller.update(0.022, Q0, 0 * Q0, stamp=1.002).any()


@pytest.mark.parametrize("stamps", [1, 200])
def test_silence_after_time_went_back_is_answered_by_zero(arm, stamps):
    """Also where each stamp is before the last one, so that no sample is usable."""
    controller = Controller(arm, rules=Rules(state_timeout=0.1))
    for k in range(5):
        tau = controller.update(0.002 * k, Q0, 0 * Q0, stamp=10.0 + 0.002 * k)
    assert tau.any()
    t = 0.008
    for k in range(stamps):
        t += 0.002
        assert controller.update(t, Q0, 0 * Q0, stamp=9.0 - 0.002 * k) is None
    for later in (0.2, 1.0, 100.0):
        np.testing.assert_array_equal(controller.watch(t + later), np.zeros(7))
    if stamps * 0.002 > 0.1:
        np.testing.assert_array_equal(controller.watch(t), np.zeros(7))


@pytest.mark.parametrize("on_stale", ["zero", "ramp"])
def test_silence_after_a_reset_is_answered_by_zero(arm, on_stale):
    """Enabled again with no state between: the last torque must not stand."""
    controller = Controller(arm, rules=Rules(state_timeout=0.1, on_stale=on_stale))
    assert _warm(controller).any()
    controller.reset()
    assert controller.watch(0.05) is None
    np.testing.assert_array_equal(controller.watch(0.2), np.zeros(7))
    assert not controller.update(0.3, Q0, 0 * Q0).any()


def test_begun_anew_nothing_is_sent_before_a_state(arm):
    """Silence counts from the first state on."""
    controller = Controller(arm)
    assert controller.watch(100.0) is None
    _warm(controller)
    controller.begin()
    assert controller.watch(100.0) is None
    assert not controller.update(100.0, Q0, 0 * Q0).any()
    assert not controller.counters


def test_the_joint_that_is_not_finite_is_named(arm):
    """It alone."""
    controller = Controller(arm)
    bad = Q0.copy()
    bad[2] = np.nan
    with pytest.raises(dyn.NonFiniteError, match="position of joint3 is not finite"):
        controller.update(0.0, bad, 0 * Q0)


def test_springs_are_carried_like_weight():
    """In every mode: the torque of a robot at rest is that of gravity and springs."""
    springs = {"springs": {"joint2": {"stiffness": 30.0, "rest": 0.4}}}
    arm = dyn.load_urdf(dyn.robots.path("arm7"), extras=springs)
    plain = dyn.load_urdf(dyn.robots.path("arm7"))
    wanted = dyn.solver("gravity").build(plain)(Q0)
    wanted[1] += 30.0 * (Q0[1] - 0.4)
    for mode in ("computed_torque", "gravity"):
        np.testing.assert_allclose(_warm(Controller(arm, mode=mode)), wanted, atol=1e-9)
    rules = Rules(state_timeout=0.05, on_stale="ramp")
    controller = Controller(arm, rules=rules)
    _warm(controller)
    np.testing.assert_allclose(controller.watch(0.5), wanted, atol=1e-9)


@pytest.mark.parametrize("speed", [0.0, 0.3])
def test_a_stamp_that_comes_twice_is_no_state(arm, speed):
    """Nothing new was measured: no torque of it, and silence after state_timeout."""
    controller = Controller(arm)
    qd = np.full(7, speed)
    for k in range(5):
        stamp = 5.0 + 0.002 * k
        tau = controller.update(0.002 * k, Q0 + qd * stamp, qd, stamp=stamp)
        assert controller.update(0.002 * k + 0.001, Q0, qd, stamp=stamp) is None
    assert tau.any()
    for k in range(5, 60):
        assert controller.update(0.002 * k, Q0, 0 * Q0, stamp=stamp) is None
    assert not controller.watch(0.008 + 0.101).any()
    (first, *_) = Health(controller, 1.0).conditions(0.12)
    assert first.level == ERROR
    assert "its stamp stands still" in first.message
    assert controller.counters["stamp repeated"] == 60


@pytest.mark.parametrize("good_samples", [1, 2, 4])
def test_good_samples_are_counted_from_a_reset(arm, good_samples):
    """Torque comes with the last of them, at first and after each reset."""
    controller = Controller(arm, rules=Rules(good_samples=good_samples))
    t = 0.0
    for restart in (controller.begin, controller.reset, controller.reset):
        restart()
        for k in range(1, good_samples + 2):
            t += 0.002
            assert controller.update(t, Q0, 0 * Q0).any() == (k >= good_samples)


def test_a_trajectory_ends_with_its_last_point(arm):
    """At that time it is over; a step before it is not."""
    controller = Controller(arm, rules=Rules(state_timeout=10.0))
    controller.update(0.0, Q0, 0 * Q0)
    controller.update(1.0, Q0, 0 * Q0)
    controller.follow(_trajectory(arm, Q0), 2.0)
    controller.update(2.75, Q0, 0 * Q0)
    assert controller.trajectory is not None
    assert (controller.reference.q > Q0 + 0.01).all()
    controller.update(3.0, Q0, 0 * Q0)
    assert controller.trajectory is None
    np.testing.assert_array_equal(controller.reference.q, Q0)


@pytest.mark.parametrize("mode", ["computed_torque", "gravity"])
def test_nothing_is_compiled_while_torque_flows(arm, mode, monkeypatch, tmp_path):
    """All kernels are there when the controller is: a first update takes no longer."""
    from dyn_core.engines.llvm import kernel

    if Controller(arm, mode=mode).engine_used != "native":
        pytest.skip("machine code is not available: nothing is compiled")
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path))
    rules = Rules(state_timeout=0.05, on_stale="ramp")
    controller = Controller(arm, mode=mode, rules=rules)
    monkeypatch.setattr(kernel, "get", None)
    assert _warm(controller).any()
    assert controller.watch(1.0).any()


def test_a_jump_is_a_new_start(arm):
    """A simulator's reset does not make the controller pull back."""
    controller = Controller(arm)
    _warm(controller)
    jumped = Q0 + 0.8
    assert not controller.update(0.02, jumped, 0 * Q0).any()
    np.testing.assert_array_equal(controller.reference.q, jumped)
    assert controller.counters["position jumped"] == 1


def _jumping(arm, sources, seconds=1.0, **stamps):
    """Return (t, whether torque flows) of states at 500 Hz from several sources."""
    controller, rows = Controller(arm), []
    for k in range(round(seconds / 0.002)):
        source = sources(k)
        stamp = None if not stamps else stamps["clocks"][source] + 0.002 * k
        tau = controller.update(0.002 * k, Q0 + 0.8 * source, 0 * Q0, stamp=stamp)
        rows.append((0.002 * k, tau is not None and tau.any()))
    return controller, rows


@pytest.mark.parametrize("burst", [1, 3, 4, 10, 30])
@pytest.mark.parametrize("clocks", [None, (10.0, 5.0)])
def test_states_of_two_robots_in_turn_become_no_torque(arm, burst, clocks):
    """However many good ones in a row each sends; a third jump shows that they are two.

    With clocks of their own time goes back at every second change.
    """
    stamps = {} if clocks is None else {"clocks": clocks}
    controller, rows = _jumping(arm, lambda k: k // burst % 2, **stamps)
    third = 3 * burst * 0.002 - 1e-9
    assert not any(torque for t, torque in rows if t >= third)
    health = Health(controller, large_error=1.0)
    (first, *_) = health.conditions(1.0)
    assert (first.level, first.key) == (WARN, "alternate")
    last_jump, last = 0.998 - 0.002 * (499 % burst), 499 // burst % 2
    for t in np.arange(1.0, 1.15, 0.002):
        tau = controller.update(t, Q0 + 0.8 * last, 0 * Q0, stamp=20.0 + t)
        assert t > last_jump + 0.099 or not tau.any()
    assert tau.any()
    assert "alternate" not in [c.key for c in health.conditions(1.15)]


def test_a_glitch_costs_no_more_than_its_good_samples(arm):
    """One wrong sample, now and then: 3 zeros; many at once: zero for state_timeout."""
    _, rows = _jumping(arm, lambda k: int(k % 100 == 50))
    gaps = [not torque for _, torque in rows[20:]]
    assert sum(gaps) == 5 * 3  # the wrong one, and two until the third good one
    rows = _jumping(arm, lambda k: int(50 <= k < 90 and k % 10 == 0))[1]
    silent = [t for t, torque in rows[20:] if not torque]
    assert silent[-1] - 0.162 <= 0.1 + 1e-9  # after the last jump: state_timeout


def test_the_caller_may_use_its_arrays_again(arm):
    """A jump is seen in an array that is filled anew, and errors stay what they were."""
    controller = Controller(arm)
    q, qd = Q0.copy(), 0 * Q0
    for k in range(5):
        controller.update(0.01 * k, q, qd)
    q += 0.8
    np.testing.assert_array_equal(controller.error, 0 * Q0)
    assert not controller.update(0.05, q, qd).any()
    assert controller.counters["position jumped"] == 1


def test_torque_stays_within_the_limits(arm):
    """Large gains and errors saturate at the effort limits, counted."""
    controller = Controller(arm, 1e4, 200.0, state_bounds=None, effort_slew=1e9)
    _warm(controller)
    tau = controller.update(0.02, Q0 + 0.1, 0 * Q0)
    assert (np.abs(tau) <= arm.effort_limit).all()
    assert (np.abs(tau) == arm.effort_limit).any()
    assert controller.counters["torque limited"] == 1


def test_a_torque_that_is_not_finite_is_never_given(arm):
    """An inverse dynamics that gives NaN ends as zero, counted."""

    class Broken(dyn.authoring.NumpySolver):
        name, signature = "broken", dyn.problems.INVERSE_DYNAMICS

        def solve(self, model, q, qd, qdd, f_ext):
            return np.full(7, np.nan)

    controller = Controller(arm, inverse_dynamics=Broken())
    tau = _warm(controller)
    np.testing.assert_array_equal(tau, np.zeros(7))
    assert controller.counters == {"torque not finite": 3}  # of 5 samples


def test_a_complex_torque_is_no_torque(arm):
    """Its imaginary part is not dropped; where it is zero, nothing is lost."""

    class Complex(dyn.authoring.NumpySolver):
        name, signature = "complex", dyn.problems.INVERSE_DYNAMICS
        part = 1e-3j

        def solve(self, model, q, qd, qdd, f_ext):
            return np.full(7, 1.0 + self.part)

    controller = Controller(arm, inverse_dynamics=Complex())
    np.testing.assert_array_equal(_warm(controller), np.zeros(7))
    assert controller.counters == {"torque not finite": 3}  # of 5 samples
    assert "wanted real numbers of shape (7,), got comp" in controller.safety.failure
    Complex.part = 0j
    np.testing.assert_array_equal(controller.update(0.05, Q0, 0 * Q0), np.ones(7))
    law = controller.law
    controller.law = lambda *x: law(*x) + 1e-3j
    controller.update(0.052, Q0, 0 * Q0)
    assert controller.safety.failure == "the solver returned complex numbers"


def test_velocity_can_be_made_when_asked(arm):
    """Differentiation is off by default; on, it follows the motion."""
    rules = Rules(differentiate=True, filter_time=0.002)
    controller = Controller(arm, rules=rules)
    for k in range(60):
        controller.update(0.002 * k, Q0 + 0.5 * 0.002 * k, None)
    np.testing.assert_allclose(controller.qd, np.full(7, 0.5), atol=1e-3)


def test_effort_limits_must_be_known(shipped):
    """0 or absent never means unlimited; the words name the parameter."""
    pole = shipped["cart_pole"]
    with pytest.raises(dyn.SettingError, match=r"set effort_limits\.hinge > 0"):
        Controller(pole)
    assert Controller(pole, effort_limits={"hinge": 5.0}).limit[1] == 5.0
    with pytest.raises(dyn.SettingError, match=r"effort_limits\.wing: no such joint"):
        Controller(pole, effort_limits={"hinge": 5.0, "wing": 1.0})


def test_a_joint_without_a_motor_is_not_driven():
    """Whatever effort limit the file has: no effort reaches it, and the others err."""
    text = dyn.robots.path("two_link").read_text()
    passive = {"joints": {"joint2": {"passive": True}}}
    pole = dyn.load_urdf(text, extras=passive)
    for mode in ("computed_torque", "gravity", "predictive"):
        with pytest.raises(dyn.SettingError, match=r"'joint2' has no motor.*: lock it"):
            Controller(pole, mode=mode)
    with pytest.raises(dyn.SettingError, match="'joint2' has no motor"):
        control_cycle("computed_torque_cycle", pole)
    assert Controller(pole.lock({"joint2": 0.3})).limit.shape == (1,)


def test_continuous_joints_wrap(shipped):
    """A full turn is no error for a continuous joint."""
    pole = shipped["cart_pole"]
    controller = Controller(
        pole, effort_limits={"hinge": 50.0}, rules=Rules(max_jump=50)
    )
    q = np.array([0.0, 0.3])
    tau = _warm(controller, q)
    turned = controller.update(0.02, q + [0, 2 * np.pi], 0 * q)
    np.testing.assert_allclose(turned, tau, atol=1e-9)


@pytest.mark.parametrize("mode", ["computed_torque", "gravity", "impedance"])
def test_an_unknown_name_in_wrap_is_refused_in_every_mode(shipped, mode):
    """Gravity compensation has no error to wrap, but states that would be wrong."""
    with pytest.raises(dyn.ModelError, match="no moving joint is called 'elbow'"):
        Controller(shipped["two_link"], mode=mode, wrap=["elbow"])
    with pytest.raises(dyn.ModelError, match=r"wrap is 'joint1'; valid: \['joint1'\]"):
        Controller(shipped["two_link"], mode=mode, wrap="joint1")


def test_only_what_turns_is_wrapped():
    """Nor a follower whose leader slides: the entry is that of the leader [m]."""
    urdf = """<robot name="r"><link name="base"/><link name="a"/><link name="b"/>
      <joint name="slide" type="prismatic"><parent link="base"/><child link="a"/>
        <limit lower="-9" upper="9" effort="9" velocity="9"/></joint>
      <joint name="turn" type="continuous"><parent link="a"/><child link="b"/>
        <mimic joint="slide" multiplier="3"/></joint></robot>"""
    law = dyn.solver("joint_impedance")
    for name in ("slide", "turn"):
        with pytest.raises(dyn.ModelError, match="'slide'.* does not turn about one"):
            law.build(dyn.load_urdf(urdf), wrap=[name])


TURN = """<robot name="r"><link name="base"/>
  <link name="a"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="turn" type="KIND"><parent link="base"/><child link="a"/>
    <axis xyz="0 0 1"/><limit RANGE effort="50" velocity="9"/></joint>
  <joint name="other" type="FOLLOWER"><parent link="base"/><child link="b"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="50" velocity="9"/>
    <mimic joint="turn" multiplier="TIMES"/></joint></robot>"""


def _turn(kind, reach="", follower="continuous", times="1", **choices):
    """Return a robot of a joint that turns, and one that follows it."""
    text = TURN.replace("KIND", kind).replace("RANGE", reach)
    text = text.replace("FOLLOWER", follower).replace("TIMES", times)
    return dyn.load_urdf(text, **choices)


def _towards(robot, start, target):
    """Return the effort of a joint that rests at `start`, its reference at `target`."""
    controller = Controller(robot, bounds=None, effort_slew=1e9)
    _warm(controller, np.array([start]))
    still = np.array([target]), np.zeros(1), np.zeros(1)
    controller.follower.reference = Reference(*still)
    return controller.update(0.02, np.array([start]), np.zeros(1))[0]


@pytest.mark.parametrize("start", [-3.0, -1.0, 2.5])
@pytest.mark.parametrize("target", [-3.1, 0.4, 3.1])
def test_the_effort_points_to_the_reference(start, target):
    """Also where the way around is shorter, unless a whole turn changes nothing."""
    away = target - start
    limited = _turn("revolute", 'lower="-3.2" upper="3.2"')
    screw = _turn("continuous", "", "prismatic", "0.1")  # 1 m is ten radians
    geared = _turn("continuous", "", "continuous", "0.5")
    for robot in (limited, screw, geared):
        assert np.sign(_towards(robot, start, target)) == np.sign(away)
    for times in ("1", "-2"):
        wheel = _turn("continuous", times=times)
        short = np.sign(away - 2 * np.pi * np.round(away / (2 * np.pi)))
        assert np.sign(_towards(wheel, start, target)) == short


@pytest.mark.parametrize(
    ("robot", "reason"),
    [
        (("revolute", 'lower="-3" upper="3"'), "has position limits, -3 to 3"),
        (("revolute", 'lower="-7" upper="7"'), "has position limits, -7 to 7"),
        (("continuous", "", "revolute", "1"), "has position limits, -1 to 1"),
        (("continuous", "", "prismatic", "0.1"), "leads 'other', which does not turn"),
        (
            ("continuous", "", "continuous", "0.5"),
            "leads 'other', which turns 0.5 times",
        ),
    ],
)
def test_only_a_joint_that_turns_without_end_is_wrapped(robot, reason):
    """Else the shorter way may lead into a stop, or to another position."""
    model = _turn(*robot)
    expected = f"joint 'turn' .*{reason}.*valid: none of its joints"
    with pytest.raises(dyn.ModelError, match=expected):
        Controller(model, wrap=["turn"])
    for name in ("turn", "other"):
        with pytest.raises(dyn.ModelError, match=reason):
            dyn.solver("computed_torque").build(model, wrap=[name])
    assert not Controller(model).wrapped.any()


def test_a_trajectory_begins_where_an_encoder_says_that_a_wheel_is():
    """Also where the reference counts turns and the encoder does not."""
    controller = Controller(_turn("continuous"), bounds=None, state_bounds=None)
    _warm(controller, np.array([3.0]))
    controller.update(0.02, np.array([-3.0]), np.zeros(1))  # pushed by 0.28 rad
    path = controller.make_trajectory(["turn"], [0.0, 1.0], [[-3.0], [-2.5]])
    controller.follow(path, 0.02)
    with pytest.raises(dyn.TrajectoryError, match="from where it is"):
        far = controller.make_trajectory(["turn"], [0.0, 1.0], [[-2.0], [-2.5]])
        controller.follow(far, 0.02)


def test_a_joint_with_a_spring_counts_its_turns():
    """A whole turn winds the spring up."""
    model = _turn("continuous", extras={"springs": {"turn": {"stiffness": 2.0}}})
    assert not Controller(model).wrapped.any()
    with pytest.raises(dyn.ModelError, match="'turn' has a spring; valid: none of its"):
        Controller(model, wrap=["turn"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"kp": -1.0}, "kp must be finite and >= 0"),
        ({"kd": float("nan")}, "kd must be finite"),
        ({"mode": "magic"}, "mode 'magic'; valid: computed_torque, impedance, gravity"),
        ({"kp": "x"}, "kp is 'x'; valid: a number, or 7"),
        ({"kp": "100"}, "kp is '100'; valid: a number, or 7"),
        ({"kd": ["1"] * 7}, "kd is .*; valid: a number, or 7"),
        ({"kd": None}, "kd is None; valid: a number, or 7"),
        ({"kd": [1.0, 2.0]}, r"kd is \[1.0, 2.0\]; valid: a number, or 7"),
        ({"rules": 3}, r"rules is 3; valid: Rules\(...\)"),
        (
            {"shadow": "rnea"},
            r"shadow is 'rnea'; valid: ShadowSettings\(...\), or None",
        ),
        ({"collision": 8.0}, r"collision is 8.0; valid: CollisionSettings\("),
        ({"collision": {"joint2": 8.0}}, r"collision is \{.*; valid: CollisionSetting"),
        ({"bounds": {"tool_speed": 1.0}}, r"bounds is \{.*; valid: Bounds\("),
        ({"state_bounds": 3}, r"state_bounds is 3; valid: StateBounds\("),
        ({"observers": 3}, "observers is 3; valid: a list of objects with"),
        ({"observers": [3]}, r"observers is \[3\]; valid: a list of objects with"),
        ({"listeners": print}, "listeners is .*; valid: a list of functions"),
        ({"parameters": 3}, "parameters is 3; valid: a mapping"),
        ({"effort_limits": 3}, "effort_limits is 3; valid: a mapping"),
        ({"effort_limits": {"joint1": "x"}}, r"limits\.joint1 is 'x'; valid: > 0 and"),
        ({"effort_limits": {"joint1": [1, 2]}}, r"joint1 is \[1, 2\]; valid: > 0 and"),
        (
            {"effort_limits": {"joint1": -1.0}},
            r"joint1 is -1\.0; valid: > 0 and finite",
        ),
        ({"effort_limits": {"joint1": None}}, "'joint1' has no effort limit"),
    ],
)
def test_bad_settings_are_refused_with_a_reason(arm, settings, expected):
    """Each setting error says what would be valid."""
    with pytest.raises(dyn.SettingError, match=expected):
        Controller(arm, **settings)


@pytest.mark.parametrize("wrong", ["0", None, float("nan"), 10**400])
def test_times_that_are_no_numbers_are_refused_at_once(arm, wrong):
    """Zeros, or an error of Python some cycles later, said nothing of the time."""
    controller, zero = Controller(arm), np.zeros(7)
    said = r"^{} is .*; valid: the time, a number \[s\]; {}\("
    with pytest.raises(dyn.SettingError, match=said.format("t", "update")):
        controller.update(wrong, Q0, zero)
    _warm(controller)
    path = _trajectory(arm, Q0)
    for call, name, method in (
        (lambda: controller.update(wrong, Q0, zero), "t", "update"),
        (lambda: controller.watch(wrong), "t", "watch"),
        (lambda: controller.guard(wrong, print), "t", "guard"),
        (lambda: controller.follow(path, wrong), "t", "follow"),
        (lambda: controller.receive("target_pose", wrong, [0.0]), "t", "receive"),
    ):
        with pytest.raises(dyn.SettingError, match=said.format(name, method)):
            call()
    for name in ("stamp", "now", "clock") if wrong is not None else ():
        with pytest.raises(dyn.SettingError, match=said.format(name, "update")):
            controller.update(1.0, Q0, zero, **{name: wrong})
    with pytest.raises(dyn.SettingError, match="trajectory is .*; valid: what make_tr"):
        controller.follow(Q0, 0.1)
    assert controller.update(np.float64(0.02), Q0, zero).any()


@pytest.mark.parametrize("name", ["goal", "q_ref", "qref"])
def test_attributes_that_change_nothing_cannot_be_set(arm, name):
    """A reference that was assigned was ignored in silence."""
    controller = Controller(arm)
    way = "make_trajectory and follow move the reference"
    with pytest.raises(AttributeError, match=f"no attribute '{name}'.* {way}"):
        setattr(controller, name, Q0)
    with pytest.raises(AttributeError, match=f"'reference' of .* cannot be set; {way}"):
        controller.reference = Q0
    with pytest.raises(AttributeError, match="did you mean 'enabled'"):
        controller.enable = False
    controller.enabled, controller._noted = False, 3
    controller.update = None  # a method can be replaced
    assert (controller.enabled, controller._noted) == (False, 3)

    class Named(Controller):
        pass

    named = Named(arm)
    named.label = "left"
    assert named.label == "left"


def test_the_defaults_are_those_of_the_documentation(arm):
    """Gains, mode, solver and rules: a change of a default is a change of behaviour."""
    assert Rules() == Rules(
        state_timeout=0.1,
        max_state_age=0.5,
        max_jump=0.5,
        good_samples=3,
        on_stale="zero",
        on_violation="auto",
        on_estop="zero",
        on_shutdown="zero",
        stop_time=2.0,
        last_good_cycles=3,
        differentiate=False,
        filter_time=0.01,
        start_tolerance=0.1,
        limit_tolerance=1e-3,
        blend_time=0.2,
        deceleration=10.0,
    )
    controller = Controller(arm)
    assert (controller.mode, controller.inverse_dynamics) == ("computed_torque", "auto")
    assert controller.solver_used == "rnea"
    np.testing.assert_array_equal(controller.kp, np.full(7, 100.0))
    np.testing.assert_array_equal(controller.kd, np.full(7, 20.0))


def test_the_error_is_the_way_to_the_reference(arm):
    """Zero before a torque and after a reset; in gravity mode there is no reference."""
    controller = Controller(arm, rules=Rules(state_timeout=1.0))
    assert not controller.error.any()
    _warm(controller)
    controller.follow(_trajectory(arm, Q0), 0.01)
    controller.update(0.26, Q0, 0 * Q0)
    np.testing.assert_allclose(controller.error, controller.reference.q - Q0)
    assert (controller.error > 0.1).all()
    controller.reset()
    assert not controller.error.any()
    floating = Controller(arm, mode="gravity")
    _warm(floating)
    assert not floating.error.any()


@pytest.mark.parametrize("mode", ["computed_torque", "gravity"])
def test_the_engine_is_that_of_the_program_in_use(arm, mode):
    """What was asked for is what runs."""
    assert Controller(arm, mode=mode, engine="graph").engine_used == "graph"


def test_springs_and_friction_are_compensated_once(shipped):
    """The law adds damping at the reference velocity; gravity mode adds none."""
    arm = shipped["arm7"]
    rest, moving = Controller(arm), Controller(arm)
    _warm(rest)
    _warm(moving)
    qd = np.full(7, 0.3)
    moving.follower.reference = Reference(Q0, qd, 0 * qd)
    rest.follower.reference = Reference(Q0, 0 * qd, 0 * qd)
    law = dyn.solver("rnea").build(arm, joint_friction=True)
    H = dyn.solver("crba").build(arm)(Q0)
    plain = dyn.solver("rnea").build(arm)
    friction = law(Q0, qd, 0 * qd) - plain(Q0, qd, 0 * qd)
    tau = moving.update(0.02, Q0, qd)
    np.testing.assert_allclose(tau, plain(Q0, qd, 0 * qd) + friction, atol=1e-9)
    assert np.abs(friction).max() > 0.1
    tau = rest.update(0.02, Q0, qd)
    wanted = plain(Q0, qd, H @ (0 * qd)) + H @ (-20.0 * qd)
    np.testing.assert_allclose(tau, wanted, atol=1e-9)


def test_a_state_on_the_edge_of_its_rules(arm):
    """As old as the timeout is in time; one step beyond is not; so for jumps."""
    rules = Rules(state_timeout=0.25, max_jump=0.5)
    controller = Controller(arm, rules=rules, state_bounds=None, effort_slew=1e9)
    _warm(controller)
    seen = controller.seen
    assert controller.watch(seen + 0.25) is None
    assert controller.update(seen + 0.25, Q0, 0 * Q0).any()
    assert not controller.counters
    seen = controller.seen
    jump = np.zeros(7)
    jump[3] = 0.5
    assert controller.update(seen + 0.01, Q0 + jump, 0 * Q0).any()
    assert not controller.counters
    assert controller.watch(controller.seen + 0.26) is not None
    assert controller.good == 0


def test_damping_ends_with_its_time_and_when_disabled(arm):
    """Carried up to stop_time, with kd against the last velocity."""
    rules = Rules(state_timeout=0.25, on_stale="ramp", stop_time=1.0)
    controller = Controller(arm, rules=rules)
    _warm(controller)
    qd = np.full(7, 0.1)
    controller.update(0.25, Q0, qd)
    damped = controller.watch(0.25 + 0.25 + 1.0)
    braking = dyn.solver("rnea").build(arm)(Q0, 0 * qd, -20.0 * qd)
    np.testing.assert_allclose(damped, braking)
    assert not controller.watch(0.25 + 0.25 + 1.01).any()
    controller.enabled = False
    assert not controller.watch(1.0).any()


def test_velocity_is_filtered_with_its_time_constant(arm):
    """The first step of a ramp is weighed by dt / (dt + filter_time)."""
    controller = Controller(arm, rules=Rules(differentiate=True, filter_time=0.03))
    controller.update(1.0, Q0, None)
    np.testing.assert_array_equal(controller.qd, 0 * Q0)
    controller.update(1.01, Q0 + 0.01, None)
    np.testing.assert_allclose(controller.qd, np.full(7, 0.25))
    controller.update(1.01, Q0 + 0.02, None)
    assert not controller.qd.any()  # no time has passed: no difference


def test_a_position_of_wrong_size_is_counted_where_velocity_is_made(arm):
    controller = Controller(arm, rules=Rules(differentiate=True))
    controller.update(1.0, Q0, None)
    with pytest.raises(dyn.ShapeError, match="position"):
        controller.update(1.01, Q0[:3], None)
    assert controller.counters["position of wrong size"] == 1


def test_follow_needs_a_state_and_ends_by_itself(arm):
    """Refused in words before; afterwards the last point stays the reference."""
    controller = Controller(arm)
    with pytest.raises(dyn.SettingError, match="no state has been received"):
        controller.follow(_trajectory(arm, Q0), 0.0)
    _warm(controller)
    controller.follow(_trajectory(arm, Q0), 1.0)
    controller.update(0.02, Q0, 0 * Q0)
    assert controller.trajectory is not None
    for t in (0.08, 0.16, 0.24):
        controller.update(t, Q0, 0 * Q0)
    np.testing.assert_array_equal(controller.reference.q, Q0)
    for k in range(23):
        controller.update(0.3 + 0.08 * k, Q0, 0 * Q0)
    assert controller.trajectory is None
    np.testing.assert_array_equal(controller.reference.q, Q0)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"stop_time": 5.0, "on_violation": "zero"},
            "stop_time changes nothing here: it acts with a stop",
        ),
        ({"filter_time": 0.5}, "filter_time changes nothing here: it acts with veloc"),
    ],
)
def test_rules_that_change_nothing_are_a_warning(rules, message):
    """They may be meant for a stop that is chosen later."""
    with pytest.warns(RuntimeWarning, match=message):
        assert Rules(**rules) != Rules()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Rules(**rules | {"on_estop": "ramp", "differentiate": True})


def test_robots_that_are_not_driven_are_refused(shipped):
    """Floating bases, and solvers that are unknown or of another problem."""
    with pytest.raises(dyn.SettingError, match="joint 'root_joint' is floating"):
        Controller(shipped["quadruped"])
    with pytest.raises(dyn.SolverNotFound):
        Controller(shipped["arm7"], inverse_dynamics="nobody")
    with pytest.raises(dyn.SignatureError):
        Controller(shipped["arm7"], inverse_dynamics="aba")
