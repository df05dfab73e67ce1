"""Planar chains in time: reference trajectories, order, events, modes, drift."""

from itertools import product

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.planar import (
    ChainState,
    from_angles,
    joint_angles,
    make_chain,
    make_chain_like,
)
from dyn_core.planar.chain.modes import Key, Latch
from dyn_core.planar.chain.simulator import ChainSimulator
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_plugins.planar._testing.chains import (
    angle_rows,
    dense_accelerations,
    forces,
    random_chain,
)
from dyn_plugins.planar._testing.references import reference

EXACT = TOLERANCES["exact"]
PRINTED = 1e-11  # values printed with 13 digits
ENGINES = pytest.mark.parametrize("engine", available())


def _near(got, wanted, relative=EXACT):
    assert scaled_error(got, wanted) <= relative, (got, wanted)


def _numbers(text, n):
    return np.array(
        text.replace("[", " ").replace("]", " ").replace(",", " ").split(), float
    ).reshape(n, 2)


def _stretch(chain, x):
    return np.linalg.norm(np.diff(x, axis=-2), axis=-1) - chain.lengths


def _kinds(sim):
    return [event.kind for event in sim.events]


# Section K: trajectories

AS_PRINTED = {"scheme": "quantum", "window": np.inf, "halve_above": None}
LIVELY = reference("REF-2")
TORQUES = (1.5, -0.4, 0.2)
TRAJ1 = {
    None: (
        "[0, 0]  [0.4744894926756, -0.1568035963471]  [0.8393530388987, 0.007658002199849]  [1.134274379826, 0.06538887081152]",
        "[0, 0]  [0.06522372826764, 0.2124451100857]  [0.3861641504158, -0.4757477259791]  [0.2032845802128, 0.5163459726352]",
        [-0.0002724277299513, 0.0002162225087233, 0.0005186359026358],
    ),
    0.05: (
        "[0, 0]  [0.4746894419594, -0.1568385121227]  [0.8394503509631, 0.00762984706249]  [1.13400507651, 0.06538001248392]",
        "[0, 0]  [0.0704008005639, 0.2135660364492]  [0.3867633866743, -0.4777270824684]  [0.1939594421738, 0.5155379945993]",
        [-7.161993686022e-05, 0.0001254327211926, 0.0001625691992663],
    ),
}
EXACT_X = "[0, 0]  [0.4747635122162, -0.1568426200628]  [0.8392975776306, 0.007823451586713]  [1.133734412297, 0.06532954162366]"
EXACT_V = "[0, 0]  [0.07090370479648, 0.2146259218626]  [0.3819451612669, -0.4739506956749]  [0.1891464734977, 0.5131975405941]"


@ENGINES
@pytest.mark.parametrize("window", TRAJ1)
def test_trajectory_1(window, engine):
    """Ten steps of a pendulum of three links, by the simulator and by the step."""
    x, v, drift = TRAJ1[window]
    chain = LIVELY.chain
    sim = ChainSimulator(
        chain,
        LIVELY.x,
        LIVELY.v,
        dt=0.01,
        window=np.inf if window is None else window,
        scheme="quantum",
        halve_above=None,
        engine=engine,
    )
    step = dyn.solver("chain_quantum").build(
        chain, engine=engine, window=np.inf if window is None else window
    )
    state = LIVELY.x, LIVELY.v
    for _ in range(10):
        sim.step(TORQUES)
        state = step(*state, (*TORQUES, 0), 0.01)
    for got in (sim.state, state):
        _near(got[0], _numbers(x, 4), PRINTED)
        _near(got[1], _numbers(v, 4), PRINTED)
        _near(_stretch(chain, got[0]), drift, PRINTED)
    assert sim.t == pytest.approx(0.1)
    assert not sim.events


def _moved(name, dt, steps):
    step = dyn.solver(name).build(LIVELY.chain, engine="native", window=np.inf)
    state = LIVELY.x, LIVELY.v
    for _ in range(steps):
        state = step(*state, (*TORQUES, 0), dt)
    return state


def test_trajectory_1_exactly():
    """Runge and Kutta in 2000 steps come to the exact solution (TRAJ-1x)."""
    x, v = _moved("chain_rk4", 5e-5, 2000)
    _near(x, _numbers(EXACT_X, 4), 1e-11)
    _near(v, _numbers(EXACT_V, 4), 1e-11)


def test_orders_of_the_steps():
    """The quantum is of order 1 as printed, Euler too, Runge and Kutta of 4 (WAW-3.1)."""
    wanted = _numbers(EXACT_V, 4)
    for name, steps, order in (
        ("chain_quantum", (10, 20, 40, 80, 160), 1),
        ("chain_semi_implicit", (40, 80, 160, 320), 1),
        ("chain_rk4", (10, 20, 40), 4),
    ):
        errors = [np.abs(_moved(name, 0.1 / k, k)[1] - wanted).max() for k in steps]
        ratios = np.array(errors[:-1]) / errors[1:]
        assert np.abs(np.log2(ratios) - order).max() <= (0.08 if order == 1 else 0.3), (
            name,
            errors,
        )
        if name == "chain_quantum":
            printed = [1.41e-2, 7.13e-3, 3.58e-3, 1.80e-3, 8.99e-4]
            assert np.abs(np.array(errors) / printed - 1).max() < 5e-3
            assert np.abs(ratios - 2).max() <= 0.1


