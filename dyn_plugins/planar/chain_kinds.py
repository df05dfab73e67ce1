"""Problems of chains, objects and tasks, their laws and systems, for the Registry."""

from dyn_core.authoring import hookimpl
from dyn_core.planar.problems import PROBLEMS


@hookimpl
def dyn_problems():
    """Return the Signatures of problems of planar chains, planar objects and tasks."""
    return PROBLEMS


@hookimpl
def dyn_laws():
    """Return the laws of these problems by Signature; they are imported by the call."""
    from dyn_plugins.planar._testing.laws import LAWS

    return LAWS


@hookimpl
def dyn_systems():
    """Return the SystemKinds of planar chains, planar objects and tasks."""
    from dyn_plugins.planar._testing.cases import SYSTEMS

    return SYSTEMS
