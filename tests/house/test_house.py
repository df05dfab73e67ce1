"""The house: who imports whom, sizes, docstrings, packaging, what must not be there."""

import ast
import functools
import importlib.metadata
import re
import subprocess
import sys
import types
from collections import Counter
from pathlib import Path

import pytest

import dyn_core as dyn

ROOT = Path(__file__).parents[2]
PACKAGES = ("dyn_core", "dyn_plugins", "ros_nodes")
MODULES = [p for name in PACKAGES for p in sorted((ROOT / name).rglob("*.py"))]
CORE = (
    "errors", "sharing", "signals", "forwards", "numbers", "validation", "plots", "spatial", "robots", "problems", "model", "engines", "solving", "kinematics", "control", "contact",
    "authoring", "recordings", "simulation", "testing",
)  # fmt: skip
# What uses the core; the core imports none of them.
WINGS = (
    "planar",
    "identification",
    "prediction",
    "tasks",
    "envs",
    "view",
    "reports",
    "export",
    "bridges",
    "batch",
    "commands",
    "cli",
)
ORDER = CORE + WINGS


@functools.cache
def _tree(path):
    """Return the syntax tree of a file, parsed once for all tests of this module."""
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def trees_are_dropped():
    """Drop the trees after these tests: they take much memory."""
    yield
    _tree.cache_clear()


def _imports(path, top_only=False):
    """Return the names of modules a file imports."""
    tree = _tree(path)
    nodes = tree.body if top_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# Words that do not say what a variable holds.
VAGUE = {
    "at", "begun", "border", "felt", "flavour", "found", "given", "held", "judge", "own",
    "told", "twin", "words",
}  # fmt: skip


