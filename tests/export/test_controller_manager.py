"""Exported packages in the controller_manager that CMake finds; else they skip.

The packages are built and installed into a folder of the test; ros2_control_node loads
them and is driven through its services, as `ros2 control` does.
"""

import importlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import dyn_core as dyn
from dyn_core.engines.llvm import host_machine
from dyn_core.export.ros2_control.controller_package import controller_package
from dyn_core.export.ros2_control.hardware_package import hardware_package
from dyn_core.model.payload import Payload
from dyn_core.model.sources.arguments import urdf_with

pytestmark = [
    pytest.mark.full,
    pytest.mark.ros,
    pytest.mark.skipif(
        bool(host_machine.missing()),
        reason=f"no machine code: {host_machine.missing()}",
    ),
]
NAMES = dyn.load("arm7").joint_names
WAY = np.array([0.5, -0.3, 0.4, -0.5, 0.3, 0.4, 0.5])
PARAMETERS = {"robot_compensates_gravity": False}
# A hinge and a slide with names that are no identifiers, and a gripper whose second
# finger follows the first.
_INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
_HINGE, _SLIDE = "h&quot;*/ &lt;/x&gt; $(var a)%s", "s: [&#39;&amp;"
_ROWS = (  # name, kind, parent, child, axis
    (_HINGE, "revolute", "a", "b", "0 1 0"), (_SLIDE, "prismatic", "b", "c", "0 0 1"),
    ("finger1", "prismatic", "c", "d", "1 0 0"), ("finger2", "prismatic", "c", "e", "-1 0 0"),
)  # fmt: skip
GRIPPER = "".join(
    ["<robot name='gripper'>", *(f"<link name='{x}'><inertial><origin xyz='.1 0 .2'/>"
     f"<mass value='2'/>{_INERTIA}</inertial></link>" for x in "abcde"),
     *(f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
       f'<axis xyz="{axis}"/><limit lower="-1" upper="1" effort="90" velocity="1"/>'
       + "<mimic joint='finger1'/>" * (name == "finger2") + "</joint>"
       for name, kind, parent, child, axis in _ROWS), "</robot>"],
)  # fmt: skip


def _node():
    """Return the path of ros2_control_node, or skip."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        path = Path(prefix, "lib/controller_manager/ros2_control_node")
        if prefix and path.exists():
            return path
    pytest.skip("AMENT_PREFIX_PATH has no controller_manager")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder with both packages in src and install."""
    node = _node()
    pytest.importorskip("rclpy")
    pytest.importorskip("controller_manager_msgs.srv")
    from test_ros2_control import build_package

    folder = tmp_path_factory.mktemp("workspace")
    urdf, model = urdf_with({}, "arm7"), dyn.load("arm7")
    law, hardware = folder / "src/arm_law", folder / "src/arm_robot"
    controller_package("computed_torque", model, law, urdf, {"payload_link": "tool"})
    grips = folder / "src/grip_law"
    controller_package("computed_torque", dyn.load(GRIPPER), grips, GRIPPER, {})
    hardware_package("semi_implicit_euler", model, hardware, urdf, {})
    source = hardware / "src/hardware.cpp"
    source.write_text(_faulty(source.read_text()))
    for package in (law, grips, hardware):
        build_package(package, folder / package.name, folder / "install")
    return folder, node


@pytest.fixture(scope="module")
def tool_law(installed):
    """The package of mode cartesian, installed beside the others; returns its name."""
    from test_ros2_control import build_package

    folder, urdf = installed[0], urdf_with({}, "arm7")
    package = folder / "src/tool_law"
    options = {"cartesian.frame": "tool"}
    controller_package("cartesian", dyn.load("arm7"), package, urdf, options)
    build_package(package, folder / package.name, folder / "install")
    return package.name


