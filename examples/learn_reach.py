"""Teach an arm to reach with PPO of Stable-Baselines3, in minutes on two cores.

    pip install '.[sb3,plot]'
    python examples/learn_reach.py [--seeds 3] [--steps 800000] [--randomise]

64 arms step in one kernel call. Each seed trains a policy of its own; while it does, it
is tried on 100 goals that it never sees in training. With --randomise each episode has
an arm of its own: masses, damping, friction and payload are drawn. At the end there are
the curves of all seeds, the distances from hand to goal, and a film of the best policy.
"""

import argparse
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch
from _pictures import pyplot
from _reaching import NEAR, distances, draw_reaching, film_reaching
from stable_baselines3 import PPO

import dyn_core.envs
from dyn_core.tasks import PayloadMass, UniformFactor

EVERY = 50_000  # steps between trials
RANDOM = {
    "*.mass": UniformFactor(0.8, 1.2),
    "*.damping": UniformFactor(0.5, 2.0),
    "*.friction": UniformFactor(0.5, 2.0),
    "tool.payload": PayloadMass(0.0, 1.0),
}


def new_policy(values, seed):
    """Return PPO with 64 arms, two layers and a learning rate that falls to zero."""
    arms = dyn_core.envs.sb3("reach", num_envs=64, values=values)
    network = {"net_arch": [128, 128], "log_std_init": -1.0}
    steps = {"n_steps": 64, "batch_size": 1024, "n_epochs": 5}  # 4096 steps an update
    return PPO(
        "MlpPolicy", arms, lambda left: 1e-3 * left, **steps, gamma=0.97,
        policy_kwargs=network, seed=seed, device="cpu",
    )  # fmt: skip


def train(seed, steps, values, arms):
    """Return a policy, its curve of goals reached over steps, and its distances [m]."""
    policy, curve = new_policy(values, seed), []

    def trial(*_):
        if policy.num_timesteps >= EVERY * len(curve):
            reached = (distances(policy, arms)[-1] < NEAR).mean()
            curve.append((policy.num_timesteps, reached))
            progress = f"{policy.num_timesteps} of {steps} steps"
            print(f"seed {seed}: {progress}, {reached:.0%} reached", flush=True)
        return True  # False ends the training

    wall, cpu = perf_counter(), process_time()
    policy.learn(steps, callback=trial)
    apart = distances(policy, arms)
    reached, middle = (apart[-1] < NEAR).mean(), 1000 * np.median(apart[-1])
    curve.append((policy.num_timesteps, reached))
    print(
        f"seed {seed}: {reached:.0%} of 100 goals reached within 2 cm, median"
        f" {middle:.1f} mm; {perf_counter() - wall:.0f} s, {process_time() - cpu:.0f} s"
        " of processor time",
        flush=True,
    )
    return policy, np.array(curve), apart


def main():
    """Train one policy for each seed, and draw."""
    pyplot()  # what is missing is missing now, not after the training
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="policies to train")
    parser.add_argument("--steps", type=int, default=800_000, help="of each training")
    parser.add_argument("--randomise", action="store_true", help="arms differ")
    parser.add_argument("--folder", type=Path, default=Path("."))
    choices = parser.parse_args()
    torch.set_num_threads(1)  # the networks are small
    values = RANDOM if choices.randomise else {}
    print("compiles the arms (seconds, once), then trains", flush=True)
    arms = dyn_core.envs.TaskVectorEnv(
        "reach", 100, values=values, dtype="float32", autoreset_mode="Disabled"
    )
    trained = [
        train(seed, choices.steps, values, arms) for seed in range(choices.seeds)
    ]
    policy, _, apart = min(trained, key=lambda x: np.median(x[2][-1]))
    policy.save(choices.folder / "reach.zip")
    curves = [curve for _, curve, _ in trained]
    time = arms.task.interval * np.arange(1, len(apart) + 1)
    print(f"curves: {draw_reaching(curves, time, apart, choices.folder / 'reach.png')}")
    print("draws the film (a minute)", flush=True)
    print(f"film: {film_reaching(policy, choices.folder / 'reach.gif')}")


if __name__ == "__main__":
    main()
