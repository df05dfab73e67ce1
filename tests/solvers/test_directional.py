"""Derivatives along a direction: cost, rules of external forces, parameters, refusals."""

import itertools

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.model import parameter_paths
from dyn_core.numbers.scalar import (
    acos,
    asin,
    atan2,
    cos,
    exp,
    floor,
    log,
    sin,
    sqrt,
    tanh,
    where,
)
from dyn_core.numbers.taylor import COORDINATE, TIME, Taylor, derivatives, taylor
from dyn_core.solving.operation_counts import fit_order, polynomial_degree
from dyn_core.spatial.variations import slope_of, value_of
from dyn_core.testing import chain, random_model, scaled_error
from dyn_core.testing.case import derivative
from dyn_plugins.derivatives import _seeds

FUNCTIONS = {"id": "rnea", "fd": "aba", "hd": "hybrid"}


def _arm():
    return dyn.load_urdf(robots.path("arm7"))


def _build(name, model, **choices):
    return dyn.solver(name).build(model, engine="graph", **choices)


def _operations(program):
    """Count the nodes that compute something."""
    counts = program.graph.counts()
    return sum(n for op, n in counts.items() if op not in ("const", "input"))


def _draw(model, program, rng):
    return [model.random(rng), *(rng.normal(size=p.shape) for p in program.inputs[1:])]


@pytest.mark.parametrize("robot", ["two_link", "arm7", "every_joint", "quadruped"])
@pytest.mark.parametrize("problem", ["id", "fd"])
def test_a_direction_costs_less_than_three_functions(problem, robot, shipped):
    """Function and derivative together, in operations of the Graph."""
    model = shipped[robot]
    function = _operations(_build(FUNCTIONS[problem], model))
    assert _operations(_build(f"{problem}_directional", model)) < 3 * function


def test_hybrid_directions_cost_about_three_functions(shipped):
    """The same for half of the joints prescribed; the floating quadruped is the worst."""
    for robot, most in (("arm7", 3.0), ("every_joint", 3.0), ("quadruped", 3.1)):
        half = {"prescribed": shipped[robot].joint_names[::2]}
        function = _operations(_build("hybrid", shipped[robot], **half))
        along = _operations(_build("hd_directional", shipped[robot], **half))
        assert along < most * function


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("name", "order"),
    [("id_directional", 1), ("fd_directional", 1), ("hd_directional", 1),
     ("id_derivatives", 2)],
)  # fmt: skip
def test_cost_grows_as_claimed(name, order):
    """One direction is O(n), exactly affine; a whole Jacobian O(n^2)."""
    if order == 1:
        sizes = (6, 7, 8, 10)
        counts = [_operations(_build(name, chain(n))) for n in sizes]
        assert polynomial_degree(sizes, counts) == 1
    else:
        sizes = (4, 8, 16, 32)
        counts = [_operations(_build(name, chain(n))) for n in sizes]
        assert 1.5 < fit_order(sizes, counts) < 2.1


def test_parameters_cost_what_they_influence():
    """By the mass of a near body less than by that of a far one; all masses O(n^2)."""
    model = chain(12)

    def cost(paths):
        return _operations(_build("parameter_jacobian", model, paths=paths))

    bare = cost([])
    near, far = cost(["b2.mass"]) - bare, cost(["b12.mass"]) - bare
    assert 0 < near < far / 3
    sizes = (4, 8, 16)
    counts = []
    for n in sizes:
        paths = [f"b{k}.mass" for k in range(1, n + 1)]
        counts.append(_operations(_build("parameter_jacobian", chain(n), paths=paths)))
    assert 1.4 < fit_order(sizes, counts) < 2.1


