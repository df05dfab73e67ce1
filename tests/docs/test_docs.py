"""What the documents show is run as it stands; links lead somewhere."""

import ast
import importlib.util
import json
import re
import runpy
import sys
from pathlib import Path
from typing import get_args

import pytest
from pages import DOCS, PAGES, ROOT, TEXTS, blocks, programs

import dyn_core as dyn
from dyn_core.model.sidecar import SIDECAR
from dyn_core.solving import shipped_names
from dyn_core.validation import read_yaml
from ros_nodes.parameter_tables.parameter_files import read_parameters

# What pages may need that a small installation lacks.
OPTIONAL = {"gymnasium", "mujoco", "clarabel", "coal", "matplotlib", "rosbags", "torch",
            "viser", "xacro", "jax", "casadi", "dask", "zarr",
            "stable_baselines3"}  # fmt: skip


PROGRAMS = programs("python")


@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_of_python_run(name, alone, tmp_path):
    """Each alone, in a folder and process of its own, with the continued ones after it.

    Some write files, some read examples.
    """
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = alone(PROGRAMS[name], name.partition(":")[0], tmp_path)
    if done["missing"] in OPTIONAL:
        pytest.skip(f"{done['missing']} is not installed")
    if "pip install" in done["error"]:
        pytest.skip(done["error"])
    assert not done["error"], done["text"] or done["error"]


YAML = [(page, block) for page in PAGES for block in blocks(page, "yaml")]


@pytest.mark.parametrize("page, block", YAML, ids=[page for page, _ in YAML])
def test_blocks_of_yaml_are_valid(page, block, tmp_path):
    """Each is a file of parameters of nodes, or a sidecar, and has no unknown name."""
    path = tmp_path / "shown.yaml"
    path.write_text(block, encoding="utf-8")
    if "ros__parameters" in block:
        nodes = read_parameters(path)
        assert any(nodes.values())
        reference = (DOCS / "reference" / "parameters.md").read_text("utf-8")
        known = re.findall(r"^\| `([^`]+)`", reference, re.MULTILINE)
        known = [re.sub(r"<\w+>", "[^.]+", key.replace(".", r"\.")) for key in known]
        valid = re.compile(rf"{'|'.join(known)}|\w+\.options\.\w+")
        named = [key for keys in nodes.values() for key in keys]
        assert not [key for key in named if not valid.fullmatch(key)]
    else:
        assert SIDECAR.read(str(path), read_yaml(path, "sidecar", "keys")[0])


def test_blocks_do_not_see_each_other(alone, tmp_path):
    """Neither names, nor modules that were changed; and one that crashes is told."""
    first = "import os\nimport dyn_core as dyn\nx = dyn.mark = 1\nprint(x)\n"
    assert not alone([(0, first)], "page", tmp_path)["error"]
    assert alone([(0, "print(x)\n")], "page", tmp_path)["error"].startswith("NameError")
    second = "import dyn_core as dyn\nassert not hasattr(dyn, 'mark')\n"
    assert not alone([(0, second)], "page", tmp_path)["error"]
    assert not alone([(0, first), (9, "x += 1\n")], "page", tmp_path)["error"]
    failed = alone([(6, "\n1 / 0\n")], "page", tmp_path)
    assert '"page", line 8' in failed["text"]
    crashed = alone([(0, "import os\nos.abort()\n")], "page", tmp_path)
    assert "status -6" in crashed["error"]


@pytest.mark.full
@pytest.mark.parametrize(
    "path", sorted(DOCS.glob("notebooks/*.py")), ids=lambda p: p.stem
)
def test_worked_tasks_run(path, capsys):
    """Seconds of computing for each: with --full only. Their claims are assertions."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("agg")
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "path", sorted(DOCS.glob("notebooks/*.py")), ids=lambda p: p.stem
)
def test_worked_tasks_become_notebooks(path, tmp_path):
    """As the page of worked tasks says: prose and cells, whose code is the program's."""
    tool = pytest.importorskip(
        "sphinx_gallery.notebook", reason="sphinx-gallery is not installed"
    )
    copy = tmp_path / path.name
    copy.write_text(path.read_text("utf-8"), "utf-8")
    tool.python_to_jupyter_cli([str(copy)])  # the command sphinx_gallery_py2jupyter
    cells = json.loads(copy.with_suffix(".ipynb").read_text("utf-8"))["cells"]
    kinds = [cell["cell_type"] for cell in cells]
    assert kinds.count("code") >= 3
    assert kinds.count("markdown") == kinds.count("code") + 1  # the docstring first
    code = "\n".join("".join(x["source"]) for x in cells if x["cell_type"] == "code")
    assert _code(code) == _code(path.read_text("utf-8").split('"""', 2)[2])


