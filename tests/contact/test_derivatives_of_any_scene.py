"""Derivatives of steps of any shapes, steppers and constraints against differences."""

import numpy as np
import pytest
from contact_bodies import box, free_box, joint, link, robot, sphere, two_link

import dyn_core as dyn
from dyn_core.contact.derivatives import DifferentiableStep, step_derivatives
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.simulation import close_loops

H = 5e-3
LEVEL = [0.0, 0.0, 0.0, 1.0]


def _shape(kind, **more):
    return {"type": kind, "xyz": [0.01, 0.02, 0.0], **more}


BALL, CAPSULE = _shape("sphere", radius=0.1), _shape("capsule", radius=0.06, length=0.3)
BOX = _shape("box", size=[0.3, 0.2, 0.2])
CYLINDER = _shape("cylinder", radius=0.1, length=0.2)
FLOOR = {"half_spaces": [{"name": "floor", "point": [0, 0, 0], "normal": [0, 0, 1]}]}
HILLS = 0.02 * np.random.default_rng(0).normal(size=(9, 9))
FIELD = {"heights": HILLS.tolist(), "cell": [0.2, 0.2], "point": [-0.8, -0.8, 0.0]}


def _turned(*vector):
    """Return the quaternion along (x, y, z, 1)."""
    q = np.array([*vector, 1.0])
    return (q / np.linalg.norm(q)).tolist()


def _two_bodies(one, two, material):
    """Return two floating bodies without weight, each of one shape."""
    return robot(
        link("one", 1.5, (0.02, 0.03, 0.025), box(0.1, 0.1, 0.1), (0.02, 0.01, 0)),
        joint("free one", "floating", "base", "one"),
        link("two", 2.5, (0.03, 0.02, 0.035), box(0.1, 0.1, 0.1), (0.0, 0.01, 0.01)),
        joint("free two", "floating", "base", "two"),
        gravity=(0, 0, 0),
        collisions={"one": {"replace": [one]}, "two": {"replace": [two]}},
        materials={"default": material},
    )


ONTO = [0.1, 0.2, 0.1, 0, 0, 0, 0.2, -0.1, 0.3, 0.3, 0.2, -2.0]
PAST = [0.1, 0.2, 0.1, 0, 0, 0, 0.2, -0.1, 0.3, 2.3, 1.2, -1.0]
DOWN = [0.1, 0.2, 0.1, 0.5, 0.3, -1.0, 0.2, -0.1, 0.3, 1.3, 0.2, -1.0]
LOW = [0, 0, 0, *_turned(0.05, 0.03, 0.1)]
BALLS = BALL, BALL, [*LOW, 0.05, 0.03, 0.19, *_turned(0.1, 0.2, 0.1)]
CORNER = BOX, BOX, [*LOW, 0.05, 0.03, 0.27, *_turned(0.4, 0.3, 0.1)]
EDGES = (
    BOX,
    BOX,
    [0, 0, 0, *_turned(0.4142, 0, 0), 0.03, 0.02, 0.273, *_turned(0, 0.4142, 0.1)],
)
CROSSED = (
    CAPSULE,
    CAPSULE,
    [0, 0, 0, *_turned(1, 0.1, 0.1), 0.02, 0.03, 0.11, *_turned(0.1, 1, 0.1)],
)
ON_CAN = BALL, CYLINDER, [*LOW, 0.08, 0.03, 0.19, *_turned(0.1, 0.2, 0.1)]
CAN_ON_BOX = BOX, CYLINDER, [*LOW, 0.05, 0.03, 0.215, *_turned(0.3, 0.2, 0.1)]
APART = [0, 0, 0.09, *_turned(0.5, 0.3, 0.1), 0.5, 0.1, 0.17, *_turned(0.3, 0.2, 0.1)]
TURNING = {"mu": 0.3, "torsion": 0.01, "rolling": 0.005}
# by name: shapes and positions, velocities, material, world, modes that press
SCENES = {
    "balls stick": (BALLS, ONTO, {"mu": 0.8}, {}, {"stick"}),
    "balls slip": (BALLS, PAST, {"mu": 0.1}, {}, {"slip"}),
    "balls slip, turning": (BALLS, PAST, TURNING, {}, {"slip"}),
    "balls stick, turning": (BALLS, ONTO, {**TURNING, "mu": 0.9, "torsion": 0.1, "rolling": 0.1}, {}, {"stick"}),
    "balls bounce": (BALLS, PAST, {"mu": 0.3, "restitution": 0.6}, {}, {"slip"}),
    "soft balls": (BALLS, PAST, {"mu": 0.3}, {"stabilisation": "erp_cfm"}, {"slip"}),
    "anitescu_potra": (BALLS, PAST, {"mu": 0.3}, {"stepper": "anitescu_potra"}, {"slip"}),
    "moreau_jean": (BALLS, PAST, {"mu": 0.3}, {"stepper": "moreau_jean"}, {"slip"}),
    "pushed out": (BALLS, PAST, {"mu": 0.3}, {"stabilisation": "split_impulse", "push_out_speed": 10.0}, {"slip"}),
    "pushed out at the middle": (BALLS, PAST, {"mu": 0.3}, {"stabilisation": "split_impulse", "stepper": "moreau_jean"}, {"slip"}),
    "a corner on a face": (CORNER, PAST, {"mu": 0.1}, {}, {"slip"}),
    "edges": (EDGES, ONTO, {"mu": 0.8}, {}, {"stick"}),
    "capsules": (CROSSED, PAST, {"mu": 0.1}, {}, {"slip"}),
    "a ball on a can": (ON_CAN, ONTO, {"mu": 0.8}, {}, {"stick"}),
    "a can on a box": (CAN_ON_BOX, PAST, {"mu": 0.1}, {}, {"slip"}),
    "a rim and a corner": ((CYLINDER, BOX, APART), DOWN, {"mu": 0.3}, FLOOR, {"slip"}),
    "height field": ((BALL, BOX, APART), DOWN, {"mu": 0.3}, {"height_fields": [FIELD]}, {"slip"}),
}  # fmt: skip


