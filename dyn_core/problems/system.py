"""Systems that Solvers are built for: robots, planar chains, tasks, and others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dyn_core.errors import NearAttributes


class System(NearAttributes, ABC):
    """Base of dynamical systems: named array sizes, and parameters addressed by paths.

    A Model of a robot has the kind "robot". A Solver accepts Systems whose `kind` is
    the `system` of its Signature.

    Class attributes:
        kind: Name of the kind.

    Attributes:
        name: Name of the system.
    """

    OTHERWISE = "algorithms: dyn.solver(NAME).build(model)"
    kind: ClassVar[str] = ""
    name: str

    def __str__(self) -> str:
        return f"{type(self).__name__} '{self.name}'"

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Named sizes that Ports refer to, such as nq."""

    @abstractmethod
    def parameter(self, path: str) -> list[Any]:
        """Return the numbers of a parameter path, flat.

        Raises:
            ModelError: The path is unknown.
        """

    @abstractmethod
    def unit(self, path: str) -> str:
        """Return the SI unit of a parameter path as text.

        Raises:
            ModelError: The path is unknown.
        """

    @abstractmethod
    def with_values(self, values: Mapping[str, Sequence[Any]]) -> System:
        """Return a copy with some parameters replaced, whose values are not checked.

        Args:
            values: By parameter path, flat numbers or symbols.

        Raises:
            ModelError: A path is unknown.
        """

    def value(self, path: str) -> np.ndarray:
        """Return the current value of a parameter path as a float array, (size,).

        Raises:
            ModelError: The path is unknown.
            TypeError: A value is a symbol.
        """
        return np.array(self.parameter(path), float)

    def resisting(self, friction: bool, springs: bool) -> System:
        """Return the system with joint friction and springs only if asked for.

        The base class has no such forces and returns itself.

        Args:
            friction: Whether damping and dry friction of joints act.
            springs: Whether springs and the user's forces act.
        """
        return self

    def require_position(self, q: Sequence[Any]) -> Sequence[Any]:
        """Return the position unchanged, after a check.

        The base class checks nothing. Leaves raise RequireErrors for invalid positions,
        such as quaternions that are not of unit length.

        Args:
            q: Flat numbers of a position.
        """
        return q

    def missing(self, inputs: Sequence[str]) -> str | None:
        """Return why a Program with these inputs cannot be built, or None if it can.

        The reason is an input that the system needs. The base class needs none.

        Args:
            inputs: Names of optional inputs and parameter paths in the build option
                `inputs`.
        """
        return None


@dataclass(frozen=True)
class SystemKind:
    """A kind of System, and the functions by which its solvers are tested.

    Attributes:
        name: `kind` of its Systems, `system` of their Signatures.
        case: Returns the argument of laws: case(solver, system, engine, rng) returns a
            dyn_core.testing.case.SystemCase or an object of a subclass.
        sample: Returns a random system: sample(seed, size=..., **restriction).
        restrictions: Keyword arguments of `sample`, from unrestricted to strict, for
            solvers that do not serve every system.
    """

    name: str
    case: Callable[..., Any]
    sample: Callable[..., Any]
    restrictions: tuple[Mapping[str, Any], ...] = ({},)
