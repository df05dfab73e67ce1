"""Random robots with every joint kind, and chains, from a seed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.model import (
    Build,
    Description,
    JointSpec,
    LinkSpec,
    Mimic,
    Model,
    assemble,
)
from dyn_core.model.joints import KINDS, make_joint
from dyn_core.spatial import RigidInertia
from dyn_core.validation import known_keywords

_TRIPLES = (
    "planar",
    "ball_rpy",
    "ball_exp",
)  # kinds of matrix couplings
_SINGLE = ("revolute", "continuous", "prismatic", "helical")
_FACTORS = ("revolute", "prismatic", "helical")  # of random products


@known_keywords
def random_model(
    seed: int,
    size: int = 6,
    branching: float = 0.5,
    kinds: tuple[str, ...] = tuple(KINDS),
    mimic: float = 0.2,
    massless: float = 0.1,
    asymmetry: float = 0.25,
) -> Model:
    """Return a random tree, the same for the same arguments; gravity is random, too.

    Besides the moving joints it has some fixed ones. The first link is called base,
    joints j1, j2, ..., the link of joint jN bN; a link fN is fixed to some of them by
    the joint wN.

    Args:
        seed: Seed of the random generator.
        size: Number of moving joints.
        branching: Probability that a joint starts at a random earlier link, not at the
            last one.
        kinds: Joint kinds to draw from.
        mimic: Probability that a joint follows an earlier joint of a suitable kind.
        massless: Probability that an inner link has no mass.
        asymmetry: Friction asymmetry as a fraction of each joint's dry friction.

    Raises:
        SettingError: A keyword is unknown.
        KeyError: An unknown kind is drawn.
        ValueError: The seed or the size is negative, or there are no kinds.
    """
    rng = np.random.default_rng((seed, size))
    links = [LinkSpec("base", random_inertia(rng))]
    joints: list[JointSpec] = []
    for n in range(1, size + 1):
        parent = links[-1].name
        if rng.uniform() < branching:
            parent = links[rng.integers(len(links))].name
        joints.append(_joint(rng, f"j{n}", parent, f"b{n}", kinds, joints, mimic))
        even = joints[-1]
        joints[-1] = replace(even, friction_asymmetry=asymmetry * even.friction)
        links.append(LinkSpec(f"b{n}", random_inertia(rng)))
        if rng.uniform() < 0.3:
            weld = JointSpec(f"w{n}", "fixed", f"b{n}", f"f{n}", *_placement(rng))
            joints.append(weld)
            links.append(LinkSpec(f"f{n}", random_inertia(rng, 0.3)))
    links = _without_mass(rng, links, joints, massless)
    description = Description(f"random{seed}", tuple(links), tuple(joints))
    gravity = tuple(float(x) for x in rng.normal(size=3) * 6)
    return assemble(Build(description, gravity=gravity))


def random_inertia(rng: np.random.Generator, scale: float = 1.0) -> RigidInertia:
    """Return the inertia of six random point masses, always physical.

    It is about the origin. Points are within 0.3 m, masses 0.05 to 0.5 kg times
    `scale`.
    """
    total = RigidInertia.zero()
    for _ in range(6):
        r = tuple(float(x) for x in rng.uniform(-0.3, 0.3, 3))
        m = float(rng.uniform(0.05, 0.5)) * scale
        total = total + RigidInertia.of(m, r, (0.0,) * 6)
    return total


def chain(n: int, seed: int = 0) -> Model:
    """Return an unbranched chain of n equal revolute joints in general position.

    Joints are called j1 to jn, links b0 (the base) to bn.

    Args:
        n: Number of joints; a negative one raises ModelError.
        seed: Seed of the inertia, which all links have, and of the placement of the
            joints; a negative one raises ValueError.
    """
    rng = np.random.default_rng(seed)
    inertia, (xyz, rpy) = random_inertia(rng), _placement(rng)
    axis = (1 / 3, 2 / 3, 2 / 3)
    links = [LinkSpec(f"b{k}", inertia) for k in range(n + 1)]
    joints = [
        JointSpec(f"j{k}", "revolute", f"b{k - 1}", f"b{k}", xyz, rpy, axis)
        for k in range(1, n + 1)
    ]
    return assemble(Build(Description(f"chain{n}", tuple(links), tuple(joints))))


def _placement(rng: np.random.Generator) -> tuple[tuple, tuple]:
    xyz = tuple(float(x) for x in rng.uniform(-0.4, 0.4, 3))
    rpy = tuple(float(x) for x in rng.uniform(-math.pi, math.pi, 3))
    return xyz, rpy


def _joint(
    rng: np.random.Generator,
    name: str,
    parent: str,
    child: str,
    kinds: tuple[str, ...],
    before: list[JointSpec],
    mimic: float,
) -> JointSpec:
    """Return a random joint, which may follow an earlier one of a suitable kind.

    It has no position or velocity limits. `mimic` is a probability.
    """
    kind = kinds[rng.integers(len(kinds))]
    axis: Any = tuple(float(x) for x in rng.normal(size=3))
    if rng.uniform() < 0.3:
        axis = tuple(float(x) for x in np.eye(3)[rng.integers(3)])
    xyz, rpy = _placement(rng)
    rule = None
    single = [j.name for j in before if j.kind in _SINGLE]
    if kind in _SINGLE and single and rng.uniform() < mimic:
        factor, offset = rng.uniform(-1.5, 1.5, 2)
        rule = Mimic(single[rng.integers(len(single))], float(factor), float(offset))
    alike = [j.name for j in before if j.kind in _TRIPLES]
    if kind in _TRIPLES and alike and rng.uniform() < mimic:
        rows = tuple(tuple(map(float, row)) for row in rng.uniform(-1, 1, (3, 3)))
        rule = Mimic(alike[rng.integers(len(alike))], rows, (0.1, -0.2, 0.3))
    damping, friction, armature = (float(x) for x in rng.uniform(0, 0.5, 3))
    bare = JointSpec(name, kind, parent, child)
    springs = kind not in ("spherical", "floating")
    return JointSpec(
        name,
        kind,
        parent,
        child,
        xyz,
        rpy,
        axis,
        effort=50.0,
        damping=damping,
        friction=friction,
        armature=armature,
        mimic=rule,
        stiffness=float(rng.uniform(0, 5)) if springs else 0.0,
        rest=float(rng.uniform(-0.5, 0.5)),
        **_shape(rng, bare),
    )


def _shape(rng: np.random.Generator, bare: JointSpec) -> dict[str, Any]:
    """Return random options of JointSpec for helical, universal and product joints."""
    if bare.kind == "helical":
        return {"pitch": float(rng.uniform(-0.2, 0.2))}
    if bare.kind == "universal" and rng.uniform() < 0.5:
        axes = np.eye(3) + 0.3 * rng.normal(size=(3, 3))
        return {"axes": tuple(tuple(map(float, axis)) for axis in axes[:2])}
    if bare.kind == "product":
        factors = []
        for row in np.eye(3) + 0.2 * rng.normal(size=(3, 3)):
            kind = _FACTORS[rng.integers(len(_FACTORS))]
            part = replace(
                bare, kind=kind, axis=(float(row[0]), float(row[1]), float(row[2]))
            )
            factors.append(replace(part, **_shape(rng, part)))
        return {"factors": tuple(factors[: 2 + rng.integers(2)])}
    return {}


def _without_mass(
    rng: np.random.Generator,
    links: list[LinkSpec],
    joints: list[JointSpec],
    chance: float,
) -> list[LinkSpec]:
    """Return the links in their order, some inner ones without mass by `chance`."""
    carried = {j.parent for j in joints if j.kind != "fixed" and make_joint(j).nv <= 3}
    above = {j.child: j.kind for j in joints}
    result = []
    for link in links:
        light = above.get(link.name) in ("revolute", "continuous", "prismatic")
        if light and link.name in carried and rng.uniform() < chance:
            link = LinkSpec(link.name, RigidInertia.zero())
        result.append(link)
    return result
