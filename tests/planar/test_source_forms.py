"""The source's own formulas of planar chains against a dense solver and its figures."""

from itertools import product

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.planar import from_angles, make_chain_like
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_plugins.planar._testing.chains import (
    angle_rows,
    dense_accelerations,
    forces,
    link_directions,
    mass_matrix,
    random_chain,
)
from dyn_plugins.planar._testing.references import REFERENCES, reference
from dyn_plugins.references import source_forms as cases
from dyn_plugins.references.source_forms import (
    ForceJacobianSource,
    Part1,
    Part2,
    TorqueResponseSource,
)

EXACT = TOLERANCES["exact"]
DENSE = 1e-8  # WAW-5.4: near-singular chains are among the random ones
KNOWN = [
    *[(name, Part1()) for name in ("REF-1", "REF-2", "REF-3", "REF-4")],
    *[(name, Part2()) for name in ("REF-1", "REF-2", "REF-5", "REF-7", "REF-8")],
]
LOOSE = {"kinds": ("free", "guided")}
TIGHT = {"kinds": ("free", "guided", "guided")}
PART1 = {"kinds": ("free", "line", "guided"), "active": 0.0}


def _near(got, wanted, relative=EXACT):
    assert scaled_error(got, wanted) <= relative, (got, wanted)


def _solve(solver, case, **modes):
    """Return the outputs by name."""
    names = [port.name for port in solver.signature.outputs]
    program = solver.build(case.chain, inputs=list(modes))
    return dict(zip(names, program(*case[1:4], *modes.values()), strict=True))


def _without(case, solved):
    """Return the dense answer without what a solver gave up."""
    e = (np.diff(case.v, axis=0) ** 2).sum(axis=1) / case.chain.lengths
    active = np.array(case.chain.constraints.active, float)
    active *= 1 - solved["dropped"][:, 1]
    active[0] *= solved["tau_w"][0] != 0
    e = np.where(solved["dropped"][:-1, 0] > 0, np.nan, e)
    return dense_accelerations(*case[:4], active=active, e=e)


def _rest(case, **changes):
    """Return a case at rest, its constraints changed."""
    chain = case.chain.with_constraints(**changes)
    v = np.zeros_like(case.x)
    return case._replace(chain=chain, v=v, F=forces(chain, case.x, v))


# Section K


@pytest.mark.parametrize(("name", "solver"), KNOWN, ids=lambda x: getattr(x, "name", x))
def test_reference_values(name, solver):
    case = reference(name)
    solved = _solve(solver, case)
    for key, wanted in case.answer.items():
        scale = np.abs(wanted).max() or 1.0
        assert np.abs(solved[key] - wanted).max() <= 1e-10 * scale, key
    assert solved["dropped"].sum() == (name == "REF-8")


@pytest.mark.parametrize("name", REFERENCES)
def test_reference_values_of_the_dense_solver(name):
    case = reference(name)
    dense = dense_accelerations(*case[:4])
    assert dense.compatible
    _near(dense.a, case.answer["a"], 1e-10)
    _near(dense.tau, case.answer["tau_w"], 1e-10)
    alpha = np.einsum("ijk,jk->i", angle_rows(case.chain, case.x), dense.a)
    _near(alpha, case.answer["alpha"], 1e-10)
    if not dense.independent:
        return  # forces are not unique
    links = dense.phi[:, None] * link_directions(case.chain, case.x)[0]
    turned = np.einsum("ijk,i->jk", angle_rows(case.chain, case.x), dense.tau)
    total = np.cumsum(mass_matrix(case.chain) @ dense.a - case.F - dense.support, 0)
    _near(-total[:-1], case.answer["F_d"][1:], 1e-10)
    _near(-total[:-1], links - np.cumsum(turned, 0)[:-1], 1e-10)


