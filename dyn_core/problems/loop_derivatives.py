"""Kinds of problem that are derivatives of the dynamics of robots with loops."""

from collections.abc import Iterable

from dyn_core.problems.constraints import (
    LOOP_FORWARD_DYNAMICS,
    LOOP_HYBRID_DYNAMICS,
    LOOP_INVERSE_DYNAMICS,
)
from dyn_core.problems.ports import PASSIVE, Port, Signature, slope_row

_SIZES = {
    "qdd": "nv", "lambda": "m", "tau_a": "na", "tau_u": "nu", "qdd_v": "nf",
    "q": "nv", "qd": "nv", "tau": "nv", "qdd_u": "nu", "tau_v": "nf", "tau_p": "np",
    "p": "k",
}  # fmt: skip


def _slopes(results: Iterable[str], variables: Iterable[str]) -> tuple[Port, ...]:
    """Return the Ports "dOF_dBY" of all results by all variables, results first.

    Args:
        results, variables: Keys of _SIZES. The Port of qdd by tau is a symmetric
            matrix.
    """
    pairs = [(of, by) for of in results for by in variables]
    kinds = {("qdd", "tau"): "symmetric"}
    return tuple(
        slope_row(
            of, by, f"{_SIZES[of]} {_SIZES[by]}", "SI", kinds.get((of, by), "plain")
        )
        for of, by in pairs
    )


# fmt: off
LOOP_FD_DERIVATIVES = Signature("loop_fd_derivatives", LOOP_FORWARD_DYNAMICS.inputs,
    (*LOOP_FORWARD_DYNAMICS.outputs[:2],
     *_slopes(("qdd", "lambda"), ("q", "qd", "tau", "p"))),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="forward dynamics of a robot with loops and its derivatives")
LOOP_HD_DERIVATIVES = Signature("loop_hd_derivatives", LOOP_HYBRID_DYNAMICS.inputs,
    (*LOOP_HYBRID_DYNAMICS.outputs,
     *_slopes(("tau_u", "qdd_v", "lambda"), ("q", "qd", "qdd_u", "tau_v", "p"))),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="hybrid dynamics of a robot with loops and its derivatives")
LOOP_ID_DERIVATIVES = Signature("loop_id_derivatives", LOOP_INVERSE_DYNAMICS.inputs,
    (*LOOP_INVERSE_DYNAMICS.outputs,
     *_slopes(("tau_a", "lambda"), ("q", "qd", "qdd", "tau_p", "p"))),
    passive=PASSIVE,
    meaning="forces of active joints of a robot with loops and their derivatives")
