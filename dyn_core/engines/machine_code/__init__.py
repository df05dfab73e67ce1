"""Functions of numbers and arrays that run as Python and as machine code, same bits.

An algorithm whose work depends on its data (number of contacts, pairs of near bodies,
number of sweeps of a solver) cannot be traced into one Graph. It is written in a subset
of Python over NumPy arrays, and compiled once for each machine, not for each robot: the
robot is a record of arrays.

language.py defines the subset: its types and the decorator `machine_code`. `compiled`
returns the machine code of a function: types.py reads annotations; lanes.py,
expressions.py, operation_ir.py and statements.py convert the syntax tree to LLVM IR;
translation.py puts functions into modules; loading.py compiles, caches and calls them
with call_arguments.py; kernels.py lets them call Programs. With lanes (lanes.py) the
same function computes several states at once.
"""

from dyn_core.engines.machine_code.call_arguments import in_lanes
from dyn_core.engines.machine_code.kernels import (
    NO_KERNEL,
    BlockKernel,
    KernelAddress,
    PythonKernel,
    TiedBatch,
    TiedBlock,
    TiedKernel,
    call_python,
    run_block,
    run_blocks,
    run_kernel,
)
from dyn_core.engines.machine_code.language import (
    FloatArray,
    FloatArray2,
    FloatArray3,
    IntArray,
    IntArray2,
    IntArray3,
    any_lane,
    decided_by,
    in_vectors,
    machine_code,
)
from dyn_core.engines.machine_code.loading import CompiledFunction, compiled

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = [
    "NO_KERNEL",
    "BlockKernel",
    "CompiledFunction",
    "FloatArray",
    "FloatArray2",
    "FloatArray3",
    "IntArray",
    "IntArray2",
    "IntArray3",
    "KernelAddress",
    "PythonKernel",
    "TiedBatch",
    "TiedBlock",
    "TiedKernel",
    "any_lane",
    "call_python",
    "compiled",
    "decided_by",
    "in_lanes",
    "in_vectors",
    "machine_code",
    "run_block",
    "run_blocks",
    "run_kernel",
]