def test_printed_rule_loses_a_couple(monkeypatch):
    """E12: without the couple of tau the answer is the source's, and it is not ours."""

    def printed(c, i, after):
        step = cases._guided_inactive(c, i, after)
        return step._replace(dw=0 * step.dw, qw=0.0) if step.dropped[0] else step

    case = reference("REF-8")
    ours = _solve(Part2(), case)
    monkeypatch.setitem(cases._RULES, (True, False), printed)
    theirs = _solve(Part2(), case)
    _near(theirs["a"], [[2.1, 0], [0, 0], [0, -0.8], [0, 0]])
    assert theirs["tau_w"][1] == pytest.approx(1.9)
    assert ours["tau_w"][1] == pytest.approx(0.633333333333)
    assert np.abs(ours["a"] - theirs["a"]).max() > 1


# Against all equations at once


@pytest.mark.parametrize(
    ("solver", "choices"), [(Part1(), PART1), (Part2(), LOOSE)], ids=["part1", "part2"]
)
def test_agrees_with_the_dense_solver(solver, choices):
    """a, torques and reactions, wherever all constraints can hold."""
    count = 0
    for seed in range(360):
        case = random_chain(seed, **choices)
        dense = dense_accelerations(*case[:4])
        if not dense.compatible:
            continue
        count += 1
        solved = _solve(solver, case)
        _near(solved["a"], dense.a, DENSE)
        alpha = np.einsum("ijk,jk->i", angle_rows(case.chain, case.x), dense.a)
        _near(solved["alpha"], alpha, DENSE)
        if dense.independent:
            _near(solved["tau_w"], dense.tau, DENSE)
            _near(solved["reaction"], dense.support, DENSE)
    assert count >= 280


@pytest.mark.parametrize(
    ("solver", "choices"),
    [
        (Part1(), {"kinds": ("free", "line", "guided", "guided"), "active": 0.0}),
        (Part2(), TIGHT),
        (Part2(), {**TIGHT, "active": 0.8}),
    ],
    ids=["part1", "part2", "part2-active"],
)
def test_what_is_given_up_makes_the_rest_hold(solver, choices):
    """Constraints that exclude each other: all hold but the dropped ones."""
    dropped = 0
    for seed in range(150):
        case = random_chain(seed, **choices)
        solved = _solve(solver, case)
        dense = _without(case, solved)
        assert dense.compatible and dense.independent
        for key, wanted in (
            ("a", dense.a),
            ("tau_w", dense.tau),
            ("reaction", dense.support),
        ):
            _near(solved[key], wanted, DENSE)
        dropped += solved["dropped"].sum()
    assert dropped > 40


def test_a_link_across_a_line_is_given_up():
    """Joint 1 may not go along its link to a fixed joint: WAW-6.4 without a push."""
    case = random_chain(3, n=4, kinds=("free",), active=0.0)
    r, _ = link_directions(case.chain, case.x)
    kind, s = {1: "line", 2: "fixed"}, {1: tuple(r[1])}
    case = case._replace(chain=case.chain.with_constraints(kind=kind, s=s))
    solved = _solve(Part1(), case)
    assert solved["dropped"].tolist() == [[0, 0], [1, 0], [0, 0], [0, 0]]
    _near(solved["a"], _without(case, solved).a, 1e-10)


@pytest.mark.parametrize(
    ("kind", "next_kind", "active", "next_active"),
    [*product(("free", "guided"), ("free", "guided"), (False, True), (False, True))],
)
def test_sixteen_cases(kind, next_kind, active, next_active):
    """Joint 2 and the next one, each free or guided, active or not (WAW-11.6)."""
    for seed in range(5):
        case = random_chain(seed, n=6, kinds=("free",), active=0.0)
        rng = np.random.default_rng(seed)
        a_w = rng.normal(size=(6, 2))
        (r, _), e = link_directions(case.chain, case.x), np.diff(case.v, axis=0)[2]
        # Two guided neighbours can keep their link only so:
        a_w[3] += r[2] * (r[2] @ (a_w[2] - a_w[3]) - e @ e / case.chain.lengths[2])
        chain = case.chain.with_constraints(
            kind={2: kind, 3: next_kind},
            a_w=a_w,
            active=[i for i, on in ((2, active), (3, next_active)) if on],
            alpha_w=rng.normal(size=6),
        )
        case = case._replace(chain=chain)
        dense, solved = dense_accelerations(*case[:4]), _solve(Part2(), case)
        assert dense.compatible
        _near(solved["a"], dense.a, 1e-10)
        _near(solved["tau_w"], dense.tau, 1e-10)
        both = kind == next_kind == "guided"
        assert dense.independent != both
        assert solved["dropped"].sum() == both
        assert solved["dropped"][2, 0] == both


