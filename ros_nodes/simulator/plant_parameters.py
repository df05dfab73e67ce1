"""The simulated plant of a node's parameters: robot, robot with contacts, or chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import dyn_core as dyn
from dyn_core import robots
from dyn_core.control.controller_fields import PAYLOAD_FIELDS, effort_fields
from dyn_core.model.material import Material
from dyn_core.model.sources.arguments import READING, urdf_with
from dyn_core.planar.chain.files import load_chain_file
from dyn_core.planar.chain.plant import ChainRobot
from dyn_core.simulation.channels import single_joints
from dyn_core.simulation.plant import SimulatedPlant
from dyn_core.simulation.robot_plant import RobotPlant
from dyn_core.simulation.simulator import Simulator
from dyn_core.validation import read_yaml
from dyn_core.validation.file_names import file_kind
from ros_nodes.base.node import RobotNode
from ros_nodes.conversions import root_pose

DT, SCHEME = 1e-3, "rk4"  # defaults of chains: step [s], motion between events
# Parameters without effect, which are refused if set: for a chain, whose file sets such
# values; with contacts; with a world file.
ROBOT_ONLY = (
    "package_paths", "xacro_arguments",
    "model_extras", "joints", "root", "tip", "gravity", "model_check",
    "unlisted_joints", "root_joint", "step.plugin_name", "forward_dynamics.plugin_name",
    "substeps", "prescribed.joints", "joint_friction", "joint_springs", "limit_stops",
    "contact.enabled", "initial_root_position", "initial_root_orientation",
    "robot_compensates_gravity", *(field.name for field in PAYLOAD_FIELDS),
)  # fmt: skip
STEP_ONLY = "step.plugin_name", "forward_dynamics.plugin_name"
WORLD_ONLY = tuple(
    f"contact.{key}" for key in ("ground", "mu", "restitution", "erp", "margin")
)


class BuiltPlant(NamedTuple):
    """A plant in its initial state, and what else the parameters say about it.

    `model` has a name. `unlimited` are names of joints without an effort limit, by
    index in the joints of the plant's channels; commands of an effort for them are
    refused. `description` is the URDF that the parameters have, or "".
    """

    plant: SimulatedPlant
    model: Any
    unlimited: Mapping[int, str] = MappingProxyType({})
    description: str = ""


def build_plant(node: RobotNode, period: float) -> BuiltPlant:
    """Return the plant of the node's parameters, for cycles of `period` [s].

    It is a chain if chain_file is set, else a robot. Parameters without effect on this
    plant are refused, and brakes with an initial velocity.
    """
    build = _chain if node.value("chain_file") else _robot
    built = build(node, period)
    plant: Any = built.plant
    plant.braked = node.value("brakes")
    if plant.braked and plant.qd.any():
        raise dyn.SettingError(
            "brakes hold a robot that moves; valid: initial_velocities: [0.0], or"
            " brakes: false",
            "brakes",
        )
    for sentence in getattr(plant, "warnings", ()):  # a chain has none
        node.get_logger().warning(sentence)
    return built


# ---- robots


def _robot(node: RobotNode, period: float) -> BuiltPlant:
    """Return the BuiltPlant of a robot, with contacts if contact.enabled is true."""
    value = node.value
    root_joint = value("root_joint")
    model = node.load(root_joint=None if root_joint == "declared" else root_joint)
    joints = single_joints(model)
    plant = (_with_contacts if value("contact.enabled") else _without_contacts)(
        node,
        model,
        period=period,
        substeps=value("substeps"),
        command_timeout=value("command_timeout"),
        prescribed=_prescribed_joints(model, value("prescribed.joints")),
        joint_friction=value("joint_friction"),
        joint_springs=value("joint_springs"),
        compensates_gravity=value("robot_compensates_gravity"),
        payload_link=value("payload.link"),
        engine=value("engine") or None,
        q0=_start(node, model, joints),
        qd0=_start_rates(node, model, joints),
    )
    columns = [model.v_slice(name).start for name in joints]
    unlimited = _limit_efforts(node, plant, dict(zip(joints, columns, strict=True)))
    plant.compensated[[columns[k] for k in unlimited]] = False
    return BuiltPlant(plant, model, unlimited, _urdf(node))


def _limit_efforts(
    node: RobotNode, plant: RobotPlant, columns: Mapping[str, int]
) -> dict[int, str]:
    """Declare effort_limits.JOINT, set a plant's limits; return joints without any.

    `columns` has the index in tau by joint; keys of the result are positions in its
    order. A parameter of 0 leaves the limit of the model.
    """
    node.declare(effort_fields(list(columns)))
    lacking = {}
    for k, (name, column) in enumerate(columns.items()):
        limit = node.value(f"effort_limits.{name}")
        if limit > 0:
            plant.effort_limit[column] = limit
        elif not plant.model.effort_limit[column]:
            lacking[k] = name
    return lacking


def _without_contacts(
    node: RobotNode, model: dyn.Model, **settings: Any
) -> dyn.Simulator:
    """Return a Simulator; log a warning about contact parameters that are set."""
    if idle := ", ".join(_idle_contacts(node)):
        node.get_logger().warning(f"contact.enabled is false; no effect: {idle}")
    _refuse_options(node, ("contact",), "contact.enabled is false")
    if "limit_stops" in node.options("step"):
        raise dyn.SettingError(
            "step.options.limit_stops: set the parameter limit_stops", "limit_stops"
        )
    return Simulator(
        model,
        step=node.solver("step"),
        forward_dynamics=node.solver("forward_dynamics"),
        limit_stops=node.value("limit_stops"),
        **settings,
    )


def _start(
    node: RobotNode, model: dyn.Model, joints: Sequence[str]
) -> np.ndarray | None:
    """Return the initial position, (nq,) [rad | m]; None if none is set.

    Initial positions are values of `joints`, in this order; all others are as in
    Model.start. A root pose that is set replaces the neutral one.
    """
    names = "initial_root_position", "initial_root_orientation"
    changed = [name for name in names if node.value(name) != node.specs[name].default]
    first = model.joint[1:2]  # the first joint, if there is one
    if changed and [joint.kind for joint in first] != ["floating"]:
        raise dyn.SettingError(
            f"{changed[0]} is for a floating root: set root_joint to floating",
            changed[0],
        )
    values = node.value("initial_positions")
    listed = _is_set("initial_positions", values, joints)
    if not listed and not changed:
        return None
    q = model.start()
    if changed:
        q[model.q_slices[1]] = root_pose(*(node.value(name) for name in names))
    for name, value in zip(joints, values if listed else (), strict=listed):
        q[model.q_slice(name)] = value
    return q


def _start_rates(
    node: RobotNode, model: dyn.Model, joints: Sequence[str]
) -> np.ndarray | None:
    """Return the initial velocity, (nv,) [rad/s | m/s], or None for rest."""
    values = node.value("initial_velocities")
    if not _is_set("initial_velocities", values, joints):
        return None
    qd = np.zeros(model.nv)
    qd[[model.v_slice(name).start for name in joints]] = values
    return qd


def _prescribed_joints(model: dyn.Model, values: Sequence[str]) -> tuple[str, ...]:
    """Return the joints with prescribed accelerations; followers are refused, too."""
    names = [name for name in values if name]
    for name in names:
        if name not in model.joint_names:
            raise dyn.SettingError(
                f"prescribed.joints: '{name}' must be one of"
                f" {', '.join(model.joint_names)}",
                "prescribed.joints",
            )
    return tuple(names)


def _urdf(node: RobotNode) -> str:
    """Return the URDF of the parameters, xacro expanded; empty for MJCF or a topic."""
    urdf, file = node.value("robot_description"), node.value("robot_description_file")
    if not urdf and not file:
        return ""
    settings = {name: node.value(name) for name in READING}
    return urdf_with(settings, StringIO(urdf) if urdf else file)


# ---- contacts


def _with_contacts(
    node: RobotNode, model: dyn.Model, **settings: Any
) -> dyn.ContactSimulator:
    """Return a ContactSimulator in its initial state, after a trial step.

    The trial step compiles and checks everything; then state and counters are reset.
    """
    _refuse_set(
        node,
        STEP_ONLY,
        "is for robots without contact: with contact.enabled leave it as it is; steps"
        " are contact.stepper",
    )
    _refuse_options(node, ("step", "forward_dynamics"), "contact.enabled is true")
    robot = dyn.ContactSimulator(model, make_world(node), **settings)
    robot.advance(0.0)
    if robot.report is not None:
        _ = robot.program, robot.report.energy_change  # read by diagnostics
    robot.reset()
    robot.counters.clear()
    return robot


def make_world(node: RobotNode) -> dyn.World:
    """Return the World of the world file or of the parameters.

    Parameters for solver, stepper and solver options replace those of the file; a false
    limit_stops switches its limits off. Parameters of its contents are refused.
    """
    value, path = node.value, node.value("contact.world_file")
    where = f"contact.world_file {path}" if path else "contact"
    if path:
        _refuse_set(
            node, WORLD_ONLY, "belongs in contact.world_file: leave its default"
        )
    try:
        fields = read_yaml(path, "world file", "world")[0] if path else _floor(node)
        world = dyn.World.of(fields)
        options = {**world.solver_options, **node.options("contact")}
        limits = world.limits and value("limit_stops")
        changes: dict[str, Any] = {"solver_options": options, "limits": limits}
        for name, key in (("plugin_name", "solver"), ("stepper", "stepper")):
            if value(f"contact.{name}"):
                where = f"contact.{name}"
                changes[key] = value(where)
        return replace(world, **changes)
    except dyn.SettingError:
        raise
    except dyn.DynError as error:
        raise dyn.SettingError(f"{where}: {error}", where.split()[0]) from error


def _floor(node: RobotNode) -> dict[str, Any]:
    """Return the arguments half_spaces, erp and margin of a World.

    A negative contact.mu means that the floor has no material of its own.
    """
    value = node.value
    mu, restitution = value("contact.mu"), value("contact.restitution")
    if mu < 0 and restitution:
        raise dyn.SettingError(
            "contact.restitution needs the floor's material: set contact.mu, too",
            "contact.restitution",
        )
    if not value("contact.ground") and mu >= 0:
        raise dyn.SettingError(
            "contact.mu is of the floor: set contact.ground, too", "contact.mu"
        )
    floor = dyn.HalfSpace(
        material=Material(mu=mu, restitution=restitution) if mu >= 0 else None
    )
    return {
        "half_spaces": [floor] if value("contact.ground") else [],
        "erp": value("contact.erp"),
        "margin": value("contact.margin"),
    }


# ---- chains


def _chain(node: RobotNode, period: float) -> BuiltPlant:
    """Return the BuiltPlant of a planar chain, with impacts and limits.

    Initial values are the parameters if set, else as in the chain's file: one number
    for each joint but the last.
    """
    value, source = node.value, node.value("chain_file")
    for name in ("robot_description", "robot_description_file"):
        if value(name):
            raise dyn.SettingError(
                f"chain_file and {name} are both set: set one of them", name
            )
    _refuse_set(node, ROBOT_ONLY, "is for robots: with chain_file leave it as it is")
    for name in _idle_contacts(node):
        raise dyn.SettingError(f"{name} has no effect: a chain is simulated", name)
    slots = "step", "forward_dynamics", "contact"
    _refuse_options(node, slots, "a chain is simulated")
    shipped = robots.chains()
    if source not in shipped and file_kind(source, "chain_file") != "file":
        raise dyn.SettingError(
            f"chain_file: no file {source!r}; shipped chains: {', '.join(shipped)}",
            "chain_file",
        )
    path = robots.chain_path(source) if source in shipped else Path(source)
    file = load_chain_file(path)
    chain = file.chain
    node.get_logger().info(f"chain '{chain.name}' read from {source}")
    starts: dict[str, Any] = {}
    for key, name in (("q0", "initial_positions"), ("qd0", "initial_velocities")):
        values = value(name)
        # A single 0.0 is not set also for a chain with one joint.
        listed = list(values) != [0.0] and _is_set(name, values, chain.joint_names[:-1])
        starts[key] = list(values) if listed else None
    plant = ChainRobot(
        chain,
        period=period,
        dt=file.dt or DT,
        window=file.window,
        scheme=file.scheme or SCHEME,
        start=file.start,
        command_timeout=value("command_timeout"),
        engine=value("engine") or None,
        **starts,
    )
    return BuiltPlant(plant, chain)


# ---- parameters without effect


def _refuse_set(node: RobotNode, names: Sequence[str], reason: str) -> None:
    """Raise a SettingError for the first parameter that is set without effect."""
    for name in names:
        if node.value(name) not in ("", node.specs[name].default):
            raise dyn.SettingError(f"{name} {reason}", name)


def _refuse_options(node: RobotNode, slots: Sequence[str], reason: str) -> None:
    """Raise a SettingError for the first option of a slot that is not used."""
    for slot in slots:
        for option in node.options(slot):
            name = f"{slot}.options.{option}"
            raise dyn.SettingError(f"{name} has no effect: {reason}", name)


def _idle_contacts(node: RobotNode) -> list[str]:
    """Return the contact.* parameters, without options, that are not the default."""
    return [
        name
        for name, spec in node.specs.items()
        if name.startswith("contact.")
        and name != "contact.enabled"
        and ".options." not in name
        and node.value(name) != spec.default
    ]


def _is_set(name: str, values: Sequence[float], joints: Sequence[str]) -> bool:
    """Return True for a value of each joint, False for a single 0.0; refuse others."""
    if len(values) == len(joints):
        return True
    if list(values) == [0.0]:
        return False
    raise dyn.SettingError(
        f"{name} has {len(values)} numbers for {len(joints)} joints:"
        f" {', '.join(joints)}",
        name,
    )
