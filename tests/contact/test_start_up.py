"""What a simulator compiles when it is made, and what waits until it is needed."""

import pytest
from contact_bodies import free_ball

import dyn_core as dyn

# Programs of events and reports, which steps do not need.
LATER = ("kinematics", "inertia", "_bias", "_loops")


def made(contact_model):
    """Return which Programs of a state there are."""
    return [name for name in LATER if name in vars(contact_model)]


@pytest.mark.parametrize("solver", ("coulomb_newton", "lemke"))
@pytest.mark.parametrize("start", (0.15, 0.05))
def test_steps_compile_none_of_these(start, solver):
    """Also with a solver of matrices, where the start is looked at for overlaps, and while it steps."""
    model = free_ball(r=0.1)
    q = model.neutral()
    q[2] = start
    sim = dyn.ContactSimulator(model, {"solver": solver}, q0=q)
    assert bool(sim.warnings) == (start < 0.1)
    for k in range(3):
        sim.advance(k * sim.period)
    assert made(sim.contact_model) == ["_loops"]  # None: there are none
    assert len(sim.report.contacts) == (start < 0.1)
    assert "inertia" in made(sim.contact_model)
