"""Markdown of docstrings and tables."""

import inspect
import re
import textwrap

SECTIONS = (
    "Args", "Returns", "Yields", "Raises", "Attributes", "Inputs and outputs", "Source",
)  # fmt: skip
_SPECIAL = re.compile(r"([\\*_<>\[\]|#$~])")
_ENTRY = re.compile(r"^(\*{0,2}\w[\w, .*]*)(?: \([^)]*\))?: ?(.*)$")


def escaped(text):
    """Return sentences of a docstring so that Markdown shows them as they are."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(
        part if part.startswith("`") else _SPECIAL.sub(r"\\\1", part) for part in parts
    )


def table(head, rows):
    """Return a table; cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def code(text):
    """Return short code that stands in a line or a cell."""
    return "`" + " ".join(str(text).split()).replace("|", "\\|") + "`" if text else ""


def sections(doc):
    """Return the body of a docstring, and its sections by their names."""
    parts = {"": []}
    name = ""
    for line in inspect.cleandoc(doc or "").split("\n"):
        start = re.match(rf"({'|'.join(SECTIONS)}):(?: (.*))?$", line)
        if start:
            name = start[1]
            parts[name] = [start[2]] if start[2] else []
        elif name and line and not line.startswith(" ") and not _is_tail(name):
            name = ""
            parts[""] += ["", line]
        else:
            parts[name].append(line)
    return {key: "\n".join(lines).strip("\n") for key, lines in parts.items()}


def _is_tail(name):
    """Return whether the lines of a section are not indented."""
    return name == "Source"


def body(text):
    """Return paragraphs as Markdown: what is indented is shown as it stands."""
    shown = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        first = paragraph.split("\n")[0]
        if not paragraph.strip():
            continue
        if first.startswith(" "):
            shown.append(f"```text\n{textwrap.dedent(paragraph)}\n```")
        elif re.match(r"(-|\d+\.|\(\w\)) ", first):
            shown.append(f"```text\n{paragraph}\n```")
        else:
            sentences, _, rest = paragraph.partition("\n    ")
            shown.append(escaped(sentences))
            if rest:
                inner = textwrap.dedent("    " + rest)
                shown.append(f"```text\n{inner}\n```")
    return "\n\n".join(shown)


def entries(text):
    """Return the pairs (name, meaning) of a section such as Args."""
    pairs = []
    for line in textwrap.dedent(text).split("\n"):
        start = _ENTRY.match(line)
        if start and not line.startswith(" "):
            pairs.append([start[1], start[2]])
        elif pairs:
            pairs[-1][1] += " " + line.strip()
        elif line.strip():
            pairs.append(["", line.strip()])
    return [(name, meaning.strip()) for name, meaning in pairs]


def docstring(doc):
    """Return a docstring as Markdown, sections as tables."""
    parts = sections(doc)
    shown = [body(parts.pop(""))]
    for name, text in parts.items():
        if name in ("Args", "Attributes", "Raises"):
            title = {"Args": "argument", "Attributes": "attribute"}.get(name, "error")
            rows = [(code(who), escaped(what)) for who, what in entries(text)]
            shown.append(table([title, "meaning"], rows))
        elif name == "Source":
            shown.append(f"*Source:* {escaped(text)}")
        else:
            shown.append(f"*{name}:* {escaped(text)}")
    return "\n\n".join(part for part in shown if part)
