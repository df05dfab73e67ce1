"""Names of files to be written, checked before their content is computed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dyn_core.errors import SettingError


def check_file_name(
    path: str | os.PathLike[str], endings: Sequence[str], option: str, label: str = ""
) -> None:
    """Check the name of a file to be written.

    Args:
        path: Name of the file.
        endings: Valid extensions, such as .html.
        option: Name of the option or argument in the error.
        label: Text before the name in messages; empty: "--option".

    Raises:
        SettingError: The extension is unknown, there is no such folder, or the name is
            that of a folder.
    """
    file, shown = Path(path), f"{label or f'--{option}'} {os.fspath(path)!r}"
    if file.suffix not in endings:
        valid = ", ".join(endings)
        raise SettingError(f"{shown}; valid: a file that ends with {valid}", option)
    if not file.parent.is_dir():
        raise SettingError(f"{shown}; there is no such folder", option)
    if file.is_dir():
        raise SettingError(f"{shown}; that is a folder", option)
