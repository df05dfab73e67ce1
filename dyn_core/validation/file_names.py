"""Files that users ask for: checked names, and errors of the system in plain words."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dyn_core.errors import SettingError, one_line, why_unread


def file_kind(path: str | os.PathLike[str], setting: str = "file") -> str:
    """Return "folder" or "file" (anything else), or "" if nothing has this path."""
    try:
        return "folder" if stat.S_ISDIR(os.stat(path).st_mode) else "file"
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL
        return ""
    except OSError as error:
        valid = "valid: a path that may be read"
        shown = one_line(os.fspath(path))
        raise SettingError(f"{shown}: {why_unread(error)}; {valid}", setting) from error


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise SettingError if `path` is a file, or file_kind cannot tell what it is."""
    if file_kind(path, "folder") == "file":
        shown = one_line(os.fspath(path))
        raise SettingError(f"{shown} is a file; valid: a folder, new or old", "folder")


@contextmanager
def writing(path: str | os.PathLike[str], setting: str = "path") -> Iterator[None]:
    """Context manager around the writing of a file.

    It opens nothing itself. An OSError in its block becomes a SettingError.

    Args:
        path: File or folder, for messages.
        setting: Argument or option that names it, stored in the error.

    Raises:
        SettingError: The system refuses to write the file, or the path has characters
            that no path can have (raised on entry).
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
    """Return whether the system can have a file of this name: no NUL, encodable."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def check_apart(
    path: str | os.PathLike[str],
    read: Iterable[str | os.PathLike[str] | None],
    option: str,
) -> None:
    """Check that a file to be written is none of the files that are read.

    `read` has names of files, and of folders of bags, whose files are read.
    """
    if not path or not os.path.exists(path):
        return
    written, folder = [path], os.path.dirname(os.path.abspath(path))
    if os.path.exists(os.path.join(folder, "metadata.yaml")):  # a bag
        written.append(folder)
    for name in (x for x in read if x and os.path.exists(x)):
        if any(os.path.samefile(x, name) for x in written):
            shown = one_line(os.fspath(path))
            raise SettingError(
                f"--{option} would replace {shown}, which is read; valid: another file",
                option,
            )


def check_file_name(
    path: str | os.PathLike[str], endings: Sequence[str], option: str, label: str = ""
) -> None:
    """Check extension and folder of a file to be written; nothing is written.

    The case of `endings`, such as .html, counts. `label` or "--option" begins messages.
    """
    file, shown = Path(path), f"{label or f'--{option}'} {os.fspath(path)!r}"
    if file.suffix not in endings:
        valid = ", ".join(dict.fromkeys(x.lower() for x in endings))
        raise SettingError(f"{shown}; valid: a file that ends with {valid}", option)
    if file_kind(file.parent, option) != "folder":
        raise SettingError(f"{shown}; there is no such folder", option)
    if file_kind(file, option) == "folder":
        raise SettingError(f"{shown}; that is a folder", option)
