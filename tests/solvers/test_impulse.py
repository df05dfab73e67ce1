"""Impacts at points of links."""

import numpy as np
import pytest

import dyn_core as dyn


def test_a_foot_that_lands_stops(shipped):
    """The foot's velocity is the one asked for; points that depend are named."""
    model = shipped["quadruped"]
    foot = next(name for name in model.frame_names if name.endswith("_foot"))
    rng = np.random.default_rng(3)
    q, qd = model.random(rng), rng.normal(size=model.nv)
    points = [(foot, (0.0, 0.0, 0.0))]
    program = dyn.solver("point_impulse").build(model, points=points, engine="graph")
    after, impulse = program(q, qd, np.zeros(3))
    aligned = dyn.solver("frame_velocity").build(
        model, frame=foot, reference="aligned", engine="graph"
    )
    np.testing.assert_allclose(aligned(q, after)[3:], 0, atol=1e-10)
    kinetic = dyn.solver("energy").build(model, engine="graph")
    lost = kinetic(q, qd).kinetic - kinetic(q, after).kinetic
    work = -impulse @ aligned(q, qd)[3:] / 2  # an impact takes the mean speed
    assert lost == pytest.approx(work, rel=1e-9)
    twice = dyn.solver("point_impulse").build(model, points=points * 2, engine="graph")
    with pytest.raises(dyn.SingularError, match=r"point \d \(front_left_foot"):
        twice(q, qd, np.zeros(6))


def test_against_pinocchio():
    """impulseDynamics without restitution: the same velocity after it."""
    pin = pytest.importorskip("pinocchio")
    path = str(dyn.robots.path("arm7"))
    model, theirs = dyn.load_urdf(path), pin.buildModelFromUrdf(path)
    data, rng = theirs.createData(), np.random.default_rng(4)
    order = [theirs.joints[theirs.getJointId(n)].idx_v for n in model.joint_names]
    q, qd = rng.normal(size=(2, 7))
    q_pin, qd_pin = np.zeros(7), np.zeros(7)
    q_pin[order], qd_pin[order] = q, qd
    J = pin.computeFrameJacobian(
        theirs, data, q_pin, theirs.getFrameId("tool"),
        pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
    )[:3]  # fmt: skip
    M = pin.crba(theirs, data, q_pin)
    M = np.triu(M) + np.triu(M, 1).T
    G = J @ np.linalg.solve(M, J.T)
    wanted = qd_pin - np.linalg.solve(M, J.T @ np.linalg.solve(G, J @ qd_pin))
    program = dyn.solver("point_impulse").build(
        model, points=[("tool", (0.0, 0.0, 0.0))], engine="graph"
    )
    after = program(q, qd, np.zeros(3)).qd_next
    np.testing.assert_allclose(after, wanted[order], atol=1e-10)
