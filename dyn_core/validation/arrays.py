"""Arguments of public functions: keywords, and arrays such as states and parameters."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import ModelError, SettingError, ShapeError, unknown_name
from dyn_core.validation.tables import shown

_Target = TypeVar("_Target", bound=Callable[..., Any])


def known_keywords(target: _Target) -> _Target:
    """Decorate a class or function so that unknown keywords raise a SettingError.

    On a class it wraps `__init__` in place, returns the class, and stands above
    @dataclass; of a function it returns a wrapper. More arguments by position than it
    has raise one, too. A target that accepts **kwargs cannot be decorated: the function
    that receives them must check them.

    Raises:
        TypeError: At decoration: the target accepts **kwargs.
        SettingError: At each call: there is no such keyword; names the nearest keyword,
            then all valid ones.
    """
    call: Any = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
    entries = list(signature(call).parameters.values())
    bound = int(bool(entries) and entries[0].name == "self")
    entries = entries[bound:]
    if any(entry.kind is Parameter.VAR_KEYWORD for entry in entries):
        raise TypeError(f"{target.__name__} takes any keyword: nothing is unknown")
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    valid = [entry.name for entry in entries if entry.kind in named]
    known, name = frozenset(valid), target.__name__
    ordered = [x.name for x in entries if x.kind <= Parameter.POSITIONAL_OR_KEYWORD]
    free = any(x.kind is Parameter.VAR_POSITIONAL for x in entries)
    most = sys.maxsize if free else len(ordered) + bound

    @wraps(call)
    def checked(*args: Any, **settings: Any) -> Any:
        """Call the target; SettingError for an unknown keyword or too many values."""
        if not known.issuperset(settings):
            check_keywords(name, settings, valid)
        if len(args) > most:
            named = ", ".join(x for x in valid if x not in ordered) or "none"
            raise SettingError(
                f"{name} takes {most - bound} arguments by position, got"
                f" {len(args) - bound}; valid: {', '.join(ordered)}; by name: {named}"
            )
        return call(*args, **settings)

    if isinstance(target, type):
        target.__init__ = checked  # type: ignore[misc]
        return target
    return checked  # type: ignore[return-value]


def check_keywords(name: str, settings: Iterable[str], valid: Sequence[str]) -> None:
    """Check that every keyword is valid; nothing happens if all are.

    Args:
        name: Name of the class or function, for the error message.
        settings: Keywords of the call.
        valid: Valid keywords.

    Raises:
        SettingError: A keyword is unknown; names the nearest valid one, then all.
    """
    for keyword in settings:
        if keyword not in valid:
            message = unknown_name("setting", keyword, valid, name, limit=None)
            raise SettingError(message, keyword)


__all__ = ["check_keywords", "known_keywords"]


def named_settings(name: str, settings: object) -> dict[str, Any]:
    """Return a copy of a mapping from names to settings.

    Raises SettingError, which calls the mapping `name`, unless it is a mapping whose
    keys are strings.
    """
    if not isinstance(settings, Mapping) or any(
        not isinstance(x, str) for x in settings
    ):
        raise SettingError(
            f"{name} is {shown(settings)}; valid: a mapping from names to values", name
        )
    return dict(settings)


def check_object(name: str, value: object, kind: type, optional: bool = False) -> None:
    """Raise a SettingError unless a setting is an object of a class.

    Args:
        name: Name of the setting; the error names it.
        value: The setting.
        kind: The class.
        optional: Whether None is valid, too.
    """
    if isinstance(value, kind) or (optional and value is None):
        return
    text = "None" if value is None else shown(value)
    more = ", or None" if optional else ""
    raise SettingError(f"{name} is {text}; valid: {kind.__name__}(...){more}", name)


def is_finite(value: object) -> bool:
    """Return whether a value is a real number that is finite as a float; no boolean."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int too large for a float
        return False


def _numbers(values: Any) -> np.ndarray:
    """Return values as an array; NumPy must not guess at what is no number.

    TypeError for text, a date, None or masked entries; ValueError for uneven rows.
    """
    array = np.asarray(values)
    entries = array.flat if array.dtype.kind == "O" else ()
    odd = any(x is None or isinstance(x, (str, bytes)) for x in entries)
    if odd or array.dtype.kind not in "fiubcO" or np.ma.is_masked(values):
        raise TypeError
    return array


def no_array(values: object) -> str:
    """Return a value as text for the message of a ShapeError; a mapping with a hint."""
    text = "None" if values is None else shown(values)
    named = "; of a dict: model.position(q), model.velocity(qd)"
    return f"{text}{named}" if isinstance(values, Mapping) else text


