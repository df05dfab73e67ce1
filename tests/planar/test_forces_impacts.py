"""Planar chains: forces on joints, plastic impacts, answers to forces and torques."""

from itertools import product

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.planar import (
    GUIDED,
    LINE,
    ChainState,
    from_angles,
    joint_rates,
    make_chain,
    make_chain_like,
)
from dyn_core.planar.chain.modes import Key
from dyn_core.planar.chain.simulator import ChainSimulator
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_plugins.planar._testing.chains import (
    angle_rows,
    forces,
    link_directions,
    mass_matrix,
    random_chain,
)

EXACT = TOLERANCES["exact"]
ENGINES = pytest.mark.parametrize("engine", available())
MODES = ("kind", "s", "active")


def _near(got, wanted, relative=EXACT):
    assert scaled_error(got, wanted) <= relative, (got, wanted)


def _build(name, chain, engine="plain", **choices):
    return dyn.solver(name).build(chain, engine=engine, **choices)


def _moment(x, f):
    return (x[:, 0] * f[:, 1] - x[:, 1] * f[:, 0]).sum()


# Forces


@ENGINES
def test_forces_are_the_oracles(engine):
    """Gravity, torques, rolling resistance and drag, also of massive links (WAW-4)."""
    for seed in range(12):
        case = random_chain(seed, n=2 + seed % 4, massive=0.5)
        tau = np.random.default_rng(seed).normal(size=case.chain.n)
        tau[-1] = 0
        for gravity, resistance in product((True, False), repeat=2):
            program = _build(
                "chain_forces",
                case.chain,
                engine,
                gravity=gravity,
                resistance=resistance,
            )
            less = {} if gravity else {"gravity": 0}
            less |= {} if resistance else {"k_omega": 0, "k_v": 0}
            wanted = forces(make_chain_like(case.chain, **less), case.x, case.v, tau)
            _near(program(case.x, case.v, tau), wanted, 1e-13)


def test_interior_torques_are_couples():
    """No net force, no net moment; power tau . omega; at joint 0 a moment (WAW-4.2)."""
    for seed in range(20):
        case = random_chain(seed, n=6, kinds=("free",), active=0.0)
        program = _build("chain_forces", case.chain, gravity=False, resistance=False)
        tau = np.random.default_rng(seed).normal(size=6)
        tau[[0, -1]] = 0
        F = program(case.x, case.v, tau)
        _near(F.sum(axis=0), [0, 0], 1e-14)
        _near(_moment(case.x, F), 0.0, 1e-14 * np.abs(F).max() * np.abs(case.x).max())
        rates = joint_rates(case.chain, ChainState(case.x, case.v))
        _near((F * case.v).sum(), tau[:-1] @ rates, 1e-13)
        tau[0] = 0.7
        F = program(case.x, case.v, tau)
        _near(F.sum(axis=0), [0, 0], 1e-14)
        _near(_moment(case.x, F), 0.7)


def test_resistance_takes_power():
    """Each kind only takes; at rest both are zero, not NaN (WAW-4.3, 4.4, 4.5)."""
    for seed in range(20):
        chain = random_chain(seed, n=6, kinds=("free",), active=0.0).chain
        rng = np.random.default_rng(seed)
        x, v = np.cumsum(rng.normal(size=(6, 2)), axis=0), rng.normal(size=(6, 2))
        for kept in ("k_omega", "k_v"):
            only = {"k_omega": 0, "k_v": 0, kept: getattr(chain, kept)}
            one = make_chain_like(chain, **only)
            program = _build("chain_forces", one, gravity=False)
            assert (program(x, v, np.zeros(6)) * v).sum() < 0
            assert (program(x, 0 * v, np.zeros(6)) == 0).all()
            v[2] = 0  # one joint at rest among others
            assert np.isfinite(program(x, v, np.zeros(6))).all()


@ENGINES
def test_the_last_joint_takes_no_torque(engine):
    chain = make_chain((0.5, 0.4), (1, 0.7, 0.5))
    x, v = from_angles(chain, (0, 0), (0, 0), (0.3, 0.2), (1, 2))
    program = _build("chain_forces", chain, engine)
    with pytest.raises(dyn.InfeasibleError, match=r"tau\[2\].*takes no torque"):
        program(x, v, (0, 0, 0.1))
    assert np.isfinite(program(x, v, (0.1, 0.2, 0))).all()


