"""Linear feedback and estimation: identities, a peer, closed loops, refusals."""

import warnings

import numpy as np
import pytest
from scipy import linalg

import dyn_core as dyn
from dyn_core.control import Controller
from dyn_core.errors import ModelWarning
from dyn_core.model.passive_forces import without_dry_friction

POLE = dyn.load("cart_pole")
UP = {"motors": ["slide"]}


def upright():
    """Return the position in which the pole of cart_pole stands."""
    forward = dyn.solver("forward_kinematics").build(POLE)
    return max(
        (np.array([0.0, angle]) for angle in (0.0, np.pi)),
        key=lambda q: _height(forward(q)),
    )


def _height(poses):
    hinge = POLE.child_links[-1]
    k = POLE.frame_names.index(hinge)
    centre = np.append(np.asarray(POLE.value(f"{hinge}.com"), float), 1.0)
    return (poses[k] @ centre)[2]


def weights(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n))
    return X @ X.T + np.eye(n)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("period", [None, 1e-3, 0.05])
@pytest.mark.parametrize("name", ["arm7", "two_link", "every_joint"])
def test_the_riccati_equation_holds_and_the_loop_is_stable(name, period):
    """Also for joints with quaternions, whose displacements have three numbers."""
    model = dyn.load(name)
    q, every = model.random(3), model.joint_names
    hold = dyn.lqr(
        model, q, weights(2 * model.nv), weights(model.nv), period=period, motors=every
    )
    A, B, S, K = hold.A, hold.B, hold.cost, hold.K
    Q, R = weights(2 * model.nv), weights(model.nv)
    if period is None:
        residual = A.T @ S + S @ A + Q - S @ B @ K
        assert hold.poles.real.max() < 0
        np.testing.assert_allclose(R @ K, B.T @ S, rtol=1e-9, atol=1e-9)
    else:
        residual = A.T @ S @ (A - B @ K) + Q - S
        assert abs(hold.poles).max() < 1
    assert abs(residual).max() <= 1e-8 * abs(S).max()


def test_holding_efforts_balance_weight_and_springs():
    """At the position itself the control is what keeps the robot at rest."""
    model = dyn.load("every_joint")
    q = model.random(1)
    hold = dyn.lqr(model, q, 1.0, 1.0, motors=model.joint_names)
    tau = hold.control(q, np.zeros(model.nv))
    np.testing.assert_array_equal(tau, hold.tau)
    at_rest = dyn.solver("forward_dynamics").build(model, joint_springs=True)
    np.testing.assert_allclose(at_rest(q, 0 * tau, tau), 0.0, atol=1e-9)


@pytest.mark.parametrize("period", [None, 0.01])
def test_the_linear_model_is_the_motion_nearby(period):
    """A and B predict a simulated motion to second order; dry friction is left out."""
    model = dyn.load("every_joint")
    calm = without_dry_friction(model)
    q = model.random(1)
    hold = dyn.lqr(model, q, 1.0, 1.0, period=period, motors=model.joint_names)
    fd = dyn.solver("forward_dynamics").build(
        calm, joint_springs=True, joint_friction=True
    )
    rng = np.random.default_rng(0)
    x, du = rng.normal(size=2 * model.nv), rng.normal(size=model.nv)

    def slope(h):
        dq, qd = np.split(h * x, 2)
        return np.concatenate([qd, fd(model.integrate(q, dq), qd, hold.tau + h * du)])

    rates = (slope(1e-5) - slope(-1e-5)) / 2e-5
    if period is None:
        np.testing.assert_allclose(
            hold.A @ x + hold.B @ du, rates, rtol=1e-5, atol=1e-5
        )
        return
    slow = dyn.lqr(model, q, 1.0, 1.0, motors=model.joint_names)
    n = len(slow.A)
    both = np.block([[slow.A, slow.B], [np.zeros((model.nv, n + model.nv))]])
    exact = (linalg.expm(period * both) @ np.concatenate([x, du]))[:n]
    np.testing.assert_allclose(hold.A @ x + hold.B @ du, exact, rtol=1e-9, atol=1e-9)


