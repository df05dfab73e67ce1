"""A standing quadruped in MuJoCo and Pinocchio, to compare with."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from bench.cases import Robot
from bench.rollout import rollout_rate
from dyn_core.commands.timing import per_call
from dyn_core.contact.collision.halfspaces import HalfSpace
from dyn_core.spatial.conventions import (
    mujoco_free_position,
    mujoco_free_velocity,
    pinocchio_free_velocity,
)


class PeerTiming(NamedTuple):
    """Times of the contact step of another library.

    Attributes:
        name: Of the row.
        call: A step or a problem [s].
        rate: Steps of a batch on one core [1/s], or None.
        contacts, iterations: Means over the states.
        law: Largest relative residual of the exact law, or None.
    """

    name: str
    call: float
    rate: float | None
    contacts: float
    iterations: float
    law: float | None = None


class StandingStates(NamedTuple):
    """States by rows, and what goes with them.

    Attributes:
        q, v, tau: Positions, velocities, joint forces.
        warm: Impulses of the step before.
        dt: Step [s].
    """

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    warm: np.ndarray
    dt: float


def friction(robot: Robot) -> float:
    """Return the friction coefficient of the first foot on the floor."""
    link = robot.model.shapes[-1].link
    return robot.model.material(link).combined(HalfSpace().material).mu


def mujoco_model(robot: Robot, mu: float, dt: float) -> Any:
    """Return MuJoCo's model of a floating robot with its shapes on a floor.

    Elliptic cones, dense Jacobian, Newton's method; shapes meet the floor only. Limits
    and dry friction of joints, which the step here leaves to others, are left out.
    """
    mj = import_module("mujoco")
    root = ElementTree.parse(robot.path).getroot()
    below = {str(child.get("link")) for child in root.iterfind("joint/child")}
    links = [str(link.get("name")) for link in root.iterfind("link")]
    joint = ElementTree.SubElement(root, "joint", name="floats", type="floating")
    ElementTree.SubElement(joint, "parent", link="the_world")
    ElementTree.SubElement(
        joint, "child", link=next(x for x in links if x not in below)
    )
    ElementTree.SubElement(root, "link", name="the_world")
    spec = mj.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = 0, 1
    plane = {"type": mj.mjtGeom.mjGEOM_PLANE, "size": [0, 0, 1]}
    spec.worldbody.add_geom(name="floor", contype=1, conaffinity=0, **plane)
    model = spec.compile()
    model.geom_friction[:, 0] = mu
    model.geom_condim[:] = 3
    model.dof_frictionloss[:] = 0.0
    model.jnt_limited[:] = 0
    model.opt.timestep = dt
    model.opt.cone = mj.mjtCone.mjCONE_ELLIPTIC
    model.opt.jacobian = mj.mjtJacobian.mjJAC_DENSE
    model.opt.solver = mj.mjtSolver.mjSOL_NEWTON
    return model


def mujoco(robot: Robot, states: StandingStates, settle: int) -> PeerTiming:
    """Measure mj_step of states that stand in MuJoCo's own way, with warm starts.

    Args:
        robot: Floating robot.
        states: Where it stands here.
        settle: Steps under constant joint forces before it is measured.
    """
    mj = import_module("mujoco")
    model = mujoco_model(robot, friction(robot), states.dt)
    data, calls = mj.MjData(model), []
    contacts, iterations = 0, 0
    for q, v, tau in zip(states.q, states.v, states.tau, strict=True):
        mj.mj_resetData(model, data)
        data.qpos[:] = np.concatenate([mujoco_free_position(q[:7]), q[7:]])
        data.qvel[:] = np.concatenate([mujoco_free_velocity(q[:7], v[:6]), v[6:]])
        data.qfrc_applied[:] = tau
        mj.mj_step(model, data, settle)
        parts = data.qpos, data.qvel, data.qfrc_applied, data.qacc_warmstart
        calls.append(tuple(part.copy() for part in parts))
        mj.mj_step(model, data)
        contacts += data.ncon
        iterations += int(data.solver_niter[0])
    space = {"mj": mj, "m": model, "d": data}
    statement = (
        "d.qpos[:] = q; d.qvel[:] = v; d.qfrc_applied[:] = f;"
        " d.qacc_warmstart[:] = w; mj.mj_step(m, d)"
    )
    call = per_call(statement, calls, "q, v, f, w", space)
    q, v, tau, warm = (np.array(x) for x in zip(*calls, strict=True))
    rate = rollout_rate(mj, model, q, v, tau, warm)
    count = len(calls)
    name = "mujoco mj_step, Newton"
    return PeerTiming(name, call, rate, contacts / count, iterations / count)


class PinocchioContacts:
    """The contact problems of states in Pinocchio: set-up and solve, no integration.

    Where feet touch is given; what is timed: free velocity (aba), inertia matrix,
    factorised Delassus operator, Jacobian, and the solver from its last answer.

    Args:
        robot: Floating robot.
        states: Where it stands.
    """

    TOLERANCE, PROXIMAL = 1e-9, 1e-10

    def __init__(self, robot: Robot, states: StandingStates) -> None:
        self.pin = pin = import_module("pinocchio")
        self.states, self.dt = states, states.dt
        root = pin.JointModelFreeFlyer()
        self.model = pin.buildModelFromXML(robot.urdf, root)
        self.data = self.model.createData()
        shapes: Any = robot.model.shapes
        self.feet = [(x.link, x.shape.radius) for x in shapes]
        self.mu = friction(robot)

    def solver(self, kind: str) -> tuple[Any, Any]:
        """Return solver and settings; kind is PGS or ADMM."""
        settings = getattr(self.pin, f"{kind}SolverSettings")()
        for part in ("feasibility", "complementarity"):
            for how in ("absolute", "relative"):
                setattr(settings, f"{how}_{part}_tol", self.TOLERANCE)
        rows = 3 * len(self.feet)
        return getattr(self.pin, f"{kind}ConstraintSolver")(rows), settings

    def problem(self, k: int) -> tuple[Any, ...]:
        """Return q, v, tau, constraints, their data, bias, decomposition of a state."""
        pin, model, data = self.pin, self.model, self.data
        q, v, tau = (
            x[k].copy() for x in (self.states.q, self.states.v, self.states.tau)
        )
        v[:6], tau[:6] = (
            pinocchio_free_velocity(v[:6]),
            pinocchio_free_velocity(tau[:6]),
        )
        pin.framesForwardKinematics(model, data, q)
        many, kept = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        push = np.zeros(3 * len(self.feet))
        for i, (link, radius) in enumerate(self.feet):
            frame = model.getFrameId(link)
            point, joint = (
                data.oMf[frame].translation.copy(),
                model.frames[frame].parentJoint,
            )
            point[2] -= radius
            push[3 * i + 2] = point[2] / self.dt  # gap; its normal comes last
            ground = pin.SE3(np.eye(3), point * [1.0, 1.0, 0.0])
            there = data.oMi[joint].inverse() * pin.SE3(np.eye(3), point)
            row = pin.PointContactConstraintModel(model, 0, ground, joint, there)
            row.setFriction(self.mu)
            whole = pin.ConstraintModel(row)
            many.append(whole)
            kept.append(whole.createData())
        factors = pin.ConstraintCholeskyDecomposition(model, data, many, kept)
        tau[6:] -= model.damping[6:] * v[6:] if np.any(model.damping[6:]) else 0.0
        return q, v, tau, many, kept, push, factors

    def solve(
        self, problem: tuple[Any, ...], solver: Any, settings: Any, result: Any
    ) -> None:
        """Set a problem up and solve it."""
        q, v, tau, many, kept, push, factors = problem
        pin, model, data = self.pin, self.model, self.data
        free = v + self.dt * pin.aba(model, data, q, v, tau)
        pin.crba(model, data, q, pin.Convention.WORLD)
        for row, row_data in zip(many, kept, strict=True):
            row.calc(model, data, row_data)
        factors.compute(model, data, many, kept, self.PROXIMAL)
        operator = factors.getDelassusOperatorCholeskyExpression()
        bias = pin.getConstraintsJacobian(model, data, many, kept) @ free + push
        solver.solve(operator, bias, many, kept, settings, result)

    def impulses(self, kind: str, k: int) -> np.ndarray:
        """Return the impulses of a state, by contact: two tangents and the normal."""
        result = getattr(self.pin, f"{kind}SolverResult")()
        self.solve(self.problem(k), *self.solver(kind), result)
        return np.asarray(result.retrieveConstraintImpulses())

    def measured(self, kind: str) -> PeerTiming:
        """Measure problems with PGS or ADMM."""
        solver, settings = self.solver(kind)
        calls, iterations = [], 0
        for k in range(len(self.states.q)):
            result = getattr(self.pin, f"{kind}SolverResult")()
            calls.append((self.problem(k), result))
            self.solve(calls[-1][0], solver, settings, result)
            iterations += result.iterations
        space = {"go": self.solve, "s": solver, "o": settings}
        call = per_call("go(p, s, o, r)", calls, "p, r", space)
        count = len(calls)
        name = f"pinocchio {kind}, no step"
        return PeerTiming(name, call, None, len(self.feet), iterations / count)


def pinocchio(robot: Robot, states: StandingStates) -> list[PeerTiming]:
    """Measure Pinocchio's solvers, where its bindings have them."""
    pin = import_module("pinocchio")
    kinds = [k for k in ("PGS", "ADMM") if hasattr(pin, f"{k}ConstraintSolver")]
    made = PinocchioContacts(robot, states) if kinds else None
    return [made.measured(kind) for kind in kinds if made]
