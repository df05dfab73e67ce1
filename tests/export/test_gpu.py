"""GPU kernels: the bits of the engine native, PTX that rounds as said, resources."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import ptxas
import pytest
from gpu_host import HostKernel

import dyn_core as dyn
from dyn_core.cli import main
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.llvm.products import product_calls
from dyn_core.errors import ShapeError, SingularError, UnsupportedError
from dyn_core.export.gpu import kernel as gpu_kernels
from dyn_core.export.gpu import kernel_ir, ptx
from dyn_core.numbers import scalar
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.numbers.product import ProductShape
from dyn_core.solving.registry import default_registry
from dyn_core.testing.conformance import served_model
from dyn_core.testing.flat_programs import flat_program

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)
ROWS = 37  # a multiple of no block
DTYPES = ("float64", "float32")
# Straight lines, products, loops, requirements, several outputs, numbers as outputs.
SOLVERS = (
    "rnea", "energy", "aba_loops", "fd_derivatives", "inverse_kinematics",
    "admm_compiled", "loop_forward_dynamics",
)  # fmt: skip
MORE = (
    "aba", "crba", "hybrid_mask", "id_second_contracted", "rk4", "task_step",
    "centroidal_matrix", "computed_torque", "chain_rk4", "chain_impact", "object_rk4",
    "contact_terms", "loop_hybrid_dynamics", "fd_second_derivatives", "regressor",
    "projected_midpoint", "momentum_observer", "joint_reactions", "delassus",
)  # fmt: skip


def _need_fused():
    if not host_machine.machine().fused:
        pytest.skip("this processor has no fused multiply-add: native rounds twice")


def _same(got, wanted):
    """Whether two lists of arrays have the same bits, all NaN taken for one."""
    return all(
        x.dtype == y.dtype
        and x.shape == y.shape
        and np.array_equal(x, y, equal_nan=True)
        and np.array_equal(np.signbit(x[x == 0]), np.signbit(y[y == 0]))
        for x, y in zip(got, wanted, strict=True)
    )


def _native(program, arguments):
    """Return outputs and status of a Program, as a HostKernel returns them."""
    *outputs, status = program(*arguments, status=True)
    if len(program.outputs) > 1:
        outputs = list(outputs[0])
    return [np.asarray(x) for x in outputs], status


def _case(name, dtype, seed=3):
    """Return a Program of a solver on a random system, and rows of inputs."""
    solver = dyn.solver(name)
    case = default_registry().system(solver.signature.system).case
    model = served_model(solver, seed, 4)
    case = case(solver, model, "native", np.random.default_rng(seed), programs={})
    program = case.build(solver, engine="native", dtype=dtype)
    rows = []
    for _ in range(ROWS):
        if hasattr(case, "__post_init__"):
            case.__post_init__()
        rows.append(case.arguments(program))
    columns = [np.array(column, dtype) for column in zip(*rows, strict=True)]
    return program, columns


def _check(name, dtype, **how):
    _need_fused()
    program, arguments = _case(name, dtype)
    outputs, status = HostKernel(ptx(program, **how))(*arguments)
    wanted, wanted_status = _native(program, arguments)
    np.testing.assert_array_equal(status, wanted_status)
    assert any(np.isfinite(x).any() for x in outputs)
    assert _same(outputs, wanted)


@pytest.mark.turns("dtype")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_kernel_has_the_bits_of_the_native_engine(name, dtype):
    """The module that PTX is made of, run thread by thread on the processor."""
    _check(name, dtype)


@pytest.mark.parametrize("name", MORE)
def test_more_kernels_have_the_bits_of_the_native_engine(name, request):
    """Further solvers, in both forms; long."""
    if not request.config.getoption("--full"):
        pytest.skip("long: --full runs it")
    for dtype in DTYPES:
        _check(name, dtype)
        _check(name, dtype, inline=False)


@pytest.mark.parametrize(("layout", "inline"), [("entries", False), ("states", True)])
def test_both_forms_and_layouts_have_the_same_bits(layout, inline):
    """As one function or in parts, by entries or by states."""
    _check("fd_derivatives", "float64", layout=layout, inline=inline)


def _every_operation(x):
    a, b, c = x
    s = scalar
    positive = s.where(a < 0, -a, a)
    small = s.where(positive < 1, a, 1 / a)
    return [
        s.sin(a), s.cos(b), s.exp(a), s.log(positive), s.tanh(b), s.atan2(a, c),
        s.asin(small), s.acos(small), s.sqrt(positive), s.floor(b), abs(c),
        a + b * c, a * b - c, c - a * b, a / b, -a,
        s.where(s.logical_or(s.logical_and(a < b, b <= c), s.equal(a, c)), a, b),
        s.where(s.logical_not(a < c), a, c),
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_has_the_bits_of_the_native_engine(dtype):
    """At numbers of every size, of far angles and at those that are no numbers."""
    _need_fused()
    program = flat_program(_every_operation, 3, 18, engine="native", dtype=dtype)
    assert OPERATIONS.keys() <= program.graph.counts().keys()
    rng = np.random.default_rng(5)
    sizes = np.array([1.0, 1e-30, 1e3, 3e4, 1e13, 1e25, 1e30])
    X = rng.normal(size=(ROWS, 3)) * sizes[rng.integers(len(sizes), size=(ROWS, 3))]
    X[:7, 0] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1e-42]
    X = X.astype(dtype)
    outputs, status = HostKernel(ptx(program))(X)
    assert not status.any()
    assert _same(outputs, _native(program, [X])[0])


def _transposed_product_and_zeros(x):
    """Return values that are copied by tables: neighbours lie apart, many are zero."""
    n = 12
    entries = [x[k % 5] + k for k in range(n * n)]
    product = scalar.flat_product(entries, entries[::-1], [], ProductShape(n, n, n))
    return [*(product[k % n * n + k // n] for k in range(n * n)), *[0.0] * 60]


@pytest.mark.parametrize("layout", gpu_kernels.LAYOUTS)
def test_values_that_are_copied_by_tables(layout, monkeypatch):
    """Those of a product in another order, and zeros, where they are many."""
    _need_fused()
    count = 12 * 12 + 60
    program = flat_program(_transposed_product_and_zeros, 5, count, engine="native")
    assert program.graph.counts()["product"] == 1
    X = np.random.default_rng(3).normal(size=(ROWS, 5))
    wanted, _ = _native(program, [X])
    monkeypatch.setattr(kernel_ir, "MANY", 50)
    monkeypatch.setattr(product_calls, "MANY", 50)
    kernel = ptx(program, layout=layout, inline=False)
    assert kernel.ir.count("call void @spread") == 2
    outputs, _ = HostKernel(kernel)(X)
    assert _same(outputs, wanted)


@pytest.mark.parametrize("layout", gpu_kernels.LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_states_that_fail_are_nan_and_have_their_number(dtype, layout):
    """As in Python with status=True; others are as they would be alone."""

    def algorithm(x):
        scalar.require(x[0] > 0, SingularError, "first")
        scalar.require(x[1] > 0, SingularError, "second")
        return [x[0] + x[1], x[0] / x[1], scalar.sqrt(x[1])]

    program = flat_program(algorithm, 2, 3, engine="native", dtype=dtype)
    X = np.random.default_rng(1).normal(size=(ROWS, 2)).astype(dtype)
    kernel = ptx(program, layout=layout)
    assert kernel.checked
    outputs, status = HostKernel(kernel)(X)
    wanted, wanted_status = _native(program, [X])
    np.testing.assert_array_equal(status, wanted_status)
    assert {0, 1, 2} == set(status)
    assert np.isnan(outputs[0][status > 0]).all()
    assert _same(outputs, wanted)


def test_batches_of_no_and_of_few_states():
    """Threads behind the last state write nothing."""
    program = dyn.solver("rnea").build(dyn.load_urdf(dyn.robots.path("two_link")))
    host = HostKernel(ptx(program))
    rng = np.random.default_rng(2)
    for rows in (0, 1, 31, 32, 33):
        arguments = [rng.normal(size=(rows, *port.shape)) for port in program.inputs]
        (tau,), _ = host(*arguments)
        assert tau.shape == (rows, 2)
        if rows and host_machine.machine().fused:
            assert _same([tau], [np.asarray(program(*arguments))])
    with pytest.raises(ShapeError, match="qd: wanted 3 rows of 2"):
        host(np.zeros((3, 2)), np.zeros((2, 2)), np.zeros((3, 2)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_ptx_says_how_each_operation_rounds(dtype):
    """So that the driver forms no multiply-add of its own; and it calls no library."""
    program = dyn.solver("fd_derivatives").build(
        dyn.load_urdf(dyn.robots.path("arm7")), dtype=dtype
    )
    code = ptx(program, "sm_90").ptx
    operations = re.findall(
        r"\b((?:add|sub|mul|fma|div|sqrt)\.[\w.]*f(?:32|64))\b", code
    )
    assert len(operations) > 3000
    assert {x for x in operations if ".rn." not in x} == set()
    assert not re.search(r"\.(ftz|approx|full)\b", code)
    assert ".extern" not in code
    assert "ld.global.nc" in code and not re.search(r"\b(ld|st)\.[bfv]\d", code)
    assert f".maxntid {gpu_kernels.BLOCK}" in code
    assert ".target sm_90" in code


def test_programs_that_are_no_graph_are_refused():
    """And architectures and layouts that there are not."""
    arm = dyn.load_urdf(dyn.robots.path("two_link"))
    program = dyn.solver("rnea").build(arm)
    with pytest.raises(UnsupportedError, match="sm_90"):
        ptx(program, arch="sm_1")
    with pytest.raises(UnsupportedError, match="entries, states"):
        ptx(program, layout="rows")
    with pytest.raises(UnsupportedError, match="TracedSolver"):
        ptx(dyn.solver("rnea").build(arm, engine="plain"))
    with pytest.raises(UnsupportedError, match="without finite=True"):
        ptx(dyn.solver("rnea").build(arm, finite=True))


CUDA_H = """
typedef int CUresult; typedef void *CUfunction, *CUstream;
typedef unsigned long long CUdeviceptr;
enum { CUDA_SUCCESS };
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
    unsigned, unsigned, CUstream, void **, void **);
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc here")
def test_the_header_is_c_and_cpp(tmp_path):
    """With the types of the driver API; no name of a port is one of C."""
    model = dyn.load_urdf(dyn.robots.path("arm7"))
    (tmp_path / "cuda.h").write_text(CUDA_H)
    for name in ("fd_derivatives", "semi_implicit_euler", "energy"):
        kernel = ptx(dyn.solver(name).build(model, dtype="float32"))
        code, header = kernel.write(tmp_path)
        licence, robot, rest = code.read_text().split("\n", 2)
        assert licence == "// SPDX-License-Identifier: Apache-2.0"
        assert kernel.model_hash in robot and rest == kernel.ptx
        for language in ("c", "c++"):
            command = ["gcc", "-x", language, "-Wall", "-Wextra", "-Werror"]
            command += ["-fsyntax-only", f"-I{tmp_path}", str(header)]
            run = subprocess.run(command, capture_output=True, text=True)
            fatal = [x for x in run.stderr.splitlines() if "error" in x]
            assert not [x for x in fatal if "unused-function" not in x], run.stderr