class Manager:
    """A running ros2_control_node and a node that asks it.

    Args:
        installed: Folder of the packages and path of ros2_control_node.
        folder: Folder for its parameters and its log.
        urdf: Text of the robot.
        parameters: Parameters of the exported controller.
        rate: update_rate of controller_manager [Hz].
        law: Name of the controller's package.
    """

    def __init__(self, installed, folder, urdf, parameters, rate=1000, law="arm_law"):
        import rclpy
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from sensor_msgs.msg import JointState
        from std_msgs.msg import String

        workspace, node = installed
        text = (workspace / f"src/{law}/config/controllers.yaml").read_text()
        settings = yaml.safe_load(text)
        settings["controller_manager"]["ros__parameters"]["update_rate"] = rate
        settings["dynamics_controller"]["ros__parameters"].update(parameters)
        file, self.log = folder / "settings.yaml", folder / "log"
        file.write_text(yaml.safe_dump(settings))
        prefix = str(workspace / "install")
        path = os.pathsep.join((prefix, os.environ["AMENT_PREFIX_PATH"]))
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [str(node), "--ros-args", "--params-file", str(file)],
                env={**os.environ, "AMENT_PREFIX_PATH": path},
                stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self.rclpy, self.context = rclpy, rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("probe", context=self.context)
        self.executor = rclpy.executors.SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        description = self.node.create_publisher(String, "/robot_description", latched)
        description.publish(String(data=urdf))
        self.states = {}
        self.node.create_subscription(JointState, "/joint_states", self._keep, 10)

    def _keep(self, message):
        rows = zip(message.position, message.velocity, message.effort, strict=True)
        self.states = dict(zip(message.name, rows, strict=True))

    def call(self, service, /, **fields):
        """Return the answer of a service of controller_manager."""
        services = importlib.import_module("controller_manager_msgs.srv")
        kind = getattr(services, "".join(x.title() for x in service.split("_")))
        return self.ask(kind, f"/controller_manager/{service}", **fields)

    def ask(self, kind, path, /, **fields):
        client = self.node.create_client(kind, path)
        assert client.wait_for_service(20), self.log.read_text()
        answer = client.call_async(kind.Request(**fields))
        self.executor.spin_until_future_complete(answer, 20)
        assert answer.done(), self.log.read_text()
        return answer.result()

    def load(self, *names):
        """Load and configure controllers; return whether the last is configured."""
        for name in names:
            assert self.call("load_controller", name=name).ok, self.log.read_text()
            done = self.call("configure_controller", name=name).ok
        return done

    def switch(self, on=(), off=()):
        fields = {"activate_controllers": on, "deactivate_controllers": off}
        return self.call("switch_controller", strictness=2, **fields).ok

    def states_of(self):
        listed = self.call("list_controllers").controller
        return {x.name: (x.state, x.is_chained) for x in listed}

    def begin(self, *names):
        """Load, configure and activate controllers."""
        assert self.load(*names), self.log.read_text()
        assert self.switch(on=names), self.log.read_text()

    def set(self, name, value):
        """Set a parameter of the controller; return the reason of a refusal, or ""."""
        from rcl_interfaces.srv import SetParameters
        from rclpy.parameter import Parameter

        asked = [Parameter(name, value=value).to_parameter_msg()]
        service = "/dynamics_controller/set_parameters"
        (result,) = self.ask(SetParameters, service, parameters=asked).results
        assert result.successful == (not result.reason)
        return result.reason

    def wait(self, condition, limit=15.0):
        """Spin until a condition holds; fail with the log after `limit` seconds."""
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, self.log.read_text()
            self.executor.spin_once(0.05)

    def row(self, kind):
        """Return position (0), velocity (1) or effort (2) of the joints."""
        return np.array([self.states[name][kind] for name in NAMES])

    def close(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.executor.shutdown()
        self.node.destroy_node()
        self.rclpy.shutdown(context=self.context)


@pytest.fixture
def start(installed, tmp_path):
    """A function that starts a Manager with mock or simulated hardware."""
    running = []

    def begin(urdf="arm_law/urdf/mock.urdf", edit=lambda text: text, more=None, **rest):
        text = edit((installed[0] / "src" / urdf).read_text(encoding="utf-8"))
        made = Manager(installed, tmp_path, text, more or PARAMETERS, **rest)
        running.append(made)
        return made

    yield begin
    for manager in running:
        manager.close()


BOTH = "joint_state_broadcaster", "dynamics_controller"
SIMULATED = "arm_robot/urdf/simulated.urdf"


def _parameter(text, name):
    """Return a URDF whose hardware has a parameter that is true."""
    parameter = f'<param name="{name}">true</param>'
    return text.replace("<hardware>", f"<hardware>{parameter}", 1)


def _faulty(source):
    """Return the hardware's source with faults, parameters that act after 3 s.

    blind: a position is NaN; fails_to_read, fails_to_write: an error is returned.
    """
    for old, new in (
        ('"position", &q_[j]', '"position", j == 2 ? &third_ : &q_[j]'),
        (
            "bool braked_ = true;",
            "bool braked_ = true; double third_ = 0.0;\n"
            "    bool has(const char *fault) {"
            " return simulated_ > 3.0 && info_.hardware_parameters.count(fault); }",
        ),
        (
            "override {\n        return return_type::OK;",
            'override {\n        third_ = has("blind") ? std::nan("") : q_[2];\n'
            '        if (has("fails_to_read")) return return_type::ERROR;'
            "\n        return return_type::OK;",
        ),
        (
            "const auto begin = Clock::now();",
            "const auto begin = Clock::now();\n"
            '        if (has("fails_to_write")) return return_type::ERROR;',
        ),
    ):
        assert source.count(old) == 1
        source = source.replace(old, new)
    return source


def _weight(model):
    q, zero = np.clip(model.neutral(), model.lower, model.upper), np.zeros(model.nv)
    return dyn.solver("gravity_compensation").build(model)(q, zero, zero)


def test_mock_hardware_gets_the_torque_of_its_weight(start):
    """The efforts of an arm at rest are its weight; a deactivation writes zeros."""
    manager = start()
    manager.begin(*BOTH)
    weight = _weight(dyn.load("arm7"))
    manager.wait(
        lambda: manager.states and np.allclose(manager.row(2), weight, atol=1e-9)
    )
    assert manager.states_of()["dynamics_controller"] == ("active", False)
    assert manager.switch(off=["dynamics_controller"])
    manager.wait(lambda: not manager.row(2).any())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"other": 1.0}, "robot_compensates_gravity is not set; valid: true where"),
        (PARAMETERS | {"state_timeout": 0.2}, "state_timeout is 0.2.*; valid: 0.1"),
        (PARAMETERS | {"gains.joint_1.p": 1.0}, "unknown parameter gains.joint_1.p"),
        (PARAMETERS | {"gains.joint1.d": 2500.0}, "gains.joint1.d is unstable at 1000"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message, start):
    """The configuration fails and says what would be valid."""
    manager = start(more=parameters)
    assert not manager.load("dynamics_controller")
    manager.wait(lambda: re.search(message, manager.log.read_text()))