def test_seeds_are_zero_where_the_source_says():
    """The table of zeros: what is not the owner's is a plain 0.0 and folds away."""
    model = random_model(3, size=5, mimic=0.0, massless=0.0)
    rng = np.random.default_rng(0)
    q, qd = (
        dyn.authoring.Vector(model.random(rng).tolist()),
        dyn.authoring.Vector(rng.normal(size=model.nv)),
    )
    still = dyn.authoring.Vector.zeros(model.nv)
    none = [dyn.authoring.Force.zero()] * (model.nb + 1)

    def zeros(of):
        return [not np.any(np.asarray(x, float)) for x in of[1:]]

    for k in range(model.nv):
        owner = next(i for i in model.bodies if k in range(model.nv)[model.v_slices[i]])
        unit = dyn.authoring.Vector(float(j == k) for j in range(model.nv))
        others = [i != owner for i in model.bodies]
        by_q = _seeds.seeds(model, q, qd, _seeds.Direction(unit, still, none, none))
        for part in (by_q.dS, by_q.dcJ, by_q.dh):
            assert all(z or not o for z, o in zip(zeros(part), others, strict=True))
        by_qd = _seeds.seeds(model, q, qd, _seeds.Direction(still, unit, none, none))
        assert all(zeros(by_qd.dS))
        assert all(zeros(by_qd.dh))
        for part in (by_qd.dcJ, by_qd.dvJ):
            assert all(z or not o for z, o in zip(zeros(part), others, strict=True))
    link = model.frame_names[-1]
    along = _seeds.Direction(
        still, still, none, none, dyn.authoring.Vector([1.0]), f"{link}.mass"
    )
    by_mass = _seeds.seeds(model, q, qd, along)
    for part in (by_mass.dS, by_mass.dcJ, by_mass.dh, by_mass.dvJ):
        assert all(zeros(part))
    moved = [any(slope_of(x).parameters) for x in by_mass.dI[1:]]
    assert not any(moved)  # dI is a slope already
    changed = [any(x.parameters) for x in by_mass.dI[1:]]
    assert [i for i, c in zip(model.bodies, changed, strict=True) if c] == [
        model.body_of(link)
    ]


def test_hybrid_identities_for_all_partitions():
    """All 2^4 partitions of a tree: three ways agree, and dense algebra."""
    model = random_model(
        4, size=4, mimic=0.0, massless=0.0, kinds=("revolute", "planar")
    )
    rng = np.random.default_rng(1)
    names = model.joint_names
    for mask in itertools.product((False, True), repeat=len(names)):
        prescribed = [n for n, h in zip(names, mask, strict=True) if h]
        programs = [
            dyn.solver(f"hd_directional{way}").build(
                model, engine="plain", prescribed=prescribed
            )
            for way in ("", "_table", "_forward_mode")
        ]
        arguments = _draw(model, programs[0], rng)
        first, *others = (program(*arguments) for program in programs)
        for other in others:
            for a, b in zip(first, other, strict=True):
                assert scaled_error(a, b) < 1e-11


def test_a_prescribed_coordinate_bears_the_rotors_of_followers():
    """A free coordinate moves a follower, whose rotors load the prescribed one."""
    model = random_model(0, size=2, mimic=1.0, massless=0.0, kinds=("planar",))
    assert model.nv == 3 and model.nb == 2
    programs = [
        dyn.solver(f"hd_directional{way}").build(
            model, engine="plain", prescribed=[(model.joint_names[0], 0)]
        )
        for way in ("", "_forward_mode")
    ]
    arguments = _draw(model, programs[0], np.random.default_rng(0))
    for a, b in zip(*(program(*arguments) for program in programs), strict=True):
        assert scaled_error(a, b) < 1e-11


@pytest.mark.parametrize("problem", ["id", "fd"])
@pytest.mark.parametrize("robot", ["every_joint", "arm7"])
def test_forces_fixed_to_the_base(problem, robot, shipped):
    """A wrench constant in the base is what f_ext_frame="base" gives to differences."""
    model, rng = shipped[robot], np.random.default_rng(2)
    program = _build(
        f"{problem}_directional", model, inputs=["f_ext"], f_ext_frame="base",
        f_ext_fixed="base",
    )  # fmt: skip
    q, qd, x, dq, dqd, dx, f = _draw(model, program, rng)
    function = _build(FUNCTIONS[problem], model, inputs=["f_ext"], f_ext_frame="base")
    rate = derivative(
        lambda t: function(model.integrate(q, t * dq), qd + t * dqd, x + t * dx, f),
        1e-3,
    )
    assert scaled_error(program(q, qd, x, dq, dqd, dx, f)[1], rate) < 1e-9


