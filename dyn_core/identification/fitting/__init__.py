"""Fits of numbers to measured motion: rows, bounds, physical bodies, results."""
