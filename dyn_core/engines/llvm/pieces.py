"""Compilation of a large module in pieces, in parallel.

While LLVM compiles, other threads cannot load code and the process can neither fork nor
end, since its threads would continue with an LLVM that no longer exists. So a kernel of
many functions is compiled a few functions at a time, on as many threads as there are
cores.
"""

from __future__ import annotations

import re

from dyn_core.engines.llvm import compiler
from dyn_core.engines.llvm.rows_ir import NONTEMPORAL
from dyn_core.engines.llvm.threads import COMPILERS, count

PIECE = 4000  # approximate lines of a piece: a tenth of a second of compilation
_FUNCTION = re.compile(r"^define .*?^}$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"@[\w.]+")


def compile_pieces(ir: str) -> list[bytes]:
    """Return the object codes of a module, in the order in which they must be loaded.

    Raises:
        CompileError: LLVM failed.
    """
    pieces = split(ir)
    codes = [b""] * len(pieces)
    left = list(reversed(range(len(pieces))))

    def compile_some() -> None:
        while left:
            try:
                k = left.pop()
            except IndexError:  # another thread took the last one
                return
            codes[k] = compiler.compile_ir(pieces[k])

    threads = min(count(), len(pieces))
    COMPILERS.run([compile_some] * threads, left.clear)
    return codes


def split(ir: str) -> list[str]:
    """Return the pieces of a module; callers are in earlier pieces than their callees.

    A call into another piece then refers to a symbol that is unknown when it is loaded:
    the loader inserts a jump with unlimited range.
    """
    functions = _FUNCTION.findall(ir)
    groups: list[list[str]] = []
    lines = PIECE
    for function in reversed(functions):  # written callees first
        if lines >= PIECE:
            groups.append([])
            lines = 0
        groups[-1].append(function.replace("define internal", "define hidden", 1))
        lines += function.count("\n") + 1
    if len(groups) < 2:
        return [ir]
    head = ir[: ir.index("define ")]
    declared = {_name(line): line for line in head.splitlines() if line}
    for function in functions:
        first = function.partition("\n")[0].removesuffix(" {").removesuffix(" nounwind")
        declared[_name(first)] = re.sub("^define( internal)?", "declare hidden", first)
    return [_module(group, declared) for group in groups]


def _module(functions: list[str], declared: dict[str, str]) -> str:
    """Return a module of these functions, with declarations of their callees.

    Args:
        functions: Definitions.
        declared: By name, the declaration of every function of the whole module.
    """
    body = "\n".join(functions)
    here = {_name(function) for function in functions}
    called = {name for name in _NAME.findall(body) if name in declared} - here
    notes = [NONTEMPORAL] if "!nontemporal !0" in body else []
    return "\n".join([*(declared[name] for name in sorted(called)), body, *notes])


def _name(definition: str) -> str:
    """Return the name of a function from its definition or declaration; "" if none."""
    match = _NAME.search(definition)
    return match.group() if match else ""
