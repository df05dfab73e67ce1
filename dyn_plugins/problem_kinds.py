"""Problems of robots and contacts, their laws and systems, offered to the Registry."""

from dyn_core.authoring import hookimpl
from dyn_core.problems import PROBLEMS


@hookimpl
def dyn_problems():
    """Offer the problems of robots and contacts."""
    return PROBLEMS


@hookimpl
def dyn_laws():
    """Offer the laws of these problems, for dyn_core.testing."""
    from dyn_core.testing.laws.every_law import LAWS

    return LAWS


@hookimpl
def dyn_systems():
    """Offer the systems these problems are built for: robots and constraint layouts."""
    from dyn_core.testing.conformance import SYSTEMS

    return SYSTEMS
