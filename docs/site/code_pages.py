"""Links to files of the repository lead to pages with their code, coloured.

Pages link to files such as ../examples/four_bar.py. In the site these are
pages: a link from a table of equations, whose label is the name of a function, leads to
the line where it is defined.
"""

import ast
from pathlib import Path

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx

FOLDER = "code"
UNLINKED = ("api/", "reference/", "solver_pages/")  # `gravity` is a key there, say
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{name} - dyn_ros</title>
<link rel="stylesheet" href="{top}_static/pygments.css">
<link rel="stylesheet" href="{top}_static/code.css"></head>
<body><p><a href="{top}index.html">dyn_ros</a> / {name}</p>{code}</body></html>
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("doctree-read", _replace_downloads)
    app.connect("doctree-resolved", _link_codes)
    app.connect("build-finished", _write_pages)
    return {"parallel_read_safe": False}


def _replace_downloads(app: Sphinx, doctree: nodes.document) -> None:
    """Mark links to files, which MyST makes downloads, as links to pages of code."""
    for node in list(doctree.findall(addnodes.download_reference)):
        target = Path(app.env.docname).parent / node["reftarget"]
        path = _normal(target)
        if path.parts[:1] == (FOLDER,):
            link = nodes.reference("", "", *node.children, internal=True)
            link["code"] = path.as_posix()
            node.replace_self(link)


def _normal(path: Path) -> Path:
    """Return a path without .. in it."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return Path(*parts)


def _link_codes(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Fill in the addresses; an anchor is that of the definition the label names."""
    for link in doctree.findall(nodes.reference):
        if "code" in link:
            path = link["code"]
            line = definitions(Path(app.srcdir) / path).get(link.astext())
            anchor = f"#line-{line}" if line else ""
            link["refuri"] = app.builder.get_relative_uri(docname, path) + anchor
    if not docname.startswith(UNLINKED):
        _link_solvers(app, doctree, docname)


def _link_solvers(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link names of solvers in first columns of tables with their sections."""
    labels = app.env.domaindata["std"]["anonlabels"]
    for row in doctree.findall(nodes.row):
        for name in list(row.children[0].findall(nodes.literal)):
            label = "solver-" + name.astext().replace("_", "-")
            if label in labels and not isinstance(name.parent, nodes.reference):
                page, anchor = labels[label]
                uri = app.builder.get_relative_uri(docname, page) + "#" + anchor
                link = nodes.reference("", "", name.deepcopy(), refuri=uri)
                name.replace_self(link)


def definitions(path: Path) -> dict[str, int]:
    """Return the lines of the functions and classes of a file, by their names."""
    if path.suffix != ".py":
        return {}
    lines: dict[str, int] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            lines[node.name] = node.lineno
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
                    lines[f"{node.name}.{inner.name}"] = inner.lineno
    return lines


def _write_pages(app: Sphinx, error: Exception | None) -> None:
    """Write the pages of code, plain ones: navigation would take most of the time."""
    root, target = Path(app.srcdir) / FOLDER, Path(app.outdir) / FOLDER
    look = HtmlFormatter(linenos="inline", lineanchors="line", wrapcode=True)
    for path in sorted(root.rglob("*") if error is None else ()):
        if path.is_file():
            name = path.relative_to(root).as_posix()
            page = target / f"{name}.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            top = "../" * len(Path(FOLDER, name).parent.parts)
            code = highlight(path.read_text(encoding="utf-8"), _lexer(name), look)
            page.write_text(PAGE.format(name=name, top=top, code=code), "utf-8")


def _lexer(name: str) -> Lexer:
    """Return what colours a file."""
    try:
        return get_lexer_for_filename(name)
    except ClassNotFound:
        return TextLexer()