def _vague_names(path):
    """Return what a module defines under a vague name: variables, attributes, ..."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        else:
            continue
        if name.lower().strip("_") in VAGUE:
            yield f"line {node.lineno}: {name}"


def _all_names(code):
    """Yield what compiled code names, and the code in it: more than it defines."""
    yield code.co_name
    yield from (*code.co_names, *code.co_varnames, *code.co_cellvars)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _all_names(part)


def test_names_say_what_a_thing_is():
    """No variable, attribute, argument, function or class has a vague name, in tests as well."""
    tests = [p for name in ("tests", "examples") for p in (ROOT / name).rglob("*.py")]
    assert len(tests) > 100
    suspects = []  # compiling takes a quarter of the time of parsing to a tree
    for path in sorted(tests):
        code = compile(path.read_text(encoding="utf-8"), path, "exec")
        if VAGUE & {name.lower().strip("_") for name in _all_names(code)}:
            suspects.append(path)
    assert not _faults(_vague_names, MODULES + suspects)


def test_a_class_name_stands_for_one_class():
    """No two modules of the product define classes of one name, underscores aside."""
    modules = {}
    for path in MODULES:
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef):
                name, where = node.name.lstrip("_"), str(path.relative_to(ROOT))
                modules.setdefault(name, []).append(where)
    assert len(modules) > 200
    assert {k: v for k, v in modules.items() if len(v) > 1} == {}


FILES = {
    path.name
    for folder in (*PACKAGES, "docs", "examples", "tests")
    for path in (ROOT / folder).rglob("*.py")
}


def _lost_files(path):
    """Return the Python files that a module names and that are not there."""
    for name in re.findall(r"(?<![/\w])(\w+\.py)\b", path.read_text(encoding="utf-8")):
        if name not in FILES:
            yield name


def test_files_that_docstrings_name_are_there():
    """Where a docstring or comment names a Python file, the product has it."""
    assert not _faults(_lost_files, MODULES)


def _part(path):
    return path.relative_to(ROOT / "dyn_core").parts[0].removesuffix(".py")


def _size_and_documents(path):
    """Return what is wrong with the size and the docstrings of a module."""
    text = path.read_text(encoding="utf-8")
    if len(text.splitlines()) > 700:
        yield "over 700 lines"
    tree = _tree(path)
    if text.strip() and not ast.get_docstring(tree):
        yield "no docstring"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            if not ast.get_docstring(node) and "overload" not in marks:
                yield f"{node.name} has no docstring"


def _faults(check, paths):
    """Return every fault that a check finds, with the module it is in."""
    return [f"{p.relative_to(ROOT)}: {fault}" for p in paths for fault in check(p)]


def test_modules_are_small_and_documented():
    """At most 700 lines, a docstring, and docstrings on all that is public."""
    assert len(MODULES) > 200
    assert not _faults(_size_and_documents, MODULES)


def test_folders_hold_at_most_fifteen_modules():
    """A reader can take in a folder at once; its __init__ is not counted."""
    modules = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    large = {str(k.relative_to(ROOT)): n for k, n in modules.items() if n > 15}
    assert len(modules) > 50
    assert not large


def _inside(path):
    """Return imports of dyn_core parts by a module of dyn_core, type hints left out."""
    text = path.read_text(encoding="utf-8")
    hints = text.split("if TYPE_CHECKING:")
    for name in _imports(path):
        if name and name.startswith("dyn_core."):
            part = name.split(".")[1]
            in_hint = len(hints) > 1 and name in hints[1].split("\n\n")[0]
            if part in ORDER and not in_hint:
                yield part


def _imports_from_behind(path):
    """Return what a module of dyn_core imports and may not."""
    tops = {(name or "").split(".")[0] for name in _imports(path)}
    yield from sorted(tops & {"dyn_plugins", "ros_nodes", "rclpy", "launch"})
    part = _part(path)
    for other in _inside(path) if part in ORDER else ():
        if ORDER.index(other) > ORDER.index(part):
            yield f"{part} imports {other}"


def test_core_imports_only_what_stands_before():
    """In dyn_core a module imports only parts before it, never plugins or ROS."""
    core = [p for p in MODULES if p.relative_to(ROOT).parts[0] == "dyn_core"]
    assert len(core) > 100
    assert not _faults(_imports_from_behind, core)


def _caches_of_functools(path):
    """Return caches that two threads would each make, or that a fork copies closed."""
    text = path.read_text(encoding="utf-8")
    yield from re.findall(r"functools\.(?:cache|cached_property)\b", text)
    yield from re.findall(r"^from functools import .*\bcache.*", text, re.MULTILINE)
    yield from re.findall(r"^\w+ = threading\.R?Lock\(\)", text, re.MULTILINE)
    if "from threading import" in text:
        yield from re.findall(r"^\w+ = R?Lock\(\)", text, re.MULTILINE)


def test_what_threads_share_is_made_once():
    """Caches and locks of modules are of dyn_core/sharing.py, which knows forks."""
    others = [path for path in MODULES if path.name != "sharing.py"]
    assert not _faults(_caches_of_functools, others)


# They name modules to import them later: the face, and the methods of the core.
LATE = ("dyn_core", "dyn_core.forwards")
# They compare names of modules, or start processes of them, and import none.
BY_NAME = (
    "dyn_core.batch.program_facts",
    "dyn_core.commands.explain",
    "dyn_core.engines.graph.trace",
    "dyn_core.engines.machine_code.loading",
    "dyn_core.solving.adapter",
    "ros_nodes.graphs",
)


def _import_graph():
    """Return for each module the modules it names.

    Type hints count, arguments of import_module, and all constants that are the name of
    a module; not those that only say where code is from (BY_NAME).
    """
    names = {}
    for path in MODULES:
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph = {}
    for name, path in names.items():
        imported = set()
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                members = [f"{node.module}.{alias.name}" for alias in node.names]
                imported |= {m if m in names else node.module for m in members}
            elif isinstance(node, ast.Constant) and name not in (*LATE, *BY_NAME):
                if isinstance(node.value, str) and "." in node.value:
                    imported.add(node.value)
        graph[name] = imported & names.keys()
    return graph


def test_no_module_imports_itself_by_way_of_others():
    """Imports make no circle, not for type hints, in functions, or by strings."""
    graph = _import_graph()
    circles = set()
    for start in graph:
        reached, front = set(), [start]
        while front:
            new = graph[front.pop()] - reached
            reached |= new
            front += new
        if start in reached:
            circles.add(start)
    assert len(graph) > 200
    assert circles == set()


def test_the_core_knows_no_planar_world():
    """Planar systems, tasks and environments come to the rest of the core as plugins."""
    world = ("planar", "tasks", "envs")
    inside = {ROOT / "dyn_core" / "__init__.py"}
    inside |= {ROOT / "dyn_core" / "commands" / "help.py"}  # it prints pages of tasks
    inside |= {*(ROOT / "dyn_core" / "view").rglob("*.py")}  # it shows them, too
    for path in [p for p in MODULES if "dyn_core" in p.parts]:
        if _part(path) in world or path in inside:
            continue
        for name in _imports(path):
            part = (name or "").removeprefix("dyn_core.").split(".")[0]
            assert part not in world, f"{path.relative_to(ROOT)} imports {name}"


def test_plugins_import_core_and_neighbours_only():
    """dyn_plugins knows no engine and no ROS; algorithms use neither math nor numpy.

    Their tests (`_testing`) may.
    """
    for path in sorted((ROOT / "dyn_plugins").rglob("*.py")):
        if path.parent.name == "_testing":
            continue
        allowed = [
            "dyn_core",
            "dyn_plugins",
            "math",
            "dataclasses",
            "functools",
            "typing",
        ]
        text = path.read_text(encoding="utf-8")
        if any(f"({x}Solver)" in text for x in ("Numpy", "Contact", "Plan")):
            allowed.append("numpy")  # computes one state or problem at a time
        for name in _imports(path):
            assert name.split(".")[0] in allowed, f"{path.name}: {name}"
            assert "engines" not in name


# What can be imported where ROS is not installed.
WITHOUT_ROS = (
    "base/idle", "base/worker", "commands", "controller/controller_settings", "controller/goal_service",
    "conversions", "demo/demo_command", "demo/demo_plan", "graphs",
    "live_view/view_command", "live_view/view_follower", "messages/effort_commands",
    "messages/goal_messages", "messages/trajectory_files", "messages/trajectory_messages",
    "parameter_tables", "parameters", "processes", "running/realtime", "running/watchdog",
    "simulator/simulator_status", "tools/commands",
)  # fmt: skip


def test_only_nodes_import_ros():
    """ROS is imported in ros_nodes, nowhere else; some files without it even there."""
    for name in WITHOUT_ROS:
        path = ROOT / "ros_nodes" / name
        files = (
            sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        )
        assert files
        for file in files:
            tops = {(n or "").split(".")[0] for n in _imports(file, top_only=True)}
            assert not tops & {"rclpy", "sensor_msgs", "std_msgs", "launch"}, file


def test_imports_of_the_core_are_quick_and_lean():
    """All public names load no rclpy, matplotlib, LLVM, and no scipy."""
    code = (
        "import sys, dyn_core; [getattr(dyn_core, name) for name in dyn_core.__all__];"
        "print(sorted({m.split('.')[0] for m in sys.modules}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = set(ast.literal_eval(out.stdout))
    assert "numpy" in loaded
    assert not loaded & {"rclpy", "matplotlib", "llvmlite", "scipy", "pinocchio"}


def test_the_installed_package_is_the_tested_one():
    """With CI set, dyn_core comes from the environment, not from this folder."""
    import os

    file = Path(dyn.__file__).resolve()
    if os.environ.get("CI") == "true":
        assert ROOT not in file.parents
    points = importlib.metadata.entry_points(group="dyn_core")
    assert {"dyn_plugins", "ros_nodes"} <= {p.name for p in points}


def test_launch_folder_is_no_package():
    """An __init__.py there would hide ROS's own launch."""
    assert not (ROOT / "launch" / "__init__.py").exists()
    assert not (ROOT / "tests" / "launch").exists()


