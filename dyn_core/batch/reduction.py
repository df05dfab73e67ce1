"""Reductions of a batch: from results to a small value, and from two values to one."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dyn_core.batch.program_facts import code_digest
from dyn_core.engines.results import make_result
from dyn_core.errors import SettingError

Combine = Callable[[Any, Any], Any]

_TESTED_ROWS = 64  # of the first results, in two halves
_UFUNCS = {max: np.maximum, min: np.minimum}  # what is meant by functions of Python


class Reduction:
    """A reduction of results to a small value.

    `function` is a ufunc of two arguments, which reduces over the rows, or a function
    of the results of some rows that returns numbers or arrays: one, a tuple or a
    mapping. `combine` is a ufunc or a function of two such values; as argument None:
    the ufunc of `function`, else np.add.
    """

    def __init__(self, function: Any, combine: Any = None) -> None:
        for name, value in (("reduce", function), ("combine", combine)):
            if isinstance(value, type(max)) and value in _UFUNCS:
                valid = f"valid: np.{_UFUNCS[value].__name__}"
                raise SettingError(f"{name} is {value!r}; {valid}", name)
        ufunc = isinstance(function, np.ufunc)
        if not callable(function) or (ufunc and function.nin != 2):
            message = (
                "valid: a ufunc of two arguments, such as np.maximum, or a function"
            )
            raise SettingError(f"reduce is {function!r}; {message}", "reduce")
        if combine is not None and not callable(combine):
            raise SettingError(f"combine is {combine!r}; valid: a function", "combine")
        self.function = function
        self.combine = (function if ufunc else np.add) if combine is None else combine
        self._assumed = combine is None and not ufunc  # that values add up

    def __call__(self, results: Any) -> Any:
        """Return the value of the results of some rows.

        A ufunc reduces each array along its rows: the value is one array or number, or
        a named tuple. The value of a function is copied; a list becomes a tuple, a
        mapping a dict with keys of str. Without `combine` the first call also calls
        the function with some of the rows, to test whether its values add up.

        Args:
            results: Array (rows, ...) of one output, or a named tuple of several; at
                least one row.

        Raises:
            SettingError: The function returns anything but real numbers, or values
                that do not add up although no `combine` was given.
            Exception: Errors of the function pass through.
        """
        if not isinstance(self.function, np.ufunc):
            if self._assumed:
                self._assumed = False
                self._require_sums(results)
            return _checked(self.function(results))
        if isinstance(results, tuple):
            parts = [self.function.reduce(x, axis=0) for x in results]
            return make_result(results._fields, parts)  # type: ignore[attr-defined]
        return self.function.reduce(results, axis=0)

    def add(self, before: Any, value: Any) -> Any:
        """Return `before` combined with `value`; if one is None, the other.

        They have the same form; a ufunc drops keys that only `before` has.
        """
        if before is None or value is None:
            return value if before is None else before
        if not isinstance(self.combine, np.ufunc):
            return _checked(self.combine(before, value))
        if isinstance(value, Mapping):
            return {k: self.combine(before[k], x) for k, x in value.items()}
        if not isinstance(value, tuple):
            return self.combine(before, value)
        pairs = zip(before, value, strict=True)
        return _like(value, [self.combine(x, y) for x, y in pairs])

    def _require_sums(self, results: Any) -> None:
        """Raise SettingError if the values of two halves of the rows do not add up.

        A maximum or a mean would be added over the chunks. At most the first 64 rows
        are used. A single row, and functions that refuse so few rows, are not tested.
        """
        several = isinstance(results, tuple)
        rows = min(len(results[0] if several else results), _TESTED_ROWS)
        if rows < 2:
            return
        values = []
        try:
            for cut in (slice(rows), slice(rows // 2), slice(rows // 2, rows)):
                part = [x[cut] for x in results] if several else results[cut]
                part = _like(results, part) if several else part
                values.append(_checked(self.function(part)))
            good = _add_up(*values)
        except Exception:
            return
        if not good:
            name = getattr(self.function, "__name__", self.function)
            raise SettingError(
                f"reduce is {name!r}: its values of two halves of the first {rows} "
                "rows do not add up to that of all of these; valid: combine=, such as "
                "combine=np.maximum; a ufunc, such as reduce=np.maximum; for a mean "
                "sums, as lambda x: (len(x), x.sum(axis=0))",
                "reduce",
            )

    def facts(self) -> dict[str, str]:
        """Return name and code_digest of each function, by "reduce" and "combine"."""
        return {
            "reduce": code_digest(self.function),
            "combine": code_digest(self.combine),
        }


class OrderedFold:
    """Combination of the values of chunks in the order of their indices.

    Values behind a missing chunk are stored until it comes; `value` combines all before
    the first missing one, and is None at first. Without a reduction values are ignored.
    """

    def __init__(self, reduction: Reduction | None) -> None:
        self.reduction, self.value = reduction, None
        self._ahead: dict[int, Any] = {}
        self._next = 0

    def add(self, k: int, value: Any) -> None:
        """Add the value of chunk k, None if all its rows failed, in any order of k.

        Each k comes once, which is not checked. Errors of Reduction.add may come when
        a missing earlier chunk is added.
        """
        if self.reduction is None:
            return
        self._ahead[k] = value
        while self._next in self._ahead:
            part = self._ahead.pop(self._next)
            self.value = self.reduction.add(self.value, part)
            self._next += 1


def _add_up(whole: Any, first: Any, rest: Any) -> bool:
    """Return whether the entries of a reduced value are sums of those of two others.

    The error may be 1e-3 of the largest finite |whole| + |first| + |rest| of the array,
    so that sums of float32 add up; NaN equals NaN. Values of different keys or length
    raise KeyError or ValueError.
    """
    if isinstance(whole, Mapping):
        keys = whole.keys() | first.keys() | rest.keys()
        return all(_add_up(whole[k], first[k], rest[k]) for k in keys)
    if isinstance(whole, tuple):
        trios = zip(whole, first, rest, strict=True)
        return all(_add_up(*trio) for trio in trios)
    if not np.shape(whole) == np.shape(first) == np.shape(rest):
        return False
    with np.errstate(all="ignore"):
        a, b, c = (np.asarray(x, float) for x in (whole, first, rest))
        total, size = np.asarray(np.add(first, rest), float), abs(a) + abs(b) + abs(c)
    largest = np.max(size[np.isfinite(size)], initial=0.0)
    return np.allclose(a, total, rtol=0.0, atol=1e-3 * largest, equal_nan=True)


def _checked(value: Any) -> Any:
    """Return a copy of a reduced value, since the result buffers are reused.

    A list becomes a tuple, a mapping a dict with keys of str; a named tuple keeps its
    fields. Entries become arrays or NumPy scalars, see _copied.
    """
    if isinstance(value, Mapping):
        return {str(k): _copied(x) for k, x in value.items()}
    if isinstance(value, tuple | list):
        return _like(value, [_copied(x) for x in value])
    return _copied(value)


def _copied(part: Any) -> Any:
    """Return a copy of an array of real numbers; a 0-d one becomes a NumPy scalar."""
    try:
        array = np.array(part)
    except ValueError:  # ragged
        array = np.array(None)
    if array.dtype.kind not in "fiub":
        message = "valid: numbers or arrays, one, in a tuple or in a mapping"
        raise SettingError(
            f"reduce returned {type(part).__name__}; {message}", "reduce"
        )
    return array if array.ndim else array[()]


def _like(value: Any, parts: list[Any]) -> Any:
    """Return parts as a tuple; for a named tuple `value`, as one with its field names.

    That is a named tuple of another type.
    """
    fields = getattr(value, "_fields", None)
    return tuple(parts) if fields is None else make_result(fields, parts)


def packed(value: Any) -> Any:
    """Return a reduced value as JSON data that keeps form and bits; None for None.

    The data is {"array": A}, {"mapping": {key: A}} or {"tuple": [A, ...], "fields":
    names of a named tuple, else []}; A is the base64 text of a .npy file. Raises
    ValueError for an entry that NumPy makes an array of objects.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {"mapping": {k: _array(x) for k, x in value.items()}}
    if isinstance(value, tuple):
        fields = list(getattr(value, "_fields", ()))
        return {"tuple": [_array(x) for x in value], "fields": fields}
    return {"array": _array(value)}


def unpacked(kept: Any) -> Any:
    """Return the value of the JSON data of `packed`, in its form; None for None."""
    if kept is None:
        return None
    if "mapping" in kept:
        return {k: _number(x) for k, x in kept["mapping"].items()}
    if "array" in kept:
        return _number(kept["array"])
    parts = [_number(x) for x in kept["tuple"]]
    return make_result(tuple(kept["fields"]), parts) if kept["fields"] else tuple(parts)


def _array(value: Any) -> str:
    file = io.BytesIO()
    np.save(file, np.asarray(value), allow_pickle=False)
    return base64.b64encode(file.getvalue()).decode()


def _number(kept: str) -> Any:
    array = np.load(io.BytesIO(base64.b64decode(kept)), allow_pickle=False)
    return array if array.ndim else array[()]
