"""Derivatives of constrained forward dynamics beside Pinocchio's, where kinds match."""

import numpy as np
import pytest
from pinocchio_model import PinocchioModel

import dyn_core as dyn
from dyn_core.spatial import Matrix, Transform, Vector
from dyn_core.testing import scaled_error

pin = pytest.importorskip("pinocchio", reason="pin is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
GOOD = 1e-9


def _peer(model, links, kind, q, qd, tau):
    """Return B and Pinocchio's six derivatives of links held in place."""
    peer = PinocchioModel(model)
    rows, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for link in links:
        frame = peer.model.frames[peer.model.getFrameId(link)]
        row = pin.RigidConstraintModel(
            kind, peer.model, frame.parentJoint, frame.placement,
            pin.ReferenceFrame.LOCAL,
        )  # fmt: skip
        rows.append(row)
        data.append(row.createData())
    B = peer.B(q)
    peer.model.armature = np.diag(B @ peer.rotors @ B.T).copy()
    pin.initConstraintDynamics(peer.model, peer.data, rows, data)
    state = peer.q(q), B @ qd, np.linalg.solve(B.T, tau)
    pin.constraintDynamics(peer.model, peer.data, *state, rows, data)
    pin.computeConstraintDynamicsDerivatives(peer.model, peer.data, rows, data)
    return B, [
        np.array(x)
        for x in (
            peer.data.ddq_dq, peer.data.ddq_dv, peer.data.ddq_dtau,
            peer.data.dlambda_dq, peer.data.dlambda_dv, peer.data.dlambda_dtau,
        )
    ]  # fmt: skip


FEET = ["front_left_foot", "hind_right_foot"]


def _place(T):
    """Return the Transform from the base to a frame at a pose."""
    return Transform(Matrix(T[:3, :3].T.tolist()), Vector(T[:3, 3].tolist()))


@pytest.mark.parametrize(
    ("name", "links", "kind"),
    [
        ("arm7", ["tool"], "point"),
        ("arm7", ["tool"], "weld"),
        ("quadruped", FEET, "point"),
        ("quadruped", FEET[:1], "weld"),
    ],
)
def test_derivatives_of_held_links(name, links, kind, shipped):
    """qdd and lambda of links held in place, by q, qd and tau.

    Pinocchio's multipliers are in the link's axes, ours in the base's: R turns with q.
    """
    model = shipped[name].without_friction()
    rng = np.random.default_rng(3)
    q, (qd, tau) = model.random(rng), rng.normal(size=(2, model.nv))
    kinematics = dyn.solver("forward_kinematics").build(model, frames=links)
    poses = kinematics(q)
    loops = [
        dyn.make_loop(n, kind, n, at_a=_place(T))
        for n, T in zip(links, poses, strict=True)
    ]
    closed = model.with_loops(*loops)
    qd = dyn.close_rates(closed, q, qd)
    got = dyn.solver("loop_fd_derivatives").build(closed, engine="graph")(q, qd, tau)
    contact = {"point": pin.ContactType.CONTACT_3D, "weld": pin.ContactType.CONTACT_6D}
    B, theirs = _peer(model, links, contact[kind], q, qd, tau)
    right = B, B, np.linalg.inv(B.T)
    slopes = got.dqdd_dq, got.dqdd_dqd, got.dqdd_dtau
    for ours, other, change in zip(slopes, theirs[:3], right, strict=True):
        _same(ours, np.linalg.solve(B, other @ change))
    slopes = [got.dlambda_dq, got.dlambda_dqd, got.dlambda_dtau]
    if kind == "point":
        slopes[0] = slopes[0] + _turned(model, links, q, got.lambda_)
    for k, (ours, other, change) in enumerate(
        zip(slopes, theirs[3:], right, strict=True)
    ):
        if k or kind == "point":  # the multipliers of a weld are of its rotation vector
            _same(ours, other @ change)


def _turned(model, links, q, multipliers):
    """Return the change of forces in axes that turn with their links: -w x lambda."""
    parts = []
    for link, x in zip(links, multipliers.reshape(-1, 3), strict=True):
        J = dyn.solver("jacobian").build(model, frame=link, engine="graph")(q)
        parts.append(-np.cross(J[:3].T, x).T)
    return np.vstack(parts)


def _same(ours, wanted):
    scale = max(1.0, np.abs(wanted).max())
    assert scaled_error(ours / scale, wanted / scale) < GOOD
