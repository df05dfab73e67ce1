"""Accelerations of planar chains: reference values, a dense solver, laws, costs."""

from itertools import product

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.planar import from_angles, make_chain, make_chain_like
from dyn_core.planar.chain.chain import FREE, GUIDED, LINE
from dyn_core.solving.operation_counts import count, polynomial_degree
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_plugins.planar import _passes as passes
from dyn_plugins.planar._testing.chains import (
    angle_rows,
    dense_accelerations,
    forces,
    link_directions,
    mass_matrix,
    random_chain,
)
from dyn_plugins.planar._testing.references import REFERENCES, reference
from dyn_plugins.references.source_forms import Part1, Part2, part1, part2, take

EXACT = TOLERANCES["exact"]
DENSE = 1e-8  # WAW-5.4: near-singular chains are among the random ones
MODES = ("kind", "s", "a_w", "active", "alpha_w")
PARAMETERS = ("lengths", "masses", "link_masses", "link_coms", "link_inertias")
OUTPUTS = ("a", "F_d", "tau_w", "alpha", "reaction", "dropped")
ENGINES = pytest.mark.parametrize("engine", available())
SYSTEM = dyn.planar.problems.CHAIN_ACCELERATIONS.system
NOTHING = 1e-14 * 9.81  # round-off of weights that supports carry [m/s²]


def _near(got, wanted, relative=EXACT):
    assert scaled_error(got, wanted) <= relative, (got, wanted)


def _modes(chain):
    constraints = chain.constraints
    return {name: np.array(getattr(constraints, name), float) for name in MODES}


def _build(name, chain, engine="plain", **choices):
    return dyn.solver(name).build(chain, engine=engine, **choices)


def _solve(case, engine="plain", **modes):
    """Return all outputs of one case."""
    program = _build("chain_recursion", case.chain, engine, inputs=tuple(modes))
    return program(*case[1:4], **modes)


def _moment(x, f):
    return (x[..., 0] * f[..., 1] - x[..., 1] * f[..., 0]).sum(axis=-1)


# Section K


@ENGINES
@pytest.mark.parametrize("modes", ["constants", "inputs"])
@pytest.mark.parametrize("name", REFERENCES)
def test_reference_values(name, modes, engine):
    case = reference(name)
    if modes == "constants":
        solution = _solve(case, engine)
    else:
        loose = make_chain_like(case.chain, constraints=None)
        solution = _solve(case._replace(chain=loose), engine, **_modes(case.chain))
    for key, wanted in case.answer.items():
        error = np.abs(getattr(solution, key) - wanted).max()
        assert error <= 1e-10 * (np.abs(wanted).max() or 1.0), key
    assert solution.dropped.sum() == (name == "REF-8")
    assert name != "REF-8" or solution.dropped[1, 0]


# Random chains, all of one size in one batch: modes and parameters are inputs


class Many:
    """Random chains of n joints, the answers of a batch and of the dense solver."""

    def __init__(self, n, seeds):
        # Every other chain has massive links; every third has resting supports.
        self.cases = [
            random_chain(seed, n=n, massive=0.4 * (seed % 2), still=seed % 3 == 0)
            for seed in seeds
        ]
        self.chains = [case.chain for case in self.cases]
        self.x, self.v, self.F = (
            np.stack([case[k] for case in self.cases]) for k in (1, 2, 3)
        )
        modes = [_modes(chain) for chain in self.chains]
        self.modes = {name: np.stack([row[name] for row in modes]) for name in MODES}
        parameters = {
            path: np.stack([chain.parameter(path) for chain in self.chains])
            for path in PARAMETERS
        }
        if n == 2:
            for path in PARAMETERS:
                if path != "masses":
                    parameters[path] = parameters[path][:, 0]
        self.parameters = parameters
        self.program = _build(
            "chain_recursion", self.chains[0], "native", inputs=(*MODES, *PARAMETERS)
        )
        self.result = self.solve()
        self.dense = [dense_accelerations(*case[:4]) for case in self.cases]
        self.fits = np.array([answer.compatible for answer in self.dense])
        self.unique = np.array([answer.independent for answer in self.dense])
        self.mass = np.stack([mass_matrix(chain) for chain in self.chains])
        self.rows = np.stack([angle_rows(*case[:2]) for case in self.cases])

    def solve(self, F=None, **modes):
        F = self.F if F is None else F
        return self.program(
            self.x, self.v, F, **{**self.modes, **modes}, **self.parameters
        )


