"""Poses and Jacobians of all bodies in one call, for contact rows."""

from dyn_core.authoring import Motion, MotionSubspace, TracedSolver, hookimpl
from dyn_core.problems import BODY_JACOBIANS
from dyn_plugins.kinematics.kinematics import transforms


def body_jacobians(model, q):
    """Return the pose of every body and the Jacobian of its velocity, in the world.

        x_world = R x_body + p,   v_i = J_i qd

    without joints driven by time, with v_i in world axes about the world's origin, so
    that a constraint row between two bodies is W . (J_a - J_b) for any point of
    application.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].

    Returns:
        Homogeneous matrices, nb x 4 x 4 [-; m]; J_i, nb x 6 x nv, [angular; linear];
        both of bodies 1 to nb, without the base.

    Source: RBDA, sections 4.2 and 4.4; LCP-2.
    """
    X_0 = transforms(model, q)
    poses, jacobians = [], [[Motion.zero()] * model.nv]
    for i in model.bodies:
        R, p = X_0[i].pose
        rows = [(*row, x) for row, x in zip(R.rows, p, strict=True)]
        poses.append([*rows, (0.0, 0.0, 0.0, 1.0)])
        ratio, first_column = model.leader[i].ratio, model.v_slices[i].start
        to_world = X_0[i].inverse
        S = MotionSubspace(to_world @ column for column in model.joint[i].S(q[i]))
        columns = list(jacobians[model.parent[i]])
        for k, column in enumerate(S if ratio is None else S @ ratio):
            columns[first_column + k] = columns[first_column + k] + column
        jacobians.append(columns)
    return poses, [_dense(columns) for columns in jacobians[1:]]


def _dense(columns):
    """Return six rows of nv numbers, [angular; linear], of `columns`, nv Motions."""
    entries = [(*column.ang, *column.lin) for column in columns]
    return [[entry[k] for entry in entries] for k in range(6)]


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [TracedSolver("body_jacobians", BODY_JACOBIANS, body_jacobians)]
