"""What an identification says: numbers with uncertainty, in words, as files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import ModelError, SettingError
from dyn_core.identification.identified_files import write_columns, write_robot
from dyn_core.identification.regressor_rank import BaseParameters
from dyn_core.model import Model
from dyn_core.plots.figures import Curve, Panel, draw
from dyn_core.plots.tables import plot_ranges

VAGUE = 0.3  # standard deviation over the value: numbers beyond are hardly known
MOST_PARAMETERS = 60  # rows of a figure
MOST_LINES = 12  # of what the data do not show


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Fits of all blocks of time but one, tried on that one.

    Attributes:
        folds: Number of blocks.
        fitted: By coordinate: rms of the residual on rows that were fitted [N·m | N].
        new: Alike, on rows that were not.
        spread: Of the parameters: standard deviation between the fits.
    """

    folds: int
    fitted: np.ndarray
    new: np.ndarray
    spread: np.ndarray

    @property
    def ratio(self) -> float:
        """Rms on new rows over that on fitted ones; near 1: nothing is overfitted."""
        return float(np.sqrt(np.mean((self.new / self.fitted) ** 2)))


@dataclass(frozen=True, eq=False)
class Identification:
    """What measured motion and joint forces say about a robot.

    Attributes:
        names: Names of the parameters.
        parameters: Their values, np.
        prior: What they were before, np.
        standard_deviations: Of the parameters; infinite where the data say nothing
            about a parameter by itself, only about combinations with others.
        base: The base parameters that the data show, with their values.
        base_deviations: Their standard deviations.
        residual_rms: By coordinate: what is left of the joint force [N·m | N].
        noise: By coordinate: standard deviation that its rows were weighted by.
        rank: Number of base parameters that the data show.
        condition: Condition number of the weighted regressor on the base parameters,
            columns scaled to unit length.
        eigenvalues: By body: least eigenvalue of its pseudo-inertia; above zero
            where some mass distribution has it.
        model: The robot with these parameters; None where no robot can have them.
        reason: Why there is no model.
        evaluations: Of the fit with bounds or physical consistency; 0 without.
        converged: Whether that came to its end.
        units: SI unit of each parameter.
        outliers: Part of the rows that count less than others.
        validation: What cross-validation says; None without.
        before: The robot before; None: not known.
    """

    names: tuple[str, ...]
    parameters: np.ndarray
    prior: np.ndarray
    standard_deviations: np.ndarray
    base: BaseParameters
    base_deviations: np.ndarray
    residual_rms: np.ndarray
    noise: np.ndarray
    rank: int
    condition: float
    eigenvalues: np.ndarray
    model: Model | None
    reason: str = ""
    evaluations: int = 0
    converged: bool = True
    units: tuple[str, ...] = ()
    outliers: float = 0.0
    validation: CrossValidation | None = None
    before: Model | None = None

    def __repr__(self) -> str:
        return (
            f"Identification(rank={self.rank} of {len(self.names)},"
            f" condition={self.condition:.3g},"
            f" residual_rms={np.array2string(self.residual_rms, precision=4)},"
            f" model={self.model})"
        )

    def __getitem__(self, name: str) -> float | np.ndarray:
        """Return a parameter by name, or all numbers of a path."""
        places = [
            k for k, x in enumerate(self.names) if name in (x, x.partition(":")[0])
        ]
        if not places:
            raise SettingError(f"no parameter '{name}' was identified", name)
        alone = self.names[places[0]] == name
        return float(self.parameters[places[0]]) if alone else self.parameters[places]

    @property
    def delay(self) -> float:
        """How late joint forces were recorded [s]; 0 where that was not sought."""
        return float(self.parameters[-1]) if self.names[-1:] == ("delay",) else 0.0

    @property
    def unseen(self) -> tuple[str, ...]:
        """Parameters that no joint force of this motion depends on."""
        seen = np.zeros(len(self.names), bool)
        seen[np.abs(self.base.regrouping).sum(axis=0) > 0] = True
        return tuple(x for x, s in zip(self.names, seen, strict=True) if not s)

    @property
    def combined(self) -> tuple[str, ...]:
        """Combinations of which only the value shows, as sums of parameters."""
        many = np.count_nonzero(self.base.regrouping, axis=1) > 1
        return tuple(self.base.expression(int(k)) for k in np.flatnonzero(many))

    def lines(self) -> list[str]:
        """Return the result in words: numbers, what the data do not show, trials."""
        width = max(map(len, self.names), default=0)
        known = np.isfinite(self.standard_deviations)
        lines = [
            f"{self.rank} of {len(self.names)} numbers or combinations show;"
            f" condition {self.condition:.3g}",
            f"{'number':{width}}  {'value':>10} {'+-':>9} {'before':>10}  unit",
        ]
        units = self.units or ("",) * len(self.names)
        for k in np.flatnonzero(known):
            value, deviation = self.parameters[k], self.standard_deviations[k]
            vague = "" if deviation <= VAGUE * abs(value) else "  hardly known"
            lines.append(
                f"{self.names[k]:{width}}  {value:10.5g} {deviation:9.2g}"
                f" {self.prior[k]:10.5g}  {units[k]}{vague}"
            )
        lines += _listed("only in combinations", self.combined)
        lines += _listed("no joint force depends on", self.unseen)
        if self.outliers:
            lines.append(f"{100 * self.outliers:.1f} % of the rows are outliers")
        if self.validation is not None:
            lines.append(
                f"on held-out motion the residual is {self.validation.ratio:.3f} times"
                f" that of fitted motion ({self.validation.folds} blocks of time)"
            )
        if self.model is None:
            lines.append(f"no robot has these numbers: {self.reason}")
        return lines

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a figure of the parameters and of the residuals; write it as a file.

        Only parameters that changed or that the motion shows by themselves are drawn,
        those that are known best first.

        Args:
            path: Of a picture; None: none is written.
        """
        scale = np.maximum(np.maximum(abs(self.parameters), abs(self.prior)), 1e-12)
        changed = abs(self.parameters - self.prior) / scale
        known = np.isfinite(self.standard_deviations)
        chosen = np.flatnonzero((changed > 1e-9) | known)
        deviation = self.standard_deviations / scale
        order = np.lexsort((-changed[chosen], deviation[chosen]))
        chosen = chosen[order][:MOST_PARAMETERS]
        figure = plot_ranges(
            [self.names[k] for k in chosen],
            self.parameters[chosen],
            self.standard_deviations[chosen],
            self.prior[chosen],
            f"{self.rank} combinations of {len(self.names)} parameters identified",
        )
        if path is not None:
            figure.savefig(path, dpi=110)
        return figure

    def plot_friction(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a figure of joint friction over speed, before and after.

        Args:
            path: Of a picture; None: none is written.

        Raises:
            ModelError: No robot has these numbers.
        """
        if self.model is None:
            raise ModelError(f"no robot has these numbers: {self.reason}")
        robots = {"identified": self.model, "before": self.before or self.model}
        panels = []
        for name in self.model.joint_names:
            top = float(self.model.velocity_limit[self.model.v_slice(name)][0])
            speed = np.linspace(-1.0, 1.0, 801) * (top if np.isfinite(top) else 1.0)
            curves = [
                Curve(speed, friction_curve(robot, name, speed), label)
                for label, robot in robots.items()
            ]
            panels.append(Panel(name, curves))
        figure = draw(panels, "friction [N·m | N]", "speed [rad/s | m/s]")
        if path is not None:
            figure.savefig(path, dpi=110)
        return figure

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write the identified robot; return the files.

        Args:
            path: NAME.urdf: a copy of the robot's URDF with masses, inertias, friction
                of this result, and NAME.dyn.yaml beside it with what URDF cannot say;
                NAME.yaml: a sidecar of what it can say; NAME.csv: a table of all.

        Raises:
            ModelError: No robot has these numbers, or it has no URDF.
            SettingError: No such kind of file, or it cannot be written.
        """
        file = Path(path)
        if file.suffix == ".csv":
            columns = self.parameters, self.prior, self.standard_deviations
            return (write_columns(file, self.names, columns),)
        if self.model is None:
            raise ModelError(f"no robot has these numbers: {self.reason}")
        return write_robot(file, self.model)


def friction_curve(model: Model, joint: str, speed: np.ndarray) -> np.ndarray:
    """Return a joint's friction at speeds [N·m | N]."""
    numbers = (
        "damping",
        "friction",
        "friction_asymmetry",
        "friction_speed",
        "stribeck",
        "stribeck_speed",
    )
    viscous, mean, more, width, extra, slow = (
        float(model.parameter(f"{joint}.{x}")[0])  # type: ignore[arg-type]
        for x in numbers
    )
    t = np.tanh(speed / width)
    near = extra * np.exp(-((speed / slow) ** 2))
    return np.asarray(viscous * speed + t * (mean + more * t + near))


def _listed(what: str, names: tuple[str, ...]) -> list[str]:
    """Return names below a heading, not too many."""
    if not names:
        return []
    more = [f"  ... and {len(names) - MOST_LINES} more"]
    shown = [f"  {name}" for name in names[:MOST_LINES]]
    return [f"{what}:", *shown, *more[: len(names) > MOST_LINES]]
