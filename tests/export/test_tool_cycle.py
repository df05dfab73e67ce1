"""The cycle of a tool as one kernel computes what the Controller computes."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dyn_core as dyn
from dyn_core.cli import main
from dyn_core.control import Bounds, Controller, Rules
from dyn_core.control.modes.cartesian_law import CartesianLaw
from dyn_core.control.modes.tool_sampling import sampling_program
from dyn_core.errors import SettingError, TargetError, UnsupportedError
from dyn_core.export.cycle.controller_cycle import (
    control_cycle,
    cycle_of_options,
    cycle_settings,
    fault_names,
    state_places,
)
from dyn_core.export.cycle.cycle_steps import STATUS
from dyn_core.export.cycle.tool_steps import ANSWERS

DT, KD = 1e-3, 20.0
CYCLES = ("cartesian_impedance_cycle", "operational_space_cycle")
TOPICS = ("target_pose", "target_twist", "target_wrench", "target_stiffness")
Q = np.array([0.3, -0.6, 0.2, -1.8, 0.4, 1.6, 0.8])
RULES = {
    "good_samples": 3, "state_timeout": 0.02, "stop_time": 0.05, "on_estop": "ramp",
}  # fmt: skip


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
        tool = {
            k: self.parameters[k] for k in ("cartesian.frame", "cartesian.reference")
        }
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

    def inputs(self, fresh=1.0, request=0.0, q=None):
        """Return the inputs of the kernel at the present time and state."""
        law = self.controller.control_law
        targets = {
            topic: self.waiting.get(topic, (np.r_[np.zeros(6), 1.0][: 7 - bool(k)],))[0]
            for k, topic in enumerate(TOPICS)
        }
        frames = [self.waiting.get(x, (0, np.eye(4)[:3].ravel()))[1] for x in TOPICS]
        news = [float(topic in self.waiting) for topic in TOPICS] + [self.changed]
        return {
            "q": self.q if q is None else q, "qd": self.qd, **targets,
            "frames": np.array(frames), "news": np.array(news),
            "stiffness": law._read_stiffness(self.parameters), "ratio": law._ratio,
            "energy_limit": law._energy, "rest_stiffness": law._rest[0],
            "rest_damping": law._rest[1], "kd": np.full(7, KD), "t": self.t,
            "target_limits": np.r_[law.targets.timeout, law.targets.jump, law._rates],
            "fresh": fresh, "request": request, "state": self.state,
        }  # fmt: skip

    def kernel(self, *now, **bad):
        """Return the kernel's effort at the present time and state."""
        inputs = {**self.inputs(*now), **bad}
        tau, self.state, self.report, answers = self.program(**inputs)
        self.answers = [ANSWERS[int(k)] for k in answers[:4]]
        self.apart = answers[4:]
        self.waiting, self.changed = {}, 0.0
        return tau

    def go(self, seconds=DT, close=1e-12):
        """Drive both, and a simulated robot; compare the efforts by their largest."""
        for _ in range(round(seconds / DT)):
            self.t += DT
            expected = self.controller.update(self.t, self.q, self.qd)
            tau = self.kernel()
            size = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(tau, expected, rtol=0, atol=close * size)
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


