"""Frames and markers of the simulator, for RViz and Foxglove."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.spatial.conventions import rotation
from dyn_core.view.robot_scene import RobotScene

pytestmark = [pytest.mark.ros, pytest.mark.timeout(120)]


class _Plain(SimpleNamespace):
    """A message whose fields are made when they are first asked for."""

    def __getattr__(self, name):
        value = [] if name in ("transforms", "markers", "points") else _Plain()
        setattr(self, name, value)
        return value


class _Publisher:
    """Keeps what is published; somebody listens."""

    def __init__(self, topic):
        self.topic, self.sent = topic, []

    def get_subscription_count(self):
        return 1

    def publish(self, message):
        self.sent.append(message)


@pytest.fixture
def packages(monkeypatch):
    """Return the packages tf2_msgs and visualization_msgs, as stand-ins.

    Neither is a requirement, and tf2_msgs has no wheel.
    """
    for name, kinds in (
        ("tf2_msgs", ("TFMessage",)),
        ("visualization_msgs", ("MarkerArray", "Marker")),
    ):
        module = ModuleType(f"{name}.msg")
        for kind in kinds:
            setattr(module, kind, type(kind, (_Plain,), {}))
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, f"{name}.msg", module)
    return monkeypatch


class _Node:
    """What SceneTopics uses of the simulator node."""

    def __init__(self, **values):
        self.values = {
            "scene_rate": 30.0, "engine": "graph", "contact.frame_id": "world",
            "contact.wrench_link": "", **values,
        }  # fmt: skip
        self.value, self.said, self.jobs = self.values.get, [], []
        self.published = {}

    def create_publisher(self, kind, topic, _):
        return self.published.setdefault(topic, _Publisher(topic))

    def keep(self, resource):
        return resource

    def every(self, period, job):
        self.jobs.append((period, job))

    def stamp(self):
        from builtin_interfaces.msg import Time

        return Time(sec=3)

    def get_logger(self):
        return SimpleNamespace(info=self.said.append)


def _topics(node, plant):
    from ros_nodes.simulator.scene_topics import SceneTopics

    return SceneTopics(node, plant, plant.channels())


def _tree(messages):
    """Return pose in the parent, and parent, of each link of TFMessages."""
    tree = {}
    for each in (x for message in messages for x in message.transforms):
        t, r = each.transform.translation, each.transform.rotation
        pose = np.eye(4)
        pose[:3, :3] = rotation(np.array([r.x, r.y, r.z, r.w]))
        pose[:3, 3] = t.x, t.y, t.z
        assert each.header.stamp.sec == 3 and each.child_frame_id not in tree
        tree[each.child_frame_id] = pose, each.header.frame_id
    return tree


def _in_world(tree, link):
    pose, parent = tree[link]
    return pose if parent == "world" else _in_world(tree, parent) @ pose


@pytest.mark.parametrize("name", ["arm7", "quadruped", "every_joint"])
def test_frames_are_the_tree_of_the_urdf(packages, ros, name):
    """Chained, they are the links' poses; those that never move are static."""
    model = dyn.load(name, check="warn")
    plant = dyn.Simulator(model, engine="graph")
    plant.q[:] = model.random(np.random.default_rng(0))
    node = _Node()
    _topics(node, plant)
    ((period, job),) = node.jobs
    assert period == pytest.approx(1 / 30)
    job()
    still, moving = (node.published[x].sent for x in ("/tf_static", "/tf"))
    tree = _tree([*still, *moving])
    links = [x.name for x in model.build.description.links if x.name in model.frames]
    assert tree.keys() == {*links}
    places = dyn.solver("forward_kinematics").build(model, frames=links, engine="graph")
    for link, pose in zip(links, places(plant.q), strict=True):
        np.testing.assert_allclose(_in_world(tree, link), pose, atol=1e-12)
    above = {x.child: x.parent for x in model.build.description.joints}
    assert all(tree[x][1] == above.get(x, "world") for x in links)
    assert {x.child_frame_id for x in still[0].transforms} == {
        x for x in links
        if model.frames[x].body == (model.frames[above[x]].body if x in above else 0)
    }  # fmt: skip
    plant.q[:] = model.random(np.random.default_rng(1))
    job()
    assert len(still) == 1 and len(moving) == 2


def test_a_world_frame_named_as_the_root_link_is_the_root_link(packages, ros):
    """A frame that were its own parent would make TF refuse the tree."""
    model = dyn.load("arm7")
    node = _Node(**{"contact.frame_id": "link0"})
    _topics(node, dyn.Simulator(model, engine="graph"))
    node.jobs[0][1]()
    sent = [*node.published["/tf_static"].sent, *node.published["/tf"].sent]
    tree = {x.child_frame_id: x.header.frame_id for m in sent for x in m.transforms}
    assert tree["link1"] == "link0" and "link0" not in tree
    assert {*tree, "link0"} == {*model.frame_names}


