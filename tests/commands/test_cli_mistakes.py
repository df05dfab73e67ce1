"""Every command of `dyn` with every kind of mistake: words and a status, no traceback."""

import argparse
import errno
import functools
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bench import measure

from dyn_core import cli, load, robots
from dyn_core.commands import main as commands
from dyn_core.errors import DynError
from dyn_core.model.sources.arguments import read_options
from dyn_core.recordings import (
    MotionRecord,
    inverse_dynamics,
    read_motion,
    write_motion,
)
from ros_nodes.demo import demo_command as demo
from ros_nodes.tools.commands import of_rpy

# Each command with arguments that are right, BAD where a mistake is put.
COMMANDS = {
    "info": [["BAD"], ["BAD", "--strict"], ["two_link", "--root-joint", "BAD"],
             ["two_link", "--package-path", "BAD"], ["two_link", "--xacro-argument", "BAD"]],
    "doctor": [["BAD"], ["two_link", "--extras", "BAD"], ["two_link", "--samples", "BAD"],
               ["two_link", "--seed", "BAD"]],
    "help": [["BAD"]],
    "robots": [["two_link", "BAD"]],
    "solvers": [["--problem", "BAD"], ["BAD"]],
    "plugins": [["--problem", "BAD"]],
    "cache": [["BAD"]],
    "count": [["BAD", "two_link"], ["rnea", "BAD"]],
    "explain": [["BAD", "two_link"], ["rnea", "BAD"], ["jacobian", "two_link"],
                ["jacobian", "two_link", "--frame", "BAD"], ["aba", "BAD", "--graph"],
                ["rnea", "two_link", "--inputs", "BAD"], ["rnea", "two_link", "--ir", "BAD"],
                ["rnea", "two_link", "--top", "BAD"]],
    "bench": [["--robot", "BAD"], ["--robot", "two_link", "--solvers", "BAD"],
              ["--robot", "two_link", "--peers", "BAD"],
              ["--compile", "--robot", "BAD"], ["--compile", "--solvers", "BAD"],
              ["--compile", "--limit", "BAD"]],
    "check-derivatives": [["BAD"], ["two_link", "--extras", "BAD"],
                          ["two_link", "--states", "BAD"]],
    "check-plugin": [["BAD"], ["rnea", "--robot", "BAD"],
                     ["rnea", "--engine", "BAD", "--robot", "two_link"]],
    "ik": [["BAD", "--frame", "tool", "--xyz", "0", "0", "1"],
           ["arm7", "--frame", "BAD", "--xyz", "0", "0", "1"], ["arm7", "--frame", "tool"],
           ["arm7", "--frame", "tool", "--xyz", "0", "0", "BAD"],
           ["arm7", "--frame", "tool", "--rpy", "0", "0", "1", "--fixed", "BAD"],
           ["arm7", "--frame", "tool", "--rpy", "0", "0", "1", "--seeds", "BAD"],
           ["arm7", "--frame", "tool", "--rpy", "0", "0", "1", "--rng", "BAD"]],
    "sim": [["BAD"], ["two_link", "--q0", "BAD"], ["two_link", "--qd0", "BAD"],
            ["two_link", "--torques", "BAD"], ["two_link", "--world", "BAD"],
            ["two_link", "--controller", "computed_torque", "--reference", "BAD"],
            ["two_link", "--controller", "computed_torque", "--gains", "1", "BAD"],
            ["two_link", "--step", "BAD"], ["two_link", "--forward-dynamics", "BAD"],
            ["two_link", "--duration", "BAD"], ["two_link", "--period", "BAD"],
            ["two_link", "--substeps", "BAD"], ["two_link", "--engine", "BAD"],
            ["two_link", "--controller", "BAD"], ["two_link", "-o", "BAD"],
            ["two_link", "--plot", "BAD"], ["two_link", "--report", "BAD"]],
    "id": [["BAD", "run.npz"], ["two_link", "BAD"], ["two_link", "run.npz", "--solver", "BAD"],
           ["two_link", "run.npz", "--cutoff", "BAD"], ["two_link", "run.npz", "-o", "BAD"],
           ["two_link", "run.npz", "--plot", "BAD"], ["two_link", "run.npz", "--engine", "BAD"]],
    "fd": [["BAD", "run.npz"], ["two_link", "BAD"], ["two_link", "run.npz", "--solver", "BAD"],
           ["two_link", "run.npz", "-o", "BAD"]],
    "report": [["BAD"], ["run.npz", "BAD"], ["run.npz", "-o", "BAD"]],
    "excite": [["BAD"], ["two_link", "-o", "BAD"], ["two_link", "--plot", "BAD"],
               ["two_link", "--motion", "BAD"],
               ["two_link", "--duration", "BAD"], ["two_link", "--harmonics", "BAD"], ["two_link", "--signal", "BAD"],
               ["two_link", "--period", "BAD"], ["two_link", "--start", "BAD"],
               ["two_link", "--lock", "BAD"], ["two_link", "--position-scale", "BAD"],
               ["two_link", "--velocity-scale", "BAD"], ["two_link", "--effort-scale", "BAD"],
               ["two_link", "--velocity-limits", "BAD"], ["two_link", "--effort-limits", "BAD"],
               ["two_link", "--acceleration-limits", "BAD"], ["two_link", "--clearance", "BAD"],
               ["two_link", "--starts", "BAD"], ["two_link", "--seed", "BAD"]],
    "demo": [["--one-process", "--plot", "", "--robot", "BAD"],
             ["--one-process", "--plot", "", "--params", "BAD"],
             ["--one-process", "--plot", "", "--forward-dynamics", "BAD"],
             ["--one-process", "--plot", "", "--step", "BAD"],
             ["--one-process", "--plot", "", "--duration", "BAD"],
             ["--one-process", "--plot", "", "--rate", "BAD"]],
    "up": [["BAD"], ["simulator", "--params", "BAD"], ["simulator", "--robot", "BAD"]],
    "feed-forward": [["BAD", "--robot", "two_link"], ["move.json", "--robot", "BAD"],
                     ["move.json", "--robot", "two_link", "--hold", "BAD"],
                     ["move.json", "--robot", "two_link", "--inverse-dynamics", "BAD"],
                     ["move.json", "--robot", "two_link", "--period", "BAD"],
                     ["move.json", "--robot", "two_link", "-o", "folder"]],
    "param": [["BAD"], ["get", "BAD", "mode"], ["list", "/simulator", "--timeout", "BAD"],
              ["set", "/simulator", "mode"]],
    "lifecycle": [["BAD"], ["get", "BAD"], ["set", "/simulator"],
                  ["set", "/simulator", "BAD"]],
    "call": [["BAD"], ["/guard/reset", "BAD"], ["/guard/reset", "--timeout", "BAD"]],
    "diagnostics": [["BAD"], ["--timeout", "BAD"]],
    "echo": [["BAD"], ["/joint_states", "--count", "BAD"],
             ["/joint_states", "--timeout", "BAD"]],
    "move": [["--to", "BAD", "0", "0"], ["BAD", "--to", "0", "0", "0"], ["--to", "0", "0", "0", "--speed", "BAD"]],
    "record": [["-o", "BAD"], ["-o", "new", "--topics", "BAD"], ["-o", "new", "--duration", "BAD"]],
    "evaluate": [["BAD", "--robot", "two_link"],
                 ["run.npz", "--robot", "two_link", "--cutoff", "BAD"],
                 ["run.npz", "--robot", "two_link", "--lock", "BAD"],
                 ["run.npz", "--robot", "two_link", "--parameters", "BAD"],
                 ["run.npz", "--robot", "two_link", "--identify", "missing/BAD"]],
    "check-node": [["--only", "BAD"], ["--seed", "BAD"]],
    "view": [["BAD"], ["BAD", "--live"], ["run.npz", "--robot", "BAD", "--film", "a.gif"],
             ["two_link", "--film", "BAD"], ["two_link", "--html", "BAD"],
             ["two_link", "--film", "a.gif", "--fps", "BAD"],
             ["two_link", "--film", "a.gif", "--speed", "BAD"], ["two_link", "--port", "BAD"],
             ["two_link", "--film", "a.gif", "--root-joint", "BAD"],
             ["two_link", "--film", "a.gif", "--package-path", "BAD"]],
    "plot": [["BAD"], ["run.npz", "-o", "BAD"]],
    "export": [["BAD", "two_link", "out"], ["rnea", "BAD", "out"], ["rnea", "two_link", ""],
               ["rnea", "two_link", "run.npz"], ["rnea", "two_link", "run.npz/out"],
               ["rnea", "two_link", "out", "--target", "BAD"],
               ["rnea", "two_link", "out", "--variant", "BAD"],
               ["rnea", "two_link", "out", "--form", "BAD"],
               ["rnea", "two_link", "out", "--name", "no name"],
               ["rnea", "two_link", "out", "--name", "int"],
               ["rnea", "two_link", "out", "--dtype", "BAD"],
               ["rnea", "two_link", "out", "--multiply-add", "BAD"],
               ["rnea", "two_link", "out", "--option", "BAD"]],
}  # fmt: skip
MISTAKES = ("missing.urdf", "folder", "binary.urdf", "empty.urdf", "words.yaml", "tow_link",
            "", "-1", "nan", "two\nlines")  # fmt: skip

