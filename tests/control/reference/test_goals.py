"""Goals of trajectories: each code, each tolerance, cancel, newer goals, stops."""

import inspect
import pickle
from types import SimpleNamespace
from unittest.mock import MagicMock
from urllib.error import HTTPError

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Controller
from dyn_core.control.reference.goal_requests import (
    GoalCode,
    TrajectoryRows,
    goal_trajectory,
    with_missing_joints,
)
from dyn_core.control.reference.goal_tolerances import (
    JointTolerance,
    Tolerances,
    checked_timeout,
)
from dyn_core.control.reference.goals import GoalTracker
from dyn_core.control.rules import Rules
from ros_nodes.controller.goal_service import GoalService
from ros_nodes.parameter_tables.goal_parameters import (
    GOALS,
    constraint_fields,
    tolerances,
)

PERIOD = 0.01


@pytest.fixture(scope="module")
def arm(shipped):
    """Return an arm of two joints."""
    return shipped["two_link"]


class Bench:
    """A controller whose robot is where its reference is, but for a deviation."""

    def __init__(self, model, **choices):
        rules = Rules(good_samples=1)
        limits = dict.fromkeys(model.joint_names, 500.0)
        self.controller = Controller(
            model,
            rules=rules,
            engine="graph",
            effort_limits=limits,
            state_bounds=None,
            bounds=None,
        )
        self.joints = model.joint_names
        self.tracker = GoalTracker(
            self.controller, Tolerances.of(self.joints, **choices)
        )
        self.t, self.off, self.speed_off = 0.0, np.zeros(2), np.zeros(2)
        self.speed = 1.0  # of the time of trajectories
        self.step()

    def step(self, moving=True):
        """Advance by one cycle and return the outcomes."""
        self.t += PERIOD
        c = self.controller
        q, qd = np.array([0.1, 0.2]), np.zeros(2)
        if c.reference is not None:
            following = c.follower
            following.advance(self.now)
            q, qd = c.reference.q, c.reference.qd
        if moving:
            c.update(self.t, q - self.off, qd - self.speed_off, None, self.now)
        return self.tracker.advance(self.t)

    @property
    def now(self):
        """Time of trajectories."""
        return self.speed * self.t

    def rows(self, q=(0.4, 0.0), names=None, times=(0.5,), **more):
        """Return rows of a trajectory to a place at rest."""
        names = self.joints if names is None else names
        still = np.zeros((len(times), len(names)))
        q = np.linspace(q, q, len(times))
        return TrajectoryRows(names, np.array(times), q, still, still, **more)

    def ask(self, goal="first", wait=0.0, tolerances=None, **rows):
        """Accept a goal to a place."""
        made = goal_trajectory(self.controller, self.rows(**rows), wait)
        self.tracker.accept(goal, made, self.now + wait, tolerances)

    def run(self, seconds):
        """Return the outcomes of a time."""
        ends = []
        while seconds > 0:
            ends += self.step()
            seconds -= PERIOD
        return ends

    def outcome(self, seconds=1.0):
        """Return the one outcome of a time."""
        (end,) = self.run(seconds)
        assert not self.tracker.tracked
        return end


def _resting(bench):
    """Whether the reference rests and nothing is followed any more."""
    controller = bench.controller
    return controller.trajectory is None and not controller.reference.qd.any()


def test_a_goal_is_reached_when_the_trajectory_ends(arm):
    """With its code and a sentence, not before its end; feedback says where it is."""
    bench = Bench(arm, goal={arm.joint_names[0]: 0.01})
    bench.ask()
    assert bench.run(0.3) == []
    bench.off = np.array([0.004, 0.0])
    bench.step()
    seen = bench.tracker.feedback("first")
    assert seen.since == pytest.approx(0.31, abs=2 * PERIOD)
    assert np.allclose(seen.desired.q - seen.q, seen.error)
    assert np.allclose(seen.error, bench.off)
    assert np.allclose(seen.desired.qd - seen.qd, seen.rate)
    end = bench.outcome()
    assert end[:3] == ("first", "succeeded", GoalCode.SUCCESSFUL)
    assert np.allclose(bench.controller.reference.q, (0.4, 0.0))
    assert bench.tracker.feedback("first") is None


def test_leaving_the_path_aborts_and_brakes(arm):
    """The sentence names the joint; the robot brakes from where it is, then rests."""
    first, second = arm.joint_names
    bench = Bench(arm, trajectory={second: 0.05})
    bench.ask(q=(0.4, 0.8))
    bench.off = np.array([0.3, 0.04])  # the first has no tolerance
    assert bench.run(0.2) == []
    bench.off = np.array([0.0, 0.06])
    (end,) = bench.step()
    assert end[:3] == ("first", "aborted", GoalCode.PATH_TOLERANCE_VIOLATED)
    assert f"joint '{second}' is off by 0.06; tolerance 0.05" in end.sentence
    bench.off = np.zeros(2)
    place, speed = bench.controller.q, np.abs(bench.controller.qd).max()
    assert speed > 1.0
    bench.run(0.5)
    assert _resting(bench)
    way = np.abs(bench.controller.reference.q - place).max()
    assert 0 < way <= speed**2 / (2 * bench.controller.rules.deceleration) + 1e-9
    assert bench.controller.reference.q[1] < 0.7  # it does not go on to the goal


