"""Facts that decide the bits of a batch, as strings to compare.

Two processes compute the same bits if they run the same code of this library, the same
Program of the same robot, and the same arithmetic. A release number is not enough: two
checkouts may share one, and one release rounds differently without a fused multiply-add
or without machine code.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.engines import Program
from dyn_core.engines.llvm import host_machine
from dyn_core.model import Model
from dyn_core.recordings.runs import model_hash
from dyn_core.sharing import once

# Keys of the facts of a Program, and their titles in messages about differences.
TITLES = {
    "library": "release of dyn_ros",
    "program": "Program",
    "model": "robot",
    "arithmetic": "arithmetic",
}
PACKAGES = "dyn_core", "dyn_plugins"
_UNCHANGED = "threads", "wait"  # build options that do not affect results
_DIGITS = 12
_FUNCTIONS = "sin", "cos", "arcsin", "arccos", "arctan2", "exp", "log", "tanh"
_SCALARS = math.sin, math.cos, math.exp, math.log, math.tanh


def program_facts(program: Program[Any]) -> dict[str, str]:
    """Return the facts that decide the bits of a Program's results, by key.

    A robot counts by its name and a hash of its data, another system by its name only.
    """
    model = program.model
    robot = model_hash(model) if isinstance(model, Model) else ""
    return {
        "library": release(),
        "program": f"{program.recipe.solver.name} {_digest(program)}",
        "model": f"{model.name} {robot}".strip(),
        "arithmetic": arithmetic(program.engine),
    }


def fact_differences(
    there: Mapping[str, Any], here: Mapping[str, Any], titles: Mapping[str, str]
) -> Iterator[str]:
    """Iterate over facts of `titles` that differ, "title: ... there, ... here".

    A missing fact counts as None.
    """
    for key, title in titles.items():
        if there.get(key) != here.get(key):
            yield f"{title}: {there.get(key)} there, {here.get(key)} here"


@once
def release() -> str:
    """Return the text "RELEASE (files DIGEST)", the digest of this library's .py files.

    RELEASE is "unknown" if the package is not installed. The files of dyn_core and
    dyn_plugins are read once in a process.
    """
    try:
        number = version("dyn_ros")
    except PackageNotFoundError:
        number = "unknown"
    digest = hashlib.sha256()
    for name in PACKAGES:
        spec = find_spec(name)
        for folder in (spec and spec.submodule_search_locations) or ():
            for path in sorted(Path(folder).rglob("*.py")):
                digest.update(path.relative_to(folder).as_posix().encode())
                digest.update(path.read_bytes())
    return f"{number} (files {digest.hexdigest()[:_DIGITS]})"


def arithmetic(engine: str) -> str:
    """Return a description of the arithmetic of an engine on this machine.

    It decides how numbers round: for "native" LLVM's release and fused multiply-add,
    else NumPy's release and a digest of results. The code generator is part of
    `release`.
    """
    if engine != "native":
        return f"NumPy {np.__version__}, functions {_numpy_functions()}"
    machine = host_machine.machine()
    rounding = "fused" if machine.fused else "no fused"
    return f"machine code by LLVM {machine.llvm}, {rounding} multiply-add"


@once
def _numpy_functions() -> str:
    """Return a digest of results of functions and matrix products of NumPy and Python.

    Their bits differ between libraries and processors.
    """
    x = np.linspace(0.01, 0.99, 501)
    matrix = np.cos(np.arange(1600.0)).reshape(40, 40) + 40 * np.eye(40)
    results = [
        getattr(np, name)(*[x] * (1 + (name == "arctan2"))) for name in _FUNCTIONS
    ]
    results += [np.array([f(float(each)) for each in x]) for f in _SCALARS]
    results += [matrix @ matrix, np.linalg.solve(matrix, x[:40])]
    digest = hashlib.sha256()
    for result in results:
        digest.update(result.tobytes())
    return digest.hexdigest()[:_DIGITS]


def _digest(program: Program[Any]) -> str:
    """Return a digest of a Program's algorithm, ports, dtype, build options and engine.

    Options that change no bit (threads, wait) are left out. Numbers, texts, tuples and
    lists count by their repr, other options by the name of their type only.
    """
    facts: list[Any] = [program.engine, str(program.dtype), _algorithm(program)]
    facts += [(port.name, port.shape) for port in (*program.inputs, *program.outputs)]
    for name, choice in sorted(program.recipe.choices.items()):
        if name not in _UNCHANGED:
            plain = isinstance(choice, int | float | str | tuple | list)
            facts.append((name, repr(choice) if plain else type(choice).__name__))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _algorithm(program: Program[Any]) -> str:
    """Return a digest of the operations of a Program's Graph.

    Without a Graph (engine plain), or if the Graph calls Programs, it is the weaker
    digest of the solver's code, see code_digest.
    """
    facts = getattr(program, "facts", None)
    if facts is not None:
        return str(facts.graph)
    graph = getattr(program, "graph", None)
    if graph is not None and not graph.calls_programs():
        return str(graph.digest().hex())
    solver: Any = program.recipe.solver
    return code_digest(getattr(solver, "algorithm", None) or type(solver).solve)


def code_digest(function: Any) -> str:
    """Return "NAME DIGEST" of a function, DIGEST of its bytecode and names.

    Constants count if real numbers, texts or tuples. Others, inner and called
    functions, defaults and closures do not: the digest may stay the same when they
    change. A callable without bytecode, such as a ufunc, gives its name, or its type's.
    """
    name = getattr(function, "__qualname__", None) or getattr(
        function, "__name__", type(function).__name__
    )
    code = getattr(function, "__code__", None)
    if code is None:
        return str(name)
    numbers = [x for x in code.co_consts if isinstance(x, int | float | str | tuple)]
    digest = hashlib.sha256(code.co_code + repr((code.co_names, numbers)).encode())
    return f"{name} {digest.hexdigest()[:8]}"
