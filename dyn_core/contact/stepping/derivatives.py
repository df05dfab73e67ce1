"""Derivatives of a step with contacts by state, joint forces and friction coefficients.

import numpy as np
import dyn_core as dyn
from dyn_core.contact.stepping import step_derivatives

model = dyn.load_urdf(dyn.robots.path("quadruped"), root_joint="floating")
contact_model = dyn.authoring.ContactModel(model)
q, qd, tau = model.neutral(), np.zeros(model.nv), np.zeros(model.nv)
step = step_derivatives(contact_model, q, qd, tau, h=0.01)
step.dtau  # d qd_next / d tau, (nv, nv)
step.modes  # separate, stick or slip, by contact
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.stepping.array_reports import report
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.contact.stepping.constrained_state import ConstrainedState
from dyn_core.contact.stepping.contact_model import ContactModel, error_terms
from dyn_core.contact.stepping.integration import (
    advanced,
    gyroscopic_change,
    moved,
    turning,
)
from dyn_core.errors import UnsupportedError

BOUNDARY = 1e-6  # relative distance of impulses and velocities to a change of mode
RANK = 1e-9  # relative tolerance of the linear system's rank
STEP = 1e-4  # step of central differences of the robot's matrices
NEVER = 1e9  # speed of approach that nothing has [m/s]


class StepDerivatives(NamedTuple):
    """Derivatives of the velocity after a step.

    Attributes:
        dq, dqd, dtau: (nv, nv); dq by a displacement of q.
        dmu: By the coefficients of all contacts, in the order of the problem, (nv, k).
        modes: By block: separate, stick, slip, closed, free (a box at its bound).
        not_differentiable: Whether a block is at the boundary of two modes, so that the
            derivatives are one-sided, or slipping contacts are dependent, or the
            solver has not converged.
        velocity: qd after the step, (nv,).
    """

    dq: np.ndarray
    dqd: np.ndarray
    dtau: np.ndarray
    dmu: np.ndarray
    modes: dict[str, str]
    not_differentiable: bool
    velocity: np.ndarray


@dataclass(frozen=True, eq=False)
class _Active:
    """The active equations of a solution, F(qd+, lambda; q, qd, tau, mu) = 0.

    Attributes:
        modes: Mode of each block.
        mu: Friction coefficients of each block.
        h: Step [s].
        erp: Part of an overlap that is corrected in a step through the velocity.
        push_out_speed: Largest speed of it [m/s].
        chosen: Ids of the blocks.
        bounds: Impulses of boxes at their bounds.
    """

    modes: list[str]
    mu: list[tuple[float, ...]]
    h: float
    erp: float
    push_out_speed: float
    chosen: list[Any]
    bounds: np.ndarray

    def rows(self, state: ConstrainedState) -> ConstrainedState:
        """Return the state with the same blocks in the same order."""
        known = {c.id: c for c in state.constraints}
        missing = [key for key in self.chosen if key not in known]
        if missing:
            raise UnsupportedError(
                f"derivatives: contact {missing[0]} is at its margin"
            )
        return replace(state, constraints=tuple(known[key] for key in self.chosen))

    def equations(
        self,
        state: ConstrainedState,
        qd: np.ndarray,
        tau: np.ndarray,
        z: np.ndarray,
    ) -> np.ndarray:
        """Return F: the equation of motion, then the equations of each block."""
        nv = len(qd)
        v, x = z[:nv], z[nv:]
        force = tau - state.C
        reference = qd + self.h * turning(state.model, qd)
        reference += gyroscopic_change(state.model, state.H, qd, force, self.h)
        dynamics = (state.H + state.B) @ (v - reference) - self.h * force
        F = [dynamics - state.J.T @ x]
        sigma = state.J @ v
        for block, c, mode, coefficient, bound in zip(
            state.layout.blocks, state.constraints, self.modes, self.mu, self.bounds,
            strict=True,
        ):  # fmt: skip
            s, y = (a[block.start : block.start + block.rows] for a in (sigma, x))
            F.append(self._rows(c, mode, coefficient, bound, s, y))
        return np.concatenate(F)

    def _rows(
        self, c: Any, mode: str, mu: Any, bound: float, s: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        """Return the equations of one block."""
        if mode == "separate":
            return y
        if mode == "free":
            return y - bound
        if c.role == "friction":
            return s
        gap = np.asarray(c.gap, float)
        bias = self.erp * gap / self.h
        if c.closing:
            push = np.maximum(bias, -self.push_out_speed)
            bias = np.where(gap > 0, gap / self.h, push)
        if not c.closing or len(s) == 1:
            return s + bias
        normal = [s[0] + bias]
        if mode == "stick":
            return np.concatenate([normal, s[1:]])
        return np.concatenate([normal, y[1:] + mu[0] * y[0] * s[1:] / _length(s[1:])])


def _length(s: np.ndarray) -> Any:
    """Return the length of a vector, analytically continued to complex vectors."""
    return np.sqrt((s * s).sum())


def step_derivatives(
    contact_model: ContactModel,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    h: float,
) -> StepDerivatives:
    """Return the derivatives of a Stewart-Trinkle step without restitution.

        F(z; p) = 0,   z = (qd+, lambda),   dz/dp = -(dF/dz)^-1 dF/dp

    F holds the equation of motion and the equations of each block's mode: separate (no
    impulse), stick (no velocity), slip (impulse on the cone, against the velocity).
    dF/dz is exact, by complex steps. The dependence of H, C, J and the gaps on q and qd
    comes from central differences of fourth order of the compiled Programs. Where rows
    are dependent (a box on four corners) lambda is not unique but qd+ is, unless such
    contacts slip; then `not_differentiable` is set. Shapes on half-spaces alone have
    the compiled solver contact_euler_derivatives, thousands of times as fast; this one
    takes any shapes, joint limits, loops and dry friction.

    Args:
        contact_model: Robot and world; stabilisation split_impulse (whose correction of
            the position is no part of the derivatives), baumgarte or none.
        q, qd: State, (nq,), (nv,).
        tau: Joint forces, (nv,) [N·m | N].
        h: Step [s].

    Raises:
        UnsupportedError: A slipping contact has torsion or rolling rows, or the world
            makes rows soft.

    Source: LCP-22.
    """
    if contact_model.world.stabilisation == "erp_cfm":
        raise UnsupportedError(
            "derivatives: stabilisation erp_cfm; valid: split_impulse, baumgarte, none"
        )
    q, qd, tau = (np.asarray(x, float) for x in (q, qd, tau))
    state = contact_model.state(q, qd, h)
    u, impulse, converged = _solved(contact_model, state, tau, h)
    modes, at_boundary = _modes(state, impulse, u, h)
    active = _Active(
        modes,
        [c.mu for c in state.constraints],
        h,
        error_terms(contact_model.world, h)[0],
        contact_model.world.push_out_speed,
        [c.id for c in state.constraints],
        impulse[state.first] if state.constraints else np.zeros(0),
    )
    z = np.concatenate([u, impulse])
    F_z = _by_complex_step(lambda x: active.equations(state, qd, tau, x), z)
    dF = _by_parameters(contact_model, active, q, qd, tau, z)
    dF.append(_by_coefficients(state, modes, impulse, u))
    inverse = np.linalg.pinv(F_z, rcond=RANK)
    after = advanced(contact_model.model, q, u, h)[1]
    to_end = _differences(
        lambda d: advanced(contact_model.model, q, u + d, h)[1], len(qd)
    )
    dq, dqd, dtau, dmu = (-to_end @ (inverse @ x)[: len(qd)] for x in dF)
    dependent = "slip" in modes and np.linalg.matrix_rank(F_z, RANK * 10) < len(z)
    return StepDerivatives(
        dq,
        dqd,
        dtau,
        dmu,
        {c.name: mode for c, mode in zip(state.constraints, modes, strict=True)},
        bool(at_boundary or dependent or not converged),
        after,
    )


def _solved(
    contact_model: ContactModel, state: ConstrainedState, tau: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return velocity and impulses of a step without rebounds, and its convergence.

    The impulses are those of the constraints of `state`, in their order.
    """
    still = copy(contact_model)
    still.world = replace(
        contact_model.world,
        stepper="stewart_trinkle",
        restitution="newton",
        impacts="simultaneous",
        restitution_threshold=NEVER,
    )
    steps = ArrayStep(still, h)
    record = steps.step(0.0, state.q, state.qd, tau)[2]
    step = report(steps, record)
    parts = [step.impulses[c.name] for c in state.constraints]
    impulse = np.concatenate([np.zeros(0), *parts])
    return record.velocity, impulse, step.converged


