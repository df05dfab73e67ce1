"""The command `dyn cache`: place and size of compiled code on disk, and its removal."""

from __future__ import annotations

import argparse
import math

from dyn_core.engines.llvm.cached.kernel_cache import (
    FOLDER,
    LIMIT,
    folder,
    limit,
    remove,
)


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add the argument --clear of `dyn cache`, and its function as `run`."""
    parser.add_argument("--clear", action="store_true", help="remove all entries")
    parser.set_defaults(run=_cache)


def _cache(arguments: argparse.Namespace) -> int:
    """Print place, size and limit of the cache, or that none is in use; return 0.

    --clear removes all entries before, and prints how much that was. Where a cache is
    in use, unfinished files older than an hour are always removed.
    """
    home = folder()
    if home is None:
        print(f"off; {FOLDER} names a folder that belongs to you alone")
        return 0
    before = remove(home, math.inf)
    after = remove(home, 0) if arguments.clear else before
    print(f"folder  {home} ({FOLDER} names another; off: none)")
    print(f"size    {after[1] / 1e6:.3f} MB in {after[0]} entries")
    print(f"limit   {limit() / 1e6:g} MB ({LIMIT} sets another)")
    if arguments.clear:
        count, size = before[0] - after[0], before[1] - after[1]
        print(f"removed {size / 1e6:.3f} MB in {count} entries")
    return 0
