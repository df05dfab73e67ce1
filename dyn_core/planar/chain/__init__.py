"""Planar chains: models, states, constraints, motion with events."""
