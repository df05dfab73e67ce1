"""Reported numbers are true to their deviations, on recordings of an unknown arm.

The arm differs from its file: masses, centres of mass, inertias, a payload, rotors,
viscous and dry friction with a width. Recorded at 1 kHz are positions of an encoder of
18 bits and joint forces with noise, 3 ms late.
"""

from collections import defaultdict

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.identification import evaluate
from dyn_core.model.parameter_vector import INERTIAL
from dyn_core.model.sources import example_robots
from dyn_core.recordings import MotionRecord

NOISE = np.array([0.3, 0.3, 0.3, 0.3, 0.1, 0.1, 0.1])  # of joint forces [N·m]
COUNT = 2 * np.pi / 2**18  # of the encoders [rad]
DELAY = 3e-3  # [s]
PERIOD = 1e-3  # [s]
BLOCK = 5  # samples in a row, 5 ms
PAYLOAD = np.array([1.2, 0.012, -0.024, 0.096, 0.012, 0.0, 0.012, 0.0, 0.0, 0.004])
KINDS = ("inertial", "damping", "friction", "friction_speed", "armature", "delay")


def _panda(friction=None):
    """Return the Panda without its fingers, with one number for all joint friction."""
    if example_robots.home() is None:
        pytest.skip("example-robot-data is not installed")
    both = {"damping": friction, "friction": friction}
    names = [f"panda_joint{k}" for k in range(1, 8)]
    extras = {"joints": dict.fromkeys(names, both)} if friction is not None else None
    model = dyn.load("panda", check="warn", extras=extras)
    return model.lock({"panda_finger_joint1": 0.02})


def _true_arm(model, tool, seed):
    """Return the arm as it is."""
    rng = np.random.default_rng(seed)
    size, values = np.array([1.0, 1.0, 0.8, 0.8, 0.4, 0.3, 0.3]), {}
    joints = {}
    for name, s in zip(model.joint_names, size, strict=True):
        joints[name] = {
            "damping": float(s * rng.uniform(0.4, 1.2)),
            "friction": float(s * rng.uniform(0.2, 0.6)),
            "friction_speed": float(rng.uniform(0.008, 0.03)),
            "armature": float(s * rng.uniform(0.05, 0.2)),
        }
        link = model.child_links[model.names.index(name)]
        for part in ("mass", "com", "inertia"):
            number = np.array(model.parameter(f"{link}.{part}"), float)
            values[f"{link}.{part}"] = (number * rng.uniform(0.85, 1.15)).tolist()
    values[f"{tool}.payload"] = (PAYLOAD * rng.uniform(0.9, 1.1)).tolist()
    values |= {f"{n}.{k}": x for n, row in joints.items() for k, x in row.items()}
    return model.with_values(values)


def _motion(model, seed, t):
    """Return a sum of sines within the limits: q, qd, qdd."""
    rng = np.random.default_rng((seed, 7))
    middle, half = (model.lower + model.upper) / 2, (model.upper - model.lower) / 2
    w = 2 * np.pi * 0.1 * np.arange(1, 8)[:, None]
    phase = rng.uniform(0, 2 * np.pi, (7, model.nv))
    size = half * rng.uniform(0.05, 0.15, (7, model.nv))
    size *= np.minimum(1.0, 0.7 * model.velocity_limit / (size * w).sum(axis=0))
    angle = w * t[:, None, None] + phase
    return (
        middle + (size * np.sin(angle)).sum(axis=1),
        (size * w * np.cos(angle)).sum(axis=1),
        -(size * w * w * np.sin(angle)).sum(axis=1),
    )


def _record(true, seed, duration, repeat=0, noise=1.0):
    """Return what is measured of a motion of the arm."""
    t, rng = np.arange(0.0, duration, PERIOD), np.random.default_rng((seed, 3, repeat))
    rnea = dyn.solver("rnea").build(true, joint_friction=True)
    tau = np.asarray(rnea(*_motion(true, seed, t - DELAY)))
    tau = tau + noise * NOISE * rng.normal(size=tau.shape)
    q = COUNT * np.round(_motion(true, seed, t)[0] / COUNT)
    return MotionRecord.of_joints(true.joint_names, t, q, tau=tau)


def _truth(true, name):
    """Return the true value of an identified number."""
    joint, colon, part = name.partition(":")
    if name == "delay":
        return DELAY
    if colon:
        body = true.I[true.names.index(joint)]
        return float(body.parameters[INERTIAL.index(part)])
    return float(true.parameter(name)[0])


def _kind(name):
    return "inertial" if ":" in name else name.rpartition(".")[2]


def _off(result, true):
    """Return errors in deviations, by kind, of the numbers that show by themselves."""
    by_kind = defaultdict(list)
    for k in np.flatnonzero(np.isfinite(result.standard_deviations)):
        name = result.names[k]
        error = result.parameters[k] - _truth(true, name)
        by_kind[_kind(name)].append(error / result.standard_deviations[k])
    return by_kind