def float_array(name: str, values: ArrayLike | None, wanted: str) -> np.ndarray:
    """Return an array of floats, of any shape; NaN and infinity are accepted.

    The result may share memory with `values`.

    Args:
        name: Name of the input in error messages.
        values: Real numbers; complex ones are accepted if their imaginary parts are
            zero. Booleans become floats.
        wanted: Shape that is expected, only for error messages.

    Raises:
        ShapeError: `values` is None, is not numeric, such as "1.5", has imaginary
            parts or masked entries, or consists of rows of different lengths.
    """
    try:
        array = _numbers(values)
        imaginary = np.iscomplexobj(array) and bool(array.imag.any())
        real = np.asarray(array.real, float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ShapeError(name, f"numbers of {wanted}", no_array(values)) from error
    if imaginary:
        raise ShapeError(name, f"real numbers of {wanted}", "complex ones")
    return real


def shaped_array(
    name: str, values: ArrayLike | None, shape: tuple[int, ...]
) -> np.ndarray:
    """Return an array of floats of a required shape; NaN and infinity are accepted.

    The result may share memory with `values`.

    Args:
        name: Name of the input in error messages.
        values: Real numbers, as of float_array.
        shape: Shape that they must have.

    Raises:
        ShapeError: They have another shape, or float_array refuses them.
    """
    array = float_array(name, values, f"shape {shape}")
    if array.shape != shape:
        raise ShapeError(name, f"shape {shape}", f"shape {array.shape}")
    return array


def state_array(
    name: str, values: ArrayLike, length: int, real: bool = False
) -> np.ndarray:
    """Return a numeric array of shape (length,) or (batch, length).

    Complex numbers stay complex, for derivatives by the complex-step method, and are
    not copied; all others are copied as floats. NaN and infinity are accepted.

    Args:
        name: Name of the input in error messages.
        values: Numbers of one state, or of a batch of states, which may be empty.
            Booleans become floats.
        length: Length of the last axis.
        real: Whether complex numbers are refused.

    Raises:
        ShapeError: The last axis has another length, there is no axis or more than
            two, or the values are not numeric, such as None and "1.5", masked, or
            complex where real ones are wanted.
    """
    wanted = f"shape ({length},) or (batch, {length})"
    try:
        array = _numbers(values)
        array = array if array.dtype.kind == "c" else array.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ShapeError(name, f"numbers of {wanted}", no_array(values)) from error
    if real and array.dtype.kind == "c":
        raise ShapeError(name, f"real numbers of {wanted}", "complex ones")
    if array.ndim not in (1, 2) or array.shape[-1] != length:
        raise ShapeError(name, wanted, f"shape {array.shape}")
    return array


def one_state(name: str, values: ArrayLike, length: int) -> np.ndarray:
    """Return a float array of shape (length,), a copy of the values.

    Args:
        name: Name of the input in error messages.
        values: Numbers of one state; NaN and infinity are accepted, booleans become
            floats.
        length: Number of values.

    Raises:
        ShapeError: A batch, another length, or values that are not real numbers.
    """
    array = state_array(name, values, length, real=True)
    if array.ndim != 1:
        raise ShapeError(name, f"shape ({length},)", f"shape {array.shape}")
    return array


def finite_array(
    name: str, values: ArrayLike, size: int | None = None
) -> tuple[float, ...]:
    """Return a tuple of finite floats from a list or an array.

    Args:
        name: Name of the input in error messages; element i is called name[i].
        values: Numbers; booleans become floats. If `size` is given, an empty list
            stands for zeros, a single number for `size` equal ones.
        size: Number of values; None: any number of them, in a list or array.

    Raises:
        ModelError: The values are None, complex or not numeric, such as "1.5", masked,
            not a flat list, not `size` many, or not finite.
    """
    try:
        array = _numbers(values)
        if array.dtype.kind == "c":
            raise TypeError
        array = array.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{name} is {shown(values)}; valid: numbers", name) from error
    if size is not None and array.size == 0:
        array = np.zeros(max(size, 0))
    if array.ndim == 0 and size is not None:
        array = np.full(size, float(array))
    if array.ndim != 1 or (size is not None and len(array) != size):
        wanted = "a list" if size is None else f"{size} numbers"
        raise ModelError(f"{name}: {wanted} wanted, got shape {array.shape}", name)
    for i, x in enumerate(array):
        if not np.isfinite(x):
            raise ModelError(f"{name}[{i}] is not finite: {x}", f"{name}[{i}]")
    return tuple(array.tolist())


def random_generator(rng: object) -> np.random.Generator:
    """Return the generator that `rng` is, or a new one from a seed.

    Args:
        rng: Generator, or seed, a whole number >= 0 and no boolean; None: another one
            at each call.

    Raises:
        SettingError: `rng` is none of these.
    """
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    if isinstance(rng, bool) or not isinstance(rng, Integral) or rng < 0:
        valid = "a seed, 0 or more, or a numpy.random.Generator"
        raise SettingError(f"rng is {shown(rng)}; valid: {valid}", "rng")
    return np.random.default_rng(int(rng))