def test_a_goal_that_is_not_reached_in_time_is_aborted(arm):
    """After goal_time, and the robot rests where it is; 0 waits for any time."""
    second = arm.joint_names[1]
    bench = Bench(arm, goal={second: 0.01}, goal_time=0.2)
    bench.ask(q=(0.2, 0.4))
    bench.off = np.array([0.0, 0.03])
    assert bench.run(0.65) == []
    (end,) = bench.run(0.1)
    assert end.code == GoalCode.GOAL_TOLERANCE_VIOLATED
    assert f"joint '{second}' is off by 0.03" in end.sentence
    assert "goal_time 0.2 s" in end.sentence
    bench.off = np.zeros(2)
    bench.run(0.3)
    assert _resting(bench)
    assert bench.controller.reference.q[1] == pytest.approx(0.37)
    bench.tracker.tolerances = Tolerances.of(arm.joint_names, goal={second: 0.01})
    bench.ask(q=(0.2, 0.5))
    bench.off = np.array([0.0, 0.03])
    assert bench.run(1.5) == []
    bench.off = np.array([0.0, 0.009])
    assert bench.outcome(0.05).state == "succeeded"


def test_goals_run_in_the_time_of_trajectories(arm):
    """At half its speed all takes twice as long: feedback, end and goal_time."""
    bench = Bench(arm, goal={arm.joint_names[1]: 0.01}, goal_time=0.2)
    bench.speed = 0.5
    bench.run(0.02)
    bench.ask(q=(0.2, 0.4))
    bench.off = np.array([0.0, 0.03])
    bench.run(0.5)
    since = bench.tracker.feedback("first").since
    assert since == pytest.approx(0.25, abs=2 * PERIOD)
    assert bench.run(0.85) == []
    (end,) = bench.run(0.1)
    assert end.code == GoalCode.GOAL_TOLERANCE_VIOLATED


def test_a_robot_that_still_moves_is_not_at_its_goal(arm):
    """stopped_velocity_tolerance counts, 0 does not."""
    bench = Bench(arm)
    bench.ask()
    bench.speed_off = np.array([0.0, 0.02])
    assert bench.run(0.7) == []
    bench.speed_off = np.array([0.0, 0.009])
    assert bench.outcome(0.05).state == "succeeded"
    bench = Bench(arm, stopped_velocity=0.0)
    bench.ask()
    bench.speed_off = np.array([0.0, 3.0])
    assert bench.outcome(0.6).state == "succeeded"


def test_tolerances_of_a_goal_replace_those_of_the_controller(arm):
    """Greater than 0 replaces, 0 keeps, -1 checks nothing; all else is refused."""
    first, second = arm.joint_names
    default = Tolerances.of(
        arm.joint_names, {first: 0.1}, {first: 0.2, second: 0.3}, goal_time=2.0
    )
    same = default.overridden([JointTolerance(second)], [JointTolerance(first)])
    for name in ("path_position", "path_velocity", "goal_position", "goal_velocity"):
        assert np.array_equal(getattr(same, name), getattr(default, name))
    assert same.goal_time == 2.0
    made = default.overridden(
        [JointTolerance(first, -1.0, 0.7), JointTolerance(second, 0.4)],
        [JointTolerance(second, -1.0, -1.0, -1.0, 0.0)],
        -1.0,
    )
    assert made.path_position.tolist() == [0.0, 0.4]
    assert made.path_velocity.tolist() == [0.7, 0.0]
    assert made.goal_position.tolist() == [0.2, 0.0]
    assert made.goal_velocity.tolist() == [0.01, 0.0]
    assert made.goal_time == 0.0
    assert default.path_position.tolist() == [0.1, 0.0]
    for rows, message in (
        ([JointTolerance("elbo")], "path_tolerance: no joint is called 'elbo'"),
        ([JointTolerance(first, -2.0)], "position is -2.0; valid: > 0, 0"),
        ([JointTolerance(first, 0.0, np.nan)], "velocity is nan"),
        ([JointTolerance(first, acceleration=1.0)], "acceleration is not checked"),
    ):
        with pytest.raises(dyn.errors.GoalError, match=message) as refused:
            default.overridden(rows)
        assert refused.value.code == GoalCode.INVALID_GOAL
    with pytest.raises(dyn.errors.GoalError, match="goal_time_tolerance is -3"):
        default.overridden(goal_time=-3.0)
    with pytest.raises(dyn.SettingError, match="constraints.elbow.goal"):
        Tolerances.of(arm.joint_names, goal={"elbow": 0.1})
    for wrong in (-1.0, "1", None, True, [1.0]):
        with pytest.raises(dyn.SettingError, match="constraints.goal_time is"):
            Tolerances.of(arm.joint_names, goal_time=wrong)
        with pytest.raises(dyn.SettingError, match=f"constraints.{first}.goal is"):
            Tolerances.of(arm.joint_names, goal={first: wrong})
    with pytest.raises(dyn.SettingError, match="goal is 5; valid: a mapping"):
        Tolerances.of(arm.joint_names, goal=5)
    for wrong in ("x", None, True):
        with pytest.raises(dyn.errors.GoalError, match="goal_time_tolerance is"):
            default.overridden(goal_time=wrong)


