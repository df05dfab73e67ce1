"""Single rigid bodies: inertias of simple shapes, and the equation of motion.

For floats only. Functions that return a RigidInertia raise a ModelError if it is not
physical; no other function does. Motions, forces and inertias that are combined must be
in the same frame: [angular; linear] about its origin. Inertias have no label of a
frame; labels are different only if both vectors have one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.spatial.guide.se3 import single
from dyn_core.spatial.inertia import MotionSubspace, RigidInertia, cross_matrix
from dyn_core.spatial.vectors import (
    Force,
    Motion,
    Vector,
    cross3,
    cross_force,
    cross_motion,
)

SLACK = 1e-9  # relative slack of symmetry, sign and triangle inequality
_ORIGIN = (0.0, 0.0, 0.0)


def checked(I: RigidInertia) -> RigidInertia:
    """Return a rigid inertia unchanged, after a check that it is physical.

    The mass must be >= 0; the principal moments about the centre of mass must be >= 0,
    and each at most the sum of the other two, within 1e-9 of the largest entry of I.I.
    Without mass the moments are those about the origin, and any finite m c passes.

    Raises:
        NonFiniteError: A parameter is NaN or infinite.
        ModelError: The inertia is not physical (a ValueError, too).

    Source: GUIDE, section 6.5; SV-7.1; KIM-1.6.
    """
    single("inertia", I.parameters, 10)
    if I.m < 0:
        raise ModelError(f"mass {I.m} is negative; it must be >= 0")
    small, middle, large = np.linalg.eigvalsh(np.asarray(I.Ic, float))
    shown = f"principal moments {small:.6g}, {middle:.6g}, {large:.6g} kg·m²"
    slack = SLACK * float(np.abs(I.I.entries).max())
    if small < -slack:
        raise ModelError(f"inertia is not positive definite: {shown}; none may be < 0")
    if small + middle < large - slack:
        raise ModelError(
            f"inertia breaks the triangle inequality: {shown}; each must be at most the"
            " sum of the others"
        )
    return I


def rigid_body(m: float, c: Iterable[float], Ic: Any) -> RigidInertia:
    """Return the checked inertia of a body.

    Args:
        m: Mass [kg], >= 0.
        c: Centre of mass, 3 [m].
        Ic: Inertia about c along the frame's axes, symmetric 3x3 [kg·m²].

    Raises:
        ShapeError, NonFiniteError: A value has another shape or is not finite.
        ModelError: Ic is not symmetric within 1e-9 of its largest entry, the mass is
            negative, or a principal moment is negative or above the sum of the others,
            within the slack of `checked`.

    Source: GUIDE (25); SV-7.1; KIM-1.6.
    """
    c, Ic = single("c", c, 3), single("Ic", Ic, 3, 3)
    off = float(np.abs(Ic - Ic.T).max())
    if off > SLACK * float(np.abs(Ic).max()):
        raise ModelError(f"Ic is not symmetric: Ic - Ic.T reaches {off:.3g}")
    mass = float(single("m", m))
    return checked(RigidInertia.of(mass, c.tolist(), Ic.tolist()))


def body_of_matrix(M: Any) -> RigidInertia:
    """Return the checked inertia of a body from its 6x6 matrix.

    Source: GUIDE (25); SV-7.1; KIM-1.6.
    """
    return checked(RigidInertia.of_matrix(single("M", M, 6, 6)))


def point_mass(m: float, c: Iterable[float] = _ORIGIN) -> RigidInertia:
    """Return the inertia of a mass m [kg] at the point c, 3 [m].

    Source: GUIDE (25); SV-7.1; KIM-1.6.
    """
    return rigid_body(m, c, np.zeros((3, 3)))


def cuboid(
    m: float, sides: Iterable[float], c: Iterable[float] = _ORIGIN
) -> RigidInertia:
    """Return the inertia of a solid cuboid along the axes: Ixx = m (y² + z²)/12, ...

    `sides` are its lengths along x, y, z, c is its centre [m].

    Source: GUIDE (25); SV-7.1; KIM-1.6.
    """
    square = _lengths("sides", sides, 3) ** 2
    return rigid_body(m, c, np.diag((square.sum() - square) / 12) * single("m", m))


def cylinder(
    m: float, radius: float, length: float, c: Iterable[float] = _ORIGIN
) -> RigidInertia:
    """Return the inertia of a solid cylinder along z: Izz = m r²/2.

    Args:
        m: Mass [kg].
        radius: Its radius, >= 0 [m].
        length: Its length along z, >= 0 [m].
        c: Its centre, 3 [m].

    Raises ModelError for negative lengths or mass, ShapeError or NonFiniteError for
    other invalid values.

    Source: GUIDE (25); SV-7.1; KIM-1.6.
    """
    rr, ll = _lengths("radius and length", (radius, length), 2) ** 2
    across = rr / 4 + ll / 12
    return rigid_body(m, c, np.diag((across, across, rr / 2)) * single("m", m))


def sphere(m: float, radius: float, c: Iterable[float] = _ORIGIN) -> RigidInertia:
    """Return the inertia of a solid sphere: 2 m r²/5 about each axis through c.

    Source: GUIDE (25); SV-7.1; KIM-1.6.
    """
    rr = _lengths("radius", radius) ** 2
    return rigid_body(m, c, np.eye(3) * (0.4 * single("m", m) * rr))


def _lengths(name: str, x: Any, *n: int) -> np.ndarray:
    """Return lengths x >= 0 as an array of n numbers, without n of one number [m]."""
    lengths = single(name, x, *n)
    if (lengths < 0).any():
        raise ModelError(f"{name}: {lengths.tolist()} m; lengths must be >= 0")
    return lengths


def inertia_rate(I: RigidInertia, v: Motion) -> np.ndarray:
    """Return dI/dt = v x* I - I v x of a body moving at v, 6x6.

    Source: GUIDE (27); SV-7.4.
    """
    M, V = np.asarray(I, float), cross_matrix(v)
    return -V.T @ M - M @ V


def momentum(I: RigidInertia, v: Motion) -> Force:
    """Return the spatial momentum h = I v [N·m·s; N·s], without a frame label.

    Source: GUIDE (23); SV-3.9, SV-7.1; KIM-1.7.
    """
    return I @ v


def kinetic_energy(I: RigidInertia, v: Motion) -> float:
    """Return v . I v / 2 [J], the same in every frame.

    Source: GUIDE (28); SV-7.5; KIM-1.6.
    """
    return 0.5 * (v @ (I @ v))


def bias_force(I: RigidInertia, v: Motion, f_known: Force | None = None) -> Force:
    """Return p = v x* I v - f_known, so that the unknown force on the body is I a + p.

    The result has the frame label of v, else that of f_known.

    Args:
        I, v: Inertia and velocity of the body.
        f_known: A known force on the body, such as its weight; None: zero.
            FrameMismatchError if its frame label differs from that of v.

    Source: GUIDE (30); SV-8.3.
    """
    p = cross_force(v, I @ v)
    return p if f_known is None else p - f_known


def force_at_point(f: Iterable[float], x: Iterable[float]) -> Force:
    """Return the wrench [x x f; f] about the origin, without label, of a force f at x.

    With the transform X from the base to a body, `X @ force_at_point(f, x)` is the
    force on the body in its coordinates, for f and x in base coordinates.

    Source: KIM-1.5.
    """
    f, x = (Vector(single(n, v, 3).tolist()) for n, v in (("f", f), ("x", x)))
    return Force(cross3(x, f), f)


def gravity_force(I: RigidInertia, g: Any) -> Force:
    """Return the weight I a_g of a body in the uniform gravity g, 3 [m/s²].

    The weight is a force about the origin of the frame of I, without a frame label; g
    is in the axes of this frame. Raises ShapeError or NonFiniteError if g is not valid.

    Source: GUIDE, section 6.6; SV-8.4.
    """
    return I @ Motion(_ORIGIN, single("g", g, 3).tolist())


def equation_of_motion(I: RigidInertia, v: Motion, a: Motion) -> Force:
    """Return the force that causes an acceleration: f = I a + v x* I v = d(I v)/dt.

    Args:
        I, v, a: Inertia, velocity and spatial acceleration of the body. The result has
            the frame label of v, which is not compared with the label of a.

    Source: GUIDE (29); SV-3.10, SV-8.1, SV-8.2; KIM-1.9.
    """
    return I @ a + cross_force(v, I @ v)


def acceleration(I: RigidInertia, v: Motion, f: Force) -> Motion:
    """Return the spatial acceleration caused by a force: a = I^-1 (f - v x* I v).

    I is the inertia of the body, v its velocity, f the total force on it. The result
    has no frame label.

    Raises numpy's LinAlgError for a mass <= 0, or a principal moment about the centre
    of mass of at most 1e-14 times the largest entry of I.I; FrameMismatchError if v and
    f have different labels.

    Source: GUIDE (29); SV-8.1; KIM-1.9.
    """
    least = np.linalg.eigvalsh(np.asarray(I.Ic, float))[0]
    if I.m <= 0 or least <= 1e-14 * float(np.abs(I.I.entries).max()):
        raise np.linalg.LinAlgError(
            f"the inertia is singular (mass {I.m} kg, least principal moment"
            f" {least:.3g} kg·m²): no force fixes its acceleration"
        )
    left = np.array(list(f - cross_force(v, I @ v)), float)
    return Motion.of(np.linalg.solve(np.asarray(I, float), left).tolist())


def joint_acceleration(
    v: Motion, S: MotionSubspace, qd: Any, qdd: Any, ring: Motion | None = None
) -> Motion:
    """Return the acceleration across a joint with motion subspace S.

        a2 - a1 = v x S qd + ring + S qdd

    With one coordinate v may be the velocity of either body: v x s qd = v1 x v2.

    Args:
        v: Velocity of the body in which S is fixed [rad/s; m/s].
        S: Motion subspace, 6xr.
        qd: Joint velocities, r.
        qdd: Joint accelerations, r.
        ring: Apparent derivative of S as seen from that body, times qd; None: zero.

    Returns:
        Spatial acceleration a2 - a1 of the second body relative to the first, with the
        frame label that v, S or ring has.

    Raises:
        TypeError: qd or qdd has not r numbers.
        FrameMismatchError: v, S or ring have different frame labels.

    Source: GUIDE (32); SV-3.7, SV-6.3, SV-6.4, SV-9.2.
    """
    across = cross_motion(v, S @ qd) + S @ qdd
    return across if ring is None else across + ring


def joint_force(S: MotionSubspace, f: Force) -> np.ndarray:
    """Return tau = S.T f of the force f that a joint transmits, (r,) [N·m | N].

    S is 6xr. f acts on the body that moves by S qd relative to the other. tau . qd is
    the power of the joint; the constraint part of f does no work. Raises
    FrameMismatchError if S and f have different frame labels.

    Source: GUIDE (34); SV-9.4.
    """
    return np.array(list(S.T @ f), float)
