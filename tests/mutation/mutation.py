"""Mutation testing: change one thing of the product, and see whether a test fails.

    pip install coverage
    python tests/mutation/mutation.py record               # once: which test runs which line
    python tests/mutation/mutation.py run -j 2             # all of control and graph, 300 elsewhere
    python tests/mutation/mutation.py run dyn_core/model/shapes.py
    python tests/mutation/mutation.py report               # a table, and what survived

A sample of all folders, and only the tests that may see it:

    python tests/mutation/mutation.py report --drawn 60 --seed 7              # which mutants
    python tests/mutation/mutation.py record --drawn 60 --seed 7 tests/model  # more at any time
    python tests/mutation/mutation.py run --drawn 60 --seed 7 --seconds 25
    python tests/mutation/mutation.py report --drawn 60 --seed 7              # the test that fails

A mutant is the product with one operator, number, condition or statement changed. It
runs the tests that execute its line, fastest first and one of each module in turn,
until one fails: a few in a first process, the rest in a second one. Lines that run at import get the tests of their module. Results are
kept in .mutation/results.jsonl and a stopped run goes on where it was; a mutant is
known by the text of its file, so a changed file is run again. Survivors are judged by
hand in tests/mutation/mutation_survivors.md.

Why not mutmut or cosmic-ray: mutmut keeps all mutants of a function in one module and
chooses by an environment variable, so all have one digest of code, and the cache would
serve the kernels of the original. cosmic-ray starts a process with all tests for each
mutant and knows no coverage. Here a process that has loaded NumPy and the peers, but
nothing of the product, forks for each mutant.
"""

import argparse
import ast
import collections
import hashlib
import importlib.util
import itertools
import json
import os
import py_compile
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".mutation"
RESULTS = KEPT / "results.jsonl"
PRODUCT = ("dyn_core", "dyn_plugins", "ros_nodes")
ALL_OF = ("dyn_core/control/", "dyn_core/engines/graph/")
ELSEWHERE, SEED = 300, 20261122
LONGEST = 60.0  # seconds of tests, as recorded, that one mutant may run
FAILURE = "failure.txt"  # names the test that fails
# Compiled, never run as Python: its lines have no tests, but it has.
COMPILED = {"dyn_core/engines/llvm/call/entry_code.py": "tests/engines/test_entry.py"}
FIRST = 8  # tests of the first process: most mutants die there

OTHER = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the text from start to end becomes `after`."""

    path: str
    line: int
    function: str
    start: int
    end: int
    before: str
    after: str
    digest: str

    @property
    def key(self):
        """A name that stays while the file stays."""
        return f"{self.path}:{self.start}:{self.digest}:{self.after}"


class Finder(ast.NodeVisitor):
    """Collects what can be changed in one module."""

    def __init__(self, path, text):
        self.path, self.text, self.data = path, text, text.encode()
        self.digest = hashlib.sha256(self.data).hexdigest()[:12]
        lengths = [len(line) for line in self.data.splitlines(keepends=True)]
        self.starts = [sum(lengths[:k]) for k in range(len(lengths) + 1)]
        self.names, self.changes = [], []
        self.visit(ast.parse(text))

    def note(self, node, after):
        """Keep one change of a node."""
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[node.end_lineno - 1] + node.end_col_offset
        before = self.data[start:end].decode()
        name = ".".join(self.names) or "module"
        self.changes.append(
            Mutant(self.path, node.lineno, name, start, end, before, after, self.digest)
        )

    def visit_FunctionDef(self, node):
        """Look into a function; neither annotations nor decorators count."""
        self.names.append(node.name)
        defaults = [*node.args.defaults, *(x for x in node.args.kw_defaults if x)]
        for child in [*defaults, *node.body]:
            self.visit(child)
        self.names.pop()

    def visit_ClassDef(self, node):
        """Look into a class."""
        self.names.append(node.name)
        for child in node.body:
            self.visit(child)
        self.names.pop()

    def visit_AnnAssign(self, node):
        """Look at the value alone."""
        if node.value:
            self.visit(node.value)

    def visit_JoinedStr(self, node):
        """Leave messages alone."""

    def visit_If(self, node):
        """Turn a condition round, unless an operator in it can be changed."""
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            self.note(node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_IfExp(self, node):
        """Turn a choice round, unless an operator in it can be changed."""
        if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            self.note(node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_BinOp(self, node):
        """Put another operator between two operands."""
        other = OTHER.get(type(node.op))
        string = isinstance(node.left, ast.JoinedStr) or (
            isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        )
        if other and not string:
            self.note(
                node, f"({ast.unparse(ast.BinOp(node.left, other(), node.right))})"
            )
        self.generic_visit(node)

    def visit_Compare(self, node):
        """Put another comparison in place of each one."""
        for k, op in enumerate(node.ops):
            ops = [*node.ops[:k], OTHER[type(op)](), *node.ops[k + 1 :]]
            changed = ast.Compare(node.left, ops, node.comparators)
            self.note(node, f"({ast.unparse(changed)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        """And becomes or, or becomes and."""
        changed = ast.BoolOp(OTHER[type(node.op)](), node.values)
        self.note(node, f"({ast.unparse(changed)})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        """Leave out a minus or a not."""
        if isinstance(node.op, ast.USub | ast.Not):
            self.note(node, f"({ast.unparse(node.operand)})")
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node):
        """Change a number or a truth."""
        value = node.value
        if isinstance(value, bool):
            self.note(node, str(not value))
        elif isinstance(value, int):
            self.note(node, str(value + 1))
        elif isinstance(value, float):
            self.note(node, repr(2 * value if value else 1.0))

    def visit_Expr(self, node):
        """Leave out a call that is a statement."""
        if isinstance(node.value, ast.Call):
            self.note(node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Raise(self, node):
        """Leave out an error; its words are no matter."""
        self.note(node, "pass")

    def visit_Continue(self, node):
        """Break in place of continue."""
        self.note(node, "break")

    def visit_Break(self, node):
        """Continue in place of break."""
        self.note(node, "continue")


def mutants_of(path, text):
    """Return the mutants of a module's text."""
    return Finder(path, text).changes


