"""Messages <-> arrays, without ROS: any object with the fields will do."""

from types import SimpleNamespace as Message

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.simulation.channels import MeasuredJoints, joint_poses
from dyn_core.spatial.conventions import rotation
from ros_nodes.conversions import (
    JointReader,
    MissingJoint,
    joint_motion,
    quaternion,
    stamp_seconds,
)


def _state(names, position, velocity=(), effort=()):
    return Message(
        name=list(names), position=position, velocity=velocity, effort=effort
    )


def test_names_decide_not_places():
    """Shuffled and extra joints are read by name; an order is matched once."""
    reader = JointReader(["a", "b"])
    q, qd = reader.read(_state("xba", [9.0, 2.0, 1.0], [8.0, 0.2, 0.1]))
    np.testing.assert_array_equal(q, [1.0, 2.0])
    np.testing.assert_array_equal(qd, [0.1, 0.2])
    q, _ = reader.read(_state("ab", [1.0, 2.0]))
    np.testing.assert_array_equal(q, [1.0, 2.0])
    assert len(reader._orders) == 2


def test_an_empty_velocity_is_none():
    """Empty is not zero."""
    assert JointReader(["a"]).read(_state("a", [1.0]))[1] is None


@pytest.mark.parametrize(
    ("message", "error", "expected"),
    [
        (
            _state("a", [1.0]),
            MissingJoint,
            "joint 'b': wanted one entry in name, got not",
        ),
        (_state("abb", [1, 2, 3]), MissingJoint, "more than once"),
        (_state("ab", [1.0]), dyn.ShapeError, "position: wanted 2 numbers"),
        (_state("ab", []), dyn.ShapeError, "position: wanted 2 numbers.*nothing"),
        (_state("ab", [1, 2], [1, 2, 3]), dyn.ShapeError, "velocity: wanted 2 numbers"),
    ],
)
def test_bad_messages_are_refused_with_a_reason(message, error, expected):
    """The error names joint or field."""
    with pytest.raises(error, match=expected):
        JointReader(["a", "b"]).read(message)


def test_nan_passes_to_the_controller():
    """Finiteness is the controller's rule, with its own words."""
    q, _ = JointReader(["a"]).read(_state("a", [float("nan")]))
    assert np.isnan(q).all()


def test_followers_are_published(shipped):
    """joint_states hold mimic joints with the position the rule gives."""
    model = shipped["every_joint"]
    rng = np.random.default_rng(0)
    q, qd, tau = model.random(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    joints = MeasuredJoints.of_model(model).read(q, qd, tau)
    for name, rule in model.followers.items():
        k = joints.names.index(name)
        lead = joints.names.index(rule.leader)
        wanted = rule.multiplier * joints.position[lead] + rule.offset
        assert joints.position[k] == pytest.approx(wanted)
        assert joints.velocity[k] == pytest.approx(
            rule.multiplier * joints.velocity[lead]
        )
        assert joints.effort[k] == 0
    k = joints.names.index("slide")
    assert joints.position[k] == q[model.q_slice("slide")][0]
    assert joints.effort[k] == tau[model.v_slice("slide")][0]
    assert "flight" not in joints.names


def test_joints_with_several_coordinates_have_poses(shipped):
    """Floating, spherical and planar joints as translation, rotation and twist."""
    model = shipped["every_joint"]
    rng = np.random.default_rng(1)
    q, qd = model.random(rng), rng.normal(size=model.nv)
    poses = joint_poses(model, q, qd)
    joint_motions = {pose.name: joint_motion(pose) for pose in poses}
    assert set(joint_motions) == {"flight", "wrist_ball", "sheet"}
    flight, part = joint_motions["flight"], model.q_slice("flight")
    np.testing.assert_allclose(flight.translation, q[part][:3])
    sign = np.sign(q[part][6]) or 1.0
    np.testing.assert_allclose(flight.rotation, sign * q[part][3:], atol=1e-12)
    v = qd[model.v_slice("flight")]
    np.testing.assert_array_equal(flight.angular, v[:3])
    np.testing.assert_array_equal(flight.linear, v[3:])
    sheet = q[model.q_slice("sheet")]
    np.testing.assert_allclose(joint_motions["sheet"].translation, [*sheet[:2], 0])
    assert not joint_motions["wrist_ball"].translation.any()


def test_quaternions_are_scalar_last():
    """A quarter turn about z is (0, 0, s, s)."""
    R = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    half = np.sqrt(0.5)
    np.testing.assert_allclose(quaternion(R), [0, 0, half, half], atol=1e-12)
    np.testing.assert_allclose(rotation(quaternion(R)), R, atol=1e-12)


def test_stamps():
    """A zero stamp is none."""
    assert stamp_seconds(Message(sec=0, nanosec=0)) is None
    assert stamp_seconds(Message(sec=3, nanosec=500_000_000)) == 3.5