def _by_parameters(
    contact_model: ContactModel,
    active: _Active,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    z: np.ndarray,
) -> list[np.ndarray]:
    """Return dF/dq, dF/dqd and dF/dtau."""
    nv, h = len(qd), active.h

    def equations(dq: np.ndarray, dqd: np.ndarray, dtau: np.ndarray) -> np.ndarray:
        position = moved(contact_model.model, q, dq)
        state = active.rows(contact_model.state(position, qd + dqd, h))
        return active.equations(state, qd + dqd, tau + dtau, z)

    zero = np.zeros(nv)
    return [
        _differences(lambda d: equations(d, zero, zero), nv),
        _differences(lambda d: equations(zero, d, zero), nv),
        _differences(lambda d: equations(zero, zero, d), nv),
    ]


def _modes(
    state: ConstrainedState, x: np.ndarray, velocity: np.ndarray, h: float
) -> tuple[list[str], bool]:
    """Return the mode of each block, and whether one is at a boundary."""
    sigma, modes, at_boundary = state.J @ velocity, [], False
    response = np.where(np.diag(state.G) > 0, np.diag(state.G), 1.0)
    speed = float(np.abs(state.J @ state.qd).max(initial=0.0)) + h * 9.81
    for block, c in zip(state.layout.blocks, state.constraints, strict=True):
        k, tangent = block.start, list(block.all)[1:]
        tiny = BOUNDARY * speed
        if c.role == "friction":
            low, high = h * np.array(c.force_range)
            at_bound = min(x[k] - low, high - x[k]) <= tiny / response[k]
            modes.append("free" if at_bound and abs(sigma[k]) > tiny else "stick")
            at_boundary |= at_bound and abs(sigma[k]) <= tiny
            continue
        if not c.closing:
            modes.append("closed")
            continue
        pressed = x[k] * response[k] > tiny
        opening = sigma[k] + max(float(c.gap), 0.0) / h > tiny
        at_boundary |= not pressed and not opening
        if not pressed:
            modes.append("separate")
            continue
        if not tangent:
            modes.append("closed")
            continue
        slides = float(np.linalg.norm(sigma[tangent]))
        limit = c.mu[0] * x[k]
        at_cone = float(np.linalg.norm(x[tangent[:2]])) >= limit * (1 - BOUNDARY)
        slips = slides > tiny
        at_boundary |= at_cone and not slips
        if slips and len(tangent) > 2:
            raise UnsupportedError(
                f"derivatives: {c.name} slips with torsion or rolling; valid: contacts"
                " of three rows"
            )
        modes.append("slip" if slips else "stick")
    return modes, bool(at_boundary)


