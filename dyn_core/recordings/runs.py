"""Files of simulated runs: rows, energy, contacts, times, settings, versions."""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, UnsupportedError, one_line, warn
from dyn_core.model import Model
from dyn_core.model.coordinates.ball_limits import ball_limit_rows, limited_balls
from dyn_core.model.description import FRICTION_SPEED
from dyn_core.model.loops.loop_constraints import Coupling
from dyn_core.model.point_springs import PointSprings
from dyn_core.model.sources.arguments import load_robot
from dyn_core.model.sources.packages import SCHEME
from dyn_core.problems import FORWARD_DYNAMICS
from dyn_core.recordings.energy import energy_ledger
from dyn_core.recordings.files import (
    check_output,
    is_recording,
    read_motion,
    write_motion,
)
from dyn_core.recordings.motion import MotionRecord
from dyn_core.recordings.recording import Recording
from dyn_core.solving.registry import solver
from dyn_core.solving.solver import Solver
from dyn_core.spatial import Vector
from dyn_core.validation import shown
from dyn_core.validation.file_names import file_kind

_DISTRIBUTIONS = ("dyn_ros", "numpy", "scipy", "llvmlite")
_DIGITS = 16  # number of hexadecimal digits of a model hash


def run_record(
    run: Recording,
    settings: Mapping[str, Any] | None = None,
    forward_dynamics: str | Solver | None = None,
) -> MotionRecord:
    """Return a run as a MotionRecord with energy, contacts, settings and versions.

    `series` has the fields of EnergyLedger (kinetic, potential, work, dissipation,
    constraints, correction, residual [J]), cycle_time [s], and in a World contacts,
    contact_residual, contact_gap and contact_force; `facts` has those of robot_facts,
    limit_stops (whether they acted), settings, counters and versions. Reference
    positions are left out if none is finite.

    Accelerations are computed by forward dynamics from the states and the joint forces
    that act at the start of each row, also those of prescribed joints and a weight that
    the robot compensates itself. In rows with a joint beyond a position limit, where
    its stop pushes, they are the mean accelerations of the period, with the force of
    the stop. A run in a World has none, because the joint forces alone do not determine
    them.

    Args:
        run: Recording of dyn.simulate, with its model; not changed.
        settings: Further facts to be stored: names and values of JSON types.
        forward_dynamics: Solver of the accelerations, by name or as object; None, or a
            solver of another kind: no accelerations.

    Raises:
        SolverNotFound: No solver has this name.
        UnsupportedError: `run` is no Recording, or the solver does not support the
            robot.
        SettingError: `settings` are no mapping.
        RowError: The solver has no result for a row.
    """
    if not isinstance(run, Recording):
        what = f"run_record is for a Recording, not for {shown(run)}"
        raise UnsupportedError(f"{what}; valid: a run of dyn.simulate")
    try:
        stored = dict(settings or {})
    except (TypeError, ValueError) as error:
        valid = "a mapping from names to values"
        message = f"settings is {shown(settings)}; valid: {valid}"
        raise SettingError(message, "settings") from error
    model, motion = run.model, run.motion
    acted = {"joint_friction": run.joint_friction, "joint_springs": run.joint_springs}
    ledger = energy_ledger(model, run)
    series = {**ledger._asdict(), "cycle_time": run.cycle_time, **_contacts(run)}
    qdd = None
    if forward_dynamics is not None and not run.reports and len(run.t):
        chosen = solver(forward_dynamics)
        if chosen.signature.name == FORWARD_DYNAMICS.name:
            inputs = ["time"] if model.driven else []
            time = [run.t] if model.driven else []
            program = chosen.build(model, inputs=inputs, **acted)
            effort = run.tau
            if run.steps:  # forces of prescribed joints, and a compensated weight, too
                effort = run.steps.effort[:: len(run.steps.q) // len(run.t)]
            qdd = np.asarray(program(run.q, run.qd, effort, *time))
            if run.steps and run.mean_qdd is not None:
                stopped = _beyond_limits(model, run)[:, None]
                qdd = np.where(stopped, run.mean_qdd, qdd)
    known = motion.q_ref is not None and np.isfinite(motion.q_ref).any()
    return replace(
        motion,
        qdd=qdd,
        q_ref=motion.q_ref if known else None,
        series={k: np.asarray(x, float) for k, x in series.items() if len(x)},
        contacts=contact_forces(run),
        facts={**robot_facts(model), "limit_stops": run.limit_stops,
               "settings": stored,
               "counters": dict(run.counters), "versions": versions()},
    )  # fmt: skip


def _beyond_limits(model: Model, run: Recording) -> np.ndarray:
    """Return for each row, (rows,), whether a joint is beyond a position limit.

    It is if this holds before any step of the row; limits of ball joints count, too.
    """
    assert run.steps is not None
    lower, upper = run.motion.position_limits
    q = run.steps.q
    beyond = np.asarray(((q < lower) | (q > upper)).any(axis=1))
    for i in limited_balls(model):
        rows = [ball_limit_rows(model, i, Vector(x)) for x in q[:, model.q_slices[i]]]
        beyond |= np.array([any(gap < 0 for *_, gap in limits) for limits in rows])
    return np.asarray(beyond.reshape(len(run.t), -1).any(axis=1))


def _contacts(run: Recording) -> dict[str, np.ndarray]:
    """Return series on the contacts of each row, (rows,) each; empty without reports.

    Each value is over the steps of a row, 0 without steps:

        contacts          largest number of contacts
        contact_residual  largest residual of the contact law
        contact_gap       deepest gap, 0 or negative [m]
        contact_force     largest sum of the norms of contact forces, no impacts [N]
    """
    if not run.reports:
        return {}
    count, residual, gap, force = np.zeros((4, len(run.t)))
    for k, steps in enumerate(run.reports):
        for step in steps:
            contacts = step.contacts
            count[k] = max(count[k], len(contacts))
            residual[k] = max(residual[k], step.residuals.law)
            gap[k] = min(gap[k], *(float(c.gap) for c in contacts), 0.0)
            pushes = [float(np.linalg.norm(c.force)) for c in contacts if step.h]
            force[k] = max(force[k], sum(pushes))
    return {
        "contacts": count, "contact_residual": residual, "contact_gap": gap,
        "contact_force": force,
    }  # fmt: skip


def contact_forces(run: Recording) -> dict[str, np.ndarray]:
    """Return the contacts in the last step of each row, as arrays by name.

    By contact, in the order of the rows: `row`, the index, `point` [m] and `force` [N]
    on the first link of the contact, in the world frame, (count, 3). In an impact, a
    step of duration 0, `force` is the impulse [N·s]. A run without reports gives {}.
    """
    if not run.reports:
        return {}
    touching = [
        (k, contact.point, contact.force)
        for k, steps in enumerate(run.reports)
        for contact in (steps[-1].contacts if len(steps) else ())
    ]
    rows, points, forces = zip(*touching, strict=True) if touching else ((), (), ())
    return {
        "row": np.array(rows, int),
        "point": np.array(points, float).reshape(-1, 3),
        "force": np.array(forces, float).reshape(-1, 3),
    }


def save_run(run: Recording, path: str | os.PathLike[str]) -> None:
    """Write a run: NPZ with all of run_record, or CSV or MCAP with its columns.

    An existing file is replaced. The file has no accelerations; run_record computes
    them on request.

    Args:
        run: Recording.
        path: Name that ends with .npz, .csv or .mcap.

    Raises:
        SettingError: The name or folder is invalid, or the file cannot be written, or
            CSV cannot represent the name of a column.
        UnsupportedError: MCAP cannot represent the joints, or rosbags is not installed.
    """
    check_output(os.fspath(path), "")
    write_motion(run_record(run), path)


def robot_facts(model: Model) -> dict[str, Any]:
    """Return facts on a robot for a report, by name, of JSON types.

    `read_from` is file or kind of the source, `source` name, else file, else empty, and
    `robot_files` has 16 hexadecimal digits of the content of its file and sidecar, by
    path.
    """
    read = (model.source.file, *model.build.description.sources)
    paths = dict.fromkeys(os.path.abspath(path) for path in read if path)
    return {
        "robot": model.name,
        "model_hash": model_hash(model),
        "read_from": model.source.file or model.source.kind,
        "source": model.source.name or model.source.file or "",
        "root_joint": model.build.root_joint,
        "joints": {name: model.joint_kind(name) for name in model.joint_names},
        "robot_files": {x: digits for x in paths if (digits := _content_hash(x))},
        **limit_facts(model),
    }


def _content_hash(path: str) -> str:
    """Return 16 hexadecimal digits of a file's content; empty if it cannot be read."""
    try:
        if not os.path.isfile(path):  # a pipe would be read without end
            return ""
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:_DIGITS]
    except (OSError, ValueError):  # ValueError: characters that no path has
        return ""


