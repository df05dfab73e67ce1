"""A four-bar linkage: closed start, torque of its motor, motion, and control.

    python examples/four_bar.py [folder of the plot]

The same robot in nodes:

    dyn demo --robot examples/four_bar/four_bar.urdf
"""

import sys
from pathlib import Path

import numpy as np
from _pictures import pyplot, save

import dyn_core as dyn

HERE = Path(__file__).parent / "four_bar"


def load():
    """Return the robot; its sidecar closes the loop."""
    return dyn.load_urdf(HERE / "four_bar.urdf")


def start(model):
    """Return a closed position with the motor at 0.93 rad, and a consistent velocity.

    Source: KIM-3.0.
    """
    guess = model.position({"motor": 0.93, "pin_b": -0.5, "pin_c": -1.5})
    q = dyn.close_loops(model, guess, fixed=["motor"])
    qd = dyn.close_rates(model, q, [2.0, 0.0, 0.0], fixed=["motor"])
    return q, qd


def controlled(model, q, seconds=2.0, dt=1e-3):
    """Return a motion of the motor along a sine, by computed torque.

    Rows of the result: time, angle, its reference, torque, error of the loop.

    Source: KIM-3.3 as inverse dynamics of a linkage with one motor.
    """
    law = dyn.solver("computed_torque").build(model)
    step = dyn.solver("semi_implicit_euler").build(model)
    gap = dyn.solver("loop_constraints").build(model)
    qd, rows = np.zeros(3), []
    kp, kd = np.full(3, 400.0), np.full(3, 40.0)
    middle = q[0]
    for k in range(int(seconds / dt)):
        t = k * dt
        ref = q.copy(), np.zeros(3), np.zeros(3)
        ref[0][0] = middle + 0.4 * np.sin(3 * t)
        ref[1][0], ref[2][0] = 1.2 * np.cos(3 * t), -3.6 * np.sin(3 * t)
        tau = law(q, qd, *ref, kp, kd)
        opening = np.abs(gap(q, qd).f).max()
        rows.append([t, q[0], ref[0][0], tau[0], opening])
        q, qd = step(q, qd, tau, dt)
    return np.array(rows)


def main(folder="."):
    """Print results of the solvers, and draw the controlled motion."""
    model = load()
    q, qd = start(model)
    print("closed at", np.round(q, 6), "moving at", np.round(qd, 6))
    forward = dyn.solver("loop_forward_dynamics").build(model)
    got = forward(q, qd, np.zeros(3))
    print("falls with qdd", np.round(got.qdd, 4), "pin force", np.round(got.lambda_, 4))
    inverse = dyn.solver("loop_inverse_dynamics").build(model, active=["motor"])
    tau, force = inverse(q, qd, got.qdd, np.zeros(2))
    print(
        "torque that this motion takes:", np.round(tau, 12), "pin", np.round(force, 4)
    )
    rows = controlled(model, q)
    error = np.abs(rows[500:, 1] - rows[500:, 2]).max()
    print(f"tracking error {error:.2e} rad, gap at most {rows[:, 4].max():.1e} m")
    try:
        plt = pyplot()
    except ImportError:
        print("no plot: matplotlib is not installed")
        return rows
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(7, 7))
    axes[0].plot(rows[:, 0], rows[:, 1], rows[:, 0], rows[:, 2], "--")
    axes[0].set_ylabel("motor [rad]")
    axes[1].plot(rows[:, 0], rows[:, 3])
    axes[1].set_ylabel("torque [N·m]")
    axes[2].semilogy(rows[:, 0], np.maximum(rows[:, 4], 1e-18))
    axes[2].set_ylabel("gap [m]")
    axes[2].set_xlabel("t [s]")
    print("plot:", save(figure, Path(folder) / "four_bar.png"))
    return rows


if __name__ == "__main__":
    main(*sys.argv[1:2])
