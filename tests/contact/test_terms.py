"""The dynamics of a step with contacts: factor, columns and free velocity."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.contact.rows.structure import structure
from dyn_core.contact.stepping.integration import gyroscopic_change, turning
from dyn_core.testing import random_model

ENGINES = ("native", "graph")
ACTING = {"joint_friction": True, "joint_springs": True}


def dense_factor(tables, packed):
    """Return L of the inertia's L.T L in the order of coordinates, (nv, nv)."""
    n = tables.nv
    L = np.zeros((n, n))
    for k in range(n):
        L[k, k] = 1 / packed[k]
        start, stop = tables.above_start[k : k + 2]
        L[k, tables.above[start:stop]] = packed[n + start : n + stop]
    order = np.argsort(tables.coordinate)
    return L[np.ix_(order, order)]


def jacobian(tables, columns, body, nv):
    """Return the Jacobian of a body's velocity at the world's origin, (6, nv)."""
    J = np.zeros((6, nv))
    for c in tables.path[tables.path_start[body] : tables.path_start[body + 1]]:
        J[:, tables.coordinate[tables.column_place[c]]] += columns[c]
    return J


@pytest.mark.one_of(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(6))
def test_terms_are_those_of_their_parts(seed, engine):
    """L.T L = H + dt B, J by columns, and the free velocity by dense algebra."""
    model = random_model(seed, mimic=0.4 * (seed % 2))
    rng, dt = np.random.default_rng(seed), 0.003
    q, qd = model.random(rng), rng.standard_normal(model.nv)
    tau, f_ext = rng.standard_normal(model.nv), rng.standard_normal((model.nb, 6))
    program = dyn.solver("contact_terms").build(
        model, engine=engine, inputs=["f_ext"], **ACTING
    )
    terms = program(q, qd, tau, dt, f_ext)
    tables = structure(model)
    poses, J = dyn.solver("body_jacobians").build(model, engine=engine)(q)
    for body in model.bodies:
        R, p = terms.poses[body, :9].reshape(3, 3), terms.poses[body, 9:]
        assert np.allclose(R, poses[body - 1, :3, :3], atol=1e-13)
        assert np.allclose(p, poses[body - 1, :3, 3], atol=1e-13)
        mine = jacobian(tables, terms.columns, body, model.nv)
        assert np.allclose(mine, J[body - 1], atol=1e-12)
    H = dyn.solver("crba").build(model, engine=engine)(q)
    C = dyn.solver("bias").build(model, engine=engine, inputs=["f_ext"], **ACTING)
    L = dense_factor(tables, terms.factor)
    step = L.T @ L
    B = (step - H) / dt
    damping = np.diag(B)
    assert damping.min() > -1e-8 and damping.max() > 0.01
    rate = np.linalg.solve(step, tau - C(q, qd, f_ext))
    still = dyn.solver("contact_terms").build(
        model, engine=engine, joint_friction=False, joint_springs=False
    )(q, qd, tau, dt)
    L0 = dense_factor(tables, still.factor)
    assert np.allclose(L0.T @ L0, H, atol=1e-11 * np.abs(H).max())
    rate = rate + turning(model, qd)
    change = gyroscopic_change(model, H, qd, tau - C(q, qd, f_ext), dt)
    assert np.allclose(terms.free, qd + dt * rate + change, atol=1e-11)
