"""Graphs as machine code by LLVM, its cache, and the way of a call into it.

From a Graph to machine code:

    lower             Graph -> Schedule: order, multiply-adds, slots of memory
    ir, functions     LLVM values with Python's operators; sin, exp and their like
    function_ir       one LLVM function, and where its values come from and go to
    emit              Schedule -> LLVM functions
    kernel_ir         LLVM functions -> kernels: scalar (one state), batch, blocked
    pieces            a large module in pieces, so that nothing waits long for LLVM
    compiler          LLVM IR -> object code -> addresses; what machine this is
    kernel, cache     a kernel from memory, from the disk, or compiled
    trace_cache       which kernel an algorithm has, without tracing it again
    fingerprint       digests of loaded code, so that nothing stale is used
    threads           worker threads for batches and for the compiler
    interpreter       what serves while a large kernel is compiled, with the same bits

From a call in Python to a kernel: entry_code, python_to_llvm and entry. Why there is
such a thing, how it works, and which rules of a call therefore stand in two places, is
said in python_to_llvm.py.
"""
