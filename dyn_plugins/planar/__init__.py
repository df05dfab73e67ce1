"""Solvers of planar chains, planar objects and tasks for them."""
