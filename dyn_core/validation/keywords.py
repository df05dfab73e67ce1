"""Check of keywords of public classes and functions; errors list the valid keywords."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

from dyn_core.errors import SettingError, unknown_name

_Target = TypeVar("_Target", bound=Callable[..., Any])


def known_keywords(target: _Target) -> _Target:
    """Decorate a class or function so that unknown keywords raise a SettingError.

    On a class it wraps `__init__` in place and stands above @dataclass. A target that
    accepts **kwargs cannot be decorated: the function that receives them must check
    them.

    Raises:
        TypeError: At decoration: the target accepts **kwargs.
        SettingError: At each call: there is no such keyword; names the nearest keyword,
            then all valid ones.
    """
    call: Any = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
    entries = list(signature(call).parameters.values())
    entries = entries[1:] if isinstance(target, type) else entries
    if any(entry.kind is Parameter.VAR_KEYWORD for entry in entries):
        raise TypeError(f"{target.__name__} takes any keyword: nothing is unknown")
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    valid = [entry.name for entry in entries if entry.kind in named]
    known, name = frozenset(valid), target.__name__

    @wraps(call)
    def checked(*args: Any, **settings: Any) -> Any:
        """Call the target after checking the names of the keywords."""
        if not known.issuperset(settings):
            check_keywords(name, settings, valid)
        return call(*args, **settings)

    if isinstance(target, type):
        target.__init__ = checked  # type: ignore[misc]
        return target
    return checked  # type: ignore[return-value]


def check_keywords(name: str, settings: Iterable[str], valid: Sequence[str]) -> None:
    """Check that every keyword is valid.

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
