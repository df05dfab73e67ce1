"""Tables and work arrays for fast pairs; fast_pairs.py finds their contacts.

A pair is fast if it may move in a step by more than half the thickness of its thinner
shape. A root is the first body of a chain, whose joint connects it to the world. FAR
(1e9 m) and NEVER (1e300 m) stand for lengths without a bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.detection_arrays import (
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

TURNS = 5  # largest number of velocities per step along which pairs are followed
FAR = 1e9  # lever of a joint without a known bound [m]
NEVER = 1e300  # thickness of half-spaces, height fields [m]
FLAT = 1e-3  # smallest thickness of a hull, relative to its size
# Joints whose motion columns have a constant norm.
UNIFORM = ("revolute", "continuous", "prismatic", "planar", "floating", "spherical")


class FastTables(NamedTuple):
    """Constant tables: tree of the robot's bodies, and thickness of shapes.

    Attributes:
        root: First body on each body's path from the base; 0 for the world, (nb + 1,).
        line_start, line: The path from the base to body i, itself included, is
            line[line_start[i] : line_start[i + 1]].
        column_start: First column of each body's joint, (nb + 2,); a follower has
            columns of its own, for the coordinates of its leader.
        lever: Bound of the speed of all points of the robot that a column moves, per
            unit of its coordinate's speed, (columns,) [m | 1]; FAR if unknown.
        allowed: Distance up to which a body may move in a step without a fast pair [m].
        thin: Half of the smallest thickness of each shape [m].
        arm: Bound of the distance of a shape's core from its body's origin [m].
        place_root: Root of the body that each coordinate moves, by place, (nv,).
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
    """Work arrays of fast pairs in a step; motions are [angular; linear].

    Attributes:
        used: Number of velocities used in this step; 0: no pair is fast, (1,).
        changed: 1 if the last velocity changed contacts, else 0, (1,).
        needed: Number of contacts if they did not fit in their arrays, else 0, (1,).
        velocity: The velocities of this step by place, (TURNS, nv).
        met: For each root, 1 + the index of the velocity along which its chain first
            meets another; 0: no meeting, (nb + 1,).
        met_time: Time of this meeting [s].
        reach: Bound of the speed of each body [m/s].
        motion: Velocity of each body relative to its parent, of its origin, along the
            axes of the world at the start, (nb + 1, 6).
        shift: Displacement to be added to motion times time, because a body moved at a
            previous velocity until it met another, likewise.
        spatial: Velocity of each body at the point at the world's origin, (nb + 1, 6).
        turned: Rotation matrix of each body since the start, row by row, and its origin
            at a time, (nb + 1, 12).
        pose: Frame of a body, (12,).
        speed: Bound of the speed of each shape [m/s].
        first: Earliest time of a meeting for each root, (nb + 1,) [s].
        guarded: 1 for pairs on which contacts from the start of the step act, else 0.
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

    `follows`: a step can be solved again with more contacts; else no pair is fast.
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
    """Return FastMemory of zeros for a robot."""
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
    """Return the root of the body that each coordinate moves, (nv,).

    The coordinates are in the order of elimination (places of Structure). Of a leader
    and its followers the last body counts.
    """
    bodies = [i for i, count in enumerate(counts) if i for _ in range(count)]
    roots = np.zeros(tables.nv, np.int64)
    for place, body in zip(tables.column_place, bodies, strict=True):
        roots[place] = root[body]
    return roots


def _thin(shapes: Shapes, k: int) -> float:
    """Return half of the smallest thickness of shape k [m].

    A hull has at least 1e-3 times its largest half length; without faces it has this.
    """
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
    """Return the distance that each body may move without a fast pair, (bodies,) [m].

    It is the least half thickness, `thin`, of its pairs, halved if both bodies of the
    pair move. NEVER for a body without pairs, or with pairs with half-spaces alone.
    """
    allowed = np.full(bodies, NEVER)
    for a, b in zip(pairs.first, pairs.second, strict=True):
        if shapes.kind[b] == PLANE:  # it has no other side
            continue
        both = int(shapes.body[a]), int(shapes.body[b])
        share = min(thin[a], thin[b]) / (2 if 0 not in both else 1)
        for body in both:
            allowed[body] = min(allowed[body], share)
    return allowed


def _arm(shapes: Shapes, k: int) -> float:
    """Return a bound of the distance of shape k's core from its body's origin [m].

    The core is the shape without its rounding by the radius shapes.size[k, 3].
    """
    R, p = shapes.place[k, :9].reshape(3, 3), shapes.place[k, 9:]
    middle, half = shapes.bounds[k, :3], shapes.bounds[k, 3:]
    return float(np.linalg.norm(R @ middle + p) + np.linalg.norm(half))


def _levers(model: Model, shapes: Shapes, arm: np.ndarray) -> np.ndarray:
    """Return a bound of the speed of the shapes each column moves, (columns,) [m | 1].

    Each body has a column for each coordinate of its joint, in the order of the bodies;
    a follower has its own, for the coordinates of its leader. The speed is of the
    robot's shapes on the body and its descendants, per unit of the coordinate's speed,
    due to this body's joint alone. It is FAR at most, and FAR for joints other than
    revolute, continuous, prismatic, planar, floating and spherical. `arm` is by shape.
    """
    # Largest distance of shape points of a body and its subtree from its origin.
    behind = np.zeros(model.nb + 1)
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
    """Return the largest distance by which joint i moves its body's origin [m]."""
    joint = model.joint[i]
    if joint.kind in ("revolute", "continuous", "spherical", "fixed"):
        return 0.0
    if joint.kind == "prismatic" and model.leader[i].ratio is None:
        k = model.v_slices[i].start
        far = max(abs(float(model.lower[k])), abs(float(model.upper[k])))
        return min(far, FAR)
    return FAR
