"""Result of an identification: parameters with uncertainty, as text, figures, files.

Tables of identified parameters are read here, too.
"""

from __future__ import annotations

import operator
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import ModelError, SettingError, warn
from dyn_core.identification.fitting.sought_robot import with_paths
from dyn_core.identification.identified_files import (
    ROBOT_FILES,
    TABLE_FILES,
    check_file,
    write_columns,
    write_robot,
)
from dyn_core.identification.regressor_rank import BaseParameters
from dyn_core.identification.selection import number_names, path_of
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.model.parameter_vector import (
    parameter_names,
    with_linear_parameters,
)
from dyn_core.plots.figures import Curve, Panel, draw, save_figure
from dyn_core.plots.table_plots import plot_ranges
from dyn_core.validation.array_files import cell_number, csv_rows


def write_table(path: str | os.PathLike[str], result: Identification) -> None:
    """Write the parameters of an identification as CSV, one a row.

    Columns: name, value, prior, standard deviation. An existing file is replaced.

    Raises:
        SettingError: The file does not end with .csv, or cannot be written.
    """
    columns = (result.parameters, result.prior, result.standard_deviations)
    write_columns(Path(path), result.names, columns)


def with_table(model: Model, path: str | os.PathLike[str]) -> Model:
    """Return a robot with the parameters of a CSV table: rows of name, value, ...

    A table with masses of bodies must have all inertial parameters of all bodies, and
    dry friction with damping, and rotors, for all joints or none. A table without
    masses may have any parameters; others keep the robot's values. A delay is ignored.

    Args:
        model: Robot.
        path: File; its first row is skipped as a header, and only names and values are
            used.

    Raises:
        SettingError: The file cannot be read, or its parameters do not match the
            robot's.
        ModelError: No robot can have the parameters; names the fault.
        SingularError: An axis has length 0, or is -z for a planar joint.
        UnsupportedError: `model` is not a robot, or a parameter that is not a linear
            one belongs to the robot as a whole; gravity is allowed.
    """
    check_robot(model, "with_table")
    values = {row[0]: _value(path, row) for row in csv_rows(Path(path))[1:]}
    if not values:
        raise _no_table(path, "it has no rows")
    joints = [name.rpartition(".")[2].partition("[")[0] for name in values]
    groups = {
        "friction": "damping" in joints and "friction" in joints,
        "rotors": "armature" in joints,
    }
    if not any(name.endswith(":m") and "." not in name for name in values):
        return _with_names(model, path, values)
    names = parameter_names(model, **groups)
    more = {k: v for k, v in values.items() if k not in names}
    values = {k: v for k, v in values.items() if k in names}
    for name in names:
        if name not in values:
            raise SettingError(f"{path}: the parameter {name} is missing", name)
    made = _with_names(model, path, more)
    return with_linear_parameters(
        made, np.array([values[name] for name in names]), **groups
    )


def _value(path: str | os.PathLike[str], row: list[str]) -> float:
    """Return the number in the second cell of a row; it may be NaN or infinite."""
    try:
        return cell_number(row[1])
    except (ValueError, IndexError) as error:
        raise _no_table(path, f"{row[0]} has no number") from error


def _no_table(path: str | os.PathLike[str], reason: str) -> SettingError:
    """Return (not raise) the error that a file is no table of parameters."""
    valid = "rows of name, value"
    message = f"{path}: no table of parameters: {reason}; valid: {valid}"
    return SettingError(message, "parameters")


def _with_names(
    model: Model, path: str | os.PathLike[str], values: dict[str, float]
) -> Model:
    """Return the robot with values of PATH, PATH:part or PATH[k]; a delay is ignored.

    Numbers of a path that have no value are unchanged. `path` is for messages.
    """
    values = {k: v for k, v in values.items() if k != "delay"}
    paths = dict.fromkeys(re.sub(r"(:\w+|\[\d+\])$", "", name) for name in values)
    whole = {}
    for parameter in paths:
        try:
            whole[parameter] = np.array(model.parameter(parameter), float)
        except ModelError as error:
            raise SettingError(f"{path}: {error}", parameter) from error
        for k, name in enumerate(number_names(model, parameter)):
            whole[parameter][k] = values.pop(name, whole[parameter][k])
    if values:
        (name, *_) = values
        raise SettingError(f"{path}: '{model.name}' has no number {name}", name)
    return with_paths(model, whole) if whole else model


