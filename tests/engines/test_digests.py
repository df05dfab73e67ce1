"""What decides that a kernel is stale names every module that shapes it."""

import ast
import contextlib
import copy
import cProfile
import functools
import importlib
import io
import pickle
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control.modes.tool_sampling import sampling_program
from dyn_core.control.safety import envelope
from dyn_core.engines.graph.trace import trace
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.llvm.cached import fingerprint, trace_cache
from dyn_core.export.cycle.controller_cycle import CYCLES, control_cycle
from dyn_core.identification.excitation import kernels as excitation
from dyn_core.prediction.shooting import DISPLACEMENT
from dyn_core.problems import CARTESIAN_CONTROL
from dyn_core.recordings import energy
from dyn_core.tasks import TASKS, planar_task
from dyn_core.tasks.task import OBSERVATION
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


def _name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {
    _name(path): path
    for package in ("dyn_core", "dyn_plugins")
    for path in (ROOT / package).rglob("*.py")
}


@functools.cache  # several tests ask for the same files
def _imports(module):
    """Return the modules that one imports, also inside functions."""
    modules = set()
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= inside & FILES.keys() or {node.module}
    return frozenset(modules & FILES.keys())


def test_every_module_of_the_compiler_is_digested():
    """Each module of the llvm folder is a writer, or shapes no code for a reason."""
    modules = [name for name in FILES if name.startswith(LLVM)]
    faults = [
        m for m in modules if m not in host_machine._WRITERS and m not in NOT_WRITERS
    ]
    assert not faults, f"add to host_machine._WRITERS: {faults}"
    assert not NOT_WRITERS.keys() & set(host_machine._WRITERS)


def test_what_the_writers_import_is_digested():
    """No writer gets code from a module whose change would not be noticed."""
    imported = set().union(*(_imports(name) for name in host_machine._WRITERS))
    faults = [
        m for m in imported if m not in host_machine._WRITERS and m not in NOT_WRITERS
    ]
    assert not faults, f"add to host_machine._WRITERS: {faults}"


@pytest.mark.parametrize("names", [
    host_machine._WRITERS, tuple(NOT_WRITERS),
], ids=["writers", "not_writers"])  # fmt: skip
def test_every_name_is_a_module(names):
    """A module that moved leaves no name behind that matches nothing."""
    assert len(set(names)) == len(names)
    assert not [name for name in names if name not in FILES]


def _digested(*named):
    """Return the modules in the key of a function that names these modules."""
    return set(fingerprint.traced_modules(trace_cache._PACKAGES, named).modules)


def _digested_for(function):
    """Return the modules in the key of a function; of one without a key, the fewest."""
    pickler = trace_cache._Pickler(io.BytesIO())
    with contextlib.suppress(pickle.PicklingError, AttributeError, TypeError):
        pickler.dump(function)
        return _digested(*pickler.modules)
    return _digested()


def _trees(word):
    """Yield name and syntax tree of each module that has a word: few are parsed."""
    for name, path in FILES.items():
        if word in (text := path.read_text(encoding="utf-8")):
            yield name, ast.parse(text)


def _marks():
    """Return the mark of each module and package that has one."""
    marks = {}
    for name, tree in _trees(fingerprint.MARK):
        for node in tree.body:
            if isinstance(node, ast.Assign):
                if fingerprint.MARK in map(ast.unparse, node.targets):
                    marks[name] = ast.literal_eval(node.value)
    return marks


def _modules_run(function, width):
    """Return the modules whose functions run while a function is traced."""
    profile = cProfile.Profile(subcalls=False, builtins=False)
    profile.runcall(trace, function, width)
    files = {getattr(entry.code, "co_filename", "") for entry in profile.getstats()}
    return {name for name, path in FILES.items() if str(path) in files}


def _energy(model):
    """Build the Program of an energy ledger's friction."""
    made = energy.TracedSolver(
        "joint_friction", energy.JOINT_FRICTION, energy.joint_friction, by_joint=False
    )
    return [made.build(model, engine="plain", joint_friction=True)]


def _envelope(model):
    """Build the Program of a safety envelope."""
    bounds, effort = envelope.Bounds(kinetic_energy=9.0), np.full(model.nv, 100.0)
    return [envelope.Envelope(model, bounds, effort, "plain").program]


def _excitation(model):
    """Build the Programs of an excitation's design."""
    points, speeds = [(model.nb, 0.1, 0.2, 0.3)], np.zeros(model.nb + 1)
    motion = excitation.motion_programs(model, (0, 1), speeds, "plain")
    return [*motion, *excitation.point_programs(model, points, "plain")]


