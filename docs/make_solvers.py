"""Writes docs/solvers.md, the catalogue of solvers, from the solvers themselves.

python docs/make_solvers.py
"""

from pathlib import Path

import dyn_core as dyn

PAGE = Path(__file__).parent / "solvers.md"
HEAD = """# Solvers

Made by `python docs/make_solvers.py`. Solvers of one problem take and return the same
arrays and can replace each other. `dyn help NAME` prints units, options and sources.
"""


def page():
    """Return the page as it should be."""
    registry = dyn.default_registry()
    by_problem = {}
    for name in registry.names(references=True):
        solver = registry.solver(name)
        by_problem.setdefault(solver.signature, []).append(solver)
    parts = [HEAD]
    for signature in sorted(by_problem, key=lambda s: (s.system != "robot", s.name)):
        parts.append(f"\n## {signature.name}\n\n{signature!r}\n\n")
        parts.append("| solver | computes |\n|---|---|\n")
        for solver in by_problem[signature]:
            sentence = " ".join(summary(solver).split())
            mark = " (reference)" if solver.reference else ""
            parts.append(f"| `{solver.name}`{mark} | {sentence} |\n")
    return "".join(parts)


def summary(solver):
    """Return the first sentence of a solver's docstring."""
    doc = getattr(solver, "algorithm", solver).__doc__ or ""
    return doc.split("\n\n")[0].strip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
