"""Machine code of Graphs by LLVM: compiler, cache, and calls from Python.

From a Graph to machine code:

    lower             Graph -> Schedule: order, multiply-adds, slots of memory
    ir, functions     LLVM values with Python's operators; sin, exp and similar ones
    function_ir       one LLVM function, and the memory of its inputs and outputs
    emit              Schedule -> LLVM functions
    kernel_ir         LLVM functions -> kernels: scalar (one state), batch, blocked
    pieces            a large module in pieces, so that nothing waits long for LLVM
    compiler          LLVM IR -> object code -> addresses; properties of this machine
    kernel            a kernel from memory, from disk, or compiled
    cached            files of the cache, and digests that exclude stale kernels
    threads           worker threads for batches and for the compiler
    interpreter       runs a Graph while a large kernel is compiled, same bits

From a call in Python to a kernel: entry_code, python_to_llvm and entry.
python_to_llvm.py explains their purpose and method, and lists the rules of a call that
are therefore implemented twice.
"""

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
