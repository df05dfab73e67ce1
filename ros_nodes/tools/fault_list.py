"""The faults of `dyn check-node`, one entry each: cause and required reaction."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, unknown_name
from ros_nodes.tools.faults import (
    APPLIED,
    BLOCKED,
    CLOCK,
    FOLLOWS,
    GOES_ON,
    INACTIVE,
    JUMP,
    KERNEL,
    MOVING,
    PAIR,
    PAUSE,
    PERIOD,
    QUIET,
    RETURNS,
    SLOW,
    SOUND,
    STALL,
    UNGUARDED,
    Fault,
)

ENCODER = 2 * math.pi / 4096  # step of an encoder of 12 bits [rad]
SHORT = 0.05  # pause of a process, shorter than state_timeout [s]
ROW = 15  # number of consecutive lost states
BURST = 12  # number of states sent at once
FLOOD = 50  # number of calls at once


def _fed(**changes: Any) -> Callable[[Any], object]:
    """Return a function, for Fault.inject, that changes entries of NodeStand.feed."""

    def inject(stand: Any) -> None:
        stand.feed = {**stand.feed, **changes}

    return inject


def _numbers(change: Callable[[np.ndarray, np.ndarray, int], Any]) -> Any:
    """Return a function, for Fault.inject, that changes positions and velocities.

    `change` is called with q, qd and the index of the state since the fault.
    """
    return _fed(alter=change)


def _bad(field: str, value: float, once: bool = False) -> Callable[[Any], object]:
    """Return a function, for Fault.inject, for a wrong number of joint `stand.joint`.

    `field` is "q" or "qd"; with `once`, `value` is added in the first state only.
    """

    def inject(stand: Any) -> None:
        which = np.arange(len(stand.names)) == stand.joint

        def alter(q: np.ndarray, qd: np.ndarray, k: int) -> Any:
            row = {"q": q, "qd": qd}
            wrong = row[field] + value if once else value
            if not once or k == 0:
                row[field] = np.where(which, wrong, row[field])
            return row["q"], row["qd"]

        stand.feed = {**stand.feed, "alter": alter}

    return inject


def _without(stand: Any) -> None:
    """Leave the joint `stand.joint` out of the joint states from now on."""
    left = [k for k in range(len(stand.names)) if k != stand.joint]
    _reorder(stand, left)


def _shuffled(stand: Any) -> None:
    """Send the joints of all joint states in one random order from now on."""
    _reorder(stand, stand.rng.permutation(len(stand.names)).tolist())


def _twice(stand: Any) -> None:
    """Send the joint `stand.joint` twice in each joint state from now on."""
    _reorder(stand, [*range(len(stand.names)), stand.joint])


def _reorder(stand: Any, order: list[int]) -> None:
    """Send only the joints with the given indices in the joint states from now on."""
    names = [stand.feed["names"][k] for k in order]
    arrays = {key: np.asarray(stand.feed[key])[order] for key in ("q", "qd")}
    stand.feed = {**stand.feed, "names": names, **arrays}


def _many_names(stand: Any) -> None:
    """Send joint states with 5000 more joints at zero, and only every third state."""
    feed, more = stand.feed, [f"other_{k}" for k in range(5000)]
    arrays = {x: np.append(feed[x], np.zeros(len(more))) for x in ("q", "qd")}
    names = [*feed["names"], *more]
    stand.feed = {**feed, "names": names, "lost": lambda k: k % 3 > 0, **arrays}


def _signals(process: str, number: int) -> Callable[[Any], object]:
    """Return a function, for Fault.inject, that signals a node, by its executable."""
    return lambda stand: stand.send_signal(process, number)


def _pause_of(inject: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a function, for Fault.inject, that changes joint states for PAUSE seconds.

    It returns at once, with a function that tells whether the fault is over: the joint
    states are the earlier ones, and efforts flow again.
    """

    def briefly(stand: Any) -> Callable[[], bool]:
        before = stand.feed
        inject(stand)
        stand.later(PAUSE, lambda: setattr(stand, "feed", before))
        return lambda: stand.feed is before and stand.flowing_again()

    return briefly


