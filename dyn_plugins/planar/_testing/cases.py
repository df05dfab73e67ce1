"""Random chains, objects and tasks, and states for their solvers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.engines import Program
from dyn_core.planar import HalfPlane, PlanarObject, make_chain_like
from dyn_core.planar.objects.objects import OBJECTS
from dyn_core.planar.problems import CHAIN, OBJECT, TASK
from dyn_core.problems import Port
from dyn_core.problems.system import SystemKind
from dyn_core.tasks import TASKS
from dyn_core.testing.case import SystemCase
from dyn_plugins.planar._testing.chains import fitting_velocities, random_chain

LIMIT = 2.0  # of the angles of random chains [rad]


def sample_chain(seed: int, size: int, **restriction: Any) -> Any:
    """Return a random ChainModel with `size` links, far above its ground.

    Its angles have limits of ±2 rad (LIMIT), except angle 0. `restriction` goes to
    random_chain; by default links have mass by a probability of 0.3.

    Source: WAW-1.1.
    """
    wanted = {"n": size + 1, "massive": 0.3, **restriction}
    chain = random_chain(seed, **wanted).chain
    inner = range(1, chain.n - 1)
    return make_chain_like(
        chain,
        lower=dict.fromkeys(inner, -LIMIT),
        upper=dict.fromkeys(inner, LIMIT),
        ground=[HalfPlane((0.0, -50.0))],
    )


def sample_object(seed: int, size: int) -> PlanarObject:
    """Return one of the shipped objects, selected by the seed; size is ignored."""
    return list(OBJECTS.values())[seed % len(OBJECTS)]


def sample_task(seed: int, size: int) -> Any:
    """Return one of the shipped tasks, selected by the seed; size is ignored."""
    return list(TASKS.values())[seed % len(TASKS)]


@dataclass
class ChainTrial(SystemCase):
    """One solver on one chain and engine, in a state that satisfies its constraints.

    x, v, F: Of the joints, (n, 2); tau: torques, n; the last is zero.
    """

    x: np.ndarray = field(init=False)
    v: np.ndarray = field(init=False)
    F: np.ndarray = field(init=False)
    tau: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.x, self.v = self._state()
        self.F = self.rng.normal(size=self.x.shape)
        self.tau = np.append(self.rng.normal(size=self.model.n - 1), 0.0)

    def _state(self) -> tuple[np.ndarray, np.ndarray]:
        """Draw x and v, (n, 2), v fitting links and lines; joint 0 is at random.

        Each angle, of a link from the previous one, is within 1.8 rad of zero.
        """
        chain = self.model
        turn = np.cumsum(self.rng.uniform(-0.9 * LIMIT, 0.9 * LIMIT, chain.n - 1))
        steps = np.column_stack([np.cos(turn), np.sin(turn)])
        steps = steps * np.array(chain.lengths)[:, None]
        x = np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])
        x = x + self.rng.normal(size=2)
        return x, fitting_velocities(chain, x, self.rng.normal(size=x.shape))

    def _argument(self, port: Port) -> np.ndarray:
        if port.name in ("x", "v"):
            if port.name == "x":
                self.x, self.v = self._state()
            return self.x if port.name == "x" else self.v
        if port.name == "tau":
            return np.append(self.rng.normal(size=self.model.n - 1), 0.0)
        if port.name == "contact":
            return self.rng.integers(0, 2, port.shape).astype(float)
        if port.name == "limit":
            return self.rng.integers(-1, 2, port.shape).astype(float)
        return super()._argument(port)


@dataclass
class ObjectTrial(SystemCase):
    """One solver on one planar object and engine, in one random state; efforts u."""

    q: np.ndarray = field(init=False)
    qd: np.ndarray = field(init=False)
    u: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.q, self.qd = self.rng.normal(size=(2, self.model.nq))
        self.u = self.rng.normal(size=self.model.nu)


@dataclass
class TaskTrial(SystemCase):
    """One solver on one task and engine, from a random initial state."""

    def arguments(self, program: Program) -> list[np.ndarray]:
        """Return a random initial state (ns,) and an action (na,) within its bounds."""
        state = self.model.start(self.rng, 1)[0]
        bounds = self.model.action_bounds
        low, high = (np.array(b, float) for b in zip(*bounds, strict=True))
        return [state, self.rng.uniform(low, high)]


SYSTEMS = (
    SystemKind(
        CHAIN,
        ChainTrial,
        sample_chain,
        (
            {},
            {"massive": 0.0},
            {"massive": 0.0, "active": 0.0},
            {"massive": 0.0, "kinds": ("free", "guided")},
        ),
    ),
    SystemKind(OBJECT, ObjectTrial, sample_object),
    SystemKind(TASK, TaskTrial, sample_task),
)
