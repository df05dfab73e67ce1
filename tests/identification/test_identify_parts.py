"""Identification of what is asked: payload, friction, springs, placements; in words."""

import time

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.errors import ModelError, SettingError, SingularError
from dyn_core.identification import FRICTION_LAWS, selection
from dyn_core.identification.fitting import consistent_fit, outcome
from dyn_core.identification.fitting.sought_robot import with_paths
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.model.checks.pseudo_inertia import least_eigenvalue
from dyn_core.spatial import RigidInertia

PAYLOAD = np.array([1.5, 0.015, -0.03, 0.12, 0.014, 0.0, 0.013, 0.0, 0.0, 0.003])


@pytest.fixture(scope="module")
def arm():
    """The arm that ships."""
    return dyn.load("arm7")


@pytest.mark.parametrize("only", [None, "friction", "payload"])
def test_what_is_no_robot_is_refused(only):
    """Whatever is sought; without the inertia a number had no attribute."""
    rows = np.zeros((9, 2))
    with pytest.raises(
        dyn.UnsupportedError, match="identify is for a Model, not for 3"
    ):
        dyn.identify(3, rows, rows, rows, rows, only=only)


@pytest.mark.parametrize(
    "pair", ["05", b"05", ("0", "5"), (None, 5), (0, 1, 2), (1, 0)]
)
def test_bounds_are_no_text(pair):
    """Two characters are no pair of numbers, and neither are two texts."""
    with pytest.raises(dyn.SettingError, match="valid: .least, largest"):
        selection._interval("delay", pair)


def _motion(model, seed=0, duration=20.0):
    """Return a sum of sines within the limits, in order of time: q, qd, qdd."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 0.02)[:, None, None]
    lower, upper = (
        np.clip(x, -1.5, 1.5) if np.isinf(x).any() else x
        for x in (model.lower, model.upper)
    )
    w = 2 * np.pi * 0.08 * np.arange(1, 6)[:, None]
    phase = rng.uniform(0, 2 * np.pi, (5, model.nv))
    size = (upper - lower) / 2 * rng.uniform(0.05, 0.18, (5, model.nv))
    angle = w * t + phase
    q = (lower + upper) / 2 + (size * np.sin(angle)).sum(axis=1)
    return (
        q,
        (size * w * np.cos(angle)).sum(axis=1),
        -(size * w * w * np.sin(angle)).sum(axis=1),
    )


def _measured(model, motion, noise=0.05, seed=1, **values):
    """Return the joint forces of a motion, with noise."""
    choices = {"joint_friction": True, "joint_springs": True, "inputs": [*values]}
    tau = dyn.solver("rnea").build(model, **choices)(*motion, *values.values())
    return tau + noise * np.random.default_rng(seed).normal(size=tau.shape)


@pytest.fixture(scope="module")
def weighed(arm):
    """A motion of the arm with a payload, and its joint forces."""
    motion = _motion(arm)
    tau = _measured(arm, motion, 0.2, **{"tool.payload": PAYLOAD})
    return motion, tau


def _within(result, names, truth, times=4.0):
    """Check that numbers are true to some of their standard deviations."""
    places = [result.names.index(name) for name in names]
    off = np.abs(result.parameters[places] - truth)
    assert (off < times * result.standard_deviations[places]).all(), off


def test_numbers_of_a_joint_of_several_coordinates():
    """They are found by the path of the joint and by their own names."""
    model, rng = dyn.load("every_joint"), np.random.default_rng(3)
    q = np.array([model.random(rng) for _ in range(200)])
    qd, qdd = rng.normal(size=(2, 200, model.nv))
    tau = dyn.solver("rnea").build(model, joint_friction=True)(q, qd, qdd)
    path = "wrist_ball.damping"
    result = dyn.identify(model, q, qd, qdd, tau, friction=True)
    np.testing.assert_allclose(result[path], [model.parameter(path)[0]] * 3, atol=1e-6)
    assert result[f"{path}[1]"] == result[path][1]
    bounded = dyn.identify(
        model, q, qd, qdd, tau, friction=True, bounds={path: (3.0, 4.0)}
    )
    assert (bounded[path] >= 3.0).all()
    with pytest.raises(SettingError, match="damping"):
        result[f"{path}[3]"]


def test_a_payload_is_weighed_in_plain_names(arm, weighed):
    """All ten numbers with deviations and units; the robot that results carries it."""
    motion, tau = weighed
    result = dyn.identify(arm, *motion, tau, only="payload", folds=4)
    assert result.names[0] == "tool.payload:m"
    assert result.units[:2] == ("kg", "kg·m")
    _within(result, result.names, PAYLOAD)
    assert result["tool.payload:m"] == pytest.approx(1.5, abs=0.01)
    np.testing.assert_array_equal(result["tool.payload"], result.parameters)
    assert result.model.mass == pytest.approx(arm.mass + result["tool.payload:m"])
    again = dyn.solver("rnea").build(result.model, joint_friction=True)(*motion)
    np.testing.assert_allclose(again, tau, atol=1.2)
    assert result.validation.ratio == pytest.approx(1.0, abs=0.05)
    report = "\n".join(result.lines())
    assert "10 of 10 numbers" in report
    lines = [line.split() for line in report.splitlines()]
    assert [x[4] for x in lines if x[:1] == [result.names[1]]] == ["kg·m"]
    assert "hardly known" in report
    assert "4 blocks of time" in report


def test_one_number_of_a_path_is_sought(arm, weighed):
    """The others stay as the robot has them, here zero."""
    motion, _ = weighed
    only = ["tool.payload:m", "tool.payload:mcz"]
    tau = _measured(arm, motion, **{"tool.payload": PAYLOAD * (np.arange(10) % 3 == 0)})
    result = dyn.identify(arm, *motion, tau, only=only)
    assert result.names == tuple(only)
    assert result.rank == 2


def test_outliers_count_less_where_asked(arm, weighed):
    """A jump in every 37th row spoils least squares, and not Huber's."""
    motion, tau = weighed
    bad = tau.copy()
    bad[::37] += 30.0
    plain, robust = (
        dyn.identify(arm, *motion, bad, only="payload", robust=on)
        for on in (0 > 1, True)
    )
    assert abs(plain["tool.payload:m"] - 1.5) > 0.03
    assert abs(robust["tool.payload:m"] - 1.5) < 0.01
    assert 0.02 < robust.outliers < 0.3
    assert plain.outliers == 0.0


