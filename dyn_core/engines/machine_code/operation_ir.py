"""Arithmetic, comparisons, selections and calls of the subset as LLVM IR.

The rules are Python's and NumPy's: `min` and `max` return the first of equal numbers, a
comparison with NaN is false, // and % round down, an int divided by zero gives zero. No
flag lets LLVM reorder operations or contract two into one. where, minimum and maximum
are functions of traced numbers too, so one formula serves algorithms and machine code.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from dyn_core.engines.machine_code.expressions import (
    MISSING,
    Expressions,
    TypedValue,
)
from dyn_core.engines.machine_code.kernels import call_kernel, write_call
from dyn_core.engines.machine_code.language import (
    any_lane,
    decided_by,
    in_vectors,
    is_marked,
    python_of,
)
from dyn_core.engines.machine_code.types import (
    BOOL,
    FLOAT,
    INT,
    MASK,
    ArrayType,
    TupleType,
)
from dyn_core.numbers.scalar import maximum, minimum, where

_FLOATS: dict[type, str] = {
    ast.Add: "fadd",
    ast.Sub: "fsub",
    ast.Mult: "fmul",
    ast.Div: "fdiv",
}
_WHOLES: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_COMPARE: dict[type, tuple[str, str]] = {
    ast.Eq: ("eq", "oeq"), ast.NotEq: ("ne", "une"), ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"), ast.Gt: ("sgt", "ogt"), ast.GtE: ("sge", "oge"),
}  # fmt: skip
# Alternatives that errors suggest for operators that a type does not have.
_VALID: dict[type, str] = {
    ast.Pow: "x * x, math.sqrt(x)",
    ast.FloorDiv: "math.floor(a / b)",
    ast.Mod: "a - b * math.floor(a / b)",
    ast.Div: "float(a) / float(b), or a // b",
}


def write_where(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write `where(condition, a, b)`; return its value. Both a and b are evaluated.

    A MASK selects floats in each lane; for ints and bools it is voted, see LaneCode.
    """
    condition = writer.by_lane(node.args[0])
    if condition.type not in (BOOL, MASK):
        writer.number(node.args[0], BOOL)  # raises the error
    a, b = (writer.number(x) for x in node.args[1:])
    if a.type != b.type:
        what = f"'{ast.unparse(node)}' is {a.type} or {b.type}"
        writer.fail(node, what, "one type, such as 0.0 for 0 among floats")
    return writer.select(condition, a, b)


