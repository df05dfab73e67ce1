"""A pole swings up: a plan within the force of a weak cart, its feedback, then LQR.

python examples/swing_up.py [FOLDER OF PICTURES]  # docs/optimal_control.md explains
"""

import sys
from pathlib import Path

import numpy as np
from _pictures import pyplot, save
from _plans import PERIOD, follow
from PIL import Image, ImageSequence

import dyn_core as dyn
from dyn_core.view.film import write_film
from dyn_core.view.replay import of_recording

FORCE = 5.0  # limit of the cart [N]
FPS = 12.5  # pictures of the film per second
BOX = 200, 90, 500, 390  # shown part of the film's pictures: left, top, right, bottom


def swing_up(force=FORCE):
    """Return robot, plan, and recording of plan and balance."""
    model, up, down = dyn.load("cart_pole"), np.zeros(2), np.array([0.0, np.pi])
    plan = dyn.plan(
        model,
        costs=[
            dyn.cost.posture(up, 200.0, when="end"),
            dyn.cost.velocity(20.0, when="end"),
            dyn.cost.effort(1e-2),
        ],
        duration=3.0,
        knots=300,
        passive=["hinge"],
        effort_limits={"slide": force},
    ).solve(down, np.zeros(2))
    hold = dyn.lqr(model, up, Q=[10, 10, 1, 1], R=0.1, period=PERIOD, motors=["slide"])
    return model, plan, follow(model, plan, hold, more=2.0)


def draw(plan, run, path):
    """Draw positions and the force of the cart; a line marks the end of the plan."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(9, 3.0))
    left.plot(run.t, run.q, label=["slide [m]", "hinge [rad]"])
    left.legend()
    right.plot(run.t[: len(run.tau)], run.tau[:, 0])
    right.set(ylabel="force of the cart [N]")
    for ax in (left, right):
        ax.axvline(plan.times[-1], color="0.7", lw=1)
        ax.set_xlabel("t [s]")
    figure.tight_layout()
    return save(figure, path, dpi=80)


def film(model, run, path):
    """Write the run as an animated GIF."""
    write_film(of_recording(model, run), path, fps=FPS)
    with Image.open(path) as whole:
        frames = [frame.crop(BOX) for frame in ImageSequence.Iterator(whole)]
    duration = round(1000 / FPS)  # of a picture [ms]
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=duration, loop=0
    )


def main(folder):
    """Run, print, draw and film; return the robot, the plan and its recording."""
    print("the plan is compiled, some 10 s the first time", flush=True)
    model, plan, run = swing_up()
    print(f"{plan.reason} after {plan.iterations} iterations")
    print(f"largest force: {np.abs(run.tau[:, 0]).max():.2f} N")
    print(f"off upright at the end: {np.abs(run.q[-1]).max():.4f} m, rad")
    draw(plan, run, folder / "swing_up.png")
    film(model, run, folder / "swing_up.gif")
    return model, plan, run


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
