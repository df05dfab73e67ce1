"""Optimise a motion.

A two-link arm swings from hanging to upright in a second and a half, with efforts
that are as small as possible. The optimiser is iterative LQR, twenty lines of NumPy;
each of its sweeps takes the derivatives of all steps from one call.
"""

# %%
# The robot, a step in time, and its derivatives. The arm of `two_link` lies in a
# horizontal plane; here gravity acts along its negative y.

import matplotlib.pyplot as plt
import numpy as np

import dyn_core as dyn
from dyn_core.simulation import Rollout

model = dyn.load("two_link", gravity=(0.0, -9.81, 0.0))
rollout = Rollout(model, "semi_implicit_euler")
n, dt = 75, 0.02
start, goal = np.array([-np.pi / 2, 0.0]), np.array([np.pi / 2, 0.0])

# %%
# The cost: efforts along the way, the distance from the goal at the end.

R, P = 1e-3 * np.eye(2) * dt, np.diag([200.0, 200.0, 20.0, 20.0])


def cost(states, tau):
    """Return the cost of a trajectory."""
    end = np.concatenate([states.q[-1] - goal, states.qd[-1]])
    return 0.5 * np.einsum("ki,ij,kj", tau, R, tau) + 0.5 * end @ P @ end


# %%
# A sweep backward gives feedback K and a change k of the efforts; a sweep forward
# tries them, with smaller steps until the cost falls. The model of the cost is
# quadratic.


def backward(states, tau, damping):
    """Return the gains of all steps, (n, 2, 4), and the changes, (n, 2)."""
    slopes = rollout.linearize(states, tau, dt)
    V, v = P, P @ np.concatenate([states.q[-1] - goal, states.qd[-1]])
    K, k = np.zeros((n, 2, 4)), np.zeros((n, 2))
    for i in reversed(range(n)):
        A, B = slopes.A[i], slopes.B[i]
        H = R + B.T @ V @ B + damping * np.eye(2)
        g = R @ tau[i] + B.T @ v
        K[i], k[i] = -np.linalg.solve(H, B.T @ V @ A), -np.linalg.solve(H, g)
        v = A.T @ v + K[i].T @ g + A.T @ V @ B @ k[i] + K[i].T @ H @ k[i]
        V = A.T @ V @ A + K[i].T @ H @ K[i] + 2 * K[i].T @ (B.T @ V @ A)
        V = (V + V.T) / 2
    return K, k


step = dyn.solver("semi_implicit_euler").build(model)


def forward(states, tau, K, k, part):
    """Return the efforts of a trajectory with feedback to an older one."""
    q, qd, made = start, np.zeros(2), []
    for i in range(n):
        apart = np.concatenate([q - states.q[i], qd - states.qd[i]])
        made.append(tau[i] + part * k[i] + K[i] @ apart)
        q, qd = step(q, qd, made[-1], dt)
    return np.array(made)


# %%
# From rest and without efforts, until the cost falls no more.

print("derivatives are compiled, some 10 s the first time", flush=True)
tau, damping, costs = np.zeros((n, 2)), 1e-6, []
states = rollout.run(start, np.zeros(2), tau, dt)
for _ in range(60):
    costs.append(cost(states, tau))
    K, k = backward(states, tau, damping)
    for part in 0.6 ** np.arange(12):
        tried = forward(states, tau, K, k, part)
        trial = rollout.run(start, np.zeros(2), tried, dt)
        if cost(trial, tried) < costs[-1]:
            states, tau = trial, tried
            break
    if costs[-1] - cost(states, tau) < 1e-6 * costs[-1]:
        break
print(f"{len(costs)} sweeps, cost {costs[0]:.0f} -> {cost(states, tau):.3f}")
print("distance from the goal at the end:", np.abs(states.q[-1] - goal).max(), "rad")
assert np.abs(states.q[-1] - goal).max() < 0.02

# %%
# The motion, its efforts, and the cost sweep by sweep.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4))
time = dt * np.arange(n + 1)
axes[0].plot(time, states.q, label=["joint1", "joint2"])
axes[0].set(xlabel="time [s]", ylabel="position [rad]")
axes[0].legend()
axes[1].step(time[:-1], tau)
axes[1].set(xlabel="time [s]", ylabel="effort [N·m]")
axes[2].semilogy(costs)
axes[2].set(xlabel="sweep", ylabel="cost")
figure.tight_layout()
plt.show()
