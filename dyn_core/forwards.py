"""Methods of core objects that are implemented in optional packages, imported late.

A Program or a Recording does not import the code that exports, maps, saves or shows it.
Each function imports that package at its first call. Apart from the public names of
dyn_core, and the packages themselves, no other module imports one by name.
"""

from __future__ import annotations

import importlib
from typing import Any


def export(program: Any, folder: str, **options: Any) -> Any:
    """Write a Program as machine code or C source; see dyn_core.export.export.

    Args:
        program: Program.
        folder: Target folder.
        options: Keyword arguments of dyn_core.export.export.

    Returns:
        The result of dyn_core.export.export, which also describes the errors.
    """
    return importlib.import_module("dyn_core.export").export(program, folder, **options)


def map_rows(program: Any, *args: Any, **options: Any) -> Any:
    """Return the results of a Program for a batch, computed chunk by chunk.

    Args:
        program: Program.
        args: Inputs of the Program by position, or a function that returns them.
        options: Inputs by name, and keyword arguments of dyn_core.batch.map_rows, which
            describes results and errors, too.
    """
    batch = importlib.import_module("dyn_core.batch")
    return batch.map_rows(program, *args, **options)


def save_run(run: Any, path: Any) -> None:
    """Write a Recording to the file `path`.

    See dyn_core.recordings.save_run, also for errors.
    """
    importlib.import_module("dyn_core.recordings").save_run(run, path)


def show(robot: Any, run: Any) -> Any:
    """Return a notebook view of a Recording of a robot.

    See dyn_core.view.show, also for errors.

    Args:
        robot: Model.
        run: Recording.
    """
    return importlib.import_module("dyn_core.view").show(robot, run)
