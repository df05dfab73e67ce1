"""Dry friction that differs by direction: forces, slopes, contacts, identification."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.contact.derivatives import step_derivatives
from dyn_core.model.description import FRICTION_SPEED
from dyn_core.model.parameter_vector import parameters_of
from dyn_core.model.passive_forces import friction_slope
from dyn_core.simulation.robot_overview import describe
from dyn_core.simulation.simulator import simulate
from dyn_core.spatial import Vector
from dyn_core.testing.case import derivative

BOTH = [0.4, 0.15]  # against motion in positive and in negative direction [N·m]
FAST = 0.5  # where tanh(qd / v_s) is 1 to rounding [rad/s]
# Motor side of the Puma 560: gear ratio, viscous friction, Coulomb friction [+, -];
# P. Corke and B. Armstrong-Helouvry, A search for consensus among model parameters
# reported for the Puma 560, ICRA 1994.
PUMA = (
    (-62.6111, 1.48e-3, 0.395, -0.435),
    (107.815, 0.817e-3, 0.126, -0.071),
    (-53.7063, 1.38e-3, 0.132, -0.105),
    (76.0364, 71.2e-6, 11.2e-3, -16.9e-3),
    (71.923, 82.6e-6, 9.26e-3, -14.5e-3),
    (76.686, 36.7e-6, 3.96e-3, -10.5e-3),
)


def _arm(friction=BOTH, **more):
    """Return two links whose first joint has such friction."""
    extras = {"joints": {"joint1": {"friction": friction, "damping": 0.1}}, **more}
    return dyn.load_urdf(dyn.robots.path("two_link"), extras=extras)


def _taken(model, qd, **choices):
    """Return what joint friction takes at velocities, by rnea."""
    choices = {"engine": "graph", **choices}
    q, still = np.full(model.nv, 0.3), np.zeros(model.nv)
    rough = dyn.solver("rnea").build(model, joint_friction=True, **choices)
    smooth = dyn.solver("rnea").build(model, **choices)
    return rough(q, qd, still) - smooth(q, qd, still)


def test_each_direction_has_its_friction():
    """Far from rest the pair acts; the law is odd only for equal directions."""
    for qd, dry in ((FAST, 0.4), (-FAST, -0.15)):
        taken = _taken(_arm(), np.array([qd, 0.0]))
        np.testing.assert_allclose(taken[0], dry + 0.1 * qd, rtol=1e-12)
    one, pair = (_arm(x) for x in (0.3, [0.3, 0.3]))
    assert np.array_equal(_taken(one, [0.003, 0.1]), _taken(pair, [0.003, 0.1]))
    assert any(" 0.4/0.15 " in line for line in describe(_arm()))


@pytest.mark.parametrize("pair", [[0.4, 0.15], [0.4, 0.0], [0.0, 0.3]])
def test_friction_never_drives_and_is_smooth(pair):
    """qd tau_friction >= 0, zero at rest, with slopes that differences confirm."""
    model = _arm(pair)
    speeds = np.concatenate([np.linspace(-0.1, 0.1, 81), [-3.0, 3.0]])
    rows = np.stack([speeds, 0 * speeds], axis=1)
    q, still = np.zeros((len(rows), 2)), np.zeros((len(rows), 2))
    choices = {"engine": "graph", "joint_friction": True}
    bias = dyn.solver("rnea").build(model, **choices)
    smooth = dyn.solver("rnea").build(model, engine="graph")
    taken = bias(q, rows, still)[:, 0] - smooth(q, rows, still)[:, 0]
    assert (speeds * taken >= 0.0).all()
    slopes = dyn.solver("id_derivatives").build(model, **choices)
    directions = dyn.solver("id_directional").build(model, **choices)
    for x in (-0.02, -0.004, 0.0, 0.004, 0.02):
        state, e = np.array([x, 0.2]), np.array([1.0, 0.0])

        def along(t, state=state, e=e):
            return bias(np.zeros(2), state + t * e, np.zeros(2))

        wanted = derivative(along, 1e-4)
        got = slopes(np.zeros(2), state, np.zeros(2)).dtau_dqd[:, 0]
        np.testing.assert_allclose(got, wanted, atol=1e-8)
        none = np.zeros(2)
        got = directions(none, state, none, none, e, none)[1]
        np.testing.assert_allclose(got, wanted, atol=1e-8)
        assert min(friction_slope(model, Vector(state.tolist()))) >= 0.0


def test_the_puma_has_its_figures():
    """tau = B G² qd + |G| Tc by direction, joint by joint (Robotics Toolbox: rne)."""
    rows = {
        f"joint{k}": {"damping": B * G * G, "friction": [abs(G) * up, -abs(G) * down]}
        for k, (G, B, up, down) in enumerate(PUMA, 1)
    }
    model = dyn.load_urdf(dyn.robots.path("arm7"), extras={"joints": rows})
    ahead, back = 0.7 * np.ones(7), -0.7 * np.ones(7)
    for qd, column in ((ahead, 2), (back, 3)):
        wanted = [r[1] * r[0] ** 2 * qd[0] + abs(r[0]) * r[column] for r in PUMA]
        got = _taken(model, qd)[:6] - _taken(_bare(model), qd)[:6]
        np.testing.assert_allclose(got, wanted, rtol=1e-10)


def _bare(model):
    """Return the robot without friction."""
    return model.without_friction()


def test_parameters_of_both_directions_are_inputs():
    """JOINT.friction is the mean, JOINT.friction_asymmetry half of the difference."""
    names = ["joint1.friction", "joint1.friction_asymmetry"]
    rnea = dyn.solver("rnea").build(
        _arm(0.0), engine="graph", joint_friction=True, inputs=names
    )
    q, qd, still = np.full(2, 0.3), np.array([-FAST, 0.0]), np.zeros(2)
    torque = rnea(q, qd, still, 0.275, 0.125)
    built = dyn.solver("rnea").build(_arm(), engine="graph", joint_friction=True)
    np.testing.assert_allclose(torque, built(q, qd, still), rtol=1e-12)
    np.testing.assert_allclose(built.model.parameter(names[0]), 0.275)
    np.testing.assert_allclose(built.model.parameter(names[1]), 0.125)
    slope = dyn.solver("id_directional").build(
        _arm(), engine="graph", joint_friction=True, parameter=names[1]
    )
    t = math.tanh(0.004 / FRICTION_SPEED)
    qd = np.array([0.004, 0.0])
    got = slope(q, qd, still, still, still, still, 1.0)[1]
    np.testing.assert_allclose(got, [t * t, 0.0], atol=1e-14)


def test_dry_friction_of_contacts_holds_by_direction():
    """A joint rests up to its friction in each direction, in every kind of solver."""
    model = dyn.load_urdf(
        dyn.robots.path("two_link"),
        extras={"joints": {"joint1": {"friction": BOTH}}},
        lock={"joint2": 0.0},
        gravity=(0.0, 0.0, 0.0),
    )
    step, qd = 0.01, {}
    for solver in ("admm", "lemke", "projected_gauss_seidel", "interior_point"):
        world = {"contacts": False, "solver": solver}
        for tau in (0.39, 0.45, -0.14, -0.2):
            robot = dyn.ContactSimulator(model, world, period=step, engine="graph")
            robot.command(0.0, [tau])
            robot.advance(0.0)
            qd[tau] = robot.qd[0]
        assert max(abs(qd[0.39]), abs(qd[-0.14])) < 1e-7
        assert qd[0.45] > 1e-4
        assert qd[-0.2] < -1e-4
        np.testing.assert_allclose(qd[0.45] / qd[-0.2], -1.0, rtol=1e-5)


def test_derivatives_of_a_sliding_step_know_the_bound():
    """A joint that slides is free: its velocity follows the force; at rest it stays."""
    model = _arm()
    contact_model = dyn.authoring.ContactModel(model, {"contacts": False})
    q, h = np.array([0.2, -0.4]), 1e-3
    sliding = step_derivatives(contact_model, q, np.array([-1.0, 0.1]), np.zeros(2), h)
    assert sliding.modes["dry friction of joint1"] == "free"
    weight = dyn.solver("gravity").build(model, engine="graph")(q)
    still = step_derivatives(contact_model, q, np.zeros(2), weight + [0.3, 0], h)
    assert still.modes["dry friction of joint1"] == "stick"
    assert abs(still.B[2]).max() < 1e-9 < abs(sliding.B[2]).max()


def test_energy_decays_by_the_friction_of_the_direction():
    """Coasting, power = - friction qd: the way to rest tells both bounds apart."""
    extras = {"joints": {"joint1": {"friction": BOTH, "damping": 0.0}}}
    model = dyn.load_urdf(
        dyn.robots.path("two_link"),
        extras=extras,
        lock={"joint2": 0.0},
        gravity=(0.0, 0.0, 0.0),
    )
    run = {}
    for qd in (1.0, -1.0):
        run[qd] = simulate(
            model,
            duration=0.05,
            step="rk4",
            period=1e-3,
            q0=[0.0],
            qd0=[qd],
            engine="graph",
        )
        lost = run[qd].energy[0] - run[qd].energy[-1]
        way = abs(run[qd].q[-1, 0] - run[qd].q[0, 0])
        dry = BOTH[0] if qd > 0 else BOTH[1]
        np.testing.assert_allclose(lost, dry * way, rtol=1e-6)


def test_identification_keeps_how_much_directions_differ():
    """Data of a robot with a pair: the mean is found, the difference is the prior's."""
    model = _arm()
    prior = parameters_of(model, friction=True)
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 40, 2))
    tau = dyn.solver("rnea").build(model, engine="graph", joint_friction=True)(
        q, qd, qdd
    )
    result = dyn.identify(model, q, qd, qdd, tau, rotors=False, partial=True)
    np.testing.assert_allclose(result.parameters, prior, atol=1e-8)
