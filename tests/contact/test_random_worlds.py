"""Random worlds stepped on arrays: nothing diverges, unsolved steps are few, counted."""

from collections import Counter

import numpy as np
import pytest
from contact_bodies import joint, link, robot
from random_worlds import (
    SHAPES,
    STEPPERS,
    any_starts,
    random_world,
    shape,
    taken,
)
from step_scenes import H, Scene, free_bodies, places, tower

import dyn_core as dyn
from dyn_core.contact.collision.height_field import HeightField
from dyn_core.contact.solvers.solver_calls import ROW_SOLVERS

UNSOLVED = 5e-3  # part of all steps that may miss the tolerance
SHORTER = {"admm": {"max_iterations": 800}, "coulomb_newton": {"splittings": 300}}
PUSH = 0.1  # push_out_speed [m/s]


def test_random_worlds(hulls, full):
    """Robots and objects of every shape, 1 g to 1 t, starts deep in one another."""
    counts, seeds, count = Counter(), 400 if full else 18, 300 if full else 80
    for seed in range(seeds):
        counts += taken(random_world(seed, hulls), count)[0]
    assert counts.total() == seeds * count
    assert counts["frozen_friction"] <= UNSOLVED * counts.total()
    assert counts["wedged"] <= UNSOLVED * counts.total()


@pytest.mark.one_of(3)
@pytest.mark.parametrize("solver", ROW_SOLVERS)
def test_random_worlds_of_any_friction(solver, hulls, full):
    """No step of 500 makes energy, with friction from 0 to 1e6.

    With --full 250 000 of each solver: 50 worlds, from 50 starts each.
    """
    counts, worlds, starts, count = Counter(), 10, 1, 50
    if full:
        worlds, starts, count = 50, 50, 100
    options = {"solver": solver, "solver_options": SHORTER.get(solver, {})}
    for seed in range(worlds):
        scene = random_world(seed, hulls, any_friction=True)
        counts += any_starts(scene, starts, count, seed, **options)
    assert counts.total() == worlds * starts * count
    assert counts["frozen_friction"] > 0
    assert counts["converged"] > 0.5 * counts.total()


def test_bodies_that_are_held_do_not_rebound_with_more_energy(hulls):
    """A light body between a heavy link and the ground, found by the test above.

    The link hits it, and it would meet the ground at 42 m/s in the same step: its
    rebound drove the link's joint to 650 rad/s, and energies from 155 to 8800 J.
    """
    scene = random_world(17, hulls, any_friction=True)
    assert any_starts(scene, 31, 100, 17, solver="convex_newton")["wedged"] > 0


def test_random_worlds_have_all_there_is(hulls):
    """What the draws of test_random_worlds hold, so that none of it is missing."""
    kinds, names, ratios, deep = set(), set(), [], []
    for seed in range(18):
        scene = random_world(seed, hulls)
        kinds |= {placed.shape.kind for placed in scene.model.shapes}
        kinds |= {type(x).__name__ for x in scene.world.get("height_fields", ())}
        names.add(scene.world["stepper"])
        masses = [scene.model.I[i].m for i in scene.model.bodies if scene.model.I[i].m]
        ratios.append(max(masses) / min(masses))
        deep.append(bool(scene.simulator().warnings))
    wanted = {"sphere", "box", "cylinder", "capsule", "HeightField"}
    assert kinds >= (wanted if hulls is None else wanted | {"mesh"})
    assert names == set(STEPPERS)
    assert max(ratios) > 1e5
    assert sum(deep) >= 9


@pytest.mark.parametrize("seed", range(3))
def test_random_worlds_have_the_same_bits_again(seed, hulls):
    """One world for each stepper, from the same draw."""
    first, again = (taken(random_world(seed, hulls), 60) for _ in range(2))
    assert first == again


def test_a_simulator_counts_what_is_not_solved():
    """One Newton step is not enough: each such step is counted, and goes on."""
    options = {"max_iterations": 1, "splittings": 0}
    sim = random_world(9).simulator(solver_options=options)
    count = 0
    for k in range(60):
        sim.advance(k * sim.period)
        count += sim.report.status == "frozen_friction"
    assert np.isfinite(sim.q).all()
    assert count == sim.counters["contact not converged"] > 2


@pytest.mark.parametrize("ground", ("floor", "height field"))
@pytest.mark.parametrize("kind", SHAPES)
def test_every_shape_comes_out_at_push_out_speed(kind, ground, hulls):
    """A start 5 cm deep is reported; it rises at 0.1 m/s at most, and then it rests."""
    if kind == "hull" and hulls is None:
        pytest.skip("coal, which reads meshes, is not installed")
    rng, parts, extras = np.random.default_rng(3), [], {}
    form = shape(kind, 0.1, rng, "one", hulls)
    if isinstance(form, dict):
        extras["collisions"], form = {"one": [form]}, ""
    parts = [link("one", 1.0, (4e-3,) * 3, form), joint("j", "floating", "base", "one")]
    rough = {"mu": 0.8, "torsion": 0.005, "rolling": 0.002}
    model = robot(*parts, materials={"default": rough}, **extras)
    world = {"packages": {"hulls": hulls}} if hulls is not None else {}
    if ground == "height field":
        flat = HeightField(np.zeros((9, 9)), (0.25, 0.25), point=(-1, -1, 0))
        world |= {"half_spaces": [], "height_fields": [flat]}
    scene = Scene(model, places(model, [(0.06, 0.04, 0.0)]), world=world)
    sim = scene.simulator()
    depth = -lowest(sim)
    assert depth > 0.02
    assert f"overlaps by {depth:.3g} m" in sim.warnings[0]
    assert f"{PUSH:g} m/s" in sim.warnings[0]
    before = depth
    for k in range(int(3 * depth / PUSH / H)):
        sim.advance(k * H)
        now = -lowest(sim)
        assert before - now <= PUSH * H * (1 + 1e-3) + 1e-7
        before = now
    assert now < 1e-3
    assert np.abs(sim.qd[3:]).max() < 0.3


def lowest(sim):
    """Return the smallest gap of all contacts [m]."""
    return min(c.gap for c in sim.contact_model.pairs.contacts(sim.q))


def test_a_tower_of_twenty_stands_with_every_stepper(full):
    """0.1 s, 2 s with --full: nothing moves, every step is solved."""
    for stepper in STEPPERS:
        sim = tower(20).simulator(stepper=stepper)
        for k in range(1000 if full else 50):
            sim.advance(k * H)
        heights = sim.q.reshape(20, 7)[:, 2]
        np.testing.assert_allclose(heights, 0.1 + 0.2 * np.arange(20), atol=3e-3)
        assert not sim.counters


def test_heavy_on_light_deep_in_one_another():
    """100 kg within 100 g within the floor: both come out, slowly.

    Not so with a ratio of 1e6: corrections have no friction, and the lighter one is
    squeezed out sideways.
    """
    cube = '<box size="0.2 0.2 0.2"/>'
    model = free_bodies([cube, cube], [0.1, 1e2])
    q = places(model, [(0, 0, 0.05), (0.02, 0.0, 0.15)])
    sim = dyn.ContactSimulator(model, period=H, q0=q)
    for k in range(1500):
        sim.advance(k * H)
        assert np.abs(sim.qd).max() < 1.0
    assert sim.q[2] == pytest.approx(0.1, abs=2e-3)
    assert sim.q[9] == pytest.approx(0.3, abs=4e-3)
