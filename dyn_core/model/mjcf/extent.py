"""Bounds of an MJCF: size, depth and number of elements, before MuJoCo reads it.

MuJoCo has no bounds: <replicate> makes as many copies as it says. Included files are
not followed, and XML that expat cannot read is passed on to MuJoCo; both are bounded by
the limits of the process that reads the file.
"""

from __future__ import annotations

import math
from xml.parsers import expat

from dyn_core.errors import ModelError

SIZE = 100_000_000  # bytes
DEPTH = 500  # elements in elements
ELEMENTS = 100_000  # with all their copies
_COPIES = ("replicate", "composite", "flexcomp")  # elements with a count of copies


class _TooLarge(Exception):
    """A bound is exceeded; the message names it."""


class _Count:
    """Counts of open elements and of all elements, updated while a file is parsed."""

    def __init__(self) -> None:
        self.copies = [1]
        self.elements = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Count an element with its copies.

        Raise _TooLarge beyond DEPTH or ELEMENTS.
        """
        if len(self.copies) > DEPTH:
            raise _TooLarge(f"elements nest more than {DEPTH} deep")
        times = self.copies[-1]
        if name in _COPIES:
            times *= _copies(attributes.get("count", ""))
        self.elements += times
        self.copies.append(times)
        if self.elements > ELEMENTS:
            raise _TooLarge(f"it has more than {ELEMENTS} elements, copies counted")

    def end(self, name: str) -> None:
        """Count the end of an element."""
        self.copies.pop()


def _copies(count: str) -> int:
    """Return the product of the integers in a `count` attribute.

    1 if it is not valid.
    """
    try:
        return max(1, math.prod(map(int, count.split())))
    except ValueError:
        return 1


def check_extent(content: bytes, where: str) -> None:
    """Check that an MJCF does not exceed SIZE, DEPTH and ELEMENTS.

    Args:
        content: The file.
        where: Name of the file for the error message.

    Raises:
        ModelError: A bound is exceeded.
    """
    try:
        if len(content) > SIZE:
            raise _TooLarge(f"it is larger than {SIZE} bytes")
        count, parser = _Count(), expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = count.start, count.end
        parser.Parse(content.lstrip(), True)
    except expat.ExpatError:
        return  # for MuJoCo to read or to refuse
    except (LookupError, ValueError):  # an encoding, which is checked elsewhere
        return
    except _TooLarge as error:
        raise ModelError(f"{where}: {error}; valid: less") from error
