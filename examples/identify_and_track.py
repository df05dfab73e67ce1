"""Record, identify, write a URDF, and track better: the whole loop on a simulated arm.

The real arm is 30 % heavier than its URDF, which lacks friction, too. A controller with
this URDF moves it; `dyn evaluate` identifies the arm from the record and writes a URDF
and a sidecar, with which the same controller follows another motion.

    python examples/identify_and_track.py [FOLDER]

It takes about 10 s, and writes run.npz, mine.urdf, mine.dyn.yaml and tracking.png into
the folder (default: the present one).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import dyn_core as dyn
from dyn_core.cli import main as dyn_command
from dyn_core.plots import Curve, Panel, draw
from dyn_core.recordings import MotionRecord, write_motion

KP, KD = 100.0, 20.0  # gains of the tracking error [1/s²], [1/s]
START = 1.0  # time that is left out of the errors [s]


def real_arm() -> dyn.Model:
    """Return the arm that is measured: heavier than its URDF, with friction."""
    names = [f"joint{k}" for k in range(1, 8)]
    friction = {name: {"damping": 0.8, "friction": 0.6} for name in names}
    arm = dyn.load("arm7", extras={"joints": friction})
    links = [f"link{k}.mass" for k in range(1, 8)]
    masses = {path: 1.3 * float(arm.parameter(path)[0]) for path in links}
    return arm.with_values(masses)


def track(model: dyn.Model, seed: int, duration: float) -> tuple[Any, np.ndarray]:
    """Follow a sum of sines by the torques of a model; return run and errors [rad]."""
    rng = np.random.default_rng(seed)
    w, a = 2 * np.pi * rng.uniform(0.1, 0.5, (7, 4)), rng.uniform(-0.2, 0.2, (7, 4))
    middle = (model.lower + model.upper) / 2
    inverse = dyn.solver("rnea").build(model, joint_friction=True)

    def reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s, c = a * np.sin(w * t), a * w * np.cos(w * t)
        return middle + s.sum(axis=1), c.sum(axis=1), -(s * w * w).sum(axis=1)

    def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        r, rd, rdd = reference(t)
        return np.asarray(inverse(q, rd, rdd + KP * (r - q) + KD * (rd - qd)))

    q0, qd0, _ = reference(0.0)
    run = dyn.simulate(
        real_arm(), law, duration=duration, q0=q0, qd0=qd0, progress=False
    )
    return run, run.q - np.array([reference(t)[0] for t in run.t])


def main(folder: Path) -> tuple[float, float]:
    """Run the loop in a folder; return the tracking errors, before and after [rad]."""
    urdf, rng = dyn.load("arm7"), np.random.default_rng(0)
    run, _ = track(urdf, seed=1, duration=20.0)
    write_motion(
        MotionRecord.of_joints(
            urdf.joint_names,
            run.t,
            run.q + rng.normal(0.0, 2e-5, run.q.shape),  # noise of encoders [rad]
            tau=run.tau + rng.normal(0.0, 0.1, run.tau.shape),  # and of torques [N·m]
        ),
        folder / "run.npz",
    )
    asked = ["evaluate", str(folder / "run.npz"), "--robot", "arm7", "--urdf"]
    asked += ["--identify", str(folder / "mine"), "--friction", "coulomb"]
    if dyn_command(asked):
        raise SystemExit(1)
    robots = {"with its URDF": urdf, "identified": dyn.load_urdf(folder / "mine.urdf")}
    errors, curves = [], []
    for name, model in robots.items():
        again, error = track(model, seed=2, duration=10.0)
        late = again.t >= START
        errors.append(float(np.sqrt((error[late] ** 2).mean())))
        print(f"{name}: tracking error {1e3 * errors[-1]:.2f} mrad rms")
        worst = 1e3 * np.abs(error[late]).max(axis=1)
        curves.append(Curve(again.t[late], np.maximum(worst, 1e-3), name))
    figure = draw([Panel("largest tracking\nerror [mrad]", curves)], "Computed torque")
    figure.axes[0].set_yscale("log")
    figure.savefig(folder / "tracking.png", dpi=100)
    return errors[0], errors[1]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