VAGUE = 0.3  # relative standard deviation above which a parameter is hardly known
MOST_PARAMETERS = 60  # maximum number of parameters in a figure
MOST_LINES = 12  # maximum number of listed parameters that the data do not determine


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Residuals of fits that leave out one block of time each.

    Attributes:
        folds: Number of blocks.
        fitted: Root mean square of the residual on fitted rows, (nv,) [N·m | N].
        new: Root mean square of the residual on held-out rows, (nv,) [N·m | N].
        spread: Standard deviation of the parameters between the fits, (np,).
    """

    folds: int
    fitted: np.ndarray
    new: np.ndarray
    spread: np.ndarray

    @property
    def ratio(self) -> float:
        """Ratio of residuals on held-out to fitted rows; near 1: no overfitting.

        It is the root mean square over the coordinates of new / fitted, infinite or NaN
        if a fitted one is zero.
        """
        return float(np.sqrt(np.mean((self.new / self.fitted) ** 2)))


@dataclass(frozen=True, eq=False)
class Identification:
    """Parameters of a robot, identified from measured motion and joint forces.

    Attributes:
        names: Names of the parameters.
        parameters: Identified values, (np,).
        prior: Prior values, (np,).
        standard_deviations: Standard deviations of the parameters, (np,); infinite for
            parameters that the data determine only in combinations, or not at all.
        base: Base parameters that the data determine, with their values.
        base_deviations: Standard deviations of the base parameters, (rank,).
        residual_rms: Root mean square of the residual, (nv,) [N·m | N].
        noise: Standard deviation by which rows were weighted, (nv,).
        rank: Number of base parameters that the data determine.
        condition: Condition number of the weighted regressor of the base parameters,
            columns scaled to unit length.
        eigenvalues: Smallest eigenvalue of the pseudo-inertia of each body and payload
            whose ten inertial parameters were identified; above zero for physically
            consistent bodies.
        model: Robot with these parameters; None if no robot can have them.
        reason: Reason why there is no model, else empty.
        evaluations: Number of cost evaluations of a fit with bounds or consistency;
            else 0.
        converged: Whether the fit converged.
        units: SI unit of each parameter.
        outliers: Fraction of rows with reduced weight.
        validation: Cross-validation; None without.
        before: Robot before the identification; None if unknown.
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
        """Return the identified value of a parameter, or all identified ones of a path.

        Args:
            name: Name of a parameter, such as "tool.payload:m" or "ball.damping[0]",
                for a float; or the path of parameters, such as "tool.payload" or
                "ball.damping", for an array (numbers,).

        Raises:
            SettingError: No parameter has this name or path.
        """
        places = [k for k, x in enumerate(self.names) if name in (x, path_of(x))]
        if not places:
            raise SettingError(f"no parameter '{name}' was identified", name)
        alone = self.names[places[0]] == name
        return float(self.parameters[places[0]]) if alone else self.parameters[places]

    @property
    def delay(self) -> float:
        """Delay of the joint forces [s]; 0 if it was not identified."""
        return float(self.parameters[-1]) if self.names[-1:] == ("delay",) else 0.0

    @property
    def unseen(self) -> tuple[str, ...]:
        """Names of parameters that are in no base parameter.

        No joint force of this motion depends on them.
        """
        seen = np.zeros(len(self.names), bool)
        seen[np.abs(self.base.regrouping).sum(axis=0) > 0] = True
        return tuple(x for x, s in zip(self.names, seen, strict=True) if not s)

    @property
    def combined(self) -> tuple[str, ...]:
        """Base parameters that combine several parameters, each as a sum with factors.

        Base parameters that are a single parameter are left out.
        """
        many = np.count_nonzero(self.base.regrouping, axis=1) > 1
        return tuple(self.base.expression(int(k)) for k in np.flatnonzero(many))

    def lines(self) -> list[str]:
        """Return the result as lines of text.

        First the rank and condition, and a table of the determined parameters; then
        names of the others, share of outliers, residual of the validation, and the
        reason if no robot has the numbers, each only if there is one.
        """
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
        """Return a matplotlib figure of the parameters with their priors.

        It contains parameters that changed or have a finite standard deviation, at most
        60 (MOST_PARAMETERS). The order is by standard deviation relative to the value
        (the larger of result and prior), smallest first; infinite ones come last, the
        most changed of them first. The picture is written if `path` is given.

        Args:
            path: Picture file; None: no file is written.

        Raises:
            UnsupportedError: matplotlib is not installed.
            SettingError: The file cannot be written.
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
            save_figure(figure, path)
        return figure

    def plot_friction(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a matplotlib figure of joint friction over speed, before and after.

        Each of model.joint_names has a panel, with speeds from minus to plus the
        velocity limit of the joint (of its first coordinate), or 1 rad/s or m/s without
        a limit. If `before` is None, both curves are of the identified robot.

        Args:
            path: Picture file; None: no file is written.

        Raises:
            ModelError: No robot has these parameters.
            UnsupportedError: matplotlib is not installed.
            SettingError: The file cannot be written.
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
            save_figure(figure, path)
        return figure

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write the identified robot or its parameters; return the paths of the files.

        Args:
            path: NAME.urdf: copy of the robot's URDF with identified masses, inertias
                and friction, and NAME.dyn.yaml for parameters that URDF lacks.
                NAME.yaml: sidecar alone, which has no masses and inertias; a DynWarning
                says so where they changed. NAME.csv: table of all parameters. Existing
                files are replaced.

        Raises:
            ModelError: Except for .csv: no robot has these parameters, gravity is one
                of them, a file that the robot was read from is not valid any more, or
                has no place for them; or for .urdf, there was no URDF file, or it is
                gone.
            SettingError: The extension is unknown, or a file cannot be written.
        """
        file = Path(path)
        check_file(file, (*ROBOT_FILES, *TABLE_FILES))
        if file.suffix in TABLE_FILES:
            columns = self.parameters, self.prior, self.standard_deviations
            return (write_columns(file, self.names, columns),)
        if self.model is None:
            raise ModelError(f"no robot has these numbers: {self.reason}")
        if "gravity" in map(path_of, self.names):
            raise ModelError(
                "gravity has no place in the files of a robot; valid: a table .csv, or"
                " dyn.load(..., gravity=...)",
                "gravity",
            )
        if file.suffix == ".yaml" and self.before is not None:
            if any(map(operator.ne, _inertias(self.model), _inertias(self.before))):
                warn(
                    f"{file.name} has no masses and inertias, which a sidecar cannot"
                    " say: what was identified of them is lost; valid: NAME.urdf"
                )
        return write_robot(file, self.model)


def _inertias(model: Model) -> list[tuple[float, ...]]:
    """Return the ten inertial parameters of each body, fixed links included."""
    return [tuple(x.parameters) for x in model.I]


def friction_curve(model: Model, joint: str, speed: np.ndarray) -> np.ndarray:
    """Return a joint's friction at speeds, an array of their shape [N·m | N].

        t = tanh(speed / friction_speed)
        damping speed + t (friction + friction_asymmetry t
                           + stribeck exp(-(speed / stribeck_speed)²))

    The joint moves; of several coordinates the first one counts.
    """
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
    """Return the heading `what` and lines of names, at most 12; [] without names."""
    if not names:
        return []
    more = [f"  ... and {len(names) - MOST_LINES} more"]
    shown = [f"  {name}" for name in names[:MOST_LINES]]
    return [f"{what}:", *shown, *more[: len(names) > MOST_LINES]]