def _least_deviations(robot, seed, duration, names):
    """Return the deviations of plain least squares about a robot's numbers.

    With the true motion and noise, no bounds and no term but the squares.
    """
    t = np.arange(0.2, duration - 0.2, PERIOD) - DELAY
    q, qd, qdd = _motion(robot, seed, t)
    rnea = dyn.solver("rnea").build(robot, joint_friction=True)
    Y = dyn.solver("regressor").build(robot, friction=True, rotors=True)(q, qd, qdd)
    v, f = (
        np.array([robot.parameter(f"{n}.{x}")[0] for n in robot.joint_names], float)
        for x in ("friction_speed", "friction")
    )
    width = -f * qd / v**2 / np.cosh(qd / v) ** 2
    later, sooner = (rnea(*_motion(robot, seed, t + x)) for x in (1e-4, -1e-4))
    columns = [Y, width[:, :, None] * np.eye(7), -((later - sooner) / 2e-4)[..., None]]
    A = np.concatenate(columns, axis=2)
    rows = len(t) // BLOCK
    A = A[: rows * BLOCK].reshape(rows, BLOCK, 7, -1).mean(axis=1)
    A = (A / (NOISE / np.sqrt(BLOCK))[:, None]).reshape(rows * 7, -1)
    whole = [*dyn.parameter_names(robot, True, True)]
    whole += [f"{n}.friction_speed" for n in robot.joint_names] + ["delay"]
    lengths = np.linalg.norm(A, axis=0)
    R = np.linalg.qr(A / np.where(lengths > 0, lengths, 1.0), mode="r")
    covariance = np.linalg.pinv(R.T @ R, rcond=1e-12, hermitian=True)
    deviations = np.sqrt(np.diag(covariance)) / np.where(lengths > 0, lengths, 1.0)
    return np.array([deviations[whole.index(n)] for n in names])


def _check(by_kind, kinds, rms, cover):
    """Check the spread of errors and how often two deviations hold them."""
    every = np.concatenate([by_kind[kind] for kind in KINDS])
    assert cover[0] <= (np.abs(every) < 1.96).mean() <= cover[1]
    for kind in kinds:
        z = np.array(by_kind[kind])
        assert rms[0] <= np.sqrt(np.mean(z * z)) <= rms[1], (kind, len(z))


def _identified(model, record, **options):
    return evaluate(model, record).identify(friction="coulomb", delay=True, **options)


@pytest.mark.full
def test_numbers_of_an_unknown_arm_are_true_to_their_deviations():
    """Two arms, 8 s each: every kind of number, the width and the delay among them."""
    model, by_kind = dyn.load("arm7"), defaultdict(list)
    for seed in range(2):
        true = _true_arm(model, "tool", seed)
        result = _identified(model, _record(true, seed, 8.0))
        assert result.converged
        for kind, z in _off(result, true).items():
            by_kind[kind] += z
        known = np.isfinite(result.standard_deviations)
        names = [x for x, k in zip(result.names, known, strict=True) if k]
        least = _least_deviations(result.model, seed, 8.0, names)
        assert (result.standard_deviations[known] <= 1.3 * least).all()
    assert {*by_kind} == {*KINDS}
    assert max(np.abs(z).max() for z in by_kind.values()) < 4.5
    _check(by_kind, KINDS[:4], (0.75, 1.3), (0.90, 0.99))


@pytest.mark.full
def test_numbers_of_twenty_unknown_pandas_are_true_to_their_deviations():
    """Full, since it takes minutes: 30 s each, and each twice for the one delay."""
    model, by_kind = _panda(), defaultdict(list)
    for seed in range(20):
        true = _true_arm(model, "panda_hand", seed)
        for repeat in range(2):
            result = _identified(model, _record(true, seed, 30.0, repeat))
            assert result.converged
            for kind, z in _off(result, true).items():
                by_kind[kind] += z
        known = np.isfinite(result.standard_deviations)
        names = [x for x, k in zip(result.names, known, strict=True) if k]
        least = _least_deviations(result.model, seed, 30.0, names)
        assert (result.standard_deviations[known] <= 1.3 * least).all()
    _check(by_kind, KINDS, (0.85, 1.2), (0.90, 0.98))


@pytest.mark.full
def test_what_the_panda_had_before_does_not_count():
    """Full, since it takes half a minute: four priors of friction, one result."""
    record = _record(_true_arm(_panda(), "panda_hand", 0), 0, 30.0)
    results = [_identified(_panda(x), record) for x in (0.0, 0.003, 0.5, 5.0)]
    _check_alike(results)


def _check_alike(results, most=0.2):
    """Check that results agree within a part of their deviations."""
    first = results[0]
    known = np.isfinite(first.standard_deviations)
    for other in results[1:]:
        off = (other.parameters - first.parameters)[known]
        assert np.abs(off / first.standard_deviations[known]).max() < most
