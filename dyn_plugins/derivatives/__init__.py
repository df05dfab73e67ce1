"""Derivatives of the dynamics."""
