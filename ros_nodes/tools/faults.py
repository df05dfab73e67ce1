"""The faults of `dyn check-node`, as data: what happens, and what must follow."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, unknown_name

ALONE, PAIR = "alone", "pair"
STOPS, GOES_ON, WARNS, RETURNS = "stops", "goes on", "warns", "returns"
COMMANDS, APPLIED = "commands", "applied"
MARGIN = 0.1  # of communication and of a machine that has other work, too [s]
STALL = 1.0  # that a solver stands still [s]
WATCHED = 0.5  # how long efforts are watched after the bound [s]


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    Attributes:
        name: What --only takes.
        meaning: What happens.
        inject: Lets it happen on a NodeStand.
        mode: alone: the controller, to which the test stand sends joint states; pair:
            simulator and controller; else the way in which the controller's solver
            fails.
        follows: STOPS: the effort must become zero and stay so; GOES_ON: it must go on;
            WARNS: it must be finite, and diagnostics must warn; RETURNS: it may pause
            at zero, and must come back.
        after: What the bound consists of besides: stale, command, violation.
        watch: commands: what the controller sends; applied: what acts on the robot.
        extra: Longer watch [s].
        until: Part of a line of the controller's log until which the watch lasts.
        says: What diagnostics must contain.
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


def bounds(parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return by kind the time after which the effort must be zero [s].

    Args:
        parameters: Of both nodes, by name; those that are missing have their defaults.
    """
    control, robot = parameters["computed_torque"], parameters["simulator"]
    stale = float(control.get("state_timeout", 0.1))
    stop = float(control.get("stop_time", 2.0))
    kinds = {"zero": 0.0, "ramp": stop, "hold": math.inf}
    return {
        "state": stale,
        "stale": stale + kinds[control.get("on_stale", "zero")],
        "command": float(robot.get("command_timeout", 0.1)),
        "violation": stale + kinds[control.get("on_violation", "zero")],
    }


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


_CONTROL, _ROBOT = "computed_torque", "simulator"
FAULTS: tuple[Fault, ...] = (
    Fault("silent-states", "joint states stop", _fed(on=False)),
    Fault("nan-position", "a position is NaN", _bad("q", math.nan)),
    Fault("infinite-velocity", "a velocity is infinite", _bad("qd", math.inf)),
    Fault("missing-joint", "joint states lack a joint", _without),
    Fault("joint-twice", "joint states have a joint twice", _twice),
    Fault("shuffled-joints", "joints in another order", _shuffled, follows=GOES_ON),
    Fault("repeated-states", "each state comes twice", _fed(times=2), follows=GOES_ON),
    Fault("backward-stamps", "stamps run backward", _fed(pace=-1e-3)),
    Fault("old-stamps", "stamps are 10 s old", _fed(age=10.0), after="age"),
    Fault(
        "wrong-transitions", "transitions that do not fit the state",
        lambda s: s.wrong_transitions(), follows=GOES_ON,
    ),
    Fault(
        "second-source", "another node sends other states",
        lambda s: s.second_source(), follows=WARNS, says="publishers on",
    ),
    Fault(
        "long-trajectory", "a trajectory of 100 000 points",
        lambda s: s.long_trajectory(), mode=PAIR, follows=RETURNS, extra=30.0,
        until="trajectory",
    ),
    Fault(
        "controller-stopped", "SIGSTOP of the controller",
        _signals(_CONTROL, signal.SIGSTOP), mode=PAIR, after="command", watch=APPLIED,
    ),
    Fault(
        "simulator-stopped", "SIGSTOP of the simulator",
        _signals(_ROBOT, signal.SIGSTOP), mode=PAIR,
    ),
    Fault(
        "controller-killed", "SIGKILL of the controller",
        _signals(_CONTROL, signal.SIGKILL), mode=PAIR, after="command", watch=APPLIED,
    ),
    Fault(
        "controller-hangup", "SIGHUP of the controller",
        _signals(_CONTROL, signal.SIGHUP), mode=PAIR, after="command", watch=APPLIED,
    ),
    Fault(
        "simulator-killed", "SIGKILL of the simulator",
        _signals(_ROBOT, signal.SIGKILL), mode=PAIR,
    ),
    Fault(
        "simulator-hangup", "SIGHUP of the simulator",
        _signals(_ROBOT, signal.SIGHUP), mode=PAIR,
    ),
    Fault(
        "solver-raises", "the controller's solver raises", lambda s: s.fail_solver(),
        mode="raising", after="violation",
    ),
    Fault(
        "solver-nan", "the controller's solver returns NaN", lambda s: s.fail_solver(),
        mode="nan", after="violation",
    ),
    Fault(
        "solver-stalls", f"the controller's solver stands still, {STALL:g} s a call",
        lambda s: s.fail_solver(), mode="stalling", extra=2 * STALL,
    ),
)  # fmt: skip


def chosen(only: list[str] | None) -> list[Fault]:
    """Return the faults of these names; of none, all.

    Raises:
        SettingError: There is no such fault.
    """
    names = [fault.name for fault in FAULTS]
    for name in only or ():
        if name not in names:
            raise SettingError(unknown_name("fault", name, names, limit=None), "only")
    return [fault for fault in FAULTS if not only or fault.name in only]
