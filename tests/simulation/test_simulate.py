"""The simulator: physics over time, and what it does with bad commands."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import Port, Signature, TracedSolver, Vector
from dyn_core.commands.sim import recorded_forces
from dyn_core.contact import solve
from dyn_core.control import Controller
from dyn_core.errors import ModelWarning, StateError
from dyn_core.recordings import MotionRecord, run_record
from dyn_core.recordings.motion import named_coordinates
from dyn_core.simulation.simulator import Simulator, simulate
from dyn_core.testing import random_model
from dyn_plugins.steps.integration import STOP_RATE, stop_force


@pytest.fixture
def arm(shipped):
    """Return the 7-joint arm."""
    return shipped["arm7"]


def test_energy_is_kept_without_friction():
    """RK4 at a millisecond keeps the energy of a free swing."""
    model = dyn.load_urdf(dyn.robots.path("two_link"), gravity=(0, -9.81, 0))
    run = simulate(model, duration=1.0, period=1e-3, step="rk4", q0=[1.0, 0.5],
                   joint_friction=False, limit_stops=False)  # fmt: skip
    assert np.ptp(run.energy) < 1e-7 * np.abs(run.energy).max()
    assert np.ptp(run.q) > 0.5


def test_friction_takes_energy(shipped):
    """With damping and dry friction the energy never grows."""
    run = simulate(shipped["planar3"], duration=1.0, q0=[1.0, 0.5, 0.2])
    assert run.energy[-1] < run.energy[0] - 0.1
    assert np.diff(run.energy).max() < 1e-2


def test_stiff_friction_is_stable(shipped):
    """Damping far above inertia/period does not blow up: it is taken implicitly."""
    import dataclasses

    arm = shipped["arm7"]
    build = arm.build
    joints = tuple(dataclasses.replace(j, damping=200.0, friction=5.0)
                   for j in build.description.joints)  # fmt: skip
    stiff = arm.rebuilt(
        description=dataclasses.replace(build.description, joints=joints)
    )
    run = simulate(stiff, duration=1.0, period=0.005)
    assert np.abs(run.qd).max() < 3
    assert np.abs(run.qd[-1]).max() < 1


def test_explicit_dry_friction_lets_a_robot_creep_in_long_steps(shipped):
    """The stability limit of rk4 lies between both periods; semi-implicit steps hold.

    Exactly at rest, rounding would be all that could begin to creep; engines differ.
    """
    q0 = [0.3, -0.4, 0.1, -2.0, 0.0, 1.6, 0.0]
    ways = [("semi_implicit_euler", 0.002), ("rk4", 0.002), ("rk4", 0.0005)]
    implicit, long, short = (
        abs(simulate(shipped["arm7"], q0=q0, qd0=[1e-12] * 7, step=step, period=period,
                     compensates_gravity=True).q[-1] - q0).max()
        for step, period in ways
    )  # fmt: skip
    assert max(implicit, short) < 1e-12
    assert 4e-3 < long < 6e-3


def test_the_energy_of_a_free_fall_drifts_with_the_period():
    """By -m g² period duration / 2 in semi-implicit steps; rk4 keeps it."""
    ball = """<robot name="ball"><link name="ball"><inertial><mass value="2"/><inertia
        ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link></robot>"""
    model = dyn.load_urdf(ball, root_joint="floating")
    for step, share in (("semi_implicit_euler", 1.0), ("rk4", 0.0)):
        energy = simulate(model, step=step, period=0.002).energy
        drift = -(model.a_grav.lin[2] ** 2) * 0.002 * 0.998
        assert energy[-1] - energy[0] == pytest.approx(share * drift, abs=1e-10)


def test_limits_stop_the_arm(arm):
    """An arm that falls comes to rest near its limits, not beyond by much."""
    run = simulate(arm, duration=3.0)
    beyond = np.maximum(run.q - arm.upper, arm.lower - run.q).max()
    assert 0 < beyond < 0.15
    free = simulate(arm, duration=3.0, limit_stops=False)
    assert np.maximum(free.q - arm.upper, arm.lower - free.q).max() > 2 * beyond


def test_the_force_of_a_stop_by_hand(shipped):
    """-k (q - limit) - d qd beyond a limit, k = D w², d = 2 D w; else nothing."""
    arm = shipped["two_link"]
    D = [arm.inertia_scale[i][0] for i in arm.bodies]
    upper, lower = arm.upper[0], arm.lower[1]
    force, stiffness, damping = stop_force(arm, [upper + 0.1, 0.0], [2.0, 3.0])
    k, d = D[0] * STOP_RATE**2, 2 * D[0] * STOP_RATE
    np.testing.assert_allclose(force, [-0.1 * k - 2.0 * d, 0.0])
    np.testing.assert_allclose([*stiffness, *damping], [k, 0.0, d, 0.0])
    force, stiffness, damping = stop_force(arm, [0.0, lower - 0.1], [2.0, -3.0])
    k, d = D[1] * STOP_RATE**2, 2 * D[1] * STOP_RATE
    np.testing.assert_allclose(force, [0.0, 0.1 * k + 3.0 * d])
    np.testing.assert_allclose([*stiffness, *damping], [0.0, k, 0.0, d])


@pytest.mark.parametrize(("step", "order"), [("semi_implicit_euler", 1), ("rk4", 4)])
def test_steps_have_their_order(step, order):
    """Halving the step divides the error by 2 to the order, quaternions included."""
    model = random_model(3, size=4, kinds=("floating", "spherical", "revolute", "planar"),
                         mimic=0.0, massless=0.0)  # fmt: skip
    rng = np.random.default_rng(1)
    q0, qd0 = model.random(rng), 0.5 * rng.normal(size=model.nv)
    program = dyn.solver(step).build(model)
    tau = 0.1 * rng.normal(size=model.nv)

    def end(n):
        q, qd = q0, qd0
        for _ in range(n):
            q, qd = program(q, qd, tau, 0.1 / n)
        return q, qd

    q, qd = end(1024 if step != "rk4" else 256)

    def error(n):
        a, b = end(n)
        return np.linalg.norm(model.difference(q, a)) + np.linalg.norm(b - qd)

    coarse, fine = error(8), error(16)
    assert coarse / fine == pytest.approx(2**order, rel=0.25)


def test_commands_age_to_zero(arm):
    """A command older than the timeout is zero effort, counted."""
    robot = Simulator(arm, command_timeout=0.05)
    robot.command(0.0, np.ones(7))
    robot.advance(0.01)
    assert robot.tau.any()
    robot.advance(0.2)
    assert not robot.tau.any()
    assert robot.counters["command stale"] == 1
    assert robot.stale(0.2)


@pytest.mark.parametrize(
    ("tau", "error", "counter"),
    [
        (np.full(7, np.nan), dyn.NonFiniteError, "command not finite"),
        (np.zeros(6), dyn.ShapeError, "command of wrong size"),
    ],
)
def test_bad_commands_change_nothing(arm, tau, error, counter):
    """They raise in words, are counted, and the command before stays."""
    robot = Simulator(arm)
    robot.command(0.0, np.ones(7))
    with pytest.raises(error, match="command"):
        robot.command(0.01, tau)
    np.testing.assert_array_equal(robot.tau, np.ones(7))
    assert robot.counters == {counter: 1}


def test_motors_saturate(arm):
    """Efforts beyond the limits are cut, counted."""
    robot = Simulator(arm)
    robot.command(0.0, np.full(7, 1e6))
    np.testing.assert_array_equal(robot.tau, arm.effort_limit)
    assert robot.counters["command limited"] == 1


def test_pause_and_reset(arm):
    """Paused it stands; reset brings the start back and forgets commands."""
    robot = Simulator(arm)
    robot.command(0.0, np.full(7, 5.0))
    robot.advance(0.0)
    moved = robot.q.copy()
    robot.paused = True
    robot.advance(0.01)
    np.testing.assert_array_equal(robot.q, moved)
    robot.reset()
    np.testing.assert_array_equal(robot.q, robot.q0)
    assert not robot.tau.any()


def test_a_step_that_fails_keeps_the_last_good_state(arm):
    """NaN from a solver pauses the simulation; the state stays finite."""

    class Broken(dyn.authoring.NumpySolver):
        name, signature = "broken", dyn.problems.FORWARD_DYNAMICS

        def solve(self, model, q, qd, tau, f_ext):
            return np.full(7, np.nan)

    robot = Simulator(arm, step="rk4", forward_dynamics=Broken())
    with pytest.raises(dyn.NonFiniteError):
        robot.advance(0.0)
    np.testing.assert_array_equal(robot.q, robot.q0)
    assert robot.paused
    assert robot.counters["step failed"] == 1


@pytest.mark.parametrize("world", [None, {}])
def test_a_period_that_fails_leaves_forces_of_the_last_good_one(shipped, world):
    """The first substep of a failed period is undone: its forces are, too."""
    model, choices = shipped["two_link"], {"substeps": 2, "prescribed": ("joint1",)}
    if world is None:
        robot = Simulator(model, **choices)
    else:
        robot = dyn.ContactSimulator(model, world, **choices)

    def forces():
        if world is None:
            return (robot.effort,)
        return robot.effort, robot.reactions(), robot.last.q, robot.report.t

    robot.advance(0.0)
    before, move, calls = forces(), robot._move, []

    def fails_later(*step):
        calls.append(step)
        if len(calls) == 2:
            raise dyn.NonFiniteError("tau is not finite", "tau")
        return move(*step)

    robot._move = fails_later
    robot.command(0.002, [0.0, 3.0])
    robot.accelerate(0.002, [5.0])
    with pytest.raises(dyn.NonFiniteError):
        robot.advance(0.002)
    for was, now in zip(before, forces(), strict=True):
        np.testing.assert_array_equal(now, was)


@pytest.mark.parametrize("world", [None, {}])
def test_a_reset_ends_the_pause_of_a_failed_step_only(shipped, monkeypatch, world):
    """Else a loop after `reset` would stand without a word; a person's pause remains."""
    model, choices = shipped["two_link"], {"q0": [0.4, -0.9], "engine": "graph"}
    if world is None:
        robot = Simulator(model, **choices)
    else:
        robot = dyn.ContactSimulator(model, world, **choices)

    def fails(*_):
        raise dyn.NonFiniteError("tau is not finite", "tau")

    def fail():
        with monkeypatch.context() as patch:
            patch.setattr(robot, "_move", fails)
            with pytest.raises(dyn.NonFiniteError):
                robot.advance(0.0)
        assert robot.paused and robot.failed

    def moves():
        before = robot.q.copy()
        robot.command(0.0, [1.0, 0.0])
        robot.advance(0.0)
        return not np.array_equal(robot.q, before)

    fail()
    assert not moves()
    robot.reset()
    assert not robot.paused
    assert moves()
    robot.paused = True
    robot.reset()
    assert robot.paused
    robot.paused = False
    fail()
    robot.paused = False
    assert moves()
    robot.paused = True  # of another cause
    robot.reset()
    assert robot.paused
    assert not moves()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"period": 0.0}, "period must be > 0"),
        ({"substeps": 0}, "substeps must be >= 1"),
        ({"q0": np.zeros(3)}, "q0 needs 7 finite numbers"),
        ({"qd0": np.full(7, np.nan)}, "qd0 needs 7 finite numbers"),
    ],
)
def test_bad_settings_are_refused_in_words(arm, settings, message):
    """Each setting error names the setting."""
    with pytest.raises(dyn.SettingError, match=message):
        Simulator(arm, **settings)


