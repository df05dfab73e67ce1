"""Bodies that move farther in a step than they are thick pass through nothing."""

import numpy as np
import pytest
from contact_bodies import box, joint, link, robot, sphere
from step_scenes import free_bodies, places, quadruped

import dyn_core as dyn
from dyn_core.contact.fast_bodies import fast_rows
from dyn_core.contact.stepping.array_batch import BatchStep
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.sharing import once
from dyn_core.spatial import Vector
from dyn_core.spatial.lie import quat_matrix

long = pytest.mark.full  # the same code, in other steps
every_step = pytest.mark.parametrize("h", (1e-2, pytest.param(1e-3, marks=long)))
every_stepper = pytest.mark.parametrize(
    "stepper",
    ("stewart_trinkle", pytest.param("anitescu_potra", marks=long), "moreau_jean"),
)
THICK = 1e-3  # of plates and walls [m]
BALL = 0.02  # radius of balls [m]


def material(restitution=0.0, mu=0.0):
    """Return the materials of a robot."""
    return {"default": {"mu": mu, "restitution": restitution}}


@once
def ball_and_wall(restitution=0.0, gravity=0.0):
    """Return a free ball and a fixed wall in the plane z = 0, 1 m wide."""
    return robot(
        link("wall", 1.0, (1, 1, 1), box(1, 1, THICK)),
        joint("stays", "fixed", "base", "wall"),
        link("ball", 0.1, (1.6e-5,) * 3, sphere(BALL)),
        joint("free", "floating", "base", "ball"),
        gravity=(0, 0, -gravity),
        materials=material(restitution),
    )


@once
def two_balls(restitution):
    """Return two balls that fly freely."""
    shapes = [sphere(BALL), sphere(1.5 * BALL)]
    extras = {"gravity": (0, 0, 0), "materials": material(restitution)}
    return free_bodies(shapes, [0.1, 0.3], **extras)


@once
def bar_and_post(gap):
    """Return a bar of 1 m that turns about z, and a thin post beyond or within reach."""
    far = 0.4 if gap <= 0 else 0.5 + gap + 0.005
    post = {"type": "capsule", "radius": 0.005, "length": 0.4}
    return robot(
        link("bar", 1.0, (0.01, 0.1, 0.1), box(1.0, 0.01, 0.01)),
        joint("axle", "continuous", "base", "bar"),
        link("post", 1.0, (1, 1, 1), xyz=(0, 0, 0)),
        joint("stays", "fixed", "base", "post", xyz=(0, far, 0)),
        gravity=(0, 0, 0),
        materials=material(),
        collisions={"post": [post]},
        pairs={"allow": [["bar", "post"]]},
    )


@once
def arm_and_wall():
    """Return an arm of two links with a ball at its tip, and a wall at y = 0.9."""
    return robot(
        link("upper", 1.0, (0.01,) * 3),
        joint("shoulder", "continuous", "base", "upper"),
        link("lower", 0.5, (0.01,) * 3, sphere(BALL), origin=(0.5, 0, 0)),
        joint("elbow", "continuous", "upper", "lower", xyz=(0.5, 0, 0)),
        link("wall", 1.0, (1, 1, 1), box(2, THICK, 1)),
        joint("stays", "fixed", "base", "wall", xyz=(0, 0.9, 0)),
        gravity=(0, 0, 0),
        materials=material(),
    )


def stepped(model, stepper, h, **world):
    """Return the steps of a robot in a world without a floor."""
    settings = {"half_spaces": [], "stepper": stepper, **world}
    return ArrayStep(ContactModel(model, settings), h)


def run(arrays, q, qd, count, look=lambda q, qd, record: None):
    """Return the state after some steps; `look` sees each, and its record."""
    arrays.forget()
    q, qd, still = np.array(q, float), np.array(qd, float), np.zeros(len(qd))
    for k in range(count):
        q, qd, record = arrays.step(k * arrays.h, q, qd, still)
        assert record.status == "converged"
        look(q, qd, record)
    return q, qd


def world_velocity(q, qd, k=0):
    """Return the velocity of a floating body's origin in the world, (3,)."""
    R = quat_matrix(Vector(q[7 * k + 3 : 7 * k + 7].tolist())).rows
    return np.array(R) @ qd[6 * k + 3 : 6 * k + 6]


