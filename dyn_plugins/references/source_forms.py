"""Planar chains by the source's own formulas, one function a case, by NumPy.

They are compared with the one algorithm for all cases. Part I has no active joints,
Part II no joints on a line, neither has links with mass; solvers refuse other chains.
Each rule of a case computes a joint from the next one. Letters are the source's; joints
are 0..n-1.
"""

from typing import Any, NamedTuple

import numpy as np

from dyn_core.authoring import NumpySolver, hookimpl
from dyn_core.errors import SingularError, UnsupportedError
from dyn_core.planar import GUIDED, LINE
from dyn_core.planar.problems import (
    CHAIN_ACCELERATIONS,
    CHAIN_FORCE_JACOBIAN,
    CHAIN_TORQUE_RESPONSE,
)

TOL = 1e-10  # tolerance of dimensionless pivots, WAW-6.2 and WAW-11.2
_0 = np.zeros(2)
_00 = np.zeros((2, 2))
_I = np.eye(2)


class Chain(NamedTuple):
    """State and constraints of a chain of n joints, by the letters of the formulas.

    Attributes:
        m, l: Masses of joints, n [kg], lengths of links, n - 1 [m].
        r, L: Directions of links, and r turned by +90 degrees / l, (n - 1, 2).
        e: Right sides of the link equations: squared relative velocity / l, n - 1.
        F: External forces on the joints, (n, 2) [N].
        kind: FREE, LINE or GUIDED of each joint, n.
        s, a_w: Unit normal of the line, and given acceleration [m/s²], (n, 2).
        active, alpha_w: By joint: nonzero if its angle has the acceleration alpha_w.
    """

    m: Any
    l: Any
    r: Any
    L: Any
    e: Any
    F: Any
    kind: Any
    s: Any
    a_w: Any
    active: Any
    alpha_w: Any

    def mass(self, i):
        """Return the mass that makes the pivots of link i dimensionless [kg].

        The smaller mass, maybe 0, of the joints at its ends that are not guided; if
        both are guided, the smallest positive mass of all joints; 1.0 if there is none.
        """
        pair = [self.m[k] for k in (i, i + 1) if self.kind[k] != GUIDED]
        return min(pair or [m for m in self.m if m > 0] or [1.0])


class _StepPart1(NamedTuple):
    """Coefficients of a joint in Part I.

        a = A F^d + b,   F^d_next = C F^d + d,   D = dd/db_next

    `dropped` is 1.0 if the equation of the link to the next joint is not solved; and
    0.0.

    Source: WAW-2.2, WAW-8.1.
    """

    A: Any
    b: Any
    C: Any = _00
    d: Any = _0
    D: Any = _00
    dropped: Any = (0.0, 0.0)


class _StepPart2(NamedTuple):
    """Coefficients of a joint in Part II: four responses to F = F^d and tau = tau^w.

        a = A F + bw tau + b,       alpha^o = p.F + qw tau + q
        F_next = C F + dw tau + d,  tau_next = g.F + hw tau + h

    `dropped` is 1.0 if the equation is not solved: of the link to the next joint, and
    of that joint's angle.

    Source: WAW-9.1.
    """

    A: Any
    b: Any
    bw: Any = _0
    p: Any = _0
    qw: Any = 0.0
    q: Any = 0.0
    C: Any = _00
    dw: Any = _0
    d: Any = _0
    g: Any = _0
    hw: Any = 0.0
    h: Any = 0.0
    dropped: Any = (0.0, 0.0)


