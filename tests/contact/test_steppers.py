"""Contacts over time: steppers, restitution, stabilisation, reports, worlds."""

import numpy as np
import pytest
from constrained_state import constrained_state
from contact_bodies import (
    G_EARTH,
    box,
    free_ball,
    free_box,
    joint,
    link,
    pendulum,
    point_mass,
    robot,
    sphere,
)

import dyn_core as dyn
from dyn_core import contact
from dyn_core.contact.collision.pairs import body_poses
from dyn_core.contact.rows.constraints import Constraint
from dyn_core.contact.rows.step_tables import SCHEMES as TIME_STEPPERS
from dyn_core.contact.solvers.solver_memory import allocate_solvers
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_plugins.contact_steps.contact_step import DeepestPoints

H = 0.01
SCHEMES = ("stewart_trinkle", "anitescu_potra", "moreau_jean", "event_driven")


def _mu(value, **more):
    return {"materials": {"default": {"mu": value, **more}}}


def _run(sim, count):
    rows = []
    for k in range(count):
        sim.advance(k * sim.period)
        rows.append((sim.q.copy(), sim.qd.copy(), sim.report))
    return rows


def test_c1_slides_down_for_a_second():
    """100 semi-implicit steps of the box at 35 degrees."""
    theta = np.radians(35)
    turn = [0.0, np.sin(theta / 2), 0.0, np.cos(theta / 2)]
    up = np.array([np.sin(theta), 0, np.cos(theta)])
    world = {"half_spaces": [{"normal": up.tolist()}]}
    model = free_box(**_mu(0.4))
    q = np.concatenate([0.25 * up, turn])
    sim = dyn.ContactSimulator(model, world, period=H, q0=q)
    _run(sim, 100)
    down = np.array([np.cos(theta), 0, -np.sin(theta)])
    np.testing.assert_allclose(sim.q[:3] @ down, 1.2182782705, rtol=1e-6)
    assert not sim.counters


def test_c2_moreau_jean():
    """The first two impacts at steps 453 and 1176, with their numbers."""
    model = point_mass(axes="z", **_mu(0.0, restitution=0.8))
    world = {"stepper": "moreau_jean", "stabilisation": "none", "restitution_threshold": 0.0,
             "margin": 0.1, "solver": "principal_pivoting"}  # fmt: skip
    sim = dyn.ContactSimulator(model, world, period=1e-3, q0=[1.0])
    hits = []
    for k in range(1, 1180):
        before = sim.qd[0]
        sim.advance(k * 1e-3)
        push = sum(c.impulse[0] for c in sim.report.contacts)
        if push > 1e-9:
            hits.append((k, before, sim.qd[0], push))
    np.testing.assert_allclose(hits[0], (453, -4.43412, 3.547296, 7.991226), rtol=1e-9)
    assert hits[1][0] == 1176
    np.testing.assert_allclose(hits[1][2], 2.8284192, rtol=1e-9)


def test_c2_event_driven_to_rest():
    """Times of impacts to 1e-9, heights between, and the end of all bouncing."""
    model = point_mass(axes="z", **_mu(0.0, restitution=0.8))
    world = {"stepper": "event_driven", "restitution_threshold": 0.0, "max_impacts": 5,
             "solver": "principal_pivoting"}  # fmt: skip
    sim = dyn.ContactSimulator(model, world, period=0.02, q0=[1.0])
    times, speeds, energy = [], [], []
    for k in range(208):
        sim.advance(k * 0.02)
        energy.append(sim.qd[0] ** 2 / 2 + G_EARTH * sim.q[0])
        for report in sim.reports:
            if report.h == 0:
                times.append(report.t)
        speeds.append(sim.qd[0])
    np.testing.assert_allclose(
        times[:3], [0.451523640986, 1.17396146656, 1.75191172702], rtol=1e-8
    )
    heights = [energy[k] / G_EARTH for k in (30, 70, 100)]
    np.testing.assert_allclose(heights, [0.64, 0.4096, 0.262144], rtol=1e-7)
    assert sim.counters["zeno"] >= 1
    assert 4.0 < times[-1] <= 4.08  # all bouncing ends at 4.0637
    np.testing.assert_allclose([*sim.q, *sim.qd], 0, atol=1e-6)


def test_c4_pendulum_bounces():
    """Speeds, the stop's and the pivot's impulse, and the next turning point."""
    model = pendulum()
    world = {"stepper": "event_driven", "limit_restitution": 0.5, "contacts": False}
    sim = dyn.ContactSimulator(model, world, period=0.002, q0=[1.2])
    k = 0
    while not any(report.h == 0 for report in sim.reports):
        before = sim.qd.copy()
        sim.advance(k * 0.002)
        k += 1
    hit = next(report for report in sim.reports if report.h == 0)
    stop = hit.impulses["lower limit of pivot"][0]
    np.testing.assert_allclose(stop, 2.2673906392, rtol=1e-8)
    np.testing.assert_allclose(stop / 0.32 / 1.5, 4.72373049833, rtol=1e-8)
    assert before[0] < -4.6
    turning = []
    while sim.qd[0] > 0:
        turning = sim.q[0]
        sim.advance(k * 0.002)
        k += 1
    np.testing.assert_allclose(max(turning, sim.q[0]), 0.614132319731, atol=2e-5)


