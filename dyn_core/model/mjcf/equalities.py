"""Equality constraints of an MJCF as followers, couplings and loops.

Constraints of joints and of fixed tendons are relations of joint positions:

    l - l0 = a0 + a1 (r - r0) + a2 (r - r0)² + a3 (r - r0)³ + a4 (r - r0)⁴

with l and r a joint position or a sum of some, c . q, and l0, r0 their initial values.
A linear relation fixes a joint or makes it follow another one; any other relation is a
Coupling. In MuJoCo these constraints give way like springs; here they are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dyn_core.model.checks.findings import Findings
from dyn_core.model.description import Mimic
from dyn_core.model.description_builder import DescriptionBuilder, unused_name
from dyn_core.model.loops.loop_constraints import LoopConstraint, coupling, make_loop
from dyn_core.model.mjcf.compiled import Compiled
from dyn_core.spatial import Transform, Vector
from dyn_core.spatial.lie import quat_matrix

_GONE = "it is left out"
_NO_SUM = "of tendons that are no sums of positions of hinges and slides"
_EXACT = 1e-9  # allowed error of a relation of fixed joints alone [rad | m]


@dataclass(frozen=True)
class Equalities:
    """Translated equality constraints.

    `places` are the positions of the joints that are fixed, by name [rad | m], `rules`
    those of followers, and `tendons` indices of tendons that relations of joints
    replace.
    """

    places: dict[str, float] = field(default_factory=dict)
    rules: dict[str, Mimic] = field(default_factory=dict)
    loops: list[LoopConstraint] = field(default_factory=list)
    tendons: set[int] = field(default_factory=set)

    def add_to(self, builder: DescriptionBuilder) -> None:
        """Add the rules of followers, the loops and the couplings to `builder`.

        The joints must have been added before. If a joint in a chain of followers has a
        motor, the last leader of the chain is no longer passive.
        """
        driven = {spec.name for spec in builder.joints if not spec.passive}
        for name, rule in self.rules.items():
            builder.follow(name, rule, "equality constraints")
            path = _path(self.rules, name)
            if driven.intersection(path) and path[-1] not in driven:
                driven.add(path[-1])
                builder.change(path[-1], passive=False)
        builder.loops += self.loops


@dataclass(frozen=True)
class _Sum:
    """A weighted sum of joint positions, c . q, and its initial value `start`."""

    terms: Mapping[str, float]
    start: float

    def without(self, places: Mapping[str, float]) -> _Sum:
        """Return the sum over joints not in `places`, with c . q - start unchanged."""
        terms = {x: c for x, c in self.terms.items() if x not in places}
        fixed_part = sum(c * places[x] for x, c in self.terms.items() if x in places)
        return _Sum(terms, self.start - fixed_part)


@dataclass(frozen=True)
class _Relation:
    """A polynomial relation of joint positions, see the module docstring.

    `left` is l, `right` is r (without terms: a constant), `a` are a0 to a4.
    """

    name: str
    left: _Sum
    right: _Sum
    a: tuple[float, ...]

    @property
    def is_linear(self) -> bool:
        return not self.right.terms or not any(self.a[2:])

    def linear(self, places: Mapping[str, float]) -> tuple[dict[str, float], float]:
        """Return c by joint name, and b, of a linear relation in the form c . q = b.

        Terms of fixed joints (`places`) are moved to b; joints with c = 0 are omitted.
        """
        terms = dict(self.left.terms)
        value = self.left.start + self.a[0]
        if self.right.terms:
            value -= self.a[1] * self.right.start
        for joint, c in self.right.terms.items():
            terms[joint] = terms.get(joint, 0.0) - self.a[1] * c
        value -= sum(c * places[x] for x, c in terms.items() if x in places)
        return {x: c for x, c in terms.items() if c and x not in places}, value


def read_equalities(mjcf: Compiled, findings: Findings) -> Equalities:
    """Return the translated equality constraints of an MJCF.

    Inactive ones are left out with a note; a flag of <option> that turns all off is not
    read. Those that are unsupported, or that fixed joints contradict, are doubtful
    findings.
    """
    result, relations, taken = Equalities(), [], set[str]()
    for k in range(mjcf.model.neq):
        kind, name = mjcf.kind("eq_type", k), mjcf.element("equality", k)
        label = unused_name(name, taken)
        if not mjcf.model.eq_active0[k]:
            findings.note("equality constraint", name, "is off in the file; left out")
        elif kind in ("connect", "weld"):
            result.loops.append(_loop(mjcf, k, label))
        elif kind in ("joint", "tendon"):
            relation = _relation(mjcf, k, label, result.tendons)
            if relation is None:
                findings.doubt("equality constraint", name, _NO_SUM, _GONE)
            else:
                relations.append(relation)
        else:
            findings.doubt("equality constraint", name, f"of type {kind}", _GONE)
    _solve(relations, result, findings)
    return result


def _loop(mjcf: Compiled, k: int, name: str) -> LoopConstraint:
    """Return the loop of equality constraint k, a connect or weld.

    Frame A is on its first body or site, B on the second. A connect, and a weld with
    torquescale 0, is of kind point, any other weld of kind weld.
    """
    m = mjcf.model
    data = m.eq_data[k].tolist()
    ends = int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
    weld = mjcf.kind("eq_type", k) == "weld"
    if mjcf.kind("eq_objtype", k) == "site":
        places = [_placed(*mjcf.pose("site", site)) for site in ends]
        ends = int(m.site_bodyid[ends[0]]), int(m.site_bodyid[ends[1]])
    elif weld:
        w, *xyz = data[6:10]
        places = [_placed(data[3:6], [*xyz, w]), _placed(data[:3])]
    else:
        places = [_placed(data[:3]), _placed(data[3:6])]
    rotates = weld and data[10] != 0.0  # torquescale
    a, b = (mjcf.links[end] for end in ends)
    return make_loop(name, "weld" if rotates else "point", b, a, places[1], places[0])


def _placed(p: Sequence[float], quaternion: Sequence[float] = ()) -> Transform:
    """Return the transform from a link's frame to one at p, turned by (x, y, z, w)."""
    q = Vector(quaternion or (0.0, 0.0, 0.0, 1.0))
    return Transform.of_pose(quat_matrix(q), Vector(p))


