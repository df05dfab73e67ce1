"""Mode cartesian without ROS: targets, stops, the envelope, and what is refused."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dyn_core as dyn
from dyn_core.authoring import sin
from dyn_core.control import Bounds, Controller, Rules, ShadowSettings
from dyn_core.errors import TargetError
from dyn_core.solving.control_mode import ControlMode

Q = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8])
T = 0.002  # period of the states [s]
SOFT = {"cartesian.frame": "tool"}


@pytest.fixture(scope="module")
def arm():
    """Return the arm with seven joints."""
    return dyn.load("arm7")


@pytest.fixture(scope="module")
def poses(arm):
    """Return a function of q: the poses of the links by name."""
    program = dyn.solver("forward_kinematics").build(arm, frames=list(arm.frame_names))
    return lambda q: dict(zip(arm.frame_names, program(q), strict=True))


class Run:
    """A controller in mode cartesian with a robot that it drives."""

    def __init__(self, model, settings=None, **more):
        parameters = {**SOFT, **(settings or {})}
        rules = Rules(good_samples=1, **more.pop("rules", {}))
        free = {"state_bounds": None, "bounds": None, "effort_slew": 1e12}
        self.controller = Controller(
            model, mode="cartesian", parameters=parameters, rules=rules, **free | more
        )
        self.move = dyn.solver("aba").build(model, joint_friction=True)
        self.t, self.q, self.qd = 0.0, Q.copy(), np.zeros(7)
        self.tau = self.controller.update(self.t, self.q, self.qd)

    def go(self, seconds, load=0.0, before=lambda run: None):
        """Simulate for some seconds; `before` is called with this before each state."""
        for _ in range(round(seconds / T)):
            self.qd = self.qd + T * self.move(self.q, self.qd, self.tau + load)
            self.q = self.q + T * self.qd
            self.t += T
            before(self)
            self.tau = self.controller.update(self.t, self.q, self.qd)
            assert np.isfinite(self.tau).all()

    def send(self, topic, values, frame="", **times):
        self.controller.receive(topic, self.t, values, frame, **times)


def _seven(pose, shift=(0, 0, 0)):
    turn = Rotation.from_matrix(pose[:3, :3]).as_quat()
    return np.r_[pose[:3, 3] + shift, turn]


def test_the_pose_at_activation_is_held(arm, poses):
    """Without a target the arm stays; pushed and released, it returns."""
    run = Run(arm)
    run.go(0.3)
    here = poses(Q)["tool"][:3, 3]
    np.testing.assert_allclose(poses(run.q)["tool"][:3, 3], here, atol=1e-6)
    push = dyn.solver("jacobian").build(arm, frame="tool", reference="aligned")
    run.go(1.5, load=push(run.q).T @ [0, 0, 0, 0, 4.0, 0])
    away = poses(run.q)["tool"][:3, 3] - here
    np.testing.assert_allclose(away[1], 4.0 / 400.0, rtol=0.1)
    run.go(1.5)
    np.testing.assert_allclose(poses(run.q)["tool"][:3, 3], here, atol=2e-3)
    assert run.controller.stopped is None


def test_a_pose_is_reached_and_held(arm, poses):
    """One message; the tool goes there and stays, whatever time passes."""
    run = Run(arm, {"cartesian.stiffness": [40.0] * 3 + [900.0] * 3})
    target = poses(Q)["tool"][:3, 3] + [0.0, 0.05, 0.03]
    run.send("target_pose", _seven(poses(Q)["tool"], (0.0, 0.05, 0.03)))
    assert run.controller.control_law.status == "following targets of the tool"
    run.go(2.0)
    np.testing.assert_allclose(poses(run.q)["tool"][:3, 3], target, atol=3e-3)
    assert run.controller.control_law.status == "holding the tool"


@pytest.mark.parametrize("pace", [0.2, 1.0, 3.0])
def test_a_twist_is_a_velocity_on_the_clock_of_the_robot(arm, poses, pace):
    """Simulated time may be slower or faster; so are the timeouts of targets."""
    run = Run(arm)
    update = run.controller.update
    run.controller.update = lambda t, q, qd: update(t / pace, q, qd, now=t)
    before, goal = poses(run.q)["tool"][:3, 3], run.controller.control_law.targets
    run.go(0.3, before=lambda run: run.send("target_twist", [0, 0, 0, 0.1, 0, 0]))
    np.testing.assert_allclose(goal.p - before, [0.03, 0.0, 0.0], atol=1e-3)
    run.go(0.2)  # twice the timeout
    np.testing.assert_allclose(goal.p - before, [0.0375, 0.0, 0.0], atol=2e-3)


def test_a_pose_in_the_axes_of_a_link_is_frozen_at_its_receipt(arm, poses):
    """The tool's own frame, 0.02 m along its z; the frame moves later, not the pose."""
    run = Run(arm)
    run.send("target_pose", [0, 0, 0.02, 0, 0, 0, 1], "tool")
    law, there = run.controller.control_law, poses(Q)["tool"]
    np.testing.assert_allclose(
        law.targets.p, there[:3, 3] + 0.02 * there[:3, 2], atol=1e-12
    )
    before = law.targets.p.copy()
    run.go(0.1)
    assert (law.targets.p == before).all()


