"""Vertices of mesh files, checked before any library computes with them.

STL and OBJ are read here; files of other kinds by coal, in a separate process.
"""

from __future__ import annotations

import importlib.util
import re
import struct
from pathlib import Path

import numpy as np

from dyn_core.errors import why_unread
from dyn_core.model.sources.bounded_process import JobError, run_job
from dyn_core.validation import shown

SIZE = 100_000_000  # bytes of a file
LONGEST = 1e9  # maximum coordinate [m]
_FLAT = 1e-7  # ratio of thickness to length below which a mesh has no hull
_PER_BYTE = 1e-6  # allowed time of coal: ten times the time of a large mesh [s/byte]
_JOB = Path(__file__).with_name("mesh_job.py")
_HEAD = 1_000_000  # bytes of a .dae in which its unit is searched
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_UNIT = re.compile(rb"<unit\b[^>]*?\bmeter\s*=\s*([\"'])(.*?)\1")
_VERTEX = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)


def mesh_unit(path: Path) -> float:
    """Return the length unit of a mesh file [m]: the <unit> of a .dae, else 1.

    ValueError: The unit is no finite number above 0. OSError: The file cannot be read.
    """
    if path.suffix.lower() != ".dae":
        return 1.0
    with path.open("rb") as file:
        start = _COMMENT.sub(b"", file.read(_HEAD))
    named = _UNIT.search(start.partition(b"</asset>")[0])
    text = "1" if named is None else named[2].decode("utf-8", "replace")
    try:
        unit = float(text)
    except ValueError:
        unit = 0.0
    if not (np.isfinite(unit) and unit > 0):
        raise ValueError(f"its unit is {shown(text)}; valid: metres, above 0")
    return unit


def mesh_corners(path: Path) -> np.ndarray:
    """Return the distinct vertices of the faces of a mesh, (n, 3) [m], by first use.

    The suffix decides how the file is read; a file without a unit is in m. ValueError:
    The file cannot be read or used; the message is a clause about the mesh.
    """
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= SIZE else b""
        unit = mesh_unit(path)
    except OSError as error:
        raise ValueError(why_unread(error)) from error
    if size > SIZE:
        raise ValueError(f"it is larger than {SIZE // 1_000_000} MB")
    suffix = path.suffix.lower()
    if suffix == ".stl":
        corners = _stl_corners(content)
    elif suffix == ".obj":
        corners = _obj_corners(content)
    else:
        corners = _other_corners(path) * unit
    if not len(corners):
        raise ValueError("it has no faces")
    if not np.isfinite(corners).all() or np.abs(corners).max() > LONGEST:
        raise ValueError(f"a corner is not finite, or farther away than {LONGEST:g} m")
    _, first = np.unique(corners, axis=0, return_index=True)
    return np.asarray(corners[np.sort(first)])


def check_solid(corners: np.ndarray) -> None:
    """Raise ValueError for < 4 vertices, or a plane up to 1e-7 of their size."""
    around = corners - corners.mean(axis=0)
    length = float(np.abs(around).max())
    thickness = 0.0
    if length > 0:
        spread = np.linalg.eigvalsh(np.cov((around / length).T, bias=True))
        thickness = float(np.sqrt(max(spread[0], 0.0)))
    if len(corners) < 4 or thickness < _FLAT:
        raise ValueError(
            "it has no volume: its corners lie in one plane, or there are fewer than 4"
        )


def _numbers(rows: list[list[bytes]]) -> np.ndarray:
    """Return rows of three numbers as an array (n, 3), rounded to single precision.

    A binary STL has no more digits, and other mesh readers use no more. ValueError for
    entries that are not three numbers.
    """
    try:
        with np.errstate(over="ignore"):
            corners = np.array(rows, float).reshape(len(rows), 3)
            return corners.astype(np.float32).astype(float)
    except ValueError as error:
        raise ValueError("a corner has something else than three numbers") from error


def _stl_corners(content: bytes) -> np.ndarray:
    """Return the vertices of a binary or ASCII STL, (n, 3), three for each face.

    n is 0 for a binary file that is cut off; ValueError for an invalid vertex.
    """
    count = struct.unpack_from("<I", content, 80)[0] if len(content) >= 84 else 0
    size = 84 + 50 * count
    # Some binary files also begin with "solid": the size decides.
    text = content.lstrip().startswith(b"solid") and len(content) != size
    if count and len(content) >= size and not text:
        rows = np.frombuffer(content, np.uint8, 50 * count, 84).reshape(count, 50)
        return rows[:, 12:48].copy().view("<f4").reshape(-1, 3).astype(float)
    return _numbers([list(x) for x in _VERTEX.findall(content)])


def _obj_corners(content: bytes) -> np.ndarray:
    """Return the vertices of the faces of an OBJ, (n, 3), repeated for each face.

    ValueError for an invalid vertex, or index of a face.
    """
    rows: list[list[bytes]] = []
    used: list[int] = []
    for line in content.replace(b"\\\n", b" ").splitlines():
        entries = line.split()
        if entries[:1] == [b"v"]:
            rows.append(entries[1:4])
        elif entries[:1] == [b"f"]:
            for entry in entries[1:]:
                used.append(_corner(entry, len(rows)))
    corners = _numbers(rows)
    return corners[np.array(used, int)] if used else corners[:0]


def _corner(entry: bytes, count: int) -> int:
    """Return the index, from 0, of a face's vertex in an OBJ, else ValueError.

    The entry, such as 3, -1 or 3/1/2, counts from 1, or if negative back from the last
    vertex.
    """
    try:
        number = int(entry.partition(b"/")[0])
    except ValueError as error:
        raise ValueError("a face names a corner by something else than a number") from (
            error
        )
    index = number - 1 if number > 0 else count + number
    if not 0 <= index < count or number == 0:
        raise ValueError(f"a face names corner {number} of {count}")
    return index


def _other_corners(path: Path) -> np.ndarray:
    """Return the vertices (n, 3) of another kind of mesh, such as DAE, read by coal.

    They are in the unit of the file. ValueError if coal is not installed, refuses the
    file, crashes, or exceeds its time or memory.
    """
    if importlib.util.find_spec("coal") is None:
        raise ValueError(
            f"{path.suffix} files need coal: pip install 'dyn_ros[collision]'; valid"
            " without it: .stl, .obj"
        )
    try:
        limit = 4.0 + _PER_BYTE * path.stat().st_size
        facts, data = run_job(_JOB, {"path": str(path.absolute())}, limit=limit)
    except JobError as error:
        raise ValueError(f"reading it by coal {error}") from error
    if "refused" in facts:
        raise ValueError(facts["refused"])
    return np.frombuffer(data, float).reshape(-1, 3)