def _ball(**extras):
    """Return a ball on slides along x and z and a ball joint: velocities in world axes."""
    return robot(
        link("sx", 0.0, (0, 0, 0)),
        link("sz", 0.0, (0, 0, 0)),
        link("ball", 1.0, (0.004,) * 3, sphere(0.1)),
        joint("x", "prismatic", "base", "sx", (1, 0, 0)),
        joint("z", "prismatic", "sx", "sz"),
        joint("turn", "floating", "sz", "ball"),
        joints={"turn": {"type": "spherical"}},
        **extras,
    )


def test_c7_ball_on_a_floating_joint():
    """Velocities in body axes roll as far: nothing speeds up by turning."""
    q, qd = np.array([0, 0, 0.1, 0, 0, 0, 1.0]), np.array([0, 0, 0, 3.0, 0, 0])
    sim = dyn.ContactSimulator(free_ball(**_mu(0.2)), {}, period=H, q0=q, qd0=qd)
    _run(sim, 80)
    R = body_poses(sim.model, sim.q)[0][1]
    np.testing.assert_allclose(R @ sim.qd[3:], [2.14285714286, 0, 0], atol=1e-6)
    np.testing.assert_allclose(R @ sim.qd[:3], [0, 21.4285714286, 0], atol=1e-5)


@pytest.mark.parametrize("solver", ["admm", "projected_gauss_seidel"])
def test_c7_ball_rolls(solver):
    """Sliding becomes rolling at step 44, with the momentum that theory says."""
    model = _ball(**_mu(0.2))
    q, qd = np.array([0, 0.1, 0, 0, 0, 1.0]), np.array([3.0, 0, 0, 0, 0])
    sim = dyn.ContactSimulator(model, {"solver": solver}, period=H, q0=q, qd0=qd)
    rows = _run(sim, 60)
    slides = [row[2].contacts[0].sliding for row in rows]
    assert slides[42] > 1e-3
    assert max(slides[43:]) < 1e-8
    force = rows[43][2].contacts[0].force * H
    np.testing.assert_allclose(force[0], -0.0134828571429, rtol=1e-6)
    np.testing.assert_allclose(sim.qd[:2], [2.14285714286, 0], atol=1e-7)
    np.testing.assert_allclose(sim.qd[2:], [0, 21.4285714286, 0], atol=1e-6)
    lost = sum(row[2].kinetic_change for row in rows)
    np.testing.assert_allclose(lost, -1.28571428571, rtol=1e-6)


@pytest.mark.parametrize(
    ("mu", "a", "alpha"),
    [(0.17, 3.50357142857, 35.0357142857), (0.1, 4.05542907889, 21.2392730278)],
)
def test_c7_ball_on_an_incline(mu, a, alpha):
    """It rolls where friction suffices, slips where it does not."""
    theta = np.radians(30)
    up = np.array([np.sin(theta), 0, np.cos(theta)])
    model = free_ball(**_mu(mu))
    world = {"half_spaces": [{"normal": up.tolist()}]}
    q = np.concatenate([0.1 * up, [0, 0, 0, 1]])
    sim = dyn.ContactSimulator(model, world, period=H, q0=q)
    sim.advance(0.0)
    down = np.array([np.cos(theta), 0, -np.sin(theta)])
    R = body_poses(model, sim.q)[0][1]
    np.testing.assert_allclose(R @ sim.qd[3:] @ down / H, a, rtol=1e-7)
    np.testing.assert_allclose(sim.qd[1] / H, alpha, rtol=1e-7)


def test_c12_errors_decay():
    """Baumgarte takes a fifth of a linear error in each step; none leaves it."""
    for law, wanted in (("baumgarte", [0.016, 0.0065536, 0.002147483648]),
                        ("none", [0.02] * 3)):  # fmt: skip
        model = robot(
            link("a", 1.0, (0, 0, 0)),
            link("b", 1.0, (0, 0, 0)),
            joint("xa", "prismatic", "base", "a", (1, 0, 0)),
            joint("xb", "prismatic", "base", "b", (1, 0, 0)),
        )
        world = {"gears": [{"joints": ["xa", "xb"]}], "stabilisation": law}
        sim = dyn.ContactSimulator(model, world, period=H, q0=[0.02, 0.0])
        errors = [row[0][0] - row[0][1] for row in _run(sim, 10)]
        np.testing.assert_allclose([errors[k] for k in (0, 4, 9)], wanted, rtol=1e-9)


@pytest.mark.parametrize("stepper", ["stewart_trinkle", "moreau_jean"])
def test_split_impulses_move_without_energy(stepper):
    """Errors go as with Baumgarte, but nothing is left moving."""
    model = free_box(**_mu(0.5))
    q = np.array([0, 0, 0.24, 0, 0, 0, 1])
    world = {"stabilisation": "split_impulse", "stepper": stepper, "push_out_speed": 1}
    sim = dyn.ContactSimulator(model, world, period=H, q0=q)
    rows = _run(sim, 10)
    np.testing.assert_allclose(rows[0][0][2], 0.242, rtol=1e-7)
    np.testing.assert_allclose(rows[-1][0][2], 0.25 - 0.01 * 0.8**10, rtol=1e-6)
    np.testing.assert_allclose([row[1] for row in rows], 0, atol=1e-8)


