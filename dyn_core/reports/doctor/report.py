"""The report of `dyn doctor`: ranked findings, as a value, text, JSON and HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dyn_core.plots.pages import document, table
from dyn_core.reports.doctor.catalogue import (
    CATALOGUE,
    ERROR,
    HINT,
    SEVERITIES,
    WARNING,
    FindingKind,
)
from dyn_core.validation.quoting import html_text, page_text

# Vermilion, orange and blue of Okabe and Ito: distinct for all colour vision.
# The sign's shape repeats the information of its colour.
_SIGNS = {ERROR: "✖", WARNING: "▲", HINT: "●"}
_STYLE = """
:root { --error: #c04a00; --warning: #a87400; --hint: #0072b2; --good: #007a58;
  --error-wash: #fdf0e8; --warning-wash: #fdf6e3; --hint-wash: #eef6fc;
  --page: #f5f6f8; --card: #ffffff; --ink: #1c2330; --soft: #5b6575; --line: #dde1e8; }
@media (prefers-color-scheme: dark) { :root { --error: #ff8a4c; --warning: #f0b429;
  --hint: #6cb8ee; --good: #3ecf9f; --error-wash: #2e211a; --warning-wash: #2b2617;
  --hint-wash: #18242f; --page: #12161c; --card: #1b212a; --ink: #e6eaf0;
  --soft: #9aa5b5; --line: #2f3845; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; margin: 0 0 .2rem; letter-spacing: -.01em; }
h2 { font-size: 1rem; margin: 2.2rem 0 .7rem; color: var(--soft);
  text-transform: uppercase; letter-spacing: .07em; }
.source { color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; margin: 0; }
.counts { display: flex; gap: .8rem; flex-wrap: wrap; margin: 1.4rem 0 0; }
.count { flex: 1 1 9rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .7rem; padding: .8rem 1rem; border-top: .3rem solid var(--tone); }
.count b { display: block; font-size: 1.9rem; line-height: 1.15; color: var(--tone); }
.count.none { --tone: var(--line); } .count.none b { color: var(--soft); }
.error { --tone: var(--error); --wash: var(--error-wash); }
.warning { --tone: var(--warning); --wash: var(--warning-wash); }
.hint { --tone: var(--hint); --wash: var(--hint-wash); }
details { background: var(--card); border: 1px solid var(--line); margin: .55rem 0;
  border-left: .35rem solid var(--tone); border-radius: .5rem; overflow: hidden; }
summary { cursor: pointer; padding: .65rem .9rem; display: flex; gap: .7rem;
  align-items: baseline; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary:hover, details[open] > summary { background: var(--wash); }
summary::before { content: "▸"; color: var(--soft); transition: transform .15s; }
details[open] > summary::before { transform: rotate(90deg); }
summary .sign { color: var(--tone); }
summary .title { font-weight: 600; }
summary .where { color: var(--soft); font-size: .88rem; margin-left: auto;
  text-align: right; overflow-wrap: anywhere; }
.body { padding: .3rem 1rem 1rem 3.7rem; }
.measured { background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; padding: .3rem 1rem; }
.measured tr:last-child td { border: 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: .6rem 0; }
td { padding: .32rem .8rem .32rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
td:first-child { width: 32%; font-weight: 600; }
td[colspan] { width: auto; font-weight: 400; }
dl { margin: .8rem 0 0; display: grid; grid-template-columns: 8.5rem 1fr; gap: .35rem; }
dt { color: var(--soft); font-size: .9rem; } dd { margin: 0; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
.code { color: var(--soft); font-size: .8rem; }
pre { background: var(--page); border: 1px solid var(--line); border-radius: .4rem;
  padding: .7rem .9rem; overflow: auto; max-height: 22rem; font-size: .85rem; }
.paste { position: relative; }
.paste button { position: absolute; top: .5rem; right: .5rem; }
button { font: inherit; font-size: .8rem; border: 1px solid var(--line);
  border-radius: .35rem; background: var(--card); color: var(--ink);
  padding: .15rem .6rem; cursor: pointer; }
.good { color: var(--good); font-weight: 600; }
@media (max-width: 40rem) { summary { flex-wrap: wrap; } summary .where { margin: 0; }
  dl { grid-template-columns: 1fr; } .body { padding-left: 1rem; } }
@media print { .all { display: none; } }
"""
_SCRIPT = """
const all = document.querySelector("button.all");
const findings = [...document.querySelectorAll("details")];
const show = (open) => { for (const x of findings) x.open = open; };
const label = () => {
  all.textContent = findings.every((x) => x.open) ? "fold all" : "show all"; };
if (all) {
  all.onclick = () => show(all.textContent == "show all");
  for (const x of findings) x.ontoggle = label;
  label();
  onbeforeprint = () => show(true);
}
for (const button of document.querySelectorAll(".paste button")) {
  button.onclick = async () => {
    const lines = button.nextElementSibling.textContent;
    try { await navigator.clipboard.writeText(lines); button.textContent = "copied"; }
    catch { const range = document.createRange();
      range.selectNodeContents(button.nextElementSibling);
      getSelection().removeAllRanges(); getSelection().addRange(range); }
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };
}
"""


def page(report: RobotReport) -> str:
    """Return a report as one self-contained HTML page.

    Folders of absolute paths are left out, except in lines to paste.
    """
    body = [
        f"<h1>{page_text(report.robot)}</h1>",
        *(f'<p class="source">{page_text(line)}</p>' for line in report.source),
        f'<div class="counts">{"".join(_count(report, x) for x in SEVERITIES)}</div>',
    ]
    if not report.findings:
        body.append('<p class="good">✔ Nothing is doubtful about this robot.</p>')
    else:
        body.append('<p><button type="button" class="all">show all</button></p>')
    for severity in SEVERITIES:
        findings = report.of(severity)
        if findings:
            body.append(f"<h2>{severity.capitalize()}s</h2>")
            body += [_finding(x, report.sidecar) for x in findings]
    if report.figures:
        figures = table((), map(_cells, report.figures))
        body.append(f'<h2>Measured</h2><div class="measured">{figures}</div>')
    if report.notes:
        notes = "".join(f"<li>{page_text(note)}</li>" for note in report.notes)
        body.append(f"<h2>Not looked at</h2><ul>{notes}</ul>")
    main = f"<main>{''.join(body)}</main><script>{_SCRIPT}</script>"
    return document(report.summary, main, _STYLE)


def _cells(pair: tuple[str, str]) -> tuple[str, ...]:
    """Return (owner, fact) of a pair, or (fact,) for the whole robot."""
    return pair if pair[0] else pair[1:]


def _count(report: RobotReport, severity: str) -> str:
    """Return the card with the number of findings of a severity, as HTML."""
    count = len(report.of(severity))
    kind = severity if count else "none"
    plural = "" if count == 1 else "s"
    sign = _SIGNS[severity]
    return f'<div class="count {kind}"><b>{count}</b>{sign} {severity}{plural}</div>'


def _finding(finding: RobotFinding, sidecar: str) -> str:
    """Return a finding as HTML that opens by a click; its lines are for `sidecar`."""
    kind = finding.kind
    count = len(finding.places)
    first = finding.places[0].owner if count == 1 else f"{count} places"
    lines = ""
    if finding.lines:
        lines = (
            f"<dt>Lines for</dt><dd><code>{html_text(sidecar)}</code>, beside the"
            ' robot\'s file (each section once)<div class="paste">'
            '<button type="button">copy</button>'
            f"<pre>{html_text(finding.lines)}</pre></div></dd>"
        )
    opened = " open" if kind.severity == ERROR else ""
    return (
        f'<details class="{kind.severity}"{opened}><summary>'
        f'<span class="sign">{_SIGNS[kind.severity]}</span>'
        f'<span class="title">{html_text(kind.title)}</span>'
        f'<span class="where">{page_text(first)}</span></summary><div class="body">'
        f"{table((), map(_cells, finding.places))}<dl>"
        f"<dt>What it means</dt><dd>{html_text(kind.meaning)}</dd>"
        f"<dt>What to do</dt><dd>{html_text(kind.remedy)}</dd>{lines}</dl>"
        f'<p class="code">{html_text(kind.code)}</p></div></details>'
    )


WIDTH = 88  # columns of the text
SHOWN = 8  # maximum places of a finding in the text; JSON and HTML have all


class FindingPlace(NamedTuple):
    """A place of a finding and its numbers; `owner` is, say, "joint 'elbow'", or ""."""

    owner: str
    fact: str


class Met(NamedTuple):
    """One place where a check met a fault; `lines` are to paste into the sidecar."""

    code: str
    owner: str
    fact: str
    lines: str = ""


@dataclass(frozen=True)
class RobotFinding:
    """A fault of a robot, all places of it, and lines to paste into its sidecar."""

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
    """All findings about a robot, errors first; str() is the whole report as text.

    Attributes:
        source: Source of the robot, as lines of text.
        sidecar: File name of the sidecar that lines of findings belong into.
        figures: Measured values, as pairs of name and text.
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
        """Name and counts by severity: "arm: 1 error, 0 warnings, 2 hints"."""
        counts = [len(self.of(severity)) for severity in SEVERITIES]
        parts = [
            f"{count} {severity}{'s' * (count != 1)}"
            for count, severity in zip(counts, SEVERITIES, strict=True)
        ]
        return f"{self.robot}: {', '.join(parts)}"

    def as_dict(self) -> dict[str, Any]:
        """Return the report as lists and dictionaries, for JSON."""
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
        """Return the report as text in a <pre> element of HTML, for notebooks."""
        return f"<pre>{html_text(str(self))}</pre>"


def ranked(met: Iterable[Met]) -> tuple[RobotFinding, ...]:
    """Return one finding for each code met, in the order of the catalogue.

    Places with equal owner and fact are listed once. Lines to paste follow one another
    as they were met, equal ones repeated; codes outside the catalogue are dropped.
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
    """Return a finding as text, with at most SHOWN places and the number of others.

    Its own lines are for `sidecar`, and one item at the end.
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
    """Return a paragraph in lines of at most WIDTH columns, the first with `start`."""
    later = " " * (len(start) + 2 * start.isspace())
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=later)