@pytest.mark.parametrize(
    "guided", [(1, 2, 3), (1, 3)], ids=["three in a row", "one between"]
)
def test_singular_rules(guided):
    """The known causes of WAW-11.2, when what is given is possible and when not."""
    for seed in range(6):
        case = random_chain(seed, n=5, kinds=("free",), active=0.0)
        rng = np.random.default_rng(seed)
        chain = case.chain.with_constraints(
            kind=dict.fromkeys(guided, "guided"), a_w=rng.normal(size=(5, 2))
        )
        case = case._replace(chain=chain)
        a = _solve(Part2(), case)["a"]
        alpha = angle_rows(chain, case.x)[2].ravel() @ a.ravel()
        for value in (alpha, alpha + 1):
            modes = {"active": [0, 0, 1, 0, 0], "alpha_w": [0, 0, value, 0, 0]}
            solved = _solve(Part2(), case, **modes)
            if 2 in guided:
                assert solved["dropped"].tolist() == [
                    [0, 0],
                    [1, 0],
                    [1, 1],
                    [0, 0],
                    [0, 0],
                ]
            else:
                lost = solved["dropped"]
                assert lost.sum() == lost[1, 0] + lost[2, 1] == 1
                fits = dense_accelerations(*case[:4], **modes)
                assert fits.compatible == (value == alpha)
                if fits.compatible:
                    _near(solved["a"], fits.a, 1e-10)
            e = (np.diff(case.v, axis=0) ** 2).sum(axis=1) / chain.lengths
            e[solved["dropped"][:-1, 0] > 0] = np.nan
            modes["active"] = [0, 0, 1 - solved["dropped"][2, 1], 0, 0]
            dense = dense_accelerations(*case[:4], **modes, e=e)
            assert dense.compatible
            _near(solved["a"], dense.a, 1e-10)


# Laws


def test_identities_of_a_solution():
    """Links, momentum, angular momentum, supports and power (WAW-5.4)."""
    count = 0
    for seed in range(60):
        case = random_chain(seed, active=0.0, still=True)
        solved = _solve(Part1(), case)
        if solved["dropped"].any():
            continue
        count += 1
        chain, a, m = case.chain, solved["a"], np.array(case.chain.masses)
        r, _ = link_directions(chain, case.x)
        e = (np.diff(case.v, axis=0) ** 2).sum(axis=1) / chain.lengths
        _near(-(r * np.diff(a, axis=0)).sum(axis=1), e, 1e-11)
        total = case.F + solved["reaction"]
        _near(m @ a, total.sum(axis=0), 1e-11)
        _near(_moment(case.x, m[:, None] * a), _moment(case.x, total), 1e-11)
        _near(m @ (case.v * a).sum(axis=1), (case.F * case.v).sum(), 1e-11)
        for i, kind in enumerate(chain.constraints.kind):
            s, R = np.array(chain.constraints.s[i]), solved["reaction"][i]
            if kind == 0:
                _near(R, [0, 0], 1e-11)
            elif kind == 1:
                onward = solved["F_d"][i + 1] if i + 1 < chain.n else np.zeros(2)
                _near(R, s * (s @ (onward - case.F[i] - solved["F_d"][i])), 1e-11)
                _near(s @ a[i], 0.0, 1e-11)
    assert count > 40


def test_free_chain_keeps_momentum():
    """Without supports the forces alone move the whole."""
    for seed in range(20):
        case = random_chain(seed, kinds=("free",), active=0.6)
        solved, m = _solve(Part2(), case), np.array(case.chain.masses)
        _near(m @ solved["a"], case.F.sum(axis=0))
        moved = _moment(case.x, m[:, None] * solved["a"])
        _near(moved, _moment(case.x, case.F), 1e-11)


