"""Hybrid dynamics: worked cases A and B, all partitions, extremes, masks, cost."""

import itertools
import re

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.spatial import RigidInertia
from dyn_core.testing import TOLERANCES, random_model, scaled_error
from dyn_core.testing.models import chain

REL = TOLERANCES["reference"]
ENGINE = pytest.mark.parametrize("engine", available())
Z = (0.0, 0.0, 1.0)


def _near(got, wanted, tol=REL):
    assert scaled_error(got, wanted) <= tol, (got, wanted)


def _inertia(m, c, six):
    xx, yy, zz, xy, xz, yz = six
    return RigidInertia.of(m, c, (xx, xy, xz, yy, yz, zz))


@pytest.fixture(scope="module")
def case_a():
    """Return the planar double pendulum."""
    links = (
        LinkSpec("b0", RigidInertia.zero()),
        LinkSpec("b1", _inertia(1.7, (0.35, 0, 0), (0.09, 0.09, 0.09, 0, 0, 0))),
        LinkSpec("b2", _inertia(1.1, (0.45, 0, 0), (0.075, 0.075, 0.075, 0, 0, 0))),
    )
    joints = (
        JointSpec("j1", "revolute", "b0", "b1", axis=Z),
        JointSpec("j2", "revolute", "b1", "b2", (0.8, 0.0, 0.0), axis=Z),
    )
    return assemble(Build(Description("A", links, joints), gravity=(0.0, -9.81, 0.0)))


@ENGINE
def test_case_a(case_a, engine):
    """Both partitions of the double pendulum."""
    state = (0.4, -0.9), (1.3, -0.7)
    hd = dyn.solver("hybrid").build
    tau, qdd = hd(case_a, prescribed=["j1"], engine=engine)(*state, [0.6], [-1.2])
    _near(tau, [8.63667855648966])
    _near(qdd, [-17.6779441439918])
    tau, qdd = hd(case_a, prescribed=["j2"], engine=engine)(*state, [2.1], [3.0])
    _near(tau, [-0.286162228129504])
    _near(qdd, [-8.5468579916993])


def test_every_partition_of_a_tree():
    """All 16 choices of four joints agree with the partitioned dense system."""
    model = random_model(3, size=4, kinds=("revolute", "prismatic"), mimic=0.0)
    rng = np.random.default_rng(0)
    q, qd, qdd = model.random(rng), *rng.normal(size=(2, 4))
    H = dyn.solver("crba").build(model)(q)
    C = dyn.solver("bias").build(model)(q, qd)
    tau = H @ qdd + C
    mask = dyn.solver("hybrid").build(model, prescribed="mask", engine="graph")
    for prescribed in itertools.product((False, True), repeat=4):
        prescribed = np.array(prescribed)
        names = [n for n, h in zip(model.joint_names, prescribed, strict=True) if h]
        hd = dyn.solver("hybrid").build(model, prescribed=names, engine="graph")
        got = hd(q, qd, qdd[prescribed], tau[~prescribed])
        _near(got.tau_u, tau[prescribed], 1e-11)
        _near(got.qdd_v, qdd[~prescribed], 1e-10)
        both = mask(q, qd, prescribed.astype(float), qdd, tau)
        _near(both[0], tau, 1e-11)
        _near(both[1], qdd, 1e-10)
    every = dyn.solver("hybrid").build(model, prescribed=list(model.joint_names))
    _near(
        every(q, qd, qdd, []).tau_u, dyn.solver("rnea").build(model)(q, qd, qdd), 1e-13
    )
    none = dyn.solver("hybrid").build(model)
    _near(none(q, qd, [], tau).qdd_v, dyn.solver("aba").build(model)(q, qd, tau), 1e-13)


