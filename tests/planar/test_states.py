"""Planar chains and their states: bad input, angles there and back, repair, forces."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.planar import (
    ChainState,
    from_angles,
    joint_angles,
    joint_rates,
    link_rates,
    make_chain,
    make_chain_like,
    repair_drift,
    to_angles,
)
from dyn_core.planar.chain.chain import joint_flags
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_plugins.planar._testing.chains import angle_rows, forces, random_chain
from dyn_plugins.references.source_forms import Part1

EXACT = TOLERANCES["exact"]
THREE = {"lengths": (0.5, 0.4), "masses": (1, 0.7, 0.5)}
NAN = float("nan")
BAD = [
    ({"lengths": (0.5,)}, "lengths"),
    ({"lengths": (0.5, 0)}, "lengths[1]"),
    ({"lengths": (0.5, -1)}, "lengths[1]"),
    ({"lengths": (NAN, 1)}, "lengths[0]"),
    ({"lengths": "abc"}, "lengths"),
    ({"masses": (1, NAN, 1)}, "masses[1]"),
    ({"masses": (1, 0, 1)}, "masses[1]"),
    ({"masses": (1, 1, -1)}, "masses[2]"),
    ({"masses": ((1, 1, 1),)}, "masses"),
    ({"masses": ()}, "lengths"),
    ({"gravity": (0, 0, -9.81)}, "gravity"),
    ({"gravity": (0, NAN)}, "gravity[1]"),
    ({"k_omega": (0, -1, 0)}, "k_omega[1]"),
    ({"k_v": (0, 0, -1)}, "k_v[2]"),
    ({"k_v": (0, 0)}, "k_v"),
    ({"lower": {1: 1.0}, "upper": {1: 0.5}}, "lower[1]"),
    ({"lower": {2: 1.0}}, "lower[2]"),
    ({"upper": {1: NAN}}, "upper[1]"),
    ({"upper": {7: 1.0}}, "upper"),
    ({"link_masses": (0, -1)}, "link_masses[1]"),
    ({"link_inertias": (-1, 0)}, "link_inertias[0]"),
    ({"ground": [{"z": (0, 0)}]}, "ground[0].z"),
    ({"ground": [{"mode": "bog"}]}, "ground[0]"),
    ({"ground": [{"joints": (5,)}]}, "ground[0]"),
    ({"ground": [{"slope": 1}]}, "ground[0]"),
    ({"joint_names": ("a", "a", "b")}, "joint_names"),
    ({"joint_names": "abc"}, "joint_names"),
    ({"colour": "red"}, "colour"),
    ({"constraints": 3}, "constraints"),
    ({"constraints": {"knd": "free"}}, "knd"),
    ({"constraints": dyn.planar.Constraints.of(2)}, "constraints"),
]
BAD_MODES = [
    ({"kind": {1: "spring"}}, "kind[1]"),
    ({"kind": ("free", "free")}, "kind"),
    ({"kind": {1: "line"}}, "s[1]"),
    ({"kind": {1: "line"}, "s": {1: (0, NAN)}}, "s[1]"),
    ({"kind": {1: "line"}, "s": {1: (0, 1, 0)}}, "s[1]"),
    ({"a_w": {1: (NAN, 0)}}, "a_w[1]"),
    ({"a_w": {3: (0, 0)}}, "a_w"),
    ({"active": (2,)}, "active"),
    ({"active": (0,)}, "active"),
    ({"active": (5,)}, "active"),
    ({"alpha_w": {1: NAN}}, "alpha_w[1]"),
    ({"alpha_w": (0, 0)}, "alpha_w"),
]


def _near(got, wanted, relative=EXACT):
    assert scaled_error(got, wanted) <= relative, (got, wanted)


@pytest.mark.parametrize(("parts", "element"), BAD, ids=lambda x: str(x))
def test_bad_chains_are_refused(parts, element):
    """Each error is a ValueError that names field and index (WAW-1.1)."""
    with pytest.raises(dyn.ModelError) as caught:
        make_chain(**{**THREE, **parts})
    assert isinstance(caught.value, ValueError)
    assert element in str(caught.value)


@pytest.mark.parametrize(("modes", "element"), BAD_MODES, ids=lambda x: str(x))
def test_bad_constraints_are_refused(modes, element):
    with pytest.raises(dyn.ModelError) as caught:
        make_chain(**THREE, constraints=modes)
    assert element in str(caught.value)


def test_what_is_not_bad():
    """Any n, weightless guided joints, normals that want normalising (WAW-1.1)."""
    for n in (1, 2, 10, 1000):
        assert make_chain(np.ones(n - 1), np.ones(n)).n == n
    chain = make_chain((1,), (0, 1), constraints={"kind": {0: "fixed"}})
    assert chain.masses[0] == 0
    with pytest.warns(RuntimeWarning, match=r"s\[1\].*normalised"):
        modes = {"kind": {1: "line"}, "s": {1: (3, 4)}}
        chain = make_chain(**THREE, constraints=modes)
    assert chain.constraints.s[1] == pytest.approx((0.6, 0.8))
    fixed = make_chain(**THREE, constraints={"kind": {0: "fixed"}, "active": (0,)})
    assert fixed.constraints.active == (True, False, False)


# Angles


def _moved(chain, seed):
    rng = np.random.default_rng(seed)
    theta = rng.uniform(-3.1, 3.1, (4, chain.n - 1))
    return rng.normal(size=(2, 4, 2)), theta, rng.normal(size=theta.shape)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_angles_there_and_back(n):
    """from_angles and to_angles undo each other, in batches too (WAW-2.1)."""
    for seed in range(10):
        chain = random_chain(seed, n=n, kinds=("free",)).chain
        (x0, v0), theta, rates = _moved(chain, seed)
        state = from_angles(chain, x0, v0, theta, rates)
        for got, wanted in zip(
            to_angles(chain, state), (x0, v0, theta, rates), strict=True
        ):
            _near(got, wanted, 1e-14 * n)
        again = from_angles(chain, *to_angles(chain, state))
        _near(again.x, state.x, 1e-14 * n)
        _near(again.v, state.v, 1e-14 * n)
        one = from_angles(chain, x0[1], v0[1], theta[1], rates[1])
        _near(one.x, state.x[1], 0)
        _near(np.cumsum(joint_rates(chain, state), -1), link_rates(chain, state))


def test_angles_unwrap():
    chain = make_chain(**THREE)
    theta = np.array([9.0, -8.0])
    state = from_angles(chain, (0, 0), (0, 0), theta, (0, 0))
    assert np.abs(joint_angles(chain, state)).max() <= np.pi
    _near(joint_angles(chain, state, near=theta + 0.3), theta)


def test_wrong_shapes_are_named():
    chain = make_chain(**THREE)
    with pytest.raises(dyn.ShapeError, match="theta_dot"):
        from_angles(chain, (0, 0), (0, 0), (0, 0), (0, 0, 0))
    with pytest.raises(dyn.ShapeError, match="x"):
        joint_angles(chain, (np.zeros((2, 2)), np.zeros((3, 2))))


def test_alpha_is_the_second_derivative():
    """alpha of the accelerations of a rigid motion is theta'' (WAW-2.1)."""
    for seed in range(20):
        chain = random_chain(seed, n=5, kinds=("guided",), active=0.0).chain
        rng = np.random.default_rng(seed)
        theta, rates, alpha = rng.normal(size=(3, 4))
        x, v = from_angles(chain, (0.1, 0.2), (0.3, 0.4), theta, rates)
        angle, w, dw = np.cumsum([theta, rates, alpha], axis=1)
        r = np.column_stack([np.cos(angle), np.sin(angle)])
        turned = np.column_stack([-r[:, 1], r[:, 0]])
        steps = dw[:, None] * turned - (w * w)[:, None] * r
        a = np.cumsum([(0.5, -0.6), *np.array(chain.lengths)[:, None] * steps], axis=0)
        _near(np.einsum("ijk,jk->i", angle_rows(chain, x), a)[:-1], alpha)
        _near(joint_rates(chain, ChainState(x, v)), rates)
        result = Part1().build(chain, inputs=["a_w"])(x, v, 0 * x, a)[3]
        _near(result[:-1], alpha)


# Cheap repair


def _errors(chain, state):
    """Return how far links are from their lengths, and how fast they stretch."""
    c, u = np.diff(state[0], axis=-2), np.diff(state[1], axis=-2)
    size = np.linalg.norm(c, axis=-1)
    return size - chain.lengths, (c * u).sum(-1) / size


def _drifted(seed, n, **choices):
    case = random_chain(seed, n=n, active=0.0, **choices)
    rng = np.random.default_rng(seed)
    x = case.x + 0.01 * rng.normal(size=(n, 2))
    return case.chain, ChainState(x, case.v + 0.1 * rng.normal(size=(n, 2)))


@pytest.mark.parametrize("kind", ["free", "fixed"])
def test_repair_halves_a_single_link(kind):
    for seed in range(10):
        chain, state = _drifted(seed, 2, kinds=("free",))
        chain = chain.with_constraints(kind={0: kind})
        for factor in (0.5, 0.25):
            before = _errors(chain, state)
            after = _errors(chain, repair_drift(chain, state, factor))
            for left, right in zip(before, after, strict=True):
                _near(right, (1 - factor) * left, 1e-14)


def test_repair_contracts_and_keeps():
    """A chain contracts; guided joints stay, joints on lines stay there (WAW-3.2)."""
    for seed in range(30):
        chain, state = _drifted(seed, 6, kinds=("free", "line", "free"))
        chain = chain.with_constraints(
            kind=["fixed", *chain.constraints.kind[1:]], s=chain.constraints.s
        )
        start, old = _errors(chain, state), state
        for _ in range(60):
            state = repair_drift(chain, state)
        for left, right in zip(start, _errors(chain, state), strict=True):
            assert np.linalg.norm(right) <= 0.05 * np.linalg.norm(left), seed
        for part, was in zip(state, old, strict=True):
            moved = part - was
            assert not moved[0].any()
            for i, kind in enumerate(chain.constraints.kind):
                if kind == 1:
                    _near(moved[i] @ np.array(chain.constraints.s[i]), 0.0, 1e-14)


@pytest.mark.parametrize("com", [1.0, 1.5])
def test_repair_keeps_joints_without_weight(com):
    """One on a line whose weight is zero became NaN; a negative one left its line."""
    parts = {"link_masses": [1.0], "link_coms": [com], "link_inertias": [2.0]}
    constraints = {"kind": ["line", "free"], "s": {0: (0.0, 1.0)}}
    chain = make_chain([1.0], [0.0, 2.0], constraints=constraints, **parts)
    state = ChainState(np.array([[0.1, 0.2], [1.3, 0.5]]), np.zeros((2, 2)))
    repaired = repair_drift(chain, state)
    np.testing.assert_array_equal(repaired.x[0], state.x[0])
    assert np.isfinite(np.concatenate(repaired)).all()
    assert abs(_errors(chain, repaired)[0]) < abs(_errors(chain, state)[0])


def test_repair_keeps_momentum():
    for seed in range(10):
        chain, state = _drifted(seed, 5, kinds=("free",))
        repaired, m = repair_drift(chain, state), np.array(chain.masses)
        _near(m @ repaired.x, m @ state.x, 1e-14)
        _near(m @ repaired.v, m @ state.v, 1e-14)
        many = ChainState(*(np.stack([part] * 2) for part in state))
        _near(repair_drift(chain, many).x[1], repaired.x, 0)


# Forces of section B, as the tests make them


def test_torques_are_couples():
    """No net force, no net moment; power tau . omega (WAW-4.2)."""
    for seed in range(20):
        case = random_chain(seed, n=6, kinds=("free",), active=0.0)
        chain = make_chain_like(case.chain, gravity=0, k_omega=0, k_v=0)
        state = ChainState(case.x, case.v)
        tau = np.random.default_rng(seed).normal(size=6)
        tau[[0, -1]] = 0
        F = forces(chain, *state, tau)
        _near(F.sum(axis=0), [0, 0], 1e-14)
        moment = case.x[:, 0] * F[:, 1] - case.x[:, 1] * F[:, 0]
        _near(moment.sum(), 0.0, 1e-13)
        _near((F * case.v).sum(), tau[:-1] @ joint_rates(chain, state))


def test_resistance_takes_power():
    """Rolling resistance and drag never push; at rest they are zero (WAW-4.5)."""
    for seed in range(20):
        case = random_chain(seed, n=6, kinds=("free",), active=0.0)
        for kept in ("k_omega", "k_v"):
            none = {"k_omega": 0, "k_v": 0, "gravity": 0}
            none[kept] = getattr(case.chain, kept)
            chain = make_chain_like(case.chain, **none)
            v = np.random.default_rng(seed).normal(size=case.v.shape)
            assert (forces(chain, case.x, v) * v).sum() < 0
            assert not forces(chain, case.x, 0 * v).any()


WRONG_STATES = [
    ({"theta": ["a", "b"]}, "theta: wanted numbers"),
    ({"theta": 1.0}, r"theta: wanted shape \(..., 2\)"),
    ({"theta_dot": np.zeros((4, 3))}, r"theta_dot: wanted shape \(..., 2\)"),
    ({"x0": [0.0, 0.0, 0.0]}, r"x0: wanted shape \(..., 2\)"),
    ({"v0": None}, "v0: wanted numbers"),
    ({"v0": [0.0, 1j]}, "v0: wanted real numbers"),
    ({"theta": np.zeros((3, 2)), "x0": np.zeros((4, 2))}, "as many states"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG_STATES, ids=str)
def test_states_of_wrong_angles_are_refused(wrong, message):
    """Every argument by its name; a batch beside single states is none of them."""
    chain = make_chain(**THREE)
    values = dict.fromkeys(("x0", "v0", "theta", "theta_dot"), np.zeros(2))
    assert from_angles(chain, **{**values, "v0": np.zeros((5, 2))}).v.shape == (5, 3, 2)
    with pytest.raises(dyn.ShapeError, match=message):
        from_angles(chain, **{**values, **wrong})


@pytest.mark.parametrize("active", [5, None, "ab", [True, False], [0, 7], [1.0]])
def test_active_joints_are_booleans_or_indices(active):
    """Everything else is shown; two booleans of three joints are no indices."""
    with pytest.raises(
        dyn.ModelError, match=r"active is .*; valid: 3 booleans, or ind"
    ):
        joint_flags(active, 3)
    assert joint_flags((0, 2), 3) == joint_flags([True, False, True], 3)
