"""Solvers: their definition, conversion of arrays, and offers of plugins."""
