"""Steps a second of MuJoCo's own rollouts, and versions of peers."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

import numpy as np

from dyn_core.commands.timing import per_call

STEPS = 16  # of a rollout, from each state


def version(name: str) -> str | None:
    """Return name and version of a distribution, None where it is missing."""
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return None


def rollout_rate(
    mj: Any,
    model: Any,
    q: np.ndarray,
    v: np.ndarray,
    force: np.ndarray,
    warm: np.ndarray | None = None,
) -> float:
    """Measure steps a second of mujoco.rollout on one thread, STEPS from each state."""
    rollout = import_module("mujoco.rollout").rollout
    rows = len(q)
    initial = np.concatenate([np.zeros((rows, 1)), q, v], axis=1)
    space = {
        "go": rollout, "m": model, "d": [mj.MjData(model)], "f": force[:, None, :],
        "spec": int(mj.mjtState.mjSTATE_QFRC_APPLIED), "w": warm, "n": STEPS,
        "out": np.empty((rows, STEPS, initial.shape[1])),
    }  # fmt: skip
    statement = (
        "go(m, d, x, f, control_spec=spec, nstep=n, initial_warmstart=w, state=out)"
    )
    return rows * STEPS / per_call(statement, [(initial,)], "x", space)
