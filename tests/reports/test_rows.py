"""Dynamics of recorded rows, slopes without a shift, and the balance of energy."""

from dataclasses import replace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.recordings import (
    MotionRecord,
    energy_ledger,
    forward_dynamics,
    inverse_dynamics,
    run_record,
)
from dyn_core.recordings import rows as batches
from dyn_core.recordings.rows import with_slopes
from dyn_core.recordings.runs import model_hash


def _driven(
    model, step="semi_implicit_euler", period=0.002, duration=0.3, size=0.2, **options
):
    """Return a run with torques that are a part `size` of their limits, or 1."""
    size = np.where(model.effort_limit > 0, size * model.effort_limit, 1.0)
    phases = np.linspace(0.0, 3.0, model.nv)

    def law(t, q, qd):
        return size * np.sin(5 * t + phases)

    return dyn.simulate(
        model, law, duration=duration, period=period, step=step, **options
    )


@pytest.mark.parametrize("robot", ["arm7", "cart_pole"])
@pytest.mark.parametrize("friction", [True, False])
def test_inverse_dynamics_of_a_run_are_its_torques(robot, friction):
    """And forward dynamics of those are its accelerations, by other solvers, too."""
    model = dyn.load(robot)
    run = _driven(model, joint_friction=friction, limit_stops=False)
    record = run_record(run, {}, "aba")
    back = inverse_dynamics(
        model, replace(record, tau=None), joint_friction=friction, engine="graph"
    )
    scale = np.abs(record.tau).max()
    assert scale > 0.1
    np.testing.assert_allclose(back.tau, run.tau, atol=1e-9 * max(scale, 1.0))
    again = forward_dynamics(
        model, replace(back, qdd=None), "dense", friction, engine="graph"
    )
    size = np.abs(record.qdd).max()
    np.testing.assert_allclose(again.qdd, record.qdd, atol=1e-9 * size)


def test_forward_dynamics_undo_inverse_dynamics_of_any_motion(monkeypatch):
    """With quaternions, in several chunks."""
    monkeypatch.setattr(batches, "CHUNK", 7)
    model, rng = dyn.load("every_joint"), np.random.default_rng(1)
    q = np.array([model.random(rng) for _ in range(20)])
    qd, qdd = rng.normal(size=(2, 20, model.nv))
    t = np.arange(20.0)
    motion = MotionRecord(coordinates_of(model), t, q, qd, qdd)
    tau = inverse_dynamics(model, motion, engine="graph")
    back = forward_dynamics(model, replace(tau, qdd=None), engine="graph")
    np.testing.assert_allclose(back.qdd, qdd, atol=1e-9)


MAST = """<robot name="mast"><link name="base"/><link name="b1"/><link name="b2">
<inertial><origin xyz="0 0 1"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn" type="continuous"><parent link="base"/><child link="b1"/>
<axis xyz="0 0 1"/></joint><joint name="tilt" type="continuous">
<parent link="b1"/><child link="b2"/><axis xyz="0 1 0"/></joint></robot>"""


@pytest.mark.parametrize("chunk", [7, 20])
def test_rows_without_a_result_count_within_the_motion(monkeypatch, chunk):
    """Not within the call of the Program: an upright rod has no inertia about itself."""
    monkeypatch.setattr(batches, "CHUNK", chunk)
    model, q = dyn.load_urdf(MAST), np.full((20, 2), 0.5)
    q[[9, 12], 1] = 0.0
    motion = MotionRecord(coordinates_of(model), np.arange(20.0), q, q, tau=q)
    with pytest.raises(dyn.SingularError, match=r"turn.* \(rows 9, 12\)$") as raised:
        forward_dynamics(model, motion, engine="graph")
    assert raised.value.rows == (9, 12)


def test_a_solver_of_another_kind_is_refused():
    """By name, with those that would do."""
    model = dyn.load("two_link")
    motion = run_record(dyn.simulate(model, duration=0.01), {}, "aba")
    with pytest.raises(dyn.SignatureError, match="not inverse_dynamics.*rnea"):
        inverse_dynamics(model, motion, "aba")
    with pytest.raises(dyn.SolverNotFound, match="did you mean 'rnea'"):
        inverse_dynamics(model, motion, "rna")
    with pytest.raises(dyn.SettingError, match="has no row"):
        empty = replace(motion, **{x: getattr(motion, x)[:0] for x in
                                   ("t", "q", "qd", "qdd", "tau")})  # fmt: skip
        inverse_dynamics(model, empty)


