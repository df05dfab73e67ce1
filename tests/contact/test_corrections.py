"""Corrections of positions leave velocities, and with them momentum, alone."""

import numpy as np
import pytest
from contact_bodies import box, free_ball, free_box, joint, link, robot, sphere

import dyn_core as dyn
from dyn_core.contact.derivatives import step_derivatives
from dyn_core.contact.stepping import position_correction
from dyn_core.contact.stepping.array_batch import BatchStep
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.spatial import Vector
from dyn_core.spatial.lie import quat_matrix

SCHEMES = ("stewart_trinkle", "anitescu_potra", "moreau_jean", "event_driven")
SLIPPERY = {"default": {"mu": 0.0}}


def rotation(quaternion):
    """Return the rotation of a quaternion, which need not have unit length, (3, 3)."""
    unit = np.asarray(quaternion) / np.linalg.norm(quaternion)
    return np.array(quat_matrix(Vector(unit.tolist())).rows)


def turned(q, *quaternions):
    """Return q with the quaternions of floating bodies."""
    q = np.array(q, float)
    for k, x in enumerate(quaternions):
        q[7 * k + 3 : 7 * k + 7] = np.asarray(x) / np.linalg.norm(x)
    return q


def overlapping():
    """Return two boxes without gravity that overlap and fly along x at 10 m/s."""
    size, inertia = box(0.3, 0.2, 0.1), (0.004, 0.008, 0.011)
    parts = [link(f"box{k}", 1.0 + k, inertia, size) for k in range(2)]
    parts += [joint(f"free{k}", "floating", "base", f"box{k}") for k in range(2)]
    model = robot(*parts, gravity=(0, 0, 0), materials=SLIPPERY)
    q = turned(model.neutral(), [0, 0, 0, 1], [0.1, 0.3, -0.2, 1.0])
    q[7:10] = 0.2, 0.1, 0.06
    along_x = [rotation(q[7 * k + 3 : 7 * k + 7]).T[:, 0] * 10.0 for k in range(2)]
    return model, q, np.concatenate([x for v in along_x for x in (np.zeros(3), v)])


def dropped():
    """Return a box without friction above the floor, on one of its corners."""
    model = free_box(1.2, (0.15, 0.1, 0.05), materials=SLIPPERY)
    q = turned(model.neutral(), [0.2, 0.2, 0.0, 1.0])
    q[2] = 0.2
    return model, q, np.zeros(model.nv)


def run(scene, steps, h, **world):
    """Return a simulator after some steps."""
    model, q, qd = scene
    sim = dyn.ContactSimulator(model, world, period=h, q0=q, qd0=qd)
    for k in range(steps):
        sim.advance(k * h)
    return sim


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("stepper", "solver"),
    [*((x, "coulomb_newton") for x in SCHEMES), ("moreau_jean", "lemke")],
)
def test_boxes_that_are_moved_apart_keep_their_momentum(stepper, solver):
    """Linear momentum is the same after corrections that turn both boxes."""
    model, q, qd = scene = overlapping()
    world = {"half_spaces": [], "stepper": stepper, "solver": solver}
    sim = run(scene, 5, 1e-3, **world)
    assert abs(sim.q[3:7] - q[3:7]).max() > 1e-4  # it has been turned
    momentum = dyn.solver("momentum").build(model)
    before, after = (momentum(*state)[0][3:] for state in ((q, qd), (sim.q, sim.qd)))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("stepper", SCHEMES[:3])
def test_a_box_without_friction_goes_nowhere(stepper):
    """A box that falls on its corner has no horizontal velocity."""
    sim = run(dropped(), 120, 5e-3, stepper=stepper)
    velocity = rotation(sim.q[3:7]) @ sim.qd[3:]
    np.testing.assert_allclose(velocity[:2], 0.0, atol=1e-12)


def test_rows_of_a_batch_keep_their_momentum():
    """Rows with a correction, and rows without, packed and alone."""
    model, q, qd = overlapping()
    rows = 9
    q, qd = np.tile(q, (rows, 1)), np.tile(qd, (rows, 1))
    q[:, 7] += np.linspace(0.0, 0.4, rows)  # the last do not touch
    world = dyn.World.of({"half_spaces": []})
    batch = BatchStep(ContactModel(model, world), 1e-3, rows)
    momentum = dyn.solver("momentum").build(model)
    before = momentum(q[0], qd[0])[0][3:]
    for _ in range(5):
        q, qd, _ = batch.step(q, qd, np.zeros_like(qd))
        for k in range(rows):
            np.testing.assert_allclose(
                momentum(q[k], qd[k])[0][3:], before, rtol=0, atol=1e-12
            )


