"""Solvers of constraint problems: contacts with friction, limits, loops, motors."""
