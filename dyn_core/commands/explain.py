"""The command `dyn explain`: the cost of a solver on a robot, by line of the algorithm.

The algorithm is traced once more, and each operation is recorded with the line that
caused it. Costs are approximate cycles of a batch kernel: reciprocal throughputs.
"""

from __future__ import annotations

import argparse
import linecache
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.commands.timing import per_call
from dyn_core.engines import NativeProgram
from dyn_core.engines.graph.graph import Graph
from dyn_core.engines.graph.passes import prune
from dyn_core.engines.graph.trace import Tracer
from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.model.sources.arguments import add_robot, load_robot
from dyn_core.solving.build_options import Required
from dyn_core.solving.registry import solver

COST = {
    "add": 1, "sub": 1, "mul": 1, "neg": 0.5, "div": 8, "sqrt": 10, "sin": 20,
    "cos": 20, "exp": 25, "log": 30, "tanh": 50, "asin": 50, "acos": 50, "atan2": 50,
}  # fmt: skip
FLOPS = ("add", "sub", "mul", "div", "sqrt")
_FREE = ("const", "input", "item")
_PASSED = ("dyn_core.numbers.scalar", "dyn_core.engines", "dyn_core.spatial", __name__)


@dataclass
class Origins:
    """The lines of an algorithm that cause the operations of its Graph.

    Costs are approximate cycles for one state in each lane. `graph` has no unused
    nodes; `kinds` counts operations, not constants and inputs; keys of `functions` are
    `file: name`, those of `lines` `file:number  text of the line`.
    """

    graph: Graph
    kinds: Counter[str] = field(default_factory=Counter)
    functions: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    lines: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def flops(self) -> int:
        """Number of + - * / and roots outside loops, matrix products and calls."""
        return sum(self.kinds[op] for op in FLOPS)

    @property
    def cost(self) -> float:
        """Cost of the whole algorithm [cycles]."""
        return sum(self.functions.values())


