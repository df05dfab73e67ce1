"""Tables and memory for pairs that move farther in a step than they are thick.

fast_pairs.py finds their contacts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.tables import (
    CAPSULE,
    CYLINDER,
    HULL,
    PLANE,
    SPHERE,
    Pairs,
    Shapes,
)
from dyn_core.contact.rows.structure import Structure
from dyn_core.engines.machine_code import FloatArray, FloatArray2, IntArray
from dyn_core.model import Model
from dyn_core.spatial import Vector

TURNS = 5  # velocities of a step along which its pairs are followed
FAR = 1e9  # lever of a joint whose body may be anywhere [m]
NEVER = 1e300  # thickness of what is solid without end [m]
FLAT = 1e-3  # of its size: least thickness of a hull
# Joints whose columns have the same size everywhere.
UNIFORM = ("revolute", "continuous", "prismatic", "planar", "floating", "spherical")


class FastTables(NamedTuple):
    """What stays: how a robot's bodies hang together, and how thick shapes are.

    Attributes:
        parent: Of each body, (nb + 1,).
        root: The first body on each body's path from the base; 0: the world, (nb + 1,).
        line_start, line: Bodies on the path from the base to each body, with it,
            (nb + 2,).
        column_start: First column of each body's joint, (nb + 2,).
        lever: How far a column moves any point behind it, per unit of speed, at most,
            (nc,).
        allowed: Way of each body in a step up to which none of its pairs is fast,
            (nb + 1,) [m].
        thin: Half of the least thickness of each shape, (shapes,) [m].
        arm: Largest distance of a shape's core from its body's origin, (shapes,) [m].
        place_root: Root of the body that each place moves, (nv,).
    """

    parent: IntArray
    root: IntArray
    line_start: IntArray
    line: IntArray
    column_start: IntArray
    lever: FloatArray
    allowed: FloatArray
    thin: FloatArray
    arm: FloatArray
    place_root: IntArray


class FastMemory(NamedTuple):
    """Memory.

    Attributes:
        used: How many velocities have been used in this step; 0: no pair is fast, (1,).
        changed: Whether contacts were added by the last velocity, (1,).
        needed: Contacts for which there was no room, or 0, (1,).
        velocity: These velocities by place, (TURNS, nv).
        met: By root, 1 + the number of the velocity along which it first meets another;
            0: it does not, (nb + 1,).
        met_time: When it does, (nb + 1,) [s].
        reach: Bound of the speed of each body, (nb + 1,) [m/s].
        motion: Of each body relative to its parent, [angular; linear] of its origin,
            along the axes of the world at the start, (nb + 1, 6).
        shift: By how much a body has moved more by its motion before it met another,
            likewise, (nb + 1, 6).
        spatial: Velocity of each body, [angular; linear] of the point at the world's
            origin, (nb + 1, 6).
        turned: Turn of each body since the start, row by row, and its origin at a time,
            (nb + 1, 12).
        pose: Frame of a body, (12,).
        speed: Bound of the speed of each shape, (shapes,) [m/s].
        first: Least time of a meeting, by root, (nb + 1,) [s].
        guarded: Whether contacts from the start of the step act on a pair, (pairs,).
    """

    used: IntArray
    changed: IntArray
    needed: IntArray
    velocity: FloatArray2
    met: IntArray
    met_time: FloatArray
    reach: FloatArray
    motion: FloatArray2
    shift: FloatArray2
    spatial: FloatArray2
    turned: FloatArray2
    pose: FloatArray
    speed: FloatArray
    first: FloatArray
    guarded: IntArray


def fast_tables(
    model: Model, tables: Structure, shapes: Shapes, pairs: Pairs, follows: bool
) -> FastTables:
    """Return the tables of a robot in its world.

    Args:
        model: Robot.
        tables: Order of its coordinates.
        shapes, pairs: Of it and its world.
        follows: Whether a step can be solved again; if not, no pair is fast.
    """
    parent, root = list(model.parent), [0]
    lines: list[list[int]] = [[]]
    parent[0] = 0
    for i in model.bodies:
        lines.append([*lines[parent[i]], i])
        root.append(lines[i][0])
    counts = [x.stop - x.start for x in model.v_slices]
    count = len(shapes.kind)
    allowed = np.full(len(parent), NEVER)
    thin = np.array([_thin(shapes, k) for k in range(count)], float)
    arm = np.array([_arm(shapes, k) for k in range(count)], float)
    if follows:
        allowed = _allowed(len(parent), shapes, pairs, thin)
    return FastTables(
        parent=np.array(parent, np.int64),
        root=np.array(root, np.int64),
        line_start=np.cumsum([0, *map(len, lines)]).astype(np.int64),
        line=np.array([i for line in lines for i in line], np.int64),
        column_start=np.cumsum([0, 0, *counts[1:]]).astype(np.int64),
        lever=_levers(model, shapes, arm),
        allowed=allowed,
        thin=thin,
        arm=arm,
        place_root=_roots_of_places(tables, root, counts),
    )


def fast_memory(tables: FastTables, nv: int, shapes: int, pairs: int) -> FastMemory:
    """Return memory for a robot."""
    bodies = len(tables.parent)
    return FastMemory(
        used=np.zeros(1, np.int64),
        changed=np.zeros(1, np.int64),
        needed=np.zeros(1, np.int64),
        velocity=np.zeros((TURNS, nv)),
        met=np.zeros(bodies, np.int64),
        met_time=np.zeros(bodies),
        reach=np.zeros(bodies),
        motion=np.zeros((bodies, 6)),
        shift=np.zeros((bodies, 6)),
        spatial=np.zeros((bodies, 6)),
        turned=np.zeros((bodies, 12)),
        pose=np.zeros(12),
        speed=np.zeros(shapes),
        first=np.zeros(bodies),
        guarded=np.zeros(pairs, np.int64),
    )


def _roots_of_places(
    tables: Structure, root: list[int], counts: list[int]
) -> np.ndarray:
    """Return the root of each place, by the bodies of its columns."""
    bodies = [i for i, count in enumerate(counts) if i for _ in range(count)]
    roots = np.zeros(tables.nv, np.int64)
    for place, body in zip(tables.column_place, bodies, strict=True):
        roots[place] = root[body]
    return roots


def _thin(shapes: Shapes, k: int) -> float:
    """Return half of the least thickness of a shape [m]."""
    kind, size, radius = shapes.kind[k], shapes.size[k], float(shapes.size[k, 3])
    if kind >= PLANE:
        return NEVER
    if kind == HULL:
        first, count, face, faces = shapes.first[k]
        points = shapes.vertices[first : first + count]
        planes = shapes.faces[face : face + faces]
        deep = planes[:, 3] - (points @ planes[:, :3].T).min(axis=0, initial=np.inf)
        least = FLAT * float(shapes.bounds[k, 3:].max())
        return max(float(deep.min(initial=0.0 if faces == 0 else np.inf)) / 2, least)
    if kind in (SPHERE, CAPSULE):
        return radius
    if kind == CYLINDER:
        return float(min(size[0], size[2]))
    return float(size[:3].min())


def _allowed(bodies: int, shapes: Shapes, pairs: Pairs, thin: np.ndarray) -> np.ndarray:
    """Return the way of each body up to which none of its pairs is fast [m].

    Nothing passes a half-space, which has no end.
    """
    allowed = np.full(bodies, NEVER)
    for a, b in zip(pairs.first, pairs.second, strict=True):
        if shapes.kind[b] == PLANE:
            continue
        both = int(shapes.body[a]), int(shapes.body[b])
        share = min(thin[a], thin[b]) / (2 if 0 not in both else 1)
        for body in both:
            allowed[body] = min(allowed[body], share)
    return allowed


def _arm(shapes: Shapes, k: int) -> float:
    """Return how far the core of a shape reaches from its body's origin [m]."""
    R, p = shapes.place[k, :9].reshape(3, 3), shapes.place[k, 9:]
    middle, half = shapes.bounds[k, :3], shapes.bounds[k, 3:]
    return float(np.linalg.norm(R @ middle + p) + np.linalg.norm(half))