@pytest.fixture(scope="module")
def many(full):
    """700 random chains of all kinds, 2 to 8 joints; 2000 with --full."""
    count = 2000 if full else 700
    return {n: Many(n, range(n, count + n, 7)) for n in range(2, 9)}


def _count(many):
    return sum(len(batch.cases) for batch in many.values())


def _worst(errors, scale):
    """Return the largest error of each row over max(1, its scale)."""
    flat = np.abs(errors).reshape(len(errors), -1).max(axis=1)
    return flat / np.maximum(1.0, np.abs(scale).reshape(len(errors), -1).max(axis=1))


def test_dense_solver(many):
    """a, alpha, torques and supports of all that is compatible (WAW-5.4, 9, 11.6)."""
    skipped = large = 0
    for batch in many.values():
        skipped += (~batch.fits).sum()
        wanted = np.stack([answer.a for answer in batch.dense])
        # Near-singular chains show it by their accelerations.
        size = np.abs(wanted).reshape(len(wanted), -1).max(axis=1) / 1e3
        large += (size[batch.fits] > 1).sum()
        allowed = DENSE * np.maximum(1.0, size)
        worst = _worst(batch.result.a - wanted, wanted)
        assert (worst <= allowed)[batch.fits].all()
        assert np.median(worst[batch.fits]) <= 1e-14
        alpha = np.einsum("bijk,bjk->bi", batch.rows, wanted)
        worst = _worst(batch.result.alpha - alpha, alpha)
        assert (worst <= allowed)[batch.fits].all()
        for key, part in (("tau_w", "tau"), ("reaction", "support")):
            wanted = np.stack([getattr(answer, part) for answer in batch.dense])
            worst = _worst(getattr(batch.result, key) - wanted, wanted)
            assert (worst <= allowed)[batch.fits & batch.unique].all(), key
    assert skipped <= 0.16 * _count(many)
    assert large <= 0.01 * _count(many)


def test_what_is_given_up_makes_the_rest_hold(many):
    """Constraints that exclude each other: all hold but the dropped ones."""
    count = lines = 0
    for batch in many.values():
        given_up = batch.result.dropped.any(axis=(1, 2))
        for k in np.flatnonzero(given_up | ~batch.fits):
            case, outputs = batch.cases[k], [part[k] for part in batch.result]
            outputs = dict(zip(OUTPUTS, outputs, strict=True))
            e = (np.diff(case.v, axis=0) ** 2).sum(axis=1) / case.chain.lengths
            e = np.where(outputs["dropped"][:-1, 0] > 0, np.nan, e)
            active = batch.modes["active"][k].copy()
            active *= 1 - outputs["dropped"][:, 1]
            active[0] *= outputs["tau_w"][0] != 0  # no output says so of angle 0
            dense = dense_accelerations(*case[:4], active=active, e=e)
            assert dense.compatible and dense.independent, (case.chain.n, k)
            scale = max(1.0, np.abs(dense.a).max() / 1e3)
            for key, part in (("a", "a"), ("tau_w", "tau"), ("reaction", "support")):
                _near(outputs[key], getattr(dense, part), DENSE * scale)
            count += 1
            lines += (batch.modes["kind"][k] == LINE).any()
    assert count >= 0.1 * _count(many)
    assert lines >= 0.05 * _count(many)


