"""Kinds of problem that are second derivatives of a robot's dynamics.

A second derivative is the derivative of the first one along a tangent displacement:
[i, j, k] is output i, differentiated by coordinate j and then by coordinate k.
"""

from dyn_core.problems.joint_ports import (
    INERTIA,
    f_ext,
    plain_qdd,
    plain_tau,
    q,
    qd,
)
from dyn_core.problems.ports import PASSIVE, Port, Signature
from dyn_core.problems.ports import port_row as P


def _second(of: str, by: str, then: str) -> Port:
    """Return the (nv, nv, nv) Port of a second derivative of `of`.

    Args:
        of: Differentiated output.
        by, then: Variables of the first and of the second differentiation.
    """
    meaning = f"derivative of d{of}_d{by}[i, j] by {then}[k], at [i, j, k]"
    return P(f"d2{of}_d{by}d{then}", "nv nv nv", "SI", meaning)


def _contracted(of: str, by: str, then: str, kind: str = "plain") -> Port:
    """Return the (nv, nv) Port of a second derivative of weights . OF, a weighted sum.

    Args:
        of: Differentiated output.
        by, then: Variables of the first and of the second differentiation.
        kind: One of KINDS in ports.py.
    """
    meaning = f"derivative of (weights . d{of}_d{by})[j] by {then}[k], at [j, k]"
    return P(f"d2{of}_d{by}d{then}", "nv nv", "SI", meaning, kind)


# fmt: off
_PAIRS = (("q", "q"), ("q", "qd"), ("qd", "qd"))
_CURVED = ("joint_friction",)  # joint springs are linear
weights = P("weights", "nv", "SI", "factors of the entries in the sum")
dH_dq = P("dH_dq", "nv nv nv", INERTIA, "derivative of H[i, j] by q[k], at [i, j, k]")

ID_SECOND_DERIVATIVES = Signature("id_second_derivatives", (q, qd, plain_qdd, f_ext),
    (*(_second("tau", *pair) for pair in _PAIRS), dH_dq),
    passive=_CURVED, of_trees=True,
    meaning="second derivatives of inverse dynamics")
ID_SECOND_CONTRACTED = Signature("id_second_contracted",
    (q, qd, plain_qdd, weights, f_ext),
    tuple(_contracted("tau", *pair, "joint_slopes")
          for pair in (*_PAIRS, ("q", "qdd"))),
    passive=_CURVED, of_trees=True,
    meaning="second derivatives of weights . tau, of inverse dynamics")
FD_SECOND_DERIVATIVES = Signature("fd_second_derivatives", (q, qd, plain_tau, f_ext),
    tuple(_second("qdd", *pair) for pair in (*_PAIRS, ("q", "tau"))),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="second derivatives of forward dynamics")
FD_SECOND_CONTRACTED = Signature("fd_second_contracted",
    (q, qd, plain_tau, weights, f_ext),
    tuple(_contracted("qdd", *pair) for pair in (*_PAIRS, ("q", "tau"))),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="second derivatives of weights . qdd, of forward dynamics")
