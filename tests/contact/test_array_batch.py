"""Batches of steps with contacts: the bits of single steps, whatever is beside them."""

import numpy as np
import pytest
from contact_bodies import box, joint, link, pendulum, robot, sphere

import dyn_core as dyn
from dyn_core.contact.stepping.array_batch import BatchStep
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.step_memory import FIRST_ROOM
from dyn_core.engines.llvm.host_machine import missing
from dyn_core.errors import ModelError, ShapeError, UnsupportedError

H = 0.004
native = pytest.mark.skipif(bool(missing()), reason=f"no lanes: {missing()}")


def bodies(count, shape, m=1.0, inertia=0.01):
    """Return floating bodies of one shape."""
    parts = []
    for k in range(count):
        parts += [
            link(f"body{k}", m, (inertia,) * 3, shape),
            joint(f"free{k}", "floating", "base", f"body{k}"),
        ]
    return robot(*parts)


def placed(model, places):
    """Return q of floating bodies at places, (bodies, 3)."""
    q = np.array(model.neutral())
    q.reshape(-1, 7)[:, :3] = places
    return q


def landing():
    """Return a quadruped above the floor."""
    model = dyn.load_urdf(dyn.robots.path("quadruped"), root_joint="floating")
    q = np.array(model.neutral())
    q[2], q[7:] = 0.345, (0.0, 0.7, -1.4) * 4
    return model, None, q


def stacked():
    """Return three boxes on each other."""
    model = bodies(3, box(0.2, 0.2, 0.1))
    return (
        model,
        None,
        placed(model, [(0.01 * k, 0, 0.052 + 0.101 * k) for k in range(3)]),
    )


def pile():
    """Return spheres that roll off each other."""
    rng = np.random.default_rng(2)
    model = bodies(5, sphere(0.1))
    places = [(*rng.uniform(-0.05, 0.05, 2), 0.12 + 0.19 * k) for k in range(5)]
    return model, {"solver": "convex_newton"}, placed(model, places)


def arm():
    """Return an arm near its limits, with dry friction, damping and a gear."""
    parts, parent = [], "base"
    for k, friction in enumerate((0.4, 0.0, 0.1)):
        more = (
            '<limit lower="-0.3" upper="0.3" effort="0" velocity="100"/>'
            f'<dynamics friction="{friction}" damping="0.05"/>'
        )
        rod = link(f"rod{k}", 0.5, (0.001, 0.01, 0.01), sphere(0.02), (0.2, 0, 0))
        turn = joint(
            f"j{k}", "revolute", parent, f"rod{k}", (0, 1, 0), (0.4, 0, 0), more
        )
        parts, parent = [*parts, rod, turn], f"rod{k}"
    world = {"half_spaces": [], "gears": [["j1", "j2", 0.5, 0.01]]}
    return robot(*parts), world, np.array([0.28, 0.2, 0.39])


def tied():
    """Return the arm with two joints tied by a loop instead of a gear."""
    model, _, q = arm()
    tie = dyn.coupling("tie", ("j1", "j2"), lambda a, b: [0.5 * a - b])
    return model.with_loops(tie), {"half_spaces": []}, q - [0.0, 0.0, 0.29]


def ball():
    """Return a ball joint near the limits of its swing and twist, over a floor."""
    limits = {"type": "spherical", "swing": 0.1, "twist": [-0.05, 0.08]}
    model = robot(
        link("rod", 0.5, (0.01, 0.01, 0.002), sphere(0.1), (0, 0, -0.3)),
        joint("turn", "revolute", "base", "rod", (0, 0, 1)),
        joints={"turn": limits},
    )
    return model, None, model.neutral()


SCENES = {
    "landing": landing,
    "stacked": stacked,
    "pile": pile,
    "arm": arm,
    "loop": tied,
    "ball joint": ball,
}
# A robot's code takes most of the time of these tests: with --full only.
SOME = [
    pytest.param(name, marks=[pytest.mark.full] * (name == "landing"))
    for name in SCENES
]


def batch_of(model, q, n, seed=0):
    """Return states near one, all different, and joint forces."""
    rng = np.random.default_rng(seed)
    Q, V = np.tile(q, (n, 1)), 0.3 * rng.standard_normal((n, model.nv))
    for k in range(n):
        Q[k] = model.integrate(q, 0.003 * rng.standard_normal(model.nv))
    return Q, V, 0.2 * rng.standard_normal((n, model.nv))


def run(step, Q, V, tau, steps):
    """Return the states after some steps of a BatchStep, and the outcomes."""
    outcomes = []
    for _ in range(steps):
        Q, V, outcome = step.step(Q, V, tau)
        outcomes.append(outcome)
    return Q, V, outcomes


def alone(of, Q, V, tau, steps):
    """Return the states after some steps of an ArrayStep for each row."""
    ends = []
    for q, v, force in zip(Q, V, tau, strict=True):
        step = ArrayStep(of, H)
        for k in range(steps):
            q, v, _ = step.step(k * H, q, v, force)
        ends.append((q, v))
    return tuple(map(np.array, zip(*ends, strict=True)))


