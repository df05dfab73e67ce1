"""Clusters: bodies whose joints share coordinates and must be eliminated together.

A mimic joint or a gear ties bodies on a path of the tree. A cluster is the least set of
bodies that holds such a path and hangs on one body outside of it; towards the rest of
the tree it is one joint with as many freedoms as it has coordinates of its own. A body
without couplings is a cluster by itself.

Source: TAZZ-5.1 (a gear in series), TAZZ-5.3 (a coordinate shared by siblings); the
general cluster is M. Chignoli, N. Adrian, S. Kim and P. Wensing, Recursive rigid-body
dynamics algorithms for systems with kinematic loops, 2023.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dyn_core.spatial import Matrix, Motion, MotionSubspace, Transform

if TYPE_CHECKING:
    from dyn_core.model.model import Model


@dataclass(frozen=True)
class Cluster:
    """Bodies that move together on one parent.

    Attributes:
        parent: Body that the cluster hangs on; 0 is the base.
        bodies: Its bodies, parents first.
        own: Those whose joints have coordinates of their own.
        kind: single, series (one under the other), parallel (side by side) or general.
    """

    parent: int
    bodies: tuple[int, ...]
    own: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class Hinge:
    """A cluster in a position, seen as one joint.

    The cluster's frame is that of its only body next to the parent; with several, the
    parent's.

    Attributes:
        X: Transform from the parent to the cluster's frame.
        X_of: By body: transform from the cluster's frame.
        J: By body: its motion relative to the parent for each coordinate, 6 x d, body
            coordinates.
        ratio: By body: its joint's velocity for each coordinate, nv x d.
        at: Numbers of its coordinates among the robot's.
        armature: Inertia of the rotors, d x d [kg·m² | kg].
        floors, items: Of the pivots: least values, and names.

    Source: TAZZ-5.1, TAZZ-5.3.
    """

    X: Transform
    X_of: Mapping[int, Transform]
    J: Mapping[int, MotionSubspace]
    ratio: Mapping[int, Matrix]
    at: tuple[int, ...]
    armature: Matrix
    floors: tuple[float, ...]
    items: tuple[str, ...]


def find_clusters(parent: Sequence[int], leader: Sequence[int]) -> tuple[Cluster, ...]:
    """Give the clusters of a tree, parents first.

    Args:
        parent: By body, its parent.
        leader: By body, the body whose coordinates it has.
    """
    member = list(range(len(parent)))  # body -> least body of its cluster

    def find(i: int) -> int:
        while member[i] != i:
            i = member[i]
        return i

    for i, lead in enumerate(leader):
        if i != lead:
            path = _path(parent, i, lead)
            least = min(find(k) for k in path)
            for k in path:
                member[find(k)] = least
    bodies: dict[int, list[int]] = {}
    for i in range(1, len(parent)):
        bodies.setdefault(find(i), []).append(i)
    return tuple(
        Cluster(
            parent[least],
            tuple(group),
            tuple(i for i in group if leader[i] == i),
            _kind(parent, leader, group),
        )
        for least, group in sorted(bodies.items())
    )


def _path(parent: Sequence[int], i: int, j: int) -> list[int]:
    """Give the bodies that must be one cluster if i and j are in one."""
    above_i, above_j = _ancestors(parent, i), _ancestors(parent, j)
    common = max(set(above_i) & set(above_j))
    path = [k for k in {*above_i, *above_j} if k > common]
    return [common, *path] if common in (i, j) else path


def _ancestors(parent: Sequence[int], i: int) -> list[int]:
    found = [i]
    while i:
        i = parent[i]
        found.append(i)
    return found


def _kind(parent: Sequence[int], leader: Sequence[int], group: list[int]) -> str:
    """Say how the bodies of a cluster hang together."""
    if len(group) == 1:
        return "single"
    if len({leader[i] for i in group}) > 1:
        return "general"
    if len({parent[i] for i in group}) == 1:
        return "parallel"
    in_line = all(parent[b] == a for a, b in zip(group, group[1:], strict=False))
    return "series" if in_line else "general"


def hinges(
    model: Model, X: Sequence[Any], S: Sequence[Any]
) -> list[tuple[Cluster, Hinge]]:
    """Give each cluster in a position, parents first.

    Args:
        model: Robot.
        X: By body: transform from its parent.
        S: By body: its joint's motion subspace.
    """
    return [(cluster, _hinge(model, cluster, X, S)) for cluster in model.clusters]


def _hinge(model: Model, cluster: Cluster, X: Any, S: Any) -> Hinge:
    """Compose what the joints of a cluster do."""
    tops = [i for i in cluster.bodies if model.parent[i] == cluster.parent]
    X_in = X[tops[0]] if len(tops) == 1 else Transform.identity()
    columns, width = {}, 0
    for i in cluster.own:
        columns[i] = width
        width += model.joint[i].nv
    X_of: dict[int, Transform] = {}
    J: dict[int, MotionSubspace] = {}
    ratio: dict[int, Matrix] = {}
    armature = Matrix.zeros(width, width)
    for i in cluster.bodies:
        p = model.parent[i]
        ratio[i] = R = _spread(model, i, columns, width)
        J[i] = S[i] if len(cluster.bodies) == 1 else _columns(S[i], R, width)
        if p != cluster.parent:
            X_of[i] = X[i] @ X_of[p]
            J[i] = X[i] @ J[p] + J[i]
        else:
            X_of[i] = Transform.identity() if len(tops) == 1 else X[i]
        armature = armature + R.T @ Matrix.diagonal(model.armature[i]) @ R
    floors = [x for i in cluster.own for x in model.floors[i]]
    items = [f"joint {model.names[i]}" for i in cluster.own for _ in model.floors[i]]
    spots = [model.v_slices[i] for i in cluster.own]
    at = tuple(k for spot in spots for k in range(spot.start, spot.stop))
    return Hinge(X_in, X_of, J, ratio, at, armature, tuple(floors), tuple(items))


def _columns(S: MotionSubspace, R: Matrix, width: int) -> MotionSubspace:
    """Give S R, also where the joint has no coordinate."""
    return S @ R if R.rows else MotionSubspace([Motion.zero()] * width)


def _spread(model: Model, i: int, columns: Mapping[int, int], width: int) -> Matrix:
    """Give the velocity of joint i for each coordinate of its cluster."""
    lead, ratio, _ = model.leader[i]
    R = Matrix.identity(model.joint[i].nv) if ratio is None else ratio
    if not R.rows or R.shape[1] == width:
        return R
    at = columns[lead]
    after = width - at - R.shape[1]
    return Matrix((*[0.0] * at, *row, *[0.0] * after) for row in R.rows)
