"""Derivatives of a step with contacts, and impulses from velocities on robots."""

import textwrap

import numpy as np
import pytest
from constrained_state import constrained_state
from contact_bodies import free_box, point_mass, two_link

import dyn_core as dyn
from dyn_core.contact import impulse_of_velocity, solve
from dyn_core.contact.derivatives import differentiable_step as derivatives
from dyn_core.contact.derivatives import step_derivatives

H = 0.01


def _mu(value):
    return {"materials": {"default": {"mu": value}}}


WORLD = {"solver_options": {"tolerance": 1e-14, "max_iterations": 20_000}}


def test_the_example_of_the_module_runs():
    """The example in the docstring: a standing quadruped sticks on all feet."""
    namespace = {}
    exec(textwrap.dedent(derivatives.__doc__.split("\n", 1)[1]), namespace)
    step = namespace["step"]
    assert (step.A.shape, step.B.shape) == ((36, 36), (36, 18))
    feet = [mode for name, mode in step.modes.items() if "foot" in name]
    assert feet == ["stick"] * 4


def test_dependent_slipping_contacts_are_flagged():
    """A turning, sliding box on four corners: friction depends on the distribution of load."""
    contact_model = dyn.authoring.ContactModel(free_box(**_mu(0.3)), WORLD)
    q, qd = np.array([0, 0, 0.25, 0, 0, 0, 1]), np.array([0, 0, 0.3, 1.0, 0.5, -0.1])
    assert (
        step_derivatives(contact_model, q, qd, np.zeros(6), H).not_differentiable == 1
    )


def test_a_sticking_contact_does_not_move_with_forces():
    """C1: along the contact B is zero; slipping has its closed form."""
    for mu, speed in ((0.5, 0.0), (0.3, 1.0)):
        model = point_mass(**_mu(mu))
        contact_model = dyn.authoring.ContactModel(model, WORLD)
        step = step_derivatives(
            contact_model, np.zeros(2), np.array([speed, 0]), np.zeros(2), H
        )
        if speed:  # v+ = v + h (f_x - mu (m g - f_z)) / m
            np.testing.assert_allclose(step.B[2:], [[H, mu * H], [0, 0]], atol=1e-9)
            np.testing.assert_allclose(step.dx_dmu[2:], [[-9.81 * H], [0]], atol=1e-8)
        else:
            np.testing.assert_allclose(step.B, 0, atol=1e-9)


def test_boundaries_of_modes_are_flagged():
    """Just touching without force, friction just at its cone; at rest it is gap 0."""
    weightless = point_mass(gravity=(0, 0, 0), **_mu(0.5))
    resting = point_mass(**_mu(0.5))
    still, push = np.zeros(2), np.array([0.5 * 9.81, 0.0])
    for model, tau, flag in (
        (weightless, still, 1), (resting, push, 1), (resting, 0.5 * push, 2),
    ):  # fmt: skip
        contact_model = dyn.authoring.ContactModel(model, WORLD)
        step = step_derivatives(contact_model, still, still, tau, H)
        assert step.not_differentiable == flag


@pytest.mark.parametrize("kind", ["box", "arm"])
def test_impulses_from_velocities(kind):
    """Soft contacts of a robot: the velocity after the step tells the impulses."""
    if kind == "box":
        model = free_box(**_mu(0.4))
        q, qd = (
            np.array([0, 0, 0.25, 0, 0, 0, 1]),
            np.array([0.1, 0, 0.2, 0.5, 0.1, -0.3]),
        )
        world = {}
    else:
        model = two_link(0.05, **_mu(0.6))
        q, qd = np.array([-0.5, -0.4]), np.array([-0.5, 0.3])
        world = {
            "half_spaces": [{"normal": [0, 1, 0], "point": [0, -1.15, 0]}],
            "margin": 0.1,
        }
    state = constrained_state(dyn.authoring.ContactModel(model, world), q, qd, H)
    assert any(c.role == "contact" for c in state.constraints)
    free = state.free(np.zeros(model.nv), H)
    problem = state.problem(free, H, compliance=1e-2)
    derivatives = solve(problem, "admm", tolerance=1e-13)
    assert derivatives.converged
    velocity = state.J @ state.moved(free, derivatives.impulses)
    np.testing.assert_allclose(
        impulse_of_velocity(problem, velocity), derivatives.impulses, atol=1e-8
    )
