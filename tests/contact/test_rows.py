"""Solvers on sparse rows: conversion, laws, agreement, warm starts, same bits."""

import numpy as np
import pytest
from contact_problems import box_on_plane, random_boxes, random_contacts, stack
from row_problems import (
    dense,
    legs_on_a_base,
    mixed_blocks,
    problem_of,
    stacked_boxes,
)

from dyn_core import contact
from dyn_core.contact import ConstraintProblem, residuals, solve
from dyn_core.contact.problem.rows import rows_of
from dyn_core.contact.solvers.admm import split
from dyn_core.contact.solvers.coulomb_newton import solve_coulomb
from dyn_core.contact.solvers.gauss_seidel import sweep
from dyn_core.contact.solvers.laws.law_residuals import row_residuals
from dyn_core.contact.solvers.proximal_newton import newton
from dyn_core.contact.solvers.solver_calls import ROW_SOLVERS, RowSolver
from dyn_core.contact.solvers.solver_memory import (
    FACTORISATIONS,
    ITERATIONS,
    NO_BUFFER,
    allocate_solvers,
)
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import SettingError

EXACT = ("admm", "coulomb_newton", "projected_gauss_seidel")
DIRECT = ("admm", "coulomb_newton")
KINDS = ("pd", "singular", "ratio")


def solved(name, problem, warm=None, **options):
    """Return status, impulses and report of a solver on rows."""
    rows, nv = rows_of(problem) if not isinstance(problem, tuple) else problem
    if warm is not None:
        rows.impulse[:] = warm
    solver = RowSolver(name, rows, nv, **options)
    status = solver.solve(len(rows.kind), len(rows.b))
    return status, rows.impulse.copy(), solver.report


def test_unknown_names_of_solvers_and_options_are_refused():
    """The nearest name is said; a misspelt option was ignored."""
    rows, nv = rows_of(mixed_blocks(1))
    with pytest.raises(SettingError, match="did you mean 'tolerance'"):
        RowSolver("admm", rows, nv, tolerence=1e-9)
    with pytest.raises(SettingError, match="did you mean 'admm'"):
        RowSolver("adm", rows, nv)


def velocity(problem, impulse):
    """Return G lambda + b."""
    return problem.matrix @ impulse + problem.b + problem.bias


@pytest.mark.parametrize("singular", (False, True))
def test_rows_make_the_matrix(singular):
    """G = Y Y.T; parts of G that do not meet have coordinates of their own."""
    problem = mixed_blocks(1, singular)
    rows, nv = rows_of(problem)
    Y = dense(rows, nv)
    np.testing.assert_allclose(Y @ Y.T, problem.matrix, atol=1e-12)
    assert nv == np.linalg.matrix_rank(problem.matrix)
    first, second = (
        {
            *rows.support[
                rows.support_start[k] : rows.support_start[k] + rows.support_count[k]
            ]
        }
        for k in (0, 9)
    )
    assert not first & second


@pytest.mark.parametrize("seed", range(6))
def test_residuals_are_those_of_the_laws(seed):
    """row_residuals is law_residuals, for any impulses of every kind of block."""
    problem, rng = mixed_blocks(seed), np.random.default_rng(seed)
    rows, nv = rows_of(problem)
    for size in (0.0, 0.1, 3.0):
        rows.impulse[:] = size * rng.normal(size=len(rows.b))
        report, z, u = np.zeros(8), np.zeros(nv), np.zeros(len(rows.b))
        row_residuals(rows, len(rows.kind), nv, z, u, report)
        np.testing.assert_allclose(
            u, velocity(problem, rows.impulse) + problem.compliance * rows.impulse,
            atol=1e-11,
        )  # fmt: skip
        np.testing.assert_allclose(
            report[:5], residuals(problem, rows.impulse), rtol=1e-9, atol=1e-11
        )


