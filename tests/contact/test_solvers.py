"""Every solver of constraint problems against every other, and what they promise."""

import importlib

import numpy as np
import pytest
from contact_problems import box_on_plane, random_boxes, random_contacts, stack

import dyn_core as dyn
from dyn_core import contact
from dyn_core.contact import (
    ConstraintLayout,
    ConstraintProblem,
    RowSolver,
    residuals,
    rows_of,
    solve,
)
from dyn_core.contact.solvers.laws.block_responses import (
    OPEN,
    SLIP,
    STICK,
    cone_response,
)
from dyn_core.engines import available
from dyn_core.engines.machine_code import compiled
from dyn_plugins.contact.lemke import lemke
from dyn_plugins.references.enumeration import solutions

NAMES = dyn.solvers(dyn.problems.CONTACT_SOLVE, references=True)
CONVEX = ("convex_newton", "interior_point")
KINDS = ("pd", "singular", "ratio")


def serving(problem, names=NAMES):
    """Return the solvers that serve a layout and whose extras are installed."""
    for name in names:
        if name == "interior_point" and importlib.util.find_spec("clarabel") is None:
            continue
        if dyn.solver(name).refusal(problem.layout) is None:
            yield name


def proof(problem, x):
    """Return the worst breach of the exact laws, independent of the library [m/s]."""
    u = problem.matrix @ x + problem.b + problem.bias + problem.compliance * x
    worst, row = 0.0, 0
    r = np.diag(problem.matrix) + problem.compliance
    for kind, rows in problem.layout.parts:
        part = slice(row, row + rows)
        if kind == "contact":
            mu = problem.mu[[b.start for b in problem.layout.contacts].index(row)]
            n, t = x[part][0], x[part][1:]
            slide = np.linalg.norm(u[part][1:])
            gaps = [
                min(n * r[row], u[row]),
                max(np.linalg.norm(t) - mu * n, 0) * r[row],
            ]
            if slide > 1e-6 * np.abs(problem.b).max():
                gaps += list((t + mu * n * u[part][1:] / slide) * r[row])
            worst = max(worst, np.abs(gaps).max())
        elif kind in ("bilateral", "prescribed"):
            worst = max(worst, np.abs(u[part]).max())
        else:
            lo, hi = (
                (problem.lo[part], problem.hi[part]) if kind == "box" else (0, np.inf)
            )
            stay = np.clip(x[part] - u[part] / r[part], lo, hi) - x[part]
            worst = max(worst, np.abs(stay * r[part]).max())
        row += rows
    return worst


