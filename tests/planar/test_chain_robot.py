"""A planar chain as a robot: periods, commands, reports, starts, failures."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.planar import from_angles, make_chain
from dyn_core.planar.chain.files import load_chain_file
from dyn_core.planar.chain.plant import ChainRobot
from dyn_core.planar.chain.simulator import ChainSimulator

GROUND = [{"z0": (0.0, 0.0), "z": (0.0, 1.0)}]


def _falling(**settings):
    """Return a chain of three links above the ground, with a stop."""
    chain = make_chain(
        [0.4, 0.3, 0.3],
        [1.0, 0.5, 0.5, 0.3],
        ground=GROUND,
        lower={1: -1.0},
        upper={1: 2.5},
        joint_names=("toe", "knee", "hip", "head"),
    )
    start = from_angles(
        chain, (0.0, 0.3), (0.2, 0.0), [0.3, 0.5, -0.4], [1.0, -3.0, 0.5]
    )
    return ChainRobot(chain, start=start, **settings)


def _beam(**settings):
    """Return a link on a fixed pin that rests on its lower stop."""
    chain = make_chain(
        [0.5], [0.0, 2.0], constraints={"kind": {0: "fixed"}}, lower={0: 0.0}
    )
    return ChainRobot(chain, **settings)


@pytest.mark.parametrize(
    ("period", "dt", "quanta"),
    [(0.002, 0.001, 2), (0.005, 0.002, 3), (0.001, 0.01, 1), (0.003, 0.001, 3)],
)
def test_a_period_is_a_whole_number_of_quanta(period, dt, quanta):
    """The quantum is at most dt, and the motion is that of the event-driven step."""
    robot = _falling(period=period, dt=dt)
    assert robot.substeps == quanta
    bare = ChainSimulator(
        robot.chain, *robot.start, dt=period / quanta, window=5 * dt
    )  # fmt: skip
    for k in range(200):
        if k == 50:
            robot.command(0.0, [0.1, 0.2, -0.3])
        robot.advance(0.0)
        for _ in range(quanta):
            bare.step([0.1, 0.2, -0.3] if k >= 50 else None)
    np.testing.assert_array_equal(robot.state.x, bare.x)
    np.testing.assert_array_equal(robot.q, bare.theta)
    np.testing.assert_array_equal(robot.qd, bare.omega)
    assert robot.t == pytest.approx(200 * period)


def test_impacts_are_counted_and_energy_is_accounted_for():
    """energy at the start = energy now + lost, within the error of the scheme."""
    robot = _falling(period=0.002, dt=2e-4)
    before = sum(robot.energy)
    while robot.t < 0.5:
        robot.advance(0.0)
    assert robot.happened["hit"] >= 2
    assert robot.happened == {
        kind: sum(event.kind == kind for event in robot.events_since(-1.0))
        for kind in robot.happened
    }
    assert robot.lost > 0.1
    assert sum(robot.energy) + robot.lost == pytest.approx(before, abs=0.02 * before)
    assert any("on ground 0" in hold for hold in robot.holds)
    hit = next(event for event in robot.events_since(-1.0) if event.kind == "hit")
    assert hit not in robot.events_since(hit.time)
    assert robot.state.x[:, 1].min() > -1e-6


def test_effort_is_the_command_and_what_a_stop_takes():
    """At rest on its stop a beam bears m g l, less what the command bears."""
    robot = _beam(period=0.002)
    for _ in range(5):
        robot.advance(0.0)
    assert robot.holds == ("joint0 at its lower limit",)
    np.testing.assert_allclose(robot.effort, [2.0 * 9.81 * 0.5], rtol=1e-12)
    robot.command(0.0, [4.0])
    robot.advance(0.0)
    np.testing.assert_allclose(
        robot.simulator.evaluation.tau_w[0], 9.81 - 4.0, rtol=1e-9
    )
    np.testing.assert_allclose(robot.effort, [9.81], rtol=1e-9)
    robot.command(0.0, [12.0])
    for _ in range(5):
        robot.advance(0.0)
    assert robot.holds == ()
    assert robot.q[0] > 0
    np.testing.assert_allclose(robot.effort, [12.0], rtol=1e-12)


def test_commands_are_checked_and_grow_stale():
    """Bad ones raise, are counted and change nothing; old ones become zero."""
    robot = _falling()
    command = np.array([0.1, 0.0, 0.0])
    robot.command(0.0, command)
    command[0] = 99.0
    with pytest.raises(dyn.ShapeError, match=r"command: wanted shape \(3,\)"):
        robot.command(0.0, [1.0])
    with pytest.raises(dyn.NonFiniteError, match="command is not finite"):
        robot.command(0.0, [0.0, np.nan, 0.0])
    np.testing.assert_array_equal(robot.tau, [0.1, 0.0, 0.0])
    assert not robot.stale(0.05)
    robot.advance(0.05)
    np.testing.assert_array_equal(robot.tau, [0.1, 0.0, 0.0])
    robot.advance(0.2)
    np.testing.assert_array_equal(robot.tau, np.zeros(3))
    assert robot.counters == {
        "command of wrong size": 1,
        "command not finite": 1,
        "command stale": 1,
    }


def test_reset_goes_back_and_the_same_happens_again():
    """State, time, counts and what holds are those of the start; paused it stands."""
    robot = _falling(period=0.005)
    begin = robot.state
    for _ in range(60):
        robot.advance(0.0)
    first, counts = robot.state, dict(robot.happened)
    robot.command(0.0, np.ones(3))
    robot.reset()
    np.testing.assert_array_equal(robot.state, begin)
    assert (robot.t, robot.lost, robot.holds) == (0.0, 0.0, ())
    assert not robot.happened
    assert not robot.events_since(-1.0)
    assert not robot.effort.any()
    for _ in range(60):
        robot.advance(0.0)
    np.testing.assert_array_equal(robot.state, first)
    assert dict(robot.happened) == counts
    robot.paused = True
    robot.advance(0.0)
    np.testing.assert_array_equal(robot.state, first)


def test_place_takes_angles_and_leaves_the_base():
    """Whole turns are kept; joint 0 stays and keeps its velocity."""
    robot = _falling()
    for _ in range(20):
        robot.advance(0.0)
    before = robot.state
    robot.place([0.4, 0.3 - 0.0, 2 * np.pi + 0.2], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(robot.q, [0.4, 0.3, 2 * np.pi + 0.2], atol=1e-12)
    np.testing.assert_allclose(robot.qd, [0.1, 0.2, 0.3], atol=1e-12)
    np.testing.assert_array_equal(robot.state.x[0], before.x[0])
    np.testing.assert_array_equal(robot.state.v[0], before.v[0])
    robot.place([0.4, 0.3, 0.2])
    np.testing.assert_allclose(robot.qd, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("q", "qd", "message"),
    [
        ([0.1, 0.2], None, r"positions: wanted shape \(3,\)"),
        ([0.1, np.nan, 0.2], None, "positions: that of knee is not finite"),
        ([0.1, 0.2, 0.2], [0.0, 0.0, np.inf], "velocities: that of hip"),
        ([0.1, 0.2, 0.2], [0.0], "velocities: wanted shape"),
        ([0.1, 2.6, 0.2], None, "knee at its upper limit is 0.1 rad beyond its bound"),
        ([-1.6, 0.0, 0.0], None, "knee on ground 0 is 0.0998.* m inside its bound"),
    ],
)
def test_bad_states_are_refused_and_change_nothing(q, qd, message):
    """Sizes, NaN, beyond a limit, below the ground."""
    robot = _falling()
    before = robot.state
    with pytest.raises(dyn.DynError, match=message):
        robot.place(q, qd)
    np.testing.assert_array_equal(robot.state, before)
    np.testing.assert_allclose(robot.q, [0.3, 0.5, -0.4], atol=1e-12)


def test_a_start_may_be_given_in_parts():
    """q0 and qd0 stand over those of the start; the default is straight and at rest."""
    robot = _falling(q0=[0.2, 0.1, 0.0])
    np.testing.assert_allclose(robot.q, [0.2, 0.1, 0.0], atol=1e-12)
    np.testing.assert_allclose(robot.qd, [1.0, -3.0, 0.5], atol=1e-12)
    robot.advance(0.0)
    robot.reset()
    np.testing.assert_allclose(robot.q, [0.2, 0.1, 0.0], atol=1e-12)
    plain = ChainRobot(make_chain([1.0, 2.0], [1.0, 1.0, 1.0]))
    np.testing.assert_array_equal(plain.state.x, [[0, 0], [1, 0], [3, 0]])
    assert not plain.state.v.any()


def test_limits_beyond_half_a_turn_serve():
    """An angle is taken by the turn that is within its limits."""
    chain = make_chain(
        [0.5], [0.0, 1.0], constraints={"kind": {0: "fixed"}}, lower={0: 3.0},
        upper={0: 5.0},
    )  # fmt: skip
    start = from_angles(chain, (0, 0), (0, 0), [4.0], [0.0])
    robot = ChainRobot(chain, start=start)
    np.testing.assert_allclose(robot.q, [4.0])
    for _ in range(500):
        robot.advance(0.0)
        assert 3.0 - 1e-6 < robot.q[0] < 5.0 + 1e-6
    assert robot.holds == () or "limit" in robot.holds[0]


def test_a_failed_step_keeps_the_last_good_state(monkeypatch):
    """It pauses, is counted, and the error says which step and joint."""
    robot = _falling(period=0.005)
    for _ in range(10):
        robot.advance(0.0)
    before, t, lost = robot.state, robot.t, robot.lost
    whole = robot.simulator.step

    def broken(tau):
        whole(tau)
        if robot.simulator.t > t + 0.0025:
            robot.simulator.x = robot.simulator.x * np.array(
                [[1.0], [1.0], [np.inf], [1.0]]
            )

    monkeypatch.setattr(robot.simulator, "step", broken)
    with pytest.raises(dyn.NonFiniteError, match=r"step \d+: the motion of joint hip"):
        robot.advance(0.0)
    assert robot.paused
    assert robot.counters["step failed"] == 1
    np.testing.assert_array_equal(robot.state, before)
    assert (robot.t, robot.lost) == (t, lost)
    assert np.isfinite(robot.q).all()


def test_a_link_on_the_ground_keeps_its_length():
    """Its length is given up, for the ground holds both ends; it is no trouble."""
    chain = make_chain([0.5], [1.0, 1.0], ground=GROUND)
    robot = ChainRobot(chain, start=from_angles(chain, (0, 0.01), (0, 0), [0.0], [0.0]))
    assert not robot.trouble_since(-1.0)
    while robot.t < 0.1:
        robot.advance(0.0)
    assert robot.dropped == ("length of link 0",)
    assert robot.happened["dropped"] == 1
    assert not robot.unmet
    assert not robot.trouble_since(-1.0)
    robot.simulator.x = robot.simulator.x + [[0.0, 0.0], [0.01, 0.0]]
    assert robot.unmet == robot.dropped


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"period": 0.0}, "period must be > 0"),
        ({"dt": np.nan}, "dt must be > 0"),
        ({"command_timeout": -1.0}, "command_timeout must be > 0"),
        ({"window": 1e-4}, "window must be > dt"),
        ({"engine": "steam"}, "steam"),
        ({"q0": [0.0]}, "positions: wanted shape"),
    ],
)
def test_bad_settings_are_refused_in_words(settings, message):
    """Each says what is wrong."""
    with pytest.raises(dyn.DynError, match=message):
        _falling(**settings)
    with pytest.raises(dyn.ModelError, match="no link"):
        ChainRobot(make_chain([], [1.0]))


@pytest.mark.parametrize("name", robots.chains())
def test_shipped_chains_move_and_keep_their_bounds(name):
    """Three seconds: links keep their lengths, joints and angles stay inside."""
    file = load_chain_file(robots.chain_path(name))
    chain = file.chain
    robot = ChainRobot(
        chain, period=0.005, dt=file.dt, window=file.window, start=file.start
    )
    begin = sum(robot.energy)
    while robot.t < 3.0:
        robot.advance(0.0)
        x, _ = robot.state
        lengths = np.linalg.norm(np.diff(x, axis=0), axis=1)
        np.testing.assert_allclose(lengths, chain.lengths, atol=1e-3)
        assert (robot.q > np.array(chain.lower[:-1]) - 2e-3).all()
        assert (robot.q < np.array(chain.upper[:-1]) + 2e-3).all()
        for plane in chain.ground:
            assert ((x - plane.z0) @ plane.z).min() > -1e-4
    assert robot.happened["hit"] >= 2
    assert robot.lost > 0
    assert sum(robot.energy) < begin
    with pytest.raises(dyn.ModelError, match="no shipped chain is called 'x'; valid: "):
        robots.chain_path("x")
