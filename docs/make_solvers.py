"""Writes docs/solvers.md and dyn_core/solving/shipped_names.py from the solvers.

python docs/make_solvers.py
"""

from pathlib import Path

import dyn_core as dyn

PAGE = Path(__file__).parent / "solvers.md"
GROUPS = ("OneArray", "SeveralArrays", "WithNumbers")
MODULE = Path(dyn.__file__).parent / "solving" / "shipped_names.py"
HEAD = """# Solvers

Made by `python docs/make_solvers.py`. Solvers of one problem take and return the same
arrays and can replace each other. `dyn help NAME` prints units, options and sources.
"""

NAMES = '''"""Names of the solvers that come with the library, by what a call returns.

Made by `python docs/make_solvers.py`; read by type checkers only. The solvers lie in
packages that dyn_core does not import and are known when plugins are loaded; a type
checker needs their names before, so they stand here as data.
"""

from typing import Literal
'''


def page():
    """Return the page as it should be."""
    registry = dyn.default_registry()
    by_problem = {}
    for name in registry.names(references=True):
        solver = registry.solver(name)
        by_problem.setdefault(solver.signature, []).append(solver)
    parts = [HEAD]
    for signature in sorted(by_problem, key=lambda s: (s.system != "robot", s.name)):
        parts.append(f"\n## {signature.name}\n\n{signature!r}\n")
        for solver in by_problem[signature]:
            sentence = " ".join(summary(solver).split())
            mark = " (reference)" if solver.reference else ""
            parts.append(f"- `{solver.name}`{mark}: {sentence}\n")
    return "".join(parts)


def summary(solver):
    """Return the first sentence of a solver's docstring."""
    doc = getattr(solver, "algorithm", solver).__doc__ or ""
    return doc.split("\n\n")[0].strip()


def names_module():
    """Return the module of names as it should be."""
    registry = dyn.default_registry()
    groups = {group: [] for group in GROUPS}
    for name in registry.names(references=True):
        solver = registry.solver(name)
        if solver.origin.startswith("dyn_ros "):
            groups[returns(solver.signature.outputs)].append(name)
    parts = [NAMES]
    for group, names in groups.items():
        listed = "".join(f'    "{name}",\n' for name in names)
        parts.append(f"\n{group} = Literal[\n{listed}]\n")
    return "".join(parts)


def returns(ports):
    """Return the group of solvers with these outputs."""
    if any(port.shape == () for port in ports):
        return "WithNumbers"  # of one state it comes as a float
    return "OneArray" if len(ports) == 1 else "SeveralArrays"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    MODULE.write_text(names_module(), encoding="utf-8")
    print(PAGE, MODULE, sep="\n")