@pytest.mark.one_of(2)
@native
@pytest.mark.parametrize("scene", SOME)
def test_packs_of_rows_have_the_bits_of_single_steps(scene):
    """Rows that go the same way, and those that leave it, in lanes and alone."""
    model, world, q = SCENES[scene]()
    of, n, steps = ContactModel(model, world), 20, 30
    Q, V, tau = batch_of(model, q, n)
    Q[::2], V[::2], tau[::2] = Q[0], V[0], tau[0]  # every other row is the same
    one_q, one_v = alone(of, Q[:9], V[:9], tau[:9], steps)
    step = BatchStep(of, H, n, threads=1, links=[list(model.frames)[-1]])
    end_q, end_v, outcomes = run(step, Q, V, tau, steps)
    np.testing.assert_array_equal(end_q[:9], one_q)
    np.testing.assert_array_equal(end_v[:9], one_v)
    single, packs, packed, stepped = step._runners[0]._pack.counts
    least = 10 if scene == "stacked" else steps  # where most steps are hard
    assert stepped + single == n * steps and packs > least and packed > 2 * packs
    assert stepped > 5 * least
    for outcome in outcomes:
        for values in outcome:
            np.testing.assert_array_equal(values[2::2], values[:1].repeat(9, axis=0))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("scene", SOME)
def test_rows_have_the_bits_of_single_steps(scene):
    """Dynamics, contacts, solution, correction and warm starts are those of one row."""
    model, world, q = SCENES[scene]()
    of, n, steps = ContactModel(model, world), 6, 40
    Q, V, tau = batch_of(model, q, n)
    one_q, one_v = alone(of, Q[:3], V[:3], tau[:3], steps)
    for threads, order in ((1, slice(None)), (2, slice(None, None, -1))):
        step = BatchStep(of, H, n, threads)
        end_q, end_v, outcomes = run(step, Q[order], V[order], tau[order], steps)
        np.testing.assert_array_equal(end_q[order][:3], one_q)
        np.testing.assert_array_equal(end_v[order][:3], one_v)
        assert not any(outcome.failed.any() for outcome in outcomes)
        assert sum(outcome.rows.sum() for outcome in outcomes) > n


@pytest.mark.parametrize("stepper", ("anitescu_potra", "moreau_jean"))
def test_other_schemes_have_the_bits_of_single_steps(stepper):
    """So do schemes that look at a gap elsewhere, forces on bodies, and sweeps."""
    world = {
        "stepper": stepper,
        "solver": "projected_gauss_seidel",
        "solver_options": {"relaxation": 0.9},
        "stabilisation": "baumgarte",
    }
    model, _, q = stacked()
    of, n = ContactModel(model, world), 3
    Q, V, tau = batch_of(model, q, n)
    f_ext = np.random.default_rng(1).standard_normal((n, model.nb, 6))
    batch, singles = BatchStep(of, H, n, 1), [ArrayStep(of, H) for _ in range(n)]
    for _ in range(10):
        ends = [
            one.step(0.0, *x) for one, *x in zip(singles, Q, V, tau, f_ext, strict=True)
        ]
        Q, V, _ = batch.step(Q, V, tau, f_ext)
        np.testing.assert_array_equal(Q, [end[0] for end in ends])
        np.testing.assert_array_equal(V, [end[1] for end in ends])