def test_soft_rows_sink_by_weight_over_stiffness():
    """erp_cfm at rest: m g = k times the overlap, whatever h and damping."""
    for h, d in ((0.01, 100.0), (0.002, 300.0)):
        model = point_mass(2.0, "z", **_mu(0.0))
        world = {"stabilisation": "erp_cfm", "stiffness": 1e4, "damping": d}
        sim = dyn.ContactSimulator(model, world, period=h, q0=[0.0])
        _run(sim, round(1.0 / h))
        np.testing.assert_allclose(sim.q, -0.001962, rtol=1e-5)


@pytest.mark.parametrize(
    ("impacts", "e", "wanted"),
    [
        ("simultaneous", 0.0, (1 / 3, 1 / 3, 1 / 3)),
        ("simultaneous", 0.5, (0.0, 0.5, 0.5)),
        ("simultaneous", 1.0, (-1 / 3, 2 / 3, 2 / 3)),
        ("sequential", 1.0, (0.0, 0.0, 1.0)),
    ],
)
@pytest.mark.parametrize("stepper", ["anitescu_potra", "event_driven"])
def test_c13_three_balls(impacts, e, wanted, stepper):
    """Newton's cradle by the simultaneous and the sequential law."""
    parts = []
    for k in range(3):
        parts.append(link(f"b{k}", 1.0, (0, 0, 0), sphere(0.1)))
        parts.append(
            joint(f"x{k}", "prismatic", "base", f"b{k}", (1, 0, 0), (0.2 * k, 0, 0))
        )
    model = robot(*parts, gravity=(0, 0, 0), **_mu(0.0, restitution=e))
    world = {"half_spaces": [], "impacts": impacts, "stepper": stepper,
             "stabilisation": "none", "solver": "principal_pivoting"}  # fmt: skip
    q = [1e-12, 0.0, -1e-12]
    sim = dyn.ContactSimulator(model, world, period=1e-6, q0=q, qd0=[1, 0, 0])
    sim.advance(0.0)
    np.testing.assert_allclose(sim.qd, wanted, atol=1e-8)
    if e == 1.0:
        np.testing.assert_allclose(sim.qd @ sim.qd, 1.0, rtol=1e-8)


def test_c15_spinning_ball():
    """Torsional friction brakes at its rate, stops in time, and stays."""
    model = robot(
        link("slide", 0.0, (0, 0, 0)),
        link("ball", 1.0, (0.004,) * 3, sphere(0.1)),
        joint("z", "prismatic", "base", "slide"),
        joint("spin", "continuous", "slide", "ball"),
        **_mu(0.5, torsion=0.005),
    )
    sim = dyn.ContactSimulator(model, {}, period=H, q0=[0.1, 0.0], qd0=[0.0, 5.0])
    rows = _run(sim, 50)
    np.testing.assert_allclose(rows[9][1][1], 5 - 12.2625 * 0.1, rtol=1e-7)
    np.testing.assert_allclose(
        [row[2].contacts[0].impulse[0] for row in rows], 0.0981, rtol=1e-6
    )
    assert rows[39][1][1] > 1e-3
    np.testing.assert_allclose([row[1][1] for row in rows[40:]], 0, atol=1e-8)


def test_rolling_friction_brakes():
    """A rolling ball loses speed through its rolling rows; without them it keeps it."""
    speeds = []
    for rolling in (0.0, 0.002):
        model = _ball(**_mu(0.8, torsion=0.01, rolling=rolling))
        q, qd = np.array([0, 0.1, 0, 0, 0, 1.0]), np.array([1.0, 0, 0, 10.0, 0])
        sim = dyn.ContactSimulator(model, {}, period=H, q0=q, qd0=qd)
        rows = _run(sim, 10)
        speeds.append(sim.qd[0])
        assert all(row[2].energy_change <= 1e-12 for row in rows)
        assert all(row[2].converged for row in rows)
    np.testing.assert_allclose(speeds[0], 1.0, rtol=1e-7)
    brake = 0.002 * G_EARTH * 0.1 / (0.004 + 0.01)  # M r / (I + m r^2)
    np.testing.assert_allclose(speeds[1], 1 - brake * 0.1, rtol=1e-3)


@pytest.mark.parametrize("stepper", SCHEMES)
def test_impacts_without_restitution_take_energy(stepper):
    """A box falls on a corner: no step adds kinetic energy through contacts."""
    model = free_box(**_mu(0.5))
    q = np.array([0, 0, 0.45, 0.2, 0.1, 0.0, 1.0])
    sim = dyn.ContactSimulator(model, {"stepper": stepper, "stabilisation": "none"},
                               period=0.005, q0=model.normalize(q))  # fmt: skip
    reports = []
    for k in range(42):
        sim.advance(k * 0.005)
        reports += sim.reports
    assert any(sum(c.impulse[0] for c in x.contacts) > 0 for x in reports)
    assert max(x.energy_change for x in reports) <= 1e-9
    assert all(x.converged for x in reports)
    assert max(x.residuals.primal for x in reports) < 1e-8


