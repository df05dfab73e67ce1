"""Machine code: every operation, one state and every lane, loops, batches, sizes."""

import math
import platform
import select
import sys
import threading
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from random_programs import WIDTH, newton_root, random_algorithm, random_rows

import dyn_core as dyn
from dyn_core.engines import native_program
from dyn_core.engines.graph.trace import trace
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.llvm.blocks import STEP
from dyn_core.engines.llvm.lower import lower
from dyn_core.engines.native_program import flat_sizes, graph_facts
from dyn_core.numbers import scalar
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.testing.flat_programs import flat_program, ulps
from dyn_core.testing.models import chain

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)


def blocks(count):
    """Return the numbers of blocks of random Graphs: one in four without --full."""
    return [
        k if k % 4 == 0 else pytest.param(k, marks=pytest.mark.full)
        for k in range(count)
    ]


def of_graph(graph):
    """Return a Program of a Graph made by hand."""
    count = len(graph.outputs)
    program = flat_program(lambda x: [0.0] * count, WIDTH, count, engine="native")
    program.graph = graph
    sizes = flat_sizes(program.inputs, program.outputs)
    program.facts = graph_facts(graph, sizes, program.lanes)
    return program


@pytest.mark.one_of(2)
@pytest.mark.parametrize("block", blocks(40))
def test_each_operation_of_random_graphs(block):
    """Every value of 25 random algorithms follows from its operands; scalar = each lane."""
    seeds = range(25 * block, 25 * block + 25)
    functions = [random_algorithm(seed, everything=True) for seed in seeds]

    def together(x):
        return [y for function in functions for y in function(x)]

    graph = trace(together, WIDTH)
    wanted_nodes = [
        k for k, n in enumerate(graph.nodes) if n.op not in ("const", "input")
    ]
    graph.outputs = wanted_nodes
    program = of_graph(graph)
    rows = random_rows(block, 24)
    batch = program(rows)
    for row, outputs in zip(rows, batch, strict=True):
        np.testing.assert_array_equal(program(row), outputs)
    values = {k: batch[:, column] for column, k in enumerate(wanted_nodes)}
    for k, node in enumerate(graph.nodes):
        if node.op == "const":
            values[k] = np.full(len(rows), float(node.data))
        elif node.op == "input":
            values[k] = rows[:, node.data]
    for k in wanted_nodes:
        op, operands, _ = graph.nodes[k]
        meaning = OPERATIONS[op].on_float
        wanted = [
            float(meaning(*(float(values[x][row]) for x in operands)))
            for row in range(len(rows))
        ]
        exact = op in ("add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor",
                       "lt", "le", "eq", "and", "or", "not", "where")  # fmt: skip
        error = ulps(values[k], np.array(wanted))
        assert error.max() <= (0 if exact else 4), (op, k, error.max())


@pytest.mark.one_of(2)
@pytest.mark.parametrize("block", blocks(20))
def test_multiply_adds_round_once(block):
    """Algebra without exception gives the bits that the Schedule's steps have."""
    seeds = range(50 * block, 50 * block + 50)
    functions = [random_algorithm(seed, functions=False) for seed in seeds]

    def together(x):
        return [y for function in functions for y in function(x)]

    graph = trace(together, WIDTH)
    program = of_graph(graph)
    rows = random_rows(1000 + block, 19)
    batch = program(rows)
    for row, outputs in zip(rows, batch, strict=True):
        np.testing.assert_array_equal(program(row), outputs)
        wanted = np.array(_by_steps(graph, row.tolist()), float)
        assert ulps(outputs, wanted).max() == 0


def _by_steps(graph, inputs):
    """Run the Schedule of a Graph on floats, with exact multiply-adds."""
    host = host_machine.machine()
    values = {}
    for k, node in enumerate(graph.nodes):
        if node.op == "const":
            values[k] = node.data
        elif node.op == "input":
            values[k] = inputs[node.data]
    for chunk in lower(graph, host.fused, host.pack).chunks:
        for step in chunk:
            x = [values[k] for k in step.operands]
            if step.op in ("fma", "fms", "fnma"):
                result = _fma(step.op, *map(float, x))
            else:
                result = OPERATIONS[step.op].on_float(*x)
            values[step.results[0]] = result
    return [values[k] for k in graph.outputs]


