"""Solvers of optimal control, and the costs of the knots of their plans."""
