"""Tracing, the meaning of Graphs, and the passes."""

import math

import numpy as np
import pytest
from random_programs import newton_root, random_algorithm

import dyn_core as dyn
from dyn_core.engines.graph.passes import prune
from dyn_core.engines.graph.source import compile_graph
from dyn_core.engines.graph.trace import trace
from dyn_core.numbers import scalar
from dyn_core.numbers.taylor import Taylor


@pytest.mark.parametrize(
    "seed",
    [*range(50), *(pytest.param(k, marks=pytest.mark.full) for k in range(50, 150))],
)
def test_rewriting_and_every_runner_keep_the_meaning(seed):
    """Graphs as written, rewritten and pruned, on floats, columns and as source, agree."""
    function = random_algorithm(seed, everything=True)
    raw = trace(function, 4, folding=False)
    raw.check()
    rng = np.random.default_rng(seed + 1000)
    rows = rng.normal(size=(6, 4)) * 3
    graphs = [raw, trace(function, 4), prune(raw)]
    for graph in graphs:
        graph.check()
    for row in rows:
        wanted = np.array(function([float(x) for x in row]), float)
        for graph in graphs:
            got = np.array(graph.run([float(x) for x in row])[0], float)
            source = compile_graph(graph, columns=False)([float(x) for x in row])[0]
            np.testing.assert_array_equal(got, np.array(source, float))
            _same_where_finite(got, wanted)
    for graph in graphs:
        columns = graph.run([np.ascontiguousarray(x) for x in rows.T])[0]
        for k, row in enumerate(rows):
            wanted = np.array(graph.run([float(x) for x in row])[0], float)
            got = [np.broadcast_to(c, 6)[k] for c in columns]
            _same_where_finite(np.array(got, float), wanted, 1e-9)


def _same_where_finite(got, wanted, rtol=1e-12):
    """Compare up to the first NaN or infinity: a rule may have folded it away.

    Or up to a huge number: the sine of one magnifies its last bit.
    """
    end = np.flatnonzero(~(np.abs(wanted) < 1e8))
    upto = end[0] if len(end) else len(wanted)
    np.testing.assert_allclose(got[:upto], wanted[:upto], rtol=rtol, atol=1e-12)


def test_folding_makes_constants_and_shares_terms():
    """Zeros and ones vanish, equal terms are one node."""
    graph = trace(lambda x: [(x[0] * 1.0 + 0.0) * x[1] + x[1] * x[0]], 2)
    assert graph.counts() == {"input": 2, "mul": 1, "add": 1}
    assert "mul %0, %1" in str(graph)
    assert "return" in str(graph)


def test_dead_code_goes():
    """What nothing needs is not in the Graph."""
    graph = trace(lambda x: [x[0] + 1.0, scalar.sin(x[1])][:1], 2)
    assert "sin" not in graph.counts()


def test_branching_on_a_value_names_file_and_line():
    """`if x > 0` in an algorithm is a TraceError at that line."""

    def function(x):
        return [x[0] if x[0] > 0 else -x[0]]

    line = function.__code__.co_firstlineno + 1
    with pytest.raises(dyn.TraceError, match=rf"test_graph\.py:{line}.*where"):
        trace(function, 1)


def test_math_functions_are_refused():
    """An algorithm that uses math gets an error that names what to use."""
    with pytest.raises(dyn.TraceError, match=r"dyn_core\.authoring"):
        trace(lambda x: [math.sin(x[0])], 1)


def test_loops_stop_row_by_row():
    """A loop runs on floats, traced, and on columns, each row to its own end."""
    graph = trace(newton_root, 1)
    graph.check()
    values = np.array([1.0, 2.0, 50.0, 1e6])
    columns, _ = graph.run([values])
    for k, value in enumerate(values):
        single = graph.run([float(value)])[0]
        plain = newton_root([float(value)])
        assert single == plain
        assert [columns[0][k], columns[1][k]] == single
    np.testing.assert_allclose(columns[0], np.sqrt(values), rtol=1e-12)
    assert len(set(columns[1])) > 2
    for other in (trace(newton_root, 1, folding=False), prune(graph)):
        np.testing.assert_array_equal(other.run([values])[0], columns)
    source, _ = compile_graph(graph, columns=True)([values])
    np.testing.assert_array_equal(source, columns)


def test_a_loop_that_does_not_begin_computes_nothing():
    """Its body may divide by what the condition rules out."""
    ended = scalar.loop([0.0], lambda x: [1.0 / x[0]], lambda x: x[0] > 0.0, max=3)
    assert ended == (0.0,)


def test_loops_nest_and_capture():
    """An inner loop sees values of the outer loop and of the algorithm."""

    def function(x):
        def outer(state):
            total, i = state
            inner = scalar.loop(
                (total, 0.0), lambda s: (s[0] + x[1] * i, s[1] + 1.0),
                lambda s: s[1] < x[0], max=10,
            )  # fmt: skip
            return inner[0], i + 1.0

        return [scalar.loop((0.0, 0.0), outer, lambda s: s[1] < x[0], max=10)[0]]

    graph = trace(function, 2)
    assert graph.run([3.0, 2.0])[0] == function([3.0, 2.0]) == [18.0]
    rows = graph.run([np.array([1.0, 3.0]), np.array([5.0, 2.0])])[0][0]
    np.testing.assert_array_equal(rows, [0.0, 18.0])


