"""Steps by solvers of rows and of matrices: the same, in every scene."""

import sys
from pathlib import Path

import numpy as np
import pytest
from contact_bodies import G_EARTH, box, free_ball, joint, link, robot
from step_scenes import SCENES, Scene, free_bodies, places

import dyn_core as dyn
from dyn_core.authoring import ContactSolver
from dyn_core.problems import CONTACT_SOLVE

STEPPERS = ("stewart_trinkle", "anitescu_potra", "moreau_jean")
VELOCITY = 1e-7  # of two solutions to the tolerance 1e-9, relative to the largest
PRODUCT = Path(dyn.__file__).parents[1]


class ByMatrix(ContactSolver):
    """The default solver behind a ConstraintProblem."""

    name = "by_matrix"

    def solve(self, problem, warm=None):
        """Return its solution."""
        return dyn.contact.solve(problem, "coulomb_newton", warm)


def close(got, wanted, tolerance):
    """Check two arrays relative to the largest entry, or 1."""
    got, wanted = np.asarray(got, float), np.asarray(wanted, float)
    scale = max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


def compare(scene, count, **world):
    """Check steps by matrix and by rows from the same states; return the most rows."""
    by_rows = scene.simulator(**world)
    by_matrix = scene.simulator(**world, solver=ByMatrix())
    most, unsolved = 0, 0
    for k in range(count):
        t = k * by_rows.period
        by_matrix.q, by_matrix.qd = by_rows.q, by_rows.qd
        for sim in (by_rows, by_matrix):
            scene.acts(sim, t)
            sim.advance(t)
        a, b = by_rows.report, by_matrix.report
        assert (a.t, a.h, a.m, list(a.impulses)) == (b.t, b.h, b.m, list(b.impulses))
        if not (a.converged and b.converged):  # no tolerance holds for these
            unsolved += 1
            continue
        close(by_matrix.q, by_rows.q, VELOCITY)
        close(by_matrix.qd, by_rows.qd, VELOCITY)
        energy = max(1.0, abs(b.kinetic_change))
        assert abs(a.energy_change - b.energy_change) < 1e-6 * energy
        close(a.total_force, b.total_force, 1e-5)
        most = max(most, a.m)
    assert unsolved <= count // 20
    return most


@pytest.mark.parametrize("name", SCENES)
def test_a_solver_of_matrices_takes_the_steps_of_rows(name):
    """Velocities and positions in every scene, each with one of the steppers."""
    scene = SCENES[name](np.random.default_rng(7))
    stepper = STEPPERS[list(SCENES).index(name) % 3]
    assert compare(scene, 40, stepper=stepper) > 0


def test_meshes(tmp_path):
    """A hull of a file falls on its corner."""
    pytest.importorskip("coal")
    path = tmp_path / "wedge.obj"
    points = "0 0 0\n1 0 0\n0 1 0\n0 0 1".split("\n")
    path.write_text(
        "".join(f"v {p}\n" for p in points) + "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    )
    shape = '<mesh filename="package://p/wedge.obj" scale="0.3 0.2 0.2"/>'
    model = free_bodies([shape])
    world = {"packages": {"p": str(tmp_path)}}
    scene = Scene(model, places(model, [(0, 0, 0.2)], np.random.default_rng(0)))
    scene.world = world
    assert compare(scene, 150) > 2


@pytest.mark.parametrize("name", dyn.solvers(CONTACT_SOLVE))
def test_every_solver_by_name(name):
    """A ball lands by any solver named in a World."""
    model = free_ball(materials={"default": {"mu": 0.0}})
    scene = Scene(model, places(model, [(0, 0, 0.101)]))
    try:
        sim = scene.simulator(solver=name)
        for k in range(60):
            sim.advance(k * sim.period)
    except dyn.errors.UnsupportedError as error:
        pytest.skip(str(error))
    assert sim.q[2] == pytest.approx(0.1, abs=1e-4)
    assert abs(sim.qd[5]) < 1e-2  # soft_contact swings


def test_a_step_by_matrix_reads_like_a_page():
    """A step by lemke enters 19 files of the product, machine code not counted."""
    model = free_ball()
    scene = Scene(model, places(model, [(0, 0, 0.1)]))
    sim, entered = scene.simulator(solver="lemke"), set()
    for k in range(3):
        sim.advance(k * sim.period)

    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PRODUCT):
            entered.add(path.relative_to(PRODUCT).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        sim.advance(3 * sim.period)
    finally:
        sys.setprofile(before)
    assert sim.report.m
    assert len(entered) <= 19, sorted(entered)


def test_contact_forces_carry_each_box():
    """Of two boxes at rest each feels its own weight, pressed from above and below."""
    inertia, size = (1 / 60, 1 / 60, 4 / 150), box(0.4, 0.4, 0.2)
    model = robot(
        *(link(name, m, inertia, size) for name, m in (("low", 2.0), ("high", 3.0))),
        joint("a", "floating", "base", "low"),
        joint("b", "floating", "base", "high"),
    )
    q = model.neutral()
    q[[2, 9]] = 0.1, 0.3
    sim = dyn.ContactSimulator(model, {}, period=1e-3, q0=q)
    sim.advance(0.0)
    forces = sim.last.wrenches() / sim.last.h
    np.testing.assert_allclose(forces[:, 5], G_EARTH * np.array([2.0, 3.0]), rtol=1e-6)
