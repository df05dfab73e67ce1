"""The cycle of a tool as one kernel computes what the Controller computes."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dyn_core as dyn
from dyn_core.cli import main
from dyn_core.control import Bounds, Controller, Rules
from dyn_core.control.modes.cartesian_law import CartesianLaw
from dyn_core.errors import SettingError, TargetError
from dyn_core.export.cycle.controller_cycle import (
    control_cycle,
    cycle_of_options,
    fault_names,
)
from dyn_core.export.cycle.cycle_steps import STATUS
from dyn_core.export.cycle.tool_steps import ANSWERS

DT, KD = 1e-3, 20.0
CYCLES = ("cartesian_impedance_cycle", "operational_space_cycle")
TOPICS = ("target_pose", "target_twist", "target_wrench", "target_stiffness")
Q = np.array([0.3, -0.6, 0.2, -1.8, 0.4, 1.6, 0.8])
REST = {"pose": (0, 0, 0, 0, 0, 0, 1), "stiffness": np.diag([30.0] * 3 + [700.0] * 3)}
RULES = {"good_samples": 3, "state_timeout": 0.02, "stop_time": 0.05}


class Watched(Controller):
    """A controller whose posture begins at rest, as that of the kernel."""

    def check_sampling(self, *gains):
        """Check nothing: whether the period carries the gains is the caller's."""

    def _take_over(self):
        self.control_law.begin()
        self.follower.rest(self.q)


class Pair:
    """A Controller and a kernel that get the same states and targets."""

    def __init__(self, monkeypatch, name, reference="aligned", parameters=None, **more):
        monkeypatch.setattr(CartesianLaw, "_check_sampling", lambda *x: None)
        self.model = model = dyn.load("arm7")
        rules = Rules(**{"on_violation": "zero", **RULES, **more.pop("rules", {})})
        self.law = name.removesuffix("_cycle")
        self.parameters = {
            "cartesian.frame": "tool", "cartesian.reference": reference,
            "cartesian.stiffness": [30.0, 20.0, 10.0, 700.0, 500.0, 400.0],
            "cartesian.ratio": [1.0, 0.9, 0.8, 0.7, 1.1, 1.2],
            **(parameters or {}),
        }  # fmt: skip
        settings = {"state_bounds": None, "bounds": None, "effort_slew": 1e12} | more
        self.controller = Watched(
            model, mode="cartesian", kd=KD, rules=rules, parameters=self.parameters,
            law_solver=self.law, **settings,
        )  # fmt: skip
        tool = {k: self.parameters[k] for k in ("cartesian.frame", "cartesian.reference")}
        self.program = control_cycle(name, model, rules=rules, **settings, **tool)
        self.state = np.zeros(self.program.outputs[1].size)
        self.links = list(model.frame_names)
        self.poses = dyn.solver("forward_kinematics").build(model, frames=self.links)
        step = dyn.solver("semi_implicit_euler")
        self.step = step.build(model, forward_dynamics="aba", joint_friction=True)
        self.q, self.qd, self.t = Q.copy(), np.zeros(7), 1.0
        self.waiting, self.changed = {}, 0.0

    def send(self, topic, values, frame=""):
        """Give both a target; return the sentence of a refusal, or None."""
        q, T = self.controller.q, np.eye(4)
        if frame:
            T = self.poses(self.q if q is None else q)[self.links.index(frame)]
        self.waiting[topic] = np.asarray(values, float), T[:3].ravel()
        try:
            self.controller.receive(topic, self.t + DT, values, frame)
        except TargetError as error:
            return str(error)
        return None

    def set(self, **values):
        """Change parameters of both."""
        values = {f"cartesian.{name}": value for name, value in values.items()}
        self.controller.set_parameters(values)
        self.parameters |= values
        self.changed = 1.0

    def kernel(self, fresh=1.0, request=0.0, q=None, **bad):
        """Return the kernel's effort at the present time and state."""
        law = self.controller.control_law
        targets = {
            topic: self.waiting.get(topic, (np.r_[np.zeros(6), 1.0][: 7 - bool(k)],))[0]
            for k, topic in enumerate(TOPICS)
        }
        frames = [self.waiting.get(x, (0, np.eye(4)[:3].ravel()))[1] for x in TOPICS]
        news = [float(topic in self.waiting) for topic in TOPICS] + [self.changed]
        inputs = {
            "q": self.q if q is None else q, "qd": self.qd, **targets,
            "frames": np.array(frames), "news": np.array(news),
            "stiffness": law._read_stiffness(self.parameters), "ratio": law._ratio,
            "energy_limit": law._energy, "rest_stiffness": law._rest[0],
            "rest_damping": law._rest[1], "kd": np.full(7, KD), "t": self.t,
            "target_limits": np.r_[law.targets.timeout, law.targets.jump, law._rates],
            "fresh": fresh, "request": request, "state": self.state,
        }  # fmt: skip
        inputs |= bad
        tau, self.state, self.report, answers = self.program(**inputs)
        self.answers = [ANSWERS[int(k)] for k in answers[:4]]
        self.apart = answers[4:]
        self.waiting, self.changed = {}, 0.0
        return tau

    def go(self, seconds=DT, close=1e-11):
        """Drive both, and a simulated robot; compare the efforts of each cycle."""
        for _ in range(round(seconds / DT)):
            self.t += DT
            expected = self.controller.update(self.t, self.q, self.qd)
            tau = self.kernel()
            np.testing.assert_allclose(tau, expected, rtol=close, atol=close)
            assert (self.controller.stopped is not None) == (self.status == "stopped")
            self.q, self.qd = self.step(self.q, self.qd, expected, DT)

    @property
    def status(self):
        """Name of the status."""
        return STATUS[int(self.report[0])]

    @property
    def fault(self):
        """Name of what stopped, or None."""
        return (None, *fault_names(self.model))[int(self.report[1])]

    def pose(self, move=(0, 0, 0), turn=(0, 0, 0)):
        """Return the seven numbers of a pose near the tool's, in the base."""
        T = self.poses(self.q)[self.links.index("tool")]
        q = (Rotation.from_rotvec(turn) * Rotation.from_matrix(T[:3, :3])).as_quat()
        return np.r_[T[:3, 3] + move, q]


