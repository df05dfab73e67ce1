"""Each step, from a given state, is that of the textbook (reference_step.py)."""

from types import SimpleNamespace

import numpy as np
import pytest
from reference_step import Reference
from scipy.integrate import solve_ivp
from step_scenes import SCENES, Scene, free_bodies, places, random_tree

import dyn_core as dyn
from dyn_core.contact.stepping.event_step import CLOSED, RESTING
from dyn_core.model.coordinates import position_rate
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.spatial import Vector

STEPPERS = ("stewart_trinkle", "anitescu_potra", "moreau_jean")
BOUNCING = ("bouncing ball", "limits", "torsion, rolling, restitution")
# After some ten steps of these, a motion with contacts has impulses that differ.
EXACT = {"solver_options": {"tolerance": 1e-13}}  # of coulomb_newton, the default
PRECISION = 1e-10
IMPULSES = 1e-8  # of solvers that take G, whose root has half of the digits
FLIGHT = 1e-5  # of one step of RK4: its own error
APART = 1e-6  # of states before an impact, from which it is replayed
CORRECTION = 1e-6  # of a correction of positions [m, rad]; its tolerance is relative
CONVERGES = 1e-11  # error below which Newton's method has found an answer


def close(got, wanted, tolerance):
    """Check two arrays to a tolerance, relative to the largest number or 1."""
    scale = max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


def check_answer(problem, impacts, report, u):
    """Check that u is the answer of a problem; return whether Newton found it alone.

    Where several answers are right, or none is found from zero, the reported impulses
    must be next to some that obey all laws.
    """
    assert report.converged
    scale = max(1.0, np.abs(u).max())
    _, answer, error = problem.answer()
    alone = error < CONVERGES and np.abs(answer - u).max() < PRECISION * scale
    if not alone:
        start = problem.impulses(report, impacts)
        impulse, answer, error = problem.answer(start)
        close(start, impulse, PRECISION)
    assert error < CONVERGES * scale
    close(u, answer, PRECISION)
    return alone


def check_energy(reference, problem, impacts, report, u):
    """Check the energies that a report says."""
    if not len(problem.J):
        return
    x = problem.impulses(report, impacts) + impacts
    H = reference.H(problem.q, *reference.sim.carried.values)
    kinetic = (u @ H @ u - problem.qd @ H @ problem.qd) / 2
    free = u - problem.response @ x
    close(report.kinetic_change, kinetic, PRECISION)
    close(report.energy_change, x @ problem.J @ (u + free) / 2, PRECISION)


def check_end(reference, problem, u, q, qd, h):
    """Check the state after a step, and its correction of positions."""
    correction = reference.correction(problem, u, h)
    rest = h / 2 if reference.world.stepper == "moreau_jean" else h
    end, rate = reference.advanced(problem.q, u, rest, u + correction)
    close(q, end, CORRECTION if correction.any() else PRECISION)
    close(qd, rate, CORRECTION if correction.any() else PRECISION)


def compare(scene, count, **world):
    """Check steps one by one; return the most rows of one and the answers from zero."""
    sim = scene.simulator(**{**EXACT, **world})
    reference, most, alone = Reference(sim), 0, 0
    for k in range(count):
        t, q, qd = k * sim.period, sim.q.copy(), sim.qd.copy()
        scene.acts(sim, t)
        sim.advance(t)
        problem, impacts = reference.problem(q, qd, sim.period)
        u = sim.last.velocity
        alone += check_answer(problem, impacts, sim.report, u)
        check_energy(reference, problem, impacts, sim.report, u)
        check_end(reference, problem, u, sim.q, sim.qd, sim.period)
        most = max(most, len(problem.J))
    return most, alone


def soften(problem):
    """Add the compliance of soft_contact to a problem's rows that have none."""
    G, first = np.diag(problem.J @ problem.response), 0
    R = np.where(G > 0, G, 1.0) / 9  # of the impedance 0.9
    for block in problem.blocks:
        first, n = first + len(block.J), first
        if block.mu:
            R[n + 1 : first] = R[n]
    problem.A = problem.A + np.diag(np.where(problem.R > 0, 0.0, R))
    problem.size = np.diag(problem.A)


