"""What a fault of `dyn check-node` is, and within which bounds it must be answered."""

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
UNGUARDED = "unguarded"  # it waits for a guard, and needs one
STOPS, GOES_ON, RETURNS = "stops", "goes on", "returns"
FOLLOWS = "follows"
QUIET, SOUND = "quiet", "sound"
COMMANDS, APPLIED = "commands", "applied"
PERIOD = 0.004  # of the joint states that are sent [s]
MARGIN = 0.1  # of communication and of a machine that has other work, too [s]
PROMISED = 0.005  # after a timeout and two periods of its watchdog [s]
STALL = 1.0  # that a solver stands still [s]
SLOW = 0.02  # that a slow solver takes for each effort [s]
DOUBT = 0.25  # until positions are doubted whose velocities differ a little [s]
WRONG_LAW = 0.5  # until a wrong law has led the robot out of its envelope [s]
BLOCKED = 2.0  # that an executor, or the interpreter's lock, is blocked [s]
PAUSE = 0.5  # of joint states that come back [s]
JUMP = 10.0  # of /clock [s]
WATCHED = 0.5  # how long efforts are watched after the bound [s]

TABLES = {
    "computed_torque": CONTROLLER,
    "simulator": SIMULATOR,
    "guard": GUARD_FIELDS,
}


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    Attributes:
        name: What --only takes.
        meaning: What happens.
        inject: Lets it happen on a FaultStand; may return a function that says whether
            it is over, for which `extra` is the longest wait.
        mode: alone: the controller, to which the test stand sends joint states; pair:
            simulator and controller; clock: alone, in simulated time; kernel: no node.
        solver: Way in which the controller's solver fails, see faulty_controller.
        follows: STOPS: the effort must become zero and stay so; GOES_ON: it must go on,
            unchanged while the robot is held; FOLLOWS: it must go on, and change by no
            more than effort_slew allows in two cycles; RETURNS: it may pause at zero,
            and must come back; QUIET: there must be no effort; SOUND: each must be
            zero, or what `prepare` has shown to be right.
        after: What the bound consists of: a key of `bounds`.
        watch: commands: what the controller sends; applied: what acts on the robot.
        extra: Longer watch [s].
        until: Part of a line of the controller's log until which the watch lasts.
        says: What diagnostics must contain.
        unsaid: What they must not contain.
        logs: What the controller's log must contain once since its start.
        needs: What a fault tests that parameters or the robot may lack: age, limits.
        state: What the controller does before: it holds, moves, is inactive, or waits
            for a guard that it needs.
        guard: Whether the guard watches the controller.
        prepare: Called before the fault.
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
    """Return by kind the time after which the effort must be zero [s].

    Args:
        parameters: Of the nodes, by name; those that are missing have their defaults.
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
    """Return the time after which a watchdog has answered a silence [s]."""
    return timeout + 2 * period_of(timeout) + PROMISED
