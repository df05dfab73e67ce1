"""Worked contact cases on bodies and robots: the problem of one state."""

import numpy as np
import pytest
from constrained_state import constrained_state
from contact_bodies import (
    G_EARTH,
    free_box,
    joint,
    link,
    pendulum,
    planar_rod,
    point_mass,
    robot,
    rotor,
    sphere,
    two_link,
)
from step_scenes import SCENES

import dyn_core as dyn
from dyn_core.contact import solve
from dyn_core.contact.collision.pairs import ContactPairs
from dyn_core.contact.rows.constraints import Constraint
from dyn_core.contact.stepping.contact_model import ContactModel

EXACT = ("admm", "projected_gauss_seidel", "lemke")
H = 0.01


def _mu(value, **more):
    return {"materials": {"default": {"mu": value, **more}}}


def _scene(model, q, qd=None, h=H, world=None):
    qd = np.zeros(model.nv) if qd is None else qd
    return constrained_state(ContactModel(model, world), q, qd, h)


def _slope(theta):
    return {"half_spaces": [{"normal": [np.sin(theta), 0, np.cos(theta)]}]}


def _box_on_slope(theta, mu):
    """Return C1's scene, its tilted pose and the direction downhill."""
    model = free_box(**_mu(mu))
    turn = [0.0, np.sin(theta / 2), 0.0, np.cos(theta / 2)]
    up = np.array([np.sin(theta), 0, np.cos(theta)])
    down = np.array([np.cos(theta), 0, -np.sin(theta)])
    q = np.concatenate([0.25 * up, turn])
    return _scene(model, q, world=_slope(theta)), up, down


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize(
    ("degrees", "mu", "wanted"),
    [
        (20, 0.5, [18.4367692198, 6.71043521205, 10.8959934129, 7.5407758069]),
        (35, 0.4, [16.071763109, 6.42870524358, 9.64305786537, 6.42870524358]),
    ],
)
def test_c1_box_on_an_incline(solver, degrees, mu, wanted):
    """Normal force, friction and the sums of the edges, by any exact solver."""
    state, up, down = _box_on_slope(np.radians(degrees), mu)
    assert len(state.constraints) == 4
    free = state.free(np.zeros(6), H)
    problem = state.problem(free, H)
    solution = solve(problem, solver, **({"facets": 4} if solver == "lemke" else {}))
    assert solution.converged
    total, edges = np.zeros(3), [0.0, 0.0]
    for c in state.constraints:
        x = solution.of(c.name)
        total += c.W[:, 3:].T @ x / H
        edges[int(c.contact.point @ down < 0)] += x[0] / H
    got = [total @ up, -total @ down, *edges]
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
    after = state.moved(free, solution.impulses)
    if degrees == 35:
        R = state.poses[0][:3, :3]
        np.testing.assert_allclose(R @ after[3:] @ down, 0.0241243221881, rtol=1e-6)
    else:
        np.testing.assert_allclose(after, 0, atol=1e-9)


def test_c3_box_at_rest():
    """Ranks 3 and 6, G_nn as given, equal parts by least norm, nothing moves."""
    model = free_box(**_mu(0.8))
    q = np.array([0, 0, 0.25, 0, 0, 0, 1])
    state = _scene(model, q)
    order = sorted(
        state.constraints, key=lambda c: (-c.contact.point[0], -c.contact.point[1])
    )
    normals = [state.first[state.constraints.index(c)] for c in order]
    G = state.G[np.ix_(normals, normals)]
    row = [2.77865168539, 0.621348314607, 0.378651685393, -1.77865168539]
    np.testing.assert_allclose(G[0], row, rtol=1e-10)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(G), [0, 2, 4.31460674157, 4.8], atol=1e-9
    )
    solution = solve(state.problem(state.free(np.zeros(6), H), H))
    assert solution.rank == 6
    np.testing.assert_allclose(solution.impulses[normals].sum(), 0.1962, rtol=1e-8)
    np.testing.assert_allclose(solution.velocities, 0, atol=1e-9)
    moved = free_box(shift=(0.1, -0.08, 0), **_mu(0.0))
    state = _scene(moved, q)
    solution = solve(
        state.problem(state.free(np.zeros(6), H), H), "projected_gauss_seidel"
    )
    points = np.array([c.contact.point for c in state.constraints])
    np.testing.assert_allclose(solution.impulses.sum(), 0.1962, rtol=1e-7)
    np.testing.assert_allclose(
        solution.impulses @ (points[:, :2] - [0.1, -0.08]), 0, atol=1e-8
    )