def test_floating_robots_fall(shipped):
    """A quadruped in the air falls by g t²/2 and keeps its quaternion."""
    model = shipped["quadruped"]
    run = simulate(model, duration=0.2, joint_friction=False, limit_stops=False)
    fallen = run.q[0, 2] - run.q[-1, 2]
    assert fallen == pytest.approx(0.5 * 9.81 * run.t[-1] ** 2, rel=0.02)
    np.testing.assert_allclose(np.linalg.norm(run.q[:, 3:7], axis=1), 1, atol=1e-12)


def test_a_controller_that_does_not_drive_is_told(arm):
    """Its arm fell without a word; a refusal had no time."""
    start = {"q0": arm.start(), "duration": 0.05}
    wild = Controller(arm, kp=4e8, kd=2000.0)
    with pytest.warns(ModelWarning, match="does not drive: stopped: gains: position"):
        run = simulate(arm, wild, **start)
    assert "does not drive" in run.warnings[-1]
    assert not simulate(arm, Controller(arm, kp=400.0, kd=40.0), **start).warnings
    with pytest.raises(
        StateError, match="refuses the state at t = 0 s: joint 'joint1'"
    ):
        simulate(arm, Controller(arm), q0=arm.start(), qd0=[60.0] + [0.0] * 6)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ([0.0, 90.0, 0.0, 0.0, 0.0, 0.0, 0.0], "is the reference in degrees.* joint2 "),
        ([0.0, 0.0, 0.0, -5.0, 0.0, 0.0, 0.0], "beyond the limits of joint joint4 by"),
        (None, ""),
    ],
)
def test_a_reference_beyond_limits_is_told(shipped, reference, message, recwarn):
    """Also where only one row of it is beyond them."""
    model = shipped["arm7"]

    def law(t, q, qd):
        if t >= 0.004:
            law.reference = model.start() if t < 0.006 or not reference else reference
        return np.zeros(7)

    run = dyn.simulate(model, law, duration=0.01, limit_stops=False)
    sentences = [text for text in run.warnings if "reference" in text]
    assert bool(sentences) == bool(message) and re.search(message, " ".join(sentences))
    assert any("reference" in str(w.message) for w in recwarn) == bool(message)


