"""Statements of the subset as LLVM IR, and the syntax tree that they are read from.

Variables are stack memory, which LLVM's passes convert to registers. A variable has one
type, and must have a value wherever it is read: the set of assigned variables is
tracked through all branches. The file of a function must be unchanged since its import.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

from dyn_core.engines.machine_code.expressions import (
    TypedValue,
)
from dyn_core.engines.machine_code.language import is_marked
from dyn_core.engines.machine_code.operation_ir import Operations
from dyn_core.engines.machine_code.types import (
    FLOAT,
    INT,
    NOTHING,
    ArrayType,
    FunctionType,
    NumberType,
    RecordType,
    TupleType,
    place_of,
)
from dyn_core.errors import TraceError

_Key = tuple[int, str]  # first line of a function (with decorators), its name
_STATEMENTS = (
    "name = value, a, b = values, array[i] = x, +=, -=, *= of each, if, while, "
    "for name in range(...), break, continue, return, a call, pass"
)
Place = tuple[str, str, int]  # failure text, function, line
Callee = Callable[[Callable[..., Any]], tuple[str, FunctionType]]


def source_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax tree of a function, with its docstring and decorators.

    TraceError: a lambda, a closure, or source that is missing or not as imported.
    """
    where, code = place_of(function), function.__code__
    if code.co_freevars or code.co_name == "<lambda>":
        names = ", ".join(code.co_freevars) or "lambda"
        what = f"{names} of a function around it, not of the module"
        raise TraceError(f"{where}: {what}; valid: names of the module")
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        message = f"{where}: its source is not there; valid: a function of a file"
        raise TraceError(message)
    nodes, codes = _of_file("".join(lines), code.co_filename)
    key = code.co_firstlineno, code.co_name
    if key not in nodes or _content(codes[key]) != _content(code):
        raise TraceError(
            f"{where}: the file is another than when it was imported; "
            "valid: a new start of Python"
        )
    return nodes[key]


@lru_cache(maxsize=8)
def _of_file(
    source: str, name: str
) -> tuple[dict[_Key, ast.FunctionDef], dict[_Key, CodeType]]:
    """Return syntax trees and code objects of a file's functions, as two dicts.

    Both are by (first line with decorators, name), and empty if the source is invalid.
    The second also has other code objects, such as modules, classes and lambdas.
    """
    try:
        tree = ast.parse(source)
        waiting = [compile(source, name, "exec", dont_inherit=True)]
    except SyntaxError:
        return {}, {}
    nodes = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            lines = [node.lineno, *(x.lineno for x in node.decorator_list)]
            nodes[min(lines), node.name] = node
    codes = {}
    while waiting:
        code = waiting.pop()
        codes[code.co_firstlineno, code.co_name] = code
        waiting += [x for x in code.co_consts if isinstance(x, CodeType)]
    return nodes, codes


def _content(code: CodeType) -> tuple[Any, ...]:
    """Return bytecode, names and numbers of a code object, for comparison.

    Line numbers, nested code, docstrings and other single texts are not part of it; a
    constant tuple is, as in `return 1.0, 2.0`.
    """
    numbers = [x for x in code.co_consts if isinstance(x, int | float | tuple)]
    return code.co_code, code.co_names, code.co_varnames, repr(numbers)


@dataclass
class _OpenLoop:
    """A loop being written, with the labels behind it (`end`) and of its next round.

    `left` has the names of variables with a value at each exit (the condition and each
    `break`); None for an exit that is never taken.
    """

    end: str
    next: str
    left: list[set[str] | None] = field(default_factory=list)


