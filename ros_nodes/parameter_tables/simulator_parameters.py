"""Parameters of the node `simulator`: plant, joints, topics, root, contacts."""

from __future__ import annotations

from dyn_core.control.controller_fields import PAYLOAD_FIELDS
from dyn_core.validation import Field, ListOf, Name, Quantity, Switch, Whole, numbers
from ros_nodes.parameters import PROCESS, ROBOT

NO_TURN = [0.0, 0.0, 0.0, 1.0]
AS_TOUCHED = -1.0  # value of contact.mu: the link's friction alone
_FILE = Name(what="a path, a shipped name, or empty")

SIMULATOR = (
    *ROBOT,
    *PAYLOAD_FIELDS,
    *PROCESS,
    Field("chain_file", _FILE,
        "planar chain instead of a robot: its YAML, or a shipped chain", "", ""),
    Field("root_joint", Name(("declared", "fixed", "floating")),
        "joint of the root link to the world; declared: as the source says, fixed for"
        " a URDF", "", "declared"),
    Field("step.plugin_name", Name(), "solver of STEP", "", "semi_implicit_euler"),
    Field("forward_dynamics.plugin_name", Name(),
        "solver of FORWARD_DYNAMICS; auto or empty: the step's default, which closes"
        " the loops of a robot", "", "auto"),
    Field("update_rate", Whole(1, 10000), "cycle rate", "Hz", 500),
    Field("substeps", Whole(1, 1000), "integration steps per cycle", "", 1),
    Field("initial_positions", numbers(),
        "initial positions of the listed joints; a single 0.0: neutral within the"
        " limits, or the values of a chain's file", "rad, m", [0.0]),
    Field("initial_velocities", numbers(),
        "initial velocities; a single 0.0: rest, or a chain's file",
        "rad/s, m/s", [0.0]),
    Field("prescribed.joints", ListOf(Name()),
        "joints driven by ~/accelerations (Float64MultiArray, in the order of the"
        " model) instead of efforts", "", []),
    Field("joint_friction", Switch(),
        "whether joint damping and dry friction are simulated", "", True),
    Field("joint_springs", Switch(), "whether joint springs are simulated", "", True),
    Field("limit_stops", Switch(),
        "whether position limits are spring-damper stops", "", True),
    Field("brakes", Switch(),
        "whether brakes hold the robot, at rest, until the first effort command; else"
        " it falls until then; true in the graph demo", "", False),
    Field("command_timeout", Quantity(1e-4, 10.0),
        "age after which an effort command is replaced by zero, or its stamp refused",
        "s", 0.1),
    Field("max_catch_up", Whole(0, 1000),
        "missed cycles that are caught up; what is beyond is lost, and simulated time"
        " lags; with publish_clock all are", "", 5),
    Field("warning_real_time_factor", Quantity(0.0, 1.0),
        "real-time factor of the last 2 s below which /diagnostics warns",
        "", 0.95, structure=False),
    Field("warning_share", Quantity(0.0, 1.0),
        "share of missed cycles in the last 2 s, or of the last 500 commands that are"
        " limited, above which /diagnostics warns", "", 0.1, structure=False),
    Field("robot_compensates_gravity", Switch(),
        "whether the robot carries its own weight and payload, so that commands are"
        " without it; joint_states have all of the effort", "", False),
    Field("publish_clock", Switch(),
        "whether simulated time is published on /clock; stamps are then of it",
        "", False),
    Field("publish_description", Switch(),
        "whether the URDF of the parameters is published on robot_description",
        "", True),
    Field("scene_rate", Quantity(0.0, 1000.0),
        "rate of /tf and ~/markers, while there are subscribers and where tf2_msgs and"
        " visualization_msgs are installed; 0: neither", "Hz", 30.0),
    Field("frame_id", Name(what="a frame, or empty"),
        "header.frame_id of joint_states, which belong to no frame", "", ""),
    Field("initial_root_position", numbers(3),
        "initial position of a floating root: x, y, z", "m", [0.0, 0.0, 0.0]),
    Field("initial_root_orientation", numbers(4),
        "initial orientation of a floating root: quaternion x, y, z, w", "", NO_TURN),
    Field("contact.enabled", Switch(),
        "whether contacts are simulated; contact.stepper then replaces"
        " step.plugin_name", "", False),
    Field("contact.plugin_name", Name(),
        "solver of CONTACT_SOLVE; empty: the world file's, or coulomb_newton", "", ""),
    Field("contact.stepper", Name(),
        "stewart_trinkle, anitescu_potra, moreau_jean or event_driven; empty: the"
        " world file's, or stewart_trinkle", "", ""),
    Field("contact.world_file", _FILE,
        "YAML of a World; empty: the parameters below", "", ""),
    Field("contact.ground", Switch(), "whether the plane z = 0 is a floor", "", True),
    Field("contact.mu", Quantity(AS_TOUCHED, 1e6),
        "friction of the floor, combined with the link's: sqrt(mu_a mu_b); -1: the"
        " link's alone", "", AS_TOUCHED),
    Field("contact.restitution", Quantity(0.0, 1.0),
        "restitution of the floor (the larger of floor and link acts); needs"
        " contact.mu", "", 0.0),
    Field("contact.erp", Quantity(0.0, 1.0),
        "part of an overlap that is corrected in a step", "", 0.2),
    Field("contact.margin", Quantity(0.0, 1e3),
        "largest gap of a contact that takes part in a step", "m", 0.02),
    Field("contact.publish_rate", Quantity(0.1, 1000.0),
        "rate of ~/contact_wrenches and ~/joint_reactions while there are subscribers",
        "Hz", 20.0),
    Field("contact.frame_id", Name(),
        "header.frame_id of ~/contact_wrenches and ~/markers, and of the root link in"
        " /tf: the root frame of the model",
        "", "world"),
    Field("contact.wrench_link", Name(),
        "link behind a force-torque sensor, whose wrench is on ~/wrench: contacts,"
        " weight and inertia of all that hangs on it; empty: none", "", ""),
    Field("contact.wrench_noise", ListOf(Quantity(0.0, 1e6), 2),
        "standard deviations of the noise of ~/wrench: of torques, of forces",
        "N·m, N", [0.0, 0.0]),
    Field("contact.wrench_seed", Whole(0, 10**9), "seed of this noise", "", 0),
)  # fmt: skip
