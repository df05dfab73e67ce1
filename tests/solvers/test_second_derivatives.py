"""Second derivatives: to 1e-10 on every kind of joint, refusals, what others say."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.numbers.scalar import cos, sin
from dyn_core.spatial import Vector
from dyn_core.testing import TOLERANCES, random_model, scaled_error
from dyn_core.testing.case import Case
from dyn_core.testing.laws.derivatives.second_laws import (
    LAWS,
    complex_slopes,
    structure_constants,
)
from dyn_core.testing.models import chain
from dyn_plugins.derivatives import second_derivatives

NAMES = [f"{x}_second_{y}" for x in ("id", "fd") for y in ("derivatives", "contracted")]
EXACT = 1e-10


def _assert_laws(name, model, engine="graph", seed=0):
    solver = dyn.solver(name)
    case = Case(solver, model, engine, np.random.default_rng(seed))
    for law in LAWS[solver.signature]:
        for k, (got, expected) in enumerate(law(case)):
            error = scaled_error(got, expected)
            assert error < EXACT, f"{name}, {law.__name__}, pair {k}: {error:.1e}"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_joint(name, shipped):
    """Each kind of joint in one robot, at 1e-10; brackets of quaternions are there."""
    model = shipped["every_joint"]
    assert np.abs(structure_constants(model)).max() == 1.0
    _assert_laws(name, model, engine="plain" if name == NAMES[2] else "graph")


@pytest.mark.turns("seed")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "seed",
    [*range(2), *(pytest.param(k, marks=pytest.mark.full) for k in range(2, 20))],
)
def test_random_trees(name, seed):
    """Couplings, joints of several coordinates and branches."""
    _assert_laws(name, random_model(seed, size=3 + seed % 4), seed=seed)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("model", ["every_joint", 1, 3])
def test_tensors_as_products(model, shipped, monkeypatch):
    """Of robots with long paths; here of others, with every joint and couplings."""
    monkeypatch.setattr(second_derivatives, "SHORT", 0)
    model = shipped[model] if isinstance(model, str) else random_model(model, size=5)
    _assert_laws(NAMES[0], model)


def test_tensors_of_a_long_chain():
    """Products and what is written out: one state and lanes have equal bits."""
    model = chain(11)
    solver = dyn.solver(NAMES[0])
    programs = [solver.build(model, engine=e) for e in ("graph", "native")]
    assert programs[0].graph.counts()["product"] > 11
    _assert_laws(NAMES[0], model)
    case = Case(solver, model, "graph", np.random.default_rng(1))
    arguments = case.arguments(programs[0])
    rows = [np.repeat(np.asarray(x)[None], 9, 0) for x in arguments]
    one, two = (list(program(*arguments)) for program in programs)
    many = list(programs[1](*rows))
    for a, b, c in zip(one, two, many, strict=True):
        assert scaled_error(b, a) < TOLERANCES["exact"]
        assert all(np.array_equal(row, b) for row in c)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", NAMES)
def test_an_arm_on_a_floating_base(name):
    """On the manifold, native and graph alike."""
    model = dyn.load_urdf(robots.path("planar3"), root_joint="floating")
    _assert_laws(name, model)
    programs = [dyn.solver(name).build(model, engine=e) for e in ("graph", "native")]
    case = Case(dyn.solver(name), model, "graph", np.random.default_rng(1))
    arguments = case.arguments(programs[0])
    one, two = (list(program(*arguments)) for program in programs)
    for a, b in zip(one, two, strict=True):
        assert scaled_error(a, b) < TOLERANCES["exact"]


def test_joints_of_a_user():
    """Custom joints: their own second derivatives come from Taylor numbers."""
    from dyn_core.model.joints import Custom

    def bent(q):
        return None, (sin(q[0]) + q[1], q[0] * q[1], cos(q[1]))

    model = dyn.load_urdf(robots.path("planar3"))
    model = model.with_joint(model.joint_names[1], Custom(bent, 2))
    for name in NAMES:
        _assert_laws(name, model, engine="plain")


def test_forces_of_a_user_curve_accelerations():
    """joint_springs=True: second derivatives of a user's force, of q and qd."""
    model = dyn.load_urdf(robots.path("two_link"))

    def hardening(tree, q, qd):
        return Vector(-x * x * x * v * v for x, v in zip(q, qd, strict=True))

    hard = model.with_forces(hardening)
    state = list(np.random.default_rng(4).normal(size=(3, 2)))
    choices = {"joint_springs": True, "engine": "plain"}
    first = dyn.solver("fd_derivatives").build(hard, **choices)
    expected = complex_slopes(hard, first, state)
    expected[3] = expected[3].transpose(0, 2, 1)
    result = dyn.solver("fd_second_derivatives").build(hard, **choices)(*state)
    without = dyn.solver("fd_second_derivatives").build(hard)(*state)
    for got, wanted in zip(result, expected, strict=True):
        assert scaled_error(got, wanted) < EXACT
    assert np.abs(result[0] - without[0]).max() > 0.1


def test_tree_zeros_cost_nothing(shipped):
    """Three joints that are not on one path have no second derivative."""
    model = shipped["quadruped"]
    rng = np.random.default_rng(0)
    q, (qd, qdd) = model.random(rng), rng.normal(size=(2, model.nv))
    tensors = dyn.solver("id_second_derivatives").build(model, engine="graph")
    legs = [k for k in range(model.nv) if k >= 6]
    for tensor in tensors(q, qd, qdd):
        assert tensor[legs[0], legs[3], :].any() == 0
        assert tensor[legs[0], :, legs[-1]].any() == 0
        assert tensor[legs[0], :9, :9].any()


@pytest.mark.parametrize("name", NAMES)
def test_forces_fixed_to_something_else_are_refused(name, shipped):
    """In words; forces in base coordinates that stay fixed to bodies are served."""
    model, solver = shipped["two_link"], dyn.solver(name)
    for choices in ({"f_ext_fixed": "point"}, {"f_ext_frame": "base"}):
        with pytest.raises(dyn.UnsupportedError, match="valid: f_ext_fixed='body'"):
            solver.build(model, inputs=["f_ext"], **choices)
    served = {"f_ext_frame": "base", "f_ext_fixed": "body"}
    assert solver.build(model, inputs=["f_ext"], engine="graph", **served)


@pytest.mark.parametrize("robot", ["arm7", "quadruped"])
def test_a_contraction_costs_less_than_twice_the_first(robot, shipped):
    """Operations of a contraction against those of the first derivatives."""
    nodes = [
        len(dyn.solver(name).build(shipped[robot], engine="graph").graph.nodes)
        for name in ("id_derivatives", "id_second_contracted")
    ]
    assert nodes[1] < 2 * nodes[0]
