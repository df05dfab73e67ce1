"""Check of what functions of robots are given."""

from __future__ import annotations

from typing import Any

from dyn_core.errors import UnsupportedError
from dyn_core.model.assembly.tree import Tree


def check_robot(model: Any, who: str) -> None:
    """Refuse what is no robot, such as the name of one.

    Args:
        model: What was given.
        who: What asks for a robot.
    """
    if not isinstance(model, Tree):
        raise UnsupportedError(
            f"{who} is for a Model, not for {model!r}; valid: what dyn.load returns"
        )
