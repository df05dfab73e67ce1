"""Problems of robots and contacts, their laws and systems, offered to the Registry."""

from dyn_core.authoring import hookimpl
from dyn_core.problems import PROBLEMS


@hookimpl
def dyn_problems():
    """Return the Signatures of the problems of robots and contacts."""
    return PROBLEMS


@hookimpl
def dyn_laws():
    """Return the laws of these problems by Signature; they are imported by the call."""
    from dyn_core.testing.laws.every_law import LAWS

    return LAWS


@hookimpl
def dyn_systems():
    """Return the SystemKinds of these problems: robots and constraint layouts."""
    from dyn_core.testing.conformance import SYSTEMS

    return SYSTEMS
