"""The controller's node with a solver that fails after a signal, for `dyn check-node`.

The solvers `fails_by_raises`, `fails_by_nan` and so on, see KINDS, return correct
inverse dynamics until SIGUSR1 comes. With `fails_by_blocking` the solver stays correct,
and a callback blocks the executor once.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dyn_core as dyn
from dyn_core.authoring import NumpySolver, hookimpl
from dyn_core.problems import INVERSE_DYNAMICS
from ros_nodes import computed_torque_node
from ros_nodes.tools.faults import BLOCKED, SLOW, STALL

LOOK = 0.01  # period of the callback that blocks [s]


def _raises(error: BaseException) -> Any:
    """Raise the exception `error`; for lambdas, in which `raise` is not allowed."""
    raise error


def _hangs(tau: np.ndarray, _: Any) -> None:
    """Never return; the interpreter's lock is released. The arguments are ignored."""
    while True:  # CDLL releases the interpreter's lock
        ctypes.CDLL(None).sleep(1000)


def _holds(tau: np.ndarray, _: Any) -> np.ndarray:
    """Hold the interpreter's lock for BLOCKED seconds, once; return the effort."""
    FailingSolver.failing = False  # once
    # PyDLL, unlike CDLL, does not release the interpreter's lock.
    ctypes.PyDLL(None).usleep(int(1e6 * BLOCKED))
    return tau


def _takes(seconds: float) -> Callable[[np.ndarray, Any], np.ndarray]:
    """Return a failure, for KINDS: the correct effort after a delay."""

    def act(tau: np.ndarray, _: Any) -> np.ndarray:
        time.sleep(seconds)
        return tau

    return act


def _writes(tau: np.ndarray, inputs: Sequence[Any]) -> np.ndarray:
    """Overwrite q, qd and qdd in place with 7.0; return the correct effort."""
    for array in inputs[:3]:
        if array.flags.writeable:
            array[...] = 7.0
    return tau


# Failures by name: called with the correct effort and the solver's inputs; the result
# replaces the effort.
KINDS: dict[str, Callable[[np.ndarray, Sequence[Any]], Any]] = {
    "raises": lambda tau, _: _raises(RuntimeError("the solver fails on purpose")),
    "nan": lambda tau, _: np.full_like(tau, np.nan),
    "shape": lambda tau, _: tau[:-1],
    "stalls": _takes(STALL),
    "holding": _holds,
    "hangs": _hangs,
    "blocking": lambda tau, _: tau,
    "slow": _takes(SLOW),
    "sign": lambda tau, _: -tau,
    "huge": lambda tau, _: 1e9 * tau,
    "complex": lambda tau, _: tau + 1j,
    "none": lambda tau, _: None,
    "text": lambda tau, _: "torque",
    "memory": lambda tau, _: _raises(MemoryError()),
    "recursion": lambda tau, _: _raises(RecursionError("maximum recursion depth")),
    "writes": _writes,
}


class FailingSolver(NumpySolver):
    """Joint forces of a motion, until the solver is made to fail.

        tau = rnea(q, qd, qdd)

    Inputs and outputs: those of INVERSE_DYNAMICS; an external force is ignored. `kind`
    is a key of KINDS. All solvers of this class fail while `failing` is true; the kinds
    holding and blocking fail once and set it to False.

    Source: design of this project.
    """

    signature = INVERSE_DYNAMICS
    failing = False  # shared by all instances

    def __init__(self, kind: str) -> None:
        self.name, self._kind = f"fails_by_{kind}", kind
        self._exact: Any = None

    def solve(self, model: Any, *inputs: Any, **_: Any) -> Any:
        """Return the joint forces, (nv,) [N·m | N], or fail while `failing` is true.

        The first call builds the correct solver for `model`; later calls use it.
        """
        if self._exact is None:
            self._exact = dyn.solver("rnea").build(model, engine="graph")
        tau = np.asarray(self._exact(*inputs[:3]))
        return KINDS[self._kind](tau, inputs) if FailingSolver.failing else tau


@hookimpl
def dyn_solvers() -> list[FailingSolver]:
    """Return one FailingSolver for each of KINDS, named fails_by_KIND."""
    return [FailingSolver(kind) for kind in KINDS]


class Blocker:
    """A callback that blocks a node's executor once, after the signal."""

    def __init__(self, node: Any) -> None:
        if node.value("inverse_dynamics.plugin_name") == "fails_by_blocking":
            node.every(LOOK, self.look)

    def look(self) -> None:
        """Block for BLOCKED seconds (2 s) if the signal has come, once per signal."""
        if FailingSolver.failing:
            FailingSolver.failing = False
            time.sleep(BLOCKED)


def _fail(*_: Any) -> None:
    """Handle a signal: solvers fail from now on, holding and blocking ones once."""
    FailingSolver.failing = True


def main(args: Sequence[str] | None = None) -> int:
    """Run the node with the failing solvers; return its exit status.

    SIGUSR1 makes them fail.

    Args:
        args: ROS arguments; None: the arguments of the command line.
    """
    signal.signal(signal.SIGUSR1, _fail)
    dyn.default_registry().register(sys.modules[__name__])
    computed_torque_node.ComputedTorqueNode.extensions.append(Blocker)
    return computed_torque_node.main(args)


if __name__ == "__main__":
    sys.exit(main())
