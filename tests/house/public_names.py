"""Public names of the product, from the tables that define them.

    python tests/house/public_names.py > tests/house/public_names.txt

A release promises them (docs/design.md): the test beside this file compares.
"""

import re
import sys
from pathlib import Path

import dyn_core as dyn

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("chain", "commands", "parameters", "sidecar", "world")


def public_names():
    """Return one line for each name: its kind, and the name itself, sorted."""
    names = {f"dyn.{name}" for name in dyn.__all__}
    names |= {f"dyn.authoring.{name}" for name in dyn.authoring.__all__}
    names |= {f"solver {name}" for name in dyn.solvers()}
    names |= {f"problem {problem.name}" for problem in dyn.problems.PROBLEMS}
    names |= {f"topic or service {name}" for name in _topics()}
    for page in PAGES:
        names |= {f"{page} {name}" for name in _first_columns(page)}
    return sorted(names)


def _topics():
    """Return topics, services and actions below the names of nodes."""
    for path in (ROOT / "ros_nodes").rglob("*.py"):
        yield from re.findall(r'"(~/[a-z_]+)"', path.read_text(encoding="utf-8"))


def _first_columns(page):
    """Return names in the first columns of a reference page, made from the tables."""
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
    for heading in re.split(r"^## ", text, flags=re.MULTILINE):
        title = heading.splitlines()[0].strip(" `#")
        if title == "dyn bench":
            continue  # a program below tests/
        rows = re.findall(r"^\| (?:\[)?`([^`]+)`", heading, re.MULTILINE)
        yield from (f"{title}: {row}" for row in rows)


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\n" for name in public_names()))
