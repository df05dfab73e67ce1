"""`dyn check-node`: injects faults one by one and checks the reaction of the nodes.

Tolerances: MARGIN (0.1 s) of times, SAME (1e-6) of efforts. n is the number of joints.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dyn_core.control.joint_limits import effort_limits
from dyn_core.control.modes.control_law import control_mode
from dyn_core.control.settings import FULL_EFFORT
from dyn_core.errors import DynError, SettingError
from dyn_core.model import Model
from dyn_core.model.sources.arguments import READING, load_with, robot_settings
from dyn_core.solving.control_mode import INVERSE_DYNAMICS
from dyn_core.testing import bit_flips
from dyn_core.validation import dump_yaml
from ros_nodes.demo.demo_plan import range_near_zero
from ros_nodes.graphs import GRAPHS
from ros_nodes.parameter_tables.parameter_files import read_parameters
from ros_nodes.processes import private_environment
from ros_nodes.tools.fault_list import chosen
from ros_nodes.tools.faults import (
    ALONE,
    CLOCK,
    FOLLOWS,
    GOES_ON,
    HOLDING,
    KERNEL,
    MARGIN,
    MOVING,
    PERIOD,
    QUIET,
    RETURNS,
    SOUND,
    STOPS,
    WATCHED,
    Fault,
    bounds,
)

# Gravity of a robot that is mounted obliquely: no joint is without load [m/s²].
OBLIQUE = [4.9, 3.9, -7.6]
TRIES = 10  # number of domains that are tried
REPEATED = 5  # number of attempts if the machine paused
BUSY = 0.02  # wait for a processor from which the machine paused [s]
ARRIVAL = 0.01  # delay of observation: two periods, and communication [s]
FLIPS = 60  # number of bit flips
STATE_BOUNDS = {"position_slack", "velocity_factor", "velocity_mismatch"}
# A process that ends or hangs is the supervisor's case.
FLIPPED = {
    "harmless": (bit_flips.HARMLESS, bit_flips.SMALL),
    "caught": (bit_flips.SHADOW, bit_flips.NOT_FINITE, bit_flips.OTHER),
    "ended or hung": (bit_flips.CRASHED, bit_flips.HUNG),
    "passed": (bit_flips.WRONG,),
}
NOT_FINITE = "an effort was not finite"
UNSOUND = "an effort is that of no robot"
NEITHER = "an effort was neither the last good one nor zero"
DRIVEN = "there was an effort"
CHANGED = "the effort changed"
FAR = "the effort changed by more than effort_slew allows"
WRONG = (NOT_FINITE, UNSOUND, NEITHER, DRIVEN, CHANGED, FAR)  # not excused by a pause
LONGEST_LINE = 2000  # largest number of characters in a line of the log
JOIN = 10.0  # longest wait for nodes to appear [s]
SAME = 1e-6  # relative tolerance of an unchanged effort


@dataclass(frozen=True)
class FaultResult:
    """Result of a fault.

    Attributes:
        zero: Time from the fault until the effort is zero and stays so [s], or NaN.
        bound: Largest permitted such time [s]; None: the effort need not become zero.
        said: Most serious message of /diagnostics.
        reason: Why the fault failed; empty: it passed.
    """

    fault: Fault
    zero: float
    bound: float | None
    said: str
    reason: str

    def line(self) -> str:
        """Return the row of the table: name, time to zero, bound, verdict, diagnostics.

        Times [s] are "-" if the effort need not become zero. The bound is "inf" for a
        stop that holds a position.
        """
        zero = f"{self.zero:8.3f}" if self.fault.follows == STOPS else f"{'-':>8}"
        bound = f"{self.bound:6.3f}" if self.bound is not None else "     -"
        verdict = f"FAIL: {self.reason}" if self.reason else "pass"
        return f"{self.fault.name:27}{zero} {bound}  {verdict:5} {_cut(self.said)}"


@dataclass(frozen=True, eq=False)
class FaultAnswer:
    """Observations after a fault.

    Attributes:
        efforts: SeenEffort of all efforts from the fault on.
        onset: Time of the fault, monotonic [s].
        limits: Result of `bounds`.
        right: Valid efforts, (n,) each: the last one before the fault, or efforts
            recorded by `prepare`.
        change: Largest change of each effort by a single state, (n,) [N·m | N].
    """

    fault: Fault
    efforts: list[Any]
    onset: float
    limits: dict[str, float]
    right: list[np.ndarray]
    change: np.ndarray


def _cut(sentence: str, longest: int = 70) -> str:
    """Return a sentence of at most `longest` characters, with an ellipsis if cut."""
    return sentence if len(sentence) <= longest else f"{sentence[: longest - 4]} ..."


def run(arguments: argparse.Namespace) -> int:
    """Run the campaign of `dyn check-node`, and print its results.

    os.environ is changed, and SIGTERM raises a KeyboardInterrupt from now on, so that
    the nodes are ended.

    Args:
        arguments: Parsed arguments of `dyn check-node`.

    Returns:
        0 if every fault that was tried has passed (effort, time, log and diagnostics),
        else 1. Faults that the parameters or the robot do not provide for are left out,
        and printed.

    Raises:
        DynError: A fault, a parameter or the robot is not valid, or ROS 2 does not
            start.
    """
    faults = chosen(arguments.only)
    parameters, model = _settings(arguments)
    limits, lacking = bounds(parameters), _lacking(parameters, model)
    left_out = [fault.name for fault in faults if _lacks(fault, lacking)]
    faults = [fault for fault in faults if fault.name not in left_out]
    # So that `finally` ends the nodes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "nodes.yaml")
        with open(path, "w", encoding="utf-8") as file:
            content = {k: {"ros__parameters": x} for k, x in parameters.items()}
            file.write(dump_yaml(content))
        slew = _slew(parameters["computed_torque"], model)
        results = _campaign(faults, limits, model, path, arguments.seed, slew)
    if left_out:
        print(f"not tried, parameters or limits say nothing: {', '.join(left_out)}")
    failed = [result.fault.name for result in results if result.reason]
    print(f"{len(results)} faults, {len(failed)} failed; seed {arguments.seed}")
    return int(bool(failed))


def _settings(arguments: argparse.Namespace) -> tuple[dict[str, dict[str, Any]], Model]:
    """Return parameters by node (simulator, computed_torque, guard), and the robot.

    They are read from the parameter file, then the robot, an initial position and short
    periods of diagnostics are set; without --params, gravity is oblique. effort_timeout
    is twice state_timeout if the file sets only the latter.
    """
    graph = GRAPHS["demo"]
    path = arguments.params or graph.params_file
    nodes = read_parameters(path, [node.executable for node in graph.nodes])
    both = {**nodes["computed_torque"], **nodes["simulator"]}
    robot = arguments.robot or both.get("robot_description_file") or "arm7"
    robot = os.path.abspath(robot) if os.path.isfile(robot) else robot
    reading = {
        **{name: both[name] for name in READING if name in both},
        **robot_settings(arguments),
    }
    model = load_with(reading, robot, root_joint="fixed")
    if not model.nv:
        raise SettingError(f"the robot '{model.name}' has no joint that can move")
    for name in ("simulator", "computed_torque"):
        node = nodes[name]
        node |= {"robot_description_file": robot, "diagnostic_updater.period": 0.1}
        node |= reading
        node.setdefault("joints", list(model.joint_names))
        if arguments.params is None:
            node["gravity"] = list(OBLIQUE)
    nodes["simulator"] |= {
        "root_joint": "fixed",
        "initial_positions": [float(x) for x in _place(model)],
    }
    guard = nodes["guard"]
    guard["diagnostic_updater.period"] = 0.1
    if "state_timeout" in nodes["computed_torque"]:
        timeout = nodes["computed_torque"]["state_timeout"]
        guard.setdefault("effort_timeout", 2 * timeout)
    return {n: nodes[n] for n in ("simulator", "computed_torque", "guard")}, model


def _lacking(parameters: dict[str, dict[str, Any]], model: Model) -> list[str]:
    """Return the features that some faults need but are missing."""
    control, lacking = parameters["computed_torque"], []
    if not control.get("max_state_age", True):
        lacking.append("age")
    limited = (model.lower < model.upper) & np.isfinite(model.velocity_limit)
    if STATE_BOUNDS & {*control} or not (limited & (model.velocity_limit > 0)).all():
        lacking.append("limits")
    mode = control_mode(control.get("mode", "computed_torque"))
    if "target_pose" not in [topic.name for topic in mode.topics]:
        lacking.append("cartesian")
    if not mode.follows:
        lacking.append(MOVING)
    if mode.slot != INVERSE_DYNAMICS:
        lacking.append("solver")
    return lacking


def _lacks(fault: Fault, lacking: list[str]) -> bool:
    needs = {fault.needs, fault.state, "solver" if fault.solver else ""}
    return bool(needs & {*lacking})


def _slew(control: dict[str, Any], model: Model) -> np.ndarray:
    """Return the largest change of each effort in a second, (n,) [N·m/s | N/s].

    It is effort_slew, in which one number stands for all; if unset or empty, the effort
    limit in FULL_EFFORT (0.05 s).
    """
    limits = {name: control.get(f"effort_limits.{name}") for name in model.joint_names}
    limit = effort_limits(model, {name: x for name, x in limits.items() if x})
    slew = np.array(control.get("effort_slew") or limit / FULL_EFFORT, float)
    if slew.shape not in ((1,), limit.shape):
        valid = f"one number, or {len(limit)}"
        raise SettingError(
            f"effort_slew has {slew.size} numbers; valid: {valid}", "effort_slew"
        )
    return np.broadcast_to(slew, limit.shape)


def _place(model: Model) -> np.ndarray:
    """Return 60 % of each joint's range, cut to [-1, 1], (nv,) [rad | m]."""
    low, high = range_near_zero(model, 1.0)
    return np.asarray(low + 0.6 * (high - low))