def test_gains_change_while_it_runs_and_are_refused_where_unstable(start):
    """Another rate than that of the package is told."""
    manager = start(rate=500)
    manager.begin("dynamics_controller")
    assert not manager.set("gains.joint1.p", 300.0)
    assert "is unstable at 500" in manager.set("gains.joint1.p", 1e5)
    assert (
        "update_rate is 500 Hz; the package was exported for 1000 Hz"
        in manager.log.read_text()
    )


def test_a_sensor_that_fails_ends_the_controller(start):
    """After three seconds a position is NaN: zeros are written, then an error."""
    manager = start(SIMULATED, lambda text: _parameter(text, "blind"))
    manager.begin(*BOTH)
    manager.wait(lambda: manager.states and manager.row(2).any())
    manager.wait(lambda: manager.states_of()["dynamics_controller"][0] != "active")
    assert np.isnan(manager.row(0)[2])
    manager.wait(lambda: not manager.row(2).any())


@pytest.mark.parametrize("twice", [False, True])
def test_a_weight_that_is_carried_twice_moves_an_arm(twice, start):
    """Drives that carry the weight themselves need a law that does not."""
    more = {"robot_compensates_gravity": not twice}
    manager = start(
        SIMULATED, lambda text: _parameter(text, "robot_compensates_gravity"), more=more
    )
    manager.begin(*BOTH)
    manager.wait(lambda: len(manager.states) > 0)
    first = manager.row(0)
    if twice:
        manager.wait(lambda: np.abs(manager.row(0) - first).max() > 0.05)
        return
    end = time.monotonic() + 2.0
    manager.wait(lambda: time.monotonic() > end)
    assert np.abs(manager.row(0) - first).max() < 1e-3