@pytest.mark.parametrize("d2", [None, 0.5])
def test_loops_carry_derivatives(d2):
    """Also of values that a turn brings in: x stays a number of the Graph at first."""

    def function(x, y):
        first = scalar.loop(
            (x, 0.0), lambda s: (scalar.sin(s[0]) * y + s[0], s[1] + 1.0),
            lambda s: s[1] < 3.0, 9,
        )  # fmt: skip
        return first[0], *scalar.loop(
            (0.0,), lambda s: (s[0] + y * x,), lambda s: True, 4
        )

    def along(v):
        numbers = function(v[0], Taylor(v[1], 1.0, d2))
        parts = [part for z in numbers for part in (z.x, z.d1, z.d2)]
        return [part for part in parts if part is not None]

    values = [0.3, 0.7]
    plain = along(values)
    assert trace(along, 2).run(values)[0] == pytest.approx(plain, rel=1e-15)
    h = 1e-4
    below, here, above = (function(0.3, 0.7 + k * h) for k in (-1, 0, 1))
    for k in (0, 1):
        x, d1, *second = plain[k * len(plain) // 2 :][: len(plain) // 2]
        slope = (above[k] - below[k]) / (2 * h)
        assert x == here[k]
        assert d1 == pytest.approx(slope, rel=1e-7)
        bend = (above[k] - 2 * here[k] + below[k]) / h**2
        if d2 is not None:
            assert second[0] == pytest.approx(bend + d2 * slope, rel=1e-5)


def test_turns_from_constants_are_traced_once_each():
    """A loop from floats alone begins written out; its conditions count once."""

    def function(x):
        def body(state):
            scalar.require(x[0] < 3.0, dyn.SingularError, "x")
            return (state[0] + x[0],)

        return scalar.loop((0.0,), body, lambda s: True, 4)

    graph = trace(function, 1)
    assert graph.run([1.0]) == ([4.0], 0)
    assert graph.run([5.0])[1] == 1
    assert len(graph.requirements) == 2  # of the first turn, of the others
    assert scalar.loop((0.0,), lambda s: (s[0] + 1.0,), lambda s: True, 4) == (4.0,)


def test_require_in_the_condition_of_a_loop_is_refused():
    """It is no part of a turn; the error says where it may stand."""

    def cond(state):
        scalar.require(state[0] > 0, dyn.SingularError, "x")
        return state[0] > 1

    with pytest.raises(dyn.TraceError, match=r"test_graph\.py:\d+: .*body of the loop"):
        trace(lambda x: [scalar.loop((x[0],), lambda s: (s[0] - 1.0,), cond, 5)[0]], 1)


def test_a_loop_requires_what_its_body_does_in_the_turns_it_takes():
    """A Graph requires behind the loop; one without conditions has no state for them."""

    def function(x):
        def body(state):
            scalar.require(state[0] < 3.0, dyn.SingularError, "first")
            scalar.require(True, dyn.SingularError, "never")
            return (state[0] + 1.0,)

        (y,) = scalar.loop((x[0],), body, lambda s: s[0] < x[1], 9)
        scalar.require(x[1] < 8.0, dyn.InfeasibleError, "second")
        return [y]

    for folding in (True, False):
        graph = trace(function, 2, folding)
        graph.check()
        assert [r.item for r in graph.requirements] == ["first", "second"]
        assert graph.run([0.0, 3.0]) == ([3.0], 0)
        assert graph.run([0.0, 4.0])[1] == 1
        assert graph.run([5.0, 4.0]) == ([5.0], 0)
        assert graph.run([9.0, 9.0]) == ([9.0], 2)
        status = graph.run([np.array([0.0, 0.0, 5.0]), np.array([3.0, 9.0, 4.0])])[1]
        np.testing.assert_array_equal(status, [0, 1, 0])
    (region,) = (node.data for node in graph.nodes if node.op == "loop")
    assert region.width == 2 and not region.body.requirements
    plain = trace(
        lambda x: scalar.loop((x[0],), lambda s: (s[0],), lambda s: s[0] < 1, 2), 1
    )
    (region,) = (node.data for node in plain.nodes if node.op == "loop")
    assert region.width == 1


def test_require_reports_the_first_failure():
    """The status counts requirements from one, in the order of the algorithm."""

    def function(x):
        scalar.require(x[0] > 0, dyn.SingularError, "first")
        scalar.require(x[1] > 0, dyn.InfeasibleError, "second")
        return [x[0]]

    graph = trace(function, 2)
    assert graph.run([1.0, 1.0])[1] == 0
    assert graph.run([1.0, -1.0])[1] == 2
    assert graph.run([-1.0, -1.0])[1] == 1
    status = graph.run([np.array([1.0, -1.0]), np.array([-1.0, 1.0])])[1]
    np.testing.assert_array_equal(status, [2, 1])
    assert "require" in str(graph)


def test_check_refuses_a_malformed_graph():
    """A Graph that reads ahead is not run."""
    graph = trace(lambda x: [x[0] + 1.0], 1)
    graph.nodes[0] = graph.nodes[0]._replace(op="neg", operands=(2,))
    with pytest.raises(ValueError, match="not before it"):
        graph.check()


def test_every_function_makes_a_sound_graph():
    """Each function of scalar.py has as many operands as its operation."""
    for one in ("sqrt", "sin", "cos", "asin", "acos", "exp", "log", "tanh", "floor"):
        trace(lambda x, one=one: [getattr(scalar, one)(x[0])], 1).check()
    for two in ("atan2", "maximum", "minimum"):
        trace(lambda x, two=two: [getattr(scalar, two)(x[0], x[1])], 2).check()


def test_nothing_is_required_where_it_does_not_matter():
    """Conditions known beforehand: `when` decides, as it does of traced ones."""
    scalar.require(False, dyn.SingularError, "x", when=False)
    scalar.require(True, dyn.SingularError, "x")
    with pytest.raises(dyn.SingularError):
        scalar.require(False, dyn.SingularError, "x", when=True)
