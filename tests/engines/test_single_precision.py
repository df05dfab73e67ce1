"""Programs of float32: accuracy, the same bits in rows and lanes, laws, refusals."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import native_program
from dyn_core.engines.llvm import host_machine, kernel
from dyn_core.errors import ShapeError, SingularError, UnsupportedError
from dyn_core.numbers import scalar
from dyn_core.testing import SINGLE_TOLERANCES, scaled_error
from dyn_core.testing.conformance import check
from dyn_core.testing.flat_programs import flat_program

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)

SINGLE = {"engine": "native", "dtype": "float32"}
_RANGES = {
    "sin": [(-1e4, 1e4), (-0.8, 0.8), (-1e9, 1e9)],
    "cos": [(-1e4, 1e4), (-0.8, 0.8), (-1e9, 1e9)],
    "exp": [(-1, 1), (-80, 80)],
    "log": [(1e-3, 3), (1e-30, 1e30)],
    "tanh": [(-0.7, 0.7), (-25, 25)],
    "asin": [(-1, 1)],
    "acos": [(-1, 1)],
}
SOLVERS = (
    "rnea", "aba", "crba", "bias", "gravity", "mass_matrix_inverse", "energy",
    "id_derivatives", "fd_derivatives", "semi_implicit_euler", "forward_kinematics",
    "jacobian", "momentum",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(_RANGES))
def test_functions_stay_within_their_bounds(name):
    """In ulps of float32, against float64; a value alone has the bits of a lane."""
    function = getattr(scalar, name)
    program = flat_program(lambda x: [function(x[0])], 1, 1, **SINGLE)
    reference = getattr(np, {"asin": "arcsin", "acos": "arccos"}.get(name, name))
    rng = np.random.default_rng(7)
    for low, high in _RANGES[name]:
        x = rng.uniform(low, high, 100_003).astype(np.float32)[:, None]
        got, wanted = program(x), reference(x.astype(float))
        assert got.dtype == np.float32
        space = np.spacing(np.abs(wanted).astype(np.float32))
        error = float((np.abs(got - wanted) / space).max())
        assert error <= SINGLE_TOLERANCES["function"], (low, high, error)
        for k in (0, 1, 100_002):
            assert program(x[k]) == got[k]


def test_special_values():
    """NaN and infinity in mean NaN out of sines; zero keeps its sign."""
    program = flat_program(
        lambda x: [scalar.sin(x[0]), scalar.cos(x[0])], 1, 2, **SINGLE
    )
    x = np.array([0.0, -0.0, np.nan, np.inf, -np.inf], np.float32)
    sine, cosine = program(x[:, None]).T
    assert not np.signbit(sine[0]) and np.signbit(sine[1])
    np.testing.assert_array_equal(cosine[:2], 1.0)
    assert np.isnan(sine[2:]).all() and np.isnan(cosine[2:]).all()


def _parts(value):
    return value if isinstance(value, tuple) else (value,)


def _options(name, model):
    return {"frame": model.frame_names[-1]} if name == "jacobian" else {}


@pytest.mark.turns("robot")
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("robot", ["quadruped", "arm7"])
def test_a_row_has_the_bits_of_a_state(shipped, name, robot):
    """Near float64; alone, in few rows, in any place of a batch the same bits."""
    model = shipped[robot]
    if name == "jacobian" and robot == "quadruped":
        model = shipped["planar3"]
    options = _options(name, model)
    single = dyn.solver(name).build(model, **SINGLE, **options)
    double = dyn.solver(name).build(model, engine="graph", **options)
    assert single.lanes == 2 * host_machine.machine().width
    if (name, robot) == ("fd_derivatives", "quadruped"):
        assert single.graph.counts()["product"] > 0
    rng, rows = np.random.default_rng(7), 2 * single.lanes + 3
    inputs = [
        np.array([model.random(rng) for _ in range(rows)])
        if port.kind == "position"
        else np.full(rows, 1e-3)
        if port.name == "dt"
        else rng.normal(size=(rows, *port.shape))
        for port in single.inputs
    ]
    inputs = [x.astype(np.float32) for x in inputs]
    many, wanted = _parts(single(*inputs)), _parts(double(*inputs))
    for x, y in zip(many, wanted, strict=True):
        assert x.dtype == np.float32
        assert scaled_error(x, y) < SINGLE_TOLERANCES["exact"]
    for k in (0, 5, rows - 1):
        one = _parts(single(*[x[k] for x in inputs]))
        few = _parts(single(*[x[k : k + 3] for x in inputs]))
        for x, y, z in zip(many, one, few, strict=True):
            np.testing.assert_array_equal(x[k], np.float32(y))
            np.testing.assert_array_equal(x[k], z[0])
    out = tuple(np.empty(x.shape, np.float32) for x in many)
    single(*inputs, out=out if len(out) > 1 else out[0])
    for x, y in zip(many, out, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.turns("robot")
@pytest.mark.parametrize("name", ["rnea", "aba", "crba", "id_derivatives"])
@pytest.mark.parametrize("robot", ["arm7", "every_joint"])
def test_laws_hold(shipped, name, robot):
    """The laws of float64, within the tolerances of float32."""
    findings = check(dyn.solver(name), shipped[robot], **SINGLE)
    assert len(findings) >= 4
    broken = [str(finding) for finding in findings if not finding.good]
    assert not broken, broken


def test_data_in_blocks(shipped):
    """Blocks of twice as many lanes give the bits of rows."""
    program = dyn.solver("crba").build(shipped["arm7"], **SINGLE)
    q = np.random.default_rng(7).normal(size=(4 * program.lanes, 7))
    blocks = program.to_blocks(q, "q")
    assert blocks.dtype == np.float32
    out = np.empty((4, 49, program.lanes), np.float32)
    assert program.run_blocks(blocks, out=[out]) == 0
    wanted = program(q.astype(np.float32))
    np.testing.assert_array_equal(program.from_blocks(out, "H"), wanted)


def test_what_is_refused(shipped):
    """Another out, another engine, another word; a pivot that 24 bits cannot tell."""
    arm = shipped["arm7"]
    program = dyn.solver("gravity").build(arm, **SINGLE)
    with pytest.raises(ShapeError, match="float32"):
        program(np.zeros(7), out=np.zeros(7))
    with pytest.raises(UnsupportedError, match="dtype"):
        dyn.solver("gravity").build(arm, engine="graph", dtype="float32")
    with pytest.raises(UnsupportedError, match="valid: float64, float32"):
        dyn.solver("gravity").build(arm, dtype="float16")
    q = np.zeros(7)
    q[3] = np.nan
    finite = dyn.solver("gravity").build(arm, finite=True, **SINGLE)
    with pytest.raises(dyn.errors.NonFiniteError):
        finite(q.astype(np.float32))


def test_singular_pivots_are_told_in_24_bits():
    """An inertia that is lost beside the others is a SingularError, here of a build."""
    root = '<robot name="r"><link name="a"/><link name="b">%s</link><link name="c">%s</link>%s</robot>'
    body = (
        '<inertial><mass value="%g"/><inertia ixx="{0}" iyy="{0}" izz="{0}"'
        ' ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    joint = (
        '<joint name="%s" type="continuous"><parent link="%s"/><child link="%s"/>'
        '<axis xyz="0 0 1"/></joint>'
    )
    heavy = (body % 1.0).format(1.0)
    light = (body % 1e-9).format(1e-9)
    joints = joint % ("one", "a", "b") + joint % ("two", "b", "c")
    model = dyn.load_urdf(root % (light, heavy, joints), check="warn")
    wide = dyn.solver("aba").build(model, engine="native")
    assert np.isfinite(wide(*np.ones((3, 20, 2)))).all()
    with pytest.raises(SingularError, match="one"):
        dyn.solver("aba").build(model, **SINGLE)


def test_a_first_call_waits_for_its_kernel(shipped, monkeypatch):
    """However large it is: the interpreter computes with float64."""
    monkeypatch.setattr(native_program, "AT_ONCE", 0)
    program = dyn.solver("gravity").build(shipped["arm7"], **SINGLE)
    assert program(np.ones(7)).dtype == np.float32
    assert program(np.ones((50, 7))).dtype == np.float32
    assert [type(made) for made in program.kernels()] == [kernel.Kernel] * 2


def test_kernels_are_kept_apart(build, shipped):
    """The same Graph has other kernels, in memory and on disk."""
    arm = shipped["arm7"]
    double = dyn.solver("gravity").build(arm, engine="native")
    single = dyn.solver("gravity").build(arm, **SINGLE)
    assert double.facts.kernel != single.facts.kernel
    assert kernel.lanes(single.dtype) == 2 * kernel.lanes(double.dtype)
    assert double(np.ones(7)).dtype == np.float64
    assert single(np.ones(7)).dtype == np.float32