# Impacts: section K


HIT = make_chain((0.5, 0.4, 0.6), (0.5, 1, 0.8, 0.4))
HIT_STATE = from_angles(HIT, (0, 0), (0.8, -2), (1.1, -0.7, 0.5), (0.4, 1.2, -0.9))
STICKS, STOPS = ("guided", "free", "free", "free"), (1,)
IMPACTS = {
    "IMP-A": (
        {"kind": STICKS},
        [
            [0, 0],
            [0.8018966125855, -0.4081397995053],
            [1.118921438367, -1.157974025152],
            [0.4107358202269, -0.5959925149918],
        ],
        [-1.799573586399, -0.2356722619464, 3.542036115678],
        2.606043747882,
        [0.5241315375072, 2.815696362885],
        0,
    ),
    "IMP-B": (
        {"active": STOPS},
        [
            [0.975740835934, -2.012052045251],
            [0.5404393267619, -1.79049746092],
            [0.3882732655708, -1.430590881422],
            [-0.00432950830756, -1.119040499565],
        ],
        [0.9768804179134, 0, -0.1415485169895],
        0.02431324311433,
        [0, 0],
        -0.04052207185722,
    ),
    "IMP-C": (
        {"kind": STICKS, "active": STOPS},
        [
            [0, 0],
            [0.8346237473703, -0.4247968672866],
            [1.126378785058, -1.114862423584],
            [0.4346093967031, -0.565908031413],
        ],
        [-1.873018075867, 0, 3.34487990829],
        2.607778703157,
        [0.5723739802351, 2.84556236979],
        0.01472345756597,
    ),
}


def _struck(chain, x, v, target=None, rate=None, engine="plain", **inputs):
    """Solve an impact: guided joints get a target velocity, active angles a rate."""
    kind = np.array(inputs.get("kind", chain.constraints.kind), float)
    jump, turn = np.zeros_like(v), np.zeros(chain.n)
    if target is not None:
        jump = np.where((kind == GUIDED)[:, None], target - v, 0.0)
    if rate is not None:
        turn[:-1] = rate - joint_rates(chain, ChainState(x, v))
    program = _build("chain_impact", chain, engine, inputs=tuple(inputs))
    return program(x, v, jump, turn, **inputs)


@ENGINES
@pytest.mark.parametrize("name", IMPACTS)
def test_impacts_are_the_reference_values(name, engine):
    modes, v_next, rates, loss, impulse, couple = IMPACTS[name]
    chain, (x, v) = HIT.with_constraints(**modes), HIT_STATE
    constraints = chain.constraints
    mode_inputs = {key: np.array(getattr(constraints, key), float) for key in MODES}
    still = np.zeros((4, 2)), np.zeros(3)
    for impact in (
        _struck(chain, x, v, *still, engine),
        _struck(HIT, x, v, *still, engine, **mode_inputs),
    ):
        _near(impact.v_next, v_next, 1e-11)
        _near(joint_rates(chain, ChainState(x, impact.v_next)), rates, 1e-11)
        _near(impact.loss, loss, 1e-11)
        _near(impact.impulse, [impulse, [0, 0], [0, 0], [0, 0]], 1e-11)
        _near(impact.torque_impulse, [0, couple, 0, 0], 1e-11)


# Impacts: laws


def _rows(chain, x, kind, s, active):
    """Return the rows that an impact keeps: links, supports, angles, each (n, 2)."""
    rows, (r, _) = [], link_directions(chain, x)
    for i, along in enumerate(r):
        rows.append(np.zeros((chain.n, 2)))
        rows[-1][i], rows[-1][i + 1] = -along, along
    for i in range(chain.n):
        for d in {LINE: [s[i]], GUIDED: [*np.eye(2)]}.get(kind[i], []):
            rows.append(np.zeros((chain.n, 2)))
            rows[-1][i] = d
    rows += [*angle_rows(chain, x)[np.flatnonzero(active)]]
    return np.array(rows).reshape(len(rows), -1)