@pytest.mark.parametrize("name", ["chain_quantum", "chain_rk4"])
def test_free_fall_is_exact(name):
    """A chain that does not turn falls as a point does, to the last digits."""
    case = random_chain(2, n=5, kinds=("free",), active=0.0)
    chain = make_chain_like(case.chain, k_v=0, k_omega=0)
    step = dyn.solver(name).build(chain, engine="graph")
    x, v = case.x, np.tile([0.4, 1.5], (5, 1))
    for _ in range(100):
        x, v = step(x, v, np.zeros(5), 0.01)
    _near(x, case.x + [0.4, 1.5 - 9.81 / 2], 1e-13)
    _near(v, np.tile([0.4, 1.5 - 9.81], (5, 1)), 1e-13)


FALLING = make_chain((0.5, 0.5), (0.4, 0.6, 0.3), ground=[{}])


def test_trajectory_2():
    """A hit: its time, rewind, impulse, the rest of the quantum (WAW-7.3)."""
    sim = ChainSimulator.at_angles(
        FALLING, (1, 0.6), (0.5, -0.4), (0, 0.03), (0.2, -1), dt=0.04, **AS_PRINTED
    )
    seen = []
    sim.on_event = lambda event: seen.append((event, sim.state))
    sim.step()
    assert _kinds(sim) == ["hit"]
    ((event, after),) = seen
    assert event.joint == 0 and event.kind == "hit"
    _near(0.04 - event.time, 0.01343634434033, PRINTED)
    _near(event.loss, 0.6854609509687, PRINTED)
    assert sim.lost == event.loss
    _near(
        after.x,
        [
            [0.005328629363412, 0],
            [0.2698649741213, 0.4242883089846],
            [0.2539487195969, 0.9240348883076],
        ],
        PRINTED,
    )
    _near(
        after.v,
        [
            [0, 0],
            [0.6609235989612, -0.4120679915104],
            [-0.08236354061639, -0.4357439900262],
        ],
        PRINTED,
    )
    _near(
        sim.x,
        [
            [0.005328629363412, 0],
            [0.2791736049829, 0.4183555663617],
            [0.2528300936931, 0.9176701139747],
        ],
        PRINTED,
    )
    _near(
        sim.v,
        [
            [0, 0],
            [0.7246662052093, -0.471020811909],
            [-0.08414393722847, -0.5116527380853],
        ],
        PRINTED,
    )
    sim.dt = 0.01
    for _ in range(5):
        sim.step()
    _near(
        sim.x,
        [
            [0.005328629363412, 0],
            [0.3207697404601, 0.3884125821963],
            [0.2483756685251, 0.8833992255524],
        ],
        PRINTED,
    )
    _near(
        sim.v,
        [
            [0, 0],
            [0.9297115377563, -0.7388361124425],
            [-0.09392836926713, -0.8803193039059],
        ],
        PRINTED,
    )
    assert _kinds(sim) == ["hit"]


def test_trajectory_3():
    """A limit is hit and let go at once (WAW-12.4, 12.5)."""
    chain = make_chain(
        (0.5, 0.4),
        (1, 0.7, 0.5),
        constraints={"kind": {0: "fixed"}},
        lower={1: -0.1},
        upper={1: 2},
    )
    sim = ChainSimulator.at_angles(
        chain, (-0.5, 0.2), (0.3, -4), dt=0.005, **AS_PRINTED
    )
    seen = []
    sim.on_event = lambda event: seen.append((event, sim.state))
    for k in range(40):
        sim.step()
        if k == 17:
            assert _kinds(sim) == ["hit", "release"]
            _near(
                sim.x,
                [
                    [0, 0],
                    [0.4290053591261, -0.2568928121126],
                    [0.7500792895442, -0.4956737006917],
                ],
                PRINTED,
            )
            _near(
                sim.v,
                [
                    [0, 0],
                    [-0.517970353319, -0.8694985757088],
                    [-0.9850296553683, -1.499864818736],
                ],
                PRINTED,
            )
        elif k < 17:
            assert not sim.events
    assert len(sim.events) == 2
    event, after = seen[0]
    assert event.message == "angle 1 at its lower limit"
    _near(event.time, 0.08705161527023, PRINTED)
    _near(event.loss, 0.08865497749012, PRINTED)
    _near(
        after.x,
        [
            [0, 0],
            [0.4305052704709, -0.2543587469926],
            [0.7529541428662, -0.4912725651342],
        ],
        PRINTED,
    )
    _near(
        after.v,
        [
            [0, 0],
            [-0.4994757958546, -0.8494528857416],
            [-0.965091231435, -1.485590581998],
        ],
        PRINTED,
    )
    _near(
        sim.x,
        [
            [0, 0],
            [0.3252690691031, -0.3814091669836],
            [0.5934405030681, -0.678438829578],
        ],
        PRINTED,
    )
    _near(
        sim.v,
        [
            [0, 0],
            [-1.428768503288, -1.245877679721],
            [-1.933696984897, -1.701613859281],
        ],
        PRINTED,
    )
    _near(sim.theta, [-0.8646739057161, 0.02826170395215], PRINTED)
    _near(sim.omega, [-3.791124170169, 2.090667932137], PRINTED)


