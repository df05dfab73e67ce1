"""Help pages: a kind of problem as text, and docstrings of objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyn_core.problems.signatures import Port, Signature


class InstanceDoc:
    """A `__doc__` attribute: the docstring on the class, the help page on an instance.

    Instances must have a method `describe()` that returns the help page.

    Attributes:
        text: Docstring of the class, or None.
    """

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, instance: Any, owner: type | None = None) -> str | None:
        return self.text if instance is None else instance.describe()


def describe(
    signature: Signature,
    inputs: Sequence[Port] | None = None,
    outputs: Sequence[Port] | None = None,
) -> str:
    """Return the help text of a Signature: name and meaning, then a table of its Ports.

    Args:
        signature: Kind of problem.
        inputs, outputs: Ports to show instead of the Signature's, such as the sized
            ones of a Program; None for the Signature's.
    """
    inputs = signature.inputs if inputs is None else inputs
    outputs = signature.outputs if outputs is None else outputs
    groups = [[_cells(port) for port in ports] for ports in (inputs, outputs)]
    widths = [
        max(map(len, column)) for column in zip(*groups[0], *groups[1], strict=True)
    ]
    lines = [f"{signature.name}: {signature.meaning}".rstrip(": "), ""]
    for title, rows in zip(("Inputs", "Outputs"), groups, strict=True):
        lines.append(f"{title}:")
        for row in rows:
            cells = [x.ljust(width) for x, width in zip(row, widths, strict=True)]
            lines.append("    " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def _cells(port: Port) -> tuple[str, str, str, str]:
    """Return (name, shape, unit, meaning) of a Port as texts."""
    shape = ", ".join(map(str, port.shape))
    shape = (
        f"({shape},)" if len(port.shape) == 1 else f"({shape})" if shape else "number"
    )
    return port.name, shape, port.unit, port.meaning + ", optional" * port.optional
