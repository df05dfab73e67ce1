"""The viewer's server, panel and pages, without a browser."""

import socket
import subprocess
import sys
import time
import types
import urllib.request
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.cli import main
from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.recordings import MotionRecord, Recording
from dyn_core.view import colors, replay
from dyn_core.view.browser import server
from dyn_core.view.browser.stage import quaternions
from dyn_core.view.command import announce
from dyn_core.view.film import colors_of_bodies, write_film
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.show import show

viser = pytest.importorskip("viser", reason="viser is not installed (extra view)")
from dyn_core.view.browser.viewer import Viewer, _legend  # noqa: E402


def _run(rows=11):
    model = dyn.load("arm7")
    t = 0.1 * np.arange(rows)
    q = np.sin(t)[:, None] * np.ones(model.nq)
    tau = np.outer(t, model.effort_limit)
    return Recording(
        MotionRecord(coordinates_of(model), t, q, 0 * q, tau=tau), model, 0 * t
    )


@pytest.fixture
def viewer():
    with Viewer(RobotScene(dyn.load("arm7")), port=0) as made:
        yield made


@pytest.fixture
def player():
    run = _run()
    shown = replay.of_recording(run.model, run)
    with Viewer(shown.scene, shown, port=0) as made:
        yield made


def _placed(viewer):
    """Return the poses of the nodes as the browser gets them."""
    poses = np.tile(np.eye(4), (len(viewer.stage._bodies), 1, 1))
    for pose, body in zip(poses, viewer.stage._bodies, strict=True):
        w, x, y, z = body.wxyz
        pose[:3, :3] = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
        pose[:3, 3] = body.position
    return poses


def test_the_curves_show_where_the_time_is(player):
    """A line at one time alone, over the whole height; the curves keep their values.

    At all other times it is below the axis, so that nothing is drawn along the bottom.
    """
    run = player.replay
    assert len(player.curves.plots) == len(run.curves) == 2
    assert all(plot.axes[1]["size"] > 60 for plot in player.curves.plots)  # -0.0025
    for when in (0.0, 0.37, 1.0, 0.5):
        player.seek(when)
        for plot, (names, values) in zip(
            player.curves.plots, run.curves.values(), strict=True
        ):
            t, *columns, mark = plot.data
            assert len(columns) == len(names)
            assert (np.diff(t) >= 0).all()
            assert np.unique(t[mark > mark.min()]) == pytest.approx([when])
            bottom, top = plot.scales["y"]["range"]
            assert bottom < values.min() and values.max() < top == mark.max()
            assert mark.min() < bottom
            k = int(mark.argmax())  # the line is vertical
            assert t[k - 1] == t[k] == t[k + 1] and mark[k - 1] == mark[k + 1] < bottom
            for column, truth in zip(columns, values.T, strict=True):
                expected = np.interp(t, run.t - run.t[0], truth)
                np.testing.assert_allclose(column, expected, atol=1e-12)


def test_the_line_in_the_curves_moves_in_few_steps_while_time_runs(player):
    """Each step sends all curves: so a hundred of them, and the last at the end."""
    player.repeat = False
    player.play(True)
    sent = set()
    while player.playing:
        player.advance(0.001)
        t, *_, mark = player.curves.plots[0].data
        sent.add(float(t[int(np.argmax(mark))]))
    assert 90 <= len(sent) <= 102
    assert max(sent) == player.replay.duration