def write_minimum(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write `minimum(a, b)`, as floats: a where a < b, else b, also with NaN."""
    a, b, smaller = _compared(writer, node)
    return writer.select(smaller, a, b)


def write_maximum(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write `maximum(a, b)`, as floats: b where a < b, else a, also with NaN."""
    a, b, smaller = _compared(writer, node)
    return writer.select(smaller, b, a)


def _compared(
    writer: Expressions, node: ast.Call
) -> tuple[TypedValue, TypedValue, TypedValue]:
    """Return the two arguments a and b of a call as floats, and the condition a < b."""
    a, b = (writer.convert(writer.number(x, INT, FLOAT)) for x in node.args)
    smaller = writer.condition(f"fcmp olt {writer.float} {a.name}, {b.name}")
    return a, b, smaller


def write_any(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write `any_lane(condition)`, a BOOL: whether a MASK holds in any alive lane."""
    condition = writer.by_lane(node.args[0])
    if condition.type is not MASK:
        return writer.number(node.args[0], BOOL)
    return writer.any_of(condition)


def write_decided(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write `decided_by(condition, counts)`; return its value.

    If both are MASKs, the value is that of `condition` in the majority of the alive
    lanes where `counts` holds; lanes of the minority are dropped, lanes where `counts`
    is false are not (see LaneCode.vote). Otherwise it is `condition`, a BOOL or a MASK.
    """
    condition, counts = map(writer.by_lane, node.args)
    if condition.type is MASK and counts.type is MASK:
        return writer.vote(condition, counts)
    if condition.type is BOOL or condition.type is MASK:
        return condition
    return writer.number(node.args[0], BOOL)


def write_in_vectors(writer: Expressions, node: ast.Call) -> TypedValue:
    """Return the value of `in_vectors()`, a BOOL: whether the writer has lanes."""
    return TypedValue(BOOL, ("true" if writer.lanes else "false",))


# function: minimum and maximum number of arguments, writer.
CHOICES = {
    decided_by: (2, 2, write_decided),
    any_lane: (1, 1, write_any),
    in_vectors: (0, 0, write_in_vectors),
    where: (3, 3, write_where),
    minimum: (2, 2, write_minimum),
    maximum: (2, 2, write_maximum),
}


class Operations(Expressions):
    """Writes the operations on values of one function."""

    # Arithmetic

    def _on_binop(self, node: ast.BinOp) -> TypedValue:
        a = self.number(node.left, INT, FLOAT)
        b = self.number(node.right, INT, FLOAT)
        return self.arithmetic(node, type(node.op), a, b)

    def arithmetic(
        self, node: ast.AST, op: type, a: TypedValue, b: TypedValue
    ) -> TypedValue:
        """Return a op b; an int combined with a float is converted to float.

        + - * are valid for all types, / if a or b is a float, // and % for two ints:
        they round down, and are zero for the divisor 0 (a ZeroDivisionError in the
        checked form). Ints wrap at 64 bits.

        Args:
            node: Node of the syntax tree, for messages.
            op: Class of the operator, such as ast.Add.
            a, b: INT or FLOAT, which is not checked.

        Raises:
            TraceError: The operator is not in the subset for these types.
        """
        whole = a.type is INT and b.type is INT
        if whole and op in _WHOLES:
            return TypedValue(INT, (self.new(f"{_WHOLES[op]} i64 {a.name}, {b.name}"),))
        if whole and op in (ast.FloorDiv, ast.Mod):
            return self._floor_division(node, op is ast.Mod, a.name, b.name)
        if not whole and op in _FLOATS:
            x, y = self.convert(a).name, self.convert(b).name
            code = f"{_FLOATS[op]} {self.float} {x}, {y}"
            return TypedValue(FLOAT, (self.new(code),))
        what = f"'{op.__name__}' of {a.type} and {b.type} is not in the subset"
        return self.fail(node, what, _VALID.get(op, "+ - * / // %"))

    def _floor_division(self, node: ast.AST, rest: bool, a: str, b: str) -> TypedValue:
        """Return a // b, or a % b for `rest`; zero where b is zero, as in NumPy.

        The checked form writes a test that b is not zero.
        """
        if self.checked:
            divides = self.new(f"icmp ne i64 {b}, 0")
            self.require(divides, node, "division by zero")
        # Divisors 0 and -1 may trap in a processor: they are replaced by 1 here, and
        # the quotient is corrected at the end.
        plus = self.new(f"add i64 {b}, 1")
        special = self.new(f"icmp ult i64 {plus}, 2")
        divisor = self.new(f"select i1 {special}, i64 1, i64 {b}")
        remainder = self.new(f"srem i64 {a}, {divisor}")
        signs = self.new(f"xor i64 {remainder}, {divisor}")
        differ = self.new(f"icmp slt i64 {signs}, 0")
        some = self.new(f"icmp ne i64 {remainder}, 0")
        down = self.new(f"and i1 {differ}, {some}")
        if rest:
            change = self.new(f"select i1 {down}, i64 {divisor}, i64 0")
            return TypedValue(INT, (self.new(f"add i64 {remainder}, {change}"),))
        quotient = self.new(f"sdiv i64 {a}, {divisor}")
        change = self.new(f"sext i1 {down} to i64")
        quotient = self.new(f"add i64 {quotient}, {change}")
        by_special = self.new(f"mul i64 {a}, {b}")
        name = self.new(f"select i1 {special}, i64 {by_special}, i64 {quotient}")
        return TypedValue(INT, (name,))

    def _on_unaryop(self, node: ast.UnaryOp) -> TypedValue:
        if isinstance(node.op, ast.Not):
            return TypedValue(
                BOOL, (self.new(f"xor i1 {self._truth(node.operand)}, true"),)
            )
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value: Any = node.operand.value
            if type(value) in (int, float):
                return self.constant(node, -value)
        x = self.number(node.operand, INT, FLOAT)
        if isinstance(node.op, ast.UAdd):
            return x
        if isinstance(node.op, ast.Invert):
            self.fail(node, "'~' is not in the subset", "not x, -x")
        if x.type is INT:
            return TypedValue(INT, (self.new(f"sub i64 0, {x.name}"),))
        return TypedValue(FLOAT, (self.new(f"fneg {self.float} {x.name}"),))

    # Conditions

    def _on_compare(self, node: ast.Compare) -> TypedValue:
        if len(node.ops) > 1:
            return self._by_branches(node)
        left = self.number(node.left)
        right = self.number(node.comparators[0])
        return self._compare(node, node.ops[0], left, right)

    def _compare(
        self, node: ast.AST, op: ast.cmpop, a: TypedValue, b: TypedValue
    ) -> TypedValue:
        """Return the condition a op b; a MASK for floats in lanes, else a BOOL.

        With NaN, != is true, and every other comparison false. An int is converted to
        compare it with a float; a bool is compared with a bool, by == and != only.
        """
        if type(op) not in _COMPARE:
            self.fail(
                node, f"'{type(op).__name__}' is not in the subset", "== < <= ..."
            )
        of_wholes, of_floats = _COMPARE[type(op)]
        if (a.type is BOOL) is not (b.type is BOOL):
            self.fail(node, f"{a.type} is compared with {b.type}", "x, not x")
        if a.type is BOOL and of_wholes not in ("eq", "ne"):
            self.fail(node, "bools have no order", "==, !=")
        if a.type is b.type and a.type is not FLOAT:
            code = f"icmp {of_wholes} {self.llvm(a.type)} {a.name}, {b.name}"  # type: ignore[arg-type]
            return TypedValue(BOOL, (self.new(code),))
        x, y = self.convert(a).name, self.convert(b).name
        return self.condition(f"fcmp {of_floats} {self.float} {x}, {y}")

    def _on_boolop(self, node: ast.BoolOp) -> TypedValue:
        return self._by_branches(node)

    def _by_branches(self, node: ast.expr, truth: bool = False) -> TypedValue:
        """Return `and`, `or` or a chained comparison with short-circuit evaluation.

        `truth`: a number is valid as a condition, true unless it is zero.
        """
        yes, no, end = self.label(), self.label(), self.label()
        self.branch(node, yes, no, truth)
        for label in (yes, no):
            self.begin(label)
            self.add(f"br label %{end}")
        self.begin(end)
        return TypedValue(
            BOOL, (self.new(f"phi i1 [ true, %{yes} ], [ false, %{no} ]"),)
        )

    def branch(self, node: ast.expr, yes: str, no: str, truth: bool = True) -> None:
        """Write a jump to label `yes` or `no`, with short-circuit evaluation.

        Conditions that differ between lanes are voted. The current block ends with the
        jump: the caller begins the blocks of both labels.

        Args:
            node: Condition.
            yes, no: Labels.
            truth: Whether a number is valid as a condition: true unless it is zero.
                Behind `not` it is always valid.

        Raises:
            TraceError: The condition is not in the subset, or a number where `truth` is
                False.
        """
        if isinstance(node, ast.BoolOp):
            both = isinstance(node.op, ast.And)
            for part in node.values[:-1]:
                go_on = self.label()
                self.branch(part, *((go_on, no) if both else (yes, go_on)), truth)
                self.begin(go_on)
            self.branch(node.values[-1], yes, no, truth)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.branch(node.operand, no, yes)
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            left = self.number(node.left)
            for op, inner in zip(node.ops, node.comparators, strict=True):
                right, go_on = self.number(inner), self.label()
                holds = self.agreed(self._compare(node, op, left, right)).name
                self.add(f"br i1 {holds}, label %{go_on}, label %{no}")
                self.begin(go_on)
                left = right
            self.add(f"br label %{yes}")
        else:
            holds = self._truth(node) if truth else self.number(node, BOOL).name
            self.add(f"br i1 {holds}, label %{yes}, label %{no}")

    def _truth(self, node: ast.expr) -> str:
        """Return the register (i1) of a number as a condition, true unless it is zero.

        NaN is true, too. Floats in lanes are voted to one condition.
        """
        if isinstance(node, ast.BoolOp):
            return self._by_branches(node, truth=True).name
        x = self.number(node)
        if x.type is INT:
            return self.new(f"icmp ne i64 {x.name}, 0")
        if x.type is FLOAT:
            code = f"fcmp une {self.float} {x.name}, {self.real(0.0)}"
            return self.agreed(self.condition(code)).name
        return x.name

    def _on_ifexp(self, node: ast.IfExp) -> TypedValue:
        if self.chooses(node, self.is_float):
            test, a, b = map(self.by_lane, (node.test, node.body, node.orelse))
            if a.type == b.type:
                return self.select(test, a, b)
        yes, no, end = self.label(), self.label(), self.label()
        self.branch(node.test, yes, no)
        values, blocks = [], []
        for label, inner in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            values.append(self.value(inner))
            blocks.append(self.block)
            self.add(f"br label %{end}")
        self.begin(end)
        if values[0].type != values[1].type or values[0].items:
            what = f"'{ast.unparse(node)}' is {values[0].type} or {values[1].type}"
            self.fail(node, what, "one type, such as 0.0 for 0 among floats")
        names = []
        for llvm, *pair in zip(
            self.parts(values[0].type), values[0].names, values[1].names, strict=True
        ):
            ways = zip(pair, blocks, strict=True)
            choice = ", ".join(f"[ {name}, %{block} ]" for name, block in ways)
            names.append(self.new(f"phi {llvm} {choice}"))
        return TypedValue(values[0].type, tuple(names))

    # Calls

    def _on_call(self, node: ast.Call) -> TypedValue:
        function = python_of(self.static(node.func))
        if function is MISSING:
            what = f"'{ast.unparse(node.func)}' is no function of the module"
            self.fail(node, what, "functions marked by @machine_code")
        rule = _CALLS.get(function) if function.__hash__ else None
        if rule is not None:
            low, high, method = rule
            if not low <= len(node.args) <= high or node.keywords:
                what = f"'{ast.unparse(node)}' has other arguments"
                self.fail(node, what, f"{low} or more" if high > 9 else str(low))
            return method(self, node)
        if not is_marked(function):
            what = f"'{ast.unparse(node.func)}' is not in the subset"
            known = ", ".join(_shown(f) for f in _CALLS)
            self.fail(node, what, f"functions marked by @machine_code, {known}")
        return self._call(node, function)

    def _call(self, node: ast.Call, function: Callable[..., Any]) -> TypedValue:
        name, kind = self.callee(function)
        values = [self.value(inner) for inner in node.args]
        wanted = kind.parameters
        named = {word.arg: self.value(word.value) for word in node.keywords}
        rest = [x for x, _ in wanted[len(values) :]]
        if len(values) > len(wanted) or set(rest) != named.keys():
            valid = ", ".join(f"{x}: {t}" for x, t in wanted)
            self.fail(node, f"{function.__name__} takes other arguments", valid)
        values += [named[x] for x in rest]
        arguments = self.more_arguments()
        for (x, t), value in zip(wanted, values, strict=True):
            if value.type != t:
                what = f"argument '{x}' of {function.__name__} is {value.type}"
                self.fail(node, what, str(t))
            named_parts = zip(self.parts(t), value.names, strict=True)
            arguments += [f"{llvm} {part}" for llvm, part in named_parts]
        llvm = self.result_type(kind.result)
        code = f"call {llvm} @{name}({', '.join(arguments)})"
        register = "" if llvm == "void" else self.new(code)
        if not register:
            self.add(code)
        if self.checked:
            self._leave_after_failure()
        if isinstance(kind.result, TupleType):
            items = tuple(
                TypedValue(item, (self.new(f"extractvalue {llvm} {register}, {k}"),))
                for k, item in enumerate(kind.result.items)
            )
            return TypedValue(kind.result, (), items)
        return TypedValue(kind.result, (register,))

    def _leave_after_failure(self) -> None:
        """Write a return if the called function stored a failure at %status.

        Only for the checked form. Later instructions go to a new block.
        """
        code = self.new("load i64, ptr %status")
        fine = self.new(f"icmp eq i64 {code}, 0")
        yes, no = self.label(), self.label()
        self.add(f"br i1 {fine}, label %{yes}, label %{no}")
        self.begin(no)
        self.leave()
        self.begin(yes)

    def _extreme(self, node: ast.Call, condition: str) -> TypedValue:
        """Return the smallest ("lt") or largest ("gt") argument, the first of equals.

        NaN is treated as in Python. In lanes each lane has its own result.
        """
        values = [self.number(inner, INT, FLOAT) for inner in node.args]
        best = values[0]
        for value in values[1:]:
            if value.type is not best.type:
                what = f"'{ast.unparse(node)}' is of {best.type} and {value.type}"
                self.fail(node, what, "one type, such as 0.0 for 0 among floats")
            sign = "fcmp o" if best.type is FLOAT else "icmp s"
            code = f"{self.llvm(best.type)} {value.name}, {best.name}"  # type: ignore[arg-type]
            better = self.condition(f"{sign}{condition} {code}")
            best = self.select(better, value, best)
        return best

    def _min(self, node: ast.Call) -> TypedValue:
        return self._extreme(node, "lt")

    def _max(self, node: ast.Call) -> TypedValue:
        return self._extreme(node, "gt")

    def _abs(self, node: ast.Call) -> TypedValue:
        x = self.number(node.args[0], INT, FLOAT)
        if x.type is FLOAT:
            return self._of_llvm("fabs", x)
        return TypedValue(
            INT, (self.new(f"call i64 @llvm.abs.i64(i64 {x.name}, i1 false)"),)
        )

    def _of_llvm(self, name: str, *values: TypedValue) -> TypedValue:
        arguments = ", ".join(f"{self.float} {x.name}" for x in values)
        function = f"@llvm.{name}.{self.suffix}"
        return TypedValue(
            FLOAT, (self.new(f"call {self.float} {function}({arguments})"),)
        )

    def _real(self, node: ast.expr) -> TypedValue:
        return self.convert(self.number(node, INT, FLOAT))

    def _sqrt(self, node: ast.Call) -> TypedValue:
        return self._of_llvm("sqrt", self._real(node.args[0]))

    def _fabs(self, node: ast.Call) -> TypedValue:
        return self._of_llvm("fabs", self._real(node.args[0]))

    def _copysign(self, node: ast.Call) -> TypedValue:
        return self._of_llvm("copysign", *map(self._real, node.args))

    def _isnan(self, node: ast.Call) -> TypedValue:
        x = self._real(node.args[0]).name
        return self.condition(f"fcmp uno {self.float} {x}, {x}")

    def _isfinite(self, node: ast.Call) -> TypedValue:
        x = self._of_llvm("fabs", self._real(node.args[0])).name
        return self.condition(f"fcmp olt {self.float} {x}, {self.real(math.inf)}")

    def _floor(self, node: ast.Call) -> TypedValue:
        return self.to_whole(self._of_llvm("floor", self._real(node.args[0])))

    def _ceil(self, node: ast.Call) -> TypedValue:
        return self.to_whole(self._of_llvm("ceil", self._real(node.args[0])))

    def _int(self, node: ast.Call) -> TypedValue:
        x = self.number(node.args[0])
        if x.type is BOOL:
            return TypedValue(INT, (self.new(f"zext i1 {x.name} to i64"),))
        return x if x.type is INT else self.to_whole(x)

    def _float(self, node: ast.Call) -> TypedValue:
        return self._real(node.args[0])

    def _bool(self, node: ast.Call) -> TypedValue:
        return TypedValue(BOOL, (self._truth(node.args[0]),))

    def _len(self, node: ast.Call) -> TypedValue:
        array = self.value(node.args[0])
        if not isinstance(array.type, ArrayType):
            self.fail(node, f"len of {array.type}", "len(array)")
        return TypedValue(INT, (array.names[1],))


def _shown(function: Any) -> str:
    module = "math." if function.__module__ == math.__name__ else ""
    return f"{module}{function.__name__}"


# function: minimum and maximum number of arguments, writer.
_CALLS: dict[Any, tuple[int, int, Callable[[Operations, ast.Call], TypedValue]]] = {
    abs: (1, 1, Operations._abs),
    min: (2, 99, Operations._min),
    max: (2, 99, Operations._max),
    int: (1, 1, Operations._int),
    float: (1, 1, Operations._float),
    bool: (1, 1, Operations._bool),
    len: (1, 1, Operations._len),
    math.sqrt: (1, 1, Operations._sqrt),
    math.fabs: (1, 1, Operations._fabs),
    math.floor: (1, 1, Operations._floor),
    math.ceil: (1, 1, Operations._ceil),
    math.copysign: (2, 2, Operations._copysign),
    math.isnan: (1, 1, Operations._isnan),
    math.isfinite: (1, 1, Operations._isfinite),
    call_kernel: (4, 7, write_call),
    **CHOICES,
}
