"""Names with control characters: replaced, with a warning.

A line feed in a name can end a line of a log or of a generated file, and invisible
characters make two names look alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dyn_core.model.assembly.build import Build
from dyn_core.model.checks.findings import Findings
from dyn_core.model.description import Description, JointSpec
from dyn_core.model.loops.loop_constraints import Coupling, LoopConstraint
from dyn_core.model.shapes import PairRules
from dyn_core.validation import mended_name


def with_mended_names(build: Build) -> Build:
    """Return a Build whose names have an underscore for each invisible character.

    Names in the choices of the caller (root, tip, lock, drives, joints, loops) are
    changed alike, so that the original names still match. Changed names are warned of.
    """
    names = list(_names(build.description))
    if all(name.isprintable() for _, name in names):
        return build
    findings = Findings(earlier=build.description.warnings)
    for kind, name in names:
        if mended_name(name) != name:
            what = f"control characters in its name; it is called '{mended_name(name)}'"
            findings.note(kind, name, what)
    return replace(
        build,
        description=_mended(build.description, findings.warnings),
        root=build.root and mended_name(build.root),
        tip=build.tip and mended_name(build.tip),
        lock={mended_name(name): x for name, x in build.lock.items()},
        drives={mended_name(name): x for name, x in build.drives.items()},
        joints={mended_name(name): x for name, x in build.joints.items()},
        loops=tuple(map(_loop, build.loops)),
    )


def _names(description: Description) -> Iterator[tuple[str, str]]:
    """Yield kind (robot, link, joint, loop, spring) and name of all named elements."""
    yield "robot", description.name
    for link in description.links:
        yield "link", link.name
    for joint in description.joints:
        yield "joint", joint.name
    for loop in description.loops:
        yield "loop", loop.name
    for spring in description.point_springs:
        yield "spring", spring.name


def _mended(description: Description, warnings: tuple[str, ...]) -> Description:
    """Return the description with an underscore for each invisible character in names.

    References to names are changed alike. `warnings` replaces its warnings.
    """
    pairs, mended = description.pairs, {}
    for rule in ("allow", "deny"):
        sets = getattr(pairs, rule)
        mended[rule] = frozenset(frozenset(map(mended_name, x)) for x in sets)
    return replace(
        description,
        name=mended_name(description.name),
        links=tuple(replace(x, name=mended_name(x.name)) for x in description.links),
        joints=tuple(map(_joint, description.joints)),
        warnings=warnings,
        loops=tuple(map(_loop, description.loops)),
        point_springs=tuple(
            replace(x, name=mended_name(x.name), b=mended_name(x.b), a=_end(x.a))
            for x in description.point_springs
        ),
        materials={mended_name(k): x for k, x in description.materials.items()},
        pairs=PairRules(**mended),
    )


def _joint(joint: JointSpec) -> JointSpec:
    """Return a joint with underscores for invisible characters in all its names."""
    rule = joint.mimic
    return replace(
        joint,
        name=mended_name(joint.name),
        parent=mended_name(joint.parent),
        child=mended_name(joint.child),
        mimic=rule and replace(rule, joint=mended_name(rule.joint)),
    )


def _loop(loop: LoopConstraint) -> LoopConstraint:
    """Return a loop or coupling with underscores for invisible characters in names."""
    name = mended_name(loop.name)
    if isinstance(loop, Coupling):
        return replace(loop, name=name, joints=tuple(map(mended_name, loop.joints)))
    return replace(loop, name=name, a=_end(loop.a), b=_end(loop.b))


def _end(link: str | None) -> str | None:
    """Return a link's name as mended_name changes it; None (the base) stays None."""
    return link and mended_name(link)
