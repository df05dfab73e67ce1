"""Layout of a constraint problem: its blocks and their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.problems.system import System
from dyn_core.sharing import cached_property
from dyn_core.validation import shown

KINDS = (
    "bilateral",  # u = 0, any impulse
    "prescribed",  # the same; the target velocity is in the problem's bias
    "unilateral",  # 0 <= impulse, u >= 0, one of them zero, row by row
    "contact",  # normal, tangential, torsional, rolling rows in a friction cone
    "box",  # lo <= impulse <= hi; u >= 0 at lo, u <= 0 at hi, u = 0 between
)
GROUPS: Mapping[int, tuple[int, ...]] = {
    1: (),
    2: (1,),
    3: (2,),
    4: (2, 1),
    6: (2, 1, 2),
}


@dataclass(frozen=True)
class ConstraintBlock:
    """Consecutive rows that share one contact law.

    Attributes:
        kind: bilateral, prescribed, unilateral, contact or box (KINDS).
        start, rows: First row, and number of rows.
        first: Index of its first friction coefficient in the problem's `mu`.
    """

    kind: str
    start: int
    rows: int
    first: int

    @cached_property
    def all(self) -> range:
        """Indices of all rows of the block."""
        return range(self.start, self.start + self.rows)

    @cached_property
    def tangent(self) -> range:
        """Rows after the first, in a contact after its normal; empty for one row."""
        return range(self.start + 1, self.start + self.rows)

    @cached_property
    def coefficients(self) -> tuple[int, ...]:
        """Index in the problem's `mu` of each tangent row's friction coefficient.

        In the order of `tangent`; empty for a block that is no contact or has one row.
        """
        groups = GROUPS[self.rows] if self.kind == "contact" else ()
        return tuple(self.first + g for g, n in enumerate(groups) for _ in range(n))

    @cached_property
    def count(self) -> int:
        """Number of friction coefficients; 0 for one row, or where it is no contact.

        A contact of two or three rows has 1, of four rows 2, of six rows 3.
        """
        return len(GROUPS[self.rows]) if self.kind == "contact" else 0


@dataclass(frozen=True)
class ConstraintLayout(System):
    """Kinds and sizes of a constraint problem's blocks; Programs are built for it.

    A contact has 1 row (normal), 2 (and one tangent: planar), 3 (two tangents), 4 (and
    torsion about the normal) or 6 (and two of rolling). It has one coefficient each for
    tangents [1], torsion [m] and rolling [m]. All blocks together have m rows.

    Attributes:
        parts: Kind and number of rows of each block.
        name: Name in reports.

    Raises:
        ModelError: A kind or a number of rows is invalid, naming the block; or parts
            are not pairs of a kind and a number.
    """

    kind: ClassVar[str] = "constraint_layout"
    parts: tuple[tuple[str, int], ...]
    name: str = "constraints"

    def __post_init__(self) -> None:
        try:
            parts = tuple((kind, int(rows)) for kind, rows in self.parts)
        except (TypeError, ValueError, OverflowError) as error:
            valid = "pairs of a kind and a number of rows"
            got = shown(self.parts)
            raise ModelError(f"parts are {got}; valid: {valid}") from error
        object.__setattr__(self, "parts", parts)
        for index, (kind, rows) in enumerate(parts):
            if kind not in KINDS:
                valid = ", ".join(KINDS)
                raise ModelError(f"block {index}: kind {kind!r}; valid: {valid}")
            sizes = list(GROUPS) if kind == "contact" else None
            if rows < 1 or (sizes and rows not in sizes):
                valid = ", ".join(map(str, sizes)) if sizes else "1 or more"
                raise ModelError(f"block {index} ({kind}): {rows} rows; valid: {valid}")

    @classmethod
    def of(cls, *parts: Any) -> ConstraintLayout:
        """Return a layout from kinds, or pairs of kind and number of rows.

            ConstraintLayout.of("unilateral", ("contact", 3), ("box", 2))

        A kind alone has one row, a contact alone three. Raises ModelError as the class.
        """
        default_rows = {"contact": 3}
        pairs = [
            (p, default_rows.get(p, 1)) if isinstance(p, str) else p for p in parts
        ]
        return cls(tuple(pairs))

    @cached_property
    def blocks(self) -> tuple[ConstraintBlock, ...]:
        """The blocks in order, with indices of their rows and coefficients; cached."""
        blocks: list[ConstraintBlock] = []
        start = first = 0
        for kind, rows in self.parts:
            blocks.append(ConstraintBlock(kind, start, rows, first))
            start, first = start + rows, first + blocks[-1].count
        return tuple(blocks)

    @cached_property
    def m(self) -> int:
        """Number of rows."""
        return sum(rows for _, rows in self.parts)

    @cached_property
    def k(self) -> int:
        """Number of friction coefficients."""
        return sum(block.count for block in self.blocks)

    @cached_property
    def contacts(self) -> tuple[ConstraintBlock, ...]:
        """Contacts with a friction cone, in order: those of two rows or more."""
        return tuple(b for b in self.blocks if b.kind == "contact" and b.rows > 1)

    @cached_property
    def in_use(self) -> np.ndarray:
        """Mask of the coefficients that each block has, (blocks, 3) of bool.

        Columns are sliding, torsion and rolling.
        """
        counts = np.array([block.count for block in self.blocks], int)
        return np.arange(3) < counts[:, None]

    @cached_property
    def boxes(self) -> np.ndarray:
        """Mask of the rows of boxes, (m,) of bool."""
        return self._rows(lambda block: block.kind == "box")

    @cached_property
    def free(self) -> np.ndarray:
        """Mask of the rows of bilateral and prescribed blocks, (m,) of bool."""
        return self._rows(lambda block: block.kind in ("bilateral", "prescribed"))

    @cached_property
    def one_sided(self) -> np.ndarray:
        """Mask of unilateral rows and of contacts of one row, (m,) of bool."""
        flat = [b for b in self.blocks if b.kind == "contact" and b.rows == 1]
        return self._rows(lambda block: block.kind == "unilateral" or block in flat)

    def _rows(self, holds: Callable[[ConstraintBlock], bool]) -> np.ndarray:
        """Return the mask of the rows of blocks for which `holds` is true, (m,)."""
        return np.array(
            [holds(block) for block in self.blocks for _ in block.all], bool
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Named sizes of Ports: m rows, k friction coefficients."""
        return {"m": self.m, "k": self.k}

    def parameter(self, path: str) -> list[Any]:
        """Raise a ModelError: a layout has no parameters."""
        raise ModelError(
            f"a constraint layout has no parameter '{path}'; its numbers are inputs"
        )

    def unit(self, path: str) -> str:
        """Raise a ModelError: a layout has no parameters."""
        self.parameter(path)
        return ""

    def with_values(self, values: Mapping[str, Sequence[Any]]) -> ConstraintLayout:
        """Return self for an empty mapping; a layout has no parameters.

        Raises a ModelError for any path.
        """
        for path in values:
            self.parameter(path)
        return self


@lru_cache(maxsize=256)
def layout_of(kinds: bytes, rows: bytes) -> ConstraintLayout:
    """Return a layout, cached: consecutive steps often have the same constraints.

    `kinds` and `rows`, the number of rows, of each block are bytes of int64. Kinds are
    0 bilateral, 1 prescribed, 2 unilateral, 3 contact, 4 box.
    """
    pairs = zip(memoryview(kinds).cast("q"), memoryview(rows).cast("q"), strict=True)
    return ConstraintLayout(tuple((KINDS[kind], n) for kind, n in pairs))


@lru_cache(maxsize=256)
def without_rows(layout: ConstraintLayout, free: bytes) -> ConstraintLayout:
    """Return the layout of a problem after the elimination of free rows, cached.

    Contacts are unchanged; each other row that stays becomes a block of one row. `free`
    has a byte for each row, ignored in contacts.
    """
    parts: list[tuple[str, int]] = []
    for block in layout.blocks:
        if block.kind == "contact":
            parts.append((block.kind, block.rows))
        else:
            parts += [(block.kind, 1) for row in block.all if not free[row]]
    return ConstraintLayout(tuple(parts))
