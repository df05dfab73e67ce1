"""Laws of a tool: its control, its acceleration, its singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core import problems as kinds
from dyn_core.problems import Signature
from dyn_core.solving.offers import Law
from dyn_core.spatial import Matrix, Transform, Vector
from dyn_core.spatial.lie import log_transform, quat_matrix
from dyn_core.testing.case import Case, Pairs, derivative

LENGTH = 0.1  # [m], option characteristic_length


def _pose(T: np.ndarray) -> Transform:
    """Return the transform from the base to a frame, from its pose (4, 4)."""
    return Transform(Matrix(T[:3, :3].T.tolist()), Vector(T[:3, 3].tolist()))


def spring_is_slope_of_its_energy(case: Case) -> Pairs:
    """(tau - g) . qd = -dV/dt at rest,   V = e.T K e / 2,   e = log(T^-1 T_ref)"""
    poses = case.other("forward_kinematics", frames=[case.frame])
    pose_ref, A = case.pose_ref(), case.rng.normal(size=(6, 6))
    K, R_ref = A @ A.T, np.array(quat_matrix(Vector(pose_ref[3:])).rows)
    target = Transform(Matrix(R_ref.T.tolist()), Vector(pose_ref[:3].tolist()))
    turns = {"aligned": np.kron(np.eye(2), R_ref), "local": np.eye(6)}
    for reference, turn in turns.items():

        def energy(t: float, turn: np.ndarray = turn) -> Any:
            X = _pose(poses(case.moved(t))[0])
            e = turn @ np.array(log_transform(target @ X.inverse))
            return e @ K @ e / 2

        program = case.program(reference=reference)
        tau = program(case.q, 0 * case.qd, pose_ref, K)
        g = case.other("gravity")(case.q)
        yield (tau - g) @ case.qd, -derivative(energy)


def damper_opposes_the_velocity(case: Case) -> Pairs:
    """the damper's share of tau is J.T D (v_ref - v), base axes"""
    J = case.other("jacobian", reference="aligned")(case.q)
    A, v_ref = case.rng.normal(size=(6, 6)), case.rng.normal(size=6)
    pose_ref, K, D = case.pose_ref(), np.eye(6), A @ A.T
    program = case.program(inputs=("v_ref", "damping"))
    taus = [program(case.q, case.qd, pose_ref, K, v_ref, c * D) for c in (1.0, 3.0)]
    yield taus[1] - taus[0], 2 * J.T @ D @ (v_ref - J @ case.qd)


def acceleration_is_rate_of_velocity(case: Case) -> Pairs:
    """a = J qdd + (dJ/dt) qd, in every reference"""
    for reference in ("local", "world", "aligned"):
        J = case.other("jacobian", reference=reference)(case.q)
        bias = case.other("frame_bias_acceleration", reference=reference)
        a = case.program(reference=reference)(case.q, case.qd, case.qdd)
        yield a, J @ case.qdd + bias(case.q, case.qd)


def singular_values_are_those_of_numpy(case: Case) -> Pairs:
    """S J = U diag(s) V.T"""
    J = case.other("jacobian", reference="aligned")(case.q)
    J = J * np.array([LENGTH] * 3 + [1.0] * 3)[:, None]
    values, product = case.program()(case.q)
    wanted = np.zeros(6)
    computed = np.linalg.svd(J, compute_uv=False)
    wanted[: len(computed)] = computed
    # Squares: small singular values have the error of the largest one's square.
    yield values**2, wanted**2
    yield product**2, np.prod(wanted**2)


LAWS: dict[Signature, tuple[Law, ...]] = {
    kinds.CARTESIAN_CONTROL: (
        spring_is_slope_of_its_energy,
        damper_opposes_the_velocity,
    ),
    kinds.FRAME_ACCELERATION: (acceleration_is_rate_of_velocity,),
    kinds.MANIPULABILITY: (singular_values_are_those_of_numpy,),
}