def _kinetic(chain, v):
    return 0.5 * (v * (mass_matrix(chain) @ v)).sum()


def _hits(count=60, **choices):
    """Return random chains that hit something, with what is wanted after it."""
    for seed in range(count):
        case = random_chain(seed, massive=0.4, still=True, **choices)
        constraints, rng = case.chain.constraints, np.random.default_rng(seed)
        kind, s, active = (np.array(getattr(constraints, key), float) for key in MODES)
        J = _rows(case.chain, case.x, kind, s, active)
        if np.linalg.matrix_rank(J, tol=1e-3) < len(J) or len(J) == case.chain.n - 1:
            continue
        yield case, J, (kind, s, active), rng


def test_impacts_are_projections():
    """M (v+ - v) = J.T p, J v+ as wanted: at rest, or anything (WAW-7.1)."""
    count = 0
    for case, J, (kind, _, active), rng in _hits():
        chain, x = case.chain, case.x
        v = case.v + 0.01 * rng.normal(size=case.v.shape)  # with drift
        for amount in (0.0, 1.0):
            target = amount * rng.normal(size=v.shape)
            rate = amount * rng.normal(size=chain.n - 1)
            wanted = J @ v.ravel()  # links and lines keep what they have
            k = chain.n - 1
            for i in range(chain.n):
                if kind[i] == GUIDED:
                    wanted[k : k + 2] = target[i]
                k += int(kind[i])
            on = np.flatnonzero(active)
            wanted[k:] = rate[on]
            inverse = np.linalg.inv(np.kron(mass_matrix(chain), np.eye(2)))
            p = np.linalg.solve(J @ inverse @ J.T, wanted - J @ v.ravel())
            v_next = v + (inverse @ J.T @ p).reshape(v.shape)
            impact = _struck(chain, x, v, target, rate)
            size = max(1.0, np.abs(p).max())
            _near(impact.v_next, v_next, 1e-10 * size)
            _near(impact.torque_impulse[on], p[k:], 1e-10 * size)
            u = v - v_next
            _near(impact.loss, 0.5 * (u * (mass_matrix(chain) @ u)).sum(), 1e-9 * size)
            gap = J @ impact.v_next.ravel() - wanted
            assert np.abs(gap).max() <= EXACT * size
            again = _struck(chain, x, impact.v_next, target, rate)
            _near(again.v_next, impact.v_next, 1e-11 * size)
            _near(again.loss, 0.0, 1e-11 * size)
            count += 1
    assert count >= 60


def test_impacts_keep_momentum_and_lose_energy():
    """Momentum by the impulses, moment about the hit, Carnot (WAW-7.1)."""
    for seed in range(40):
        case = random_chain(seed, kinds=("free",), active=0.0, massive=0.4)
        chain, x, v = case.chain, case.x, case.v
        i = seed % chain.n
        hit = chain.with_constraints(kind={i: "guided"})
        impact = _struck(hit, x, v, np.zeros_like(v))
        M, after = mass_matrix(chain), impact.v_next
        assert np.abs(after[i]).max() <= 1e-13
        gained = M @ (after - v)
        _near(gained.sum(axis=0), impact.impulse[i])
        _near(_moment(x - x[i], gained), 0.0)
        lost = _kinetic(chain, v) - _kinetic(chain, after)
        assert lost >= -1e-13
        _near(impact.loss, lost, 1e-13)
        r, _ = link_directions(chain, x)
        _near((r * np.diff(after, axis=0)).sum(axis=1), np.zeros(len(r)), 1e-13)


def test_several_joints_hit_at_once():
    """Two guided supports, one keeps its velocity; a line keeps its line (E18)."""
    case = random_chain(4, n=7, kinds=("free",), active=0.0)
    v = case.v.copy()
    s = {3: (0.6, 0.8)}
    v[3] -= np.array(s[3]) * (np.array(s[3]) @ v[3])
    kind = {0: "guided", 3: "line", 5: "guided"}
    chain = case.chain.with_constraints(kind=kind, s=s, a_w={5: (7, 7)})
    both = _struck(chain, case.x, v, np.zeros_like(v))
    assert np.abs(both.v_next[[0, 5]]).max() <= 1e-13
    assert abs(np.array(s[3]) @ both.v_next[3]) <= 1e-13
    jump = np.zeros_like(v)
    jump[0] = -v[0]
    one = _build("chain_impact", chain)(case.x, v, jump, np.zeros(7))
    assert np.abs(one.v_next[5] - v[5]).max() == 0
    assert abs(np.array(s[3]) @ one.v_next[3]) <= 1e-13
    gained = np.array(chain.masses) @ (both.v_next - v)
    _near(gained, both.impulse.sum(axis=0))


