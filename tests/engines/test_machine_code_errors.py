"""What is not in the subset of Python is refused in words, at translation."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from pathlib import Path

import pytest

from dyn_core.engines.machine_code import compiled, machine_code
from dyn_core.engines.machine_code.translation import translate
from dyn_core.errors import TraceError


@pytest.fixture
def module_of(tmp_path, monkeypatch):
    """Return a function that imports a source."""
    head = (
        "from __future__ import annotations\nimport math\nimport numpy as np\n"
        "from typing import NamedTuple\nfrom dyn_core.engines.machine_code import *\n"
        "def plain(x):\n    return x\n"
    )

    def load(source, name="subset_of_a_test"):
        path = tmp_path / f"{name}.py"
        path.write_text(head + source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


FAULTS = [
    ("x ** 2", "'Pow' of float and int", "x * x"),
    ("n / 2", "'Div' of int and int", "float(a) / float(b)"),
    ("x // 2.0", "'FloorDiv' of float", "math.floor"),
    ("min(x, 0)", "is of float and int", "0.0 for 0"),
    ("x if n else 0", "is float or int", "0.0 for 0"),
    ("math.sin(x)", "'math.sin' is not in the subset", "math.sqrt"),
    ("plain(x)", "'plain' is not in the subset", "@machine_code"),
    ("np.sqrt(x)", "'np.sqrt' is not in the subset", "math.sqrt"),
    ("nothing(x)", "'nothing' is no function", "@machine_code"),
    ("missing + x", "'missing' is no variable", "constants of the module"),
    ("a[0]", "FloatArray is returned", "float"),
    ("a[0, 1, 2]", "3 indices of FloatArray2", "at most 2"),
    ("a[-1, 0]", "no negative index", "len(array) - 1"),
    ("a[0, 1:]", "no slices", "array[i]"),
    ("a[x, 0]", "'x' is float", "int"),
    ("x[0]", "'x' is float", "array[i]"),
    ("a.size", "'a' is FloatArray2: no '.size'", "array.shape"),
    ("a.shape[2]", "an index of a shape", "0 to 1"),
    ("[x]", "'[x]' is not in the subset", "names"),
    ("'text'", "is no number of 64 bits", "int, float and bool"),
    ("2 ** 64 + x", "'Pow'", "x * x"),
    ("18446744073709551616 + x", "is no number of 64 bits", "int"),
    ("bool(x in (n, 1))", "is tuple[int, int]", "a number"),
    ("bool(x is x)", "'Is' is not in the subset", "=="),
    ("(x > 0) + x", "is bool", "int or float"),
    ("float(x > 0 and n)", "'n' is int", "bool"),
    ("abs(x, x)", "has other arguments", "1"),
    ("helper(n)", "argument 'x' of helper is int", "float"),
    ("helper(x, x)", "helper takes other arguments", "x: float"),
    ("again(x, a)", "recursion (program -> again -> program)", "a loop"),
    ("a", "FloatArray2 is returned", "float"),
    ("1", "int is returned", "float"),
]
BODY = """
@machine_code
def helper(x: float) -> float:
    return x

@machine_code
def again(x: float, a: FloatArray2) -> float:
    return program(x, 1, a)

@machine_code
def program(x: float, n: int, a: FloatArray2) -> float:
    return {}
