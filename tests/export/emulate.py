"""Exports compiled and run: on this machine, in emulators, in a runtime of WebAssembly."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import (
    Port,
    Signature,
    TracedSolver,
    absolute,
    acos,
    asin,
    atan2,
    cos,
    equal,
    exp,
    floor,
    log,
    logical_and,
    logical_not,
    logical_or,
    sin,
    sqrt,
    tanh,
    where,
)
from dyn_core.export import export
from dyn_core.export.targets import TARGETS

BOARD = Path(__file__).parent / "cortex_m"
_CORTEX = {
    "cortex-m7": ("cortex-m7", "fpv5-d16", "mps2-an500"),
    "cortex-m4f": ("cortex-m4", "fpv4-sp-d16", "mps2-an386"),
}
# Solvers and robots that together have every operation of a Graph: see test_objects.py.
CASES = [
    ("rnea", "arm7", {}),
    ("rnea", "every_joint", {"joint_friction": True}),  # tanh, quaternions
    ("aba", "arm7", {}),
    ("aba", "every_joint", {}),  # statuses
    ("crba", "quadruped", {}),
    ("id_derivatives", "arm7", {}),
    ("fd_derivatives", "arm7", {}),  # products of matrices
    ("semi_implicit_euler", "quadruped", {}),
    ("rk4", "every_joint", {}),  # steps of quaternions
    ("computed_torque", "arm7", {}),
]


def build(solver, robot, **options):
    """Return a Program."""
    return dyn.solver(solver).build(dyn.load(robot), **options)


def _operations(model, q):
    """Return numbers of a vector by every operation that few solvers use."""
    a, b, c = q[0], q[1], q[2]
    small = tanh(b)
    either = logical_or(equal(floor(a), 0.0), logical_and(a < b, b < c))
    return [
        exp(small), log(absolute(a) + 0.5), tanh(c), asin(small), acos(small),
        atan2(a, b), floor(a * 10.0), where(either, a, sqrt(absolute(b))),
        sin(a) / (2.0 + cos(b)), where(logical_not(a <= b), a - b, -c),
    ]  # fmt: skip


def every_operation():
    """Return a Program with the operations that few solvers use."""
    signature = Signature(
        "operations", (Port("x", (3,)),), (Port("y", (10,)),), meaning="operations"
    )
    solver = TracedSolver("operations", signature, _operations)
    return solver.build(dyn.load("two_link"), engine="native")


def need(*tools):
    """Return the paths of programs; skip where one is missing."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    return [shutil.which(tool) for tool in tools]


def sh(*command, cwd=None):
    """Run a command; return what it prints."""
    done = subprocess.run(
        [str(x) for x in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.args}: {done.stdout}{done.stderr}"
    return done.stdout or done.stderr  # semihosting prints to the second


def made(program, folder, **options):
    """Return an export that checks what the Program does, so that statuses agree."""
    return export(program, folder, **{"checked": program.finite, **options})


def check_natively(result, compiler="cc", flags=(), emulator=()):
    """Compile the check program of an export and return what it prints."""
    prefix = result.interface.prefix
    image = result.folder / "check"
    strict = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1")
    sh(compiler, *strict, *flags, "-o", image, f"{prefix}_check.c", result.binary, "-lm",
       cwd=result.folder)  # fmt: skip
    return sh(*emulator, image)


def cortex_image(result, target, source, *defines):
    """Compile a program for a Cortex-M, without a C library; return its image."""
    (gcc,) = need("arm-none-eabi-gcc")
    cpu, fpu, _ = _CORTEX[target]
    image = result.folder / "image"
    sh(gcc, f"-mcpu={cpu}", "-mthumb", "-mfloat-abi=hard", f"-mfpu={fpu}", "-O1",
       "-ffreestanding", "-nostdlib", "-fno-tree-loop-distribute-patterns", "-I.",
       "-include", BOARD / "print.h", *defines, BOARD / "start.S", source,
       result.binary, "-T", BOARD / "memory.ld", "-lgcc", "-o", image,
       cwd=result.folder)  # fmt: skip
    return image


def cortex_run(image, target, *options):
    """Return what an image prints in the emulator."""
    (qemu,) = need("qemu-system-arm")
    board = _CORTEX[target][2]
    return sh(
        qemu, "-M", board, "-nographic", "-semihosting", *options, "-kernel", image
    )


def check_on_cortex(result, target):
    """Return what the check program prints on a Cortex-M."""
    source = f"{result.interface.prefix}_check.c"
    return cortex_run(cortex_image(result, target, source), target)


def count_on_cortex(result, target):
    """Return the instructions of one call on a Cortex-M."""
    x = result.interface
    inputs, outputs = x.sizes
    defines = {
        "HEADER": f'"{x.prefix}_test.h"',
        "KERNEL": x.prefix,
        "INPUTS": f"{x.prefix}_test_in",
        "TYPE": x.real,
        "NUMBERS_IN": sum(inputs),
        "NUMBERS_OUT": sum(outputs),
        "SIZES_IN": ",".join(map(str, inputs)),
        "SIZES_OUT": ",".join(map(str, outputs)),
        "SCRATCH_BYTES": x.scratch,
    }
    flags = [f"-D{name}={value}" for name, value in defines.items()]
    image = cortex_image(result, target, BOARD / "count.c", *flags)
    return int(cortex_run(image, target, "-icount", "shift=0"))


class WasmModule:
    """A module of WebAssembly, called as the interface says."""

    def __init__(self, result):
        wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed")
        self.interface, self.store = result.interface, wasmtime.Store()
        code = (result.folder / result.binary).read_bytes()
        module = wasmtime.Module(self.store.engine, code)
        assert [x.name for x in module.imports] == []
        self.exports = wasmtime.Instance(self.store, module, []).exports(self.store)
        self.memory = self.exports["memory"]
        self.base = -(-self.exports["__heap_base"].value(self.store) // 64) * 64
        self.memory.grow(self.store, 16)

    def __call__(self, numbers):
        """Return flat outputs and status of flat inputs."""
        x, store, memory = self.interface, self.store, self.memory
        inputs, outputs = x.sizes
        item = numbers.dtype.itemsize
        tables = self.base + -(-x.scratch // 64) * 64
        place = first = tables + 64 * (1 + (len(inputs) + len(outputs)) // 16)
        addresses = []
        for size in (*inputs, *outputs):
            addresses.append(place)
            place += item * size
        memory.write(store, np.array(addresses, np.uint32).tobytes(), tables)
        memory.write(store, numbers.tobytes(), first)
        status = self.exports[x.prefix](
            store, tables, tables + 4 * len(inputs), self.base
        )
        end = first + item * (sum(inputs) + sum(outputs))
        got = bytes(memory.read(store, end - item * sum(outputs), end))
        return np.frombuffer(got, numbers.dtype), status


assert set(_CORTEX) <= set(TARGETS)
