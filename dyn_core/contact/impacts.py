"""Restitution beyond Newton's law at all contacts at once: Poisson's, and in turn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dyn_core.contact.assembly import Scene
from dyn_core.contact.layout import ConstraintLayout
from dyn_core.contact.problem import ConstraintProblem
from dyn_core.contact.solution import ContactSolution
from dyn_core.contact.world import World

ROUNDS = 20  # of the radii of friction discs in a release
TURNS = 10_000  # most impacts of a sequence
TOUCHING = 1e-9  # gap of neighbours that take part in a sequence [m | rad]
SETTLED = 1e-9  # of the radii, relative


def sequential_impacts(scene: Scene, fast: np.ndarray, world: World) -> np.ndarray:
    """Give the impulses of impacts one after the other, (m,).

        lambda_k = -(1 + e) sigma_k / G_kk  at the fastest approach, until all are slow

    Only the normals of contacts and limits take part; what is slow, friction and other
    constraints are left to the step that follows.

    Args:
        scene: Constraints at the velocity before the impacts.
        fast: Which blocks may bounce, (blocks,).
        world: slow.

    Source: LCP-10 (sequential law), C13.
    """
    impulse = np.zeros(scene.layout.m)
    rows = np.array(scene.first, int)
    touching = fast | np.array(
        [c.closing and float(c.gap) <= TOUCHING for c in scene.constraints], bool
    )
    rows = rows[touching] if len(rows) else rows
    if not fast.any():
        return impulse
    e = np.array([c.restitution for c in scene.constraints])[touching]
    G, sigma = scene.G[np.ix_(rows, rows)], scene.J[rows] @ scene.qd
    kicks = np.zeros(len(rows))
    for _ in range(TURNS):
        k = int(np.argmin(sigma))
        if sigma[k] >= -max(world.slow, 1e-12):
            break
        kick = -(1 + e[k]) * sigma[k] / G[k, k]
        kicks[k] += kick
        sigma = sigma + G[:, k] * kick
    impulse[rows] = kicks
    return impulse


def poisson_release(
    scene: Scene,
    velocity: np.ndarray,
    compression: ContactSolution,
    fast: np.ndarray,
    solve: Callable[[ConstraintProblem], ContactSolution],
) -> np.ndarray:
    """Give the impulses of the release after a compression, (m,).

        lambda_n = e lambda_n,c + x,   0 <= x orthogonal to sigma_n >= 0,
        |lambda_T| <= mu lambda_n

    The normal parts that are known push first; what is left is a problem in x and the
    tangents, whose discs have the radius of the last round.

    Args:
        scene: Constraints that took part.
        velocity: After the compression, (nv,).
        compression: Its solution.
        fast: Which blocks bounce, (blocks,); others get no release.
        solve: Gives a problem's solution.

    Source: LCP-10 (Poisson); M. Anitescu and F. Potra 1997.
    """
    impulse = np.zeros(scene.layout.m)
    first = np.array(scene.first, int)
    if not fast.any():
        return impulse
    e = np.array([c.restitution for c in scene.constraints]) * fast
    known = e * compression.impulses[first]
    impulse[first] = known
    free = scene.moved(velocity, impulse)
    radius = known
    for _ in range(ROUNDS):
        found = solve(_release(scene, scene.J @ free, radius))
        x = _unpacked(scene, found.impulses)
        new = known + x[first]
        if np.abs(new - radius).max() <= SETTLED * np.abs(new).max(initial=1e-300):
            break
        radius = new
    return impulse + x


def _release(scene: Scene, b: np.ndarray, radius: np.ndarray) -> ConstraintProblem:
    """Give the problem of a release: each contact a normal row, and a disc of its own.

    A disc is a contact whose normal row stands apart from all others and asks for the
    given impulse.
    """
    parts: list[tuple[str, int]] = []
    order: list[int] = []
    mu: list[float] = []
    push: list[float] = []
    for k, (block, c) in enumerate(
        zip(scene.layout.blocks, scene.constraints, strict=True)
    ):
        if c.kind != "contact":
            parts.append((c.kind, c.rows))
            order += list(block.all)
            push += [0.0] * c.rows
            continue
        parts.append(("unilateral", 1))
        order.append(block.start)
        push.append(0.0)
        if c.rows > 1:
            parts.append(("contact", c.rows))
            order += [-1, *block.tangent]
            push += [-max(float(radius[k]), 0.0), *[0.0] * (c.rows - 1)]
            mu += c.mu
    at = np.array(order)
    real = at >= 0
    G = np.where(np.outer(real, real), scene.G[np.ix_(at, at)], 0.0)
    G[~real, ~real] = 1.0
    free = np.where(real, b[at], 0.0) + np.array(push)
    none = np.zeros(len(at))  # friction of joints has had its impulse already
    return ConstraintProblem(ConstraintLayout(tuple(parts)), G, free, mu, none, none)


def _unpacked(scene: Scene, found: np.ndarray) -> np.ndarray:
    """Give the impulses of a release in the rows of the scene, (m,)."""
    impulse, at = np.zeros(scene.layout.m), 0
    for block, c in zip(scene.layout.blocks, scene.constraints, strict=True):
        skip = 1 if c.kind == "contact" and c.rows > 1 else 0
        if c.kind == "contact":
            impulse[block.start] = found[at]
            own = list(block.tangent)
            impulse[own] = found[at + 1 + skip : at + 1 + skip + len(own)]
        else:
            impulse[list(block.all)] = found[at : at + c.rows]
        at += c.rows + skip
    return impulse
