"""How the velocity after a step depends on state, forces and friction coefficients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.assembly import Assembly, Scene
from dyn_core.contact.holding import Holder, error_terms
from dyn_core.contact.moving import advanced, moved, turning
from dyn_core.errors import UnsupportedError

BORDER = 1e-6  # of impulses and velocities, relative: nearer than this is a border
RANK = 1e-9  # of the linear system
STEP = 1e-4  # of central differences of the robot's matrices


class Slopes(NamedTuple):
    """Derivatives of qd after a step.

    Attributes:
        dq, dqd, dtau: (nv, nv); dq by a displacement of q.
        dmu: By the coefficients of all contacts, in the order of the problem, (nv, k).
        modes: By block: separate, stick, slip, closed, free (a box at its bound).
        not_differentiable: Whether a block is at the border of two modes, so that the
            derivatives are those of one side, or slipping contacts depend on each
            other, or the step was not solved.
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
    """The equations that hold at a solution: F(qd+, lambda; q, qd, tau, mu) = 0.

    Attributes:
        modes: Of each block. mu: By block.
        h, erp: Step, and part of overlaps taken away.
        chosen: Which blocks, by id.
        bounds: Impulses of boxes at their bounds.
    """

    modes: list[str]
    mu: list[tuple[float, ...]]
    h: float
    erp: float
    chosen: list[Any]
    bounds: np.ndarray

    def rows(self, scene: Scene) -> Scene:
        """Give the scene with the same blocks in the same order."""
        known = {c.id: c for c in scene.constraints}
        missing = [key for key in self.chosen if key not in known]
        if missing:
            raise UnsupportedError(
                f"derivatives: contact {missing[0]} is at its margin"
            )
        return replace(scene, constraints=tuple(known[key] for key in self.chosen))

    def equations(
        self,
        scene: Scene,
        qd: np.ndarray,
        tau: np.ndarray,
        mu: list[Any],
        z: np.ndarray,
    ) -> np.ndarray:
        """Give F: the equation of motion, and each row's."""
        nv = len(qd)
        v, x = z[:nv], z[nv:]
        still = qd + self.h * turning(scene.model, qd)
        dynamics = (scene.H + scene.B) @ (v - still) - self.h * (tau - scene.C)
        F = [dynamics - scene.J.T @ x]
        sigma = scene.J @ v
        for block, c, mode, coefficient, bound in zip(
            scene.layout.blocks, scene.constraints, self.modes, mu, self.bounds,
            strict=True,
        ):  # fmt: skip
            s, y = (a[block.start : block.start + block.rows] for a in (sigma, x))
            F.append(self._rows(c, mode, coefficient, bound, s, y))
        return np.concatenate(F)

    def _rows(
        self, c: Any, mode: str, mu: Any, bound: float, s: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        """Give the equations of one block."""
        if mode == "separate":
            return y
        if mode == "free":
            return y - bound
        if c.role in ("friction", "prescribed"):
            return s - c.wanted
        gap = np.asarray(c.gap, float)
        push = np.where(gap > 0, gap, self.erp * gap) if c.closing else self.erp * gap
        push = push / self.h
        if not c.closing or len(s) == 1:
            return s + push
        normal = [s[0] + push]
        if mode == "stick":
            return np.concatenate([normal, s[1:]])
        return np.concatenate([normal, y[1:] + mu[0] * y[0] * s[1:] / _length(s[1:])])


def _length(s: np.ndarray) -> Any:
    """Give the length of a vector, complex ones by continuation."""
    return np.sqrt((s * s).sum())


def step_slopes(
    assembly: Assembly, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, h: float
) -> Slopes:
    """Give the derivatives of a Stewart-Trinkle step without restitution.

        F(z; p) = 0,   z = (qd+, lambda),   dz/dp = -(dF/dz)^-1 dF/dp

    F are the equation of motion and the rows that are active: separate (no impulse),
    stick (no velocity), slip (impulse on the cone against the velocity). They are
    differentiated as they are; what H, C, J and the gaps do along q and qd comes from
    central differences of fourth order of the compiled Programs. Where rows depend on
    each other (a box on four corners) lambda is not unique but qd+ is; not so where
    such contacts slip, which is flagged as a border is.

    Args:
        assembly: Robot and world; stabilisation baumgarte or none.
        q, qd: State, (nq,), (nv,).
        tau: Joint forces, (nv,) [N·m | N].
        h: Step [s].

    Raises:
        UnsupportedError: A slipping contact has torsion or rolling rows, or the world
            makes rows soft.

    Source: LCP-22.
    """
    if assembly.world.stabilisation in ("erp_cfm", "split_impulse"):
        raise UnsupportedError(
            f"derivatives: stabilisation {assembly.world.stabilisation}; valid:"
            " baumgarte, none"
        )
    q, qd, tau = (np.asarray(x, float) for x in (q, qd, tau))
    scene = assembly.at(q, qd, h)
    free = scene.free(tau, h)
    held = Holder(assembly.world).hold(scene, free, h, "stewart_trinkle", False)
    scene, solution = held.scene, held.solution
    modes, border = _modes(scene, held.impulse, held.velocity, h)
    erp = error_terms(assembly.world, h)[0]
    mu = [c.mu for c in scene.constraints]
    chosen = [c.id for c in scene.constraints]
    bounds = held.impulse[scene.first] if chosen else np.zeros(0)
    active = _Active(modes, mu, h, erp, chosen, bounds)
    z = np.concatenate([held.velocity, held.impulse])
    F_z = _by_complex_step(lambda x: active.equations(scene, qd, tau, mu, x), z)
    nv = len(qd)

    def at(dq: np.ndarray, dv: np.ndarray) -> np.ndarray:
        there = moved(assembly.model, q, dq)
        other = active.rows(assembly.at(there, qd + dv, h))
        return active.equations(other, qd + dv, tau, mu, z)

    none = np.zeros(nv)
    by_q = _differences(lambda d: at(d, none), nv)
    by_qd = _differences(lambda d: at(none, d), nv)
    by_tau = np.zeros((len(z), nv))
    by_tau[:nv] = -h * np.eye(nv)
    by_mu = _by_coefficients(scene, modes, held.impulse, held.velocity)
    inverse = np.linalg.pinv(F_z, rcond=RANK)
    u = held.velocity
    turned = _differences(lambda d: advanced(assembly.model, q, u + d, h)[1], nv)
    parts = (by_q, by_qd, by_tau, by_mu)
    dq, dqd, dtau, dmu = (-turned @ (inverse @ x)[:nv] for x in parts)
    after = advanced(assembly.model, q, u, h)[1]
    named = {c.name: mode for c, mode in zip(scene.constraints, modes, strict=True)}
    loose = "slip" in modes and np.linalg.matrix_rank(F_z, RANK * 10) < len(z)
    flag = bool(border or loose or not solution.converged)
    return Slopes(dq, dqd, dtau, dmu, named, flag, after)


def _modes(
    scene: Scene, x: np.ndarray, velocity: np.ndarray, h: float
) -> tuple[list[str], bool]:
    """Give each block's mode, and whether one is at a border."""
    sigma, modes, border = scene.J @ velocity, [], False
    response = np.where(np.diag(scene.G) > 0, np.diag(scene.G), 1.0)
    speed = float(np.abs(scene.J @ scene.qd).max(initial=0.0)) + h * 9.81
    for block, c in zip(scene.layout.blocks, scene.constraints, strict=True):
        k, tangent = block.start, list(block.all)[1:]
        tiny = BORDER * speed
        if c.role == "friction":
            at_bound = abs(x[k]) >= h * c.most - tiny / response[k]
            modes.append("free" if at_bound and abs(sigma[k]) > tiny else "stick")
            border |= at_bound and abs(sigma[k]) <= tiny
            continue
        if not c.closing:
            modes.append("closed")
            continue
        pressed = x[k] * response[k] > tiny
        opening = sigma[k] + max(float(c.gap), 0.0) / h > tiny
        border |= not pressed and not opening
        if not pressed:
            modes.append("separate")
            continue
        if not tangent:
            modes.append("closed")
            continue
        slides = float(np.linalg.norm(sigma[tangent]))
        most = c.mu[0] * x[k]
        full = float(np.linalg.norm(x[tangent[:2]])) >= most * (1 - BORDER)
        slips = slides > tiny
        border |= full and not slips
        if slips and len(tangent) > 2:
            raise UnsupportedError(
                f"derivatives: {c.name} slips with torsion or rolling; valid: contacts"
                " of three rows"
            )
        modes.append("slip" if slips else "stick")
    return modes, bool(border)


def _by_complex_step(function: Any, z: np.ndarray) -> np.ndarray:
    """Give the exact slopes of an analytic function, by steps along i."""
    columns = []
    for k in range(len(z)):
        moved_z = z.astype(complex)
        moved_z[k] += 1e-30j
        columns.append(function(moved_z).imag / 1e-30)
    return np.array(columns).T


def _differences(function: Any, count: int) -> np.ndarray:
    """Give central differences of fourth order, by unit displacements."""
    columns = []
    for unit in np.eye(count) * STEP:
        near = function(unit) - function(-unit)
        far = function(2 * unit) - function(-2 * unit)
        columns.append((8 * near - far) / (12 * STEP))
    return np.array(columns).T


def _by_coefficients(
    scene: Scene, modes: list[str], x: np.ndarray, velocity: np.ndarray
) -> np.ndarray:
    """Give dF/dmu: only slipping contacts feel their coefficient."""
    nv, sigma = scene.model.nv, scene.J @ velocity
    slopes = np.zeros((nv + scene.layout.m, scene.layout.k))
    for block, mode in zip(scene.layout.blocks, modes, strict=True):
        if mode == "slip":
            tangent = list(block.tangent)
            s = sigma[tangent]
            slopes[[nv + i for i in tangent], block.first] = (
                x[block.start] * s / np.linalg.norm(s)
            )
    return slopes