def test_a_command_of_any_size_is_no_warning_of_numpy(shipped):
    """The sum of its squares overflowed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        simulate(shipped["two_link"], lambda t, q, qd: [1e200, -1e200], duration=0.01)


def test_a_robot_that_falls_out_of_the_picture_is_told_of(shipped):
    """Without a world nothing is below it; what flies without gravity is no fall."""
    model = shipped["quadruped"]
    with pytest.warns(ModelWarning, match="'root_joint' falls freely, by 1.22 m"):
        run = simulate(model, duration=0.5)
    assert "valid: world='floor'" in run.warnings[-1]
    thrown = np.zeros(model.nv)
    thrown[5] = 3.0  # it comes back to where it was
    still = dyn.load("quadruped", gravity=[0.0, 0.0, 0.0])
    lift = np.zeros(model.nv)
    lift[5] = 0.4 * model.mass * 9.81  # it sinks by 0.7 m, as a drone may
    for robot, qd0, law in (
        (model, thrown, None), (still, None, None), (model, None, lambda t, q, qd: lift)
    ):  # fmt: skip
        run = simulate(robot, law, duration=0.5, qd0=qd0)
        assert not any("falls" in x for x in run.warnings)


def test_a_world_in_which_nothing_can_touch_is_told(shipped):
    """A robot without collision shapes fell through the floor without a word."""
    with pytest.warns(ModelWarning, match="no contact is possible: the robot has no"):
        simulate(shipped["arm7"], world="floor", duration=0.01)
    with pytest.warns(ModelWarning, match="leave out all pairs of shapes"):
        dog = dyn.load("quadruped", root_joint="fixed")
        world = dyn.World(groups={"all": [*dog.frame_names, "ground"]})
        simulate(dog, world=world, duration=0.01)
    for world in (dyn.World(contacts=False), None):
        assert not simulate(shipped["arm7"], world=world, duration=0.01).warnings


def test_given_accelerations_replace_the_step():
    """Prescribed joints report what they take; another step is refused in words."""
    model = dyn.load_urdf(dyn.robots.path("arm7"))
    robot = Simulator(model, prescribed=("joint2",))
    robot.accelerate(0.0, [0.5])
    for k in range(20):
        robot.advance(k * robot.period)
    assert abs(robot.effort[1]) > 1.0
    np.testing.assert_array_equal(np.delete(robot.effort, 1), 0.0)
    with pytest.raises(dyn.SettingError, match="semi_implicit_euler"):
        Simulator(model, prescribed=("joint2",), step="rk4")


def test_runs_show_themselves_in_a_few_lines(arm):
    """A Recording and a ContactSolution print what they are, not their arrays."""
    shown = repr(simulate(arm, duration=0.01, progress=False))
    assert shown.startswith("<Recording of ")
    assert "energy" in shown
    assert len(shown.splitlines()) <= 5
    problem = dyn.ConstraintProblem(["contact"], np.eye(3), [-1.0, 2.0, 0.7], mu=0.5)
    shown = repr(solve(problem, "admm"))
    assert shown.startswith("<ContactSolution by admm: converged after ")
    assert "impulses [" in shown
    assert len(shown.splitlines()) <= 5


def test_a_step_too_long_names_time_and_joint():
    """What becomes NaN ends in an error with the time and the joint."""
    model = dyn.load_urdf(dyn.robots.path("two_link"), gravity=(0, -9.81, 0))
    with pytest.raises(dyn.NonFiniteError, match=r"t = \d.* s: .* at joint \w+"):
        dyn.simulate(model, duration=400.0, period=4.0, step="rk4", q0=[1.0, 0.5],
                     joint_friction=False, limit_stops=False, engine="graph")  # fmt: skip


def test_a_recorded_motion_is_printed_in_a_line(shipped):
    """Its arrays filled the screen."""
    run = simulate(shipped["two_link"], duration=0.004, engine="graph")
    assert repr(run.motion) == "<MotionRecord of 2 rows: q, qd, tau, q_ref>"


def test_a_law_that_writes_into_its_arguments_moves_no_robot(shipped):
    """`q -= goal` in a law moved the simulated robot itself."""

    def writing(t, q, qd):
        q -= 0.5
        qd[:] = 0.0
        return -10.0 * q

    def reading(t, q, qd):
        return -10.0 * (q - 0.5)

    runs = [
        simulate(shipped["two_link"], law, duration=0.02, engine="graph")
        for law in (writing, reading)
    ]
    np.testing.assert_array_equal(runs[0].q, runs[1].q)


def test_a_run_names_the_joints_whose_stops_acted(shipped):
    """Energy that a stop takes looked like an error of the integration."""
    start = {"q0": [0.0, 2.7], "qd0": [0.0, 4.0], "engine": "graph"}
    run = simulate(shipped["two_link"], duration=0.1, progress=False, **start)
    stopped = shipped["two_link"].joint_names[1]
    assert run.motion.beyond_limits == (stopped,)
    assert f"stops took and gave energy: {stopped}" in repr(run)
    still = simulate(shipped["two_link"], duration=0.01, engine="graph")
    assert "stops" not in repr(still)


def test_dry_friction_that_does_not_hold_is_reported():
    """By rk4, whose friction is explicit, with a step in which it holds."""
    model = dyn.load("arm7")
    ask = {"q0": model.start(), "engine": "graph"}
    said = "dry friction may not hold joint joint. at rest in rk4 steps of 0.002 s"
    with pytest.warns(ModelWarning, match=said):
        run = simulate(model, duration=0.004, step="rk4", progress=False, **ask)
    (warning,) = run.warnings
    substeps = int(re.search(r"substeps=(\d+)", warning)[1])
    assert 1 < substeps < 20
    for better in ({"substeps": substeps}, {"step": "semi_implicit_euler"},
                   {"joint_friction": False}):  # fmt: skip
        choices = {"step": "rk4", "period": 0.002, **ask, **better}
        assert Simulator(model, **choices).warnings == ()


def test_a_start_deep_in_the_floor_is_reported():
    """The Recording says which contact overlaps, and by how much."""
    ball = """<robot name="ball"><link name="ball"><inertial><mass value="1"/>
    <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.1"/></geometry></collision></link></robot>"""
    model = dyn.load_urdf(ball, root_joint="floating")

    def run(height):
        q0 = [0.0, 0.0, height, 0.0, 0.0, 0.0, 1.0]
        return dyn.simulate(model, world={}, q0=q0, duration=0.004, engine="graph")

    (warning,) = run(-0.95).warnings
    assert "overlaps by 1.05 m at ball" in warning
    assert warning in repr(run(-0.95))
    assert run(0.1).warnings == ()


