"""Descriptions of a Program: repr, help page, and the signature of its call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dyn_core.problems import Port, Signature

_SHOWN = 8  # ports or options that repr names
_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


class SolverDescription(Protocol):
    """Interface of a solver as Programs use it."""

    name: str
    signature: Signature
    changed_options: Mapping[str, Any]
    numbered: Mapping[str, Mapping[int, str]]

    def build(self, model: Any, **options: Any) -> Any:
        """Return a Program for the System `model`, built with these options."""

    def describe(
        self,
        inputs: Sequence[Port] | None = None,
        outputs: Sequence[Port] | None = None,
    ) -> str:
        """Return the help page; these Ports, if given, replace the Signature's."""


class BuildRequest(Protocol):
    """Interface of a Recipe as descriptions use it."""

    @property
    def solver(self) -> SolverDescription:
        """The solver."""

    @property
    def choices(self) -> Mapping[str, Any]:
        """Keyword arguments that were given to build."""


class DescribedProgram(Protocol):
    """Interface of a Program as descriptions use it."""

    engine: str
    model: Any
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    defaults: dict[str, Any]
    finite: bool

    @property
    def recipe(self) -> BuildRequest:
        """Arguments of its build."""


class CallSignature:
    """A `__signature__` of instances; for the class inspect falls back to methods."""

    def __get__(self, instance: Any, owner: type | None = None) -> inspect.Signature:
        if instance is None:
            raise AttributeError("__signature__")
        return signature_of(instance)


class _FromModel:
    """Default of a parameter input in a call signature: the value in the Model."""

    def __repr__(self) -> str:
        return "<of the model>"


def signature_of(program: DescribedProgram) -> inspect.Signature:
    """Return the signature of a Program's call.

    Its parameters are the inputs, by position or keyword, then keywords out=None and
    status=False. Inputs with a value in `defaults` have the default "<of the model>".
    Parameter paths such as link3.mass, no valid identifiers, appear together as
    `**parameters`.
    """
    parameters, rest = [], False
    for port in program.inputs:
        if not port.name.isidentifier():
            rest = True
            continue
        default: Any = inspect.Parameter.empty
        if port.name in program.defaults:
            default = _FromModel()
        parameters.append(inspect.Parameter(port.name, _POSITIONAL, default=default))
    parameters.append(inspect.Parameter("out", _KEYWORD, default=None))
    parameters.append(inspect.Parameter("status", _KEYWORD, default=False))
    if rest:
        kind = inspect.Parameter.VAR_KEYWORD
        parameters.append(inspect.Parameter("parameters", kind))
    return inspect.Signature(parameters)


def page(program: DescribedProgram) -> str:
    """Return the help page: title, options, call, quaternions, page of the solver."""
    outputs = ", ".join(port.name for port in program.outputs)
    solver = program.recipe.solver
    built = options_line(program.recipe.choices)
    return "\n".join(
        [
            f"{_title(program)}, built with {built or 'no options'}.",
            "",
            f"    program{signature_of(program)} -> {outputs}",
            "",
            *_quaternions(program),
            solver.describe(program.inputs, program.outputs),
        ]
    )


def _quaternions(program: DescribedProgram) -> list[str]:
    """Return the help lines about quaternion joints: names, order (x, y, z, w), length.

    The last line is empty; there are no lines without such joints or a position input.
    """
    joints = getattr(program.model, "quaternion_joints", ())
    if not joints or all(port.kind != "position" for port in program.inputs):
        return []
    refused = "others are refused" if program.finite else "finite=True refuses others"
    names = f"joint{'s' * (len(joints) > 1)} {_list(joints)}"
    return [
        f"Quaternions ({names}) are (x, y, z, w), of unit length; {refused},",
        "model.normalize(q) scales them.",
        "",
    ]


def _list(names: Sequence[str]) -> str:
    """Return at most eight names as text; "... (N in all)" follows if others exist."""
    more = [f"... ({len(names)} in all)"] if len(names) > _SHOWN else []
    return ", ".join([*names[:_SHOWN], *more])


def summary(program: DescribedProgram) -> str:
    """Return the repr of a Program: title, build options if any, inputs, outputs.

    Each is one line, with at most eight options or Ports.
    """
    lines = [f"<{_title(program)}"]
    built = options_line(program.recipe.choices, _SHOWN)
    lines += [f"  built with {built}"] if built else []
    lines.append(f"  inputs   {_ports(program.inputs)}")
    lines.append(f"  outputs  {_ports(program.outputs)}>")
    return "\n".join(lines)


def _title(program: DescribedProgram) -> str:
    """Return the text "Program SOLVER for MODEL on engine ENGINE"."""
    name = program.recipe.solver.name
    return f"Program {name} for {program.model} on engine {program.engine}"


def options_line(options: Mapping[str, Any], maximum: int | None = None) -> str:
    """Return "name=value, ...", long values cut; beyond `maximum` "... (N in all)"."""
    shown = [f"{name}={_short(value)}" for name, value in options.items()]
    more = (
        [f"... ({len(shown)} in all)"] if len(shown) > (maximum or len(shown)) else []
    )
    return ", ".join([*shown[:maximum], *more])


def _short(value: Any) -> str:
    """Return the repr of a value, or of its `name`, on one line of at most 60 signs."""
    line = " ".join(repr(getattr(value, "name", value)).split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def _ports(ports: Sequence[Port]) -> str:
    """Return names and shapes of at most eight Ports as text, and the number of all."""
    shown = [f"{port.name} {port.shape}" for port in ports[:_SHOWN]]
    more = [f"... ({len(ports)} in all)"] if len(ports) > _SHOWN else []
    return ", ".join([*shown, *more])
