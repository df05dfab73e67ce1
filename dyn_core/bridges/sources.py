"""Programs that return derivatives, built when needed, and their results at one state.

Nothing here knows JAX or PyTorch: arrays are of any library.
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
    """A Program that returns derivatives, built when it is first needed.

    Attributes:
        make: Builds it.
    """

    make: Callable[[], Program[Any]]

    @cached_property
    def program(self) -> Program[Any]:
        """The Program."""
        return self.make()


class Values:
    """Results of Sources at one state, each computed once.

    Args:
        call: Returns the outputs of a Source by name, from its inputs by name.
        inputs: Of the Program that is differentiated.
        zeros: Returns an array of zeros of a shape.
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
        """Return the outputs of a Source; inputs that the Program lacks are zeros."""
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
