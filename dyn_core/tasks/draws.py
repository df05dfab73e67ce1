"""Distributions of parameters that differ by row, drawn anew for each episode.

values = {"*.mass": UniformFactor(0.8, 1.2), "tool.payload": PayloadMass(0.0, 2.0)}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dyn_core.errors import ModelError, SettingError, warn
from dyn_core.model import Model, parameter_paths
from dyn_core.model.checks.findings import warn_of
from dyn_core.model.checks.robots import odd_gravity
from dyn_core.validation import float_array, known_keywords, shown

PERCENT = 20.0  # smallest factor that may be meant in percent
RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
Draw: TypeAlias = Callable[[np.random.Generator, int], np.ndarray]


def _check_bounds(draw: Any, lowest: float = -np.inf, dimensions: int = 0) -> None:
    """Refuse bounds unless lowest <= draw.low <= draw.high, all finite numbers.

    Each is a number or, with dimensions=1, a sequence that is not empty.
    """
    try:
        low, high = (float_array("bound", x, "") for x in (draw.low, draw.high))
        good = all(
            x.size and x.ndim <= dimensions and np.isfinite(x).all()
            for x in (low, high)
        ) and bool((lowest <= low).all() and (low <= high).all())
    except ValueError:  # a ShapeError, or sequences of different lengths
        good = False
    if not good:
        least = "" if lowest == -np.inf else f"{lowest:g} <= "
        raise SettingError(
            f"{type(draw).__name__}: low is {shown(draw.low)}, high is"
            f" {shown(draw.high)}; valid: finite numbers, {least}low <= high",
            "low",
        )


@known_keywords
@dataclass(frozen=True)
class Uniform:
    """Uniform distribution of the numbers of a parameter, each drawn independently.

    Attributes:
        low, high: Bounds in the unit of the parameter: one number for each entry of the
            parameter; a scalar for a parameter of one entry.

    Raises:
        SettingError: A bound is not finite, low > high, or an unknown keyword.
    """

    low: tuple[float, ...] | float
    high: tuple[float, ...] | float

    def __post_init__(self) -> None:
        _check_bounds(self, dimensions=1)

    def __call__(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Return random numbers, (rows, entries), column i between low[i] and high[i].

        `rng` is advanced.
        """
        low, high = np.broadcast_arrays(np.atleast_1d(self.low), self.high)
        return rng.uniform(low, high, (rows, len(low)))


