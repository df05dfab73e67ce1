"""Each rewriting rule by itself, what a Graph prints, and what its check refuses."""

import warnings
from dataclasses import replace
from operator import neg

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import TracedSolver, Vector
from dyn_core.engines.graph.graph import Graph, Node, Region, run_loop
from dyn_core.engines.graph.passes import Builder, prune
from dyn_core.engines.graph.source import compile_graph
from dyn_core.engines.graph.trace import Tracer, trace
from dyn_core.numbers.scalar import (
    Number,
    logical_and,
    logical_not,
    logical_or,
    loop,
    minimum,
    require,
    sin,
    where,
)
from dyn_core.problems import GRAVITY_FORCE, Port

X, Y = "%0 = input 0", "%1 = input 1"
AB = (X, Y, "%2 = lt %0, %1")  # a comparison, the condition of the rules of truths

RULES = {
    "0 + x": (lambda x, y: 0.0 + x, X, "return %0"),
    "x + 0": (lambda x, y: x + 0.0, X, "return %0"),
    "x + 1": (lambda x, y: x + 1.0, X, "%1 = const 1.0", "%2 = add %0, %1", "return %2"),
    "x + -y": (lambda x, y: x + -y, X, Y, "%2 = sub %0, %1", "return %2"),
    "-y + x": (lambda x, y: -y + x, X, Y, "%2 = sub %0, %1", "return %2"),
    "x - 0": (lambda x, y: x - 0.0, X, "return %0"),
    "0 - x": (lambda x, y: 0.0 - x, X, "%1 = neg %0", "return %1"),
    "x - x": (lambda x, y: x - x, "%0 = const 0.0", "return %0"),
    "x - y": (lambda x, y: x - y, X, Y, "%2 = sub %0, %1", "return %2"),
    "x - -y": (lambda x, y: x - -y, X, Y, "%2 = add %0, %1", "return %2"),
    "0 * x": (lambda x, y: 0.0 * x, "%0 = const 0.0", "return %0"),
    "x * 0": (lambda x, y: x * 0.0, "%0 = const 0.0", "return %0"),
    "1 * x": (lambda x, y: 1.0 * x, X, "return %0"),
    "x * 1": (lambda x, y: x * 1.0, X, "return %0"),
    "-1 * x": (lambda x, y: -1.0 * x, X, "%1 = neg %0", "return %1"),
    "x * -1": (lambda x, y: x * -1.0, X, "%1 = neg %0", "return %1"),
    "x * 2": (lambda x, y: x * 2.0, X, "%1 = const 2.0", "%2 = mul %0, %1", "return %2"),
    "-x * -y": (lambda x, y: -x * -y, X, Y, "%2 = mul %0, %1", "return %2"),
    "-x * y": (lambda x, y: -x * y, X, Y, "%2 = mul %0, %1", "%3 = neg %2", "return %3"),
    "x * -y": (lambda x, y: x * -y, X, Y, "%2 = mul %0, %1", "%3 = neg %2", "return %3"),
    "-x * 2": (
        lambda x, y: -x * 2.0,
        X, "%1 = neg %0", "%2 = const 2.0", "%3 = mul %1, %2", "return %3",
    ),
    "2 * -x": (
        lambda x, y: 2.0 * -x,
        X, "%1 = neg %0", "%2 = const 2.0", "%3 = mul %1, %2", "return %3",
    ),
    "x / 1": (lambda x, y: x / 1.0, X, "return %0"),
    "0 / x": (lambda x, y: 0.0 / x, "%0 = const 0.0", "return %0"),
    "x / y": (lambda x, y: x / y, X, Y, "%2 = div %0, %1", "return %2"),
    "1 / x": (lambda x, y: 1.0 / x, X, "%1 = const 1.0", "%2 = div %1, %0", "return %2"),
    "-(-x)": (lambda x, y: neg(neg(x)), X, "return %0"),
    "2 + 3": (lambda x, y: minimum(x * 0 + 2.0, 3.0), "%0 = const 2.0", "return %0"),
    "y + x": (
        lambda x, y: (y + x) * (x + y),
        X, Y, "%2 = add %0, %1", "%3 = mul %2, %2", "return %3",
    ),
    "y - x": (lambda x, y: y - x, X, Y, "%2 = sub %1, %0", "return %2"),
    "where(true, x, y)": (lambda x, y: where(_truth(x, True), x, y), X, "return %0"),
    "where(false, x, y)": (
        lambda x, y: where(_truth(x, False), x, y), "%0 = input 1", "return %0",
    ),
    "where(c, x, x)": (lambda x, y: where(x < y, x, x), X, "return %0"),
    "where(c, x, y)": (
        lambda x, y: where(x < y, x, y), *AB, "%3 = where %2, %0, %1", "return %3",
    ),
    "not not c": (lambda x, y: logical_not(logical_not(x < y)), *AB, "return %2"),
    "not c": (lambda x, y: logical_not(x < y), *AB, "%3 = not %2", "return %3"),
    "true and c": (lambda x, y: logical_and(_truth(x, True), x < y), *AB, "return %2"),
    "c and true": (lambda x, y: logical_and(x < y, _truth(x, True)), *AB, "return %2"),
    "false and c": (
        lambda x, y: logical_and(_truth(x, False), x < y),
        "%0 = const False", "return %0",
    ),
    "c and false": (
        lambda x, y: logical_and(x < y, _truth(x, False)),
        "%0 = const False", "return %0",
    ),
    "c and c": (lambda x, y: logical_and(x < y, x < y), *AB, "return %2"),
    "c and d": (
        lambda x, y: logical_and(x < y, y < x),
        *AB, "%3 = lt %1, %0", "%4 = and %2, %3", "return %4",
    ),
    "true or c": (
        lambda x, y: logical_or(_truth(x, True), x < y), "%0 = const True", "return %0",
    ),
    "c or true": (
        lambda x, y: logical_or(x < y, _truth(x, True)), "%0 = const True", "return %0",
    ),
    "false or c": (lambda x, y: logical_or(_truth(x, False), x < y), *AB, "return %2"),
    "c or false": (lambda x, y: logical_or(x < y, _truth(x, False)), *AB, "return %2"),
    "c or c": (lambda x, y: logical_or(x < y, x < y), *AB, "return %2"),
    "c or d": (
        lambda x, y: logical_or(x < y, y < x),
        *AB, "%3 = lt %1, %0", "%4 = or %2, %3", "return %4",
    ),
    "equal terms": (
        lambda x, y: sin(x) + sin(x) * sin(y),
        X, Y, "%2 = sin %0", "%3 = sin %1", "%4 = mul %2, %3", "%5 = add %2, %4",
        "return %5",
    ),
}  # fmt: skip


