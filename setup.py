"""Shim for colcon, which cannot read pyproject.toml alone."""

from setuptools import setup

setup(python_requires=">=3.10")
