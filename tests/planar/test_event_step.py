"""The step of fixed cost of planar chains: landing, limits, corners, many steps."""

from dataclasses import replace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.planar import (
    ChainState,
    from_angles,
    joint_angles,
    joint_rates,
    make_chain,
    make_chain_like,
)
from dyn_core.planar.chain.simulator import ChainSimulator
from dyn_core.spatial import Vector
from dyn_core.tasks.shipped import TASKS
from dyn_core.testing import scaled_error
from dyn_plugins.planar._testing.chains import mass_matrix, random_chain
from dyn_plugins.planar.objects_and_tasks import _lifted, _repaired

ENGINES = pytest.mark.parametrize("engine", available())


def _near(got, wanted, relative=1e-12):
    assert scaled_error(got, wanted) <= relative, (got, wanted)


def _build(chain, engine="native", **choices):
    return dyn.solver("chain_fixed_step").build(chain, engine=engine, **choices)


def _energy(chain, x, v):
    kinetic = 0.5 * (v * (mass_matrix(chain) @ v)).sum()
    pull = np.array(chain.weights)[:, None] * np.array(chain.gravity)
    return kinetic - (pull * x).sum()


def _stretch(chain, x):
    return np.abs(np.linalg.norm(np.diff(x, axis=-2), axis=-1) - chain.lengths).max()


class Moving:
    """A chain in the hands of the step, and the worst of what it did."""

    def __init__(self, chain, x, v=None, **choices):
        self.chain, self.x = chain, np.array(x, float)
        self.v = np.zeros_like(self.x) if v is None else np.array(v, float)
        self.contact = self.limit = np.zeros(self.x.shape[:-1])
        self.step = _build(chain, **choices)
        self.lost, self.stretch, self.losses = 0.0, 0.0, []

    def go(self, dt, steps, tau=None):
        tau = np.zeros(self.chain.n) if tau is None else np.append(tau, 0.0)
        for _ in range(steps):
            stepped = self.step(self.x, self.v, self.contact, self.limit, tau, dt)
            self.x, self.v, self.contact, self.limit, loss = stepped
            self.losses.append(float(loss))
            self.stretch = max(self.stretch, _stretch(self.chain, self.x))
            yield self
        self.lost = sum(self.losses)


# Nothing touches


@ENGINES
def test_it_is_semi_implicit_euler_where_nothing_touches(engine):
    """Bits of the step without ground and limits, as far as both are away."""
    for seed in range(4):
        case = random_chain(seed, n=2 + seed, massive=0.5)
        far = make_chain_like(
            case.chain,
            ground=[{"z0": (0, -50)}, {"z0": (50, 0), "z": (-1, 0), "mode": "slide"}],
            lower=dict.fromkeys(range(case.chain.n - 1), -3.1),
            upper=dict.fromkeys(range(case.chain.n - 1), 3.1),
        )
        tau, off = np.random.default_rng(seed).normal(size=far.n), np.zeros(far.n)
        euler = dyn.solver("chain_semi_implicit").build(
            case.chain, engine=engine, window=5e-3
        )
        wanted = euler(case.x, case.v, tau, 1e-3)
        for chain in (far, case.chain):
            result = _build(chain, engine)(case.x, case.v, off, off, tau, 1e-3)
            _near(result[0], wanted[0], 1e-15)
            _near(result[1], wanted[1], 1e-15)
            assert not result[2].any() and not result[3].any() and result[4] == 0


# Landing and rest


