"""What the documents show is run as it stands."""

import importlib.util
import re
from pathlib import Path
from typing import get_args

import pytest

import dyn_core as dyn
from dyn_core.solving import shipped_names

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "dyn_plugins/README.md", *(f"docs/{name}.md" for name in (
    "library", "loading", "loops", "identification", "contacts", "planar", "environments", "mjcf", "nodes", "reports", "tools"))]  # fmt: skip


@pytest.mark.parametrize("page", [page for page in PAGES if "nodes" not in page])
def test_blocks_of_python_run(page, capsys):
    """Each page is one program, block by block."""
    if "planar" in page or "environments" in page:
        pytest.importorskip(
            "gymnasium", reason="gymnasium is not installed (extra env)"
        )
    if "reports" in page:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed (plot)")
    if "mjcf" in page:
        pytest.importorskip("mujoco", reason="mujoco is not installed (extra mjcf)")
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
    assert commands or page.startswith("docs/")
    for command in commands:
        parser().parse_args(command)


def _generator(name="make_sources"):
    """Load a script that makes pages."""
    path = ROOT / "docs" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
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


def test_the_catalogue_of_solvers_is_as_generated():
    """docs/solvers.md names every solver and comes from the solvers themselves."""
    generator = _generator("make_solvers")
    page = generator.PAGE.read_text(encoding="utf-8")
    assert page == generator.page(), "run python docs/make_solvers.py"


def test_names_that_type_checkers_know_are_those_of_the_solvers():
    """Each solver of the library stands once in the module of names, in its group."""
    generator = _generator("make_solvers")
    module = generator.MODULE.read_text(encoding="utf-8")
    assert module == generator.names_module(), "run python docs/make_solvers.py"
    groups = [getattr(shipped_names, name) for name in generator.GROUPS]
    listed = [name for group in groups for name in get_args(group)]
    shipped = [name for name in dyn.solvers(references=True) if _is_own(name)]
    assert sorted(listed) == shipped


def _is_own(name):
    return dyn.solver(name).origin.startswith("dyn_ros ")


def test_reference_pages_are_those_of_the_tables():
    """docs/reference has a page for each file, with each key, unit and range."""
    pages = _generator("make_reference").pages()
    folder = ROOT / "docs" / "reference"
    assert {path.name for path in folder.iterdir()} == pages.keys()
    for name, page in pages.items():
        text = (folder / name).read_text(encoding="utf-8")
        assert text == page, "run python docs/make_reference.py"
    assert "| `damping` | a number, 0 or more |" in pages["sidecar.md"]
    assert "`gains.<joint>.p`\\*" in pages["parameters.md"]


def test_links_between_pages_lead_somewhere():
    """Every relative link of a page is a file or folder of this repository."""
    for page in [ROOT / name for name in (*PAGES, "CONTRIBUTING.md", "docs/design.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"
