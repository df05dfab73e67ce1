"""Laws of impacts and of overlaps in simulations: heights, energies, no surprises."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from contact_bodies import (
    G_EARTH,
    box,
    free_box,
    joint,
    link,
    pendulum,
    point_mass,
    robot,
    sphere,
)

import dyn_core as dyn
from dyn_core.contact import ConstraintProblem, solve
from dyn_core.contact.stepping import array_step
from dyn_core.simulation import contacts

SCHEMES = ("stewart_trinkle", "anitescu_potra", "moreau_jean", "event_driven")
STABILISATIONS = ("split_impulse", "baumgarte", "none", "erp_cfm")
H = 1e-3


def _smooth(e, mu=0.0):
    return {"materials": {"default": {"mu": mu, "restitution": e}}}


def _heights(world, e, drop=1.0, seconds=0.92, h=2e-3):
    """Return the heights of a ball after it was dropped on the floor."""
    model = point_mass(axes="z", radius=0.1, **_smooth(e))
    sim = dyn.ContactSimulator(model, world, period=h, q0=[drop + 0.1])
    heights = []
    for k in range(round(seconds / h)):
        sim.advance(k * h)
        heights.append(sim.q[0] - 0.1)
    met = int(np.argmax(np.array(heights) < 1e-2))
    assert not sim.counters
    return np.array(heights[met:])


@pytest.mark.one_of(2)
@pytest.mark.turns("stabilisation")
@pytest.mark.parametrize("stabilisation", STABILISATIONS)
@pytest.mark.parametrize("law", ("newton", "poisson"))
@pytest.mark.parametrize("stepper", SCHEMES)
def test_a_ball_rises_to_e_squared_of_its_height(stepper, law, stabilisation):
    """Dropped 1 m: .64 m for e = .8, 1 m and no more for e = 1, by every law."""
    world = {"stepper": stepper, "stabilisation": stabilisation, "restitution": law}
    assert _heights(world, 0.8).max() == pytest.approx(0.64, abs=4e-3)
    assert _heights(world, 1.0).max() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("stepper", SCHEMES)
def test_a_plastic_ball_stays_down(stepper):
    """It comes out of the overlap of its impact without a rebound, and rests."""
    heights = _heights({"stepper": stepper}, 0.0, seconds=0.7)
    assert heights[10:].max() < 1e-6
    assert abs(heights[-1]) < 1e-6


def _cradle(world, n=5, e=1.0, start=-0.0503, seconds=0.1):
    """Return the velocities of balls in a row after the first has hit them."""
    parts = []
    for k in range(n):
        parts.append(link(f"b{k}", 1.0, (0, 0, 0), sphere(0.1)))
        parts.append(
            joint(f"x{k}", "prismatic", "base", f"b{k}", (1, 0, 0), (0.2 * k, 0, 0))
        )
    model = robot(*parts, gravity=(0, 0, 0), **_smooth(e))
    q, qd = np.zeros(n), np.zeros(n)
    q[0], qd[0] = start, 1.0
    sim = dyn.ContactSimulator(
        model, {**world, "half_spaces": []}, period=H, q0=q, qd0=qd
    )
    for k in range(round(seconds / H)):
        sim.advance(k * H)
    assert not sim.counters
    return sim.qd


@pytest.mark.parametrize("stepper", SCHEMES)
@pytest.mark.parametrize(
    ("law", "wanted"),
    [
        ({}, (-0.6, 0.4, 0.4, 0.4, 0.4)),
        ({"restitution": "poisson"}, (-0.6, 0.4, 0.4, 0.4, 0.4)),
        ({"impacts": "sequential"}, (0, 0, 0, 0, 1)),
    ],
)
def test_newtons_cradle(stepper, law, wanted):
    """Five balls, e = 1: momentum and energy stay, the first ball met mid-step."""
    qd = _cradle({**law, "stepper": stepper})
    np.testing.assert_allclose(qd, wanted, atol=1e-6)
    assert qd @ qd == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("stepper", SCHEMES)
@pytest.mark.parametrize("e", (0.3, 0.7))
def test_poissons_law_takes_energy(stepper, e):
    """In a row of balls the energy after is between that of rest and that before."""
    qd = _cradle({"restitution": "poisson", "stepper": stepper}, e=e)
    assert qd.sum() == pytest.approx(1.0, abs=1e-7)
    assert 0.2 < qd @ qd < 1.0
    np.testing.assert_allclose(
        qd, np.append((1 - 4 * e) / 5, [(1 + e) / 5] * 4), atol=1e-6
    )


def test_poissons_law_leaves_what_rests():
    """A ball that lies on the floor is not thrown up by another that lands beside it."""
    model = robot(
        link("a", 1.0, (0, 0, 0), sphere(0.1)),
        link("b", 1.0, (0, 0, 0), sphere(0.1)),
        joint("za", "prismatic", "base", "a"),
        joint("zb", "prismatic", "base", "b", xyz=(1, 0, 0)),
        **_smooth(0.8),
    )
    sim = dyn.ContactSimulator(
        model, {"restitution": "poisson"}, period=H, q0=[0.1, 0.2]
    )
    lowest = []
    for k in range(300):
        sim.advance(k * H)
        lowest.append(sim.q.copy())
    lowest = np.array(lowest)
    assert np.abs(lowest[:, 0] - 0.1).max() < 1e-8
    assert lowest[160:, 1].max() == pytest.approx(0.164, abs=2e-3)


@pytest.mark.parametrize("stepper", SCHEMES)
@pytest.mark.parametrize("stabilisation", ("split_impulse", "baumgarte"))
def test_split_impulses_and_nothing_near(stepper, stabilisation):
    """In free flight, and without contacts at all, a body falls freely."""
    for more in ({}, {"contacts": False}):
        world = {"stepper": stepper, "stabilisation": stabilisation, **more}
        sim = dyn.ContactSimulator(
            free_box(), world, period=H, q0=[0, 0, 5.0, 0, 0, 0, 1]
        )
        for k in range(100):
            sim.advance(k * H)
        assert sim.qd[5] == pytest.approx(-0.1 * G_EARTH, rel=1e-9)


MANY_EVENTS = "event_driven", "baumgarte", 0.1  # it falls between pushes
STARTS = [
    pytest.param(*start, marks=[pytest.mark.full] * (start == MANY_EVENTS))
    for start in itertools.product(SCHEMES, ("split_impulse", "baumgarte"), (0.02, 0.1))
]


@pytest.mark.parametrize(("stepper", "stabilisation", "depth"), STARTS)
def test_a_start_in_the_floor_ends_on_it(stepper, stabilisation, depth):
    """A box comes out at 0.1 m/s, it is not thrown; the start is reported."""
    model = free_box(2.0, (0.25, 0.25, 0.25), **_smooth(0.0, 0.5))
    world = {"stepper": stepper, "stabilisation": stabilisation}
    q0 = [0, 0, 0.25 - depth, 0, 0, 0, 1]
    sim = dyn.ContactSimulator(model, world, period=5e-3, q0=q0)
    assert f"overlaps by {depth:g} m" in sim.warnings[0]
    assert "pushed out at 0.1 m/s at most" in sim.warnings[0]
    heights = []
    for k in range(round((10 * depth + 0.3) / 5e-3)):
        sim.advance(k * 5e-3)
        heights.append(sim.q[2] - 0.25)
    steps = np.diff(heights) / 5e-3
    assert steps.max() < 0.101
    assert max(heights) < 6e-4
    slow = (stepper, stabilisation) == ("event_driven", "baumgarte")
    assert -heights[-1] < (0.5 * depth if slow else 1e-4)  # it falls between pushes
    assert not sim.counters


def test_the_speed_of_pushing_out_is_a_setting():
    """Half the speed takes twice as long; without overlap correction it is refused."""
    model = free_box(2.0, (0.25, 0.25, 0.25), **_smooth(0.0, 0.5))
    for speed in (0.05, 0.4):
        sim = dyn.ContactSimulator(
            model,
            {"push_out_speed": speed},
            period=H,
            q0=[0, 0, 0.15, 0, 0, 0, 1],
        )
        for k in range(10):
            sim.advance(k * H)
        assert sim.q[2] - 0.15 == pytest.approx(0.01 * speed, rel=1e-6)
    with pytest.raises(dyn.ModelError, match="push_out_speed changes nothing"):
        dyn.World(push_out_speed=0.2, stabilisation="none")


@pytest.mark.parametrize("depth", (0.02, 0.1))
def test_the_compiled_step_throws_nothing(depth):
    """contact_euler pushes a box out of the floor as gently."""
    model = free_box(2.0, (0.25, 0.25, 0.25), **_smooth(0.0, 0.5))
    step = dyn.solver("contact_euler").build(model)
    q, qd, warm = (
        np.array([0, 0, 0.25 - depth, 0, 0, 0, 1.0]),
        np.zeros(6),
        np.zeros(24),
    )
    heights = []
    for _ in range(round((10 * depth + 0.3) / 5e-3)):
        q, qd, warm, *_ = step(q, qd, np.zeros(6), 5e-3, warm)
        heights.append(q[2] - 0.25)
    assert max(heights) < 6e-4
    assert abs(heights[-1]) < 1e-4


def test_joint_limits_push_out_gently_too():
    """A joint that starts beyond its limit comes back at 0.1 rad/s and stays."""
    model = pendulum(lower=-0.25, gravity=(0, 0, 0))
    sim = dyn.ContactSimulator(model, {"contacts": False}, period=H, q0=[-0.26])
    angles = []
    for k in range(400):
        sim.advance(k * H)
        angles.append(sim.q[0])
    assert np.diff(angles).max() < 0.101 * H
    assert angles[-1] == pytest.approx(-0.25, abs=1e-6)
    assert abs(sim.qd[0]) < 1e-9


FOUR_BAR = {
    "loops": [
        {
            "name": "D",
            "kind": "axes",
            "axes": ["x", "z"],
            "b": "rocker",
            "at_b": {"xyz": [1.02, 0, 0]},
            "at_a": {"xyz": [1.98, 0, 0]},
        }
    ],
    "joints": {"pin_b": {"passive": True}, "pin_c": {"passive": True}},
}


def _linkage():
    """Return the four-bar of the examples with a ball below its coupler, and a start."""
    text = open("examples/four_bar/four_bar.urdf").read()
    ball = (
        '<link name="coupler"><collision><origin xyz="0.6 0 -0.05"/><geometry>'
        '<sphere radius="0.05"/></geometry></collision>'
    )
    text = text.replace('<link name="coupler">', ball)
    model = dyn.load_urdf(text, extras={**FOUR_BAR, **_smooth(0.0, 0.5)})
    guess = model.position({"motor": 0.93, "pin_b": -0.5, "pin_c": -1.5})
    return model, dyn.close_loops(model, guess, fixed=["motor"])


def _energy(sim, weights):
    """Return kinetic and potential energy [J]."""
    poses, H = sim.contact_model.kinematics(sim.q)[0], sim.contact_model.inertia(sim.q)
    heights = [
        poses[i - 1, 2, :3] @ np.array(c) + poses[i - 1, 2, 3] for i, _, c in weights
    ]
    potential = sum(
        m * G_EARTH * z for (_, m, _), z in zip(weights, heights, strict=True)
    )
    return sim.qd @ H @ sim.qd / 2 + potential


@pytest.mark.turns("below")
@pytest.mark.parametrize("stepper", SCHEMES)
@pytest.mark.parametrize("below", (0.01, 0.775))
def test_a_linkage_that_meets_the_floor_gains_nothing(stepper, below):
    """Near its dead point the rows of loop and contact are dependent; energy falls."""
    model, q = _linkage()
    weights = [
        (1, 1.2, (0.2, 0, 0.03)),
        (2, 2.0, (0.6, 0, -0.05)),
        (3, 0.9, (0.5, 0, 0.04)),
    ]
    world = {
        "stepper": stepper,
        "half_spaces": [{"name": "floor", "point": [0, 0, 0.53488297 - below]}],
    }
    sim = dyn.ContactSimulator(model, world, period=H, q0=q)
    before, gains, pushes = _energy(sim, weights), [], []
    for k in range(700 if below > 0.1 else 300):
        sim.advance(k * H)
        pushes += [c.impulse[0] for r in sim.reports for c in r.contacts]
        gains.append(_energy(sim, weights) - before)
    assert max(gains) < 1e-6
    assert gains[-1] < -1e-3
    assert not sim.counters
    assert max(pushes) > 0.01


def _squeezed(**world):
    """Return a simulator of a ball between two planes that are too near."""
    planes = [
        {"name": "floor"},
        {"name": "ceiling", "normal": [0, 0, -1], "point": [0, 0, 0.19]},
    ]
    model = point_mass(axes="xz", radius=0.1, **_smooth(0.0, 0.5))
    return dyn.ContactSimulator(
        model, {"half_spaces": planes, **world}, period=H, q0=[0, 0.095]
    )


@pytest.mark.parametrize("stepper", SCHEMES)
@pytest.mark.parametrize("solver", ("admm", "projected_gauss_seidel", "convex_newton"))
def test_a_squeeze_has_no_solution(stepper, solver):
    """The default keeps the ball still and counts; baumgarte says infeasible.

    Sweeps prove nothing: their steps leave out the push, and the ball is still, too.
    """
    sim = _squeezed(stepper=stepper, solver=solver)
    for k in range(5):
        sim.advance(k * H)
    assert sim.counters == {"contacts without room": 5}
    np.testing.assert_allclose(sim.q, [0, 0.095], atol=1e-9)
    sim = _squeezed(stepper=stepper, solver=solver, stabilisation="baumgarte")
    if solver == "projected_gauss_seidel":
        sim.advance(0.0)
        assert sim.counters == {"contacts wedged": 1}
        np.testing.assert_allclose(sim.q, [0, 0.095], atol=1e-9)
        return
    with pytest.raises(dyn.InfeasibleError, match="mass/floor"):
        sim.advance(0.0)
    assert sim.counters["contact infeasible"] == 1
    assert sim.paused


def test_a_problem_that_is_too_large_for_a_proof_is_called_so(monkeypatch):
    """If no try solves it: a motor presses a ball into the floor; no proof is tried."""
    for module in (array_step, contacts):
        monkeypatch.setattr(module, "MOST_PROVEN", 0)
    parts = [
        link("lid", 1.0, (0.01,) * 3, box(0.4, 0.4, 0.1)),
        joint("press", "prismatic", "base", "lid", xyz=(0, 0, 0.25)),
        link("ball", 1.0, (0.004,) * 3, sphere(0.1)),
        joint("free", "floating", "base", "ball"),
    ]
    model = robot(*parts)
    q0 = model.neutral()
    q0[3] = 0.1
    world = {"solver": "projected_gauss_seidel"}
    sim = dyn.ContactSimulator(model, world, q0=q0, prescribed=("press",))
    sim.accelerate(0.0, [-1.0])
    real = sim.arrays.step

    def unsolved(*arguments, **options):
        q, qd, record = real(*arguments, **options)
        assert record.status == "infeasible"  # which the last try proves by itself
        return q, qd, record._replace(status="max_iterations")

    monkeypatch.setattr(sim.arrays, "step", unsolved)
    sim.advance(0.0)
    assert sim.counters == {"contact not converged": 1}
    assert "with more than 0 rows it is not known whether" in sim.unsolved()[0]
    assert np.abs(sim.qd).max() < 0.01


def _tower(ratio):
    """Return a box of 1 g under one that is `ratio` times as heavy."""
    parts = []
    for name, m in (("light", 1e-3), ("heavy", 1e-3 * ratio)):
        i = m / 6 * 0.04
        parts.append(link(name, m, (i, i, i), box(0.2, 0.2, 0.2)))
        parts.append(joint(f"free_{name}", "floating", "base", name))
    return robot(*parts, **_smooth(0.0, 0.5))


@pytest.mark.parametrize("ratio", (1e3, 1e6))
@pytest.mark.parametrize("solver", ("admm", "lemke", "convex_newton", "admm_compiled"))
def test_a_ton_on_a_gram_stays(solver, ratio):
    """A mass ratio of a million is at rest by every solver of its problem."""
    q0 = np.array([0, 0, 0.1, 0, 0, 0, 1, 0, 0, 0.3, 0, 0, 0, 1])
    sim = dyn.ContactSimulator(_tower(ratio), {"solver": solver}, period=H, q0=q0)
    for k in range(40):
        sim.advance(k * H)
    assert not sim.counters
    assert np.abs(sim.q - q0).max() < 1e-7
    H_q = sim.contact_model.inertia(sim.q)
    assert sim.qd @ H_q @ sim.qd / 2 < 1e-9


@pytest.mark.parametrize("name", ("admm", "projected_gauss_seidel", "convex_newton"))
def test_bad_warm_starts_are_refused_by_name(name):
    """Impulses that are no numbers are refused, of other ids, too."""
    problem = ConstraintProblem(
        ["contact"], np.eye(3), [-1, 0.1, 0], mu=0.5, ids=["foot"]
    )
    with pytest.raises(dyn.ModelError, match=r"warm\['foot'\] is \[nan, nan, nan\]"):
        solve(problem, name, warm={"foot": [np.nan] * 3})
    with pytest.raises(dyn.ModelError, match=r"warm\['foot'\]: valid: numbers"):
        solve(problem, name, warm={"foot": "none"})
    with pytest.raises(dyn.ModelError, match=r"warm\[0\] is \[nan\]; valid: finite"):
        solve(problem, name, warm={0: np.nan})
    for wrong in (3.0, "foot", [1.0, 0.0, 0.0]):
        with pytest.raises(dyn.ModelError, match="valid: a ContactSolution, impulses"):
            solve(problem, name, warm=wrong)
    other = solve(problem, name, warm={"hand": [1.0] * 3})
    np.testing.assert_allclose(other.impulses, [1, -0.1, 0], atol=1e-8)
    nameless = replace(problem, ids=None)
    assert solve(nameless, name, warm=solve(nameless, name)).converged
    with pytest.raises(dyn.ModelError, match=r"warm\[0\] is \[nan\]; valid: finite"):
        solve(nameless, name, warm={0: np.nan})


@pytest.mark.parametrize("name", ("admm", "projected_gauss_seidel", "convex_newton"))
def test_warm_starts_far_too_large_do_no_harm(name):
    """Without velocities there are no impulses, whatever the last problem had."""
    G = np.array([[2.0, -1.0], [-1.0, 2.0]])
    for b in ([0.0, 0.0], [1e-17, 0.0]):
        problem = ConstraintProblem(["unilateral"] * 2, G, b, ids=["a", "b"])
        solution = solve(problem, name, warm={"a": [0.8], "b": [0.4]})
        assert solution.converged
        np.testing.assert_array_equal(solution.impulses, 0)


def test_bad_external_forces_are_named():
    """A force that is no number is named as it was given, in the air and on the floor."""
    model = point_mass(axes="z", radius=0.1)
    for height in (0.1, 0.5):
        sim = dyn.ContactSimulator(model, None, period=H, q0=[height])
        sim.f_ext = np.zeros((1, 6))
        sim.f_ext[0, 5] = np.nan
        message = r"f_ext\[0, 5\], on the body of joint 'z', is nan"
        with pytest.raises(dyn.NonFiniteError, match=message):
            sim.advance(0.0)
