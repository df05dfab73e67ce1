"""Checks of masses and inertias: physically possible, and plausible for the shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from dyn_core.model.checks.inertias import TRIANGLE
from dyn_core.reports.doctor.facts import LinkFacts, RobotFacts
from dyn_core.reports.doctor.report import Met
from dyn_core.reports.doctor.solids import LinkSolid, Solids

MANY_TIMES = 10.0  # ratio to a uniform box from which inertia is improbable
HEAVIEST, LIGHTEST = 25_000.0, 1.0  # plausible densities of a body [kg/m³]
ROCK = 3000.0  # maximum of mass / reach³ of a whole robot [kg/m³]
SLACK, SLACK_LENGTH = 0.1, 0.005  # tolerance of a centre: part of the box; [m]
SMALLEST_REACH = 0.05  # minimum reach for checks relative to it [m]
LIGHT, _LIGHT = 1e-3, "light-placeholder"  # share of the robot's mass; code
ALIKE = 3  # number of links with equal moments that count as placeholders


def check_links(
    robot: RobotFacts, solids: Solids, bodies: Mapping[str, LinkFacts]
) -> Iterator[Met]:
    """Yield the findings about the mass and inertia of every link.

    Args:
        robot: Facts of its file.
        solids: Reader of the links' shapes.
        bodies: For each link the whole body rigidly connected to it; empty if the robot
            does not load.
    """
    reach = robot.reach
    light = LIGHT * sum(max(link.mass, 0.0) for link in robot.links)
    for link in robot.links:
        problems = [*_impossible(link)]
        whole = bodies.get(link.name)
        part = whole is not None and not any(_impossible(whole))
        yield from (_as_part(x) if part else x for x in problems)
        if link.mass <= 0 or problems:
            continue
        gyration = math.sqrt(max(np.trace(link.Ic), 0.0) / (2 * link.mass))
        solid = solids.of(link)
        if solid is not None:
            for met in _beside_shape(link, solid):
                yield met if link.mass > light else met._replace(code=_LIGHT)
        elif gyration > max(reach, SMALLEST_REACH):
            what = f"{gyration:.3g} m; the robot reaches {reach:.3g} m"
            yield Met("inertia-units", _named(link), what)
    yield from _placeholders(robot)
    total = sum(max(link.mass, 0.0) for link in robot.links)
    if (
        reach >= SMALLEST_REACH
        and total > ROCK * reach * reach * reach
        and total > 100.0
    ):
        yield Met("mass-units", "", f"{total:.4g} kg within {reach:.3g} m")
    for name, reason in solids.unread.items():
        yield Met("meshes-unread", f"link '{name}'", reason)


def _as_part(met: Met) -> Met:
    """Return a finding of an impossible inertia as one of a part of a possible body.

    Other findings are returned unchanged.
    """
    code = "impossible-part" if met.code == "impossible-inertia" else met.code
    return met._replace(code=code)


def _named(link: LinkFacts) -> str:
    return f"link '{link.name}'"


def _impossible(link: LinkFacts) -> Iterator[Met]:
    """Yield reasons why no body has this mass and inertia, with loading's tolerance."""
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
    """Yield contradictions between mass, inertia and shapes of a link."""
    a, b, c = solid.size
    box = f"box of {a:.3g} x {b:.3g} x {c:.3g} m"
    uniform = link.mass * float(solid.size @ solid.size) / 6
    trace = float(np.trace(link.Ic))
    if uniform > 0:
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
    """Return a remark on the probable unit of an implausible density [kg/m³], or ""."""
    if 1e5 < density < 1e7:
        return "; a thousandth of the mass would be usual"
    if density < 1e-3:
        return "; a thousandth of the lengths would be usual"
    return ""


def _placeholders(robot: RobotFacts) -> Iterator[Met]:
    """Yield groups of links of different mass with the same moments."""
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