def _elsewhere(model: Model, q: np.ndarray) -> np.ndarray:
    """Return a position 1 from `q` in each joint, or as far as limits allow."""
    ranged = model.lower < model.upper
    above = np.where(ranged, np.minimum(q + 1.0, model.upper), q + 1.0)
    below = np.where(ranged, np.maximum(q - 1.0, model.lower), q - 1.0)
    return np.where(above - q >= q - below, above, below)


def _campaign(
    faults: list[Fault],
    limits: dict[str, float],
    model: Model,
    path: str,
    seed: int,
    slew: np.ndarray,
) -> list[FaultResult]:
    """Inject all faults; return their results, which are also printed as they come."""
    from ros_nodes.tools.fault_stand import FaultStand

    results: list[FaultResult] = []
    busy, cores = os.getloadavg()[0], os.cpu_count() or 1
    if busy > cores:
        print(f"the machine is busy (load {busy:.1f}, {cores} cores): times are longer")
    print(f"{'fault':27}{'zero [s]':>8} {'bound':>6}  result diagnostics", flush=True)
    with _empty_domain() as live:
        q = _place(model)
        stand = FaultStand(live, model.joint_names, q, path, seed)
        stand.slew, stand.elsewhere = slew, _elsewhere(model, q)
        try:
            for number, fault in enumerate(faults, 1):
                if sys.stderr.isatty():
                    shown = f"{number} of {len(faults)}: {fault.meaning}"
                    print(f"{shown:78}", end="\r", file=sys.stderr, flush=True)
                if fault.mode == KERNEL:
                    results.append(_flipped(fault, seed))
                else:
                    results.append(_tried(stand, fault, limits))
                print(results[-1].line(), flush=True)
        finally:
            stand.end_all()
    return results


