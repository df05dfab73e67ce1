"""Derivatives of a time step with contacts, by state, joint forces and friction."""

from dyn_core.contact.derivatives.differentiable_step import (
    DifferentiableStep,
    StepDerivatives,
    step_derivatives,
)

__all__ = ["DifferentiableStep", "StepDerivatives", "step_derivatives"]
