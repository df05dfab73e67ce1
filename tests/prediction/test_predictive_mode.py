"""Mode predictive of the controller: plans within limits, late and failed plans, targets."""

import gc
import threading
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Controller, Rules
from dyn_core.prediction.predictive_law import Planner, PredictiveLaw

CYCLE = 2e-3
SETTINGS = {
    "predictive.replan_rate": 20.0,
    "predictive.horizon": 1.0,
    "predictive.knots": 25,
    "predictive.posture_weight": [10.0],
    "predictive.velocity_weight": [0.1],
    "predictive.effort_weight": [1e-3],
}
LIFT = {
    **SETTINGS,
    "predictive.horizon": 2.0,
    "predictive.knots": 50,
    "predictive.posture_weight": [0.1],
    "predictive.velocity_weight": [0.0],
    "predictive.effort_weight": [1e-2],
    "predictive.end_factor": 500.0,
    "predictive.iterations": 20,
}


def never(planner, job):
    """Begin a plan that does not end."""
    planner.busy = True


@pytest.fixture(autouse=True)
def without_thread(monkeypatch):
    """A plan is ready in the cycle in which it is started, so that runs repeat."""
    monkeypatch.setattr(PredictiveLaw, "threaded", False)


def controller(model, settings=None, **more):
    """Return a controller in mode predictive without bounds on states."""
    choices = {"rules": Rules(good_samples=1), "bounds": None, "state_bounds": None}
    choices |= {"kp": 20.0, "kd": 2.0, "effort_slew": 1e9, "mode": "predictive"}
    choices["parameters"] = SETTINGS if settings is None else settings
    return Controller(model, **{**choices, **more})


class Loop:
    """A simulated robot in a loop with a controller."""

    def __init__(self, model, q, made):
        self.model, self.made, self.t = model, made, 0.0
        self.q, self.qd = np.array(q, float), np.zeros(model.nv)
        build = dyn.solver("semi_implicit_euler").build
        self.step = build(model, joint_friction=True, joint_springs=True)

    def run(self, seconds):
        """Advance; return the efforts of all cycles."""
        efforts = []
        for _ in range(round(seconds / CYCLE)):
            efforts.append(self.made.update(self.t, self.q, self.qd))
            self.q, self.qd = self.step(self.q, self.qd, efforts[-1], CYCLE)
            self.t += CYCLE
        return np.array(efforts)

    def send(self, topic, values, frame="", stamp=None):
        self.made.receive(topic, self.t, values, frame, stamp)


@pytest.fixture(scope="module")
def pendulum():
    """Return a pendulum that stands at q = 0, and its largest weight."""
    model = dyn.load("cart_pole").lock({"slide": 0.0})
    weight = dyn.solver("gravity").build(model)
    return model, max(abs(weight([a])[0]) for a in np.linspace(0.0, 3.0, 50))


def test_it_lifts_what_its_motor_cannot_hold_on_the_way(pendulum):
    """Half the largest weight is enough for a plan, which swings first."""
    model, weight = pendulum
    limits = {"hinge": 0.5 * weight}
    loop = Loop(model, [np.pi], controller(model, LIFT, effort_limits=limits))
    loop.run(0.2)
    loop.send("target_posture", [0.0])
    efforts = loop.run(4.0)
    assert abs(efforts).max() <= 0.5 * weight
    np.testing.assert_allclose([*loop.q, *loop.qd], 0.0, atol=1e-2)
    assert loop.made.stopped is None
    # Computed torque hangs where the weight equals the limit.
    plain = controller(model, {}, mode="computed_torque", effort_limits=limits)
    other = Loop(model, [np.pi], plain)
    other.run(0.1)
    path = plain.make_trajectory(["hinge"], [0.1, 2.0], [[np.pi], [0.0]])
    plain.follow(path, other.t)
    other.run(4.0)
    assert abs(other.q[0]) > 1.5