def _code(program):
    """Return a program without comments and empty lines, as the parser sees it."""
    return ast.dump(ast.parse(program))


def test_the_readme_is_short():
    """One that is read: a picture, the two commands, no more than 165 lines."""
    lines = TEXTS["README.md"].splitlines()
    assert len(lines) <= 165
    assert lines.index("## In Python") < 45
    assert "pip install '.[ros,plot]' && dyn demo" in TEXTS["README.md"]
    assert "15 minutes on two cores, 2 GB" in TEXTS["README.md"]


def test_the_table_of_contact_rules_names_what_there_is():
    """Files, functions and tests of the two forms of each rule, in docs/design.md."""
    page = TEXTS["docs/design.md"]
    table = page.split("| rule | machine code")[1].split("Oracles of the tests")[0]
    paths = [p for room in ("dyn_core", "dyn_plugins", "tests")
             for p in (ROOT / room).rglob("*.py")]  # fmt: skip
    texts = "".join(path.read_text(encoding="utf-8") for path in paths)
    for name in re.findall(r"`([^`,]+)`", table.partition("|---|---|---|---|")[2]):
        if name.endswith(".py"):
            assert any(p.as_posix().endswith(f"/{name}") for p in paths), name
        elif not name.endswith("/"):
            last = name.rpartition(".")[2]
            known = f"def {last}(" if last.startswith("test_") else last
            assert known in texts, name


def test_figures_of_the_readme_are_those_of_the_benchmarks():
    """Each time of the table of speed stands in docs/benchmarks.md."""
    table = TEXTS["README.md"].split("## Speed")[1].split("## ")[0]
    cells = re.findall(r"([\d.]+) (ns|us) \(([\d.]+)x\)", table)
    assert len(cells) == 12
    rows = [
        [cell.strip() for cell in line.split("|")]
        for line in TEXTS["docs/benchmarks.md"].splitlines()
    ]
    for time, unit, times in cells:
        exact = [
            row
            for row in rows
            if len(row) > 3 and any(f"{times}x" in cell for cell in row)
        ]
        numbers = [float(x) for row in exact for x in re.findall(r"[\d.]+\d", str(row))]
        wanted = float(time) * (1000 if unit == "us" else 1)
        assert any(abs(x - wanted) <= 0.03 * wanted for x in numbers), (time, unit)


def _generator(name="make_sources", folder=DOCS):
    """Load a script that makes pages."""
    path = folder / f"{name}.py"
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


def test_algorithms_of_the_sources_name_their_solvers():
    """The rows of inverse, forward, hybrid and dense dynamics name those solvers."""
    places = _generator().places()
    for key, name in (
        ("KIM-2.0", "dense"),
        ("KIM-2.1", "rnea"),
        ("KIM-2.2", "aba"),
        ("KIM-2.3", "hybrid"),
        ("RBD5-3.1", "rnea"),
        ("RBD5-3.3", "rnea_spatial"),
        ("TAZZ-3.6", "aba_classical"),
    ):
        assert name in {function for _, function in places[key]}, key


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
    folder = DOCS / "reference"
    assert {path.name for path in folder.iterdir()} == pages.keys()
    for name, page in pages.items():
        text = (folder / name).read_text(encoding="utf-8")
        assert text == page, "run python docs/make_reference.py"
    assert "| `damping` | a number, 0 or more |" in pages["sidecar.md"]
    assert "`gains.<joint>.p`\\*" in pages["parameters.md"]
    assert "## dyn view" in pages["commands.md"]


