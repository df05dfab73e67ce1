"""Which kernel a shipped algorithm has for a robot, without tracing it again.

Tracing takes longer than loading machine code. So the digest of the Graph is stored
under a digest of all it follows from: the pickled function with its robot, and the code
of this package as it is loaded in this process, changed functions included. An
algorithm, joint or object from elsewhere may call what is not known here: it is traced
every time.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from dyn_core.engines.llvm.cached import fingerprint, kernel_cache

_PACKAGES = ("dyn_core", "dyn_plugins")
# Modules and packages that can run while an algorithm is traced. That none is left out
# is tested in tests/engines/test_digests.py.
_TRACED = (
    "dyn_core.contact",
    "dyn_core.control.safety.envelope",
    "dyn_core.engines.graph",
    "dyn_core.export.cycle.cycle_steps",
    "dyn_core.export.cycle.cycle_algorithms",
    "dyn_core.model",
    "dyn_core.numbers",
    "dyn_core.planar",
    "dyn_core.problems",
    "dyn_core.recordings.energy",
    "dyn_core.sharing",
    "dyn_core.solving.adapter",
    "dyn_core.solving.build_options",
    "dyn_core.solving.solver",
    "dyn_core.spatial",
    "dyn_core.tasks",
    "dyn_core.validation",
    "dyn_plugins",
)
_NEUTRAL = ("builtins", "numpy", "collections", "functools", "types")


class GraphFacts(NamedTuple):
    """What must be known of a Graph to find and call its kernels.

    Attributes:
        kernel: Key of the kernels; empty where there can be none.
        checked: Whether the algorithm requires something.
        calls: Whether it calls Programs, which machine code cannot.
        graph: Digest of the Graph, the same on every machine; empty where it calls
            Programs.
    """

    kernel: str
    checked: bool
    calls: bool
    graph: str


class _Pickler(pickle.Pickler):
    """Refuses what comes from other packages."""

    def reducer_override(self, value: Any) -> Any:
        """Check where a class, function or object is from."""
        kind = value if isinstance(value, (type, FunctionType)) else type(value)
        package = kind.__module__.partition(".")[0]
        if package not in (*_PACKAGES, *_NEUTRAL):
            raise pickle.PicklingError(f"{kind} is from elsewhere")
        return NotImplemented


def key(function: Any, machine: str) -> str | None:
    """Return the name under which a function's Graph is stored, or None.

    Args:
        function: What is traced; pickled, with all it carries.
        machine: Digest of the rest that kernels depend on.
    """
    content = io.BytesIO()
    try:
        _Pickler(content, protocol=5).dump(function)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    digest = hashlib.sha256(content.getvalue())
    digest.update(fingerprint.of_code(_TRACED).encode() + machine.encode())
    digest.update(f"{sys.version} {np.__version__} {GraphFacts._fields}".encode())
    return f"trace-{digest.hexdigest()}"


def load(name: str | None) -> GraphFacts | None:
    """Return the facts stored under a name; None if there are none."""
    entry = None if name is None else kernel_cache.load(name)
    return None if entry is None else GraphFacts(**entry[0])


def store(name: str | None, facts: GraphFacts) -> None:
    """Store facts under a name, if there is one."""
    if name is not None:
        kernel_cache.store(name, facts._asdict(), b"")
