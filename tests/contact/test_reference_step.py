"""Each step, from a given state, is that of the textbook (reference_step.py)."""

import numpy as np
import pytest
from reference_step import Reference
from step_scenes import SCENES

STEPPERS = ("stewart_trinkle", "anitescu_potra", "moreau_jean")
BOUNCING = ("bouncing ball", "limits", "torsion, rolling, restitution")
PRECISION = 1e-10
CORRECTION = 1e-6  # of a correction of positions [m, rad]; its tolerance is relative
CONVERGES = 1e-11  # error below which Newton's method has found an answer


def compare(name, count, **world):
    """Check steps one by one; return the most rows of one and the answers from zero.

    An answer found from zero must be the step's; where several are right, or none is
    found, the step's impulses must be next to one that obeys all laws.
    """
    scene = SCENES[name](np.random.default_rng(7))
    sim = scene.simulator(**{"solver_options": {"tolerance": 1e-13}, **world})
    reference, most, alone = Reference(sim), 0, 0
    for k in range(count):
        t, q, qd = k * sim.period, sim.q.copy(), sim.qd.copy()
        scene.acts(sim, t)
        sim.advance(t)
        report, u = sim.report, sim.last.velocity
        assert report.converged
        problem, h = reference.step(q, qd), sim.period
        scale = max(1.0, np.abs(u).max())
        _, answer, error = problem.answer(None, h)
        same = error < CONVERGES and np.abs(answer - u).max() < PRECISION * scale
        alone += same
        if not same:
            start = problem.impulses(report, h)
            impulse, answer, error = problem.answer(start, h)
            force = PRECISION * max(1.0, np.abs(impulse).max(initial=0.0))
            np.testing.assert_allclose(impulse, start, rtol=0, atol=force)
        assert error < CONVERGES * scale
        np.testing.assert_allclose(u, answer, rtol=0, atol=PRECISION * scale)
        correction = reference.correction(problem, answer)
        rest = h / 2 if sim.world.stepper == "moreau_jean" else h
        end, rate = reference.advanced(problem.q, answer + correction, rest)
        moved = correction.any()
        np.testing.assert_allclose(
            sim.q, end, rtol=0, atol=CORRECTION if moved else PRECISION
        )
        if not moved:
            np.testing.assert_allclose(sim.qd, rate, rtol=0, atol=PRECISION * scale)
        most = max(most, len(problem.J))
    return most, alone


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("name", SCENES)
def test_steps_are_those_of_the_textbook(name, stepper, full):
    """Velocities and positions in every scene, with all kinds of rows."""
    count = 50 if full or name in BOUNCING else 24
    most, alone = compare(name, count, stepper=stepper)
    assert most > 0
    assert alone > 0


@pytest.mark.parametrize("law", ("baumgarte", "erp_cfm", "none"))
@pytest.mark.parametrize("name", ("four-bar", "gear, spring, damping", "quadruped"))
def test_stabilisations_are_those_of_the_textbook(name, law, full):
    """Corrections through the velocities, soft rows, and none."""
    assert compare(name, 50 if full else 24, stabilisation=law)[0] > 0


@pytest.mark.full
@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("name", BOUNCING)
def test_sequential_impacts_are_those_of_the_textbook(name, stepper):
    """At the fastest approach, one after the other."""
    assert compare(name, 50, stepper=stepper, impacts="sequential")[0] > 0


@pytest.mark.full
@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("name", BOUNCING[:2])
def test_poissons_impacts_are_those_of_the_textbook(name, stepper):
    """Scenes whose impulses of compression are unique: the release is e times these."""
    assert compare(name, 50, stepper=stepper, restitution="poisson")[0] > 0
