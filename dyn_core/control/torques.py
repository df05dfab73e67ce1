"""The laws of a controller: their Programs, and their torques for the present state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.control.following import TrajectoryFollower
from dyn_core.control.laws import BRAKING, build_law, build_weight, weightless
from dyn_core.control.samples import Samples
from dyn_core.control.settings import ControllerSettings


@dataclass
class Laws(ControllerSettings):
    """Settings with the laws that they choose.

    A subclass sets samples, follower and now before a torque is asked for.

    Attributes:
        robot: The model as the laws see it, perhaps without gravity.
        driven: Whether it has joints whose place is driven.
        law, weight: Programs; the second one carries the weight and brakes.
    """

    samples: Samples = field(init=False, repr=False)
    follower: TrajectoryFollower = field(init=False, repr=False)
    now: float = field(init=False, repr=False, default=0.0)

    def _build_laws(self, wrap: tuple[str, ...]) -> Callable[[Any, Any], Any]:
        """Build law and weight; return what builds a law of a solver and an engine."""
        self.driven = bool(self.model.driven)
        paths = self.carried.paths
        light = self.robot_compensates_gravity
        self.robot = weightless(self.model) if light else self.model

        def build(solver: Any, engine: Any) -> Any:
            return build_law(self.robot, self.mode, wrap, solver, engine, paths)

        self.law = build(self.inverse_dynamics, self.engine)
        self.weight = build_weight(self.robot, self.engine, paths)
        self._error_points: tuple[Any, np.ndarray] | None = None
        return build

    @property
    def engine_used(self) -> str:
        """Engine of the control law."""
        return self.law.engine

    @property
    def error(self) -> np.ndarray:
        """Displacement from the position to the reference at the last torque, (nv,)."""
        if self._error_points is None:
            return np.zeros(self.model.nv)
        return self.samples.change(*self._error_points)

    def _carry(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the effort that carries the weight and brakes."""
        acts = (self.kd > 0) & (not self.stiff)
        braking = np.where(acts, self.kd, BRAKING)
        return self.weight(q, qd, braking, *self._more())

    def _torque(self, law: Any) -> np.ndarray:
        """Return the torque of a law for the present state and reference."""
        assert self.follower.reference is not None
        now_q, now_qd = self.samples.q, self.samples.qd
        if self.mode == "gravity":
            return _called(law, now_q, now_qd, np.zeros(self.model.nv), *self._more())
        self._error_points = now_q, self.follower.reference.q
        rest = self.kp, self.kd, *self._more()
        q, qd, qdd = self.follower.reference
        if self.stiff:
            tau = _called(law, now_q, now_qd, q, qd, qdd, *rest) + self.integral.part
        else:
            qdd = qdd + self.integral.part
            tau = _called(law, now_q, now_qd, q, qd, qdd, *rest)
        return tau + self.follower.effort if self.feed_forward else tau

    def _more(self) -> tuple[Any, ...]:
        """Return the further inputs of a law: time of driven places, payload."""
        time = (self.now,) if self.driven else ()
        return (*time, *self.carried.values)


def _called(law: Any, *inputs: Any) -> np.ndarray:
    """Return what a law computes from copies: it cannot change what the shadow sees."""
    return law(*[x.copy() if isinstance(x, np.ndarray) else x for x in inputs])
