"""Excitation design: limits on dense samples, condition numbers, mistakes, files."""

import json
import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cli
from dyn_core.contact.collision.hulls import Hulls
from dyn_core.control.reference.trajectory import make_trajectory
from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.identification import base_parameters
from dyn_core.identification.excitation import excite
from dyn_core.identification.excitation.design import DesignProblem
from dyn_core.identification.excitation.fourier import Fourier
from dyn_core.identification.excitation.kernels import motion_programs
from dyn_core.identification.excitation.limits import KINDS, motion_limits
from dyn_core.identification.excitation.link_pairs import (
    CapsulePairs,
    LinkPairs,
    around_points,
    closest_on_segments,
    link_capsules,
)
from dyn_core.recordings import read_motion
from ros_nodes.messages.trajectory_files import message_rows, read_trajectories

LINK = """<link name="{name}"><inertial><origin xyz="0.25 0.01 0.02"/><mass value="{m}"/>
<inertia ixx="0.01" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial>
<collision><origin xyz="0.25 0 0" rpy="0 1.5707963267948966 0"/>
<geometry>{shape}</geometry></collision></link>"""
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/>
<child link="{child}"/><origin xyz="{x} 0 0"/><axis xyz="{axis}"/>
<limit lower="-2.8" upper="2.8" effort="60" velocity="3"/>
<dynamics damping="0.2" friction="0.1"/></joint>"""


def _arm(shape):
    """Return three links in a row whose third can fold back onto the first."""
    links = [
        LINK.format(name=n, m=m, shape=shape)
        for n, m in zip("abc", (3, 2, 1), strict=True)
    ]
    joints = [
        JOINT.format(name=f"j{k}", parent=p, child=c, x=x, axis=axis)
        for k, (p, c, x, axis) in enumerate(
            [
                ("base", "a", 0, "0 0 1"),
                ("a", "b", 0.5, "0 1 0"),
                ("b", "c", 0.2, "0 1 0.3"),
            ]
        )
    ]
    return f"<robot name='folding'><link name='base'/>{''.join(links + joints)}</robot>"


ARM = _arm('<cylinder radius="0.08" length="0.5"/>')
BARE = ARM.replace("<collision>", "<!--").replace("</collision>", "-->")
QUICK = {"starts": 1, "duration": 5.0, "harmonics": 5}


def _dense(excitation, model):
    """Return states and joint forces at 1 kHz, from the message as a controller has it."""
    message = json.loads(json.dumps(excitation.message()))
    names, times, q, qd, qdd, _ = message_rows(message)
    path = make_trajectory(model.joint_names, names, times, q, qd, qdd)
    t = np.arange(0.0, path.duration + 5e-4, 1e-3)
    samples = [path.sample(float(x)) for x in t]
    states = [np.array([s[k] for s in samples]) for k in range(3)]
    tau = dyn.solver("rnea").build(model, joint_friction=True)(*states)
    return (*states, tau)


@pytest.fixture(scope="module")
def folding():
    """The arm that can fold, and its motion."""
    model = dyn.load(ARM)
    return model, excite(model, **QUICK)


def test_every_limit_is_kept_on_dense_samples(folding):
    """Positions, velocities, accelerations and joint forces at 1 kHz, at rest at the ends."""
    model = folding[0]
    loads = {"j1": 20.0, "j2": 5.0}
    accelerations = {"j0": 5.0, "j1": 6.0}
    made = excite(
        model, **QUICK, effort_limits=loads, acceleration_limits=accelerations
    )
    assert made.kept
    q, qd, qdd, tau = _dense(made, model)
    middle, half = (model.lower + model.upper) / 2, (model.upper - model.lower) / 2
    assert (np.abs(q - middle) <= 0.95 * half * (1 + 1e-9)).all()
    assert (np.abs(qd) <= 0.8 * 3 * (1 + 1e-9)).all()
    assert (np.abs(qdd).max(axis=0)[:2] <= [5 + 1e-9, 6 + 1e-9]).all()
    assert (np.abs(tau).max(axis=0) <= 0.8 * np.array([60, 20, 5]) + 1e-9).all()
    # They are reached, so that the test is no empty one.
    assert np.abs(tau)[:, 1:].max() > 0.9 * 0.8 * 5
    assert np.abs(qd).max() > 0.9 * 0.8 * 3
    for row in (0, -1):
        np.testing.assert_allclose(q[row], made.start, atol=1e-12)
        np.testing.assert_allclose(qd[row], 0, atol=1e-12)
        np.testing.assert_allclose(qdd[row], 0, atol=1e-9)


@pytest.fixture(scope="module")
def of_arm7():
    """Return arm7, and its motion by the default settings but for one start."""
    model = dyn.load("arm7")
    return model, excite(model, starts=1)


def test_condition_falls_below_the_best_random_motion(of_arm7):
    """arm7: less than half of the best of 100; reproduced from the points alone."""
    model, made = of_arm7
    assert made.kept
    assert made.condition < 0.5 * made.random_condition
    assert made.condition < 5.0
    columns = list(base_parameters(model).independent)
    Y = dyn.solver("regressor").build(model)(made.q, made.qd, made.qdd)[:, :, columns]
    rows = Y.reshape(-1, len(columns))
    scaled = rows / np.linalg.norm(rows, axis=0)
    assert made.condition == pytest.approx(np.linalg.cond(scaled), rel=1e-9)


def test_lengths_of_columns_count(of_arm7):
    """Without them a joint may rest nearly: all its parameters drown in noise."""
    model, counted = of_arm7
    deviations = []
    for made in (excite(model, starts=1, signal=0.0), counted):
        columns = list(made.base.independent)
        Y = dyn.solver("regressor").build(model)(made.q, made.qd, made.qdd)
        rows = Y[:, :, columns].reshape(-1, len(columns))
        deviations.append(np.sqrt(np.diag(np.linalg.inv(rows.T @ rows))))
    assert np.log(deviations[0] / deviations[1]).mean() > 0.3


def test_seeds_are_reproducible(folding):
    """One seed gives one motion, bit for bit; another gives another."""
    model, first = folding
    again, other = excite(model, **QUICK), excite(model, **QUICK, seed=1)
    np.testing.assert_array_equal(first.q, again.q)
    assert first.condition == again.condition
    assert np.abs(first.q - other.q).max() > 1e-3


def _segment_distance(a, b, n=400):
    """Return the least distance of points of two segments, by trying."""
    s = np.linspace(0, 1, n)[:, None]
    first, second = a[0] + s * (a[1] - a[0]), b[0] + s * (b[1] - b[0])
    return np.linalg.norm(first[:, None] - second[None], axis=2).min()


def test_links_do_not_touch(folding):
    """Without shapes the third link goes through the first; with them it stays away."""
    model, kept = folding
    bare = excite(dyn.load(BARE), **QUICK)
    assert bare.pairs == 0 and bare.distance == math.inf
    alone = excite(model, **QUICK, clearance=None)  # as if there were no shapes
    np.testing.assert_array_equal(alone.q, bare.q)
    assert kept.pairs == 1 and kept.kept and kept.distance >= 0.02

    poses = dyn.solver("forward_kinematics").build(model, frames=["a", "c"])

    def least(made):
        """Return the least distance of both cylinders' axes, less their radii."""
        ends = np.array([[0.0, 0, 0, 1], [0.5, 0, 0, 1]])
        placed = np.einsum("nfij,ej->nfei", poses(made.q[::10]), ends)[..., :3]
        return min(_segment_distance(a, c, n=60) for a, c in placed) - 0.16

    assert least(bare) < -0.02
    assert least(kept) > 0.015


