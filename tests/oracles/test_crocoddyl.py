"""Derivatives of steps against Crocoddyl's."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.testing import TOLERANCES, scaled_error

crocoddyl = pytest.importorskip("crocoddyl", reason="crocoddyl is not installed")
pin = pytest.importorskip("pinocchio", reason="pinocchio is not installed")
DT = 0.01


@pytest.mark.parametrize("robot", ["two_link", "arm7"])
def test_linearised_steps(robot):
    """A and B of a semi-implicit step are Fx and Fu of Crocoddyl's Euler step.

    With rotor inertias set, if only to zero, it divides by H: in Crocoddyl 3.2.1 with
    Pinocchio 4.1.0 the other way leaves gravity out of xnext, though not out of Fx.
    """
    path = robots.path(robot)
    model = pin.buildModelFromUrdf(str(path))
    here = dyn.load_urdf(path)
    state = crocoddyl.StateMultibody(model)
    dynamics = crocoddyl.DifferentialActionModelFreeFwdDynamics(
        state, crocoddyl.ActuationModelFull(state), crocoddyl.CostModelSum(state)
    )
    dynamics.armature = np.zeros(model.nv)
    step = crocoddyl.IntegratedActionModelEuler(dynamics, DT)
    data, rng = step.createData(), np.random.default_rng(0)
    q, qd, tau = rng.uniform(-1, 1, (3, here.nv))
    x = np.concatenate([q, qd])
    step.calc(data, x, tau)
    step.calcDiff(data, x, tau)
    solver = dyn.solver("semi_implicit_euler_derivatives")
    result = solver.build(here, engine="graph")(q, qd, tau, DT)
    end = np.concatenate([result.q_next, result.qd_next])
    for ours, theirs in ((end, data.xnext), (result.A, data.Fx), (result.B, data.Fu)):
        assert scaled_error(ours, theirs) < TOLERANCES["exact"]