def test_a_payload_can_be_kept_physical(arm, weighed):
    """Moments that hardly show would leave the world; consistent=True stays in it."""
    motion, tau = weighed
    few = [x[:60] for x in motion]
    loose = dyn.identify(arm, *few, tau[:60], only="payload")
    tight = dyn.identify(arm, *few, tau[:60], only="payload", consistent=True)
    assert least_eigenvalue(loose.parameters) < 0 < tight.eigenvalues[0]
    assert tight.residual_rms == pytest.approx(loose.residual_rms, rel=0.1)


def _rough(arm, law):
    """Return the arm with friction of a law, different in each joint."""
    numbers = {"damping": 0.7, "friction": 0.4, "friction_asymmetry": 0.1,
               "stribeck": 0.5, "stribeck_speed": 0.12}  # fmt: skip
    values = {f"joint{k}.{x}": 0.0 for k in range(1, 8)
              for x in ("damping", "friction", "friction_asymmetry", "stribeck")}  # fmt: skip
    values |= {
        f"joint{k}.{x}": numbers[x] * (1 + 0.05 * k)
        for k in range(1, 8)
        for x in FRICTION_LAWS[law]
    }
    return arm.with_values(values), values


@pytest.mark.parametrize("law", FRICTION_LAWS)
def test_each_law_of_friction_is_identified(arm, law):
    """Its numbers are true to their deviations, and the residual is the noise."""
    truth, values = _rough(arm, law)
    motion = _motion(arm, duration=30.0)
    tau = _measured(truth, motion)
    result = dyn.identify(arm, *motion, tau, only="friction", friction=law)
    assert result.converged
    assert {x.rpartition(".")[2] for x in result.names} == {*FRICTION_LAWS[law]}
    assert len(result.names) == 7 * len(FRICTION_LAWS[law])
    if law != "viscous":  # of the file's dry friction, which it does not seek
        _within(result, result.names, [values[x] for x in result.names], 5.0)
        assert result.residual_rms.max() < 1.1 * 0.05