def test_two_boxes_stand_on_each_other():
    """A stack of two free boxes rests; the ground carries both."""
    size, parts = box(0.2, 0.2, 0.2), []
    for name, m in (("low", 1.0), ("high", 3.0)):
        parts.append(link(name, m, (0.01,) * 3, size))
        parts.append(joint(f"{name}_free", "floating", "base", name))
    model = robot(*parts, **_mu(0.6))
    q = np.array([0, 0, 0.1, 0, 0, 0, 1, 0, 0, 0.3, 0, 0, 0, 1.0])
    sim = dyn.ContactSimulator(model, {}, period=H, q0=q)
    _run(sim, 30)
    np.testing.assert_allclose(sim.q[[2, 9]], [0.1, 0.3], atol=1e-6)
    np.testing.assert_allclose(sim.report.total_force, [0, 0, 4 * G_EARTH], atol=1e-5)
    reactions = sim.reactions(coordinates="world")
    np.testing.assert_allclose(reactions, 0, atol=1e-5)  # free joints carry nothing


def test_momentum_is_that_of_the_forces():
    """Spinning and sliding, momentum changes by h times weight and contact forces."""
    model = free_box(**_mu(0.3))
    q = np.array([0, 0, 0.25, 0, 0, 0, 1])
    qd = np.array([0, 0, 0, 1.0, 0.5, 0])
    sim = dyn.ContactSimulator(model, {}, period=1e-3, q0=q, qd0=qd)
    momentum = dyn.solver("momentum").build(model)
    before = momentum(sim.q, sim.qd)[0]
    sim.advance(0.0)
    report, after = sim.report, momentum(q, sim.qd)[0]
    force = report.total_force + [0, 0, -2.0 * G_EARTH]
    np.testing.assert_allclose((after - before)[3:] / 1e-3, force, atol=1e-6)
    assert report.kinetic_change < 0
    assert report.energy_change < 0


def test_base_reaction_is_the_weight():
    """The base of an arm that is held still carries its whole weight."""
    model = dyn.load_urdf(dyn.robots.path("two_link"))
    sim = dyn.ContactSimulator(model, {"half_spaces": []}, period=1e-3)
    g = dyn.solver("gravity").build(model)
    for k in range(3):
        sim.command(k * 1e-3, g(sim.q))
        sim.advance(k * 1e-3)
    f = sim.reactions(coordinates="world")[0]
    np.testing.assert_allclose(f[3:], [0, 0, model.mass * G_EARTH], atol=1e-6)


def test_a_leg_that_leans_on_the_ground():
    """Base reaction and ground together carry the weight at rest."""
    model = robot(
        link("rod", 1.5, (0.08, 0.08, 0.0), sphere(0.02), (0.4, 0, 0), (0.8, 0, 0)),
        joint("pivot", "revolute", "base", "rod", (0, 1, 0), (0, 0, 0.5)),
        **_mu(0.0),
    )
    angle = np.arcsin(0.48 / 0.8)
    sim = dyn.ContactSimulator(model, {}, period=1e-3, q0=[angle])
    _run(sim, 3)
    assert sim.report.contacts[0].force[2] > 1
    f = sim.reactions(coordinates="world")[0]
    np.testing.assert_allclose(
        f[3:] + sim.report.total_force, [0, 0, 1.5 * G_EARTH], atol=1e-6
    )
    np.testing.assert_allclose(
        sim.report.contacts[0].force[2], 1.5 * G_EARTH / 2, rtol=1e-5
    )


@pytest.mark.parametrize("kind", ["ball", "box", "arm"])
def test_gaps_change_as_rows_say(kind):
    """Differences of the gap along q are the normal row of J."""
    rng = np.random.default_rng(4)
    if kind == "arm":
        from contact_bodies import two_link

        model = two_link(0.05)
        world = {"half_spaces": [{"normal": [0.3, 1, 0.1], "point": [0, -3, 0]}]}
    else:
        model = free_ball(r=0.2) if kind == "ball" else free_box()
        world = {"half_spaces": [{"normal": [0.2, -0.1, 1.0], "point": [0, 0, -3]}]}
    contact_model = dyn.authoring.ContactModel(model, {**world, "margin": 10.0})
    q = model.random(rng)
    state = constrained_state(contact_model, q, np.zeros(model.nv))
    assert state.constraints
    d = 1e-6
    for k, unit in enumerate(np.eye(model.nv)):
        gaps = []
        for sign in (1, -1):
            contact_state = constrained_state(
                contact_model, model.integrate(q, sign * d * unit), np.zeros(model.nv)
            )
            gaps.append({c.id: c.gap for c in contact_state.constraints})
        for c in state.constraints:
            slope = (gaps[0][c.id] - gaps[1][c.id]) / (2 * d)
            np.testing.assert_allclose(slope, c.J[0, k], atol=1e-7)


