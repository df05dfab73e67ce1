"""Worked contact cases C1 to C15 that are pure problems, to the digits given."""

import numpy as np
import pytest
from contact_problems import G_EARTH, box_on_plane, rigid_rows, stack

from dyn_core import contact
from dyn_core.contact import ConstraintLayout, ConstraintProblem, solve
from dyn_core.contact.problem.residuals import law_residuals

EXACT = ("admm", "admm_compiled", "projected_gauss_seidel", "lemke", "enumeration")
CLOSE = {"rtol": 1e-7, "atol": 1e-9}


def _sums(solution, h=0.01):
    """Return normal and friction force, and normal pair sums downhill and uphill."""
    N, F, _ = solution.impulses.reshape(4, 3).T / h
    return np.array([N.sum(), -F.sum(), N[:2].sum(), N[2:].sum()])


@pytest.mark.parametrize("kind", ["bilateral", "box"])
def test_a_large_impulse_may_be_rounded(kind):
    """law = |u| / (speed + 1e-9 response |lambda|) where the step leaves no bound."""
    layout, huge = ConstraintLayout.of((kind, 1)), 1e30
    *_, law = law_residuals(layout, [2e9], [0.5], [], [-huge], [huge], [0.5], 1.0)
    np.testing.assert_allclose(law, 0.5 / (1.0 + 1e-9 * 0.5 * 2e9), rtol=1e-6)


@pytest.mark.parametrize("solver", EXACT[:3])
def test_c1_box_on_an_incline(solver):
    """It sticks at 20 degrees and slides at 35; pair sums are unique."""
    options = {"facets": 4} if solver == "lemke" else {}
    problem, J, H, free = box_on_plane(np.radians(20), 0.5)
    solution = solve(problem, solver, **options)
    assert solution.converged
    np.testing.assert_allclose(
        _sums(solution),
        [18.4367692198, 6.71043521205, 10.8959934129, 7.5407758069],
        rtol=1e-6,
    )
    np.testing.assert_allclose(solution.velocities, 0, atol=1e-9)
    problem, J, H, free = box_on_plane(np.radians(35), 0.4)
    solution = solve(problem, solver, **options)
    np.testing.assert_allclose(
        _sums(solution),
        [16.071763109, 6.42870524358, 9.64305786537, 6.42870524358],
        rtol=1e-6,
    )
    v = free + np.linalg.solve(H, J.T @ solution.impulses)
    np.testing.assert_allclose(v[0], 0.0241243221881, rtol=1e-7)
    assert solution.rank == 6
    assert solution.condition == np.inf
    assert solution.energy_change <= 1e-12


def test_c2_bouncing_ball():
    """Moreau-Jean with e = 0.8: impacts at steps 453 and 1176."""
    h, e, q, v = 1e-3, 0.8, 1.0, 0.0
    log = []
    for step in range(1, 1200):
        middle, before = q + h * v / 2, v
        v = v - h * G_EARTH
        if middle <= 0:
            ball = ConstraintProblem(["unilateral"], [[1.0]], [v], bias=e * before)
            solution = solve(ball, "principal_pivoting")
            if solution.impulses[0] > 1e-9:
                log.append((step, before, solution.velocities[0], solution.impulses[0]))
            v = solution.velocities[0]
        q = middle + h * v / 2
    np.testing.assert_allclose(log[0], (453, -4.43412, 3.547296, 7.991226), rtol=1e-10)
    assert log[1][0] == 1176
    np.testing.assert_allclose(log[1][2], 2.8284192, rtol=1e-10)