def test_it_leads_joints_and_tool_to_their_targets():
    """The tool's target counts by its weight; a posture alone is met exactly."""
    model = dyn.load("two_link")
    loop = Loop(model, [0.1, 0.2], controller(model))
    loop.run(0.1)
    np.testing.assert_allclose(loop.q, [0.1, 0.2], atol=1e-3)  # held until a target
    loop.send("target_posture", [0.8, -0.6])
    loop.run(2.0)
    np.testing.assert_allclose(loop.q, [0.8, -0.6], atol=1e-3)
    tool = model.frame_names[-1]
    leads = {
        **SETTINGS,
        "predictive.frame": tool,
        "predictive.pose_weight": [0.0] * 3 + [1e4] * 3,
        "predictive.posture_weight": [1e-3],
    }
    loop = Loop(model, [0.4, 0.5], controller(model, leads))
    loop.run(0.1)
    pose = dyn.solver("forward_kinematics").build(model, frames=[tool])
    goal = np.asarray(pose(np.array([0.7, 0.9])))[0]
    loop.send("target_pose", [*goal[:3, 3], 0.0, 0.0, 0.0, 1.0])
    loop.run(2.0)
    reached = np.asarray(pose(loop.q))[0]
    np.testing.assert_allclose(reached[:3, 3], goal[:3, 3], atol=1e-3)


@pytest.mark.parametrize(("weight", "speed"), [(4.0, 1.1), (0.1, 4.0)])
def test_weights_and_limits_slow_a_large_step(weight, speed):
    """docs/optimal_control.md has the speeds; the limit of the robot is 4 rad/s."""
    settings = {**SETTINGS, "predictive.velocity_weight": [weight]}
    model = dyn.load("two_link")
    loop = Loop(model, [0.0, 0.0], controller(model, settings))
    loop.run(0.1)
    loop.send("target_posture", [0.8, -0.6])
    speeds = []
    for _ in range(400):
        loop.run(CYCLE)
        speeds.append(abs(loop.qd[1]))
    assert max(speeds) == pytest.approx(speed, abs=0.05)
    np.testing.assert_allclose(loop.q, [0.8, -0.6], atol=0.05 if weight < 1 else 0.3)


def test_a_robot_beyond_a_limit_is_led_back():
    """Its plans come back in the course of the horizon; none is dropped."""
    model = dyn.load("two_link")
    loop = Loop(model, [0.1, 0.2], controller(model))
    loop.run(0.1)
    loop.send("target_posture", [2.0, 0.2])
    loop.run(0.1)
    loop.qd = np.array([4.6, 0.0])  # a push
    speeds = []
    for _ in range(30):
        efforts = loop.run(0.02)
        assert not loop.made.control_law.refused and np.isfinite(efforts).all()
        speeds.append(abs(loop.qd[0]))
    assert loop.made.stopped is None and max(speeds) < 4.8 and speeds[-1] < 4.0


def test_a_stop_that_holds_forgets_the_target():
    """The next plan brakes where the robot is; after a reset it stays there."""
    model = dyn.load("two_link")
    made = controller(model, rules=Rules(good_samples=1, on_estop="hold"))
    loop = Loop(model, [0.1, 0.2], made)
    loop.run(0.1)
    loop.send("target_posture", [2.0, -2.0])
    loop.run(0.3)
    before = loop.q.copy()
    assert abs(loop.qd).max() > 1.0
    made.estop(loop.t)
    loop.run(2.0)
    assert made.stopped is not None
    np.testing.assert_allclose(loop.q, before, atol=0.05)
    made.reset_stop()
    loop.run(1.0)
    np.testing.assert_allclose(loop.q, before, atol=0.05)


def test_the_reference_is_the_state_of_the_plan():
    """It moves with the plan, and the error is its distance from the robot."""
    model = dyn.load("two_link")
    loop = Loop(model, [0.1, 0.2], controller(model))
    loop.run(0.1)
    np.testing.assert_allclose(loop.made.reference.q, [0.1, 0.2], atol=1e-3)
    loop.send("target_posture", [0.8, -0.6])
    loop.run(0.3)
    reference, (start, plan) = loop.made.reference, loop.made.control_law.followed
    part = (loop.t - CYCLE - start) / plan.dt
    k, q = int(part), loop.made.q
    planned = plan.q[k] + (part - k) * (plan.q[k + 1] - plan.q[k])
    np.testing.assert_allclose(reference.q, planned, atol=1e-9)
    assert reference.q[0] > 0.15 and reference.qd[0] > 0.1
    np.testing.assert_array_equal(loop.made.error, reference.q - q)


