"""Programs in CasADi: external functions of machine code with Jacobian and sparsity.

    from dyn_core.bridges import casadi as dyn_casadi     needs the extra `casadi`

    forward = dyn_casadi.function(dyn.solver("aba").build(model))
    qdd = forward(q, qd, tau)                             numbers or expressions

`library` writes a shared library of the exported kernels with the functions that
casadi.external looks for, so that CasADi in C++ or MATLAB loads it, too. Jacobians are
computed by the library's analytic derivatives; entries that are zero for every state,
by the structure of the robot, are left out of their sparsity. With hessian=True
functions of inverse and forward dynamics have second derivatives; without them let
Ipopt use hessian_approximation "limited-memory".

Positions are plain vectors of nq numbers. Quaternions among them are scaled to unit
length by the function, as in the other bridges. The kernels accept positions of unit
length, and their slopes are derivatives by tangent displacements of nv numbers. CasADi
expressions around them, which it differentiates itself, convert both:

    f(q) = kernel(u),   u = normalized(q)
    df(u)/du = slopes(u) V(u),   V(u): velocities (nv) from rates of positions (nq)

so that derivatives are by the nq numbers of q, to any order that the kernels have. The
slope of an output that is a position y is R(y) times the slope of its displacement.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.bridges.casadi_source import (
    INCLUDES,
    STATUS,
    CasadiFunction,
    Input,
    Result,
    source,
)
from dyn_core.bridges.coordinates import PositionRates, coordinates
from dyn_core.bridges.derivatives import Derivatives
from dyn_core.bridges.sources import Source, Values
from dyn_core.engines import Program
from dyn_core.engines.native_program import NativeProgram
from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.export.interface import interface_of
from dyn_core.export.object_code.linker import c_compiler, link
from dyn_core.export.object_code.object_files import compile_object
from dyn_core.export.targets import target_of
from dyn_core.model import Model

# Inputs whose derivatives are all outputs of one Program.
_BY = ("q", "qd", "qdd", "tau")


def casadi_module() -> Any:
    """Return the module casadi; UnsupportedError: it is not installed."""
    try:
        import casadi
    except ImportError as error:
        raise UnsupportedError(
            "CasADi is not installed; valid: pip install 'dyn_ros[casadi]'"
        ) from error
    return casadi


def normalized(rates: PositionRates, q: Any) -> Any:
    """Return the expression of q (nq) with unit quaternions; a zero one gives NaN."""
    ca = casadi_module()
    same, outside = (ca.sparsify(ca.DM(x)) for x in rates.lengths)
    return q / ca.sqrt(ca.mtimes(same, q * q) + outside)


def _converting(rates: PositionRates, q: Any, to_velocity: bool) -> Any:
    """Return V(q) (nv, nq), velocities from rates, or R(q) (nq, nv), the reverse.

    The position must be unit; the matrix is identity for joints without quaternions.
    """
    ca = casadi_module()
    blocks, last = [], 0
    for of_q, of_v, rate, velocity in rates.joints:
        maps = velocity if to_velocity else rate
        width = of_q if to_velocity else of_v
        x = ca.vertcat(q[of_q], 1)
        flat = maps.transpose(1, 0, 2, 3).reshape(-1, len(maps[0, 0]) ** 2)
        entries = ca.mtimes(ca.sparsify(ca.DM(flat)), ca.vec(ca.mtimes(x, x.T)))
        blocks.append(ca.DM.eye(width.start - last))
        blocks.append(ca.reshape(entries, len(maps), maps.shape[1]))
        last = width.stop
    size = rates.nq if to_velocity else rates.nv
    return ca.diagcat(*blocks, ca.DM.eye(size - last))


def around(
    model: Model, name: str, kernels: Sequence[str], path: str, options: Any
) -> Any:
    """Return a casadi.Function of any position around kernels that need unit positions.

    Inputs and outputs have the names and sizes of the first kernel; q is scaled to unit
    quaternions first, and derivatives are by its nq numbers. `kernels` names values,
    slopes, then second derivatives if the library at `path`, loaded here, has them.
    """
    ca = casadi_module()
    externals = [ca.external(kernel, path) for kernel in kernels]
    rates, first = coordinates(model), externals[0]
    names = first.name_in()
    inputs = [ca.MX.sym(x, first.size1_in(k)) for k, x in enumerate(names)]
    unit = [
        normalized(rates, x) if _is_position(name, x, rates) else x
        for name, x in zip(names, inputs, strict=True)
    ]
    inner = _differentiable(rates, externals)
    outputs = _list(inner(*unit))
    return ca.Function(name, inputs, outputs, names, first.name_out(), options)


def c_source(function: Any) -> str:
    """Return C code of a casadi.Function and its Jacobian, for casadi.external."""
    generator = casadi_module().CodeGenerator(function.name())
    generator.add(function)
    generator.add(function.jacobian())
    with tempfile.TemporaryDirectory() as folder:
        written = generator.generate(f"{folder}/")
        return Path(written).read_text(encoding="utf-8")


def _differentiable(rates: PositionRates, externals: Sequence[Any]) -> Any:
    """Return a CasADi function NAME_of_q of the first kernel with a custom Jacobian.

    The next kernels compute the Jacobian, and so on; the last one gets none. Their
    results are jac_Y_X for each result Y and each input X of the function before,
    inputs varying fastest. Inputs must be unit positions; Jacobians are by the nq
    numbers of a position.
    """
    ca = casadi_module()
    function, *others = externals
    names, results = function.name_in(), function.name_out()
    inputs = [ca.MX.sym(x, function.size1_in(k)) for k, x in enumerate(names)]
    name, options = f"{function.name()}_of_q", dict[str, Any]()
    if others:
        outputs = [
            ca.MX.sym(f"out_{y}", function.sparsity_out(k))
            for k, y in enumerate(results)
        ]
        slopes = _list(_differentiable(rates, others)(*inputs))
        turned = []
        for k, slope in enumerate(slopes):
            row, column = divmod(k, len(names))
            if _is_position(names[column], inputs[column], rates):
                slope = ca.mtimes(slope, _converting(rates, inputs[column], True))
            if slope.size1() < function.numel_out(row):  # displacements of a position
                slope = ca.mtimes(_converting(rates, outputs[row], False), slope)
            turned.append(slope)
        jacobian = ca.Function(
            f"jac_{name}",
            [*inputs, *outputs],
            turned,
            [*names, *(f"out_{y}" for y in results)],
            [f"jac_{y}_{x}" for y in results for x in names],
        )
        options = {"custom_jacobian": jacobian, "jac_penalty": 0}
        options |= {"enable_forward": False, "enable_reverse": False}
    outputs = _list(function(*inputs))
    return ca.Function(name, inputs, outputs, names, results, options)


def _is_position(name: str, x: Any, rates: PositionRates) -> bool:
    """Return whether an input is a position: its name is q, and it has nq entries."""
    return name == "q" and x.size1() == rates.nq


def _list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, tuple) else [values]


def function(
    program: Program[Any],
    name: str | None = None,
    constants: Mapping[str, Any] | None = None,
    hessian: bool = False,
    status: bool = False,
    **options: Any,
) -> Any:
    """Return a casadi.Function of a Program.

    Its inputs are the Program's without the constants, each as a column, a matrix row
    by row. Its outputs are the Program's: a matrix as it is, any other as a column, row
    by row. Names stay. Quaternions in q are scaled to unit length first.

    Args:
        program: Program of the engine native, for a robot without loops, in float64.
        name: Name of the function; default: SOLVER_ROBOT.
        constants: Values of inputs that the function does not have, such as dt, by
            name.
        hessian: Whether it has second derivatives, too: for inverse and forward
            dynamics. Without them CasADi says "Derivatives cannot be calculated for
            jac_NAME" when a Hessian is requested.
        status: Whether it has one more result, `status`: 0, or a number that
            program.failure(number) explains; results and derivatives of such states are
            NaN. Without it CasADi raises a RuntimeError where a state fails, and Ipopt
            tries a shorter step.
        options: Options of casadi.external, or for a robot with quaternions of
            casadi.Function.

    Raises:
        UnsupportedError: casadi is not installed, the Program is of another kind, no
            solver computes its derivatives (`hessian`: second ones), the name is no C
            identifier, reserved or a port's, or an input has no derivative and is not
            among the constants; the message says which inputs have one.
        ShapeError: A constant is no input, or has another shape.
        ValueError, TypeError: A constant is no array of numbers.
        CompileError: There is no C compiler to link with, or it fails.
        RuntimeError: CasADi refuses one of `options`.
    """
    casadi = casadi_module()
    kernels = _kernels(program, name, constants or {}, hessian, status)
    with tempfile.TemporaryDirectory() as folder:
        path = str(_linked(Path(folder), kernels))
        if kernels.plain:
            return casadi.external(kernels.name, path, options)
        return around(program.model, kernels.name, kernels.functions, path, options)


def normalize(model: Model, q: Any) -> Any:
    """Return a position with quaternions scaled to unit length, as a CasADi expression.

    Args:
        model: Robot.
        q: Position (nq), SX, MX or numbers, which give a DM; not changed. A zero
            quaternion gives NaN.

    Raises:
        UnsupportedError: casadi is not installed.
    """
    return normalized(coordinates(model), q)


def library(
    program: Program[Any],
    folder: str | os.PathLike[str],
    name: str | None = None,
    constants: Mapping[str, Any] | None = None,
    hessian: bool = False,
    status: bool = False,
) -> Path:
    """Write libNAME.so for casadi.external(NAME, path); return its path.

    An existing file of this name is replaced. For robots with quaternions CasADi must
    be installed here, too: it writes the code that scales them. Their libraries have no
    second derivatives. Inputs and outputs are those of `function`.

    Args:
        program: Program of the engine native, for a robot without loops, in float64.
        folder: Folder of the library; it is created.
        name: Name of the function; None: SOLVER_ROBOT.
        constants: Values of inputs that the function does not have, by name.
        hessian: Whether it has second derivatives, too.
        status: Whether it has one more result, `status`: 0, or a number that
            program.failure(number) explains; results of such states are NaN. Without it
            the function fails there, and CasADi raises a RuntimeError.

    Raises:
        UnsupportedError: `hessian` for a robot with quaternions, the Program is of
            another kind, no solver computes its derivatives (`hessian`: second ones),
            the name is no C identifier, reserved or a port's, an input has no
            derivative and is not among the constants, or casadi is needed and not
            installed.
        ShapeError: A constant is no input, or has another shape.
        ValueError, TypeError: A constant is no array of numbers.
        CompileError: There is no C compiler to link with, or it fails.
        OSError: The folder cannot be made.
    """
    kernels = _kernels(program, name, constants or {}, hessian, status)
    if kernels.plain:
        return _linked(Path(folder), kernels)
    if hessian:  # CasADi unrolls them to megabytes of C, which compile for minutes
        raise UnsupportedError(
            f"{kernels.name}: a library of a robot with quaternions has no second"
            " derivatives; valid: hessian=False, or function(program, hessian=True)"
        )
    with tempfile.TemporaryDirectory() as work:
        path = str(_linked(Path(work), kernels))
        outer = around(program.model, kernels.name, kernels.functions, path, {})
        text = c_source(outer)
    sources = {**kernels.sources, f"{kernels.name}.c": text}
    return _linked(Path(folder), replace(kernels, sources=sources))


@dataclass(frozen=True)
class _LibraryParts:
    """The components of a library: objects and C sources by name of the file.

    The functions are the kernels: values, slopes, second derivatives. It is plain if
    positions have no quaternions; the first kernel is then the function itself.
    """

    name: str
    plain: bool
    functions: tuple[str, ...]
    objects: Mapping[str, bytes]
    sources: Mapping[str, str]


def _kernels(
    program: Program[Any],
    name: str | None,
    constants: Mapping[str, Any],
    hessian: bool,
    status: bool,
) -> _LibraryParts:
    """Return the compiled kernels of a Program and of its derivatives, not yet linked.

    Programs and names that CasADi cannot use, and inputs without derivatives that are
    not among the constants, are refused.
    """
    prefix = interface_of(program, name).prefix
    assert isinstance(program, NativeProgram)
    _check(program)
    fixed = _constants(program, constants)
    inputs = [Input(p.name, (p.size, 1)) for p in program.inputs if p.name not in fixed]
    results = [_whole(program, k) for k in range(len(program.outputs))]
    plain = coordinates(program.model).plain
    names = [prefix, f"jac_{prefix}", f"jac_jac_{prefix}"]  # CasADi looks for these
    if not plain:
        names = [f"{prefix}_{x}" for x in ("values", "slopes", "curvatures")]
    functions = [CasadiFunction(names[0], program, inputs, results, status, status)]
    for what in names[1 : 3 if hessian else 2]:
        functions.append(_jacobian(functions[-1], what, plain))
    text, objects = INCLUDES, {}
    for function in functions:
        kernel, what = function.program, function.name
        interface = interface_of(kernel, f"{what}_kernel")
        compiled = compile_object(kernel, interface, target_of("host"))
        objects[f"{what}.o"] = compiled.data
        text += source(function, fixed, compiled.interface.scratch)
    made = tuple(names[: len(functions)])
    return _LibraryParts(prefix, plain, made, objects, {f"{made[0]}.c": text})


def _check(program: NativeProgram) -> None:
    """Check that a Program has float64 and a robot without loops, as CasADi needs."""
    model, what = program.model, program.recipe.solver.name
    if not isinstance(model, Model) or model.loops:
        raise UnsupportedError(f"{what}: valid for CasADi: robots without loops")
    if program.dtype != np.float64:
        raise UnsupportedError(
            f"{what} is built for {program.dtype}, and CasADi computes with float64;"
            " valid: build(model)"
        )


def _constants(program: Program[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constants by name, flat by rows, float64, views where possible."""
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


