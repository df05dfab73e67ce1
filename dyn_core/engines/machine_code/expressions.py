"""Code of names, constants, records and arrays of the subset."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

from dyn_core.engines.machine_code.lanes import LaneCode, TypedValue
from dyn_core.engines.machine_code.types import (
    BOOL,
    FLOAT,
    INT,
    NOTHING,
    ArrayType,
    FunctionType,
    NumberType,
    RecordType,
    TupleType,
    Type,
    size,
)
from dyn_core.errors import TraceError

_ALIAS = {INT: "!tbaa !4", FLOAT: "!tbaa !3"}  # metadata of lanes.declarations
MISSING = object()


class Expressions(LaneCode):
    """Writes the values of one function; operation_ir.py adds the operations on them.

    Methods that return a value append the instructions that compute it. They raise
    TraceError for a construct that is not in the subset.

    Attributes:
        lanes: Number of lanes; 0: floats are scalars.
        variables: By name, the type and the stack addresses of its components.
        assigned: Names that have a value at this point; None: unreachable code.
        callee: Returns (LLVM name, signature) of a called function; by subclasses.
    """

    result: Type = NOTHING
    callee: Callable[[Callable[..., Any]], tuple[str, FunctionType]]

    def __init__(
        self, function: Callable[..., Any], checked: bool, lanes: int = 0
    ) -> None:
        super().__init__(lanes)
        self.function, self.checked = function, checked
        self.variables: dict[str, tuple[Type, tuple[str, ...]]] = {}
        self.assigned: set[str] | None = set()

    def note(self, what: str, line: int) -> int:
        """Return a new status number (1, 2, ...) for a failure; of subclasses."""
        raise NotImplementedError

    def fail(self, node: ast.AST, what: str, valid: str) -> NoReturn:
        """Raise TraceError with file, line, function, fault and what is valid."""
        where = f"{self.function.__code__.co_filename}:{getattr(node, 'lineno', '?')}"
        name = self.function.__qualname__
        raise TraceError(f"{where}: {name}: {what}; valid: {valid}")

    # Code

    def require(self, holds: str, node: ast.AST, what: str, *noted: str) -> None:
        """Write a check: the function returns zeros or nothing if it fails.

        Callers test `checked` before: the other form has no %status. Before the return,
        the number of the failure (`note`) and the `noted` ints are stored at %status.
        Later instructions go to a new block, reached only if the check succeeds.
        """
        code = self.note(what, getattr(node, "lineno", 0))
        no, yes = self.label(), self.label()
        self.add(f"br i1 {holds}, label %{yes}, label %{no}")
        self.begin(no)
        self.add(f"store i64 {code}, ptr %status")
        for k, x in enumerate(noted, 1):
            place = self.new(f"getelementptr i64, ptr %status, i64 {k}")
            self.add(f"store i64 {x}, ptr {place}")
        self.leave()
        self.begin(yes)

    def more_arguments(self) -> list[str]:
        """Return the leading parameters of every function, as LLVM text.

        "ptr %status" only in the checked form, then "ptr %alive", the address of the
        lane mask, only with lanes. Calls pass the same text as arguments.
        """
        return ["ptr %status"] * self.checked + ["ptr %alive"] * bool(self.lanes)

    def leave(self) -> None:
        """Write a return from the function with zeros, or without a result."""
        kind = self.result_type(self.result)
        self.add("ret void" if kind == "void" else f"ret {kind} zeroinitializer")

    # Names and constants

    def static(self, node: ast.expr) -> Any:
        """Return the object that a name or dotted name refers to, or MISSING.

        Sought are the function's module, builtins, attributes of modules and classes.
        A local variable is MISSING.
        """
        code = self.function.__code__
        if isinstance(node, ast.Name) and node.id not in code.co_varnames:
            names = self.function.__globals__
            return names.get(node.id, vars(builtins).get(node.id, MISSING))
        if isinstance(node, ast.Attribute):
            owner = self.static(node.value)
            if isinstance(owner, ModuleType | type):
                return getattr(owner, node.attr, MISSING)
        return MISSING

    def is_float(self, name: str) -> bool:
        """Return whether `name` is a module's float or float variable, even unset."""
        known = self.variables.get(name, (None,))[0]
        node = ast.Name(name, ast.Load())
        return known is FLOAT or isinstance(self.static(node), float)

    def constant(self, node: ast.expr, value: Any) -> TypedValue:
        """Return the value of a constant: an int of 64 bits, a float or a bool."""
        if isinstance(value, bool):
            return TypedValue(BOOL, ("true" if value else "false",))
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            return TypedValue(INT, (str(int(value)),))
        if isinstance(value, float):
            return TypedValue(FLOAT, (self.real(value),))
        return self.fail(
            node,
            f"the constant {ast.unparse(node)} is no number of 64 bits",
            "int, float and bool",
        )

    def value(self, node: ast.expr) -> TypedValue:
        """Return the value of an expression; a MASK is voted, which drops lanes."""
        return self.agreed(self.by_lane(node))

    def by_lane(self, node: ast.expr) -> TypedValue:
        """Return the value of an expression; a condition by lane stays a MASK."""
        method = getattr(self, f"_on_{type(node).__name__.lower()}", None)
        if method is None:
            self.fail(
                node,
                f"'{ast.unparse(node)}' is not in the subset",
                "numbers, names, + - * / // %, comparisons, and, or, not, "
                "x if c else y, array[i], record.field, calls",
            )
        value: TypedValue = method(node)
        return value

    def number(self, node: ast.expr, *kinds: NumberType) -> TypedValue:
        """Return the value of an expression, a number of `kinds`; a MASK is voted."""
        value = self.value(node)
        if value.type not in (kinds or (INT, FLOAT, BOOL)):
            wanted = " or ".join(map(str, kinds)) or "a number"
            self.fail(node, f"'{ast.unparse(node)}' is {value.type}", wanted)
        return value

    def convert(self, value: TypedValue) -> TypedValue:
        """Return an INT as FLOAT, in all lanes, FLOAT as is; others are not refused."""
        if value.type is FLOAT:
            return value
        if value.name.lstrip("-").isdigit():
            return TypedValue(FLOAT, (self.real(float(int(value.name))),))
        single = self.new(f"sitofp i64 {value.name} to double")
        return TypedValue(FLOAT, (self.in_all_lanes(single),))

    def _on_constant(self, node: ast.Constant) -> TypedValue:
        return self.constant(node, node.value)

    def _on_name(self, node: ast.Name) -> TypedValue:
        if node.id not in self.function.__code__.co_varnames:
            return self._of_module(node)
        if node.id not in self.variables or (
            self.assigned is not None and node.id not in self.assigned
        ):
            what = f"'{node.id}' may have no value here"
            self.fail(node, what, "assign it before the `if` or the loop")
        kind, places = self.variables[node.id]
        loads = zip(self.parts(kind), places, strict=True)
        return TypedValue(kind, tuple(self.new(f"load {t}, ptr {p}") for t, p in loads))

    def _of_module(self, node: ast.expr) -> TypedValue:
        value = self.static(node)
        if isinstance(value, int | float):
            return self.constant(node, value)
        what = f"'{ast.unparse(node)}' is no variable and no number of the module"
        return self.fail(node, what, "arguments, variables, constants of the module")

    def _on_attribute(self, node: ast.Attribute) -> TypedValue:
        if self.static(node) is not MISSING:
            return self._of_module(node)
        owner = self.value(node.value)
        if isinstance(owner.type, RecordType):
            return self._field(node, owner, owner.type)
        if isinstance(owner.type, ArrayType) and node.attr == "shape":
            items = tuple(
                TypedValue(INT, (dimension,)) for dimension in owner.names[1:]
            )
            return TypedValue(TupleType((INT,) * len(items)), (), items)
        what = f"'{ast.unparse(node.value)}' is {owner.type}: no '.{node.attr}'"
        return self.fail(node, what, "record.field, array.shape")

    def _field(
        self, node: ast.Attribute, owner: TypedValue, record: RecordType
    ) -> TypedValue:
        """Load the field `node.attr` of a record at an address; return its value."""
        place = 0
        for name, kind in record.fields:
            if name == node.attr:
                return self.load_argument(kind, owner.name, place)
            place += size(kind)
        fields = ", ".join(name for name, _ in record.fields)
        return self.fail(node, f"{record} has no field '{node.attr}'", fields)

    def load_argument(self, kind: Type, table: str, place: int) -> TypedValue:
        """Return a value loaded from a table of arguments, from 8-byte word `place`.

        A float is broadcast to all lanes; a record stays its address in the table.
        """
        first = self.new(f"getelementptr inbounds i64, ptr {table}, i64 {place}")
        if isinstance(kind, RecordType):
            return TypedValue(kind, (first,))
        if kind is BOOL:
            word = self.new(f"load i64, ptr {first}, !invariant.load !5")
            return TypedValue(BOOL, (self.new(f"icmp ne i64 {word}, 0"),))
        if kind is FLOAT:
            single = self.new(f"load double, ptr {first}, !invariant.load !5")
            return TypedValue(FLOAT, (self.in_all_lanes(single),))
        names = []
        for k, llvm in enumerate(self.parts(kind)):
            word = self.new(f"getelementptr inbounds i64, ptr {first}, i64 {k}")
            names.append(self.new(f"load {llvm}, ptr {word}, !invariant.load !5"))
        return TypedValue(kind, tuple(names))

    # Arrays

    def element(self, node: ast.Subscript) -> TypedValue:
        """Return an element's address, as an array of zero axes, or a row of an array.

        With fewer indices than axes the result is the row, an array of the other axes.
        The checked form writes a test of each index; else no index is tested.
        """
        array = self.value(node.value)
        if not isinstance(array.type, ArrayType):
            self.fail(node, f"'{ast.unparse(node.value)}' is {array.type}", "array[i]")
        several = isinstance(node.slice, ast.Tuple)
        nodes: Sequence[ast.expr] = node.slice.elts if several else [node.slice]  # type: ignore[attr-defined]
        left = array.type.axes - len(nodes)
        if left < 0:
            what = f"{len(nodes)} indices of {array.type}"
            self.fail(node, what, f"at most {array.type.axes}")
        address, *dims = array.names
        offset = ""
        for inner, dim in zip(nodes, dims, strict=False):
            if isinstance(inner, ast.Slice):
                self.fail(node, "no slices", "array[i], array[i, j], or a loop")
            index = self.number(inner, INT).name
            if index.startswith("-"):
                self.fail(node, "no negative index", f"len(array) - {index[1:]}")
            if self.checked:
                inside = self.new(f"icmp ult i64 {index}, {dim}")
                self.require(inside, node, f"{ast.unparse(node)}: index", index, dim)
            if offset:
                row = self.new(f"mul nsw i64 {offset}, {dim}")
                offset = self.new(f"add nsw i64 {row}, {index}")
            else:
                offset = index
        for dim in dims[len(nodes) :]:
            offset = self.new(f"mul nsw i64 {offset}, {dim}")
        llvm = self.llvm(array.type.item)
        place = self.new(f"getelementptr inbounds {llvm}, ptr {address}, i64 {offset}")
        kind = ArrayType(array.type.item, left)
        return TypedValue(kind, (place, *dims[len(nodes) :]))

    def load(self, place: TypedValue) -> TypedValue:
        """Return the number at the address of an element."""
        assert isinstance(place.type, ArrayType)
        item = place.type.item
        what = f"{self.llvm(item)}, ptr {place.name}{self.aligned}"
        number = self.new(f"load {what}, {_ALIAS[item]}")
        return TypedValue(item, (number,))

    def store(self, node: ast.AST, place: TypedValue, value: TypedValue) -> None:
        """Write a store to an element, in dropped lanes too; float arrays take ints."""
        assert isinstance(place.type, ArrayType)
        item = place.type.item
        if place.type.axes:
            self.fail(node, "a whole row is assigned", "its numbers, one by one")
        if item is FLOAT and value.type is INT:
            value = self.convert(value)
        if value.type is not item:
            what = f"{value.type} is stored in an array of {item}"
            self.fail(node, what, f"{item}, by int(x) or float(x) where it is meant")
        what = f"{self.llvm(item)} {value.name}, ptr {place.name}{self.aligned}"
        self.add(f"store {what}, {_ALIAS[item]}")

    def _on_subscript(self, node: ast.Subscript) -> TypedValue:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            items = self.value(node.value).items
            index = getattr(node.slice, "value", None)
            if type(index) is int and index < len(items):
                return items[index]
            self.fail(node, "an index of a shape", f"0 to {len(items) - 1}")
        place = self.element(node)
        assert isinstance(place.type, ArrayType)
        return place if place.type.axes else self.load(place)
