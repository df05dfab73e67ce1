"""Environments for Stable-Baselines3: its checker, its rules of a VecEnv, training."""

import runpy
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="gymnasium is not installed")

from dyn_core import envs
from dyn_core.envs import TaskEnv, TaskVectorEnv
from dyn_core.errors import SettingError, ShapeError, UnsupportedError

EXAMPLES = Path(__file__).parents[2] / "examples"
MISSING = "Stable-Baselines3 is not installed (extra sb3)"


@pytest.fixture(scope="module")
def sb3():
    """Stable-Baselines3, or a skipped test."""
    return pytest.importorskip("stable_baselines3", reason=MISSING)


def test_a_missing_package_is_named(monkeypatch):
    """The message says what to install."""
    monkeypatch.delitem(sys.modules, "dyn_core.envs.stable_baselines", raising=False)
    for name in [x for x in sys.modules if x.partition(".")[0] == "stable_baselines3"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'dyn_ros\[sb3\]'"):
        envs.sb3("reach")


@pytest.mark.parametrize("task", ["reach", "quadruped_stand", "pendulum", "cart_pole"])
def test_its_checker_accepts_single_environments(sb3, task):
    """check_env finds no error; it may warn of bounds and dtypes."""
    from stable_baselines3.common.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(TaskEnv(task))


@pytest.mark.parametrize("task", ["reach", "cart_pole"])
def test_one_row_is_its_own_vector_of_one(sb3, task):
    """Observations, rewards, ends and infos are those of a DummyVecEnv with Monitor."""
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    settings = {"max_episode_steps": 4, "dtype": "float32"}
    theirs = DummyVecEnv([lambda: Monitor(TaskEnv(task, **settings))])
    ours = envs.sb3(task, **settings)
    assert ours.observation_space == theirs.observation_space
    assert [env.seed(3) for env in (ours, theirs)] == [[3], [3]]
    assert np.array_equal(ours.reset(), theirs.reset())
    ours.action_space.seed(0)
    ends = 0
    for _ in range(10):
        action = np.array([ours.action_space.sample()])
        (seen, reward, done, (info,)), other = ours.step(action), theirs.step(action)
        assert np.array_equal(seen, other[0])
        assert seen.dtype == other[0].dtype
        np.testing.assert_allclose(reward, other[1], rtol=1e-6)  # theirs are float32
        assert np.array_equal(done, other[2])
        expected = other[3][0]
        assert info.get("TimeLimit.truncated", False) == expected["TimeLimit.truncated"]
        assert info.keys() == expected.keys() - (set() if done else expected.keys())
        if done:
            last = info["terminal_observation"], expected["terminal_observation"]
            assert np.array_equal(*last)
            assert info["episode"]["l"] == expected["episode"]["l"] == 4
            assert info["episode"]["r"] == pytest.approx(expected["episode"]["r"])
            ends += 1
    assert ends == 2


def test_arrays_are_passed_on_and_not_overwritten(sb3, monkeypatch):
    """What the step has written is returned; SB3 keeps it while the next step runs."""
    ours = envs.sb3("reach", 3)
    plain = TaskVectorEnv("reach", 3, dtype="float32", autoreset_mode="SameStep")
    ours.seed(5)
    first, results = ours.reset(), []
    assert np.array_equal(first, plain.reset(seed=5)[0])
    step = ours.vector.step
    monkeypatch.setattr(
        ours.vector, "step", lambda x: results.append(step(x)) or results[-1]
    )
    before = first.copy()
    for _ in range(2):
        seen, reward, _, infos = ours.step(np.full((3, 7), 0.5, np.float32))
        assert seen is results[-1][0]
        assert reward is results[-1][1]
        assert infos == [{}, {}, {}]
        assert np.array_equal(seen, plain.step(np.full((3, 7), 0.5))[0])
    assert np.array_equal(first, before)
    assert results[0][0] is not results[1][0]


def test_ends_of_an_episode(sb3):
    """A row that falls is terminated, one that diverges says so, none is truncated."""
    ours = envs.sb3("quadruped_stand", 3)
    ours.reset()
    state, part = ours.vector.get_state(), ours.vector.task.layout
    state[1, part["q"].start + 2] = 0.05  # the trunk is on the floor
    state[2, part["qd"]] = 1e7
    ours.vector.set_state(state)
    _, _, done, infos = ours.step(np.zeros((3, 12), np.float32))
    assert done.tolist() == [False, True, True]
    assert [info.get("diverged", False) for info in infos] == [False, False, True]
    for info in infos[1:]:
        assert info["TimeLimit.truncated"] is False
        assert info["episode"]["l"] == 1
        assert info["terminal_observation"].shape == (48,)
    assert infos[1]["terminal_observation"].dtype == np.float32


def test_a_fall_in_the_last_step_is_no_truncation(sb3):
    """TimeLimit.truncated makes an algorithm add the value of the last observation."""
    ours = envs.sb3("quadruped_stand", 2, max_episode_steps=1)
    ours.reset()
    state = ours.vector.get_state()
    state[1, ours.vector.task.layout["q"].start + 2] = 0.05
    ours.vector.set_state(state)
    _, _, done, infos = ours.step(np.zeros((2, 12), np.float32))
    assert done.all()
    assert [info["TimeLimit.truncated"] for info in infos] == [True, False]


def test_a_seed_is_used_once(sb3):
    """Else every reset would begin the same episodes."""
    ours = envs.sb3("reach", 2)
    ours.seed(4)
    first, second = ours.reset(), ours.reset()
    assert not np.array_equal(first, second)
    ours.seed(4)
    assert np.array_equal(ours.reset(), first)


def test_attributes_and_methods(sb3):
    """One TaskVectorEnv serves all rows; an index selects a row of what it returns."""
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    ours = envs.sb3("reach", 3, threads=1)
    ours.seed(0)
    ours.reset()
    assert [task.name for task in ours.get_attr("task", [0, 2])] == ["reach"] * 2
    assert not ours.has_attr("nothing")
    ours.set_attr("note", 4)
    assert ours.get_attr("note") == [4, 4, 4]
    with pytest.raises(SettingError, match="same for all"):
        ours.set_attr("note", 5, indices=1)
    states = ours.vector.get_state()
    (second,) = ours.env_method("get_state", indices=1)
    assert np.array_equal(second, states[1])
    assert ours.env_method("_demand_reset") == [None] * 3
    assert ours.env_is_wrapped(Monitor) == [True] * 3
    assert ours.env_is_wrapped(VecMonitor, indices=[0]) == [False]
    with pytest.warns(UserWarning, match="already wrapped"):
        wrapped = VecNormalize(VecMonitor(ours))
    wrapped.reset()
    assert wrapped.step(np.zeros((3, 7), np.float32))[0].shape == (3, 17)
    ours.close()


def test_options_of_a_reset(sb3):
    """States of all rows may be given once; what is not understood is refused."""
    ours = envs.sb3("reach", 2)
    ours.reset()
    states = ours.vector.get_state()
    ours.set_options([{"state": state} for state in states[::-1]])
    ours.reset()
    assert np.array_equal(ours.vector.get_state(), states[::-1])
    ours.reset()
    assert not np.array_equal(ours.vector.get_state(), states[::-1])
    ours.set_options([{"state": states[0]}, {}])
    with pytest.raises(SettingError, match="the same keys for all"):
        ours.reset()
    ours.set_options({"place": 1})
    with pytest.raises(SettingError, match="valid: state, reset_mask"):
        ours.reset()
    for bad in (states[0, :-1], states[0].astype(str)):
        ours.set_options({"state": bad})
        with pytest.raises(ShapeError, match="state"):
            ours.reset()


def test_a_reset_mask_is_checked_and_resets_its_rows_alone(sb3):
    """The other episodes go on, with their lengths and sums of rewards."""
    ours = envs.sb3("reach", num_envs=2)
    ours.reset()
    for _ in range(3):
        ours.step(np.stack([ours.action_space.sample() for _ in range(2)]))
    ours.set_options([{"reset_mask": True}, {"reset_mask": False}])
    ours.reset()
    assert ours._lengths.tolist() == [0, 3]
    assert (ours._returns != 0).tolist() == [False, True]
    for bad in ([[True], [True, False]], [1, 0], [[True, False]] * 2):
        ours.set_options([{"reset_mask": row} for row in bad])
        with pytest.raises(ShapeError, match=r"reset_mask: wanted booleans of"):
            ours.reset()


@pytest.mark.parametrize("key", ["autoreset_mode", "copy"])
def test_settings_that_its_rules_fix_are_refused(sb3, key):
    """A VecEnv resets in the same step and keeps what it returned."""
    with pytest.raises(SettingError, match=f"{key} is set by"):
        envs.sb3("reach", **{key: "NextStep"})


def test_pictures_of_all_rows(sb3):
    """Its render tiles one picture for each row."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    ours = envs.sb3("reach", 2, render_mode="rgb_array")
    ours.reset()
    assert [picture.shape for picture in ours.get_images()] == [(400, 600, 3)] * 2
    assert ours.render().shape == (800, 600, 3)


@pytest.mark.parametrize(
    ("algorithm", "task", "settings"),
    [
        ("PPO", "reach", {"n_steps": 8, "batch_size": 32}),
        ("SAC", "reach", {"learning_starts": 32, "batch_size": 16}),
        ("DQN", "cart_pole", {"learning_starts": 32, "batch_size": 16}),
    ],
)
def test_equal_seeds_train_equal_policies(sb3, algorithm, task, settings):
    """Algorithms with and without a replay buffer run, and repeat to the bit."""
    actions = []
    for _ in range(2):
        model = getattr(sb3, algorithm)(
            "MlpPolicy",
            envs.sb3(task, 4, max_episode_steps=5),
            seed=1,
            device="cpu",
            **settings,
        )
        model.learn(96)
        assert len(model.ep_info_buffer) > 0
        actions.append(model.predict(model.env.reset(), deterministic=True)[0])
    assert np.array_equal(*actions)


def test_the_example_trains_and_draws(sb3, tmp_path, monkeypatch, capsys):
    """A few updates: what it prints, the curve, and the film."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    path = str(EXAMPLES / "learn_reach.py")
    short = ["--seeds", "1", "--steps", "8192", "--randomise", "--folder", tmp_path]
    monkeypatch.setattr("sys.argv", [path, *map(str, short)])
    runpy.run_path(path, run_name="__main__")
    printed = capsys.readouterr().out
    assert "seed 0: 64 of 8192 steps" in printed
    assert "of 100 goals reached within 2 cm" in printed
    assert sb3.PPO.load(tmp_path / "reach.zip", device="cpu").num_timesteps == 8192
    for name in ("reach.png", "reach.gif", "reach.zip"):
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize("name", ["get_state", "set_state", "task"])
def test_what_the_vector_has_is_told_so(sb3, name):
    """States and the task are those of the TaskVectorEnv."""
    with pytest.raises(
        AttributeError, match="its TaskVectorEnv is the attribute vector"
    ):
        getattr(envs.sb3("cart_pole", num_envs=2), name)
