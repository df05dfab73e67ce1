"""The command `dyn info`, and the text overview of a robot that it prints."""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np

from dyn_core.errors import ModelWarning
from dyn_core.model.checks.findings import labelled
from dyn_core.model.coordinates import split_q
from dyn_core.model.model import Model
from dyn_core.model.sources.arguments import add_robot, load_robot
from dyn_core.simulation.loop_report import describe_loops
from dyn_core.spatial import RigidInertia, Transform, Vector


def add_info(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn info` to the parser; `run` becomes its function."""
    add_robot(parser)
    parser.add_argument("--strict", action="store_true", help="refuse a doubtful robot")
    parser.set_defaults(run=_info)


def _info(arguments: argparse.Namespace) -> int:
    check = "error" if arguments.strict else "warn"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # `describe` prints them
        model = load_robot(arguments, check=check)
    for line in describe(model):
        print(line)
    return 0


def describe(model: Model) -> list[str]:
    """Return an overview of a robot, line by line.

    In this order: size; warnings of the file; source of the data; loops; springs
    between points; table of the joints; mass, centre of mass and principal moments at
    model.neutral(); gravity, if it points up; links fixed to the base, and the others;
    then lines on joints whose limits exclude zero and on joints without an effort
    limit.
    """
    lines = [f"{model.name}: {model.nb} moving bodies, nq {model.nq}, nv {model.nv}"]
    lines += [labelled(warning) for warning in model.warnings]
    lines += model.source.describe()
    lines += describe_loops(model)
    springs = [spring.name for spring in model.build.description.point_springs]
    lines += [f"springs between points: {', '.join(springs)}"] if springs else []
    lines += _joints(model)
    total = _total(model)
    c = ", ".join(f"{x:.4g}" for x in total.c)
    moments = ", ".join(f"{x:.4g}" for x in np.linalg.eigvalsh(np.asarray(total.Ic)))
    lines.append(f"at zero: mass {total.m:.6g} kg, centre of mass ({c}) m,")
    lines.append(f"  principal moments about it ({moments}) kg·m²")
    if model.a_grav.lin[2] > 0:
        g = ", ".join(f"{x:g}" for x in model.a_grav.lin)
        lines.append(f"gravity ({g}) m/s² points up, along z of the root")
    merged = [name for name, frame in model.frames.items() if frame.body == 0]
    lines.append(f"fixed to the base: {', '.join(merged) or 'nothing'}")
    moving = [name for name, frame in model.frames.items() if frame.body]
    lines.append(f"links that move: {', '.join(moving) or 'none'}")
    outside = _zero_outside(model)
    if outside:
        names = ", ".join(f"'{name}'" for name in outside)
        lines.append(f"zero is outside the limits of {names}: so is model.neutral()")
    for name in _unlimited(model):
        lines.append(
            f"warning: joint '{name}' has no effort limit; nodes will ask for one"
        )
    return lines


def _joints(model: Model) -> list[str]:
    """Return the lines of the joint table: a header, then one for each moving body."""
    header = (
        "joint",
        "kind",
        "lower",
        "upper",
        "velocity",
        "effort",
        "damping",
        "friction",
        "armature",
        "carries kg",
    )
    rows: list[tuple[str, ...]] = [header]
    for i in model.bodies:
        rows.append(_joint_row(model, i))
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    lines = []
    for row in rows:
        cells = [
            x.ljust(w) if k < 2 else x.rjust(w)
            for k, (x, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _joint_row(model: Model, i: int) -> tuple[str, ...]:
    """Return the cells of the joint of body i in the table of `_joints`, SI units.

    "-" stands for no limit, for zero damping, friction or armature, for all limits of a
    follower, and for position limits of a joint with several coordinates; other cells
    are of its first coordinate. Friction is "FORWARD/BACKWARD" if they differ, and "+X"
    follows for Stribeck friction. A follower's kind has its rule, such as "revolute = 2
    LEADER + 0".
    """
    name, joint = model.names[i], model.joint[i]
    lead = model.leader[i].body
    kind = joint.kind
    if lead != i:
        rule = model.followers[name]
        kind += f" = {_number(rule.multiplier)} {rule.leader} + {_number(rule.offset)}"
    index = model.v_slices[i].start
    limited = joint.nv == 1 and lead == i
    limits = (
        [model.lower[index], model.upper[index]] if limited else [-math.inf, math.inf]
    )
    limits += [model.velocity_limit[index] if lead == i else math.inf]
    shown = [f"{x:.4g}" if math.isfinite(x) else "-" for x in limits]
    effort = model.effort_limit[index] if lead == i else 0.0
    shown.append(f"{effort:.4g}" if effort else "-")
    for values in (model.damping[i], model.friction[i], model.armature[i]):
        shown.append(f"{values[0]:.4g}" if any(values) else "-")
    if any(model.friction_asymmetry[i]):
        mean, more = model.friction[i][0], model.friction_asymmetry[i][0]
        shown[-2] = f"{mean + more:.4g}/{mean - more:.4g}"
    if any(model.stribeck[i]):
        shown[-2] += f"+{model.stribeck[i][0]:.4g}"
    return (name, kind, *shown, f"{model.I[i].m:.4g}")


def _number(x: Any) -> str:
    """Return a number as text with six digits at most, or an array as nested lists."""
    return str(x.tolist()) if isinstance(x, np.ndarray) else f"{x:g}"


def _total(model: Model) -> RigidInertia:
    """Return the inertia of all moving bodies at neutral, in base coordinates."""
    X, total = [Transform.identity()], RigidInertia.zero()
    parts = split_q(model, Vector(model.neutral().tolist()))
    for i in model.bodies:
        XJ = model.joint[i].X(parts[i])
        X.append(XJ @ model.Xtree[i] @ X[model.parent[i]])
        total = total + X[i].T @ model.I[i] @ X[i]
    return total


def _zero_outside(model: Model) -> list[str]:
    """Return the names of independent one-coordinate joints whose limits exclude 0."""
    return [
        model.names[i]
        for i in model.independent
        for k in range(model.v_slices[i].start, model.v_slices[i].stop)
        if model.joint[i].nv == 1 and not model.lower[k] <= 0.0 <= model.upper[k]
    ]


def _unlimited(model: Model) -> list[str]:
    """Return the names of independent one-coordinate joints without effort limit."""
    return [
        model.names[i]
        for i in model.independent
        if model.joint[i].nv == 1 and not model.effort_limit[model.v_slices[i].start]
    ]
