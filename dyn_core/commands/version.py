"""The version of the installed distribution."""

from importlib.metadata import PackageNotFoundError, version


def version_line() -> str:
    """Return name and version of the installed distribution, or that it is missing."""
    try:
        return f"dyn_ros {version('dyn_ros')}"
    except PackageNotFoundError:
        return "dyn_ros, version unknown: it is not installed"
