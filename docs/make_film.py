"""Make docs/images/arm.gif: an arm draws a figure eight under computed torque.

    python docs/make_film.py [FILE]

The arm is simulated; inverse kinematics give the positions of the path, the solver
`rnea` gives the efforts. The renderer is that of `dyn view run.npz --film`. It needs
the extra `view` and example-robot-data.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence
from scipy.interpolate import CubicSpline

import dyn_core as dyn
from dyn_core.kinematics import InverseKinematics
from dyn_core.view import film, replay, solids
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.scene import VISUAL, Part

FILE = Path(__file__).parent / "images" / "arm.gif"
LAP, FPS = 4.0, 12.5  # s, pictures a second
KP, KD = 400.0, 40.0  # 1/s², 1/s
ORANGE = (255, 120, 20)
BOX = (
    120,
    95,
    560,
    425,
)  # the part of the pictures that is shown: left, top, right, bottom


class SceneWithPath(RobotScene):
    """A robot, and a closed line that stands still.

    Args:
        model: Robot.
        points: Corners of the line, (n, 3) [m].
    """

    def __init__(self, model, points):
        ends = zip(points[:-1], points[1:], strict=True)
        self.line = solids.joined([solids.rod(a, b, 0.004) for a, b in ends])
        super().__init__(model)

    def _make(self, role):
        parts = [Part("path", 0, self.line, ORANGE)] if role == VISUAL else []
        return [*super()._make(role), *parts]


def path(model, count=81):
    """Return times (count,), points (count, 3) and positions (count, nq) of a lap."""
    turn = np.linspace(0.0, 2.0 * np.pi, count)
    points = np.column_stack(
        [np.full(count, 0.5), 0.25 * np.sin(turn), 0.45 + 0.12 * np.sin(2.0 * turn)]
    )
    reach, q = InverseKinematics(model, "panda_hand_tcp"), model.start()
    q[:7] = [0, -0.4, 0, -2, 0, 1.6, 0.8]
    rows = []
    for place in points:
        q = reach([*place, 1.0, 0.0, 0.0, 0.0], near=q).q
        rows.append(q)
    rows[-1] = rows[0]
    return LAP * turn / turn[-1], points, np.array(rows)


def run(model, times, rows):
    """Return the recording of a lap under computed torque, friction included."""
    spline = CubicSpline(times, rows, bc_type="periodic")
    rnea = dyn.solver("rnea").build(model, joint_friction=True)

    def law(t, q, qd):
        error, rate = spline(t) - q, spline(t, 1) - qd
        return rnea(q, qd, spline(t, 2) + KP * error + KD * rate)

    start = {"q0": rows[0], "qd0": spline(0.0, 1)}
    return dyn.simulate(model, law, duration=LAP, period=0.002, progress=False, **start)


def main(target):
    """Write the film of a lap, which begins where it ends."""
    model = dyn.load("panda")
    times, points, rows = path(model)
    record = run(model, times, rows)
    lap = replay.of_recording(model, record)
    shown = replay.Replay(SceneWithPath(model, points), lap.t, lap.states)
    film.write_film(shown, target, fps=FPS)
    with Image.open(target) as whole:
        frames = [frame.crop(BOX) for frame in ImageSequence.Iterator(whole)]
    pace = round(1000 / FPS)
    frames[0].save(
        target, save_all=True, append_images=frames[1:], duration=pace, loop=0
    )


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    target.parent.mkdir(exist_ok=True)
    main(target)
    print(target, target.stat().st_size // 1000, "kB")
