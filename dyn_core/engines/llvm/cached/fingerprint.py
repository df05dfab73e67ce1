"""Digests of code as loaded in this process, including functions changed at run time.

Files on disk may be newer than the loaded code; a cache entry must follow from the
loaded code. Digesting is slow, comparing object identities is not: a digest is stored
with every object that it was computed from, until one of them is replaced.

A package or module whose code shapes no Graph may say so by a mark; the nearest mark on
the path of a module counts:

    RUNS_WHILE_TRACED = "never"  # no code in here runs while an algorithm is traced
    RUNS_WHILE_TRACED = "wings"  # only for algorithms that name a marked module

A module without a mark is digested for every algorithm: a forgotten mark costs time, as
processes with and without that module trace anew. A wrong mark could keep a stale
kernel; tests/engines/test_digests.py proves each.
"""

from __future__ import annotations

import copyreg
import hashlib
import marshal
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from operator import attrgetter, is_, methodcaller
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numpy as np

MARK, NEVER, WINGS = "RUNS_WHILE_TRACED", "never", "wings"
_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))
_NO_REFERENCES = 0  # the marshal version whose bytes follow from values alone
_HIDDEN = ("__func__", "__wrapped__", "fget", "func")  # attributes of wrappers
_kept: dict[tuple[str, ...], _Reading] = {}
_values = methodcaller("values")
_content = attrgetter("cell_contents")
_PARTS = tuple(map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__")))


def of_code(packages: tuple[str, ...]) -> str:
    """Return the hex digest of functions, classes and constants in loaded modules.

    Constants are plain values under any name, and the contents of tables named in upper
    case: dicts, lists, sets, tuples, arrays, records of these packages.
    """
    return _digest(packages, _loaded(packages))


class TracedModules(NamedTuple):
    """Modules by name of `traced_modules`; `wings`: `named` has a marked module."""

    wings: bool
    modules: dict[str, Any]


def traced_modules(packages: tuple[str, ...], named: Iterable[str]) -> TracedModules:
    """Return the loaded modules of packages that can run while a function is traced.

    A mark holds for a module and the modules below it that have no nearer one; on a
    top-level package it holds for its own code alone. Modules marked NEVER are left
    out; those marked WINGS, too, unless a module in `named`, those of the functions and
    classes that the function refers to, has a mark.
    """
    loaded = _loaded(packages)
    marks = {x: vars(loaded[x])[MARK] for x in loaded if MARK in vars(loaded[x])}
    # The mark of a top-level package holds for its own __init__ alone: one line cannot
    # leave out a whole distribution.
    above = tuple(f"{name}." for name in marks if "." in name)
    marked = {
        name: _nearest(name, marks)
        for name in loaded
        if name in marks or name.startswith(above)
    }
    wings = any(name in marked for name in named)
    left_out = (NEVER,) if wings else (NEVER, WINGS)
    modules = {x: loaded[x] for x in loaded if marked.get(x) not in left_out}
    return TracedModules(wings, modules)


def of_traced_code(packages: tuple[str, ...], named: Iterable[str]) -> str:
    """Return the hex digest of the modules of `traced_modules`, like `of_code`."""
    wings, modules = traced_modules(packages, named)
    return _digest((MARK, str(wings), *packages), modules)


def _loaded(packages: tuple[str, ...]) -> dict[str, Any]:
    """Return the loaded modules of packages, with all modules in them, by name."""
    inside = tuple(f"{name}." for name in packages)
    return {
        name: module
        for name, module in sys.modules.copy().items()
        if name.startswith(inside) or name in packages
    }


def _nearest(name: str, marks: Mapping[str, str]) -> str:
    """Return the mark of a module, or of the nearest package that it is in, or ""."""
    while name and name not in marks:
        name = name.rpartition(".")[0]
    return marks.get(name, "")


def _digest(key: tuple[str, ...], loaded: dict[str, Any]) -> str:
    """Return the digest of modules, the last one of the key while its reading holds."""
    kept = _kept.get(key)
    if kept is None or not kept.holds(loaded):
        kept = _kept[key] = _Reading(loaded)
    return kept.digest


class _Reading:
    """One reading of modules.

    All objects read are referenced, so that no new object can get the identity of one.
    """

    def __init__(self, loaded: dict[str, Any]) -> None:
        self._modules = frozenset(loaded)
        self._numbers: dict[int, tuple[int, Any]] = {}
        self._spaces: list[Any] = []  # mappings, with their keys, values and lengths
        self._keys: list[Any] = []
        self._entries: list[Any] = []
        self._lengths: list[int] = []
        self._lists: list[tuple[list[Any] | set[Any], list[Any]]] = []
        self._arrays: list[tuple[np.ndarray | np.generic, bytes]] = []
        self._functions: list[FunctionType] = []
        self._parts: tuple[list[Any], ...] = ([], [], [])
        self._cells: list[CellType] = []
        self._contents: list[Any] = []
        self._wrappers: list[Any] = []
        self._places: list[str] = []
        self._wrapped: list[Any] = []
        self._whole = True
        self._space(loaded)
        contents = [
            (name, self._members(vars(loaded[name]))) for name in sorted(loaded)
        ]
        content = marshal.dumps(contents, _NO_REFERENCES)
        self.digest = hashlib.sha256(content).hexdigest()

    def holds(self, loaded: dict[str, Any]) -> bool:
        """Return whether all objects that were read are still in place, by identity.

        Contents of arrays are compared, too. False also if a closure was not complete
        at the reading, or if objects change meanwhile.
        """
        spaces = [loaded, *self._spaces[1:]]
        try:
            return (
                self._whole
                and list(map(len, spaces)) == self._lengths
                and _same(chain.from_iterable(spaces), self._keys)
                and _same(chain.from_iterable(map(_values, spaces)), self._entries)
                and all(
                    _same(map(part, self._functions), seen)
                    for part, seen in zip(_PARTS, self._parts, strict=True)
                )
                and _same(map(_content, self._cells), self._contents)
                and _same(
                    map(getattr, self._wrappers, self._places, repeat(None)),
                    self._wrapped,
                )
                and all(
                    len(now) == len(then) and _same(now, then)
                    for now, then in self._lists
                )
                and all(now.tobytes() == then for now, then in self._arrays)
            )
        except (RuntimeError, ValueError, AttributeError):
            return False  # it changes while it is looked at, or is gone

    def _space(self, space: Any) -> list[tuple[str, Any]]:
        """Record a mapping, keys and values, for `holds`; return its items."""
        items = list(space.items())
        self._spaces.append(space)
        self._lengths.append(len(items))
        self._keys += [key for key, _ in items]
        self._entries += [value for _, value in items]
        return items

    def _members(self, space: Any) -> list[Any]:
        """Return (name, content) of relevant globals of a module or members of a class.

        These are functions and classes; plain values without leading "__"; objects
        named in upper case; and functions inside other objects, see _behind. Dunder
        attributes that Python changes at run time do not count. The order is that of
        the namespace, the content data for marshal.
        """
        members = []
        for name, value in self._space(space):
            kind = type(value)
            if kind is FunctionType or isinstance(value, type):
                members.append((name, self._of(value)))
            elif name[:2] != "__" and (name == name.upper() or _is_plain(value)):
                members.append((name, self._of(value)))
            else:
                members += [(name, part) for part in self._behind(value)]
        return members

    def _of(self, value: Any) -> Any:
        """Return a value as data for marshal that depends on the value alone.

        An object that was read before is a reference by number. Parts are recorded for
        `holds`. Of an object other than a plain value, tuple, set, function, class,
        dict, list, array or number of NumPy, or instance of a class of these modules
        only its name and the functions in it count, see `_behind`.
        """
        kind = type(value)
        if kind in _PLAIN:
            return value
        if id(value) in self._numbers:
            return ("again", self._numbers[id(value)][0])
        if kind is tuple:
            return ("tuple", [self._of(x) for x in value])
        if kind is frozenset:
            return ("set", [self._of(x) for x in sorted(value, key=_order)])
        self._numbers[id(value)] = len(self._numbers), value
        if kind is FunctionType:
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if kind is dict:
            items = self._space(value)
            return ("dict", [(self._of(k), self._of(x)) for k, x in items])
        if kind is list or kind is set:
            entries = list(value)
            self._lists.append((value, entries))
            ordered = entries if kind is list else sorted(entries, key=_order)
            return (kind.__name__, [self._of(x) for x in ordered])
        numeric = kind is np.ndarray or isinstance(value, np.generic)
        if numeric and value.dtype != object:
            content = value.tobytes()
            self._arrays.append((value, content))
            return ("array", value.dtype.str, value.shape, content)
        if kind.__module__ in self._modules:
            return ("record", kind.__qualname__, self._fields(value))
        name = str(getattr(value, "__name__", kind.__qualname__))
        return ("other", name, self._behind(value))

    def _function(self, function: FunctionType) -> Any:
        """Return code, defaults and contents of the closure of a function as data.

        A closure that is not yet complete makes `holds` False.
        """
        code, defaults, named = (part(function) for part in _PARTS)
        self._functions.append(function)
        for seen, part in zip(self._parts, (code, defaults, named), strict=True):
            seen.append(part)
        contents = []
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                self._whole = False  # being defined: to be read again
                continue
            self._cells.append(cell)
            self._contents.append(content)
            contents.append(self._of(content))
        return ("function", code, self._of(defaults), self._of(named), contents)

    def _class(self, kind: type) -> Any:
        """Return module, name, bases and `_members` of a class of these modules.

        For another class it is only (module, name).
        """
        name = (kind.__module__, kind.__qualname__)
        if kind.__module__ not in self._modules:
            return name
        # The first copy of an instance would store this in the class, as a new member.
        copyreg._slotnames(kind)  # type: ignore[attr-defined]
        bases = [self._of(base) for base in kind.__bases__]
        return (*name, bases, self._members(vars(kind)))

    def _fields(self, record: Any) -> list[Any]:
        """Return (name, content) of each field of a record with named fields or slots.

        The content is data for marshal, None for a field that is not set.
        """
        names = getattr(record, "__dataclass_fields__", getattr(record, "_fields", ()))
        if not names:
            slots = [vars(kind).get("__slots__", ()) for kind in type(record).__mro__]
            names = [y for x in slots for y in ((x,) if isinstance(x, str) else x)]
        contents = [getattr(record, name, None) for name in names]
        self._wrappers += [record] * len(contents)
        self._places += names
        self._wrapped += contents
        return [(x, self._of(y)) for x, y in zip(names, contents, strict=True)]

    def _behind(self, value: Any) -> list[Any]:
        """Return functions inside a wrapper as data for marshal; record them for holds.

        A wrapper is a property (only its getter is read), a method, a cached function
        or a partial, whose arguments come first.
        """
        functions = []
        if type(value) is partial:
            functions += [self._of(value.args), self._of(value.keywords)]
        for place in _HIDDEN:
            function = getattr(value, place, None)
            if type(function) is FunctionType:
                self._wrappers.append(value)
                self._places.append(place)
                self._wrapped.append(function)
                functions.append(self._of(function))
        return functions


def _is_plain(value: Any) -> bool:
    """Return whether a value of no subclass is plain, or a flat tuple of plain ones."""
    if type(value) is tuple:
        return all(type(x) in _PLAIN for x in value)
    return type(value) in _PLAIN


def _order(value: Any) -> str:
    """Return a text by which members of a set are sorted, equal in every process."""
    if type(value) in _PLAIN:
        return repr(value)
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _same(now: Iterable[Any], then: Sequence[Any]) -> bool:
    """Return whether two sequences contain the same objects in order, by identity.

    What one sequence has behind the end of the other is not compared.
    """
    return all(map(is_, now, then))
