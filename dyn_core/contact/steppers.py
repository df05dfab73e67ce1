"""Schemes that step a robot with contacts over time; events stand in events.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.assembly import Assembly, Scene
from dyn_core.contact.holding import Held, Holder
from dyn_core.contact.moving import advanced
from dyn_core.contact.reports import StepReport, report
from dyn_core.model import Model


class Step(NamedTuple):
    """A step's end.

    Attributes:
        q, qd: State after it, (nq,), (nv,).
        reports: Of each problem that was solved.
        held: The last of them.
    """

    q: np.ndarray
    qd: np.ndarray
    reports: tuple[StepReport, ...]
    held: Held


@dataclass(frozen=True, eq=False)
class Push:
    """What acts on a robot during a step.

    Attributes:
        tau: Joint forces, (nv,) [N·m | N].
        f_ext: Force on each body, body coordinates, (nb, 6) [N·m; N]; None: none.
        accelerations: Of prescribed joints, by name [rad/s² | m/s²].
    """

    tau: np.ndarray
    f_ext: np.ndarray | None = None
    accelerations: Mapping[str, Any] = field(default_factory=dict)

    def speeds(self, model: Model, qd: np.ndarray, h: float) -> dict[str, Any]:
        """Give the velocities of prescribed joints after a step."""
        given = self.accelerations.items()
        return {name: qd[model.v_slice(name)] + h * np.asarray(a) for name, a in given}


def stewart_trinkle(
    assembly: Assembly, holder: Holder, t: float, q: Any, qd: Any, push: Push, h: float
) -> Step:
    """Give a semi-implicit step that looks ahead to the gaps at its end.

        (H + B)(qd+ - qd) = h (tau - C) + J.T lambda,   q+ = q (+) h qd+
        0 <= lambda_n  orthogonal to  sigma_n + gap / h >= 0

    A contact with restitution that is met fast within the step bounces at its begin.

    Args:
        assembly: Robot and world.
        holder: Solver.
        t: When the step begins [s].
        q, qd: State, (nq,), (nv,).
        push: What acts on the robot.
        h: Step [s].

    Source: LCP-4.
    """
    return _euler("stewart_trinkle", assembly, holder, t, q, qd, push, h)


def anitescu_potra(
    assembly: Assembly, holder: Holder, t: float, q: Any, qd: Any, push: Push, h: float
) -> Step:
    """Give a semi-implicit step by velocities alone, for contacts that touch.

        gap <= 0:  0 <= lambda_n  orthogonal to  sigma_n + e sigma_n- >= 0

    Args: as stewart_trinkle.

    Source: LCP-4.
    """
    return _euler("anitescu_potra", assembly, holder, t, q, qd, push, h)


def moreau_jean(
    assembly: Assembly, holder: Holder, t: float, q: Any, qd: Any, push: Push, h: float
) -> Step:
    """Give a step of the midpoint rule, theta = 1/2.

        q_m = q (+) h qd / 2,   q+ = q_m (+) h qd+ / 2
        gap(q_m) <= 0:  0 <= lambda_n  orthogonal to  sigma_n + e sigma_n- >= 0

    Args: as stewart_trinkle.

    Source: LCP-4.
    """
    model = assembly.model
    middle, v = advanced(model, q, qd, h / 2)
    scene = assembly.at(middle, v, h, push.f_ext, push.speeds(model, v, h))
    held = holder.hold(scene, scene.free(push.tau, h), h, "moreau_jean")
    return _end(holder, scene, held, t, h, h / 2)


def _euler(
    rule: str,
    assembly: Assembly,
    holder: Holder,
    t: float,
    q: np.ndarray,
    qd: np.ndarray,
    push: Push,
    h: float,
) -> Step:
    """Give a semi-implicit step by a rule."""
    model = assembly.model
    scene = assembly.at(q, qd, h, push.f_ext, push.speeds(model, qd, h))
    held = holder.hold(scene, scene.free(push.tau, h), h, rule)
    return _end(holder, scene, held, t, h, h)


def _end(
    holder: Holder, scene: Scene, held: Held, t: float, h: float, left: float
) -> Step:
    """Move by the time that is left, and report."""
    model, u = scene.model, held.velocity
    q, qd = advanced(model, scene.q, u, left)
    if holder.world.stabilisation == "split_impulse":
        rate = u + holder.correction(scene, u, h) * (h / left)
        q, _ = advanced(model, scene.q, rate, left)
    holder.keep(scene)
    told = report(held.scene, held.solution, held.impulse, u, t, h)
    return Step(q, qd, (told,), held)


STEPPERS: dict[str, Callable[..., Step]] = {
    "stewart_trinkle": stewart_trinkle,
    "anitescu_potra": anitescu_potra,
    "moreau_jean": moreau_jean,
}
