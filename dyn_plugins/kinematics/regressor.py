"""Joint forces and energies as linear functions of inertial and joint parameters.

Ten numbers a body, as in RigidInertia.parameters and in the order of the bodies: m, m c
(3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the body's origin. With the options, damping,
dry friction, and rotor inertia of every joint coordinate follow, in this order: each
joint has columns of its own, followers too. dyn_core's parameter_names, parameters_of
and identify use this order.
"""

from dyn_core.authoring import (
    Force,
    Matrix,
    Motion,
    RigidInertia,
    TracedSolver,
    Transform,
    Vector,
    cross3,
    friction_direction,
    hookimpl,
    join_force,
    rotation_rates,
)
from dyn_core.problems import ENERGY_REGRESSOR, REGRESSOR
from dyn_plugins.kinematics.body_motion import outward

AXES = tuple(Vector(row) for row in Matrix.identity(3).rows)
# Ixx, Ixy, Iyy, Ixz, Iyz, Izz: each one, the others zero.
ROTATIONAL = tuple(
    RigidInertia.of_parameters(row).I for row in Matrix.identity(10).rows[4:]
)


def unit_forces(v, a):
    """Return the force on a body for one unit of each of its ten inertial parameters.

        f = A(v, a) pi:   m: [0; a_r],   m c_k: [e_k x a_r; U e_k],
        I: [I alpha + w x I w; 0],   U = [alpha] + [w][w],   a_r = a_lin + w x v_lin

    v and a, the spatial acceleration minus gravity, and the list of forces, columns of
    A, are in body coordinates, in the order of RigidInertia.parameters.

    Source: C. Atkeson, C. An and J. Hollerbach, Estimation of Inertial Parameters of
    Manipulator Loads and Links, IJRR 5 (1986), for the origin of the body.
    """
    w, alpha, origin = v.ang, a.ang, a.lin + cross3(v.ang, v.lin)
    U, nothing = rotation_rates(w, alpha), Vector.zeros(3)
    forces = [Force(nothing, origin)]
    forces += [Force(cross3(e, origin), U @ e) for e in AXES]
    turns = [I @ alpha + cross3(w, I @ w) for I in ROTATIONAL]
    return forces + [Force(turn, nothing) for turn in turns]


def regressor(model, q, qd, qdd, friction, rotors):
    """Return the regressor: joint forces are linear in inertia and friction.

        tau = ID(q, qd, qdd) = Y(q, qd, qdd) pi
        Y_ji = S_j.T X_ij.T A(v_i, a_i)   for the joints j that carry body i

    Joint axes are propagated outward, one motion per coordinate; textbooks propagate
    ten unit forces per body inward. The products are the same, and so is O(n depth).

    Inputs and outputs: those of REGRESSOR; q, qd and qdd by body, the base first.

    Args:
        friction: Whether to add a column qd for the damping of each joint coordinate,
            and after all of these a column tanh(qd / v) for the dry friction of each,
            v being the friction_speed of the joint.
        rotors: Whether to add a column qdd for each rotor inertia at the end.

    Source: C. Atkeson, C. An and J. Hollerbach, IJRR 5 (1986); M. Gautier and W.
    Khalil, IEEE Transactions on Robotics and Automation 6 (1990): columns of joints.
    """
    X, S, v, a = outward(model, q, qd, qdd, -model.a_grav)
    J, columns = [{}], []
    for i in model.bodies:
        J.append({j: X[i] @ axes for j, axes in J[model.parent[i]].items()})
        J[i][i] = S[i]
        for f in unit_forces(v[i], a[i]):
            columns.append({j: axes.T @ f for j, axes in J[i].items()})
    if friction:
        columns += _alone(model, qd)
        signs = (friction_direction(model, i, qd[i]) for i in model.bodies)
        columns += _alone(model, [Vector(()), *signs])
    if rotors:
        columns += _alone(model, qdd)
    return _joined(model, columns)


def _alone(model, parts):
    """Return columns, dicts {body: Vector}, each with one nonzero number of `parts`."""
    columns = []
    for i in model.bodies:
        for k, x in enumerate(parts[i]):
            column = [0.0] * len(parts[i])
            column[k] = x
            columns.append({i: Vector(column)})
    return columns


def _joined(model, columns):
    """Return the Matrix of columns in independent coordinates, nv rows (none: no rows).

    Columns are dicts from body index to joint forces; missing bodies are zero. Forces
    of followers, times the ratio, are added to their leaders'.
    """
    none = [Vector.zeros(joint.nv) for joint in model.joint]
    bodies = range(model.nb + 1)
    whole = [join_force(model, [c.get(i, none[i]) for i in bodies]) for c in columns]
    return Matrix(zip(*whole, strict=True))


def energy_regressor(model, q, qd, rotors):
    """Return the matrix Y that maps the parameters to kinetic and potential energy.

        kinetic = m v.v / 2 + m c . (v x w) + w . I w / 2 + rotors qd² / 2
        potential = - m g . r - (E g) . m c
        [kinetic; potential] = Y(q, qd) pi

    Potential energy is that of gravity, zero at the base origin; r is the position of
    the body's origin, E g is gravity in the body's axes.

    Inputs and outputs: those of ENERGY_REGRESSOR; q and qd by body, the base first;
    rows: kinetic and potential energy.

    Args:
        rotors: Whether to add columns for the inertia of rotors.

    Source: M. Gautier and W. Khalil, IEEE Transactions on Robotics and Automation 6
    (1990): the energy model.
    """
    X, v, g = [Transform.identity()], [Motion.zero()], model.a_grav.lin
    kinetic, potential = [], []
    for i in model.bodies:
        p, joint = model.parent[i], model.joint[i]
        up = joint.X(q[i]) @ model.Xtree[i]
        X.append(up @ X[p])
        v.append(up @ v[p] + joint.vJ(q[i], qd[i]))
        w, speed = v[i].ang, v[i].lin
        kinetic += [speed @ speed * 0.5, *cross3(speed, w)]
        kinetic += [w @ (I @ w) * 0.5 for I in ROTATIONAL]
        potential += [-(g @ X[i].r), *(-(X[i].E @ g)), *[0.0] * len(ROTATIONAL)]
    if rotors:
        spins = [x * x * 0.5 for i in model.bodies for x in qd[i]]
        kinetic, potential = kinetic + spins, potential + [0.0] * len(spins)
    return Matrix((kinetic, potential))


def _sizes(model, options):
    """Return the sizes of the Ports: {"np": number of columns of the regressor}."""
    coordinates = sum(model.joint[i].nv for i in model.bodies)
    groups = 2 * bool(options.get("friction")) + bool(options["rotors"])
    return {"np": 10 * model.nb + groups * coordinates}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "regressor",
            REGRESSOR,
            regressor,
            options={"friction": False, "rotors": False},
            sizes=_sizes,
        ),
        TracedSolver(
            "energy_regressor",
            ENERGY_REGRESSOR,
            energy_regressor,
            options={"rotors": False},
            sizes=_sizes,
        ),
    ]