def test_a_trajectory_comes_through_the_chain(start):
    """joint_trajectory_controller before it: the arm follows, and holds after it."""
    states = pytest.importorskip("control_msgs.msg").JointTrajectoryControllerState
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    manager = start(SIMULATED)
    assert manager.load("joint_state_broadcaster", "dynamics_controller")
    if not manager.load("joint_trajectory_controller"):
        pytest.skip("joint_trajectory_controller is not installed")
    chain = ["dynamics_controller", "joint_trajectory_controller"]
    assert manager.switch(on=["joint_state_broadcaster", *chain])
    assert manager.states_of()["dynamics_controller"] == ("active", True)
    manager.wait(lambda: len(manager.states) > 0)
    errors = []
    topic = "/joint_trajectory_controller"
    manager.node.create_subscription(
        states, f"{topic}/controller_state", lambda x: errors.append(x.error.positions), 10
    )  # fmt: skip
    publisher = manager.node.create_publisher(
        JointTrajectory, f"{topic}/joint_trajectory", 1
    )
    manager.wait(lambda: publisher.get_subscription_count() and errors)
    goal, zero = manager.row(0) + WAY, [0.0] * len(NAMES)
    point = JointTrajectoryPoint(
        positions=goal.tolist(), velocities=zero, accelerations=zero
    )
    point.time_from_start.sec = 2
    publisher.publish(JointTrajectory(joint_names=list(NAMES), points=[point]))
    manager.wait(lambda: np.abs(manager.row(0) - goal).max() < 1e-3)
    assert np.abs(np.array(errors)).max() < 5e-3
    assert manager.switch(off=["joint_trajectory_controller"])
    end = time.monotonic() + 1.0
    manager.wait(lambda: time.monotonic() > end)
    assert np.abs(manager.row(0) - goal).max() < 2e-3
    assert manager.states_of()["dynamics_controller"] == ("active", False)


@pytest.mark.parametrize("fault", ["fails_to_read", "fails_to_write"])
def test_hardware_that_returns_errors_ends_the_controller(fault, start):
    """After three seconds: controller_manager ends hardware and controllers."""
    manager = start(SIMULATED, lambda text: _parameter(text, fault))
    manager.begin(*BOTH)
    manager.wait(lambda: manager.states_of()["dynamics_controller"][0] != "active")
    (robot,) = manager.call("list_hardware_components").component
    assert robot.state.label != "active"
    assert manager.process.poll() is None


