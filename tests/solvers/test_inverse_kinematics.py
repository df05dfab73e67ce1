"""Inverse kinematics: how many poses are reached, and what else is promised."""

import re

import numpy as np
import pytest
from bench import reaching

import dyn_core as dyn
from dyn_core import cli
from dyn_core.errors import DynWarning, RotationError
from dyn_core.kinematics import InverseKinematics, inverse, pose_matrices
from dyn_core.model.sources import example_robots
from dyn_core.spatial import conventions

ALLOWED = 1e-9  # of a pose that is reached [rad | m]


def _arm():
    """Return a Panda and its hand, or the shipped arm and its tool."""
    if example_robots.home() is None:
        return dyn.load("arm7"), "tool"
    fingers = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
    panda = dyn.load("panda")
    there = {name: x for name, x in fingers.items() if name in panda.joint_names}
    return panda.lock(there), "panda_hand"


def _poses(model, frame, count, seed=0):
    """Return poses that positions inside the limits have, (count, 4, 4)."""
    rng = np.random.default_rng(seed)
    kinematics = dyn.solver("forward_kinematics").build(
        model, frames=[frame], engine="graph"
    )
    q = np.array([model.random(rng) for _ in range(count)])
    return kinematics(q)[:, 0], lambda q: kinematics(np.atleast_2d(q))[:, 0]


def test_a_driven_joint_keeps_no_other_joint_from_being_still():
    """Its coordinates are none; the first one may be of any joint after a reorder."""
    model = dyn.load("arm7").drive("joint2", lambda t: (None, (0.0, 0.0, t)))
    model = model.reorder(model.joint_names[::-1])
    still = inverse._still_places(model, model.child_links[4], [])
    assert sorted(still) == [0, 1, 2, 3]


@pytest.fixture(scope="module")
def arm():
    """A Panda, the name of its hand, and what reaches its poses."""
    model, frame = _arm()
    return model, frame, InverseKinematics(model, frame)


def test_of_a_thousand_poses_ninety_nine_percent_are_reached(arm, full):
    """With 8 starts; with restarts all of them are. 200 poses without --full."""
    model, frame, reach = arm
    poses, kinematics = _poses(model, frame, 1000 if full else 200)
    once = InverseKinematics(model, frame, seeds=8, restarts=0)
    results = [once(pose) for pose in poses]
    there = np.array([result.converged for result in results])
    q = np.array([result.q for result in results])
    assert there.mean() >= 0.99
    assert np.abs(kinematics(q[there]) - poses[there]).max() <= ALLOWED
    assert ((model.lower <= q) & (q <= model.upper)).all()
    assert max(result.residual for result in results if result.converged) <= 1e-10
    again = [reach(pose) for pose in poses[~there]]
    assert all(result.converged and result.seed >= 8 for result in again)


def test_many_poses_are_reached_at_once(arm):
    """All of them, inside the limits; the rows are those of any other batch."""
    model, frame, reach = arm
    poses, kinematics = _poses(model, frame, 300, seed=1)
    result = reach.many(poses)
    assert result.converged.all()
    assert np.abs(kinematics(result.q) - poses).max() <= ALLOWED
    assert ((model.lower <= result.q) & (result.q <= model.upper)).all()
    assert (result.residual <= 1e-10).all() and (result.iterations >= 1).all()
    some = reach.many(poses[::-7])
    np.testing.assert_allclose(some.q, result.q[::-7], atol=1e-12)
    quaternions = conventions.quaternion(poses[:9, :3, :3])
    as_rows = np.hstack([poses[:9, :3, 3], 3.0 * quaternions])
    with pytest.warns(dyn.errors.DynWarning, match="has the length 3; it is scaled"):
        np.testing.assert_allclose(pose_matrices(as_rows), poses[:9], atol=1e-14)
    np.testing.assert_allclose(reach.many(as_rows).q, result.q[:9], atol=1e-9)
    assert reach.many(poses[:0]).q.shape == (0, model.nq)