def another_program(mutant, text):
    """Return whether a mutant is valid Python, and other than the original."""
    try:
        changed = ast.parse(changed_text(mutant, text))
    except SyntaxError:
        return False
    return ast.dump(changed) != ast.dump(ast.parse(text))


def changed_text(mutant, text):
    """Return the text of the file with the change made."""
    data = text.encode()
    return (data[: mutant.start] + mutant.after.encode() + data[mutant.end :]).decode()


def chosen(paths):
    """Return mutants of the paths; without paths all of ALL_OF and a sample elsewhere."""
    every = {}
    for package in PRODUCT:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if not paths or name.startswith(tuple(paths)):
                every[name] = mutants_of(name, path.read_text("utf-8"))
    if paths:
        return [m for mutants in every.values() for m in mutants]
    inside = [
        m for n, mutants in every.items() if n.startswith(ALL_OF) for m in mutants
    ]
    outside = [
        m for n, mutants in every.items() if not n.startswith(ALL_OF) for m in mutants
    ]
    return inside + random.Random(SEED).sample(outside, ELSEWHERE)


def drawn(mutants, count, seed):
    """Return a sample: one mutant of each folder in turn, however large it is."""
    folders, lot = collections.defaultdict(list), random.Random(seed)
    for mutant in mutants:
        folders["/".join(mutant.path.split("/")[:-1][:2])].append(mutant)
    shuffled = [
        lot.sample(x, len(x)) for x in lot.sample([*folders.values()], len(folders))
    ]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*shuffled))
    valid = (
        m for m in turns if m and another_program(m, (ROOT / m.path).read_text("utf-8"))
    )
    return list(itertools.islice(valid, count))


# ---- which tests run which lines -----------------------------------------------------


class Recorder:
    """A pytest plugin: one coverage context and one time for each test.

    Only lines of `files` are recorded, or without files those of the whole product.
    """

    def __init__(self, files=()):
        import coverage

        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
        name = f"{worker}-{os.getpid()}"
        self.times, self.file = {}, KEPT / f"times-{name}.json"
        self.failed = set()
        self.coverage = coverage.Coverage(
            data_file=str(KEPT / f"lines-{name}"),
            source=[str(ROOT / x) for x in PRODUCT] if not files else None,
            include=[str(ROOT / x) for x in files] or None,
            config_file=False,
        )
        self.coverage.start()

    def pytest_runtest_logstart(self, nodeid):
        """Lines from here on belong to this test."""
        self.coverage.switch_context(nodeid)
        self.start = time.perf_counter()

    def pytest_runtest_logreport(self, report):
        """Leave out a test that fails without a mutant."""
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid):
        """Note how long it took."""
        if nodeid not in self.failed:
            self.times[nodeid] = round(time.perf_counter() - self.start, 4)

    def pytest_sessionfinish(self):
        """Write both files."""
        self.coverage.stop()
        self.coverage.save()
        self.file.write_text(json.dumps(self.times))


class Selection:
    """A pytest plugin: run these tests in this order; write down the one that fails."""

    def __init__(self, tests, failure):
        self.order = {test: k for k, test in enumerate(tests)}
        self.failure = failure

    def pytest_collection_modifyitems(self, items):
        """Keep what is wanted."""
        items[:] = [x for x in items if x.nodeid in self.order]
        items.sort(key=lambda x: self.order[x.nodeid])

    def pytest_runtest_logreport(self, report):
        """Keep the name of a test that fails."""
        if report.failed:
            self.failure.write_text(report.nodeid)

    pytest_collectreport = pytest_runtest_logreport