def test_limits_stop_angles():
    """Rate 0 after, momentum and moment stay, couple against the hit (WAW-12.3)."""
    for seed in range(40):
        case = random_chain(seed, n=3 + seed % 5, kinds=("free",), active=0.0)
        chain, x, v = case.chain, case.x, case.v
        i = 1 + seed % (chain.n - 2)
        rate = joint_rates(chain, ChainState(x, v))[i]
        stop = chain.with_constraints(active=(i,), alpha_w={i: 5.0})
        impact = _struck(stop, x, v, rate=np.zeros(chain.n - 1))
        after = joint_rates(chain, ChainState(x, impact.v_next))
        assert abs(after[i]) <= EXACT * max(1.0, np.abs(after).max())
        gained = mass_matrix(chain) @ (impact.v_next - v)
        _near(gained.sum(axis=0), [0, 0])
        _near(_moment(x, gained), 0.0)
        assert not impact.impulse.round(12).any()
        lost = _kinetic(chain, v) - _kinetic(chain, impact.v_next)
        _near(impact.loss, lost)
        _near(impact.loss, -0.5 * impact.torque_impulse[i] * rate)
        assert np.sign(impact.torque_impulse[i]) == -np.sign(rate)


# Wrong-sign impulses


def _limited(state=HIT_STATE, **settings):
    """Return a simulator whose joint 0 meets the ground and angle 1 its upper limit."""
    chain = make_chain_like(HIT, ground=[{"joints": (0,)}], upper={1: -0.7}, gravity=0)
    return ChainSimulator(chain, *state, **settings)


def test_what_would_pull_is_let_go():
    """IMP-C needs a pull at the limit: it goes, the answer is IMP-A (WAW-7.5)."""
    sim, ground, limit = _limited(), Key(1, 0, 0), Key(0, 1, 1)
    sim._handle_hits([ground, limit])
    _, v_next, rates, loss, impulse, _ = IMPACTS["IMP-A"]
    _near(sim.v, v_next, 1e-11)
    _near(sim.omega, rates, 1e-11)
    assert sim.omega[1] == pytest.approx(-0.2356722619464)
    assert sim.modes.on == {ground}
    assert sim.lost == pytest.approx(loss, rel=1e-11)
    assert sim.events[0].impulse == pytest.approx(impulse[1], rel=1e-11)


def test_one_step_lets_it_go_too():
    """The same by a step, in which the hits are found (WAW-7.3, 7.5)."""
    sim = _limited(dt=1e-6)
    sim.step()
    _near(sim.v, IMPACTS["IMP-A"][1], 1e-4)
    assert sim.events[0].kind == "hit"
    assert Key(0, 1, 1) not in sim.modes.on


# Answers to forces and torques


def _without_active(case):
    constraints = case.chain.constraints
    chain = case.chain.with_constraints(kind=constraints.kind, s=constraints.s)
    return case._replace(chain=chain)


def test_a_joint_that_a_chain_has_not_is_refused():
    """With the valid numbers."""
    case = random_chain(1)
    for joint in (case.chain.n, -1):
        with pytest.raises(dyn.UnsupportedError, match="valid: .*0"):
            _build("chain_force_jacobian", case.chain, joint=joint)(case.x)


