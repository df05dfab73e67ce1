"""Writes docs/reference/*.md: keys of each file, and the commands, as they are checked.

python docs/make_reference.py
"""

import argparse
import importlib
import re
import sys
from pathlib import Path

from dyn_core.commands.main import GROUPS
from dyn_core.commands.main import parser as command_line
from dyn_core.contact.world import WORLD
from dyn_core.control.controller_fields import effort_fields, gain_fields, wrap_fields
from dyn_core.model.parameter_paths import KINDS
from dyn_core.model.sidecar import SIDECAR
from dyn_core.model.sources.arguments import ROBOT as A_ROBOT
from dyn_core.model.sources.arguments import add_robot
from dyn_core.planar.chain.files import CHAIN
from dyn_core.validation import (
    REQUIRED,
    ByName,
    Either,
    Field,
    ListOf,
    Quantity,
    Table,
    Tagged,
)
from ros_nodes.parameter_tables.controller_parameters import (
    CONTROLLER,
    collision_fields,
    mode_fields,
)
from ros_nodes.parameter_tables.feed_forward_parameters import FEED_FORWARD
from ros_nodes.parameter_tables.goal_parameters import constraint_fields
from ros_nodes.parameter_tables.guard_parameters import GUARD_FIELDS
from ros_nodes.parameter_tables.simulator_parameters import SIMULATOR
from ros_nodes.parameters import ROBOT, lock_fields

FOLDER = Path(__file__).parent / "reference"
# `dyn bench` has its options where its package is loaded (dyn_core/commands/bench.py).
sys.path.insert(0, str(FOLDER.parents[1] / "tests"))
importlib.import_module("bench")
MADE = "Made by `python docs/make_reference.py` from the tables that check the file."
RULES = """YAML is read as plain data: no tags, dates or merged mappings; at most 1 MB,
20 000 values (aliases expanded) and 32 levels. `2e-5` is a number; `1_0`, `0x10` and
`010` are strings. Unknown keys are refused."""
NAME = "<joint>"
JOINTS = (
    *gain_fields([NAME]),
    *wrap_fields([NAME], ()),
    *constraint_fields([NAME]),
    *effort_fields([NAME]),
    *collision_fields([NAME]),
    *lock_fields([NAME]),
)
OPTIONS = Field(
    "<slot>.options.<name>",
    Either((Quantity(),)),
    "option of the solver of a slot: forward_dynamics, inverse_dynamics, step, contact,"
    " cartesian_control;"
    " `dyn help SOLVER` lists its options, and each has the type of its default",
)


def pages():
    """Return the content of each page by its name."""
    simulator = [field for field in SIMULATOR if field not in CONTROLLER]
    controller = [field for field in CONTROLLER if field not in SIMULATOR]
    shared = [field for field in SIMULATOR if field in CONTROLLER]
    return {
        "sidecar.md": _page("Sidecar `NAME.dyn.yaml`", SIDECAR),
        "chain.md": _page("Planar chain", CHAIN),
        "world.md": _page("World of contacts", WORLD),
        "parameter_paths.md": _paths_page(),
        "commands.md": _commands_page(),
        "parameters.md": "\n".join(
            [
                f"# Parameters of the nodes\n\n{MADE}\n",
                "Those marked `*` can be set at any time, the others while a node is"
                " unconfigured.\n",
                "## simulator and computed_torque\n",
                *_rows([*shared, OPTIONS, *JOINTS[-2:]], True),
                "## simulator\n",
                *_rows(simulator, True),
                "## computed_torque\n",
                *_rows([*controller, *mode_fields(), *JOINTS[:-2]], True),
                "## feed_forward\n",
                "Besides those of the robot, from `autostart` to"
                " `diagnostic_updater.period` above:\n",
                *_rows([x for x in FEED_FORWARD if x not in ROBOT], True),
                "## guard\n",
                *_rows(GUARD_FIELDS, True),
            ]
        ),
    }


def _paths_page():
    """Return the page of parameter paths."""
    lines = [
        "# Parameter paths\n",
        "Made by `python docs/make_reference.py` from the table that the library"
        " reads.\n",
        "Numbers of a robot that can be inputs of a Program (`inputs=[path]`), be"
        " changed (`model.with_values`) and be differentiated by (`parameter=`,"
        " `paths=`). Those of loops are for solvers that close loops.\n",
        "| path | numbers | unit | meaning | acts with |",
        "|---|---|---|---|---|",
    ]
    for kind in KINDS:
        option = f"`{kind.option}`" if kind.option else ""
        cells = f"`{kind.path}`", kind.size, kind.unit, kind.meaning, option
        lines.append("| " + " | ".join(x.replace("|", "\\|") for x in cells) + " |")
    return "\n".join([*lines, ""])


