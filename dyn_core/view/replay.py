"""Replay: a run as states over time, with joint forces and contact forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dyn_core.errors import SettingError, ShapeError, unknown_name, warn
from dyn_core.model import Model
from dyn_core.model.checks.robots import in_degrees
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.recordings import MotionRecord, Recording
from dyn_core.recordings.motion import unused_joints
from dyn_core.recordings.runs import contact_forces
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.scene import VisualScene

Arrows = np.ndarray  # (k, 2, 3): points and forces [m], [N]
NONE: Arrows = np.zeros((0, 2, 3))


@dataclass(frozen=True, eq=False)
class Replay:
    """A run of a VisualScene.

    Attributes:
        scene: Scene that moves.
        t: Times, not decreasing, (rows,) [s].
        states: States of the scene, (rows, n).
        curves: Curves to plot, by title with unit: names and values (rows, columns).
        tau: Joint forces, (rows, nv) [N·m | N]; None: not known.
        contacts: Function that returns the contact forces, (k, 2, 3), of a row's index:
            points [m] and forces [N] in the world; None: not known.

    Raises:
        SettingError: There are no rows, or times are not finite or decrease.
        ShapeError: Times and states, or times and joint forces, differ in number.
    """

    scene: VisualScene
    t: np.ndarray
    states: np.ndarray
    curves: Mapping[str, tuple[Sequence[str], np.ndarray]] = field(default_factory=dict)
    tau: np.ndarray | None = None
    contacts: Callable[[int], Arrows] | None = None

    def __post_init__(self) -> None:
        if self.t.ndim != 1 or not len(self.t):
            raise SettingError("a run without rows cannot be shown", "t")
        for name, rows in (("states", self.states), ("tau", self.tau)):
            if rows is not None and len(rows) != len(self.t):
                wanted = f"{len(self.t)} rows as t has"
                raise ShapeError(name, wanted, f"{len(rows)}")
        if not (np.isfinite(self.t).all() and (np.diff(self.t) >= 0).all()):
            raise SettingError("times must be finite and not fall", "t")

    @property
    def duration(self) -> float:
        """Time from the first to the last row [s]."""
        return float(self.t[-1] - self.t[0])

    def row(self, time: float) -> int:
        """Return the index of the last row at or before a time since the start [s].

        A row up to 1e-9 s later counts, too. Times outside of the run give the first or
        the last row.
        """
        # a time that was computed from a row's time must find this row despite rounding
        after = int(np.searchsorted(self.t - self.t[0], time + 1e-9, side="right"))
        return min(max(after - 1, 0), len(self.t) - 1)

    def state(self, time: float) -> np.ndarray:
        """Return the state at a time since the start [s], interpolated between rows.

        Times outside of the run give its first or last state. These, and states at
        the time of a row, are rows of `states`, not copies.
        """
        k = self.row(time)
        span = float(self.t[min(k + 1, len(self.t) - 1)] - self.t[k])
        share = (time - float(self.t[k] - self.t[0])) / span if span > 0 else 0.0
        if share <= 1e-9:
            return np.asarray(self.states[k])
        return self.scene.between(self.states[k], self.states[k + 1], min(share, 1.0))

    def poses(self, time: float) -> np.ndarray:
        """Return the bodies' poses at a time since the start [s], (bodies, 4, 4).

        The state is interpolated, and outside of the run its first or last one.
        """
        return self.scene.poses(self.state(time))

    def shares(self, time: float) -> np.ndarray | None:
        """Return tau / largest_forces at a time since the start [s], (nv,).

        The joint forces are signed and not interpolated: the row is the last one at or
        before the time, or the first one. Beyond an effort limit the absolute value
        exceeds 1. None if joint forces are unknown.
        """
        if self.tau is None:
            return None
        return np.asarray(self.tau[self.row(time)] / self.largest_forces)

    @property
    def largest_forces(self) -> np.ndarray:
        """Effort limits of the scene, (nv,) [N·m | N], by which `shares` are scaled.

        Where it is 0, there is no limit: it is replaced by the largest absolute joint
        force of the run, NaN left out, or 1 if that is zero. AssertionError if `tau` is
        None.
        """
        assert self.tau is not None
        limit = self.scene.effort_limit
        most = np.nan_to_num(np.abs(self.tau)).max(axis=0)
        largest: np.ndarray = np.where(limit > 0, limit, np.where(most > 0, most, 1.0))
        return largest

    @property
    def share_meaning(self) -> str:
        """What `shares` are relative to, and the maximum of the run, as a text.

        "no joint force in this run" if all are zero or unknown, "share of the largest
        joint force" if joints with an effort limit have only zeros, else "share of the
        effort limit; at most N % here". NaN counts as zero.
        """
        if self.tau is None or not np.nan_to_num(self.tau).any():
            return "no joint force in this run"
        shares = np.abs(np.nan_to_num(self.tau)) / self.largest_forces
        used = shares[:, self.scene.effort_limit > 0].max(initial=0.0)
        if not used:
            return "share of the largest joint force"
        return f"share of the effort limit; at most {100 * used:.3g} % here"

    def arrows(self, time: float) -> Arrows:
        """Return the contact forces of the last row at or before a time, (k, 2, 3).

        Before the start they are those of the first row. They are k pairs of a point
        [m] and the force [N] at it; k is 0 if contact forces are not known. `time` is
        since the start [s].
        """
        return NONE if self.contacts is None else self.contacts(self.row(time))


def of_recording(model: Model, run: Recording) -> Replay:
    """Return the replay of a run of dyn.simulate, with joint and contact forces.

    A DynWarning is issued for positions that look like degrees.

    Args:
        model: Robot of the run.
        run: Recording.

    Raises:
        ShapeError: The run is of another robot.
        SettingError: The run has no rows.
    """
    return of_arrays(model, run.t, run.q, run.tau, _forces(contact_forces(run)))


def of_arrays(
    model: Model,
    t: np.ndarray,
    q: np.ndarray,
    tau: np.ndarray | None = None,
    contacts: Callable[[int], Arrows] | None = None,
) -> Replay:
    """Return the replay of a robot's positions.

    The curves are the positions of joints with one coordinate that follow no other
    joint, and the joint forces, except all-zero columns of joints without a motor.
    `contacts` returns the contact forces of a row's index, (k, 2, 3), as in Replay. A
    DynWarning is issued for positions that look like degrees.
    """
    for name, array, width in (("q", q, model.nq), ("tau", tau, model.nv)):
        if array is not None and (array.ndim != 2 or array.shape[1] != width):
            wanted = f"{width} columns as '{model.name}' has"
            raise ShapeError(name, wanted, f"shape {array.shape}")
    if doubt := in_degrees(model, "q", q):
        warn(doubt)
    scene = RobotScene(model)
    curves: dict[str, tuple[Sequence[str], np.ndarray]] = {}
    single = [i for i in model.independent if model.joint[i].nq == 1]
    columns = [model.q_slices[i].start for i in single]
    names = [model.names[i] for i in single]
    if names:
        curves["position [rad | m]"] = (names, q[:, columns])
    if tau is not None and model.nv:
        # Joints without motor, such as a floating base, would be curves of zeros.
        driven = {
            k for x in model.active_joints for k in range(model.nv)[model.v_slice(x)]
        }
        shown = [k for k in range(model.nv) if k in driven or tau[:, k].any()]
        if shown:
            forces = [scene.joints[k] for k in shown]
            curves["joint force [N·m | N]"] = (forces, tau[:, shown])
    return Replay(scene, t, q, curves, tau, contacts)


def of_motion(model: Model, record: MotionRecord) -> Replay:
    """Return the replay of a recorded motion, its columns assigned to joints by name.

    Joints that were not recorded, and joints without all of their coordinates, stay at
    their start. The scene has notes about them, and about joints that only the record
    has. If the motion has joint forces, those of these joints, and of joints without
    recorded forces, are 0; else `tau` of the replay is None. A DynWarning is issued for
    positions that look like degrees.
    """
    record, scene = record.named_by(model), RobotScene(model)
    names, forces = coordinates_of(model), record.column_indices("tau")
    there = record.column_indices("q")
    if not there.keys() & {*names.positions}:
        asked = next(iter(there), "")
        fault = unknown_name("joint", asked, model.joint_names)
        raise SettingError(f"the recording is of another robot: {fault}", "robot")
    q = np.tile(scene.start(), (len(record.t), 1))
    tau = None if record.tau is None else np.zeros((len(record.t), model.nv))
    missing = []
    for joint in model.joint_names:
        place, v = model.q_slice(joint), model.v_slice(joint)
        if not there.keys() >= {*names.positions[place]}:
            missing.append(joint)
            continue
        q[:, place] = record.q[:, [there[name] for name in names.positions[place]]]
        wide = names.velocities[v]
        if tau is not None and record.tau is not None and forces.keys() >= {*wide}:
            tau[:, v] = record.tau[:, [forces[name] for name in wide]]
    replay = of_arrays(model, record.t, q, tau, _forces(record.contacts))
    if missing:
        note = f"not measured, and left as they are: {', '.join(missing)}"
        replay.scene.notes.append(note)
    replay.scene.notes += filter(None, [unused_joints(record, model)])
    return replay


def _forces(contacts: Mapping[str, np.ndarray]) -> Callable[[int], Arrows] | None:
    """Return a function of a row's index that returns its contact forces, (k, 2, 3).

    `contacts` has `row` (ascending), `point` [m] and `force` [N] of a MotionRecord, or
    nothing: the result is None.
    """
    if not contacts:
        return None
    rows = contacts["row"]
    pairs = np.stack([contacts["point"], contacts["force"]], axis=1)

    def forces(row: int) -> Arrows:
        low, high = np.searchsorted(rows, [row, row + 1])
        return np.asarray(pairs[low:high])

    return forces


def of_points(scene: VisualScene, t: np.ndarray, states: np.ndarray) -> Replay:
    """Return the replay of a planar system, its points' coordinates as curves."""
    names = [f"{axis}{k}" for k in range(states.shape[1] // 2) for axis in "xy"]
    return Replay(scene, t, states, {"place [m]": (names, states)})


def arrow_ends(
    scene: VisualScene, size: float, forces: Arrows | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (start, end) of the arrows of contact forces, (3,) each [m], in the world.

    An arrow starts at the force's point. A force equal to the robot's weight has the
    length `size` [m]; the maximum is 1.5 times that. Forces up to a thousandth of the
    weight are left out, and all forces of scenes without a weight. `forces` (k, 2, 3)
    are pairs of a point [m] and a force [N].
    """
    ends = []
    weight = getattr(scene, "weight", 0.0)
    for point, force in () if forces is None else forces:
        length = float(np.linalg.norm(force))
        if weight > 0 and length > 1e-3 * weight:
            shown = min(length / weight, 1.5) * size
            ends.append((point, point + force / length * shown))
    return ends