def test_threads_do_not_change_bits():
    """Rows of many blocks are the same on one thread and on three."""
    model, world, q = landing()
    of, n = ContactModel(model, world), 150
    Q, V, tau = batch_of(model, q, n)
    ends = [run(BatchStep(of, H, n, threads), Q, V, tau, 12) for threads in (1, 3)]
    for a, b in zip(ends[0][:2], ends[1][:2], strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(ends[0][2], ends[1][2], strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_room_grows_when_a_row_needs_it():
    """One row with many contacts changes nothing for the rows before and behind it."""
    count = FIRST_ROOM // 4 + 3
    model = bodies(count, box(0.2, 0.2, 0.1))
    of, n = ContactModel(model), 5
    apart = placed(model, [(0.5 * k, 0, 0.3 + 0.1 * k) for k in range(count)])
    down = placed(model, [(0.5 * k, 0, 0.0501) for k in range(count)])
    one = placed(model, [(0.5 * k, 0, 0.0501 + (k > 0)) for k in range(count)])
    Q, V = np.array([one, apart, down, one, apart]), np.zeros((n, model.nv))
    V[:, 3] = 0.1
    tau = np.zeros_like(V)
    end_q, end_v, outcomes = run(BatchStep(of, H, n, 1), Q, V, tau, 3)
    assert outcomes[-1].contacts.max() > FIRST_ROOM > outcomes[-1].contacts[0] > 0
    one_q, one_v = alone(of, Q, V, tau, 3)
    np.testing.assert_array_equal(end_q, one_q)
    np.testing.assert_array_equal(end_v, one_v)


@pytest.mark.parametrize("what", ("q", "qd", "tau", "quaternion", "overflow"))
def test_a_row_that_is_not_finite_stays_alone(what):
    """It is reported and stays as it was; the others have their bits, then and later."""
    model, world, q = landing()
    of, n, bad = ContactModel(model, world), 5, 2
    Q, V, tau = batch_of(model, q, n)
    good_q, good_v, _ = run(BatchStep(of, H, n, 1), Q, V, tau, 12)
    step = BatchStep(of, H, n, 1, ["front_left_foot"])
    Q1, V1, _ = run(step, Q, V, tau, 6)
    Q2, V2, tau2 = Q1.copy(), V1.copy(), tau.copy()
    if what == "q":
        Q2[bad, 2] = np.nan
    elif what == "qd":
        V2[bad, 3] = np.inf
    elif what == "tau":
        tau2[bad, 7] = np.nan
    elif what == "quaternion":
        Q2[bad, 3:7] = 0.0
    else:
        V2[bad, 0] = 1e200
    Q3, V3, outcome = step.step(Q2, V2, tau2)
    assert outcome.failed.tolist() == [k == bad for k in range(n)]
    assert outcome.status.tolist() == [-1 if k == bad else 0 for k in range(n)]
    assert outcome.not_converged == 1
    assert not outcome.force[bad].any() and np.isfinite(outcome.force).all()
    np.testing.assert_array_equal(Q3[bad], Q2[bad])
    np.testing.assert_array_equal(V3[bad], V2[bad])
    Q3[bad], V3[bad] = Q1[bad], V1[bad]
    end_q, end_v, outcomes = run(step, Q3, V3, tau, 5)
    others = np.arange(n) != bad
    np.testing.assert_array_equal(end_q[others], good_q[others])
    np.testing.assert_array_equal(end_v[others], good_v[others])
    assert not outcomes[-1].failed.any() and np.isfinite(end_q[bad]).all()


def test_reset_forgets_the_impulses_of_some_rows():
    """Those rows step as if they were new, the others go on."""
    model, world, q = stacked()
    of, n = ContactModel(model, world), 4
    Q, V, tau = batch_of(model, q, n)
    step, again = BatchStep(of, H, n, 1), BatchStep(of, H, n, 1)
    run(again, Q, V, tau, 30)
    Q, V, _ = run(step, Q, V, tau, 30)
    step.reset([1, 3])
    _, new, fresh = run(BatchStep(of, H, n, 1), Q, V, tau, 1)
    _, warm, kept = run(again, Q, V, tau, 1)
    _, mixed, outcome = run(step, Q, V, tau, 1)
    np.testing.assert_array_equal(mixed[[1, 3]], new[[1, 3]])
    np.testing.assert_array_equal(mixed[[0, 2]], warm[[0, 2]])
    assert fresh[0].iterations.sum() > kept[0].iterations.sum()
    assert (new != warm).any(axis=1)[1]
    assert outcome[0].not_converged == 0


def test_forces_carry_the_weight():
    """A stack at rest: each box is held by what it touches, the floor holds all."""
    model, world, q = stacked()
    of = ContactModel(model, world)
    step = BatchStep(of, H, 2, 1, ["body2", "base", "body0"])
    Q, V = np.tile(q, (2, 1)), np.zeros((2, model.nv))
    *_, outcomes = run(step, Q, V, np.zeros_like(V), 200)
    force, world_force = outcomes[-1].force, outcomes[-1].world_force
    up = [0, 0, 9.81]
    np.testing.assert_allclose(force[0], [up, (0, 0, 0), up], atol=1e-6)
    floor = [0, 0, 3 * 9.81]
    np.testing.assert_allclose(world_force[1], [(0, 0, 0), (0, 0, 0), floor], atol=1e-6)


def test_a_batch_of_no_rows_has_no_results():
    """No Program is called: machine code would write a block of rows."""
    of = ContactModel(pendulum(), {"half_spaces": []})
    nothing = np.zeros((0, 1))
    q, qd, outcome = BatchStep(of, H, 0).step(nothing, nothing, nothing)
    assert len(q) == len(qd) == len(outcome.failed) == 0


def test_what_batches_do_not_take_is_refused():
    """In words that say what is valid."""
    quadruped = dyn.load_urdf(dyn.robots.path("quadruped"), root_joint="floating")
    with pytest.raises(UnsupportedError, match="event_driven.*ContactSimulator"):
        BatchStep(ContactModel(quadruped, {"stepper": "event_driven"}), H, 2)
    of = ContactModel(pendulum(), {"half_spaces": []})
    with pytest.raises(ModelError, match="no link is called 'foot'"):
        BatchStep(of, H, 2, 1, ["foot"])
    with pytest.raises(ShapeError, match="qd"):
        BatchStep(of, H, 2, 1).step(np.zeros((2, 1)), np.zeros(1), np.zeros((2, 1)))