# Times of impacts

POINT = make_chain((), (1.0,), gravity=0, ground=[{}])


def _landing(height, speed, pull, dt, push=0.1):
    """Return the simulator of a point after one step, and the time since its hit."""
    sim = ChainSimulator(POINT, [(0, height)], [(0.3, speed)], dt=dt, halve_above=None)
    sim.on_event = lambda event: setattr(sim, "at_hit", sim.state)
    sim.step(forces=[(push, pull)])
    hits = [event for event in sim.events if event.kind == "hit"]
    return sim, dt - hits[0].time if hits else None


def test_time_of_impact():
    """The printed example; no, upward and downward acceleration; grazing (WAW-7.2)."""
    sim, eps = _landing(0.02, -1.5, -9.81, 0.03)
    _near(eps, 0.0172022362796, 1e-13)
    assert abs(sim.x[0, 1]) <= 1e-15
    assert not sim.v.any()
    sim, eps = _landing(0.02, -1.5, 0.0, 0.03)
    _near(eps, 0.03 - 0.02 / 1.5, 1e-15)
    for pull in (8.0, 1e-9, -1e-9, -50.0):
        sim, eps = _landing(0.02, -1.5, pull, 0.03)
        t = 0.03 - eps
        assert abs(0.02 - 1.5 * t + pull * t * t / 2) <= 1e-15
        assert abs(sim.at_hit.x[0, 1]) <= 1e-15
    # Deep in, and on the way out again; a little more and it does not touch.
    sim, eps = _landing(0.02, -1.5, 55.0, 0.03)
    assert eps == pytest.approx(0.03 - (1.5 - np.sqrt(2.25 - 2.2)) / 55, abs=1e-12)
    assert _landing(0.02, -1.5, 60.0, 0.03)[1] is None


def test_grazing():
    """A tangent path, above, at, and just below the ground; at rest on it."""
    for depth, hit in ((-1e-9, False), (0.0, False), (1e-9, True)):
        speed, pull, dt = -1.0, 50.0, 0.02  # lowest at the end of the step
        sim, eps = _landing(0.01 - depth, speed, pull, dt)
        assert (eps is not None) == hit
        assert np.isfinite(sim.x).all()
        assert sim.x[0, 1] >= -1e-9
    sim, _ = _landing(0.0, 0.0, -9.81, 0.01)
    assert sim.modes.on == {Key(1, 0, 0)}
    assert not sim.x.any() and not sim.v.any()  # what touches, rests
    assert sim.lost == pytest.approx(0.5 * 0.3**2)


# Detachment


def test_a_resting_chain_stays():
    chain = make_chain((0.5, 0.4), (0.4, 0.6, 0.3), ground=[{}])
    x = np.array([(0, 0), (0.3, 0.4), (0.3 + 0.4, 0.4)])
    x[2] = x[1] + np.array([0.0, -0.4])
    sim = ChainSimulator(chain, x, window=5e-3)
    for _ in range(200):
        sim.step()
    assert _kinds(sim) == [] or set(_kinds(sim)) <= {"dropped"}
    assert np.abs(sim.x - x).max() <= 1e-12
    assert np.abs(sim.v).max() <= 1e-12


@pytest.mark.parametrize("mode", ["stick", "slide"])
def test_release_is_when_the_force_exceeds_the_load(mode):
    """A standing link: its whole weight; after it the joint goes up (WAW-7.4)."""
    chain = make_chain((0.5,), (0.4, 0.6), ground=[{"joints": (0,), "mode": mode}])
    load = 9.81 * 1.0
    for share, leaves in ((0.0, False), (1 - 1e-9, False), (1 + 1e-9, True), (2, True)):
        sim = ChainSimulator(chain, [(0, 0), (0, 0.5)])
        sim.step()
        assert sim.modes.on == {Key(1, 0, 0)}
        sim.step(forces=[(0, share * load), (0, 0)])
        assert bool(sim.modes.on) != leaves
        assert _kinds(sim) == ["release"] * leaves
        assert (sim.v[0, 1] > 0) == leaves
        if share == 2:
            _near(sim.v, np.tile([0, 9.81e-3], (2, 1)), 1e-13)


