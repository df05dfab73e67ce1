"""Schemes of the event-driven simulator: energy, order, hits, settings, starts."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.planar import from_angles, make_chain
from dyn_core.planar.chain.files import load_chain_file, save_chain
from dyn_core.planar.chain.plant import ChainRobot
from dyn_core.planar.chain.schemes import SCHEMES, first_root
from dyn_core.planar.chain.simulator import ChainSimulator
from dyn_core.spatial import Vector
from dyn_plugins.planar import _schemes

HUNG = {"kind": {0: "fixed"}}
LENGTHS, MASSES = [0.5, 0.4], [1.0, 0.7, 0.5]
ANGLES, RATES = [-0.4, 0.9], [1.2, -0.8]
SWING = 6.75  # energy of the start above the lowest place [J]


def _two_links(**parts):
    return make_chain(LENGTHS, MASSES, constraints=HUNG, **parts)


def _worst_change(sim, seconds):
    """Return the largest change of energy, with what impacts took [J]."""
    start, worst = sum(sim.energy) + sim.lost, 0.0
    for _ in range(round(seconds / sim.dt)):
        sim.step()
        worst = max(worst, abs(sum(sim.energy) + sim.lost - start))
    return worst


@pytest.mark.parametrize("seconds", [12, pytest.param(100, marks=pytest.mark.full)])
def test_a_chain_that_swings_freely_keeps_its_energy(seconds):
    """By default to 1e-5 of it and more, its links to a micrometre (WAW-3.1, 12.10).

    The whole 100 s run with --full: it is 100 000 steps in Python.
    """
    sim = ChainSimulator.at_angles(_two_links(), ANGLES, RATES)
    assert sim.scheme == "rk4" and sim.window == 5e-3
    assert _worst_change(sim, seconds) <= 1e-5 * SWING
    lengths = np.linalg.norm(np.diff(sim.x, axis=0), axis=1)
    assert np.abs(lengths - LENGTHS).max() <= 1e-6
    assert not sim.events


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_of_arrays_and_of_kernels_are_one(scheme):
    """The simulator's step and that of chain_rk4 and its like, of any accelerations."""
    rng = np.random.default_rng(3)
    x, v, A, B = rng.normal(size=(4, 3, 2))

    def accelerate(x, v, since=0.0):
        return np.sin(A * x) - B * v

    def of_vectors(x, v):
        return [Vector(row) for row in accelerate(np.array(x), np.array(v)).tolist()]

    wanted = SCHEMES[scheme].step(x, v, 0.1, accelerate(x, v), accelerate)
    rows = ([Vector(row) for row in part.tolist()] for part in (x, v))
    traced = getattr(_schemes, scheme)(*rows, 0.1, of_vectors)
    np.testing.assert_allclose(np.array(traced), wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("scheme", "most"), [("rk4", 1e-6), ("semi_implicit", 1e-2), ("quantum", np.inf)]
)
def test_energy_of_each_scheme(scheme, most):
    """One second at most: 1e-6, 1 % of it; the source's quantum gains more than both."""
    sim = ChainSimulator.at_angles(_two_links(), ANGLES, RATES, scheme=scheme)
    worst = _worst_change(sim, 4.0)
    assert worst <= most * SWING
    assert scheme != "quantum" or worst > 0.05 * SWING


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "parts",
    [
        {"lower": {1: -0.5}, "upper": {1: 2.0}},
        {"lower": {0: -2.0, 1: -0.5}, "upper": {0: -0.2, 1: 1.0}},
        {"ground": [{"z0": (0, -0.6)}]},
        {"ground": [{"z0": (0, -0.6), "mode": "slide"}]},
    ],
    ids=["limit", "limits", "stick", "slide"],
)
def test_energy_with_events_is_what_impacts_leave(parts):
    """Energy and what impacts took stay together, within 1e-5 (WAW-7.1, 12.12)."""
    sim = ChainSimulator.at_angles(_two_links(**parts), ANGLES, RATES)
    assert _worst_change(sim, 5.0) <= 1e-5 * SWING
    assert sim.lost > 0.1
    assert all(event.loss >= 0 for event in sim.events)
    for key in sim.modes.keys:
        assert sim.modes.gap(key, sim.x, sim.theta) >= -1e-9