def test_c3_box_at_rest():
    """Four corners carry equal parts, by least norm; 3 and 6 are the ranks."""
    problem, J, *_ = box_on_plane(0.0, 0.0)
    rows = [0, 3, 6, 9]
    G = problem.matrix[np.ix_(rows, rows)]
    np.testing.assert_allclose(
        G[0],
        [2.77865168539, 0.621348314607, 0.378651685393, -1.77865168539],
        rtol=1e-10,
    )
    np.testing.assert_allclose(
        np.linalg.eigvalsh(G), [0, 2, 4.31460674157, 4.8], atol=1e-9
    )
    for shift, wanted in (
        ((0, 0, 0), [0.04905] * 4),
        ((0.1, -0.08, 0), [0.04905, 0.06867, 0.02943, 0.04905]),
    ):
        problem, J, *_ = box_on_plane(0.0, 0.0, shift=shift)
        G = problem.matrix[np.ix_(rows, rows)]
        bilateral = ConstraintProblem(["bilateral"] * 4, G, problem.b[rows])
        solution = solve(bilateral, "enumeration")
        assert solution.rank == 3
        least = np.linalg.pinv(G) @ -problem.b[rows]
        np.testing.assert_allclose(least, wanted, rtol=1e-9)
        np.testing.assert_allclose(
            J[rows].T @ solution.impulses, J[rows].T @ np.array(wanted), atol=1e-10
        )
        free = ConstraintProblem(["unilateral"] * 4, G, problem.b[rows])
        for solver in (*EXACT, "principal_pivoting", "convex_newton"):
            solution = solve(free, solver)
            assert solution.converged, solver
            assert solution.exact
            wrench = J[rows].T @ solution.impulses
            np.testing.assert_allclose(wrench, [0, 0, 0.1962, 0, 0, 0], atol=1e-8)
            np.testing.assert_allclose(solution.velocities, 0, atol=1e-9)


def test_c4_rod_at_a_stop():
    """Impact on the stop, rest against it, one Stewart-Trinkle step."""
    inertia, h = 0.32, 0.01
    impact = ConstraintProblem(
        ["unilateral"], [[1 / inertia]], [-4.72373049833], bias=-0.5 * 4.72373049833
    )
    outcome = solve(impact, "principal_pivoting")
    np.testing.assert_allclose(outcome.impulses, 2.2673906392, rtol=1e-10)
    np.testing.assert_allclose(outcome.velocities, 2.36186524917, rtol=1e-10)
    weight = 1.5 * G_EARTH * 0.4 * np.sin(0.4)
    rest = solve(
        ConstraintProblem(["unilateral"], [[1 / inertia]], [-h * weight / inertia]),
        "lemke",
    )
    np.testing.assert_allclose(rest.impulses / h, 2.29211636283, rtol=1e-10)
    step = ConstraintProblem(
        ["unilateral"], [[1 / inertia]], [-0.454582249594], bias=(-0.2495 + 0.25) / h
    )
    for solver in (*EXACT, "principal_pivoting"):
        outcome = solve(step, solver)
        np.testing.assert_allclose(outcome.impulses, 0.12946631987, rtol=1e-8)
        np.testing.assert_allclose(outcome.velocities, -0.05, rtol=1e-8)


PAINLEVE = np.array([[1.75, -1.29903810568], [-1.29903810568, 3.25]])


@pytest.mark.parametrize("solver", EXACT)
def test_c5_painleve_rod(solver):
    """The inconsistent case sticks, the indeterminate one gives one of three."""
    rod = ConstraintProblem([("contact", 2)], PAINLEVE, [-0.0981, -1.0], mu=2.0)
    solution = solve(rod, solver)
    assert solution.converged
    assert solution.exact
    np.testing.assert_allclose(
        solution.impulses, [0.404465776419, 0.469358909542], rtol=1e-8
    )
    three = np.array(
        [[0, 0], [0.187959425473, 0.344358909542], [0.139617583138, 0.279235166276]]
    )
    many = ConstraintProblem(
        [("contact", 2)], PAINLEVE, [0.118406350946, -0.875], mu=2.0
    )
    solution = solve(many, solver)
    if solution.converged:
        assert np.abs(three - solution.impulses).max(axis=1).min() < 1e-8
    slip = ConstraintProblem([("contact", 2)], PAINLEVE, [-0.0981, -1.0], mu=0.5)
    solution = solve(slip, solver)
    np.testing.assert_allclose(
        solution.impulses, [0.0891428427298, 0.0445714213649], rtol=1e-8
    )
    np.testing.assert_allclose(solution.velocities[1], -0.970942830118, rtol=1e-8)


def test_c5_several_solutions_are_said_when_asked():
    """Enumeration finds that the indeterminate rod has more than one motion."""
    many = ConstraintProblem(
        [("contact", 2)], PAINLEVE, [0.118406350946, -0.875], mu=2.0
    )
    assert solve(many, "enumeration").status == "converged"
    assert solve(many, "enumeration", unique=True).status == "not_unique"
    one = ConstraintProblem([("contact", 2)], PAINLEVE, [-0.0981, -1.0], mu=2.0)
    assert solve(one, "enumeration", unique=True).status == "converged"


