"""Closed equations of motion of planar objects: pendulum, arms, carts with poles.

An equation is an algorithm: equation(p, q, qd, u) -> qdd, with p the parameters by
name. An angle "from upright" is clockwise: positive towards +x; one "from the
horizontal" is counter-clockwise, and so are those relative to the previous link. Dry
friction is against the velocity, 0 at rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dyn_core.numbers.scalar import cos, sin, where
from dyn_core.planar.objects.rods import Rod
from dyn_core.spatial.linear import Factored
from dyn_core.spatial.vectors import Matrix

Parameters = Mapping[str, Any]
Coordinates = Sequence[Any]


def coulomb(limit: Any, rate: Any) -> Any:
    """Return the dry friction, -limit sgn(rate); 0 at rest and for NaN.

    Source: WAW-14.1, WAW-14.3.
    """
    return where(rate > 0, -limit, where(rate < 0, limit, 0.0))


def driven(p: Parameters, qd: Coordinates, u: Coordinates) -> list[Any]:
    """Return the forces along the coordinates if each has its own effort: list(u).

    Source: WAW-13.1, WAW-13.2, WAW-13.3.
    """
    return list(u)


def pendulum_rods(p: Parameters) -> list[Rod]:
    """Return a list with one rod, of length l [m]: massless, m [kg] at its end.

    Source: WAW-13.1.
    """
    return [Rod(p["l"], tip=p["m"])]


def pendulum(
    p: Parameters, q: Coordinates, qd: Coordinates, u: Coordinates
) -> list[Any]:
    """Return the acceleration of a pendulum; the angle is from upright.

        theta'' = g/l sin theta + tau/(m l²)

    Args:
        p: l [m], m [kg], g [m/s²].
        q, qd: Angle theta and its rate [rad], [rad/s].
        u: Torque tau [N·m].

    Returns:
        A list of one number, theta'' [rad/s²].

    Source: WAW-13.1.
    """
    over = 1.0 / (p["m"] * p["l"] * p["l"])
    return [(p["g"] / p["l"]) * sin(q[0]) + u[0] * over]


def acrobot_rods(p: Parameters) -> list[Rod]:
    """Return the two rods of the acrobot, of li [m], mi [kg], lci [m] and Ii [kg·m²].

    Source: WAW-13.2.
    """
    return [Rod(p[f"l{i}"], p[f"m{i}"], p[f"lc{i}"], p[f"I{i}"]) for i in (1, 2)]


def acrobot(
    p: Parameters, q: Coordinates, qd: Coordinates, u: Coordinates
) -> list[Any]:
    """Return the accelerations of an arm of two rods with torques at both joints.

        B qdd + c + h = tau,  c1 = -k sin t2 (t2'² + 2 t1' t2'),  c2 = k sin t2 t1'²

    with k = m2 l1 lc2, and h the torques of gravity. An inertia matrix B that is not
    positive definite is a SingularError.

    Args:
        p: l1, l2, lc1, lc2 [m], m1, m2 [kg], I1, I2 about the centres [kg·m²],
            g [m/s²].
        q, qd: t1 from the horizontal, t2 relative, and rates [rad], [rad/s].
        u: Torques tau [N·m].

    Returns:
        t1'', t2'' [rad/s²].

    Source: WAW-13.2.
    """
    m1, m2, l1, lc1, lc2 = (p[name] for name in ("m1", "m2", "l1", "lc1", "lc2"))
    k, g = m2 * l1 * lc2, p["g"]
    (c1, s1), (c2, s2) = ((cos(t), sin(t)) for t in q)
    B22 = m2 * lc2 * lc2 + p["I2"]
    B12 = B22 + k * c2
    B11 = (m1 * lc1 * lc1 + m2 * l1 * l1 + p["I1"]) + B12 + k * c2
    h2 = (m2 * lc2 * g) * (c1 * c2 - s1 * s2)
    h1 = ((m1 * lc1 + m2 * l1) * g) * c1 + h2
    ks = k * s2
    b1 = u[0] + ks * qd[1] * (qd[1] + 2.0 * qd[0]) - h1
    b2 = u[1] - ks * qd[0] * qd[0] - h2
    return _solved("acrobot", [[B11, B12], [B12, B22]], [b1, b2])


def weight_lifter_rods(p: Parameters) -> list[Rod]:
    """Return three massless rods, 1 m long, with masses 1, 1 and m [kg] at the ends.

    Source: WAW-13.3.
    """
    return [Rod(1.0, tip=1.0), Rod(1.0, tip=1.0), Rod(1.0, tip=p["m"])]


def weight_lifter(
    p: Parameters, q: Coordinates, qd: Coordinates, u: Coordinates
) -> list[Any]:
    """Return the accelerations of three unit links, masses 1, 1, m at the ends.

        B qdd + c + h = tau

    with c the torques of the rates and h those of gravity. An inertia matrix B that is
    not positive definite (m <= 0) is a SingularError.

    Args:
        p: m, the weight [kg], g [m/s²].
        q, qd: t1 from the horizontal, t2 and t3 relative, and rates [rad], [rad/s].
        u: Torques tau [N·m].

    Returns:
        t1'', t2'', t3'' [rad/s²].

    Source: WAW-13.3.
    """
    m, g = p["m"], p["g"]
    (c1, s1), (c2, s2), (c3, s3) = ((cos(t), sin(t)) for t in q)
    c12, s12 = c1 * c2 - s1 * s2, s1 * c2 + c1 * s2
    c23, s23 = c2 * c3 - s2 * s3, s2 * c3 + c2 * s3
    B33 = m
    B23 = m * (1.0 + c3)
    B13 = B23 + m * c23
    B22 = 1.0 + 2.0 * B23
    e = c2 + m * (c2 + c23)
    B12 = B22 + e
    B11 = B22 + 2.0 * e + (2.0 + m)
    a, b, d = s2 + m * (s2 + s23), m * (s23 + s3), m * s3
    w1, w2, w3 = qd
    x2, x3 = w2 * (2.0 * w1 + w2), w3 * (2.0 * (w1 + w2) + w3)
    h3 = (m * g) * (c12 * c3 - s12 * s3)
    h2 = ((1.0 + m) * g) * c12 + h3
    h1 = ((2.0 + m) * g) * c1 + h2
    b1 = u[0] + a * x2 + b * x3 - h1
    b2 = u[1] - a * w1 * w1 + d * x3 - h2
    b3 = u[2] - b * w1 * w1 - d * x2 - h3
    B = [[B11, B12, B13], [B12, B22, B23], [B13, B23, B33]]
    return _solved("weight_lifter", B, [b1, b2, b3])


def cart_pole_rods(p: Parameters) -> list[Rod]:
    """Return a list with the pole: uniform, of length 2 l [m] and mass mp [kg].

    Source: WAW-14.1.
    """
    return [Rod(2.0 * p["l"], p["mp"], p["l"], p["mp"] * p["l"] * p["l"] / 3.0)]


def cart_pole_efforts(p: Parameters, qd: Coordinates, u: Coordinates) -> list[Any]:
    """Return the forces along x [N] and theta [N·m]: the push F = u, and friction.

        F - mu_c sgn x',   -mu_p theta'

    Source: WAW-14.1.
    """
    return [u[0] + coulomb(p["mu_c"], qd[0]), -p["mu_p"] * qd[1]]


def cart_pole(
    p: Parameters, q: Coordinates, qd: Coordinates, u: Coordinates
) -> list[Any]:
    """Return the accelerations of a cart with one pole; theta is from upright.

        theta'' = (g sin - cos (Fx + mp l theta'² sin)/M + Ft/(mp l))
                  / (l (4/3 - mp cos²/M))
        x'' = (Fx + mp l (theta'² sin - theta'' cos))/M,   M = mc + mp

    with Fx = F - mu_c sgn x', Ft = -mu_p theta'. The source prints + mu_p: it feeds
    energy in.

    Args:
        p: mc, mp [kg], l, half the pole [m], mu_c [N], mu_p [N·m·s], g [m/s²].
        q, qd: x and theta, and rates [m, rad], [m/s, rad/s].
        u: Force F on the cart [N].

    Returns:
        x'' [m/s²], theta'' [rad/s²].

    Source: WAW-14.1.
    """
    Fx, Ft = cart_pole_efforts(p, qd, u)
    c, s = cos(q[1]), sin(q[1])
    mp, l, M = p["mp"], p["l"], p["mc"] + p["mp"]
    part = mp * l / M
    free = Fx * (1.0 / M) + part * s * qd[1] * qd[1]
    push = p["g"] * s - c * free + Ft * (1.0 / (mp * l))
    alpha = push / (4.0 / 3.0 * l - part * c * c)
    return [free - part * c * alpha, alpha]


def two_poles_rods(p: Parameters) -> list[Rod]:
    """Return two uniform poles, one on the other, of lengths L1, L2 and masses m1, m2.

    Source: WAW-14.2.
    """
    rods = ((p[f"L{i}"], p[f"m{i}"]) for i in (1, 2))
    return [Rod(L, m, L * 0.5, m * L * L / 12.0) for L, m in rods]


def two_poles_efforts(p: Parameters, qd: Coordinates, u: Coordinates) -> list[Any]:
    """Return [u[0], 0, 0], the forces along x, theta_1 and theta_2.

    Source: WAW-14.2.
    """
    return [u[0], 0.0, 0.0]


def cart_two_poles(
    p: Parameters, q: Coordinates, qd: Coordinates, u: Coordinates
) -> list[Any]:
    """Return the accelerations of a cart with a pole and another on top of it.

        B qdd + C qd + h = (u, 0, 0)

    The angles are from upright; B, C and h are those of `cart_poles`. An inertia matrix
    B that is not positive definite is a SingularError.

    Args:
        p: m0 of the cart, m1, m2 [kg], L1, L2 [m], g [m/s²].
        q, qd: x, theta_1, theta_2, and rates [m, rad, rad], [m/s, rad/s, rad/s].
        u: Force on the cart [N].

    Returns:
        x'' [m/s²], theta_1'', theta_2'' [rad/s²].

    Source: WAW-14.2; I_i = m_i L_i²/12, where the source prints M_i.
    """
    forces = two_poles_efforts(p, qd, u)
    return cart_poles(
        "cart_two_poles", two_poles_rods(p), p["m0"], p["g"], q, qd, forces
    )


def three_poles_rods(p: Parameters) -> list[Rod]:
    """Return three poles, one on the other, of Li [m], mi [kg], li [m] and Ii [kg·m²].

    Source: WAW-14.3.
    """
    names = ("L{}", "m{}", "l{}", "I{}")
    return [Rod(*(p[name.format(i)] for name in names)) for i in (1, 2, 3)]


def three_poles_efforts(p: Parameters, qd: Coordinates, u: Coordinates) -> list[Any]:
    """Return the forces along x and the angles: the motor, viscous and dry friction.

        Ks u - Cc x' - mu_x A37 sgn x'
        -C_i (t_i' - t_{i-1}') + C_{i+1} (t_{i+1}' - t_i') - mu_i A_{37+i} sgn t_i'

    with t_0' = 0, and without the terms of C_4 for i = 3. u is the voltage [V], qd are
    x' and t_1'..t_3', p are the parameters of cart_three_poles. The source prints the
    signs of positions; A38 and A40 look like misprints of m1 and m3, but stay.

    Source: WAW-14.3.
    """
    x, w1, w2, w3 = qd
    hold1, hold2, hold3 = p["C1"] * w1, p["C2"] * (w2 - w1), p["C3"] * (w3 - w2)
    return [
        p["Ks"] * u[0] - p["Cc"] * x + coulomb(p["mu_x"] * p["A37"], x),
        hold2 - hold1 + coulomb(p["mu_1"] * p["A38"], w1),
        hold3 - hold2 + coulomb(p["mu_2"] * p["A39"], w2),
        coulomb(p["mu_3"] * p["A40"], w3) - hold3,
    ]


def cart_three_poles(
    p: Parameters, q: Coordinates, qd: Coordinates, u: Coordinates
) -> list[Any]:
    """Return the accelerations of a cart, moved by a motor, with three poles in a row.

        B qdd + C qd + h = f

    The angles are from upright; B, C and h are those of `cart_poles`, f the forces of
    `three_poles_efforts`. An inertia matrix B that is not positive definite is a
    SingularError.

    Args:
        p: g [m/s²], M, m1..3 [kg], lengths L1..3, centres l1..3 [m], I1..3 about them
            [kg·m²], Cc [N·s/m], C1..3 [N·m·s], Ks [N/V], mu_x, mu_1..3 [1], A37 [N],
            A38..40 [N·m].
        q, qd: x and theta_1..3, and rates [m, rad], [m/s, rad/s].
        u: Voltage [V].

    Returns:
        x'' [m/s²], theta_1..3'' [rad/s²].

    Source: WAW-14.3; B(1,1) with m1 l1², where the source prints m2.
    """
    forces = three_poles_efforts(p, qd, u)
    rods = three_poles_rods(p)
    return cart_poles("cart_three_poles", rods, p["M"], p["g"], q, qd, forces)


def cart_poles(
    who: str,
    rods: Sequence[Rod],
    cart: Any,
    g: Any,
    q: Coordinates,
    qd: Coordinates,
    forces: Coordinates,
) -> list[Any]:
    """Return the accelerations of a cart with poles in a row, angles from upright.

        B qdd + C qd + h = forces,  h_x = 0,  h_i = -g K_i sin_i
        (C qd)_x = -sum K_i sin_i w_i²,  w the rates of the angles
        (C qd)_i = sum_{j != i} B'_ij w_j²,  B'_ij: B_ij, sin(i - j) for cos
        B_xx = M + sum m,  B_xi = K_i cos_i,  B_ij = K_j L_i cos(i - j) for i < j
        B_ii = I_i + m_i l_i² + sum_{k > i} m_k L_i²
        K_i = m_i l_i + sum_{k > i} m_k L_i

    `cart` is M; point masses (tip) of `rods` are not used; `forces` are along x and the
    angles. A matrix B that is not positive definite is a SingularError that names
    `who`.

    Source: WAW-14.2 (d2 = K1, d3 = K2, d4 = B_11, d5 = K2 L1, d6 = B_22), WAW-14.3.
    """
    n, beyond = len(rods), 0.0
    B: list[list[Any]] = [[0.0] * (n + 1) for _ in range(n + 1)]
    K: list[Any] = [0.0] * n
    for i in reversed(range(n)):
        L, m, l, I, _ = rods[i]
        K[i] = m * l + beyond * L
        B[i + 1][i + 1] = I + m * l * l + beyond * L * L
        beyond = beyond + m
    c, s = [cos(t) for t in q[1:]], [sin(t) for t in q[1:]]
    squares = [w * w for w in qd[1:]]
    b = list(forces)
    B[0][0] = cart + beyond
    for i in range(n):
        B[0][i + 1] = K[i] * c[i]
        b[0] = b[0] + K[i] * s[i] * squares[i]
        b[i + 1] = b[i + 1] + (g * K[i]) * s[i]
        for j in range(i + 1, n):
            k = K[j] * rods[i].length
            turn = k * (s[i] * c[j] - c[i] * s[j])
            B[i + 1][j + 1] = k * (c[i] * c[j] + s[i] * s[j])
            b[i + 1] = b[i + 1] - turn * squares[j]
            b[j + 1] = b[j + 1] + turn * squares[i]
    for i in range(n + 1):
        for j in range(i):
            B[i][j] = B[j][i]
    return _solved(who, B, b)


def _solved(who: str, B: list[list[Any]], b: list[Any]) -> list[Any]:
    """Return x of B x = b for a symmetric B, of which the upper triangle is read."""
    items = [f"{who}: inertia along coordinate {i}" for i in range(len(b))]
    return list(Factored(Matrix(B), [0.0] * len(b), items).solve(b))
