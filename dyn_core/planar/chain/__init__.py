"""Planar chains: models, states, modes, motion with events."""