def test_payload_and_stops_change_while_it_runs(start):
    """In the next update; what cannot be carried, or is compiled in, is refused."""
    manager = start()
    manager.begin(*BOTH)
    model = dyn.load("arm7")
    loaded = dyn.solver("gravity_compensation").build(model, inputs=["tool.payload"])
    q, zero = np.clip(model.neutral(), model.lower, model.upper), np.zeros(7)
    body = Payload(1.5, (0.05, 0.0, 0.1), (0.03, 0.002, 0.001, 0.02, 0.003, 0.025))
    for name, value in vars(body).items():
        assert not manager.set(f"payload.{name}", value)
    weight = loaded(q, zero, zero, body.parameters)
    assert np.abs(weight - _weight(model)).max() > 0.5
    manager.wait(
        lambda: manager.states and np.allclose(manager.row(2), weight, atol=1e-9)
    )
    for name, value, reason in (
        ("payload.mass", 500.0, "500.* kg cannot be carried anywhere: joint joint"),
        ("payload.inertia", [1.0, 0.0, 0.0, 0.1, 0.0, 0.1], "is that of no body; valid:"),
        ("payload.com", [1.0], "3 finite numbers in payload.com"),
        ("payload.link", "link4", "payload.link is link4; valid: tool, with which"),
        ("on_estop", "hold", "on_estop is hold; valid here: ramp, zero"),
        ("on_violation", "hold", "valid here: ramp, zero, auto"),
        ("state_timeout", 0.2, "state_timeout is 0.2.*; valid: 0.1.* Export it again"),
        ("robot_compensates_gravity", True, "set it before the configuration"),
        ("stop_time", 1e9, "stop_time"),
    ):  # fmt: skip
        assert re.search(reason, manager.set(name, value)), manager.set(name, value)
    for rod in (
        [0.02, -0.01, -0.01, 0.02, -0.01, 0.02],
        [0.0, 0.0, 0.0, 0.1, 0.0, 0.1],
    ):
        assert not manager.set("payload.inertia", rod)
    assert not manager.set("payload.attached", False)
    manager.wait(lambda: np.allclose(manager.row(2), _weight(model), atol=1e-9))


def test_a_payload_counts_in_full_from_the_activation_on(start):
    """Also in the second one: only a change while it runs is blended in."""
    manager = start(more=PARAMETERS | {"payload.mass": 1.5})
    model, zero = dyn.load("arm7"), np.zeros(7)
    loaded = dyn.solver("gravity_compensation").build(model, inputs=["tool.payload"])
    q = np.clip(model.neutral(), model.lower, model.upper)

    def efforts_are(mass):
        weight = loaded(q, zero, zero, Payload(mass).parameters)
        rows, end = [], time.monotonic() + 1.0
        manager.wait(lambda: manager.states and time.monotonic() > end or rows.append(
            manager.row(2) if manager.states else zero))  # fmt: skip
        others = [row for row in rows if row.any() and not np.allclose(row, weight)]
        assert np.allclose(rows[-1], weight, atol=1e-9) and not others, others[:1]

    manager.begin(*BOTH)
    efforts_are(1.5)
    assert not manager.set("payload.mass", 0.5)
    end = time.monotonic() + 1.0
    manager.wait(lambda: time.monotonic() > end)
    assert manager.switch(off=["dynamics_controller"])
    manager.wait(lambda: not manager.row(2).any())
    assert manager.switch(on=["dynamics_controller"])
    efforts_are(0.5)


def test_a_stop_of_silence_that_was_changed_acts(start):
    """on_stale is ramp from now on: the arm is carried for stop_time, then it ends."""
    manager = start(SIMULATED, lambda text: _parameter(text, "blind"))
    manager.begin(*BOTH)
    assert not manager.set("on_stale", "ramp")
    manager.wait(lambda: manager.states and np.isnan(manager.row(0)[2]))
    end = time.monotonic() + 1.0
    manager.wait(lambda: time.monotonic() > end)
    assert manager.row(2).any()
    assert manager.states_of()["dynamics_controller"][0] == "active"
    manager.wait(lambda: manager.states_of()["dynamics_controller"][0] != "active")
    manager.wait(lambda: not manager.row(2).any())


def _sensor(force):
    """Return an edit that adds the sensor wrist, whose force.x is `force`; None: NaN."""
    rows = [f"{kind}.{axis}" for kind in ("force", "torque") for axis in "xyz"]
    values = dict.fromkeys(rows, 0) | {"force.x": force}
    states = "".join(
        f'<state_interface name="{name}">'
        + ("" if x is None else f'<param name="initial_value">{x}</param>')
        + "</state_interface>"
        for name, x in values.items()
    )
    sensor = f'<sensor name="wrist">{states}</sensor></ros2_control>'
    return lambda text: text.replace("</ros2_control>", sensor)


