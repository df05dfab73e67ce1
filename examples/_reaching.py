"""Trial, pictures and film of learn_reach.py."""

import numpy as np
from _pictures import pyplot, save

from dyn_core.envs import RobotPicture, TaskEnv
from dyn_core.plots.figures import film_writer

NEAR = 0.02  # distance that counts as reached [m]


def distances(policy, arms, seed=12345):
    """Return the distances from hand to goal over an episode, (steps, arms) [m]."""
    seen, _ = arms.reset(seed=seed)
    rows = []
    for _ in range(arms.task.max_steps):
        seen, *_ = arms.step(policy.predict(seen, deterministic=True)[0])
        rows.append(np.linalg.norm(seen[:, 14:17], axis=1))
    return np.array(rows)


def draw_reaching(curves, time, apart, path):
    """Draw the goals reached over the steps of training, and distances over time.

    Args:
        curves: By seed: steps of training, part of the goals that is reached.
        time: Times of an episode [s].
        apart: Distances from hand to goal at these times, (times, goals) [m].
        path: Picture to write.
    """
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(10, 3.2))
    for seed, curve in enumerate(curves):
        left.plot(curve[:, 0] / 1000, 100 * curve[:, 1], label=f"seed {seed}")
    left.set(xlabel="thousand steps of training", ylabel="within 2 cm of the goal [%]")
    left.legend()
    right.plot(time, 100 * apart, color="C0", alpha=0.2)
    right.axhline(2, color="0.4", linewidth=0.8)
    right.set(xlabel="time of an episode [s]", ylabel="hand to goal [cm]", ylim=(0, 60))
    figure.tight_layout()
    return save(figure, path)


def film_reaching(policy, path, goals=6, steps=50):
    """Film a policy that reaches one goal after the other, without a new start."""
    env, rng = TaskEnv("reach", dtype="float32"), np.random.default_rng(7)
    seen, _ = env.reset(seed=7)
    picture, part = RobotPicture(env.task), env.task.layout
    (ball,) = picture.figure.axes[0].plot([], [], [], "o", color="#06a77d", ms=12)
    writer = film_writer(path, 25.0)
    with writer.saving(picture.figure, str(path), 80):
        for k in range(goals * steps):
            state = env.get_state()
            if k % steps == 0 and k > 0:
                state[part["memory"]] = env.task.initial(rng, 1)[2][0]
                seen = env.set_state(state)
            if k % 2 == 0:
                picture.place(state)
                ball.set_data_3d(*state[part["memory"], None])
                writer.grab_frame()
            seen, *_ = env.step(policy.predict(seen, deterministic=True)[0])
    return path
