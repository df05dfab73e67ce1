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


def _tool(name="mutation"):
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_operator_number_condition_and_statement_is_changed():
    """One change a mutant; words, annotations and docstrings stay as they are."""
    tool = _tool()
    mutants = tool.mutants_of("law_residuals.py", SOURCE)
    assert all(tool.another_program(mutant, SOURCE) for mutant in mutants)
    assert {(m.before, m.after) for m in mutants} == {
        ("3", "4"), ("True", "False"), ("a <= b and not c", "(a <= b or not c)"),
        ("a <= b", "(a < b)"), ("not c", "(c)"),
        ('raise ValueError(f"{a + b} is 7")', "pass"), ("k", "(not (k))"),
        ("continue", "break"), ("show(k)", "pass"), ("-a + 2.0 * b", "(-a - 2.0 * b)"),
        ("-a", "(a)"), ("2.0 * b", "(2.0 / b)"), ("2.0", "4.0"),
    }  # fmt: skip
    assert {m.function for m in mutants} == {"law"}


def test_a_change_is_made_where_it_was_found():
    """Letters of more than one byte before it move nothing."""
    tool = _tool()
    text = 'def law(x):\n    """μ."""\n    return "μ", x - 1\n'
    changed = [
        tool.changed_text(m, text) for m in tool.mutants_of("law_residuals.py", text)
    ]
    assert changed == [text.replace("x - 1", "(x + 1)"), text.replace("1", "2")]


def test_a_sample_takes_a_mutant_of_each_folder_in_turn():
    """A folder of few lines counts as one of many; the seed decides, and no mutant comes twice."""
    tool = _tool()
    folders = {"dyn_core/plots", "dyn_core/kinematics", "dyn_plugins/estimation"}
    every = tool.chosen(sorted(folders))
    sample, other = tool.drawn(every, 9, seed=1), tool.drawn(every, 9, seed=2)
    for turn in (sample[:3], sample[3:6], sample[6:]):
        assert {m.path.rsplit("/", 1)[0] for m in turn} == folders
    assert len(set(sample)) == 9
    assert sample == tool.drawn(every, 9, seed=1) != other


def test_each_check_stands_in_the_product_and_has_its_test():
    """As the list removes it, once; the page names the test that falls, which exists."""
    removed, folder = _tool("removed_checks"), Path(__file__).parent
    page = (folder / "mutation_survivors.md").read_text("utf-8")
    files = folder.parent.rglob("test_*.py")
    tests = "".join(path.read_text("utf-8") for path in files)
    rows = [
        (n, x, removed.row(n, x)) for n in removed.CHECKS for x in removed.CHECKS[n]
    ]
    assert len(rows) > 130
    for name, check, row in rows:
        compile(removed.without(name, check), name, "exec")
        assert page.count(row) == 1, row
        named = page.split(row)[1].split("\n")[0].strip(" `|").split("[")[0]
        assert f"def {named}(" in tests or named.startswith("equivalent: "), row
