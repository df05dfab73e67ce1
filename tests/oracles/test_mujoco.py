"""Agreement with MuJoCo: inverse and forward dynamics, H, fixed and floating base."""

import importlib

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.testing import TOLERANCES, random_model, scaled_error

mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")
MujocoPeer = importlib.import_module("mujoco_peer").MujocoPeer
TOL = TOLERANCES["mujoco"]


def _compare(model, seed):
    peer = MujocoPeer(model)
    rng = np.random.default_rng(seed)
    q, qd, qdd = model.random(rng), *rng.normal(size=(2, model.nv))
    B, bias = peer.set(q, qd, qdd)
    mujoco.mj_inverse(peer.model, peer.data)
    tau = B.T @ peer.data.qfrc_inverse
    got = dyn.solver("rnea").build(model)(q, qd, qdd)
    assert scaled_error(got, tau) <= TOL
    M = np.zeros((peer.model.nv, peer.model.nv))
    for row, unit in zip(M, np.eye(len(M)), strict=True):
        mujoco.mj_mulM(peer.model, peer.data, row, unit)
    H = dyn.solver("crba").build(model)(q)
    assert scaled_error(H, B.T @ M @ B) <= TOL
    B, bias = peer.set(q, qd)
    peer.data.qfrc_applied[:] = np.linalg.solve(B.T, tau)
    mujoco.mj_forward(peer.model, peer.data)
    wanted = np.linalg.solve(B, peer.data.qacc - bias)
    for name in ("aba", "dense"):
        computed = dyn.solver(name).build(model)(q, qd, tau)
        assert scaled_error(H @ (computed - wanted), np.zeros(model.nv)) <= TOL
    return got


@pytest.mark.parametrize(
    "name", ["two_link", "cart_pole", "arm7", "planar3", "quadruped"]
)
def test_shipped_robots(name, shipped):
    """Shipped robots, the quadruped floating; every_joint has joints MuJoCo lacks."""
    for seed in range(3):
        assert np.abs(_compare(shipped[name], seed)).max() > 0 or name == "two_link"


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "seed",
    [*range(4), *(pytest.param(k, marks=pytest.mark.full) for k in range(4, 20))],
)
def test_random_trees(seed):
    """Random trees of the joint kinds that both have; free joints at the root only.

    Those of 3 to 6 joints; more and larger ones with --full.
    """
    kinds = ("revolute", "continuous", "prismatic", "spherical")
    model = random_model(seed, size=3 + seed % 8, kinds=kinds, mimic=0, massless=0)
    assert np.abs(_compare(model, seed)).max() > 0


@pytest.mark.one_of(2)
@pytest.mark.parametrize("seed", range(5))
def test_floating_random_trees(seed):
    """The same with a floating base (its rotor left out, which MuJoCo would mix)."""
    kinds = ("revolute", "prismatic", "spherical")
    model = random_model(seed, size=5, kinds=kinds, mimic=0, massless=0)
    free = model.rebuilt(root_joint="floating")
    assert np.abs(_compare(free, seed)).max() > 0
