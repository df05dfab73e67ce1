"""Steps on arrays in hard scenes: energy, momentum, deep starts, same bits, room."""

import hashlib
import os
import subprocess
import sys
import threading
import tracemalloc
from functools import partial

import numpy as np
import pytest
from contact_bodies import box, free_box, sphere
from step_scenes import SCENES, Scene, free_bodies, places, quadruped, tower

import dyn_core as dyn
from dyn_core.contact.problem.solution import laws_of_blocks, residuals
from dyn_core.contact.solvers.solver_memory import MAX_ITERATIONS
from dyn_core.contact.stepping.step_matrices import problem_of
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import SingularError

# Largest growth of the total energy, relative to the start's above the lowest state:
# in one step, and above the start; docs/contacts.md says where it comes from.
GROWTH = {
    "stewart_trinkle": (1e-9, 1e-9),
    "anitescu_potra": (2e-3, 1e-3),
    "moreau_jean": (2e-3, 1e-3),
}
BOUNCING = (1e-1, 1e-2)  # with restitution 1: Newton's law with friction
LINKAGE = (5e-3, 2e-2)  # of a linkage, whose H changes within a step


def run(sim, count, also=lambda sim: None):
    """Make steps; check that all is finite; return the states."""
    states = []
    for k in range(count):
        sim.advance(k * sim.period)
        states.append((sim.q, sim.qd))
        also(sim)
    q, qd = (np.array(part) for part in zip(*states, strict=True))
    assert np.isfinite(q).all()
    assert np.isfinite(qd).all()
    return q, qd


def rough(restitution, mu=0.5):
    """Return materials."""
    return {"materials": {"default": {"mu": mu, "restitution": restitution}}}


def tumbling(restitution):
    """Return four boxes that fall on one another."""
    rng = np.random.default_rng(1)
    model = free_bodies([box(0.2, 0.16, 0.12)] * 4, **rough(restitution))
    points = [(0, 0, 0.2), (0.3, 0, 0.3), (0.05, 0.05, 0.5), (0.3, 0.1, 0.6)]
    return Scene(model, places(model, points, rng), rng.standard_normal(24))


def column(restitution):
    """Return a leaning column of balls that falls."""
    model = free_bodies([sphere(0.1)] * 6, **rough(restitution))
    points = [(0.05 * k, 0, 0.1 + 0.21 * k) for k in range(6)]
    return Scene(model, places(model, points))


def linkage():
    """Return the four-bar without a motor, above a floor."""
    scene = SCENES["four-bar"](None)
    floor = {"name": "floor", "point": [0, 0, -0.3]}
    return Scene(scene.model, scene.q, world={"half_spaces": [floor]})


@pytest.mark.turns("stepper")
@pytest.mark.parametrize("stepper", GROWTH)
@pytest.mark.parametrize(
    ("scene", "bound"),
    (
        (partial(tumbling, 0.0), None),
        (partial(column, 0.0), None),
        (quadruped, None),
        (partial(tumbling, 1.0), BOUNCING),
        (partial(column, 1.0), BOUNCING),
        (linkage, LINKAGE),
    ),
    ids=("boxes", "balls", "quadruped", "bouncing boxes", "bouncing balls", "four-bar"),
)
def test_energy_does_not_grow(scene, bound, stepper, request):
    """Passive scenes: 1 s, 10 s with --full."""
    scene = scene()
    sim = scene.simulator(stepper=stepper)
    energy = dyn.solver("energy").build(scene.model)
    total = [sum(float(x) for x in np.ravel(energy(sim.q, sim.qd)))]

    def watch(sim):
        total.append(sum(float(x) for x in np.ravel(energy(sim.q, sim.qd))))

    run(sim, 5000 if request.config.getoption("--full") else 500, watch)
    a_step, above = bound or GROWTH[stepper]
    size = total[0] - min(total)
    assert np.diff(total).max() <= a_step * size
    assert max(total) - total[0] <= above * size
    assert total[-1] < total[0]


