"""Data flow of a text: what each quantity is made of, and in which pass.

The text runs once, unmodified, on numbers that remember what they were made from. Lists
with an entry for each body are its quantities; a pass is a `for` at its top level.
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
from dyn_core.operations import OPERATIONS
from dyn_core.scalar import Number
from dyn_core.signature import Signature
from dyn_core.spatial import Force, Vector

Item = tuple[str, int]  # a quantity or an input, and its body


class Dependence(Number):
    """A number that carries what it was made from.

    Attributes:
        value: The float.
        inputs: Inputs it depends on, however far back.
        reads: Quantities and inputs it was made from directly.

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
        """Make an input."""
        own: frozenset[Item] = frozenset([(name, body)])
        return cls(value, own, own)

    def apply(self, op: str, *operands: Any) -> Any:
        """Compute, and join what the operands depend on."""
        if op not in OPERATIONS:
            raise UnsupportedError(f"the data flow of '{op}' is not followed")
        if op == "mul" and any(isinstance(x, float) and x == 0 for x in operands):
            return 0.0
        values = [x.value if isinstance(x, Dependence) else x for x in operands]
        result = OPERATIONS[op].on_float(*values)
        if OPERATIONS[op].boolean:
            return result
        known = [x for x in operands if isinstance(x, Dependence)]
        inputs = frozenset().union(*(x.inputs for x in known))
        reads = frozenset().union(
            *(x.reads if x.item is None else {x.item} for x in known)
        )
        return Dependence(result, inputs, reads)

    def truth(self) -> bool:
        """Decide a condition."""
        return bool(self.value)


@dataclass(frozen=True)
class Produced:
    """A quantity of one body, as a pass produced or changed it.

    Attributes:
        name, body: Of the list in the text, and the index in it.
        turn: Number of the pass, from 1; 0 outside of all.
        reads: Quantities and inputs it was made from directly.
        inputs: Inputs it depends on, however far back.
    """

    name: str
    body: int
    turn: int
    reads: frozenset[Item]
    inputs: frozenset[Item]

    def read_bodies(self) -> set[int]:
        """Give the bodies whose quantities or inputs it was made from."""
        return {body for _, body in self.reads}


def dataflow(
    text: Callable[..., Any], model: Model, signature: Signature, seed: int = 0
) -> list[Produced]:
    """List what a text produces for a robot, in order of production.

    The text takes coordinates split by joint; helpers that it calls are looked through.

    Args:
        text: The algorithm.
        model: Robot without followers.
        signature: What the text solves.
        seed: Of the state it runs at.

    Source: RBD5-3.7 (two-pass structure).
    """
    if model.coupled:
        raise UnsupportedError(
            "the data flow of a robot with followers is not by joint"
        )
    arguments = _inputs(model, signature, np.random.default_rng(seed))
    watch = _Watch(text, model.nb + 1, {id(x) for x in arguments})
    before = sys.gettrace()
    sys.settrace(watch.enter)
    try:
        text(model, *arguments)
    finally:
        sys.settrace(before)
    return watch.found


def passes(found: Sequence[Produced]) -> dict[int, list[str]]:
    """Give the quantities that each pass produces or changes, by name.

    Source: RBD5-3.7.
    """
    table: dict[int, list[str]] = {}
    for one in found:
        names = table.setdefault(one.turn, [])
        if one.name not in names:
            names.append(one.name)
    return table


def _inputs(model: Model, signature: Signature, rng: np.random.Generator) -> list[Any]:
    """Give the inputs of a text at a random state, each number an input of a joint."""
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


class _Watch:
    """Looks at the lists of a running text after each line."""

    def __init__(self, text: Callable[..., Any], width: int, known: set[int]) -> None:
        self.code, self.width, self.known = text.__code__, width, known
        self.found: list[Produced] = []
        self.seen: dict[Item, Any] = {}
        self.line = self.code.co_firstlineno
        self.loops = _loops(text)

    def enter(self, frame: FrameType, event: str, data: Any) -> Any:
        """Follow the text's own frame only."""
        return self.step if frame.f_code is self.code else None

    def step(self, frame: FrameType, event: str, data: Any) -> Any:
        """Note what the last line made."""
        if event in ("line", "return"):
            for name, value in frame.f_locals.items():
                if isinstance(value, list) and id(value) not in self.known:
                    self._note(name, value)
            self.line = frame.f_lineno
        return self.step

    def _note(self, name: str, quantity: list[Any]) -> None:
        for body, value in enumerate(quantity[: self.width]):
            if value is None or self.seen.get((name, body)) is value:
                continue
            self.seen[name, body] = value
            numbers = list(_numbers(value))
            reads = frozenset().union(*(x.reads for x in numbers if x.item is None))
            inputs = frozenset().union(*(x.inputs for x in numbers))
            for x in numbers:
                x.item = (name, body) if x.item is None else x.item
            turn = next((k for k, at in enumerate(self.loops, 1) if self.line in at), 0)
            if turn and body:
                self.found.append(Produced(name, body, turn, reads, inputs))


def _loops(text: Callable[..., Any]) -> list[range]:
    """Give the lines of each `for` at the top level of a function."""
    lines, first = inspect.getsourcelines(text)
    function: Any = ast.parse(textwrap.dedent("".join(lines))).body[0]
    return [
        range(node.lineno + first - 1, (node.end_lineno or node.lineno) + first)
        for node in function.body
        if isinstance(node, ast.For)
    ]


def _numbers(value: Any) -> Iterator[Dependence]:
    """Give the Dependences in a value, spatial or not."""
    if isinstance(value, Dependence):
        yield value
    elif hasattr(value, "__iter__"):
        for part in value:
            yield from _numbers(part)
    else:
        for slot in getattr(type(value), "__slots__", ()):
            yield from _numbers(getattr(value, slot))