def take(model, x, v, F, *modes):
    """Return the Chain of a state.

    Args:
        model: Planar chain of n joints.
        x, v, F: Positions [m], velocities [m/s] and forces [N] of the joints, (n, 2).
        modes: kind, s, a_w, active and alpha_w, in this order; None or left out: the
            model's.

    Raises:
        UnsupportedError: The last joint is active.
        SingularError: The two joints of a link coincide.
    """
    constraints = model.constraints
    n = model.n
    defaults = (
        (constraints.kind, n),
        (constraints.s, (n, 2)),
        (constraints.a_w, (n, 2)),
        (constraints.active, n),
        (constraints.alpha_w, n),
    )
    modes = (*modes, *[None] * (len(defaults) - len(modes)))
    modes = [
        np.array(default if value is None else value, float).reshape(shape)
        for value, (default, shape) in zip(modes, defaults, strict=True)
    ]
    if modes[3][-1]:
        raise UnsupportedError(f"joint {n - 1} is active; valid: joints with an angle")
    l = np.array(model.lengths).reshape(n - 1)
    c = np.diff(x, axis=0)
    size = np.linalg.norm(c, axis=1)
    for i in np.flatnonzero(size <= 1e-12 * l):
        raise SingularError(f"joints {i} and {i + 1} are at one place")
    r = c / size[:, None]
    L = np.column_stack([-r[:, 1], r[:, 0]]) / l[:, None]
    e = (np.diff(v, axis=0) ** 2).sum(axis=1) / l
    return Chain(np.array(model.masses), l, r, L, e, F, *modes)


def part1(c):
    """Return the _StepPart1 of each joint, a list, by the rules of sections 5 and 6.

    Active joints are taken as passive, links as massless; the solver refuses such
    chains before, see _OfCases. A link equation whose dimensionless pivot is TOL
    (1e-10) or less is not solved, but marked in `dropped`.

    Source: WAW-5.2, WAW-6.1 to WAW-6.5.
    """
    steps = [_last1(c)]
    for i in reversed(range(len(c.m) - 1)):
        rule = {GUIDED: _guided1, LINE: _line1}.get(c.kind[i], _free1)
        steps.insert(0, rule(c, i, steps[0]))
    return steps


def _last1(c):
    """Return the _StepPart1 of the last joint: WAW-6.3, 6.5; 6.1 for a guided one."""
    m, s, F, a_w = c.m[-1], c.s[-1], c.F[-1], c.a_w[-1]
    if c.kind[-1] == GUIDED:
        return _StepPart1(_00, a_w)
    if c.kind[-1] == LINE:
        P = _I - np.outer(s, s)
        return _StepPart1(P / m, P @ F / m + s * (s @ a_w))
    return _StepPart1(_I / m, F / m)


def _free1(c, i, after):
    """Return the _StepPart1 of a free joint i from the next. WAW-5.2, 5.3: eq. 5-9."""
    m, r, F = c.m[i], c.r[i], c.F[i]
    rr = np.outer(r, r)
    D = 1 + m * (r @ after.A @ r)
    sigma = r @ after.b + c.e[i]
    C = rr / D
    A = _I / m - rr / (m * D)
    b = A @ F + sigma * r / D
    return _StepPart1(A, b, C, C @ F - m * sigma * r / D, -m * rr / D)


def _line1(c, i, after):
    """Return the _StepPart1 of a joint i on a line from the next.

    WAW-6.4: eq. 10; a given acceleration along s is added. If neither joint can move
    along the link, its equation is dropped.
    """
    m, r, F, s = c.m[i], c.r[i], c.F[i], c.s[i]
    w = s * (s @ c.a_w[i])
    P = _I - np.outer(s, s)
    D = m * (r @ after.A @ r) + 1 - (s @ r) ** 2
    if D <= TOL:
        return _StepPart1(P / m, P @ F / m + w, dropped=(1.0, 0.0))
    rr = np.outer(r, r)
    sigma = r @ after.b + c.e[i] - r @ w
    C = rr @ P / D
    A = P / m - P @ rr @ P / (m * D)
    b = A @ F + sigma * (P @ r) / D + w
    return _StepPart1(A, b, C, C @ F - m * sigma * r / D, -m * rr / D)


def _guided1(c, i, after):
    """Return the _StepPart1 of a guided joint i from the next: WAW-6.1.

    WAW-6.2 if the next joint cannot follow the link: its equation is dropped.
    """
    r, a_w = c.r[i], c.a_w[i]
    D = r @ after.A @ r
    if c.m[i + 1] * D <= TOL:
        return _StepPart1(_00, a_w, dropped=(1.0, 0.0))
    d = r * (r @ a_w - r @ after.b - c.e[i]) / D
    return _StepPart1(_00, a_w, _00, d, -np.outer(r, r) / D)


