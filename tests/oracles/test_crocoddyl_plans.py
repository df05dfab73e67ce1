"""Plans beside Crocoddyl: five problems of an arm, bounded and not, with one optimum.

Crocoddyl 3.2.1 with Pinocchio 4.1.0 has wrong steps (see test_crocoddyl.py), and frame
placements end its process: the comparison is then skipped. It runs with Pinocchio 4.0.0.
"""

import numpy as np
import pytest

import dyn_core as dyn

crocoddyl = pytest.importorskip("crocoddyl")
pinocchio = pytest.importorskip("pinocchio")

N, DT = 50, 0.02
EFFORT, STILL, TRACK, END, END_STILL = 1e-3, 0.1, 0.1, 100.0, 1.0
cost = dyn.cost


def ours(model, kind, bound, start, goal, pose):
    """Return the plan, for a goal of joint positions or of the last link's pose."""
    end = (
        cost.posture(goal, END, when="end", name="goal")
        if kind == "posture"
        else cost.pose(model.frame_names[-1], pose, END, when="end")
    )
    costs = [
        end,
        cost.velocity(END_STILL, when="end", name="still"),
        cost.velocity(STILL),
        cost.posture(start, TRACK),
        cost.effort(EFFORT),
    ]
    plan = dyn.plan(
        model, costs, duration=N * DT, knots=N, limits=False,
        effort_limits=dict.fromkeys(model.joint_names, bound),
    )  # fmt: skip
    return plan.solve(start, np.zeros(model.nv))


def theirs(kind, bound, start, goal, pose, frame):
    """Return the solver of the same problem after it has solved it."""
    model = pinocchio.buildModelFromUrdf(str(dyn.robots.path("arm7")))
    state, n = crocoddyl.StateMultibody(model), model.nv
    motors = crocoddyl.ActuationModelFull(state)

    def of_state(weights, position):
        activation = crocoddyl.ActivationModelWeightedQuad(np.repeat(weights, n))
        x = np.concatenate([position, np.zeros(n)])
        residual = crocoddyl.ResidualModelState(state, x, n)
        return crocoddyl.CostModelResidual(state, activation, residual)

    def action(costs, length):
        free = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, motors, costs)
        step = crocoddyl.IntegratedActionModelEuler(free, length)
        if bound is not None and length:
            step.u_lb, step.u_ub = np.full(n, -bound), np.full(n, bound)
        return step

    running, ending = (crocoddyl.CostModelSum(state, n) for _ in range(2))
    running.addCost("track", of_state([TRACK, STILL], start), 1.0)
    effort = crocoddyl.ResidualModelControl(state, n)
    running.addCost("effort", crocoddyl.CostModelResidual(state, effort), EFFORT)
    by_pose = kind == "pose"
    ending.addCost("goal", of_state([0.0 if by_pose else END, END_STILL], goal), 1.0)
    if by_pose:
        residual = crocoddyl.ResidualModelFramePlacement(
            state, model.getFrameId(frame), pinocchio.SE3(pose), n
        )
        ending.addCost("pose", crocoddyl.CostModelResidual(state, residual), END)
    x0 = np.concatenate([start, np.zeros(n)])
    step = action(running, DT)
    data = step.createData()
    step.calc(data, x0, np.ones(n))
    a = pinocchio.aba(model, model.createData(), start, np.zeros(n), np.ones(n))
    if np.abs(data.xnext[n:] - DT * a).max() > 1e-9:
        pytest.skip(
            "this Crocoddyl was built for another Pinocchio: its steps are wrong"
        )
    problem = crocoddyl.ShootingProblem(x0, [step] * N, action(ending, 0.0))
    solver = (crocoddyl.SolverFDDP if bound is None else crocoddyl.SolverBoxFDDP)(
        problem
    )
    solver.th_stop = 1e-18
    solver.solve([x0] * (N + 1), [np.zeros(n)] * N, 1000)
    return solver


@pytest.mark.parametrize("seed", range(5))
def test_optima_are_those_of_crocoddyl(seed):
    """The costs agree to 1e-8, the joint forces to 1e-5 N·m; two problems have bounds."""
    model, rng = dyn.load("arm7"), np.random.default_rng(seed)
    start = (model.lower + model.upper) / 2
    goal, frame = start + rng.uniform(-0.3, 0.3, 7), model.frame_names[-1]
    kinematics = dyn.solver("forward_kinematics").build(
        model, frames=[frame], engine="graph"
    )
    pose = kinematics(goal)[0]
    problem = ("pose" if seed % 2 else "posture", None if seed < 3 else 30.0)
    peer = theirs(*problem, start, goal, pose, frame)
    plan = ours(model, *problem, start, goal, pose)
    assert plan.converged
    assert plan.value == pytest.approx(peer.cost, rel=1e-8)
    np.testing.assert_allclose(plan.tau, np.array(peer.us), atol=1e-5)
    if problem[1] is not None:
        assert np.abs(plan.tau).max() == 30.0
