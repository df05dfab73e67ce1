"""One cycle of a controller as one kernel: law, effort limits, envelope, stops.

A Program of this file computes the same as `Controller.update` and `Controller.watch`
for one state, for callers outside Python. It has no memory: the state of the controller
is the input `state` and the output `state_next`; it starts with zeros. It never fails
and never returns an effort that is not finite or outside the limits: `report` names the
fault.

These solvers are not in the registry: their options are settings of dyn_core.control,
and they are tested against the Controller. `computed_torque` alone, without limits, is
the solver of that name.

The caller is responsible for: the reference and its checks against position and
velocity limits, the effort of a trajectory (feed forward), the integral of the error
(add it to qdd_ref), time stamps and ages, whether the period is short enough for the
gains (`check_gains` of a Controller), velocities that contradict positions slightly for
a long time, a second solver (shadow), collisions, and holding a position after a stop
(`hold`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dyn_core.control import Bounds, Rules, StateBounds
from dyn_core.control.joint_limits import effort_limits
from dyn_core.control.joint_values import joint_values, wrapped_joints
from dyn_core.control.law_programs import check_joints
from dyn_core.control.modes.cartesian_law import AXES, moving_link
from dyn_core.control.safety.envelope import JOINT, WHOLE, Envelope
from dyn_core.control.settings import FULL_EFFORT
from dyn_core.control.states.plausibility import StateCheck
from dyn_core.engines import Program
from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.export.cycle.cycle_algorithms import (
    cartesian_cycle,
    gravity_cycle,
    impedance_cycle,
    tracking_cycle,
)
from dyn_core.export.cycle.cycle_steps import (
    FAULTS,
    STATE_NUMBERS,
    STATE_VECTORS,
    STATUS,
    Settings,
)
from dyn_core.export.cycle.tool_steps import TOOL_STATE
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.problems import (
    CARTESIAN_CONTROL,
    FORWARD_KINEMATICS,
    GRAVITY_CONTROL,
    IMPEDANCE_CONTROL,
    PASSIVE,
    TRACKING_CONTROL,
)
from dyn_core.problems.ports import plain_tau
from dyn_core.problems.signatures import Signature
from dyn_core.problems.signatures import port_row as P
from dyn_core.solving.build_options import BuildOptions, check_names
from dyn_core.solving.registry import default_registry, solver
from dyn_core.solving.solver import TracedSolver
from dyn_core.validation import check_object, named_settings

DEFAULT_BOUNDS, DEFAULT_STATE_BOUNDS = Bounds(), StateBounds()  # as in a Controller
LIMIT = "effort_limits."  # begins the option of a joint's effort limit
_LIVE = (
    P("t", "", "s", "time, steady"),
    P("fresh", "", "", "1 where q and qd are new, 0 where none have come"),
    P("request", "", "",
        "0 none, 1 stop by a ramp, 2 stop at zero, 3 reset the stop, 4 disable"),
    P("state", "state", "", "state_next of the last cycle; zeros to begin"),
    P("stops", "3", "",
        "in place of the rules on_stale and on_violation (1 ramp, 2 zero, 3 auto) and"
        " stop_time [s]", optional=True),
)  # fmt: skip
_RESULTS = (
    plain_tau,
    P("state_next", "state", "", "state of the next cycle"),
    P("report", "5", "",
        "status, fault, its value, its bound, whether an effort was limited"),
)  # fmt: skip


def _cycle_of(name: str, law: Signature, meaning: str) -> Signature:
    """Return the Signature of a cycle, of the ports of its law and the controller."""
    return Signature(
        name,
        (*law.inputs, *_LIVE),
        _RESULTS,
        passive=PASSIVE,
        answers_all=True,
        meaning=f"{meaning}, limited, checked, and replaced by those of a stop",
    )


TRACKING_CYCLE = _cycle_of("tracking_cycle", TRACKING_CONTROL, TRACKING_CONTROL.meaning)
IMPEDANCE_CYCLE = _cycle_of(
    "impedance_cycle", IMPEDANCE_CONTROL, IMPEDANCE_CONTROL.meaning
)
GRAVITY_CYCLE = _cycle_of("gravity_cycle", GRAVITY_CONTROL, GRAVITY_CONTROL.meaning)
_TOOL = {port.name: replace(port, optional=False) for port in CARTESIAN_CONTROL.inputs}
_TARGETS = (
    P("target_pose", "7", "m; -", "position and quaternion x, y, z, w in its frame"),
    P("target_twist", "6", "rad/s; m/s", "velocity of the reference"),
    P("target_wrench", "6", "N·m; N", "wrench that the tool exerts besides"),
    P("target_stiffness", "6", "N·m/rad; N/m", "stiffness of the axes of its frame"),
    P("frames", "4 12", "m",
        "pose [R p] of the frame of each target in the base at its receipt, by rows"),
    P("news", "5", "",
        "1 for each target that came since the last cycle, and for a changed stiffness,"
        " towards which the present one then changes; else 0"),
    *(_TOOL[name] for name in ("stiffness", "ratio", "energy_limit", "rest_stiffness",
        "rest_damping")),
    P("target_limits", "4", "s; rad, m; N·m/(rad s), N/(m s)",
        "target_timeout, target_jump, and stiffness_rate: angular, others"),
)  # fmt: skip
_ANSWERS = P("answers", "6", "",
    "for each target: 0 none came, 1 used, 2 no law acts, 3 not finite, 4 not valid, 5"
    " too far; angle and distance from the reference to the pose")  # fmt: skip
CARTESIAN_CYCLE = replace(
    _cycle_of("cartesian_cycle", CARTESIAN_CONTROL, CARTESIAN_CONTROL.meaning),
    inputs=(*GRAVITY_CONTROL.inputs[:2], *_TARGETS, GRAVITY_CONTROL.inputs[2], *_LIVE),
    outputs=(*_RESULTS, _ANSWERS),
)
# By cycle: law, Signature of the law, Signature of the cycle, algorithm.
CYCLES: dict[str, tuple[str, Signature, Signature, Callable[..., Any]]] = {
    f"{law}_cycle": (law, kind, signature, algorithm)
    for law, kind, signature, algorithm in (
        ("computed_torque", TRACKING_CONTROL, TRACKING_CYCLE, tracking_cycle),
        ("joint_impedance", IMPEDANCE_CONTROL, IMPEDANCE_CYCLE, impedance_cycle),
        ("gravity_compensation", GRAVITY_CONTROL, GRAVITY_CYCLE, gravity_cycle),
        ("cartesian_impedance", CARTESIAN_CONTROL, CARTESIAN_CYCLE, cartesian_cycle),
        ("operational_space", CARTESIAN_CONTROL, CARTESIAN_CYCLE, cartesian_cycle),
    )
}


def cycle_row(name: str) -> tuple[str, Signature, Signature, Callable[..., Any]]:
    """Return (law, Signature of the law, Signature of the cycle, algorithm)."""
    if not isinstance(name, str) or name not in CYCLES:
        known = ", ".join(CYCLES)
        raise UnsupportedError(f"there is no cycle '{name}'; valid: {known}")
    return CYCLES[name]


def control_cycle(
    name: str,
    model: Model,
    *,
    rules: Rules | None = None,
    bounds: Bounds | None = DEFAULT_BOUNDS,
    state_bounds: StateBounds | None = DEFAULT_STATE_BOUNDS,
    effort_slew: Any = None,
    limits: Mapping[str, float] | None = None,
    wrap: Sequence[str] | None = None,
    **options: Any,
) -> Program[Any]:
    """Return the Program of a cycle, equal to a Controller with the same settings.

    Args:
        name: One of CYCLES: computed_torque_cycle, joint_impedance_cycle,
            gravity_compensation_cycle, cartesian_impedance_cycle or
            operational_space_cycle.
        model: Robot; joints of one coordinate each.
        rules: Uses state_timeout, max_jump, good_samples, on_stale, on_violation,
            stop_time and last_good_cycles; stops are zero or ramp, on_violation also
            auto. None: Rules(). good_samples 1 counts as 2: by the cycle that waits the
            caller knows that its reference must be the robot's position again.
        bounds: Bounds of the envelope; None: there is no envelope.
        state_bounds: Plausibility bounds of states; None: all finite states are
            accepted. Stamps and ages are the caller's, who passes new states only.
        effort_slew: Maximum rate of an effort [N·m/s | N/s]: one number, one a joint in
            the order of qd, or a mapping by joint; None: from 0 to the limit in 0.05 s.
        limits: Effort limits by joint name; they replace the model's [N·m | N].
        wrap: Names of joints whose error is wrapped to [-pi, pi); None: the continuous
            ones.
        options: Options of every build. joint_friction and joint_springs are True by
            default, as in a Controller. Of the law of a tool also the parameters
            cartesian.frame (required) and cartesian.reference.

    Raises:
        UnsupportedError: An unknown name, what is no robot or has driven joints, a
            dtype other than float64, or an invalid option.
        SettingError: A joint has several coordinates or no effort limit, on_violation
            is "hold", rules or bounds are of another type, a value of bounds,
            effort_slew or limits is not valid, or cartesian.frame is no link that
            joints move.
        ModelError: `wrap` is a text, or has a joint that is none of
            model.endless_joints.
        CompileError: LLVM failed.
    """
    law, kind, signature, algorithm = cycle_row(name)
    check_robot(model, "control_cycle")
    check_object("rules", rules, Rules, optional=True)
    check_object("bounds", bounds, Bounds, optional=True)
    check_object("state_bounds", state_bounds, StateBounds, optional=True)
    if model.driven:
        raise UnsupportedError(
            f"{name}: the place of {', '.join(model.driven)} is driven; valid: a robot"
            " without such joints"
        )
    if options.get("dtype", "float64") != "float64":
        raise UnsupportedError(
            f"{name}: dtype={options['dtype']!r}; valid: 'float64' (time needs 53 bits)"
        )
    check_joints(model)
    chosen = {"effort_slew": effort_slew, "limits": limits, "wrap": wrap}
    changed = {
        **_changed("rules", rules or Rules(), Rules()),
        **_changed("bounds", bounds, DEFAULT_BOUNDS),
        **_changed("state_bounds", state_bounds, DEFAULT_STATE_BOUNDS),
        **{key: value for key, value in chosen.items() if value is not None},
        **{key: value for key, value in options.items() if "." in key},
    }
    wrap = wrapped_joints(model, wrap)
    rules, limit = rules or Rules(), effort_limits(model, limits or {})
    tool = {}
    if kind is CARTESIAN_CONTROL:
        axes = options.pop("cartesian.reference", AXES[0])
        tool = {"frame": options.pop("cartesian.frame", ""), "reference": axes}
        moving_link(model, tool["frame"], "; dyn export: --option cartesian.frame=LINK")
        if bounds is not None and bounds.tool_speed is not None:
            bounds = replace(bounds, frame=bounds.frame or tool["frame"])
    if bounds is not None:
        modes = default_registry().modes().values()
        tracks = any(mode.tracks for mode in modes if mode.solver == law)
        bounds = bounds.resolved(model, tracks)
    usual = limit / FULL_EFFORT
    slew = joint_values(model, "effort_slew", effort_slew, usual)
    settings = _settings(model, rules, bounds, state_bounds, limit, slew, wrap)
    size = len(STATE_NUMBERS) + len(STATE_VECTORS) * model.nv
    slots: dict[str, Any] = {"weight": solver("gravity_compensation")}
    kinds = {"weight": GRAVITY_CONTROL}
    if kind is not GRAVITY_CONTROL:
        of_law = tool or {"wrap": wrap}
        slots["law"], kinds["law"] = solver(law).with_options(**of_law), kind
    if tool:
        poses = solver("forward_kinematics").with_options(frames=[tool["frame"]])
        slots["poses"], kinds["poses"] = poses, FORWARD_KINEMATICS
        settings = replace(settings, aligned=tool["reference"] == AXES[0])
        size += sum(TOOL_STATE.values()) + model.nv
    made = TracedSolver(
        name,
        signature,
        algorithm,
        slots=kinds,
        fills=slots,
        options={"settings": settings},
        sizes=lambda model, options: {"state": size},
        by_joint=False,
    )
    program = made.build(model, **{**dict.fromkeys(PASSIVE, True), **options})
    made.changed_options = changed  # headers of an export tell them
    made.numbered = {
        "report status": dict(enumerate(STATUS)),
        "report fault": dict(enumerate(fault_names(model), 1)),
    }
    return program


def _changed(name: str, part: Any, usual: Any) -> dict[str, Any]:
    """Return the attributes that differ from usual ones; for None {name: None}."""
    if part is None:
        return {name: None}
    values, default = vars(part), vars(usual)
    return {k: x for k, x in values.items() if repr(x) != repr(default[k])}


def cycle_of_options(
    name: str, model: Model, options: Mapping[str, Any]
) -> Program[Any]:
    """Return the Program of a cycle with rules and bounds as of cycle_settings."""
    rules, bounds, states, rest = cycle_settings(options)
    check_options(name, rest)
    return control_cycle(
        name, model, rules=rules, bounds=bounds, state_bounds=states, **rest
    )


def cycle_settings(
    options: Mapping[str, Any],
) -> tuple[Rules, Bounds, StateBounds, dict[str, Any]]:
    """Return Rules, Bounds and StateBounds made of some options, and the other options.

    Options called effort_limits.JOINT become entries of `limits`. Attributes of the
    three classes that are not among the options have their defaults.
    """
    rest = named_settings("options", options)
    limits = {k: rest.pop(k) for k in [*rest] if k.startswith(LIMIT)}
    whole = rest.get("limits") or {}
    if limits and isinstance(whole, Mapping):  # else it is refused
        named = {k.removeprefix(LIMIT): value for k, value in limits.items()}
        rest["limits"] = {**whole, **named}
    for name in ("name", "model", "rules", "bounds", "state_bounds"):
        if name in rest:
            message = "valid: attributes of rules and bounds by name, as state_timeout"
            raise SettingError(f"{name} is no option; {message}", name)
    parts: list[dict[str, Any]] = []
    for kind in (Rules, Bounds, StateBounds):
        names = {field.name for field in fields(kind)}
        parts.append({k: rest.pop(k) for k in [*rest] if k in names})
    return Rules(**parts[0]), Bounds(**parts[1]), StateBounds(**parts[2]), rest


def check_options(name: str, options: Iterable[str], more: Sequence[str] = ()) -> None:
    """Check the names of options of a cycle; the values are not checked.

    Args:
        name: One of CYCLES.
        options: Names to check.
        more: Further valid names, listed first.

    Raises:
        UnsupportedError: The cycle is unknown, or a name is not valid; the valid ones
            are listed, attributes of Rules, Bounds and StateBounds included.
    """
    tool = cycle_row(name)[1] is CARTESIAN_CONTROL
    valid = [*more, *("cartesian.frame", "cartesian.reference") * tool]
    valid += [f.name for part in (Rules, Bounds, StateBounds) for f in fields(part)]
    valid += [
        "effort_slew",
        "limits",
        f"{LIMIT}JOINT",
        "wrap",
        "law",
        "weight",
        "poses",
        "settings",
    ]
    valid += [field.name for field in fields(BuildOptions)]
    check_names(f"{name}: unknown option", options, list(dict.fromkeys(valid)))


def fault_names(model: Model) -> tuple[str, ...]:
    """Return the names of the faults; fault k of a report is entry k - 1.

    Bounds of joints come first ("NAME of JOINT", joint by joint for each bound), then
    bounds of the whole robot, then "effort not finite", "request", "effort oscillates".
    """
    joints = [f"{name} of {joint}" for name in JOINT for joint in model.joint_names]
    return (*joints, *WHOLE, *FAULTS)


def state_places(nv: int) -> dict[str, slice]:
    """Return the slice of `state` of each variable that all cycles have, by name.

    Single numbers come first, in the order of STATE_NUMBERS, each as a slice of length
    1, then the joint vectors q, qd, sent, last_good and slewed (STATE_VECTORS), of nv
    numbers each. The variables of a tool are behind them, and not included.
    """
    places = {name: slice(k, k + 1) for k, name in enumerate(STATE_NUMBERS)}
    start = len(STATE_NUMBERS)
    for name in STATE_VECTORS:
        places[name] = slice(start, start + nv)
        start += nv
    return places


def _settings(
    model: Model,
    rules: Rules,
    bounds: Bounds | None,
    state_bounds: StateBounds | None,
    limit: np.ndarray,
    slew: np.ndarray,
    wrap: tuple[str, ...],
) -> Settings:
    """Return the settings that become constants of the kernel.

    `bounds` has values in place of defaults. An on_violation of "hold" is refused.
    """
    if rules.on_violation == "hold":
        valid = "valid in a kernel: zero, ramp, auto"
        raise SettingError(f"on_violation is hold; {valid}", "on_violation")
    believed = None
    if state_bounds is not None:
        check = StateCheck(model, state_bounds)
        rows = check.low, check.high, check.fastest, check.mismatch
        believed = tuple(tuple(row.tolist()) for row in rows)
    bound: np.ndarray | None = None
    if bounds is not None:
        bound = Envelope(model, bounds, limit, "graph").bounds
    return Settings(
        rules=rules,
        limit=tuple(limit.tolist()),
        slew=tuple(slew.tolist()),
        believed=believed,
        bounds=None if bound is None else tuple(bound.tolist()),
        frame=None if bounds is None else bounds.frame,
        wrapped=tuple(n in wrap for n in model.joint_names),
    )
