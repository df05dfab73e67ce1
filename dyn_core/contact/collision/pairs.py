"""Pairs of shapes that are tested for contact, and their contacts at a position."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.all_pairs import find_contacts
from dyn_core.contact.collision.detection.detection_arrays import (
    FEATURES,
    Contacts,
    Shapes,
    allocate_contacts,
    allocate_work,
)
from dyn_core.contact.collision.features import feature_name
from dyn_core.contact.collision.halfspaces import HalfSpace
from dyn_core.contact.collision.height_field import HeightField
from dyn_core.contact.collision.hulls import Hulls
from dyn_core.contact.collision.shape_tables import (
    ShapeTable,
    frame_rows,
    pair_table,
)
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import ModelError, NonFiniteError, ShapeError
from dyn_core.model import Model
from dyn_core.model.coordinates import split_q
from dyn_core.model.material import Material
from dyn_core.model.shapes import WORLD, Mesh
from dyn_core.spatial import Transform, Vector
from dyn_core.validation import ListOf, Name, Quantity, named_settings, one_state


class ContactId(NamedTuple):
    """Key of a contact, equal in two steps if the same features touch.

    A shape is the index in its link; link_b may also be a half-space or height field,
    with shape_b 0. For `feature` see feature_name.
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


class ContactPairs:
    """The pairs of shapes of a robot and its world that are tested for contact.

    Every shape is tested with every surface of the world and with every other shape,
    except for shapes of the same body, shapes of neighbours, shapes fixed to the world
    with its surfaces, pairs that the sidecar denies, and pairs within a group.
    Neighbours are bodies connected by a joint of fewer than six degrees of freedom;
    bodies without links are skipped. The sidecar may allow pairs of neighbours.

    Attributes:
        model: The robot.
        shapes: Its shapes.
        world: Half-spaces and height fields.
        margin: Maximum gap of a contact [m].
        shape_table: Arrays of the shapes: first of the robot, then of the world.
        pair_table: Arrays of the tested pairs: first the pairs with the world.
        materials: Combined material of each pair.
        links: Distinct pairs of links, or of link and surface, that are tested.
    """

    def __init__(
        self,
        model: Model,
        world: Sequence[HalfSpace | HeightField] = (HalfSpace(),),
        margin: float = 0.0,
        packages: Mapping[str, Any] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Choose the pairs.

        Args:
            model: Robot; boxes that move freely are links with floating joints.
            world: Half-spaces and height fields; may be empty.
            margin: Maximum gap of a contact [m].
            packages: Folders of package:// addresses of meshes, by name; they take
                precedence over the folders that dyn.load searches.
            groups: Names of links and surfaces that do not touch one another, by the
                group's name.

        Raises:
            UnsupportedError: A mesh needs the extra `collision`; names the link. Or a
                shape is of a kind without contacts.
            ModelError: The margin is no number, negative or not finite, the name of a
                surface is used twice, a group is no list of names, a name in it is
                unknown, or a mesh cannot be used.
            SettingError: `groups` is no mapping.
        """
        self.margin = Quantity(0.0, unit="m").read("margin", margin)
        self.model, self.shapes, self.world = model, model.shapes, tuple(world)
        _check_names(model, self.world)
        self._groups = _checked_groups(model, self.world, groups or {})
        tested = {**self._with_world(), **self._with_each_other()}
        self.materials = tuple(tested.values())
        self.pair_table = pair_table(tested)
        self.shape_table = self._shape_table(tested, packages or {})
        self._work = allocate_work(len(self.shapes) + len(self.world), len(tested))
        self._poses = np.zeros((model.nb + 1, 12))
        self._make_room(64)
        links = [shape.link for shape in self.shapes]
        names = [(x.link, x.number) for x in self.shapes]
        links += [surface.name for surface in self.world]
        names += [(surface.name, 0) for surface in self.world]
        self.links = list(dict.fromkeys((links[a], links[b]) for a, b in tested))
        self._ids = [(*names[a], *names[b]) for a, b in tested]

    def _apart(self, a: str, b: str) -> bool:
        """Return whether a group has both names, so that they are not tested."""
        return any(a in group and b in group for group in self._groups)

    def _with_world(self) -> dict[tuple[int, int], Material]:
        """Return the tested pairs of shape and surface with their combined material.

        Keys are indices in the table, where surfaces follow the robot's shapes.
        """
        rules, start = self.model.build.description.pairs, len(self.shapes)
        return {
            (k, start + j): self.model.material(shape.link).combined(surface.material)
            for j, surface in enumerate(self.world)
            for k, shape in enumerate(self.shapes)
            if shape.body
            and rules.decision(shape.link, WORLD) is not False
            and not self._apart(shape.link, surface.name)
        }

    def _with_each_other(self) -> dict[tuple[int, int], Material]:
        """Return the tested pairs of the robot's shapes with their combined material.

        Shapes of one body and of one group are never tested; else a decision of the
        sidecar precedes the exclusion of neighbours. The lower index is first.
        """
        rules, near = self.model.build.description.pairs, neighbours(self.model)
        pairs = {}
        for k, a in enumerate(self.shapes):
            for m, b in enumerate(self.shapes[k + 1 :], k + 1):
                if a.body == b.body or self._apart(a.link, b.link):
                    continue
                rule = rules.decision(a.link, b.link)
                if rule is None:
                    rule = frozenset((a.body, b.body)) not in near
                if rule:
                    pairs[k, m] = self.model.material(a.link).combined(
                        self.model.material(b.link)
                    )
        return pairs

    def _shape_table(
        self, tested: Mapping[tuple[int, int], Material], packages: Mapping[str, Any]
    ) -> Shapes:
        """Return the arrays of all shapes; meshes in no pair have no hull."""
        hulls = Hulls(self.model.source, packages)
        used = {k for pair in tested for k in pair}
        table = ShapeTable()
        for k, placed in enumerate(self.shapes):
            points = None
            if isinstance(placed.shape, Mesh) and k in used:
                points = hulls(placed.shape, placed.link).points
            table.add(placed, points)
        for surface in self.world:
            table.add_world(surface)
        return table.shapes()

    def contacts(self, q: Any) -> list[Contact]:
        """Return all contacts at a position with a gap up to `margin`.

        They are sorted by pair, in the order of pair_table.

        Args:
            q: Joint positions, (nq,) [rad | m].

        Raises:
            ShapeError: q has the wrong shape.
            NonFiniteError: The pose of a body is not finite.

        Source: LCP-2, LCP-19 (ids).
        """
        return self.contacts_from_poses(*body_poses(self.model, q))

    def contacts_from_poses(self, R: np.ndarray, p: np.ndarray) -> list[Contact]:
        """Return all contacts of bodies at some poses with a gap up to `margin`.

        They are sorted by pair, in the order of pair_table.

        Args:
            R: Rotation of each body, body 0 (the world) too: x_world = R x + p, (nb +
                1, 3, 3).
            p: Position of each body, (nb + 1, 3) [m].

        Raises:
            ShapeError: R or p has another shape.
            NonFiniteError: A number is not finite.
        """
        R, p = np.asarray(R, float), np.asarray(p, float)
        count = self.model.nb + 1
        for name, array, shape in (("R", R, (count, 3, 3)), ("p", p, (count, 3))):
            if array.shape != shape:
                raise ShapeError(name, f"shape {shape}", f"shape {array.shape}")
            if not np.isfinite(array).all():
                raise NonFiniteError(f"{name}: a body's pose is not finite", name)
        arrays, number = self.contact_arrays(frame_rows(R, p))
        return [self.contact(arrays, m) for m in range(number)]

    def fallen(self, q: Any) -> dict[str, float]:
        """Return the depth of links that have fallen beside and below height fields.

        A shape has fallen if its origin lies beside all height fields that it is tested
        with, and below the lowest corner of all of them. Shapes that are also tested
        with a half-space do not count, nor do origins that are not finite.

        Args:
            q: Joint positions, (nq,) [rad | m].

        Returns:
            By link, the depth of the shape's origin below this corner, above 0 [m]; of
            the link's last fallen shape if there are several. Empty if none has fallen.

        Raises:
            ShapeError: q has the wrong shape.
        """
        R, p = body_poses(self.model, q)
        start, depths = len(self.shapes), {}
        grounds: dict[int, list[HalfSpace | HeightField]] = {}
        for a, b in zip(*self.pair_table[:2], strict=True):
            if b >= start:
                grounds.setdefault(int(a), []).append(self.world[b - start])
        for k, surfaces in grounds.items():
            fields = [x for x in surfaces if isinstance(x, HeightField)]
            shape = self.shapes[k]
            x = R[shape.body] @ np.asarray(shape.X.r, float) + p[shape.body]
            depth = min(field.lowest for field in fields) - x[2] if fields else 0.0
            beside = not any(field.covers(x) for field in fields)
            if len(fields) == len(surfaces) and beside and depth > 0.0:
                depths[shape.link] = float(depth)
        return depths

    def contact_arrays(self, poses: np.ndarray) -> tuple[Contacts, int]:
        """Return arrays of the contacts at some poses, and the number of rows in use.

        The arrays are sorted by pair. They are memory of this object, which the next
        call overwrites, and may be longer than that number.

        Args:
            poses: Frame of each body, body 0 first: a rotation row by row and a
                position, x_world = R x + p, (nb + 1, 12); not checked.
        """
        self._poses[:] = poses
        number = self._find(self.margin)
        while number < 0:
            self._make_room(-2 * number)
            number = self._find(self.margin)
        return self._room, number

    def _make_room(self, capacity: int) -> None:
        """Allocate new arrays for `capacity` contacts; bind machine code to them."""
        self._room = allocate_contacts(capacity)
        self._find = compiled(find_contacts).bind(
            self.shape_table, self.pair_table, self._poses, self._room, self._work
        )

    def contact(self, arrays: Contacts, m: int) -> Contact:
        """Return row m of contacts of these pairs as a Contact with copied vectors.

        `arrays` are of contact_arrays; m is a row in use, which is not checked.
        """
        pair, kinds = int(arrays.pair[m]), self.shape_table.kind
        a, b = (int(x[pair]) for x in self.pair_table[:2])
        feature = feature_name(kinds[a], kinds[b], int(arrays.id[m]) % FEATURES)
        return Contact(
            ContactId(*self._ids[pair], feature),
            int(arrays.body_a[m]),
            int(arrays.body_b[m]),
            arrays.point[m].copy(),
            arrays.normal[m].copy(),
            float(arrays.gap[m]),
            self.materials[pair],
        )


def body_poses(model: Model, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return R (nb + 1, 3, 3) and p (nb + 1, 3) [m] of bodies: x_world = R x_body + p.

        X_i_0 = XJ(q_i) Xtree_i X_p_0

    Body 0 is the world. They are not finite if q is not.

    Source: RBDA, section 4.2.
    """
    q = one_state("q", q, model.nq)
    parts = split_q(model, Vector(q.tolist()))
    X = [Transform.identity()]
    for i in model.bodies:
        X.append(model.joint[i].X(parts[i]) @ model.Xtree[i] @ X[model.parent[i]])
    poses = [x.pose for x in X]
    R = np.array([np.asarray(rows, float) for rows, _ in poses])
    return R, np.array([np.asarray(p, float) for _, p in poses])


def neighbours(model: Model) -> frozenset[frozenset[int]]:
    """Return the pairs of bodies connected by a joint, as sets of two body numbers.

    Each body is paired with its nearest ancestor that has links, or with the world,
    body 0; not if a joint on the way has six degrees of freedom. Loops do not count.
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


def _check_names(model: Model, world: Sequence[HalfSpace | HeightField]) -> None:
    """Check that the names of surfaces differ from each other and from links."""
    taken = set(model.frames)
    for surface in world:
        kind = "half-space" if isinstance(surface, HalfSpace) else "height field"
        if surface.name in taken:
            raise ModelError(
                f"{kind} '{surface.name}': the name is taken; names of half-spaces,"
                " height fields and links must differ",
                surface.name,
            )
        taken.add(surface.name)


def _checked_groups(
    model: Model,
    world: Sequence[HalfSpace | HeightField],
    groups: Mapping[str, Sequence[str]],
) -> list[frozenset[str]]:
    """Return the names of each group as a set; unknown names are refused."""
    known = [*model.frames, *(surface.name for surface in world)]
    for group, names in named_settings("groups", groups).items():
        for name in ListOf(Name()).read(f"groups: {group}", names):
            if name not in known:
                raise ModelError(
                    f"group '{group}': '{name}' is no link or surface of the world;"
                    f" valid: {', '.join(known)}",
                    group,
                )
    return [frozenset(names) for names in groups.values()]
