"""The Rust library dynibo."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers.peer import Peer, PeerCall, Rows, urdf_file
from dyn_core.spatial.conventions import pose_parts


class Dynibo(Peer):
    """dynibo; gravity is its own constant, a base moves in world axes."""

    name = "dynibo"
    packages = ("dynibo",)
    gravity = 9.80665

    def prepare(self) -> None:
        """Load the model."""
        import dynibo

        floating = self.robot.floating
        kind = dynibo.FloatingRobot if floating else dynibo.Robot
        with urdf_file(self.robot.urdf) as path:
            model = kind.from_urdf(str(path))
        n, nv = model.joint_count, model.generalized_count
        self.order = [self._row(model, k, n) for k in range(n)]
        self.space = {"r": model, "add": np.add, "H": np.zeros(nv * nv)}
        self.space |= {name: np.zeros(nv) for name in ("o", "g")}
        moved, driven = self._states("a"), self._states("tau")
        base, names = ("b, ", "b, q, v, a") if floating else ("", "q, v, a")
        matrix = f"H.reshape({nv}, {nv})"
        for name, states, statement, result in (
            ("rnea", moved, f"r.inverse_dynamics({base}q, v, a, out=o)", "o"),
            ("aba", driven, f"r.forward_dynamics({base}q, v, a, out=o)", "o"),
            ("bias", moved,
             f"r.gravity({base}q, out=g);"
             f" r.velocity_product_forces({base}q, v, out=o); add(o, g, o)",
             "o"),
            ("crba", moved, f"r.mass_matrix({base}q, out=H)", matrix),
        ):  # fmt: skip
            self.calls[name] = PeerCall(statement, states, names, result)

    def _row(self, model: Any, k: int, n: int) -> int:
        """Return which of our joints is its k-th: the first whose link it moves."""
        import dynibo

        base = (dynibo.BaseState(),) if self.robot.floating else ()
        ours = self.robot.model
        links = [ours.child_links[i] for i in ours.bodies][-n:]
        for row, link in enumerate(links):
            poses = []
            for angle in (0.0, 0.3):
                q = np.zeros(n)
                q[k] = angle
                pose = model.forward_kinematics(*base, q, model.link_id(link))
                poses.append((*pose.translation, *pose.rotation_xyzw))
            if not np.allclose(poses[0], poses[1], atol=1e-12):
                return row
        raise ValueError(f"joint {k} moves nothing")

    def position(self, q: np.ndarray) -> np.ndarray:
        """Return the pose of a base, and the joints in its order."""
        base = 7 * self.robot.floating
        return np.concatenate([q[:base], q[base:][self.order]])

    def velocity_map(self, q: np.ndarray) -> np.ndarray:
        """Return B: [angular; linear] of a base in world axes."""
        nv, base = self.robot.model.nv, 6 * self.robot.floating
        B = np.zeros((nv, nv))
        if self.robot.floating:
            B[:3, :3] = B[3:6, 3:6] = pose_parts(q[:7])[0]
        B[range(base, nv), base + np.array(self.order)] = 1.0
        return B

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return R (w x v) of a base."""
        b = np.zeros(len(v))
        if self.robot.floating:
            b[3:6] = pose_parts(q[:7])[0] @ np.cross(v[:3], v[3:6])
        return b

    def _states(self, third: str) -> Rows:
        """Return states as its methods take them; forces are one vector."""
        if not self.robot.floating:
            return self.rows_of(third)
        import dynibo

        def twist(x: np.ndarray) -> Any:
            return dynibo.Twist(tuple(x[:3]), tuple(x[3:6]))

        states: Rows = []
        for q, v, x in self.rows_of(third):
            pose = dynibo.Pose(tuple(q[:3]), tuple(q[3:7]))
            moves = (twist(v), twist(x)) if third == "a" else (twist(v),)
            rest = x[6:] if third == "a" else x
            states.append((dynibo.BaseState(pose, *moves), q[7:], v[6:], rest))
        return states
