"""Our Models rebuilt in other libraries, joint by joint, and their coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.model import Model
from dyn_core.model.coordinates import split_q, split_v
from dyn_core.model.joints import GroupJoint, Product
from dyn_core.model.joints.product import plane_axes
from dyn_core.spatial import Transform, Vector
from dyn_core.spatial.conventions import quaternion, swap_rows


def pose(X: Transform) -> tuple[np.ndarray, np.ndarray]:
    """Give rotation and position of a Transform as arrays."""
    R, p = X.pose
    return np.asarray(R, float), np.array(list(p), float)


class PinocchioTwin:
    """A pin.Model of the free tree (followers free), and maps between coordinates.

    The tree's coordinates y are ours expanded: one entry for each joint. G takes
    independent velocities to tree velocities. Rotors are left out: see `rotors`.
    Helical joints have their own kind, universal and cylindrical ones and most products
    are composites, ball_exp is a spherical joint in other coordinates, and a joint that
    Pinocchio lacks moves as a free one along its S.
    """

    def __init__(self, model: Model) -> None:
        import pinocchio as pin

        self.pin, self.ours = pin, model
        self.model = pin.Model()
        self.model.gravity.linear = np.array(list(model.a_grav.lin), float)
        ids: dict[int, Any] = {0: 0}
        align = [_plane(joint) for joint in model.joint]
        for i in model.bodies:
            joint, above = model.joint[i], model.parent[i]
            place = pin.SE3(*pose(model.Xtree[i])) * pin.SE3(align[i], np.zeros(3))
            place = pin.SE3(align[above].T, np.zeros(3)) * place
            ids[i] = self.model.addJoint(
                ids[above], self._kind(joint), place, model.names[i]
            )
            I = model.I[i]
            inertia = pin.Inertia.FromDynamicParameters(np.array(I.parameters, float))
            if I.m == 0:
                inertia = pin.Inertia.Zero()
            inertia = inertia.se3Action(pin.SE3(align[i].T, np.zeros(3)))
            self.model.appendBodyToJoint(ids[i], inertia, pin.SE3.Identity())
        for name, frame in model.frames.items():
            R, p = pose(frame.X)
            place = pin.SE3(align[frame.body].T, np.zeros(3)) * pin.SE3(R, p)
            self.model.addFrame(
                pin.Frame(name, ids[frame.body], 0, place, pin.FrameType.BODY)
            )
        self.ids = ids
        self.data = self.model.createData()

    def _kind(self, joint: Any) -> Any:
        pin = self.pin
        if joint.kind in ("revolute", "continuous"):
            return pin.JointModelRevoluteUnaligned(np.array(joint.axis))
        if joint.kind == "prismatic":
            return pin.JointModelPrismaticUnaligned(np.array(joint.axis))
        if joint.kind == "helical":
            return pin.JointModelHelicalUnaligned(np.array(joint.axis), joint.pitch)
        if _composite(joint):
            whole = pin.JointModelComposite()
            for factor in joint.factors:
                whole.addJoint(self._kind(factor))
            return whole
        kinds = {
            "planar": pin.JointModelPlanar,
            "spherical": pin.JointModelSpherical,
            "floating": pin.JointModelFreeFlyer,
            "ball_rpy": pin.JointModelSphericalZYX,
        }
        kinds["ball_exp"] = pin.JointModelSpherical
        return kinds.get(joint.kind, pin.JointModelFreeFlyer)()

    @property
    def rotors(self) -> np.ndarray:
        """Give what armature adds to H, (nv, nv); diagonal but for matrix gears."""
        out = np.zeros((self.ours.nv, self.ours.nv))
        for i in self.ours.bodies:
            ratio = _ratio(self.ours, i)
            rotor = np.array(list(self.ours.armature[i]), float)
            at = self.ours.v_slices[i]
            out[at, at] += ratio.T @ np.diag(rotor) @ ratio
        return out

    def q(self, q: np.ndarray) -> np.ndarray:
        """Give Pinocchio's configuration of ours."""
        out = np.zeros(self.model.nq)
        for i, part in enumerate(split_q(self.ours, Vector(q.tolist()))):
            if i == 0:
                continue
            x: Any = np.array(list(part))
            at = self.model.joints[self.ids[i]].idx_q
            if self.ours.joint[i].kind == "planar":
                x = np.array([x[0], x[1], np.cos(x[2]), np.sin(x[2])])
            if self.ours.joint[i].kind == "ball_rpy":
                x = x[::-1]
            if _composite(self.ours.joint[i]):
                x = x[list(self.ours.joint[i].series or ())]
            if _foreign(self.ours.joint[i]):
                R, p = pose(self.ours.joint[i].X(part))
                x = np.concatenate([p, quaternion(R)])
                x = x[3:] if self.ours.joint[i].kind == "ball_exp" else x
            out[at : at + len(x)] = x
        return out

    def B(self, q: np.ndarray) -> np.ndarray:
        """Give the matrix from our velocities to Pinocchio's, (nv_p, nv)."""
        parts = split_q(self.ours, Vector(q.tolist()))
        B = np.zeros((self.model.nv, self.ours.nv))
        for i in self.ours.bodies:
            joint = self.ours.joint[i]
            peer = self.model.joints[self.ids[i]]
            rows = peer.idx_v + np.arange(peer.nv)
            columns = self.ours.v_slices[i]
            block = _ratio(self.ours, i)
            if joint.kind == "floating":
                block = swap_rows(block)
            if joint.kind == "planar":
                block = _turn(float(parts[i][2])) @ block
            if joint.kind == "ball_rpy":
                block = block[::-1]
            if _composite(joint):
                block = block[list(joint.series or ())]
            if _foreign(joint):
                block = _as_free(joint, joint.S(parts[i]))[: peer.nv] @ block
            B[rows, columns] = block
        return B

    def Bdot_qd(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Give (dB/dt) qd: of planar joints, and those whose S Pinocchio lacks."""
        out = np.zeros(self.model.nv)
        parts = split_q(self.ours, Vector(q.tolist()))
        rates = split_v(self.ours, Vector(qd.tolist()))
        for i in self.ours.bodies:
            if self.ours.joint[i].kind == "planar":
                at = self.model.joints[self.ids[i]].idx_v
                t, v = float(parts[i][2]), np.array(list(rates[i]))
                h = 1e-30
                turned = _turn(t + 1j * h * v[2]).imag / h
                out[at : at + 3] = turned @ v
            if _foreign(self.ours.joint[i]):
                joint, peer = self.ours.joint[i], self.model.joints[self.ids[i]]
                bias = _as_free(joint, [joint.cJ(parts[i], rates[i])])[: peer.nv, 0]
                out[peer.idx_v : peer.idx_v + peer.nv] = bias
        return out


def _composite(joint: Any) -> bool:
    """Say whether a joint is a product that becomes a composite of one's factors."""
    own = ("planar", "ball_rpy")  # Pinocchio has these kinds
    return isinstance(joint, Product) and joint.kind not in own and bool(joint.series)


def _foreign(joint: Any) -> bool:
    """Say whether a joint is given by its S: ball_exp, custom."""
    return not isinstance(joint, GroupJoint) and joint.series is None


def _as_free(joint: Any, columns: Any) -> np.ndarray:
    """Give motions as columns of Pinocchio's spherical or free joint."""
    six = np.array([list(column) for column in columns], float).T
    return six if joint.kind == "ball_exp" else swap_rows(six)


def _ratio(model: Model, i: int) -> np.ndarray:
    """Give joint i's velocity for each of the coordinates that it has."""
    ratio = model.leader[i].ratio
    return np.eye(model.joint[i].nv) if ratio is None else np.asarray(ratio, float)


def _turn(t: Any) -> np.ndarray:
    c, s = np.cos(t), np.sin(t)
    return np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])


def _plane(joint: Any) -> np.ndarray:
    """Give the rotation whose columns are a planar joint's axes and normal."""
    if joint.kind != "planar":
        return np.eye(3)
    ex, ey = plane_axes(joint.axis)
    return np.array([list(ex), list(ey), list(joint.axis)]).T
