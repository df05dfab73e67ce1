"""Three tasks of Gymnasium's classic control, to compare speed.

A step equals a step of Gymnasium: same equations, scheme, interval, actions and end.
States and observations have this project's order, and angles its zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.numbers.scalar import floor, maximum, minimum, where
from dyn_core.planar.objects.objects import Bounds, planar_object
from dyn_core.spatial import Vector
from dyn_core.tasks.shipped import AcrobotSwingUp, CartBalance, PendulumSwingUp, Task

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
PI = math.pi


def wrapped(angle: Any) -> Any:
    """Return an angle [rad] shifted by a multiple of 2 pi into [-pi, pi)."""
    return angle - (2 * PI) * floor(angle * (0.5 / PI) + 0.5)


def clipped(x: Any, most: float) -> Any:
    """Return x clipped to [-most, most]; `most` >= 0."""
    return minimum(maximum(x, -most), most)


@dataclass(frozen=True, eq=False)
class ClassicPendulum(PendulumSwingUp):
    """Swing up as Pendulum-v1 does: a uniform rod, g = 10, |tau| <= 2 N·m.

        reward = -(theta² + 0.1 theta'² + 0.001 tau²)    of the state before the step

    theta is wrapped to [-pi, pi). A step is one semi-implicit step of 0.05 s; then
    theta' is clipped to 8 rad/s. Gymnasium moves the angle with the clipped rate, this
    task with the unclipped one: a difference only at 8 rad/s.

    Source: Gymnasium, classic_control/pendulum.py.
    """

    @property
    def observation_bounds(self) -> Bounds:
        """Minimum and maximum of each entry of the observation.

        cos and sin are within 1, the rate within 8 rad/s.
        """
        return ((-1.0, 1.0), (-1.0, 1.0), (-8.0, 8.0))

    def settle(self, state: Any) -> Any:
        """Return the state (theta, theta') with theta' clipped to ±8 rad/s."""
        return Vector((state[0], clipped(state[1], 8.0)))

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return the reward of a step, as defined in the class.

        Args:
            before: State before the step: theta [rad], theta' [rad/s].
            action: Clipped action: the torque [N·m].
            after: Not used.
        """
        angle, rate, torque = wrapped(before[0]), before[1], action[0]
        return -(angle * angle + 0.1 * rate * rate + 0.001 * torque * torque)

    def start(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Draw initial states, (rows, 2), uniform: angle in ±pi, rate in ±1 rad/s."""
        return rng.uniform(-1.0, 1.0, (rows, 2)) * np.array([PI, 1.0])


@dataclass(frozen=True, eq=False)
class ClassicAcrobot(AcrobotSwingUp):
    """Swing the tip a link's length above the support, as Acrobot-v1 does.

    Torques -1, 0, 1 N·m, one Runge-Kutta step of 0.2 s, g = 9.8 m/s². After each step
    the angles are wrapped and the rates clipped to 4 pi and 9 pi rad/s. The reward is
    -1 for every step, 0 for the step that reaches the height and ends the episode.

    Source: Gymnasium, classic_control/acrobot.py (its "book" equations).
    """

    @property
    def observation_bounds(self) -> Bounds:
        """Minimum and maximum of each entry of the observation.

        cos and sin are within 1, the rates within 4 pi and 9 pi rad/s.
        """
        return (((-1.0, 1.0),) * 4) + ((-4 * PI, 4 * PI), (-9 * PI, 9 * PI))

    def settle(self, state: Any) -> Any:
        """Return the state with wrapped angles and clipped rates.

        Args:
            state: theta1, theta2 [rad], and their rates [rad/s], clipped to ±4 pi and
                ±9 pi.
        """
        t1, t2, w1, w2 = state
        rates = clipped(w1, 4 * PI), clipped(w2, 9 * PI)
        return Vector((wrapped(t1), wrapped(t2), *rates))

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return the reward of a step, as defined in the class.

        Args:
            before: Not used.
            action: Not used.
            after: State after the step, (ns,).
        """
        return self.over(after) - 1.0

    def over(self, after: Any) -> Any:
        """Return 1 if the tip is more than 1 m above the support, else 0."""
        return where(self.height(after) > 1.0, 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class ClassicCartPole(CartBalance):
    """Balance a pole as CartPole-v1 does: no friction, g = 9.8 m/s².

    Force -10 or 10 N, one Euler step of 0.02 s. The reward is 1 for every step; an
    episode ends when |x| > 2.4 m or the pole is beyond 12 degrees.

    Source: Gymnasium, classic_control/cartpole.py.
    """


def classic_tasks() -> Sequence[Task]:
    """Return new tasks classic_pendulum, classic_acrobot and classic_cart_pole."""
    slippery = {"mu_c": 0.0, "mu_p": 0.0, "g": 9.8}
    return (
        ClassicPendulum(
            "classic_pendulum", planar_object("pendulum", m=1 / 3, g=15.0),
            0.05, 1, "semi_implicit", 200, ((-2.0, 2.0),),
            home=(PI, 0.0), spread=(PI, 1.0),
        ),
        ClassicAcrobot(
            "classic_acrobot", planar_object("acrobot", g=9.8),
            0.2, 1, "rk4", 500, ((-1.0, 1.0),), ((-1.0,), (0.0,), (1.0,)),
            home=(-PI / 2, 0.0, 0.0, 0.0), spread=(0.1,) * 4,
        ),
        ClassicCartPole(
            "classic_cart_pole", planar_object("cart_pole", **slippery),
            0.02, 1, "euler", 500, ((-10.0, 10.0),), ((-10.0,), (10.0,)),
            home=(0.0,) * 4, spread=(0.05,) * 4,
        ),
    )  # fmt: skip