# No plugin is installed meanwhile: a thousand calls need not look for it.
installed = functools.cache(commands.entry_points)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files that are none of what is asked for, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "entry_points", installed)
    monkeypatch.setattr(
        "dyn_core.commands.bench._tests", lambda: Path(__file__).parents[1]
    )
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.urdf").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "empty.urdf").write_bytes(b"")
    (tmp_path / "words.yaml").write_text("just words")

    def measured(*_):
        raise AssertionError("it began to measure")

    monkeypatch.setattr(measure, "peak", measured)
    monkeypatch.setattr("ros_nodes.start_commands.Processes", measured)
    monkeypatch.setattr("ros_nodes.start_commands.ros_fault", lambda: None)
    # No node is asked: the tools stop where ROS would begin.
    monkeypatch.setattr("ros_nodes.tools.commands.ros_fault", lambda: "no ROS here")
    monkeypatch.setattr(
        "ros_nodes.live_view.view_command.ros_fault", lambda: "no ROS here"
    )
    point = {"positions": [0.1, 0.2], "time_from_start": {"sec": 1}}
    message = {"joint_names": ["joint1", "joint2"], "points": [point]}
    (tmp_path / "move.json").write_text(json.dumps(message))
    t, rows = np.arange(300) / 100, np.zeros((300, 2))
    np.savez(tmp_path / "run.npz", t=t, q=rows, qd=rows, tau=rows)


def _status(arguments):
    """Run a command; return its status, that of wrong usage too."""
    try:
        return cli.main(arguments)
    except SystemExit as error:  # of argparse
        return error.code


def _is_right(pattern, mistake):
    """Return whether a mistake is none at this place."""
    if "--robot" in pattern[-2:] and pattern[0] == "simulator":
        return mistake in (
            "",
            "binary.urdf",
            "empty.urdf",
            "words.yaml",
        )  # the node reads
    if (pattern[-2], mistake) in (
        ("--extras", "empty.urdf"),
        ("--world", "empty.urdf"),
        ("--package-path", "folder"),
    ):
        return True
    right = (
        "--params",
        "--inputs",
        "--step",
        "--forward-dynamics",
        "--extras",
        "--peers",
        "--parameters",
        "--fixed",
    )
    if pattern[-2:] == ["0", "BAD"] and mistake == "-1":
        return True  # a place below the base
    return mistake == "" and pattern[-2] in right