@pytest.mark.parametrize(("scheme", "order"), [("rk4", 4), ("semi_implicit", 1)])
def test_orders_of_schemes_in_the_simulator(scheme, order):
    """Errors beside a fine solution fall by 2**order as the step halves."""
    ends = []
    for steps in (20, 40, 80, 1280):
        sim = ChainSimulator.at_angles(
            _two_links(k_omega=0.02), ANGLES, RATES, dt=0.2 / steps, window=np.inf,
            scheme=scheme, halve_above=None,
        )  # fmt: skip
        for _ in range(steps):
            sim.step((0.3, -0.1))
        ends.append(sim.x)
    errors = [np.abs(x - ends[-1]).max() for x in ends[:-1]]
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.abs(rates - order).max() <= 0.3, errors


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_hit_is_met_at_its_time(scheme):
    """A point that falls: t = sqrt(2 h / g) with constant accelerations exactly."""
    point = make_chain((), (1.0,), ground=[{}])
    sim = ChainSimulator(point, [(0, 0.5)], [(0.3, 0)], dt=7e-3, scheme=scheme)
    for _ in range(60):
        sim.step()
    (hit,) = [event for event in sim.events if event.kind == "hit"]
    exact = np.sqrt(2 * 0.5 / 9.81)
    assert abs(hit.time - exact) <= (7e-3 if scheme == "semi_implicit" else 1e-13)
    assert abs(sim.x[0, 1]) <= 1e-15 and np.abs(sim.v).max() <= 1e-15
    if scheme != "semi_implicit":
        assert sim.x[0, 0] == pytest.approx(0.3 * exact, abs=1e-13)


def test_roots_are_those_where_gaps_close():
    """Steep, flat, lifting first, at once; on the far side by 1e-15 at most."""
    for gap, root in (
        (lambda t: 1 - t, 1.0),
        (lambda t: 1e-18 + t * (0.5 - t), 0.5),
        (lambda t: (1 - t) * 1e6, 1.0),
        (lambda t: 0.5 - t**9, 0.5 ** (1 / 9)),
        (lambda t: 1e-12 - t, 1e-12),
        (lambda t: np.exp(-8 * t) - 1e-3, np.log(1e3) / 8),
    ):
        calls = []
        when = first_root(
            lambda t, gap=gap, calls=calls: calls.append(t) or gap(t), 2.0
        )
        assert when == pytest.approx(root, rel=1e-12, abs=1e-15)
        assert -1e-9 <= gap(when) <= 0
        assert len(calls) <= 60


def test_a_limit_is_met_exactly():
    """The hit of an angle is on its limit; the quantum's is the source's estimate."""
    chain = _two_links(lower={1: -0.1}, upper={1: 2})
    beyond = {}
    for scheme in SCHEMES:
        sim = ChainSimulator.at_angles(
            chain, (-0.5, 0.2), (0.3, -4), dt=0.005, scheme=scheme
        )
        seen = beyond.setdefault(scheme, [])
        sim.on_event = lambda event, sim=sim, seen=seen: seen.append(sim.theta[1] + 0.1)
        for _ in range(40):
            sim.step()
        assert [event.kind for event in sim.events] == ["hit", "release"]
    assert abs(beyond["rk4"][0]) <= 1e-14
    assert abs(beyond["semi_implicit"][0]) <= 1e-14
    assert 1e-9 < abs(beyond["quantum"][0]) <= 1e-4


