"""The source of an exported controller, in a stand of its own instead of ros2_control."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dyn_core as dyn
from dyn_core.control import Controller
from dyn_core.control.reference.trajectory import Reference
from dyn_core.engines.llvm import host_machine
from dyn_core.export.ros2_control.controller_package import controller_package
from dyn_core.model.payload import Payload
from dyn_core.model.sources.arguments import urdf_with

pytestmark = [
    pytest.mark.skipif(
        bool(host_machine.missing()),
        reason=f"no machine code: {host_machine.missing()}",
    ),
    pytest.mark.skipif(
        not (shutil.which("gcc") and shutil.which("g++")), reason="no gcc and g++"
    ),
]
STAND = Path(__file__).with_name("controller_stand")
# Headers that the source includes, each in place of one of ROS.
HEADERS = (
    "controller_interface/chainable_controller_interface", "pluginlib/class_list_macros",
    "diagnostic_msgs/msg/diagnostic_array", "realtime_tools/realtime_buffer",
    "rclcpp/parameter_value", "std_srvs/srv/trigger", "trajectory_msgs/msg/joint_trajectory",
    "controller_interface/controller_interface", "rclcpp_lifecycle/lifecycle_node",
    *(f"geometry_msgs/msg/{x}_stamped" for x in ("pose", "twist", "wrench")),
)  # fmt: skip
DT = 1e-3
SCALES = {  # of the numbers of targets
    "target_pose": np.array([0.02] * 3 + [0.05] * 3), "target_twist": 0.2,
    "target_wrench": 3.0, "target_stiffness": np.array([20.0] * 3 + [500.0] * 3),
}  # fmt: skip
Q = np.array([0.1, 0.6, 0.0, -0.9, 0.0, 0.5, 0.0])


def _program(folder, law, options):
    """Return the path of a program that drives the package of arm7, made in a folder."""
    urdf, model = urdf_with({}, "arm7"), dyn.load("arm7")
    controller_package(law, model, folder, urdf, options)
    for header in HEADERS:
        path = folder / f"stand/{header}.hpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#include <ros2_control.hpp>\n")
    kernels = [str(path) for path in (folder / "src").glob("*.c")]
    include = [f"-I{path}" for path in (folder / "src", folder / "stand", STAND)]
    subprocess.run(["gcc", "-O1", "-c", *kernels, *include], cwd=folder, check=True)
    objects = [str(path) for path in folder.glob("*.o")]
    subprocess.run(
        ["g++", "-std=c++17", "-DPACKAGE=arm_law", str(STAND / "main.cpp"), *objects,
         *include, "-o", "stand.out"], cwd=folder, check=True,
    )  # fmt: skip
    return str(folder / "stand.out")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Path of the program of a computed torque, with a payload at the tool."""
    folder = tmp_path_factory.mktemp("stand") / "arm_law"
    return _program(folder, "computed_torque", {"payload_link": "tool"})