@pytest.mark.one_of(2)
@pytest.mark.parametrize("rows", (2, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_contacts_agree_with_enumeration(kind, rows):
    """Every impulse that is claimed is right; one velocity where there is one."""
    claims = dict.fromkeys(EXACT, 0)
    for seed in range(12):
        problem = random_contacts(kind, seed, rows, most=2 if rows == 3 else 3)
        size = np.abs(problem.b).max()
        reference = solve(problem, "enumeration", unique=rows == 2)
        for name in EXACT:
            status, impulse, report = solved(name, problem)
            claims[name] += status == 0
            if status:
                continue
            law = residuals(problem, impulse)
            assert law.law < 1e-6
            np.testing.assert_allclose(report[4], law.law, rtol=1e-3, atol=1e-9)
            if reference.status == "converged" and rows == 2:
                np.testing.assert_allclose(
                    velocity(problem, impulse), reference.velocities, atol=1e-6 * size
                )
                if name in DIRECT and kind == "pd":
                    np.testing.assert_allclose(
                        impulse, reference.impulses, atol=1e-8 * np.abs(impulse).max()
                    )
    assert claims["coulomb_newton"] == 12
    assert claims["admm"] >= 11
    assert claims["projected_gauss_seidel"] >= 9


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_agree_with_enumeration(kind):
    """Boxes, unilateral and free rows have one velocity."""
    for seed in range(12):
        problem = random_boxes(kind, seed)
        reference = solve(problem, "enumeration")
        size = np.abs(problem.b).max()
        for name in ("admm", "coulomb_newton", "convex_newton"):
            status, impulse, _ = solved(name, problem)
            assert status == 0, (name, seed)
            np.testing.assert_allclose(
                velocity(problem, impulse), reference.velocities, atol=1e-7 * size
            )


@pytest.mark.parametrize("name", (*EXACT, "convex_newton"))
@pytest.mark.parametrize("singular", (False, True))
def test_every_kind_of_block_at_once(name, singular):
    """Cones of all sizes, boxes, unilateral and free rows, in two islands."""
    wanted = 0
    for seed in range(6):
        problem = mixed_blocks(seed, singular)
        status, impulse, report = solved(name, problem)
        wanted += status == 0
        if name == "convex_newton":
            assert status == 0
        elif status == 0:
            assert residuals(problem, impulse).law < 1e-6
            assert max(report[:4]) < 1e-5
    assert wanted >= (6 if name == "coulomb_newton" else 3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_relaxation_has_one_velocity(kind):
    """As convex_newton on a matrix finds it."""
    for seed in range(8):
        problem = random_contacts(kind, seed, mus=(0.0, 0.5, 1.0, 10.0))
        reference = solve(problem, "convex_newton")
        status, impulse, _ = solved("convex_newton", problem)
        assert status == 0
        assert reference.converged
        np.testing.assert_allclose(
            velocity(problem, impulse),
            reference.velocities,
            atol=1e-5 * np.abs(problem.b).max(),
        )


def test_rates_of_sweeps():
    """Gauss-Seidel contracts by m2 / (m1 + m2); its first iterates are those of C6."""
    wanted = [[0.0981, 0.04905], [0.14715, 0.073575], [0.171675, 0.0858375]]
    for k, iterate in enumerate(wanted, 1):
        _, impulse, _ = solved("projected_gauss_seidel", stack(1, 1), max_iterations=k)
        np.testing.assert_allclose(impulse, iterate, rtol=1e-12)
    for ratio in (1e3, 1e6):
        for name in (*DIRECT, "convex_newton"):
            status, impulse, report = solved(name, stack(1, ratio))
            assert status == 0
            assert report[5] < 200
            h_g = 0.01 * 9.81
            np.testing.assert_allclose(
                impulse, [(1 + ratio) * h_g, ratio * h_g], rtol=1e-7
            )


@pytest.mark.parametrize("masses", ([1.0] * 10, 10.0 ** np.linspace(0, 4, 10)))
def test_ten_boxes(masses):
    """Redundant contacts: each layer carries what is above it, and all is at rest."""
    for push in (0.0, 0.5):  # sticks, and does not tip
        rows, nv = stacked_boxes(masses, push=push)
        problem = problem_of(rows, nv)
        for name in DIRECT:
            status, impulse, report = solved(name, stacked_boxes(masses, push=push))
            assert status == 0, (name, push)
            hard = push > 0 and masses[-1] > 1  # Newton steps end at 1.6e-8 of it
            assert name == "admm" or report[5] < (300 if hard else 60)
            carried = impulse.reshape(10, 4, 3)[:, :, 0].sum(axis=1)
            weight = 9.81e-3 * np.cumsum(masses[::-1])[::-1]
            np.testing.assert_allclose(carried, weight, rtol=1e-5)
            u = velocity(problem, impulse)
            np.testing.assert_allclose(u, 0, atol=1e-6 * np.abs(rows.b).max())


@pytest.mark.parametrize("name", (*EXACT, "convex_newton"))
def test_an_unchanged_problem_costs_no_iteration(name):
    """From its solution, a problem at rest is seen to be solved."""
    stack_or_legs = (stacked_boxes([1.0] * 4), legs_on_a_base(1))
    for rows, nv in stack_or_legs[name == "projected_gauss_seidel" :]:
        solver = RowSolver(name, rows, nv, tolerance=1e-7)
        assert solver.solve(len(rows.kind), len(rows.b)) == 0
        cold, first = solver.report[5], rows.impulse.copy()
        solver = RowSolver(name, rows, nv, tolerance=1e-6)
        assert solver.solve(len(rows.kind), len(rows.b)) == 0
        assert solver.report[5] <= min(2, cold - 1)
        np.testing.assert_allclose(rows.impulse, first, atol=1e-6 * first.max())


def test_a_slightly_changed_problem_costs_a_few():
    """Velocities that change by a thousandth: seven Newton steps, and no more."""
    rng = np.random.default_rng(3)
    for rows, nv in (
        stacked_boxes([1.0] * 10),
        legs_on_a_base(1),
        legs_on_a_base(2, legs=2, feet=8, joints=6),
    ):
        _, first, _ = solved("coulomb_newton", (rows, nv))
        Y = dense(rows, nv)
        change = 1e-3 * np.abs(rows.b).max() * (Y @ rng.normal(size=nv))
        moved = rows._replace(b=rows.b + change)
        status, _, report = solved("coulomb_newton", (moved, nv), warm=first)
        assert status == 0
        assert report[5] <= 10
        assert residuals(problem_of(moved, nv), moved.impulse).law < 1e-6


def test_random_legs_are_solved():
    """Friction up to two on random legs, from zero: most in less than twenty steps."""
    steps = []
    for seed in range(60):
        mu = (0.1, 0.6, 1.0, 2.0)[seed % 4]
        rows, nv = legs_on_a_base(seed, 2 + seed % 5, 1 + seed % 4, 2 + seed % 5, mu)
        status, impulse, report = solved("coulomb_newton", (rows, nv))
        assert status == 0, seed
        assert residuals(problem_of(rows, nv), impulse).law < 1e-6
        steps.append(report[5])
    assert np.median(steps) < 20
    assert sum(count > 60 for count in steps) < 5


def test_islands_do_not_meet():
    """Two problems side by side have the impulses of each alone."""
    one, two = random_contacts("pd", 1), random_contacts("pd", 4)
    zero = np.zeros((one.m, two.m))
    both = ConstraintProblem(
        [*one.layout.parts, *two.layout.parts],
        np.block([[one.matrix, zero], [zero.T, two.matrix]]),
        np.append(one.b, two.b),
        mu=np.append(one.mu, two.mu),
    )
    for name in DIRECT:
        _, together, _ = solved(name, both, tolerance=1e-12)
        alone = [solved(name, p, tolerance=1e-12)[1] for p in (one, two)]
        np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-8)


@pytest.mark.parametrize("name", (*EXACT, "convex_newton"))
@pytest.mark.parametrize("mu", (0.0, 1e-300, 1e-12))
def test_degenerate_cones_push(name, mu):
    """Without friction an open contact has no impulse, a closed one pushes."""
    for count, coefficients in ((1, 0), (2, 1), (3, 1), (4, 2), (6, 3)):
        for normal in (0.1, 0.0, -1.0):
            b = np.append(normal, [0.3, -0.2, 0.1, 0.05, -0.4][: count - 1])
            problem = ConstraintProblem(
                [("contact", count)], np.eye(count), b, mu=[mu] * coefficients
            )
            status, impulse, report = solved(name, problem)
            assert status == 0
            wanted = np.append(max(-normal, 0), np.zeros(count - 1))
            np.testing.assert_allclose(impulse, wanted, atol=2e-8)
            assert report[0] == 0


def test_rows_that_nothing_moves():
    """Y = 0: an open contact is at rest; torsion without a coefficient has no impulse."""
    for name in (*EXACT, "convex_newton"):
        still = ConstraintProblem(["contact"], np.zeros((3, 3)), [0.1, 0.2, 0], mu=0.5)
        status, impulse, _ = solved(name, still)
        assert status == 0
        assert not impulse.any()
        twist = ConstraintProblem(
            [("contact", 4)], np.eye(4), [-1, 0.2, 0, 1.0], mu=[0.5, 0.0]
        )
        status, impulse, _ = solved(name, twist)
        assert status == 0
        assert impulse[3] == 0


@pytest.mark.parametrize("name", ROW_SOLVERS)
def test_no_solution_is_none(name):
    """Contradictions end soon, and are called infeasible but by sweeps."""
    push = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])
    J = np.vstack([push, -push])
    squeezed = ConstraintProblem(
        ["contact"] * 2, J @ J.T, [-1.0, 0.1, 0, -1, -0.1, 0], mu=0.5
    )
    against = ConstraintProblem(["bilateral"] * 2, [[1.0, 1], [1, 1]], [-1.0, 1.0])
    stuck = ConstraintProblem(["unilateral"], [[0.0]], [-1.0])
    for problem in (squeezed, against, stuck):
        status, impulse, report = solved(name, problem)
        assert status == (1 if name == "projected_gauss_seidel" else 2)
        assert np.isfinite(impulse).all()
        assert report[5] <= 1000


