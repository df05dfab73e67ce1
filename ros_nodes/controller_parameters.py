"""Declared parameters of the computed-torque controller."""

from __future__ import annotations

from collections.abc import Sequence

from ros_nodes.parameters import Spec, robot_specs


def controller_specs() -> tuple[Spec, ...]:
    """Return the parameters of the computed-torque controller."""
    return (
        *robot_specs(),
        *_law_specs(),
        *_state_specs(),
        *_reference_specs(),
    )


def _law_specs() -> tuple[Spec, ...]:
    """Return the parameters of the control law."""
    return (
        Spec(
            "inverse_dynamics.plugin_name",
            "rnea",
            "solver of INVERSE_DYNAMICS",
            structure=True,
        ),
        Spec(
            "mode",
            "computed_torque",
            "control law: computed_torque, or gravity compensation alone",
            choices=("computed_torque", "gravity"),
            structure=True,
        ),
    )


def _state_specs() -> tuple[Spec, ...]:
    """Return the parameters of the checks of joint states."""
    return (
        Spec(
            "state_timeout",
            0.1,
            "age at which the last valid joint state is stale [s]",
            low=1e-3,
            high=10.0,
            structure=True,
        ),
        Spec(
            "max_jump",
            0.5,
            "change of position in one sample that resets the controller [rad | m]",
            low=1e-3,
            high=100.0,
            structure=True,
        ),
        Spec(
            "good_samples",
            3,
            "consecutive valid states before torque is enabled",
            low=1,
            high=1000,
            structure=True,
        ),
        Spec(
            "on_stale",
            "zero",
            "torque while the state is stale: zero, or gravity compensation and damping"
            " for stale_time (arms without brakes)",
            choices=("zero", "gravity_damping"),
            structure=True,
        ),
        Spec(
            "stale_time",
            2.0,
            "longest duration of gravity_damping [s]",
            low=1e-3,
            high=60.0,
            structure=True,
        ),
        Spec(
            "differentiate_velocity",
            False,
            "whether missing velocities are computed from positions",
            structure=True,
        ),
        Spec(
            "velocity_filter_time",
            0.01,
            "time constant of the velocity filter [s]",
            low=1e-4,
            high=1.0,
            structure=True,
        ),
    )


def _reference_specs() -> tuple[Spec, ...]:
    """Return the parameters of trajectories and of the published reference."""
    return (
        Spec(
            "interpolation_method",
            "splines",
            "interpolation between trajectory points",
            choices=("splines", "none"),
        ),
        Spec(
            "allow_nonzero_velocity_at_trajectory_end",
            False,
            "whether the last point may have a nonzero velocity",
        ),
        Spec(
            "publish_rate",
            50.0,
            "rate of ~/reference and ~/error [Hz]",
            low=0.1,
            high=1000.0,
            structure=True,
        ),
    )


def gain_specs(joints: Sequence[str]) -> tuple[Spec, ...]:
    """Return the gains of each joint, which can be changed at any time."""
    specs = []
    for joint in joints:
        specs += [
            Spec(
                f"gains.{joint}.p",
                100.0,
                "position gain before the inertia, 1/s², not N·m/rad",
                low=0.0,
            ),
            Spec(
                f"gains.{joint}.d",
                20.0,
                "velocity gain before the inertia, 1/s, not N·m·s/rad",
                low=0.0,
            ),
        ]
    return tuple(specs)


def joint_specs(joints: Sequence[str], kinds: Sequence[str]) -> tuple[Spec, ...]:
    """Return the effort limit and the wrapping of each joint."""
    specs = []
    for joint, kind in zip(joints, kinds, strict=True):
        specs += [
            Spec(
                f"effort_limits.{joint}",
                0.0,
                "effort limit [N·m | N]; 0: the limit of the model",
                low=0.0,
                structure=True,
            ),
            Spec(
                f"gains.{joint}.angle_wraparound",
                kind == "continuous",
                "whether the position error is wrapped to [-pi, pi)",
                structure=True,
            ),
        ]
    return tuple(specs)
