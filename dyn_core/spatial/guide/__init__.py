"""Finite vectors, rigid bodies and solutions of the guide to 6-D vectors."""
