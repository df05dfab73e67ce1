"""Derivatives of steps: closed robots, refusals, and the adjoint of a rollout."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.authoring import sin
from dyn_core.engines import available
from dyn_core.model.coordinates import velocity_of
from dyn_core.simulation import Rollout, close_loops, close_rates
from dyn_core.simulation.rollout import sweep
from dyn_core.spatial import Vector
from dyn_core.testing import TOLERANCES, random_model, scaled_error
from dyn_core.testing.case import Case, derivative
from dyn_core.testing.laws.step_laws import complex_slopes
from dyn_plugins.steps import step_derivatives

LAW, EXACT = TOLERANCES["law"], TOLERANCES["exact"]
LOOPS = {
    "derivatives": "fd_derivatives_loops",
    "by_parameters": "fd_parameter_jacobian_loops",
}
STEPS = "semi_implicit_euler", "rk4"


def _four_bars():
    """Return planar3 with its tip pinned to the base: three bars and the ground."""
    model = dyn.load_urdf(robots.path("planar3"))
    place, tip = {"xyz": (0.6, 0.0, 1.2)}, {"xyz": (0.3, 0.0, 0.0)}
    axes = ("x", "z")
    pin = dyn.make_loop("tip", "axes", "link3", at_b=tip, at_a=place, axes=axes)
    return model.with_loops(pin)


@pytest.mark.turns("engine")
@pytest.mark.parametrize("engine", available())
@pytest.mark.parametrize("name", [*STEPS, "projected_euler"])
def test_steps_of_closed_robots(name, engine):
    """A, B and dx_dp of a four-bar linkage are complex steps of its step."""
    model, rng = _four_bars(), np.random.default_rng(0)
    q = close_loops(model, rng.normal(size=model.nq), tries=20)
    solver = dyn.solver(f"{name}_derivatives")
    case = Case(solver, model, engine, rng)
    case.q, case.qd = q, close_rates(model, q, case.qd)
    slots = {} if name == "projected_euler" else LOOPS
    paths = ["gravity", f"{case.frame}.com"]
    program = case.program(paths=paths, inputs=["f_ext"], **slots)
    dt = np.array(1e-2)
    result = program(case.q, 0.02 * case.qd, case.qdd, dt, case.f_ext)
    options = {"inputs": ["f_ext"], "forward_dynamics": "aba_loops"}
    expected = complex_slopes(case, dyn.solver(name), paths, options)
    for part, other in zip(result, expected, strict=True):
        assert scaled_error(part, other) < LAW
    assert np.abs(result.dx_dp).max() > 1e-6


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_driven_robots(name):
    """A driven base moves in the step; dx_dp by the time agree with differences."""

    def pose(t):
        return None, (0.0, 0.0, 0.3 * sin(2.0 * t))

    model = dyn.load_urdf(robots.path("planar3")).drive("joint1", pose)
    rng, dt = np.random.default_rng(1), 1e-2
    state = model.random(rng), *rng.normal(size=(2, 3)), dt, 0.4
    build = dyn.solver(f"{name}_derivatives").build
    result = build(model, engine="graph", inputs=["time"], paths=["time"])(*state)
    step = dyn.solver(name).build(model, engine="graph", inputs=["time"])
    changes = rng.normal(size=(4, 3))

    def end(e):
        q, qd, tau = (x + e * d for x, d in zip(state[:3], changes[:3], strict=True))
        return np.concatenate(step(q, qd, tau, dt, 0.4 + e * changes[3, 0]))

    along = result.A @ changes[:2].ravel() + result.B @ changes[2]
    along = along + result.dx_dp[:, 0] * changes[3, 0]
    assert scaled_error(along, derivative(end, 1e-3)) < LAW
    assert np.abs(result.dx_dp).max() > 1e-6


@pytest.mark.turns("limit_stops")
@pytest.mark.parametrize("engine", ["plain", "graph", "native"])
@pytest.mark.parametrize("limit_stops", [False, True])
def test_stages_in_a_loop_are_the_stages_written_out(
    engine, limit_stops, monkeypatch, full
):
    """Of a random tree, with parameters, to rounding; of every kind of joint in --full.

    Written out, the steps of the robot with every joint are the longest to compile.
    """
    if engine not in available():
        pytest.skip(f"engine {engine} is not available here")
    rng, models = np.random.default_rng(6), [random_model(6, size=3)]
    if full:
        models.append(dyn.load_urdf(robots.path("every_joint")))
    for model in models:
        path = f"{model.frame_names[-1]}.com"
        options = {"paths": [path], "limit_stops": limit_stops}
        results, loops = [], []
        state = model.random(rng), *rng.normal(size=(2, model.nv)), np.array(0.02)
        for least in (0, 10**6):
            monkeypatch.setattr(step_derivatives, "ROLLED", least)
            build = dyn.solver("rk4_derivatives").build
            program = build(model, engine=engine, **options)
            results.append(program(*state))
            if engine != "plain":
                loops.append(program.graph.counts().get("loop", 0))
        assert loops in ([1, 0], [])
        step = dyn.solver("rk4").build(model, engine=engine, limit_stops=limit_stops)
        for part, other in zip(*results, strict=True):
            assert scaled_error(part, other) < EXACT
        for part, other in zip(results[0], step(*state), strict=False):
            assert scaled_error(part, other) < EXACT


@pytest.mark.parametrize("name", ["rk4", "rk4_derivatives"])
def test_a_stage_that_is_singular_is_named(name, monkeypatch):
    """In a loop as in Python, row by row: a link without mass."""
    monkeypatch.setattr(step_derivatives, "ROLLED", 0)
    model = dyn.load_urdf(robots.path("two_link"))
    state = np.ones((3, 2)), np.zeros((3, 2)), np.ones((3, 2)), np.array(0.01)
    mass = np.array([[1.0], [0.0], [1.0]])
    com = np.array([[0.1, 0.0, 0.0]] * 3)
    path = model.frame_names[-1]
    inputs = [f"{path}.mass", f"{path}.com", f"{path}.inertia"]
    inertia = mass * np.array([[1e-2, 0.0, 0.0, 1e-2, 0.0, 1e-2]])
    said = set()
    for engine in available():
        program = dyn.solver(name).build(model, engine=engine, inputs=inputs)
        sizes = {port.name: port for port in program.inputs[4:]}
        values = dict(zip(inputs, (mass, com, inertia), strict=True))
        extra = [values[x].reshape(3, *sizes[x].shape) for x in sizes]
        with pytest.raises(dyn.SingularError) as caught:
            program(*state, *extra)
        assert caught.value.rows == (1,)
        said.add(caught.value.item)
        with pytest.raises(dyn.SingularError, match=caught.value.item):
            program(*[x[1] if x.ndim else x for x in (*state, *extra)])
    assert len(said) == 1


def _cost(model, states, weights):
    """Return a cost of states and its gradients by displacements and velocities."""
    cost = (weights * states.q).sum() + (states.qd**2).sum() / 2
    units = np.eye(model.nv)
    by_q = [
        [w @ model.position_rate(q, e) for e in units]
        for q, w in zip(states.q, weights, strict=True)
    ]
    return cost, np.array(by_q), states.qd


def _rollouts():
    floating, tied = random_model(6, size=3), _four_bars()
    start = close_loops(tied, np.ones(3), tries=20)
    rng = np.random.default_rng(2)
    return {
        "floating": (floating, "semi_implicit_euler", {}, floating.random(rng)),
        "named": (tied, "rk4", {"derivative_options": LOOPS}, start),
        "rk4": (dyn.load_urdf(robots.path("two_link")), "rk4", {}, np.ones(2)),
        "tied": (tied, "semi_implicit_euler", {}, start),
        "projected": (tied, "projected_euler", {}, start),
    }


@pytest.mark.parametrize("which", ["floating", "named", "rk4", "tied", "projected"])
def test_the_adjoint_is_the_gradient_of_the_rollout(which):
    """Gradients by start, joint forces and parameters are differences of the cost."""
    model, step, options, q0 = _rollouts()[which]
    rng, count, nv = np.random.default_rng(3), 6, model.nv
    path = f"{model.frame_names[-1]}.com"

    def rollout(model):
        return Rollout(model, step, paths=[path], engine="graph", **options)

    qd0 = 0.1 * rng.normal(size=nv)
    tau, weights = rng.normal(size=(count, nv)), rng.normal(size=(count + 1, model.nq))
    base = rollout(model)
    dt = 0.01 * (1 + rng.random(count))
    states = base.run(q0, qd0, tau, dt)
    _, by_q, by_qd = _cost(model, states, weights)
    result = base.gradients(states, tau, dt, by_q, by_qd, tau)
    dq, dqd, dtau = rng.normal(size=nv), rng.normal(size=nv), rng.normal(size=tau.shape)

    def cost_at(q0, qd0, tau, rollout=base):
        states = rollout.run(q0, qd0, tau, dt)
        return _cost(model, states, weights)[0] + (tau**2).sum() / 2

    for along, function in (
        (result.q0 @ dq, lambda e: cost_at(model.integrate(q0, e * dq), qd0, tau)),
        (result.qd0 @ dqd, lambda e: cost_at(q0, qd0 + e * dqd, tau)),
        ((result.tau * dtau).sum(), lambda e: cost_at(q0, qd0, tau + e * dtau)),
    ):
        assert scaled_error(along, derivative(function, 1e-3)) < LAW
    dp, value = np.array((0.3, -0.2, 0.5)), model.value(path)

    def moved(e):
        changed = rollout(model.with_values({path: (value + e * dp).tolist()}))
        return cost_at(q0, qd0, tau, changed)

    assert scaled_error(result.p @ dp, derivative(moved, 1e-3)) < LAW


BALL = """<robot name="ball"><link name="ball"><inertial><mass value="1"/>
<inertia ixx="0.004" iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="0.1"/></geometry></collision></link></robot>"""


def test_steps_with_contacts_roll_out():
    """A ball slides in the floor: impulses are passed on, gradients are differences."""
    model, dt = dyn.load_urdf(BALL, root_joint="floating"), 0.001 * np.arange(5.0, 9.0)
    exact = {"solver_options": {"tolerance": 1e-14, "max_iterations": 10_000}}
    choices = {"paths": ["gravity"], "engine": "graph", **exact}
    rollout = Rollout(model, "contact_euler", **choices)
    rng = np.random.default_rng(5)
    q0, qd0 = model.neutral(), np.array([1.0, 5.0, 3.0, 2.0, 0.3, -0.2])
    q0[2] = 0.099
    tau, weights = 0.1 * rng.normal(size=(4, 6)), rng.normal(size=(5, 7))
    states = rollout.run(q0, qd0, tau, dt)
    warm = np.zeros(3)
    for k in range(4):
        result = rollout.program(states.q[k], states.qd[k], tau[k], dt[k], warm)
        warm = result.impulse
        assert np.array_equal(states.impulse[k], warm)
    linear = rollout.linearize(states, tau, dt)
    assert linear.not_differentiable.tolist() == [0.0] * 4
    cold = rollout.linearize(states._replace(impulse=None), tau, dt)
    assert scaled_error(cold.A, linear.A) < 1e-9
    _, by_q, by_qd = _cost(model, states, weights)
    result = rollout.gradients(states, tau, dt, by_q, by_qd)
    dqd, dtau, dp = rng.normal(size=6), rng.normal(size=tau.shape), rng.normal(size=3)

    def cost_at(qd0, tau, model=model, rollout=rollout):
        return _cost(model, rollout.run(q0, qd0, tau, dt), weights)[0]

    def under(e):
        gravity = (np.array([0.0, 0.0, -9.81]) + e * dp).tolist()
        other = model.with_values({"gravity": gravity})
        return cost_at(qd0, tau, other, Rollout(other, "contact_euler", **choices))

    for along, function in (
        (result.qd0 @ dqd, lambda e: cost_at(qd0 + e * dqd, tau)),
        ((result.tau * dtau).sum(), lambda e: cost_at(qd0, tau + e * dtau)),
        (result.p @ dp, under),
    ):
        assert scaled_error(along, derivative(function, 1e-4)) < 1e-7
    with pytest.raises(dyn.ShapeError, match=r"impulse: wanted shape \(4, 3\)"):
        rollout.linearize(states._replace(impulse=states.impulse[1:]), tau, dt)
    with pytest.raises(dyn.SignatureError, match="step or contact_step"):
        Rollout(model, "aba")


def test_options_of_a_step_are_those_of_its_derivatives():
    """A step with other options is differentiated with them."""
    model = dyn.load_urdf(robots.path("planar3"), gravity=(0.0, 0.0, 0.0))
    model = model.with_values({"joint1.damping": [5.0]})
    explicit = dyn.solver("semi_implicit_euler").with_options(implicit=False)
    friction = {"engine": "graph", "joint_friction": True}
    rollout, other = (
        Rollout(model, step, **friction) for step in (explicit, explicit.name)
    )
    tau = np.ones((1, 3))
    start = np.zeros(3), np.ones(3)
    states = rollout.run(*start, tau, 0.01)
    result = rollout.derivatives(*start, tau[0], 0.01)
    assert scaled_error(result.qd_next, states.qd[1]) < EXACT
    apart = other.derivatives(*start, tau[0], 0.01).qd_next - result.qd_next
    assert np.abs(apart).max() > 1e-3


def test_the_sweep_is_a_product_of_all_steps():
    """y[0] = c[0] + A[0].T (c[1] + A[1].T c[2]); a step of its own length each."""
    model = dyn.load_urdf(robots.path("planar3"))
    rollout = Rollout(model, engine="graph")
    rng = np.random.default_rng(4)
    tau, dt = rng.normal(size=(2, 3)), np.array((0.01, 0.02))
    states = rollout.run(np.ones(3), np.zeros(3), tau, dt)
    linear = rollout.linearize(states, tau, dt)
    alone = rollout.derivatives(states.q[1], states.qd[1], tau[1], 0.02)
    assert np.array_equal(linear.A[1], alone.A)
    c = rng.normal(size=(3, 6))
    result = sweep(linear, c[:, :3], c[:, 3:])
    y1 = c[1] + linear.A[1].T @ c[2]
    start = np.concatenate([result.q0, result.qd0])
    assert scaled_error(start, c[0] + linear.A[0].T @ y1) < EXACT
    expected = [linear.B[0].T @ y1, linear.B[1].T @ c[2]]
    assert scaled_error(result.tau, expected) < EXACT


def test_mistakes_are_named():
    """Paths without a derivative, forces fixed elsewhere and wrong shapes: in words."""
    model = dyn.load_urdf(robots.path("planar3"))
    build = dyn.solver("semi_implicit_euler_derivatives").build
    for choices, said in (
        ({"paths": "gravity"}, r"valid: paths=\['gravity'\]"),
        ({"paths": ["joint1.damping"]}, "valid: joint_friction=True"),
        ({"paths": ["time"]}, "no joint is driven"),
        ({"inputs": ["f_ext"], "f_ext_frame": "base"}, "valid: 'body'"),
    ):
        with pytest.raises(dyn.UnsupportedError, match=said):
            build(model, **choices)
    with pytest.raises(dyn.ModelError, match="no link is called"):
        build(model, paths=["link9.mass"])
    rollout = Rollout(model, engine="graph")
    with pytest.raises(dyn.ShapeError, match=r"tau: wanted shape \(N, 3\)"):
        rollout.run(np.zeros(3), np.zeros(3), np.zeros((4, 2)), 0.01)
    with pytest.raises(dyn.ShapeError, match="dt: wanted a number"):
        rollout.run(np.zeros(3), np.zeros(3), np.zeros((4, 3)), np.zeros(3))
    states = rollout.run(np.zeros(3), np.zeros(3), np.zeros((4, 3)), 0.01)
    with pytest.raises(dyn.ShapeError, match=r"by_q: wanted shape \(5, 3\)"):
        rollout.gradients(states, np.zeros((4, 3)), 0.01, states.q[1:], states.qd)
    with pytest.raises(dyn.SignatureError):
        Rollout(model, "aba")


@pytest.mark.parametrize("robot", ["every_joint", "quadruped"])
def test_velocities_undo_rates(robot, shipped):
    """velocity_of(q, position_rate(q, v)) = v for every joint."""
    model, rng = shipped[robot], np.random.default_rng(5)
    q, v = model.random(rng), rng.normal(size=model.nv)
    rate = model.position_rate(q, v)
    back = velocity_of(model, Vector(q.tolist()), Vector(rate.tolist()))
    assert scaled_error(list(back), v) < EXACT
