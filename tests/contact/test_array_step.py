"""Steps on arrays: which solvers they take, and the forces that they report."""

import sys
from pathlib import Path

import numpy as np
import pytest
from contact_bodies import G_EARTH, box, free_ball, joint, link, robot
from step_scenes import Scene, places

import dyn_core as dyn
from dyn_core.authoring import ContactSolver
from dyn_core.contact import ContactSolution
from dyn_core.problems import CONTACT_SOLVE

PRODUCT = Path(dyn.__file__).parents[1]


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
    """A step by lemke enters 11 files of the product, machine code not counted."""
    model = free_ball()
    scene = Scene(model, places(model, [(0, 0, 0.1)]))
    sim, entered = scene.simulator(solver="lemke"), set()
    for k in range(3):
        sim.advance(k * sim.period)

    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PRODUCT):
            place = path.relative_to(PRODUCT)
            if place.parts[0] in ("dyn_core", "dyn_plugins"):
                entered.add(place.as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        sim.advance(3 * sim.period)
    finally:
        sys.setprofile(before)
    assert sim.report.m
    assert len(entered) <= 11, " ".join(sorted(entered))


class Failing(ContactSolver):
    """A solver that raises, or whose impulses are not finite, in its first problem."""

    name = "failing"

    def __init__(self, result):
        self.result = result

    def solve(self, problem, warm=None):
        """Return no impulses; the first time what was asked for."""
        result, self.result = self.result, 0.0
        if isinstance(result, type):
            raise result("no way")
        return ContactSolution.from_impulses(problem, np.full(problem.m, result))


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (ValueError, dyn.errors.PluginError, "failing"),
        (KeyboardInterrupt, KeyboardInterrupt, "no way"),
        (np.nan, dyn.errors.NonFiniteError, "failing returned impulses"),
    ],
)
def test_errors_of_a_solver_pass_through_machine_code(result, error, message):
    """A solver is called from machine code: its error comes out of the step, once."""
    model = free_ball()
    sim = Scene(model, places(model, [(0, 0, 0.1)])).simulator(solver=Failing(result))
    state = 0.0, sim.q, sim.qd, np.zeros(model.nv)
    with pytest.raises(error, match=message):
        sim.arrays.step(*state)
    _, _, record = sim.arrays.step(*state)
    assert len(record.impulse) == 3


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