@pytest.mark.parametrize("name", ROW_SOLVERS)
def test_what_is_not_finite_ends(name):
    """NaN in the velocities is not converged."""
    problem = random_contacts("pd", 1)
    rows, nv = rows_of(problem)
    rows.b[0] = np.nan
    status, _, report = solved(name, (rows, nv))
    assert status == 1
    assert not report[4] <= 1e-6


@pytest.mark.parametrize("name", ROW_SOLVERS)
def test_the_same_problem_has_the_same_bits(name):
    """Nothing of an earlier problem stays in the work arrays."""
    problem, other = mixed_blocks(2), mixed_blocks(3)
    _, fresh, _ = solved(name, problem)
    rows, nv = rows_of(other)
    solver = RowSolver(name, rows, nv)
    solver.solve(len(rows.kind), len(rows.b))
    again, _ = rows_of(problem)
    for array, new in zip(rows, again, strict=True):
        array[:] = new
    solver.solve(len(rows.kind), len(rows.b))
    np.testing.assert_array_equal(rows.impulse, fresh)


@pytest.mark.parametrize("seed", (0, 10))
def test_all_steps_are_counted(seed):
    """Two methods of one step each, then those that refine an almost exact result."""
    problem = random_contacts("pd", seed)
    _, exact, _ = solved("coulomb_newton", problem, tolerance=1e-12)
    error = np.random.default_rng(0).normal(size=exact.shape)
    rows, nv = rows_of(problem)
    rows.impulse[:] = exact * (1.0 + {0: 1e-5, 10: 1e-3}[seed] * error)
    report, work = np.zeros(8), allocate_solvers(rows, nv)
    m = len(rows.b)
    assert solve_coulomb(rows, len(rows.kind), m, nv, work, report, 1, 1e-13, 0) == 0
    refined = report[FACTORISATIONS]
    assert refined == {0: 1.0, 10: 2.0}[seed]
    assert report[ITERATIONS] == 2.0 + refined


