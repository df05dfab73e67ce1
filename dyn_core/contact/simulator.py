"""A simulated robot with contacts: any shapes, any solver, any stepper."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.commanded import Commanded
from dyn_core.contact.assembly import Assembly
from dyn_core.contact.events import STEPPERS
from dyn_core.contact.holding import Holder
from dyn_core.contact.moving import turning
from dyn_core.contact.reports import StepReport
from dyn_core.contact.steppers import Push, Step
from dyn_core.contact.world import World
from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.model import Model
from dyn_core.registry import solver


@dataclass
class ContactSimulator(Commanded):
    """A robot in a World: takes joint forces, moves by a stepper with contacts.

    A problem that was not solved to its tolerance is counted and stands in the report;
    one without a solution, or a result that is not finite, stops with the last good
    state kept.

    Attributes:
        model: Robot with shapes.
        world: A World, or a mapping of its fields; None: a floor.
        period: Time that `advance` covers [s].
        substeps: Steps in a period.
        command_timeout: Age at which a command counts as stale: then zero [s].
        q0, qd0: Start; None for neutral within the limits, at rest.
        prescribed: Joints that follow given accelerations, see `accelerate`.
        joint_friction, joint_springs: Whether they act.
        engine: Engine of the Programs.
        counters: What was refused, late or not converged, by name.
        f_ext: Force on each body, body coordinates, (nb, 6) [N·m; N]; None: none.
        reports: Of the last period, a StepReport for each step and impact.

    Source: LCP-4, LCP-15, LCP-19, LCP-20.
    """

    model: Model
    world: Any = None
    period: float = 0.002
    substeps: int = 1
    command_timeout: float = 0.1
    q0: Any = None
    qd0: Any = None
    prescribed: tuple[str, ...] = ()
    joint_friction: bool = True
    joint_springs: bool = True
    engine: str | None = None
    counters: Counter = field(default_factory=Counter)
    f_ext: np.ndarray | None = None

    def __post_init__(self) -> None:
        self._check_settings()
        self.world: World = World.of(self.world)
        self.assembly = Assembly(
            self.model,
            self.world,
            self.joint_friction,
            self.joint_springs,
            self.engine,
        )
        self.program = self.assembly.kinematics
        self._reactions: dict[Any, Any] = {}
        self._prepare()

    def reset(self) -> None:
        """Go back to the start; commands and impulses are forgotten."""
        super().reset()
        self.holder = Holder(self.world)
        self.reports: tuple[StepReport, ...] = ()
        self.last: tuple[Step, float] | None = None

    @property
    def report(self) -> StepReport | None:
        """The last report of the last period."""
        return self.reports[-1] if self.reports else None

    def advance(self, t: float) -> None:
        """Move by one period from the time t.

        Raises:
            DynError: The step failed; the last good state is kept and it pauses.
        """
        if not self.paused:
            self._told: list[StepReport] = []
        self.holder.counters = self.counters
        super().advance(t)
        if not self.paused:
            self.reports = tuple(self._told)

    def _move(
        self, t: float, q: np.ndarray, qd: np.ndarray, dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Give the state one step later."""
        push = Push(self.tau, self._pushed(), self._accelerations())
        stepper = STEPPERS[self.world.stepper]
        step = stepper(self.assembly, self.holder, t, q, qd, push, dt)
        self._told += step.reports
        self.last = step, dt
        if self.prescribed:
            self.taken = self.tau + self._held_forces(step, dt)
        return step.q, step.qd

    def _pushed(self) -> np.ndarray | None:
        """Give the forces on bodies, checked."""
        if self.f_ext is None:
            return None
        given, shape = np.asarray(self.f_ext, float), (self.model.nb, 6)
        if given.shape != shape:
            raise ShapeError("f_ext", f"shape {shape}", f"shape {given.shape}")
        return given

    def _accelerations(self) -> dict[str, np.ndarray]:
        """Give the accelerations of prescribed joints by name."""
        found, at = {}, 0
        for name in self.prescribed:
            n = self.model.v_slice(name)
            width = n.stop - n.start
            found[name], at = self.qdd_u[at : at + width], at + width
        return found

    def _held_forces(self, step: Step, h: float) -> np.ndarray:
        """Give the joint forces that prescribed motion takes, (nv,)."""
        scene, x = step.held.scene, step.held.impulse / h
        force = np.zeros(self.model.nv)
        for block, c in zip(scene.layout.blocks, scene.constraints, strict=True):
            if c.role == "prescribed":
                force += c.J.T @ x[list(block.all)]
        return force

    def reactions(self, **options: Any) -> np.ndarray:
        """Give the force through each joint in the last step, (nb, 6) [N·m; N].

            f_i = f_net_i - f_ext_i - contacts_i + sum of the children's

        with the mean acceleration of the step and its contact forces.

        Args:
            options: Of the solver joint_reactions: at (body, socket, link, world),
                part (whole, active, constraint).

        Raises:
            UnsupportedError: The robot has loops, or no step has been made.

        Source: LCP-15.
        """
        if self.last is None:
            raise UnsupportedError("reactions: no step has been made; call advance")
        if self.model.loops:
            names = ", ".join(loop.name for loop in self.model.loops)
            raise UnsupportedError(f"reactions: the robot has loops ({names})")
        step, h = self.last
        key = tuple(sorted(options.items()))
        if key not in self._reactions:
            self._reactions[key] = solver("joint_reactions").build(
                self.model, inputs=["f_ext"], engine=self.engine, **options
            )
        program = self._reactions[key]
        scene = step.held.scene
        f_ext = scene.wrenches(step.held.impulse) / h
        push = self._pushed()
        if push is not None:
            f_ext = f_ext + push
        rate = (step.held.velocity - scene.qd) / h - turning(self.model, scene.qd)
        return np.asarray(program(scene.q, scene.qd, rate, f_ext)[0])
