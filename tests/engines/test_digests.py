"""What decides that a kernel is stale names every module that shapes it."""

import ast
import cProfile
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.graph.trace import trace
from dyn_core.engines.llvm import compiler
from dyn_core.engines.llvm.cached import trace_cache
from dyn_core.testing.conformance import served_model

ROOT = Path(dyn.__file__).resolve().parents[1]  # where the tested package is installed
LLVM = "dyn_core.engines.llvm"

# Modules of the llvm folder, and what the writers import, that shape no code.
NOT_WRITERS = {
    f"{LLVM}.blocks": "calls kernels, block by block",
    f"{LLVM}.cached.kernel_cache": "keeps bytes as they are",
    f"{LLVM}.interpreter": "a docstring",
    f"{LLVM}.interpreter.control": "in the key of the interpreter's own code",
    f"{LLVM}.interpreter.interpreter": "runs Graphs without kernels",
    f"{LLVM}.interpreter.operations": "in the key of the interpreter's own code",
    f"{LLVM}.interpreter.table": "runs Graphs without kernels",
    f"{LLVM}.cached.fingerprint": "digests code; a wrong digest is another key, not other code",
    f"{LLVM}.threads": "runs kernels, and locks",
    f"{LLVM}.cached.trace_cache": "finds kernels by keys",
    LLVM: "a docstring",
    f"{LLVM}.cached": "a docstring",
    f"{LLVM}.call": "a docstring",
    f"{LLVM}.functions": "a docstring",
    f"{LLVM}.products": "a docstring",
    "dyn_core.engines.graph.graph": "a Graph is in the key by its content",
    "dyn_core.errors": "what is raised where nothing is written",
    "dyn_core.sharing": "locks and caches: results are of the functions behind them",
    "dyn_core.numbers.product": "the shape of a product is in the key with its Graph",
}
# What algorithms and plugins import that shapes no Graph: by module or package.
NOT_TRACED = {
    "dyn_core": "names of other modules",
    "dyn_core.authoring": "names of other modules",
    "dyn_core.forwards": "imports wings for methods of Programs and runs",
    "dyn_core.recordings": "files and rows of motions; its algorithm is digested",
    "dyn_core.errors": "no operation: a requirement is in a Graph by its condition",
    "dyn_core.engines": "runs Graphs that are traced by engines.graph",
    "dyn_core.solving.describe": "help pages",
    "dyn_core.solving.hookspecs": "finds plugins",
    "dyn_core.solving.offers": "finds plugins",
    "dyn_core.solving.registry": "finds solvers; what they compute is in the pickle",
    "dyn_core.solving.numpy_solver": "never traced",
    "dyn_core.solving.operation_counts": "counts, after the build",
    "dyn_core.solving.shipped_names": "names for type checkers",
    "dyn_core.identification": "fits models; algorithms get the Model that results",
    "dyn_core.kinematics": "calls Programs",
    "dyn_core.reports": "calls Programs",
    "dyn_core.simulation": "calls Programs",
    "dyn_core.plots": "draws",
    "dyn_core.robots": "data",
    "dyn_core.testing": "laws of plugins",
}


def _name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {
    _name(path): path
    for package in ("dyn_core", "dyn_plugins")
    for path in (ROOT / package).rglob("*.py")
}


def _imports(module):
    """Return the modules that one imports, also inside functions."""
    modules = set()
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= inside & FILES.keys() or {node.module}
    return modules & FILES.keys()


def _covered(module, names):
    """Whether a module is one of the names, or in a package of that name."""
    return any(module == name or module.startswith(f"{name}.") for name in names)


def _faults(modules, digested, exceptions):
    """Return modules that are neither digested nor, as a module or package, excepted."""
    packages = exceptions.keys() - {"dyn_core"}
    return sorted(
        module
        for module in modules
        if module != "dyn_core"
        and not _covered(module, digested)
        and not _covered(module, packages)
    )


