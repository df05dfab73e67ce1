"""`dyn check-node`: faults one by one, and what the nodes do about them."""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import yaml

from dyn_core.errors import DynError, SettingError
from dyn_core.model import Model
from dyn_core.model.sources.arguments import READING, load_with, robot_settings
from ros_nodes.graphs import GRAPHS
from ros_nodes.parameter_files import read_parameters
from ros_nodes.processes import private_environment
from ros_nodes.tools.faults import (
    ALONE,
    GOES_ON,
    MARGIN,
    RETURNS,
    STOPS,
    WARNS,
    WATCHED,
    Fault,
    bounds,
    chosen,
)

# Of a robot that is mounted obliquely: no joint is without load [m/s²].
OBLIQUE = [4.9, 3.9, -7.6]
TRIES = 10  # domains
REPEATED = 3  # times that a fault is tried where the machine paused
JOIN = 10.0  # longest wait for nodes to appear [s]
SAME = 1e-6  # part by which an effort may change that must go on unchanged


@dataclass(frozen=True)
class FaultResult:
    """What followed a fault.

    Attributes:
        fault: The fault.
        zero: Time from the fault until the effort is zero and stays so [s]; NaN where
            it does not become zero.
        bound: Longest such time [s]; None: the effort must go on.
        said: What /diagnostics said.
        reason: Why it failed; empty: it passed.
    """

    fault: Fault
    zero: float
    bound: float | None
    said: str
    reason: str

    def line(self) -> str:
        """Return a row of the table."""
        zero = f"{self.zero:8.3f}" if self.fault.follows == STOPS else f"{'-':>8}"
        bound = f"{self.bound:6.3f}" if self.bound is not None else "     -"
        verdict = f"FAIL: {self.reason}" if self.reason else "pass"
        return f"{self.fault.name:20}{zero} {bound}  {verdict:5} {_cut(self.said)}"


def _cut(sentence: str, longest: int = 70) -> str:
    return sentence if len(sentence) <= longest else f"{sentence[: longest - 4]} ..."


def run(arguments: argparse.Namespace) -> int:
    """Run the campaign; return 0 if every fault was answered within its bound."""
    faults = chosen(arguments.only)
    parameters, model = _settings(arguments)
    limits = bounds(parameters)
    # What is measured: without stamps that count, old ones mean nothing.
    if not parameters["computed_torque"].get("max_state_age"):
        faults = [fault for fault in faults if fault.after != "age"]
    limits["age"] = limits["stale"]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the nodes end, too
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "nodes.yaml")
        with open(path, "w", encoding="utf-8") as file:
            content = {k: {"ros__parameters": x} for k, x in parameters.items()}
            yaml.safe_dump(content, file)
        results = _campaign(faults, limits, model, path, arguments.seed)
    failed = [result.fault.name for result in results if result.reason]
    print(f"{len(results)} faults, {len(failed)} failed; seed {arguments.seed}")
    return int(bool(failed))


def _settings(arguments: argparse.Namespace) -> tuple[dict[str, dict[str, Any]], Model]:
    """Return the parameters of both nodes, and the robot."""
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
    for node in nodes.values():
        node |= {"robot_description_file": robot, "diagnostic_updater.period": 0.1}
        node |= reading
        node.setdefault("joints", list(model.joint_names))
        if arguments.params is None:
            node["gravity"] = list(OBLIQUE)
    nodes["simulator"] |= {
        "root_joint": "fixed",
        "initial_positions": [float(x) for x in _place(model)],
    }
    if arguments.params is None:
        nodes["computed_torque"]["max_state_age"] = 0.5
    return {name: nodes[name] for name in ("simulator", "computed_torque")}, model


def _place(model: Model) -> np.ndarray:
    """Return where the robot stands: within the limits."""
    low, high = np.maximum(model.lower, -1.0), np.minimum(model.upper, 1.0)
    bad = high < low
    low[bad], high[bad] = model.lower[bad], model.upper[bad]
    return np.asarray(low + 0.6 * (high - low))


def _campaign(
    faults: list[Fault], limits: dict[str, float], model: Model, path: str, seed: int
) -> list[FaultResult]:
    """Return what followed each fault, printed as it comes."""
    from ros_nodes.tools.stand import NodeStand

    results: list[FaultResult] = []
    busy, cores = os.getloadavg()[0], os.cpu_count() or 1
    if busy > cores:
        print(f"the machine is busy (load {busy:.1f}, {cores} cores): times are longer")
    print(f"{'fault':20}{'zero [s]':>8} {'bound':>6}  result diagnostics", flush=True)
    with _empty_domain() as live:
        stand = NodeStand(live, model.joint_names, _place(model), path, seed)
        try:
            for number, fault in enumerate(faults, 1):
                if sys.stderr.isatty():
                    shown = f"{number} of {len(faults)}: {fault.meaning}"
                    print(f"{shown:78}", end="\r", file=sys.stderr, flush=True)
                results.append(_tried(stand, fault, limits))
                print(results[-1].line(), flush=True)
        finally:
            stand.close()
    return results


