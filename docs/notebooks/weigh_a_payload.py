"""Weigh a payload by the torques of an arm.

Joint forces are linear in the ten inertial parameters of a payload. So the torques of
a motion that was measured with a payload tell its mass, its centre of mass and its
inertia, with standard deviations.
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
print("the regressor is compiled, some 10 s the first time", flush=True)
rnea = dyn.solver("rnea").build(model, inputs=["tool.payload"], joint_friction=True)
measured = rnea(q, qd, qdd, true) + rng.normal(0.0, 0.2, q.shape)

# %%
# Only the payload is sought; all else stays as the model has it. Cross-validation fits
# without each of four blocks of time and predicts that block.

result = dyn.identify(model, q, qd, qdd, measured, only="payload", folds=4)
print("\n".join(result.lines()))
deviation = result.standard_deviations
assert (np.abs(result.parameters - true) < 5.0 * deviation).all()
mass, moment = result["tool.payload:m"], result["tool.payload"][1:4]
print("centre of mass [m]:", (moment / mass).round(4))

# %%
# The moments of inertia are small beside the noise. With `consistent=True` the ten
# numbers stay those of a body that could be; what a scale says narrows the rest.

physical = dyn.identify(
    model, q, qd, qdd, measured, only="payload", consistent=True,
    prior={"tool.payload:m": (1.5, 0.002)},
)  # fmt: skip
print(physical["tool.payload:m"], physical.eigenvalues[0] > 0)

# %%
# What is left of the torques, without the payload and with the estimate.

without = measured - rnea(q, qd, qdd, np.zeros(10))
rest = measured - rnea(q, qd, qdd, result["tool.payload"])
figure, ax = plt.subplots(figsize=(8, 3.2))
ax.plot(t, without[:, 3], label="joint4, model without payload")
ax.plot(t, rest[:, 3], label="joint4, with the estimate")
ax.set(xlabel="time [s]", ylabel="torque that is not explained [N·m]")
ax.legend()
figure.tight_layout()
plt.show()