def _anchors(text):
    """Return the anchors of a page's headings, as GitHub and the site write them."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M
    )
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", x).lower() for x in headings]
    return {re.sub(r"[^\w\- ]", "", x).strip().replace(" ", "-") for x in plain}


def test_links_between_pages_lead_somewhere():
    """Every relative link is a file or folder of this repository, and a heading there."""
    pages = [*PAGES, "CHANGELOG.md", "tests/README.md",
             *(f"docs/{path.relative_to(DOCS)}" for path in DOCS.glob("*/*.md")
               if path.parts[len(DOCS.parts)] != "_build")]  # fmt: skip
    for page in pages:
        text = (ROOT / page).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            if "://" in link:
                continue
            target = (ROOT / page).parent / path if path else ROOT / page
            assert target.exists(), f"{page}: {link}"
            if anchor and target.suffix == ".md":
                assert anchor in _anchors(target.read_text("utf-8")), f"{page}: {link}"


def test_extras_are_installed_from_the_clone():
    """No index has the package: before it is installed, its name leads nowhere.

    The page on the start alone says how to add an extra by name to what is installed.
    """
    texts = {x: text for x, text in TEXTS.items() if x != "docs/start.md"}
    texts |= {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in (ROOT / "examples").rglob("*.py")
    }
    assert [name for name, text in texts.items() if "dyn_ros[" in text] == []
    assert "pip install 'dyn_ros[view]'" in TEXTS["docs/start.md"]


def test_no_wrapped_line_becomes_a_list():
    """A line that begins with `1.` in the middle of a sentence is shown as a list."""
    for path in [ROOT / "README.md", ROOT / "dyn_plugins" / "README.md",
                 *DOCS.glob("*.md"), *DOCS.glob("sources/*.md")]:  # fmt: skip
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
        assert not re.search(r"[^\n]\n *1\. ", text), path.name


def test_every_page_is_in_a_list_of_the_site():
    """A page in no list would end the build of the site; so would one twice."""
    index = TEXTS["docs/index.md"]
    lists = re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL)
    entries = [re.sub(r".*<(.*)>", r"\1", line) for part in lists
               for line in part.splitlines() if line and line[0] != ":"]  # fmt: skip
    names = [path.stem for path in DOCS.glob("*.md")]
    for name in set(names) - {
        "index",
        "solvers",
    }:  # the site has longer ones of solvers
        fits = [entry for entry in entries if Path(name).match(entry)]
        assert len(fits) == 1, f"docs/{name}.md: name it once in docs/index.md"


@pytest.fixture
def site(monkeypatch):
    """Return the program that builds the site, and the folder of its parts."""
    monkeypatch.syspath_prepend(str(DOCS / "site"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield _generator("make_site")
    for name in ("markdown", "solver_pages", "api_pages", "gallery_pages"):
        sys.modules.pop(name, None)


def test_links_follow_pages_to_their_places_in_the_site(site):
    """Pages from other folders, files of code, folders; what is missing is an error."""
    names = site.pages()

    def moved(link, page):
        return site.with_links(f"[x]({link})", page, names)

    page = "docs/loops.md"
    assert moved("contacts.md#law", page) == ("[x](contacts.md#law)", [])
    assert moved("../dyn_plugins/README.md", page)[0] == "[x](writing_a_solver.md)"
    assert moved("reference", page)[0] == "[x](reference/index.md)"
    assert moved("https://example.org/a.md", page)[0] == "[x](https://example.org/a.md)"
    file = "../examples/four_bar.py"
    assert moved(file, page) == ("[x](code/examples/four_bar.py)",
                                 ["examples/four_bar.py"])  # fmt: skip
    page = "docs/sources/kim.md"
    code = "../../dyn_plugins/dynamics/aba.py"
    assert moved(code, page)[0] == "[x](../code/dyn_plugins/dynamics/aba.py)"
    with pytest.raises(SystemExit, match="there is no 'nowhere.md'"):
        moved("nowhere.md", page)


def test_pages_of_solvers_say_what_a_solver_takes_and_costs(site):
    """Inputs with units, options, operations, source and code of each."""
    pages = importlib.import_module("solver_pages")
    solver = dyn.solver("jacobian")
    section = pages.section(solver, "kinematics")
    for phrase in ("### Solver `jacobian`", "| `reference` | `'local'` |",
                   "*Source:* RBDA, section 4.4", "v = J(q) qd",
                   "(../../dyn_plugins/kinematics/kinematics.py)"):  # fmt: skip
        assert phrase in section, phrase
    assert re.search(r"\*Operations:\* \d+ = \d+ \+ \d+ \+ \d+\.", section)
    page = pages.page("x", "others", [solver.signature]).splitlines()
    assert "| in | `q` | `(nq,)` | rad \\| m | joint positions |" in page
    listed = {s.name for row in pages.by_group().values() for s in row}
    assert listed == {s.name for s in pages.solvers_of()}


def test_docstrings_become_markdown(site):
    """Equations stay as they are, arguments are a table, signs are no markup."""
    markdown = importlib.import_module("markdown")
    made = markdown.docstring(
        """Return a*b of <two> numbers.

        y = a * b_1

    Args:
        a: First of
            the numbers | one.
        b, c: Others.

    Source: RBDA, Table 5.1.
    """.replace("\n    ", "\n")
    )
    assert "Return a\\*b of \\<two\\> numbers." in made
    assert "```text\ny = a * b_1\n```" in made
    assert "| `a` | First of the numbers \\| one. |" in made
    assert made.endswith("*Source:* RBDA, Table 5.1.")
    api = importlib.import_module("api_pages")
    assert "## simulate" in api.page("dyn_core")