def test_identities(many):
    """Links, momentum, moment, power, supports, in each of them (WAW-5.4)."""
    for batch in many.values():
        x, v, F, outputs, kind = (
            batch.x,
            batch.v,
            batch.F,
            batch.result,
            batch.modes["kind"],
        )
        dropped = outputs.dropped.any(axis=(1, 2))
        c, u = np.diff(x, axis=1), np.diff(v, axis=1)
        size = np.linalg.norm(c, axis=2)
        r, lengths = c / size[..., None], np.stack([c.lengths for c in batch.chains])
        e = (u * u).sum(axis=2) / lengths
        stretched = -(r * np.diff(outputs.a, axis=1)).sum(axis=2) - e
        # Sums cancel: they are compared with what is summed.
        scale = np.concatenate([outputs.a, outputs.F_d, outputs.reaction], axis=1)
        stretched = np.where(outputs.dropped[..., :-1, 0] > 0, 0.0, stretched)
        assert _worst(stretched, scale).max() <= EXACT
        total, inertial = (
            F + outputs.reaction,
            np.einsum("bij,bjk->bik", batch.mass, outputs.a),
        )
        assert _worst((inertial - total).sum(axis=1), scale).max() <= EXACT
        outer = np.where(batch.modes["active"][:, 0] > 0, outputs.tau_w[:, 0], 0.0)
        moment = _moment(x, inertial) - _moment(x, total) - outer
        assert _worst(moment, scale).max() <= 10 * EXACT
        rates = np.einsum("bijk,bjk->bi", batch.rows, v)
        power = (outputs.tau_w * rates).sum(axis=1)
        power = power + ((total - inertial) * v).sum(axis=(1, 2))
        assert _worst(power, scale)[~dropped].max() <= 10 * EXACT
        s, wanted = batch.modes["s"], batch.modes["a_w"]
        gap = np.where(kind == LINE, ((outputs.a - wanted) * s).sum(axis=2), 0.0)
        assert _worst(gap, scale).max() <= EXACT
        along = (
            s[..., 0] * outputs.reaction[..., 1] - s[..., 1] * outputs.reaction[..., 0]
        )
        along = np.where(kind == LINE, along, 0.0)
        assert _worst(along, scale).max() <= EXACT
        free = np.where((kind == FREE)[..., None], outputs.reaction, 0.0)
        assert _worst(free, scale).max() <= EXACT
        assert (outputs.a == wanted)[kind == GUIDED].all()
        on = batch.modes["active"] > 0
        on &= outputs.dropped[..., 1] == 0
        on[:, 0] &= outputs.tau_w[:, 0] != 0
        missed = np.where(on, outputs.alpha - batch.modes["alpha_w"], 0.0)
        scale = np.concatenate([outputs.F_d.reshape(len(x), -1), outputs.alpha], axis=1)
        assert _worst(missed, scale).max() <= EXACT
        assert not outputs.tau_w[batch.modes["active"] == 0].any()


def test_supports_at_rest_do_no_work(many):
    """sum m v.a = sum F.v where all constraints rest and no torque is asked for."""
    count = 0
    for batch in many.values():
        still = np.array([not row.any() for row in batch.modes["a_w"]])
        still &= ~(batch.modes["active"] > 0).any(axis=1)
        still &= ~batch.result.dropped.any(axis=(1, 2))
        inertial = np.einsum("bij,bjk->bik", batch.mass, batch.result.a)
        power = ((inertial - batch.F) * batch.v).sum(axis=(1, 2))
        scale = np.concatenate([batch.result.a, batch.result.F_d], axis=1)
        assert _worst(power, scale)[still].max() <= 10 * EXACT
        count += still.sum()
    assert count >= 0.05 * _count(many)


def test_given_torques_are_ordinary_torques(many):
    """tau_w put on as forces, no joint active, moves the chain just so (WAW-9)."""
    for batch in many.values():
        F = batch.F + np.einsum("bijk,bi->bjk", batch.rows, batch.result.tau_w)
        loose = batch.solve(F, active=np.zeros_like(batch.modes["active"]))
        kept = ~batch.result.dropped.any(axis=(1, 2))
        size = np.abs(batch.result.a).reshape(len(kept), -1).max(axis=1) / 1e3
        worst = _worst(loose.a - batch.result.a, batch.result.a)
        assert (worst <= DENSE * np.maximum(1.0, size))[kept].all()
        assert np.median(worst[kept]) <= 1e-14


@pytest.mark.parametrize("engine", ["plain", "graph"])
def test_constants_are_as_good_as_inputs(many, engine):
    """What a chain has itself gives the numbers that inputs give."""
    for n, batch in many.items():
        for k in range(0, len(batch.cases), 40 if n < 7 else 80):
            solution = _solve(batch.cases[k], engine)
            for key, value in zip(OUTPUTS, batch.result, strict=True):
                _near(getattr(solution, key), value[k], 1e-9)


