"""Declared parameters of the simulator."""

from __future__ import annotations

from ros_nodes.parameters import Spec, robot_specs


def simulator_specs() -> tuple[Spec, ...]:
    """Return the parameters of the simulator."""
    return (
        *robot_specs(),
        *_plant_specs(),
        *_joint_specs(),
        *_topic_specs(),
    )


def _plant_specs() -> tuple[Spec, ...]:
    """Return the parameters of the simulated plant and its solvers."""
    return (
        Spec(
            "chain_file",
            "",
            "planar chain instead of a robot: path of its YAML, or a shipped chain",
            structure=True,
        ),
        Spec(
            "root_joint",
            "fixed",
            "joint of the root link to the world",
            choices=("fixed", "floating"),
            structure=True,
        ),
        Spec(
            "step.plugin_name", "semi_implicit_euler", "solver of STEP", structure=True
        ),
        Spec(
            "forward_dynamics.plugin_name",
            "aba",
            "solver of FORWARD_DYNAMICS",
            structure=True,
        ),
        Spec(
            "update_rate",
            500,
            "cycle rate [Hz]",
            low=1,
            high=10000,
            structure=True,
        ),
        Spec(
            "substeps",
            1,
            "integration steps per cycle",
            low=1,
            high=1000,
            structure=True,
        ),
    )


def _joint_specs() -> tuple[Spec, ...]:
    """Return the parameters of the joints: initial state, friction, springs, limits."""
    return (
        Spec(
            "initial_positions",
            [0.0],
            "initial positions of the listed joints [rad | m]; a single 0.0: neutral"
            " within the limits, or the values of a chain's file",
            structure=True,
        ),
        Spec(
            "initial_velocities",
            [0.0],
            "initial velocities [rad/s | m/s]; a single 0.0: rest, or a chain's file",
            structure=True,
        ),
        Spec(
            "prescribed.joints",
            [],
            "joints driven by ~/accelerations (Float64MultiArray, [rad/s² | m/s²], in"
            " the order of the model) instead of efforts",
            structure=True,
        ),
        Spec(
            "joint_friction",
            True,
            "whether joint damping and dry friction are simulated",
            structure=True,
        ),
        Spec(
            "joint_springs", True, "whether joint springs are simulated", structure=True
        ),
        Spec(
            "limit_stops",
            True,
            "whether position limits are spring-damper stops",
            structure=True,
        ),
    )


def _topic_specs() -> tuple[Spec, ...]:
    """Return the parameters of topics."""
    return (
        Spec(
            "command_timeout",
            0.1,
            "age after which an effort command is replaced by zero [s]",
            low=1e-4,
            high=10.0,
            structure=True,
        ),
        Spec(
            "publish_clock",
            False,
            "whether simulated time is published on /clock",
            structure=True,
        ),
        Spec(
            "frame_id", "base_link", "header.frame_id of joint_states", structure=True
        ),
    )