class _Noting(Tracer):
    """A Tracer that records the line of the algorithm that first created each node.

    `noted` has file, line number and function name by index of the node.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.noted: dict[int, tuple[str, int, str]] = {}

    def record(self, op: str, operands: Sequence[Any]) -> Any:
        """Record as Tracer.record; the line of each new node is stored in `noted`."""
        before = len(self.builder.graph.nodes)
        result = super().record(op, operands)
        for node in range(before, len(self.builder.graph.nodes)):
            self.noted[node] = _asked()
        return result


def _asked() -> tuple[str, int, str]:
    """Return (file, line number, function) of the algorithm that is running.

    It is the nearest caller outside of the modules in _PASSED, which do the tracing,
    else the outermost caller; to be called by _Noting.record only.
    """
    frame = sys._getframe(2)
    while frame.f_back is not None:
        if not frame.f_globals.get("__name__", "").startswith(_PASSED):
            break
        frame = frame.f_back
    code = frame.f_code
    return code.co_filename, frame.f_lineno, code.co_name


def origins(function: Callable[[Sequence[Any]], Sequence[Any]], width: int) -> Origins:
    """Return the cost of a function, traced now, by line and function of its source.

    Only operations that an output or a requirement needs have a cost [cycles], by the
    table COST. One that is not in COST counts 1: a whole loop, product or call of a
    Program, too. Constants, inputs and items of a loop or call cost nothing. The
    function takes a list of `width` numbers.
    """
    tracer = _Noting(width)
    outputs = function(tracer.inputs)
    tracer.builder.graph.outputs = [tracer.lift(x) for x in outputs]
    whole = tracer.builder.graph
    needed = {*whole.outputs, *(r.condition for r in whole.requirements)}
    for k in reversed(range(len(whole.nodes))):
        if k in needed:
            needed.update(whole.nodes[k].operands)
    result = Origins(prune(whole))
    for k, node in enumerate(whole.nodes):
        if k not in needed or node.op in _FREE:
            continue
        result.kinds[node.op] += 1
        file, line, name = tracer.noted.get(k, ("?", 0, "?"))
        cost, short = COST.get(node.op, 1), Path(file).name
        result.functions[f"{short}: {name}"] += cost
        shown = linecache.getline(file, line).strip()
        result.lines[f"{short}:{line}  {shown}"] += cost
    return result


def report(program: Any, top: int = 12) -> list[str]:
    """Return lines of text on what a Program costs.

    They have operations, machine code, times and the most expensive functions and
    lines.

    Args:
        program: Traced Program; machine code and times are listed for engine native,
            which compiles it and measures calls.
        top: Number of functions and of lines that are listed.

    Raises:
        TraceError: The algorithm cannot be traced.
        CompileError: LLVM failed.
    """
    result = origins(program.function, sum(port.size for port in program.inputs))
    kinds = ", ".join(f"{op} {n}" for op, n in result.kinds.most_common())
    lines = [
        f"{program.recipe.solver.name} for {program.model.name},"
        f" {program.model.nv} dof: {result.flops} flops,"
        f" about {result.cost:.0f} cycles for one state in each lane",
        f"operations: {kinds}",
    ]
    if result.graph.requirements:
        items = ", ".join(dict.fromkeys(r.item for r in result.graph.requirements))
        lines.append(f"required of: {items}")
    if isinstance(program, NativeProgram):
        lines += _machine_code(program)
    for title, table in (("function", result.functions), ("line", result.lines)):
        lines.append(f"share of the cost by {title} of the algorithm:")
        largest = sorted(table.items(), key=lambda item: -item[1])[:top]
        lines += [f"  {100 * x / result.cost:5.1f} %  {place}" for place, x in largest]
    return lines


def _machine_code(program: NativeProgram) -> list[str]:
    """Return lines: size and time of compiling or loading of each kernel, call times.

    Calls are measured with random inputs, for one state and a batch of 1024 rows.
    """
    program.prepare(batch=True)
    lines = []
    for variant, kernel in zip(("scalar", "batch"), program.kernels(), strict=True):
        how = "compiled" if kernel.compiled else "loaded"
        lines.append(
            f"kernel {variant}: {kernel.size / 1024:.1f} KiB of machine code,"
            f" {kernel.scratch / 1024:.1f} KiB of scratch memory,"
            f" {how} in {kernel.seconds * 1e3:.1f} ms"
        )
    rows = 1024
    one, many = ([_drawn(p, program, n) for p in program.inputs] for n in ((), (rows,)))
    names = ", ".join(f"x{k}" for k in range(len(one)))
    call = per_call(f"p({names})", [tuple(one)], names, {"p": program})
    batch = per_call(f"p({names})", [tuple(many)], names, {"p": program}) / rows
    lines.append(
        f"a call takes {call * 1e9:.0f} ns, a row of a batch {batch * 1e9:.1f} ns of a"
        f" core; {program.lanes} lanes"
    )
    return lines


def _drawn(port: Any, program: Any, lead: tuple[int, ...]) -> np.ndarray:
    """Return random values for an input, (*lead, *port.shape); the seed is fixed.

    Parameters have their defaults; a position is one random position, repeated; others
    are uniform in [-1, 1].
    """
    if port.name in program.defaults:
        return np.broadcast_to(program.defaults[port.name], (*lead, *port.shape)).copy()
    rng = np.random.default_rng(7)
    if port.kind == "position":
        value = program.model.random(rng)
        return np.broadcast_to(value, (*lead, *port.shape)).copy()
    return rng.uniform(-1, 1, (*lead, *port.shape))


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn explain`, and its function as `run`."""
    parser.add_argument("solver", help="name of a solver (dyn solvers)")
    add_robot(parser)
    parser.add_argument("--inputs", default="", help="optional inputs, by commas")
    parser.add_argument("--frame", help="the link, where the solver has one")
    parser.add_argument("--top", type=int, help="places to show (default: 12)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--graph", action="store_true", help="print the Graph instead")
    kernels = ("scalar", "batch")
    instead.add_argument("--ir", choices=kernels, help="print LLVM IR instead")
    instead.add_argument(
        "--assembly", choices=kernels, help="print machine instructions instead"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the report, the Graph, LLVM IR or assembly; return 0.

    Raises:
        SettingError: --top is less than 1 or has no effect, or an xacro argument is not
            NAME=VALUE.
        SolverNotFound: There is no such solver.
        ModelError: The robot, or a parameter in --inputs, is not valid.
        CompileError: LLVM failed.
        UnsupportedError: The solver needs --frame, is not traced, does not support the
            robot or an option, or there is no machine code on this computer.
    """
    variant = arguments.ir or arguments.assembly
    top = 12 if arguments.top is None else arguments.top
    if top < 1:
        raise SettingError(f"--top {top}; valid: 1 or more", "top")
    if arguments.top is not None and (arguments.graph or variant):
        message = "--top changes nothing beside --graph, --ir and --assembly"
        raise SettingError(f"{message}; valid: one of them", "top")
    which: Any = solver(arguments.solver)
    model = load_robot(arguments)
    choices = {"inputs": list(filter(None, arguments.inputs.split(",")))}
    if arguments.frame:
        choices["frame"] = arguments.frame
    frame = getattr(which, "options", {}).get("frame")
    if isinstance(frame, Required) and not arguments.frame:
        links = ", ".join(model.frame_names)
        raise UnsupportedError(
            f"{which.name}: give --frame, {frame.meaning}; valid: {links}"
        )
    program: Any = which.build(model, **choices)
    if not hasattr(program, "graph"):
        raise UnsupportedError(
            f"{arguments.solver} is not a traced algorithm and has no graph"
        )
    if variant and not isinstance(program, NativeProgram):
        raise UnsupportedError(f"no machine code: {host_machine.missing()}")
    if arguments.graph:
        print(program.graph)
    if variant:
        ir = program.kernel_ir(variant).ir
        print(ir if arguments.ir else compiler.assembly(ir))
    if not (arguments.graph or variant):
        print("\n".join(report(program, top)))
    return 0