def _fma(op, a, b, c):
    a, c = (-a if op == "fnma" else a), (-c if op == "fms" else c)
    if not all(np.isfinite((a, b, c))):
        with np.errstate(all="ignore"):
            return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    sign = 1.0 if exact > 0 else -1.0
    try:
        return math.copysign(float(exact), sign)
    except OverflowError:
        return sign * math.inf


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 40])
def test_loops_stop_lane_by_lane(rows):
    """Each lane goes on until its own condition fails, as the Graph says."""
    program = flat_program(newton_root, 1, 2, engine="native")
    x = np.logspace(-3, 8, rows)
    got = program(x[:, None])
    for value, output in zip(x, got, strict=True):
        np.testing.assert_array_equal(program([value]), output)
        wanted = program.graph.run([float(value)])[0]
        np.testing.assert_allclose(output, wanted, rtol=1e-14)
    if rows > 7:
        assert len(set(got[:, 1])) > 3


def test_loops_nest_capture_and_feed():
    """An inner loop sees outer values; results go on into straight lines and outputs."""

    def function(x):
        before = scalar.sin(x[0]) * 3.0

        def outer(state):
            total, i = state
            inner = scalar.loop(
                (total, 0.0), lambda s: (s[0] + before * i, s[1] + 1.0),
                lambda s: s[1] < x[1], max=10,
            )  # fmt: skip
            return inner[0], i + 1.0

        total, rounds = scalar.loop((x[2], 0.0), outer, lambda s: s[1] < x[1], max=10)
        scalar.require(total < 1e6, dyn.InfeasibleError, "sum")
        return [total, scalar.cos(total) + rounds, rounds]

    program = flat_program(function, 3, 3, engine="native")
    rng = np.random.default_rng(3)
    rows = np.stack(
        [rng.normal(size=21), rng.integers(0, 6, 21), rng.normal(size=21)], 1
    )
    got = program(rows)
    wanted = np.array([program.graph.run(row.tolist())[0] for row in rows])
    np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-13)
    for row, outputs in zip(rows, got, strict=True):
        np.testing.assert_array_equal(program(row), outputs)
    with pytest.raises(dyn.InfeasibleError, match="sum"):
        program([1.0, 2.0, 1e7])
    rows[4, 2] = 1e7
    with pytest.raises(dyn.InfeasibleError) as caught:
        program(rows)
    assert caught.value.rows == (4,)


def test_plain_inputs_constants_and_conditions_are_outputs():
    """Outputs that no operation makes, or that are conditions, are stored too."""

    def function(x):
        return [x[1], 2.5, x[0], x[0] < x[1], x[0], scalar.where(x[0] < 0, True, False)]

    program = flat_program(function, 2, 6, engine="native")
    rows = np.array([[1.0, 2.0], [3.0, -1.0], [-1.0, 0.0]] * 5)
    wanted = [[b, 2.5, a, a < b, a, a < 0] for a, b in rows]
    np.testing.assert_array_equal(program(rows), np.array(wanted, float))
    np.testing.assert_array_equal(program(rows[0]), np.array(wanted[0], float))


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 17, 64])
def test_transposing_handles_every_width(width):
    """Rows of any length come in and go out in order, shared inputs too."""
    program = flat_program(
        lambda x: [y + 1.0 for y in reversed(x)], width, width, engine="native"
    )
    rng = np.random.default_rng(width)
    for count in (0, 1, 7, 8, 9, 15, 16, 17, 100):
        rows = rng.normal(size=(count, width))
        np.testing.assert_array_equal(program(rows), rows[:, ::-1] + 1.0)
        around = np.full((count + 4, width), 7.0)
        program(rows, out=around[2:-2])
        np.testing.assert_array_equal(around[2:-2], rows[:, ::-1] + 1.0)
        assert (around[[0, 1, -2, -1]] == 7.0).all()


