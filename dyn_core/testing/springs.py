"""Laws of springs in the joints: they add to joint forces, and to their slopes."""

from __future__ import annotations

import numpy as np

from dyn_core.model.coordinates import split_q
from dyn_core.spatial import Vector
from dyn_core.testing.case import Case, Pairs


def _stretch(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Give the joint forces of the springs, and their slopes, by plain arithmetic."""
    model = case.model
    force, slopes = np.zeros(model.nv), np.zeros((model.nv, model.nv))
    parts = split_q(model, Vector(case.q.tolist()))[1:]
    for i, q in zip(model.bodies, parts, strict=True):
        k = np.array(list(model.stiffness[i]))
        ratio = model.leader[i].ratio
        R = np.eye(len(k)) if ratio is None else np.asarray(ratio, float)
        at = model.v_slices[i]
        if k.any():
            force[at] += R.T @ (k * (np.array(list(q)) - list(model.rest[i])))
            slopes[at, at] += R.T @ np.diag(k) @ R
    return force, slopes


def joint_springs_add(case: Case) -> Pairs:
    """joint_springs=True adds stiffness (q - rest)"""
    stiff = case.program(joint_springs=True)(case.q, case.qd, case.qdd)
    slack = case.program()(case.q, case.qd, case.qdd)
    yield stiff, slack + _stretch(case)[0]


def joint_springs_pull(case: Case) -> Pairs:
    """joint_springs=True takes stiffness (q - rest) from tau"""
    stiff = case.program(joint_springs=True)(case.q, case.qd, case.qdd)
    slack = case.program()(case.q, case.qd, case.qdd - _stretch(case)[0])
    yield stiff, slack


def joint_springs_stiffen(case: Case) -> Pairs:
    """joint_springs=True adds the stiffness to dtau_dq, nothing to dtau_dqd"""
    stiff = case.program(joint_springs=True)(case.q, case.qd, case.qdd)
    slack = case.program()(case.q, case.qd, case.qdd)
    slopes = _stretch(case)[1].reshape(slack.dtau_dq.shape)
    yield stiff.dtau_dq - slack.dtau_dq, slopes
    yield stiff.dtau_dqd, slack.dtau_dqd
