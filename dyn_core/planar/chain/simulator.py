"""Event-driven simulation of planar chains: hits, rewinds, releases, reports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dyn_core.errors import NonFiniteError
from dyn_core.planar.chain.geometry import (
    ChainState,
    joint_angles,
    joint_rates,
)
from dyn_core.planar.chain.modes import Key, UnilateralConstraints
from dyn_core.planar.chain.motion import MovingChain

TOUCH = 1e-9  # gaps and rates below it count as touching [m, rad; m/s, rad/s]
HIT = 1e-12  # depth at which something counts as a hit [m, rad]
DEPTH = 20  # events within one quantum that nest
EVENTS = 50  # events in a step, after which all that was touched is kept
HALVINGS = 12


class ChainSimulator(MovingChain):
    """A planar chain that moves in quanta of time, with impacts, releases and limits.

    A step: accelerations, with constraints that would pull let go one at a time; places
    after the quantum; the earliest hit, if any: back to it, impact, and the rest of the
    quantum again. Where accelerations change much in a quantum, two halves take its
    place.

    Attributes:
        chain: Planar chain.
        x, v: Places and velocities of the joints, (n, 2) [m], [m/s].
        theta: Angles of the joints but the last, unwrapped, n-1 [rad].
        t: Time [s].
        events: What happened, the latest `keep` of it.
        evaluation: Accelerations, couples and reactions of the last one, or None.
        dropped: What could not be met in the last evaluation, in words.
        lost: Energy lost in impacts so far [J].

    Source: WAW-3.1, WAW-7.3, WAW-12.12.
    """

    def step(self, tau: Any = None, forces: Any = None) -> ChainState:
        """Move by one quantum.

        Args:
            tau: Torques at the joints but the last, n-1 (or n with 0 at the end)
                [N·m]; None for none.
            forces: More forces on the joints, (n, 2) [N], or a function of (t, state).

        Raises:
            NonFiniteError: The motion is not finite; names step and joint. The last
                good state is kept.
        """
        self._tau = self._torques(tau)
        self._extra = forces
        self._touched = []
        before, end = self.motion(), self.t + self.dt
        self.steps += 1
        try:
            self._halved(self.dt, 0)
        except NonFiniteError:
            self.return_to(before)
            raise
        self.t = end
        return self.state

    def _consistent_modes(self) -> Any:
        """Evaluate, and let go or add constraints one by one until all is consistent.

        Source: WAW-7.4, WAW-12.5, WAW-12.8.
        """
        visited: list[frozenset[Key]] = []
        while True:
            now = frozenset(self.modes.on)
            if now in visited:
                cycle = visited[visited.index(now) :]
                self._hold_only(UnilateralConstraints.most_held(cycle))
                kept = ", ".join(key.label for key in self.holding)
                message = f"no set is consistent; kept: {kept or 'none'}"
                self._note("mode_cycle", message)
                self.evaluation = self._accelerations(self.x, self.v, self.theta)
                return self.evaluation
            visited.append(now)
            evaluation = self._accelerations(self.x, self.v, self.theta)
            key = self._inconsistent(evaluation)
            if key is None:
                self.dropped = self._not_met(evaluation.dropped)
                self.evaluation = evaluation
                return evaluation
            if key in self.modes.on:
                self._let_go(key)
            elif self._slides_at_contact(key):
                self._handle_hits([key])
            else:
                self.modes.add(key, self.x)

    def _inconsistent(self, evaluation: Any) -> Key | None:
        """Return a constraint to add, or else one to let go; None if all is well."""
        modes, omega = self.modes, self.omega
        for key in modes.keys:
            if key in modes.on or abs(modes.gap(key, self.x, self.theta)) > TOUCH:
                continue
            if abs(modes.rate(key, self.v, omega)) > TOUCH or self._covered(key):
                continue
            if modes.rate(key, evaluation.a, evaluation.alpha) < -self._tiny:
                return key
        for key in sorted(modes.on):
            pulls = modes.push(key, evaluation.reaction, evaluation.tau_w) < -self._tiny
            if pulls and not self.latch.holds(key, self.t) and self._may_go(key):
                return key
        return None

    def _covered(self, key: Key) -> bool:
        """Whether another half-plane holds the joint already, so that it rests."""
        ground, on = self.chain.ground, self.modes.on
        others = [k for k in on if k.rank and key.rank and k.joint == key.joint]
        return len(others) > 1 or any(ground[k.which].mode == "stick" for k in others)

    def _slides_at_contact(self, key: Key) -> bool:
        """Whether a joint that is to rest where it touches still moves along there."""
        sticks = key.rank and self.chain.ground[key.which].mode == "stick"
        return bool(sticks) and np.abs(self.v[key.joint]).max() > TOUCH

    def _may_go(self, key: Key) -> bool:
        """Return whether the latch allows a change; a refusal is reported once."""
        if self.latch.release(key, self.t):
            return True
        self._note("chatter", f"{key.label} is kept on for a while", key.joint)
        return False

    def _let_go(self, key: Key) -> None:
        self.modes.remove(key)
        self._note("release", key.label, key.joint)

    def _hold_only(self, keys: frozenset[Key]) -> None:
        for key in set(self.modes.on) - keys:
            self.modes.remove(key)
        for key in keys - self.modes.on:
            self.modes.add(key, self.x)

    def _halved(self, dt: float, depth: int) -> None:
        """Move by dt, in halves where accelerations change much within it.

        Source: WAW-12.11.
        """
        if self.halve_above is not None and depth < HALVINGS:
            evaluation = self._consistent_modes()
            x, v, theta = self._moved(evaluation.a, dt)
            after = self._accelerations(x, v, theta)
            change = np.linalg.norm(after.a - evaluation.a, axis=1).max() * dt
            if change > self.halve_above:
                if depth == 0:
                    self._note("step_halved", f"velocity in doubt by {change:.3g} m/s")
                self._halved(dt / 2, depth + 1)
                self._halved(dt / 2, depth + 1)
                return
        self._quantum(dt, 0)

    def _moved(self, a: np.ndarray, dt: float) -> tuple[Any, Any, Any]:
        x = self.x + dt * self.v + 0.5 * dt * dt * a
        v = self.v + dt * a
        theta = joint_angles(self.chain, ChainState(x, v), near=self.theta)
        return x, v, theta

    def _quantum(self, dt: float, depth: int) -> None:
        """Move by dt, meeting the hits in it in their order.

        Source: WAW-7.2, WAW-7.3, WAW-12.2, WAW-12.4, WAW-12.12.
        """
        evaluation = self._consistent_modes()
        x, v, theta = self._moved(evaluation.a, dt)
        hits = self._hits(evaluation, x, v, theta, dt) if depth < DEPTH else []
        if depth >= DEPTH:
            self._note("event_limit", f"{DEPTH} events within one quantum")
        if not hits:
            self.x, self.v, self.theta, self.t = x, v, theta, self.t + dt
            return
        eps = max(when for when, _ in hits)
        self.x = x - eps * v + 0.5 * eps * eps * evaluation.a
        self.v = v - eps * evaluation.a
        here = ChainState(self.x, self.v)
        self.theta = joint_angles(self.chain, here, near=theta)
        self.t += dt - eps
        self._handle_hits([key for when, key in hits if eps - when < HIT])
        if eps > 0:
            self._quantum(eps, depth + 1)

    def _hits(
        self, evaluation: Any, x: Any, v: Any, theta: Any, dt: float
    ) -> list[tuple[float, Key]]:
        """Return constraints that the quantum broke, with the time since then."""
        modes, hits = self.modes, []
        rates = joint_rates(self.chain, ChainState(x, v))
        turns = joint_rates(self.chain, ChainState(x, evaluation.a))
        for key in modes.keys:
            d = modes.gap(key, x, theta)
            if key in modes.on or d >= -HIT or self._covered(key):
                continue
            w, u = modes.rate(key, v, rates), modes.rate(key, evaluation.a, turns)
            root = w * w - 2 * u * d
            down = w - math.sqrt(max(root, 0.0))
            eps = min(max(2 * d / down if down < 0 else 0.0, 0.0), dt)
            if w - u * eps < 0:
                hits.append((eps, key))
        return hits

    def _handle_hits(self, keys: list[Key]) -> None:
        """Let constraints be hit; what would pull is let go.

        Source: WAW-7.1, WAW-7.5, WAW-12.3.
        """
        modes = self.modes
        for key in keys:
            modes.add(key, self.x)
            self._touched.append(key)
        whole = modes.snapshot()
        for _ in range(len(modes.on) + 1):
            result, pushes = self._solve_impact(keys)
            wrong = [
                key
                for key, push in pushes.items()
                if push < -self._tiny and not self.latch.holds(key, self.t)
            ]
            for key in wrong:
                modes.remove(key)
            if not wrong:
                break
        after = joint_rates(self.chain, ChainState(self.x, result.v_next))
        gone = whole[0] - modes.on
        goes_on = any(modes.rate(key, result.v_next, after) < -TOUCH for key in gone)
        kept = [key for key in sorted(gone) if not goes_on and not self._may_go(key)]
        if goes_on or kept:
            modes.restore(whole)  # it would go on, or chatters: all is kept
            result, pushes = self._solve_impact(keys)
        elif not modes.on:
            self._note("release", "all that was hit would have to pull")
        self.v, self.lost = result.v_next, self.lost + result.loss
        for key in keys:
            push = pushes.get(key, 0.0)
            self._note("hit", key.label, key.joint, result.loss, push)
        if len(self._touched) > EVENTS:
            self._note(
                "event_limit", f"more than {EVENTS} events in a step: all is kept on"
            )
            for key in set(self._touched):
                modes.add(key, self.x)
                self.latch.keep(key, self.t + self.dt)

    def _solve_impact(self, keys: list[Key]) -> tuple[Any, dict[Key, float]]:
        """Solve an impact on what holds; return it, and the push of each key."""
        modes, n = self.modes, self.chain.n
        joints = modes.arrays(self.x, self.v, self.theta, self.omega, None)
        jump, turn = np.zeros((n, 2)), np.zeros(n)
        for key in keys:
            if key in modes.on and key.rank:
                jump[key.joint] = -self.v[key.joint]
            elif key in modes.on:
                turn[key.joint] = -self.omega[key.joint]
        result = self._impact(
            self.x, self.v, jump, turn, joints.kind, joints.s, joints.active
        )
        pushes = {
            key: modes.push(key, result.impulse, result.torque_impulse)
            for key in modes.on
        }
        return result, pushes
