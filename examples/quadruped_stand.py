"""Let a quadruped stand under pushes by a policy that is trained in minutes.

    python examples/quadruped_stand.py [--minutes 8] [--folder FOLDER]

The policy is linear: action = W s, where s are eleven features of what is seen (height,
tilt, velocities and place of the trunk). Its targets move the joints through the
proportional and differential law of the task. W is trained by augmented random search
(Mania, Guy, Recht 2018, V1-t): try W + d and W - d for many directions d and step along
the differences of the best rewards. All tries step in one vector environment.
"""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np
from _pictures import draw_training, pyplot

from dyn_core.envs import TaskVectorEnv

DIRECTIONS, BEST, TRIES = 16, 8, 4
SPREAD, RATE = 0.15, 0.15  # of the directions, of a step
# Of the observation: height, x and y of the vertical, six velocities, place x and y.
FEATURES = [0, 1, 2, 4, 5, 6, 7, 8, 9, 46, 47]
SCALE = np.array([20.0, 5.0, 5.0, 0.5, 0.5, 0.5, 2.0, 2.0, 2.0, 10.0, 10.0])


def actions(W, seen):
    """Return actions of policies W (policies, na, features + 1), tries in a row."""
    s = np.clip(seen[:, FEATURES] * SCALE, -3.0, 3.0)
    s = np.concatenate([s, np.ones((len(s), 1))], axis=1)
    grouped = s.reshape(len(W), -1, s.shape[1])
    return (grouped @ W.transpose(0, 2, 1)).reshape(len(seen), -1)


def rollout(env, W, seed):
    """Return sums of rewards while standing, and which rows stood to the end."""
    seen, _ = env.reset(seed=seed)
    total, standing = np.zeros(env.num_envs), np.ones(env.num_envs, bool)
    for _ in range(env.task.max_steps):
        if not standing.any():
            break
        action = actions(W, seen) * standing[:, None]
        seen, reward, over, _, _ = env.step(action)
        standing &= ~over
        total += np.where(standing, reward + 1.0, 0.0)  # one more for each step
    return total, standing


def environment(rows, seconds=10.0):
    """Return environments that are reset by hand."""
    settings = {"autoreset_mode": "Disabled", "max_steps": round(seconds / 0.02)}
    return TaskVectorEnv("quadruped_stand", num_envs=rows, **settings)


def train(minutes=8.0, rounds=None, seconds=6.0, seed=0, log=print):
    """Return the trained W, and by round time [s], mean reward and part that stood."""
    env = environment(2 * DIRECTIONS * TRIES, seconds)
    rng, started, curve = np.random.default_rng(seed), perf_counter(), []
    W = np.zeros((env.task.na, len(FEATURES) + 1))
    while perf_counter() - started < 60 * minutes and len(curve) != rounds:
        d = rng.standard_normal((DIRECTIONS, *W.shape))
        tried = W + SPREAD * np.concatenate([d, -d])
        total, standing = rollout(env, tried, seed=len(curve))
        ways = total.reshape(2, DIRECTIONS, TRIES).mean(axis=2)  # + and - of each
        best = np.argsort(ways.max(axis=0))[-BEST:]
        gain = (ways[0] - ways[1])[best] / (BEST * (ways[:, best].std() + 1e-9))
        W = W + RATE * np.tensordot(gain, d[best], axes=1)
        curve.append((perf_counter() - started, total.mean(), standing.mean()))
        log(f"round {len(curve)}, {curve[-1][0]:.0f} s: reward {total.mean():.1f}")
    return W, np.array(curve)


def success_rate(W, seeds=100, seconds=10.0):
    """Return the part of starts, none of them trained on, that stands to the end."""
    return float(rollout(environment(seeds, seconds), W[None], seed=12345)[1].mean())


def main():
    """Train, report, and draw the curve."""
    pyplot()  # what is missing is missing now, not after the training
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, help="at most; default: no limit")
    parser.add_argument("--seconds", type=float, default=10.0, help="of the last test")
    parser.add_argument("--seeds", type=int, default=100, help="of the last test")
    parser.add_argument("--folder", type=Path, default=Path("."))
    choices = parser.parse_args()
    W, curve = train(choices.minutes, choices.rounds, min(6.0, choices.seconds))
    still = success_rate(np.zeros_like(W), choices.seeds, choices.seconds)
    rate = success_rate(W, choices.seeds, choices.seconds)
    print(f"stands {choices.seconds:g} s: {rate:.0%} of {choices.seeds} seeds")
    print(f"without a policy: {still:.0%}")
    np.save(choices.folder / "quadruped_stand.npy", W)
    print(f"curve: {draw_training(curve, choices.folder / 'quadruped_stand.png')}")


if __name__ == "__main__":
    main()
