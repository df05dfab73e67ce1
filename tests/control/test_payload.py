"""Payloads, robots that carry their own weight, and the pace of a simulation."""

import re

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import (
    Bounds,
    Controller,
    Payload,
    PayloadInput,
    Rules,
    ShadowSettings,
)
from dyn_core.simulation.pacing import Pace

LOAD = Payload(1.5, (0.02, -0.03, 0.1), (0.01, 0.001, -0.002, 0.012, 0.0005, 0.009))
LINK = """<link name="load"><inertial><origin xyz="0.02 -0.03 0.1"/><mass value="1.5"/>
<inertia ixx="0.01" ixy="0.001" ixz="-0.002" iyy="0.012" iyz="0.0005" izz="0.009"/>
</inertial></link><joint name="grip" type="fixed"><parent link="tool"/>
<child link="load"/></joint></robot>"""


@pytest.fixture(scope="module")
def arms():
    """Return the shipped arm, and one with the load as a link of its URDF."""
    urdf = dyn.robots.path("arm7").read_text(encoding="utf-8")
    return dyn.load(urdf), dyn.load(urdf.replace("</robot>", LINK))


@pytest.mark.parametrize("kind", ["robot", "contacts", "prescribed"])
def test_a_payload_is_a_link_that_comes_and_goes(arms, kind):
    """Attached, the robot moves as one with the load in its URDF; removed, as before."""
    settings = {"engine": "graph", "q0": np.array([0.1, -0.6, 0, -2.2, 0.3, 1.6, 0.8])}
    if kind == "prescribed":
        settings["prescribed"] = ("joint3",)

    def make(model, **more):
        if kind == "contacts":
            return dyn.ContactSimulator(model, **settings, **more)
        return dyn.Simulator(model, **settings, **more)

    bare, loaded = (make(model) for model in arms)
    robot = make(arms[0], payload_link="tool")
    for payload, other in ((LOAD, loaded), (None, bare)):
        robot.attach(payload)
        other.q, other.qd = robot.q.copy(), robot.qd.copy()
        before = robot.qd.copy()
        for k in range(3):
            for each in (robot, other):
                each.command(0.002 * k, np.linspace(1.0, -1.0, 7))
                each.advance(0.002 * k)
        np.testing.assert_allclose(robot.qd, other.qd, rtol=1e-9, atol=1e-10)
        assert np.abs(robot.qd - before).max() > 1e-3


@pytest.mark.parametrize("contacts", [False, True])
def test_a_robot_that_carries_its_weight_rests_without_commands(arms, contacts):
    """Also with a payload; a motor at its limit sinks; a command adds to the weight."""
    settings = {"engine": "graph", "compensates_gravity": True, "payload_link": "tool"}
    settings["q0"] = [0.1, -0.6, 0, -2.2, 0.3, 1.6, 0.8]
    arm = arms[0]
    robot = (
        dyn.ContactSimulator(arm, **settings)
        if contacts
        else dyn.Simulator(arm, **settings)
    )
    robot.attach(LOAD)
    for k in range(5):
        robot.advance(0.002 * k)
    assert np.abs(robot.qd).max() < 1e-10
    weight = robot.effort.copy()
    heavier = dyn.solver("gravity").build(arms[1], engine="graph")
    np.testing.assert_allclose(weight, heavier(robot.q), atol=1e-6)
    assert not robot.tau.any()
    push = np.zeros(7)
    push[1] = 2.0
    robot.command(0.01, push)
    robot.advance(0.01)
    np.testing.assert_allclose(robot.effort, weight + push, atol=1e-6)
    robot.effort_limit = np.full(7, 1.0)
    robot.reset()
    robot.advance(0.0)
    assert np.abs(robot.effort).max() == 1.0
    assert np.abs(robot.qd).max() > 1e-3


@pytest.mark.parametrize("carries", [False, True])
def test_controller_and_robot_agree_who_carries_the_weight(carries):
    """Both know it: the arm stays, and the controller sends the weight or nothing."""
    two = dyn.load("two_link", gravity=(0.0, -9.81, 0.0))
    controller = Controller(
        two, engine="graph", robot_compensates_gravity=carries, payload_link="link2"
    )
    run = dyn.simulate(
        two,
        controller,
        duration=0.05,
        q0=[0.3, -0.4],
        engine="graph",
        compensates_gravity=carries,
    )
    assert np.abs(run.q - [0.3, -0.4]).max() < (1e-12 if carries else 5e-3)
    weight = dyn.solver("gravity").build(two, engine="graph")([0.3, -0.4])
    assert np.abs(weight).max() > 1.0
    sent = np.abs(run.tau[-1])
    assert sent.max() < 1e-9 if carries else sent.max() > 0.5 * np.abs(weight).max()