# The source's own formulas


@pytest.mark.parametrize(
    ("solver", "choices"),
    [
        (Part1(), {"active": 0.0}),
        (Part2(), {"kinds": ("free", "guided"), "active": 0.4}),
        (Part2(), {"kinds": ("free", "guided", "guided"), "active": 0.7}),
    ],
    ids=["part1", "part2", "part2-dropping"],
)
def test_source_forms(solver, choices):
    """Parts I and II give the same, also what they give up."""
    for seed in range(80):
        case = random_chain(seed, **choices)
        solution, wanted = _solve(case), solver.build(case.chain)(*case[1:4])
        size = max(1.0, np.abs(wanted[0]).max() / 1e3)
        for key, value in zip(OUTPUTS, wanted, strict=True):
            _near(getattr(solution, key), value, 1e-9 * size)


KINDS = ("free", "line", "guided")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("following", KINDS)
def test_thirty_six_cases(kind, following):
    """Joint 2 and the next, each free, on a line or guided, active or not (WAW-11.6)."""
    both = kind == following == "guided"
    for active, next_active, seed in product((False, True), (False, True), range(4)):
        case = random_chain(seed, n=6, kinds=("free",), active=0.0)
        rng = np.random.default_rng(seed)
        turn, a_w = rng.uniform(-3, 3, 6), rng.normal(size=(6, 2))
        r, u = link_directions(case.chain, case.x)[0][2], np.diff(case.v, axis=0)[2]
        if both:  # two guided neighbours can keep their link only so
            a_w[3] += r * (r @ (a_w[2] - a_w[3]) - u @ u / case.chain.lengths[2])
        chain = case.chain.with_constraints(
            kind={2: kind, 3: following},
            s=np.column_stack([np.cos(turn), np.sin(turn)]),
            a_w=a_w,
            active=[i for i, on in ((2, active), (3, next_active)) if on],
            alpha_w=rng.normal(size=6),
        )
        case = case._replace(chain=chain)
        dense, solution = dense_accelerations(*case[:4]), _solve(case)
        assert dense.compatible
        assert dense.independent != both
        _near(solution.a, dense.a, 1e-10)
        _near(solution.tau_w, dense.tau, 1e-10)
        assert solution.dropped.sum() == solution.dropped[2, 0] == both
        loose = case._replace(chain=chain.with_constraints())
        for got, wanted in zip(_solve(loose, **_modes(chain)), solution, strict=True):
            _near(got, wanted, 1e-11)


# Structure


def _passed(case):
    """Return the Joints of the pass back of a case, by numbers."""
    modes = passes.modes_of(case.chain)
    r, L, _ = passes.links(
        case.chain, [dyn.authoring.Vector(row) for row in case.x.tolist()]
    )
    return passes.pass_back(case.chain, r, L, modes)


def _numbers(part):
    rows = getattr(part, "rows", None)
    return np.array([list(row) for row in rows] if rows else list(part), float)


def _rest_of(case, start):
    """Return the chain from a joint on, at its end of the case."""
    constraints, parts = case.chain.constraints, {}
    for name in MODES:
        parts[name] = getattr(constraints, name)[start:]
    parts["active"] = (False, *constraints.active[start + 1 :])
    chain = make_chain_like(
        case.chain,
        **{name: getattr(case.chain, name)[start:] for name in ("lengths", "masses")},
        **{name: getattr(case.chain, name)[start:] for name in PARAMETERS[2:]},
        k_omega=(), k_v=(), lower=(), upper=(), joint_names=(), constraints=parts,
    )  # fmt: skip
    return case._replace(
        chain=chain, x=case.x[start:], v=case.v[start:], F=case.F[start:]
    )


