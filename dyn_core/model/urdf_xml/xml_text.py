"""Reader of the XML of a URDF: any declared encoding, no entities, no other files."""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import IO
from xml.etree import ElementTree
from xml.parsers import expat

from dyn_core.errors import ModelError, why_unread
from dyn_core.model.garbage import seldom_collected

Source = str | bytes | os.PathLike[str] | IO[str] | IO[bytes]
_DECLARED = re.compile(rb"\s*<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def read_source(source: Source) -> tuple[str, Path | None]:
    """Return the text of a source, and its path as given, or None without a path.

    A str is text if it contains "<" or is blank, else a path. Errors of an open file
    pass through.
    """
    if isinstance(source, bytes):
        return decoded(source), None
    if isinstance(source, str) and (not source.strip() or "<" in source):
        return source, None
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "read"):
            raise ModelError(
                f"a URDF is a path, XML or an open file, not {type(source).__name__}"
            )
        content = source.read()
        return content if isinstance(content, str) else decoded(content), None
    path = Path(os.fspath(source))
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = why_unread(error) + _named_robot(path)
        raise ModelError(f"cannot read the URDF file {path}: {reason}") from error
    try:
        return decoded(content), path
    except ModelError as error:
        raise ModelError(f"cannot read the URDF file {path}: {error}") from error


def _named_robot(path: Path) -> str:
    """Return a clause that suggests dyn.load, for an error about a missing file.

    It is empty if the path has a folder or an extension and so is no robot's name.
    """
    if path.suffix or str(path) != path.name:
        return ""
    return f"; dyn.load({str(path)!r}) takes names of robots"


def declared_encoding(content: bytes) -> str:
    """Return the encoding in an XML declaration; "utf-8" without one."""
    declared = _DECLARED.match(content)
    return declared[1].decode("ascii") if declared else "utf-8"


def escapes(encoding: str) -> bool:
    """Return whether an encoding is a string escape of Python; decoding by it warns."""
    try:
        return "escape" in codecs.lookup(encoding).name
    except LookupError:
        return False


def decoded(content: bytes) -> str:
    """Return the text of bytes, by byte order mark or declared encoding, else UTF-8.

    A byte order mark has priority over a declaration, and is removed.
    """
    encoding, start = declared_encoding(content), 0
    for mark, marked in _MARKS:
        if content.startswith(mark):
            encoding, start = marked, len(mark)
    try:
        if escapes(encoding):
            raise LookupError
        return content[start:].decode(encoding)
    except LookupError as error:
        raise ModelError(
            f"the URDF declares the encoding '{encoding}', which is not known; valid:"
            " UTF-8 and the text encodings of Python"
        ) from error
    except UnicodeError as error:
        reason = "its bytes are not valid there"
        if isinstance(error, UnicodeDecodeError):
            reason = f"byte {error.start + 1} is not valid there ({error.reason})"
        raise ModelError(
            f"the URDF is not in the encoding {encoding}, which it declares or has by"
            f" default: {reason}"
        ) from error


def parse_xml(text: str) -> ElementTree.Element:
    """Return the root element of XML, without comments and text of elements.

    Names keep their prefixes, declared or not. A document type is refused.
    """
    if not text.strip():
        raise ModelError("the URDF is empty; a <robot> element is needed")
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.StartDoctypeDeclHandler = _refuse_entities
    try:
        with seldom_collected():
            parser.Parse(text.lstrip("\ufeff \t\r\n").rstrip().encode("utf-8"), True)
    except UnicodeEncodeError as error:
        what = f"character {error.start + 1} is none that UTF-8 can have"
        raise ModelError(f"the URDF is malformed XML: {what}") from error
    except expat.ExpatError as error:
        raise ModelError(f"the URDF is malformed XML: {error}") from error
    return builder.close()


def _refuse_entities(*_: object) -> None:
    """Raise ModelError: a document type could expand text or read files.

    It is expat's StartDoctypeDeclHandler.
    """
    raise ModelError("the URDF declares XML entities (DOCTYPE); remove them")
