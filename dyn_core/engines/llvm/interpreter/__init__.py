"""The interpreter of Graphs: machine code made once, which serves until kernels can.

    table         Graph -> a table of operations, in a few milliseconds
    operations    each operation as an LLVM function, for one state or several lanes
    control       what walks the table: one state, rows, blocks, loops
    interpreter   the three together, to be called like a kernel

It computes what the kernel of the Graph computes, with the same multiply-adds, sines
and choices, so the results have the same bits; it takes two to five times as long.
"""

from dyn_core.engines.llvm.interpreter.interpreter import Interpreter, machine_code

__all__ = ["Interpreter", "machine_code"]
