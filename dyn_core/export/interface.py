"""The interface of an exported Program: one table that drives every binding.

Header, C source, test vector, CMake package and the bindings of other languages are
generated from it. The C functions of an export named PREFIX, version 1 of the
interface:

    int64_t PREFIX(const REAL *const *in, REAL *const *out, void *scratch);
        One state. in, out: tables of pointers to the ports, in the order of the
        interface, row-major. Returns 0, or a status (below).
    int64_t PREFIX_batch(const REAL *const *in, const int64_t *strides,
                         REAL *const *out, int64_t *status,
                         int64_t first, int64_t last, void *scratch);
        Rows first..last-1 of arrays (rows, ...); any number of rows. strides: bytes
        from row to row of each input, 0 if all rows share it. status: one number
        for each row, from row 0 on. Returns the number of failed rows. Only in
        exports of the variant "batch".
    const dyn_interface PREFIX_interface;
        The table as constants of C, for programs that load a library by name.

Rules of both functions:

1.  REAL is double, or float for a Program of float32.
2.  scratch: memory of the caller, of PREFIX_SCRATCH bytes (PREFIX_BATCH_SCRATCH for
    the batch), aligned to ALIGNMENT bytes, with any content. Each thread needs its
    own: the functions have no other memory, and allocate none.
3.  Inputs, outputs and scratch do not overlap.
4.  A status other than 0 is the number of a failed condition (`statuses`). All outputs
    of that state are then NaN, as in Python with status=True, so that no caller can
    use them as a result.
5.  Inputs and results that are NaN or infinite have the status NOT_FINITE_INPUT or
    NOT_FINITE_RESULT, except in exports with checked=False. The numbers are defined
    in engines/status.py.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from dyn_core.engines import Program
from dyn_core.engines.native_program import NativeProgram
from dyn_core.engines.program_description import options_line
from dyn_core.engines.status import NOT_FINITE
from dyn_core.errors import UnsupportedError
from dyn_core.model import Model
from dyn_core.model.coordinates.labels import Coordinates, coordinates_of
from dyn_core.problems import Port
from dyn_core.recordings.runs import model_hash

ABI = 1  # version of the functions and of the table
ALIGNMENT = 64  # alignment of scratch memory [bytes]
LICENSE = "Apache-2.0"  # SPDX name of the licence of exported text
_DIGITS = 16  # length of a hash
_AXES = ("nq", "nv", "nb")
# Reserved words of C and C++, and names of other arguments.
_TAKEN = frozenset(
    "alignas alignof and asm auto bitand bitor bool break case catch char class compl"
    " concept const constexpr continue decltype default delete do double else enum"
    " explicit export extern false float for friend goto if inline int long mutable"
    " namespace new noexcept not nullptr operator or private protected public register"
    " requires restrict return short signed sizeof static struct switch template this"
    " throw true try typedef typeid typename typeof union unsigned using virtual void"
    " volatile while xor status scratch in out first last rows strides".split()
)

# Functions of the kernels, and names in the check program.
_INNER = frozenset(
    "scalar batch main row port k start sizes value memory numbers different worst got"
    " compare wanted units whole largest failed reported".split()
)


@dataclass(frozen=True)
class PortInterface:
    """One input or output.

    Attributes:
        name: Name in Python.
        c_name: Identifier in C, unique among all ports.
        shape: Sizes of the axes; () for a number.
        size: Number of entries.
        unit: SI unit; alternatives by a bar, parts by a semicolon.
        kind: One of dyn_core.problems.signatures.KINDS.
        meaning: A short noun phrase, with the frame if there is one.
        axes: For each axis nq, nv or nb if it counts coordinates or bodies, else "".
    """

    name: str
    c_name: str
    shape: tuple[int, ...]
    size: int
    unit: str
    kind: str
    meaning: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class CoordinateLimits:
    """Limits of a coordinate; None where the robot has none.

    Attributes:
        lower, upper: Limits of the position [rad | m].
        velocity: Maximum absolute velocity [rad/s | m/s].
        effort: Maximum absolute effort [N·m | N].
    """

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None


@dataclass(frozen=True)
class Interface:
    """The interface of a Program for callers outside Python.

    Attributes:
        prefix: Name of the functions in C.
        solver, problem, robot: Names.
        model_hash: 16 hexadecimal digits of the robot (recordings.runs.model_hash).
        kernel_hash: 16 hexadecimal digits of the traced algorithm, its ports and their
            numbers; the same for every target and variant.
        inputs, outputs: Ports in the order of the call.
        dtype: float64 or float32.
        finite: Whether inputs and results are checked for NaN and infinity.
        answers_all: Whether the algorithm answers NaN and infinity itself.
        statuses: Message of each status from 1 on, such as SingularError: joint elbow.
        positions, velocities: Names of the coordinates: joint, or joint.0, joint.1, ...
        position_units, velocity_units: rad, m or 1; see Coordinates.
        bodies: Names of the moving bodies.
        library: Version of this library.
        options: Options of build as text "name=value, ...", or none; long values are
            shortened.
        limits: Limits of the robot, one for each velocity coordinate.
        numbered: Words for numbers in outputs, as those of the solver.
        scratch, batch_scratch: Scratch memory of a call of each function [bytes]; 0 if
            it is not exported.
        stack: Upper bound of the stack of a call [bytes] (stack_bound.py).
        lanes: Rows that the batch computes at once; 0 without a batch.
    """

    prefix: str
    solver: str
    problem: str
    robot: str
    model_hash: str
    kernel_hash: str
    inputs: tuple[PortInterface, ...]
    outputs: tuple[PortInterface, ...]
    dtype: str
    finite: bool
    statuses: tuple[str, ...]
    positions: tuple[str, ...]
    velocities: tuple[str, ...]
    position_units: tuple[str, ...]
    velocity_units: tuple[str, ...]
    bodies: tuple[str, ...]
    library: str
    options: str = "none"
    limits: tuple[CoordinateLimits, ...] = ()
    numbered: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    scratch: int = 0
    batch_scratch: int = 0
    stack: int = 0
    lanes: int = 0
    answers_all: bool = False

    @property
    def numbered_lists(self) -> dict[str, list[str]]:
        """`numbered` as texts, such as "0 drives"."""
        return {
            what: [f"{k} {name}" for k, name in names.items()]
            for what, names in self.numbered.items()
        }

    @property
    def real(self) -> str:
        """Type of the numbers in C."""
        return "double" if self.dtype == "float64" else "float"

    @property
    def macro(self) -> str:
        """Prefix of the names of its macros in C: `prefix` in upper case."""
        return self.prefix.upper()

    @property
    def ports(self) -> tuple[PortInterface, ...]:
        """All ports, inputs first."""
        return self.inputs + self.outputs

    @property
    def sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Numbers of entries of the inputs, and of the outputs."""
        return tuple(p.size for p in self.inputs), tuple(p.size for p in self.outputs)

    def sentence(self, status: int) -> str:
        """Return the message of a status; a number that is no status has one, too.

        Those of NaN and infinity are returned also if `finite` is False.
        """
        known = {0: "no error", **NOT_FINITE}
        if 1 <= status <= len(self.statuses):
            return self.statuses[status - 1]
        return known.get(status, f"no status {status} is known")

    @property
    def notice(self) -> tuple[str, ...]:
        """Lines at the head of each file: licence, model hash and kernel hash."""
        return notice(self.model_hash, self.kernel_hash)

    def with_memory(
        self, scratch: int, stack: int = 0, batch_scratch: int = 0, lanes: int = 0
    ) -> Interface:
        """Return a copy with the memory of the functions for one target.

        An argument that is left out sets its value to 0.

        Args:
            scratch, batch_scratch: Scratch memory of each function [bytes].
            stack: Upper bound of the stack [bytes].
            lanes: Rows that the batch computes at once.
        """
        return replace(
            self, scratch=scratch, stack=stack, batch_scratch=batch_scratch, lanes=lanes
        )


