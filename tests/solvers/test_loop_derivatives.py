"""Derivatives of constrained dynamics: every kind of loop, against differences."""

from dataclasses import replace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import cos, sin
from dyn_core.model import (
    Build,
    Description,
    JointSpec,
    LinkSpec,
    assemble,
    parameter_paths,
)
from dyn_core.spatial import RigidInertia
from dyn_core.testing import random_model, scaled_error
from dyn_core.testing.case import derivative

GOOD = 1e-9
RATES = {"alpha": 1.5, "beta": 2.0}
KINDS = (
    ("point", {}), ("pin", {}), ("planar_weld", {}), ("revolute", {}), ("weld", {}),
    ("axes", {"axes": ["x", "ry"]}), ("distance", {"length": 1.0}),
    ("rolling_ball", {"radius": 0.3}), ("rolling_disc", {"radius": 0.3}),
)  # fmt: skip


def closed_tree(seed, kind, more, size=5):
    """Return a random tree with loops: one of a kind, a function, and a coupling."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, size=size)
    names = list(model.frame_names)

    def place():
        return {"xyz": rng.normal(size=3), "rpy": rng.normal(size=3)}

    single = [
        n for n in model.joint_names if model.joint_kind(n) in ("revolute", "prismatic")
    ]
    root = (None, names[1], names[2])[seed % 3]
    loops = [
        dyn.make_loop("one", kind, names[-1], root, at_a=place(), at_b=place(), **more),
        dyn.user_loop("two", lambda R, p: [p[0] * p[1] - R[2, 1]], names[-2], names[1]),
    ]
    if len(single) > 1:
        gear = dyn.coupling("three", single[:2], lambda a, b: [a * a * b - 0.3 * b])
        loops.append(gear)
    return model.with_loops(*loops), rng


def slopes(function, n, step=1e-3):
    """Return the derivative of function(d) by d at zero, as columns."""
    return np.array(
        [derivative(lambda t, e=e: function(e * t), step) for e in np.eye(n)]
    ).T


def assert_slopes(got, values, states, by, model):
    """Compare the matrices of a result with differences of what gives the values.

    Args:
        got: Result of a solver of derivatives.
        values: Returns the outputs of a state.
        states: By name of the variable, the inputs in order.
        by: Names of outputs.
    """
    inputs = list(states.values())
    for k, of in enumerate(by):
        for place, (name, x) in enumerate(states.items()):

            def moved(d, k=k, place=place, name=name):
                after = list(inputs)
                x = inputs[place]
                after[place] = model.integrate(x, d) if name == "q" else x + d
                return np.asarray(values(*after)[k])

            n = model.nv if name == "q" else len(x)
            wanted, slope = slopes(moved, n), getattr(got, f"d{of}_d{name}")
            scale = max(1.0, np.abs(wanted).max(initial=0.0))
            error = scaled_error(slope / scale, wanted.reshape(slope.shape) / scale)
            assert error < GOOD, f"d{of}_d{name}: {error:.1e}"


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    ("seed", "kind"), list(zip((1, 2, 3, 3, 5, 6, 7, 9, 9), KINDS, strict=True))
)
def test_slopes_of_every_kind_of_loop(seed, kind):
    """Forward dynamics of random trees, states off the loops, forces in base axes."""
    model, rng = closed_tree(seed, *kind)
    q = model.random(rng)
    qd, tau = rng.normal(size=(2, model.nv))
    f = rng.normal(size=(model.nb, 6))
    choices = {
        "inputs": ["f_ext"],
        "f_ext_frame": "base",
        "joint_springs": True,
        **RATES,
    }
    program = dyn.solver("loop_fd_derivatives").build(model, engine="graph", **choices)
    values = dyn.solver("loop_forward_dynamics").build(model, engine="graph", **choices)
    got = program(q, qd, tau, f)
    assert scaled_error(got.qdd, values(q, qd, tau, f).qdd) < GOOD
    states = {"q": q, "qd": qd, "tau": tau}
    assert_slopes(got, lambda *x: values(*x, f), states, ("qdd", "lambda"), model)


def _assert_projected_slopes(model, q, qd, tau, paths=(), time=()):
    """Compare derivatives of a projected step with differences of the step."""
    dt, inputs, units = 0.01, ["time"] * len(time), np.eye(model.nv)
    choices = {"engine": "graph", "inputs": inputs}
    program = dyn.solver("projected_euler_derivatives").build(
        model, paths=paths, **choices
    )
    got = program(q, qd, tau, dt, *time)
    choices["inputs"] = [*inputs, *paths]
    step = dyn.solver("projected_euler").build(model, **choices)
    values = [parameter_paths.value(model, path) for path in paths]
    start = step(q, qd, tau, dt, *time, *values)

    def moved(rows, *state):
        """Return the displacement of the ends of some steps, (2 nv, rows)."""
        state = [x if np.ndim(x) == 2 else np.tile(x, (rows, 1)) for x in state]
        more = [np.full(rows, x) for x in (dt, *time)]
        ends = step(*state[:3], *more, *state[3:])
        origin = np.tile(start.q_next, (rows, 1))
        change = model.difference(origin, ends.q_next), ends.qd_next - start.qd_next
        return np.concatenate(change, axis=1).T

    n = model.nv
    wanted = [
        derivative(
            lambda t: moved(
                n, model.integrate(np.tile(q, (n, 1)), t * units), qd, tau, *values
            ),
            1e-3,
        ),
        derivative(lambda t: moved(n, q, qd + t * units, tau, *values), 1e-3),
        derivative(lambda t: moved(n, q, qd, tau + t * units, *values), 1e-3),
    ]
    wanted += [
        derivative(lambda t: moved(3, q, qd, tau, value + t * np.eye(3)), 1e-3)
        for value in values
    ]
    assert scaled_error(got.q_next, start.q_next) < GOOD
    assert scaled_error(got.qd_next, start.qd_next) < GOOD
    slopes = np.concatenate([got.A, got.B, got.dx_dp], axis=1)
    wanted = np.concatenate(wanted, axis=1)
    scale = max(1.0, np.abs(wanted).max())
    assert scaled_error(slopes / scale, wanted / scale) < GOOD


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    ("seed", "kind"), list(zip((1, 2, 3, 3, 5, 6, 7, 9, 9), KINDS, strict=True))
)
def test_slopes_of_a_projected_step_of_every_kind_of_loop(seed, kind):
    """States off the loops, so that the projection moves far; parameters, too."""
    model, rng = closed_tree(seed, *kind)
    q, (qd, tau) = model.random(rng), rng.normal(size=(2, model.nv))
    _assert_projected_slopes(model, q, qd, tau, ["gravity"])


@pytest.mark.parametrize("place", ["below the loop", "end of the loop"])
def test_slopes_of_a_projected_step_of_a_driven_robot(place):
    """The driven place turns and moves: also without the coordinates' motion."""
    model, rng = closed_tree(5, *KINDS[1], size=4)
    joint = model.names[1 if place == "below the loop" else -1]

    def pose(t):
        s, c = sin(0.8 * t), cos(0.8 * t)
        rows = ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))
        return rows, (0.1 * sin(2.0 * t), 0.2, 0.0)

    model = model.drive(joint, pose)
    q, (qd, tau) = model.random(rng), rng.normal(size=(2, model.nv))
    _assert_projected_slopes(model, q, qd, tau, time=[0.3])


