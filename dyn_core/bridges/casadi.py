"""Programs in CasADi: external functions of machine code with Jacobian and sparsity.

    from dyn_core.bridges import casadi as dyn_casadi     needs the extra `casadi`

    forward = dyn_casadi.function(dyn.solver("aba").build(model))
    qdd = forward(q, qd, tau)                             numbers or expressions

`library` writes a shared library of the exported kernels with the functions that
casadi.external looks for, so that CasADi in C++ or MATLAB loads it, too. Jacobians are
those of the library's analytic derivatives; entries that are zero for every state, as
the tree of the robot says, are left out of their sparsity. There are no second
derivatives: let Ipopt take hessian_approximation "limited-memory".

Positions are plain vectors here, so that robots with quaternions are refused.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.bridges.casadi_source import INCLUDES, Input, Result, source
from dyn_core.engines import Program
from dyn_core.engines.native_program import NativeProgram
from dyn_core.errors import CompileError, ShapeError, UnsupportedError
from dyn_core.export.interface import interface_of
from dyn_core.export.objects import compile_object
from dyn_core.export.targets import target_of
from dyn_core.model import Model
from dyn_core.problems import PASSIVE
from dyn_core.solving.registry import solver

# Blocks of a Jacobian: output, input -> derivative Program's output, row, column; rows
# and columns count blocks of nv.
Blocks = Mapping[tuple[str, str], tuple[str, int, int]]
_OF_STATE = {
    (f"{x}_next", by): (matrix, row, column)
    for row, x in enumerate(("q", "qd"))
    for by, matrix, column in (("q", "A", 0), ("qd", "A", 1), ("tau", "B", 0))
}
DERIVATIVES: Mapping[str, tuple[str, Blocks]] = {
    "inverse_dynamics": (
        "id_derivatives",
        {
            ("tau", "q"): ("dtau_dq", 0, 0),
            ("tau", "qd"): ("dtau_dqd", 0, 0),
            ("tau", "qdd"): ("H", 0, 0),
        },
    ),
    "forward_dynamics": (
        "fd_derivatives",
        {
            ("qdd", "q"): ("dqdd_dq", 0, 0),
            ("qdd", "qd"): ("dqdd_dqd", 0, 0),
            ("qdd", "tau"): ("Hinv", 0, 0),
        },
    ),
    "step": ("{solver}_derivatives", _OF_STATE),
}


def function(
    program: Program[Any],
    name: str | None = None,
    constants: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Return a casadi.Function of a Program.

    Args:
        program: Of the engine native, without quaternions among its positions.
        name: Of the function; default: SOLVER_ROBOT.
        constants: Values of inputs that are none of the function, such as dt.
        options: Of casadi.external.

    Raises:
        UnsupportedError: casadi is not installed, or an input has no derivative and is
            not among the constants; the message says which inputs have one.
        CompileError: There is no C compiler to link with, or it fails.
    """
    try:
        import casadi
    except ImportError as error:
        raise UnsupportedError(
            "CasADi is not installed; valid: pip install 'dyn_ros[casadi]'"
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        path = library(program, folder, name, constants)
        return casadi.external(path.stem[3:], str(path), options)


def library(
    program: Program[Any],
    folder: str | os.PathLike[str],
    name: str | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Path:
    """Write libNAME.so for casadi.external(NAME, path); return its path.

    Args:
        program, name, constants: As for `function`.
        folder: Where; it is made.
    """
    prefix = interface_of(program, name).prefix
    assert isinstance(program, NativeProgram)
    fixed = _constants(program, constants or {})
    inputs = [Input(p.name, p.size) for p in program.inputs if p.name not in fixed]
    results = [_whole(program, k) for k in range(len(program.outputs))]
    slopes, blocks = _jacobian(program, [x.name for x in inputs])
    before = [Input(f"out_{r.name}", r.shape[0], read=False) for r in results]
    functions = (
        (prefix, program, inputs, results),
        (f"jac_{prefix}", slopes, [*inputs, *before], blocks),
    )
    text, objects = INCLUDES, {}
    for what, kernel, ins, outs in functions:
        made = compile_object(
            kernel, interface_of(kernel, f"{what}_kernel"), target_of("host")
        )
        objects[f"{what}.o"] = made.data
        text += source(what, kernel, ins, outs, fixed, made.interface.scratch)
    return _linked(Path(folder), prefix, text, objects)


def _constants(program: Program[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constants as flat arrays, checked."""
    ports = {port.name: port for port in program.inputs}
    fixed = {}
    for name, value in values.items():
        if name not in ports:
            raise ShapeError(name, f"one of {', '.join(ports)}", "an unknown name")
        array = np.asarray(value, float)
        if array.shape != ports[name].shape:
            raise ShapeError(name, f"shape {ports[name].shape}", f"shape {array.shape}")
        fixed[name] = array.ravel()
    return fixed


def _jacobian(
    program: NativeProgram, inputs: Sequence[str]
) -> tuple[NativeProgram, list[Result]]:
    """Return the derivative Program and the blocks of the Jacobian by output, input."""
    model, what = program.model, program.recipe.solver.name
    kind = program.signature.name
    if kind not in DERIVATIVES or not isinstance(model, Model) or model.loops:
        known = ", ".join(DERIVATIVES)
        raise UnsupportedError(
            f"{what}: no derivatives are known here; valid: solvers of {known}, for"
            " robots without loops"
        )
    if model.nq != model.nv:
        raise UnsupportedError(
            f"{what}: '{model.name}' has positions with quaternions; valid: robots"
            " with nq = nv"
        )
    name, table = DERIVATIVES[kind]
    known = ", ".join(sorted({by for _, by in table}))
    for by in inputs:
        if not any(by == x for _, x in table):
            raise UnsupportedError(
                f"{what}: there is no derivative by {by}; valid: derivatives by"
                f" {known}, and constants={{'{by}': ...}}"
            )
    derivative = solver(name.format(solver=what))
    kept = {*PASSIVE, *getattr(derivative, "options", {})}
    changed = getattr(program.recipe.solver, "changed_options", {})
    choices = {**changed, **program.recipe.choices}
    slopes = derivative.build(model, **{k: v for k, v in choices.items() if k in kept})
    assert isinstance(slopes, NativeProgram)
    blocks = [
        _block(slopes, model.nv, f"jac_{port.name}_{by}", *table[port.name, by])
        for port in program.outputs
        for by in inputs
    ]
    return slopes, blocks


def _whole(program: NativeProgram, number: int) -> Result:
    """Return an output of a Program, (n,), as a result."""
    port = program.outputs[number]
    return _result(program, port.name, number, np.arange(port.size)[:, None])


def _block(
    slopes: NativeProgram, nv: int, name: str, output: str, row: int, column: int
) -> Result:
    """Return a block of nv x nv of an output of a derivative Program."""
    number = [port.name for port in slopes.outputs].index(output)
    port = slopes.outputs[number]
    places = np.arange(port.size).reshape(port.shape)
    part = places[nv * row : nv * (row + 1), nv * column : nv * (column + 1)]
    return _result(slopes, name, number, part)


def _result(
    program: NativeProgram, name: str, number: int, places: np.ndarray
) -> Result:
    """Return a result; of a matrix without what is zero for every state."""
    start = sum(port.size for port in program.outputs[:number])
    graph = program.graph
    kept: list[int] = []
    rows: list[int] = []
    starts = [0]
    for column in places.T:
        for row, place in enumerate(column.tolist()):
            node = graph.nodes[graph.outputs[start + place]]
            zero = node.op == "const" and node.data == 0.0
            if places.shape[1] == 1 or not zero:
                kept.append(place)
                rows.append(row)
        starts.append(len(kept))
    shape = places.shape[0], places.shape[1]
    return Result(name, shape, number, tuple(kept), tuple(rows), tuple(starts))


def _linked(folder: Path, name: str, text: str, objects: Mapping[str, bytes]) -> Path:
    """Compile the source and link it with the kernels; return the library's path."""
    command = os.environ.get("CC", "cc").split()
    if shutil.which(command[0]) is None:
        raise CompileError(
            f"the library needs a C compiler to link, and there is no '{command[0]}';"
            " valid: install one, or set CC"
        )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"lib{name}.so"
    with tempfile.TemporaryDirectory() as work:
        files = [Path(work, file) for file in (*objects, f"{name}.c")]
        for file, data in zip(files, (*objects.values(), text.encode()), strict=True):
            file.write_bytes(data)
        flags = ["-O1", "-fPIC", "-shared", "-o", str(path), *map(str, files)]
        done = subprocess.run(
            [*command, *flags], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise CompileError(f"{command[0]} cannot link {path.name}: {done.stderr}")
    return path
