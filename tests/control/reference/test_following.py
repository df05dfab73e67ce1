"""Trajectories between their points, in time, and after each other."""

import time
from array import array
from collections import namedtuple
from types import SimpleNamespace as Message

import numpy as np
import pytest
from trajectory_arrays import trajectory_arrays

import dyn_core as dyn
from dyn_core.control import Controller, make_trajectory
from dyn_core.control.joint_limits import JointLimits
from dyn_core.control.reference.following import TrajectoryFollower
from dyn_core.control.rules import Rules

JOINTS = ("a", "b")
LIMITS = JointLimits(JOINTS, np.array([-2.0, -2.0]), np.array([2.0, 2.0]),
                     np.array([3.0, 3.0]))  # fmt: skip
Q0 = np.array([0, -0.6, 0, -2.2, 0, 1.6, 0.8])
WHEEL = """<robot name="w"><link name="base"/><link name="rim"><inertial>
<mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="hub" type="continuous"><parent link="base"/>
<child link="rim"/><axis xyz="0 0 1"/><limit effort="10" velocity="20"/></joint></robot>
"""


@pytest.fixture(scope="module")
def arm(shipped):
    """Return the 7-joint arm."""
    return shipped["arm7"]


def _wheel(**settings):
    rules = Rules(good_samples=1, **settings)
    wheel = dyn.load_urdf(WHEEL)
    return Controller(wheel, rules=rules, engine="graph", effort_slew=1e12)


def _follower(q=(0.0, 0.0), limits=LIMITS, turning=(False, False), **rules):
    made = TrajectoryFollower(limits, Rules(**rules), np.array(turning))
    made.rest(np.array(q, float))
    return made


def _path(times, q, qd=(), qdd=(), **settings):
    return make_trajectory(JOINTS, JOINTS, times, q, qd, qdd, **settings)


def _sampled(follower, start, end, period=1e-3):
    """Return times and references, cycle by cycle."""
    times = np.arange(start, end, period)
    rows = []
    for t in times:
        follower.advance(t)
        rows.append(follower.reference)
    return times, np.array([r.q for r in rows]), np.array([r.qd for r in rows])


# Wrapped joints


def test_a_wrapped_joint_does_not_jump_at_half_a_turn():
    """From 3.13 to -3.14 is 0.013 rad: the trajectory and the torque stay."""
    controller = _wheel()
    for k in range(3):
        controller.update(0.002 * k, [3.13], [2.0])
    controller.follow(make_trajectory(["hub"], ["hub"], [1.0], [[3.5]]), 0.004)
    controller.update(0.006, [-3.14], [2.0])
    assert not controller.counters
    assert controller.trajectory is not None
    assert abs(controller.error[0]) < 0.05
    controller.update(0.008, [-2.0], [2.0])
    assert controller.counters["position jumped"] == 1


def test_a_missing_velocity_is_that_of_the_wrapped_change():
    """Half a turn on the other side is no speed of 3000 rad/s."""
    controller = _wheel(differentiate=True, filter_time=1e-6)
    controller.update(0.0, [3.14], None)
    controller.update(0.01, [-3.14], None)
    assert controller.qd[0] == pytest.approx((2 * np.pi - 6.28) / 0.01, rel=1e-3)


def test_a_wheel_goes_the_short_way_to_a_trajectory():
    """Points in another turn are meant; limited joints are taken at their word."""
    controller = _wheel()
    controller.update(0.0, [3.1], [0.0])
    controller.follow(make_trajectory(["hub"], ["hub"], [1.0], [[-3.1]]), 0.0)
    controller.update(0.09, [3.1], [0.0])
    assert 3.1 < controller.reference.q[0] < 3.12
    limited = _follower(q=(1.9, 0.0))
    limited.follow(_path([4.0], [[-1.9, 0.0]]), 0.0, 0.0, None)
    limited.advance(2.0)
    np.testing.assert_allclose(limited.reference.q, 0.0, atol=1e-12)


