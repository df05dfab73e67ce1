"""`dyn check-derivatives` as a user types it."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cli, robots
from dyn_core.testing import derivative_check, random_model


@pytest.mark.parametrize(
    "arguments",
    [
        ["planar3", "--engine", "native"],
        ["planar3", "--root-joint", "floating"],
        ["planar3", "--second"],
        *(
            pytest.param([name], marks=pytest.mark.full)
            for name in ("arm7", "every_joint", "quadruped")
        ),
    ],
)
def test_shipped_robots_pass(arguments, capsys):
    """A line for each joint, a verdict, status 0; large robots with --full."""
    assert cli.main(["check-derivatives", *arguments, "--states", "1"]) == 0
    out = capsys.readouterr().out
    root = "floating" if "floating" in arguments else None
    model = dyn.load(arguments[0], root_joint=root)
    for name in model.joint_names:
        assert f"  {name} " in out
    assert "ok: largest error" in out


def test_a_users_file_and_extras(tmp_path, capsys):
    """A path and a sidecar are taken; a missing file is an error in words."""
    extras = tmp_path / "more.yaml"
    extras.write_text("gears:\n  - {joints: [joint1, joint2], ratio: -2.0}\n")
    path = str(robots.path("arm7"))
    command = ["check-derivatives", path, "--extras", str(extras), "--states", "1"]
    assert cli.main(command) == 0
    out = capsys.readouterr().out
    assert "joint1" in out
    assert "joint2" not in out
    assert cli.main(["check-derivatives", str(tmp_path / "none.urdf")]) == 1
    assert "none.urdf" in capsys.readouterr().err


def test_a_wrong_derivative_is_found(monkeypatch, capsys):
    """A derivative that is off by 1e-6 at one joint gives status 1 and its name."""

    class Wrong:
        def __init__(self, name):
            self.solver, self.name = dyn.solver(name), name

        def build(self, *args, **choices):
            program = self.solver.build(*args, **choices)
            if self.name != "id_derivatives":
                return program

            def off(*state):
                blocks = [np.array(x) for x in program(*state)]
                blocks[0][:, 1] *= 1 + 1e-6
                return blocks

            return off

    monkeypatch.setattr(derivative_check, "solver", Wrong)
    assert cli.main(["check-derivatives", "two_link", "--states", "1"]) == 1
    assert "FAIL: derivatives disagree at joint2 (allowed" in capsys.readouterr().out


def test_a_wrong_second_derivative_is_found(monkeypatch, capsys):
    """A contraction that is off by 1e-6 at one joint gives status 1 and its name."""

    class Wrong:
        def __init__(self, name):
            self.solver, self.name = dyn.solver(name), name

        def build(self, *args, **choices):
            program = self.solver.build(*args, **choices)
            if self.name != "id_second_contracted":
                return program

            def off(*state):
                blocks = [np.array(x) for x in program(*state)]
                blocks[0][:, 1] *= 1 + 1e-6
                return blocks

            return off

    monkeypatch.setattr(derivative_check, "solver", Wrong)
    arguments = ["check-derivatives", "two_link", "--states", "1"]
    assert cli.main(arguments) == 0
    assert cli.main([*arguments, "--second"]) == 1
    assert "FAIL: derivatives disagree at joint2 (allowed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seed", "size"), [(2, 3), pytest.param(5, 5, marks=pytest.mark.full)]
)
def test_random_robots_pass(seed, size):
    """Couplings and joints of several kinds; a larger robot with --full."""
    model = random_model(seed, size=size)
    errors = derivative_check.examine(model, 1, seed)
    assert list(errors) == list(model.joint_names)
    assert max(max(row.values()) for row in errors.values()) < 1e-9


def test_a_driven_robot_passes():
    """The time is drawn, too."""
    from dyn_core.numbers.scalar import sin

    model = dyn.load_urdf(robots.path("two_link"))
    driven = model.drive(model.joint_names[0], lambda t: (None, (0.0, 0.0, sin(t))))
    errors = derivative_check.examine(driven, 1)
    assert max(max(row.values()) for row in errors.values()) < 1e-9
