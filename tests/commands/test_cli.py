"""The `dyn` command as a user types it."""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cli, robots
from dyn_core.commands import main as commands
from dyn_core.commands.help import PAGES
from dyn_core.engines.llvm import kernel
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.simulation import robot_overview
from dyn_core.simulation.loop_closure import constraint_rows
from dyn_core.simulation.robot_overview import describe
from dyn_core.tasks import ROBOT_TASKS, TASKS
from ros_nodes.demo import demo_command as demo
from ros_nodes.demo.demo_plan import Outcome, plan_waypoints

EXAMPLES = Path(__file__).parents[2] / "examples" / "four_bar"


def _run(*arguments, **env):
    return _python("-m", "dyn_core.cli", *arguments, **env)


def _python(*arguments, **env):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True, text=True, env={**os.environ, **env}, timeout=120,
    )  # fmt: skip


def test_info_shows_the_robot(capsys):
    """Joints, limits, masses, total inertia, warnings."""
    assert cli.main(["info", "every_joint"]) == 0
    out = capsys.readouterr().out
    for phrase in ("shoulder", "revolute", "finger_a_joint", "-0.5 shoulder + 0.1",
                  "spherical", "mass 8.47 kg", "principal moments", "every_joint.dyn.yaml",
                  "warning: joint 'turn' has no effort limit"):  # fmt: skip
        assert phrase in out, phrase


def test_info_shows_loops(shipped):
    """How many constraint rows there are, and what can still move."""
    model = shipped["planar3"]
    loop = dyn.make_loop("rim", "point", model.frame_names[-1])
    lines = describe(model.with_loops(loop))
    (line,) = [x for x in lines if x.startswith("loops: ")]
    assert line == "loops: rim (point, 3 rows); 3 constraint rows for nv 3:"


@pytest.mark.filterwarnings("default::dyn_core.errors.ModelWarning")
def test_doubts_about_a_robot_are_one_line(tmp_path, capsys):
    """Of commands that do not list them; without the line of a program."""
    odd = tmp_path / "odd.urdf"
    text = robots.path("two_link").read_text()
    odd.write_text(text.replace("</robot>", "<unknown/></robot>"))
    assert cli.main(["count", "rnea", str(odd)]) == 0
    (line,) = [x for x in capsys.readouterr().err.splitlines() if "unknown" in x]
    assert line.startswith("dyn: warning: robot 'two_link': unknown element <unknown>")


def test_info_of_a_bad_file_is_an_error_in_words(tmp_path, capsys):
    """Status 1 and one line."""
    bad = tmp_path / "bad.urdf"
    bad.write_text("<robot>")
    assert cli.main(["info", str(bad)]) == 1
    assert "malformed XML" in capsys.readouterr().err