def _jacobian(function: CasadiFunction, name: str, plain: bool) -> CasadiFunction:
    """Return the Jacobian of a function.

    Its results are jac_Y_X for each output Y and each input X, inputs varying fastest:
    the derivative of Y by X, with a row for each entry of Y, column by column, and a
    column for each entry of X, in the order of the Program (row by row). For positions,
    both outputs and inputs, derivatives are taken in tangent displacements of nv
    numbers. By an input that is not read it is zero. With `status`, zeros jac_status_X
    are last.

    If `plain`, CasADi calls it directly: its inputs are then those of the function and
    its outputs, which are not read; else the inputs alone.
    """
    derivatives = Derivatives(function.program)
    _check_inputs(function, derivatives)
    used: dict[Source, None] = {}

    def numbered(derivative: Source, _: Any) -> dict[str, np.ndarray]:
        used[derivative] = None
        return _numbers(derivative.program)

    values, model = Values(numbered, {}, lambda shape: None), function.program.model
    inputs_of = function.program.inputs
    widths = {port.name: model.nv for port in inputs_of if port.kind == "position"}
    slopes: dict[str, np.ndarray] = {}
    for y in function.results:
        port = function.program.outputs[y.output]
        moves = port.kind == "position"
        height = model.nv if moves else y.shape[0] * y.shape[1]
        to, places = (range(height),) * 2 if moves else (y.kept, y.places)
        for x in function.inputs:
            depends = x.read and bool(y.kept)
            slope = derivatives.slope(port.name, x.name) if depends else None
            rows = np.full((height, widths.get(x.name, x.size)), -1)
            if slope is not None:
                by_entry = np.asarray(slope(values)).reshape(-1, rows.shape[1])
                rows[list(to)] = by_entry[list(places)]
            slopes[f"jac_{y.name}_{x.name}"] = rows
    for x in function.inputs if function.status else ():
        slopes[f"jac_{STATUS}_{x.name}"] = np.full((1, widths.get(x.name, x.size)), -1)
    (derivative,) = used  # _check_inputs admits inputs of one Program only
    program = derivative.program
    assert isinstance(program, NativeProgram)
    outputs = [Input(f"out_{y.name}", y.shape, read=False) for y in function.results]
    outputs += [Input(f"out_{STATUS}", (1, 1), read=False)] * function.status
    results = [_result(program, key, numbers) for key, numbers in slopes.items()]
    inputs = [*function.inputs, *(outputs if plain else ())]
    return CasadiFunction(name, program, inputs, results, function.marks)


