"""The type of findings of `dyn doctor`: severity, meaning and remedy.

The checks report places and numbers; the texts are in the catalogue, once.
"""

from __future__ import annotations

from typing import NamedTuple

ERROR, WARNING, HINT = "error", "warning", "hint"
SEVERITIES = (ERROR, WARNING, HINT)  # in the order of a report


class FindingKind(NamedTuple):
    """A kind of finding.

    Attributes:
        code: Its name, for programs.
        severity: "error": the robot cannot be used, or is physically impossible;
            "warning": results are probably wrong; "hint": it works, and could be
            better.
        title: The fault, in a few words.
        meaning: Its consequences.
        remedy: How to correct it.
    """

    code: str
    severity: str
    title: str
    meaning: str
    remedy: str