def test_occupancy_follows_from_registers():
    """Warps of a multiprocessor with 65536 registers, in blocks of 128 threads."""
    warps = {32: 64, 33: 48, 64: 32, 72: 28, 96: 20, 128: 16, 168: 12, 255: 8}
    for registers, wanted in warps.items():
        used = ptxas.Resources(registers, 0, 0, 0, 0, 0.0)
        assert used.warps(128) == wanted
        assert used.occupancy(128) == wanted / 64


@pytest.mark.skipif(ptxas.find() is None, reason="there is no ptxas here")
def test_ptxas_takes_kernels_of_every_form():
    """Those of one state's dynamics in float32 spill next to nothing."""
    model = dyn.load_urdf(dyn.robots.path("arm7"))
    for name, most in (("rnea", 128), ("aba", 128)):
        for dtype in DTYPES:
            kernel = ptx(dyn.solver(name).build(model, dtype=dtype), "sm_90")
            used = ptxas.assemble(kernel.ptx, "sm_90")
            assert used.registers <= (most if dtype == "float32" else 200)
            assert used.spill_stores + used.spill_loads <= 64
    parts = ptx(dyn.solver("fd_derivatives").build(model), "sm_90", inline=False)
    assert ptxas.assemble(parts.ptx, "sm_90").spill_loads == 0


def test_kernels_are_said_to_be_experimental(capsys):
    """The page, the README and `dyn export --help` say so, as long as none was launched."""
    root = Path(__file__).parents[2]
    title, said = (
        (root / "docs" / "gpu.md").read_text(encoding="utf-8").split("\n\n")[:2]
    )
    assert title == "# GPU kernels (experimental)"
    assert said.startswith("**No kernel of this library was ever launched on a GPU.**")
    assert (
        "[GPU kernels](docs/gpu.md) (experimental)" in (root / "README.md").read_text()
    )
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    assert "experimental" in " ".join(capsys.readouterr().out.split())