def _commands_page():
    """Return the page of all commands of `dyn`."""
    commands = list(_subcommands(command_line()))
    lines = [
        "# Commands\n",
        "Made by `python docs/make_reference.py` from the commands themselves."
        " `dyn help COMMAND` prints the same, also of commands of your own plugins.",
    ]
    for group in GROUPS:
        title = f"{group[0].upper()}{group[1:]}"
        lines += ["", f"| {title} | |", "|---|---|"]
        for name, sentence, parser in commands:
            if parser.group == group:
                lines.append(f"| [`dyn {name}`](#dyn-{name}) | {_cell(sentence)} |")
    robot = argparse.ArgumentParser()
    add_robot(robot)
    common = {action.dest for action in robot._actions} - {"robot"}
    lines += ["", "## A robot\n", f"A robot is the {A_ROBOT}.\n"]
    lines += ["How its files are read:\n", *_options(robot, {"robot"})]
    for name, sentence, parser in commands:
        lines += [f"## dyn {name}\n", f"{sentence[0].upper()}{sentence[1:]}.\n"]
        lines += [f"For example `{parser.prog} {parser.example}`.\n"]
        for verb, meaning, below in _subcommands(parser):
            lines += [f"`dyn {name} {verb}`: {_cell(meaning)}.\n", *_options(below)]
        lines += _options(parser, common)
        shared = [x for x in parser._actions if x.dest in common - {"help"}]
        if shared:
            names = ", ".join(f"`{x.option_strings[-1]}`" for x in shared)
            lines.append(f"Also {names}, which say how [a robot](#a-robot) is read.\n")
    return "\n".join(lines).rstrip() + "\n"


def _subcommands(parser):
    """Yield name, sentence and parser of each command below one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for said in action._choices_actions:
                yield said.dest, said.help, action.choices[said.dest].complete()


def _options(parser, left_out=frozenset()):
    """Return the lines of a table of a command's arguments."""
    rows = []
    for action in parser._actions:
        if (
            isinstance(action, argparse._SubParsersAction)
            or action.help == argparse.SUPPRESS
            or action.dest in {"help", *left_out}
        ):
            continue
        names = action.option_strings or [action.metavar or action.dest]
        value = "" if action.nargs == 0 or not action.option_strings else _value(action)
        said = [action.help % {**vars(action), "prog": "dyn"}] if action.help else []
        said = [x.replace(A_ROBOT, "[a robot](#a-robot)") for x in said]
        if action.choices:
            said.append(f"one of {', '.join(map(str, action.choices))}")
        usage = f"{', '.join(names)}{value}".replace("|", "\\|")
        rows.append(f"| `{usage}` | {_cell('; '.join(said))} |")
    return ["| argument | meaning |", "|---|---|", *rows, ""] if rows else []


def _value(action):
    """Return the name of an option's value, as its help shows it."""
    name = action.metavar or action.dest.upper()
    return f" {name if isinstance(name, str) else ' '.join(name)}"


def _cell(text):
    """Return a sentence as a cell of a table."""
    plain = " ".join(text.replace("|", "\\|").replace("<", "\\<").split())
    return re.sub(r"(?<![\w-])(--[a-z][a-z0-9-]*)", r"`\1`", plain)  # no dashes


def _page(title, table):
    """Return the page of a table and of those in it."""
    parts = [f"# {title}\n\n{MADE}\n\n{RULES}\n"]
    for path, part in _tables("", table, []):
        parts += [f"## `{path}`\n"] if path else []
        parts += _rows(part.fields.values())
    return "\n".join(parts)


def _rows(fields, parameters=False):
    """Return the lines of a table of fields."""
    lines = ["| key | valid | default | unit | meaning |", "|---|---|---|---|---|"]
    for field in fields:
        mark = "\\*" if parameters and not field.structure else ""
        cells = (
            f"`{field.name}`{mark}",
            "an option" if field is OPTIONS else _valid(field.value_kind),
            _default(field.default),
            field.unit,
            field.doc,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _default(default):
    """Return a default as YAML would write it."""
    if default is None:
        return ""
    if default is REQUIRED:
        return "required"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{list(default) if isinstance(default, tuple) else default!r}`"


def _valid(kind):
    """Return what is valid; tables have a section of their own."""
    if isinstance(kind, (Table, Tagged)):
        return "a mapping, see below"
    if isinstance(kind, ListOf) and isinstance(kind.kind, (Table, Tagged)):
        return "a list of mappings, see below"
    if isinstance(kind, ByName):
        return f"by {kind.of}: {_valid(kind.kind)}"
    if isinstance(kind, Either):
        return ", or ".join(map(_valid, kind.kinds))
    return kind.valid


def _tables(path, kind, seen):
    """Return the tables within a kind, each once, with the path to them."""
    if isinstance(kind, ListOf):
        return _tables(f"{path}[]", kind.kind, seen)
    if isinstance(kind, ByName):
        return _tables(f"{path}.{kind.of}", kind.kind, seen)
    if isinstance(kind, Either):
        return [row for part in kind.kinds for row in _tables(path, part, seen)]
    if isinstance(kind, Tagged):
        tables = kind.tables.items()
        name = kind.tag.name
        return [(f"{path}, {name}: {tag}", table) for tag, table in tables]
    if not isinstance(kind, Table) or kind in seen:
        return []
    seen.append(kind)
    rows = [(path, kind)]
    for name, field in kind.fields.items():
        rows += _tables(f"{path}.{name}".lstrip("."), field.value_kind, seen)
    return rows


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in pages().items():
        (FOLDER / name).write_text(content, encoding="utf-8")
        print(FOLDER / name)
