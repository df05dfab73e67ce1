"""Foreign text in generated files: one function for each language.

Names of robots, links and joints, titles and paths are written by strangers. Where a
file of a language takes one in, it comes through the function here, so that it can end
no comment, string or line of that file. JSON needs none: `json.dumps` quotes all text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from xml.etree import ElementTree

import yaml

# Categories of characters that nobody sees: control, format, surrogates, line ends.
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)  # needs no quotes in YAML
_FORMULAS = str.maketrans({"·": ".", "²": "^2", "³": "^3", "×": "x", "°": "deg"})
_RESERVED = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def _unseen(x: str) -> bool:
    return not x.isprintable() and unicodedata.category(x) in _UNSEEN


def mended_name(name: str) -> str:
    """Return a name with an underscore for each control or invisible character."""
    if name.isprintable():
        return name
    return "".join("_" if _unseen(x) else x for x in name)


def _visible(text: str, kept: str = "") -> str:
    """Return text with escapes such as \\n for characters that nobody sees."""
    if text.isprintable():
        return text
    return "".join(ascii(x)[1:-1] if _unseen(x) and x not in kept else x for x in text)


def c_comment(text: str) -> str:
    """Return text as a comment of C in ASCII; several lines become a block."""
    clean = _visible(text.translate(_FORMULAS), "\n")
    clean = clean.encode("ascii", "backslashreplace").decode()
    for mark in ("*/", "/*", "??"):  # the last begins trigraphs
        while mark in clean:
            clean = clean.replace(mark, f"{mark[0]} {mark[1]}")
    lines = clean.split("\n")
    if len(lines) == 1:
        return f"/* {clean} */"
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])


def c_string(text: str) -> str:
    """Return text as a string of C: its UTF-8, in ASCII by octal escapes."""
    doubtful = '"\\?' if "??" in text else '"\\'
    return '"' + "".join(
        chr(x) if 32 <= x < 127 and chr(x) not in doubtful else f"\\{x:03o}"
        for x in text.encode("utf-8", "surrogatepass")
    ) + '"'  # fmt: skip


def pkg_config_field(text: str) -> str:
    """Return text as a field of a .pc file: one line without its special characters."""
    return re.sub(r"[^\w .,:;()'+=/-]", "_", text, flags=re.ASCII)


def markdown_code(text: str) -> str:
    """Return text as code within a line of Markdown."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{_visible(text)}{space}{fence}"


def html_text(text: str) -> str:
    """Return text as HTML, for elements and for attributes in quotes."""
    return html.escape(_visible(text, "\n\t"), quote=True)


def xml_text(element: ElementTree.Element) -> str:
    """Return an element as XML; no attribute has a character that XML lacks."""
    for part in element.iter():
        for key, value in part.attrib.items():
            part.set(key, mended_name(value))
    return ElementTree.tostring(element, encoding="unicode")


def yaml_text(text: str) -> str:
    """Return text as a key or value of YAML, in quotes where it needs some."""
    if _PLAIN.match(text) and text.lower() not in _RESERVED:
        return text
    return yaml.safe_dump(text, default_style='"', width=float("inf")).rstrip("\n")


def yaml_comment(lines: Iterable[str], indent: str = "") -> str:
    """Return lines as comments of YAML, one each."""
    return "".join(f"{indent}# {_visible(line)}\n" for line in lines)


def plot_text(text: str) -> str:
    """Return text as matplotlib draws it: no formula, and listed by legends."""
    clean = _visible(text, "\n").replace("$", r"\$")
    return f" {clean}" if clean.startswith("_") else clean  # a legend skips _names
