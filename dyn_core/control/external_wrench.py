"""External wrench at a link, from external joint forces, with its covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.control.law_programs import checked_gains
from dyn_core.errors import SettingError, UnsupportedError, unknown_name
from dyn_core.model import Model
from dyn_core.solving.registry import solver
from dyn_core.validation import known_keywords

LENGTH = 0.1  # by which moments and forces are compared [m]
THRESHOLD = 0.02  # singular value below which a direction is weak [m]
PRIOR = 1e3  # standard deviation of what is not known [N]


@dataclass(frozen=True)
class WrenchEstimate:
    """A wrench with its covariance.

    `w` acts from the environment on the link, (6,), [moment; force] about its origin,
    in the axes of the root [N·m; N]. `weak`: the joint forces show some direction of w
    weakly, or not at all; w is reduced or zero there.
    """

    w: np.ndarray
    covariance: np.ndarray
    weak: bool


@known_keywords
class ExternalWrench:
    """Estimator of the wrench on one link of a robot on which nothing else pushes.

        tau = J.T w + noise,   S J = U diag(s) V.T,   S = diag(l, l, l, 1, 1, 1)
        S^-1 w = U_k y,   y = argmin |D^-1 (tau - J.T S U_k y)|

    l is 0.1 m. U_k are the columns of singular values above the threshold, D the
    deviations of the joint forces. Between the threshold and twice of it a direction
    fades in, so that w is continuous along a motion. Where a direction has faded, its
    deviation is 1000 N.

    Attributes:
        model: Robot.
        link: Name of the link.
        deviations: Standard deviation of each external joint force, (nv,) [N·m | N].
        threshold: Smallest singular value that counts [m].
        turn: Rotation from the axes of the link to those of the root at the last
            estimate, for wrenches, (6, 6).

    Args:
        model, link, threshold: As the attributes.
        deviations: One number, or one a joint.
        engine: Engine of the Program; None: the default.

    Raises:
        SettingError: No joint moves a link of this name, or a deviation or the
            threshold is not above 0.
        UnsupportedError: The robot has loops.
    """

    def __init__(
        self,
        model: Model,
        link: str,
        deviations: Any = 1.0,
        threshold: float = THRESHOLD,
        engine: str | None = None,
    ) -> None:
        if model.loops:
            names = ", ".join(loop.name for loop in model.loops)
            raise UnsupportedError(
                f"external wrench: the robot has loops ({names}), whose forces the"
                " joints feel, too; valid: a robot without them"
            )
        moving = [name for name in model.frame_names if model.frame(name).body]
        if link not in moving:
            raise SettingError(unknown_name("moving link", link, moving), "link")
        self.model, self.link, self.threshold = model, link, float(threshold)
        self.deviations = checked_gains("deviations", deviations, model.nv)
        for name, value in (("deviations", self.deviations), ("threshold", threshold)):
            if not np.all(np.asarray(value) > 0):
                raise SettingError(f"{name} is {value}; valid: above 0", name)
        self._times = ["time"] if model.driven else []
        self._jacobian = solver("jacobian").build(
            model, frame=link, reference="aligned", engine=engine, inputs=self._times
        )
        self._poses = solver("forward_kinematics").build(
            model, frames=[link], engine=engine, inputs=self._times
        )
        for program in (self._jacobian, self._poses):
            program.prepare()
        self.turn = np.eye(6)
        self._scale = np.repeat([LENGTH, 1.0], 3)

    def estimate(self, q: Any, tau: Any, time: float = 0.0) -> WrenchEstimate:
        """Return the wrench that explains external joint forces, axes of the root.

        The attribute `turn` is set. Directions that the joint forces do not show are
        zero in w.

        Args:
            q: Position, (nq,).
            tau: External joint forces, (nv,) [N·m | N], such as ExternalEffort.effort.
            time: Time of driven joints [s].

        Returns:
            w, (6,), [moment; force] of the environment on the link, about its origin
            [N·m; N]; covariance of w, (6, 6); weak: whether a direction of w is missing
            or fades.

        Raises:
            ShapeError: q has another shape.
            ValueError: tau has neither nv numbers nor one.
            LinAlgError: q is not finite. NaN in tau gives NaN in w.
        """
        more = (time,) if self._times else ()
        self.turn = np.kron(np.eye(2), np.asarray(self._poses(q, *more))[0, :3, :3])
        J = np.asarray(self._jacobian(q, *more)) * self._scale[:, None]
        U, s, _ = np.linalg.svd(J)
        s = np.pad(s, (0, 6 - len(s)))
        share = np.clip(s / self.threshold - 1.0, 0.0, 1.0)
        share = share * share * (3.0 - 2.0 * share)
        k = int(np.count_nonzero(share))
        B = (J.T @ U[:, :k]) / self.deviations[:, None]
        inverse = np.linalg.inv(B.T @ B)
        y = inverse @ B.T @ (np.asarray(tau, float) / self.deviations)
        turn = self._scale[:, None] * U
        known = turn[:, :k] @ inverse @ turn[:, :k].T
        faded = turn * (1.0 - share) * PRIOR
        return WrenchEstimate(
            w=turn[:, :k] @ (share[:k] * y),
            covariance=known + faded @ faded.T,
            weak=bool((share < 1.0).any()),
        )
