"""Identification: base parameters, least squares, bodies of this world, refusals."""

import io
import re
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.errors import DynWarning
from dyn_core.identification import blas_threads, estimation, evaluate
from dyn_core.identification.regressor_rank import base_of
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.model.checks.pseudo_inertia import (
    is_consistent,
    least_eigenvalue,
    parameters_of_pseudo,
    pseudo_inertia,
)
from dyn_core.model.parameter_vector import Layout
from dyn_core.recordings import MotionRecord
from dyn_core.testing.models import chain, random_inertia, random_model

NOISE = np.array([0.5, 0.5, 0.3, 0.3, 0.1, 0.1, 0.1])


def _data(model, samples, seed=0, still=()):
    """Return random states and the joint forces they take; some joints held still."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random(rng) for _ in range(samples)])
    qd, qdd = rng.normal(size=(2, samples, model.nv))
    for k in still:
        q[:, k], qd[:, k], qdd[:, k] = 0.3, 0.0, 0.0
    rnea = dyn.solver("rnea").build(model, joint_friction=True)
    return q, qd, qdd, rnea(q, qd, qdd)


def _blurred(model, seed=1):
    """Return a prior that is up to 40 % off."""
    pi = dyn.parameters_of(model, True, True)
    return pi * np.random.default_rng(seed).uniform(0.6, 1.4, len(pi))


def _arm(turns, gravity=(0.0, 0.0, -9.81), seed=5):
    """Return an arm of joints about z, each turned by roll against the one before."""
    rng = np.random.default_rng(seed)
    links = [LinkSpec("base", random_inertia(rng))]
    joints = []
    for k, roll in enumerate(turns, 1):
        links.append(LinkSpec(f"l{k}", random_inertia(rng)))
        xyz = (0.3, 0.0, 0.1) if k > 1 else (0.0, 0.0, 0.2)
        joints.append(
            JointSpec(
                f"j{k}",
                "revolute",
                links[-2].name,
                f"l{k}",
                xyz,
                (roll, 0.0, 0.0),
                (0.0, 0.0, 1.0),
            )
        )
    return assemble(
        Build(Description("arm", tuple(links), tuple(joints)), gravity=gravity)
    )


# Counts of H. Mayeda, K. Yoshida and K. Osuka, Base parameters of manipulator dynamic
# models, IEEE Trans. Robotics and Automation 6 (1990): arms of n revolute joints,
# neighbours parallel or at right angles, have 7 n - 4 b base parameters, b being the
# number of leading joints with parallel axes; 2 less where gravity is along them.
QUARTER = np.pi / 2
COUNTS = {
    "planar 2R, gravity along the axes": (lambda shipped: shipped["two_link"], 14 - 8 - 2),
    "planar 2R in a vertical plane": (lambda _: _arm([0, 0], (0.0, -9.81, 0.0)), 14 - 8),
    "planar 3R in a vertical plane": (lambda shipped: shipped["planar3"], 21 - 12),
    # As the PUMA 560 is built: M. Gautier and W. Khalil 1990 find 36.
    "6R, as PUMA": (lambda _: _arm([0, -QUARTER, 0, QUARTER, -QUARTER, QUARTER]), 42 - 4 - 2),
    "6R in any position": (lambda _: chain(6), 42 - 4),
    # C. Gaz and others 2019 find 43 for this arm.
    "arm7": (lambda shipped: shipped["arm7"], 49 - 4 - 2),
    # Mass of both; m c_x, m c_z and inertia of the pole.
    "cart and pole": (lambda shipped: shipped["cart_pole"], 4),
    # All ten of a free body, seven of each leg joint.
    "quadruped": (lambda shipped: shipped["quadruped"], 10 + 7 * 12),
}  # fmt: skip


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_base_parameters(name, shipped):
    """Textbook counts, with a gap of many powers of ten in the singular values."""
    make, count = COUNTS[name]
    base = dyn.base_parameters(make(shipped))
    assert base.rank == count
    assert base.gap > 1e8


def test_nothing_to_identify(shipped):
    """A robot without joints has no parameters; one at rest shows none."""
    model = shipped["two_link"]
    rigid = model.lock(dict.fromkeys(model.joint_names, 0.0))
    assert dyn.base_parameters(rigid).rank == len(dyn.parameter_names(rigid)) == 0
    still = np.zeros((30, 2))
    with pytest.raises(dyn.IdentificationError, match="the data show 0 of 9"):
        dyn.identify(model, still, still, still, still)
    estimate = dyn.identify(model, still, still, still, still, partial=True)
    assert estimate.rank == 0
    np.testing.assert_array_equal(estimate.parameters, estimate.prior)


def test_base_parameters_make_the_joint_forces():
    """Y pi = Y[:, independent] values, on other states; each gathers itself once."""
    model = random_model(3, asymmetry=0.0)
    base = dyn.base_parameters(model, friction=True, rotors=True)
    q, qd, qdd, tau = _data(model, 5, seed=9)
    Y = dyn.solver("regressor").build(model, friction=True, rotors=True)(q, qd, qdd)
    kept = list(base.independent)
    np.testing.assert_allclose(Y[..., kept] @ base.values, tau, atol=1e-9)
    np.testing.assert_array_equal(base.regrouping[:, kept], np.eye(base.rank))
    assert np.abs(Y @ base.directions).max() < 1e-9
    pi = dyn.parameters_of(model, True, True)
    np.testing.assert_allclose(base.regrouping @ pi, base.values)
    assert base.names == dyn.parameter_names(model, True, True)


def test_base_parameters_in_words(shipped):
    """The book's example: ZZ1 + m2 L1² of a planar arm."""
    base = dyn.base_parameters(shipped["two_link"])
    expressions = [base.expression(k) for k in range(base.rank)]
    for k in (base.rank, 99, -99, 1.0):
        with pytest.raises(dyn.SettingError, match=rf"^k is {k}; valid: .* to \d+$"):
            base.expression(k)
    assert set(expressions[1:]) == {"joint2:mcx", "joint2:mcy", "joint2:Izz"}
    assert expressions[0] == "joint1:Izz + 0.64 joint2:m"