def _mixed():
    """Return a scene of a limit, dry friction, a loop, a gear and a contact."""
    parts, names = [], ("a", "b", "c", "d")
    for k, name in enumerate(names):
        parts.append(link(name, 1.0 + k, (0.1,) * 3, sphere(0.1) if k == 0 else ""))
    more = ('<limit lower="0" upper="2" effort="0" velocity="9"/>'
            '<dynamics friction="{}"/>')  # fmt: skip
    parts += [
        joint("ja", "prismatic", "base", "a", more=more.format(0.0)),
        joint("jb", "revolute", "a", "b", (0, 1, 0), more=more.format(0.3)),
        joint("jc", "continuous", "b", "c", (1, 0, 0)),
        joint("jd", "continuous", "base", "d", (1, 0, 0)),
    ]
    model = robot(*parts, **_mu(0.0))
    loop = dyn.coupling("tie", ("jb", "jc"), lambda b, c: [b - 2.0 * c])
    model = model.with_loops(loop)
    world = {"gears": [{"joints": ["jc", "jd"], "ratio": 2.0}], "margin": 0.05}
    contact_model = dyn.authoring.ContactModel(model, world)
    rng = np.random.default_rng(1)
    q = np.array([0.1, 0.0, 0.0, 0.0])
    qd = np.array([-0.2, 0.5, 0.1, -1.0])
    return constrained_state(contact_model, q, qd, 0.01), rng


@pytest.mark.parametrize(
    "solver", ["admm", "principal_pivoting", "projected_gauss_seidel", "lemke"]
)
def test_all_blocks_in_one_problem(solver):
    """Limit, dry friction, loop, gear and contact: every solver as enumeration."""
    state, rng = _mixed()
    roles = {c.role for c in state.constraints}
    assert {"contact", "limit", "friction", "loop", "gear"} <= roles
    assert len({c.id for c in state.constraints}) == len(state.constraints)
    for _ in range(3):
        free = state.free(rng.normal(size=4), 0.01) + 0.3 * rng.normal(size=4)
        problem = state.problem(free, 0.01)
        solution = contact.solve(problem, solver)
        wanted = contact.solve(problem, "enumeration")
        assert solution.converged
        assert wanted.converged
        np.testing.assert_allclose(
            state.moved(free, solution.impulses),
            state.moved(free, wanted.impulses),
            atol=1e-6,
        )


def test_prescribed_joints_follow_their_accelerations():
    """A prescribed joint speeds up as prescribed; its force is what that takes."""
    model = robot(
        link("a", 1.0, (0.3, 0.3, 0.3)),
        link("b", 1.0, (0.05, 0.05, 0.05)),
        joint("ja", "continuous", "base", "a"),
        joint("jb", "continuous", "base", "b"),
    )
    sim = dyn.ContactSimulator(model, {}, period=H, prescribed=("ja",))
    sim.accelerate(0.0, [2.0])
    sim.advance(0.0)
    np.testing.assert_allclose(sim.qd, [0.02, 0.0], atol=1e-10)
    np.testing.assert_allclose(sim.effort, [0.6, 0.0], atol=1e-7)


def test_joints_are_prescribed_once():
    """A joint twice, or with the joint that it follows, is refused in words."""
    model = robot(
        link("a", 1.0, (0.3, 0.3, 0.3)),
        link("b", 1.0, (0.05, 0.05, 0.05)),
        joint("ja", "continuous", "base", "a"),
        joint("jb", "continuous", "base", "b", more='<mimic joint="ja"/>'),
    )
    for names, twice in ((("ja", "ja"), "ja"), (("jb", "ja"), "ja")):
        with pytest.raises(dyn.SettingError, match=f"'{twice}' is prescribed twice"):
            dyn.ContactSimulator(model, {}, period=H, prescribed=names)
        with pytest.raises(dyn.ModelError, match=f"'{twice}' is prescribed twice"):
            ArrayStep(ContactModel(model), H, names)


def test_the_forces_of_an_impact_are_its_impulses():
    """An impact has no duration; the impulses that hold a prescribed joint are finite."""
    limits = '<limit lower="-1" upper="1" effort="1" velocity="9"/>'
    model = robot(
        link("a", 1.0, (0.3, 0.3, 0.3)),
        link("b", 1.0, (0.05, 0.05, 0.05)),
        joint("ja", "continuous", "base", "a", (0, 1, 0)),
        joint("jb", "revolute", "a", "b", (0, 1, 0), more=limits),
    )
    sim = dyn.ContactSimulator(
        model, {"stepper": "event_driven"}, period=H, prescribed=("ja",),
        q0=[0.0, 0.999], qd0=[0.0, 1.0],
    )  # fmt: skip
    sim.advance(0.0)
    impact = next(record for record in sim._taken if record.h == 0.0)
    force = sim.arrays.prescribed_forces(impact)
    assert force[1] == 0.0
    # The limit stops jb: the impulse on ja is what its coupled inertia passes on.
    np.testing.assert_allclose(force[0], -0.05, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "shape"), [("tau", ()), ("tau", (1,)), ("f_ext", ()), ("f_ext", (6,))]
)
def test_one_force_is_none_for_all_joints_or_bodies(name, shape):
    """NumPy would spread it over them."""
    step = ArrayStep(ContactModel(dyn.load("two_link")), H)
    forces = {"tau": np.zeros(2), name: np.ones(shape)}
    with pytest.raises(dyn.ShapeError, match=f"{name}: wanted shape"):
        step.step(0.0, np.zeros(2), np.zeros(2), **forces)


