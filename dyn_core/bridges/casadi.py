"""Programs in CasADi: external functions of machine code with Jacobian and sparsity.

    from dyn_core.bridges import casadi as dyn_casadi     needs the extra `casadi`

    forward = dyn_casadi.function(dyn.solver("aba").build(model))
    qdd = forward(q, qd, tau)                             numbers or expressions

`library` writes a shared library of the exported kernels with the functions that
casadi.external looks for, so that CasADi in C++ or MATLAB loads it, too. Jacobians are
those of the library's analytic derivatives; entries that are zero for every state, as
the tree of the robot says, are left out of their sparsity. With hessian=True functions
of inverse and forward dynamics have second derivatives; without them let Ipopt take
hessian_approximation "limited-memory".

Positions are plain vectors here, so that robots with quaternions are refused.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.bridges.casadi_source import (
    INCLUDES,
    CasadiFunction,
    Input,
    Result,
    source,
)
from dyn_core.bridges.derivatives import Derivatives
from dyn_core.bridges.sources import Source, Values
from dyn_core.engines import Program
from dyn_core.engines.native_program import NativeProgram
from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.export.interface import interface_of
from dyn_core.export.linker import c_compiler, link
from dyn_core.export.objects import compile_object
from dyn_core.export.targets import target_of
from dyn_core.model import Model

# Inputs whose slopes are entries of one Program's outputs.
_BY = ("q", "qd", "qdd", "tau")


def function(
    program: Program[Any],
    name: str | None = None,
    constants: Mapping[str, Any] | None = None,
    hessian: bool = False,
    **options: Any,
) -> Any:
    """Return a casadi.Function of a Program.

    Args:
        program: Of the engine native, without quaternions among its positions.
        name: Of the function; default: SOLVER_ROBOT.
        constants: Values of inputs that are none of the function, such as dt.
        hessian: Whether it has second derivatives, too: of inverse and forward
            dynamics. Without them CasADi says "Derivatives cannot be calculated for
            jac_NAME" where it is asked for a Hessian.
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
        path = library(program, folder, name, constants, hessian)
        return casadi.external(path.stem[3:], str(path), options)


def library(
    program: Program[Any],
    folder: str | os.PathLike[str],
    name: str | None = None,
    constants: Mapping[str, Any] | None = None,
    hessian: bool = False,
) -> Path:
    """Write libNAME.so for casadi.external(NAME, path); return its path.

    Args:
        program, name, constants, hessian: As for `function`.
        folder: Where; it is made.
    """
    prefix = interface_of(program, name).prefix
    assert isinstance(program, NativeProgram)
    _check(program)
    fixed = _constants(program, constants or {})
    inputs = [Input(p.name, (p.size, 1)) for p in program.inputs if p.name not in fixed]
    results = [_whole(program, k) for k in range(len(program.outputs))]
    functions = [CasadiFunction(prefix, program, inputs, results)]
    for _ in range(2 if hessian else 1):
        functions.append(_jacobian(functions[-1]))
    text, objects = INCLUDES, {}
    for function in functions:
        kernel, what = function.program, function.name
        made = compile_object(
            kernel, interface_of(kernel, f"{what}_kernel"), target_of("host")
        )
        objects[f"{what}.o"] = made.data
        text += source(function, fixed, made.interface.scratch)
    return _linked(Path(folder), prefix, text, objects)


def _check(program: NativeProgram) -> None:
    """Refuse a Program that CasADi cannot call, or that has no derivatives here."""
    model, what = program.model, program.recipe.solver.name
    if not isinstance(model, Model) or model.loops:
        raise UnsupportedError(f"{what}: valid for CasADi: robots without loops")
    if model.nq != model.nv:
        raise UnsupportedError(
            f"{what}: '{model.name}' has positions with quaternions; valid: robots"
            " with nq = nv"
        )
    if program.dtype != np.float64:
        raise UnsupportedError(
            f"{what} is built for {program.dtype}, and CasADi computes with float64;"
            " valid: build(model)"
        )


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


