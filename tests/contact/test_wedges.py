"""Wedged contacts: rebounds and pushes without impulses that give them are left out."""

import numpy as np
import pytest
from contact_bodies import joint, link, robot, sphere
from step_scenes import H, Scene, random_tree

from dyn_core.contact.stepping.array_batch import BatchStep
from dyn_core.contact.stepping.contact_model import ContactModel


def wedged_trees(seed):
    """Return a tree whose links touch one another, and bounce."""
    scene = random_tree(seed)
    scene.world = {}
    return scene


def slider(mu, restitution):
    """Return a ball on a rail that is nearly along a wall: it hits it very slowly.

    The rail is the only way, so that friction as large as the normal impulse holds the
    ball from both sides: impulses in the cone move nothing.
    """
    slope = 1e-3
    axis = (np.cos(slope), 0.0, -np.sin(slope))
    limit = '<limit lower="-9" upper="9" effort="0" velocity="99"/>'
    parts = [
        link("ball", 1.0, (0.004,) * 3, sphere(0.1)),
        joint("rail", "prismatic", "base", "ball", axis, (0, 0, 0.1), limit),
    ]
    rough = {"mu": mu, "restitution": restitution}
    model = robot(*parts, materials={"default": rough}, gravity=(0, 0, 0))
    return Scene(model, [0.0], [200.0])


@pytest.mark.parametrize("solver", ("coulomb_newton", "lemke"))
def test_a_rebound_that_friction_forbids_is_left_out(solver):
    """The ball stops, by rows and by matrices: no impulse in the cone drives it back."""
    sim = slider(0.5, 0.5).simulator(solver=solver)
    sim.advance(0.0)
    assert sim.report.status == "wedged"
    assert sim.counters == {"contacts wedged": 1}
    assert abs(sim.qd[0]) < 1e-3
    (impulse,) = (x for x in sim.report.impulses.values() if len(x) == 3)
    assert np.abs(impulse).max() < 1e3
    sim.advance(H)
    assert sim.report.status == "converged"


def test_a_rebound_that_friction_allows_is_kept():
    """Without friction, the ball goes back: u_n = -e u_n-."""
    sim = slider(0.0, 0.5).simulator()
    sim.advance(0.0)
    assert sim.qd[0] == pytest.approx(-100.0)
    assert not sim.counters


@pytest.mark.one_of(2)
@pytest.mark.parametrize("seed", (62, 82, 104, 115, 140, 151))
def test_impulses_of_wedged_trees_are_bounded(seed):
    """They reached 1e11 N·s, and velocities 1e200 rad/s, before rebounds were left out."""
    sim = wedged_trees(seed).simulator()
    wedged = 0
    for k in range(300):
        sim.advance(k * H)
        wedged += sim.report.status == "wedged"
        assert np.abs(sim.qd).max() < 1e3
        for x in sim.report.impulses.values():
            assert np.abs(x).max() < 1e3
    assert wedged == sim.counters["contacts wedged"]


@pytest.mark.parametrize(("solver", "steps"), (("coulomb_newton", 30), ("lemke", 2)))
def test_a_push_out_of_a_wedge_is_left_out(solver, steps):
    """By Baumgarte's rule the push is a velocity, too; the law held by no tolerance.

    A ray of lemke says what other solvers say by their last iteration.
    """
    scene = wedged_trees(64)
    scene.world = {"stabilisation": "baumgarte"}
    sim = scene.simulator(solver=solver)
    for k in range(steps):
        sim.advance(k * H)
        largest = max(np.abs(x).max() for x in sim.report.impulses.values())
        assert largest < 1e3
    assert sim.counters["contacts wedged"] > 0


def test_batches_leave_out_the_same():
    """The bits of a wedged step are those of the simulator's."""
    scene = slider(0.5, 0.5)
    model = ContactModel(scene.model)
    batch, tau = BatchStep(model, H, 3), np.zeros((3, 1))
    speeds = np.array([[200.0], [0.0], [200.0]])
    q, qd, outcome = batch.step(np.zeros((3, 1)), speeds, tau)
    sim = scene.simulator()
    sim.advance(0.0)
    np.testing.assert_array_equal(qd[0], sim.qd)
    np.testing.assert_array_equal(q[2], sim.q)
    assert outcome.status.tolist() == [6, 0, 6]
    assert outcome.not_converged == 2
