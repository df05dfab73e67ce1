"""Check that an argument is a robot."""

from __future__ import annotations

from typing import Any

from dyn_core.errors import UnsupportedError
from dyn_core.model.assembly.tree import Tree

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py


def check_robot(model: Any, who: str) -> None:
    """Raise UnsupportedError if an argument is not a robot, such as the name of one.

    Args:
        model: The argument.
        who: Name of the function that needs a robot, for the message.
    """
    if not isinstance(model, Tree):
        raise UnsupportedError(
            f"{who} is for a Model, not for {model!r}; valid: what dyn.load returns"
        )
