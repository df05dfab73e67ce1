"""Recording: the motion of a simulated robot, and what the simulator reports of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dyn_core import forwards
from dyn_core.contact.stepping.reports import StepReport
from dyn_core.errors import NearAttributes
from dyn_core.model import Model
from dyn_core.recordings.motion import MotionRecord
from dyn_core.validation import known_keywords


class RunSteps(NamedTuple):
    """All steps of a run without a World; each row has the same number of steps.

    q and qd are the states before each step, `effort` the joint forces in it, including
    forces of prescribed motion and the weight that the robot compensates itself,
    (steps, nv) [N·m | N]. `implicit` tells the coordinates whose friction the step
    evaluates at its end, to first order, (nv,); None: the step is explicit.
    """

    q: np.ndarray
    qd: np.ndarray
    effort: np.ndarray
    implicit: np.ndarray | None


class RowReports(tuple[Sequence[StepReport], ...]):
    """Reports of the steps of each row, with a short repr."""

    def __repr__(self) -> str:
        return f"<reports of {len(self)} rows, {sum(map(len, self))} steps>"


@dataclass(frozen=True, eq=False)
class Recording(NearAttributes):
    """A simulated run: its motion, one row a period, and what the simulator reports.

    Attributes:
        motion: Times, states at the start of each period, commanded joint forces `tau`,
            and reference positions `q_ref`, NaN where there was none; the notes are
            sentences on doubtful properties of the run.
        model: Robot.
        energy: Kinetic plus potential energy, including springs where they act, (rows,)
            [J].
        reports: For each row, the reports of the steps of the period
            (dyn_core.contact.stepping.reports); empty without a world.
        counters: Number of refused, late or not converged events, by name.
        cycle_time: Wall time of controller and steps in each row, (rows,) [s].
        steps: All steps of a run without a World; None with a World, or if unknown.
        joint_friction, joint_springs, limit_stops: Whether joint friction, joint
            springs and the limit stops of a run without a World acted.
        mean_qdd: Change of velocity in each period divided by the period, with all
            forces that acted, (rows, nv) [rad/s² | m/s²]; None without limit stops.
    """

    motion: MotionRecord
    model: Model
    energy: np.ndarray
    reports: tuple[Sequence[StepReport], ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    cycle_time: np.ndarray = field(default_factory=lambda: np.zeros(0))
    steps: RunSteps | None = None
    joint_friction: bool = True
    joint_springs: bool = True
    limit_stops: bool = False
    mean_qdd: np.ndarray | None = None

    @property
    def t(self) -> np.ndarray:
        """Times, (rows,) [s]."""
        return self.motion.t

    @property
    def q(self) -> np.ndarray:
        """Positions at the start of each period, (rows, nq)."""
        return self.motion.q

    @property
    def qd(self) -> np.ndarray:
        """Velocities at the start of each period, (rows, nv).

        SettingError if the motion has none.
        """
        return self.motion.column("qd")

    @property
    def tau(self) -> np.ndarray:
        """Commanded joint forces, (rows, nv) [N·m | N].

        SettingError if the motion has none.
        """
        return self.motion.column("tau")

    @property
    def q_ref(self) -> np.ndarray:
        """Reference positions, (rows, nq); NaN where there was none.

        SettingError if the motion has no such array.
        """
        return self.motion.column("q_ref")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on doubtful properties of the run: the notes of `motion`."""
        return self.motion.notes

    def __repr__(self) -> str:
        lines = [f"<Recording of {len(self.t)} rows"]
        if len(self.t):
            lines[0] += f", t = {self.t[0]:g} .. {self.t[-1]:g} s"
            referenced = self.motion.q_ref is not None and np.isfinite(self.q_ref).any()
            last = "q_ref" if referenced else "q_ref (NaN: no law.reference)"
            lines.append(f"  q {self.q.shape}, qd, tau, {last} by row, energy [J]")
            lines.append(f"  energy {self.energy[0]:.6g} -> {self.energy[-1]:.6g} J")
        if self.limit_stops and (names := self.motion.beyond_limits):
            lines.append(f"  stops took and gave energy: {', '.join(names)}")
        if self.reports:
            lines.append(f"  contact reports of {len(self.reports)} rows")
        if self.counters:
            counts = ", ".join(f"{key} {n}" for key, n in self.counters.items())
            lines.append(f"  {counts}")
        lines += [f"  warning: {sentence}" for sentence in self.warnings]
        return "\n".join(lines) + ">"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run as NPZ, CSV or MCAP, which `dyn view` and `dyn report` read.

        An existing file is replaced. NPZ holds everything, including contact forces;
        see dyn_core.recordings.

        Args:
            path: Name that ends with .npz, .csv or .mcap.

        Raises:
            SettingError: The name or folder is invalid, the file cannot be written, or
                CSV cannot represent the name of a column.
            UnsupportedError: MCAP cannot represent the joints, or rosbags is not
                installed.
        """
        forwards.save_run(self, path)

    def show(self, model: Model | None = None) -> Any:
        """Return an animated view of the run for a notebook; needs the extra `view`.

        Args:
            model: Robot; None: the model of the run.

        Raises:
            UnsupportedError: viser is not installed.
            SettingError: The run has no rows, or its times are not finite or decrease.
            ShapeError: q or tau has not as many columns as the robot's.
        """
        return forwards.show(self.model if model is None else model, self)

    @known_keywords
    def plot(self, path: str | None = None) -> Any:
        """Return a matplotlib figure of the run; write it to a file if `path` is given.

        It shows positions with reference positions, velocities, joint forces with
        limits, and energy. The name of a written file is printed.

        Args:
            path: File to write, such as "run.png"; None: no file is written.

        Raises:
            UnsupportedError: matplotlib is not installed; says how to install it.
            SettingError: The name is not valid, the file cannot be written, or the run
                has no rows.
        """
        return self.motion.plot(path, self.model.name, self.energy)
