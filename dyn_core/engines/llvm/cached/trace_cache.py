"""Kernel keys of shipped algorithms for a robot, cached to avoid tracing.

Tracing takes longer than loading machine code. So the digest of the Graph is stored
under a digest of everything it follows from: the pickled function with its robot, and
the code of these packages as loaded in this process, changed functions included. All
modules count but those with a mark (fingerprint.py). An algorithm, joint or object from
another package may call unknown code: it is traced every time.
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
_NEUTRAL = ("builtins", "numpy", "collections", "functools", "types")


class GraphFacts(NamedTuple):
    """Properties of a Graph that are needed to find and call its kernels.

    `kernel` is their key, empty if there can be none; `graph` a hex digest, equal on
    every machine, empty if it `calls` Programs; `checked`: it has requirements.
    """

    kernel: str
    checked: bool
    calls: bool
    graph: str


class _Pickler(pickle.Pickler):
    """A pickler that refuses objects of other packages by PicklingError."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.modules: set[str] = set()

    def reducer_override(self, value: Any) -> Any:
        """Add the module of an object to `modules`, and let it be pickled as usual.

        A class, function or object of another package raises PicklingError.
        """
        kind = value if isinstance(value, (type, FunctionType)) else type(value)
        package = kind.__module__.partition(".")[0]
        if package not in (*_PACKAGES, *_NEUTRAL):
            raise pickle.PicklingError(f"{kind} is from elsewhere")
        self.modules.add(kind.__module__)
        return NotImplemented


def key(function: Any, machine: str) -> str | None:
    """Return "trace-" and a digest, the name for facts of a pickled function's Graph.

    `machine` is the digest of everything else that kernels depend on. None if it must
    be traced every time: it cannot be pickled or contains objects of other packages.
    """
    content = io.BytesIO()
    pickler = _Pickler(content)
    try:
        pickler.dump(function)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    digest = hashlib.sha256(content.getvalue())
    code = fingerprint.of_traced_code(_PACKAGES, pickler.modules)
    digest.update(code.encode() + machine.encode())
    digest.update(f"{sys.version} {np.__version__} {GraphFacts._fields}".encode())
    return f"trace-{digest.hexdigest()}"


def load(name: str | None) -> GraphFacts | None:
    """Return the facts stored under a name; None if there are none, or no name."""
    entry = None if name is None else kernel_cache.load(name)
    return None if entry is None else GraphFacts(**entry[0])


def store(name: str | None, facts: GraphFacts) -> None:
    """Store facts under a name, unless it is None or the cache is off."""
    if name is not None:
        kernel_cache.store(name, facts._asdict(), b"")
