"""Programs in CasADi: values, Jacobians, sparsity, and what is refused."""

import re
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.bridges import casadi as dyn_casadi
from dyn_core.errors import CompileError, ShapeError, UnsupportedError
from dyn_core.testing import random_model

EXAMPLE = Path(__file__).parents[2] / "examples" / "casadi_swing.py"
DT = 0.02
CASES = {
    "rnea": {"joint_friction": True, "joint_springs": True},
    "aba": {"joint_friction": True},
    "semi_implicit_euler": {"joint_friction": True},
    "rk4": {},
}


@pytest.fixture(scope="module")
def ca():
    """CasADi, where it and a compiler are."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return pytest.importorskip("casadi", reason="casadi is not installed")


@pytest.fixture(scope="module", params=["arm7", "two_link", "tree"])
def robot(request):
    """A chain, a short one, and a random tree of joints with one coordinate."""
    if request.param != "tree":
        return dyn.load_urdf(dyn.robots.path(request.param))
    return dyn.load_urdf(TREE)


def _branch(name, parent, axis):
    return f"""<link name="{name}"><inertial><origin xyz="0.1 0.2 0"/><mass value="2"/>
<inertia ixx="0.05" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="to_{name}" type="{axis[1]}"><parent link="{parent}"/><child link="{name}"/>
<origin xyz="0.3 0 0.1"/><axis xyz="{axis[0]}"/><dynamics damping="0.3" friction="0.1"/>
<limit lower="-3" upper="3" effort="60" velocity="4"/></joint>"""


TREE = f"""<robot name="tree"><link name="base"/>
{_branch("a", "base", ("0 1 0", "revolute"))}{_branch("b", "a", ("1 0 0", "revolute"))}
{_branch("c", "a", ("0 0 1", "prismatic"))}{_branch("d", "c", ("0 1 0", "revolute"))}
</robot>"""


def _function(robot, name):
    program = dyn.solver(name).build(robot, **CASES[name])
    constants = {"dt": DT} if len(program.inputs) == 4 else {}
    return program, dyn_casadi.function(program, constants=constants), constants


def _results(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("name", CASES)
def test_values_have_the_bits_of_the_program(ca, robot, name):
    """The machine code is the same."""
    program, function, constants = _function(robot, name)
    x = np.random.default_rng(1).uniform(-1, 1, (3, robot.nv))
    expected = _results(program(*x, *constants.values()))
    for got, wanted in zip(_results(function(*x)), expected, strict=True):
        np.testing.assert_array_equal(np.array(got).ravel(), wanted)


@pytest.mark.parametrize("name", CASES)
def test_jacobians_agree_with_differences(ca, robot, name):
    """To 1e-6 of their size, through an expression of CasADi."""
    program, function, constants = _function(robot, name)
    n = robot.nv
    parts = [ca.MX.sym(x, n) for x in "abc"]
    whole = ca.vertcat(*_results(function(*parts)))
    slopes = ca.Function("slopes", parts, [ca.jacobian(whole, ca.vertcat(*parts))])
    x = np.random.default_rng(2).uniform(-1, 1, (3, n))
    got, h = np.array(slopes(*x)), 1e-5

    def values(x):
        return np.concatenate(_results(program(*x, *constants.values())))

    for k in range(3 * n):
        d = h * np.eye(3 * n)[k].reshape(3, n)
        exact = (
            8 * (values(x + d) - values(x - d)) - values(x + 2 * d) + values(x - 2 * d)
        ) / (12 * h)
        np.testing.assert_allclose(got[:, k], exact, atol=1e-6 * abs(got).max())


def test_the_sparsity_is_that_of_the_tree(ca):
    """Branches do not see each other; torques do not depend on a turn about z."""
    robot = dyn.load_urdf(TREE)
    _, function, _ = _function(robot, "rnea")
    inertia = np.array(function.jacobian().sparsity_out(2))
    H = dyn.solver("crba").build(robot)(np.array([0.3, 0.5, 0.1, -0.4]))
    np.testing.assert_array_equal(inertia != 0, abs(H) > 0)
    assert inertia[1, 2] == inertia[1, 3] == 0
    arm = dyn.load_urdf(dyn.robots.path("arm7"))
    slopes = np.array(_function(arm, "rnea")[1].jacobian().sparsity_out(0))
    assert not slopes[:, 0].any() and slopes[:, 1:].all()


def test_reverse_derivatives_agree_with_the_jacobian(ca):
    """What Ipopt asks for: the gradient of a sum over mapped steps."""
    arm = dyn.load_urdf(dyn.robots.path("arm7"))
    _, function, _ = _function(arm, "aba")
    x = ca.MX.sym("x", 21)
    cost = ca.sumsqr(function.map(3)(*[ca.reshape(x[k::3], 7, 1) for k in range(3)]))
    gradient = ca.Function("gradient", [x], [cost, ca.gradient(cost, x)])
    point = np.random.default_rng(3).uniform(-1, 1, 21)
    _, got = gradient(point)
    for k in range(0, 21, 4):
        d = 1e-6 * np.eye(21)[k]
        exact = (gradient(point + d)[0] - gradient(point - d)[0]) / 2e-6
        assert float(got[k]) == pytest.approx(float(exact), rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("name", ["rnea", "aba"])
def test_hessians_agree_with_differences(ca, robot, name):
    """To 1e-6 of their size, of a weighted sum of squares; symmetric to the last bits."""
    program = dyn.solver(name).build(robot, **CASES[name])
    function = dyn_casadi.function(program, hessian=True)
    n, rng = 3 * robot.nv, np.random.default_rng(3)
    x, weights = ca.MX.sym("x", n), rng.uniform(0.5, 1, robot.nv)
    value = function(*ca.vertsplit(x, robot.nv))
    hessian, gradient = ca.hessian(ca.dot(weights, value**2), x)
    exact = ca.Function("exact", [x], [hessian])
    slopes = ca.Function("slopes", [x], [gradient])
    point, h = rng.uniform(-1, 1, n), 1e-4
    got = np.array(exact(point))
    for k in range(0, n, max(1, n // 8)):
        d = h * np.eye(n)[k]
        near, far = (slopes(point + s * d) - slopes(point - s * d) for s in (1, 2))
        wanted = np.array(8 * near - far).ravel() / (12 * h)
        np.testing.assert_allclose(got[:, k], wanted, atol=1e-6 * abs(got).max())
    np.testing.assert_allclose(got, got.T, atol=1e-12 * abs(got).max())


def test_what_nothing_depends_on_has_no_entry_for_one_joint(ca):
    """By outputs that are not read, and of a status: no number outside of the kernel's."""
    one = dyn.load("two_link").lock({"joint2": 0.0})
    assert one.nv == 1
    program = dyn.solver("aba").build(one)
    slopes = dyn_casadi.function(program, hessian=True, status=True).jacobian()
    names = slopes.jacobian().name_out()
    for k, name in enumerate(names):
        if "_out_" in name or "status" in name:
            assert slopes.jacobian().sparsity_out(k).nnz() == 0
    assert sum("_out_" in name for name in names) == 12


