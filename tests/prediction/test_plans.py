"""Plans: LQ problems, optimality, bounds, limits, gaps, refusals, many starts."""

import itertools
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import riccati_reference as reference
from scipy.optimize import minimize

import dyn_core as dyn
from dyn_core.authoring import sqrt
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import (
    DynError,
    NonFiniteError,
    SettingError,
    ShapeError,
    StateError,
    UnsupportedError,
)
from dyn_core.kinematics.poses import pose_matrices
from dyn_core.prediction import ControlProblem, Plan, PlanSolver, riccati
from dyn_core.prediction.result import PlanStart
from dyn_core.prediction.rollouts import PlanPath, Shooting
from dyn_core.prediction.shooting import Iteration, Penalty
from dyn_core.problems import OPTIMAL_CONTROL

cost = dyn.cost
DESCENT = ("box_fddp", "ilqr")


def slide():
    """Return a robot with one prismatic joint: its steps are linear."""
    text = """<robot name="slide"><link name="base"/>
    <link name="cart"><inertial><mass value="2"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="rail" type="prismatic"><parent link="base"/><child link="cart"/>
    <axis xyz="1 0 0"/><limit lower="-5" upper="5" velocity="100" effort="1000"/></joint>
    </robot>"""
    return dyn.load_urdf(text)


def swing(solver="box_fddp", **choices):
    """Return a plan that swings two links up, and its start."""
    model = dyn.load("two_link", gravity=(0.0, -9.81, 0.0))
    goal = [np.pi / 2, 0.0]
    costs = [
        cost.posture(goal, 20.0, when="end"),
        cost.velocity(2.0, when="end", name="end velocity"),
        cost.effort(1e-2),
    ]
    choices = {"duration": 1.5, "knots": 40, "limits": False, **choices}
    return dyn.plan(model, costs, solver=solver, **choices), [-np.pi / 2, 0.0]


