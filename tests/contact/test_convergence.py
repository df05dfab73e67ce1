"""A solver that says `converged` holds the law to its tolerance, in speeds and forces."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.contact import ConstraintProblem, residuals, solve
from dyn_core.contact.problem.rows import rows_of
from dyn_core.contact.solvers.laws.natural_residuals import natural_step, respond_to
from dyn_core.contact.solvers.laws.scaling import FROZEN, scale, to_scaled
from dyn_core.contact.solvers.solver_memory import allocate_solvers

SOLVERS = ("coulomb_newton", "admm", "admm_compiled", "projected_gauss_seidel")


def dependent_contacts(seed, mu):
    """Return two contacts between bodies whose velocities have more entries."""
    rng = np.random.default_rng(seed)
    J, v = rng.normal(size=(6, 8)), rng.normal(size=8)
    return ConstraintProblem([("contact", 3)] * 2, J @ J.T, J @ v, mu)


@pytest.mark.parametrize("mu", [1.0, 1e3, 1e5, 1e6])
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_contact_closes_however_large_friction_is(solver, mu):
    """A contact whose solver has converged does not close."""
    for seed in (13, 20, 25, 26, 27, 30):
        problem = dependent_contacts(seed, mu)
        solution = solve(problem, solver)
        if not solution.converged:
            continue
        normal = solution.velocities[::3]
        size = np.abs(problem.b).max()
        assert normal.min() > -1e-6 * size, (seed, solution)
        response = np.diag(problem.matrix)[::3]
        pressing = np.minimum(solution.impulses[::3] * response, normal)
        assert pressing.max() < 1e-6 * size, (seed, solution)


def test_the_residual_of_a_closing_contact_is_its_speed():
    """Whatever the friction: dual [m/s], and law relative to the free velocity."""
    for mu in (0.0, 0.5, 1e6):
        problem = ConstraintProblem([("contact", 3)], np.eye(3), [-0.2, 0, 2.0], mu=mu)
        measured = residuals(problem, [0.0, 0.0, 0.0])
        assert measured.dual == pytest.approx(0.2)
        assert measured.law >= 0.1 * (1 - 1e-12)


@pytest.mark.parametrize("mu", [1.0, 1e5])
@pytest.mark.parametrize("bounded", [False, True])
def test_large_friction_does_not_hide_spin(bounded, mu):
    """Torsion that works along a spin is no law, however small its part of a cone.

    With mu of 1e5 the law of the relaxation, and that of frozen friction, was missed by
    1e-7 of the spin: contacts made energy.
    """
    G, x = np.eye(4), np.array([1.0, 0.0, 0.0, 1e-3])
    b = [0, 0, 0, 10.0] - G @ x
    problem = ConstraintProblem([("contact", 4)], G, b, mu=[mu, 1e-2])
    rows, nv = rows_of(problem)
    rows.impulse[:] = x
    work = allocate_solvers(rows, nv)
    scaled, y, z = work.scaled, work.newton.gamma, work.iterates.z
    scale(rows, 1, scaled)
    to_scaled(rows, 1, scaled, y)
    if bounded:
        scaled.law[0], scaled.c[0] = FROZEN, scaled.c[0] * y[0]
    respond_to(
        rows,
        1,
        4,
        nv,
        scaled,
        y,
        work.system.w,
        work.newton.u,
        z,
        work.iterates.s,
        False,
    )
    assert natural_step(rows, 1, scaled, y, z, False) > 1e-5


@pytest.mark.parametrize("h", [1e-4, 1e-5])
@pytest.mark.parametrize("solver", ["lemke", *SOLVERS])
def test_near_the_limit_of_painleve_converged_is_right(solver, h):
    """A sliding rod whose friction nearly jams it: 62.5085 N, or not converged."""
    phi, mu, length = np.radians(65), 1.2, 0.5
    J = [[0, 1, -length * np.cos(phi)], [1, 0, length * np.sin(phi)]]
    G = np.array(J) @ np.diag([1, 1, 3 / length**2]) @ np.transpose(J)
    b = [-9.81 * h, -1.0]
    solution = solve(ConstraintProblem([("contact", 2)], G, b, mu=[mu]), solver)
    force = 9.81 / (G[0, 0] - mu * abs(G[0, 1]))
    if solver in ("lemke", "coulomb_newton", "projected_gauss_seidel"):
        assert solution.status == "converged"
    if solution.converged:
        np.testing.assert_allclose(solution.impulses[0] / h, force, rtol=1e-4)


@pytest.mark.parametrize("stepper", ["moreau_jean", "stewart_trinkle"])
@pytest.mark.parametrize(
    "solver", ["coulomb_newton", "admm", "convex_newton", "projected_gauss_seidel"]
)
def test_a_robot_that_stands_is_solved_in_every_step(solver, stepper):
    """Also where it has no contact for a step; none takes thousands of iterations.

    A thousand sweeps are followed by Newton steps with frozen friction.
    """
    model = dyn.load("quadruped")
    q = model.neutral()
    q[2] = 0.45
    world = dyn.World(solver=solver, stepper=stepper)
    sim = dyn.ContactSimulator(model, world, period=1e-3, q0=q)
    unsolved, most = 0, 0
    for k in range(170):
        sim.advance(k * 1e-3)
        if k >= 75:  # it has landed
            unsolved += not sim.report.converged
            most = max(most, sim.report.iterations)
    assert unsolved == 0
    assert most <= 1020
