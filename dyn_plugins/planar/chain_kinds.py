"""Problems of chains, objects and tasks, their laws and systems, for the Registry."""

from dyn_core.authoring import hookimpl
from dyn_core.planar.problems import PROBLEMS


@hookimpl
def dyn_problems():
    """Offer the problems of planar chains, planar objects and tasks."""
    return PROBLEMS


@hookimpl
def dyn_laws():
    """Offer the laws of these problems."""
    from dyn_plugins.planar._testing.laws import LAWS

    return LAWS


@hookimpl
def dyn_systems():
    """Offer planar chains, planar objects and tasks."""
    from dyn_plugins.planar._testing.cases import SYSTEMS

    return SYSTEMS
