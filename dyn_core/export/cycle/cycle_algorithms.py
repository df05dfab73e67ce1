"""The algorithms of control cycles, one for each kind of law.

Inputs of several algorithms: position q and velocity qd, (nv,); reference q_ref, qd_ref
and qdd_ref, (nv,); gain kd, which brakes in a ramp, 20 where it is not above 0, (nv,)
[1/s]; time t [s]; `fresh`, 1 if q and qd are new; `request`: 0 none, 1 ramp, 2 zero, 3
reset, 4 disable; `state` of the last cycle, flat, zeros to begin; `stops`, (3,), or
None: on_stale and on_violation (1 ramp, 2 zero, 3 auto) and stop_time [s] in place of
the rules.

Returned are a tuple of the effort, (nv,) [N·m | N]; the next `state`; and `report`,
(5,): status, number of the fault, its value, its bound, and 1 if the effort was beyond
a limit, else 0. A cycle never fails: the last good effort replaces the law's if that,
or an input of the law, is not finite.
"""

from __future__ import annotations

from dyn_core.export.cycle.cycle_steps import (
    Cycle,
    CycleInputs,
    all_finite,
    displacement,
)
from dyn_core.export.cycle.tool_steps import ToolCycle
from dyn_core.spatial import Vector

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py


def tracking_cycle(  # type: ignore[no-untyped-def]
    model, q, qd, q_ref, qd_ref, qdd_ref, kp, kd, t, fresh, request, state,
    stops, law, weight, settings,
):  # fmt: skip
    """One cycle of a controller that follows a reference.

        tau = limited(law(q, qd, q_ref, qd_ref, qdd_ref, kp, kd)), unless stopped

    Inputs and outputs are those of TRACKING_CYCLE: effort, state_next and report are
    returned.

    Args:
        kp, kd: Gains before the inertia, (nv,) [1/s²], [1/s].
        law: Slot, the law whose effort is limited and checked.
        weight: Slot, the gravity compensation, which also brakes in a ramp.
        settings: Settings, constants of the cycle.

    Source: design of this project, the Controller of dyn_core.control.
    """
    others = (*q_ref, *qd_ref, *qdd_ref, *kp, *kd)
    tau = law(q, qd, q_ref, qd_ref, qdd_ref, kp, kd)
    error = displacement(q, q_ref, settings.wrapped)
    now = CycleInputs(q, qd, kd, t, fresh, request, state, stops)
    return Cycle(model, settings, weight, now).run(
        tau, all_finite((*tau, *others)), error
    )


def impedance_cycle(  # type: ignore[no-untyped-def]
    model, q, qd, q_ref, qd_ref, qdd_ref, stiffness, damping, t, fresh, request, state,
    stops, law, weight, settings,
):  # fmt: skip
    """One cycle of a controller that pulls a robot to a reference by springs.

        tau = limited(law(q, qd, q_ref, qd_ref, qdd_ref, stiffness, damping)),
        unless stopped

    A ramp brakes with the default gain, since the law has no gain kd before the
    inertia. Inputs and outputs are those of IMPEDANCE_CYCLE: effort, state_next and
    report are returned.

    Args:
        stiffness, damping: Joint gains, (nv,) [N·m/rad | N/m], [N·m·s/rad | N·s/m].
        law: Slot, the law whose effort is limited and checked.
        weight: Slot, the gravity compensation, which also brakes in a ramp.
        settings: Settings, constants of the cycle.

    Source: design of this project, the Controller of dyn_core.control.
    """
    others = (*q_ref, *qd_ref, *qdd_ref, *stiffness, *damping)
    tau = law(q, qd, q_ref, qd_ref, qdd_ref, stiffness, damping)
    error, kd = displacement(q, q_ref, settings.wrapped), Vector.zeros(model.nv)
    now = CycleInputs(q, qd, kd, t, fresh, request, state, stops)
    return Cycle(model, settings, weight, now).run(
        tau, all_finite((*tau, *others)), error
    )


