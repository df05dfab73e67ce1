"""Joint forces of a motion and their derivatives by parameter paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.identification.selection import Unknowns
from dyn_core.model import parameter_paths
from dyn_core.solving.registry import solver

AT_ONCE = 4096  # samples in one call, so that the results fit into memory
_ACTS = {"joint_friction": True, "joint_springs": True}
Motion = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(eq=False)
class PathForces:
    """tau = ID(q, qd, qdd; p) and dtau/dp, by compiled parameter derivatives.

    Payloads act linearly: their columns do not change. Parameters of joints and springs
    are inputs of one Program; for other paths a Program is built at each p.

    Attributes:
        unknowns: Parameters to identify.
        motion: q, qd, qdd, (samples, ...) each.
        average: Number of consecutive samples that each row averages.
        built_anew: Whether a Program is built at each p.
    """

    unknowns: Unknowns
    motion: Motion
    average: int = 1

    def __post_init__(self) -> None:
        model, paths = self.unknowns.model, self.unknowns.paths
        kinds = {path: parameter_paths.kind_of(model, path) for path in paths}
        self._inputs = [
            path for path, kind in kinds.items() if kind.owner in ("joint", "spring")
        ]
        self.built_anew = any(
            kind.owner not in ("joint", "spring") and kind.name != "payload"
            or kind.name in ("origin", "plug")
            for kind in kinds.values()
        )  # fmt: skip
        if self.built_anew:
            self._inputs = []
        self._program: Any = None
        self._payloads = [x for x in paths if kinds[x].name == "payload"]

    @property
    def linear(self) -> bool:
        """Whether the joint forces are linear in all parameters that are sought."""
        kinds = {path.rpartition(".")[2] for path in self.unknowns.paths}
        return kinds <= {
            "payload", "damping", "friction", "friction_asymmetry", "armature",
        }  # fmt: skip

    def at_numbers(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return tau (rows, nv) and its derivatives by the sought parameters of paths.

        The derivatives have the shape (rows, nv, chosen). z: all parameters.
        """
        unknowns = self.unknowns
        values = unknowns.path_values(z)
        model = unknowns.model
        if not unknowns.paths:
            program = self._once(lambda: solver("rnea").build(model, **_ACTS))
            tau = self.averaged(lambda *motion: np.asarray(program(*motion)))
            return tau, np.zeros((*tau.shape, 0))
        if self.built_anew:
            model = model.with_values({k: x.tolist() for k, x in values.items()})
        program = self._once(
            lambda: solver("parameter_jacobian").build(
                model, paths=list(unknowns.paths), inputs=self._inputs, **_ACTS
            )
        )
        numbers = [values[path] for path in self._inputs]
        fixed = [float(x[0]) if len(x) == 1 else x for x in numbers]

        def both(*motion: np.ndarray) -> np.ndarray:
            tau, slopes = program(*motion, *fixed)
            return np.concatenate([np.asarray(tau)[..., None], slopes], axis=2)

        rows = self.averaged(both)
        tau, slopes = rows[..., 0], rows[..., 1:]
        if not self.built_anew:
            tau = tau + self._of_payloads(slopes, values)
        return tau, slopes[..., list(unknowns.chosen)]

    def averaged(self, function: Callable[..., np.ndarray]) -> np.ndarray:
        """Return function(q, qd, qdd), averaged over samples; one row for each mean."""
        return averaged(function, self.motion, self.average)

    def _once(self, build: Callable[[], Any]) -> Any:
        """Return the Program; it is cached if p is an input of it."""
        if self._program is None or self.built_anew:
            self._program = build()
        return self._program

    def _of_payloads(
        self, slopes: np.ndarray, values: dict[str, np.ndarray]
    ) -> np.ndarray:
        """Return the joint forces of payloads, (rows, nv), which are no inputs.

        Args:
            slopes: Derivatives by all numbers of the paths, (rows, nv, numbers).
            values: Numbers by path.
        """
        total, first = np.zeros(slopes.shape[:2]), 0
        for path, numbers in values.items():
            last = first + len(numbers)
            if path in self._payloads:
                total += slopes[..., first:last] @ numbers
            first = last
        return total


def averaged(
    function: Callable[..., np.ndarray], arrays: tuple[np.ndarray, ...], average: int
) -> np.ndarray:
    """Return function(*arrays), averaged over consecutive samples.

    Args:
        function: Function of arrays with the same number of samples.
        arrays: Arrays, (samples, ...); processed in blocks of about AT_ONCE samples.
        average: Number of samples of each mean; an incomplete last group is left out.
    """
    count = len(arrays[0]) // average * average
    pieces = []
    step = max(AT_ONCE // average, 1) * average
    for first in range(0, count, step):
        part = [x[first : min(first + step, count)] for x in arrays]
        rows = function(*part)
        pieces.append(rows.reshape(-1, average, *rows.shape[1:]).mean(axis=1)
                      if average > 1 else rows)  # fmt: skip
    return np.concatenate(pieces) if pieces else function(*arrays)
