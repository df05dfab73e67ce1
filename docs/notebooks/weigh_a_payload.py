"""Weigh a payload by the torques of an arm.

Joint forces are linear in the ten inertial parameters of a payload. So the torques of
a motion that was measured with a payload, less those of the model without it, tell
its mass and its centre of mass by linear least squares.
"""

# %%
# The measurement: torques of a motion with 1.5 kg in the tool, with noise of 0.2 N·m.

import matplotlib.pyplot as plt
import numpy as np

import dyn_core as dyn

model = dyn.load("arm7")
true = np.array([1.5, 0.015, -0.03, 0.12, 0.014, 0.0, 0.013, 0.0, 0.0, 0.003])
rng = np.random.default_rng(1)
t = np.arange(0.0, 10.0, 0.01)
home = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.0])
w = 2.0 * np.pi * rng.uniform(0.1, 0.4, (7, 3))
a = rng.uniform(-0.25, 0.25, (7, 3))
phase = w * t[:, None, None]
q = home + (a * np.sin(phase)).sum(axis=2)
qd = (a * w * np.cos(phase)).sum(axis=2)
qdd = -(a * w**2 * np.sin(phase)).sum(axis=2)
rnea = dyn.solver("rnea").build(model, inputs=["tool.payload"], joint_friction=True)
measured = rnea(q, qd, qdd, true) + rng.normal(0.0, 0.2, q.shape)

# %%
# The columns of the least squares: what a payload of one in each of its numbers adds.
# The payload is an input of the Program, so nothing is compiled again.

without = rnea(q, qd, qdd, np.zeros(10))
columns = [rnea(q, qd, qdd, unit) - without for unit in np.eye(10)]
A = np.stack([column.ravel() for column in columns], axis=1)
estimate, *_ = np.linalg.lstsq(A, (measured - without).ravel(), rcond=None)
deviation = 0.2 * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))

# %%
# The numbers in their order, with standard deviations. The moments are small beside
# the noise; `dyn.identify` keeps such parameters physically consistent.

names = ["m", "m cx", "m cy", "m cz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"]
for name, value, sigma, truth in zip(names, estimate, deviation, true, strict=True):
    print(f"{name:5} {value:8.4f} +- {sigma:.4f}   true {truth:7.4f}")
assert (np.abs(estimate - true) < 5.0 * deviation).all()
print("centre of mass [m]:", (estimate[1:4] / estimate[0]).round(4))

# %%
# What is left of the torques, without the payload and with the estimate.

rest = measured - rnea(q, qd, qdd, estimate)
figure, ax = plt.subplots(figsize=(8, 3.2))
ax.plot(t, (measured - without)[:, 3], label="joint4, model without payload")
ax.plot(t, rest[:, 3], label="joint4, with the estimate")
ax.set(xlabel="time [s]", ylabel="torque that is not explained [N·m]")
ax.legend()
figure.tight_layout()
plt.show()