def test_c4_limit_of_a_pendulum():
    """Resting torque, and one Stewart-Trinkle step to the stop exactly."""
    model = pendulum(lower=0.4)
    world = dyn.World(stabilisation="none", solver="principal_pivoting")
    sim = dyn.ContactSimulator(model, world, period=H, q0=[0.4])
    sim.advance(0.0)
    torque = sim.report.impulses["lower limit of pivot"][0] / H
    np.testing.assert_allclose(torque, 2.29211636283, rtol=1e-9)
    model = pendulum(lower=-0.25)
    sim = dyn.ContactSimulator(model, world, period=H, q0=[-0.2495], qd0=[-0.5])
    sim.advance(0.0)
    np.testing.assert_allclose(
        sim.report.impulses["lower limit of pivot"], 0.12946631987, rtol=1e-9
    )
    np.testing.assert_allclose([*sim.qd, *sim.q], [-0.05, -0.25], rtol=1e-12)


@pytest.mark.parametrize("solver", ["lemke", "enumeration", "admm"])
def test_c5_painleve(solver):
    """A rod that pushes into the ground: the tip sticks at the level of velocities."""
    for mu, speed, wanted, after in (
        (2.0, 0.0, [0.404465776419, 0.469358909542], [-0.530641090458, 0.306365776419, 0.612731552838]),
        (0.5, 0.0, [0.0891428427298, 0.0445714213649], None),
    ):  # fmt: skip
        model = planar_rod(**_mu(mu))
        q = np.array([0, np.sin(np.pi / 3), np.pi / 3])
        state = _scene(model, q, np.array([-1.0, 0.0, speed]))
        n, t = state.J[:2]
        np.testing.assert_allclose(n, [0, 1, -0.5], atol=1e-12)
        np.testing.assert_allclose(t, [1, 0, np.sin(np.pi / 3)], atol=1e-12)
        np.testing.assert_allclose(
            state.G[:2, :2],
            [[1.75, -1.29903810568], [-1.29903810568, 3.25]],
            rtol=1e-10,
        )
        free = state.free(np.zeros(3), H)
        solution = solve(state.problem(free, H), solver)
        assert solution.converged
        np.testing.assert_allclose(solution.impulses[:2], wanted, rtol=1e-7)
        if after:
            np.testing.assert_allclose(
                state.moved(free, solution.impulses), after, rtol=1e-7
            )
        else:
            np.testing.assert_allclose(
                solution.velocities[1], -0.970942830118, rtol=1e-7
            )


def test_c5_three_answers():
    """A turning rod: separate, stick and slip all are solutions; one is found."""
    model = planar_rod(**_mu(2.0))
    q = np.array([0, np.sin(np.pi / 3), np.pi / 3])
    state = _scene(model, q, np.zeros(3))
    problem = state.problem(np.zeros(3), H)
    from dyn_core.contact import ConstraintProblem

    b = [0.118406350946, -0.875, 0.0]
    problem = ConstraintProblem(problem.layout, problem.G, b, mu=2.0)
    answers = [
        (0, 0),
        (0.187959425473, 0.344358909542),
        (0.139617583138, 0.279235166276),
    ]
    for solver in ("lemke", "admm", "enumeration"):
        solution = solve(problem, solver)
        gaps = [np.abs(solution.impulses[:2] - x).max() for x in answers]
        assert min(gaps) < 1e-6
        assert solution.residuals.law < 1e-6
    assert solve(problem, "enumeration", unique=True).status == "not_unique"


def test_c6_stack_of_two():
    """Two bodies on slides: G, impulses, and each its weight, at ratios to 1000."""
    for masses in ((1.0, 1.0), (1.0, 1000.0)):
        parts = []
        for k, m in enumerate(masses, 1):
            parts.append(link(f"b{k}", m, (0, 0, 0), sphere(0.1)))
            parts.append(joint(f"z{k}", "prismatic", "base", f"b{k}"))
        model = robot(*parts, **_mu(0.0))
        state = _scene(model, np.array([0.1, 0.3]))
        (m1, m2), order = (
            masses,
            np.argsort([c.contact.body_b for c in state.constraints]),
        )
        G = state.G[np.ix_(order, order)]
        np.testing.assert_allclose(
            G, [[1 / m1, -1 / m1], [-1 / m1, 1 / m1 + 1 / m2]], rtol=1e-10
        )
        solution = solve(state.problem(state.free(np.zeros(2), H), H))
        assert solution.iterations < 100
        np.testing.assert_allclose(
            solution.impulses[order],
            [(m1 + m2) * G_EARTH * H, m2 * G_EARTH * H],
            rtol=1e-6,
        )


