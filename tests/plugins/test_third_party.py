"""The plugin door: a foreign package, a broken one, a misspelt hook, a duplicate name."""

import importlib
import os
import subprocess
import sys
import types

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.registry import Registry

GOOD = '''"""A foreign solver."""
from dyn_core import GRAVITY_FORCE, TextSolver, hookimpl
from dyn_plugins.gravity import gravity


def my_gravity(model, q):
    """Give the gravity force.

    Source: nobody.
    """
    return gravity(model, q)


@hookimpl
def dyn_solvers():
    """Offer it."""
    return [TextSolver("my_gravity", GRAVITY_FORCE, my_gravity)]
'''


def _package(folder, name, module):
    """Write a package as pip would leave it: module and entry point metadata."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(module)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(f"[dyn_core]\n{name} = {name}\n")
    return folder


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Give a function that loads a new Registry with such packages on the path."""

    def load(**packages):
        for name, module in packages.items():
            _package(tmp_path, name, module)
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        registry = Registry()
        registry.load()
        return registry

    return load


def test_a_foreign_package_is_found_beside_the_built_ins(fresh):
    """One entry point, and its solver is known by name and origin."""
    registry = fresh(good_dyn=GOOD)
    assert {"my_gravity", "rnea"} <= set(registry.names())
    solver = registry.solver("my_gravity")
    assert "good_dyn" in solver.origin
    assert solver.source == "nobody."
    assert not registry.failures


def test_a_broken_package_is_reported_and_the_rest_loads(fresh):
    """An exception at import is kept; looking up names it."""
    with pytest.warns(RuntimeWarning, match="broken_dyn.*no such luck"):
        registry = fresh(broken_dyn="raise OSError('no such luck')", good_dyn2=GOOD)
    assert {"my_gravity", "rnea"} <= set(registry.names())
    assert len(registry.failures) == 1
    with pytest.raises(dyn.SolverNotFound, match="failed to load.*broken_dyn.*luck"):
        registry.solver("broken")


def test_a_misspelt_hook_is_an_error(fresh):
    """`dyn_solver` is no hook: the plugin is left out and named."""
    bad = GOOD.replace("def dyn_solvers", "def dyn_solver")
    with pytest.warns(RuntimeWarning, match="no hook is called 'dyn_solver'"):
        registry = fresh(misspelt_dyn=bad)
    assert "my_gravity" not in registry.names()
    with pytest.raises(dyn.PluginError, match="known: dyn_commands, dyn_solvers"):
        registry.register(importlib.import_module("misspelt_dyn"))


def test_a_duplicate_name_serves_neither(fresh):
    """Two plugins of one name: asking for it is an error that names both."""
    twin = GOOD.replace('"my_gravity"', '"rnea"').replace("GRAVITY_FORCE", "BIAS_FORCE")
    with pytest.warns(RuntimeWarning, match="'rnea' that dyn.*offers too"):
        registry = fresh(twin_dyn=twin)
    with pytest.raises(dyn.PluginError, match="'rnea' is offered by .* and twin_dyn"):
        registry.solver("rnea")
    assert registry.solver("aba").name == "aba"


def test_a_hook_that_fails_or_gives_rubbish_is_left_out():
    """Whatever a plugin's hook does, the Registry says so."""
    registry = Registry()

    def module(function):
        plugin = types.ModuleType("rubbish")
        function.__module__ = "rubbish"
        plugin.dyn_solvers = dyn.hookimpl(function)
        return plugin

    def rubbish():
        return [3]

    def fails():
        raise KeyError("x")

    with pytest.raises(dyn.PluginError, match="gave 3, not a Solver"):
        registry.register(module(rubbish))
    with pytest.raises(dyn.PluginError, match="dyn_solvers failed"):
        registry.register(module(fails))
    assert registry.names() == []


def test_importing_registers_nothing():
    """Import dyn_core alone reads no entry points and no ROS, LLVM or matplotlib."""
    code = (
        "import sys, dyn_core, dyn_core.registry as r; "
        "bad = {'rclpy', 'matplotlib', 'llvmlite', 'dyn_plugins'} & set(sys.modules); "
        "assert not bad, bad; assert r._registry is None"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_solver_object_does_where_a_name_does(shipped):
    """`dyn.solver` gives a Solver back; an unregistered one fills a slot."""
    rnea = dyn.solver("rnea")
    assert dyn.solver(rnea) is rnea
    own = dyn.TextSolver("own", dyn.INVERSE_DYNAMICS, rnea.text)
    model = shipped["two_link"]
    law = dyn.solver("computed_torque")
    rng = np.random.default_rng(0)
    x = [rng.normal(size=model.nv) for _ in range(7)]
    tau = law.build(model, inverse_dynamics=own)(*x)
    np.testing.assert_array_equal(tau, law.build(model)(*x))


PROJECT = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "shell_dyn"
version = "1.0"

[project.entry-points.dyn_core]
shell_dyn = "shell_dyn"

[tool.setuptools]
py-modules = ["shell_dyn"]
"""


def test_a_package_installed_by_pip(tmp_path):
    """pip installs it; `dyn plugins` lists it; `dyn check-plugin` puts it to the laws."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "shell_dyn.py").write_text(GOOD)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
           "--no-build-isolation", "--target", str(target), str(source)]  # fmt: skip
    subprocess.run(pip, check=True, capture_output=True)
    path = os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}

    def dyn_command(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "dyn_core.cli", *arguments],
            env=env, capture_output=True, text=True,
        )  # fmt: skip

    listed = dyn_command("plugins")
    assert listed.returncode == 0, listed.stderr
    assert "my_gravity" in listed.stdout
    assert "shell_dyn" in listed.stdout
    checked = dyn_command("check-plugin", "shell_dyn", "--robot", "two_link")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "my_gravity on two_link (graph): 6 of 6 laws hold" in checked.stdout
    wrong = dyn_command("check-plugin", "nobody")
    assert wrong.returncode == 1
    assert "no solver is called 'nobody'" in wrong.stderr


def test_a_solver_refuses_what_it_is_not_for():
    """A solver for robots takes no chain, one for chains no robot, and none a name."""
    chain = dyn.make_chain([1.0], [1.0, 1.0], name="two points")
    arm = dyn.load_urdf(dyn.robots.path("two_link"))
    for name, system, words in (
        ("rnea", chain, "for a robot, not for ChainModel.*'planar_chain'"),
        ("chain_recursion", arm, "for a planar_chain, not for Model.*'robot'"),
        ("admm", arm, "for a constraint_layout, not for Model"),
        ("rnea", "two_link", "for a robot, not for 'two_link'.*kind 'robot'"),
    ):
        with pytest.raises(dyn.UnsupportedError, match=words):
            dyn.solver(name).build(system)
