"""Laws of derivatives, against differences: each yields pairs that must agree.

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

import numpy as np

from dyn_core.model.passive_forces import friction_slopes
from dyn_core.spatial import Vector
from dyn_core.testing.case import Case, Pairs, derivative


def _slopes(case: Case, function: Callable[..., np.ndarray]) -> list[np.ndarray]:
    """Return derivatives (nv, nv) of function(q, qd) by a displacement, and by qd."""
    unit = np.eye(case.model.nv)

    def by(change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        columns = [derivative(lambda t, e=e: change(e * t)) for e in unit]  # type: ignore[misc]
        return np.array(columns).reshape(len(unit), len(unit)).T

    return [
        by(lambda d: function(case.model.integrate(case.q, d), case.qd)),
        by(lambda d: function(case.q, case.qd + d)),
    ]


def slopes_of_inverse_dynamics(case: Case) -> Pairs:
    """d tau = dtau_dq dq + dtau_dqd dqd + H dqdd, forces fixed to their bodies"""
    result = case.program(inputs=["f_ext"])(case.q, case.qd, case.qdd, case.f_ext)
    rnea = case.other("rnea", inputs=["f_ext"])
    expected = _slopes(case, lambda q, qd: rnea(q, qd, case.qdd, case.f_ext))
    yield result.dtau_dq, expected[0]
    yield result.dtau_dqd, expected[1]
    yield result.H, case.other("crba")(case.q)


def friction_steepens_inverse_dynamics(case: Case) -> Pairs:
    """joint_friction=True adds d friction_force/dqd to dtau_dqd, none to dtau_dq"""
    with_friction = case.program(joint_friction=True)(case.q, case.qd, case.qdd)
    without_friction = case.program()(case.q, case.qd, case.qdd)
    yield with_friction.dtau_dq, without_friction.dtau_dq
    slopes = friction_slopes(case.model, Vector(case.qd.tolist()))
    added = with_friction.dtau_dqd - without_friction.dtau_dqd
    yield added, np.asarray(slopes, float).reshape(added.shape)


def slopes_of_forward_dynamics(case: Case) -> Pairs:
    """d qdd = dqdd_dq dq + dqdd_dqd dqd + Hinv dtau, scaled by H

    Checked as H dqdd_dq = -dtau_dq, H dqdd_dqd = -dtau_dqd, H Hinv = 1 and ID = tau.
    """
    tau = case.qdd
    result = case.program(inputs=["f_ext"])(case.q, case.qd, tau, case.f_ext)
    H = case.other("crba")(case.q)
    derivatives = case.other("id_derivatives", inputs=["f_ext"])
    inverse = derivatives(case.q, case.qd, result.qdd, case.f_ext)
    yield H @ result.dqdd_dq, -inverse.dtau_dq
    yield H @ result.dqdd_dqd, -inverse.dtau_dqd
    yield H @ result.Hinv, np.eye(case.model.nv)
    rnea = case.other("rnea", inputs=["f_ext"])
    yield rnea(case.q, case.qd, result.qdd, case.f_ext), tau


def inverse_times_H_is_one(case: Case) -> Pairs:
    """Hinv H = 1, Hinv = Hinv.T to the last bit"""
    inverse = case.program()(case.q)
    yield inverse @ case.other("crba")(case.q), np.eye(case.model.nv)
    yield float(np.array_equal(inverse, inverse.T)), 1.0
