"""Recall: which kernel a shipped text came to for a robot, without tracing it again.

Tracing takes longer than loading machine code. So the digest of the Graph is noted
under a digest of all it follows from: the pickled text with its robot, and the code of
this package as it is loaded in this process, changed functions included. A text, joint
or object from elsewhere may call what is not known here: it is traced every time.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import sys
from types import FunctionType
from typing import Any

import numpy as np

from dyn_core.engines import cache as disk
from dyn_core.engines import fingerprint

_OWN = ("dyn_core", "dyn_plugins")
_TRACED = (
    "dyn_core.border", "dyn_core.contact", "dyn_core.duals", "dyn_core.engines.graph",
    "dyn_core.engines.passes", "dyn_core.engines.trace",
    "dyn_core.jets", "dyn_core.matrices", "dyn_core.model", "dyn_core.operations",
    "dyn_core.planar", "dyn_core.scalar", "dyn_core.spatial", "dyn_core.system",
    "dyn_core.tasks",
    "dyn_plugins",
)  # fmt: skip
_NEUTRAL = ("builtins", "numpy", "collections", "functools", "types")


class _Pickler(pickle.Pickler):
    """Refuses what comes from other packages."""

    def reducer_override(self, value: Any) -> Any:
        """Check where a class, function or object is from."""
        kind = value if isinstance(value, (type, FunctionType)) else type(value)
        package = kind.__module__.partition(".")[0]
        if package not in (*_OWN, *_NEUTRAL):
            raise pickle.PicklingError(f"{kind} is from elsewhere")
        return NotImplemented


def key(text: Any, machine: str) -> str | None:
    """Give the name under which a text's Graph is noted, or None.

    Args:
        text: What is traced; pickled, with all it carries.
        machine: Digest of the rest that kernels depend on.
    """
    content = io.BytesIO()
    try:
        _Pickler(content, protocol=5).dump(text)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    digest = hashlib.sha256(content.getvalue())
    digest.update(fingerprint.of_code(_TRACED).encode() + machine.encode())
    digest.update(f"{sys.version} {np.__version__}".encode())
    return f"text-{digest.hexdigest()}"


def load(name: str) -> dict[str, Any] | None:
    """Give what was noted of a text."""
    found = disk.load(name)
    return None if found is None else found[0]


def store(name: str, note: dict[str, Any]) -> None:
    """Note something of a text."""
    disk.store(name, json.loads(json.dumps(note)), b"")
