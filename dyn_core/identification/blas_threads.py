"""One BLAS thread for many small matrices, where several threads are slower.

The threads of OpenBLAS wait for each other by spinning. On a busy machine a fit with
some hundred small factorisations takes a hundred times longer with them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dyn_core.sharing import CommonSetting, once

_NAMES = tuple(
    (
        f"{prefix}openblas_get_num_threads{suffix}",
        f"{prefix}openblas_set_num_threads{suffix}",
    )
    for prefix in ("scipy_", "")
    for suffix in ("64_", "")
)
Switch = tuple[Callable[[], int], Callable[[int], None]]  # reads, sets the threads


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Set the OpenBLAS libraries of NumPy and SciPy to one thread, as a context.

    The setting applies to the whole process, until the last such context ends.
    """
    with _ONE_THREAD:
        yield


def _take_one() -> list[int]:
    """Set each library to one thread; return the previous numbers for _set_back."""
    before = [read() for read, _ in _switches()]
    _set_back([1] * len(before))
    return before


def _set_back(counts: list[int]) -> None:
    """Set each library's number of threads to `counts`, in the order of _switches()."""
    for (_, set_threads), count in zip(_switches(), counts, strict=True):
        set_threads(count)


_ONE_THREAD = CommonSetting(_take_one, _set_back)


@once
def _switches() -> tuple[Switch, ...]:
    """Return (read, set) functions for each OpenBLAS installed with NumPy or SciPy."""
    import scipy

    switches: list[Switch | None] = []
    for package in (np, scipy):
        folder = Path(str(package.__file__)).parent
        for libs in (folder.with_name(f"{folder.name}.libs"), folder / ".dylibs"):
            switches += [_switch(path) for path in sorted(libs.glob("*openblas*"))]
    return tuple(x for x in switches if x is not None)


def _switch(path: Path) -> Switch | None:
    """Return functions that read and set a library's number of threads, or None."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None
    for read, write in _NAMES:
        if hasattr(library, read) and hasattr(library, write):
            return getattr(library, read), getattr(library, write)
    return None
