"""Estimation: forces that act on a robot and are not measured."""