class Tests:
    """What was recorded: the tests of each line, and how long each takes.

    The tests of one mutant take at most `longest` seconds, as recorded.
    """

    def __init__(self, longest=LONGEST):
        import coverage

        self.longest = longest
        self.times, self.lines = {}, collections.defaultdict(set)
        self.modules = collections.defaultdict(set)
        for path in KEPT.glob("times-*.json"):
            self.times |= json.loads(path.read_text())
        for path in KEPT.glob("lines-*"):
            data = coverage.CoverageData(str(path))
            data.read()
            for name in data.measured_files():
                short = str(Path(name).relative_to(ROOT))
                for line, contexts in data.contexts_by_lineno(name).items():
                    tests = {x for x in contexts if x in self.times}
                    self.lines[short, line] |= tests
                    self.modules[short] |= tests

    def of(self, mutant):
        """Return tests of a mutant: the fastest of each module, then the next, ..."""
        last = mutant.line + mutant.before.count("\n")
        tests = set().union(
            *(self.lines[mutant.path, k] for k in range(mutant.line, last + 1))
        )
        if place := COMPILED.get(mutant.path):
            tests = {test for test in self.times if test.startswith(place)}
        ranks = collections.defaultdict(list)
        for test in sorted(tests or self.modules[mutant.path], key=self.times.get):
            ranks[test.split("::")[0]].append(test)
        order = [
            (rank, self.times[test], test)
            for ranked in ranks.values()
            for rank, test in enumerate(ranked)
        ]
        kept, total = [], 0.0
        for _, seconds, test in sorted(order):
            if not kept or total + seconds <= self.longest:
                kept.append(test)
                total += seconds
        return kept, total


# ---- running -------------------------------------------------------------------------


def copy_tree():
    """Return a copy of the tracked files, compiled, for one worker to change."""
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", *PRODUCT], cwd=folder, check=True
    )
    return folder


