"""Bridges: Programs inside of JAX, PyTorch and CasADi, with their derivatives.

    from dyn_core.bridges import jax as dyn_jax      needs the extra `jax`
    from dyn_core.bridges import torch as dyn_torch  needs the extra `torch`
    from dyn_core.bridges import casadi              needs the extra `casadi`, and cc

All call the machine code of a Program; none implements its algorithm again. Derivatives
are computed by Programs, too (derivatives.py), and combined by the chain rule
(chain_rule.py); positions with quaternions are vectors of nq numbers (coordinates.py).
Nothing in the core imports this package.
"""

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
