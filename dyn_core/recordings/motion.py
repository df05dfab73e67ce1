"""MotionRecord: positions, velocities, accelerations and joint forces by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import (
    NonFiniteError,
    SettingError,
    ShapeError,
    UnsupportedError,
    guesses,
    unknown_name,
)
from dyn_core.model import Model
from dyn_core.model.coordinates.labels import Coordinates, coordinates_of
from dyn_core.plots import check_plot, plot_motion, save
from dyn_core.recordings.signals import check_delay, interpolated
from dyn_core.validation import float_array, known_keywords, shaped_array, shown

POSITIONS = ("q", "q_ref")
VELOCITIES = ("qd", "qdd", "tau", "command")
KINDS = ("q", "qd", "qdd", "tau", "command", "q_ref")
SUFFIXES = {"q": "", "q_ref": "", "qd": "/s", "qdd": "/s²"}  # of units
FORCE_UNITS = {"rad": "N·m", "m": "N"}  # units of joint forces by coordinate's unit
LIMITS = {"effort_limit": "tau", "lower_limit": "q", "upper_limit": "q"}  # facts


@known_keywords
@dataclass(frozen=True, eq=False, repr=False)
class MotionRecord:
    """Samples of a robot's motion, one row each; an unknown quantity is None.

    nq and nv are the numbers of names of positions and of velocities in `coordinates`.

    Attributes:
        coordinates: Names and units of the columns.
        t: Times, (rows,) [s]; they should increase, which `checked` checks.
        q: Positions, (rows, nq).
        qd, qdd, tau: Velocities, accelerations, joint forces, (rows, nv).
        command: Commanded joint forces, (rows, nv).
        q_ref: Reference positions, (rows, nq); NaN where there was none.
        series: Further numbers of each row, by name, (rows,) each.
        contacts: For a run with contacts: arrays `row` (count,), and `point` [m] and
            `force` [N] in the world frame, (count, 3), with one entry for every contact
            of a row's last step; the force acts on the first body of the contact.
        facts: Further data of the run: settings, limits, versions; JSON types.
        notes: Sentences on doubtful properties.

    Raises:
        ShapeError: An array of times or columns has the wrong shape, or is no numbers.
            NaN and infinity are accepted.
        SettingError: A keyword is unknown.
    """

    coordinates: Coordinates
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None = None
    qdd: np.ndarray | None = None
    tau: np.ndarray | None = None
    command: np.ndarray | None = None
    q_ref: np.ndarray | None = None
    series: Mapping[str, np.ndarray] = field(default_factory=dict)
    contacts: Mapping[str, np.ndarray] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        kinds = ", ".join(x for x in KINDS if getattr(self, x) is not None)
        return f"<MotionRecord of {len(self.t)} rows: {kinds}>"

    def __post_init__(self) -> None:
        t = float_array("t", self.t, "shape (rows,)")
        if t.ndim != 1:
            raise ShapeError("t", "shape (rows,)", f"shape {t.shape}")
        object.__setattr__(self, "t", t)
        for kind in KINDS:
            value = getattr(self, kind)
            if value is None and kind != "q":
                continue
            wanted = (len(t), len(self.names(kind)))
            object.__setattr__(self, kind, shaped_array(kind, value, wanted))

    @classmethod
    def of_joints(
        cls, names: Sequence[str], t: ArrayLike, q: ArrayLike, **fields: Any
    ) -> MotionRecord:
        """Return the motion of joints that have one coordinate each.

            MotionRecord.of_joints(model.joint_names, t, q, tau=tau)

        Units are unknown ("rad | m").

        Args:
            names: Joint of each column; empty: the joints of the robot that the motion
                is used with, in its order.
            t: Times, (rows,) [s].
            q: Positions, (rows, joints) [rad | m].
            fields: Further fields of a MotionRecord, such as qd, tau or command.

        Raises:
            ShapeError: The arrays do not match each other, or are no numbers.
            ValueError: Rows of t or q differ in length (NumPy's error; with empty
                `names` a ShapeError for q).
            SettingError: A field is unknown.
        """
        if not names:
            q = float_array("q", q, "shape (rows, joints)")
            names = _numbers(q.shape[1] if q.ndim == 2 else 0)
        return cls(named_coordinates(names), np.asarray(t), np.asarray(q), **fields)

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the column names of a kind, in the order of the columns.

        "q" and "q_ref" have the names of positions. Any other kind, such as "qd" or
        "tau", has the names of velocities; the kind is not checked.
        """
        names = self.coordinates
        return names.positions if kind in POSITIONS else names.velocities

    def column_indices(self, kind: str) -> dict[str, int]:
        """Return the index of each column of a kind, such as "qd", by column name.

        The names are those that `names` returns; the kind is not checked. Of columns
        with the same name, the last one counts.
        """
        return {name: k for k, name in enumerate(self.names(kind))}

    def units(self, kind: str) -> tuple[str, ...]:
        """Return the unit of each column of a kind, such as "qd": "rad/s" or "m/s".

        A unit that is unknown lists both, such as "rad/s | m/s". All kinds but q,
        q_ref, qd and qdd, also unknown ones, count as joint forces, which have "N·m |
        N" if their coordinate is neither in rad nor in m.
        """
        if kind in POSITIONS:
            return self.coordinates.position_units
        units = self.coordinates.velocity_units
        if kind in SUFFIXES:
            suffix = SUFFIXES[kind]
            parts = [unit.split(" | ") for unit in units]
            return tuple(" | ".join(x + suffix for x in part) for part in parts)
        return tuple(FORCE_UNITS.get(unit, "N·m | N") for unit in units)

    @property
    def effort_limits(self) -> np.ndarray:
        """Limits of the joint forces, (nv,) [N·m | N]; infinity: no limit.

        They are read from facts["effort_limit"], where None is no limit. All are
        infinity if that is not a list of nv entries.
        """
        return self._limits("effort_limit", np.inf)

    @property
    def position_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of the positions, (nq,) each [rad | m].

        Infinity: no limit. They are read from facts["lower_limit"] and
        facts["upper_limit"], where None is no limit. A fact that is not a list of nq
        entries means no limits.
        """
        return self._limits("lower_limit", -np.inf), self._limits("upper_limit", np.inf)

    @property
    def beyond_limits(self) -> tuple[str, ...]:
        """Names of the coordinates that pass a position limit in some row.

        The limits are `position_limits`. There is no tolerance; NaN passes none.
        """
        lower, upper = self.position_limits
        passed = ((self.q < lower) | (self.q > upper)).any(axis=0)
        return tuple(np.array(self.names("q"))[passed].tolist())

    def _limits(self, fact: str, none: float) -> np.ndarray:
        """Return the limits of a fact of LIMITS, with `none` for no limit, (columns,).

        All are `none` if the motion lacks the fact, or it is not a list with one entry
        for each column.
        """
        limits, count = self.facts.get(fact), len(self.names(LIMITS[fact]))
        if not isinstance(limits, list) or len(limits) != count:
            return np.full(count, none)
        return np.array([none if x is None else float(x) for x in limits])

    @known_keywords
    def plot(
        self,
        path: str | None = None,
        title: str = "",
        energy: np.ndarray | None = None,
        largest: int | None = None,
    ) -> Any:
        """Return a matplotlib figure of the motion; write it if `path` is given.

        It shows all columns over time, the limits of positions and joint forces that
        they approach, and the energy. The name of a written file is printed.

        Args:
            path: File to write, with an extension of matplotlib, such as "run.png";
                None: no file is written.
            title: Title of the figure; empty: none.
            energy: Total energy, shown below, (rows,) [J]; None: that of the series
                kinetic and potential. Without these, or empty: no such panel.
            largest: Maximum number of coordinates in a panel, those that change most
                in position or have the largest other values; None: all.

        Raises:
            UnsupportedError: matplotlib is not installed; says how to install it.
            SettingError: The name of the file is not valid, it cannot be written, or
                the motion has no rows.
            ValueError: `energy` is not empty and has another number of rows.
        """
        if path is not None:
            check_plot(path)
        columns = {kind: getattr(self, kind) for kind in KINDS}
        names = {kind: self.names(kind) for kind in KINDS}
        limits = {"q": np.stack(self.position_limits, 1), "tau": self.effort_limits}
        if energy is None and {"kinetic", "potential"} <= self.series.keys():
            energy = self.series["kinetic"] + self.series["potential"]
        figure = plot_motion(self.t, columns, names, limits, energy, title, largest)
        if path is not None:
            save(figure, path)
        return figure

    def column(self, kind: str) -> np.ndarray:
        """Return the array of a kind of columns, (rows, columns); no copy.

        The kind is q, qd, qdd, tau, command or q_ref.

        Raises:
            SettingError: The kind is unknown, or the motion has no such array.
        """
        if kind not in KINDS:
            raise SettingError(unknown_name("kind of column", kind, KINDS), "kind")
        array: np.ndarray | None = getattr(self, kind)
        if array is None:
            name = next(iter(self.names(kind)), "JOINT")
            there = ", ".join(k for k in KINDS if getattr(self, k) is not None)
            raise SettingError(
                f"the motion has no {kind}: columns {kind}[{name}], ... are missing;"
                f" there are: {there}",
                kind,
            )
        return array

    def of(self, model: Model) -> MotionRecord:
        """Return the motion with the columns of a robot's coordinates, in its order.

        Names and units become the robot's; other columns are left out. Kinds that the
        motion lacks stay None. Limits in `facts` are those of the run, sorted like the
        columns; a list of another length than the columns is left out. Other fields
        stay. Numbered columns get the robot's names, see `named_by`. This motion is not
        changed; it is returned itself if its coordinates are the robot's.

        Raises:
            SettingError: A coordinate has no column, or more than one.
            ShapeError: The columns are numbered, and not as many as the robot's.
        """
        wanted, motion = coordinates_of(model), self.named_by(model)
        if wanted == motion.coordinates:
            return motion
        columns: dict[str, Any] = {}
        for kind in KINDS:
            value = getattr(motion, kind)
            if value is not None:
                asked = wanted.positions if kind in POSITIONS else wanted.velocities
                order = _order(kind, asked, motion.names(kind), model.name)
                columns[kind] = value[:, order]
        facts = dict(motion.facts)
        for fact, kind in LIMITS.items():
            limits, names = facts.pop(fact, None), motion.names(kind)
            if isinstance(limits, list) and len(limits) == len(names):
                asked = wanted.positions if kind in POSITIONS else wanted.velocities
                by_name = dict(zip(names, limits, strict=True))
                facts[fact] = [by_name.get(name) for name in asked]
        return replace(motion, coordinates=wanted, facts=facts, **columns)

    def named_by(self, model: Model) -> MotionRecord:
        """Return the motion with a robot's names and units if its columns are numbered.

        Columns of a file without names are called 1, 2, ... with the unit "rad | m";
        they are assumed to be the robot's, in its order. Any other motion is returned
        itself, and so is every motion if a position of the robot has one of these
        names.

        Raises:
            ShapeError: The columns are numbered, and not as many as the robot's.
        """
        wanted, mine = coordinates_of(model), self.coordinates
        numbers = numbered_coordinates(len(mine.positions), len(mine.velocities))
        if mine != numbers or {*wanted.positions} & {*mine.positions}:
            return self
        for kind in KINDS:
            names = wanted.positions if kind in POSITIONS else wanted.velocities
            array = getattr(self, kind)
            if array is not None and array.shape[1] != len(names):
                expected = f"{len(names)} columns as '{model.name}' has coordinates"
                raise ShapeError(kind, expected, str(array.shape[1]))
        return replace(self, coordinates=wanted)

    def without_delay(self, seconds: float) -> MotionRecord:
        """Return the motion with joint forces shifted to earlier times.

        Both tau and command at t become those at t + seconds, interpolated linearly,
        and constant before the first and beyond the last time; there must be a row.
        This motion is not changed.

        Args:
            seconds: Delay of the joint forces relative to the positions, as in
                `Identification.delay` [s]; negative: they are shifted to later times.

        Raises:
            SettingError: The delay is not a finite number.
        """
        check_delay(seconds)
        moved: dict[str, Any] = {
            kind: interpolated(self.t, array, self.t + seconds)
            for kind in ("tau", "command")
            if (array := getattr(self, kind)) is not None
        }
        return replace(self, **moved)

    def checked(self, kinds: Sequence[str]) -> MotionRecord:
        """Check times and numbers; return the record itself.

        Times must be finite and strictly increasing.

        Args:
            kinds: Kinds of columns, such as "qd", that must exist and be finite.

        Raises:
            SettingError: A kind is missing, or times do not increase; names the kind,
                or the row, counted from 1.
            NonFiniteError: A number is not finite; names row, counted from 1, and
                column.
        """
        refuse_not_finite("t", self.t[:, None], ("",))
        late = np.flatnonzero(np.diff(self.t) <= 0)
        if len(late):
            k = int(late[0])
            raise SettingError(
                f"row {k + 2}: t = {self.t[k + 1]:.9g} s is not later than"
                f" {self.t[k]:.9g} s of the row before",
                "t",
            )
        for kind in kinds:
            refuse_not_finite(kind, self.column(kind), self.names(kind))
        return self


def motion_of(record: Any, who: str) -> MotionRecord:
    """Return a motion itself, or that of a Recording; refuse others for `who`."""
    motion = getattr(record, "motion", record)
    if not isinstance(motion, MotionRecord):
        raise UnsupportedError(
            f"{who} is for a motion, not for {shown(record)}; valid: read_motion(path),"
            " MotionRecord.of_joints(names, t, q), or a run of dyn.simulate"
        )
    return motion


def unused_joints(record: MotionRecord, model: Model) -> str:
    """Return words on recorded joints that a robot does not move; "" without any.

        recorded, and no moving joints of 'two_link': joint3, ...; the file is of 'arm7'

    The end names the robot of facts["robot"], where it has another name. Followers of
    the robot are its own. Only names of positions are compared.
    """
    known = {*coordinates_of(model).positions, *model.names}
    extra = [name for name in record.names("q") if name not in known]
    if not extra:
        return ""
    robot = str(record.facts.get("robot", model.name))
    other = f"; the file is of '{robot}'" if robot != model.name else ""
    listed = ", ".join(extra)
    return f"recorded, and no moving joints of '{model.name}': {listed}{other}"


def refuse_not_finite(kind: str, array: np.ndarray, names: Sequence[str]) -> None:
    """Check that the numbers (rows, columns) of a quantity `kind` are all finite."""
    if np.isfinite(array).all():
        return
    row, column = (int(x[0]) for x in np.nonzero(~np.isfinite(array)))
    label = f"{kind}[{names[column]}]" if names[column] else kind
    value = array[row, column]
    shown = "missing or not a number" if np.isnan(value) else f"{value}"
    raise NonFiniteError(f"row {row + 1}: {label} is {shown}", kind)


def _order(
    kind: str, wanted: Sequence[str], there: Sequence[str], robot: str
) -> list[int]:
    """Return for each of a robot's coordinates the index of its only column.

    Columns with other names may be among them.
    """
    for name in wanted:
        count = list(there).count(name)
        if count == 0:
            guess = guesses(name, [x for x in there if x not in wanted])
            raise SettingError(
                f"the motion, robot '{robot}': no column is called '{kind}[{name}]'"
                f"{guess} a joint that was not measured is locked: --lock"
                " JOINT=POSITION, in Python model.lock",
                kind,
            )
        if count > 1:
            raise SettingError(
                f"the motion: {kind}[{name}] is there {count} times; valid: once", kind
            )
    return [list(there).index(name) for name in wanted]


def _numbers(count: int) -> tuple[str, ...]:
    """Return the names "1" to "COUNT" of columns without names."""
    return tuple(str(k + 1) for k in range(count))


def numbered_coordinates(positions: int, velocities: int) -> Coordinates:
    """Return coordinates called "1", "2", ..., with the unit "rad | m"."""
    wide = named_coordinates(_numbers(velocities))
    narrow = named_coordinates(_numbers(positions))
    return Coordinates(
        narrow.positions, wide.velocities, narrow.position_units, wide.velocity_units
    )


def named_coordinates(names: Sequence[str]) -> Coordinates:
    """Return coordinates with equal names of q and qd, of unit "rad | m" (unknown)."""
    return Coordinates(
        tuple(names), tuple(names), ("rad | m",) * len(names), ("rad | m",) * len(names)
    )
