"""Joint forces that the state determines: springs and functions of the user (KIM-S2)."""

import math
import warnings

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.numbers.scalar import sin
from dyn_core.simulation.simulator import simulate
from dyn_core.testing import random_model, scaled_error
from dyn_core.testing.case import derivative

PENDULUM = """<robot name="p"><link name="a"/><link name="b"><inertial>
<origin xyz="0 0 -0.5"/><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0"
ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous"><parent link="a"/>
<child link="b"/><axis xyz="1 0 0"/></joint></robot>"""
K, D = 30.0, 0.8  # N·m/rad, N·m·s/rad


def _pendulum(**spring):
    extras = {"joints": {"j": {"damping": D}}}
    if spring:
        extras["springs"] = {"j": spring}
    return dyn.load_urdf(PENDULUM, extras=extras)


def test_frequency_and_decay_of_a_pendulum():
    """q = q0 exp(-a t) cos-like with w = sqrt(k/J - a²), a = d/2J, k = K + m g l."""
    model = _pendulum(stiffness=K)
    J, k = 0.1 + 2 * 0.25, K + 2 * 9.81 * 0.5
    a = D / (2 * J)
    w = math.sqrt(k / J - a * a)
    run = simulate(model, duration=2.0, step="rk4", period=1e-3, q0=[1e-4], qd0=[0.0])
    wanted = np.exp(-a * run.t) * (np.cos(w * run.t) + a / w * np.sin(w * run.t))
    np.testing.assert_allclose(run.q[:, 0] / 1e-4, wanted, atol=1e-6)
    loose = simulate(model, duration=0.2, q0=[1e-4], joint_springs=False)
    assert np.abs(loose.q[:, 0] - run.q[:200:2, 0][: len(loose.t)]).max() > 1e-5


def test_a_robot_rests_where_its_spring_is_slack():
    """At rest tau = g + k (q - rest); the spring of a file and a function agree."""
    model = _pendulum(stiffness=K, rest=0.2)

    def spring(model, q, qd):
        return [(q[0] - 0.2) * -K]

    sprung = _pendulum().with_forces(spring)
    for name, args in (
        ("rnea", ([0.5], [0.3], [0.1])),
        ("aba", ([0.5], [0.3], [0.1])),
        ("bias", ([0.5], [0.3])),
    ):
        solver = dyn.solver(name)
        plain = solver.build(model)(*args)
        stiff = solver.build(model, joint_springs=True)(*args)
        same = solver.build(sprung, joint_springs=True)(*args)
        assert scaled_error(same, stiff) < 1e-14
        wanted = -K * 0.3 / 0.6 if name == "aba" else K * 0.3
        np.testing.assert_allclose(stiff - plain, wanted)
    np.testing.assert_array_equal(model.flat("stiffness"), [K])
    assert model.lock({}).build.forces == ()


def test_functions_of_the_user_have_slopes():
    """id_ and fd_derivatives know the slopes of a user's force, by position too."""
    model = random_model(5, size=5, mimic=0.0)

    def magnet(model, q, qd):
        first = model.v_slice(model.joint_names[0]).start
        return [
            sin(q[0] * 2 + k) * 3 - qd[k] * q[1] * (k == first) + qd[k] * qd[0] * 0.1
            for k in range(model.nv)
        ]

    model = model.with_forces(magnet)
    rng = np.random.default_rng(0)
    q, qd, third = model.random(rng), *rng.normal(size=(2, model.nv))
    choices = {"joint_springs": True, "joint_friction": True, "engine": "graph"}
    for name, of in (("id_derivatives", "rnea"), ("fd_derivatives", "aba")):
        got = dyn.solver(name).build(model, **choices)(q, qd, third)
        program = dyn.solver(of).build(model, **choices)
        by_q, by_qd = got[:2] if of == "rnea" else got[1:3]
        for k, e in enumerate(np.eye(model.nv)):

            def along(t, e=e, program=program):
                return program(model.integrate(q, e * t), qd, third)

            scale = max(1.0, np.abs(by_q).max())
            assert np.abs(by_q[:, k] - derivative(along)).max() < 1e-8 * scale

            def faster(t, e=e, program=program):
                return program(q, qd + e * t, third)

            scale = max(1.0, np.abs(by_qd).max())
            assert np.abs(by_qd[:, k] - derivative(faster, 2e-5)).max() < 1e-6 * scale


def test_springs_reach_hybrid_dynamics_and_controllers():
    """A prescribed joint pays for its spring; computed torque compensates it."""
    model = _pendulum(stiffness=K, rest=0.2)
    hybrid = dyn.solver("hybrid")
    prescribed = hybrid.build(model, prescribed=["j"], joint_springs=True)
    rnea = dyn.solver("rnea").build(model, joint_springs=True)
    (tau, _) = prescribed([0.5], [0.3], [0.1], [])
    np.testing.assert_allclose(tau, rnea([0.5], [0.3], [0.1]))


def test_a_rest_of_too_many_numbers_is_refused():
    """The error names the joint and how many its position has."""
    springs = {"j": {"stiffness": 1.0, "rest": [0.0, 0.0]}}
    message = r"(springs: j\b|'j').*rest needs 1 finite numbers"
    with pytest.raises(dyn.ModelError, match=message):
        dyn.load_urdf(PENDULUM, extras={"springs": springs})


