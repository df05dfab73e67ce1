"""Pinocchio's bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.cases import DT, STATES, Robot
from bench.peers.peer import BodyVelocities, PeerCall, Rows

THREE = "q, v, a"


def pinocchio_model(robot: Robot) -> Any:
    """Return Pinocchio's model of a robot."""
    import pinocchio as pin

    root = (pin.JointModelFreeFlyer(),) if robot.floating else ()
    return pin.buildModelFromXML(robot.urdf, *root)


class InPinocchio(BodyVelocities):
    """Positions and velocities as Pinocchio orders them."""

    packages: tuple[str, ...] = ("pin",)
    because: Mapping[str, str] = {
        "semi_implicit_euler": "a base's velocity stays in its own axes"
    }

    def load(self) -> Any:
        """Return the model, after its joints are looked up."""
        model = pinocchio_model(self.robot)
        self.places = [model.joints[model.getJointId(name)] for name in self.joints]
        self.order = [joint.idx_v for joint in self.places]
        self.size = model.nq
        return model

    def position(self, q: np.ndarray) -> np.ndarray:
        """Return q; a joint without limits is a cosine and a sine there."""
        x, base = np.zeros(self.size), 7 * self.robot.floating
        x[:base] = q[:base]
        for joint, angle in zip(self.places, q[base:], strict=True):
            two = [np.cos(angle), np.sin(angle)]
            x[joint.idx_q : joint.idx_q + joint.nq] = two if joint.nq == 2 else angle
        return x


class Pinocchio(InPinocchio):
    """Pinocchio's bindings; batches by its pool, on one thread."""

    name = "pin"

    def prepare(self) -> None:
        """Build the model and states."""
        import pinocchio as pin

        model = self.load()
        moved, driven = self.rows_of("a"), self.rows_of("tau")
        self.space = {"pin": pin, "m": model, "d": model.createData()}
        self.space["inv"] = np.linalg.inv
        for name, states, statement, result in (
            ("rnea", moved, "pin.rnea(m, d, q, v, a)", "d.tau"),
            ("aba", driven, "pin.aba(m, d, q, v, a)", "d.ddq"),
            ("crba", moved, "pin.crba(m, d, q)", "d.M"),
            ("bias", moved, "pin.nonLinearEffects(m, d, q, v)", "d.nle"),
            ("mass_matrix_inverse", moved, "pin.computeMinverse(m, d, q)", "d.Minv"),
            ("id_derivatives", moved, "pin.computeRNEADerivatives(m, d, q, v, a)",
             "d.dtau_dq, d.dtau_dv, d.M"),
            ("fd_derivatives", driven, "pin.computeABADerivatives(m, d, q, v, a)",
             "d.ddq_dq, d.ddq_dv, d.Minv"),
            ("semi_implicit_euler", driven,
             f"w = v + {DT} * pin.aba(m, d, q, v, a);"
             f" x = pin.integrate(m, q, {DT} * w)", "x, w"),
        ):  # fmt: skip
            self.calls[name] = PeerCall(statement, states, THREE, result)
        self._constraints(model, moved)
        many = self.rows // STATES
        self.space.update(pool=pin.ModelPool(model, 1))
        for name, states in (("rnea", moved), ("aba", driven)):
            parts = zip(*states, strict=True)
            columns = [np.asfortranarray(np.tile(x, (many, 1)).T) for x in parts]
            self.space["out"] = columns[2] * 0
            call = f"pin.{name}InParallel(1, pool, q, v, a, out)"
            self.batches[name] = PeerCall(call, [tuple(columns)], THREE)

    def _constraints(self, model: Any, states: Rows) -> None:
        """Hold the robot's tips: all by points, and the first by a whole frame."""
        pin = self.space["pin"]
        for algorithm, kind, links in (
            ("point_delassus", pin.ContactType.CONTACT_3D, self.robot.tips),
            ("operational_inertia", pin.ContactType.CONTACT_6D, self.robot.tips[:1]),
        ):
            constraints = pin.StdVec_RigidConstraintModel()
            for link in links:
                frame = model.frames[model.getFrameId(link)]
                place = frame.parentJoint, frame.placement, pin.ReferenceFrame.LOCAL
                constraints.append(pin.RigidConstraintModel(kind, model, *place))
            data = pin.StdVec_RigidConstraintData()
            for row in constraints:
                data.append(row.createData())
            self.space[algorithm], self.space[f"{algorithm}_data"] = constraints, data
            names = f"{algorithm}, {algorithm}_data"
            call = f"pin.computeDelassusMatrix(m, d, q, {names})"
            if algorithm == "operational_inertia":
                call = f"inv({call})"
            self.calls[algorithm] = PeerCall(f"x = {call}", states, THREE, "x")