def test_the_first_of_equal_columns_is_kept(shipped):
    """Rounding does not choose the base: data that differ by it give the same one."""
    model = shipped["arm7"]
    q, qd, qdd, _ = _data(model, 60)
    Y = dyn.solver("regressor").build(model)(q, qd, qdd)
    rows = np.asarray(Y).reshape(-1, Y.shape[-1])
    layout = Layout.of(model, False, False)
    rng = np.random.default_rng(0)
    bases = {
        base_of(
            layout, rows * (1 + e * rng.normal(size=rows.shape)), layout.values, 1e-9
        ).independent
        for e in (0.0, 1e-15, 1e-14, 1e-13)
    }
    assert len(bases) == 1


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", ["arm7", "every_joint", "quadruped"])
def test_data_without_noise_give_the_base_parameters(name, shipped):
    """To 1e-8; forces of other states too; what is hidden stays near the prior."""
    model = shipped[name]
    prior = _blurred(model)
    estimate = dyn.identify(model, *_data(model, 60), prior=prior)
    base = dyn.base_parameters(model, friction=True, rotors=True)
    assert estimate.rank == base.rank
    np.testing.assert_allclose(
        base.regrouping @ estimate.parameters, base.values, atol=1e-8
    )
    q, qd, qdd, tau = _data(model, 20, seed=7)
    Y = dyn.solver("regressor").build(model, friction=True, rotors=True)(q, qd, qdd)
    np.testing.assert_allclose(Y @ estimate.parameters, tau, atol=1e-8)
    change, hidden = estimate.parameters - prior, base.directions
    scale = np.abs(dyn.parameters_of(model, True, True))
    assert np.abs(change).max() <= 2 * scale.max()
    assert np.abs(Y @ hidden).max() < 1e-9