# Modes that do not fit together

SHUFFLE = np.array([(0, 0), (0.47, 0.78), (-0.1, 0.32)])
GROUND, UPPER = Key(1, 0, 0), Key(0, 1, 1)
PULL = np.array([(0, 0), (0, 0), (56, 49)], float)


def _cycling(mode="stick", **settings):
    c = np.diff(SHUFFLE, axis=0)
    free = make_chain(np.linalg.norm(c, axis=1), (0.4, 6.7, 0.7))
    theta = joint_angles(free, ChainState(SHUFFLE, 0 * SHUFFLE))
    ground = [{"joints": (0,), "mode": mode}]
    chain = make_chain_like(free, ground=ground, upper={1: theta[1]})
    return ChainSimulator(chain, SHUFFLE, **settings)


def _under(sim, *keys):
    """Return accelerations and what they take while some constraints are on."""
    sim.modes.on = set()
    for key in keys:
        sim.modes.add(key, sim.x)
    sim._extra, sim._tau = PULL, np.zeros(3)
    return sim._accelerations(sim.x, sim.v, sim.theta)


def test_modes_that_cycle():
    """No set of modes is consistent: the largest is kept, and reported (WAW-12.8)."""
    sim = _cycling()
    solution = _under(sim)
    assert solution.a[0, 1] == pytest.approx(-2.14374605922, rel=PRINTED)
    solution = _under(sim, GROUND)
    assert solution.alpha[1] == pytest.approx(3.06807666482, rel=PRINTED)
    assert -solution.reaction[0, 1] == pytest.approx(2.57355816187, rel=PRINTED)
    solution = _under(sim, GROUND, UPPER)
    assert -solution.reaction[0, 1] == pytest.approx(1.45524471028, rel=PRINTED)
    assert solution.tau_w[1] == pytest.approx(-1.15004557941, rel=PRINTED)
    solution = _under(sim, UPPER)
    assert solution.tau_w[1] == pytest.approx(0.390818961076, rel=PRINTED)
    for start in ((), (GROUND,), (UPPER,), (GROUND, UPPER)):
        sim = _cycling()
        _under(sim, *start)
        settled = sim._consistent_modes()
        assert sim.modes.on == {GROUND, UPPER}
        (cycle,) = [event for event in sim.events if event.kind == "mode_cycle"]
        assert "joint 0 on ground 0" in cycle.message
        assert "angle 1 at its upper limit" in cycle.message
        _near(settled.a, _under(sim, GROUND, UPPER).a, 0)
    sim = _cycling()
    for _ in range(20):
        sim.step(forces=PULL)
        assert sim.x[0, 1] >= -1e-12
        assert np.isfinite(sim.x).all()
    assert set(_kinds(sim)) == {"mode_cycle", "release"}
    assert len(sim.events) < 200


def test_cycling_ends_where_it_may_slide():
    """Sliding, (slide, on) is the one consistent set (WAW-12.8)."""
    for start in ((), (GROUND,), (UPPER,), (GROUND, UPPER)):
        sim = _cycling("slide")
        _under(sim, *start)
        solution = sim._consistent_modes()
        assert sim.modes.on == {GROUND, UPPER}
        _near(solution.a[0], [1.86473386543, 0], PRINTED)
        assert solution.reaction[0, 1] == pytest.approx(4.09778375391, rel=PRINTED)
        assert solution.tau_w[1] == pytest.approx(-0.663475330352, rel=PRINTED)
        assert "mode_cycle" not in _kinds(sim)


def _touching(seed):
    """Return a simulator at rest in which joints touch ground and angles limits."""
    case = random_chain(
        seed, n=2 + seed % 5, kinds=("free", "free", "guided"), active=0.0, still=True
    )
    chain, rng = case.chain, np.random.default_rng(seed)
    theta, ground = joint_angles(chain, (case.x, case.v)), []
    for i in np.flatnonzero(rng.uniform(size=chain.n) < 0.5).tolist():
        turn = rng.uniform(-3, 3)
        z = np.cos(turn), np.sin(turn)
        ground.append({"z0": case.x[i], "z": z, "joints": (i,), "mode": "slide"})
    bounds = {"lower": {}, "upper": {}}
    for i in range(1, chain.n - 1):
        side = rng.choice(["", "lower", "upper"])
        if side:
            bounds[side][i] = theta[i]
    chain = make_chain_like(chain, ground=ground, **bounds)
    return ChainSimulator(chain, case.x, engine="plain"), rng.normal(
        size=(chain.n, 2)
    ) * 5