@pytest.mark.parametrize("solver", DESCENT)
def test_a_linear_quadratic_problem_takes_one_iteration_and_is_riccatis(solver):
    """K and k obey the Riccati recursion; the second iteration changes none."""
    model, N, dt = slide(), 30, 0.05
    costs = [cost.posture(weight=3.0, when="always"), cost.effort(0.1)]
    plan = dyn.plan(
        model, costs, duration=N * dt, knots=N, solver=solver, limits=False,
        effort_limits={"rail": None},
    )  # fmt: skip
    result = plan.solve([1.0], [0.5])
    assert result.reason == "converged" and result.iterations <= 2
    A, B = np.array([[1.0, dt], [0.0, 1.0]]), np.array([[dt * dt], [dt]]) / 2.0
    Q, R, V = np.diag([3.0 * dt, 0.0]), np.array([[0.1 * dt]]), np.diag([3.0, 0.0])
    x = np.array([1.0, 0.5])
    gains = []
    for _ in range(N):
        gains.append(-np.linalg.solve(R + B.T @ V @ B, B.T @ V @ A))
        V = Q + A.T @ V @ (A + B @ gains[-1])
    np.testing.assert_allclose(result.value, x @ V @ x / 2, rtol=1e-12)
    for k, K in enumerate(reversed(gains)):
        np.testing.assert_allclose(result.gains[k], K, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(result.tau[k], K @ x, rtol=1e-9, atol=1e-12)
        x = A @ x + B @ result.tau[k]


def gradient(plan, start, tau):
    """Return the value of joint forces and its gradient by differences, bounds aside."""
    free = dict.fromkeys(plan.problem.model.joint_names)
    problem = replace(plan.problem, effort_limits=free)
    N, nv = tau.shape
    guess = np.tile(start, (N + 1, 1)), np.zeros((N + 1, nv)), tau
    first = PlanStart(np.array(start), np.zeros(nv), *guess, *problem.settings({}))
    units = 2e-6 * np.eye(tau.size).reshape(-1, N, nv)
    _, values = Shooting(problem).rollouts(
        first, np.concatenate([tau + units, tau - units, [tau]])
    )
    plus, minus = values[:-1].reshape(2, N, nv)
    return values[-1], (plus - minus) / 4e-6


@pytest.mark.parametrize("solver", DESCENT)
@pytest.mark.parametrize("bound", [None, 7.0])
def test_plans_are_optima_within_the_bounds(solver, bound):
    """The gradient by differences vanishes, or a bound holds it back: KKT."""
    plan, start = swing(solver)
    joint = plan.problem.model.joint_names[0]
    if bound is not None:
        plan, start = swing(solver, effort_limits={joint: bound})
    result = plan.solve(start, [0.0, 0.0])
    assert result.reason == "converged", result
    value, slopes = gradient(plan, start, result.tau)
    assert value == pytest.approx(result.value, rel=1e-12)
    bounds = plan.problem.bounds
    assert (result.tau >= bounds.tau_lower).all()
    assert (result.tau <= bounds.tau_upper).all()
    low, high = result.tau <= bounds.tau_lower, result.tau >= bounds.tau_upper
    free = ~low & ~high
    assert np.abs(slopes[free]).max() < 1e-6
    assert (slopes[low] > -1e-6).all() and (slopes[high] < 1e-6).all()
    assert result.residuals.stationarity < 1e-6
    assert result.residuals.gap < 1e-9
    if bound is not None:
        assert (low | high).any()
        assert (result.gains[low | high] == 0).all()
    else:
        assert np.abs(result.gains).max() > 0


def test_gaps_of_a_guess_of_states_close():
    """A straight line of states is a valid guess; both guesses reach the same optimum."""
    plan, start = swing()
    plain = plan.solve(start, [0.0, 0.0])
    line = np.linspace(start, [np.pi / 2, 0.0], 41)
    guess = plain.__class__(
        plain.model, plain.dt, line, np.zeros((41, 2)), np.zeros((40, 2)),
        plain.gains, 0.0, plain.residuals, 0, "stalled",
    )  # fmt: skip
    result = plan.solve(start, [0.0, 0.0], guess=guess)
    assert result.reason == "converged"
    assert result.residuals.gap < 1e-9
    assert result.residuals.stationarity < 1e-6
    step = dyn.solver("semi_implicit_euler").build(plan.problem.model)
    for k in range(40):
        q, qd = step(result.q[k], result.qd[k], result.tau[k], plan.problem.dt)
        np.testing.assert_allclose(result.q[k + 1], q, atol=1e-9)
        np.testing.assert_allclose(result.qd[k + 1], qd, atol=1e-8)


@pytest.mark.parametrize("name", ["two_link", "quadruped"])
def test_gaps_lead_from_a_state_to_the_end_of_the_step_before(name):
    """gap = step(x[k], tau[k]) (-) x[k+1]."""
    model, rng, N = dyn.load(name), np.random.default_rng(2), 3
    problem = ControlProblem(model, [cost.effort()], 0.3, N, limits=False)
    state, step = Iteration(problem), dyn.solver("semi_implicit_euler").build(model)
    q = np.array([model.random(rng) for _ in range(N + 1)])
    path = PlanPath(
        q, rng.normal(size=(N + 1, model.nv)), rng.normal(size=(N, model.nv))
    )
    start = PlanStart(q[0], path.qd[0], *path, *problem.settings({}))
    state.load(start, path)
    state.expand(Penalty(problem))
    for k in range(N):
        q_next, qd_next = step(q[k], path.qd[k], path.tau[k], problem.dt)
        wanted = *model.difference(q[k + 1], q_next), *(qd_next - path.qd[k + 1])
        np.testing.assert_allclose(state.model.gap[k + 1], wanted, atol=1e-9)
    assert not state.model.gap[0].any()


def test_a_warm_start_from_the_optimum_takes_no_iteration():
    plan, start = swing()
    first = plan.solve(start, [0.0, 0.0])
    again = plan.solve(start, [0.0, 0.0], guess=first)
    assert again.converged and again.iterations <= 1
    np.testing.assert_allclose(again.tau, first.tau, atol=1e-7)


def test_limits_of_position_and_velocity_hold():
    model = slide()
    slow = dyn.plan(
        model, [cost.posture([4.0], 10.0, when="always"), cost.effort(1e-4)],
        duration=2.0, knots=40,
    )  # fmt: skip
    object.__setattr__(slow.problem.bounds, "qd", np.array([2.0]))
    object.__setattr__(slow.problem.bounds, "q_upper", np.array([3.0]))
    plan = Plan(slow.problem)
    result = plan.solve([0.0], [0.0])
    assert result.reason == "converged"
    assert result.qd.max() < 2.0 + 1.01e-4 and result.qd.max() > 1.99
    assert result.q.max() < 3.0 + 1.01e-4 and result.q.max() > 2.99
    assert result.residuals.limit <= 1e-4


def test_limits_agree_with_a_solver_of_quadratic_programs():
    """Efforts and speeds at their limits: the optimum of SciPy's SLSQP, within 1e-4."""
    model, N, dt = slide(), 15, 0.1
    costs = [cost.posture([3.0], 10.0, when="always"), cost.effort(1e-2)]
    plan = dyn.plan(
        model, costs, duration=N * dt, knots=N, effort_limits={"rail": 12.0}
    )
    object.__setattr__(plan.problem.bounds, "qd", np.array([2.0]))
    result = plan.solve([0.0], [0.0])

    def states(tau):
        qd = np.cumsum(tau) * dt / 2.0
        return np.cumsum(qd) * dt, qd

    def value(tau):
        q = np.r_[0.0, states(tau)[0]] - 3.0
        running = 10.0 * q[:-1] ** 2 + 1e-2 * tau**2
        return (dt * running.sum() + 10.0 * q[-1] ** 2) / 2

    peer = minimize(
        value, np.zeros(N), method="SLSQP", bounds=[(-12.0, 12.0)] * N,
        constraints=[
            {"type": "ineq", "fun": lambda tau, sign=sign: 2.0 + sign * states(tau)[1]}
            for sign in (1.0, -1.0)
        ],
        options={"ftol": 1e-9, "maxiter": 1000},
    )  # fmt: skip
    assert peer.success and result.converged
    assert result.tau.max() == 12.0 and result.qd.max() == pytest.approx(2.0, abs=1e-4)
    assert value(result.tau[:, 0]) == pytest.approx(result.value, rel=1e-12)
    assert result.value == pytest.approx(peer.fun, rel=1e-4)
    np.testing.assert_allclose(result.tau[:, 0], peer.x, atol=1e-2)


def test_a_guess_without_limits_does_not_suspend_them():
    """Limits come from the problem; the guess gives multipliers alone."""
    model = dyn.load("two_link")
    far = [cost.posture([9.0, 0.0], 1e3, when="always"), cost.effort(1e-4)]
    free = {"effort_limits": dict.fromkeys(model.joint_names), "knots": 20}
    free["max_iterations"] = 1000
    beyond = dyn.plan(model, far, limits=False, **free).solve([0, 0], [0, 0])
    assert beyond.q.max() > 8.0
    result = dyn.plan(model, far, **free).solve([0, 0], [0, 0], guess=beyond)
    assert result.q[:, 0].max() == pytest.approx(model.upper[0], abs=1e-4)
    assert np.abs(result.qd).max() <= model.velocity_limit[0] + 1e-4
    assert result.residuals.limit <= 1e-4


def test_the_multipliers_of_a_guess_are_used_and_not_changed():
    model = slide()
    costs = [cost.posture([9.0], 10.0, when="always"), cost.effort(1e-4)]
    plan = dyn.plan(model, costs, duration=2.0, knots=20)
    first = plan.solve([0.0], [0.0])
    before = first.penalty.multipliers.copy()
    assert before.max() > 1.0
    again = plan.solve([0.0], [0.0], guess=first)
    assert again.converged and again.iterations < first.iterations / 2
    plan.solve([1.0], [0.0], guess=first)
    np.testing.assert_array_equal(first.penalty.multipliers, before)


def test_a_limit_that_the_motion_does_not_reach_costs_nothing():
    """Multipliers of a guess whose target was beyond the limit are not kept."""
    costs = [cost.posture([9.0], 10.0, when="always"), cost.effort(1e-4)]
    plan = dyn.plan(slide(), costs, duration=2.0, knots=20)
    beyond = plan.solve([0.0], [0.0])
    targets = {"posture": [4.9]}
    wanted = plan.solve([0.0], [0.0], targets=targets)
    result = plan.solve([0.0], [0.0], guess=beyond, targets=targets)
    assert result.value == pytest.approx(wanted.value, rel=1e-4)
    assert result.converged and wanted.residuals.limit <= 1e-4


def test_states_of_a_plan_are_starts():
    """Also of a plan from such a start: tolerances do not add up."""
    costs = [cost.posture([3.0, 1.5], 20.0, "always"), cost.velocity(0.1)]
    plan = dyn.plan(
        dyn.load("two_link"), [*costs, cost.effort(1e-4)], duration=0.5, knots=20
    )
    result, speed = plan.solve([0.0, 0.0], [0.0, 0.0]), 4.0
    assert result.converged and 1e-6 < result.residuals.limit <= 1e-4
    for q, qd in zip(result.q, result.qd, strict=True):
        plan.solve(q, qd, guess=result)
    again = result
    for _ in range(5):
        again = plan.solve(again.q[1], again.qd[1].clip(-speed, speed + 9e-5))
        assert np.abs(again.qd).max() <= speed + 1e-4
    with pytest.raises(StateError, match="beyond a limit: velocity of joint"):
        plan.solve([0.0, 0.0], [speed + 1.1e-4, 0.0])


@pytest.mark.parametrize("moved", [False, True])
def test_few_iterations_from_the_plan_before_are_enough(moved):
    """Also where the motion of the old joint forces from the new state diverges."""
    arm, q = dyn.load("arm7"), np.array([0.0, 0.2, 0.0, -1.5, 0.0, 1.5, 0.0])
    goal = [0.5, -0.2, 0.15, 1.0, 0.0, 0.0, 0.0]
    costs = [
        cost.pose("tool", goal, [100.0] * 3 + [1e4] * 3, when="end"),
        cost.velocity(10.0, when="end", name="rest"), cost.velocity(0.1),
        cost.effort(1e-3),
    ]  # fmt: skip
    first = dyn.plan(arm, costs, duration=1.5, effort_limits={"joint2": 35.0})
    few = dyn.plan(
        arm, costs, duration=1.5, effort_limits={"joint2": 35.0}, max_iterations=5
    )
    few.slack = np.inf
    result, sizes = first.solve(q, np.zeros(7)), []
    for _ in range(8):
        guess = result.moved_on() if moved else result
        assert len(guess.q) == len(result.q)
        np.testing.assert_array_equal(guess.tau[0], result.tau[int(moved)])
        result = few.solve(result.q[1], result.qd[1], guess=guess)
        assert np.isfinite(result.value)
        sizes.append(result.residuals.limit)
    assert max(sizes[-2:]) < (1e-2 if moved else 1.0)


@pytest.mark.parametrize("solver", [*DESCENT, "mppi"])
def test_a_search_that_diverges_warns_of_nothing(solver):
    """Trials overflow; what went wrong is said in the result, not by NumPy."""
    model = dyn.load("two_link")
    costs = [cost.posture([2.0, -1.0], 100.0, when="end"), cost.effort(1e-3),
             cost.velocity(10.0, when="end")]  # fmt: skip
    for duration in (20.0, 500.0):
        plan = dyn.plan(model, costs, duration=duration, knots=20, solver=solver)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = plan.solve([0.1, 0.2], [0.3, 0.0])
        said = f"steps are {duration / 20:g} s long" in result.detail
        assert said is not result.converged
    assert not result.converged


def test_limits_that_cannot_hold_are_named():
    """No effort within the bounds stops a cart that is too fast."""
    plan = dyn.plan(
        slide(), [cost.effort(1e-3)], duration=1.0, knots=20,
        effort_limits={"rail": 1.0}, max_iterations=2000,
    )  # fmt: skip
    result = plan.solve([4.0], [10.0])
    assert result.reason == "infeasible: limit"
    assert "upper limit of position of joint 'rail'" in result.detail


def test_a_cost_that_is_not_finite_is_a_reason():
    model = slide()
    plan = dyn.plan(model, [cost.posture([1e200], 1e200, when="always")])
    result = plan.solve([0.0], [0.0])
    assert result.reason == "diverged: cost"


@pytest.mark.parametrize(
    ("q", "qd", "error", "message"),
    [
        ([np.nan, 0.0], [0.0, 0.0], NonFiniteError, "q"),
        ([0.0, 0.0], [np.inf, 0.0], NonFiniteError, "qd"),
        ([0.0], [0.0, 0.0], ShapeError, "q"),
        ([9.0, 0.0], [0.0, 0.0], StateError, "beyond a limit: position of joint"),
        ([-9.0, 0.0], [0.0, 0.0], StateError, "beyond a limit: position of joint"),
        ([0.0, 0.0], [99.0, 0.0], StateError, "beyond a limit: velocity of joint"),
        ([0.0, 0.0], [-99.0, 0.0], StateError, "beyond a limit: velocity of joint"),
    ],
)
def test_a_start_that_is_invalid_is_refused(q, qd, error, message):
    model = dyn.load("two_link")
    plan = dyn.plan(model, [cost.effort()], knots=5, duration=0.1)
    with pytest.raises(error, match=message):
        plan.solve(q, qd)


@pytest.mark.parametrize(
    ("guess", "error", "message"),
    [
        (lambda: np.zeros((3, 2)), ShapeError, r"guess.*\(5, 2\).*\(3, 2\)"),
        (lambda: np.zeros(2), ShapeError, "guess"),
        (lambda: np.full((5, 2), np.nan), NonFiniteError, "guess"),
        (lambda: other_plan("cart_pole", 5), SettingError, "robot 'cart_pole'"),
        (lambda: other_plan("two_link", 4), ShapeError, "5 knots"),
    ],
)
def test_a_guess_that_is_invalid_is_refused(guess, error, message):
    model = dyn.load("two_link")
    plan = dyn.plan(model, [cost.effort()], knots=5, duration=0.1)
    with pytest.raises(error, match=message):
        plan.solve([0.0, 0.0], [0.0, 0.0], guess=guess())


def other_plan(name, knots):
    """Return a plan of a robot that stays at rest."""
    model = dyn.load(name)
    plan = dyn.plan(model, [cost.effort()], knots=knots, duration=0.1, limits=False)
    return plan.solve(model.neutral(), np.zeros(model.nv))


def test_a_quaternion_that_is_not_of_unit_length_is_no_start():
    model = dyn.load("quadruped")
    plan = dyn.plan(model, [cost.effort()], knots=2, duration=0.02, limits=False)
    q = model.neutral()
    q[3:7] *= 2.0
    with pytest.raises(DynError, match="quaternion"):
        plan.solve(q, np.zeros(model.nv))


def test_a_guess_beyond_the_bounds_is_clipped():
    """Also the forces that hold the start, and where no iteration follows."""
    plan, start = swing(effort_limits={"joint1": 1.0}, max_iterations=1)
    endless = dyn.plan(
        plan.problem.model, [cost.posture([1e200, 0.0], 1e200)], knots=40,
        effort_limits={"joint1": 1.0}, limits=False,
    )  # fmt: skip
    for guess in (None, np.full((40, 2), 50.0)):
        for each in (plan, endless):
            tau = each.solve(start, [0.0, 0.0], guess=guess).tau
            assert np.abs(tau[:, 0]).max() <= 1.0


def test_a_bound_holds_a_joint_force_that_rounding_keeps_from_it():
    """A step tau + (bound - tau) may end beside the bound: no slope is left there."""
    bound, guess = 0.1, 1.1
    assert guess + (bound - guess) > bound
    plan = dyn.plan(
        slide(), [cost.posture([-4.0], 10.0), cost.effort()], duration=0.5, knots=9,
        effort_limits={"rail": (bound, 100.0)}, limits=False,
    )  # fmt: skip
    result = plan.solve([1.0], [0.0], guess=np.full((9, 1), guess))
    assert result.converged
    np.testing.assert_allclose(result.tau, bound, rtol=1e-12)
    assert result.residuals.stationarity == 0.0


def test_few_iterations_are_no_proof_that_limits_cannot_hold():
    """A plan that is continued from its own result reaches them."""
    costs = [cost.posture([9.0], 10.0, when="always"), cost.effort(1e-4)]
    plan = dyn.plan(slide(), costs, duration=2.0, knots=20, max_iterations=4)
    result = plan.solve([0.0], [0.0])
    assert (result.reason, result.iterations) == ("max_iterations", 4)
    limit = result.residuals.limit
    assert limit > 0.1
    assert f"limit of position of joint 'rail' by {limit:.3g} at" in result.detail
    assert f"stationarity of {result.residuals.stationarity:.3g} " in result.detail
    for _ in range(20):
        result = plan.solve([0.0], [0.0], guess=result)
    assert result.converged and result.residuals.limit <= 1e-4 and not result.detail


def test_a_plan_that_diverged_is_no_guess():
    """Its motion is not finite."""
    model = dyn.load("two_link")
    plan = dyn.plan(
        model, [cost.effort()], knots=5, solver="ilqr", limits=False,
        effort_limits=dict.fromkeys(model.joint_names),
    )  # fmt: skip
    result = plan.solve([0.0, 0.0], [0.0, 0.0], guess=np.full((5, 2), 1e200))
    assert result.reason == "diverged: cost"
    with pytest.raises(NonFiniteError, match="guess"):
        plan.solve([0.0, 0.0], [0.0, 0.0], guess=result)


def test_feedback_is_whole_without_a_cost_of_efforts():
    """A cost of one joint leaves others free; their feedback is regularised."""
    model = slide()
    costs = [cost.custom(lambda model, q, qd, tau: [q[0] - 1.0], 10.0, when="end")]
    weights = np.r_[1.0, np.zeros(6)]
    arm, q = dyn.load("arm7"), np.array([0.0, 0.2, 0.0, -1.5, 0.0, 1.5, 0.0])
    for robot, start, chosen in (
        (model, [0.0], costs),
        (arm, q, [cost.posture(q + 0.1, weights, when="end")]),
    ):
        plan = dyn.plan(
            robot, chosen, duration=0.5, knots=10, limits=False,
            effort_limits=dict.fromkeys(robot.joint_names),
        )  # fmt: skip
        result = plan.solve(start, np.zeros(robot.nv))
        # All gains come from one sweep around the result.
        state = Iteration(plan.problem)
        first = PlanStart(
            result.q[0], result.qd[0], result.q, result.qd, result.tau,
            *plan.problem.settings({}),
        )  # fmt: skip
        state.load(first, PlanPath(result.q, result.qd, result.tau))
        state.expand(Penalty(plan.problem))
        for damping in (0.0, *10.0 ** np.arange(-5, 7)):
            if state.feedback(damping) is not None:
                break
        np.testing.assert_allclose(result.gains, state.sweep.K, rtol=1e-6, atol=1e-6)


def test_solvers_of_one_name_keep_their_own_preparations():
    class Fixed(PlanSolver):
        name = "fixed"

        def __init__(self, answer):
            self.answer = answer

        def prepare(self, problem):
            return lambda start: self.answer

    problem = ControlProblem(slide(), [cost.effort()])
    plans = [Plan(problem, Fixed(k)) for k in range(2)]
    assert [plan.solve([0.0], [0.0]) for plan in plans] == [0, 1]


def test_plans_are_compiled_before_the_first_start(monkeypatch):
    plan, start = swing(knots=5)
    monkeypatch.setattr(type(plan.solver), "prepare", None)
    assert plan.solve(start, [0.0, 0.0]).iterations > 0


def test_placements_that_move_are_planned_at_the_time_of_each_knot():
    """The tool meets its target where the base is at the end."""
    model = dyn.load("two_link")
    joint, tool = model.joint_names[0], model.frame_names[-1]
    moving = model.drive(joint, lambda t: (None, (9.0 * t * t * t, 0.0, 0.0)))
    poses = dyn.solver("forward_kinematics").build(
        moving, frames=[tool], inputs=["time"]
    )
    goal = poses([0.1, 0.5], 0.4)[0]
    costs = [cost.pose(tool, goal, 1e6, when="end", part="position"), cost.effort(1e-4)]
    plan = dyn.plan(
        moving, costs, duration=0.4, knots=8, limits=False,
        effort_limits=dict.fromkeys(model.joint_names),
    )  # fmt: skip
    result = plan.solve([0.0, 0.3], [0.0, 0.0])
    assert result.converged and result.residuals.stationarity < 1e-5
    end = poses(result.q[-1], 0.4)[0]
    np.testing.assert_allclose(end[:3, 3], goal[:3, 3], atol=1e-4)
    step = dyn.solver("semi_implicit_euler").build(moving, inputs=["time"])
    for k in range(8):
        q, qd = step(result.q[k], result.qd[k], result.tau[k], 0.05, 0.05 * k)
        np.testing.assert_allclose(result.q[k + 1], q, atol=1e-9)
        np.testing.assert_allclose(result.qd[k + 1], qd, atol=1e-8)
    start = PlanStart(
        result.q[0], result.qd[0], *[None] * 3, *plan.problem.settings({})
    )
    path, values = Shooting(plan.problem).rollouts(start, result.tau[None])
    np.testing.assert_allclose(path.q[0], result.q, atol=1e-8)
    assert values[0] == pytest.approx(result.value, rel=1e-6)


def test_closed_robots_start_at_a_closed_position():
    tip = dyn.make_loop("tip", "axes", "link3", at_a={"xyz": (0.6, 0, 1.2)},
                        at_b={"xyz": (0.3, 0, 0)}, axes=("x", "z"))  # fmt: skip
    model = dyn.load("planar3").with_loops(tip)
    costs = [cost.velocity(when="always"), cost.effort(1e-2)]
    plan = dyn.plan(model, costs, duration=0.3, knots=6, limits=False)
    closed = dyn.close_loops(model, model.start())
    result = plan.solve(closed, np.zeros(model.nv))
    assert result.converged and result.residuals.stationarity < 1e-6


def test_options_and_solvers_are_checked():
    model = dyn.load("two_link")
    with pytest.raises(UnsupportedError, match="max_iteration"):
        dyn.plan(model, [cost.effort()], max_iteration=3)
    with pytest.raises(UnsupportedError, match="max_iterations"):
        dyn.plan(model, [cost.effort()], max_iterations=0)
    with pytest.raises(LookupError, match="box_fddp"):
        dyn.plan(model, [cost.effort()], solver="box_fdp")


@pytest.mark.parametrize("targets", ["posture", ["posture"], np.zeros(2), 3])
def test_targets_that_have_no_names_are_refused(targets):
    plan = dyn.plan(dyn.load("two_link"), [cost.posture()], duration=0.1, knots=3)
    with pytest.raises(SettingError, match="targets .*; valid: targets by name of"):
        plan.solve([0.0, 0.0], [0.0, 0.0], targets=targets)


def test_a_robot_without_joints_has_no_plan():
    fixed = dyn.load_urdf('<robot name="fixed"><link name="base"/></robot>')
    with pytest.raises(SettingError, match="plan: model.*valid: a robot with a joint"):
        dyn.plan(fixed, [cost.effort()])
    with pytest.raises(UnsupportedError, match="'fixed' has no joint"):
        dyn.lqr(fixed, [], 1.0, 1.0)


def test_attributes_of_a_plan_are_checked():
    """An option cannot be changed later, and a slack is a distance."""
    plan = dyn.plan(dyn.load("two_link"), [cost.effort()], duration=0.1, knots=3)
    for name in ("max_iterations", "slak"):
        with pytest.raises(AttributeError, match=name):
            setattr(plan, name, 0.2)
    for wrong in ("a", -1.0, np.nan, None):
        with pytest.raises(SettingError, match="slack is .*; valid: "):
            plan.slack = wrong
    plan.slack = 0.2
    assert pickle.loads(pickle.dumps(plan)).slack == 0.2


def test_a_printed_plan_is_a_line_without_its_arrays():
    model = dyn.load("two_link")
    result = dyn.plan(model, [cost.effort()], duration=0.1, knots=3).solve(
        np.zeros(2), np.zeros(2)
    )
    text = repr(result)
    assert "\n" not in text and "array" not in text
    assert result.reason in text and f"{result.iterations} iterations" in text
    assert f"value {result.value:.6g}" in text


def test_many_starts_give_the_plans_of_each():
    plan, start = swing()
    starts = np.array([start, [-1.2, 0.3], [-1.0, -0.2]])
    many = plan.solve(starts, np.zeros((3, 2)))
    for one, row in zip(many, starts, strict=True):
        np.testing.assert_array_equal(one.tau, plan.solve(row, [0.0, 0.0]).tau)
    with pytest.raises(ShapeError, match="rows"):
        plan.solve(starts, np.zeros((2, 2)))


def test_floating_bases_are_planned_in_tangent_coordinates():
    """The root joint has no drive; a pose of the base that legs cannot hold is tried."""
    model = dyn.load("quadruped")
    q = model.neutral()
    q[7:] = (model.lower + model.upper)[6:] / 2
    q[3:7] = [0.6, 0.0, 0.0, 0.8]
    costs = [cost.posture(q, 1.0, when="always"), cost.effort(1e-2)]
    plan = dyn.plan(model, costs, duration=0.2, knots=10)
    result = plan.solve(q, np.r_[1.0, 0.5, -0.3, np.zeros(15)])
    assert result.reason == "converged"
    assert (result.tau[:, :6] == 0).all() and (result.gains[:, :6] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(result.q[:, 3:7], axis=1), 1.0, atol=1e-9)
    assert result.residuals.stationarity < 1e-6


def test_second_derivatives_are_those_of_the_value():
    """Along a direction of joint forces; costs are quadratic in states and forces."""
    model, rng, N = dyn.load("planar3"), np.random.default_rng(2), 8
    costs = [cost.posture(weight=3.0, when="always"), cost.effort(0.1)]
    plan = dyn.plan(model, costs, 0.4, N, limits=False, second_derivatives=True)
    state = Iteration(plan.problem, second_derivatives=True)
    start = plan._start([0.5, -0.3, 0.2], [1.0, 2.0, -1.0], None,
                        plan.problem.settings({}))  # fmt: skip
    tau = start.tau_guess + rng.normal(size=(N, 3))
    path, _ = Shooting(plan.problem).rollouts(start, tau[None])
    state.load(start, PlanPath(*(x[0] for x in path)))
    state.expand(Penalty(plan.problem))
    m, way, dx, curved = state.model, rng.normal(size=(N, 3)), np.zeros(6), 0.0
    for k, du in enumerate(way):
        curved += dx @ m.l_xx[k] @ dx + 2 * du @ m.l_ux[k] @ dx + du @ m.l_uu[k] @ du
        dx = m.A[k] @ dx + m.B[k] @ du
    curved += dx @ m.l_xx[N] @ dx
    step = 1e-3
    _, values = Shooting(plan.problem).rollouts(
        start, tau + step * np.array([way, 0 * way, -way])
    )
    assert np.diff(values, 2)[0] / step**2 == pytest.approx(curved, rel=1e-5)


def test_second_derivatives_save_iterations():
    plain, start = swing()
    newton, _ = swing(second_derivatives=True)
    slow, fast = (plan.solve(start, [0.0, 0.0]) for plan in (plain, newton))
    assert slow.converged and fast.converged
    assert fast.value <= slow.value * (1 + 1e-9)
    assert fast.iterations < slow.iterations
    for robot, choices in (
        (dyn.load("quadruped"), {}),
        (dyn.load("two_link"), {"step_options": {"joint_friction": True}}),
    ):
        with pytest.raises(UnsupportedError, match="joints of one axis without"):
            dyn.plan(robot, [cost.effort()], second_derivatives=True, **choices)


@pytest.mark.parametrize("duration", [10.0, 250.0])
def test_a_plan_that_is_not_stationary_has_not_converged(duration):
    """Steps of 1 s and 25 s: no predicted decrease is left, where slopes are huge."""
    model = dyn.load("arm7")
    goal = np.clip(np.full(7, 0.5), model.lower, model.upper)
    costs = [dyn.cost.posture(goal, 10.0, "always"), dyn.cost.velocity(1.0)]
    result = dyn.plan(
        model, [*costs, dyn.cost.effort(1e-3)], duration, 10, max_iterations=100
    ).solve(model.start(), np.zeros(7))
    slope = result.residuals.stationarity * np.abs(result.tau).max()
    assert not result.converged and slope > 1e-3 * (1.0 + abs(result.value))
    assert "stationarity" in result.detail and "steps are" in result.detail


@pytest.mark.parametrize(
    ("residual", "left"),
    [(lambda x: sqrt(abs(x - 0.3)), "nan"), (lambda x: sqrt(x - 0.1), "nan")],
)
def test_a_search_that_stalls_says_what_is_left(residual, left):
    """Also where a derivative is not a number, so that there is no feedback."""
    bent = cost.custom(lambda model, q, qd, tau: [residual(q[0])], when="always")
    plan = dyn.plan(dyn.load("two_link"), [bent, cost.effort(1e-3)], 0.5, 10)
    result = plan.solve([0.1, 0.2], [0.0, 0.0])
    assert result.reason == "stalled"
    assert result.detail == f"no step helps at a stationarity of {left}"


def test_a_plan_that_is_moved_on_says_once_that_its_steps_are_long():
    model = dyn.load("two_link")
    costs = [cost.posture([2.0, -1.0], 100.0, "end"), cost.effort()]
    swing = dyn.plan(model, costs, 4.0, 4, limits=False, max_iterations=1)
    result = swing.solve([0.1, 0.2], [0.0, 0.0])
    assert not result.converged and "steps are 1 s long" in result.detail
    assert result.moved_on().moved_on().detail == result.detail


def test_box_steps_satisfy_kkt():
    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 9) * 10:
        M = rng.normal(size=(n, n))
        lower, upper = -rng.uniform(0, 1, n), rng.uniform(0, 1, n)
        upper[0], lower[0] = (0.0, 0.0) if rng.uniform() < 0.2 else (upper[0], lower[0])
        work = riccati.allocate_sweep(1, lower - 1, upper + 1)
        Q, G = M @ M.T + 0.1 * np.eye(n), rng.normal(size=(n, 2 * n + 1))
        work.damped[...], work.Q[2 * n + 1 :, : 2 * n + 1] = Q, G
        work.low[:], work.high[:] = lower, upper
        assert compiled(riccati.box_step)(work, 2 * n, 1.0) == 1.0
        u, K, g, G = work.u, work.KA[:n, : 2 * n], G[:, -1], G[:, :-1]
        np.testing.assert_array_equal(work.KA[:n, 2 * n], u)
        slope = Q @ u + g
        low, high = u <= lower, u >= upper
        assert (u >= lower).all() and (u <= upper).all()
        assert np.abs(slope[~low & ~high]).max(initial=0) < 1e-10
        assert (slope[low & ~high] > -1e-10).all() and (
            slope[high & ~low] < 1e-10
        ).all()
        free = ~low & ~high
        np.testing.assert_allclose(K[~free], 0.0)
        if free.any():
            wanted = -np.linalg.solve(Q[np.ix_(free, free)], G[free])
            np.testing.assert_allclose(K[free], wanted, atol=1e-9)


