"""Corrections of positions leave velocities, and with them momentum, alone."""

import numpy as np
import pytest
from contact_bodies import box, free_box, joint, link, robot

import dyn_core as dyn
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
