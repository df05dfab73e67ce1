"""Contacts whose friction cone is a half-line, or almost: they push, never pull."""

import importlib

import numpy as np
import pytest
from contact_bodies import free_ball

import dyn_core as dyn
from dyn_core.contact import (
    ConstraintProblem,
    cone_projection,
    residuals,
    solve,
)
from dyn_core.engines import available

NAMES = dyn.solvers(dyn.problems.CONTACT_SOLVE, references=True)
TINY = (0.0, 1e-300, 1e-12, 1e-6)  # coefficients of friction
SIZES = {1: 0, 2: 1, 3: 1, 4: 2, 6: 3}  # coefficients by rows
APPROACH = {"open": 0.1, "at rest": 0.0, "closed": -1.0}


def _serves(name, problem):
    """Whether a solver takes a layout and its extra is installed."""
    if name == "interior_point" and importlib.util.find_spec("clarabel") is None:
        return False
    return dyn.solver(name).refusal(problem.layout) is None


def _one(rows, mu, normal):
    """Return one contact with unit response, its velocity, and the impulse of mu = 0."""
    b = np.append(normal, [0.3, -0.2, 0.1, 0.05, -0.4][: rows - 1])
    coefficients = [mu] * SIZES[rows]
    problem = ConstraintProblem([("contact", rows)], np.eye(rows), b, mu=coefficients)
    return problem, np.append(max(-normal, 0.0), np.zeros(rows - 1))


@pytest.mark.parametrize("mu", TINY)
@pytest.mark.parametrize("state", APPROACH)
@pytest.mark.parametrize("name", NAMES)
def test_one_contact_pushes_or_rests(name, state, mu):
    """Normal impulse max(0, -b_n), tangents at most mu of it; and it is converged.

    Soft contacts push, too, by less.
    """
    for rows in SIZES:
        problem, wanted = _one(rows, mu, APPROACH[state])
        if not _serves(name, problem):
            continue
        loose = name == "interior_point"  # at rest it only comes near to the adapter
        if loose and not problem.b.any():
            continue  # nothing to measure how near
        solution = solve(problem, name)
        assert solution.converged, rows
        if name == "soft_contact":
            assert 0 <= solution.impulses[0] <= wanted[0] + mu
            bound = mu * solution.impulses[0] + 1e-15
            assert np.linalg.norm(solution.impulses[1:]) <= bound
            continue
        np.testing.assert_allclose(
            solution.impulses, wanted, atol=2 * mu + (1e-6 if loose else 1e-7)
        )
        assert solution.residuals.law < (1e-5 if loose else 1e-6)
        assert solution.residuals.primal < 1e-7