@pytest.mark.parametrize("fixed", [None, 0, 1])
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_the_compiled_sweep_is_the_one_of_numpy(damping, fixed):
    """Also as Python; tests/support/riccati_reference.py is the readable form."""
    plan, start = swing()
    state = Iteration(plan.problem)
    settings = plan.problem.settings({})
    rng = np.random.default_rng(4)
    guess = (
        rng.normal(size=(41, 2)),
        rng.normal(size=(41, 2)),
        8 * rng.normal(size=(40, 2)),
    )
    bounds = np.full(2, -9.0), np.full(2, 9.0)
    if fixed is not None:  # the least of a fixed force is for the reference to find
        guess[2][:, fixed] = bounds[0][fixed] = bounds[1][fixed] = 1.5
    first = PlanStart(guess[0][0], guess[1][0], *guess, *settings)
    state.load(first, PlanPath(*guess))
    state.expand(Penalty(plan.problem))
    model = state.model
    model.l_ux[...] = 1e-5 * rng.normal(size=model.l_ux.shape)  # the costs have none
    wanted = reference.riccati(
        model, bounds[0] - guess[2], bounds[1] - guess[2], damping
    )
    shapes = (None, np.array([True, True]), np.array([False, True]))
    forms = compiled, lambda function: function
    for compile_it, flat in itertools.product(forms, shapes):
        work = riccati.allocate_sweep(40, *bounds, flat, plan.problem.dt)
        success, *change = compile_it(riccati.sweep_back)(model, work, damping)
        assert success == 1
        np.testing.assert_allclose(work.k, wanted.k, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(work.K, wanted.K, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(
            change[:2], [wanted.slope, wanted.curvature], rtol=1e-8
        )
    assert (wanted.K == 0).all(2).any() and not (wanted.K == 0).all()


def test_random_problems_are_solved_or_have_a_reason():
    reasons = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        model = dyn.load("two_link", gravity=(0.0, -9.81, 0.0))
        costs = [
            cost.posture(rng.uniform(-1.5, 1.5, 2), 10 ** rng.uniform(0, 2), "end"),
            cost.velocity(10 ** rng.uniform(-1, 1), when="always"),
            cost.effort(10 ** rng.uniform(-3, 0)),
        ]
        limits = {model.joint_names[0]: float(rng.uniform(2, 30))}
        plan = dyn.plan(
            model, costs, duration=0.6, knots=15, effort_limits=limits,
            solver=DESCENT[seed % 2], limits=bool(seed % 3),
        )  # fmt: skip
        result = plan.solve(rng.uniform(-1, 1, 2), rng.uniform(-0.5, 0.5, 2))
        assert np.isfinite(result.value)
        assert np.abs(result.tau[:, 0]).max() <= next(iter(limits.values()))
        if result.converged:
            assert result.residuals.stationarity < 1e-5, (seed, result.residuals)
            assert result.residuals.limit <= 1e-4
        reasons.append(result.reason)
    assert reasons.count("converged") >= 45, reasons


def test_a_plan_follows_its_feedback_between_knots():
    plan, start = swing()
    result = plan.solve(start, [0.0, 0.0])
    np.testing.assert_allclose(
        result.control(0.0, result.q[0], result.qd[0]), result.tau[0]
    )
    k, dx = 7, np.array([0.01, -0.02, 0.1, 0.2])
    tau = result.control(k * result.dt, result.q[k] + dx[:2], result.qd[k] + dx[2:])
    np.testing.assert_allclose(tau, result.tau[k] + result.gains[k] @ dx, atol=1e-9)
    middle = (result.q[k] + result.q[k + 1]) / 2, (result.qd[k] + result.qd[k + 1]) / 2
    between = result.control((k + 0.5) * result.dt, *middle)
    np.testing.assert_allclose(between, result.tau[k], atol=1e-9)
    late = result.control(99.0, result.q[-1], result.qd[-1])
    np.testing.assert_allclose(late, result.tau[-1], atol=1e-9)
    with pytest.raises(NonFiniteError, match="time is nan"):
        result.control(np.nan, result.q[-1], result.qd[-1])


def test_a_knot_begins_at_its_time_whatever_the_rounding():
    """A simulation with the plan's steps has its joint forces: 0.58 s / 0.02 s is below 29."""
    costs, still = [cost.posture([0.8, -0.6], 100.0, "end"), cost.effort(1e-3)], [0, 0]
    plan = dyn.plan(dyn.load("two_link"), costs, duration=0.7, knots=35)
    result = plan.solve(still, still)
    run = dyn.simulate(
        result.model, lambda t, q, qd: result.control(t, q, qd), q0=still,
        duration=0.7, period=result.dt, joint_friction=False,
    )  # fmt: skip
    assert (result.times[:-1] / result.dt < np.arange(35)).any()
    np.testing.assert_allclose(run.tau, result.tau, rtol=1e-9)
    just = 7 * result.dt - 1e-4
    np.testing.assert_array_equal(
        result.control(just, *result.state(just)), result.tau[6]
    )


@pytest.mark.parametrize("name", ["arm7", "quadruped"])
def test_positions_of_single_coordinates_are_added(name):
    """The same bits as through the model."""
    model, rng = dyn.load(name), np.random.default_rng(5)
    costs = [cost.posture(model.start()), cost.effort(1e-3)]
    plan = dyn.plan(model, costs, duration=0.2, knots=5, limits=False, max_iterations=2)
    result = plan.solve(model.start(), 0.1 * rng.standard_normal(model.nv))
    assert result._flat is (name == "arm7")
    for time in (-1.0, 0.0, 0.03, 0.11, 0.2, 1.0):
        planned, speed = result.state(time)
        k, part = result._knot(time)
        moved = part * model.difference(result.q[k], result.q[k + 1])
        assert np.array_equal(planned, model.integrate(result.q[k], moved))
        measured = model.integrate(planned, 0.1 * rng.standard_normal(model.nv))
        dx = np.r_[model.difference(planned, measured), 0.0 - speed]
        wanted = result.tau[k] + result.gains[k] @ dx
        assert np.array_equal(result.control(time, measured, 0.0 * speed), wanted)


def test_programs_of_optimal_control_return_the_plan():
    plan, start = swing()
    wanted = plan.solve(start, [0.0, 0.0])
    program = dyn.solver("box_fddp", OPTIMAL_CONTROL).build(plan.problem)
    N = plan.problem.knots
    hold = dyn.solver("rnea").build(plan.problem.model)(start, [0, 0], [0, 0])
    guess = np.tile(start, (N + 1, 1)), np.zeros((N + 1, 2)), np.tile(hold, (N, 1))
    result = program(start, [0.0, 0.0], *guess)
    np.testing.assert_array_equal(result.tau_plan, wanted.tau)
    assert result.reason == 0.0
    assert isinstance(program.model, ControlProblem)


@pytest.mark.filterwarnings("error")
def test_mppi_names_a_cost_that_is_not_finite():
    plan = dyn.plan(slide(), [cost.posture([1e200], 1e200)], solver="mppi", samples=8)
    result = plan.solve([0.0], [0.0])
    assert result.reason == "diverged: cost" and result.iterations == 0


def test_mppi_refuses_more_samples_than_memory_holds():
    """Else the machine swaps, or the process is killed without a word."""
    with pytest.raises(dyn.DynError, match="samples.*valid: a whole number, 2 to 1000"):
        dyn.plan(slide(), [cost.posture([0.0])], solver="mppi", samples=10**9)


def test_mppi_comes_near_the_optimum_and_is_repeatable():
    plan, start = swing()
    best = plan.solve(start, [0.0, 0.0])
    for nodes in (0, 6):
        sampled, _ = swing("mppi", samples=256, max_iterations=40, nodes=nodes)
        result = sampled.solve(start, [0.0, 0.0])
        np.testing.assert_array_equal(result.tau, sampled.solve(start, [0.0, 0.0]).tau)
        bounds = sampled.problem.bounds
        assert (np.abs(result.tau) <= bounds.tau_upper).all()
        first = sampled.solve(start, [0.0, 0.0], guess=best)
        assert first.value <= best.value * (1 + 1e-12)
        assert result.value < 60.0


def test_mppi_pays_for_violated_limits():
    model = slide()
    costs = [cost.posture([9.0], 10.0, when="always"), cost.effort(1e-4)]
    choices = {"duration": 2.0, "knots": 20, "solver": "mppi", "samples": 64}
    free = {**choices, "effort_limits": {"rail": 40.0}}
    beyond = dyn.plan(model, costs, limits=False, **free).solve([0.0], [0.0])
    within = dyn.plan(model, costs, **free).solve([0.0], [0.0])
    assert beyond.q.max() > 6.0
    assert within.q.max() < 5.1 and within.residuals.limit < 0.1
    fast = dyn.plan(slide(), costs, **free).solve([4.0], [10.0])
    assert fast.detail.startswith("upper limit of position of joint 'rail' by ")


def test_mppi_says_how_its_value_fell():
    """It knows no slopes: whether more iterations help is seen from the values."""
    still, start = swing("mppi", samples=2, max_iterations=1, noise=1e-300)
    first = still.solve(start, [0.0, 0.0]).value
    for most in (1, 6):
        result = swing("mppi", samples=64, max_iterations=most)[0].solve(start, [0, 0])
        said, last = result.detail.split(" at the guess, ")
        assert said == f"value {first:.6g}"
        last = float(last.removesuffix(" before the last iteration"))
        assert last == pytest.approx(first) if most == 1 else last < 0.9 * first
        assert result.value <= last * (1 + 1e-5)


def test_ilqr_does_not_use_the_states_of_a_guess():
    plan, start = swing("ilqr", knots=10)
    first = plan.solve(start, [0.0, 0.0])
    other = replace(first, q=first.q + 1.0, qd=first.qd - 1.0)
    results = [plan.solve(start, [0.0, 0.0], guess=x).tau for x in (first, other)]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("solver", "choices"),
    [("box_fddp", {"knots": 10}), ("mppi", {"samples": 256, "max_iterations": 5})],
)
def test_plans_can_be_pickled_and_shared_by_threads(solver, choices):
    plan, start = swing(solver, **choices)
    wanted = plan.solve(start, [0.0, 0.0])
    copied = pickle.loads(pickle.dumps(plan)).solve(start, [0.0, 0.0])
    np.testing.assert_array_equal(copied.tau, wanted.tau)
    starts = [np.array(start) + 0.05 * k for k in range(6)] * 2
    alone = [plan.solve(row, [0.0, 0.0]).tau for row in starts]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda row: plan.solve(row, [0.0, 0.0]).tau, starts))
    np.testing.assert_array_equal(alone, together)