def pyramid_error(problem, x, facets=8):
    """Return the error of the law of lemke, whose friction cones are pyramids.

    Where friction is at the edge of its pyramid, it takes most power of all that is.
    """
    sigma, error = problem.A @ x + problem.b, problem.laws(x[:, None])[:, 0]
    error, first = error * problem.size, 0
    angles = np.pi * np.arange(2 * facets) / facets
    small = np.abs(problem.b).max(initial=0.0) / problem.size.max(initial=1.0)
    for block in problem.blocks:
        n, first = first, first + len(block.J)
        t = slice(n + 1, first)
        if block.mu:
            ways = np.array([np.cos(angles), np.sin(angles)])
            corners, normals = ways[:, ::2], ways[:, 1::2] / np.cos(angles[1])
            parts = np.split(np.arange(n + 1, first), [2, 3][: len(block.J) - 3])
            pairs = [(x[part], sigma[part], len(part) > 1) for part in parts]
            used = sum(max(y @ normals) if two else abs(y[0]) for y, _, two in pairs)
            power = max(max(-s @ corners) if two else abs(s[0]) for _, s, two in pairs)
            radius = block.mu * x[n]
            error[t] = max(used - radius, 0.0) * problem.size[n]
            lost = x[t] @ sigma[t] + radius * power
            error[n] += abs(lost) / max(np.abs(x).max(), small)
    return np.abs(error).max(initial=0.0)


def scene_of(name):
    """Return a scene with its seed."""
    return SCENES[name](np.random.default_rng(7))


@pytest.mark.turns("stepper")
@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("name", SCENES)
def test_steps_are_those_of_the_textbook(name, stepper, full):
    """Velocities, positions and energies in every scene, with all kinds of rows."""
    count = 50 if full or name in BOUNCING else 12
    most, alone = compare(scene_of(name), count, stepper=stepper)
    assert most > 0
    assert alone > 0


def test_the_textbook_sees_a_small_fault():
    """Of friction, of an inertia, and of a gap: each changes the answer by more."""
    scene = scene_of("moving plate")
    sim = scene.simulator(**EXACT)
    reference = Reference(sim)
    for k in range(6):
        q, qd = sim.q.copy(), sim.qd.copy()
        scene.acts(sim, k * sim.period)
        sim.advance(k * sim.period)
    problem, impacts = reference.problem(q, qd, sim.period)
    x = problem.impulses(sim.report, impacts)
    assert problem.residual(x) < CONVERGES
    for wrong in ("mu", "free", "b"):
        faulty, _ = reference.problem(q, qd, sim.period)
        if wrong == "mu":
            for block in faulty.blocks:
                block.mu *= 1 + 1e-7
            assert faulty.residual(x) > CONVERGES
            continue
        setattr(faulty, wrong, getattr(faulty, wrong) * (1 + 1e-7))
        with pytest.raises(AssertionError):
            check_answer(faulty, impacts, sim.report, sim.last.velocity)


@pytest.mark.turns("law")
@pytest.mark.parametrize("law", ("baumgarte", "erp_cfm", "none"))
@pytest.mark.parametrize("name", ("four-bar", "gear, spring, damping", "quadruped"))
def test_stabilisations_are_those_of_the_textbook(name, law, full):
    """Corrections through the velocities, soft rows, and none."""
    assert compare(scene_of(name), 50 if full else 12, stabilisation=law)[0] > 0


