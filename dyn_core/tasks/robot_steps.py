"""Time steps of many rows of a robot, behind one small interface.

    q_next, qd_next, impulses_next = step(q, qd, impulses, tau, values)

q is (rows, nq), qd (rows, nv), impulses (rows, impulses) [N·s], tau (rows, nv)
[N·m | N]; values has the numbers of each parameter path, (rows, size). Another number
of columns is a ShapeError. Rows whose step has no finite result come back with NaN or
infinity in q; other rows are not affected.
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
    """Time step of many rows; takes_values: whether parameters may differ by row."""

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
        """Build and compile the step.

        Args:
            model: Robot.
            world: For FloorStep a sequence of HalfSpace, for BodiesStep a World or a
                mapping of its fields; None: none for FreeStep, else a floor.
            dt: Step [s].
            rows: Number of rows of a step.
            paths: Parameter paths whose numbers differ by row.
            choices: `engine` and `threads` of the Programs, and options of the step.

        Raises:
            UnsupportedError: The step does not support this world or an option.
            ModelError: The world of BodiesStep is not valid.
        """

    @staticmethod
    def impulses(model: Model, world: Any) -> int:
        """Return how many contact impulses a row passes from one step to the next."""

    def begin(self) -> None:
        """Reset cached data outside the state; to be called before the substeps."""

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        impulses: np.ndarray,
        tau: np.ndarray,
        values: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q and qd after dt, and the impulses to pass to the next step.

        A row whose step fails has NaN or infinity in q; no error is raised. `impulses`
        (rows, impulses) are of the previous step, zeros at the start [N·s]; `values`
        has for each parameter path the numbers of each row, (rows, size).
        """


class FreeStep:
    """Step without contacts, with joint friction and springs: semi_implicit_euler."""

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
        """Return q and qd after dt under tau, and the array `impulses` itself."""
        numbers = _fitting(self._program, values)
        outputs, _ = self._program(q, qd, tau, self.dt, *numbers, status=True)
        return outputs[0], outputs[1], impulses


def _fitting(program: Any, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return `values` (rows, size) in the shapes of the last inputs of a Program.

    They are the arrays themselves; where the input is a scalar, a view of column 0.
    """
    ports = program.inputs[len(program.inputs) - len(values) :]
    return [x if port.shape else x[:, 0] for x, port in zip(values, ports, strict=True)]


class FloorStep:
    """Step of a robot whose shapes touch half-spaces: solver contact_euler, one kernel.

    `world` None: a floor z = 0. The impulses start the next step's contact solver.
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

        It is three for each pair of a half-space and a point at which a shape of a
        moving body can touch it.
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
        """Return q and qd after dt under tau, and the contact impulses of the step."""
        numbers = _fitting(self._program, values)
        outputs, _ = self._program(q, qd, tau, self.dt, impulses, *numbers, status=True)
        return outputs[0], outputs[1], outputs[2]


def _half_spaces(world: Any) -> tuple[HalfSpace, ...]:
    """Return a sequence of half-spaces as a tuple; for None one floor, HalfSpace()."""
    return (HalfSpace(),) if world is None else tuple(world)


class BodiesStep:
    """Step of a robot and bodies whose shapes touch one another: BatchStep.

    The solver starts from impulses of the previous substep; `begin` discards them, so
    that a step of the task depends on the state alone. `paths`, `values` and all
    `choices` but `engine` and `threads` are ignored.
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
        """Return 0: contact impulses are cached in the step, not in the state."""
        return 0

    def begin(self) -> None:
        """Discard the cached impulses of all rows."""
        self._steps.reset(np.arange(self._rows))

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        impulses: np.ndarray,
        tau: np.ndarray,
        values: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q and qd after dt, and `impulses` itself; `values` are ignored."""
        q_next, qd_next, outcome = self._steps.step(q, qd, tau)
        q_next[outcome.failed] = np.nan
        return q_next, qd_next, impulses


STEPS: dict[str, type[RowStep]] = {
    "free": FreeStep,
    "floor": FloorStep,
    "bodies": BodiesStep,
}
