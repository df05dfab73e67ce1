"""Robots with many joints: factors by blocks, blocks of matrices in the base frame."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.plain import PlainProgram
from dyn_core.errors import SingularError
from dyn_core.model.coordinates import pivots
from dyn_core.spatial import Matrix
from dyn_core.spatial.block_factors import BlockFactored
from dyn_core.spatial.linear import Factored
from dyn_core.testing.models import random_model
from dyn_plugins.dynamics import _ancestor_blocks

SOLVERS = {
    "crba": ("q",),
    "dense": ("q", "qd", "tau"),
    "mass_matrix_inverse": ("q",),
    "id_derivatives": ("q", "qd", "qdd"),
    "fd_derivatives": ("q", "qd", "tau"),
}


def _state(model, seed=0):
    rng = np.random.default_rng(seed)
    qd, qdd, tau = rng.uniform(-1, 1, (3, model.nv))
    q = model.integrate(model.neutral(), rng.uniform(-1, 1, model.nv))
    return {"q": q, "qd": qd, "qdd": qdd, "tau": tau}


def _flat(result):
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.ravel(part) for part in parts])


@pytest.mark.parametrize("seed", range(4))
def test_factors_by_blocks(seed):
    """Solve, halves and inverse are those of dense algebra, whatever the blocks."""
    rng = np.random.default_rng(seed)
    n = 14
    order = rng.permutation(n)
    cuts = np.sort(rng.choice(np.arange(1, n), 4, replace=False))
    blocks = [sorted(part.tolist()) for part in np.split(order, cuts)]
    root = rng.uniform(-1, 1, (n, n))
    for part in blocks[1:-1]:  # pairs of branches that do not meet
        for other in blocks[1:-1]:
            if part is not other:
                root[np.ix_(part, other)] = 0.0
    A = np.zeros((n, n))
    for part in blocks:  # A = V.T V keeps these zeros
        rows = np.zeros_like(root)
        rows[part] = root[part]
        A += rows.T @ rows
    A += n * np.eye(n)
    entries = [[float(x) if x else 0.0 for x in row] for row in A]
    factors = BlockFactored(Matrix(entries), [1e-12] * n, ["row"] * n, blocks)
    b, c = rng.uniform(-1, 1, (2, n))
    assert (
        np.abs(np.array(factors.solve(b.tolist())) - np.linalg.solve(A, b)).max()
        < 1e-13
    )
    inverse = np.array(factors.inverse())
    assert np.abs(inverse - np.linalg.inv(A)).max() < 1e-13
    assert np.array_equal(inverse, inverse.T)
    B = rng.uniform(-1, 1, (n, 5)) * (rng.uniform(0, 1, (n, 5)) > 0.5)
    B[:, 2] = 0.0
    X = factors.solve_matrix(Matrix(B.tolist()), negative=True)
    assert np.abs(np.array(X) + np.linalg.solve(A, B)).max() < 1e-13
    assert [row[2] for row in X.rows] == [0.0] * n
    z, scaled = np.array(factors.halves(b.tolist())[0]), factors.halves(c.tolist())[1]
    assert abs(z @ np.array(scaled) - b @ np.linalg.solve(A, c)) < 1e-13


def test_factors_together_are_those_of_each_alone():
    """Factors that are made pivot by pivot with others have the same bits."""
    rng = np.random.default_rng(8)
    systems = []
    for n in (3, 6, 1):
        root = rng.uniform(-1, 1, (n, n))
        A = Matrix((root @ root.T + np.eye(n)).tolist())
        systems.append((A, [1e-12] * n, ["row"] * n))
    for factors, system in zip(Factored.together(systems), systems, strict=True):
        alone = Factored(*system)
        assert (factors.L, factors.over_D) == (alone.L, alone.over_D)
        B = rng.uniform(-1, 1, (system[0].shape[0], 2))
        X = np.array(factors.solve_matrix(Matrix(B.tolist())))
        assert np.abs(np.array(system[0]) @ X - B).max() < 1e-13


def test_a_singular_block_names_its_joint():
    """A pivot at zero is an error that names the row's item."""
    A = np.diag([1.0, 2.0, 0.0, 1.0]).tolist()
    with pytest.raises(SingularError, match="joint c"):
        BlockFactored(
            Matrix(A), [1e-9] * 4, [f"joint {x}" for x in "abcd"], [[0, 1], [2, 3]]
        )


