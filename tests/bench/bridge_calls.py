"""Calls and gradients by JAX, PyTorch and CasADi: what a bridge costs beside a kernel.

    python -m bench.bridge_calls

CPU time of this process, the least of several runs; what is not installed is left out.
The peer is adam-robotics: the same semi-implicit steps of the same arm, its dynamics
written as operations of JAX.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.model import load
from dyn_core.solving.registry import solver

STEPS, DT, CALLS = 100, 0.01, 10_000
ROWS = 1000


def cpu_seconds(run: Callable[[], Any], times: int = 20) -> float:
    """Return the least CPU time of some runs [s]; the first is not counted."""
    run()
    least = float("inf")
    for _ in range(times):
        start = time.process_time()
        run()
        least = min(least, time.process_time() - start)
    return least


def call_seconds(call: Callable[[], Any], calls: int = 1000) -> float:
    """Return the CPU time of a call [s]."""

    def run() -> None:
        for _ in range(calls):
            call()

    return cpu_seconds(run) / calls


def jax_figures(model: Any, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield the times of a call in a compiled loop and of a gradient, with JAX [s]."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    from dyn_core.bridges import jax as dyn_jax

    rnea = dyn_jax.function(solver("rnea").build(model))
    q, qd, qdd = (jnp.asarray(x) for x in arrays)

    def loop(body: Callable[[Any], Any]) -> float:
        repeated = jax.jit(
            lambda x: jax.lax.fori_loop(0, CALLS, lambda _, t: body(t), x)
        )
        return cpu_seconds(lambda: repeated(q).block_until_ready()) / CALLS

    nothing, compiled = jax.jit(lambda q, qd, qdd: q), jax.jit(rnea)
    yield "call", call_seconds(lambda: rnea(q, qd, qdd))
    yield "call, compiled", call_seconds(lambda: compiled(q, qd, qdd))
    yield (
        "call of a compiled function of nothing",
        call_seconds(lambda: nothing(q, qd, qdd)),
    )
    yield "loop with a call, each turn", loop(lambda t: rnea(q, qd, qdd + 0 * t))
    yield "loop without, each turn", loop(lambda t: qdd + 0 * t)
    step = dyn_jax.function(solver("semi_implicit_euler").build(model))
    yield from gradient(model, arrays, lambda x, tau: (tuple(step(*x, tau, DT)), None))


def peer_figures(model: Any, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield the times of the same gradient with adam-robotics [s]."""
    yield from gradient(model, arrays, _adam_step(model))


def gradient(model: Any, arrays: Any, move: Any) -> Iterator[tuple[str, float]]:
    """Yield what compiling and computing the gradient of a rollout takes [s]."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    start = tuple(jnp.asarray(x) for x in arrays[:2])

    def loss(tau: Any) -> Any:
        return jnp.sum(jax.lax.scan(move, start, tau)[0][0] ** 2)

    compiled, tau = jax.jit(jax.value_and_grad(loss)), jnp.zeros((STEPS, model.nv))
    began = time.process_time()
    value = compiled(tau)[0].block_until_ready()
    yield f"compile (loss {float(value):.10g})", time.process_time() - began
    seconds = cpu_seconds(lambda: compiled(tau)[1].block_until_ready())
    yield f"gradient of {STEPS} steps", seconds


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


def torch_figures(model: Any, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield the times of a call, and of a call and its gradient, with PyTorch [s]."""
    import torch

    from dyn_core.bridges import torch as dyn_torch

    torch.set_num_threads(1)
    rnea = dyn_torch.function(solver("rnea").build(model))
    q, qd, qdd = (torch.tensor(x) for x in arrays)
    moving = q.clone().requires_grad_()
    step = dyn_torch.function(solver("semi_implicit_euler").build(model))
    tau = torch.zeros((STEPS, model.nv), dtype=torch.float64, requires_grad=True)

    def both() -> Any:
        return torch.autograd.grad(rnea(moving, qd, qdd).sum(), moving)

    def rollout() -> Any:
        state = q, qd
        for k in range(STEPS):
            state = step(*state, tau[k], DT)
        return torch.autograd.grad((state[0] ** 2).sum(), tau)

    many = [x.repeat(ROWS, 1) for x in (q, qd, qdd)]
    yield "call", call_seconds(lambda: rnea(q, qd, qdd))
    yield "call, recorded", call_seconds(lambda: rnea(moving, qd, qdd))
    row = [x[:1] for x in many]
    yield "call of 1 row", call_seconds(lambda: rnea(*row))
    yield f"call of {ROWS} rows", call_seconds(lambda: rnea(*many))
    nothing = _nothing(torch)
    yield "custom operation of nothing", call_seconds(lambda: nothing(q, qd, qdd))
    yield "the same, recorded", call_seconds(lambda: nothing(moving, qd, qdd))
    yield "call and gradient", call_seconds(both, 200)
    yield f"gradient of {STEPS} steps", cpu_seconds(rollout, 5)


def _nothing(torch: Any) -> Any:
    """Return a custom operation of PyTorch that copies its first input."""
    schema = "(Tensor a, Tensor b, Tensor c) -> Tensor"
    made = torch.library.custom_op(
        "dyn_core_bench::nothing", lambda a, b, c: a.clone(), mutates_args=(),
        schema=schema,
    )  # fmt: skip
    made.register_autograd(lambda ctx, slope: (slope, None, None))
    return made


def casadi_figures(model: Any, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield the times of a call from Python with CasADi [s]."""
    from dyn_core.bridges import casadi as dyn_casadi

    rnea = dyn_casadi.function(solver("rnea").build(model))
    yield "call with arrays", call_seconds(lambda: rnea(*arrays))
    buffer, run = rnea.buffer()
    tau = np.zeros(model.nv)
    for k, x in enumerate(arrays):
        buffer.set_arg(k, x.data)
    buffer.set_res(0, tau.data)
    yield "call with Function.buffer", call_seconds(run)


_FIGURES = {
    "jax": jax_figures,
    "torch": torch_figures,
    "casadi": casadi_figures,
    "adam": peer_figures,
}


def main() -> None:
    """Print the figures of what is installed."""
    model = load("arm7")
    arrays = tuple(np.random.default_rng(0).uniform(-1, 1, (3, model.nv)))
    rnea = solver("rnea").build(model)
    many = [np.repeat(x[None], ROWS, axis=0) for x in arrays]
    one, rows = call_seconds(lambda: rnea(*arrays)), call_seconds(lambda: rnea(*many))
    print(f"rnea of arm7 from Python: {1e6 * one:.2f} us")
    print(f"the same, {ROWS} rows: {1e6 * rows:.2f} us")
    for name, figures in _FIGURES.items():
        print(name)
        if importlib.util.find_spec(name) is None:
            print("  not installed")
            continue
        for what, seconds in figures(model, arrays):
            print(f"  {what}: {1e6 * seconds:.2f} us", flush=True)


if __name__ == "__main__":
    main()