def part2(c):
    """Return the _StepPart2 of each joint, a list, by the rules of sections 9 to 11.

    Joints on a line are taken as free, links as massless; the solver refuses such
    chains before, see _OfCases. Unsolvable equations are marked in `dropped`.

    Source: WAW-9.2, WAW-11.6.
    """
    m, F, a_w = c.m[-1], c.F[-1], c.a_w[-1]
    steps = [
        _StepPart2(_00, a_w) if c.kind[-1] == GUIDED else _StepPart2(_I / m, F / m)
    ]
    for i in reversed(range(len(c.m) - 1)):
        rule = _RULES[c.kind[i] == GUIDED, c.active[i + 1] != 0]
        steps.insert(0, rule(c, i, steps[0]))
    return steps


def _free_active(c, i, after):
    """Return the step of a free joint before an active one. WAW-10.1: eq. 14-23."""
    A, b, bw, p, qw, q = after[:6]
    m, r, L, F = c.m[i], c.r[i], c.L[i], c.F[i]
    k0 = -1 / m - r @ A @ r
    k1 = r @ A @ L - r @ bw
    k2 = r / m
    k3 = -r @ A @ L
    k4 = r @ F / m - r @ b - c.e[i]
    k5 = p @ r - L @ A @ r
    k6 = -p @ L + qw + L @ A @ L - L @ bw + L @ L / m
    k7 = L / m
    k8 = p @ L - L @ A @ L - L @ L / m
    k9 = q - L @ b + L @ F / m - c.alpha_w[i + 1]
    k11 = k5 * k1 - k0 * k6
    k12 = (k2 * k6 - k7 * k1) / k11
    k13 = (k7 * k0 - k2 * k5) / k11
    k14, k15, k16, k17 = _last_k((k0, k1, k3, k4), (k5, k6, k8, k9), k11)
    C = np.outer(r, k12) - np.outer(L, k13)
    dw, d = r * k14 + L - L * k15, r * k16 - L * k17
    A_i, bw_i, b_i = (_I - C) / m, -dw / m, (F - d) / m
    p_i = C.T @ A @ L + k13 * (bw @ L) - A_i @ L
    qw_i = L @ A @ dw + L @ bw * k15 - L @ bw_i
    q_i = L @ A @ d + L @ bw * k17 + L @ b - L @ b_i
    return _StepPart2(A_i, b_i, bw_i, p_i, qw_i, q_i, C, dw, d, k13, k15, k17)


def _guided_active(c, i, after):
    """Return the _StepPart2 of a guided joint i before an active one, from the next.

    WAW-11.1: eq. 24-32; WAW-11.2 if the equations of link and angle are linearly
    dependent: the weaker one is dropped (the angle's, if equal), or both if both
    vanish.
    """
    A, b, bw, p, qw, q = after[:6]
    r, L, a_w, l = c.r[i], c.L[i], c.a_w[i], c.l[i]
    k0 = -r @ A @ r
    k1 = r @ A @ L - r @ bw
    k3 = -r @ A @ L
    k4 = r @ a_w - r @ b - c.e[i]
    k5 = p @ r - L @ A @ r
    k6 = -p @ L + qw + L @ A @ L - L @ bw
    k8 = p @ L - L @ A @ L
    k9 = q - L @ b + L @ a_w - c.alpha_w[i + 1]
    k11 = k5 * k1 - k0 * k6
    m, no_link, no_angle = c.mass(i), False, False
    if abs(k11) * m * m * l * l <= TOL:
        link = (abs(k0) + abs(k1) * l) * m
        angle = (abs(k5) + abs(k6) * l) * m * l
        no_link = link <= TOL or link < angle
        no_angle = angle <= TOL or link >= angle
        if no_link:
            k0, k1, k3, k4 = 1.0, 0.0, 0.0, 0.0
        if no_angle:
            k5, k6, k8, k9 = 0.0, 1.0, 0.0, 0.0
        k11 = k5 * k1 - k0 * k6
    k14, k15, k16, k17 = _last_k((k0, k1, k3, k4), (k5, k6, k8, k9), k11)
    dw, d = r * k14 + L - L * k15, r * k16 - L * k17
    qw_i = L @ A @ dw + L @ bw * k15
    q_i = L @ A @ d + L @ bw * k17 + L @ b - L @ a_w
    gone = float(no_link), float(no_angle)
    return _StepPart2(_00, a_w, _0, _0, qw_i, q_i, _00, dw, d, _0, k15, k17, gone)