def _by_complex_step(function: Any, z: np.ndarray) -> np.ndarray:
    """Return the exact Jacobian of an analytic function, by complex steps."""
    columns = []
    for k in range(len(z)):
        shifted = z.astype(complex)
        shifted[k] += 1e-30j
        columns.append(function(shifted).imag / 1e-30)
    return np.array(columns).T


def _differences(function: Any, count: int) -> np.ndarray:
    """Return a Jacobian by central differences of fourth order."""
    columns = []
    for unit in np.eye(count) * STEP:
        near = function(unit) - function(-unit)
        far = function(2 * unit) - function(-2 * unit)
        columns.append((8 * near - far) / (12 * STEP))
    return np.array(columns).T


def _by_coefficients(
    state: ConstrainedState, modes: list[str], x: np.ndarray, velocity: np.ndarray
) -> np.ndarray:
    """Return dF/dmu: zero but for slipping contacts."""
    nv, sigma = state.model.nv, state.J @ velocity
    slopes = np.zeros((nv + state.layout.m, state.layout.k))
    for block, mode in zip(state.layout.blocks, modes, strict=True):
        if mode == "slip":
            tangent = list(block.tangent)
            s = sigma[tangent]
            slopes[[nv + i for i in tangent], block.first] = (
                x[block.start] * s / np.linalg.norm(s)
            )
    return slopes
