"""C source of Programs: the bits of Python, by each compiler and at each level."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from random_programs import SPECIAL, WIDTH, random_algorithm

import dyn_core as dyn
from dyn_core.engines.llvm import host_machine
from dyn_core.export.c.c_source import write_c
from dyn_core.export.interface import interface_of
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.problems import Port
from dyn_core.testing.flat_programs import flat_program

pytestmark = [
    pytest.mark.skipif(bool(host_machine.missing()), reason=host_machine.missing()),
    pytest.mark.skipif(
        not host_machine.missing() and not host_machine.machine().fused,
        reason="Programs of this machine do not fuse: other bits than exported ones",
    ),
]
COMPILERS = {
    "gcc-O0": ("gcc", "-O0"),
    "gcc-O2": ("gcc", "-O2"),
    "gcc-O3-native": ("gcc", "-O3", "-march=native"),
    "gcc-gnu-O3-native": ("gcc", "-std=gnu17", "-O3", "-march=native"),
    "clang-O0": ("clang", "-O0"),
    "clang-O2": ("clang", "-O2"),
    "clang-O3-native": ("clang", "-O3", "-march=native"),
}
_STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
FOUR_BAR = str(Path(__file__).parents[2] / "examples/four_bar/four_bar.urdf")
# Solver, robot, options: together they have all operations, products and loops.
CASES = [
    ("rnea", "arm7", {}),
    ("rnea", "arm7", {"joint_friction": True}),
    ("aba", "arm7", {}),
    ("crba", "arm7", {}),
    ("id_derivatives", "arm7", {}),
    ("fd_derivatives", "arm7", {}),
    ("rk4", "arm7", {}),
    ("computed_torque", "arm7", {}),
    ("inverse_kinematics", "arm7", {"frame": None}),
    ("rnea", "every_joint", {}),
    ("aba", "every_joint", {}),
    ("fd_second_derivatives", "planar3", {}),
    ("rnea", "quadruped", {}),
    ("aba", "quadruped", {}),
    ("crba", "quadruped", {}),
    ("fd_derivatives", "quadruped", {}),
    ("semi_implicit_euler", "quadruped", {}),
    ("loop_forward_dynamics", FOUR_BAR, {}),
]
FAST = {("rnea", "arm7"), ("aba", "every_joint"), ("crba", "quadruped")}


def library(folder, text, how):
    """Return C source compiled and loaded."""
    if shutil.which(how[0]) is None:
        pytest.skip(f"no compiler '{how[0]}' here")
    source, made = folder / "source.c", folder / f"{'_'.join(how)}.so"
    source.write_text(text)
    command = [how[0], *_STRICT, *how[1:], "-shared", "-fPIC"]
    done = subprocess.run(
        [*command, "-o", str(made), str(source), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(made))


def caller(loaded, interface, scratch):
    """Return a function: flat inputs -> flat outputs and status."""
    call = getattr(loaded, interface.prefix)
    call.restype, call.argtypes = ctypes.c_int64, [ctypes.c_void_p] * 3
    real = np.dtype(interface.dtype)
    guard = 64

    def run(numbers):
        inputs, outputs = interface.sizes
        ins = np.split(np.asarray(numbers, real), np.cumsum(inputs)[:-1])
        ins = [np.ascontiguousarray(part) for part in ins]
        outs = [np.full(size, 7.0, real) for size in outputs]
        memory = np.full(scratch + guard, 0xFF, np.uint8)
        tables = [
            (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
            for arrays in (ins, outs)
        ]
        status = call(*tables, memory.ctypes.data)
        assert (memory[scratch:] == 0xFF).all(), "written behind the scratch memory"
        return np.concatenate(outs), status

    return run


def states(program, rng, count):
    """Return flat inputs: ordinary ones, zeros of both signs, far angles, NaN."""
    for k in range(count):
        parts = []
        for port in program.inputs:
            value = _value(program, port, rng)
            if k % 4 == 1 and port.kind == "position":
                value = value + rng.choice([1e13, -3e15, 1e200, 7e22], value.shape)
            if k % 4 == 2:
                value = np.where(rng.random(value.shape) < 0.7, -0.0, value)
                value = np.where(rng.random(value.shape) < 0.3, 0.0, value)
            if k % 16 == 7 and value.size:
                value = value.copy()
                value.ravel()[rng.integers(value.size)] = rng.choice(SPECIAL)
            parts.append(value.ravel())
        with np.errstate(over="ignore"):
            yield np.concatenate(parts).astype(program.dtype)


def _value(program, port, rng):
    model = program.model
    if port.name in program.defaults:
        return np.asarray(program.defaults[port.name], float).copy()
    if port.kind == "position" and port.size == getattr(model, "nq", -1):
        return model.random(rng)
    if port.kind == "poses" or port.shape[-2:] == (4, 4):
        return np.tile(np.eye(4), (*port.shape[:-2], 1, 1))
    assert isinstance(port, Port)
    return rng.normal(size=port.shape) * (1e-3 if port.unit == "s" else 1.0)


def same(a, b):
    """Return whether bits are equal; one NaN is as good as another."""
    whole = np.uint64 if a.dtype == np.float64 else np.uint32
    return bool(((a.view(whole) == b.view(whole)) | (np.isnan(a) & np.isnan(b))).all())


def compare(program, run, rows):
    """Compare a Program with its C source; return how many rows failed."""
    failed = 0
    for numbers in rows:
        values, status = program.run_row(numbers.tolist())
        got, its = run(numbers)
        assert its == status
        if status:
            failed += 1
            assert np.isnan(got).all()
        else:
            assert same(got, np.array(values, program.dtype)), numbers
    return failed


def build(name, robot, choices):
    """Return a Program of machine code."""
    model = dyn.load(robot) if isinstance(robot, str) else robot
    if "frame" in choices:
        choices = {"frame": model.frame_names[-1]}
    return dyn.solver(name).build(model, engine="native", **choices)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("how", COMPILERS)
@pytest.mark.parametrize("case", CASES, ids=lambda x: f"{x[0]}-{Path(x[1]).stem}")
def test_bits_are_those_of_python(case, how, tmp_path, request):
    """gcc and clang, without and with optimisation, with and without an instruction."""
    if not request.config.option.full and (
        case[:2] not in FAST or case[2] or how not in ("gcc-O0", "clang-O3-native")
    ):
        pytest.skip("all solvers and compilers with --full")
    program = build(*case)
    made = write_c(program, interface_of(program))
    loaded = library(tmp_path, made.text, COMPILERS[how])
    run = caller(loaded, interface_of(program), made.scratch)
    compare(program, run, states(program, np.random.default_rng(18), 48))


@pytest.mark.parametrize("how", ["gcc-O2", "clang-O2", "gcc-gnu-O3-native"])
def test_every_operation(how, tmp_path, request):
    """Random algorithms of all operations, on special numbers too."""
    rng = np.random.default_rng(4)
    for seed in range(40 if request.config.option.full else 4):
        algorithm = random_algorithm(seed, 120)
        program = flat_program(algorithm, WIDTH, 8, engine="native")
        interface = interface_of(program, f"random_{seed}")
        made = write_c(program, interface)
        (tmp_path / str(seed)).mkdir()
        loaded = library(tmp_path / str(seed), made.text, COMPILERS[how])
        run = caller(loaded, interface, made.scratch)
        rows = [
            rng.normal(size=WIDTH) * 10.0 ** rng.integers(-3, 20) for _ in range(40)
        ]
        rows += [rng.choice(SPECIAL, WIDTH) for _ in range(40)]
        compare(program, run, rows)


def _operations(graph):
    """Return the operations of a Graph, those inside of loops too."""
    names = set(graph.counts())
    for node in graph.nodes:
        if node.op == "loop":
            names |= _operations(node.data.body) | _operations(node.data.cond)
    return names


def test_the_cases_and_random_algorithms_have_every_operation(request):
    """So that every operation that C source has is compared."""
    if not request.config.option.full:
        pytest.skip("all solvers are traced with --full")
    used = set()
    for case in CASES:
        used |= _operations(build(*case).graph)
    for seed in range(40):
        program = flat_program(random_algorithm(seed, 120), WIDTH, 8, engine="graph")
        used |= _operations(program.graph)
    assert used >= {*OPERATIONS, "loop", "product"} - {"call"}


def test_failed_requirements_give_their_status(tmp_path):
    """The status is that of Python, and all outputs are NaN."""
    program = build("inverse_kinematics", "arm7", {"frame": None})
    interface = interface_of(program)
    made = write_c(program, interface)
    run = caller(library(tmp_path, made.text, COMPILERS["gcc-O2"]), interface,
                 made.scratch)  # fmt: skip
    rows = list(states(program, np.random.default_rng(5), 12))
    assert compare(program, run, [*rows, *(0 * row for row in rows[:2])]) > 0


def test_checks_for_numbers_that_are_not_finite(tmp_path):
    """finite=True: -1 for an input, -2 for a result."""
    program = build("rnea", "two_link", {"finite": True})
    interface = interface_of(program)
    made = write_c(program, interface)
    loaded = library(tmp_path, made.text, COMPILERS["gcc-O2"])
    run = caller(loaded, interface, made.scratch)
    row = next(states(program, np.random.default_rng(1), 1))
    assert run(row)[1] == 0
    for bad in (np.nan, np.inf):
        values, status = run(np.append(row[:-1], bad))
        assert status == -1
        assert np.isnan(values).all()
    values, status = run(np.full_like(row, 1e200))
    assert status == -2
    assert np.isnan(values).all()


@pytest.mark.parametrize("robot", ["arm7", "every_joint"])
def test_single_precision(robot, tmp_path):
    """float32 Programs have their bits too."""
    program = build("aba", robot, {"dtype": "float32"})
    interface = interface_of(program)
    made = write_c(program, interface)
    for how in ("gcc-O2", "gcc-O3-native"):
        (tmp_path / how).mkdir()
        loaded = library(tmp_path / how, made.text, COMPILERS[how])
        run = caller(loaded, interface, made.scratch)
        compare(program, run, states(program, np.random.default_rng(2), 32))


def test_without_fused_multiply_add_results_are_close(tmp_path):
    """exact=False rounds twice: the same to 1e-12."""
    program = build("rnea", "arm7", {})
    interface = interface_of(program)
    made = write_c(program, interface, exact=False)
    assert not re.search(r"\bfma\(", made.text)
    loaded = library(tmp_path, made.text, COMPILERS["gcc-O2"])
    run = caller(loaded, interface, made.scratch)
    for row in list(states(program, np.random.default_rng(3), 4))[::4]:
        wanted, _ = program.run_row(row.tolist())
        assert np.allclose(run(row)[0], wanted, rtol=1e-12, atol=1e-12)


def test_fast_math_is_refused(tmp_path):
    """Results would be others: the compiler stops with a reason."""
    if shutil.which("gcc") is None:
        pytest.skip("no compiler 'gcc' here")
    program = build("rnea", "two_link", {})
    (tmp_path / "x.c").write_text(write_c(program, interface_of(program)).text)
    for flag in ("-ffast-math", "-Ofast", "-ffinite-math-only"):
        done = subprocess.run(
            ["gcc", flag, "-c", "x.c"], cwd=tmp_path, capture_output=True, check=False
        )
        assert done.returncode != 0
        assert b"without -ffast-math" in done.stderr


def test_source_needs_little_and_keeps_functions_short():
    """No heap, no static memory that is written, no library function that may differ."""
    program = build("fd_derivatives", "quadruped", {})
    text = write_c(program, interface_of(program)).text
    assert not re.search(r"\b(malloc|calloc|sin|cos|exp|log|tanh|memcpy)\(", text)
    assert not re.search(r"^static (?!.*\()(?!const)", text, re.MULTILINE)
    bodies = re.findall(r"^\{$(.*?)^\}$", text, re.MULTILINE | re.DOTALL)
    assert max(body.count("\n") for body in bodies) < 2000
