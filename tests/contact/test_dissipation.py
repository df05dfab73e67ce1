"""Contacts, limits and friction bring in no energy, whether a step is solved or not."""

import numpy as np
import pytest
from contact_bodies import box, free_box, joint, link, robot, sphere
from contact_work import check_work
from random_worlds import (
    FAST,
    STEPPERS,
    any_starts,
    random_heap,
    random_world,
    taken,
)
from row_problems import mixed_blocks, rows_from
from step_scenes import SCENES, H, Scene, places, quadruped

import dyn_core as dyn
from dyn_core.contact.problem.rows import rows_of
from dyn_core.contact.rows.constraints import ROLES
from dyn_core.contact.rows.step_tables import PRESCRIBED, BlockFacts
from dyn_core.contact.solvers.frozen_friction import freeze_friction, take_no_energy
from dyn_core.contact.solvers.laws.natural_residuals import _work
from dyn_core.contact.solvers.laws.scaling import rescale_normal, scale
from dyn_core.contact.solvers.matrices.row_products import add_transposed
from dyn_core.contact.solvers.solver_memory import (
    CONVERGED,
    FROZEN_FRICTION,
    allocate_solvers,
)
from dyn_core.contact.stepping.array_batch import BatchStep
from dyn_core.contact.stepping.composite_step import _adds_energy
from dyn_core.contact.stepping.contact_model import ContactModel

UNSOLVED = {"max_iterations": 0, "splittings": 0}  # of coulomb_newton


@pytest.mark.parametrize("options", ({}, UNSOLVED))
def test_a_heap_that_sticks_does_not_explode(options):
    """Friction of 30: one step that was not solved gave 1e8 m/s and more."""
    counts, _ = taken(random_heap(6, 30.0), 150, each=60, solver_options=options)
    assert not options or counts["frozen_friction"] > 0


@pytest.mark.parametrize(
    ("solver", "mu"), (("admm", 100.0), ("coulomb_newton", 1e6), ("convex_newton", 1e4))
)
def test_a_box_that_tumbles_does_not_explode(solver, mu):
    """It had up to 1e6 m/s where it should have 20, in one scene of five."""
    frozen = 0
    for seed in range(4):
        rng = np.random.default_rng([seed, 5])
        model = free_box(1.0, (0.15, 0.1, 0.06), materials={"default": {"mu": mu}})
        q, size = places(model, [(0, 0, 0.3)], rng), [3, 3, 3, 1, 1, 1]
        scene = Scene(model, q, rng.standard_normal(6) * size)
        frozen += taken(scene, 250, each=50, solver=solver)[0]["frozen_friction"]
    assert frozen > 0


def errors(arrays, record):
    """Return the deepest overlap, and the largest error of a loop or gear, of a step."""
    step, count = arrays.prepare_again(record), len(record.starts)
    facts, depth, apart = step.blocks, 0.0, 0.0
    for k, role in enumerate(ROLES[number] for number in facts.role[:count]):
        if role in ("contact", "limit"):
            depth = max(depth, -facts.gap[k])
        if role in ("loop", "gear"):
            apart = max(apart, abs(facts.gap[k]))
    return depth, apart


@pytest.mark.parametrize("name", ("four-bar", "gear, spring, damping", "quadruped"))
@pytest.mark.parametrize("stepper", STEPPERS)
def test_steps_that_no_solver_solves(name, stepper):
    """Overlaps and errors of loops stay as small as those of solved steps.

    Without cones bounded friction is no approximation: then steps are solved.
    """
    worst = []
    for options in ({}, UNSOLVED):
        scene = SCENES[name](np.random.default_rng(7))
        sim = scene.simulator(stepper=stepper, solver_options=options)
        worst.append(np.zeros(2))
        for k in range(60):
            scene.acts(sim, k * H)
            sim.advance(k * H)
            check_work(sim.arrays, sim._last)
            if k >= 30:  # starts are off
                worst[-1] = np.maximum(worst[-1], errors(sim.arrays, sim._last))
    print(f"{name}, {stepper}: depth and error [m] {worst[0]} solved, {worst[1]} not")
    assert name != "quadruped" or sim.counters["contact not converged"] > 0
    assert (worst[1] <= 2 * worst[0] + 1e-5).all()


