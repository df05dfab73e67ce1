"""A robot in MuJoCo, for tests that compare with it or use it as the plant."""

import mujoco
import numpy as np
from pinocchio_model import pose

from dyn_core.spatial import conventions


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

    def step(self, q, qd, tau, dt):
        """Return the state after a step; for joints of one coordinate alone."""
        self.set(q, qd)
        self.model.opt.timestep = dt
        self.data.qfrc_applied[:] = tau
        mujoco.mj_step(self.model, self.data)
        return self.data.qpos.copy(), self.data.qvel.copy()


def _compose(R, p, x):
    """Return the world position of a free joint placed at R, p (MuJoCo has none)."""
    turn, shift = conventions.pose_parts(x)
    return conventions.pose_of_parts(R @ turn, p + R @ shift)


def _numbers(numbers):
    return " ".join(repr(float(x)) for x in numbers)
