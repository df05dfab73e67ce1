"""How the suite is run (workers, --full, markers), and the robots that all tests share."""

import collections
import functools
import gc
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.engines import ENGINES
from dyn_core.signals import ENDING

FOLDER = Path(__file__).parent
# The package bench; trials, the fuzzer, other machines.
sys.path[:0] = [str(FOLDER), str(FOLDER / "support")]
MOST_WORKERS = 4

# The quick choice: something of every folder, where little is compiled.
QUICK = (
    "spatial", "model/test_any_file.py", "model/test_follower_limits.py",
    "model/test_model.py", "model/test_sources.py", "model/test_springs.py", "model/test_urdf.py",
    "bridges/test_ffi_handler.py", "export/test_fused.py", "engines/test_any_array.py", "engines/test_entry.py", "engines/test_functions.py", "export/test_interface.py", "export/test_gpu.py",
    "solvers/test_identities.py", "contact/test_cases.py", "contact/test_robots.py", "doctor",
    "planar/test_files.py", "planar/test_states.py", "oracles/test_kim_derivatives.py",
    "oracles/test_kim_hybrid.py", "plugins", "nodes/test_conversions.py", "reports/test_motion_files.py",
    "nodes/test_transitions.py", "launch_files", "control/test_control.py", "docs/test_docs.py",
    "house/test_house.py", "prediction/test_linear.py", "prediction/test_costs.py", "identification/test_identification.py", "simulation/test_simulate.py", "control/reference/test_trajectory.py",
    "view/test_scene.py", "export/test_laws.py", "bridges/test_casadi.py", "batch/test_map_rows.py",
    "bench/test_bench_contact.py", "commands/test_check_derivatives.py", "mutation", "validation/test_validation.py", "envs/test_robot_envs.py",
)  # fmt: skip
# Of parametrised and of long tests there, what stays.
QUICK_ROBOTS = ("two_link", "cart_pole")
NOT_QUICK = (
    "test_laws_on_random_trees", "test_laws_on_other_systems", "installed_by_pip",
    "test_blocks_of_python_run", "test_standard_deviations",
    "of_the_native_engine", "both_forms_and_layouts", "ptxas_takes",
    "base_parameters[quadruped", "base_parameters[every_joint",
)  # fmt: skip
# Folders whose tests take one engine in turn; all with --full.
TURNS = ("contact/", "model/", "oracles/", "planar/")
# CPU seconds of each function of tests that takes over half of one; by `--measure`.
LONG = FOLDER / "long_tests.txt"
LONG_HEAD = (
    "# Tests of over 0.5 CPU seconds, see tests/README.md; by pytest -n 0 --measure"
)
LONG_SECONDS = 0.5
MEASURED = pytest.StashKey()
# Never in turn, however long: what can hurt. Of tests over DDS, commands take turns.
ALWAYS = ("control/safety/", "nodes/test_")
LEAST_SHARE = 0.25  # of a long test's parameter sets, or of its runs
# They compile the same functions of contact steps, for ten seconds each: in one worker.
STEPPING = ("contact/", "envs/", "reports/", "simulation/", "bench/", "view/")


