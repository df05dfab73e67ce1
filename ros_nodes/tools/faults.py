"""The faults of `dyn check-node`, as data: what happens, and what must follow."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, unknown_name
from ros_nodes._watchdog import period_of

ALONE, PAIR, CLOCK, KERNEL = "alone", "pair", "clock", "kernel"
HOLDING, MOVING, INACTIVE = "holding", "moving", "inactive"
STOPS, GOES_ON, RETURNS = "stops", "goes on", "returns"
QUIET, SOUND = "quiet", "sound"
COMMANDS, APPLIED = "commands", "applied"
PERIOD = 0.004  # of the joint states that are sent [s]
MARGIN = 0.1  # of communication and of a machine that has other work, too [s]
PROMISED = 0.005  # after a timeout and two periods of its watchdog [s]
STALL = 1.0  # that a solver stands still [s]
BLOCKED = 2.0  # that an executor, or the interpreter's lock, is blocked [s]
PAUSE = 0.5  # of joint states that come back [s]
JUMP = 10.0  # of /clock [s]
WATCHED = 0.5  # how long efforts are watched after the bound [s]


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    Attributes:
        name: What --only takes.
        meaning: What happens.
        inject: Lets it happen on a FaultStand.
        mode: alone: the controller, to which the test stand sends joint states; pair:
            simulator and controller; clock: alone, in simulated time; kernel: no node;
            else the way in which the controller's solver fails.
        follows: STOPS: the effort must become zero and stay so; GOES_ON: it must go on;
            RETURNS: it may pause at zero, and must come back; QUIET: there must be no
            effort; SOUND: each must be zero, or what `prepare` has shown to be right.
        after: What the bound consists of: a key of `bounds`.
        watch: commands: what the controller sends; applied: what acts on the robot.
        extra: Longer watch [s].
        until: Part of a line of the controller's log until which the watch lasts.
        says: What diagnostics must contain.
        state: What the controller does before: it holds, moves or is inactive.
        guard: Whether the guard watches the controller.
        prepare: Called before the fault.
    """

    name: str
    meaning: str
    inject: Callable[[Any], object]
    mode: str = ALONE
    follows: str = STOPS
    after: str = "stale"
    watch: str = COMMANDS
    extra: float = 0.0
    until: str = ""
    says: str = ""
    state: str = HOLDING
    guard: bool = False
    prepare: Callable[[Any], object] = lambda stand: None


