"""Solvers of planar chains, planar objects and their tasks."""