@pytest.mark.parametrize("seed", range(3))
def test_branches_are_cut_into_blocks(seed):
    """Each coordinate is in one block, those of a block on one path to the base."""
    model = random_model(seed, size=24, branching=0.3)
    blocks = pivots._branch_blocks(model)
    assert sorted(x for block in blocks for x in block) == list(range(model.nv))
    owner = {
        x: i for i in model.independent for x in range(model.nv)[model.v_slices[i]]
    }
    for block in blocks:
        bodies = [owner[x] for x in block]
        assert len(block) <= pivots.LONG or len(set(bodies)) == 1
        for i in bodies:
            above = _ancestor_blocks._carriers(model, max(bodies))
            assert i in above


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed, driven", [(0, False), (1, False), (1, True)])
def test_both_ways_to_the_same_numbers(solver, seed, driven, monkeypatch):
    """By blocks and in the base frame as body by body, for trees with every joint."""
    model = random_model(seed, size=9, branching=0.3)
    state, time = _state(model, seed), []
    if driven:  # its joint has no coordinate
        model = model.drive("j4", lambda t: (None, (0.0, 0.1 * t, 0.2)))
        time = ["time"]
    inputs = [state[name] for name in SOLVERS[solver]] + [0.3] * len(time)
    results = []
    for many in (10**9, 0):
        monkeypatch.setattr(pivots, "MANY", many)
        monkeypatch.setattr(_ancestor_blocks, "MANY", many)
        program = dyn.solver(solver).build(model, engine="plain", inputs=time)
        assert isinstance(program, PlainProgram)
        results.append(_flat(program(*inputs)))
    body_by_body, by_blocks = results
    scale = np.abs(body_by_body).max()
    assert np.abs(by_blocks - body_by_body).max() < 1e-11 * scale


def _chain(n):
    """Return a URDF of a chain whose axes change."""
    parts = ['<robot name="chain"><link name="l0"/>']
    for k in range(1, n + 1):
        axis = ("1 0 0", "0 1 0", "0 0 1")[k % 3]
        parts.append(
            f'<link name="l{k}"><inertial><origin xyz="0.0{k % 7 + 1} 0.02 0.01"/>'
            f'<mass value="{1 + k % 3 / 10}"/><inertia ixx="0.01" iyy="0.02" izz="0.015"'
            ' ixy="0.001" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/>'
            f'<child link="l{k}"/><origin xyz="0.1 0 0.02" rpy="0.1 {k % 5 / 10} 0"/>'
            f'<axis xyz="{axis}"/><limit lower="-9" upper="9" effort="9" velocity="9"/>'
            "</joint>"
        )
    return "".join([*parts, "</robot>"])


@pytest.mark.one_of(2)
@pytest.mark.parametrize("solver", SOLVERS)
def test_long_chains(solver):
    """A chain of 46 joints: the numbers of Pinocchio, in rolled products."""
    pin = pytest.importorskip("pinocchio", reason="pinocchio is not installed")
    n = 46
    model = dyn.load(_chain(n))
    state = _state(model)
    q, v, a, tau = (state[name] for name in ("q", "qd", "qdd", "tau"))
    program = dyn.solver(solver).build(model)
    assert program.graph.counts()["product"] >= 5
    results = program(*(state[name] for name in SOLVERS[solver]))
    peer = pin.buildModelFromXML(_chain(n))
    data = peer.createData()
    H = pin.crba(peer, data, q)
    H = np.triu(H) + np.triu(H, 1).T
    if solver == "crba":
        expected = [H]
    elif solver == "dense":
        expected = [pin.aba(peer, data, q, v, tau)]
    elif solver == "mass_matrix_inverse":
        inverse = pin.computeMinverse(peer, data, q)
        expected = [np.triu(inverse) + np.triu(inverse, 1).T]
    elif solver == "id_derivatives":
        dq, dv, _ = pin.computeRNEADerivatives(peer, data, q, v, a)
        expected = [dq, dv, H]
    else:
        dq, dv, inverse = pin.computeABADerivatives(peer, data, q, v, tau)
        inverse = np.triu(inverse) + np.triu(inverse, 1).T
        expected = [pin.aba(peer, data, q, v, tau), dq, dv, inverse]
    results = results if isinstance(results, tuple) else (results,)
    for result, there in zip(results, expected, strict=True):
        assert np.abs(result - there).max() < 1e-8 * np.abs(there).max()