def test_a_start_within_another_link_says_how_to_leave_the_pair_out():
    """The sentence is of links alone, as the floor cannot be denied for one start."""
    mass = """<inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0"
    ixz="0" iyz="0"/></inertial>"""
    form = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    links = "".join(
        f'<link name="{name}">{mass}{form}</link>' for name in ("hip", "thigh", "shin")
    )
    joints = "".join(
        f"""<joint name="{parent}_{child}" type="revolute"><parent link="{parent}"/>
        <child link="{child}"/><axis xyz="0 0 1"/>
        <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>"""
        for parent, child in (("hip", "thigh"), ("thigh", "shin"))
    )
    text = f'<robot name="leg">{links}{joints}</robot>'

    def warnings(**options):
        model = dyn.load_urdf(text, **options)
        return dyn.simulate(model, world={}, duration=0.004, engine="graph").warnings

    denied = "pairs: {deny: [[shin, hip]]} in the sidecar"
    (warning,) = (x for x in warnings() if "overlaps" in x)
    other = denied.replace("shin, hip", "hip, shin")
    assert warning.endswith((denied, other))
    sidecar = {"pairs": {"deny": [["hip", "shin"]]}}
    assert not any("hip" in x for x in warnings(extras=sidecar))


def test_all_links_that_overlap_at_the_start_are_named():
    """One pair a run was named, so that a robot took as many runs as it has pairs."""
    mass = """<inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0"
    ixz="0" iyz="0"/></inertial>"""
    form = '<collision><geometry><sphere radius="{}"/></geometry></collision>'
    names = [f"link{k}" for k in range(7)]
    links = "".join(
        f'<link name="{name}">{mass}{form.format(0.1 + 0.01 * k)}</link>'
        for k, name in enumerate(names)
    )
    joints = "".join(
        f"""<joint name="j{k}" type="revolute"><parent link="link{k}"/>
        <child link="link{k + 1}"/><axis xyz="0 0 1"/>
        <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>"""
        for k in range(6)
    )
    text = f'<robot name="worm">{links}{joints}</robot>'

    def warning(**options):
        world = {"half_spaces": [], **options}
        sim = dyn.ContactSimulator(dyn.load_urdf(text), world=world, engine="graph")
        return next((x for x in sim.warnings if "overlaps" in x), "")

    said = warning()
    assert "by 0.3 m at link4/link6: " in said
    assert "deny: [[link4, link6], [" in said
    assert said.count("[link") == 12
    cure = "World(groups={'robot': model.frame_names}) leaves out all 15 pairs"
    assert f": {cure} of the robot with itself, or pairs: {{deny: " in said
    assert warning(groups={"robot": names}) == ""


