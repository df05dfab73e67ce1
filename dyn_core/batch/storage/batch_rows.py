"""All inputs of a batch together: arrays, or what a function of the row range makes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.batch.storage.row_sources import SAMPLE_ROWS, source
from dyn_core.errors import ShapeError
from dyn_core.problems import Port


class BatchRows:
    """All inputs of a batch.

    Attributes:
        count: How many rows.
        row_bytes: What a row takes.
        grain: Rows that are best read together.
        mapped: Whether all lie in files that are mapped.
    """

    def __init__(self, sources: Sequence[Any]) -> None:
        self.sources = tuple(sources)
        counts = {x.name: x.rows for x in sources if x.rows is not None}
        if not counts:
            wanted = "at least one input with rows; valid: call the Program itself"
            raise ShapeError("inputs", wanted, "one state")
        self.count = next(iter(counts.values()))
        for name, rows in counts.items():
            if rows != self.count:
                wanted = f"{self.count} rows like the inputs before it"
                raise ShapeError(name, wanted, f"{rows} rows")
        self.row_bytes = sum(x.row_bytes for x in sources if x.rows is not None)
        self.grain = int(np.lcm.reduce([x.grain for x in sources]))
        self.mapped = all(x.mapped for x in sources if x.rows is not None)

    def loaded(
        self, first: int, last: int, sent: Sequence[Any] = ()
    ) -> Callable[[int, int], list[np.ndarray]]:
        """Return a function that returns rows of a chunk.

        Args:
            first, last: The chunk.
            sent: Arrays of it that were sent, one for each input; None for others.
        """
        arrays: list[Any] = [
            x.load(first, last) if k >= len(sent) or sent[k] is None else sent[k]
            for k, x in enumerate(self.sources)
        ]
        shared = [x.rows is None for x in self.sources]

        def rows(a: int, b: int) -> list[np.ndarray]:
            return [
                x if one else x[a - first : b - first]
                for x, one in zip(arrays, shared, strict=True)
            ]

        return rows

    def facts(self) -> dict[str, Any]:
        """Return what a journal keeps of them."""
        return {x.name: x.facts() for x in self.sources}


class GeneratedRows(BatchRows):
    """Inputs that a function of the row range makes.

    Attributes:
        function: Called as function(first, last); returns an array, several in a tuple
            or a mapping.
        bind: Puts them in the order of the inputs.
    """

    def __init__(
        self,
        function: Callable[[int, int], Any],
        count: int,
        ports: Sequence[Port],
        bind: Callable[[Any, Any], list[Any]],
    ) -> None:
        self.function, self.count, self.ports, self.bind = function, count, ports, bind
        self.sources, self.grain, self.mapped = (), 1, False
        self.row_bytes = 8 * sum(port.size for port in ports)

    def loaded(
        self, first: int, last: int, sent: Sequence[Any] = ()
    ) -> Callable[[int, int], list[np.ndarray]]:
        """Return a function that makes rows."""
        return self.rows

    def rows(self, first: int, last: int) -> list[np.ndarray]:
        """Return the inputs of some rows."""
        made = self.function(first, last)
        args = () if isinstance(made, Mapping) else made
        if not isinstance(made, Mapping | tuple | list):
            args = (made,)
        named = made if isinstance(made, Mapping) else {}
        arrays = [
            source(port, value, np.dtype(float))
            for port, value in zip(self.ports, self.bind(args, named), strict=True)
        ]
        counts = {x.rows for x in arrays} - {None}
        if counts != {last - first}:
            wanted = f"{last - first} rows for the range {first}, {last}"
            got = ", ".join(map(str, counts)) or "one state"
            raise ShapeError("what the function of rows returned", wanted, got)
        return [x.load(0, last - first) for x in arrays]

    def facts(self) -> dict[str, Any]:
        """Return what a journal keeps: what the function makes of some rows."""
        digest = hashlib.sha256()
        for first in sorted({0, self.count // 2, max(self.count - SAMPLE_ROWS, 0)}):
            for array in self.rows(first, min(first + SAMPLE_ROWS, self.count)):
                digest.update(np.ascontiguousarray(array).tobytes())
        content = digest.hexdigest()[:16]
        return {"function": {"shape": [self.count], "content": content}}