def test_a_velocity_tolerance_of_the_path(arm):
    """A goal may bound the velocity error of a joint on its way."""
    bench = Bench(arm)
    more = bench.tracker.tolerances.overridden(
        [JointTolerance(arm.joint_names[0], velocity=0.1)]
    )
    bench.ask(tolerances=more)
    bench.speed_off = np.array([0.11, 0.0])
    (end,) = bench.step()
    assert end.code == GoalCode.PATH_TOLERANCE_VIOLATED
    assert "the velocity of joint" in end.sentence


def test_a_canceled_goal_brakes_and_then_ends(arm):
    """The reference has no jump; the outcome comes when it rests, far from the goal."""
    bench = Bench(arm)
    bench.ask(q=(1.4, 0.2), times=(1.0,))
    bench.run(0.3)
    before = bench.controller.reference
    assert abs(before.qd[0]) > 0.5
    assert bench.tracker.cancel("first")
    assert bench.step() == []
    after = bench.controller.reference
    assert np.abs(after.q - before.q).max() < 2 * PERIOD * np.abs(before.qd).max()
    assert np.abs(after.qd - before.qd).max() <= 1.01 * PERIOD * 10.0
    end = bench.outcome()
    assert (end.state, end.code) == ("canceled", GoalCode.SUCCESSFUL)
    assert _resting(bench)
    assert bench.controller.reference.q[0] < 1.0
    assert not bench.tracker.cancel("first")


def test_a_goal_that_waits_is_canceled_alone(arm):
    """What runs runs on and succeeds."""
    bench = Bench(arm)
    bench.ask("first")
    bench.ask("second", wait=1.0, q=(0.0, 0.3))
    assert bench.tracker.cancel("second")
    (end,) = bench.step()
    assert (end.goal, end.state) == ("second", "canceled")
    end = bench.outcome()
    assert (end.goal, end.state) == ("first", "succeeded")
    assert np.allclose(bench.controller.reference.q, (0.4, 0.0))


@pytest.mark.parametrize("before", ["canceled", "aborted on the path", "late"])
def test_a_goal_that_waits_says_what_ended_it(arm, before):
    """It was to begin after one that did not come to its end."""
    first = arm.joint_names[0]
    tolerance = {"goal": {first: 0.01}, "goal_time": 0.1}
    if before == "aborted on the path":
        tolerance = {"trajectory": {first: 0.01}}
    bench = Bench(arm, **tolerance)
    bench.ask("first")
    bench.ask("second", wait=1.0, q=(0.0, 0.3))
    bench.run(0.2)
    if before == "canceled":
        bench.tracker.cancel("first")
    else:
        bench.off = np.array([0.05, 0.0])
    ends = {end.goal: end for end in bench.run(0.7)}
    second = ends["second"]
    assert (second.state, second.code) == ("aborted", GoalCode.INVALID_GOAL)
    if before == "canceled":
        assert second.sentence == "the trajectory before it was canceled"
    else:
        assert ends["first"].state == "aborted"
        why = f"the trajectory before it was aborted: {ends['first'].sentence}"
        assert second.sentence == why
        assert f"joint '{first}' is off by 0.05; tolerance 0.01" in why


def test_a_command_is_stale_after_its_time(arm):
    """The robot then holds where it is, once; the listeners hear it in a sentence."""
    bench, heard = Bench(arm), []
    bench.controller.listeners.append(lambda path, said: heard.append(said))
    bench.tracker.cmd_timeout = 0.5
    bench.ask()
    bench.off = np.array([0.02, -0.01])
    assert bench.outcome(0.6).state == "succeeded"
    assert heard == ["reached"]
    bench.run(0.3)
    np.testing.assert_array_equal(bench.controller.reference.q, [0.4, 0.0])
    assert bench.run(0.2) == []
    np.testing.assert_allclose(bench.controller.reference.q, [0.38, 0.01])
    (said,) = heard[1:]
    assert "no trajectory for 0.5" in said
    assert "(cmd_timeout 0.5 s): the robot holds where it is" in said
    bench.off = np.zeros(2)
    bench.run(1.0)
    assert len(heard) == 2
    assert _resting(bench)


