"""A small subset of Python compiled to LLVM, and why calls of Programs need it.

Purpose of the entry
    rnea of an arm with seven joints takes 21 us when called by way of Python (checks of
    the arrays, addresses, ctypes). By the entry the same call takes 0.22 us, kernel
    included; a call that only copies one array takes 0.03 us. A C extension could do
    as much, but would have to be built for every Python, NumPy and machine; LLVM is
    installed already.

Method
    entry_code.py   is written in the subset below: it reads arguments, checks them,
                    calls a kernel and returns arrays. It is never run as Python.
    translate()     here converts its functions to LLVM IR. Variables are memory, which
                    LLVM's own passes convert to registers.
    entry.py        compiles the IR once for each machine, checks the memory layout of
                    NumPy's arrays, and creates a type whose vectorcall (PEP 590) is
                    that machine code. Each Program has a table of addresses and sizes,
                    its Descriptor, that the code reads.
    All other calls (with a list, another dtype, a wrong shape, a failed requirement, an
    overlap) go to the Python method `Program.__call__` with the same arguments. The
    entry raises nothing and converts nothing.

Rules implemented twice
    Three rules of a call are therefore written twice, in entry_code.py for speed and in
    Python for all other calls. Change both together; tests/engines/test_entry.py calls
    each.

    `out` may not overlap inputs or other outputs
        overlaps; NativeProgram._direct
    finite=True refuses NaN and infinity
        all_finite; check_finite (engines/arrays.py), mark_not_finite (status.py)
    fewer rows than lanes run one by one
        run_few; NativeProgram._one_by_one

    Where a rule is violated the entry passes the call to Python, which raises the error
    or computes into other memory: an entry that passes on too many calls is slow, and
    never wrong.

The subset
    Functions of whole numbers (64 bits) that assign to names, calculate with + - * & |,
    compare, branch by if and while, and call: each other, functions of the process by
    name, and load, load32, store, copy, room, real and call below. Names in capitals
    are constants of the module.
"""

from __future__ import annotations

import ast
import inspect
from types import ModuleType
from typing import Any, NoReturn


def _not_for_python(*_: Any) -> NoReturn:
    """Raise TypeError: the function is only for compiled code."""
    raise TypeError("this function is compiled to machine code, not run by Python")


load = load32 = store = copy = room = real = call = _not_for_python
"""load(a): the 64 bits at an address; load32(a): 32 bits with sign; store(a, x);
copy(to, source, n): n bytes; room(n): address of n bytes for this call; real(a): the
float at an address, as an argument; call(f, ...): the function at an address."""

_OPERATIONS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and",
               ast.BitOr: "or"}  # fmt: skip
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle",
            ast.Gt: "sgt", ast.GtE: "sge"}  # fmt: skip
_COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def translate(module: ModuleType, public: str, **names: Any) -> str:
    """Return the LLVM IR of a module's functions, and of functions imported into it.

    `public` are the names, separated by spaces, of functions with external linkage;
    `names` are more constants, and replacements for names of functions.
    """
    functions = [
        (node, x.__globals__)
        for x in vars(module).values()
        if inspect.isfunction(x) and x is not _not_for_python
        for node in ast.parse(inspect.getsource(x)).body
        if isinstance(node, ast.FunctionDef)
    ]
    local = {node.name for node, _ in functions}
    foreign: dict[str, str] = {}
    definitions = []
    for node, constants in functions:
        scope = "" if node.name in public.split() else "internal "
        known = {**constants, **names}
        definitions.append(_Function(node, known, local, foreign).define(scope))
    return "\n".join([_COPY, *foreign.values(), *definitions])


class _Function:
    """Writes one function; its variables are stack memory.

    `names` has the constants of its module (numbers), and names of functions that
    replace this one (strings). `foreign` has declarations of other functions by name,
    and is extended.
    """

    def __init__(
        self,
        node: ast.FunctionDef,
        names: dict[str, Any],
        local: set[str],
        foreign: dict[str, str],
    ) -> None:
        self.node, self.names, self.local, self.foreign = node, names, local, foreign
        self.lines: list[str] = []
        self.rooms: list[str] = []
        self.variables: dict[str, str] = {}
        self.count = 0

    def define(self, scope: str) -> str:
        """Return the LLVM definition of the function, which returns 0 by default.

        `scope` is "internal ", or "" for external linkage.
        """
        arguments = [a.arg for a in self.node.args.args]
        for name in arguments:
            self._assign(name, f"%{name}")
        for statement in self.node.body:
            self._statement(statement)
        variables = [f"  {place} = alloca i64" for place in self.variables.values()]
        parameters = ", ".join(f"i64 %{name}" for name in arguments)
        head = f"define {scope}i64 @{self.node.name}({parameters}) {{"
        lines = [head, *variables, *self.rooms, *self.lines, "  ret i64 0", "}", ""]
        return "\n".join(lines)

    def _new(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %t{self.count} = {instruction}")
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
            raise TypeError(
                f"{self.node.name}: {ast.unparse(node)} is not in the subset"
            )

    def _assignment(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for name, part in zip(target.elts, value.elts, strict=True):
                self._assignment(name, part)
            return
        assert isinstance(target, ast.Name)
        self._assign(target.id, self._value(value))

    def _branch(self, test: ast.expr, yes: str, no: str) -> None:
        """Write a jump to label `yes` or `no`, with short-circuit evaluation.

        A number is true unless it is zero.
        """
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
            assert len(test.ops) == 1, "a chained comparison"
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
        raise TypeError(f"{self.node.name}: {ast.unparse(node)} is not in the subset")

    def _pointer(self, node: ast.expr) -> str:
        """Return the register of an address as a pointer.

        A sum is a getelementptr from its left operand, itself written as a pointer, so
        that LLVM knows that both are in one object; any other expression is an
        inttoptr.
        """
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            base, offset = self._pointer(node.left), self._value(node.right)
            return self._new(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self._new(f"inttoptr i64 {self._value(node)} to ptr")

    def _room(self, size: ast.expr) -> str:
        """Return the register of the address, an i64, of `size` bytes of stack memory.

        It is 16-byte aligned and not initialised. A size without variables is allocated
        at the beginning of the function, so that a loop does not allocate again.
        """
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
        if name not in self.local and name != "call":
            types = ", ".join(value.split()[0] for value in values)
            self.foreign[name] = f"declare i64 @{name}({types})"
        return self._new(f"call i64 {function}({', '.join(values)})")

    def _argument(self, node: ast.expr) -> str:
        """Return type and value of an argument: a double for real(a), else an i64."""
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_call and node.func.id == "real":  # type: ignore[attr-defined]
            place = self._pointer(node.args[0])  # type: ignore[attr-defined]
            return f"double {self._new(f'load double, ptr {place}')}"
        return f"i64 {self._value(node)}"