@pytest.mark.parametrize("pace", [0.2, 3.0])
def test_plans_run_by_the_clock_of_the_robot(pace):
    """A slow or fast simulation moves as one in time, and so do its plans."""
    model, ways = dyn.load("two_link"), []
    for each in (1.0, pace):
        loop = Loop(model, [0.1, 0.2], controller(model))
        update = loop.made.update
        loop.made.update = lambda t, q, qd, u=update, x=each: u(t / x, q, qd, now=t)
        loop.run(0.1)
        loop.send("target_posture", [0.8, -0.6])
        loop.run(0.3)
        ways.append([*loop.q, *loop.made.reference.q])
    np.testing.assert_allclose(ways[1], ways[0], atol=1e-12)


def test_a_stop_that_holds_needs_no_more_plans(monkeypatch):
    """The joint gains hold the robot where it is when the last plan becomes late."""
    model = dyn.load("two_link")
    made = controller(model, rules=Rules(good_samples=1, on_estop="hold"))
    loop = Loop(model, [0.1, 0.2], made)
    loop.run(0.1)
    loop.send("target_posture", [0.8, -0.6])
    loop.run(1.5)
    made.estop(loop.t)
    monkeypatch.setattr(Planner, "submit", never)
    loop.run(0.5)
    law = made.control_law
    assert made.stopped.kind == "hold" and law.followed is None
    np.testing.assert_allclose(made.reference.q, [0.8, -0.6], atol=0.01)
    loop.q = loop.q + 0.05  # a push
    efforts = loop.run(1.0)
    assert (efforts[0] < -0.1).all()  # towards the reference
    np.testing.assert_allclose(loop.q, made.reference.q, atol=0.02)  # friction


def test_an_answer_that_nobody_has_read_is_kept():
    """A job that ends between a look at the answer and the next job is not lost."""
    planner = Planner(lambda job: job, threaded=False)
    first, second = (SimpleNamespace(t=t, reason="") for t in (1.0, 2.0))
    planner.submit(first)
    planner._solve = lambda job: never(planner, job)
    planner._run = lambda job: None
    planner.submit(second)
    assert planner.answer == (1.0, first)


def test_robots_with_loops_or_prescribed_joints_are_refused():
    """By name of what they have."""
    tip = dyn.make_loop("tip", "axes", "link3", at_a={"xyz": (0.6, 0, 1.2)},
                        at_b={"xyz": (0.3, 0, 0)}, axes=("x", "z"))  # fmt: skip
    with pytest.raises(dyn.UnsupportedError, match="closed loops"):
        controller(dyn.load("planar3").with_loops(tip), {})
    turning = dyn.load("two_link")
    turning = turning.drive(
        turning.joint_names[0], lambda t: (None, (0.1 * t, 0.0, 0.0))
    )
    with pytest.raises(dyn.UnsupportedError, match="prescribed joints"):
        controller(turning, {})


def test_old_stamps_are_refused():
    """A pose as old as a state may not be, as in mode cartesian."""
    model = dyn.load("two_link")
    made = controller(
        model,
        {**SETTINGS, "predictive.frame": model.frame_names[-1]},
        rules=Rules(good_samples=1, max_state_age=0.2),
    )
    loop = Loop(model, [0.1, 0.2], made)
    loop.run(0.02)
    pose = [0.1, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0]
    with pytest.raises(dyn.errors.TargetError, match="0.300 s old; valid: at most 0.2"):
        made.receive("target_pose", loop.t, pose, "", 9.7, 10.0)
    with pytest.raises(dyn.errors.TargetError, match="length 2"):
        made.receive("target_pose", loop.t, [0, 0, 0, 0, 0, 0, 2.0])
    made.receive("target_pose", loop.t, pose, "", 9.9, 10.0)


def test_a_late_plan_is_followed_to_its_end_then_the_robot_stops(monkeypatch):
    """plan_timeout in periods of replan_rate; the stop says how old the plan is."""
    model = dyn.load("two_link")
    made = controller(model)
    loop = Loop(model, [0.1, 0.2], made)
    loop.run(0.1)
    monkeypatch.setattr(Planner, "submit", never)
    loop.run(0.2)
    assert made.stopped is None and made.control_law.status == "planning"
    loop.run(0.1)
    assert "the last plan is 0.25" in made.stopped.reason
    assert "valid: at most 0.25 s" in made.stopped.reason


