"""Estimate what an arm carries while it moves.

The 7-joint arm waves two bodies, one after the other, under computed torque that knows
of neither. Positions, velocities and torques have noise; no acceleration is measured.
The example prints the estimate after two seconds of each, and draws it over time with
the band of two standard deviations.

    python examples/estimate_payload.py [PICTURE.png]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from _pictures import draw_payload

import dyn_core as dyn
from dyn_core.control import Payload, PayloadEstimator, PayloadSettings

DT, CHANGE, END = 2e-3, 2.0, 4.0  # cycle, time of the second body, end [s]
VELOCITY, EFFORT = 1e-3, 0.2  # noise [rad/s], [N·m]
ENCODER = 2 * np.pi / 2**17  # resolution of positions [rad]
MIDDLE = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8])
SIZE = np.array([0.4, 0.3, 0.4, 0.3, 0.5, 0.4, 0.5])
RATE = np.array([3.0, 4.0, 3.5, 4.5, 4.0, 5.0, 4.5])
BODIES = (
    Payload(1.2, (0.02, -0.01, 0.09), (0.006, 0.0, 0.0, 0.008, 0.0, 0.004)),
    Payload(0.7, (-0.03, 0.04, 0.06), (0.003, 0.0, 0.0, 0.002, 0.0, 0.003)),
)


def reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, velocities and accelerations of sines, one a joint."""
    s, c = SIZE * np.sin(RATE * t), SIZE * RATE * np.cos(RATE * t)
    return MIDDLE + s, c, -RATE * RATE * s


def wave(arm: dyn.Model, seed: int = 0) -> dict[str, np.ndarray]:
    """Return times, numbers of the bodies, estimates and deviations, row by row."""
    rng = np.random.default_rng(seed)
    law = dyn.solver("computed_torque").build(arm, joint_friction=True)
    plant = dyn.solver("rk4").build(arm, joint_friction=True, inputs=["tool.payload"])
    settings = PayloadSettings("tool", velocity_noise=VELOCITY, effort_noise=EFFORT)
    estimator, gains = (
        PayloadEstimator(arm, settings),
        np.full((2, 7), [[400.0], [40.0]]),
    )
    rows: dict[str, list[Any]] = {"t": [], "truth": [], "ten": [], "deviations": []}
    q, qd, _ = reference(0.0)
    tau = np.zeros(7)
    for k in range(round(END / DT)):
        seen = np.round(q / ENCODER) * ENCODER, qd + VELOCITY * rng.normal(size=7)
        measured = tau + EFFORT * rng.normal(size=7)
        estimate = estimator.update(k * DT, *seen, measured)
        truth = BODIES[k * DT >= CHANGE].parameters
        values = (k * DT, truth, estimate.ten, estimate.deviations)
        for row, value in zip(rows.values(), values, strict=True):
            row.append(value)
        tau = np.clip(law(*seen, *reference(k * DT), *gains), -arm.effort_limit,
                      arm.effort_limit)  # fmt: skip
        q, qd = plant(q, qd, tau, DT, truth)
    return {name: np.array(row) for name, row in rows.items()}


def main(picture: Path | None) -> dict[str, np.ndarray]:
    """Wave, print and draw; return what `wave` does."""
    print("law, step and filter are compiled, some 10 s the first time", flush=True)
    rows = wave(dyn.load("arm7"))
    names = "m mx my mz Ixx Ixy Iyy Ixz Iyz Izz".split()
    for until in (CHANGE, END):
        k = round(until / DT) - 1
        print(f"{until:g} s       truth   estimate   deviation")
        columns = (rows[x][k] for x in ("truth", "ten", "deviations"))
        for name, a, b, s in zip(names, *columns, strict=True):
            print(f"{name:4} {a:10.4f} {b:10.4f} {s:11.4f}")
    if picture is not None:
        print(f"drawn in {draw_payload(rows, picture)}")
    return rows


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("estimate_payload.png"))
