"""Actuators of an MJCF: effort limits, reflected inertia and damping of joints."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dyn_core.model.checks.findings import Findings
from dyn_core.model.mjcf.compiled import Compiled

_ALONG_JOINTS = ("joint", "jointinparent")


@dataclass(frozen=True)
class Drives:
    """Quantities that actuators add to joints, by index of the joint.

    Attributes:
        effort: Largest joint force of a hinge or slide [N·m | N].
        damping: Damping of the actuator itself, reflected to the joint [N·m·s/rad |
            N·s/m].
        armature: Inertia of the actuator itself, reflected to the joint [kg·m² | kg].
        driven: Indices of joints with a motor; None where the file has no actuators, or
            some act on other elements.
    """

    effort: dict[int, float] = field(default_factory=dict)
    damping: dict[int, float] = field(default_factory=dict)
    armature: dict[int, float] = field(default_factory=dict)
    driven: frozenset[int] | None = None


def read_drives(mjcf: Compiled, findings: Findings) -> Drives:
    """Return effort limits, armature, damping and driven joints of an MJCF.

    The effort limit of a hinge or slide is the largest force within the limits of its
    actuator, if exactly one acts on the joint directly, and within the joint's
    actuatorfrcrange; of an asymmetric range the larger side counts. `driven` is None
    without actuators, and if one acts on another element than joints and fixed tendons.
    `findings` gets a note on each actuator and each asymmetric range.
    """
    m = mjcf.model
    count = len(m.actuator_trntype)
    by_joint: dict[int, list[int]] = {}
    for k in range(count):
        findings.note(
            "actuator",
            mjcf.element("actuator", k),
            "no part of a Model but for effort limit, armature and damping of a joint"
            " that has one",
        )
        if mjcf.kind("actuator_trntype", k) in _ALONG_JOINTS:
            by_joint.setdefault(int(m.actuator_trnid[k, 0]), []).append(k)
    drives = Drives(driven=_driven(mjcf, by_joint) if count else None)
    for joint in range(m.njnt):
        limits = []
        actuators = by_joint.get(joint, [])
        if len(actuators) == 1:
            limits += _force_limits(mjcf, actuators[0])
        if m.jnt_actfrclimited[joint]:
            limits.append(m.jnt_actfrcrange[joint].tolist())
        if limits and mjcf.kind("jnt_type", joint) in ("hinge", "slide"):
            reach = np.array([-np.inf, np.inf])
            for low, high in limits:  # each clips the force that comes to it
                reach = np.clip(reach, low, high)
            drives.effort[joint] = float(np.abs(reach).max())
            if any(low != -high for low, high in limits):
                findings.note(
                    "joint",
                    mjcf.joints[joint],
                    "its actuator is stronger in one direction; the effort limit is"
                    " that of the stronger one",
                )
    _add_reflected(mjcf, drives)
    return drives


def _gear(mjcf: Compiled, actuator: int) -> float:
    """Return the ratio of joint force to actuator force; `actuator` is an index."""
    first = getattr(mjcf.model, "actuator_outadr", None)  # since outputs may be many
    row = actuator if first is None else int(first[actuator])
    return float(mjcf.model.actuator_gear[row, 0])


def _force_limits(mjcf: Compiled, k: int) -> list[list[float]]:
    """Return ranges [lower, upper] of the joint force of actuator k [N·m | N].

    They are, if its force is proportional to the control, its control range times gain
    and gear, and then its force range times gear; without ranges that are not limited.
    """
    m = mjcf.model
    gear, ranges = _gear(mjcf, k), []
    first = getattr(m, "actuator_ctrladr", None)  # since controls may be many
    control = k if first is None else int(first[k])
    proportional = (
        mjcf.kind("actuator_gaintype", k) == "fixed"
        and mjcf.kind("actuator_biastype", k) == "none"
        and mjcf.kind("actuator_dyntype", k) in ("none", "filter", "filterexact")
    )
    if proportional and m.actuator_ctrllimited[control]:
        ranges.append(m.actuator_ctrlrange[control] * m.actuator_gainprm[k, 0] * gear)
    if m.actuator_forcelimited[k]:
        ranges.append(m.actuator_forcerange[k] * gear)
    return [np.sort(pair).tolist() for pair in ranges]


def _driven(mjcf: Compiled, by_joint: dict[int, list[int]]) -> frozenset[int] | None:
    """Return the indices of joints with a motor, directly or through fixed tendons.

    It is None if an actuator acts on another element, such as a site or a spatial
    tendon. `by_joint` has the actuators that act directly on each joint.
    """
    m = mjcf.model
    joints = set(by_joint)
    for k in range(len(m.actuator_trntype)):
        if mjcf.kind("actuator_trntype", k) in _ALONG_JOINTS:
            continue
        if mjcf.kind("actuator_trntype", k) != "tendon":
            return None
        tendon = int(m.actuator_trnid[k, 0])
        first = int(m.tendon_adr[tendon])
        for wrap in range(first, first + int(m.tendon_num[tendon])):
            if mjcf.kind("wrap_type", wrap) != "joint":
                return None
            joints.add(int(m.wrap_objid[wrap]))
    return frozenset(joints)


def _add_reflected(mjcf: Compiled, drives: Drives) -> None:
    """Set armature and damping of the actuators in `drives`, by joint, times gear².

    MuJoCo names at most one actuator of a joint for them; joints without it, and older
    versions of MuJoCo, give no entry.
    """
    m = mjcf.model
    actuator = getattr(m, "jnt_actuatorid", None)  # since actuators have them
    for joint, k in enumerate([] if actuator is None else actuator.tolist()):
        if k >= 0:
            square = _gear(mjcf, k) ** 2
            drives.armature[joint] = float(m.actuator_armature[k]) * square
            drives.damping[joint] = float(m.actuator_damping[k]) * square