def test_it_balances_a_pole_with_a_motor_at_the_cart():
    """Simulated with the full equations; a flipped sign of the feedback falls."""
    q = upright()
    hold = dyn.lqr(POLE, q, [10.0, 10.0, 1.0, 1.0], 0.1, period=0.01, **UP)
    start = q + [0.1, 0.1]
    run = dyn.simulate(POLE, lambda t, q, qd: hold.control(q, qd), q0=start,
                       duration=8.0, period=0.01, joint_friction=False)  # fmt: skip
    np.testing.assert_allclose(run.q[-1], q, atol=1e-3)
    assert (run.tau[:, 1] == 0).all()
    wrong = dyn.simulate(POLE, lambda t, q, qd: 2 * hold.tau - hold.control(q, qd),
                         q0=start, duration=2.0, period=0.01,
                         joint_friction=False)  # fmt: skip
    assert abs(wrong.q[-1] - q).max() > 1.0


def test_a_batch_is_its_rows():
    """Gains act row by row."""
    hold = dyn.lqr(POLE, upright(), 1.0, 1.0, **UP)
    rng = np.random.default_rng(0)
    q, qd = rng.normal(size=(2, 5, 2))
    rows = np.array([hold.control(a, b) for a, b in zip(q, qd, strict=True)])
    np.testing.assert_allclose(hold.control(q, qd), rows, rtol=1e-14)


@pytest.mark.parametrize("name", ["arm7", "cart_pole", "every_joint"])
def test_gains_are_those_of_python_control(name):
    """For lqr, dlqr and dlqe."""
    pytest.importorskip("control.statefbk", reason="no python-control")
    import control

    model = dyn.load(name)
    q, every = model.random(2), model.joint_names
    n, nv = 2 * model.nv, model.nv
    Q, R = weights(n), weights(nv)
    slow = dyn.lqr(model, q, Q, R, motors=every)
    fast = dyn.lqr(model, q, Q, R, period=0.01, motors=every)
    K = control.lqr(slow.A, slow.B, Q, R, method="scipy")[0]
    np.testing.assert_allclose(slow.K, K, rtol=1e-7, atol=1e-7 * abs(K).max())
    K = control.dlqr(fast.A, fast.B, Q, R, method="scipy")[0]
    np.testing.assert_allclose(fast.K, K, rtol=1e-7, atol=1e-7 * abs(K).max())
    plant = control.ss(slow.A, slow.B, np.eye(n), 0)
    sampled = control.c2d(plant, 0.01)
    np.testing.assert_allclose(fast.A, sampled.A, rtol=1e-9, atol=1e-9)
    seen = dyn.kalman(model, q, {"position": 0.01}, period=0.01, effort_noise=2.0,
                      motors=every)  # fmt: skip
    C = np.eye(n)[:nv]
    L = control.dlqe(fast.A, fast.B, C, 4.0 * np.eye(nv), 1e-4 * np.eye(nv))[0]
    # Its gain corrects the next prediction.
    np.testing.assert_allclose(fast.A @ seen.L, L, rtol=1e-6, atol=1e-6 * abs(L).max())


def test_an_estimate_has_the_predicted_covariance():
    """Errors of a long simulated run of the linear model, by seed."""
    q = upright()
    noise = {"slide.position": 0.01, "hinge.position": 0.02}
    observer = dyn.kalman(POLE, q, noise, period=0.01, effort_noise=0.5, **UP)
    hold = dyn.lqr(POLE, q, 1.0, 1.0, period=0.01, **UP)
    every = dyn.lqr(POLE, q, 1.0, 1.0, period=0.01)
    rng = np.random.default_rng(0)
    x, guess, errors = np.zeros(4), (q, np.zeros(2)), []
    for _ in range(20_000):
        tau = hold.control(*guess)
        x = every.A @ x + every.B @ (tau + rng.normal(0, 0.5, 2))
        seen = x[:2] + rng.normal(0, [0.01, 0.02])
        guess = observer.update(guess, tau, (q + seen, np.zeros(2)))
        errors.append(observer.state(*guess) - x)
    measured = np.cov(np.array(errors[500:]).T)
    np.testing.assert_allclose(
        np.diag(measured), np.diag(observer.covariance), rtol=0.1
    )
    assert abs(observer.poles).max() < 1