def test_rows_keep_their_bits(shipped):
    """Neither batch size nor place nor thread count changes a row."""
    model = shipped["arm7"]
    rng = np.random.default_rng(0)
    for name in ("rnea", "aba", "crba"):
        program = dyn.solver(name).build(model, engine="native", threads=1)
        several = dyn.solver(name).build(model, engine="native", threads=3)
        inputs = [rng.normal(size=(65536, *port.shape)) for port in program.inputs]
        whole = program(*inputs)
        np.testing.assert_array_equal(several(*inputs), whole)
        for size in (1, 7, 8, 9, 4095):
            part = program(*[x[-size:] for x in inputs])
            np.testing.assert_array_equal(part, whole[-size:])
        for row in (0, 4097, 65535):
            one = program(*[x[row] for x in inputs])
            np.testing.assert_array_equal(one, whole[row])


@pytest.mark.skipif("x86_64" not in platform.machine(), reason="its own machines")
@pytest.mark.parametrize(
    ("cpu", "width", "fused"), [("x86-64-v3", 4, True), ("x86-64-v2", 2, False)]
)
def test_lesser_machines_are_served(cpu, width, fused, shipped, monkeypatch):
    """Narrower vectors and no fused multiply-add: the same numbers, lane = single."""
    host = host_machine.machine()
    if fused and not host.fused:
        pytest.skip("this machine is a lesser one")
    other = replace(
        host, cpu=cpu, features="", width=width, fused=fused, key=f"{cpu} {host.key}"
    )
    monkeypatch.setattr(host_machine, "machine", lambda: other)
    rng = np.random.default_rng(6)
    for name, robot in (
        ("rnea", "arm7"),
        ("aba", "quadruped"),
        ("crba", "every_joint"),
    ):
        model = shipped[robot]
        program = dyn.solver(name).build(model, engine="native")
        assert program.lanes == width
        graph = dyn.solver(name).build(model, engine="graph")
        q = np.array([model.random(rng) for _ in range(21)])
        inputs = [q, *rng.normal(size=(2, 21, model.nv))][: len(program.inputs)]
        outputs, wanted = program(*inputs), graph(*inputs)
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(outputs, wanted, rtol=0, atol=1e-11 * scale)
        for row in range(21):
            np.testing.assert_array_equal(
                program(*[x[row] for x in inputs]), outputs[row]
            )


def test_blocks_are_batches(shipped):
    """Data kept in blocks gives the same bits without transposing."""
    program = dyn.solver("aba").build(shipped["arm7"], engine="native")
    rng = np.random.default_rng(1)
    rows = 5 * program.lanes
    inputs = [rng.normal(size=(rows, 7)) for _ in range(3)]
    blocks = [
        program.to_blocks(x, port.name)
        for x, port in zip(inputs, program.inputs, strict=True)
    ]
    out = np.empty_like(blocks[0])
    assert program.run_blocks(*blocks, out=[out]) == 0
    np.testing.assert_array_equal(program.from_blocks(out, "qdd"), program(*inputs))
    with pytest.raises(dyn.ShapeError, match="a multiple of"):
        program.to_blocks(inputs[0][:-1], "q")
    with pytest.raises(dyn.ShapeError, match="qdd: wanted memory of its own"):
        program.run_blocks(*blocks, out=[blocks[0]])
    with pytest.raises(dyn.ShapeError, match="q: wanted a C-order"):
        program.run_blocks(blocks[0][:, :, ::-1], *blocks[1:], out=[out])


