"""The interpreter of Graphs computes, bit by bit, what kernels compute."""

import platform
from dataclasses import replace

import numpy as np
import pytest
from random_programs import WIDTH, newton_root, random_algorithm, random_rows

import dyn_core as dyn
from dyn_core.authoring import loop, product, require
from dyn_core.engines.llvm import host_machine, kernel
from dyn_core.engines.llvm.interpreter import Interpreter, interpreter
from dyn_core.spatial import Matrix
from dyn_core.testing.flat_programs import flat_program

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)


def interpreted(program):
    """Return a Program of the same Graph that has no kernels but is interpreted."""
    choices = dict(program.recipe.choices)
    other = program.recipe.solver.build(program.model, **choices)
    variants = Interpreter(program.graph, program._sizes).variants
    other._kernels = variants
    for name, made in variants.items():
        other._offer(name, made)
    return other


def same_bits(first, second):
    """Whether two results agree to the bit; NaN is NaN."""
    pairs = (
        [(first, second)]
        if isinstance(first, np.ndarray)
        else zip(first, second, strict=True)
    )
    return all(
        ((a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))).all()
        for a, b in (map(np.asarray, pair) for pair in pairs)
    )


def agree(program, *rows):
    """Check one state, few rows, a batch, blocks."""
    other = interpreted(program)
    program.prepare(batch=True)
    lanes = program.lanes
    assert same_bits(other(*rows), program(*rows))
    assert same_bits(other(*[x[:3] for x in rows]), program(*[x[:3] for x in rows]))
    for k in range(3):
        row = [np.ascontiguousarray(x[k]) for x in rows]
        assert same_bits(other(*row), program(*row))
    ports = zip(rows, program.inputs, strict=True)
    blocks = [program.to_blocks(x[: 2 * lanes], port.name) for x, port in ports]
    outs = [
        [np.zeros((2, port.size, lanes)) for port in program.outputs] for _ in range(2)
    ]
    failed = [
        p.run_blocks(*blocks, out=out)
        for p, out in zip((program, other), outs, strict=True)
    ]
    assert failed[0] == failed[1]
    assert same_bits(*outs)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_have_the_bits_of_their_kernels(seed):
    """Every operation, with NaN, infinities and zeros of both signs among the inputs."""
    algorithm = random_algorithm(seed, 120, everything=True)
    agree(
        flat_program(algorithm, WIDTH, 120, engine="native", wait=True),
        random_rows(seed, 29),
    )


@pytest.mark.parametrize(
    ("name", "robot"),
    [("rnea", "arm7"), ("aba", "every_joint"), ("crba", "quadruped"),
     ("id_derivatives", "arm7"), ("forward_kinematics", "every_joint")],
)  # fmt: skip
def test_solvers_have_the_bits_of_their_kernels(name, robot, shipped):
    """One state and rows, solvers and robots."""
    model, rng = shipped[robot], np.random.default_rng(2)
    program = dyn.solver(name).build(model, engine="native", wait=True)
    q = np.array([model.random(rng) for _ in range(21)])
    rows = [q, *(rng.normal(size=(21, *port.shape)) for port in program.inputs[1:])]
    agree(program, *rows)


def test_no_status_is_written_where_nothing_is_required():
    """As by kernels: who calls has no memory for it."""
    program = flat_program(newton_root, 1, 2, engine="native", wait=True)
    made = Interpreter(program.graph, program._sizes).variants["batch"]
    x, out = np.ones((40, 1)), np.zeros((40, 2))
    status, memory = np.full(40, 7), made.memory()
    tables = [kernel.pointers([y.ctypes.data]) for y in (x, out)]
    strides = kernel.pointers([8])
    made.call["batch"](
        tables[0], strides, tables[1], status.ctypes.data, 0, 40, memory[1]
    )
    assert out[:, 0].all() and (status == 7).all()


def test_loops_have_the_bits_of_their_kernels():
    """Each lane stops by its own condition, as in the kernel."""
    agree(
        flat_program(newton_root, 1, 2, engine="native", wait=True),
        np.logspace(-3, 8, 40)[:, None],
    )


@pytest.mark.parametrize("rounds", [0, 1, 4, 5])
def test_counted_loops_have_large_states(rounds):
    """Loops that always go on, around one that does not; equal constants, products."""
    n = 9

    def function(x):
        def turn(state):
            y, rows = state[0], [state[k : k + n] for k in range(1, len(state), n)]
            (y,) = loop((y,), lambda s: (s[0] + x[1],), lambda s: s[0] < x[2], 3)
            A = product(Matrix(rows), Matrix(rows), Matrix.identity(n))
            B = A * 0.1 + Matrix(rows[1:] + rows[:1]) * x[3]
            return y, *(z for row in B.rows for z in row)

        state = loop((x[0], *[0.25] * n * n), turn, lambda s: True, rounds)
        return [*state, state[3] + x[0]]

    program = flat_program(function, 4, 2 + n * n, engine="native", wait=True)
    rows = np.random.default_rng(2).normal(size=(40, 4))
    agree(program, rows)
    wanted = [program.graph.run(row.tolist())[0] for row in rows]
    np.testing.assert_allclose(program(rows), wanted, rtol=1e-11, atol=1e-12)