def test_each_joint_has_one_look_in_all_plots():
    """Colours, and dashes beyond seven; a legend names them; unmoved bases are left."""
    model = dyn.load("quadruped")
    rng = np.random.default_rng(0)
    q = np.tile(model.neutral(), (5, 1))
    tau = np.where(np.arange(model.nv) < 6, 0.0, rng.normal(size=(5, model.nv)))
    run = replay.of_arrays(model, np.linspace(0.0, 1.0, 5), q, tau)
    (names, _), (forces, values) = run.curves.values()
    assert list(names) == list(forces) and values.shape == (5, 12)
    pushed = replay.of_arrays(model, run.t, q, tau + (np.arange(model.nv) == 2))
    assert len(pushed.curves["joint force [N·m | N]"][0]) == 13
    with Viewer(run.scene, run, port=0) as viewer:
        looks = [
            {x["label"]: (x["stroke"], *x.get("dash", ())) for x in plot.series[1:-1]}
            for plot in viewer.curves.plots
        ]
        assert looks[0] == looks[1] and len({*looks[0].values()}) == 12
    legend = _legend({"<knee>": ("#123456", 1), "hip": ("#abcdef", 0)})
    assert "dashed #123456" in legend and "&lt;knee&gt;" in legend


def test_quaternions_of_all_rotations():
    """Also of half turns, where the simple formula divides by zero."""
    half = [np.diag(x) for x in ((1.0, -1, -1), (-1, 1, -1), (-1, -1, 1), (1, 1, 1))]
    rng = np.random.default_rng(0)
    others = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(20)]
    turns = np.array(half + [R * np.sign(np.linalg.det(R)) for R in others])
    poses = np.tile(np.eye(4), (len(turns), 1, 1))
    poses[:, :3, :3] = turns
    for (w, x, y, z), R in zip(quaternions(poses), turns, strict=True):
        v = np.array([x, y, z])
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        assert (w * w - v @ v) * np.eye(3) + 2 * np.outer(
            v, v
        ) + 2 * w * cross == pytest.approx(R, abs=1e-12)


def test_it_listens_on_this_machine_alone(viewer):
    """The page is served; no other address of the machine answers on the port."""
    port = viewer.server.get_port()
    assert viewer.address == f"http://127.0.0.1:{port}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(viewer.address, timeout=30) as page:
        assert b"<html" in page.read()
    with socket.socket() as other, pytest.raises(OSError):
        other.settimeout(5.0)
        other.connect(("127.0.0.2", port))


def test_a_port_that_is_used_is_refused_in_words(viewer):
    port = viewer.server.get_port()
    with pytest.raises(SettingError, match=f"port {port} of 127.0.0.1 is used already"):
        Viewer(viewer.scene, port=port)


def test_the_bodies_are_where_the_sliders_say(viewer):
    """The nodes of the browser have the poses of the library's forward kinematics."""
    values = [0.1, 0.2, 0.3, -0.5, 0.5, 0.6, 0.7]
    viewer.move(values, 2)
    assert viewer.state == pytest.approx(values)
    model = viewer.scene.model
    frames = dyn.solver("forward_kinematics").build(
        model, frames=model.child_links[1:], engine="plain"
    )(np.array(values))
    placed = _placed(viewer)[1:]
    for i, pose, frame in zip(model.bodies, placed, np.asarray(frames), strict=True):
        X = model.frame(model.child_links[i]).X
        assert (pose[:3, :3] @ np.array(X.pose[0].rows))[:3] == pytest.approx(
            frame[:3, :3], abs=1e-6
        ), i
        assert pose[:3, 3] == pytest.approx(
            frame[:3, 3] - frame[:3, :3] @ np.array(X.pose[0].rows).T @ list(X.pose[1]),
            abs=1e-6,
        )
    assert [x.value for x in viewer._sliders] == pytest.approx(values, abs=1e-3)


def test_layers_are_made_when_they_are_shown(viewer):
    stage = viewer.stage
    assert "inertia" not in stage._meshes
    stage.show("inertia", True)
    assert len(stage._meshes["inertia"]) == 7
    assert all(mesh.visible for _, mesh in stage._meshes["inertia"])
    stage.show("inertia", False)
    assert not any(mesh.visible for _, mesh in stage._meshes["inertia"])
    viewer.show_layer("frames", True)
    assert viewer._boxes["frames"].value
    assert all(body.show_axes for body in stage._bodies)
    stage.show("centre of mass", True)
    assert stage._mass.position == pytest.approx(
        viewer.scene.mass_centre(viewer.scene.poses(viewer.state))
    )