def _assert_differences(model, world, state, f_ext=None):
    """Compare A and B with central differences of the step; return the derivatives.

    What corrects positions alone is solved to 1e-6, and its small softness is taken as
    constant; differences see both.
    """
    contact_model, nv = dyn.authoring.ContactModel(model, world), model.nv
    result = DifferentiableStep(contact_model, H)(*state, f_ext)
    assert result.not_differentiable == 0
    step, (q, qd, tau) = ArrayStep(contact_model, H), state

    def end(change):
        dq, dqd, dtau = np.split(change, 3)
        moved = model.integrate(q, dq), qd + dqd, tau + dtau
        step.forget()
        q_next, qd_next, _ = step.step(0.0, *moved, f_ext)
        return np.concatenate([model.difference(result.q_next, q_next), qd_next])

    slopes = np.hstack([result.A, result.B])
    tolerance = 1e-5 if world["stabilisation"] == "split_impulse" else 1e-7
    for k, size in enumerate(np.repeat([1e-6, 1e-6, 1e-4], nv)):
        e = np.zeros(3 * nv)
        e[k] = size
        wanted = (end(e) - end(-e)) / (2 * size)
        scale = max(1.0, np.abs(wanted).max())
        np.testing.assert_allclose(slopes[:, k] / scale, wanted / scale, 0, tolerance)
    return result


def _world(**choices):
    exact = {"tolerance": 1e-13}
    common = {"stabilisation": "baumgarte", "half_spaces": [], "solver_options": exact}
    return {**common, **choices}


# What others of them show, too, in part.
ALIKE = {
    "balls slip", "balls stick, turning", "soft balls", "anitescu_potra", "capsules",
    "pushed out at the middle", "a corner on a face", "a ball on a can",
}  # fmt: skip


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=pytest.mark.full) if x in ALIKE else x for x in SCENES],
)
def test_derivatives_are_differences_of_the_step(name):
    """By state and joint forces, two bodies that touch each other or the world.

    With --full all scenes: building the Programs of each takes half a second.
    """
    (one, two, q), qd, material, world, modes = SCENES[name]
    model = _two_bodies(one, two, material)
    state = np.array(q, float), np.array(qd, float), np.zeros(12)
    result = _assert_differences(model, _world(**world), state)
    assert set(result.modes.values()) - {"separate"} == modes


def test_derivatives_by_friction_coefficients():
    """Those of sliding, torsion and rolling of a ball that slides and spins."""
    (one, two, q), qd, material, world, _ = SCENES["balls slip, turning"]
    state = np.array(q, float), np.array(qd, float), np.zeros(12)

    def result(change):
        numbers = np.array(list(material.values())) + change
        model = _two_bodies(
            one, two, dict(zip(material, numbers.tolist(), strict=True))
        )
        contact_model = dyn.authoring.ContactModel(model, _world(**world))
        return step_derivatives(contact_model, *state, H)

    slopes = result(0.0).dx_dmu
    for k, unit in enumerate(1e-6 * np.eye(3)):
        ends = [result(x) for x in (unit, -unit)]
        change = (ends[0].qd_next - ends[1].qd_next) / 2e-6
        np.testing.assert_allclose(slopes[12:, k], change, atol=1e-6)