def test_a_ball_joint_turned_off_its_stop_keeps_its_angular_velocity():
    """The rod is beyond its limit of swing, and turns about another axis."""
    limits = {"type": "spherical", "swing": 0.1, "twist": [-3.0, 3.0]}
    model = robot(
        link("rod", 0.5, (0.01, 0.01, 0.01)),
        joint("turn", "revolute", "base", "rod", (0, 0, 1)),
        joints={"turn": limits},
        gravity=(0, 0, 0),
    )
    q = np.array([np.sin(0.1), 0.0, 0.0, np.cos(0.1)])  # swing 0.2
    qd = rotation(q).T @ [0.0, 2.0, 0.0]
    sim = run((model, q, qd), 1, 1e-3, half_spaces=[])
    before, after = rotation(q) @ qd, rotation(sim.q) @ sim.qd
    assert 2 * np.arcsin(abs(sim.q[0])) < 0.2 - 1e-5
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)


def wedged(tilt):
    """Return a ball 5 mm deep in the floor and in a ceiling that is tilted [rad]."""
    model = free_ball(materials=SLIPPERY)
    q = model.neutral()
    q[2] = 0.095
    half = [np.sin(tilt), 0.0, -np.cos(tilt)]
    ceiling = {"name": "ceiling", "normal": half, "point": [0.0, 0.0, 0.19]}
    floor = {"name": "floor", "normal": [0.0, 0.0, 1.0], "point": [0.0, 0.0, 0.0]}
    return (model, q, np.zeros(model.nv)), [floor, ceiling]


@pytest.mark.parametrize("stepper", SCHEMES)
@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-6, 1e-3, 1e-2, 0.1, 0.5])
def test_a_ball_without_room_is_not_shot_out(stepper, tilt):
    """Two rows asked for 0.2 m/s over the tilt: 1 km in 5 ms with 1e-6 rad.

    Now no point moves faster than 3 times push_out_speed. Without a way out it stays; a
    wide wedge sets it free. Its velocity, and with it its energy, stays zero.
    """
    scene, planes = wedged(tilt)
    sim = run(scene, 0, 2e-3, half_spaces=planes, stepper=stepper)
    places = [sim.q[:3].copy()]
    for k in range(100):
        sim.advance(k * 2e-3)
        places.append(sim.q[:3].copy())
        assert np.linalg.norm(places[-1] - places[-2]) <= 0.31 * 2e-3
    if tilt < 1e-5:
        assert np.linalg.norm(places[-1] - places[0]) < 1e-3
        assert sim.counters["contacts without room"] == 100
    np.testing.assert_allclose(sim.qd, 0.0, atol=1e-9)


def legs():
    """Return a body on two legs, whose shins are deep in it and cannot come out.

    The ball of a shin is round its knee, 1 mm beside it, below the body: no turn of
    the leg leads far, and a fast one leads up from the floor.
    """
    stops = '<limit lower="-2" upper="2" effort="0" velocity="99"/>'
    inertia, down = (1e-3,) * 3, (0.0, 0.02, -0.05)
    parts = [
        link("body", 5.0, (0.05,) * 3, box(0.3, 0.3, 0.1)),
        joint("free", "floating", "base", "body"),
    ]
    for k, y in enumerate((-0.1, 0.1)):
        thigh, shin, foot, hip = f"thigh{k}", f"shin{k}", f"foot{k}", (0, y, -0.05)
        parts += [
            link(thigh, 0.5, inertia),
            joint(f"hip{k}", "revolute", "body", thigh, (0, 1, 0), hip, stops),
            link(shin, 0.5, inertia, sphere(0.1), origin=(1e-3, 0, 0)),
            joint(f"knee{k}", "revolute", thigh, shin, (1, 0, 0), down, stops),
            link(foot, 0.2, inertia, sphere(0.03)),
            joint(f"a{k}", "revolute", shin, foot, (0, 1, 0), (0, 0, -0.25), stops),
        ]
    model = robot(*parts)
    return model, dyn.World().on_ground(model), np.zeros(model.nv)


