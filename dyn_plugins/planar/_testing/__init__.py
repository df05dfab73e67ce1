"""Tests of solvers of planar systems: cases, laws, a dense oracle."""
