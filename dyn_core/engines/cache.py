"""Object code on disk: found again by the digest of what it was made from.

A folder that is not the user's own alone could bring in foreign code: then nothing is
read or written there. Entries carry their digest, appear by one rename, and damaged
ones are made again. The least recently used go when the folder outgrows its bound.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from dyn_core.errors import SettingError

FOLDER = "DYN_CACHE_DIR"  # environment: where to keep entries; "off" for nowhere
LIMIT = "DYN_CACHE_LIMIT"  # environment: bound on the folder [MB]
_MAGIC = b"dyn object 1\n"
_DIGEST = 32
_since: dict[Path, int] = {}  # bytes written since a folder was looked through


def folder() -> Path | None:
    """Give the folder of the cache, or None where it is off."""
    named = os.environ.get(FOLDER)
    if named is not None and named.lower() in ("off", ""):
        return None
    if named is None:
        home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        named = str(Path(home) / "dyn_ros")
    path = Path(named).expanduser()
    return path if _usable(path) else None


@cache
def _usable(path: Path) -> bool:
    """Check, once, that a folder belongs to this user alone; make it if needed."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = path.stat()
        if hasattr(os, "geteuid"):
            if state.st_uid != os.geteuid():
                raise PermissionError("it belongs to another user")
            if state.st_mode & 0o077:
                raise PermissionError("others may read or write it; chmod 700 it")
        if not os.access(path, os.W_OK):
            raise PermissionError("it cannot be written")
    except (OSError, RuntimeError) as error:
        warnings.warn(
            f"compiled kernels are not kept: {path}: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


def load(key: str) -> tuple[dict[str, Any], bytes] | None:
    """Give an entry: what was noted with it and its object code; None if not there."""
    home = folder()
    if home is None:
        return None
    path = home / f"{key}.obj"
    try:
        with path.open("rb") as file:
            owner = os.fstat(file.fileno()).st_uid
            if hasattr(os, "geteuid") and owner != os.geteuid():
                return None
            content = file.read()
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST
    body = content[head:]
    digest = content[len(_MAGIC) : head]
    if content[: len(_MAGIC)] != _MAGIC or hashlib.sha256(body).digest() != digest:
        path.unlink(missing_ok=True)
        return None
    line, code = body.split(b"\n", 1)
    try:
        os.utime(path)
    except OSError:
        pass  # only its age is wrong then
    return json.loads(line), code


def store(key: str, note: dict[str, Any], code: bytes) -> None:
    """Keep an entry; where the disk refuses, nothing is kept."""
    home = folder()
    if home is None:
        return
    body = json.dumps(note).encode() + b"\n" + code
    content = _MAGIC + hashlib.sha256(body).digest() + body
    try:
        handle, temporary = tempfile.mkstemp(dir=home, suffix=".new")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, home / f"{key}.obj")
        # Looking through the folder takes long: at first, then now and then.
        _since[home] = _since.get(home, limit()) + len(content)
        if _since[home] > limit() / 32:
            _since[home] = 0
            _bound(home)
    except OSError as error:
        warnings.warn(
            f"a compiled kernel is not kept: {error}", RuntimeWarning, stacklevel=2
        )


def limit() -> int:
    """Give the bound on the folder [bytes]."""
    given = os.environ.get(LIMIT, "512")
    try:
        size = float(given) * 1e6
    except ValueError:
        size = -1.0
    if not 0 <= size < 1e18:
        raise SettingError(f"{LIMIT} must be megabytes >= 0, got '{given}'", LIMIT)
    return int(size)


def _bound(home: Path) -> None:
    """Remove the least recently used entries beyond the bound."""
    entries = []
    for item in os.scandir(home):
        if item.name.endswith((".obj", ".new")):
            try:
                state = item.stat()
            except FileNotFoundError:
                continue  # another process removed it
            entries.append((state.st_mtime, state.st_size, item.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit():
            break
        Path(path).unlink(missing_ok=True)
        total -= size
