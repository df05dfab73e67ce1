"""Tables of a robot's tree: the coordinates that move a body, and the sparsity of L.

They depend on the tree alone. A contact involves few coordinates: those on the paths of
two bodies to the base. The factor L of the inertia has an entry only between a
coordinate and its ancestors, so that the work of a contact is proportional to the
length of its paths.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dyn_core.engines.machine_code import IntArray
from dyn_core.model.assembly.tree import Tree


class Structure(NamedTuple):
    """Tables of a tree; lists of lists are concatenated, with the start of each list.

    A place is the index of a coordinate in the order of elimination: parents first. A
    column is the velocity of a body's own joint per coordinate, in the world; a
    coordinate that drives several coupled joints has several columns.

    Attributes:
        coordinate: Coordinate at each place, (nv,).
        column_place: Place of each column's coordinate, (nc,).
        path_start, path: For each body, world first: start of its list, (nb + 2,), and
            the columns on its path to the base.
        moved_start, moved: Likewise the places on its path and their ancestors,
            ascending.
        above_start, above: For each place k: start of its list, (nv + 1,), and its
            ancestors, the places i < k with an entry (k, i) of the factor, ascending.
        straight: 1 if the ancestors of a place are a chain, each an ancestor of all
            after it; then entry (k, i) of two places of the chain is stored at index i
            in the list of k. 0 otherwise, (nv,).
    """

    coordinate: IntArray
    column_place: IntArray
    path_start: IntArray
    path: IntArray
    moved_start: IntArray
    moved: IntArray
    above_start: IntArray
    above: IntArray
    straight: IntArray

    @property
    def nv(self) -> int:
        """Number of coordinates."""
        return len(self.coordinate)

    @property
    def entries(self) -> int:
        """Number of entries of the factor: its diagonal and the entries of `above`."""
        return self.nv + len(self.above)

    def places_above(self, k: int) -> list[int]:
        """Return the ancestors of place k, ascending."""
        return self.above[self.above_start[k] : self.above_start[k + 1]].tolist()


def columns_of(tree: Tree) -> list[tuple[int, int]]:
    """Return the columns of Structure as (body, index of the coordinate in its joint).

    They are sorted by body, from 1 on. A follower has one column for each coordinate of
    its leader, so there may be more than nv columns.
    """
    return [
        (i, k)
        for i in tree.bodies
        for k in range(tree.v_slices[i].stop - tree.v_slices[i].start)
    ]


def structure(tree: Tree) -> Structure:
    """Return the tables of a tree, cached: trees of the same shape share one object."""
    shape = tuple((part.start, part.stop) for part in tree.v_slices)
    return _structure(tuple(tree.parent), shape, tuple(tree.independent), tree.nv)


@lru_cache(maxsize=32)
def _structure(
    parent: tuple[int, ...],
    columns: tuple[tuple[int, int], ...],
    independent: tuple[int, ...],
    nv: int,
) -> Structure:
    """Return the tables of a tree from hashable arguments, cached.

    Body 0 (the base) is first in `parent`. `columns` are first and end velocity
    coordinate of each body, a follower has its leader's; `independent` are the others.
    """
    bodies = range(1, len(parent))
    order = [k for i in sorted(independent) for k in range(*columns[i])]
    place = {k: n for n, k in enumerate(order)}
    by_joint: list[list[int]] = [[]]
    column_place: list[int] = []
    for i in bodies:
        places = [place[k] for k in range(*columns[i])]
        by_joint.append(list(range(len(column_place), len(column_place) + len(places))))
        column_place += places
    paths: list[list[int]] = [[]]
    for i in bodies:
        paths.append(paths[parent[i]] + by_joint[i])
    touched = [sorted({column_place[c] for c in path}) for path in paths]
    above: list[set[int]] = [set() for _ in range(nv)]
    for places in touched:
        for n, k in enumerate(places):
            above[k] |= set(places[:n])
    for k in reversed(range(nv)):  # fill-in by the elimination of k
        for i in above[k]:
            above[i] |= {j for j in above[k] if j < i}
    moved = [sorted(set(p).union(*(above[k] for k in p))) for p in touched]
    straight = [
        all(len(above[i]) == n for n, i in enumerate(sorted(above[k])))
        for k in range(nv)
    ]
    return Structure(
        np.array(order, np.int64),
        np.array(column_place, np.int64),
        *_behind_one_another(paths),
        *_behind_one_another(moved),
        *_behind_one_another([sorted(x) for x in above]),
        np.array(straight, np.int64),
    )


def _behind_one_another(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts of lists in their concatenation, its length, and itself."""
    starts = np.cumsum([0, *map(len, lists)])
    entries = [x for part in lists for x in part]
    return starts.astype(np.int64), np.array(entries, np.int64)