def test_loops_nest_swap_and_fail():
    """State that changes places, captured values, an outer loop, requirements."""

    def function(x):
        def outer(state):
            a, b, i = state
            require(a < 0.9, dyn.InfeasibleError, "in a turn")

            def inner(s):
                require(s[1] > -1.5, dyn.InfeasibleError, "in an inner turn")
                return s[1], s[0] * x[1] + i

            a, b = loop((a, b), inner, lambda s: s[0] < x[2], max=7)
            return b, a, i + 1.0

        a, b, rounds = loop((x[0], 0.5, 0.0), outer, lambda s: s[2] < x[3], max=9)
        require(a < 1.5, dyn.InfeasibleError, "first")
        require(b < 0.7, dyn.InfeasibleError, "second")
        return [a, b, rounds, x[0], 3.0, a < b, a]

    program = flat_program(function, 4, 7, engine="native", wait=True)
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 4)) * [1.0, 2.0, 9.0, 5.0]
    other = interpreted(program)
    wanted, states = program(rows, status=True)
    got, statuses = other(rows, status=True)
    assert same_bits(got, wanted)
    np.testing.assert_array_equal(statuses, states)
    assert {*states} == {0, 1, 2, 3, 4}
    for row, state in zip(rows, states, strict=True):
        assert other(row, status=True)[1] == state
    row = rows[states == 3][0]
    with pytest.raises(dyn.InfeasibleError, match="first"):
        other(row)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(11, 13, 17), (4, 8, 16), (1, 1, 67)]
)
@pytest.mark.parametrize("negative", [False, True])
def test_products_have_the_bits_of_their_kernels(rows, inner, columns, negative):
    """Tiles of every size, products of products, onto others, of constants."""
    width = 24

    def function(x):
        entries = [x[(5 * k) % width] * (k + 1.0) for k in range(rows * inner)]
        A = Matrix([entries[i * inner : (i + 1) * inner] for i in range(rows)])
        others = [
            [x[(3 * i + j) % width] for j in range(columns)] for i in range(inner)
        ]
        others[0][0] = 2.0
        C = product(A, Matrix(others), negative=negative)
        onto = [[x[(i * j) % width] for j in range(columns)] for i in range(columns)]
        D = product(C.T, C, onto=Matrix(onto) if negative else None)
        D = product(D, D, onto=D, negative=negative)
        return [D[i, j] for i in range(columns) for j in range(columns)]

    program = flat_program(function, width, columns**2, engine="native", wait=True)
    ops = [node.op for node in program.graph.nodes]
    assert "product" in ops
    agree(program, np.random.default_rng(0).normal(size=(29, width)))


@pytest.mark.skipif("x86_64" not in platform.machine(), reason="its own machines")
@pytest.mark.parametrize(
    ("cpu", "width", "fused"), [("x86-64-v3", 4, True), ("x86-64-v2", 2, False)]
)
def test_lesser_machines_are_served(cpu, width, fused, monkeypatch):
    """Narrower vectors and no fused multiply-add."""
    host = host_machine.machine()
    if fused and not host.fused:
        pytest.skip("this machine is a lesser one")
    other = replace(
        host, cpu=cpu, features="", width=width, fused=fused, key=f"{cpu} {host.key}"
    )
    monkeypatch.setattr(host_machine, "machine", lambda: other)
    algorithm = random_algorithm(3, 80, everything=True)
    program = flat_program(algorithm, WIDTH, 80, engine="native", wait=True)
    assert program.lanes == width
    agree(program, random_rows(5, 21))


def test_a_damaged_entry_is_made_again(tmp_path, monkeypatch):
    """The interpreter's own machine code lies in the cache like that of kernels."""
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "kernels"))
    interpreter._machine_code.cache_clear()
    kernel.forget()
    program = flat_program(newton_root, 1, 2, engine="native", wait=True)
    wanted = program([2.0])
    assert same_bits(interpreted(program)([2.0]), wanted)
    (path,) = (tmp_path / "kernels").glob("interpreter-*.obj")
    sound = path.read_bytes()
    path.write_bytes(sound[:-1])
    interpreter._machine_code.cache_clear()
    assert same_bits(interpreted(program)([2.0]), wanted)
    assert path.read_bytes() == sound
