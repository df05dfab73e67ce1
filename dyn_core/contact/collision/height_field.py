"""Height fields: ground whose height is given over a grid, fixed in the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dyn_core.errors import ModelError
from dyn_core.model.material import Material
from dyn_core.model.shape_reader import MATERIAL
from dyn_core.validation import (
    REQUIRED,
    Either,
    Field,
    ListOf,
    Name,
    Nothing,
    Quantity,
    Table,
    known_keywords,
    label,
    numbers,
)

LARGEST = 4_000_000  # maximum number of heights, limited by the ids of contacts


@known_keywords
@dataclass(frozen=True)
class HeightField:
    """The region below a surface over a grid along x and y of the world.

    Each cell is two triangles, split from its corner of smallest x and y to the
    opposite one. Beside the grid there is no ground.

    Attributes:
        heights: z of the corners relative to `point`, a row for each x [m].
        cell: Lengths of a cell along x and y, 2 [m].
        name: Name in the ids of contacts.
        point: Position of the corner of smallest x and y, at height 0, 3 [m].
        material: Material of the surface; None: the material of the touching shape.
    """

    heights: tuple[tuple[float, ...], ...]
    cell: tuple[float, float]
    name: str = "terrain"
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    material: Material | None = None

    def __post_init__(self) -> None:
        where = f"height field '{label(self.name)}'"
        for key, entry in HEIGHT_FIELD.fields.items():
            value = entry.read(f"{where}: {key}", getattr(self, key))
            object.__setattr__(self, key, value)
        lengths = {len(row) for row in self.heights}
        if len(self.heights) < 2 or len(lengths) != 1 or min(lengths) < 2:
            raise ModelError(
                f"{where}: heights has {len(self.heights)} rows of {sorted(lengths)}"
                " numbers; valid: at least 2 rows of the same 2 or more",
                self.name,
            )
        if len(self.heights) * len(self.heights[0]) > LARGEST:
            raise ModelError(
                f"{where}: heights has {len(self.heights)} rows of {min(lengths)}"
                f" numbers; valid: at most {LARGEST} in all",
                self.name,
            )
        if min(self.cell) <= 0.0:
            raise ModelError(
                f"{where}: cell {self.cell}; valid: two lengths above 0 [m]", self.name
            )

    @property
    def lowest(self) -> float:
        """Height of the lowest corner in the world [m]."""
        return self.point[2] + min(min(row) for row in self.heights)

    def covers(self, x: Sequence[float]) -> bool:
        """Return whether the grid, with its border, extends over a point of the world.

        z of the point is ignored.
        """
        counts = len(self.heights), len(self.heights[0])
        return all(
            0.0 <= x[k] - self.point[k] <= (counts[k] - 1) * self.cell[k]
            for k in range(2)
        )


HEIGHT_FIELD = Table(
    Field(
        "heights",
        ListOf(ListOf(Quantity())),
        "z of the grid's corners over `point`, a row for each x",
        "m",
        REQUIRED,
    ),
    Field("cell", numbers(2), "lengths of a cell along x and y", "m", REQUIRED),
    Field("name", Name(), "name in the ids of contacts", "", "terrain"),
    Field(
        "point",
        numbers(3),
        "the grid's corner of least x and y, at height 0",
        "m",
        (0.0, 0.0, 0.0),
    ),
    Field(
        "material",
        Either((MATERIAL, Nothing())),
        "of the surface; null: that of the shape that touches",
    ),
    make=HeightField,
)
