"""Topics of the model: numbers, labels, and that nothing is computed for nobody."""

import numpy as np
import pytest
from listener import Listener

import dyn_core as dyn
from dyn_core.errors import SettingError
from dyn_core.spatial.conventions.common import quaternion

pytestmark = pytest.mark.ros
Q = np.array([0.1, -0.6, 0.2, -2.2, 0.3, 1.6, 0.8])
QD = np.array([0.3, -0.2, 0.1, 0.4, -0.5, 0.2, 0.6])
NAMES = [f"joint{k}" for k in range(1, 8)]
ALL = (
    "coriolis_force", "frame_pose", "gravity_force", "jacobian", "manipulability",
    "mass_matrix",
)  # fmt: skip


@pytest.fixture
def make(controller_node):
    """Return a function that makes an active node and its ModelTopics."""
    from ros_nodes.controller.model_topics import ModelTopics

    def node(**values):
        kept = []

        def keep(one):
            one.extensions = [
                *one.extensions[:-1], lambda x: kept.append(ModelTopics(x))
            ]  # fmt: skip

        one = controller_node(prepare=keep, **values)
        if one.failure is not None:
            raise SettingError(one.failure)
        return one, kept[0]

    return node


def _give(node, q=Q, qd=QD):
    from sensor_msgs.msg import JointState

    node._on_state(JointState(name=NAMES, position=list(q), velocity=list(qd)))


def _heard(node, topics, *names):
    """Return the message of each name, made in this thread."""
    heard = {f"~/{name}": Listener() for name in names}
    topics.publishers = {
        name: heard.get(name, Listener(0)) for name in topics.publishers
    }
    node.worker.submit = lambda kind, make, take, left: take(make())
    topics.look()
    (messages,) = zip(*(heard[f"~/{name}"].messages for name in names), strict=True)
    return messages


def _numbers(message):
    """Return the array of a message, and the names along each axis."""
    labels = [dim.label.split(",") for dim in message.layout.dim]
    sizes = [dim.size for dim in message.layout.dim]
    assert [len(names) for names in labels] == sizes
    strides = [int(np.prod(sizes[k:])) for k in range(len(sizes))]
    assert [dim.stride for dim in message.layout.dim] == strides
    return np.array(message.data).reshape(sizes), labels


@pytest.mark.parametrize("settings", [{}, {"robot_compensates_gravity": True}])
def test_numbers_are_those_of_the_solvers(make, settings):
    """The payload counts, and gravity also where the robot compensates it."""
    node, topics = make(
        model_topics__frame="flange",
        payload__link="tool",
        payload__mass=1.0,
        **settings,
    )
    _give(node)
    C, pose, g, J, sigma, H = _heard(node, topics, *ALL)
    model = dyn.load("arm7")
    loaded = model.with_values({"tool.payload": node.controller.carried.values[0]})
    rnea = dyn.solver("rnea").build(loaded)
    zero = np.zeros(7)
    for message, wanted in (
        (g, rnea(Q, zero, zero)),
        (C, rnea(Q, QD, zero) - rnea(Q, zero, zero)),
    ):
        values, labels = _numbers(message)
        np.testing.assert_allclose(values, wanted, atol=1e-12)
        assert labels == [NAMES]
    values, labels = _numbers(H)
    np.testing.assert_allclose(values, dyn.solver("crba").build(loaded)(Q), atol=1e-12)
    assert labels == [NAMES, NAMES]
    values, labels = _numbers(J)
    jacobian = dyn.solver("jacobian").build(model, frame="flange", reference="aligned")
    np.testing.assert_allclose(values, jacobian(Q), atol=1e-12)
    assert labels[0][0] == "angular_x"
    assert labels[0][5] == "linear_z"
    T = dyn.solver("forward_kinematics").build(model, frames=["flange"])(Q)[0]
    place, turn = pose.pose.position, pose.pose.orientation
    np.testing.assert_allclose([place.x, place.y, place.z], T[:3, 3], atol=1e-12)
    np.testing.assert_allclose(
        [turn.x, turn.y, turn.z, turn.w], quaternion(T[:3, :3]), atol=1e-12
    )
    assert pose.header.frame_id == "link0"
    values, labels = _numbers(sigma)
    singular, product = dyn.solver("manipulability").build(model, frame="flange")(Q)
    np.testing.assert_allclose(values, [*singular, product], atol=1e-12)
    assert labels == [[*(f"singular_value_{k}" for k in range(1, 7)), "product"]]