def _sines(t):
    w = 2 * np.pi * np.array([0.5, 0.9])
    x = w * t[:, None]
    return np.sin(x), w * np.cos(x), -w * w * np.sin(x)


@pytest.mark.parametrize("uneven", [False, True])
def test_slopes_of_positions_converge_and_do_not_shift(uneven):
    """Half the period: errors of a derivative of order four or better, inside."""
    model, errors = dyn.load("two_link"), []
    for rows in (101, 201):
        t = np.linspace(0.0, 3.0, rows)
        if uneven:
            t = t + 0.004 * np.sin(7 * t)
        q, qd, qdd = _sines(t)
        motion = MotionRecord(coordinates_of(model), t, q)
        estimated = with_slopes(model, motion)
        inside = slice(rows // 5, -rows // 5)
        errors.append([np.abs(estimated.qd - qd)[inside].max(),
                       np.abs(estimated.qdd - qdd)[inside].max()])  # fmt: skip
        assert "spline of degree 5, no filter, no shift in time" in estimated.notes[-1]
        only = with_slopes(model, replace(motion, qd=qd))
        np.testing.assert_allclose(only.qdd[inside], qdd[inside], atol=1e-3)
    (v1, a1), (v2, a2) = errors
    assert v2 < v1 / 12
    assert a2 < a1 / 8


def test_a_filter_takes_noise_and_no_phase():
    """Accelerations of noisy positions come near the true ones at no shift in time."""
    model, rng = dyn.load("two_link"), np.random.default_rng(3)
    t = np.arange(0.0, 4.0, 0.002)
    q, _, qdd = _sines(t)
    motion = MotionRecord(coordinates_of(model), t, q + 1e-5 * rng.normal(size=q.shape))
    raw = with_slopes(model, motion).qdd[300:-300]
    smooth = with_slopes(model, motion, 10.0).qdd[300:-300]
    true = qdd[300:-300]
    assert np.abs(raw - true).max() > 10
    assert np.abs(smooth - true).max() < 0.3
    lags = [np.abs(smooth[20:-20] - np.roll(true, k, axis=0)[20:-20]).mean()
            for k in range(-15, 16)]  # fmt: skip
    assert abs(int(np.argmin(lags)) - 15) <= 3
    with pytest.raises(dyn.SettingError, match=r"cutoff 300 Hz; valid: more than 0"):
        with_slopes(model, motion, 300)
    numbers = motion.q.copy()
    numbers[3] = np.nan
    with pytest.raises(dyn.NonFiniteError, match="row 4: q"):
        with_slopes(model, replace(motion, q=numbers))
    whole = replace(motion, qd=q, qdd=q)
    with pytest.raises(dyn.SettingError, match="cutoff changes nothing"):
        with_slopes(model, whole, 10.0)


def test_turns_of_continuous_joints_are_no_jumps():
    """A joint that goes round has the velocity that it has; others are as they are."""
    model = dyn.load("every_joint")
    lock = {name: model.neutral()[model.q_slice(name)] for name in model.joint_names
            if name not in ("turn", "shoulder")}  # fmt: skip
    robot = model.lock(lock)
    t = np.linspace(0.0, 2.0, 200)
    q = np.column_stack([0.1 * t, (9.0 * t + np.pi) % (2 * np.pi) - np.pi])
    assert np.ptp(q[:, 1]) > 6
    qd = with_slopes(robot, MotionRecord(coordinates_of(robot), t, q)).qd
    np.testing.assert_allclose(qd, np.tile([0.1, 9.0], (200, 1)), atol=1e-6)
    with pytest.raises(dyn.SettingError, match="'sheet', which is planar"):
        rows = np.tile(model.neutral(), (200, 1))
        with_slopes(model, MotionRecord(coordinates_of(model), t, rows))
    short = MotionRecord(coordinates_of(robot), t[:5], q[:5])
    with pytest.raises(dyn.SettingError, match="5 rows are too few to estimate vel"):
        with_slopes(robot, short)


@pytest.mark.parametrize(("step", "order"), [("semi_implicit_euler", 1), ("rk4", 2)])
def test_energy_adds_up_to_the_order_of_integration(step, order):
    """The residual shrinks as the step does; work and dissipation are there."""
    model = dyn.load(
        "arm7", extras={"joints": {"joint2": {"damping": 2.0, "friction": 0.0}}}
    ).with_values({f"joint{k}.friction": 0.0 for k in range(1, 8)})
    worst = []
    for period in (0.002, 0.001):
        q0 = model.position({"joint2": 0.4, "joint4": -1.0, "joint6": 1.5})
        run = _driven(model, step, period, 0.2, q0=q0, size=0.05)
        ledger = energy_ledger(model, run)
        assert abs(ledger.work[-1]) > 0.1
        assert ledger.dissipation[-1] > 0.1
        assert (np.diff(ledger.dissipation) >= 0).all()
        total = ledger.kinetic + ledger.potential
        np.testing.assert_allclose(total, run.energy, rtol=1e-12)
        closed = total - total[0] - ledger.work + ledger.dissipation - ledger.residual
        np.testing.assert_allclose(closed, 0.0, atol=1e-9)
        worst.append(np.abs(ledger.residual).max())
    assert worst[0] < 1.0
    assert worst[0] / worst[1] == pytest.approx(2**order, rel=0.1)


def test_energy_of_contacts_adds_up():
    """A robot that falls and stands: what impacts take is what it had, to the order."""
    model, worst = dyn.load("quadruped"), []
    q0 = model.neutral()
    q0[2] = 0.46
    for period in (0.004, 0.002):
        run = dyn.simulate(model, world={}, q0=q0, period=period, duration=0.2)
        ledger = energy_ledger(model, run)
        assert ledger.constraints[-1] < -1.0
        worst.append(np.abs(ledger.residual).max())
    assert worst[1] < 0.1
    assert worst[1] < worst[0]


def test_the_hash_of_a_model_is_that_of_its_dynamics():
    """The same for the same file, another for another mass or gravity."""
    model = dyn.load("arm7")
    assert model_hash(model) == model_hash(dyn.load("arm7"))
    others = [
        model.with_values({"joint3.damping": 0.123}),
        model.with_values({"gravity": (0.0, 0.0, 0.0)}),
        model.lock({"joint7": 0.0}),
        dyn.load("arm7", root_joint="floating"),
    ]
    hashes = {model_hash(x) for x in (model, *others)}
    assert len(hashes) == 5
    assert all(len(x) == 16 for x in hashes)


CLOSED = """
loops:
  - {name: bar, kind: distance, a: link3, b: link6, length: 0.3}
point_springs:
  - {name: coil, a: link1, b: link4, stiffness: 20.0}
"""


@pytest.mark.parametrize(
    ("path", "value"),
    [("bar.length", 0.4), ("bar.at_b", (0.0, 0.0, 0.1, 0.0, 0.0, 0.0)),
     ("coil.stiffness", 21.0), ("coil.rest_length", 0.1)],
)  # fmt: skip
def test_loops_and_springs_change_the_hash(path, value):
    """Batches of one robot do not go on with the numbers of another."""
    model = dyn.load("arm7", extras=CLOSED)
    again = dyn.load("arm7", extras=CLOSED)
    assert model_hash(model) == model_hash(again)
    assert model_hash(model.with_values({path: value})) != model_hash(model)


def test_rules_of_followers_change_the_hash():
    """Two grippers with other gears are two robots."""
    one, two = (
        dyn.load(
            "arm7", extras={"gears": [{"joints": ["joint6", "joint7"], "ratio": x}]}
        )
        for x in (2.0, 3.0)
    )
    assert model_hash(one) != model_hash(two)


def test_couplings_of_joints_change_the_hash():
    """Their function counts by its name, which the user gives."""
    model = dyn.load("arm7")

    def equal_angles(a, b):
        return [a - b]

    def opposite_angles(a, b):
        return [a + b]

    hashes = [model_hash(model)]
    for function in (equal_angles, opposite_angles):
        loop = dyn.coupling("pair", ("joint1", "joint2"), function)
        hashes.append(model_hash(model.with_loops(loop)))
    assert len(set(hashes)) == 3