def test_plans_need_no_machine_code(monkeypatch):
    """The same functions run as Python where LLVM is missing."""
    plan, start = swing(knots=4, duration=0.2)
    wanted = plan.solve(start, [0.0, 0.0])
    monkeypatch.setenv("DYN_ENGINE", "graph")
    monkeypatch.setattr(host_machine, "missing", lambda: "switched off")
    slow, _ = swing(knots=4, duration=0.2)
    result = slow.solve(start, [0.0, 0.0])
    np.testing.assert_allclose(result.tau, wanted.tau, rtol=1e-9, atol=1e-9)
    assert result.reason == wanted.reason


NEAR, FAR = [0.5, -0.2, 0.15, 1, 0, 0, 0], [1.8, 0.0, 0.5, 1, 0, 0, 0]


def reach(**choices):
    """Return a plan that leads the tool of arm7 to a pose, and its start."""
    costs = [
        cost.pose("tool", NEAR, 1e4, when="end"),
        cost.velocity(10.0, when="end", name="rest"),
        cost.effort(1e-3),
    ]
    choices = {"duration": 1.5, "knots": 20, "max_iterations": 60, **choices}
    plan = dyn.plan(dyn.load("arm7"), costs, **choices)
    return plan, np.array([0.0, 0.2, 0.0, -1.5, 0.0, 1.5, 0.0])