@pytest.mark.parametrize("reference", ["aligned", "local"])
@pytest.mark.parametrize("name", CYCLES)
def test_targets_lead_the_tool_as_those_of_the_controller(name, reference, monkeypatch):
    """Poses, twists, wrenches and stiffnesses, in the axes of links that turn."""
    pair, rng = Pair(monkeypatch, name, reference), np.random.default_rng(4)
    pair.go(0.02)
    seen = []
    for _ in range(60):
        topic, frame = str(rng.choice(TOPICS)), str(rng.choice(["", *pair.links]))
        six = rng.uniform(-1, 1, 6)
        values = {
            "target_pose": np.r_[0.01 * six[:3], Rotation.from_rotvec(0.05 * six[3:]).as_quat()],
            "target_twist": 0.2 * six, "target_wrench": 3.0 * six,
            "target_stiffness": np.abs(six) * [20, 20, 20, 500, 500, 500],
        }[topic]  # fmt: skip
        if topic == "target_pose":
            frame = str(rng.choice(["tool", ""]))
            values = values if frame else pair.pose(0.02 * six[:3], 0.05 * six[3:])
        why = pair.send(topic, values, frame)
        pair.go()
        answer = pair.answers[TOPICS.index(topic)]
        assert (why is None) == (answer == "used"), (why, answer)
        seen.append(answer)
        pair.go(rng.uniform(0.005, 0.08))
    assert seen.count("used") > 50
    assert pair.status == "drives"
    assert np.linalg.norm(pair.q - Q) > 0.05
