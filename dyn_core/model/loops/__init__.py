"""Loops: constraints that close a tree."""
