"""Compiled derivatives of steps with contacts: differences, closed forms, borders."""

from functools import cache

import numpy as np
import pytest
from contact_bodies import (
    box,
    free_box,
    joint,
    link,
    planar_rod,
    point_mass,
    robot,
    sphere,
)

import dyn_core as dyn
from dyn_core import robots
from dyn_core.contact.collision.halfspaces import HalfSpace
from dyn_core.contact.derivatives import step_derivatives
from dyn_core.model import parameter_paths
from dyn_core.simulation.rollout import Rollout
from dyn_core.testing.case import derivative

H = 0.01
EXACT = {"solver_options": {"tolerance": 1e-15, "max_iterations": 50_000}}
SEPARATE, STICK, SLIP = 0.0, 1.0, 2.0
STEPS = ("contact_euler", "contact_anitescu_potra", "contact_moreau_jean")


def _mu(value, **more):
    return {"materials": {"default": {"mu": value, **more}}}


def _step(model, name="contact_euler", **choices):
    """Return the Program of a step."""
    return dyn.solver(name).build(model, **{"engine": "native", **EXACT, **choices})


def _derivatives(model, name="contact_euler", **choices):
    """Return the Program of the derivatives of a step."""
    return _step(model, f"{name}_derivatives", **choices)


def _built(model, name="contact_euler", **choices):
    """Return the Programs of a step and of its derivatives."""
    return _step(model, name, **choices), _derivatives(model, name, **choices)


def _warm(program):
    return np.zeros(next(p.size for p in program.inputs if p.name == "warm"))


def _end(model, start, result):
    """Return the state after a step as a displacement from that of `start`."""
    shift = model.difference(start.q_next, result.q_next)
    return np.concatenate([shift, result.qd_next])


def _assert_differences(model, step, result, state, f_ext=(), size=1e-6, count=None):
    """Compare A and B with eighth-order differences of a step.

    Along each coordinate, or along `count` random directions.
    """
    q, qd, tau = state
    start, nv = step(q, qd, tau, H, _warm(step), *f_ext), model.nv
    scales = np.repeat([1.0, 1.0, 100.0], nv)  # a force changes little
    directions = np.eye(3 * nv)
    if count is not None:
        directions = np.random.default_rng(9).normal(size=(count, 3 * nv)) / 3

    def end(x, e):
        dq, dqd, dtau = np.split(x * scales * e, 3)
        moved = model.integrate(q, dq), qd + dqd, tau + dtau
        return _end(model, start, step(*moved, H, start.impulse, *f_ext))

    for e in directions:
        along = np.hstack([result.A, result.B]) @ (scales * e)
        _assert_close(along, derivative(lambda x, e=e: end(x, e), size))


def _assert_close(got, wanted, tolerance=1e-6):
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    np.testing.assert_allclose(got / scale, wanted / scale, rtol=0, atol=tolerance)


def _shape(kind, **more):
    return {"type": kind, "xyz": [0, 0, 0], **more}


def _floating(shape, mu):
    """Return a floating body of one shape, its centre of mass aside."""
    return robot(
        link("body", 1.5, (0.02, 0.03, 0.04), box(0.1, 0.1, 0.1), xyz=(0.02, 0.01, 0)),
        joint("free", "floating", "base", "body"),
        collisions={"body": {"replace": [shape]}},
        **_mu(mu),
    )


FEET = [
    _shape("sphere", radius=0.02) | {"xyz": [x, y, -0.23]}
    for x, y in ((0.5, 0.0), (-0.4, 0.4), (-0.5, -0.3))
]
UP = [0.0, 0.0, 0.0, 1.0]
TILTED = (
    np.array([0.1, -0.15, 0.2, 1.0]) / np.linalg.norm([0.1, -0.15, 0.2, 1.0])
).tolist()


def _tripod(mu):
    return free_box(**_mu(mu), collisions={"box": {"replace": FEET}})


