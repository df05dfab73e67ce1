"""Networks of the swing-up example, many evaluated together, and their episodes."""

import numpy as np

from dyn_core.envs import TaskVectorEnv


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


def environment(lesson, rows):
    """Return a vector environment without automatic resets."""
    return TaskVectorEnv(
        lesson.task,
        num_envs=rows,
        autoreset_mode="Disabled",
        max_episode_steps=lesson.steps,
    )