def interface_of(program: Program[Any], name: str | None = None) -> Interface:
    """Return the interface of a Program, without the memory of a target (zeros).

    Args:
        program: Program of the engine native.
        name: Name of its functions in C; None: SOLVER_ROBOT, which is made an
            identifier and not checked.

    Raises:
        UnsupportedError: The Program is of another engine, or the name is no C
            identifier, reserved, or the name of a port.
    """
    if not isinstance(program, NativeProgram):
        raise UnsupportedError(
            f"a Program of engine '{program.engine}' cannot be exported: no machine"
            " code is made of it; valid: solvers whose algorithm can be traced, built"
            " with engine='native', and no NumpySolver in their slots"
        )
    model, solver = program.model, program.recipe.solver
    taken = set(_TAKEN)
    symbolic = {p.name: p for p in (*program.signature.inputs,)}
    inputs = tuple(_port(p, symbolic.get(p.name), taken) for p in program.inputs)
    symbolic = {p.name: p for p in program.signature.outputs}
    outputs = tuple(_port(p, symbolic.get(p.name), taken) for p in program.outputs)
    coordinates, bodies = Coordinates((), (), (), ()), tuple[str, ...]()
    limits: tuple[CoordinateLimits, ...] = ()
    if isinstance(model, Model):
        coordinates = coordinates_of(model)
        bodies = tuple(str(body) for body in model.names[1:])
        limits = _limits(model)
    names = {port.c_name for port in inputs + outputs}
    return Interface(
        _prefix(name, f"{solver.name}_{model.name}", names),
        solver.name,
        program.signature.name,
        model.name,
        hash_of(model),
        _kernel_hash(program),
        inputs,
        outputs,
        str(program.dtype),
        program.finite,
        _statuses(program),
        *coordinates,
        bodies,
        _library(),
        options_line({**solver.changed_options, **program.recipe.choices}) or "none",
        limits,
        solver.numbered,
        answers_all=program.signature.answers_all,
    )