def test_a_solver_without_buffers_leaves_no_earlier_impulses():
    """Impulses of the step before must not act again: they would add energy."""
    model = free_box(**_mu(0.5))
    of = ContactModel(model, {"solver": "admm"})
    arrays = ArrayStep(of, H)
    q, fast = np.array([0, 0, 0.25, 0, 0, 0, 1]), np.array([0, 0, 0, 0, 0, -3.0])
    *_, before = arrays.step(0.0, q, fast, np.zeros(6))
    assert before.impulse.max() > 0.1
    room = arrays.room
    few = allocate_solvers(room.step.rows, model.nv, entries=1)
    room.solver = room.solver._replace(work=few)
    arrays._tie()
    _, qd, record = arrays.step(0.0, q, np.zeros(6), np.zeros(6))
    assert record.status == "no_room"
    assert np.abs(qd).max() <= 1.001 * H * G_EARTH


def test_a_flight_to_a_velocity_that_is_not_finite_is_an_error(monkeypatch):
    """Of RK4, the last acceleration has no part in the position."""
    model = pendulum()
    sim = dyn.ContactSimulator(model, {"stepper": "event_driven"}, period=H)
    bias, calls = sim.contact_model.bias, []

    def overflows(*state):
        calls.append(state)
        return np.full(1, np.inf) if len(calls) == 4 else bias(*state)

    monkeypatch.setattr(sim.contact_model, "bias", overflows)
    with pytest.raises(dyn.NonFiniteError, match="the velocity is not finite"):
        sim.advance(0.0)
    assert len(calls) == 4


def test_warm_starts_save_iterations():
    """Impulses are found again by id: the second step needs fewer iterations."""
    model = free_box(**_mu(0.5))
    q = np.array([0, 0, 0.25, 0, 0, 0, 1])
    sim = dyn.ContactSimulator(
        model, {"solver": "projected_gauss_seidel"}, period=H, q0=q
    )
    rows = _run(sim, 5)
    assert rows[4][2].iterations < rows[0][2].iterations / 2


@pytest.mark.parametrize("stepper", ["stewart_trinkle", "event_driven"])
def test_a_period_that_fails_leaves_no_impulses(stepper):
    """What follows it has the bits of a run without it: warm starts are undone, too."""
    model, ends = free_box(**_mu(0.5)), []
    for fails in (False, True):
        sim = dyn.ContactSimulator(
            model, {"stepper": stepper}, period=H, substeps=2,
            q0=[0, 0, 0.25, 0, 0, 0, 1.0], qd0=[0, 0, 1.0, 0.7, 0.2, 0],
        )  # fmt: skip
        for k in range(40):
            if fails and k % 10 == 9:
                _fail_in_the_second_substep(sim)
            sim.advance(k * H)
        ends.append((sim.q, sim.qd, sim.report.iterations))
    for known, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(other, known)


@pytest.mark.parametrize("stepper", ["stewart_trinkle", "event_driven"])
@pytest.mark.parametrize("name", ["q", "qd"])
def test_what_is_not_finite_is_named(name, stepper):
    """A velocity was called a position by one, and a position a velocity by the other."""
    sim = dyn.ContactSimulator(point_mass(), {"stepper": stepper}, period=H)
    setattr(sim, name, getattr(sim, name) * np.nan)
    what = {"q": "position", "qd": "velocity"}[name]
    with pytest.raises(dyn.NonFiniteError, match=f"the {what} is not finite") as raised:
        sim.advance(0.0)
    assert raised.value.name == name


def _fail_in_the_second_substep(sim):
    """Advance by a period that fails, under other forces than the next period."""
    move, calls = sim._move, []

    def fails_later(*step):
        calls.append(step)
        if len(calls) == 2:
            raise dyn.NonFiniteError("tau is not finite", "tau")
        return move(*step)

    sim._move, sim.f_ext = fails_later, np.full((1, 6), 3.0)
    with pytest.raises(dyn.NonFiniteError):
        sim.advance(0.0)
    sim.f_ext, sim._move, sim.paused = None, move, False


def test_runs_carry_their_contacts():
    """simulate with a world gives reports, energies and counters."""
    model = free_ball(**_mu(0.5))
    q = np.array([0, 0, 0.15, 0, 0, 0, 1])
    run = dyn.simulate(model, world={"margin": 0.05}, duration=0.3,
                                period=H, q0=q)  # fmt: skip
    assert len(run.reports) == len(run.t) == 30
    assert run.reports[-1][-1].rank == run.reports[-1][-1].m == 3
    assert 1 <= run.reports[-1][-1].condition < 10
    assert repr(run.reports) == "<reports of 30 rows, 30 steps>"
    assert repr(run.reports[0]) == "<reports of 1 steps>"
    assert run.reports[-1][-1].contacts[0].link_b == "ground"
    np.testing.assert_allclose(run.reports[-1][-1].total_force[2], G_EARTH, rtol=1e-6)
    assert run.energy[-1] < run.energy[0]
    assert run.counters == {}
    assert not dyn.simulate(model, duration=0.02, q0=q).reports


