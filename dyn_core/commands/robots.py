"""The command `dyn robots`: names of robots that commands and dyn.load take."""

from __future__ import annotations

import argparse

from dyn_core import robots
from dyn_core.errors import ModelError, unknown_name
from dyn_core.model.sources.locate import SHIPPED, collections, searched

CHAINS = "planar chains (dyn view, dyn up chain)"


def add_robots(parser: argparse.ArgumentParser) -> None:
    """Add the argument `text` of `dyn robots` ("" if absent), its function as `run`."""
    parser.add_argument("text", nargs="?", default="", help="a part of the name")
    parser.set_defaults(run=_robots)


def _robots(arguments: argparse.Namespace) -> int:
    """Print the names of robots that contain the text, by their source; return 0.

    Shipped ones have a sentence. Case does not matter. An empty text prints all, and
    names the sources that are not installed. A text that no name contains is refused.
    """
    sources = {
        **collections(),
        CHAINS: robots.chains(),
    }
    text = arguments.text.lower()
    matching = {
        source: sorted([x for x in names if text in x.lower()], key=str.lower)
        for source, names in sources.items()
    }
    if not any(matching.values()):
        every = [name for names in sources.values() for name in names]
        message = unknown_name("robot", arguments.text, every)
        raise ModelError(f"{message}; searched: {', '.join(searched())}")
    for source, names in matching.items():
        if names:
            width = max(map(len, names)) + 2
            lines = list(names)
            if source in (SHIPPED, CHAINS):
                lines = [f"{x.ljust(width)}{robots.about(x)}" for x in names]
            print("\n    ".join([f"{source}:", *lines]))
        elif not text:
            print(f"{source}: not installed (pip install {source})")
    return 0