def _by_enumeration(sim, F):
    """Return all sets of modes that fit: gaps do not close, nothing pulls (an LCP)."""
    chain, keys, consistent_sets = sim.chain, sim.modes.keys, []
    constraints, still = chain.constraints, np.zeros((chain.n, 2))
    for on in product((False, True), repeat=len(keys)):
        kind, active = np.array(constraints.kind), np.zeros(chain.n)
        s = np.array(constraints.s)
        for key, engaged in zip(keys, on, strict=True):
            if engaged and key.rank:
                kind[key.joint], s[key.joint] = 1.0, sim.modes.plane(key)[1]
            elif engaged:
                active[key.joint] = 1.0
        modes = {"kind": kind, "s": s, "a_w": still, "active": active}
        dense = dense_accelerations(
            chain, sim.x, still, F, **modes, alpha_w=np.zeros(chain.n)
        )
        if not (dense.compatible and dense.independent):
            return None
        alpha = np.einsum("ijk,jk->i", angle_rows(chain, sim.x), dense.a)
        sizes = [
            sim.modes.push(key, dense.support, dense.tau)
            if engaged
            else sim.modes.rate(key, dense.a, alpha)
            for key, engaged in zip(keys, on, strict=True)
        ]
        if min(sizes, default=1.0) > 1e-9:
            consistent_sets.append(
                {key for key, engaged in zip(keys, on, strict=True) if engaged}
            )
    return consistent_sets


def test_slide_modes_are_those_of_an_lcp():
    """The set found by switching is the one of all sets that fits (WAW-15.3)."""
    same = 0
    for seed in range(60):
        sim, F = _touching(seed)
        if not 1 <= len(sim.modes.keys) <= 5:
            continue
        sim._extra, sim._tau = F, np.zeros(sim.chain.n)
        weights = forces(sim.chain, sim.x, sim.v)
        sets = _by_enumeration(sim, F + weights)
        if sets is None:
            continue  # modes that exclude each other
        assert len(sets) == 1
        sim._consistent_modes()
        assert sim.modes.on == sets[0], seed
        assert "mode_cycle" not in _kinds(sim)
        same += 1
    assert same >= 35


# Clatter


def test_a_latch_stops_ever_faster_hits():
    """Times 1 - 2**-k: let go five times, then held to the end of the window."""
    latch = Latch(max_releases=5, window=1.0)
    times = [1 - 2.0**-k for k in range(40)]
    assert [latch.release("a", t) for t in times] == [True] * 5 + [False] * 35
    assert latch.holds("a", 0.999) and not latch.holds("a", 1.0)
    assert not latch.holds("b", 0.999) and latch.release("b", 0.999)
    assert latch.release("a", 1.01)  # the first of the five is out of the window
    slow = Latch(max_releases=5, window=1.0)
    assert all(slow.release("a", 0.3 * k) for k in range(100))
    slow.keep("a", 40.0)
    assert not slow.release("a", 39.0)


def test_the_chain_of_figure_5_falls_and_rests():
    """A joint near the ground, an angle pressed to its limit: 2 s, few events (12.9)."""
    chain = make_chain(
        (0.5, 0.5, 0.5, 0.5),
        (0.5, 0.5, 0.5, 0.5, 0.5),
        ground=[{}],
        lower={2: -0.5},
        k_omega=0.02,
    )
    sim = ChainSimulator.at_angles(
        chain, (0.9, 0.3, -0.49, -0.3), x0=(0, 0.02), dt=1e-3, window=5e-3
    )
    gained, per_step = [], []
    start = sum(sim.energy)
    for _ in range(2000):
        before = len(sim.events), sim.lost
        sim.step((0, 0, -1.0, 0))
        per_step.append(len(sim.events) - before[0])
        gained.append(before[1] - sim.lost)
        assert sim.x[:, 1].min() >= -1e-6
        assert sim.theta[2] >= -0.5 - 1e-6
    assert max(gained) <= 0 and sim.lost > 1
    assert all(event.loss >= 0 for event in sim.events)
    assert max(per_step) <= 30
    assert 3 <= len(sim.events) <= 100
    messages = {event.message for event in sim.events}
    assert {"angle 2 at its lower limit", "joint 0 on ground 0"} <= messages
    assert np.abs(_stretch(chain, sim.x)).max() <= 1e-5
    assert sum(sim.energy) < start


# Drift


def test_a_stretched_link_comes_back():
    """The double pole by its printed numbers; the matrix of the errors (WAW-12.10)."""
    chain = make_chain((1.0,), (1, 0.5), gravity=0)
    step = dyn.solver("chain_quantum").build(chain, window=0.005)
    x, v = np.array([(0, 0), (1.01, 0)]), np.zeros((2, 2))
    sim = ChainSimulator(chain, x, dt=0.001, window=0.005, scheme="quantum")
    h = 0.2
    errors, pole = np.array([0.01, 0.0]), [[1 - h * h / 2, 1 - h], [-h * h, 1 - 2 * h]]
    printed = {
        1: 0.0098,
        5: 0.00702673026652,
        10: 0.00368749019033,
        30: 0.000172395998740,
    }
    for k in range(1, 31):
        x, v = step(x, v, np.zeros(2), 0.001)
        sim.step()
        errors = np.array(pole) @ errors
        for place in (x, sim.x):
            error = place[1, 0] - place[0, 0] - 1
            # The source's e counts the speed along the link too.
            assert error == pytest.approx(errors[0], abs=1e-5)
            assert error == pytest.approx(printed.get(k, error), abs=1e-13)


