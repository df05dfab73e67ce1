"""Kinds of problem of estimation: external forces and payloads from joint data."""

from dyn_core.problems.joint_ports import FORCE, VELOCITY, q, qd
from dyn_core.problems.ports import PASSIVE, Signature
from dyn_core.problems.ports import port_row as P

MOMENTUM = "kg·m²/s | kg·m/s"
TEN = "kg; kg·m; kg·m²"  # the ten inertial parameters of a body

# fmt: off
tau = P("tau", "nv", FORCE, "joint forces since the cycle before")
dt = P("dt", "", "s", "time since the cycle before")
gain = P("gain", "nv", "1/s", "rate at which r follows")
r = P("r", "nv", FORCE, "r_next of the cycle before; zero at first")
p = P("p", "nv", MOMENTUM, "p_next of the cycle before")
beta = P("beta", "nv", FORCE, "beta_next of the cycle before")
r_next = P("r_next", "nv", FORCE, "external joint forces, signed as tau")
p_next = P("p_next", "nv", MOMENTUM, "generalized momentum H qd")
beta_next = P("beta_next", "nv", FORCE,
    "rate of p without joint forces and external ones")

dt_or_0 = P("dt", "", "s",
    "time since the cycle before; 0: this one does not continue it")
velocity_noise = P("velocity_noise", "nv", VELOCITY,
    "standard deviation of each qd, above zero")
effort_noise = P("effort_noise", "nv", FORCE, "standard deviation of each tau")
prior = P("prior", "10", TEN,
    "standard deviation of the payload before the first cycle")
drift = P("drift", "10", f"({TEN})/√s", "standard deviation of its change in a second")
memory = P("memory", "nm", "-", "memory_next of the cycle before; 0 at first")
payload = P("payload", "10", TEN,
    "m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the link's origin")
covariance = P("covariance", "10 10", f"({TEN})²", "of the payload")
mismatch = P("mismatch", "", "1",
    "mean square of the prediction errors by their deviations")
used = P("used", "", "1 | 0", "0: the cycle is an outlier, or the first")
changed = P("changed", "", "1 | 0",
    "1: it is another payload; its deviations are those of before")
memory_next = P("memory_next", "nm", "-", "what the next cycle needs")

MOMENTUM_OBSERVER = Signature("momentum_observer",
    (q, qd, tau, dt, gain, r, p, beta), (r_next, p_next, beta_next),
    passive=PASSIVE, of_trees=True,
    meaning="external joint forces, from the generalized momentum")
PAYLOAD_ESTIMATION = Signature("payload_estimation",
    (q, qd, tau, dt_or_0, velocity_noise, effort_noise, prior, drift, memory),
    (payload, covariance, mismatch, used, changed, memory_next),
    passive=PASSIVE, of_trees=True,
    meaning="mass, first moments and inertia of what a link carries")
