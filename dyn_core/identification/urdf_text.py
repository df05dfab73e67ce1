"""Changes of a URDF's text that leave everything else in it as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

_ATTRIBUTE = re.compile(rb"(\s+)([^\s=]+)(\s*=\s*)(\"[^\"]*\"|'[^']*')")
_TAG = re.compile(rb"<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*/?>")
_ENCODING = re.compile(r"(\s*<\?xml[^>]*?encoding\s*=\s*[\"'])[A-Za-z0-9._-]+")


@dataclass(eq=False)
class XmlSpan:
    """An element, and its place in the text of UrdfText.

    Attributes:
        tag: Name of the element.
        attributes: Attributes, unescaped.
        start: Offset of its start tag [bytes].
        opened: Offset behind the start tag [bytes].
        end: Offset behind the element [bytes].
        parts: Elements directly in it.
    """

    tag: str
    attributes: dict[str, str]
    start: int
    opened: int
    end: int = 0
    parts: list[XmlSpan] = field(default_factory=list)

    def all(self, tag: str) -> list[XmlSpan]:
        """Return the elements directly in this one that have a tag."""
        return [part for part in self.parts if part.tag == tag]


class UrdfText:
    """The text of a URDF whose elements can be changed; str() returns it.

    Attributes:
        root: The element <robot>, as it was.

    Args:
        text: URDF that can be loaded; the new text is UTF-8, and declares it.
    """

    def __init__(self, text: str) -> None:
        text = _ENCODING.sub(r"\1utf-8", text, count=1)
        core = text.strip("\ufeff \t\r\n")  # what parse_xml reads
        self._around = text.partition(core)
        self._data = data = core.encode("utf-8")
        self._edits: dict[int, tuple[int, bytes]] = {}  # by start: end, replacement
        stack: list[XmlSpan] = []
        parser = expat.ParserCreate("utf-8")

        def start(tag: str, attributes: dict[str, str]) -> None:
            first = parser.CurrentByteIndex
            match = _TAG.match(data, first)
            assert match is not None
            span = XmlSpan(tag, attributes, first, match.end())
            if stack:
                stack[-1].parts.append(span)
            else:
                self.root = span
            stack.append(span)

        def end(_: str) -> None:
            span = stack.pop()
            empty = data[span.opened - 2 : span.opened] == b"/>"
            span.end = span.opened if empty else data.index(
                b">", parser.CurrentByteIndex
            ) + 1  # fmt: skip

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.Parse(data, True)

    def set(self, span: XmlSpan, name: str, value: str) -> None:
        """Set an attribute of an element; a new one is added behind the others.

        Args:
            span: Element, which is not to be removed.
            name: Name of the attribute.
            value: New value, without < & or quotes.
        """
        _, tag = self._edits.get(span.start, (0, self._data[span.start : span.opened]))
        for match in _ATTRIBUTE.finditer(tag):
            if match[2] == name.encode():
                a, b = match.span(4)
                tag = tag[: a + 1] + value.encode() + tag[b - 1 :]
                break
        else:
            head = tag.rstrip(b"/>").rstrip()
            tag = head + f' {name}="{value}"'.encode() + tag[len(head) :]
        self._edits[span.start] = span.opened, tag

    def insert(self, parent: XmlSpan, lines: list[str], first: bool) -> None:
        """Insert a new element into another one, indented like its parts.

        Args:
            parent: Element that contains it; of one without an end tag (<link/>) no
                other change is possible.
            lines: Lines of the new element.
            first: Whether it becomes the first part, or the last.
        """
        data = self._data
        before = data[: (parent.parts or [parent])[0].start].rpartition(b"\n")[2]
        indent = before if not before.strip() else b"    "
        if not parent.parts:
            indent += b"  "
        new = b"".join(b"\n" + indent + line.encode() for line in lines)
        if parent.end == parent.opened:  # <link name="x"/>
            tag = data[parent.start : parent.opened].rstrip(b"/>").rstrip()
            close = b"\n" + indent[:-2] + f"</{parent.tag}>".encode()
            self._edits[parent.start] = parent.opened, tag + b">" + new + close
            return
        place = parent.opened if first or not parent.parts else parent.parts[-1].end
        end, before = self._edits.get(place, (place, b""))
        self._edits[place] = end, before + new

    def remove(self, span: XmlSpan) -> None:
        """Remove an element and the white space before it."""
        start = len(self._data[: span.start].rstrip())
        self._edits[start] = span.end, self._edits.get(start, (0, b""))[1]

    def __str__(self) -> str:
        data = self._data
        for start, (end, new) in sorted(self._edits.items(), reverse=True):
            data = data[:start] + new + data[end:]
        return self._around[0] + data.decode("utf-8") + self._around[2]