def _relation(mjcf: Compiled, k: int, name: str, tendons: set[int]) -> _Relation | None:
    """Return the relation of equality constraint k, and add its tendons to `tendons`.

    None if a tendon is not a sum of positions of hinges and slides. A constraint of one
    element has a right-hand sum without terms.
    """
    m = mjcf.model
    ends = [int(x) for x in (m.eq_obj1id[k], m.eq_obj2id[k]) if x >= 0]
    of_tendons = mjcf.kind("eq_type", k) == "tendon"
    sums = [(_tendon if of_tendons else _joint)(mjcf, end) for end in ends]
    left, right = sums[0], sums[1] if len(sums) > 1 else _Sum({}, 0.0)
    if left is None or right is None:
        return None
    if of_tendons:
        tendons.update(ends)
    return _Relation(name, left, right, tuple(m.eq_data[k, :5].tolist()))


def _joint(mjcf: Compiled, joint: int) -> _Sum:
    """Return the position of a hinge or slide as a sum with one term."""
    place = int(mjcf.model.jnt_qposadr[joint])
    return _Sum({mjcf.joints[joint]: 1.0}, float(mjcf.model.qpos0[place]))


def _tendon(mjcf: Compiled, tendon: int) -> _Sum | None:
    """Return the length of a fixed tendon as a sum of joint positions.

    It is None for a spatial tendon, and if a joint is neither a hinge nor a slide.
    """
    m = mjcf.model
    first = int(m.tendon_adr[tendon])
    terms: dict[str, float] = {}
    for wrap in range(first, first + int(m.tendon_num[tendon])):
        joint = int(m.wrap_objid[wrap])
        if mjcf.kind("wrap_type", wrap) != "joint":
            return None
        if mjcf.kind("jnt_type", joint) not in ("hinge", "slide"):
            return None
        name = mjcf.joints[joint]
        terms[name] = terms.get(name, 0.0) + float(m.wrap_prm[wrap])
    return _Sum(terms, float(m.tendon_length0[tendon]))