def test_an_estimate_at_rest_stays_and_forces_move_it():
    """The forces that hold the robot move nothing; others do as A and B say."""
    model = dyn.load("arm7")
    q, still = model.random(2), np.zeros(7)
    seen = dyn.kalman(model, q, {"position": 1e-3}, period=0.01, effort_noise=0.1)
    assert abs(seen.tau).max() > 1.0
    for got, expected in zip(
        seen.update((q, still), seen.tau, (q, still)), (q, still), strict=True
    ):
        np.testing.assert_allclose(got, expected, atol=1e-12)
    push = np.linspace(-0.1, 0.1, 7)
    moved = seen.B @ push
    measured = model.integrate(q, moved[:7]), moved[7:]
    x = seen.state(*seen.update((q, still), seen.tau + push, measured))
    np.testing.assert_allclose(x, moved, atol=1e-12)


def test_a_joint_without_a_motor_gets_no_force():
    """Not even the little that rounding asks for."""
    hold = dyn.lqr(POLE, upright() + [0.0, 1e-8], 1.0, 1.0, **UP)
    assert hold.tau[1] == 0.0
    assert hold.control(upright() + 0.1, np.ones(2))[1] == 0.0


def test_what_cannot_be_held_stabilised_or_seen_is_named():
    """Positions, modes and weights; each says which joints."""
    q = upright()
    with pytest.raises(dyn.UnsupportedError, match="cannot be held.*'hinge'"):
        dyn.lqr(POLE, q + [0.0, 0.3], 1.0, 1.0, **UP)
    far = POLE.with_values({"gravity": [0.0, 0.0, 0.0]})
    with pytest.raises(dyn.UnsupportedError, match="^'hinge': no motor"):
        # A pole whose centre is at its hinge does not feel the cart.
        link = far.child_links[-1]
        dyn.lqr(far.with_values({f"{link}.com": [0.0, 0.0, 0.0]}), q, 1.0, 1.0, **UP)
    with pytest.raises(dyn.SettingError, match="motion of 'slide'"):
        dyn.lqr(POLE, q, [0.0, 1.0, 0.0, 1.0], 1.0)
    with pytest.raises(dyn.UnsupportedError, match="motion of 'slide'.*measured"):
        dyn.kalman(POLE, q, {"velocity": 0.1}, period=0.01)
    quadruped = dyn.load("quadruped")
    with pytest.raises(dyn.UnsupportedError, match="'root_joint.5'"):
        dyn.lqr(quadruped, quadruped.neutral(), 1.0, 1.0)
    with pytest.raises(dyn.UnsupportedError, match="closed loops"):
        dyn.lqr(dyn.load("four_bar") if "four_bar" in dyn.robots.names() else _loop(),
                [0.0] * 3, 1.0, 1.0)  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("period", [None, 1e-3, 1e-6])
def test_gains_are_stable_or_refused(period):
    """LAPACK fails, or its solution is wrong, where weights differ by many powers."""
    refused = 0
    for name, q in (("two_link", [0.3, -0.4]), ("cart_pole", upright())):
        model = dyn.load(name)
        for weight in 10.0 ** np.array([-100, -40, -20, -16, -4, 4, 20, 40]):
            try:
                poles = dyn.lqr(model, q, weight, 1.0, period=period).poles
            except dyn.UnsupportedError as error:
                assert "Riccati equation is not solved" in str(error)
                refused += 1
            else:
                assert (poles.real if period is None else abs(poles) - 1).max() < 0
    assert 0 < refused < 16


