"""Plans with scheduled contacts: what holds when, forces, derivatives, refusals."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.errors import SettingError
from dyn_core.prediction.rollouts import Shooting
from dyn_core.prediction.shooting import Iteration, Penalty, PlanPath

cost = dyn.cost


def tip(name="tip", z=1.2):
    """Return a loop that holds the tip of planar3 at a place."""
    return dyn.make_loop(name, "axes", "link3", at_a={"xyz": (0.6, 0, z)},
                         at_b={"xyz": (0.3, 0, 0)}, axes=("x", "z"))  # fmt: skip


def stand():
    """Return the quadruped, its start on bent legs, and a loop that holds each foot.

    As docs/optimal_control.md has them: their kernels, 20 s of work, are compiled once.
    """
    model = dyn.load("quadruped")
    q = model.start()
    feet = [name for name in model.frame_names if name.endswith("foot")]
    places = dyn.solver("forward_kinematics").build(model, frames=feet)(q)
    loops = [
        dyn.make_loop(foot, "point", foot, at_a={"xyz": place[:3, 3]})
        for foot, place in zip(feet, places, strict=True)
    ]
    return model, q, feet, loops


def test_feet_stay_while_they_are_held_and_carry_the_robot():
    """Two feet are free in the middle; the sum of the forces is the weight."""
    model, q, feet, loops = stand()
    last = 0.4
    contacts = [(loops[0], 0.0, last), (loops[3], 0.0, last)]
    for begin, end in (0.0, 0.12), (0.28, last):
        contacts += [(loop, begin, end) for loop in loops[1:3]]
    costs = [
        cost.posture(q, 100.0, when="always"),
        cost.velocity(when="always"),
        cost.effort(1e-3),
    ]
    plan = dyn.plan(model, costs, last, 20, contacts=contacts, limits=False)
    assert [(p.first, p.end) for p in plan.problem.phases] == [
        (0, 6),
        (6, 14),
        (14, 20),
    ]
    result = plan.solve(q, np.zeros(model.nv))
    assert result.converged and result.residuals.stationarity < 1e-5
    assert (result.tau[:, :6] == 0.0).all()
    places = dyn.solver("forward_kinematics").build(model, frames=feet)(result.q)
    places = places[:, :, :3, 3]
    moved = np.linalg.norm(places - places[0], axis=-1)
    assert moved[:, [0, 3]].max() < 1e-7
    assert moved[:7, 1:3].max() < 1e-7 and moved[16:, 1:3].max() < 1e-9
    assert moved[15, 1:3].max() < 1e-5  # one step brings them back, to first order
    assert moved[8:14, 1:3].min(axis=0).max() > 1e-5  # in between they are free
    # H qdd + C - tau = J.T pushes, with six rows of the base for twelve numbers.
    motion = np.diff(result.qd, axis=0) / plan.problem.dt
    inverse = dyn.solver("rnea").build(model)
    lacking = inverse(result.q[:-1], result.qd[:-1], motion) - result.tau
    jacobians = np.stack(
        [
            dyn.solver("jacobian").build(model, frame=foot)(result.q[:-1])
            for foot in feet
        ],
        1,
    )
    for k, standing in ((3, range(4)), (10, (0, 3))):
        J = np.vstack([jacobians[k, i][3:] for i in standing])
        pushes = np.linalg.lstsq(J.T, lacking[k], rcond=None)[0]
        np.testing.assert_allclose(J.T @ pushes, lacking[k], atol=0.05)
        rotated = dyn.solver("forward_kinematics").build(model, frames=feet)(
            result.q[k]
        )
        up = sum((rotated[i][:3, :3] @ f)[2]
                 for i, f in zip(standing, pushes.reshape(-1, 3), strict=True))  # fmt: skip
        assert up == pytest.approx(9.81 * model.mass, rel=0.05)


def test_the_gradient_across_phases_is_that_of_the_costs():
    """Differences of motions, with a phase that begins in motion."""
    model, rng = dyn.load("planar3"), np.random.default_rng(5)
    closed = dyn.close_loops(model.with_loops(tip()), model.start())
    costs = [
        cost.posture(closed, 3.0, when="always"),
        cost.velocity(),
        cost.effort(0.1),
    ]
    contacts = [(tip(), 0.08, 0.16)]
    plan = dyn.plan(model, costs, 0.24, 12, contacts=contacts, limits=False)
    state = Iteration(plan.problem)
    start = plan._start(
        closed + 0.02, [0.1, -0.2, 0.1], None, plan.problem.settings({})
    )
    tau = start.tau_guess + rng.normal(size=start.tau_guess.shape)
    path, values = Shooting(plan.problem).rollouts(start, tau[None])
    state.load(start, PlanPath(*(x[0] for x in path)))
    assert state.expand(Penalty(plan.problem)) == pytest.approx(values[0])
    assert np.abs(state.model.gap).max() < 1e-12
    y, slopes = state.model.l_x[-1], np.zeros(tau.shape)
    for k in reversed(range(12)):
        slopes[k] = state.model.l_u[k] + y @ state.model.B[k]
        y = state.model.l_x[k] + y @ state.model.A[k]
    way, step = rng.normal(size=tau.shape), 1e-5
    _, (more, less) = Shooting(plan.problem).rollouts(
        start, tau + step * np.array([way, -way])
    )
    assert (more - less) / (2 * step) == pytest.approx((slopes * way).sum(), rel=1e-6)


@pytest.mark.parametrize("solver", ("box_fddp", "ilqr"))
def test_a_contact_is_met_without_rebound(solver):
    """In its first step the tip gets to its place and stops; then it stays."""
    model = dyn.load("planar3")
    closed = dyn.close_loops(model.with_loops(tip()), model.start())
    costs = [cost.posture(closed, 10.0, when="always"), cost.effort(1e-3)]
    contacts = [(tip(), 0.1, 0.2)]
    plan = dyn.plan(model, costs, 0.3, 30, solver, contacts=contacts, limits=False)
    result = plan.solve(closed, [0.2, -0.1, 0.3])
    assert result.converged
    made = dyn.solver("loop_constraints").build(model.with_loops(tip()))
    residual, jacobian, *_ = made(result.q, result.qd)
    speed = np.einsum("kij,kj->ki", jacobian, result.qd)
    assert np.abs(residual[11]).max() < 1e-2 and np.abs(residual[12:21]).max() < 1e-4
    assert np.abs(speed[12:21]).max() < 1e-2
    assert np.abs(speed[:10]).max() > 0.05 and np.abs(residual[-1]).max() > 0


def test_a_damped_search_ends_at_the_optimum():
    """Steps too small to be seen leave the damping as it is, which must not keep on."""
    model = dyn.load("planar3")
    closed = dyn.close_loops(model.with_loops(tip()), model.start())
    costs = [cost.posture(closed, 10.0, when="end"), cost.effort(0.1)]
    contacts = [(tip(), 0.1, 0.2)]
    plan = dyn.plan(model, costs, 0.3, 30, contacts=contacts, limits=False)
    result = plan.solve(closed, [0.2, -0.1, 0.3])
    assert result.converged and result.residuals.stationarity < 1e-8


def test_samples_know_contacts():
    model = dyn.load("planar3")
    closed = dyn.close_loops(model.with_loops(tip()), model.start())
    costs = [cost.posture(closed), cost.effort(0.1)]
    options = {"contacts": [(tip(), 0.0, 0.2)], "limits": False}
    plan = dyn.plan(model, costs, 0.2, 10, "mppi", samples=16, **options)
    result = plan.solve(closed, np.zeros(3))
    fk = dyn.solver("forward_kinematics").build(model, frames=["link3"])
    ends = fk(result.q)[:, 0] @ [0.3, 0, 0, 1]
    np.testing.assert_allclose(ends[:, [0, 2]], [[0.6, 1.2]] * 11, atol=1e-4)


@pytest.mark.parametrize(
    "contacts, message",
    (
        ("tip", "valid: a list of"),
        ([tip()], "valid: a list of"),
        ([(tip(), 0.0)], "valid: a list of"),
        ([("link3", 0.0, 0.1)], "valid: a list of"),
        ([(tip(), 0.2, 0.1)], "begin < end"),
        ([(tip(), 0.5, 0.9)], "times that contain a knot"),
        ([(tip(), 0.0, float("nan"))], "contacts: time"),
        ([(tip(), 0.0, "x")], "contacts: time"),
        ([(tip(), 0.0, 0.2), (tip(), 0.1, 0.3)], "contacts: .*tip"),
        ([(dyn.make_loop("t", "point", "hand"), 0.0, 0.3)], "contacts: .*hand"),
    ),
)  # fmt: skip
def test_contacts_are_checked(contacts, message):
    with pytest.raises((SettingError, dyn.ModelError), match=message):
        dyn.plan(dyn.load("planar3"), [cost.effort()], 0.3, 6, contacts=contacts)