def test_c8_dry_friction():
    """It sticks below its torque, slips above, and stops after the right time."""
    model, world = rotor(), {"solver": "principal_pivoting"}
    for tau, impulse, speed in ((0.9, -0.009, 0.0), (1.5, -0.011, 0.0125)):
        sim = dyn.ContactSimulator(model, world, period=H)
        sim.command(0.0, [tau])
        sim.advance(0.0)
        np.testing.assert_allclose(
            [*sim.report.impulses["dry friction of axle"], *sim.qd],
            [impulse, speed], atol=1e-12,
        )  # fmt: skip
    sim = dyn.ContactSimulator(model, world, period=H, qd0=[2.0])
    speeds = []
    for k in range(65):
        sim.advance(k * H)
        speeds.append(sim.qd[0])
    np.testing.assert_allclose(speeds[0], 1.965625, rtol=1e-10)
    assert speeds[57] > 0
    np.testing.assert_allclose(speeds[58:], 0.0, atol=1e-15)
    # damping is no block, and dry friction is not counted twice
    sim = dyn.ContactSimulator(rotor(0.32, 1.1, 0.5), period=H, qd0=[2.0])
    sim.advance(0.0)
    np.testing.assert_allclose(sim.qd, (0.32 * 2 - 0.011) / (0.32 + 0.005), rtol=1e-10)


def test_c9_geared_rotors():
    """A gear between any two joints: accelerations and its multiplier."""
    model = robot(
        link("a", 1.0, (0.3, 0.3, 0.3)),
        link("b", 1.0, (0.05, 0.05, 0.05)),
        joint("ja", "continuous", "base", "a"),
        joint("jb", "continuous", "base", "b"),
    )
    world = {"gears": [{"joints": ["ja", "jb"], "ratio": 3.0}]}
    sim = dyn.ContactSimulator(model, world, period=H)
    sim.command(0.0, [1.0, -0.1])
    sim.advance(0.0)
    np.testing.assert_allclose(sim.qd / H, [0.933333333333, 2.8], rtol=1e-10)
    np.testing.assert_allclose(
        sim.report.impulses["gear of ja and jb"] / H, -0.24, rtol=1e-9
    )


def test_c10_only_convex_solvers_lift():
    """Exact solvers slide on the ground; the convex ones lift off, as they say."""
    model = point_mass(**_mu(0.5))
    state = _scene(model, np.zeros(2), np.array([1.0, 0.0]))
    problem = state.problem(state.free(np.zeros(2), H), H)
    for solver in EXACT:
        solution = solve(problem, solver)
        np.testing.assert_allclose(solution.impulses[0], 0.0981, rtol=1e-7)
        np.testing.assert_allclose(solution.velocities[:2], [0, 0.95095], atol=1e-8)
        assert solution.exact or solver == "lemke"  # its cones are pyramids
    solution = solve(problem, "convex_newton")
    np.testing.assert_allclose(solution.impulses[0], 0.47848, rtol=1e-4)
    np.testing.assert_allclose(solution.velocities[:2], [0.38038, 0.76076], rtol=1e-4)
    assert not solution.exact


def test_c11_planar_arm():
    """Matrices of the arm; its tip on a line, pinned, and against a ceiling."""
    model = two_link()
    q, qd, tau = np.array([0.4, -0.9]), np.array([0.7, -0.3]), np.array([0.5, 0.2])
    state = _scene(model, q, qd, world={"contacts": False, "limits": False})
    np.testing.assert_allclose(
        state.H,
        [[2.21062130795, 0.461977320642], [0.461977320642, 0.213333333333]],
        rtol=1e-10,
    )
    np.testing.assert_allclose(state.C, [19.1525494353, 3.29010189857], rtol=1e-10)
    p, J = (
        state.poses[1][:3, :3] @ [0.8, 0, 0] + state.poses[1][:3, 3],
        state.J_bodies[2],
    )
    tip = J[3:5] - np.array([[p[1]], [-p[0]]]) * J[2]
    np.testing.assert_allclose(
        tip,
        [[-0.00587791142529, 0.383540430883], [1.62312704352, 0.702066049512]],
        rtol=1e-9,
    )
    rows = [
        Constraint(f"tip {axis}", axis, "loop", "bilateral", tip[[k]])
        for k, axis in enumerate("xy")
    ]
    from dataclasses import replace

    qdd = state.free(tau, 1.0) - qd
    np.testing.assert_allclose(qdd, [-9.88338146993, 6.917794649], rtol=1e-9)
    free = np.array([2.14769712632, -11.3146835035])  # of the tip, with dJ/dt qd
    for count, wanted, after in (
        (1, [-1.69421990115], [-8.71240513161, 1.33607741989]),
        (2, [-12.1352064268, 11.1115301301], [-0.552245657765, 1.46113514716]),
    ):
        part = replace(state, constraints=tuple(rows[:count]))
        drift = (free - tip @ qdd)[:count]
        for solver in ("admm", "principal_pivoting", "lemke"):
            solution = solve(part.problem(qdd, 1.0, drift), solver)
            np.testing.assert_allclose(solution.impulses, wanted, rtol=1e-8)
            np.testing.assert_allclose(
                part.moved(qdd, solution.impulses), after, rtol=1e-8
            )
    np.testing.assert_allclose(
        replace(state, constraints=tuple(rows)).G,
        [[1.26766137316, 1.1911622577], [1.1911622577, 2.31918404457]], rtol=1e-9,
    )  # fmt: skip


