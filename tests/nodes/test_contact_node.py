"""The simulator node with contact: messages, parameters, refusals, and over DDS."""

import re
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import dyn_core as dyn
from dyn_core import robots
from dyn_core.contact.collision.pairs import ContactId
from dyn_core.simulation.channels import contact_forces, joint_forces
from dyn_core.spatial.conventions import rotation
from ros_nodes.conversions import point_wrench, root_pose
from ros_nodes.graphs import GRAPHS, SIMULATOR

pytestmark = pytest.mark.timeout(120)
ros_only = pytest.mark.ros
G = 9.81
SLAB = """
<robot name="slab">
  <link name="slab">
    <inertial><mass value="2"/>
      <inertia ixx="0.1" iyy="0.2" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="1 0.8 0.5"/></geometry></collision>
  </link>
  <link name="table">
    <inertial><mass value="1"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="turn" type="continuous">
    <parent link="slab"/><child link="table"/>
    <origin xyz="0 0 0.3" rpy="0 1.5707963267948966 0"/><axis xyz="-1 0 0"/>
  </joint>
</robot>
"""


# ---- without ROS


def _force(normal, force, feature=0, torque=(0.0, 0.0, 0.0)):
    id = ContactId("foot", 0, "ground", 0, feature)
    return SimpleNamespace(
        id=id, link_a="foot", link_b="ground", point=np.array([1.0, 2.0, 3.0]),
        normal=np.asarray(normal, float), force=np.asarray(force, float),
        torque=np.asarray(torque, float),
    )  # fmt: skip


def test_contacts_of_a_period_are_means():
    """F = sum_k F_k h_k / period; an impact's impulse stands in place of F_k h_k."""
    up = [0.0, 0.0, 1.0]
    reports = [
        SimpleNamespace(h=0.004, contacts=[_force(up, [0, 0, 10.0])]),
        SimpleNamespace(h=0.0, contacts=[_force(up, [0, 0.2, 0.5], 0, [0, 0, 0.1])]),
        SimpleNamespace(h=0.006, contacts=[_force(up, [1.0, 0, 20.0]),
                                           _force(up, [0, 0, 0], (1, 2))]),
    ]  # fmt: skip
    (wrench,) = map(point_wrench, contact_forces(reports, 0.01))
    assert wrench.name == "foot|ground|0:0:0"
    np.testing.assert_allclose(wrench.force, [0.6, 20.0, 4.0 + 50.0 + 12.0])
    np.testing.assert_allclose(wrench.torque, [0.0, 0.0, 10.0])
    assert contact_forces([], 0.01) == []
    tilted = np.array([0.6, 0.0, 0.8])
    report = SimpleNamespace(h=0.01, contacts=[_force(tilted, [1, 2, 3], (1, 2))])
    (wrench,) = map(point_wrench, contact_forces([report], 0.01))
    assert wrench.name == "foot|ground|0:0:(1,2)"
    R = rotation(wrench.rotation)
    np.testing.assert_allclose(R[:, 0], tilted, atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1.0)


def test_reactions_are_named_by_joint():
    """Force first, as ROS has it; one for each joint."""
    model = dyn.load_urdf(robots.path("two_link"))
    forces = joint_forces(model, np.arange(12.0).reshape(2, 6))
    wrenches = [point_wrench(force) for force in forces]
    assert [f.name for f in wrenches] == list(model.joint_names)
    np.testing.assert_array_equal(wrenches[1].force, [9, 10, 11])
    np.testing.assert_array_equal(wrenches[1].torque, [6, 7, 8])


def test_root_poses():
    """Position, then a unit quaternion; wrong sizes and zero are refused."""
    pose = root_pose([1.0, 2.0, 3.0], [0.0, 0.0, 2.0, 0.0])
    np.testing.assert_allclose(pose, [1, 2, 3, 0, 0, 1, 0])
    with pytest.raises(dyn.ShapeError, match="initial_root_position"):
        root_pose([1.0], [0.0, 0.0, 0.0, 1.0])
    for bad in ([0.0] * 4, [1.0]):
        with pytest.raises(dyn.ShapeError, match="initial_root_orientation"):
            root_pose([0.0] * 3, bad)


