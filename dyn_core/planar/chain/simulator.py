"""Event-driven simulation of planar chains: hits, rewinds, releases, reports.

n is the number of the chain's joints.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import NonFiniteError
from dyn_core.planar.chain.modes import Key, UnilateralConstraints
from dyn_core.planar.chain.moving_chain import MovingChain
from dyn_core.planar.chain.schemes import SCHEMES, first_root
from dyn_core.planar.chain.states import (
    ChainState,
    joint_angles,
    joint_rates,
)
from dyn_core.validation import known_keywords

TOUCH = 1e-9  # gaps and rates below it count as touching [m, rad; m/s, rad/s]
HIT = 1e-12  # penetration from which a constraint counts as hit [m, rad]
DEPTH = 20  # maximum number of nested hits within one step
EVENTS = 50  # hits in a step above which all that were hit stay active
HALVINGS = 12
STIFF = 0.01  # slack / length below which the motion is stiff


class Arrival(NamedTuple):
    """Result of a step: x, v, (n, 2) [m], [m/s], and unwrapped angles, n-1 [rad]."""

    x: np.ndarray
    v: np.ndarray
    theta: np.ndarray


@known_keywords
class ChainSimulator(MovingChain):
    """A planar chain that moves step by step, with impacts, releases and limits.

    A step: accelerations, releasing constraints that would pull one at a time; the
    motion by a scheme; if there is a hit, rewind to the earliest, impact, and the rest
    of the step again. If accelerations change much in a step, it is replaced by two
    halves.

    Impacts of several joints at one instant are approximate: joints whose impulse would
    pull are released one at a time, and stopped again when they hit again. The result
    is usually the solution of the complementarity problem of all impulses; if joints
    are released and hit alternately, it differs by some 1e-3 m/s. Energy never
    increases.

    Schemes: `rk4` conserves the energy of a freely swinging chain for hours;
    `semi_implicit` needs one evaluation of the accelerations instead of four, and its
    energy drifts slowly; `quantum` is the source's, for its reference trajectories: its
    energy and errors of the links grow.

    For the arguments see MovingChain.__init__ and at_angles. Where accelerations are
    evaluated, an acceleration or additional force that is not finite raises
    NonFiniteError, a function of forces that returns another shape ShapeError, and a
    torque at the last joint InfeasibleError: below, the errors of an evaluation.

    Attributes:
        chain: Planar chain.
        scheme: Integration scheme between events: rk4, semi_implicit or quantum.
        x, v: Positions and velocities of the joints, (n, 2) [m], [m/s].
        theta: Angles of the joints but the last, unwrapped, n-1 [rad].
        t: Time [s].
        events: The latest `keep` events.
        evaluation: Outputs of CHAIN_ACCELERATIONS (a, F_d, tau_w, alpha, reaction,
            dropped) in the last evaluation, or None before it.
        dropped: Descriptions of the equations not met in the last evaluation.
        lost: Energy lost in impacts so far [J].

    Source: WAW-3.1, WAW-7.3, WAW-12.12.
    """

    def step(self, tau: Any = None, forces: Any = None) -> ChainState:
        """Move by one step `dt` and return copies of the positions and velocities.

        After an error, also one of `forces`, all is as before the step, also `t` and
        `lost`; only events and latches of the step stay.

        Args:
            tau: Torques at the joints but the last, n-1 (or n with 0 at the end) [N·m];
                None or empty: zero.
            forces: Additional forces on the joints, (n, 2) [N], or a function of (t,
                state) that returns them, called in each evaluation, state a ChainState;
                None: zero.

        Raises:
            ShapeError: Torques or forces have the wrong size.
            InfeasibleError: The last of n torques is not 0.
            NonFiniteError: They, or the motion, are not finite; for the motion it names
                step and joint.
        """
        self._tau = self._torques(tau)
        fixed = forces is None or callable(forces)
        self._extra = forces if fixed else self._rows("forces", forces)
        self._touched = []
        before, end = self.motion(), self.t + self.dt
        self.steps += 1
        try:
            self._halved(self.dt, 0)
        except BaseException as error:
            self.return_to(before)
            stiff = self._nearly_taut()
            if not isinstance(error, NonFiniteError) or error.name != "a" or not stiff:
                raise
            message = f"{error}; {stiff}: it takes a shorter dt"
            raise NonFiniteError(message, error.name) from error
        self.t = end
        return self.state

    def _consistent_modes(self) -> Any:
        """Make the active set consistent; return its outputs of CHAIN_ACCELERATIONS.

        One constraint at a time is activated or released. The method updates `modes`,
        `evaluation`, `dropped`, `taut` and the latch. An impact, of a taut link or of a
        joint that slides where it should stick, changes `v` and `lost`. If the sets
        repeat, the largest set of the cycle is used, and `dropped` is not updated.

        Source: WAW-7.4, WAW-12.5, WAW-12.8.
        """
        self._stop_taut()
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

    def _stop_taut(self) -> None:
        """Stop taut links between their ends by an impact, and update `taut`.

        The impact changes `v`, `lost` and the active set. Taut links are fixed: the
        less slack a chain has, the less it can move. The forces on the ends are
        unbounded.
        """
        taut = self.modes.taut(self.x)
        wrong = [self.v[part.inner] - part.between(self.v) for part in taut]
        if any(np.abs(error).max() > TOUCH for error in wrong):
            self._handle_hits([])
        for part in taut:
            if part not in self.taut:
                self._note("taut", f"{part.label} are stretched straight")
        self.taut = taut

    def _nearly_taut(self) -> str:
        """Return a description of the links with little slack for their reach."""
        return ", ".join(
            f"{part.label} have a slack of {part.slack(self.x):.3g} m only"
            for part in self.modes.stretches
            if part.slack(self.x) <= STIFF * part.reach
        )

    def _inconsistent(self, evaluation: Any) -> Key | None:
        """Return a constraint to activate, else one to release, else None.

        It is the first in the order of keys: limits, then ground, by joint. The active
        set is not changed; the latch records an allowed release, and a refused one is a
        chatter event.
        """
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
        """Return whether active contacts make an inactive ground contact redundant."""
        ground, on = self.chain.ground, self.modes.on
        others = [k for k in on if k.rank and key.rank and k.joint == key.joint]
        return len(others) > 1 or any(ground[k.which].mode == "stick" for k in others)

    def _slides_at_contact(self, key: Key) -> bool:
        """Return whether the joint of a ground key moves although the mode is stick."""
        sticks = key.rank and self.chain.ground[key.which].mode == "stick"
        return bool(sticks) and np.abs(self.v[key.joint]).max() > TOUCH

    def _may_go(self, key: Key) -> bool:
        """Return whether the latch allows a release now, and record the answer."""
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
        """Move by dt, in two halves if accelerations change much within it.

        The largest change of an acceleration, times dt, is compared with `halve_above`.
        The state, the active set and `t` are updated.

        Source: WAW-12.11.
        """
        evaluation = self._consistent_modes()
        if self.halve_above is None or depth == HALVINGS:
            self._meet_hits(evaluation, self._moved(evaluation.a, dt), dt, 0)
            return
        change = math.inf
        try:
            end = self._moved(evaluation.a, dt)
            after = self._accelerations(*end, dt)
            change = np.linalg.norm(after.a - evaluation.a, axis=1).max() * dt
        except NonFiniteError:
            pass  # shorter steps may not go there
        if change <= self.halve_above:
            self._meet_hits(evaluation, end, dt, 0)
            return
        if depth == 0:
            self._note("step_halved", f"velocity in doubt by {change:.3g} m/s")
        self._halved(dt / 2, depth + 1)
        self._halved(dt / 2, depth + 1)

    def _moved(self, a: np.ndarray, dt: float) -> Arrival:
        """Return the Arrival after dt without hits; the state is not changed.

        `a` (n, 2) are the accelerations at the start.
        """

        def accelerate(x: np.ndarray, v: np.ndarray, since: float) -> np.ndarray:
            theta = joint_angles(self.chain, ChainState(x, v), near=self.theta)
            return np.asarray(self._accelerations(x, v, theta, since).a)

        x, v = SCHEMES[self.scheme].step(self.x, self.v, dt, a, accelerate)
        return Arrival(
            x, v, joint_angles(self.chain, ChainState(x, v), near=self.theta)
        )

    def _meet_hits(self, evaluation: Any, end: Arrival, dt: float, depth: int) -> None:
        """Move by dt, handling hits in their order; update state, active set and `t`.

        `evaluation` is at the start, `end` the Arrival without hits, `depth` the number
        of earlier hits in this step.

        Source: WAW-7.2, WAW-7.3, WAW-12.2, WAW-12.4, WAW-12.12.
        """
        if depth >= DEPTH:
            self._note("event_limit", f"{DEPTH} events within one step")
        first = self._first_hit(evaluation, end, dt) if depth < DEPTH else None
        if first is None:
            self.x, self.v, self.theta = end
            self.t += dt
            return
        when, (self.x, self.v, self.theta), keys = first
        self.t += when
        self._handle_hits(keys)
        rest = dt - when
        if rest > 0:
            evaluation = self._consistent_modes()
            end = self._moved(evaluation.a, rest)
            self._meet_hits(evaluation, end, rest, depth + 1)

    def _first_hit(
        self, evaluation: Any, end: Arrival, dt: float
    ) -> tuple[float, Arrival, list[Key]] | None:
        """Return the first hit within dt, or None; the state is not changed.

        It is the time since the start, Arrival then, and keys that are hit.
        `evaluation` is at the start, `end` the Arrival without hits.
        """
        modes = self.modes
        broken = [
            key
            for key in modes.keys
            if modes.gap(key, end.x, end.theta) < -HIT
            and key not in modes.on
            and not self._covered(key)
        ]
        if not broken:
            return None
        if self.scheme == "quantum":
            return self._hit_of_quantum(broken, evaluation, end, dt)
        return self._hit_on_path(broken, evaluation, end, dt)

    def _hit_of_quantum(
        self, broken: list[Key], evaluation: Any, end: Arrival, dt: float
    ) -> tuple[float, Arrival, list[Key]] | None:
        """Return _first_hit under constant accelerations, in closed form.

            d - w eps + u eps² / 2 = 0,   eps the time since the hit

        with d, w, u the gap, its rate and its acceleration at the end. Angles are not
        quadratic in time: for them this is the source's estimate.

        Source: WAW-7.2, WAW-12.2.
        """
        modes, hits = self.modes, []
        rates = joint_rates(self.chain, ChainState(end.x, end.v))
        turns = joint_rates(self.chain, ChainState(end.x, evaluation.a))
        for key in broken:
            d = modes.gap(key, end.x, end.theta)
            w, u = modes.rate(key, end.v, rates), modes.rate(key, evaluation.a, turns)
            root = w * w - 2 * u * d
            down = w - math.sqrt(max(root, 0.0))
            eps = min(max(2 * d / down if down < 0 else 0.0, 0.0), dt)
            if w - u * eps < 0:
                hits.append((eps, key))
        if not hits:
            return None
        eps = max(since for since, _ in hits)
        keys = [key for since, key in hits if eps - since < HIT]
        return dt - eps, self._moved(evaluation.a, dt - eps), keys

    def _hit_on_path(
        self, broken: list[Key], evaluation: Any, end: Arrival, dt: float
    ) -> tuple[float, Arrival, list[Key]] | None:
        """Return _first_hit on the path, by steps of varied length.

            minimum of gap(position after `when`) - level = 0

        level is 0 or, if less, the gap at the start minus HIT. Constraints that are
        violated at the start and approached are hit at time 0. None if those that reach
        their level are not approached.

        Source: WAW-7.2.
        """
        modes, here = self.modes, Arrival(self.x, self.v, self.theta)
        now = {key: modes.gap(key, self.x, self.theta) for key in broken}
        keys = self._approached([key for key in broken if now[key] <= -HIT], here)
        if keys:
            return 0.0, here, keys
        # A constraint in contact may lift off and return: it counts if it is deeper
        # then.
        level = {key: min(0.0, now[key] - HIT) for key in broken}
        broken = [k for k in broken if modes.gap(k, end.x, end.theta) < level[k]]
        if not broken:
            return None

        def above(key: Key, place: Arrival) -> float:
            return modes.gap(key, place.x, place.theta) - level[key]

        def least(when: float) -> float:
            place = self._moved(evaluation.a, when) if when else here
            return min(above(key, place) for key in broken)

        when = first_root(least, dt)
        there = self._moved(evaluation.a, when)
        near = [key for key in broken if above(key, there) <= HIT]
        keys = self._approached(near, there)
        return (when, there, keys) if keys else None

    def _approached(self, keys: list[Key], there: Arrival) -> list[Key]:
        """Return the constraints whose gap decreases in the Arrival `there`."""
        rates = joint_rates(self.chain, ChainState(there.x, there.v))
        return [key for key in keys if self.modes.rate(key, there.v, rates) < 0]

    def _handle_hits(self, keys: list[Key]) -> None:
        """Apply an impact to the active constraints and `keys`; release pulling ones.

        `keys` are empty for taut links alone. `modes`, `v`, `lost` and the latch are
        updated. Released constraints are active again if the chain would move on into
        one, or if the latch refuses. After EVENTS hits in a step all constraints hit in
        it are held.

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
        for k, key in enumerate(keys):
            loss, push = 0.0 if k else result.loss, pushes.get(key, 0.0)
            self._note("hit", key.label, key.joint, loss, push)
        if len(self._touched) > EVENTS:
            self._note(
                "event_limit", f"more than {EVENTS} events in a step: all is kept on"
            )
            for key in set(self._touched):
                modes.add(key, self.x)
                self.latch.keep(key, self.t + self.dt)

    def _solve_impact(self, keys: list[Key]) -> tuple[Any, dict[Key, float]]:
        """Return the outputs of chain_impact, and the push of each active constraint.

        The state is not changed. Active `keys` stop, a sliding joint only along the
        normal; inner joints of taut links get velocities interpolated between the ends.
        A push is an impulse into the free side [N·s | N·m·s].
        """
        modes, n = self.modes, self.chain.n
        joints = modes.arrays(self.x, self.v, self.theta, self.omega, math.inf)
        jump, turn = np.zeros((n, 2)), np.zeros(n)
        for part in modes.taut(self.x):
            jump[part.inner] = part.between(self.v) - self.v[part.inner]
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