"""


@pytest.mark.parametrize(("value", "what", "valid"), FAULTS)
def test_values_outside_the_subset_are_refused_in_words(value, what, valid, module_of):
    """File, line, function, what is wrong and what would be valid."""
    program = module_of(BODY.format(value)).program
    with pytest.raises(TraceError) as error:
        translate(program)
    message = str(error.value)
    assert what in message
    assert "subset_of_a_test.py:" in message
    assert valid in message.split("; valid: ")[1], message


STATEMENTS = [
    ("y = 0\ny = x", "'y' is int, and then float", 2),
    ("if n > 0:\n    y = x\nreturn y", "'y' may have no value here", 3),
    ("for i in range(n):\n    y = x\nreturn y", "'y' may have no value here", 3),
    (
        "while n > 0:\n    if n == 1:\n        break\n    y = x\nreturn y",
        "'y' may have",
        5,
    ),
    ("for v in a:\n    x += v", "a loop over 'a'", 1),
    ("for i in range(0, n, n):\n    x += 1", "the step of a range", 1),
    ("for i in range(n):\n    pass\nelse:\n    x = 1.0", "`else` of a loop", 1),
    ("a[0] = x", "a whole row is assigned", 1),
    ("k[0] = x", "float is stored in an array of int", 1),
    ("a[0, 0] += a", "'a' is FloatArray2", 1),
    ("x.y = 1", "'x.y = ...' is not in the subset", 1),
    ("x, y = n", "2 names for int", 1),
    ("y = (x, n)", "'y' is tuple[float, int]", 1),
    ("n /= 2", "'Div' of int and int", 1),
    ("helper(x)\nx + 1", "goes nowhere", 2),
    ("try:\n    x = 1.0\nfinally:\n    x = 2.0", "'try:' is not in the subset", 1),
    ("assert x", "'assert x' is not in the subset", 1),
    ("if n > 0:\n    return x", "may end without a value", 0),
    ("y: float\nreturn x", "a variable without a value", 1),
    ("return", "nothing is returned", 1),
    ("y = a.shape[n]", "an index of a shape", 1),
]


@pytest.mark.parametrize(("body", "what", "line"), STATEMENTS)
def test_statements_outside_the_subset_are_refused_in_words(
    body, what, line, module_of
):
    """The line is that of the statement."""
    lines = "\n    ".join(body.splitlines())
    head = (
        "@machine_code\ndef helper(x: float) -> float:\n    return x\n@machine_code\n"
    )
    head += "def program(x: float, n: int, a: FloatArray2, k: IntArray) -> float:\n"
    module = module_of(f"{head}    {lines}\n")
    with pytest.raises(TraceError) as error:
        translate(module.program)
    assert what in str(error.value), error.value
    assert "; valid: " in str(error.value)
    number = int(re.search(r"\.py:(\d+): program", str(error.value))[1])
    assert number == module.program.__code__.co_firstlineno + 1 + line


SIGNATURES = [
    ("x: float", "", "what is returned has no annotation"),
    ("x", " -> None", "argument 'x' has no annotation"),
    ("x: str", " -> None", "'x': the type str is not of the subset"),
    ("x: float = 1.0", " -> None", "default values"),
    ("*x: float", " -> None", "no *args"),
    (
        "x: float",
        " -> FloatArray",
        "what is returned must be None, a number or a tuple",
    ),
    ("x: Nowhere", " -> None", "name 'Nowhere' is not defined"),
    ("x: np.nothing", " -> None", "an annotation cannot be evaluated: module 'numpy'"),
    ("x: 'a b'", " -> None", "an annotation cannot be evaluated: "),
    ("x: 3", " -> None", "'x': the type 3 is not of the subset"),
    ("x: float[1 // 0]", " -> None", "an annotation cannot be evaluated: "),
    ("x: float", " -> math.nothing", "an annotation cannot be evaluated: "),
    ("x: Bad", " -> None", "'x'.y: the type list is not of the subset"),
]


@pytest.mark.parametrize(("arguments", "result", "what"), SIGNATURES)
def test_signatures_outside_the_subset_are_refused_in_words(
    arguments, result, what, module_of
):
    """Annotations decide the types, also where the Python function serves."""
    source = "class Bad(NamedTuple):\n    y: list\n@machine_code\n"
    module = module_of(f"{source}def program({arguments}){result}:\n    pass\n")
    with pytest.raises(TraceError, match=re.escape(what)):
        compiled(module.program)


def test_unmarked_and_inner_functions_are_refused_in_words():
    """What is compiled is marked, has a file, and uses names of its module."""
    scale = 2.0

    @machine_code
    def inner(x: float) -> float:
        return x * scale

    with pytest.raises(TraceError, match="scale of a function around it"):
        translate(inner)
    with pytest.raises(TraceError, match="is not marked; valid: @machine_code"):
        compiled(math.sin)
    space = {"machine_code": machine_code}
    exec("@machine_code\ndef typed(x: float) -> float:\n    return x", space)
    with pytest.raises(TraceError, match="its source is not there"):
        translate(space["typed"])


@pytest.mark.parametrize("change", [("x * 2.0", "x * 7.0"), ("1.0, 3.0", "1.0, 7.0")])
def test_a_file_changed_after_its_import_is_refused(module_of, change):
    """Machine code would have the new numbers, Python the old ones."""
    module = module_of(
        "@machine_code\ndef pair(x: float) -> tuple[float, float]:\n"
        "    if x > 0.0:\n        return x * 2.0, x\n    return 1.0, 3.0\n"
    )
    file = Path(module.__file__)
    file.write_text(file.read_text("utf-8").replace(*change), encoding="utf-8")
    with pytest.raises(TraceError, match="the file is another than when"):
        translate(module.pair)
