"""Quoting of untrusted text in generated files: one function for each language.

Names of robots, links and joints, titles and paths come from untrusted files. A
generator passes them through the function of its language, so that they cannot end a
comment, string or line of the generated file. JSON has no function here: `json.dumps`
quotes all text. Invisible characters are controls, formats, surrogates, and separators
of lines or paragraphs; blanks are visible.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from xml.etree import ElementTree

import yaml

# Unicode categories of invisible characters: control, format, surrogate, separators.
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)  # needs no quotes in YAML
_FORMULAS = str.maketrans({"·": ".", "²": "^2", "³": "^3", "×": "x", "°": "deg"})
# An absolute path of Unix or Windows, also as a file: URL, and its file name.
_IN_NAME = r"[^\s/\\'\"<>|:;,()]"
_PATH = re.compile(
    rf"(?<![\w.~:/\\])((?:file://|~|[A-Za-z]:)?[/\\])((?:{_IN_NAME}+[/\\])+)({_IN_NAME}+)"
)
_ROOTS = ("bin", "data", "etc", "home", "media", "mnt", "opt", "private", "root", "srv",
          "tmp", "Users", "usr", "var", "Volumes", "work", "workspace")  # fmt: skip
_RESERVED = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def _unseen(x: str) -> bool:
    """Return whether a character is invisible: not printable, category in _UNSEEN."""
    return not x.isprintable() and unicodedata.category(x) in _UNSEEN


def mended_name(name: str) -> str:
    """Return a name with an underscore for each invisible character."""
    if name.isprintable():
        return name
    return "".join("_" if _unseen(x) else x for x in name)


def _visible(text: str, kept: str = "") -> str:
    """Return text with Python escapes for invisible characters, except for `kept`."""
    if text.isprintable():
        return text
    return "".join(ascii(x)[1:-1] if _unseen(x) and x not in kept else x for x in text)


def c_comment(text: str) -> str:
    """Return text as a C comment /* TEXT */ in ASCII, without a line end.

    Of several lines each gets its own, which begins with *. Symbols of formulas are
    replaced (° by deg); other characters outside ASCII and invisible ones become Python
    escapes. The marks /*, */ and ?? (of trigraphs) are split by a space.
    """
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
    """Return text as a C string literal of printable ASCII, in double quotes.

    Other bytes of its UTF-8, double quotes, backslashes and, if ?? is in the text (a
    trigraph), question marks become octal escapes.
    """
    doubtful = '"\\?' if "??" in text else '"\\'
    return '"' + "".join(
        chr(x) if 32 <= x < 127 and chr(x) not in doubtful else f"\\{x:03o}"
        for x in text.encode("utf-8", "surrogatepass")
    ) + '"'  # fmt: skip


def pkg_config_field(text: str) -> str:
    """Return text for a field of a .pc file; unusual characters become underscores."""
    return re.sub(r"[^\w .,:;()'+=/-]", "_", text, flags=re.ASCII)


def markdown_code(text: str) -> str:
    """Return text as an inline code span of Markdown, whatever backticks it has.

    Invisible characters become Python escapes. A | stays, and would end the cell of a
    table. An empty text is no code span.
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{_visible(text)}{space}{fence}"


def html_text(text: str) -> str:
    """Return text escaped for HTML elements and quoted attributes.

    Invisible characters except line feeds and tabs become Python escapes.
    """
    return html.escape(_visible(text, "\n\t"), quote=True)


def page_text(text: str) -> str:
    """Return html_text of a text for pages that are sent around: without folders.

    Of an absolute path only the file's name is left, as its folders name the user. A
    path counts as one if it begins with ~, file:// or a drive such as C:, its name has
    an extension, or its first folder is a usual one of a file system; topics, such as
    /arm/joint_states, remain. So does /NAME, without a folder.
    """

    def shortened(match: re.Match[str]) -> str:
        start, folders, name = match.groups()
        known = folders.split(start[-1])[0] in _ROOTS or start not in ("/", "\\")
        return name if known or re.search(r"\w\.\w+$", name) else match[0]

    return html_text(_PATH.sub(shortened, text))


def xml_text(element: ElementTree.Element) -> str:
    """Return XML text; invisible characters of attributes become _, in place."""
    for part in element.iter():
        for key, value in part.attrib.items():
            part.set(key, mended_name(value))
    return ElementTree.tostring(element, encoding="unicode")


def yaml_text(text: str) -> str:
    """Return text as a YAML string, in double quotes unless it is an identifier."""
    if _PLAIN.match(text) and text.lower() not in _RESERVED:
        return text
    return yaml.safe_dump(text, default_style='"', width=float("inf")).rstrip("\n")


def yaml_comment(lines: Iterable[str], indent: str = "") -> str:
    """Return lines as YAML comments, each indented by `indent` and with a line end.

    Invisible characters, line ends included, become escapes.
    """
    return "".join(f"{indent}# {_visible(line)}\n" for line in lines)


def plot_text(text: str) -> str:
    """Return text that matplotlib prints literally, visible in legends."""
    clean = _visible(text, "\n").replace("$", r"\$")
    return f" {clean}" if clean.startswith("_") else clean  # a legend skips _names
