"""Laws of second derivatives, as slopes: each yields pairs that must agree.

A law takes a case: a solver under test, its robot, and a random state q, qd, qdd. It
yields pairs (left, right) of arrays that must agree; a pair (float(condition), 1.0)
checks a condition. ID and FD are inverse and forward dynamics, H the mass matrix, C the
bias force, J a Jacobian; (+) and (-) are integrate and difference of positions. In laws
of FD the case's qdd serves as joint forces tau.

Pairs are computed when they are read. Errors of the builds and calls of Programs, such
as UnsupportedError for a robot that a solver refuses, pass through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core import problems as kinds
from dyn_core.model import Model
from dyn_core.problems import Signature
from dyn_core.spatial import Vector
from dyn_core.spatial.inertia import cross_matrix
from dyn_core.testing.case import Case, Pairs

_TINY = 1e-30  # complex step; it has no cancellation
_CHOICES = {"inputs": ["f_ext"], "joint_friction": True}
_FIRST = {"id": "id_derivatives", "fd": "fd_derivatives"}


def complex_slopes(
    model: Model, first: Any, state: list[np.ndarray], *others: Any
) -> list[np.ndarray]:
    """Return the second derivatives by complex steps of the first ones.

    They are (nv, nv, nv), [i, j, k]: of the block by q by q and by qd, of the block by
    qd by qd, and of H or Hinv by q; k is the coordinate of the complex step. `first` is
    a Program on engine plain, `state` q, qd, and qdd or tau.
    """
    q, qd, last = state
    n = model.nv

    def along(dq: np.ndarray, dqd: np.ndarray) -> list[np.ndarray]:
        moved = q + 1j * _TINY * model.position_rate(q, dq)
        blocks = list(first(moved, qd + 1j * _TINY * dqd, last + 0j, *others))[-3:]
        return [np.asarray(block).imag / _TINY for block in blocks]

    still = np.zeros(n)
    by_q = [along(unit, still) for unit in np.eye(n)]
    by_qd = [along(still, unit) for unit in np.eye(n)]
    places = ((by_q, 0), (by_qd, 0), (by_qd, 1), (by_q, 2))
    slabs = (np.array([x[k] for x in rows]).reshape(n, n, n) for rows, k in places)
    return [np.moveaxis(slab, 0, 2) for slab in slabs]


def _problem(case: Case) -> str:
    return case.solver.signature.name[:2]


def _results(case: Case) -> tuple[list[np.ndarray], list[np.ndarray], Any]:
    """Return the state [q, qd, qdd or tau], the tensors by complex steps, and f_ext.

    The four tensors (nv, nv, nv) are derivatives of the block by q by q, of the block
    by q by qd, of the block by qd by qd, and of H or Hinv by q; the last index is the
    step's. The velocity is small, because dry friction has a curvature only near rest.
    """
    state = [case.q, 0.01 * case.qd, case.qdd]
    first = case.other(_FIRST[_problem(case)], engine="plain", **_CHOICES)
    return state, complex_slopes(case.model, first, state, case.f_ext), case.f_ext


def tensors_are_slopes(case: Case) -> Pairs:
    """d(dtau_dq) = d2tau_dqdq dq + d2tau_dqdqd dqd, and all other tensors alike"""
    state, expected, f_ext = _results(case)
    weight = np.eye(case.model.nv)
    if _problem(case) == "fd":
        weight = np.asarray(case.other("crba")(case.q))
    result = list(case.program(**_CHOICES)(*state, f_ext))
    if _problem(case) == "fd":
        expected[3] = expected[3].transpose(0, 2, 1)  # by q and then by tau
    for got, wanted in zip(result, expected, strict=True):
        yield _times(weight, got), _times(weight, wanted)


def contractions_are_slopes(case: Case) -> Pairs:
    """sum_i weights_i d2tau_i / (dx dy), or of qdd, by a complex step"""
    state, expected, f_ext = _results(case)
    weights = case.rng.normal(size=case.model.nv)
    if _problem(case) == "fd":
        weights = np.asarray(case.other("crba")(case.q)) @ weights
    expected[3] = expected[3].transpose(0, 2, 1)
    result = case.program(**_CHOICES)(*state, weights, f_ext)
    for got, wanted in zip(result, expected, strict=True):
        yield got, np.tensordot(weights, wanted, 1)


def _times(weight: np.ndarray, tensor: Any) -> np.ndarray:
    return np.tensordot(weight, np.asarray(tensor), 1)


def tensors_are_symmetric(case: Case) -> Pairs:
    """d2/dqd2 is symmetric, dH/dq in the indices of H; d2/dq2 up to the bracket

        d2tau_dqdq[i, j, k] - d2tau_dqdq[i, k, j] = sum_l c_kjl dtau_dq[i, l]

    c are the structure_constants; for FD the same holds of qdd and Hinv.
    """
    problem = _problem(case)
    result = list(case.program()(case.q, case.qd, case.qdd))
    first = list(case.other(_FIRST[problem])(case.q, case.qd, case.qdd))[-3]
    scale = max(1.0, *(float(np.abs(x).max(initial=0.0)) for x in result))
    turned = result[0] - result[0].transpose(0, 2, 1)
    bracket = np.einsum("kjl,il->ijk", structure_constants(case.model), first)
    yield turned / scale, bracket / scale
    yield result[2] / scale, result[2].transpose(0, 2, 1) / scale
    last = result[3] if problem == "id" else result[3].transpose(0, 2, 1)
    yield last / scale, last.transpose(1, 0, 2) / scale


def structure_constants(model: Model) -> np.ndarray:
    """Return c (nv, nv, nv) of s_k x s_j = sum_l c_kjl s_l, of quaternion joints.

    s_k is column k of a joint's motion subspace; entries of other joints are zero.
    """
    c = np.zeros((model.nv,) * 3)
    for i in model.independent:
        joint, places = model.joint[i], model.v_slices[i]
        q = Vector(joint.neutral())
        if not joint.quaternions(q):
            continue
        S = np.asarray(joint.S(q), float)
        products = [
            [cross_matrix(s) @ np.asarray(t) for t in joint.S(q)] for s in joint.S(q)
        ]
        c[places, places, places] = np.array(products) @ np.linalg.pinv(S).T
    return c


def contractions_are_symmetric(case: Case) -> Pairs:
    """The contraction by qd and qd is symmetric; with weights e_n it is a tensor's slab

    The four results are the slabs [-1] of the tensors; for ID the last is transposed.
    """
    weights = np.zeros(case.model.nv)
    weights[-1:] = 1.0
    result = case.program()(case.q, case.qd, case.qdd, weights)
    tensors = case.other(
        case.solver.signature.name.replace("contracted", "derivatives")
    )
    expected = list(tensors(case.q, case.qd, case.qdd))
    scale = max(1.0, *(float(np.abs(x).max(initial=0.0)) for x in result))
    if _problem(case) == "id":
        expected[3] = expected[3].transpose(0, 2, 1)
    for got, wanted in zip(result, expected, strict=True):
        slab = wanted[-1] if len(weights) else got
        yield got / scale, slab / scale
    yield result[2] / scale, result[2].T / scale


_Law = Callable[[Case], Pairs]
_TENSORS: tuple[_Law, ...] = (tensors_are_slopes, tensors_are_symmetric)
_CONTRACTED: tuple[_Law, ...] = (contractions_are_slopes, contractions_are_symmetric)
LAWS: dict[Signature, tuple[_Law, ...]] = {
    kinds.ID_SECOND_DERIVATIVES: _TENSORS,
    kinds.FD_SECOND_DERIVATIVES: _TENSORS,
    kinds.ID_SECOND_CONTRACTED: _CONTRACTED,
    kinds.FD_SECOND_CONTRACTED: _CONTRACTED,
}
