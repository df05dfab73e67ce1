"""Machine code that calls Programs, and functions of traced numbers in it."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.contact.rows import contact_biases
from dyn_core.engines.machine_code import (
    NO_KERNEL,
    BlockKernel,
    FloatArray,
    KernelAddress,
    PythonKernel,
    TiedBatch,
    TiedBlock,
    TiedKernel,
    call_python,
    compiled,
    machine_code,
    run_block,
    run_kernel,
)
from dyn_core.errors import ShapeError, SingularError, TraceError
from dyn_core.numbers.scalar import maximum, minimum, where

ENGINES = ("native", "graph", "plain")
SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.5)


@machine_code
def run_twice(
    first: KernelAddress, second: KernelAddress, x: FloatArray, gain: float
) -> int:
    """Run two kernels; in between numbers that the second reads become larger."""
    status = 0
    if first.address != 0:
        status = run_kernel(first)
    for k in range(len(x)):
        x[k] *= gain
    return status + 10 * run_kernel(second)


@machine_code
def choose(a: float, b: float) -> tuple[float, float, float]:
    """Return the extremes of two numbers, and one of them."""
    return minimum(a, b), maximum(a, b), where(a > 0.0, a, b)


@machine_code
def choose_badly(a: float) -> float:
    """Not of the subset: two types."""
    return where(a > 0.0, a, 1)


@pytest.mark.parametrize("checked", (False, True))
@pytest.mark.parametrize("engine", ENGINES)
def test_programs_run_where_their_arrays_lie(engine, checked):
    """The results of both calls, with what was written between them; Python, too."""
    model = dyn.load("arm7")
    rng = np.random.default_rng(0)
    q, qd, qdd = model.random(rng), *rng.standard_normal((2, model.nv))
    rnea = dyn.solver("rnea").build(model, engine=engine)
    wanted = rnea(q, qd, qdd), rnea(q, qd, 2.0 * qdd)
    for form in (compiled(run_twice, checked=checked), run_twice):
        memory = tuple(x.copy() for x in (q, qd, qdd))
        results = np.zeros((2, model.nv))
        kernels = [TiedKernel(rnea, memory, (result,)) for result in results]
        status = form(*(k.kernel for k in kernels), memory[2], 2.0)
        assert status == 0
        np.testing.assert_array_equal(results, wanted)
        results[:] = 0.0
        assert form(NO_KERNEL, kernels[1].kernel, memory[2], 0.5) == 0
        assert not results[0].any()
        np.testing.assert_array_equal(results[1], wanted[0])


@machine_code
def run_block_twice(block: BlockKernel) -> int:
    """A block gives the same results each time."""
    return run_block(block) + run_block(block)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_block_of_states_has_the_results_of_rows(engine):
    model, rng = dyn.load("arm7"), np.random.default_rng(1)
    crba = dyn.solver("crba").build(model, engine=engine)
    for form in (compiled(run_block_twice), run_block_twice):
        block = TiedBlock(crba)
        lanes = len(block.status)
        q = np.array([model.random(rng) for _ in range(lanes)])
        block.inputs[0][...] = q.T
        assert form(block.kernel) == 0
        assert not block.status.any()
        results = block.outputs[0].T.reshape(lanes, 7, 7)
        np.testing.assert_array_equal(results, crba(q))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_that_refuses_says_so(engine):
    """The status of a failed requirement; the same call in Python raises."""
    limits = {"type": "spherical", "swing": 0.5}
    model = dyn.load_urdf(
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="floating"><parent link="a"/><child link="b"/></joint>'
        "</robot>",
        extras={"joints": {"j": limits}},
    )
    terms = dyn.solver("contact_terms").build(model, engine=engine)
    upside_down = np.array([1.0, 0.0, 0.0, 0.0])
    inputs = upside_down, np.zeros(3), np.zeros(3), np.array(1e-3)
    outputs = tuple(np.zeros(port.shape) for port in terms.outputs)
    tied = TiedKernel(terms, inputs, outputs)
    assert compiled(run_kernel)(tied.kernel) != 0
    with pytest.raises(SingularError, match="swing is pi"):
        terms(*inputs)
    with pytest.raises(ShapeError, match="dt"):
        TiedKernel(terms, (*inputs[:3], np.zeros(1)), outputs)
    upside_down[:] = 0.0, 0.0, 0.0, 1.0
    assert compiled(run_kernel)(tied.kernel) == 0
    assert outputs[-1][0] == pytest.approx(0.5)


def test_programs_of_another_precision_are_refused():
    """Their numbers have another size in memory."""
    rnea = dyn.solver("rnea").build(dyn.load("arm7"), engine="native", dtype="float32")
    memory = [np.zeros(7) for _ in range(4)]
    with pytest.raises(ShapeError, match="float64"):
        TiedKernel(rnea, memory[:3], memory[3:])
    with pytest.raises(ShapeError, match="float64"):
        TiedBatch(rnea, [x[None] for x in memory[:3]], [memory[3][None]])


def test_machine_code_calls_python():
    """A function of Python gets the three whole numbers, and its result comes back."""
    function = PythonKernel(lambda a, b, c: a + 10 * b + 100 * c)
    assert compiled(call_python)(function.kernel, 1, 2, 3) == 321
    assert call_python(function.kernel, -1, 0, 0) == -1


def test_choices_have_the_bits_of_python():
    """where, minimum and maximum, of zeros, infinities and NaN; one type each."""
    form = compiled(choose)
    for a in SPECIAL:
        for b in SPECIAL:
            got, wanted = np.array(form(a, b)), np.array(choose(a, b))
            assert np.array_equal(got, wanted, equal_nan=True), (a, b)
            numbers = ~np.isnan(wanted)
            signs = np.signbit(got) == np.signbit(wanted)
            assert signs[numbers].all(), (a, b)
    with pytest.raises(TraceError, match="is float or int"):
        compiled(choose_badly).prepare()


@pytest.mark.parametrize("name", contact_biases.RULES)
def test_gap_rules_are_machine_code(name):
    """The same bits as in Python, for gaps and speeds of either sign."""
    rule, rng = contact_biases.RULES[name], np.random.default_rng(1)
    form = compiled(rule)
    for gap, approach in [*rng.uniform(-1e-2, 1e-2, (50, 2)), (0.0, -1.0), (1e-10, 0)]:
        free = float(rng.uniform(-1e-2, 1e-2))
        numbers = float(gap), free, float(approach), 1e-3, 0.5, 1e-3, 0.2, 0.1
        assert form(*numbers) == rule(*numbers)
    assert compiled(contact_biases.correction)(1.0, -1.0, 0.1, 1e-3, 0.2, 0.1) == 0.0