def shot(rng, speed):
    """Return a state that flies towards z = 0 slantwise, and a duration to pass it."""
    way = np.array([*rng.uniform(-0.5, 0.5, 2), -1.0])
    start = np.array([0, 0, 1.0]) * rng.uniform(0.2, 0.3)
    q = np.array([*(start - 0.2 * way), 0, 0, 0, 1])
    return q, np.array([*rng.standard_normal(3), *(speed * way)])


@every_step
@every_stepper
def test_a_ball_does_not_pass_a_thin_wall(stepper, h):
    """Whatever its speed and the phase of the step: it stays, and slides on."""
    arrays = stepped(ball_and_wall(), stepper, h)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        q0, qd0 = shot(rng, 10 ** rng.uniform(1, 3))
        before = world_velocity(q0, qd0)
        q, qd = run(arrays, q0, qd0, int(np.ceil(0.6 / -before[2] / h)) + 2)
        assert abs(q[2] - BALL - THICK / 2) < 1e-5
        after = world_velocity(q, qd)
        np.testing.assert_allclose(after[:2], before[:2], rtol=1e-9)
        np.testing.assert_allclose(after[2], 0.0, atol=1e-9 * -before[2])


def test_solvers_of_matrices_take_fast_bodies_alike():
    """A ball at 300 m/s stays on a thin wall by lemke, and ends where it does by rows."""
    q0, qd0 = shot(np.random.default_rng(1), 300.0)
    ends = [
        run(
            stepped(ball_and_wall(), "stewart_trinkle", 1e-2, solver=solver), q0, qd0, 4
        )
        for solver in ("coulomb_newton", "lemke")
    ]
    assert abs(ends[1][0][2] - BALL - THICK / 2) < 1e-5
    np.testing.assert_allclose(ends[1][0], ends[0][0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(ends[1][1], ends[0][1], rtol=0, atol=1e-6)


@every_step
@every_stepper
def test_a_bullet_takes_a_thin_plate_along(stepper, h):
    """Both fly freely: momentum is kept, and they do not close after the impact."""
    plate = {"type": "box", "size": [0.5, 0.5, THICK]}
    model = free_bodies(
        [sphere(BALL), plate], [0.1, 0.4], gravity=(0, 0, 0), materials=material()
    )
    arrays, momentum = stepped(model, stepper, h), dyn.solver("momentum").build(model)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        way = np.array([*rng.uniform(-0.1, 0.1, 2), -1.0])
        time = rng.uniform(2, 3) * h
        q0 = places(model, [-70 * way * time + [0, 0, BALL + THICK / 2], (0, 0, 0)])
        qd0 = np.zeros(12)
        qd0[3:6] = 70 * way
        q, qd = run(arrays, q0, qd0, 5)
        before, after = momentum(q0, qd0)[0], momentum(q, qd)[0]
        np.testing.assert_allclose(after, before, atol=1e-11)
        closing = world_velocity(q, qd)[2] - world_velocity(q, qd, 1)[2]
        assert closing > -1e-7
        assert q[2] - q[9] > 0.9 * BALL


@every_step
@every_stepper
def test_a_ball_bounces_off_a_thin_wall_as_fast_as_it_came(stepper, h):
    """Restitution 1 keeps energy; the ball is where it is after a bounce in time."""
    arrays = stepped(ball_and_wall(1.0), stepper, h)
    for seed in range(8):
        q0, qd0 = shot(np.random.default_rng(seed), 60.0)
        before, count = world_velocity(q0, qd0), int(0.02 / h) + 1
        q, qd = run(arrays, q0, qd0, count)
        expected = before * [1, 1, -1]
        np.testing.assert_allclose(world_velocity(q, qd), expected, rtol=1e-9)
        top, way = BALL + THICK / 2, q0[2] + before[2] * count * h
        np.testing.assert_allclose(q[2], 2 * top - way, atol=1e-6)


@every_stepper
def test_a_bouncing_ball_keeps_its_height(stepper):
    """With gravity, restitution 1 and many bounces, at any phase of the step."""
    arrays = stepped(ball_and_wall(1.0, 9.81), stepper, 5e-3)
    q0, qd0 = np.array([0, 0, 0.05, 0, 0, 0, 1]), np.zeros(6)
    qd0[5], energies = -12.0, []

    def look(q, qd, record):
        energies.append(qd[5] ** 2 / 2 + 9.81 * q[2])

    run(arrays, q0, qd0, 2000, look)
    assert len(energies) == 2000
    np.testing.assert_allclose(np.mean(energies[-500:]), energies[0], rtol=1e-2)
    assert max(energies) < 1.02 * energies[0]


@every_step
@every_stepper
def test_a_grazing_ball_stays_untouched(stepper, h):
    """Beside the edge of a wall, and within the margin of its face, nothing acts."""
    arrays = stepped(ball_and_wall(), stepper, h)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        clearance = 10 ** rng.uniform(-5, -2)
        beside = np.array([0.5 + BALL + clearance, 0.1, 0.0])
        above = np.array([0.1, 0.0, BALL + THICK / 2 + clearance])
        for point, way in (
            (beside, np.array([0, rng.uniform(-1, 1), -1.0])),
            (above, np.array([1.0, rng.uniform(-1, 1), 0])),
        ):
            velocity = 80.0 * way
            start = point - velocity * rng.uniform(1, 2) * h
            q0 = [*start, 0, 0, 0, 1]
            q, qd = run(arrays, q0, [0, 0, 0, *velocity], 4)
            np.testing.assert_array_equal(world_velocity(q, qd), velocity)
            np.testing.assert_allclose(q[:3], start + 4 * h * velocity, atol=1e-12)


@every_step
@every_stepper
@pytest.mark.parametrize("e", (0.0, 1.0))
def test_two_fast_balls_meet_along_their_line_of_centres(e, stepper, h):
    """Velocities after the impact are those of the textbook; momentum is kept."""
    model = two_balls(e)
    arrays, momentum = stepped(model, stepper, h), dyn.solver("momentum").build(model)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, velocity = rng.standard_normal(3), 60 * rng.standard_normal((2, 3))
        n /= np.linalg.norm(n)
        closing = (velocity[0] - velocity[1]) @ n
        n, closing = (-n, -closing) if closing > 0 else (n, closing)
        meet = rng.uniform(1, 2) * h
        ends = np.array([np.zeros(3), -2.5 * BALL * n])
        q0 = places(model, ends - meet * velocity)
        qd0 = np.zeros(12)
        qd0[3:6], qd0[9:] = velocity
        impulse = -(1 + e) * closing / (1 / 0.1 + 1 / 0.3)
        after = velocity + impulse * np.outer([1 / 0.1, -1 / 0.3], n)
        q, qd = run(arrays, q0, qd0, 4)
        for k in range(2):
            np.testing.assert_allclose(
                world_velocity(q, qd, k), after[k], atol=1e-6 * -closing
            )
            there = ends[k] + after[k] * (4 * h - meet)
            np.testing.assert_allclose(q[7 * k : 7 * k + 3], there, atol=1e-6)
        before, end = momentum(q0, qd0)[0], momentum(q, qd)[0]
        np.testing.assert_allclose(end, before, atol=1e-11)


@every_step
@every_stepper
def test_a_spinning_bar_stops_at_a_thin_post(stepper, h):
    """Its sides sweep: the middle does not move, and the post is met between steps."""
    arrays = stepped(bar_and_post(0.0), stepper, h)
    stop = np.pi / 2 - np.arcsin(0.01 / 0.4)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rate = rng.uniform(40, 60)
        start = stop - rate * h * rng.uniform(1, 2)
        q, qd = run(arrays, [start], [rate], 4)
        np.testing.assert_allclose(q, stop, atol=2e-5)
        np.testing.assert_allclose(qd, 0.0, atol=1e-9 * rate)


@every_stepper
def test_a_spinning_bar_passes_a_post_beyond_its_reach(stepper):
    """A hair beyond its corners, at any phase of the step."""
    corner = np.hypot(0.5, 0.005) - 0.5
    arrays = stepped(bar_and_post(corner + 1e-5), stepper, 1e-2)
    for seed in range(8):
        rate = np.random.default_rng(seed).uniform(40, 60)
        q, qd = run(arrays, [0.0], [rate], 20)
        np.testing.assert_allclose(q, 20 * 1e-2 * rate, rtol=1e-12)
        assert qd == rate


@every_step
@every_stepper
def test_a_link_of_a_robot_does_not_pass_a_wall(stepper, h):
    """The tip of an arm whose joints both turn ends at the wall, on its side."""
    model = arm_and_wall()
    arrays = stepped(model, stepper, h)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q0 = np.array([rng.uniform(0.3, 0.4), rng.uniform(-0.2, 0.2)])
        qd0 = np.array([rng.uniform(20, 40), rng.uniform(-10, 10)])
        most = []

        def look(q, qd, record, most=most):
            most.append(0.5 * np.sin(q[0]) + 0.5 * np.sin(q[0] + q[1]))

        run(arrays, q0, qd0, int(0.05 / h), look)
        assert 0.7 < max(most) < 0.9 - THICK / 2 - 0.9 * BALL


@every_stepper
def test_a_ball_does_not_pass_a_ridge_of_a_height_field(stepper):
    """A ridge as thin as a cell holds a ball that would jump over its width."""
    heights = np.zeros((81, 11))
    heights[60] = 0.3
    field = {"heights": heights, "cell": [0.02, 0.2], "point": [-1, -1, 0]}
    model = robot(
        link("ball", 0.1, (1.6e-5,) * 3, sphere(BALL)),
        joint("free", "floating", "base", "ball"),
        materials=material(),
    )
    arrays = stepped(model, stepper, 1e-2, height_fields=[field])
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q0 = [rng.uniform(-0.6, -0.4), 0, rng.uniform(BALL, 0.15), 0, 0, 0, 1]
        qd0 = [0, 0, 0, rng.uniform(20, 30), 0, 0]
        furthest = []
        run(arrays, q0, qd0, 5, lambda q, qd, _, far=furthest: far.append(q[0]))
        assert 0.1 < max(furthest) < 0.2


def test_fast_bodies_of_a_batch_have_the_bits_of_single_steps():
    """Fast and slow rows, in lanes and alone."""
    model = two_balls(1.0)
    h, n, rng = 1e-2, 24, np.random.default_rng(5)
    world = {"half_spaces": [], "stepper": "moreau_jean"}
    contact_model = ContactModel(model, world)
    batch = BatchStep(contact_model, h, n, threads=1)
    velocity = 20 * rng.standard_normal((n, 2, 3))
    velocity[::4] *= 1e-3
    q, qd, still = np.zeros((n, 14)), np.zeros((n, 12)), np.zeros((n, 12))
    for k in range(n):
        ends = np.array([np.zeros(3), (0, 0, 2.5 * BALL)])
        q[k] = places(model, ends - 2.3 * h * velocity[k])
        qd[k, 3:6], qd[k, 9:] = velocity[k]
    start, met = (q.copy(), qd.copy()), 0
    for _ in range(5):
        q, qd, outcome = batch.step(q, qd, still)
        assert not outcome.failed.any()
    arrays = stepped(model, "moreau_jean", h)
    for k in range(n):
        alone = run(arrays, start[0][k], start[1][k], 5)
        np.testing.assert_array_equal(alone[0], q[k])
        np.testing.assert_array_equal(alone[1], qd[k])
        met += not np.array_equal(alone[1], start[1][k])
    assert met > n // 2


def test_reports_of_fast_steps_have_the_impulses_of_their_meetings():
    """The record of a step with fast pairs is enough to prepare it again."""
    sim = dyn.ContactSimulator(
        ball_and_wall(),
        {"half_spaces": []},
        period=1e-2,
        q0=[0, 0, 0.3, 0, 0, 0, 1],
        qd0=[0, 0, 0, 0, 0, -50.0],
    )
    sim.advance(0.0)
    contact = sim.report.contacts[0]
    np.testing.assert_allclose(np.abs(contact.force), [0, 0, 500.0], atol=1e-6)
    np.testing.assert_allclose(contact.point, [0, 0, THICK / 2], atol=1e-6)


def test_a_walking_robot_has_no_fast_pairs():
    """Its steps are those without: nothing of it moves farther than its feet are thick."""
    scene = quadruped(0.33)
    arrays = stepped(scene.model, "stewart_trinkle", 2e-3, half_spaces=[{}])
    fast = []
    run(arrays, scene.q, scene.qd, 50, lambda q, qd, r: fast.append(r.fast))
    assert fast == [None] * 50


def test_an_infinite_angle_has_no_sine():
    """It was halved for ever: a body's rotation may overflow."""
    for angle in (np.inf, np.nan):
        assert not np.isfinite(fast_rows.turn_terms(angle)).any()
    fast_rows.turn_terms(1e300)  # ends