@pytest.mark.parametrize("mode", ["stick", "slide"])
def test_a_chain_falls_and_rests(mode):
    """It comes to rest on the ground, which then carries its weight (WAW-7.4)."""
    chain = make_chain(
        (0.5, 0.4, 0.3),
        (0.4, 0.6, 0.3, 0.5),
        k_omega=0.05,
        k_v=0.3,
        ground=[{"mode": mode}],
    )
    x, v = from_angles(chain, (0, 0.2), (0.3, 0), (0.4, -0.3, 0.5), (0, 1, 0))
    moving, energy = Moving(chain, x, v), _energy(chain, x, v)
    for now in moving.go(2e-3, 4000):
        assert now.x[:, 1].min() >= -2e-3 * (1 + np.abs(now.v).max())
    assert np.abs(moving.v[:, int(mode == "slide") :]).max() <= 1e-3
    assert np.abs(moving.x[:, 1]).max() <= 1e-3
    assert moving.contact.all()
    assert moving.stretch <= 5e-3
    assert min(moving.losses) >= 0
    assert 0.5 < moving.lost < energy
    # Joints that rest there are supports: what they bear is the weight.
    still = chain.with_constraints(kind="fixed")
    F = dyn.solver("chain_forces").build(chain)(moving.x, moving.v, np.zeros(4))
    borne = dyn.solver("chain_recursion").build(still)(moving.x, 0 * moving.v, F)
    _near(borne.reaction.sum(axis=0), [0, 9.81 * sum(chain.masses)], 1e-2)
    assert (borne.reaction[:, 1] > 0).all()


def test_a_resting_chain_stays():
    """Flat on the ground, a thousand steps: nothing moves, nothing is lost."""
    chain = make_chain((0.5, 0.4, 0.3), (0.4, 0.6, 0.3, 0.5), ground=[{}])
    x, _ = from_angles(chain, (0.1, 0), (0, 0), (0, np.pi, 0), (0, 0, 0))
    moving = Moving(chain, x)
    for _ in moving.go(2e-3, 1000):
        pass
    _near(moving.x, x, 1e-9)
    assert np.abs(moving.v).max() <= 1e-9
    assert moving.lost <= 1e-3


@ENGINES
def test_a_standing_joint_leaves_when_it_is_lifted(engine):
    """A motor in the base link lifts the other end; the held one stays held."""
    chain = make_chain((0.5,), (0.4, 0.6), ground=[{}])
    load = 0.6 * 9.81 * 0.5
    for share, leaves in ((0.0, False), (0.999, False), (1.001, True)):
        step = _build(chain, engine)
        state = [(0, 0), (0.5, 0)], np.zeros((2, 2)), (1, 1), (0, 0)
        result = step(*state, (share * load, 0), 1e-3)
        assert result.contact.tolist() == [1, 0 if leaves else 1]
        assert (result.v[1, 1] > 0) == leaves


# Limits


def test_limits_hold():
    """A torque presses an angle to each side; it stays within (WAW-12.1)."""
    chain = make_chain(
        (0.5, 0.4, 0.3),
        (1, 0.7, 0.5, 0.3),
        k_omega=0.05,
        constraints={"kind": {0: "fixed"}},
        lower={0: -1.2, 1: -0.4, 2: -0.2},
        upper={0: 1.0, 1: 0.6, 2: 0.3},
    )
    for side in (1, -1):
        x, v = from_angles(chain, (0, 0), (0, 0), (0.2, 0.1, 0.1), (0, 0, 0))
        moving, stops = Moving(chain, x, v), set()
        for now in moving.go(2e-3, 1500, tau=(0, side * 9.0, side * 2.0)):
            theta = joint_angles(chain, ChainState(now.x, now.v))
            assert (theta <= np.array(chain.upper[:-1]) + 0.03).all()
            assert (theta >= np.array(chain.lower[:-1]) - 0.03).all()
            stops |= set(zip(range(4), now.limit, strict=True))
        assert {(1, side), (2, side)} <= stops
        bound = [(chain.upper if side > 0 else chain.lower)[i] for i in (1, 2)]
        _near(theta[1:], bound, 2e-3)
        assert (
            np.abs(joint_rates(chain, ChainState(moving.x, moving.v))[1:]).max() < 1e-2
        )
        assert moving.limit[1:3].tolist() == [side, side]
        assert moving.stretch <= 5e-3


