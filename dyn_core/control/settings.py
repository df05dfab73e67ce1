"""Settings of a controller, checked; gains and payload may change later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core import problems
from dyn_core.control.collision import CollisionSettings
from dyn_core.control.joint_limits import effort_limits
from dyn_core.control.joint_values import joint_values
from dyn_core.control.law_programs import Integral, check_joints, checked_gains
from dyn_core.control.modes.control_law import control_mode
from dyn_core.control.observers import Listener, Observer
from dyn_core.control.rules import ON_EVENTS, Rules
from dyn_core.control.safety.envelope import Bounds
from dyn_core.control.safety.shadow import ShadowSettings
from dyn_core.control.states.plausibility import StateBounds
from dyn_core.errors import ModelError, SettingError, unknown_name
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.model.payload import Payload, PayloadInput
from dyn_core.solving.control_mode import INVERSE_DYNAMICS
from dyn_core.solving.registry import solver_of
from dyn_core.solving.solver import AUTO
from dyn_core.validation import check_object, named_settings, shown

_OBSERVES = ("restart", "observe")  # methods of an Observer
FULL_EFFORT = 0.05  # default time in which an effort may rise from 0 to its limit [s]


@dataclass
class ControllerSettings:
    """Settings of a controller.

    Attributes:
        kp, kd: Gains before the inertia, (nv,) [1/s²], [1/s]; in mode impedance
            stiffness and damping [N·m/rad | N/m], [N·m·s/rad | N·s/m].
        mode: computed_torque, impedance, gravity, or one that a plugin offers.
        inverse_dynamics: Solver of it, by name or as object; auto: the default one.
        effort_limits: Effort limits by joint name; they replace the model's [N·m | N].
        wrap: Joints whose error is wrapped to [-pi, pi), and whose trajectories and
            targets are shifted by whole turns to the short way; None for the continuous
            joints. Joints with position limits are refused, as are those with followers
            that a whole turn moves elsewhere.
        rules: Rules for late, invalid or large data.
        bounds: Envelope of every effort; None for the effort limits alone.
        state_bounds: Bounds of plausible joint states; None accepts all finite states.
        effort_slew: Largest rate of change of the effort, one number, one a joint, or
            by joint name; None: the effort limit in 0.05 s [N·m/s | N/s].
        shadow: A second solver that computes each torque again.
        collision: Thresholds of detection; None: external efforts are not estimated.
        ki: Integral gain, before the inertia as kp [1/s³]; in mode impedance a gain of
            the effort [N·m/(rad s) | N/(m s)].
        integral_limit: Largest absolute value of the integral term [rad/s² | m/s²], in
            mode impedance [N·m | N].
        feed_forward: Whether the effort of a trajectory is added to the law's effort.
        robot_compensates_gravity: Whether it does so; efforts then exclude its weight.
        payload_link: Link that may carry a payload, see `attach`; empty: none.
        observers: Receive each state with its effort, and may stop the robot.
        listeners: Functions called with the outcome of each trajectory.
        law_solver: Solver of the mode's own problem, by name or as object, for a mode
            whose law is chosen itself; auto: the one of the mode, and alone valid in
            other modes.
        parameters: Values of the mode's parameters by name; without one, its default.
        limit, slew: Checked effort_limits and effort_slew, (nv,).
    """

    model: Model
    kp: Any = 100.0
    kd: Any = 20.0
    mode: str = "computed_torque"
    inverse_dynamics: Any = "auto"
    effort_limits: Mapping[str, float] = field(default_factory=dict)
    wrap: Sequence[str] | None = None
    rules: Rules = field(default_factory=Rules)
    engine: str | None = None
    counters: Counter = field(default_factory=Counter)
    bounds: Bounds | None = field(default_factory=Bounds)
    state_bounds: StateBounds | None = field(default_factory=StateBounds)
    effort_slew: Any = None
    shadow: ShadowSettings | None = None
    collision: CollisionSettings | None = None
    ki: Any = 0.0
    integral_limit: Any = 0.0
    feed_forward: bool = False
    robot_compensates_gravity: bool = False
    payload_link: str = ""
    observers: list[Observer] = field(default_factory=list)
    listeners: list[Listener] = field(default_factory=list)
    law_solver: Any = "auto"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_robot(self.model, type(self).__name__)
        self._check_objects()
        self.control_mode = control_mode(self.mode)
        self.parameters = self.read_parameters(self.parameters)
        solver_of(self.inverse_dynamics, problems.INVERSE_DYNAMICS)  # refuses others
        if self.control_mode.slot == INVERSE_DYNAMICS and self.law_solver != AUTO:
            raise SettingError(
                f"law_solver is {shown(self.law_solver)}; valid for mode {self.mode}:"
                f" {AUTO}, and a solver of its slot as inverse_dynamics",
                "law_solver",
            )
        holding = [x for x in ON_EVENTS if getattr(self.rules, x) == "hold"]
        if not self.control_mode.holds and holding:
            reason = f"mode {self.mode} holds no position; valid: zero, ramp"
            raise SettingError(f"{holding[0]} is hold: {reason}", holding[0])
        check_joints(self.model)
        if self.payload_link:
            self.model.frame(self.payload_link)  # a ModelError lists the links
        self.carried = PayloadInput(self.payload_link)
        self.limit = effort_limits(self.model, self.effort_limits)
        usual = self.limit / FULL_EFFORT
        self.slew = joint_values(self.model, "effort_slew", self.effort_slew, usual)
        self.set_gains(self.kp, self.kd, self.ki, self.integral_limit)

    def _check_objects(self) -> None:
        """Raise a SettingError for a setting of another type, before one is used."""
        check_object("rules", self.rules, Rules)
        for name, kind in (
            ("bounds", Bounds),
            ("state_bounds", StateBounds),
            ("shadow", ShadowSettings),
            ("collision", CollisionSettings),
        ):
            check_object(name, getattr(self, name), kind, optional=True)
        for name, needed, valid in (
            ("observers", _OBSERVES, "objects with the methods restart and observe"),
            ("listeners", ("__call__",), "functions of a trajectory and its outcome"),
        ):
            rows = getattr(self, name)
            if not isinstance(rows, Iterable) or not all(
                hasattr(x, method) for x in rows for method in needed
            ):
                message = f"{name} is {shown(rows)}; valid: a list of {valid}"
                raise SettingError(message, name)
        named_settings("parameters", self.parameters)

    @property
    def stiff(self) -> bool:
        """Whether the gains are joint stiffness and damping."""
        return self.control_mode.stiff

    @property
    def chosen(self) -> Any:
        """Solver of the mode's slot: inverse_dynamics if that is it, or law_solver."""
        common = self.control_mode.slot == INVERSE_DYNAMICS
        return self.inverse_dynamics if common else self.law_solver

    def read_parameters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of all parameters of the mode by name, checked.

        A missing one has its default; lists of numbers become arrays.
        """
        fields = {field.name: field for field in self.control_mode.parameters}
        for name in values:
            if name not in fields:
                what = f"parameter of mode {self.mode}"
                raise SettingError(unknown_name(what, name, fields), name)
        read: dict[str, Any] = {}
        for name, each in fields.items():
            try:
                value = each.read(name, values.get(name, each.default))
            except ModelError as error:
                raise SettingError(str(error), name) from error
            read[name] = np.array(value) if isinstance(value, list) else value
        return read

    def attach(self, payload: Payload | None) -> None:
        """Attach a payload at payload_link, or remove it (None).

        While the controller has a state, the payload is blended in over the rule
        blend_time; before the first state and after a reset it counts in full at once.
        SettingError, with the previous payload unchanged: it is no Payload, there is no
        payload_link, or, in a Controller, its weight exceeds the effort limits.
        """
        self.check_payload(payload)
        driving = self._last_state() is not None
        self.carried.attach(payload, self.rules.blend_time if driving else 0.0)

    def check_payload(self, payload: Payload | None) -> None:
        """Raise a SettingError for no Payload, or no payload_link; None passes."""
        self.carried.check(payload)

    def check_sampling(
        self, kp: np.ndarray, kd: np.ndarray, ki: np.ndarray, present: Any = None
    ) -> None:
        """Raise a SettingError if sampling makes gains unstable; here it never does."""

    def _last_state(self) -> np.ndarray | None:
        """Return the position of the last state, (nv,); here None."""
        return None

    def set_gains(
        self, kp: Any, kd: Any, ki: Any = None, integral_limit: Any = None
    ) -> None:
        """Set the gains, one number or one a joint; None leaves ki or integral_limit.

        Units are as in the class. The present integral is retained, within the new
        limit. SettingError, with no gain changed: a gain is invalid or beyond its
        stability bound, and further than now, or ki has no integral_limit.
        """
        gains, integral = self.check_gains(kp, kd, ki, integral_limit)
        before = getattr(self, "integral", None)
        if before is not None:
            integral.part = np.clip(before.part, -gains[3], gains[3])
            integral.last = before.last
        self.kp, self.kd, self.ki, self.integral_limit = gains
        self.integral, self.judged = integral, False

    def check_gains(
        self, kp: Any, kd: Any, ki: Any = None, integral_limit: Any = None
    ) -> tuple[list[np.ndarray], Integral]:
        """Return four checked gains, (nv,) each, and an Integral at zero; set nothing.

        Each is one number or one a joint; None is the present ki or integral_limit.
        SettingError as of set_gains, by bounds at the measured period of the states.
        """
        nv = self.model.nv
        ki = self.ki if ki is None else ki
        limit = self.integral_limit if integral_limit is None else integral_limit
        names = ("kp", kp), ("kd", kd), ("ki", ki), ("integral_limit", limit)
        gains = [checked_gains(name, value, nv) for name, value in names]
        integral = Integral(gains[2], gains[3])
        present = (self.kp, self.kd, self.ki) if hasattr(self, "kp") else None
        self.check_sampling(gains[0], gains[1], gains[2], present)
        return gains, integral
