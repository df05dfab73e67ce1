"""Checks of inertias: of each link in its file, and along the joints of a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.assembly.tree import Tree
from dyn_core.model.checks.findings import Findings, short_list
from dyn_core.model.coordinates.configuration_space import neutral, random
from dyn_core.model.coordinates.joints_and_followers import split_q
from dyn_core.model.description import Description
from dyn_core.model.joints.many import joint_transforms, motion_rows
from dyn_core.model.loops.loop_constraints import Loop
from dyn_core.spatial import RigidInertia, Vector

SMALLEST = float(np.finfo(float).tiny)  # mass below which digits are lost [kg]
TRIANGLE = 1e-9  # relative slack of the triangle inequality
POSITIONS = 3  # number of positions in which inertias along joints are computed
REMEDY = "give a link below it mass, or the joint armature, or lock it"
AnyTree = TypeVar("AnyTree", bound=Tree)


def check_inertias(description: Description, findings: Findings) -> None:
    """Check that numbers are finite, and masses 0 or at least SMALLEST (2.2e-308 kg).

    Inertias that no mass distribution has become warnings in `findings`.
    """
    links = description.links
    parameters = [link.inertia.parameters for link in links]
    table = np.array(parameters, float).reshape(-1, 10)
    lost = (table[:, 0] > 0) & (table[:, 0] < SMALLEST)
    bad = ~np.isfinite(table).all(axis=1) | (table[:, 0] < 0) | lost
    for k in np.flatnonzero(bad).tolist():
        name, m = links[k].name, table[k, 0]
        what = f"mass {m} is negative; it must be >= 0"
        if lost[k]:
            what = f"mass {m} has no full digits; it must be 0 or >= {SMALLEST:.3g}"
        if not np.isfinite(table[k]).all():
            what = f"inertia holds a number that is not finite: {parameters[k]}"
        raise ModelError(f"link '{name}': {what}", name)
    for k, fault in _faults(table):
        findings.doubt("link", links[k].name, fault)


def changed_inertias(tree: Tree) -> tuple[str, ...]:
    """Return the warnings of `check_inertias` about links with a changed inertia.

    If a number is not finite or a mass not valid, the only warning is the text of this
    error. Symbols are no valid numbers here: they raise TraceError.
    """
    description, findings = tree.build.description, Findings()
    changed = tuple(
        replace(link, inertia=tree.frames[link.name].inertia)
        for link in description.links
        if link.name in tree.frames  # not of a part of a robot
        and tree.frames[link.name].inertia is not link.inertia
    )
    try:
        check_inertias(replace(description, links=changed), findings)
    except ModelError as error:
        return (str(error),)
    return findings.warnings


def _faults(table: np.ndarray) -> Iterator[tuple[int, str]]:
    """Yield the index of each link with an unphysical inertia, and why, in order.

    Rows of the table are m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the frame's
    origin. A principal moment about the centre of mass must not be negative, nor exceed
    the sum of the others, by more than 1e-9 (TRIANGLE) of the largest moment and more
    than 1e-12 m c²; for mass 0 all moments must be 0 (m c is ignored).
    """
    m, h = table[:, 0], table[:, 1:4]
    c = np.divide(h, m[:, None], out=np.zeros_like(h), where=m[:, None] > 0)
    far = m * (c * c).sum(axis=1)
    I = table[:, [4, 5, 7, 5, 6, 8, 7, 8, 9]].reshape(-1, 3, 3)
    outer = m[:, None, None] * c[:, :, None] * c[:, None, :]
    moments = np.linalg.eigvalsh(I - far[:, None, None] * np.eye(3) + outer)
    # Moments about the centre of mass are a difference: rounding grows with m c².
    slack = TRIANGLE * np.maximum(np.abs(moments[:, 2]), np.maximum(1e-3 * far, 1e-300))
    low, middle, high = moments.T
    empty, negative = m == 0, low < -slack
    broken = np.where(
        empty, np.abs(moments).max(axis=1) > 0, low + middle < high - slack
    )
    for k in np.flatnonzero(broken | (negative & ~empty)).tolist():
        shown = ", ".join(f"{x:.6g}" for x in moments[k])
        if empty[k]:
            yield k, f"mass is 0 but principal moments are {shown}; they must be 0"
        elif negative[k]:
            yield (
                k,
                f"inertia is not positive definite: principal moments {shown} kg·m²",
            )
        else:
            yield (
                k,
                f"inertia breaks the triangle inequality: principal moments {shown}"
                " kg·m² (each must be at most the sum of the others)",
            )


def with_inertia_scales(tree: AnyTree) -> AnyTree:
    """Return the tree with inertia_scale and without_inertia computed.

        inertia_scale = armature + inertia along the coordinate, largest of POSITIONS

    The POSITIONS (3) are the neutral one and two random ones, the same in each call. An
    independent joint is in without_inertia if it and each of its followers have a
    coordinate whose inertia_scale is at most 1e-12 of the size of the inertia that the
    joint carries: the larger of its largest moment and its mass, at least 1e-12.
    """
    along, reach = _inertias_along(tree)
    largest = [[0.0] * joint.nv for joint in tree.joint]
    for i in tree.bodies:
        pairs = zip(along[i], tree.armature[i], strict=True)
        largest[i] = [x + float(more) for x, more in pairs]
    followers: dict[int, list[int]] = {}
    for k in tree.bodies:
        followers.setdefault(tree.leader[k].body, []).append(k)
    lacking = [
        tree.names[i]
        for i in tree.independent
        if max(min(largest[k]) for k in followers[i]) <= 1e-12 * max(reach[i], 1e-12)
    ]
    scales = tuple(map(tuple, largest))
    return replace(tree, inertia_scale=scales, without_inertia=tuple(lacking))


def _inertias_along(tree: Tree) -> tuple[list[list[float]], list[float]]:
    """Return by body the inertias along its joint, and the size of the carried inertia.

    The first has for each coordinate the largest in POSITIONS positions, without
    armature [kg·m² | kg]; the second the largest moment or, if larger, the mass of the
    composite inertia in these positions. Entries 0 are [] and 0.0.
    """
    rng = np.random.default_rng(0)
    states = [neutral(tree), *(random(tree, rng) for _ in range(POSITIONS - 1))]
    parts = [split_q(tree, Vector(q.tolist())) for q in states]
    places = list(zip(*(q[1:] for q in parts), strict=True))
    composite = np.repeat(_inertia_matrices(tree.I[1:])[:, None], POSITIONS, axis=1)
    E, r = joint_transforms(tree.joint[1:], places)
    X = _matrices(E, r).reshape(-1, POSITIONS, 6, 6)
    E = np.array([X.E.rows for X in tree.Xtree[1:]], float).reshape(-1, 3, 3)
    r = np.array([X.r.entries for X in tree.Xtree[1:]], float).reshape(-1, 3)
    X = X @ _matrices(E, r)[:, None]
    forces = X.swapaxes(2, 3)
    for i in reversed(tree.bodies):
        if tree.parent[i]:
            k = i - 1
            composite[tree.parent[i] - 1] += forces[k] @ composite[k] @ X[k]
    along: list[list[float]] = [[]] * (tree.nb + 1)
    numbers: dict[int, list[int]] = {}
    for i in tree.bodies:
        numbers.setdefault(tree.joint[i].nv, []).append(i)
    for n, bodies in numbers.items():
        rows = [motion_rows(tree.joint[i], places[i - 1]) for i in bodies]
        S = np.array(rows, float).reshape(len(bodies), POSITIONS, n, 6)
        moved = composite[np.array(bodies) - 1]
        largest = (S @ moved * S).sum(axis=3).max(axis=1).tolist()
        for i, row in zip(bodies, largest, strict=True):
            along[i] = row
    reach = composite[:, :, [0, 0, 0, 1, 1, 1, 2, 2, 2, 5], [0, 1, 2] * 3 + [5]]
    return along, [0.0, *reach.max(axis=(1, 2)).tolist()]


def _inertia_matrices(inertias: Sequence[RigidInertia]) -> np.ndarray:
    """Return n inertias about their origins, (n, 6, 6), [[I, [m c]], [[m c].T, m]]."""
    ten = np.array([body.parameters for body in inertias], float).reshape(-1, 10)
    M = np.zeros((len(ten), 6, 6))
    M[:, :3, :3] = ten[:, [4, 5, 7, 5, 6, 8, 7, 8, 9]].reshape(-1, 3, 3)
    M[:, :3, 3:] = _skew(ten[:, 1:4])
    M[:, 3:, :3] = M[:, :3, 3:].swapaxes(1, 2)
    M[:, [3, 4, 5], [3, 4, 5]] = ten[:, :1]
    return M


def _matrices(E: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return n transforms as (n, 6, 6) for motions, [[E, 0], [-E [r], E]].

    E (n, 3, 3) rotate coordinates, r (n, 3) [m] are new origins in the old frame.
    """
    X = np.zeros((len(E), 6, 6))
    X[:, :3, :3] = X[:, 3:, 3:] = E
    X[:, 3:, :3] = -E @ _skew(r)
    return X