def test_slopes_of_a_projected_step_of_a_body_without_mass():
    model, rng = light_bar(), np.random.default_rng(0)
    q, (qd, tau) = np.array((0.9, -0.5, -1.4, 1.0)), rng.normal(size=(2, 4))
    _assert_projected_slopes(model, q, qd, tau)


def parameter_slopes(build, model, paths, state):
    """Return the differences of all outputs by the numbers of parameter paths."""
    columns = []
    for path in paths:
        program, value = build([path]), parameter_paths.value(model, path)
        for e in np.eye(len(value)):

            def moved(t, e=e, program=program, value=value):
                p = value + t * e
                out = program(*state, p if len(p) > 1 else p[0])
                return np.concatenate([np.ravel(x) for x in out])

            columns.append(derivative(moved, 1e-3))
    return np.array(columns).T


def test_slopes_by_parameters_inside_loops():
    """Gravity, masses, a payload, origins, and the time of a driven place."""
    model, rng = closed_tree(5, *KINDS[1], size=4)
    joint = model.names[-1]
    model = model.drive(joint, lambda t: (None, (0.1 * sin(2.0 * t), 0.2, 0.0)))
    link = model.frame_names[-1]
    paths = ["gravity", "time", f"{link}.mass", f"{link}.payload", f"{joint}.origin"]
    state = model.random(rng), *rng.normal(size=(2, model.nv))
    choices = {"engine": "graph", **RATES}
    solver = dyn.solver("loop_fd_derivatives")
    got = solver.build(model, paths=paths, inputs=["time"], **choices)(*state, 0.0)

    def build(inputs):
        others = ["time", *inputs] if inputs != ["time"] else inputs
        program = dyn.solver("loop_forward_dynamics").build(
            model, inputs=others, **choices
        )
        if others == inputs:
            return program
        return lambda q, qd, tau, p: program(q, qd, tau, 0.0, p)

    wanted = parameter_slopes(build, model, paths, state)
    nv, m = model.nv, len(got.lambda_)
    scale = np.abs(wanted).max()
    assert scaled_error(got.dqdd_dp / scale, wanted[:nv] / scale) < GOOD
    assert scaled_error(got.dlambda_dp / scale, wanted[nv : nv + m] / scale) < GOOD