@pytest.mark.parametrize("way", ["error", "nan", "diverged"])
def test_a_plan_that_fails_is_dropped(way, monkeypatch):
    """The one before goes on; the reason is a warning, then part of the stop."""
    model = dyn.load("two_link")
    made = controller(model)
    loop = Loop(model, [0.1, 0.2], made)
    loop.run(0.06)
    law, before = made.control_law, made.control_law.followed[1]
    good = law._planner._solve

    def bad(job):
        if way == "error":
            raise ZeroDivisionError("a weight is 0")
        result = good(job)
        if way == "nan":
            return replace(result, tau=np.nan * result.tau)
        return replace(result, reason="diverged: cost", detail="posture")

    monkeypatch.setattr(law._planner, "_solve", bad)
    efforts = loop.run(0.1)
    assert law.followed[1] is before and np.isfinite(efforts).all()
    why = {"error": "ZeroDivisionError: a weight is 0", "nan": "not finite",
           "diverged": "diverged: cost posture"}[way]  # fmt: skip
    assert why in law.warnings["plan"]
    efforts = loop.run(0.3)
    assert why in made.stopped.reason and np.isfinite(efforts).all()


def test_without_a_first_plan_the_joints_are_held_then_the_robot_stops(monkeypatch):
    """The gains hold until then."""
    monkeypatch.setattr(Planner, "submit", never)
    model = dyn.load("two_link")
    made = controller(model)
    loop = Loop(model, [0.1, 0.2], made)
    loop.run(1.9)
    assert made.control_law.status == "holding until the first plan"
    np.testing.assert_allclose(loop.q, [0.1, 0.2], atol=1e-3)
    loop.run(0.2)
    assert "no plan within 2 s" in made.stopped.reason


