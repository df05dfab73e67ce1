"""Peers: what others offer for the same problems, called as their manuals advise.

Each gives statements in terms of its own states; what a user must copy into it for
each call is part of the statement. Values are not compared here; tests do that.
"""

from __future__ import annotations

import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.bench.cases import STATES, Robot
from dyn_core.errors import UnsupportedError

Statement = tuple[str, list[tuple[Any, ...]], str]
"""Python, states, and the names of what a state consists of."""


class Peer:
    """A library for one robot.

    Attributes:
        name: Of its distribution.
        space: Names its statements use.
        calls: Statement of each algorithm, for one state.
        batches: The same for many: statement on `rows` states.
    """

    name = ""

    def __init__(self, robot: Robot, rows: int) -> None:
        self.robot, self.rows = robot, rows
        self.space: dict[str, Any] = {}
        self.calls: dict[str, Statement] = {}
        self.batches: dict[str, Statement] = {}
        self.prepare()

    def prepare(self) -> None:
        """Load the robot and write the statements."""
        raise NotImplementedError

    @classmethod
    def version(cls) -> str:
        """Return name and version; raises PackageNotFoundError where it is missing."""
        return f"{cls.name} {metadata.version(cls.name)}"


class Pinocchio(Peer):
    """Pinocchio's bindings; batches by its pool, on one thread."""

    name = "pin"

    def prepare(self) -> None:
        """Build the model and states."""
        import pinocchio as pin

        robot, rng = self.robot, np.random.default_rng(7)
        root = (pin.JointModelFreeFlyer(),) if robot.floating else ()
        model = pin.buildModelFromXML(robot.urdf, *root)
        zero, nv = pin.neutral(model), model.nv
        q = [
            pin.integrate(model, zero, x) for x in rng.uniform(-1.2, 1.2, (STATES, nv))
        ]
        v, a = rng.uniform(-1, 1, (2, STATES, nv))
        states = list(zip(q, v, a, strict=True))
        self.space = {"pin": pin, "m": model, "d": model.createData()}
        self.space["inv"] = np.linalg.inv
        three = "q, v, a"
        self.calls = {
            "rnea": ("pin.rnea(m, d, q, v, a)", states, three),
            "aba": ("pin.aba(m, d, q, v, a)", states, three),
            "crba": ("pin.crba(m, d, q)", states, three),
            "bias": ("pin.nonLinearEffects(m, d, q, v)", states, three),
            "mass_matrix_inverse": ("pin.computeMinverse(m, d, q)", states, three),
            "id_derivatives": (
                "pin.computeRNEADerivatives(m, d, q, v, a)", states, three),
            "fd_derivatives": (
                "pin.computeABADerivatives(m, d, q, v, a)", states, three),
            "semi_implicit_euler": (
                "w = v + 0.001 * pin.aba(m, d, q, v, a);"
                " pin.integrate(m, q, 0.001 * w)", states, three),
        }  # fmt: skip
        self._constraints(model)
        for name, kind in (("point_delassus", "feet"), ("operational_inertia", "tip")):
            call = f"pin.computeDelassusMatrix(m, d, q, {kind}, {kind}_data)"
            if kind == "tip":
                call = f"inv({call})"
            self.calls[name] = (call, states, three)
        many = self.rows // STATES
        columns = [np.asfortranarray(np.tile(x, (many, 1)).T) for x in (q, v, a)]
        self.space.update(pool=pin.ModelPool(model, 1), out=columns[2] * 0)
        for name in ("rnea", "aba"):
            call = f"pin.{name}InParallel(1, pool, q, v, a, out)"
            self.batches[name] = (call, [tuple(columns)], three)

    def _constraints(self, model: Any) -> None:
        """Hold the robot's tips: all by points, and the first by a whole frame."""
        pin = self.space["pin"]
        kinds = (
            ("feet", pin.ContactType.CONTACT_3D, self.robot.tips),
            ("tip", pin.ContactType.CONTACT_6D, self.robot.tips[:1]),
        )
        for name, kind, links in kinds:
            rows = pin.StdVec_RigidConstraintModel()
            for link in links:
                frame = model.frames[model.getFrameId(link)]
                place = frame.parentJoint, frame.placement, pin.ReferenceFrame.LOCAL
                rows.append(pin.RigidConstraintModel(kind, model, *place))
            data = pin.StdVec_RigidConstraintData()
            for row in rows:
                data.append(row.createData())
            self.space[name], self.space[f"{name}_data"] = rows, data