@pytest.mark.parametrize("frame", ["", "link0", "tool", "link5"])
def test_twist_wrench_and_stiffness_are_turned_from_their_frames(arm, poses, frame):
    """Six numbers in the axes of a link are these in the root's."""
    run = Run(arm, {"cartesian.stiffness_rate": [1e9, 1e9]})
    R = poses(Q)[frame or "link0"][:3, :3]
    # The tool points down: half a turn, which is its own inverse.
    assert frame != "link5" or np.abs(R - R.T).max() > 0.1
    six = np.array([0.1, 0.2, 0.3, 0.01, 0.02, 0.03])
    run.send("target_twist", six, frame)
    run.send("target_wrench", 10 * six, frame)
    run.send("target_stiffness", [1.0, 2.0, 3.0, 100.0, 200.0, 300.0], frame)
    targets = run.controller.control_law.targets
    run.controller.update(0.5 * T, Q, np.zeros(7))
    turn = np.kron(np.eye(2), R)
    np.testing.assert_allclose(targets.v, turn @ six, atol=1e-12)
    np.testing.assert_allclose(targets.f, 10 * turn @ six, atol=1e-12)
    K = turn @ np.diag([1.0, 2.0, 3.0, 100.0, 200.0, 300.0]) @ turn.T
    np.testing.assert_allclose(run.controller.control_law.stiffness, K, atol=1e-9)


def test_a_stiffness_of_the_root_is_turned_into_the_axes_of_the_reference(arm):
    """With the reference `local` the law takes it there: R.T K R."""
    run = Run(
        arm,
        {"cartesian.reference": "local", "cartesian.stiffness_rate": [1e9, 1e9]},
    )
    law = run.controller.control_law
    law.targets.R = R = Rotation.from_rotvec([0.3, 0.1, -0.4]).as_matrix()
    axes = [1.0, 2.0, 3.0, 100.0, 200.0, 300.0]
    run.send("target_stiffness", axes)
    run.controller.update(0.5 * T, Q, np.zeros(7))
    turn = np.kron(np.eye(2), R)
    np.testing.assert_allclose(law.stiffness, turn.T @ np.diag(axes) @ turn, atol=1e-9)


def test_twist_and_wrench_fade_in_silence(arm):
    """Full until half of the timeout, zero from its end; the reference then rests."""
    run = Run(arm, {"cartesian.target_timeout": 0.1})
    run.send("target_twist", [0, 0, 0, 0, 0.05, 0])
    run.send("target_wrench", [0, 0, 0, 0, 0, -2.0])
    targets, seen = run.controller.control_law.targets, []
    run.go(0.2, before=lambda run: seen.append((run.t, targets.v[4], targets.f[5])))
    for t, v, f in seen[1:]:
        share = np.clip((0.1 - (t - T)) / 0.05, 0, 1)
        np.testing.assert_allclose([v, f], [0.05 * share, -2.0 * share], atol=1e-12)
    assert not targets.v.any()
    assert not targets.f.any()


