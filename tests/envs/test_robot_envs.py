"""Robot environments: laws of their steps, bits, rows that diverge, values, pictures."""

import pickle
import runpy
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from dyn_core import envs  # noqa: E402
from dyn_core.envs import (  # noqa: E402
    TaskEnv,
    TaskVectorEnv,
    robot_task,
)
from dyn_core.errors import (  # noqa: E402
    DynWarning,
    ModelError,
    NonFiniteError,
    SettingError,
    ShapeError,
    UnsupportedError,
)
from dyn_core.tasks import (  # noqa: E402
    JointTargets,
    JointTorques,
    PayloadMass,
    RobotTask,
    Uniform,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
envs.register()
IDS = [name for name, task in envs.IDS.items() if task in envs.ROBOT_TASKS]
QUICK = ("reach", "quadruped_stand")  # one step without contacts, one with a floor
UNIMPORTANT = ("-infinity", "is infinity")


@pytest.fixture(scope="module")
def two_link():
    """A task that a user would write, for a robot of two joints."""
    model = dyn.load("two_link")

    def initial(rng, rows):
        return rng.uniform(-1, 1, (rows, 2)), np.zeros((rows, 2)), np.zeros((rows, 0))

    return RobotTask(
        name="two_link",
        model=model,
        initial=initial,
        control=JointTorques.of(model, 100.0),
        observe=lambda rows: np.concatenate([rows.q, rows.qd], axis=1),
        reward=lambda before, action, after: -(after.q**2).sum(axis=1),
        action_bounds=((-1.0, 1.0),) * 2,
        substeps=2,
        max_steps=5,
    )


def states(env, seed, steps):
    """Return the states of an episode with random actions."""
    env.reset(seed=seed)
    env.action_space.seed(seed)
    path = []
    for _ in range(steps):
        env.step(env.action_space.sample())
        path.append(env.get_state())
    return np.array(path)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_checks_every_id(name):
    """check_env passes; what it warns of is that observations are open."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env = gymnasium.make(name)
        check_env(env.unwrapped)
        many = gymnasium.make_vec(name, num_envs=3)
    said = [str(w.message) for w in caught]
    assert [s for s in said if not any(word in s for word in UNIMPORTANT)] == []
    seen, _ = many.reset(seed=0)
    assert seen in many.observation_space
    seen, reward, over, late, _ = many.step(many.action_space.sample())
    assert seen in many.observation_space
    assert reward.shape == over.shape == late.shape == (3,)
    task = env.unwrapped.task
    assert env.spec.max_episode_steps == task.max_steps
    assert len(task.entries) == task.ns


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", [*QUICK, "push_box"])
def test_same_seed_same_bits(name):
    """Two environments agree to the bit; another seed gives other numbers."""
    first, again, other = (states(TaskEnv(name), seed, 6) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.ptp(first, axis=0).max() > 1e-3


@pytest.mark.parametrize("name", [*QUICK, "push_box"])
def test_a_row_does_not_depend_on_the_others(name):
    """Rows of a vector are to the bit what single environments make of their states."""
    many = TaskVectorEnv(name, num_envs=3, autoreset_mode="Disabled", threads=1)
    many.reset(seed=5)
    rng, one = np.random.default_rng(0), TaskEnv(name)
    begin = many.get_state()
    actions = rng.uniform(-0.5, 0.5, (4, *many.action_space.shape))
    out = [many.step(action) for action in actions]
    for row in range(3):
        one.reset(options={"state": begin[row]})
        for action, (seen, reward, over, *_) in zip(actions, out, strict=True):
            s, r, o, *_ = one.step(action[row])
            assert np.array_equal(s, seen[row])
            assert (r, o) == (reward[row], over[row])


def test_the_vector_of_one_draws_what_the_single_one_draws():
    """Their resets agree, also those of later episodes."""
    one = TaskEnv("reach", max_episode_steps=3)
    many = TaskVectorEnv("reach", 1, max_episode_steps=3, autoreset_mode="SameStep")
    assert np.array_equal(one.reset(seed=9)[0], many.reset(seed=9)[0][0])
    for _ in range(3):
        action = np.full(7, 0.1)
        seen, *_ = many.step(action[None])
        one.step(action)
    assert np.array_equal(one.reset()[0], seen[0])


def test_a_row_that_diverges_ends_alone():
    """It is terminated with its last good state; the others go on to the bit."""
    choices = {"autoreset_mode": "Disabled", "threads": 1}
    many = TaskVectorEnv("quadruped_stand", 3, **choices)
    calm = TaskVectorEnv("quadruped_stand", 3, **choices)
    seen, _ = many.reset(seed=1)
    calm.reset(seed=1)
    state, action = many.get_state(), np.zeros((3, 12))
    broken = state.copy()
    qd = many.task.layout["qd"]
    broken[1, qd.start + 6 : qd.stop] = 1e200
    many.set_state(broken)
    seen, reward, over, _, info = many.step(action)
    expected = calm.step(action)
    assert over.tolist() == info["diverged"].tolist() == [False, True, False]
    assert reward[1] == 0.0
    assert np.array_equal(seen[[0, 2]], expected[0][[0, 2]])
    assert np.array_equal(many.get_state()[1], broken[1])
    strict = TaskEnv("quadruped_stand", divergence="raise")
    strict.reset(seed=1)
    strict.set_state(broken[1])
    with pytest.raises(NonFiniteError, match="quadruped_stand"):
        strict.step(action[0])


def test_a_row_of_bodies_that_diverges_ends_alone():
    """Where the general contact step has no result, the other row goes on to the bit."""
    many, calm = (
        TaskVectorEnv("push_box", 2, autoreset_mode="Disabled") for _ in range(2)
    )
    many.reset(seed=1)
    calm.reset(seed=1)
    state = many.get_state()
    state[1, many.task.layout["qd"]] = 1e200
    many.set_state(state)
    _, _, over, _, info = many.step(np.zeros((2, 2)))
    calm.step(np.zeros((2, 2)))
    assert over.tolist() == info["diverged"].tolist() == [False, True]
    assert np.array_equal(many.get_state()[0], calm.get_state()[0])


def test_a_reward_that_is_not_finite_ends_its_row(two_link):
    """A fault of a user's function is marked like any other divergence."""

    def reward(before, action, after):
        return np.where(action[:, 0] > 0, np.nan, 1.0)

    env = TaskVectorEnv(two_link, 2, autoreset_mode="Disabled", reward=reward)
    env.reset(seed=0)
    _, rewards, over, _, info = env.step(np.array([[1.0, 0.0], [-1.0, 0.0]]))
    assert rewards.tolist() == [0.0, 1.0]
    assert over.tolist() == info["diverged"].tolist() == [True, False]


@pytest.mark.parametrize("name", ["cart_pole_swing_up", "reach"])
def test_float32_is_the_rounded_float64(name):
    """The motion is the same, to the bit; what is seen is rounded."""
    wide, narrow, buffered = (
        TaskVectorEnv(name, num_envs=2, dtype=dtype, copy=copy, max_episode_steps=3)
        for dtype, copy in (("float64", True), ("float32", True), ("float32", False))
    )
    assert narrow.single_observation_space.dtype == np.float32
    first = [env.reset(seed=2)[0] for env in (wide, narrow, buffered)]
    assert np.array_equal(first[0].astype(np.float32), first[1])
    for _ in range(5):
        action = np.full(wide.action_space.shape, 0.3)
        x, y, z = (env.step(action)[0] for env in (wide, narrow, buffered))
        assert y.dtype == z.dtype == np.float32
        assert y in narrow.observation_space
        assert np.array_equal(x.astype(np.float32), y)
        assert np.array_equal(y, z)
    assert np.array_equal(wide.get_state(), narrow.get_state())
    with pytest.raises(SettingError, match="valid: float64, float32"):
        TaskVectorEnv(name, dtype="float16")


@pytest.mark.parametrize("limit", [True, 0, 2.0, "2"])
def test_numbers_of_steps_are_whole(two_link, limit, tmp_path):
    """Of an episode, of a task, and of a film; a seed is none of the booleans."""
    with pytest.raises(SettingError, match="max_episode_steps must be a whole number"):
        TaskEnv("reach", max_episode_steps=limit)
    with pytest.raises(ModelError, match="max_steps must be a whole number"):
        TaskEnv("reach", max_steps=limit)
    with pytest.raises(SettingError, match="steps is .*; valid: 1 or more"):
        envs.record(
            TaskEnv(two_link),
            lambda seen: [0.0, 0.0],
            tmp_path / "film.gif",
            steps=limit,
        )
    if limit != 0:
        with pytest.raises(SettingError, match="seed must be one whole number"):
            TaskVectorEnv(two_link, 1).reset(seed=limit)


@pytest.mark.parametrize("kind", [TaskEnv, TaskVectorEnv])
@pytest.mark.parametrize("options", [3, "state", ["state"], [1, 2], {1: 2}, []])
def test_options_of_a_reset_are_a_mapping(two_link, kind, options):
    with pytest.raises(SettingError, match="options is .*; valid: a mapping"):
        kind(two_link).reset(options=options)


@pytest.mark.parametrize("rows", [True, 0, 2.0, "2", np.int64(0)])
def test_numbers_of_environments_are_whole(rows):
    assert TaskVectorEnv("reach", np.int64(2)).num_envs == 2
    with pytest.raises(SettingError, match="num_envs must be a whole number >= 1"):
        TaskVectorEnv("reach", rows)


def test_values_differ_by_row_and_act():
    """Gravity and payload of a row are those of its state: a hand sinks as they say."""
    model = dyn.load("arm7")
    still = np.zeros((1, 7))
    task = RobotTask(
        name="fall",
        model=model,
        initial=lambda rng, n: (np.full((n, 7), 0.3), np.zeros((n, 7)), np.zeros((n, 0))),
        control=JointTorques.of(model),
        observe=lambda rows: rows.qd,
        reward=lambda before, action, after: np.zeros(len(action)),
        action_bounds=((-1.0, 1.0),) * 7,
        values={
            "gravity": Uniform((0.0, 0.0, -12.0), (0.0, 0.0, -8.0)),
            "tool.payload": PayloadMass(0.0, 2.0),
        },
        dt=1e-3,
        substeps=1,
    )  # fmt: skip
    env = TaskVectorEnv(task, 4)
    env.reset(seed=0)
    state, part = env.get_state(), task.layout
    seen, *_ = env.step(np.zeros((4, 7)))
    paths = list(task.values)
    step = dyn.solver("semi_implicit_euler").build(
        model, inputs=paths, joint_friction=True
    )
    for row, qd in zip(state, seen, strict=True):
        numbers = [row[part[path]] for path in paths]
        expected = step(row[part["q"]], still[0], still[0], 1e-3, *numbers)[1]
        np.testing.assert_allclose(qd, expected, rtol=1e-12, atol=1e-15)
    assert len({tuple(row) for row in seen.tolist()}) == 4
    with pytest.raises(ModelError, match="values do not act with stepping 'bodies'"):
        robot_task("push_box", values={"gravity": Uniform((0.0,) * 3, (1.0,) * 3)})


RESISTED = {
    "joint1": {"damping": 0.4, "friction": 0.3},
    "joint2": {"damping": 0.2, "friction": 0.1},
}


@pytest.mark.parametrize("stepping", ["free", "floor", "bodies"])
def test_joints_resist_as_in_a_simulation(two_link, stepping):
    """Damping and dry friction of the robot act, whatever steps it."""
    model = dyn.load("two_link", extras={"joints": RESISTED})
    env = TaskEnv(two_link, model=model, stepping=stepping, dt=5e-4, substeps=200)
    env.reset(seed=4)
    state = env.get_state()
    state[2:4] = 2.0, -1.0
    env.set_state(state)
    env.step(np.zeros(2))
    ends = []
    for robot in (model, dyn.load("two_link")):
        run = dyn.simulate(
            robot, duration=0.1, q0=state[:2], qd0=state[2:4], period=5e-4
        )
        ends.append(run.q[-1] + 5e-4 * run.qd[-1])
    resisted, loose = ends
    assert abs(resisted - loose).max() > 0.01
    assert env.get_state()[:2] == pytest.approx(
        resisted, abs=0.02 * abs(resisted - loose).max()
    )


def test_friction_of_joints_may_differ_by_row(two_link):
    """What is damped more is slower; a parameter of one number takes one."""
    values = {"joint1.damping": Uniform(0.0, 5.0), "joint2.friction": Uniform(0, 1)}
    for stepping in ("free", "floor"):
        envs = TaskVectorEnv(two_link, num_envs=8, values=values, stepping=stepping)
        envs.reset(seed=0)
        task, state = envs.task, envs.get_state()
        state[:, :4] = [0.3, 0.2, 1.0, 0.0]
        state[:, task.layout["joint1.damping"]] = np.linspace(0, 5, 8)[:, None]
        state[:, task.layout["joint2.friction"]] = 0.0
        envs.set_state(state)
        envs.step(np.zeros((8, 2)))
        moved = abs(envs.get_state()[:, 0] - 0.3)
        assert (np.diff(moved) < 0).all()


def test_values_act_on_a_floor():
    """Standing robots press on the floor with the gravity of their own row."""
    values = {"gravity": Uniform((0.0, 0.0, -12.0), (0.0, 0.0, -8.0))}
    env = TaskVectorEnv("quadruped_stand", 4, outside=None, values=values)
    env.reset(seed=0)
    for _ in range(60):
        env.step(np.zeros((4, 12)))
    task, state = env.task, env.get_state()
    gravity = -state[:, task.layout["gravity"]][:, 2]
    assert np.ptp(gravity) > 0.5
    normal = state[:, task.layout["impulses"]].reshape(4, 4, 3)[:, :, 0].sum(axis=1)
    weight = task.model.mass * gravity
    np.testing.assert_allclose(normal / task.dt, weight, rtol=0.05)


def test_joint_targets_are_the_law_of_their_docstring():
    """tau = kp (home + scale a - q) - kd qd, within the limits of effort."""
    task = robot_task("reach")
    rng, law = np.random.default_rng(0), task.control
    rows = task.rows(task.start(rng, 5))._replace(qd=rng.normal(size=(5, 7)))
    action = rng.uniform(-1, 1, (5, 7))
    tau = law.kp * (law.home + action - rows.q) - law.kd * rows.qd
    limit = task.model.effort_limit
    assert (np.abs(tau) > limit).any()
    assert np.array_equal(law(rows, action), np.clip(tau, -limit, limit))
    with pytest.raises(ModelError, match="no joint 'wing'"):
        JointTargets.of(task.model, np.zeros(7), 1.0, 1.0, joints=["wing"])


def test_the_push_is_horizontal_in_the_world():
    """Turned back into the world, its force is 20 N in the direction that was drawn."""
    task = robot_task("quadruped_stand")
    rows = task.rows(task.start(np.random.default_rng(0), 4))
    turn = np.random.default_rng(1).normal(size=(4, 4))
    q = rows.q.copy()
    q[:, 3:7] = turn / np.linalg.norm(turn, axis=1)[:, None]
    rows = rows._replace(q=q, poses=task.place_links(q), time=np.full(4, 2.7))
    forces = task.outside(rows)
    world = np.einsum("nij,nj->ni", rows.axes(0), forces[:, 3:6])
    angle = rows.memory[:, 1]
    expected = 20 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    np.testing.assert_allclose(world, expected, atol=1e-12)
    assert not task.outside(rows._replace(time=np.full(4, 3.1))).any()


def test_the_quadruped_stands_on_its_stance_without_pushes():
    """All its weight is borne by the impulses that the state keeps."""
    env = TaskVectorEnv("quadruped_stand", 2, outside=None)
    env.reset(seed=0)
    for _ in range(100):
        _, _, over, _, _ = env.step(np.zeros((2, 12)))
        assert not over.any()
    task, state = env.task, env.get_state()
    normal = state[:, task.layout["impulses"]].reshape(2, 4, 3)[:, :, 0].sum(axis=1)
    mass = float(sum(task.model.I[i].m for i in task.model.bodies))
    np.testing.assert_allclose(normal, mass * 9.81 * task.dt, rtol=0.02)


def test_pushing_the_box_moves_it():
    """The tip meets the box and the box moves; where it does not, the box rests."""
    env = TaskVectorEnv("push_box", 2, autoreset_mode="Disabled")
    env.reset(seed=0)
    state, box = env.get_state(), np.array([0.5, -0.2])
    state[:, 2:4] = box
    env.set_state(state)
    for _ in range(40):
        env.step(np.array([[1.0, 0.0], [0.0, 0.0]]))
    moved = np.linalg.norm(env.get_state()[:, 2:4] - box, axis=1)
    assert moved[0] > 0.02
    assert moved[1] < 1e-3


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "name", ["reach", "push_box", "quadruped_walk", "humanoid_stand"]
)
def test_pictures_show_the_state(name):
    """Pictures of two states differ, that of one state does not."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    env = TaskEnv(name, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.shape == (400, 600, 3)
    assert np.array_equal(env.render(), first)
    env.set_state(env.task.start(np.random.default_rng(7), 1)[0])
    assert (env.render() != first).any()


def test_pictures_say_what_they_need(monkeypatch):
    """Without matplotlib a render mode is refused at once, and all else works."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for make in (TaskEnv, TaskVectorEnv):
        with pytest.raises(
            UnsupportedError, match=r"pip install 'dyn_ros\[env,plot\]'"
        ):
            make("reach", render_mode="rgb_array")
    env = TaskEnv("reach")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode is None; valid: rgb_array"):
        assert env.render() is None


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"home": np.zeros(12)}, ShapeError, r"home: wanted shape \(19,\).*\(12,\)"),
        (
            {"home": np.full(19, np.nan)},
            NonFiniteError,
            "home is not finite at joint f",
        ),
        ({"kp": -1.0}, SettingError, "kp is -1; valid: 0 or more"),
        ({"kd": [1.0] * 11 + [-2.0]}, SettingError, r"kd of \w+ is -2; valid: 0 or"),
        ({"kp": [1.0, 2.0]}, ShapeError, r"kp: wanted shape \(12,\), got shape \(2,\)"),
        ({"scale": np.nan}, NonFiniteError, "scale is not finite"),
    ],
)
def test_joint_targets_of_another_size_are_refused(changed, error, message):
    """They were an IndexError, or drove joints away from their targets."""
    model = dyn.load("quadruped")
    chosen = {"home": model.neutral(), "kp": 40.0, "kd": [1.0] * 12, "scale": -0.5}
    law = JointTargets.of(model, **chosen)
    assert law.kd.shape == (12,) and law.kp == 40.0
    with pytest.raises(error, match=message):
        JointTargets.of(model, **{**chosen, **changed})
    if "scale" in changed:
        with pytest.raises(error, match=message):
            JointTorques.of(model, **changed)


