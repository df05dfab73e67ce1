"""A force-torque sensor in mode cartesian: frames and signs, tare, contact, PI law."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import dyn_core as dyn
from dyn_core.control import Controller, Payload, Rules
from dyn_core.control.modes.wrench_control import SAMPLES, ForceTorqueSensor
from dyn_core.control.safety.health import WARN, Health
from dyn_core.errors import TargetError
from dyn_core.model.payload import PayloadInput
from dyn_core.simulation import ContactSimulator

EXAMPLES = Path(__file__).parents[2] / "examples"
Q = np.array([0.3, -0.6, 0.2, -2.2, 0.4, 1.6, 0.8])
TURNED = Q + [0.5, 0.1, -0.4, 0.3, 1.1, -0.9, 0.7]
T = 0.002  # period of the states [s]
OFFSET = np.array([0.3, -0.2, 0.1, 4.0, -3.0, 2.0])
DOWN = np.array([0, 0, 0, 0, 0, -10.0])
NOTHING, STILL = np.zeros(6), np.zeros(7)
SETTINGS = {
    "cartesian.frame": "tool",
    "cartesian.sensor_link": "flange",
    "cartesian.wrench_gain": [0.0] * 5 + [0.5],
    "cartesian.wrench_integral": 4.0,
}


@pytest.fixture(scope="module")
def arm():
    """Return the arm with seven joints; its tool, 0.5 kg, hangs on the flange."""
    return dyn.load("arm7")


@pytest.fixture(scope="module")
def poses(arm):
    """Return a function of q: the poses of all links."""
    return dyn.solver("forward_kinematics").build(arm, frames=list(arm.frame_names))


def _reading(arm, T, push=NOTHING, load=None):
    """Return what a sensor at the flange measures under a push at the tool's origin.

    Typed again, in the axes of the root first: the weight 0.5 kg x 9.81 m/s² downwards
    at the tool's centre of mass, and the push [moment; force].
    """
    flange, tool = (T[arm.frame_names.index(x)] for x in ("flange", "tool"))
    body = arm.frame("tool").inertia
    weights = [(body.m, np.array([*body.h]) / body.m), *([load] if load else [])]
    moment, force = push[:3], push[3:]
    moment = moment + np.cross(tool[:3, 3] - flange[:3, 3], force)
    for m, com in weights:
        pull = np.array([0, 0, -9.81 * m])
        place = tool[:3, 3] + tool[:3, :3] @ com
        moment = moment + np.cross(place - flange[:3, 3], pull)
        force = force + pull
    R = flange[:3, :3]
    return np.concatenate([R.T @ moment, R.T @ force]) + OFFSET


def _tared(arm, links, payload=None):
    sensor = ForceTorqueSensor(arm, "tool", "flange")
    payload = payload or PayloadInput()
    for k in range(SAMPLES):
        sensor.accept(k * T, _reading(arm, links), lambda: links, True, payload)
    return sensor


class Standing:
    """A controller whose robot stands; its sensor feels a push at the tool."""

    def __init__(self, arm, poses, settings=None, tared=True, **more):
        self.arm, self.q, self.t = arm, Q, 0.0
        self.place = poses(Q)
        self.controller = Controller(
            arm, mode="cartesian", parameters=SETTINGS | (settings or {}),
            rules=Rules(good_samples=1), state_bounds=None, bounds=None,
            effort_slew=1e12, **more,
        )  # fmt: skip
        self.law = self.controller.control_law
        self.cycle()
        if tared:
            self.go(SAMPLES * T + T, push=np.zeros(6))
            assert self.law.wrench.sensor.offset is not None

    def cycle(self, push=None, target=None, qd=STILL):
        self.t += T
        if push is not None:
            self.send(_reading(self.arm, self.place, np.asarray(push, float)))
        if target is not None:
            self.controller.receive("target_wrench", self.t, target)
        self.tau = self.controller.update(self.t, self.q, qd)
        return self.law._force

    def go(self, seconds, **each):
        for _ in range(round(seconds / T)):
            force = self.cycle(**each)
        return force

    def send(self, values, frame=""):
        self.controller.receive("sensor_wrench", self.t, values, frame)


@pytest.fixture
def standing(arm, poses):
    """Return a function that makes a Standing."""
    return lambda *args, **more: Standing(arm, poses, *args, **more)


# ---- frames, signs, tare


def test_pressed_on_a_table_with_ten_newtons_the_contact_is_ten_upwards(arm, poses):
    """In the axes of the root, at the tool, whatever the posture of the tare."""
    sensor, T = _tared(arm, poses(Q)), poses(Q)
    up = np.array([0, 0, 0, 0, 0, 10.0])
    sensor.accept(1.0, _reading(arm, T, up), None, True, PayloadInput())
    tool = arm.frame_names.index("tool")
    np.testing.assert_allclose(sensor.contact(T, tool, PayloadInput()), up, atol=1e-9)


def test_the_wrench_is_turned_and_shifted_to_the_tool(arm, poses):
    """A moment and a force, in two postures: with the sign of the arm of the force."""
    tool, nothing = arm.frame_names.index("tool"), PayloadInput()
    push = np.array([0.4, -0.7, 0.2, 5.0, -8.0, 3.0])
    sensor = _tared(arm, poses(Q))
    for q in (Q, TURNED):
        sensor.accept(1.0, _reading(arm, poses(q), push), None, True, nothing)
        seen = sensor.contact(poses(q), tool, nothing)
        np.testing.assert_allclose(seen, push, atol=1e-9)


def test_a_tare_holds_for_a_turned_tool(arm, poses):
    """The weight turns in the sensor's axes; the offset alone is constant."""
    sensor, turned = _tared(arm, poses(Q)), poses(TURNED)
    np.testing.assert_allclose(sensor.offset, OFFSET, atol=1e-12)
    away = _reading(arm, turned) - _reading(arm, poses(Q))
    assert np.linalg.norm(away[3:]) > 3.0  # what a constant tare would leave [N]
    sensor.accept(1.0, _reading(arm, turned), None, True, PayloadInput())
    tool = arm.frame_names.index("tool")
    seen = sensor.contact(turned, tool, PayloadInput())
    np.testing.assert_allclose(seen, np.zeros(6), atol=1e-9)