def test_hits_of_two_joints_at_once_are_one_impact():
    """A level link that falls: both ends at one time, and all of its energy."""
    chain = make_chain((0.5,), (1.0, 2.0), ground=[{}])
    sim = ChainSimulator(chain, [(0, 0.2), (0.5, 0.2)], dt=3e-3)
    for _ in range(100):
        sim.step()
    hits = [event for event in sim.events if event.kind == "hit"]
    assert [hit.joint for hit in hits] == [0, 1]
    assert hits[0].time == hits[1].time
    assert hits[0].loss == pytest.approx(3.0 * 9.81 * 0.2, rel=1e-12)
    assert np.abs(sim.v).max() <= 1e-15


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_robot_and_its_file_choose_the_scheme(tmp_path, scheme):
    """ChainRobot moves as the simulator of its scheme does; a file may name it."""
    chain, path = _two_links(), tmp_path / "two.yaml"
    save_chain(chain, path, {"theta": ANGLES, "theta_dot": RATES}, scheme=scheme)
    file = load_chain_file(path)
    assert file.scheme == scheme
    robot = ChainRobot(file.chain, scheme=file.scheme, start=file.start)
    sim = ChainSimulator(chain, *file.start, scheme=scheme)
    for _ in range(50):
        robot.advance(0.0)
        sim.step()
        sim.step()
    np.testing.assert_array_equal(robot.state.x, sim.x)
    other = "rk4" if scheme != "rk4" else "quantum"
    sim = ChainSimulator(chain, *file.start, scheme=other)
    for _ in range(100):
        sim.step()
    assert np.abs(robot.state.x - sim.x).max() > 1e-6


def test_schemes_that_are_none_are_refused(tmp_path):
    """The simulator, the robot and the file list those that are."""
    chain, x = _two_links(), from_angles(_two_links(), (0, 0), (0, 0), ANGLES, RATES).x
    for scheme in ("rk5", None, 4):
        with pytest.raises(dyn.SettingError, match="rk4"):
            ChainSimulator(chain, x, scheme=scheme)
    with pytest.raises(dyn.SettingError, match="rk4"):
        ChainRobot(chain, scheme="rk5")
    with pytest.raises(dyn.ModelError, match="scheme.*rk4"):
        save_chain(chain, tmp_path / "x.yaml", scheme="rk5")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("halve_above", (0, -1.0, np.nan, np.inf, "1", True, [1.0])),
        ("dt", (0, -1e-3, np.nan, np.inf, "1e-3", True, None, [1e-3])),
        ("window", (0, -1.0, np.nan, "5 dt", True, [1.0])),
        ("keep", (-1, 2.5, np.nan, "all", True, None)),
        ("on_event", (1, "print", [])),
        ("scheme", ("", "euler", None, 4)),
        ("near", ([0.0], [np.nan, 0.0], "there")),
        ("engine", ("steam",)),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, values):
    """In words that name the setting; what counts as a number is one."""
    x = from_angles(_two_links(), (0, 0), (0, 0), ANGLES, RATES).x
    for value in values:
        with pytest.raises(dyn.DynError, match=name):
            ChainSimulator(_two_links(), x, **{name: value})
    with pytest.raises(dyn.ModelError, match="chain is"):
        ChainSimulator("chain", x)


def test_numbers_of_numpy_are_settings():
    """Whole and real numbers of any kind; None where it stands for a default."""
    x = from_angles(_two_links(), (0, 0), (0, 0), ANGLES, RATES).x
    sim = ChainSimulator(
        _two_links(), x, dt=np.float64(1e-3), window=np.float32(0.25), keep=np.int64(3),
        halve_above=np.float64(1.0), on_event=None,
    )  # fmt: skip
    sim.step()
    assert sim.window == 0.25


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_as_many_events_are_kept_as_asked(keep):
    """The latest; none with 0, while on_event hears of all."""
    heard = []
    chain = make_chain((), (1.0,), ground=[{}])
    sim = ChainSimulator(
        chain, [(0, 0.01)], keep=keep, on_event=heard.append, halve_above=None
    )
    for _ in range(5):
        sim.set_state([(0, 1e-3)], [(0, -1)])
        for _ in range(3):
            sim.step()
    assert len(heard) >= 5
    assert sim.events == heard[len(heard) - keep :]


