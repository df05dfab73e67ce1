"""Bounds of sampled gains: against the eigenvalues of the sampled loop itself."""

import re

import numpy as np
import pytest
from scipy.linalg import expm

import dyn_core as dyn
from dyn_core.control import Controller
from dyn_core.control.gain_limits import SampledGains, doubts
from dyn_core.control.safety.health import Health
from dyn_core.control.states.state_samples import Samples

T = 0.002
Q0 = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8])
NAMES = tuple(f"joint{k}" for k in range(1, 8))


def _radius(K, D, I, B, H, period):
    """Return the spectral radius of the loop that holds -K e - D e' - s for a period."""
    n, inverse = len(H), np.linalg.inv(H)
    zero, one = np.zeros((n, n)), np.eye(n)
    A = np.block(
        [[zero, one, zero], [zero, -inverse @ B, inverse], [np.zeros((n, 3 * n))]]
    )
    hold = expm(A * period)  # of e, e' and the effort that is held
    # effort = -(K + I T) e - D e' - s,  s+ = s + I T e
    law = np.hstack([-(K + I * period), -D, -one])
    state = hold[: 2 * n, : 2 * n] @ np.eye(2 * n, 3 * n)
    top = state + hold[: 2 * n, 2 * n :] @ law
    bottom = np.hstack([I * period, zero, one])
    keep = slice(None) if I.any() else slice(0, 2 * n)
    return np.abs(np.linalg.eigvals(np.vstack([top, bottom])[keep, keep])).max()


def _one(p, d, i=0.0, b=0.0, h=1.0, stiff=False):
    """Return the gains of one joint of inertia h."""
    parts = (np.array([float(x)]) for x in (p, d, i, b))
    return SampledGains(("j",), *parts, stiff, np.array([[float(h)]]))


@pytest.mark.parametrize("cycle", [1e-3, 2e-3, 1e-2])
@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_are_those_of_the_sampled_joint(cycle, seed):
    """Without damping of its own they are exact: at 0.999 stable, at 1.001 not."""
    period = cycle
    rng = np.random.default_rng(seed)
    d = rng.uniform(0.02, 0.98) * 2 / period
    p = rng.uniform(0.02, 0.98) * 2 * d / period
    gains = _one(p, d)
    bounds = {k: float(x[1][0]) for k, x in gains._bounds(period).items()}
    assert bounds["d"] == pytest.approx(2 / period)
    assert bounds["p"] == pytest.approx(2 * d / period)
    matrices = [np.array([[x]]) for x in (p, d, 0.0, 0.0, 1.0)]

    def stable(**changed):
        rows = dict(zip("KDIBH", matrices, strict=True))
        rows |= {k: np.array([[x]]) for k, x in changed.items()}
        return _radius(*rows.values(), period) < 1

    assert stable()
    assert gains.beyond(period) == []
    for key, bound in (("K", bounds["p"]), ("I", bounds["i"])):
        assert stable(**{key: 0.999 * bound})
        assert not stable(**{key: 1.001 * bound})
    small = 0.01 * d / period  # the bound of d, with a p that allows it
    assert stable(K=small, D=0.999 * 2 / period)
    assert not stable(K=small, D=1.001 * 2 / period)
    assert _one(small, 2 / period).beyond(period)[0].gain == "d"
    assert [x.gain for x in _one(2 * d / period, d).beyond(period)] == ["p"]
    assert [x.gain for x in _one(p, d, bounds["i"]).beyond(period)] == ["i"]