def test_the_change_is_the_shortest(shipped):
    """Moving on along a hidden direction only makes it longer."""
    model = shipped["arm7"]
    prior = _blurred(model)
    estimate = dyn.identify(model, *_data(model, 60), prior=prior)
    kinds = [
        n.split(":")[-1][:2] if ":" in n else n.split(".")[-1] for n in estimate.names
    ]
    size = {
        k: max(abs(prior[[j == k for j in kinds]]).max(), 0.0) or 1.0 for k in kinds
    }
    for short, long in (("mc", "mc"), ("Ix", "I"), ("Iy", "I"), ("Iz", "I")):
        size[short] = max(size[k] for k in kinds if k.startswith(long))
    scale = np.array([size[k] for k in kinds])
    change = (estimate.parameters - prior) / scale
    for direction in estimate.base.directions.T / scale:
        assert abs(change @ direction) < 1e-8 * np.linalg.norm(direction)


def test_standard_deviations_are_those_of_repetition(shipped):
    """Errors over their stated deviations have mean square one; noise is found."""
    model = shipped["arm7"]
    q, qd, qdd, tau = _data(model, 300)
    truth = dyn.parameters_of(model, True, True)
    ratios = []
    for seed in range(8):
        noise = np.random.default_rng(seed).normal(size=tau.shape) * NOISE
        estimate = dyn.identify(model, q, qd, qdd, tau + noise)
        off = estimate.base.regrouping @ truth - estimate.base.values
        ratios.append(off / estimate.base_deviations)
        np.testing.assert_allclose(estimate.noise, NOISE, rtol=0.25)
        np.testing.assert_allclose(estimate.residual_rms, NOISE, rtol=0.25)
    assert 0.85 < np.sqrt(np.mean(np.square(ratios))) < 1.15
    known = np.isfinite(estimate.standard_deviations)
    assert known[estimate.names.index("joint7.damping")]
    assert known[estimate.names.index("joint7:mcx")]
    assert not known[estimate.names.index("joint1:m")]


def test_weights_count(shipped):
    """Right weights give smaller errors than equal ones where noise is uneven."""
    model = shipped["arm7"]
    q, qd, qdd, tau = _data(model, 150)
    truth = dyn.parameters_of(model, True, True)
    noise = NOISE * [1, 20, 1, 20, 1, 1, 1]
    rough = tau + np.random.default_rng(2).normal(size=tau.shape) * noise
    stated, off = {}, {}
    for key, weight in {"right": 1 / noise, "equal": np.ones(7), "found": None}.items():
        estimate = dyn.identify(model, q, qd, qdd, rough, weight=weight)
        stated[key] = estimate.base_deviations
        off[key] = estimate.base.regrouping @ truth - estimate.base.values
    sharp = stated["right"]
    np.testing.assert_allclose(stated["found"], sharp, rtol=0.3)
    for key in ("right", "found"):
        assert np.mean((off[key] / sharp) ** 2) < 1.6
    assert np.mean((off["equal"] / sharp) ** 2) > 4


def test_bodies_of_this_world(shipped):
    """Plain least squares leaves the world; consistent=True stays, and fits as well."""
    model = shipped["arm7"]
    q, qd, qdd, tau = _data(model, 100)
    tau = tau + np.random.default_rng(3).normal(size=tau.shape) * NOISE
    prior = _blurred(model)
    free = dyn.identify(model, q, qd, qdd, tau, prior=prior)
    assert free.eigenvalues.min() < 0
    assert free.model is None
    assert "armature" in free.reason or "consistent=True" in free.reason
    seen = []
    estimate = dyn.identify(
        model, q, qd, qdd, tau, prior=prior, consistent=True,
        progress=lambda count, cost: seen.append((count, cost)),
    )  # fmt: skip
    assert estimate.converged
    assert estimate.eigenvalues.min() > 0
    assert estimate.parameters[70:].min() >= 0
    assert [count for count, _ in seen] == list(range(1, estimate.evaluations + 1))
    assert seen[-1][1] <= seen[0][1]
    assert (estimate.residual_rms < 1.1 * free.residual_rms).all()
    q, qd, qdd, tau = _data(model, 50, seed=8)
    again = dyn.solver("rnea").build(estimate.model, joint_friction=True)(q, qd, qdd)
    assert np.sqrt(np.mean((again - tau) ** 2)) < 0.5
    pi = dyn.parameters_of(estimate.model, True, True)
    np.testing.assert_allclose(pi, estimate.parameters, atol=1e-12)


