"""The `dyn` command as a user types it."""

import os
import subprocess
import sys

import pytest

from dyn_core import cli, robots


def _run(*arguments, **env):
    return subprocess.run(
        [sys.executable, "-m", "dyn_core.cli", *arguments],
        capture_output=True, text=True, env={**os.environ, **env}, timeout=120,
    )  # fmt: skip


def test_info_shows_the_robot(capsys):
    """Joints, limits, masses, total inertia, warnings."""
    assert cli.main(["info", "every_joint"]) == 0
    out = capsys.readouterr().out
    for words in ("shoulder", "revolute", "finger_a_joint", "-0.5 shoulder + 0.1",
                  "spherical", "mass 8.47 kg", "principal moments", "every_joint.dyn.yaml",
                  "warning: joint 'turn' has no effort limit"):  # fmt: skip
        assert words in out, words


def test_info_of_a_bad_file_is_an_error_in_words(tmp_path, capsys):
    """Status 1 and one line."""
    bad = tmp_path / "bad.urdf"
    bad.write_text("<robot>")
    assert cli.main(["info", str(bad)]) == 1
    assert "malformed XML" in capsys.readouterr().err


def test_plugins_lists_solvers(capsys):
    """Name, Signature, origin, source."""
    assert cli.main(["plugins"]) == 0
    out = capsys.readouterr().out
    line = next(x for x in out.splitlines() if x.startswith("rnea_spatial "))
    assert "inverse_dynamics" in line
    assert "dyn_plugins.rnea" in line
    assert "RBDA, Table 5.1" in line


@pytest.mark.parametrize("robot", ["arm7", "planar3"])
def test_demo_in_one_process(tmp_path, robot):
    """Errors below 0.01, solver names, a picture, status 0; the swap shows."""
    picture = tmp_path / "demo.png"
    done = _run("demo", "--one-process", "--duration", "1.5", "--plot", str(picture),
                "--robot", robot, "--forward-dynamics", "dense", "--step", "rk4")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "solvers: dense, rk4, rnea" in done.stdout
    errors = [
        float(x.split()[1]) for x in done.stdout.splitlines() if x[:8] == "  joint1"
    ]
    assert errors
    assert max(errors) < 0.01
    if "picture" in done.stdout:
        assert picture.stat().st_size > 10_000


def test_demo_without_rclpy_says_so(tmp_path):
    """Without ROS: one line, and the same run in one process."""
    blocker = tmp_path / "rclpy"
    blocker.mkdir()
    (blocker / "__init__.py").write_text("raise ImportError('no ROS here')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = _run("demo", "--duration", "1", "--plot", "", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("rclpy does not load: no ROS here") == 1
    assert "one process, no ROS" in done.stdout


@pytest.mark.ros
def test_demo_over_ros(tmp_path):
    """Two processes: errors, rate, latency, missed cycles, solver names, status 0."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    done = _run("demo", "--duration", "2", "--plot", str(tmp_path / "demo.png"))
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("two processes over ROS 2", "state to effort: p50", "cycles missed",
                  "solvers: aba, semi_implicit_euler, rnea", "exit statuses: [0, 0]"):  # fmt: skip
        assert words in done.stdout, words
    lines = [x for x in done.stdout.splitlines() if x.startswith("  joint")]
    assert len(lines) == 7
    assert max(float(x.split()[1]) for x in lines) < 0.02  # a machine that is busy


def test_wrong_names_are_refused_in_words():
    """An unknown solver or robot is one line on stderr, status 1."""
    done = _run("demo", "--one-process", "--forward-dynamics", "abba")
    assert done.returncode == 1
    assert "no solver is called 'abba'; known:" in done.stderr
    done = _run("demo", "--one-process", "--robot", "nowhere.urdf")
    assert done.returncode == 1
    assert "cannot read the URDF file" in done.stderr


def test_check_plugin_fails_for_a_wrong_solver(tmp_path):
    """A solver that breaks a law is named, status 1."""
    (tmp_path / "wrong_dyn.py").write_text(
        "from dyn_core import GRAVITY_FORCE, TextSolver, hookimpl\n"
        "from dyn_plugins.gravity import gravity\n"
        "def half(model, q):\n"
        "    return [None, *(x * 0.5 for x in gravity(model, q)[1:])]\n"
        "@hookimpl\n"
        "def dyn_solvers():\n"
        "    return [TextSolver('half_gravity', GRAVITY_FORCE, half)]\n"
    )
    info = tmp_path / "wrong_dyn-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: wrong_dyn\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text("[dyn_core]\nwrong_dyn = wrong_dyn\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = _run("check-plugin", "half_gravity", "--robot", "arm7", PYTHONPATH=path)
    assert done.returncode == 1
    assert "FAIL gravity_is_bias_at_rest" in done.stdout


def test_robots_are_listed():
    """An unknown shipped robot lists the known ones."""
    with pytest.raises(ValueError, match="known: arm7, cart_pole"):
        robots.path("dog")
