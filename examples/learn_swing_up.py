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
from _networks import Networks, environment, rollout, size_of
from _pictures import draw_lessons, pyplot

CANDIDATES, TRIES, ELITE = 192, 8, 24


class Lesson(NamedTuple):
    """Settings of one training run."""

    task: str
    steps: int  # of an episode
    hidden: int  # units of the network
    generations: int  # rounds of the search
    angle: int  # index of cos(angle) in the observation


LESSONS = (
    Lesson("pendulum", 400, 8, 70, 0),
    Lesson("cart_pole_swing_up", 400, 10, 90, 1),
)


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
            best_so_far = f"best {score.max():.1f}, mean {score.mean():.1f}"
            speed = f"{steps / seconds / 1e6:.1f} M steps/s"
            log(f"{lesson.task}: round {k + 1}, {best_so_far}; {speed}")
    return mean, np.array(scores)


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


def main(folder=".", generations=None, lessons=LESSONS):
    """Train, evaluate and draw; return the success rate by task."""
    pyplot()  # what is missing is missing now, not after the training
    results, started = [], perf_counter()
    for lesson in lessons:
        weights, scores = train(lesson, generations)
        rate, cosines = success_rate(lesson, weights)
        print(f"{lesson.task}: {rate:.0%} of 500 new starts end upright")
        interval = environment(lesson, 1).task.interval
        results.append((lesson.task, scores, rate, interval, cosines))
    path = draw_lessons(results, Path(folder) / "learn_swing_up.png")
    print(f"{perf_counter() - started:.0f} s; plot in {path}")
    return {name: rate for name, _, rate, _, _ in results}


if __name__ == "__main__":
    main(*sys.argv[1:2])
