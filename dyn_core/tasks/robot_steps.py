"""Time steps of many rows of a robot, behind one small interface.

    q_next, qd_next, impulses_next = step(q, qd, impulses, tau, values)

Rows whose motion has no finite result come back as NaN; the others are not touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from dyn_core.contact.collision.halfspaces import HalfSpace, candidate_points
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.world import World
from dyn_core.errors import DynError, UnsupportedError
from dyn_core.model import Model, load_urdf
from dyn_core.solving.registry import solver
from dyn_core.spatial import Vector


class RowStep(Protocol):
    """One kind of time step.

    Class attributes:
        takes_values: Whether parameters may differ by row.
    """

    takes_values: ClassVar[bool]

    def __init__(
        self,
        model: Model,
        world: Any,
        dt: float,
        rows: int,
        paths: Sequence[str],
        choices: Mapping[str, Any],
    ) -> None:
        """Build and compile.

        Args:
            model: Robot.
            world: See RobotTask.
            dt: Step [s].
            rows: How many rows a step has.
            paths: Parameter paths whose values differ by row.
            choices: Engine and threads of the Programs, and options of the step.
        """

    @staticmethod
    def impulses(model: Model, world: Any) -> int:
        """Return how many impulses of the step before start the next one."""

    def begin(self) -> None:
        """Forget what is no part of the state, before the substeps of a task's step."""

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        impulses: np.ndarray,
        tau: np.ndarray,
        values: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the state after dt, and the impulses."""


class FreeStep:
    """A robot without contacts: semi_implicit_euler, damping at the end of the step."""

    takes_values: ClassVar[bool] = True

    def __init__(
        self,
        model: Model,
        world: Any,
        dt: float,
        rows: int,
        paths: Sequence[str],
        choices: Mapping[str, Any],
    ) -> None:
        if world is not None:
            raise UnsupportedError("stepping free has no world; valid: floor, bodies")
        self.dt = dt
        name = "semi_implicit_euler"
        self._program = solver(name).build(model, inputs=list(paths), **choices)
        self._program.prepare(batch=True)

    @staticmethod
    def impulses(model: Model, world: Any) -> int:
        """Return 0: nothing touches."""
        return 0

    def begin(self) -> None:
        """Keep nothing."""

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        impulses: np.ndarray,
        tau: np.ndarray,
        values: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the state after dt, and no impulses."""
        outputs, _ = self._program(q, qd, tau, self.dt, *values, status=True)
        return outputs[0], outputs[1], impulses


class FloorStep:
    """A robot whose shapes touch half-spaces: contact_euler, one kernel."""

    takes_values: ClassVar[bool] = True

    def __init__(
        self,
        model: Model,
        world: Any,
        dt: float,
        rows: int,
        paths: Sequence[str],
        choices: Mapping[str, Any],
    ) -> None:
        self.dt = dt
        self._program = solver("contact_euler").build(
            model, inputs=list(paths), world=_half_spaces(world), **choices
        )
        self._program.prepare(batch=True)

    @staticmethod
    def impulses(model: Model, world: Any) -> int:
        """Return three for each point that can touch a half-space."""
        return 3 * sum(
            len(candidate_points(placed, Vector(half.normal)))
            for half in _half_spaces(world)
            for placed in model.shapes
            if placed.body
        )

    def begin(self) -> None:
        """Keep nothing: the impulses are part of the state."""

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        impulses: np.ndarray,
        tau: np.ndarray,
        values: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the state after dt, and the impulses of its contacts."""
        outputs, _ = self._program(q, qd, tau, self.dt, impulses, *values, status=True)
        return outputs[0], outputs[1], outputs[2]


def _half_spaces(world: Any) -> tuple[HalfSpace, ...]:
    """Return the half-spaces of a world; None: a floor."""
    return (HalfSpace(),) if world is None else tuple(world)


class BodiesStep:
    """A robot and bodies whose shapes touch one another: the general contact step.

    The impulses that start a solver are kept within a step of the task only, so that
    what follows depends on the state alone.
    """

    takes_values: ClassVar[bool] = False

    def __init__(
        self,
        model: Model,
        world: Any,
        dt: float,
        rows: int,
        paths: Sequence[str],
        choices: Mapping[str, Any],
    ) -> None:
        contact_model = ContactModel(model, world, engine=choices.get("engine"))
        self._steps = StepByRow(contact_model, dt, rows, choices.get("threads"))
        self._rows = rows

    @staticmethod
    def impulses(model: Model, world: Any) -> int:
        """Return 0: they are no part of the state."""
        return 0

    def begin(self) -> None:
        """Forget the impulses of all rows."""
        self._steps.reset(np.arange(self._rows))

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        impulses: np.ndarray,
        tau: np.ndarray,
        values: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the state after dt, and no impulses."""
        q_next, qd_next, outcome = self._steps.step(q, qd, tau)
        q_next[outcome.failed] = np.nan
        return q_next, qd_next, impulses


class RowOutcome(NamedTuple):
    """What is known of the steps of some rows.

    Attributes:
        failed: Whether a row has no finite step, (n,).
    """

    failed: np.ndarray


class StepByRow:
    """Steps of rows of a robot in a World, one row after the other.

    Args:
        contact_model: Robot and world.
        h: Step [s].
        rows: How many.
        threads: One is used.
    """

    def __init__(
        self,
        contact_model: ContactModel,
        h: float,
        rows: int,
        threads: int | None = None,
    ) -> None:
        self._steps = [ArrayStep(contact_model, h) for _ in range(rows)]
        compile_corrections(contact_model.world)

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        tau: np.ndarray,
        f_ext: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, RowOutcome]:
        """Return the states after a step, and where there is one.

        Args:
            q, qd, tau: (rows, nq), (rows, nv), (rows, nv).
            f_ext: Forces on bodies in their axes, (rows, nb, 6); None: none.

        Returns:
            q and qd after the step, those of failed rows as they were, and the outcome.
        """
        q_next, qd_next, failed = q.copy(), qd.copy(), np.zeros(len(q), bool)
        for k, one in enumerate(self._steps):
            force = None if f_ext is None else f_ext[k]
            try:
                q_next[k], qd_next[k], _ = one.step(0.0, q[k], qd[k], tau[k], force)
            except DynError:  # a row that is not finite or has no solution ends alone
                failed[k] = True
                one.forget()
        return q_next, qd_next, RowOutcome(failed)

    def reset(self, rows: np.ndarray) -> None:
        """Forget the impulses of some rows."""
        for k in rows:
            self._steps[k].forget()


BALL = """<robot name="ball"><link name="ball"><inertial><mass value="1"/>
<inertia ixx="0.004" iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="0.1"/></geometry></collision></link></robot>"""


def compile_corrections(world: World) -> None:
    """Let a ball start in the floor, so that what corrects overlaps is compiled.

    Its machine code is that of every robot, and is made when an overlap is first met.
    """
    floor = replace(world, half_spaces=(HalfSpace(),), height_fields=(), gears=())
    model = load_urdf(BALL, root_joint="floating")
    step = ArrayStep(ContactModel(model, replace(floor, groups={})), 1e-3)
    q = model.neutral()
    q[2] = 0.09
    step.step(0.0, q, np.zeros(6), np.zeros(6))


STEPS: dict[str, type[RowStep]] = {
    "free": FreeStep,
    "floor": FloorStep,
    "bodies": BodiesStep,
}
