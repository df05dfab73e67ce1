"""References: no jump of velocity at starts, ends and replacements; back from a stop."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Controller, make_trajectory
from dyn_core.control.joint_limits import JointLimits
from dyn_core.control.reference.following import TrajectoryFollower
from dyn_core.control.reference.goal_requests import TrajectoryRows, goal_trajectory
from dyn_core.control.reference.ramps import braking
from dyn_core.control.rules import Rules

PERIOD = 0.002
JOINTS = ("a", "b")
LIMITS = JointLimits(JOINTS, np.array([-2.0, -2.0]), np.array([2.0, 2.0]),
                     np.array([3.0, 3.0]))  # fmt: skip
KINDS = {"positions": 0, "velocities": 1, "accelerations": 2}
# Of a ramp, with the fading difference of velocity of a replacement [rad/s²].
MOST = 15.0


def _follower(q=(0.0, 0.0), limits=LIMITS, **rules):
    made = TrajectoryFollower(limits, Rules(**rules), np.zeros(len(q), bool))
    made.rest(np.array(q, float))
    return made


def _path(times, q, order=0, **settings):
    still = [np.zeros_like(np.array(q, float))] * order
    return make_trajectory(JOINTS, JOINTS, times, q, *still, **settings)


def _sampled(follower, start, end, period=PERIOD):
    """Return times, positions and velocities, cycle by cycle."""
    times = np.arange(round((end - start) / period) + 1) * period + start
    rows = []
    for t in times:
        follower.advance(t)
        rows.append(follower.reference)
    return times, np.array([r.q for r in rows]), np.array([r.qd for r in rows])


def _steepest(qd, period=PERIOD):
    """Return the largest change of velocity in a cycle, as an acceleration."""
    return np.abs(np.diff(qd, axis=0)).max() / period


# Starts, ends and replacements


@pytest.mark.parametrize("second", [3.0 - PERIOD, 3.0, 3.0 + PERIOD, 1.5, 4.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_velocity_of_the_reference_does_not_jump(kind, second):
    """The second begins at the end of the first, a cycle beside it, or anywhere."""
    follower = _follower()
    follower.follow(_path([3.0], [[0.5, -0.3]], KINDS[kind]), 0.0, 0.0, None)
    _, q, qd = _sampled(follower, 0.0, 1.0)
    then = _path([2.0], [[0.2, 0.1]], KINDS[kind])
    follower.follow(then, second, 1.0, None)
    _, more_q, more_qd = _sampled(follower, 1.0 + PERIOD, second + 2.5)
    q, qd = np.vstack([q, more_q]), np.vstack([qd, more_qd])
    assert _steepest(qd) < MOST
    assert np.abs(np.diff(q, axis=0)).max() < 1.1 * PERIOD * np.abs(qd).max()
    np.testing.assert_array_equal(q[-1], [0.2, 0.1])
    assert follower.running is follower.pending is None


def test_positions_alone_are_met_at_their_times():
    """All points, from rest to rest; lines between, 10 % faster near the ends."""
    times, rows = [1.0, 2.0, 4.0], [[0.4, 0.1], [0.1, 0.1], [1.0, -0.5]]
    follower = _follower()
    follower.follow(_path(times, rows), 0.0, 0.0, None)
    t, q, qd = _sampled(follower, 0.0, 4.5)
    for k, row in zip((500, 1000, 2000), rows, strict=True):
        np.testing.assert_allclose(q[k], row, atol=1e-12)
    np.testing.assert_array_equal(q[2000:], np.tile(rows[-1], (251, 1)))
    assert not qd[0].any()
    assert not qd[2000:].any()
    columns = np.vstack([[0.0, 0.0], rows]).T
    lines = np.array([np.interp(t, [0.0, *times], x) for x in columns]).T
    ramps = 0.35
    inner = (t > ramps) & (t < 4.0 - ramps)
    np.testing.assert_allclose(q[inner], lines[inner], atol=1e-12)
    assert np.abs(q - lines).max() < 0.45**2 / (2 * 10.0)  # speed²/(2 deceleration)
    assert np.abs(qd[:, 0]).max() < 1.1001 * 0.45
    corners = np.isin(np.arange(len(t)), [500, 1000])
    assert np.abs(np.diff(qd, axis=0))[~corners[1:]].max() < 1.01 * PERIOD * 10.0


def test_ramps_of_dense_points_take_the_time_they_need():
    """Hundreds of points at one speed, as of linspace: a ramp spans several."""
    times = np.arange(1, 201) * 0.01
    rows = np.outer(times, [0.5, -0.25])
    follower = _follower()
    follower.follow(_path(times, rows), 0.0, 0.0, None)
    _, q, qd = _sampled(follower, 0.0, 2.3)
    assert _steepest(qd) < 1.01 * 10.0
    assert np.abs(qd).max() < 1.1001 * 0.5
    np.testing.assert_array_equal(q[1000], rows[-1])
    np.testing.assert_allclose(q[500], rows[99], atol=1e-12)
    np.testing.assert_allclose(q[:, 1], -q[:, 0] / 2, atol=1e-12)
    assert (np.diff(q[:, 0]) >= 0).all()


@pytest.mark.parametrize("speed", [2.0, 2.9, 3.0, 3.02])
def test_ramps_keep_velocity_limits(speed):
    """At the limit itself there is 1 % to make up for the time that a ramp takes."""
    follower = _follower(q=(-1.8, 0.0))
    follower.follow(_path([3.6 / speed], [[1.8, 0.0]]), 0.0, 0.0, None)
    _, q, qd = _sampled(follower, 0.0, 3.6 / speed + 0.3)
    assert np.abs(qd).max() <= 3.0 * 1.0125
    np.testing.assert_allclose(q[-1], [1.8, 0.0], atol=1e-12)
    assert (np.diff(q[:, 0]) >= 0).all()
    if speed == 2.0:
        assert _steepest(qd) < 1.01 * 10.0


def test_random_paths_of_positions_start_and_end_at_rest(full):
    """Within the hull of their points and the velocity limits, whatever their times."""
    rng = np.random.default_rng(3)
    for _ in range(60 if full else 15):
        count = int(rng.integers(1, 40))
        times = np.cumsum(rng.uniform(0.01, 0.4, count)) + 0.05
        steps = rng.uniform(-1, 1, (count, 2)) * np.diff(times, prepend=0.0)[:, None]
        rows = np.cumsum(2.9 * steps, axis=0).clip(-1.9, 1.9)
        follower = _follower()
        follower.follow(_path(times, rows), 0.0, 0.0, None)
        _, q, qd = _sampled(follower, 0.0, times[-1] + 0.3, 1e-3)
        assert not qd[0].any()
        assert not qd[-1].any()
        assert (q.min(axis=0) >= np.minimum(rows.min(axis=0), 0) - 1e-9).all()
        assert (q.max(axis=0) <= np.maximum(rows.max(axis=0), 0) + 1e-9).all()
        assert np.abs(qd).max() <= 3.0 * 1.0125
        np.testing.assert_array_equal(q[-1], rows[-1])
        middle = times[(times > times[-1] / 2 - 1e-3) & (times < times[-1] / 2)]
        follower = _follower()
        follower.follow(_path(times, rows), 0.0, 0.0, None)
        for t in middle:
            follower.advance(t)
            row = rows[int(np.searchsorted(times, t))]
            np.testing.assert_allclose(follower.reference.q, row, atol=1e-9)


def test_a_stream_of_short_moves_stays_smooth():
    """Each replaces the one before at 100 Hz, as a joystick's."""
    follower, rows = _follower(), []
    for k in range(100):
        t = 0.01 * k
        goal = [[0.2 * (t + 0.1), 0.0]]
        follower.follow(_path([0.1], goal), t, t, None)
        rows.append(_sampled(follower, t, t + 0.008)[2])
    qd = np.vstack(rows)
    assert _steepest(qd) < MOST
    assert np.abs(qd[300:, 0] - 0.2).max() < 0.1


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.97, 1.0, 1.1, -0.5])
def test_a_moving_reference_joins_a_path(share):
    """With a share of the path's speed: it gains or loses the rest, without a jump."""
    follower, speed = _follower(), np.array([0.5, -0.25])
    follower.take(np.zeros(2), share * speed)
    follower.follow(_path([2.0], [2.0 * speed]), 0.0, 0.0, None)
    _, q, qd = _sampled(follower, 0.0, 2.0)
    assert _steepest(qd) < MOST
    np.testing.assert_allclose(qd[0], share * speed, atol=1e-9)
    np.testing.assert_allclose(np.diff(q, axis=0), PERIOD * qd[1:], atol=1e-4)
    fading = 0.52 * max(-share, 0.0)  # of what moves the other way
    assert np.abs(qd[:, 0]).max() < (1.101 * max(share, 1.0) + fading) * 0.5
    np.testing.assert_allclose(q[500], speed, atol=1e-9)
    if share >= 0:
        assert qd[:800, 0].min() >= min(share, 0.9) * 0.5 - 1e-9


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.97])
def test_short_paths_have_steeper_ramps(share):
    """There is no time for the deceleration; positions follow from velocities still."""
    follower, speed, fine = _follower(), np.array([0.5, -0.25]), 1e-5
    follower.take(np.zeros(2), share * speed)
    follower.follow(_path([0.02], [0.02 * speed]), 0.0, 0.0, None)
    _, q, qd = _sampled(follower, 0.0, 0.0199, fine)
    middle = (qd[1:] + qd[:-1]) / 2
    np.testing.assert_allclose(np.diff(q, axis=0), fine * middle, atol=2e-8)
    assert qd[0, 0] == pytest.approx(share * 0.5)
    assert 0 < qd[-1, 0] < 0.1
    assert np.abs(qd[:, 0]).max() < 0.5 * 4 / 3 + 1e-9
    assert _steepest(qd, fine) < 250.0


