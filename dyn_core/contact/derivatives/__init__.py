"""Derivatives of a time step with contacts, by state, joint forces and friction."""

from dyn_core.contact.derivatives.differentiable_step import (
    DifferentiableStep,
    StepDerivatives,
    step_derivatives,
)

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = ["DifferentiableStep", "StepDerivatives", "step_derivatives"]