def test_held_angles_and_points_come_back():
    """A limit that is overstepped and held, a joint in the ground that is held."""
    chain = make_chain(
        (0.5, 0.4), (1, 0.7, 0.5), gravity=0, ground=[{}], upper={1: 0.5}
    )
    sim = ChainSimulator.at_angles(chain, (0.8, 0.4), x0=(0, 1), scheme="quantum")
    state = from_angles(chain, (0, -0.001), (0, 0), (0.8, 0.501), (0, 0))
    (sim.x, sim.v), sim.theta = state, np.array([0.8, 0.501])
    sim.modes.add(GROUND, sim.x)
    sim.modes.add(UPPER, sim.x)
    sim.latch.keep(GROUND, 1.0)
    sim.latch.keep(UPPER, 1.0)
    errors, pole = np.array([1e-3, 0.0]), np.array([[1 - 0.02, 0.8], [-0.04, 0.6]])
    for _ in range(30):
        sim.step()
        errors = pole @ errors
        assert -sim.x[0, 1] == pytest.approx(errors[0], abs=1e-12)
        assert sim.theta[1] - 0.5 == pytest.approx(errors[0], rel=0.02, abs=1e-6)


def test_the_loss_of_an_impact_is_in_one_of_its_hits():
    """A level chain falls flat: all joints hit at once, and the losses add up."""
    x = [[0.0, 0.3], [0.5, 0.3], [1.0, 0.3]]
    sim = ChainSimulator(FALLING, x, np.zeros((3, 2)), dt=0.01)
    while not sim.lost:
        sim.step((0.0, 0.0, 0.0))
    hits = [event for event in sim.events if event.kind == "hit"]
    assert len(hits) == 3
    assert sim.lost == pytest.approx(1.3 * 9.81 * 0.3, rel=1e-3)
    assert sum(event.loss for event in hits) == sim.lost


def test_bad_times_are_refused():
    """Windows within dt, steps that are none; a warning below five dt."""
    chain, x = make_chain((1.0,), (1, 0.5)), [(0, 0), (1, 0)]
    for window in (1e-3, 0.5e-3, 0.0, -1.0, np.nan):
        with pytest.raises(dyn.SettingError, match="window must be > dt") as caught:
            ChainSimulator(chain, x, dt=1e-3, window=window)
        assert isinstance(caught.value, ValueError)
    with pytest.raises(dyn.SettingError, match=r"window must be > 1.207 dt"):
        ChainSimulator(chain, x, window=1.2e-3, scheme="semi_implicit")
    for dt in (0.0, -1e-3, np.nan, np.inf):
        with pytest.raises(dyn.SettingError, match="dt must be > 0"):
            ChainSimulator(chain, x, dt=dt)
    for scheme in ("quantum", "semi_implicit"):
        with pytest.warns(RuntimeWarning, match="below 5 dt"):
            ChainSimulator(chain, x, dt=1e-3, window=4e-3, scheme=scheme)
    ChainSimulator(chain, x, dt=1e-3, window=4e-3)


def test_a_hundred_thousand_steps_keep_links():
    """A pendulum, by the compiled step; the scheme itself gains energy (WAW-12.10)."""
    for dt, drag in ((1e-4, 0.0), (1e-3, 0.05)):
        chain = make_chain(
            (0.8,), (1, 0.6), k_v=(0, drag), constraints={"kind": {0: "fixed"}}
        )
        step = dyn.solver("chain_quantum").build(chain, engine="native", window=5 * dt)
        x, v = from_angles(chain, (0, 0), (0, 0), (0.7,), (0.0,))
        none, worst = np.zeros(2), 0.0
        for k in range(100_000):
            x, v = step(x, v, none, dt)
            if k % 10 == 0:
                worst = max(worst, abs(np.hypot(*x[1]) - 0.8))
        assert worst <= 1e-5
        assert np.isfinite(x).all()


# Halving


def _almost_straight(height, **settings):
    """Return a chain between two fixed joints, its middle nearly on their line."""
    constraints = {"kind": {0: "fixed", 2: "fixed"}}
    chain = make_chain((1, 1), (1, 1, 1), gravity=0, constraints=constraints)
    x = [(0, 0), (0.9999, height), (1.9998, 0)]
    with pytest.warns(RuntimeWarning, match="below 5 dt"):
        settings = {"dt": 0.02, "window": 0.05, "scheme": "quantum", **settings}
        return ChainSimulator(chain, x, **settings)


