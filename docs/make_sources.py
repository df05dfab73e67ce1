"""Make docs/sources/*.md: where each equation of the sources lives in the code.

    python docs/make_sources.py

The places are read from the `Source:` lines of docstrings in the packages and examples.
"""

import ast
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
FOLDERS = ("dyn_core", "dyn_plugins", "ros_nodes", "examples")
_ID = re.compile(r"\b([A-Z]+5?)-(S?\d+(?:\.\d+)?)\b")


def places():
    """Return by id, such as SV-4.2, the pairs (file, name) that name it."""
    by_id = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "Source:" not in text:
                continue  # most files: nothing to parse
            for name, node in _documented(ast.parse(text)):
                doc = ast.get_docstring(node) or ""
                for part in re.findall(r"Source:(.*?)(?:\n\n|\Z)", doc, re.DOTALL):
                    for prefix, number in _ID.findall(part):
                        file = path.relative_to(ROOT).as_posix()
                        by_id.setdefault(f"{prefix}-{number}", set()).add((file, name))
    return {key: sorted(value) for key, value in by_id.items()}


def _documented(tree):
    """Return the module, its classes and functions, and methods, with their names."""
    yield "", tree
    kinds = (ast.FunctionDef, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, kinds):
            yield node.name, node
            for inner in node.body:
                if isinstance(inner, kinds):
                    yield f"{node.name}.{inner.name}", inner


def sources():
    """Return the table of what the sources state."""
    return yaml.safe_load((ROOT / "docs" / "sources.yaml").read_text(encoding="utf-8"))


def missing():
    """Return the ids that no Source: line names."""
    known = places()
    return [
        f"{source['prefix']}-{number}"
        for source in sources().values()
        for number in source["items"]
        if f"{source['prefix']}-{number}" not in known
    ]


def page(source, known):
    """Return the text of a source's page."""
    lines = [
        f"# {source['title']}",
        "",
        "Made by `docs/make_sources.py` from the `Source:` lines of docstrings.",
        "",
        "| id | equations | what | where |",
        "|---|---|---|---|",
    ]
    for number, (equations, what) in source["items"].items():
        key = f"{source['prefix']}-{number}"
        where = [
            f"[{name or Path(file).stem}](../../{file})"
            for file, name in known.get(key, ())
        ]
        shown = ", ".join(where) or "-"
        lines.append(f"| {key} | {equations} | {what} | {shown} |")
    return "\n".join(lines) + "\n"


def pages():
    """Return by file the text of every page."""
    known = places()
    return {
        ROOT / "docs" / "sources" / f"{name}.md": page(source, known)
        for name, source in sources().items()
    }


if __name__ == "__main__":
    for target, text in pages().items():
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(target.relative_to(ROOT))
    for key in missing():
        print(f"no Source: line names {key}")