def test_targets_that_are_not_valid_are_refused():
    """The last valid one stays in force."""
    model = dyn.load("two_link")
    loop = Loop(model, [0.1, 0.2], controller(model))
    with pytest.raises(dyn.errors.TargetError, match="no target is followed"):
        loop.send("target_posture", [0.0, 0.0])
    loop.run(0.02)
    for values, why in (
        ([0.0], "2 finite numbers"),
        ([0.0, np.nan], "2 finite numbers"),
        ([9.0, 0.0], "9 for joint .*; valid: -3.1 to 3.1"),
    ):
        with pytest.raises(dyn.errors.TargetError, match=why):
            loop.send("target_posture", values)
    with pytest.raises(dyn.errors.TargetError, match="predictive.frame"):
        loop.send("target_pose", [0, 0, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(
        loop.made.control_law._goals["target_posture"], [0.1, 0.2]
    )


@pytest.mark.parametrize(
    ("settings", "more", "why"),
    [
        ({"predictive.knots": 1}, {}, "predictive.knots"),
        ({"predictive.posture_weight": [1.0] * 3}, {}, "3 numbers; valid: 1 or 2"),
        ({"predictive.frame": "hand"}, {}, "hand"),
        ({}, {"payload_link": "link2"}, "payload_link: mode predictive"),
        ({}, {"law_solver": "nothing"}, "nothing"),
    ],
)
def test_wrong_settings_are_refused(settings, more, why):
    """At configure, in words."""
    with pytest.raises(dyn.DynError, match=why):
        controller(dyn.load("two_link"), {**SETTINGS, **settings}, **more)


def test_plans_are_made_in_a_thread_that_ends_with_its_law(monkeypatch):
    """The cycle does not wait for it."""
    monkeypatch.setattr(PredictiveLaw, "threaded", True)
    model = dyn.load("two_link")
    made = controller(model)
    (thread,) = [x for x in threading.enumerate() if x.name == "dyn_planner"]
    made.update(0.0, [0.1, 0.2], [0.0, 0.0])
    planner = made.control_law._planner
    while planner.answer is None:
        thread.join(0.01)
    made.update(0.01, [0.1, 0.2], [0.0, 0.0])
    assert made.control_law.followed is not None
    gone = weakref.ref(planner)
    del made, planner
    gc.collect()
    assert gone() is None
    thread.join(10.0)
    assert not thread.is_alive()


def test_a_stop_that_holds_plans_at_once_and_follows_no_target():
    """Also where plans are rare; targets are refused until a reset."""
    model = dyn.load("two_link")
    rare = {**SETTINGS, "predictive.replan_rate": 2.0}
    made = controller(model, rare, rules=Rules(good_samples=1, on_estop="hold"))
    loop = Loop(model, [0.1, 0.2], made)
    loop.run(0.1)
    made.estop(loop.t)
    stopped = loop.t
    loop.run(2 * CYCLE)
    assert made.control_law.followed[0] >= stopped
    with pytest.raises(dyn.errors.TargetError, match="stopped: .*reset_stop"):
        loop.send("target_posture", [0.8, -0.6])


def test_a_plan_of_an_earlier_activation_is_not_followed():
    """The robot may stand elsewhere since."""
    model = dyn.load("two_link")
    made = controller(model)
    loop = Loop(model, [0.1, 0.2], made)
    loop.run(0.1)
    law, old = made.control_law, made.control_law.followed
    made.reset()
    loop.run(2 * CYCLE)
    late, _ = law.followed
    law._planner.answer = old
    loop.run(CYCLE)
    assert law.followed[0] >= late > old[0]


def test_the_guess_of_a_plan_is_the_one_before_moved_on():
    """By whole knots; its end is repeated."""
    model = dyn.load("two_link")
    made = controller(model)
    loop = Loop(model, [0.1, 0.2], made)
    loop.run(0.01)
    loop.send("target_posture", [0.8, -0.6])
    loop.run(0.13)
    law, guesses = made.control_law, []
    problem = law.plan

    def solve(q, qd, guess, targets):
        guesses.append(guess)
        return problem.solve(q, qd, guess, targets)

    law.plan = SimpleNamespace(solve=solve, problem=problem.problem)
    start, plan = law.followed
    law._due = loop.t
    loop.run(CYCLE)
    knots = round((law.followed[0] - start) / plan.dt)
    assert knots >= 1
    np.testing.assert_array_equal(guesses[0].q[:-knots], plan.q[knots:])
    np.testing.assert_array_equal(guesses[0].tau[-knots:], plan.tau[[-1] * knots])


def test_a_full_turn_of_a_continuous_joint_is_no_error(pendulum):
    """Drivers report angles between -pi and pi: the effort does not jump."""
    model, weight = pendulum
    made = controller(model, LIFT, effort_limits={"hinge": 2 * weight})
    loop = Loop(model, [3.1], made)
    loop.run(0.1)
    effort = made.control_law.torque(None)
    made.update(loop.t, loop.q - 2 * np.pi, loop.qd)
    np.testing.assert_allclose(made.control_law.torque(None), effort, atol=1e-3)


class Encoder(Loop):
    """A Loop whose robot reports angles between -pi and pi."""

    def __init__(self, start):
        settings = {**SETTINGS, "predictive.velocity_weight": [1.0]}
        rules = Rules(good_samples=1, on_estop="hold")
        made = controller(dyn.load_urdf(WHEEL), settings, rules=rules)
        super().__init__(made.model, [start, 0.0], made)

    def run(self, seconds):
        """Advance; return the positions of the wheel, of all cycles."""
        angles = []
        for _ in range(round(seconds / CYCLE)):
            seen = self.q - [2 * np.pi * np.round(self.q[0] / (2 * np.pi)), 0.0]
            tau = self.made.update(self.t, seen, self.qd)
            self.q, self.qd = self.step(self.q, self.qd, tau, CYCLE)
            self.t += CYCLE
            angles.append(self.q[0])
        return np.array(angles)


WHEEL = """<robot name="r"><link name="base"/>
  <link name="a"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="wheel" type="continuous"><parent link="base"/><child link="a"/>
    <axis xyz="0 0 1"/><limit effort="50" velocity="9"/></joint>
  <joint name="hinge" type="revolute"><parent link="a"/><child link="b"/>
    <axis xyz="0 0 1"/><limit lower="-3.1" upper="3.1" effort="50" velocity="9"/>
  </joint></robot>"""


@pytest.mark.parametrize(
    ("start", "target", "end"),
    [
        (-3.1, 3.1, 3.1 - 2 * np.pi),
        (3.0, -2.5, -2.5 + 2 * np.pi),
        (3.0, -15.0, -15.0 + 6 * np.pi),
        (-1.0, 1.0, 1.0),
    ],
)
def test_a_continuous_joint_goes_the_short_way(start, target, end):
    """As to the first point of a trajectory; a joint with limits goes between them."""
    loop = Encoder(start)
    loop.q[1] = -3.0
    loop.run(0.1)
    loop.send("target_posture", [target, 3.0])
    loop.run(0.7)
    loop.send("target_posture", [target, 3.0])  # again: nothing changes
    angles = loop.run(4.0)
    np.testing.assert_allclose(loop.q, [end, 3.0], atol=0.02)
    low, high = sorted((start, end))
    assert low - 0.5 < angles.min() and angles.max() < high + 0.5


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_stop_beyond_half_a_turn_holds_there(way):
    """The plan counts turns, the encoder does not: the target is that of the plan."""
    loop = Encoder(way * 2.9)
    loop.run(0.1)
    loop.send("target_posture", [way * (2.9 + 1.5), 0.0])
    loop.run(1.0)
    assert 3.2 < way * loop.q[0]
    before = loop.q[0]
    loop.made.estop(loop.t)
    angles = loop.run(2.0)
    np.testing.assert_allclose(angles, before, atol=0.3)


def test_a_plan_is_not_followed_beyond_its_end(monkeypatch):
    """However long predictive.plan_timeout is."""
    model = dyn.load("two_link")
    made = controller(model, {**SETTINGS, "predictive.plan_timeout": 1000.0})
    loop = Loop(model, [0.1, 0.2], made)
    loop.run(0.04)
    monkeypatch.setattr(Planner, "submit", never)
    loop.run(0.9)
    assert made.stopped is None
    loop.run(0.2)
    assert "valid: at most 1 s" in made.stopped.reason


def flooded():
    """Return a controller whose tool has a target, and what its planner plans for."""
    model = dyn.load("two_link")
    settings = {**SETTINGS, "predictive.frame": model.frame_names[-1]}
    loop = Loop(model, [0.1, 0.2], controller(model, settings))
    planner, jobs = loop.made.control_law._planner, []
    good = planner._solve
    planner._solve = lambda job: (jobs.append(job), good(job))[1]
    return loop, planner, jobs


def pose_at(x):
    return [x, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0]


def test_a_flood_of_targets_is_planned_for_at_the_replan_rate():
    """Two targets in each cycle of 2 ms: each plan leads to the newest one, in time."""
    loop, _, jobs = flooded()
    loop.run(0.1)
    jobs.clear()
    newest = {}
    for k in range(500):
        loop.send("target_pose", pose_at(1.0 + 2e-4 * k))
        loop.send("target_pose", pose_at(1.0 + 2e-4 * k + 1e-4))
        newest[loop.t] = 1.0 + 2e-4 * k + 1e-4
        efforts = loop.run(CYCLE)
        assert np.isfinite(efforts).all()
    assert 19 <= len(jobs) <= 21 and loop.made.stopped is None
    for job in jobs:
        for name in ("pose", "pose at the end"):
            assert job.targets[name][0] == newest[job.t]
    assert max(np.diff([job.t for job in jobs])) <= 1.0 / 20.0 + 1.5 * CYCLE


def test_targets_that_come_while_a_plan_is_made_do_not_queue(monkeypatch):
    """The cycle goes on; the plan after leads to the last of a thousand."""
    monkeypatch.setattr(PredictiveLaw, "threaded", True)
    loop, planner, jobs = flooded()
    good, started, ready, done = planner._solve, *(threading.Event() for _ in range(3))

    def slow(job):
        started.set()
        assert ready.wait(60.0)
        result = good(job)
        done.set()
        return result

    planner._solve = slow
    loop.run(CYCLE)
    assert started.wait(60.0)
    for k in range(500):
        loop.send("target_pose", pose_at(1.0 + 2e-4 * k))
        loop.send("target_pose", pose_at(1.0 + 2e-4 * k + 1e-4))
        loop.run(CYCLE)
    assert planner.busy and not jobs and loop.made.stopped is None
    ready.set()
    assert done.wait(60.0)
    thread = next(x for x in threading.enumerate() if x.name == "dyn_planner")
    while planner.busy:
        thread.join(0.001)
    done.clear()
    loop.run(CYCLE)
    assert done.wait(60.0) and len(jobs) == 2
    assert jobs[0].targets["pose"][0] != jobs[1].targets["pose"][0]
    assert jobs[1].targets["pose"][0] == pytest.approx(1.0999, abs=1e-12)
