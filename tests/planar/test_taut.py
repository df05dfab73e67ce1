"""Chains that are stretched straight between two points: held, not thrown about."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.planar import make_chain
from dyn_core.planar.chain.schemes import SCHEMES
from dyn_core.planar.chain.simulator import ChainSimulator

REACH = 3.0  # of all links [m]


def _between(n, a_w=None, **parts):
    """Return n equal links between two joints that are guided."""
    kind = {"kind": {0: "fixed", n: "fixed"}, "a_w": a_w}
    return make_chain([REACH / n] * n, [1.0] * (n + 1), constraints=kind, **parts)


def _along(n, angle=0.0, reach=REACH):
    way = np.linspace(0, reach, n + 1)[:, None]
    return way * [np.cos(angle), np.sin(angle)]


def _arc(n, slack, sign):
    """Return places of equal chords on an arc that is shorter by some slack."""
    low, high = 0.0, 1.0
    share = sign * (2 * np.arange(n) - (n - 1)) / (n - 1)
    for _ in range(200):
        bend = 0.5 * (low + high)
        short = REACH * (1 - np.cos(bend * share).mean())
        low, high = (bend, high) if short < slack else (low, bend)
    turn = low * share
    steps = REACH / n * np.column_stack([np.cos(turn), np.sin(turn)])
    return np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])


@pytest.mark.turns("angle")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n", [2, 3, 6, 20])
@pytest.mark.parametrize("angle", [0.0, 0.5, np.pi / 2])
def test_a_taut_chain_rests(n, scheme, angle):
    """Between points as far apart as it reaches nothing moves, whatever pulls.

    Sag h takes a length of h² / 2 l: without slack there is none.
    """
    x = _along(n, angle)
    sim = ChainSimulator(_between(n), x, scheme=scheme)
    for k in range(100):
        sim.step(forces=10 * np.ones((n + 1, 2)) if k > 50 else None)
    assert np.abs(sim.x - x).max() <= 1e-12
    assert np.abs(sim.v).max() <= 1e-12
    (taut,) = [event for event in sim.events if event.kind == "taut"]
    wanted = f"links 0 to {n - 1} between joints 0 and {n} are stretched straight"
    assert taut.message == wanted
    assert sim.dropped == tuple(f"length of link {i}" for i in range(n))
    assert len(sim.events) == 2


def test_a_chain_with_less_and_less_slack_moves_less_and_less():
    """No joint leaves the line by more than sqrt(slack reach / 2): taut is the limit."""
    sags = []
    for slack in (1e-2, 1e-4, 1e-6, 2e-8, 0.0):
        sim = ChainSimulator(_between(6), _arc(6, slack, -1.0), halve_above=0.1)
        low = high = sim.x[:, 1]
        for _ in range(300):
            sim.step()
            low, high = np.minimum(low, sim.x[:, 1]), np.maximum(high, sim.x[:, 1])
        sags.append((high - low).max())
        assert sags[-1] <= 2.02 * np.sqrt(slack * REACH / 2) + 1e-12
        lengths = np.linalg.norm(np.diff(sim.x, axis=0), axis=1)
        assert np.abs(lengths - REACH / 6).max() <= 1e-6
    assert sags[-1] == 0.0


def test_a_taut_chain_that_moves_is_stopped():
    """Velocities across it go in an impact, and their energy is counted."""
    n = 6
    v = np.zeros((n + 1, 2))
    v[1:-1, 1] = np.array([0.2, -0.1, 0.5, 0.3, 0.1])
    sim = ChainSimulator(_between(n), _along(n), v)
    before = sim.energy[0]
    sim.step()
    assert sim.lost == pytest.approx(before, rel=1e-12)
    for _ in range(50):
        sim.step()
    assert np.abs(sim.v).max() <= 1e-12
    assert np.abs(sim.x - _along(n)).max() <= 1e-12
    assert sum(event.kind == "taut" for event in sim.events) == 1


def test_a_taut_chain_goes_with_its_ends():
    """Ends that fall at one acceleration take it along; it stays straight."""
    n, pull = 5, (0.3, -2.0)
    chain = _between(n, a_w={0: pull, n: pull})
    sim = ChainSimulator(chain, _along(n, 0.4))
    for _ in range(200):
        sim.step()
    wanted = _along(n, 0.4) + 0.5 * 0.2**2 * np.array(pull)
    assert np.abs(sim.x - wanted).max() <= 1e-12


def test_a_taut_part_leaves_the_rest_free():
    """What hangs on beyond the second point swings as a pendulum does."""
    n = 4
    chain = make_chain(
        [0.5] * 4, [1.0] * 5, constraints={"kind": {0: "fixed", 2: "fixed"}}
    )
    bare = make_chain([0.5] * 2, [1.0] * 3, constraints={"kind": {0: "fixed"}})
    theta = np.array([-0.3, 0.2])
    turn = np.cumsum(theta)
    hang = [1.0, 0.0] + 0.5 * np.cumsum(
        np.column_stack([np.cos(turn), np.sin(turn)]), 0
    )
    x = np.vstack([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], hang])
    sim = ChainSimulator(chain, x)
    alone = ChainSimulator.at_angles(bare, theta, x0=(1.0, 0.0))
    for _ in range(300):
        sim.step()
        alone.step()
    assert sim.x.shape == (n + 1, 2)
    np.testing.assert_allclose(sim.x[2:], alone.x, atol=1e-12)
    np.testing.assert_allclose(sim.x[1], [0.5, 0.0], atol=1e-15)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_what_overflows_for_want_of_slack_says_so():
    """How much slack which links have, where steps are too long for it."""
    sim = ChainSimulator(
        _between(6), _arc(6, 1e-5, -1.0) + 0.0, dt=1e-2, scheme="quantum",
        halve_above=None,
    )  # fmt: skip
    message = (
        "not finite .*; links 0 to 5 between joints 0 and 6 have a slack of 1e-05 m"
        " only: it takes a shorter dt"
    )
    with pytest.raises(dyn.NonFiniteError, match=message):
        for _ in range(300):
            sim.step()


@pytest.mark.parametrize("engine", available())
@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("chain_fixed_step", {}),
        ("chain_quantum", {}),
        ("chain_semi_implicit", {}),
        ("chain_rk4", {}),
        ("chain_rk4", {"window": 5e-3}),
        ("chain_rk4", {"window": np.inf}),
    ],
)
def test_compiled_steps_hold_a_taut_chain(name, choices, engine):
    """They do what the simulator does; a chain with slack moves."""
    step = dyn.solver(name).build(_between(6), engine=engine, **choices)
    none = np.zeros(7)
    modes = (none, none) if name == "chain_fixed_step" else ()
    for x0, moves in ((_along(6, 0.3), False), (_arc(6, 0.1, -1.0), True)):
        x, v = x0, np.zeros((7, 2))
        for _ in range(200):
            x, v, *_ = step(x, v, *modes, none, 1e-3)
        assert np.isfinite(x).all()
        assert (np.abs(x - x0).max() > 1e-3) == moves
        assert moves or np.abs(v).max() <= 1e-12
