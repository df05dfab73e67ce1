"""What a Solver is built for: a robot, a planar chain, a task, or a plugin's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
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

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Named sizes of Ports."""

    @abstractmethod
    def parameter(self, path: str) -> list[Any]:
        """Give the numbers of a parameter path, flat; ModelError if unknown."""

    @abstractmethod
    def unit(self, path: str) -> str:
        """Give the unit of a parameter path."""

    @abstractmethod
    def with_values(self, values: Mapping[str, Sequence[Any]]) -> System:
        """Give it with some parameters replaced by numbers or symbols, unchecked."""

    def value(self, path: str) -> np.ndarray:
        """Give the own value of a parameter path, flat."""
        return np.array(self.parameter(path), float)

    def resisting(self, friction: bool, springs: bool) -> System:
        """Give it with only the passive joint forces that are asked for."""
        return self

    def missing(self, inputs: Sequence[str]) -> str | None:
        """Say which input a Program cannot do without, or give None."""
        return None