def test_every_module_of_the_compiler_is_digested():
    """Each module of the llvm folder is a writer, or shapes no code for a reason."""
    modules = [name for name in FILES if name.startswith(LLVM)]
    faults = [m for m in modules if m not in compiler._WRITERS and m not in NOT_WRITERS]
    assert not faults, f"add to compiler._WRITERS: {faults}"
    assert not NOT_WRITERS.keys() & set(compiler._WRITERS)


def test_what_the_writers_import_is_digested():
    """No writer gets code from a module whose change would not be noticed."""
    imported = set().union(*(_imports(name) for name in compiler._WRITERS))
    faults = [
        m for m in imported if m not in compiler._WRITERS and m not in NOT_WRITERS
    ]
    assert not faults, f"add to compiler._WRITERS: {faults}"


@pytest.mark.parametrize("names", [
    compiler._WRITERS, trace_cache._TRACED, tuple(NOT_WRITERS), tuple(NOT_TRACED),
], ids=["writers", "traced", "not_writers", "not_traced"])  # fmt: skip
def test_every_name_is_a_module(names):
    """A module that moved leaves no name behind that matches nothing."""
    assert len(set(names)) == len(names)
    assert not [name for name in names if name not in FILES]


def test_all_that_algorithms_import_is_digested():
    """What plugins, authors' names and the adapter import, directly or not."""
    waiting = [name for name in FILES if name.startswith("dyn_plugins")]
    waiting += ["dyn_core.authoring", "dyn_core.solving.adapter"]
    reached = set()
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += _imports(module)
    faults = _faults(reached, trace_cache._TRACED, NOT_TRACED)
    assert not faults, f"add to trace_cache._TRACED: {faults}"


def _modules_run(function, width):
    """Return the modules whose functions run while a function is traced."""
    profile = cProfile.Profile()
    profile.runcall(trace, function, width)
    files = {getattr(entry.code, "co_filename", "") for entry in profile.getstats()}
    return {name for name, path in FILES.items() if str(path) in files}


def test_all_that_runs_while_algorithms_are_traced_is_digested():
    """Every module that a shipped solver's algorithm runs in, by a trace of each."""
    run = set()
    for name in dyn.solvers(references=True):
        solver = dyn.solver(name)
        if hasattr(solver, "algorithm"):
            kind = dyn.default_registry().system(solver.signature.system)
            model, rng = served_model(solver, 3, 2), np.random.default_rng(0)
            program = kind.case(solver, model, "plain", rng).program()
            run |= _modules_run(program.function, sum(p.size for p in program.inputs))
    for package in ("dyn_core.model", "dyn_core.spatial", "dyn_plugins"):
        assert any(_covered(module, [package]) for module in run), package
    faults = [m for m in run if not _covered(m, trace_cache._TRACED)]
    assert not faults, f"add to trace_cache._TRACED: {faults}"


def test_a_module_left_out_is_noticed():
    """The tests above can fail."""
    assert _faults({"dyn_core.spatial.lie"}, ("dyn_core.model",), NOT_TRACED)
    assert not _faults({"dyn_core.spatial.lie"}, ("dyn_core.spatial",), NOT_TRACED)
    assert _faults({"dyn_core.spatial_2"}, ("dyn_core.spatial",), {})
    called = _modules_run(lambda x: list(dyn.spatial.Vector(x)), 2)
    assert "dyn_core.spatial.vectors" in called


def test_modules_of_engines_have_no_circle():
    """No module of engines imports itself by way of others, type hints counted."""
    graph = {m: _imports(m) for m in FILES if m.startswith("dyn_core.engines")}
    for start in graph:
        waiting, reached = list(graph[start]), set()
        while waiting:
            module = waiting.pop()
            if module in graph and module not in reached:
                reached.add(module)
                waiting += graph[module]
        assert start not in reached, f"{start} imports itself"