def test_every_command_has_its_mistakes():
    """A new command is put to the test here, too."""
    assert set(COMMANDS) == set(commands.parser().commands())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mistake_is_answered_in_words(files, capsys, command):
    """One last line that says what is wrong, status 1 or 2, and nothing is started."""
    for pattern in COMMANDS[command]:
        mistakes = MISTAKES if "BAD" in pattern else ["none"]
        for mistake in mistakes:
            if len(pattern) > 1 and _is_right(pattern, mistake):
                continue
            arguments = [command, *(mistake if x == "BAD" else x for x in pattern)]
            status, said = _status(arguments), capsys.readouterr()
            assert status in (1, 2), (arguments, said)
            assert "Traceback" not in said.out + said.err, arguments
            last = said.err.splitlines()[-1] if said.err else said.out
            assert last.startswith("dyn") or mistake == "two\nlines", (arguments, said)


IDLE = {  # arguments that change nothing beside others, what is said
    "bench lock": (["bench", "--lock", "joint1"], "--lock needs --robot"),
    "bench contact": (["bench", "--contact", "--solvers", "rnea"], "--solvers changes nothing beside --contact"),
    "bench loading": (["bench", "--loading", "--solvers", "rnea"], "--solvers changes nothing beside --loading"),
    "bench memory": (["bench", "--memory", "--chains"], "--chains changes nothing beside --memory"),
    "bench two": (["bench", "--loading", "--contact"], "--loading changes nothing beside --contact"),
    "bench compile": (["bench", "--compile", "--chains"], "--chains changes nothing beside --compile"),
    "bench full": (["bench", "--full"], "--full needs --compile"),
    "bench packages": (["bench", "--package-path", "."], "--package-path needs --robot"),
    "bench chains": (["bench", "--contact", "--chains"], "--chains changes nothing"),
    "bench ik": (["bench", "--ik", "--solvers", "rnea"], "--solvers changes nothing beside --ik"),
    "ik": (["ik", "arm7", "--frame", "tool", "--xyz", "0", "0", "1", "--pose", *"0010001"], "valid: --pose, or --xyz"),
    "explain top": (["explain", "rnea", "two_link", "--graph", "--top", "3"], "--top changes nothing beside --graph"),
    "explain both": (["explain", "rnea", "two_link", "--graph", "--ir", "batch"], "not allowed with argument --graph"),
    "explain ir": (["explain", "rnea", "two_link", "--ir", "batch", "--assembly", "batch"], "not allowed with argument --ir"),
    "check-plugin": (["check-plugin", "task_step", "--robot", "two_link"], "--robot changes nothing: task_step is for task"),
    "up": (["up", "simulator", "--params", "other.yaml"], "parameters of rviz; valid: sections for simulator, or"),
    "up guard": (["up", "guard", "--robot", "two_link"], "a guard has no robot; valid: none"),
    "verb": (["param", "lst"], "no verb of param is called 'lst'; did you mean 'list'"),
    "topics": (["plot", "run.npz", "--commands", "x"], "changes nothing; valid: a bag"),
    "demo": (["demo", "--one-process", "--params", "other.yaml"], "valid: sections for simulator, computed_torque, or"),
    "move turn": (["move", "--joints", "a=0.1", "--position-only"], "--position-only goes with --to"),
    "view network": (["view", "two_link", "--network"], "--network goes with --live"),
    "view topic": (["view", "two_link", "--joint-states", "x"], "--joint-states goes with --live or a bag"),
    "view fps": (["view", "two_link", "--fps", "3"], "--fps goes with --film"),
    "view speed": (["view", "two_link", "--speed", "3"], "--speed goes with a run or --film"),
    "view lock": (["view", "dyn_ros/Pendulum-v0", "--lock", "a=1"], "--lock goes with a robot or a recording"),
    "view live": (["view", "two_link", "--live", "--film", "a.gif"], "--film goes with a robot or a run"),
}  # fmt: skip


@pytest.mark.parametrize("case", IDLE)
def test_arguments_that_change_nothing_are_refused(files, capsys, case):
    """Beside others, in one line, before anything starts; a file for other nodes."""
    with open("other.yaml", "w", encoding="utf-8") as file:
        file.write("rviz: {ros__parameters: {update_rate: 5}}")
    arguments, message = IDLE[case]
    assert _status(arguments) in (1, 2)
    assert message in capsys.readouterr().err.splitlines()[-1]


NEAR = {  # arguments, what is said
    "longer": ("simulate two_link", "no command is called 'simulate'; did you mean 'sim'?"),
    "time": ("sim two_link --time 1", "no argument of sim is called '--time'; did you mean '--duration'"),
    "dt": ("sim two_link --dt 0.1", "no argument of sim is called '--dt'; did you mean '--period'"),
    "command": ("smi", "no command is called 'smi'; did you mean 'sim'?"),
    "verb": ("lifecycle gte", "no verb of lifecycle is called 'gte'; did you mean 'get'?"),
    "graph": ("up dmeo", "no graph of up is called 'dmeo'; did you mean 'demo'?"),
    "choice": ("sim two_link --controller gravty", "no value of --controller is called 'gravty'; did you mean 'gravity'?"),
    "for an option": ("cache clean", "no argument of cache is called 'clean'; did you mean '--clear'?"),
    "option": ("sim two_link --durration 2", "no argument of sim is called '--durration'; did you mean '--duration'"),
    "of dyn itself": ("--verison", "no argument of dyn is called '--verison'; did you mean '--version'?"),
    "option of a verb": ("param list --timeuot=3", "no argument of param list is called '--timeuot'; did you mean '--timeout'?"),
}  # fmt: skip