def test_closed_through_the_ground():
    """Both ends held, by pins or by lines, in the same pass (WAW-6.5)."""
    for seed, kind in product(range(10), ("line", "fixed")):
        case = random_chain(seed, n=5, kinds=("free",), active=0.0)
        case = _rest(case, kind={0: kind, 4: kind}, s={0: (0, 1), 4: (0.6, 0.8)})
        _near(_solve(Part1(), case)["a"], dense_accelerations(*case[:4]).a, 1e-10)


def test_both_parts_agree_without_active_joints():
    for seed in range(60):
        case = random_chain(seed, **{**TIGHT, "active": 0.0})
        left, right = _solve(Part1(), case), _solve(Part2(), case)
        for key in left:
            _near(left[key], right[key], 1e-9)


def test_given_torques_are_ordinary_torques():
    """tau^w put on as forces moves the chain just so (WAW-9)."""
    count = 0
    for seed in range(60):
        case = random_chain(seed, **LOOSE, active=0.5)
        solved = _solve(Part2(), case)
        if solved["dropped"].any():
            continue
        count += 1
        on = np.array(case.chain.constraints.active)
        on[0] &= solved["tau_w"][0] != 0  # no output says that angle 0 is given up
        wanted = np.array(case.chain.constraints.alpha_w)[on]
        _near(solved["alpha"][on], wanted, 1e-9)
        assert not solved["tau_w"][~on].any()
        rows = angle_rows(case.chain, case.x)
        F = case.F + np.einsum("ijk,i->jk", rows, solved["tau_w"])
        loose = _solve(Part2(), case._replace(F=F), active=np.zeros(case.chain.n))
        _near(loose["a"], solved["a"], DENSE)
    assert count > 40


def test_locked_chain_is_a_rigid_body():
    """Newton and Euler of the points, moving on as one (WAW-9)."""
    for seed in range(20):
        case = random_chain(seed, n=6, kinds=("free",), active=0.0)
        chain = case.chain.with_constraints(active=range(1, 5))
        m, x, w = np.array(chain.masses), case.x, 0.8
        v = w * np.column_stack([-x[:, 1], x[:, 0]])
        centre = m @ x / m.sum()
        from_centre = x - centre
        turn = _moment(from_centre, case.F) / (m @ (from_centre**2).sum(axis=1))
        a = (
            turn * np.column_stack([-from_centre[:, 1], from_centre[:, 0]])
            - w * w * from_centre
        )
        solved = _solve(Part2(), case._replace(chain=chain, v=v))
        _near(solved["a"], a + case.F.sum(axis=0) / m.sum(), 1e-10)


def test_responses_have_their_structure():
    """A symmetric and positive, p = b^w, q^w >= 0, zero for guided (WAW-2.2, 9.3)."""
    for seed in range(80):
        case = random_chain(seed, **LOOSE, active=0.5)
        for step in cases.part2(cases.take(*case[:4])):
            scale = max(1.0, np.abs(step.A).max(), abs(step.qw), np.abs(step.bw).max())
            assert np.abs(step.A - step.A.T).max() <= 1e-9 * scale
            assert np.linalg.eigvalsh(step.A + step.A.T).min() >= -1e-9 * scale
            assert np.abs(step.p - step.bw).max() <= 1e-9 * scale
            assert step.qw >= -1e-9 * scale
        case = random_chain(seed, **PART1)
        least = min(case.chain.masses)
        for step in cases.part1(cases.take(*case[:4])):
            assert np.abs(step.A - step.A.T).max() <= EXACT / least
            assert np.linalg.eigvalsh(step.A).min() >= -1e-14 / least


# Rigid parts


@pytest.mark.parametrize("active", [(2, 3, 4), (1, 2, 3, 4)])
def test_rigid_end(active):
    """Two guided joints and active ones before make a rigid end (WAW-12.6)."""
    for seed in range(5):
        case = random_chain(seed, n=6, kinds=("free",), active=0.0)
        free = _rest(case, kind={4: "fixed", 5: "fixed"}, active=(2, 3, 4))
        solved = _solve(Part2(), free)
        steps = cases.part2(cases.take(*free[:4]))
        assert max(np.abs(step.A).max() for step in steps[1:4]) < 1e-14
        assert all(np.isfinite(part).all() for part in solved.values())
        kind = dict.fromkeys((0, 4, 5), "fixed")
        solved = _solve(Part2(), _rest(case, kind=kind, active=active))
        assert np.abs(solved["a"]).max() <= 1e-14
        lost = np.zeros((6, 2))
        lost[4, 0] = lost[0, 0] = 1
        lost[1, 1] = 1 in active
        assert solved["dropped"].tolist() == lost.tolist()