@pytest.mark.parametrize(
    "forces",
    [5.0, [5.0], [0, 5.0], np.zeros(3), np.zeros((2, 2)), "up", [[1, 2], [3]]],
)
def test_forces_of_another_size_are_refused(forces):
    """Not broadcast; a function's are, too. The state stays."""
    sim = ChainSimulator.at_angles(_two_links(), ANGLES, RATES)
    before = sim.state
    for wrong in (forces, lambda t, state: forces):
        with pytest.raises(dyn.ShapeError, match=r"forces.*\(3, 2\)"):
            sim.step(forces=wrong)
        np.testing.assert_array_equal(sim.state, before)
        assert sim.steps == 0 and sim.t == 0
    with pytest.raises(dyn.ShapeError, match="tau"):
        sim.step("up")


def test_starts_beyond_a_bound_are_refused():
    """As ChainRobot does: below the ground, beyond a limit; nothing changes."""
    chain = make_chain(
        LENGTHS, MASSES, upper={1: 0.2}, ground=[{}], joint_names=("toe", "knee", "hip")
    )
    high, low, bent = (0.0, 0.5), (0.0, -0.01), [0.3, 0.4]
    for place, angles, message in (
        (low, [0.3, 0.1], "toe on ground 0 is 0.01 m inside its bound"),
        (high, bent, "knee at its upper limit is 0.2 rad beyond its bound"),
    ):
        with pytest.raises(dyn.SettingError, match=message):
            ChainSimulator.at_angles(chain, angles, x0=place)
    sim = ChainSimulator.at_angles(chain, [0.3, 0.1], x0=high)
    before = sim.state
    with pytest.raises(dyn.SettingError, match="inside its bound"):
        sim.set_state(before.x - [0, 2.0], before.v)
    np.testing.assert_array_equal(sim.state, before)
    sim.set_state(before.x - [0, 0.5 + 1e-7], before.v)  # touches


def test_starts_keep_their_turns():
    """Angles of more than half a turn stay; else those near the limits' middle."""
    chain = _two_links(lower={1: 3.5}, upper={1: 5.0})
    sim = ChainSimulator.at_angles(chain, (7.0, 4.0))
    np.testing.assert_allclose(sim.theta, (7.0, 4.0), rtol=1e-15)
    sim = ChainSimulator(chain, sim.x)
    np.testing.assert_allclose(sim.theta, (7.0 - 2 * np.pi, 4.0), rtol=1e-14)
    sim.step()
    assert not sim.events


def test_compiled_steps_keep_energy_and_links_by_default():
    """chain_rk4 for 100 s; the errors of links decay in 5 dt unless told otherwise."""
    chain, none = _two_links(), np.zeros(3)
    masses = np.array(MASSES)
    start = from_angles(chain, (0, 0), (0, 0), ANGLES, RATES)

    def energy(x, v):
        return 0.5 * masses @ (v * v).sum(axis=1) + 9.81 * masses @ x[:, 1]

    step = dyn.solver("chain_rk4").build(chain)
    x, v = start
    for _ in range(100_000):
        x, v = step(x, v, none, 1e-3)
    assert abs(energy(x, v) - energy(*start)) <= 1e-5 * SWING
    assert np.abs(np.linalg.norm(np.diff(x, axis=0), axis=1) - LENGTHS).max() <= 1e-6
    for name in ("chain_quantum", "chain_semi_implicit", "chain_rk4"):
        ends = []
        for window in (None, 5e-3, np.inf):
            step = dyn.solver(name).build(chain, engine="graph", window=window)
            x, v = start
            for _ in range(100):
                x, v = step(x, v, none, 1e-3)
            ends.append(x)
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-12)
        assert np.abs(ends[2] - ends[0]).max() > 1e-12
        for window in (0.0, -1.0, np.nan, -np.inf, "5 dt"):
            with pytest.raises(
                dyn.UnsupportedError, match="option window is .*; valid"
            ):
                dyn.solver(name).build(chain, engine="graph", window=window)