def _solve(
    relations: Sequence[_Relation], result: Equalities, findings: Findings
) -> None:
    """Add the fixed joints, followers and couplings of relations to `result`.

    A linear relation of one joint fixes it; then the remaining relations become
    followers (linear ones of two joints, see _follow) or couplings. Linear relations
    that fixed joints contradict are doubtful; others between fixed joints are skipped.
    """
    places = result.places
    open_ones = [x for x in relations if x.is_linear]
    count = -1
    while count != len(places):  # a fixed joint may fix others
        count = len(places)
        for relation in open_ones:
            terms, value = relation.linear(places)
            if len(terms) == 1:
                ((joint, c),) = terms.items()
                places[joint] = value / c
    for relation in relations:
        left, right = (x.without(places) for x in (relation.left, relation.right))
        if relation.is_linear:
            terms, value = relation.linear(places)
            if terms and not _follow(terms, value, result):
                result.loops.append(_linear(relation.name, terms, value))
            elif not terms and abs(value) > _EXACT:
                what = "contradicts those that fix its joints"
                findings.doubt("equality constraint", relation.name, what, _GONE)
        elif left.terms or right.terms:
            result.loops.append(_curve(relation.name, left, right, relation.a))


def _follow(terms: Mapping[str, float], value: float, result: Equalities) -> bool:
    """Add the follower of a linear relation of two joints; return whether it was added.

    The first joint follows the second, unless it already follows another or the rule
    would close a cycle.
    """
    if len(terms) != 2:
        return False
    (follower, c), (leader, d) = terms.items()
    if follower in result.rules or follower in _path(result.rules, leader):
        return False
    result.rules[follower] = Mimic(leader, -d / c, value / c)
    return True


def _path(rules: Mapping[str, Mimic], joint: str) -> list[str]:
    """Return the names in the chain of leaders of a joint, the joint itself first."""
    path = [joint]
    while path[-1] in rules:
        path.append(rules[path[-1]].joint)
    return path


def _linear(name: str, terms: Mapping[str, float], value: float) -> LoopConstraint:
    """Return the coupling of c . q = b, with `terms` c (not empty) and `value` b."""
    return coupling(name, list(terms), partial(_off, tuple(terms.values()), value))


def _off(factors: Sequence[float], value: float, *q: Any) -> list[Any]:
    """Return the residual c . q - b, a list of one number, with `factors` c."""
    products = [c * x for c, x in zip(factors, q, strict=True)]
    return [sum(products[1:], products[0]) - value]


def _curve(name: str, left: _Sum, right: _Sum, a: Sequence[float]) -> LoopConstraint:
    """Return the coupling of left = a(right), sums without fixed joints."""
    joints = list(dict.fromkeys([*left.terms, *right.terms]))
    return coupling(name, joints, partial(_off_curve, joints, left, right, tuple(a)))


def _off_curve(
    joints: Sequence[str], left: _Sum, right: _Sum, a: Sequence[float], *positions: Any
) -> list[Any]:
    """Return the residual left - a(right) of sums minus their initial values.

    The positions have the order of `joints`.
    """
    q = dict(zip(joints, positions, strict=True))
    x, r = (
        sum((c * q[joint] for joint, c in side.terms.items()), -side.start)
        for side in (left, right)
    )
    return [x - ((((a[4] * r + a[3]) * r + a[2]) * r + a[1]) * r + a[0])]
