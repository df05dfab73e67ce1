"""Energy and momentum of the robot."""

from dyn_core.authoring import (
    Force,
    Motion,
    TracedSolver,
    Vector,
    equal,
    forces_without_potential,
    hookimpl,
    logical_not,
    require,
    split_q,
    split_v,
    spring_energy,
    total,
)
from dyn_core.errors import SingularError
from dyn_core.problems import ENERGY, MOMENTUM
from dyn_plugins.kinematics.kinematics import transforms


def _velocities(model, q, qd):
    """Return the velocities of the base (zero) and each body, body coordinates."""
    v = [Motion.zero()]
    for i in model.bodies:
        joint = model.joint[i]
        X = joint.X(q[i]) @ model.Xtree[i]
        v.append(X @ v[model.parent[i]] + joint.vJ(q[i], qd[i]))
    return v


def first_moment(model, X):
    """Return the sum of m_i c_i over the moving bodies, base coordinates, 3 [kg·m].

    X are transforms from the base, as `transforms` returns them.
    """
    mc = Vector.zeros(3)
    for i in model.bodies:
        mc = mc + X[i].E.T @ model.I[i].h + X[i].r * model.I[i].m
    return mc


def mass_and_centre(model, X):
    """Return the mass [kg] and centre of mass [m] of the moving bodies, base axes."""
    m = total(model.I[i].m for i in model.bodies)
    require(logical_not(equal(m, 0.0)), SingularError, "mass of the moving bodies")
    return m, first_moment(model, X) * (1 / m)


def energy(model, q, qd):
    """Return kinetic and potential energy of the bodies that are not fixed to the base.

        kinetic = sum_i v_i . I_i v_i / 2 + sum_j armature_j qd_j² / 2
        potential = - sum_i m_i g . c_i + energy of springs, if they act

    Gravitational energy is zero at the base origin, spring energy at rest length;
    forces of Model.with_forces add their potential. A robot with such a force that acts
    and has no potential raises UnsupportedError when the Program is built.

    Inputs and outputs: those of ENERGY.

    Source: GUIDE (28); KIM-1.6; KIM-S2.
    """
    stored = spring_energy(model, q)
    q, qd = split_q(model, q), split_v(model, qd)
    v, X = _velocities(model, q, qd), transforms(model, q)
    kinetic = total(v[i] @ (model.I[i] @ v[i]) * 0.5 for i in model.bodies)
    rotors = total((model.armature[i] * qd[i]) @ qd[i] * 0.5 for i in model.bodies)
    g = model.a_grav.lin
    mc = first_moment(model, X)
    return kinetic + rotors, -(mc @ g) + stored


def no_potential(model):
    """Return a text on the first force without a potential; None: energy is defined."""
    names = forces_without_potential(model)
    if not names:
        return None
    return (
        f"the force '{names[0]}' has no potential; valid: with_forces({names[0]},"
        " potential=...), or joint_springs=False"
    )


def momentum(model, q, qd):
    """Return the spatial momentum about the base origin, and the centre of mass.

        h = sum_i X_i_0.T I_i v_i

    Both in base axes and of the moving bodies, without links fixed to the base; h is
    [angular; linear]; rotors (armature) have no momentum. A mass of zero raises
    SingularError when the Program runs.

    Inputs and outputs: those of MOMENTUM; q and qd by body, the base first.

    Source: GUIDE, section on inertia; KIM (23), (24); KIM-1.7.
    """
    v, X = _velocities(model, q, qd), transforms(model, q)
    h = Force.zero()
    for i in model.bodies:
        h = h + X[i].T @ (model.I[i] @ v[i])
    return h, mass_and_centre(model, X)[1]


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver("energy", ENERGY, energy, by_joint=False, supports=no_potential),
        TracedSolver("momentum", MOMENTUM, momentum),
    ]