def _stop_for(seconds: float, process: str = "") -> Callable[[Any], object]:
    """Return a function, for Fault.inject, that suspends a process for `seconds`."""

    def inject(stand: Any) -> None:
        name = process or _CONTROL
        stand.send_signal(name, signal.SIGSTOP)
        stand.later(seconds, lambda: stand.send_signal(name, signal.SIGCONT))

    return inject


def _jumps(seconds: float) -> Callable[[Any], object]:
    """Return a function, for Fault.inject, that moves simulated time."""
    return lambda stand: stand.move_clock(seconds)


def _solver(kind: str, meaning: str, **changes: Any) -> Fault:
    """Return the Fault of a failing solver or executor, see faulty_controller."""
    names = {"blocking": "executor-blocked", "holding": "lock-held"}
    name = names.get(kind, f"solver-{kind}")
    return Fault(name, meaning, lambda s: s.fail(), solver=kind, **changes)


def _bad_solver(kind: str, meaning: str) -> Fault:
    """Return the Fault of a solver without valid effort; `meaning` is a predicate."""
    what = f"the controller's solver {meaning}"
    return _solver(kind, what, after="violation", says="ERROR: stopped: torque not")


def _neighbour(kind: str) -> Callable[[Any], object]:
    """Return a function, for Fault.inject, that starts a process of `neighbours`."""
    return lambda stand: stand.neighbour(kind)


_CONTROL, _ROBOT, _GUARD = "computed_torque", "simulator", "guard"
_APPLIED: dict[str, Any] = {"mode": PAIR, "watch": APPLIED}
_GUARDED: dict[str, Any] = {"guard": True, "after": "guard"}
_LATCHED: dict[str, Any] = {"guard": True, "after": "latch", "extra": 20.0,
                            "says": "ERROR: stopped"}  # fmt: skip