@pytest.mark.one_of(4)
@pytest.mark.parametrize("reference", ["aligned", "local"])
@pytest.mark.parametrize("name", CYCLES)
def test_targets_lead_the_tool_as_those_of_the_controller(
    name, reference, monkeypatch, full
):
    """Poses, twists, wrenches and stiffnesses, in the axes of links that turn."""
    count = 60 if full else 30
    pair, rng = Pair(monkeypatch, name, reference), np.random.default_rng(4)
    pair.go(0.02)
    seen = []
    for _ in range(count):
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
    assert seen.count("used") > 5 * count // 6
    assert pair.status == "drives"
    assert np.linalg.norm(pair.q - Q) > 0.05


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", CYCLES)
def test_random_events_have_the_torques_of_the_controller(name, monkeypatch):
    """Silence, bad states, jumps, stops, resets and targets of any kind, in any order.

    With the checks of states and the default envelope, and a bound on the tool's speed.
    """
    checks = {"state_bounds": dyn.control.StateBounds(), "effort_slew": None,
              "bounds": Bounds(tool_speed=1.5, velocity=None)}  # fmt: skip
    rules = {"on_stale": "ramp", "on_violation": "auto"}
    pair, rng = Pair(monkeypatch, name, rules=rules, **checks), np.random.default_rng(8)
    events = ["none"] * 8 + ["silence", "short", "nan", "jump", "ramp", "zero", "fling"]
    events += ["reset"] * 5 + ["target"] * 12 + ["parameters"]
    statuses, answers, faults, tau = set(), set(), set(), np.zeros(7)
    while pair.t < 7.0:
        event, length = str(rng.choice(events)), int(rng.integers(1, 50))
        length = {"nan": 4, "jump": 1, "short": 8, "fling": 1}.get(event, length)
        controller = pair.controller
        if event in ("ramp", "zero"):
            controller.safety.stop(pair.t + DT, "estop", event, "asked")
            controller._brake(False)
        asked = {}
        if event == "reset":
            controller.reset_stop()
        elif event == "parameters":
            pair.set(stiffness=rng.uniform(5, 600, 6).tolist(), target_timeout=0.05)
        elif event == "target":
            for topic in rng.choice(TOPICS, 2, replace=False):
                six = rng.uniform(-0.1, 1.0, 6)
                values = pair.pose(0.08 * six[:3], 0.08 * six[3:])
                if topic != "target_pose":
                    values = six * {"target_stiffness": 300.0}.get(str(topic), 1.0)
                if rng.random() < 0.1:
                    values[rng.integers(len(values))] = rng.choice(
                        [np.nan, np.inf, 3.0, -2e7]
                    )
                asked[topic] = pair.send(str(topic), values)
        for k in range(length):
            pair.t += DT
            request = {"ramp": 1.0, "zero": 2.0, "reset": 3.0}.get(event, 0.0) * (
                k == 0
            )
            q, fresh = pair.q, float(event not in ("silence", "short"))
            if event == "jump":
                q = pair.q = q + rng.choice([0.6, -0.6])
            if event == "fling":
                pair.qd = pair.qd + 60.0 * rng.standard_normal(7)
            if event == "nan":
                q = np.where(np.arange(7) == rng.integers(7), np.nan, q)
            good = bool(fresh) and np.isfinite(q).all()
            try:
                args = pair.t, q, pair.qd
                expected = (
                    controller.update(*args) if good else controller.watch(pair.t)
                )
            except dyn.StateError:
                expected = controller.watch(pair.t)
            last, tau = tau, pair.kernel(fresh, request, q)
            statuses.add(pair.status)
            answers.update(pair.answers)
            for place, topic in enumerate(TOPICS):
                answer, asks = pair.answers[place], k == 0 and topic in asked
                assert (answer == ANSWERS[0]) != asks
                if asks:
                    assert (asked[topic] is None) == (answer == "used"), asked[topic]
            if expected is not None:
                np.testing.assert_allclose(tau, expected, rtol=1e-10, atol=1e-10)
            elif event == "reset":
                assert not tau.any()
            elif pair.status != "stopped":  # the Controller sends nothing
                assert pair.status == ("refused" if fresh else "kept")
                assert (tau == last).all()
            stops = pair.state[state_places(7)["stop"]] > 0
            assert (controller.stopped is not None) == stops
            faults.add(pair.fault)
            if np.abs(pair.q).max() > 20 or np.abs(pair.qd).max() > 100:
                pair.q, pair.qd = Q.copy(), 0 * pair.qd
            pair.q, pair.qd = pair.step(pair.q, pair.qd, tau, DT)
    assert {None, "request", "tool_speed"} <= faults
    assert statuses == {"drives", "waits", "refused", "kept", "stale", "stopped"}
    assert answers == set(ANSWERS)