def test_a_replay_plays_pauses_and_ends(player):
    """The state at each time is that of the run; speed counts; the end stops it.

    With `repeat`, the default, the run begins again after a picture of its end.
    """
    assert player.repeat
    player.play(True)
    player.advance(100.0)
    assert player.time == player.replay.duration and player.playing
    player.advance(0.01)
    assert player.time == 0.0 and player.playing
    player.play(False)
    player.repeat = False
    player.advance(0.2)
    assert player.time == 0.0
    player.play(True)
    player.advance(0.2)
    assert player.time == pytest.approx(0.2)
    assert player.state == pytest.approx(player.replay.state(0.2))
    assert player._line.value == pytest.approx(0.2, abs=1e-3)
    player._set_speed("1/2")
    player.advance(0.2)
    assert player.time == pytest.approx(0.3)
    player.play(False)
    player.advance(1.0)
    assert player.time == pytest.approx(0.3)
    player.play(True)
    player.advance(100.0)
    assert player.time == pytest.approx(1.0)
    assert not player.playing
    player.play(True)
    assert player.time == 0.0
    player.seek(0.55)
    assert _placed(player) == pytest.approx(player.replay.poses(0.55), abs=1e-6)


def test_without_a_run_nothing_is_played(viewer):
    """Refused in words, and nothing has changed."""
    for refused in (lambda: viewer.play(True), lambda: viewer.seek(0.1)):
        with pytest.raises(dyn.UnsupportedError, match=r"valid: Viewer\(scene, replay"):
            refused()
    assert not viewer.playing


def test_joint_forces_colour_the_bodies(player):
    """Bodies have the colour of their share of the effort limit, and their own again."""
    player.show_torque_colors(True)
    player.seek(0.5)
    wanted = colors_of_bodies(player.scene, player.replay.shares(0.5))
    assert wanted[3] == colors.torque_color(0.5)
    for part, mesh in player.stage._meshes["visual"]:
        assert tuple(mesh.color) == wanted.get(part.body, part.color)
    player.show_torque_colors(False)
    for part, mesh in player.stage._meshes["visual"]:
        assert tuple(mesh.color) == part.color


def test_contact_forces_are_arrows():
    """An arrow of the size of the picture for the weight, at the point of the contact."""
    model = dyn.load("quadruped")
    scene = RobotScene(model)
    q = np.tile(scene.start(), (2, 1))
    weight = float(model.mass) * 9.81
    force = np.array([[[0.1, 0.2, 0.0], [0.0, 0.0, weight]]])
    shown = replay.of_arrays(
        model, np.array([0.0, 1.0]), q, None, lambda row: force[: 1 - row]
    )
    with Viewer(scene, shown, port=0) as viewer:
        arrows, size = viewer.stage._arrows, viewer.stage.camera.size
        assert arrows.visible
        assert arrows.points == pytest.approx(
            np.array([[[0.1, 0.2, 0.0], [0.1, 0.2, size]]])
        )
        viewer.seek(1.0)
        assert not arrows.visible


def test_loops_that_cannot_close_are_said_in_the_panel():
    model = dyn.load(
        Path(__file__).parents[2] / "examples" / "four_bar" / "four_bar.urdf"
    )
    with Viewer(RobotScene(model), port=0) as viewer:
        before = viewer.state.copy()
        values = viewer.scene.values(before).tolist()
        values[0] = 3.0
        viewer.move(values, 0)
        assert "loop" in viewer._notes.content
        assert viewer.state == pytest.approx(before)


def test_a_run_is_shown_in_a_notebook(tmp_path):
    """A page of its own with the states of the run; no server stays."""
    run = _run()
    page = run.show()
    text = page._repr_html_()
    assert text.startswith("<iframe") and "arm7" in repr(page)
    assert "__VISER_EMBED_DATA__" in page.page()
    page.save(tmp_path / "run.html")
    still = show(run.model)
    assert 1e5 < len(still.page()) < len(page.page())
    long = show(run.model, np.zeros((2, 7)), [0.0, 80.0])
    with pytest.raises(SettingError, match=r"less than 80 s; valid: some of its rows"):
        long.page()


