"""Derivatives of a step with contacts, and impulses from velocities on robots."""

import textwrap

import numpy as np
import pytest
from contact_bodies import free_box, planar_rod, point_mass, two_link

import dyn_core as dyn
from dyn_core.contact import impulse_of_velocity, solve
from dyn_core.contact.stepping import derivatives, step_derivatives
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.contact.stepping.integration import moved

H = 0.01


def _mu(value):
    return {"materials": {"default": {"mu": value}}}


def _step(contact_model, q, qd, tau):
    _, qd_next, record = ArrayStep(contact_model, H).step(0.0, q, qd, tau)
    assert record.status == "converged"
    return qd_next


def _differences(function, n, d=1e-5):
    return np.array(
        [(function(d * e) - function(-d * e)) / (2 * d) for e in np.eye(n)]
    ).T


FEET = [
    {"type": "sphere", "radius": 0.0, "xyz": [x, y, -0.25]}
    for x, y in ((0.5, 0.0), (-0.4, 0.4), (-0.5, -0.3))
]


def _tripod(mu):
    """Return the box on three feet."""
    return free_box(**_mu(mu), collisions={"box": {"replace": FEET}})


WORLD = {
    "solver_options": {"tolerance": 1e-14, "max_iterations": 20_000},
    "stabilisation": "baumgarte",  # corrections of positions have no derivatives
}
CASES = {
    "stick": (lambda mu: planar_rod(**_mu(mu)), [0, 0.5, np.pi / 6], [0.1, -0.5, 0.2], 0.9),
    "slip": (lambda mu: planar_rod(**_mu(mu)), [0, 0.5, np.pi / 6], [2.0, -0.5, 0.2], 0.1),
    "separate": (lambda mu: planar_rod(**_mu(mu)), [0, 0.51, np.pi / 6], [0, 1.5, 0.0], 0.5),
    "sliding tripod": (_tripod, [0, 0, 0.25, 0, 0, 0, 1], [0, 0, 0.3, 1.0, 0.5, -0.1], 0.3),
    "resting box": (lambda mu: free_box(**_mu(mu)), [0, 0, 0.25, 0, 0, 0, 1], [0, 0, 0, 0.0, 0.01, 0], 0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_a_step(name):
    """Derivatives by state, force and coefficient agree with differences."""
    make, q, qd, mu = CASES[name]
    model = make(mu)
    q, qd, tau = np.array(q, float), np.array(qd, float), np.zeros(model.nv)
    contact_model = dyn.authoring.ContactModel(model, WORLD)
    step = step_derivatives(contact_model, q, qd, tau, H)
    assert not step.not_differentiable
    mode = {"sliding tripod": "slip", "resting box": "stick"}.get(name, name)
    assert set(step.modes.values()) == {mode}
    close = {"rtol": 2e-5, "atol": 2e-6}
    nv = model.nv
    by_qd = _differences(lambda d: _step(contact_model, q, qd + d, tau), nv)
    np.testing.assert_allclose(step.dqd, by_qd, **close)
    by_tau = _differences(lambda d: _step(contact_model, q, qd, tau + d), nv, 1e-3)
    np.testing.assert_allclose(step.dtau, by_tau, **close)
    if "box" not in name:  # a box leaves two of its corners when it turns
        by_q = _differences(
            lambda d: _step(contact_model, moved(model, q, d), qd, tau), nv, 1e-6
        )
        np.testing.assert_allclose(step.dq, by_q, rtol=1e-4, atol=1e-4)
    d = 1e-5
    ends = [
        _step(dyn.authoring.ContactModel(make(x), WORLD), q, qd, tau)
        for x in (mu + d, mu - d)
    ]
    by_mu = (ends[0] - ends[1]) / (2 * d)
    np.testing.assert_allclose(step.dmu.sum(axis=1), by_mu, **close)


def test_the_example_of_the_module_runs():
    """The example in the docstring: a standing quadruped sticks on all feet."""
    namespace = {}
    exec(textwrap.dedent(derivatives.__doc__.split("\n", 1)[1]), namespace)
    step = namespace["step"]
    assert step.dtau.shape == (18, 18)
    feet = [mode for name, mode in step.modes.items() if "foot" in name]
    assert feet == ["stick"] * 4


def test_dependent_slipping_contacts_are_flagged():
    """A turning, sliding box on four corners: friction depends on the distribution of load."""
    contact_model = dyn.authoring.ContactModel(free_box(**_mu(0.3)), WORLD)
    q, qd = np.array([0, 0, 0.25, 0, 0, 0, 1]), np.array([0, 0, 0.3, 1.0, 0.5, -0.1])
    assert step_derivatives(contact_model, q, qd, np.zeros(6), H).not_differentiable


def test_a_sticking_contact_does_not_move_with_forces():
    """C1: along the contact dqd/dtau is zero; slipping has its closed form."""
    for mu, speed in ((0.5, 0.0), (0.3, 1.0)):
        model = point_mass(**_mu(mu))
        contact_model = dyn.authoring.ContactModel(model, WORLD)
        step = step_derivatives(
            contact_model, np.zeros(2), np.array([speed, 0]), np.zeros(2), H
        )
        if speed:  # v+ = v + h (f_x - mu (m g - f_z)) / m
            np.testing.assert_allclose(step.dtau, [[H, mu * H], [0, 0]], atol=1e-9)
            np.testing.assert_allclose(step.dmu, [[-9.81 * H], [0]], atol=1e-8)
        else:
            np.testing.assert_allclose(step.dtau, 0, atol=1e-9)


def test_boundaries_of_modes_are_flagged():
    """Just touching without force, and friction just at its cone."""
    model = point_mass(gravity=(0, 0, 0), **_mu(0.5))
    contact_model = dyn.authoring.ContactModel(model, WORLD)
    step = step_derivatives(contact_model, np.zeros(2), np.zeros(2), np.zeros(2), H)
    assert step.not_differentiable
    model = point_mass(**_mu(0.5))
    contact_model = dyn.authoring.ContactModel(model, WORLD)
    tau = np.array([0.5 * 9.81, 0.0])
    assert step_derivatives(
        contact_model, np.zeros(2), np.zeros(2), tau, H
    ).not_differentiable
    assert not step_derivatives(
        contact_model, np.zeros(2), np.zeros(2), 0.5 * tau, H
    ).not_differentiable


def test_soft_rows_have_no_derivatives():
    """Soft rows are refused, with the valid choices."""
    contact_model = dyn.authoring.ContactModel(
        point_mass(), {"stabilisation": "erp_cfm"}
    )
    with pytest.raises(dyn.UnsupportedError, match="baumgarte"):
        step_derivatives(contact_model, np.zeros(2), np.zeros(2), np.zeros(2), H)


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
    state = dyn.authoring.ContactModel(model, world).state(q, qd, H)
    assert any(c.role == "contact" for c in state.constraints)
    free = state.free(np.zeros(model.nv), H)
    problem = state.problem(free, H, compliance=1e-2)
    derivatives = solve(problem, "admm", tolerance=1e-13)
    assert derivatives.converged
    velocity = state.J @ state.moved(free, derivatives.impulses)
    np.testing.assert_allclose(
        impulse_of_velocity(problem, velocity), derivatives.impulses, atol=1e-8
    )
