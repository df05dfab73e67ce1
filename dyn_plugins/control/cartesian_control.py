"""Control laws of a tool: Cartesian impedance, operational space.

They share the motion of the tool, the wrenches of its springs and dampers, and its
inertia, which is regular also at singular positions of the robot. Another `reference`
than the two, and a threshold or length that is not above 0, raise UnsupportedError when
the Program is built, and so does the option joint_friction. g has the springs that act.
"""

from dyn_core.authoring import (
    Factored,
    Matrix,
    Motion,
    Required,
    TracedSolver,
    Transform,
    Vector,
    absolute,
    dexp6_inverse,
    eigen_symmetric,
    hookimpl,
    joint_factors,
    log_transform,
    logical_and,
    logical_not,
    maximum,
    quat_matrix,
    require,
    split_q,
    split_v,
    sqrt,
    total,
    where,
)
from dyn_core.errors import QuaternionError, UnsupportedError
from dyn_core.problems import (
    CARTESIAN_CONTROL,
    CORIOLIS_FORCE,
    GRAVITY_FORCE,
    MASS_MATRIX,
)
from dyn_core.validation import Name, Quantity
from dyn_plugins._options import known_link
from dyn_plugins.kinematics.kinematics import (
    frame_and_jacobian,
    frame_motion,
    of_origin,
    to_reference,
)

THRESHOLD, LENGTH = 0.02, 0.1  # of singular values; of the angular rows [m]
UNIT = 2e-3  # largest error of a quaternion's squared length: 0.001 of its length
LEAST_MOBILITY = 1e-12  # an axis that moves less has no damping by ratio
AXES = range(6)


def cartesian_impedance(
    model,
    q,
    qd,
    pose_ref,
    stiffness,
    v_ref,
    a_ref,
    f_ref,
    ratio,
    damping,
    energy_limit,
    q_rest,
    rest_stiffness,
    rest_damping,
    mass_matrix,
    gravity_force,
    coriolis_force,
    frame,
    reference,
    singularity_threshold,
    characteristic_length,
):
    """Return the joint forces of a spring and dampers between a tool and its reference.

        tau = g + J.T (dlog(e).T K e + D (v_ref - v) + f_ref) + H qdd_r + C(q, qd) qd_r
              + N.T (rest_stiffness (q_rest (-) q) - rest_damping qd)
        e = log(T^-1 T_ref),   D as in Tool.damper,   N.T = 1 - J.T Lambda J H^-1
        qd_r = H^-1 J.T Lambda v_ref,   qdd_r = H^-1 J.T Lambda (a_ref - dJ/dt qd_r)

    The spring is the gradient of an energy, and the robot's own inertia and Coriolis
    forces are left: at a reference at rest the energy of robot and spring never grows
    but by outside forces. Lambda, see TaskInertia, serves v_ref, a_ref and the posture
    alone: without them no position is singular. At an angle of pi the axis of the
    spring's rotation is that of log3, and its moment changes its sign. A quaternion of
    pose_ref whose length is not 1 within 0.001 raises QuaternionError when the Program
    runs, and a singular H SingularError. Only one of the inputs q_rest and
    rest_stiffness is an UnsupportedError: by the engine native when the Program is
    built, by plain and graph when it is called.

    Inputs and outputs: those of CARTESIAN_CONTROL, so the result is tau, nv. pose_ref:
    position [m], quaternion x, y, z, w, in the base. stiffness K and damping are 6 x 6,
    v_ref, a_ref (of the frame's origin), f_ref and ratio have 6 numbers, all [angular;
    linear]; energy_limit [J]; q_rest nq, rest_stiffness and rest_damping nv. Those
    after stiffness may be None: without this term; ratio and damping as in Tool.damper.

    Args:
        mass_matrix, gravity_force, coriolis_force: Slots of these problems.
        frame: Name of the link; an unknown one raises ModelError when the Program is
            built, one that no joint moves UnsupportedError like q_rest alone.
        reference: Axes of stiffness, v_ref, a_ref and f_ref, at the frame's origin:
            aligned with the base, or local, of the frame (stiffness: of the reference
            pose, the same where e is zero).
        singularity_threshold: Singular value of J, its angular rows times
            characteristic_length [m], below which Lambda stays finite.
        characteristic_length: Length by which angles and lengths are compared [m].

    Source: N. Hogan, Impedance Control, J. Dyn. Sys. Meas. Control 107 (1985); E.
        Fasse and P. Gosselin, Spatio-geometric impedance control of Gough-Stewart
        platforms, IEEE T-RA 15 (1999); B. Paden and R. Panja, Int. J. Control 47
        (1988), for the terms of a moving reference.
    """
    tool = Tool(model, q, qd, pose_ref, frame, reference)
    factors = joint_factors(model, mass_matrix(q))
    wrench = tool.spring(stiffness, energy_limit)
    wrench = wrench + tool.damper(stiffness, factors, ratio, damping, v_ref)
    if f_ref is not None:
        wrench = wrench + Vector(f_ref)
    tau = gravity_force(q) + tool.J.T @ wrench
    moving = v_ref is not None or a_ref is not None
    rest = posture_force(model, q, qd, q_rest, rest_stiffness, rest_damping)
    if not moving and rest is None:
        return tau
    inertia = TaskInertia(tool.J, factors, singularity_threshold, characteristic_length)
    if rest is not None:
        tau = tau + inertia.idle(rest)
    if not moving:
        return tau
    a = Vector.zeros(6) if a_ref is None else Vector(a_ref)
    if v_ref is None:
        return tau + inertia.joint_force(a)
    qd_r = inertia.joint_motion(v_ref)
    # A form that is bilinear in two velocities, from its squares at these two.
    mean, half = (qd + qd_r) * 0.5, (qd - qd_r) * 0.5
    turning = bias(model, tool, q, mean, frame) - bias(model, tool, q, half, frame)
    tau = tau + inertia.joint_force(a - turning)
    return tau + coriolis_force(q, mean) - coriolis_force(q, half)