def test_the_fit_is_bounded(shipped):
    """It ends after most_evaluations and says so."""
    model = shipped["planar3"]
    data = _data(model, 30)
    estimate = dyn.identify(
        model, *data, prior=_blurred(model), consistent=True, most_evaluations=2
    )
    assert not estimate.converged
    assert estimate.evaluations <= 3


@pytest.mark.parametrize("seed", range(2))
def test_models_with_other_parameters(seed):
    """with_linear_parameters and parameters_of undo each other; bodies of several links too."""
    model, rng = random_model(seed, asymmetry=0.0), np.random.default_rng(seed)
    values = dyn.parameters_of(model, True, True)
    for i in model.bodies:
        if model.I[i].m > 0:
            new = random_inertia(rng, 0.2 if seed % 2 else 3.0)
            values[10 * (i - 1) : 10 * i] = new.parameters
    values[10 * model.nb :] = rng.uniform(0, 1, len(values) - 10 * model.nb)
    made = dyn.with_linear_parameters(model, values, friction=True, rotors=True)
    np.testing.assert_allclose(dyn.parameters_of(made, True, True), values, atol=1e-12)
    q, qd, qdd, _ = _data(model, 1, seed)
    Y = dyn.solver("regressor").build(model, friction=True, rotors=True)(
        q[0], qd[0], qdd[0]
    )
    tau = dyn.solver("rnea").build(made, joint_friction=True)(q[0], qd[0], qdd[0])
    np.testing.assert_allclose(Y @ values, tau, atol=1e-9)
    # Of joints of several coordinates a description has one number.
    with pytest.raises(
        dyn.ModelError, match=r"changed \(armature, damping, friction\)"
    ):
        made.lock({})


def test_identified_robots_can_be_locked(shipped):
    """Their numbers are in the description."""
    arm = shipped["arm7"]
    values = 1.1 * dyn.parameters_of(arm, True, True)
    made = dyn.with_linear_parameters(arm, values, friction=True, rotors=True)
    locked = made.lock({"joint3": 0.3})
    np.testing.assert_allclose(locked.mass, made.mass, rtol=1e-12)
    assert float(locked.damping[1][0]) == pytest.approx(1.1 * float(arm.damping[1][0]))


def test_the_order_of_joints_stays(shipped):
    """Also one that is not the file's."""
    model = shipped["arm7"].reorder(shipped["arm7"].joint_names[::-1])
    values = dyn.parameters_of(model, True, True)
    made = dyn.with_linear_parameters(model, 2 * values, friction=True, rotors=True)
    assert made.joint_names == model.joint_names


def test_parameters_that_no_robot_has(shipped):
    """Refused in words: a negative number of a joint, a body without physical sense."""
    model = shipped["arm7"]
    values = dyn.parameters_of(model, True, True)
    with pytest.raises(dyn.ModelError, match="joint1.damping is -1; it must be >= 0"):
        dyn.with_linear_parameters(
            model, np.where(np.arange(91) == 70, -1.0, values), True, True
        )
    with pytest.raises(
        dyn.ModelError, match="'joint2' carries has no physical sense: mass -1"
    ):
        dyn.with_linear_parameters(
            model, np.where(np.arange(91) == 10, -1.0, values), True, True
        )
    with pytest.raises(dyn.ModelError, match="joint1:m is not finite"):
        dyn.with_linear_parameters(model, np.full(70, np.nan))
    with pytest.raises(dyn.ShapeError, match=r"wanted shape \(70,\)"):
        dyn.with_linear_parameters(model, np.ones(3))