@pytest.mark.one_of(2)
@pytest.mark.parametrize("law", ["viscous", "coulomb"])
def test_friction_before_does_not_pull(arm, law):
    """Any friction of the model leads to the same numbers, and to the true ones."""
    motion = _motion(arm, duration=30.0)
    true = {"damping": 0.8, "friction": 0.6}
    names = [f"{n}.{x}" for n in arm.joint_names for x in FRICTION_LAWS[law]]
    truth = arm.without_friction().with_values(
        {x: true[x.split(".")[1]] for x in names}
    )
    tau = _measured(truth, motion, 0.3)
    results = []
    for before in (0.0, 0.003, 0.5, 5.0):
        rows = {n: dict.fromkeys(FRICTION_LAWS[law], before) for n in arm.joint_names}
        bare = {n: {"damping": 0.0, "friction": 0.0, **rows[n]} for n in rows}
        model = dyn.load("arm7", extras={"joints": bare})
        options = {"friction": law, "consistent": True}
        results.append(dyn.identify(model, *motion, tau, **options))
    _within(results[0], names, [true[x.split(".")[1]] for x in names], 4.0)
    places = [results[0].names.index(x) for x in names]
    deviations = results[0].standard_deviations[places]
    for other in results[1:]:
        change = (other.parameters - results[0].parameters)[places]
        assert np.abs(change / deviations).max() < 0.2


def test_joints_without_friction_are_no_obstacle(arm):
    """Noise alone would have them drive in one direction: that is cut, and small."""
    smooth, motion = arm.without_friction(), _motion(arm)
    tau = dyn.solver("rnea").build(smooth)(*motion)
    tau = tau + np.random.default_rng(3).normal(0.0, 0.05, tau.shape)
    result = dyn.identify(arm, *motion, tau, only="friction", friction="direction")
    assert result.model is not None, result.reason
    joints = result.model.friction, result.model.friction_asymmetry
    for friction, asymmetry in zip(*joints, strict=True):
        assert all(abs(a) <= f for f, a in zip(friction, asymmetry, strict=True))
    assert result.residual_rms.max() < 0.06


@pytest.mark.parametrize("error", [ModelError, SingularError])
def test_a_robot_that_cannot_be_built_is_a_reason(arm, error, monkeypatch):
    """Also an axis of length 0: the parameters are there, the model is not."""

    def refuse(unknowns, values):
        raise error("joint3")

    monkeypatch.setattr(outcome, "with_numbers", refuse)
    motion = _motion(arm, duration=4.0)
    tau = dyn.solver("rnea").build(arm)(*motion)
    result = dyn.identify(arm, *motion, tau, only="friction")
    assert result.model is None
    assert "joint3" in result.reason


def test_inertia_and_friction_are_sought_together(arm):
    """Stribeck's numbers beside all bodies; springs beside them, too."""
    truth, _ = _rough(arm, "stribeck")
    motion = _motion(arm, duration=40.0)
    tau = _measured(truth, motion)
    options = {"friction": "stribeck", "consistent": True}
    result = dyn.identify(arm, *motion, tau, **options)
    assert result.residual_rms.max() < 1.1 * 0.05
    assert result.model is not None
    assert result.eigenvalues.min() > 0
    other = _motion(arm, seed=5)
    tau = _measured(truth, other, 0.0)
    got = dyn.solver("rnea").build(result.model, joint_friction=True)(*other)
    assert np.sqrt(np.mean((got - tau) ** 2)) < 0.02
    only = ["inertia", "friction", "springs"]
    tau = _measured(truth, motion)
    wide = dyn.identify(arm, *motion, tau, only=only, partial=True, consistent=True)
    assert {"joint3.stiffness", "joint3.rest", "joint3.damping"} <= {*wide.names}
    assert not any("armature" in x for x in wide.names)


def test_springs_are_found_where_there_are_some(arm):
    """Stiffness and rest of one joint; the rest of the others shows nothing."""
    spring = {"springs": {"joint2": {"stiffness": 20.0, "rest": 0.3}}}
    truth = dyn.load("arm7", extras=spring)
    motion = _motion(arm)
    tau = _measured(truth, motion)
    result = dyn.identify(arm, *motion, tau, only="springs", partial=True)
    _within(result, ["joint2.stiffness", "joint2.rest"], [20.0, 0.3])
    assert abs(result["joint5.stiffness"]) < 0.02
    kept = result.model.build.description.joints
    assert next(x for x in kept if x.name == "joint2").stiffness == pytest.approx(
        20, 0.01
    )