def _arm(**more):
    """Return two_link with limits, dry friction, damping and a ball at its tip."""
    joints = {"j1": {"friction": 0.4, "damping": 0.3}, "j2": {"damping": 0.2}}
    return two_link(0.05, ((-9, 0.3), (-9, 9)), joints=joints, **more)


@pytest.mark.parametrize("stepper", ["stewart_trinkle", "moreau_jean"])
def test_limits_friction_and_forces(stepper):
    """A joint at its limit, one that slides in its dry friction, forces on bodies."""
    model = _arm()
    state = np.array([0.301, -0.4]), np.array([0.5, 0.7]), np.array([20.0, 1.0])
    forces = np.random.default_rng(1).normal(size=(2, 6))
    world = _world(stepper=stepper)
    result = _assert_differences(model, world, state, forces)
    assert result.modes["upper limit of j1"] == "closed"
    state = np.array([0.1, -0.4]), np.array([0.5, 0.7]), np.array([20.0, 1.0])
    result = _assert_differences(model, world, state, forces)
    assert result.modes["dry friction of j1"] == "free"
    weight = dyn.solver("gravity").build(model, engine="graph")(state[0])
    still = state[0], np.zeros(2), weight + [0.2, 0.0]
    result = _assert_differences(model, world, still)
    assert result.modes["dry friction of j1"] == "stick"


@pytest.mark.parametrize("stabilisation", ["baumgarte", "split_impulse"])
def test_loops(stabilisation):
    """Three bars and the ground, a pin with an error; joint friction as a function."""
    model = dyn.load_urdf(dyn.robots.path("planar3"))
    place, tip = {"xyz": (0.6, 0.0, 1.2)}, {"xyz": (0.3, 0.0, 0.0)}
    pin = dyn.make_loop("tip", "axes", "link3", at_b=tip, at_a=place, axes=("x", "z"))
    model = model.with_loops(pin)
    q = close_loops(model, np.ones(3), tries=20)
    state = q + 1e-3, np.array([0.3, -0.2, 0.1]), np.array([1.0, 2.0, -1.0])
    world = _world(contacts=False, joint_friction=False, stabilisation=stabilisation)
    result = _assert_differences(model, world, state)
    assert result.modes["loop tip"] == "closed"
    fast = state[0], np.array([6.0, -18.0, 14.0]), state[2]  # along the loop, too
    result = _assert_differences(model, world, fast)
    assert np.abs(result.qd_next).max() > 10.0


def test_a_quadruped_in_the_floor():
    """The stabilisation of a World by default; feet slide, dry friction holds some."""
    model, rng = dyn.load("quadruped"), np.random.default_rng(1)
    q, qd = model.neutral(), 0.1 * rng.normal(size=18)
    tau = np.concatenate([np.zeros(6), rng.normal(size=12)])
    q[2], q[7:] = 0.40707, np.tile([0.0, 0.4, -0.8], 4) + 0.01 * rng.normal(size=12)
    world = _world(stabilisation="split_impulse", **FLOOR)
    result = _assert_differences(model, world, (q, qd, tau))
    assert {"slip", "stick", "free", "separate"} == set(result.modes.values())


def test_at_gap_zero_a_derivative_is_that_of_one_side():
    """A box at rest on four corners, flagged; mixed gaps are on the lowest's side."""
    model, still = free_box(materials={"default": {"mu": 0.5}}), np.zeros(6)
    contact_model = dyn.authoring.ContactModel(model, _world(**FLOOR))
    step = DifferentiableStep(contact_model, H)

    def result(gap, tilt=0.0):
        start = np.array([0, 0, 0.25, *LEVEL])
        q = model.integrate(start, np.array([0, tilt, 0, 0, 0, gap]))
        return step(q, still, still)

    above, below = result(2e-7), result(-2e-7)
    assert above.not_differentiable == below.not_differentiable == 0
    assert np.abs(above.A - below.A).max() > 0.5
    for gap, tilt, side in (
        (5e-8, 0, above), (0.0, 0, below), (-5e-8, 0, below), (0.0, 1e-8, below),
    ):  # fmt: skip
        near = result(gap, tilt)
        assert near.not_differentiable == 2
        np.testing.assert_allclose(near.A, side.A, atol=1e-5)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("stabilisation", ["split_impulse", "baumgarte"])
