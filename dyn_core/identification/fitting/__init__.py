"""Fits of parameters to measured motion: rows, bounds, physical bodies, results."""