def _skew(r: np.ndarray) -> np.ndarray:
    """Return matrices [r] (n, 3, 3) with [r] b = r x b, for n vectors r (n, 3)."""
    skew = np.zeros((len(r), 3, 3))
    skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0] = r.T
    skew -= skew.swapaxes(1, 2).copy()
    return skew


def check_inertia_along(tree: Tree, findings: Findings) -> None:
    """Add a warning about the joints without inertia along them, up to 12.

    Joints in loops and couplings are exempt: these may determine their motion.
    """
    moved = joints_in_loops(tree)
    names = [name for name in tree.without_inertia if name not in moved]
    if len(names) == 1:
        what = f"nothing it carries has inertia along it; {REMEDY}"
        findings.doubt(
            "joint", names[0], what, "forward dynamics is refused until then"
        )
    elif names:
        what = "nothing that they carry has inertia along them"
        instead = "forward dynamics is refused, all that needs no inertia is not"
        if findings.strict:
            what = f"nothing it carries has inertia along it; {REMEDY}"
            findings.doubt("joint", names[0], what)
        shown = short_list(names, 12)
        findings.note("", "", f"joints {shown}: {what}; {instead}")


def lack_of_inertia(tree: Any, options: Mapping[str, Any]) -> str | None:
    """Return why forward dynamics of a robot is undefined, or None if it is defined.

    The reason names the first joint without inertia along it. Exempt are joints in
    loops and couplings, and those of the option `prescribed`: names of joints, or pairs
    (name, index of a coordinate), one for each of the joint's coordinates.
    """
    lacking = getattr(tree, "without_inertia", ())
    if not lacking:
        return None
    chosen = options.get("prescribed") or ()
    entries = [x if isinstance(x, str) else tuple(x) for x in chosen]
    moved = joints_in_loops(tree)
    for name in lacking:
        if name in moved:
            continue  # whether the loops move it here shows in the call
        n = tree.joint[tree.body_of_joint(name)].nv
        if name not in entries and any((name, k) not in entries for k in range(n)):
            return f"joint '{name}': nothing it carries has inertia along it; {REMEDY}"
    return None


def joints_in_loops(tree: Tree) -> set[str]:
    """Return the names of joints between the links of a loop, and joints of couplings.

    A joint is between the two links of a loop if it carries exactly one of them.
    """
    names: set[str] = set()
    for loop in tree.build.constraints:
        if isinstance(loop, Loop):
            ends = [_supports(tree, link) for link in (loop.a, loop.b)]
            names |= {tree.names[i] for i in ends[0] ^ ends[1]}
        else:
            names |= set(loop.joints)
    return names


def _supports(tree: Tree, link: str | None) -> set[int]:
    """Return the bodies from a link's (None: the base) to the base, itself left out."""
    i, bodies = 0 if link is None else tree.frame(link).body, set()
    while i:
        bodies.add(i)
        i = tree.parent[i]
    return bodies
