"""MuJoCo's stages."""

from __future__ import annotations

import numpy as np

from bench.cases import DT
from bench.peers.peer import Peer, PeerCall, with_world
from dyn_core.spatial import conventions


class MuJoCo(Peer):
    """MuJoCo's stages; each state is copied into its data, as a user must."""

    name = "mujoco"
    packages = ("mujoco",)

    def prepare(self) -> None:
        """Load the model; a floating root gets a joint of the URDF."""
        import mujoco

        model = mujoco.MjModel.from_xml_string(with_world(self.robot))
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        model.opt.timestep = DT
        model.dof_damping[:] = 0.0  # that of the URDF is no part of these problems
        nv = model.nv
        ids = [model.joint(name).id for name in self.joints]
        self.order, self.q_order = model.jnt_dofadr[ids], model.jnt_qposadr[ids]
        self.size = model.nq
        self.space = {
            "mj": mujoco, "m": model, "d": mujoco.MjData(model),
            "H": np.zeros((nv, nv)), "out": np.zeros(nv),
        }  # fmt: skip
        moved, driven = self.rows_of("a"), self.rows_of("tau")
        place = "d.qpos[:] = q; d.qvel[:] = v; "
        first = "mj.mj_kinematics(m, d); mj.mj_comPos(m, d); "
        forces = f"{place}d.qfrc_applied[:] = a; "
        moves = f"{first}mj.mj_comVel(m, d); mj.mj_rne(m, d, "
        for name, states, statement, result in (
            ("rnea", moved, f"{place}d.qacc[:] = a; {moves}1, out)", "out"),
            ("bias", moved, f"{place}{moves}0, out)", "out"),
            ("crba", moved,
             f"d.qpos[:] = q; {first}mj.mj_crb(m, d); mj.mj_fullM({self._full()})",
             "H"),
            ("aba", driven, f"{forces}mj.mj_forward(m, d)", "d.qacc"),
            ("semi_implicit_euler", driven, f"{forces}mj.mj_step(m, d)",
             "d.qpos, d.qvel"),
        ):  # fmt: skip
            self.calls[name] = PeerCall(statement, states, "q, v, a", result)
        slopes = "only by finite differences (mjd_transitionFD, mjd_inverseFD)"
        self.lacks = dict.fromkeys(("id_derivatives", "fd_derivatives"), slopes)

    def _full(self) -> str:
        """Return the arguments of mj_fullM: they changed their order."""
        said = str(self.space["mj"].mj_fullM.__doc__)
        new = said.find("d:") >= 0 and said.find("d:") < said.find("dst:")
        return "m, d, H" if new else "m, H, d.qM"

    def position(self, q: np.ndarray) -> np.ndarray:
        """Return qpos."""
        x, base = np.zeros(self.size), 7 * self.robot.floating
        x[self.q_order] = q[base:]
        if self.robot.floating:
            x[:7] = conventions.mujoco_free_position(q[:7])
        return x

    def velocity_map(self, q: np.ndarray) -> np.ndarray:
        """Return B; a free joint's linear velocity is in world axes."""
        B, base = (
            np.zeros((len(self.robot.state["v"][0]),) * 2),
            6 * self.robot.floating,
        )
        if self.robot.floating:
            B[:6, :6] = conventions.mujoco_free_columns(q[:7])
        B[self.order, range(base, len(B))] = 1.0
        return B

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return R (w x v) of a free joint."""
        b = np.zeros(len(v))
        if self.robot.floating:
            zero = np.zeros(6)
            b[:6] = conventions.mujoco_free_acceleration(q[:7], v[:6], zero)
        return b
