"""Recording: states, joint forces and energy of a simulated robot, one row a period."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dyn_core import forwards
from dyn_core.contact.stepping.reports import StepReport
from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.plots import check_plot, plot_motion, save


class RunSteps(NamedTuple):
    """All steps of a run without a World; each row has the same number of steps.

    Attributes:
        q, qd: States before each step, (steps, nq), (steps, nv).
        effort: Joint forces in each step, including forces of prescribed motion and the
            weight that the robot compensates itself, (steps, nv) [N·m | N].
        implicit: Coordinates whose friction the step evaluates at its end, to first
            order, bool, (nv,); None: the step is explicit.
    """

    q: np.ndarray
    qd: np.ndarray
    effort: np.ndarray
    implicit: np.ndarray | None


@dataclass(frozen=True)
class Recording:
    """A simulated run, one row a period.

    Attributes:
        t: Times, (rows,) [s].
        q, qd: States at the start of each period, (rows, nq), (rows, nv).
        tau: Commanded joint forces, (rows, nv).
        q_ref: Reference positions, (rows, nq), or NaN where there was none.
        energy: Kinetic plus potential energy, including springs where they act, (rows,)
            [J].
        reports: For each row, the reports of the steps of the period
            (dyn_core.contact.stepping.reports); empty without a world.
        counters: Number of refused, late or not converged events, by name.
        warnings: Sentences on doubtful properties of the run.
        model: Robot; None if unknown.
        cycle_time: Wall time of controller and steps in each row, (rows,) [s].
        steps: All steps without a World; None if unknown.
        joint_friction, joint_springs: Whether joint friction and joint springs acted.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    q_ref: np.ndarray
    energy: np.ndarray
    reports: tuple[Sequence[StepReport], ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    model: Model | None = None
    cycle_time: np.ndarray = field(default_factory=lambda: np.zeros(0))
    steps: RunSteps | None = None
    joint_friction: bool = True
    joint_springs: bool = True

    def __repr__(self) -> str:
        lines = [f"<Recording of {len(self.t)} rows"]
        if len(self.t):
            lines[0] += f", t = {self.t[0]:g} .. {self.t[-1]:g} s"
            lines.append(f"  q {self.q.shape}, qd, tau, q_ref by row, energy [J]")
            lines.append(f"  energy {self.energy[0]:.6g} -> {self.energy[-1]:.6g} J")
        if self.reports:
            lines.append(f"  contact reports of {len(self.reports)} rows")
        if self.counters:
            counts = ", ".join(f"{key} {n}" for key, n in self.counters.items())
            lines.append(f"  {counts}")
        lines += [f"  warning: {sentence}" for sentence in self.warnings]
        return "\n".join(lines) + ">"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run as NPZ, CSV or MCAP, which `dyn view` and `dyn report` read.

        NPZ holds everything, including contact forces; see dyn_core.recordings.

        Raises:
            SettingError: The name or folder is invalid, or the run has no model.
            UnsupportedError: MCAP cannot represent the joints, or rosbags is not
                installed.
        """
        forwards.save_run(self, path)

    def show(self, model: Model | None = None) -> Any:
        """Return a view of the run for a notebook; needs the extra `view`.

        Args:
            model: Robot; None: the model of the run.

        Raises:
            SettingError: The run has no model, and none is given.
            UnsupportedError: viser is not installed.
        """
        robot = self.model if model is None else model
        if robot is None:
            raise SettingError("whose run is it? give show(model)", "model")
        return forwards.show(robot, self)

    def plot(self, path: str | None = None) -> Any:
        """Return a matplotlib figure of the run; write it to a file if `path` is given.

        It shows positions, velocities, joint forces with limits, and energy.

        Args:
            path: File to write, such as "run.png"; None: no file is written.

        Raises:
            UnsupportedError: matplotlib is not installed; says how to install it.
            SettingError: The file cannot be written.
        """
        if path is not None:
            check_plot(path)
        columns = {"q": self.q, "q_ref": self.q_ref, "qd": self.qd, "tau": self.tau}
        limits, title, model = None, "", self.model
        if model is None:
            wide = [str(k + 1) for k in range(self.qd.shape[1])]
            names = {"q": [str(k + 1) for k in range(self.q.shape[1])]}
        else:
            coordinates = coordinates_of(model)
            wide, names = [*coordinates.velocities], {"q": [*coordinates.positions]}
            limits = np.where(model.effort_limit > 0, model.effort_limit, np.inf)
            title = model.name
        names |= {"qd": wide, "tau": wide}
        figure = plot_motion(self.t, columns, names, limits, self.energy, title)
        if path is not None:
            save(figure, path)
        return figure
