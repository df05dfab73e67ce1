"""The plugin door: a foreign package, a broken one, a misspelt hook, a duplicate name."""

import importlib
import math
import os
import re
import subprocess
import sys
import types
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cli
from dyn_core.authoring import (
    ContactSolver,
    Force,
    Motion,
    NumpySolver,
    Required,
    TracedSolver,
    Vector,
    cross,
)
from dyn_core.errors import nearest, unknown_name
from dyn_core.problems import GRAVITY_FORCE, INVERSE_DYNAMICS
from dyn_core.sharing import once
from dyn_core.solving import registry
from dyn_core.solving.registry import Registry
from dyn_core.tasks import RobotTask
from dyn_core.testing import conformance, random_model

README = Path(__file__).parents[2] / "README.md"
GOOD = '''"""A foreign solver."""
from dyn_core.problems import GRAVITY_FORCE
from dyn_core.authoring import TracedSolver, hookimpl
from dyn_plugins.dynamics.gravity import gravity


def my_gravity(model, q):
    """Return the gravity force.

    Source: nobody.
    """
    return gravity(model, q)


@hookimpl
def dyn_solvers():
    """Offer it."""
    return [TracedSolver("my_gravity", GRAVITY_FORCE, my_gravity)]
'''


BALL = """<robot name="ball"><link name="ball"><inertial><mass value="1"/>
<inertia ixx="0.004" iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="0.1"/></geometry></collision></link></robot>"""


def _package(folder, name, module, spelling=None):
    """Write a package as pip would leave it: module and entry point metadata."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(module)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {spelling or name}\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(f"[dyn_core]\n{name} = {name}\n")
    return folder


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Return a function that loads a new Registry with such packages on the path."""

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