def light_bar():
    """Return a four-bar whose last body has no mass: a weld ties it to the base."""
    rows = (
        (0.0, 1.2, 0.2, 0.03), (0.5, 2.0, 0.6, 0.3), (1.3, 0.9, 0.5, 0.08),
        (1.02, 0.0, 0.0, 0.0),
    )  # fmt: skip
    links, joints = [LinkSpec("b0", RigidInertia.zero())], []
    for k, (x, m, c, Izz) in enumerate(rows, 1):
        I = RigidInertia.of(m, (c, 0.03 * m, 0.0), np.diag((Izz,) * 3).tolist())
        links.append(LinkSpec(f"b{k}", I))
        ends, start = (f"b{k - 1}", f"b{k}"), (x, 0.0, 0.0)
        joints.append(
            JointSpec(f"j{k}", "revolute", *ends, start, axis=(0.0, 0.0, 1.0))
        )
    weld = dyn.make_loop("D", "planar_weld", "b4", at_a={"xyz": (1.98, 0, 0)})
    description = Description("light", tuple(links), tuple(joints))
    return assemble(Build(description, loops=(weld,), strict=False))


@pytest.mark.parametrize("prescribed", [(), ("j1",)])
def test_slopes_of_a_robot_with_a_body_without_mass(prescribed):
    """Dense algebra, of forward and of hybrid dynamics."""
    model, rng = light_bar(), np.random.default_rng(0)
    q = np.array((0.927, -0.533, -1.476, 1.081))
    qd, tau = rng.normal(size=(2, 4))
    assert model.without_inertia == ("j4",)
    n = len(prescribed)
    choices = {"engine": "graph", "prescribed": prescribed, **RATES}
    program = dyn.solver("loop_hd_derivatives").build(model, **choices)
    values = dyn.solver("loop_hybrid_dynamics").build(model, **choices)
    states = {"q": q, "qd": qd, "qdd_u": np.ones(n), "tau_v": tau[n:]}
    got = program(*states.values())
    by = ("tau_u", "qdd_v", "lambda")
    assert_slopes(got, values, states, by, model)


@pytest.mark.parametrize("engine", ["graph", "native"])
def test_slopes_of_inverse_dynamics_of_a_linkage(engine):
    """Friction and springs of its joints act; a motion need not fit the loop."""
    model, rng = dyn.load("examples/four_bar/four_bar.urdf"), np.random.default_rng(1)
    choices = {"engine": engine, "active": ["motor"], "residual": None}
    choices |= {"joint_friction": True, "joint_springs": True}
    program = dyn.solver("loop_id_derivatives").build(model, **choices)
    values = dyn.solver("loop_inverse_dynamics").build(model, **choices)
    names = "q", "qd", "qdd"
    states = dict(zip(names, rng.normal(size=(3, model.nv)), strict=True))
    states["tau_p"] = np.zeros(2)
    got = program(*states.values())
    assert_slopes(got, values, states, ("tau_a", "lambda"), model)


def test_what_the_derivatives_refuse():
    """Rows that depend on each other, and more rows than passive joints, in words."""
    model = dyn.load("examples/four_bar/four_bar.urdf")
    solver = dyn.solver("loop_id_derivatives")
    with pytest.raises(dyn.UnsupportedError, match="2 constraint rows and 3 passive"):
        solver.build(model, active=[])
    twice = model.with_loops(*(replace(x, name="copy") for x in model.loops))
    program = dyn.solver("loop_fd_derivatives").build(twice, engine="graph")
    with pytest.raises(dyn.SingularError, match="loop copy|loop D"):
        program(np.full(3, 0.3), np.zeros(3), np.zeros(3))
