"""Pairs of links that a motion keeps apart, by capsules, convex hulls or meshes.

A capsule encloses the convex hull of its shape, and the hull encloses the mesh, so a
distance of simpler shapes is never larger. For each pair, the simplest shapes are used
that are not too close already in the initial position of the motion.
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
    """A pair of shapes whose capsules are too close at the start.

    Attributes:
        links: Names of the links.
        by: Shapes whose distance is limited: hulls, meshes, or nothing if they touch at
            the start.
        start: Distance of these shapes at the start [m].
        limit: Minimum distance: the clearance, or half of `start` if that is less than
            the clearance; 0 if nothing is limited [m].
    """

    links: tuple[str, str]
    by: str
    start: float
    limit: float


class LinkDistances(NamedTuple):
    """Distances of pairs of links in many positions.

    Attributes:
        values: Distances of pairs by capsules, then by hulls, (samples, pairs) [m].
        capsules: Details of the pairs by capsules; None if there are no such pairs.
        hulls: Details of the pairs by hulls; None if there are no such pairs.
    """

    values: np.ndarray
    capsules: Distances | None
    hulls: HullDistances | None


class LinkPairs:
    """Pairs of links that could collide, and their distances.

    Attributes:
        capsules: Pairs whose capsules are kept apart.
        hulls: Pairs whose convex hulls are kept apart; None if absent.
        meshes: Pairs whose meshes are kept apart; None if absent.
        links: Names of each pair in the order of LinkDistances.
        limits: Minimum distance of each, (pairs,) [m].
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
        """Select the pairs, and the shapes by which each is kept apart.

        Args:
            model: Robot with joints of one coordinate.
            first: Initial position, (nv,) [rad | m].
            clearance: Minimum distance; None: there are no pairs [m].
            packages: Folders for package:// addresses of meshes, by package name.
            engine: Engine of the Programs; None: the default.

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
        """Return the names of the links of a pair of capsules."""
        return self._names[pair[0]], self._names[pair[1]]

    def _judged(self, close: HullPairs, q: np.ndarray, clearance: float) -> Any:
        """Yield a NearPair for each pair of close capsules.

        Args:
            close: Hulls of the pairs.
            q: Initial position, (1, nv).
            clearance: Minimum distance [m].
        """
        for k, apart in enumerate(close.distances(q).values[0].tolist()):
            by = "hulls"
            if apart <= 0:
                by, apart = "meshes", float(close.meshes_apart(q, k)[0])
            if apart <= 0:
                by = "nothing"
            limit = clearance if apart >= clearance else max(apart, 0.0) / 2
            yield NearPair(self._links(close.pairs[k]), by, apart, limit)

    def distances(self, q: np.ndarray) -> LinkDistances:
        """Return the distances in positions q, (samples, nv), of capsules and hulls."""
        capsules = self.capsules.distances(q) if len(self.capsules) else None
        hulls = None if self.hulls is None else self.hulls.distances(q)
        parts = [x.values for x in (capsules, hulls) if x is not None]
        values = np.hstack(parts) if parts else np.zeros((len(q), 0))
        return LinkDistances(values, capsules, hulls)

    def gradient(
        self, q: np.ndarray, distances: LinkDistances, weights: np.ndarray
    ) -> np.ndarray:
        """Return the gradient of sum(weights * distances) by positions, (samples, nv).

        Args:
            q: Positions, (samples, nv).
            distances: Distances in these positions.
            weights: Weight of each distance, (samples, pairs); mostly zero.
        """
        result, count = np.zeros(np.shape(q)), len(self.capsules)
        if distances.capsules is not None:
            weight = weights[:, :count]
            result += self.capsules.gradient(q, distances.capsules, weight)
        if self.hulls is not None and distances.hulls is not None:
            result += self.hulls.gradient(q, distances.hulls, weights[:, count:])
        return result

    def of_meshes(self, q: np.ndarray) -> list[tuple[NearPair, np.ndarray]]:
        """Return pairs kept apart by meshes, with their distances, (samples,) [m].

        Where the distance of the hulls is large enough it is used instead of the
        meshes'.

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