def operational_space(
    model,
    q,
    qd,
    pose_ref,
    stiffness,
    v_ref,
    a_ref,
    f_ref,
    ratio,
    damping,
    energy_limit,
    q_rest,
    rest_stiffness,
    rest_damping,
    mass_matrix,
    gravity_force,
    coriolis_force,
    frame,
    reference,
    singularity_threshold,
    characteristic_length,
):
    """Return the joint forces under which a tool moves like a mass on a spring.

        tau = g + c(q, qd) + J.T (Lambda (a_ref - dJ/dt qd) + F) + N.T tau_0
        F = dlog(e).T K e + D (v_ref - v) + f_ref,   N.T = 1 - J.T Lambda J H^-1
        tau_0 = rest_stiffness (q_rest (-) q) - rest_damping qd
        then  Lambda (a - a_ref) = F + outside wrench,   e = log(T^-1 T_ref)

    The tool has its own inertia Lambda, without Coriolis forces, and idle motions of a
    redundant robot do not move it. Where a singular value of J falls below the
    threshold, Lambda stays finite in that direction, see TaskInertia. A quaternion of
    pose_ref whose length is not 1 within 0.001 raises QuaternionError when the Program
    runs, and a singular H SingularError. Only one of the inputs q_rest and
    rest_stiffness is an UnsupportedError: by the engine native when the Program is
    built, by plain and graph when it is called.

    Inputs and outputs: those of CARTESIAN_CONTROL, so the result is tau, nv. pose_ref:
    position [m], quaternion x, y, z, w, in the base. stiffness K and damping are 6 x 6,
    v_ref, a_ref (of the frame's origin), f_ref and ratio have 6 numbers, all [angular;
    linear]; energy_limit [J]; q_rest nq, rest_stiffness and rest_damping nv. Those
    after stiffness may be None: without this term; ratio and damping as in Tool.damper.

    Args:
        mass_matrix, gravity_force, coriolis_force: Slots of these problems.
        frame: Name of the link; an unknown one raises ModelError when the Program is
            built, one that no joint moves UnsupportedError like q_rest alone.
        reference: Axes of stiffness, v_ref, a_ref and f_ref, at the frame's origin:
            aligned with the base, or local, of the frame (stiffness: of the reference
            pose, the same where e is zero).
        singularity_threshold: Singular value of J, its angular rows times
            characteristic_length [m].
        characteristic_length: Length by which angles and lengths are compared [m].

    Source: O. Khatib, A unified approach for motion and force control of robot
        manipulators: the operational space formulation, IEEE J. Robotics and Automation
        3 (1987).
    """
    tool = Tool(model, q, qd, pose_ref, frame, reference)
    factors = joint_factors(model, mass_matrix(q))
    inertia = TaskInertia(tool.J, factors, singularity_threshold, characteristic_length)
    wrench = tool.spring(stiffness, energy_limit)
    wrench = wrench + tool.damper(stiffness, factors, ratio, damping, v_ref)
    if f_ref is not None:
        wrench = wrench + Vector(f_ref)
    a = -bias(model, tool, q, qd, frame)
    if a_ref is not None:
        a = a + Vector(a_ref)
    tau = tool.J.T @ (wrench + inertia.force(a))
    rest = posture_force(model, q, qd, q_rest, rest_stiffness, rest_damping)
    if rest is not None:
        tau = tau + inertia.idle(rest)
    return tau + gravity_force(q) + coriolis_force(q, qd)


