"""Time stepping of robots with contacts, and the derivatives of a step."""

from dyn_core.contact.stepping.derivatives import StepDerivatives, step_derivatives

__all__ = ["StepDerivatives", "step_derivatives"]