def test_a_twist_leads_the_tool(arm, poses):
    """Sent at 100 Hz, it moves the tool at its velocity."""
    run, count = Run(arm), iter(range(10**6))
    start = poses(Q)["tool"][:3, 3]

    def send(run):
        if next(count) % 5 == 0:
            run.send("target_twist", [0, 0, 0.2, 0, 0.1, 0])

    run.go(1.0, before=send)
    moved = poses(run.q)["tool"][:3, 3] - start
    np.testing.assert_allclose(moved, [0, 0.1, 0], atol=0.01)
    assert run.controller.stopped is None


def test_a_reference_does_not_run_away_from_a_tool_that_stands(arm):
    """A twist moves it at most target_jump from the tool."""
    run = Run(arm, {"cartesian.target_jump": 0.05})
    start = run.controller.control_law.targets.p.copy()
    for k in range(1, 500):
        run.controller.receive("target_twist", k * T, [0, 0, 0, 0, 0.3, 0])
        run.controller.update(k * T, Q, np.zeros(7))
    moved = run.controller.control_law.targets.p - start
    assert 0.045 < moved[1] <= 0.05


def test_stiffness_changes_at_its_rate(arm):
    """By message and by parameter; between, it stays symmetric."""
    run = Run(arm)
    law = run.controller.control_law
    run.send("target_stiffness", [10, 10, 10, 600.0, 400, 400])
    run.go(0.05)
    assert 400 < law.stiffness[3, 3] <= 400 + 2000 * 0.05 + 1e-9
    run.go(0.2)
    assert law.stiffness[3, 3] == 600.0
    run.controller.set_parameters({"cartesian.stiffness": [5.0] * 3 + [300.0] * 3})
    run.go(0.3)
    np.testing.assert_allclose(law.stiffness, np.diag([5.0] * 3 + [300.0] * 3))