def _cycles(model):
    """Build the Programs of all control cycles."""
    tool = {"cartesian.frame": model.frame_names[-1]}
    return [
        control_cycle(
            name, model, engine="plain", **(tool if kind is CARTESIAN_CONTROL else {})
        )
        for name, (_, kind, *_) in CYCLES.items()
    ]


# Modules of dyn_core that build Programs of their own algorithms.
BUILDERS = {
    "dyn_core.control.modes.tool_sampling": lambda model: [
        sampling_program(model, model.frame_names[-1], "aligned", "plain")
    ],
    "dyn_core.control.safety.envelope": _envelope,
    "dyn_core.export.cycle.controller_cycle": _cycles,
    "dyn_core.identification.excitation.kernels": _excitation,
    "dyn_core.prediction.shooting": lambda model: [
        DISPLACEMENT.build(model, engine="plain")
    ],
    "dyn_core.recordings.energy": _energy,
    "dyn_core.tasks.task": lambda model: [
        solver.build(planar_task(name), engine="plain")
        for solver in (OBSERVATION, dyn.solver("task_step"))
        for name in TASKS
    ],
}
# They make Programs of algorithms that they are given.
NO_ALGORITHM = (
    "dyn_core.solving.solver",
    "dyn_core.testing.laws.every_law",
    "dyn_core.testing.flat_programs",
)


