"""Programs that return derivatives, built on first use, and their results at one state.

Independent of JAX and PyTorch: arrays are of any library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dyn_core.engines import Program
from dyn_core.sharing import cached_property

Arrays = Mapping[str, Any]


@dataclass(eq=False)
class Source:
    """A Program that returns derivatives, built on first use.

    Attributes:
        make: Builds the Program.
    """

    make: Callable[[], Program[Any]]

    @cached_property
    def program(self) -> Program[Any]:
        """The Program, built on first use, which may raise the errors of a build."""
        return self.make()


class Values:
    """Results of Sources at one state, each computed on first use.

    Args:
        call: Function of a Source and of its inputs by name that returns its outputs by
            name.
        inputs: Inputs of the differentiated Program, by name.
        zeros: Function that returns an array of zeros of a shape.
    """

    def __init__(
        self,
        call: Callable[[Source, dict[str, Any]], Arrays],
        inputs: Arrays,
        zeros: Callable[[tuple[int, ...]], Any],
    ) -> None:
        self.inputs, self._call, self._zeros = inputs, call, zeros
        self._known: dict[Source, Arrays] = {}

    def __call__(self, source: Source, **others: Any) -> Arrays:
        """Return the outputs of a Source by name.

        Args:
            source: Source to be evaluated.
            others: Inputs that override the Program's inputs of the same name; inputs
                found in neither are zero. Ignored if the Source has been evaluated
                before.
        """
        if source not in self._known:
            arrays = {
                port.name: others[port.name]
                if port.name in others
                else self.inputs[port.name]
                if port.name in self.inputs
                else self._zeros(port.shape)
                for port in source.program.inputs
            }
            self._known[source] = self._call(source, arrays)
        return self._known[source]


Slope = Callable[[Values], Any]  # the derivative of one output by one input
