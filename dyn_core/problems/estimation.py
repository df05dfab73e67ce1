"""Kinds of problem of estimation: external forces and payloads from joint data."""

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

TEN = "kg; kg·m; kg·m²"
PAYLOAD_ESTIMATION = Signature(
    "payload_estimation",
    (
        q,
        qd,
        Port(
            "tau",
            ("nv",),
            FORCE,
            meaning=f"{plain_tau.meaning} since the cycle before",
        ),
        Port(
            "dt",
            (),
            "s",
            meaning="time since the cycle before; 0: this one does not continue it",
        ),
        Port(
            "velocity_noise",
            ("nv",),
            "rad/s | m/s",
            meaning="standard deviation of each qd, above zero",
        ),
        Port("effort_noise", ("nv",), FORCE, meaning="standard deviation of each tau"),
        Port(
            "prior",
            (10,),
            TEN,
            meaning="standard deviation of the payload before the first cycle",
        ),
        Port(
            "drift",
            (10,),
            f"({TEN})/√s",
            meaning="standard deviation of its change in a second",
        ),
        Port(
            "memory",
            ("nm",),
            "-",
            meaning="memory_next of the cycle before; 0 at first",
        ),
    ),
    (
        Port(
            "payload",
            (10,),
            TEN,
            meaning="m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the link's origin",
        ),
        Port("covariance", (10, 10), f"({TEN})²", meaning="of the payload"),
        Port(
            "mismatch",
            (),
            "1",
            meaning="mean square of the prediction errors by their deviations",
        ),
        Port("used", (), "1 | 0", meaning="0: the cycle is an outlier, or the first"),
        Port(
            "changed",
            (),
            "1 | 0",
            meaning="1: it is another payload; its deviations are those of before",
        ),
        Port("memory_next", ("nm",), "-", meaning="what the next cycle needs"),
    ),
    passive=PASSIVE,
    of_trees=True,
    meaning="mass, first moments and inertia of what a link carries",
)