def test_pairs_that_overlap_at_the_start_are_left_out():
    """They would make every motion impossible; the result names them."""
    wide = dyn.load(_arm('<sphere radius="0.5"/>'))
    made = excite(wide, **QUICK, start=[0.0, 0.5, 0.5])
    assert made.left_out == (("a", "c"),)
    assert made.kept and made.pairs == 0


def test_start_is_kept_and_may_be_given(folding):
    """The motion begins and ends where the robot is."""
    start = [0.3, -0.2, 0.7]
    made = excite(folding[0], **QUICK, start=start)
    np.testing.assert_array_equal(made.q[0], start)
    np.testing.assert_array_equal(made.q[-1], start)
    assert made.kept


def test_friction_and_rotors_are_shown_when_asked_for():
    """The base has them, and dry friction has a column of its own."""
    made = excite(dyn.load("two_link"), **QUICK, friction=True, rotors=True)
    kept = [made.base.names[k] for k in made.base.independent]
    assert {"joint1.damping", "joint1.friction", "joint2.friction"} <= set(kept)
    assert made.condition < made.random_condition


def test_what_cannot_be_kept_is_named(folding, tmp_path):
    """Joint, time, value and limit, as samples of the motion have them; no file."""
    model = folding[0]
    made = excite(model, **QUICK, start=[0.0, 0.0, 0.0], effort_limits={"j1": 1.0})
    assert not made.kept  # the weight alone is more than that
    broken = next(x for x in made.broken if x.kind == "effort")
    assert broken.name == "j1" and abs(broken.limit) == pytest.approx(0.8)
    tau = _dense(made, model)[3][:, 1]
    assert (
        abs(broken.value) == pytest.approx(np.abs(tau).max()) and np.abs(tau).max() > 5
    )
    assert broken.value == pytest.approx(tau[round(1000 * broken.time)])
    assert str(broken).startswith("effort of j1 is ")
    with pytest.raises(SettingError, match="motion.json is not written: effort of j1"):
        made.write(tmp_path / "motion.json")
    assert not list(tmp_path.iterdir())