def test_plugins_lists_solvers(capsys):
    """A sentence for each solver under its problem; sources where all is asked for."""
    assert cli.main(["plugins"]) == 0
    blocks = capsys.readouterr().out.split("\n\n")
    block = next(x for x in blocks if x.startswith("inverse_dynamics: joint forces"))
    assert "    rnea " in block
    assert "rnea_common_frame" not in block  # a reference solver
    assert cli.main(["plugins", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(x.startswith("    rnea_common_frame ") for x in lines)
    k = next(k for k, x in enumerate(lines) if x.startswith("    rnea_spatial "))
    assert "Joint forces" in lines[k]
    assert "dyn_plugins.dynamics.rnea" in lines[k + 1]
    assert "RBDA, Table 5.1" in lines[k + 1]


def test_plugins_of_a_problem(capsys):
    """One block; an unknown problem names the nearest."""
    assert cli.main(["solvers", "forward_dynamics"]) == 0
    out = capsys.readouterr().out
    assert cli.main(["plugins", "--problem", "forward_dynamics"]) == 0
    assert capsys.readouterr().out == out
    both = ["solvers", "inverse_dynamics", "--problem", "forward_dynamics"]
    assert cli.main(both) == 1
    assert "--problem is now PROBLEM, and both are there" in capsys.readouterr().err
    assert out.startswith("forward_dynamics: joint accelerations")
    block, count = out.split("\n\n")
    named = [x.split()[0] for x in block.splitlines()[1:]]
    assert named == dyn.solvers("forward_dynamics")
    assert re.fullmatch(r"\d reference solvers more: --all\n", count)
    assert cli.main(["plugins", "--problem", "forward_dynamic"]) == 1
    assert "did you mean 'forward_dynamics'" in capsys.readouterr().err


def test_help_of_a_solver_is_its_help_page(capsys):
    """Problem, equation, units and meanings, options with defaults, source, plugin."""
    assert cli.main(["help", "semi_implicit_euler"]) == 0
    out = capsys.readouterr().out
    assert out.strip() == dyn.solver("semi_implicit_euler").__doc__
    for phrase in ("qd_next = qd + dt qdd", "Problem step: state after a step",
                  "rad/s | m/s  joint velocities", "forward_dynamics='auto'",
                  "limit_stops=False", "matrices='dense'", "Source: ",
                  "Offered by: dyn_ros (dyn_plugins.steps.integration)"):  # fmt: skip
        assert phrase in out, phrase


def test_help_of_problems_commands_and_unknown_names(capsys):
    """A problem lists its solvers, a command its arguments; else the nearest name."""
    assert cli.main(["help", "forward_dynamics"]) == 0
    out = capsys.readouterr().out
    assert "Solvers: aba, aba_loops, dense" in out
    assert "Default solver: aba, for robots with loops aba_loops" in out
    assert cli.main(["help", "info"]) == 0
    assert "--root-joint" in capsys.readouterr().out
    assert cli.main(["help"]) == 0
    assert "usage: dyn" in capsys.readouterr().out
    assert cli.main(["help", "rneaa"]) == 1
    assert "did you mean 'rnea'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("terms", "first"),
    [
        (["mass", "matrix"], "mass_matrix: joint-space inertia matrix"),
        (["gravity compensation"], "gravity_compensation: "),
        (["Jacobian"], "jacobian: "),
        (["H"], "id_derivatives: "),
        (["centre", "mass"], "centre_of_mass: "),
        (["contact"], "chain_event_step: "),
        (["MPC"], "optimal_control: "),
        (["linearise"], "step_derivatives: "),
    ],
)
def test_help_finds_words(capsys, terms, first):
    """Words of a name, then outputs by name, then words of a meaning."""
    assert cli.main(["help", *terms]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(first)
    assert terms != ["H"] or "\nmass_matrix: joint-space inertia matrix (crba)" in shown
    assert terms != ["H"] or "\nhybrid" not in shown
    assert terms != ["contact"] or "\ncontact_step: " in shown


@pytest.mark.parametrize(
    ("word", "page"),
    [("mp4", "viewing"), ("screenshot", "viewing"), ("resume", "batches"),
     ("swing", "optimal_control"), ("tsid", "control"), ("gradient", "derivatives")],
)  # fmt: skip
def test_words_of_other_tools_lead_to_a_page(word, page, capsys):
    assert cli.main(["help", word]) == 0
    assert f"docs/{page}.md" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("reach", "reach: move the hand of the shipped arm7 to a goal"),
        ("Quadruped walk", "quadruped_walk: walk along the world's x axis"),
        ("pendulum", "pendulum: swing a pendulum up by a torque too weak"),
        ("cart_two_poles", "cart_two_poles: keep the poles on a cart upright"),
    ],
)
def test_help_of_a_task_says_what_it_sees_and_rewards(asked, said, capsys):
    """The docstring, the page on environments, then what else the word finds."""
    assert cli.main(["help", *asked.split()]) == 0
    out = capsys.readouterr().out
    assert out.startswith(said)
    assert "Observation" in out and "eward" in out and "docs/environments.md" in out
    assert asked != "pendulum" or "\ndocs/planar.md: " in out


def test_each_task_has_a_help_page(capsys):
    """A near name of one is guessed."""
    for name in (*ROBOT_TASKS, *TASKS):
        assert cli.main(["help", name]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"{name}: ")
        assert "bservation" in out and "eward" in out
    assert cli.main(["help", "quadruped_wlk"]) == 1
    assert "did you mean 'quadruped_walk'" in capsys.readouterr().err