def test_bad_forces_are_refused_in_words():
    """A ball has no coordinates for a spring; a function must give nv numbers."""
    ball = {
        "joints": {"j": {"type": "spherical"}},
        "springs": {"j": {"stiffness": 1.0}},
    }
    with pytest.raises(dyn.ModelError, match="no coordinates for a spring"):
        dyn.load_urdf(PENDULUM, extras=ball)
    for wrong in (lambda m, q, qd: [1.0, 2.0], lambda m, q, qd: 1.0):
        with pytest.raises(dyn.ModelError, match="must give 1 numbers"):
            dyn.solver("rnea").build(
                _pendulum().with_forces(wrong), joint_springs=True, engine="graph"
            )([0.0], [0.0], [0.0])


STRETCH = 0.2  # rest of the springs below [rad]


def _custom_spring(**more):
    """Return a pendulum without damping whose spring is a function of the user."""
    model = dyn.load_urdf(PENDULUM)
    return model.with_forces(lambda model, q, qd: [(q[0] - STRETCH) * -K], **more)


def _stored(model, q):
    return (q[0] - STRETCH) * (q[0] - STRETCH) * (K / 2)


def test_springs_store_energy():
    """An undamped spring swings without changing the recorded energy."""
    spring = {"springs": {"j": {"stiffness": K, "rest": STRETCH}}}
    models = dyn.load_urdf(PENDULUM, extras=spring), _custom_spring(potential=_stored)
    start = []
    for model in models:
        run = simulate(model, duration=0.5, q0=[0.9], step="rk4", engine="graph")
        assert np.ptp(run.energy) < 1e-6
        assert np.ptp(run.q) > 1.0
        assert run.warnings == ()
        start.append(run.energy[0])
    weight = -2 * 9.81 * 0.5 * math.cos(0.9)
    np.testing.assert_allclose(start, weight + K * 0.7**2 / 2)
    run = simulate(models[0], duration=0.01, q0=[0.9], joint_springs=False)
    np.testing.assert_allclose(run.energy[0], weight)


def test_forces_without_a_potential_are_no_energy():
    """energy refuses them by name; a Recording says what it leaves out."""
    model = dyn.load_urdf(PENDULUM)

    def wind(model, q, qd):
        return [1.0]

    blown = model.with_forces(wind)
    with pytest.raises(dyn.UnsupportedError, match="force 'wind' has no potential"):
        dyn.solver("energy").build(blown, joint_springs=True)
    without = dyn.solver("energy").build(blown, engine="graph")
    assert without([0.1], [0.0]).kinetic == 0.0
    run = simulate(blown, duration=0.004, engine="graph")
    assert "without that of the force 'wind'" in run.warnings[0]


def test_the_static_balance_holds_springs():
    """gravity with springs is the bias at rest; functions of the user are in it."""
    q = [0.7]
    balance = dyn.solver("gravity").build(
        _custom_spring(), joint_springs=True, engine="graph"
    )(q)
    weight = 2 * 9.81 * 0.5 * math.sin(q[0])
    np.testing.assert_allclose(balance, weight + K * (q[0] - STRETCH))
    with pytest.raises(dyn.UnsupportedError, match="joint_friction changes nothing"):
        dyn.solver("gravity").build(_custom_spring(), joint_friction=True)


def test_options_that_change_nothing_are_refused_in_words():
    """The sentence names solver, option, kind of problem, and what is valid."""
    model = _custom_spring()
    for name, option, message in (
        ("regressor", {"joint_friction": True}, "valid: neither friction nor springs"),
        ("gravity_compensation", {"joint_friction": True}, "valid: joint_springs"),
        (
            "crba",
            {"f_ext_frame": "base"},
            "mass_matrix, which takes no external forces",
        ),
        ("fd_derivatives", {"matrices": "banded"}, "valid: dense, packed, sparse"),
        ("jacobian", {"matrices": "packed"}, "in jacobian; valid: dense"),
    ):
        with pytest.raises(dyn.UnsupportedError, match=f"{name}: .*{message}"):
            dyn.solver(name).build(model, **option)


@pytest.mark.parametrize(
    ("kind", "rest", "said"),
    [
        ("revolute", 90.0, "is rest in degrees? the rest is beyond the limits of"),
        ("continuous", -90.0, "-90 rad, -14.3 turns; is rest in degrees?"),
        ("revolute", 2.5, ""),
        ("continuous", 6.5, ""),
        ("prismatic", 90.0, ""),
    ],
)
def test_a_rest_in_degrees_is_asked_for(kind, rest, said):
    """A spring may be preloaded beyond a limit, but not by turns."""
    limit = '<limit lower="-1.76" upper="1.76" effort="9" velocity="9"/>'
    urdf = PENDULUM.replace("continuous", kind).replace("</joint>", f"{limit}</joint>")
    springs = {"springs": {"j": {"stiffness": 100, "rest": rest}}}
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        issues = dyn.load_urdf(urdf, extras=springs).warnings
    assert len(issues) == len(issued) == bool(said)
    assert all(said in x and "extras: " in x and "joint j" in x for x in issues)


def test_an_armature_that_is_there_twice_is_refused():
    """The section won over the joint without a word; a rotor is added to either."""
    twice = {"joints": {"j": {"armature": 0.1}}, "armature": {"j": 0.15}}
    said = "extras: the armature of joint 'j' is there twice, in joints: j and in arm"
    with pytest.raises(dyn.ModelError, match=said):
        dyn.load_urdf(PENDULUM, extras=twice)
    rotor = {**twice, "rotors": {"j": {"inertia": 0.2}}}
    del rotor["armature"]
    model = dyn.load_urdf(PENDULUM, extras=rotor)
    assert model.flat("armature").tolist() == pytest.approx([0.3])