def test_structure_of_the_responses():
    """A symmetric and positive, bw = p, qw >= 0, as differences say (WAW-2.2, 9.3)."""
    for seed in range(60):
        case = random_chain(seed)
        least = min(case.chain.masses)
        joints, L = _passed(case), link_directions(case.chain, case.x)[1]
        sizes = [np.abs(_numbers(J.bw)).max() + abs(float(J.qw)) for J in joints]
        slack = 1e-14 * max(1.0, *sizes) ** 2
        for start, J in enumerate(joints):
            A, bw, qw = _numbers(J.A), _numbers(J.bw), float(J.qw)
            assert np.abs(A - A.T).max() <= slack / least
            assert np.linalg.eigvalsh(A + A.T).min() >= -slack / least
            assert qw >= -slack / least
            if start + 1 == case.chain.n:
                assert not bw.any() and qw == 0
                continue
            rest = _rest_of(case, start)
            program = _build("chain_recursion", rest.chain, inputs=("active",))
            off = np.array(rest.chain.constraints.active, float)
            before = program(*rest[1:4], active=off)
            columns = [*np.eye(2), None]
            for k, axis in enumerate(columns):
                F = rest.F.copy()
                if axis is None:  # the couple of joint `start` on link `start`
                    F[:2] += np.stack([-L[start], L[start]])
                else:
                    F[0] += axis
                after = program(rest.x, rest.v, F, active=off)
                a, alpha = after.a[0] - before.a[0], after.alpha[0] - before.alpha[0]
                scale = max(1.0, np.abs(before.a).max(), np.abs(before.alpha).max())
                assert np.abs(a - [*A.T, bw][k]).max() <= 1e-12 * scale, (seed, start)
                assert abs(alpha - [*bw, qw][k]) <= 1e-12 * scale, (seed, start)


def test_source_coefficients_are_these():
    """A, b^w = p and q^w of Parts I and II (WAW-5.2, 6.1, 6.4, 9.1)."""
    for seed in range(40):
        case = random_chain(seed, kinds=("free", "guided"), active=0.5)
        theirs = part2(take(*case[:4]))
        for J, step in zip(_passed(case), theirs, strict=True):
            scale = max(1.0, abs(step.qw))
            assert np.abs(_numbers(J.A) - step.A).max() <= 1e-10 * scale
            assert np.abs(_numbers(J.bw) - step.bw).max() <= 1e-10 * scale
            assert np.abs(_numbers(J.bw) - step.p).max() <= 1e-10 * scale
            assert abs(float(J.qw) - step.qw) <= 1e-10 * scale
        case = random_chain(seed, active=0.0)
        for J, step in zip(_passed(case), part1(take(*case[:4])), strict=True):
            _near(_numbers(J.A), step.A, 1e-11)


def test_locked_chain_is_a_rigid_body():
    """Interior angles given, alpha 0: Newton and Euler of that body (WAW-9)."""
    for seed in range(20):
        case = random_chain(seed, n=6, kinds=("free",), active=0.0, massive=0.5)
        chain = case.chain.with_constraints(active=range(1, 5))
        M, x, w = mass_matrix(chain), case.x, 0.8
        m = M.sum(axis=0)
        from_centre = x - m @ x / m.sum()
        turned = np.column_stack([-from_centre[:, 1], from_centre[:, 0]])
        turn = _moment(from_centre, case.F) / (turned * (M @ turned)).sum()
        # Forces of a body that turns: w² pulls each mass to the axis, in sum nothing.
        a = case.F.sum(axis=0) / m.sum() + turn * turned - w * w * from_centre
        solution = _solve(case._replace(chain=chain, v=w * turned + [0.3, -0.2]))
        _near(solution.a, a, 1e-10)
        _near(solution.alpha[1:], np.zeros(5), 1e-10)


def test_closed_through_the_ground():
    """Both ends held, by pins or by lines, in the same pass (WAW-6.5)."""
    for seed, kind in product(range(10), ("line", "fixed")):
        case = random_chain(seed, n=5, kinds=("free",), active=0.0)
        case = _rest(case, kind={0: kind, 4: kind}, s={0: (0, 1), 4: (0.6, 0.8)})
        _near(_solve(case).a, dense_accelerations(*case[:4]).a, 1e-10)


