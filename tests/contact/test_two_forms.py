"""Machine code and traced algorithms state one rule: each row of docs/design.md's table.

A form in the subset of machine code takes arrays, its traced twin numbers of any kind;
both get the same random problem here, and run as Python.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from contact_bodies import box, joint, link, robot, sphere
from contact_problems import random_contacts
from row_problems import dense, legs_on_a_base, mixed_blocks, problem_of

from dyn_core.contact import law_residuals, rows_of, solve, weights
from dyn_core.contact.collision.halfspaces import HalfSpace
from dyn_core.contact.collision.pairs import ContactPairs
from dyn_core.contact.rows import contact_biases
from dyn_core.contact.rows.block_rows import close
from dyn_core.contact.rows.constraints import unit_forces
from dyn_core.contact.rows.contact_rows import tangent
from dyn_core.contact.rows.step_tables import SCHEMES
from dyn_core.contact.solvers.admm import split
from dyn_core.contact.solvers.frozen_friction import take_no_energy
from dyn_core.contact.solvers.gauss_seidel import sweep
from dyn_core.contact.solvers.laws.cones import (
    cone_coefficient,
    is_cone,
    row_bounds,
    row_weight,
)
from dyn_core.contact.solvers.laws.law_residuals import row_residuals
from dyn_core.contact.solvers.laws.natural_residuals import natural_step, respond_to
from dyn_core.contact.solvers.laws.scaling import project, scale
from dyn_core.contact.solvers.matrices.row_products import row_response
from dyn_core.contact.solvers.solver_memory import allocate_solvers
from dyn_core.spatial import Vector
from dyn_plugins.contact.admm_compiled import _projected
from dyn_plugins.contact_steps.contact_step import contacts as candidates
from dyn_plugins.contact_steps.contact_step import normal_bias, without_gain

TWINS = 1e-12
DT, THRESHOLD = 1e-3, 0.05


@pytest.mark.parametrize("scheme", contact_biases.RULES)
def test_gaps_close_and_bounce_alike(scheme):
    """`close` of rows and `normal_bias` of a kernel, fast and slow, near and far."""
    rng, checked = np.random.default_rng(1), {True: 0, False: 0}
    for _ in range(400):
        gap = rng.choice([0.0, 5e-10, *rng.normal(0.0, 1e-4, 6)])
        approach, ahead = rng.normal(0.0, 0.1, 2)
        e = rng.choice([0.0, 0.6])
        block = SimpleNamespace(
            gap=[gap], approach=[approach], restitution=[e], rebound=[0.0], bias=[0.0]
        )
        rows = SimpleNamespace(start=[0], b=[ahead], compliance=[0.0])
        rule = SimpleNamespace(
            scheme=SCHEMES[scheme], dt=DT, compliance=1e-4, threshold=THRESHOLD,
            erp=0.2, push=0.1,
        )  # fmt: skip
        close(rule, rows, block, 0)
        contact = SimpleNamespace(forces=[Vector((1.0,))], restitution=e)
        motions = Vector((approach,)), Vector((ahead,))
        options = {
            "erp": 0.2, "push_out_speed": 0.1, "restitution_threshold": THRESHOLD,
        }  # fmt: skip
        traced = contact_biases.RULES[scheme]
        part, bias = normal_bias(traced, contact, gap, motions, DT, options)[:2]
        checked[bool(part)] += 1
        if part:
            assert bias == pytest.approx(block.bias[0], rel=TWINS, abs=TWINS)
    assert checked[True] > 100
    assert checked[False] > 100 or scheme == "stewart_trinkle"


def as_rows(seed):
    """Return a problem of every kind of block, Rows with random impulses, and nv."""
    problem, rng = mixed_blocks(seed), np.random.default_rng(seed)
    rows, nv = rows_of(problem)
    rows.impulse[:] = rng.normal(size=problem.m)
    return problem, rows, nv


def traced_residuals(problem, rows, u, exact=True):
    """Return `law_residuals` of the numbers that machine code has."""
    blocks = problem.layout.blocks
    response = [
        row_response(rows, k, r) for k, b in enumerate(blocks) for r in range(b.rows)
    ]
    lists = (x.tolist() for x in (rows.impulse, u, problem.mu, problem.lo, problem.hi))
    speed = float(np.abs(rows.b).max())
    return law_residuals(problem.layout, *lists, response, speed, exact)


@pytest.mark.parametrize("seed", range(4))
def test_residuals_of_rows_are_those_of_kernels(seed):
    """`row_residuals` and `law_residuals`, every kind of block, any impulses."""
    problem, rows, nv = as_rows(seed)
    report, z, u = np.zeros(8), np.zeros(nv), np.zeros(problem.m)
    row_residuals(rows, len(rows.kind), nv, z, u, report)
    np.testing.assert_allclose(
        report[:5], traced_residuals(problem, rows, u), rtol=TWINS
    )


@pytest.mark.parametrize("exact", (True, False))
def test_solvers_stop_by_the_law_that_is_published(exact):
    """`natural_step` of scaled rows is `law`, but for the 1e-9 of impulses in that."""
    for seed in range(4):
        rows, nv = legs_on_a_base(seed, feet=2)
        m, blocks = len(rows.b), len(rows.kind)
        rows.impulse[:] = 1e-3 * np.random.default_rng(seed).normal(size=m)
        scaled = allocate_solvers(rows, nv).scaled
        scale(rows, blocks, scaled)
        x, z = rows.impulse / scaled.T, np.zeros(nv)
        p, minus_u, s = (np.zeros(m) for _ in range(3))
        respond_to(rows, blocks, m, nv, scaled, x, z, p, minus_u, s, exact)
        step = natural_step(rows, blocks, scaled, x, minus_u, exact)
        u, report = np.zeros(m), np.zeros(8)
        row_residuals(rows, blocks, nv, z, u, report)
        wanted = traced_residuals(problem_of(rows, nv), rows, u, exact)[4]
        assert step == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_projections_of_rows_are_those_of_kernels(seed):
    """`project` and the projection of `admm_compiled`; bounds as matrices have them."""
    problem, rows, nv = as_rows(seed)
    scaled, blocks = allocate_solvers(rows, nv).scaled, problem.layout.blocks
    scale(rows, len(blocks), scaled)
    x = 3.0 * rows.impulse
    near = _projected(
        problem.layout, x.tolist(), problem.mu, problem.lo, problem.hi, scaled.T
    )
    for k in range(len(blocks)):
        project(rows, scaled, k, x)
    np.testing.assert_allclose(x, near, rtol=TWINS, atol=TWINS)
    lower, upper = problem.bounds
    for k, block in enumerate(blocks):
        c, w = weights(block, problem.mu.tolist())
        for r, i in enumerate(block.all):
            if is_cone(rows, k):
                largest = cone_coefficient(rows, k)
                assert largest == c
                assert r == 0 or row_weight(rows, k, r, largest) == w[r - 1]
            else:
                assert row_bounds(rows, k, r) == (lower[i], upper[i])


@pytest.mark.parametrize(
    ("method", "settings", "kernel"),
    (
        (sweep, (2000, 1e-13, 1.0), "projected_gauss_seidel"),
        (split, (2000, 1e-13, 1.0), "admm_compiled"),
    ),
)
def test_solvers_of_rows_and_kernels_agree(method, settings, kernel):
    """One answer where there is one: G positive definite, gentle friction."""
    for seed in range(3):
        problem = random_contacts("pd", seed, most=2, mus=(0.0, 0.1, 0.3))
        rows, nv = rows_of(problem)
        blocks, work = len(rows.kind), allocate_solvers(rows, nv)
        numbers = rows, blocks, problem.m, nv, work, np.zeros(8)
        assert method(*numbers, *settings) == 0
        traced = solve(problem, kernel, tolerance=1e-13, engine="plain")
        assert traced.converged
        np.testing.assert_allclose(
            rows.impulse, traced.impulses, atol=1e-9 * np.abs(rows.impulse).max()
        )


@pytest.mark.parametrize("seed", range(4))
def test_what_is_not_solved_takes_no_energy_alike(seed):
    """`take_no_energy` and `without_gain`, of impulses that would make some."""
    _, rows, nv = as_rows(seed)
    Y, part = dense(rows, nv), 0.0
    for size in (-3.0, 3.0):
        rows.impulse[:] = size * rows.b
        velocity = Y @ (Y.T @ rows.impulse) + rows.b
        best = without_gain(Vector(rows.impulse), Vector(velocity), rows.b.tolist())
        take_no_energy(rows, len(rows.kind), nv, allocate_solvers(rows, nv))
        np.testing.assert_allclose(rows.impulse, list(best), rtol=TWINS)
        part = max(part, np.abs(rows.impulse).max())
    assert part > 0.0


SHAPES = sphere(0.2), box(0.3, 0.2, 0.1), '<cylinder radius="0.1" length="0.4"/>'


@pytest.mark.parametrize("shape", (*SHAPES, "capsule"))
def test_points_and_gaps_of_half_spaces_are_one(shape):
    """Detection in machine code and the candidates of a kernel: gap, point, axes."""
    rng = np.random.default_rng(5)
    model = free_shape(shape)
    slope = HalfSpace("slope", (0.1, 0.2, -0.1), (0.3, -0.2, 1.0))
    surfaces = HalfSpace("floor"), slope
    pairs = ContactPairs(model, surfaces, margin=10.0)
    for _ in range(5):
        q = model.random(rng)
        X = model.joint[1].X(Vector(q.tolist())) @ model.Xtree[1]
        R, p = (np.asarray(part, float) for part in X.pose)
        poses = np.stack([np.eye(3), R]), np.stack([np.zeros(3), p])
        by_arrays = pairs.contacts_from_poses(*poses)
        by_kernel = candidates(model, [None, X], surfaces, None)
        assert len(by_arrays) == len(by_kernel)
        for one, two in zip(by_arrays, by_kernel, strict=True):
            assert one.gap == pytest.approx(float(two.gap), abs=TWINS)
            n, a, b = (np.array([float(x) for x in axis]) for axis in two.axes)
            np.testing.assert_allclose(one.normal, n, atol=TWINS)
            np.testing.assert_allclose(tangent(*one.normal), a, atol=TWINS)
            np.testing.assert_allclose(np.cross(n, a), b, atol=TWINS)
            W = unit_forces(one.normal[None], one.point[None])[0, :3]
            for w, force in zip(W, two.forces, strict=True):
                arm = np.array([float(x) for x in force.ang])
                push = R @ np.array([float(x) for x in force.lin])
                np.testing.assert_allclose(push, w[3:], atol=TWINS)
                moment = R @ arm + np.cross(p, push)
                np.testing.assert_allclose(moment, w[:3], atol=TWINS)


def free_shape(shape):
    """Return a floating body with a shape away from its origin."""
    extras = {}
    if shape == "capsule":
        entry = {"type": shape, "radius": 0.1, "length": 0.4, "xyz": [0.1, 0.2, 0.0]}
        extras, shape = {"collisions": {"b": [entry]}}, ""
    body = link("b", 1.0, (0.1, 0.2, 0.3), shape, origin=(0.1, 0.2, 0.0))
    return robot(body, joint("free", "floating", "base", "b"), **extras)
