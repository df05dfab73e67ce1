"""Programs of the control laws, and their torque for the present state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.control.carrying import Carrying
from dyn_core.control.gain_limits import SampledGains, doubts, inertia_program
from dyn_core.control.law_programs import BRAKING, build_weight, weightless
from dyn_core.control.modes.control_law import ControlLaw, JointLaw
from dyn_core.control.reference.following import TrajectoryFollower
from dyn_core.control.settings import ControllerSettings
from dyn_core.control.states.state_samples import Samples
from dyn_core.errors import SettingError
from dyn_core.model.payload import Payload

ROUGH = 4.0  # factor on the bounds of gains while the period is only roughly known


@dataclass
class Laws(ControllerSettings):
    """Controller settings with the Programs of the control laws.

    A subclass must set samples, follower and now before a torque is computed.

    Attributes:
        samples: Last valid state.
        follower: Reference and its trajectories.
        now: Time of trajectories and driven joints [s].
        robot: Model that the laws use; without gravity if the robot compensates it.
        driven: Whether the model has driven joints.
        control_law: Law of the mode.
        law: Its Program.
        weight: Program of gravity compensation with damping, for stops.
        carrying: Check of the effort limits against a payload's weight.
        inertia: Program of H(q) for the stability bounds of gains; None if none needs
            it.
    """

    samples: Samples = field(init=False, repr=False)
    follower: TrajectoryFollower = field(init=False, repr=False)
    now: float = field(init=False, repr=False, default=0.0)

    def _build_laws(self, wrap: tuple[str, ...]) -> Callable[[Any, Any], Any]:
        """Build the Programs; return a function that builds a law with another solver.

        Sets the attributes robot, driven, control_law, law, weight, carrying and
        inertia. The function takes a solver of the mode's slot and an engine, and sets
        nothing.
        """
        self.driven = bool(self.model.driven)
        paths = self.carried.paths
        light = self.robot_compensates_gravity
        self.robot = weightless(self.model) if light else self.model

        self.control_law: ControlLaw = (self.control_mode.law or JointLaw)(self)
        self.control_law.check(self.parameters)

        def build(solver: Any, engine: Any) -> Any:
            return self.control_law.build(solver, engine, wrap)

        self.law = build(self.chosen, self.engine)
        self.weight = build_weight(self.robot, self.engine, paths)
        self.carrying = Carrying(self.model, self.limit)
        self.inertia = inertia_program(self.model, self.stiff, self.engine, paths)
        self._error_points: tuple[Any, np.ndarray] | None = None
        return build

    @property
    def period(self) -> float | None:
        """Mean period of the states [s]; None before it is known."""
        period: float | None = getattr(getattr(self, "samples", None), "period", None)
        return period

    @property
    def _has_state(self) -> bool:
        """Whether there is a last state; False also before `samples` is set."""
        return hasattr(self, "samples") and self.samples.q is not None

    def _last_state(self) -> np.ndarray | None:
        """Return the position of the last state, (nv,); None without one."""
        return self.samples.q if self._has_state else None

    def check_sampling(
        self, kp: np.ndarray, kd: np.ndarray, ki: np.ndarray, present: Any = None
    ) -> None:
        """Raise a SettingError if the period of the states makes gains or law unstable.

        The period is `period`, else the mean period so far: then values are refused
        only beyond 4 times their bounds. While no period is known, all pass.

        Args:
            kp, kd, ki: Gains, (nv,).
            present: kp, kd and ki of now, if the others are to replace them: those that
                are no further beyond their bounds than these pass, as one joint is
                mended after the other. None: none.
        """
        period, share = self.period, 1.0
        if period is None:
            period, share = self.samples.mean_period if self._has_state else 0.0, ROUGH
        if not period:
            return
        beyond = self.sampled_gains(kp, kd, ki).beyond(period, share)
        if beyond and present is not None:
            before: dict[str, float] = {}
            for row in self.sampled_gains(*present).beyond(period, share):
                before[row.gain] = max(row.share, before.get(row.gain, 0.0))
            beyond = [x for x in beyond if not x.share <= before.get(x.gain, 0.0)]
        if beyond:
            raise SettingError(beyond[0].text, f"k{beyond[0].gain}")
        self.control_law.check_sampling(period, share)

    def sampled_gains(self, kp: Any, kd: Any, ki: Any) -> SampledGains:
        """Return gains for the stability check, with the inertia at the last position.

        The inertia is None before the first state, and where the check needs none.
        Gains that the mode does not use count as zero; kd acts in ramps in any case.

        Args:
            kp, kd, ki: Gains, (nv,).
        """
        q, names = self._last_state(), self.model.joint_names
        H = None
        if self.inertia is not None and q is not None:
            H = np.asarray(self.inertia(q, *self.further_inputs()))
        acting = self.control_mode.gains
        kp = kp if "p" in acting else 0.0 * kp
        ki = ki if "i" in acting else 0.0 * ki
        damping = self.model.flat("damping")
        return SampledGains(names, kp, kd, ki, damping, self.stiff, H)

    def gain_doubts(self) -> list[str]:
        """Return a sentence for each kind of gain at half its stability bound or more.

        The period is the larger of `period` and Samples.recent_period: stalls of the
        last second count. Empty if no gain is that large, and while `period` is None:
        unlike in check_sampling, the mean of the first few times between states does
        not count.
        """
        if self.period is None:
            return []
        period = max(self.period, self.samples.recent_period)
        return doubts(self.sampled_gains(self.kp, self.kd, self.ki), period)

    def check_payload(self, payload: Payload | None) -> None:
        """Raise a SettingError if a payload cannot be carried.

        It is raised for another type than Payload or None, for a Payload without
        payload_link, or if its weight exceeds the effort limits, see Carrying.check.
        The weight is not checked for a robot that compensates its own weight or a mass
        of zero. None passes.
        """
        super().check_payload(payload)
        if payload is None or not payload.mass or self.robot_compensates_gravity:
            return
        zero = np.zeros(self.model.nv)

        def weight(q: np.ndarray, ten: np.ndarray) -> np.ndarray:
            time = (self.now,) if self.driven else ()
            return np.asarray(self.weight(q, zero, zero, *time, ten))

        self.carrying.check(payload, weight, self._last_state())

    @property
    def engine_used(self) -> str:
        """Engine of the control law."""
        return self.law.engine

    @property
    def solver_used(self) -> str:
        """Name of the solver of the mode's slot, or of the law without such a slot."""
        law, slot = self.law.recipe.solver, self.control_mode.slot
        if slot not in getattr(law, "slots", ()):
            return str(law.name)
        return str(law.filling(slot, self.model, self.chosen).name)

    @property
    def error(self) -> np.ndarray:
        """Displacement from position to reference at the last torque, (nv,) [rad | m].

        For wrapped joints it is in [-pi, pi). Zeros before the first torque after a
        reset, and with laws that do not call `compare`.
        """
        if self._error_points is None:
            return np.zeros(self.model.nv)
        return self.samples.change(*self._error_points)

    def _carry(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the effort of gravity compensation with braking, (nv,) [N·m | N].

            tau = g(q) - H kd qd,   kd the gain kd; 20 1/s where it is zero

        In mode impedance kd is a joint damping, and 20 1/s is used for all joints. g
        contains joint springs and the payload, and no gravity if the robot compensates
        it. The effort is not limited; NonFiniteError if a number is not finite.
        """
        acts = (self.kd > 0) & (not self.stiff)
        braking = np.where(acts, self.kd, BRAKING)
        return self.weight(q, qd, braking, *self.further_inputs())

    def _torque(self, law: Any) -> np.ndarray:
        """Return the torque of a law's Program for the present state, (nv,)."""
        return self.control_law.torque(law)

    def compare(self, q: np.ndarray, q_ref: np.ndarray) -> None:
        """Set the positions that `error` compares, (nv,) each: robot and reference.

        The arrays are stored without a copy.
        """
        self._error_points = q, q_ref

    def further_inputs(self) -> tuple[Any, ...]:
        """Return (time,) if joints are driven, then the payload's array, (10,).

        Either may be missing.
        """
        time = (self.now,) if self.driven else ()
        return (*time, *self.carried.values)

    def check_parameters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values of all parameters of the mode: `values`, and the present ones.

        All are checked, and converted where needed; no parameter is set.

        Args:
            values: Changed values by name.

        Raises:
            SettingError: A name or value is not valid.
        """
        checked = self.read_parameters({**self.parameters, **values})
        self.control_law.check(checked)
        return checked

    def set_parameters(self, values: Mapping[str, Any]) -> None:
        """Change parameters of the mode.

        Args:
            values: Changed values by name.

        Raises:
            SettingError: A name or value is not valid; none is then changed.
        """
        self.parameters = self.check_parameters(values)
        self.control_law.change()