@pytest.mark.parametrize("name", ["gravity", "bias", "crba"])
def test_parts_of_inverse_dynamics(ca, robot, name):
    """Values have the bits of the Program, Jacobians agree with differences."""
    program = dyn.solver(name).build(robot)
    function = dyn_casadi.function(program)
    x = np.random.default_rng(5).uniform(-1, 1, (len(program.inputs), robot.nv))
    np.testing.assert_array_equal(np.array(function(*x)).squeeze(), program(*x))
    parts = [ca.MX.sym(port.name, robot.nv) for port in program.inputs]
    whole = ca.vertcat(*parts)
    jacobian = ca.jacobian(function(*parts), whole)
    slopes, h = np.array(ca.Function("slopes", parts, [jacobian])(*x)), 1e-4
    for k in range(x.size):
        d = h * np.eye(x.size)[k].reshape(x.shape)
        near, far = (program(*(x + s * d)) - program(*(x - s * d)) for s in (1, 2))
        wanted = ((8 * near - far) / (12 * h)).ravel(order="F")
        np.testing.assert_allclose(slopes[:, k], wanted, atol=1e-6)


@pytest.fixture(scope="module")
def floating():
    """A floating base, a ball and a hinge."""
    kinds = ("spherical", "revolute", "floating")
    return random_model(2, size=3, kinds=kinds, massless=0.0)


