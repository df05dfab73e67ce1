"""Agreement with MuJoCo: inverse and forward dynamics, H, fixed and floating base."""

import numpy as np
import pytest
from pinocchio_model import pose

import dyn_core as dyn
from dyn_core.spatial import conventions
from dyn_core.testing import TOLERANCES, random_model, scaled_error

mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")
TOL = TOLERANCES["mujoco"]


class MujocoPeer:
    """The same robot as MJCF, and maps of coordinates."""

    def __init__(self, model):
        self.ours = model
        g = " ".join(repr(float(x)) for x in model.a_grav.lin)
        self.children = {}
        for i in model.bodies:
            self.children.setdefault(model.parent[i], []).append(i)
        bodies = "".join(self._body(i) for i in self.children.get(0, ()))
        xml = (
            f'<mujoco><compiler balanceinertia="false" boundmass="0" boundinertia="0"/>'
            f'<option gravity="{g}" jacobian="dense"><flag contact="disable"'
            f' constraint="disable"/></option><worldbody>{bodies}</worldbody></mujoco>'
        )
        self.model = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.model)

    def _body(self, i):
        model, joint = self.ours, self.ours.joint[i]
        R, p = pose(model.Xtree[i])
        quat = conventions.quaternion_to_wxyz(conventions.quaternion(R))
        I = model.I[i]
        m, c = float(I.m), [float(x) for x in I.c]
        full = conventions.mujoco_full_inertia(np.asarray(I, float))
        kind = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide",
                "spherical": "ball", "floating": "free"}[joint.kind]  # fmt: skip
        axis = f' axis="{_numbers(joint.axis)}"' if kind in ("hinge", "slide") else ""
        inner = "".join(self._body(k) for k in self.children.get(i, ()))
        rotor = f' armature="{float(model.armature[i][0])!r}"' if kind != "free" else ""
        return (
            f'<body name="b{i}" pos="{_numbers(p)}" quat="{_numbers(quat)}">'
            f'<joint name="{model.names[i]}" type="{kind}"{axis}{rotor}/>'
            f'<inertial pos="{_numbers(c)}" mass="{m!r}" fullinertia="{_numbers(full)}"/>'
            f"{inner}</body>"
        )

    def _addresses(self, i):
        k = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, self.ours.names[i])
        return self.model.jnt_qposadr[k], self.model.jnt_dofadr[k]

    def set(self, q, qd, qdd=None):
        """Set MuJoCo's state; give the maps of velocity to its own and what they add."""
        model = self.ours
        B = np.zeros((self.model.nv, model.nv))
        bias = np.zeros(self.model.nv)
        for i in model.bodies:
            joint, (p, v) = model.joint[i], self._addresses(i)
            x, part = q[model.q_slices[i]], model.v_slices[i]
            block, add = np.eye(joint.nv), np.zeros(joint.nv)
            if joint.kind == "floating":
                R, place = pose(model.Xtree[i])
                world = _compose(R, place, x)
                x = conventions.mujoco_free_position(world)
                block = conventions.mujoco_free_columns(world)
                add = conventions.mujoco_free_acceleration(world, qd[part], np.zeros(6))
            elif joint.kind == "spherical":
                x = conventions.quaternion_to_wxyz(x)
            self.data.qpos[p : p + len(x)] = x
            B[v : v + joint.nv, part] = block
            bias[v : v + joint.nv] = add
        self.data.qvel[:] = B @ qd
        if qdd is not None:
            self.data.qacc[:] = B @ qdd + bias
        return B, bias


def _compose(R, p, x):
    """Return the world position of a free joint placed at R, p (MuJoCo has none)."""
    turn, shift = conventions.pose_parts(x)
    return conventions.pose_of_parts(R @ turn, p + R @ shift)


def _numbers(numbers):
    return " ".join(repr(float(x)) for x in numbers)


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


@pytest.mark.parametrize("seed", range(5))
def test_floating_random_trees(seed):
    """The same with a floating base (its rotor left out, which MuJoCo would mix)."""
    kinds = ("revolute", "prismatic", "spherical")
    model = random_model(seed, size=5, kinds=kinds, mimic=0, massless=0)
    free = model.rebuilt(root_joint="floating")
    assert np.abs(_compare(free, seed)).max() > 0