def test_what_is_not_sought_is_known(shipped):
    """friction=False takes the robot's own friction and rotors off."""
    model = shipped["every_joint"]
    data = _data(model, 40)
    estimate = dyn.identify(model, *data, friction=False, rotors=False)
    assert len(estimate.parameters) == 100
    np.testing.assert_allclose(estimate.parameters, dyn.parameters_of(model), atol=1e-8)


def test_springs_are_known():
    """The robot's own springs are taken off what was measured."""
    links = [LinkSpec("base", random_inertia(np.random.default_rng(0)))]
    links.append(LinkSpec("l1", random_inertia(np.random.default_rng(1))))
    spec = JointSpec(
        "j1", "revolute", "base", "l1", axis=(0.0, 1.0, 0.0), stiffness=3.0, rest=0.2
    )
    model = assemble(Build(Description("spring", tuple(links), (spec,))))
    q, qd, qdd, _ = _data(model, 20)
    tau = dyn.solver("rnea").build(model, joint_springs=True)(q, qd, qdd)
    estimate = dyn.identify(model, q, qd, qdd, tau)
    np.testing.assert_allclose(estimate.parameters, estimate.prior, atol=1e-8)


def test_bad_data_are_refused_in_words(shipped):
    """Shapes, NaN, too few rows, joints that do not move, weights, priors."""
    model = shipped["arm7"]
    q, qd, qdd, tau = _data(model, 40)
    with pytest.raises(dyn.ShapeError, match=r"qd: wanted shape \(samples, 7\)"):
        dyn.identify(model, q, qd[:, :3], qdd, tau)
    with pytest.raises(dyn.ShapeError, match="tau: wanted 40 samples as q has"):
        dyn.identify(model, q, qd, qdd, tau[1:])
    bad = qdd.copy()
    bad[[3, 5]] = np.nan
    with pytest.raises(dyn.NonFiniteError, match=r"qdd .* 2 samples \(3, 5\)") as error:
        dyn.identify(model, q, qd, bad, tau)
    assert error.value.rows == (3, 5)
    few = [x[:5] for x in (q, qd, qdd, tau)]
    with pytest.raises(
        dyn.ShapeError, match=r"at least 9 samples \(62 base parameters"
    ):
        dyn.identify(model, *few)
    with pytest.raises(dyn.ShapeError, match="weight"):
        dyn.identify(model, q, qd, qdd, tau, weight=np.ones(3))
    with pytest.raises(dyn.ShapeError, match="weight of joint2"):
        dyn.identify(model, q, qd, qdd, tau, weight={"joint2": [1.0, 2.0]})
    with pytest.raises(dyn.ShapeError, match=r"joint2: wanted numbers of shape \(\)"):
        dyn.identify(model, q, qd, qdd, tau, weight={"joint2": "heavy"})
    with pytest.raises(dyn.IdentificationError, match="weight must be > 0"):
        dyn.identify(model, q, qd, qdd, tau, weight=np.zeros(7))
    with pytest.raises(dyn.ShapeError, match="prior"):
        dyn.identify(model, q, qd, qdd, tau, prior=np.ones(70))
    with pytest.raises(dyn.NonFiniteError, match="prior"):
        dyn.identify(model, q, qd, qdd, tau, prior=np.full(91, np.inf))
    for prior in ("abc", ["a"] * 91, [10**400] * 91):
        with pytest.raises(dyn.ShapeError, match="prior: wanted numbers of shape"):
            dyn.identify(model, q, qd, qdd, tau, prior=prior)
        with pytest.raises(dyn.ShapeError, match="values: wanted numbers of shape"):
            dyn.with_linear_parameters(model, prior)
    still = dyn.load('<robot name="r"><link name="base"/></robot>')
    with pytest.raises(dyn.UnsupportedError, match="'r': nothing moves"):
        dyn.identify(still, *np.zeros((4, 5, 0)))
    for choice in (
        {"samples": 2.5}, {"samples": 0}, {"samples": 10**5}, {"seed": "a"},
        {"seed": -1},
    ):  # fmt: skip
        (name,) = choice
        with pytest.raises(dyn.SettingError, match=f"{name} is .*; valid: a whole"):
            dyn.base_parameters(model, **choice)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"friction": "no"}, "friction is 'no'; valid: True, False"),
        ({"consistent": 1}, "consistent is 1; valid: True, False"),
        ({"tolerance": -1.0}, "tolerance is -1.0; valid: a number between 0 and 1"),
        ({"tolerance": "x"}, "tolerance is 'x'"),
        (
            {"most_evaluations": 0, "consistent": True},
            "most_evaluations is 0; valid: 1",
        ),
        ({"most_evaluations": 9}, "most_evaluations changes nothing .*consistent=True"),
        ({"progress": print}, "progress changes nothing without a fit"),
        ({"progress": 3, "consistent": True}, "progress is 3; valid: a function"),
    ],
)
def test_choices_that_are_none_are_refused(shipped, choice, message):
    """They would count as others; data that are no numbers are refused, too."""
    q = np.zeros((9, 2))
    with pytest.raises(dyn.SettingError, match=message):
        dyn.identify(shipped["two_link"], q, q, q, q, **choice)
    if "friction" in choice:
        for function in (dyn.base_parameters, dyn.parameter_names, dyn.parameters_of):
            with pytest.raises(dyn.SettingError, match=message):
                function(shipped["two_link"], **choice)
    with pytest.raises(dyn.ShapeError, match="qd: wanted numbers of shape"):
        dyn.identify(shipped["two_link"], q, "abc", q, q)