def test_positions_in_degrees_are_named_as_such():
    """The range has its unit; a slide is never in degrees."""
    model = dyn.load("cart_pole", lock={"hinge": 0.0})
    arm, slide = (JointLimits.of(x) for x in (dyn.load("arm7"), model))
    q = np.zeros((1, 7))
    for value, doubt in ((90.0, "; is it in degrees\\?"), (6.0, "")):
        q[0, 3] = value
        said = rf"'joint4' at {value:g} is outside its limits \[.*\] rad{doubt}$"
        with pytest.raises(dyn.TrajectoryError, match=said):
            arm.check_points(q)
    with pytest.raises(dyn.TrajectoryError, match=r"is outside its limits \[.*\] m$"):
        slide.check_points(np.array([[90.0]]))


# Between the points


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (([0, 1], [[0, 0], [1, 0]], [[12, 0], [0, 0]]),
         "between points 0 and 1: joint 'a' reaches 2.08, outside its limits"),
        (([0, 4], [[0, 0], [0, -1.9]], [[0, -2], [0, 0]]), "'b' reaches -2\\."),
        (([0, 1, 1.5], [[0, 0], [1, 0], [-1, 0]]),
         "between points 1 and 2: joint 'a' moves at -4, its velocity limit is 3; a"
         " motion 1.34 times as long keeps it here"),
        (([0, 1], [[-1.5, 0], [1.5, 0]], np.zeros((2, 2))), "'a' moves at 4.5,"),
        (([0, 1.5], [[-1.5, 0], [1.5, 0]], np.zeros((2, 2)), np.zeros((2, 2))),
         "'a' moves at 3.75,"),
    ],
)  # fmt: skip
def test_the_motion_between_points_is_checked(rows, expected):
    """Points inside, the curve outside: refused with place, joint and value."""
    with pytest.raises(dyn.TrajectoryError, match=expected):
        _path(*rows, lower=LIMITS.lower, upper=LIMITS.upper, velocity=LIMITS.velocity)


