"""The constraint problem of a robot in its world: contacts, limits, loops, friction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dyn_core.contact.collision.detection.tables import Pairs, Shapes
from dyn_core.contact.collision.pairs import ContactPairs
from dyn_core.contact.collision.shape_tables import ShapeTable, pair_table
from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.stepping.constraints import (
    Constraint,
    JointConstraints,
    contact_constraints,
)
from dyn_core.contact.stepping.integration import turning
from dyn_core.contact.stepping.world import World
from dyn_core.engines.base import Program
from dyn_core.errors import SignatureError, SingularError, UnsupportedError
from dyn_core.model import Model
from dyn_core.model.passive_forces import (
    friction_slopes,
    with_equal_directions,
    without_dry_friction,
)
from dyn_core.model.payload import PayloadInput
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.solving.registry import solver, solvers
from dyn_core.spatial import Vector


class ContactModel:
    """The constraints and the equation of motion of a robot in its world.

    Kinematics, inertia and bias force are compiled Programs; collision detection and
    the matrices of the problem use NumPy. Joint damping is part of the free motion,
    evaluated at the end of the step. Dry friction is a constraint block or, with
    `friction` off, a smooth function of the speed in the free motion.

    Attributes:
        model: Robot.
        world: Half-spaces, and which kinds of constraints are enabled.
        kinematics: Program of BODY_JACOBIANS.

    Source: LCP-1 to LCP-3, LCP-6 to LCP-8.
    """

    def __init__(
        self,
        model: Model,
        world: World | Mapping[str, Any] | None = None,
        joint_friction: bool = True,
        joint_springs: bool = True,
        engine: str | None = None,
        carried: PayloadInput | None = None,
    ) -> None:
        """Build the Programs.

        Args:
            model: Robot.
            world: A World, or a mapping of its fields; None: a floor.
            joint_friction: Whether damping and dry friction act in the joints.
            joint_springs: Whether springs act.
            engine: Of the Programs.
            carried: A payload that may change; None: none.
        """
        if model.driven:
            raise UnsupportedError(
                f"contacts: the place of {', '.join(model.driven)} is driven, and the"
                " speeds of contacts would lack that motion; valid: a Simulator without"
                " world, or the joint as a prescribed one"
            )
        self.model, self.world = model, World.of(world)
        kind = solver(self.world.solver).signature
        if kind != CONTACT_SOLVE:
            valid = ", ".join(solvers(CONTACT_SOLVE))
            raise SignatureError(
                f"world: solver '{self.world.solver}' solves {kind.name};"
                f" valid: {valid}"
            )
        self.dry = joint_friction and self.world.friction
        if self.dry:
            model = without_dry_friction(model)
        self.smooth_model, self.engine = model, engine
        self._slipping = model if joint_friction else model.without_friction()
        self._smooth = any(x for part in self._slipping.friction for x in part)
        self._acts = {"joint_friction": joint_friction, "joint_springs": joint_springs}
        self.kinematics = solver("body_jacobians").build(model, engine=engine)
        self.carried = carried or PayloadInput()
        paths = self.carried.paths
        self._inertia = solver("crba").build(model, engine=engine, inputs=paths)
        self._bias = self.build("bias", "f_ext")
        self._loops = None
        if model.loops:
            self._loops = solver("loop_constraints").build(model, engine=engine)
        self._sweep = solver("response").build(
            model.without_loops(), engine=engine, inputs=paths
        )
        made = (self.kinematics, self._inertia, self._bias, self._loops, self._sweep)
        for program in made:
            if program is not None:
                program.prepare()  # nothing compiles while it steps
        self.pairs = None
        if self.world.contacts:
            world = self.world
            self.pairs = ContactPairs(
                self.model,
                (*world.half_spaces, *world.height_fields),
                world.margin,
                world.packages,
                world.groups,
            )
        self.joints = JointConstraints(self.model, self.world.gears)
        self._damping = self._slopes(np.zeros(model.nv))

    def state(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        h: float = 0.0,
        f_ext: np.ndarray | None = None,
        speeds: Mapping[str, Any] | None = None,
    ) -> ConstrainedState:
        """Return the constraints and the equation of motion at a state.

        Args:
            q, qd: State, (nq,), (nv,).
            h: Step; damping is evaluated at its end, and limits within reach of
                the step are included [s].
            f_ext: Force on each body, body coordinates, (nb, 6) [N·m; N]; None: none.
            speeds: Prescribed velocities by joint.
        """
        q, qd = np.asarray(q, float), np.asarray(qd, float)
        poses, J = self.kinematics(q)
        J_bodies = np.concatenate([np.zeros((1, 6, len(qd))), J])
        applied = np.zeros((self.model.nb, 6)) if f_ext is None else f_ext
        slopes = self._slopes(qd) if self._smooth else self._damping
        carried = self.carried.values
        return ConstrainedState(
            self.model,
            q,
            qd,
            poses,
            J_bodies,
            self._inertia(q, *carried),
            self._bias(q, qd, applied, *carried),
            h * slopes,
            tuple(self._constraints(q, qd, poses, J_bodies, h, speeds or {})),
            partial(self._sweep_carried, carried),
        )

    def build(self, name: str, *inputs: str) -> Program[Any]:
        """Return a Program of the robot as it moves between contacts.

        Joint friction and springs act as chosen, but not dry friction that is a
        constraint.

        Args:
            name: Of a solver that passes friction and springs on.
            inputs: Further inputs, before those of the payload.
        """
        return solver(name).build(
            self.smooth_model,
            engine=self.engine,
            inputs=[*inputs, *self.carried.paths],
            **self._acts,
        )

    @property
    def shapes_and_pairs(self) -> tuple[Shapes, Pairs]:
        """Tables of the shapes and of the pairs that are tested; empty without."""
        if self.pairs is None:
            return ShapeTable().shapes(), pair_table({})
        return self.pairs.shape_table, self.pairs.pair_table

    def _sweep_carried(self, carried: tuple[np.ndarray, ...], *inputs: Any) -> Any:
        """Return the response to joint forces, with a payload."""
        return self._sweep(*inputs, *carried)

    def _constraints(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        poses: np.ndarray,
        J_bodies: np.ndarray,
        h: float,
        speeds: Mapping[str, Any],
    ) -> list[Constraint]:
        """Return all constraints in a fixed order."""
        constraints: list[Constraint] = []
        if self.pairs is not None:
            R = np.concatenate([np.eye(3)[None], poses[:, :3, :3]])
            p = np.concatenate([np.zeros((1, 3)), poses[:, :3, 3]])
            constraints += contact_constraints(
                self.pairs.contacts_from_poses(R, p), J_bodies
            )
        if self.world.limits:
            fastest = float(np.abs(qd).max(initial=0.0))
            near = self.joints.limits(q, self.world.margin + 2 * h * fastest)
            e = self.world.limit_restitution
            constraints += [replace(c, restitution=e) for c in near] if e else near
        if self.dry:
            constraints += self.joints.dry_friction()
        if self._loops is not None:
            constraints += self._loop_constraints(q, qd)
        return [*constraints, *self.joints.gears(q), *self.joints.prescribed(speeds)]

    def dense_constraints(self, q: np.ndarray, qd: np.ndarray) -> list[Constraint]:
        """Return the constraints whose rows are computed as a whole.

        Limits of balls, of one number for each state, and loops.
        """
        balls = self.joints.ball_limits(q) if self.world.limits else []
        e = self.world.limit_restitution
        balls = [replace(c, restitution=e) for c in balls] if e else balls
        return balls + ([] if self._loops is None else self._loop_constraints(q, qd))

    def _loop_constraints(self, q: np.ndarray, qd: np.ndarray) -> list[Constraint]:
        """Return the loops and couplings of the model, with their errors."""
        assert self._loops is not None
        f, A, _ = self._loops(q, qd)
        constraints, first_row = [], 0
        for loop in self.model.loops:
            rows = slice(first_row, first_row + loop.rows)
            name, key = f"loop {loop.name}", ("loop", loop.name)
            constraints.append(
                Constraint(name, key, "loop", "bilateral", A[rows], f[rows])
            )
            first_row += loop.rows
        return constraints

    def _slopes(self, qd: np.ndarray) -> np.ndarray:
        """Return the derivative of joint friction by the speed, (nv, nv)."""
        robot = with_equal_directions(self._slipping)  # slopes >= 0
        slopes = friction_slopes(robot, Vector(qd.tolist()))
        return np.asarray(slopes, float).reshape(len(qd), len(qd))


@dataclass(frozen=True, eq=False)
class ConstrainedState:
    """A robot in one state: its equation of motion and its constraints.

        (H + B)(qd+ - qd) = h (tau - C) + J.T lambda

    Attributes:
        model: Robot.
        q, qd: State.
        poses: Poses of the bodies in the world, (nb, 4, 4).
        J_bodies: World Jacobians, the world's zeros first, (nb + 1, 6, nv).
        H: Joint-space inertia, (nv, nv).
        C: Bias force with damping, external forces and springs, (nv,).
        B: h times the derivative of damping, (nv, nv).
        constraints: Blocks of rows.
        sweep: Program of RESPONSE, with the payload of the state.

    Source: LCP-1, LCP-3, LCP-4.
    """

    model: Model
    q: np.ndarray
    qd: np.ndarray
    poses: np.ndarray
    J_bodies: np.ndarray
    H: np.ndarray
    C: np.ndarray
    B: np.ndarray
    constraints: tuple[Constraint, ...]
    sweep: Any = None

    def only(self, chosen: Any) -> ConstrainedState:
        """Return a copy with some of the constraints, by a predicate or a mask."""
        if callable(chosen):
            kept = tuple(c for c in self.constraints if chosen(c))
        else:
            pairs = zip(self.constraints, chosen, strict=True)
            kept = tuple(c for c, keep in pairs if keep)
        return replace(self, constraints=kept)

    @cached_property
    def layout(self) -> ConstraintLayout:
        """Blocks of the problem and their rows."""
        return ConstraintLayout(tuple((c.kind, c.rows) for c in self.constraints))

    @property
    def first(self) -> list[int]:
        """First row of each block."""
        return [block.start for block in self.layout.blocks]

    @cached_property
    def J(self) -> np.ndarray:
        """Rows of all blocks, (m, nv)."""
        rows = [c.J for c in self.constraints]
        return np.concatenate([np.zeros((0, self.model.nv)), *rows])

    @cached_property
    def inverse(self) -> np.ndarray:
        """(H + B)^-1 through its Cholesky factor, (nv, nv).

        Raises:
            SingularError: It is not positive definite.
        """
        try:
            L = np.linalg.cholesky(self.H + self.B)
        except np.linalg.LinAlgError as error:
            raise SingularError("joint-space inertia H") from error
        half = np.linalg.solve(L, np.eye(len(L)))
        return half.T @ half

    @cached_property
    def G(self) -> np.ndarray:
        """Delassus matrix J H^-1 J.T, (m, m), symmetric.

        Source: LCP-3.
        """
        G = self.J @ self.inverse @ self.J.T
        return (G + G.T) / 2

    def free(self, tau: np.ndarray, h: float) -> np.ndarray:
        """Return the velocity after an unconstrained step, (nv,).

            qd + h ((H + B)^-1 (tau - C) + w x v)

        in the axes of the state; w x v only for floating bodies, see integration.py.
        """
        rate = self.inverse @ (tau - self.C) + turning(self.model, self.qd)
        return self.qd + h * rate

    def problem(
        self,
        free: np.ndarray,
        h: float,
        bias: Any = 0.0,
        compliance: Any = 0.0,
        matrix_free: bool = False,
    ) -> ConstraintProblem:
        """Return the problem of a step.

            sigma = G lambda + J free

        Args:
            free: Velocity without constraints, (nv,).
            h: Step: dry friction takes up to h times its force [s].
            bias, compliance: One number per row, (m,), or one for all; the velocities
                of prescribed rows are subtracted from the bias.
            matrix_free: Whether G is a function: one sweep over the bodies per call.

        Source: LCP-1, LCP-3, LCP-8.
        """
        blocks = list(zip(self.layout.blocks, self.constraints, strict=True))
        bounds = np.full((2, self.layout.m), [[-np.inf], [np.inf]])
        targets = np.zeros(self.layout.m)
        for block, c in blocks:
            bounds[:, block.start] = h * np.array(c.force_range)
            targets[block.start] = c.target_velocity
        G: Any = self.G
        if matrix_free:
            G = self._response
        return ConstraintProblem(
            self.layout,
            G,
            self.J @ free,
            [x for _, c in blocks for x in c.mu],
            bounds[0],
            bounds[1],
            compliance,
            np.asarray(bias, float) - targets,
            tuple(c.id for c in self.constraints),
            tuple(c.name for c in self.constraints),
            np.diag(self.G) if matrix_free else None,
        )

    def _response(self, impulse: np.ndarray) -> np.ndarray:
        """Return G lambda without G: by a sweep over the bodies if B is zero."""
        joint_force = self.J.T @ impulse
        if self.sweep is None or self.B.any():
            return self.J @ (self.inverse @ joint_force)
        zeros = np.zeros((self.model.nb, 6))
        return self.J @ self.sweep(self.q, joint_force, zeros)[0]

    def moved(self, free: np.ndarray, impulse: np.ndarray) -> np.ndarray:
        """Return the velocity after impulses, free + (H + B)^-1 J.T lambda, (nv,)."""
        return free + self.inverse @ (self.J.T @ impulse)

    def wrenches(self, impulse: np.ndarray) -> np.ndarray:
        """Return the contact impulses on each body, body coordinates, (nb, 6).

        Moment about the body's origin, then force [N·m·s; N·s].

        Source: LCP-15.
        """
        world = np.zeros((self.model.nb + 1, 6))
        for block, c in zip(self.layout.blocks, self.constraints, strict=True):
            if c.contact is not None and c.W is not None:
                force = c.W.T @ impulse[list(block.all)]
                world[c.contact.body_a] += force
                world[c.contact.body_b] -= force
        R, p = self.poses[:, :3, :3], self.poses[:, :3, 3]
        moment, force = world[1:, :3], world[1:, 3:]
        moment = moment - np.cross(p, force)
        return np.concatenate(
            [np.einsum("kji,kj->ki", R, moment), np.einsum("kji,kj->ki", R, force)],
            axis=1,
        )