def test_momentum_ledger():
    """Momentum changes by the contact forces from the world and by gravity alone."""
    model = free_bodies([box(0.2, 0.16, 0.12)] * 4, [1.0, 2.0, 0.5, 3.0])
    scene = tumbling(0.0)
    scene.model = model
    sim, m = scene.simulator(), np.array([1.0, 2.0, 0.5, 3.0])
    most = 0.0
    for k in range(300):
        q0, qd0 = sim.q, sim.qd
        sim.advance(k * sim.period)
        # velocities in body axes, both along the axes of q0: those of sim.last
        R = sim.contact_model.kinematics(q0)[0][:, :3, :3]
        v0, v1 = (
            np.einsum("kij,kj->ki", R, qd.reshape(4, 6)[:, 3:])
            for qd in (qd0, sim.last.velocity)
        )
        change = m @ (v1 - v0) / sim.period
        wanted = sim.report.total_force + m.sum() * np.array([0, 0, -9.81])
        error = np.abs(change - wanted).max()
        most = max(most, error / max(1.0, np.abs(wanted).max()))
    assert most < 1e-9


def test_a_start_deep_in_the_floor_comes_out():
    """At push_out_speed, at rest, with a warning; and then it rests on the floor."""
    model = free_box(half=(0.2, 0.15, 0.1))
    scene = Scene(model, places(model, [(0, 0, -0.1)]))
    sim = scene.simulator()
    assert "overlaps by 0.2 m" in sim.warnings[0]
    q, qd = run(sim, 1200)
    assert np.abs(qd).max() < 1e-6
    assert np.diff(q[:, 2]).max() <= 0.1 * sim.period * (1 + 1e-6)
    assert q[-1, 2] == pytest.approx(0.1, abs=1e-4)
    assert not sim.counters


@pytest.mark.parametrize("ratio", (1e6, 1e-6))
def test_ratios_of_masses(ratio):
    """A tower of two rests, however heavy its top is."""
    sim = tower(2, ratio=ratio).simulator()
    q, qd = run(sim, 200)
    assert np.abs(qd[100:]).max() < 1e-5
    assert q[-1, 9] == pytest.approx(0.3, abs=2e-4)
    assert not sim.counters


def test_a_tower_of_twenty_stands():
    """80 contacts: it needs more room than there is at first, in the first step."""
    sim = tower(20).simulator()
    q, _ = run(sim, 100)
    assert sim.arrays.contacts == 80
    assert abs(q[-1, 7 * 19 + 2] - (0.1 + 19 * 0.2)) < 3e-3
    assert not sim.counters


def fingerprint(name="capsule, cylinder, ball, box", count=80):
    """Return the digest of a run."""
    sim = SCENES[name](np.random.default_rng(7)).simulator()
    q, qd = run(sim, count)
    return hashlib.sha256(q.tobytes() + qd.tobytes()).hexdigest()


