"""Make the pictures of the documentation: `python docs/make_screenshots.py [NAME ...]`.

It needs the extras `view` and `plot`, example-robot-data and Chromium (apt install
chromium), which runs without a window. Each picture is that of the viewer, or of the
page of a command, as a person sees it.
"""

import contextlib
import io
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import dyn_core as dyn
from dyn_core.cli import main as dyn_command
from dyn_core.reports import screenshot
from dyn_core.view import command, film, replay
from dyn_core.view.browser.viewer import Viewer
from dyn_core.view.robot_scene import RobotScene

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from chromium import HeadlessBrowser, until  # noqa: E402

FOLDER = Path(__file__).parent / "images"
LARGEST = 200_000  # bytes of a picture
STEP = 3  # of colours, of 255: nobody sees it, and files are much smaller
BUTTONS = "document.querySelectorAll('.mantine-Notification-closeButton')"


def arm():
    """Return a viewer of an arm with meshes, sliders and switches."""
    viewer = Viewer(RobotScene(dyn.load("panda")), port=0)
    viewer.move([0.4, 0.3, 0.0, -1.8, 0.0, 2.2, 0.8, 0.03])
    viewer.show_layer("frames", True)
    return viewer


def humanoid():
    """Return a viewer of a run of a humanoid: its feet stand on the floor.

    Joint forces, which colour the bodies, hold the position (docs/control.md says how
    the gains are chosen). The file lacks the inertia of the rotors behind their gears.
    """
    name = "g1_29dof_rev_1_0"
    joints = dyn.load(name).joint_names
    rotors = {joint: {"armature": 0.01} for joint in joints}  # kg·m², round numbers
    model = dyn.load(name, root_joint="floating", extras={"joints": rotors})
    q0 = RobotScene(model).start()
    knees = {"left": 1.0, "right": 1.0}
    for side in knees:
        for joint, angle in (
            ("hip_pitch", -0.25),
            ("knee", 0.5),
            ("ankle_pitch", -0.25),
        ):
            q0[model.q_slice(f"{side}_{joint}_joint")] = angle
    q0 = dyn.World().on_ground(model, q0)

    p, d = np.zeros((2, model.nv))  # none at the base
    for joint in joints:
        leg = any(part in joint for part in ("hip", "knee", "ankle", "waist"))
        at = model.v_slice(joint)
        p[at], d[at] = (300.0, 6.0) if leg else (40.0, 1.0)
    H, period = dyn.solver("crba").build(model, engine="graph")(q0), 0.001
    fastest = np.linalg.eigvals(np.linalg.solve(H, np.diag(d))).real.max()
    assert fastest < 1.0 / period, f"half of the bound: {fastest} 1/s"

    def hold(t, q, qd):
        """Return forces toward the start, within the limits."""
        tau = p * np.asarray(model.difference(q, q0)) - d * qd
        return np.clip(tau, -model.effort_limit, model.effort_limit)

    run = dyn.simulate(
        model, hold, world={}, duration=1.0, q0=q0, period=period, progress=False
    )
    shown = replay.of_recording(model, run)
    viewer = Viewer(shown.scene, shown, port=0)
    viewer.show_torque_colors(True)
    viewer.seek(shown.duration)
    return viewer


def chain():
    """Return a viewer of a planar chain."""
    return Viewer(command.chain_scene("hopper"), port=0)


FALL = "sim arm7 --q0 joint2=0.4 joint4=-1.5 --duration 0.3"
# Commands that write page.html, and the heights of their pictures [pixel].
PAGES = {
    "doctor": (["doctor ur5_robot.urdf --package-path . --html page.html"], 900),
    "report": (
        [
            f"{FALL} --out euler.npz",
            f"{FALL} --step rk4 --out rk4.npz",
            "report euler.npz rk4.npz --out page.html",
        ],
        1300,
    ),
}
VIEWERS = {"view_arm": arm, "view_humanoid": humanoid, "view_chain": chain}


def picture(viewer):
    """Return what a browser shows once it stands still, as PNG."""
    with HeadlessBrowser(viewer.address, 960, 620) as browser:
        browser.wait_for("document.querySelector('canvas') !== null")
        browser.wait_for(f"{BUTTONS}.length > 0")  # it says that there is no GPU
        browser.evaluate(f"{BUTTONS}.forEach(x => x.click())")
        seen = []

        def stands():
            shown = Image.open(io.BytesIO(browser.screenshot())).convert("RGB")
            seen.append(np.asarray(shown).astype(int))
            return len(seen) > 2 and all(
                np.abs(seen[-1] - x).max() < 8 for x in seen[-3:-1]
            )

        until(stands, "the picture", 240.0)
    return small(seen[-1])


def small(colors):
    """Return a picture as a PNG of few colours."""
    data, coarse = io.BytesIO(), np.minimum((colors + 1) // STEP * STEP, 255)
    Image.fromarray(coarse.astype(np.uint8)).save(data, format="PNG", optimize=True)
    return data.getvalue()


def page(name):
    """Return the top of the page that commands write, as PNG."""
    commands, height = PAGES[name]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        urdf = Path(dyn.load("ur5").source.file)  # the page says where it was read
        shutil.copy(urdf, folder)
        Path("example-robot-data").symlink_to(urdf.parents[3])
        for command in commands:
            if dyn_command(command.split()):
                raise SystemExit(f"dyn {command} failed")
        screenshot("page.html", "page.png", width=1000)
        whole = Image.open("page.png").convert("RGB")
        return small(np.asarray(whole.crop((0, 0, 1000, height))).astype(int))


def still_picture():
    """Write the picture that needs no browser."""
    scene = RobotScene(dyn.load("quadruped"))
    film.write_picture(scene, FOLDER / "view_quadruped.png", scene.start())


def tracking():
    """Return the picture of the example that identifies an arm and tracks better."""
    sys.path.append(str(Path(__file__).parents[1] / "examples"))
    from identify_and_track import main as identify_and_track

    with tempfile.TemporaryDirectory() as folder:
        identify_and_track(Path(folder))
        shown = Image.open(Path(folder) / "tracking.png").convert("RGB")
        return small(np.asarray(shown).astype(int))


def main(names):
    """Make the pictures of some names, or all."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or [*VIEWERS, *PAGES, "view_quadruped", "tracking"]:
        path = FOLDER / f"{name}.png"
        if name == "view_quadruped":
            still_picture()
        elif name == "tracking":
            path.write_bytes(tracking())
        elif name in PAGES:
            path.write_bytes(page(name))
        else:
            with VIEWERS[name]() as viewer:
                path.write_bytes(picture(viewer))
        size = path.stat().st_size
        print(f"{path}: {size} bytes")
        if size > LARGEST:
            raise SystemExit(f"{path} is larger than {LARGEST} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
