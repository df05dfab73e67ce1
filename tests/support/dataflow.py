"""Data flow of an algorithm: the operands of each quantity, and the pass of each.

The algorithm runs once, unmodified, on numbers that record their operands. Its lists
with an entry for each body are the quantities; a pass is a `for` at its top level.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from dyn_core.errors import UnsupportedError
from dyn_core.model import Model
from dyn_core.model.coordinates import split_q, split_v
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.numbers.scalar import Number
from dyn_core.problems import Signature
from dyn_core.spatial import Force, Vector

Item = tuple[str, int]  # a quantity or an input, and its body


class Dependence(Number):
    """A number that records the quantities it was computed from.

    Attributes:
        value: The float.
        inputs: Inputs it depends on, directly or not.
        reads: Quantities and inputs it was computed from directly.

    A product with a structural zero (a plain 0.0) depends on nothing.

    Source: RBD5-3.7.
    """

    __slots__ = ("inputs", "item", "reads", "value")

    def __init__(
        self, value: float, inputs: frozenset[Item], reads: frozenset[Item]
    ) -> None:
        self.value, self.inputs, self.reads = value, inputs, reads
        self.item: Item | None = None

    @classmethod
    def input(cls, name: str, body: int, value: float) -> Dependence:
        """Return an input."""
        item: frozenset[Item] = frozenset([(name, body)])
        return cls(value, item, item)

    def apply(self, op: str, *operands: Any) -> Any:
        """Return the result with the union of the operands' dependences."""
        if op not in OPERATIONS:
            raise UnsupportedError(f"operation '{op}' has no data flow")
        if op == "mul" and any(isinstance(x, float) and x == 0 for x in operands):
            return 0.0
        values = [x.value if isinstance(x, Dependence) else x for x in operands]
        result = OPERATIONS[op].on_float(*values)
        if OPERATIONS[op].boolean:
            return result
        skipped = [x for x in operands if isinstance(x, Dependence)]
        inputs = frozenset().union(*(x.inputs for x in skipped))
        reads = frozenset().union(
            *(x.reads if x.item is None else {x.item} for x in skipped)
        )
        return Dependence(result, inputs, reads)

    def truth(self) -> bool:
        """Return the value of a condition."""
        return bool(self.value)


@dataclass(frozen=True)
class Produced:
    """A quantity of one body that a pass has produced or changed.

    Attributes:
        name, body: Name of the list in the algorithm, and the index in it.
        number: Number of the pass, from 1; 0 outside of passes.
        reads: Quantities and inputs it was computed from directly.
        inputs: Inputs it depends on, directly or not.
    """

    name: str
    body: int
    number: int
    reads: frozenset[Item]
    inputs: frozenset[Item]

    def read_bodies(self) -> set[int]:
        """Return the bodies of the quantities and inputs in `reads`."""
        return {body for _, body in self.reads}


def dataflow(
    algorithm: Callable[..., Any], model: Model, signature: Signature, seed: int = 0
) -> list[Produced]:
    """Return the quantities that an algorithm produces for a robot, in order.

    The algorithm takes coordinates split by joint; calls of other functions are traced.

    Args:
        algorithm: Function of model and inputs.
        model: Robot without followers.
        signature: Kind of problem of the algorithm.
        seed: Seed of the random state.

    Source: RBD5-3.7 (two-pass structure).
    """
    if model.coupled:
        raise UnsupportedError("robots with followers have no data flow by joint")
    arguments = _inputs(model, signature, np.random.default_rng(seed))
    recorder = _Recorder(algorithm, model.nb + 1, {id(x) for x in arguments})
    before = sys.gettrace()
    sys.settrace(recorder.enter)
    try:
        algorithm(model, *arguments)
    finally:
        sys.settrace(before)
    return recorder.produced


def passes(record: Sequence[Produced]) -> dict[int, list[str]]:
    """Return the quantities that each pass produces or changes, by name.

    Source: RBD5-3.7.
    """
    table: dict[int, list[str]] = {}
    for item in record:
        names = table.setdefault(item.number, [])
        if item.name not in names:
            names.append(item.name)
    return table


def _inputs(model: Model, signature: Signature, rng: np.random.Generator) -> list[Any]:
    """Return random inputs of an algorithm, each number an input of a joint."""
    arguments: list[Any] = []
    for port in signature.inputs:
        if port.kind == "wrenches":
            rows = rng.normal(size=(model.nb + 1, 6))
            arguments.append(
                [
                    Force.of(Dependence.input(port.name, i, float(x)) for x in row)
                    for i, row in enumerate(rows)
                ]
            )
            continue
        if port.kind == "position":
            parts = split_q(model, Vector(model.random(rng).tolist()))
        else:
            parts = split_v(model, Vector(rng.normal(size=model.nv).tolist()))
        arguments.append(
            [
                Vector(Dependence.input(port.name, i, x) for x in part)
                for i, part in enumerate(parts)
            ]
        )
    return arguments


class _Recorder:
    """Records changes of the lists of a running algorithm after each line."""

    def __init__(
        self, algorithm: Callable[..., Any], width: int, skipped: set[int]
    ) -> None:
        self.code, self.width, self.skipped = algorithm.__code__, width, skipped
        self.produced: list[Produced] = []
        self.seen: dict[Item, Any] = {}
        self.line = self.code.co_firstlineno
        self.loops = _loops(algorithm)

    def enter(self, frame: FrameType, event: str, data: Any) -> Any:
        """Trace the frame of the algorithm only."""
        return self.step if frame.f_code is self.code else None

    def step(self, frame: FrameType, event: str, data: Any) -> Any:
        """Record the changes of the last line."""
        if event in ("line", "return"):
            for name, value in frame.f_locals.items():
                if isinstance(value, list) and id(value) not in self.skipped:
                    self._record(name, value)
            self.line = frame.f_lineno
        return self.step

    def _record(self, name: str, quantity: list[Any]) -> None:
        for body, value in enumerate(quantity[: self.width]):
            if value is None or self.seen.get((name, body)) is value:
                continue
            self.seen[name, body] = value
            numbers = list(_numbers(value))
            reads = frozenset().union(*(x.reads for x in numbers if x.item is None))
            inputs = frozenset().union(*(x.inputs for x in numbers))
            for x in numbers:
                x.item = (name, body) if x.item is None else x.item
            number = next(
                (k for k, lines in enumerate(self.loops, 1) if self.line in lines), 0
            )
            if number and body:
                self.produced.append(Produced(name, body, number, reads, inputs))


def _loops(algorithm: Callable[..., Any]) -> list[range]:
    """Return the lines of each `for` at the top level of a function."""
    lines, first = inspect.getsourcelines(algorithm)
    function: Any = ast.parse(textwrap.dedent("".join(lines))).body[0]
    return [
        range(node.lineno + first - 1, (node.end_lineno or node.lineno) + first)
        for node in function.body
        if isinstance(node, ast.For)
    ]


def _numbers(value: Any) -> Iterator[Dependence]:
    """Return the Dependences in a value, spatial or not."""
    if isinstance(value, Dependence):
        yield value
    elif hasattr(value, "__iter__"):
        for part in value:
            yield from _numbers(part)
    else:
        for slot in getattr(type(value), "__slots__", ()):
            yield from _numbers(getattr(value, slot))