def test_the_graph_stands_on_its_parameters():
    """`dyn up contact` simulates a shipped robot with a shipped sidecar."""
    data = yaml.safe_load(GRAPHS["contact"].params_file.read_text(encoding="utf-8"))
    settings = data["/**"]["ros__parameters"]
    assert settings["robot_description_file"] in robots.names()
    assert settings["contact.enabled"] is True
    assert robots.sidecar(settings["model_extras"]).is_file()


# ---- driven directly, without communication


class Heard:
    """A publisher with a subscriber that keeps what comes."""

    def __init__(self):
        self.messages = []
        self.publish = self.messages.append

    def get_subscription_count(self):
        """One listens."""
        return 1


@pytest.fixture
def make(ros):
    """Return a function that makes a simulator with parameters."""
    from rclpy.lifecycle import TransitionCallbackReturn
    from rclpy.parameter import Parameter

    from ros_nodes.simulator_node import SimulatorNode

    made = []

    def node(**values):
        settings = {
            "robot_description": SLAB, "root_joint": "floating", "autostart": False,
            "update_rate": 100, "contact.enabled": True,
            "initial_root_position": [0.0, 0.0, 0.26],
        }  # fmt: skip
        settings |= {k.replace("__", "."): v for k, v in values.items()}
        overrides = [
            Parameter(k, value=v) for k, v in settings.items() if v is not None
        ]
        made.append(SimulatorNode(parameter_overrides=overrides))
        made[-1].good = TransitionCallbackReturn.SUCCESS
        made[-1].bad = TransitionCallbackReturn.FAILURE
        return made[-1]

    yield node
    for each in made:
        each.destroy_node()


@pytest.fixture
def active(make):
    """Return a function that makes an active simulator whose timer does not run."""

    def node(**values):
        quiet = {"warning_share": 1.0, "warning_real_time_factor": 0.0}
        one = make(max_catch_up=0, **quiet, **values)  # on a machine of any speed
        assert one.trigger_configure() == one.good, one.failure
        assert one.trigger_activate() == one.good
        one.topics.every = 0.0
        one.topics.forces = {name: Heard() for name in one.topics.forces}
        return one

    return node


def _run(node, count):
    for _ in range(count):
        node._cycle()


def _set(node, name, value):
    from rclpy.parameter import Parameter

    return node.set_parameters([Parameter(name, value=value)])[0]


@ros_only
def test_a_whole_life(make):
    """configure, activate, deactivate, cleanup, and the same again."""
    node = make()
    for _ in range(2):
        assert node.trigger_configure() == node.good, node.failure
        assert isinstance(node.robot, dyn.ContactSimulator)
        assert node.robot.q[2] == 0.26  # the trial step is undone
        assert not node.robot.reports
        assert node.trigger_activate() == node.good
        assert node.trigger_deactivate() == node.good
        assert node.trigger_cleanup() == node.good
    assert node.trigger_shutdown() == node.good


@ros_only
@pytest.mark.parametrize("stepper", ["stewart_trinkle", "event_driven"])
def test_a_slab_lands_and_its_forces_are_its_weight(active, stepper):
    """Four corners carry 3 kg; the table's joint carries 1 kg, in the link's axes."""
    node = active(contact__stepper=stepper, contact__mu=0.5)
    said = node.topics.forces
    _run(node, 1)
    assert said["contacts"].messages[-1].joint_names == []
    assert node.status()[2]["contacts now"] == 0
    _run(node, 60)
    message = said["contacts"].messages[-1]
    assert message.header.frame_id == "world"
    assert len(message.joint_names) == len(set(message.joint_names)) >= 3
    assert all(name.startswith("slab|ground|0:0:") for name in message.joint_names)
    assert len(message.transforms) == len(message.wrench) == len(message.joint_names)
    up = sum(wrench.force.z for wrench in message.wrench)
    assert up == pytest.approx(3 * G, rel=1e-3)
    for place in message.transforms:
        t, r = place.translation, place.rotation
        assert abs(t.z) < 1e-3
        assert (abs(t.x), abs(t.y)) == pytest.approx((0.5, 0.4), abs=1e-3)
        R = rotation(np.array([r.x, r.y, r.z, r.w]))
        np.testing.assert_allclose(R[:, 0], [0, 0, 1], atol=1e-9)
    through = said["reactions"].messages[-1]
    assert list(through.joint_names) == ["root_joint", "turn"]
    root, turn = through.wrench
    assert abs(root.force.z) < 1e-6
    # the table's own x points down
    assert turn.force.x == pytest.approx(-G, rel=1e-3)
    level, summary, values = node.status()
    assert (level, summary) == (b"\x00", "running")
    assert values["contact solver"] == "coulomb_newton"
    assert values["contact stepper"] == stepper
    assert values["contact status"] in ("converged", "not_unique")
    assert values["contacts now"] == len(message.joint_names)
    assert re.match(r"\d+ of \d+ rows", values["contact rank"])
    assert values["contact residuals"].startswith("primal ")
    assert {"contact iterations", "contact energy change [J]"} < set(values)


