"""Pairs of links that a motion keeps apart: by capsules, hulls or meshes.

A capsule holds the convex hull of its shape, and the hull holds the mesh: a distance of
the simpler ones is never larger. So the simplest serves that is not too close already
in the position that a motion begins with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.hulls import Hulls
from dyn_core.identification.excitation.capsules import (
    CapsulePairs,
    Distances,
    link_capsules,
)
from dyn_core.identification.excitation.hull_pairs import HullDistances, HullPairs
from dyn_core.model import Model


class NearPair(NamedTuple):
    """A pair of links whose capsules are too close at the start.

    Attributes:
        links: Their names.
        by: What is kept apart: hulls, meshes, or nothing, if they touch at the start.
        start: Distance of that at the start [m].
        limit: Least distance that is kept: the clearance, or half of `start` where that
            is less than the clearance; 0 where nothing is kept [m].
    """

    links: tuple[str, str]
    by: str
    start: float
    limit: float


class LinkDistances(NamedTuple):
    """Distances of pairs in many positions.

    Attributes:
        values: Of pairs by capsules, then by hulls, (samples, pairs) [m].
        capsules, hulls: Both parts; None where there are no such pairs.
    """

    values: np.ndarray
    capsules: Distances | None
    hulls: HullDistances | None


class LinkPairs:
    """Pairs of links that could touch, and their distances.

    Attributes:
        links: Names of each pair in the order of LinkDistances.
        limits: Least distance of each, (pairs,) [m].
        near: Pairs whose capsules are too close at the start.
    """

    def __init__(
        self,
        model: Model,
        first: np.ndarray,
        clearance: float | None,
        packages: Mapping[str, Any] | None = None,
        engine: str | None = None,
    ) -> None:
        """Choose the pairs, and what of them is kept apart.

        Args:
            model: Robot with joints of one coordinate.
            first: The first position, (nv,) [rad | m].
            clearance: Least distance; None: there are no pairs [m].
            packages: Folders of package:// addresses of meshes, by name.
            engine: Of the Programs.

        Raises:
            UnsupportedError: A mesh needs the extra `collision`.
            ModelError: A mesh cannot be used; names the link.
        """
        least = 0.0 if clearance is None else clearance
        hulls = Hulls(model.source, packages or {})
        capsules = [] if clearance is None else link_capsules(model, hulls)
        self.capsules = CapsulePairs(model, capsules, first, least, engine)
        self.hulls: HullPairs | None = None
        self.meshes: HullPairs | None = None
        self.near: tuple[NearPair, ...] = ()
        self._names = [capsule.link for capsule in capsules]
        if len(self.capsules.near):
            close = HullPairs(model, self.capsules.near, hulls, engine)
            self.near = tuple(self._judged(close, first[None], least))
            by = np.array([pair.by for pair in self.near])
            self.hulls = close.of(by == "hulls") if "hulls" in by else None
            self.meshes = close.of(by == "meshes") if "meshes" in by else None
        kept = [pair for pair in self.near if pair.by == "hulls"]
        limits = [pair.limit for pair in kept]
        self.limits = np.append(np.full(len(self.capsules), least), limits)
        self.links = [self._links(pair) for pair in self.capsules.pairs]
        self.links += [pair.links for pair in kept]

    def __len__(self) -> int:
        return len(self.limits)

    def _links(self, pair: np.ndarray) -> tuple[str, str]:
        return self._names[pair[0]], self._names[pair[1]]

    def _judged(self, close: HullPairs, q: np.ndarray, clearance: float) -> Any:
        """Return what of each pair is kept apart, and how far."""
        for k, apart in enumerate(close.distances(q).values[0].tolist()):
            by = "hulls"
            if apart <= 0:
                by, apart = "meshes", float(close.meshes_apart(q, k)[0])
            if apart <= 0:
                by = "nothing"
            limit = clearance if apart >= clearance else max(apart, 0.0) / 2
            yield NearPair(self._links(close.pairs[k]), by, apart, limit)

    def distances(self, q: np.ndarray) -> LinkDistances:
        """Return the distances in positions, (samples, nv)."""
        capsules = self.capsules.distances(q) if len(self.capsules) else None
        hulls = None if self.hulls is None else self.hulls.distances(q)
        parts = [x.values for x in (capsules, hulls) if x is not None]
        values = np.hstack(parts) if parts else np.zeros((len(q), 0))
        return LinkDistances(values, capsules, hulls)

    def gradient(
        self, q: np.ndarray, distances: LinkDistances, weights: np.ndarray
    ) -> np.ndarray:
        """Return the gradient of weighted distances by positions, (samples, nv).

        Args:
            q: Positions, (samples, nv).
            distances: There.
            weights: Of each distance, (samples, pairs); few that are not zero.
        """
        result, count = np.zeros(np.shape(q)), len(self.capsules)
        if distances.capsules is not None:
            weight = weights[:, :count]
            result += self.capsules.gradient(q, distances.capsules, weight)
        if self.hulls is not None and distances.hulls is not None:
            result += self.hulls.gradient(q, distances.hulls, weights[:, count:])
        return result

    def of_meshes(self, q: np.ndarray) -> list[tuple[NearPair, np.ndarray]]:
        """Return pairs that meshes keep apart, and their distances, (samples,) [m].

        Distances of hulls, where these are large enough, stand for those of meshes.

        Args:
            q: Positions, (samples, nv).
        """
        if self.meshes is None:
            return []
        result, values = [], self.meshes.distances(q).values
        pairs = [pair for pair in self.near if pair.by == "meshes"]
        for k, pair in enumerate(pairs):
            apart = values[:, k]
            close = apart < max(pair.limit, pair.start)
            apart[close] = self.meshes.meshes_apart(q[close], k)
            result.append((pair, apart))
        return result