@pytest.mark.parametrize("spelling", ["dyn-ros", "Dyn.Ros", "dyn_ros"])
def test_an_installation_has_one_name_however_it_is_spelt(monkeypatch, spelling):
    """Origins of the project's own solvers begin with dyn_ros (PEP 503)."""
    points = [
        types.SimpleNamespace(
            name=point.name,
            value=point.value,
            load=point.load,
            dist=types.SimpleNamespace(name=spelling),
        )
        for point in entry_points(group=registry.GROUP)
        if point.name in registry.BUILT_IN
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    loaded = Registry()
    loaded.load()
    origins = {loaded.solver(name).origin for name in loaded.names(references=True)}
    assert "dyn_ros (dyn_plugins.dynamics.rnea)" in origins
    assert all(origin.startswith("dyn_ros (") for origin in origins)
    names = loaded.names(references=True)
    loaded.load()
    assert (loaded.names(references=True), loaded.failures) == (names, [])


@pytest.mark.parametrize("asked", ["Spelt.Dyn", "spelt-dyn", "spelt_dyn"])
def test_a_plugin_is_checked_by_any_spelling_of_its_name(
    monkeypatch, tmp_path, capsys, asked
):
    """Its metadata says Spelt-Dyn; pip takes all of these."""
    _package(tmp_path, "spelt_dyn", GOOD, "Spelt-Dyn")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    loaded = Registry()
    loaded.load()
    monkeypatch.setattr(
        "dyn_core.testing.plugin_check.default_registry", lambda: loaded
    )
    assert cli.main(["check-plugin", asked, "--robot", "two_link"]) == 0
    assert "1 solver, 1 robot: 0 laws broken" in capsys.readouterr().out


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
    with pytest.raises(dyn.PluginError, match="valid: dyn_solvers, dyn_commands"):
        registry.register(importlib.import_module("misspelt_dyn"))


def test_a_duplicate_name_serves_neither(fresh):
    """Two plugins of one name: asking for it is an error that names both."""
    duplicate = GOOD.replace('"my_gravity"', '"rnea"')
    with pytest.warns(RuntimeWarning, match="'rnea' that dyn.*offers too"):
        registry = fresh(twin_dyn=duplicate)
    with pytest.raises(dyn.PluginError, match="'rnea' is offered by .* and twin_dyn"):
        registry.solver("rnea")
    assert registry.solver("aba").name == "aba"


def test_a_hook_that_fails_or_gives_rubbish_is_left_out():
    """Whatever a plugin's hook does, the Registry says so."""
    registry = Registry()

    def module(function):
        plugin = types.ModuleType("rubbish")
        function.__module__ = "rubbish"
        plugin.dyn_solvers = dyn.authoring.hookimpl(function)
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


def test_a_problem_with_capitals_is_found():
    """By its name and in other cases; the exact name goes before."""
    registry, plugin = Registry(), types.ModuleType("tanks")
    offered = [replace(GRAVITY_FORCE, name=name) for name in ("Tank", "TANK", "Pool")]
    plugin.dyn_problems = dyn.authoring.hookimpl(lambda: offered)
    registry.register(plugin)
    assert [registry.problem(x.name) for x in offered] == offered
    assert registry.problem("pool") is offered[2]
    with pytest.raises(dyn.SignatureError, match="called 'pond'; valid: Pool"):
        registry.problem("pond")


HOOK = "from dyn_core.authoring import hookimpl\n\n@hookimpl\n"
OFFER = (
    "from dyn_core.problems import BIAS_FORCE\nfrom dyn_core.authoring import TracedSolver\n"
    + HOOK
    + "def dyn_solvers():\n"
)
TEXT = "TracedSolver({}, {}, lambda *x: x[-1])"
BAD = {  # what a plugin does, its module, what is said of it
    "a wrong argument": (HOOK + "def dyn_solvers(x):\n    return []\n", "argument.*'x'"),
    "exit at import": ("import sys\nsys.exit(3)\n", "cannot be loaded: SystemExit: 3"),
    "a skip at import": ("class Out(BaseException): pass\nraise Out('now')", "Out: now"),
    "exit in the hook": (
        HOOK + "def dyn_solvers():\n    raise SystemExit(3)\n",
        "dyn_solvers failed: SystemExit: 3",
    ),
    "no string as a name": (OFFER + f"    return [{TEXT.format(['x'], 'BIAS_FORCE')}]\n",
                            "offers a solver called \\['x'\\]"),
    "an empty name": (OFFER + f"    return [{TEXT.format(repr(''), 'BIAS_FORCE')}]\n",
                      "offers a solver called ''; valid: letters a-z"),
    "a name of two lines": (
        OFFER + f"    return [{TEXT.format('chr(10).join(chr(97)*2)', 'BIAS_FORCE')}]\n",
        "offers a solver called 'a.na'; valid: letters a-z",
    ),
    "no Signature": (OFFER + f"    return [{TEXT.format(repr('x'), 3)}]\n",
                     "offers the solver 'x' of 3; valid: a Signature"),
    "an error without words": (
        "class Mute(Exception):\n    def __str__(self): return 3\nraise Mute\n",
        "Mute: an object of Mute that cannot be shown",
    ),
    "an object without words": (
        "class Mute:\n    def __repr__(self): return 3\n" + OFFER + "    return [Mute()]\n",
        "gave an object of Mute that cannot be shown, not a Solver",
    ),
    "one solver without a list": (
        OFFER + f"    return {TEXT.format(repr('x'), 'BIAS_FORCE')}\n",
        "dyn_solvers gave .*; valid: a list",
    ),
    "a hook without its mark": (
        "def dyn_solvers(): return []\n",
        "dyn_solvers is not marked; valid: @hookimpl",
    ),
    "attributes that fail": (
        "def __dir__(): return ['x']\ndef __getattr__(name): raise OSError(name)\n",
        "has hooks that cannot be used: OSError: x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_bad_plugin_is_left_out_and_the_rest_serves(fresh, what):
    """Whatever it does, it is named with its distribution, and hurts nobody else."""
    name = "bad_" + what.replace(" ", "_").lower()
    module, message = BAD[what]
    with pytest.warns(RuntimeWarning, match=f"plugin left out: {name}"):
        registry = fresh(**{name: module, name + "_after": GOOD})
    assert {"my_gravity", "rnea"} <= set(registry.names())
    (failure,) = registry.failures
    assert re.search(message, str(failure)), failure
    assert failure.plugin.startswith(name)
    with pytest.raises(dyn.SolverNotFound, match=f"failed to load: {name}"):
        registry.solver("nobody")


def test_a_key_pressed_while_plugins_load_interrupts(fresh):
    """Ctrl-C is the user's: it is no failure of the plugin that happens to load."""
    with pytest.raises(KeyboardInterrupt):
        fresh(interrupted_dyn="raise KeyboardInterrupt")


def test_registering_twice_is_an_error_and_changes_nothing():
    """The first registration stays."""
    registry = Registry()
    plugin = types.ModuleType("twice")
    solver = dyn.authoring.TracedSolver(
        "own", dyn.problems.BIAS_FORCE, lambda *x: x[-1]
    )
    plugin.dyn_solvers = dyn.authoring.hookimpl(lambda: [solver])
    registry.register(plugin)
    for _ in range(2):
        with pytest.raises(dyn.PluginError, match="twice is registered already"):
            registry.register(plugin)
    assert registry.names() == ["own"]


COMMAND = HOOK + "def dyn_commands(subparsers):\n    p = subparsers.add_parser({!r})\n"
BAD_COMMANDS = {
    "raises": (COMMAND.format("x1") + "    raise OSError('no')\n", "failed: OSError: no"),
    "exits": (COMMAND.format("x2") + "    raise SystemExit(3)\n", "failed: SystemExit: 3"),
    "takes_info": (
        COMMAND.format("info") + "    p.set_defaults(run=print)\n",
        "adds a command 'info'; there is one",
    ),
    "takes_up": (
        COMMAND.format("up") + "    p.set_defaults(run=print)\n",
        "adds a command 'up'; there is one",
    ),
    "misnames": (HOOK + "def dyn_commands(parsers):\n    pass\n", "'parsers'"),
    "runs_nothing": (COMMAND.format("x3"), "adds a command 'x3' without an action"),
    "runs_nothing_below": (
        COMMAND.format("x4") + "    p.add_subparsers(required=True).add_parser('y')\n",
        "adds a command 'x4' without an action",
    ),
    "cannot_be_shown": (
        HOOK + "def dyn_commands(subparsers):\n"
        "    subparsers.add_parser('x5', help='%').set_defaults(run=print)\n",
        "dyn_commands failed: ValueError",
    ),
    "has_no_group": (
        HOOK + "def dyn_commands(subparsers):\n"
        "    subparsers.add_parser('x6', help='y', group=['x']).set_defaults(run=print)\n",
        r"adds a command 'x6' with the group \['x'\]; valid: a str",
    ),
}  # fmt: skip
GOOD_COMMAND = (
    HOOK
    + """def dyn_commands(subparsers):
    p = subparsers.add_parser("greet", help="say hello", aliases=["hello"],
                              group="manners", example="hello")
    p.set_defaults(run=lambda arguments: print("hello"))
    below = subparsers.add_parser("deep").add_subparsers(required=True)
    below.add_parser("er").set_defaults(run=lambda arguments: print("deeper"))
"""
)


@pytest.fixture
def command(monkeypatch, tmp_path, capsys):
    """Return a function that runs `dyn` with such packages installed."""

    def run(*arguments, **packages):
        for name, module in packages.items():
            _package(tmp_path, name, module)
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        monkeypatch.setattr(
            registry, "_installed", once(registry._installed.__wrapped__)
        )
        try:
            status = cli.main(arguments)
        except SystemExit as error:
            status = error.code
        return status, capsys.readouterr()

    return run


@pytest.mark.parametrize("what", BAD_COMMANDS)
def test_a_bad_command_is_left_out_and_dyn_works(command, what):
    """Every `dyn` command works, with one line that names the distribution."""
    module, message = BAD_COMMANDS[what]
    name = f"bad_command_{what}"
    status, said = command("solvers", **{name: module, "z" + name: GOOD_COMMAND})
    assert status == 1
    assert "rnea " in said.out
    (line,) = said.err.splitlines()
    assert line.startswith(f"dyn: warning: plugin left out: {name} ")
    assert re.search(message, line), line
    assert command("plugins")[1] == said  # the former name of dyn solvers
    status, said = command("info", "two_link")  # it needs no plugin
    assert (status, said.err) == (0, "")
    assert "moving bodies" in said.out
    status, said = command("greet")
    assert (status, said.out) == (0, "hello\n")
    status, said = command("--help")
    assert status == 0
    assert re.search(r"\nmanners:\n  greet \(hello\) +say hello\n", said.out)
    assert command("help", "greet")[1].out.endswith("\nexample: dyn greet hello\n")
    assert not re.search(r"^ +x\d", said.out, re.M)


def test_a_command_that_fails_names_its_plugin(command):
    """An error of Python in a plugin's command is one line, not a traceback."""
    module = (
        COMMAND.format("fail") + "    p.set_defaults(run=lambda arguments: 1 / 0)\n"
    )
    status, said = command("fail", failing_command=module)
    assert status == 1
    assert said.err == (
        "dyn: failing_command (failing_command): 'fail' failed:"
        " ZeroDivisionError: division by zero\n"
    )


RAISES = """
from dyn_core.authoring import NumpySolver, TracedSolver
from dyn_core.problems import BIAS_FORCE

class Library(NumpySolver):
    name, signature = "library", BIAS_FORCE
    def solve(self, model, q, qd, f_ext):
        raise {}

def traced(model, q, qd, f_ext):
    raise {}
"""


@pytest.mark.parametrize("error", ["OSError('no')", "SystemExit(3)"])
def test_what_a_solver_raises_names_it(command, shipped, error):
    """When it is built or called, and in check-plugin, which goes on."""
    module = (
        RAISES.format(error, error)
        + HOOK
        + (
            "def dyn_solvers():\n    return [Library(), TracedSolver('traced', BIAS_FORCE, traced)]\n"
        )
    )
    name = "raises_" + error[:2].lower()
    status, said = command(
        "check-plugin", name, "--robot", "two_link", **{name: module}
    )
    assert status == 1
    assert said.err == ""
    assert "FAIL library [" in said.out
    assert "FAIL traced [" in said.out
    assert "2 solvers, 1 robot: 2 laws broken" in said.out
    for solver, kind in (("library", dyn.PluginError), ("traced", dyn.TraceError)):
        message = rf"{solver} \({name} \({name}\)\).*{error[:5]}.*__init__.py:\d+"
        with pytest.raises(kind, match=message):
            program = (
                dyn.solver(solver).build(shipped["two_link"], engine="graph")
                if solver == "traced"
                else dyn.solver(solver).build(shipped["two_link"])
            )
            program(*np.zeros((2, 2)))


def test_commands_of_plugins(command):
    """Names, other names, and commands below a command all serve."""
    module = GOOD_COMMAND
    assert command("greet", good_command=module)[0] == 0
    for arguments, wanted in ((["hello"], "hello\n"), (["deep", "er"], "deeper\n")):
        status, said = command(*arguments)
        assert (status, said.out, said.err) == (0, wanted, "")


def test_dyn_works_beside_a_plugin_that_ends_the_process(tmp_path):
    """The command of a user, in a process of its own."""
    _package(tmp_path, "ends_dyn", "import sys\nsys.exit(3)\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "dyn_core.cli", "plugins"],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "rnea " in done.stdout
    assert done.stderr == (
        "dyn: warning: plugin left out: ends_dyn (ends_dyn) cannot be loaded:"
        " SystemExit: 3\n"
    )


def test_importing_registers_nothing():
    """Import dyn_core alone reads no entry points and no ROS, LLVM or matplotlib."""
    code = (
        "import sys, dyn_core, dyn_core.solving.registry as r; "
        "bad = {'rclpy', 'matplotlib', 'llvmlite', 'dyn_plugins'} & set(sys.modules); "
        "assert not bad, bad; assert not r._installed._results"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_solver_object_does_where_a_name_does(shipped):
    """`dyn.solver` gives a Solver back; an unregistered one fills a slot."""
    rnea = dyn.solver("rnea")
    assert dyn.solver(rnea) is rnea
    solver = dyn.authoring.TracedSolver(
        "own", dyn.problems.INVERSE_DYNAMICS, rnea.algorithm
    )
    model = shipped["two_link"]
    law = dyn.solver("computed_torque")
    rng = np.random.default_rng(0)
    x = [rng.normal(size=model.nv) for _ in range(7)]
    tau = law.build(model, inverse_dynamics=solver)(*x)
    np.testing.assert_array_equal(tau, law.build(model)(*x))


def test_a_package_installed_by_pip(tmp_path):
    """The two files of the README: `dyn plugins` lists it, `dyn check-plugin` tests it."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    page = README.read_text(encoding="utf-8").split("## Write a solver")[1]
    for name, language in (("my_solvers.py", "python"), ("pyproject.toml", "toml")):
        assert f"`{name}`" in page
        content = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)[1]
        (source / name).write_text(content)
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
    assert "weight" in listed.stdout
    assert "my_solvers" in listed.stdout
    checked = dyn_command("check-plugin", "weight", "--robot", "two_link")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "weight on two_link (graph): 4 of 7 laws hold; only z" in checked.stdout
    assert "weight on random0 (graph): 7 of 7 laws hold" in checked.stdout
    wrong = dyn_command("check-plugin", "nobody")
    assert wrong.returncode == 1
    assert "no solver is called 'nobody'" in wrong.stderr


TANKS = '''"""Tanks in a row: a kind of system, a problem, a law and a solver of its own."""
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dyn_core.authoring import Port, Signature, System, SystemKind, TracedSolver, hookimpl
from dyn_core.testing.case import SystemCase


@dataclass(frozen=True)
class Tanks(System):
    """Tanks that run into each other, the last one out."""

    kind = "tanks"
    name: str
    valves: tuple[Any, ...]

    @property
    def sizes(self):
        return {"n": len(self.valves)}

    def parameter(self, path):
        return list(self.valves)

    def unit(self, path):
        return "m2/s"

    def with_values(self, values):
        return replace(self, valves=tuple(values.get("valves", self.valves)))


LEVELS, RATES = Port("levels", ("n",), "m"), Port("rates", ("n",), "m3/s")
TANK_RATES = Signature("tank_rates", (LEVELS,), (RATES,), system="tanks")


def tank_rates(model, levels):
    """Return what flows in less what flows out.

    Source: Torricelli, without the root.
    """
    out = [valve * level for valve, level in zip(model.valves, levels)]
    return [SIGN * (a - b) for a, b in zip([0.0, *out], out)]


def water_is_kept(case):
    """What all tanks lose runs out of the last one."""
    levels = case.rng.uniform(size=len(case.model.valves))
    rates = case.program()(levels)
    yield rates.sum(), -case.model.valves[-1] * levels[-1]


def sample(seed, size):
    valves = np.random.default_rng(seed).uniform(1, 2, size)
    return Tanks(f"tanks {seed}", tuple(valves.tolist()))


@hookimpl
def dyn_problems():
    return [TANK_RATES]


@hookimpl
def dyn_laws():
    return {TANK_RATES: [water_is_kept]}


@hookimpl
def dyn_systems():
    return [SystemKind("tanks", SystemCase, sample)]


@hookimpl
def dyn_solvers():
    return [TracedSolver("tank_rates", TANK_RATES, tank_rates)]
'''


@pytest.mark.parametrize(("sign", "status"), [("1", 0), ("-1", 1)])
def test_a_foreign_world_is_put_to_its_own_laws(command, sign, status):
    """Problem, law, kind of system and solver of a plugin; a wrong solver fails."""
    module = TANKS.replace("SIGN", sign)
    code, said = command("check-plugin", "tank_rates", **{f"tanks_{status}": module})
    assert (code, said.err) == (status, "")
    count = 5 - status
    for k in range(3):
        assert f"tank_rates on tanks {k} (graph): {count} of 5 laws hold" in said.out
    assert ("FAIL water_is_kept" in said.out) == bool(status)
    registry = dyn.default_registry()
    assert "tank_rates" in [problem.name for problem in registry.problems()]
    assert registry.system("tanks").name == "tanks"


LACKS = {  # the hook that the plugin lacks, what is said when it is put to the test
    "dyn_problems": "no plugin offers the problem 'tank_rates' .*; known: .*rnea",
    "dyn_laws": "no plugin offers a law of the problem 'tank_rates'; valid: one or more",
    "dyn_systems": "no plugin offers the kind of system 'tanks' .*; known: .*robot",
}


@pytest.mark.parametrize("hook", LACKS)
def test_what_nobody_offers_is_refused_in_words(command, hook):
    """A solver of an unknown problem, without laws, or of an unknown kind of system."""
    module = TANKS.replace("SIGN", "1").replace(
        f"@hookimpl\ndef {hook}", f"def _{hook}"
    )
    status, said = command("check-plugin", "tank_rates", **{f"lacks_{hook}": module})
    message = LACKS[hook].replace("rnea", "inverse_dynamics")
    assert status == 1
    assert re.search(message, said.err), said.err


BAD_OFFERS = {  # hook, what it does, what is said of it
    "problems_of_another_kind": ("dyn_problems", "return [3]", "gave 3, not a Signature"),
    "a_problem_twice": ("dyn_problems", "return [BIAS_FORCE] * 2", "'bias_force' twice"),
    "a_known_problem": (
        "dyn_problems", "return [BIAS_FORCE]", "'bias_force' that there is already",
    ),
    "a_hook_that_fails": ("dyn_problems", "raise OSError('no')", "failed: OSError: no"),
    "laws_without_a_problem": (
        "dyn_laws", "return {'x': []}", "laws of 'x'; valid: a Signature",
    ),
    "laws_in_a_list": ("dyn_laws", "return [3]", r"gave \[3\]; valid: a mapping"),
    "laws_that_cannot_be_called": (
        "dyn_laws", "return {BIAS_FORCE: [3]}", "offers 3 as a law of bias_force; valid",
    ),
    "a_law_twice": (
        "dyn_laws", "return {BIAS_FORCE: [dyn_laws, dyn_laws]}",
        "the law of bias_force 'dyn_laws' twice",
    ),
    "laws_that_fail": ("dyn_laws", "raise SystemExit(3)", "failed: SystemExit: 3"),
    "a_system_of_another_kind": (
        "dyn_systems", "return ['x']", "gave 'x', not a SystemKind",
    ),
    "a_known_system": (
        "dyn_systems", "return [SystemKind('robot', print, print)]",
        "kind of system 'robot' that there is already",
    ),
    "a_mode_of_another_kind": (
        "dyn_control_modes", "return [3]", "gave 3, not a ControlMode",
    ),
    "a_known_mode": (
        "dyn_control_modes", "return [ControlMode('gravity', BIAS_FORCE, 'x', '')]",
        "mode 'gravity' that there is already",
    ),
    "a_mode_without_a_problem": (
        "dyn_control_modes", "return [ControlMode('mine', 'bias_force', 'x', '')]",
        "mode 'mine' with problem 'bias_force'; valid: a Signature",
    ),
    "a_mode_with_unknown_gains": (
        "dyn_control_modes",
        "return [ControlMode('mine', BIAS_FORCE, 'x', '', gains=('k',))]",
        "mode 'mine' with gains .*; valid: some of p, d, i, i_clamp",
    ),
    "a_parameter_of_two_modes": (
        "dyn_control_modes",
        "return [ControlMode(x, BIAS_FORCE, 'x', '', parameters=SAME) for x in 'ab']",
        "mode 'b' with the parameter 'p' of mode 'a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_OFFERS)
def test_a_bad_offer_is_left_out_and_the_rest_is_tested(fresh, what):
    """Whatever a plugin's problems, laws and systems are, it is named; others serve."""
    hook, does, message = BAD_OFFERS[what]
    module = (
        "from dyn_core.problems import BIAS_FORCE\n"
        "from dyn_core.authoring import ControlMode, SystemKind\n"
        "from dyn_core.validation import Field, Switch\n\n"
        "SAME = (Field('p', Switch(), '', '', False),)\n"
        f"{HOOK}def {hook}():\n    {does}\n"
    )
    with pytest.warns(RuntimeWarning, match=f"plugin left out: bad_{what}"):
        registry = fresh(**{f"bad_{what}": module})
        laws = registry.laws(dyn.problems.BIAS_FORCE)
        kind = registry.system("robot")
        modes = registry.modes()
    (failure,) = registry.failures
    assert re.search(message, str(failure)), failure
    assert [law.__name__ for law in laws] == ["bias_is_inverse_dynamics_at_rest"]
    assert kind.sample is random_model
    assert list(modes)[:3] == ["computed_torque", "impedance", "gravity"]


def test_a_law_of_another_for_a_known_problem_is_added(fresh):
    """Every solver of the problem is put to it, too."""
    module = (
        "from dyn_core.problems import BIAS_FORCE\n\ndef mine(case):\n    yield 1, 1\n\n"
        f"{HOOK}def dyn_laws():\n    return {{BIAS_FORCE: [mine]}}\n"
    )
    registry = fresh(more_laws=module)
    names = [law.__name__ for law in registry.laws(dyn.problems.BIAS_FORCE)]
    assert names == ["bias_is_inverse_dynamics_at_rest", "mine"]
    assert registry.laws("bias_force") == registry.laws(dyn.problems.BIAS_FORCE)
    for wrong in ("bias_forces", 3, None):
        with pytest.raises(dyn.SignatureError, match="no problem is called"):
            registry.laws(wrong)


def test_a_solver_refuses_what_it_is_not_for():
    """A solver for robots takes no chain, one for chains no robot, and none a name."""
    chain = dyn.make_chain([1.0], [1.0, 1.0], name="two points")
    arm = dyn.load_urdf(dyn.robots.path("two_link"))
    for name, system, message in (
        ("rnea", chain, "for a robot, not for ChainModel.*'planar_chain'"),
        ("chain_recursion", arm, "for a planar_chain, not for Model.*'robot'"),
        ("admm", arm, "for a constraint_layout, not for Model"),
        (
            "rnea",
            "two_link",
            "for a robot, not for 'two_link'; valid: what dyn.load returns",
        ),
    ):
        with pytest.raises(dyn.UnsupportedError, match=message):
            dyn.solver(name).build(system)


def _solver(algorithm, signature=None, name="mine", **parts):
    """Return a TracedSolver of forward dynamics, or of another Signature."""
    signature = signature or dyn.problems.FORWARD_DYNAMICS
    return dyn.authoring.TracedSolver(name, signature, algorithm, **parts)


def _no_f_ext(model, q, qd, tau):
    return tau


def _slot_before_input(model, q, qd, tau, inner, f_ext):
    return tau


def _unfilled(model, q, qd, tau, f_ext, gain):
    return tau


TAKES = {  # what the algorithm does not take, the algorithm, slots, what is said
    "input": (_no_f_ext, {}, r"\(model, q, qd, tau, f_ext\).*takes no input f_ext"),
    "order": (_slot_before_input, {"inner": dyn.problems.MASS_MATRIX},
              "inputs come before slots"),
    "slot": (_no_f_ext, {"inner": dyn.problems.MASS_MATRIX}, "no slot or option inner"),
    "value": (_unfilled, {}, "nothing fills gain"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAKES)
def test_an_algorithm_with_wrong_parameters_is_refused_when_it_is_offered(what):
    """The message shows the call and names what is missing."""
    algorithm, slots, message = TAKES[what]
    with pytest.raises(dyn.SignatureError, match=message):
        _solver(algorithm, slots=slots)


def _uneven(model, q, qd, tau, f_ext):
    return [None, (tau[1][0], tau[2][0]), ()]


def _too_long(model, q, qd, tau, f_ext):
    return [*tau, tau[1]]


def _too_short(model, q, qd, tau, f_ext):
    return tau[:-1]


def _one_number(model, q, qd, tau, f_ext):
    return tau[1][0]


def _bare_numbers(model, q, qd, tau, f_ext):
    return [None, tau[1][0], tau[2][0]]


SHAPES = {
    _uneven: r"mine: qdd of joint 'joint1': wanted 1 number, got 2",
    _too_long: r"mine: qdd: wanted a list of 3 entries, .* got 4",
    _too_short: r"mine: qdd: wanted a list of 3 entries, .* got 2",
    _one_number: r"mine: qdd: wanted a list of 3 entries, .* got a number",
    _bare_numbers: r"of joint 'joint1': wanted a Vector of 1 number, .* got a number",
}


@pytest.mark.parametrize("algorithm", SHAPES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("engine", ["plain", "graph"])
def test_results_of_the_wrong_size_are_refused_by_joint(shipped, algorithm, engine):
    """No joint is driven by the number of another one."""
    model = shipped["two_link"]
    with pytest.raises(dyn.ShapeError, match=SHAPES[algorithm]):
        program = _solver(algorithm).build(model, engine=engine)
        program(*np.zeros((3, model.nv)))


def test_flat_results_of_the_wrong_size_are_refused(shipped):
    """Vectors of another length, and another number of results."""
    model = shipped["two_link"]

    def longer(model, q, qd, tau, f_ext):
        return dyn.authoring.Vector([*tau, 1.0])

    def two(model, q, qd):
        return q

    with pytest.raises(dyn.ShapeError, match="mine: qdd: wanted 2 numbers.*got 3"):
        _solver(longer, by_joint=False).build(model, engine="graph")(*np.zeros((3, 2)))
    energy = _solver(two, dyn.problems.ENERGY, by_joint=False)
    with pytest.raises(dyn.ShapeError, match="y.*kinetic.*number|wanted 2 results"):
        energy.build(shipped["arm7"], engine="graph")(*np.zeros((2, 7)))


def _index(model, q, qd, tau, f_ext):
    return [None, *(tau[k][7:][3] for k in model.bodies)]


def _numpy(model, q, qd, tau, f_ext):
    return [None, *(np.sin(x) for x in tau[1:])]


@pytest.mark.parametrize("algorithm", [_index, _numpy], ids=lambda f: f.__name__)
def test_what_an_algorithm_raises_names_solver_plugin_file_and_line(shipped, algorithm):
    """An error of Python in an algorithm comes out as a TraceError."""
    registry, plugin = Registry(), types.ModuleType("leaky")
    plugin.dyn_solvers = dyn.authoring.hookimpl(lambda: [_solver(algorithm)])
    registry.register(plugin)
    solver = registry.solver("mine")
    line = algorithm.__code__.co_firstlineno + 1
    message = rf"mine \(leaky\): .*test_third_party.py:{line}"
    with pytest.raises(dyn.TraceError, match=message) as caught:
        solver.build(shipped["two_link"], engine="graph")(*np.zeros((3, 2)))
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    "name", ["", "a b", "a\nb", "aba\u202e", "\u0430ba", "2nd", "a-b", None, 3]
)
def test_names_of_solvers_are_plain_identifiers(name):
    """No empty name, no line feed, no look-alike of another alphabet."""
    plugin = types.ModuleType("odd")
    offer = _solver(lambda *x: x[3], name=name)
    plugin.dyn_solvers = dyn.authoring.hookimpl(lambda: [offer])
    with pytest.raises(dyn.PluginError, match="valid: letters a-z, digits and undersc"):
        Registry().register(plugin)


def test_a_plugin_can_be_unregistered_and_registered_anew():
    """Its solvers go with it; a name that clashed is free again."""
    registry = Registry()
    first, second = types.ModuleType("first"), types.ModuleType("second")
    for plugin in (first, second):
        plugin.dyn_solvers = dyn.authoring.hookimpl(lambda: [_solver(lambda *x: x[3])])
    with pytest.raises(dyn.PluginError, match="first is not registered"):
        registry.unregister(first)
    registry.register(first)
    with pytest.raises(dyn.PluginError, match="that first offers too"):
        registry.register(second)
    registry.unregister(first)
    assert registry.names() == []
    registry.register(second)
    assert registry.solver("mine").origin == "second"


def test_unknown_inputs_of_a_build_name_what_is_valid(shipped):
    """The nearest optional input or parameter path; no input twice."""
    rnea, model = dyn.solver("rnea"), shipped["two_link"]
    for inputs, message in (
        ("f_ex", "did you mean 'f_ext'"),
        ("joint1.dampng", "did you mean 'joint1.damping'"),
        ("joint.damping", "no moving joint is called 'joint'; did you mean 'joint"),
        ("lnk1.mass", "no link is called 'lnk1'; did you mean 'link1'"),
    ):
        with pytest.raises(dyn.ModelError, match=message):
            rnea.build(model, inputs=[inputs])
    with pytest.raises(dyn.UnsupportedError, match="'q' is an input .* already"):
        rnea.build(model, inputs=["q"])


def test_unknown_names_name_the_nearest(shipped):
    """Solvers, problems, options, slots, engines, links, joints, robots."""
    model, step = shipped["two_link"], dyn.solver("semi_implicit_euler")
    for ask, message in (
        (lambda: dyn.solver("RNEA"), "did you mean 'rnea'"),
        (lambda: dyn.solvers("step_"), "did you mean 'step_derivatives' or 'step'"),
        (lambda: dyn.problems.find("jacobean"), "did you mean 'jacobian'"),
        (lambda: step.build(model, limit_stop=True), "did you mean 'limit_stops'"),
        (lambda: step.build(model, forward_dynamic="aba"), "mean 'forward_dynamics'"),
        (lambda: step.build(model, engine="nativ"), "did you mean 'native'"),
        (lambda: model.frame("lnk2"), "no link is called 'lnk2'; did you mean 'link2'"),
        (lambda: model.body_of_joint("joint_1"), "did you mean 'joint1'"),
        (lambda: dyn.robots.path("arm"), "did you mean 'arm7'"),
        (lambda: dyn.robots.path("ARM7"), r"did you mean 'arm7'\?"),
        (lambda: dyn.simulate(model, T=1.0), r"'T'; did you mean 'duration'\?"),
        (lambda: dyn.simulate(model, dt=1e-3), r"'dt'; did you mean 'period'\?"),
        (lambda: RobotTask(period=1e-3), r"'period'; did you mean 'dt'\?"),
        (lambda: dyn.solver("gravity")(model, [0.0, 0.0]),
         r"dyn.solver\('gravity'\).build\(model\)\(q\)"),
        (lambda: step.build(model, forward_dynamics="abba"),
         "no solver is called 'abba'; did you mean 'aba'. valid for forward_dynamics:"),
    ):  # fmt: skip
        with pytest.raises(dyn.DynError, match=message):
            ask()
    names = ["ur5_gripper", "ur5_robot", "ur5", "manipulability", "manipulability"]
    assert nearest("UR5", names)[0] == "ur5"
    assert unknown_name("solver", "M", names).count("manipulability") == 2


def _textbook_rnea(model, q, qd, qdd, f_ext):
    """Recursive Newton-Euler for constant axes without rotors."""
    v, a, f = [Motion.zero()], [-model.a_grav], [Force.zero()]
    X, S, tau = [None], [None], [None] * (model.nb + 1)
    for i in model.bodies:
        p, joint, I = model.parent[i], model.joint[i], model.I[i]
        S.append(joint.S(q[i]))
        X.append(joint.X(q[i]) @ model.Xtree[i])
        v.append(X[i] @ v[p] + S[i] @ qd[i])
        a.append(X[i] @ a[p] + S[i] @ qdd[i] + cross(v[i], S[i] @ qd[i]))
        f.append(I @ a[i] + cross(v[i], I @ v[i]) - f_ext[i])
    for i in reversed(model.bodies):
        tau[i] = S[i].T @ f[i]
        f[model.parent[i]] = f[model.parent[i]] + X[i].T @ f[i]
    return tau


def test_a_law_that_fails_names_rotors_and_axes_that_vary(shipped):
    """A textbook's recursion lacks them; the solver that has them gets no such line."""
    textbook = TracedSolver("textbook", INVERSE_DYNAMICS, _textbook_rnea)
    robot = shipped["every_joint"]
    lines = list(conformance.report(textbook, [robot], "graph"))
    said = [x for x in lines if "rotor inertia (model.armature) at" in x]
    assert f"{robot.name} has" in said[0]
    assert re.search(r"axes that vary \(joint.cJ\) in joints of type planar", said[0])
    assert "follow others (mimic; cluster_joints): 'finger_a_joint'" in said[0]
    whole = list(conformance.report(dyn.solver("rnea_spatial"), [robot], "graph"))
    assert not any("rotor" in x for x in whole)

    def upward(model, q, qd, qdd, f_ext):
        """Weigh the wrong way round."""
        tau = _textbook_rnea(model, q, qd, qdd, f_ext)
        return [None, *(-1.0 * x for x in tau[1:])]

    wrong = TracedSolver("upward", INVERSE_DYNAMICS, upward)
    plain = list(conformance.report(wrong, [shipped["arm7"]], "graph"))
    assert any("FAIL" in x for x in plain)
    assert not any("arm7 has" in x for x in plain)


def test_a_refusal_that_is_no_sentence_is_told_what_it_lacks(shipped):
    """Which joint, and what would be valid."""
    arm = shipped["two_link"]
    for why, good in (("joint1 follows", False), ("'joint1' turns; valid: none", True)):
        made = TracedSolver("few", GRAVITY_FORCE, _zero, supports=_only(why))
        lines = list(conformance.report(made, [arm], "graph"))
        assert any("names a joint or body, as 'joint1'" in x for x in lines) != good


def _only(why):
    """Return a function that refuses one robot, for this reason."""
    return lambda model: why if model.name == "two_link" else None


def _zero(model, q):
    return Vector.zeros(model.nv)


def test_what_authors_forget_is_told_with_their_line(shipped):
    """A required number has no list of links; a misspelt attribute is their line."""
    arm = shipped["two_link"]

    def gained(model, q, gain):
        return [gain * x for x in q]

    made = TracedSolver("gained", GRAVITY_FORCE, gained, by_joint=False,
                        options={"gain": Required("the gain [1]")})  # fmt: skip
    with pytest.raises(dyn.UnsupportedError, match=r"gain \[1\]; see its help page$"):
        made.build(arm)
    np.testing.assert_array_equal(made.build(arm, gain=2.0)(np.ones(2)), [2.0, 2.0])

    with pytest.raises(
        dyn.UnsupportedError, match="fills: no slot rneaa; did you mean"
    ):
        TracedSolver("filled", GRAVITY_FORCE, lambda model, q, rnea: q,
                     slots={"rnea": INVERSE_DYNAMICS}, fills={"rneaa": "auto"})  # fmt: skip

    class Nameless(NumpySolver):
        signature = GRAVITY_FORCE

        def solve(self, model, q):
            return q

    with pytest.raises(dyn.SignatureError, match="Nameless has no name; valid: name"):
        Nameless().build(arm)

    def misspelt(model, q):
        return model.agrav

    with pytest.raises(
        dyn.TraceError, match=rf"'a_grav'.* at {re.escape(__file__)}:\d+, in misspelt"
    ):
        TracedSolver("misspelt", GRAVITY_FORCE, misspelt).build(arm)(np.ones(2))


def test_names_of_the_page_for_authors_exist(shipped):
    """Attributes of the robot and its joints, and names of dyn_core.authoring."""
    page = (README.parent / "dyn_plugins/README.md").read_text()
    table = page[page.index("What the robot offers") : page.index("What it may do")]
    model = shipped["every_joint"]
    names = set(re.findall(r"`model\.(\w+)|, `model\.(\w+)", table))
    assert {"I", "Xtree", "a_grav", "armature"} <= {x for pair in names for x in pair}
    assert all(hasattr(model, x) for pair in names for x in pair if x)
    assert all(
        hasattr(model.joint[1], x) for x in re.findall(r"joint\[i\]\.(\w+)", table)
    )
    values = re.findall(r"`([A-Z]\w+[a-z])`|`(\w+)\([a-z], [a-z]\)", table)
    assert len(values) >= 8
    assert all(hasattr(dyn.authoring, a or b) for a, b in values)


def test_a_spatial_value_without_a_method_names_the_function():
    """cross is a function of two spatial values, @ the scalar product."""
    for value in (dyn.authoring.Motion.zero(), dyn.authoring.Force.zero()):
        for name in ("cross", "angular"):
            with pytest.raises(
                AttributeError,
                match=rf"attribute '{name}'; valid: ang,"
                r" lin, .*, cross\(v, x\) of dyn_core.authoring",
            ):
                getattr(value, name)
        assert not hasattr(value, "__array_interface__")


def test_a_contact_solver_of_one_file_steps_worlds(fresh):
    """The example of the page of plugins slides and bounces a ball as the default does."""
    page = (README.parent / "dyn_plugins/README.md").read_text()
    module = next(x for x in re.findall(r"```python\n(.*?)```", page, re.S)
                  if "class Splitting" in x)  # fmt: skip
    solver = fresh(contact_dyn=module).solver("my_splitting")
    assert "contact_dyn" in solver.origin
    material = {"default": {"mu": 0.3, "restitution": 0.8}}
    ends = []
    for chosen in ("coulomb_newton", solver):
        model = dyn.load_urdf(
            BALL, root_joint="floating", extras={"materials": material}
        )
        sim = dyn.ContactSimulator(
            model,
            {"solver": chosen, "restitution": "poisson"},
            q0=[0, 0, 0.11, 0, 0, 0, 1],
            qd0=[0, 0, 0, 1.0, 0, -1.0],
        )
        for k in range(40):
            sim.advance(k * sim.period)
        assert not sim.counters
        ends.append(np.concatenate([sim.q, sim.qd]))
    np.testing.assert_allclose(*ends, atol=1e-7)


def test_a_contact_solver_that_cannot_be_called_is_refused():
    """At its definition: it takes a problem, a warm start, and options with defaults."""
    for solve in (lambda self, problem: None, lambda self, problem, warm, size: None):
        with pytest.raises(
            dyn.SignatureError, match="valid: .self, problem, warm=None, option"
        ):
            type("Wrong", (ContactSolver,), {"name": "wrong", "solve": solve})
    options = type(
        "Right",
        (ContactSolver,),
        {"name": "right", "solve": lambda self, problem, warm=None, size=3: None},
    ).options
    assert options == {"size": 3}


def test_a_wrong_argument_of_a_joint_names_the_line_of_the_algorithm(shipped):
    """Not the line of the joint's own file, which is right and not the author's.

    Without machine code the first call traces.
    """

    def whole(model, q):
        model.joint[1].X(q)

    wrong = TracedSolver("whole", GRAVITY_FORCE, whole)
    for robot in ("arm7", "quadruped"):
        with pytest.raises(
            dyn.TraceError, match=rf"at {re.escape(__file__)}:\d+, in whole"
        ):
            wrong.build(shipped[robot])(shipped[robot].neutral())


def test_a_file_is_checked_as_its_module(monkeypatch, tmp_path, capsys):
    """`dyn check-plugin my_solvers.py`; before it is installed, how to install it."""
    _package(tmp_path, "filed_dyn", GOOD)
    (tmp_path / "filed_dyn" / "__init__.py").rename(tmp_path / "filed_dyn.py")
    (tmp_path / "filed_dyn").rmdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    loaded = Registry()
    loaded.load()
    monkeypatch.setattr(
        "dyn_core.testing.plugin_check.default_registry", lambda: loaded
    )
    assert cli.main(["check-plugin", "filed_dyn.py", "--robot", "two_link"]) == 0
    assert "0 laws broken" in capsys.readouterr().out
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (here / "filed_dyn.py").write_text("# changed since it was installed")
    assert cli.main(["check-plugin", "filed_dyn.py", "--robot", "two_link"]) == 1
    said = capsys.readouterr().err
    assert "filed_dyn.py is not what is installed, which is /" in said
    (here / "filed_dyn.py").write_bytes((tmp_path / "filed_dyn.py").read_bytes())
    assert cli.main(["check-plugin", "filed_dyn.py", "--robot", "two_link"]) == 0
    module = types.ModuleType("filed_dyn.inside")  # of a package
    module.__file__ = str(tmp_path / "inside.py")
    monkeypatch.setitem(sys.modules, "filed_dyn.inside", module)
    mine = loaded.solver("my_gravity")
    monkeypatch.setattr(mine, "origin", mine.origin.replace("dyn)", "dyn.inside)"))
    for folder in (tmp_path, here):
        (folder / "inside.py").write_text("")
    assert cli.main(["check-plugin", "inside.py", "--robot", "two_link"]) == 0
    assert "1 solver, 1 robot: 0 laws broken" in capsys.readouterr().out
    assert cli.main(["check-plugin", "other_dyn.py"]) == 1
    said = capsys.readouterr().err
    assert "pip install -e ." in said
    assert "an entry point of the group dyn_core in its pyproject.toml" in said


def _first(model, q, qd, tau, f_ext):
    return q[0]


def _compared(model, q, qd, tau, f_ext):
    return [None, *(q[k] if q[k] > 0 else qd[k] for k in model.bodies)]


def _library_sine(model, q, qd, tau, f_ext):
    return [None, *(math.sin(q[k]) for k in model.bodies)]


def _shifted(model, q, qd, tau, f_ext):
    return [None, *(q[k] + 1.0 for k in model.bodies)]


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (_compared, r"column, not a number; valid: one entry, as q\[i\]\[0\]"),
        (
            _library_sine,
            r"column, not a number; .*sin, sqrt, ... of dyn_core.authoring",
        ),
        (_shifted, r"a Vector and a number do not add; valid: Vector\(\[x\]\)"),
    ],
)
def test_a_column_taken_for_a_number_leads_to_its_entry(shipped, algorithm, message):
    """Python's TypeErrors named neither the entry nor the functions of algorithms."""
    program = _solver(algorithm).build(shipped["two_link"], engine="graph")
    with pytest.raises(dyn.TraceError, match=message):
        program(*np.zeros((3, 2)))


def test_joint_forces_of_the_wrong_size_name_the_solver(shipped):
    """The entry of the base, and an inner product; the errors named no solver."""
    signature, zeros = dyn.problems.INVERSE_DYNAMICS, np.zeros((3, 2))
    for algorithm, by_joint in ((_first, True), (lambda m, q, *_: q @ q, False)):
        mine = TracedSolver("mine", signature, algorithm, by_joint=by_joint)
        program = mine.build(shipped["two_link"], engine="graph")
        with pytest.raises(dyn.ShapeError, match="mine: tau: wanted 2 numbers, got"):
            program(*zeros)


def test_a_solver_of_no_signature_or_function_is_refused(shipped):
    """Names in their place ended in AttributeErrors of `str`."""
    with pytest.raises(dyn.SignatureError, match="is 'inverse_dynamics'; valid: a Sig"):
        TracedSolver("mine", "inverse_dynamics", _first).build(shipped["two_link"])
    with pytest.raises(dyn.SignatureError, match="is 'mine.py'; valid: a function"):
        TracedSolver("mine", dyn.problems.INVERSE_DYNAMICS, "mine.py")


def test_auto_in_a_slot_of_a_solver_on_its_own_names_the_problem(shipped):
    """It advised dyn.solver('auto'), which is none."""

    def through(model, q, qd, qdd, f_ext, inner):
        return inner(q, qd, qdd, f_ext)

    signature = dyn.problems.INVERSE_DYNAMICS
    slots = {"slots": {"inner": signature}, "fills": {"inner": "auto"}}
    mine = TracedSolver("mine", signature, through, **slots)
    with pytest.raises(dyn.SignatureError, match=r"valid: dyn.solver\('inverse_dynam"):
        mine.build(shipped["two_link"])