def test_same_input_same_bits():
    """Again, after a reset, in another thread, and in another process."""
    wanted = fingerprint()
    sim = SCENES["capsule, cylinder, ball, box"](np.random.default_rng(7)).simulator()
    run(sim, 33)
    sim.reset()
    q, qd = run(sim, 80)
    assert hashlib.sha256(q.tobytes() + qd.tobytes()).hexdigest() == wanted
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(fingerprint())) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [wanted] * 2
    code = "import test_array_robustness as t; print(t.fingerprint())"
    folder = os.path.dirname(__file__)
    path = os.pathsep.join([folder, *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == wanted


def test_a_state_of_another_size_is_refused():
    """Set from outside, such as that of another robot: nothing is broadcast."""
    sim = SCENES["capsule, cylinder, ball, box"](np.random.default_rng(7)).simulator()
    sim.q = np.zeros(1)
    with pytest.raises(
        dyn.ShapeError, match=r"q, qd: wanted shapes \(28,\), \(24,\), got \(1"
    ):
        sim.advance(0.0)


def test_room_grows_within_a_run():
    """More contacts than there is room for, in mid-air before: nothing is forgotten."""
    model = free_bodies([box(0.2, 0.2, 0.2)] * 6)
    points = [(0.4 * k, 0, 0.1 + 0.05 * k) for k in range(6)]
    scene = Scene(model, places(model, points))
    sim, roomy = scene.simulator(), scene.simulator()
    roomy.arrays.make_room(64)
    assert sim.arrays.room.contacts == 16
    wanted = run(roomy, 150)
    got = run(sim, 150)
    assert sim.arrays.room.contacts == 32
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "name", ("four-bar", "ball joint with limits", "limits", "stack that starts inside")
)
def test_every_form_has_the_same_bits(name, monkeypatch):
    """Machine code, with indices checked, and as Python: states, impulses, names."""
    if host_machine.missing():
        pytest.skip("no compiler of machine code here")
    from dyn_core.contact.stepping import array_step

    results = []
    for form in ("machine code", "checked", "Python"):

        def made(function, form=form):
            if form == "Python":
                return Python(function)
            return compiled(function, checked=form == "checked")

        monkeypatch.setattr(array_step, "compiled", made)
        sim = SCENES[name](np.random.default_rng(7)).simulator(
            stabilisation="split_impulse"
        )
        impulses = []
        with np.errstate(all="ignore"):
            q, qd = run(
                sim,
                60 if form != "Python" else 12,
                lambda sim, to=impulses: to.append(dict(sim.report.impulses)),
            )
        results.append((q, qd, impulses))
    for q, qd, impulses in results[1:]:
        n = len(q)
        np.testing.assert_array_equal(q, results[0][0][:n])
        np.testing.assert_array_equal(qd, results[0][1][:n])
        for a, b in zip(impulses, results[0][2][:n], strict=True):
            assert list(a) == list(b)
            for key in a:
                np.testing.assert_array_equal(a[key], b[key])


class Python:
    """A function of the subset as Python, bound as machine code is."""

    def __init__(self, function):
        self.function = function

    def bind(self, *first):
        """Return the function of the rest."""
        return lambda *rest: self.function(*first, *rest)


def test_a_long_run_of_a_quadruped(request):
    """Sprung legs, pushed at random; a million steps with --full."""
    scene, rng = quadruped(), np.random.default_rng(0)
    count = 1_000_000 if request.config.getoption("--full") else 2000
    step = scene.simulator().arrays
    q, qd, nv = scene.q, scene.qd, scene.model.nv
    tau, unsolved, short = np.zeros(nv), 0, 0
    for k in range(count):
        if k % 50 == 0:
            push = 2 * rng.uniform(-1, 1, nv - 6)
        tau[6:] = push + 40 * (scene.q[7:] - q[7:]) - qd[6:]
        q, qd, record = step.step(k * step.h, q, qd, tau)
        unsolved += record.status != "converged"
        short += record.short
    assert np.isfinite(q).all()
    assert np.isfinite(qd).all()
    assert unsolved <= 1e-3 * count
    assert short <= 1e-2 * count


def test_programs_of_other_engines():
    """A step calls back into Python where its Programs are no machine code."""
    states = []
    for engine in (None, "graph"):
        scene = SCENES["four-bar"](np.random.default_rng(7))
        scene.settings["engine"] = engine
        states.append(run(scene.simulator(stepper="moreau_jean"), 20))
    for a, b in zip(*states, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)


def test_what_a_program_refuses_is_said_by_its_name():
    """A ball joint upside down: the error of the Program, the last state is kept."""
    sim = SCENES["ball joint with limits"](None).simulator()
    sim.advance(0.0)
    sim.q = np.array([1.0, 0.0, 0.0, 0.0])
    with pytest.raises(SingularError, match="swing is pi"):
        sim.advance(sim.period)
    assert sim.paused and sim.q[0] == 1.0


def test_an_unsolved_step_of_many_contacts_needs_no_matrix_of_its_rows():
    """Neither the proof that nothing solves it, nor the names in its message."""
    boxes = "".join(
        f'<collision><origin xyz="{k} 0 0"/><geometry><box size="1 1 1"/></geometry>'
        "</collision>"
        for k in range(60)
    )
    model = dyn.load_urdf(
        f'<robot name="bar"><link name="bar"><inertial><mass value="1"/><inertia'
        f' ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{boxes}</link>'
        "</robot>",
        root_joint="floating",
    )
    q0 = dyn.World().on_ground(model)
    sim = dyn.ContactSimulator(model, {"half_spaces": [{}], "margin": 2.0}, q0=q0)
    sim.advance(0.0)
    arrays, record = sim.arrays, sim._last
    m, blocks = arrays.m, len(record.ids)
    assert m == 3 * 8 * 60
    tracemalloc.start()
    assert arrays.proven(blocks, m) == MAX_ITERATIONS
    names = arrays.names(record)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert names.count("bar/ground") == 3 and names.endswith(", ...")
    assert peak < 8 * m * m / 4
    problem = problem_of(arrays.prepare_again(record), blocks, m)
    free = problem_of(arrays.memory, blocks, m, matrix=False)
    laws = laws_of_blocks(problem, record.impulse)
    np.testing.assert_allclose(laws_of_blocks(free, record.impulse), laws, atol=1e-12)
    assert max(laws) == pytest.approx(residuals(problem, record.impulse).law)