def bias(model, tool, q, qd, frame):
    """Return dJ/dt qd of the frame in the axes of the tool, [angular; linear], (6,).

    The linear part is the acceleration of the frame's origin at qdd = 0. q and qd are
    not split by joint; `tool` gives the axes; `frame` is the name of the link, an
    unknown one raises ModelError.
    """
    parts = split_q(model, q), split_v(model, qd)
    v, a, X = frame_motion(model, *parts, frame)
    return tool.in_axes(to_reference(X, "aligned") @ of_origin(v, a))


def posture_force(model, q, qd, q_rest, stiffness, damping):
    """Return the joint forces of the posture spring and damper, (nv,), or None.

        stiffness (q_rest (-) q) - damping qd

    q_rest and stiffness None: no spring; damping None: no damper. The result is None
    without spring and damper. Refused: one of q_rest and stiffness alone.
    """
    if (q_rest is None) != (stiffness is None):
        named, other = ("q_rest", "rest_stiffness")[:: 1 if stiffness is None else -1]
        raise UnsupportedError(f"inputs: {named} acts by {other}; valid: both, or none")
    if stiffness is None and damping is None:
        return None
    force = Vector.zeros(model.nv)
    if stiffness is not None:
        force = stiffness * Vector(model.difference(q, q_rest))
    return force if damping is None else force - damping * qd