def test_the_weight_is_that_of_the_joint_forces(arm, poses):
    """J.T w = g without the links behind the sensor - g; with moving links behind."""
    for link, gone in (("flange", ["tool"]), ("link6", ["link6", "link7", "tool"])):
        sensor = ForceTorqueSensor(arm, "tool", link)
        light = arm.with_values({f"{x}.mass": [0.0] for x in gone})
        J = dyn.solver("jacobian").build(arm, frame=link, reference="aligned")(TURNED)
        weights = [dyn.solver("gravity").build(x)(TURNED) for x in (light, arm)]
        pull = J.T @ sensor._weight(poses(TURNED), PayloadInput())
        # Joints behind the sensor carry their own links, which it does not see.
        before = int(link[-1]) if link != "flange" else 7
        np.testing.assert_allclose(
            pull[:before], (weights[0] - weights[1])[:before], atol=1e-9
        )


def test_the_sensor_of_the_simulator_has_the_same_signs(arm, poses):
    """Its reading of an arm at rest, in a turned posture, is weight and no contact."""
    simulator = ContactSimulator(arm, q0=TURNED, period=1e-4, joint_friction=False)
    simulator.command(0.0, dyn.solver("gravity").build(arm)(TURNED))
    simulator.advance(0.0)
    sensor, payload = ForceTorqueSensor(arm, "tool", "flange"), PayloadInput()
    sensor.offset = np.zeros(6)
    sensor.accept(0.0, simulator.wrench("flange"), None, True, payload)
    tool, links = arm.frame_names.index("tool"), poses(TURNED)
    np.testing.assert_allclose(sensor.contact(links, tool, payload), 0.0, atol=1e-6)
    assert np.linalg.norm(simulator.wrench("flange")[3:]) > 4.9


