"""Derivatives of steps with contacts, in any scene."""

from dyn_core.contact.derivatives.differentiable_step import (
    DifferentiableStep,
    StepDerivatives,
    step_derivatives,
)

__all__ = ["DifferentiableStep", "StepDerivatives", "step_derivatives"]
