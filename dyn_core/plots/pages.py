"""Self-contained HTML pages: title, sections, tables, pictures."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from numbers import Rational, Real
from pathlib import Path
from typing import Any, NamedTuple

from dyn_core.plots.figures import NO_PICTURES, can_draw, data_uri
from dyn_core.validation import writing
from dyn_core.validation.file_names import check_file_name
from dyn_core.validation.quoting import page_text

SUFFIXES = (".html", ".htm")

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #1a1a1a;
  background: #fff; max-width: 62rem; margin: 2rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem; border-bottom: 1px solid #d0d0d0; }
h2.run { font-size: 1.4rem; border-bottom: 3px solid #0072b2; margin-top: 3rem; }
p { margin: .3rem 0 .8rem; }
p.meaning { color: #555; }
p.note { border-left: 4px solid #d55e00; padding: .2rem .8rem; background: #fff6ef; }
table { border-collapse: collapse; margin: .4rem 0 1rem; font-size: .92em; }
th, td { padding: .16rem .8rem .16rem 0; text-align: left; vertical-align: top; }
th { border-bottom: 1px solid #999; font-weight: 600; }
td { border-bottom: 1px solid #eee; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
img { width: 100%; height: auto; display: block; margin: .4rem 0 .8rem; }
summary { cursor: pointer; color: #0072b2; }
@media print { body { margin: 0; max-width: none; } img { break-inside: avoid; } }
"""


class ReportSection(NamedTuple):
    """A section of a page; title and meaning (one sentence) are text, content is HTML.

    `opens`: The sections of another run begin here, marked by a larger heading.
    """

    title: str
    meaning: str
    content: str = ""
    opens: bool = False


def page(title: str, sections: Iterable[ReportSection], introduction: str = "") -> str:
    """Return a whole HTML page; all but the contents of the sections is escaped."""
    parts = [f"<h1>{page_text(title)}</h1>"]
    if introduction:
        parts.append(f'<p class="meaning">{page_text(introduction)}</p>')
    for section in sections:
        mark = ' class="run"' if section.opens else ""
        parts.append(f"<section><h2{mark}>{page_text(section.title)}</h2>")
        parts.append(f'<p class="meaning">{page_text(section.meaning)}</p>')
        parts.append(f"{section.content}</section>")
    return document(title, "\n".join(parts), _STYLE)


def document(title: str, body: str, style: str) -> str:
    """Return a whole HTML document that loads no other files; the title is escaped."""
    return "\n".join((
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{page_text(title)}</title>",
        f"<style>{style}</style></head>",
        f"<body>{body}</body></html>",
        "",
    ))  # fmt: skip


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return an HTML table; numbers are aligned to the right.

    Text is escaped, and paths are shortened to names of files.

    Args:
        header: Labels of the columns; empty: no header.
        rows: Cells: strings, integers, or floats, shown with four significant digits,
            also those of NumPy; others are shown as str() and count as text. A string
            that ends with " %", True and False count as numbers. The last cell of a
            shorter row spans the remaining columns; a longer row widens the table,
            without a label above.
    """
    lines = [list(row) for row in rows]
    width = max([len(header), *map(len, lines)])
    numeric = [False] * width
    body = []
    for line in lines:
        cells = []
        for k, cell in enumerate(line):
            number = isinstance(cell, Real) or str(cell).endswith(" %")
            numeric[k] = numeric[k] or number
            mark = ' class="number"' if number else ""
            if k + 1 == len(line) < width:
                mark += f' colspan="{width - k}"'
            rounded = isinstance(cell, Real) and not isinstance(cell, Rational)
            shown = f"{cell:.4g}" if rounded else str(cell)
            cells.append(f"<td{mark}>{page_text(shown)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    heads = [
        f'<th class="number">{page_text(x)}</th>'
        if right
        else f"<th>{page_text(x)}</th>"
        for x, right in zip(header, numeric, strict=False)
    ]
    head = f"<thead><tr>{''.join(heads)}</tr></thead>" if heads else ""
    return f"<table>{head}<tbody>{''.join(body)}</tbody></table>"


def picture(drawn: Callable[[], Any], meaning: str) -> str:
    """Return a figure of matplotlib as an <img> element with the image inside.

    `drawn` returns the figure; without matplotlib it is not called, and the result is a
    note. The alternative text `meaning` is escaped.
    """
    if not can_draw():
        return note(f"No picture ({meaning}): {NO_PICTURES}")
    return f'<img src="{data_uri(drawn())}" alt="{page_text(meaning)}">'


def folded(summary: str, content: str) -> str:
    """Return HTML content that is shown when its summary (escaped) is clicked."""
    head = f"<summary>{page_text(summary)}</summary>"
    return f"<details>{head}{content}</details>"


def note(sentence: str) -> str:
    """Return a highlighted paragraph as HTML; the sentence is escaped."""
    return f'<p class="note">{page_text(sentence)}</p>'


def paragraph(sentence: str) -> str:
    """Return a plain paragraph as HTML; the sentence is escaped."""
    return f"<p>{page_text(sentence)}</p>"


def check_page(path: str, option: str = "report") -> None:
    """Check the path of a page, before time is spent on its content.

    It must end with .html or .htm in lower case, and its folder must exist.
    """
    check_file_name(path, SUFFIXES, option)


def write_page(path: str | os.PathLike[str], content: str) -> None:
    """Write an HTML page atomically, as UTF-8; an existing file is replaced."""
    file = Path(path)
    with (
        writing(file),
        tempfile.TemporaryDirectory(prefix=".dyn_", dir=file.parent) as folder,
    ):
        work = Path(folder) / file.name
        work.write_text(content, encoding="utf-8")
        work.replace(file)
