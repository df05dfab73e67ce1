"""Recording: what a simulated robot did, one row a period."""

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
    """All steps of a run without a World, as many in each row.

    Attributes:
        q, qd: States before each step, (steps, nq), (steps, nv).
        effort: Joint forces in it, what prescribed motion and a robot's own weight take
            included, (steps, nv) [N·m | N].
        implicit: Coordinates whose friction the step takes at its end, to first order,
            (nv,); None: the step is explicit.
    """

    q: np.ndarray
    qd: np.ndarray
    effort: np.ndarray
    implicit: np.ndarray | None


@dataclass(frozen=True)
class Recording:
    """A run: one row a period.

    Attributes:
        t: Times [s].
        q, qd, tau: States, and joint forces as they were commanded.
        q_ref: References, or NaN where there was none.
        energy: Kinetic plus potential energy, that of springs included where they act
            [J].
        reports: By row, what each step of the period did at the contacts
            (dyn_core.contact.stepping.reports); empty without a world.
        counters: What was refused, late or not converged, by name.
        warnings: What is odd about the run, in sentences.
        model: Robot; None where it is not known.
        cycle_time: Wall time of controller and steps in each row [s].
        steps: All steps without a World; None where they are not known.
        joint_friction, joint_springs: Whether they acted.
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

        NPZ holds everything, contact forces, too; see dyn_core.recordings.

        Raises:
            SettingError: The name or folder will not do, or the run does not know its
                robot.
            UnsupportedError: MCAP, and rosbags is missing.
        """
        forwards.save_run(self, path)

    def show(self, model: Model | None = None) -> Any:
        """Return a view of the run that a notebook shows, of the extra `view`.

        Args:
            model: The robot; None: that of the run.

        Raises:
            SettingError: The run does not know its robot.
            UnsupportedError: viser is not installed.
        """
        robot = self.model if model is None else model
        if robot is None:
            raise SettingError("whose run is it? give show(model)", "model")
        return forwards.show(robot, self)

    def plot(self, path: str | None = None) -> Any:
        """Return a figure: positions, velocities, joint forces with limits, energy.

        Args:
            path: Picture to write, such as "run.png"; None: none is written.

        Raises:
            UnsupportedError: matplotlib is not installed; says how.
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