# by name: robot by mu, q, qd, mu, modes of the contacts that touch
CASES = {
    "rod sticks": (lambda mu: planar_rod(**_mu(mu)), [0, 0.499, np.pi / 6], [0.1, -0.5, 0.2], 0.9, {STICK}),
    "rod slips": (lambda mu: planar_rod(**_mu(mu)), [0, 0.499, np.pi / 6], [2.0, -0.5, 0.2], 0.1, {SLIP}),
    "rod flies": (lambda mu: planar_rod(**_mu(mu)), [0, 0.51, np.pi / 6], [0, 1.5, 0.0], 0.5, {SEPARATE}),
    "rod lands": (lambda mu: planar_rod(**_mu(mu)), [0, 0.502, np.pi / 6], [0.1, -0.9, 0.2], 0.9, {STICK}),
    "tripod slides": (_tripod, [0, 0, 0.249, *UP], [0, 0, 0.3, 1.0, 0.5, -0.1], 0.3, {SLIP}),
    "tripod lands": (_tripod, [0, 0, 0.253, *UP], [0.01, 0, 0.3, 0.0, 0.1, -0.9], 0.7, {STICK}),
    "ball rolls": (lambda mu: _floating(_shape("sphere", radius=0.1), mu), [0, 0, 0.099, *TILTED], [1, 0.5, 0.3, 0, 0, -0.2], 0.8, {STICK}),
    "ball slips": (lambda mu: _floating(_shape("sphere", radius=0.1), mu), [0, 0, 0.099, *UP], [1, 5, 3.0, 2, 0.3, -0.2], 0.2, {SLIP}),
    "capsule rolls": (lambda mu: _floating(_shape("capsule", radius=0.1, length=0.4, rpy=[0, np.pi / 2, 0]), mu), [0, 0, 0.099, *UP], [1, 0, 0, 0, 0, -0.1], 0.8, {STICK}),
    "cylinder on its rim": (lambda mu: _floating(_shape("cylinder", radius=0.1, length=0.3), mu), [0, 0, 0.16, *TILTED], [0.3, 0.1, 2.0, 0.2, 0, -0.6], 0.8, {STICK, SEPARATE}),
    "cylinder slips": (lambda mu: _floating(_shape("cylinder", radius=0.1, length=0.3), mu), [0, 0, 0.16, *TILTED], [0.3, 0.1, 2.0, 2.0, 1, -3.0], 0.1, {SLIP, SEPARATE}),
    "box sticks on four corners": (lambda mu: free_box(**_mu(mu)), [0, 0, 0.249, *UP], [0, 0, 0, 0.0, 0.01, 0], 0.5, {STICK, SEPARATE}),
    "box on an edge": (lambda mu: free_box(**_mu(mu)), [0, 0, 0.37, 0, 0.2588190451, 0, 0.9659258263], [0, 0, 0.01, 3.0, 0.01, -3], 0.3, {SLIP, SEPARATE}),
}  # fmt: skip


def _state(name):
    """Return the robot of a case and its q, qd and tau; cylinders touch by 1 mm."""
    make, q, qd, mu, _ = CASES[name]
    model, q, qd = make(mu), np.array(q, float), np.array(qd, float)
    if name.startswith("cylinder"):
        step = _step(model, engine="graph")
        q[2] -= step(q, qd, 0 * qd, H, _warm(step)).gap.min() + 1e-3
    return model, q, qd, np.zeros(model.nv)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_differences_of_the_step(name):
    """By state, joint forces, friction coefficients and gaps, in each mode.

    A second implementation, that of any scene, has the same ones.
    """
    make, mu, modes = *CASES[name][::3], CASES[name][4]
    model, q, qd, tau = _state(name)
    step, program = _built(model)
    result = program(q, qd, tau, H, _warm(program))
    start = step(q, qd, tau, H, _warm(step))
    assert set(result.modes) == modes
    assert not result.not_differentiable
    for field in ("q_next", "qd_next", "impulse", "gap", "status"):
        _assert_close(getattr(result, field), getattr(start, field), 1e-9)
    _assert_differences(model, step, result, (q, qd, tau))
    warm = start.impulse

    def by_mu(x):
        other = _step(make(mu + x), engine="graph")
        return _end(model, start, other(q, qd, tau, H, warm))

    def by_gap(x):
        floor = (HalfSpace("floor", (0.0, 0.0, -x)),)
        other = _step(model, world=floor, engine="graph")
        return _end(model, start, other(q, qd, tau, H, warm))

    for function, slopes in ((by_mu, result.dx_dmu), (by_gap, result.dx_dgap)):
        change = (function(1e-5) - function(-1e-5)) / 2e-5
        _assert_close(slopes.sum(axis=1), change)

    world = {"stabilisation": "baumgarte", "solver_options": {"tolerance": 1e-13}}
    other = step_derivatives(dyn.authoring.ContactModel(model, world), q, qd, tau, H)
    _assert_close(result.A, other.A)
    _assert_close(result.B, other.B)
    _assert_close(result.dx_dmu.sum(axis=1), other.dx_dmu.sum(axis=1))
    assert other.not_differentiable == result.not_differentiable