def test_half_rigid_end():
    """A rigid pendulum about a guided joint, held by another (WAW-12.7)."""
    for seed in range(10):
        case = random_chain(seed, n=5, kinds=("free",), active=0.0)
        case = _rest(case, kind={1: "fixed", 4: "fixed"}, active=(2, 3))
        steps = cases.part2(cases.take(*case[:4]))
        for i, rank in ((0, 1), (1, 0), (2, 1), (3, 1), (4, 0)):
            sizes = np.linalg.svd(steps[i].A, compute_uv=False)
            # Joint 0 hangs on a fixed one by a link: it can only turn.
            assert (sizes > 1e-9).sum() == rank, i
        solved = _solve(Part2(), case)
        assert solved["dropped"].sum() == 1
        assert np.abs(solved["a"][1:]).max() <= 1e-12
        _near(solved["a"], _without(case, solved).a, 1e-10)


# Forces for given accelerations


def test_force_jacobian_is_unit_forces():
    """Source's way back = differences of the accelerations; reciprocal (WAW-8.1)."""
    jacobian = ForceJacobianSource()
    for seed in range(60):
        case = random_chain(seed, **PART1)
        J, n = jacobian.build(case.chain)(case.x), case.chain.n
        program, wanted = Part1().build(case.chain), np.zeros((n, n, 2, 2))
        still, zero = np.zeros((n, 2)), np.zeros((n, 2))
        start = program(case.x, still, zero)[0]
        for j, k in product(range(n), range(2)):
            unit = np.zeros((n, 2))
            unit[j, k] = 1
            wanted[:, j, :, k] = program(case.x, still, unit)[0] - start
        _near(J, wanted, 1e-12)
        _near(J, np.transpose(J, (1, 0, 3, 2)), 1e-12)


def test_torque_response():
    """S = rows J rows.T over all joints, symmetric, positive (WAW-8.2)."""
    for seed in range(60):
        case = random_chain(seed, **PART1)
        rows = angle_rows(case.chain, case.x)
        J = ForceJacobianSource().build(case.chain)(case.x)
        S = TorqueResponseSource().build(case.chain)(case.x)
        _near(S, np.einsum("ipa,pqab,jqb->ij", rows, J, rows), 1e-11)
        _near(S, S.T, 1e-11)
        assert np.linalg.eigvalsh(S + S.T).min() >= -1e-10 * max(1, np.abs(S).max())
        assert not S[-1].any()


def _urdf(chain):
    """Return the URDF of a chain whose joint 0 is fixed; (x, y) is (X, Z) there."""
    parts = ["<robot name='chain'><link name='world'/>"]
    starts, parent = (0.0, *chain.lengths), "world"
    for i, length in enumerate(chain.lengths):
        rod = chain.link_coms[i], chain.link_masses[i], chain.link_inertias[i]
        parts += [
            f"<joint name='j{i}' type='continuous'><parent link='{parent}'/>",
            f"<child link='link{i}'/><origin xyz='{starts[i]!r} 0 0'/>",
            f"<axis xyz='0 -1 0'/></joint><link name='link{i}'>",
            f"{_inertial(*rod) if rod[1] else ''}</link>",
            f"<joint name='k{i}' type='fixed'><parent link='link{i}'/>",
            f"<child link='point{i}'/></joint><link name='point{i}'>",
            f"{_inertial(length, chain.masses[i + 1], 1e-14)}</link>",
        ]
        parent = f"link{i}"
    return "".join([*parts, "</robot>"])


def _inertial(centre, m, I):
    return (
        f"<inertial><origin xyz='{centre!r} 0 0'/><mass value='{m!r}'/><inertia ixx='{I}'"
        f" iyy='{I}' izz='{I}' ixy='0' ixz='0' iyz='0'/></inertial>"
    )


