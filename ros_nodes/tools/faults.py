"""Description of a fault of `dyn check-node`, and time bounds of the reaction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dyn_core.control.safety.stops import AUTO
from ros_nodes.parameter_tables.controller_parameters import CONTROLLER
from ros_nodes.parameter_tables.guard_parameters import GUARD_FIELDS
from ros_nodes.parameter_tables.simulator_parameters import SIMULATOR
from ros_nodes.running.watchdog import period_of

ALONE, PAIR, CLOCK, KERNEL = "alone", "pair", "clock", "kernel"
HOLDING, MOVING, INACTIVE = "holding", "moving", "inactive"
UNGUARDED = "unguarded"  # inactive, waiting for a required guard
STOPS, GOES_ON, RETURNS = "stops", "goes on", "returns"
FOLLOWS = "follows"
QUIET, SOUND = "quiet", "sound"
COMMANDS, APPLIED = "commands", "applied"
PERIOD = 0.004  # period of the joint states that are sent [s]
MARGIN = 0.1  # tolerance for communication and a busy machine [s]
PROMISED = 0.005  # delay beyond a timeout and two watchdog periods [s]
STALL = 1.0  # duration of a call of a stalled solver [s]
SLOW = 0.02  # duration of a call of a slow solver [s]
DOUBT = 0.25  # time until slightly contradictory velocities are refused [s]
WRONG_LAW = 0.5  # time in which a wrong law leaves the envelope [s]
BLOCKED = 2.0  # time for which executor or interpreter lock is blocked [s]
PAUSE = 0.5  # duration of a pause of the joint states [s]
JUMP = 10.0  # size of a jump of /clock [s]
WATCHED = 0.5  # time for which efforts are watched after the bound [s]

TABLES = {
    "computed_torque": CONTROLLER,
    "simulator": SIMULATOR,
    "guard": GUARD_FIELDS,
}


@dataclass(frozen=True)
class Fault:
    """A fault, and the required reaction of the nodes.

    Attributes:
        name: Name for --only.
        inject: Causes the fault on a FaultStand; may return a function that tells
            whether the fault is over, for which `extra` is the longest wait.
        mode: alone: the controller, to which the test stand sends joint states; pair:
            simulator and controller; clock: alone, in simulated time; kernel: no node.
        solver: Failure of the controller's solver, a key of faulty_controller.KINDS.
        follows: STOPS: the effort must become zero and stay so; GOES_ON: it must go on,
            unchanged while the robot is held; FOLLOWS: it must go on, and change by no
            more than effort_slew allows in two cycles; RETURNS: it may pause at zero,
            and must come back; QUIET: there must be no effort; SOUND: each effort must
            lie in the range of zero and the efforts recorded by `prepare`.
        after: Key of `bounds` for the time of the reaction.
        watch: commands: efforts that the controller sends; applied: efforts that act on
            the robot.
        extra: Additional time to watch [s].
        until: Text in a line of the controller's log that ends the fault.
        says, unsaid: Text that diagnostics must contain, and must not contain.
        logs: Text that the controller's log must contain exactly once since its start.
        needs: Feature that parameters or robot may lack, "age", "limits" or
            "cartesian"; then the fault is left out. Empty: none.
        state: State of the controller before the fault: it holds, moves, is inactive,
            or waits for a required guard.
        guard: Whether the guard watches the controller.
        prepare: Called with the FaultStand before the fault.
    """

    name: str
    meaning: str
    inject: Callable[[Any], object]
    mode: str = ALONE
    solver: str = ""
    follows: str = STOPS
    after: str = "stale"
    watch: str = COMMANDS
    extra: float = 0.0
    until: str = ""
    says: str = ""
    unsaid: str = ""
    logs: str = ""
    needs: str = ""
    state: str = HOLDING
    guard: bool = False
    prepare: Callable[[Any], object] = lambda stand: None


def bounds(parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the time after which the effort must be zero [s], by kind of fault.

    The keys are the values of Fault.after: stale, doubt, command, violation, law,
    estop, end, guard, latch and lost. A stop by "ramp" or "auto" lasts stop_time;
    the time is math.inf where the stop ("hold") holds a position, with effort. The
    further entries "state" and "cycle" are parts of such times: the parameter
    state_timeout, and the time in which last good efforts are sent.

    Args:
        parameters: Parameters by node; missing ones have their defaults. An unknown
            stop rule raises a KeyError.
    """
    every = {
        node: {field.name: field.default for field in table}
        | {**parameters.get(node, {})}
        for node, table in TABLES.items()
    }
    control = every["computed_torque"]
    state, stop = float(control["state_timeout"]), float(control["stop_time"])
    command = float(every["simulator"]["command_timeout"])
    kinds = {"zero": 0.0, "ramp": stop, AUTO: stop, "hold": math.inf}
    # Last good efforts are sent meanwhile, and then the stop.
    cycle = PERIOD * (1 + int(control["last_good_cycles"]))
    stale = _answered(state) + kinds[control["on_stale"]]
    violation = kinds[control["on_violation"]]
    return {
        "state": state,
        "stale": stale,
        "doubt": DOUBT + stale,
        "command": _answered(command),
        "cycle": cycle,
        "violation": cycle + violation,
        "law": WRONG_LAW + violation,
        "estop": MARGIN + kinds[control["on_estop"]],
        "end": _answered(command) + kinds[control["on_shutdown"]],
        "guard": float(every["guard"]["effort_timeout"]) + PROMISED,
        "latch": MARGIN,
        "lost": _answered(float(control["guard_timeout"])) + violation,
    }


def _answered(timeout: float) -> float:
    """Return the time after which a watchdog has reacted to a silence [s]."""
    return timeout + 2 * period_of(timeout) + PROMISED