class StatementWriter(Operations):
    """Writes one function; `callee` returns LLVM name and signature of another one.

    `places` is extended by failures: item k, (text, function, line), has status k + 1;
    None: not the checked form. `rooms` are the instructions that allocate the
    variables, `loops` the loops being written, the innermost last. `lanes` is the
    number of lanes; 0: floats are scalars.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        kind: FunctionType,
        callee: Callee,
        places: list[Place] | None,
        lanes: int = 0,
    ) -> None:
        super().__init__(function, places is not None, lanes)
        self.kind, self.result = kind, kind.result
        self.places = [] if places is None else places
        self.callee = callee
        self.rooms: list[str] = []
        self.loops: list[_OpenLoop] = []

    def note(self, what: str, line: int) -> int:
        """Add a failure to `places`; return its status number, from 1 on."""
        self.places.append((what, self.function.__qualname__, line))
        return len(self.places)

    def head(self, name: str) -> str:
        """Return the function's result, LLVM name and parameters, as LLVM text."""
        heads = self.more_arguments()
        for x, kind in self.kind.parameters:
            mark = " noalias nonnull readonly" * isinstance(kind, RecordType)
            named = enumerate(self.parts(kind))
            heads += [f"{part}{mark} %a_{x}_{k}" for k, part in named]
        return f"{self.result_type(self.result)} @{name}({', '.join(heads)}) #0"

    def define(self, name: str) -> str:
        """Return the LLVM definition of the function; called once.

        TraceError: not in the subset, a path without a return, or see source_of.
        """
        node = source_of(self.function)
        for x, kind in self.kind.parameters:
            names = tuple(f"%a_{x}_{k}" for k in range(len(self.parts(kind))))
            self.assign(node, x, TypedValue(kind, names))
        for statement in node.body:
            self.statement(statement)
        if self.assigned is not None:
            if self.result != NOTHING:
                what = f"may end without a value; it returns {self.result}"
                self.fail(node, what, "return on each path")
            self.leave()
        code = [*self.rooms, *self.lines]
        head = f"define internal {self.head(name)} {{"
        return "\n".join([head, "start:", *code, "}", ""])

    # Statements

    def statement(self, node: ast.stmt) -> None:
        """Write a statement, if it is reachable; else only its kind is checked."""
        method = getattr(self, f"_do_{type(node).__name__.lower()}", None)
        if method is None:
            shown = ast.unparse(node).split("\n")[0]
            self.fail(node, f"'{shown}' is not in the subset", _STATEMENTS)
        if self.assigned is not None:
            method(node)

    def assign(self, node: ast.AST, name: str, value: TypedValue) -> None:
        """Write an assignment to a variable, whose first value determines its type.

        The name is added to `assigned`. TraceError: a tuple, or another type.
        """
        if isinstance(value.type, TupleType):
            self.fail(node, f"'{name}' is {value.type}", "a, b = values")
        if name not in self.variables:
            places = []
            for llvm in self.parts(value.type):
                self.count += 1
                places.append(f"%v{self.count}_{name}")
                self.rooms.append(f"  {places[-1]} = alloca {llvm}")
            self.variables[name] = value.type, tuple(places)
        kind, known = self.variables[name]
        if kind != value.type:
            valid = "another name, or one type, such as 0.0 for 0 among floats"
            self.fail(node, f"'{name}' is {kind}, and then {value.type}", valid)
        for llvm, place, part in zip(self.parts(kind), known, value.names, strict=True):
            self.add(f"store {llvm} {part}, ptr {place}")
        if self.assigned is not None:
            self.assigned.add(name)

    def _put(self, target: ast.expr, value: TypedValue) -> None:
        """Write an assignment to a name, an array element, or a tuple of targets."""
        if isinstance(target, ast.Name):
            self.assign(target, target.id, value)
        elif isinstance(target, ast.Subscript):
            if not isinstance(value.type, NumberType):
                self.fail(target, f"{value.type} is stored in an array", "a number")
            self.store(target, self.element(target), value)
        elif isinstance(target, ast.Tuple):
            if len(value.items) != len(target.elts):
                what = f"{len(target.elts)} names for {value.type}"
                self.fail(target, what, "as many names as values")
            for inner, item in zip(target.elts, value.items, strict=True):
                self._put(inner, item)
        else:
            what = f"'{ast.unparse(target)} = ...' is not in the subset"
            self.fail(target, what, "name, array[i], or several of them")

    def _on_tuple(self, node: ast.Tuple) -> TypedValue:
        items = tuple(self.value(inner) for inner in node.elts)
        kinds: Any = tuple(item.type for item in items)
        return TypedValue(TupleType(kinds), (), items)

    def _do_assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._put(target, value)

    def _do_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self.fail(node, "a variable without a value", "name: float = 0.0")
        self._put(node.target, self.value(node.value))

    def _do_augassign(self, node: ast.AugAssign) -> None:
        op, target = type(node.op), node.target
        if isinstance(target, ast.Subscript):
            place = self.element(target)
            assert isinstance(place.type, ArrayType)
            if place.type.axes:
                self.fail(node, "a whole row is changed", "its numbers, one by one")
            x = self.load(place)
            y = self.number(node.value, INT, FLOAT)
            self.store(node, place, self.arithmetic(node, op, x, y))
            return
        name = ast.copy_location(ast.Name(ast.unparse(target)), target)
        x = self.number(name, INT, FLOAT)
        y = self.number(node.value, INT, FLOAT)
        self._put(target, self.arithmetic(node, op, x, y))

    def _do_expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and is_marked(self.static(node.value.func)):
            self.value(node.value)
        elif not isinstance(node.value, ast.Constant):
            what = f"the value of '{ast.unparse(node)}' goes nowhere"
            self.fail(node, what, _STATEMENTS)

    def _do_pass(self, node: ast.Pass) -> None:
        pass

    def _do_return(self, node: ast.Return) -> None:
        kind = self.result_type(self.result)
        value = self.value(node.value) if node.value else TypedValue(NOTHING)
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            value = TypedValue(NOTHING)
        if value.type != self.result:
            self.fail(node, f"{value.type} is returned", str(self.result))
        if value.items:
            whole = "undef"
            for k, item in enumerate(value.items):
                assert isinstance(item.type, NumberType)
                part = f"{self.llvm(item.type)} {item.name}, {k}"
                whole = self.new(f"insertvalue {kind} {whole}, {part}")
            self.add(f"ret {kind} {whole}")
        else:
            self.add(f"ret {kind} {value.name}" if value.names else "ret void")
        self.assigned = None

    def _do_if(self, node: ast.If) -> None:
        yes, no, end = self.label(), self.label(), self.label()
        self.branch(node.test, yes, no)
        before, after = _copy(self.assigned), []
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            self.assigned = _copy(before)
            for inner in body:
                self.statement(inner)
            if self.assigned is not None:
                self.add(f"br label %{end}")
            after.append(self.assigned)
        self.assigned = _common(after)
        if self.assigned is not None:
            self.begin(end)

    def _loop(self, node: ast.For | ast.While, loop: _OpenLoop) -> None:
        """Write the body of the loop `node` up to the jump to its next round.

        The label of the body must have been written. Variables assigned at each `break`
        are added to loop.left.
        """
        if node.orelse:
            self.fail(node, "`else` of a loop", "a variable that says how it ended")
        self.loops.append(loop)
        for inner in node.body:
            self.statement(inner)
        if self.assigned is not None:
            self.add(f"br label %{loop.next}")
        self.loops.pop()

    def _do_while(self, node: ast.While) -> None:
        test, body, end = self.label(), self.label(), self.label()
        self.add(f"br label %{test}")
        self.begin(test)
        forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
        if forever:
            self.add(f"br label %{body}")
        else:
            self.branch(node.test, body, end)
        loop = _OpenLoop(end, test, [None if forever else _copy(self.assigned)])
        self.begin(body)
        self._loop(node, loop)
        self.assigned = _common(loop.left)
        if self.assigned is not None:
            self.begin(end)

    def _do_for(self, node: ast.For) -> None:
        start, stop, step = self._range(node.iter)
        self.count += 1
        counter = f"%c{self.count}"
        self.rooms.append(f"  {counter} = alloca i64")
        self.add(f"store i64 {start}, ptr {counter}")
        test, body, go_on, end = (self.label() for _ in range(4))
        self.add(f"br label %{test}")
        self.begin(test)
        now = self.new(f"load i64, ptr {counter}")
        sign = "sgt" if step < 0 else "slt"
        more = self.new(f"icmp {sign} i64 {now}, {stop}")
        self.add(f"br i1 {more}, label %{body}, label %{end}")
        loop = _OpenLoop(end, go_on, [_copy(self.assigned)])
        self.begin(body)
        self._put(node.target, TypedValue(INT, (now,)))
        self._loop(node, loop)
        self.begin(go_on)
        then = self.new(f"add nsw i64 {now}, {step}")
        self.add(f"store i64 {then}, ptr {counter}")
        self.add(f"br label %{test}")
        self.assigned = _common(loop.left)
        self.begin(end)

    def _range(self, node: ast.expr) -> tuple[str, str, int]:
        """Return (first number, excluded bound, step) of a `range(...)`.

        First number and bound are registers or constants of LLVM; the step must be a
        constant other than 0.
        """
        valid = "range(stop), range(start, stop), range(start, stop, step)"
        plain = isinstance(node, ast.Call) and not node.keywords
        if not plain or self.static(node.func) is not range:  # type: ignore[attr-defined]
            self.fail(node, f"a loop over '{ast.unparse(node)}'", valid)
        nodes = node.args  # type: ignore[attr-defined]
        numbers = [self.number(x, INT).name for x in nodes]
        if not 1 <= len(numbers) <= 3:
            self.fail(node, f"{len(numbers)} arguments of range", valid)
        if len(numbers) == 1:
            numbers.insert(0, "0")
        step = numbers[2] if len(numbers) == 3 else "1"
        if not step.lstrip("-").isdigit() or step == "0":
            self.fail(node, "the step of a range", "a constant, not zero")
        return numbers[0], numbers[1], int(step)

    def _do_break(self, node: ast.Break) -> None:
        loop = self.loops[-1]
        loop.left.append(_copy(self.assigned))
        self.add(f"br label %{loop.end}")
        self.assigned = None

    def _do_continue(self, node: ast.Continue) -> None:
        self.add(f"br label %{self.loops[-1].next}")
        self.assigned = None


def _copy(assigned: set[str] | None) -> set[str] | None:
    return None if assigned is None else set(assigned)


def _common(ways: list[set[str] | None]) -> set[str] | None:
    """Return the names that all reachable ways assign; None is unreachable."""
    coming = [way for way in ways if way is not None]
    return set.intersection(*coming) if coming else None