class Tool:
    """Velocity v and Jacobian J of a frame, and its displacement e to a reference pose.

    Six numbers, and the six rows of J, are [angular; linear] at the frame's origin, in
    axes aligned with the base, or local, of the frame; e = log(T^-1 T_ref) in the
    frame's axes. pose_ref: In the base, position [m] and quaternion x, y, z, w.
    Refused: a frame that no joint moves, and a quaternion whose length is not 1 within
    0.001 (by the Program).
    """

    def __init__(self, model, q, qd, pose_ref, frame, reference):
        if not model.frame(frame).body:
            raise UnsupportedError(f"frame: no joint moves link '{frame}'")
        X, J = frame_and_jacobian(model, q, frame)
        self._R, self._aligned = X.E.T, reference == "aligned"
        self._R_ref, p_ref = _reference(pose_ref)
        target = Transform(self._R_ref.T, p_ref)
        self.e = Vector(log_transform(target @ X.inverse))
        self.J = J if self._aligned else Matrix(
            turned(X.E, column) for column in J.T.rows
        ).T  # fmt: skip
        self.v = self.J @ qd
        if model.driven:  # J qd alone lacks the velocity of driven places
            v, _, X = frame_motion(model, split_q(model, q), split_v(model, qd), frame)
            self.v = self.in_axes(to_reference(X, "aligned") @ v)

    def in_axes(self, motion):
        """Return a motion in base axes, rotated to the tool's about the same point."""
        return Vector(motion) if self._aligned else turned(self._R.T, motion)

    def spring(self, stiffness, energy_limit):
        """Return the wrench of the spring on the frame, (6,).

            wrench . v = -dV/dt,   V = e.T K e / 2
            V = E (2 s - 1) beyond the energy E,   s = sqrt(e.T K e / (2 E))

        Beyond E [J] (None: no limit) the wrench keeps the size that it has there, in
        the metric of K. K (6, 6) is symmetric, E above zero; neither is checked. Axes
        of K are the base's if reference is aligned, else those of the reference pose.
        """
        if self._aligned:
            pull = turned(self._R_ref.T, stiffness @ turned(self._R_ref, self.e))
        else:
            pull = stiffness @ self.e
        if energy_limit is not None:
            energy = (pull @ self.e) * 0.5
            beyond = energy > energy_limit
            part = sqrt(energy_limit / where(beyond, energy, energy_limit))
            pull = pull * where(beyond, part, 1.0)
        wrench = dexp6_inverse(Motion.of(self.e)).T @ pull
        return turned(self._R, wrench) if self._aligned else wrench

    def damper(self, stiffness, factors, ratio, damping, v_ref):
        """Return the wrench of the dampers on the frame, (6,).

            wrench = D (v_ref - v),   D = damping + diag(2 ratio_i sqrt(K_ii m_i))
            m_i = 1 / (J H^-1 J.T)_ii,  the mass that a force along axis i alone moves

        If joints cannot move the frame along axis i, or K_ii <= 0, only `damping` acts
        along it. A ratio of None is 1 without `damping`, else 0.
        """
        slip = -self.v if v_ref is None else Vector(v_ref) - self.v
        result = Vector.zeros(6) if damping is None else damping @ slip
        if ratio is None and damping is not None:
            return result
        designed = []
        for i, row in enumerate(self.J.rows):
            z, Dz = factors.halves(row)
            mobility, k = z @ Dz, stiffness[i, i]
            good = logical_and(mobility > LEAST_MOBILITY, k > 0.0)
            square = where(good, k, 0.0) / where(good, mobility, 1.0)
            c = 2.0 * sqrt(where(good, square, 1.0))
            share = where(good, c, 0.0) * slip[i]
            designed.append(share if ratio is None else ratio[i] * share)
        return result + Vector(designed)


def turned(R, six):
    """Return the Vector (R a, R b) of six numbers (a, b) and a matrix R, 3 x 3."""
    first, second = Vector(list(six)[:3]), Vector(list(six)[3:])
    return Vector((*(R @ first), *(R @ second)))


def _reference(pose_ref):
    """Return the rotation matrix, to the base's axes, and position of a reference pose.

    pose_ref: Position [m], then quaternion x, y, z, w. Its length must be 1 within
    0.001, else QuaternionError in the Program; NaN passes. It is normalised.
    """
    quaternion = Vector(pose_ref[k] for k in range(3, 7))
    square = quaternion @ quaternion
    require(logical_not(absolute(square - 1.0) > UNIT), QuaternionError, "pose_ref")
    unit = quaternion * (1.0 / sqrt(where(square > 0.0, square, 1.0)))
    return quat_matrix(unit), Vector(pose_ref[k] for k in range(3))


