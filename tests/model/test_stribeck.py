"""Friction that rises near rest: forces, slopes, parameters, refusals."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.model.passive_forces import friction_slope
from dyn_core.simulation.robot_overview import describe
from dyn_core.spatial import Vector
from dyn_core.testing.case import derivative

EXTRAS = {
    "joint1": {
        "friction": [0.4, 0.3],
        "friction_speed": 0.02,
        "damping": 0.1,
        "stribeck": 0.25,
        "stribeck_speed": 0.07,
    },
    "joint2": {"stribeck": 0.15},
}
FRICTION = {"engine": "graph", "joint_friction": True}
STATES = (-0.5, -0.06, -0.004, 0.0, 0.007, 0.05, 0.9)


def _arm(joints=EXTRAS):
    return dyn.load_urdf(dyn.robots.path("two_link"), extras={"joints": joints})


def _law(qd):
    """Return friction of joint1 as the guide states it."""
    t = math.tanh(qd / 0.02)
    return 0.1 * qd + t * (0.35 + 0.05 * t + 0.25 * math.exp(-((qd / 0.07) ** 2)))


@pytest.mark.parametrize("engine", ["plain", "graph", "native"])
def test_friction_rises_near_rest(engine):
    """The law by each engine; far from rest only Coulomb's part is left."""
    model, still = _arm(), np.zeros(2)
    rough, smooth = (
        dyn.solver("rnea").build(model, engine=engine, joint_friction=on)
        for on in (True, False)
    )
    for qd in STATES:
        speed = np.array([qd, 0.2])
        taken = rough(still, speed, still) - smooth(still, speed, still)
        assert taken[0] == pytest.approx(_law(qd), abs=1e-13)
        assert qd * taken[0] >= 0.0
    assert _law(0.9) == pytest.approx(0.09 + 0.4, abs=1e-12)


def test_slopes_agree_with_differences():
    """First derivatives of inverse and forward dynamics, second ones along qd."""
    model, still = _arm(), np.zeros(2)
    rnea, fd = (dyn.solver(x).build(model, **FRICTION) for x in ("rnea", "aba"))
    first = dyn.solver("id_derivatives").build(model, **FRICTION)
    second = dyn.solver("id_second_derivatives").build(model, **FRICTION)
    of_fd = dyn.solver("fd_derivatives").build(model, **FRICTION)
    e = np.array([1.0, 0.0])
    for qd in STATES:
        state = np.array([qd, 0.2])

        def moved(function, state=state):
            return derivative(lambda t: function(state + t * e), 1e-4)

        wanted = moved(lambda v: rnea(still, v, still))
        got = first(still, state, still).dtau_dqd[:, 0]
        np.testing.assert_allclose(got, wanted, atol=1e-7)
        wanted = moved(lambda v: fd(still, v, still))
        got = of_fd(still, state, still).dqdd_dqd[:, 0]
        np.testing.assert_allclose(got, wanted, atol=1e-7)
        wanted = moved(lambda v: first(still, v, still).dtau_dqd[0, 0])
        bend = second(still, state, still).d2tau_dqddqd[0, 0, 0]
        np.testing.assert_allclose(bend, wanted, atol=1e-5)


def test_implicit_steps_see_no_falling_friction():
    """What they add to the inertia is not negative, though the law falls."""
    model = _arm()
    assert _law(0.05) > _law(0.12)
    for qd in STATES:
        assert min(friction_slope(model, Vector([qd, 0.1]))) >= 0.0


def test_its_numbers_and_the_width_are_parameters():
    """Derivatives by stribeck and both speeds; inputs do what a build with them does."""
    model, q, still = _arm(), np.full(2, 0.3), np.zeros(2)
    paths = [f"joint1.{x}" for x in ("stribeck", "stribeck_speed", "friction_speed")]
    by = dyn.solver("parameter_jacobian").build(model, paths=paths, **FRICTION)
    at_inputs = dyn.solver("rnea").build(model, inputs=paths, **FRICTION)
    state = np.array([0.05, 0.1])
    tau, slopes = by(q, state, still)
    numbers = np.array([0.25, 0.07, 0.02])
    for k, step in enumerate(np.eye(3) * 1e-5):
        ahead = at_inputs(q, state, still, *(numbers + step))
        back = at_inputs(q, state, still, *(numbers - step))
        np.testing.assert_allclose(slopes[:, k], (ahead - back) / 2e-5, atol=1e-6)
    np.testing.assert_allclose(at_inputs(q, state, still, *numbers), tau, atol=1e-14)


def test_robots_without_it_pay_nothing():
    """Their graphs have no exponential; those with it have one for each joint."""
    plain = dyn.solver("rnea").build(_arm({}), **FRICTION)
    rising = dyn.solver("rnea").build(_arm(), **FRICTION)
    counts = [
        sum(node.op == "exp" for node in program.graph.nodes)
        for program in (plain, rising)
    ]
    assert counts == [0, 2]


def test_the_overview_shows_it_and_none_is_left_without_friction():
    """`dyn info` adds it to dry friction; a robot without friction has none."""
    assert any(" 0.4/0.3+0.25 " in line for line in describe(_arm()))
    bare = _arm().without_friction()
    assert not any(x for row in bare.stribeck for x in row)