@pytest.mark.parametrize("case", NEAR)
def test_the_nearest_name_is_told(capsys, case):
    """In one line, with all that is valid, for whatever has a name on the command line."""
    arguments, message = NEAR[case]
    assert _status(arguments.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dyn: ") and message in line, line
    assert "? valid: " in line


ROS2 = {  # what somebody types who knows ros2, what is said
    "topic list": "dyn echo TOPIC prints messages",
    "bag record": "dyn record -o FILE",
    "node list": "dyn lifecycle nodes lists",
    "service call": "dyn call SERVICE",
    "launch demo": "dyn up NAME starts nodes",
    "run demo": "dyn up NAME starts nodes",
}


@pytest.mark.parametrize("typed", ROS2)
def test_verbs_of_ros2_lead_to_commands(capsys, typed):
    """No command of ours is near these names, though there is one for each."""
    assert _status(typed.split()) == 2
    assert f"called '{typed.split()[0]}'; {ROS2[typed]}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["lifecycle", "param"])
def test_a_missing_verb_is_answered_by_the_verbs(capsys, command):
    """The word VERB alone would send its user to --help."""
    assert _status([command]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert re.search("required: VERB; valid: (nodes, get, list|list, get), set", line)


def test_an_option_of_several_values_may_be_repeated(tmp_path, capsys):
    """Of two `--q0` the first was forgotten, and the robot started elsewhere."""
    start = ["--q0", "joint1=0.3", "--q0", "joint2=-0.4"]
    options = ["--duration", "0.004", "--out", str(tmp_path / "run.csv")]
    assert commands.run(["sim", "two_link", *start, *options]) == 0
    _, head, first, *_ = (tmp_path / "run.csv").read_text().splitlines()
    row = dict(zip(head.split(","), first.split(","), strict=True))
    assert (float(row["q[joint1]"]), float(row["q[joint2]"])) == (0.3, -0.4)


def test_a_page_of_the_doctor_ends_with_html(tmp_path, capsys):
    """HTML was written into x.pdf."""
    page, good = tmp_path / "x.pdf", str(tmp_path / "x.html")
    assert commands.run(["doctor", "two_link", "--html", str(page)]) == 1
    assert "valid: a file that ends with .html" in capsys.readouterr().err
    assert not page.exists()
    assert commands.run(["doctor", "two_link", "--html", good]) == 0
    assert capsys.readouterr().out.endswith(f"\npage: {good}\n")
    assert commands.run(["doctor", "two_link", "--html", good, "--json"]) == 0
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sim arm7 --floor", "'--floor'; contacts are those of a world: --world floor"),
        ("sim arm7 --ground", "--world floor"),
        ("sim arm7 --friction 0.5", "mu of a material, in the sidecar or in a file"),
        ("sim arm7 --gravity 0", "dyn.load.source, gravity="),
        ("sim arm7 --view", "--out run.npz, then dyn view run.npz"),
        ("sim arm7 --dt 0.1", "did you mean '--period'"),
        (
            "report arm7 --out x.html",
            "arm7 is a robot, not a run; valid: a run of dyn sim"
            r" \(dyn sim arm7 --report x.html\); dyn doctor arm7 --html x.html",
        ),
        ("report robot.urdf", "no such file or folder"),
        (
            "export rnea arm7 x --target stm32",
            "--target cortex-m7, .* --target cortex-m4f --dtype float32",
        ),
        ("list", "'list'; did you mean 'robots' or 'solvers'"),
        ("identify", "'identify'; did you mean 'evaluate'"),
        ("version", "dyn --version"),
        ("up gravity", "'gravity'; it is a mode of computed_torque: mode: NAME"),
        ("export jacobian arm7 out --frame tool", "solver is --option frame=VALUE"),
        ("id arm7 x.csv --lock a=0 b=-1", "b=-1 follows no option; valid: --xacro-"),
        ("id arm7 --q 0.1", "the motion is a file; for one state dyn"),
        (
            "plot run.npz --robot arm7",
            "dyn plot draws the columns of the file; no robot",
        ),
        ("plan arm7", "dyn help WORDS finds pages and names"),
        ("sim arm7 --contact-solver lemke", "contacts stand in the file of --world"),
    ],
)
def test_a_guess_leads_to_the_right_word(line, said, capsys):
    """Options and commands that other tools have."""
    assert commands.run(line.split()) in (1, 2)
    assert re.search(said, capsys.readouterr().err)


@pytest.mark.parametrize(
    "line",
    [
        "export {} {} out",
        "export {} {} out --form c",
        "count {} {} --order",
        "explain {} {}",
    ],
)
def test_a_robot_before_its_solver_is_said(line, capsys):
    """The list of all solvers would not help who knows the solver's name."""
    assert _status(line.format("two_link", "rnea").split()) == 1
    assert capsys.readouterr().err == (
        "dyn: no solver is called 'two_link', but 'rnea' is one: the solver comes before"
        f" the robot; valid: dyn {line.format('rnea', 'two_link')}\n"
    )


def test_a_solver_in_place_of_a_problem_is_named(capsys):
    """`dyn solvers` lists by problem; what is asked for is often a solver."""
    assert _status(["solvers", "rne"]) == 1
    assert "; the solver rnea: dyn help rnea" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["id", "fd"])
def test_a_number_that_is_missing_is_of_a_file(command, capsys, tmp_path):
    """The row alone does not say of which file."""
    file, joints = tmp_path / "nan.csv", ("joint1", "joint2")
    names = [f"{kind}[{x}]" for kind in ("q", "qd", "qdd", "tau") for x in joints]
    rows = [["t", *names], ["0", "nan", *"0000000"], ["1", *"00000000"]]
    file.write_text("".join(",".join(row) + "\n" for row in rows))
    assert _status([command, "two_link", str(file)]) == 1
    assert "nan.csv: row 1: q[joint1] is missing" in capsys.readouterr().err