def _guided_inactive(c, i, after):
    """Return the _StepPart2 of a guided joint i before an inactive one, from the next.

    WAW-11.3; WAW-11.4 if the next joint cannot follow the link, whose equation is then
    dropped: no force along the link.
    """
    A, b, r, L, a_w = after.A, after.b, c.r[i], c.L[i], c.a_w[i]
    D = r @ A @ r
    dropped = D * c.mass(i) <= TOL
    if dropped:
        dw, d = L, _0
    else:
        dw = L - r * (r @ A @ L) / D
        d = r * (r @ (a_w - b) - c.e[i]) / D
    qw_i = L @ A @ dw
    q_i = L @ A @ d + L @ b - L @ a_w
    gone = float(dropped), 0.0
    return _StepPart2(_00, a_w, qw=qw_i, q=q_i, dw=dw, d=d, dropped=gone)


def _free_inactive(c, i, after):
    """Return the _StepPart2 of a free joint before an inactive one: WAW-11.5."""
    A, b, m, r, L, F = after.A, after.b, c.m[i], c.r[i], c.L[i], c.F[i]
    D = 1 + m * (r @ A @ r)
    C = np.outer(r, r) / D
    dw = L - r * (m * (r @ A @ L)) / D
    d = (r * (r @ F) - m * r * (r @ b + c.e[i])) / D
    A_i, bw_i, b_i = (_I - C) / m, -dw / m, (F - d) / m
    p_i = C.T @ A @ L - A_i @ L
    qw_i = L @ A @ dw - L @ bw_i
    q_i = L @ A @ d + L @ b - L @ b_i
    return _StepPart2(A_i, b_i, bw_i, p_i, qw_i, q_i, C, dw, d)


_RULES = {
    (False, True): _free_active,
    (False, False): _free_inactive,
    (True, True): _guided_active,
    (True, False): _guided_inactive,
}


def _last_k(of_link, of_angle, k11):
    """Return k14, k15, k16, k17 of WAW-10.1.

    of_link: k0, k1, k3, k4; of_angle: k5, k6, k8, k9; k11: their determinant, not zero.
    """
    (k0, k1, k3, k4), (k5, k6, k8, k9) = of_link, of_angle
    return (
        (k6 * k3 - k1 * k8) / k11,
        (k0 * k8 - k5 * k3) / k11,
        (k4 * k6 - k1 * k9) / k11,
        (k0 * k9 - k5 * k4) / k11,
    )


def first_torque(c, first):
    """Return tau^w of joint 0: 0 unless angle 0 is active and can turn (WAW-9.4)."""
    if not c.active[0] or first.qw * c.mass(0) * c.l[0] ** 2 <= TOL:
        return 0.0  # nothing turns the link
    return (c.alpha_w[0] - first.q) / first.qw


class _OfCases(NumpySolver):
    """A solver by the source's cases; left_out has none: "active" or "line"."""

    reference = True
    left_out = "active"

    def refusal(self, model):
        """Return why the source has no case for a chain, as text, or None."""
        constraints = model.constraints
        return self.gap(model, constraints.kind, constraints.active)

    def gap(self, model, kind, active):
        """Return why no case covers a link or joint, as text, or None.

        Links with mass or inertia have no case, and a constraint that left_out names.
        """
        heavy = np.array([model.link_masses, model.link_inertias]).any(axis=0)
        for i in np.flatnonzero(heavy):
            name = model.joint_names[i]
            return (
                f"link {i} from joint '{name}' has mass; valid: links without,"
                " chain_recursion"
            )
        refused, what = np.array(active, bool), "active"
        if self.left_out == "line":
            refused, what = np.array(kind) == LINE, "on a line"
        for i in np.flatnonzero(refused):
            name = model.joint_names[i]
            return f"joint {i} ('{name}') is {what}; valid: others, chain_recursion"
        return None

    def refuse(self, model, c):
        """Raise UnsupportedError if `gap` finds a reason."""
        reason = self.gap(model, c.kind, c.active)
        if reason is not None:
            raise UnsupportedError(f"{self.name}: {reason}")