def test_positions_in_degrees_are_asked_about(shipped):
    """As in files of them: a payload of tons, or a share of thousands, told nothing."""
    model, rng = shipped["arm7"], np.random.default_rng(3)
    t = np.linspace(0.0, 4.0, 401)
    q = np.array([model.random(rng) for _ in range(2)])
    q = q[0] + (q[1] - q[0]) * (1 - np.cos(t))[:, None] / 2
    qd, qdd = np.gradient(q, t, axis=0), np.zeros_like(q)
    tau = dyn.solver("rnea").build(model)(q, qd, qdd)
    asked = r"is q in degrees\? q is beyond the limits of joint joint\d by"
    with pytest.warns(DynWarning, match=f"identify: {asked}"):
        dyn.identify(model, np.degrees(q), np.degrees(qd), qdd, tau, only="payload")
    turned = {"q": np.degrees(q), "qd": np.degrees(qd), "tau": tau}
    record = MotionRecord.of_joints(model.joint_names, t, **turned)
    assert re.match(asked, evaluate(model, record).notes[0])
    record = MotionRecord.of_joints(model.joint_names, t, q, qd=qd, tau=tau)
    assert not any("?" in note for note in evaluate(model, record).notes)
    with pytest.warns(DynWarning, match=r"is qd in degrees per second\? qd has \d+"):
        dyn.identify(model, q, np.degrees(qd), qdd, tau, only="payload")


