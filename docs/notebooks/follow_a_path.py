"""Follow a path with an arm.

A path of the tool becomes positions of the joints by inverse kinematics, a smooth
motion by a spline, and efforts by inverse dynamics. The arm is simulated with its
friction and a payload that the controller does not know of.
"""

# %%
# The robot, and the path: a circle of 12 cm radius in front of the arm, in 3 seconds.
# The orientation of the tool stays the same (a quaternion x y z w).

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import CubicSpline

import dyn_core as dyn
from dyn_core.kinematics import InverseKinematics

model = dyn.load("arm7")
turn = np.linspace(0.0, 2.0 * np.pi, 41)
ring = np.stack([0.5 + 0 * turn, 0.12 * np.cos(turn), 0.5 + 0.12 * np.sin(turn)], 1)
goals = [[*place, 1.0, 0.0, 0.0, 0.0] for place in ring]

# %%
# Inverse kinematics, each position near the one before; then a spline through them.

print("kinematics and dynamics are compiled, some 10 s the first time", flush=True)
reach = InverseKinematics(model, "tool")
q, rows = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.0]), []
for goal in goals:
    result = reach(goal, near=q)
    assert result.converged
    q = result.q
    rows.append(q)
motion = CubicSpline(3.0 * turn / turn[-1], rows)

# %%
# The law: one call of inverse dynamics at the desired acceleration and what the
# errors ask for, with the damping and friction of the URDF.

rnea = dyn.solver("rnea").build(model, joint_friction=True)


def law(t, q, qd):
    """Return the efforts of computed torque."""
    error, rate = motion(t) - q, motion(t, 1) - qd
    return rnea(q, qd, motion(t, 2) + 400.0 * error + 40.0 * rate)


# %%
# Twice three seconds: the robot as modelled, and with a kilogram in the tool, 5 cm
# along z. A payload has ten numbers: m, m c, and six moments about the origin of the
# link.

load = [1.0, 0.0, 0.0, 0.05, 0.0025, 0.0, 0.0025, 0.0, 0.0, 0.0]
loaded = model.with_values({"tool.payload": load})
start = {"q0": motion(0.0), "qd0": motion(0.0, 1), "duration": 3.0, "period": 0.002}
runs = {
    "as modelled": dyn.simulate(model, law, progress=False, **start),
    "1 kg unknown": dyn.simulate(loaded, law, progress=False, **start),
}

# %%
# The largest error of a joint at each time: 2 mrad, and 12 mrad with the load. A
# controller that knows it (`Controller(payload_link="tool")`) has the error of the
# first run.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
tool = dyn.solver("forward_kinematics").build(model, frames=["tool"])
axes[0].plot(*ring[:, 1:].T, "k--", linewidth=1, label="path")
for name, run in runs.items():
    places = tool(run.q)[:, 0, :3, 3]
    error = np.abs(run.q - motion(run.t)).max(axis=1)
    print(f"{name}: largest error {1e3 * error.max():.2f} mrad")
    axes[0].plot(places[:, 1], places[:, 2], label=name)
    axes[1].semilogy(run.t, 1e3 * error + 1e-6)
axes[0].set(xlabel="y [m]", ylabel="z [m]", aspect="equal")
axes[0].legend()
axes[1].set(xlabel="time [s]", ylabel="largest error of a joint [mrad]")
figure.tight_layout()
plt.show()