def test_a_force_beyond_its_bound_stops_the_robot(start):
    """The bound changes while it runs; log and diagnostics name sensor and value."""
    manager = start(edit=_sensor(30), more=PARAMETERS | {"sensor.name": "wrist"})
    manager.begin(*BOTH)
    assert not manager.set("sensor.force", 40.0)
    manager.wait(lambda: manager.states and manager.row(2).any())
    assert "before the configuration" in manager.set("sensor.name", "other")
    assert not manager.set("sensor.force", 20.0)
    manager.wait(lambda: not manager.row(2).any())
    message = "stopped: force of wrist is 30, bound 20"
    manager.wait(lambda: message in manager.log.read_text())
    assert manager.states_of()["dynamics_controller"][0] == "active"


def test_a_force_that_is_no_number_ends_the_controller(start):
    """As a position that is no number."""
    more = PARAMETERS | {"sensor.name": "wrist"}
    manager = start(edit=_sensor(None), more=more)
    manager.begin(*BOTH)
    manager.wait(lambda: manager.states_of()["dynamics_controller"][0] != "active")
    assert not manager.row(2).any()


@pytest.mark.parametrize("missing", ["velocity", "effort", "wrist"])
def test_interfaces_that_are_missing_are_refused(missing, start):
    """The activation fails, and the log names the interface."""
    lost = "command" if missing == "effort" else "state"
    name = f"<{lost}_interface name=.{missing}. ?/>"
    name = f"{name}|<{lost}_interface name=.{missing}.>.*?</{lost}_interface>"
    more = PARAMETERS | ({"sensor.name": "wrist"} if missing == "wrist" else {})
    manager = start(
        edit=lambda text: re.sub(name, "", text, count=1, flags=re.DOTALL), more=more
    )
    assert manager.load("dynamics_controller")
    manager.switch(on=["dynamics_controller"])
    assert manager.states_of()["dynamics_controller"][0] != "active"
    of = "wrist/force.x" if missing == "wrist" else f"joint1/{missing}"
    manager.wait(lambda: of in manager.log.read_text())


def test_a_gripper_with_hostile_names_in_another_order_is_held(start):
    """Revolute, prismatic and mimic joints; <ros2_control> lists them backwards."""

    def turned(text):
        robot = ElementTree.fromstring(text)
        system = robot.find("ros2_control")
        joints = system.findall("joint")
        for joint in joints:
            system.remove(joint)
        system.extend(reversed(joints))
        return ElementTree.tostring(robot, encoding="unicode")

    manager = start("grip_law/urdf/mock.urdf", turned, law="grip_law")
    manager.begin(*BOTH)
    model = dyn.load(GRIPPER)
    weight = dict(zip(model.joint_names, _weight(model), strict=True))
    assert len(weight) == 3 and max(map(abs, weight.values())) > 50
    manager.wait(lambda: len(manager.states) == 3)
    assert manager.states.keys() == weight.keys()

    def carried():
        return all(abs(manager.states[k][2] - weight[k]) < 1e-9 for k in weight)

    manager.wait(carried)


def test_the_real_time_factor_is_a_state_and_is_logged(start):
    """Simulated by computing time, from the states and at the deactivation."""
    states = pytest.importorskip("control_msgs.msg").DynamicJointState
    manager, factors = start(SIMULATED), []

    def keep(message):
        rows = zip(message.joint_names, message.interface_values, strict=True)
        values = {n: x for n, x in rows if n == "arm_robot"}
        factors.extend(x.values[0] for x in values.values())

    manager.node.create_subscription(states, "/dynamic_joint_states", keep, 10)
    manager.begin(*BOTH)
    manager.wait(lambda: factors and factors[-1] > 1.0)
    assert manager.switch(off=BOTH)
    target = importlib.import_module("lifecycle_msgs.msg").State(id=2, label="inactive")
    assert manager.call(
        "set_hardware_component_state", name="robot", target_state=target
    ).ok
    manager.wait(lambda: re.search(r"s: real-time factor \d+", manager.log.read_text()))