def _problem(model, start=None, signal=0.3, scale=0.8):
    limits = motion_limits(
        model, effort_scale=scale, acceleration_limits={model.joint_names[0]: 3.0}
    )
    links = LinkPairs(model, limits.middle, 0.02, engine="graph")
    columns = dyn.base_parameters(model).independent
    speeds = np.full(model.nb + 1, 0.1)
    programs = motion_programs(model, columns, speeds, "graph")
    tight = {**dict.fromkeys(KINDS, 0.01), "distance": 0.0}
    return DesignProblem(
        Fourier(4.0, 3), limits, programs, links, start,
        np.full(model.nv, 0.1), 50, tight, signal,
    )  # fmt: skip


@pytest.mark.parametrize("start", [False, True])
def test_gradient_of_the_design_agrees_with_differences(start):
    """Condition, lengths and all limits, self-collision among them, to 1e-6."""
    model = dyn.load(ARM)
    folded = np.array([0.1, 2.0, 1.8])
    problem = _problem(model, folded if start else None)
    assert len(problem.links) == 1
    rng = np.random.default_rng(3)
    x = 0.1 * rng.normal(size=problem.count)
    x[:3] = x[:3] if start else (folded - problem.limits.middle) / problem.limits.half
    multipliers = rng.uniform(0, 1, len(problem.outcome(x).excess))
    for weight in (1.0, 30.0):
        _, gradient = problem.lagrangian(x, multipliers, weight)
        for d in rng.normal(size=(5, problem.count)):
            h = 1e-4
            values = [
                problem.lagrangian(x + k * h * d, multipliers, weight)[0]
                for k in (-2, -1, 1, 2)
            ]
            slope = np.dot([1, -8, 8, -1], values) / (12 * h)
            assert gradient @ d == pytest.approx(slope, rel=1e-6)
    excess = problem.outcome(x).excess[-problem.samples :]
    assert excess.max() > 0  # the links do overlap


def test_gradient_of_distances_agrees_with_differences():
    """Of every distance by every joint, for skew segments and for their ends."""
    model = dyn.load(ARM)
    hulls = Hulls(model.source, {})
    capsules = CapsulePairs(
        model, link_capsules(model, hulls), np.zeros(3), 0.0, "graph"
    )
    rng = np.random.default_rng(4)
    q = rng.uniform(-2.5, 2.5, (40, 3))
    distances = capsules.distances(q)
    gradient = capsules.gradient(q, distances, np.ones_like(distances.values))
    for j in range(3):
        d = 1e-6 * np.eye(3)[j]
        after, before = capsules.distances(q + d), capsules.distances(q - d)
        slope = (after.values - before.values).sum(axis=1) / 2e-6
        np.testing.assert_allclose(gradient[:, j], slope, atol=1e-6)
    assert np.ptp(distances.s) == 1.0 or np.ptp(distances.t) > 0.5