def edited_files(facts: Mapping[str, Any]) -> list[str]:
    """Return the paths of a run's robot and sidecar that have other content now."""
    listed = facts.get("robot_files", {}).items()
    return [path for path, old in listed if _content_hash(path) not in ("", old)]


def warn_of_edits(path: str, facts: Mapping[str, Any], model: Model) -> None:
    """Issue a DynWarning if the robot of a run was edited since.

    A hash of the model alone does not tell: it also differs for other gravity, locked
    joints or a sidecar of the caller. So one of its files must differ, too.
    """
    edited = edited_files(facts)
    if edited and model_hash(model) != facts.get("model_hash"):
        names = ", ".join(Path(x).name for x in edited)
        warn(one_line(f"{path}: the robot {names} has changed since this run"))


def named_robot(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return (robot, kind of its root joint) that the facts of a run name.

    Both are empty if they name no robot, or a file that is not there. Sources without a
    folder and package:// addresses count as there: they are not looked up.
    """
    source = str(facts.get("source", ""))
    named = bool(source) and Path(source).name == source  # shipped or installed
    named |= source.startswith(SCHEME)
    known = named or os.path.isfile(source)  # False in a closed folder
    return (source, str(facts.get("root_joint") or "")) if known else ("", "")


def saved_robot(path: str) -> tuple[str, str]:
    """Return (robot, kind of its root joint) that an NPZ file names; see named_robot.

    Both are empty for any other path, also one that does not exist.
    """
    return named_robot(_saved_facts(path))


def _saved_facts(path: str) -> Mapping[str, Any]:
    """Return the facts of a run's NPZ file; empty for any other path."""
    if Path(path).suffix != ".npz" or file_kind(path) != "file":
        return {}
    return read_motion(path).facts


def robot_of_run(arguments: argparse.Namespace, path: str) -> Model:
    """Return the robot of a recording, from --robot or the name in the file.

    The kind of root joint in the file is used, unless --root-joint is given. Without
    --robot, a DynWarning tells if the robot was edited after the run.
    """
    if not file_kind(path):
        raise SettingError(f"{path}: no such file or folder", "file")
    if not is_recording(path):
        read_motion(path)  # raises, in its words
    facts = _saved_facts(path)
    robot, root_joint = named_robot(facts)
    if not (arguments.robot or robot):
        if source := str(facts.get("source") or ""):
            file_kind(source, "robot")  # raises for a closed folder, in its words
            gone = f"{path} is of {source}, which is not there; valid: --robot PATH"
            raise SettingError(one_line(gone), "robot")
        raise SettingError(
            f"{path} does not say whose run it is; give --robot", "robot"
        )
    options: dict[str, Any] = {}
    if not getattr(arguments, "root_joint", None) and root_joint:
        options["root_joint"] = root_joint
    model = load_robot(arguments, arguments.robot or robot, **options)
    if not arguments.robot:
        warn_of_edits(path, facts, model)
    return model


def limit_facts(model: Model) -> dict[str, Any]:
    """Return the limits of a robot by name, lists with None for no limit.

    They are effort_limit, nv, if above 0, and lower_limit and upper_limit, nq, which
    joints of several coordinates and followers do not have.
    """
    lower, upper = np.full((2, model.nq), np.nan)
    for i in model.independent:
        if model.joint[i].nv == 1:
            k, v = model.q_slices[i].start, model.v_slices[i].start
            lower[k], upper[k] = model.lower[v], model.upper[v]
    effort = np.where(model.effort_limit > 0, model.effort_limit, np.inf)
    known = {"effort_limit": effort, "lower_limit": lower, "upper_limit": upper}
    return {
        name: [float(x) if np.isfinite(x) else None for x in limits]
        for name, limits in known.items()
    }


def model_hash(model: Model) -> str:
    """Return 16 hexadecimal digits that identify a robot's dynamics.

    They depend on names of joints and loops, tree, joints, rules of followers,
    inertias, damping, friction, springs and armature of joints, point springs, links
    and frames of loops, position and effort limits, and gravity. Functions of the user
    count by their names. Velocity limits and frames of links do not count.
    """
    parts: list[Any] = [tuple(model.names[1:]), tuple(model.parent), model.nv]
    for i in model.bodies:
        joint, I = model.joint[i], model.I[i]
        parts += [joint.kind, sorted(map(_shown, joint.__dict__.items()))]
        parts += [_numbers(model.Xtree[i].E), _numbers(model.Xtree[i].r)]
        parts += [float(I.m), _numbers(I.c), _numbers(I.Ic)]
        passive = (
            model.damping, model.friction, model.friction_asymmetry, model.armature,
            model.stiffness, model.rest,
        )  # fmt: skip
        parts += [_numbers(values[i]) for values in passive]
        # Only values that differ from the defaults enter the hash.
        if any(x != FRICTION_SPEED for x in model.friction_speed[i]):
            parts.append(("friction_speed", _numbers(model.friction_speed[i])))
        if any(model.stribeck[i]):
            parts += [_numbers(model.stribeck[i]), _numbers(model.stribeck_speed[i])]
    parts += [_numbers(x) for x in (model.lower, model.upper, model.effort_limit)]
    for i in model.bodies:
        if model.leader[i].body != i:
            parts.append((i, *model.leader[i]))
    for loop in model.loops:
        parts.append((loop.name, loop.rows))
        if isinstance(loop, Coupling):
            parts += [loop.joints, _name(loop.function)]
            continue
        function = loop.kind or _name(loop.function)
        parts += [loop.a, loop.b, function, loop.measure]
        parts += [_numbers((*X.E.rows, X.r)) for X in (loop.A, loop.B)]
    for force in model.forces:
        parts.append(repr(force) if isinstance(force, PointSprings) else _name(force))
    parts.append(_numbers(model.a_grav.lin))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:_DIGITS]


def _shown(item: tuple[str, Any]) -> str:
    """Return an attribute, (key, value), as the string "key value"."""
    key, value = item
    return f"{key} {_name(value)}"


def _name(value: Any) -> str:
    """Return the name of a callable, or of its type if it has none; else str(value)."""
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    return str(value)


def _numbers(values: Any) -> list[float]:
    """Return the numbers of an array of any shape as a flat list, row by row."""
    return [float(x) for x in np.asarray(values, float).ravel()]


def versions() -> dict[str, str]:
    """Return the versions of Python and the packages that compute, and the machine."""
    known = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            known[name] = "not installed"
    known["machine"] = f"{platform.system()} {platform.machine()}"
    return known