def test_a_start_with_a_velocity_is_met_from_rest():
    """A first point at time zero that moves: the reference starts at rest and joins."""
    follower = _follower()
    rows = [[0.0, 0.0], [1.0, 0.0]], [[0.8, 0.0], [0.0, 0.0]]
    path = make_trajectory(JOINTS, JOINTS, [0.0, 2.0], *rows)
    follower.follow(path, 0.0, 0.0, None)
    _, q, qd = _sampled(follower, 0.0, 2.2)
    assert not qd[0].any()
    assert _steepest(qd) < 20.0
    np.testing.assert_allclose(q[500], path.sample(1.0).q, atol=1e-12)


def _moving(q, speed, seconds=1.0):
    """Return a way from one position to another at one speed, at its end too."""
    rows = [q, [x + v * seconds for x, v in zip(q, speed, strict=True)]]
    moving = {"moving_end": True}
    return make_trajectory(JOINTS, JOINTS, [0.0, seconds], rows, [speed] * 2, **moving)


def test_a_moving_end_is_braked():
    """Where nothing takes over the reference brakes after its end, within the limits."""
    follower = _follower()
    follower.take(np.zeros(2), np.array([0.5, -1.0]))
    follower.follow(_moving([0.0, 0.0], [0.5, -1.0]), 0.0, 0.0, None)
    _, q, qd = _sampled(follower, 0.0, 1.4)
    assert _steepest(qd) < 1.01 * 10.0
    np.testing.assert_allclose(q[500], [0.5, -1.0], atol=1e-12)
    np.testing.assert_allclose(q[-1], [0.525, -1.05], atol=1e-12)
    assert not qd[-1].any()
    assert follower.running is None
    near = _follower(q=(0.99, 0.0))
    near.take(np.array([0.99, 0.0]), np.array([1.0, 0.0]))
    near.follow(_moving([0.99, 0.0], [1.0, 0.0]), 0.0, 0.0, None)
    _, q, _ = _sampled(near, 0.0, 1.3)
    assert 1.999 < q[-1, 0] == q.max() <= 2.0 + 1e-12


