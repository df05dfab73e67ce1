"""The version of the installed distribution."""

from importlib.metadata import PackageNotFoundError, version


def version_line() -> str:
    """Return "dyn_ros VERSION", or a sentence that it is not installed."""
    try:
        return f"dyn_ros {version('dyn_ros')}"
    except PackageNotFoundError:
        return "dyn_ros, version unknown: it is not installed"
