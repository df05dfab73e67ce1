"""Calls of machine code on data stored in blocks of lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.engines.llvm.blocks import Blocks
from dyn_core.engines.llvm.kernel import Variant, pointers
from dyn_core.errors import ShapeError
from dyn_core.problems import Port


class BlockCalls:
    """Methods of a NativeProgram for data in blocks (blocks, size, lanes).

    Attributes:
        inputs, outputs: Ports with their sizes.
        lanes: States that one instruction computes in a batch.
        dtype: Data type of the numbers.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    lanes: int
    dtype: np.dtype

    def _kernel(self, variant: str, wait: bool | None = None) -> Variant:
        raise NotImplementedError

    def to_blocks(self, array: Any, name: str) -> np.ndarray:
        """Return a batch of an input or output as blocks: (blocks, size, lanes).

        Args:
            array: Batch of the Port, its number of rows a multiple of `lanes`.
            name: Name of the Port, which must exist.

        Raises:
            ShapeError: The number of rows is not a multiple of `lanes`.
        """
        port = {p.name: p for p in (*self.inputs, *self.outputs)}[name]
        rows = np.asarray(array, self.dtype).reshape(-1, port.size)
        if len(rows) % self.lanes:
            wanted = f"a multiple of {self.lanes} rows"
            raise ShapeError(name, wanted, f"{len(rows)}")
        blocks = rows.reshape(-1, self.lanes, port.size)
        return np.ascontiguousarray(blocks.transpose(0, 2, 1))

    def from_blocks(self, blocks: np.ndarray, name: str) -> np.ndarray:
        """Return the batch (rows, ...) of a Port from blocks (blocks, size, lanes).

        Args:
            blocks: Array as `to_blocks` returns it.
            name: Name of the Port, which must exist.
        """
        port = {p.name: p for p in (*self.inputs, *self.outputs)}[name]
        rows = np.ascontiguousarray(blocks.transpose(0, 2, 1))
        return rows.reshape(-1, *port.shape)

    def run_blocks(self, *inputs: np.ndarray, out: Sequence[np.ndarray]) -> int:
        """Run on data in blocks, without transposition, on the calling thread.

        Args:
            inputs: One C-order array (blocks, size, lanes) for each input Port.
            out: One such array for each output Port; none overlaps another array.

        Returns:
            Number of rows that failed a requirement; their outputs are not valid.

        Raises:
            ShapeError: The number, shape, dtype or memory of an array is wrong.
        """
        arrays = (*inputs, *out)
        ports = (*self.inputs, *self.outputs)
        if len(inputs) != len(self.inputs) or len(out) != len(self.outputs):
            raise ShapeError("arrays", f"{len(ports)}", f"{len(arrays)}")
        blocks, addresses = len(arrays[0]), []
        for port, array in zip(ports, arrays, strict=True):
            wanted, flags = (blocks, port.size, self.lanes), array.flags
            good = array.dtype == self.dtype and flags.c_contiguous and flags.aligned
            if array.shape != wanted or not good:
                shown = f"a C-order {self.dtype} array of shape {wanted}"
                raise ShapeError(port.name, shown, f"{array.dtype} {array.shape}")
            addresses.append(array.__array_interface__["data"][0])
        ends = [a + array.nbytes for a, array in zip(addresses, arrays, strict=True)]
        for k in range(len(inputs), len(addresses)):
            if any(addresses[k] < ends[j] and addresses[j] < ends[k] for j in range(k)):
                raise ShapeError(ports[k].name, "memory of its own", "shared memory")
        made = self._kernel("batch", wait=True)
        if blocks == 0:
            return 0
        tables = pointers(addresses[: len(inputs)]), pointers(addresses[len(inputs) :])
        state = np.zeros(blocks * self.lanes, np.int64)
        status_address = state.__array_interface__["data"][0]
        failed = 0
        for a, b, memory in Blocks(made, 1, blocks)():
            failed += made.call["blocked"](*tables, status_address, a, b, memory)
        return failed