def test_numbers_of_refusals_are_told(monkeypatch):
    """Distance and angle of a pose that is too far; each answer of a target."""
    pair = Pair(monkeypatch, CYCLES[0])
    pair.go(0.01)
    assert pair.send("target_pose", pair.pose((0.0, 0.2, 0.0), (0.15, 0.0, 0.0)))
    pair.go()
    np.testing.assert_allclose(pair.apart, [0.15, 0.2], rtol=1e-3)
    assert pair.answers == [ANSWERS[5], "", "", ""]
    assert pair.send("target_pose", [0, 0, 0, 0, 0, 0, 1.01])
    assert pair.send("target_twist", [0, 0, 0, np.nan, 0, 0])
    assert pair.send("target_stiffness", [1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
    pair.go()
    assert pair.answers == [ANSWERS[4], ANSWERS[3], "", ANSWERS[4]]
    assert pair.send("target_pose", [2e7, 0, 0, 0, 0, 0, 1.0])
    assert pair.send("target_twist", [0, 0, 2e7, 0, 0, 0])
    assert pair.send("target_wrench", [0, 0, 0, 0, 0, -2e7])
    assert pair.send("target_stiffness", [1.0, 1.0, 1.0, 2e7, 1.0, 1.0])
    pair.go()
    assert pair.answers == [ANSWERS[3]] * 4
    before = pair.state.copy()
    pair.go()
    assert (pair.state[51:] != before[51:]).sum() <= 1  # the time of the reference


def test_nan_becomes_a_stop_and_no_torque(monkeypatch):
    """In a parameter: the last torque bridges some cycles, then the robot stops."""
    pair = Pair(monkeypatch, CYCLES[0], rules={"last_good_cycles": 2})
    pair.go(0.01)
    state, t = pair.state, pair.t
    for bad in ("ratio", "energy_limit", "stiffness", "rest_stiffness", "rest_damping"):
        pair.state, pair.t = state.copy(), t + DT
        last, value = (
            pair.kernel(),
            {"ratio": 6, "stiffness": (6, 6), "energy_limit": ()},
        )
        broken = np.full(value.get(bad, 7), np.nan)
        if bad == "stiffness":
            pair.changed = 1.0
        for _ in range(2):
            pair.t += DT
            np.testing.assert_allclose(pair.kernel(**{bad: broken}), last, atol=0.1)
            assert pair.status == "bridges", bad
        for _ in range(2):
            pair.t += DT
            tau = pair.kernel(**{bad: broken})
        assert pair.status == "stopped"
        assert not tau.any()
        assert pair.fault == "effort not finite"


@pytest.mark.parametrize("name", CYCLES)
def test_no_numbers_make_a_torque_that_is_not_finite_or_too_large(name, monkeypatch):
    """Any input and any state, broken in any place; nothing is raised."""
    pair = Pair(monkeypatch, name)
    pair.go(0.01)
    program, rng = pair.program, np.random.default_rng(3)
    good = pair.inputs()
    bad = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e30, 1.0, 2.0, 0.0])
    rows = {
        key: np.repeat(np.asarray(x, float)[None], 3000, 0) for key, x in good.items()
    }
    flat = np.concatenate([x.reshape(3000, -1) for x in rows.values()], axis=1)
    for row in flat:
        row[rng.integers(0, len(row), rng.integers(1, 6))] = rng.choice(bad)
    start = 0
    for key, x in rows.items():
        size = x[0].size
        rows[key] = np.ascontiguousarray(flat[:, start : start + size]).reshape(x.shape)
        start += size
    tau = program(**rows)[0]
    assert np.isfinite(tau).all()
    assert (np.abs(tau) <= pair.model.effort_limit).all()
    assert np.abs(tau).max() > 0.5


@pytest.mark.parametrize("axes", ["aligned", "local"])
def test_rates_of_springs_and_dampers_are_those_of_the_matrices(axes):
    """Of H^-1 (J.T D J + rest_damping), and sqrt(K_ii / m_i)."""
    model, rng = dyn.load("arm7"), np.random.default_rng(0)
    program = sampling_program(model, "tool", axes)
    inertia = dyn.solver("crba").build(model)
    jacobian = dyn.solver("jacobian").build(model, frame="tool", reference=axes)
    for _ in range(50):
        q, k = rng.uniform(-1.5, 1.5, 7), rng.uniform(0, 900, 6)
        ratio, rest = rng.uniform(0, 2, 6), rng.uniform(0, 3, 7)
        inverse, J = np.linalg.inv(inertia(q)), jacobian(q)
        mobility = np.diag(J @ inverse @ J.T)
        D = 2 * ratio * np.sqrt(k / mobility)
        B = J.T @ (D[:, None] * J) + np.diag(rest)
        rate, rates = program(q, k, ratio, rest)
        wanted = np.abs(np.linalg.eigvals(inverse @ B)).max()
        np.testing.assert_allclose(rate, wanted, rtol=1e-12)
        np.testing.assert_allclose(rates, np.sqrt(k * mobility), rtol=1e-12)