def test_markers_show_the_mass_and_the_forces(packages, ros):
    """A robot that stands: arrows of contacts add up to its weight, as long as it is."""
    model = dyn.load("quadruped", root_joint="floating")
    q0 = model.neutral()
    q0[2] = RobotScene(model).start()[2]
    plant = dyn.ContactSimulator(model, {}, q0=q0)
    for k in range(3):
        plant.advance(0.002 * k)
    node = _Node()
    _topics(node, plant)
    node.jobs[0][1]()
    first, mass, *arrows = node.published["~/markers"].sent[0].markers
    assert first.action == 3 and len(arrows) == 4
    assert {x.header.frame_id for x in (first, mass, *arrows)} == {"world"}
    scene = RobotScene(model)
    centre = scene.mass_centre(scene.poses(plant.q))
    c = mass.pose.position
    np.testing.assert_allclose([c.x, c.y, c.z], centre, atol=1e-9)
    forces = plant.channels().forces["contacts"]()
    scale = {
        round((a.points[1].z - a.points[0].z) / x.force[5], 9)
        for a, x in zip(arrows, forces, strict=True)
    }
    assert len(scale) == 1 and scale.pop() > 0
    assert len({x.id for x in (first, mass, *arrows)}) == 6


def test_the_centre_of_mass_is_of_what_moves(packages, ros):
    """With its payload, and without the base of an arm, as in the viewer."""
    model = dyn.load("arm7")
    plant = dyn.Simulator(model, engine="graph", payload_link="tool")
    plant.q[:] = model.random(np.random.default_rng(0))
    node, load = _Node(), dyn.control.Payload(3.0, (0.02, -0.01, 0.09))
    topics = _topics(node, plant)
    scene = RobotScene(model)
    centre = scene.mass_centre(scene.poses(plant.q))
    (X,) = dyn.solver("forward_kinematics").build(
        model, frames=["tool"], engine="graph"
    )(plant.q)
    load_centre = X[:3, :3] @ load.com + X[:3, 3]
    both = (float(model.mass) * centre + 3.0 * load_centre) / (float(model.mass) + 3.0)
    for wanted in centre, both:
        topics.publish()
        c = node.published["~/markers"].sent[-1].markers[1].pose.position
        np.testing.assert_allclose([c.x, c.y, c.z], wanted, atol=1e-9)
        plant.attach(load)


def test_the_wrench_of_the_sensor_is_two_arrows(packages, ros):
    """In the world, at the link, from the wrench in its axes."""
    model = dyn.load("arm7")
    plant = dyn.ContactSimulator(model, {})
    link = model.frame_names[-1]
    plant.channels().wrench(link)
    node = _Node(**{"contact.wrench_link": link})
    topics = _topics(node, plant)
    node.jobs[0][1]()
    assert len(node.published["~/markers"].sent[0].markers) == 2  # no step so far
    plant.advance(0.0)
    topics.publish()
    *_, torque, force = node.published["~/markers"].sent[1].markers
    assert (torque.ns, force.ns) == ("wrench: torque", "wrench: force")
    (pose,) = dyn.solver("forward_kinematics").build(
        model, frames=[link], engine="graph"
    )(plant.q)
    w = plant.channels().wrench(link)
    for arrow, part in ((torque, w[:3]), (force, w[3:])):
        a, b = (np.array([p.x, p.y, p.z]) for p in arrow.points)
        np.testing.assert_allclose(a, pose[:3, 3], atol=1e-12)
        wanted = pose[:3, :3] @ part
        np.testing.assert_allclose(np.cross(b - a, wanted), np.zeros(3), atol=1e-9)
        assert (b - a) @ wanted > 0


def test_what_is_not_installed_is_said_once_and_not_published(packages, ros):
    """In words; with the rate 0 there is nothing to say."""
    plant = dyn.Simulator(dyn.load("two_link"), engine="graph")
    packages.setitem(sys.modules, "tf2_msgs.msg", None)
    node = _Node()
    _topics(node, plant)
    assert len(node.said) == 1 and "tf2_msgs is not installed" in node.said[0]
    assert node.published.keys() == {"~/markers"}
    packages.setitem(sys.modules, "visualization_msgs.msg", None)
    node = _Node()
    _topics(node, plant)
    assert len(node.said) == 2 and not node.published and not node.jobs
    node = _Node(scene_rate=0.0)
    _topics(node, plant)
    assert not node.said and not node.published


def test_a_chain_has_no_frames_of_links(packages, ros):
    """It has no URDF, and the node runs as before."""
    from rclpy.parameter import Parameter

    from ros_nodes.simulator_node import SimulatorNode

    node = SimulatorNode(parameter_overrides=[Parameter("chain_file", value="hopper")])
    assert node.start()
    node.destroy_node()