def test_forces_that_keep_their_direction_at_a_point(shipped):
    """A weight hung on a point: the derivative is that of a payload without inertia."""
    model, rng = shipped["arm7"], np.random.default_rng(3)
    point, weight = np.array([0.1, -0.2, 0.3]), np.array([1.0, -2.0, 3.0])
    poses = dyn.solver("forward_kinematics").build(model, frames=["tool"])
    program = _build(
        "id_directional", model, inputs=["f_ext"], f_ext_fixed="point",
        f_ext_points={"tool": point},
    )  # fmt: skip
    frame = model.frame("tool")
    rnea = _build("rnea", model, inputs=["f_ext"])
    q, qd, x, dq, dqd, dx, _ = _draw(model, program, rng)

    def hung(position):
        force = poses(position)[0][:3, :3].T @ weight
        wrench = np.concatenate([np.cross(point, force), force])
        f = np.zeros((model.nb, 6))
        f[frame.body - 1] = np.asarray(frame.X, float).T @ wrench
        return f

    def tau(t):
        position = model.integrate(q, t * dq)
        return rnea(position, qd + t * dqd, x + t * dx, hung(position))

    got = program(q, qd, x, dq, dqd, dx, hung(q))[1]
    assert scaled_error(got, derivative(tau, 1e-3)) < 1e-9
    origin = _build("id_directional", model, inputs=["f_ext"], f_ext_fixed="point")
    assert scaled_error(origin(q, qd, x, dq, dqd, dx, hung(q))[1], got) > 1e-3


def test_changes_of_forces(shipped):
    """df_ext enters as -J.T df_ext."""
    model, rng = shipped["every_joint"], np.random.default_rng(4)
    program = _build("id_directional", model, inputs=["df_ext"])
    q, qd, x, *_, df = _draw(model, program, rng)
    still = np.zeros(model.nv)
    got = program(q, qd, x, still, still, still, df)[1]
    rnea = _build("rnea", model, inputs=["f_ext"])
    assert scaled_error(got, rnea(q, qd, x, df) - rnea(q, qd, x, 0 * df)) < 1e-12


