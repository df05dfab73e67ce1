"""Motion of the centre of mass, momentum about it, and the zero-moment point."""

from dyn_core.authoring import (
    Force,
    Matrix,
    Motion,
    TracedSolver,
    Vector,
    cross,
    cross3,
    equal,
    hookimpl,
    logical_not,
    require,
)
from dyn_core.errors import SingularError, UnsupportedError
from dyn_core.problems import CENTRE_OF_MASS, CENTROIDAL_MATRIX, ZERO_MOMENT_POINT
from dyn_core.validation import numbers
from dyn_plugins.kinematics.body_motion import outward
from dyn_plugins.kinematics.energy import mass_and_centre
from dyn_plugins.kinematics.kinematics import transforms


def centroidal_matrix(model, q):
    """Return the matrix that maps qd to the momentum about the centre of mass.

        h_G = A_G(q) qd,   A_G e_k = X_G_i.T Icomp_i S_i e_k

    h_G is [angular; linear], base axes, without the motion of joints driven by time.
    The second result is the centre of mass, base axes [m]. Both are of the moving
    bodies, without links fixed to the base. A mass of zero raises SingularError when
    the Program runs.

    Inputs and outputs: those of CENTROIDAL_MATRIX; q by body, the base first.

    Source: D. Orin, A. Goswami and S.-H. Lee, Centroidal dynamics of a humanoid robot,
    2013, by composite bodies as in RBDA, Table 6.2.
    """
    X, Icomp = transforms(model, q), list(model.I)
    _, com = mass_and_centre(model, X)
    columns = [Force.zero()] * model.nv
    for i in reversed(model.bodies):
        joint, p = model.joint[i], model.parent[i]
        S, ratio = joint.S(q[i]), model.leader[i].ratio
        for k, s in enumerate(S if ratio is None else S @ ratio):
            f = X[i].T @ (Icomp[i] @ s)
            about = Force(f.ang - cross3(com, f.lin), f.lin)
            k += model.v_slices[i].start
            columns[k] = columns[k] + about
        up = joint.X(q[i]) @ model.Xtree[i]
        Icomp[p] = Icomp[p] + up.T @ Icomp[i] @ up
    rows = [(*f.ang, *f.lin) for f in columns]
    return Matrix([row[k] for row in rows] for k in range(6)), com


def _rate_of_momentum(model, q, qd, qdd, a_base):
    """Return transforms, momentum and its rate about the base origin, base axes.

    They are [N·m·s; N·s] and [N·m; N]. a_base is the acceleration of the base: minus
    gravity adds the weight to the rate, with the sign of the force that supports it.
    """
    X = transforms(model, q)
    _, _, v, a = outward(model, q, qd, qdd, a_base)
    h, rate = Force.zero(), Force.zero()
    for i in model.bodies:
        p = model.I[i] @ v[i]
        h = h + X[i].T @ p
        rate = rate + X[i].T @ (model.I[i] @ a[i] + cross(v[i], p))
    return X, h, rate


def centre_of_mass(model, q, qd, qdd):
    """Return position, velocity and acceleration of the centre of mass.

        m com' = linear part of h,   m com'' = linear part of dh/dt

    All in base axes, gravity not included, of the moving bodies, without links fixed to
    the base. A mass of zero raises SingularError when the Program runs.

    Inputs and outputs: those of CENTRE_OF_MASS; q, qd and qdd by body, the base first.

    Source: RBDA, section 2.8; KIM-1.7.
    """
    X, h, rate = _rate_of_momentum(model, q, qd, qdd, Motion.zero())
    m, com = mass_and_centre(model, X)
    return com, h.lin * (1 / m), rate.lin * (1 / m)


def zero_moment_point(model, q, qd, qdd, normal, height):
    """Return the point of a plane where the ground's moment is along the normal alone.

        p = (n x N + height F) / (n . F),   n . p = height

    (N; F) is the wrench that the ground must exert for the motion, about the base
    origin. The second result is push = n . F; if it is negative, the ground would have
    to pull. A push of zero raises SingularError when the Program runs; a normal of
    zeros UnsupportedError when it is built.

    Inputs and outputs: those of ZERO_MOMENT_POINT; q, qd and qdd by body, the base
    first.

    Args:
        normal: Of the plane, base axes, 3 numbers; scaled to length one.
        height: Of the plane above the base's origin, along it [m].

    Source: M. Vukobratovic and B. Borovac, Zero-moment point: thirty-five years of its
    life, 2004; P. Sardain and G. Bessonnet 2004, (5) for a plane in any place.
    """
    n = _unit(normal)
    _, _, wrench = _rate_of_momentum(model, q, qd, qdd, -model.a_grav)
    push = n @ wrench.lin
    require(logical_not(equal(push, 0.0)), SingularError, "force along the normal")
    p = (cross3(n, wrench.ang) + wrench.lin * float(height)) * (1 / push)
    return p, push


def _unit(normal):
    """Return the normal as a Vector of length one; refuse zeros."""
    largest = max(abs(float(x)) for x in normal)
    if not largest:
        raise UnsupportedError(
            f"zero_moment_point: normal {tuple(normal)}; valid: not all zero"
        )
    # Divided by the largest first: squares neither overflow nor underflow.
    scaled = Vector(float(x) / largest for x in normal)
    return scaled / (scaled @ scaled) ** 0.5


def _plane_sizes(model, options):
    """Return {}, no sizes of Ports; raise UnsupportedError for a normal of zeros."""
    _unit(options["normal"])
    return {}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver("centroidal_matrix", CENTROIDAL_MATRIX, centroidal_matrix),
        TracedSolver("centre_of_mass", CENTRE_OF_MASS, centre_of_mass),
        TracedSolver(
            "zero_moment_point",
            ZERO_MOMENT_POINT,
            zero_moment_point,
            options={"normal": (0.0, 0.0, 1.0), "height": 0.0},
            valid={"normal": numbers(3)},
            sizes=_plane_sizes,
        ),
    ]