def test_only_angle_zero_of_a_guided_base():
    """A given angle 0 of one link, of an end, of a base on a line (WAW-9.4)."""
    for seed, kind in product(range(10), ("line", "fixed")):
        case = random_chain(seed, n=2 + seed % 4, kinds=("free",), active=0.0)
        case = _rest(
            case, kind={0: kind}, s={0: (0.6, 0.8)}, active=(0,), alpha_w={0: 2}
        )
        solution, dense = _solve(case), dense_accelerations(*case[:4])
        _near(solution.a, dense.a, 1e-10)
        _near(solution.tau_w, dense.tau, 1e-10)
        assert solution.alpha[0] == pytest.approx(2, rel=1e-12)


# Rigid parts


def _rest(case, **changes):
    """Return a case at rest under gravity, its constraints changed."""
    chain = case.chain.with_constraints(**changes)
    v = np.zeros_like(case.x)
    return case._replace(chain=chain, v=v, F=forces(chain, case.x, v))


def _both_ways(case, engine):
    """Solve with modes as constants and as inputs."""
    loose = case._replace(chain=make_chain_like(case.chain, constraints=None))
    return _solve(case, engine), _solve(loose, engine, **_modes(case.chain))


@ENGINES
@pytest.mark.parametrize("active", [(2, 3, 4), (1, 2, 3, 4)])
def test_rigid_end(active, engine):
    """Two guided joints and active ones before make a rigid end (WAW-12.6)."""
    for seed in range(3):
        case = random_chain(seed, n=6, kinds=("free",), active=0.0)
        free = _rest(case, kind={4: "fixed", 5: "fixed"}, active=(2, 3, 4))
        for J in _passed(free)[1:4]:
            assert np.abs(_numbers(J.A)).max() < 1e-14
        for solution in _both_ways(free, engine):
            assert all(np.isfinite(part).all() for part in solution)
        lost = np.zeros((6, 2))
        lost[4, 0] = lost[0, 0] = 1
        lost[1, 1] = 1 in active
        fixed = _rest(case, kind=dict.fromkeys((0, 4, 5), "fixed"), active=active)
        for solution in _both_ways(fixed, engine):
            assert np.abs(solution.a).max() <= NOTHING
            assert np.abs(solution.alpha).max() <= 1e-12
            assert solution.dropped.tolist() == lost.tolist()


@ENGINES
def test_half_rigid_end(engine):
    """A rigid pendulum about a guided joint, held by another (WAW-12.7)."""
    for seed in range(5):
        case = random_chain(seed, n=5, kinds=("free",), active=0.0)
        case = _rest(case, kind={1: "fixed", 4: "fixed"}, active=(2, 3))
        for J, rank in zip(_passed(case), (1, 0, 1, 1, 0), strict=True):
            sizes = np.linalg.svd(_numbers(J.A), compute_uv=False)
            assert (sizes > 1e-9).sum() == rank
        for solution in _both_ways(case, engine):
            assert solution.dropped.sum() == 1
            assert np.abs(solution.a[1:]).max() <= NOTHING
            assert all(np.isfinite(part).all() for part in solution)


# Batches, sizes, costs, derivatives


def _argument(port, rng, rows=6):
    """Return rows of random values of an input."""
    shape = (rows, *port.shape)
    if port.name == "kind":
        return rng.choice((FREE, FREE, FREE, LINE, GUIDED), shape)
    if port.name == "s":
        turn = rng.uniform(-3, 3, shape[:-1])
        return np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    if port.name in ("active", "contact", "limit"):
        values = rng.integers(0, 2, shape).astype(float)
        values[:, -1] = 0
        return values
    if port.name == "x":
        return np.cumsum(rng.uniform(0.2, 0.5, shape), axis=1)
    values = rng.normal(size=shape)
    if port.name == "tau":
        values[:, -1] = 0
    return np.full(shape, 1e-2) if port.name == "dt" else values


