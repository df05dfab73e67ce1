"""Kinds of problem of estimation: forces that nobody measures."""

from dyn_core.problems.joint_ports import FORCE, plain_tau, q, qd
from dyn_core.problems.ports import PASSIVE, Port, Signature

MOMENTUM = "kg·m²/s | kg·m/s"

MOMENTUM_OBSERVER = Signature(
    "momentum_observer",
    (
        q,
        qd,
        Port(
            "tau",
            ("nv",),
            FORCE,
            meaning=f"{plain_tau.meaning} since the cycle before",
        ),
        Port("dt", (), "s", meaning="time since the cycle before"),
        Port("gain", ("nv",), "1/s", meaning="rate at which r follows"),
        Port("r", ("nv",), FORCE, meaning="r_next of the cycle before; zero at first"),
        Port("p", ("nv",), MOMENTUM, meaning="p_next of the cycle before"),
        Port("beta", ("nv",), FORCE, meaning="beta_next of the cycle before"),
    ),
    (
        Port("r_next", ("nv",), FORCE, meaning="external joint forces"),
        Port("p_next", ("nv",), MOMENTUM, meaning="generalized momentum H qd"),
        Port(
            "beta_next",
            ("nv",),
            FORCE,
            meaning="rate of p without joint forces and external ones",
        ),
    ),
    passive=PASSIVE,
    of_trees=True,
    meaning="external joint forces, from the generalized momentum",
)