def test_a_stale_command_ends_its_goal(arm):
    """One that may take any time; one with a goal_time of its own is waited for."""
    first = arm.joint_names[0]
    bench = Bench(arm, goal={first: 0.01})
    bench.tracker.cmd_timeout = 0.2
    bench.off = np.array([0.05, 0.0])
    bench.ask()
    end = bench.outcome(0.8)
    assert end.code == GoalCode.GOAL_TOLERANCE_VIOLATED
    assert "was not reached: no trajectory for 0.2" in end.sentence
    longer = bench.tracker.tolerances.overridden(goal_time=0.4)
    bench.off = np.array([0.05, 0.0])
    bench.ask("patient", q=(0.3, 0.1), tolerances=longer)
    bench.run(0.8)
    bench.off = np.zeros(2)
    (end,) = bench.run(0.1)
    assert (end.goal, end.state) == ("patient", "succeeded")


def test_a_trajectory_that_waits_keeps_the_command(arm):
    """What is to come, a stop and a new trajectory are no stale command."""
    bench, heard = Bench(arm), []
    bench.controller.listeners.append(lambda path, said: heard.append(said))
    bench.tracker.cmd_timeout = 0.2
    bench.run(0.5)  # nothing was commanded yet
    bench.ask()
    bench.ask("second", wait=1.5, q=(0.0, 0.3))
    ends = bench.run(2.05)
    assert [end.state for end in ends] == ["succeeded", "succeeded"]
    bench.controller.stop()
    bench.run(0.5)
    bench.ask("third", q=(0.1, 0.3))
    bench.run(0.6)
    bench.controller.estop(bench.t, "door open")
    bench.run(0.5)
    assert heard == ["reached"] * 3


@pytest.mark.parametrize(
    ("timeout", "goal_time"), [(1.0, 1.0), (0.5, 1.0), (-1.0, 0.0), (np.nan, 0.0)]
)
def test_a_timeout_exceeds_the_time_of_goals(timeout, goal_time):
    """Else a goal that may still be reached would be stale."""
    message = "cmd_timeout is .*; valid: 0 .*more than constraints.goal_time"
    with pytest.raises(dyn.SettingError, match=message):
        checked_timeout(timeout, goal_time)
    assert checked_timeout(0.0, 9.0) == 0.0
    assert checked_timeout(1.1, 1.0) == 1.1


def test_a_newer_goal_ends_an_older_one_when_it_takes_over(arm):
    """At once, or at its start; one that waited is ended by one that comes later."""
    bench = Bench(arm)
    bench.ask("first")
    bench.run(0.2)
    bench.ask("second", q=(0.0, 0.3))
    (end,) = bench.step()
    assert end[:3] == ("first", "aborted", GoalCode.INVALID_GOAL)
    assert end.sentence == "another trajectory has taken over"
    bench.ask("third", wait=0.2, q=(0.1, 0.1))
    bench.ask("fourth", wait=0.15, q=(0.1, 0.2))
    (end,) = bench.step()
    assert end.goal == "third"
    ends = bench.run(1.0)
    assert [(x.goal, x.state) for x in ends] == [
        ("second", "aborted"), ("fourth", "succeeded"),
    ]  # fmt: skip
    bench.ask("fifth", wait=0.6, q=(0.3, 0.3))  # the sixth ends before it begins
    bench.ask("sixth", q=(0.0, 0.0))
    ends = bench.run(1.4)
    assert [(x.goal, x.state) for x in ends] == [
        ("fifth", "aborted"), ("sixth", "succeeded"),
    ]  # fmt: skip


def test_a_trajectory_of_the_topic_ends_a_goal(arm):
    """As a newer goal does."""
    bench = Bench(arm)
    bench.ask()
    bench.run(0.2)
    other = bench.controller.make_trajectory(*bench.rows(q=(0.0, 0.1))[:3])
    bench.controller.follow(other, bench.t)
    (end,) = bench.step()
    assert "another trajectory has taken over" in end.sentence


@pytest.mark.parametrize("by", ["goal", "goal a cycle before", "topic"])
def test_a_goal_that_never_began_does_not_succeed(arm, by):
    """It is superseded, though the reference rests where it would have ended."""
    bench = Bench(arm)
    bench.ask("there", q=(0.1, 0.2))
    assert bench.outcome().state == "succeeded"
    bench.ask("round trip", wait=0.295, q=(0.1, 0.2))
    if by == "topic":
        other = bench.controller.make_trajectory(*bench.rows()[:3])
        bench.controller.follow(other, bench.t + 2.0)
    else:
        if by == "goal a cycle before":
            assert bench.run(0.285) == []  # it begins before the next cycle
        bench.ask("newer", wait=2.0)
    (end,) = bench.step()
    assert end[:3] == ("round trip", "aborted", GoalCode.INVALID_GOAL)
    if by == "topic":
        assert end.sentence == "the trajectory was replaced or stopped"
    else:
        assert end.sentence == "another trajectory has taken over"


