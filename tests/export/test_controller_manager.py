"""Exported packages in the controller_manager that CMake finds; else they skip.

The packages are built and installed into a folder of the test; ros2_control_node loads
them and is driven through its services, as `ros2 control` does.
"""

import importlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

import dyn_core as dyn
from dyn_core.engines.llvm import host_machine
from dyn_core.export.ros2_control.controller_package import controller_package
from dyn_core.export.ros2_control.hardware_package import hardware_package
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
    controller_package("computed_torque", model, law, urdf, {})
    hardware_package("semi_implicit_euler", model, hardware, urdf, {})
    source = hardware / "src/hardware.cpp"
    source.write_text(_blind(source.read_text()))
    for package in (law, hardware):
        build_package(package, folder / package.name, folder / "install")
    return folder, node


class Manager:
    """A running ros2_control_node and a node that asks it.

    Args:
        installed: Folder of the packages and path of ros2_control_node.
        folder: Folder for its parameters and its log.
        urdf: Text of the robot.
        parameters: Parameters of the exported controller.
        rate: update_rate of controller_manager [Hz].
    """

    def __init__(self, installed, folder, urdf, parameters, rate=1000):
        import rclpy
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from sensor_msgs.msg import JointState
        from std_msgs.msg import String

        workspace, node = installed
        text = (workspace / "src/arm_law/config/controllers.yaml").read_text()
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


SIMULATED = "arm_robot/urdf/simulated.urdf"


def _parameter(text, name):
    """Return a URDF whose hardware has a parameter that is true."""
    parameter = f'<param name="{name}">true</param>'
    return text.replace("<hardware>", f"<hardware>{parameter}", 1)


def _blind(source):
    """Return the hardware's source with a fault: parameter blind, a NaN after 1 s."""
    for old, new in (
        ('"position", &q_[j]', '"position", j == 2 ? &third_ : &q_[j]'),
        ("bool braked_ = true;", "bool braked_ = true; double third_ = 0.0;"),
        (
            "override {\n        return return_type::OK;",
            'override {\n        const bool blind = info_.hardware_parameters.count("blind");'
            '\n        third_ = blind && simulated_ > 1.0 ? std::nan("") : q_[2];'
            "\n        return return_type::OK;",
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
    assert manager.load("joint_state_broadcaster", "dynamics_controller")
    assert manager.switch(on=["joint_state_broadcaster", "dynamics_controller"])
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
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    manager = start(rate=500)
    assert manager.load("dynamics_controller")
    assert manager.switch(on=["dynamics_controller"])
    for value, valid in ((300.0, True), (1e5, False)):
        asked = Parameter("gains.joint1.p", value=value).to_parameter_msg()
        name = "/dynamics_controller/set_parameters"
        (result,) = manager.ask(SetParameters, name, parameters=[asked]).results
        assert result.successful == valid
        assert valid or "is unstable at 500" in result.reason
    assert (
        "update_rate is 500 Hz; the package was exported for 1000 Hz"
        in manager.log.read_text()
    )


def test_a_sensor_that_fails_ends_the_controller(start):
    """From the second second on a position is NaN: zeros are written, then an error."""
    manager = start(SIMULATED, lambda text: _parameter(text, "blind"))
    assert manager.load("joint_state_broadcaster", "dynamics_controller")
    assert manager.switch(on=["joint_state_broadcaster", "dynamics_controller"])
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
    assert manager.load("joint_state_broadcaster", "dynamics_controller")
    assert manager.switch(on=["joint_state_broadcaster", "dynamics_controller"])
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