def test_placements_of_a_joint_are_found(arm):
    """Six numbers of joint3's origin, in which joint forces are not linear."""
    value = np.array(arm.parameter("joint3.origin"), float)
    value += [0.003, -0.002, 0.004, 0.01, -0.02, 0.015]
    truth = arm.with_values({"joint3.origin": value.tolist()})
    motion = _motion(arm, duration=10.0)
    tau = _measured(truth, motion, 0.02)
    result = dyn.identify(arm, *motion, tau, only="joint3.origin")
    _within(result, result.names, value)
    assert result.names[-1] == "joint3.origin:yaw"
    assert result.units[-1] == "rad"
    np.testing.assert_allclose(
        result.model.parameter("joint3.origin"), value, atol=1e-3
    )


def test_ratios_of_gears_are_found():
    """A follower's ratio, of which joint forces are quadratic."""
    file = dyn.robots.path("planar3")

    def arm(ratio):
        gears = {"gears": [{"joints": ["joint1", "joint3"], "ratio": ratio}]}
        return dyn.load_urdf(file, extras=gears)

    motion = _motion(arm(-1.5), duration=10.0)
    tau = _measured(arm(-1.5), motion, 0.01)
    result = dyn.identify(arm(-1.2), *motion, tau, only="gears")
    _within(result, ["joint3.ratio"], [-1.5])
    assert result.model.followers["joint3"].multiplier == pytest.approx(-1.5, abs=0.01)


def test_what_is_known_before_counts(arm, weighed):
    """A value with its deviation pulls; bounds hold; both by name of path or number."""
    motion, tau = weighed
    few = [x[:40] for x in motion], tau[:40]
    prior = {"tool.payload:m": (1.2, 1e-4)}
    result = dyn.identify(arm, *few[0], few[1], only="payload", prior=prior)
    assert result["tool.payload:m"] == pytest.approx(1.2, abs=1e-3)
    loose = {"tool.payload:m": (1.2, 1e3), "tool.payload:mcx": 0.3}
    result = dyn.identify(arm, *few[0], few[1], only="payload", prior=loose)
    assert result["tool.payload:m"] == pytest.approx(1.5, abs=0.05)
    bounds = {"tool.payload:m": (0.0, 1.4), "tool.payload:Ixx": (0.02, 1.0)}
    result = dyn.identify(arm, *motion, tau, only="payload", bounds=bounds)
    assert result["tool.payload:m"] == 1.4
    assert result["tool.payload:Ixx"] >= 0.02
    weight = dict.fromkeys(arm.joint_names, 5.0)
    result = dyn.identify(arm, *motion, tau, only="payload", weight=weight)
    np.testing.assert_allclose(result.noise, 0.2)


def test_held_out_motion_shows_what_is_fitted_too_far(arm):
    """62 numbers from 20 samples fit those, and no others."""
    motion = _motion(arm, duration=0.4)
    tau = _measured(arm, motion)
    result = dyn.identify(arm, *motion, tau, folds=2, partial=True)
    assert result.validation.ratio > 5.0
    assert result.validation.spread.shape == (91,)


def test_late_joint_forces_are_noticed(arm):
    """The delay is true to its deviation, and the other numbers stay right."""
    rng, dt, late = np.random.default_rng(0), 0.02, 0.004
    w = 2 * np.pi * rng.uniform(0.2, 0.8, (7, 4))
    phase = rng.uniform(0, 6, (7, 4))

    def at_times(t):
        angle = w * t[:, None, None] + phase
        q = 0.2 * np.sin(angle).sum(axis=2) + (arm.lower + arm.upper) / 2
        qd = 0.2 * (w * np.cos(angle)).sum(axis=2)
        return q, qd, -0.2 * (w * w * np.sin(angle)).sum(axis=2)

    t = np.arange(0.0, 30.0, dt)
    smooth = arm.without_friction()
    tau = _measured(smooth, at_times(t - late))
    rate = (_measured(smooth, at_times(t - late + 1e-3), 0.0)
            - _measured(smooth, at_times(t - late - 1e-3), 0.0)) / 2e-3  # fmt: skip
    options = {"only": "payload", "partial": True}
    result = dyn.identify(smooth, *at_times(t), tau, tau_rate=rate, **options)
    assert result.delay == pytest.approx(late, abs=2e-4)
    assert abs(result["tool.payload:m"]) < 0.01
    assert dyn.identify(smooth, *at_times(t), tau, **options).delay == 0.0