def test_the_command_exports_the_cycle(tmp_path, capsys):
    """With the parameters of the node as options; a link that stands is refused."""
    command = ["export", "cartesian_impedance_cycle", "arm7", str(tmp_path)]
    options = ["--option", "tool_speed=0.5", "--option", "cartesian.reference=local"]
    assert main([*command, *options, "--option", "cartesian.frame=tool"]) == 0
    assert "cartesian_impedance_cycle_arm7.o" in capsys.readouterr().out
    assert main([*command, *options, "--option", "cartesian.frame=link0"]) != 0
    assert "cartesian.frame is 'link0'; valid: link1" in capsys.readouterr().err
    with pytest.raises(SettingError, match="cartesian.frame is ''; valid: link1"):
        cycle_of_options("operational_space_cycle", dyn.load("arm7"), {})
    for model in (None, "arm7"):
        with pytest.raises(UnsupportedError, match="control_cycle is for a Model"):
            control_cycle(CYCLES[0], model)
    with pytest.raises(UnsupportedError, match="did you mean 'state_timeout'"):
        cycle_of_options(CYCLES[0], dyn.load("arm7"), {"state_timeot": 1.0})


def test_an_effort_limit_is_an_option(tmp_path, capsys):
    """The message of a joint without one names it; beside a mapping it counts, too."""
    command = ["export", "computed_torque_cycle", "cart_pole", str(tmp_path)]
    assert main(command) != 0
    assert "set effort_limits.hinge > 0" in capsys.readouterr().err
    assert main([*command, "--option", "effort_limits.hinge=5"]) == 0
    chosen = {"limits": {"joint1": 3.0}, "effort_limits.joint2": 4.0}
    assert cycle_settings(chosen)[3] == {"limits": {"joint1": 3.0, "joint2": 4.0}}
    both = {"limits": 40, "effort_limits.joint2": 4.0}
    with pytest.raises(SettingError, match="effort_limits is 40; valid: a mapping"):
        cycle_of_options("computed_torque_cycle", dyn.load("arm7"), both)


def test_a_long_step_moves_the_reference_for_the_timeout_at_most(monkeypatch):
    """Cycles 11 ms apart with a target_timeout of 2 ms; the efforts agree."""
    parameters = {"cartesian.target_timeout": 0.002}
    pair = Pair(monkeypatch, CYCLES[0], parameters=parameters)
    pair.go(0.01)
    pair.t += 0.01
    before = pair.controller.control_law.targets.p
    assert pair.send("target_twist", [0.0, 0.0, 0.0, 0.0, 0.5, 0.0]) is None
    pair.go()
    moved = pair.controller.control_law.targets.p - before
    np.testing.assert_allclose(moved, [0.0, 0.001, 0.0], atol=1e-9)
    pair.go(0.01)


def test_a_twist_that_turns_beyond_the_jump_in_a_step_does_not_act(monkeypatch):
    """Also a whole turn, after which the reference is where it was."""
    for turns in (0.1, 1.0):
        pair = Pair(monkeypatch, CYCLES[0])
        pair.go(0.01)
        pair.t += DT
        last, state = pair.kernel(), pair.state
        pair.t += DT
        spin = np.array([0.0, 0.0, 2 * np.pi * turns / DT, 0.0, 0.0, 0.0])
        pair.waiting["target_twist"] = spin, np.eye(4)[:3].ravel()
        np.testing.assert_allclose(pair.kernel(), last, atol=0.1)
        assert pair.answers[1] == "used"
        np.testing.assert_array_equal(pair.state[56:63], state[56:63])