def test_c6_gauss_seidel_contracts_as_it_must():
    """Iterates, rate m2 / (m1 + m2), sweeps to 1e-6: 20 and 13823."""
    exact = np.array([0.1962, 0.0981])
    iterates = [
        solve(stack(1, 1), "projected_gauss_seidel", max_iterations=k, engine="graph")
        for k in (1, 2, 3)
    ]
    wanted = [[0.0981, 0.04905], [0.14715, 0.073575], [0.171675, 0.0858375]]
    np.testing.assert_allclose([s.impulses for s in iterates], wanted, rtol=1e-12)
    assert {s.status for s in iterates} == {"max_iterations"}
    for m2, limit, sweeps in ((1, exact, 20), (1000, np.array([98.1981, 98.1]), 13823)):
        off = [
            np.abs(
                solve(stack(1, m2), "projected_gauss_seidel", max_iterations=k).impulses
                / limit
                - 1
            ).max()
            for k in (sweeps - 1, sweeps)
        ]
        assert off[0] > 1e-6 >= off[1]


@pytest.mark.parametrize(
    "solver", ("admm", "lemke", "enumeration", "principal_pivoting", "convex_newton")
)
def test_c6_heavy_on_light(solver):
    """Direct, ADMM and Newton solvers take a mass ratio of 1000 in their stride."""
    solution = solve(stack(1, 1000), solver)
    assert solution.converged
    assert solution.iterations < 100
    np.testing.assert_allclose(solution.impulses, [98.1981, 98.1], rtol=1e-6)
    np.testing.assert_allclose(solution.condition, 4002.00075013, rtol=1e-8)


def _ball(v, omega, mu, push, h=0.01, rows=3, mus=None):
    """Return one step of a ball of 1 kg and 0.1 m: J, H and the problem."""
    H = np.diag([1.0] * 3 + [0.004] * 3)
    J = rigid_rows([0, 0, -0.1], np.eye(3)[[2, 0, 1]])
    if rows == 4:
        J = np.vstack([J, [0, 0, 0, 0, 0, 1.0]])
    free = np.array([*v, *omega]) + h * np.array([*push, 0, 0, 0])
    G = J @ np.linalg.solve(H, J.T)
    problem = ConstraintProblem(
        [("contact", rows)], G, J @ free, mu=mu if mus is None else mus
    )
    return J, H, free, problem


@pytest.mark.parametrize("solver", ("admm", "projected_gauss_seidel"))
def test_c7_ball_slides_then_rolls(solver):
    """It sticks at step 44 with 5/7 of its speed; on an incline it rolls or slips."""
    nu = np.array([3.0, 0, 0, 0, 0, 0])
    step = 0
    while step < 60:
        step += 1
        J, H, free, problem = _ball(nu[:3], nu[3:], 0.2, (0, 0, -G_EARTH))
        solution = solve(problem, solver)
        nu = free + np.linalg.solve(H, J.T @ solution.impulses)
        if abs(solution.velocities[1]) < 1e-6:
            break
    assert step == 44
    np.testing.assert_allclose(
        [nu[0], nu[4]], [2.14285714286, 21.4285714286], rtol=1e-7
    )
    np.testing.assert_allclose(solution.impulses[1], -0.0134828571429, rtol=1e-6)
    slope = G_EARTH * np.array([0.5, 0, -np.sqrt(0.75)])
    for mu, a, alpha in (
        (0.17, 3.50357142857, 35.0357142857),
        (0.1, 4.05542907889, 21.2392730278),
    ):
        J, H, free, problem = _ball(np.zeros(3), np.zeros(3), mu, slope)
        nu = free + np.linalg.solve(H, J.T @ solve(problem, solver).impulses)
        np.testing.assert_allclose([nu[0] / 0.01, nu[4] / 0.01], [a, alpha], rtol=1e-7)


@pytest.mark.parametrize("solver", (*EXACT, "principal_pivoting", "convex_newton"))
def test_c8_dry_joint_friction(solver):
    """A box of h tau_f holds, yields, and stops a turning joint."""
    inertia, h = 0.32, 0.01
    for omega, tau, wanted, after in (
        (0, 0.9, -0.009, 0),
        (0, 1.5, -0.011, 0.0125),
        (2, 0, -0.011, 1.965625),
    ):
        joint = ConstraintProblem(
            ["box"],
            [[1 / inertia]],
            [omega + h * tau / inertia],
            lo=-h * 1.1,
            hi=h * 1.1,
        )
        solution = solve(joint, solver)
        assert solution.exact
        np.testing.assert_allclose(solution.impulses, wanted, rtol=1e-8)
        np.testing.assert_allclose(solution.velocities, after, rtol=1e-8, atol=1e-9)


