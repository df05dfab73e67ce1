"""A robot arm in 15 lines: load it, ask for torques, let it fall, print what it did."""

import numpy as np

import dyn_core as dyn

model = dyn.load("arm7")  # or the path of a URDF
q, qd = model.random(0), np.zeros(model.nv)
rnea = dyn.solver("rnea").build(model)  # inverse dynamics, compiled
tau = rnea(q, qd, np.zeros(model.nv))
print(model)
print("torques that hold it still [N·m]:", tau.round(2))
run = dyn.simulate(model, lambda t, q, qd: -2.0 * qd, q0=q, duration=1.0)
print("turned in a second [rad]:", (run.q[-1] - run.q[0]).round(2))
print(f"energy {run.energy[0]:.2f} J -> {run.energy[-1]:.2f} J")
