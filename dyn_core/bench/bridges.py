"""Calls and gradients through JAX and PyTorch: what a bridge costs beside its kernel.

    python -m dyn_core.bench.bridges

CPU time of this process, the least of several runs; what is not installed is left out.
The peer is adam-robotics: the same semi-implicit steps of the same arm, its dynamics
written as operations of JAX.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.model import load
from dyn_core.solving.registry import solver

STEPS, DT, CALLS = 100, 0.01, 10_000


def cpu_seconds(run: Callable[[], Any], times: int = 20) -> float:
    """Return the least CPU time of some runs [s]; the first is not counted."""
    run()
    least = float("inf")
    for _ in range(times):
        start = time.process_time()
        run()
        least = min(least, time.process_time() - start)
    return least


def kernel_seconds(program: Any, arrays: Any) -> float:
    """Return the CPU time of a call of a Program from Python [s]."""

    def run() -> None:
        for _ in range(CALLS):
            program(*arrays)

    return cpu_seconds(run) / CALLS


def jax_figures(model: Any, arrays: Any) -> dict[str, float]:
    """Return the times of a call in a compiled loop and of a gradient, with JAX [s]."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    from dyn_core.bridges import jax as dyn_jax

    rnea = dyn_jax.function(solver("rnea").build(model))
    q, qd, qdd = (jnp.asarray(x) for x in arrays)
    called = jax.jit(
        lambda x: jax.lax.fori_loop(0, CALLS, lambda _, t: rnea(q, qd, qdd + 0 * t), x)
    )
    empty = jax.jit(lambda x: jax.lax.fori_loop(0, CALLS, lambda _, t: qdd + 0 * t, x))
    step = dyn_jax.function(solver("semi_implicit_euler").build(model))

    def gradient(move: Any) -> Any:
        def loss(tau: Any) -> Any:
            return jnp.sum(jax.lax.scan(move, (q, qd), tau)[0][0] ** 2)

        compiled, tau = jax.jit(jax.value_and_grad(loss)), jnp.zeros((STEPS, model.nv))
        start = time.process_time()
        value = compiled(tau)[0].block_until_ready()
        print(f"  loss {float(value):.12g}, compiled in", end=" ")
        print(f"{time.process_time() - start:.2f} s of CPU")
        return cpu_seconds(lambda: compiled(tau)[1].block_until_ready())

    figures = {
        "loop with a call, each": cpu_seconds(lambda: called(q).block_until_ready()),
        "loop without, each": cpu_seconds(lambda: empty(q).block_until_ready()),
    }
    figures = {name: seconds / CALLS for name, seconds in figures.items()}
    own = gradient(lambda x, tau: (tuple(step(*x, tau, DT)), None))
    figures[f"gradient of {STEPS} steps"] = own
    if importlib.util.find_spec("adam") is not None:
        peer = gradient(_adam_step(model))
        figures[f"gradient of {STEPS} steps, adam-robotics"] = peer
        figures["ratio"] = peer / own
    return figures


def _adam_step(model: Any) -> Any:
    """Return the same step with the dynamics of adam-robotics, its base fixed."""
    import jax.numpy as jnp
    from adam.jax import KinDynComputations

    names = [model.names[i] for i in model.bodies]
    dynamics = KinDynComputations(robots.path("arm7"), names)
    base, still = jnp.eye(4), jnp.zeros(6)

    def step(state: Any, tau: Any) -> Any:
        q, qd = state
        H = dynamics.mass_matrix(base, q)[6:, 6:]
        C = dynamics.bias_force(base, q, still, qd)[6:]
        qd = qd + DT * jnp.linalg.solve(H, tau - C)
        return (q + DT * qd, qd), None

    return step


def torch_figures(model: Any, arrays: Any) -> dict[str, float]:
    """Return the times of a call, and of a call and its gradient, with PyTorch [s]."""
    import torch

    from dyn_core.bridges import torch as dyn_torch

    torch.set_num_threads(1)
    rnea = dyn_torch.function(solver("rnea").build(model))
    q, qd, qdd = (torch.tensor(x) for x in arrays)
    moving = q.clone().requires_grad_()
    step = dyn_torch.function(solver("semi_implicit_euler").build(model))
    tau = torch.zeros((STEPS, model.nv), dtype=torch.float64, requires_grad=True)

    def rollout() -> Any:
        state = q, qd
        for k in range(STEPS):
            state = step(*state, tau[k], DT)
        return torch.autograd.grad((state[0] ** 2).sum(), tau)

    def many(run: Callable[[], Any]) -> Callable[[], None]:
        return lambda: [run() for _ in range(1000)] and None

    return {
        "call": cpu_seconds(many(lambda: rnea(q, qd, qdd)), 5) / 1000,
        "call and gradient": cpu_seconds(
            many(lambda: torch.autograd.grad(rnea(moving, qd, qdd).sum(), moving)), 5
        )
        / 1000,
        f"gradient of {STEPS} steps": cpu_seconds(rollout, 5),
    }


def main() -> None:
    """Print the figures of what is installed."""
    model = load("arm7")
    arrays = np.random.default_rng(0).uniform(-1, 1, (3, model.nv))
    rnea = solver("rnea").build(model)
    print(f"rnea of arm7 from Python: {1e6 * kernel_seconds(rnea, arrays):.2f} us")
    for name, figures in (("jax", jax_figures), ("torch", torch_figures)):
        print(name)
        if importlib.util.find_spec(name) is None:
            print("  not installed")
            continue
        for what, number in figures(model, arrays).items():
            shown = f"{number:.0f}" if what == "ratio" else f"{1e6 * number:.2f} us"
            print(f"  {what}: {shown}")


if __name__ == "__main__":
    main()