@pytest.mark.one_of(5)  # compiling both forms of one takes seconds
@pytest.mark.parametrize(
    ("function", "settings"),
    (
        (newton, (60, 1e-9, 1e-2, True)),
        (newton, (60, 1e-9, 1e-2, False)),
        (split, (60, 1e-9, 1.0)),
        (solve_coulomb, (3, 1e-9, 90)),
        (sweep, (20, 1e-9, 1.2)),
    ),
)
def test_machine_code_has_the_bits_of_python(function, settings):
    """And reads no entry that is not there."""
    if host_machine.missing():
        pytest.skip("no compiler of machine code here")
    for problem in (
        mixed_blocks(2),
        random_contacts("ratio", 3),
        box_on_plane(0.4, 0.4)[0],
    ):
        results = []
        for run in (function, compiled(function), compiled(function, checked=True)):
            rows, nv = rows_of(problem)
            report, work = np.zeros(8), allocate_solvers(rows, nv)
            status = run(rows, len(rows.kind), len(rows.b), nv, work, report, *settings)
            results.append((int(status), rows.impulse.tolist(), report.tolist()))
        assert results[0] == results[1] == results[2]


def test_rows_in_use_are_counted():
    """Arrays may be longer than the problem: what lies beyond is not read."""
    rows, nv = legs_on_a_base(4)
    short, _ = legs_on_a_base(4)
    for array in (rows.b[6:], rows.y, rows.mu[2:]):
        array[...] = np.nan if array is not rows.y else array
    rows.y[int(rows.y_start[2]) :] = np.nan
    two = {"start", "kind", "count", "support_start", "support_count", "y_start"}
    ends = dict.fromkeys(two, 2) | {"mu": 2, "support": 18, "y": 54}
    cut = short._make(
        getattr(short, name)[: ends.get(name, 6)].copy() for name in short._fields
    )
    for name in ROW_SOLVERS:
        rows.impulse[:] = 0.0
        cut.impulse[:] = 0.0
        assert RowSolver(name, rows, nv).solve(2, 6) == 0
        assert RowSolver(name, cut, nv).solve(2, 6) == 0
        np.testing.assert_array_equal(rows.impulse[:6], cut.impulse)
        assert not rows.impulse[6:].any()