@pytest.mark.one_of(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_trees_step_as_the_textbook_says(seed, full):
    """Floating trees of any shapes and joints, with all steppers and stabilisations."""
    law = ("split_impulse", "baumgarte", "erp_cfm", "none")[seed % 4]
    world = {"stepper": STEPPERS[seed % 3], "stabilisation": law}
    compare(random_tree(seed), 40 if full else 8, **world)


def test_a_hull_of_a_file_falls_as_the_textbook_says(tmp_path):
    """It falls on its corner."""
    pytest.importorskip("coal")
    path = tmp_path / "wedge.obj"
    points = "0 0 0\n1 0 0\n0 1 0\n0 0 1".split("\n")
    path.write_text(
        "".join(f"v {p}\n" for p in points) + "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    )
    shape = '<mesh filename="package://p/wedge.obj" scale="0.3 0.2 0.2"/>'
    model = free_bodies([shape])
    q = places(model, [(0, 0, 0.08)], np.random.default_rng(0))
    scene = Scene(model, q, world={"packages": {"p": str(tmp_path)}})
    assert compare(scene, 40)[0] > 2


LAWS = {
    "sequential": {"impacts": "sequential"},
    "poisson": {"restitution": "poisson"},
}
IMPACTS = [
    (name, law, stepper)
    for name in BOUNCING
    for law in LAWS
    for stepper in STEPPERS
    if law == "sequential" or name != BOUNCING[2]  # whose compression is not unique
]


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("name", "law", "stepper"), IMPACTS)
def test_impacts_are_those_of_the_textbook(name, law, stepper):
    """One after the other, or by compression and release."""
    assert compare(scene_of(name), 50, stepper=stepper, **LAWS[law])[0] > 0


class Replay:
    """The parts of an event-driven step, each checked from the state before it."""

    def __init__(self, sim):
        self.reference, self.model, self.records = Reference(sim), sim.model, []
        events = sim._events
        made = events.step

        def step(*arguments):
            *state, self.records = made(*arguments)
            return *state, self.records

        events.step = step

    def step(self, q, qd, reports):
        """Return the state at the end of a step, before its correction of positions."""
        self.end = reports[0].t + self.reference.sim.period
        for report, record in zip(reports, self.records, strict=True):
            self.names = {*report.impulses, *(c.id for c in report.contacts)}
            self.report, self.reference.parts = report, [report]
            if report.h == 0:
                # A hundred impacts in a step would amplify what is rounded.
                close(record.q, q, APART)
                close(record.qd, qd, APART)
                q, qd = self.impact(record.q, record.qd)
            else:
                q, qd = self.motion(q, qd)
        self.reference.parts = []
        return q, qd

    def impact(self, q, qd):
        """Return the state after an impact, which takes no time, at closed contacts."""

        def closed(blocks):
            near = [b for b in blocks if not b.closing or b.gap <= CLOSED]
            for b in near:
                b.gap = 0.0 * b.gap
            return near

        problem, impacts = self.reference.problem(
            q, qd, 1e-12, closed, middle=False, early=False
        )
        return q, self.answer(problem, impacts)

    def answer(self, problem, impacts):
        """Return the velocity that obeys the laws, next to the reported impulses."""
        start = problem.impulses(self.report, impacts)
        x, u, error = problem.answer(start)
        assert error < CONVERGES * max(1.0, np.abs(u).max())
        close(start, x, IMPULSES)
        return u

    def motion(self, q, qd):
        """Return the state after a motion in which the same contacts are closed."""
        report, blocks = self.report, self.reference.blocks(q, qd, {})
        away = [b for b in blocks if b.closing and b.name not in self.names]
        for b in blocks:  # what closes, and is no impact
            assert not b.closing or b.gap > CLOSED or b.J[0] @ qd > -1.1 * RESTING
        if self.names:
            problem, impacts = self.reference.problem(
                q, qd, report.h, self.chosen, False, middle=True, early=True
            )
            u = self.answer(problem, impacts)
            q, qd = self.reference.advanced(problem.q, u, report.h / 2)
        else:
            q, qd = self.flight(q, qd, report.h)
        blocks = {b.name: b for b in self.reference.blocks(q, qd, {})}
        gaps = [blocks[b.name].gap - min(b.gap, 0) for b in away if b.name in blocks]
        assert min(gaps, default=0.0) > -CLOSED
        early = report.t + report.h < self.end - 1e-9
        assert not early or min(gaps) < CLOSED
        return q, qd

    def chosen(self, blocks):
        """Return the blocks that the report has, and all that are always closed."""
        return [b for b in blocks if not b.closing or b.name in self.names]

    def flight(self, q, qd, h):
        """Return the state after a motion without constraints: one step of RK4.

        In the displacement u from q. It is near the motion itself, which an adaptive
        method finds.
        """
        model = self.model

        def rates(u, speed):
            there = model.normalize(model.integrate(q, u))
            M, force, _ = self.reference.dynamics(there, speed, 0.0)
            return np.array([model.tangent_rate(u, speed), np.linalg.solve(M, force)])

        start = np.array([np.zeros(model.nv), qd])
        slopes = [rates(*start)]
        for part in (h / 2, h / 2, h):
            slopes.append(rates(*(start + part * slopes[-1])))
        u, after = start + h * np.tensordot([1, 2, 2, 1], slopes, 1) / 6
        end = model.normalize(model.integrate(q, u))
        place, rate = self.exact_flight(q, qd, h)
        close(end, place, FLIGHT)
        close(after, rate, FLIGHT)
        return end, after

    def exact_flight(self, q, qd, h):
        """Return the state after a motion without constraints, by an adaptive method."""
        nq, model = len(q), self.model

        def rate(t, x):
            M, force, _ = self.reference.dynamics(x[:nq], x[nq:], 0.0)
            q, qd = (Vector(part.tolist()) for part in (x[:nq], x[nq:]))
            moves = position_rate(model, q, qd)
            return [*moves, *np.linalg.solve(M, force)]

        options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
        x = solve_ivp(rate, (0, h), [*q, *qd], **options).y[:, -1]
        return model.normalize(x[:nq]), x[nq:]


def compare_events(scene, count, **world):
    """Check event-driven steps one by one; return how many parts these had."""
    sim = scene.simulator(stepper="event_driven", **EXACT, **world)
    replay, parts = Replay(sim), 0
    for k in range(count):
        q, qd = sim.q.copy(), sim.qd.copy()
        scene.acts(sim, k * sim.period)
        sim.advance(k * sim.period)
        end, rate = replay.step(q, qd, sim.reports)
        state = SimpleNamespace(M=replay.reference.dynamics(end, rate, 0.0)[0])
        state.blocks = replay.reference.blocks(end, rate, {})
        correction = replay.reference.correction(state, 0.0 * rate, sim.period)
        moved = correction.any()
        if moved:
            end, rate = replay.reference.advanced(end, rate, sim.period, correction)
        close(sim.q, end, CORRECTION if moved else PRECISION)
        close(sim.qd, rate, CORRECTION if moved else PRECISION)
        parts += len(sim.reports)
    return parts


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", SCENES)
def test_event_driven_steps_are_those_of_the_textbook(name, full):
    """Each impact, and each motion between two, from the state before it."""
    count = 50 if full else 24 if name in BOUNCING else 4
    assert compare_events(scene_of(name), count) >= count


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", BOUNCING[:2])
def test_impacts_at_their_times_are_those_of_the_textbook(name, law, full):
    """By the laws other than Newton's: scenes where impulses are unique."""
    count = 50 if full else 24
    assert compare_events(scene_of(name), count, **LAWS[law]) > count


SOLVERS = sorted(dyn.solvers(CONTACT_SOLVE))
CONVEX = ("convex_newton", "interior_point", "soft_contact")
# Errors of the law at which a solver still says that it has converged (docs/contacts.md).
ACCURACY = {
    **dict.fromkeys(SOLVERS, 1e-7),
    **dict.fromkeys(("enumeration", "lemke", "principal_pivoting"), PRECISION),
    "interior_point": 1e-5,
    "projected_gauss_seidel": 1e-6,
}
CASES = [(solver, name) for solver in SOLVERS for name in SCENES]


@pytest.mark.one_of(9)
@pytest.mark.parametrize(("solver", "name"), CASES)
def test_every_solver_obeys_its_law(solver, name, full):
    """Momentum to 1e-10, and the law that each states to the accuracy it states."""
    scene = scene_of(name)
    sim = scene.simulator(solver=solver)
    reference = Reference(sim)
    for k in range(50 if full else 6):
        q, qd = sim.q.copy(), sim.qd.copy()
        scene.acts(sim, k * sim.period)
        try:
            sim.advance(k * sim.period)
        except dyn.UnsupportedError as error:
            pytest.skip(str(error))
        except dyn.InfeasibleError:
            assert solver in CONVEX  # what slides cannot separate, as these demand
            return
        problem, impacts = reference.problem(q, qd, sim.period)
        x, u = problem.impulses(sim.report, impacts), sim.last.velocity
        close(u, problem.free + problem.response @ x, PRECISION)
        if solver == "soft_contact":
            soften(problem)
        error = problem.residual(x, convex=solver in CONVEX)
        if solver in CONVEX:
            # Where the relaxed law has no solution, frozen friction may meet the exact one.
            error = min(error, problem.residual(x))
        if solver == "lemke":
            error = pyramid_error(problem, x)
        scale = max(
            np.abs(problem.b).max(initial=0.0),
            (problem.size * np.abs(x)).max(initial=0.0),
        )
        if sim.report.converged:
            assert error <= ACCURACY[solver] * scale + 1e-14