def _truth(x, value):
    """Return a truth that tracing learns by folding only."""
    return (x * 0.0 < 1.0) if value else (x * 0.0 > 1.0)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule(rule):
    """The Graph after the rule, line by line; operations that no rule is for stay."""
    function, *lines = RULES[rule]
    graph = trace(lambda x: [function(*x)], 2)
    graph.check()
    assert str(graph).splitlines() == lines


def test_prune_keeps_what_is_needed_as_it_is():
    """Equal nodes that were asked for twice stay two; dead ones go, inside loops too."""

    def function(x):
        first, second = x[0] * 2.0, x[0] * 2.0
        sin(x[1])

        def body(state):
            sin(state[0])
            return (state[0] + 1.0,)

        return [first, second, *loop((first,), body, lambda s: s[0] < 3.0, 5)]

    raw = trace(function, 2, folding=False)
    graph = prune(raw)
    graph.check()
    assert raw.counts()["sin"] == 1
    counts = {"input": 1, "const": 2, "mul": 2, "loop": 1, "item": 1}
    assert graph.counts() == counts
    (region,) = (node.data for node in graph.nodes if node.op == "loop")
    assert (region.width, region.max) == (1, 5)
    assert region.body.counts() == {"input": 1, "const": 1, "add": 1}
    assert graph.run([0.5, 0.0])[0] == raw.run([0.5, 0.0])[0] == [1.0, 1.0, 3.0]


class _Twice:
    """A Program that is called, not traced."""

    inputs = Port("none", (0,)), Port("x", (2,))
    outputs = (Port("y", (2,)),)

    def __call__(self, none, x):
        assert none.shape == (*x.shape[:-1], 0)
        return 2 * x


def test_a_graph_prints_all_that_it_does():
    """Loops with both their Graphs, calls, requirements, constants of both kinds."""

    def function(x):
        require(x[0] < 2.0, dyn.SingularError, "joint 'a'")
        (y,) = loop((x[0],), lambda s: (s[0] + x[1],), lambda s: s[0] < 9.0, 7)
        return [y, x[1] < x[1] * 0.0 + 1.0]

    assert str(trace(function, 2)).splitlines() == [
        "%0 = input 0", "%1 = input 1", "%2 = const 2.0", "%3 = lt %0, %2",
        "%4 = loop %0, %1, max=7",
        "  cond:", "    %0 = input 0", "    %1 = const 9.0", "    %2 = lt %0, %1",
        "    return %2",
        "  body:", "    %0 = input 0", "    %1 = input 1", "    %2 = add %0, %1",
        "    return %2",
        "%5 = item %4, 0", "%6 = const 1.0", "%7 = lt %1, %6",
        "require %3, SingularError(\"joint 'a'\")", "return %5, %7",
    ]  # fmt: skip
    tracer = Tracer(2)
    outputs = tracer.call(_Twice(), tracer.inputs)
    graph = tracer.finish(outputs)
    assert str(graph).splitlines() == [
        "%0 = input 0", "%1 = input 1", "%2 = call %0, %1", "%3 = item %2, 0",
        "%4 = item %2, 1", "return %3, %4",
    ]  # fmt: skip
    assert graph.run([1.0, 2.0]) == ([2.0, 4.0], 0)