@pytest.mark.parametrize("solver", [*DESCENT, "mppi"])
def test_a_plan_says_how_far_its_end_is_from_each_target(solver):
    """Metres and radians are those of the frame, also of a target of `solve`."""
    few = {"max_iterations": 3, "samples": 16} if solver == "mppi" else {}
    plan, q = reach(solver=solver, **few)
    where = dyn.solver("forward_kinematics").build(plan.problem.model, frames=["tool"])
    for targets in (None, {"tool": FAR}):
        result = plan.solve(q, np.zeros(7), targets=targets)
        (goal,) = pose_matrices([FAR if targets else NEAR])
        (there,) = where(result.q[-1])
        cosine = (np.trace(goal[:3, :3].T @ there[:3, :3]) - 1) / 2
        error = result.errors["tool"]
        assert set(result.errors) == {"tool"}
        distance = np.linalg.norm(there[:3, 3] - goal[:3, 3])
        np.testing.assert_allclose(error["m"], distance, rtol=1e-9, atol=1e-12)
        turn = np.arccos(min(cosine, 1.0))
        np.testing.assert_allclose(error["rad"], turn, rtol=1e-6, atol=1e-6)
        assert f"'tool' ends {error['rad']:.3g} rad, {error['m']:.3g} m" in repr(result)
    assert error["m"] > 0.5
    (many,) = plan.solve(q[None], np.zeros(7), targets=targets)
    assert many.errors == result.errors == pickle.loads(pickle.dumps(result)).errors


