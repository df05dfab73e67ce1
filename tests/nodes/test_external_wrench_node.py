"""The external wrench in the node: axes, covariance, warning, and who listens."""

import time

import numpy as np
import pytest
from listener import Listener

import dyn_core as dyn

pytestmark = pytest.mark.ros
Q = np.array([0.3, -0.6, 0.2, -1.8, 0.4, 1.6, 0.8])
NAMES = [f"joint{k}" for k in range(1, 8)]
PUSH = np.array([0.4, -0.3, 0.2, 5.0, -7.0, 12.0])


@pytest.fixture
def make(controller_node):
    """Return a function that makes an active node and its ExternalWrenchTopics."""
    from ros_nodes.controller.external_wrench_topics import ExternalWrenchTopics

    def node(**values):
        kept = []

        def keep(one):
            assert one.extensions[-1] is ExternalWrenchTopics
            one.extensions = [
                *one.extensions[:-1], lambda x: kept.append(ExternalWrenchTopics(x))
            ]  # fmt: skip

        return controller_node(prepare=keep, **values), kept

    return node


def _give(node, q=Q):
    from sensor_msgs.msg import JointState

    node._on_state(JointState(name=NAMES, position=list(q), velocity=[0.0] * 7))


def test_the_wrench_is_in_the_axes_of_its_link(make):
    """Its covariance as well; nothing is published to nobody."""
    node, (topics,) = make(external_wrench__link="tool")
    _give(node)
    model = dyn.load("arm7")
    J = dyn.solver("jacobian").build(model, frame="tool", reference="aligned")(Q)
    node.controller.detector.external.effort = J.T @ PUSH
    topics.publishers = [Listener(0), Listener(0)]
    topics.publish()
    assert not topics.publishers[0].messages
    topics.publishers = [Listener(), Listener()]
    topics.publish()
    (message,) = topics.publishers[0].messages
    (covariance,) = topics.publishers[1].messages
    T = dyn.solver("forward_kinematics").build(model, frames=["tool"])(Q)[0]
    R = T[:3, :3]
    w = message.wrench
    torque = [w.torque.x, w.torque.y, w.torque.z]
    force = [w.force.x, w.force.y, w.force.z]
    np.testing.assert_allclose(R @ torque, PUSH[:3], atol=1e-9)
    np.testing.assert_allclose(R @ force, PUSH[3:], atol=1e-9)
    assert message.header.frame_id == "tool"
    turn = np.kron(np.eye(2), R)
    C = turn @ np.array(covariance.data).reshape(6, 6) @ turn.T
    np.testing.assert_allclose(C, topics.last.covariance, rtol=1e-9)
    assert covariance.layout.dim[0].label.split(",")[:4:3] == ["moment_x", "force_x"]
    assert [dim.stride for dim in covariance.layout.dim] == [36, 6]
    assert not topics.conditions(time.monotonic())


def test_a_weak_direction_is_a_warning(make):
    """The stretched arm; while inactive there is none."""
    node, (topics,) = make(external_wrench__link="tool")
    _give(node, np.zeros(7))
    topics.publish()
    (condition,) = topics.conditions(time.monotonic())
    assert "hardly feel" in condition.message
    node.trigger_deactivate()
    assert not topics.conditions(time.monotonic())


def test_a_link_that_does_not_move_is_refused(make):
    """At configure, in a sentence; without a link there is nothing."""
    node, kept = make(external_wrench__link="link0")
    assert "no moving link is called 'link0'" in node.failure
    node, _ = make(external_wrench__link="tool", external_wrench__deviation=[1.0, 2.0])
    assert "deviations" in node.failure
    node, (topics,) = make()
    assert topics.wrench is None
    assert node.controller.detector is None
