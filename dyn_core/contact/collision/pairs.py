"""Pairs of shapes that are tested for contact, and their contacts at a position."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision import geometry
from dyn_core.contact.collision.coal_pairs import CoalPair, Hulls
from dyn_core.contact.collision.geometry import ContactPoint, ShapePose
from dyn_core.contact.collision.halfspaces import HalfSpace, PointTable
from dyn_core.errors import ModelError, NonFiniteError, ShapeError, UnsupportedError
from dyn_core.model import Model
from dyn_core.model.coordinates import split_q
from dyn_core.model.shapes import WORLD, Material, Mesh, PlacedShape
from dyn_core.spatial import Transform, Vector
from dyn_core.validation import state_array


class ContactId(NamedTuple):
    """Key of a contact, equal in two steps if the same features touch.

    Attributes:
        link_a, shape_a: Name of a link, and index of its shape.
        link_b, shape_b: Another one, or the name of a half-space and 0.
        feature: Corner, end, rim point, or edges.
    """

    link_a: str
    shape_a: int
    link_b: str
    shape_b: int
    feature: Hashable


@dataclass(frozen=True)
class Contact:
    """One contact point.

    Attributes:
        id: Key of the contact.
        body_a, body_b: Body numbers; 0 is the world.
        point: Midway between the surfaces, world, (3,) [m].
        normal: From b to a, into body a, unit, world, (3,).
        gap: Distance along the normal; negative in an overlap [m].
        material: Combined material of both surfaces.

    Source: LCP-2.
    """

    id: ContactId
    body_a: int
    body_b: int
    point: np.ndarray
    normal: np.ndarray
    gap: float
    material: Material


class _Pair(NamedTuple):
    """Indices of two shapes, their material, and the coal pair if one is needed."""

    a: int
    b: int
    material: Material
    coal_pair: CoalPair | None


class ContactPairs:
    """The pairs of shapes of a robot and its world that are tested for contact.

    Every shape is tested with every half-space and with every other shape, except for
    shapes of the same body, shapes of neighbours, and pairs that the sidecar denies.
    Neighbours are bodies connected by a joint of fewer than six degrees of freedom;
    bodies without links are skipped. The sidecar may allow pairs of neighbours.

    Attributes:
        model: The robot.
        shapes: Its shapes.
        world: Half-spaces.
        margin: Largest gap of a contact [m].
    """

    def __init__(
        self,
        model: Model,
        world: Sequence[HalfSpace] = (HalfSpace(),),
        margin: float = 0.0,
        packages: Mapping[str, Any] | None = None,
    ) -> None:
        """Choose the pairs.

        Args:
            model: Robot; boxes that move freely are links with floating joints.
            world: Half-spaces; may be empty.
            margin: Largest gap of a contact [m].
            packages: Folders of package:// addresses of meshes, by name; they go
                before those that dyn.load searches.

        Raises:
            UnsupportedError: A pair needs the extra `collision`; names the links.
        """
        if not np.isfinite(margin) or margin < 0.0:
            raise ModelError(f"margin {margin}: valid is a length of 0 or more [m]")
        self.model, self.shapes = model, model.shapes
        self.world, self.margin = tuple(world), float(margin)
        _check_names(model, self.world)
        self._hulls = Hulls(model.source, packages or {})
        self._against = self._with_world()
        self._pairs = self._with_each_other()
        self._prepare()

    @property
    def links(self) -> list[tuple[str, str]]:
        """Distinct pairs of links, or of link and half-space, that are tested."""
        pairs = [(self.shapes[k].link, self.world[j].name) for k, j in self._against]
        pairs += [(self.shapes[p.a].link, self.shapes[p.b].link) for p in self._pairs]
        return list(dict.fromkeys(pairs))

    def _with_world(self) -> dict[tuple[int, int], Material]:
        """Return the tested pairs of shape and half-space with their material."""
        rules = self.model.build.description.pairs
        return {
            (k, j): self.model.material(shape.link).combined(half.material)
            for k, shape in enumerate(self.shapes)
            for j, half in enumerate(self.world)
            if shape.body and rules.decision(shape.link, WORLD) is not False
        }

    def _with_each_other(self) -> list[_Pair]:
        """Return the tested pairs of shapes, the lower index first."""
        rules, pairs = self.model.build.description.pairs, []
        near = neighbours(self.model)
        for k, a in enumerate(self.shapes):
            for m, b in enumerate(self.shapes[k + 1 :], k + 1):
                if a.body == b.body:
                    continue
                rule = rules.decision(a.link, b.link)
                if rule is None:
                    rule = frozenset((a.body, b.body)) not in near
                if rule:
                    material = self.model.material(a.link).combined(
                        self.model.material(b.link)
                    )
                    pairs.append(_Pair(k, m, material, self._coal_pair(a, b)))
        return pairs

    def _coal_pair(self, a: PlacedShape, b: PlacedShape) -> CoalPair | None:
        if geometry.supports(a.shape, b.shape):
            return None
        return CoalPair(a.shape, b.shape, (a.link, b.link), self._hulls)

    def _prepare(self) -> None:
        """Store the data of all pairs in arrays."""
        used = {k for k, _ in self._against}
        meshes: list[np.ndarray | None] = [None] * len(self.shapes)
        reach = np.zeros(len(self.shapes))
        in_pairs = {k for p in self._pairs for k in (p.a, p.b)}
        for k, placed in enumerate(self.shapes):
            if isinstance(placed.shape, Mesh):
                meshes[k] = np.zeros((0, 3))
                if k in used | in_pairs:
                    hull = self._hulls(placed.shape, placed.link)
                    meshes[k], reach[k] = hull.points, hull.reach
            else:
                reach[k] = placed.shape.reach
        self._table = PointTable(self.shapes, meshes)
        chosen = np.zeros((len(self.shapes), len(self.world)), bool)
        for k, j in self._against:
            chosen[k, j] = True
        self._chosen = chosen[self._table.shape] if len(self.shapes) else chosen
        self._first = np.array([p.a for p in self._pairs], int)
        self._second = np.array([p.b for p in self._pairs], int)
        self._reach = reach[self._first] + reach[self._second] + self.margin
        poses = [placed.X.pose for placed in self.shapes]
        self._R = np.array([np.asarray(R, float) for R, _ in poses]).reshape(-1, 3, 3)
        self._p = np.array([np.asarray(p, float) for _, p in poses]).reshape(-1, 3)
        self._body = np.array([placed.body for placed in self.shapes], int)

    def contacts(self, q: Any) -> list[Contact]:
        """Return all contacts at a position, in a fixed order.

        Args:
            q: Joint positions, (nq,) [rad | m].

        Source: LCP-2, LCP-19 (ids).
        """
        return self.contacts_from_poses(*body_poses(self.model, q))

    def contacts_from_poses(self, R: np.ndarray, p: np.ndarray) -> list[Contact]:
        """Return all contacts of bodies in some poses, in a fixed order.

        Args:
            R: Rotation of each body, body 0 too: x_world = R x + p, (nb + 1, 3, 3).
            p: Position of each body, (nb + 1, 3) [m].
        """
        R, p = np.asarray(R, float), np.asarray(p, float)
        count = self.model.nb + 1
        for name, array, shape in (("R", R, (count, 3, 3)), ("p", p, (count, 3))):
            if array.shape != shape:
                raise ShapeError(name, f"shape {shape}", f"shape {array.shape}")
            if not np.isfinite(array).all():
                raise NonFiniteError(f"{name}: a body's pose is not finite", name)
        return [*self._on_world(R, p), *self._on_shapes(R, p)]

    def _on_world(self, R: np.ndarray, p: np.ndarray) -> Iterator[Contact]:
        """Yield the contacts with half-spaces."""
        table = self._table
        for j, half in enumerate(self.world):
            n, origin = np.array(half.normal), np.array(half.point)
            x = table.world(R, p, n)
            gaps = (x - origin) @ n - table.radius
            for m in np.flatnonzero((gaps <= self.margin) & self._chosen[:, j]):
                k, gap = int(table.shape[m]), float(gaps[m])
                placed = self.shapes[k]
                name = ContactId(
                    placed.link, placed.number, half.name, 0, int(table.feature[m])
                )
                point = x[m] - n * (table.radius[m] + gap / 2)
                material = self._against[k, j]
                yield Contact(name, placed.body, 0, point, n, gap, material)

    def _on_shapes(self, R: np.ndarray, p: np.ndarray) -> Iterator[Contact]:
        """Yield the contacts of shapes whose bounding spheres overlap."""
        rotation = R[self._body] @ self._R
        centre = np.einsum("kij,kj->ki", R[self._body], self._p) + p[self._body]
        apart = np.linalg.norm(centre[self._first] - centre[self._second], axis=1)
        for m in np.flatnonzero(apart <= self._reach):
            pair = self._pairs[m]
            a, b = self.shapes[pair.a], self.shapes[pair.b]
            pose_a, pose_b = (
                ShapePose(rotation[k], centre[k]) for k in (pair.a, pair.b)
            )
            for touch in self._touches(pair, pose_a, pose_b):
                name = ContactId(a.link, a.number, b.link, b.number, touch.feature)
                rest = touch.point, touch.normal, touch.gap, pair.material
                yield Contact(name, a.body, b.body, *rest)

    def _touches(
        self, pair: _Pair, pose_a: ShapePose, pose_b: ShapePose
    ) -> list[ContactPoint]:
        """Return the contacts of one pair."""
        if pair.coal_pair is not None:
            return pair.coal_pair.touch(pose_a, pose_b, self.margin)
        a, b = self.shapes[pair.a], self.shapes[pair.b]
        contacts = geometry.manifold(a.shape, pose_a, b.shape, pose_b, self.margin)
        if contacts is None:
            raise UnsupportedError(f"links '{a.link}' and '{b.link}': unknown shapes")
        return contacts


def body_poses(model: Model, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the poses of all bodies: x_world = R x_body + p; body 0 is the world.

        X_i_0 = XJ(q_i) Xtree_i X_p_0

    Args:
        model: Robot.
        q: Joint positions, (nq,) [rad | m].

    Returns:
        Rotations (nb + 1, 3, 3) and positions (nb + 1, 3) [m].

    Source: RBDA, section 4.2.
    """
    q = state_array("q", q, model.nq)
    parts = split_q(model, Vector(q.tolist()))
    X = [Transform.identity()]
    for i in model.bodies:
        X.append(model.joint[i].X(parts[i]) @ model.Xtree[i] @ X[model.parent[i]])
    poses = [x.pose for x in X]
    R = np.array([np.asarray(rows, float) for rows, _ in poses])
    return R, np.array([np.asarray(p, float) for _, p in poses])


def neighbours(model: Model) -> frozenset[frozenset[int]]:
    """Return the pairs of bodies connected by a joint.

    Joints of six degrees of freedom do not count; bodies without links are skipped.
    """
    with_links = {0} | {frame.body for frame in model.frames.values()}
    pairs = set()
    for i in model.bodies:
        p, free = model.parent[i], model.joint[i].nv == 6
        while p not in with_links:
            free |= model.joint[p].nv == 6
            p = model.parent[p]
        if not free:
            pairs.add(frozenset((i, p)))
    return frozenset(pairs)


def _check_names(model: Model, world: Sequence[HalfSpace]) -> None:
    """Raise a ModelError if names of half-spaces and links are not unique."""
    taken = set(model.frames)
    for half in world:
        if half.name in taken:
            raise ModelError(
                f"half-space '{half.name}': the name is taken; names of half-spaces and"
                " links must differ",
                half.name,
            )
        taken.add(half.name)