def test_a_standing_robot_has_the_gradient_of_its_steps(stabilisation):
    """Feet pressed into the floor come to gap 0, flagged 2; differences agree there.

    What corrects positions alone is solved to 1e-6.
    """
    model, count, dt = dyn.load("quadruped"), 45, 2e-3
    smooth = {"limits": False, "joint_friction": False, "stabilisation": stabilisation}
    world = _world(**smooth, **FLOOR)
    contact_model = dyn.authoring.ContactModel(model, world, joint_friction=False)
    step, rng = DifferentiableStep(contact_model, dt), np.random.default_rng(3)
    q, tau = model.neutral(), np.zeros((count, 18))
    q[2] -= min(c.gap for c in contact_model.pairs.contacts(q)) + 5e-4
    for knee in (name for name in model.joint_names if "knee" in name):
        tau[:, model.v_slice(knee)] = 0.3 * rng.normal(size=(count, 1))
    weights, along = rng.normal(size=18), rng.normal(size=tau.shape)
    x, change, flags = (q, np.zeros(18)), np.zeros(36), []
    for force, direction in zip(tau, along, strict=True):
        result = step(*x, force)
        x, flags = (result.q_next, result.qd_next), [*flags, result.not_differentiable]
        change = result.A @ change + result.B @ direction
    assert set(flags[:30]) == {0}
    assert set(flags[35:]) == {2}

    def end(size):
        steps, x = ArrayStep(contact_model, dt), (q, np.zeros(18))
        for force in tau + size * along:
            *x, _ = steps.step(0.0, *x, force)
        return x[1] @ weights

    wanted = (end(1e-5) - end(-1e-5)) / 2e-5
    np.testing.assert_allclose(change[18:] @ weights, wanted, rtol=3e-6)


def test_a_fast_ball_off_a_thin_wall_has_the_derivatives_of_its_step():
    """100 m/s through a wall of 2 cm in a step: q + h v is mirrored, in closed form."""
    model = robot(
        link("wall", 1.0, (1, 1, 1), box(1, 1, 0.02)),
        joint("stays", "fixed", "base", "wall"),
        link("ball", 1.0, (0.01, 0.01, 0.01), sphere(0.02)),
        joint("free", "floating", "base", "ball"),
        gravity=(0, 0, 0),
        materials={"default": {"mu": 0.0, "restitution": 1.0}},
    )
    q, qd = np.array([0.1, 0.2, 0.2, *LEVEL]), np.array([0, 0, 0, 1.0, 0.0, -100.0])
    step = DifferentiableStep(dyn.authoring.ContactModel(model, _world()), H)
    result = step(q, qd, np.zeros(6))
    mirror, straight = np.diag([1.0, 1.0, -1.0]), [3, 4, 5, 9, 10, 11]
    assert result.not_differentiable == 3
    assert result.qd_next[5] == pytest.approx(100.0)
    wanted = np.block([[mirror, H * mirror], [0 * mirror, mirror]])
    slopes = result.A[np.ix_(straight, straight)]
    np.testing.assert_allclose(slopes, wanted, atol=1e-6)
    assert np.isnan(result.dx_dmu).all()
    alone = ArrayStep(step._step.of, H)
    alone.step(0.0, q, qd, np.zeros(6))
    for part, wanted in zip(
        step._step.memory.earlier, alone.memory.earlier, strict=True
    ):
        np.testing.assert_array_equal(part, wanted)


@pytest.mark.parametrize("wrong", [{"tau": np.zeros(1)}, {"f_ext": np.zeros(6)}])
def test_forces_of_another_shape_are_refused(wrong):
    """They are not spread over all joints or bodies."""
    model = dyn.load("quadruped", root_joint="floating")
    step = DifferentiableStep(dyn.authoring.ContactModel(model), 1e-3)
    forces = {"tau": np.zeros(model.nv), **wrong}
    with pytest.raises(dyn.ShapeError, match=next(iter(wrong))):
        step(model.neutral(), np.zeros(model.nv), **forces)


def test_what_has_no_derivatives_is_refused():
    """Steps that find times of impacts, several impacts in one, and a relaxed law."""
    for world, said in (
        ({"solver": "convex_newton"}, "sliding contacts separate"),
        ({"stepper": "event_driven"}, "valid: stewart_trinkle"),
        ({"impacts": "sequential"}, "valid: newton, simultaneous"),
    ):
        contact_model = dyn.authoring.ContactModel(free_box(), world)
        with pytest.raises(dyn.UnsupportedError, match=said):
            DifferentiableStep(contact_model, H)


@pytest.mark.parametrize("h", (0.0, -0.01, float("nan"), float("inf"), "x"))
def test_steps_that_are_no_times_are_refused(h):
    """A step of 0 was a division by zero, a negative one ran back in time."""
    contact_model = dyn.authoring.ContactModel(dyn.load("cart_pole"), _world(**FLOOR))
    with pytest.raises(dyn.SettingError, match="step h is .*; valid"):
        DifferentiableStep(contact_model, h)
