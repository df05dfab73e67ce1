"""Behaviour of a controller with late, invalid or large data, as settings."""

from __future__ import annotations

from dataclasses import dataclass

from dyn_core.control.safety.stops import AUTO, STOPS
from dyn_core.errors import ModelError, SettingError, warn
from dyn_core.validation import Kind, Name, Quantity, Switch, Whole, known_keywords

MODES = ("computed_torque", "impedance", "gravity")
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
    """Behaviour of a controller with late, invalid or large data.

    Attributes:
        state_timeout: Age at which the last valid state is stale [s].
        max_state_age: Largest difference between a state's stamp and the clock of
            `update`; 0: any [s].
        max_jump: Change of position in one sample that resets the controller, such as
            the reset of a simulator; of wrapped joints the wrapped change [rad | m].
            From the third such jump in a row on, torque waits for state_timeout without
            one: two robots on one topic. Time that goes back counts as a jump.
        good_samples: Consecutive valid states before torque is enabled.
        on_stale: zero, or ramp from the last state: nothing holds without a state.
        on_violation, on_collision, on_estop, on_shutdown: zero, ramp or hold;
            on_violation also auto: ramp where the efforts can carry the weight, else
            zero.
        stop_time: Duration of a ramp, which brakes under gravity compensation; a
            position that is held is checked by the envelope again after it [s].
        last_good_cycles: Cycles in which the last good torque replaces one that is not
            finite, before the stop of on_violation.
        differentiate: Whether missing velocities are computed from positions.
        filter_time: Time constant of the velocity filter [s].
        start_tolerance: Distance between the robot and a trajectory that starts with a
            point and not with a way to it [rad | m].
        limit_tolerance: Distance by which a trajectory may be outside a position limit;
            it counts from the robot and from the reference if they are outside; a stop
            from outside may go on for as much [rad | m].
        blend_time: Duration in which a trajectory takes over from another one [s].
        deceleration: Of the fastest joint at a stop, and of the ramps at both ends of a
            trajectory of positions alone [rad/s² | m/s²].
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
                warn(f"{name} changes nothing here: it acts with {valid}", 3)
