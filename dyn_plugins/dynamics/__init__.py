"""Inverse, forward and hybrid dynamics of trees, and their terms."""