def test_force_jacobian():
    """Unit forces; reciprocal; source's way back where it has one (WAW-8.1)."""
    for seed in range(50):
        case = random_chain(seed, massive=0.3 * (seed % 2))
        chain, x, still = case.chain, case.x, np.zeros_like(case.x)
        J, n = _build("chain_force_jacobian", chain)(x), chain.n
        program = _build("chain_recursion", chain)
        start = program(x, still, still).a
        scale = max(1.0, np.abs(J).max(), np.abs(start).max())
        for j, k in product(range(n), range(2)):
            unit = still.copy()
            unit[j, k] = 1
            change = program(x, still, unit).a - start
            assert np.abs(J[:, j, :, k] - change).max() <= 1e-13 * scale
        assert np.abs(J - np.transpose(J, (1, 0, 3, 2))).max() <= 1e-12 * scale
        if not any(chain.link_masses):
            case = _without_active(case)
            ours = _build("chain_force_jacobian", case.chain)(x)
            theirs = _build("chain_force_jacobian_source", case.chain)(x)
            _near(ours, theirs, 1e-12)


def test_torque_response():
    """S = rows J rows.T, symmetric, not negative, as the source has it (WAW-8.2)."""
    for seed in range(50):
        case = random_chain(seed, massive=0.3 * (seed % 2))
        chain, rows = case.chain, angle_rows(case.chain, case.x)
        J = _build("chain_force_jacobian", chain)(case.x)
        S = _build("chain_torque_response", chain)(case.x)
        scale = max(1.0, np.abs(S).max())
        wanted = np.einsum("ipa,pqab,jqb->ij", rows, J, rows)
        assert np.abs(S - wanted).max() <= 1e-12 * scale
        assert np.abs(S - S.T).max() <= 1e-12 * scale
        assert np.linalg.eigvalsh(S + S.T).min() >= -1e-12 * scale
        assert not S[-1].any() and not S[:, -1].any()
        if not any(chain.link_masses):
            case = _without_active(case)
            ours = _build("chain_torque_response", case.chain)(case.x)
            theirs = _build("chain_torque_response_source", case.chain)(case.x)
            _near(ours, theirs, 1e-11)


def test_torque_response_is_the_inverse_of_the_mass_matrix():
    """Of a chain on a fixed base, all angles listed: H from its Jacobian (WAW-8.2)."""
    for seed in range(20):
        case = random_chain(seed, kinds=("free",), active=0.0, massive=0.5)
        chain = case.chain.with_constraints(kind={0: "fixed"})
        n = chain.n
        theta = np.random.default_rng(seed).normal(size=n - 1)
        zero = np.zeros(2)
        x, _ = from_angles(chain, zero, zero, theta, 0 * theta)
        B = np.stack(
            [from_angles(chain, zero, zero, theta, e).v for e in np.eye(n - 1)], -1
        )
        H = np.einsum("iak,ij,jal->kl", B, mass_matrix(chain), B)
        S = _build("chain_torque_response", chain)(x)[:-1, :-1]
        _near(S @ H, np.eye(n - 1), 1e-10)


def test_torques_for_accelerations():
    """One pass = the matrix of responses; what is wanted is reached (WAW-8.3)."""
    reached = 0
    for seed in range(60):
        case = random_chain(seed, active=0.5, massive=0.3 * (seed % 2))
        solution = _build("chain_recursion", case.chain)(*case[1:4])
        on = np.array(case.chain.constraints.active)
        if solution.dropped.any() or not on.any() or (on[0] and not solution.tau_w[0]):
            continue
        S = _build("chain_torque_response", _without_active(case).chain)(case.x)
        sizes = np.linalg.svd(S[np.ix_(on, on)], compute_uv=False)
        if sizes[-1] < 1e-6 * sizes[0]:
            continue
        tau = _build("chain_torques", case.chain)(*case[1:4])
        dense = _build("chain_torques_dense", case.chain)(*case[1:4])
        scale = max(1.0, np.abs(tau).max())
        _near(tau, solution.tau_w, 0)
        assert np.abs(tau - dense).max() <= 1e-9 * scale
        rows = angle_rows(case.chain, case.x)
        loose = np.zeros(case.chain.n)
        for torques, error in ((tau, 1e-13), (dense, 1e-11)):
            F = case.F + np.einsum("ijk,i->jk", rows, torques)
            program = _build("chain_recursion", case.chain, inputs=("active",))
            after = program(case.x, case.v, F, active=loose)
            missed = after.alpha[on] - np.array(case.chain.constraints.alpha_w)[on]
            size = max(1.0, np.abs(F).max(), np.abs(S).max() * scale)
            assert np.abs(missed).max() <= error * size
        reached += 1
    assert reached >= 35


