"""Tasks for planar chains with motors; the state includes contact and limit flags.

Methods that take a state take one alone, without a batch axis; its entries may be
symbols, except in `points`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.numbers.scalar import maximum, minimum
from dyn_core.planar.chain.chain import GUIDED, ChainModel
from dyn_core.planar.chain.states import from_angles
from dyn_core.planar.objects.objects import Bounds
from dyn_core.spatial import Matrix, Vector
from dyn_core.tasks.task import OPEN, UNIT, Task
from dyn_core.validation import Quantity, Whole, finite_array, known_keywords, refuse

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py


@known_keywords
@dataclass(frozen=True, eq=False)
class ChainTask(Task):
    """A task of a planar chain with motors: raise the tip.

        state = (x, v, contact, limit): 2n, 2n, n, n numbers

    n is the number of joints; x [m] and v [m/s] are positions and velocities of the
    joints; contact and limit are the flags that the step of fixed cost carries from
    step to step.

    The observation has for each link its direction (cos, sin) and angular velocity
    [rad/s], then position (2) [m] and velocity (2) [m/s] of joint 0 unless that is
    guided. The reward of a step, of the state after it, is

        height of the last joint above joint 0 / sum of lengths - effort_cost cost(a)

    with cost(a) = sum (torque / bound)². No state ends an episode. All numbers are this
    project's own.

    Attributes:
        system: Chain.
        motors: Indices of the joints with a motor, 0..n-2; entry k of the action is the
            torque of motors[k] [N·m].
        theta: Mean of the joint angles at the start of an episode, n-1 [rad]: of link 0
            from the x axis, of each other link from the previous one.
        theta_spread, rate_spread: Half-widths of the uniform distributions of joint
            angles [rad] and their rates [rad/s] at the start.
        effort_cost: Weight of the efforts in the reward.
        rounds, window: Options of the solver chain_fixed_step.

    Raises:
        ModelError: An attribute is invalid as in Task, `system` is no ChainModel,
            `theta` has not n-1 finite numbers, `motors` are not na different joints of
            0..n-2, or `rounds` or `window` is out of range, or a spread or
            `effort_cost` is negative.
        SettingError: The constructor got an unknown keyword.

    Source: WAW-15.5.
    """

    schemes = ("fixed",)

    system: ChainModel
    motors: tuple[int, ...] = ()
    theta: tuple[float, ...] = ()
    theta_spread: float = 0.1
    rate_spread: float = 0.1
    effort_cost: float = 0.01
    rounds: int = 1
    window: float = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.system, ChainModel):
            refuse(f"{self.name}: system", self.system, "a ChainModel")
        n = self.system.n
        if len(finite_array(f"{self.name}: theta", self.theta)) != n - 1:
            raise ModelError(f"{self.name}: theta must have {n - 1} numbers", "theta")
        takes = Whole(0, n - 2).takes
        good = np.iterable(self.motors) and all(map(takes, self.motors))
        if not good or len(set(self.motors)) != self.na:
            raise ModelError(
                f"{self.name}: motors must be {self.na} different joints of 0..{n - 2},"
                f" got {self.motors}",
                "motors",
            )
        for key in ("theta_spread", "rate_spread", "effort_cost"):
            Quantity(0.0).read(f"{self.name}: {key}", getattr(self, key))
        Whole().read(f"{self.name}: rounds", self.rounds)
        Quantity(0.0, above=True).read(f"{self.name}: window", self.window)

    @property
    def ns(self) -> int:
        """Number of entries of the state: 6 n."""
        return 6 * self.system.n

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the 6n entries of the state, in their order.

        JOINT.place_x, JOINT.place_y joint by joint, then JOINT.velocity_x,
        JOINT.velocity_y joint by joint, then JOINT.contact of all joints, then
        JOINT.limit of all.
        """
        names = self.system.joint_names
        parts = [f"{a}_{b}" for a in ("place", "velocity") for b in "xy"]
        pairs = [f"{name}.{part}" for k in (0, 2) for name in names
                 for part in parts[k : k + 2]]  # fmt: skip
        return (
            *pairs,
            *(f"{n}.{part}" for part in ("contact", "limit") for n in names),
        )

    @property
    def guided(self) -> bool:
        """Whether joint 0 is guided: whether its kind is GUIDED."""
        return self.system.constraints.kind[0] == GUIDED

    @property
    def observation_bounds(self) -> Bounds:
        """A pair (minimum, maximum) for each entry of the observation, in its order.

        Entries of directions are within -1..1, the others unbounded.
        """
        base = () if self.guided else (OPEN,) * 4
        return (UNIT, UNIT, OPEN) * (self.system.n - 1) + base

    def parts(self, state: Any) -> tuple[Matrix, Matrix, Any, Any]:
        """Return (x, v, contact, limit) of a flat state.

        Args:
            state: State, 6n entries.

        Returns:
            Positions x [m] and velocities v [m/s] of the joints, (n, 2) each, and the
            flags contact and limit, lists of n. The length of `state` is not checked.
        """
        n, numbers = self.system.n, list(state)
        rows = [numbers[2 * i : 2 * i + 2] for i in range(2 * n)]
        return (
            Matrix(rows[:n]),
            Matrix(rows[n:]),
            numbers[4 * n : 5 * n],
            numbers[5 * n :],
        )

    def control(self, action: Any) -> Sequence[Any]:
        """Return the torque at each joint, n [N·m]; zero at joints without a motor.

        Torques are not clipped.

        Args:
            action: Torques of the motors, in the order of `motors` [N·m]. Another
                number of torques raises ValueError.
        """
        torque = dict(zip(self.motors, action, strict=True))
        return [torque.get(i, 0.0) for i in range(self.system.n)]

    def directions(self, x: Matrix) -> list[Vector]:
        """Return the vectors of the links divided by their nominal lengths.

        They are n-1 Vectors of 2; their lengths differ from 1 by the drift of the
        integration.

        Args:
            x: Positions of the joints, (n, 2) [m].
        """
        rows = [Vector(row) for row in x.rows]
        return [
            (rows[i + 1] - rows[i]) * (1.0 / length)
            for i, length in enumerate(self.system.lengths)
        ]

    def turning(self, r: Sequence[Vector], v: Matrix) -> list[Any]:
        """Return the angular velocities of the n-1 links [rad/s].

        Args:
            r: Directions of the links, as `directions` returns them.
            v: Velocities of the joints, (n, 2) [m/s].
        """
        rows = [Vector(row) for row in v.rows]
        rates = []
        for i, length in enumerate(self.system.lengths):
            u = (rows[i + 1] - rows[i]) * (1.0 / length)
            rates.append(r[i][0] * u[1] - r[i][1] * u[0])
        return rates

    def observe(self, state: Any) -> Sequence[Any]:
        """Return the observation of a state: for each link its direction (2) and rate.

        The rate is that of turning [rad/s]. Position (2) and velocity (2) of joint 0
        follow, unless it is guided. Entries of directions are clipped to -1..1.
        """
        x, v, _, _ = self.parts(state)
        r = self.directions(x)
        seen: list[Any] = []
        for direction, rate in zip(r, self.turning(r, v), strict=True):
            seen += [*(minimum(1.0, maximum(c, -1.0)) for c in direction), rate]
        return seen if self.guided else [*seen, *x.rows[0], *v.rows[0]]

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return relative height - effort_cost sum (a / bound)², the reward of a step.

        The relative height is that of the last joint above joint 0 in y after the step,
        over the sum of lengths; sum (a / bound)² is `cost`. `before` is not used.
        """
        x = self.parts(after)[0].rows
        height = (x[-1][1] - x[0][1]) * (1.0 / sum(self.system.lengths))
        return height - self.effort_cost * self.cost(action)

    def placed(self, theta: np.ndarray) -> np.ndarray:
        """Return the positions of joint 0 at the start of episodes, (rows, 2) [m].

        In this class it is the origin; a subclass may use the angles.

        Args:
            theta: Initial joint angles of the episodes, (rows, n-1) [rad].
        """
        return np.zeros((len(theta), 2))

    def start(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Draw initial states, (rows, ns), all flags zero.

        Joint angles are uniform in theta ± theta_spread, clipped to the limits of the
        chain, rates uniform in ± rate_spread. Joint 0 is at the result of the method
        `placed` for these angles, with velocity zero. `rng` is advanced.
        """
        chain = self.system
        drawn = rng.uniform(-1.0, 1.0, (rows, 2, chain.n - 1))
        low, high = (np.array(b)[:-1] for b in (chain.lower, chain.upper))
        theta = np.array(self.theta) + self.theta_spread * drawn[:, 0]
        theta = np.clip(theta, low, high)
        state = from_angles(
            chain,
            self.placed(theta),
            np.zeros(2),
            theta,
            self.rate_spread * drawn[:, 1],
        )
        flags = np.zeros((rows, 2 * chain.n))
        both = [np.reshape(part, (rows, -1)) for part in state]
        return np.concatenate([*both, flags], axis=1)

    def points(self, state: np.ndarray) -> np.ndarray:
        """Return the positions of the joints in one flat state, (n, 2) [m].

        They may be a view of the state.
        """
        return np.reshape(np.asarray(state, float)[: 2 * self.system.n], (-1, 2))