def test_every_builder_of_programs_is_traced_here():
    """No module makes a TracedSolver whose algorithm is not traced below."""
    makers = set()
    for name, tree in _trees("TracedSolver"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "TracedSolver":
                makers.add(name)
    makers = {name for name in makers if name.startswith("dyn_core.")}
    assert makers - set(NO_ALGORITHM) == BUILDERS.keys()


SLOPES = ("derivatives", "second", "jacobian_loops", "payload_filter")


@pytest.fixture(scope="module")
def run():
    """Pairs (modules run, modules digested) of the algorithms of plugins and dyn_core."""
    programs = []
    for name in dyn.solvers(references=True):
        solver = dyn.solver(name)
        if hasattr(solver, "algorithm"):
            kind = dyn.default_registry().system(solver.signature.system)
            # Slopes run the modules of their solver once for each number of a state.
            joints = 1 if any(word in name for word in SLOPES) else 2
            model, rng = served_model(solver, 3, joints), np.random.default_rng(0)
            programs.append(kind.case(solver, model, "plain", rng).program())
    arm = dyn.load("two_link")  # runs the same modules as arms of more joints
    for build in BUILDERS.values():
        programs += build(arm)
    pairs = []
    for program in programs:
        function, size = program.function, sum(port.size for port in program.inputs)
        pairs.append((_modules_run(function, size), _digested_for(function)))
    return pairs


def test_all_that_runs_while_algorithms_are_traced_is_digested(run):
    """No mark leaves out a module whose code shapes a Graph."""
    everything = set().union(*(modules for modules, _ in run))
    for package in ("dyn_core.model.", "dyn_core.spatial.", "dyn_plugins."):
        assert any(name.startswith(package) for name in everything), package
    faults = set().union(*(modules - digested for modules, digested in run))
    assert not faults, "their marks are wrong"


def test_a_changed_algorithm_of_a_wing_is_traced_again(monkeypatch):
    """Kernels on disk of an excitation's design were found by the old code, too."""
    (program, _, _, _) = _excitation(dyn.load("arm7"))
    before = trace_cache.key(program.function, "")
    changed = (lambda *state, **options: 1.0).__code__
    monkeypatch.setattr(excitation.motion_rows, "__code__", changed)
    assert before is not None
    assert trace_cache.key(program.function, "") != before


def test_each_mark_is_needed(run):
    """A mark is one of two words; a module of the wings runs, any other does not."""
    everything = set().union(*(modules for modules, _ in run))
    marks = _marks()
    wings = {name for name, mark in marks.items() if mark == fingerprint.WINGS}
    # Flat programs are traced by tests of engines alone.
    assert wings - everything == {"dyn_core.testing.flat_programs"}
    assert set(marks.values()) == {fingerprint.NEVER, fingerprint.WINGS}
    for name in marks:
        importlib.import_module(name)
    assert not _digested() & marks.keys()
    assert _digested("dyn_core.export") & marks.keys() == wings


def test_what_is_always_digested_imports_nothing_of_wings():
    """So an algorithm that names no wing runs no code of one."""
    wings = {name for name, mark in _marks().items() if mark == fingerprint.WINGS}
    always = _digested() & FILES.keys()
    assert len(always) > 300
    assert not {name: x for name in always if (x := _imports(name) & wings)}


@pytest.mark.parametrize(
    "name", ["dyn_core.spatial", "dyn_core.spatial.lie", "dyn_plugins.dynamics"]
)
def test_a_wrong_mark_is_noticed(name, run, monkeypatch):
    """The tests above can fail."""
    module = importlib.import_module(name)
    monkeypatch.setattr(module, fingerprint.MARK, fingerprint.NEVER, raising=False)
    assert any(modules - _digested("dyn_core.export") for modules, _ in run)


def test_a_new_module_is_digested_unless_the_nearest_mark_says_otherwise(monkeypatch):
    """A forgotten mark costs time, never a wrong torque; no mark is that of a whole distribution."""
    before = fingerprint.of_traced_code(trace_cache._PACKAGES, ())

    def digest(name, **values):
        module = types.ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
        return fingerprint.of_traced_code(trace_cache._PACKAGES, ())

    assert digest("dyn_core.export.my_new", FACTOR=1.0) == before
    seen = {before}
    for name, values in (
        ("dyn_core.my_new", {"FACTOR": 1.0}),
        ("dyn_core.my_new", {"FACTOR": 2.0}),
        ("dyn_core.spatial.my_new", {"FACTOR": 2.0}),
        ("dyn_plugins.my_new", {"FACTOR": 2.0}),
        (
            "dyn_core.export.my_new",
            {"FACTOR": 2.0, fingerprint.MARK: "a misspelt mark"},
        ),
    ):
        seen.add(digest(name, **values))
    assert len(seen) == 6


def _add(named):
    named["KEPT"].add("more")


def _assign(named):
    named["RECORD"].inner = 2.0


def _assign_slot(named):
    named["SLOTTED"].field = 2.0


def _replace_scalar(named):
    named["SCALAR"] = np.float64(2.0)


def _replace_tuple(named):
    named["PAIR"] = type(named["PAIR"])(2.0)


@pytest.mark.parametrize(
    "change", [_add, _assign, _assign_slot, _replace_scalar, _replace_tuple]
)
def test_a_changed_table_is_noticed(change, monkeypatch):
    """What traced code reads from a set, a record or a number is in its key."""
    module = types.ModuleType("fingerprinted")
    source = """
from dataclasses import dataclass
from typing import NamedTuple
@dataclass
class Record:
    inner: float
class Slotted:
    __slots__ = "field"
class Pair(NamedTuple):
    first: float
"""
    named = vars(module)
    exec(source, named)
    named |= {"KEPT": {"one"}, "RECORD": named["Record"](1.0), "SLOTTED": named["Slotted"](),
              "SCALAR": np.float64(1.0), "PAIR": named["Pair"](1.0)}  # fmt: skip
    monkeypatch.setitem(sys.modules, "fingerprinted", module)
    before = fingerprint.of_code(("fingerprinted",))
    kept = fingerprint._kept["fingerprinted",]
    assert kept.holds({"fingerprinted": module})
    copy.copy(named["RECORD"]), copy.copy(named["SLOTTED"])  # classes note their slots
    assert kept.holds({"fingerprinted": module})
    change(named)
    assert fingerprint.of_code(("fingerprinted",)) != before


def test_a_module_without_a_mark_has_none():
    """The search ends where no package is left."""
    assert fingerprint._nearest("dyn_core.spatial", {}) == ""


WINGS = """
import sys, warnings
warnings.simplefilter("ignore")
import dyn_core as dyn
from dyn_core.engines.llvm.cached import trace_cache
program = dyn.solver("rnea").build(dyn.load("two_link"), engine="plain")
print(trace_cache.key(program.function, ""))
for name in sys.argv[1:]:
    __import__(f"dyn_core.{name}")
print(trace_cache.key(program.function, ""))
"""


def test_wings_that_are_imported_leave_keys():
    """What else is imported makes no other key: a cache would be of no use then."""
    wings = ["batch", "commands.sim", "envs.vector", "export", "reports", "view"]
    done = subprocess.run(
        [sys.executable, "-c", WINGS, *wings],
        capture_output=True,
        text=True,
        check=True,
    )
    before, after = done.stdout.split()
    assert before == after
    assert before.startswith("trace-")


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
