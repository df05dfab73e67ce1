"""A robot with its constraints in one state, as dense matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.stepping.constraints import Constraint
from dyn_core.contact.stepping.integration import gyroscopic_change, turning
from dyn_core.errors import SingularError
from dyn_core.model import Model
from dyn_core.sharing import cached_property


@dataclass(frozen=True, eq=False)
class ConstrainedState:
    """A robot in one state: its equation of motion and its constraints.

        (H + B)(qd+ - qd) = h (tau - C) + J.T lambda

    Attributes:
        model: Robot.
        q, qd: State.
        poses: Poses of the bodies in the world, (nb, 4, 4).
        J_bodies: World Jacobians, the world's zeros first, (nb + 1, 6, nv).
        H: Joint-space inertia, (nv, nv).
        C: Bias force with damping, external forces and springs, (nv,).
        B: h times the derivative of damping, (nv, nv).
        constraints: BlockFacts of rows.
        sweep: Program of RESPONSE, with the payload of the state.

    Source: LCP-1, LCP-3, LCP-4.
    """

    model: Model
    q: np.ndarray
    qd: np.ndarray
    poses: np.ndarray
    J_bodies: np.ndarray
    H: np.ndarray
    C: np.ndarray
    B: np.ndarray
    constraints: tuple[Constraint, ...]
    sweep: Any = None

    @cached_property
    def layout(self) -> ConstraintLayout:
        """BlockFacts of the problem and their rows."""
        return ConstraintLayout(tuple((c.kind, c.rows) for c in self.constraints))

    @property
    def first(self) -> list[int]:
        """First row of each block."""
        return [block.start for block in self.layout.blocks]

    @cached_property
    def J(self) -> np.ndarray:
        """Rows of all blocks, (m, nv)."""
        rows = [c.J for c in self.constraints]
        return np.concatenate([np.zeros((0, self.model.nv)), *rows])

    @cached_property
    def inverse(self) -> np.ndarray:
        """(H + B)^-1 through its Cholesky factor, (nv, nv).

        Raises:
            SingularError: It is not positive definite.
        """
        try:
            L = np.linalg.cholesky(self.H + self.B)
        except np.linalg.LinAlgError as error:
            raise SingularError("joint-space inertia H") from error
        half = np.linalg.solve(L, np.eye(len(L)))
        return half.T @ half

    @cached_property
    def G(self) -> np.ndarray:
        """Delassus matrix J H^-1 J.T, (m, m), symmetric.

        Source: LCP-3.
        """
        G = self.J @ self.inverse @ self.J.T
        return (G + G.T) / 2

    def free(self, tau: np.ndarray, h: float, remaining: float = 1.0) -> np.ndarray:
        """Return the velocity after an unconstrained step, (nv,).

            qd + h ((H + B)^-1 (tau - C) + w x v) + gyroscopic change

        in the axes of the state; w x v only for floating bodies, see integration.py.

        Args:
            tau: Joint forces, (nv,).
            h: Step [s].
            remaining: Part of the step that follows the position of the state.
        """
        force = tau - self.C
        rate = self.inverse @ force + turning(self.model, self.qd)
        state = self.model, self.H, self.qd
        change = gyroscopic_change(*state, force, h, remaining)
        return self.qd + h * rate + change

    def problem(
        self,
        free: np.ndarray,
        h: float,
        bias: Any = 0.0,
        compliance: Any = 0.0,
        matrix_free: bool = False,
    ) -> ConstraintProblem:
        """Return the problem of a step.

            sigma = G lambda + J free

        Args:
            free: Velocity without constraints, (nv,).
            h: Step: dry friction takes up to h times its force [s].
            bias, compliance: One number per row, (m,), or one for all; the velocities
                of prescribed rows are subtracted from the bias.
            matrix_free: Whether G is a function: one sweep over the bodies per call.

        Source: LCP-1, LCP-3, LCP-8.
        """
        blocks = list(zip(self.layout.blocks, self.constraints, strict=True))
        bounds = np.full((2, self.layout.m), [[-np.inf], [np.inf]])
        targets = np.zeros(self.layout.m)
        for block, c in blocks:
            bounds[:, block.start] = h * np.array(c.force_range)
            targets[block.start] = c.target_velocity
        G: Any = self.G
        if matrix_free:
            G = self._response
        return ConstraintProblem(
            self.layout,
            G,
            self.J @ free,
            [x for _, c in blocks for x in c.mu],
            bounds[0],
            bounds[1],
            compliance,
            np.asarray(bias, float) - targets,
            tuple(c.id for c in self.constraints),
            tuple(c.name for c in self.constraints),
            np.diag(self.G) if matrix_free else None,
        )

    def _response(self, impulse: np.ndarray) -> np.ndarray:
        """Return G lambda without G: by a sweep over the bodies if B is zero."""
        joint_force = self.J.T @ impulse
        if self.sweep is None or self.B.any():
            return self.J @ (self.inverse @ joint_force)
        zeros = np.zeros((self.model.nb, 6))
        return self.J @ self.sweep(self.q, joint_force, zeros)[0]

    def moved(self, free: np.ndarray, impulse: np.ndarray) -> np.ndarray:
        """Return the velocity after impulses, free + (H + B)^-1 J.T lambda, (nv,)."""
        return free + self.inverse @ (self.J.T @ impulse)
