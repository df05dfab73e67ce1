"""The controller's node with a solver that fails after a signal, for `dyn check-node`.

The solvers `fails_by_raising`, `fails_by_nan` and `fails_by_stalling` are inverse
dynamics that is right until SIGUSR1 comes.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import dyn_core as dyn
from dyn_core.authoring import NumpySolver, hookimpl
from dyn_core.problems import INVERSE_DYNAMICS
from ros_nodes import computed_torque_node
from ros_nodes.tools.faults import STALL


class FailingSolver(NumpySolver):
    """Joint forces of a motion, until the solver is told to fail.

        tau = rnea(q, qd, qdd)

    Inputs and outputs: those of INVERSE_DYNAMICS.

    Source: design of this project.
    """

    signature = INVERSE_DYNAMICS
    failing = False  # of all of them

    def __init__(self, kind: str) -> None:
        self.name, self._kind = f"fails_by_{kind}", kind
        self._exact: Any = None

    def solve(self, model: Any, *inputs: Any, **_: Any) -> Any:
        """Return the joint forces, or fail."""
        if self._exact is None:
            self._exact = dyn.solver("rnea").build(model, engine="graph")
        tau = np.asarray(self._exact(*inputs[:3]))
        if not FailingSolver.failing:
            return tau
        if self._kind == "raising":
            raise RuntimeError("the solver fails on purpose")
        if self._kind == "nan":
            return np.full_like(tau, np.nan)
        time.sleep(STALL)
        return tau


@hookimpl
def dyn_solvers() -> list[FailingSolver]:
    """Offer the solvers."""
    return [FailingSolver(kind) for kind in ("raising", "nan", "stalling")]


def _fail(*_: Any) -> None:
    FailingSolver.failing = True


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    signal.signal(signal.SIGUSR1, _fail)
    dyn.default_registry().register(sys.modules[__name__])
    return computed_torque_node.main(args)


if __name__ == "__main__":
    sys.exit(main())
