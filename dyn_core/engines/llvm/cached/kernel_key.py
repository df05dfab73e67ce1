"""The key of a kernel in the cache: everything that determines its code."""

from __future__ import annotations

import hashlib

from dyn_core.engines.llvm import host_machine
from dyn_core.engines.llvm.ir import is_single
from dyn_core.engines.llvm.kernel import Sizes


def kernel_key(graph: bytes, sizes: Sizes, width: int) -> str:
    """Return a hex digest of all that determines the kernels for one state and a batch.

    Of the lanes `width` only the type of the numbers counts.
    """
    digest = hashlib.sha256(graph)
    digest.update(repr((sizes, is_single(width))).encode())
    digest.update(host_machine.machine().key.encode())
    return digest.hexdigest()
