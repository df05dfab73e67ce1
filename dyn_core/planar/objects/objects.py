"""Planar objects with closed equations of motion: six benchmarks of control."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dyn_core.errors import ModelError, ShapeError, unknown_name
from dyn_core.model.parameter_paths.values import entries_of
from dyn_core.planar.chain.chain import ChainModel
from dyn_core.planar.objects import equations
from dyn_core.planar.objects.rods import Rods
from dyn_core.problems.system import System
from dyn_core.validation import known_keywords, label, shown

Bounds = tuple[tuple[float, float], ...]
POSITIVE = ("kg", "m")  # units of parameters that must be > 0
SIGNED = ("m/s²", "N/V")  # units of parameters of either sign; all others must be >= 0
OPEN = (-math.inf, math.inf)


@known_keywords
@dataclass(frozen=True, eq=False)
class PlanarObject(System):
    """An object with a closed equation of motion.

    Attributes:
        name: Its name.
        coordinates: Names of the nq coordinates q.
        nu: Number of efforts u.
        parameters: Numbers by name.
        units: Their units. with_parameters checks numbers by them: kg and m must be
            > 0, m/s² and N/V may have either sign, all others must be >= 0.
        equation: Function equation(p, q, qd, u): qdd; p are the parameters.
        energy_of: Function energy_of(p, q, qd): kinetic and potential energy [J].
        efforts: Function efforts(p, qd, u): the forces along the coordinates,
            with friction [N | N·m].
        effort_bounds: Minimum and maximum of each effort; infinite if unknown.
        position_bounds: The same of each coordinate.
        rods: The equivalent mechanism, which has a planar chain, or None.

    Raises:
        ModelError: Parameters and units do not match, or bounds are invalid.

    Source: WAW-13.1 to WAW-13.3, WAW-14.1 to WAW-14.3.
    """

    kind = "planar_object"

    name: str
    coordinates: tuple[str, ...]
    nu: int
    parameters: Mapping[str, Any]
    units: Mapping[str, str]
    equation: Callable[..., Sequence[Any]]
    energy_of: Callable[..., tuple[Any, Any]]
    efforts: Callable[..., Sequence[Any]]
    effort_bounds: Bounds
    position_bounds: Bounds
    rods: Rods | None = None

    def __post_init__(self) -> None:
        if set(self.units) != set(self.parameters):
            names = set(self.units) ^ set(self.parameters)
            raise ModelError(
                f"{self.name}: a parameter or a unit lacks the other:"
                f" {', '.join(sorted(names))}",
                self.name,
            )
        for field, bounds, count in (
            ("effort_bounds", self.effort_bounds, self.nu),
            ("position_bounds", self.position_bounds, self.nq),
        ):
            if len(bounds) != count or not all(low <= high for low, high in bounds):
                raise ModelError(
                    f"{self.name}: {field} must be {count} pairs (least, most), got"
                    f" {bounds}",
                    field,
                )

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @property
    def sizes(self) -> dict[str, int]:
        """Named sizes of Ports: nq coordinates, nu efforts."""
        return {"nq": self.nq, "nu": self.nu}

    def parameter(self, path: str) -> list[Any]:
        """Return the number of a parameter, as a list of one; ModelError if unknown."""
        self._known(path)
        return [self.parameters[path]]

    def unit(self, path: str) -> str:
        """Return the unit of a parameter; ModelError if unknown."""
        self._known(path)
        return self.units[path]

    def with_values(self, values: Mapping[str, Sequence[Any]]) -> PlanarObject:
        """Return the object with parameters replaced by numbers or symbols.

        Args:
            values: A number, or a list of one, by name of the parameter. Only the count
                is checked.

        Raises:
            ModelError: A name is unknown, or its value is not one number.
        """
        changes = {}
        for path, value in values.items():
            (changes[path],) = entries_of(path, value, len(self.parameter(path)))
        return replace(self, parameters={**self.parameters, **changes})

    def with_parameters(self, /, **numbers: Any) -> PlanarObject:
        """Return the object with other parameters, checked.

        Raises:
            ModelError: An unknown name, or an invalid number.
        """
        checked = {}
        for path, value in numbers.items():
            self._known(path)
            checked[path] = self._checked(path, value)
        return replace(self, parameters={**self.parameters, **checked})

    def to_chain(self, split: bool = False) -> ChainModel:
        """Return the planar chain that moves the same way.

        It has neither friction, see chain_efforts, nor bounds.

        Args:
            split: Whether a rod with mass is two massless links with three point masses
                and a joint that keeps its angle; else it is a link with mass.

        Raises:
            ModelError: The object has no rods, a split rod would have a mass <= 0, or
                make_chain refuses a number.

        Source: WAW-13.4.
        """
        return self._rods().chain(self.parameters, split, self.name)

    def chain_state(
        self, q: Sequence[Any], qd: Sequence[Any], split: bool = False
    ) -> tuple[tuple[Any, Any], tuple[Any, Any], list[Any], list[Any]]:
        """Return x0, v0, theta, theta_dot of to_chain(split), for from_angles.

        Args:
            q, qd: Coordinates and their rates, nq each.
            split: Whether rods of the chain are split, as given to to_chain.

        Returns:
            Position and velocity of joint 0, 2 each [m], [m/s]; angles and rates of the
            joints but the last [rad], [rad/s].

        Raises:
            ShapeError: q or qd has another number of entries.
            ModelError: The object has no rods.

        Source: WAW-2.1, WAW-13.4.
        """
        rods, (q, qd) = self._rods(), self._sized(q=q, qd=qd)
        return rods.chain_state(self.parameters, q, qd, split)

    def chain_efforts(
        self, u: Sequence[Any], qd: Sequence[Any] | None = None, split: bool = False
    ) -> tuple[list[Any], tuple[Any, Any]]:
        """Return the torques at the joints of to_chain(split) and the force on joint 0.

        The torques are a list with one entry for each joint, 0 for the last and for the
        middle joint of a split rod [N·m]; the force has x and y [N]. Raises ShapeError
        for another number of entries of u or qd, ModelError without rods.

        Args:
            u: Efforts, nu.
            qd: Rates of the coordinates, for friction; None: at rest, without friction.
            split: Whether rods of the chain are split, as given to to_chain.

        Source: WAW-4.2, WAW-13.4.
        """
        rods, (u,) = self._rods(), self._sized(u=u)
        (qd,) = self._sized(qd=[0.0] * self.nq if qd is None else qd)
        force = self.efforts(self.parameters, qd, u)
        return rods.chain_efforts(self.parameters, force, split)

    def from_chain(
        self, alpha: Sequence[Any], a0: Sequence[Any], split: bool = False
    ) -> list[Any]:
        """Return qdd from the accelerations of its chain.

        Args:
            alpha: Of the angles of the chain's joints but the last [rad/s²]; the number
                is not checked.
            a0: Of joint 0, 2 [m/s²]; used only if there is a cart.
            split: Whether rods of the chain are split, as given to to_chain.

        Raises:
            ModelError: The object has no rods.

        Source: WAW-2.1, WAW-13.4.
        """
        return self._rods().from_chain(self.parameters, alpha, a0, split)

    def _rods(self) -> Rods:
        if self.rods is None:
            raise ModelError(f"{self.name} has no planar chain", self.name)
        return self.rods

    def _sized(self, **arrays: Sequence[Any]) -> list[Sequence[Any]]:
        for name, array in arrays.items():
            wanted = self.nu if name == "u" else self.nq
            if not hasattr(array, "__len__"):
                raise ShapeError(name, f"{wanted} numbers", shown(array))
            if len(array) != wanted:
                raise ShapeError(name, f"{wanted} numbers", f"{len(array)}")
        return list(arrays.values())

    def _known(self, path: str) -> None:
        if not isinstance(path, str) or path not in self.parameters:
            valid = ", ".join(self.parameters)
            raise ModelError(
                f"{self.name} has no parameter '{path}'; valid: {valid}", path
            )

    def _checked(self, path: str, value: Any) -> float:
        unit = self.units[path]
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelError(
                f"{self.name}: {path} must be a number, got {value!r}", path
            ) from error
        least = "> 0" if unit in POSITIVE else ">= 0"
        right = unit in SIGNED or number > 0 or (number == 0 and unit not in POSITIVE)
        if not math.isfinite(number) or not right:
            wanted = "finite" if unit in SIGNED else f"finite and {least}"
            raise ModelError(
                f"{self.name}: {path} [{unit}] must be {wanted}, got {value}", path
            )
        return number


def planar_object(name: str, **parameters: float) -> PlanarObject:
    """Return a shipped object, with some parameters changed.

    Args:
        name: pendulum, acrobot, weight_lifter, cart_pole, cart_two_poles or
            cart_three_poles.
        parameters: New numbers by name of the parameter.

    Raises:
        ModelError: An unknown name, or an invalid number.

    Source: WAW-13.1 to WAW-13.3, WAW-14.1 to WAW-14.3.
    """
    if not isinstance(name, str) or name not in OBJECTS:
        raise ModelError(
            unknown_name("planar object", label(name), OBJECTS), label(name)
        )
    return OBJECTS[name].with_parameters(**parameters)


def _shipped(
    name: str,
    coordinates: str,
    parameters: Mapping[str, tuple[float, str]],
    equation: Callable[..., Sequence[Any]],
    rods: Rods,
    efforts: Callable[..., Sequence[Any]] = equations.driven,
    effort: Sequence[tuple[float, float]] = (OPEN,),
    x: tuple[float, float] = OPEN,
) -> PlanarObject:
    """Return an object made of rods, which also give the energy.

    `coordinates` are separated by blanks, `parameters` (value, unit) by name. `effort`
    are bounds of each effort, and so give nu; `x` those of the first coordinate.
    """
    names = tuple(coordinates.split())
    return PlanarObject(
        name=name,
        coordinates=names,
        nu=len(effort),
        parameters={key: value for key, (value, _) in parameters.items()},
        units={key: unit for key, (_, unit) in parameters.items()},
        equation=equation,
        energy_of=rods.energy,
        efforts=efforts,
        effort_bounds=tuple(effort),
        position_bounds=(x, *[OPEN] * (len(names) - 1)),
        rods=rods,
    )


_e = equations
# fmt: off
OBJECTS: dict[str, PlanarObject] = {x.name: x for x in (
    # Swing up and balance by a weak torque (WAW-13.1).
    _shipped(
        "pendulum", "theta",
        {"l": (1.0, "m"), "m": (1.0, "kg"), "g": (1.0, "m/s²")},
        _e.pendulum, Rods(_e.pendulum_rods), effort=((-0.225, 0.225),),
    ),
    # The source does not state g; I is far above a uniform rod's (WAW-13.2).
    _shipped(
        "acrobot", "theta1 theta2",
        {"l1": (1.0, "m"), "l2": (1.0, "m"), "lc1": (0.5, "m"), "lc2": (0.5, "m"),
         "m1": (1.0, "kg"), "m2": (1.0, "kg"), "I1": (1.0, "kg·m²"),
         "I2": (1.0, "kg·m²"), "g": (9.81, "m/s²")},
        _e.acrobot, Rods(_e.acrobot_rods, upright=False), effort=(OPEN, OPEN),
    ),
    # The source leaves the weight m free; 1 kg is ours (WAW-13.3).
    _shipped(
        "weight_lifter", "theta1 theta2 theta3",
        {"m": (1.0, "kg"), "g": (9.81, "m/s²")},
        _e.weight_lifter, Rods(_e.weight_lifter_rods, upright=False),
        effort=(OPEN, OPEN, OPEN),
    ),
    # l is half the pole; the cart stays within 2.4 m (WAW-14.1).
    _shipped(
        "cart_pole", "x theta",
        {"mc": (1.0, "kg"), "mp": (0.1, "kg"), "l": (0.5, "m"), "mu_c": (5e-4, "N"),
         "mu_p": (2e-6, "N·m·s"), "g": (9.81, "m/s²")},
        _e.cart_pole, Rods(_e.cart_pole_rods, "mc"), _e.cart_pole_efforts,
        ((-10.0, 10.0),), (-2.4, 2.4),
    ),
    # WAW-14.2.
    _shipped(
        "cart_two_poles", "x theta1 theta2",
        {"m0": (1.5, "kg"), "m1": (0.5, "kg"), "m2": (0.75, "kg"), "L1": (0.5, "m"),
         "L2": (0.75, "m"), "g": (9.81, "m/s²")},
        _e.cart_two_poles, Rods(_e.two_poles_rods, "m0"), _e.two_poles_efforts,
    ),
    # A38 and A40 look like misprints of .4506 and .0568, m1 and m3 (WAW-14.3).
    _shipped(
        "cart_three_poles", "x theta1 theta2 theta3",
        {"g": (9.8, "m/s²"), "M": (1.014, "kg"), "m1": (0.4506, "kg"),
         "m2": (0.219, "kg"), "m3": (0.0568, "kg"), "l1": (0.37, "m"),
         "l2": (0.3, "m"), "l3": (0.05, "m"), "L1": (0.43, "m"), "L2": (0.33, "m"),
         "L3": (0.13, "m"), "I1": (0.0042, "kg·m²"), "I2": (0.0012, "kg·m²"),
         "I3": (0.00010609, "kg·m²"), "Cc": (5.5, "N·s/m"), "C1": (2.6875e-4, "N·m·s"),
         "C2": (2.6875e-4, "N·m·s"), "C3": (2.6875e-4, "N·m·s"),
         "Ks": (24.7125, "N/V"), "mu_x": (0.07, "1"), "mu_1": (0.003, "1"),
         "mu_2": (0.003, "1"), "mu_3": (0.003, "1"), "A37": (1.3, "N"),
         "A38": (0.506, "N·m"), "A39": (0.219, "N·m"), "A40": (0.568, "N·m")},
        _e.cart_three_poles, Rods(_e.three_poles_rods, "M"), _e.three_poles_efforts,
    ),
)}
# fmt: on
