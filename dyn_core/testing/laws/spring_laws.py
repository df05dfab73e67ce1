"""Laws of joint springs: they add to joint forces and their derivatives."""

from __future__ import annotations

import numpy as np

from dyn_core.model.coordinates import split_q
from dyn_core.spatial import Vector
from dyn_core.testing.case import Case, Pairs, derivative


def _stretch(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return joint forces, (nv,), and stiffness matrix, (nv, nv), of the springs."""
    model = case.model
    force, slopes = np.zeros(model.nv), np.zeros((model.nv, model.nv))
    parts = split_q(model, Vector(case.q.tolist()))[1:]
    for i, q in zip(model.bodies, parts, strict=True):
        k = np.array(list(model.stiffness[i]))
        ratio = model.leader[i].ratio
        R = np.eye(len(k)) if ratio is None else np.asarray(ratio, float)
        columns = model.v_slices[i]
        if k.any():
            force[columns] += R.T @ (k * (np.array(list(q)) - list(model.rest[i])))
            slopes[columns, columns] += R.T @ np.diag(k) @ R
    return force, slopes


def joint_springs_add(case: Case) -> Pairs:
    """joint_springs=True adds stiffness (q - rest)"""
    with_springs = case.program(joint_springs=True)(case.q, case.qd, case.qdd)
    without_springs = case.program()(case.q, case.qd, case.qdd)
    yield with_springs, without_springs + _stretch(case)[0]


def joint_springs_pull(case: Case) -> Pairs:
    """joint_springs=True takes stiffness (q - rest) from tau"""
    with_springs = case.program(joint_springs=True)(case.q, case.qd, case.qdd)
    without_springs = case.program()(case.q, case.qd, case.qdd - _stretch(case)[0])
    yield with_springs, without_springs


def joint_springs_are_held(case: Case) -> Pairs:
    """with springs g(q) = C(q, 0) + stiffness (q - rest)"""
    with_springs = case.program(joint_springs=True)(case.q)
    yield with_springs, case.program()(case.q) + _stretch(case)[0]


def joint_springs_store_energy(case: Case) -> Pairs:
    """with springs d/dt potential = g . qd, g with springs"""
    program = case.program(joint_springs=True)
    rate = derivative(lambda t: program(case.moved(t), case.qd)[1])
    yield rate, case.other("gravity", joint_springs=True)(case.q) @ case.qd
    kinetic = program(case.q, case.qd)[0]
    yield kinetic, case.program()(case.q, case.qd)[0]


def joint_springs_stiffen(case: Case) -> Pairs:
    """joint_springs=True adds the stiffness to dtau_dq, nothing to dtau_dqd"""
    with_springs = case.program(joint_springs=True)(case.q, case.qd, case.qdd)
    without_springs = case.program()(case.q, case.qd, case.qdd)
    slopes = _stretch(case)[1].reshape(without_springs.dtau_dq.shape)
    yield with_springs.dtau_dq - without_springs.dtau_dq, slopes
    yield with_springs.dtau_dqd, without_springs.dtau_dqd