_LOST: dict[str, Any] = {"guard": True, "after": "lost", "says": "the guard is silent"}
_IMPOSSIBLE: dict[str, Any] = {"needs": "limits", "says": "joint states refused"}
_ON: dict[str, Any] = {"follows": GOES_ON}
# Tried twice: while the robot is held, and while it moves.
_TWICE: tuple[Fault, ...] = (
    Fault("silent-states", "joint states stop", _fed(on=False)),
    Fault("paused-states", f"joint states pause for {PAUSE:g} s",
          _pause_of(_fed(on=False)),
          follows=RETURNS, extra=20.0),
    Fault("lost-states", "30 % of the joint states are lost",
          lambda s: _fed(lost=lambda k: s.rng.random() < 0.3)(s), **_ON),
    Fault("nan-position", "a position is NaN", _bad("q", math.nan)),
    Fault("missing-joint", "joint states lack a joint", _without),
    Fault("shuffled-joints", "joints in another order", _shuffled, **_ON),
    Fault("position-30", "a position is 30 rad", _bad("q", 30.0), **_IMPOSSIBLE),
    Fault("velocity-1e3", "a velocity is 1e3 rad/s", _bad("qd", 1e3), **_IMPOSSIBLE),
    Fault("velocity-3", "a velocity is 3 rad/s, and the joint stands",
          _bad("qd", 3.0), after="doubt", **_IMPOSSIBLE),
    Fault("velocity-pause", f"a velocity is 3 rad/s for {PAUSE:g} s, the joint stands",
          _pause_of(_bad("qd", 3.0)), follows=RETURNS, extra=60.0,
          needs="limits"),
    Fault("spike-position", "one position is wrong by 0.49 rad",
          _bad("q", 0.49, once=True), follows=FOLLOWS, needs="limits"),
    Fault("spike-velocity", "one velocity is wrong by 50 rad/s",
          _bad("qd", 50.0, once=True), follows=FOLLOWS, needs="limits"),
    Fault("backward-stamps", "stamps run backward", _fed(pace=-1e-3)),
    Fault("frozen-state", "the last state comes again and again, with its stamp",
          _fed(pace=0.0), says="its stamp stands still"),
    Fault("old-stamps", "stamps are 10 s old", _fed(age=10.0), needs="age",
          says="clock of its source differs"),
    Fault("wrong-transitions", "transitions that do not fit the state",
          lambda s: s.wrong_transitions(), **_ON),
    Fault("pipelined-transitions", "deactivate, cleanup, configure, activate, sent"
          " without waiting, five times", lambda s: s.pipelined_transitions(),
          follows=RETURNS, extra=60.0),
    Fault("estop", "~/estop is called", lambda s: s.estop(), after="estop"),
    Fault("disabled", "~/enable false is called", lambda s: s.enable(False),
          after="estop", says="WARN: disabled"),
    Fault("gain-1e9", "gains.<joint>.d is set to 1e9", lambda s:
          s.refused(f"gains.{s.names[s.joint]}.d", 1e9), extra=10.0, **_ON),
    Fault("short-stop", f"SIGSTOP of the controller for {SHORT:g} s", _stop_for(SHORT),
          **_ON),
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
    Fault("clock-stopped", "/clock stops, and the stamps with it", _fed(pace=0.0),
          mode=CLOCK, says="WARN: paused"),
    Fault("clock-paused", f"/clock and the stamps stand for {PAUSE:g} s",
          _pause_of(_fed(pace=0.0)), mode=CLOCK, follows=RETURNS, extra=20.0,
          unsaid="dropped"),
    Fault("clock-and-states", "/clock and joint states stop", _fed(pace=0.0, on=False),
          mode=CLOCK),
    Fault("clock-half", "/clock runs at half speed", _fed(pace=PERIOD / 2), mode=CLOCK,
          **_ON),
    Fault("clock-back", f"/clock jumps back by {JUMP:g} s", _jumps(-JUMP), mode=CLOCK,
          follows=RETURNS, says="time went back"),
    Fault("clock-ahead", f"/clock jumps ahead by {JUMP:g} s", _jumps(JUMP), mode=CLOCK,
          follows=RETURNS, says="time jumped"),
    Fault("guard-killed", "SIGKILL of the controller; a guard watches",
          _signals(_CONTROL, signal.SIGKILL), **_GUARDED),
    Fault("guard-stopped", "SIGSTOP of the controller; a guard watches",
          _signals(_CONTROL, signal.SIGSTOP), **_GUARDED),
    Fault("guard-resumed", "SIGSTOP of the controller, then SIGCONT; a guard watches",
          _stop_for(2 * PAUSE), extra=4 * PAUSE, **_GUARDED),
    Fault("guard-lost", "SIGKILL of the guard while the controller drives",
          _signals(_GUARD, signal.SIGKILL), **_LOST),
    _solver("holding", f"the interpreter's lock is held for {BLOCKED:g} s; a guard"
            " watches", extra=BLOCKED, **_GUARDED),
    _solver("blocking", f"the controller's executor is blocked for {BLOCKED:g} s"),
    _bad_solver("raises", "raises"),
    _bad_solver("nan", "returns NaN"),
    _bad_solver("shape", "returns an array that is too short"),
    _solver("stalls", f"the controller's solver stands still, {STALL:g} s a call",
            extra=2 * STALL),
    _solver("hangs", "the controller's solver does not return",
            says="ERROR: the executor has not answered", logs="has not answered"),
    _solver("sign", "the controller's solver has the wrong sign", mode=PAIR,
            after="law", says="ERROR: stopped"),
    _solver("huge", "the controller's solver returns 1e9 times the effort", mode=PAIR,
            after="law", says="ERROR: stopped"),
)  # fmt: skip


