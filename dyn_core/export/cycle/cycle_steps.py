"""The steps of a control cycle that are common to all laws: see controller_cycle.py.

Flags are 1.0 or 0.0, conditions are those in dyn_core.authoring. A comparison with NaN
is false; conditions are written so that NaN never causes an effort.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from dyn_core.control import Rules
from dyn_core.control.law_programs import BRAKING
from dyn_core.control.safety.effort_checks import SWINGS
from dyn_core.control.safety.envelope import SHORTEST, envelope_values, value_count
from dyn_core.control.safety.stops import AUTO
from dyn_core.control.states.plausibility import JITTER
from dyn_core.control.states.plausibility import SHORTEST as SHORTEST_STEP
from dyn_core.control.states.state_samples import GLITCH
from dyn_core.numbers.scalar import (
    absolute,
    equal,
    floor,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    where,
)
from dyn_core.spatial import Vector

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
STATUS = ("drives", "waits", "refused", "kept", "stale", "bridges", "stopped")
REQUESTS = ("none", "ramp", "zero", "reset", "disable")
KINDS = ("none", "ramp", "zero", "auto")  # stops, in an input or a setting
DRIVES, WAITS, REFUSED, KEPT, STALE, BRIDGES, STOPPED = map(float, range(7))
NONE, RAMP, ZERO, RESET, DISABLE = map(float, range(5))
CARRIES = float(KINDS.index(AUTO))
STATE_NUMBERS = (
    "heard",  # whether there was a state
    "time",  # of the last cycle [s]
    "seen",  # when the last good state came [s]
    "has",  # whether q and qd are from a good state
    "good",  # consecutive good states, up to good_samples
    "jumps",  # consecutive jumps
    "jumped",  # time of the last one [s]
    "stop",  # none, ramp or zero, as in REQUESTS
    "since",  # time of the stop [s]
    "drove",  # whether sent is an effort of law or stop
    "sent_at",  # its time [s]
    "braking",  # whether it was the effort of a ramp
    "failures",  # consecutive efforts that were not finite
    "fault",  # number of the fault that stopped the robot, see fault_names
    "value",  # of the fault
    "bound",  # of the fault
)
# slewed: how long an effort has changed at its maximum rate [s].
STATE_VECTORS = ("q", "qd", "sent", "last_good", "slewed")
FAULTS = ("effort not finite", "request", "effort oscillates")  # besides bounds
LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True)
class Settings:
    """Constants of a cycle.

    Attributes:
        rules: Rules of the controller.
        limit: Effort limits by joint [N·m | N].
        slew: Maximum rates of the efforts by joint [N·m/s | N/s].
        believed: low, high, fastest and mismatch of a StateCheck, by joint: bounds of
            positions, of speeds, and of the difference between a velocity and the
            motion of the positions; None: all finite states are accepted.
        bounds: Bounds of the envelope, in the order of its values; None: no envelope.
        frame: Link whose speed the envelope bounds; None: none.
        wrapped: By joint, whether differences of positions are wrapped to [-pi, pi).
        aligned: Whether a tool's stiffness, velocity and wrench have the axes of the
            base, not its own.
    """

    rules: Rules
    limit: tuple[float, ...]
    slew: tuple[float, ...]
    believed: tuple[tuple[float, ...], ...] | None
    bounds: tuple[float, ...] | None
    frame: str | None
    wrapped: tuple[bool, ...]
    aligned: bool = True


class CycleInputs(NamedTuple):
    """Inputs of a cycle that all laws have.

    Attributes:
        q, qd: Position and velocity now, (nv,).
        kd: Damping gains of a ramp, (nv,) [1/s]; 20 (BRAKING) where not above 0.
        t: Time [s]; the last time is used if it is not finite.
        fresh: 1 if q and qd are new; else they are ignored.
        request: Number of one of REQUESTS; other numbers mean a stop at zero.
        state: State of the last cycle, flat; zeros to begin.
        stops: on_stale and on_violation by their numbers in KINDS, and stop_time [s];
            None: those of the rules.
    """

    q: Any
    qd: Any
    kd: Any
    t: Any
    fresh: Any
    request: Any
    state: Any
    stops: Any


class Cycle:
    """The steps of one cycle; each variable of its state is an attribute.

    Attributes with the names in STATE_NUMBERS and STATE_VECTORS begin with the values
    in `state` and become those of `state_next`, so that an object serves one call of
    `run`. weight(q, qd, gains) is the effort of gravity compensation with damping.
    """

    heard: Any
    time: Any
    seen: Any
    has: Any
    good: Any
    jumps: Any
    jumped: Any
    stop: Any
    since: Any
    drove: Any
    sent_at: Any
    braking: Any
    failures: Any
    fault: Any
    value: Any
    bound: Any
    q: Any
    qd: Any
    sent: Any
    last_good: Any
    slewed: Any

    def __init__(
        self, model: Any, settings: Settings, weight: Any, now: CycleInputs
    ) -> None:
        q, qd, kd, t, fresh, request, state, stops = now
        self.model, self.settings, self.rules = model, settings, settings.rules
        self.q_now, self.qd_now, self.kd, self.weight = q, qd, kd, weight
        n, k = model.nv, len(STATE_NUMBERS)
        self.zero, rules = Vector.zeros(n), settings.rules
        if stops is None:
            kinds = map(KINDS.index, (rules.on_stale, rules.on_violation))
            stops = (*map(float, kinds), rules.stop_time)
        self.on_stale, self.on_violation, self.stop_time = stops
        for place, name in enumerate(STATE_NUMBERS):
            setattr(self, name, state[place])
        for place, name in enumerate(STATE_VECTORS):
            setattr(self, name, Vector(state[k + n * place : k + n * (place + 1)]))
        self.timed = _finite(t)
        self.t = where(self.timed, t, self.time)
        self._read(request)
        complete = logical_and(self.timed, all_finite((*q, *qd)))
        self.asked = equal(fresh, 1.0)
        self.new = logical_and(self.asked, logical_and(complete, self._believed()))
        self._take_request()
        self._take_sample()

    def run(self, tau: Any, finite: Any, error: Any) -> tuple[Any, Any, Any]:
        """Return effort, next state and report; to be called once.

        The effort, (nv,), is finite and within the limits, the state flat. The report,
        (5,), is: number of the status (0 drives, 1 waits, 2 refused, 3 kept, 4 stale, 5
        bridges, 6 stopped), number of the fault that stopped the robot, see fault_names
        (0: none), its value, its bound, and 1 if the law's effort `tau` was beyond an
        effort limit (not the slew rate), else 0. `finite`: tau and the inputs of the
        law are finite; `error`, (nv,), leads from position to reference.
        """
        silent = self._silence()
        law, limited = self._law(tau, finite, error)
        carried = self._carried()
        stopped = self.stop > NONE
        brief = self.t - self.since <= self.stop_time  # false for NaN
        ramps = logical_and(equal(self.stop, RAMP), brief)
        of_stop = where(ramps, carried, self.zero)
        # a ramp acts at once, and then changes at the bounded rate
        goes_on = logical_and(ramps, self.braking > 0.0)
        braked = where(goes_on, self._bounded(carried)[0], of_stop)
        drives = where(stopped, braked, law)
        # without a new state: the last effort, the stop's, or the stale state's
        was = logical_and(self.drove > 0.0, self.has > 0.0)
        kept = where(self.drove > 0.0, self.sent, self.zero)
        kept = where(stopped, where(was, of_stop, self.zero), kept)
        kept = where(silent, self._of_silence(carried, was), kept)
        kept = where(self.waits, self.zero, kept)
        effort = where(self.acts, drives, kept)
        self.sent = where(self.acts, drives, self.sent)
        self.sent_at = where(self.acts, self.t, self.sent_at)
        self.drove = _flag(logical_or(self.acts, self.drove > 0.0))
        self.braking = where(self.acts, _flag(ramps), self.braking)
        self.good = where(silent, 0.0, self.good)
        effort = self._guarded(effort)
        status = self._status(silent, stopped)
        limited = _flag(logical_and(self.acts, limited))
        report = status, self.fault, self.value, self.bound, limited
        self.time = self.t
        numbers = [getattr(self, name) for name in STATE_NUMBERS]
        vectors = [x for name in STATE_VECTORS for x in getattr(self, name)]
        return effort, Vector((*numbers, *vectors)), Vector(report)

    def _read(self, request: Any) -> None:
        """Set `asks`, `resets` and `disabled` from the number of a request.

        `asks` is 0 none (also for reset 3, disable 4), 1 ramp, or 2 zero, also if
        unknown.
        """
        mild = [equal(request, x) for x in (NONE, RESET, DISABLE)]
        harmless = reduce(logical_or, mild)
        self.asks = where(equal(request, RAMP), RAMP, where(harmless, NONE, ZERO))
        self.resets, self.disabled = mild[1], mild[2]

    def _take_request(self) -> None:
        """End a stop if `resets` holds, or start the stop `asks`, as set by _read.

        A reset also clears the fault and the history of states and efforts.
        """
        resets = self.resets
        self.stop = where(resets, NONE, self.stop)
        for name in ("fault", "value", "bound"):
            setattr(self, name, where(resets, 0.0, getattr(self, name)))
        self._forget(resets, True)
        self._stop(self.asks > NONE, self.asks, (_place(self, "request"), 0.0, 0.0))

    def _take_sample(self) -> None:
        """Accept or refuse the new state; set `new`, `waits`, `acts` and `broke`.

        `new` holds if the state is accepted. `waits` holds with `new` while there are
        too few good states, jumps persist or time went back, and also without it if
        time is not finite or the controller is disabled. `acts` holds if `new` does
        without `waits`, `broke` if the history of states is reset, here or by RESET. An
        accepted state becomes q and qd, unless time went back; `rate` is its velocity,
        see _rate. The history of states and efforts is reset after a jump of position
        or time, or a late state; while waiting, that of efforts, unless the time is not
        finite.
        """
        rules, t, new = self.rules, self.t, self.new
        heard = self.heard > 0.0
        back = logical_and(heard, t < self.time)
        late = logical_and(heard, rules.state_timeout < t - self.seen)
        change = displacement(self.q, self.q_now, self.settings.wrapped)
        far = reduce(logical_or, (rules.max_jump < absolute(x) for x in change))
        moved = logical_and(logical_and(self.has > 0.0, far), logical_not(late))
        moved = logical_and(moved, logical_not(back))
        jump = logical_and(new, logical_or(moved, back))
        breaks = logical_or(logical_or(moved, back), logical_or(late, self.has <= 0.0))
        agrees = logical_or(breaks, self._agrees(change))
        doubted = logical_and(new, logical_not(agrees))
        self.new = new = logical_and(new, agrees)
        # without a usable previous state, the velocity cannot be compared
        self.rate = where(breaks, Vector(self.qd_now), self._rate(change))
        row = logical_and(self.jumps > 0.0, t - self.jumped <= rules.state_timeout)
        jumps = where(row, self.jumps + 1.0, 1.0)
        noted = logical_or(jump, doubted)
        self.jumps = where(noted, jumps, self.jumps)
        self.jumped = where(noted, t, self.jumped)
        breaks = logical_and(new, logical_or(jump, late))
        self.broke = logical_or(breaks, self.resets)
        self._forget(breaks, True)
        takes = logical_and(new, logical_not(back))
        self.q = where(takes, self.q_now, self.q)
        self.qd = where(takes, self.qd_now, self.qd)
        self.has = _flag(logical_or(takes, self.has > 0.0))
        self.heard = _flag(logical_or(new, heard))
        self.seen = where(new, t, self.seen)
        # One cycle waits at least: it tells the caller, whose reference is far then.
        most = float(max(rules.good_samples, 2))
        self.good = where(takes, minimum(self.good + 1.0, most), self.good)
        quiet = rules.state_timeout < t - self.jumped
        alternate = logical_and(self.jumps > float(GLITCH), logical_not(quiet))
        waits = logical_or(self.good < most, alternate)
        waits = logical_and(new, logical_or(waits, back))
        self.waits = logical_or(
            waits, logical_or(self.disabled, logical_not(self.timed))
        )
        self.acts = logical_and(new, logical_not(self.waits))
        self._forget(logical_and(self.waits, self.timed), False)

    def _forget(self, when: Any, samples: bool) -> None:
        """Reset the history of efforts if `when` holds, with `samples` of states."""
        self.drove = where(when, 0.0, self.drove)
        self.braking = where(when, 0.0, self.braking)
        self.slewed = where(when, self.zero, self.slewed)
        self.failures = where(when, 0.0, self.failures)
        self.last_good = where(when, self.zero, self.last_good)
        if samples:
            self.good = where(when, 0.0, self.good)
            self.has = where(when, 0.0, self.has)

    def _stop(self, when: Any, kind: Any, fault: Sequence[Any]) -> None:
        """Start a stop if `when` holds, if it is stronger; set number, value, bound."""
        stronger = logical_and(when, self.stop < kind)
        self.stop = where(stronger, kind, self.stop)
        self.since = where(stronger, self.t, self.since)
        names = ("fault", "value", "bound")
        for name, x in zip(names, fault, strict=True):
            setattr(self, name, where(stronger, x, getattr(self, name)))

    def _silence(self) -> Any:
        """Condition that the last accepted state, even before a reset, is too old."""
        age = self.t - self.seen
        silent = logical_and(self.heard > 0.0, self.rules.state_timeout < age)
        return logical_and(silent, logical_not(self.new))

    def _of_silence(self, carried: Any, was: Any) -> Any:
        """Return the effort without a fresh state, (nv,): `carried` in a ramp, else 0.

        The ramp ends stop_time after the state became stale; in a stop that began
        earlier, stop_time after its begin. There is none if `was` (there was an effort
        and a good state) does not hold, or if the stop (without one, on_stale) is zero.
        """
        stopped = self.stop > NONE
        kind = where(stopped, self.stop, self.on_stale)
        age = self.t - self.seen - self.rules.state_timeout
        age = where(stopped, maximum(age, self.t - self.since), age)
        ramps = logical_and(equal(kind, RAMP), age <= self.stop_time)
        return where(logical_and(was, ramps), carried, self.zero)

    def _law(self, tau: Any, finite: Any, error: Any) -> tuple[Any, Any]:
        """Return the law's effort, limited, and whether it exceeded an effort limit.

        Unless it and the inputs of the law are `finite`, the last good effort is used,
        and `bridges` holds. May start a stop: after more than rules.last_good_cycles
        such efforts in succession, for an oscillation, or outside of the envelope.
        Updates `last_good`, `failures` and `slewed`. `error` is from position to
        reference.
        """
        rules = self.rules
        runs = logical_and(self.acts, equal(self.stop, NONE))
        failures = where(finite, 0.0, self.failures + 1.0)
        over = float(rules.last_good_cycles) < failures
        limited, long = self._bounded(self._limited(tau))
        effort = where(finite, limited, self.last_good)
        large = reduce(
            logical_or,
            (
                logical_not(absolute(x) <= bound)
                for x, bound in zip(tau, self.settings.limit, strict=True)
            ),
        )
        self.last_good = where(runs, effort, self.last_good)
        self.failures = where(runs, failures, self.failures)
        self.bridges = logical_and(runs, logical_not(finite))
        kind = self._kind_of_violation()
        not_finite = (_place(self, FAULTS[0]), failures, 0.0)
        self._stop(logical_and(runs, over), kind, not_finite)
        swings = logical_and(runs, finite)
        self.slewed = where(swings, long, self.slewed)
        self._stop_oscillation(swings, kind)
        bounds = self.settings.bounds
        if bounds is not None:
            outside, fault = self._fault(effort, error, bounds)
            self._stop(logical_and(runs, outside), kind, fault)
        return effort, logical_and(logical_and(runs, finite), large)

    def _fault(
        self, tau: Any, error: Any, bounds: tuple[float, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the condition that an envelope's bound is exceeded, and the worst one.

        The latter is its number from 1 on (see fault_names), the value and the bound;
        zeros for none. The worst has the largest ratio of value to bound; a value that
        is not finite counts as the largest. `error` is from position to reference.
        """
        drove = self.drove > 0.0
        before = where(drove, self.sent, tau)
        dt = maximum(where(drove, self.t - self.sent_at, 0.0), SHORTEST)
        state = Vector(self.q_now), Vector(self.qd_now)
        more = tau, before, error, self.rate, dt, self.settings.frame
        values = envelope_values(self.model, *state, *more)
        outside: Any = False
        fault: tuple[Any, ...] = (0.0, 0.0, 0.0)
        most: Any = 0.0
        for k, (x, bound) in enumerate(zip(values, bounds, strict=True)):
            bad = logical_not(absolute(x) <= bound)
            excess = where(_finite(x), absolute(x) * (1 / bound), LARGEST)
            more = logical_and(bad, logical_or(logical_not(outside), most < excess))
            most = where(more, excess, most)
            this = float(k + 1), x, bound
            fault = tuple(
                where(more, new, old) for new, old in zip(this, fault, strict=True)
            )
            outside = logical_or(outside, bad)
        return outside, fault

    def _stop_oscillation(self, runs: Any, kind: Any) -> None:
        """Stop if a joint's effort has changed at its maximum rate for too long.

        Too long is more than 1.4 times the time from one effort limit to the other.
        """
        pairs = zip(self.settings.limit, self.settings.slew, strict=True)
        most = [SWINGS * 2 * limit / slew for limit, slew in pairs]
        for long, bound in zip(self.slewed, most, strict=True):
            fault = _place(self, FAULTS[2]), long, bound
            self._stop(logical_and(runs, bound < long), kind, fault)

    def _kind_of_violation(self) -> Any:
        """Return on_violation as RAMP or ZERO; auto ramps if limits hold the robot."""
        weight = self.weight(self.q, self.zero, self._gains())
        carries = reduce(
            logical_and,
            (
                absolute(x) <= limit
                for x, limit in zip(weight, self.settings.limit, strict=True)
            ),
        )
        carries = logical_and(equal(self.on_violation, CARRIES), carries)
        ramps = logical_or(equal(self.on_violation, RAMP), carries)
        return where(ramps, RAMP, ZERO)

    def _believed(self) -> Any:
        """Condition that the new state is within the plausibility bounds, if any."""
        if self.settings.believed is None:
            return equal(0.0, 0.0)
        low, high, fastest, _ = self.settings.believed
        inside: Any = equal(0.0, 0.0)
        for k, (x, v) in enumerate(zip(self.q_now, self.qd_now, strict=True)):
            for bound, test in (
                (low[k], low[k] <= x),
                (high[k], x <= high[k]),
                (fastest[k], absolute(v) <= fastest[k]),
            ):
                if math.isfinite(bound):
                    inside = logical_and(inside, test)
        return inside

    def _agrees(self, change: Any) -> Any:
        """Condition that the new and the last state describe one motion.

        As in StateCheck.check_motion, with the time since the last state as period.
        """
        if self.settings.believed is None:
            return equal(0.0, 0.0)
        dt = self.t - self.seen
        shortest, longest = SHORTEST_STEP * dt, dt + JITTER
        agrees: Any = equal(0.0, 0.0)
        rows = zip(change, self.qd, self.qd_now, self.settings.believed[3], strict=True)
        for moved, before, after, most in rows:
            one: Any = absolute(moved - after * dt) <= most * dt
            for rate in (after, (before + after) * 0.5):
                still = equal(rate, 0.0)
                best = where(still, longest, moved / where(still, 1.0, rate))
                for span in (minimum(maximum(best, shortest), longest), longest):
                    one = logical_or(one, absolute(moved - rate * span) <= most * span)
            agrees = logical_and(agrees, one)
        return agrees

    def _rate(self, change: Any) -> Any:
        """Return velocity or difference quotient, nearer to 0; 0 if signs differ."""
        dt = maximum(self.t - self.seen, 1e-9)  # no division by zero
        rates = []
        for moved, v in zip(change, self.qd_now, strict=True):
            smaller = minimum(absolute(moved) / dt, absolute(v))
            signed = where(v < 0.0, -smaller, smaller)
            rates.append(where(moved * v > 0.0, signed, 0.0))
        return Vector(rates)

    def _bounded(self, tau: Any) -> tuple[Any, Any]:
        """Return an effort within the slew rate, and how long joints were limited [s].

        The time is without interruption, 1e-6 in the first cycle, 0 where not limited.
        """
        drove, dt = self.drove > 0.0, maximum(self.t - self.sent_at, 0.0)
        efforts, long = [], []
        rows = zip(tau, self.sent, self.slewed, self.settings.slew, strict=True)
        for x, before, since, slew in rows:
            most = slew * dt
            near = minimum(maximum(x, before - most), before + most)
            near = where(drove, near, x)
            slews = logical_and(drove, logical_not(equal(near, x)))
            efforts.append(near)
            goes_on = logical_and(slews, since > 0.0)
            long.append(where(slews, where(goes_on, since + dt, SHORTEST), 0.0))
        return Vector(efforts), Vector(long)

    def _gains(self) -> Any:
        return Vector(where(x > 0.0, x, BRAKING) for x in self.kd)

    def _carried(self) -> Any:
        """Return gravity compensation with braking, clipped; zeros if not finite."""
        tau = self.weight(self.q, self.qd, self._gains())
        return where(all_finite(tau), self._limited(tau), self.zero)

    def _limited(self, tau: Any) -> Any:
        """Return an effort (nv) clipped to the limits; NaN becomes the upper limit."""
        pairs = zip(tau, self.settings.limit, strict=True)
        return Vector(minimum(maximum(x, -limit), limit) for x, limit in pairs)

    def _guarded(self, tau: Any) -> Any:
        """Return an effort (nv) clipped to the limits; NaN becomes zero."""
        pairs = zip(tau, self.settings.limit, strict=True)
        return Vector(
            where(
                absolute(x) <= limit,
                x,
                where(x > 0.0, limit, where(x < 0.0, -limit, 0.0)),
            )
            for x, limit in pairs
        )

    def _status(self, silent: Any, stopped: Any) -> Any:
        """Return the number of the status, the first that applies.

        The order is REFUSED (time), STOPPED, WAITS, with a new state BRIDGES or DRIVES,
        then STALE, REFUSED (state) and KEPT.
        """
        status = where(self.bridges, BRIDGES, DRIVES)
        refused = logical_and(self.asked, logical_not(self.new))
        kept = where(refused, REFUSED, KEPT)
        status = where(self.new, status, where(silent, STALE, kept))
        status = where(stopped, STOPPED, where(self.waits, WAITS, status))
        return where(self.timed, status, REFUSED)


def _place(cycle: Cycle, name: str) -> float:
    """Return the number of a fault in FAULTS, counted from 1 in fault_names."""
    return float(value_count(cycle.model) + 1 + FAULTS.index(name))


def displacement(q: Any, q_next: Any, wrapped: Sequence[bool]) -> Any:
    """Return the displacement (nv,) from q to q_next, in [-pi, pi) where `wrapped`."""
    change = [b - a for a, b in zip(q, q_next, strict=True)]
    return Vector(
        x - floor((x + math.pi) / (2 * math.pi)) * (2 * math.pi) if turns else x
        for x, turns in zip(change, wrapped, strict=True)
    )


def _finite(x: Any) -> Any:
    """Condition that a number is neither NaN nor infinite."""
    return absolute(x) <= LARGEST


def all_finite(numbers: Sequence[Any]) -> Any:
    """Condition that all numbers, at least one, are finite."""
    return reduce(logical_and, (_finite(x) for x in numbers))


def _flag(condition: Any) -> Any:
    """Return a condition as 1.0 or 0.0."""
    return where(condition, 1.0, 0.0)