def test_a_point_slides_to_a_stop():
    """d distance / d mu = -g dt² n (n + 1) / 2 of n sliding steps, about -v² / 2 g mu²."""
    mu, speed, g, dt = 0.4, 1.0, 9.81, 1e-3
    model = point_mass(**_mu(mu))
    program = _derivatives(model)
    q, qd, tau, warm = np.zeros(2), np.array([speed, 0.0]), np.zeros(2), _warm(program)
    slope, n = np.zeros(4), 0
    for _ in range(400):
        result = program(q, qd, tau, dt, warm)
        assert result.not_differentiable == 2.0  # at gap 0 all the way
        slope = result.A @ slope + result.dx_dmu.sum(axis=1)
        n += int(result.modes[0] == SLIP)
        q, qd, warm = result.q_next, result.qd_next, result.impulse
    assert result.modes == STICK
    np.testing.assert_allclose(slope[0], -g * dt**2 * n * (n + 1) / 2, rtol=1e-9)
    np.testing.assert_allclose(slope[0], -(speed**2) / (2 * g * mu**2), rtol=1e-2)
    np.testing.assert_allclose(slope[2:], 0, atol=1e-9)


def test_a_sliding_point_feels_forces_in_closed_form():
    """v' = v + dt (f_x - mu (m g - f_z)) / m; nothing moves a point that sticks."""
    for mu, speed in ((0.3, 1.0), (0.5, 0.0)):
        program = _derivatives(point_mass(**_mu(mu)))
        q, qd = np.zeros(2), np.array([speed, 0.0])
        result = program(q, qd, np.zeros(2), H, _warm(program))
        slip = [[H, mu * H], [0, 0]] if speed else np.zeros((2, 2))
        np.testing.assert_allclose(result.B[2:], slip, atol=1e-12)
        np.testing.assert_allclose(result.dx_dmu[2, 0], -9.81 * H * bool(speed))


def _biped(mu, tilt=0.2):
    """Return a floating trunk on two legs with box feet; axes tilted by joint."""
    parts = [link("trunk", 8.0, (0.1, 0.09, 0.06), xyz=(0, 0, 0.2))]
    parts.append(joint("free", "floating", "base", "trunk"))
    for side, y in (("left", 0.1), ("right", -0.1)):
        thigh, shank, foot = (f"{side}_{x}" for x in ("thigh", "shank", "foot"))
        parts += [
            link(thigh, 1.5, (0.02, 0.02, 0.004), xyz=(0, 0, -0.15)),
            link(shank, 1.2, (0.015, 0.015, 0.003), xyz=(0, 0, -0.15)),
            link(foot, 0.6, (0.001, 0.003, 0.003), box(0.2, 0.1, 0.04), (0.02, 0, -0.03), (0.03, 0, -0.04)),
            joint(f"{side}_hip", "revolute", "trunk", thigh, (tilt, 1, 0), (0, y, 0)),
            joint(f"{side}_knee", "revolute", thigh, shank, (0, 1, 0), (0, 0, -0.3)),
            joint(f"{side}_ankle", "revolute", shank, foot, (1.5 * tilt, 1, 0), (0, 0, -0.3)),
        ]  # fmt: skip
    return robot(*parts, **_mu(mu))


