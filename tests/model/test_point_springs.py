"""Springs and dampers between points of two links, against energy and MuJoCo."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.simulation.simulator import simulate
from dyn_core.testing.case import derivative

SPRINGS = [
    {
        "a": "link2",
        "b": "link5",
        "at_a": [0.1, 0, 0.05],
        "at_b": [0, 0.2, 0],
        "stiffness": 120.0,
        "rest_length": 0.15,
    },
    {"name": "stay", "b": "link7", "at_a": [0.5, 0.4, 0.3], "stiffness": 30.0},
]
DAMPER = {
    "name": "damper",
    "a": "link1",
    "b": "link6",
    "at_b": [0.1, 0, 0],
    "damping": 4.0,
}
CHOICES = {"engine": "graph", "joint_springs": True}


def _arm(*springs, **choices):
    path = dyn.robots.path("arm7")
    return dyn.load_urdf(path, extras={"point_springs": list(springs)}, **choices)


@pytest.fixture(scope="module")
def arm():
    """Return an arm with two springs and a damper."""
    return _arm(*SPRINGS, DAMPER)


def _state(model, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, model.nv), *rng.normal(size=(2, model.nv))


def _points(model, spring, q):
    """Return both points of a spring in the base, from poses of links."""
    frames = [spring[key] for key in ("a", "b") if spring.get(key)]
    poses = dyn.solver("forward_kinematics").build(model, engine="graph", frames=frames)
    places = dict(zip(frames, np.asarray(poses(q)).reshape(-1, 4, 4), strict=True))
    points = []
    for link, key in (("a", "at_a"), ("b", "at_b")):
        x = np.array([*spring.get(key, (0, 0, 0)), 1.0])
        name = spring.get(link)
        points.append(x[:3] if name is None else (places[name] @ x)[:3])
    return points


def test_forces_are_slopes_of_the_energy(arm):
    """k (l - rest)²/2 from positions of links alone; its slopes are the forces."""
    q, _, _ = _state(arm)
    energy = dyn.solver("energy").build(arm, **CHOICES)
    bare = dyn.solver("energy").build(arm, engine="graph")

    def stored(q):
        total = 0.0
        for spring in SPRINGS:
            a, b = _points(arm, spring, q)
            length = np.linalg.norm(b - a) - spring.get("rest_length", 0.0)
            total += spring["stiffness"] * length**2 / 2
        return total

    still = np.zeros(arm.nv)
    np.testing.assert_allclose(
        energy(q, still).potential - bare(q, still).potential, stored(q), rtol=1e-12
    )
    rnea = dyn.solver("rnea").build(arm, **CHOICES)
    smooth = dyn.solver("rnea").build(arm, engine="graph")
    got = rnea(q, still, still) - smooth(q, still, still)
    wanted = [derivative(lambda t, e=e: stored(q + t * e)) for e in np.eye(arm.nv)]
    np.testing.assert_allclose(got, wanted, atol=1e-7)
    gravity = dyn.solver("gravity").build(arm, **CHOICES)
    np.testing.assert_allclose(gravity(q), rnea(q, still, still), atol=1e-10)


def test_a_damper_takes_what_its_ends_move_apart(arm):
    """Power = c (dl/dt)², of the damper alone."""
    model = _arm(DAMPER)
    q, qd, still = *_state(model)[:2], np.zeros(model.nv)
    rnea = dyn.solver("rnea").build(model, **CHOICES)
    smooth = dyn.solver("rnea").build(model, engine="graph")
    power = (rnea(q, qd, still) - smooth(q, qd, still)) @ qd

    def length(t):
        a, b = _points(model, DAMPER, q + t * qd)
        return np.linalg.norm(b - a)

    np.testing.assert_allclose(power, 4.0 * derivative(length) ** 2, rtol=1e-7)
    assert power > 0.01


@pytest.mark.parametrize("problem", ["id", "fd"])
def test_derivatives_know_them(arm, problem):
    """dtau_dq, dtau_dqd, dqdd_dq, dqdd_dqd, and those along directions."""
    q, qd, third = _state(arm, 1)
    name = {"id": "rnea", "fd": "aba"}[problem]
    function = dyn.solver(name).build(arm, **CHOICES)
    slopes = dyn.solver(f"{problem}_derivatives").build(arm, **CHOICES)(q, qd, third)
    by_q, by_qd = (slopes[0], slopes[1]) if problem == "id" else (slopes[1], slopes[2])
    dq, dqd = np.random.default_rng(2).normal(size=(2, arm.nv))
    wanted_q = derivative(lambda t: function(q + t * dq, qd, third))
    wanted_qd = derivative(lambda t: function(q, qd + t * dqd, third))
    scale = 1e-7 * max(1.0, np.abs(wanted_q).max())
    np.testing.assert_allclose(by_q @ dq, wanted_q, atol=scale)
    np.testing.assert_allclose(by_qd @ dqd, wanted_qd, atol=scale)
    along = dyn.solver(f"{problem}_directional").build(arm, **CHOICES)
    got = along(q, qd, third, dq, dqd, np.zeros(arm.nv))[1]
    np.testing.assert_allclose(got, wanted_q + wanted_qd, atol=2 * scale)
    undone = dyn.solver("rnea").build(arm, **CHOICES)
    if problem == "fd":
        np.testing.assert_allclose(undone(q, qd, function(q, qd, third)), third)


def test_energy_is_kept_and_the_springs_survive_changes(arm):
    """An undamped run keeps its energy; locking and floating keep the springs."""
    model = _arm(*SPRINGS)
    run = simulate(
        model,
        duration=0.1,
        period=1e-3,
        step="rk4",
        q0=_state(model)[0],
        engine="graph",
        joint_friction=False,
        limit_stops=False,
    )
    assert np.ptp(run.energy) < 1e-6 * max(1.0, abs(run.energy).max())
    assert np.ptp(run.q, axis=0).max() > 1e-2
    assert run.warnings == ()
    q = _state(model)[0]
    locked = model.lock({"joint7": q[6]})
    for robot, place in ((model, q), (locked, q[:6])):
        g = dyn.solver("gravity").build(robot, **CHOICES)(place)
        np.testing.assert_allclose(
            g[:6], dyn.solver("gravity").build(model, **CHOICES)(q)[:6], atol=1e-9
        )


def test_ends_that_coincide_have_no_direction():
    """A slack point has no force without a rest length; else the spring is named."""
    spring = {"b": "link1", "stiffness": 50.0}
    frame = _arm(spring).frame("link1")
    q, still = np.zeros(7), np.zeros(7)
    a, _ = _points(_arm(spring), {"b": "link1", "a": "link1"}, q)
    assert frame.body == 1
    free = dyn.solver("rnea").build(_arm({**spring, "at_a": a.tolist()}), **CHOICES)
    bare = dyn.solver("rnea").build(_arm(), engine="graph")
    np.testing.assert_allclose(free(q, still, still), bare(q, still, still), atol=1e-9)
    for more in ({"rest_length": 0.1}, {"damping": 1.0}):
        model = _arm({**spring, **more, "at_a": a.tolist(), "name": "stay"})
        for engine in ("graph", "plain"):
            program = dyn.solver("rnea").build(model, engine=engine, joint_springs=True)
            with pytest.raises(dyn.SingularError, match="spring stay: its ends coinci"):
                program(q, still, still)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"b": "link9", "damping": 1.0}, "no link is called 'link9'"),
        ({"b": "link1", "a": "x", "damping": 1.0}, "no link is called 'x'"),
        ({"b": "link1"}, "stiffness and damping are 0; valid: one of them above 0"),
        ({"b": "link1", "damping": 1.0, "rest_length": 0.1}, "changes nothing without"),
    ],
)
def test_bad_entries_are_refused_in_words(entry, message):
    """The error names the entry and what is valid."""
    with pytest.raises(dyn.ModelError, match=message):
        _arm(entry)
    with pytest.raises(dyn.ModelError, match="two <point spring>s are called 's'"):
        _arm(*({"name": "s", "b": b, "damping": 1.0} for b in ("link1", "link2")))


def test_mujoco_agrees_on_a_tendon():
    """A spatial tendon with stiffness, rest length and damping: passive forces."""
    mujoco = pytest.importorskip("mujoco")
    xml = """<mujoco><worldbody><site name="s0" pos=".3 .2 .1"/><body name="l1">
    <joint name="j1" axis="0 0 1"/><inertial pos=".2 0 0" mass="1"
    diaginertia=".1 .1 .1"/><body name="l2" pos=".5 0 0"><joint name="j2"
    axis="0 1 0"/><inertial pos=".2 0 0" mass="1" diaginertia=".1 .1 .1"/>
    <site name="s2" pos=".3 0 .1"/></body></body></worldbody><tendon>
    <spatial stiffness="80" damping="3" springlength=".2"><site site="s0"/>
    <site site="s2"/></spatial></tendon></mujoco>"""
    inertial = (
        "<inertial><origin xyz='.2 0 0'/><mass value='1'/><inertia ixx='.1' iyy='.1'"
        " izz='.1' ixy='0' ixz='0' iyz='0'/></inertial>"
    )
    urdf = (
        "<robot name='r'><link name='base'/>"
        f"<link name='l1'>{inertial}</link><link name='l2'>{inertial}</link>"
        "<joint name='j1' type='continuous'><parent link='base'/><child link='l1'/>"
        "<axis xyz='0 0 1'/></joint><joint name='j2' type='continuous'>"
        "<parent link='l1'/><child link='l2'/><origin xyz='.5 0 0'/>"
        "<axis xyz='0 1 0'/></joint></robot>"
    )
    spring = {
        "b": "l2",
        "at_a": [0.3, 0.2, 0.1],
        "at_b": [0.3, 0, 0.1],
        "stiffness": 80.0,
        "damping": 3.0,
        "rest_length": 0.2,
    }
    model = dyn.load_urdf(urdf, extras={"point_springs": [spring]})
    peer = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(peer)
    data.qpos[:], data.qvel[:] = q, qd = np.array([[0.4, -0.7], [1.1, -0.6]])
    mujoco.mj_forward(peer, data)
    still = np.zeros(2)
    taken = dyn.solver("rnea").build(model, **CHOICES)(q, qd, still)
    taken = taken - dyn.solver("rnea").build(model, engine="graph")(q, qd, still)
    np.testing.assert_allclose(-taken, data.qfrc_passive, atol=1e-10)
