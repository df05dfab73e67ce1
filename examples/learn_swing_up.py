"""Swing a pendulum and a cart's pole up by a policy trained in less than two minutes.

    python examples/learn_swing_up.py [folder of the plot]

The policy is a small network, action = bound * tanh(W2 tanh(W1 seen + b1)). Its weights
are trained by the cross-entropy method: sample many, keep the best, sample around them.
Every candidate is evaluated from several starts, all at once in one vector environment.
"""

import sys
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from dyn_core.envs import PlanarVectorEnv

CANDIDATES, TRIES, ELITE = 192, 8, 24


class Lesson(NamedTuple):
    """Settings of one training run.

    Attributes:
        task: Name of the task.
        steps: Steps of an episode.
        hidden: Hidden units of the network.
        generations: Rounds of the search.
        angle: Index of cos(angle) in the observation.
    """

    task: str
    steps: int
    hidden: int
    generations: int
    angle: int


LESSONS = (
    Lesson("pendulum", 400, 8, 70, 0),
    Lesson("cart_pole_swing_up", 400, 10, 90, 1),
)


class Networks:
    """Networks evaluated together, one for each row of weights.

    Args:
        weights: (networks, size).
        sizes: Numbers seen, hidden, acted.
        bound: Of the actions.
    """

    def __init__(self, weights, sizes, bound):
        seen, hidden, action = sizes
        count, cut = len(weights), seen * hidden
        self.first = weights[:, :cut].reshape(count, seen, hidden)
        self.shift = weights[:, cut : cut + hidden].reshape(count, 1, hidden)
        self.second = weights[:, cut + hidden :].reshape(count, hidden, action)
        self.bound = bound

    def __call__(self, seen):
        """Actions (rows, acted) for what is seen, tries of a network in a row."""
        grouped = seen.reshape(len(self.first), -1, seen.shape[-1])
        inner = np.tanh(grouped @ self.first + self.shift)
        action = self.bound * np.tanh(inner @ self.second)
        return action.reshape(len(seen), -1)


def size_of(task, hidden):
    """Return how many weights a network for a task has."""
    return (task.no + 1 + task.na) * hidden


def rollout(env, policy, steps, seed):
    """Return the sum of rewards of each environment, and all observations.

    Environments that have terminated no longer count.
    """
    seen, _ = env.reset(seed=seed)
    total, alive, path = np.zeros(len(seen)), np.ones(len(seen), bool), [seen]
    for _ in range(steps):
        seen, reward, terminated, _, _ = env.step(policy(seen))
        total += reward * alive
        alive &= ~terminated
        path.append(np.where(alive[:, None], seen, np.nan))
    return total, np.array(path)


def train(lesson, generations=None, seed=0, log=print):
    """Return the trained weights, and best and mean score by round."""
    env = environment(lesson, CANDIDATES * TRIES)
    rng, task = np.random.default_rng(seed), env.task
    sizes, bound = (task.no, lesson.hidden, task.na), task.action_bounds[0][1]
    mean = np.zeros(size_of(task, lesson.hidden))
    spread, scores, started = np.full_like(mean, 1.5), [], perf_counter()
    rounds = lesson.generations if generations is None else generations
    for k in range(rounds):
        samples = mean + spread * rng.standard_normal((CANDIDATES, len(mean)))
        samples[0] = mean
        policy = Networks(samples, sizes, bound)
        total, _ = rollout(env, policy, lesson.steps, seed=k)
        score = total.reshape(CANDIDATES, TRIES).mean(axis=1)
        best = samples[np.argsort(score)[-ELITE:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.3 * 0.94**k
        scores.append((score.max(), score.mean()))
        if k % 10 == 9 or k == rounds - 1:
            steps = (k + 1) * lesson.steps * env.num_envs
            seconds = perf_counter() - started
            log(
                f"{lesson.task}: round {k + 1}, best {score.max():7.1f}, mean"
                f" {score.mean():7.1f} of {lesson.steps};"
                f" {steps / seconds / 1e6:.1f} M steps/s"
            )
    return mean, np.array(scores)


def environment(lesson, rows):
    """Return a vector environment without automatic resets."""
    return PlanarVectorEnv(
        lesson.task,
        num_envs=rows,
        autoreset_mode="Disabled",
        max_episode_steps=lesson.steps,
    )


def success_rate(lesson, weights, rows=500, seed=12345):
    """Return the fraction of new starts that end upright, and all cos(angle).

    Upright is cos(angle) > 0.9 during the last eighth of the episode.
    """
    env = environment(lesson, rows)
    sizes, bound = (
        (env.task.no, lesson.hidden, env.task.na),
        env.task.action_bounds[0][1],
    )
    _, path = rollout(env, Networks(weights[None], sizes, bound), lesson.steps, seed)
    cosines = path[..., lesson.angle]
    stands = (cosines[-lesson.steps // 8 :] > 0.9).all(axis=0)
    return stands.mean(), cosines


def draw(results, path):
    """Draw learning curves, and the angle of fresh starts over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(results), 2, figsize=(10, 3.2 * len(results)))
    for (left, right), (lesson, scores, rate, cosines) in zip(
        np.atleast_2d(axes), results, strict=True
    ):
        left.plot(scores, label=["best", "mean"])
        left.set(title=lesson.task, xlabel="round", ylabel="sum of rewards")
        left.legend()
        time = np.arange(len(cosines)) * environment(lesson, 1).task.interval
        right.plot(time, cosines[:, :30], color="C0", alpha=0.3)
        right.set(
            title=f"{rate:.0%} of new starts end upright",
            xlabel="s",
            ylabel="cos(angle)",
        )
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main(folder=".", generations=None, lessons=LESSONS):
    """Train, evaluate and draw; return the success rate by task."""
    results, started = [], perf_counter()
    for lesson in lessons:
        weights, scores = train(lesson, generations)
        rate, cosines = success_rate(lesson, weights)
        print(f"{lesson.task}: {rate:.0%} of 500 new starts end upright")
        results.append((lesson, scores, rate, cosines))
    path = Path(folder) / "learn_swing_up.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(results, path)
    print(f"{perf_counter() - started:.0f} s; plot in {path}")
    return {lesson.task: rate for lesson, _, rate, _ in results}


if __name__ == "__main__":
    main(*sys.argv[1:2])