def notice(model: str, kernel: str = "") -> tuple[str, ...]:
    """Return the lines at the head of exported files, unmarked: licence and hashes."""
    of_kernel = f", kernel {kernel}" if kernel else ""
    return (
        f"SPDX-License-Identifier: {LICENSE}",
        f"Written by dyn_ros {_library()}: model {model or 'none'}{of_kernel}.",
    )


def hash_of(model: Any) -> str:
    """Return the hash of a robot's dynamics (model_hash); empty for other systems."""
    return model_hash(model) if isinstance(model, Model) else ""


def identifier(text: str) -> str:
    """Return a text as a C identifier; "_" if it has no letters and digits.

    A run of other characters becomes one underscore, none at the ends; one is put
    before a first digit.
    """
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    return f"_{name}" if name[:1].isdigit() else name or "_"


def _prefix(name: str | None, default: str, ports: set[str]) -> str:
    """Return the C name of the functions: the checked `name`, or one from `default`."""
    if name is None:
        return identifier(default)
    taken = _TAKEN | _INNER | ports
    if not isinstance(name, str) or name != identifier(name) or name in taken:
        raise UnsupportedError(
            f"name={name!r} is no name of a C function, or taken; valid: letters,"
            f" digits and underscores, such as '{identifier(default)}'"
        )
    return name


def _port(port: Port, symbolic: Port | None, taken: set[str]) -> PortInterface:
    """Return the interface of a Port; a C name that is taken gets a number, as in q_2.

    `symbolic` is the Port with names of sizes. The C name is added to `taken`.
    """
    c_name, number = identifier(port.name), 1
    while c_name in taken:
        number += 1
        c_name = f"{identifier(port.name)}_{number}"
    taken.add(c_name)
    named: Sequence[Any] = () if symbolic is None else symbolic.shape
    if len(named) != len(port.shape) or port.places is not None:
        named = ("",) * len(port.shape)
    return PortInterface(
        port.name,
        c_name,
        tuple(int(n) for n in port.shape),
        port.size,
        port.unit,
        port.kind,
        port.meaning,
        tuple(axis if axis in _AXES else "" for axis in named),
    )


def _limits(model: Model) -> tuple[CoordinateLimits, ...]:
    """Return the limits of each velocity coordinate; infinite or effort 0 is None."""
    efforts = np.where(model.effort_limit > 0, model.effort_limit, np.inf)
    rows = zip(model.lower, model.upper, model.velocity_limit, efforts, strict=True)
    return tuple(
        CoordinateLimits(*(float(x) if np.isfinite(x) else None for x in row))
        for row in rows
    )


def _kernel_hash(program: NativeProgram) -> str:
    """Return a digest of Graph, ports and dtype of a Program, 16 hexadecimal digits."""
    digest = hashlib.sha256(program.graph.digest())
    ports: Iterable[Port] = (*program.inputs, *program.outputs)
    what = [(p.name, p.shape, p.unit) for p in ports]
    digest.update(repr((what, len(program.inputs), str(program.dtype))).encode())
    return digest.hexdigest()[:_DIGITS]


def _statuses(program: NativeProgram) -> tuple[str, ...]:
    numbers = range(1, len(program.graph.requirements) + 1)
    errors = [program.failure(number) for number in numbers]
    return tuple(f"{type(error).__name__}: {error}" for error in errors)


def _library() -> str:
    try:
        return version("dyn_ros")
    except PackageNotFoundError:
        return "unknown"
