"""A few words of Python as LLVM: functions on 64-bit numbers and addresses.

For what is called from C and may not be Python itself. A function of a module written
this way takes and gives whole numbers, assigns them to names, calculates with
+ - * & |, compares, branches by if and while, and calls functions: its neighbours,
those of the process by name, and the words below. Names in capitals are constants of
its module.
"""

from __future__ import annotations

import ast
import inspect
from types import ModuleType
from typing import Any, NoReturn


def _word(*_: Any) -> NoReturn:
    raise TypeError("this function is text for the machine, not for Python")


load = load32 = store = copy = room = real = call = _word
"""load(a): the word at an address; load32(a): 32 bits with sign; store(a, x);
copy(to, source, n): n bytes; room(n): address of n bytes for this call; real(a): the
float at an address, as an argument; call(f, ...): the function at an address."""

_OPERATIONS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and",
               ast.BitOr: "or"}  # fmt: skip
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle",
            ast.Gt: "sgt", ast.GtE: "sge"}  # fmt: skip
_COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def translate(module: ModuleType, public: str, **names: Any) -> str:
    """Give LLVM text of a module's functions.

    Args:
        module: Its source is read.
        public: The function that can be found by name in the object code.
        names: Values of more constants, and other names of functions.
    """
    tree = ast.parse(inspect.getsource(module))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    own = {node.name for node in functions}
    foreign: dict[str, str] = {}
    texts = []
    for node in functions:
        scope = "" if node.name == public else "internal "
        known = {**vars(module), **names}
        texts.append(_Function(node, known, own, foreign).text(scope))
    return "\n".join([_COPY, *foreign.values(), *texts])