def test_a_picture_is_centred_on_the_links():
    """Wherever the robot went; on the origin without links."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from dyn_core.envs.pictures import RobotPicture

    picture = RobotPicture(robot_task("reach"))
    for places, middle in (
        ([[3.0, 1.0, 0.0], [5.0, 1.0, 2.0]], (4.0, 1.0, 1.0)),
        (np.zeros((0, 3)), (0.0, 0.0, 0.0)),
    ):
        picture._look(np.array(places))
        limits = (getattr(picture._axes, f"get_{x}lim")() for x in "xyz")
        np.testing.assert_allclose([sum(x) / 2 for x in limits], middle, atol=1e-9)


def test_edges_of_a_box_are_where_its_corners_are():
    """All eight corners of the box, turned and moved with its link."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from dyn_core.envs.pictures import box_edges

    task = robot_task("push_box")
    shape = next(x for x in task.model.shapes if x.link == "box")
    rows = task.rows(task.start(np.random.default_rng(0), 1))
    line = box_edges(shape, rows.poses[0, 3], task) - rows.place(3)[0]
    assert len(np.unique(line.round(9), axis=0)) == 8
    np.testing.assert_allclose(np.abs(line), 0.05, atol=1e-12)
    steps = np.abs(np.diff(line, axis=0))
    np.testing.assert_allclose(steps.sum(axis=1), 0.1, atol=1e-12)  # edges only


