"""What the demo moves, and what it has seen; the same with and without ROS."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import dyn_core as dyn

GAINS = (400.0, 40.0)


@dataclass
class Outcome:
    """What a demo run shows.

    Attributes:
        names: Joints.
        t, q, q_ref: Recorded times, positions and references, a row a sample.
        facts: Lines to print: rates, latency, solvers.
    """

    names: tuple[str, ...]
    t: np.ndarray
    q: np.ndarray
    q_ref: np.ndarray
    facts: dict[str, str] = field(default_factory=dict)

    def errors(self) -> np.ndarray:
        """Largest tracking error of each joint [rad | m]."""
        return np.nanmax(np.abs(self.q - self.q_ref), axis=0)


@dataclass(frozen=True)
class Plan:
    """Start and waypoints of the motion, at rest at each.

    Attributes:
        start: Position of the simulated arm, (nv,).
        times: Of the waypoints [s].
        positions: A row a waypoint.
    """

    start: np.ndarray
    times: np.ndarray
    positions: np.ndarray


def plan(model: dyn.Model, duration: float) -> Plan:
    """Plan a motion inside the limits that every robot of one-dof joints can follow."""
    low = np.maximum(model.lower, -1.5)
    high = np.minimum(model.upper, 1.5)
    bad = high < low
    low[bad], high[bad] = model.lower[bad], model.upper[bad]
    middle, span = (low + high) / 2, np.minimum((high - low) / 4, 0.4)
    sign = np.where(np.arange(model.nv) % 2, -1.0, 1.0)
    rows = np.array([middle + sign * span, middle - sign * span, middle])
    return Plan(middle, np.array([0.3, 0.7, 1.0]) * duration, rows)