def test_positions_near_one_are_preferred(arm):
    """`near` is tried first; what is reached stays close where the pose does."""
    model, frame, reach = arm
    q = 0.8 * model.random(3) + 0.2 * (model.lower + model.upper) / 2
    _, kinematics = _poses(model, frame, 1)
    for k in range(1, 4):
        moved = q + 0.01 * k * np.sin(np.arange(model.nq))
        pose = kinematics(moved)[0]
        for result in (reach(pose, near=q), reach(list(pose.tolist()), near=list(q))):
            assert result.converged
            assert np.abs(result.q - q).max() <= 0.1
            assert result.seed == 0
        rows = reach.many(pose[None], near=q)
        assert rows.converged.all() and (rows.seed == 0).all()
        np.testing.assert_allclose(rows.q[0], reach(pose, near=q).q, atol=1e-8)


def test_starts_are_chosen_by_distances_of_places_and_rotations(arm):
    """2 d_i = |p_i - p|²/s² + |R_i - R|² up to a constant, s half the spread of places."""
    model, frame, inverse = arm
    poses, reached = _poses(model, frame, 3, seed=5)
    frames = reached(inverse._pool)
    places = frames[:, :3, 3]
    s = np.sqrt(((places - places.mean(0)) ** 2).sum(1).mean()) / 2
    for pose, distances in zip(poses, inverse._distances(poses), strict=True):
        ways, turns = places - pose[:3, 3], frames[:, :3, :3] - pose[:3, :3]
        wanted = (ways**2).sum(1) / s**2 + (turns**2).sum((1, 2))
        constant = 2 * distances - wanted
        np.testing.assert_allclose(constant, constant[0], atol=1e-4)


def test_the_same_question_has_the_same_answer(arm):
    """What was asked before changes nothing; another seed of the starts may."""
    model, frame, reach = arm
    poses, _ = _poses(model, frame, 5, seed=2)
    first = [reach(pose).q for pose in poses]
    reach.many(poses)
    backwards = [reach(pose).q for pose in poses[::-1]][::-1]
    assert np.array_equal(first, backwards)
    one_call = dyn.inverse_kinematics(model, frame, poses[0])
    assert np.array_equal(one_call.q, first[0])
    other = dyn.inverse_kinematics(model, frame, poses[0], rng=1)
    assert other.converged and not np.array_equal(other.q, first[0])


def test_a_pose_out_of_reach_has_a_nearest_position(arm):
    """Finite, inside the limits, the error said; nearer than 1000 others."""
    model, frame, reach = arm
    poses, kinematics = _poses(model, frame, 20, seed=3)
    others, _ = _poses(model, frame, 1000, seed=8)
    for pose in poses:
        far = pose.copy()
        far[:3, 3] *= 3.0 / np.linalg.norm(far[:3, 3])
        result = reach(far)
        assert not result.converged
        assert np.isfinite(result.q).all() and np.isfinite(result.error).all()
        assert ((model.lower <= result.q) & (result.q <= model.upper)).all()
        assert _square(kinematics(result.q), far)[0] < _square(others, far).min()
        rows = reach.many(far[None])
        assert not rows.converged[0] and np.isfinite(rows.q).all()


@pytest.mark.parametrize("part", ["pose", "position"])
def test_a_position_in_millimetres_is_said_to_be_out_of_reach(arm, part):
    """With both distances, for one pose and for rows; not where others fail or succeed."""
    model, frame, _ = arm
    reach = InverseKinematics(model, frame, part=part, restarts=0)
    poses, _ = _poses(model, frame, 3, seed=3)
    far = poses.copy()
    far[1, :3, 3] *= 1000.0
    assert reach(poses[0]).reason == ""
    result = reach(far[1])
    said = rf"out of reach: .* m from the middle of .*'{frame}'.*; valid: .* metres"
    assert not result.converged and re.match(said, result.reason)
    distance = float(result.reason.split()[3])
    assert distance == pytest.approx(np.linalg.norm(far[1, :3, 3]), rel=0.01)
    rows = reach.many(far)
    assert rows.reason[1] == result.reason
    assert rows.reason[0] == rows.reason[2] == ""
    by_rotation = InverseKinematics(model, frame, part="orientation", restarts=0)
    assert by_rotation(far[1]).reason == ""