def test_an_attached_payload_counts_as_weight(arm, poses):
    """1.2 kg at the tool, off its origin, in a turned posture: no contact is seen."""
    payload, com = PayloadInput("tool"), (0.02, -0.01, 0.09)
    sensor, turned = _tared(arm, poses(Q), payload), poses(TURNED)
    payload.attach(Payload(1.2, com))
    reading = _reading(arm, turned, load=(1.2, np.array(com)))
    sensor.accept(1.0, reading, None, True, payload)
    seen = sensor.contact(turned, arm.frame_names.index("tool"), payload)
    np.testing.assert_allclose(seen, np.zeros(6), atol=1e-9)


def test_a_tare_needs_rest_and_no_target(standing):
    """A moving tool and a target wrench interrupt it; until its end the law is told."""
    run, nothing = standing(tared=False), np.zeros(6)
    run.go((SAMPLES - 5) * T, push=nothing)
    run.cycle(push=nothing, qd=np.full(7, 0.05))
    run.cycle(push=nothing)
    run.go((SAMPLES - 5) * T, push=nothing)
    for _ in range(2):
        force = run.cycle(push=nothing, target=DOWN)
    assert "tare" in run.law.warnings["sensor"]
    np.testing.assert_allclose(force, DOWN)
    run.go(0.1 + SAMPLES * T, push=nothing)
    assert run.law.warnings == {}
    np.testing.assert_allclose(run.law.wrench.sensor.offset, OFFSET, atol=1e-9)


def test_a_tare_is_repeated_on_request_alone(standing):
    """A restart in contact must not call the contact zero; the parameter does it."""
    run, up = standing(), -DOWN
    run.controller.begin()
    run.go(2 * SAMPLES * T, push=up)
    np.testing.assert_allclose(run.law.wrench.sensor.offset, OFFSET, atol=1e-9)
    run.controller.set_parameters({"cartesian.wrench_integral": 5.0})
    assert run.law.wrench.sensor.offset is not None
    run.controller.set_parameters({"cartesian.tare": False})
    assert run.law.wrench.sensor.offset is not None
    run.controller.set_parameters({"cartesian.tare": True})
    assert run.law.wrench.sensor.offset is None
    run.go(SAMPLES * T + T, push=0 * up)
    np.testing.assert_allclose(run.law.wrench.sensor.offset, OFFSET, atol=1e-9)
    raw = standing({"cartesian.tare": False}, tared=False)
    assert not raw.law.wrench.sensor.offset.any()


# ---- the law


@pytest.mark.parametrize("axes", ["aligned", "local"])
def test_too_little_force_is_raised_and_too_much_lowered(standing, arm, poses, axes):
    """-10 N wanted, 6 N or 14 N measured: by gain and integral, along the axis alone."""
    R = np.eye(3) if axes == "aligned" else poses(Q)[arm.frame_names.index("tool")]
    down = np.kron(np.eye(2), R[:3, :3]) @ DOWN
    for reaction in (6.0, 14.0):
        run = standing({"cartesian.reference": axes})
        run.go(0.1 + T, push=-down, target=down)  # in contact
        np.testing.assert_allclose(run.law._force, DOWN, atol=1e-6)
        force = run.cycle(push=-down * reaction / 10, target=down)
        short = -(10.0 - reaction)
        right = DOWN + [0, 0, 0, 0, 0, 0.5 * short * (1 + 4.0 * T)]
        np.testing.assert_allclose(force, right, atol=1e-6)
        force = run.go(0.1, push=-down * reaction / 10, target=down)
        right = DOWN + [0, 0, 0, 0, 0, 0.5 * short * (1 + 4.0 * (0.1 + T))]
        np.testing.assert_allclose(force, right, atol=1e-6)


def test_the_torque_is_that_of_the_wrench(standing, arm):
    """J.T of what is added, with its sign."""
    J = dyn.solver("jacobian").build(arm, frame="tool", reference="aligned")(Q)
    run, free = standing(), standing()
    for each in (run, free):
        each.go(0.15, push=-0.6 * DOWN, target=DOWN)
    free.controller.set_parameters({"cartesian.wrench_gain": [0.0] * 6})
    free.cycle(push=-0.6 * DOWN, target=DOWN)
    run.cycle(push=-0.6 * DOWN, target=DOWN)
    added = run.law._force - DOWN
    assert added[5] < -2.0
    np.testing.assert_allclose(run.tau - free.tau, J.T @ added, atol=1e-9)


