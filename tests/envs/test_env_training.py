"""Whether the shipped robot tasks can be learned: random, scripted, trained policies."""

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="gymnasium is not installed")

from dyn_core.envs import TaskVectorEnv

TASKS = ("reach", "quadruped_walk", "quadruped_stand", "humanoid_stand", "push_box")


def environment(task, rows, **choices):
    """Return environments that are reset by hand, with small observations."""
    choices = {"autoreset_mode": "Disabled", "threads": 1, "dtype": "float32"} | choices
    return TaskVectorEnv(task, rows, **choices)


def returns(env, policy, steps, seed=0):
    """Return the rewards of each row until its episode ends, and how long it lasts."""
    seen, _ = env.reset(seed=seed)
    total, going = np.zeros(env.num_envs), np.ones(env.num_envs, bool)
    length = np.zeros(env.num_envs, int)
    for _ in range(steps):
        action = np.where(going[:, None], policy(seen), 0.0)
        seen, reward, over, _, info = env.step(np.clip(action, -1.0, 1.0))
        assert seen.dtype == np.float32
        assert np.isfinite(seen).all()
        assert np.isfinite(reward).all()
        assert not info
        total += np.where(going, reward, 0.0)
        length += going
        going &= ~over
    return total, length


def still(env):
    """Return the policy that does nothing."""
    return lambda seen: np.zeros(env.action_space.shape)


def at_random(env, seed=0):
    """Return the policy that draws its actions."""
    rng = np.random.default_rng(seed)
    return lambda seen: rng.uniform(-1, 1, env.action_space.shape)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("task", TASKS)
def test_a_random_policy_does_not_diverge(task, full):
    """32 episodes of random actions: all that comes out is finite, none diverges.

    Nor does it end all episodes at once, so that there is something to learn from.
    """
    env = environment(task, 32, autoreset_mode="NextStep")
    env.reset(seed=1)
    rng, ended = np.random.default_rng(1), 0
    steps = 1000 if full else 80
    for _ in range(steps):
        action = rng.uniform(-1, 1, env.action_space.shape)
        seen, reward, over, _, info = env.step(action)
        assert np.isfinite(seen).all()
        assert np.isfinite(reward).all()
        assert "diverged" not in info
        ended += over.sum()
    assert ended < 0.1 * 32 * steps


@pytest.mark.one_of(2)
@pytest.mark.parametrize("task", ("humanoid_stand", "quadruped_stand"))
def test_standing_still_is_better_than_moving_at_random(task):
    """The stance is held for a second and a half; random targets fall, or lose more."""
    env = environment(task, 16)
    calm, length = returns(env, still(env), 75)
    moved, shorter = returns(env, at_random(env), 75)
    assert (length == 75).all()
    assert calm.min() > moved.mean() + 3.0
    assert shorter.sum() <= length.sum()


def improved(task, steps, rounds, spread, rate, features, tries=4, directions=8):
    """Train a linear policy by random search; return its returns and those of none.

    Args:
        task: Name.
        steps: Of an episode.
        rounds: Of the search.
        spread, rate: Of the directions, and of a step.
        features: Observations -> what the policy sees.
        tries: Episodes of each policy.
        directions: Tried each way in a round.

    Source: Mania, Guy and Recht 2018, V1-t.
    """
    rows = 2 * directions * tries
    env, rng = environment(task, rows), np.random.default_rng(3)
    seen, _ = env.reset(seed=0)
    W = np.zeros((env.task.na, features(seen).shape[1]))

    def policy(tried):
        weights = np.repeat(tried, rows // len(tried), axis=0)
        return lambda seen: np.einsum("nij,nj->ni", weights, features(seen))

    for k in range(rounds):
        d = rng.standard_normal((directions, *W.shape))
        tried = W + spread * np.concatenate([d, -d])
        total, _ = returns(env, policy(tried), steps, seed=k)
        up, down = total.reshape(2, directions, tries).mean(axis=2)
        noise = np.concatenate([up, down]).std() + 1e-9
        W = W + rate * np.tensordot((up - down) / noise, d, axes=1) / directions
    after, _ = returns(env, policy(W[None]), steps, seed=99)
    before, _ = returns(env, still(env), steps, seed=99)
    return after.mean(), before.mean()


def parts(*columns):
    """Return a function that takes columns of observations, bounded, and a constant."""

    def features(seen):
        chosen = np.clip(seen[:, list(columns)], -3.0, 3.0)
        return np.concatenate([chosen, np.ones((len(seen), 1))], axis=1)

    return features


@pytest.mark.parametrize(
    ("task", "features", "steps", "rounds", "spread", "rate", "directions", "gain"),
    (
        ("reach", parts(14, 15, 16), 40, 16, 0.3, 0.2, 8, 0.3),  # the way to the goal
        ("push_box", parts(*range(17)), 40, 10, 0.1, 0.2, 8, 0.05),
        # with a clock
        pytest.param(
            "quadruped_walk",
            parts(1, 2, 46, 47),
            100,
            30,
            0.05,
            0.05,
            16,
            0.03,
            marks=pytest.mark.full,
        ),
    ),
    ids=("reach", "push_box", "quadruped_walk"),
)
def test_a_short_search_improves_the_reward(
    task, features, steps, rounds, spread, rate, directions, gain
):
    """Seconds of random search, measured on episodes that it was not trained on.

    The quadruped in --full, since its search takes ten times the others'.
    With these rates also for the seeds 4 to 6, by more than the gain.
    """
    search = steps, rounds, spread, rate, features
    after, before = improved(task, *search, directions=directions)
    assert after > before + gain * abs(before)