def test_a_start_with_a_zero_quaternion_is_refused():
    """No scaling makes it one."""
    model = dyn.load_urdf(dyn.robots.path("quadruped"), root_joint="floating")
    with pytest.raises(
        dyn.SettingError, match="quaternion of joint root_joint is zero"
    ):
        dyn.simulate(model, q0=np.zeros(model.nq))


def test_limits_act_unless_they_are_left_out(arm):
    """Beyond a limit, at rest, a joint is pushed back."""
    start = np.where(np.arange(7) == 3, arm.upper + 0.05, 0.0)
    pushed, free = (
        Simulator(arm, q0=start, engine="graph", **choices)
        for choices in ({}, {"limit_stops": False})
    )
    for robot in (pushed, free):
        robot.advance(0.0)
    assert pushed.qd[3] < free.qd[3] - 0.1


def test_brakes_hold_a_robot_until_its_first_command(shipped):
    """Then it falls as any other; brakes do not come back."""
    robot = dyn.Simulator(shipped["two_link"], engine="graph", q0=[0.4, -0.9])
    robot.braked = True
    start = robot.q.copy()
    for k in range(5):
        robot.advance(robot.period * k)
    np.testing.assert_array_equal(robot.q, start)
    robot.command(5 * robot.period, [1.0, 0.0])
    for k in range(5, 200):
        robot.advance(robot.period * k)
    assert np.abs(robot.q - start).max() > 1e-3
    assert robot.counters["command stale"] == 1


