"""Methods of core objects whose work lies in wings: the only late imports of the core.

A Program, or a Recording, knows nothing of what exports, maps, saves or shows it. Each
function imports its wing when it is first called. Beside the face of dyn_core, and the
names of wings themselves, no other module imports one by name.
"""

from __future__ import annotations

import importlib
from typing import Any


def export(program: Any, folder: str, **options: Any) -> Any:
    """Write a Program as machine code or C source; see dyn_core.export."""
    return importlib.import_module("dyn_core.export").export(program, folder, **options)


def map_rows(program: Any, *args: Any, **options: Any) -> Any:
    """Call a Program chunk by chunk; see dyn_core.batch.map_rows."""
    batch = importlib.import_module("dyn_core.batch")
    return batch.map_rows(program, *args, **options)


def save_run(run: Any, path: Any) -> None:
    """Write a Recording to a file; see dyn_core.recordings."""
    importlib.import_module("dyn_core.recordings").save_run(run, path)


def show(robot: Any, run: Any) -> Any:
    """Return a view of a Recording; see dyn_core.view."""
    return importlib.import_module("dyn_core.view").show(robot, run)