def test_long_chains(full):
    """Chains up to 1000 joints compile, and forward dynamics undoes inverse.

    25 joints without --full.
    """
    n = 1000 if full else 25
    model = chain(n)
    rng = np.random.default_rng(4)
    q, qd, qdd = rng.uniform(-0.5, 0.5, (3, n))
    tau = dyn.solver("rnea").build(model, engine="native")(q, qd, qdd)
    plain = dyn.solver("rnea_spatial").build(model, engine="plain")(q, qd, qdd)
    np.testing.assert_allclose(tau, plain, rtol=1e-9, atol=1e-9 * np.abs(plain).max())
    back = dyn.solver("aba").build(model, engine="native")(q, qd, tau)
    again = dyn.solver("rnea").build(model, engine="native")(q, qd, back)
    np.testing.assert_allclose(again, tau, atol=1e-9 * np.abs(tau).max())


def test_parameters_are_inputs_of_kernels(shipped):
    """Gravity and payload per row change nothing but their row; nothing is rebuilt."""
    model = shipped["arm7"]
    link = model.frame_names[-1]
    program = dyn.solver("rnea").build(
        model, engine="native", inputs=["gravity", f"{link}.payload"]
    )
    rng = np.random.default_rng(5)
    q, qd, qdd = rng.normal(size=(3, 20, 7))
    gravity = rng.normal(size=(20, 3))
    payload = np.abs(rng.normal(size=(20, 10))) * 0.1
    rows = program(q, qd, qdd, gravity, payload)
    graph = dyn.solver("rnea").build(
        model, engine="graph", inputs=["gravity", f"{link}.payload"]
    )
    np.testing.assert_allclose(
        rows, graph(q, qd, qdd, gravity, payload), rtol=1e-11, atol=1e-11
    )
    assert program(q[3], qd[3], qdd[3]).shape == (7,)


def test_calls_of_programs_are_left_to_python(shipped):
    """A slot filled with a NumpySolver runs between the two halves."""

    class Zero(dyn.authoring.NumpySolver):
        name, signature = "zero", dyn.problems.INVERSE_DYNAMICS

        def solve(self, model, q, qd, qdd, f_ext=None):
            return 0 * qdd

    program = dyn.solver("computed_torque").build(
        shipped["arm7"], engine="native", inverse_dynamics=Zero()
    )
    assert program.engine == "graph"
    assert not program(*np.ones((7, 7))).any()


@pytest.mark.parametrize("limit", [50e-6, 0.0])
def test_only_a_long_call_lets_other_threads_run(limit, shipped, monkeypatch):
    """One state, too: from 50 us on the GIL is released, here from 0 on."""
    monkeypatch.setattr(native_program, "_HOLD", limit)
    model = shipped["quadruped"]
    program = dyn.solver("aba").build(model, engine="native")
    program.prepare()
    x = [np.zeros(p.shape) for p in program.inputs]
    x[0] = model.neutral()
    before, start, ended = sys.getswitchinterval(), threading.Event(), False
    turns = 0

    def other():
        nonlocal turns
        start.set()
        while not ended:
            turns += 1
            select.select([], [], [], 0)  # releases the GIL

    thread = threading.Thread(target=other)
    thread.start()
    start.wait()
    sys.setswitchinterval(1e6)  # [s]: only a thread that waits or releases gives way
    try:
        gave_way = calls = 0
        # The other thread needs a core of a busy machine in the moment of a release.
        while calls < 200 or (limit == 0.0 and not gave_way and calls < 10**6):
            turns_before = turns
            expected = program(*x)
            gave_way += turns != turns_before
            calls += 1
    finally:
        sys.setswitchinterval(before)
        ended = True
        thread.join()
    assert np.isfinite(expected).all()
    assert (gave_way > 0) == (limit == 0.0)


def test_the_time_of_a_call_is_measured_where_it_may_be_long(shipped, monkeypatch):
    """Steps alone say little where large results go to memory."""
    monkeypatch.setattr(native_program, "_FAST", 0.0)
    program = dyn.solver("aba").build(shipped["arm7"], engine="native")
    program.prepare()
    (made,) = program.kernels()
    estimated = made.steps * STEP["scalar"]
    assert program._seconds(made) > estimated
    for name, value in (("_FAST", 1.0), ("_HOLD", estimated)):  # no need to measure
        with monkeypatch.context() as patch:
            patch.setattr(native_program, name, value)
            assert program._seconds(made) == estimated
