"""Pages of the public names of the packages, made of their docstrings."""

import importlib
import inspect

from markdown import code, docstring, escaped, table

# Public modules, with what they are for.
MODULES = {
    "dyn_core": "the names that most programs need",
    "dyn_core.problems": "Signatures: kinds of problem",
    "dyn_core.authoring": "what algorithms and plugins are written with",
    "dyn_core.spatial": "spatial vectors, transforms, inertias",
    "dyn_core.spatial.conventions": "to and from other libraries and books",
    "dyn_core.kinematics": "inverse kinematics",
    "dyn_core.control": "controllers, trajectories, safety, without ROS",
    "dyn_core.simulation": "simulators, recordings, rollouts",
    "dyn_core.recordings": "files of motions, balance of energy",
    "dyn_core.reports": "reports of runs as HTML",
    "dyn_core.identification": "parameters from measured motion",
    "dyn_core.contact": "constraint problems of contacts",
    "dyn_core.planar": "planar chains and objects",
    "dyn_core.tasks": "tasks of reinforcement learning",
    "dyn_core.envs": "environments of gymnasium",
    "dyn_core.testing": "laws, random models, tolerances",
    "dyn_core.errors": "errors and warnings",
}


def pages():
    """Return the content of each page by its name."""
    rows = [(f"[{name}]({name}.md)", escaped(what)) for name, what in MODULES.items()]
    names = "\n".join(MODULES)
    index = (
        "# Public names\n\nMade from docstrings; `help(name)` prints the same.\n\n"
        + table(["module", "has"], rows)
        + f"\n\n```{{toctree}}\n:hidden:\n:titlesonly:\n\n{names}\n```\n"
    )
    return {"index.md": index, **{f"{name}.md": page(name) for name in MODULES}}


def public(module):
    """Return the public names of a module that have docstrings of their own."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and inspect.isclass(value)
        and value.__module__ == module.__name__
    ]
    return sorted(getattr(module, "__all__", own), key=str.lower)


def page(name):
    """Return the page of a module."""
    module = importlib.import_module(name)
    parts, constants, elsewhere = [], [], []
    for member in public(module):
        value = getattr(module, member)
        if inspect.ismodule(value):
            elsewhere.append((code(f"{name}.{member}"), escaped(first(value))))
        elif inspect.isclass(value):
            parts.append(of_class(name, member, value))
        elif callable(value) and hasattr(value, "__name__"):
            parts.append(f"## {escaped(member)}\n\n{signature(member, value)}")
            parts.append(docstring(value.__doc__))
        else:
            constants.append((code(member), constant(value)))
    head = [f"# {name}", docstring(module.__doc__)]
    if elsewhere:
        head.append(table(["module", "has"], elsewhere))
    if constants:
        head.append(table(["constant", "is"], constants))
    return "\n\n".join([*head, *parts]) + "\n"


def first(value):
    """Return the first sentence of a docstring."""
    return (inspect.getdoc(value) or "").split("\n\n")[0]


def constant(value):
    """Return what a constant is, in short."""
    meaning = getattr(value, "meaning", None)
    if meaning:
        return escaped(meaning)
    shown = repr(value)
    return code(shown) if len(shown) < 90 and " at 0x" not in shown else ""


def signature(member, value):
    """Return the call of a function or class as a block."""
    try:
        call = str(inspect.signature(value)).replace("'", "")
    except (TypeError, ValueError):
        return ""
    return f"```python\n{wrapped(member, call)}\n```"


def wrapped(member, call, width=84):
    """Return a call on one line, or with a line for each argument."""
    line = member + call
    if len(line) <= width:
        return line
    arguments, _, result = call.rpartition(")")
    depth, lines, start = 0, [], 1
    for k, letter in enumerate(arguments):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 1:
            lines.append(arguments[start:k].strip())
            start = k + 1
    lines.append(arguments[start:].strip())
    return f"{member}(\n" + "".join(f"    {x},\n" for x in lines if x) + f"){result}"


def of_class(module, member, value):
    """Return the section of a class: call, docstring, public methods."""
    parts = [f"## {escaped(member)}"]
    if not issubclass(value, BaseException):
        parts.append(signature(member, value))
    doc = value.__dict__.get("__doc__")
    parts.append(docstring(doc if isinstance(doc, str) else inspect.getdoc(value)))
    rows = []
    for name, inner in sorted(vars(value).items()):
        doc = inspect.getdoc(inner) if _is_method(name, inner) else None
        if doc:
            call = "" if isinstance(inner, property) else "()"
            rows.append((code(name + call), escaped(doc.split("\n\n")[0])))
    if rows:
        parts.append(table(["method or property", "meaning"], rows))
    return "\n\n".join(part for part in parts if part)


def _is_method(name, value):
    kinds = (property, classmethod, staticmethod)
    return not name.startswith("_") and (
        inspect.isfunction(value) or isinstance(value, kinds)
    )
