"""Steps on arrays: those of the general stepper, and their bits in every form."""

import numpy as np
import pytest
from contact_bodies import G_EARTH, box, free_ball, joint, link, robot
from step_scenes import SCENES, Scene, free_bodies, places, random_tree

import dyn_core as dyn
from dyn_core.contact.stepping.step_records import why_not
from dyn_core.problems import CONTACT_SOLVE

STEPPERS = ("stewart_trinkle", "anitescu_potra", "moreau_jean")
STABILISATIONS = ("split_impulse", "baumgarte", "erp_cfm", "none")
VELOCITY = 1e-7  # of two solutions to the tolerance 1e-9, relative to the largest
# Whose impulses are not unique: more rows than directions, or bodies wedged together.
SHARED = {
    "four-bar",
    "stack",
    "stack that starts inside",
    "torsion, rolling, restitution",
    "capsule, cylinder, ball, box",
    "height field",
}


def close(got, wanted, tolerance):
    """Check two arrays relative to the largest entry, or 1."""
    got, wanted = np.asarray(got, float), np.asarray(wanted, float)
    scale = max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


def all_take_part(general):
    """Whether no gap near a scheme of closed gaps is left out of its step.

    The general correction of positions looks at these too, that on arrays does not.
    """
    last = general.last
    return (
        general.contact_model.state(last.q, last.qd, last.h).layout.m
        == general.report.m
    )


def compare(arrays, general, scene, count, also=lambda a, b: None):
    """Check steps from the same states one by one; return the most rows of one."""
    most, unsolved = 0, 0
    for k in range(count):
        t = k * arrays.period
        arrays.q, arrays.qd = general.q, general.qd
        for sim in (arrays, general):
            scene.acts(sim, t)
            sim.advance(t)
        a, b = arrays.report, general.report
        assert a.m == b.m
        if not (a.converged and b.converged):  # no tolerance holds for these
            unsolved += 1
            continue
        if all_take_part(general):
            close(arrays.q, general.q, VELOCITY)
            close(arrays.qd, general.qd, VELOCITY)  # along the axes of q
        also(arrays, general)
        most = max(most, a.m)
    assert unsolved <= count // 20
    short = "contacts without room"
    assert arrays.counters[short] == general.counters[short]
    return most


def same_report(arrays, general):
    """Check what is unique in reports: contacts, energies, rank, sums of forces."""
    a, b = arrays.report, general.report
    assert (a.t, a.h, a.solver) == (b.t, b.h, b.solver)
    assert a.rank == b.rank
    assert list(a.impulses) == list(b.impulses)
    energy = max(1.0, abs(b.kinetic_change))
    assert abs(a.energy_change - b.energy_change) < 1e-6 * energy
    assert abs(a.kinetic_change - b.kinetic_change) < 1e-6 * energy
    close(a.total_force, b.total_force, 1e-5)
    for x, y in zip(a.contacts, b.contacts, strict=True):
        assert (x.id, x.link_a, x.link_b) == (y.id, y.link_a, y.link_b)
        assert (x.body_a, x.body_b) == (y.body_a, y.body_b)
        close([*x.point, *x.normal, x.gap], [*y.point, *y.normal, y.gap], 1e-6)
        if len(y.impulse) > 2:
            assert abs(x.sliding - y.sliding) < 1e-6


def same_forces(arrays, general):
    """Check impulses by name, forces, reactions and prescribed efforts, too."""
    same_report(arrays, general)
    a, b = arrays.report, general.report
    for name, impulse in b.impulses.items():
        close(a.impulses[name], impulse, 1e-6)
    for x, y in zip(a.contacts, b.contacts, strict=True):
        close([*x.force, *x.torque], [*y.force, *y.torque], 1e-4)
    close(arrays.effort, general.effort, 1e-5)
    if not arrays.model.loops:
        close(arrays.reactions(), general.reactions(), 1e-4)


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("name", SCENES)
def test_steps_are_those_of_the_general_stepper(name, stepper):
    """Velocities and positions in every scene; impulses and forces where unique."""
    scene = SCENES[name](np.random.default_rng(7))
    also = same_report if name in SHARED else same_forces
    arrays, general = scene.both(stepper=stepper)
    assert compare(arrays, general, scene, 40, also) > 0


@pytest.mark.parametrize("law", STABILISATIONS)
@pytest.mark.parametrize("name", ("four-bar", "gear, spring, damping", "quadruped"))
def test_stabilisations(name, law):
    """Each correction of position errors."""
    scene = SCENES[name](np.random.default_rng(3))
    arrays, general = scene.both(stabilisation=law)
    assert compare(arrays, general, scene, 40) > 0


@pytest.mark.parametrize("seed", range(12))
def test_random_trees(seed):
    """Floating trees of any shapes and joints."""
    scene = random_tree(seed)
    stepper, law = STEPPERS[seed % 3], STABILISATIONS[seed % 4]
    arrays, general = scene.both(5e-3, stepper=stepper, stabilisation=law)
    assert compare(arrays, general, scene, 40) > 0


def test_meshes(tmp_path):
    """A hull of a file falls on its corner."""
    pytest.importorskip("coal")
    path = tmp_path / "wedge.obj"
    points = "0 0 0\n1 0 0\n0 1 0\n0 0 1".split("\n")
    path.write_text(
        "".join(f"v {p}\n" for p in points) + "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    )
    shape = '<mesh filename="package://p/wedge.obj" scale="0.3 0.2 0.2"/>'
    model = free_bodies([shape])
    world = {"packages": {"p": str(tmp_path)}}
    scene = Scene(model, places(model, [(0, 0, 0.2)], np.random.default_rng(0)))
    scene.world = world
    assert compare(*scene.both(), scene, 150) > 2


@pytest.mark.parametrize("name", dyn.solvers(CONTACT_SOLVE))
def test_every_solver_by_name(name):
    """A ball lands by any solver named in a World; why_not says which step it takes."""
    model = free_ball(materials={"default": {"mu": 0.0}})
    scene = Scene(model, places(model, [(0, 0, 0.101)]))
    try:
        sim = scene.simulator(solver=name)
        for k in range(60):
            sim.advance(k * sim.period)
    except dyn.errors.UnsupportedError as error:
        pytest.skip(str(error))
    assert (sim.arrays is None) == (why_not(sim.world) is not None)
    assert sim.q[2] == pytest.approx(0.1, abs=1e-4)
    assert abs(sim.qd[5]) < 1e-2  # soft_contact swings


def test_contact_forces_carry_each_box():
    """Of two boxes at rest each feels its own weight, pressed from above and below."""
    inertia, size = (1 / 60, 1 / 60, 4 / 150), box(0.4, 0.4, 0.2)
    model = robot(
        *(link(name, m, inertia, size) for name, m in (("low", 2.0), ("high", 3.0))),
        joint("a", "floating", "base", "low"),
        joint("b", "floating", "base", "high"),
    )
    q = model.neutral()
    q[[2, 9]] = 0.1, 0.3
    sim = dyn.ContactSimulator(model, {}, period=1e-3, q0=q)
    sim.advance(0.0)
    forces = sim.last.wrenches() / sim.last.h
    np.testing.assert_allclose(forces[:, 5], G_EARTH * np.array([2.0, 3.0]), rtol=1e-6)
