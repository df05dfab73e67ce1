"""Constraint problems that several tests of contacts share."""

import numpy as np

from dyn_core.contact import ConstraintProblem

G_EARTH = 9.81


def rigid_rows(r, directions):
    """Return rows (k, 6) of a body's point r for velocities (v, omega)."""
    return np.array([[*d, *np.cross(r, d)] for d in np.asarray(directions, float)])


def box_on_plane(theta, mu, h=0.01, shift=(0.0, 0.0, 0.0), velocity=None):
    """Return the problem of C1 and C3, its J and H: a box of 2 kg on four corners."""
    m, (a, b, c) = 2.0, (0.5, 0.4, 0.25)
    inertia = m / 3 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    H = np.diag([m] * 3 + list(inertia))
    corners = [(sx * a, sy * b, -c) for sx in (1, -1) for sy in (1, -1)]
    J = np.vstack(
        [rigid_rows(np.subtract(r, shift), np.eye(3)[[2, 0, 1]]) for r in corners]
    )
    pull = h * G_EARTH * np.array([np.sin(theta), 0, -np.cos(theta), 0, 0, 0])
    free = pull + (0 if velocity is None else np.asarray(velocity))
    G = J @ np.linalg.solve(H, J.T)
    return ConstraintProblem(["contact"] * 4, G, J @ free, mu=mu), J, H, free


def stack(m1, m2, h=0.01):
    """Return the problem of C6: two boxes on each other, two normals."""
    G = [[1 / m1, -1 / m1], [-1 / m1, 1 / m1 + 1 / m2]]
    return ConstraintProblem(["unilateral"] * 2, G, [-G_EARTH * h, 0.0], ids=("g", "s"))


def random_contacts(kind, seed, rows=3, most=3, mus=(0.0, 0.1, 0.5, 1.0)):
    """Return a random problem of a few contacts: pd, singular or ratio (to 1e6)."""
    rng = np.random.default_rng([seed, rows])
    n = int(rng.integers(1, most + 1))
    nv = max(2, rows * n - 2) if kind == "singular" else rows * n + 2
    J = rng.normal(size=(rows * n, nv))
    w = 10.0 ** rng.uniform(-3, 3, nv) if kind == "ratio" else np.ones(nv)
    free = rng.normal(size=nv) * np.sqrt(w)
    return ConstraintProblem(
        [("contact", rows)] * n, (J * w) @ J.T, J @ free, mu=rng.choice(mus, size=n)
    )


def random_boxes(kind, seed):
    """Return a random problem of free rows, boxes and unilateral rows."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["bilateral", "unilateral", "box", "box", "prescribed"], size=6)
    nv = 4 if kind == "singular" else 8
    J = rng.normal(size=(6, nv))
    w = 10.0 ** rng.uniform(-3, 3, nv) if kind == "ratio" else np.ones(nv)
    free = rng.normal(size=nv) * np.sqrt(w)
    if kind == "singular":  # consistent, since free rows are fewer than coordinates
        kinds[:4] = ["bilateral", "unilateral", "box", "unilateral"]
        kinds[4:] = ["unilateral", "box"]
    size = 0.3 / np.sqrt(np.diag((J * w) @ J.T))
    return ConstraintProblem(
        list(kinds), (J * w) @ J.T, J @ free, lo=-size, hi=2 * size
    )