def test_a_row_has_the_forces_of_its_period():
    """Also the first one in which the last command is too old."""
    commands = iter([[0.5, 0.0]])
    law = SimpleNamespace(update=lambda t, q, qd: next(commands, None))
    run = dyn.simulate(
        dyn.load("cart_pole"), law, duration=0.2, command_timeout=0.1, period=0.01
    )
    np.testing.assert_array_equal(run.tau, run.steps.effort)
    assert run.tau[10, 0] == 0.5 and run.tau[11, 0] == 0.0


@pytest.mark.parametrize("contacts", [False, True])
def test_prescribed_accelerations_are_in_the_order_of_the_model(contacts):
    """With contacts they went by the order of the names: the wrong joint moved."""
    model, names = dyn.load("arm7"), ["joint3", "joint1"]
    settings = {"period": 1e-3, "prescribed": names}
    if contacts:
        plant = dyn.ContactSimulator(model, {"contacts": False}, **settings)
    else:
        plant = Simulator(model, **settings)
    assert plant.prescribed == ("joint1", "joint3")
    plant.accelerate(0.0, [1.0, 3.0])
    plant.advance(0.0)
    np.testing.assert_allclose(plant.qd[[0, 2]], [1e-3, 3e-3], rtol=1e-4)


@pytest.mark.parametrize(
    "settings", [{"compensates_gravity": True}, {"prescribed": ["joint2", "joint4"]}]
)
def test_recorded_accelerations_have_all_forces(settings):
    """Of a weight that the robot compensates itself, and of prescribed joints."""
    model = dyn.load("arm7").without_friction()
    run = dyn.simulate(model, duration=0.02, period=1e-3, substeps=2, **settings)
    qdd = run_record(run, forward_dynamics="aba").qdd
    moved = np.diff(run.qd, axis=0) / 1e-3
    np.testing.assert_allclose(qdd[:-1], moved, atol=0.01 * np.abs(moved).max() + 1e-9)