def test_payloads_and_weights_that_cannot_be_are_refused(arms):
    """Mass, inertia, sizes, a link that is not there; loops and floating roots."""
    for values, expected in (
        ((-1.0,), "mass -1 kg; valid: above 0"),
        ((0.0, [0, 0, 0], [1, 0, 0, 1, 0, 1]), "mass 0 kg"),
        ((np.nan,), "mass is .*valid: a finite number"),
        ((10**400,), "mass is .*valid: a finite number"),
        ((1.0, [0.0, 0.0]), "com is .*valid: 3 finite numbers"),
        ((1.0, [0, 0, 0], [1, 0, 0, 1, 0, 3]), "moments of inertia 1, 1, 3"),
        ((1.0, [0, 0, 0], [1, 0, 0, -1, 0, 1]), "moments of inertia -1, 1, 1"),
    ):
        with pytest.raises(dyn.SettingError, match=expected):
            Payload(*values)
    with pytest.raises(dyn.SettingError, match="set payload_link"):
        PayloadInput().attach(LOAD)
    with pytest.raises(dyn.ModelError, match="tol"):
        dyn.Simulator(arms[0], payload_link="tol")
    floating = dyn.load("two_link", root_joint="floating")
    with pytest.raises(dyn.SettingError, match="floating root"):
        dyn.Simulator(floating, compensates_gravity=True)


def test_a_controller_carries_a_payload(arms):
    """Law, shadow, weight and envelope know it: an arm that rests stays where it is."""
    q = np.array([0.1, -0.6, 0, -2.2, 0.3, 1.6, 0.8])
    controller = Controller(
        arms[0],
        engine="graph",
        rules=Rules(good_samples=1, on_stale="ramp", blend_time=5e-3),
        bounds=Bounds(kinetic_energy=5.0),
        shadow=ShadowSettings("rnea_spatial", engine="graph"),
        payload_link="tool",
    )
    heavy = dyn.solver("gravity").build(arms[1], engine="graph")(q)
    bare = dyn.solver("gravity").build(arms[0], engine="graph")(q)
    still = np.zeros(7)
    for k, (payload, weight) in enumerate([(None, bare), (LOAD, heavy), (None, bare)]):
        controller.attach(payload)
        for t in (0.02 * k, 0.02 * k + 0.01):
            tau = controller.update(t, q, still)
        np.testing.assert_allclose(tau, weight, atol=1e-9)
        assert controller.stopped is None
    controller.attach(LOAD)
    np.testing.assert_allclose(controller.watch(0.5), bare, atol=1e-9)
    np.testing.assert_allclose(controller.watch(0.51), heavy, atol=1e-9)
    made = controller.safety.envelope
    load = q, 0.1 + still, *[still] * 4, 0.01, made.bounds
    energies = [
        made.program(*load, ten).values[-2] for ten in (np.zeros(10), LOAD.parameters)
    ]
    assert energies[1] > 1.1 * energies[0]
    with pytest.raises(dyn.ModelError, match="tol"):
        Controller(arms[0], payload_link="tol", engine="graph")


def test_ages_of_commands_have_a_time_of_their_own(arms):
    """Time of motion and time of commands may be two clocks."""
    robot = dyn.Simulator(arms[0], engine="graph", command_timeout=0.05)
    robot.command(1000.0, np.ones(7))
    robot.advance(0.0, 1000.04)
    assert robot.tau.any()
    robot.advance(0.002, 1000.06)
    assert not robot.tau.any()


def test_a_payload_is_blended_in(arms):
    """The effort moves in proportion to the time, there and back; at first at once."""
    q, still = np.array([0.1, -0.6, 0, -2.2, 0.3, 1.6, 0.8]), np.zeros(7)
    rules = Rules(good_samples=1, blend_time=0.1)
    controller = Controller(arms[0], engine="graph", rules=rules, payload_link="tool")
    heavy, bare = (
        dyn.solver("gravity").build(arm, engine="graph")(q) for arm in arms[::-1]
    )
    controller.attach(LOAD)
    np.testing.assert_allclose(controller.update(0.0, q, still), heavy, atol=1e-9)
    t = 0.0
    for payload, (start, end) in ((None, (heavy, bare)), (LOAD, (bare, heavy))):
        controller.attach(payload)
        for k in range(13):
            t += 0.01
            tau = controller.update(t, q, still)
            expected = start + min(0.1 * k, 1.0) * (end - start)
            np.testing.assert_allclose(tau, expected, atol=1e-9)
    controller.attach(None)
    controller.update(t + 0.01, q, still)
    half = controller.update(t + 0.06, q, still)
    np.testing.assert_allclose(half, (heavy + bare) / 2, atol=1e-9)
    controller.attach(LOAD)  # back, from where it is
    turned = controller.update(t + 0.07, q, still)
    np.testing.assert_allclose(turned, (heavy + bare) / 2, atol=1e-9)


