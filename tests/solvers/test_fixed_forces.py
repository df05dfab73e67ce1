"""Derivatives of dynamics under forces fixed to the base, or in direction at a point."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.model import parameter_paths
from dyn_core.testing import scaled_error
from dyn_core.testing.case import derivative
from dyn_core.testing.laws.derivatives.directional_laws import complex_slopes

POINTS = {
    "quadruped": {"trunk": (0.1, 0.2, -0.1)},
    "every_joint": {"sensor": (0, 0.1, 0)},
}
FUNCTIONS = {"id": "rnea", "fd": "aba", "hd": "hybrid"}
ROBOTS = ("every_joint", "quadruped")


def _build(name, model, **choices):
    return dyn.solver(name).build(model, engine="graph", inputs=["f_ext"], **choices)


def _state(model):
    rng = np.random.default_rng(7)
    q, f = model.random(rng), rng.normal(size=(model.nb, 6))
    return q, *rng.normal(size=(2, model.nv)), f


def _slopes(model, function, q, qd):
    """Differentiate function(q, qd) by a displacement of q, and by qd."""
    unit = np.eye(model.nv)

    def columns(change):
        rates = [derivative(lambda t, e=e: change(t * e), 1e-3) for e in unit]
        return np.array(rates).T

    by_q = columns(lambda d: np.hstack(function(model.integrate(q, d), qd)))
    return by_q, columns(lambda d: np.hstack(function(q, qd + d)))


def _poses(model):
    """Return a function of q: pose of each body as (R, p)."""
    program = dyn.solver("body_jacobians").build(model, engine="graph")
    return lambda q: [(pose[:3, :3], pose[:3, 3]) for pose in program(q)[0]]


def _hung(model, points, q_start, f):
    """Return a function of q: f, in the base's axes, staying at points of the bodies."""
    poses, place = _poses(model), np.zeros((model.nb, 3))
    for link, point in points.items():
        frame = model.frame(link)
        E, r = np.asarray(frame.X.E, float), np.asarray(frame.X.r, float)
        place[frame.body - 1] = r + E.T @ point
    pushes = []
    for (R, _), r, x in zip(poses(q_start), place, f, strict=True):
        pushes.append((R @ (x[:3] - np.cross(r, x[3:])), R @ x[3:]))

    def forces(q):
        rows = []
        for (R, _), r, (n, push) in zip(poses(q), place, pushes, strict=True):
            rows.append(np.concatenate([R.T @ n + np.cross(r, R.T @ push), R.T @ push]))
        return np.array(rows)

    return forces


@pytest.mark.parametrize(
    ("problem", "robot"),
    [("id", "every_joint"), ("fd", "quadruped"), ("hd", "every_joint")],
)
def test_derivatives_are_those_of_what_the_same_options_compute(
    problem, robot, shipped
):
    """f_ext_frame="base": the slopes of rnea, aba and hybrid built alike."""
    model = shipped[robot]
    q, qd, x, f = _state(model)
    more = {"prescribed": model.joint_names[::2]} if problem == "hd" else {}
    function = _build(FUNCTIONS[problem], model, f_ext_frame="base", **more)
    inputs = [x]
    if problem == "hd":
        n = function.inputs[2].size
        inputs = [x[:n], x[n:]]
    expected = _slopes(model, lambda q, qd: function(q, qd, *inputs, f), q, qd)
    program = _build(f"{problem}_derivatives", model, f_ext_frame="base", **more)
    result = program(q, qd, *inputs, f)
    names = {"id": ["dtau"], "fd": ["dqdd"], "hd": ["dtau_u", "dqdd_v"]}[problem]
    for by, wanted in zip(("dq", "dqd"), expected, strict=True):
        got = np.vstack([getattr(result, f"{name}_{by}") for name in names])
        scale = max(1.0, np.abs(wanted).max())
        assert scaled_error(got / scale, wanted / scale) < 1e-9
    body = _build(f"{problem}_derivatives", model, **more)
    q_slope = f"{names[0]}_dq"
    moved = getattr(body(q, qd, *inputs, f), q_slope) - getattr(result, q_slope)
    assert np.abs(moved).max() > 1e-3  # it matters what they are fixed to


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("fixed", ["base", "point"])
def test_assembled_derivatives_are_directional_ones(fixed, robot, shipped):
    """dtau_dq dq = dtau along dq, for forces fixed alike; differences agree."""
    model = shipped[robot]
    q, qd, x, f = _state(model)
    points = POINTS[robot] if fixed == "point" else None
    choices = {"f_ext_fixed": fixed, "f_ext_points": points}
    slopes = _build("id_derivatives", model, **choices)(q, qd, x, f)
    dq, still = np.random.default_rng(8).normal(size=model.nv), np.zeros(model.nv)
    along = _build("id_directional", model, **choices)
    got = along(q, qd, x, dq, still, still, f)[1]
    assert scaled_error(slopes.dtau_dq @ dq, got) < 1e-12
    if fixed == "point":
        rnea, forces = _build("rnea", model), _hung(model, POINTS[robot], q, f)

        def tau(t):
            moved = model.integrate(q, t * dq)
            return rnea(moved, qd, x, forces(moved))

        assert scaled_error(got, derivative(tau, 1e-3)) < 1e-9


