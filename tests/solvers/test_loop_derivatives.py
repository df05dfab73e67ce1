"""Derivatives of constrained dynamics: every kind of loop, against differences."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.model import parameter_paths
from dyn_core.testing import random_model, scaled_error
from dyn_core.testing.case import derivative

GOOD = 1e-9
RATES = {"alpha": 1.5, "beta": 2.0}
KINDS = (
    ("point", {}), ("pin", {}), ("planar_weld", {}), ("revolute", {}), ("weld", {}),
    ("axes", {"axes": ["x", "ry"]}), ("distance", {"length": 1.0}),
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
            wanted, found_slope = slopes(moved, n), getattr(got, f"d{of}_d{name}")
            scale = max(1.0, np.abs(wanted).max(initial=0.0))
            error = scaled_error(
                found_slope / scale, wanted.reshape(found_slope.shape) / scale
            )
            assert error < GOOD, f"d{of}_d{name}: {error:.1e}"


@pytest.mark.parametrize(("seed", "kind"), list(enumerate(KINDS, 1)))
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