def pytest_addoption(parser):
    """Add --full: every solver on every random tree and engine, and the long tests."""
    parser.addoption(
        "--full", action="store_true", help="run everything, not a rotation"
    )
    parser.addoption(
        "--measure",
        action="store_true",
        help=f"run long tests, too, and write their times to {LONG.name}; with -n 0",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Run the whole suite on all cores (at most 4); a part of it runs in one process.

    `-n` decides where it is given, and without pytest-xdist everything is one process.
    Long tests take turns in the whole suite, not where some are asked for.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # a worker, which must not start workers
    options = config.option
    whole = config.args in ([], config.getini("testpaths"))
    options.in_turn = (whole or "CI" in os.environ) and not options.measure
    if whole and getattr(options, "numprocesses", 0) is None:
        options.numprocesses = "auto"
        options.maxprocesses = options.maxprocesses or MOST_WORKERS
        options.dist = "worksteal"


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_configure_node(node):
    """Tell a worker whether long tests take turns; it knows registered options alone."""
    node.workerinput["in_turn"] = node.config.option.in_turn


@functools.cache  # thousands of tests stand in a few hundred files
def _place(path):
    """Return the path of a file of tests from here; empty for a foreign file."""
    inside = path.is_relative_to(FOLDER)  # not in a run that borrows this file
    return path.relative_to(FOLDER).as_posix() if inside else ""


@functools.cache
def _has_quick_tests(path):
    """Return whether a file belongs to the quick choice, or stands in such a folder."""
    place = _place(path)
    return any(place == x or place.startswith(f"{x}/") for x in QUICK)


def _is_quick(item):
    """Return whether a test belongs to the quick choice."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    return (
        _has_quick_tests(item.path)
        and not any(x in item.name for x in NOT_QUICK)
        and params.get("robot", QUICK_ROBOTS[0]) in QUICK_ROBOTS
    )


def _other_turns(items):
    """Return the tests whose like on another engine has its turn.

    Of a test that is parametrised by the engine, one engine each, in a seeded rotation
    over its other parameters. Tests of the engines themselves run on all.
    """
    likes = {}
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        engine = params.get("engine")
        if engine in ENGINES and _place(item.path).startswith(TURNS):
            name = item.nodeid.replace(engine, "")
            likes.setdefault(name, []).append(item)
    others = []
    for name, alike in likes.items():
        others += alike
        others.remove(alike[zlib.crc32(name.encode()) % len(alike)])
    return others


def _other_values(items):
    """Return the tests of the marker `turns` whose like has its turn.

    Tests that differ in the parameters of the marker alone are alike, and one of them
    runs. The turn goes round with the other parameters, so that each value runs with
    some of them.
    """
    tests = {}
    for item in items:
        if marker := item.get_closest_marker("turns"):
            params = item.callspec.params
            if not params.keys() >= set(marker.args):
                names = ", ".join(params)
                raise pytest.UsageError(f"{item.nodeid}: turns of names not in {names}")
            # Values may have no hash; each is one object in all tests.
            rest = tuple(id(params[x]) for x in params if x not in marker.args)
            likes = tests.setdefault(item.nodeid.partition("[")[0], {})
            likes.setdefault(rest, []).append(item)
    others = []
    for name, likes in tests.items():
        for turn, alike in enumerate(likes.values(), zlib.crc32(name.encode())):
            others += alike
            others.remove(alike[turn % len(alike)])
    return others


def _not_drawn(items):
    """Return the tests of the marker `one_of` that are not drawn.

    The draw is seeded by the name of the test and balanced: each value of a parameter
    runs about as often as the others.
    """
    tests = {}
    for item in items:
        if item.get_closest_marker("one_of"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    others = []
    for name, left in tests.items():
        (share,) = left[0].get_closest_marker("one_of").args
        random.Random(zlib.crc32(name.encode())).shuffle(left)
        runs = collections.Counter()
        for _ in range(-(-len(left) // share)):
            item = min(left, key=lambda x: sum(runs[v] for v in _values(x)))
            runs.update(_values(item))
            left.remove(item)
        others += left
    return others


def _not_in_turn(items):
    """Return the long tests whose turn it is not.

    A function that takes S seconds (LONG) runs LONG_SECONDS / S of its tests, at least
    LEAST_SHARE. They are drawn anew for each commit.
    """
    seconds = dict(line.split() for line in LONG.read_text("utf-8").splitlines()[1:])
    tests, others = {}, []
    for item in items:
        if _function(item) in seconds:
            tests.setdefault(_function(item), []).append(item)
    for name, left in tests.items():
        draw = random.Random(zlib.crc32(f"{_commit()} {name}".encode()))
        share = max(LONG_SECONDS / float(seconds[name]), LEAST_SHARE)
        draw.shuffle(left)
        others += left[int(share * len(left) + draw.random()) :]
    return others


def _function(item):
    """Return the name of a test without its parameters: FILE::FUNCTION, from here."""
    return f"{_place(item.path)}::{item.nodeid.partition('::')[2].partition('[')[0]}"


@functools.cache
def _commit():
    """Return the present commit of this folder; empty where there is none."""
    command = ["git", "-C", str(FOLDER), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note what a test takes, with its processes that end in it."""
    if not item.config.getoption("--measure"):
        return (yield)
    seconds = item.config.stash.setdefault(MEASURED, collections.Counter())
    used, began = sum(os.times()[:4]), time.monotonic()
    done = yield
    most = (time.monotonic() - began) * (os.cpu_count() or 1)  # an older process ended
    seconds[_function(item)] += min(sum(os.times()[:4]) - used, most)
    return done


def pytest_sessionfinish(session):
    """Write LONG after --measure; functions that were not measured keep their line."""
    if seconds := session.config.stash.get(MEASURED, None):
        _write_long(seconds)


def _write_long(seconds):
    """Write LONG with new times of some functions, a mapping [s]."""
    lines = dict(line.split() for line in LONG.read_text("utf-8").splitlines()[1:])
    for name, x in seconds.items():
        lines.pop(name, None)
        if x > LONG_SECONDS and not name.startswith(ALWAYS):
            lines[name] = f"{x:.1f}"
    rows = [f"{name} {x}" for name, x in sorted(lines.items())]
    LONG.write_text("\n".join([LONG_HEAD, *rows, ""]), "utf-8")


def _values(item):
    """Return the parameters of a test, each with the number of its value."""
    return item.callspec.indices.items()


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config, items):
    """Mark the quick choice, leave out what needs --full, begin with tests over DDS.

    Workers start with halves of the list and take from each other's ends. What stands
    first thus stays with one worker: tests over DDS, which mostly wait, run one at a
    time beside others that compute, and functions of contact steps are compiled once.
    """
    if not config.getoption("--full"):
        left_out = [item for item in items if item.get_closest_marker("full")]
        for others in (_other_turns, _other_values, _not_drawn):
            away = set(map(id, left_out))
            left_out += others([item for item in items if id(item) not in away])
        if getattr(config, "workerinput", vars(config.option)).get("in_turn"):
            away = set(map(id, left_out))
            left_out += _not_in_turn([x for x in items if id(x) not in away])
        config.hook.pytest_deselected(items=left_out)
        away = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in away]
    for item in items:
        if _is_quick(item):
            item.add_marker("quick")
    items.sort(key=_order)


