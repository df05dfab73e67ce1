"""Every kind of finding of `dyn doctor`: how severe, what it means, how to mend it.

The checks say where it is and which numbers were met; the words are here, once.
"""

from __future__ import annotations

from typing import NamedTuple

ERROR, WARNING, HINT = "error", "warning", "hint"
SEVERITIES = (ERROR, WARNING, HINT)  # the order of a report


class FindingKind(NamedTuple):
    """A kind of finding.

    Attributes:
        code: Its name, for programs.
        severity: error: the robot cannot be used, or is no body of this world;
            warning: results are probably wrong; hint: it works, and could be better.
        title: What is the matter, in a few words.
        meaning: What follows from it.
        remedy: How to mend it.
    """

    code: str
    severity: str
    title: str
    meaning: str
    remedy: str