@pytest.mark.parametrize(
    ("factor", "asked"),
    [(1e3, "is tau in N·m"), (1e-3, "is tau in N·m"), (-1.0, "has tau the other sign")],
)
def test_forces_in_another_unit_or_sign_are_asked_about(shipped, factor, asked):
    """A payload of minus five kilograms, or of tons, told nothing of them."""
    model = shipped["arm7"]
    q, qd, qdd, tau = _data(model, 60)
    for right in (tau, 2.0 * tau, 1.3 * tau + 0.1 * np.abs(tau).max() * np.sin(q)):
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            dyn.identify(model, q, qd, qdd, right, only="payload")
        assert not [str(x.message) for x in issued]
    message = rf"{asked}\? it is .* times what this robot needs"
    with pytest.warns(DynWarning, match=message):
        dyn.identify(model, q, qd, qdd, factor * tau, only="payload")
    t = np.linspace(0.0, 4.0, 401)
    wave = 0.3 * np.sin(t)[:, None] * np.ones(model.nv)
    motion = model.neutral() + wave, 0.3 * np.cos(t)[:, None] + 0.0 * wave, -wave
    tau = factor * dyn.solver("rnea").build(model)(*motion)
    record = MotionRecord.of_joints(model.joint_names, t, motion[0], tau=tau)
    assert re.search(message, evaluate(model, record).notes[0])


def test_rows_without_forces_are_asked_about(shipped):
    """A run that had stopped was compared with the model to its end, without a word."""
    model = shipped["arm7"]
    t = np.linspace(0.0, 4.0, 401)
    wave = 0.3 * np.sin(t)[:, None] * np.ones(model.nv)
    motion = model.neutral() + wave, 0.3 * np.cos(t)[:, None] + 0.0 * wave, -wave
    tau = dyn.solver("rnea").build(model)(*motion)
    for first, asked in ((300, True), (390, False), (0, False)):
        some = tau.copy()
        some[first:] = 0.0
        record = MotionRecord.of_joints(model.joint_names, t, motion[0], tau=some)
        asked_about = [x for x in evaluate(model, record).notes if "tau is 0" in x]
        share = r"tau is 0 in 25 % of the rows, first at t = 3 s: had the robot stopped"
        assert bool(asked_about) == asked and re.match(
            share if asked else "", "".join(asked_about)
        )
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            dyn.identify(model, *motion, some, only="payload")
        asked_about = [str(x.message) for x in issued if "tau is 0" in str(x.message)]
        assert bool(asked_about) == asked and all(
            "25 % of the rows" in x for x in asked_about
        )