CHAIN_SOLVERS = sorted(
    name
    for name in dyn.solvers(references=True)
    if dyn.solver(name).signature.system == SYSTEM
)
LEFT_OUT = {  # what the source's forms refuse
    "chain_part1": ("active",),
    "chain_part2": ("kind", "s"),
    "chain_force_jacobian_source": ("active",),
    "chain_torque_response_source": ("active",),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", CHAIN_SOLVERS)
def test_batch_equals_loop(name):
    """One row at a time is the same to 1e-13, on each engine (WAW-15.4)."""
    chain = make_chain(
        (0.5, 0.4, 0.6),
        (0.5, 1, 0.8, 0.4),
        k_omega=0.1,
        k_v=0.2,
        ground=[{"joints": (0, 3)}],
        upper={1: 1.0},
        lower={1: -1.0},
    )
    solver = dyn.solver(name)
    optional = [port.name for port in solver.signature.inputs if port.optional]
    inputs = tuple(x for x in optional if x not in LEFT_OUT.get(name, ()))
    first = None
    for engine in available():
        try:
            program = solver.build(chain, engine=engine, inputs=inputs)
        except dyn.UnsupportedError:
            assert engine != "plain"
            continue
        rng = np.random.default_rng(1)
        rows = [_argument(port, rng) for port in program.inputs]
        together = program(*rows)
        together = together if isinstance(together, tuple) else (together,)
        for k in range(6):
            alone = program(*(row[k] for row in rows))
            alone = alone if isinstance(alone, tuple) else (alone,)
            for got, wanted in zip(together, alone, strict=True):
                _near(got[k], wanted, 1e-13)
        first = first or together
        for got, wanted in zip(together, first, strict=True):
            _near(got, wanted, 1e-11)


@pytest.mark.parametrize(
    ("n", "engine"),
    [
        *product((1, 2, 3, 10, 100), available()),
        pytest.param(1000, "plain", marks=pytest.mark.full),
    ],
)
def test_any_number_of_joints(n, engine):
    """2 to 1000 joints (100 without --full: the same loop); links keep their lengths, momentum its law (WAW-1.1)."""
    case = random_chain(5, n=n, kinds=("free",), active=0.2)
    solution = _solve(case, engine)
    m, e = np.array(case.chain.masses), np.diff(case.v, axis=0)
    e = (e * e).sum(axis=1) / case.chain.lengths
    r, _ = link_directions(case.chain, case.x)
    size = max(1.0, np.abs(solution.a).max())
    assert (
        np.abs((r * np.diff(solution.a, axis=0)).sum(axis=1) + e).max(initial=0)
        <= EXACT * size
    )
    _near(m @ solution.a, case.F.sum(axis=0), 1e-11 * n)
    if n <= 10:
        _near(solution.a, dense_accelerations(*case[:4]).a, 1e-10)


SIZES = (6, 10, 20, 40)


def _chain_of(n):
    return make_chain(
        np.full(n - 1, 0.3),
        np.ones(n),
        k_omega=0.1,
        k_v=0.1,
        ground=[{}],
        upper=dict.fromkeys(range(1, n - 1), 2.0),
        lower=dict.fromkeys(range(1, n - 1), -2.0),
        constraints={"kind": {0: "fixed"}, "active": (2,)},
    )


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("name", "degree"),
    [
        ("chain_recursion", 1),
        ("chain_forces", 1),
        ("chain_impact", 1),
        ("chain_torques", 1),
        ("chain_quantum", 1),
        ("chain_semi_implicit", 1),
        ("chain_rk4", 1),
        ("chain_fixed_step", 1),
        ("chain_torque_response", 2),
        ("chain_force_jacobian", 2),
    ],
)
def test_operations_grow_linearly(name, degree):
    """Operations are affine in n, responses of all pairs quadratic (WAW-5.4, 8.1)."""
    totals = []
    for n in SIZES:
        program, rng = _build(name, _chain_of(n)), np.random.default_rng(0)
        rows = [_argument(port, rng, 1)[0] for port in program.inputs]
        numbers = np.concatenate([np.ravel(row) for row in rows])
        totals.append(count(program, numbers.tolist()).total())
        if name == "chain_fixed_step":  # by numbers it takes other branches
            program = _build(name, _chain_of(n), "graph")
            totals[-1] = len(program.graph.nodes)
    assert polynomial_degree(SIZES, totals) == degree, totals


