"""The planar walker as a robot, and the torques that hold its legs."""

from __future__ import annotations

import numpy as np

import dyn_core as dyn
from dyn_core.planar import ChainModel
from dyn_core.planar.conversion.convert import to_urdf
from dyn_core.tasks.walker import Walker

DROP, FOOT = 0.5, 0.005  # height of the fall, radius of the balls at its joints [m]


def leg_torques(theta: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the torques that hold the walker's six inner angles."""
    kp, kd = np.array([[100.0, 1.0], *4 * [[500.0, 10.0]], [100.0, 1.0]]).T
    tau = np.zeros(7)
    tau[1:] = kp * (np.array(Walker.STANCE)[1:] - theta[1:]) - kd * rates[1:]
    return tau


class HoldLegs:
    """The same torques for the robot, whose first two coordinates are its position."""

    def update(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return tau."""
        return np.concatenate([np.zeros(2), leg_torques(q[2:], qd[2:])])


def as_robot(chain: ChainModel) -> dyn.Model:
    """Return the walker as a robot of the 3-D engine, a small ball at each joint."""
    shapes = {name: [{"type": "sphere", "radius": FOOT}] for name in chain.joint_names}
    rules = {"pairs": {"deny": [["*", "*"]]}, "materials": {"default": {"mu": 3.0}}}
    extras = {"collisions": shapes, **rules}
    return dyn.load_urdf(to_urdf(chain).urdf, extras=extras)