def test_halving():
    """Small errors, large accelerations: the printed numbers of Figure 6 (WAW-12.11)."""
    for height, wanted in (
        (0.05, -9.20532397115),
        (0.005, 6.99929375820),
        (0.0005, 79.8920099947),
    ):
        sim = _almost_straight(height, halve_above=None)
        sim._tau = np.zeros(3)
        solution = sim._accelerations(sim.x, sim.v, sim.theta)
        assert solution.a[1, 1] == pytest.approx(wanted, rel=1e-9)
    for halve_above, wanted, error in (
        (None, 1.5978, 5e-5),
        (1.0, 0.0927, 5e-5),
        (0.1, 0.157, 5e-4),
    ):
        sim = _almost_straight(0.0005, halve_above=halve_above)
        sim.step()
        assert sim.v[1, 1] == pytest.approx(wanted, abs=error)
        assert _kinds(sim) == ["step_halved"] * (halve_above is not None)
        if halve_above is not None:
            for _ in range(49):
                sim.step()
            assert sim.t == pytest.approx(1)
            assert np.abs(_stretch(sim.chain, sim.x)).max() <= 1e-9
    fine = _almost_straight(0.0005, halve_above=None)
    fine.dt = 0.02 / 500
    for _ in range(500):
        fine.step()
    assert fine.v[1, 1] == pytest.approx(0.1512, abs=1e-4)


# Errors, reports, states


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_motion_that_diverges_keeps_the_last_good_state():
    """What is not finite names step and joint; the state before stays (WAW-12.11)."""
    sim, states = _almost_straight(0.0005, halve_above=None), []
    message = r"step \d+: the acceleration of joint \d"
    with pytest.raises(dyn.NonFiniteError, match=message):
        for _ in range(50):
            states.append((sim.x, sim.v, sim.t, sim.steps))
            sim.step()
    assert 2 <= len(states) < 50
    for got, wanted in zip((sim.x, sim.v, sim.t, sim.steps), states[-1], strict=True):
        assert np.array_equal(got, wanted)
    assert np.isfinite(sim.x).all() and np.isfinite(sim.v).all()


def test_inputs_that_are_not_finite_are_refused():
    chain, x = make_chain((0.5, 0.5), (1, 1, 1)), np.array([(0, 0), (0.5, 0), (1, 0)])
    nan = x * [1, np.nan]
    with pytest.raises(dyn.NonFiniteError, match="x is not finite"):
        ChainSimulator(chain, nan)
    with pytest.raises(dyn.NonFiniteError, match="v is not finite"):
        ChainSimulator(chain, x, nan)
    with pytest.raises(dyn.ShapeError, match="x"):
        ChainSimulator(chain, x[:2])
    with pytest.raises(dyn.SettingError, match="joints 1 and 2 are at one place"):
        ChainSimulator(chain, x[[0, 1, 1]])
    sim = ChainSimulator(chain, x)
    sim.step()
    before = sim.state
    with pytest.raises(dyn.NonFiniteError, match="tau is not finite"):
        sim.step((np.nan, 0))
    with pytest.raises(dyn.ShapeError, match="tau"):
        sim.step((0, 0, 0, 0))
    for forces_ in (nan, lambda t, state: nan):
        with pytest.raises(dyn.NonFiniteError, match="forces is not finite at joint 0"):
            sim.step(forces=forces_)
    with pytest.raises(ZeroDivisionError):
        sim.step(forces=lambda t, state: 1 / (t - t) if t > 1e-3 else PULL[:3])
    for got, wanted in zip(sim.state, before, strict=True):
        assert np.array_equal(got, wanted)
    assert sim.t == pytest.approx(1e-3) and sim.steps == 1


def _eventful(**settings):
    chain = make_chain(
        (0.5, 0.5, 0.4),
        (0.4, 0.6, 0.3, 0.3),
        ground=[{}],
        lower={1: -0.2, 2: -1.0},
        k_omega=0.01,
    )
    return ChainSimulator.at_angles(
        chain,
        (1, 0.3, -0.2),
        (0.5, -3, 1),
        (0, 0.03),
        (0.2, -1),
        dt=2e-3,
        window=1e-2,
        **settings,
    )


def test_snapshots_reproduce_bits():
    """Modes, latches, angles and counters too; in another simulator as well."""
    sim = _eventful()
    saved = None
    for k in range(150):
        if k == 60:
            saved = sim.snapshot()
        sim.step((0.1, 0.2, -0.3))
    end = sim.snapshot()
    other = _eventful()
    for again in (sim, other):
        again.restore(saved)
        assert again.t == pytest.approx(0.12)
        for _ in range(90):
            again.step((0.1, 0.2, -0.3))
        for name in ("x", "v", "theta"):
            assert np.array_equal(getattr(again, name), end[name]), name
        assert (again.t, again.lost, again.steps) == (
            end["t"],
            end["lost"],
            end["steps"],
        )
        assert again.events == end["events"]
        assert again.modes.on == end["modes"].on
    assert {"hit", "release"} <= set(_kinds(sim))
    assert 60 < saved["steps"] + 1 < 150 and end["events"] != saved["events"]


