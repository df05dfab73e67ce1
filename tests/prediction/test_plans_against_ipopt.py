"""Plans with limits of positions and velocities: the optimum of IPOPT, by CasADi."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn

ca = pytest.importorskip("casadi", reason="casadi is not installed (extra casadi)")
EXAMPLE = Path(__file__).parents[2] / "examples" / "casadi_swing.py"
KNOTS = 30
GOAL = np.array([1.8, -1.2])
POSTURE, REST, EFFORT = 50.0, 5.0, 0.1  # weights
BOX = np.array([3.0, 8.0])  # largest joint forces [N·m]


@pytest.fixture(scope="module")
def example():
    """Names of the example, whose step in symbols is used."""
    return runpy.run_path(str(EXAMPLE))


def robot(speed, upper):
    """Return two links with limits of all velocities and of the first position."""
    text = Path(dyn.robots.path("two_link")).read_text(encoding="utf-8")
    text = text.replace('velocity="4"', f'velocity="{speed}"')
    return dyn.load_urdf(text.replace('upper="3.1"', f'upper="{upper}"'))


def ipopt(model, step, dt):
    """Return least costs and q, qd and tau of IPOPT, from rest at zero.

    Args:
        model: Robot.
        step: Step in time as a function of CasADi.
        dt: Length of a step [s].
    """
    n, states = model.nv, KNOTS + 1
    q, qd = (ca.MX.sym(name, n, states) for name in ("q", "qd"))
    tau = ca.MX.sym("tau", n, KNOTS)
    ends = step.map(KNOTS)(q[:, :-1], qd[:, :-1], tau)
    costs = POSTURE * ca.sumsqr(q[:, -1] - GOAL) + REST * ca.sumsqr(qd[:, -1])
    costs = (costs + dt * EFFORT * ca.sumsqr(tau)) / 2
    x = ca.veccat(q, qd, tau)
    gaps = ca.veccat(q[:, 1:] - ends[0], qd[:, 1:] - ends[1])
    quiet = {"print_level": 0, "sb": "yes", "tol": 1e-10, "bound_relax_factor": 0.0}
    options = {"ipopt": quiet, "print_time": False, "error_on_fail": True}
    solve = ca.nlpsol("solve", "ipopt", {"x": x, "f": costs, "g": gaps}, options)
    lower, upper = (
        [np.tile(side, (states, 1)), np.tile(sign * model.velocity_limit, (states, 1))]
        for side, sign in ((model.lower, -1), (model.upper, 1))
    )
    for bound in (*lower, *upper):
        bound[0] = 0.0  # at rest at zero
    box = np.tile(BOX, (KNOTS, 1))
    sides = [np.concatenate(x).ravel() for x in ([*lower, -box], [*upper, box])]
    best = solve(x0=np.zeros(x.size1()), lbx=sides[0], ubx=sides[1], lbg=0, ubg=0)
    rows = np.array(best["x"]).reshape(-1, n)
    return float(best["f"]), *np.split(rows, [states, 2 * states])


@pytest.mark.parametrize("solver", ["box_fddp", "ilqr"])
@pytest.mark.parametrize(
    ("speed", "upper"), [(1.6, 3.1), (1.6, 1.5), (4.0, 1.5)],
    ids=["velocity", "both", "position"],
)  # fmt: skip
def test_limits_cost_what_they_cost_ipopt(example, solver, speed, upper):
    """Costs and motions agree; the limits hold, and are reached."""
    model, dt, cost = robot(speed, upper), example["DT"], dyn.cost
    program = dyn.solver("semi_implicit_euler").build(
        model, forward_dynamics="aba", engine="plain"
    )
    value, q, qd, tau = ipopt(model, example["in_symbols"](program), dt)
    costs = [
        cost.posture(GOAL, POSTURE, when="end"),
        cost.velocity(REST, when="end"),
        cost.effort(EFFORT),
    ]
    box = dict(zip(model.joint_names, BOX.tolist(), strict=True))
    choices = {"knots": KNOTS, "duration": KNOTS * dt, "effort_limits": box}
    result = dyn.plan(model, costs, solver=solver, **choices).solve([0, 0], [0, 0])
    assert result.converged
    free = dyn.plan(model, costs, limits=False, **choices).solve([0, 0], [0, 0])
    assert free.value < 0.9 * value  # the limits cost something
    # Violations within the tolerance have a price: multiplier times violation.
    price = float(result.penalty.terms(result.q, result.qd)[0])
    assert result.value + price == pytest.approx(value, rel=2e-5)
    assert result.value == pytest.approx(value, rel=1e-4 if upper > 2 else 1e-3)
    assert result.tau.max() == BOX[0]
    np.testing.assert_allclose(result.q, q, atol=2e-3)
    np.testing.assert_allclose(result.qd, qd, atol=2e-2)
    np.testing.assert_allclose(result.tau, tau, atol=0.2)
    assert np.abs(result.qd).max() <= speed + 1e-4
    assert result.q[:, 0].max() <= upper + 1e-4
    assert np.abs(result.qd).max() > speed - 1e-3 or result.q.max() > upper - 1e-3