@contextmanager
def _empty_domain() -> Iterator[Any]:
    """Join a ROS domain of this machine without other nodes; yield a Live.

    os.environ is changed, not restored: processes started here join the domain, too.
    """
    from ros_nodes.tools.live import connect

    for domain in random.sample(range(1, 101), TRIES):
        os.environ.update(private_environment(domain))
        with connect(JOIN) as live:
            if not live.all_nodes(expected=False):
                yield live
                return
    raise DynError(f"in {TRIES} domains of ROS 2 there are nodes of others")


def _flipped(fault: Fault, seed: int) -> FaultResult:
    """Return the result of 60 bit flips in a kernel, tried in a process without ROS."""
    command = [sys.executable, "-m", "dyn_core.testing.bit_flips"]
    command += ["--n", str(FLIPS), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    rows = re.findall(r"^ +(\d+) (.+)$", done.stdout, re.MULTILINE)
    counts = {what: int(number) for number, what in rows}
    said = ", ".join(
        f"{sum(counts.get(what, 0) for what in kinds)} {name}"
        for name, kinds in FLIPPED.items()
    )
    if not rows:
        said = (done.stderr.splitlines() or ["-"])[-1]
    reason = f"ended with {done.returncode}" if done.returncode else ""
    return FaultResult(fault, math.nan, None, said, reason)


def _tried(stand: Any, fault: Fault, limits: dict[str, float]) -> FaultResult:
    """Return the result of a fault; repeat the fault where the machine has paused.

    A busy machine suspends a process now and then: a late reaction is then no failure
    of the nodes. A wrong effort (WRONG) is never repeated.
    """
    for _ in range(REPEATED):
        result, pause = _once(stand, fault, limits)
        if not result.reason or result.reason in WRONG or pause < BUSY:
            return result
    return replace(result, reason=f"{result.reason}; the machine paused {pause:.3f} s")


def _once(
    stand: Any, fault: Fault, limits: dict[str, float]
) -> tuple[FaultResult, float]:
    """Inject a fault; return its result and the longest wait for a processor [s].

    A DynError of the test stand becomes a failed result and a wait of 0; if it comes
    before the injection, all nodes are ended.
    """
    bound = limits[fault.after] if fault.follows == STOPS else None
    try:
        stand.ensure(fault)
        fault.prepare(stand)
    except DynError as error:
        stand.end_all()  # the next fault starts new nodes
        return FaultResult(fault, math.nan, bound, "-", str(error)), 0.0
    seen, lines = stand.seen[fault.watch], len(stand.log())
    before = seen[-1].values if seen else np.zeros(0)
    onset = stand.begin()
    longest = bound if bound is not None and bound < math.inf else 0.0
    try:
        over = _until(stand, fault, lines, fault.inject(stand))
        stand.watch(min(longest + MARGIN + WATCHED, 60.0) + over)
    except DynError as error:
        return FaultResult(fault, math.nan, bound, stand.worst_said(), str(error)), 0.0
    said, efforts, pause = stand.worst_said(), list(seen), stand.longest_pause()
    right = [before] if fault.follows != SOUND else stand.sound
    change = stand.slew * (2 * PERIOD + min(pause, MARGIN))
    reason = _why_bad(FaultAnswer(fault, efforts, onset, limits, right, change))
    zero = _time_of_zero(efforts, onset)
    late = bound is not None and bound < zero - ARRIVAL - min(pause, MARGIN)
    if not reason and late:
        reason = f"it took {zero:.3f} s"
    reason = reason or _why_silent(fault, stand.log(), lines, said)
    return FaultResult(fault, zero, bound, said, reason), pause


def _until(stand: Any, fault: Fault, lines: int, over: object) -> float:
    """Wait for the end of a fault, if it has one; return the time to watch then [s].

    `over`, if callable, returns whether the fault is over. A log line `until` that does
    not come raises nothing here; _why_silent reports it.
    """

    def logged() -> bool:
        return any(fault.until in line for line in stand.log()[lines:])

    done = over if callable(over) else logged
    if not fault.until and not callable(over):
        return fault.extra
    stand.watch(fault.extra, done)
    if not done() and not fault.until:
        raise DynError(f"it was not over after {fault.extra:g} s")
    return 0.0


def _why_silent(fault: Fault, log: list[str], lines: int, said: str) -> str:
    """Return why log or diagnostics are wrong after a fault; empty if they are right.

    fault.until is sought in new lines; fault.logs must be in exactly one of all lines.
    """
    if fault.until and not any(fault.until in line for line in log[lines:]):
        return "the controller said nothing of it"
    if fault.logs and (count := sum(fault.logs in line for line in log)) != 1:
        return f"its log says {count} times: {fault.logs}"
    if (longest := max(map(len, log[lines:]), default=0)) > LONGEST_LINE:
        return f"a line of its log has {longest} characters"
    if fault.says not in said:
        return f"no diagnostics of {fault.says}"
    if fault.unsaid and fault.unsaid in said:
        return f"diagnostics of {fault.unsaid}"
    return ""


def _time_of_zero(efforts: list[Any], onset: float) -> float:
    """Return the time from `onset` to the first of the last zero efforts [s] or NaN."""
    active = [k for k, x in enumerate(efforts) if x.values.any()]
    first = active[-1] + 1 if active else 0
    return efforts[first].t - onset if first < len(efforts) else math.nan


def _longest_effort(answer: FaultAnswer) -> float:
    """Return the longest time between two efforts of which the first is not zero [s].

    The first interval begins at the fault, with the last effort before it.
    """
    times = [answer.onset, *(x.t for x in answer.efforts)]
    stood = [answer.right[0], *(x.values for x in answer.efforts)]
    longest = zip(np.diff(times), stood, strict=False)
    return max((float(dt) for dt, tau in longest if tau.any()), default=0.0)


def _why_bad(answer: FaultAnswer) -> str:
    """Return why the efforts after a fault are wrong; empty if they are right.

    The criterion is fault.follows, see Fault. The time to zero is not judged here.
    """
    fault, efforts = answer.fault, answer.efforts
    if fault.follows == QUIET:
        bad = any(x.values.any() for x in efforts)
        return DRIVEN if bad else ""
    if not efforts:
        return "no effort was seen after it"
    if not all(np.isfinite(x.values).all() for x in efforts):
        return NOT_FINITE
    if fault.follows == SOUND:
        sound = _between(efforts, answer.right)
        return "" if sound else UNSOUND
    check = {
        STOPS: _why_not_zero,
        GOES_ON: _why_interrupted,
        FOLLOWS: _why_interrupted,
        RETURNS: _why_lost,
    }
    return check[fault.follows](answer)


def _why_not_zero(answer: FaultAnswer) -> str:
    """Return why efforts that must become zero are wrong; empty if they are right.

    After a stop at once, a held robot's efforts are between the last good and zero.
    """
    fault, limits = answer.fault, answer.limits
    if limits[fault.after] == math.inf:
        return ""  # the stop holds a position, with effort
    if answer.efforts[-1].values.any():
        return "the effort does not stay zero"
    at_once = fault.after == "violation" and limits["violation"] == limits["cycle"]
    if at_once and fault.state == HOLDING:
        last_good = _between(answer.efforts, answer.right)
        return "" if last_good else NEITHER
    return ""


def _why_lost(answer: FaultAnswer) -> str:
    """Return why efforts that may pause at zero are wrong; empty if they are right."""
    stood = _longest_effort(answer)
    if stood > answer.limits["state"] + MARGIN:
        return f"an effort stood for {stood:.3f} s"
    back = answer.efforts[-1].values.any()
    return "" if back else "the effort does not come back"


def _why_interrupted(answer: FaultAnswer) -> str:
    """Return why efforts that must go on are wrong; empty if they are right."""
    fault, efforts = answer.fault, answer.efforts
    gap = float(np.diff([answer.onset, *(x.t for x in efforts)]).max())
    if gap > answer.limits["state"] + MARGIN:
        return f"no effort for {gap:.3f} s"
    if not all(x.values.any() for x in efforts):
        return "an effort was zero"
    if fault.follows == FOLLOWS:
        change = np.array([np.abs(x.values - answer.right[0]) for x in efforts])
        return FAR if (change > answer.change).any() else ""
    still = fault.mode in (ALONE, CLOCK) and fault.state == HOLDING
    if still and not _between(efforts[-1:], answer.right, zero=False):
        return CHANGED
    return ""


def _between(efforts: list[Any], right: list[np.ndarray], zero: bool = True) -> bool:
    """Return whether each effort lies between the smallest and largest valid effort.

    The comparison is by joint, with tolerance SAME. `zero`: zero is valid, too.
    """
    every = np.array([*right, *([0 * right[0]] if zero else [])])
    size = SAME * max(float(np.abs(every).max()), 1.0)
    values = np.array([x.values for x in efforts])
    low, high = every.min(axis=0) - size, every.max(axis=0) + size
    return bool(((values >= low) & (values <= high)).all())
