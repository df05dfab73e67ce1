"""Planar chains for tests: a dense oracle, forces, random chains.

No recursion is used here: all equations of a chain are solved at once. A chain has n
joints and n-1 links.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dyn_core.planar import FREE, GUIDED, LINE, ChainModel, from_angles, make_chain


class ChainCase(NamedTuple):
    """A chain in a state x, v, with forces F at its joints, (n, 2).

    F is without forces of links and supports; `answer` has known outputs, or none.
    """

    chain: ChainModel
    x: np.ndarray
    v: np.ndarray
    F: np.ndarray
    answer: dict[str, np.ndarray]


class DenseAnswer(NamedTuple):
    """Solution of the dense solver: a and forces of `support` are (n, 2).

    phi: Push of links along r, n-1 [N]; tau: torques of active joints, n, else zero;
    compatible: all constraints can hold at once; independent: they are linearly
    independent, so that forces are unique.
    """

    a: np.ndarray
    phi: np.ndarray
    support: np.ndarray
    tau: np.ndarray
    compatible: bool
    independent: bool


def link_directions(chain: ChainModel, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return r and L = r turned by +90 degrees / l of a chain's links, (n-1, 2) each.

    r: Unit vectors from joint i to i + 1; l: lengths of the model, not those in x.

    Source: WAW-2.1.
    """
    c = np.diff(x, axis=0)
    r = c / np.hypot(c[:, 0], c[:, 1])[:, None]
    lengths = np.array(chain.lengths).reshape(-1, 1)
    return r, np.column_stack([-r[:, 1], r[:, 0]]) / lengths


def angle_rows(chain: ChainModel, x: Any) -> np.ndarray:
    """Return the Jacobian of the joint angles by the joints' positions, (n, n, 2).

        alpha_i = sum_j rows_ij . a_j

    Angle i is of link i from link i-1, angle 0 of link 0. The last row is zero.

    Source: WAW-2.1, eq. 12 and 13.
    """
    _, L = link_directions(chain, x)
    rows = np.zeros((chain.n, chain.n, 2))
    for i in range(chain.n - 1):
        rows[i, i] -= L[i]
        rows[i, i + 1] += L[i]
        if i:
            rows[i, i - 1] += L[i - 1]
            rows[i, i] -= L[i - 1]
    return rows


def mass_matrix(chain: ChainModel) -> np.ndarray:
    """Return the mass matrix of joints and links, (n, n), the same for x and y [kg].

    Links count with mass, center of mass and inertia about it.

    Source: WAW-13.4.
    """
    M = np.diag(chain.masses)
    parts = chain.lengths, chain.link_masses, chain.link_coms, chain.link_inertias
    for i, (L, m, com, I) in enumerate(zip(*parts, strict=True)):
        ends, turn = np.array([1 - com / L, com / L]), np.array([-1.0, 1.0]) / L
        M[i : i + 2, i : i + 2] += m * np.outer(ends, ends) + I * np.outer(turn, turn)
    return M


def forces(chain: ChainModel, x: Any, v: Any, tau: Any = None) -> np.ndarray:
    """Return gravity, torques of joints, rolling resistance and drag, (n, 2) [N].

    x, v are (n, 2); of tau [N·m], n, the last is without effect; None: zeros.

    Source: WAW-4.1 to WAW-4.5.
    """
    x, v = np.asarray(x, float), np.asarray(v, float)
    F = np.outer(chain.masses, chain.gravity)
    for i, m in enumerate(chain.link_masses):
        far = chain.link_coms[i] / chain.lengths[i]
        F[i] += m * (1 - far) * np.array(chain.gravity)
        F[i + 1] += m * far * np.array(chain.gravity)
    rows = angle_rows(chain, x)
    torque = np.zeros(chain.n) if tau is None else np.array(tau, float)
    torque -= np.array(chain.k_omega) * np.einsum("ijk,jk->i", rows, v)
    F += np.einsum("ijk,i->jk", rows, torque)
    return F - np.array(chain.k_v)[:, None] * v * np.linalg.norm(v, axis=1)[:, None]


def dense_accelerations(
    chain: ChainModel, x: Any, v: Any, F: Any, e: Any = None, **modes: Any
) -> DenseAnswer:
    """Return the DenseAnswer of the equations of all joints at once, by least squares.

        [M  -C.T] [a     ]   [F]
        [C     0] [lambda] = [c]

    C has rows of links, lines and guides, and angles of active joints; they may be
    linearly dependent. e replaces |v'-v|²/l, n-1 [m/s²]; NaN: no equation. `modes` are
    fields of Constraints that replace the chain's own.

    Source: WAW-5.1, WAW-5.4 (CHECK), WAW-9.3.
    """
    chosen = replace(chain.constraints, **modes)
    kind, s, a_w, active, alpha_w = (
        np.array(part, float)
        for part in (chosen.kind, chosen.s, chosen.a_w, chosen.active, chosen.alpha_w)
    )
    n, (r, _) = chain.n, link_directions(chain, x)
    if e is None:
        e = (np.diff(v, axis=0) ** 2).sum(axis=1) / np.array(chain.lengths)
    rows: list[tuple[np.ndarray, float]] = []
    kept = np.flatnonzero(np.isfinite(e))
    for i in kept.tolist():
        row = np.zeros((n, 2))
        row[i], row[i + 1] = r[i], -r[i]
        rows.append((row, e[i]))
    supported = []
    for i in range(n):
        for d in {FREE: [], LINE: [s[i]], GUIDED: [*np.eye(2)]}[float(kind[i])]:
            row = np.zeros((n, 2))
            row[i] = d
            rows.append((row, d @ a_w[i]))
            supported.append(i)
    turned = np.flatnonzero(active)
    angles = angle_rows(chain, x)
    rows += [(angles[i], alpha_w[i]) for i in turned]
    C = np.array([row.ravel() for row, _ in rows]).reshape(-1, 2 * n)
    c = np.array([right for _, right in rows])
    a, pull, compatible, independent = _least_squares(mass_matrix(chain), F, C, c)
    phi, support, tau = np.zeros(n - 1), np.zeros((n, 2)), np.zeros(n)
    phi[kept] = -pull[: len(kept)]  # its row pulls joint i along r
    for k, i in enumerate(supported, len(kept)):
        support[i] += pull[k] * rows[k][0][i]
    tau[turned] = pull[len(kept) + len(supported) :]
    return DenseAnswer(a, phi, support, tau, compatible, independent)