def test_errors_of_postures_and_points_are_norms_of_what_counts():
    """Entries without a weight, and costs of motion or at the knots, are left out."""
    model, q = dyn.load("cart_pole"), np.array([0.1, 0.2])
    costs = [
        cost.posture([0.5, 1.0], [1e-9, 0.0], when="end", name="slide"),
        cost.posture([0.5, 1.0], 1e-9, when="always"),
        cost.posture([9.0, 9.0], 1e-9, name="way"),
        cost.custom(lambda model, q, qd, tau: [qd[0]], 1e-9, when="end"),
        cost.effort(1.0),
    ]
    plan = dyn.plan(model, costs, duration=0.1, knots=3, limits=False)
    result = plan.solve(q, np.zeros(2))
    left = np.abs(result.q[-1] - [0.5, 1.0])
    assert set(result.errors) == {"slide", "posture"}
    assert result.errors["slide"] == pytest.approx({"m": left[0]})
    assert result.errors["posture"] == pytest.approx({"m": left[0], "rad": left[1]})
    assert result.moved_on().errors == result.errors
    assert "pickle" and pickle.loads(pickle.dumps(result)).errors == result.errors
    assert not other_plan("two_link", 3).errors


def test_targets_of_two_costs_of_one_name_say_so():
    costs = [cost.velocity(), cost.velocity(1.0, when="end"), cost.effort()]
    plan = dyn.plan(dyn.load("two_link"), costs, duration=0.1, knots=3)
    said = "2 costs are called 'velocity': give each its own name=; valid: effort"
    with pytest.raises(SettingError, match=said):
        plan.solve([0.0, 0.0], [0.0, 0.0], targets={"velocity": [0.0, 0.0]})


def test_starts_in_degrees_are_asked_about():
    plan, q = reach()
    with pytest.raises(StateError, match=r"joint2' is 11.*limits=False; is q in deg"):
        plan.solve(np.rad2deg(q), np.zeros(7))
    with pytest.raises(StateError, match=r"velocity .*; is qd in degrees per second\?"):
        plan.solve(q, np.full(7, 60.0))
    with pytest.raises(StateError, match="limits=False$"):
        plan.solve(np.where(np.arange(7) == 1, 3.0, q), np.zeros(7))