def tested(folder, tests, limit):
    """Return what a forked process finds: survived, killed or timeout.

    The limit is in seconds of processor time, ten times that on the clock: other work
    of the machine must not look like a mutant that never ends.
    """
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
        log = os.open(folder / "mutant.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(folder)
        # No test may see this tree's own product, nor write what outlives the mutant.
        sys.path[:] = [
            str(folder),
            *(x for x in sys.path if Path(x or ".").resolve() != ROOT),
        ]
        os.environ |= {
            "PYTHONPATH": str(folder),
            "DYN_CACHE_DIR": str(folder / "kernels"),
        }
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        import pytest

        files = sorted({test.split("::")[0] for test in tests})
        options = [
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "--tb=line",
            f"--rootdir={folder}",
        ]
        if "xdist" in sys.modules:
            options += ["-n0"]
        selection = Selection(tests, folder / FAILURE)
        code = pytest.main([*options, *files], plugins=[selection])
        os._exit(int(code))
    end = time.monotonic() + 10 * limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            known = {0: "survived", 5: "no tests", -signal.SIGXCPU: "timeout"}
            return known.get(code, "killed")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def run_one(folder, mutant, tests):
    """Return the result of one mutant as a mapping."""
    wanted, seconds = tests.of(mutant)
    start = time.perf_counter()
    target = folder / mutant.path
    text, times = target.read_text("utf-8"), target.stat()
    if hashlib.sha256(text.encode()).hexdigest()[:12] != mutant.digest:
        raise SystemExit(f"{mutant.path} has changed meanwhile: run again")
    if not another_program(mutant, text):
        state = "no mutant"
    elif wanted:
        Path(importlib.util.cache_from_source(target)).unlink(missing_ok=True)
        (folder / FAILURE).unlink(missing_ok=True)
        target.write_text(changed_text(mutant, text), "utf-8")
        for part in filter(None, (wanted[:FIRST], wanted[FIRST:])):
            state = tested(folder, part, 15 + 5 * seconds)
            if state != "survived":
                break
        target.write_text(text, "utf-8")
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
        py_compile.compile(str(target))
        shutil.rmtree(folder / "kernels", ignore_errors=True)
    else:
        state = "no tests"
    took = round(time.perf_counter() - start, 1)
    entry = {"key": mutant.key, "state": state, "tests": len(wanted), "took": took}
    if state == "killed" and (folder / FAILURE).exists():
        entry["test"] = (folder / FAILURE).read_text()
    return entry


def work(mutants, tests, share):
    """Run mutants one after the other; write each result at once."""
    for name in ("numpy", "scipy.optimize", "pytest", "xdist", "llvmlite.binding",
                 "pinocchio", "mujoco", "gymnasium", "hypothesis"):  # fmt: skip
        try:
            __import__(name)
        except ImportError:
            print(f"{name} is not here: its tests are skipped")
    folder = copy_tree()
    try:
        for count, mutant in enumerate(mutants, 1):
            result = asdict(mutant) | run_one(folder, mutant, tests)
            line = (json.dumps(result) + "\n").encode()
            out = os.open(RESULTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(out, line)
            os.close(out)
            where = f"{mutant.path}:{mutant.line}"
            print(
                f"{share} {count}/{len(mutants)} {result['state']:9s} {where}",
                flush=True,
            )
    finally:
        shutil.rmtree(folder)


def results():
    """Return the last result of each mutant that the files of today have."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    entries = {entry["key"]: entry for entry in map(json.loads, lines)}
    today = {}
    for name in {entry["path"] for entry in entries.values()}:
        path = ROOT / name
        data = path.read_bytes() if path.exists() else b""
        today[name] = hashlib.sha256(data).hexdigest()[:12]
    return {k: x for k, x in entries.items() if x["digest"] == today[x["path"]]}


def report():
    """Print a table of the results, and the survivors as rows to be judged."""
    judged = Path(__file__).with_name("mutation_survivors.md")
    text = judged.read_text("utf-8") if judged.exists() else ""
    equivalent = {row(x) for x in results().values() if f"{row(x)} equivalent" in text}
    table = collections.defaultdict(collections.Counter)
    for entry in results().values():
        if entry["state"] == "no mutant":
            continue
        state = "equivalent" if row(entry) in equivalent else entry["state"]
        table["/".join(entry["path"].split("/")[:3])][state] += 1
    states = ("killed", "timeout", "survived", "equivalent", "no tests")
    print("| where | mutants |", " | ".join(states), "|\n|---" + "|---:" * 6 + "|")
    for name, counts in sorted(table.items()):
        numbers = " | ".join(str(counts[state]) for state in states)
        print(f"| `{name}` | {sum(counts.values())} | {numbers} |")
    for entry in results().values():
        if entry["state"] in ("survived", "no tests") and row(entry) not in equivalent:
            print(row(entry), entry["state"], f"({entry['tests']} tests) |")


def report_drawn(sample):
    """Print the mutants of a sample: what becomes of each, and the test that fails."""
    known = results()
    for mutant in sample:
        entry = known.get(mutant.key, {"state": "not run"})
        state = f"line {mutant.line}: {entry['state']}"
        print(row(asdict(mutant)), state, entry.get("test", ""), "|")


def row(entry):
    """Return the start of a survivor's row: where, and what was changed into what."""
    cut = (" ".join(entry[x].split()).replace("|", "\\|") for x in ("before", "after"))
    before, after = (x if len(x) < 70 else x[:67] + "..." for x in cut)
    return f"| `{entry['path']}` | `{entry['function']}` | `{before}` -> `{after}` |"


def main():
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=("record", "run", "report"))
    parser.add_argument("paths", nargs="*", help="tests to record, or files to change")
    parser.add_argument("-j", type=int, default=1, help="processes")
    parser.add_argument("--most", type=int, help="stop after so many, drawn by lot")
    parser.add_argument(
        "--drawn", type=int, help="only so many, of each folder in turn"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="of what is drawn")
    parser.add_argument("--seconds", type=float, default=LONGEST, help="of each mutant")
    options = parser.parse_intermixed_args()
    KEPT.mkdir(exist_ok=True)
    sample = []
    if options.drawn:
        paths = PRODUCT if options.task == "record" else options.paths or PRODUCT
        sample = drawn(chosen(paths), options.drawn, options.seed)
    if options.task == "report":
        return report_drawn(sample) if sample else report()
    if options.task == "record":
        import pytest

        os.environ["PYTHONPATH"] = str(ROOT)
        sys.path.insert(0, str(ROOT))
        recorder = Recorder({mutant.path for mutant in sample})
        return int(pytest.main(["-n0", "-q", *options.paths], plugins=[recorder]))
    known = results()
    todo = [m for m in sample or chosen(options.paths) if m.key not in known]
    random.Random(options.seed).shuffle(todo)
    todo = todo[: options.most]
    tests, children = Tests(options.seconds), []
    print(f"{len(todo)} mutants to run, {len(known)} known")
    for k in range(1, options.j):
        if (child := os.fork()) == 0:
            work(todo[k :: options.j], tests, k)
            os._exit(0)
        children.append(child)
    work(todo[:: options.j], tests, 0)
    for child in children:
        os.waitpid(child, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
