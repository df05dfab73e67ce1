"""Trajectories of time-stepping solvers, their linearisation, and adjoint gradients.

import numpy as np
import dyn_core as dyn
from dyn_core.simulation.rollout import Rollout

model = dyn.load_urdf(dyn.robots.path("arm7"))
rollout = Rollout(model, "semi_implicit_euler")
tau = np.zeros((50, model.nv))
states = rollout.run(model.neutral(), np.zeros(model.nv), tau, dt=0.01)
# cost = |qd|² / 2 at the end
by_q, by_qd = np.zeros((2, 51, model.nv))
by_qd[-1] = states.qd[-1]
gradients = rollout.gradients(states, tau, 0.01, by_q, by_qd)
gradients.tau  # of the cost, by all controls, (50, nv)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import ShapeError
from dyn_core.model import Model
from dyn_core.problems import (
    CONTACT_STEP,
    CONTACT_STEP_DERIVATIVES,
    STEP,
    STEP_DERIVATIVES,
)
from dyn_core.solving.registry import solver_of
from dyn_core.validation import float_array, shaped_array


class RolloutStates(NamedTuple):
    """States of a trajectory of N steps, beginning with the initial state.

    q is (N + 1, nq), qd (N + 1, nv); `impulse` has the contact impulses of each step,
    (N, m) [N·s].
    """

    q: np.ndarray
    qd: np.ndarray
    impulse: np.ndarray | None = None


class Linearization(NamedTuple):
    """Derivatives of each step of a trajectory, with dx = (dq, dqd).

    dq is as of Model.difference. A (N, 2 nv, 2 nv) is by the state before a step, B (N,
    2 nv, nv) by its joint forces, dx_dp (N, 2 nv, np) by the parameters.
    `not_differentiable` (N,) is 0 if a step with contacts is differentiable, 1 at the
    boundary of contact modes and the like, 2 at a gap of 0, see
    CONTACT_STEP_DERIVATIVES; None for steps without contacts.
    """

    A: np.ndarray
    B: np.ndarray
    dx_dp: np.ndarray
    not_differentiable: np.ndarray | None = None


class Gradients(NamedTuple):
    """Gradient of the cost of a trajectory of N steps.

    q0 is by a displacement of the initial position, (nv,), qd0 by the velocity, (nv,),
    tau by the joint forces of each step, (N, nv), p by the parameters, (np,).
    """

    q0: np.ndarray
    qd0: np.ndarray
    tau: np.ndarray
    p: np.ndarray


class Rollout:
    """Trajectories of a robot under joint forces, step by step, and their derivatives.

        x[k+1] = step(x[k], tau[k], dt),   x = (q, qd),   k = 0..N-1

    Driven joints start at t = 0. For a robot with loops, the solver slots are filled
    with solvers for loops. A step with contacts is warm-started with the impulses of
    the previous step, the first with zeros; its derivatives are warm-started with its
    own impulses. Errors of the Programs, such as SingularError, pass through all
    methods.

    Args:
        model: Robot.
        step: Solver of STEP or CONTACT_STEP, by name or as an object.
        derivatives: Solver of STEP_DERIVATIVES or CONTACT_STEP_DERIVATIVES, by name or
            as an object; None: the step's name with `_derivatives`, with the options
            that with_options gave the step.
        paths: Parameters p to differentiate by (model/parameter_paths).
        step_options, derivative_options: Build options of the step alone and of the
            derivatives alone, such as slots; they prevail over `options`.
        options: Build options of both: engine, joint_friction, limit_stops, ...

    Attributes:
        model: Robot.
        program, derivatives: Programs of the step and of its derivatives.

    Raises:
        SignatureError: A solver is of another kind.
        SolverNotFound: No solver has a name, such as the one with `_derivatives`.
        DynError: A Program cannot be built with the options.
    """

    def __init__(
        self,
        model: Model,
        step: Any = "semi_implicit_euler",
        derivatives: Any = None,
        paths: Sequence[str] = (),
        step_options: dict[str, Any] | None = None,
        derivative_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.model = model
        step = solver_of(step, STEP, CONTACT_STEP)
        alike: dict[str, Any] = {}
        if derivatives is None:
            derivatives, alike = f"{step.name}_derivatives", step.changed_options
        self._touches = step.signature == CONTACT_STEP
        wanted = CONTACT_STEP_DERIVATIVES if self._touches else STEP_DERIVATIVES
        derivatives = solver_of(derivatives, wanted)
        self.program = step.build(model, **{**options, **(step_options or {})})
        chosen = {**alike, **options, **(derivative_options or {})}
        self.derivatives = derivatives.build(model, paths=paths, **chosen)

    def run(self, q0: Any, qd0: Any, tau: Any, dt: Any) -> RolloutStates:
        """Simulate a trajectory and return its N + 1 states, the initial state first.

        With a step with contacts the result also has the N impulses. NaN and infinity
        are not refused.

        Args:
            q0, qd0: Initial state, (nq,) and (nv,) [rad | m], [rad/s | m/s].
            tau: Joint forces of each step, (N, nv) [N·m | N]; N may be 0.
            dt: Length of the steps, one number or (N,) [s].

        Returns:
            q (N + 1, nq), qd (N + 1, nv), and `impulse` (N, m) [N·s], m numbers as the
            step's input `warm` has, None for a step without contacts.

        Raises:
            ShapeError: An array has the wrong shape.
            DynError: A step failed, such as SingularError of its Program.
        """
        tau, dt, more = self._steps(tau, dt)
        count = len(tau)
        q = np.empty((count + 1, self.model.nq))
        qd = np.empty((count + 1, self.model.nv))
        q[0] = shaped_array("q0", q0, (self.model.nq,))
        qd[0] = shaped_array("qd0", qd0, (self.model.nv,))
        impulse = np.zeros((count + 1, self._rows)) if self._touches else None
        for k in range(count):
            inputs = q[k], qd[k], tau[k], dt[k]
            last = [x[k] for x in more]
            if impulse is None:
                q[k + 1], qd[k + 1] = self.program(*inputs, *last)
            else:
                result = self.program(*inputs, impulse[k], *last)
                q[k + 1], qd[k + 1], impulse[k + 1] = result[:3]
        return RolloutStates(q, qd, None if impulse is None else impulse[1:])

    def linearize(self, states: RolloutStates, tau: Any, dt: Any) -> Linearization:
        """Return the derivatives of all steps, computed in one batched call.

        Args:
            states: States of a trajectory of N steps; the final state is not used. A
                step with contacts is warm-started with its own impulses, or with zeros
                if there are none.
            tau: Joint forces of each step, (N, nv) [N·m | N].
            dt: Length of the steps, one number or (N,) [s].

        Returns:
            Of the state (dq, dqd) after a step, dq in velocity coordinates, the
            derivatives A by the state before it, (N, 2 nv, 2 nv), B by its joint
            forces, (N, 2 nv, nv), and dx_dp by the np parameters, (N, 2 nv, np); and
            `not_differentiable`, (N,), 0 where a step is differentiable, else as
            Linearization says, None for a step without contacts.

        Raises:
            ShapeError: An array has the wrong shape.
            DynError: A step failed, such as SingularError of its Program.
        """
        tau, lengths, more = self._steps(tau, dt)
        dt = float(lengths[0]) if np.ndim(dt) == 0 and len(lengths) else lengths
        knots = len(tau) + 1
        q = shaped_array("q", states.q, (knots, self.model.nq))
        qd = shaped_array("qd", states.qd, (knots, self.model.nv))
        if not self._touches:
            result = self.derivatives(q[:-1], qd[:-1], tau, dt, *more)
            return Linearization(result.A, result.B, result.dx_dp)
        shape = len(tau), self._rows
        known = np.zeros(shape) if states.impulse is None else states.impulse
        warm = shaped_array("impulse", known, shape)
        result = self.derivatives(q[:-1], qd[:-1], tau, dt, warm, *more)
        flags = result.not_differentiable
        return Linearization(result.A, result.B, result.dx_dp, flags)

    @property
    def _rows(self) -> int:
        """Number of contact impulses of a step; only for a solver of CONTACT_STEP."""
        return next(p.shape[0] for p in self.program.inputs if p.name == "warm")

    def gradients(
        self,
        states: RolloutStates,
        tau: Any,
        dt: Any,
        by_q: Any,
        by_qd: Any,
        by_tau: Any = None,
    ) -> Gradients:
        """Return the gradient of a cost by initial state, joint forces and parameters.

            y[N] = c[N],   y[k] = c[k] + A[k].T y[k+1]
            by tau: B[k].T y[k+1] + by_tau[k],   by p: sum_k dx_dp[k].T y[k+1]

        with c = (by_q, by_qd) and the matrices of `linearize`: one sweep from the end
        to the start. The gradient by the initial state is y[0].

        Args:
            states: States of the trajectory, as returned by `run`.
            tau: Joint forces of each step, (N, nv) [N·m | N].
            dt: Length of the steps, one number or (N,) [s].
            by_q: Gradient of the cost by a displacement of each position, (N + 1, nv).
            by_qd: Gradient of the cost by each velocity, (N + 1, nv).
            by_tau: Direct gradient of the cost by the joint forces of each step, (N,
                nv); None: zero.

        Returns:
            q0 and qd0, (nv,) each, tau (N, nv), and p, (np,), by the np parameters.

        Raises:
            ShapeError: An array has the wrong shape.
            DynError: An error of `linearize`.

        Source: the discrete adjoint method; A. Bryson and Y. Ho, Applied Optimal
        Control, section 2.2.
        """
        return sweep(self.linearize(states, tau, dt), by_q, by_qd, by_tau)

    def _steps(self, tau: Any, dt: Any) -> tuple[np.ndarray, np.ndarray, list[Any]]:
        """Return joint forces (N, nv), step lengths (N,), and further inputs.

        They are the start time of each step, (N,), if there are driven joints, else [].
        """
        wanted = f"shape (N, {self.model.nv})"
        tau = float_array("tau", tau, wanted)
        if tau.ndim != 2 or tau.shape[1] != self.model.nv:
            raise ShapeError("tau", wanted, f"shape {tau.shape}")
        lengths = float_array("dt", dt, f"shape ({len(tau)},), or one")
        if lengths.shape not in ((), tau.shape[:1]):
            wanted = f"a number or shape ({len(tau)},)"
            raise ShapeError("dt", wanted, f"shape {lengths.shape}")
        dt = np.broadcast_to(lengths, len(tau))
        ends = np.cumsum(dt)
        return tau, dt, [ends - dt] if self.model.driven else []


def sweep(
    linearization: Linearization, by_q: Any, by_qd: Any, by_tau: Any = None
) -> Gradients:
    """Return the gradient of a cost from the derivatives of each step.

        y[N] = c[N],   y[k] = c[k] + A[k].T y[k+1],   c = (by_q, by_qd)
        by tau: B[k].T y[k+1] + by_tau[k],   by p: sum_k dx_dp[k].T y[k+1]

    y[0] is the gradient by the initial q and qd. by_q and by_qd, (N + 1, nv), are by
    the displacement of each position and by each velocity; by_tau is (N, nv).
    """
    A, B, P, _ = linearization
    count, nx = A.shape[:2]
    nv = nx // 2
    start = np.empty((count + 1, nx))
    start[:, :nv] = shaped_array("by_q", by_q, (count + 1, nv))
    start[:, nv:] = shaped_array("by_qd", by_qd, (count + 1, nv))
    # A, B and dx_dp side by side: one product for each step.
    columns = np.concatenate([A, B, P], axis=2)
    results = np.empty((count, columns.shape[2]))
    y = start[count]
    steps = zip(start[:count], columns, results, strict=True)
    for c, M, result in reversed(list(steps)):
        np.dot(y, M, out=result)
        c += result[:nx]
        y = c
    tau = results[:, nx : nx + nv].copy()
    if by_tau is not None:
        tau += shaped_array("by_tau", by_tau, (count, nv))
    return Gradients(y[:nv].copy(), y[nv:].copy(), tau, results[:, nx + nv :].sum(0))
