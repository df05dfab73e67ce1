"""Benchmarks: this library beside its peers, in one run on one machine."""

import os
from pathlib import Path

TESTS = Path(__file__).parents[1]


def child_environment(**variables: str) -> dict[str, str]:
    """Return the environment of a process of Python that imports this package."""
    paths = (str(TESTS), os.environ.get("PYTHONPATH", ""))
    path = os.pathsep.join(filter(None, paths))
    return {**os.environ, "PYTHONPATH": path, **variables}