@pytest.mark.parametrize("beside", [-PERIOD, 0.0, PERIOD])
def test_moving_ends_join(beside):
    """Segments that are queued go on at their speed; none stops in between."""
    follower = _follower()
    follower.take(np.zeros(2), np.array([0.5, -0.5]))
    follower.follow(_moving([0.0, 0.0], [0.5, -0.5]), 0.0, 0.0, None)
    follower.follow(_moving([0.5, -0.5], [0.5, -0.5]), 1.0 + beside, 0.0, None)
    _, _, qd = _sampled(follower, 0.0, 2.0)
    assert _steepest(qd) < MOST
    assert np.abs(qd[:, 0]).min() > 0.45


def test_a_trajectory_ends_and_waits_within_a_day():
    """What lasts or waits longer is a mistake of a clock, and refused in words."""
    _path([86_400.0], [[0.1, 0.1]])
    with pytest.raises(dyn.TrajectoryError, match="point 1 is due at 86401 s; valid"):
        _path([1.0, 86_401.0], [[0.1, 0.1]] * 2)
    follower, path = _follower(), _path([1.0], [[0.1, 0.1]])
    follower.follow(path, 86_400.0, 0.0, None)
    with pytest.raises(dyn.TrajectoryError, match=r"86401.000 s from now; valid: at"):
        follower.follow(path, 86_401.0, 0.0, None)
    assert follower.pending is not None


