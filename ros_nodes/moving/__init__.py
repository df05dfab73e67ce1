"""Motions of a running robot by commands."""