def test_bad_solutions_are_counted_and_stop():
    """Not converged is counted; no solution stops with the last good state."""
    model = free_box(**_mu(0.5))
    q = np.array([0, 0, 0.25, 0, 0, 0, 1])
    world = {
        "solver": "projected_gauss_seidel",
        "solver_options": {"max_iterations": 1},
    }
    sim = dyn.ContactSimulator(model, world, period=H, q0=q, qd0=[0, 0, 0, 1, 0, -1])
    sim.advance(0.0)
    assert sim.counters["contact not converged"] == 1
    assert not sim.report.converged
    rigid = robot(
        link("a", 1.0, (0.3, 0.3, 0.3)),
        joint("ja", "continuous", "base", "a"),
    )
    sim = dyn.ContactSimulator(rigid, {}, period=H, prescribed=("ja",))
    sim.advance(0.0)
    sim.f_ext = np.full((1, 6), np.nan)
    with pytest.raises(dyn.DynError):
        sim.advance(H)
    assert sim.paused and sim.report.t == 0.0  # of the last good period
    assert sim.counters["step failed"] == 1
    np.testing.assert_array_equal(sim.qd, 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"half_spaces": [{"normal": [0, 0, 0]}]}, "is zero"),
        (
            {"half_spaces": [{}, {"point": [0, 0, 1]}]},
            "two half_spaces are called 'ground'",
        ),
        (
            {"stiffness": 2e5},
            "stiffness changes nothing with the stabilisation split_impulse; valid: erp",
        ),
        ({"damping": 10.0, "stabilisation": "none"}, "damping changes nothing"),
        ({"erp": 0.3, "stabilisation": "erp_cfm"}, "valid: baumgarte or split_impulse"),
        (
            {"max_impacts": 5},
            "nothing with the stepper stewart_trinkle; valid: event_driven",
        ),
    ],
)
def test_bad_worlds_are_refused(data, message):
    """Each says what is wrong and what would be valid."""
    with pytest.raises(dyn.ModelError, match=message.replace("[", r"\[")):
        dyn.World.of(data)


def test_bad_solvers_and_blocks_are_refused():
    """A solver of another kind, an unknown one, and a block with bad numbers."""
    model = free_ball()
    with pytest.raises(dyn.SignatureError, match="admm"):
        dyn.authoring.ContactModel(model, {"solver": "rnea"})
    with pytest.raises(dyn.SolverNotFound, match="admm"):
        dyn.authoring.ContactModel(model, {"solver": "no_such"})
    for wrong in ({"max_force": -1.0}, {"restitution": 2.0}, {"gap": np.nan}):
        with pytest.raises(ValueError, match="'mine'"):
            Constraint("mine", 0, "friction", "box", np.ones((1, 6)), **wrong)


def test_all_steppers_are_offered():
    """Time steppers, and the one that finds impacts."""
    assert {*TIME_STEPPERS, "event_driven"} == set(SCHEMES)


def test_ball_joints_have_swing_and_twist_limits():
    """A pendulum on a ball joint stays within its swing."""
    model = robot(
        link("rod", 1.0, (0.05, 0.05, 0.01), xyz=(0.2, 0, -0.4)),
        joint("ball", "floating", "base", "rod"),
        joints={"ball": {"type": "spherical", "swing": 0.3, "twist": [-0.2, 0.2]}},
    )
    sim = dyn.ContactSimulator(model, {"contacts": False}, period=0.005)
    names = set()
    for k in range(300):
        sim.advance(k * 0.005)
        names |= {n for n, x in sim.report.impulses.items() if abs(x[0]) > 1e-9}
    assert "swing limit of ball" in names
    R = body_poses(model, sim.q)[0][1]
    assert np.arccos(R[2, 2]) < 0.3 + 1e-3


@pytest.mark.parametrize("solver", ("lemke", "admm"))
def test_a_stack_of_boxes_is_solved_in_every_step(solver):
    """Five boxes at rest on each other: each carries those above it, and none moves."""
    names = [f"box{k}" for k in range(5)]
    size, inertia = box(0.4, 0.4, 0.2), (1 / 60, 1 / 60, 4 / 150)
    model = robot(
        *(link(name, 1.0, inertia, size) for name in names),
        *(joint(f"free_{name}", "floating", "base", name) for name in names),
        **_mu(0.5),
    )
    q = model.neutral()
    for k, name in enumerate(names):
        q[model.q_slice(f"free_{name}").start + 2] = 0.1 + 0.2 * k
    sim = dyn.ContactSimulator(model, {"solver": solver}, period=H, q0=q)
    for _, _, report in _run(sim, 4):
        assert report.status == "converged"
    np.testing.assert_allclose(sim.q, q, atol=1e-7)
    for k, name in enumerate(names):
        below = [
            c.force[2]
            for c in sim.report.contacts
            if c.link_a == name or c.link_b == name
        ]
        assert sum(map(abs, below)) == pytest.approx(
            G_EARTH * (2 * (5 - k) - 1), rel=1e-5
        )


