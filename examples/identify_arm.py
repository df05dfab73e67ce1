"""Identify the inertial parameters of an arm from noisy torques.

The 7-joint arm moves along sums of sines; its torques are simulated, with noise. The
prior parameters have errors of up to 40 percent. The example prints base parameters
before and after with standard deviations and the torque errors, and plots the measured
and predicted torques of another motion.

    python examples/identify_arm.py [PICTURE.png]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _base_parameters import rms, table
from _pictures import draw_torques

import dyn_core as dyn

NOISE = np.array([0.5, 0.5, 0.3, 0.3, 0.1, 0.1, 0.1])  # of the torques [N·m]


class MotionData(NamedTuple):
    """Samples of a motion and its torques; (samples,) and (samples, nv)."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray


def excite(model: dyn.Model, seed: int, duration: float = 20.0) -> MotionData:
    """Return a motion of five sines per joint within the limits, with noisy torques."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 0.02)
    middle, half = (model.lower + model.upper) / 2, (model.upper - model.lower) / 2
    q = np.tile(middle, (len(t), 1))
    qd, qdd = np.zeros_like(q), np.zeros_like(q)
    for k in range(1, 6):
        w = 2 * np.pi * 0.08 * k
        phase = rng.uniform(0, 2 * np.pi, model.nv)
        size = half * rng.uniform(0.05, 0.18, model.nv)
        angle = w * t[:, None] + phase
        q += size * np.sin(angle)
        qd += size * w * np.cos(angle)
        qdd -= size * w * w * np.sin(angle)
    rnea = dyn.solver("rnea").build(model, joint_friction=True)
    tau = rnea(q, qd, qdd) + rng.normal(size=q.shape) * NOISE
    return MotionData(t, q, qd, qdd, tau)


def blurred(model: dyn.Model, seed: int = 1) -> np.ndarray:
    """Return prior parameters with errors of up to 40 percent."""
    pi = dyn.parameters_of(model, friction=True, rotors=True)
    return pi * np.random.default_rng(seed).uniform(0.6, 1.4, len(pi))


def predicted(model: dyn.Model, pi: np.ndarray, motion: MotionData) -> np.ndarray:
    """Return the torques of a motion predicted by parameters."""
    Y = dyn.solver("regressor").build(model, friction=True, rotors=True)
    return np.asarray(Y(motion.q, motion.qd, motion.qdd) @ pi)


def main(picture: Path | None) -> dict[str, np.ndarray]:
    """Identify, print and draw; return the torque errors on another motion by name."""
    model = dyn.load("arm7")
    prior = blurred(model)
    result = dyn.identify(
        model, *excite(model, seed=0)[1:], prior=prior, consistent=True
    )
    print(f"{result.rank} base parameters of {len(result.names)} numbers;", end=" ")
    print(f"condition {result.condition:.0f}, {result.evaluations} evaluations")
    print(table(model, result))
    other = excite(model, seed=1)
    curves = {
        "prior": predicted(model, prior, other),
        "identified": predicted(model, result.parameters, other),
    }
    errors = {k: rms(tau - other.tau) for k, tau in curves.items()}
    print("\ntorque error on another motion, rms by joint [N·m]")
    for name, error in {**errors, "noise": NOISE}.items():
        print(f"{name:12}" + " ".join(f"{x:8.3f}" for x in error))
    least = result.eigenvalues.min()
    print(f"\nleast eigenvalue of a pseudo-inertia: {least:.1e} (all bodies physical)")
    if picture is not None:
        print(f"torques drawn in {draw_torques(other, curves, picture)}")
    return errors


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("identify_arm.png"))
