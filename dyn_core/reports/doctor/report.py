"""The report of `dyn doctor`: ranked findings, as a value, as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dyn_core.reports.doctor.catalogue import CATALOGUE
from dyn_core.reports.doctor.kinds import (
    ERROR,
    HINT,
    SEVERITIES,
    WARNING,
    FindingKind,
)
from dyn_core.validation.quoting import html_text

WIDTH = 88  # columns of the text
SHOWN = 8  # maximum places of a finding in the text; JSON and HTML have all


class FindingPlace(NamedTuple):
    """A place of a finding, with its numbers.

    Attributes:
        owner: Such as "joint 'elbow'"; empty for the whole robot.
        fact: Numbers or names found there.
    """

    owner: str
    fact: str


class Met(NamedTuple):
    """The result of a check.

    Attributes:
        code: Code in the catalogue.
        owner, fact: Place and its numbers, as in FindingPlace.
        lines: Lines to paste into the sidecar; empty if there are none.
    """

    code: str
    owner: str
    fact: str
    lines: str = ""


@dataclass(frozen=True)
class RobotFinding:
    """A finding about a robot.

    Attributes:
        kind: Fault, meaning and remedy.
        places: Places of the finding.
        lines: Lines to paste into the sidecar; empty if there are none.
    """

    kind: FindingKind
    places: tuple[FindingPlace, ...]
    lines: str = ""

    @property
    def code(self) -> str:
        """Code of its kind."""
        return self.kind.code

    @property
    def severity(self) -> str:
        """Severity: "error", "warning" or "hint"."""
        return self.kind.severity


@dataclass(frozen=True)
class RobotReport:
    """All findings about a robot, errors first.

    Attributes:
        robot: Name of the robot.
        source: Source of the robot, as lines of text.
        sidecar: Name of the sidecar for lines of findings.
        findings: Findings, ranked: errors, warnings, hints.
        figures: Measured values, as name and text.
        notes: Omitted checks, and why.
    """

    robot: str
    source: tuple[str, ...]
    sidecar: str
    findings: tuple[RobotFinding, ...]
    figures: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, severity: str) -> tuple[RobotFinding, ...]:
        """Return the findings of a severity: "error", "warning" or "hint"."""
        return tuple(x for x in self.findings if x.severity == severity)

    @property
    def errors(self) -> tuple[RobotFinding, ...]:
        """Findings that make the robot unusable."""
        return self.of(ERROR)

    @property
    def warnings(self) -> tuple[RobotFinding, ...]:
        """Findings that make results probably wrong."""
        return self.of(WARNING)

    @property
    def hints(self) -> tuple[RobotFinding, ...]:
        """Findings about properties that could be better."""
        return self.of(HINT)

    @property
    def summary(self) -> str:
        """Numbers of findings of each severity, in words."""
        counts = [len(self.of(severity)) for severity in SEVERITIES]
        parts = [
            f"{count} {severity}{'s' * (count != 1)}"
            for count, severity in zip(counts, SEVERITIES, strict=True)
        ]
        return f"{self.robot}: {', '.join(parts)}"

    def as_dict(self) -> dict[str, Any]:
        """Return the report as lists and dictionaries, for JSON.

        Keys are robot, source, counts, findings, figures and notes.
        """
        return {
            "robot": self.robot,
            "source": list(self.source),
            "counts": {f"{x}s": len(self.of(x)) for x in SEVERITIES},
            "findings": [
                {
                    **finding.kind._asdict(),
                    "places": [place._asdict() for place in finding.places],
                    "sidecar": finding.lines,
                }
                for finding in self.findings
            ],
            "figures": dict(self.figures),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [self.summary, *self.source]
        for finding in self.findings:
            lines += ["", *_finding_lines(finding, self.sidecar)]
        if self.figures:
            width = max(len(name) for name, _ in self.figures)
            lines += ["", *(f"{name.ljust(width)}  {x}" for name, x in self.figures)]
        lines += ["", *(f"note: {note}" for note in self.notes)] if self.notes else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the text in a <pre> element, for notebooks."""
        return f"<pre>{html_text(str(self))}</pre>"


def ranked(met: Iterable[Met]) -> tuple[RobotFinding, ...]:
    """Return one finding for each code, in the order of the catalogue.

    Equal places are listed once; codes outside the catalogue are dropped.
    """
    places: dict[str, list[FindingPlace]] = {}
    lines: dict[str, list[str]] = {}
    for code, owner, fact, added in met:
        place = FindingPlace(owner, fact)
        if place not in places.setdefault(code, []):
            places[code].append(place)
        lines.setdefault(code, []).extend([added] if added else [])
    return tuple(
        RobotFinding(kind, tuple(places[code]), "\n".join(lines[code]))
        for code, kind in CATALOGUE.items()
        if code in places
    )


def _finding_lines(finding: RobotFinding, sidecar: str) -> list[str]:
    """Return a finding as lines of text.

    `sidecar`: name of the file for its lines.
    """
    kind = finding.kind
    lines = [f"{kind.severity.upper()}  {kind.title}  [{kind.code}]"]
    for place in finding.places[:SHOWN]:
        lines += _wrapped(": ".join(filter(None, place)), "  - ")
    more = len(finding.places) - SHOWN
    lines += [f"  - and {more} more (--json has all)"] if more > 0 else []
    lines += _wrapped(f"What it means: {kind.meaning}", "  ")
    lines += _wrapped(f"What to do: {kind.remedy}", "  ")
    if finding.lines:
        lines.append(
            f"  Lines for {sidecar}, beside the robot's file (each section once):"
        )
        lines.append(textwrap.indent(finding.lines, "      "))
    return lines


def _wrapped(text: str, start: str) -> list[str]:
    """Return text in lines of at most WIDTH columns; the first begins with `start`."""
    later = " " * (len(start) + 2 * start.isspace())
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=later)