def _point(model, names, seed=0):
    """Return inputs; quaternions of the position are not of unit length."""
    rng = np.random.default_rng(seed)
    q = model.random(rng)
    q[dyn_casadi.coordinates(model).lengths[0].any(0)] *= 1.7
    return [q if x == "q" else rng.uniform(-1, 1, model.nv) for x in names]


def _columns(function, point, h=1e-4):
    """Return differences of a function's first result by all numbers of its inputs."""
    ends = np.cumsum([len(x) for x in point])

    def value(x):
        return np.array(function(*np.split(x, ends[:-1]))).ravel(order="F")

    x = np.concatenate(point)
    return np.stack([
        (8 * (value(x + d) - value(x - d)) - value(x + 2 * d) + value(x - 2 * d))
        / (12 * h)
        for d in h * np.eye(len(x))
    ], axis=1)  # fmt: skip


@pytest.mark.parametrize("name", ["rnea", "aba", "crba", "semi_implicit_euler"])
def test_positions_with_quaternions(ca, floating, name):
    """f(q) = program(normalize(q)), with the gradients of the other bridges: by nq numbers,
    orthogonal to each quaternion, equal to differences; Hessians where there are some.
    """
    program = dyn.solver(name).build(floating)
    twice = name in ("rnea", "aba")
    constants = {"dt": DT} if name == "semi_implicit_euler" else {}
    function = dyn_casadi.function(program, constants=constants, hessian=twice)
    point = _point(floating, function.name_in())
    unit = [floating.normalize(point[0]), *point[1:]]
    np.testing.assert_allclose(
        np.array(dyn_casadi.normalize(floating, ca.DM(point[0]))).ravel(), unit[0],
        rtol=1e-15,
    )  # fmt: skip
    expected = _results(program(*unit, *constants.values()))
    for got, wanted in zip(_results(function(*point)), expected, strict=True):
        np.testing.assert_allclose(np.array(got).squeeze(), wanted, atol=1e-13)
    parts = [
        ca.MX.sym(x, len(y)) for x, y in zip(function.name_in(), point, strict=True)
    ]
    whole = ca.vertcat(*parts)
    value = ca.vertcat(*map(ca.vec, _results(function(*parts))))
    slopes = ca.Function("slopes", parts, [ca.jacobian(value, whole)])
    got = np.array(slopes(*point))
    wanted = _columns(ca.Function("values", parts, [value]), point)
    np.testing.assert_allclose(got, wanted, atol=1e-6 * abs(got).max())
    along = np.zeros(whole.size1())
    quaternions = dyn_casadi.coordinates(floating).lengths[0].any(0)
    along[: floating.nq][quaternions] = point[0][quaternions]
    np.testing.assert_allclose(got @ along, 0.0, atol=1e-12)
    if twice:
        hessian, gradient = ca.hessian(ca.sumsqr(value), whole)
        got = np.array(ca.Function("exact", parts, [hessian])(*point))
        wanted = _columns(ca.Function("gradient", parts, [gradient]), point)
        np.testing.assert_allclose(got, wanted, atol=1e-6 * abs(got).max())


def test_a_library_of_a_floating_base_is_loaded_by_name(ca, floating, tmp_path):
    """Values and Jacobians are those of the function; second derivatives are refused."""
    program = dyn.solver("aba").build(floating)
    path = dyn_casadi.library(program, tmp_path, "fall", status=True)
    loaded = ca.external("fall", str(path))
    function = dyn_casadi.function(program, status=True)
    point = _point(floating, function.name_in())
    assert loaded.name_out() == ["qdd", "status"]
    for a, b in zip(loaded(*point), function(*point), strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b))
    slopes = [x.jacobian()(*point, 0, 0) for x in (loaded, function)]
    for a, b in zip(*slopes, strict=True):
        np.testing.assert_allclose(np.array(a), np.array(b), atol=1e-13)
    with pytest.raises(UnsupportedError, match=r"valid: hessian=False, or function"):
        dyn_casadi.library(program, tmp_path, hessian=True)


