"""Pages of solvers, by group of problems: inputs, units, options, cost, source."""

from functools import cache

from markdown import body, code, entries, escaped, sections, table

import dyn_core as dyn
from dyn_core import problems
from dyn_core.commands.count import operations
from dyn_core.errors import DynError
from dyn_core.problems import Signature
from dyn_core.solving.help_pages import summary

# Modules of dyn_core.problems, in the order of the pages, with their titles.
GROUPS = {
    "dynamics": "Dynamics of trees",
    "kinematics": "Kinematics, momentum and energy",
    "derivatives": "Derivatives",
    "second_derivatives": "Second derivatives",
    "closed_robots": "Robots with loops",
    "loop_derivatives": "Derivatives with loops",
    "constraints": "Responses and constraints",
    "contact": "Contacts",
    "estimation": "Estimation",
    "others": "Planar chains, objects and tasks",
}
ROBOT = "arm7"  # the robot whose operations are counted
UNCOUNTED = ("closed_robots", "loop_derivatives", "contact", "others")
HEAD = """# Solvers

Solvers of one problem take and return the same arrays and can replace each other. In
Python `dyn.solver(NAME).build(model)` makes a Program of one, in a node
`<slot>.plugin_name: NAME` chooses it. `dyn help NAME` prints what these pages show.

Inputs marked *optional* are zero, and cost nothing, unless `build(model, inputs=[...])`
names them. The [options of every build](../library.md#build-options) are the same for
all solvers.

*Operations* are those that the algorithm takes for the 7-joint arm `arm7`, one state:
multiplications + additions and subtractions + others (divisions, roots, sines and
cosines), without products with structural zeros and ones (`dyn count NAME arm7`).
"""


def pages():
    """Return the content of each page by its name."""
    grouped = by_group()
    made = {
        f"{group}.md": page(GROUPS[group], group, signatures)
        for group, signatures in grouped.items()
    }
    return {"index.md": index(grouped), **made}


@cache
def solvers_of():
    """Return the solvers by Signature."""
    registry, by_problem = dyn.default_registry(), {}
    for name in registry.names(references=True):
        solver = registry.solver(name)
        if solver.origin.startswith("dyn_ros "):
            by_problem.setdefault(solver.signature, []).append(solver)
    return by_problem


def by_group():
    """Return the Signatures that have solvers, by the group they belong to."""
    grouped = {group: [] for group in GROUPS}
    module_of = {}
    for group in GROUPS:
        for value in vars(getattr(problems, group, None) or object).values():
            if isinstance(value, Signature):
                module_of.setdefault(value, group)
    for signature in sorted(solvers_of(), key=lambda s: s.name):
        grouped[module_of.get(signature, "others")].append(signature)
    return {group: signatures for group, signatures in grouped.items() if signatures}


def index(grouped):
    """Return the page that lists all solvers."""
    parts = [HEAD]
    for group, signatures in grouped.items():
        parts.append(f"## {GROUPS[group]}\n")
        rows = [
            (
                f"[{solver.name}](#solver-{dashed(solver.name)})"
                + (" (reference)" if solver.reference else ""),
                code(signature.name),
                escaped(summary(solver)),
            )
            for signature in signatures
            for solver in solvers_of()[signature]
        ]
        parts.append(table(["solver", "problem", "computes"], rows) + "\n")
    names = "\n".join(grouped)
    return "\n".join(
        [*parts, f"```{{toctree}}\n:hidden:\n:titlesonly:\n\n{names}\n```\n"]
    )


def dashed(name):
    """Return the label of a solver's section."""
    return name.replace("_", "-")


def page(title, group, signatures):
    """Return the page of a group."""
    parts = [f"# {title}\n"]
    for signature in signatures:
        parts.append(f"## {signature.name}\n\n{escaped(capital(signature.meaning))}.\n")
        rows = [
            (kind, code(p.name), code(size(p)), escaped(p.unit), meaning(p))
            for kind, ports in (("in", signature.inputs), ("out", signature.outputs))
            for p in ports
        ]
        parts.append(table(["", "name", "size", "unit", "meaning"], rows) + "\n")
        for solver in solvers_of()[signature]:
            parts.append(section(solver, group))
    return "\n".join(parts)


def capital(text):
    """Return a sentence that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def size(port):
    """Return the size of a Port as Python would write it."""
    if port.shape == ():
        return "number"
    return str(tuple(port.shape)).replace("'", "")


def meaning(port):
    """Return what a Port means."""
    return escaped(port.meaning) + (", *optional*" if port.optional else "")


def section(solver, group):
    """Return the section of a solver."""
    algorithm = getattr(solver, "algorithm", None)
    documented = algorithm if algorithm is not None else type(solver)
    doc = sections(documented.__doc__)
    parts = [f"(solver-{dashed(solver.name)})=\n### Solver {code(solver.name)}"]
    if solver.reference:
        parts.append("A reference solver: for comparisons with other solvers.")
    parts.append(body(doc[""]))
    meanings = {
        name.strip(): text
        for names, text in entries(doc.get("Args", ""))
        for name in names.split(",")
    }
    rows = [
        (code(name), code(f"{default!r}"), escaped(meanings.get(name, "")))
        for name, default in getattr(solver, "options", {}).items()
    ]
    fills = getattr(solver, "fills", {})
    for name, signature in getattr(solver, "slots", {}).items():
        filled = getattr(fills.get(name), "name", fills.get(name))
        text = f"slot: a solver of `{signature.name}`"
        rows.append((code(name), code(f"{filled!r}"), text))
    if rows:
        parts.append(table(["option", "default", "meaning"], rows))
    facts = [f"*Operations:* {cost(solver)}."] if group not in UNCOUNTED else []
    if solver.source:
        facts.append(f"*Source:* {escaped(solver.source)}")
    module = solver.origin.split("(")[-1].rstrip(")")
    file = f"../../{module.replace('.', '/')}.py"
    facts.append(f"*Code:* [{documented.__name__}]({file}) in `{module}`")
    return "\n\n".join([*parts, "  \n".join(facts)]) + "\n"


@cache
def _robot():
    return dyn.load(ROBOT)


def cost(solver):
    """Return the operations of a solver for the robot."""
    if not hasattr(solver, "algorithm"):
        return "not counted, it calls a library"
    try:
        counts = operations(solver, _robot())
    except DynError as error:
        return f"not counted ({escaped(str(error))})"
    mul, add = counts["mul"], counts["add"]
    return f"{counts.total()} = {mul} + {add} + {counts.total() - mul - add}"