# Robots at their stops


def test_what_leaned_on_a_stop_finds_the_way_back(shipped):
    """The reference was taken while the arm bounced; the arm has come back since."""
    arm = shipped["arm7"]
    controller = Controller(arm, 400.0, 40.0, engine="graph")
    high, t = controller.model.upper[1], 0.0
    q = np.array([0, high + 0.0015, 0, -2.2, 0, 1.6, 0.8])
    later = q.copy()
    later[1] = high + 0.0004
    for place in (q, later):
        for _ in range(20):
            t += PERIOD
            controller.update(t, place, 0 * q)
    goal = q.copy()
    goal[1] = 1.0
    made = controller.make_trajectory(arm.joint_names, [3.0], [goal])
    controller.follow(made, t)
    for _ in range(100):
        t += PERIOD
        controller.update(t, later, 0 * q)
        assert controller.reference.q[1] <= q[1] + 1e-12


def test_a_partial_goal_leaves_a_joint_on_its_stop(shipped):
    """The joint that the goal lacks stays where the reference rests, beyond its limit."""
    arm = shipped["arm7"]
    controller = Controller(arm, 400.0, 40.0, engine="graph")
    q = np.array([0, controller.model.upper[1] + 0.003, 0, -2.2, 0, 1.6, 0.8])
    for k in range(20):
        controller.update(PERIOD * k, q - [0, 0.003 * (k > 9), 0, 0, 0, 0, 0], 0 * q)
    rows = TrajectoryRows(["joint1"], np.array([1.0]), [[0.2]])
    made = goal_trajectory(controller, rows, partial=True)
    controller.follow(made, controller.now)
    assert controller.trajectory is not None
    np.testing.assert_allclose(made.q[0], [0.2, *q[1:]])


def _returns(rng, kind, reference, robot, goal):
    """Return rows of a random motion that ends inside, and its first time."""
    order, points = KINDS[kind], [goal]
    times = [float(rng.uniform(2.6, 4.0))]
    if rng.random() < 0.4:
        points.append(goal * rng.uniform(0.5, 1.0))
        times.append(times[0] + 2.0)
    start = rng.choice(["none", "robot", "reference", "inside"])
    if start != "none":
        first = {"robot": robot, "reference": reference,
                 "inside": np.clip(robot, LIMITS.lower, LIMITS.upper)}[start]  # fmt: skip
        points, times = [first, *points], [0.0, *times]
    return times, points, order


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_inward_is_followed(kind, full):
    """Random robots on stops and 5 mrad beyond, random returns of the robot since."""
    rng = np.random.default_rng(sum(map(ord, kind)))
    for _ in range(60 if full else 20):
        side = rng.choice([-1.0, 1.0], 2)
        beyond = rng.uniform(0.0, 5e-3, 2) * (rng.random(2) < 0.8)
        reference = side * (2.0 + beyond)
        robot = reference - side * rng.uniform(0.0, 8e-3, 2)
        goal = rng.uniform(-1.7, 1.7, 2)
        times, rows, order = _returns(rng, kind, reference, robot, goal)
        follower = _follower(q=reference)
        still = [np.zeros((len(rows), 2))] * order
        made = follower.make(robot, JOINTS, times, rows, *still)
        follower.follow(made, 0.0, 0.0, robot)
        _, q, qd = _sampled(follower, 0.0, times[-1] + 0.3, 5e-3)
        assert (side * q <= np.abs(reference) + 1e-9).all()
        assert np.abs(qd).max() <= 3.0 * 1.0125
        np.testing.assert_array_equal(q[-1], rows[-1])
        out = rows[-1].copy()
        out[0] = side[0] * (2.0 + beyond[0] + rng.uniform(2e-3, 0.1))
        for unchecked in (False, True):
            with pytest.raises(dyn.TrajectoryError, match="joint 'a'"):
                _follow_out(_follower(q=reference), robot, out, order, unchecked)
        speed = np.tile(3.0 * side, (2, 1)) * np.array([[1.0], [0.0]])
        away = make_trajectory(JOINTS, JOINTS, [0.0, 1.5], [reference, goal], speed)
        with pytest.raises(dyn.TrajectoryError, match="outside its limits"):
            _follower(q=reference).follow(away, 0.0, 0.0, robot)


