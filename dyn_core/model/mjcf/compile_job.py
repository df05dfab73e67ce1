"""Job that runs MuJoCo's compiler: MJCF -> compiled model in MuJoCo's binary form.

It runs in a separate process, by its path, and imports nothing of dyn_core.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np


def prepare() -> None:
    """Import mujoco, before the server accepts jobs; ImportError if it is missing."""
    import mujoco  # noqa: F401


def run(
    request: Mapping[str, Any], data: bytes, ask: object
) -> tuple[dict[str, Any], bytes]:
    """Compile an MJCF and return (facts, binary model).

    The facts are `name` of the model, `remarks` (MuJoCo's warnings), `turned_meshes`
    (indices of meshes with refpos or refquat), `mesh_folder` (meshdir; empty: none) and
    `fused`, see _fused.
    If MuJoCo cannot compile the file, or `data` is not UTF-8, the only fact is
    `refused`, the reason, and the binary is empty. Other errors pass through.

    Args:
        request: `path`: file that MuJoCo reads; None if `data` has the XML.
        data: XML in UTF-8.
        ask: Not used.
    """
    import mujoco

    path = request["path"]

    def read() -> Any:
        """Return the file, or `data` without a path, as a MjSpec of one thread."""
        spec = mujoco.MjSpec
        made = spec.from_string(data.decode()) if path is None else spec.from_file(path)
        made.compiler.usethread = False  # warnings come back to this thread
        return made

    with _remarks(mujoco) as remarks:
        try:
            spec = read()
            fuses, spec.compiler.fusestatic = spec.compiler.fusestatic, False
            model = spec.compile()  # with all links
            fused = _fused(model, read().compile()) if fuses else []
        except UnicodeError:
            return {"refused": "it is not in UTF-8"}, b""
        except (ValueError, RuntimeError, mujoco.FatalError) as error:
            return {"refused": " ".join(str(error).split())}, b""
    moved = [x.id for x in spec.meshes if any(x.refpos) or any(x.refquat[1:])]
    folders = (getattr(x, "meshdir", "") for x in (spec.compiler, spec))
    facts = {
        "name": spec.modelname, "remarks": remarks, "turned_meshes": moved,
        "mesh_folder": next(filter(None, folders), ""), "fused": fused,
    }  # fmt: skip
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return facts, buffer.tobytes()


def _fused(model: Any, fused: Any) -> list[float]:
    """Return the mass that moves in a model, and in the one with fused bodies [kg].

    The list is empty if neither this mass nor the inertia of a joint differs by 1e-6 of
    its value: MuJoCo fuses bodies before it derives inertias from geoms and scales
    masses.
    """
    masses = [float(x.body_mass[x.body_weldid != 0].sum()) for x in (model, fused)]
    pairs = np.append(model.dof_M0, masses[0]), np.append(fused.dof_M0, masses[1])
    return [] if np.allclose(*pairs, rtol=1e-6, atol=1e-12) else masses


@contextmanager
def _remarks(mujoco: Any) -> Iterator[list[str]]:
    """Collect MuJoCo's warnings in a list inside a `with` block.

    Otherwise MuJoCo would print them, raise them or write them to a file. UserWarnings
    of Python are added to the list at the end; those of other categories are issued
    again then. If the block raises, Python warnings are lost.
    """
    remarks: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(remarks.append)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield remarks
        for x in caught:
            if x.category is UserWarning:
                remarks.append(str(x.message))
            else:  # of another thread
                warnings.warn_explicit(x.message, x.category, x.filename, x.lineno)
    finally:
        mujoco.set_mju_user_warning(before)
