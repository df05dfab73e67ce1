"""Object code on disk: found again by the digest of what it was made from.

A folder that is not the user's own alone could bring in foreign code: then nothing is
read or written there. Entries carry a digest of their key and content and appear by one
rename; damaged ones, and those that belong to another key, are made again. The least
recently used go when the folder outgrows its bound.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from dyn_core.errors import SettingError, warn
from dyn_core.sharing import once

FOLDER = "DYN_CACHE_DIR"  # environment: where to keep entries; "off" for nowhere
LIMIT = "DYN_CACHE_LIMIT"  # environment: bound on the folder [MB]
_MAGIC = b"dyn object 2\n"
_DIGEST_SIZE = 32
_LEFT = 3600.0  # age at which an unfinished entry is a leftover [s]
_since: dict[Path, int] = {}  # bytes written since a folder was looked through


def folder() -> Path | None:
    """Return the folder of the cache, or None where it is off."""
    named = os.environ.get(FOLDER)
    if named is not None and named.lower() in ("off", ""):
        return None
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not home.is_absolute():
        home = Path("~/.cache")
    path = home / "dyn_ros" if named is None else Path(named)
    try:
        path = path.expanduser()
    except RuntimeError as error:
        _warn_off(str(path), str(error))
        return None
    if named is None and not path.is_absolute():
        _warn_off(str(path), "the home directory is no absolute path")
        return None
    return path if _usable(path) else None


@once
def _warn_off(path: str, why: str) -> None:
    """Say once that nothing is kept, and why."""
    warn(f"compiled kernels are not kept: {path}: {why}; {FOLDER} names another folder")


@once
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
        _warn_off(str(path), str(error))
        return False
    return True


def load(key: str) -> tuple[dict[str, Any], bytes] | None:
    """An entry: what was noted with it and its object code; None if not there."""
    home = folder()
    if home is None:
        return None
    path = home / f"{key}.obj"
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                return None
            if hasattr(os, "geteuid") and state.st_uid != os.geteuid():
                return None
            content = file.read()
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST_SIZE
    body = content[head:]
    digest = content[len(_MAGIC) : head]
    if content[: len(_MAGIC)] != _MAGIC or _digest(key, body) != digest:
        with suppress(OSError):  # the folder may be read-only by now
            path.unlink()
        return None
    line, code = body.split(b"\n", 1)
    with suppress(OSError):  # only its age is wrong then
        os.utime(path)
    return json.loads(line), code


def store(key: str, note: dict[str, Any], code: bytes) -> None:
    """Keep an entry; where the disk refuses, nothing is kept."""
    home = folder()
    if home is None:
        return
    body = json.dumps(note).encode() + b"\n" + code
    content = _MAGIC + _digest(key, body) + body
    try:
        _put(home, key, content)
        # Looking through the folder takes long: at first, then now and then.
        _since[home] = _since.get(home, limit()) + len(content)
        if _since[home] > limit() / 32:
            _since[home] = 0
            _bound(home)
    except OSError as error:
        _warn_off(str(home), error.strerror or str(error))


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; what is no file, and has nothing to read, is not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _put(home: Path, key: str, content: bytes) -> None:
    """Write an entry, whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=home, suffix=".new")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, home / f"{key}.obj")
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _digest(key: str, body: bytes) -> bytes:
    """Return the digest of an entry: its key counts, so that it serves no other."""
    return hashlib.sha256(key.encode() + b"\n" + body).digest()


def limit() -> int:
    """Return the bound on the folder [bytes]."""
    setting = os.environ.get(LIMIT, "512")
    try:
        size = float(setting) * 1e6
    except ValueError:
        size = -1.0
    if not 0 <= size < 1e18:
        raise SettingError(f"{LIMIT} must be megabytes >= 0, got '{setting}'", LIMIT)
    return int(size)


def _bound(home: Path) -> None:
    """Remove leftovers, and the least recently used entries beyond the bound."""
    entries, old = [], time.time() - _LEFT
    for item in os.scandir(home):
        if item.name.endswith((".obj", ".new")):
            try:
                state = item.stat()
            except FileNotFoundError:
                continue  # another process removed it
            left = item.name.endswith(".new") and state.st_mtime < old
            entries.append((not left, state.st_mtime, state.st_size, item.path))
    total = sum(size for _, _, size, _ in entries)
    for kept, _, size, path in sorted(entries):
        if kept and total <= limit():
            break
        with suppress(OSError):  # another process removed it, or it is a folder
            os.unlink(path)
            total -= size
