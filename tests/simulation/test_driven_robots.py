"""Robots whose places are driven: order of steps in time, simulation, loops."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import cos, sin
from dyn_core.control import Controller, Rules
from dyn_core.simulation import close_loops, close_rates

LINK = """<link name="{0}"><inertial><origin xyz="{1} 0 0"/><mass value="1"/>
<inertia ixx=".01" iyy=".05" izz=".06" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/>
<origin xyz="{3} 0 0"/><axis xyz="0 0 1"/></joint>"""
PENDULUM = f"""<robot name="pendulum"><link name="base"/>
{LINK.format("b", 0.25)}{JOINT.format("j", "base", "b", 0)}</robot>"""
CRANK = f"""<robot name="crank"><link name="base"/>
{LINK.format("b1", 0.25)}{LINK.format("b2", 0.5)}{LINK.format("b3", 0.3)}
{JOINT.format("j1", "base", "b1", 0)}{JOINT.format("j2", "b1", "b2", 0.5)}
{JOINT.format("j3", "b2", "b3", 1.0)}</robot>"""
DOWN = (0, -9.81, 0)


def _shaken():
    """Return a pendulum whose pivot shakes, and its acceleration by hand."""
    model = dyn.load_urdf(PENDULUM, gravity=DOWN)
    model = model.drive("j", lambda t: (None, (0.0, sin(5.0 * t) * 0.1, 0.0)))

    def qdd(t, q):
        g = 9.81 - 0.1 * 25 * math.sin(5 * t)
        return -0.25 * g * math.cos(q) / (0.06 + 0.25**2)

    return model, qdd


def _exact(qdd, q, qd, duration, n=4000):
    """Integrate the equation written by hand, by fourth-order steps."""
    h, state = duration / n, np.array([q, qd])

    def rate(t, x):
        return np.array([x[1], qdd(t, x[0])])

    for k in range(n):
        t = k * h
        k1 = rate(t, state)
        k2 = rate(t + h / 2, state + h / 2 * k1)
        k3 = rate(t + h / 2, state + h / 2 * k2)
        k4 = rate(t + h, state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


@pytest.mark.parametrize("mode", ["computed_torque", "gravity"])
def test_a_controller_passes_the_time_on(mode):
    """A pivot that is driven: the law compensates it at the time of the update."""
    model, _ = _shaken()
    rules = Rules(good_samples=1)
    controller = Controller(
        model, mode=mode, effort_limits={"j": 1e3}, rules=rules, engine="graph"
    )
    rnea = dyn.solver("rnea").build(model, inputs=["time"], engine="graph")
    for t in (0.1, 0.15, 0.19):
        tau = controller.update(t, [0.3], [0.0])
        np.testing.assert_allclose(tau, rnea([0.3], [0.0], [0.0], t), rtol=1e-12)


@pytest.mark.parametrize(("step", "order"), [("rk4", 4), ("semi_implicit_euler", 1),
                                             ("hybrid_euler", 1)])  # fmt: skip
def test_steps_of_driven_robots_have_their_order(step, order):
    """Stages at t, t + dt/2 and t + dt: halving the step shows the order."""
    model, qdd = _shaken()
    exact = _exact(qdd, 0.3, 0.5, 1.0)
    program = dyn.solver(step).build(model, inputs=["time"], engine="graph")
    rest = [[]] if step == "hybrid_euler" else []

    def error(n):
        q, qd = np.array([0.3]), np.array([0.5])
        for k in range(n):
            q, qd, *_ = program(q, qd, *rest, [0.0], 1.0 / n, k / n)
        return np.abs(np.array([q[0], qd[0]]) - exact).max()

    coarse, fine = (error(n) for n in ((40, 80) if order == 4 else (400, 800)))
    assert math.log2(coarse / fine) == pytest.approx(order, abs=0.15)


def test_simulate_passes_the_time_on():
    """A recorded run of a driven robot is the equation written by hand."""
    model, qdd = _shaken()
    run = dyn.simulate(model, duration=0.5, period=5e-3, step="rk4", q0=[0.3],
                       qd0=[0.5], joint_friction=False, engine="graph")  # fmt: skip
    exact = _exact(qdd, 0.3, 0.5, run.t[-1])
    np.testing.assert_allclose([run.q[-1, 0], run.qd[-1, 0]], exact, atol=1e-7)
    p, v = 0.1 * np.sin(5 * run.t), 0.5 * np.cos(5 * run.t)
    potential = 9.81 * (p + 0.25 * np.sin(run.q[:, 0]))
    w = run.qd[:, 0]
    kinetic = 0.5 * (v**2 + 0.5 * v * w * np.cos(run.q[:, 0]) + 0.1225 * w**2)
    np.testing.assert_allclose(run.energy, kinetic + potential, atol=1e-12)


def test_contacts_with_driven_robots_are_refused_in_words():
    """Their speeds would lack the driven motion."""
    with pytest.raises(
        dyn.UnsupportedError, match="contacts: the place of j is driven"
    ):
        dyn.simulate(_shaken()[0], world={})


def _four_bar(driven=True):
    """Return a four-bar whose ground pivot may move in a circle."""
    model = dyn.load_urdf(CRANK, gravity=DOWN)
    if driven:
        model = model.drive(
            "j1", lambda t: (None, (sin(3.0 * t) * 0.1, cos(2.0 * t) * 0.1, 0.0))
        )
    at_b, at_a = {"xyz": (0.6, 0, 0)}, {"xyz": (0.9, 0, 0)}
    return model.with_loops(dyn.make_loop("D", "pin", "b3", at_b=at_b, at_a=at_a))


def _pin(model, q, t):
    """Return where the end of b3 is, by adding up the links."""
    a = np.cumsum(q)
    ends = [0.5 * np.exp(1j * a[0]), 1.0 * np.exp(1j * a[1]), 0.6 * np.exp(1j * a[2])]
    start = 0.1 * np.sin(3 * t) + 0.1j * np.cos(2 * t) if model.driven else 0.0
    return start + sum(ends)


def test_loops_of_driven_robots_close_at_a_time():
    """close_loops and close_rates: where the drive is, and as it moves."""
    model, t = _four_bar(), 0.7
    q = close_loops(model, [1.2, -1.0, -1.5], time=t)
    assert abs(_pin(model, q, t) - 0.9) < 1e-12
    assert abs(_pin(model, q, 0.0) - 0.9) > 1e-2
    qd = close_rates(model, q, [1.0, 0.0, 0.0], time=t)
    h = 1e-5
    rate = _pin(model, q + h * qd, t + h) - _pin(model, q - h * qd, t - h)
    assert abs(rate) / (2 * h) < 1e-8


def test_driven_loops_stay_closed():
    """projected_euler projects to where the drive is at the end of the step."""
    model, h = _four_bar(), 2e-3
    q = close_loops(model, [1.2, -1.0, -1.5])
    run = dyn.simulate(model, duration=0.2, period=h, q0=q, step="projected_euler",
                       qd0=close_rates(model, q, [1.0, 0.0, 0.0]), limit_stops=False,
                       forward_dynamics="aba_loops", engine="graph")  # fmt: skip
    open_by = [abs(_pin(model, q, t) - 0.9) for t, q in zip(run.t, run.q, strict=True)]
    assert max(open_by) < 5 * h**2
    assert np.ptp(run.q[:, 0]) > 0.05


def test_prescribed_joints_of_robots_with_loops():
    """hybrid_euler with loops: the given joint follows, the loop stays closed."""
    model = _four_bar(driven=False)
    q = close_loops(model, [1.2, -1.0, -1.5])
    robot = dyn.Simulator(
        model, prescribed=("j1",), q0=q, period=1e-3, engine="graph", limit_stops=False,
        qd0=close_rates(model, q, [0.5, 0.0, 0.0], fixed=["j1"]),
    )  # fmt: skip
    robot.accelerate(0.0, [1.0])
    for k in range(100):
        robot.advance(k * 1e-3)
    assert robot.qd[0] == pytest.approx(0.6, abs=1e-12)
    assert abs(_pin(model, robot.q, 0.0) - 0.9) < 1e-4
    closed = close_rates(model, robot.q, robot.qd, fixed=["j1"])
    np.testing.assert_allclose(robot.qd, closed, atol=2e-3)
    assert abs(robot.effort[0]) > 0.1
    with pytest.raises(dyn.UnsupportedError, match="the robot has loops"):
        dyn.solver("hybrid_euler").build(
            model, prescribed=["j1"], hybrid_dynamics="hybrid_mask"
        )


def test_contacts_name_what_serves_driven_places_and_loops():
    """What contacts cannot do is refused with what can."""
    model, _ = _shaken()
    with pytest.raises(dyn.UnsupportedError, match="valid: a Simulator without"):
        dyn.ContactSimulator(model, {"contacts": False}, engine="graph")
    crank = dyn.load_urdf(CRANK, gravity=DOWN)
    place = {"at_b": {"xyz": (0.6, 0, 0)}, "at_a": {"xyz": (1.0, 0.3, 0)}}
    closed = crank.with_loops(dyn.make_loop("D", "pin", "b3", **place))
    robot = dyn.ContactSimulator(closed, {"contacts": False}, engine="graph")
    robot.advance(0.0)
    with pytest.raises(dyn.UnsupportedError, match="the solver joint_reactions_loops"):
        robot.reactions()