def test_every_solver_names_its_source_and_equation():
    """Each algorithm cites where it is from, and states an equation or a return."""
    for name in dyn.solvers(references=True):
        solver = dyn.solver(name)
        if "dyn_plugins" in solver.origin:
            doc = getattr(solver, "algorithm", solver).__doc__
            if not hasattr(solver, "algorithm"):
                doc += type(solver).solve.__doc__
            assert solver.source, name
            taken_over = "Inputs and outputs: those of" in doc
            assert taken_over or ("Args:" in doc and "Returns:" in doc), name
            equation = doc.split("Args:")[0].split("Inputs and outputs:")[0]
            assert "=" in equation, f"{name}: no equation"


def test_references_are_told_from_what_is_for_use():
    """Reference solvers lie in one package; the rest of the product does without it."""
    for name in dyn.solvers(references=True):
        solver = dyn.solver(name)
        if "dyn_plugins" in solver.origin:
            assert solver.reference == ("dyn_plugins.references." in solver.origin), (
                name
            )
    for path in MODULES:
        if "references" not in path.parts:
            source = path.read_text(encoding="utf-8")
            assert "dyn_plugins.references" not in source, path


def test_every_port_says_what_it_means():
    """Problems, inputs and outputs hold their meaning once, a short noun phrase."""
    of_solvers = [dyn.solver(name).signature for name in dyn.solvers()]
    for problem in {*dyn.problems.PROBLEMS, *of_solvers}:
        assert problem.meaning, problem.name
        for port in (*problem.inputs, *problem.outputs):
            where = f"{problem.name}.{port.name}"
            assert port.meaning, where
            assert port.unit, where
            assert len(port.meaning) <= 110, where
            assert port.meaning[-1] != ".", where