@known_keywords
@dataclass(frozen=True)
class UniformFactor:
    """Distribution of the robot's own numbers of a parameter times a uniform factor.

    One factor is drawn for all entries of a parameter, so that an inertia remains one.

    Attributes:
        low, high: Bounds of the factor, 0 <= low <= high; 1 is the robot's own number.
            A DynWarning asks whether `low` from 20 (PERCENT) on is meant in percent.

    Raises:
        SettingError: A bound is negative or not finite, low > high, or an unknown
            keyword.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_bounds(self, 0.0)
        if self.low >= PERCENT:
            warn(
                f"UniformFactor({self.low:g}, {self.high:g}) makes parameters that many"
                f" times larger; in percent? valid: {self.low / 100:g} for"
                f" {self.low:g} %"
            )

    def times(
        self, numbers: np.ndarray, rng: np.random.Generator, rows: int
    ) -> np.ndarray:
        """Return `numbers` (entries,) times a factor for each row, (rows, entries).

        `rng` is advanced.
        """
        return rng.uniform(self.low, self.high, (rows, 1)) * numbers


@known_keywords
@dataclass(frozen=True)
class PayloadMass:
    """Distribution of LINK.payload: a point mass at the link's origin, uniform.

    Attributes:
        low, high: Minimum and maximum of the mass [kg], 0 <= low <= high.

    Raises:
        SettingError: A bound is negative or not finite, low > high, or an unknown
            keyword.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_bounds(self, 0.0)

    def __call__(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Return random payloads, (rows, 10), each with the mass [kg] in column 0.

        The other columns are zero; their order is that of RigidInertia.parameters: m, m
        c (3), inertia (6). `rng` is advanced.
        """
        payload = np.zeros((rows, 10))
        payload[:, 0] = rng.uniform(self.low, self.high, rows)
        return payload


def draws_by_path(model: Model, values: Mapping[str, Any]) -> dict[str, Draw]:
    """Return the distribution of each parameter path of a robot, ordered as `values`.

    `*.mass` and the like stand for all links or joints that move and have no entry of
    their own, in the order of the robot; a UniformFactor leaves out those whose numbers
    are zero. A distribution returns numbers (rows, entries) from a generator and a
    number of rows; how many entries is not checked. A ModelWarning asks about gravity
    that is upwards in every row, or too large.
    """
    draws: dict[str, Draw] = {}
    for path, draw in values.items():
        factor = isinstance(draw, UniformFactor)
        if not factor and (not callable(draw) or isinstance(draw, type)):
            message = f"values of '{path}' are {shown(draw)}; valid: Uniform(low, high)"
            raise ModelError(f"{message}, UniformFactor, PayloadMass, a function", path)
        star = path.startswith("*.")
        if path in {
            x.rpartition(".")[2] for x in parameter_paths.paths(model) if "." in x
        }:
            message = f"values of '{path}' have no link or joint"
            raise ModelError(f"{message}; valid: '*.{path}' for all of them", path)
        paths = _moving_paths(model, path, values) if star else [path]
        for one in paths:
            numbers = parameter_paths.value(model, one)
            lowest = parameter_paths.kind_of(model, one).minimum
            if isinstance(draw, Uniform) and np.min(draw.low) < lowest:
                message = f"{one}: low is {draw.low}; valid: at least {lowest:g}"
                raise ModelError(message, one)
            _check_friction(model, one, draw, numbers)
            if one == "gravity" and isinstance(draw, Uniform):
                _ask_about_gravity(model, draw)
            if numbers.any() or not factor:
                draws[one] = partial(draw.times, numbers) if factor else draw
        if paths and draws.keys().isdisjoint(paths):
            message = f"{path} is zero in robot '{model.name}': a factor has no effect"
            valid = "PayloadMass" if path.endswith(".payload") else "Uniform"
            raise ModelError(f"{message}; valid: {valid}(low, high)", path)
    return draws


def _check_friction(model: Model, path: str, draw: Any, numbers: np.ndarray) -> None:
    """Refuse dry friction that would drive a joint in one direction.

    It must not be below friction_asymmetry. Other parameters, and other distributions
    than Uniform and UniformFactor, pass.
    """
    joint, _, what = path.rpartition(".")
    if what != "friction" or not isinstance(draw, (Uniform, UniformFactor)):
        return
    asymmetry = abs(parameter_paths.value(model, f"{joint}.friction_asymmetry"))
    factor = numbers if isinstance(draw, UniformFactor) else 1.0
    least = np.multiply(draw.low, factor)
    if (least < asymmetry).any():
        raise ModelError(
            f"{path} is drawn down to {least.min():g}, below friction_asymmetry of"
            f" {asymmetry.max():g}, and would drive the joint; valid: a larger low",
            path,
        )


def _ask_about_gravity(model: Model, draw: Uniform) -> None:
    """Ask about gravity as dyn.load does, if each draw would be asked about, or most.

    Its direction is that of the middle of the bounds, but for the lowest z: a range
    with rows downwards is meant so.
    """
    low, high = (np.atleast_1d(x) for x in (draw.low, draw.high))
    if low.size == high.size == 3:
        x, y, _ = np.add(low, high) / 2
        if doubt := odd_gravity((float(x), float(y), float(low[2]))):
            warn_of(model.name, [f"values draw {doubt}"])


def _moving_paths(model: Model, path: str, values: Mapping[str, Any]) -> list[str]:
    """Return the paths that a path `*.KIND` stands for: of each part that has it.

    Left out are paths in `values`, and of parameters of links those of links fixed to
    the base; the list may be empty. Refused if no part of the robot has this parameter.
    """
    kind, known = path[2:], parameter_paths.paths(model)
    split = (x.rpartition(".") for x in known)
    names = [name for name, dot, what in split if dot and what == kind]
    if not names:
        kinds = dict.fromkeys(f"*.{x.rpartition('.')[2]}" for x in known if "." in x)
        message = f"no part of robot '{model.name}' has '{path}'; valid:"
        raise ModelError(f"{message} {', '.join(kinds)}", path)
    if kind in parameter_paths.LINK:
        names = [name for name in names if model.frame(name).body]
    return [x for x in (f"{name}.{kind}" for name in names) if x not in values]