@pytest.mark.full
def test_ipopt_finds_how_a_floating_body_turns(ca):
    """Full: Ipopt. A dumbbell turns by 60 degrees and rests, with the least torques."""
    with_mass = "<inertial><mass value='2'/><inertia ixx='0.3' iyy='0.2' izz='0.1'"
    text = f"""<robot name="body"><link name="body">{with_mass} ixy='0' ixz='0' iyz='0'/>
    </inertial></link></robot>"""
    body = dyn.load_urdf(text, root_joint="floating", gravity=(0, 0, 0))
    step = dyn_casadi.function(
        dyn.solver("semi_implicit_euler").build(body), constants={"dt": 0.1}
    )
    problem, knots = ca.Opti(), 10
    q, qd = problem.variable(7, knots + 1), problem.variable(6, knots + 1)
    tau = problem.variable(6, knots)
    for k in range(knots):
        ends = step(q[:, k], qd[:, k], tau[:, k])
        problem.subject_to(q[:, k + 1] == ends[0])
        problem.subject_to(qd[:, k + 1] == ends[1])
    start, goal = body.neutral(), body.neutral()
    goal[3:7] = 0, np.sin(np.pi / 6), 0, np.cos(np.pi / 6)
    for wanted, k in ((start, 0), (goal, knots)):
        problem.subject_to(q[:, k] == wanted)
        problem.subject_to(qd[:, k] == 0)
    problem.minimize(ca.sumsqr(tau))
    problem.set_initial(q, np.tile(start[:, None], knots + 1))
    quiet = {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory"}
    problem.solver("ipopt", {"print_time": False}, quiet)
    best = problem.solve().value(q)
    np.testing.assert_allclose(best[:, -1], goal, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(best[3:7], axis=0), 1.0, atol=1e-6)


def test_threads_do_not_share_memory(ca):
    """CasADi gives each thread its own."""
    arm = dyn.load_urdf(dyn.robots.path("arm7"))
    program, function, _ = _function(arm, "aba")
    x = np.random.default_rng(4).uniform(-1, 1, (3, 400, 7))
    got = function.map(400, "thread", 4)(*[part.T for part in x])
    np.testing.assert_array_equal(np.array(got).T, program(*x))


def test_the_library_is_loaded_by_name(ca, tmp_path):
    """Without this project, as CasADi in C++ does."""
    arm = dyn.load_urdf(dyn.robots.path("two_link"))
    program = dyn.solver("rnea").build(arm)
    path = dyn_casadi.library(program, tmp_path, "weight")
    function = ca.external("weight", str(path))
    assert function.name_in() == ["q", "qd", "qdd"]
    assert function.name_out() == ["tau"]
    assert function.jacobian().name_out() == ["jac_tau_q", "jac_tau_qd", "jac_tau_qdd"]


def test_what_cannot_be_differentiated_is_refused(tmp_path, monkeypatch):
    """In words that say what is valid."""
    arm = dyn.load_urdf(dyn.robots.path("arm7"))
    step = dyn.solver("semi_implicit_euler").build(arm)
    for program, constants, error, expected in (
        (step, {}, UnsupportedError, "no derivative by dt; valid: .*constants"),
        (step, {"dt": [1, 2]}, ShapeError, "dt"),
        (step, {"time": 1.0}, ShapeError, "an unknown name"),
        (
            dyn.solver("jacobian").build(arm, frame="tool"),
            {},
            UnsupportedError,
            "forward dynamics",
        ),
        (
            dyn.solver("aba").build(arm, dtype="float32"),
            {},
            UnsupportedError,
            "float64",
        ),
    ):
        with pytest.raises(error, match=expected):
            dyn_casadi.library(program, tmp_path, constants=constants)
    with pytest.raises(UnsupportedError, match="second derivatives of a step: write"):
        dyn_casadi.library(step, tmp_path, constants={"dt": DT}, hessian=True)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(CompileError, match="no 'no-such-compiler'; valid: install"):
        dyn_casadi.library(step, tmp_path, constants={"dt": DT})


@pytest.mark.full
def test_the_example_finds_the_optimum_of_the_symbols(ca, capsys):
    """Ipopt with machine code, and with the algorithm as CasADi's expressions."""
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 100
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    out = capsys.readouterr().out
    assert float(re.search(r"differences: (\S+)", out).group(1)) < 1e-6
    costs = [float(x) for x in re.findall(r"cost ([\d.]+)", out)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-6)
    assert float(re.search(r"efforts: (\S+)", out).group(1)) < 1e-2