@pytest.mark.parametrize("mass", [50.0, 1000.0, 1e12])
def test_a_payload_beyond_the_efforts_is_refused(arms, mass):
    """With joint and numbers; the present one stays."""
    controller = Controller(arms[0], engine="graph", payload_link="tool")
    controller.attach(LOAD)
    expected = (
        rf"payload of {re.escape(f'{mass:g}')} kg cannot be carried: joint 'joint6'"
        r" needs .* N·m \(N\) to hold it in the best of 256 positions .* is 12$"
    )
    with pytest.raises(dyn.SettingError, match=expected):
        controller.attach(Payload(mass))
    assert controller.carried.payload is LOAD
    with pytest.raises(dyn.SettingError, match=r"com is 92.7. m from .* in metres\?$"):
        controller.attach(Payload(1.2, com=(20, -10, 90)))


def test_a_payload_is_held_at_the_present_position(arms):
    """What is carried near the body is refused with the arm stretched out."""
    rules = Rules(good_samples=1)
    stretched = np.array([0.0, 1.2, 0.0, -0.1, 0.0, 1.6, 0.0])
    for limits, refused in (
        ({}, True),
        ({f"joint{k}": 1e4 for k in range(1, 8)}, False),
    ):
        controller = Controller(
            arms[0], engine="graph", rules=rules, payload_link="tool",
            effort_limits=limits,
        )  # fmt: skip
        controller.attach(Payload(15.0))
        controller.attach(None)
        controller.update(0.0, stretched, np.zeros(7))
        if refused:
            with pytest.raises(dyn.SettingError, match="needs .* to hold it here, and"):
                controller.attach(Payload(15.0))
        else:
            controller.attach(Payload(15.0))
            assert controller.carried.payload == Payload(15.0)


def test_a_robot_that_carries_its_weight_is_not_asked(arms):
    """Nor is one whose joints are vertical; only what hangs on its efforts counts."""
    for settings, model in (
        ({"robot_compensates_gravity": True}, arms[0]),
        ({}, arms[0].with_values({"gravity": (0.0, 0.0, 0.0)})),
    ):
        controller = Controller(model, engine="graph", payload_link="tool", **settings)
        controller.attach(Payload(1000.0))


def _run(pace, times):
    """Return the periods that are due at each time, all of them simulated."""
    counts = []
    for now in times:
        counts.append(pace.owed(now))
        for _ in range(counts[-1]):
            pace.moved()
    return counts


def test_missed_cycles_are_caught_up():
    """Simulated time is the wall's again after a gap within the bound."""
    pace = Pace(0.01, most=5)
    assert _run(pace, [7.0, 7.01, 7.02, 7.0625, 7.07, 7.0899]) == [1, 1, 1, 4, 1, 1]
    assert (pace.cycles, pace.missed, pace.lost, pace.debt) == (6, 3, 0, 0)


def test_what_is_beyond_the_bound_is_lost():
    """The periods of a long gap are counted as lost, and simulated time lags."""
    pace = Pace(0.01, most=2)
    times = [*np.arange(200) * 0.01, *(3.0 + np.arange(50) * 0.01)]
    counts = _run(pace, times)
    assert counts[199:202] == [1, 3, 1]
    assert (pace.missed, pace.lost) == (100, 98)
    assert 0.5 < pace.real_time_factor < 0.8
    assert 0.2 < pace.missed_share < 0.7
    _run(pace, 3.5 + np.arange(300) * 0.01)
    assert pace.real_time_factor == pytest.approx(1.0, abs=0.01)
    assert pace.missed_share == 0.0


def test_a_debt_is_paid_in_later_cycles_and_forgotten_in_a_pause():
    """A cycle without time for all leaves some; cycles that come early owe one each."""
    pace = Pace(0.01, most=5)
    assert pace.owed(0.0) == 1
    pace.moved()
    assert pace.owed(0.035) == 3
    pace.moved()
    assert pace.owed(0.04) == 3
    pace.restart()
    assert pace.debt == 0
    assert pace.real_time_factor is None
    assert _run(pace, [5.0, 5.004, 5.009]) == [1, 1, 1]
    assert pace.missed == 2