def _outputs(c, a, F_d, tau, steps):
    """Return the outputs of CHAIN_ACCELERATIONS, a tuple of six arrays.

    They are a, F_d (row i by link i-1 on joint i, row 0 zero) and tau; alpha, of the
    joints' angles (n; the last is 0) [rad/s²]; the reactions (n, 2) [N]; and (n, 2)
    flags of dropped equations: row i of link i and angle i; angle 0 if it is active
    with torque 0.

    Source: WAW-2.1 (alpha), WAW-5.4 (reactions).
    """
    n = len(c.m)
    links = (c.L * np.diff(a, axis=0)).sum(axis=1)
    alpha = np.append(np.diff(links, prepend=0.0), 0.0)
    onward = np.vstack([F_d[1:], np.zeros(2)])
    reaction = c.m[:, None] * a - (c.F + F_d - onward)
    dropped = np.zeros((n, 2))
    for i, step in enumerate(steps[:-1]):
        dropped[i, 0], dropped[i + 1, 1] = step.dropped
    dropped[0, 1] = float(bool(c.active[0]) and tau[0] == 0.0)
    return a, F_d, tau, alpha, reaction, dropped


class Part1(_OfCases):
    """Accelerations of a chain without active joints, by the cases of Part I.

        a_i = A_i F^d_i + b_i,  F^d_{i+1} = C_i F^d_i + d_i

    Source: WAW-5.1 to WAW-5.4 (free), WAW-6.1, 6.2 (guided), WAW-6.4 (line), WAW-6.3,
        6.5 (last).
    """

    name = "chain_part1"
    signature = CHAIN_ACCELERATIONS
    source = "WAW-5.4, WAW-6.1 to WAW-6.5"

    def solve(self, model, x, v, F, kind, s, a_w, active, alpha_w):
        """Return a, F_d, tau, alpha, reactions and dropped flags of a state, by joint.

        A constraint argument that is None has the values of the chain.

        Inputs and outputs: those of CHAIN_ACCELERATIONS.

        Raises:
            UnsupportedError: A joint is active, or a link has mass or inertia.
            SingularError: The two joints of a link coincide.
        """
        c = take(model, x, v, F, kind, s, a_w, active, alpha_w)
        self.refuse(model, c)
        steps = part1(c)
        F_d, a = [np.zeros(2)], []
        for step in steps:
            a.append(step.A @ F_d[-1] + step.b)
            F_d.append(step.C @ F_d[-1] + step.d)
        return _outputs(c, np.array(a), np.array(F_d[:-1]), np.zeros(model.n), steps)


class Part2(_OfCases):
    """Accelerations of a chain with active joints, by the sixteen cases of Part II.

        a_i = A_i F + b^w_i tau + b_i,          alpha_i = p_i.F + q^w_i tau + q_i
        F_{i+1} = C_i F + d^w_i tau + d_i,      tau_{i+1} = g_i.F + h^w_i tau + h_i

    Source: WAW-9.1 to WAW-9.4, WAW-10.1, WAW-11.1 to WAW-11.6.
    """

    name = "chain_part2"
    left_out = "line"
    signature = CHAIN_ACCELERATIONS
    source = "WAW-9.4, WAW-10.1, WAW-11.1 to WAW-11.6"

    def solve(self, model, x, v, F, kind, s, a_w, active, alpha_w):
        """Return a, F_d, tau, alpha, reactions and dropped flags of a state, by joint.

        A constraint argument that is None has the values of the chain.

        Inputs and outputs: those of CHAIN_ACCELERATIONS.

        Raises:
            UnsupportedError: A joint is on a line, the last joint is active, or a link
                has mass or inertia.
            SingularError: The two joints of a link coincide.
        """
        c = take(model, x, v, F, kind, s, a_w, active, alpha_w)
        self.refuse(model, c)
        steps = part2(c)
        F_d, tau, a = [np.zeros(2)], [first_torque(c, steps[0])], []
        for step in steps:
            f, t = F_d[-1], tau[-1]
            a.append(step.A @ f + step.bw * t + step.b)
            F_d.append(step.C @ f + step.dw * t + step.d)
            tau.append(step.g @ f + step.hw * t + step.h)
        return _outputs(c, np.array(a), np.array(F_d[:-1]), np.array(tau[:-1]), steps)