def _target(topic: str, *numbers: float, **more: Any) -> Callable[[Any], object]:
    """Return a function, for Fault.inject, that sends targets of the tool.

    `numbers` are 7 for a pose, position and quaternion x, y, z, w, else 6, angular,
    then linear; `more` are frame (header.frame_id) and age (of the stamps [s]).
    """
    return lambda stand: stand.target(topic, *numbers, **more)


def _estop_and_lead(stand: Any) -> None:
    """Call ~/estop of the controller, and send poses of the tool nevertheless."""
    stand.estop()
    stand.target("target_pose", *_HERE)


_HERE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
_REFUSED: dict[str, Any] = {"needs": "cartesian", "says": "messages refused", **_ON}
_TOOL: tuple[Fault, ...] = (
    Fault("tool-pose-nan", "a target pose has NaN",
          _target("target_pose", math.nan, *_HERE[1:]), **_REFUSED),
    Fault("tool-quaternion", "the quaternion of a target pose has the length 0.5",
          _target("target_pose", *_HERE[:6], 0.5), **_REFUSED),
    Fault("tool-frame", "a target pose has an unknown frame",
          _target("target_pose", *_HERE, frame="nowhere"), **_REFUSED),
    Fault("tool-jump", "a target pose is 30 m away",
          _target("target_pose", 30.0, *_HERE[1:]), **_REFUSED),
    Fault("tool-old-stamp", "target wrenches are 10 s old",
          _target("target_wrench", *[1.0] * 6, age=10.0), **_REFUSED),
    Fault("tool-future-stamp", "target wrenches are 10 s ahead",
          _target("target_wrench", *[1.0] * 6, age=-10.0), **_REFUSED),
    Fault("tool-twist-nan", "a target twist has NaN",
          _target("target_twist", *[math.nan] * 6), **_REFUSED),
    Fault("tool-wrench-infinite", "a target wrench is infinite",
          _target("target_wrench", *[math.inf] * 6), **_REFUSED),
    Fault("tool-wrench-large", "a target wrench is 1e8 N",
          _target("target_wrench", *[1e8] * 6), **_REFUSED),
    Fault("tool-twist-large", "a target twist is 1e8 m/s",
          _target("target_twist", *[1e8] * 6), **_REFUSED),
    Fault("tool-stiffness", "a target stiffness is negative",
          _target("target_stiffness", *[-1.0] * 6), **_REFUSED),
    Fault("tool-stopped", "~/estop is called, and target poses come", _estop_and_lead,
          after="estop", needs="cartesian"),
)  # fmt: skip
_ONCE: tuple[Fault, ...] = (
    Fault("infinite-velocity", "a velocity is infinite", _bad("qd", math.inf)),
    Fault("joint-twice", "joint states have a joint twice", _twice),
    Fault("position-1e6", "a position is 1e6 rad", _bad("q", 1e6), **_IMPOSSIBLE),
    Fault("position-1e300", "a position is 1e300 rad", _bad("q", 1e300), **_IMPOSSIBLE),
    Fault("degrees", "positions are in degrees", _numbers(
          lambda q, qd, k: (np.degrees(q), qd)), **_IMPOSSIBLE),
    Fault("velocity-30", "a velocity is 30 rad/s", _bad("qd", 30.0), **_IMPOSSIBLE),
    Fault("velocity-1e6", "a velocity is 1e6 rad/s", _bad("qd", 1e6), **_IMPOSSIBLE),
    Fault("frozen-positions", "positions stand, velocities are 2 rad/s", _numbers(
          lambda q, qd, k: (q, 0 * qd + 2.0)), after="doubt", **_IMPOSSIBLE),
    Fault("spike-small", "one position is wrong by 0.01 rad",
          _bad("q", 0.01, once=True), follows=FOLLOWS),
    Fault("encoder-12-bit", "positions have 12 bits a turn", _numbers(
          lambda q, qd, k: (np.round(q / ENCODER) * ENCODER, qd)), follows=FOLLOWS),
    Fault("drift", "positions drift by 0.02 rad/s, as the velocities say", _numbers(
          lambda q, qd, k: (q + qd * (k * PERIOD), qd)), follows=FOLLOWS),
    Fault("offset", "positions are wrong by 0.1 rad from one state to the next",
          _numbers(lambda q, qd, k: (q + 0.1, qd)), follows=RETURNS, extra=PAUSE),
    Fault("repeated-states", "each state comes twice", _fed(times=2), **_ON),
    Fault("zero-stamps", "states have no stamp", _fed(stamped=False),
          logs="no stamps", **_ON),
    Fault("future-stamps", "stamps are 10 s ahead", _fed(age=-10.0), needs="age",
          says="ahead of the clock"),
    Fault("jitter", "states come up to 2 ms late", _fed(jitter=2e-3), **_ON),
    Fault("bursts", f"states come {BURST} at once", _fed(burst=BURST), **_ON),
    Fault("lost-in-a-row", f"{ROW} of 60 states are lost, in a row",
          _fed(lost=lambda k: k % 60 < ROW), **_ON),
    Fault("many-names", "states have 5000 more joints", _many_names, **_ON),
    Fault("other-joints", "another node sends states of other joints",
          lambda s: s.other_joints([f"finger_{k}" for k in range(4)]),
          unsaid="more than one robot", **_ON),
    Fault("split-states", "two nodes send half of the joints each",
          lambda s: s.split_states(), says="merge_joint_states"),
    Fault("long-name", "a state has a joint whose name has 1 000 000 characters",
          lambda s: s.other_joints(["j" * 10**6], once=True), **_ON),
    Fault("second-source", "another node sends states of another place",
          lambda s: s.second_source(), follows=SOUND, says="publishers on",
          prepare=lambda s: s.learn_efforts()),
    Fault("second-controller", "another node sends efforts, too",
          lambda s: s.second_controller(), says="efforts that are not this node's",
          **_ON),
    Fault("trajectory-past", "a trajectory that ended in 1970",
          lambda s: s.lead(stamp=1), until="trajectory refused", extra=5.0, **_ON),
    Fault("trajectory-nan", "a trajectory with NaN", lambda s: s.lead(way=math.nan),
          until="trajectory refused", extra=5.0, **_ON),
    Fault("trajectory-name", "a trajectory whose joint's name has 1 000 000 characters",
          lambda s: s.lead(names=["j" * 10**6]), until="trajectory refused", extra=5.0,
          **_ON),
    Fault("estop-flood", f"~/estop is called {FLOOD} times",
          lambda s: [s.estop() for _ in range(FLOOD)], after="estop"),
    Fault("payload-1e12", "payload.mass is set to 1e12",
          lambda s: s.refused("payload.mass", 1e12), extra=10.0, **_ON),
    Fault("parameter-flood", f"{FLOOD} parameters are set at once", lambda s:
          s.set_parameter("large_error", *np.linspace(0.1, 0.2, FLOOD).tolist()),
          extra=10.0, **_ON),
    Fault("other-description", "/robot_description has another robot",
          lambda s: s.describe(), extra=1.0, **_ON),
    Fault("garbage-description", "/robot_description has 30 MB of garbage",
          _neighbour("description"), extra=3.0, **_ON),
    Fault("diagnostics-flood", "another node floods /diagnostics",
          _neighbour("diagnostics"), extra=2.0, **_ON),
    Fault("load", "another process takes a processor", _neighbour("load"), extra=2.0,
          **_ON),
    Fault("long-trajectory", "a trajectory of 100 000 points",
          _neighbour("trajectory"), mode=PAIR, follows=RETURNS, extra=30.0,
          until="trajectory"),
    Fault("guard-paused", "SIGSTOP of the guard, then SIGCONT",
          _stop_for(2 * PAUSE, _GUARD), extra=4 * PAUSE, **_LOST),
    Fault("guard-restarted", "~/estop of the guard, then another guard takes its place",
          lambda s: s.latched(s.restart_guard), **_LATCHED),
    Fault("guard-stray-word", "~/estop of the guard, then another node says that"
          " nothing is stopped", lambda s: s.latched(s.stray_word), **_LATCHED),
    Fault("guard-stray-beat", "~/estop of the guard, then beats of another guard",
          lambda s: s.latched(s.stray_beat), **_LATCHED),
    Fault("guard-missing", "the controller needs a guard, and there is none",
          lambda s: None, state=UNGUARDED, follows=QUIET, says="waiting for the guard"),
    Fault("guard-late", "the controller needs a guard, which starts later",
          lambda s: s.start_guard(), state=UNGUARDED, follows=RETURNS, extra=20.0),
    _bad_solver("complex", "returns complex numbers"),
    _bad_solver("none", "returns None"),
    _bad_solver("text", "returns a text"),
    _bad_solver("memory", "raises MemoryError"),
    _bad_solver("recursion", "raises RecursionError"),
    _solver("slow", f"the controller's solver takes {SLOW:g} s", extra=1.0,
            says="of the time", **_ON),
    replace(_solver("slow", f"~/estop while the solver takes {SLOW:g} s"),
            name="solver-slow-estop", inject=lambda s: s.estop(), after="estop",
            prepare=lambda s: s.slow()),
    _solver("writes", "the controller's solver writes into its inputs", **_ON),
    Fault("bit-flips", "bits flip in the machine code of a law", lambda s: None,
          mode=KERNEL, follows=SOUND),
)  # fmt: skip
_INACTIVE = {"silent-states", "nan-position", "missing-joint", "old-stamps", "estop",
             "wrong-transitions", "clock-stopped", "clock-back"}  # fmt: skip
