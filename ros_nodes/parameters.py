"""Parameter tables that several nodes share, and checks of unknown names.

Without ROS. Parameters by joint are gains.JOINT.p, .d, .i, .i_clamp and
.angle_wraparound, effort_limits.JOINT, lock.JOINT, collision.thresholds.JOINT, and
constraints.JOINT.trajectory and .goal.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Any

from dyn_core.errors import SettingError, nearest, unknown_name
from dyn_core.solving.registry import default_registry, solver, solver_of
from dyn_core.validation import (
    Field,
    ListOf,
    Name,
    Quantity,
    Switch,
    Whole,
    numbers,
    refuse,
)

QOS = "qos_overrides."
PASSED = (QOS, "use_sim_time")  # beginnings of names that rclpy declares
PROBLEMS = {"contact": "contact_solve", "shadow": "inverse_dynamics"}  # of slots
SLOTS = (
    "forward_dynamics",
    "inverse_dynamics",
    "step",
    "contact",
    "payload_estimation",
    "cartesian_control",
)
OPTION = re.compile(rf"({'|'.join(SLOTS)})\.options\.(\w+)")
GAINS = ("p", "d", "i", "i_clamp", "angle_wraparound")  # gains.JOINT.p, ...
BY_JOINT = re.compile(
    rf"gains\.(.+)\.({'|'.join(GAINS)})|effort_limits\.(.+)|lock\.(.+)"
    r"|collision\.thresholds\.(.+)"
    r"|constraints\.(.+)\.(trajectory|goal)"
)
FORMS = (*(f"gains.JOINT.{x}" for x in GAINS), "effort_limits.JOINT", "lock.JOINT")
_JOINT_GROUPS = ("gains", "effort_limits", "lock", "collision", "constraints")
ALIKE = 0.7  # similarity above which an unknown name may be meant for another
CLOSE = 0.85  # similarity above which an unknown name is a misspelt one
LONG = 20.0  # ratio of a time to its default from which it may be in milliseconds
HOUR = 3600.0  # largest time of a table; above it an `s` is the unit of a factor [s]
_FILE = Name(what="a path, a shipped name, or empty")
_SOURCE = Name(what="a path, a name, package://PKG/FILE, or empty")

ROBOT = (
    Field("autostart", Switch(), "configure and activate at startup", "", True),
    Field("robot_description", Name(),
        "URDF or MJCF as a string; empty: the file, or the topic robot_description",
        "", ""),
    Field("robot_description_file", _SOURCE,
        "all that dyn.load takes: URDF, xacro, MJCF, the name of a robot", "", ""),
    Field("package_paths", ListOf(Name()),
        "packages and folders of packages, searched before AMENT_PREFIX_PATH and"
        " ROS_PACKAGE_PATH", "", []),
    Field("xacro_arguments", ListOf(Name()),
        "values of <xacro:arg>, each as NAME=VALUE", "", []),
    Field("model_extras", _FILE,
        "the sidecar .dyn.yaml, or quadruped_stand; empty: beside the file", "", ""),
    Field("model_check", Name(("error", "warn")),
        "whether what is doubtful about the robot is an error, or a warning in the log"
        " and in /diagnostics (WARN)", "", "warn"),
    Field("joints", ListOf(Name()),
        "controlled joints and their order; empty: all of the model", "", []),
    Field("unlisted_joints", Name(("refuse", "lock")),
        "joints that are not in `joints`: lock them at lock.<joint>, or refuse the"
        " model", "", "refuse"),
    Field("root", Name(), "first link of the chain; empty: the root", "", ""),
    Field("tip", Name(), "last link of the chain; empty: the whole tree", "", ""),
    Field("gravity", numbers(3),
        "gravity in the root frame", "m/s²", [0.0, 0.0, -9.81]),
    Field("engine", Name(), "engine of the Programs; empty: the default", "", ""),
    Field("diagnostic_updater.period", Quantity(0.05, 60.0),
        "period of /diagnostics", "s", 1.0),
)  # fmt: skip


PROCESS = (
    Field("memory_lock", Switch(),
        "whether memory is kept from being paged out; a warning where the system"
        " refuses", "", False),
    Field("cpu_affinity", ListOf(Whole(0, 4095)),
        "CPUs that the process may use; empty: all", "", []),
    Field("priority", Whole(0, 98),
        "real-time priority (SCHED_FIFO) of the thread that answers; of the"
        " controller's watchdog one higher; 0: none", "", 0),
)  # fmt: skip


def lock_fields(joints: Sequence[str]) -> tuple[Field, ...]:
    """Return one Field `lock.JOINT` per joint, in order: a position [rad | m]."""
    doc = "position at which the joint is locked"
    return tuple(Field(f"lock.{j}", Quantity(), doc, "rad, m", 0.0) for j in joints)


def foreign_names(
    where: str, names: Iterable[str], declared: Collection[str], every: Collection[str]
) -> list[str]:
    """Return names that belong to no node of this package; refuse misspelt ones.

    One file may set the parameters of all nodes: names in `every`, use_sim_time,
    qos_overrides.*, solver options (SLOT.options.NAME) and parameters by joint are
    neither refused nor returned. Misspelt is another name that begins with a parameter
    group of this package (the part before the first dot), is gains, effort_limits or
    lock, ends with .plugin_name, or is similar to a known name (likeness above CLOSE).
    """
    heads = {name.partition(".")[0] for name in every if "." in name}
    joint_heads = {form.partition(".")[0] for form in FORMS}
    heads |= joint_heads
    heads.remove("diagnostic_updater")  # group of a library that other nodes use, too
    foreign = []
    for name in names:
        known = name in every or BY_JOINT.fullmatch(name) or OPTION.fullmatch(name)
        if known or name.startswith(PASSED):
            continue
        head, dot, rest = name.partition(".")
        near = [f"{x}.{rest}" for x in _JOINT_GROUPS if likeness(head, x) > CLOSE]
        near = [x for x in near if BY_JOINT.fullmatch(x)]
        ours = [*declared, *every]
        close = [*nearest(name, ours, 1), *(x for x in ours if x.startswith(name))]
        near += [x for x in close if likeness(name, x) > CLOSE]
        begins = head in (heads if dot else joint_heads)
        if near or begins or name.endswith(".plugin_name"):
            valid = sorted(declared if not near or near[0] in declared else every)
            group = name.rpartition(".")[0]
            if near:
                valid = [max(near, key=partial(likeness, name)), *valid]
            elif group.startswith("gains."):  # before the joints are known
                valid = [f"{group}.{gain}" for gain in GAINS] + valid
            elif head in joint_heads:
                valid = [form for form in FORMS if form.startswith(f"{head}.")]
            message = unknown_name("parameter", name, valid)
            raise SettingError(f"{where}: {message}", name)
        foreign.append(name)
    return foreign


def near_names(name: str, known: Collection[str]) -> list[str]:
    """Return at most one known parameter that an unknown one may mean.

    It begins with the last part of the name, has it as a part, or is spelt alike.
    """
    last = name.rpartition(".")[2]
    parts = [x for x in known if last in re.split(r"[._]", x)]
    near = [*nearest(last, known), *parts] if len(last) > 1 else []
    alike = [x for x in near if last in x.lower() or likeness(last, x) > ALIKE]
    return alike[:1]


def check_value(field: Field, where: str, value: Any) -> None:
    """Refuse a value of a parameter, of YAML or ROS, that its node would refuse.

    ROS reads 5 as an integer, which no parameter with decimals takes.
    """
    field.read(where, value)
    kind, listed = field.value_kind, isinstance(value, (list, tuple))
    entries = value if listed else [value]
    if isinstance(kind, ListOf):
        kind = kind.kind
    if isinstance(kind, Quantity) and any(isinstance(x, int) for x in entries):
        decimals = [float(x) for x in entries]
        refuse(where, value, f"write {decimals if listed else decimals[0]}")


def unusual_time(field: Field, value: Any) -> str:
    """Return the doubt about a time that may be meant in milliseconds, or "".

    Only times [s] with a default above 0 and an upper limit of at most an hour are
    doubted, from 20 times the default on.
    """
    kind, usual = field.value_kind, field.default
    if field.unit != "s" or not isinstance(kind, Quantity) or kind.high > HOUR:
        return ""
    if not 0 < LONG * usual <= value:
        return ""
    return (
        f"{field.name} is {value:g} s, {value / usual:g} times its default, {usual:g}"
        " s; in milliseconds? valid: seconds"
    )


def check_solver(name: str, value: Any) -> None:
    """Refuse a solver that no slot of this name (SLOT.plugin_name) can use.

    An empty name and "auto" are valid, and any for a SLOT that names no problem.
    """
    slot, dot, _ = name.partition(".plugin_name")
    if dot and value not in ("", "auto"):
        problem = PROBLEMS.get(slot, slot)
        kinds = [x for x in default_registry().problems() if x.name == problem]
        solver_of(value, *kinds) if kinds else solver(value)


def likeness(name: str, known: str) -> float:
    """Return the similarity of two names, 0 to 1 (equal); case is ignored."""
    return SequenceMatcher(None, name.lower(), known.lower()).ratio()


def check_joint_names(names: Iterable[str], declared: Collection[str]) -> None:
    """Refuse parameters for joints that this node does not have, by a SettingError.

    Groups that this node has for no joint are ignored, except `lock`.
    """
    heads = {name.partition(".")[0] for name in declared if BY_JOINT.fullmatch(name)}
    for name in names:
        head = name.partition(".")[0]
        if BY_JOINT.fullmatch(name) and head in {*heads, "lock"}:
            valid = [x for x in declared if x.startswith(f"{head}.")]
            if name in declared:
                continue
            reason = "; no joint is locked" if head == "lock" and not valid else ""
            raise SettingError(unknown_name("parameter", name, valid) + reason, name)