class MuJoCo(Peer):
    """MuJoCo's stages; each state is copied into its data, as a user must."""

    name = "mujoco"

    def prepare(self) -> None:
        """Load the model; a floating root gets a joint of the URDF."""
        import mujoco

        model = mujoco.MjModel.from_xml_string(_with_world(self.robot))
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        data, rng = mujoco.MjData(model), np.random.default_rng(7)
        states = []
        for _ in range(STATES):
            q = np.zeros(model.nq)
            mujoco.mj_resetData(model, data)
            q[:] = data.qpos
            mujoco.mj_integratePos(model, q, rng.uniform(-1.2, 1.2, model.nv), 1.0)
            states.append((q, *rng.uniform(-1, 1, (2, model.nv))))
        self.space = {
            "mj": mujoco, "m": model, "d": data, "H": np.zeros((model.nv, model.nv)),
            "out": np.zeros(model.nv),
        }  # fmt: skip
        place = "d.qpos[:] = q; d.qvel[:] = v; "
        first = "mj.mj_kinematics(m, d); mj.mj_comPos(m, d); "
        three = "q, v, a"
        self.calls = {
            "rnea": (
                f"{place}d.qacc[:] = a; {first}mj.mj_comVel(m, d);"
                " mj.mj_rne(m, d, 1, out)", states, three),
            "bias": (
                f"{place}{first}mj.mj_comVel(m, d); mj.mj_rne(m, d, 0, out)",
                states, three),
            "aba": (
                f"{place}d.qfrc_applied[:] = a; mj.mj_forward(m, d)", states, three),
            "semi_implicit_euler": (
                f"{place}d.qfrc_applied[:] = a; mj.mj_step(m, d)", states, three),
        }  # fmt: skip


class Dynibo(Peer):
    """The Rust library dynibo; gravity is its own constant."""

    name = "dynibo"

    def prepare(self) -> None:
        """Load the model."""
        import dynibo

        floating, rng = self.robot.floating, np.random.default_rng(7)
        kind = dynibo.FloatingRobot if floating else dynibo.Robot
        with _file(self.robot.urdf) as path:
            model = kind.from_urdf(str(path))
        n, nv = model.joint_count, model.generalized_count
        states: list[tuple[Any, ...]] = []
        for _ in range(STATES):
            state = (rng.uniform(-1.2, 1.2, n), *rng.uniform(-1, 1, (2, n)))
            if floating:
                quaternion = rng.normal(size=4)
                base = dynibo.BaseState(
                    dynibo.Pose(
                        tuple(rng.normal(size=3)),
                        tuple(quaternion / np.linalg.norm(quaternion)),
                    ),
                    dynibo.Twist(tuple(rng.normal(size=3)), tuple(rng.normal(size=3))),
                    dynibo.Twist(tuple(rng.normal(size=3)), tuple(rng.normal(size=3))),
                )
                state = (base, *state)
            states.append((*state, rng.uniform(-5, 5, nv)))
        self.space = {"r": model, "o": np.zeros(nv), "H": np.zeros(nv * nv)}
        base, names = ("b, ", "b, q, v, a, f") if floating else ("", "q, v, a, f")
        self.calls = {
            "rnea": (f"r.inverse_dynamics({base}q, v, a, out=o)", states, names),
            "aba": (f"r.forward_dynamics({base}q, v, f, out=o)", states, names),
            "crba": (f"r.mass_matrix({base}q, out=H)", states, names),
        }