@pytest.mark.parametrize("factor", [1 / 30, 1 / 50, 1 / 80, 1 / 100, 30.0])
@pytest.mark.parametrize("name", ["arm7", "two_link"])
def test_forces_of_motors_before_the_gear_are_asked_about(shipped, name, factor):
    """Usual ratios are 30 to 160; a weak fit, or joints that differ, is no question."""
    model, rng = shipped[name], np.random.default_rng(2)
    q, qd, qdd, tau = _data(model, 80)
    with pytest.warns(DynWarning, match="is tau in N·m.*times what this robot needs"):
        dyn.identify(model, q, qd, qdd, factor * tau)
    large = np.abs(tau).max()
    bare = dyn.solver("rnea").build(model)(q, qd, qdd)
    unlike = 2.0 ** (3 * np.arange(model.nv))  # each joint has a factor of its own
    for wrong in (
        tau + 0.3 * large * np.sign(qd) + 0.2 * large * rng.normal(size=tau.shape),
        0.05 * bare + 0.2 * large * np.sign(qd + 0.1 * rng.normal(size=qd.shape)),
        factor * (bare * 0.1 + large * rng.normal(size=tau.shape)),
        15.0 * tau,
        tau / 15.0,
        factor * tau * unlike / np.sqrt(unlike.max()),
        factor * tau * (1.0 + (np.arange(model.nv) >= model.nv // 2)),  # 1 and 2
    ):
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            dyn.identify(model, q, qd, qdd, wrong, partial=True)
        assert not [x for x in issued if "is tau" in str(x.message)]


def test_data_that_show_too_little(shipped):
    """A joint that never moves is named; partial=True leaves it to the prior."""
    model = shipped["arm7"]
    data = _data(model, 60, still=[3])
    with pytest.raises(
        dyn.IdentificationError, match=r"of 62 base .*joint4\.damping.*partial=True"
    ):
        dyn.identify(model, *data)
    prior = _blurred(model)
    estimate = dyn.identify(model, *data, prior=prior, partial=True)
    assert estimate.rank < 62
    index = estimate.names.index("joint4.damping")
    assert estimate.parameters[index] == pytest.approx(prior[index])
    assert np.isinf(estimate.standard_deviations[index])
    assert estimate.residual_rms.max() < 1e-9


def test_pseudo_inertia():
    """J of a body is positive definite; the triangle inequality shows in it."""
    rng = np.random.default_rng(0)
    ten = np.array(random_inertia(rng).parameters)
    J = pseudo_inertia(ten)
    assert J[3, 3] == ten[0]
    assert np.trace(J[:3, :3]) == pytest.approx((ten[4] + ten[6] + ten[9]) / 2)
    np.testing.assert_allclose(parameters_of_pseudo(J), ten)
    assert least_eigenvalue(ten) > 0
    assert not is_consistent([1, 0, 0, 0, 1, 0, 1, 0, 0, 3])  # breaks the triangle
    assert not is_consistent([-1, 0, 0, 0, 1, 0, 1, 0, 0, 1])
    assert is_consistent([1, 0, 0, 0, 1, 0, 1, 0, 0, 2])  # a disc


def test_one_thread_of_blas_and_as_many_as_before():
    """Inside there is one, also after an error; outside nothing has changed."""
    switches = blas_threads._switches()
    if not switches:
        pytest.skip("NumPy and SciPy bring no OpenBLAS here")
    before = [read() for read, _ in switches]
    with pytest.raises(KeyError), blas_threads.one_blas_thread():
        assert [read() for read, _ in switches] == [1] * len(switches)
        raise KeyError
    assert [read() for read, _ in switches] == before


def test_a_long_fit_shows_itself_on_a_terminal(monkeypatch):
    """One line, as that of compiling; nothing where no terminal is, or one looks."""
    model = dyn.load_urdf(dyn.robots.path("two_link"))
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 60, 2))
    tau = dyn.solver("rnea").build(model, engine="graph", joint_friction=True)(
        q, qd, qdd
    )
    monkeypatch.setattr("dyn_core.engines.llvm.compiler._PATIENCE", 1e-4)
    fit = estimation.fit_consistent

    def lines(terminal, **more):
        stream, reported = io.StringIO(), threading.Event()
        stream.isatty = lambda: terminal
        write = stream.write
        stream.write = lambda what: (write(what), "fitting" in what and reported.set())

        def slow_fit(*args):  # lasts until the first report, however fast the machine
            assert reported.wait(60) if terminal and not more else True
            return fit(*args)

        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            patch.setattr(estimation, "fit_consistent", slow_fit)
            dyn.identify(model, q, qd, qdd, tau, consistent=True, partial=True, **more)
        return stream.getvalue()

    fitted = r"(^|\r)fitting 26 parameters: [\d.]+ s +$"  # builds have lines, too
    assert re.search(fitted, lines(True), re.MULTILINE)
    assert "fitting" not in lines(True, progress=lambda count, cost: None)
    assert lines(False) == ""


def test_robots_with_loops_are_refused_in_words():
    """By comparison, identification and rank; with the open tree as what is valid."""
    model = dyn.load(
        Path(__file__).parents[2] / "examples" / "four_bar" / "four_bar.urdf"
    )
    rows = np.zeros((50, model.nv))
    t = np.linspace(0.0, 1.0, 50)
    record = MotionRecord.of_joints(model.joint_names, t, rows, tau=rows)
    for call in (
        lambda: evaluate(model, record),
        lambda: dyn.identify(model, rows, rows, rows, rows),
        lambda: dyn.base_parameters(model),
    ):
        with pytest.raises(dyn.UnsupportedError, match=r"loops.*model\.without_loops"):
            call()