def _quadruped(mu):
    return dyn.load_urdf(
        robots.path("quadruped"), root_joint="floating", extras=_mu(mu)
    )


@cache
def _walker(mu=0.9):
    """Return a floating trunk on three legs of one joint, with balls as feet."""
    parts = [link("trunk", 4.0, (0.06, 0.05, 0.08), xyz=(0.01, 0, 0.05))]
    parts.append(joint("free", "floating", "base", "trunk"))
    for k, (x, y) in enumerate(((0.2, 0.02), (-0.15, 0.15), (-0.15, -0.17))):
        parts += [
            link(f"leg{k}", 0.5, (0.004, 0.004, 0.001), sphere(0.02), (0, 0, -0.12), (0, 0, -0.3)),
            joint(f"hip{k}", "revolute", "trunk", f"leg{k}", (0.2 * k, 1, 0), (x, y, 0)),
        ]  # fmt: skip
    return robot(*parts, **_mu(mu))


@cache
def _walking(name="contact_euler"):
    """Return the Programs of a step of the walker and of its derivatives."""
    return _built(_walker(), name, erp=0.3)


def _random_states(model, step, rng, count):
    """Yield states whose lowest point is a little in the floor."""
    for _ in range(count):
        q = model.integrate(model.neutral(), 0.15 * rng.normal(size=model.nv))
        qd = 0.4 * rng.normal(size=model.nv)
        tau = 3.0 * rng.normal(size=model.nv)
        tau[:6] = 0.0
        gap = step(q, qd, tau, H, _warm(step)).gap
        q = q.copy()
        q[2] -= np.sort(gap)[rng.integers(0, 3)] + 1e-3
        yield q, qd, tau


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("name", "mu", "make"),
    [
        ("contact_euler", 0.2, _walker),
        *((name, 0.9, _walker) for name in STEPS),
        *(
            pytest.param("contact_euler", 0.2, make, marks=pytest.mark.full)
            for make in (_biped, _quadruped)
        ),
        *(
            pytest.param(name, 0.9, make, marks=pytest.mark.full)
            for make in (_biped, _quadruped)
            for name in STEPS
        ),
    ],
)
def test_random_states_of_robots_on_their_feet(make, mu, name):
    """Stick, slip, separate and mixed modes of several bodies, by all steps.

    With --full the quadruped, too, and the biped, whose corners that stick depend on
    each other: they take long to build and to solve.
    """
    model, rng = make(mu), np.random.default_rng(16)
    shared = make is _walker and mu == 0.9
    step, program = _walking(name) if shared else _built(model, name, erp=0.3)
    seen, count = set(), 0
    for q, qd, tau in _random_states(model, step, rng, 6):
        result = program(q, qd, tau, H, _warm(program))
        assert all(np.isfinite(np.asarray(x)).all() for x in result)
        if result.not_differentiable:
            continue
        state = q, qd, tau
        _assert_differences(model, step, result, state, size=1e-7, count=4)
        seen |= set(result.modes)
        count += 1
    assert count >= 3
    assert seen >= {SEPARATE, SLIP if mu < 0.5 else STICK}


def test_flat_box_feet_have_one_derivative():
    """Eight sticking corners in the floor, on legs that move in planes: rank 9 of 24."""
    model, rng = _biped(0.9, 0.0), np.random.default_rng(1)
    step, program = _built(model)
    q, tau = model.neutral(), 0.3 * rng.normal(size=model.nv)
    q[7:], tau[:6] = [-0.4, 0.8, -0.4] * 2, 0.0
    q[2] = 0.6 * np.cos(0.4) + 0.06 - 5e-4
    qd = 1e-3 * rng.normal(size=model.nv)
    result = program(q, qd, tau, H, _warm(program))
    assert sorted(result.modes) == [SEPARATE] * 8 + [STICK] * 8
    assert not result.not_differentiable
    _assert_differences(model, step, result, (q, qd, tau), count=2)