@ros_only
def test_nothing_is_made_where_nobody_listens(active):
    """Messages cost nothing without subscribers, and come at their rate."""
    node = active()
    deaf = Heard()
    deaf.get_subscription_count = lambda: 0
    node.topics.forces = {"contacts": deaf, "reactions": deaf}
    _run(node, 3)
    assert deaf.messages == []
    heard = node.topics.forces["contacts"] = Heard()
    node.topics.every = 1000.0
    _run(node, 3)
    assert len(heard.messages) == 1


@ros_only
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"contact__plugin_name": "lemkey"},
            "contact.plugin_name: no solver is called 'lemkey'; did you mean 'lemke'"
            ".* lemke, .*projected_gauss_seidel",
        ),
        ({"contact__plugin_name": "rnea"}, "contact.plugin_name: 'rnea' solves inverse_dynamics"),
        ({"contact__stepper": "euler"}, "stepper is 'euler'; valid: stewart_trinkle"),
        ({"contact__restitution": 0.5}, "contact.restitution .*: set contact.mu"),
        ({"contact__world_file": "nowhere.yaml"}, "cannot read the world file 'nowhere.yaml'"),
        (
            {"contact__world_file": "nowhere.yaml", "contact__mu": 0.5},
            "contact.mu belongs in contact.world_file",
        ),
        ({"step__plugin_name": "rk4"}, "step.plugin_name is for robots without"),
        ({"forward_dynamics__plugin_name": "dense"}, "forward_dynamics.plugin_name is"),
        ({"root_joint": "fixed"}, "initial_root_position is for a floating root"),
        ({"initial_root_orientation": [0.0] * 4}, "wanted a quaternion"),
        ({"chain_file": "hopper", "robot_description": ""}, "for robots: with chain"),
        ({"initial_root_position": [0.0, 0.0, 0.25], "contact__plugin_name":
          "principal_pivoting"}, "principal_pivoting: .*lemke"),
        ({"engine": "steam"}, "valid: plain, graph"),
    ],
)  # fmt: skip
def test_configure_fails_with_a_reason(make, values, expected):
    """The node stays unconfigured and its failure says why."""
    node = make(**values)
    assert node.trigger_configure() == node.bad
    assert node.model is None
    assert re.search(expected, node.failure), node.failure


@ros_only
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("solvers: admm\n", "bad.yaml: .*solvers.*"),
        ("half_spaces: [{normal: [0, 0, 0]}]\n", "bad.yaml: .*is zero"),
        ("solver: lemkey\n", "no solver is called 'lemkey'; did you mean 'lemke'"),
        ("solver_options: {speed: 3}\n", "no option is called .speed"),
        ("half_spaces: [\n", "bad.yaml: not YAML"),
        ("- admm\n", "bad.yaml: world is .*valid: a mapping"),
    ],
)
def test_bad_world_files_are_refused_with_a_reason(make, tmp_path, text, expected):
    """The failure names file and key."""
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    node = make(contact__world_file=str(path))
    assert node.trigger_configure() == node.bad
    assert re.search(expected, node.failure), node.failure


@ros_only
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("contact__erp", 1.5),
        ("initial_root_position", [1.0]),
        ("contact__margin", -0.1),
        ("contact__mu", float("nan")),
        ("contact__restitution", 2.0),
        ("contact__publish_rate", 0.0),
    ],
)
def test_bad_start_values_are_refused(make, name, value):
    """Values from a file or the command line are checked, too."""
    with pytest.raises(dyn.ModelError, match=name.replace("__", ".")):
        make(**{name: value})


