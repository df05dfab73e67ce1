"""What exported code needs besides its scratch: stack, and functions of others."""

import re
import subprocess

import pytest
from emulate import build, need, sh

from dyn_core.engines.llvm import host_machine

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=f"no machine code: {host_machine.missing()}"
)
CASES = [
    ("rnea", "arm7", {}),
    ("aba", "every_joint", {"dtype": "float32"}),
    ("fd_derivatives", "arm7", {}),
    ("semi_implicit_euler", "quadruped", {}),
    ("contact_euler", "quadruped", {}),
]
LEVELS = ("-O0", "-Og", "-O1", "-O2", "-Os", "-O3 -march=native")
QUICK = {("rnea", "-O0"), ("aba", "-O2"), ("contact_euler", "-Os")}
# Runs a function on a stack of its own, and counts the bytes that it has written.
MEASURE = """
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include "kern_test.h"
static unsigned char stack[1 << 20], scratch[KERN_BATCH_SCRATCH + 64];
static double in_memory[KERN_TEST_IN], out_memory[16 * KERN_TEST_OUT];
static int64_t status[16];
static const int sizes_in[] = {INPUTS}, sizes_out[] = {OUTPUTS};
static ucontext_t here, there;
static int rows;
static void call(void) {
    const double *in[8];
    double *out[8];
    int64_t strides[8] = {0};
    int k, place = 0;
    void *memory = scratch + (64 - (uintptr_t)scratch % 64) % 64;
    for (k = 0; k < (int)(sizeof sizes_in / sizeof *sizes_in); place += sizes_in[k++])
        in[k] = in_memory + place;
    for (k = 0, place = 0; k < (int)(sizeof sizes_out / sizeof *sizes_out); k++) {
        out[k] = out_memory + 16 * place;
        place += sizes_out[k];
    }
    if (rows) kern_batch(in, strides, out, status, 0, rows, memory);
    else kern(in, out, memory);
}
int main(void) {
    for (rows = 0; rows <= 16; rows += 16) {
        int row;
        for (row = 0; row < KERN_TEST_ROWS; row++) {
            size_t k = 0;
            memcpy(in_memory, kern_test_in[row], sizeof in_memory);
            memset(stack, 0xA5, sizeof stack);
            getcontext(&there);
            there.uc_stack.ss_sp = stack;
            there.uc_stack.ss_size = sizeof stack;
            there.uc_link = &here;
            makecontext(&there, call, 0);
            swapcontext(&here, &there);
            while (stack[k] == 0xA5) k++;
            printf("%d ", (int)(sizeof stack - k));
        }
    }
    return 0;
}
"""


def deepest(graph, entries):
    """Return the bytes of stack of the deepest call, from a call graph of GCC."""
    nodes = re.findall(r'title: "([^"]+)" label: "[^"]*?\\n(\d+) bytes', graph)
    sizes = {name: int(size) for name, size in nodes}
    calls = {}
    for name, other in re.findall(r'sourcename: "(\S+)" targetname: "(\S+)"', graph):
        calls.setdefault(name, set()).add(other)

    def depth(name):
        return sizes.get(name, 0) + 8 + max(map(depth, calls.get(name, ())), default=0)

    return max(depth(name) for name in sizes if name.split(":")[-1] in entries)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", CASES, ids=lambda x: x[0])
def test_c_needs_its_bound_of_stack_and_no_function_of_others(
    case, level, tmp_path, request
):
    """GCC's own figures stay below PREFIX_STACK, and nothing is undefined.

    The long run has all cases at all levels.
    """
    (gcc,) = need("gcc")
    if not request.config.option.full and (case[0], level) not in QUICK:
        pytest.skip("all cases at all levels with --full")
    solver, robot, options = case
    result = build(solver, robot, finite=True, **options).export(
        tmp_path, form="c", variant="batch", name="kern"
    )
    graph = ["-fcallgraph-info=su", "-c", "kern.c", "-o", "kern.o"]
    sh(gcc, "-std=c99", *level.split(), *graph, cwd=tmp_path)
    (file,) = tmp_path.glob("*.ci")
    taken = deepest(file.read_text(), ["kern", "kern_batch"])
    assert 100 < taken < result.interface.stack
    assert sh("nm", "-u", tmp_path / "kern.o").strip() == ""


@pytest.mark.full
@pytest.mark.parametrize("case", [x for x in CASES if not x[2]], ids=lambda x: x[0])
def test_machine_code_needs_its_bound_of_stack(case, tmp_path):
    """Measured on a stack of its own, for single states and rows. Long: compiles."""
    (cc,) = need("cc")
    solver, robot, options = case
    program = build(solver, robot, finite=True, **options)
    x = program.export(tmp_path, variant="batch", name="kern").interface
    inputs, outputs = (", ".join(map(str, sizes)) for sizes in x.sizes)
    source = MEASURE.replace("INPUTS", inputs).replace("OUTPUTS", outputs)
    (tmp_path / "measure.c").write_text(source)
    sh(cc, "-o", "measure", "measure.c", "kern.o", cwd=tmp_path)
    done = subprocess.run([tmp_path / "measure"], capture_output=True, check=True)
    taken = max(map(int, done.stdout.split()))
    assert 100 < taken < x.stack