def test_impacts_only_take_energy(full):
    """Without gravity and resistance: each step's kinetic energy, hits and all.

    Four chains, one of each length; ten with --full.
    """
    hits = 0
    for seed in range(10 if full else 4):
        case = random_chain(seed, n=3 + seed % 4, kinds=("free",), active=0.0)
        n = case.chain.n
        box = [
            {"z0": z * 1.2, "z": -z, "mode": ("stick", "slide")[seed % 2]}
            for z in np.array([(0, -1), (0, 1), (-1, 0), (1, 0)], float)
        ]
        chain = make_chain(
            np.full(n - 1, 0.3),
            case.chain.masses,
            gravity=0,
            ground=box,
            lower=dict.fromkeys(range(1, n - 1), -1.5),
            upper=dict.fromkeys(range(1, n - 1), 1.5),
        )
        rng = np.random.default_rng(seed)
        rates = rng.normal(size=n - 1)
        x, v = from_angles(
            chain, (-0.3, 0), (0.5, 1), rng.normal(size=n - 1) / 2, rates
        )
        assert np.abs(x).max() < 1.2
        moving, before = Moving(chain, x, v), _energy(chain, x, v)
        start = before
        for now in moving.go(1e-3, 1500):
            after = _energy(chain, now.x, now.v)
            if now.losses[-1] > 1e-6:
                hits += 1
                assert after <= before + 1e-3 * start
            before = after
            assert np.abs(now.x).max() <= 1.2 + 2e-3 * (1 + np.abs(now.v).max())
        assert before <= 1.05 * start
        assert moving.stretch <= 1e-3
    assert hits >= (30 if full else 10)


# Beside the event-driven simulator


def test_it_converges_to_the_event_driven_simulator():
    """The setting of TRAJ-2: hit and rest of joint 0, with smaller and smaller dt."""
    chain = make_chain((0.5, 0.5), (0.4, 0.6, 0.3), ground=[{}])
    start = from_angles(chain, (0, 0.03), (0.2, -1), (1, 0.6), (0.5, -0.4))
    sim = ChainSimulator(chain, *start, dt=1e-4, window=5e-4)
    for _ in range(900):
        sim.step()
    errors = []
    for dt in (1e-3, 5e-4, 2.5e-4, 1.25e-4):
        moving = Moving(chain, *start)
        for _ in moving.go(dt, round(0.09 / dt)):
            pass
        assert moving.contact.tolist() == [1, 0, 0]
        errors.append(np.abs(moving.x - sim.x).max() + np.abs(moving.v - sim.v).max())
        assert moving.stretch <= 3 * dt
        assert abs(moving.lost - sim.lost) <= 10 * dt
    assert errors[-1] <= 5e-3
    assert errors[-1] <= 0.4 * errors[0], errors


# Grounds


def test_a_slide_ground_lets_joints_slide():
    """Along a slope without friction: g sin of the slope (WAW-12.8)."""
    turn = -0.3
    z = (-np.sin(turn), np.cos(turn))
    along = np.array([np.cos(turn), np.sin(turn)])
    chain = make_chain((0.5,), (1, 2), ground=[{"z": z, "mode": "slide"}])
    moving = Moving(chain, [(0, 0), 0.5 * along], None)
    for now in moving.go(1e-3, 500):
        assert np.abs(now.x @ z).max() <= 1e-5
    _near(moving.v @ along, np.full(2, 9.81 * np.sin(0.3) * 0.5), 1e-2)
    assert moving.contact.tolist() == [1, 1]
    stick = Moving(make_chain_like(chain, ground=[{"z": z}]), [(0, 0), 0.5 * along])
    for _ in stick.go(1e-3, 500):
        pass
    assert np.abs(stick.v).max() <= 1e-6


