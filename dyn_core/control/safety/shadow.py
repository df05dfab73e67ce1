"""A second solver that computes the torque of the first one again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.validation import known_keywords


@known_keywords
@dataclass(frozen=True)
class ShadowSettings:
    """Which solver watches the control law, and how closely.

    Attributes:
        inverse_dynamics: Another solver of INVERSE_DYNAMICS, by name or as object.
        engine: Its engine; another one than the law's watches the engine, too.
        absolute: Difference of a joint's effort that is allowed [N·m | N].
        relative: Further difference, times the largest effort of the law.
        stop: Whether a larger difference is a violation; else it is counted.
    """

    inverse_dynamics: Any = "rnea"
    engine: str | None = None
    absolute: float = 1e-6
    relative: float = 1e-6
    stop: bool = True

    def __post_init__(self) -> None:
        for name in ("absolute", "relative"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise SettingError(
                    f"shadow.{name} is {value}; valid: finite and >= 0", name
                )


class Shadow:
    """Compares efforts with those of a second solver.

    Attributes:
        settings: What was asked for.
        joints: Names.
        law: Returns the second solver's effort of the present cycle.
    """

    def __init__(
        self,
        settings: ShadowSettings,
        joints: tuple[str, ...],
        law: Callable[[], np.ndarray],
    ) -> None:
        self.settings, self.joints, self.law = settings, joints, law

    def disagreement(self, tau: np.ndarray) -> str | None:
        """Return a sentence about an effort that the second solver disagrees with."""
        name = getattr(
            self.settings.inverse_dynamics, "name", self.settings.inverse_dynamics
        )
        try:
            other = np.asarray(self.law(), float)
        except Exception as error:  # whatever fails in a plugin is a disagreement
            return f"the shadow '{name}' fails: {error}"
        if other.shape != tau.shape:
            return f"the shadow '{name}' fails: {other.shape} numbers, not {tau.shape}"
        allowed = self.settings.absolute
        allowed += self.settings.relative * np.abs(tau).max(initial=0.0)
        gap = np.abs(tau - other)
        if (gap <= allowed).all():  # false for NaN
            return None
        k = int(np.argmax(np.where(np.isfinite(gap), gap, np.inf)))
        return (
            f"joint '{self.joints[k]}': the effort {tau[k]:.6g} is {other[k]:.6g} by"
            f" the shadow '{name}'; allowed: a difference of {allowed:.3g}"
        )


def check_apart(settings: ShadowSettings, solver: Any, law: Any, second: Any) -> None:
    """Raise an error where the shadow is the law itself: both would err alike.

    Args:
        settings: Of the shadow.
        solver: Solver of the law, by name or as object.
        law, second: Programs of the law and of the shadow.
    """
    same = settings.inverse_dynamics == solver and second.engine == law.engine
    kernels = [set(map(id, getattr(x, "kernels", tuple)())) for x in (law, second)]
    if same or kernels[0] & kernels[1]:
        name = getattr(solver, "name", solver)
        raise SettingError(
            f"the shadow is the law itself: '{name}' on engine '{law.engine}';"
            " valid: another solver, or another engine",
            "shadow",
        )
