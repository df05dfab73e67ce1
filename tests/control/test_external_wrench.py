"""External wrench at a link: known pushes, noise, and singular positions."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control.collision import ExternalEffort
from dyn_core.control.external_wrench import PRIOR, ExternalWrench
from dyn_core.errors import SettingError, UnsupportedError

Q = np.array([0.3, -0.6, 0.2, -1.8, 0.4, 1.6, 0.8])
PUSH = np.array([0.4, -0.3, 0.2, 5.0, -7.0, 12.0])


@pytest.fixture(scope="module")
def arm():
    """The arm that ships."""
    return dyn.load("arm7")


def _effort(model, q, w, link="tool"):
    """Return the joint forces of a wrench at a link."""
    J = dyn.solver("jacobian").build(model, frame=link, reference="aligned")(q)
    return J.T @ w


@pytest.mark.parametrize("link", ["tool", "link7"])
def test_a_wrench_is_found_again(arm, link):
    """Each of its six numbers, with its sign."""
    estimate = ExternalWrench(arm, link).estimate(Q, _effort(arm, Q, PUSH, link))
    np.testing.assert_allclose(estimate.w, PUSH, atol=1e-9)
    assert not estimate.weak


def test_the_covariance_is_that_of_samples(arm):
    """Joints differ in noise; the mean is the truth."""
    deviations = np.array([2.0, 2.0, 1.0, 1.0, 0.3, 0.2, 0.1])
    wrench = ExternalWrench(arm, "tool", deviations)
    rng = np.random.default_rng(4)
    tau = _effort(arm, Q, PUSH)
    noise = rng.standard_normal((2000, 7)) * deviations
    rows = np.array([wrench.estimate(Q, tau + x).w for x in noise])
    covariance = wrench.estimate(Q, tau).covariance
    spread = np.sqrt(np.diag(covariance))
    off = (rows.mean(axis=0) - PUSH) / spread
    assert (np.abs(off) < 4 / np.sqrt(2000)).all()
    ratio = np.cov(rows.T) / np.outer(spread, spread)
    wanted = covariance / np.outer(spread, spread)
    np.testing.assert_allclose(ratio, wanted, atol=0.12)
    worse = np.linalg.pinv(_effort(arm, Q, np.eye(6)))
    plain = np.diag(worse @ np.diag(deviations**2) @ worse.T)
    assert (np.diag(covariance) <= plain * (1 + 1e-9)).all()


def test_a_weak_direction_is_zero_and_not_known(arm):
    """A stretched arm does not feel a pull along itself; the others stay."""
    q = np.zeros(7)
    J = dyn.solver("jacobian").build(arm, frame="tool", reference="aligned")(q)
    scale = np.repeat([0.1, 1.0], 3)
    U, s, _ = np.linalg.svd(scale[:, None] * J)
    weak = [u for u, value in zip(U.T, s, strict=True) if value < 0.02]
    assert weak
    estimate = ExternalWrench(arm, "tool").estimate(q, J.T @ PUSH)
    assert estimate.weak
    for u in weak:
        assert u @ (estimate.w / scale) == pytest.approx(0.0, abs=1e-9)
        unit = u / scale
        assert unit @ estimate.covariance @ unit == pytest.approx(PRIOR**2, rel=1e-6)
    strong = [u for u, value in zip(U.T, s, strict=True) if value > 0.04]
    for u in strong:
        assert u @ (estimate.w / scale) == pytest.approx(u @ (PUSH / scale), abs=1e-6)


def test_it_is_continuous_into_a_singular_position(arm):
    """No step of the wrench along a motion that ends stretched."""
    wrench = ExternalWrench(arm, "tool")
    tau = np.array([1.0, 2.0, -1.0, 3.0, 0.5, -0.5, 0.2])
    rows = np.array([wrench.estimate(x * Q, tau).w for x in np.linspace(1, 0, 4001)])
    steps = np.abs(np.diff(rows, axis=0)).max(axis=1)
    assert steps.max() < 0.02 * np.abs(rows).max()


def test_a_push_in_a_simulation_is_found_by_the_observer(arm):
    """Sign and size, through the momentum observer, while the arm falls."""
    step = dyn.solver("semi_implicit_euler").build(
        arm, inputs=["f_ext"], joint_friction=True, joint_springs=True
    )
    poses = dyn.solver("forward_kinematics").build(arm, frames=["tool", "link7"])
    external = ExternalEffort(arm, 200.0)
    wrench = ExternalWrench(arm, "tool")
    hold = dyn.solver("rnea").build(arm, joint_friction=True, joint_springs=True)
    q, qd, h = Q.copy(), np.zeros(7), 5e-4
    for k in range(400):
        tool, body = poses(q)
        r = tool[:3, 3] - body[:3, 3]
        R = body[:3, :3]
        moment = PUSH[:3] + np.cross(r, PUSH[3:])
        f_ext = np.zeros((7, 6))
        f_ext[6] = np.r_[R.T @ moment, R.T @ PUSH[3:]]
        tau = hold(q, 0 * q, 0 * q) - 2.0 * qd
        effort = external.update(h * k, q, qd, tau)
        q, qd = step(q, qd, tau, h, f_ext)[:2]
    estimate = wrench.estimate(q, effort)
    np.testing.assert_allclose(estimate.w, PUSH, rtol=0.03, atol=0.05)


def test_what_has_no_wrench_is_refused(arm):
    """The root and unknown links; deviations of zero."""
    for link in ("link0", "hand"):
        with pytest.raises(SettingError, match="moving link"):
            ExternalWrench(arm, link)
    for value in (0.0, -1.0, np.nan):
        with pytest.raises(SettingError, match="deviations"):
            ExternalWrench(arm, "tool", value)
    with pytest.raises(SettingError, match="threshold"):
        ExternalWrench(arm, "tool", threshold=0.0)


def test_loops_are_refused():
    """Joints feel their forces, too, which would be part of the wrench."""
    loop = dyn.make_loop("pin", "point", "link2", at_a={"xyz": [0.5, 0.2, 0]})
    with pytest.raises(UnsupportedError, match=r"loops \(pin"):
        ExternalWrench(dyn.load("two_link").with_loops(loop), "link2")
