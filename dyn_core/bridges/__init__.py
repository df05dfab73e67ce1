"""Bridges: Programs inside of JAX, PyTorch and CasADi, with their derivatives.

    from dyn_core.bridges import jax as dyn_jax      needs the extra `jax`
    from dyn_core.bridges import torch as dyn_torch  needs the extra `torch`
    from dyn_core.bridges import casadi              needs the extra `casadi`, and cc

All call the machine code of a Program; none writes its algorithm again in
operations of its own. Derivatives come from Programs, too (derivatives.py), and the
chain rule puts them together (chain_rule.py); positions with quaternions are vectors of
nq numbers there (coordinates.py). Nothing in the core imports this package.
"""
