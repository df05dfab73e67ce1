"""The house: who imports whom, sizes, docstrings, packaging, what must not be there."""

import ast
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import dyn_core as dyn

ROOT = Path(__file__).parents[1]
PACKAGES = ("dyn_core", "dyn_plugins", "ros_nodes")
MODULES = [p for name in PACKAGES for p in sorted((ROOT / name).rglob("*.py"))]
ORDER = (
    "errors", "operations", "scalar", "jets", "spatial", "duals", "system", "model", "matrices", "signature", "engines",
    "border", "solver", "array_solver", "cost", "hookspecs", "registry", "consistency", "trajectory", "control",
    "commanded", "contact", "simulation",
    "physical_fit", "identifiable", "identification",
    "planar", "tasks", "envs", "testing", "bench", "cli",
)  # fmt: skip


def _imports(path, top_only=False):
    """Give the names of modules a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _part(path):
    return path.relative_to(ROOT / "dyn_core").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_are_small_and_documented(path):
    """At most 400 lines, a docstring, and docstrings on all that is public."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    tree = ast.parse(text)
    assert ast.get_docstring(tree) or not text.strip()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
            assert ast.get_docstring(node), f"{node.name} has no docstring"


def _inside(path):
    """Give imports of dyn_core parts by a module of dyn_core, type hints left out."""
    text = path.read_text(encoding="utf-8")
    hints = text.split("if TYPE_CHECKING:")
    for name in _imports(path):
        if name and name.startswith("dyn_core."):
            part = name.split(".")[1]
            in_hint = len(hints) > 1 and name in hints[1].split("\n\n")[0]
            if part in ORDER and not in_hint:
                yield part


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.parts[-2] != "robots" and "dyn_core" in p.parts],
    ids=lambda p: str(p.relative_to(ROOT)),
)  # fmt: skip
def test_core_imports_only_what_stands_before(path):
    """In dyn_core a module imports only parts before it, never plugins or ROS."""
    names = [name or "" for name in _imports(path)]
    for foreign in ("dyn_plugins", "ros_nodes", "rclpy", "launch"):
        assert not any(n.split(".")[0] == foreign for n in names), foreign
    part = _part(path)
    if part in ORDER:
        for other in _inside(path):
            assert ORDER.index(other) <= ORDER.index(part), f"{part} imports {other}"


def test_plugins_import_core_and_neighbours_only():
    """dyn_plugins knows no engine and no ROS; texts use neither math nor numpy."""
    for path in sorted((ROOT / "dyn_plugins").rglob("*.py")):
        allowed = [
            "dyn_core",
            "dyn_plugins",
            "math",
            "dataclasses",
            "functools",
            "typing",
        ]
        if "(ArraySolver)" in path.read_text(encoding="utf-8"):
            allowed.append("numpy")  # solvers that are no texts
        for name in _imports(path):
            assert name.split(".")[0] in allowed, f"{path.name}: {name}"
            assert "engines" not in name


def test_only_nodes_import_ros():
    """ROS is imported in ros_nodes, nowhere else; three files without it even there."""
    free = ("__init__.py", "graphs.py", "conversions.py", "commands.py", "demo.py", "demo_plan.py",
            "processes.py")  # fmt: skip
    for path in (ROOT / "ros_nodes").glob("*.py"):
        if path.name in free:
            tops = {(n or "").split(".")[0] for n in _imports(path, top_only=True)}
            assert not tops & {"rclpy", "sensor_msgs", "std_msgs", "launch"}, path.name


def test_imports_of_the_core_are_quick_and_lean():
    """`import dyn_core` loads no rclpy, matplotlib, LLVM, and no scipy."""
    code = "import sys, dyn_core; print(sorted({m.split('.')[0] for m in sys.modules}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = set(ast.literal_eval(out.stdout))
    assert "numpy" in loaded
    assert not loaded & {"rclpy", "matplotlib", "llvmlite", "scipy", "pinocchio"}


def test_the_installed_package_is_the_tested_one():
    """With CI set, dyn_core comes from the environment, not from this folder."""
    import os

    found = Path(dyn.__file__).resolve()
    if os.environ.get("CI") == "true":
        assert ROOT not in found.parents
    points = importlib.metadata.entry_points(group="dyn_core")
    assert {"dyn_plugins", "ros_nodes"} <= {p.name for p in points}


def test_launch_folder_is_no_package():
    """An __init__.py there would hide ROS's own launch."""
    assert not (ROOT / "launch" / "__init__.py").exists()
    assert not (ROOT / "tests" / "launch").exists()


def test_every_solver_names_its_source_and_equation():
    """Each text cites where it is from, and states an equation or a return."""
    for name in dyn.solvers():
        solver = dyn.solver(name)
        if "dyn_plugins" in solver.origin:
            doc = getattr(solver, "text", solver).__doc__
            if not hasattr(solver, "text"):
                doc += type(solver).solve.__doc__
            assert solver.source, name
            assert "Args:" in doc, name
            assert "Returns:" in doc, name
            assert "=" in doc.split("Args:")[0], f"{name}: no equation"


def test_every_hook_is_documented():
    """Hooks have docstrings and are implemented by somebody."""
    from dyn_core import hookspecs

    registry = dyn.default_registry()
    for name in ("dyn_solvers", "dyn_commands"):
        assert getattr(hookspecs, name).__doc__
        assert getattr(registry.manager.hook, name).get_hookimpls()
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
    for name in dyn.solvers():
        assert f"`{name}`" in text, f"README does not name {name}"