@pytest.mark.parametrize("massive", [0.0, 0.7])
def test_three_dimensional_engine(massive):
    """S is the inverse of CRBA's H, and ABA gives the same angles (WAW-8.2, 15.2)."""
    for seed in range(6):
        n = 3 + seed % 4
        chain = random_chain(seed, n=n, active=0.0, massive=massive).chain
        parts = {"kind": {0: "fixed"}}
        chain = make_chain_like(chain, constraints=parts, k_omega=0, k_v=0)
        robot = dyn.load_urdf(_urdf(chain))
        q, qd, tau = np.random.default_rng(seed).normal(size=(3, n - 1))
        x, v = from_angles(chain, (0.3, -0.2), (0, 0), q, qd)
        F = forces(chain, x, v, [*tau, 0.0])
        qdd = dyn.solver("aba").build(robot, engine="plain")(q, qd, tau)
        a = dense_accelerations(chain, x, v, F).a
        alpha = np.einsum("ijk,jk->i", angle_rows(chain, x), a)
        _near(alpha[:-1], qdd, 1e-10)
        if not massive:
            _near(Part1().build(chain)(x, v, F)[3], alpha, 1e-10)
            S = TorqueResponseSource().build(chain)(x)[:-1, :-1]
            H = dyn.solver("crba").build(robot, engine="plain")(q)
            _near(S @ H, np.eye(n - 1), 1e-10)


# The doors


def test_modes_as_inputs_are_the_chains_own():
    """What joints do may come with the call, and as a batch."""
    case = random_chain(3, n=6, **TIGHT)
    constraints = case.chain.constraints
    fields = ("kind", "s", "a_w", "active", "alpha_w")
    modes = {name: np.array(getattr(constraints, name), float) for name in fields}
    bare = case._replace(chain=case.chain.with_constraints())
    wanted = _solve(Part2(), case)
    for key, value in _solve(Part2(), bare, **modes).items():
        _near(value, wanted[key])
    rows = [np.stack([part] * 3) for part in case[1:4]]
    assert Part2().build(case.chain)(*rows)[0].shape == (3, 6, 2)


def test_refusals_name_the_joint():
    """Part I knows no active joints, Part II no lines, neither heavy links."""
    case = random_chain(1, n=4, kinds=("free",), active=0.0)
    on = case._replace(chain=case.chain.with_constraints(active=(2,)))
    line = case.chain.with_constraints(kind={1: "line"}, s={1: (0, 1)})
    heavy = make_chain_like(case.chain, link_masses=(0, 0.5, 0))
    for solver in (Part1(), ForceJacobianSource(), TorqueResponseSource()):
        inputs = on[1:4] if solver.name == "chain_part1" else on[1:2]
        with pytest.raises(dyn.UnsupportedError, match="joint 2.*active"):
            solver.build(on.chain)(*inputs)
    with pytest.raises(dyn.UnsupportedError, match="joint 1.*line"):
        _solve(Part2(), case._replace(chain=line))
    for solver in (Part1(), Part2()):
        with pytest.raises(dyn.UnsupportedError, match="link 1 from joint .* has mass"):
            _solve(solver, case._replace(chain=heavy))
        with pytest.raises(dyn.UnsupportedError, match="joint 3 is active"):
            _solve(solver, case, active=[0, 0, 0, 1])
        x = case.x.copy()
        x[2] = x[1]
        with pytest.raises(dyn.SingularError, match="joints 1 and 2"):
            _solve(solver, case._replace(x=x))


@pytest.mark.parametrize("n", [1, 2, 100, pytest.param(400, marks=pytest.mark.full)])
def test_any_number_of_joints(n):
    """The sources' own forms agree with a dense solution (400 joints with --full)."""
    case = random_chain(5, n=n, kinds=("free",), active=0.0)
    wanted = dense_accelerations(*case[:4]).a
    for solver in (Part1(), Part2()):
        _near(_solve(solver, case)["a"], wanted, 1e-9)


def _moment(x, f):
    """Return the moment of forces about the origin."""
    return (x[:, 0] * f[:, 1] - x[:, 1] * f[:, 0]).sum()
