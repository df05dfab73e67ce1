"""Which pairs of shapes are tested for contact, and all contacts at a position."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact import geometry
from dyn_core.contact.foreign import ForeignPair, Hulls
from dyn_core.contact.geometry import Pose, Touch
from dyn_core.contact.halfspaces import HalfSpace, PointTable
from dyn_core.errors import ModelError, NonFiniteError, ShapeError, UnsupportedError
from dyn_core.model import Model
from dyn_core.model.coordinates import split_q
from dyn_core.model.shapes import WORLD, Material, Mesh, PlacedShape
from dyn_core.spatial import Transform, Vector


class ContactId(NamedTuple):
    """What touches what: equal in two steps where the same features touch.

    Attributes:
        link_a, shape_a: A link and which of its shapes.
        link_b, shape_b: Another, or a half-space and 0.
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
        id: What touches what.
        body_a, body_b: Numbers of the bodies; 0 is the world.
        point: Midway between the surfaces, world, (3,) [m].
        normal: From b to a, into body a, unit, world, (3,).
        gap: Along the normal; negative: they overlap [m].
        material: Of the pair of surfaces.

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
    """Two shapes, by number, and how their contact is found."""

    a: int
    b: int
    material: Material
    foreign: ForeignPair | None


class ContactPairs:
    """The pairs of shapes of a robot and its world that are tested for contact.

    Tested is every shape with every half-space and with every other shape, except:
    shapes of one body; of neighbours, which are bodies that a joint connects (one that
    leaves all six directions free does not, a body without links is passed over); what
    the sidecar denies. It may allow neighbours.

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
            world: Half-spaces; none: only what the robot has.
            margin: Largest gap of a contact [m].
            packages: Folders of package:// addresses of meshes, by name.

        Raises:
            UnsupportedError: A pair needs the extra `collision`; names the links.
        """
        if not np.isfinite(margin) or margin < 0.0:
            raise ModelError(f"margin {margin}: valid is a length of 0 or more [m]")
        self.model, self.shapes = model, model.shapes
        self.world, self.margin = tuple(world), float(margin)
        _check_names(model, self.world)
        source = next(iter(model.build.description.sources), "")
        path = Path(source)
        folder = path.parent if source and path.is_file() else None
        self._hulls = Hulls(folder, packages or {})
        self._against = self._with_world()
        self._pairs = self._with_each_other()
        self._prepare()

    @property
    def links(self) -> list[tuple[str, str]]:
        """Pairs of links, or link and half-space, that are tested; each once."""
        pairs = [(self.shapes[k].link, self.world[j].name) for k, j in self._against]
        pairs += [(self.shapes[p.a].link, self.shapes[p.b].link) for p in self._pairs]
        return list(dict.fromkeys(pairs))

    def _with_world(self) -> dict[tuple[int, int], Material]:
        """Choose shapes and half-spaces; with the material of each pair."""
        rules = self.model.build.description.pairs
        return {
            (k, j): self.model.material(shape.link).combined(half.material)
            for k, shape in enumerate(self.shapes)
            for j, half in enumerate(self.world)
            if shape.body and rules.decision(shape.link, WORLD) is not False
        }

    def _with_each_other(self) -> list[_Pair]:
        """Choose pairs of shapes; the lower number first."""
        rules, found = self.model.build.description.pairs, []
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
                    found.append(_Pair(k, m, material, self._foreign(a, b)))
        return found

    def _foreign(self, a: PlacedShape, b: PlacedShape) -> ForeignPair | None:
        if geometry.knows(a.shape, b.shape):
            return None
        return ForeignPair(a.shape, b.shape, (a.link, b.link), self._hulls)

    def _prepare(self) -> None:
        """Lay the numbers of all pairs out in arrays."""
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
        """Give all contacts at a position, in a fixed order.

        Args:
            q: Joint positions, (nq,) [rad | m].

        Source: LCP-2, LCP-19 (ids).
        """
        return self.at(*body_poses(self.model, q))

    def at(self, R: np.ndarray, p: np.ndarray) -> list[Contact]:
        """Give all contacts of bodies at given places, in a fixed order.

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
                raise NonFiniteError(f"{name}: a body's place is not finite", name)
        return [*self._on_world(R, p), *self._on_shapes(R, p)]

    def _on_world(self, R: np.ndarray, p: np.ndarray) -> Iterator[Contact]:
        """Find points below the planes, all at once."""
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
        """Find contacts of shapes whose bounding spheres meet."""
        turn = R[self._body] @ self._R
        place = np.einsum("kij,kj->ki", R[self._body], self._p) + p[self._body]
        apart = np.linalg.norm(place[self._first] - place[self._second], axis=1)
        for m in np.flatnonzero(apart <= self._reach):
            pair = self._pairs[m]
            a, b = self.shapes[pair.a], self.shapes[pair.b]
            at_a, at_b = (Pose(turn[k], place[k]) for k in (pair.a, pair.b))
            for touch in self._touches(pair, at_a, at_b):
                name = ContactId(a.link, a.number, b.link, b.number, touch.feature)
                rest = touch.point, touch.normal, touch.gap, pair.material
                yield Contact(name, a.body, b.body, *rest)

    def _touches(self, pair: _Pair, at_a: Pose, at_b: Pose) -> list[Touch]:
        """Find the contacts of one pair."""
        if pair.foreign is not None:
            return pair.foreign.touch(at_a, at_b, self.margin)
        a, b = self.shapes[pair.a], self.shapes[pair.b]
        found = geometry.manifold(a.shape, at_a, b.shape, at_b, self.margin)
        if found is None:
            raise UnsupportedError(f"links '{a.link}' and '{b.link}': unknown shapes")
        return found


def body_poses(model: Model, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Give where all bodies are: x_world = R x_body + p; body 0 is the world.

        X_i_0 = XJ(q_i) Xtree_i X_p_0

    Args:
        model: Robot.
        q: Joint positions, (nq,) [rad | m].

    Returns:
        Rotations (nb + 1, 3, 3) and positions (nb + 1, 3) [m].

    Source: RBDA, section 4.2.
    """
    q = model.check_shape("q", q, model.nq)
    parts = split_q(model, Vector(q.tolist()))
    X = [Transform.identity()]
    for i in model.bodies:
        X.append(model.joint[i].X(parts[i]) @ model.Xtree[i] @ X[model.parent[i]])
    poses = [x.pose for x in X]
    R = np.array([np.asarray(rows, float) for rows, _ in poses])
    return R, np.array([np.asarray(p, float) for _, p in poses])


def neighbours(model: Model) -> frozenset[frozenset[int]]:
    """Give the pairs of bodies that a joint connects.

    A joint of six freedoms connects nothing; a body without links is passed over.
    """
    with_links = {0} | {frame.body for frame in model.frames.values()}
    found = set()
    for i in model.bodies:
        p, free = model.parent[i], model.joint[i].nv == 6
        while p not in with_links:
            free |= model.joint[p].nv == 6
            p = model.parent[p]
        if not free:
            found.add(frozenset((i, p)))
    return frozenset(found)


def _check_names(model: Model, world: Sequence[HalfSpace]) -> None:
    """Refuse half-spaces with one name, or with a link's."""
    taken = set(model.frames)
    for half in world:
        if half.name in taken:
            raise ModelError(
                f"half-space '{half.name}': the name is taken; names of half-spaces and"
                " links must differ",
                half.name,
            )
        taken.add(half.name)
