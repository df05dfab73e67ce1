"""What the documents show is run as it stands."""

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
