"""Optimise joint forces by gradients through a simulation, in JAX.

    pip install '.[jax]' && python examples/jax_rollout.py

An arm starts at rest and is to be at a goal, at rest, half a second later. Its 50 joint
forces are improved by gradient descent with momentum; JAX compiles the whole loop, in
which every step and its derivatives are machine code of dyn_core.
"""

import time

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

import dyn_core as dyn  # noqa: E402
from dyn_core.bridges import jax as dyn_jax  # noqa: E402

STEPS, DT, ROUNDS = 50, 0.01, 400


def main():
    """Optimise and print how far from the goal the arm ends."""
    model = dyn.load("arm7")
    step = dyn_jax.function(dyn.solver("semi_implicit_euler").build(model))
    gravity = dyn_jax.function(dyn.solver("gravity").build(model))
    start, still = jnp.asarray(model.start()), jnp.zeros(model.nv)
    goal = start + jnp.array([0.4, 0.3, -0.3, 0.5, 0.2, -0.4, 0.3])
    effort = jnp.array([100.0, 100.0, 50.0, 50.0, 5.0, 5.0, 2.0]) / 100

    def end(u):
        """Return the state at the end; u scales forces beside those of gravity."""

        def move(state, u):
            q, qd = state
            return tuple(step(q, qd, gravity(q) + effort * u, DT)), None

        return jax.lax.scan(move, (start, still), u)[0]

    def loss(u):
        q, qd = end(u)
        return jnp.sum((q - goal) ** 2) + 0.01 * jnp.sum(qd**2) + 1e-7 * jnp.sum(u**2)

    @jax.jit
    def descend(u):
        def improve(carry, _):
            u, mean, square, k = carry
            value, slope = jax.value_and_grad(loss)(u)
            mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
            size = (mean / (1 - 0.9**k)) / (jnp.sqrt(square / (1 - 0.99**k)) + 1e-12)
            return (u - 0.5 * size, mean, square, k + 1), value

        zero = jnp.zeros_like(u)
        (u, *_), losses = jax.lax.scan(improve, (u, zero, zero, 1.0), None, ROUNDS)
        return u, losses

    u = jnp.zeros((STEPS, model.nv))
    began = time.perf_counter()
    compiled = descend.lower(u).compile()
    ready = time.perf_counter()
    u, losses = compiled(u)
    losses.block_until_ready()
    ended = time.perf_counter()
    print("round    loss")
    for k in (0, 25, 50, 100, 200, ROUNDS - 1):
        print(f"{k:5d}    {float(losses[k]):.3e}")
    q, qd = end(u)
    print(f"distance from the goal {float(jnp.abs(q - goal).max()):.4f} rad")
    print(f"speed there            {float(jnp.abs(qd).max()):.4f} rad/s")
    gradients = f"{ROUNDS} gradients of {STEPS} steps"
    print(f"compiled in {ready - began:.2f} s; {gradients} in {ended - ready:.2f} s")
    assert float(jnp.abs(q - goal).max()) < 0.05


if __name__ == "__main__":
    main()