MESHED = """
<robot name="meshed">
  <link name="base"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="base.obj"/></geometry></visual></link>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/>
    <origin xyz="0 0 0.5"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="10" velocity="1"/></joint>
</robot>
"""


@pytest.fixture
def meshed(tmp_path):
    """A floating robot whose base is a tetrahedron of a file, 0.3 m downwards."""
    pytest.importorskip("trimesh", reason="trimesh is not installed (extra view)")
    corners = ["v 0 0 -0.3", "v 1 0 0", "v 0 1 0", "v 0 0 1"]
    faces = ["f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    (tmp_path / "base.obj").write_text("\n".join([*corners, *faces]))
    (tmp_path / "meshed.urdf").write_text(MESHED)
    return tmp_path / "meshed.urdf"


def test_a_robot_is_served_before_its_meshes_are_read(meshed, monkeypatch):
    """Rods stand for meshes until `finish`, which leaves layers and sliders alone.

    The floating base then stands on its mesh, and the camera sees all of it.
    """
    from dyn_core.view import robot_parts

    read = robot_parts.read_mesh
    monkeypatch.setattr(robot_parts, "read_mesh", lambda path: pytest.fail("too soon"))
    model = dyn.load(meshed, root_joint="floating")
    with Viewer(RobotScene(model, sketched=True), port=0) as viewer:
        names = [part.name for part, _ in viewer.stage._meshes["visual"]]
        assert names and all(x.startswith(("rod/", "joint/")) for x in names)
        assert "being read" in viewer._notes.content
        viewer.show_layer("frames", True)
        monkeypatch.setattr(robot_parts, "read_mesh", read)
        viewer.finish()
        (part,) = [part for part, _ in viewer.stage._meshes["visual"]]
        assert part.name.startswith("visual/base")
        assert "being read" not in viewer._notes.content
        assert all(body.show_axes for body in viewer.stage._bodies)
        assert viewer.state == pytest.approx([0, 0, 0.3, 0, 0, 0, 1, 0])
        whole = RobotScene(model)
        assert viewer.state == pytest.approx(whole.start())
        assert viewer._sliders[2].value == pytest.approx(0.3)
        camera = whole.camera(whole.poses(whole.start())[None])
        assert viewer.stage.camera.place == pytest.approx(camera.place)
        stage = viewer.stage
        viewer.finish()
        assert viewer.stage is stage


def test_who_moves_a_slider_before_meshes_are_there_keeps_the_state(meshed):
    model = dyn.load(meshed, root_joint="floating")
    with Viewer(RobotScene(model, sketched=True), port=0) as viewer:
        values = viewer.scene.values(viewer.state)
        values[-1] = 0.5
        viewer.move(values.tolist())
        before = viewer.state
        viewer.finish()
        assert viewer.state == pytest.approx(before)
        assert _placed(viewer) == pytest.approx(viewer.scene.poses(before), abs=1e-6)


def test_a_missing_mesh_is_named_after_the_address(meshed, capsys):
    """The command prints where it serves, then what could not be read."""
    (meshed.parent / "base.obj").unlink()
    with Viewer(RobotScene(dyn.load(meshed), sketched=True), port=0) as viewer:
        announce(viewer, viewer.scene)
        out, err = capsys.readouterr()
        assert viewer.address in out
        assert "link 'base': no mesh base.obj" in err
        assert "no mesh" in viewer._notes.content


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(UnsupportedError, match=r"dyn_ros\[view\]"):
        show(dyn.load("arm7"))
    with pytest.raises(UnsupportedError, match=r"dyn_ros\[view\]"):
        Viewer(RobotScene(dyn.load("arm7")), port=0)


@pytest.mark.parametrize("module, name", [("PIL", "Pillow"), ("trimesh", "trimesh")])
def test_films_and_meshes_name_what_they_need(
    module, name, monkeypatch, capsys, tmp_path
):
    monkeypatch.setitem(sys.modules, module, None)
    if module == "PIL":
        assert main(["view", "arm7", "--film", str(tmp_path / "a.gif")]) == 1
        assert f"{name}" in capsys.readouterr().err
        return
    from dyn_core.view.robot_parts import trimesh_module

    with pytest.raises(UnsupportedError, match=r"trimesh.*dyn_ros\[view\]"):
        trimesh_module()


def test_a_film_that_takes_long_says_how_far_it_is(monkeypatch, capsys, tmp_path):
    """On a terminal, after two seconds; into a file or a pipe nothing is written."""
    seconds = iter(range(0, 1000, 3))
    monkeypatch.setattr("dyn_core.recordings.progress.time.monotonic", seconds.__next__)
    run = replay.of_recording(_run(3).model, _run(3))
    assert write_film(run, tmp_path / "a.gif", fps=10.0) == 3
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    write_film(run, tmp_path / "a.gif", fps=10.0)
    said = capsys.readouterr().err
    assert said.endswith("\r3 of 3 pictures, 0.333 pictures/s, 0:00:00 left\n")


def test_a_view_is_saved_by_the_ending_of_its_file(tmp_path):
    """A page was written into `run.gif` and `run.png`, in silence."""
    run = _run(3)
    for view in (run.show(), show(run), show(run.model, run)):
        view.save(tmp_path / "run.gif")
        assert (tmp_path / "run.gif").read_bytes()[:6] == b"GIF89a"
    posture = show(run.model, run.q[-1])
    posture.save(tmp_path / "end.png")
    show(run.model).save(tmp_path / "start.png")
    end, start = ((tmp_path / f"{x}.png").read_bytes() for x in ("end", "start"))
    assert end[:4] == start[:4] == b"\x89PNG" and end != start
    for wrong in ("run.mp4", "run"):
        with pytest.raises(SettingError, match="valid: .* .html, .htm, .gif, .png"):
            posture.save(tmp_path / wrong)
    with pytest.raises(SettingError, match="a robot that stands is no film"):
        show(run.model).save(tmp_path / "a.gif")
    chain = dyn.make_chain([0.5, 0.4], [1.0, 0.7, 0.5])
    x = np.cumsum(np.ones((5, 3, 2)), axis=1)
    show(chain, x, 0.1 * np.arange(5)).save(tmp_path / "chain.gif")
    assert (tmp_path / "chain.gif").exists()


def test_what_is_shown_is_said():
    """A name is no robot yet, and NaN no place."""
    with pytest.raises(UnsupportedError, match=r"a str is not shown; .*dyn.load"):
        show("arm7")
    said = r"a str is not shown; valid: show\(dyn\.load\('arm7'\)\), or the command"
    with pytest.raises(UnsupportedError, match=rf"{said} dyn view arm7$"):
        show("arm7")
    with pytest.raises(UnsupportedError, match="; valid: the command dyn view run.npz"):
        show(Path("run.npz"))
    with pytest.raises(dyn.ShapeError, match="states: wanted finite numbers"):
        show(dyn.load("arm7"), [np.nan] * 7)


def test_a_robot_is_shown_in_a_posture(tmp_path, capsys):
    """--q0 as in dyn sim: where the sliders start, and in a picture."""
    arguments = ["view", "arm7", "--picture", str(tmp_path / "a.png")]
    assert main([*arguments, "--q0", "joint2=0.7", "joint4=-1"]) == 0
    assert "picture: " in capsys.readouterr().out
    moved = (tmp_path / "a.png").read_bytes()
    assert main(arguments) == 0 and (tmp_path / "a.png").read_bytes() != moved
    assert main([*arguments, "--q0", "joint2=9"]) == 0
    assert "beyond the limits of joint joint2" in capsys.readouterr().err
    assert main([*arguments, "--q0", "joint9=1"]) == 1
    assert "no moving joint is called 'joint9'" in capsys.readouterr().err
    assert main(["view", "hopper", "--q0", "1", "--film", "a.gif"]) == 1
    assert "--q0 goes with a robot" in capsys.readouterr().err
    assert main(["view", "arm7", "--screenshot", "a.png"]) == 2
    assert "; --picture FILE.png;" in capsys.readouterr().err
    assert main(["sim", "quadruped", "--q0", "z=0.5"]) == 1
    assert "root_joint.2" in capsys.readouterr().err


def test_a_posture_of_a_scene_is_where_it_starts():
    """A base that is placed stays there; else the robot stands on the ground."""
    model = dyn.load("quadruped")
    q = model.start()
    q[model.q_slice("front_left_knee")] = -1.0
    on_ground = RobotScene(model, start=q).start()
    assert on_ground[2] > 0 and on_ground[3:] == pytest.approx(q[3:])
    q[2] = 2.0
    assert RobotScene(model, start=q).start() == pytest.approx(q)


# The command.


def test_the_command_writes_films_and_pages(tmp_path, capsys):
    path = tmp_path / "run.npz"
    _run(3).save(path)
    options = [
        "--film",
        str(tmp_path / "a.gif"),
        "--html",
        str(tmp_path / "a.html"),
        "--fps",
        "10",
    ]
    assert main(["view", str(path), *options[:-1], "100"]) == 1
    assert "--fps 100; valid: up to 50" in capsys.readouterr().err
    assert main(["view", str(path), *options]) == 0
    assert "3 pictures" in capsys.readouterr().out
    assert (tmp_path / "a.gif").read_bytes()[:6] == b"GIF89a"
    assert "__VISER_EMBED_DATA__" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["arm8"], "arm7"),
        (["arm7", "--port", "70000"], "0 .. 65535"),
        (["arm7", "--host", "no such host"], "is not known"),
        (["arm7", "--robot", "arm7"], "goes with a recording"),
        (["gone.npz"], "no such file"),
        (["arm7", "--film", "a.mp4"], r".gif"),
        (["arm7", "--html", "gone/a.html"], "no such folder"),
        (["dyn_ros/Pendulm-v0"], "Pendulum"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(arguments, why, capsys):
    assert main(["view", *arguments]) == 1
    assert why in capsys.readouterr().err


def test_a_run_without_its_robot_needs_its_name(tmp_path, capsys):
    path = tmp_path / "run.npz"
    np.savez(path, t=np.zeros(1), q=np.zeros((1, 7)))
    assert main(["view", str(path), "--film", str(tmp_path / "a.gif")]) == 1
    assert "give --robot" in capsys.readouterr().err
    assert (
        main(["view", str(path), "--robot", "arm7", "--film", str(tmp_path / "a.gif")])
        == 0
    )


def test_ctrl_c_ends_the_command_with_success():
    """The address is printed and answers; SIGINT ends it with status 0."""
    import signal

    command = [sys.executable, "-m", "dyn_core.cli", "view", "two_link", "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("two_link: http://127.0.0.1:"), process.stderr.read()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(line.split()[1], timeout=30) as page:
            assert page.status == 200
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
        assert "Traceback" not in error
        assert time.monotonic() - started < 30
    finally:
        process.kill()
        process.wait()


def _answer(port, *headers):
    """Return the first line of the answer to a request with these headers."""
    with socket.create_connection(("127.0.0.1", port), timeout=30.0) as connection:
        request = "\r\n".join(("GET / HTTP/1.1", *headers, "", ""))
        connection.sendall(request.encode())
        return connection.makefile("rb").readline().decode().strip()


def _handshake(port, *headers):
    """Return the first line of the answer to a handshake of a WebSocket."""
    return _answer(
        port, *headers, "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Protocol: viser-v{viser.__version__}",
    )  # fmt: skip


@pytest.fixture(scope="module")
def port():
    """The port of a viewer as `--live` has it."""
    with Viewer(RobotScene(dyn.load("two_link")), port=0, sliders=False) as made:
        yield made.server.get_port()


OK, SWITCHED, REFUSED = "200 OK", "101 Switching Protocols", "403 Forbidden"


@pytest.mark.parametrize("host, origin, allowed", [
    ("127.0.0.1:{port}", "http://127.0.0.1:{port}", True),
    ("localhost:{port}", "http://localhost:{port}", True),
    ("LocalHost:{port}", "http://localhost:{port}", True),
    ("localhost:9000", "http://localhost:9000", True),  # by a tunnel
    ("127.0.0.1:{port}", "", True),  # no browser
    ("127.0.0.1:{port}", "http://evil.example", False),
    ("127.0.0.1:{port}", "null", False),
    ("127.0.0.1:{port}", "http://127.0.0.1:3000", False),  # another server here
    ("127.0.0.1:{port}", "https://127.0.0.1:{port}", False),
    ("localhost:{port}", "http://127.0.0.1:{port}", False),
    ("evil.example:{port}", "http://evil.example:{port}", False),  # DNS rebinding
    ("evil.example:{port}", "", False),
    ("127.0.0.1.evil.example", "", False),
    ("192.168.0.1:{port}", "", False),
    ("[", "", False),
    ("", "", False),
])  # fmt: skip
def test_requests_of_other_sites_are_refused(port, host, origin, allowed):
    """Pages and WebSockets are for the page that this server has sent, alone."""
    headers = [f"Host: {host}"] * bool(host) + [f"Origin: {origin}"] * bool(origin)
    headers = [x.format(port=port) for x in headers]
    assert _answer(port, *headers).endswith(OK if allowed else REFUSED)
    assert _handshake(port, *headers).endswith(SWITCHED if allowed else REFUSED)


def test_two_hosts_of_one_request_are_refused(port):
    """The first could be right and the second be the one that counts elsewhere."""
    hosts = f"Host: 127.0.0.1:{port}", "Host: evil.example"
    assert _answer(port, *hosts).endswith(REFUSED)
    assert _handshake(port, *hosts).endswith(REFUSED)


@pytest.mark.parametrize("name, allowed", [
    ("10.0.0.7:8080", True), ("[fe80::1]", True), ("robot.lan", True), ("localhost", True),
    ("mine", True), ("mine.local:80", True), ("evil.example", False), ("robot.lan.evil", False),
])  # fmt: skip
def test_on_a_network_numbers_and_names_of_the_machine_are_answered(
    monkeypatch, name, allowed
):
    """What `--host robot.lan` is reached by; no name that somebody else may give out."""
    monkeypatch.setattr("socket.gethostname", lambda: "Mine")
    headers = types.SimpleNamespace(get_all=lambda key: [name] * (key == "Host"))
    assert bool(server.refusal("robot.lan", headers)) is not allowed


def test_a_viser_that_cannot_be_guarded_is_refused(monkeypatch):
    """Another release may listen otherwise: then nothing is served."""
    monkeypatch.setattr(
        "dyn_core.view.browser.server._guarded", lambda host: nullcontext([])
    )
    with pytest.raises(UnsupportedError, match="pages of other sites"):
        Viewer(RobotScene(dyn.load("two_link")), port=0)


def test_no_banner_of_viser_is_shown_where_rich_has_its_own_display(monkeypatch):
    """As in a notebook, whose boxes do not pass sys.stdout."""
    import rich

    shown = []
    console = rich.console.Console(file=types.SimpleNamespace(
        write=shown.append, flush=lambda: None, isatty=lambda: False
    ))  # fmt: skip
    monkeypatch.setattr(rich, "_console", console)
    assert show(dyn.load("two_link"))._repr_html_().startswith("<iframe")
    assert shown == [] and not console.quiet
    rich.print("mine")
    assert "".join(shown) == "mine\n"
