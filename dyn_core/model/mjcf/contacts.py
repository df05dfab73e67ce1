"""Rules of contact pairs in an MJCF that differ from the defaults of a Model.

MuJoCo tests two geoms if their bits match (contype of one and conaffinity of the other)
unless their bodies are welded together, or parent and child that both move, or the file
excludes them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from dyn_core.model.checks.findings import Findings
from dyn_core.model.mjcf.compiled import Compiled
from dyn_core.model.mjcf.geoms import touching
from dyn_core.model.shapes import ANY, WORLD, PairRules
from dyn_core.sharing import once

Bits = tuple[int, int]  # contype, conaffinity


def read_pairs(
    mjcf: Compiled,
    shapes: Container[str],
    joined: Sequence[str],
    findings: Findings,
) -> PairRules:
    """Return rules for pairs, of links or of link and world, that are not the default.

    If no two links of the robot may touch, one rule (ANY) denies all pairs of links.

    Args:
        mjcf: The compiled file.
        shapes: Names of links that have collision shapes.
        joined: Kind of the joint of each body (bodies.py, how_joined).
        findings: Collects what cannot be represented.
    """
    for k in range(mjcf.model.npair):
        what = "no part of a Model; its friction and margin are not kept"
        findings.note("contact pair", mjcf.element("pair", k), what)
    bits = _bits(mjcf, shapes)
    tree = _Welds.of(mjcf, joined)
    excluded = _excluded(mjcf)
    allow: set[frozenset[str]] = set()
    deny: set[frozenset[str]] = set()
    met = False
    for a, b in combinations(sorted(bits), 2):
        if tree.weld[a] == tree.weld[b]:
            continue
        some, every = _matches(bits[a], bits[b])
        meet = some and not tree.filters(a, b) and (a, b) not in excluded
        met |= meet and a > 0
        only_half_spaces = a == 0 and mjcf.links[0] not in shapes
        if meet != (only_half_spaces or not tree.neighbours(a, b)):
            pair = frozenset((mjcf.links[a], mjcf.links[b]))
            (allow if meet else deny).add(pair)
        if meet and not every:
            what = "only some of its geoms meet those of another link; here all do"
            findings.note("link", mjcf.links[b], what)
    if not met and sum(tree.weld[body] > 0 for body in bits) > 1:
        deny = {pair for pair in deny if WORLD in pair} | {frozenset({ANY})}
    return PairRules(frozenset(allow), frozenset(deny))


@dataclass(frozen=True)
class _Welds:
    """Groups of bodies that are fixed to each other, and the tree of these groups.

    Attributes:
        weld: By body: number of the topmost body of its group; 0 is the world.
        above: By body: topmost body of the group that carries its group; -1 for the
            world.
        single: Topmost bodies joined to their parent by a single joint that is not
            free.
        filter_parents: Whether MuJoCo ignores pairs of moving parents and children.
    """

    weld: Sequence[int]
    above: Sequence[int]
    single: frozenset[int]
    filter_parents: bool

    @classmethod
    def of(cls, mjcf: Compiled, joined: Sequence[str]) -> _Welds:
        """Return the groups of an MJCF; `joined` is the result of how_joined."""
        parents = mjcf.model.body_parentid.tolist()
        weld: list[int] = [0]
        for body in range(1, len(parents)):
            weld.append(body if joined[body] else weld[parents[body]])
        above = [weld[parents[top]] if top else -1 for top in weld]
        single = {
            k for k, how in enumerate(joined) if how not in ("", "free", "several")
        }
        flag = int(mjcf.mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
        kept = not mjcf.model.opt.disableflags & flag
        return cls(weld, above, frozenset(single), kept)

    def filters(self, a: int, b: int) -> bool:
        """Return whether MuJoCo ignores a pair: parent and child that both move."""
        if not (self.filter_parents and self.weld[a] and self.weld[b]):
            return False
        return self.weld[a] == self.above[b] or self.weld[b] == self.above[a]

    def neighbours(self, a: int, b: int) -> bool:
        """Return whether a Model treats two bodies as neighbours: one joint apart."""
        if self.weld[a] == self.above[b]:
            return self.weld[b] in self.single
        return self.weld[b] == self.above[a] and self.weld[a] in self.single


@once
def _matches(a: frozenset[Bits], b: frozenset[Bits]) -> tuple[bool, bool]:
    """Return whether some, and whether all, pairs of geoms of two bodies may touch.

    `a` and `b` are the distinct (contype, conaffinity) of the geoms of each body.
    """
    results = [bool(x[0] & y[1] or y[0] & x[1]) for x, y in product(a, b)]
    return any(results), all(results)


def _bits(mjcf: Compiled, shapes: Container[str]) -> dict[int, frozenset[Bits]]:
    """Return the distinct (contype, conaffinity) of geoms by body.

    Only bodies with shapes count, and planes of the world.
    """
    m = mjcf.model
    bits: dict[int, set[Bits]] = {}
    for geom in range(m.ngeom):
        body = int(m.geom_bodyid[geom])
        floor = body == 0 and mjcf.kind("geom_type", geom) == "plane"
        if touching(mjcf, geom) and (mjcf.links[body] in shapes or floor):
            both = int(m.geom_contype[geom]), int(m.geom_conaffinity[geom])
            bits.setdefault(body, set()).add(both)
    return {body: frozenset(pairs) for body, pairs in bits.items()}


def _excluded(mjcf: Compiled) -> set[tuple[int, int]]:
    """Return the pairs of bodies that the file excludes, the lower number first."""
    pairs = set()
    for signature in mjcf.model.exclude_signature.tolist():
        a, b = signature >> 16, signature & 0xFFFF
        pairs.add((min(a, b), max(a, b)))
    return pairs
