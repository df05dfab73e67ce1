"""Machine code of Graphs by LLVM: compiler, cache, and calls from Python.

From a Graph to machine code:

    lower             Graph -> Schedule: order, multiply-adds, slots of memory
    ir, functions     LLVM values with Python's operators; sin, exp and similar ones
    function_ir       one LLVM function, and the memory of its inputs and outputs
    products          products of matrices, and the memory of the matrices
    value_tables      copies and zeros of many values
    emit              Schedule -> LLVM functions
    rows_ir           rows of arrays to blocks of lanes, and back
    kernel_ir         LLVM functions -> kernels: scalar (one state), batch, blocked
    compiler          LLVM IR -> object code -> addresses; properties of this machine
    kernel            a kernel from memory, from disk, or compiled in pieces
    blocks            a batch in several calls of its kernel, so that Ctrl-C works
    cached            files of the cache, and digests that exclude stale kernels
    threads           worker threads for batches and for the compiler
    interpreter       runs a Graph while a large kernel is compiled, same bits

From a call in Python to a kernel: entry_code, python_to_llvm and entry, in `call`.
python_to_llvm.py explains their purpose and method, and lists the rules of a call that
are therefore implemented twice.
"""

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
