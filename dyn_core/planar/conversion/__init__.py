"""Conversion between planar chains and robots."""