def test_a_robot_that_is_in_itself_stays_where_it_is():
    """Its links excluded one another, and it rose by 1e10 m; it stays, and is counted."""
    scene = legs()
    sim, energies = run(scene, 0, 2e-3), []
    energy = dyn.solver("energy").build(scene[0])
    assert "overlaps" in sim.warnings[0]
    for k in range(100):
        energies.append(sum(energy(sim.q, sim.qd)))
        sim.advance(k * 2e-3)
    assert abs(sim.q[2] - scene[1][2]) < 1e-3
    assert max(energies) <= energies[0] + 1e-6
    assert sim.counters["contacts without room"] == 100


@pytest.mark.parametrize("stepper", SCHEMES)
def test_a_tower_whose_boxes_are_in_one_another_rises_at_once(stepper):
    """Each overlap closes at push_out_speed, however fast that makes the top."""
    parts = []
    for k in range(10):
        parts.append(link(f"b{k}", 1.0, (0.01,) * 3, box(0.2, 0.2, 0.2)))
        parts.append(joint(f"f{k}", "floating", "base", f"b{k}"))
    model = robot(*parts)
    q = turned(model.neutral())
    q[2::7] = 0.095 + 0.195 * np.arange(10)
    sim = run((model, q, np.zeros(60)), 10, 2e-3, stepper=stepper)
    np.testing.assert_allclose(np.diff(sim.q[2::7]), 0.197, atol=2e-5)
    assert not sim.counters


def test_a_box_beside_a_ball_without_room_comes_out_as_alone():
    """What one body asks for is no matter of another."""
    size, inertia = box(0.2, 0.2, 0.2), (0.01, 0.01, 0.01)
    model = robot(
        link("box", 1.0, inertia, size),
        joint("free", "floating", "base", "box"),
        link("ball", 1.0, inertia, sphere(0.1)),
        joint("free ball", "floating", "base", "ball"),
    )
    _, planes = wedged(1e-3)
    planes[1]["point"] = [-1000.0, 0.0, 0.19]  # above the box there is room
    ends = []
    for x in (-1000.0, -900.0):
        q = model.neutral()
        q[2], q[7], q[9] = 0.095, x, 0.095
        sim = run((model, q, np.zeros(12)), 30, 2e-3, half_spaces=planes)
        ends.append(sim.q[:7])
    assert ends[0][2] == pytest.approx(0.1, abs=2e-4)
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-9)


def test_rows_of_a_batch_without_room_have_the_bits_of_one():
    """Some rows are softened, some less, some not at all."""
    (model, q, qd), planes = wedged(1e-3)
    contact_model, n = ContactModel(model, dyn.World.of({"half_spaces": planes})), 9
    batch, Q = BatchStep(contact_model, 2e-3, n), np.tile(q, (n, 1))
    Q[:, 2] += np.linspace(0.0, 0.006, n)
    starts, V = Q.copy(), np.tile(qd, (n, 1))
    for _ in range(4):
        Q, V, _ = batch.step(Q, V, np.zeros_like(V))
    for start, end in zip(starts, Q, strict=True):
        sim = run((model, start, qd), 4, 2e-3, half_spaces=planes)
        np.testing.assert_array_equal(sim.q, end)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("stepper", ["stewart_trinkle", "moreau_jean"])
def test_slopes_of_what_has_no_room_are_differences(stepper):
    """The position after the step by the position before, in a narrow wedge."""
    (model, q, qd), planes = wedged(0.01)
    world = {"half_spaces": planes, "stepper": stepper}
    contact_model = ContactModel(model, dyn.World.of(world))

    def end(change):
        moved = contact_model, model.integrate(q, change), qd, np.zeros(6), 2e-3
        result = step_derivatives(*moved)
        return result, result.q_next

    slopes = end(np.zeros(6))[0].A[:6, :6]
    for k, change in enumerate(1e-7 * np.eye(6)):
        wanted = model.difference(end(-change)[1], end(change)[1]) / 2e-7
        np.testing.assert_allclose(slopes[:, k], wanted, atol=1e-5)


@pytest.mark.parametrize("speeds", [(np.nan, 1.0), (1.0, np.nan), (np.nan, np.nan)])
def test_a_chain_with_a_speed_that_is_no_number_is_not_slow(speeds):
    """Whichever comes first: no limit holds for NaN."""
    reach = np.zeros(2)
    for speed in speeds:
        position_correction._faster(1, speed, reach)
    assert np.isnan(reach[1])
    assert reach[0] == 0.0