def bounds(parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return by kind the time after which the effort must be zero [s].

    Args:
        parameters: Of the nodes, by name; those that are missing have their defaults.
    """
    control, robot = parameters["computed_torque"], parameters["simulator"]
    state = float(control.get("state_timeout", 0.1))
    command = float(robot.get("command_timeout", 0.1))
    stop = float(control.get("stop_time", 2.0))
    kinds = {"zero": 0.0, "ramp": stop, "hold": math.inf}
    # Last good efforts are sent meanwhile, and then the stop.
    cycle = PERIOD * (1 + int(control.get("last_good_cycles", 3)))
    guard = parameters.get("guard", {})
    return {
        "state": state,
        "stale": _answered(state) + kinds[control.get("on_stale", "zero")],
        "command": _answered(command),
        "cycle": cycle,
        "violation": cycle + kinds[control.get("on_violation", "zero")],
        "estop": MARGIN + kinds[control.get("on_estop", "zero")],
        "end": _answered(command) + kinds[control.get("on_shutdown", "zero")],
        "guard": float(guard.get("effort_timeout", 0.2)) + PROMISED,
        "lost": _answered(float(control.get("guard_timeout", 0.2)))
        + kinds[control.get("on_violation", "zero")],
    }


def _answered(timeout: float) -> float:
    """Return the time after which a watchdog has answered a silence [s]."""
    return timeout + 2 * period_of(timeout) + PROMISED


def _fed(**changes: Any) -> Callable[[Any], object]:
    """Return a fault of the joint states that the test stand sends."""

    def inject(stand: Any) -> None:
        stand.feed = {**stand.feed, **changes}

    return inject


def _bad(field: str, value: float) -> Callable[[Any], object]:
    """Return a fault of one number of one joint, which the seed chooses."""

    def inject(stand: Any) -> None:
        array = np.array(stand.feed[field], float)
        array[stand.joint] = value
        stand.feed = {**stand.feed, field: array}

    return inject


def _without(stand: Any) -> None:
    left = [k for k in range(len(stand.names)) if k != stand.joint]
    _reorder(stand, left)


def _shuffled(stand: Any) -> None:
    _reorder(stand, stand.rng.permutation(len(stand.names)).tolist())


def _twice(stand: Any) -> None:
    _reorder(stand, [*range(len(stand.names)), stand.joint])


def _reorder(stand: Any, order: list[int]) -> None:
    names = [stand.feed["names"][k] for k in order]
    arrays = {key: np.asarray(stand.feed[key])[order] for key in ("q", "qd")}
    stand.feed = {**stand.feed, "names": names, **arrays}


def _signals(process: str, number: int) -> Callable[[Any], object]:
    return lambda stand: stand.send_signal(process, number)


def _pause(stand: Any) -> None:
    stand.feed = {**stand.feed, "on": False}
    stand.later(PAUSE, lambda: _fed(on=True)(stand))


def _stop_and_resume(stand: Any) -> None:
    stand.send_signal(_CONTROL, signal.SIGSTOP)
    stand.later(2 * PAUSE, lambda: stand.send_signal(_CONTROL, signal.SIGCONT))


def _guard_stands(stand: Any) -> None:
    stand.send_signal(_GUARD, signal.SIGSTOP)
    stand.later(2 * PAUSE, lambda: stand.send_signal(_GUARD, signal.SIGCONT))


def _jumps(seconds: float) -> Callable[[Any], object]:
    return lambda stand: stand.move_clock(seconds)


def _solver(kind: str, meaning: str, **changes: Any) -> Fault:
    """Return a fault of the controller's process, see faulty_controller."""
    names = {"blocking": "executor-blocked", "holding": "lock-held"}
    name = names.get(kind, f"solver-{kind}")
    return Fault(name, meaning, lambda s: s.fail(), mode=kind, **changes)


_CONTROL, _ROBOT, _GUARD = "computed_torque", "simulator", "guard"
_APPLIED: dict[str, Any] = {"mode": PAIR, "watch": APPLIED}
_GUARDED: dict[str, Any] = {"guard": True, "after": "guard"}
_HOLDING: tuple[Fault, ...] = (
    Fault("silent-states", "joint states stop", _fed(on=False)),
    Fault("paused-states", f"joint states pause for {PAUSE:g} s", _pause,
          follows=RETURNS, extra=PAUSE),
    Fault("lost-states", "30 % of the joint states are lost", _fed(lost=0.3),
          follows=GOES_ON),
    Fault("nan-position", "a position is NaN", _bad("q", math.nan)),
    Fault("infinite-velocity", "a velocity is infinite", _bad("qd", math.inf)),
    Fault("missing-joint", "joint states lack a joint", _without),
    Fault("joint-twice", "joint states have a joint twice", _twice),
    Fault("shuffled-joints", "joints in another order", _shuffled, follows=GOES_ON),
    Fault("repeated-states", "each state comes twice", _fed(times=2), follows=GOES_ON),
    Fault("backward-stamps", "stamps run backward", _fed(pace=-1e-3)),
    Fault("old-stamps", "stamps are 10 s old", _fed(age=10.0), after="age"),
    Fault("wrong-transitions", "transitions that do not fit the state",
          lambda s: s.wrong_transitions(), follows=GOES_ON),
    Fault("second-source", "another node sends states of another place",
          lambda s: s.second_source(), follows=SOUND, says="publishers on",
          prepare=lambda s: s.learn_efforts()),
    Fault("estop", "~/estop is called", lambda s: s.estop(), after="estop"),
    Fault("long-trajectory", "a trajectory of 100 000 points",
          lambda s: s.long_trajectory(), mode=PAIR, follows=RETURNS, extra=30.0,
          until="trajectory"),
    Fault("controller-stopped", "SIGSTOP of the controller",
          _signals(_CONTROL, signal.SIGSTOP), after="command", **_APPLIED),
    Fault("simulator-stopped", "SIGSTOP of the simulator",
          _signals(_ROBOT, signal.SIGSTOP), mode=PAIR),
    Fault("controller-killed", "SIGKILL of the controller",
          _signals(_CONTROL, signal.SIGKILL), after="command", **_APPLIED),
    Fault("controller-hangup", "SIGHUP of the controller",
          _signals(_CONTROL, signal.SIGHUP), after="end", extra=0.5, **_APPLIED),
    Fault("simulator-killed", "SIGKILL of the simulator",
          _signals(_ROBOT, signal.SIGKILL), mode=PAIR),
    Fault("simulator-hangup", "SIGHUP of the simulator",
          _signals(_ROBOT, signal.SIGHUP), mode=PAIR),
    Fault("clock-stopped", "/clock stops", _fed(pace=0.0), mode=CLOCK,
          follows=GOES_ON),
    Fault("clock-and-states", "/clock and joint states stop", _fed(pace=0.0, on=False),
          mode=CLOCK),
    Fault("clock-half", "/clock runs at half speed", _fed(pace=PERIOD / 2), mode=CLOCK,
          follows=GOES_ON),
    Fault("clock-back", f"/clock jumps back by {JUMP:g} s", _jumps(-JUMP), mode=CLOCK,
          follows=RETURNS, says="time went back"),
    Fault("clock-ahead", f"/clock jumps ahead by {JUMP:g} s", _jumps(JUMP), mode=CLOCK,
          follows=RETURNS, says="time jumped"),
    Fault("guard-killed", "SIGKILL of the controller; a guard watches",
          _signals(_CONTROL, signal.SIGKILL), **_GUARDED),
    Fault("guard-stopped", "SIGSTOP of the controller; a guard watches",
          _signals(_CONTROL, signal.SIGSTOP), **_GUARDED),
    Fault("guard-resumed", "SIGSTOP of the controller, then SIGCONT; a guard watches",
          _stop_and_resume, extra=4 * PAUSE, **_GUARDED),
    Fault("guard-lost", "SIGKILL of the guard", _signals(_GUARD, signal.SIGKILL),
          guard=True, after="lost", says="the guard is silent"),
    Fault("guard-stands", "SIGSTOP of the guard, then SIGCONT", _guard_stands,
          guard=True, after="lost", says="the guard is silent", extra=4 * PAUSE),
    _solver("holding", f"the interpreter's lock is held for {BLOCKED:g} s; a guard"
            " watches", extra=BLOCKED, **_GUARDED),
    _solver("blocking", f"the controller's executor is blocked for {BLOCKED:g} s"),
    _solver("raises", "the controller's solver raises", after="violation"),
    _solver("nan", "the controller's solver returns NaN", after="violation"),
    _solver("shape", "the controller's solver returns an array that is too short",
            after="violation"),
    _solver("stalls", f"the controller's solver stands still, {STALL:g} s a call",
            extra=2 * STALL),
    Fault("bit-flips", "bits flip in the machine code of a law", lambda s: None,
          mode=KERNEL, follows=SOUND),
)  # fmt: skip
_ONLY_HOLDING = {"second-source", "long-trajectory", "bit-flips", "infinite-velocity",
                 "joint-twice", "repeated-states"}  # fmt: skip
_INACTIVE = {"silent-states", "nan-position", "missing-joint", "old-stamps", "estop",
             "wrong-transitions", "clock-stopped", "clock-back"}  # fmt: skip
# A reset drops the trajectory, and says so.
_DROPPED = ("paused-states", "clock-back", "clock-ahead")


def _moving(fault: Fault) -> Fault:
    """Return a fault while a trajectory is followed."""
    says = "trajectory dropped" if fault.name in _DROPPED else fault.says
    return replace(fault, name=f"{fault.name}-{MOVING}", state=MOVING, says=says)


def _inactive(fault: Fault) -> Fault:
    """Return a fault of an inactive controller: no effort, whatever comes."""
    return replace(fault, name=f"{fault.name}-{INACTIVE}", state=INACTIVE,
                   follows=QUIET, says="inactive")  # fmt: skip


def _every() -> tuple[Fault, ...]:
    """Return all faults; those of one mode and state stand together."""
    every = [
        *_HOLDING,
        *(_moving(f) for f in _HOLDING if f.name not in _ONLY_HOLDING),
        *(_inactive(f) for f in _HOLDING if f.name in _INACTIVE),
    ]
    modes = list(dict.fromkeys(fault.mode for fault in _HOLDING))
    return tuple(sorted(every, key=lambda fault: modes.index(fault.mode)))


FAULTS: tuple[Fault, ...] = _every()


def chosen(only: list[str] | None) -> list[Fault]:
    """Return the faults of these names, or patterns of names; of none, all.

    Raises:
        SettingError: There is no such fault.
    """
    names = [fault.name for fault in FAULTS]
    for name in only or ():
        if not any(fnmatchcase(known, name) for known in names):
            raise SettingError(unknown_name("fault", name, names, limit=None), "only")

    def wanted(fault: Fault) -> bool:
        return not only or any(fnmatchcase(fault.name, name) for name in only)

    return [fault for fault in FAULTS if wanted(fault)]
