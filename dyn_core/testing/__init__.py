"""Test support for solvers and plugins: laws, random robots, tolerances."""

from dyn_core.testing.case import Case
from dyn_core.testing.conformance import Finding, check, report
from dyn_core.testing.laws.every_law import LAWS
from dyn_core.testing.models import chain, random_model
from dyn_core.testing.tolerances import (
    SINGLE_TOLERANCES,
    TOLERANCES,
    scaled_error,
)

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = [
    "LAWS",
    "SINGLE_TOLERANCES",
    "TOLERANCES",
    "Case",
    "Finding",
    "chain",
    "check",
    "random_model",
    "report",
    "scaled_error",
]
