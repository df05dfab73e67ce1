"""Names and units of the coordinates of a robot, for files and plots."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.model.model import Model
from dyn_core.spatial import Vector

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py


class Coordinates(NamedTuple):
    """Names and units of positions and velocities.

    A joint of one coordinate gives it its name, other joints NAME.0, NAME.1, ...

    Attributes:
        positions: Names of the position coordinates, nq.
        velocities: Names of the velocities, accelerations and joint forces, nv.
        position_units: rad, m, or 1 for entries of a quaternion; nq.
        velocity_units: rad or m, nv; velocities, accelerations and forces are then in
            rad/s, rad/s², N·m or m/s, m/s², N.
    """

    positions: tuple[str, ...]
    velocities: tuple[str, ...]
    position_units: tuple[str, ...]
    velocity_units: tuple[str, ...]


def coordinates_of(model: Model) -> Coordinates:
    """Return names and units of the independent coordinates, in the order of q and qd.

    A name is JOINT, or JOINT.0, JOINT.1, ... if q or qd has several numbers of the
    joint. Units are as in Coordinates, also of velocities without 1/s: "1" for the
    numbers of a quaternion, else "rad" if the coordinate rotates the body at the
    neutral position, "m" if it does not.
    """
    positions, velocities = [""] * model.nq, [""] * model.nv
    q_units, v_units = ["rad"] * model.nq, ["rad"] * model.nv
    for name in model.joint_names:
        q, v = model.q_slice(name), model.v_slice(name)
        positions[q], velocities[v] = _labels(name, q), _labels(name, v)
        i = model.names.index(name)
        joint, start = model.joint[i], Vector(model.neutral()[q].tolist())
        S = np.asarray(joint.S(start), float).reshape(6, -1)
        units = ["rad" if column[:3].any() else "m" for column in S.T]
        v_units[v] = units
        unit = set()
        for part in joint.quaternions(Vector(map(float, range(q.stop - q.start)))):
            unit |= {int(float(k)) for k in part}
        free = [k for k in range(q.stop - q.start) if k not in unit]
        if unit and free:  # a free body: its place, then its rotation
            q_units[q] = ["1" if k in unit else "m" for k in range(q.stop - q.start)]
        else:
            q_units[q] = ["1"] * len(unit) if unit else units
    return Coordinates(*map(tuple, (positions, velocities, q_units, v_units)))


def _labels(name: str, part: slice) -> list[str]:
    """Return the names of a joint's coordinates: [NAME], or [NAME.0, NAME.1, ...]."""
    count = part.stop - part.start
    return [name] if count == 1 else [f"{name}.{k}" for k in range(count)]