@pytest.mark.parametrize("stiff", [False, True])
def test_damping_of_the_joint_makes_up_for_a_missing_gain(stiff):
    """What the bounds let pass is stable, with any damping; without it d is needed."""
    rng = np.random.default_rng(3)
    assert [x.gain for x in _one(100.0, 0.0, stiff=stiff).beyond(T)] == ["p"]
    assert _one(100.0, 0.0, b=2.0, h=4.0, stiff=stiff).beyond(T) == []
    passed = 0
    for _ in range(300):
        h, b = 10.0 ** rng.uniform(-3, 2), 10.0 ** rng.uniform(-3, 3)
        unit = h if stiff else 1.0
        d = unit * 10.0 ** rng.uniform(-1, 3.2)
        p = unit * 10.0 ** rng.uniform(0, 6)
        i = rng.choice([0.0, unit * 10.0 ** rng.uniform(0, 8)])
        if _one(p, d, i, b, h, stiff).beyond(T):
            continue
        passed += 1
        scale = 1.0 if stiff else h
        rows = (np.array([[x]]) for x in (scale * p, scale * d, scale * i, b, h))
        assert _radius(*rows, T) < 1 + 1e-9, (p, d, i, b, h)
    assert passed > 50


@pytest.mark.parametrize("seed", range(20))
def test_stiff_gains_are_judged_with_all_joints_together(seed):
    """The largest eigenvalue of H^-1 D: exact for all, where one joint alone is not."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, 4))
    H = A @ A.T + 0.1 * np.eye(4)
    D = rng.uniform(0.1, 1.0, 4)
    fastest = np.linalg.eigvals(np.linalg.inv(H) * D).real.max()
    zero = np.zeros(4)
    for share, good in ((0.999, True), (1.001, False)):
        d = share * D * 2 / T / fastest
        gains = SampledGains(tuple("abcd"), 1e-3 * d / T, d, zero, zero, True, H)
        rows = np.diag(gains.p), np.diag(d), np.diag(zero), np.diag(zero), H
        assert bool(_radius(*rows, T) < 1) is good
        assert (gains.beyond(T) == []) is good
    (fault,) = gains.beyond(T)
    assert fault.bound == pytest.approx(fault.value / 1.001)
    assert (
        "1/s" not in fault.text and ", or all velocity gains times 0.9," in fault.text
    )
    far = SampledGains(tuple("abcd"), zero, 7.0 * d, zero, zero, True, H)
    share = re.search(r"gains times (\S+),", far.beyond(T)[0].text)[1]
    smaller = SampledGains(
        tuple("abcd"), zero, float(share) * far.d, zero, zero, True, H
    )
    assert smaller.beyond(T) == []


def test_sentences_name_joint_bound_and_period():
    """With the units of the mode, and half of a bound as a doubt."""
    (fault,) = _one(100.0, 1500.0).beyond(T)
    assert fault.text == (
        "velocity gain d of joint 'j' is 1500; valid: less than 1000 1/s, where states"
        " come each 0.002 s: sampled beyond it the joint is unstable"
    )
    assert "N·m·s/rad" in _one(1.0, 1500.0, stiff=True).beyond(T)[0].text
    assert doubts(_one(100.0, 499.0), T) == []
    assert doubts(_one(100.0, 600.0), T) == [
        "velocity gain d of joint 'j' is 60% of the bound at which sampling each 0.002 s"
        " makes it unstable"
    ]
    assert _one(0.0, 0.0).beyond(T) == []
    assert [x.gain for x in _one(0.0, 10.0, 1.0).beyond(T)] == ["i"]


def test_without_inertia_only_what_needs_none_is_checked():
    """Of a robot with loops."""
    one = np.ones(1)
    stiff = SampledGains(("j",), 1e4 * one, 1e9 * one, 5 * one, 0 * one, True)
    assert stiff.beyond(T) == []
    stiff = SampledGains(("j",), 1e4 * one, 9 * one, 0 * one, 0 * one, True)
    assert [x.gain for x in stiff.beyond(T)] == ["p"]
    plain = SampledGains(("j",), 1e4 * one, 9 * one, 0 * one, 5 * one)
    assert [x.gain for x in plain.beyond(T)] == ["p"]


@pytest.fixture
def arm(shipped):
    """The shipped arm; its joints have damping."""
    return shipped["arm7"]


@pytest.mark.parametrize(
    ("late", "bound"), [(0.0, 0.0667), (0.5, 0.0428), (1.0, 0.0267)]
)
def test_a_late_effort_makes_shorter_periods_unstable(late, bound):
    """The figures of the page, p = 300 and d = 30; `late` is a part of the period."""
    law = np.array([[-300.0, -30.0]])

    def radius(hold):
        state, both = np.array([[1.0, hold], [0.0, 1.0]]), np.array([hold**2 / 2, hold])
        rest = hold - late * hold
        new = np.array([[rest**2 / 2], [rest]])
        old = both[:, None] - new
        loop = np.block([[state + new @ law, old], [law, np.zeros((1, 1))]])
        return np.abs(np.linalg.eigvals(loop)).max()

    assert radius(0.99 * bound) < 1 < radius(1.01 * bound)
    if not late:
        assert _one(300.0, 30.0)._bounds(bound)["d"][1][0] == pytest.approx(
            30, rel=1e-3
        )


@pytest.fixture(autouse=True)
def period(monkeypatch):
    """Return a function that sets the period which is measured."""
    measured = [T]
    read = property(lambda _: measured[0], lambda *_: None)
    monkeypatch.setattr(Samples, "period", read, raising=False)
    return lambda x: measured.__setitem__(0, x)


def _drive(controller, count, since=0.0):
    """Return the last effort of some states at rest."""
    for k in range(count):
        tau = controller.update(since + T * k, Q0, np.zeros(7))
    return tau


BAD = [  # gains, what is said
    ({"kp": 400.0, "kd": 1e9}, "velocity gain d of joint 'joint1' is 1e\\+09; valid: le"),
    ({"kp": 1e9, "kd": 40.0}, "position gain p of joint 'joint1' is 1e\\+09; valid: les"),
    ({"kp": 400.0, "kd": 40.0, "ki": 1e6, "integral_limit": 9.0},
     "integral gain i of joint 'joint1' is 1e\\+06; valid: less than 1.7"),
]  # fmt: skip


@pytest.mark.parametrize(("gains", "message"), BAD)
def test_gains_beyond_what_sampling_carries_are_refused(arm, gains, message):
    """Once the period is known, and those that are set stay."""
    controller = Controller(arm, 400.0, 40.0, engine="graph")
    before = _drive(controller, 5)
    assert before.any()
    with pytest.raises(dyn.SettingError, match=message):
        controller.set_gains(**gains)
    assert (controller.kp == 400.0).all()
    assert (controller.kd == 40.0).all()
    assert not controller.ki.any()
    np.testing.assert_allclose(_drive(controller, 1, since=0.01), before)


@pytest.mark.parametrize(("gains", "message"), BAD)
def test_gains_set_before_states_are_judged_before_the_first_torque(
    arm, period, gains, message
):
    """No torque, and words; corrected gains drive after a reset by a person."""
    period(None)
    controller = Controller(arm, engine="graph", **gains)
    controller.set_gains(**gains)
    period(T)
    health = Health(controller, 0.1)
    assert not _drive(controller, 10).any()
    stop = controller.stopped
    assert (stop.kind, stop.cause) == ("zero", "gains")
    assert re.match(f"gains: {message}", stop.reason)
    level, said = health.summary(health.conditions(0.02))
    assert level == 2
    assert "stopped: gains: " in said
    controller.set_gains(400.0, 40.0, 0.0)
    assert not _drive(controller, 3, since=0.02).any()  # a stop ends by a person alone
    controller.reset_stop()
    assert _drive(controller, 5, since=0.03).any()
    assert controller.stopped is None


def test_gains_are_mended_one_joint_after_the_other(arm, period):
    """Less far beyond the bounds passes, further does not; none drives before all hold.

    Each was refused because of the other joint.
    """
    controller = Controller(arm, 400.0, 60.0, mode="impedance", engine="graph")
    assert not _drive(controller, 10).any()
    assert controller.stopped.cause == "gains"
    kd, drove = np.full(7, 60.0), []
    for turn, joint in enumerate((6, 4, 5, 2), 1):
        with pytest.raises(dyn.SettingError, match="velocity gain d"):
            controller.set_gains(400.0, 1e3)
        kd[joint] = 0.4
        controller.set_gains(400.0, kd)
        controller.reset_stop()
        drove.append(_drive(controller, 5, since=0.01 + 0.01 * turn).any())
        gains = controller.sampled_gains(controller.kp, kd, controller.ki)
        assert drove[-1] == (not gains.beyond(T))
    assert not drove[0]
    controller.set_gains(1.0, 0.4)
    controller.reset_stop()
    assert _drive(controller, 5, since=0.06).any()
    with pytest.raises(dyn.SettingError, match="velocity gain d"):
        controller.set_gains(1.0, 20.0)


def test_a_slower_source_is_judged_anew(arm, period):
    """Gains for 500 Hz are none for 5 Hz: after a reset the period is another one."""
    controller = Controller(arm, 400.0, 40.0, engine="graph")
    assert _drive(controller, 5).any()
    period(0.2)
    assert _drive(controller, 1, since=0.01).any()  # a WARN, see below
    controller.reset()
    assert not _drive(controller, 5, since=0.02).any()
    assert "each 0.2 s" in controller.stopped.reason


@pytest.mark.parametrize(("kd", "drives"), [(900.0, True), (4500.0, False)])
def test_what_is_far_beyond_never_drives(arm, kd, drives):
    """From the third state on, whose period is known roughly; 1000 is the bound."""
    controller = Controller(arm, 400.0, kd, engine="graph")
    efforts = [controller.update(T * k, Q0, np.zeros(7)) for k in range(15)]
    assert efforts[2].any() == drives
    assert efforts[-1].any() == drives


def test_gains_near_a_bound_are_a_warning(arm, period):
    """Beyond half of it, while it drives; beyond the whole of it, too."""
    controller = Controller(arm, 400.0, 40.0, engine="graph")
    health = Health(controller, 0.1)
    _drive(controller, 5)
    assert [c.key for c in health.conditions(0.01)] == ["ok"]
    period(0.03)
    (condition, *_) = health.conditions(0.01)
    assert (condition.level, condition.key) == (1, "gains")
    message = "velocity gain d of joint 'joint1', and of 6 more joints, is 60% of the b"
    assert condition.message.startswith(message)
    period(None)
    assert [c.key for c in health.conditions(0.01)] == ["ok"]


@pytest.mark.parametrize("mode", ["impedance", "gravity"])
def test_each_mode_has_the_bounds_of_its_law(arm, mode):
    """Stiffness and damping act on the inertia; gravity compensation has kd alone."""
    controller = Controller(arm, 4.0, 0.5, mode=mode, engine="graph")
    assert controller.gain_doubts() == []
    _drive(controller, 5)
    assert controller.stopped is None
    H = dyn.solver("crba").build(arm, engine="graph")(Q0)
    if mode == "impedance":
        d = (
            0.5
            * np.ones(7)
            * 2
            / T
            / np.linalg.eigvals(np.linalg.inv(H) * 0.5).real.max()
        )
        controller.set_gains(4.0, 0.99 * d)
        with pytest.raises(dyn.SettingError, match="velocity gain d .* N·m·s/rad"):
            controller.set_gains(4.0, 1.01 * d)
    else:
        controller.set_gains(1e12, 990.0)
        with pytest.raises(dyn.SettingError, match="velocity gain d .* 1000 1/s"):
            controller.set_gains(1e12, 1010.0)


def test_an_effort_limit_above_the_models_is_a_warning(arm):
    """With both numbers; one below is none."""
    controller = Controller(
        arm, engine="graph", effort_limits={"joint1": 1e9, "joint2": 5.0}
    )
    health = Health(controller, 0.1)
    conditions = {c.key: c for c in health.conditions(0.0)}
    assert conditions["raised limits"].message == (
        "effort limit of joint1 is raised from 87 to 1e+09"
    )
    assert conditions["raised limits"].level == 1
    assert (
        health.changes(list(conditions.values())) == []
    )  # a node logs it at the start