def test_samples_without_a_target_wrench_do_nothing(standing):
    """The torque is that without a sensor, to the last bit."""
    noise = np.random.default_rng(0)
    run, free = standing(), standing(tared=False)
    free.go((SAMPLES + 1) * T)
    for _ in range(20):
        run.cycle(push=20 * noise.normal(size=6))
        free.cycle()
        assert (run.tau == free.tau).all()


def test_a_zero_target_gives_way(standing):
    """A target of 0 N that is sent counts: the axis follows a push."""
    run = standing()
    force = run.go(0.15, push=[0, 0, 0, 0, 0, 6.0], target=0 * DOWN)
    assert force[5] > 3.0
    assert not force[:5].any()


def test_the_correction_ends_with_the_target(standing):
    """Silence: it fades with the target, and the integral is forgotten."""
    run = standing()
    run.go(1.0, push=-0.5 * DOWN, target=DOWN)
    assert run.law.wrench.integral[5] < -5.0
    forces = np.array([run.cycle(push=-0.5 * DOWN)[5] for _ in range(55)])
    assert (np.diff(forces[25:]) >= 0).all()
    assert forces[-1] == 0.0
    assert not run.law.wrench.integral.any()


def test_a_stop_forgets_the_integral(standing):
    """Of each kind that holds; after the reset it begins at zero."""
    for stop in (lambda run: run.controller.estop(run.t),
                 lambda run: run.controller._brake(True)):  # fmt: skip
        run = standing()
        run.go(1.0, push=-0.5 * DOWN, target=DOWN)
        stop(run)
        assert not run.law.wrench.integral.any()
        run.cycle(push=-0.5 * DOWN)
        assert not run.law._force.any()


def test_the_integral_is_bounded_and_waits_for_efforts(standing):
    """Never beyond wrench_limit; at effort limits it shrinks, and does not grow."""
    run = standing({"cartesian.wrench_limit": [1.0] * 3 + [3.0] * 3})
    force = run.go(3.0, push=-0.5 * DOWN, target=DOWN)
    assert run.law.wrench.integral[5] == -3.0
    np.testing.assert_allclose(force[5], -13.0)
    run.go(0.5, push=-1.5 * DOWN, target=DOWN)
    assert run.law.wrench.integral[5] > -3.0 + 0.4 * 0.5 * 5 * 4.0  # no winding up
    joint = int(np.argmax(np.abs(run.tau)))
    limit = {f"joint{joint + 1}": 0.5 * abs(run.tau[joint])}
    weak = standing(effort_limits=limit)
    weak.go(0.5, push=-0.8 * DOWN, target=DOWN)
    assert weak.controller.safety.saturated.any()
    assert weak.law.wrench.integral[5] == 0.0


def _slowest(contact, gain, rate):
    """Return the largest eigenvalue of a sampled loop, with the sensor a cycle late.

    Args:
        contact: Mass [kg], damping [N·s/m] and stiffness [N/m] of tool and contact.
    """
    m, d, k = contact
    A = expm(T * np.array([[0, 1, 0], [-k / m, -d / m, 1 / m], [0, 0, 0]]))
    # x, v, the last force k x, and the integral, which the cycle advances first.
    push = np.array([0, 0, -gain * (1 + rate * T), 1])
    return np.abs(np.linalg.eigvals([
        [*A[0, :2], 0, 0] + A[0, 2] * push,
        [*A[1, :2], 0, 0] + A[1, 2] * push,
        [k, 0, 0, 0],
        [0, 0, -gain * rate * T, 1],
    ])).max()  # fmt: skip