OVER_ITS_INPUT = {  # arguments; the last file is read and would be replaced
    "id": ["id", "two_link", "run.npz", "-o", "run.npz"],
    "fd": ["fd", "two_link", "run.npz", "-o", "folder/../run.npz"],
    "sim": ["sim", "two_link", "--torques", "run.npz", "-o", "run.npz"],
    "feed-forward": ["feed-forward", "move.json", "--robot", "two_link", "-o", "move.json"],
    "report": ["report", "run.npz", "page.html", "-o", "page.html"],
    "evaluate": ["evaluate", "run.npz", "--robot", "mine.urdf", "--identify", "mine", "--urdf"],
    "evaluate, sidecar": ["evaluate", "run.npz", "--robot", "mine.urdf", "--identify", "mine"],
    "evaluate, table": ["evaluate", "run.npz", "--robot", "two_link", "--parameters",
                        "my.parameters.csv", "--identify", "my"],
    "report, bag": ["report", "bag", "page.html", "-o", "bag/bag_0.html"],
    "id, bag": ["id", "two_link", "bag/", "-o", "./bag/metadata.yaml"],
}  # fmt: skip


@pytest.mark.parametrize("case", OVER_ITS_INPUT)
def test_no_command_replaces_a_file_that_it_reads(files, tmp_path, capsys, case):
    """A recording is lost else; another spelling of its path is the same file."""
    Path("page.html").write_text("x")
    Path("mine.urdf").write_bytes(Path(robots.path("two_link")).read_bytes())
    Path("mine.dyn.yaml").write_text("joints: {joint1: {damping: 0.1}}")
    Path("bag").mkdir()
    Path("bag/metadata.yaml").write_text("rosbag2_bagfile_information: {}")
    Path("bag/bag_0.html").write_text("the messages")
    Path("my.parameters.csv").write_text("name,value\njoint1.damping,0.1\n")
    before = {x: x.read_bytes() for x in tmp_path.rglob("*") if x.is_file()}
    assert _status(OVER_ITS_INPUT[case]) == 1
    assert "which is read; valid: another file" in capsys.readouterr().err
    after = {x: x.read_bytes() for x in tmp_path.rglob("*") if x.is_file()}
    assert after == before


IN_OUR_WORDS = {  # arguments, what is said
    "record npz": (["record", "-o", "r2.npz"], "--output r2.npz: a recording of topics is no .npz file; valid: NAME.mcap"),
    "record db3": (["record", "-o", "r2.db3"], "a recording of topics is no .db3 file; valid: NAME.mcap"),
    "q0": (["sim", "two_link", "--q0", "joint1=abc"], "--q0 joint1=abc; valid: NAME=NUMBER"),
    "q0 row": (["sim", "two_link", "--q0", "abc", "1"], "--q0 abc 1; valid: JOINT=VALUE, or 2 finite numbers"),
    "q0 joint": (["sim", "two_link", "--q0", "elbow=1"], "--q0 elbow=1: no moving joint is called 'elbow'"),
    "q0 of a part": (["sim", "two_link", "--root-joint", "floating", "--q0", "root_joint.0=nan"], "--q0 root_joint.0=nan; valid: NAME=NUMBER, a finite"),
    "q0 of several": (["sim", "quadruped", "--q0", "root_joint=0.5"], "--q0 root_joint=0.5: it has several coordinates; valid: root_joint.0=VALUE, root_joint.1=VALUE"),
    "semicolons": (["id", "two_link", "semicolons.csv"], "its columns are not separated by commas; valid: commas, and a"),
    "tabs": (["plot", "tabs.csv"], "its columns are not separated by commas; valid: commas, and a"),
    "digits of q0": (["sim", "two_link", "--q0", "joint1=1_0"], "--q0 joint1=1_0; valid: NAME=NUMBER"),
    "digits of row": (["sim", "two_link", "--q0", "1_0", "0"], "--q0 1_0 0; valid: JOINT=VALUE, or 2"),
    "start": (["excite", "two_link", "--start", "joint1=abc"], "--start joint1=abc; valid: NAME=NUMBER"),
    "lock": (["evaluate", "run.npz", "--robot", "two_link", "--lock", "joint1=a"], "--lock joint1=a; valid: NAME=NUMBER"),
    "export": (["export", "rnea", "two_link", "gone/deep"], "there is no such folder as "),
    "random": (["id", "two_link", "random.npz"], "it is no archive of arrays, or a damaged one"),
    "table": (["evaluate", "run.npz", "--robot", "two_link", "--parameters", "table.csv"], "no table of parameters: a has no number; valid: rows of name, value"),
    "digits": (["evaluate", "run.npz", "--robot", "two_link", "--parameters", "digits.csv"], "no table of parameters: joint1.damping has no number; valid: rows"),
    "utf8": (["evaluate", "run.npz", "--robot", "two_link", "--parameters", "bytes.csv"], "it is not in UTF-8: byte 0xb7"),
}  # fmt: skip