def test_events_are_told():
    """Each once, in order, as they are kept; only the latest are kept."""
    events = []
    sim = _eventful(on_event=events.append)
    for _ in range(150):
        sim.step((0.1, 0.2, -0.3))
    assert events == sim.events and len(events) >= 3
    assert [event.time for event in events] == sorted(event.time for event in events)
    hits = [event for event in events if event.kind == "hit"]
    assert sim.lost == pytest.approx(sum(event.loss for event in hits), rel=1e-9)
    short = _eventful(keep=2)
    for _ in range(150):
        short.step((0.1, 0.2, -0.3))
    assert short.events == events[-2:]


def test_user_forces():
    """An array, or a function of time and state; gravity by hand is gravity."""
    chain = make_chain((0.5, 0.4), (1, 0.7, 0.5), constraints={"kind": {0: "fixed"}})
    loose = make_chain_like(chain, gravity=0)
    pull = np.outer(chain.masses, (0, -9.81))
    sims = [
        ChainSimulator.at_angles(c, (0.3, 0.2), (1, -2)) for c in (chain, loose, loose)
    ]
    seen = []

    def by_function(t, state):
        seen.append(t)
        assert state.x.shape == state.v.shape == (3, 2)
        return pull

    for _ in range(20):
        for sim, more in zip(sims, (None, pull, by_function), strict=True):
            sim.step(forces=more)
    for sim in sims[1:]:
        _near(sim.x, sims[0].x, 1e-13)
        _near(sim.v, sims[0].v, 1e-13)
    assert min(seen) == 0 and max(seen) == pytest.approx(0.02)


def test_angles_unwrap_in_time():
    """A link that turns on and on has an angle that grows."""
    chain = make_chain((0.5,), (1, 1), gravity=0, constraints={"kind": {0: "fixed"}})
    sim = ChainSimulator.at_angles(chain, (0.0,), (20.0,), dt=1e-3, window=5e-3)
    turned = 0.0
    for _ in range(1000):
        turned += 1e-3 * sim.omega[0]
        sim.step()
    assert turned > 6 * np.pi
    assert sim.theta[0] == pytest.approx(turned, abs=0.02)


def test_energy_falls_by_what_impacts_take():
    """Just what Carnot says at each hit; kinetic and potential energy elsewhere."""
    sim = _eventful()
    masses = np.array(sim.chain.masses)
    kinetic = 0.5 * (masses * (sim.v**2).sum(axis=1)).sum()
    assert sim.energy == pytest.approx((kinetic, 9.81 * masses @ sim.x[:, 1]))
    chain = make_chain_like(sim.chain, k_omega=0)
    fine = ChainSimulator(chain, sim.x, sim.v, dt=1e-4, window=5e-4)
    start = sum(fine.energy)
    for _ in range(800):
        fine.step()
    assert fine.lost > 0.5
    assert sum(fine.energy) + fine.lost == pytest.approx(start, abs=2e-3 * start)


# Impacts that cannot let go, corners


def test_what_would_go_on_into_the_ground_is_kept():
    """A stick impact that would pull, of a joint that goes down: it stays (WAW-7.5)."""
    chain = make_chain((1.0,), (0.5, 2.0), gravity=0, ground=[{"joints": (0,)}])
    sim = ChainSimulator.at_angles(
        chain, (0.8,), (0.0,), (0, 0.01), (2.0, -0.1), dt=0.01
    )
    kind = np.array([2.0, 0.0])
    impact = dyn.solver("chain_impact").build(chain, inputs=["kind"])
    pulls = impact(sim.x, sim.v, -sim.v, np.zeros(2), kind)
    assert pulls.impulse[0, 1] < -0.1
    for _ in range(30):
        sim.step()
        assert sim.x[0, 1] >= -1e-12
    assert _kinds(sim)[0] == "hit"
    assert "event_limit" not in _kinds(sim)


def test_a_corner_holds_what_slides_into_it():
    """Two sliding half-planes: each bears its share, no joint gets through."""
    planes = [{"z": (0.6, 0.8), "mode": "slide"}, {"z": (-0.6, 0.8), "mode": "slide"}]
    chain = make_chain((0.6, 0.5), (1, 0.8, 1), ground=planes, k_omega=0.05, k_v=0.3)
    sim = ChainSimulator.at_angles(
        chain, (0.3, -0.5), x0=(-0.3, 1.0), dt=2e-3, window=1e-2
    )
    normals, both = np.array([p["z"] for p in planes]), False
    for _ in range(1500):
        sim.step()
        assert (sim.x @ normals.T).min() >= -1e-6
        joints = [key.joint for key in sim.modes.on if key.rank]
        both |= len(joints) > len(set(joints))
    assert both
    assert np.abs(sim.v).max() <= 1e-2
    assert len(sim.events) < 1000
    assert np.abs(_stretch(chain, sim.x)).max() <= 1e-3