def _order(item):
    """Return the key of the order: tests over DDS, those of STEPPING, the others."""
    over_dds = item.get_closest_marker("ros") is not None
    return not over_dds, not _place(item.path).startswith(STEPPING)


def pytest_collection_finish(session):
    """Look for cycles seldom: tracing makes many objects, and collecting keeps many."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(autouse=True)
def handlers_stay():
    """Fail a test that leaves a handler of a signal: forked children would inherit it.

    Where SIGTERM does not end a child, multiprocessing waits for it without end.
    """
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    left = [number for number in ENDING if signal.getsignal(number) != before[number]]
    for number in left:
        signal.signal(number, before[number])
    assert not left, f"handlers left: {left}"


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep kernels of this run in a folder of their own, also for other processes.

    The workers of one run share it. A folder that the environment names is kept: the
    next run finds its kernels there.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("DYN_CACHE_DIR"):
            folder = tmp_path_factory.getbasetemp()
            if "PYTEST_XDIST_WORKER" in os.environ:
                folder = folder.parent
            patch.setenv("DYN_CACHE_DIR", str(folder / "kernels"))
        yield


@pytest.fixture(scope="session")
def full(request):
    """Whether everything is run."""
    return request.config.getoption("--full")


@pytest.fixture(scope="session")
def shipped():
    """All shipped robots by name; the quadruped floats."""
    return {name: load(name) for name in robots.names()}


def load(name):
    """Load a shipped robot as its header says it is used."""
    return dyn.load(name)