def test_a_link_that_no_joint_moves_is_said_to_be_one(shipped):
    """It was "out of reach", whatever the pose; the pose it has is reached."""
    model, pose = shipped["arm7"], np.array([0.3, 0.1, 0.6, 0.0, 0.0, 0.0, 1.0])
    for part in ("pose", "position", "orientation"):
        turned = [*pose[:3], 1.0, 0.0, 0.0, 0.0]
        still = InverseKinematics(model, "link0", part=part, restarts=0)
        result, rows = still(turned), still.many([turned, [0.0] * 6 + [1.0]])
        assert result.reason.startswith("no joint moves 'link0', which stays at (0, 0,")
        assert rows.reason.tolist() == [result.reason, ""]
    joints = list(model.joint_names)
    locked = InverseKinematics(model, "tool", fixed=joints, restarts=0)
    assert locked(pose).reason == "`fixed` has all joints that move 'tool'"
    some = InverseKinematics(model, "tool", fixed=joints[:-1], restarts=0)
    assert "fixed" not in some(pose).reason


def test_a_start_in_degrees_is_asked_about(shipped):
    """It was taken for one of many turns, without a word."""
    model, frame = shipped["arm7"], "tool"
    near = np.degrees(model.neutral() + 0.5)
    pose = np.array([0.3, 0.1, 0.6, 0.0, 0.0, 0.0, 1.0])
    solver = InverseKinematics(model, frame)
    for solve, x in ((solver, pose), (solver.many, np.array([pose, pose]))):
        with pytest.warns(DynWarning, match="is near in degrees. near is beyond the"):
            solve(x, near)


def test_a_base_that_flies_reaches_every_position():
    """No distance is out of its reach; with the base fixed one is."""
    model = dyn.load("quadruped")
    foot, pose = model.frame_names[-1], np.eye(4)
    pose[:3, 3] = 1e4
    flies = InverseKinematics(model, foot, restarts=0, seeds=1)
    assert flies(pose).reason == "" and flies.many([pose]).reason[0] == ""
    base = model.joint_names[0]
    fixed = InverseKinematics(model, foot, restarts=0, seeds=1, fixed=[base])
    assert "out of reach" in fixed(pose).reason


def test_the_nearest_position_has_no_way_downhill(shipped):
    """J.T e is zero where a joint can move, and leads out of limits where one is."""
    model, frame = shipped["arm7"], "tool"
    build = {"frame": frame, "engine": "graph"}
    program = dyn.solver("inverse_kinematics").build(
        model, max_iterations=2000, part="position", **build
    )
    jacobian = dyn.solver("jacobian").build(model, reference="aligned", **build)
    poses, kinematics = _poses(model, frame, 12, seed=9)
    rng, bound = np.random.default_rng(10), 0
    for pose in poses:
        pose[:3, 3] *= 1.1 / np.linalg.norm(pose[:3, 3])
        q = program(model.random(rng), pose).q_reached
        shift = pose[:3, 3] - kinematics(q)[0, :3, 3]
        downhill = jacobian(q)[3:].T @ shift
        inwards = np.where(q <= model.lower, np.maximum(downhill, 0.0), downhill)
        inwards = np.where(q >= model.upper, np.minimum(inwards, 0.0), inwards)
        assert np.abs(inwards).max() <= 1e-6
        bound += np.count_nonzero((q <= model.lower) | (q >= model.upper))
    assert bound > 0


def _square(poses, wanted):
    """Return e.e of poses: chords of the rotations, and distances, squared."""
    turn, shift = (poses - wanted)[:, :3, :3], (poses - wanted)[:, :3, 3]
    return (turn**2).sum((1, 2)) / 2 + (shift**2).sum(1)