@ros_only
def test_defaults_are_those_of_a_world(make):
    """Parameters left alone give World(); each says what it is."""
    from ros_nodes.simulator.plant_parameters import make_world

    node = make()
    assert make_world(node) == dyn.World()
    for name in node.specs:
        assert node.describe_parameter(name).description, name
    assert make_world(make(contact__ground=False)).half_spaces == ()
    floor = make_world(make(contact__mu=0.3, contact__restitution=0.5)).half_spaces[0]
    assert (floor.material.mu, floor.material.restitution) == (0.3, 0.5)
    assert not make_world(make(limit_stops=False)).limits


@ros_only
def test_a_world_file_gives_slopes_and_solvers(active, tmp_path):
    """The slab slides on a slope at g (sin - mu cos); a parameter swaps the solver."""
    path, angle, mu = tmp_path / "slope.yaml", 0.5, 0.04
    normal = [-np.sin(angle), 0.0, np.cos(angle)]
    slope = {"name": "slope", "normal": [float(x) for x in normal]}
    slope["material"] = {"mu": mu}
    world = {"half_spaces": [slope], "solver": "lemke", "stepper": "moreau_jean"}
    path.write_text(yaml.safe_dump(world))
    start = {
        "initial_root_position": [0.25 * x for x in normal],
        "initial_root_orientation": [0.0, -np.sin(angle / 2), 0.0, np.cos(angle / 2)],
        "contact__world_file": str(path),
    }
    node = active(**start, contact__plugin_name="admm")
    values = node.topics.channels.values()
    assert values["contact solver"] == "admm"
    assert values["contact stepper"] == "moreau_jean"
    _run(node, 20)
    friction = np.sqrt(mu * 1.0)  # a link's own is 1
    wanted = G * (np.sin(angle) - friction * np.cos(angle)) * 0.2
    np.testing.assert_allclose(-node.robot.qd[3], wanted, rtol=0.05)  # x is uphill
    holds = node.robot.report.total_force @ normal
    assert holds == pytest.approx(3 * G * np.cos(angle), rel=0.01)
    assert "slab|slope|" in node.topics.forces["contacts"].messages[-1].joint_names[0]


@ros_only
def test_what_is_not_solved_is_a_warning_for_a_while(active, tmp_path):
    """WARN for a second after a step that did not converge, with its numbers.

    This scene has none: one is counted by hand.
    """
    path = tmp_path / "hasty.yaml"
    path.write_text("solver: admm\nsolver_options: {max_iterations: 1}\n")
    node = active(contact__world_file=str(path))
    _run(node, 1)
    assert node.status()[0] == b"\x00"
    node.robot.counters["contact not converged"] += 1
    _run(node, 1)
    level, summary, values = node.status()
    assert level == b"\x01"
    assert re.match(r"contact not solved: admm: \w+ after \d+ iter", summary)
    assert values["contact not converged"] >= 1
    node.topics.trouble = (time.monotonic() - 2.0, summary)
    assert node.status()[0] == b"\x00"


@ros_only
def test_a_step_without_an_answer_is_an_error(active):
    """It pauses at the last good state; /diagnostics says why, until it runs on."""
    from std_srvs.srv import SetBool, Trigger

    node = active(contact__plugin_name="principal_pivoting", contact__margin=0.001)
    _run(node, 20)
    level, summary, _ = node.status()
    assert level == b"\x02"
    assert re.match(
        "a step failed: paused at the last good state: principal_p", summary
    )
    assert node.robot.paused
    assert np.isfinite(node.robot.q).all()
    # Back at the start it runs on, and says so, until a step fails again.
    answer = node._on_reset(None, Trigger.Response())
    assert answer.message == "back at the start, running"
    _run(node, 1)
    assert not node.robot.paused
    assert "a step failed" not in node.status()[1]
    # A pause that a person asked for remains, also after a failed ~/step.
    node._on_pause(SetBool.Request(data=True), SetBool.Response())
    for _ in range(20):
        if not node._on_step(None, Trigger.Response()).success:
            break
    assert node.status()[0] == b"\x02"
    answer = node._on_reset(None, Trigger.Response())
    assert answer.message == "back at the start, paused (~/pause)"
    assert node.status()[:2] == (b"\x01", "paused")


