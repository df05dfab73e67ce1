"""Every command of `dyn` with every kind of mistake: words and a status, no traceback."""

import argparse
import io
import os
import sys

import pytest

from dyn_core import cli, robots
from dyn_core.bench import measure

# Each command with arguments that are right, BAD where a mistake is put.
COMMANDS = {
    "info": [["BAD"], ["BAD", "--strict"], ["two_link", "--root-joint", "BAD"]],
    "help": [["BAD"]],
    "plugins": [["--problem", "BAD"], ["BAD"]],
    "count": [["BAD", "two_link"], ["rnea", "BAD"]],
    "explain": [["BAD", "two_link"], ["rnea", "BAD"], ["jacobian", "two_link"],
                ["jacobian", "two_link", "--frame", "BAD"], ["aba", "BAD", "--graph"],
                ["rnea", "two_link", "--inputs", "BAD"], ["rnea", "two_link", "--ir", "BAD"],
                ["rnea", "two_link", "--top", "BAD"]],
    "bench": [["--robot", "BAD"], ["--robot", "two_link", "--solvers", "BAD"],
              ["--robot", "two_link", "--peers", "BAD"]],
    "bench-planar": [["BAD"]],
    "check-derivatives": [["BAD"], ["two_link", "--extras", "BAD"],
                          ["two_link", "--states", "BAD"]],
    "check-plugin": [["BAD"], ["rnea", "--robot", "BAD"],
                     ["rnea", "--engine", "BAD", "--robot", "two_link"]],
    "demo": [["--one-process", "--plot", "", "--robot", "BAD"],
             ["--one-process", "--plot", "", "--params", "BAD"],
             ["--one-process", "--plot", "", "--forward-dynamics", "BAD"],
             ["--one-process", "--plot", "", "--step", "BAD"],
             ["--one-process", "--plot", "", "--duration", "BAD"],
             ["--one-process", "--plot", "", "--rate", "BAD"]],
    "up": [["BAD"], ["simulator", "--params", "BAD"], ["simulator", "--robot", "BAD"]],
}  # fmt: skip
MISTAKES = ("missing.urdf", "folder", "binary.urdf", "empty.urdf", "words.yaml", "tow_link",
            "", "-1", "nan", "two\nlines")  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files that are none of what is asked for, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.urdf").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "empty.urdf").write_bytes(b"")
    (tmp_path / "words.yaml").write_text("just words")

    def measured(*_):
        raise AssertionError("it began to measure")

    monkeypatch.setattr(measure, "peak", measured)
    monkeypatch.setattr("ros_nodes.commands.Processes", measured)
    monkeypatch.setattr("ros_nodes.commands.ros_fault", lambda: None)


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
    if pattern[-2] == "--extras" and mistake == "empty.urdf":
        return True
    right = (
        "--params",
        "--inputs",
        "--step",
        "--forward-dynamics",
        "--extras",
        "--peers",
    )
    return mistake == "" and pattern[-2] in right


def test_every_command_has_its_mistakes():
    """A new command is put to the test here, too."""
    assert set(COMMANDS) == set(cli._commands(cli.parser()))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mistake_is_answered_in_words(files, capsys, command):
    """One last line that says what is wrong, status 1 or 2, and nothing is begun."""
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


@pytest.fixture
def stubbed(monkeypatch):
    """Return a function that lets every command run `action` instead of its own."""
    real = cli.parser

    def stub(action):
        def parser():
            whole = real()
            for command in cli._commands(whole).values():
                command.set_defaults(run=action)
            return whole

        monkeypatch.setattr(cli, "parser", parser)

    return stub


RIGHT = {"count": ["rnea", "two_link"], "explain": ["rnea", "two_link"], "info": ["two_link"],
         "up": ["simulator"], "check-plugin": ["rnea"], "check-derivatives": ["two_link"]}  # fmt: skip


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
        words = capsys.readouterr().err
        assert (words == "") if status == 0 else ("No space left" in words), words


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
    page = cli._commands(cli.parser())["check-plugin"].format_help()
    assert "default: graph" in " ".join(page.split())
    assert isinstance(cli.parser(), argparse.ArgumentParser)
    assert "two_link" in robots.names()
