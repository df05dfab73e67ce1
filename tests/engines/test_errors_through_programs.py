"""Errors that a solver raises come through Programs with all that they keep."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import NumpySolver, TracedSolver
from dyn_core.problems import BIAS_FORCE, FORWARD_DYNAMICS, STEP


class Stuck(NumpySolver):
    """Forward dynamics without a solution where joint 1 is beyond a quarter turn."""

    name = "stuck"
    signature = FORWARD_DYNAMICS

    def solve(self, model, q, qd, tau, f_ext):
        """Return no acceleration, or no solution."""
        if q[0] > 1.5:
            error = dyn.InfeasibleError("joint1", residual=float(q[0]))
            error.hint = "turn back"
            raise error
        return 0.0 * qd


def _inverse(model, q, qd, f_ext):
    """Return the reciprocals of q."""
    return dyn.authoring.Vector([1.0 / x for x in q])


def _step(model, q, qd, tau, dt, f_ext, forward_dynamics):
    """Return the velocity that the slot's accelerations lead to."""
    return q, qd + forward_dynamics(q, qd, tau, f_ext[1:]) * dt


def test_a_residual_comes_through_a_program_and_a_slot():
    """One state, a batch with its rows, and a solver in a slot on each engine."""
    model = dyn.load_urdf(dyn.robots.path("two_link"))
    program, far = Stuck().build(model), np.array([2.0, 0.0])
    still = np.zeros(2)
    with pytest.raises(dyn.InfeasibleError) as caught:
        program(far, still, still)
    assert caught.value.residual == 2.0
    assert caught.value.hint == "turn back"
    with pytest.raises(dyn.InfeasibleError, match="rows 1") as caught:
        program(np.array([still, far]), still, still)
    assert (caught.value.residual, caught.value.rows) == (2.0, (1,))
    step = TracedSolver(
        "step_of_slot", STEP, _step, by_joint=False,
        slots={"forward_dynamics": FORWARD_DYNAMICS},
    )  # fmt: skip
    for engine in ("plain", "graph"):
        stepper = step.build(model, engine=engine, forward_dynamics=Stuck())
        with pytest.raises(dyn.InfeasibleError) as caught:
            stepper(far, still, still, 0.1)
        assert caught.value.residual == 2.0, engine


def test_a_division_by_zero_on_plain_numbers_is_an_error_of_its_row():
    """It is of the state, not of the algorithm: other rows have their results."""
    model = dyn.load_urdf(dyn.robots.path("two_link"))
    inverse = TracedSolver("inverse", BIAS_FORCE, _inverse, by_joint=False)
    program = inverse.build(model, engine="plain")
    still = np.zeros(2)
    with pytest.raises(dyn.SingularError, match="inverse.*division by zero"):
        program(np.array([1.0, 0.0]), still)
    with pytest.raises(dyn.SingularError) as caught:
        program(np.array([[1.0, 2.0], [1.0, 0.0]]), still)
    assert caught.value.rows == (1,)
    with pytest.raises(dyn.SingularError, match="division by zero"):
        program.run_complex([1.0, 0.0, 0.0, 0.0])
