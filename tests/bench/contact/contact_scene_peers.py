"""Scenes with contacts in MuJoCo: the same URDF, half-spaces as planes, its solver."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from bench.contact.contact_scenes import DT, MU, ROOT, ContactScene
from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.residuals import law_residuals
from dyn_core.spatial.conventions import (
    from_mujoco_free_position,
    from_mujoco_free_velocity,
    mujoco_free_force,
    mujoco_free_position,
)


class MujocoScene:
    """A scene in MuJoCo, from the start that it has here.

    Newton's method and implicit damping as MuJoCo has them, one friction coefficient;
    limits and dry friction of joints act.

    Args:
        scene: The scene.
        cone: Friction cones: "elliptic", or "pyramidal" as is MuJoCo's default.

    Attributes:
        model, data: MuJoCo's.
    """

    def __init__(self, scene: ContactScene, cone: str = "elliptic") -> None:
        self.mj = mj = import_module("mujoco")
        self.scene, self.cone = scene, cone
        self.model = _compiled(mj, scene)
        self.model.opt.cone = getattr(mj.mjtCone, f"mjCONE_{cone.upper()}")
        self.data = mj.MjData(self.model)
        ours = scene.model
        self._joints = []
        for k in range(self.model.njnt):
            name = mj.mj_id2name(self.model, mj.mjtObj.mjOBJ_JOINT, k)
            first, v_first = self.model.jnt_qposadr[k], self.model.jnt_dofadr[k]
            free = self.model.jnt_type[k] == mj.mjtJoint.mjJNT_FREE
            self._joints.append(
                (free, ours.q_slice(name), ours.v_slice(name), int(first), int(v_first))
            )
        self.data.qpos[:] = self.positions(scene.start)
        mj.mj_forward(self.model, self.data)

    def positions(self, q: np.ndarray) -> np.ndarray:
        """Return qpos of our q."""
        qpos = np.empty(self.model.nq)
        for free, place, _, first, _ in self._joints:
            n = 7 if free else 1
            qpos[first : first + n] = (
                mujoco_free_position(q[place]) if free else q[place]
            )
        return qpos

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Return our q and qd."""
        ours, data = self.scene.model, self.data
        q, qd = ours.neutral(), np.zeros(ours.nv)
        for free, place, v_place, first, v_first in self._joints:
            if free:
                q[place] = from_mujoco_free_position(data.qpos[first : first + 7])
                speed = data.qvel[v_first : v_first + 6]
                qd[v_place] = from_mujoco_free_velocity(q[place], speed)
            else:
                q[place], qd[v_place] = data.qpos[first], data.qvel[v_first]
        return q, qd

    def command(self, t: float) -> None:
        """Apply the joint forces of the scene at the time t."""
        if self.scene.drive is None:
            return
        q, qd = self.state()
        tau, applied = self.scene.command(t, q, qd), self.data.qfrc_applied
        for free, place, v_place, _, v_first in self._joints:
            if free:
                applied[v_first : v_first + 6] = mujoco_free_force(
                    q[place], tau[v_place]
                )
            else:
                applied[v_first] = tau[v_place][0]

    def apart(self, q: np.ndarray) -> float:
        """Return how far a body is from where our q has it, the largest [m]."""
        mj, there = self.mj, _centres(self.mj, self.model, self.data.qpos)
        here = _centres(mj, self.model, self.positions(q))
        return float(np.abs(there - here).max())

    def penetration(self) -> float:
        """Return the deepest overlap of the last step [m]."""
        return max(0.0, -float(self.data.contact.dist.min(initial=0.0)))

    def law(self) -> float:
        """Return the residual of the exact law in the last step, as it is here [1].

        Of impulses and velocities of MuJoCo's own contacts, in which a contact may open
        and an overlap need not close; 0 without contacts.
        """
        m, d, mj = self.model, self.data, self.mj
        first = [int(x) for x in d.contact.efc_address if x >= 0]
        if not first:
            return 0.0
        J, force = self._rows(first)
        Y = np.zeros_like(J)
        mj.mj_solveM(m, d, Y, J)
        free = J @ (self._speed + DT * d.qacc_smooth)
        after = J @ d.qvel
        gap = np.maximum(d.contact.dist[d.contact.efc_address >= 0], 0.0)
        free[::3] += gap / DT
        after[::3] += gap / DT
        unbounded = np.full(len(force), np.inf)
        values = law_residuals(
            ConstraintLayout.of(*["contact"] * len(first)),
            (DT * force).tolist(),
            after.tolist(),
            [MU] * (2 * len(first)),
            (-unbounded).tolist(),
            unbounded.tolist(),
            np.einsum("ij,ij->i", J, Y).tolist(),
            float(np.abs(free).max()),
        )
        return float(values[4])

    def _rows(self, first: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return Jacobian and forces of contacts: normal and both tangents of each.

        The four edges of a pyramid are its normal with mu of a tangent more or less.
        """
        J, force = _jacobian(self.mj, self.model, self.data), self.data.efc_force
        if self.cone == "elliptic":
            rows = np.add.outer(first, range(3)).ravel()
            return J[rows], force[rows]
        edges = np.array([[0.5, 0.5, 0, 0], [0.5, -0.5, 0, 0], [0, 0, 0.5, -0.5]])
        sums = np.array([[1, 1, 1, 1], [1, -1, 0, 0], [0, 0, 1, -1]]) * 1.0
        edges[1:] /= MU
        sums[1:] *= MU
        rows = np.add.outer(first, range(4))
        normals_and_tangents = np.einsum("ij,kjl->kil", edges, J[rows])
        forces = np.einsum("ij,kj->ki", sums, force[rows])
        return normals_and_tangents.reshape(-1, self.model.nv), forces.ravel()

    def keep(self) -> None:
        """Keep the velocity before a step for `law`."""
        self._speed = self.data.qvel.copy()

    def overlap(self, q: np.ndarray) -> float:
        """Return the deepest overlap of our q in MuJoCo's collision detection [m]."""
        data = self.mj.MjData(self.model)
        data.qpos[:] = self.positions(q)
        self.mj.mj_kinematics(self.model, data)
        self.mj.mj_comPos(self.model, data)
        self.mj.mj_collision(self.model, data)
        return max(0.0, -float(data.contact.dist.min(initial=0.0)))


def _centres(mj: Any, model: Any, qpos: np.ndarray) -> np.ndarray:
    """Return the centres of mass of all bodies, (bodies, 3) [m]."""
    data = mj.MjData(model)
    data.qpos[:] = qpos
    mj.mj_kinematics(model, data)
    mj.mj_comPos(model, data)
    return np.asarray(data.xipos).copy()


def _jacobian(mj: Any, m: Any, d: Any) -> np.ndarray:
    """Return the rows of all constraints, (nefc, nv)."""
    if not mj.mj_isSparse(m):
        return np.asarray(d.efc_J).reshape(d.nefc, m.nv)
    J = np.zeros((d.nefc, m.nv))
    starts = zip(d.efc_J_rowadr, d.efc_J_rownnz, strict=True)
    for row, (first, count) in enumerate(starts):
        J[row, d.efc_J_colind[first : first + count]] = d.efc_J[first : first + count]
    return J


def _compiled(mj: Any, scene: ContactScene) -> Any:
    """Return MuJoCo's model of a scene."""
    spec = mj.MjSpec.from_string(scene.urdf)
    spec.compiler.inertiafromgeom = mj.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    for space in scene.half_spaces:
        plane = spec.worldbody.add_geom(
            name=space.name, type=mj.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1],
            pos=list(space.point),
        )  # fmt: skip
        quat = np.zeros(4)
        mj.mju_quatZ2Vec(quat, np.asarray(space.normal))
        plane.quat = quat
    for k, pin in enumerate(scene.pins):
        for link, point, end in ((*pin[:2], "a"), (*pin[2:], "b")):
            body = spec.worldbody if link == ROOT else spec.body(link)
            body.add_site(name=f"pin{k}{end}", pos=list(point))
        spec.add_equality(
            type=mj.mjtEq.mjEQ_CONNECT, objtype=mj.mjtObj.mjOBJ_SITE,
            name1=f"pin{k}a", name2=f"pin{k}b",
        )  # fmt: skip
    model = spec.compile()
    model.geom_friction[:, 0] = MU
    model.geom_condim[:] = 3
    model.opt.timestep = DT
    return model