def test_half_a_turn_away_is_not_there(shipped):
    """The chord of a rotation does not vanish where its sine does."""
    model = shipped["arm7"]
    program = dyn.solver("inverse_kinematics").build(
        model, frame="tool", engine="graph"
    )
    q = np.array([0.1, 0.5, -0.2, -1.5, 0.3, 1.2, 0.0])
    here = dyn.solver("forward_kinematics").build(model, frames=["tool"])(q)[0]
    for axis in np.eye(3):
        pose = here.copy()
        pose[:3, :3] = here[:3, :3] @ (2 * np.outer(axis, axis) - np.eye(3))
        result = program(q, pose)
        assert result.iterations > 0
        moved = dyn.solver("forward_kinematics").build(model, frames=["tool"])
        gap = np.abs(moved(result.q_reached)[0] - pose).max()
        assert (result.status == 0.0) == (gap <= ALLOWED)


def test_mimic_and_floating_joints_and_others_are_served(shipped):
    """Followers follow, quaternions stay of unit length, fixed joints stay."""
    model = shipped["every_joint"]
    for frame in model.frame_names:
        poses, kinematics = _poses(model, frame, 4, seed=4)
        reach = InverseKinematics(model, frame, engine="graph")
        for pose in poses:
            result = reach(pose)
            assert result.converged, frame
            assert np.abs(kinematics(result.q)[0] - pose).max() <= ALLOWED
            np.testing.assert_allclose(model.normalize(result.q), result.q, atol=1e-14)
    quadruped, foot = shipped["quadruped"], "front_left_foot"
    q0 = quadruped.random(5)
    poses, kinematics = _poses(quadruped, foot, 1)
    moved = q0.copy()
    leg = [name for name in quadruped.joint_names if "front_left" in name]
    for name in leg:
        moved[quadruped.q_slice(name)] = quadruped.random(6)[quadruped.q_slice(name)]
    reach = InverseKinematics(
        quadruped, foot, part="position", fixed=["root_joint"], engine="graph"
    )
    pose = kinematics(moved)[0]
    for result in (reach(pose, near=q0), reach.many(pose[None], near=q0)):
        assert np.all(result.converged)
        q = result.q.reshape(-1)
        assert np.abs(kinematics(q)[0, :3, 3] - pose[:3, 3]).max() <= ALLOWED
        for name in set(quadruped.joint_names) - set(leg):
            part = quadruped.q_slice(name)
            np.testing.assert_allclose(q[part], q0[part], atol=1e-14)


def test_fixed_joints_stay_beyond_their_limits_too(shipped):
    """Where a joint is is not ours to say; without `near` it is inside its limits."""
    model = shipped["arm7"]
    low, high, name = model.lower[3], model.upper[3], "joint4"
    assert not low <= 0.0 <= high
    reach = InverseKinematics(model, "tool", fixed=[name], engine="graph")
    poses, _ = _poses(model, "tool", 1)
    assert reach(poses[0], near=np.zeros(7)).q[3] == 0.0
    assert low <= reach(poses[0]).q[3] <= high
    free = dyn.solver("inverse_kinematics").build(model, frame="tool", engine="graph")
    assert low <= free(np.zeros(7), poses[0]).q_reached[3] <= high


@pytest.mark.parametrize("part", ["position", "orientation"])
def test_a_part_of_a_pose_can_be_asked_for(part, shipped):
    """Three joints of a plane reach a place with any rotation."""
    model = shipped["planar3"]
    frame = model.frame_names[-1]
    poses, kinematics = _poses(model, frame, 20, seed=7)
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    reach = InverseKinematics(model, frame, part=part, engine="graph")
    which = np.s_[:3, 3] if part == "position" else np.s_[:3, :3]
    for pose in poses:
        other = pose.copy()
        if part == "position":
            other[:3, :3] = turn @ turn @ other[:3, :3]
        else:
            other[:3, 3] += 5.0
        result = reach(other)
        assert result.converged
        assert np.abs(kinematics(result.q)[0][which] - other[which]).max() <= ALLOWED


