"""Steps on modes, the interior-point method, heaps, friction of joints by contacts."""

import numpy as np
import pytest
from bench.contact import contact_scenes
from contact_problems import random_boxes, random_contacts
from row_problems import (
    dense,
    legs_on_a_base,
    mixed_blocks,
    problem_of,
    stacked_boxes,
)

import dyn_core as dyn
from dyn_core.contact import residuals, solve
from dyn_core.contact.collision.halfspaces import HalfSpace
from dyn_core.contact.problem.rows import rows_of
from dyn_core.contact.solvers.interior_point import interior
from dyn_core.contact.solvers.laws.scaling import from_scaled, project, scale, to_scaled
from dyn_core.contact.solvers.newton_on_modes import FIRM, newton_on_modes
from dyn_core.contact.solvers.solver_calls import RowSolver
from dyn_core.contact.solvers.solver_memory import allocate_solvers
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.machine_code import compiled

KINDS = ("pd", "singular", "ratio")
BALL = """<link name="ball{k}"><inertial><mass value="0.5"/>
<inertia ixx="5e-4" iyy="5e-4" izz="5e-4" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="0.05"/></geometry></collision></link>
<joint name="free{k}" type="floating"><parent link="root"/><child link="ball{k}"/>
</joint>"""


def by(method, rows, nv, steps, run=compiled):
    """Return the natural step, the iterations and the impulses of one method alone."""
    blocks, work = len(rows.kind), allocate_solvers(rows, nv)
    scale(rows, blocks, work.scaled)
    to_scaled(rows, blocks, work.scaled, work.newton.gamma)
    numbers = (blocks, len(rows.b), nv, work, 1e-9, steps)
    if method is newton_on_modes:
        numbers += (FIRM,)
    missing, count = run(method)(rows, *numbers)
    for k in range(blocks):
        project(rows, work.scaled, k, work.newton.gamma)
    from_scaled(rows, blocks, work.scaled, work.newton.gamma)
    return missing, count, rows.impulse.copy()


def law(problem, impulse):
    """Return the residual of the law."""
    return residuals(problem, impulse).law


@pytest.mark.one_of(2)
@pytest.mark.parametrize("method", (newton_on_modes, interior))
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_claimed_is_a_solution(method, kind):
    """Of random contacts and boxes, against all modes of `enumeration`."""
    claims, total = 0, 0
    for seed in range(12):
        for problem in (
            random_contacts(kind, seed, 2, most=3),
            random_boxes(kind, seed),
        ):
            missing, count, impulse = by(method, *rows_of(problem), 60)
            reference, total = solve(problem, "enumeration", unique=True), total + 1
            assert count <= 70
            if not missing <= 1e-9:
                continue
            claims += 1
            assert law(problem, impulse) < 1e-7
            if reference.status == "converged":
                u = problem.matrix @ impulse + problem.b + problem.bias
                size = np.abs(problem.b).max()
                np.testing.assert_allclose(u, reference.velocities, atol=1e-6 * size)
    assert claims >= 0.7 * total


@pytest.mark.parametrize("singular", (False, True))
def test_every_kind_of_block_from_inside(singular):
    """Cones of all sizes, boxes, free and unilateral rows, some with compliance."""
    claims = 0
    for seed in range(10):
        problem = mixed_blocks(seed, singular)
        missing, _, impulse = by(interior, *rows_of(problem), 60)
        assert np.isfinite(impulse).all()
        if missing <= 1e-9:
            claims += 1
            assert law(problem, impulse) < 1e-7
    assert claims >= 8


def test_near_a_solution_few_steps_are_enough():
    """Velocities that change by a thousandth, all of them."""
    rng = np.random.default_rng(2)
    for rows, nv in (legs_on_a_base(1), legs_on_a_base(5), stacked_boxes([1.0] * 5)):
        assert (
            RowSolver("coulomb_newton", rows, nv).solve(len(rows.kind), len(rows.b))
            == 0
        )
        change = dense(rows, nv) @ rng.normal(size=nv)
        rows.b[:] += 1e-3 * np.abs(rows.b).max() * change
        missing, count, impulse = by(newton_on_modes, rows, nv, 60)
        assert missing <= 1e-9
        assert count <= 4
        assert law(problem_of(rows, nv), impulse) < 1e-7


def test_machine_code_has_the_bits_of_python():
    """And reads no entry that is not there; nothing that is not finite is a claim."""
    if host_machine.missing():
        pytest.skip("no compiler of machine code here")
    problem, results = random_contacts("ratio", 3), []
    for run in (lambda f: f, compiled, lambda f: compiled(f, checked=True)):
        missing, count, impulse = by(interior, *rows_of(problem), 40, run)
        results.append((float(missing), int(count), impulse.tolist()))
    assert results[0][0] <= 1e-9
    assert results[0] == results[1] == results[2]
    rows, nv = rows_of(problem)
    rows.b[1] = np.nan
    for method in (newton_on_modes, interior):
        assert not by(method, rows, nv, 15)[0] <= 1e-9