def test_an_integral_that_no_contact_carries_is_refused(standing):
    """At its bound a slow contact is unstable; beyond it there is no stable one."""
    slow = (1.0, 6e6, 1e6)
    assert _slowest(slow, 2.0, 0.99 * 1.5 / T) < 1
    assert _slowest(slow, 2.0, 1.01 * 1.5 / T) > 1
    rng = np.random.default_rng(0)
    w, z = 10 ** rng.uniform(-1, 5, 300), 10 ** rng.uniform(-3, 4, 300)
    gains = 10 ** rng.uniform(-3, 1, 300)
    contacts, rates = np.c_[w**0, 2 * z * w, w * w], (1 + 1 / gains) / T
    pairs = list(zip(contacts, gains, rates, strict=True))
    assert min(_slowest(c, g, 1.01 * r) for c, g, r in pairs) > 1
    assert min(_slowest(c, g, 0.1 * r) for c, g, r in pairs) < 1
    run = standing({"cartesian.wrench_gain": [0.0] * 5 + [2.0]})
    name = "cartesian.wrench_integral"
    run.controller.set_parameters({name: 740.0})
    message = f"{name} is 760; valid: less than 750.* wrench_gain of 2.* each 0.002 s"
    with pytest.raises(dyn.SettingError, match=message):
        run.controller.set_parameters({name: 760.0})
    assert run.controller.parameters[name] == 740.0
    stopped = standing(
        {"cartesian.wrench_gain": [0.0] * 5 + [2.0], name: 760.0}, tared=False
    )
    stopped.go(20 * T)  # the period of the states becomes known
    assert stopped.controller.stopped.cause == "gains"
    assert f"{name} is 760; valid: less than 750" in stopped.controller.stopped.reason
    assert not stopped.tau.any()


# ---- loss of contact and of the sensor


def test_without_contact_the_integral_fades_and_it_is_told(standing):
    """Less than 1 N of 10 N."""
    run = standing()
    run.go(0.5, push=-0.8 * DOWN, target=DOWN)
    before = run.law.wrench.integral[5]
    force = run.cycle(push=-0.05 * DOWN, target=DOWN)
    np.testing.assert_allclose(force, DOWN)
    assert "no contact: force z -0.5 of -10 N" in run.law.warnings["contact"]
    run.go(0.3, push=-0.05 * DOWN, target=DOWN)
    assert 0 <= -run.law.wrench.integral[5] < 0.1 * -before
    run.go(0.02, push=-0.8 * DOWN, target=DOWN)
    assert "contact" not in run.law.warnings


def test_a_tool_without_contact_is_no_faster_than_contact_speed(standing, arm):
    """At it the push is zero, at half of it half; beyond it brakes, by 10 N at most."""
    J = dyn.solver("jacobian").build(arm, frame="tool", reference="aligned")(Q)
    run = standing({"cartesian.contact_speed": [0.1, 0.05]})
    for v, share in (
        (0.0, 1.0),
        (-0.025, 0.5),
        (-0.05, 0.0),
        (-0.08, -0.6),
        (-0.5, -1.0),
        (0.5, 2.0),
    ):
        qd = np.linalg.pinv(J) @ [0, 0, 0, 0, 0, v]
        force = run.cycle(push=np.zeros(6), target=DOWN, qd=qd)
        np.testing.assert_allclose(force, share * DOWN, atol=1e-6)


@pytest.mark.parametrize("axes", ["aligned", "local"])
@pytest.mark.parametrize("step", [T, 0.2])
def test_the_brake_is_the_speed_along_each_axis(standing, arm, poses, axes, step):
    """Of the tool against the reference; in long steps by the mass that moves."""
    settings = {"cartesian.reference": axes, "cartesian.contact_speed": [0.1, 0.15]}
    run = standing(settings, tared=False)
    qd = np.array([0.01, -0.02, 0.03, 0.01, -0.04, 0.02, -0.05])
    run.cycle(qd=qd)
    run.law.targets.v = v_ref = np.array([0.02, -0.03, 0.05, 0.02, -0.01, 0.03])
    R = np.eye(3) if axes == "aligned" else poses(Q)[-1, :3, :3].T
    into = np.kron(np.eye(2), R)
    J = into @ dyn.solver("jacobian").build(arm, frame="tool", reference="aligned")(Q)
    mobility = np.diag(J @ np.linalg.solve(dyn.solver("crba").build(arm)(Q), J.T))
    f = np.array([0.3, -0.2, 0.1, 1.0, -2.0, 3.0])
    bounds = np.repeat(settings["cartesian.contact_speed"], 3)
    speeds = np.maximum(bounds, np.abs(f) * step * mobility)
    assert (speeds > bounds).any() == (step > T)
    wanted = np.clip(np.sign(f) * (J @ qd - into @ v_ref) / speeds, -1, 2)
    assert (np.abs(wanted) < 1).sum() > 3
    np.testing.assert_allclose(run.law.wrench._brake(f, step, into), wanted, atol=1e-9)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("lost", [True, False])