def _check_inputs(function: CasadiFunction, derivatives: Derivatives) -> None:
    """Check that each input that is read has a derivative (by q, qd, qdd or tau)."""
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
    """Return the index of each entry of each output, counted across all outputs.

    The result has an array of the output's shape by its name, counted row by row.
    """
    numbers, start = {}, 0
    for port in program.outputs:
        numbers[port.name] = start + np.arange(port.size).reshape(port.shape)
        start += port.size
    return numbers


def _whole(program: NativeProgram, number: int) -> Result:
    """Return the output of index `number` as a Result: a matrix if it has two axes.

    Else it is a column of the entries, row by row. Entries of a matrix that are zero
    for every state are not stored; those of a single column all are.
    """
    port = program.outputs[number]
    entries = _numbers(program)[port.name]
    if entries.ndim != 2:
        entries = entries.reshape(-1, 1)
    return _result(program, port.name, entries)


def _result(program: NativeProgram, name: str, numbers: np.ndarray) -> Result:
    """Return a Result; entries of a matrix that are zero for every state are left out.

    `numbers` (rows, columns) are indices of entries, counted across all outputs of the
    Program, each row by row; -1 for a zero. All lie in the same output. Of a single
    column, only entries -1 are left out. If all are -1, the Result is empty and refers
    to output 0.
    """
    some = int(numbers.max(initial=0))
    starts = np.cumsum([0, *(port.size for port in program.outputs)])
    output = int(np.searchsorted(starts, some, "right")) - 1
    nodes, ends = program.graph.nodes, program.graph.outputs
    kept, rows, columns = [], [], [0]
    for k, column in enumerate(numbers.T.tolist()):
        for row, number in enumerate(column):
            node = nodes[ends[number]]
            missing = number < 0
            zero = missing or (node.op == "const" and node.data == 0.0)
            if not zero or (numbers.shape[1] == 1 and not missing):
                kept.append((k * len(column) + row, number - int(starts[output])))
                rows.append(row)
        columns.append(len(rows))
    places, entries = [x for x, _ in kept], [x for _, x in kept]
    shape = numbers.shape[0], numbers.shape[1]
    return Result(
        name, shape, output, tuple(entries), tuple(places), tuple(rows), tuple(columns)
    )


def _linked(folder: Path, kernels: _LibraryParts) -> Path:
    """Compile the C sources and link them with the kernels to libNAME.so in the folder.

    The folder is created if it is missing; an existing file is replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"lib{kernels.name}.so"
    texts = {file: text.encode() for file, text in kernels.sources.items()}
    with tempfile.TemporaryDirectory() as work:
        contents = {**kernels.objects, **texts}
        files = [Path(work, file) for file in contents]
        for file, data in zip(files, contents.values(), strict=True):
            file.write_bytes(data)
        flags = ["-O1", "-fPIC", "-o", str(path), *map(str, files)]
        link(c_compiler(), path.name, flags, "install one, or set CC")
    return path
