"""Record motions of an arm that is not what its file says.

The true arm differs from its URDF: masses, centres of mass and inertias by up to 20
percent, friction that rises near rest and differs by direction, rotors. It follows sums
of sines under a controller that knows the URDF alone. Recorded at 1 kHz is what a real
arm offers: positions in counts of an encoder, joint forces with noise, 2 ms late. The
script identify_blind.py reads these files.

    python examples/identify_blind_record.py [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import dyn_core as dyn

COUNT = 2 * np.pi / 2**17  # of the encoders [rad]
NOISE = np.array([0.3, 0.3, 0.3, 0.3, 0.1, 0.1, 0.1])  # of the joint forces [N·m]
DELAY = 2  # periods
PERIOD = 1e-3  # [s]
State = tuple[np.ndarray, np.ndarray, np.ndarray]  # q, qd, qdd


def true_arm(seed: int = 0) -> dyn.Model:
    """Return the arm as it is."""
    rng = np.random.default_rng(seed)
    size = np.array([1.0, 1.0, 0.8, 0.8, 0.4, 0.3, 0.3])
    joints = {
        f"joint{k}": {
            "damping": float(2 * s * rng.uniform(0.5, 1.5)),
            "friction": [float(s * x) for x in rng.uniform(0.3, 0.8, 2)],
            "stribeck": float(s * rng.uniform(0.1, 0.4)),
            "stribeck_speed": float(rng.uniform(0.05, 0.2)),
            "armature": float(s * rng.uniform(0.2, 0.5)),
        }
        for k, s in enumerate(size, 1)
    }
    model = dyn.load("arm7", extras={"joints": joints})
    changes = {}
    for link in [f"link{k}" for k in range(1, 8)] + ["tool"]:
        for part in ("mass", "com", "inertia"):
            old = np.array(model.parameter(f"{link}.{part}"), float)
            changes[f"{link}.{part}"] = (old * rng.uniform(0.8, 1.2)).tolist()
    return model.with_values(changes)


def reference(model: dyn.Model, seed: int, base: float) -> Callable[[float], State]:
    """Return a function of time: a sum of sines within the limits, with derivatives."""
    rng = np.random.default_rng(seed)
    middle, half = (model.lower + model.upper) / 2, (model.upper - model.lower) / 2
    w = 2 * np.pi * base * np.arange(1, 6)[:, None]
    phase = rng.uniform(0, 2 * np.pi, (5, model.nv))
    size = half * rng.uniform(0.05, 0.15, (5, model.nv))
    size *= np.minimum(1.0, 0.7 * model.velocity_limit / (size * w).sum(axis=0))

    def at_time(t: float) -> State:
        angle = w * t + phase
        q = middle + (size * np.sin(angle)).sum(axis=0)
        qd = (size * w * np.cos(angle)).sum(axis=0)
        return q, qd, -(size * w * w * np.sin(angle)).sum(axis=0)

    return at_time


def record(path: Path, seed: int, duration: float, base: float) -> Path:
    """Write a motion of the true arm as a real one would record it."""
    nominal = dyn.load("arm7")
    motion, rnea = reference(nominal, seed, base), dyn.solver("rnea").build(nominal)

    def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        aim, speed, acceleration = motion(t)
        pull = 400.0 * (aim - q) + 40.0 * (speed - qd)
        return np.asarray(rnea(q, qd, acceleration + pull))

    start = dict(zip(("q0", "qd0"), motion(0.0)[:2], strict=True))
    settings = {"duration": duration, "period": PERIOD, "joint_springs": True, **start}
    run = dyn.simulate(true_arm(), law, **settings)
    rng = np.random.default_rng(seed)
    late = run.tau[np.maximum(np.arange(len(run.t)) - DELAY, 0)]
    measured = late + NOISE * rng.normal(size=late.shape)
    q, names = COUNT * np.round(run.q / COUNT), nominal.joint_names
    np.savez(path, t=run.t, q=q, tau=measured, names=names)
    return path


def main(folder: Path, train: float = 60.0, other: float = 20.0) -> None:
    """Write a motion to identify from, and two others."""
    print(record(folder / "arm_train.npz", 1, train, 0.1))
    print(record(folder / "arm_slow.npz", 2, other, 0.05))
    print(record(folder / "arm_fast.npz", 3, other, 0.15))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