class _Function:
    """One function being translated; its variables are memory until LLVM's passes."""

    def __init__(
        self,
        node: ast.FunctionDef,
        names: dict[str, Any],
        own: set[str],
        foreign: dict[str, str],
    ) -> None:
        self.node, self.names, self.own, self.foreign = node, names, own, foreign
        self.lines: list[str] = []
        self.rooms: list[str] = []
        self.variables: dict[str, str] = {}
        self.count = 0

    def text(self, scope: str) -> str:
        """Give the LLVM text."""
        arguments = [a.arg for a in self.node.args.args]
        for name in arguments:
            self._assign(name, f"%{name}")
        for statement in self.node.body:
            self._statement(statement)
        variables = [f"  {place} = alloca i64" for place in self.variables.values()]
        given = ", ".join(f"i64 %{name}" for name in arguments)
        head = f"define {scope}i64 @{self.node.name}({given}) {{"
        lines = [head, *variables, *self.rooms, *self.lines, "  ret i64 0", "}", ""]
        return "\n".join(lines)

    def _new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def _label(self) -> str:
        self.count += 1
        return f"l{self.count}"

    def _assign(self, name: str, value: str) -> None:
        place = self.variables.setdefault(name, f"%v_{name}")
        self.lines.append(f"  store i64 {value}, ptr {place}")

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            self._assignment(node.targets[0], node.value)
        elif isinstance(node, ast.AugAssign):
            assert isinstance(node.target, ast.Name)
            name = ast.Name(node.target.id)
            self._assign(name.id, self._value(ast.BinOp(name, node.op, node.value)))
        elif isinstance(node, ast.Return):
            self.lines.append(f"  ret i64 {self._value(node.value or ast.Constant(0))}")
            self.lines.append(f"{self._label()}:")
        elif isinstance(node, ast.If):
            yes, no, end = self._label(), self._label(), self._label()
            self._branch(node.test, yes, no)
            for label, then in ((yes, node.body), (no, node.orelse)):
                self.lines.append(f"{label}:")
                for inner in then:
                    self._statement(inner)
                self.lines.append(f"  br label %{end}")
            self.lines.append(f"{end}:")
        elif isinstance(node, ast.While):
            test, body, end = self._label(), self._label(), self._label()
            self.lines += [f"  br label %{test}", f"{test}:"]
            self._branch(node.test, body, end)
            self.lines.append(f"{body}:")
            for inner in node.body:
                self._statement(inner)
            self.lines += [f"  br label %{test}", f"{end}:"]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._call(node.value)
        elif not isinstance(node, ast.Expr):
            raise TypeError(f"{self.node.name}: {ast.unparse(node)} is no word of this")

    def _assignment(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its in zip(target.elts, value.elts, strict=True):
                self._assignment(one, its)
            return
        assert isinstance(target, ast.Name)
        self._assign(target.id, self._value(value))

    def _branch(self, test: ast.expr, yes: str, no: str) -> None:
        """Go to one of two labels."""
        if isinstance(test, ast.BoolOp):
            both = isinstance(test.op, ast.And)
            for part in test.values[:-1]:
                go_on = self._label()
                self._branch(part, go_on if both else yes, no if both else go_on)
                self.lines.append(f"{go_on}:")
            self._branch(test.values[-1], yes, no)
            return
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._branch(test.operand, no, yes)
            return
        if isinstance(test, ast.Compare):
            a, b = self._value(test.left), self._value(test.comparators[0])
            how = _COMPARE[type(test.ops[0])]
        else:
            a, b, how = self._value(test), "0", "ne"
        holds = self._new(f"icmp {how} i64 {a}, {b}")
        self.lines.append(f"  br i1 {holds}, label %{yes}, label %{no}")

    def _value(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int)
            return str(node.value)
        if isinstance(node, ast.Name):
            if node.id in self.variables:
                return self._new(f"load i64, ptr {self.variables[node.id]}")
            return str(int(self.names[node.id]))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._new(f"sub i64 0, {self._value(node.operand)}")
        if isinstance(node, ast.BinOp):
            a, b = self._value(node.left), self._value(node.right)
            return self._new(f"{_OPERATIONS[type(node.op)]} i64 {a}, {b}")
        if isinstance(node, ast.Call):
            return self._call(node)
        raise TypeError(f"{self.node.name}: {ast.unparse(node)} is no word of this")

    def _pointer(self, node: ast.expr) -> str:
        """Give an address; what is added to one stays in its object."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            base, offset = self._pointer(node.left), self._value(node.right)
            return self._new(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self._new(f"inttoptr i64 {self._value(node)} to ptr")

    def _room(self, size: ast.expr) -> str:
        """Give memory for this call; where its size is fixed, at the beginning."""
        names = {n.id for n in ast.walk(size) if isinstance(n, ast.Name)}
        if names <= self.names.keys():
            self.count += 1
            memory = f"%r{self.count}"
            count = eval(ast.unparse(size), {}, self.names)
            self.rooms.append(f"  {memory} = alloca [{count} x i8], align 16")
        else:
            memory = self._new(f"alloca i8, i64 {self._value(size)}, align 16")
        return self._new(f"ptrtoint ptr {memory} to i64")

    def _call(self, node: ast.Call) -> str:
        assert isinstance(node.func, ast.Name)
        name, args = node.func.id, node.args
        if isinstance(self.names.get(name), str):
            name = self.names[name]
        if name == "load":
            return self._new(f"load i64, ptr {self._pointer(args[0])}")
        if name == "load32":
            half = self._new(f"load i32, ptr {self._pointer(args[0])}")
            return self._new(f"sext i32 {half} to i64")
        if name == "store":
            place, value = self._pointer(args[0]), self._value(args[1])
            self.lines.append(f"  store i64 {value}, ptr {place}")
            return "0"
        if name == "copy":
            to, source = self._pointer(args[0]), self._pointer(args[1])
            size = f"i64 {self._value(args[2])}, i1 false"
            self.lines.append(
                f"  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, {size})"
            )
            return "0"
        if name == "room":
            return self._room(args[0])
        function = f"@{name}"
        if name == "call":
            function, args = self._pointer(args[0]), args[1:]
        values = [self._argument(x) for x in args]
        if name not in self.own and name != "call":
            types = ", ".join(value.split()[0] for value in values)
            self.foreign[name] = f"declare i64 @{name}({types})"
        return self._new(f"call i64 {function}({', '.join(values)})")

    def _argument(self, node: ast.expr) -> str:
        """Give type and name of an argument."""
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_call and node.func.id == "real":  # type: ignore[attr-defined]
            place = self._pointer(node.args[0])  # type: ignore[attr-defined]
            return f"double {self._new(f'load double, ptr {place}')}"
        return f"i64 {self._value(node)}"
