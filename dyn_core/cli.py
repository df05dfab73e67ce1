"""The `dyn` command. Plugins add subcommands through the hook dyn_commands."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.bench import command as bench
from dyn_core.bench import counting, explain
from dyn_core.errors import DynError, PluginError
from dyn_core.model import Model, load_urdf
from dyn_core.model.coordinates import split_q
from dyn_core.registry import default_registry
from dyn_core.spatial import RigidInertia, Transform, Vector
from dyn_core.testing import conformance, derivative_check


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; give the exit status: 0 good, 1 failed, 2 wrong usage."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments) or 0)
    except DynError as error:
        print(f"dyn: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0


def parser() -> argparse.ArgumentParser:
    """Give the parser with all subcommands, those of plugins too."""
    made = argparse.ArgumentParser("dyn", description="Robot dynamics from a URDF.")
    subparsers = made.add_subparsers(title="commands", required=True, metavar="")
    _own_commands(subparsers)
    default_registry().manager.hook.dyn_commands(subparsers=subparsers)
    return made


def _own_commands(subparsers: argparse._SubParsersAction) -> None:
    info = subparsers.add_parser("info", help="joints, limits, masses of a URDF")
    info.add_argument("urdf", help="path, or the name of a shipped robot")
    info.add_argument("--root-joint", choices=("fixed", "floating"), default="fixed")
    info.add_argument("--strict", action="store_true", help="refuse bad inertias")
    info.set_defaults(run=_info)
    plugins = subparsers.add_parser("plugins", help="solvers and where they come from")
    plugins.set_defaults(run=_plugins)
    bench.add(subparsers)
    explain.add(subparsers)
    counting.add(subparsers)
    derivative_check.add(subparsers)
    check = subparsers.add_parser("check-plugin", help="put a solver through the laws")
    check.add_argument("name", help="a solver, or a distribution or module")
    check.add_argument("--engine", default="graph")
    check.add_argument("--robot", action="append", help="shipped robots (default: all)")
    check.set_defaults(run=_check)


def find_robot(name: str) -> str:
    """Give the path of a shipped robot, or the name as it is."""
    return str(robots.path(name)) if name in robots.names() else name


def _info(arguments: argparse.Namespace) -> int:
    check = "error" if arguments.strict else "warn"
    path = find_robot(arguments.urdf)
    model = load_urdf(path, root_joint=arguments.root_joint, check=check)
    for line in describe(model):
        print(line)
    return 0


def describe(model: Model) -> list[str]:
    """Say what a robot is, line by line: joints, limits, masses, warnings."""
    lines = [f"{model.name}: {model.nb} moving bodies, nq {model.nq}, nv {model.nv}"]
    sources = ", ".join(model.build.description.sources)
    lines += [f"read from {sources}"] if sources else []
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
    for row in rows:
        cells = [
            x.ljust(w) if k < 2 else x.rjust(w)
            for k, (x, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    total = _total(model)
    c = ", ".join(f"{x:.4g}" for x in total.c)
    moments = ", ".join(f"{x:.4g}" for x in np.linalg.eigvalsh(np.asarray(total.Ic)))
    lines.append(f"at zero: mass {total.m:.6g} kg, centre of mass ({c}) m,")
    lines.append(f"  principal moments about it ({moments}) kg·m²")
    merged = [name for name, frame in model.frames.items() if frame.body == 0]
    lines.append(f"fixed to the base: {', '.join(merged) or 'nothing'}")
    lines += [f"warning: {warning}" for warning in model.warnings]
    for name in _unlimited(model):
        lines.append(
            f"warning: joint '{name}' has no effort limit; nodes will ask for one"
        )
    return lines


def _joint_row(model: Model, i: int) -> tuple[str, ...]:
    """Give the cells of one joint."""
    name, joint = model.names[i], model.joint[i]
    lead = model.leader[i].body
    kind = joint.kind
    if lead != i:
        rule = model.followers[name]
        kind += f" = {_number(rule.multiplier)} {rule.leader} + {_number(rule.offset)}"
    at = model.v_slices[i].start
    own = joint.nv == 1 and lead == i
    limits = [model.lower[at], model.upper[at]] if own else [-math.inf, math.inf]
    limits += [model.velocity_limit[at] if lead == i else math.inf]
    shown = [f"{x:.4g}" if math.isfinite(x) else "-" for x in limits]
    effort = model.effort_limit[at] if lead == i else 0.0
    shown.append(f"{effort:.4g}" if effort else "-")
    for values in (model.damping[i], model.friction[i], model.armature[i]):
        shown.append(f"{values[0]:.4g}" if any(values) else "-")
    return (name, kind, *shown, f"{model.I[i].m:.4g}")


def _number(x: Any) -> str:
    """Show a number, or an array as rows."""
    return str(x.tolist()) if isinstance(x, np.ndarray) else f"{x:g}"


def _total(model: Model) -> RigidInertia:
    """Add up the inertia of all moving bodies with every joint at zero."""
    X, total = [Transform.identity()], RigidInertia.zero()
    parts = split_q(model, Vector(model.neutral().tolist()))
    for i in model.bodies:
        XJ = model.joint[i].X(parts[i])
        X.append(XJ @ model.Xtree[i] @ X[model.parent[i]])
        total = total + X[i].T @ model.I[i] @ X[i]
    return total


def _unlimited(model: Model) -> list[str]:
    own = model.independent
    return [
        model.names[i]
        for i in own
        if model.joint[i].nv == 1 and not model.effort_limit[model.v_slices[i].start]
    ]


def _plugins(arguments: argparse.Namespace) -> int:
    registry = default_registry()
    rows = []
    for name in registry.names():
        solver = registry.solver(name)
        rows.append((name, solver.signature.name, solver.origin, solver.source))
    widths = [max(len(row[k]) for row in rows) for k in range(3)] if rows else []
    for row in rows:
        cells = [x.ljust(w) for x, w in zip(row[:3], widths, strict=True)]
        print("  ".join([*cells, row[3]]).rstrip())
    for failure in registry.failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if registry.failures else 0


def _check(arguments: argparse.Namespace) -> int:
    registry = default_registry()
    names = registry.names()
    wanted = [n for n in names if n == arguments.name] or [
        n for n in names if arguments.name in _owners(registry.solver(n).origin)
    ]
    if not wanted:
        failures = [str(f) for f in registry.failures if arguments.name in str(f)]
        if failures:
            raise PluginError("; ".join(failures))
        registry.solver(arguments.name)
    models = [load_urdf(robots.path(r)) for r in arguments.robot or robots.names()]
    bad = 0
    for name in wanted:
        for line in conformance.report(registry.solver(name), models, arguments.engine):
            print(line, flush=True)
            bad += line.startswith("  FAIL")
    print(f"{len(wanted)} solvers, {len(models)} robots: {bad} laws broken")
    return 1 if bad else 0


def _owners(origin: str) -> tuple[str, ...]:
    """Give distribution and module of an origin `distribution (module)`."""
    distribution, _, module = origin.rstrip(")").partition(" (")
    return distribution, module, module.partition(".")[0]


if __name__ == "__main__":
    sys.exit(main())
