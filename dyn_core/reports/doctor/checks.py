"""Checks of `dyn doctor`: joints, masses and inertias, and the robot in motion.

A finding is a Met: code, owner (the place), fact (its numbers) and lines to paste.

Positions are drawn with a fixed seed within the limits. Programs are interpreted
(engine graph): compiling would take longer than a report.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from dyn_core.errors import DynError
from dyn_core.model import Model
from dyn_core.model.checks.inertias import TRIANGLE, joints_in_loops
from dyn_core.reports.doctor.facts import (
    LIMITED,
    ONE_AXIS,
    JointFacts,
    LinkFacts,
    RobotFacts,
)
from dyn_core.reports.doctor.report import Met
from dyn_core.reports.doctor.solids import LinkSolid, Solids
from dyn_core.simulation.loop_closure import close_loops
from dyn_core.simulation.loop_report import TRIES, loop_report
from dyn_core.solving.registry import solver

ENGINE = "graph"
WORST = 1e7  # maximum condition number of the scaled H [-]
TINY = 1e-5  # mass relative to the robot's that counts as tiny [-]
TINY_MASS = 1e-3  # and maximum mass that counts as tiny [kg]
RANK = 1e-7  # relative tolerance of singular values
MOST_TIPS = 8  # maximum number of tips that are checked
OPEN = 1e-6  # maximum gap of a closed loop [m | rad]


class SampledMotions(NamedTuple):
    """A robot with random positions q, (samples, nq) [SI].

    The checks add to `figures`, measured values as text by name, and to `notes`,
    omitted checks and why.
    """

    model: Model
    q: np.ndarray
    figures: dict[str, str]
    notes: list[str]


def sampled(model: Model, samples: int, seed: int) -> SampledMotions:
    """Return a robot with random positions, (samples, nq), and no results yet.

    As in Model.random, only joints of one coordinate keep their limits, if both are
    finite, and loops are not closed.
    """
    rng = np.random.default_rng(seed)
    q = np.array([model.random(rng) for _ in range(samples)])
    return SampledMotions(model, q.reshape(samples, model.nq), {}, [])


def check_motions(motions: SampledMotions) -> Iterator[Met]:
    """Yield findings on the bodies of a robot, and on its motion at given positions.

    If a check of the motion raises a DynError, the reason is appended to motions.notes,
    and the other checks continue.
    """
    model = motions.model
    yield from _bodies(model)
    if model.nv == 0:
        motions.notes.append("nothing moves: no motion was looked at")
        return
    for check in (_inertia_matrix, _weight, _tips, _loops):
        try:
            yield from check(motions)
        except DynError as error:
            what = check.__name__.strip("_").replace("_", " ")
            motions.notes.append(f"{what} was not looked at: {error}")


def _bodies(model: Model) -> Iterator[Met]:
    """Yield joints without inertia along them, and bodies of little or no mass.

    Joints in loops are not reported for their inertia. Bodies of mass 0 are left out if
    their joint lacks inertia, or the whole robot has no mass.
    """
    in_loops = joints_in_loops(model)
    lacking = [name for name in model.without_inertia if name not in in_loops]
    for name in lacking:
        yield Met("no-inertia-along", f"joint '{name}'", "its inertia is 0")
    total = float(model.mass)
    for i in model.bodies:
        m, name = float(model.I[i].m), model.names[i]
        owner = f"body behind joint '{name}'"
        if m == 0.0 and name not in model.without_inertia and total > 0:
            yield Met("massless-body", owner, "mass 0")
        elif 0.0 < m < min(TINY * total, TINY_MASS):
            yield Met("tiny-mass", owner, f"{m:.3g} kg of {total:.4g} kg")


def _inertia_matrix(motions: SampledMotions) -> Iterator[Met]:
    """Yield at most one finding: H, scaled to a unit diagonal, is nearly singular.

    The condition numbers are added to motions.figures; if joints lack inertia, there is
    only a note.
    """
    model = motions.model
    if model.without_inertia:
        motions.notes.append("H is singular: its condition was not looked at")
        return
    H = solver("crba").build(model, engine=ENGINE)(motions.q)
    diagonal = np.einsum("kii->ki", H)
    if (diagonal <= 0).any():
        k = int(np.argmin(diagonal.min(axis=0)))
        what = f"its entry of the diagonal of H is {diagonal[:, k].min():.3g}"
        yield Met("ill-conditioned", f"joint '{_coordinate(model, k)}'", what)
        return
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(H * scale[:, :, None] * scale[:, None, :])
    conditions = values[:, -1] / np.maximum(values[:, 0], 1e-300)  # may be 0
    worst = int(np.argmax(conditions))
    middle = float(np.median(conditions))
    motions.figures["condition of the scaled H"] = (
        f"median {middle:.3g}, largest {conditions[worst]:.3g}"
    )
    if conditions[worst] > WORST:
        motion = _largest(model, vectors[worst, :, 0])
        what = f"up to {conditions[worst]:.2g}; motion without inertia: {motion}"
        yield Met("ill-conditioned", "", what)


def _largest(model: Model, direction: np.ndarray) -> str:
    """Return the names of the joints with the largest entries of a direction.

    A joint is repeated if several of its entries are among them.
    """
    share = np.abs(direction) / np.abs(direction).max()
    order = [int(k) for k in np.argsort(-share) if share[k] > 0.1][:4]
    return ", ".join(f"'{_coordinate(model, k)}'" for k in order)


def _coordinate(model: Model, k: int) -> str:
    """Return the name of the joint of velocity coordinate k, 0..nv-1."""
    return next(
        model.names[i]
        for i in model.independent
        if model.v_slices[i].start <= k < model.v_slices[i].stop
    )


def _weight(motions: SampledMotions) -> Iterator[Met]:
    """Yield joints whose effort limit is less than the gravity load somewhere.

    Only driven joints of one coordinate are checked, and no followers, whose weight
    their leaders carry. With loops there is only a note.
    """
    model = motions.model
    if model.loops:
        motions.notes.append(
            "weight against effort limits: not looked at, loops share the weight"
        )
        return
    tau = np.abs(solver("gravity").build(model, engine=ENGINE)(motions.q))
    limit, loads = np.asarray(model.effort_limit, float), []
    active = set(model.active_joints)
    for i in model.independent:
        k = model.v_slices[i].start
        if model.joint[i].nv != 1 or limit[k] <= 0 or model.names[i] not in active:
            continue
        ratio = tau[:, k] / limit[k]
        loads.append((float(ratio.max()), model.names[i], limit[k]))
        share = float((ratio > 1).mean())
        if share > 0:
            unit = "N" if model.joint[i].kind == "prismatic" else "N·m"
            what = (
                f"{tau[:, k].max():.4g} of {limit[k]:.4g} {unit} ({ratio.max():.0%});"
            )
            fact = f"{what} too weak in {share:.0%} of {len(tau)} positions"
            yield Met("weak-effort", f"joint '{model.names[i]}'", fact)
    if loads:
        most, name, bound = max(loads)
        motions.figures["largest weight by effort limit"] = (
            f"'{name}': {most:.0%} of {bound:.4g}"
        )


def _tips(motions: SampledMotions) -> Iterator[Met]:
    """Yield tips with joint motions that cancel in each of the first 40 positions.

    A tip is a body without children; only chains of two to six coordinates yield a
    finding. With loops there is only a note.
    """
    model = motions.model
    if model.loops:
        motions.notes.append("singular directions of tips: not looked at with loops")
        return
    parents = set(model.parent[1:])
    leaves = [i for i in model.bodies if i not in parents]
    if len(leaves) > MOST_TIPS:
        motions.notes.append(f"tips: the first {MOST_TIPS} of {len(leaves)}")
    q = motions.q[: min(len(motions.q), 40)]
    for body in leaves[:MOST_TIPS]:
        names = [x for x, frame in model.frames.items() if frame.body == body]
        columns = _columns(model, body)
        if not names or len(columns) < 2:
            continue
        J = solver("jacobian").build(model, frame=names[0], engine=ENGINE)(q)
        J = J[:, :, columns]
        length = max(float(np.abs(J[:, 3:]).max()), 1e-9)  # rad become comparable to m
        J = np.concatenate([J[:, :3] * length, J[:, 3:]], axis=1)
        sizes = np.linalg.svd(J, compute_uv=False)
        ratios = sizes[:, -1] / sizes[:, 0]
        motions.figures[f"tip '{names[0]}'"] = (
            f"smallest by largest singular value of J: median {np.median(ratios):.2g},"
            f" smallest {ratios.min():.2g}"
        )
        if len(columns) <= 6 and ratios.max() < RANK:
            null = np.linalg.svd(J[0])[2][-1]
            padded = np.zeros(model.nv)
            padded[columns] = null
            what = f"motions of {_largest(model, padded)} cancel"
            yield Met("idle-motion", f"tip '{names[0]}'", what)


def _columns(model: Model, body: int) -> list[int]:
    """Return the indices of the velocity coordinates that move a body, ascending."""
    columns: set[int] = set()
    while body:
        part = model.v_slices[model.leader[body].body]
        columns |= set(range(part.start, part.stop))
        body = model.parent[body]
    return sorted(columns)


def _loops(motions: SampledMotions) -> Iterator[Met]:
    """Yield findings about loops: open at zero, never closed, or dependent rows.

    Only model.neutral() and the closed position found from there are looked at.
    """
    model = motions.model
    if not model.loops:
        return
    q = model.neutral()
    try:
        gap = loop_report(model, q).gap
    except DynError as error:
        gap = float("inf")
        motions.notes.append(f"loops at zero: {error}")
    try:
        closed = loop_report(model, close_loops(model, q, tries=TRIES))
    except DynError as error:
        yield Met("open-loop", "", f"gap {gap:.3g} at zero; {error}")
        return
    motions.figures["loops"] = (
        f"{len(closed.rows)} rows, rank {closed.rank}, mobility {closed.mobility}"
    )
    if gap > OPEN:
        yield Met("loop-gap", "", f"gap {gap:.3g} (m or rad) at model.neutral()")
    for group in closed.dependent:
        yield Met("dependent-rows", "", "; ".join(group))


MANY_TIMES = 10.0  # ratio to a uniform box from which inertia is improbable
HEAVIEST, LIGHTEST = 25_000.0, 1.0  # plausible densities of a body [kg/m³]
HEAVY = 100.0  # maximum of a joint's armature, in inertias of the whole robot
ROCK = 3000.0  # maximum of mass / reach³ of a whole robot [kg/m³]
SLACK, SLACK_LENGTH = 0.1, 0.005  # tolerance of a centre: part of the box; [m]
SMALLEST_REACH = 0.05  # minimum reach for checks relative to it [m]
DENSER = 0.1  # maximum radius of gyration, in those of a ball of HEAVIEST, of a fault
LIGHT, _LIGHT = 1e-3, "light-placeholder"  # share of the robot's mass; code
ALIKE = 3  # number of links with equal moments that count as placeholders


def check_links(
    robot: RobotFacts, solids: Solids, bodies: Mapping[str, LinkFacts]
) -> Iterator[Met]:
    """Yield the findings about mass and inertia of every link and of the whole robot.

    Links without mass are not compared with their shapes. If a link has at most LIGHT
    of the robot's mass, what contradicts its shapes has the code light-placeholder.
    Meshes that cannot be read raise no error. `bodies` is the result of facts.bodies,
    for each link the whole body rigidly connected to it: if that is possible,
    impossible-inertia of the link becomes impossible-part. `bodies` is empty if the
    robot does not load.
    """
    reach = robot.reach
    light = LIGHT * sum(max(link.mass, 0.0) for link in robot.links)
    for link in robot.links:
        whole = bodies.get(link.name)
        part = whole is not None and not any(_impossible(whole))
        yield from (_as_part(x) if part else x for x in _impossible(link))
        yield from _places_of(link)
        if link.mass <= 0:
            continue
        gyration = math.sqrt(max(np.trace(link.Ic), 0.0) / (2 * link.mass))
        solid = solids.of(link)
        if solid is not None:
            for met in _beside_shape(link, solid):
                yield met if link.mass > light else met._replace(code=_LIGHT)
        elif gyration > max(reach, SMALLEST_REACH):
            what = f"{gyration:.3g} m; the robot reaches {reach:.3g} m"
            yield Met("inertia-units", _named(link), what)
        elif link.mass > light and 0.0 < gyration < DENSER * _ball(link.mass):
            what = f"{gyration:.3g} m; {link.mass:.4g} kg of tungsten have"
            fact = f"{what} {_ball(link.mass):.2g} m or more"
            yield Met("inertia-units", _named(link), fact)
    for link in filter(lambda x: x.geometry, robot.massless):
        fact = "it has no <inertial> with a mass, and counts as mass 0"
        yield Met("shape-without-mass", _named(link), fact)
    yield from _placeholders(robot)
    total = sum(max(link.mass, 0.0) for link in robot.links)
    if (
        reach >= SMALLEST_REACH
        and total > ROCK * reach * reach * reach
        and total > 100.0
    ):
        yield Met("mass-units", "", f"{total:.4g} kg within {reach:.3g} m")
    for name, reason in solids.unread.items():
        owner = f"link '{name}'"
        yield Met("meshes-unread", owner, reason.removeprefix(f"{owner}: "))


def _places_of(link: LinkFacts) -> Iterator[Met]:
    """Yield a centre of mass that is far away, and angles that look like degrees."""
    distance = float(np.linalg.norm(link.centre))
    if link.mass and distance >= ABSURD:
        fact = f"its centre of mass is {distance:.6g} m from its frame"
        yield Met("far-origin", _named(link), fact)
    for what, rpy in link.angles:
        if max(map(abs, rpy)) > ROTATED:
            shown = " ".join(f"{x:g}" for x in rpy)
            yield Met("angles-in-degrees", _named(link), f'{what} rpy="{shown}"')


def _ball(mass: float) -> float:
    """Return sqrt(I / m), as of a link, of a ball of the HEAVIEST density [m].

    I is half the sum of the moments. No body of this mass and at most this density has
    less.
    """
    radius = math.cbrt(mass / (4 / 3 * math.pi * HEAVIEST))
    return math.sqrt(0.6) * radius


def _as_part(met: Met) -> Met:
    """Return "impossible-inertia" as "impossible-part": the whole body is possible."""
    code = "impossible-part" if met.code == "impossible-inertia" else met.code
    return met._replace(code=code)


def _named(link: LinkFacts) -> str:
    return f"link '{link.name}'"


def _impossible(link: LinkFacts) -> Iterator[Met]:
    """Yield at most one finding: why no body has this mass and inertia."""
    if link.mass < 0:
        what = f"mass {link.mass:.6g} kg is negative"
        yield Met("impossible-inertia", _named(link), what)
        return
    low, middle, high = moments = link.moments
    shown = ", ".join(f"{x:.4g}" for x in moments)
    if link.mass == 0:
        if np.abs(moments).max() > 0:
            what = f"principal moments {shown} kg·m²"
            yield Met("moments-without-mass", _named(link), what)
        return
    square = float(link.centre @ link.centre)
    # Moments about the link's origin lose digits in the shift to the centre of mass.
    slack = TRIANGLE * max(np.abs(moments).max(), 1e-3 * link.mass * square, 1e-300)
    if low < -slack:
        what = f"principal moments {shown} kg·m²: one is negative"
        yield Met("impossible-inertia", _named(link), what)
    elif low + middle < high - slack:
        excess = high - low - middle
        what = f"principal moments {shown} kg·m²: the largest is {excess:.2g} above"
        yield Met("impossible-inertia", _named(link), f"{what} the sum of the others")


def _beside_shape(link: LinkFacts, solid: LinkSolid) -> Iterator[Met]:
    """Yield contradictions between mass (above 0), inertia and shapes of a link.

        improbable-inertia    sum of moments above 10 times that of a uniform box
        concentrated-inertia  sum of moments below 1/10 of that
        improbable-density    mass / volume outside 1 to 25 000 kg/m³
        centre-outside        centre of mass outside the box, by 0.1 side + 5 mm

    The box has the size of the shapes.
    """
    a, b, c = solid.size
    box = f"box of {a:.3g} x {b:.3g} x {c:.3g} m"
    uniform = link.mass * float(solid.size @ solid.size) / 6
    trace = float(np.trace(link.Ic))
    if uniform > 0 and trace >= 0:  # a negative one is impossible-inertia
        ratio = trace / uniform
        if ratio > MANY_TIMES:
            what = f"moments are {ratio:.3g} times those of a uniform {box}"
            yield Met("improbable-inertia", _named(link), what)
        elif ratio < 1 / MANY_TIMES:
            part = f"1/{1 / ratio:.3g} of" if ratio > 1e-9 else "0 beside"
            what = f"moments are {part} those of a uniform {box}"
            yield Met("concentrated-inertia", _named(link), what)
    if solid.volume > 0:
        density = link.mass / solid.volume
        if not LIGHTEST <= density <= HEAVIEST:
            what = f"{link.mass:.4g} kg in a convex hull of {solid.volume:.3g} m³:"
            fact = f"{what} {density:.3g} kg/m³{_guess(density)}"
            yield Met("improbable-density", _named(link), fact)
    beside = np.maximum(solid.low - link.centre, link.centre - solid.high)
    if (beside > SLACK * solid.size + SLACK_LENGTH).any():
        place = ", ".join(f"{x:.3g}" for x in link.centre)
        distance = float(np.linalg.norm(np.maximum(beside, 0.0)))
        what = f"({place}) m lies {distance:.3g} m outside the {box}"
        yield Met("centre-outside", _named(link), what)


def _guess(density: float) -> str:
    """Return a remark on the probable unit of an implausible density [kg/m³]."""
    if 1e5 < density < 1e7:
        return "; a thousandth of the mass would be usual"
    if density < 1e-3:
        return "; a thousandth of the lengths would be usual"
    return ""


def _placeholders(robot: RobotFacts) -> Iterator[Met]:
    """Yield groups of ALIKE links or more of different mass with the same moments."""
    groups: dict[tuple[float, ...], list[LinkFacts]] = {}
    for link in robot.links:
        if link.mass > 0 and link.moments[2] > 0:
            key = tuple(float(f"{x:.6g}") for x in link.moments)
            groups.setdefault(key, []).append(link)
    for key, links in groups.items():
        masses = [link.mass for link in links]
        if len(links) >= ALIKE and max(masses) > 1.1 * min(masses):
            shown = ", ".join(f"{x:.4g}" for x in key)
            names = ", ".join(f"'{link.name}'" for link in links[:6])
            what = f"{len(links)} links have {shown} kg·m²"
            more = ", ..." if len(links) > 6 else ""
            yield Met("placeholder-inertia", f"links {names}{more}", what)


TURNS = 20.0  # larger angles are no limits in radians [rad]
ENDLESS = 1e4  # larger limits mean that there is none [rad]
FAST = 90.0  # larger joint speeds are implausible for a gear [rad/s]
ALMOST = 2e-3  # maximum angle that counts as a rounding error [rad]
ROUNDING = 1e-5  # smaller angles are not worth a hint [rad]
LONG, ABSURD = 10.0, 100.0  # doubtful and impossible lengths between joints [m]
ROTATED = 2 * math.pi + 0.01  # maximum angle of an origin [rad]


def check_joints(robot: RobotFacts) -> Iterator[Met]:
    """Yield the findings about the joints of a file, and first about its tree."""
    yield from _tree(robot)
    for joint in robot.joints:
        owner = f"joint '{joint.name}'"
        for check in _CHECKS:
            for code, what in check(joint):
                yield Met(code, owner, what)
    yield from _units(robot)
    yield from _rotors(robot)
    yield from _chains(robot)


def _tree(robot: RobotFacts) -> Iterator[Met]:
    """Yield reasons why links and joints do not form a tree.

    A link `world` need not exist. A circle of joints apart from the root is not
    noticed.
    """
    for what, parts in (("link", robot.links), ("joint", robot.joints)):
        for name, count in Counter(part.name for part in parts).items():
            if count > 1:
                yield Met("broken-tree", f"{what} '{name}'", f"is there {count} times")
    links = {link.name for link in robot.links}
    above: dict[str, str] = {}
    for joint in robot.joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links and link != "world":
                fact = f"{role} link '{link}' does not exist"
                yield Met("broken-tree", f"joint '{joint.name}'", fact)
        if joint.child in above:
            pair = f"'{above[joint.child]}' and '{joint.name}'"
            fact = f"is the child of {pair}"
            yield Met("broken-tree", f"link '{joint.child}'", fact)
        above[joint.child] = joint.name
    roots = [link.name for link in robot.links if link.name not in above]
    if robot.links and len(roots) != 1:
        shown = ", ".join(f"'{name}'" for name in roots[:6]) or "none: it is a circle"
        yield Met("broken-tree", "", f"{len(roots)} roots: {shown}")


Problems = Iterator[tuple[str, str]]


def _axis(joint: JointFacts) -> Problems:
    """Yield (code, fact) of an axis: zero, not of unit length, or slightly tilted."""
    if joint.kind not in (*ONE_AXIS, "cylindrical", "planar") or joint.axis is None:
        return
    shown = " ".join(f"{x:g}" for x in joint.axis)
    length = math.hypot(*joint.axis)
    if length < 1e-9:  # divisor below
        yield "zero-axis", f"axis {shown}"
        return
    if abs(length - 1) > 1e-3:
        yield "axis-not-unit", f"axis {shown} has length {length:.4g}"
    across = [abs(x) / length for x in joint.axis]
    across.remove(max(across))
    tilt = math.hypot(*across)
    if 0.0 < tilt < ALMOST:
        yield "axis-almost-straight", f"axis {shown} is tilted by {tilt:.1e} rad"


def _origin(joint: JointFacts) -> Problems:
    """Yield (code, fact) of an origin that is far away, or whose angles are doubtful.

    Angles look like degrees beyond a full turn, and rounded near a quarter turn.
    """
    distance = math.hypot(*joint.xyz)
    if distance >= ABSURD:
        yield "far-origin", f"{distance:.6g} m from its parent link"
    if max(map(abs, joint.rpy)) > ROTATED:
        shown = " ".join(f"{x:g}" for x in joint.rpy)
        yield "angles-in-degrees", f'rpy="{shown}"'
        return
    for angle in joint.rpy:
        rest = abs(math.remainder(angle, math.pi / 2))
        if ROUNDING < rest < ALMOST and abs(angle) > 1.0:
            yield "rounded-angle", f"{angle!r} is {rest:.1e} rad off a quarter turn"


def _limits(joint: JointFacts) -> Problems:
    """Yield (code, fact) of doubts about the limits of a joint that is no follower."""
    if joint.kind not in (*LIMITED, "continuous") or joint.mimic is not None:
        return
    low, high = joint.range
    if joint.kind in LIMITED:
        if not joint.limited:
            yield "missing-limits", f"{joint.kind} without limits"
        elif low > high:
            yield "reversed-limits", f"lower {low:g}, upper {high:g}"
        elif low == high:
            yield "zero-range", f"lower and upper {low:g}"
        elif low > 0 or high < 0:
            yield "neutral-outside", f"[{low:g}, {high:g}]"
    if joint.passive:
        return
    if not joint.limits.get("effort"):
        yield "no-effort-limit", _absent(joint, "effort")
    if not joint.limits.get("velocity"):
        yield "no-velocity-limit", _absent(joint, "velocity")


def _absent(joint: JointFacts, what: str) -> str:
    """Return "WHAT is 0" or "WHAT is not given", of a limit such as "effort"."""
    return f"{what} is {'0' if what in joint.limits else 'not given'}"


def _angles(joint: JointFacts) -> Problems:
    """Yield (code, fact) of limits that look like degrees: of position, then velocity.

    Limits of ENDLESS or more count as none. Position limits of a continuous joint do
    not act and only give its velocity limit away. A wheel may be fast; a joint with
    stops is not.
    """
    if joint.kind not in ("revolute", "continuous"):
        return
    low, high = (joint.limits.get(side, 0.0) for side in ("lower", "upper"))
    wide = [x for x in (low, high) if TURNS < abs(x) < ENDLESS]
    if wide and joint.kind == "revolute":
        yield "limits-in-degrees", f"[{low:g}, {high:g}] rad"
    speed = joint.limits.get("velocity", 0.0)
    # 100 and 1000 stand for "no limit" in files of iCub, Solo and others.
    placeholder = speed in (100.0, 1000.0)
    stopped = joint.kind == "revolute" and joint.limited and not placeholder
    if (wide or stopped) and FAST < speed < ENDLESS:
        yield "limits-in-degrees", f"velocity {speed:g} rad/s"


def _rule(joint: JointFacts) -> Problems:
    """Yield ("zero-mimic", fact) if a follower has multiplier 0, and is not fixed."""
    if joint.mimic is not None and joint.mimic[1] == 0.0 and joint.kind != "fixed":
        yield "zero-mimic", f"follows '{joint.mimic[0]}' with multiplier 0"


def _friction(joint: JointFacts) -> Problems:
    """Yield large-friction: dry friction above the effort limit of a driven joint."""
    effort, dry = joint.limits.get("effort", 0.0), joint.drive[1]
    if 0.0 < effort < dry and joint.mimic is None and not joint.passive:
        unit = "N" if joint.kind == "prismatic" else "N·m"
        yield "large-friction", f"{dry:g} {unit}, the effort limit is {effort:g} {unit}"


_CHECKS: tuple[Callable[[JointFacts], Problems], ...] = (
    _axis, _origin, _limits, _angles, _friction, _rule,
)  # fmt: skip


def _units(robot: RobotFacts) -> Iterator[Met]:
    """Yield findings of lengths like millimetres.

    They are above LONG: the median distance of joints from their parents, zeros left
    out, and limits of prismatic joints.
    """
    lengths = [math.hypot(*joint.xyz) for joint in robot.joints]
    apart = sorted(x for x in lengths if x > 0)
    if apart and apart[len(apart) // 2] > LONG:
        what = f"half of the joints are more than {apart[len(apart) // 2]:g} m from"
        yield Met("lengths-in-millimetres", "", f"{what} their parents")
    for joint in robot.joints:
        low, high = joint.range
        longest = max(abs(low), abs(high))
        if joint.kind == "prismatic" and LONG < longest < ENDLESS:
            what = f"slides from {low:g} to {high:g} m"
            yield Met("lengths-in-millimetres", f"joint '{joint.name}'", what)


def _rotors(robot: RobotFacts) -> Iterator[Met]:
    """Yield large-armature: more than HEAVY times the robot as a point at its reach."""
    mass = sum(link.mass for link in robot.links)
    reach = max(robot.reach, SMALLEST_REACH)
    for joint in robot.joints:
        slides = joint.kind == "prismatic"
        whole = mass if slides else mass * reach * reach
        if 0.0 < HEAVY * whole < joint.drive[2]:
            what = f"{joint.drive[2]:.3g} {'kg' if slides else 'kg·m²'}"
            yield Met("large-armature", f"joint '{joint.name}'", what)


def _chains(robot: RobotFacts) -> Iterator[Met]:
    """Yield findings of followers: lost-mimic and mimic-chain.

    A rule is lost if its chain of leaders ends at a missing or fixed joint or runs in a
    circle.
    """
    joints = {joint.name: joint for joint in robot.joints}
    for joint in robot.joints:
        if joint.mimic is None or joint.kind == "fixed":
            continue
        path, name = [joint.name], joint.mimic[0]
        while name in joints and name not in path:
            path.append(name)
            rule = joints[name].mimic
            if rule is None:
                break
            name = rule[0]
        owner, way = f"joint '{joint.name}'", " -> ".join([*path, name])
        if name not in joints:
            yield Met("lost-mimic", owner, f"'{name}' does not exist")
        elif joints[name].kind == "fixed":
            yield Met("lost-mimic", owner, f"'{name}' is fixed")
        elif joints[name].mimic is not None:
            yield Met("lost-mimic", owner, f"goes in a circle: {way}")
        elif len(path) > 2:
            yield Met("mimic-chain", owner, " -> ".join(path))
