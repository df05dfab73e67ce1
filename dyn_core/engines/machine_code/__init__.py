"""Functions of numbers and arrays that run as Python and as machine code, same bits.

An algorithm whose work depends on its data (how many contacts there are, which pairs
are near, how many sweeps a solver needs) cannot be traced into one Graph. It is written
in a subset of Python over NumPy arrays, and compiled once for each machine, not for
each robot: the robot is a record of arrays.

language.py is the subset: its types and the decorator `machine_code`. `compiled` makes
machine code of a function: types.py reads annotations, lanes.py, expressions.py,
operations.py, statements.py and translate.py turn its syntax tree (source.py) into LLVM
IR, loading.py compiles, keeps and calls that with arguments.py; kernels.py lets it call
Programs. In lanes (lanes.py) the same function works on several states at once.
"""

from dyn_core.engines.machine_code.arguments import in_lanes
from dyn_core.engines.machine_code.kernels import (
    NO_KERNEL,
    KernelAddress,
    PythonKernel,
    TiedBatch,
    TiedKernel,
    call_python,
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
    machine_code,
)
from dyn_core.engines.machine_code.loading import CompiledFunction, compiled

__all__ = [
    "NO_KERNEL",
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
    "TiedKernel",
    "any_lane",
    "call_python",
    "compiled",
    "decided_by",
    "in_lanes",
    "machine_code",
    "run_kernel",
]