def test_a_mask_serves_rows_of_a_batch():
    """Each row has its own mask; nothing is compiled anew."""
    model = dyn.load_urdf(dyn.robots.path("arm7"))
    program = dyn.solver("hybrid").build(model, prescribed="mask")
    rng = np.random.default_rng(0)
    Q, Qd, Qdd, Tau = rng.normal(size=(4, 50, 7))
    masks = (rng.uniform(size=(50, 7)) < 0.5).astype(float)
    tau, qdd = program(Q, Qd, masks, Qdd, Tau)
    back = dyn.solver("rnea").build(model)(Q, Qd, qdd)
    np.testing.assert_allclose(back, tau, atol=1e-9)
    np.testing.assert_array_equal(qdd[masks == 1], Qdd[masks == 1])
    np.testing.assert_array_equal(tau[masks == 0], Tau[masks == 0])


def test_cost_is_linear():
    """Operations of hybrid dynamics on chains: affine in n; near those of aba."""
    counts, peers = [], []
    for n in (4, 8, 12):
        model = chain(n)
        hd = dyn.solver("hybrid").build(
            model, prescribed=model.joint_names[::2], engine="graph"
        )
        fd = dyn.solver("aba").build(model, engine="graph")
        counts.append(len(hd.graph.nodes))
        peers.append(len(fd.graph.nodes))
    steps = np.diff(counts)
    assert abs(steps[1] - steps[0]) <= 0.02 * steps[0]
    assert counts[-1] < 1.3 * peers[-1]


@pytest.mark.parametrize(
    ("prescribed", "message"),
    [
        (["nobody"], "valid: joint1"),
        (["joint1", "joint1"], "prescribed twice"),
        ([("joint1", 3)], "coordinates 0 to 0"),
    ],
)
def test_bad_partitions_are_refused(prescribed, message):
    """Names, doubles, numbers."""
    model = dyn.load_urdf(dyn.robots.path("arm7"))
    with pytest.raises(dyn.DynError, match=message):
        dyn.solver("hybrid").build(model, prescribed=prescribed)


@pytest.mark.parametrize(
    "solver", ["hybrid", "hybrid_euler", "hd_derivatives", "hd_directional"]
)
@pytest.mark.parametrize("entries", ["{}", "({}, 0)"])
def test_another_order_than_that_of_the_coordinates_is_refused(solver, entries):
    """Inputs and outputs are in that of the coordinates, whatever the list says."""
    model, build = dyn.load("arm7"), dyn.solver(solver).build
    first, third = (
        name if entries == "{}" else (name, 0) for name in ("joint1", "joint3")
    )
    said = (
        f"{solver}: option prescribed: {third}, {first}; valid: in the order of the"
        f" coordinates: {first}, {third}"
    )
    with pytest.raises(dyn.UnsupportedError, match=re.escape(said)):
        build(model, prescribed=[third, first], engine="graph")
    for valid in ([first, third], {third, first}):
        build(model, prescribed=valid, engine="graph")


def test_articulated_inertia_of_a_free_root():
    """Ihat of a floating root is the inverse of its own response; S.T F = tau."""
    model = dyn.load_urdf(dyn.robots.path("quadruped"), root_joint="floating")
    rng = np.random.default_rng(0)
    q, qd, tau = model.random(rng), *rng.normal(size=(2, model.nv))
    got = dyn.solver("articulated_bodies").build(model)(q, qd, tau)
    omega = dyn.solver("self_responses").build(model)(q)
    _near(got.Ihat[0] @ omega[0], np.eye(6), 1e-10)
    assert np.linalg.eigvalsh(got.Ihat).min() > -1e-9
    _near(got.F[0], tau[:6], 1e-11)


def test_psi_of_a_chain_is_the_corner_of_the_inverse(case_a):
    """Psi_1 = (H^-1)_11 for a chain: the response of its first joint to itself."""
    q = (0.4, -0.9)
    G = dyn.solver("delassus").build(case_a, joint_rows=["j1", "j2"])(
        q, np.zeros((0, 6))
    )
    _near(G, np.linalg.inv(dyn.solver("crba").build(case_a)(q)))
    _near(G[0, 0], 1.2519636206301)
