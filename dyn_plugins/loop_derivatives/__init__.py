"""Derivatives of the dynamics of robots with loops."""