def _least_squares(
    mass: np.ndarray, F: Any, C: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray, bool, bool]:
    """Return a, lambda, whether C a = c can hold, and whether C has full rank.

    mass: (n, n); a, F: (n, 2); C: (m, 2n), rows that are not zero; lambda, c: m.
    """
    M, scale = np.kron(mass, np.eye(2)), np.linalg.norm(C, axis=1)
    C, c = C / scale[:, None], c / scale
    K = np.block([[M, -C.T], [C, np.zeros((len(C), len(C)))]])
    right = np.concatenate([np.ravel(F), c])
    solution = np.linalg.lstsq(K, right, rcond=1e-13)[0]
    U, sizes, _ = np.linalg.svd(C)
    rank = int((sizes > 1e-9).sum())
    off = float(np.abs(U[:, rank:].T @ c).max(initial=0.0))
    compatible = off <= 1e-9 * (1 + float(np.abs(c).max(initial=0.0)))
    a = solution[: len(M)].reshape(-1, 2)
    return a, solution[len(M) :] / scale, compatible, rank == len(C)


def random_chain(
    seed: int,
    n: int | None = None,
    kinds: tuple[str, ...] = ("free", "line", "guided"),
    active: float = 0.3,
    massive: float = 0.0,
    still: bool = False,
) -> ChainCase:
    """Return a ChainCase of a random chain, whose velocities fit its links and lines.

    F is that of `forces` for random torques, plus random forces. For None, n is random,
    2 to 8; free is four times as likely as another kind. `active` and `massive` are the
    probabilities that an angle is active (joint 0 only if it is not free) and that a
    link has mass. With `still` guided joints are at rest and no support accelerates.

    Source: WAW-5.4 (CHECK).
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9)) if n is None else n
    odds = np.array([4.0 if kind == "free" else 1.0 for kind in kinds])
    kind = [str(k) for k in rng.choice(kinds, n, p=odds / odds.sum())]
    turn = rng.uniform(-np.pi, np.pi, n)
    on = [i for i in range(n - 1) if rng.uniform() < active]
    lengths = rng.uniform(0.3, 1.2, n - 1)
    heavy = rng.uniform(size=n - 1) < massive
    chain = make_chain(
        lengths,
        rng.uniform(0.3, 2.0, n),
        k_omega=rng.uniform(0, 0.1, n),
        k_v=rng.uniform(0, 0.2, n),
        link_masses=heavy * rng.uniform(0.2, 2.0, n - 1),
        link_coms=heavy * rng.uniform(0.2, 0.8, n - 1) * lengths,
        link_inertias=heavy * rng.uniform(0.01, 0.3, n - 1),
        constraints={
            "kind": kind,
            "s": np.column_stack([np.cos(turn), np.sin(turn)]),
            "a_w": None if still else rng.normal(size=(n, 2)),
            "active": [i for i in on if i or kind[0] != "free"],
            "alpha_w": rng.normal(size=n),
        },
    )
    theta = rng.uniform(-2.8, 2.8, n - 1)
    x, _ = from_angles(chain, rng.normal(size=2), np.zeros(2), theta, 0 * theta)
    v = fitting_velocities(chain, x, rng.normal(size=(n, 2)), still)
    F = forces(chain, x, v, [*rng.normal(size=n - 1), 0.0]) + rng.normal(size=(n, 2))
    return ChainCase(chain, x, v, F, {})


def fitting_velocities(
    chain: ChainModel, x: Any, v: np.ndarray, still: bool = False
) -> np.ndarray:
    """Return the velocities nearest to v, (n, 2) [m/s], that satisfy links and lines.

    still: Whether guided joints rest; else their velocities are free.
    """
    rows, (r, _) = [], link_directions(chain, x)
    for i, along in enumerate(r):
        rows.append(np.zeros((chain.n, 2)))
        rows[-1][i], rows[-1][i + 1] = along, -along
    for i, kind in enumerate(chain.constraints.kind):
        fixed = [*np.eye(2)] if kind == GUIDED and still else []
        for d in [chain.constraints.s[i]] if kind == LINE else fixed:
            rows.append(np.zeros((chain.n, 2)))
            rows[-1][i] = d
    J = np.array(rows).reshape(-1, v.size)
    return v - (np.linalg.pinv(J) @ (J @ v.ravel())).reshape(v.shape)
