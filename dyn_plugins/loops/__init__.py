"""Robots with closed loops."""