def test_rows_can_be_means_of_samples(arm, weighed):
    """Means of four samples make the same fit of a quarter of the rows."""
    motion, tau = weighed
    fine, coarse = (
        dyn.identify(arm, *motion, tau, only="payload", average=n) for n in (1, 4)
    )
    off = (fine.parameters - coarse.parameters) / fine.standard_deviations
    assert np.abs(off).max() < 1.5
    assert coarse.residual_rms == pytest.approx(fine.residual_rms / 2, rel=0.1)


def test_deviations_know_residuals_that_last(arm, weighed):
    """Noise that drifts is fewer observations: deviations grow with it."""
    motion, tau = weighed
    rng = np.random.default_rng(3)
    drift = np.zeros(tau.shape)
    for k in range(1, len(drift)):
        drift[k] = 0.95 * drift[k - 1] + 0.05 * rng.normal(size=7)
    white = drift.std() * rng.normal(size=tau.shape)
    clean = tau - 0.2 * np.random.default_rng(1).normal(size=tau.shape)
    slow, quick = (
        dyn.identify(arm, *motion, clean + noise, only="payload")
        for noise in (drift, white)
    )
    ratio = slow.standard_deviations / quick.standard_deviations
    assert np.median(ratio) > 3.0
    _within(slow, slow.names, PAYLOAD, 5.0)


def test_the_physical_fit_is_the_best_and_quick(arm):
    """An arm takes less than a second of CPU; no small change of the numbers is better."""
    q, qd, qdd = _motion(arm, duration=40.0)
    tau = _measured(arm, (q, qd, qdd), 0.2)
    prior = dyn.parameters_of(arm, True, True)
    prior = prior * np.random.default_rng(1).uniform(0.6, 1.4, len(prior))
    dyn.identify(arm, q, qd, qdd, tau, consistent=True)  # builds what it needs
    start = time.process_time()
    result = dyn.identify(arm, q, qd, qdd, tau, prior=prior, consistent=True)
    assert time.process_time() - start < 1.0
    assert result.converged
    assert result.evaluations < 60
    assert result.eigenvalues.min() > 0
    known = consistent_fit.Knowledge(
        prior,
        np.ones(91),
        (np.full(91, -np.inf), np.full(91, np.inf)),
        range(0, 70, 10),
    )
    Y = dyn.solver("regressor").build(arm, friction=True, rotors=True)(q, qd, qdd)
    A, b = Y.reshape(-1, 91) / 0.2, tau.ravel() / 0.2
    one, other = (
        consistent_fit.fit_consistent(A, b, known, x, 200, None)[0]
        for x in (prior, dyn.parameters_of(arm, True, True))
    )
    np.testing.assert_allclose(A @ one, A @ other, atol=0.02)


@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold_at_the_best_fit(seed):
    """Where nothing is known before, it is that of scipy's bounded least squares."""
    from scipy.optimize import lsq_linear

    rng = np.random.default_rng(seed)
    A = rng.normal(size=(30, 12)) @ np.diag(10.0 ** rng.uniform(-2, 2, 12))
    A[:, 6:] += A[:, :6] * rng.uniform(0.5, 2.0)  # columns that are much alike
    b = A @ rng.normal(size=12) + 3 * rng.normal(size=30)
    low, high = np.zeros(12), np.where(rng.uniform(size=12) < 0.5, np.inf, 0.5)
    known = consistent_fit.Knowledge(np.full(12, 0.1), np.full(12, 1e7), (low, high))
    x, evaluations, converged = consistent_fit.fit_consistent(
        A, b, known, known.prior, 200, None
    )
    best = lsq_linear(A, b, (low, high), method="bvls", tol=1e-14)
    assert converged
    assert evaluations < 60
    assert (x >= low).all()
    assert (x <= high).all()
    assert np.sum((A @ x - b) ** 2) <= 2 * best.cost + 1e-4


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", range(3))
def test_numbers_that_are_not_finite_are_no_fit(place, value):
    """NaN in the rows came back as the start, converged."""
    A, b, start = arrays = np.ones((30, 12)), np.ones(30), np.full(12, 0.1)
    arrays[place].flat[3] = value
    bounds = np.full(12, -np.inf), np.full(12, np.inf)
    known = consistent_fit.Knowledge(np.full(12, 0.1), np.ones(12), bounds)
    with pytest.raises(np.linalg.LinAlgError, match="not finite"):
        consistent_fit.fit_consistent(A, b, known, start, 200, None)