@pytest.mark.parametrize("order", [1, 3, 5])
def test_extremes_are_those_of_dense_sampling(order):
    """Random pieces are refused exactly where samples leave the limits."""
    rng = np.random.default_rng(order)
    refused = 0
    for _ in range(15):
        rows = [rng.uniform(-1.6, 1.6, (4, 2)), *rng.normal(0, 2.0, (2, 4, 2))]
        rows = rows[: (order + 1) // 2]
        times = np.cumsum(rng.uniform(0.3, 1.5, 4))
        path = _path(times, *rows, moving_end=True)
        samples = [path.sample(t) for t in np.linspace(times[0], times[-1] - 1e-9, 400)]
        far = max(np.abs(s.q).max() for s in samples)
        fast = max(np.abs(s.qd).max() for s in samples)
        if abs(far - 2.0) < 0.01 or abs(fast - 3.03) < 0.05:
            continue
        try:
            path.check(LIMITS)
        except dyn.TrajectoryError:
            refused += 1
            assert far > 2.0 or fast > 3.03
        else:
            assert far < 2.0
            assert fast < 3.03
    assert refused > 1


def test_a_curve_that_touches_its_limit_is_inside():
    """An extreme on the limit, and a velocity limit that is met, are allowed."""
    _path([0, 1, 2], [[0, 0], [2, 0], [0, 0]], np.zeros((3, 2)), upper=LIMITS.upper,
          velocity=LIMITS.velocity)  # fmt: skip
    _path([0, 1], [[-1.5, 0], [1.5, 0]], velocity=LIMITS.velocity)


def test_a_velocity_limit_of_zero_is_none():
    """As in a URDF whose author had none to state."""
    limits = JointLimits.of(
        dyn.load_urdf(WHEEL.replace('velocity="20"', 'velocity="0"'))
    )
    np.testing.assert_array_equal(limits.velocity, [np.inf])
    np.testing.assert_array_equal(JointLimits.of(dyn.load_urdf(WHEEL)).velocity, [20.0])


def test_numbers_that_overflow_are_refused():
    """Curves of infinite height reach no follower."""
    with pytest.raises(dyn.TrajectoryError, match="joint 'a' reaches nan"):
        _path([0, 1e-300], [[0, 0], [1.0, 0]], [[1e200, 0], [0, 0]])


def test_the_way_to_the_first_point_is_checked():
    """A short time from far away is too fast; the previous reference stays."""
    follower = _follower()
    with pytest.raises(dyn.TrajectoryError, match="before point 0: joint 'b' moves"):
        follower.follow(_path([0.1], [[0.1, 1.0]]), 0.0, 0.0, None)
    with pytest.raises(dyn.TrajectoryError, match="point 0: joint 'a' at 2.1 is out"):
        follower.follow(_path([5.0], [[2.1, 1.0]]), 0.0, 0.0, None)
    with pytest.raises(dyn.TrajectoryError, match="between points 0 and 1: joint 'a'"):
        follower.follow(_path([1, 1.1], [[-1, 0], [1, 0]]), 0.0, 0.0, None)
    assert follower.running is None
    assert follower.pending is None


def test_the_controller_checks_what_it_follows(arm):
    """The cases over ROS: a wild first velocity, a start in no time, a far start."""
    controller = Controller(arm, engine="graph")
    controller.update(0.0, Q0, 0 * Q0)
    names, still = arm.joint_names, np.zeros((2, 7))
    fast = still.copy()
    fast[0, 0] = 12.0
    with pytest.raises(dyn.TrajectoryError, match="joint 'joint1' reaches 3.5"):
        controller.make_trajectory(names, [0, 2], [Q0, Q0 + 0.1], fast)
    with pytest.raises(dyn.TrajectoryError, match="'joint1' moves at 3, its velocity"):
        controller.make_trajectory(names, [1.0, 1.1], [Q0, Q0 + 0.3])
    soon = controller.make_trajectory(names, [0.01], [Q0 + 0.3])
    assert soon.limits is controller.limits  # so that nothing is checked twice
    with pytest.raises(dyn.TrajectoryError, match="before point 0: joint 'joint1' mov"):
        controller.follow(soon, 0.0)
    far = controller.make_trajectory(names, [0, 1], [Q0 + 0.3, Q0])
    with pytest.raises(dyn.TrajectoryError, match="0.3 from where it is; valid: at mo"):
        controller.follow(far, 0.0)
    assert controller.trajectory is None
    unchecked = make_trajectory(names, names, [2.0], [Q0 + 3.0])
    with pytest.raises(dyn.TrajectoryError, match="point 0: joint 'joint1' at 3 is"):
        controller.follow(unchecked, 0.0)


def test_a_start_near_the_robot_is_blended():
    """A plan starts where the robot was measured, not where its reference is."""
    follower = _follower()
    path = _path([0.0, 1.0], [[0.05, 0.0], [0.5, 0.0]], np.zeros((2, 2)))
    follower.follow(path, 0.0, 0.0, np.array([0.05, 0.0]))
    _, q, qd = _sampled(follower, 0.0, 1.2)
    np.testing.assert_allclose(q[0], 0.0, atol=1e-12)
    assert np.abs(np.diff(q, axis=0)).max() < 3e-3
    assert np.abs(np.diff(qd, axis=0)).max() < 0.02
    np.testing.assert_allclose(q[500], path.sample(0.5).q, atol=1e-12)
    measured = _follower(start_tolerance=0.01)
    measured.follow(path, 0.0, 0.0, np.array([0.05, 0.0]))
    with pytest.raises(dyn.TrajectoryError, match="joint 'a' would start at 0.05"):
        measured.follow(path, 0.0, 0.0, np.array([0.03, 0.0]))


def test_a_blend_that_leaves_the_limits_is_refused():
    """The offset counts: near the limit a fast robot cannot take over so."""
    follower = _follower(q=(1.5, 0.0), blend_time=0.5)
    fast = _path([0.2], [[1.9, 0.0]], [[2.0, 0.0]], moving_end=True)
    follower.follow(fast, 0.0, 0.0, None)
    follower.advance(0.19)
    away = _path([0.0, 1.0], [[1.9, 0.0], [1.5, 0.0]])
    with pytest.raises(dyn.TrajectoryError, match="on the way to the trajectory: join"):
        follower.follow(away, 0.19, 0.19, None)


# Robots at their limits


def test_a_robot_outside_its_limit_is_led_back():
    """Points lie no further outside than the robot is now, plus the tolerance."""
    outside = np.array([2.05, 0.0])
    follower = _follower(q=outside)
    follower.follow(_path([0.0, 1.0], [outside, [1.0, 0.0]]), 0.0, 0.0, outside)
    assert follower.running is not None
    with pytest.raises(
        dyn.TrajectoryError, match=r"2.06 is outside.*\[-2.001, 2.051\]"
    ):
        follower.follow(_path([1.0], [[2.06, 0.0]]), 0.0, 0.0, outside)
    below = np.array([0.0, -2.05])
    follower = _follower(q=below)
    follower.follow(_path([0.0, 1.0], [below, [0.0, -1.0]]), 0.0, 0.0, below)
    assert follower.running is not None
    with pytest.raises(dyn.TrajectoryError, match="joint 'a' at 2.05 is outside"):
        _follower().follow(_path([1.0], [outside]), 0.0, 0.0, np.zeros(2))


def test_the_measured_point_of_a_resting_arm_is_accepted(arm):
    """As a planner sends it: the first point is the state, a hair over the limit."""
    q = Q0.copy()
    q[3] = arm.upper[3] + 9e-7
    controller = Controller(arm, engine="graph")
    controller.update(0.0, q, 0 * q)
    controller.follow(controller.make_trajectory(arm.joint_names, [0, 2], [q, Q0]), 0.0)
    assert controller.trajectory is not None


# After each other


def test_a_later_trajectory_lets_the_running_one_run():
    """Until its start the reference is that of the old one, afterwards of the new."""
    follower = _follower()
    old = _path([2.0], [[1.0, -1.0]], np.zeros((1, 2)))
    follower.follow(old, 0.0, 0.0, None)
    follower.advance(0.9)
    follower.follow(_path([1.0], [[0.0, 0.0]], np.zeros((1, 2))), 1.2, 0.9, None)
    t, q, qd = _sampled(follower, 0.9, 2.3)
    alone = _follower()
    alone.follow(old, 0.0, 0.0, None)
    _, expected, _ = _sampled(alone, 0.9, 1.2)
    np.testing.assert_allclose(q[: len(expected)], expected, atol=1e-12)
    assert np.abs(np.diff(q, axis=0)).max() < 2e-3
    assert np.abs(np.diff(qd, axis=0)).max() < 0.02
    np.testing.assert_allclose(q[-1], 0.0, atol=1e-12)
    assert follower.running is None


@pytest.mark.parametrize("velocities", [True, False])
def test_a_replacement_does_not_jump(velocities):
    """Position and velocity are continuous, with linear pieces and late starts too."""
    follower = _follower()
    still = np.zeros((1, 2)) if velocities else ()
    follower.follow(_path([1.0], [[1.0, 1.0]], still), 0.0, 0.0, None)
    follower.advance(0.5)
    before = follower.reference
    assert (before.qd > 0.9).all()
    follower.follow(_path([1.5], [[0.0, 0.5]], still), 0.4, 0.5, None)
    _, q, qd = _sampled(follower, 0.5, 2.2)
    np.testing.assert_allclose(q[0], before.q, atol=1e-12)
    np.testing.assert_allclose(qd[0], before.qd, atol=1e-12)
    assert np.abs(np.diff(q, axis=0)).max() < 2e-3
    assert np.abs(np.diff(qd[:1400], axis=0)).max() < 0.03
    np.testing.assert_allclose(q[-1], [0.0, 0.5], atol=1e-12)


def test_a_late_trajectory_is_joined_where_it_is():
    """Its time zero is past: the reference meets it, it does not leap to it."""
    follower = _follower()
    path = _path([0.0, 2.0], [[0.0, 0.0], [1.0, 0.0]], np.zeros((2, 2)))
    follower.follow(path, -0.3, 0.0, None)
    _, q, qd = _sampled(follower, 0.0, 2.0)
    assert np.abs(q[0]).max() < 1e-12
    assert np.abs(qd[0]).max() < 1e-12
    np.testing.assert_allclose(q[1000], path.sample(1.3).q, atol=1e-12)


def test_a_new_trajectory_drops_the_one_that_waits():
    """What was to come is replaced as well."""
    follower = _follower()
    follower.follow(_path([1.0], [[1.0, 1.0]]), 5.0, 0.0, None)
    assert follower.pending is not None
    follower.follow(_path([1.0], [[0.5, 0.5]]), 0.0, 0.0, None)
    assert follower.pending is None
    _sampled(follower, 0.0, 6.5, 0.1)
    np.testing.assert_array_equal(follower.reference.q, [0.5, 0.5])


def test_a_stop_brakes_at_its_rate():
    """Constant deceleration of the fastest joint, on a line, then rest."""
    follower = _follower(deceleration=4.0)
    rows = [[0.0, 0.0], [1.0, -0.5]], [[1.0, -0.5], [1.0, -0.5]]
    follower.take(np.zeros(2), np.array([1.0, -0.5]))
    follower.follow(_path([0.0, 1.0], *rows, moving_end=True), 0.0, 0.0, None)
    follower.advance(0.5)
    follower.follow(_path([1.0], [[1.0, 1.0]]), 9.0, 0.5, None)
    follower.stop(0.5)
    assert follower.pending is None
    t, q, qd = _sampled(follower, 0.5, 0.9)
    s = np.minimum(t - 0.5, 0.25)
    np.testing.assert_allclose(qd[:, 0], 1.0 - 4.0 * s, atol=1e-9)
    np.testing.assert_allclose(qd[:, 1], -(1.0 - 4.0 * s) / 2, atol=1e-9)
    np.testing.assert_allclose(q[-1], [0.5 + 0.125, -0.25 - 0.0625], atol=1e-9)
    assert follower.running is None


def test_a_stop_ends_before_the_limit():
    """A joint that could not brake in time brakes faster; one on its limit is still."""
    follower = _follower(q=(1.0, 0.0), deceleration=1.0)
    follower.follow(_path([0.5], [[2.0, 0.0]]), 0.0, 0.0, None)
    follower.advance(0.45)
    follower.stop(0.45)
    _, q, _ = _sampled(follower, 0.45, 1.0)
    assert q.max() <= 2.0
    assert q[-1, 0] > 1.99
    resting = _follower(q=(2.0, 0.0))
    resting.stop(0.0)
    _, q, qd = _sampled(resting, 0.0, 0.3)
    np.testing.assert_array_equal(q, np.tile([2.0, 0.0], (len(q), 1)))
    assert not qd.any()
    assert resting.running is None


def test_the_controller_stops_where_its_reference_comes_to_rest(arm):
    """From a trajectory, without a jump of the reference; before a state nothing."""
    controller = Controller(arm, engine="graph")
    controller.stop()
    controller.update(0.0, Q0, 0 * Q0)
    names = arm.joint_names
    controller.follow(controller.make_trajectory(names, [0.5], [Q0 + 0.3]), 0.0)
    for k in range(1, 4):
        controller.update(0.05 * k, Q0, 0 * Q0)
    before = controller.reference
    assert before.qd.all()
    controller.stop()
    controller.update(0.151, Q0, 0 * Q0)
    np.testing.assert_allclose(controller.reference.qd, before.qd - 0.01, atol=1e-9)
    for k in range(5):
        controller.update(0.2 + 0.05 * k, Q0, 0 * Q0)
    assert controller.trajectory is None
    assert not controller.reference.qd.any()


@pytest.mark.parametrize("what", ["gravity", "disabled"])
def test_what_nothing_follows_is_refused(arm, what):
    """In mode gravity and while disabled or stopped, in a sentence that says so."""
    mode = "gravity" if what == "gravity" else "computed_torque"
    controller = Controller(arm, mode=mode, engine="graph")
    controller.update(0.0, Q0, 0 * Q0)
    controller.enabled = what == "gravity"
    path = controller.make_trajectory(arm.joint_names, [1.0], [Q0])
    with pytest.raises(dyn.SettingError, match=what):
        controller.follow(path, 0.0)
    assert controller.trajectory is None


def test_a_refusal_after_a_stop_says_why_it_stopped(arm):
    """It said "disabled or stopped", whichever it was."""
    controller = Controller(arm, engine="graph")
    controller.update(0.0, Q0, 0 * Q0)
    path = controller.make_trajectory(arm.joint_names, [1.0], [Q0])
    controller.estop(0.0, "the door is open")
    assert "stopped: " in repr(controller) and len(repr(controller)) < 150
    with pytest.raises(dyn.SettingError, match=r"door is open; valid: .*reset_stop"):
        controller.follow(path, 0.0)
    controller.reset_stop()
    controller.update(0.002, Q0, 0 * Q0)
    ends = "the guard has stopped it; ~/reset of the guard ends that"
    controller.safety.stop(0.0, "guard", "zero", ends)
    with pytest.raises(dyn.SettingError, match="stopped: .* guard ends that$"):
        controller.follow(path, 0.0)


# Large and ragged messages


Stamp = namedtuple("Stamp", "sec nanosec")
Point = namedtuple("Point", "positions velocities accelerations time_from_start")


def _message(count):
    rest = array("d", [0, 0, 0, -1, 0, 0, 0]), array("d", [0] * 7), array("d", [0] * 7)
    points = [
        Point(*rest, Stamp(k // 1000, k % 1000 * 1_000_000)) for k in range(count)
    ]
    return Message(joint_names=[f"joint{k + 1}" for k in range(7)], points=points)


def test_long_trajectories_take_little_time(arm):
    """Conversion, checks, start and first sample of 20 000 points; there is a bound."""
    message = _message(20_000)
    controller = Controller(arm, engine="graph")
    q = np.array(message.points[0].positions)
    controller.update(0.0, q, 0 * q)
    started = time.process_time()
    path = controller.make_trajectory(*trajectory_arrays(message))
    controller.follow(path, 0.0)
    controller.update(0.001, q, 0 * q)
    assert time.process_time() - started < 0.4
    assert controller.trajectory is not None
    with pytest.raises(
        dyn.TrajectoryError, match="100001 points; valid: at most 10000"
    ):
        make_trajectory(JOINTS, JOINTS, np.arange(100_001.0), np.zeros((100_001, 2)))


def test_errors_of_long_trajectories_are_short():
    """They name the first fault and print no array."""
    many = [f"j{k}" for k in range(1000)]
    times = np.zeros(50_000)
    faults = [
        lambda: _path(times, np.zeros((50_000, 2))),
        lambda: make_trajectory(many, ["x", *many], [1.0], [np.zeros(1001)]),
        lambda: make_trajectory(many, many, [1.0], [np.full(1000, np.nan)]),
        lambda: make_trajectory(JOINTS, many, [1.0], [np.zeros(1000)]),
    ]
    for fault in faults:
        with pytest.raises(dyn.TrajectoryError) as error:
            fault()
        assert len(str(error.value)) < 300
    with pytest.raises(dyn.TrajectoryError, match="point 1 is due at 0 s after 0 s"):
        faults[0]()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[1.0], [1.0, 2.0]], "point 0 has 1 positions; needs 2"),
        ([[1.0, 2.0], []], "point 1 has 0 positions; needs 2"),
        ([[1.0, 2.0], ["x", 2.0]], "point 1: positions are not rows of numbers"),
        (3.0, "positions are not rows of numbers"),
        (np.array([["x", "y"]] * 2), "point 0: positions are not rows of numbers"),
        ([[1.0, 2.0], [1.0, np.inf]], "point 1: positions are not finite: inf for 'b'"),
    ],
)
def test_ragged_rows_are_refused(rows, expected):
    """Whatever kind of sequence they are."""
    with pytest.raises(dyn.TrajectoryError, match=expected):
        _path([1.0, 2.0], rows)


@pytest.mark.parametrize("times", [["a", "b"], [1.0, [2.0]], [1.0, 10**400], 1j])
def test_times_that_are_no_numbers_are_refused(times):
    with pytest.raises(dyn.TrajectoryError, match="times are not numbers"):
        _path(times, [[0.0, 0.0], [1.0, 1.0]])


def test_ragged_messages_are_refused():
    """The point is named."""
    message = _message(3)
    message.points[2] = message.points[2]._replace(velocities=[1.0])
    with pytest.raises(dyn.TrajectoryError, match="point 2 has 1 velocities; needs 7"):
        trajectory_arrays(message)
    message = _message(2)
    message.joint_names = ["elbow"]
    with pytest.raises(dyn.TrajectoryError, match="unknown joints elbow"):
        make_trajectory(JOINTS, *trajectory_arrays(message))