def test_a_tool_that_loses_its_plane_does_not_run_away(polish, arm, lost, monkeypatch):
    """Off the edge: no spring, 10 N, and less than 20 mm in a second; the sensor too."""

    def fall(t, reading):
        if t > 1.2:
            monkeypatch.setattr("_plane_and_arm.STIFFNESS", 0.0)
            monkeypatch.setattr("_plane_and_arm.DAMPING", 0.0)
        return None if lost and t > 1.2 else reading

    controller, rows = polish.polish(arm, change=fall, end=2.2)
    assert controller.stopped is None
    assert rows[1190, 1] == pytest.approx(10.0, rel=0.03)
    assert rows[-1, 1] == 0.0
    assert 0.003 < rows[1190, 4] - rows[-1, 4] < 0.02
    assert ("silent" if lost else "no contact") in str(controller.control_law.warnings)


def test_a_silent_sensor_is_told_and_the_law_goes_on(standing):
    """After target_timeout its part fades to zero within the timeout, without a jump."""
    run = standing()
    run.go(1.0, push=-0.8 * DOWN, target=DOWN)
    forces = np.array([run.cycle(target=DOWN)[5] for _ in range(110)])
    assert forces[0] < -12.0
    np.testing.assert_allclose(forces[-1], -10.0)
    assert np.abs(np.diff(forces)).max() < 0.2
    assert "silent for 0.2" in run.law.warnings["sensor"]
    (condition,) = [
        x for x in Health(run.controller, 1.0).conditions(run.t) if x.key == "sensor"
    ]
    assert condition.level == WARN
    run.go(0.3, push=-0.8 * DOWN, target=DOWN)
    assert run.law.warnings == {}


def test_a_sensor_that_never_sent_is_told_if_it_has_a_topic(standing):
    """Without the parameter there is none, and the target acts as it is."""
    run = standing({"cartesian.wrench_topic": "/wrench"}, tared=False)
    np.testing.assert_allclose(run.cycle(target=DOWN), DOWN)
    assert "has sent nothing yet" in run.law.warnings["sensor"]
    other = standing(tared=False)
    np.testing.assert_allclose(other.cycle(target=DOWN), DOWN)
    assert other.law.warnings == {}


def test_a_sensor_with_the_wrong_sign_adds_nothing(standing):
    """A pull is no contact of a push."""
    run = standing()
    force = run.go(1.0, push=DOWN, target=DOWN)
    np.testing.assert_allclose(force, DOWN)


# ---- what is refused