def test_capsules_hold_their_shapes():
    """Spheres, boxes, cylinders, capsules and points: none sticks out."""
    shapes = {
        '<sphere radius="0.1"/>': (0.1, 0.0),
        '<cylinder radius="0.05" length="0.5"/>': (0.05, 0.5),
        '<capsule radius="0.05" length="0.5"/>': (0.05, 0.5),
        '<box size="0.1 0.6 0.2"/>': (math.hypot(0.05, 0.1), 0.6),
    }
    for shape, (radius, length) in shapes.items():
        model = dyn.load(_arm(shape))
        capsule = link_capsules(model, Hulls(model.source, {}))[0]
        assert capsule.radius == pytest.approx(radius)
        assert np.linalg.norm(np.diff(capsule.ends, axis=0)) == pytest.approx(length)
    rng = np.random.default_rng(0)
    for stretch in ([1, 1, 1], [5, 1, 0.5], [9, 0.1, 0.1]):
        points = (
            rng.normal(size=(50, 3))
            * stretch
            @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        )
        ends, radius = around_points(points + 3.0)
        axis = ends[1] - ends[0]
        share = np.clip((points + 3.0 - ends[0]) @ axis / max(axis @ axis, 1e-30), 0, 1)
        away = np.linalg.norm(points + 3.0 - ends[0] - share[:, None] * axis, axis=1)
        assert away.max() <= radius * (1 + 1e-9)
        assert radius <= np.abs(points).max() * 2