@contextmanager
def _empty_domain() -> Iterator[Any]:
    """Join a domain of this machine in which nobody else is."""
    from ros_nodes.tools.live import connect

    for domain in random.sample(range(1, 101), TRIES):
        os.environ.update(private_environment(domain))
        with connect(JOIN) as live:
            if not live.all_nodes():
                yield live
                return
    raise DynError(f"in {TRIES} domains of ROS 2 there are nodes of others")


def _tried(stand: Any, fault: Fault, limits: dict[str, float]) -> FaultResult:
    """Return what follows a fault; where the states themselves paused, it is repeated.

    A machine that has other work stops a process now and then: efforts that should go
    on then stop for no fault of the nodes.
    """
    for _ in range(REPEATED):
        result, gap = _once(stand, fault, limits)
        if not result.reason or fault.follows != GOES_ON or gap < limits["state"] / 2:
            return result
    return replace(
        result, reason=f"{result.reason}; joint states paused for {gap:.3f} s"
    )


def _once(
    stand: Any, fault: Fault, limits: dict[str, float]
) -> tuple[FaultResult, float]:
    """Return what follows a fault, and the longest pause of the joint states [s]."""
    bound = limits[fault.after] if fault.follows == STOPS else None
    try:
        stand.ensure(fault.mode)
    except DynError as error:
        return FaultResult(fault, math.nan, bound, "-", str(error)), 0.0
    seen, lines = stand.seen[fault.watch], len(stand.log())
    before = seen[-1].values
    onset = stand.begin()
    fault.inject(stand)

    def logged() -> bool:
        return any(fault.until in line for line in stand.log()[lines:])

    if fault.until:
        stand.watch(fault.extra, logged)
    extra = 0.0 if fault.until else fault.extra
    stand.watch(min((bound or 0.0) + MARGIN + WATCHED, 60.0) + extra)
    said, efforts, gap = stand.worst_said(), list(seen), stand.longest_pause(onset)
    zero = _time_of_zero(efforts, onset)
    reason = _why_bad(fault, efforts, before, onset, limits["state"])
    if not reason and bound is not None and not zero <= bound + MARGIN:
        reason = f"it took {zero:.3f} s"
    if not reason and fault.until and not logged():
        reason = "the controller said nothing of it"
    if not reason and fault.says not in said:
        reason = f"no diagnostics of {fault.says}"
    return FaultResult(fault, zero, bound, said, reason), gap


def _time_of_zero(efforts: list[Any], onset: float) -> float:
    """Return after what time the effort is zero and stays so [s]; NaN: it does not."""
    active = [k for k, x in enumerate(efforts) if x.values.any()]
    first = active[-1] + 1 if active else 0
    return efforts[first].t - onset if first < len(efforts) else math.nan


def _longest_effort(efforts: list[Any]) -> float:
    """Return for how long an effort that was not zero stood without a new one [s]."""
    pairs = zip(efforts, efforts[1:], strict=False)
    return max((b.t - a.t for a, b in pairs if a.values.any()), default=0.0)


def _why_bad(
    fault: Fault, efforts: list[Any], before: np.ndarray, onset: float, longest: float
) -> str:
    """Return what is wrong with the efforts after a fault; empty if nothing is."""
    if not efforts:
        return "no effort was seen after it"
    if not all(np.isfinite(x.values).all() for x in efforts):
        return "an effort was not finite"
    if fault.follows == STOPS:
        return "the effort does not stay zero" if efforts[-1].values.any() else ""
    if fault.follows == WARNS:
        return ""
    if fault.follows == RETURNS:
        stood = _longest_effort(efforts)
        if stood > longest + MARGIN:
            return f"an effort stood for {stood:.3f} s"
        return "" if efforts[-1].values.any() else "the effort does not come back"
    gap = float(np.diff([onset, *(x.t for x in efforts)]).max())
    if gap > longest + MARGIN:
        return f"no effort for {gap:.3f} s"
    if not all(x.values.any() for x in efforts):
        return "an effort was zero"
    size = SAME * max(float(np.abs(before).max()), 1.0)
    if fault.mode == ALONE and np.abs(efforts[-1].values - before).max() > size:
        return "the effort changed"
    return ""
