"""Kinds of problem of robots and contacts, their laws and systems, for the Registry."""

from dyn_core.authoring import hookimpl
from dyn_core.problems import PROBLEMS


@hookimpl
def dyn_problems():
    """Offer the problems of robots and contacts."""
    return PROBLEMS


@hookimpl
def dyn_laws():
    """Offer their laws."""
    from dyn_core.testing.laws.every_law import LAWS

    return LAWS


@hookimpl
def dyn_systems():
    """Offer robots and layouts of constraints."""
    from dyn_core.testing.conformance import SYSTEMS

    return SYSTEMS
