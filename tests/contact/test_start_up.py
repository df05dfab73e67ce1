"""What a simulator compiles when it is made, and what waits until it is needed."""

import pytest
from contact_bodies import free_ball

import dyn_core as dyn
from dyn_core.contact.stepping.contact_model import ContactModel

# Programs of a state whose matrices are formed, which steps on arrays are not.
LATER = ("kinematics", "inertia", "_bias", "_loops", "_sweep")


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


def test_a_state_compiles_what_it_needs():
    """At the first state; what impulses do to velocities, when that is asked for."""
    model = free_ball()
    alone = ContactModel(model)
    assert made(alone) == []
    state = alone.state(model.neutral(), [0.0] * 6)
    assert made(alone) == list(LATER[:-1])
    assert state.H.shape == (6, 6)
