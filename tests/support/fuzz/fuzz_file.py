"""A file of the fuzzer, and how it is given to the product."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fuzz.draws import Draws


@dataclass(frozen=True)
class FuzzFile:
    """A file, and how it is given to the product.

    Attributes:
        kind: urdf, mjcf, sidecar, ...: one of KINDS.
        seed, number: What it was drawn from.
        content: Its bytes, or the mapping that stands for a file.
        source: As what bytes are given: bytes, text or path.
        suffix: End of the name of its path; empty: that of its kind.
        robot: Shipped robot that a sidecar or world is for.
        root_joint: fixed or floating.
        valid: Whether it must be read.
        deep: Whether what is read is also computed with.
    """

    kind: str
    seed: int
    number: int
    content: Any
    source: str = "path"
    suffix: str = ""
    robot: str = "two_link"
    root_joint: str = "fixed"
    valid: bool = field(default=False, kw_only=True)
    deep: bool = field(default=False, kw_only=True)

    @property
    def draws(self) -> Draws:
        """A new random generator of this file."""
        return Draws(f"{self.kind} {self.seed} {self.number}")

    def with_content(self, content: Any) -> FuzzFile:
        """Return the same file with another content, which need not be valid."""
        return replace(self, content=content, valid=False)

    def __str__(self) -> str:
        content = self.content
        if isinstance(content, bytes):
            content = content.decode("utf-8", "backslashreplace")
        source = f"given as {self.source}" if self.source != "mapping" else "a mapping"
        more = f", for {self.robot}" if self.kind in ("sidecar", "world") else ""
        kind = f"{self.kind} {self.suffix}".strip()
        return f"{kind}, {source}{more}, {self.root_joint}:\n{content}"