def test_rows_that_depend_only_here_are_flagged():
    """Straight legs whose axes are parallel to the floor, but not beside this state."""
    model = _biped(0.9)
    program = _derivatives(model)
    q, still = model.neutral(), np.zeros(model.nv)
    q[2] = 0.66 - 5e-4
    result = program(q, still, still, H, _warm(program))
    assert all(np.isfinite(np.asarray(x)).all() for x in result)
    assert result.not_differentiable


@pytest.mark.turns("restitution")
@pytest.mark.parametrize("restitution", [0.3, 0.8])
@pytest.mark.parametrize("name", STEPS)
def test_bounces(name, restitution):
    """With Newton's restitution the velocity of approach is a part of the bias."""
    shape = _shape("sphere", radius=0.1)
    model = robot(
        link("body", 1.5, (0.02, 0.03, 0.04), xyz=(0.02, 0.01, 0)),
        joint("free", "floating", "base", "body"),
        collisions={"body": {"replace": [shape]}},
        **_mu(0.4, restitution=restitution),
    )
    step, program = _built(model, name, erp=0.2)
    q, qd = np.array([0, 0, 0.0999, *UP]), np.array([0.3, 1, 0.2, 0.4, 0.3, -2.0])
    if name == "contact_moreau_jean":
        q[2] += 0.5 * H * 2.0
    tau = np.zeros(6)
    result = program(q, qd, tau, H, _warm(program))
    assert result.modes[0] != SEPARATE
    assert not result.not_differentiable
    assert result.qd_next @ [0, 0, 0, 0, 0, 1] > 0.2
    _assert_differences(model, step, result, (q, qd, tau))


def test_a_groove_of_two_half_spaces():
    """Each half-space has its own contacts, in modes of their own."""
    walls = tuple(
        HalfSpace(f"wall {k}", (0.0, 0.0, 0.0), (k * 0.6, 0.0, 0.8)) for k in (1, -1)
    )
    model = _floating(_shape("sphere", radius=0.1), 0.3)
    step, program = _built(model, world=walls)
    q = np.array([0.001, 0, 0.1 / 0.8 - 0.002, *UP])
    qd, tau = np.array([0.1, 0.2, 0.1, 0.1, 1.0, -0.3]), np.zeros(6)
    result = program(q, qd, tau, H, _warm(program))
    assert SEPARATE not in result.modes
    assert not result.not_differentiable
    _assert_differences(model, step, result, (q, qd, tau))


def test_parameters_forces_and_friction_of_joints():
    """dx_dp by inertia, gravity and damping; A with joint friction and f_ext."""
    model = _walker().with_values({"hip2.damping": 0.3, "hip1.friction": 0.2})
    choices = {"inputs": ["f_ext"], "joint_friction": True}
    paths = ["gravity", "leg2.mass", "hip2.armature"]
    step, rng = _step(model, **choices), np.random.default_rng(3)
    push = 2.0 * rng.normal(size=(model.nb, 6))
    program = _derivatives(model, paths=paths, **choices)
    for q, qd, tau in _random_states(model, _walking()[0], rng, 5):
        result = program(q, qd, tau, H, _warm(program), push)
        if not result.not_differentiable:  # solved to the last digit
            break
    assert not result.not_differentiable
    assert set(result.modes) - {SEPARATE}
    _assert_differences(model, step, result, (q, qd, tau), (push,), 1e-7, 3)
    start = step(q, qd, tau, H, _warm(step), push)
    moved = _step(model, **{**choices, "inputs": ["f_ext", *paths]})
    values = [np.atleast_1d(parameter_paths.value(model, path)) for path in paths]
    sizes, known = [len(x) for x in values], np.concatenate(values)

    def end(x, e):
        parts = np.split(known + x * e, np.cumsum(sizes)[:-1])
        last = [part if len(part) > 1 else part[0] for part in parts]
        return _end(model, start, moved(q, qd, tau, H, start.impulse, push, *last))

    columns = [derivative(lambda x, e=e: end(x, e), 1e-5) for e in np.eye(sum(sizes))]
    _assert_close(result.dx_dp, np.array(columns).T)