@ros_only
def test_a_robot_with_loops_has_no_reactions(active):
    """It moves, and publishes contacts alone."""
    path = Path(__file__).parents[2] / "examples" / "four_bar" / "four_bar.urdf"
    settings = {"robot_description_file": str(path), "robot_description": ""}
    settings |= {"root_joint": "fixed", "initial_root_position": None}
    node = active(**settings, contact__ground=False)
    assert "simulator/joint_reactions" not in [p.topic for p in node.publishers]
    _run(node, 3)
    assert np.abs(node.robot.qd).max() > 0
    assert len(node.topics.forces["contacts"].messages) == 3


@ros_only
def test_efforts_and_stale_commands(active):
    """Without any command it is well; one that stopped is a warning."""
    from std_msgs.msg import Float64MultiArray

    node = active(command_timeout=0.05, effort_limits__turn=0.5)
    assert node.status()[0] == b"\x00"
    node.commands.on_array(Float64MultiArray(data=[0.7]))
    node._move(time.monotonic())
    assert node.robot.effort[-1] == 0.5
    assert node.robot.qd[-1] > 0
    node._move(time.monotonic() + 1.0)
    assert node.status()[:2] == (b"\x01", "no effort command: effort is zero")


@ros_only
def test_structure_changes_in_unconfigured_only(make):
    """cleanup -> set -> configure swaps solver and stepper, and contact itself."""
    node = make()
    assert node.trigger_configure() == node.good, node.failure
    refused = _set(node, "contact.plugin_name", "lemke")
    assert not refused.successful
    assert "clean up first" in refused.reason
    node.trigger_cleanup()
    assert _set(node, "contact.plugin_name", "lemke").successful
    assert _set(node, "contact.stepper", "anitescu_potra").successful
    assert node.trigger_configure() == node.good, node.failure
    values = node.topics.channels.values()
    assert values["contact solver"] == "lemke"
    assert values["contact stepper"] == "anitescu_potra"
    node.trigger_cleanup()
    assert _set(node, "contact.enabled", False).successful
    assert node.trigger_configure() == node.good, node.failure
    assert not hasattr(node.robot, "world")
    assert node.robot.q[2] == 0.26


# ---- a process over DDS on this machine