@pytest.mark.parametrize("case", IN_OUR_WORDS)
def test_mistakes_are_told_in_our_words(files, tmp_path, capsys, case):
    """No float(), no codec and no NumPy speaks to the user; nothing is made by halves."""
    (tmp_path / "random.npz").write_bytes(bytes(range(256)))
    (tmp_path / "table.csv").write_text("name,value\na,b\n")
    (tmp_path / "digits.csv").write_text("name,value\njoint1.damping,1_0\n")
    (tmp_path / "bytes.csv").write_bytes(b"name,value\na,\xb7\n")
    (tmp_path / "semicolons.csv").write_text("t;q[joint1];q[joint2]\n0,0;0,5;1\n")
    (tmp_path / "tabs.csv").write_text("t\tq\n0\t1\n")
    arguments, message = IN_OUR_WORDS[case]
    assert _status(arguments) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [("sim two_link --duration 2s", "--duration is '2s'; valid: a number of seconds"),
     ("sim two_link --duration 1_0", "--duration is '1_0'; valid: a number of seconds"),
     ("sim two_link --period=2ms", "--period is '2ms'; valid: a number of seconds"),
     ("sim two_link --substeps 1_0", "--substeps is '1_0'; valid: a whole number"),
     ("sim two_link --substeps 1.5", "--substeps is '1.5'; valid: a whole number"),
     ("sim two_link --gains 1 ٣", "--gains is '٣'; valid: a number"),
     ("id two_link run.npz --cutoff 5Hz", "--cutoff is '5Hz'; valid: a number of hertz"),
     ("explain rnea two_link --top x", "--top is 'x'; valid: a whole number")],
)  # fmt: skip
def test_numbers_have_no_unit_and_plain_digits(arguments, message, capsys):
    """Those of every command, as in files; the message names the option and the unit."""
    assert _status(arguments.split()) == 2
    assert capsys.readouterr().err.startswith(f"dyn: {message}")


def test_the_cycle_of_a_controller_has_help(capsys):
    """It is no solver of the registry, and is exported by its name."""
    assert _status(["help", "computed_torque_cycle"]) == 0
    said = capsys.readouterr().out
    assert "dyn export computed_torque_cycle ROBOT FOLDER" in said
    assert _status(["help", "computed_torque_cycel"]) == 1
    assert "did you mean 'computed_torque_cycle'" in capsys.readouterr().err


def test_options_of_solvers_have_plain_digits():
    """Text that Python alone takes for a number stays text, which the solver refuses."""
    typed = SimpleNamespace(option=["a=1_0", "b=10", "c=1e1,٣"])
    assert read_options(typed) == {"a": "1_0", "b": 10, "c": [10.0, "٣"]}
    typed = SimpleNamespace(option=["a=True", "b=false", "c=[False,true]", "d=TRUE"])
    assert read_options(typed) == {
        "a": True,
        "b": False,
        "c": [False, True],
        "d": "TRUE",
    }


def test_a_long_period_is_warned_of(capsys):
    """Nothing acts within a step of seconds; substeps make it short."""
    assert _status("sim two_link --period 2 --duration 10".split()) == 0
    assert "warning: steps of 2 s are long" in capsys.readouterr().out
    assert _status("sim two_link --period 2 --duration 10 --substeps 200".split()) == 0
    assert "warning" not in capsys.readouterr().out


def test_a_full_device_is_told_in_words(monkeypatch, capsys):
    """Without the number of the error; with the file, where there is one."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(commands, "_run", full)
    assert cli.main([]) == 1
    assert capsys.readouterr().err == "dyn: output: No space left on device\n"
    monkeypatch.setattr(commands, "_run", lambda _: open("/nowhere/a"))
    assert cli.main([]) == 1
    assert capsys.readouterr().err == "dyn: /nowhere/a: No such file or directory\n"


PARAMETERS = """
simulator: {ros__parameters: {robot_description_file: two_link, update_rate: 100,
    gravity: [0.0, 0.0, 0.0], joints: [joint1]}}
computed_torque: {ros__parameters: {robot_description_file: two_link, publish_rate: 20.0,
    gains: {joint1: {p: 900.0}}, state_timeout: 0.1}}