def test_torques_of_rigid_parts_are_finite():
    """A singular S: least squares, and nothing is infinite (WAW-8.3, 12.6)."""
    for seed in range(5):
        case = random_chain(seed, n=6, kinds=("free",), active=0.0)
        v = np.zeros_like(case.x)
        kind = {1: "fixed", 4: "fixed", 5: "fixed"}
        chain = case.chain.with_constraints(kind=kind, active=(2, 3, 4))
        F = forces(chain, case.x, v)
        for name in ("chain_torques", "chain_torques_dense"):
            tau = _build(name, chain)(case.x, v, F)
            assert np.isfinite(tau).all() and np.abs(tau).max() < 1e3
            rows = angle_rows(chain, case.x)
            more = F + np.einsum("ijk,i->jk", rows, tau)
            program = _build("chain_recursion", chain, inputs=("active",))
            after = program(case.x, v, more, active=np.zeros(6))
            assert np.abs(after.a[1:]).max() <= 1e-9  # all of it rests


def test_both_torques_of_a_rigid_part_are_those_of_the_recursion():
    """A triangle on two fixed joints whose angle is to turn: a link is given up.

    The matrix of torque responses is 2e-15 there, and no measure of rank.
    """
    chain = make_chain(
        [0.5, 0.7, 0.6],
        [1, 0.7, 0.5, 0.3],
        constraints={
            "kind": {0: "fixed", 2: "fixed"}, "active": [1], "alpha_w": {1: 1.0}
        },
    )  # fmt: skip
    x, v = from_angles(chain, (0, 0), (0, 0), (0.3, 0.8, -0.5), (0, 0, 0))
    F = forces(chain, x, v)
    S = _build("chain_torque_response", chain, inputs=("active",))(
        x, active=np.zeros(4)
    )
    assert abs(S[1, 1]) < 1e-13
    solution = _build("chain_recursion", chain)(x, v, F)
    assert solution.dropped.tolist() == [[1, 0], [0, 0], [0, 0], [0, 0]]
    for name in ("chain_torques", "chain_torques_dense"):
        _near(_build(name, chain)(x, v, F), solution.tau_w, 1e-13)
    assert solution.tau_w[1] == pytest.approx(-1.01587796, rel=1e-8)


@pytest.mark.parametrize(
    ("name", "options"),
    [("chain_torques", {"engine": "graph"}), ("chain_torques_dense", {})],
)
def test_torques_of_joints_at_one_place_and_of_nan_are_nan(name, options):
    """In its row of a batch alone, at active joints alone: no direction of the link."""
    chain = make_chain(
        [0.5, 0.7], [1, 0.7, 0.5], constraints={"active": [1], "alpha_w": {1: 1.0}}
    )
    x, v = from_angles(chain, (0, 0), (0, 0), (0.3, 0.8), (0, 0))
    x, v = np.repeat([x], 5, axis=0), np.repeat([v], 5, axis=0)
    F, a_w = np.zeros_like(x), np.zeros_like(x)
    x[1, 2] = x[1, 1]
    for k, values in enumerate((x, v, F), 2):
        values[k, 1, 0] = np.nan
    program = dyn.solver(name).build(chain, inputs=("a_w",), **options)
    tau = program(x, v, F, a_w=a_w)
    assert np.isfinite(tau[0]).all() and tau[0, 1]
    np.testing.assert_array_equal(np.isnan(tau[1:]), [[False, True, False]] * 4)


@pytest.mark.parametrize("window", [None, 0.02])
def test_dense_torques_agree_where_equations_are_given_up(window):
    """Random chains with rigid parts, straight parts, links with mass: the same."""
    given_up = 0
    for seed in range(120):
        case = random_chain(seed, active=0.6, massive=0.4 * (seed % 2))
        solution = _build("chain_recursion", case.chain, window=window)(*case[1:4])
        given_up += bool(solution.dropped.any())
        tau, dense = (
            _build(name, case.chain, window=window)(*case[1:4])
            for name in ("chain_torques", "chain_torques_dense")
        )
        _near(dense, tau, 1e-8)
    assert given_up >= 30
