"""Rules of a controller for late, invalid or large data."""

from __future__ import annotations

from dataclasses import dataclass

from dyn_core.control.safety.stops import AUTO, STOPS
from dyn_core.errors import ModelError, SettingError, warn
from dyn_core.validation import Kind, Name, Quantity, Switch, Whole, known_keywords

ON_STALE = ("zero", "ramp")  # without a state nothing can be held
ON_EVENTS = ("on_violation", "on_collision", "on_estop", "on_shutdown")
_RULES: dict[str, Kind] = {
    **dict.fromkeys(
        (
            "state_timeout",
            "max_jump",
            "stop_time",
            "filter_time",
            "start_tolerance",
            "limit_tolerance",
            "blend_time",
            "deceleration",
        ),
        Quantity(0.0, above=True),
    ),
    "max_state_age": Quantity(0.0),
    "good_samples": Whole(1),
    "last_good_cycles": Whole(0),
    "on_stale": Name(ON_STALE),
    **dict.fromkeys(ON_EVENTS[1:], Name(STOPS)),
    "on_violation": Name((*STOPS, AUTO)),
    "differentiate": Switch(),
}


@known_keywords
@dataclass(frozen=True)
class Rules:
    """Rules of a controller for late, invalid or large data.

    Attributes:
        state_timeout: Age from which the last valid state is stale [s].
        max_state_age: Largest difference between a state's stamp and the argument
            `clock` of `update`; 0: not limited [s].
        max_jump: Change of position in one sample that resets the controller, such as
            at the reset of a simulator [rad | m]; for wrapped joints the wrapped
            change. From the third such jump in a row, torque stays zero until no jump
            has come for state_timeout: two robots publish on one topic. Time that goes
            back counts as a jump.
        good_samples: Number of consecutive valid states before torque is enabled.
        on_stale: zero, or ramp from the last state; without a state no position can be
            held.
        on_violation, on_collision, on_estop, on_shutdown: zero, ramp or hold;
            on_violation also auto: ramp if the effort limits can carry the weight, else
            zero.
        stop_time: Duration of a ramp, which brakes under gravity compensation; in a
            stop of kind hold the envelope is checked again after it [s].
        last_good_cycles: Number of cycles in which the last valid torque replaces a
            torque that is not finite, before the stop of on_violation.
        differentiate: Whether missing velocities are computed from positions.
        filter_time: Time constant of the velocity filter [s].
        start_tolerance: Largest distance of each joint between the point where a
            trajectory begins (its first point at time zero, or its present point if it
            began earlier) and the nearer of reference and robot [rad | m].
        limit_tolerance: Distance by which a trajectory may exceed a position limit, or
            the position of a robot or reference already outside; a stop from outside a
            limit may travel as far [rad | m].
        blend_time: Duration of the transition from one trajectory to the next [s].
        deceleration: Deceleration of the fastest joint at a stop, and in the ramps at
            both ends of a trajectory of positions alone [rad/s² | m/s²].

    Raises:
        SettingError: A rule is outside its range. A rule without effect is warned of.
    """

    state_timeout: float = 0.1
    max_state_age: float = 0.5
    max_jump: float = 0.5
    good_samples: int = 3
    on_stale: str = "zero"
    on_violation: str = "auto"
    on_collision: str = "zero"
    on_estop: str = "zero"
    on_shutdown: str = "zero"
    stop_time: float = 2.0
    last_good_cycles: int = 3
    differentiate: bool = False
    filter_time: float = 0.01
    start_tolerance: float = 0.1
    limit_tolerance: float = 1e-3
    blend_time: float = 0.2
    deceleration: float = 10.0

    def __post_init__(self) -> None:
        for name, kind in _RULES.items():
            try:
                kind.read(name, getattr(self, name))
            except ModelError as error:
                raise SettingError(str(error), name) from error
        stops = {self.on_stale, *(getattr(self, name) for name in ON_EVENTS)}
        for name, acts, valid in (
            ("stop_time", stops != {"zero"}, "a stop that is ramp or hold"),
            ("filter_time", self.differentiate, "velocities that are differentiated"),
        ):
            if getattr(self, name) != getattr(type(self), name) and not acts:
                warn(f"{name} changes nothing here: it acts with {valid}")