class ForceJacobianSource(_OfCases):
    """Accelerations by forces, by the source's backward propagation along the chain.

        da_i/dF_j = da_i/dd_j C_j + da_i/db_j A_j
        da_i/db_k = [k = i] + da_i/dd_{k-1} D_{k-1} + da_i/db_{k-1} C_{k-1}.T

    The source has A_i wrong in the start, and no transpose here.

    Source: WAW-8.1, with slips E4 and E5 corrected.
    """

    name = "chain_force_jacobian_source"
    signature = CHAIN_FORCE_JACOBIAN
    source = "WAW-8.1"

    def solve(self, model, x, kind, s, active):
        """Return the Jacobian da_i/dF_j of one state, (n, n, 2, 2) [1/kg].

        x holds the positions of the joints, (n, 2) [m]. A constraint argument that is
        None has the values of the chain. Raises UnsupportedError for active joints and
        links with mass or inertia, SingularError if the joints of a link coincide.

        Inputs and outputs: those of CHAIN_FORCE_JACOBIAN.
        """
        return _jacobian(self, model, x, kind, s, active)[1]


class TorqueResponseSource(_OfCases):
    """Accelerations of angles by torques, from the Jacobian of forces.

        S_ij = sum over p = i-1..i+1, q = j-1..j+1 of lambda_ip . da_p/dF_q lambda_jq

    Source: WAW-8.2, with slip E6 corrected.
    """

    name = "chain_torque_response_source"
    signature = CHAIN_TORQUE_RESPONSE
    source = "WAW-8.2"

    def solve(self, model, x, kind, s, active):
        """Return S_ij = d alpha_i / d tau_j, (n, n) [1/(kg·m²)]; last row and column 0.

        A constraint argument that is None has the values of the chain. Raises
        UnsupportedError for active joints and links with mass or inertia, SingularError
        if the joints of a link coincide.

        Inputs and outputs: those of CHAIN_TORQUE_RESPONSE.
        """
        c, J = _jacobian(self, model, x, kind, s, active)
        S = np.zeros((model.n, model.n))
        for i in range(model.n - 1):
            for j in range(model.n - 1):
                S[i, j] = sum(
                    left @ J[p, q] @ right
                    for p, left in _lambdas(c, i)
                    for q, right in _lambdas(c, j)
                )
        return S


def _jacobian(solver, model, x, kind, s, active):
    """Return a Chain at rest without forces, and da_i/dF_j, (n, n, 2, 2): WAW-8.1."""
    c = take(model, x, 0 * x, 0 * x, kind, s, None, active)
    solver.refuse(model, c)
    n, steps = model.n, part1(c)
    J = np.zeros((n, n, 2, 2))
    for i in range(n):
        by_F = np.zeros((n + 1, 2, 2))  # da_i/dF^d_k; da_i/dd_k is entry k + 1
        by_F[i] = steps[i].A
        for k in reversed(range(1, i)):
            by_F[k] = by_F[k + 1] @ steps[k].C
        by_b = np.eye(2) * (i == 0)
        for k, step in enumerate(steps):
            J[i, k] = by_F[k + 1] @ step.C + by_b @ step.A
            by_b = by_F[k + 1] @ step.D + by_b @ step.C.T + np.eye(2) * (i == k + 1)
    return c, J


def _lambdas(c, i):
    """Return pairs (joint, factor): alpha_i = sum of factor . a_joint (WAW-2.1).

    alpha_i is the acceleration of joint angle i, of link i relative to the previous
    link (link 0: to the x axis); a factor is a vector (2,) [1/m]. There are no terms of
    velocity, as L is normal to its link.
    """
    if i == 0:
        return [(0, -c.L[0]), (1, c.L[0])]
    L_before, L = c.L[i - 1], c.L[i]
    return [(i - 1, L_before), (i, -(L_before + L)), (i + 1, L)]


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [Part1(), Part2(), ForceJacobianSource(), TorqueResponseSource()]
