"""The arrays of a JointTrajectory message as Python has it, point by point."""

import numpy as np

from dyn_core.control.reference.trajectory import point_rows
from ros_nodes.conversions import TrajectoryArrays


def trajectory_arrays(message):
    """Return the TrajectoryArrays of a message; a field without numbers has no columns.

    Points with other numbers of values are a TrajectoryError.
    """
    points = message.points
    stamps = [p.time_from_start for p in points]
    rows = {
        "positions": [p.positions for p in points],
        "velocities": [p.velocities for p in points],
        "accelerations": [p.accelerations for p in points],
    }
    return TrajectoryArrays(
        list(message.joint_names),
        np.array([x.sec + 1e-9 * x.nanosec for x in stamps], float),
        *(point_rows(what, row) for what, row in rows.items()),
    )