class Stand:
    """A running program of the stand."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, *line):
        """Return the answer to a line of words and numbers."""
        rows = (repr(x) if isinstance(x, float) else str(x) for x in line)
        print(*rows, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def close(self):
        """End the program; return what it has logged."""
        log = self.process.communicate()[1]
        assert self.process.returncode == 0
        return log


class Pair(Stand):
    """The program, a Controller with the same settings, and a simulated robot.

    Attributes:
        load: Inertial parameters of a payload that the robot carries, (10,).
    """

    def __init__(self, program):
        super().__init__(program)
        assert self.ask("configure") == "0"
        self.model = model = dyn.load("arm7")
        self.controller = Controller(model, payload_link="tool")
        step = dyn.solver("semi_implicit_euler")
        options = {"joint_friction": True, "inputs": ["tool.payload"]}
        self.step = step.build(model, forward_dynamics="aba", **options)
        self.q, self.qd, self.t, self.load = Q, 0 * Q, 1.0, np.zeros(10)
        self.gains(self.controller.kp, self.controller.kd)
        assert self.ask("activate") == "0"

    def gains(self, kp, kd):
        """Set the gains of both."""
        self.controller.set_gains(kp, kd)
        for name, p, d in zip(
            self.model.joint_names, self.controller.kp, self.controller.kd, strict=True
        ):
            for key, value in (("d", d), ("p", p)):
                assert self.ask("set", f"gains.{name}.{key}", float(value)) == "set"

    def cycle(self, lost=False, reference=None):
        """Compare the efforts of a cycle, which move the robot; return the effort."""
        self.t += DT
        if reference is not None:
            self.ask("reference", *np.concatenate(reference).tolist())
            if self.controller.reference is not None:
                self.controller.follower.reference = Reference(*reference)
        q = self.q + np.where(lost, np.nan, 0.0)
        answer = self.ask("cycle", DT, *q.tolist(), *self.qd.tolist()).split()
        assert answer[0] == "0"
        tau = np.array(answer[1:], float)
        if not lost:
            expected = self.controller.update(self.t, q, self.qd)
            np.testing.assert_allclose(tau, expected, rtol=1e-9, atol=1e-9)
        self.q, self.qd = self.step(self.q, self.qd, tau, DT, self.load)
        return tau


@pytest.fixture
def pair(program):
    """Both controllers, which have not had a state."""
    made = Pair(program)
    yield made
    made.close()


def test_lost_states_leave_an_arm_where_it_is(pair):
    """An arm whose load the law does not know sags a little, and no more at each loss."""
    pair.load[:] = [2.0, 0, 0, 0, 0.01, 0, 0.01, 0, 0, 0.01]
    places = []
    for k in range(6000):
        pair.cycle(lost=k > 10 and k % 200 < 2)
        if k in (3000, 5999):
            places.append(pair.q)
    assert np.abs(places[0] - Q).max() > 0.1
    np.testing.assert_allclose(places[1], places[0], atol=0.03)


def test_references_gains_and_payloads_act_as_in_the_controller(pair):
    """A motion with lost states, while gains change and a payload comes and goes."""
    rng = np.random.default_rng(3)
    for k in range(3000):
        reference = None
        if k > 10:
            s = 0.5 * (k - 10) * DT
            way = np.linspace(-0.4, 0.4, 7)
            reference = (
                Q + way * np.sin(s),
                0.5 * way * np.cos(s),
                -0.25 * way * np.sin(s),
            )
        if k % 700 == 500:
            pair.gains(*rng.uniform((50.0, 10.0), (150.0, 30.0)))
        if k == 900:
            com, inertia = (
                [0.01, -0.02, 0.05],
                [0.02, 0.001, -0.002, 0.03, 0.003, 0.025],
            )
            payload = Payload(1.2, com, inertia)
            pair.controller.attach(payload)
            pair.ask("set", "payload.mass", 1.2)
            pair.ask("set", "payload.com", *com)
            pair.ask("set", "payload.inertia", *inertia)
            assert pair.ask("set", "payload.attached", 1) == "set"
        if k == 2000:
            pair.controller.attach(None)
            assert pair.ask("set", "payload.attached", 0) == "set"
        pair.cycle(k > 20 and rng.random() < 0.01, reference)
    assert np.abs(pair.q - Q).max() > 0.2


def test_references_that_end_in_a_motion_are_held(pair):
    """The last position, not one that the last velocity leads on to."""
    for _ in range(9):
        pair.cycle()
    for k in range(200):
        s = k * DT
        last = Q + 0.8 * s, np.full(7, 0.8), np.zeros(7)
        pair.ask("reference", *np.concatenate(last).tolist())
        answer = pair.ask("cycle", DT, *pair.q.tolist(), *pair.qd.tolist()).split()
        tau = np.array(answer[1:], float)
        pair.q, pair.qd = pair.step(pair.q, pair.qd, tau, DT, pair.load)
    for _ in range(2500):
        answer = pair.ask("cycle", DT, *pair.q.tolist(), *pair.qd.tolist()).split()
        tau = np.array(answer[1:], float)
        pair.q, pair.qd = pair.step(pair.q, pair.qd, tau, DT, pair.load)
    assert np.abs(pair.qd).max() < 0.01
    # Dry friction keeps the light last joint where it comes to rest.
    np.testing.assert_allclose(pair.q[:6], last[0][:6], atol=0.02)


def test_an_emergency_stop_between_activations_begins_the_next_one(pair):
    """As in the node: it acts in the next activation, and ends with the one after it."""
    for _ in range(9):
        pair.cycle()
    assert pair.ask("deactivate") == "0"
    assert pair.ask("estop") == "the next activation begins with this stop"
    for stopped in (True, False):
        assert pair.ask("activate") == "0"
        for _ in range(9):
            answer = pair.ask("cycle", DT, *Q.tolist(), *(0 * Q).tolist()).split()
        assert (not np.array(answer[1:], float).any()) == stopped
        assert pair.ask("deactivate") == "0"
    assert pair.ask("activate") == "0"
    assert pair.ask("estop") == "stopped until the next activation"
    assert pair.ask("deactivate") == pair.ask("activate") == "0"
    for _ in range(9):
        answer = pair.ask("cycle", DT, *Q.tolist(), *(0 * Q).tolist()).split()
    assert np.array(answer[1:], float).any()


def test_dampers_too_fast_for_a_light_joint_are_refused(tmp_path):
    """Those of joint_impedance act on the inertia; the bound is that of the node."""
    program = _program(tmp_path / "arm_law", "joint_impedance", {})
    stand = Stand(program)
    assert stand.ask("configure") == "2"  # the default of 20 slows joint7 at 4000 1/s
    assert "unstable at this update_rate" in stand.close()
    stand, model = Stand(program), dyn.load("arm7")
    for name in model.joint_names:
        stand.ask("override", f"gains.{name}.d", 2.0)
    assert stand.ask("configure") == "0"
    H = dyn.solver("crba").build(model)(Q)
    low, high = 2.0, 100.0
    for _ in range(40):  # the largest d of joint7
        d = (low + high) / 2
        rate = np.linalg.eigvals(
            np.linalg.solve(H, np.diag([*[2.0] * 6, d]))
        ).real.max()
        low, high = (d, high) if rate < 2 / DT else (low, d)
    assert stand.ask("activate") == "0"
    stand.ask("cycle", DT, *Q.tolist(), *(0 * Q).tolist())
    assert stand.ask("set", "gains.joint7.d", 0.999 * low) == "set"
    assert "unstable at this update_rate" in stand.ask(
        "set", "gains.joint7.d", 1.001 * low
    )
    stand.close()


@pytest.mark.full
@pytest.mark.parametrize("axes", ["aligned", "local"])
def test_targets_lead_a_tool_as_in_the_controller(axes, tmp_path):
    """Of any kind, in the axes of any link, wrong ones, too, and some states are lost."""
    tool = {"cartesian.frame": "tool", "cartesian.reference": axes}
    stand = Stand(_program(tmp_path / "arm_law", "cartesian", tool))
    assert stand.ask("configure") == stand.ask("activate") == "0"
    model, rng, used = dyn.load("arm7"), np.random.default_rng(1), set()
    controller = Controller(model, mode="cartesian", parameters=tool)
    step = dyn.solver("semi_implicit_euler")
    step = step.build(model, forward_dynamics="aba", joint_friction=True)
    poses, links = dyn.solver("forward_kinematics").build(model), model.frame_names
    q, qd = np.array([0.3, -0.6, 0.2, -1.8, 0.4, 1.6, 0.8]), np.zeros(7)
    for k in range(4000):
        t, six = 1.0 + k * DT, rng.uniform(-1, 1, 6)
        if k > 20 and rng.random() < 0.02:
            scale, frame = rng.choice(len(SCALES)), str(rng.choice(["", *links]))
            topic, values = [*SCALES][scale], six * [*SCALES.values()][scale]
            if topic == "target_stiffness":
                values = np.abs(values)
            if topic == "target_pose":
                frame, T = "", poses(q)[links.index("tool")]
                turn = Rotation.from_rotvec(values[3:])
                turn = turn * Rotation.from_matrix(T[:3, :3])
                values = np.r_[T[:3, 3] + values[:3], turn.as_quat()]
            if rng.random() < 0.1:
                values[rng.integers(6)] = rng.choice([np.nan, 5.0, -3.0, 1e9])
            stand.ask(topic, frame or "-", *values.tolist())
            try:
                controller.receive(topic, t, values, frame)
                used.add(topic)
            except dyn.DynError:
                used.add("refused")
        if k == 1500:
            stiffness = [50.0, 40.0, 30.0, 900.0, 700.0, 500.0]
            assert stand.ask("set", "cartesian.stiffness", *stiffness) == "set"
            controller.set_parameters({"cartesian.stiffness": stiffness})
        lost = k > 20 and rng.random() < 0.01
        seen = q + np.where(lost, np.nan, 0.0)
        answer = stand.ask("cycle", DT, *seen.tolist(), *qd.tolist()).split()
        tau = np.array(answer[1:], float)
        if not lost:
            expected = controller.update(t, q, qd)
            np.testing.assert_allclose(tau, expected, rtol=1e-9, atol=1e-9)
        q, qd = step(q, qd, tau, DT)
    assert used == {*SCALES, "refused"}
    stand.close()
