"""Integration schemes, over a function that returns accelerations.

q and qd are lists of Vectors; acceleration(q, qd) returns such a list. A scheme is
called as scheme(q, qd, dt, acceleration) and returns q and qd one step dt [s] later.
"""


def moved(q, qd, dt):
    """Return the list q + dt qd, for lists of Vectors.

    Raises ValueError for lists of different lengths.
    """
    return [a + b * dt for a, b in zip(q, qd, strict=True)]


def euler(q, qd, dt, acceleration):
    """Return the lists q + dt qd and qd + dt qdd, qdd = acceleration(q, qd).

    Source: L. Euler, 1768.
    """
    qdd = acceleration(q, qd)
    return moved(q, qd, dt), moved(qd, qdd, dt)


def quantum(q, qd, dt, acceleration):
    """Return q + dt qd + dt² qdd / 2 and qd + dt qdd, lists; qdd = acceleration(q, qd).

    Source: WAW-3.1.
    """
    qdd = acceleration(q, qd)
    return moved(moved(q, qd, dt), qdd, dt * dt * 0.5), moved(qd, qdd, dt)


def semi_implicit(q, qd, dt, acceleration):
    """Return the lists q + dt qd_next and qd_next = qd + dt acceleration(q, qd).

    Source: E. Hairer et al., Geometric Numerical Integration.
    """
    qd_next = moved(qd, acceleration(q, qd), dt)
    return moved(q, qd_next, dt), qd_next


def rk4(q, qd, dt, acceleration):
    """Return the lists q and qd after a step dt of the classical Runge-Kutta scheme.

    `acceleration`(q, qd), which returns the list qdd, is called four times.

    Source: W. Kutta, 1901; E. Hairer et al., Solving Ordinary Differential Equations I.
    """
    half, sixth = dt * 0.5, dt * (1.0 / 6.0)
    a1 = acceleration(q, qd)
    v2 = moved(qd, a1, half)
    a2 = acceleration(moved(q, qd, half), v2)
    v3 = moved(qd, a2, half)
    a3 = acceleration(moved(q, v2, half), v3)
    v4 = moved(qd, a3, dt)
    a4 = acceleration(moved(q, v3, dt), v4)
    q_next = _weighted(q, sixth, qd, v2, v3, v4)
    return q_next, _weighted(qd, sixth, a1, a2, a3, a4)


def _weighted(q, sixth, k1, k2, k3, k4):
    """Return the list q + sixth (k1 + 2 k2 + 2 k3 + k4), of lists of Vectors."""
    rates = zip(q, k1, k2, k3, k4, strict=True)
    return [x + (a + (b + c) * 2.0 + d) * sixth for x, a, b, c, d in rates]
