"""What a Solver is built for: a robot, a planar chain, a task, or a plugin's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


class System(ABC):
    """Something with dynamics: named sizes of arrays, and numbers that have paths.

    A Signature says by `system` for which kind its solvers are; a Model of a robot is
    of the kind "robot".

    Class attributes:
        kind: Which Signatures fit.

    Attributes:
        name: Its name.
    """

    kind: ClassVar[str] = ""
    name: str

    def __str__(self) -> str:
        return f"{type(self).__name__} '{self.name}'"

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Named sizes of Ports."""

    @abstractmethod
    def parameter(self, path: str) -> list[Any]:
        """Return the numbers of a parameter path, flat; ModelError if unknown."""

    @abstractmethod
    def unit(self, path: str) -> str:
        """Return the unit of a parameter path."""

    @abstractmethod
    def with_values(self, values: Mapping[str, Sequence[Any]]) -> System:
        """Return it with some parameters replaced by numbers or symbols, unchecked."""

    def value(self, path: str) -> np.ndarray:
        """Return the own value of a parameter path, flat."""
        return np.array(self.parameter(path), float)

    def resisting(self, friction: bool, springs: bool) -> System:
        """Return it with only the passive joint forces that are asked for."""
        return self

    def require_position(self, q: Sequence[Any]) -> Sequence[Any]:
        """Return a position; what makes numbers one is required by leaves."""
        return q

    def missing(self, inputs: Sequence[str]) -> str | None:
        """Return which input a Program cannot do without, or None."""
        return None


@dataclass(frozen=True)
class SystemKind:
    """A kind of System, and how its solvers are put to the test.

    Attributes:
        name: `kind` of its Systems, `system` of their Signatures.
        case: Makes what a law looks at: case(solver, system, engine, rng), a
            dyn_core.testing.case.SystemCase or a leaf of it.
        sample: Draws a random system: sample(seed, size=..., **restriction).
        restrictions: From none to much, for solvers that do not serve every system.
    """

    name: str
    case: Callable[..., Any]
    sample: Callable[..., Any]
    restrictions: tuple[Mapping[str, Any], ...] = ({},)