def _ceiling(p):
    return {
        "half_spaces": [{"name": "ceiling", "point": p.tolist(), "normal": [0, -1, 0]}]
    }


@pytest.mark.parametrize("restitution", ["newton", "poisson"])
@pytest.mark.parametrize("impacts", ["simultaneous", "sequential"])
def test_c11_tip_hits_a_ceiling(restitution, impacts):
    """An impact with e = 0.3, by all laws of restitution alike."""
    model = two_link(**_mu(0.0, restitution=0.3))
    q, qd = np.array([0.4, -0.9]), np.array([0.7, -0.3])
    state = _scene(model, q)
    p = state.poses[1][:3, :3] @ [0.8, 0, 0] + state.poses[1][:3, 3]
    world = {**_ceiling(p), "stepper": "event_driven", "restitution": restitution,
             "impacts": impacts}  # fmt: skip
    sim = dyn.ContactSimulator(model, world, period=1e-6, q0=q, qd0=qd)
    sim.advance(0.0)
    impact = sim.reports[0]
    assert impact.h == 0
    np.testing.assert_allclose(impact.contacts[0].impulse, 0.518820338172, rtol=1e-8)
    np.testing.assert_allclose(sim.qd, [0.655933356831, -1.91197666634], rtol=2e-5)


@pytest.mark.parametrize("solver", EXACT)
def test_c14_oblique_impact(solver):
    """A point mass bounces with friction."""
    model = point_mass(**_mu(0.3, restitution=0.5))
    world = {"stepper": "event_driven", "solver": solver}
    if solver == "lemke":
        world["solver_options"] = {"facets": 4}
    sim = dyn.ContactSimulator(model, world, period=1e-9, q0=[0, 0], qd0=[2, -3])
    sim.advance(0.0)
    c = sim.reports[0].contacts[0]
    np.testing.assert_allclose(c.impulse[:2], [4.5, -1.35], rtol=1e-6)
    np.testing.assert_allclose(sim.qd, [0.65, 1.5], rtol=1e-6)
    world["restitution"] = "poisson"
    sim = dyn.ContactSimulator(model, world, period=1e-9, q0=[0, 0], qd0=[2, -3])
    sim.advance(0.0)
    np.testing.assert_allclose(sim.qd, [0.65, 1.5], rtol=1e-6)


def _lowest(model, q, world, link=None):
    """Return the smallest gap of a link, or of all, to the surfaces of a world."""
    world = dyn.World.of(world)
    pairs = ContactPairs(model, (*world.half_spaces, *world.height_fields), 1e3)
    grounded = [c for c in pairs.contacts(q) if c.body_b == 0]
    return min(c.gap for c in grounded if link in (None, c.id.link_a))


def test_robots_are_set_on_the_ground():
    """The lowest shape touches, from above and below; only the root's z has changed."""
    model = dyn.load("quadruped", root_joint="floating")
    wall = {"name": "wall", "point": [9.0, 0, 0], "normal": [-1.0, 0, 0]}
    for world in ({}, _slope(0.3), {"half_spaces": [{}, wall]}):
        for start in (None, model.random(3)):
            q = dyn.World.of(world).on_ground(model, start)
            assert abs(_lowest(model, q, world)) < 1e-12
            moved = np.flatnonzero(q != (model.start() if start is None else start))
            assert moved.tolist() == [2]
    sim = dyn.ContactSimulator(model, "floor", engine="graph")
    assert sim.warnings[0].endswith("valid: q0 from World.on_ground(model, q0)")
    with pytest.raises(dyn.UnsupportedError, match="valid: root_joint='floating'"):
        dyn.World().on_ground(dyn.load("arm7"))
    with pytest.raises(dyn.UnsupportedError, match="for a Model, not for 'arm7'"):
        dyn.World().on_ground("arm7")


def test_bodies_are_set_on_hills_one_by_one():
    """Each of a height field's bodies touches; a body without shape stays."""
    scene = SCENES["height field"](np.random.default_rng(5))
    q = scene.q.copy()
    q[[2, 9, 16]] = 0.5, -0.05, 3.0
    q = dyn.World.of(scene.world).on_ground(scene.model, q)
    for link_name in ("b0", "b1", "b2"):
        assert abs(_lowest(scene.model, q, scene.world, link_name)) < 1e-9
