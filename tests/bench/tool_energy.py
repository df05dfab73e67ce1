"""Energy that a soft tool makes: constant gains, live stiffness, a posture.

    PYTHONPATH=tests python -m bench.tool_energy

Energy of robot and spring [J] from rest, 9 cm from its reference, 2 s, the law every ms, ten steps
between. The last column is the largest growth of the sum between any two rows.
"""

import numpy as np
from scipy.linalg import logm

import dyn_core as dyn
from dyn_core.spatial.conventions.common import quaternion

Q = np.array([0.3, 0.6, -0.2, -1.4, 0.3, 0.8, 0.1])
K = np.diag([40.0, 50.0, 60.0, 400.0, 500.0, 600.0])
RATE = 2000.0  # default of cartesian.stiffness_rate, linear [N/(m s)]


def run(live=False, posture=False):
    """Return times and the energy of robot and spring, one row a millisecond."""
    model = dyn.load("arm7")
    inputs = ("q_rest", "rest_stiffness", "rest_damping") if posture else ()
    law = dyn.solver("cartesian_impedance").build(
        model, frame="tool", reference="local", inputs=inputs
    )
    more = (Q + 0.3, np.full(7, 4.0), np.full(7, 1.0)) if posture else ()
    poses = dyn.solver("forward_kinematics").build(model, frames=["tool"])
    energy = dyn.solver("energy").build(model)
    T = poses(Q)[0]
    pose = np.r_[T[:3, 3] + 0.05, quaternion(T[:3, :3])]
    goal = T.copy()
    goal[:3, 3] = pose[:3]

    def gains(t):
        part = min(RATE * t / 400.0, 1.0) if live else 0.0
        return K * (1.0 + part)

    def total(t, q, qd):
        E = logm(np.linalg.solve(poses(q)[0], goal)).real
        e = np.array([E[2, 1], E[0, 2], E[1, 0], *E[:3, 3]])
        return energy(q, qd)[0] + e @ gains(t) @ e / 2

    result = dyn.simulate(
        model, lambda t, q, qd: law(q, qd, pose, gains(t), *more), q0=Q, period=1e-3,
        substeps=10, duration=2.0, progress=False,
    )  # fmt: skip
    rows = zip(result.t, result.q, result.qd, strict=True)
    return result.t, np.array([total(*row) for row in rows])


def main():
    """Print the table."""
    print("| gains | begin | end | largest growth, of the begin |")
    print("|---|---|---|---|")
    for name, settings in (
        ("constant", {}), ("stiffness doubles at its rate", {"live": True}),
        ("a posture 0.3 rad away", {"posture": True}),
    ):  # fmt: skip
        _, values = run(**settings)
        kinetic = values - values[-1]
        growth = max(float((values[k:] - x).max()) for k, x in enumerate(values))
        print(f"| {name} | {kinetic[0]:.3f} | 0 | {growth / kinetic[0]:.1e} |")


if __name__ == "__main__":
    main()