def test_c8_the_joint_stops_and_stays():
    """From 2 rad/s it stands at step 59, and then stays at zero."""
    omega, stood = 2.0, []
    for step in range(1, 70):
        joint = ConstraintProblem(["box"], [[1 / 0.32]], [omega], lo=-0.011, hi=0.011)
        omega = float(solve(joint, "principal_pivoting").velocities[0])
        if abs(omega) < 1e-15:
            stood.append(step)
    assert stood == list(range(59, 70))


def test_c9_geared_rotors():
    """A bilateral row [gamma, -1]: multiplier -0.24."""
    H, J = np.diag([0.3, 0.05]), np.array([[3.0, -1.0]])
    free = np.linalg.solve(H, [1.0, -0.1])
    gear = ConstraintProblem(["bilateral"], J @ np.linalg.solve(H, J.T), J @ free)
    for solver in (
        "admm",
        "projected_gauss_seidel",
        "lemke",
        "principal_pivoting",
        "convex_newton",
    ):
        solution = solve(gear, solver)
        np.testing.assert_allclose(solution.impulses, -0.24, rtol=1e-8)
        qdd = free + np.linalg.solve(H, J.T @ solution.impulses)
        np.testing.assert_allclose(qdd, [0.933333333333, 2.8], rtol=1e-8)


@pytest.mark.parametrize("solver", (*EXACT, "convex_newton", "interior_point"))
def test_c10_convex_artefact(solver):
    """A sliding point lifts off in the convex solvers and in no exact one."""
    if solver == "interior_point":
        pytest.importorskip("clarabel", reason="extra qp is not installed")
    point = ConstraintProblem(["contact"], np.eye(3), [-0.0981, 1.0, 0.0], mu=0.5)
    solution = solve(point, solver)
    n, t = solution.impulses[0], solution.velocities[1]
    if solver in EXACT:
        np.testing.assert_allclose(
            [n, t, solution.velocities[0]], [0.0981, 0.95095, 0], **CLOSE
        )
        assert solution.residuals.complementarity < 1e-8
    else:
        np.testing.assert_allclose(
            [n, t, solution.velocities[0]], [0.47848, 0.76076, 0.38038], rtol=1e-6
        )
        assert "separate" in solution.relaxes
        assert solution.residuals.complementarity > 0.1
    assert solution.exact == (solver in EXACT and solver != "lemke")


def test_c11_planar_arm():
    """Tip held on a line, pinned, and thrown at a ceiling."""
    G = np.array([[1.26766137316, 1.1911622577], [1.1911622577, 2.31918404457]])
    b = np.array([2.14769712632, -11.3146835035])
    bilateral = solve(ConstraintProblem(["bilateral"], G[:1, :1], b[:1]), "lemke")
    np.testing.assert_allclose(bilateral.impulses, -1.69421990115, rtol=1e-9)
    pinned = solve(ConstraintProblem([("bilateral", 2)], G, b), "admm")
    np.testing.assert_allclose(
        pinned.impulses, [-12.1352064268, 11.1115301301], rtol=1e-9
    )
    v = -0.925569115607
    ceiling = ConstraintProblem(["unilateral"], G[1:, 1:], [v], bias=0.3 * v)
    np.testing.assert_allclose(
        -solve(ceiling, "lemke").impulses, -0.518820338172, rtol=1e-9
    )


def test_c12_baumgarte():
    """A bias of beta Phi / h takes the error down by 1 - beta a step."""
    error, h, seen = 0.02, 0.01, []
    for _ in range(10):
        row = ConstraintProblem(["bilateral"], [[0.7]], [0.0], bias=0.2 * error / h)
        error = error + h * solve(row, "principal_pivoting").velocities[0]
        seen.append(error)
    np.testing.assert_allclose(
        [seen[0], seen[4], seen[9]], [0.016, 0.0065536, 0.002147483648], rtol=1e-10
    )


