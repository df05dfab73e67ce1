"""The Schedule of a kernel: how its steps are cut into functions."""

from dyn_core.engines.graph.trace import trace
from dyn_core.engines.llvm.lower import CHUNK, MEMORY, lower

PAIRS = 900


def _chunks(graph):
    """Return the chunks of a Graph, each checked to stand behind what it reads."""
    chunks, done = lower(graph, fused=True, pack=8).chunks, set()
    leaves = {k for k, x in enumerate(graph.nodes) if x.op in ("const", "input")}
    for step in (step for chunk in chunks for step in chunk):
        assert done.union(leaves).issuperset(step.operands)
        done.update(step.results)
    assert done.union(leaves).issuperset(graph.outputs)
    return chunks


def test_a_function_reads_and_delivers_few_values():
    """900 sums of two inputs: each reads two values and makes an output."""
    graph = trace(lambda x: [x[2 * k] + x[2 * k + 1] for k in range(PAIRS)], 2 * PAIRS)
    chunks = _chunks(graph)
    assert sum(len(chunk) for chunk in chunks) == PAIRS
    assert max(len(chunk) for chunk in chunks) <= MEMORY // 3 + 1 < CHUNK


def test_a_function_of_steps_that_stay_in_registers_is_long():
    """One sum after the other reads two inputs, and makes one output at the end."""

    def function(x):
        total = x[0]
        for k in range(2 * CHUNK):
            total = total * x[1 + k % 2] + x[2]
        return [total]

    sizes = [len(chunk) for chunk in _chunks(trace(function, 3))]
    assert sizes == [CHUNK, CHUNK]