def test_a_position_has_three_numbers(shipped):
    """Without a rotation where none counts; else they are refused, and it is said."""
    model, goal = shipped["arm7"], [0.3, 0.2, 0.6]
    pose = [*goal, 0.0, 0.0, 0.0, 1.0]
    ways = [
        dyn.inverse_kinematics(model, "tool", x, part="position").q
        for x in (goal, np.array(goal), pose)
    ]
    np.testing.assert_array_equal(ways, [ways[0]] * 3)
    wanted = r"\(4, 4\) or \(7,\), or \(3,\) with part='position', got shape \(3,\)"
    with pytest.raises(dyn.ShapeError, match=wanted):
        dyn.inverse_kinematics(model, "tool", goal)


def test_what_is_wrong_is_said(shipped):
    """Links, joints, shapes, rotations, numbers: what it is and what is valid."""
    model = shipped["arm7"]
    good = np.eye(4)
    skewed, mirrored, low = np.eye(4), np.diag([1.0, 1.0, -1.0, 1.0]), np.eye(4)
    skewed[0, 1], low[3, 0] = 1e-3, 1.0
    reach = InverseKinematics(model, "tool", engine="graph")
    for call in (reach, lambda pose: reach.many(np.array([good, pose]))):
        for pose in (skewed, mirrored):
            with pytest.raises(RotationError, match="not orthonormal.*: pose"):
                call(pose)
        with pytest.raises(dyn.NonFiniteError, match="pose: it holds NaN"):
            call(good * np.nan)
        with pytest.raises(dyn.ShapeError, match="last row"):
            call(low)
    with pytest.raises(dyn.ShapeError, match=re.escape("shape (4, 4) or (7,)")):
        reach(np.eye(3))
    for size in (0.0, 1e-200, 1e200):  # also where the squared length is zero, infinite
        with pytest.raises(dyn.NonFiniteError, match="quaternion is zero or"):
            reach(np.eye(7)[6] * size)
    with pytest.raises(dyn.ShapeError, match="near"):
        reach(good, near=np.zeros(3))
    with pytest.raises(dyn.NonFiniteError, match="near"):
        reach(good, near=np.full(7, np.nan))
    with pytest.raises(dyn.ShapeError, match="near"):
        reach.many(good[None], near=np.zeros((2, 7)))
    for name, settings in (
        ("tool0", {"frame": "tool0"}), ("joint9", {"fixed": ["joint9"]}),
        ("fixed", {"fixed": "joint1"}), ("part", {"part": "angle"}),
        ("tolerance", {"tolerance": 0.0}), ("seeds", {"seeds": 0}),
        ("restarts", {"restarts": -1}), ("pool", {"pool": 8}), ("pool", {"pool": 10**10}),
    ):  # fmt: skip
        with pytest.raises(dyn.DynError, match=name) as caught:
            InverseKinematics(model, **{"frame": "tool", **settings})
        assert "valid" in str(caught.value), name


def test_robots_with_loops_are_refused(shipped):
    """The open tree's answer would open them."""
    model = shipped["planar3"]
    rim = model.with_loops(dyn.make_loop("rim", "point", model.frame_names[-1]))
    with pytest.raises(dyn.UnsupportedError, match="without_loops"):
        InverseKinematics(rim, model.frame_names[-1])


def test_rows_with_a_bad_rotation_are_marked(shipped):
    """A batch raises with its rows, or with status=True is NaN there."""
    model = shipped["planar3"]
    program = dyn.solver("inverse_kinematics").build(
        model, frame=model.frame_names[-1], engine="graph"
    )
    poses = np.array([np.eye(4), 2 * np.eye(4), np.eye(4)])
    with pytest.raises(RotationError, match="rows 1"):
        program(np.zeros((3, 3)), poses)
    results, failed = program(np.zeros((3, 3)), poses, status=True)
    assert (failed != 0).tolist() == [False, True, False]
    assert np.isnan(results.q_reached[1]).all()
    assert np.isfinite(results.q_reached[[0, 2]]).all()


