"""Motion without contacts: what spins keeps its energy and momentum."""

import numpy as np
import pytest
from contact_bodies import box, joint, link, robot

import dyn_core as dyn
from dyn_core.tasks.robots.humanoid_stand import humanoid_urdf

STEPPERS = ("stewart_trinkle", "anitescu_potra", "moreau_jean")
H = 5e-3
FULL = pytest.mark.full  # as with the first stepper


def brick(centre=(0, 0, 0), kind="floating", gravity=(0, 0, 0)):
    """Return a body of three different moments, on a floating or a ball joint."""
    return robot(
        link("brick", 1.0, (0.02, 0.05, 0.06), box(0.1, 0.1, 0.1), centre),
        joint("free", "floating", "base", "brick"),
        joints={"free": {"type": kind}},
        gravity=gravity,
    )


def spinning(model, speed=20.0):
    """Return a start near the middle axis, from which a body turns over and over."""
    qd = [0.01, speed, 0.02, 1.0, 0.0, 0.0]
    return model.neutral(), np.array(qd[: model.nv])


def run(model, q, qd, seconds, h=H, also=lambda sim: None, **world):
    """Return a simulator after a time; all joints but the first are prescribed."""
    world = {"half_spaces": [], "contacts": False, **world}
    more = {"q0": q, "qd0": qd, "prescribed": model.names[2:]}
    sim = dyn.ContactSimulator(model, world, period=h, **more)
    for k in range(round(seconds / h)):
        sim.advance(k * h)
        also(sim)
    return sim


def drifts(model, q, qd, seconds, **world):
    """Return the largest relative changes of energy, of |I w|, and of momentum."""
    inertia, momentum = (dyn.solver(x).build(model) for x in ("crba", "momentum"))

    def conserved(q, qd):
        M = inertia(q)
        offset = np.array([M[2, 4], M[0, 5], M[1, 3]]) if model.nv > 3 else np.zeros(3)
        c = offset / M[-1, -1] if model.nv > 3 else offset
        I = M[:3, :3] - (offset @ c * np.eye(3) - np.outer(offset, c))
        return [qd @ M @ qd / 2, np.linalg.norm(I @ qd[:3]), *momentum(q, qd)[0][3:]]

    rows = [conserved(q, qd)]

    def also(sim):
        rows.append(conserved(sim.q, sim.qd))

    run(model, q, qd, seconds, also=also, **world)
    rows = np.array(rows)
    change = np.abs(rows - rows[0]).max(0)
    return *(change[:2] / rows[0, :2]), change[2:].max()


@pytest.mark.parametrize("centre", ((0, 0, 0), (0.1, 0.05, 0.2)), ids=("at it", "away"))
@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_spinning_body_keeps_its_energy(stepper, centre):
    """10 s at 5 ms and 20 rad/s, its origin at its centre of mass and away from it."""
    model = brick(centre)
    energy, spin, momentum = drifts(model, *spinning(model), 10.0, stepper=stepper)
    assert energy < 1e-10
    assert spin < 1e-5
    assert momentum < 1e-10


@pytest.mark.parametrize("name", ("euler", "anitescu_potra", "moreau_jean"))
def test_steps_as_one_kernel_keep_the_energy_of_a_spin(name):
    """Half a second at 5 ms: they have the gyroscopic change, too."""
    model = brick((0.1, 0.05, 0.2))
    step = dyn.solver(f"contact_{name}").build(model, world=(), engine="graph")
    (q, qd), M = spinning(model), dyn.solver("crba").build(model, engine="graph")
    energy = qd @ M(q) @ qd
    for _ in range(100):
        q, qd, *_ = step(q, qd, np.zeros(6), H, np.zeros(0))
    assert qd @ M(q) @ qd == pytest.approx(energy, rel=1e-11)


@pytest.mark.parametrize("solver", ("lemke", "coulomb_newton"))
def test_a_body_on_a_ball_joint_keeps_its_energy(solver):
    """By steps on arrays and by others; however far it turns in a step."""
    model = brick(kind="spherical")
    for speed, bound in ((20.0, 1e-5), (500.0, np.inf)):
        energy, spin, _ = drifts(model, *spinning(model, speed), 0.5, solver=solver)
        assert energy < 1e-10
        assert spin < bound


@pytest.mark.parametrize(
    "stepper", (STEPPERS[0], *(pytest.param(x, marks=FULL) for x in STEPPERS[1:]))
)
def test_a_humanoid_that_tumbles_stiffly_keeps_its_energy(stepper):
    """Its base floats and spins about the middle axis, its joints are prescribed."""
    text = humanoid_urdf()
    model = dyn.load_urdf(text, root_joint="floating", gravity=(0, 0, 0))
    qd = np.zeros(model.nv)
    qd[:3] = 0.05, 10.0, 0.05
    assert drifts(model, model.neutral(), qd, 10.0, stepper=stepper)[0] < 1e-9


@pytest.mark.parametrize(
    "model",
    (brick((0.03, 0.02, 0.05)), brick((0, 0.02, 0.1), "spherical", (0, 0, -9.81))),
    ids=("free", "top"),
)
def test_moreau_jean_is_of_second_order(model):
    """A body that tumbles, and a heavy top: halved steps quarter the changes."""
    ends = []
    for h in (4e-3, 2e-3, 1e-3):
        sim = run(model, *spinning(model), 0.4, h, stepper="moreau_jean")
        ends.append(np.append(sim.q, sim.qd))
    first, second = (np.abs(b - a).max() for a, b in zip(ends, ends[1:], strict=False))
    assert np.log2(first / second) == pytest.approx(2.0, abs=0.05)
