"""Laws of plans and of their costs, and random problems, for the Registry."""

from dyn_core.authoring import hookimpl


@hookimpl
def dyn_laws():
    """Offer the laws of plans and of the costs of their knots."""
    from dyn_core.prediction.laws import LAWS

    return LAWS


@hookimpl
def dyn_systems():
    """Offer random problems of optimal control."""
    from dyn_core.prediction.laws import SYSTEMS

    return SYSTEMS