# A reset drops the trajectory, and says so; a pause of the clock does not.
_DROPPED = ("paused-states", "clock-back", "clock-ahead")


def _moving(fault: Fault) -> Fault:
    """Return a variant of a fault that happens while a trajectory is followed."""
    said = {**dict.fromkeys(_DROPPED, "trajectory dropped"), "clock-paused": "tracking"}
    says = said.get(fault.name, fault.says)
    return replace(fault, name=f"{fault.name}-{MOVING}", state=MOVING, says=says)


def _inactive(fault: Fault) -> Fault:
    """Return a variant of a fault for an inactive controller: no effort may follow."""
    return replace(fault, name=f"{fault.name}-{INACTIVE}", state=INACTIVE,
                   follows=QUIET, says="inactive")  # fmt: skip


def _every() -> tuple[Fault, ...]:
    """Return all faults by mode and solver: a change of these restarts the nodes."""
    every = [
        *_TWICE,
        *_ONCE,
        *_TOOL,
        *map(_moving, _TWICE),
        *(_inactive(f) for f in _TWICE if f.name in _INACTIVE),
    ]
    order = list(dict.fromkeys((fault.mode, fault.solver) for fault in every))
    return tuple(sorted(every, key=lambda f: order.index((f.mode, f.solver))))


FAULTS: tuple[Fault, ...] = _every()


def chosen(only: list[str] | None) -> list[Fault]:
    """Return the faults of names or shell patterns, ordered as FAULTS; none: all."""
    names = [fault.name for fault in FAULTS]
    for name in only or ():
        if not any(fnmatchcase(known, name) for known in names):
            raise SettingError(unknown_name("fault", name, names, limit=None), "only")

    def wanted(fault: Fault) -> bool:
        return not only or any(fnmatchcase(fault.name, name) for name in only)

    return [fault for fault in FAULTS if wanted(fault)]