def test_the_example_trains_and_draws(tmp_path, monkeypatch, capsys):
    """A short run, twice: the same policy to the bit, its curve, and what it reports."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    path = str(EXAMPLES / "quadruped_stand.py")
    short = ["--rounds", "1", "--seconds", "0.4", "--seeds", "4"]
    policies = []
    for _ in range(2):
        monkeypatch.setattr("sys.argv", [path, *short, "--folder", str(tmp_path)])
        runpy.run_path(path, run_name="__main__")
        policies.append(np.load(tmp_path / "quadruped_stand.npy"))
    assert np.array_equal(*policies)
    assert policies[0].any()
    assert "stands 0.4 s: 100% of 4 seeds" in capsys.readouterr().out
    assert (tmp_path / "quadruped_stand.png").stat().st_size > 1000


def test_tasks_can_be_pickled():
    """A task and its copy draw and see the same."""
    task = robot_task("quadruped_walk")
    copy = pickle.loads(pickle.dumps(task))
    seen = [
        t.observe(t.rows(t.start(np.random.default_rng(0), 2))) for t in (task, copy)
    ]
    assert np.array_equal(*seen)


@pytest.mark.parametrize("dt", [2.0, 20.0])
def test_steps_in_milliseconds_are_asked_about(dt):
    """Each row diverged in its first step, without a word; substeps do not divide dt."""
    said = f"reach: steps of {dt:g} s are long; valid: dt in seconds"
    with pytest.warns(DynWarning, match=said):
        task = robot_task("reach", dt=dt, substeps=10)
    assert task.interval == 10 * dt


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"dt": 0.0}, ModelError, "dt must be finite"),
        ({"substeps": 0}, ModelError, "substeps must be a whole number"),
        ({"stepping": "fly"}, ModelError, "valid: free, floor, bodies"),
        ({"action_bounds": ((1.0, 0.0),)}, ModelError, "action_bounds"),
        ({"action_bounds": (-1.0, 1.0)}, ModelError, "action_bounds"),
        ({"action_bounds": "ab"}, ModelError, "action_bounds"),
        ({"action_bounds": ()}, ModelError, r"finite pairs .*, got \(\)"),
        ({"options": {"erp": 0.1}}, ModelError, "options act with stepping 'floor'"),
        ({"options": {"links": []}, "stepping": "floor"}, ModelError, "no option"),
        ({"links": ("nose",)}, ModelError, "nose"),
        ({"gain": 1}, ModelError, "valid: name, model"),
        ({"world": ()}, UnsupportedError, "has no world"),
        ({"initial": lambda rng, n: (np.zeros((n, 1)),) * 3}, ShapeError, "q of"),
        ({"observe": lambda rows: rows.time}, ShapeError, "observe"),
        (
            {"reward": lambda a, u, b: 1.0 if b.q[:, 0] > 0 else 0.0},
            ModelError,
            "np.where",
        ),
        (
            {"action_bounds": ((-1.0, 1.0),) * 3},
            ModelError,
            r"action: .* \(n, 2\), got",
        ),
        (
            {"control": lambda rows, a: a[:, :1]},
            ShapeError,
            r"control: .*\(n, 2\), got",
        ),
        ({"control": lambda rows, a: None}, ModelError, "control .*None is no number"),
        ({"action_bounds": ((-1.0, 1.0),)}, ModelError, r"action: .* \(n, 2\), got"),
        ({"reward": lambda a, u: 1.0}, ModelError, "reward .*positional"),
        ({"reward": lambda a, u, b: None}, ModelError, "reward .*None"),
        ({"reward": lambda a, u, b: [0.0, None]}, ModelError, "reward .*None"),
        ({"reward": lambda a, u, b: b.q}, ShapeError, "reward"),
        (
            {"reward": lambda a, u, b: -(b.q**2).sum()},  # axis=1 is missing
            ShapeError,
            r"reward: wanted shape \(n,\), got shape \(\) for n = 2",
        ),
        (
            {"over": lambda b: (b.q > 1.0).any()},
            ShapeError,
            r"over: wanted shape \(n,\), got shape \(\)",
        ),
        ({"over": lambda b: b.q > 1.0}, ShapeError, r"over: .*got shape \(2, 2\)"),
        ({"over": lambda b: None}, ModelError, "over of two rows: None is no number"),
        ({"outside": 3}, SettingError, "outside is 3; valid: a function"),
        (
            {"outside": lambda b: 1.0},
            ShapeError,
            r"outside: .*\(n, 2\), got shape \(\)",
        ),
        (
            {"observe": lambda b: b.qpos},
            ModelError,
            r"observe .*'qpos'.*\(q, qd, poses",
        ),
        (
            {"observe": lambda b: b.poses["tool"]},
            ModelError,
            "observe of two rows: only",
        ),
        ({"reward": lambda a, u, b: b.tau}, ModelError, "reward of .*'tau'.*memory"),
        ({"frame_skip": 5}, ModelError, "did you mean 'substeps'"),
        ({"robot": "ur5"}, ModelError, "did you mean 'model'"),
        ({"observe": lambda b: b.q.sum()}, ShapeError, r"observe: .* got shape \(\)"),
    ],
)
def test_mistakes_are_refused_when_building(two_link, changes, error, message):
    """What is wrong, and what would be valid."""
    with pytest.raises(error, match=message):
        TaskEnv(two_link, **changes)
    assert TaskEnv(two_link).task is two_link
    with pytest.raises(ModelError, match="valid here: 'quadruped_walk'"):
        TaskEnv("dyn_ros/QuadrupedWalk-v0")
    with pytest.raises(ModelError, match="quadruped_walk"):
        TaskEnv("quadruped_wolk")


def test_a_misspelt_argument_of_an_environment_is_named(two_link):
    """Arguments and attributes of the task share their keywords."""
    for task in (two_link, "reach", "pendulum"):
        with pytest.raises(ModelError, match="'n_envs'; did you mean 'num_envs'"):
            TaskVectorEnv(task, n_envs=4)
    with pytest.raises(ModelError, match="did you mean 'max_episode_steps'"):
        TaskEnv(two_link, max_episodes_steps=4)


def test_a_film_is_of_one_environment_by_a_function(tmp_path):
    """A vector, and a model of Stable-Baselines3 in place of its predict."""
    many = envs.TaskVectorEnv("push_box", num_envs=2)
    with pytest.raises(SettingError, match="env is .*valid: one environment"):
        envs.record(many, lambda seen: seen, tmp_path / "a.gif")
    with pytest.raises(SettingError, match=r"lambda seen: model.predict\(seen\)\[0\]"):
        envs.record(envs.TaskEnv("push_box"), object(), tmp_path / "a.gif")


def test_an_unknown_name_of_the_package_names_those_there():
    """`make` is one of gymnasium."""
    with pytest.raises(
        AttributeError, match="'TaskVecEnv'; did you mean 'TaskVectorEnv'"
    ):
        _ = envs.TaskVecEnv
    assert not hasattr(envs, "make") and not hasattr(envs, "__path_of__")


def test_a_task_with_another_robot_names_its_links():
    """The links of `reach` are those of its arm; the message leads to a task of one's own."""
    said = r"reach: links of the task: no link .*'link0'.*#your-own-task"
    with pytest.raises(ModelError, match=said):
        TaskVectorEnv("reach", model=dyn.load("two_link"))
