"""Clusters: bodies whose joints share coordinates and must be eliminated together.

A mimic joint or a gear couples bodies on a path of the tree. A cluster is the smallest
set of bodies that contains this path and is attached to a single body outside; for the
rest of the tree it acts as one joint with as many freedoms as it has independent
coordinates. A body without couplings is a cluster by itself.

Source: TAZZ-5.1 (a gear in series), TAZZ-5.3 (a coordinate shared by siblings); the
general cluster is M. Chignoli, N. Adrian, S. Kim and P. Wensing, Recursive rigid-body
dynamics algorithms for systems with kinematic loops, 2023.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dyn_core.model.assembly.tree import Tree
from dyn_core.model.coordinates.pivots import pivot_tolerances
from dyn_core.spatial import Matrix, Motion, MotionSubspace, Transform


@dataclass(frozen=True)
class Cluster:
    """A set of bodies with shared coordinates, attached to one parent body.

    Attributes:
        parent: Body that carries the cluster; 0 is the base.
        bodies: Bodies of the cluster, parents first.
        independent: Bodies of the cluster whose joints follow no other.
        kind: single (one body), series (one after the other, one leader), parallel
            (siblings with one leader) or general.
    """

    parent: int
    bodies: tuple[int, ...]
    independent: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class ClusterJoint:
    """The generalised joint between a cluster and its parent, at one position.

    The cluster's frame is the frame of its top body, the only one next to the parent;
    if several bodies are next to the parent, it is the parent's frame.

    Attributes:
        parent: Body that carries the cluster; 0 is the base.
        bodies: Bodies of the cluster, parents first.
        X: Transform from the parent to the cluster's frame.
        X_of: By body: transform from the cluster's frame to the body.
        J: By body: Jacobian of its motion relative to the parent, 6 x d, body
            coordinates.
        ratio: By body: Jacobian of its joint's velocity, nv of the joint x d.
        coordinates: Indices of the d cluster coordinates in qd.
        armature: Inertia of the rotors, d x d [kg·m² | kg].
        pivot_tolerances, pivot_names: By coordinate: largest pivot that means a
            singular joint, and the name for errors.

    Source: TAZZ-5.1, TAZZ-5.3.
    """

    parent: int
    bodies: tuple[int, ...]
    X: Transform
    X_of: Mapping[int, Transform]
    J: Mapping[int, MotionSubspace]
    ratio: Mapping[int, Matrix]
    coordinates: tuple[int, ...]
    armature: Matrix
    pivot_tolerances: tuple[float, ...]
    pivot_names: tuple[str, ...]


def find_clusters(tree: Tree) -> tuple[Cluster, ...]:
    """Return the clusters of a tree, parents first; each moving body is in one.

    A follower, its leader and the bodies on the path between them are in one cluster,
    without their common ancestor unless it is one of the two. Clusters that share a
    body are one, and any other body is a cluster by itself.
    """
    parent, leader = tree.parent, [lead.body for lead in tree.leader]
    # Union-find: body -> a lower body of the same cluster; the root is the least one.
    member = list(range(len(parent)))

    def least_of(i: int) -> int:
        """Return the smallest number of a body in the cluster of body i, so far."""
        while member[i] != i:
            i = member[i]
        return i

    for i, lead in enumerate(leader):
        if i != lead:
            path = _path(parent, i, lead)
            least = min(least_of(k) for k in path)
            for k in path:
                member[least_of(k)] = least
    groups: dict[int, list[int]] = {}
    for i in tree.bodies:
        groups.setdefault(least_of(i), []).append(i)
    return tuple(
        Cluster(
            parent[least],
            tuple(group),
            tuple(i for i in group if leader[i] == i),
            _kind(parent, leader, group),
        )
        for least, group in sorted(groups.items())
    )


def _path(parent: Sequence[int], i: int, j: int) -> list[int]:
    """Return the bodies on the path between i and j in the tree, in no certain order.

    Their common ancestor is included only if it is i or j. The bodies must be in one
    cluster.
    """
    above_i, above_j = _ancestors(parent, i), _ancestors(parent, j)
    common = max(set(above_i) & set(above_j))
    path = [k for k in {*above_i, *above_j} if k > common]
    return [common, *path] if common in (i, j) else path


def _ancestors(parent: Sequence[int], i: int) -> list[int]:
    """Return body i and its ancestors, the base (0) last."""
    bodies = [i]
    while i:
        i = parent[i]
        bodies.append(i)
    return bodies


def _kind(parent: Sequence[int], leader: Sequence[int], group: list[int]) -> str:
    """Return the kind of a cluster, whose bodies are in `group`, parents first.

    single: one body. With one leader, parallel: all on one parent; series: each on the
    one before. general: any other.
    """
    if len(group) == 1:
        return "single"
    if len({leader[i] for i in group}) > 1:
        return "general"
    if len({parent[i] for i in group}) == 1:
        return "parallel"
    in_line = all(parent[b] == a for a, b in zip(group, group[1:], strict=False))
    return "series" if in_line else "general"


def cluster_joints(
    tree: Tree, X: Sequence[Transform], S: Sequence[MotionSubspace]
) -> list[ClusterJoint]:
    """Return the generalised joint of each cluster at one position, parents first.

    Args:
        tree: Robot.
        X: By body: transform from its parent.
        S: By body: motion subspace of its joint.
    """
    tolerances = pivot_tolerances(tree)
    return [
        _cluster_joint(tree, cluster, X, S, tolerances)
        for cluster in find_clusters(tree)
    ]


def _cluster_joint(
    tree: Tree,
    cluster: Cluster,
    X: Sequence[Transform],
    S: Sequence[MotionSubspace],
    tolerances: Sequence[tuple[float, ...]],
) -> ClusterJoint:
    """Return the generalised joint of one cluster: how its coordinates move its bodies.

    X, S and tolerances are by body: transform from the parent, motion subspace of the
    joint, pivot tolerances of its coordinates.
    """
    tops = [i for i in cluster.bodies if tree.parent[i] == cluster.parent]
    X_in = X[tops[0]] if len(tops) == 1 else Transform.identity()
    columns, width = {}, 0
    for i in cluster.independent:
        columns[i] = width
        width += tree.joint[i].nv
    X_of: dict[int, Transform] = {}
    J: dict[int, MotionSubspace] = {}
    ratio: dict[int, Matrix] = {}
    armature = Matrix.zeros(width, width)
    for i in cluster.bodies:
        p = tree.parent[i]
        ratio[i] = R = _spread(tree, i, columns, width)
        J[i] = S[i] if len(cluster.bodies) == 1 else _columns(S[i], R, width)
        if p != cluster.parent:
            X_of[i] = X[i] @ X_of[p]
            J[i] = X[i] @ J[p] + J[i]
        else:
            X_of[i] = Transform.identity() if len(tops) == 1 else X[i]
        armature = armature + R.T @ Matrix.diagonal(tree.armature[i]) @ R
    slices = [tree.v_slices[i] for i in cluster.independent]
    pivots = [(x, tree.names[i]) for i in cluster.independent for x in tolerances[i]]
    return ClusterJoint(
        parent=cluster.parent,
        bodies=cluster.bodies,
        X=X_in,
        X_of=X_of,
        J=J,
        ratio=ratio,
        coordinates=tuple(k for part in slices for k in range(part.start, part.stop)),
        armature=armature,
        pivot_tolerances=tuple(x for x, _ in pivots),
        pivot_names=tuple(f"joint {name}" for _, name in pivots),
    )


def _columns(S: MotionSubspace, R: Matrix, width: int) -> MotionSubspace:
    """Return S R for S (6, n) and R (n, width); zero if R has no rows."""
    return S @ R if R.rows else MotionSubspace([Motion.zero()] * width)


def _spread(tree: Tree, i: int, columns: Mapping[int, int], width: int) -> Matrix:
    """Return the Jacobian of the velocity of joint i, (nv of joint i, width).

    It is the derivative by the velocities of the cluster coordinates; `columns` has the
    first one of each independent body.
    """
    lead, ratio, _ = tree.leader[i]
    R = Matrix.identity(tree.joint[i].nv) if ratio is None else ratio
    if not R.rows or R.shape[1] == width:
        return R
    before = columns[lead]
    after = width - before - R.shape[1]
    return Matrix((*[0.0] * before, *row, *[0.0] * after) for row in R.rows)
