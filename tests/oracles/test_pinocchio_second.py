"""Second derivatives against differences of Pinocchio's first ones.

Its binding for Python has no second derivatives (4.1.0).
"""

import numpy as np
import pytest
from pinocchio_model import PinocchioModel

import dyn_core as dyn
from dyn_core import robots
from dyn_core.testing import scaled_error
from dyn_core.testing.case import derivative

pin = pytest.importorskip("pinocchio", reason="pin is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SLOPES = 1e-9  # of eighth-order differences


@pytest.mark.parametrize(
    ("name", "root"),
    [("arm7", "fixed"), ("planar3", "floating"), ("quadruped", "floating")],
)
def test_tensors_are_slopes_of_pinocchios_first_derivatives(name, root):
    """d2tau_dqdq, d2tau_dqdqd, d2tau_dqddqd and dH_dq, on the manifold, too."""
    model = dyn.load_urdf(robots.path(name), root_joint=root)
    peer, rng = PinocchioModel(model), np.random.default_rng(2)
    q, (qd, qdd) = model.random(rng), rng.normal(size=(2, model.nv))
    B = peer.B(q)
    assert np.array_equal(B @ B.T, np.eye(model.nv))  # the same axes in another order

    def first(dq, dqd):
        state = model.integrate(q, dq), qd + dqd, qdd
        place, rates = peer.q(state[0]), [B @ x for x in state[1:]]
        pin.computeRNEADerivatives(peer.model, peer.data, place, *rates)
        upper = np.triu(peer.data.M)
        M = upper + np.triu(upper, 1).T
        return np.array(
            [B.T @ x @ B for x in (peer.data.dtau_dq, peer.data.dtau_dv, M)]
        )

    still = np.zeros(model.nv)
    by_q, by_qd = (
        np.array([derivative(lambda t, e=e: along(e * t)) for e in np.eye(model.nv)])
        for along in (lambda d: first(d, still), lambda d: first(still, d))
    )
    expected = by_q[:, 0], by_qd[:, 0], by_qd[:, 1], by_q[:, 2]
    program = dyn.solver("id_second_derivatives").build(model, engine="graph")
    for got, wanted in zip(program(q, qd, qdd), expected, strict=True):
        assert scaled_error(got, np.moveaxis(wanted, 0, 2)) < SLOPES
