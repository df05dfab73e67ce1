"""The constraint problem of a robot in its world: contacts, limits, loops, friction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.contact.collision.detection.detection_arrays import Pairs, Shapes
from dyn_core.contact.collision.pairs import ContactPairs
from dyn_core.contact.collision.shape_tables import ShapeTable, pair_table
from dyn_core.contact.problem.softness import erp_and_cfm
from dyn_core.contact.rows.constraints import Constraint, JointConstraints
from dyn_core.contact.world import World
from dyn_core.engines.base import Program
from dyn_core.errors import UnsupportedError
from dyn_core.model import Model
from dyn_core.model.passive_forces import (
    friction_force,
    friction_slopes,
    with_equal_directions,
    without_dry_friction,
)
from dyn_core.model.payload import PayloadInput
from dyn_core.sharing import cached_property
from dyn_core.solving.registry import solver
from dyn_core.solving.solver import Solver
from dyn_core.spatial import Vector


class ContactModel:
    """The constraints and the equation of motion of a robot in its world.

    Kinematics, inertia and bias force are Programs, compiled on first use, which may
    raise the errors of a build; steps do not need them (array_step.py). Joint damping
    is part of the free motion, evaluated at the end of the step. Dry friction is a
    constraint block or, with `friction` off, a smooth function of the speed in the free
    motion.

    Attributes:
        model: Robot.
        world: World with its surfaces and settings.
        smooth_model: Robot of the free motion: without dry friction if that is a
            constraint.
        dry: Whether dry friction is a constraint.
        engine: Engine of the Programs; None: the default.
        carried: Payload that may change.
        pairs: Tested pairs of shapes; None if contacts are off.
        joints: Constraints in the joints.

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
        """Choose the pairs of shapes, and the friction of the free motion.

        Args:
            model: Robot.
            world: A World, or the argument of World.of, such as a mapping; None: a
                floor at z = 0.
            joint_friction: Whether damping and dry friction act in the joints.
            joint_springs: Whether springs act.
            engine: Engine of the Programs; None: the default.
            carried: A payload that may change; None: none.

        Raises:
            UnsupportedError: A joint of the robot is driven, or a mesh needs an extra.
            SignatureError: The solver of the world solves another kind of problem.
            ModelError: The world, a gear, a mesh or a name of a group is invalid. Other
                errors of World pass through.
        """
        if model.driven:
            raise UnsupportedError(
                f"contacts: the place of {', '.join(model.driven)} is driven, and the"
                " speeds of contacts would lack that motion; valid: a Simulator without"
                " world, or the joint as a prescribed one"
            )
        self.model, self.world = model, World.of(world)
        self.dry = joint_friction and self.world.joint_friction
        if self.dry:
            model = without_dry_friction(model)
        self.smooth_model, self.engine = model, engine
        self._slipping = model if joint_friction else model.without_friction()
        self._smooth = any(x for part in self._slipping.friction for x in part)
        self._acts = {"joint_friction": joint_friction, "joint_springs": joint_springs}
        self.carried = carried or PayloadInput()
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
        self._damping = self._slopes_at(np.zeros(model.nv))

    @cached_property
    def kinematics(self) -> Program[Any]:
        """Program of BODY_JACOBIANS, of q, compiled on first use.

        It returns the pose of each body in the world, (nb, 4, 4), and the Jacobian of
        its velocity, (nb, 6, nv), [angular; linear], world axes and origin.
        """
        return self._made(solver("body_jacobians"), self.smooth_model)

    @cached_property
    def inertia(self) -> Program[Any]:
        """Program of H, of q and, with a payload link, of its ten parameters, (10,).

        H is the joint-space inertia, (nv, nv). It is compiled on first use.
        """
        return self._made(solver("crba"), self.smooth_model, self.carried.paths)

    @cached_property
    def _bias(self) -> Program[Any]:
        """Program of the bias force of the free motion, compiled on first use.

        Inputs: q, qd, the forces on bodies, (nb, 6), and with a payload link its ten
        parameters, (10,).
        """
        program = self.build("bias", "f_ext")
        program.prepare()
        return program

    @cached_property
    def _loops(self) -> Program[Any] | None:
        """Program of the loops' constraints, compiled on first use; None without loops.

        Of q and qd it returns residuals of m rows, Jacobian A (m, nv), bias dA/dt qd.
        """
        model = self.smooth_model
        return self._made(solver("loop_constraints"), model) if model.loops else None

    def _made(self, of: Solver, model: Model, inputs: Sequence[str] = ()) -> Any:
        """Return a compiled Program; `inputs` follow those required, paths in order."""
        program = of.build(model, engine=self.engine, inputs=list(inputs))
        program.prepare()
        return program

    def prepare(self) -> None:
        """Compile the Programs of event-driven steps now instead of on first use.

        They are kinematics, inertia, bias force and, if there are any, loops. Errors of
        their builds, such as UnsupportedError, pass through.
        """
        _ = self.kinematics, self.inertia, self._bias, self._loops

    def build(self, name: str, *inputs: str, **options: Any) -> Program[Any]:
        """Return a Program of the robot's free motion between contacts.

        Joint friction and springs act as chosen. Dry friction that is a constraint does
        not act; neither do loops, for solvers of trees.

        Args:
            name: Name of a solver that passes friction and springs on.
            inputs: Names of further inputs, before the inputs of the payload.
            options: Options of the solver.

        Raises:
            SolverNotFound: No solver has this name. Errors of the solver's `build` pass
                through, such as UnsupportedError.
        """
        chosen, model = solver(name), self.smooth_model
        if model.loops and chosen.signature.of_trees:
            model = model.without_loops()
        return chosen.build(
            model,
            engine=self.engine,
            inputs=[*inputs, *self.carried.paths],
            **self._acts,
            **options,
        )

    @property
    def shapes_and_pairs(self) -> tuple[Shapes, Pairs]:
        """Tables of the shapes and of the tested pairs; empty if contacts are off."""
        if self.pairs is None:
            return ShapeTable().shapes(), pair_table({})
        return self.pairs.shape_table, self.pairs.pair_table

    def dense_constraints(self, q: np.ndarray, qd: np.ndarray) -> list[Constraint]:
        """Return the limits of ball joints, then loops and couplings, at a state.

        All ball limits are returned, closed or not, so that their number does not
        depend on the state; none if limits are off in the world. With limits on, it
        raises SingularError where the swing of a ball joint is pi.

        Args:
            q, qd: State, (nq,), (nv,).
        """
        balls = self.joints.ball_limits(q) if self.world.limits else []
        e = self.world.limit_restitution
        balls = [replace(c, restitution=e) for c in balls] if e else balls
        return balls + ([] if self._loops is None else self._loop_constraints(q, qd))

    def _loop_constraints(self, q: np.ndarray, qd: np.ndarray) -> list[Constraint]:
        """Return a Constraint of each of model.loops: Jacobian and position error."""
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

    def friction(self, qd: np.ndarray) -> np.ndarray:
        """Return the joint friction of the free motion at a velocity, (nv,) [N·m | N].

        It is the damping and, unless it is a constraint, the dry friction. It has the
        sign of the velocity: H qdd = tau - friction - ... Zeros if joint friction is
        off.

        Args:
            qd: Velocity, (nv,) [rad/s | m/s].
        """
        return np.array(list(friction_force(self._slipping, Vector(qd.tolist()))))

    def slopes(self, qd: np.ndarray) -> np.ndarray:
        """Return the derivative of `friction` by the velocity, (nv, nv), at qd, (nv,).

        friction_asymmetry and stribeck are left out, so that no slope is negative.
        Without smooth dry friction it is constant, and always the same array.
        """
        return self._slopes_at(qd) if self._smooth else self._damping

    def bias(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        f_ext: np.ndarray | None = None,
        carried: tuple[np.ndarray, ...] = (),
    ) -> np.ndarray:
        """Return the bias force C of the free motion, H qdd = tau - C, (nv,) [N·m | N].

        With damping, springs, a payload, and dry friction unless it is a constraint.

        Args:
            q, qd: State, (nq,), (nv,).
            f_ext: Force on each body, body coordinates, (nb, 6) [N·m; N]; None: zeros.
            carried: PayloadInput.values: the payload's ten parameters, (10,); empty
                without a payload link.

        Raises:
            ShapeError: An array has another shape. Other errors of the Program pass
                through.
        """
        applied = np.zeros((self.model.nb, 6)) if f_ext is None else f_ext
        return np.asarray(self._bias(q, qd, applied, *carried))

    def _slopes_at(self, qd: np.ndarray) -> np.ndarray:
        """Return the derivative of `friction` by the velocity, a new array (nv, nv).

        friction_asymmetry and stribeck are left out: no slope is negative. All are zero
        if joint friction is off. It depends on the velocity only if dry friction is a
        smooth function of the speed.
        """
        robot = with_equal_directions(self._slipping)  # slopes >= 0
        slopes = friction_slopes(robot, Vector(qd.tolist()))
        return np.asarray(slopes, float).reshape(len(qd), len(qd))


def error_terms(world: World, h: float) -> tuple[float, float]:
    """Return ERP and compliance [(m/s)/(N·s)] of a world's stabilisation for a step h.

    ERP is the fraction of position errors corrected through velocities: world.erp for
    baumgarte, for erp_cfm that of the spring with its damper, else 0. Compliance is 0
    except for erp_cfm, which needs h > 0, stiffness and damping >= 0, one of them > 0.
    """
    if world.stabilisation == "erp_cfm":
        return erp_and_cfm(h, world.stiffness, world.damping)
    return (world.erp if world.stabilisation == "baumgarte" else 0.0), 0.0