def test_too_little_room_is_said():
    """An envelope that does not fit changes nothing."""
    rows, nv = stacked_boxes([1.0] * 3)
    work, report = allocate_solvers(rows, nv, entries=30), np.zeros(8)
    numbers = (len(rows.kind), len(rows.b), nv, work, report)
    assert compiled(newton)(rows, *numbers, 60, 1e-9, 1e-2, True) == NO_BUFFER
    assert compiled(split)(rows, *numbers, 60, 1e-9, 1.0) == NO_BUFFER
    assert not rows.impulse.any()


def test_the_solver_by_name():
    """solve(problem, "coulomb_newton"): Coulomb's law on an incline, C1."""
    problem, J, H, free = box_on_plane(np.radians(35), 0.4)
    solution = contact.solve(problem, "coulomb_newton")
    assert solution.converged
    assert solution.exact
    slide = free + np.linalg.solve(H, J.T @ solution.impulses)
    assert slide[0] == pytest.approx(0.0241243221881, rel=1e-8)
    forces = solution.impulses.reshape(4, 3)[:, 0].sum() / 0.01
    assert forces == pytest.approx(16.071763109, rel=1e-8)


@pytest.mark.parametrize("name", ROW_SOLVERS)
def test_blocks_may_share_a_support(name):
    """Contacts of one pair of bodies may point to one list of coordinates."""
    rows, nv = stacked_boxes([1.0] * 3)
    lists = [
        (int(rows.support_start[k]), int(rows.support_count[k])) for k in (0, 4, 8)
    ]
    starts = np.repeat([0, lists[0][1], lists[0][1] + lists[1][1]], 4)
    shared = rows._replace(
        support_start=starts,
        support=np.concatenate([rows.support[a : a + n] for a, n in lists]),
        impulse=rows.impulse.copy(),
    )
    assert len(shared.support) < len(rows.support) / 3
    wanted = solved(name, (rows, nv))
    result = solved(name, (shared, nv))
    assert result[0] == wanted[0]
    np.testing.assert_array_equal(result[1], wanted[1])