def test_corrections_keep_a_joint_on_the_line_of_its_own():
    """Where it meets a slide ground it is held; below the ground it goes up its line."""
    turn = np.array([np.cos(0.3), np.sin(0.3)])
    chain = make_chain(
        (0.5,), (1, 2), ground=[{"z": (-turn[1], turn[0]), "mode": "slide"}],
        constraints={"kind": ["line", "free"], "s": {0: (1.0, 0.0)}},
    )  # fmt: skip
    x = _repaired(chain, [Vector((0.0, 0.0)), Vector((0.1, 0.6))], [1, 0])
    assert tuple(x[0]) == (0.0, 0.0)
    assert abs(np.hypot(*x[1]) - 0.5) < 0.02
    x = _lifted(chain, [Vector((0.0, -0.1)), Vector((0.1, 0.6))])
    np.testing.assert_allclose(tuple(x[0]), 0.0, atol=1e-16)
    beside = {"kind": ["line", "free"], "s": {0: (-turn[1], turn[0])}}
    below = Vector((0.0, -0.1))
    x = _lifted(make_chain_like(chain, constraints=beside), [below, below])
    assert tuple(x[0]) == tuple(below)


def test_two_half_planes_make_a_corner():
    """A link slides into a corner of two slopes; no joint gets through either."""
    planes = [
        {"z": (0.6, 0.8), "mode": "slide"},
        {"z": (-0.6, 0.8), "mode": "slide"},
    ]
    chain = make_chain((0.6, 0.5), (1, 0.8, 1), ground=planes, k_omega=0.05, k_v=0.3)
    x, v = from_angles(chain, (-0.3, 1.0), (0, 0), (0.3, -0.5), (0, 0))
    moving, modes = Moving(chain, x, v), set()
    for now in moving.go(1e-3, 6000):
        heights = now.x @ np.array([p["z"] for p in planes]).T
        assert heights.min() >= -2e-3 * (1 + np.abs(now.v).max())
        modes |= set(now.contact.tolist())
    assert modes == {0.0, 1.0, 2.0}
    assert np.isfinite(moving.x).all()
    assert np.abs(moving.v).max() <= 0.1
    assert moving.stretch <= 2e-2


# Very many steps

CHAINS = 12


def _world(seed):
    """Return a random chain on the ground, with limits, and a batch of its states."""
    case = random_chain(
        seed, kinds=("free", "free", "guided"), active=0.15, massive=0.3, still=True
    )
    rng, constraints = np.random.default_rng(seed), case.chain.constraints
    n, inner = case.chain.n, range(1, case.chain.n - 1)
    modes = [str(rng.choice(["stick", "slide"])) for _ in range(2)]
    ground = [{"mode": modes[0]}]
    if seed % 3 == 0:
        z0 = (-sum(case.chain.lengths) - 0.3, 0)
        ground.append({"z0": z0, "z": (0.8, 0.6), "mode": modes[1]})
    chain = make_chain_like(
        case.chain,
        constraints={"kind": constraints.kind, "active": constraints.active},
        ground=ground,
        lower={i: -rng.uniform(0.3, 2) for i in inner if rng.uniform() < 0.6},
        upper={i: rng.uniform(0.3, 2) for i in inner if rng.uniform() < 0.6},
        k_omega=0.05,
        k_v=0.05,
    )
    rows = 64
    theta = rng.uniform(-0.3, 0.3, (rows, n - 1))
    theta[:, 0] = rng.uniform(-0.5, 3, rows)
    x, v = from_angles(chain, (0, 0), (0, 0), theta, 0 * theta)
    x = x + [0, 0.2] + [0, 1] * np.maximum(0, -x[..., 1].min(axis=1))[:, None, None]
    return chain, x, v, rng


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "seed",
    [pytest.param(k, marks=[pytest.mark.full] * (k % 2)) for k in range(CHAINS)],
)
def test_very_many_random_steps(seed, full):
    """Random torques on random chains: finite, bounded, whole, above the ground.

    5e4 steps over every second chain, 1e6 over all with --full.
    """
    chain, x, v, rng = _world(seed)
    step, (rows, n) = _build(chain), x.shape[:2]
    contact = limit = np.zeros((rows, n))
    free, most, touched = np.array(chain.constraints.kind) == 0, 0.0, 0
    for _ in range(1303 if full else 131):
        tau = 2 * rng.normal(size=(rows, n))
        tau[:, -1] = 0
        x, v, contact, limit, loss = step(x, v, contact, limit, tau, 2e-3)
        most = max(most, np.abs(v).max())
        touched += (contact > 0).sum() + (limit != 0).sum()
        assert np.isfinite(x).all() and np.isfinite(v).all()
        assert loss.min() >= 0
        assert most <= 30
        assert _stretch(chain, x) <= 0.1
        if free.any():
            assert x[:, free, 1].min() >= -4e-3 * (1 + most)
    assert touched > 0


