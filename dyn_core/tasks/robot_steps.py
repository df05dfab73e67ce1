"""Time steps of many rows of a robot, behind one small interface.

    q_next, qd_next, impulses_next = step(q, qd, impulses, tau, values)

Rows whose motion has no finite result come back as NaN; the others are not touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from dyn_core.contact.collision.halfspaces import HalfSpace, candidate_points
from dyn_core.contact.stepping.array_batch import BatchStep
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.errors import UnsupportedError
from dyn_core.model import Model
from dyn_core.solving.registry import solver
from dyn_core.spatial import Vector

RESISTING = {"joint_friction": True, "joint_springs": True}  # as in simulations


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
        self._program = solver(name).build(
            model, inputs=list(paths), **RESISTING, **choices
        )
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
        numbers = _fitting(self._program, values)
        outputs, _ = self._program(q, qd, tau, self.dt, *numbers, status=True)
        return outputs[0], outputs[1], impulses


def _fitting(program: Any, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the values as the last inputs of a Program; numbers have no axis there."""
    ports = program.inputs[len(program.inputs) - len(values) :]
    return [x if port.shape else x[:, 0] for x, port in zip(values, ports, strict=True)]


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
            model,
            inputs=list(paths),
            world=_half_spaces(world),
            **RESISTING,
            **choices,
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
        numbers = _fitting(self._program, values)
        outputs, _ = self._program(q, qd, tau, self.dt, impulses, *numbers, status=True)
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
        self._steps = BatchStep(contact_model, dt, rows, choices.get("threads"))
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


STEPS: dict[str, type[RowStep]] = {
    "free": FreeStep,
    "floor": FloorStep,
    "bodies": BodiesStep,
}