REFUSED = {
    "nan": ([0, 0, np.nan, 0, 0, 0], "", "sensor_wrench is .* finite numbers"),
    "infinite": ([0, 0, 0, 0, 0, -np.inf], "", "finite numbers"),
    "size": ([0.0] * 5, "", "shape .5,.; valid: .6,."),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_samples_change_nothing(standing, what):
    """The last one acts until it is too old."""
    values, frame, message = REFUSED[what]
    run = standing()
    run.go(0.15, push=-0.8 * DOWN, target=DOWN)
    seen = run.law.wrench.sensor.seen
    with pytest.raises(TargetError, match=message):
        run.send(values, frame)
    assert run.law.wrench.sensor.seen == seen
    for _ in range(100):
        with pytest.raises(TargetError):
            run.send(values, frame)
        assert np.isfinite(run.cycle(target=DOWN)).all()
    assert "silent" in run.law.warnings["sensor"]


def test_a_refused_sample_does_not_name_the_link_of_the_sensor(standing):
    """All samples of the right link were refused after one with NaN of another."""
    run = standing({"cartesian.sensor_link": ""}, tared=False)
    with pytest.raises(TargetError, match="finite numbers"):
        run.send([np.nan] * 6, "link7")
    run.send([0.0] * 6, "flange")
    assert run.law.wrench.sensor.link == "flange"


def test_old_samples_and_foreign_frames_are_refused(standing):
    """By the stamp; by the frame, where the messages name the link."""
    run = standing({"cartesian.sensor_link": ""}, tared=False)
    with pytest.raises(TargetError, match="stamp is 1.000 s old"):
        run.controller.receive(
            "sensor_wrench", run.t, [0] * 6, "flange", stamp=5.0, clock=6.0
        )
    for frame in ("", "camera", "link0"):
        fresh = standing({"cartesian.sensor_link": ""}, tared=False)
        with pytest.raises(TargetError, match=f"frame_id is '{frame}'.*'flange'"):
            fresh.send([0] * 6, frame)
    run.send([0] * 6, "flange")
    with pytest.raises(TargetError, match="frame_id is 'link7'; valid: flange"):
        run.send([0] * 6, "link7")
    for link in ("link0", "nothing"):
        with pytest.raises(dyn.SettingError, match=f"is '{link}'; .*tool, flange"):
            standing({"cartesian.sensor_link": link}, tared=False)


# ---- polishing


@pytest.fixture(scope="module")
def polish():
    """The example that polishes a plane, as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        yield importlib.import_module("polish")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("plant", ["ours", "mujoco"])
def test_polishing_with_wrong_masses_and_friction(
    polish, arm, plant, monkeypatch, full
):
    """2 % while it moves sideways, 20 % at touch; without the sensor it is printed.

    In MuJoCo at 2 kHz with its own contacts, joint friction and sensor; there the plane
    has the stiffness of the example, too. Without --full the tool moves earlier, and
    for less than a circle.
    """
    if not full:
        monkeypatch.setattr(polish, "MOVES", 1.5)
    ends = (polish.END,) * 2 if full else (polish.MOVES + 2.0, polish.MOVES + 1.4)
    cell = importlib.import_module("_plane_and_arm").Cell
    if plant == "mujoco":
        pytest.importorskip("mujoco", reason="mujoco is not installed")
        cell = importlib.import_module("mujoco_cell").MujocoCell
    controller, rows = polish.polish(arm, end=ends[0], cell=cell)
    assert controller.stopped is None
    still = (rows[:, 0] > polish.MOVES - 0.5) & (rows[:, 0] < polish.MOVES)
    force, depth = rows[still, 1].mean(), rows[0, 4] - 0.005 - rows[still, 4].mean()
    assert force / depth == pytest.approx(5e4, rel=0.1)
    touch, steady = polish.figures(rows)
    _, rows_without = polish.polish(arm, sensor=False, end=ends[1], cell=cell)
    without = polish.figures(rows_without)
    print(f"with the sensor {touch:.1%}, {steady:.2%}; without {without}")
    assert 0 <= touch <= 0.20
    assert steady <= 0.02
    assert without[1] > 0.1
    moved = np.ptp(rows[rows[:, 0] > polish.MOVES, 2:4], axis=0)
    assert (moved > 0.06).all()


def test_a_wrench_without_the_weight_counts_as_it_is():
    """As ~/external_wrench: only turned into base axes, and moved to the tool."""
    arm = dyn.load("arm7")
    links = list(arm.frame_names)
    rng = np.random.default_rng(2)
    poses = dyn.solver("forward_kinematics").build(arm, frames=links)
    T, reading = poses(arm.random(rng)), rng.normal(size=6)
    sensor = ForceTorqueSensor(arm, "tool", "flange", weighs=False)
    sensor.offset = np.zeros(6)
    payload = PayloadInput("tool")
    payload.attach(Payload(2.0, (0.0, 0.0, 0.0)))
    sensor.accept(0.0, reading, lambda: T, True, payload)
    w = sensor.contact(T, links.index("tool"), payload)
    R, flange = T[links.index("flange")][:3, :3], T[links.index("flange")][:3, 3]
    force = R @ reading[3:]
    arm_of_force = flange - T[links.index("tool")][:3, 3]
    moment = R @ reading[:3] + np.cross(arm_of_force, force)
    np.testing.assert_allclose(w, np.r_[moment, force], atol=1e-12)