def test_the_event_driven_simulator_survives_too(full):
    """One in three of the chains, all with --full: 0.4 s with random torques."""
    kinds = set()
    for seed in range(0, CHAINS, 1 if full else 3):
        chain, x, v, rng = _world(seed)
        sim = ChainSimulator(chain, x[0], v[0], dt=2e-3, window=1e-2)
        free = np.array(chain.constraints.kind) == 0
        for _ in range(200):
            sim.step(2 * rng.normal(size=chain.n - 1))
            assert sim.x[free, 1].min(initial=0) >= -1e-3
        assert _stretch(chain, sim.x) <= 1e-4
        assert np.abs(sim.v).max() <= 30
        kinds |= {event.kind for event in sim.events}
    assert {"hit", "release"} <= kinds


def test_rows_of_a_batch_are_single_runs():
    """Each row has its own modes, and bits of the run alone (WAW-15.4)."""
    chain, x, v, rng = _world(5)
    step, n = _build(chain), chain.n
    x, v = x[:8], v[:8]
    contact = limit = np.zeros((8, n))
    singles = [(x[k], v[k], contact[k], limit[k]) for k in range(8)]
    seen = set()
    for _ in range(400):
        tau = rng.normal(size=(8, n))
        tau[:, -1] = 0
        *state, loss = step(x, v, contact, limit, tau, 2e-3)
        x, v, contact, limit = state
        for k in range(8):
            *single, alone = step(*singles[k], tau[k], 2e-3)
            singles[k] = single
            for row, value in zip(state, single, strict=True):
                assert np.array_equal(row[k], value)
            assert loss[k] == alone
            seen.add((*contact[k], *limit[k]))
    assert len(seen) >= 10


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_rounds_and_engines(rounds):
    """However often signs are looked for: finite; all engines give the same."""
    chain, x, v, _ = _world(0)
    steps = [_build(chain, engine, rounds=rounds) for engine in available()]
    states = [(x[0], v[0], np.zeros(chain.n), np.zeros(chain.n)) for _ in steps]
    for _ in range(60):
        results = [
            step(*s, np.zeros(chain.n), 5e-3)
            for step, s in zip(steps, states, strict=True)
        ]
        states = [tuple(f[:4]) for f in results]
        for other in results[1:]:
            for got, wanted in zip(other, results[0], strict=True):
                _near(got, wanted, 1e-8)
    assert states[0][2].any()


@pytest.mark.parametrize(
    "option", [{"window": 0.0}, {"window": -5.0}, {"window": np.inf}, {"rounds": -1}]
)
def test_options_out_of_range_are_refused(option):
    """A window of 0 would divide by zero, a negative one would let errors grow."""
    (name,) = option
    with pytest.raises(dyn.UnsupportedError, match=f"option {name} is .*; valid: "):
        _build(_world(0)[0], **option)
    with pytest.raises(dyn.ModelError, match=f"planar_chain: {name} is .*; valid: "):
        replace(TASKS["planar_chain"], **option)