def test_borders_of_modes_are_flagged_and_finite():
    """Touching without force, friction just at its cone, an impulse at rest."""
    model = point_mass(gravity=(0, 0, 0), **_mu(0.5))
    program, zero = _derivatives(model), np.zeros(2)
    touching = program(zero, zero, zero, H, _warm(program))
    program = _derivatives(point_mass(**_mu(0.5)))
    at_cone = program(zero, zero, np.array([0.5 * 9.81, 0.0]), H, _warm(program))
    inside = program(zero, zero, np.array([0.25 * 9.81, 0.0]), H, _warm(program))
    grazing = program(np.array([0, 9.81 * H**2]), zero, zero, H, _warm(program))
    program = _derivatives(point_mass(**_mu(0.0)))
    smooth = program(zero, zero, zero, H, _warm(program))
    for result in (touching, at_cone, inside, grazing, smooth):
        assert all(np.isfinite(np.asarray(x)).all() for x in result)
    flags = [x.not_differentiable for x in (touching, at_cone, grazing)]
    assert flags == [1.0, 1.0, 1.0]
    assert [inside.not_differentiable, smooth.not_differentiable] == [2.0, 2.0]


def test_a_standing_robot_comes_to_gap_zero_with_the_gradient_of_its_steps():
    """Feet pressed into the floor come to gap 0, flagged 2; differences agree there."""
    model, count, dt = dyn.load("quadruped"), 45, 2e-3
    rollout = Rollout(model, "contact_euler", **EXACT)
    q, rng, still = model.neutral(), np.random.default_rng(3), np.zeros(18)
    q[2] -= rollout.program(q, still, still, dt, np.zeros(12)).gap.min() + 5e-4
    tau = np.zeros((count, 18))
    for knee in (name for name in model.joint_names if "knee" in name):
        tau[:, model.v_slice(knee)] = 0.3 * rng.normal(size=(count, 1))
    states = rollout.run(q, still, tau, dt)
    linear = rollout.linearize(states, tau, dt)
    assert set(linear.not_differentiable[:30]) == {0.0}
    assert set(linear.not_differentiable[35:]) == {2.0}
    weights, along = rng.normal(size=18), rng.normal(size=tau.shape)
    by_qd = np.zeros((count + 1, 18))
    by_qd[-1] = weights
    gradient = rollout.gradients(states, tau, dt, 0 * by_qd, by_qd).tau

    def end(x):
        return rollout.run(q, still, tau + x * along, dt).qd[-1] @ weights

    change = (end(1e-5) - end(-1e-5)) / 2e-5
    np.testing.assert_allclose((gradient * along).sum(), change, rtol=1e-7)


@pytest.mark.turns("name")
@pytest.mark.parametrize("name", ["box sticks on four corners", "tripod lands"])
def test_at_gap_zero_a_derivative_is_that_of_one_side(name):
    """Up to 1e-7 m it is flagged; contacts of one body are on the side of the lowest."""
    make, q, _, mu, _ = CASES[name]
    model, q, still = make(mu), np.array(q, float), np.zeros(6)
    step, program = _built(model, erp=0.2)
    q[2] -= step(q, still, still, H, _warm(step)).gap.min()

    def result(gap, tilt=0.0):
        turned = model.integrate(q, np.array([0, tilt, 0, 0, 0, gap]))
        return program(turned, still, still, H, _warm(program))

    above, below = result(2e-7), result(-2e-7)
    assert above.not_differentiable == below.not_differentiable == 0.0
    assert np.abs(above.A - below.A).max() > 0.5
    for gap, side in ((5e-8, above), (1e-11, above), (0.0, below), (-5e-8, below)):
        near = result(gap)
        assert near.not_differentiable == 2.0
        _assert_close(near.A, side.A)
        _assert_close(near.dx_dgap, side.dx_dgap)
    mixed = result(0.0, 1e-8)
    assert mixed.gap.min() < -1e-9 < 1e-9 < np.sort(mixed.gap)[2]
    _assert_close(mixed.A, below.A)