class CasADi(Peer):
    """C code that CasADi generates from adam's expressions, called by buffers."""

    name = "casadi"

    def prepare(self) -> None:
        """Generate and compile; takes minutes for large robots."""
        import casadi
        from adam import Representations
        from adam.casadi import KinDynComputations

        floating, n = self.robot.floating, self.robot.model.nv - 6 * self.robot.floating
        with _file(self.robot.urdf) as path:
            model = KinDynComputations(str(path), _joints(self.robot))
        model.set_frame_velocity_representation(
            Representations.BODY_FIXED_REPRESENTATION
        )
        H, q = casadi.SX.sym("H", 4, 4), casadi.SX.sym("q", n)
        u, v = casadi.SX.sym("u", 6), casadi.SX.sym("v", n)
        a = casadi.SX.sym("a", n + 6)
        if not floating:
            q0, zero = casadi.SX.eye(4), casadi.SX.zeros(6)
            bias = model.bias_force(q0, q, zero, v)[6:]
            M = model.mass_matrix(q0, q)[6:, 6:]
            inputs, expressions = [q, v], {"bias": bias, "crba": M}
            a = casadi.SX.sym("a", n)
        else:
            bias, M = model.bias_force(H, q, u, v), model.mass_matrix(H, q)
            inputs, expressions = [H, q, u, v], {"bias": bias, "crba": M}
            expressions["aba"] = model.aba(H, q, u, v, a[6:])
        expressions["rnea"] = casadi.mtimes(M, a) + bias
        functions = {
            name: casadi.Function(name, [*inputs, a], [casadi.densify(x)])
            for name, x in expressions.items()
        }
        self._calls(_compiled(functions))

    def _calls(self, functions: dict[str, Any]) -> None:
        """Write statements for each function; its arguments lie in flat buffers."""
        rng = np.random.default_rng(7)
        for name, function in functions.items():
            sizes = [function.nnz_in(k) for k in range(function.n_in())]
            states = [
                tuple(
                    np.eye(4).ravel()
                    if size == 16 and k == 0
                    else rng.uniform(-1, 1, size)
                    for k, size in enumerate(sizes)
                )
                for _ in range(STATES)
            ]
            holds = self._bind(name, function, [np.zeros(size) for size in sizes])
            self.space.update({f"{name}_{k}": x for k, x in enumerate(holds)})
            names = [f"x{k}" for k in range(len(holds))]
            copies = "; ".join(f"{name}_{k}[:] = {x}" for k, x in enumerate(names))
            self.calls[name] = (f"{copies}; {name}_go()", states, ", ".join(names))
            many = np.tile(np.arange(STATES), self.rows // STATES)
            wide = [
                np.concatenate([states[k][i] for k in many]) for i in range(len(sizes))
            ]
            self._bind(f"{name}_map", function.map(self.rows), wide)
            self.batches[name] = (f"{name}_map_go()", [(0,)], "_")

    def _bind(self, name: str, function: Any, holds: list[np.ndarray]) -> Any:
        """Bind a function to memory; its trigger goes to the space."""
        buffer, trigger = function.buffer()
        out = np.zeros(function.nnz_out(0))
        for k, hold in enumerate(holds):
            buffer.set_arg(k, hold.data)
        buffer.set_res(0, out.data)
        self.space[f"{name}_go"] = trigger
        self.space[f"{name}_kept"] = (buffer, holds, out, function)
        return holds


PEERS: dict[str, type[Peer]] = {
    "pinocchio": Pinocchio, "mujoco": MuJoCo, "dynibo": Dynibo, "casadi": CasADi,
}  # fmt: skip


def find(names: str, report: Callable[[str], Any]) -> list[type[Peer]]:
    """Return peers by their names; tell of those that are not installed.

    Raises:
        UnsupportedError: A name is unknown.
    """
    peers = []
    for name in filter(None, names.split(",")):
        if name not in PEERS:
            raise UnsupportedError(f"no peer '{name}'; known: {', '.join(PEERS)}")
        try:
            PEERS[name].version()
        except metadata.PackageNotFoundError:
            report(f"{name} is not installed; its columns are left out")
            continue
        peers.append(PEERS[name])
    return peers


@contextmanager
def _file(urdf: str) -> Iterator[Path]:
    """Lend a file that holds a URDF."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(urdf, encoding="utf-8")
        yield path


def _joints(robot: Robot) -> list[str]:
    """Return the names of the moving joints."""
    moving = ("revolute", "continuous", "prismatic")
    joints = ElementTree.fromstring(robot.urdf).iter("joint")
    return [str(j.get("name")) for j in joints if j.get("type") in moving]


def _with_world(robot: Robot) -> str:
    """Return the URDF with a floating joint to a world link, where the root floats."""
    root = ElementTree.fromstring(robot.urdf)
    if robot.floating:
        below = {str(child.get("link")) for child in root.iterfind("joint/child")}
        links = [str(link.get("name")) for link in root.iterfind("link")]
        joint = ElementTree.SubElement(root, "joint", name="floats", type="floating")
        ElementTree.SubElement(joint, "parent", link="the_world")
        base = next(name for name in links if name not in below)
        ElementTree.SubElement(joint, "child", link=base)
        ElementTree.SubElement(root, "link", name="the_world")
    return ElementTree.tostring(root, encoding="unicode")


def _compiled(functions: dict[str, Any]) -> dict[str, Any]:
    """Compile generated C with the system's compiler, and load it."""
    import casadi

    generator = casadi.CodeGenerator("functions.c")
    for function in functions.values():
        generator.add(function)
    with tempfile.TemporaryDirectory() as folder:
        generator.generate(f"{folder}/")
        source, library = f"{folder}/functions.c", f"{folder}/functions.so"
        flags = ["-O3", "-march=native", "-fPIC", "-shared"]
        subprocess.run(["cc", *flags, source, "-o", library], check=True)
        return {name: casadi.external(name, library) for name in functions}