def test_closest_points_of_segments():
    """Crossing, parallel, touching, and segments without length, against trying."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 60, 2, 3))
    b[:10, 1] = b[:10, 0] + 0.7 * (a[:10, 1] - a[:10, 0])  # parallel
    b[10:20, 1] = b[10:20, 0]
    a[15:30, 1] = a[15:30, 0]
    s, t = closest_on_segments(a.transpose(1, 2, 0), b.transpose(1, 2, 0))
    first = a[:, 0] + s[:, None] * (a[:, 1] - a[:, 0])
    second = b[:, 0] + t[:, None] * (b[:, 1] - b[:, 0])
    exact = np.linalg.norm(first - second, axis=1)
    tried = [_segment_distance(x, y) for x, y in zip(a, b, strict=True)]
    assert (exact <= np.array(tried) + 1e-12).all()
    np.testing.assert_allclose(exact, tried, atol=2e-2)


MISTAKES = {
    "duration": ({"duration": 0.0}, "duration is 0"),
    "duration kind": ({"duration": "long"}, "duration is 'long'"),
    "harmonics": ({"harmonics": 1}, "harmonics is 1; valid: a whole number, 2 to 64"),
    "seed": ({"seed": -1}, "seed is -1"),
    "starts": ({"starts": 0}, "starts is 0; valid: a whole number, 1 to 100"),
    "signal": ({"signal": math.nan}, "signal is nan"),
    "period": ({"period": 3.0}, "period is 3"),
    "clearance": ({"clearance": -0.1}, "clearance is -0.1"),
    "scale": ({"velocity_scale": 1.5}, "velocity_scale is 1.5"),
    "start size": ({"start": [0.0]}, r"start has shape \(1,\); valid: \(3,\)"),
    "start": ({"start": [0, 0, 2.8]}, "joint 'j2' at 2.8 is outside"),
    "joint": ({"effort_limits": {"j9": 1.0}}, "j9"),
    "speed": ({"velocity_limits": {"j1": 0}}, "velocity_limits.j1 is 0"),
    "mapping": ({"acceleration_limits": 3.0}, "acceleration_limits is 3.0; valid: a mapping"),
    "keyword": ({"harmonic": 3}, "harmonics"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_answered_in_words(folding, case):
    """What is wrong, and what would be valid."""
    settings, message = MISTAKES[case]
    with pytest.raises(SettingError, match=message):
        excite(folding[0], **settings)


@pytest.mark.parametrize(
    ("robot", "message"),
    [("cart_pole", "joint 'hinge' has no velocity limit; set velocity_limits.hinge > 0"),
     ("every_joint", "joint 'sheet' is planar; valid: joints of one coordinate; lock it"),
     (ARM.replace('effort="60"', 'effort="0"'), "joint 'j0' has no effort limit"),
     (ARM.replace('lower="-2.8"', 'lower="2.8"'), r"joint 'j0' has the range \[2.8, 2.8\]")],
    ids=["velocity", "planar", "effort", "range"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::dyn_core.errors.ModelWarning")
def test_robots_that_lack_something(robot, message):
    """The joint is named."""
    with pytest.raises(SettingError, match=message):
        excite(dyn.load(robot))


def test_a_joint_without_a_limit_moves_within_one_turn():
    """About zero where it has none, up to the only one it has otherwise; half at scale 0.5."""
    for lower, upper, middle in (("-inf", "inf", 0.0), ("-inf", "1", 1.0 - np.pi),
                                 ("-1", "inf", np.pi - 1.0)):  # fmt: skip
        limit = f'lower="{lower}" upper="{upper}"'
        model = dyn.load(ARM.replace('lower="-2.8" upper="2.8"', limit))
        limits = motion_limits(model, position_scale=0.5)
        np.testing.assert_allclose(limits.lower, middle - np.pi / 2)
        np.testing.assert_allclose(limits.upper, middle + np.pi / 2)


def test_what_is_no_robot_is_refused():
    """Such as the name of one."""
    with pytest.raises(UnsupportedError, match="valid: what dyn.load returns"):
        excite("arm7")


def test_command_writes_what_other_commands_read(tmp_path, monkeypatch, capsys):
    """`dyn excite` writes a JointTrajectory, `dyn feed-forward` fills in its efforts."""
    monkeypatch.chdir(tmp_path)
    options = [
        "--starts",
        "1",
        "--duration",
        "4",
        "--harmonics",
        "3",
        "--period",
        "0.02",
    ]
    limits = ["--velocity-limits", "joint1=1.5", "--start", "joint1=0.5"]
    assert cli.main(["excite", "two_link", *options, *limits, "-o", "a.json"]) == 0
    said = capsys.readouterr().out
    assert "201 points: condition number" in said and "written: a.json" in said
    assert (
        cli.main(["feed-forward", "a.json", "--robot", "two_link", "-o", "b.json"]) == 0
    )
    (message,) = read_trajectories("b.json")
    names, times, q, qd, _, effort = message_rows(message)
    assert list(names) == ["joint1", "joint2"] and len(times) == 201
    assert q[0][0] == 0.5 and q[0][1] == 0.0 and len(effort[0]) == 2
    assert np.abs(np.array(qd)[:, 0]).max() <= 0.8 * 1.5


def test_simulator_follows_the_motion(tmp_path, monkeypatch, capsys):
    """`dyn excite --motion` writes rows that `dyn sim --reference` follows."""
    monkeypatch.chdir(tmp_path)
    options = ["--starts", "1", "--duration", "3", "--harmonics", "3"]
    assert cli.main(["excite", "two_link", *options, "--motion", "m.csv"]) == 0
    follow = [
        "--controller",
        "computed_torque",
        "--reference",
        "m.csv",
        "-o",
        "run.npz",
    ]
    assert cli.main(["sim", "two_link", *follow]) == 0
    run, motion = np.load("run.npz", allow_pickle=False), read_motion("m.csv")
    last = np.interp(2.0, motion.t, motion.q[:, 0])
    assert np.interp(2.0, run["t"], run["q"][:, 0]) == pytest.approx(last, abs=1e-2)


def test_command_says_what_is_not_kept(tmp_path, monkeypatch, capsys):
    """Status 1, the joints, and no file."""
    monkeypatch.chdir(tmp_path)
    command = [
        "excite",
        "two_link",
        "--starts",
        "1",
        "--duration",
        "4",
        "--harmonics",
        "3",
    ]
    assert cli.main([*command, "--effort-limits", "joint1=0.01", "-o", "a.json"]) == 1
    said = capsys.readouterr()
    assert "not kept: effort of joint1 is" in said.out
    assert said.err.startswith("dyn: ") and "not kept" in said.err
    assert not list(tmp_path.iterdir())


def test_picture(folding):
    """Positions, velocities, accelerations and joint forces."""
    pytest.importorskip("matplotlib")
    figure = folding[1].plot("title")
    assert len(figure.axes) == 4