def test_nothing_is_built_for_nobody(make):
    """A Program is built for the first listener of its topic, in the worker."""
    node, topics = make()
    _give(node)
    topics.look()
    assert not topics._programs
    jobs = []
    node.worker.submit = lambda *job: jobs.append(job)
    topics.publishers["~/gravity_force"] = heard = Listener()
    topics.look()
    topics.look()  # the worker is busy
    ((_, compute, take, _),) = jobs
    assert not topics._programs
    take(compute())
    assert list(topics._programs) == ["inverse_dynamics"]
    assert len(heard.messages) == 1
    topics.look()
    assert len(jobs) == 2


def test_nothing_is_published_before_a_state_or_while_inactive(make):
    """There is no position to compute with."""
    node, topics = make()
    jobs = []
    node.worker.submit = lambda *job: jobs.append(job)
    topics.publishers["~/gravity_force"] = Listener()
    topics.look()
    _give(node)
    node.trigger_deactivate()
    topics.look()
    assert not jobs


def test_a_job_of_an_earlier_configuration_publishes_nothing(make):
    """Its publishers are destroyed; the node is active again."""
    node, topics = make()
    _give(node)
    jobs = []
    node.worker.submit = lambda *job: jobs.append(job)
    topics.publishers["~/gravity_force"] = heard = Listener()
    topics.look()
    for change in ("deactivate", "cleanup", "configure", "activate"):
        getattr(node, f"trigger_{change}")()
    assert node.active
    ((_, compute, take, superseded),) = jobs
    compute()
    assert not heard.messages
    take(dyn.DynError("the publisher is destroyed"))
    superseded()
    assert not node.counters["model topics"]


def test_the_link_is_that_of_the_mode(make):
    """Without one, topics of a link are not there; an unknown one is refused."""
    _, topics = make()
    assert sorted(topics.publishers) == [
        "~/coriolis_force", "~/gravity_force", "~/mass_matrix"
    ]  # fmt: skip
    _, topics = make(mode="cartesian", cartesian__frame="tool")
    assert sorted(topics.publishers) == [f"~/{name}" for name in ALL]
    _, topics = make(model_topics__rate=0.0)
    assert not topics.publishers
    with pytest.raises(SettingError, match="no link is called 'hand'"):
        make(model_topics__frame="hand")


def test_a_failure_is_told_and_the_next_state_is_tried(make):
    """A Program that fails costs a warning, never the control thread."""
    from ros_nodes.base import worker

    def _made(make, take):
        return worker._made(worker.Preparation("model topics", make, take, take))

    node, topics = make()
    _give(node)
    topics.publishers["~/gravity_force"] = Listener()
    topics._call = None
    node.worker.submit = lambda kind, make, take, left: take(_made(make, take))
    topics.look()
    assert node.counters["model topics"] == 1
    assert not topics._busy


def test_a_listener_over_dds_hears_gravity(make, environment):
    """The first message comes once the Program is built."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from std_msgs.msg import Float64MultiArray

    node, _ = make()
    probe = rclpy.create_node("probe")
    executor, heard = SingleThreadedExecutor(), []
    probe.create_subscription(
        Float64MultiArray, "/computed_torque/gravity_force", heard.append, 1
    )
    executor.add_node(node)
    executor.add_node(probe)
    try:
        for _ in range(3000):
            _give(node)
            executor.spin_once(timeout_sec=0.01)
            if heard:
                break
    finally:
        executor.shutdown(timeout_sec=1.0)
        probe.destroy_node()
    wanted = dyn.solver("rnea").build(dyn.load("arm7"))(Q, 0 * Q, 0 * Q)
    np.testing.assert_allclose(heard[0].data, wanted, atol=1e-12)
