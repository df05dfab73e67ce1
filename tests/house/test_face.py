"""The public names of dyn_core: one list at run time, for type checkers, dir and help."""

import ast
import importlib
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dyn_core as dyn

SOURCE = Path(dyn.__file__).read_text(encoding="utf-8")


def _for_type_checkers():
    """Return the names that stand under TYPE_CHECKING, with their modules."""
    block = next(x for x in ast.parse(SOURCE).body if isinstance(x, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    return {alias.name: x.module for x in block.body for alias in x.names}


def test_type_checkers_see_the_names_of_run_time():
    """Each public name comes from the module that type checkers are told."""
    names = _for_type_checkers()
    assert sorted(names) == sorted(dyn.__all__)
    for name, module in names.items():
        value = getattr(dyn, name)
        if module == "dyn_core":
            assert value is importlib.import_module(f"dyn_core.{name}")
        else:
            assert value is getattr(importlib.import_module(module), name)


def test_dir_and_help_list_each_name():
    """Before and after a name is used."""
    code = "import dyn_core as d; print(*(x for x in dir(d) if x[0] != '_'))"
    run = [sys.executable, "-c", code]
    fresh = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert fresh.split() == sorted(dyn.__all__)
    assert [x for x in dir(dyn) if x[0] != "_"] == sorted(dyn.__all__)
    page = pydoc.render_doc(dyn, renderer=pydoc.plaintext)
    assert [name for name in dyn.__all__ if name not in page] == []


def test_importing_dyn_core_imports_nothing_else():
    """Not even NumPy: names are imported when they are used."""
    code = (
        "import sys, dyn_core; dyn_core.__version__;"
        "print(*(x for x in sys.modules if 'numpy' in x or x.startswith('dyn_core.')))"
    )
    run = [sys.executable, "-c", code]
    shown = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert shown.split() == []


def test_scipy_and_llvmlite_are_imported_when_they_are_needed():
    """Neither by a robot nor by a Program without machine code; SciPy by no Program."""
    code = (
        "import sys, dyn_core as dyn\n"
        "big = lambda: print(*sorted({'scipy', 'llvmlite'} & {*sys.modules}))\n"
        "model = dyn.load('arm7'); solver = dyn.solver('rnea'); q = model.neutral()\n"
        "solver.build(model, engine='graph')(q, q, q); big()\n"
        "solver.build(model, engine='native')(q, q, q); big()\n"
    )
    run = [sys.executable, "-c", code]
    shown = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert shown.split("\n") == ["", "llvmlite", ""]


def test_a_name_that_is_not_there_is_refused():
    """As an attribute, and in an import."""
    with pytest.raises(
        AttributeError, match="module 'dyn_core' has no attribute 'lod'"
    ):
        dyn.lod  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'lod' from 'dyn_core'"):
        exec("from dyn_core import lod")


GUESSES = {
    "inverse_dynamics": 'dyn.solver("inverse_dynamics").build(model)(q, qd, qdd)',
    "jacobian": 'dyn.solver("jacobian").build(model)(q)',
    "contact_step": 'dyn.solvers("contact_step") lists the solvers',
    "ik": "did you mean 'inverse_kinematics'",
    "fk": "did you mean 'forward_kinematics'",
    "linearize": "did you mean 'fd_derivatives'",
    "show": "valid: dyn_core.view.show(model)",
    "mass_matrx": "did you mean 'mass_matrix' or",
    "load_urfd": "did you mean 'load_urdf'",
    "FORWARD_DYNAMICS": 'dyn.solver("forward_dynamics").build(model)(q, qd, tau)',
    "rnea": 'dyn.solver("rnea").build(model)(q, qd, qdd)',
    "crba": 'valid: dyn.solver("crba").build(model)(q)',
    "aab": 'dyn.solver(NAME).build(model)',
}  # fmt: skip


@pytest.mark.parametrize("name", GUESSES)
def test_a_name_that_is_no_function_points_to_what_is_meant(name):
    """Problems are solved by Programs that are built; other names are guessed."""
    with pytest.raises(AttributeError, match=re.escape(GUESSES[name])):
        getattr(dyn, name)


def test_every_problem_leads_to_its_solvers():
    """None of the names that `dyn solvers` takes is refused without the way."""
    for problem in dyn.problems.names():
        if not hasattr(dyn, problem):
            with pytest.raises(AttributeError, match=rf'dyn.solvers."{problem}"'):
                getattr(dyn, problem)


def test_the_version_is_printed_without_loading_anything():
    """`dyn --version` imports neither NumPy nor a plugin."""
    code = (
        "import sys; from dyn_core.cli import main; assert main(['--version']) == 0;"
        "print({'numpy', 'pluggy', 'dyn_plugins'} & {*sys.modules})"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert out == [f"dyn_ros {dyn.__version__}", "set()"]


def test_authors_get_all_that_the_page_of_authoring_imports():
    """What `authoring` imports for authors is in its __all__."""
    from dyn_core import authoring

    names = [name for name in vars(authoring) if name[0] != "_"]
    assert sorted(names) == sorted(set(authoring.__all__))
