"""Files that users ask for: errors of the system in the words of the project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dyn_core.errors import SettingError, one_line, why_unread


@contextmanager
def writing(path: str | os.PathLike[str], setting: str = "path") -> Iterator[None]:
    """Context manager around the writing of a file.

    Args:
        path: File or folder, for messages.
        setting: Argument or option that names it.

    Raises:
        SettingError: The system refuses to write the file, or no file has such a name.
    """
    try:
        if not _is_name(os.fspath(path)):
            raise OSError  # without words of the system, see why_unread
        yield
    except OSError as error:
        valid = "valid: a file that may be written, in a folder that exists"
        raise SettingError(
            f"{one_line(os.fspath(path))} cannot be written: {why_unread(error)};"
            f" {valid}",
            setting,
        ) from error


def _is_name(path: str) -> bool:
    """Return whether the system can have a file of this name."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False
