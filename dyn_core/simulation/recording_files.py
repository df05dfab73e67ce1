"""Recordings as NPZ files: the arrays of a run, its robot, and its contact forces.

t, q, qd, tau and names are those that dyn_core.identification.joint_record reads; names
are there where each joint has one coordinate. robot is the file or name of the robot,
root_joint how its root is held; contact_row, contact_point and contact_force have an
entry for each contact of the last step of a row.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import SettingError


def save_recording(run: Any, path: str | os.PathLike[str]) -> None:
    """Write a run as NPZ.

    Args:
        run: A Recording.
        path: File that ends with .npz; one that is there is replaced.

    Raises:
        SettingError: The name ends otherwise.
    """
    if Path(path).suffix != ".npz":
        raise SettingError(f"{path}: no name of a run; valid: FILE.npz", "path")
    arrays: dict[str, Any] = {
        name: getattr(run, name) for name in ("t", "q", "qd", "tau", "q_ref", "energy")
    }
    model = run.model
    if model is not None:
        if model.nq == len(model.joint_names):
            arrays["names"] = np.array(model.joint_names)
        source = model.source
        arrays["robot"] = np.array(source.name or source.file or "")
        arrays["root_joint"] = np.array(model.build.root_joint)
    rows, points, forces = contacts(run.reports)
    if run.reports:
        arrays |= {"contact_row": rows, "contact_point": points}
        arrays["contact_force"] = forces
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def contacts(
    reports: Sequence[Sequence[Any]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return row, point [m] and force [N] of all contacts, of each row's last step."""
    rows, points, forces = [], [], []
    for k, several in enumerate(reports):
        for contact in several[-1].contacts if len(several) else ():
            rows.append(k)
            points.append(contact.point)
            forces.append(contact.force)
    return (
        np.array(rows, int),
        np.array(points, float).reshape(-1, 3),
        np.array(forces, float).reshape(-1, 3),
    )