def test_far_contacts_do_not_set_the_scale():
    """An open contact that is 20 m/s from closing changes nothing else."""
    rows, nv = legs_on_a_base(3)
    near, _ = legs_on_a_base(3, legs=5)
    near.b[-3:] = 2e4, 0.0, 0.0
    alone, together = (
        RowSolver("coulomb_newton", r, n, tolerance=1e-14)
        for r, n in ((rows, nv), (near, 21))
    )
    assert alone.solve(4, 12) == 0
    assert together.solve(5, 15) == 0
    assert together.report[5] <= 60
    assert not near.impulse[-3:].any()
    assert law(problem_of(near, 21), near.impulse) < 1e-12


def test_without_velocities_there_are_no_impulses():
    """Whatever the start is: a residual relative to no velocity allows no remainder."""
    rows, nv = stacked_boxes([1.0] * 2)
    rows.b[:], rows.impulse[:] = 0.0, 1e-11
    solver = RowSolver("coulomb_newton", rows, nv)
    assert solver.solve(8, 24) == 0
    assert not rows.impulse.any()


# ---------------------------------------------------------------------------- in steps


def heap(count, columns=2):
    """Return a simulation of balls that fall into a narrow box, some on others."""
    half, rng, places = 0.05 * columns + 0.01, np.random.default_rng(1), {}
    for k in range(count):
        across = np.array([k % columns, k // columns % columns]) - (columns - 1) / 2
        flat = 0.105 * across + rng.uniform(-0.003, 0.003, 2)
        height = 0.06 + 0.105 * (k // columns**2)
        places[f"free{k}"] = [*flat, height, 0, 0, 0, 1]
    balls = "".join(BALL.format(k=k) for k in range(count))
    model = dyn.load_urdf(
        f'<robot name="heap"><link name="root"/>{balls}</robot>',
        extras={"materials": {"default": {"mu": 0.8}}},
    )
    sides = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
    walls = [
        HalfSpace(f"wall{k}", (-half * x, -half * y, 0.0), (x, y, 0.0))
        for k, (x, y) in enumerate(sides)
    ]
    q = model.neutral()
    for name, place in places.items():
        q[model.q_slice(name)] = place
    world = dyn.World(half_spaces=[HalfSpace("floor"), *walls])
    return dyn.ContactSimulator(model, world, period=1e-3, q0=q)


def advanced(simulator, steps, command=None):
    """Return the iterations and the residual of the law of each step."""
    iterations, laws = [], []
    for k in range(steps):
        t = k * 1e-3
        if command:
            simulator.command(t, command(t, simulator.q, simulator.qd))
        simulator.advance(t)
        report = simulator.report
        iterations.append(report.iterations)
        laws.append(report.residuals.law)
    assert np.isfinite(simulator.q).all()
    return np.array(iterations), np.array(laws)


def test_a_heap_of_balls_is_solved_in_every_step():
    """From the fall to rest; nearly as many equations as velocities stick."""
    simulator = heap(12)
    iterations, laws = advanced(simulator, 400)
    assert laws.max() < 1e-8
    assert np.median(iterations) <= 3
    assert simulator.counters["contact not converged"] == 0
    places = simulator.q.reshape(12, 7)[:, :3]
    assert np.abs(places[:, :2]).max() < 0.11 - 0.05 + 1e-3
    assert 0.05 - 1e-3 < places[:, 2].min() < places[:, 2].max() < 0.4


def test_a_heap_has_the_same_bits_again():
    """In a second run of the same simulation."""
    first, second = heap(8), heap(8)
    advanced(first, 60)
    advanced(second, 60)
    np.testing.assert_array_equal(first.q, second.q)
    np.testing.assert_array_equal(first.qd, second.qd)


@pytest.mark.full
def test_fifty_balls_at_rest_are_solved():
    """All but a few, as they come to rest; none is far from it."""
    simulator = contact_scenes.spheres(50, at_rest=True).simulator()
    _, laws = advanced(simulator, 200)
    assert laws.max() < 1e-5
    assert simulator.counters["contact not converged"] <= 2
    assert np.median(laws[150:]) < 1e-8


def test_open_contacts_couple_nothing_in_a_step():
    """Towers beside each other, with open contacts between: order and solution."""
    rows, nv = stacked_boxes([1.0] * 4)
    blocks, supports = len(rows.kind), rows.support_start
    boxes = [
        set(rows.support[s : s + n] // 6)
        for s, n in zip(supports, rows.support_count, strict=True)
    ]
    between = [k for k in range(blocks) if boxes[k] == {1, 2}]
    for k in between:
        rows.b[rows.start[k]] = 10.0  # far open; the boxes above fall on nothing
    missing, count, impulse = by(newton_on_modes, rows, nv, 60)
    assert missing <= 1e-9
    assert 0 < count <= 20
    assert law(problem_of(rows, nv), impulse) < 1e-9
    assert not any(impulse[rows.start[k]] for k in between)


@pytest.mark.parametrize("trots", (False, True))
def test_friction_of_joints_beside_contacts_takes_few_steps(trots):
    """A quadruped with dry friction in its joints: how often, not how long."""
    scene = contact_scenes.quadruped(trots)
    iterations, laws = advanced(scene.simulator(), 400, scene.command)
    assert np.median(iterations[100:]) <= 2
    assert iterations.max() <= 60
    assert laws.max() < 2e-9
