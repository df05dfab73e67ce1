"""Laws of plans and of their costs, and random problems, for the Registry."""

from dyn_core.authoring import hookimpl


@hookimpl
def dyn_laws():
    """Return laws by Signature: of plans, and of costs and policies at knots."""
    from dyn_core.prediction.laws import LAWS

    return LAWS


@hookimpl
def dyn_systems():
    """Return a tuple of one SystemKind: random problems of optimal control."""
    from dyn_core.prediction.laws import SYSTEMS

    return SYSTEMS