PATHS = {
    "gravity": {}, "armature": {}, "tool.mass": {}, "tool.com": {}, "tool.inertia": {},
    "link4.payload": {}, "joint3.origin": {}, "joint3.armature": {},
    "joint3.damping": {"joint_friction": True},
    "joint3.friction": {"joint_friction": True},
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("problem", ["id", "fd"])
def test_every_parameter(problem, path):
    """d/dp along a random dp is the complex step of the function with p as input."""
    model, rng, choices = _arm(), np.random.default_rng(5), PATHS[path]
    program = _build(f"{problem}_directional", model, parameter=path, **choices)
    q, qd, x, *_, dp = _draw(model, program, rng)
    qd, still = 0.02 * qd, np.zeros(7)
    got = program(q, qd, x, still, still, still, dp)
    function = dyn.solver(FUNCTIONS[problem]).build(
        model, engine="plain", inputs=[path], **choices
    )
    value = parameter_paths.value(model, path).reshape(np.shape(dp))
    wanted = function(q, qd, x, value + 1e-30j * dp)
    assert scaled_error(got[0], wanted.real) < 1e-12
    assert scaled_error(got[1], wanted.imag / 1e-30) < 1e-11
    assert np.abs(got[1]).max() > 1e-6


def test_parameters_of_coupled_and_driven_robots():
    """Gears, and the time of a driven place."""
    gears = [{"joints": ["joint4", "joint5"], "ratio": -2.0, "offset": 0.1}]
    geared = dyn.load_urdf(robots.path("arm7"), extras={"gears": gears})
    rng = np.random.default_rng(6)
    driven = _arm().drive("joint2", lambda t: (
        ((cos(t), -sin(t), 0.0), (sin(t), cos(t), 0.0), (0.0, 0.0, 1.0)),
        (t * t, sin(t), 0.0)))  # fmt: skip
    for model, path, inputs in (
        (geared, "joint5.origin", []), (geared, "link5.com", []), (driven, "time", ["time"]),
        (driven, "joint2.origin", ["time"]),
    ):  # fmt: skip
        for problem in ("id", "fd"):
            name = f"{problem}_directional"
            choices = {"parameter": path, "inputs": inputs}
            program = _build(name, model, **choices)
            arguments = _draw(model, program, rng)
            wanted = _build(f"{name}_forward_mode", model, **choices)(*arguments)
            for a, b in zip(program(*arguments), wanted, strict=True):
                assert scaled_error(a, b) < 1e-11
            if path == "time":
                function = _build(FUNCTIONS[problem], model, inputs=["time"])
                q, qd, x, *_, _, t = arguments
                still = np.zeros(model.nv)
                got = program(q, qd, x, still, still, still, 1.0, t)[1]
                rate = derivative(lambda s: function(q, qd, x, t + s), 1e-3)
                assert scaled_error(got, rate) < 1e-8


def test_springs_and_user_joints():
    """A joint given by its pose alone, and springs, are differentiated along."""
    model = random_model(7, size=5)
    rng = np.random.default_rng(7)
    for problem in ("id", "fd"):
        choices = {"joint_springs": True, "joint_friction": True}
        program = _build(f"{problem}_directional", model, **choices)
        q, qd, x, dq, dqd, dx = _draw(model, program, rng)
        function = _build(FUNCTIONS[problem], model, **choices)
        rate = derivative(
            lambda t: function(model.integrate(q, t * dq), qd + t * dqd, x + t * dx),
            1e-4,
        )
        got = program(q, qd, x, dq, dqd, dx)[1]
        assert scaled_error(got / np.abs(rate).max(), rate / np.abs(rate).max()) < 1e-8


def test_against_pinocchio():
    """J d of computeRNEADerivatives and computeABADerivatives."""
    pin = pytest.importorskip("pinocchio")
    path = str(robots.path("arm7"))
    model, peer = _arm(), pin.buildModelFromUrdf(path)
    data, rng = peer.createData(), np.random.default_rng(8)
    order = [peer.joints[peer.getJointId(n)].idx_v for n in model.joint_names]
    program = _build("id_directional", model)
    q, qd, x, dq, dqd, dx = _draw(model, program, rng)

    def theirs(values):
        ordered = np.zeros(7)
        ordered[order] = values
        return ordered

    state = [theirs(v) for v in (q, qd, x)]
    by_q, by_qd, M = pin.computeRNEADerivatives(peer, data, *state)
    M = np.triu(M) + np.triu(M, 1).T
    wanted = by_q @ theirs(dq) + by_qd @ theirs(dqd) + M @ theirs(dx)
    assert scaled_error(program(q, qd, x, dq, dqd, dx)[1], wanted[order]) < 1e-10
    program = _build("fd_directional", model)
    by_q, by_qd, Minv = pin.computeABADerivatives(peer, data, *state)
    Minv = np.triu(Minv) + np.triu(Minv, 1).T
    wanted = by_q @ theirs(dq) + by_qd @ theirs(dqd) + Minv @ theirs(dx)
    assert scaled_error(program(q, qd, x, dq, dqd, dx)[1], wanted[order]) < 1e-10


REFUSED = {
    "no parameter path 'nope'": {"parameter": "nope"},
    "no link is called 'joint1'": {"parameter": "joint1.mass"},
    "no moving joint is called 'tool'": {"parameter": "tool.damping"},
    "valid: joint_friction=True": {"parameter": "joint1.friction"},
    "no joint is driven": {"parameter": "time"},
    "valid: parameter='LINK.mass'": {"inputs": ["dp"]},
    "valid: body, base, point": {"f_ext_fixed": "world"},
    "no link is called 'x'": {"f_ext_points": {"x": (0, 0, 0)}},
    "needs a point of 3 numbers": {"f_ext_points": {"tool": (0, 0)}},
    "has a point already": {"f_ext_points": {"tool": (0, 0, 0), "link7": (0, 0, 0)}},
    "tool.com is an input": {"parameter": "tool.mass", "inputs": ["tool.com"]},
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals_in_words(message):
    """What has no derivative is refused when building, for each problem."""
    for name in ("id_directional", "fd_directional", "hd_directional_forward_mode"):
        with pytest.raises((dyn.ModelError, dyn.UnsupportedError), match=message):
            dyn.solver(name).build(_arm(), **REFUSED[message])


def test_refusals_of_lists_shapes_and_couplings(shipped):
    """A word for a list, wrong sizes, a coupled robot for the tables."""
    with pytest.raises(dyn.UnsupportedError, match="valid: paths=\\['gravity'\\]"):
        dyn.solver("parameter_jacobian").build(_arm(), paths="gravity")
    with pytest.raises(dyn.ModelError, match="no parameter path 'x'"):
        dyn.solver("fd_parameter_jacobian").build(_arm(), paths=["x"])
    with pytest.raises(dyn.UnsupportedError, match="valid: joint_friction=True"):
        dyn.solver("parameter_jacobian").build(_arm(), paths=["joint1.friction"])
    once = (path for path in ["gravity"])
    program = dyn.solver("parameter_jacobian").build(_arm(), paths=once, engine="graph")
    assert program.outputs[1].shape == (7, 3)
    program = _build("id_directional", _arm(), parameter="gravity")
    still = np.zeros(7)
    with pytest.raises(dyn.ShapeError, match="dp: wanted"):
        program(still, still, still, still, still, still, np.zeros(2))
    with pytest.raises(dyn.ShapeError, match="dq: wanted"):
        program(still, still, still, np.zeros(6), still, still, np.zeros(3))
    with pytest.raises(dyn.UnsupportedError, match="follows another; valid"):
        dyn.solver("fd_directional_table").build(shipped["every_joint"])
    floating = shipped["quadruped"]
    with pytest.raises(dyn.ModelError, match="has no origin in the robot's file"):
        dyn.solver("id_directional").build(floating, parameter="root_joint.origin")


def test_a_parameter_may_be_input_and_direction():
    """The derivative by gravity at the gravity that the call gives."""
    program = _build("id_directional", _arm(), parameter="gravity", inputs=["gravity"])
    rnea = _build("rnea", _arm(), inputs=["gravity"])
    rng = np.random.default_rng(9)
    q, qd, x, *_, dp, g = _draw(_arm(), program, rng)
    still = np.zeros(7)
    tau, slope = program(q, qd, x, still, still, still, dp, g)
    assert scaled_error(tau, rnea(q, qd, x, g)) < 1e-12
    assert scaled_error(slope, rnea(q, qd, x, g + dp) - tau) < 1e-12


def test_taylor_numbers():
    """Each rule gives both derivatives of its function; variables may be nested."""
    rules = [
        lambda x: x + 2.0 * x, lambda x: 3.0 - x, lambda x: x * x * x, lambda x: 1.0 / x,
        lambda x: -x / (x + 2.0), sqrt, sin, cos, asin, acos, exp, log, tanh, abs,
        lambda x: atan2(x, 0.5), lambda x: where(x < 0.2, x, x * x),
        lambda x: where(x > 0.2, x, x * x), lambda x: floor(x) + x,
    ]  # fmt: skip
    for k, rule in enumerate(rules):
        for x in (0.3, 0.7):
            slope = derivative(lambda t, rule=rule, x=x: rule(x + t), 1e-3)
            curve = derivative(
                lambda t, rule=rule, x=x: rule(Taylor(x + t, 1.0)).d1, 1e-3
            )
            assert rule(Taylor(x, 2.0)).d1 == pytest.approx(2 * slope, rel=1e-9), k
            _, d1, d2 = derivatives(rule(Taylor(x, 2.0, 3.0, TIME)), TIME)
            assert d1 == pytest.approx(2 * slope, rel=1e-9), k
            assert d2 == pytest.approx(4 * curve + 3 * slope, rel=1e-8, abs=1e-9), k
    assert abs(Taylor(-2.0, 1.0)).d1 == -1.0
    assert taylor(3.0, 0.0) == 3.0
    assert value_of(Taylor(3.0, 1.0)) == 3.0
    assert slope_of(3.0) == 0.0
    both = sin(Taylor(Taylor(0.4, 1.0), 1.0, 0.0, TIME) * Taylor(2.0, 0.0))
    assert both.d1.d1 == pytest.approx(-4 * np.sin(0.8))
    assert both.d1.x == pytest.approx(2 * np.cos(0.8))
    mixed = Taylor(3.0, 1.0, rank=COORDINATE) * Taylor(2.0, 1.0)
    assert derivatives(mixed, COORDINATE)[1].x == 2.0
    assert slope_of(derivatives(mixed, COORDINATE)[0]) == 3.0
    assert Taylor(Taylor(1.0, 1.0), rank=TIME) < Taylor(2.0, 1.0)
    assert "Taylor(1.0, 2.0)" in repr(Taylor(1.0, 2.0))
    with pytest.raises(dyn.UnsupportedError, match="has no derivative"):
        Taylor(1.0, 1.0).apply("call", ())
