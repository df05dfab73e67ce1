"""The tool that changes the product: what it changes, and what it leaves alone."""

import importlib.util
from pathlib import Path

SOURCE = '''
"""A docstring with 1 number."""
from typing import Any

def law(a: "1 < 2", b=3, *, c=True) -> int:
    """Return something < 5."""
    if a <= b and not c:
        raise ValueError(f"{a + b} is 7")
    for k in a:
        if k:
            continue
        show(k)
    return -a + 2.0 * b
'''


def _tool():
    path = Path(__file__).with_name("mutation.py")
    spec = importlib.util.spec_from_file_location("mutation", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_operator_number_condition_and_statement_is_changed():
    """One change a mutant; words, annotations and docstrings stay as they are."""
    tool = _tool()
    found = tool.mutants_of("law.py", SOURCE)
    assert all(tool.another_program(mutant, SOURCE) for mutant in found)
    assert {(m.before, m.after) for m in found} == {
        ("3", "4"), ("True", "False"), ("a <= b and not c", "(a <= b or not c)"),
        ("a <= b", "(a < b)"), ("not c", "(c)"),
        ('raise ValueError(f"{a + b} is 7")', "pass"), ("k", "(not (k))"),
        ("continue", "break"), ("show(k)", "pass"), ("-a + 2.0 * b", "(-a - 2.0 * b)"),
        ("-a", "(a)"), ("2.0 * b", "(2.0 / b)"), ("2.0", "4.0"),
    }  # fmt: skip
    assert {m.function for m in found} == {"law"}


def test_a_change_is_made_where_it_was_found():
    """Letters of more than one byte before it move nothing."""
    tool = _tool()
    text = 'def law(x):\n    """μ."""\n    return "μ", x - 1\n'
    changed = [tool.changed_text(m, text) for m in tool.mutants_of("law.py", text)]
    assert changed == [text.replace("x - 1", "(x + 1)"), text.replace("1", "2")]
