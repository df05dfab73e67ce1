"""The controller's node with a solver that fails after a signal, for `dyn check-node`.

The solvers `fails_by_raises`, `_nan`, `_shape`, `_stalls`, `_holding` and `_hangs` are
inverse dynamics that is right until SIGUSR1 comes. With `fails_by_blocking` the solver
stays right, and a callback blocks the executor once.
"""

from __future__ import annotations

import ctypes
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
from ros_nodes.tools.faults import BLOCKED, STALL

KINDS = ("raises", "nan", "shape", "stalls", "holding", "hangs", "blocking")
LOOK = 0.01  # period of the callback that blocks [s]


class FailingSolver(NumpySolver):
    """Joint forces of a motion, until the solver is made to fail.

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
        if not FailingSolver.failing or self._kind == "blocking":
            return tau
        if self._kind == "raises":
            raise RuntimeError("the solver fails on purpose")
        if self._kind == "nan":
            return np.full_like(tau, np.nan)
        if self._kind == "shape":
            return tau[:-1]
        if self._kind == "holding":
            FailingSolver.failing = False  # once
            ctypes.PyDLL(None).usleep(int(1e6 * BLOCKED))
        while self._kind == "hangs":  # for ever, outside the interpreter
            ctypes.CDLL(None).sleep(1000)
        if self._kind == "stalls":
            time.sleep(STALL)
        return tau


@hookimpl
def dyn_solvers() -> list[FailingSolver]:
    """Offer the solvers."""
    return [FailingSolver(kind) for kind in KINDS]


class Blocker:
    """A callback of a node that blocks its executor once, after the signal."""

    def __init__(self, node: Any) -> None:
        if node.value("inverse_dynamics.plugin_name") == "fails_by_blocking":
            node.every(LOOK, self.look)

    def look(self) -> None:
        """Block."""
        if FailingSolver.failing:
            FailingSolver.failing = False
            time.sleep(BLOCKED)


def _fail(*_: Any) -> None:
    FailingSolver.failing = True


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    signal.signal(signal.SIGUSR1, _fail)
    dyn.default_registry().register(sys.modules[__name__])
    computed_torque_node.ComputedTorqueNode.extensions.append(Blocker)
    return computed_torque_node.main(args)


if __name__ == "__main__":
    sys.exit(main())