class TaskInertia:
    """Inertia of a frame, and the joint motions and forces that belong to its axes.

        Lambda = (J H^-1 J.T + S^-1 W S^-1)^-1,   S = diag(l, l, l, 1, 1, 1)
        W = b sum_i (s_0^2 - s_i^2)^2 / s_0^2 u_i u_i.T  over all s_i < s_0
        b = tr(S J H^-1 J.T S) / tr(S J J.T S)

    s_i and u_i are singular values and left singular vectors of S J, s_0 is the
    threshold [m | 1], l the length [m]. W is zero away from singular positions, and
    dampens only the directions in which the frame can hardly move; it and its first
    derivatives are continuous.
    """

    def __init__(self, J, factors, threshold, length):
        self.J, self._H = J, factors
        self._S = (length,) * 3 + (1.0,) * 3
        rows = [
            Vector(s * x for x in row) for s, row in zip(self._S, J.rows, strict=True)
        ]
        halves = [factors.halves(row) for row in rows]
        JJ = _symmetric(lambda i, j: rows[i] @ rows[j])
        mobility = _symmetric(lambda i, j: halves[i][0] @ halves[j][1])
        squares, U = eigen_symmetric(JJ)
        scale = total(mobility[i, i] for i in AXES) / total(JJ[i, i] for i in AXES)
        square = threshold * threshold
        weak = [maximum(square - x, 0.0) for x in squares]
        weights = [scale / square * x * x for x in weak]
        damped = _symmetric(
            lambda i, j: (
                mobility[i, j] + total(U[i, k] * weights[k] * U[j, k] for k in AXES)
            )
        )
        self._factors = Factored(damped, [0.0] * 6, ["frame"] * 6)

    def force(self, a):
        """Return Lambda a, the wrench (6,) that accelerates the frame by a, (6,).

        Axes are those of J's rows. Near singular positions the acceleration differs.
        """
        scaled = [s * x for s, x in zip(self._S, a, strict=True)]
        x = self._factors.solve(scaled)
        return Vector(s * y for s, y in zip(self._S, x, strict=True))

    def joint_force(self, a):
        """Return J.T Lambda a, (nv,): the joint forces of `force` for a motion a."""
        return self.J.T @ self.force(a)

    def joint_motion(self, a):
        """Return H^-1 J.T Lambda a, (nv,): the joint motion of least energy for a."""
        return self._H.solve(self.joint_force(a))

    def idle(self, tau):
        """Return (1 - J.T Lambda J H^-1) tau, (nv,), which does not move the frame.

        Near singular positions the frame may move.
        """
        return tau - self.joint_force(self.J @ self._H.solve(tau))


def _symmetric(entry):
    """Return the Matrix (6, 6) with the entries entry(i, j), i <= j, on both sides."""
    upper = {(i, j): entry(i, j) for i in AXES for j in AXES if i <= j}
    return Matrix([[upper[min(i, j), max(i, j)] for j in AXES] for i in AXES])


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    common = {
        "options": {
            "frame": Required("the name of a link"),
            "reference": "aligned",
            "singularity_threshold": THRESHOLD,
            "characteristic_length": LENGTH,
        },
        "valid": {
            "frame": known_link,
            "reference": Name(("aligned", "local")),
            "singularity_threshold": Quantity(0.0, above=True),
            "characteristic_length": Quantity(0.0, above=True),
        },
        "slots": {
            "mass_matrix": MASS_MATRIX,
            "gravity_force": GRAVITY_FORCE,
            "coriolis_force": CORIOLIS_FORCE,
        },
        "fills": {
            "mass_matrix": "crba",
            "gravity_force": "gravity",
            "coriolis_force": "coriolis",
        },
        "by_joint": False,
    }
    return [
        TracedSolver(
            "cartesian_impedance",
            CARTESIAN_CONTROL,
            cartesian_impedance,
            default=True,
            **common,
        ),
        TracedSolver(
            "operational_space",
            CARTESIAN_CONTROL,
            operational_space,
            **common,
        ),
    ]