def test_one_row_of_the_jacobian_is_linear():
    totals = []
    for n in SIZES:
        program = _build("chain_force_jacobian", _chain_of(n), joint=2)
        x = np.cumsum(np.full((n, 2), 0.2), axis=0)
        totals.append(count(program, x.ravel().tolist()).total())
    assert polynomial_degree(SIZES, totals) == 1, totals
    chain = _chain_of(5)
    x = np.cumsum(np.random.default_rng(0).uniform(0.2, 0.4, (5, 2)), axis=0)
    one = _build("chain_force_jacobian", chain, joint=2)(x)
    _near(one[:, 2], _build("chain_force_jacobian", chain)(x)[:, 2])
    assert not np.delete(one, 2, axis=1).any()


@ENGINES
def test_complex_steps_are_derivatives(engine):
    """Imaginary parts carry derivatives by places and forces."""
    case, h = random_chain(3, n=5), 1e-30
    program = _build("chain_recursion", case.chain, engine)
    x, v, F = case[1:4]
    d = np.random.default_rng(0).normal(size=x.shape)
    steps = [k * 1e-4 for k in (1, 2)]
    one, two = (
        (program(x + t * d, v, F).a - program(x - t * d, v, F).a) / (2 * t)
        for t in steps
    )
    _near(
        program(x + 1j * h * d, v, F).a.imag / h,
        (4 * one - two) / 3,
        1e-7 * np.abs(one).max(),
    )
    wanted = program(x, v, F + d).a - program(x, v, F).a
    _near(program(x, v, F + 1j * h * d).a.imag / h, wanted, 1e-12)


def test_pivots_are_measured_by_the_lighter_end():
    """Ends without mass do not count; without any it is the lightest joint."""
    links = {"link_masses": [0.0, 0.0, 1.0], "link_coms": [0.5] * 3}
    chain = make_chain([1.0] * 3, [0.5, 3.0, 0.0, 0.0], **links)
    assert [passes._scale(chain, i) for i in range(3)] == [0.5, 3.0, 0.5]


def _nearly_locked(seed):
    """Return lines and given angles that exclude each other, one line across a link.

    The line of joint 0 is within 1e-3 rad of square to link 0: its pivot is small, and
    makes the round-off of the ones before it large.
    """
    rng = np.random.default_rng(seed)
    n, lengths = 7, rng.uniform(0.3, 1.2, 6)
    theta, turn = rng.uniform(-2.8, 2.8, 6), rng.uniform(-np.pi, np.pi, 7)
    turn[0] = theta[0] + 10 ** rng.uniform(-5, -2.5) * rng.choice([-1, 1])
    constraints = {
        "kind": ["line"] * 5 + ["guided", "free"],
        "s": np.column_stack([np.cos(turn), np.sin(turn)]),
        "a_w": rng.normal(size=(n, 2)),
        "active": [0, 2, 4],
        "alpha_w": rng.normal(size=n),
    }
    chain = make_chain(lengths, rng.uniform(0.3, 2, n), constraints=constraints)
    x, v = from_angles(chain, (0, 0), (0, 0), theta, 0 * theta)
    return chain, x, v, rng.normal(size=(n, 2))


@pytest.mark.parametrize("engine", ["plain", "graph"])
def test_small_pivots_do_not_hide_those_that_vanish(engine):
    """What is not given up holds, however near a line is to square to its link.

    16 equations for 14 coordinates, of which joint 6 keeps one: three are given up.
    """
    for seed in range(60):
        chain, x, v, F = _nearly_locked(seed)
        got = dyn.solver("chain_recursion").build(chain, engine=engine)(x, v, F)
        assert got.dropped.sum() == 3, seed
        constraints, kept = chain.constraints, 1 - got.dropped
        r, _ = link_directions(chain, x)
        links = np.einsum("ij,ij->i", r, np.diff(got.a, axis=0)) * kept[:-1, 0]
        s, a_w = np.array(constraints.s[:5]), np.array(constraints.a_w)
        lines = np.einsum("ij,ij->i", s, got.a[:5] - a_w[:5])
        angles = (got.alpha - constraints.alpha_w) * constraints.active * kept[:, 1]
        size = max(1.0, np.abs(got.a).max(), np.abs(got.alpha).max())
        for off in (links, lines, angles, got.a[5] - a_w[5]):
            assert np.abs(off).max() <= 1e-6 * size, seed