def test_the_compiled_step_is_that_of_the_simulator():
    """contact_euler and ContactSimulator bounce, slide and roll a ball alike."""
    model = free_ball(**_mu(0.3, restitution=0.8))
    start = np.array([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0])
    rates = np.array([0.0, 2.0, 0.0, 1.0, 0.5, 0.0])
    sim = dyn.ContactSimulator(model, period=1e-3, q0=start, qd0=rates)
    step = dyn.solver("contact_euler").build(model)
    q, qd, warm, touched = start, rates, np.zeros(3), 0
    for k in range(700):
        sim.advance(k * sim.period)
        q, qd, warm, *_ = step(q, qd, np.zeros(6), 1e-3, warm)
        touched += warm[0] > 0
        np.testing.assert_allclose(q, sim.q, atol=1e-6)
        np.testing.assert_allclose(qd, sim.qd, atol=1e-5)
    assert touched >= 2


def test_the_compiled_step_of_a_box_is_that_of_the_simulator():
    """Each step of a cube that tumbles over all its edges, with half of its corners."""
    cube = link("cube", 1.0, (0.04,) * 3, box(0.5, 0.5, 0.5))
    model = robot(cube, joint("free", "floating", "base", "cube"), **_mu(0.6))
    start = np.array([0.0, 0.0, 0.8, *np.array([0.5, 0.4, 0.3, 0.7]) / np.sqrt(0.99)])
    world = {"stabilisation": "baumgarte"}
    rates = np.array([1.0, 0.5, -2.0, 7.0, -4.0, 3.0])
    sim = dyn.ContactSimulator(model, world, period=2e-3, q0=start, qd0=rates)
    step = dyn.solver("contact_euler").build(model)
    warm, touched = np.zeros(24), set()
    for k in range(600):
        now = step(sim.q, sim.qd, np.zeros(6), sim.period, warm)
        sim.advance(k * sim.period)
        warm = now.impulse
        touched |= set(np.flatnonzero(warm[::3] > 0))
        np.testing.assert_allclose(now.q_next, sim.q, atol=1e-8)
        np.testing.assert_allclose(now.qd_next, sim.qd, atol=1e-6)
    assert len(touched) >= 6


def test_of_a_shape_the_deeper_half_of_points_has_rows():
    """They keep their order, and their impulses go back to where they belong."""
    rng = np.random.default_rng(3)
    for count in (1, 2, 8, 10):
        points = [FakePoint(x) for x in rng.normal(size=count)]
        chosen = DeepestPoints(points)
        gaps = [point.gap for point in points]
        half = count // 2 if count > 2 else count
        limit = np.sort(gaps)[half - 1]
        expected = [gap for gap in gaps if gap <= limit]
        assert [point.gap for point in chosen.points] == expected
        assert chosen.of_half([[gap] for gap in gaps]) == [[gap] for gap in expected]
        back = [[gap if gap <= limit else 0.0] for gap in gaps]
        assert chosen.of_all([[gap] for gap in expected]) == back


class FakePoint:
    """A point with a gap."""

    def __init__(self, gap):
        self.gap, self.place = float(gap), (0.0, 0.0, 0.0)

    def placed(self, gap, place):
        """Return a point with another gap."""
        return FakePoint(gap)


@pytest.mark.parametrize("solver", ("projected_gauss_seidel", "admm"))
def test_a_misspelt_option_of_the_contact_solver_is_refused(solver):
    """Options reach the solver in the slot, and only those that it has."""
    model = free_ball()
    step, q = dyn.solver("contact_euler"), np.array([0, 0, 0.1, 0, 0, 0, 1.0])
    state = q, np.zeros(6), np.zeros(6), 1e-3, np.zeros(3)
    for options, message in (
        ({"toleranc": 1e-3}, "toleranc"),
        ({"facets": 4}, "facets"),
    ):
        with pytest.raises(dyn.UnsupportedError, match=f"option .*{message}"):
            step.build(model, contact_solver=solver, solver_options=options)(*state)
    loose = {"max_iterations": 1}
    result = step.build(model, contact_solver=solver, solver_options=loose)(*state)
    assert result.iterations <= 1


@pytest.mark.parametrize("stepper", ["stewart_trinkle", "anitescu_potra"])
@pytest.mark.parametrize("lies", (False, True))
def test_a_cylinder_rests_on_a_box(stepper, lies):
    """Upright on its rim, or along its side: it comes to rest, off the box's middle."""
    pytest.importorskip("coal")
    turn = [0, np.sqrt(0.5), 0, np.sqrt(0.5)] if lies else [0, 0, 0, 1]
    height = 0.2 + (0.1 if lies else 0.15)
    model = robot(
        link("box", 50.0, (4.3, 4.3, 8.3), box(1, 1, 0.2)),
        link("can", 1.0, (0.01, 0.01, 0.005), '<cylinder radius="0.1" length="0.3"/>'),
        joint("free_box", "floating", "base", "box"),
        joint("free_can", "floating", "base", "can"),
        **_mu(0.6),
    )
    q0 = [0, 0, 0.1, 0, 0, 0, 1, 0.05, 0.03, height + 0.001, *turn]
    sim = dyn.ContactSimulator(model, {"stepper": stepper}, period=2e-3, q0=q0)
    for k in range(200):
        sim.advance(k * 2e-3)
    ids = {c.id for c in sim.report.contacts if c.link_b != "ground"}
    assert len(ids) == (2 if lies else 16)
    assert np.abs(sim.qd).max() < (2e-4 if lies else 1e-8)
    assert sim.q[9] == pytest.approx(height, abs=1e-5)
    assert not sim.counters