def _levers(model: Model, shapes: Shapes, arm: np.ndarray) -> np.ndarray:
    """Return how far each column moves what is behind it at most, per unit of speed."""
    behind = np.zeros(model.nb + 1)  # of the points of shapes, from the body's origin
    for k, body in enumerate(shapes.body):
        if shapes.kind[k] < PLANE:
            behind[body] = max(behind[body], arm[k])
    for i in reversed(model.bodies):
        p = model.parent[i]
        offset = np.linalg.norm([float(x) for x in model.Xtree[i].pose[1]])
        behind[p] = max(behind[p], behind[i] + float(offset) + _travel(model, i))
    levers: list[float] = []
    for i in model.bodies:
        joint, ratio = model.joint[i], model.leader[i].ratio
        count = model.v_slices[i].stop - model.v_slices[i].start
        if joint.kind not in UNIFORM:
            levers += [FAR] * count
            continue
        S = joint.S(Vector(joint.neutral()))
        sizes = [
            behind[i] * np.linalg.norm([float(x) for x in column.ang])
            + np.linalg.norm([float(x) for x in column.lin])
            for column in S
        ]
        rows = np.eye(count) if ratio is None else np.array(ratio.rows, float)
        levers += (np.array(sizes) @ np.abs(rows)).tolist()
    return np.minimum(np.array(levers, float), FAR)


def _travel(model: Model, i: int) -> float:
    """Return how far a joint may move its body's origin from its place [m]."""
    joint = model.joint[i]
    if joint.kind in ("revolute", "continuous", "spherical", "fixed"):
        return 0.0
    if joint.kind == "prismatic" and model.leader[i].ratio is None:
        k = model.v_slices[i].start
        far = max(abs(float(model.lower[k])), abs(float(model.upper[k])))
        return min(far, FAR)
    return FAR
