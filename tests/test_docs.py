"""What the documents show is run as it stands."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "dyn_plugins/README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_python_run(page, capsys):
    """Each page is one program, block by block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    space = {}
    for block in blocks:
        exec(compile(block, page, "exec"), space)


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_dyn_are_understood(page):
    """Each `dyn` command that stands in a block has a parser that takes it."""
    from dyn_core.cli import parser

    text = (ROOT / page).read_text(encoding="utf-8")
    shells = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    lines = [line.split("#")[0] for block in shells for line in block.splitlines()]
    commands = [line.split()[1:] for line in lines if line.startswith("dyn ")]
    assert commands
    for command in commands:
        parser().parse_args(command)


def _generator():
    """Load the script that makes the pages of the sources."""
    path = ROOT / "docs" / "make_sources.py"
    spec = importlib.util.spec_from_file_location("make_sources", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_equation_of_the_sources_has_a_place():
    """Each requirement is named by a `Source:` line, and the pages are as generated."""
    generator = _generator()
    assert generator.missing() == []
    for path, text in generator.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: make it anew"


def test_source_lines_name_what_exists():
    """No `Source:` line names an id that its source does not have."""
    generator = _generator()
    tables = {s["prefix"]: set(s["items"]) for s in generator.sources().values()}
    for key in generator.places():
        prefix, _, number = key.partition("-")
        if prefix in tables:
            assert number in tables[prefix], key
