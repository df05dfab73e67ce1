"""Digests of code as it is loaded in this process, changed functions included.

Files on disk may be newer than what runs; a cache entry must follow from what runs.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
from types import FunctionType
from typing import Any

_PLAIN = frozenset((bool, int, float, str, bytes, type(None)))
_NO_REFERENCES = 0  # the marshal version whose bytes follow from values alone


def of_code(modules: tuple[str, ...]) -> str:
    """Give the digest of what modules hold: functions, classes, plain constants.

    Args:
        modules: How the names of the modules begin.
    """
    found: list[Any] = []
    for name in sorted(sys.modules):
        if name.startswith(modules):
            for attribute, value in vars(sys.modules[name]).items():
                _add(found, attribute, value, name)
    return hashlib.sha256(marshal.dumps(found, _NO_REFERENCES)).hexdigest()


def _add(found: list[Any], name: str, value: Any, module: str) -> None:
    """Add a global of a module, or a member of a class."""
    kind = type(value)
    if kind in _PLAIN:
        if name[:2] != "__":
            found.append((name, value))
    elif kind is FunctionType:
        defaults = [x for x in value.__defaults__ or () if type(x) in _PLAIN]
        found.append((name, defaults, value.__code__))
    elif isinstance(value, type):
        if value.__module__ == module:
            for inner, member in vars(value).items():
                if type(member) not in _PLAIN:
                    _add(found, inner, member, module)
    elif kind is tuple and all(type(x) in _PLAIN for x in value):
        found.append((name, value))
    else:
        for hidden in ("__func__", "__wrapped__", "fget", "func"):
            if isinstance(getattr(value, hidden, None), FunctionType):
                _add(found, name, getattr(value, hidden), module)