@pytest.mark.parametrize("rows", (2, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_contacts_by_every_solver(kind, rows):
    """What claims to be exact and converged is; and all agree where one motion exists."""
    claims = dict.fromkeys(NAMES, 0)
    seeds = 5 if rows == 3 else 8
    for seed in range(seeds):
        problem = random_contacts(kind, seed, rows, most=2 if rows == 3 else 3)
        size = np.abs(problem.b).max()
        reference = solve(problem, "enumeration", unique=rows == 2)
        assert (
            not reference.converged or proof(problem, reference.impulses) < 1e-6 * size
        )
        for name in serving(problem):
            options = {"engine": "graph"} if name.startswith("projected") else {}
            solution = solve(problem, name, **options)
            claims[name] += solution.converged
            if not solution.converged or not solution.exact:
                continue
            assert proof(problem, solution.impulses) < 3e-6 * size, (name, seed)
            assert solution.residuals.law < 1e-6
            assert (
                solution.energy_change <= 1e-9 * size**2 / np.diag(problem.matrix).min()
            )
            if reference.status == "converged" and kind != "singular":
                np.testing.assert_allclose(
                    solution.velocities, reference.velocities, atol=3e-6 * size
                )
    for name in ("coulomb_newton", "convex_newton", "lemke", "enumeration"):
        assert claims[name] == seeds, (name, claims)
    assert claims["admm"] >= seeds - 1, claims  # no proof that it converges
    assert claims["projected_gauss_seidel"] >= seeds - 3, claims


@pytest.mark.parametrize("kind", KINDS)
def test_convex_solvers_agree(kind):
    """Newton and interior point find the one velocity of the relaxation."""
    pytest.importorskip("clarabel", reason="extra qp is not installed")
    for seed in range(8):
        problem = random_contacts(kind, seed, mus=(0.0, 0.5, 1.0, 10.0))
        first, second = (solve(problem, name) for name in CONVEX)
        assert first.converged
        assert second.converged
        size = np.abs(problem.b).max()
        np.testing.assert_allclose(
            first.velocities, second.velocities, atol=3e-5 * size
        )


@pytest.mark.parametrize("mu", (0.0, 0.1, 1.0, 10.0))
def test_friction_from_none_to_ten(mu):
    """Whatever the coefficient: proven, or said not to be."""
    solved = 0
    for seed in range(6):
        for kind in KINDS:
            problem = random_contacts(kind, seed, mus=(mu,))
            size = np.abs(problem.b).max()
            for name in ("admm", "admm_compiled", "projected_gauss_seidel"):
                options = {"engine": "graph"} if name[0] == "p" else {}
                solution = solve(problem, name, **options)
                solved += solution.converged
                breach = proof(problem, solution.impulses)
                assert not solution.converged or breach < 3e-6 * size, (
                    name,
                    seed,
                    kind,
                )
    assert solved >= (36 if mu < 0.5 else 24)


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_by_every_solver(kind):
    """Boxes, unilateral and free rows have one velocity, and all find it."""
    for seed in range(8):
        problem = random_boxes(kind, seed)
        size = np.abs(problem.b).max()
        reference = solve(problem, "enumeration")
        assert reference.converged, seed
        for name in serving(problem):
            if name == "soft_contact":
                continue
            options = {"engine": "graph"} if name.startswith("projected") else {}
            solution = solve(problem, name, **options)
            assert solution.exact
            if name != "projected_gauss_seidel" or kind == "pd":
                assert solution.converged, (name, seed)
            if solution.converged:
                assert proof(problem, solution.impulses) < 3e-5 * size, (name, seed)
                np.testing.assert_allclose(
                    solution.velocities, reference.velocities, atol=3e-5 * size
                )


def test_all_active_sets_of_small_problems():
    """Principal pivoting and Lemke against all sets, m up to 8, PD and singular."""
    rng = np.random.default_rng(7)
    for trial in range(30):
        m = int(rng.integers(1, 9))
        J = rng.normal(size=(m, int(rng.integers(m // 2 + 1, m + 3))))
        problem = ConstraintProblem(
            ["unilateral"] * m, J @ J.T, J @ rng.normal(size=J.shape[1])
        )
        reference = solve(problem, "enumeration")
        for name in ("principal_pivoting", "lemke", "admm"):
            solution = solve(problem, name)
            assert solution.converged, (name, trial)
            np.testing.assert_allclose(
                solution.velocities, reference.velocities, atol=1e-8
            )


def test_polyhedral_friction_approaches_the_cone():
    """More facets, less error: at most 1 - cos(pi / facets) of friction."""
    problem = ConstraintProblem(["contact"], np.eye(3), [-1.0, 2.0, 0.7], mu=0.5)
    exact = solve(problem, "enumeration").impulses
    for facets in (4, 8, 32, 128):
        solution = solve(problem, "lemke", facets=facets)
        assert not solution.exact
        power = (
            solution.impulses[1:]
            @ solution.velocities[1:]
            / (exact[1:] @ exact[1:]) ** 0.5
        )
        most = -np.linalg.norm(solution.velocities[1:])
        assert most * (1 + 1e-9) <= power <= most * np.cos(np.pi / facets) * (1 - 1e-9)


@pytest.mark.parametrize("rows", (4, 6))
def test_torsion_and_rolling_stand_in_one_ellipsoid(rows):
    """ADMM, Gauss-Seidel and enumeration agree on elliptic cones."""
    rng = np.random.default_rng(rows)
    for _ in range(6):
        J = rng.normal(size=(rows, rows + 2))
        mu = [0.6, 0.05] if rows == 4 else [0.6, 0.05, 0.02]
        problem = ConstraintProblem(
            [("contact", rows)], J @ J.T, J @ rng.normal(size=rows + 2), mu=mu
        )
        minima = [
            solve(problem, n) for n in ("admm", "projected_gauss_seidel", "enumeration")
        ]
        assert all(s.converged and s.exact for s in minima)
        assert max(minima[0].residuals[:4]) < 1e-7
        for other in minima[1:]:
            np.testing.assert_allclose(
                minima[0].velocities, other.velocities, atol=1e-6
            )


@pytest.mark.parametrize("name", NAMES)
def test_no_solution_is_no_answer(name):
    """A row that no impulse moves, or rows that contradict: status tells, no garbage."""
    if name == "interior_point":
        pytest.importorskip("clarabel", reason="extra qp is not installed")
    stuck = ConstraintProblem(["unilateral"], [[0.0]], [-1.0])
    against = ConstraintProblem(["bilateral"] * 2, [[1.0, 1], [1, 1]], [-1.0, 1.0])
    squeezed = ConstraintProblem(["unilateral"] * 2, [[1.0, -1], [-1, 1]], [-1.0, -1.0])
    for problem in (stuck, against, squeezed):
        solution = solve(problem, name)
        if name == "soft_contact":
            assert solution.converged
            assert not solution.exact  # what yields always gives way
            assert max(solution.residuals[1:3]) > 1e-3
        else:
            assert not solution.converged, problem
            if name not in ("projected_gauss_seidel", "admm_compiled"):
                assert solution.status in ("infeasible", "ray")


@pytest.mark.parametrize("kind", ("unilateral", "contact"))
def test_rows_without_inertia_are_measured_with_a_response_of_one(kind):
    """Where G is zero, an impulse on an open row is as far off as it is large.

    law = |max(0, lambda - u) - lambda| / |b|
    """
    rows = 1 if kind == "unilateral" else 3
    b = np.append(1.0, np.zeros(rows - 1))
    problem = ConstraintProblem([(kind, rows)], np.zeros((rows, rows)), b)
    np.testing.assert_array_equal(problem.blockwise, np.ones(rows))
    for size, wanted in ((0.2, 0.2), (3.0, 1.0)):
        impulse = np.append(size, np.zeros(rows - 1))
        assert problem.law(impulse) == pytest.approx(wanted, rel=1e-6)
        assert residuals(problem, impulse).law == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("name", ("projected_gauss_seidel", "admm_compiled"))
@pytest.mark.parametrize("engine", available())
def test_texts_run_on_every_engine(engine, name):
    """A text gives the same on each engine, alone and in a batch."""
    layout = ConstraintLayout.of(
        "contact", ("contact", 4), "box", "unilateral", ("bilateral", 2)
    )
    rng = np.random.default_rng(5)
    m = layout.m
    J = rng.normal(size=(m, m + 3))
    G, b = J @ J.T, rng.normal(size=(5, m))
    rest = (
        [0.5, 0.3, 0.02],
        -0.2 * np.ones(m),
        0.1 * np.ones(m),
        1e-3 * np.ones(m),
        np.zeros(m),
    )
    solver = dyn.solver(name)
    wanted = solver.build(layout, engine="plain")
    program = solver.build(layout, engine=engine)
    batch = program(G, b, *rest)
    assert len(set(batch.iterations)) > 1
    for k in range(5):
        alone, plain = program(G, b[k], *rest), wanted(G, b[k], *rest)
        assert plain.status == 0
        for one, row, true in zip(alone, batch, plain, strict=True):
            np.testing.assert_array_equal(one, row[k])
            np.testing.assert_allclose(one, true, rtol=1e-9, atol=1e-9)


def test_a_function_serves_where_a_matrix_would():
    """It is called once for each row, and for the velocities of the result."""
    problem, *_ = box_on_plane(0.4, 0.4)
    G, calls = problem.matrix, []

    def sweep(x):
        calls.append(1)
        return G @ x

    free = ConstraintProblem(
        problem.layout, sweep, problem.b, mu=0.4, diagonal=np.diag(G)
    )
    dense = solve(problem, "projected_gauss_seidel")
    solution = solve(free, "projected_gauss_seidel")
    assert solution.converged
    assert problem.m <= len(calls) <= problem.m + 2
    np.testing.assert_allclose(solution.velocities, dense.velocities, atol=1e-8)
    np.testing.assert_allclose(
        solve(free, "admm").velocities, dense.velocities, atol=1e-8
    )
    mixed = random_boxes("pd", 3)
    sweeps = ConstraintProblem(
        mixed.layout,
        lambda x: mixed.matrix @ x,
        mixed.b,
        lo=mixed.lo,
        hi=mixed.hi,
        diagonal=np.diag(mixed.matrix),
    )
    solution = solve(sweeps, "projected_gauss_seidel")
    np.testing.assert_allclose(
        solution.velocities, solve(mixed, "lemke").velocities, atol=1e-7
    )


@pytest.mark.parametrize("name", ("admm", "projected_gauss_seidel", "convex_newton"))
def test_warm_start_by_ids(name):
    """From the last step's impulses, in another order, fewer iterations are needed."""
    cold = solve(stack(1, 20), name)
    G, b = stack(1, 20).matrix[::-1, ::-1], stack(1, 20).b[::-1]
    swapped = ConstraintProblem(["unilateral"] * 2, G, b, ids=("s", "g"))
    warm = solve(swapped, name, warm=cold)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.impulses, cold.impulses[::-1], rtol=1e-6)
    other = ConstraintProblem(
        ["unilateral", ("bilateral", 2)], np.eye(3), -np.ones(3), ids=("g", "s")
    )
    np.testing.assert_array_equal(other.warm(cold), [cold.impulses[0], 0, 0])
    assert not other.warm(None).any()
    with pytest.raises(dyn.ModelError, match="'g'.: valid: numbers"):
        other.warm({"g": [10**400]})


def test_inverse_contact_dynamics():
    """Velocities of soft rows give back their impulses."""
    for seed in range(6):
        rigid = random_contacts("pd", seed)
        soft = ConstraintProblem(
            rigid.layout, rigid.G, rigid.b, mu=rigid.mu, compliance=0.1
        )
        solution = solve(soft, "admm", tolerance=1e-13)
        back = contact.impulse_of_velocity(soft, solution.velocities)
        np.testing.assert_allclose(back, solution.impulses, atol=1e-8)
    with pytest.raises(
        dyn.ModelError, match=r"compliance\[0\] of block 0 \(contact\) is zero"
    ):
        contact.impulse_of_velocity(rigid, solution.velocities)


def test_sap_projection_by_hand():
    """y = (1, 2), mu = 0.5, R = (1e-3, 4e-3): (2.5, 1.25); open below the polar cone."""
    response = compiled(cone_response)
    mode, n, factor = response(0.5, 1.0, 2.0, 1e-3, 4e-3, False)
    assert (mode, n, 2.0 * factor) == (SLIP, pytest.approx(2.5), pytest.approx(1.25))
    assert response(0.5, 3.0, 0.5, 1e-3, 4e-3, False) == (STICK, 3.0, 1.0)
    assert response(0.5, -5.0, 0.1, 1e-3, 4e-3, False) == (OPEN, 0.0, 0.0)
    mode, n, factor = response(0.5, 1.0, 2.0, 1e-3, 4e-3, True)  # Coulomb: n stays
    assert (mode, n, 2.0 * factor) == (SLIP, 1.0, 0.5)


@pytest.mark.parametrize("name", ("admm", "convex_newton", "soft_contact"))
def test_solvers_of_matrices_are_those_of_rows(name):
    """One algorithm, one place: the bits of a RowSolver on the rows of a matrix."""
    rng = np.random.default_rng(4)
    J = rng.normal(size=(6, 8))
    soft = 0.1 if name == "soft_contact" else 0.0
    problem = ConstraintProblem(
        ["contact"] * 2, J @ J.T, J @ rng.normal(size=8), mu=0.4, compliance=soft
    )
    rows, nv = rows_of(problem)
    one = "convex_newton" if name == "soft_contact" else name
    defaults = dict(dyn.solver(name).options)
    on_rows = RowSolver(
        one,
        rows,
        nv,
        max_iterations=defaults["max_iterations"],
        tolerance=defaults["tolerance"],
    )
    assert on_rows.solve(2, 6) == 0
    solution = solve(problem, name)
    np.testing.assert_array_equal(solution.impulses, rows.impulse)
    assert solution.iterations == on_rows.report[5]


def test_residuals_prove_and_disprove():
    """They vanish at a solution, and each grows by the breach it names."""
    problem = ConstraintProblem(
        ["contact", "unilateral"], np.eye(4), [-1.0, 2, 0, 3], mu=0.5
    )
    good = [1.0, -0.5, 0, 0]
    assert max(residuals(problem, good)) == 0
    assert residuals(problem, [-1.0, 0, 0, 0]).primal == 1.0
    assert residuals(problem, [1.0, 0.5, 0, 0]).dissipation == pytest.approx(2.5)
    assert residuals(problem, [0.0, 0, 0, 0]).dual == 1.0
    assert residuals(problem, [1.0, -0.5, 0, 0.1]).complementarity == pytest.approx(
        0.31
    )
    assert residuals(problem, [0.9, -0.45, 0, 0]).law > 0.01


def test_reports():
    """Names, ids, rank, energy and exactness are on the solution."""
    problem = ConstraintProblem(
        ["contact", "unilateral"], np.diag([1.0, 1, 1, 2]), [-1.0, 2, 0, -1], mu=0.5,
        names=("foot", "knee"), ids=(7, "k"),
    )  # fmt: skip
    solution = solve(problem, "admm")
    np.testing.assert_allclose(solution.of("knee"), 0.5, rtol=1e-8)
    assert set(solution.by_id) == {7, "k"}
    assert solution.rank == 4
    assert solution.condition == pytest.approx(2)
    kinetic = np.sum((solution.velocities**2 - problem.b**2) / [1, 1, 1, 2]) / 2
    assert solution.energy_change == pytest.approx(kinetic)
    with pytest.raises(
        dyn.ModelError, match="no block is called 'hip'; valid: foot, knee"
    ):
        solution.of("hip")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_solve(name):
    """A layout without rows has an empty answer, of every solver."""
    if name == "interior_point":
        pytest.importorskip("clarabel", reason="extra qp is not installed")
    solution = solve(ConstraintProblem([], np.zeros((0, 0)), []), name)
    assert solution.impulses.shape == (0,)
    assert solution.converged


ONE = {"layout": ["contact"], "G": np.eye(3), "b": np.zeros(3)}
ELLIPSE = {
    "layout": [("contact", 4)],
    "G": np.eye(4),
    "b": np.zeros(4),
    "compliance": 1.0,
}
BAD = (
    ({"mu": -0.1}, r"mu\[0\] of block 0 'foot' \(contact\) is -0.1; valid: 0 or more"),
    ({"mu": [0.1, 0.2]}, r"mu: shape \(2,\); valid: \(1,\)"),
    ({"b": [0, np.nan, 0]}, r"b\[1\] of block 0 'foot' \(contact\) is nan"),
    ({"b": np.zeros(2)}, r"b: shape \(2,\); valid: \(3,\)"),
    ({"b": ["x", 0, 0]}, "b: valid: numbers"),
    ({"G": np.eye(2)}, r"G: shape \(2, 2\); valid: \(3, 3\)"),
    ({"G": np.eye(3) + np.eye(3, k=1)}, r"G\[0, 1\] .* not symmetric"),
    ({"G": -np.eye(3)}, r"G\[0, 0\] .* negative on the diagonal"),
    ({"G": np.inf * np.ones((3, 3))}, r"G\[0, 0\] .* not finite"),
    ({"G": lambda x: x}, "diagonal: missing"),
    ({"compliance": -1.0}, r"compliance\[0\] of block 0 .* valid: 0 or more"),
    ({"compliance": [0, 1, 2.0], "mu": 1.0}, "tangent rows differ"),
    (ELLIPSE | {"mu": [0.5, 0.2]}, "one compliance, times .largest mu / own mu"),
    (ELLIPSE | {"mu": [0.5, 0.0]}, "torsion and rolling, or 0 if one mu of the block is 0"),
    ({"layout": ["box"] * 3, "lo": 1.0, "hi": 0.0}, r"lo\[0\] of block 0 .* not above hi"),
    ({"layout": ["box"] * 3, "lo": np.nan}, r"lo\[0\] of block 0"),
    ({"layout": ["box"] * 3, "lo": 0.0, "hi": [1.0, 1.0, -1.0]}, r"lo\[2\] of block 2 .* not above hi"),
    ({"layout": ["joint"]}, "kind 'joint'; valid: bilateral"),
    ({"layout": [("contact", 5)]}, r"block 0 \(contact\): 5 rows; valid: 1, 2, 3, 4, 6"),
    ({"ids": ("a", "b")}, "ids: 2; valid: 1, one per block"),
    ({"ids": "a"}, "ids: 'a'; valid: 1 of them"),
    ({"ids": ([],)}, "ids: .*unhashable"),
    ({"layout": ["box"] * 3, "ids": ("a", "b", "a")}, "ids: 'a' occurs twice"),
    ({"bias": np.inf}, r"bias\[0\]"),
)  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_is_refused(change, message):
    """The error says which field of which block, and what would be valid."""
    layout = change.get("layout", ONE["layout"])
    names = {"names": ("foot",)} if len(layout) == 1 else {}
    with pytest.raises(ValueError, match=message):
        ConstraintProblem(**{**ONE, **names, **change})


def test_given_arrays_are_left_alone():
    """Integers, read-only and strided arrays serve; nothing given is written to."""
    G = np.asfortranarray(np.eye(6)[::2, ::2])
    b = np.array([-1, 2, 0])
    b.flags.writeable = False
    solution = solve(ConstraintProblem(["contact"], G, b, mu=1), "admm")
    assert solution.converged
    assert not solution.problem.G.flags.writeable
    G[0, 0] = 5.0
    assert solution.problem.G[0, 0] == 1


def test_wrong_solvers_and_options_are_refused(monkeypatch):
    """Another Signature, a layout with friction, options, a missing extra."""
    problem = ConstraintProblem(["contact"], np.eye(3), np.zeros(3), mu=0.5)
    with pytest.raises(
        dyn.SignatureError, match="'rnea' solves inverse_dynamics.*admm"
    ):
        solve(problem, "rnea")
    with pytest.raises(
        dyn.UnsupportedError, match="block 0 is a contact with friction"
    ):
        solve(problem, "principal_pivoting")
    with pytest.raises(dyn.UnsupportedError, match="facets 5; valid: an even number"):
        solve(problem, "lemke", facets=5)
    with pytest.raises(dyn.UnsupportedError, match="impedance 1.5"):
        solve(problem, "soft_contact", impedance=1.5)
    for relaxation in (2, True, np.nan, "1", None):
        with pytest.raises(dyn.UnsupportedError, match="relaxation .*; valid"):
            solve(problem, "projected_gauss_seidel", relaxation=relaxation)
    with pytest.raises(dyn.UnsupportedError, match="unknown option speed"):
        solve(problem, "admm", speed=1)
    for name in ("admm", "admm_compiled"):
        for value in ([1e-6], np.ones(2), {}):
            with pytest.raises(dyn.UnsupportedError, match=f"{name}: .*tolerance"):
                solve(problem, name, tolerance=value)
        with pytest.raises(dyn.UnsupportedError, match=f"{name}: engine"):
            solve(problem, name, engine=["native"])
        with pytest.raises(dyn.UnsupportedError, match=f"{name}: no option is"):
            solve(problem, name, speed=[1])
    with pytest.raises(
        dyn.UnsupportedError, match="combinations of modes; valid: at most 2"
    ):
        solve(problem, "enumeration", limit=2)
    with pytest.raises(
        dyn.UnsupportedError, match="is for a constraint_layout, not for"
    ):
        dyn.solver("admm").build(dyn.load_urdf(dyn.robots.path("two_link")))
    monkeypatch.setitem(__import__("sys").modules, "clarabel", None)
    with pytest.raises(dyn.UnsupportedError, match=r"pip install 'dyn_ros\[qp\]'"):
        dyn.solver("interior_point").build(problem.layout)


def test_answers_do_not_change(name="admm"):
    """The same problem gives the same bits."""
    problem = random_contacts("singular", 5)
    first, second = (solve(problem, name).impulses for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_rows_that_cannot_move_are_as_soft_as_one():
    """Soft: R = (1 - d) / d times G_ii, or times 1 where G_ii is zero."""
    problem = ConstraintProblem(["unilateral"] * 2, np.diag([0.0, 2.0]), [-1.0, -1.0])
    solution = solve(problem, "soft_contact", impedance=0.5)
    np.testing.assert_allclose(solution.impulses, [1.0, 0.25], rtol=1e-9)


def test_heavy_rows_are_pivots():
    """Pivoting scales rows by their response: 1e12 kg are stopped, too."""
    problem = ConstraintProblem(["unilateral"], [[1e-12]], [-1.0])
    solution = solve(problem, "principal_pivoting")
    assert solution.converged
    np.testing.assert_allclose(solution.impulses, 1e12)


def test_the_artificial_variable_leaves_first():
    """Where it ties with another row Lemke ends, with no further pivot and no ray."""
    M, q = np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([-2.0, 0.0])
    z, pivots, status = lemke(M, q, 50)
    assert (z.tolist(), pivots, status) == ([1.0, 0.0], 2, contact.CONVERGED)


@pytest.mark.parametrize("speed", [1e-10, 1e-5, 1.0])
def test_a_contact_that_no_impulse_moves_ends_on_a_ray(speed):
    """Perturbed, a small approach was none, and no row was left to pivot on."""
    G, b = [[1.0, 0.0], [0.0, 0.0]], [1.0, -speed]
    solution = solve(ConstraintProblem(["unilateral"] * 2, G, b), "lemke")
    assert solution.status == ("converged" if speed < 1e-9 else "ray")


def test_two_motions_are_not_unique():
    """A rod that may leave, or stick on the edge of its cone: two motions, no third."""
    G = np.array([[1.75, -1.3], [-1.3, 3.25]])
    rod = ConstraintProblem([("contact", 2)], G, -G @ [1.0, 2.0], mu=2.0)
    results, _ = solutions(rod, unique=True)
    assert len(results) == 2
    assert solve(rod, "enumeration", unique=True).status == "not_unique"


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_move_apart_is_infeasible(name):
    """A contact that no impulse moves, and one body between two that approach."""
    for rows in (1, 2, 3):
        b = [-1.0, *[0.0] * (rows - 1)]
        stuck = ConstraintProblem([("contact", rows)], np.zeros((rows, rows)), b)
        J = np.vstack([np.eye(3)[:rows], -np.eye(3)[:rows]])
        b = np.tile(b, 2)
        squeezed = ConstraintProblem([("contact", rows)] * 2, J @ J.T, b, mu=0.5)
        for problem in (stuck, squeezed):
            if list(serving(problem, [name])) and name != "soft_contact":
                assert solve(problem, name).status in ("infeasible", "ray")


def test_layouts_of_equal_parts_are_equal():
    """Lists and numbers of NumPy make the same layout as tuples; it may be a key."""
    layout = ConstraintLayout([["contact", np.int64(3)], ["box", 2.0]])
    wanted = ConstraintLayout.of("contact", ("box", 2))
    assert layout == wanted
    assert hash(layout) == hash(wanted)


def test_rows_of_small_velocities_contradict_too():
    """What contradicts is relative to the free velocities, however small they are."""
    G = [[1.0, 1.0], [1.0, 1.0]]
    for size in (1.0, 1e-9):
        for b, wanted in (([-size, size], True), ([size, size], False)):
            problem = ConstraintProblem(["bilateral"] * 2, G, b)
            reduced = problem.without_free_rows()
            assert reduced.contradicts(reduced.widen(np.zeros(0))) == wanted


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_impulses_that_are_not_finite_have_not_converged(bad):
    problem = ConstraintProblem([("unilateral", 1)], np.eye(1), [-1.0])
    solution = contact.ContactSolution.from_impulses(problem, [bad])
    assert solution.status == "max_iterations"
    assert np.isnan(solution.residuals).all()
    assert np.isnan(problem.law(np.array([bad])))
    with pytest.raises(IndexError, match="valid: 0 to"):
        contact.ContactSolution.from_impulses(problem, [1.0], status=-1.0)


@pytest.mark.parametrize("name", ["admm_compiled", "projected_gauss_seidel", "lemke"])
def test_an_impulse_that_overflows_is_no_solution(name):
    problem = ConstraintProblem([("unilateral", 1)], [[1e-200]], [-1e200])
    assert contact.solve(problem, name).status == "max_iterations"
