"""Contacts in five parts: slide, bounce and roll, stack, stand, drop.

Each part lies beside this file. It prints its results beside the values of formulas,
where there are any, and draws one plot, with formulas dashed (extra `plot`).

    python examples/contacts/run.py [folder of the plots] [part ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from bounce import bounce
from figures import Figure, Part, show
from quadruped import quadruped
from slide import slide
from stack import stack
from walker import walker

PARTS: dict[str, Callable[[bool], Part]] = {
    part.__name__: part for part in (slide, bounce, stack, quadruped, walker)
}


def main(
    folder: Any = ".", parts: Iterable[str] = tuple(PARTS), short: bool = False
) -> dict[str, list[Figure]]:
    """Run, print and draw parts; return the figures by part."""
    return {name: show(PARTS[name], folder, short) for name in parts}


if __name__ == "__main__":
    main(*sys.argv[1:2], **({"parts": sys.argv[2:]} if sys.argv[2:] else {}))
