"""A Model rebuilt joint by joint in Pinocchio, with maps between coordinates."""

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
    """Return rotation and position of a Transform as arrays."""
    R, p = X.pose
    return np.asarray(R, float), np.array(list(p), float)


class PinocchioModel:
    """A pin.Model of the tree without couplings, and maps between coordinates.

    Every joint has its own coordinates in Pinocchio, also followers; B maps independent
    velocities to them. Rotors are not included, see `rotors`. Universal, cylindrical
    and most product joints are composites, ball_exp is a spherical joint in other
    coordinates, and joints that Pinocchio lacks are free joints that move along S.
    """

    def __init__(self, model: Model) -> None:
        import pinocchio as pin

        self.pin, self.source = pin, model
        self.model = pin.Model()
        self.model.gravity.linear = np.array(list(model.a_grav.lin), float)
        ids: dict[int, Any] = {0: 0}
        align = [_plane(joint) for joint in model.joint]
        for i in model.bodies:
            joint, parent = model.joint[i], model.parent[i]
            placement = pin.SE3(*pose(model.Xtree[i])) * pin.SE3(align[i], np.zeros(3))
            placement = pin.SE3(align[parent].T, np.zeros(3)) * placement
            ids[i] = self.model.addJoint(
                ids[parent], self._kind(joint), placement, model.names[i]
            )
            I = model.I[i]
            inertia = pin.Inertia.FromDynamicParameters(np.array(I.parameters, float))
            if I.m == 0:
                inertia = pin.Inertia.Zero()
            inertia = inertia.se3Action(pin.SE3(align[i].T, np.zeros(3)))
            self.model.appendBodyToJoint(ids[i], inertia, pin.SE3.Identity())
        for name, frame in model.frames.items():
            R, p = pose(frame.X)
            placement = pin.SE3(align[frame.body].T, np.zeros(3)) * pin.SE3(R, p)
            self.model.addFrame(
                pin.Frame(name, ids[frame.body], 0, placement, pin.FrameType.BODY)
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
            composite = pin.JointModelComposite()
            for factor in joint.factors:
                composite.addJoint(self._kind(factor))
            return composite
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
        """Armature's part of H, (nv, nv); diagonal except for matrix couplings."""
        result = np.zeros((self.source.nv, self.source.nv))
        for i in self.source.bodies:
            ratio = _ratio(self.source, i)
            rotor = np.array(list(self.source.armature[i]), float)
            start = self.source.v_slices[i]
            result[start, start] += ratio.T @ np.diag(rotor) @ ratio
        return result

    def q(self, q: np.ndarray) -> np.ndarray:
        """Return Pinocchio's configuration for positions q."""
        result = np.zeros(self.model.nq)
        for i, part in enumerate(split_q(self.source, Vector(q.tolist()))):
            if i == 0:
                continue
            x: Any = np.array(list(part))
            start = self.model.joints[self.ids[i]].idx_q
            if self.source.joint[i].kind == "planar":
                x = np.array([x[0], x[1], np.cos(x[2]), np.sin(x[2])])
            if self.source.joint[i].kind == "ball_rpy":
                x = x[::-1]
            if _composite(self.source.joint[i]):
                x = x[list(self.source.joint[i].series or ())]
            if _by_subspace(self.source.joint[i]):
                R, p = pose(self.source.joint[i].X(part))
                x = np.concatenate([p, quaternion(R)])
                x = x[3:] if self.source.joint[i].kind == "ball_exp" else x
            result[start : start + len(x)] = x
        return result

    def B(self, q: np.ndarray) -> np.ndarray:
        """Return the matrix from velocities to Pinocchio's velocities, (nv_p, nv)."""
        parts = split_q(self.source, Vector(q.tolist()))
        B = np.zeros((self.model.nv, self.source.nv))
        for i in self.source.bodies:
            joint = self.source.joint[i]
            peer = self.model.joints[self.ids[i]]
            rows = peer.idx_v + np.arange(peer.nv)
            columns = self.source.v_slices[i]
            block = _ratio(self.source, i)
            if joint.kind == "floating":
                block = swap_rows(block)
            if joint.kind == "planar":
                block = _rotation(float(parts[i][2])) @ block
            if joint.kind == "ball_rpy":
                block = block[::-1]
            if _composite(joint):
                block = block[list(joint.series or ())]
            if _by_subspace(joint):
                block = _as_free(joint, joint.S(parts[i]))[: peer.nv] @ block
            B[rows, columns] = block
        return B

    def Bdot_qd(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return (dB/dt) qd, nonzero for planar joints and those given by S."""
        result = np.zeros(self.model.nv)
        parts = split_q(self.source, Vector(q.tolist()))
        rates = split_v(self.source, Vector(qd.tolist()))
        for i in self.source.bodies:
            if self.source.joint[i].kind == "planar":
                start = self.model.joints[self.ids[i]].idx_v
                t, v = float(parts[i][2]), np.array(list(rates[i]))
                h = 1e-30
                turned = _rotation(t + 1j * h * v[2]).imag / h
                result[start : start + 3] = turned @ v
            if _by_subspace(self.source.joint[i]):
                joint, peer = self.source.joint[i], self.model.joints[self.ids[i]]
                bias = _as_free(joint, [joint.cJ(parts[i], rates[i])])[: peer.nv, 0]
                result[peer.idx_v : peer.idx_v + peer.nv] = bias
        return result


def _composite(joint: Any) -> bool:
    """Return whether a joint is a product that becomes a composite joint."""
    known = ("planar", "ball_rpy")  # Pinocchio has these kinds
    return isinstance(joint, Product) and joint.kind not in known and bool(joint.series)


def _by_subspace(joint: Any) -> bool:
    """Return whether a joint is represented by its S: ball_exp, custom."""
    return not isinstance(joint, GroupJoint) and joint.series is None


def _as_free(joint: Any, columns: Any) -> np.ndarray:
    """Return motions as columns of Pinocchio's spherical or free joint."""
    six = np.array([list(column) for column in columns], float).T
    return six if joint.kind == "ball_exp" else swap_rows(six)


def _ratio(model: Model, i: int) -> np.ndarray:
    """Return the matrix from independent velocities to those of joint i."""
    ratio = model.leader[i].ratio
    return np.eye(model.joint[i].nv) if ratio is None else np.asarray(ratio, float)


def _rotation(t: Any) -> np.ndarray:
    c, s = np.cos(t), np.sin(t)
    return np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])


def _plane(joint: Any) -> np.ndarray:
    """Return the rotation whose columns are a planar joint's axes and normal."""
    if joint.kind != "planar":
        return np.eye(3)
    ex, ey = plane_axes(joint.axis)
    return np.array([list(ex), list(ey), list(joint.axis)]).T