@pytest.mark.parametrize("state", ["running", "reached"])
@pytest.mark.parametrize(
    "fault", ["estop", "jump", "disabled", "reset", "stop", "back"]
)
def test_what_stops_the_controller_ends_its_goal(arm, fault, state):
    """The sentence says what it was, before the end of the trajectory and after it."""
    bench = Bench(arm, goal={arm.joint_names[0]: 1e-3})
    bench.off = np.array([0.05, 0.0])  # never at its goal
    bench.ask()
    bench.run(0.2 if state == "running" else 0.8)
    controller = bench.controller
    if fault == "estop":
        controller.estop(bench.t, "door open")
    elif fault == "jump":
        bench.off = np.array([0.6, 0.0])
    elif fault == "disabled":
        controller.enabled = False
    elif fault == "reset":
        controller.reset()
    elif fault == "stop":
        controller.stop()
    else:
        controller.update(bench.t, (0.1, 0.2), (0.0, 0.0), 2.0)
        controller.update(bench.t, (0.1, 0.2), (0.0, 0.0), 1.0)
    ends = bench.run(0.05)
    (end,) = ends
    assert (end.state, end.code) == ("aborted", GoalCode.INVALID_GOAL)
    expected = {
        "estop": "stopped: door open", "jump": "position jumped",
        "disabled": "disabled", "reset": "replaced or stopped",
        "stop": "stopped", "back": "time went back",
    }  # fmt: skip
    assert expected[fault] in end.sentence


def test_silence_ends_a_goal(arm):
    """The tracker is asked by the watchdog, too; a goal that brakes ends as canceled."""
    for canceled in (False, True):
        bench = Bench(arm)
        bench.ask(q=(1.4, 0.2), times=(1.0,))
        bench.run(0.3)
        if canceled:
            bench.tracker.cancel("first")
        ends = [end for _ in range(12) for end in bench.step(moving=False)]
        (end,) = ends
        assert end.state == ("canceled" if canceled else "aborted")
        assert "the joint state is stale" in end.sentence


def test_all_goals_end_with_the_controller(arm):
    """As at a deactivation; the reference brakes."""
    bench = Bench(arm)
    bench.ask(q=(1.4, 0.2), times=(1.0,))
    bench.run(0.3)
    (end,) = bench.tracker.end_all("deactivated")
    assert (end.state, end.sentence) == ("aborted", "deactivated")
    bench.run(0.5)
    assert _resting(bench)
    assert bench.tracker.end_all("deactivated") == []


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"names": ("joint1",)}, GoalCode.INVALID_JOINTS, "allow_partial_joints_goal"),
        ({"names": ("a", "b")}, GoalCode.INVALID_JOINTS, "no joint is called 'a'"),
        ({"names": ()}, GoalCode.INVALID_JOINTS, "no joint_names"),
        ({"names": 2}, GoalCode.INVALID_JOINTS, "more than once"),
        ({"times": (0.5, 0.5)}, GoalCode.INVALID_GOAL, "times must be"),
        ({"q": (99.0, 0.0)}, GoalCode.INVALID_GOAL, "velocity limit|limits"),
        ({"q": (np.nan, 0.0)}, GoalCode.INVALID_GOAL, "not finite"),
        ({"wait": -0.6}, GoalCode.OLD_HEADER_TIMESTAMP, "ended 0.100 s ago"),
        ({"effort": [[1.0]]}, GoalCode.INVALID_GOAL, "has 1 efforts; needs 2"),
    ],
)
def test_what_cannot_be_a_goal_is_refused_with_its_code(arm, change, code, message):
    """In a sentence; the robot does what it did."""
    bench = Bench(arm)
    change = dict(change)
    wait = change.pop("wait", 0.0)
    first = arm.joint_names[0]
    if change.get("names") == ("joint1",):
        change |= {"names": (first,), "q": (0.1,)}
    elif change.get("names") == 2:
        change["names"] = (first, first)
    elif change.get("names") == ():
        change["q"] = ()
    with pytest.raises(dyn.errors.GoalError, match=message) as refused:
        goal_trajectory(bench.controller, bench.rows(**change), wait)
    assert refused.value.code == code
    assert pickle.loads(pickle.dumps(refused.value)).code == code


