"""Planar objects with closed equations of motion."""
