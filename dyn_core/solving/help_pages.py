"""Help pages of solvers, from the Signature, the docstring and the options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from dyn_core.problems import Port, describe
from dyn_core.solving.build_options import BuildOptions

_SECTIONS = (
    "Args:",
    "Returns:",
    "Raises:",
    "Attributes:",
    "Inputs and outputs:",
    "Source:",
)
# One entry of an Args section: names at 4 spaces, continuation lines at 8.
_ENTRY = re.compile(r"^ {4}(\w[\w, ]*): (.*(?:\n {8}.*)*)", re.MULTILINE)


def describe_solver(
    solver: Any,
    inputs: Sequence[Port] | None = None,
    outputs: Sequence[Port] | None = None,
) -> str:
    """Return the help page of a solver, with these Ports or those of its Signature."""
    doc = _docstring(solver)
    parts = [f"{solver.name}: {_before_sections(doc)}"]
    parts.append("Problem " + describe(solver.signature, inputs, outputs))
    parts += _slots(solver) + _options(solver, doc) + [_build_options()]
    tail = [f"Source: {solver.source}"] if solver.source else []
    tail += [f"Offered by: {solver.origin}"] if solver.origin else []
    if solver.reference:
        tail.append("A reference solver: for comparison with other solvers.")
    return "\n\n".join([*parts, "\n".join(tail)]).rstrip()


def summary(solver: Any) -> str:
    """Return the first paragraph of a solver's docstring on one line.

    "Return", then "the" at the beginning, and the final full stop, are removed; the
    first letter is a capital. Without a docstring it is the Signature's meaning.
    """
    lines = _docstring(solver).strip().split("\n\n")[0].split()
    sentence = " ".join(lines).rstrip(".") or solver.signature.meaning
    start = sentence.removeprefix("Return ").removeprefix("the ")
    return start[:1].upper() + start[1:]


def mentions(registry: Any, terms: Sequence[str]) -> list[str]:
    """Return lines for problems with these outputs, then for others with all terms.

    A line is "NAME: MEANING (SOLVERS)". Terms must begin words of the problem's name or
    meaning, its outputs' meanings, or its solvers' names and summaries, in any case. If
    a term is one letter and all are outputs of a problem, such as H, only problems with
    these outputs are returned.
    """
    by_output, texts = [], {}
    for problem in registry.problems():
        solvers = [registry.solver(name) for name in registry.names(problem)]
        names = ", ".join(solver.name for solver in solvers)
        line = f"{problem.name}: {problem.meaning} ({names})"
        if {*terms} <= {port.name for port in problem.outputs}:
            by_output.append(line)
        else:
            parts = [line, *(port.meaning for port in problem.outputs)]
            texts[line] = " ".join([*parts, *map(summary, solvers)])
    if by_output and min(map(len, terms)) == 1:
        return by_output
    return [*by_output, *names_with_terms(terms, texts)]


def names_with_terms(terms: Sequence[str], texts: Mapping[str, str]) -> list[str]:
    """Return the names of the texts in which each word of the terms begins a word.

    They are in the order of `texts`. Words are of letters and digits, and + as in C++;
    those of a name count, too. Case, American spelling and a plural s of a term do not
    matter. If no term has a letter, as in -1, the list is empty. The words of one term
    need not be together.
    """
    wanted = _search_terms(" ".join(terms))
    said = {
        name: f" {' '.join(_search_terms(f'{name} {x}'))} " for name, x in texts.items()
    }
    names = [n for n, x in said.items() if all(_says(x, word) for word in wanted)]
    return names if any(map(str.isalpha, "".join(wanted))) else []


def _search_terms(text: str) -> list[str]:
    """Return the words of a text in small letters, in British spelling.

    s stands for z, as in linearise, and centre for center.
    """
    text = text.lower().replace("z", "s").replace("center", "centre")
    return re.findall(r"[^\W_]+\+*", text)


def _says(text: str, word: str) -> bool:
    """Return whether a word of `text` begins with `word`.

    Each word of the text has a space on either side. A `word` of four letters or more
    that ends with s is also found without its s, as a whole word.
    """
    plural = len(word) > 3 and word.endswith("s")
    return f" {word}" in text or (plural and f" {word[:-1]} " in text)


def _docstring(solver: Any) -> str:
    """Return the docstring of the algorithm of a TracedSolver, without indentation.

    For other solvers it is that of the class and that of its method `solve`, joined by
    a blank line; a missing one counts as "".
    """
    algorithm = getattr(solver, "algorithm", None)
    if algorithm is not None:
        return inspect.cleandoc(algorithm.__doc__ or "")
    solve = getattr(type(solver), "solve", None)
    docs = [type(solver).__doc__ or "", getattr(solve, "__doc__", None) or ""]
    return "\n\n".join(inspect.cleandoc(doc) for doc in docs)


def _before_sections(doc: str) -> str:
    """Return the paragraphs of a docstring before its first section.

    "Return", then "the" at the beginning, are removed.
    """
    paragraphs = []
    for paragraph in doc.split("\n\n"):
        if paragraph.startswith(_SECTIONS):
            break
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs).removeprefix("Return ").removeprefix("the ")


def _entries(doc: str) -> dict[str, str]:
    """Return the descriptions in the Args sections of a docstring, by argument.

    Each is on one line; names with one common description get equal ones. `doc` is
    without indentation, see _docstring; otherwise the result is empty.
    """
    said: dict[str, str] = {}
    for section in re.findall(r"^Args:\n((?: {4}.*\n?)+)", doc, re.MULTILINE):
        for names, text in _ENTRY.findall(section):
            for name in names.split(", "):
                said[name] = " ".join(text.split())
    return said


def _slots(solver: Any) -> list[str]:
    """Return [the table of the slots with their default solvers], [] without slots."""
    fills = getattr(solver, "fills", {})
    rows = [
        (f"{name}={getattr(fills.get(name), 'name', fills.get(name))!r}",
         f"a solver of {signature.name}")
        for name, signature in getattr(solver, "slots", {}).items()
    ]  # fmt: skip
    return [_table("Slots:", rows)] if rows else []


def _options(solver: Any, doc: str) -> list[str]:
    """Return [the table of the solver's own options with defaults], [] without options.

    The Args section of `doc` describes the options.
    """
    said = _entries(doc)
    rows = [
        (f"{name}={default!r}", said.get(name, ""))
        for name, default in getattr(solver, "options", {}).items()
    ]
    return [_table("Options:", rows)] if rows else []


def _build_options() -> str:
    """Return the table of the options of every build."""
    rows = [
        (f"{option.name}={option.default!r}", option.metadata["meaning"])
        for option in fields(BuildOptions)
    ]
    return _table("Options of every build:", rows)


def _table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return a title and the rows (left, right) in two aligned columns, as text."""
    width = max(len(left) for left, _ in rows)
    lines = [f"    {left.ljust(width)}  {right}".rstrip() for left, right in rows]
    return "\n".join([title, *lines])