def test_a_goal_that_the_controller_cannot_follow_is_refused(arm):
    """No state yet, or disabled."""
    bench = Bench(arm)
    made = goal_trajectory(bench.controller, bench.rows())
    bench.controller.enabled = False
    with pytest.raises(dyn.errors.GoalError, match="disabled; valid: enable"):
        bench.tracker.accept("first", made, bench.t)
    assert not bench.tracker.tracked
    bench.controller.reset()
    with pytest.raises(dyn.errors.GoalError, match="no state has been received"):
        goal_trajectory(bench.controller, bench.rows(), partial=True)


def test_joints_that_a_goal_lacks_keep_their_position(arm):
    """Also one that still moves when the trajectory starts; efforts are zero."""
    first, second = arm.joint_names
    bench = Bench(arm)
    rows = bench.rows(q=(0.5,), names=(second,), effort=[[3.0]])
    made = goal_trajectory(bench.controller, rows, partial=True)
    assert made.q.tolist() == [[0.1, 0.5]]
    assert made.effort.tolist() == [[0.0, 3.0]]
    bench.tracker.accept("first", made, bench.t)
    for _ in range(60):
        ends = bench.step()
        assert bench.controller.reference.q[0] == 0.1
        if ends:
            break
    assert ends[0].state == "succeeded"
    assert bench.controller.reference.q[1] == 0.5
    bench.ask("second", q=(0.9, 0.5))
    made = goal_trajectory(bench.controller, rows, wait=0.25, partial=True)
    follower = bench.controller.follower
    expected = follower.running.sample(bench.t + 0.25).q[0]
    assert 0.2 < expected < 0.8
    assert made.q[0, 0] == pytest.approx(expected, abs=1e-9)


def test_rows_of_all_joints_stay_as_they_are(arm):
    """Points without velocities get none for the joints that are added."""
    rows = TrajectoryRows(["b"], np.array([1.0, 2.0]), [[0.1], [0.2]])
    made = with_missing_joints(rows, ("a", "b"), np.array([5.0, 6.0]))
    assert made.names == ["b", "a"]
    assert made.positions.tolist() == [[0.1, 5.0], [0.2, 5.0]]
    assert made.velocities.size == made.accelerations.size == made.effort.size == 0
    assert with_missing_joints(made, ("a", "b"), np.zeros(2)) is made


def test_codes_are_those_of_the_action():
    """control_msgs/action/FollowJointTrajectory."""
    assert [int(code) for code in GoalCode] == [0, -1, -2, -3, -4, -5]


# The thin layer of the action, with messages and handles as rclpy has them


