"""Time steps of many rows of a robot, behind one small interface.

    q_next, qd_next, impulses_next = step(q, qd, impulses, tau, values)

Rows whose step has no finite result come back as NaN; other rows are not affected.
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
            world: See RobotTask; None: no world, or the default of the step.
            dt: Step [s].
            rows: Number of rows of a step.
            paths: Parameter paths whose numbers differ by row.
            choices: `engine` and `threads` of the Programs, and options of the step.

        Raises:
            UnsupportedError: The step does not support this world.
        """

    @staticmethod
    def impulses(model: Model, world: Any) -> int:
        """Return how many impulses each row passes from one step to the next."""

    def begin(self) -> None:
        """Reset data outside the state, before the substeps of a task's step."""

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        impulses: np.ndarray,
        tau: np.ndarray,
        values: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q and qd after dt, and the impulses of the step.

        A row whose step fails has NaN in q; no error is raised.

        Args:
            q, qd: State, (rows, nq) and (rows, nv).
            impulses: Result of the previous step, (rows, impulses).
            tau: Joint forces, (rows, nv) [N·m | N].
            values: Numbers of each parameter path, (rows, size).
        """


class FreeStep:
    """A robot without contacts: semi_implicit_euler, with implicit damping.

    A world raises UnsupportedError.
    """

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
        """Return 0: there are no contacts."""
        return 0

    def begin(self) -> None:
        """Do nothing: there is no data outside the state."""

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        impulses: np.ndarray,
        tau: np.ndarray,
        values: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q and qd after dt, and `impulses` unchanged; see RowStep.step.

        A row whose step fails comes back as NaN; no error is raised.
        """
        numbers = _fitting(self._program, values)
        outputs, _ = self._program(q, qd, tau, self.dt, *numbers, status=True)
        return outputs[0], outputs[1], impulses


def _fitting(program: Any, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the values as the last inputs of a Program.

    Args:
        program: Program whose last inputs are the values.
        values: Arrays (rows, size), in the order of these inputs.

    Returns:
        The same arrays; (rows,) where the input is a scalar.
    """
    ports = program.inputs[len(program.inputs) - len(values) :]
    return [x if port.shape else x[:, 0] for x, port in zip(values, ports, strict=True)]


class FloorStep:
    """A robot whose shapes touch half-spaces: solver contact_euler, one kernel.

    world: Half-spaces; None: a floor at the origin of the world.
    """

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
        """Return the number of contact impulses of a state.

        It is three for each pair of a half-space and a point that can touch it. The
        points are candidate points of the shapes of moving bodies.

        Args:
            model: Robot.
            world: Half-spaces; None: one floor.

        Raises:
            UnsupportedError: A shape is no sphere, capsule, box or cylinder.
        """
        return 3 * sum(
            len(candidate_points(placed, Vector(half.normal)))
            for half in _half_spaces(world)
            for placed in model.shapes
            if placed.body
        )

    def begin(self) -> None:
        """Do nothing: the impulses are in the state."""

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        impulses: np.ndarray,
        tau: np.ndarray,
        values: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q and qd after dt, and the contact impulses; see RowStep.step.

        A row whose step fails comes back as NaN; no error is raised.
        """
        numbers = _fitting(self._program, values)
        outputs, _ = self._program(q, qd, tau, self.dt, impulses, *numbers, status=True)
        return outputs[0], outputs[1], outputs[2]


def _half_spaces(world: Any) -> tuple[HalfSpace, ...]:
    """Return the half-spaces of a world; None: a floor."""
    return (HalfSpace(),) if world is None else tuple(world)


class BodiesStep:
    """A robot and bodies whose shapes touch one another: the general contact step.

    The initial impulses of its solver are cached within a step of the task only, so
    that the result depends on the state alone. `paths` are ignored.
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
        """Return 0: they are not part of the state."""
        return 0

    def begin(self) -> None:
        """Reset the cached impulses of all rows."""
        self._steps.reset(np.arange(self._rows))

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        impulses: np.ndarray,
        tau: np.ndarray,
        values: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q and qd after dt, and `impulses` unchanged; see RowStep.step.

        A row whose solver fails has NaN in q; no error is raised. `values` are ignored.
        """
        q_next, qd_next, outcome = self._steps.step(q, qd, tau)
        q_next[outcome.failed] = np.nan
        return q_next, qd_next, impulses


STEPS: dict[str, type[RowStep]] = {
    "free": FreeStep,
    "floor": FloorStep,
    "bodies": BodiesStep,
}