@pytest.mark.parametrize("approach", (0.1, -1.0))
@pytest.mark.parametrize("name", NAMES)
def test_a_contact_without_sliding_does_not_pull(name, approach):
    """No velocity along the tangents: nothing but the sign of the normal counts."""
    for rows in SIZES:
        b = np.append(approach, np.zeros(rows - 1))
        problem = ConstraintProblem([("contact", rows)], np.eye(rows), b)
        if _serves(name, problem):
            solution = solve(problem, name)
            assert solution.converged, rows
            soft = 0.1 if name == "soft_contact" else 0.0
            wanted = np.append(max(-approach, 0.0) * (1 - soft), np.zeros(rows - 1))
            np.testing.assert_allclose(solution.impulses, wanted, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_coupled_contacts_push_as_unilateral_rows(name):
    """Without friction the normals alone make the problem of unilateral rows."""
    rng = np.random.default_rng(4)
    for _ in range(6):
        J, free = rng.normal(size=(9, 11)), rng.normal(size=11)
        G, b = J @ J.T, J @ free
        problem = ConstraintProblem(["contact"] * 3, G, b)
        if not _serves(name, problem) or name == "soft_contact":
            continue
        normals = [0, 3, 6]
        rows = ConstraintProblem(
            ["unilateral"] * 3, G[np.ix_(normals, normals)], b[normals]
        )
        wanted = np.zeros(9)
        wanted[normals] = solve(rows, "enumeration").impulses
        solution = solve(problem, name)
        assert solution.converged
        np.testing.assert_allclose(solution.impulses, wanted, atol=1e-5)


@pytest.mark.parametrize("mu", TINY)
@pytest.mark.parametrize("rows", SIZES)
def test_residuals_refuse_a_pull(rows, mu):
    """An impulse that pulls is as far from the cone as it pulls; none is right."""
    problem, _ = _one(rows, mu, 0.1)
    pull = np.append(-0.1, np.zeros(rows - 1))
    assert residuals(problem, pull).primal == pytest.approx(0.1)
    assert residuals(problem, pull).law > 0.1
    assert max(residuals(problem, np.zeros(rows))) < 2 * mu + 1e-12


@pytest.mark.parametrize("rows", (4, 6))
def test_residuals_refuse_an_impulse_that_has_no_coefficient(rows):
    """Torsion without a coefficient takes no impulse, whatever the tangents have."""
    mu = [0.5] + [0.0] * (SIZES[rows] - 1)
    b = np.append(-1.0, np.zeros(rows - 1))
    problem = ConstraintProblem([("contact", rows)], np.eye(rows), b, mu=mu)
    twist = np.append([1.0, 0.0, 0.0], np.full(rows - 3, 0.1))
    residual = residuals(problem, twist)
    assert residual.primal == pytest.approx(0.1 * np.sqrt(rows - 3))
    assert residual.law > 0.05
    assert max(residuals(problem, np.append(1.0, np.zeros(rows - 1)))) < 1e-12


@pytest.mark.parametrize("rows", (4, 6))
def test_the_step_of_solvers_refuses_it_too(rows):
    """A row without a coefficient is as far from the law as its impulse is from zero."""
    mu = [0.5] + [0.0] * (SIZES[rows] - 1)
    b = np.append(-1.0, np.zeros(rows - 1))
    problem = ConstraintProblem([("contact", rows)], np.eye(rows), b, mu=mu)
    twist = np.append([1.0, 0.0, 0.0], np.full(rows - 3, 0.1))
    assert problem.law(twist) == pytest.approx(0.1, rel=1e-6)
    assert problem.law(np.append(1.0, np.zeros(rows - 1))) == 0


@pytest.mark.parametrize("c", (*TINY, 0.5, 10.0))
def test_projection_of_a_degenerate_cone(c):
    """The nearest point lies in the cone, and no other point of it is nearer."""
    for n in (-1.0, -1e-9, -0.0, 0.0, 1.0):
        for t in ([], [0.0, 0.0], [0.3, -0.4]):
            found_n, found_t = cone_projection(c, n, t)
            size = np.linalg.norm(found_t) if t else 0.0
            assert found_n >= 0
            assert size <= c * found_n * (1 + 1e-12)
            rest_n, rest_t = n - found_n, np.subtract(t, found_t)
            assert abs(rest_n * found_n + rest_t @ found_t) < 1e-12
            assert c * np.linalg.norm(rest_t) <= 1e-12 - rest_n  # of the polar cone


def test_a_pull_proves_no_problem_infeasible():
    """Only impulses that push may show that no impulse is enough."""
    problem = ConstraintProblem(["contact"], np.zeros((3, 3)), [1.0, 0.0, 0.0])
    assert not problem.impossible
    stuck = ConstraintProblem(["contact"], np.zeros((3, 3)), [-1.0, 0.0, 0.0])
    assert stuck.impossible


@pytest.mark.parametrize("engine", available())
@pytest.mark.parametrize("name", ("projected_gauss_seidel", "admm_compiled"))
def test_every_engine_knows_the_degenerate_cone(name, engine):
    """An open and a closed contact without friction, by each engine."""
    for normal in APPROACH.values():
        problem = ConstraintProblem(["contact"], np.eye(3), [normal, 0.0, 0.0])
        solution = solve(problem, name, engine=engine)
        assert solution.converged
        np.testing.assert_allclose(
            solution.impulses, [max(-normal, 0), 0, 0], atol=1e-7
        )


@pytest.mark.parametrize("solver", ("admm", "projected_gauss_seidel"))
def test_a_frictionless_ball_bounces_with_every_step_solved(solver):
    """No step of a bouncing ball without friction counts as not converged."""
    smooth = {"materials": {"default": {"mu": 0.0, "restitution": 0.8}}}
    model = free_ball(**smooth)
    world = {"half_spaces": [{}], "solver": solver}
    start = np.array([0, 0, 0.3, 0, 0, 0, 1.0])
    sim = dyn.ContactSimulator(model, world, period=1e-3, q0=start)
    for k in range(500):
        sim.advance(k * sim.period)
    assert not sim.counters


@pytest.mark.parametrize("solver", ("projected_gauss_seidel", "admm_compiled"))
def test_the_compiled_step_without_friction_is_solved(solver):
    """contact_euler says converged in the air and on the floor."""
    model = free_ball(materials={"default": {"mu": 0.0}})
    step = dyn.solver("contact_euler").build(model, contact_solver=solver)
    for height in (0.1, 0.5):
        q = np.array([0, 0, height, 0, 0, 0, 1.0])
        result = step(q, np.zeros(6), np.zeros(6), 1e-3, np.zeros(3))
        assert result.status == 0
        assert result.iterations < 100
        np.testing.assert_allclose(result.impulse[1:], 0, atol=1e-9)