def test_the_command_prints_positions(capsys):
    """`dyn ik` names joints, and its exit status says whether the link is there."""
    model = dyn.load("arm7")
    goal = ["--xyz", "0.3", "0.2", "0.6", "--rpy", "0", "1", "0"]
    assert cli.main(["ik", "arm7", "--frame", "tool", *goal]) == 0
    out = capsys.readouterr().out
    lines = dict(line.split() for line in out.splitlines()[:7])
    q = np.array([float(lines[name]) for name in model.joint_names])
    (pose,) = dyn.solver("forward_kinematics").build(model, frames=["tool"])(q)
    np.testing.assert_allclose(pose[:3, 3], [0.3, 0.2, 0.6], atol=1e-9)
    assert pose[0, 0] == pytest.approx(np.cos(1.0), abs=1e-9)
    assert "tool is there: " in out and "steps from start" in out
    same = ["--pose", "0.3", "0.2", "0.6", "0", str(np.sin(0.5)), "0", str(np.cos(0.5))]
    assert cli.main(["ik", "arm7", "--frame", "tool", *same]) == 0
    other = dict(x.split() for x in capsys.readouterr().out.splitlines()[:7])
    assert float(other["joint1"]) == pytest.approx(q[0], abs=1e-8)
    assert cli.main(["ik", "arm7", "--frame", "tool", "--xyz", "3", "0", "0"]) == 1
    out = capsys.readouterr().out
    assert "is not reached; the search ended" in out
    assert out.splitlines()[-1].startswith("out of reach: 3.")
    turn = ["--rpy", "0", "0", "1", "--fixed", "joint1", "--seeds", "4", "--rng", "2"]
    assert cli.main(["ik", "arm7", "--frame", "tool", *turn]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["joint1", "0"]
    assert " rad from the orientation" in out
    for bad, phrase in (
        (["--frame", "tool"], "--pose, or --xyz"),
        (["--frame", "tol", *goal], "did you mean 'tool'"),
        (["--frame", "tool", "--pose", *"1230000"], "quaternion is zero"),
        (["--frame", "tool", "--seeds", "0", *goal], "seeds is 0"),
        (["--frame", "tool", *goal, *same], "valid: --pose, or"),
    ):
        assert cli.main(["ik", "arm7", *bad]) == 1
        assert phrase in capsys.readouterr().err


def _share_of_row(out, title):
    """Return how many percent of the poses a row of the table says are reached."""
    (row,) = [line for line in out.splitlines() if line.startswith(title)]
    return float(re.split(" {2,}", row)[1])


def test_the_benchmark_counts_what_is_reached(capsys, monkeypatch):
    """`dyn bench --ik`: starts, batches, and peers that are not installed."""
    for name, number in (("POSES", 20), ("ROWS", 40), ("REPEATS", 1)):
        monkeypatch.setattr(reaching, name, number)
    monkeypatch.setattr(reaching, "version", lambda name: None)
    assert cli.main(["bench", "--ik", "--robot", "arm7"]) == 0
    said = capsys.readouterr()
    shares = [_share_of_row(said.out, x) for x in ("one start", "8 starts", "many")]
    assert 20 < shares[0] < shares[1] == shares[2] == 100
    assert "mink is not installed" in said.err
    assert cli.main(["bench", "--ik", "--peers", "casadi"]) == 1
    assert "--peers changes nothing beside --ik" in capsys.readouterr().err


@pytest.mark.parametrize("peer", ["mink", "pin-pink"])
def test_peers_reach_poses_of_their_own_limits(peer, capsys, monkeypatch):
    """Frames and joints are those of this library: what a peer reaches is there."""
    if reaching.version(peer) is None:
        pytest.skip(f"{peer} is not installed (extra bench)")
    for name, number in (("POSES", 20), ("ROWS", 40), ("REPEATS", 1)):
        monkeypatch.setattr(reaching, name, number)
    assert cli.main(["bench", "--ik", "--robot", "arm7"]) == 0
    assert _share_of_row(capsys.readouterr().out, peer.removeprefix("pin-")) > 20


@pytest.mark.parametrize("name", ["seeds", "restarts", "pool"])
@pytest.mark.parametrize("value", [True, 2.5, -1, None])
def test_counts_are_whole_numbers(name, value):
    """Booleans are none."""
    with pytest.raises(
        dyn.SettingError, match=f"{name} is {value}; valid: a whole num"
    ):
        InverseKinematics(dyn.load("arm7"), "tool", **{name: value})