def _jacobian(function: CasadiFunction) -> CasadiFunction:
    """Return the Jacobian of a function as CasADi looks for it.

    Its inputs are those of the function and its outputs, which are not read; its
    outputs the derivatives of each output by each input, matrices as vectors column by
    column.

    Raises:
        UnsupportedError: There is no solver of these derivatives.
    """
    derivatives = Derivatives(function.program)
    _check_inputs(function, derivatives)
    used: dict[Source, None] = {}

    def numbered(derivative: Source, _: Any) -> dict[str, np.ndarray]:
        used[derivative] = None
        return _numbers(derivative.program)

    values = Values(numbered, {}, lambda shape: None)
    slopes: dict[str, np.ndarray] = {}
    for y in function.results:
        port = function.program.outputs[y.output]
        for x in function.inputs:
            slope = derivatives.slope(port.name, x.name) if x.read else None
            rows = np.full((y.shape[0] * y.shape[1], x.size), -1)
            if slope is not None:
                by_entry = np.asarray(slope(values)).reshape(port.size, x.size)
                rows[list(y.kept)] = by_entry[list(y.places)]
            slopes[f"jac_{y.name}_{x.name}"] = rows
    (derivative,) = used  # _check_inputs leaves what one Program computes
    program = derivative.program
    assert isinstance(program, NativeProgram)
    outputs = [Input(f"out_{y.name}", y.shape, read=False) for y in function.results]
    results = [_result(program, name, numbers) for name, numbers in slopes.items()]
    name = f"jac_{function.name}"
    return CasadiFunction(name, program, [*function.inputs, *outputs], results)


def _check_inputs(function: CasadiFunction, derivatives: Derivatives) -> None:
    """Refuse a function with an input that it cannot be differentiated by."""
    what = function.program.recipe.solver.name
    by = [x for x in _BY if any(x == name for _, name in derivatives.slopes)]
    if not by:
        raise UnsupportedError(
            f"{what}: no solver of its derivatives is known; valid: solvers of inverse"
            " and forward dynamics, and of steps without hessian=True (second"
            " derivatives of a step: write it in CasADi around forward dynamics)"
        )
    for x in function.inputs:
        if x.read and x.name not in by:
            raise UnsupportedError(
                f"{what}: there is no derivative by {x.name}; valid: derivatives by"
                f" {', '.join(by)}, and constants={{'{x.name}': ...}}"
            )


def _numbers(program: Program[Any]) -> dict[str, np.ndarray]:
    """Return for each output the numbers of its entries among those of all outputs."""
    numbers, start = {}, 0
    for port in program.outputs:
        numbers[port.name] = start + np.arange(port.size).reshape(port.shape)
        start += port.size
    return numbers


def _whole(program: NativeProgram, number: int) -> Result:
    """Return an output of a Program as a result: a vector, or a matrix."""
    port = program.outputs[number]
    entries = _numbers(program)[port.name]
    if entries.ndim != 2:
        entries = entries.reshape(-1, 1)
    return _result(program, port.name, entries)


def _result(program: NativeProgram, name: str, numbers: np.ndarray) -> Result:
    """Return a result; where it is a matrix, without what is zero for every state.

    Args:
        program: Its kernel.
        name: Of the result.
        numbers: Of its entries among those of all outputs; -1 where one is zero.
    """
    some = int(numbers.max(initial=0))
    starts = np.cumsum([0, *(port.size for port in program.outputs)])
    output = int(np.searchsorted(starts, some, "right")) - 1
    nodes, ends = program.graph.nodes, program.graph.outputs
    kept, rows, columns = [], [], [0]
    for k, column in enumerate(numbers.T.tolist()):
        for row, number in enumerate(column):
            node = nodes[ends[number]]
            zero = number < 0 or (node.op == "const" and node.data == 0.0)
            if numbers.shape[1] == 1 or not zero:
                kept.append((k * len(column) + row, number - int(starts[output])))
                rows.append(row)
        columns.append(len(rows))
    places, entries = [x for x, _ in kept], [x for _, x in kept]
    shape = numbers.shape[0], numbers.shape[1]
    return Result(
        name, shape, output, tuple(entries), tuple(places), tuple(rows), tuple(columns)
    )


def _linked(folder: Path, name: str, text: str, objects: Mapping[str, bytes]) -> Path:
    """Compile the source and link it with the kernels; return the library's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"lib{name}.so"
    with tempfile.TemporaryDirectory() as work:
        files = [Path(work, file) for file in (*objects, f"{name}.c")]
        for file, data in zip(files, (*objects.values(), text.encode()), strict=True):
            file.write_bytes(data)
        flags = ["-O1", "-fPIC", "-o", str(path), *map(str, files)]
        link(c_compiler(), path.name, flags, "install one, or set CC")
    return path