def _time(seconds):
    return SimpleNamespace(
        sec=int(seconds // 1), nanosec=round((seconds - seconds // 1) * 1e9)
    )


def _point(q=(), seconds=0.0, **more):
    fields = {"positions": list(q), "velocities": [], "accelerations": [], "effort": []}
    return SimpleNamespace(time_from_start=_time(seconds), **{**fields, **more})


def _request(names, q, seconds=0.5, stamp=0.0, **more):
    still = [0.0] * len(q)
    point = _point(q, seconds, velocities=still, accelerations=still)
    message = SimpleNamespace(
        header=SimpleNamespace(stamp=_time(stamp)),
        joint_names=list(names),
        points=[point],
    )
    rest = {"path_tolerance": [], "goal_tolerance": []}
    return SimpleNamespace(
        **{"trajectory": message, "goal_time_tolerance": _time(0), **rest, **more}
    )


class Handle:
    """A handle that takes what rclpy's ServerGoalHandle takes in its states."""

    number = 0

    def __init__(self, request):
        Handle.number += 1
        self.request, self.state = request, "accepted"
        self.goal_id = SimpleNamespace(uuid=np.array([Handle.number], np.uint8))
        self.results, self.feedback = [], []

    __hash__ = None  # as rclpy's

    @property
    def is_cancel_requested(self):
        return self.state == "canceling"

    def execute(self):
        assert self.state == "accepted"
        self.state = "executing"

    def succeed(self):
        assert self.state in ("executing", "canceling")
        self.state = "succeeded"

    def abort(self):
        assert self.state in ("executing", "canceling")
        self.state = "aborted"

    def canceled(self):
        assert self.state == "canceling"
        self.state = "canceled"

    def publish_feedback(self, message):
        self.feedback.append(message)


class Action:
    """The parts of FollowJointTrajectory."""

    Result = SimpleNamespace

    def Feedback():
        return SimpleNamespace(
            header=SimpleNamespace(), desired=_point(), actual=_point(), error=_point()
        )


class Serving:
    """A GoalService beside a Bench; what is to be prepared waits."""

    def __init__(self, model, **settings):
        self.bench = Bench(model)
        self.jobs = []
        self.service = GoalService(
            self.bench.tracker,
            Action,
            wall=lambda: 1000.0 + self.bench.t,
            now=lambda: self.bench.t,
            settings=lambda: settings,
            finish=lambda handle, result: handle.results.append(result),
            prepare=lambda *job: self.jobs.append(job),
        )

    def send(self, *request, prepared=True, **more):
        handle = Handle(_request(*request, **more))
        self.service.accept(handle)
        if prepared:
            self.prepare()
        return handle

    def prepare(self):
        for compute, follow in self.jobs:
            try:
                made = compute()
            except dyn.DynError as error:
                made = error
            follow(made)
        self.jobs.clear()

    def run(self, seconds):
        while seconds > 0:
            self.service.ending += self.bench.step()
            self.service.deliver()
            seconds -= PERIOD


def test_a_goal_over_messages(arm):
    """Followed from its stamp, with feedback and the result of success."""
    served = Serving(arm)
    first, second = arm.joint_names
    handle = served.send((second, first), (0.5, 0.3), stamp=1000.2)
    assert handle.state == "executing"
    served.run(0.4)
    served.service.report("now")
    (feedback,) = handle.feedback
    assert feedback.header.stamp == "now"
    assert feedback.joint_names == [first, second]
    assert 0.1 < feedback.desired.positions[0] < 0.3
    assert feedback.error.positions == [0.0, 0.0]
    assert feedback.actual.positions == feedback.desired.positions
    since = feedback.desired.time_from_start
    assert since.sec == 0 and since.nanosec == pytest.approx(0.2e9, abs=3e7)
    served.run(0.25)
    assert handle.state == "executing"
    served.run(0.1)
    assert handle.state == "succeeded"
    (result,) = handle.results
    assert (result.error_code, result.error_string) == (0, "the goal is reached")
    assert served.service.counters == {"goal succeeded": 1}
    assert np.allclose(served.bench.controller.reference.q, (0.3, 0.5))
    assert served.service.handles == {}


def _tolerance(name, *numbers):
    parts = ("position", "velocity", "acceleration")
    return SimpleNamespace(name=name, **dict(zip(parts, numbers, strict=True)))


def test_refused_goals_are_aborted_with_code_and_sentence(arm):
    """Each of a wrong message; tolerances of the message count."""
    served = Serving(arm)
    first, second = names = arm.joint_names
    cases = [
        (((first,), (0.1,)), {}, -2, "is missing; valid: all joints"),
        ((("x", second), (0.1, 0.1)), {}, -2, "no joint is called 'x'"),
        ((names, (0.1, 0.1)), {"stamp": 999.0}, -3, "the trajectory ended 0.5"),
        ((names, (0.1, 50.0)), {}, -1, "limit"),
        ((names, (0.1, np.nan)), {}, -1, "not finite"),
        ((names, (0.1, 0.1)), {"goal_time_tolerance": _time(-2)}, -1, "is -2.0"),
        (
            (names, (0.1, 0.1)),
            {"goal_tolerance": [_tolerance("x", 0.1, 0.0, 0.0)]}, -1, "no joint",
        ),
    ]  # fmt: skip
    multi = SimpleNamespace(joint_names=["base"], points=[])
    cases += [
        ((names, (0.1, 0.1)), {"multi_dof_trajectory": multi}, -1, "is not followed"),
        ((names, (0.1, 0.1)), {"component_goal_tolerance": [1]}, -1, "is not checked"),
    ]
    for request, more, code, sentence in cases:
        handle = served.send(*request, **more)
        assert handle.state == "aborted"
        (result,) = handle.results
        assert result.error_code == code, sentence
        assert sentence in result.error_string
    empty = SimpleNamespace(joint_names=[], points=[])
    more = {"multi_dof_trajectory": empty, "component_path_tolerance": []}
    assert served.send(names, (0.1, 0.1), **more).state == "executing"
    ragged = _request(names, (0.1, 0.1))
    ragged.trajectory.points.append(_point((0.1,), 0.9))
    handle = Handle(ragged)
    served.service.accept(handle)
    served.prepare()
    assert handle.results[0].error_code == -1
    served.service.refusal = lambda: "the controller is not active"
    handle = served.send(names, (0.1, 0.1))
    assert handle.results[0].error_string == "the controller is not active"
    served.service.refusal = lambda: None
    handle = served.send(
        names, (0.4, 0.4), path_tolerance=[_tolerance(second, 0.05, 0.0, 0.0)]
    )
    served.bench.off = np.array([0.0, 0.1])
    served.run(0.1)
    assert (handle.state, handle.results[0].error_code) == ("aborted", -4)


def test_canceled_goals_over_messages(arm):
    """While it runs, and before it was prepared; ended once the server marks it."""
    served = Serving(arm)
    names = arm.joint_names
    handle = served.send(names, (1.2, 0.2), seconds=1.0)
    served.run(0.3)
    assert served.service.cancel(handle)
    served.run(0.5)  # the server has not marked it yet
    assert handle.state == "executing"
    handle.state = "canceling"
    served.run(0.02)
    assert handle.state == "canceled"
    assert "brakes and holds" in handle.results[0].error_string
    assert not served.service.cancel(handle)
    handle = served.send(names, (1.2, 0.2), seconds=1.0, prepared=False)
    assert served.service.cancel(handle)
    handle.state = "canceling"
    served.prepare()
    assert handle.state == "canceled"
    assert served.bench.controller.trajectory is None
    handle = served.send(names, (1.2, 0.2), seconds=1.0)
    served.service.end_all("the controller was deactivated")
    assert handle.results[0].error_string == "the controller was deactivated"


@pytest.mark.parametrize("place", ["settings", "prepare", "accept"])
def test_the_code_of_a_foreign_error_is_no_code_of_a_goal(arm, place):
    """A 404 of a mesh server is none of the action's: the goal ends as invalid."""

    def fails(*_):
        raise HTTPError("http://meshes/arm.stl", 404, "Not Found", {}, None)

    served = Serving(arm)
    owner = served.bench.tracker if place == "accept" else served.service
    setattr(owner, place, fails)
    handle = served.send(arm.joint_names, (0.1, 0.1))
    assert handle.state == "aborted"
    (result,) = handle.results
    assert result.error_code == GoalCode.INVALID_GOAL
    assert result.error_string == "HTTPError: HTTP Error 404: Not Found"
    assert served.service.handles == {}


def test_a_partial_goal_over_messages(arm):
    """With allow_partial_joints_goal."""
    served = Serving(arm, partial=True)
    handle = served.send(arm.joint_names[1:], (0.5,))
    served.run(0.6)
    assert handle.state == "succeeded"
    assert served.bench.controller.reference.q.tolist() == [0.1, 0.5]


def test_tolerances_of_parameters(arm):
    """The tables set what a controller checks; values that are being set count."""
    names = arm.joint_names
    fields = {f.name: f.default for f in (*GOALS, *constraint_fields(names))}
    made = tolerances(names, fields.__getitem__)
    assert made.goal_velocity.tolist() == [0.01, 0.01]
    assert not made.goal_position.any() and not made.path_position.any()
    changed = {f"constraints.{names[1]}.goal": 0.2, "constraints.goal_time": 3.0}
    made = tolerances(names, fields.__getitem__, changed)
    assert made.goal_position.tolist() == [0.0, 0.2]
    assert made.goal_time == 3.0


@pytest.fixture
def action():
    """The module of the action's server."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    from ros_nodes.controller import trajectory_action

    return trajectory_action


def test_a_result_is_sent_at_the_end_of_a_goal(action):
    """A goal starts no task of the executor; its end starts one, that of rclpy."""
    tasks, uuid = [], np.arange(16, dtype=np.uint8)
    executor = SimpleNamespace(create_task=lambda *task: tasks.append(task))
    server = object.__new__(action.CycleActionServer)
    server._node = SimpleNamespace(executor=executor)
    server._execute_callback, server._logger = print, MagicMock()
    services = SimpleNamespace(Response=SimpleNamespace)
    server._action_type = SimpleNamespace(
        Impl=SimpleNamespace(GetResultService=services)
    )
    answers = []
    server._result_futures = {bytes(uuid): SimpleNamespace(set_result=answers.append)}
    handle = SimpleNamespace(
        goal_id=SimpleNamespace(uuid=uuid), is_active=False, status=4
    )
    server.notify_execute(handle, None)
    assert tasks == []
    server.send_result(handle, "result")
    ((run, callback, goal),) = tasks
    with pytest.raises(StopIteration):
        run(callback, goal).send(None)
    (answer,) = answers
    assert (answer.status, answer.result) == (4, "result")


def test_the_server_hands_goals_to_the_node(action, monkeypatch):
    """To the goals that the node has when they come; rclpy takes what it is made of."""
    from rclpy.action import ActionServer, CancelResponse

    signature = inspect.signature(ActionServer.__init__)
    made = []
    monkeypatch.setattr(
        ActionServer,
        "__init__",
        lambda *args, **kwargs: made.append(signature.bind(*args, **kwargs).arguments),
    )
    callbacks = SimpleNamespace(attempt=lambda job, *inputs: job(*inputs))
    node = SimpleNamespace(goals=None, callbacks=callbacks)
    action.make_server(node, Action)
    (given_to,) = made
    assert given_to["action_name"] == "~/follow_joint_trajectory"
    assert given_to["action_type"] is Action
    for known in (True, False):
        service = MagicMock()
        service.cancel.return_value = known
        node.goals = SimpleNamespace(service=service)
        given_to["handle_accepted_callback"]("goal")
        service.accept.assert_called_once_with("goal")
        wanted = CancelResponse.ACCEPT if known else CancelResponse.REJECT
        assert given_to["cancel_callback"]("goal") == wanted
