"""The interpreter of Graphs: machine code that runs Graphs until kernels are compiled.

    operations    each operation as an LLVM function, for one state or several lanes
    control       the loop over the table: one state, rows, blocks, loops
    interpreter   Graph -> a table, in a few milliseconds; all callable like a kernel

It computes the same multiply-adds, sines and selections as the kernel of the Graph, so
results have the same bits; it takes two to five times as long.
"""

from dyn_core.engines.llvm.interpreter.interpreter import Interpreter, machine_code

__all__ = ["Interpreter", "machine_code"]
