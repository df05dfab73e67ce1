"""Energy of the robot, and its momentum."""

from dyn_core import (
    ENERGY,
    MOMENTUM,
    Force,
    Motion,
    TextSolver,
    Vector,
    hookimpl,
)
from dyn_core.spatial.vectors import total
from dyn_plugins.kinematics import transforms


def _velocities(model, q, qd):
    """Give the velocity of each body, body coordinates."""
    v = [Motion.zero()]
    for i in model.bodies:
        joint = model.joint[i]
        X = joint.X(q[i]) @ model.Xtree[i]
        v.append(X @ v[model.parent[i]] + joint.vJ(q[i], qd[i]))
    return v


def _first_moment(model, X):
    """Give the sum of m_i c_i in base coordinates."""
    mc = Vector.zeros(3)
    for i in model.bodies:
        mc = mc + X[i].E.T @ model.I[i].h + X[i].r * model.I[i].m
    return mc


def energy(model, q, qd):
    """Give kinetic and potential energy.

        kinetic = sum_i v_i . I_i v_i / 2 + sum_j armature_j qd_j² / 2
        potential = - sum_i m_i g . c_i

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].

    Returns:
        Kinetic energy and potential energy (zero at the base origin) [J].

    Source: GUIDE (28); KIM-1.6.
    """
    v, X = _velocities(model, q, qd), transforms(model, q)
    kinetic = total(v[i] @ (model.I[i] @ v[i]) * 0.5 for i in model.bodies)
    rotors = total((model.armature[i] * qd[i]) @ qd[i] * 0.5 for i in model.bodies)
    g = model.a_grav.lin
    mc = _first_moment(model, X)
    return kinetic + rotors, -(mc @ g)


def momentum(model, q, qd):
    """Give the spatial momentum about the base origin, and the centre of mass.

        h = sum_i X_i_0.T I_i v_i

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].

    Returns:
        Momentum h in base coordinates, 6, [moment; force] [N·m·s; N·s], and the centre
        of mass of the moving bodies, 3 [m].

    Source: GUIDE, section on inertia; KIM (23), (24); KIM-1.7.
    """
    v, X = _velocities(model, q, qd), transforms(model, q)
    h = Force.zero()
    for i in model.bodies:
        h = h + X[i].T @ (model.I[i] @ v[i])
    m = total(model.I[i].m for i in model.bodies)
    return h, _first_moment(model, X) * (1 / m)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TextSolver("energy", ENERGY, energy),
        TextSolver("momentum", MOMENTUM, momentum),
    ]