def _loop():
    tip = dyn.make_loop("tip", "axes", "link3", at_a={"xyz": (0.6, 0, 1.2)},
                        at_b={"xyz": (0.3, 0, 0)}, axes=("x", "z"))  # fmt: skip
    return dyn.load("planar3").with_loops(tip)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Q": -1.0}, "Q is not positive semidefinite"),
        (
            {"Q": [[1, 2], [0, 1]]},
            r"Q: wanted shape \(\), \(4,\) or \(4, 4\), got shape",
        ),
        ({"Q": "x"}, r"Q: wanted numbers of shape \(\), \(4,\) or \(4, 4\), got 'x'"),
        ({"Q": np.nan}, "Q is not positive"),
        ({"R": 0.0}, "R is not positive definite"),
        ({"R": [1.0, 2.0, 3.0]}, r"R: wanted shape \(\), \(2,\) or \(2, 2\), got"),
        ({"q": [0.0, np.nan]}, "not finite"),
        ({"q": [0.0]}, "q"),
        ({"period": 0.0}, "period is 0.0; valid: a number above 0"),
        ({"period": np.inf}, "period is inf"),
        ({"motors": ["slid"]}, "did you mean 'slide'"),
        ({"motors": ["slide", "slide"]}, "'slide' is named twice; valid: each joint"),
        ({"motors": "slide"}, "motors is 'slide'; valid: a list of names of joints"),
        ({"motors": 3}, "motors is 3; valid: a list of names of joints"),
    ],
)
def test_wrong_arguments_are_refused(changes, message):
    """Each says what is wrong."""
    arguments = {"q": upright(), "Q": 1.0, "R": 1.0, **changes}
    with pytest.raises(dyn.DynError, match=message):
        dyn.lqr(POLE, **arguments)


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ({}, "measured is {}; valid: a deviation"),
        ({"slid.position": 1.0}, "did you mean 'slide.position'"),
        ({"slide.position": 0.0}, "above 0"),
        ({"position": np.nan}, "above 0"),
        ({"position": 1e300}, "deviations that differ less"),
    ],
)
def test_wrong_measurements_are_refused(measured, message):
    """Names and deviations; also a deviation whose square is infinite."""
    with pytest.raises((dyn.SettingError, dyn.UnsupportedError), match=message):
        dyn.kalman(POLE, upright(), measured, period=0.01)
    with pytest.raises(dyn.UnsupportedError, match="deviations that differ less"):
        dyn.kalman(POLE, upright(), {"position": 1.0}, period=0.01, effort_noise=1e300)


@pytest.mark.parametrize("wrong", ["arm7.urdf", None])
def test_a_path_is_no_robot(wrong):
    """As in all functions that take a robot."""
    calls = (
        lambda: dyn.lqr(wrong, [0.0], 1.0, 1.0),
        lambda: dyn.kalman(wrong, [0.0], {"position": 1.0}, period=0.01),
        lambda: Controller(wrong, 1.0, 1.0),
    )
    for call in calls:
        with pytest.raises(dyn.UnsupportedError, match="valid: what dyn.load returns"):
            call()


