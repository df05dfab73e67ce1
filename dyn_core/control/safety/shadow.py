"""Second solver that recomputes each torque of the control law for comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.problems import INVERSE_DYNAMICS
from dyn_core.solving.control_mode import ControlMode
from dyn_core.solving.registry import solver as find
from dyn_core.validation import Switch, is_finite, known_keywords, shown


@known_keywords
@dataclass(frozen=True)
class ShadowSettings:
    """Second solver that checks the control law, and its tolerances.

    Attributes:
        inverse_dynamics: Another solver of INVERSE_DYNAMICS, by name or as object.
        engine: Engine of the second solver; an engine other than the law's checks the
            engine, too.
        absolute: Absolute tolerance of a joint's effort [N·m | N].
        relative: Relative tolerance, multiplied by the law's largest effort.
        stop: Whether a larger difference is a violation; else it is only counted.

    Raises:
        SettingError: A tolerance is no number, negative or not finite, or `stop` is no
            boolean.
    """

    inverse_dynamics: Any = "rnea"
    engine: str | None = None
    absolute: float = 1e-6
    relative: float = 1e-6
    stop: bool = True

    def __post_init__(self) -> None:
        for name in ("absolute", "relative"):
            value = getattr(self, name)
            if not (is_finite(value) and value >= 0):
                raise SettingError(
                    f"shadow.{name} is {shown(value)}; valid: finite and >= 0", name
                )
        if not Switch().takes(self.stop):
            raise SettingError(
                f"shadow.stop is {shown(self.stop)}; valid: {Switch.valid}", "stop"
            )


class Shadow:
    """Compares efforts with the efforts of a second solver.

    Attributes:
        settings: Settings as given.
        joints: Names, for messages.
        law: Function that returns the second solver's effort of the present cycle,
            (nv,).
    """

    def __init__(
        self,
        settings: ShadowSettings,
        joints: tuple[str, ...],
        law: Callable[[], np.ndarray],
    ) -> None:
        self.settings, self.joints, self.law = settings, joints, law

    def disagreement(self, tau: np.ndarray) -> str | None:
        """Return a sentence if the second solver disagrees with an effort, else None.

        A disagreement is a difference above absolute + relative max |tau| in any joint.
        A second solver that raises, or returns another shape or NaN, disagrees.

        Args:
            tau: Effort of the control law, (nv,) [N·m | N].
        """
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


def check_apart(
    settings: ShadowSettings, mode: ControlMode, solver: Any, law: Any, second: Any
) -> None:
    """Refuse a shadow equal to the law: equal Programs have equal errors.

    SettingError: solver and engine are the same, or the Programs share a kernel.
    """
    named = solver, settings.inverse_dynamics
    whole = mode.slot == mode.problem.name
    problem = mode.problem if whole else INVERSE_DYNAMICS
    first, other = (find(x, problem).for_model(law.model) for x in named)
    same = first is other and second.engine == law.engine
    kernels = [set(map(id, getattr(x, "kernels", tuple)())) for x in (law, second)]
    if same or kernels[0] & kernels[1]:
        raise SettingError(
            f"the shadow is the law itself: '{first.name}' on engine '{law.engine}';"
            " valid: another solver, or another engine",
            "shadow",
        )