def test_every_hook_is_documented():
    """Hooks have docstrings and are implemented by somebody."""
    from dyn_core.solving import hookspecs

    registry = dyn.default_registry()
    page = (ROOT / "dyn_plugins" / "README.md").read_text(encoding="utf-8")
    names = [name for name in dir(hookspecs) if name.startswith("dyn_")]
    assert len(names) == 6
    for name in names:
        assert getattr(hookspecs, name).__doc__
        assert getattr(registry.manager.hook, name).get_hookimpls()
        assert f"`{name}`" in page, name
    assert not registry.failures


def test_packages_are_listed_by_name():
    """pyproject lists every package that is there."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for init in [p for p in MODULES if p.name == "__init__.py"]:
        name = ".".join(init.parent.relative_to(ROOT).parts)
        assert f'"{name}"' in text, name


def test_readme_commands_exist():
    """What the README tells to type is there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "dyn demo" in text
    assert "pytest" in text


def test_the_version_stands_in_one_place():
    """pyproject has the version; package.xml, which ROS reads, repeats it."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "([^"]+)"', project, re.MULTILINE)[1]
    assert f"<version>{version}</version>" in (ROOT / "package.xml").read_text()


def test_the_distribution_describes_itself():
    """Authors, keywords and a classifier of each Python that the README names."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for key in ("authors", "maintainers", "keywords", "readme", "license"):
        assert re.search(rf"^{key} = \S", project, re.MULTILINE), key
    for minor in range(10, 14):
        assert f'"Programming Language :: Python :: 3.{minor}"' in project
    assert "<license>Apache-2.0</license>" in (ROOT / "package.xml").read_text()


def test_the_face_is_narrow():
    """`dyn.*` lists what a user needs, each name once and with a docstring."""
    assert len(dyn.__all__) <= 70
    assert sorted(set(dyn.__all__)) == sorted(dyn.__all__)
    for name in dyn.__all__:
        value = getattr(dyn, name)
        assert value.__doc__, name
    assert dyn.__version__ == importlib.metadata.version("dyn_ros")
    assert not hasattr(dyn, "nothing")


def test_the_names_for_authors_are_grouped():
    """The docstring of dyn_core.authoring has every name, by topic."""
    doc = dyn.authoring.__doc__.replace(".", "").replace(",", "").split()
    for name in dyn.authoring.__all__:
        assert name in doc, name


OFFERED = (
    "authoring", "problems", "problems.system", "errors", "model", "spatial", "control",
    "spatial.lie", "spatial.classical", "contact", "contact.rows",
    "contact.rows.constraints", "contact.collision.halfspaces", "planar",
    "model.loops", "prediction", "planar.problems", "planar.objects.objects", "tasks", "validation",
)  # fmt: skip


def test_solvers_import_public_modules_only():
    """A solver needs what authors are offered: no engine, registry or number kind."""
    for path in sorted((ROOT / "dyn_plugins").rglob("*.py")):
        if {"_testing", "problem_kinds.py", "chain_kinds.py", "plan_kinds.py"} & {
            *path.parts
        }:
            continue  # laws and cases of the plugin
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("dyn_core."):
                module = node.module.removeprefix("dyn_core.")
                assert module in OFFERED, f"{path.name}: {node.module}"


def test_the_quick_choice_enters_every_folder(request):
    """What it names is there, and no folder of tests is left out."""
    folder = ROOT / "tests"
    conftest = request.config.pluginmanager.get_plugin(str(folder / "conftest.py"))
    assert [x for x in conftest.QUICK if not (folder / x).exists()] == []
    tests = (path.relative_to(folder) for path in folder.rglob("test_*.py"))
    folders = {path.parts[0] for path in tests if len(path.parts) > 1}
    assert not folders - {x.split("/")[0] for x in conftest.QUICK}