def test_the_launch_file_starts_an_arm(installed):
    """Its nodes run, and the controllers are active."""
    launch = pytest.importorskip("launch")
    pytest.importorskip("launch_ros")
    pytest.importorskip("controller_manager")  # the spawner needs ros2cli
    packages = importlib.import_module("ament_index_python.packages")
    try:
        packages.get_package_prefix("robot_state_publisher")
    except packages.PackageNotFoundError:
        pytest.skip("robot_state_publisher is not installed")
    prefix = str(installed[0] / "install")
    path = os.pathsep.join((prefix, os.environ["AMENT_PREFIX_PATH"]))
    file = f"{prefix}/share/arm_law/launch/mock_launch.py"
    program = (
        "import sys, launch\n"
        "from launch.launch_description_sources import PythonLaunchDescriptionSource as S\n"
        "service = launch.LaunchService()\n"
        "service.include_launch_description(launch.LaunchDescription([\n"
        "    launch.actions.IncludeLaunchDescription(S(sys.argv[1]), launch_arguments=[\n"
        "        ('robot_compensates_gravity', 'false')])]))\n"
        "sys.exit(service.run())\n"
    )
    assert launch
    with subprocess.Popen(
        [sys.executable, "-c", program, file],
        env={**os.environ, "AMENT_PREFIX_PATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        active, log = set(), []
        watchdog = threading.Timer(60.0, process.send_signal, [signal.SIGINT])
        watchdog.start()
        for line in process.stdout:
            log.append(line)
            plain = re.sub(r"\x1b\[\d+m", "", line)  # without colours
            names = re.search(r"Configured and activated (.*)", plain)
            active |= set(re.findall(r"\w+", names[1])) if names else set()
            if active >= {*BOTH} and not watchdog.finished.is_set():
                watchdog.cancel()
                process.send_signal(signal.SIGINT)
    assert active >= {*BOTH}, "".join(log)


class Targets:
    """Publishers of the targets of a tool, and the pose of the tool."""

    def __init__(self, manager):
        from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped

        self.manager, model = manager, dyn.load("arm7")
        self.poses = dyn.solver("forward_kinematics").build(model, frames=["tool"])
        kinds = {"pose": PoseStamped, "twist": TwistStamped, "wrench": WrenchStamped,
                 "stiffness": WrenchStamped}  # fmt: skip
        self.publishers = {
            name: manager.node.create_publisher(
                kind, f"/dynamics_controller/target_{name}", 1
            )
            for name, kind in kinds.items()
        }
        self.kinds = kinds
        manager.begin(*BOTH)
        manager.wait(lambda: manager.states and all(
            x.get_subscription_count() for x in self.publishers.values()
        ))  # fmt: skip

    @property
    def place(self):
        """Position of the tool, (3,)."""
        return self.poses(self.manager.row(0))[0][:3, 3]

    def send(self, name, numbers, frame="", stamp=None):
        """Publish a target: of a pose 7 numbers, else linear or force before angular."""
        message = self.kinds[name]()
        message.header.frame_id = frame
        if stamp is not None:
            message.header.stamp.sec = stamp
        if name == "pose":
            parts = message.pose.position, message.pose.orientation
        elif name == "twist":
            parts = message.twist.linear, message.twist.angular
        else:
            parts = message.wrench.force, message.wrench.torque
        for part, row in zip(parts, (numbers[:3], numbers[3:]), strict=True):
            for key, x in zip("xyzw", row, strict=False):
                setattr(part, key, float(x))
        self.publishers[name].publish(message)

    def pause(self, seconds):
        """Spin for some time."""
        end = time.monotonic() + seconds
        self.manager.wait(lambda: time.monotonic() > end)

    def refused(self, text):
        """Wait until the log says a sentence, a regular expression."""
        log = self.manager.log
        self.manager.wait(lambda: re.search(text, log.read_text()))
        self.pause(1.2)  # one sentence in a second


def test_targets_lead_a_tool(start, tool_law):
    """A pose in the tool's own frame is reached; a twist moves on, and fades."""
    targets = Targets(start(SIMULATED, law=tool_law))
    first = targets.place
    turn = targets.poses(targets.manager.row(0))[0][:3, :3]
    targets.send("pose", [0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], "tool")
    goal = first + 0.05 * turn[:, 0]
    targets.manager.wait(lambda: np.abs(targets.place - goal).max() < 4e-3)
    for _ in range(20):
        targets.send("twist", [-0.1, 0, 0, 0, 0, 0])
        targets.pause(0.02)
    targets.pause(1.0)
    rested = targets.place
    assert -0.08 < (rested - goal)[0] < -0.02
    targets.pause(0.5)
    assert np.abs(targets.place - rested).max() < 2e-3
    targets.send("wrench", [0, 0, 0, 0, 0, float("nan")])
    targets.refused("target_wrench: valid: finite numbers")
    assert targets.manager.states_of()["dynamics_controller"][0] == "active"


def test_a_wrench_pulls_the_tool_against_its_stiffness(start, tool_law):
    """8 N along y: up to 20 mm at 400 N/m, less at 1600 N/m; it fades in silence.

    Friction of the joints, and messages that are late, make it less.
    """
    targets = Targets(start(SIMULATED, law=tool_law))
    first, moved = targets.place, []
    for stiffness in (400, 1600):
        targets.send("stiffness", [400, stiffness, 400, 10, 10, 10])
        for _ in range(100):
            targets.send("wrench", [0, 8, 0, 0, 0, 0])
            targets.pause(0.02)
        moved.append(targets.place - first)
    (x, soft, z), (_, stiff, _) = moved
    assert 0.008 < soft < 0.022
    assert 0.002 < stiff < 0.6 * soft
    assert max(abs(x), abs(z)) < 2e-3
    targets.pause(1.5)
    assert np.abs(targets.place - first).max() < 2e-3


def test_wrong_targets_are_refused_in_a_sentence(start, tool_law):
    """And move nothing; diagnostics has the last one for a second."""
    from diagnostic_msgs.msg import DiagnosticArray

    targets, statuses = Targets(start(SIMULATED, law=tool_law)), []
    manager, first = targets.manager, targets.place
    manager.node.create_subscription(
        DiagnosticArray, "/diagnostics", lambda x: statuses.extend(x.status), 10
    )
    one = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    targets.send("pose", one, "flange9")
    targets.refused(
        "frame_id: no link is called 'flange9'; valid: link0.*tool; or empty"
    )
    targets.send("pose", [0.5, *one[1:]], "tool")
    targets.refused("target_pose: 0.5.* m and 0.0.* rad from the reference; valid: at")
    targets.send("pose", [*one[:6], 1.01], "tool")
    targets.refused("target_pose: valid: a quaternion of the length 1 within 0.001")
    targets.send("twist", [0.1] * 6, stamp=5)
    targets.refused("target_twist: the stamp is .* s old; valid: at most 0.500000 s")
    targets.send("stiffness", [1e6] * 6)
    manager.wait(lambda: any(
        re.search("target_stiffness: .* at this update_rate", x.message) for x in statuses
    ))  # fmt: skip
    for name, value, reason in (
        ("cartesian.ratio", [1.0, 2.0], "cartesian.ratio has 2 numbers; valid: one, or 6"),
        ("cartesian.ratio", [-1.0], "cartesian.ratio is -1.*; valid: a list of numbers"),
        ("cartesian.stiffness", [1.0] * 5 + [-1.0], "negative eigenvalue"),
        ("cartesian.stiffness", [1e7] * 6, "at this update_rate"),
        ("cartesian.frame", "link3", "cartesian.frame is link3; valid: tool, with which"),
        ("cartesian.target_jump", 20.0, "target_jump"),
    ):  # fmt: skip
        assert re.search(reason, manager.set(name, value)), manager.set(name, value)
    assert not manager.set("cartesian.stiffness", [5.0] * 3 + [300.0] * 3)
    assert np.abs(targets.place - first).max() < 1e-3


def test_a_rate_that_cannot_carry_the_damping_is_refused(start, tool_law):
    """At the configuration, with the position at which mock hardware stands."""
    manager = start(SIMULATED, rate=40, law=tool_law)
    assert not manager.load("dynamics_controller")
    manager.wait(lambda: "at this update_rate" in manager.log.read_text())