def test_a_position_beyond_the_limits_and_a_long_period_are_doubtful():
    """Degrees for radians, and milliseconds for seconds, as in a simulation."""
    model = dyn.load("two_link")
    position = r"is q in degrees\? q is beyond the limits of joint joint1 by 86.9"
    with pytest.warns(ModelWarning, match=f"robot 'two_link': {position}"):
        dyn.lqr(model, [90.0, 0.0], 1.0, 1.0)
    with pytest.warns(ModelWarning, match=position):
        dyn.kalman(model, [90.0, 0.0], {"position": 1e-3}, period=1e-3)
    with pytest.warns(ModelWarning, match="period 20 s is long: .*valid: seconds"):
        dyn.lqr(model, [np.pi / 2, 0.0], 1.0, 1.0, period=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        dyn.lqr(model, [np.pi / 2, 0.0], 1.0, 1.0, period=0.01)


def test_states_of_different_numbers_of_rows_are_refused():
    """NumPy's own error said neither which array nor what fits."""
    regulator = dyn.lqr(dyn.load("two_link"), [0.3, 0.2], np.eye(4), np.eye(2))
    q, qd = np.zeros((3, 2)), np.zeros((2, 2))
    assert regulator.state(q, np.zeros((3, 2))).shape == (3, 4)
    for wrong in (qd, qd[0]):
        with pytest.raises(dyn.ShapeError, match="qd: .*3, 2.*as q has"):
            regulator.state(q, wrong)


def test_an_estimate_is_of_one_state():
    """A batch is refused by the name of its array."""
    observer = dyn.kalman(POLE, upright(), {"position": 1e-3}, period=0.01)
    one, several = (upright(), np.zeros(2)), np.zeros((3, 2))
    for state, seen, name in (
        ((several, several), one, "q"),
        ((several, several), (several, several), "q"),
        (one, (several, several), "q"),
        (one, (upright(), several), "qd"),
    ):
        with pytest.raises(dyn.ShapeError, match=rf"^{name}: wanted shape \(2,\)"):
            observer.update(state, np.zeros(2), seen)


def test_a_measurement_that_did_not_come_is_predicted():
    """NaN of a lost sample spoilt the estimate for ever; three words were a ValueError."""
    observer = dyn.kalman(POLE, upright(), {"position": 1e-3}, period=0.01)
    state, force = (upright() + 0.01, np.array([0.1, -0.2])), np.zeros(2)
    x = (
        observer.A @ observer.state(*state)
        + observer.B @ (force - observer.tau)[list(observer.motors)]
    )
    q, qd = observer.update(state, force, None)
    np.testing.assert_allclose(observer.state(q, qd), x, atol=1e-12)
    lost = (np.full(2, np.nan), np.zeros(2))
    with pytest.raises(dyn.NonFiniteError, match="measured holds NaN.* or None where"):
        observer.update(state, force, lost)
    with pytest.raises(dyn.NonFiniteError, match="tau holds NaN or infinity; valid"):
        observer.update(state, lost[0], state)
    for wrong in (np.zeros(4), (upright(), upright(), upright())):
        with pytest.raises(dyn.ShapeError, match=r"measured: wanted a pair \(q, qd\)"):
            observer.update(state, force, wrong)
    with pytest.raises(dyn.ShapeError, match=r"state: wanted a pair \(q, qd\)"):
        observer.update(None, force, state)


@pytest.mark.parametrize("motors", ["slide", all, 3])
def test_motors_are_a_list_of_names(shipped, motors):
    """The letters of a name were looked up one by one."""
    said = "motors is .*; valid: a list of names of joints"
    with pytest.raises(dyn.SettingError, match=said):
        dyn.lqr(shipped["cart_pole"], np.zeros(2), 1.0, 1.0, motors=motors)


def test_a_regulator_is_printed_in_a_line(shipped):
    """Its matrices filled three hundred lines, also in the error of a run."""
    model = shipped["cart_pole"]
    hold = dyn.lqr(model, np.zeros(2), 1.0, 1.0, **UP)
    assert repr(hold) == (
        "<Regulator of 'cart_pole': x (4,), motors 1, continuous time; attributes:"
        " model, q, tau, motors, period, A, B, K, cost, poles>"
    )
    observer = dyn.kalman(model, np.zeros(2), {"position": 1e-3}, period=0.01, **UP)
    assert repr(observer).startswith(
        "<Estimator of 'cart_pole': x (4,), motors 1, each 0"
    )
    for law in (hold, hold.control):
        with pytest.raises(dyn.SettingError) as caught:
            dyn.simulate(model, law, duration=0.01, progress=False)
        assert "valid: lambda t, q, qd: " in str(caught.value)
        assert len(str(caught.value)) < 400


def test_a_plan_is_no_controller_and_says_what_is(shipped):
    """Its method control is."""
    model = shipped["cart_pole"]
    plan = dyn.plan(model, [dyn.cost.velocity()], duration=0.1, knots=2)
    result = plan.solve(np.zeros(2), np.zeros(2))
    with pytest.raises(dyn.SettingError, match="PlanResult.*valid: its method control"):
        dyn.simulate(model, result, duration=0.01, progress=False)
    for name, ours in (("t", "times"), ("u", "tau"), ("success", "converged")):
        with pytest.raises(AttributeError, match=f"did you mean '{ours}'"):
            getattr(result, name)