def test_motors_do_not_hide_energy():
    """A quadruped that throws its legs about, with friction of 10 and of 1e4."""
    for mu, solver in ((10.0, "admm"), (1e4, "coulomb_newton")):
        scene, rng = quadruped(0.3), np.random.default_rng(3)
        scene.model = dyn.load_urdf(
            dyn.robots.path("quadruped"),
            root_joint="floating",
            extras={"materials": {"default": {"mu": mu}}},
        )
        forces = 40 * rng.uniform(-1, 1, (12, scene.model.nv))
        forces[:, :6] = 0.0
        taken(scene, 120, 10, lambda k, f=forces: f[k // 10], solver=solver)


def lift():
    """Return a plate that moves by prescribed accelerations, and bodies on it."""
    parts = [
        link("plate", 1.0, (0.1,) * 3, box(1.0, 1.0, 0.1)),
        joint("up", "prismatic", "base", "plate", (0.6, 0, 0.8), (0, 0, 0.5)),
    ]
    for k, form in enumerate((box(0.2, 0.15, 0.1), sphere(0.08), box(0.1, 0.1, 0.2))):
        parts.append(link(f"b{k}", 1.0, (0.01,) * 3, form))
        parts.append(joint(f"f{k}", "floating", "base", f"b{k}"))
    model = robot(*parts, materials={"default": {"mu": 50.0}})
    q = model.neutral()
    for k in range(3):
        q[1 + 7 * k : 4 + 7 * k] = 0.02 * k, 0, 0.62 + 0.17 * k
    return Scene(model, q, prescribed=("up",))


@pytest.mark.parametrize("options", ({}, UNSOLVED))
def test_a_moving_plate_brings_energy_by_its_motor_alone(options):
    """It shakes bodies; its own joint moves as prescribed, solved or not."""
    sim, speed = lift().simulator(solver_options=options), 0.0
    for k in range(150):
        acceleration = 30.0 * np.sin(0.2 * k)
        sim.accelerate(k * H, [acceleration])
        sim.advance(k * H)
        speed += H * acceleration
        assert sim.last.velocity[0] == pytest.approx(speed, abs=1e-6)
        check_work(sim.arrays, sim._last)
    assert np.abs(sim.qd).max() < FAST


def test_a_kernel_with_too_few_sweeps_makes_no_energy():
    """A box that tumbles, two sweeps a step: it gained 1 % of its energy in one step."""
    rng = np.random.default_rng([0, 5])
    model = free_box(1.0, (0.15, 0.1, 0.06), materials={"default": {"mu": 1.0}})
    step = dyn.solver("contact_euler").build(
        model, erp=0.0, solver_options={"max_iterations": 2}
    )
    energy, total, unsolved = dyn.solver("energy").build(model), [], 0
    q, warm = places(model, [(0, 0, 0.3)], rng), np.zeros(step.inputs[-1].shape)
    qd = rng.standard_normal(6) * [3, 3, 3, 1, 1, 1]
    for _ in range(300):
        q, qd, warm, *_, status = step(q, qd, np.zeros(6), H, warm)
        total.append(sum(float(x) for x in np.ravel(energy(q, qd))))
        unsolved += status != 0
    assert unsolved > 30
    assert np.diff(total).max() <= (9.81 * H) ** 2 / 2  # of gravity in a step


def test_batches_have_the_bits_of_such_steps():
    """Rows with frozen friction, in lanes and alone."""
    scene = random_heap(6, 30.0, 4)
    model = ContactModel(scene.model, {"solver_options": UNSOLVED})
    batch, n = BatchStep(model, H, 4, threads=1), 4
    Q, V = np.tile(scene.q, (n, 1)), np.tile(scene.qd, (n, 1))
    sim = scene.simulator(solver_options=UNSOLVED)
    frozen = 0
    for k in range(60):
        Q, V, outcome = batch.step(Q, V, 0 * V)
        sim.advance(k * H)
        frozen += sim.report.status == "frozen_friction"
        np.testing.assert_array_equal(Q, np.tile(sim.q, (n, 1)))
        np.testing.assert_array_equal(V, np.tile(sim.qd, (n, 1)))
        assert outcome.not_converged == n * (sim.report.status != "converged")
    assert frozen > 0


def test_a_run_tells_time_and_bodies():
    """In `run.warnings`, once, whatever the number of such steps."""
    scene = random_heap(6, 30.0, 4)
    world = {"solver_options": UNSOLVED}
    with pytest.warns(UserWarning, match="not solved"):
        run = dyn.simulate(
            scene.model, world=world, q0=scene.q, qd0=scene.qd, duration=0.12
        )
    (sentence,) = (x for x in run.warnings if "not solved" in x)
    count = run.counters["contact not converged"]
    assert sentence.startswith(f"{count} steps")
    first = next(row[0] for row in run.reports if row[0].status == "frozen_friction")
    assert f"t = {first.t:.6g} s" in sentence
    assert any(f"{c.link_a}" in sentence for c in first.contacts)


@pytest.mark.parametrize("small", (1e-4, 1e-5, 1e-6))
def test_bounded_friction_with_a_normal_that_hardly_yields(small):
    """A joint carries nearly all of a normal force, not so the torsion of its contact.

    In the common unit of its cone the normal has a response of 1e-12 to 1e-16; one
    random world in 400 came to such a step, which ended without a solution.
    """
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first, second = rng.standard_normal((2, 3, 6))
        along, across = (Y[0] / np.linalg.norm(Y[0]) for Y in (first, second))
        second[0] = small * (0.5 * across - 0.85 * along)
        second[1:] *= 200
        meets, opens = np.array([-0.4, 0.4, 0.0]), np.array([0.03 * small, 0.01, 0.01])
        rows, nv = rows_from([(range(6), first, meets), (range(6), second, opens)])
        work, report = allocate_solvers(rows, nv), np.zeros(8)
        status = freeze_friction(rows, 2, 6, nv, work, report)
        assert status in (CONVERGED, FROZEN_FRICTION)
        Y = np.vstack([first, second])
        u = Y @ (Y.T @ rows.impulse) + [*meets, *opens]
        size = np.array([0.4, small])
        assert (u[::3] > -1e-6 * size).all()
        assert np.abs(u[::3] * rows.impulse[::3]).max() < 1e-6 * rows.impulse[0]


def test_the_work_of_a_block_does_not_depend_on_the_unit_of_its_normal():
    """With friction that generates it, beside a normal that hardly yields."""
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((3, 6)) * np.array([[1e-5], [1.0], [1.0]])
    rows, nv = rows_from([(range(6), Y, np.array([-0.4, 0.3, 0.2]))])
    scaled = allocate_solvers(rows, nv).scaled
    scale(rows, 1, scaled)
    y, z = np.array([2.0, 0.5, -0.3]), np.array([0.1, -0.7, 0.4])  # z is -u
    before = _work(rows, scaled, 0, y, z)
    factor = rescale_normal(rows, scaled, 0)
    assert factor > 1e3
    y[0] /= factor
    z[0] *= factor
    assert _work(rows, scaled, 0, y, z) == pytest.approx(before, rel=1e-12)
    assert before > 1e-3


@pytest.mark.parametrize("singular", (False, True))
def test_bounded_friction_leaves_all_other_laws(singular):
    """Normals, limits and free rows are exact, bounds hold, impulses add no energy."""
    for seed in range(5):
        problem = mixed_blocks(seed, singular)
        rows, nv = rows_of(problem)
        for block in problem.layout.blocks:
            rows.impulse[block.start] = float(block.kind == "contact")
        work, report = allocate_solvers(rows, nv), np.zeros(8)
        with np.errstate(all="ignore"):
            status = freeze_friction(
                rows, len(rows.kind), len(rows.b), nv, work, report
            )
        assert status in (CONVERGED, FROZEN_FRICTION)
        x, b = rows.impulse, problem.b + problem.bias
        u, most = problem.matrix @ x + b, 1e-6 * np.abs(b).max()
        assert x @ (u + b) <= 1e-9
        for block in problem.layout.blocks:
            first, all_rows = block.start, list(block.all)
            if block.kind in ("bilateral", "prescribed"):
                assert np.abs(u[all_rows]).max() < most
            if block.kind == "contact":
                assert min(x[first], u[first]) > -most
                assert min(x[first], u[first]) < most
                mu = problem.mu[list(block.coefficients)]
                t = x[list(block.tangent)] / np.where(mu > 0, mu, 1.0)
                assert np.linalg.norm(t) <= 1 + 1e-9
                assert (np.abs(x[list(block.tangent)])[mu == 0] == 0).all()


def test_impulses_without_a_solution_add_no_energy():
    """They are scaled to the best part; what is not finite becomes nothing."""
    for seed in range(5):
        problem, rng = mixed_blocks(seed), np.random.default_rng(seed)
        rows, nv = rows_of(problem)
        rows.impulse[:] = 10 ** rng.uniform(-2, 9) * rng.normal(size=len(rows.b))
        direction = rows.impulse.copy()
        take_no_energy(rows, len(rows.kind), nv, allocate_solvers(rows, nv))
        x, b = rows.impulse, problem.b + problem.bias
        assert x @ (problem.matrix @ x + 2 * b) <= 1e-12
        assert np.abs(x).max() <= np.abs(direction).max()
        rows.impulse[3] = np.nan
        take_no_energy(rows, len(rows.kind), nv, allocate_solvers(rows, nv))
        assert not rows.impulse.any()


def test_work_of_impulses_that_rebound():
    """Its sign, by the sum of the docstring: motion, impulses, pushes of overlaps."""
    signs = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 5])
        rows, nv = rows_of(mixed_blocks(seed))
        blocks, m = len(rows.kind), len(rows.b)
        first = np.asarray(rows.start[:blocks])
        rows.impulse[:] = 10 ** rng.uniform(-2, 1) * rng.normal(size=m)
        parts = {name: np.zeros(blocks) for name in BlockFacts._fields}
        parts |= {name: np.zeros(blocks, np.int64) for name in ("role", "source", "id")}
        parts |= {"bias": 3.0 * rng.normal(size=m)}
        parts |= {"restitution": rng.choice([0.0, 0.5], blocks)}
        facts, z = BlockFacts(**parts), np.zeros(nv)
        add_transposed(rows, rows.support, rows.y, blocks, rows.impulse, z)
        pushes = np.minimum(facts.bias[first], 0.0) * (facts.restitution == 0.0)
        work = rows.impulse @ (rows.b - facts.bias) + z @ z / 2
        work += rows.impulse[first] @ pushes
        signs.append(work > 0)
        assert _adds_energy(rows, facts, blocks, 0.0, np.zeros(nv)) == signs[-1]
        enough = 2 * abs(work) / np.abs(rows.impulse[first]).sum()
        assert not _adds_energy(rows, facts, blocks, enough, np.zeros(nv))
        facts.role[-1] = PRESCRIBED
        assert not _adds_energy(rows, facts, blocks, 0.0, np.zeros(nv))
    assert 5 < sum(signs) < 35


def test_interior_point_calls_no_problem_infeasible_without_a_proof(hulls):
    """At friction of 4e5 clarabel finds no bound of a problem that zero impulses solve."""
    scene = random_world(1, hulls, any_friction=True)
    any_starts(scene, 2, 50, 1, solver="interior_point")


@pytest.mark.full
@pytest.mark.parametrize("solver, starts", (("lemke", 1), ("interior_point", 4)))
def test_solvers_of_matrices(solver, starts, hulls):
    """1250 and 5000 steps of random worlds, friction from 0 to 1e6.

    `full`: milliseconds each, and minutes where pivots of a large problem go round.
    """
    for seed in range(25):
        scene = random_world(seed, hulls, any_friction=True)
        any_starts(scene, starts, 50, seed, solver=solver)