"""


def test_demo_says_what_it_does_not_use(files, monkeypatch, capsys):
    """The robot of the file serves; what is not used in this run is named in one line."""
    seen = {}

    def outcome(model, waypoints, settings):
        seen.update(settings, model=model.name)
        return demo.Outcome(
            model.joint_names, np.zeros(1), np.zeros((1, 2)), np.zeros((1, 2))
        )

    monkeypatch.setattr(demo, "_in_one_process", outcome)
    with open("mine.yaml", "w", encoding="utf-8") as file:
        file.write(PARAMETERS)
    command = ["demo", "--plot", "", "--params", "mine.yaml"]
    assert cli.main([*command, "--one-process"]) == 0
    assert (seen["model"], seen["rate"]) == ("two_link", 100)
    unused = "simulator: gravity, simulator: joints, computed_torque: publish_rate"
    assert capsys.readouterr().err == f"dyn demo: not used: {unused}\n"
    demo._warn_of_unused(seen["params"], alone=False)
    unused = "simulator: joints, computed_torque: publish_rate"
    assert capsys.readouterr().err == f"dyn demo: not used: {unused}\n"


def test_a_list_for_both_nodes_is_written_for_each(files, monkeypatch):
    """The parser of ROS refuses an alias of YAML, as PyYAML writes for one list."""
    demo_ros = pytest.importorskip("ros_nodes.demo.demo_ros", reason="rclpy is missing")
    written = []

    def start(_entries, path, _environment):
        written.append(Path(path).read_text(encoding="utf-8"))
        raise DynError("not started")

    monkeypatch.setattr(demo_ros, "Processes", start)
    monkeypatch.setattr(demo_ros, "private_environment", dict)
    monkeypatch.setattr(demo_ros.rclpy, "init", lambda **_: None)
    row = "gravity: [0.0, 0.0, -9.81], package_paths: [.]"
    Path("mine.yaml").write_text(f"/**: {{ros__parameters: {{{row}}}}}\n")
    assert cli.main(["demo", "--plot", "", "--params", "mine.yaml"]) == 1
    assert "&" not in written[0]
    assert written[0].count("gravity:") > 1


@pytest.mark.parametrize("ways", [[], ["--one-process"]], ids=str)
def test_demo_refuses_a_mode_that_follows_nothing(files, monkeypatch, capsys, ways):
    """Before anything starts, with the command that does run it."""
    monkeypatch.setattr(demo, "plan_waypoints", lambda *x: pytest.fail("it starts"))
    with open("mine.yaml", "w", encoding="utf-8") as file:
        file.write("/**:\n  ros__parameters: {mode: gravity}\n")
    assert cli.main(["demo", "--plot", "", "--params", "mine.yaml", *ways]) == 1
    expected = (
        "dyn: mine.yaml: mode gravity follows no trajectory; use `dyn up demo`, or mode"
        " computed_torque\n"
    )
    assert capsys.readouterr().err == expected


def test_demo_says_why_a_trajectory_was_not_followed():
    """By the last warning of the controller, in one line."""
    demo_ros = pytest.importorskip("ros_nodes.demo.demo_ros", reason="rclpy is missing")
    log = "[INFO] [1.2] [computed_torque]: active"
    processes = SimpleNamespace(
        all=[
            SimpleNamespace(name="simulator", lines=["[WARN] [1.2] [simulator]: no"]),
            SimpleNamespace(name="computed_torque", lines=[log]),
        ]
    )
    assert demo_ros.said(processes) == "the controller logged no warning"
    warning = "trajectory refused: disabled or stopped: [1, 2]"
    processes.all[1].lines[:0] = [f"[WARN] [1.2] [computed_torque]: {warning}"]
    assert demo_ros.said(processes) == warning
    assert demo_ros.followed(2, 2, processes) == "2 of 2 followed to their end"
    assert demo_ros.followed(0, 1, processes) == (
        f"0 of 1 followed to their end; the last warning: {warning}"
    )


def test_demo_names_a_node_that_ended_before_it_was_measured():
    """Its use of resources cannot be read: one sentence, no OSError of /proc."""
    demo_ros = pytest.importorskip("ros_nodes.demo.demo_ros", reason="rclpy is missing")
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    process = SimpleNamespace(name="simulator", popen=done, lines=["out of memory"])
    processes = SimpleNamespace(all=[process], ended=lambda: [process])
    with pytest.raises(DynError, match="simulator ended by itself; .*: out of memory"):
        demo_ros.usage_of(processes)


@pytest.fixture
def stubbed(monkeypatch):
    """Return a function that lets every command run `action` instead of its own."""
    real = commands.parser

    def stub(action):
        def parser(wanted=""):
            whole = real(wanted)
            for command in whole.commands().values():
                command.complete().set_defaults(run=action)
            return whole

        monkeypatch.setattr(commands, "parser", parser)

    return stub


RIGHT = {"count": ["rnea", "two_link"], "explain": ["rnea", "two_link"], "info": ["two_link"],
         "doctor": ["two_link"],
         "up": ["simulator"], "check-plugin": ["rnea"], "check-derivatives": ["two_link"],
         "ik": ["arm7", "--frame", "tool"], "sim": ["two_link"], "id": ["two_link", "run.npz"],
         "fd": ["two_link", "run.npz"], "report": ["run.npz"], "excite": ["two_link"], "param": ["list"], "lifecycle": ["get"], "call": ["/guard/reset"], "diagnostics": [], "echo": ["/joint_states"], "move": ["--to", "0", "0", "0"], "record": ["-o", "new"], "plot": ["run.npz"], "view": ["two_link"],
         "feed-forward": ["move.json", "--robot", "two_link"],
         "export": ["rnea", "two_link", "out"],
         "evaluate": ["run.npz", "--robot", "two_link"]}  # fmt: skip


def test_ctrl_c_in_every_command(stubbed, capsys):
    """One word and the status of a shell."""

    def interrupted(arguments):
        raise KeyboardInterrupt

    stubbed(interrupted)
    for command in COMMANDS:
        assert cli.main([command, *RIGHT.get(command, [])]) == 130
        assert capsys.readouterr().err == "dyn: interrupted\n"


def _closed_pipe():
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "w")


def _full_disk():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    return open("/dev/full", "w")


@pytest.mark.parametrize("lines", [1, 10_000])
@pytest.mark.parametrize(("stream", "status"), [(_closed_pipe, 0), (_full_disk, 1)])
def test_output_that_nobody_takes(stubbed, monkeypatch, capsys, stream, status, lines):
    """`dyn ... | head -0` ends quietly; a full disk is one line; help is no exception."""
    stubbed(lambda arguments: print("a line\n" * lines))
    for command in [*COMMANDS, "--help", "--version"]:
        with stream() as output, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", output)
            assert _status([command, *RIGHT.get(command, [])]) == status, command
        printed = capsys.readouterr().err
        assert (printed == "") if status == 0 else ("No space left" in printed), printed


def test_without_standard_output(monkeypatch):
    """`dyn ... >&-`: there is no stream at all."""
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["info", "two_link"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [["info", "arm7"], ["help", "rnea"], ["help", "energy"], ["plugins", "--all"],
     ["count", "rnea", "two_link"], ["--help"]],
    ids=lambda x: x[0],
)  # fmt: skip
def test_an_ascii_terminal_gets_every_line(monkeypatch, arguments):
    """As many lines as elsewhere, units in ASCII."""
    seen = []
    for encoding in ("utf-8", "ascii"):
        content = io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding=encoding))
            assert _status(arguments) == 0
            sys.stdout.flush()
            seen.append(content.getvalue().decode(encoding).splitlines())
    assert len(seen[0]) == len(seen[1]) > 1
    assert not any("?" in line for line in seen[1] if "did you" not in line)


def test_defaults_are_shown():
    """The help of check-plugin says which engine serves."""
    page = commands.parser().commands()["check-plugin"].format_help()
    assert "default: graph" in " ".join(page.split())
    assert isinstance(commands.parser(), argparse.ArgumentParser)
    assert "two_link" in robots.names()


def test_a_reference_without_rows_is_said(tmp_path, capsys):
    none = dict.fromkeys(("q", "qd", "qdd"), np.zeros((0, 2)))
    np.savez(tmp_path / "none.npz", t=np.zeros(0), **none)
    command = ["sim", "two_link", "--controller", "computed_torque", "--reference"]
    assert cli.main([*command, str(tmp_path / "none.npz")]) == 1
    assert "none.npz: the motion has no row" in capsys.readouterr().err


STANDS = ["root_joint.2=0.5", *(f"{x}_knee=-1" for x in ("front_left", "front_right",
                                                      "hind_left", "hind_right"))]  # fmt: skip


def test_a_quadruped_stands(tmp_path):
    """It lay on its belly: no controller of `dyn sim` carries a robot that floats."""
    file = tmp_path / "stand.npz"
    command = "sim quadruped --extras quadruped_stand --world floor --duration 2 --q0"
    assert cli.main([*command.split(), *STANDS, "-o", str(file)]) == 0
    with np.load(file) as run:
        assert run["q"][-1, 2] > 0.3  # height of the trunk [m]
        assert np.abs(run["qd"][-1]).max() < 1e-6


@pytest.mark.parametrize("law", ["gravity", "computed_torque"])
def test_what_carries_a_robot_that_floats_is_said(law, capsys):
    """The message led nowhere: `dyn sim` cannot lock the floating joint."""
    assert cli.main(["sim", "quadruped", "--controller", law]) == 1
    assert capsys.readouterr().err == (
        f"dyn: --controller {law}: the robot floats, its motors do not carry it; valid:"
        " none, with springs in its joints (a quadruped: --extras quadruped_stand), or"
        " --root-joint fixed\n"
    )


def test_a_recording_of_some_joints_is_used_with_the_others_locked(tmp_path, capsys):
    """Every command that reads motions, by one option; its message names the option."""
    rows = np.linspace(0, 1, 50)
    names = [f"{kind}[joint{i}]" for kind in ("q", "tau") for i in (1, 2, 4, 5, 6, 7)]
    file, out = str(tmp_path / "some.csv"), tmp_path / "out.csv"
    q = 0.1 * np.sin(rows)[:, None] + [0.0, 0.0, -1.0, 0.0, 1.0, 0.0]
    table = np.column_stack([rows, q, 0.0 * q])
    np.savetxt(file, table, delimiter=",", header=",".join(["t", *names]), comments="")
    command = ["id", "arm7", file, "-o", str(out)]
    assert cli.main(command) == 1
    said = capsys.readouterr().err
    assert said == (
        "dyn: the motion, robot 'arm7': no column is called 'q[joint3]'; a joint that was"
        " not measured is locked: --lock JOINT=POSITION, in Python model.lock\n"
    )
    lock = ["--lock", "joint3=0.5"]
    assert cli.main([*command, *lock]) == 0
    model = load("arm7").lock({"joint3": 0.5})
    motion = inverse_dynamics(model, read_motion(file, model))
    np.testing.assert_array_equal(read_motion(out, model).tau, motion.tau)
    write_motion(motion, out)
    again, run = str(tmp_path / "qdd.csv"), str(tmp_path / "run.npz")
    assert cli.main(["fd", "arm7", str(out), *lock, "-o", again]) == 0
    np.testing.assert_allclose(read_motion(again, model).qdd, motion.qdd, atol=1e-9)
    for drive in (
        ["--torques", file],
        ["--controller", "computed_torque", "--reference", file],
    ):
        assert cli.main(["sim", "arm7", *drive, *lock, "-o", run]) == 0
    page = str(tmp_path / "run.html")
    assert cli.main(["view", run, *lock, "--html", page]) == 0
    assert cli.main(["help", "lock"]) == 0
    assert "docs/reports.md" in capsys.readouterr().out


def test_a_column_that_is_misspelt_is_told():
    """The columns of other joints of the robot are no guess."""
    model = load("two_link")
    motion = MotionRecord.of_joints(("joint1", "jiont2"), [0.0], np.zeros((1, 2)))
    with pytest.raises(DynError, match="'q.joint2.'; did you mean 'jiont2'"):
        motion.of(model)


def test_angles_in_degrees_are_asked_about(capsys):
    """180 was taken for radians: an arm would turn to an angle nobody wanted."""
    said = "dyn: is --rpy in degrees? 180 rad is more than a turn; valid: radians, such"
    command = ["ik", "arm7", "--frame", "tool", "--xyz", "0.3", "0.2", "0.6", "--rpy"]
    assert cli.main([*command, "180", "0", "0"]) == 1
    assert f"{said} as --rpy 3.14159 0 0" in capsys.readouterr().err
    cli.main([*command, "3.2", "0", "-6.28"])
    assert capsys.readouterr().err == ""
    with pytest.raises(DynError, match="is --rpy in degrees. -90 rad is more"):
        of_rpy([0.0, -90.0, 0.0])


PACKAGES = {  # of ros2_control: arguments, what is said
    "cartesian arm7": "flange, tool; dyn export: --option cartesian.frame=LINK",
    "cartesian arm7 --option frame=tool": "dyn export: --option cartesian.frame=LINK",
    "operational_space arm7": "dyn export: --option cartesian.frame=LINK",
    "rnea arm7": "no controller or step is called 'rnea'; valid: computed_torque, ",
    "rk5 two_link": "'rk5'; did you mean 'rk4'? valid: computed_torque, ",
    "arm7 rnea": "no controller or step is called 'arm7'; valid: computed_torque, ",
}


@pytest.mark.parametrize("line", PACKAGES)
def test_a_package_says_what_it_can_be(line, files, capsys):
    """Steps alone were named, and a parameter of nodes for an option of the command."""
    law, robot, *more = line.split()
    command = ["export", law, robot, "out", "--form", "ros2_control", *more]
    assert cli.main(command) == 1
    assert PACKAGES[line] in capsys.readouterr().err
