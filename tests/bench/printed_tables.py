"""Tables of measurements, as they are printed, and the progress beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Table = Sequence[Sequence[str]]
Progress = Callable[[str], Any]  # called with what is measured next


def progress(what: str) -> None:
    """Print what is measured now, on stderr."""
    print(f"... {what}", file=sys.stderr, flush=True)


def plain(table: Table) -> list[str]:
    """Return the lines of a table for a terminal."""
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    return [
        "  ".join(
            x.ljust(w) if k == 0 else x.rjust(w)
            for k, (x, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def markdown(table: Table) -> list[str]:
    """Return the lines of a table for a document."""
    rule = ["---", *["---:"] * (len(table[0]) - 1)]
    return [f"| {' | '.join(row)} |" for row in (table[0], rule, *table[1:])]


def print_tables(
    legend: str,
    tables: Iterable[tuple[str, Table]],
    show: Callable[[Table], list[str]] = plain,
) -> None:
    """Print a legend, and tables with their titles as they are measured."""
    print(f"\n{legend}")
    for title, table in tables:
        print(f"\n{title}\n")
        for line in show(table):
            print(line, flush=True)