def _spoiled(place=None, node=None, outputs=None):
    """Return a Graph of a loop with one node, or its outputs, exchanged."""
    graph = trace(lambda x: [sin(x[0]) + 1.0], 1)  # input, sin, const, add
    if node is not None:
        graph.nodes[place] = node
    if outputs is not None:
        graph.outputs = outputs
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            _spoiled(1, Node("sin", (1,), None)),
            "node 1 reads a node that is not before",
        ),
        (
            _spoiled(1, Node("sin", (-1,), None)),
            "node 1 reads a node that is not before",
        ),
        (_spoiled(3, Node("add", (0,), None)), "node 3: add has a wrong operand count"),
        (_spoiled(1, Node("bend", (0,), None)), "node 1: unknown operation 'bend'"),
        (_spoiled(0, Node("input", (), 1)), "node 0: no input 1"),
        (_spoiled(0, Node("input", (), -1)), "node 0: no input -1"),
        (_spoiled(outputs=[4]), "names a node that is not there"),
        (_spoiled(outputs=[-1]), "names a node that is not there"),
    ],
)
def test_check_refuses_each_fault(graph, message):
    """By number and reason; the Graph without the fault passes."""
    _spoiled().check()
    with pytest.raises(ValueError, match=message):
        graph.check()
    for body, cond in ((graph, _spoiled()), (_spoiled(), graph)):
        whole = Graph(1, [Node("input", (), 0)], [0])
        whole.nodes.append(Node("loop", (0,), Region(1, body, cond, 3)))
        with pytest.raises(ValueError, match=message):
            whole.check()


def test_requirements_are_checked_and_digested():
    """A condition that is not there is refused; another one is another Graph."""
    tracer = Tracer(1)
    (x,) = tracer.inputs
    require(x < 1.0, dyn.SingularError, "first")
    graph = tracer.finish([x])
    other = prune(graph)
    assert other.digest() == graph.digest()
    other.requirements[0] = other.requirements[0]._replace(condition=0)
    assert other.digest() != graph.digest()
    other.requirements[0] = other.requirements[0]._replace(condition=9)
    with pytest.raises(ValueError, match="names a node that is not there"):
        other.check()


def test_a_loop_ends_by_its_count_or_its_condition():
    """Body and condition run as often as they must, and no oftener."""
    runs = []

    def run(graph, state):
        runs.append(graph)
        return [state[0] < 3.0] if graph == "cond" else [state[0] + 1.0]

    region = Region(1, "body", "cond", 10)
    assert run_loop(region, [0.0], run) == [3.0]
    assert runs == ["cond", "body"] * 3 + ["cond"]
    assert run_loop(replace(region, max=2), [0.0], run) == [2.0]
    assert run_loop(replace(region, max=0), [0.0], run) == [0.0]
    rows = run_loop(region, [np.array([0.5, 2.5, 7.0])], run)
    np.testing.assert_array_equal(rows[0], [3.5, 3.5, 7.0])


def test_what_is_no_number_is_refused():
    """A word, or a number of another trace; numbers of NumPy are constants."""
    with pytest.raises(dyn.TraceError, match="str is not a number"):
        trace(lambda x: ["one"], 1)
    with pytest.raises(dyn.TraceError, match="object is not a number"):
        trace(lambda x: [x[0] + 1.0, object()], 1)
    other = Tracer(1).inputs[0]
    with pytest.raises(dyn.TraceError, match="a value of another trace was used"):
        trace(lambda x: [x[0] + other], 1)
    assert str(trace(lambda x: [np.float32(0.5), True], 1)).splitlines() == [
        "%0 = const 0.5", "%1 = const True", "return %0, %1",
    ]  # fmt: skip
    assert not isinstance(trace(lambda x: [1], 1).nodes[0].data, Number)