def test_help_compares_beginnings_of_words(capsys):
    """Otherwise "ass" would find each mass."""
    assert cli.main(["help", "mas"]) == 0
    assert "\nmass_matrix: " in capsys.readouterr().out
    assert cli.main(["help", "ass"]) == 1
    error = capsys.readouterr().err
    assert "no command, problem, task or solver is called 'ass'" in error
    assert (
        "names of Pinocchio, MuJoCo, Drake and the Robotics Toolbox: docs/other_"
        in error
    )


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ("PPO", "docs/environments.md: "),
        ("UR5", "docs/loading.md: "),
        ("Franka", "docs/ros2_control.md: "),
        ("Gazebo", "docs/nodes.md: "),
        ("RViz", "docs/ros_installations.md: "),
        ("christoffel", "docs/library.md: "),
        ("weight", "docs/control.md: "),
        ("payload", "docs/identification.md: "),
        ("calibration", "docs/identification.md: "),
        ("singularity", "docs/task_space.md: "),
        ("workspace", "docs/inverse_kinematics.md: "),
        ("simulate", "dyn sim: "),
        ("ros2_control", "docs/ros2_control.md: "),
        ("C++", "docs/cpp.md: "),
        ("linearise", "docs/derivatives.md: "),
        ("humanoid", "docs/control.md: "),
        ("whole body", "docs/control.md: "),
        ("walking", "docs/contacts.md: "),
        ("double pendulum", "docs/planar.md: "),
        ("notebook", "docs/viewing.md: "),
        ("memory map", "docs/batches.md: "),
        ("train", "docs/environments.md: "),
        ("convert", "docs/conventions.md: "),
        ("center of mass", "centre_of_mass: "),
        ("contact forces", "docs/contacts.md: "),
        ("feet", "docs/loops.md: "),
        ("identify", "dyn.identify: the parameters of a robot that fit measured"),
        ("make_chain", "dyn.make_chain: "),
        ("dyn.load", "dyn.load: "),
        ("World", "dyn.World: "),
    ],
)
def test_help_leads_to_pages_and_commands(capsys, asked, place):
    """What readers search for is not only names of problems."""
    assert cli.main(["help", *asked.split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(place) for line in lines)


def test_help_knows_the_pages_that_readers_choose_from():
    """Each page that it names exists; each of docs/index.md's table is named."""
    folder = Path(__file__).parents[2] / "docs"
    assert all((folder / f"{name}.md").is_file() for name in PAGES)
    rows = [x for x in (folder / "index.md").read_text().splitlines() if x[:1] == "|"]
    linked = set(re.findall(r"\]\((\w+)\.md", "".join(rows)))
    assert linked - {"cheat_sheet"} <= set(PAGES)


def test_every_solver_has_a_help_page():
    """Whatever a solver is made of, its page and its repr are short and complete."""
    for name in dyn.solvers(references=True):
        solver = dyn.solver(name)
        page = solver.describe()
        assert page.startswith(f"{name}: "), name
        assert "Inputs:\n" in page, name
        assert solver.source in page, name
        assert len(repr(solver).splitlines()) == 1, name
        assert name in repr(solver), name


def test_plain_dyn_prints_its_help():
    """Status 0 and the commands; --version says which."""
    done = _run()
    assert done.returncode == 0
    assert "check-plugin" in done.stdout
    assert done.stderr == ""
    done = _run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("dyn_ros ")


def test_commands_stand_in_groups_with_an_example_each(capsys):
    """Each shipped command has a group of the list; its help ends with a call."""
    assert cli.main([]) == 0
    page = capsys.readouterr().out
    places = [page.index(f"\n{group}:\n") for group in commands.GROUPS]
    assert places == sorted(places)
    assert page.index("  cache ") > places[-1] > page.index("  up ") > places[-2]
    for name, command in commands.parser().commands().items():
        assert command.group in commands.GROUPS, name
        (example,) = command.format_help().splitlines()[-1:]
        call = shlex.split(example.removeprefix("example: dyn "))
        assert commands.parser(call[0]).parse_args(call).run, name


@pytest.mark.parametrize(
    ("command", "spared"),
    [
        (
            "--help",
            ["numpy", "dyn_core.model", "dyn_plugins.dynamics", "dyn_core.engines"],
        ),
        (
            "robots arm7",
            ["scipy", "llvmlite", "dyn_core.simulation", "dyn_plugins.dynamics"],
        ),
        (
            "info arm7",
            ["scipy", "llvmlite", "dyn_core.testing", "dyn_plugins.dynamics"],
        ),
        (
            "param --help",
            ["scipy", "llvmlite", "dyn_core.testing", "dyn_plugins.dynamics"],
        ),
        ("count rnea arm7", ["scipy", "llvmlite", "ros_nodes.tools", "dyn_core.view"]),
    ],
)
def test_a_command_imports_only_what_it_needs(command, spared):
    """NumPy alone is a tenth of a second, all that commands need together one."""
    code = (
        "import sys; from dyn_core.cli import main\n"
        "try: assert main(sys.argv[1:]) == 0\n"
        "except SystemExit as error: assert error.code == 0\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = _python("-c", code, *command.split())
    loaded = done.stderr.split()
    assert done.returncode == 0
    assert "dyn_core.commands.main" in loaded
    assert {*spared} & {*loaded} == set()


def test_robots_are_listed_by_source_and_found_by_a_part_of_their_name(
    monkeypatch, capsys
):
    """Whatever dyn.load takes; planar chains, too; nothing found is an error."""
    assert cli.main(["robots"]) == 0
    blocks = capsys.readouterr().out
    for name in (*robots.names(), *robots.chains()):
        assert re.search(rf"\n    {name} +[A-Z][^.]*[a-z]", blocks)
    assert re.search(r"\n    two_link .* horizontal plane: no weight on its", blocks)
    assert cli.main(["robots", "PEND"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert any(line.startswith("    double_pendulum  Two equal") for line in lines)
    assert all("pend" in line.lower() for line in lines if line[0] == " ")
    names = {"here": ["Arm", "leg"], "elsewhere": []}
    monkeypatch.setattr("dyn_core.commands.robots.collections", lambda: names)
    assert cli.main(["robots", "aRM"]) == 0
    assert capsys.readouterr().out == "here:\n    Arm\n"
    names["here"] = ["b10", "a2", "B1"]
    assert cli.main(["robots"]) == 0
    assert "here:\n    a2\n    B1\n    b10\n" in capsys.readouterr().out
    assert cli.main(["robots"]) == 0
    missing = "\nelsewhere: not installed (pip install elsewhere)\n"
    assert missing in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setattr("dyn_core.model.sources.locate.collections", lambda: names)
    assert cli.main(["robots", "franka"]) == 1
    assert "elsewhere (not installed: pip install elsewhere)" in capsys.readouterr().err
    monkeypatch.undo()
    assert cli.main(["robots", "tow_link"]) == 1
    assert "did you mean 'two_link'" in capsys.readouterr().err


def test_the_cache_is_shown_and_emptied(monkeypatch, tmp_path, capsys):
    """Place, size, limit; --clear removes entries, and nothing else in the folder."""
    place = tmp_path / "kernels"
    monkeypatch.setenv("DYN_CACHE_DIR", str(place))
    monkeypatch.setenv("DYN_CACHE_LIMIT", "3")
    kernel_cache.store("key", {"of": "a test"}, b"x" * 40_000)
    (place / "notes.txt").write_text("the user's")
    (place / "folder.obj").mkdir()
    assert cli.main(["cache"]) == 0
    out = capsys.readouterr().out
    assert f"folder  {place} " in out
    assert "0.040 MB in 1 entries" in out
    assert "3 MB (DYN_CACHE_LIMIT" in out
    assert kernel_cache.load("key") is not None
    assert cli.main(["cache", "--clear"]) == 0
    assert "removed 0.040 MB in 1 entries" in capsys.readouterr().out
    assert {x.name for x in place.iterdir()} == {"notes.txt", "folder.obj"}
    monkeypatch.setenv("DYN_CACHE_DIR", "off")
    assert cli.main(["cache"]) == 0
    assert capsys.readouterr().out.startswith("off; DYN_CACHE_DIR")


@pytest.mark.filterwarnings("default")
def test_warnings_of_commands_are_one_line_without_our_code(
    tmp_path, monkeypatch, capsys
):
    """Those of other packages keep their place in the code."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    kernel.forget()
    assert cli.main(["sim", "two_link", "--duration", "0.01"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dyn: warning: compiled kernels are not kept: ")
    file = io.StringIO()
    commands._show_warning("overflow", RuntimeWarning, "other.py", 7, file, "")
    assert file.getvalue() == "other.py:7: RuntimeWarning: overflow\n"


def test_a_former_option_is_valid_and_says_the_present_one(capsys):
    """One line on stderr; the result is the same; --help has the present name alone."""
    goal = ["--xyz", "0.3", "0.2", "0.6"]
    assert cli.main(["ik", "arm7", "--frame", "tool", *goal]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert cli.main(["ik", "arm7", "--tip", "tool", *goal]) == 0
    former = capsys.readouterr()
    assert former.out == said.out
    (line,) = former.err.splitlines()
    assert line.startswith("dyn: warning: the option '--tip' is now '--frame'")
    assert "--tip" not in commands.parser("ik").commands()["ik"].format_help()
    assert cli.main(["ik", "arm7", "--frame", "tool", "--tip", "link3", *goal]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == "dyn: --frame: tool and link3 are both given; valid: one link"


def test_help_says_that_written_files_are_replaced():
    """Of each command that writes a file, apart from recordings of what happened once."""
    pages = {
        name: each.format_help() for name, each in commands.parser().commands().items()
    }
    replaced = {
        name for name, page in pages.items() if "replace those of the same" in page
    }
    assert replaced == {"sim", "id", "fd", "report", "excite", "demo", "evaluate", "view",
                        "check-derivatives", "doctor"}  # fmt: skip
    assert "an existing one is refused" in " ".join(pages["record"].split())


def test_an_unknown_command_names_the_nearest(capsys):
    """Status 2, one line."""
    assert cli.main(["plugin"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dyn: no command is called 'plugin'; did you mean 'plugins'")


BAD_ROBOTS = {  # arguments, what is said
    "missing": (["count", "rnea", "X.urdf"], "cannot read the URDF file X.urdf"),
    "a folder": (["explain", "rnea", "."], "cannot read the URDF file ."),
    "no XML": (["count", "rnea", __file__], "cannot read the URDF file"),
    "no name": (["bench", "--robot", "tow_link", "--peers", "", "--solvers", "rnea"],
                "no robot is called 'tow_link'; did you mean 'two_link'"),
    "info": (["info", "quadruple"], "did you mean 'quadruped'"),
    "no time": (["demo", "--one-process", "--duration", "-1"], "--duration -1 s; valid"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ROBOTS)
def test_wrong_arguments_are_refused_in_words(capsys, case):
    """One line and status 1, whatever the command."""
    arguments, message = BAD_ROBOTS[case]
    assert cli.main(arguments) == 1
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_robot_without_joints_is_refused_by_the_demo(tmp_path, capsys):
    """Nothing can follow a trajectory."""
    path = tmp_path / "rock.urdf"
    path.write_text("<robot name='rock'><link name='base'/></robot>")
    assert cli.main(["demo", "--one-process", "--robot", str(path)]) == 1
    assert "'rock' has no joint that can move" in capsys.readouterr().err


def test_an_ascii_terminal_shows_units(monkeypatch):
    """Characters that it lacks are spelt."""
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii"))
    assert cli.main(["info", "arm7"]) == 0
    assert b"kg*m^2" in shown.getvalue()


def test_an_interrupt_is_no_traceback(monkeypatch, capsys):
    """Ctrl-C in a command: one word and the status of a shell."""

    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(robot_overview, "_info", interrupted)
    assert cli.main(["info", "arm7"]) == 130
    assert capsys.readouterr().err == "dyn: interrupted\n"


def test_up_gives_the_nodes_what_load_takes(tmp_path, monkeypatch, capsys):
    """A package, its search path and arguments; a path becomes absolute."""
    (tmp_path / "p").mkdir()
    path = tmp_path / "p" / "r.urdf"
    path.write_text(robots.path("two_link").read_text())
    started = []

    class Ended(Exception):
        pass

    def processes(nodes, params, environment, robot, more):
        started.append((robot, more))
        raise Ended

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ros_nodes.start_commands.Processes", processes)
    monkeypatch.setattr("ros_nodes.start_commands.ros_fault", lambda: None)
    two_link = dyn.load("two_link")  # the file has nothing that xacro replaces
    monkeypatch.setattr("ros_nodes.start_commands._robot", lambda *values: two_link)
    search = ["--package-path", ".", "--xacro-argument", "a:=1"]
    for robot, options, wanted in (
        ("package://p/r.urdf", search, "package://p/r.urdf"),
        ("p/r.urdf", [], str(path)), ("quadruped", [], "quadruped"),
    ):  # fmt: skip
        with pytest.raises(Ended):
            cli.main(["up", "simulator", "--robot", robot, *options])
        assert started[-1][0] == wanted
    arguments = [f'package_paths:=["{tmp_path}"]', 'xacro_arguments:=["a=1"]']
    assert started[0][1] == {"simulator": ["-p", arguments[0], "-p", arguments[1]]}
    assert cli.main(["up", "simulator", "--robot", "package://q/r.urdf", *search]) == 1
    assert "searched: package_paths" in capsys.readouterr().err
    assert cli.main(["up", "chain", *search]) == 1
    assert "change nothing for a chain" in capsys.readouterr().err


@pytest.mark.parametrize(
    "robot", ["planar3", pytest.param("arm7", marks=pytest.mark.full)]
)
def test_demo_in_one_process(tmp_path, capsys, robot):
    """Errors below 0.01, solver names, a picture, status 0; the swap shows."""
    picture = tmp_path / "demo.png"
    how = ["--one-process", "--duration", "1.5", "--plot", str(picture)]
    solvers = ["--forward-dynamics", "dense", "--step", "rk4"]
    assert cli.main(["demo", *how, "--robot", robot, *solvers]) == 0
    out = capsys.readouterr().out
    assert "solvers: dense, rk4, rnea" in out
    assert "largest tracking error [rad | m]\n" in out
    errors = [float(x.split()[1]) for x in out.splitlines() if x[:8] == "  joint1"]
    assert errors
    assert max(errors) < 0.01
    if "picture" in out:
        assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("limit", [6.2, 2.0, 1.0])
def test_demo_keeps_to_the_limits_of_joints_in_loops(tmp_path, limit):
    """Passive joints too, from another start if need be; else it is refused."""
    urdf = (EXAMPLES / "four_bar.urdf").read_text().replace("6.2", str(limit))
    (tmp_path / "four_bar.urdf").write_text(urdf)
    shutil.copy(EXAMPLES / "four_bar.dyn.yaml", tmp_path)
    model = dyn.load(tmp_path / "four_bar.urdf")
    if limit < 1.15:  # one of the two pins is beyond 1.15 rad wherever it is closed
        with pytest.raises(
            dyn.InfeasibleError, match="closes the loops within limits of all"
        ):
            plan_waypoints(model, 6.0)
        return
    plan = plan_waypoints(model, 6.0)
    for q in (plan.start, *plan.positions):
        assert (model.lower <= q).all() and (q <= model.upper).all()
        assert np.abs(constraint_rows(model, 0.0)(q, 0 * q)[0]).max() < 1e-9
    assert np.ptp(plan.positions, axis=0).min() > 0.03


def test_demo_moves_joints_with_limits_of_one_side():
    """A missing limit beside one outside [-1.5, 1.5] gives no infinite waypoint."""
    robot = SimpleNamespace(
        lower=np.array([2.0, -np.inf, -np.inf]), upper=np.array([np.inf, -2.0, np.inf]),
        velocity_limit=np.full(3, np.inf), nv=3, loops=(),
    )  # fmt: skip
    plan = plan_waypoints(robot, 6.0)
    np.testing.assert_allclose(plan.start, [3.0, -3.0, 0.0])
    assert ((robot.lower <= plan.positions) & (plan.positions <= robot.upper)).all()
    np.testing.assert_allclose(np.ptp(plan.positions, axis=0), 0.8)


def test_the_picture_of_a_demo_names_what_matters(monkeypatch):
    """Seven joints of twenty, those of the largest errors; none hides another."""
    drawn = []
    monkeypatch.setattr(demo, "save", lambda figure, path: drawn.append(figure))
    t, errors = np.linspace(0, 1, 9), 1e-3 * np.arange(20.0)
    q, names = np.outer(t, np.ones(20)), tuple(f"j{k}" for k in range(20))
    for count in (20, 3):
        part = slice(20 - count, None)
        demo._plot(
            Outcome(names[part], t, q[:, part], (q + errors)[:, part]), Path("x.png")
        )
        axis = drawn[-1].axes[0]
        curves = {
            x.get_text(): y.get_linewidth()
            for x, y in zip(
                axis.get_legend().get_texts(),
                axis.get_legend().get_lines(),
                strict=True,
            )
        }
        assert list(curves) == list(names[-min(count, 7) :])
        assert list(curves.values()) == sorted(set(curves.values()), reverse=True)
        said = " ".join(text.get_text() for text in axis.texts)
        assert ("named: 7 largest errors of 20" in said) == (count == 20)


def test_demo_without_rclpy_says_so(tmp_path, monkeypatch, capsys):
    """Without ROS: one line, and the same run in one process."""
    blocker = tmp_path / "rclpy"
    blocker.mkdir()
    (blocker / "__init__.py").write_text("raise ImportError('no ROS here')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [x for x in sys.modules if x.partition(".")[0] == "rclpy"]:
        monkeypatch.delitem(sys.modules, name)
    command = ["demo", "--robot", "planar3", "--duration", "1.5", "--plot", ""]
    assert cli.main(command) == 0
    said = capsys.readouterr()
    assert said.err.count("rclpy does not load: no ROS here") == 1
    assert "one process, no ROS" in said.out


def test_demo_fails_where_the_motion_is_not_followed(capsys):
    """Half a second takes joint5 beyond its velocity limit: the controller stops."""
    command = ["demo", "--one-process", "--plot", "", "--duration"]
    assert cli.main([*command, "0.5"]) == 1
    reason = "stopped: velocity of joint 'joint5'"
    (line,) = [x for x in capsys.readouterr().out.splitlines() if "0 of 1" in x]
    assert line.startswith(f"trajectories: 0 of 1 followed to their end: {reason}")


@pytest.mark.parametrize("ticks", [[], [(0.0, 5, 0, 5)], [(0.0, 5, 0, 5)] * 2])
def test_a_machine_too_busy_for_diagnostics_has_no_rate(ticks):
    """It was an IndexError at the end of the demo, or a ZeroDivisionError."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    from ros_nodes.demo import demo_ros

    node = object.__new__(demo_ros._DemoNode)
    node.ticks = ticks
    assert node._loop().startswith("unknown: ")


@pytest.mark.ros
@pytest.mark.parametrize(("scale", "status"), [(1.0, 0), (0.1, 1)])
def test_demo_over_ros_fails_where_a_motion_is_not_followed(scale, status):
    """The second of two motions is too fast for the controller, which stops."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    code = (
        "from dyn_core.cli import main; from ros_nodes.demo import demo_ros\n"
        "send, motions = demo_ros._DemoNode._send, []\n"
        "def sent(node, times, positions):\n"
        "    motions.append(1) if len(times) == 3 else None\n"
        f"    send(node, times * ({scale} if len(motions) == 2 else 1), positions)\n"
        "demo_ros._DemoNode._send = sent\n"
        "raise SystemExit(main(['demo', '--repeat', '2', '--duration', '1.5',"
        " '--plot', '']))\n"
    )
    done = _python("-c", code)
    said = done.stdout + done.stderr
    assert done.returncode == status, said
    assert f"trajectories: {2 - status} of 2 followed to their end" in said


@pytest.mark.ros
def test_demo_over_ros():
    """Two processes: errors, rate, latency, missed cycles, solver names, status 0."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    done = _run("demo", "--duration", "1", "--plot", "")
    assert done.returncode == 0, done.stdout + done.stderr
    for phrase in ("two processes over ROS 2", "state to effort: p50", "cycles missed",
                  "solvers: aba, semi_implicit_euler, rnea", "exit statuses: [0, 0]"):  # fmt: skip
        assert phrase in done.stdout, phrase
    assert "no effort command" not in done.stdout  # its end is no fault
    lines = [x for x in done.stdout.splitlines() if x.startswith("  joint")]
    assert len(lines) == 7
    assert max(float(x.split()[1]) for x in lines) < 0.15  # a machine that is busy


FELL = {
    "on the way": "q[:] = [x + 0.7 for x in q]",
    "on its stops": "q[1], q[5] = 1.7658, -0.0195",  # 2 mrad beyond them
}


@pytest.mark.ros
@pytest.mark.parametrize("where", FELL)
def test_demo_leads_an_arm_that_fell_to_its_start(where):
    """The motion is followed from wherever the controller caught the arm."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    code = (
        "from dyn_core.cli import main; from ros_nodes.demo import demo_ros\n"
        "given = demo_ros._parameters\n"
        "def elsewhere(*arguments):\n"
        "    nodes = given(*arguments)\n"
        "    q = nodes['simulator']['ros__parameters']['initial_positions']\n"
        f"    {FELL[where]}\n"
        "    return nodes\n"
        "demo_ros._parameters = elsewhere\n"
        "raise SystemExit(main(['demo', '--duration', '1', '--plot', '']))\n"
    )
    done = _python("-c", code)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_names_are_refused_in_words(capsys):
    """An unknown solver or robot is one line on stderr, status 1."""
    for arguments, message in (
        (["--forward-dynamics", "abba"], "no solver is called 'abba'; did you mean 'aba'?"),
        (["--robot", "nowhere.urdf"], "cannot read the URDF file"),
    ):  # fmt: skip
        assert cli.main(["demo", "--one-process", *arguments]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line


def test_check_plugin_fails_for_a_wrong_solver(tmp_path):
    """A solver that breaks a law is named, status 1.

    The weight of two_link, in a horizontal plane, is zero whatever its sign.
    """
    (tmp_path / "wrong_dyn.py").write_text(
        "from dyn_core.problems import GRAVITY_FORCE\nfrom dyn_core.authoring import TracedSolver, hookimpl\n"
        "from dyn_plugins.dynamics.gravity import gravity\n"
        "def half(model, q):\n"
        "    return [None, *(x * 0.5 for x in gravity(model, q)[1:])]\n"
        "def turned(model, q):\n"
        "    return [None, *(-x for x in gravity(model, q)[1:])]\n"
        "@hookimpl\n"
        "def dyn_solvers():\n"
        "    return [TracedSolver(f'{x.__name__}_gravity', GRAVITY_FORCE, x)\n"
        "            for x in (half, turned)]\n"
    )
    info = tmp_path / "wrong_dyn-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: wrong_dyn\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text("[dyn_core]\nwrong_dyn = wrong_dyn\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code = (
        "from dyn_core.cli import main\n"
        "for name, robot in ('half', 'arm7'), ('turned', 'two_link'):\n"
        "    print('status', main(['check-plugin', f'{name}_gravity', '--robot', robot]))"
    )
    done = _python("-c", code, PYTHONPATH=path)
    *both, rest = done.stdout.split("status 1\n")
    assert len(both) == 2, done.stdout + done.stderr
    assert all("FAIL gravity_is_bias_at_rest" in said for said in both)
    assert rest == ""


def test_robots_are_listed():
    """An unknown shipped robot lists the known ones."""
    with pytest.raises(ValueError, match="valid: arm7, cart_pole"):
        robots.path("dog")


def test_info_shows_the_limits_of_single_joints(capsys):
    """Position limits of a joint of one coordinate; '-' where there are several."""
    assert cli.main(["info", "arm7"]) == 0
    model = dyn.load_urdf(dyn.robots.path("arm7"))
    rows = {x.split()[0]: x.split() for x in capsys.readouterr().out.splitlines() if x}
    for name, low, high in zip(
        model.joint_names, model.lower, model.upper, strict=True
    ):
        assert rows[name][2:4] == [f"{low:.4g}", f"{high:.4g}"]


def test_info_says_where_zero_is_not_allowed(capsys):
    """model.neutral() outside the limits has its line; robots where it is not have none."""
    text = (
        dyn.robots.path("two_link").read_text().replace('lower="-3.1"', 'lower="0.1"')
    )
    assert cli.main(["info", "two_link"]) == 0
    assert "neutral" not in capsys.readouterr().out
    lines = describe(dyn.load(text))
    assert any("zero is outside the limits of 'joint1'" in line for line in lines)


def test_the_benchmarks_of_a_wheel_are_refused_in_words(monkeypatch, capsys):
    """`dyn bench` needs the folder tests/bench of a clone, whatever its options."""
    from dyn_core.commands import bench

    monkeypatch.setattr(bench, "_tests", lambda: None)
    for options in ([], ["--contact", "--markdown"], ["--help"]):
        assert cli.main(["bench", *options]) == 1
        assert "`pip install -e .` in a clone" in capsys.readouterr().err


def test_no_command_runs_what_lies_in_the_working_folder(monkeypatch, tmp_path):
    """A tests/bench there is not that of the library, whatever it holds."""
    from dyn_core.commands import bench

    folder = tmp_path / "tests" / "bench"
    folder.mkdir(parents=True)
    (folder / "bench_command.py").write_text("raise SystemExit('run')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dyn, "__file__", str(tmp_path / "wheel" / "dyn_core" / "x.py"))
    monkeypatch.delitem(sys.modules, "bench", raising=False)
    assert bench._tests() is None


def test_options_of_solvers_reach_simulations_and_motions(tmp_path, capsys):
    """A linkage closed by a hinge needs least norms; the commands take the option."""
    robot = tmp_path / "bars.urdf"
    robot.write_text((EXAMPLES / "four_bar.urdf").read_text(encoding="utf-8"))
    sidecar = (EXAMPLES / "four_bar.dyn.yaml").read_text(encoding="utf-8")
    turned = sidecar.replace("kind: axes, axes: [x, z]", "kind: revolute")
    for place in ("[1.02, 0, 0]", "[1.98, 0, 0]"):
        turned = turned.replace(place, f"{place}, rpy: [1.5707963267948966, 0, 0]")
    (tmp_path / "bars.dyn.yaml").write_text(turned)
    run, out = str(tmp_path / "run.npz"), str(tmp_path / "out.npz")
    start = ["--q0", "motor=0.93", "pin_b=-0.5", "pin_c=-1.5", "--duration", "0.02"]
    typed = (
        ["sim", str(robot), *start, "-o", run],
        ["id", str(robot), run, "-o", out],
        ["fd", str(robot), run, "-o", out],
    )
    for command in typed:
        assert cli.main(command) == 1
        assert "dependent='least_norm'" in capsys.readouterr().err
        assert cli.main([*command, "--option", "dependent=least_norm"]) == 0
    capsys.readouterr()
    assert cli.main([*typed[0], "--option", "dependend=least_norm"]) == 1
    assert "did you mean 'dependent'" in capsys.readouterr().err
    assert cli.main([*typed[0], "--world", "floor", "--option", "alpha=3"]) == 1
    assert "change nothing beside --world" in capsys.readouterr().err


def test_info_says_that_gravity_points_up():
    """As of a robot on a ceiling, or by mistake; not of the others."""
    lines = describe(dyn.load("two_link", gravity=[0, 0, 9.81]))
    up = [x for x in lines if "points up" in x]
    assert up == ["gravity (0, 0, 9.81) m/s² points up, along z of the root"]
    assert not any("points up" in x for x in describe(dyn.load("two_link")))