@pytest.mark.parametrize("solver", (*EXACT, "principal_pivoting", "convex_newton"))
def test_c13_three_balls(solver):
    """Newton's law at once in two contacts of three balls."""
    for e, impulses, energy in (
        (0, (2 / 3, 1 / 3), -1 / 3),
        (0.5, (1, 0.5), None),
        (1, (4 / 3, 2 / 3), 0),
    ):
        before = np.array([-1.0, 0.0])
        balls = ConstraintProblem(
            ["unilateral"] * 2, [[2.0, -1], [-1, 2]], before, bias=e * before
        )
        solution = solve(balls, solver)
        np.testing.assert_allclose(solution.impulses, impulses, rtol=1e-7)
        if energy is not None:
            np.testing.assert_allclose(solution.energy_change, energy, atol=1e-8)


@pytest.mark.parametrize("solver", EXACT)
def test_c14_oblique_impact(solver):
    """Restitution and friction of a point."""
    point = ConstraintProblem(
        ["contact"], np.eye(3), [-3.0, 2, 0], mu=0.3, bias=[-1.5, 0, 0]
    )
    solution = solve(point, solver)
    np.testing.assert_allclose(solution.impulses, [4.5, -1.35, 0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        solution.velocities, [1.5, 0.65, 0], rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("solver", ("admm", "projected_gauss_seidel"))
def test_c15_torsional_friction(solver):
    """A spinning ball loses mu_t m g / I a second, and then stands."""
    h, nu, speeds = 0.01, np.array([0, 0, 0, 0, 0, 5.0]), []
    for _ in range(45):
        J, H, free, problem = _ball(
            nu[:3], nu[3:], 0, (0, 0, -G_EARTH), rows=4, mus=[0.5, 0.005]
        )
        solution = solve(problem, solver)
        np.testing.assert_allclose(solution.impulses[0], G_EARTH * h, rtol=1e-7)
        nu = free + np.linalg.solve(H, J.T @ solution.impulses)
        speeds.append(nu[5])
    np.testing.assert_allclose((5 - speeds[0]) / h, 12.2625, rtol=1e-7)
    assert speeds[39] > 1e-3
    np.testing.assert_allclose(speeds[41:], 0, atol=1e-8)


def test_soft_rows_rest_where_they_must():
    """SAP rests at m g / k; MuJoCo's row where the spec's equation says."""
    m, k, h = 2.0, 1e4, 0.01
    for h, tau in ((0.01, 0.0), (0.002, 0.1)):
        R, bias = contact.sap_rows(h, k, tau, -m * G_EARTH / k)
        rest = ConstraintProblem(
            ["unilateral"], [[1 / m]], [-G_EARTH * h], compliance=R, bias=bias
        )
        solution = solve(rest, "convex_newton")
        np.testing.assert_allclose(solution.impulses, m * G_EARTH * h, rtol=1e-8)
        np.testing.assert_allclose(solution.velocities, 0, atol=1e-9)
    default = (0.9, 0.95, 0.001, 0.5, 2)
    np.testing.assert_allclose(
        contact.impedance(default, -0.00036718184246), 0.913482250543, rtol=1e-10
    )
    for solimp, gap in (
        ((0.9, 0.9, 0.001, 0.5, 2), -0.0003924), ((0.95, 0.95, 0.001, 0.5, 2), -0.0001962),
        (default, -0.00036718184246),
    ):  # fmt: skip
        R, bias = contact.soft_rows((0.02, 1.0), solimp, gap, 0.0, 1 / m, h)
        rest = ConstraintProblem(
            ["unilateral"], [[1 / m]], [-G_EARTH * h], compliance=R, bias=bias
        )
        solution = solve(rest, "soft_contact")
        np.testing.assert_allclose(solution.impulses, m * G_EARTH * h, rtol=1e-8)
        assert not solution.exact


def test_erp_and_cfm_are_an_implicit_spring():
    """One row with ERP and CFM is the implicit Euler step of spring and damper."""
    m, k, d, h, x, v = 1.3, 200.0, 5.0, 0.01, 0.02, -0.4
    erp, cfm = contact.erp_and_cfm(h, k, d)
    row = ConstraintProblem(
        ["bilateral"], [[1 / m]], [v], compliance=cfm, bias=erp * x / h
    )
    after = solve(row, "principal_pivoting").velocities[0]
    np.testing.assert_allclose(
        m * (after - v) / h, -k * (x + h * after) - d * after, rtol=1e-10
    )