@pytest.mark.parametrize("engine", ["plain", "graph"])
def test_equality_of_values_is_a_condition(engine, shipped):
    """In `where` as written; a branch on it is refused, as on x > 0: it was by object."""
    arm = shipped["two_link"]

    def build(rule):
        made = TracedSolver("equality", GRAVITY_FORCE, rule, by_joint=False)
        return made.build(arm, engine=engine)

    q = np.array([0.0, 2.0])
    moved = build(lambda model, q: Vector([where(x == 0, 5.0, x) for x in q]))
    np.testing.assert_array_equal(moved(q), [5.0, 2.0])
    moved = build(lambda model, q: [where(x != 2.0, 5.0, x) for x in q])
    np.testing.assert_array_equal(moved(q), [5.0, 2.0])
    other = build(lambda model, q: [7.0 if x == None else x for x in q])  # noqa: E711
    np.testing.assert_array_equal(other(q), q)
    for rule in (lambda x: x == 0, lambda x: x != 0, lambda x: x in (0, 1)):
        if engine == "graph":
            with pytest.raises(dyn.TraceError, match="truth of a traced value"):
                build(lambda model, q, r=rule: [1.0 if r(x) else x for x in q])(q)


def test_a_loop_returns_its_state():
    """As many values as it has, or the error counts them."""

    def wrong(x):
        return loop((x[0], 0.0), lambda s: (s[0],), lambda s: s[0] < 1.0, 3)

    with pytest.raises(
        dyn.TraceError, match=r"test_rules\.py:\d+: a loop's body returns 1 values, its"
    ):
        trace(wrong, 1)


def test_without_folding_every_operation_is_kept():
    """Constants too, and equal ones."""
    builder = Builder(1, folding=False)
    assert [builder.const(1.0), builder.const(1.0)] == [0, 1]
    graph = trace(lambda x: [x[0] * 0.0 + 1.0 * 1.0], 1, folding=False)
    assert graph.counts() == {"input": 1, "const": 2, "mul": 1, "add": 1}


def test_source_runs_quietly_and_whole():
    """Division by zero warns of nothing; constants, calls and requirements are there."""

    def function(x):
        require(x[0] < 3.0, dyn.SingularError, "first")
        require(x[1] < 3.0, dyn.SingularError, "second")
        return [x[0] / x[1], minimum(x[0], float("inf")), x[0] + float("nan")]

    graph = trace(function, 2)
    rows = [np.array([1.0, 4.0, 1.0]), np.array([0.0, 5.0, 4.0])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for run in (graph.run, compile_graph(graph, columns=True)):
            (ratio, same, none), status = run(rows)
            np.testing.assert_array_equal(ratio, [np.inf, 0.8, 0.25])
            np.testing.assert_array_equal(same, rows[0])
            assert np.isnan(none).all()
            np.testing.assert_array_equal(status, [0, 1, 2])
    single = compile_graph(graph, columns=False)
    assert single([1.0, 4.0])[1] == 2
    assert single([4.0, 4.0])[1] == 1
    assert single([1.0, 1.0])[1] == 0
    tracer = Tracer(2)
    called = tracer.finish(tracer.call(_Twice(), tracer.inputs))
    assert compile_graph(called, columns=False)([1.0, 2.0]) == ([2.0, 4.0], 0)


def test_constants_are_plain_numbers_to_an_algorithm():
    """It may branch on what folding makes known."""

    def function(x):
        known = x[0] * 0.0 + 2.0
        assert type(known) is float
        return [x[0] if known > 1.0 else -x[0]]

    assert str(trace(function, 1)) == f"{X}\nreturn %0"


def test_two_loops_are_two():
    """Each has its own body, also where they start alike."""

    def function(x):
        once = loop((x[0],), lambda s: (s[0] + 1.0,), lambda s: s[0] < 5.0, 9)
        twice = loop((x[0],), lambda s: (s[0] + 2.0,), lambda s: s[0] < 5.0, 9)
        return [*once, *twice]

    assert trace(function, 1).run([0.0])[0] == [5.0, 6.0]


def test_a_value_of_another_trace_is_refused_inside_a_loop():
    """Of no Graph around it; a value of any Graph around it is captured."""
    other = Tracer(1).inputs[0]
    with pytest.raises(dyn.TraceError, match="a value of another trace was used"):
        trace(
            lambda x: loop((x[0],), lambda s: (s[0] + other,), lambda s: s[0] < 3.0, 2),
            1,
        )


def test_equal_graphs_have_one_digest():
    """Whether or not their parts are the same objects; folding is the default."""
    shared = (0, 0)
    nodes = [Node("input", (), 0), Node("add", shared), Node("mul", shared)]
    apart = [
        Node("input", (), 0), Node("add", (*shared,)), Node("mul", (*[0], *[0]))
    ]  # fmt: skip
    digests = {Graph(1, each, [1, 2]).digest() for each in (nodes, apart)}
    assert len(digests) == 1
    assert Graph(1, nodes, [2, 1]).digest() not in digests
    assert Graph(2, nodes, [1, 2]).digest() not in digests
    builder = Builder(1)
    assert builder.const(1.0) == builder.const(1.0)
    assert Tracer(1).folding
