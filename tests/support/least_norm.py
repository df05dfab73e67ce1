"""Solvers of loops whose rows may depend on each other."""

import dyn_core as dyn


def least_norm(name):
    """Return the solver of a name with dependent="least_norm"."""
    return dyn.solver(name).with_options(dependent="least_norm")
