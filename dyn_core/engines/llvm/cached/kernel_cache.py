"""Object code on disk, found by the digest of its inputs.

A folder that other users can write could bring in foreign code: then nothing is read or
written there. Entries contain a digest of their key and content, and appear by one
rename; damaged ones, and ones of another key, are removed and made again. The least
recently used entries are removed when the folder exceeds its limit.
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

FOLDER = "DYN_CACHE_DIR"  # environment variable: folder of entries, or "off"
LIMIT = "DYN_CACHE_LIMIT"  # environment variable: maximum size of the folder [MB]
_MAGIC = b"dyn object 2\n"
_DIGEST_SIZE = 32
_LEFT = 3600.0  # age above which an unfinished entry is removed [s]
_since: dict[Path, int] = {}  # bytes written since the last clean-up, by folder


def folder() -> Path | None:
    """Return the folder of the cache, or None if it is off or not usable.

    It is DYN_CACHE_DIR, by default dyn_ros in XDG_CACHE_HOME (if that is an absolute
    path) or in ~/.cache, and is created if needed. It is off if DYN_CACHE_DIR is "off"
    or empty. A folder that cannot be written, belongs to another user, or is open to
    others, also for reading, is not usable; it causes one warning.
    """
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
    """Warn, once for equal arguments, that code is not cached in a folder, and why."""
    warn(f"compiled kernels are not kept: {path}: {why}; {FOLDER} names another folder")


@once
def _usable(path: Path) -> bool:
    """Return whether a folder, created if needed, is writeable and this user's alone.

    It is checked once in a process. If it is not usable, a warning gives the reason.
    """
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
    """Return (note, object code) of an entry; None if there is no valid one.

    None also if the cache is off, or the file belongs to another user. A read entry
    counts as recently used; a damaged one is removed. Nothing is raised for files that
    cannot be read.

    Args:
        key: Key of the entry; its file is KEY.obj.
    """
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
    """Write an entry KEY.obj; nothing is written if the cache is off.

    If the disk refuses, there is one warning. Old entries may be removed, see `limit`.
    """
    home = folder()
    if home is None:
        return
    body = json.dumps(note).encode() + b"\n" + code
    content = _MAGIC + _digest(key, body) + body
    try:
        _put(home, key, content)
        # Cleaning up is slow: it is done at the first entry, then after each 1/32 of
        # the limit.
        _since[home] = _since.get(home, limit()) + len(content)
        if _since[home] > limit() / 32:
            _since[home] = 0
            remove(home, limit())
    except OSError as error:
        _warn_off(str(home), error.strerror or str(error))


def _open_at_once(path: str, flags: int) -> int:
    """Return the descriptor of a file; opening a pipe without data does not block."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _put(home: Path, key: str, content: bytes) -> None:
    """Write an entry completely or not at all; OSError if the disk refuses."""
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
    """Return the SHA-256 digest of an entry's key and content, 32 bytes.

    With the key in it, a file under another name is not valid.
    """
    return hashlib.sha256(key.encode() + b"\n" + body).digest()


def limit() -> int:
    """Return the maximum size of the folder [bytes], by default 512 MB.

    DYN_CACHE_LIMIT is in megabytes of 10**6 bytes.

    Raises:
        SettingError: DYN_CACHE_LIMIT is not a number >= 0 and below 1e12.
    """
    setting = os.environ.get(LIMIT, "512")
    try:
        size = float(setting) * 1e6
    except ValueError:
        size = -1.0
    if not 0 <= size < 1e18:
        raise SettingError(f"{LIMIT} must be megabytes >= 0, got '{setting}'", LIMIT)
    return int(size)


def remove(home: Path, maximum: float) -> tuple[int, int]:
    """Remove unfinished files older than an hour, and entries beyond a size [bytes].

    Returns number and size [bytes] of the entries that remain. The least recently used
    entries are removed first; a maximum of infinity removes none, 0 all. A file that
    cannot be removed raises nothing and counts as one that remains.
    """
    entries, old = [], time.time() - _LEFT
    for item in os.scandir(home):
        if item.name.endswith((".obj", ".new")) and item.is_file():
            try:
                state = item.stat()
            except FileNotFoundError:
                continue  # another process removed it
            left = item.name.endswith(".new")
            if left and state.st_mtime >= old:
                continue  # a process may be writing it
            entries.append((not left, state.st_mtime, state.st_size, item.path))
    count, total = len(entries), sum(size for _, _, size, _ in entries)
    for kept, _, size, path in sorted(entries):
        if kept and total <= maximum:
            break
        with suppress(OSError):  # another process removed it
            os.unlink(path)
            count, total = count - 1, total - size
    return count, total
