"""Time stepping of robots with contacts, and the derivatives of a step."""

from dyn_core.contact.stepping.derivatives import (
    DifferentiableStep,
    StepDerivatives,
    step_derivatives,
)

__all__ = ["DifferentiableStep", "StepDerivatives", "step_derivatives"]