def test_what_does_not_move_is_named(arm, weighed):
    """Friction of a still joint is refused by name; partial=True leaves it."""
    motion, tau = (weighed[0][0], weighed[0][1].copy(), weighed[0][2]), weighed[1]
    motion[1][:, 3] = 0.0
    with pytest.raises(dyn.IdentificationError, match=r"joint4\.damping.*partial=True"):
        dyn.identify(arm, *motion, tau, only="friction")
    result = dyn.identify(arm, *motion, tau, only="friction", partial=True)
    assert {"joint4.damping", "joint4.friction"} <= {*result.unseen}
    assert "no joint force depends on" in "\n".join(result.lines())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"friction": "viscous", "friction_speed": True}, "valid: coulomb, direction"),
        ({"friction_speed": 0.02}, "friction_speed is 0.02; valid: True, False"),
        ({"only": "payloads"}, "only: no parameter path 'payloads'.*groups: inertia"),
        ({"only": "tool.payload:mm"}, "no number is called 'tool.payload:mm'; did"),
        ({"only": []}, r"only is \[\]; valid: inertia, payload"),
        ({"only": 3}, "only is 3; valid: inertia"),
        ({"only": ["inertia", "payload"]}, "tool.payload cannot be sought together"),
        ({"only": "gears"}, "'arm7' has nothing of it to seek"),
        ({"friction": "stribek"}, "friction is 'stribek'; valid: True, False, viscous"),
        ({"only": "payload", "bounds": {"tool.mass": (0, 1)}}, "bounds: .*tool.mass"),
        ({"only": "payload", "bounds": {"tool.payload:m": 3}}, r"valid: \(least,"),
        ({"only": "payload", "bounds": {"tool.payload:m": (2, 1)}}, r"\(2, 1\)"),
        ({"only": "payload", "prior": {"mass": 1.0}}, "prior: .*'mass'"),
        ({"only": "payload", "prior": {"tool.payload:m": (1.0, 0.0)}}, "must be > 0"),
        ({"only": "payload", "weight": {"joint9": 1.0}}, "weight: .*joint9"),
        ({"robust": "yes"}, "robust is 'yes'; valid: True, False"),
        (
            {"only": "payload", "prior": {"tool.payload:m": (1.0, 0.1, 3.0)}},
            r"prior of tool.payload:m is .*; valid: a value, or \(value, deviation\)",
        ),
        ({"folds": 1}, "folds is 1; valid: 0, or 2 or more"),
        ({"only": "payload", "folds": 10**6}, r"folds is 1000000; valid: at most \d+"),
        ({"average": 0}, "average is 0; valid"),
        (
            {
                "only": "payload",
                "bounds": {"tool.payload:m": (0, 1)},
                "consistent": True,
            },
            "do not go together",
        ),
    ],
)
def test_questions_that_make_no_sense_are_refused(arm, weighed, options, message):
    """Unknown names, numbers that cannot be told apart, empty intervals."""
    motion, tau = weighed
    with pytest.raises(dyn.SettingError, match=message):
        dyn.identify(arm, *motion, tau, **options)


@pytest.mark.parametrize("path", ["armature", "time"])
def test_what_belongs_to_the_robot_as_a_whole_is_not_sought(arm, weighed, path):
    """It was refused after the fit, where the model is made."""
    motion, tau = weighed
    with pytest.raises(dyn.SettingError, match=f"{path} belongs .*; valid: gravity"):
        dyn.identify(arm, *motion, tau, only=path)


def test_axes_of_a_universal_joint_are_kept():
    """The robot came back with its former axes."""
    ball = RigidInertia.of(1.0, (0.0, 0.0, 0.2), np.eye(3).tolist())
    links = tuple(LinkSpec(name, ball) for name in ("base", "cross"))
    joints = (JointSpec("u", "universal", "base", "cross"),)
    model = assemble(Build(Description("r", links, joints)))
    axes = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    made = with_paths(model, {"u.axes": axes})
    np.testing.assert_array_equal(made.parameter("u.axes"), axes)


def test_a_payload_needs_one_end(shipped):
    """The four feet of a quadruped are named; a path says which is meant."""
    model = shipped["quadruped"]
    with pytest.raises(
        dyn.SettingError, match="links that carry no other.*LINK.payload"
    ):
        dyn.identify(model, *np.zeros((4, 5, model.nv)), only="payload")