def test_with_a_time_that_is_no_number_every_command_is_stale():
    """An age of NaN would otherwise keep the last effort for ever."""
    sim = dyn.Simulator(dyn.load("two_link"))
    sim.command(0.0, np.array([1.0, 2.0]))
    assert not sim.stale(0.0)
    assert sim.stale(np.nan)
    sim.advance(0.0, np.nan)
    np.testing.assert_array_equal(sim.tau, 0.0)
    assert sim.counters["command stale"] == 1


@pytest.mark.parametrize("qd", [None, [[0.5], [0.6]]])
def test_forces_of_a_recording_start_at_its_first_row(qd):
    """With its velocities, where it has some; each force holds until the next row."""
    t, q, tau = np.array([3.0, 3.1]), np.array([[0.1], [0.2]]), np.array([[1.0], [2.0]])
    qd = None if qd is None else np.array(qd)
    motion = MotionRecord(named_coordinates(["joint"]), t, q, qd, tau=tau)
    drive = recorded_forces(motion, "file", 0.01)
    assert drive.q0 == [0.1]
    assert drive.qd0 == (None if qd is None else [0.5])
    assert [drive.controller(t, None, None) for t in (0.0, 0.09, 0.1)] == [
        1.0,
        1.0,
        2.0,
    ]


