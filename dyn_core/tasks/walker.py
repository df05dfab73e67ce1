"""A planar walker of this project's own design: a trunk on two legs with feet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dyn_core.numbers.scalar import atan2, logical_or, maximum, minimum, where
from dyn_core.planar.chain.chain import ChainModel, HalfPlane, make_chain
from dyn_core.planar.chain.states import from_angles
from dyn_core.planar.objects.objects import Bounds
from dyn_core.tasks.chain_task import ChainTask
from dyn_core.tasks.task import OPEN, UNIT
from dyn_core.validation import known_keywords

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
TURN = (-math.pi, math.pi)


def walker_chain() -> ChainModel:
    """Return the chain of the walker: 7 links, 8 joints, six driven angles with limits.

        joint    0 rear toe, 1 ankle, 2 knee, 3 hip, 4 front hip, 5 knee, 6 ankle, 7 toe
        link     0 rear foot, 1 shin, 2 thigh, 3 trunk, 4 front thigh, 5 shin, 6 foot
        length   0.15, 0.30, 0.30, 0.60, 0.30, 0.30, 0.15 m
        mass     0.4, 0.6, 1.0, 3.0, 3.0, 1.0, 0.6, 0.4 kg; 10 kg in all
        k_omega  1.5 N·m·s at hips and knees, 0.3 at ankles
        limits   in degrees: -150..-50, 10..110, -170..-70, -170..-70, 10..110, 0..100

    The limits are of the joints 1 to 6: the angle of link i relative to link i - 1.
    Toes and ankles stick to the ground y = 0, the other joints slide on it.

    Source: WAW-15.5 asks for such a walker; all numbers are ours.
    """
    least = np.radians([-150.0, 10.0, -170.0, -170.0, 10.0, 0.0])
    most = np.radians([-50.0, 110.0, -70.0, -70.0, 110.0, 100.0])
    return make_chain(
        [0.15, 0.3, 0.3, 0.6, 0.3, 0.3, 0.15],
        [0.4, 0.6, 1.0, 3.0, 3.0, 1.0, 0.6, 0.4],
        k_omega=[0.0, 0.3, 1.5, 1.5, 1.5, 1.5, 0.3, 0.0],
        lower={i + 1: float(x) for i, x in enumerate(least)},
        upper={i + 1: float(x) for i, x in enumerate(most)},
        ground=(
            HalfPlane(joints=(0, 1, 6, 7)),
            HalfPlane(joints=(2, 3, 4, 5), mode="slide"),
        ),
        joint_names=("rear_toe", "rear_ankle", "rear_knee", "rear_hip",
                     "front_hip", "front_knee", "front_ankle", "front_toe"),
        name="walker",
    )  # fmt: skip


@known_keywords
@dataclass(frozen=True, eq=False)
class Walker(ChainTask):
    """Run forward on two legs.

    Action: torques of the joints 1 to 6 of walker_chain, within 15 N·m at ankles and 40
    N·m at knees and hips in the shipped task. Observation, 18 entries: height of the
    rear hip [m], cos and sin of the trunk's pitch, velocity of the rear hip (2) [m/s],
    rate of pitch [rad/s], six joint angles [rad], their rates (6) [rad/s]. Reward of a
    step, with x the horizontal position of the middle of the trunk [m]:

        (x after - x before) / interval - effort_cost sum (tau_i / bound_i)²

    An episode ends when a hip is lower than `fallen`. It begins near STANCE, with joint
    angles and rates drawn as in ChainTask and the lowest joint 2 mm above the ground.

    Class attributes:
        STANCE: Mean of the joint angles at the start, 7 [rad].
        REAR, FRONT: Indices of the rear and front hip joints.
        TRUNK: Index of the trunk among the links.

    Attributes:
        fallen: Height of a hip above y = 0 below which an episode ends [m].

    Source: WAW-15.5; all numbers are ours.
    """

    # Directions of the links in degrees: 160, 60, 120, 0, -120, -60, -20.
    STANCE: ClassVar[tuple[float, ...]] = tuple(
        math.radians(x) for x in (160.0, -100.0, 60.0, -120.0, -120.0, 60.0, 40.0)
    )
    REAR, FRONT, TRUNK = 3, 4, 3

    fallen: float = 0.2

    @property
    def observation_bounds(self) -> Bounds:
        """A pair (minimum, maximum) for each entry of the observation, in its order.

        Joint angles are within pi, cos and sin within 1, the others unbounded.
        """
        angles, rates = (TURN,) * 6, (OPEN,) * 6
        return (OPEN, UNIT, UNIT, OPEN, OPEN, OPEN, *angles, *rates)

    def observe(self, state: Any) -> Sequence[Any]:
        """Return the observation of a state (ns entries), 18 numbers.

        Height of the rear hip, cos and sin of the pitch (clipped to -1..1),
        velocity of the rear hip (2), rate of pitch, six joint angles in [-pi, pi],
        their rates (6). The angles are of the joints `motors`, in their order.
        """
        x, v, _, _ = self.parts(state)
        r = self.directions(x)
        w = self.turning(r, v)
        pitch = [minimum(1.0, maximum(c, -1.0)) for c in r[self.TRUNK]]
        pose = [x.rows[self.REAR][1], *pitch, *v.rows[self.REAR], w[self.TRUNK]]
        angles, rates = [], []
        for i in self.motors:
            before, after = r[i - 1], r[i]
            cross = before[0] * after[1] - before[1] * after[0]
            angles.append(atan2(cross, before @ after))
            rates.append(w[i] - w[i - 1])
        return [*pose, *angles, *rates]

    def middle(self, state: Any) -> Any:
        """Return the x coordinate of the middle of the trunk in a state (ns) [m]."""
        x = self.parts(state)[0].rows
        return (x[self.REAR][0] + x[self.FRONT][0]) * 0.5

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return mean speed of the trunk's middle in x - effort_cost sum (a / bound)².

        The speed is (x after - x before) / interval.

        Args:
            before, after: States, ns entries each.
            action: Torques a of the joints 1 to 6 [N·m].
        """
        way = self.middle(after) - self.middle(before)
        return way * (1.0 / self.interval) - self.effort_cost * self.cost(action)

    def over(self, after: Any) -> Any:
        """Return 1.0 if a hip is lower than `fallen` in the state `after`, else 0.0."""
        x = self.parts(after)[0].rows
        low = logical_or(x[self.REAR][1] < self.fallen, x[self.FRONT][1] < self.fallen)
        return where(low, 1.0, 0.0)

    def view(self, points: np.ndarray) -> tuple[float, float, float, float]:
        """Return a picture's limits: minimum and maximum x, then y [m].

        x is within 1.2 m of the trunk's middle; y is always -0.3 to 1.3 m.

        Args:
            points: Positions of the joints, (8, 2) [m].
        """
        x = float(points[self.REAR : self.FRONT + 1, 0].mean())
        return (x - 1.2, x + 1.2, -0.3, 1.3)

    def placed(self, theta: np.ndarray) -> np.ndarray:
        """Return the positions of joint 0 with the lowest joint 2 mm above y = 0.

        Args:
            theta: Joint angles, as STANCE, (rows, 7) [rad].

        Returns:
            (rows, 2) [m]; x is zero.
        """
        still = np.zeros_like(theta)
        x, _ = from_angles(self.system, np.zeros(2), np.zeros(2), theta, still)
        up = 0.002 - x[..., 1].min(axis=-1)
        return np.stack([np.zeros(len(theta)), up], axis=-1)
