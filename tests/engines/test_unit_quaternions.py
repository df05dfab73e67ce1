"""finite=True refuses quaternions that are none, on every engine, and names the joint."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.model.coordinates.configuration_space import UNIT_TOLERANCE
from dyn_core.testing import random_model

ENGINES = ["plain", "graph", "native"]


def _ball():
    """Return a body on a spherical joint `j1`, and one of its positions."""
    model = random_model(2, size=1, kinds=("spherical",), massless=0.0)
    return model, model.random(np.random.default_rng(0))


@pytest.mark.parametrize("engine", ENGINES)
def test_quaternions_of_another_length_are_refused(engine):
    """Length 1.1, zero, and a row of a batch; a rounded one passes."""
    model, q = _ball()
    program = dyn.solver("gravity").build(model, engine=engine, finite=True)
    for bad in (1.1 * q, 0.0 * q, (1 + 1.1 * UNIT_TOLERANCE) * q):
        with pytest.raises(dyn.QuaternionError, match="normalize.*joint j1"):
            program(bad)
        assert np.isfinite(program(q)).all()
    near = program((1 + 0.9 * UNIT_TOLERANCE) * q)
    assert np.isfinite(near).all()
    with pytest.raises(dyn.QuaternionError, match=r"rows 1, 4\)") as caught:
        program(np.stack([q, 2 * q, q, q, 0 * q]))
    assert caught.value.rows == (1, 4)
    assert isinstance(caught.value, ValueError)
    values, status = program(np.stack([q, 2 * q]), status=True)
    assert status.tolist()[0] == 0 != status.tolist()[1]
    assert np.isnan(values[1]).all()


def test_repaired_positions_pass():
    """model.normalize(q) is what the error says it is."""
    model, q = _ball()
    program = dyn.solver("gravity").build(model, engine="graph", finite=True)
    np.testing.assert_allclose(program(model.normalize(3 * q)), program(q))


def test_no_scaling_makes_zero_a_rotation():
    """One position or a row of a batch: refused, with the joint."""
    model, q = _ball()
    for bad in (0.0 * q, np.stack([q, 0.0 * q])):
        with pytest.raises(dyn.NonFiniteError, match="of joint j1 is zero"):
            model.normalize(bad)


def test_silent_builds_stay_as_they_are():
    """finite=False computes with what it gets; its Graph requires nothing."""
    model, q = _ball()
    program = dyn.solver("gravity").build(model, engine="graph")
    assert not program.graph.requirements
    assert np.isfinite(program(1.1 * q)).all()


def test_every_position_is_checked():
    """References of a control law too, and the floating joint's last four numbers."""
    model = random_model(2, size=1, kinds=("floating",), massless=0.0)
    law = dyn.solver("computed_torque").build(model, engine="graph", finite=True)
    q, rest = model.random(np.random.default_rng(1)), np.zeros(6)
    far = np.r_[7 * q[:3], q[3:]]
    good = law(far, rest, q, rest, rest, rest, rest)
    assert np.isfinite(good).all()
    for q_ref, q_now in ((np.r_[q[:3], 2 * q[3:]], q), (q, np.r_[q[:3], 0 * q[3:]])):
        with pytest.raises(dyn.QuaternionError, match="joint j1"):
            law(q_now, rest, q_ref, rest, rest, rest, rest)


def test_numpy_solvers_check_too():
    """A solver that calls a library is asked the same with finite=True."""

    class Weightless(dyn.authoring.NumpySolver):
        name, signature = "weightless", dyn.problems.GRAVITY_FORCE

        def solve(self, model, q):
            return np.zeros(model.nv)

    model, q = _ball()
    with pytest.raises(dyn.QuaternionError, match="joint j1"):
        Weightless().build(model, finite=True)(2 * q)
    assert not Weightless().build(model)(2 * q).any()