def gravity_cycle(  # type: ignore[no-untyped-def]
    model, q, qd, kd, t, fresh, request, state, stops, weight, settings
):
    """One cycle of a controller that only compensates gravity.

        tau = limited(ID(q, 0, 0)), unless stopped

    The gain kd brakes in a ramp only. Inputs and outputs are those of GRAVITY_CYCLE:
    effort, state_next and report are returned.

    Args:
        weight: Slot, the gravity compensation, which also brakes in a ramp.
        settings: Settings, constants of the cycle.

    Source: design of this project, the Controller of dyn_core.control.
    """
    zero = Vector.zeros(model.nv)
    tau = weight(q, qd, zero)
    now = CycleInputs(q, qd, kd, t, fresh, request, state, stops)
    return Cycle(model, settings, weight, now).run(tau, all_finite(tau), zero)


def cartesian_cycle(  # type: ignore[no-untyped-def]
    model, q, qd, target_pose, target_twist, target_wrench, target_stiffness, frames,
    news, stiffness, ratio, energy_limit, rest_stiffness, rest_damping, target_limits,
    kd, t, fresh, request, state, stops, law, weight, poses, settings,
):  # fmt: skip
    """One cycle of a controller that holds and leads a tool.

        tau = limited(law(q, qd, pose_ref, K, ...)), unless stopped

    The pose of the tool and the posture are held at which the law begins to act; the
    targets then lead the tool. Inputs and outputs are those of CARTESIAN_CYCLE: effort,
    state_next, report and answers are returned. The answers, (6,), have one number for
    each target (pose, twist, wrench, stiffness): 0 none came, 1 used, 2 no law acts, 3
    not finite, 4 not valid, 5 too far; then angle [rad] and distance [m] from the
    reference to the target pose.

    Args:
        target_pose: Position [m] and quaternion x, y, z, w, (7,).
        target_twist, target_wrench, target_stiffness: (6,) each, angular first [rad/s;
            m/s], [N·m; N], [N·m/rad; N/m]; like the pose, in the axes of its frame.
        frames: Frames of the four targets in the base, in the order of `news`, (4, 12):
            the three rows of [R p] one after the other.
        news: 1 for each target that is new (pose, twist, wrench, stiffness), then 1 if
            the input `stiffness` is new, (5,).
        stiffness: Stiffness of the tool, (6, 6) [N·m/rad; N/m].
        ratio: Damping ratio of each axis, (6,).
        energy_limit, rest_stiffness, rest_damping: Inputs of the law: a number above 0
            [J], (nv,) [N·m/rad | N/m] and (nv,) [N·m·s/rad | N·s/m].
        target_limits: target_timeout [s], target_jump, one number [rad and m], and the
            largest rates of angular and other stiffness [N·m/(rad s), N/(m s)], (4,).
        law: Slot, the law whose effort is limited and checked.
        weight: Slot, the gravity compensation, which also brakes in a ramp.
        poses: Slot, the pose of the tool.
        settings: Settings, constants of the cycle.

    Source: design of this project, the Controller of dyn_core.control.
    """
    now = CycleInputs(q, qd, kd, t, fresh, request, state, stops)
    tool = {
        "target_pose": target_pose, "target_twist": target_twist, "news": news,
        "target_wrench": target_wrench, "target_stiffness": target_stiffness,
        "frames": frames, "stiffness": stiffness, "target_limits": target_limits,
    }  # fmt: skip
    cycle = ToolCycle(model, settings, weight, now, tool, poses)
    q, pose, K, v, f, rest = cycle.law_inputs()
    tau = law(
        q, qd, pose, K, v, None, f, ratio, None, energy_limit, rest, rest_stiffness,
        rest_damping,
    )  # fmt: skip
    others = (*pose, *cycle.stiffness, *v, *f, *ratio, energy_limit, *rest)
    others = (*others, *rest_stiffness, *rest_damping)
    return cycle.led(tau, all_finite((*tau, *others)))