@pytest.mark.parametrize("problem", ["id", "fd", "hd"])
def test_directions_follow_the_frame_of_the_forces(problem, shipped):
    """By default *_directional too differentiates what f_ext_frame="base" computes."""
    model = shipped["every_joint"]
    more = {"prescribed": model.joint_names[::2]} if problem == "hd" else {}
    results = []
    for choices in ({}, {"f_ext_fixed": "base"}):
        program = _build(
            f"{problem}_directional", model, f_ext_frame="base", **more, **choices
        )
        rng = np.random.default_rng(9)
        rest = [rng.normal(size=port.shape) for port in program.inputs[1:]]
        results.append(np.hstack(program(model.random(rng), *rest)))
    assert np.array_equal(*results)


@pytest.mark.parametrize("problem", ["id", "fd"])
def test_origins_of_joints_move_bodies_under_fixed_forces(problem, shipped):
    """parameter_jacobian by a joint's origin: the complex step of the function."""
    model = shipped["every_joint"]
    q, qd, x, f = _state(model)
    name = model.build.description.joints[3].name
    paths = [f"{name}.origin"]
    solver = "parameter_jacobian" if problem == "id" else "fd_parameter_jacobian"
    program = _build(solver, model, paths=paths, f_ext_frame="base")
    arguments = [q, qd, x, f]
    expected = []
    for k in range(6):
        moved = parameter_paths.value(model, paths[0]).astype(complex)
        moved[k] += 1e-30j
        function = dyn.solver(FUNCTIONS[problem]).build(
            model, engine="plain", inputs=["f_ext", *paths], f_ext_frame="base"
        )
        expected.append(np.asarray(function(*arguments, moved)).imag / 1e-30)
    wanted = np.array(expected).T
    assert scaled_error(program(*arguments)[1], wanted) < 1e-10
    still = complex_slopes(model, FUNCTIONS[problem], paths, [q, qd, x])
    assert scaled_error(wanted, still) > 1e-3


def test_forces_that_are_no_input_are_fixed_to_nothing(shipped):
    """What f_ext is fixed to, and where it acts, is refused where it changes nothing."""
    model = shipped["two_link"]
    for name in ("id_derivatives", "fd_derivatives", "id_directional"):
        for fixed in ("base", "point"):
            with pytest.raises(dyn.UnsupportedError, match=r"valid: inputs=\['f_ext'"):
                dyn.solver(name).build(model, engine="graph", f_ext_fixed=fixed)
        for fixed in (None, "base", "body"):
            choices = {"f_ext_fixed": fixed, "f_ext_points": {"link2": (0, 0, 1)}}
            with pytest.raises(dyn.UnsupportedError, match="f_ext_fixed='point' with"):
                _build(name, model, **choices)
    with pytest.raises(dyn.UnsupportedError, match="valid: body, base, point"):
        dyn.solver("id_derivatives").build(model, f_ext_fixed="world")
