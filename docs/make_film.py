"""Make docs/images/arm.gif: an arm draws a figure eight under computed torque.

    python docs/make_film.py [FILE]

The arm is simulated; inverse kinematics give the positions of the path, the solver
`rnea` gives the efforts. Needs the extra `plot`.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import animation
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import dyn_core as dyn
from dyn_core.kinematics import InverseKinematics

FILE = Path(__file__).parent / "images" / "arm.gif"
LAP, FPS, DPI = 4.0, 20, 80  # s, pictures a second
KP, KD = 400.0, 40.0  # 1/s², 1/s
INK, JOINT, TRAIL, FLOOR = "#26547c", "#ef476f", "#06a77d", "#c5ccd6"


def path(model, count=81):
    """Return times and positions of a lap of a figure eight, (count,), (count, 7)."""
    turn = np.linspace(0.0, 2.0 * np.pi, count)
    reach, q = InverseKinematics(model, "tool"), np.array([0, -0.4, 0, -2, 0, 1.6, 0])
    rows = []
    for u in turn:
        place = [0.5, 0.25 * np.sin(u), 0.45 + 0.12 * np.sin(2.0 * u)]
        q = reach([*place, 1.0, 0.0, 0.0, 0.0], near=q).q
        rows.append(q)
    return LAP * turn / turn[-1], np.array(rows)


def run(model):
    """Return the recording of two laps under computed torque, friction included."""
    from scipy.interpolate import CubicSpline

    times, rows = path(model)
    rows[-1] = rows[0]
    spline = CubicSpline(times, rows, bc_type="periodic")
    rnea = dyn.solver("rnea").build(model, joint_friction=True)

    def law(t, q, qd):
        error, rate = spline(t) - q, spline(t, 1) - qd
        return rnea(q, qd, spline(t, 2) + KP * error + KD * rate)

    return dyn.simulate(
        model,
        law,
        duration=2.0 * LAP,
        q0=rows[0],
        qd0=spline(0.0, 1),
        period=0.002,
        progress=False,
    )


def axes():
    """Return the axes of a picture with a floor."""
    figure = Figure(figsize=(6, 4.5), dpi=DPI)
    FigureCanvasAgg(figure)
    ax = figure.add_axes((-0.12, -0.16, 1.24, 1.32), projection="3d")
    ax.set_axis_off()
    ax.view_init(elev=18, azim=-50)
    ax.set(xlim=(-0.25, 0.65), ylim=(-0.45, 0.45), zlim=(0.0, 0.9))
    ax.set_box_aspect((1, 1, 1))
    for x in np.linspace(-0.4, 0.8, 9):
        ax.plot([x, x], [-0.6, 0.6], [0, 0], color=FLOOR, linewidth=0.8)
    for y in np.linspace(-0.6, 0.6, 9):
        ax.plot([-0.4, 0.8], [y, y], [0, 0], color=FLOOR, linewidth=0.8)
    return figure, ax


def film(target):
    """Write the film of the second lap."""
    model = dyn.load("arm7")
    record = run(model)
    links = dyn.solver("forward_kinematics").build(model, frames=model.frame_names)
    points = np.array(links(record.q))[..., :3, 3]
    each = round(1.0 / (FPS * (record.t[1] - record.t[0])))
    lap = len(record.t) // 2
    figure, ax = axes()
    (bones,) = ax.plot([], [], [], color=INK, linewidth=7, solid_capstyle="round")
    (dots,) = ax.plot([], [], [], "o", color=JOINT, markersize=6)
    (trail,) = ax.plot([], [], [], color=TRAIL, linewidth=2)
    writer = animation.PillowWriter(fps=FPS)
    with writer.saving(figure, str(target), DPI):
        for k in range(lap, 2 * lap, each):
            for line in (bones, dots):
                line.set_data_3d(*points[k].T)
            trail.set_data_3d(*points[k - lap : k + 1, -1].T)
            writer.grab_frame()


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    target.parent.mkdir(exist_ok=True)
    film(target)
    print(target, target.stat().st_size // 1000, "kB")
