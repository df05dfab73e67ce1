"""Impulses at points of links for given velocities after an impact."""

from dyn_core.authoring import (
    Factored,
    Force,
    Matrix,
    Motion,
    TracedSolver,
    Vector,
    hookimpl,
)
from dyn_core.problems import POINT_IMPULSE
from dyn_plugins._options import known_points
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    articulated_joints,
    delassus_matrix,
    joint_transforms,
    propagate_to_base,
)
from dyn_plugins.dynamics.delassus import point_forces

RANK = 1e-12  # pivots of G / diagonal entry at or below this are zero


def point_impulse(model, q, qd, velocity, points, damping):
    """Return the velocity after an impact that gives points a velocity, and impulses.

        H (qd+ - qd) = J.T Lambda,   J qd+ + damping Lambda = velocity

    Without damping, linearly dependent rows raise SingularError with the point's number
    and link when the Program runs. So does a singular joint inertia, with the name of
    the joint.

    Inputs and outputs: those of POINT_IMPULSE; q, qd and qd_next by body, the base
    first.

    Args:
        points: Pairs (link, point in the link's frame [m]).
        damping: Added to the diagonal of J H^-1 J.T [1/kg].

    Source: RBDA, section 11.7 (impulsive dynamics); the sweeps are TAZZ-6.4, TAZZ-6.5.
    """
    X, S = joint_transforms(model, q)
    joints, _ = articulated_joints(model, X, S)
    pushes = point_forces(model, q, points)
    rows = [propagate_to_base(model, joints, i, f) for i, f in pushes]
    G = delassus_matrix(joints, rows) + Matrix.diagonal([damping] * len(rows))
    names = [f"point {k // 3} ({points[k // 3][0]})" for k in range(len(rows))]
    tolerances = [G[k, k] * RANK for k in range(len(rows))]
    v = _velocities(model, X, q, qd)
    missing = [x - v[i] @ f for x, (i, f) in zip(velocity, pushes, strict=True)]
    impulse = Factored(G, tolerances, names).solve(Vector(missing))
    forces = [Force.zero()] * (model.nb + 1)
    for (i, f), x in zip(pushes, impulse, strict=True):
        forces[i] = forces[i] - f * x
    still = Vector.zeros(model.nv)
    change = accelerations_from_forces(model, joints, still, forces).qdd
    after = [None, *(qd[i] + change[i] for i in model.bodies)]
    return after, impulse


def _velocities(model, X, q, qd):
    """Return a list of velocities: of the base (zero) and each body, body coordinates.

    X, q, qd: By body: transform from the parent, and position and velocity of its
    joint.
    """
    v = [Motion.zero()]
    for i in model.bodies:
        v.append(X[i] @ v[model.parent[i]] + model.joint[i].vJ(q[i], qd[i]))
    return v


def _sizes(model, options):
    return {"m": 3 * len(options["points"])}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "point_impulse",
            POINT_IMPULSE,
            point_impulse,
            options={"points": (), "damping": 0.0},
            valid={"points": known_points},
            sizes=_sizes,
            regrouped=True,
        )
    ]
