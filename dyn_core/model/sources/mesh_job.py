"""Job that reads meshes with coal: a file of any kind it supports -> vertices.

It runs in a separate process, by its path, and imports nothing of dyn_core: the reader,
and the bounding volumes that coal builds with it, crash on some files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np


def prepare() -> None:
    """Import coal, before the server accepts jobs; ImportError if it is missing."""
    import coal  # noqa: F401


def run(
    request: Mapping[str, Any], data: bytes, ask: object
) -> tuple[dict[str, Any], bytes]:
    """Return ({}, vertices) of a mesh, or ({refused: reason}, b"").

    The vertices are float64 values (n, 3) in C order, read with scale 1. A
    ValueError or RuntimeError of coal is a refusal; other errors pass through.

    Args:
        request: `path` of the file.
        data, ask: Not used.
    """
    import coal

    stderr, silent = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)  # assimp talks there
    try:
        corners = coal.MeshLoader().load(request["path"], np.ones(3)).vertices()
    except (ValueError, RuntimeError) as error:
        return {"refused": " ".join(str(error).split())}, b""
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(silent)
    return {}, np.ascontiguousarray(corners, float).tobytes()