def _follow_out(follower, robot, place, order, unchecked):
    still = [np.zeros((1, 2))] * order
    if unchecked:
        made = make_trajectory(JOINTS, JOINTS, [4.0], [place], *still)
    else:
        made = follower.make(robot, JOINTS, [4.0], [place], *still)
    follower.follow(made, 0.0, 0.0, robot)


def test_a_later_way_is_checked_from_where_it_begins():
    """By then the running trajectory has led the reference inside."""
    outside = np.array([2.005, 0.0])
    follower = _follower(q=outside)
    inside = follower.make(np.zeros(2), JOINTS, [1.0], [[1.5, 0.0]])
    follower.follow(inside, 0.0, 0.0, np.zeros(2))
    back = make_trajectory(JOINTS, JOINTS, [2.0], [[2.004, 0.0]])
    with pytest.raises(dyn.TrajectoryError, match=r"2.004 is outside.*2.001\]"):
        follower.follow(back, 1.5, 0.0, np.zeros(2))


def test_a_stop_from_outside_the_limits_stays_there():
    """A joint beyond its limit stops within the tolerance, the others at their rate."""
    follower = _follower(q=(2.003, 0.0), deceleration=5.0)
    follower.take(np.array([2.003, 0.0]), np.array([0.4, -1.0]))
    follower.stop(0.0)
    _, q, qd = _sampled(follower, 0.0, 0.5, 1e-4)
    assert q[:, 0].max() <= 2.003 + 1e-3 + 1e-12
    np.testing.assert_allclose(q[-1, 1], -0.1, atol=1e-9)
    assert _steepest(qd[:, 1:], 1e-4) < 1.01 * 5.0
    assert not qd[-1].any()
    inward = _follower(q=(2.003, 0.0), deceleration=5.0)
    inward.take(np.array([2.003, 0.0]), np.array([-1.0, 0.0]))
    inward.stop(0.0)
    _, q, qd = _sampled(inward, 0.0, 0.5)
    np.testing.assert_allclose(q[-1], [1.903, 0.0], atol=1e-9)
    assert _steepest(qd) < 1.01 * 5.0


def test_braking_stays_on_a_line_where_there_is_room():
    """All joints rest at the same time; one without room alone brakes faster."""
    q, qd = np.array([0.0, 0.0]), np.array([1.0, -0.5])
    way = braking(q, qd, LIMITS, 10.0, 1e-3)
    np.testing.assert_allclose(way.times, [0.0, 0.1])
    np.testing.assert_allclose(way.sample(0.05).q, 0.0375 * np.array([1.0, -0.5]))
    short = braking(np.array([1.99, 0.0]), qd, LIMITS, 10.0, 1e-3)
    np.testing.assert_allclose(short.times, [0.0, 0.02, 0.1])
    np.testing.assert_allclose(short.sample(0.05).q, [2.0, -0.5 * 0.0375])
    np.testing.assert_allclose(short.sample(9.0).q, [2.0, -0.025])
    for still in (0.0, 5e-324, 1e-12):
        assert braking(q, still * qd, LIMITS, 10.0, 1e-3) is None