def test_dependent_slip_and_missing_convergence_are_flagged():
    """A turning box slides on four corners; a solver that stops after one sweep."""
    model = free_box(**_mu(0.5))
    program = _derivatives(model)
    q, qd = np.array([0, 0, 0.25, *UP]), np.array([0, 0, 0.3, 1.0, 0.5, -0.1])
    result = program(q, qd, np.zeros(6), H, _warm(program))
    assert set(result.modes[:4]) == {SLIP}
    assert result.not_differentiable == 1.0
    assert np.isfinite(result.A).all()
    rod, q, qd, tau = _state("rod slips")
    program = _derivatives(rod, solver_options={"max_iterations": 1})
    result = program(q, qd, tau, H, _warm(program))
    assert result.status > 0
    assert result.not_differentiable == 1.0


def test_what_no_joint_moves_is_flagged():
    """A ball on a joint through its centre presses on the floor: any impulse will do."""
    model = robot(
        link("body", 1.0, (0.1, 0.1, 0.1)),
        joint("turn", "revolute", "base", "body", (0, 0, 1)),
        collisions={"body": {"replace": [_shape("sphere", radius=0.1)]}},
    )
    program = _derivatives(model)
    result = program(np.zeros(1), np.zeros(1), np.zeros(1), H, _warm(program))
    assert all(np.isfinite(np.asarray(x)).all() for x in result)


def test_a_robot_without_shapes_has_the_derivatives_of_a_free_step():
    """No contacts, no gyroscopic moments: those of semi_implicit_euler_derivatives."""
    model = robot(
        link("body", 1.0, (0.2, 0.2, 0.2)),
        joint("free", "floating", "base", "body"),
    )
    program = _derivatives(model, paths=["gravity"])
    free = dyn.solver("semi_implicit_euler_derivatives").build(
        model, implicit=False, paths=["gravity"]
    )
    rng = np.random.default_rng(2)
    q, (qd, tau) = model.random(rng), rng.normal(size=(2, 6))
    result, other = program(q, qd, tau, H, np.zeros(0)), free(q, qd, tau, H)
    for name in ("q_next", "qd_next", "A", "B", "dx_dp"):
        _assert_close(getattr(result, name), getattr(other, name), 1e-12)
    assert result.dx_dmu.shape == (12, 0)
    assert result.not_differentiable == 0.0


def test_engines_and_batches_agree():
    """Plain, graph and machine code; rows of a batch are single calls."""
    model, (step, program) = _walker(), _walking()
    rng = np.random.default_rng(4)
    states = list(_random_states(model, step, rng, 6))
    q, qd, tau = (np.array(x) for x in zip(*states, strict=True))
    rows = program(q, qd, tau, H, np.zeros((6, *_warm(program).shape)))
    for k, state in enumerate(states):
        one = program(*state, H, _warm(program))
        for a, b in zip(rows, one, strict=True):
            _assert_close(a[k], b, 1e-9)
    graph = _derivatives(model, erp=0.3, engine="graph")
    for a, b in zip(graph(*states[0], H, _warm(program)), rows, strict=True):
        _assert_close(a, b[0], 1e-9)


def test_paths_that_move_contacts_are_refused():
    """Those of the robot's geometry, with what is valid."""
    model = _quadruped(0.3)
    for path in (f"{model.names[-1]}.origin", f"{model.names[-1]}.axis"):
        with pytest.raises(dyn.UnsupportedError, match="moves contacts"):
            dyn.solver("contact_euler_derivatives").build(model, paths=[path])