BAD = {
    "quaternion": ("target_pose", [0, 0, 0, 0, 0, 0, 1.002], "tool", {},
                   "target_pose: the quaternion has the length 1.002; valid: 1 within"),
    "zero": ("target_pose", [0] * 7, "tool", {}, "length 0; valid"),
    "nan": ("target_pose", [np.nan, 0, 0, 0, 0, 0, 1], "tool", {}, "finite numbers"),
    "jump": ("target_pose", [0, 0, 0.2, 0, 0, 0, 1], "tool", {},
             "0.2 m and .* from the reference; valid: at most 0.1"),
    "turn": ("target_pose", [0, 0, 0, 0, 0, 1, 0], "tool", {}, "m and 3.14.* rad from"),
    "frame": ("target_twist", [0] * 6, "tol", {}, "frame_id: .*did you mean 'tool'"),
    "old": ("target_wrench", [0] * 6, "", {"stamp": 5.0, "clock": 6.0},
            "the stamp is 1.000 s old; valid: at most 0.5 s"),
    "ahead": ("target_wrench", [0] * 6, "", {"stamp": 7.0, "clock": 6.0}, "s ahead"),
    "infinite": ("target_twist", [np.inf] + [0] * 5, "", {}, "finite numbers"),
    "too large": ("target_wrench", [0] * 5 + [-2e7], "", {}, "from -1e.07 to 1e.07"),
    "negative": ("target_stiffness", [-1.0] + [0] * 5, "", {}, "from 0 to"),
    "size": ("target_stiffness", [1.0] * 5, "", {}, "shape .5,.; valid: .6,."),
    "words": ("target_twist", ["x"] * 6, "", {}, "target_twist: valid: 6 numbers"),
    "digits": ("target_twist", ["1"] * 6, "", {}, "target_twist: valid: 6 numbers"),
    "huge": ("target_twist", [10**400] * 6, "", {}, "target_twist: valid: 6 numbers"),
    "topic": ("target_push", [0] * 6, "", {}, "topic of mode cartesian"),
    "stiff": ("target_stiffness", [1e5] * 6, "", {"stamp": 5.0, "clock": 5.0},
              "the tool is unstable"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_bad_target_is_refused_and_changes_nothing(arm, what):
    """The sentence says what would be valid; the reference stays as it was."""
    topic, values, frame, times, message = BAD[what]
    run = Run(arm)
    run.go(0.3)  # the period of the states is known
    targets = run.controller.control_law.targets
    before = targets.R.copy(), targets.p.copy(), run.controller.control_law._goal
    heard = targets.received, dict(targets._stamps)
    with pytest.raises(dyn.DynError, match=message):
        run.send(topic, values, frame, **times)
    after = targets.R, targets.p, run.controller.control_law._goal
    assert (targets.received, dict(targets._stamps)) == heard
    assert all((x == y).all() for x, y in zip(before, after, strict=True))
    run.go(0.02)
    assert run.controller.stopped is None


def test_messages_out_of_order_are_refused(arm):
    """A stamp before the last one of its topic; other topics do not count."""
    run = Run(arm)
    run.send("target_twist", [0] * 6, stamp=5.0, clock=5.0)
    run.send("target_wrench", [0] * 6, stamp=4.9, clock=5.0)
    with pytest.raises(TargetError, match=r"0\.100 s earlier than the last one"):
        run.send("target_twist", [0] * 6, stamp=4.9, clock=5.0)


def test_no_target_is_followed_while_stopped_disabled_or_before_a_state(arm):
    """Each is refused, and after a reset the pose of that time is held."""
    run = Run(arm)
    run.controller.enabled = False
    with pytest.raises(TargetError, match="disabled; valid: enable"):
        run.send("target_twist", [0] * 6)
    run.controller.enabled = True
    run.controller.estop(run.t, "door open")
    with pytest.raises(TargetError, match=r"stopped: .*door open.*reset_stop"):
        run.send("target_twist", [0] * 6)
    run.controller.reset_stop()
    with pytest.raises(TargetError, match="before the law acts"):
        run.send("target_twist", [0] * 6)
    run.go(2 * T)
    run.send("target_twist", [0] * 6)


@pytest.mark.parametrize("kind", ["zero", "ramp", "hold"])
def test_stops_act_as_in_joint_modes(arm, poses, kind):
    """Zero is zero, a ramp ends at zero, and hold keeps the reference at rest."""
    run = Run(arm, rules={"on_estop": kind})
    run.send("target_pose", _seven(poses(Q)["tool"], (0.0, 0.03, 0.0)))
    run.send("target_twist", [0, 0, 0, 0, 0.1, 0])
    run.go(0.02)
    run.controller.estop(run.t)
    place = run.controller.control_law.targets.p.copy()
    run.go(0.1)
    assert (run.controller.control_law.targets.p == place).all()
    assert run.tau.any() == (kind != "zero")
    if kind == "hold":
        run.go(1.5)
        np.testing.assert_allclose(poses(run.q)["tool"][:3, 3], place, atol=5e-3)


def test_the_tool_speed_is_bounded_by_the_envelope(arm, poses):
    """Without envelope.frame the bound is that of the mode's tool."""
    run = Run(arm, {"cartesian.stiffness": [20.0] * 3 + [2000.0] * 3},
              bounds=Bounds(tool_speed=0.1))  # fmt: skip
    run.send("target_pose", _seven(poses(Q)["tool"], (0.0, 0.09, 0.0)))
    run.go(0.5)
    assert "tool speed is" in run.controller.stopped.reason


def test_silence_of_the_states_is_zero_effort(arm):
    """As in each mode; the pose at the return of the states is held."""
    run = Run(arm)
    assert not run.controller.watch(run.t + 0.2).any()
    run.controller.update(run.t + 0.3, Q + 0.01, np.zeros(7))
    tau = run.controller.update(run.t + 0.302, Q + 0.01, np.zeros(7))
    weight = dyn.solver("gravity").build(arm)(Q + 0.01)
    np.testing.assert_allclose(tau, weight, atol=1e-9)


@pytest.mark.parametrize("law", ["cartesian_impedance", "operational_space"])
@pytest.mark.parametrize("axes", ["aligned", "local"])
def test_the_law_is_the_solver_with_these_inputs(arm, poses, law, axes):
    """Either solver, in either axes, by name."""
    run = Run(arm, {"cartesian.reference": axes}, law_solver=law)
    assert run.controller.solver_used == law
    run.send("target_pose", [0.01, 0.02, 0, 0, 0, 0, 1], "tool")
    run.send("target_wrench", [0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    tau = run.controller.update(T, Q, np.full(7, 0.05))
    program = dyn.solver(law).build(
        arm, frame="tool", reference=axes, joint_springs=True,
        inputs=("f_ref", "q_rest", "rest_stiffness", "rest_damping"),
    )  # fmt: skip
    pose = poses(Q)["tool"]
    R = pose[:3, :3]
    turn = np.kron(np.eye(2), R.T if axes == "local" else np.eye(3))
    wrench = turn @ [0.1, 0.2, 0.3, 1.0, 2.0, 3.0]
    right = program(
        Q, np.full(7, 0.05), _seven(pose, R @ [0.01, 0.02, 0]),
        np.diag([10.0] * 3 + [400.0] * 3), wrench, Q, np.full(7, 2.0), np.full(7, 0.5),
    )  # fmt: skip
    np.testing.assert_allclose(tau, right, atol=1e-9)


def test_a_shadow_computes_the_law_again(arm):
    """On another engine it agrees; another law disagrees, and stops; itself: refused."""
    same = Run(arm, shadow=ShadowSettings("cartesian_impedance", engine="graph"))
    same.go(0.02)
    assert same.controller.stopped is None
    other = Run(arm, shadow=ShadowSettings("operational_space"))
    other.q[1] += 0.01
    other.go(0.02)
    assert "by the shadow 'operational_space'" in other.controller.stopped.reason
    with pytest.raises(dyn.SettingError, match="the shadow is the law itself"):
        Run(arm, shadow=ShadowSettings("cartesian_impedance"))


WRONG = {
    "no link": ({"cartesian.frame": ""}, "cartesian.frame is ''; valid: link1"),
    "root": ({"cartesian.frame": "link0"}, "is 'link0'; valid: link1"),
    "axes": ({"cartesian.reference": "world"}, "'world'; valid: aligned, local"),
    "five": ({"cartesian.stiffness": [1.0] * 5}, "5 numbers; valid: 6 or 36"),
    "sign": ({"cartesian.stiffness": [-1.0] + [1.0] * 5}, "eigenvalue -1; valid: none"),
    "skew": ({"cartesian.stiffness": [1.0, 2.0] + [1.0] * 34}, "is not symmetric"),
    "ratio": ({"cartesian.ratio": [1.0, 2.0]}, "2 numbers; valid: one, or 6"),
    "rest": ({"cartesian.rest_damping": [1.0, 2.0]}, "2 numbers; valid: one, or 7"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_parameters_are_refused(arm, what):
    """At the start and later; then nothing has changed."""
    parameters, message = WRONG[what]
    with pytest.raises(dyn.SettingError, match=message):
        Run(arm, parameters)


def test_a_law_of_another_problem_is_refused(arm):
    """The error lists the laws that there are."""
    with pytest.raises(dyn.SignatureError, match="valid: cartesian_impedance"):
        Run(arm, law_solver="jacobian")


def test_the_mode_is_offered_with_its_topics():
    """Four targets and a sensor, its own slot, exported."""
    mode = dyn.default_registry().modes()["cartesian"]
    assert isinstance(mode, ControlMode)
    assert (mode.slot, mode.exportable) == ("cartesian_control", True)
    assert len(mode.topics) == 5


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_no_random_target_makes_an_effort_that_is_not_finite(arm):
    """Numbers of any size, NaN and infinity, in any order; the reference is finite.

    Nothing overflows on the way, and the integral of the wrench stays within its limit.
    """
    sensor = {"cartesian.wrench_gain": [0.5] * 6, "cartesian.tare": False,
              "cartesian.sensor_link": "flange"}  # fmt: skip
    rng, run = np.random.default_rng(5), Run(arm, sensor, bounds=Bounds())
    kinds = {"target_pose": 7, "target_twist": 6, "target_wrench": 6,
             "target_stiffness": 6, "sensor_wrench": 6}  # fmt: skip
    refused = 0
    for k in range(1, 1500):
        topic = rng.choice([*kinds])
        size = 10.0 ** rng.choice([*range(-3, 9), 150, 307])
        values = rng.uniform(-3, 3, kinds[topic]) * size
        values[rng.integers(len(values))] = rng.choice(
            [0.0, 1.0, np.nan, np.inf, 1e300]
        )
        try:
            frame = rng.choice(["", "tool", "link3", "none"])
            run.controller.receive(topic, k * T, values, str(frame))
        except dyn.DynError:
            refused += 1
        tau = run.controller.update(k * T, Q, np.zeros(7))
        assert np.isfinite(tau).all()
        assert (np.abs(tau) <= run.controller.limit).all()
        limit = run.controller.parameters["cartesian.wrench_limit"]
        assert (np.abs(run.controller.control_law.wrench.integral) <= limit).all()
        if run.controller.stopped is not None:
            run.controller.reset_stop()
    assert 300 < refused < 1500
    assert np.isfinite(run.controller.control_law.targets.p).all()


def test_a_task_that_joints_cannot_reach_is_named():
    """An arm of five joints: at configure in a note, at begin by its direction."""
    arm = dyn.load("arm7").lock({"joint3": 0.0, "joint5": 0.0})
    controller = Controller(
        arm, mode="cartesian", parameters={"cartesian.frame": "tool"},
        rules=Rules(good_samples=1),
    )  # fmt: skip
    (note,) = controller.control_law.notes
    assert "move 'tool' in 5 of 6 directions" in note
    q = np.array([0.3, -0.4, -1.9, 1.5, 0.2])
    controller.update(0.0, q, np.zeros(5))
    status = controller.control_law.status
    axes = [float(x) for x in status.split("(")[1].split(")")[0].split(",")]
    verb = "turn about" if "turn about" in status else "move along"
    J = dyn.solver("jacobian").build(arm, frame="tool", reference="local")(q)
    unit = np.r_[axes, 0, 0, 0] if verb == "turn about" else np.r_[0, 0, 0, axes]
    # The joints cannot do this motion alone: what is left is most of it.
    scale = np.repeat([0.1, 1.0], 3)
    wanted = scale * unit
    left = (
        wanted
        - (scale[:, None] * J)
        @ np.linalg.lstsq(scale[:, None] * J, wanted, rcond=None)[0]
    )
    assert np.linalg.norm(left) > 0.5 * np.linalg.norm(wanted)
    whole = Controller(
        dyn.load("arm7"), mode="cartesian", parameters={"cartesian.frame": "tool"}
    )
    assert not whole.control_law.notes


def test_the_tool_on_a_driven_place_has_its_velocity(arm):
    """The velocity that contact speeds are measured by, against differences of poses."""
    driven = arm.drive("joint1", lambda t: (None, (0.5 * sin(3 * t), t * t, 0.0)))
    free = {"state_bounds": None, "bounds": None}
    controller = Controller(driven, mode="cartesian", parameters=SOFT, **free)
    qd, t, h = np.linspace(-0.4, 0.5, 7), 0.3, 1e-6
    controller.update(t, Q, qd)
    places = dyn.solver("forward_kinematics").build(
        driven, frames=["tool"], inputs=["time"]
    )
    ends = [places(Q + s * h * qd, t + s * h)[0, :3, 3] for s in (1, -1)]
    wanted = (ends[0] - ends[1]) / (2 * h)
    np.testing.assert_allclose(controller.control_law.velocity()[3:], wanted, atol=1e-7)


def test_a_twist_of_whole_turns_between_two_states_moves_nothing(arm):
    """It would end where it began, and the velocity would act on the dampers."""
    controller = Controller(
        arm, mode="cartesian", parameters={"cartesian.frame": "tool"},
        rules=Rules(good_samples=1),
    )  # fmt: skip
    q = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8])
    step = 0.01
    controller.update(0.0, q, np.zeros(7))
    controller.receive("target_twist", 0.0, [0, 0, 2 * np.pi / step, 0, 0, 0])
    controller.update(step, q, np.zeros(7))
    assert not controller.control_law.targets.v.any()


def test_the_pose_follows_the_matrix_and_the_position(arm):
    """Its quaternion is that of R, after twists and when R is replaced."""
    run, way = Run(arm), [0.9, -0.5, 0.3]
    targets = run.controller.control_law.targets
    before = Rotation.from_matrix(targets.R)
    run.send("target_twist", [*way, 0, 0.02, 0])
    run.go(10 * T, before=lambda run: run.send("target_twist", [*way, 0, 0.02, 0]))
    turned = Rotation.from_rotvec(10 * T * np.array(way)) * before
    np.testing.assert_allclose(targets.R, turned.as_matrix(), atol=1e-12)
    for R in (targets.R, Rotation.from_rotvec([0.3, 0.1, -0.4]).as_matrix()):
        targets.R = R
        made = targets.pose
        assert made[6] >= 0
        np.testing.assert_array_equal(made[:3], targets.p)
        np.testing.assert_allclose(
            Rotation.from_quat(made[3:]).as_matrix(), R, atol=1e-14
        )


@pytest.mark.parametrize("angle", [0.05, 0.15, 2.0, np.pi])
def test_a_turn_beyond_the_jump_is_refused(arm, poses, angle):
    """The sentence names its angle; a smaller one is followed."""
    run = Run(arm)
    axis = np.array([2.0, -1.0, 2.0]) / 3
    turn = Rotation.from_rotvec(angle * axis).as_quat()
    if angle < 0.1:
        run.send("target_pose", [0, 0, 0, *turn], "tool")
        R = poses(Q)["tool"][:3, :3] @ Rotation.from_quat(turn).as_matrix()
        np.testing.assert_allclose(run.controller.control_law.targets.R, R, atol=1e-12)
        return
    with pytest.raises(TargetError, match=f"and {angle:.6g} rad from the reference"):
        run.send("target_pose", [0, 0, 0, *turn], "tool")


def test_a_reference_does_not_turn_away_from_a_tool_that_stands(arm):
    """A twist turns it at most by target_jump from the tool."""
    run = Run(arm, {"cartesian.target_jump": 0.05})
    targets = run.controller.control_law.targets
    start = Rotation.from_matrix(targets.R)
    for k in range(1, 500):
        run.controller.receive("target_twist", k * T, [0, 0.3, 0, 0, 0, 0])
        run.controller.update(k * T, Q, np.zeros(7))
    angle = (Rotation.from_matrix(targets.R) * start.inv()).as_rotvec()
    assert 0.045 < angle[1] <= 0.05


@pytest.mark.parametrize("towards", [1, -1])
def test_a_reference_beyond_the_jump_moves_towards_the_tool_alone(arm, poses, towards):
    """The tool was pushed away: a twist brings the reference nearer, not farther."""
    run = Run(arm, {"cartesian.target_jump": 0.05})
    targets, pushed = run.controller.control_law.targets, Q + 0.01
    before = targets.p.copy()
    # Slowly: a jump of the state would reset the controller.
    for k in range(1, 11):
        run.controller.update(k * T, Q + k * (pushed - Q), np.zeros(7))
    way = poses(Q + 10 * (pushed - Q))["tool"][:3, 3] - before
    assert np.linalg.norm(way) > 0.06
    run.controller.receive("target_twist", 10 * T, [0, 0, 0, *(0.1 * towards * way)])
    run.controller.update(11 * T, Q + 10 * (pushed - Q), np.zeros(7))
    wanted = 0.1 * T * way if towards > 0 else np.zeros(3)
    np.testing.assert_allclose(targets.p - before, wanted, atol=1e-12)
    assert targets.v.any() == (towards > 0)