def _clocked(name, inputs, outputs, algorithm):
    """Return a Program of two_link with inputs and outputs of its own."""
    kind = Signature(name, inputs, outputs)
    made = TracedSolver(name, kind, algorithm)
    return made.build(dyn.load("two_link"), engine="graph")


def _push(model, t, q, qd):
    return Vector(t - 3 * x for x in qd)


TIME = Port("t", (), "s")
Q = Port("q", ("nq",), "rad | m")
QD = Port("qd", ("nv",), "rad/s | m/s")
TAU = Port("tau", ("nv",), "N·m | N")


def test_a_program_of_time_and_state_is_a_controller():
    """Its inputs are t, q and qd, in this order."""
    damped = _clocked("damped", (TIME, Q, QD), (TAU,), _push)
    run = simulate(dyn.load("two_link"), damped, duration=0.1, period=0.01)
    np.testing.assert_allclose(run.tau, run.t[:, None] - 3 * run.qd, atol=1e-12)


@pytest.mark.parametrize(
    ("program", "inputs"),
    [
        ("gravity", r"q \(2,\)"),
        ("bias", r"q \(2,\), qd \(2,\)"),
        ("rnea", r"q \(2,\), qd \(2,\), qdd \(2,\)"),
        ("gravity_compensation", r"q \(2,\), qd \(2,\), kd \(2,\)"),
        ("computed_torque", r"q \(2,\), qd \(2,\), q_ref"),
        ((TIME, QD, Q), r"t \(\), qd \(2,\), q \(2,\)"),
        ((Q, QD, TIME), r"q \(2,\), qd \(2,\), t \(\)"),
    ],
)
def test_a_program_of_other_inputs_is_no_controller(program, inputs):
    """Said before the run, with its inputs, and how to call it."""
    robot = dyn.load("two_link")
    if isinstance(program, str):
        made = dyn.solver(program).build(robot, engine="graph")
    else:
        made = _clocked("other", program, (TAU,), lambda model, *values: values[1])
    expected = (
        rf"Program .* inputs {inputs}.*; valid: inputs t \(\), q \(2,\), qd \(2,\)"
    )
    steps = []
    with pytest.raises(
        dyn.SettingError, match=expected + r".*lambda t, q, qd: program"
    ):
        simulate(robot, made, duration=0.1, begin=steps.append)
    assert not steps


def test_a_program_of_another_robot_or_output_is_no_controller():
    """A wrong size, or no joint forces."""
    arm, two = dyn.load("arm7"), dyn.load("two_link")
    damped = _clocked("damped", (TIME, Q, QD), (TAU,), _push)
    with pytest.raises(dyn.SettingError, match=r"q \(2,\).*valid: .*q \(7,\)"):
        simulate(arm, damped)
    one = Port("tau", (1,), "N·m")
    lone = _clocked("lone", (TIME, Q, QD), (one,), lambda m, t, q, qd: Vector(qd[:1]))
    with pytest.raises(
        dyn.SettingError, match=r"outputs tau \(1,\).*one output \(2,\)"
    ):
        simulate(two, lone)