class Probe:
    """A node that listens and speaks for a test."""

    def __init__(self, until):
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.node import Node
        from sensor_msgs.msg import MultiDOFJointState

        self.node, self.spin = Node("probe"), until
        self.contacts, self.reactions, self.said = [], [], []
        listen = self.node.create_subscription
        kind = MultiDOFJointState
        listen(kind, "simulator/contact_wrenches", self.contacts.append, 10)
        listen(kind, "simulator/joint_reactions", self.reactions.append, 10)
        listen(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def _on_diagnostics(self, message):
        for status in message.status:
            values = {v.key: v.value for v in status.values}
            self.said.append((status.level, status.message, values))

    def until(self, done, expected):
        """Spin until something is so."""
        self.spin(
            done, self.node, expected=expected, detail=lambda: str(self.said[-1:])
        )

    def value(self, key):
        """Return the last diagnostic value."""
        return self.said[-1][2].get(key, "") if self.said else ""

    def weight(self):
        """Return the sum of the vertical contact forces of the last message."""
        return sum(w.force.z for w in self.contacts[-1].wrench) if self.contacts else 0

    def ask(self, kind, name, **request):
        """Ask a service of the simulator."""
        client = self.node.create_client(kind, f"simulator/{name}")
        self.until(client.service_is_ready, name)
        future = client.call_async(kind.Request(**request))
        self.until(future.done, f"an answer of {name}")
        return future.result()


@pytest.fixture
def probe(ros, until):
    """Return a Probe."""
    made = Probe(until)
    yield made
    made.node.destroy_node()


def _params(**values):
    path = GRAPHS["contact"].params_file
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    (section,) = data.values()
    section["ros__parameters"] |= {"diagnostic_updater.period": 0.1, **values}
    return yaml.safe_dump(data)


@ros_only
def test_a_quadruped_lands_and_stands_and_its_solver_is_swapped(start, probe):
    """Four feet carry its weight; reactions and status come; lemke does the same."""
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    # From 3 cm above its stand, in steps that a busy machine can keep up with.
    low = {"initial_root_position": [0.0, 0.0, 0.36], "update_rate": 40}
    nodes = start(GRAPHS["contact"].nodes, _params(**low))
    model = dyn.load_urdf(robots.path("quadruped"), root_joint="floating")
    weight = G * sum(float(I.m) for I in model.I[1:])
    probe.until(lambda: probe.contacts, "contacts")
    assert probe.contacts[0].header.frame_id == "world"

    def stands():
        return len(probe.contacts[-1].wrench) == 4 and probe.weight() == pytest.approx(
            weight, rel=0.01
        )

    probe.until(stands, "the weight")
    feet = {name.split("|")[0] for name in probe.contacts[-1].joint_names}
    assert feet == {
        f"{a}_{b}_foot" for a in ("front", "hind") for b in ("left", "right")
    }
    probe.until(lambda: probe.reactions, "reactions")
    assert list(probe.reactions[-1].joint_names) == list(model.joint_names)
    probe.until(lambda: probe.value("contacts now") == "4", "diagnostics")
    assert probe.value("contact solver") == "coulomb_newton"
    assert probe.value("contact status") in ("converged", "not_unique")

    def change(number):
        request = {"transition": Transition(id=number)}
        return probe.ask(ChangeState, "change_state", **request).success

    assert change(Transition.TRANSITION_DEACTIVATE)
    assert change(Transition.TRANSITION_CLEANUP)
    value = Parameter("contact.plugin_name", value="lemke").to_parameter_msg()
    answer = probe.ask(SetParameters, "set_parameters", parameters=[value])
    assert answer.results[0].successful
    assert change(Transition.TRANSITION_CONFIGURE)
    assert change(Transition.TRANSITION_ACTIVATE)
    probe.contacts.clear()
    probe.until(lambda: probe.value("contact solver") == "lemke", "the other solver")
    probe.until(lambda: probe.contacts and stands(), "the weight again")
    assert [process.end() for process in nodes.all] == [0]


@ros_only
def test_bad_parameters_end_the_node_with_a_reason(start):
    """Status 1 and the reason printed."""
    text = _params(**{"contact.plugin_name": "lemkey"})
    process = start([SIMULATOR], text)["simulator"]
    assert process.popen.wait(30) == 1
    process.reader.join(5)
    expected = "no solver is called 'lemkey'; did you mean 'lemke'"
    assert expected in process.output, process.output


@pytest.mark.ros
def test_a_sensor_reads_the_wrench_at_a_link(active, make):
    """Axes of the link; noise by seed; what has no sensor is refused at configure."""
    robot = {"robot_description": None, "robot_description_file": "quadruped"}
    rows, deviations = [], np.repeat([0.1, 2.0], 3)
    for noise in (0.0, 1.0, 1.0):
        node = active(
            **robot, contact__wrench_link="front_left_shank", contact__wrench_seed=5,
            contact__wrench_noise=[0.1 * noise, 2.0 * noise],
        )  # fmt: skip
        node.topics._wrench = heard = Heard()
        _run(node, 3)
        (message,) = heard.messages[-1:]
        assert message.header.frame_id == "front_left_shank"
        w = message.wrench
        parts = (w.torque, w.force)
        rows.append(np.array([[x.x, x.y, x.z] for x in parts]).ravel())
        clean = node.topics.plant.wrench("front_left_shank")
    np.testing.assert_allclose(rows[0], clean, atol=1e-9)
    np.testing.assert_array_equal(rows[1], rows[2])
    rng = np.random.default_rng(5)
    drawn = rng.standard_normal((len(heard.messages), 6))[-1] * deviations
    np.testing.assert_allclose(rows[1] - rows[0], drawn, atol=1e-9)
    node = make(**robot, contact__wrench_link="hand")
    assert node.trigger_configure() == node.bad
    assert "no moving link is called 'hand'" in node.failure
