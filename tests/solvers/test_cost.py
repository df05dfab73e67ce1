"""Costs: what is counted, how it grows, and what the project's own texts take."""

import math
from dataclasses import replace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cli
from dyn_core.authoring import Matrix, Motion, Vector, cross, cross3
from dyn_core.commands.count import operations
from dyn_core.engines.plain import Counting
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.model.joints import KINDS, Joint, Revolute
from dyn_core.numbers.scalar import cos, sin, sqrt
from dyn_core.solving.operation_counts import (
    Folding,
    count,
    counting,
    fit_order,
    is_order,
    polynomial_degree,
)
from dyn_core.spatial import MotionSubspace
from dyn_core.spatial.linear import Factored
from dyn_core.testing.case import Case
from dyn_core.testing.models import chain, random_inertia, random_model
from dyn_plugins.references import rnea_vectors as vectors

HOW = ("literal", "folded")


def _pair(counts):
    return counts["mul"], counts["add"]


# -- what is counted (RBD5-1.1) ----------------------------------------------------------


def test_small_products():
    """A cross product 6m+3a, a 3x3 product 9m+6a, v x m 18m+12a; all trees of operations."""
    draw = np.random.default_rng(0).normal(size=12).tolist()
    vectors3 = count(lambda x: cross3(Vector(x[:3]), Vector(x[3:])), draw[:6])
    assert dict(vectors3) == {"mul": 6, "add": 3}
    assert vectors3.total() == 9

    def turned(x):
        return Matrix([x[:3], x[3:6], x[6:9]]) @ Vector(x[9:])

    assert dict(count(turned, draw)) == {"mul": 9, "add": 6}
    motions = count(lambda x: cross(Motion.of(x[:6]), Motion.of(x[6:])), draw)
    assert dict(motions) == {"mul": 18, "add": 12}


def test_kinds_are_booked_apart():
    """Divisions, roots and sines are their own kinds; signs and comparisons are free."""

    def algorithm(x):
        a, b = x
        assert a < b
        return sqrt(-a / b) + sin(a) * cos(b) - abs(a)

    counts = count(algorithm, [-1.0, 2.0])
    assert dict(counts) == {"div": 1, "sqrt": 1, "trig": 2, "mul": 1, "add": 2}
    assert counts.total() == 7


def test_structural_zeros_and_ones_are_free():
    """Folded: plain zeros and ones cost nothing; a zero that a state brings does."""

    def algorithm(x):
        (a,) = x
        kept = [a + 0.0, 0.0 + a, a - 0.0, a * 1.0, 1.0 * a, a / 1.0]
        gone = [a * 0.0, 0.0 / a]
        turned = [0.0 - a, a * -1.0]
        assert all(y is a for y in kept) or not isinstance(a, Folding)
        return kept, gone, turned, a * 2.0, a * (a - a)

    assert count(algorithm, [3.0], "folded") == {"mul": 2, "add": 1}
    assert count(algorithm, [3.0]) == {"add": 5, "mul": 6, "div": 2}
    assert count(algorithm, [0.0], "folded") == {"mul": 2, "add": 1}
    for how, kind in (("literal", Counting), ("folded", Folding)):
        rows = []
        count(lambda x, rows=rows: rows.append(algorithm(x)), [3.0], how)
        (kept, gone, turned, *rest) = rows[0]
        values = [getattr(y, "value", y) for y in (*kept, *gone, *turned, *rest)]
        assert values == [3.0] * 6 + [0.0] * 2 + [-3.0] * 2 + [6.0, 0.0], kind


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    "name",
    dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True) + ["aba", "crba"],
)
def test_counting_changes_no_bit(shipped, name, how):
    """The text gives the same numbers, counted or not."""
    case = Case(dyn.solver(name), shipped["arm7"], "plain", np.random.default_rng(1))
    program = case.program()
    numbers = np.concatenate([x.ravel() for x in case.arguments(program)]).tolist()
    kind = {"literal": Counting, "folded": Folding}[how]
    counted = program.function([kind(x) for x in numbers])
    assert [getattr(x, "value", x) for x in counted] == program.function(numbers)


def test_counters_reset_and_nest():
    """Each count starts at zero; an outer block counts what an inner one did."""
    two = [1.0, 2.0]
    assert count(lambda x: x[0] * x[1], two) == count(lambda x: x[0] * x[1], two)
    before = Counting.counter
    with counting() as outer:
        a = Counting(2.0)
        a = a * a
        with counting() as inner:
            a + a
        assert inner == {"add": 1}
        a * a
        assert count(lambda x: x[0] / x[1], two) == {"div": 1}
    assert outer == {"mul": 2, "add": 1, "div": 1}
    assert Counting.counter is before
    with pytest.raises(ZeroDivisionError), counting() as failed:
        a * a
        raise ZeroDivisionError
    assert failed == {"mul": 1}
    assert Counting.counter is before


def test_what_cannot_be_counted_is_refused():
    """A Program of a NumpySolver, and an unknown way of counting."""

    class Other(dyn.authoring.NumpySolver):
        name, signature = "other", dyn.problems.GRAVITY_FORCE

        def solve(self, model, *inputs):
            return np.zeros(model.nv)

    program = Other().build(chain(2))
    with pytest.raises(dyn.UnsupportedError, match="for a TracedSolver only"):
        count(program, [0.0, 0.0])
    with pytest.raises(dyn.UnsupportedError, match="valid: literal, folded"):
        count(lambda x: x, [1.0], "roughly")


# -- how costs grow (RBD5-1.2) -----------------------------------------------------------


def _example(n):
    return 3 * n * n + 50 * n + 7


def test_the_quadratic_of_the_book():
    """3n² + 50n + 7 is of order n², two-sided from 51 on; of order n and n³ it is not."""
    sizes = [*range(1, 200), 1000, 10**4, 10**5, 10**6]
    costs = {n: _example(n) for n in sizes}
    assert polynomial_degree(sizes, list(costs.values())) == 2
    assert fit_order(sizes, list(costs.values())) == pytest.approx(2, abs=1e-3)
    assert is_order(costs, lambda n: n * n, 3, 4, 50)
    assert not is_order(costs, lambda n: n * n, 3, 4, 49)
    assert not is_order(costs, lambda n: n, 1e-3, 1e6, 50)
    assert not is_order(costs, lambda n: n**3, 1e-3, 1e3, 50)


@pytest.mark.parametrize("degree", range(5))
def test_degrees_are_exact(degree):
    """Differences find the degree at uneven sizes; slopes come near it."""
    sizes = [1, 2, 4, 7, 11, 16, 40]
    costs = [5 * n**degree + 10**9 * (degree == 0) for n in sizes]
    assert polynomial_degree(sizes, costs) == degree
    assert fit_order(sizes, costs) == pytest.approx(degree, abs=1e-6)
    least = max(3, degree + 2)
    assert polynomial_degree(sizes[:least], costs[:least]) == degree


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_too_few_points_show_no_degree(degree):
    """As many points as a polynomial has numbers prove nothing."""
    sizes = list(range(1, degree + 2))
    assert polynomial_degree(sizes, [n**degree for n in sizes]) is None


def test_a_cost_that_tends_to_a_constant_is_of_order_one():
    """7 - 3/n lies between 4 and 7."""
    costs = {n: 7 - 3 / n for n in range(1, 100)}
    assert is_order(costs, lambda n: 1, 4, 7, 0)
    assert fit_order(list(costs), list(costs.values())) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("sizes", "costs", "message"),
    [
        ([1, 2], [1, 2], "3 sizes or more, got 2"),
        ([1, 2, 3], [1, 0, 2], "must be positive"),
        ([0, 1, 2], [1, 1, 2], "must be positive"),
        ([1, -2, 3], [1, 1, 2], "must be positive"),
        ([1, 2, 2], [1, 1, 2], "ascending"),
        ([1, 2, 3], [1, 2], "do not match"),
        ([1, 2, math.nan], [1, 2, 3], "must be positive"),
        ([1, 2, math.inf], [1, 2, 3], "must be positive and finite"),
        ([1, 2, 3], [1, 2, math.inf], "must be positive and finite"),
    ],
)
def test_bad_sizes_are_a_value_error(sizes, costs, message):
    """Too few sizes, and what is not positive or not finite, have no order."""
    with pytest.raises(ValueError, match=message):
        fit_order(sizes, costs)
    with pytest.raises(ValueError, match=message):
        polynomial_degree(sizes, costs)
    if len(sizes) == len(costs) == len(set(sizes)):
        with pytest.raises(ValueError, match=message):
            is_order(dict(zip(sizes, costs, strict=True)), lambda n: n, 1, 2, 0)


def test_bad_constants_are_a_value_error():
    """Constants must be positive and in order; a size must lie above n_min."""
    costs = {1: 1, 2: 2, 3: 3}
    for low, high in ((0, 1), (2, 1), (-1, 1)):
        with pytest.raises(ValueError, match="0 < C_min <= C_max"):
            is_order(costs, lambda n: n, low, high, 0)
    with pytest.raises(ValueError, match="above n_min = 3"):
        is_order(costs, lambda n: n, 1, 1, 3)
    with pytest.raises(ValueError, match="whole"):
        polynomial_degree([1, 2, 3], [1.5, 2, 3])


# -- measures of size (RBD5-1.3) ---------------------------------------------------------


def _inversion(n):
    """Count the inversion of a symmetric n x n matrix."""

    def algorithm(x):
        A = [[x[0] + 1.0 if i == j else x[1] for j in range(n)] for i in range(n)]
        return Factored(Matrix(A), [0.0] * n, ["row"] * n).inverse()

    return count(algorithm, [float(n), 0.5]).total()


def test_an_order_in_another_measure():
    """Inverting is O(n³) in the dimension, O(N^1.5) in the entries N = n²."""
    sizes = [2, 3, 4, 5, 6, 7]
    costs = [_inversion(n) for n in sizes]
    assert polynomial_degree(sizes, costs) == 3
    sizes = [16, 24, 32]
    costs = [_inversion(n) for n in sizes]
    order = fit_order(sizes, costs)
    assert order == pytest.approx(3, abs=0.1)
    assert fit_order([n * n for n in sizes], costs) == pytest.approx(order / 2)


@pytest.mark.parametrize("seed", range(8))
def test_bodies_and_freedoms(seed):
    """N_B <= n <= 6 N_B where no joint follows another or is fixed."""
    model = random_model(seed, size=5, mimic=0.0)
    assert model.nb <= model.nv <= 6 * model.nb


def test_fixed_joints_are_accepted(shipped):
    """With all joints fixed n = 0: the left inequality has no meaning, the model has."""
    still = shipped["two_link"].lock(
        dict.fromkeys(shipped["two_link"].joint_names, 0.0)
    )
    assert still.nv == 0
    assert dyn.solver("rnea").build(still)([], [], []).shape == (0,)


class Universal(Joint):
    """A turn about x, then about y: two freedoms, S depends on q."""

    kind, nq, nv = "universal_of_test", 2, 2
    turns = (Revolute((1.0, 0.0, 0.0)), Revolute((0.0, 1.0, 0.0)))

    def X(self, q):
        """Turn twice."""
        return self.turns[1].X(q[1:]) @ self.turns[0].X(q[:1])

    def S(self, q):
        """Axes seen from the body."""
        first = self.turns[1].X(q[1:]) @ self.turns[0].S(q[:1])[0]
        return MotionSubspace([first, self.turns[1].S(q[1:])[0]])

    def cJ(self, q, qd):
        """The first axis turns."""
        rate = Motion((-sin(q[1]), 0.0, cos(q[1])), (0.0,) * 3)
        return rate * (qd[0] * qd[1])

    def neutral(self):
        """Both angles zero."""
        return (0.0, 0.0)

    def random(self, rng):
        """Both angles anywhere."""
        return tuple(rng.uniform(-3, 3, 2).tolist())


def _alike(kind, n):
    """Make a chain of n alike joints in general position."""
    inertia = random_inertia(np.random.default_rng(0))
    links = [LinkSpec(f"b{k}", inertia) for k in range(n + 1)]
    place = (0.3, -0.2, 0.4), (0.5, -0.9, 1.3)
    joints = [
        JointSpec(f"j{k}", kind, f"b{k - 1}", f"b{k}", *place, (0.36, 0.48, 0.8))
        for k in range(1, n + 1)
    ]
    return assemble(Build(Description(kind, tuple(links), tuple(joints))))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["rnea", "rnea_spatial", "rnea_common_frame"])
@pytest.mark.parametrize(
    ("kind", "freedoms"),
    [("revolute", 1), ("prismatic", 1), ("universal_of_test", 2), ("planar", 3),
     ("spherical", 3), ("floating", 6)],
)  # fmt: skip
def test_inverse_dynamics_is_affine_in_the_bodies(
    monkeypatch, kind, freedoms, name, how
):
    """Each joint of a chain costs the same, whatever its freedoms; O(N_B) = O(n)."""
    monkeypatch.setitem(KINDS, Universal.kind, Universal)
    bodies = (2, 3, 4, 6)
    counts = [operations(dyn.solver(name), _alike(kind, n), how) for n in bodies]
    assert _alike(kind, 2).nv == 2 * freedoms
    for op in ("mul", "add"):
        assert polynomial_degree(bodies, [x[op] for x in counts]) == 1, op
    everything = [x.total() for x in counts]
    assert polynomial_degree([freedoms * n for n in bodies], everything) == 1


# -- the closed form and the recursion (RBD5-2.4) ----------------------------------------


def test_the_closed_form_grows_with_the_fourth_power():
    """Fourth differences are constant, fifth zero; the ratio to rnea grows like n³."""
    closed, recursive = dyn.solver("closed_form"), dyn.solver("rnea")
    sizes = range(1, 9)
    totals = [operations(closed, chain(n), "literal") for n in sizes]
    for op in ("mul", "add"):
        counts = [x[op] for x in totals]
        assert set(np.diff(counts, n=5)) == {0}, op
        assert len(set(np.diff(counts, n=4))) == 1
        assert np.diff(counts, n=4)[0] > 0
        assert polynomial_degree(sizes, counts) == 4
    ratio = {
        n: totals[n - 1].total() / operations(recursive, chain(n), "literal").total()
        for n in (2, 4, 6, 8)
    }
    assert ratio[6] > 30
    assert ratio[8] > ratio[6] * 1.8
    assert [_pair(totals[n - 1]) for n in (1, 2, 3, 6, 8)] == EXPECTED_COUNTS[
        "closed_form"
    ]


# -- 3-D vectors and the spatial form (RBD5-4.3) -----------------------------------------

# This project's own counts on chains of revolute joints with axes, offsets and inertias
# in general position: (mul, add) = n (first) + (second), folded from n = 2 on. Joint
# transforms are included. The closed form, literal, at n = 1, 2, 3, 6, 8.
EXPECTED_COUNTS = {
    "closed_form": [
        (358, 325),
        (1480, 1247),
        (4389, 3603),
        (41928, 33855),
        (117559, 94853),
    ],
    ("without v", "literal"): ((181, 154), (-42, -39)),
    ("with v", "literal"): ((196, 166), (-48, -45)),
    ("spatial", "literal"): ((220, 199), (-12, -12)),
    ("without v", "folded"): ((177, 143), (-72, -69)),
    ("with v", "folded"): ((192, 155), (-87, -84)),
    ("spatial", "folded"): ((201, 167), (-66, -72)),
}


def _with_v(model, q, qd, qdd, f_ext):
    """Run the 3-D text with the velocities that nothing needs."""
    motion = vectors.vector_motion(model, q, qd, qdd)
    vectors.linear_velocities(model, motion, qd)
    _, n = vectors.vector_forces(model, motion, f_ext)
    axes = zip(motion.z[1:], n[1:], strict=True)
    rotors = zip(model.armature[1:], qdd[1:], strict=True)
    push = [z @ n_i for z, n_i in axes]
    return [
        None,
        *(Vector([x + I[0] * a[0]]) for x, (I, a) in zip(push, rotors, strict=True)),
    ]


FORMS = {
    "without v": dyn.solver("rnea_vectors"),
    "with v": dyn.authoring.TracedSolver(
        "with_v", dyn.problems.INVERSE_DYNAMICS, _with_v
    ),
    "spatial": dyn.solver("rnea_spatial"),
}


@pytest.mark.parametrize("how", HOW)
def test_vectors_cost_less_than_the_spatial_form(how):
    """3-D without v < 3-D with v < spatial; each affine in the number of joints."""
    sizes = (2, 3, 4, 5, 8)
    by_form = {
        form: [operations(solver, chain(n), how) for n in sizes]
        for form, solver in FORMS.items()
    }
    rows = zip(by_form["without v"], by_form["with v"], by_form["spatial"], strict=True)
    for without, including, spatial in rows:
        for op in ("mul", "add"):
            assert without[op] < including[op] < spatial[op], (op, how)
    for form, counts in by_form.items():
        pairs = np.array([_pair(x) for x in counts])
        step, start = np.array(EXPECTED_COUNTS[form, how])
        np.testing.assert_array_equal(pairs, np.outer(sizes, step) + start, form)


# -- parts (RBD5-3.6) and what is left out -----------------------------------------------


@pytest.mark.parametrize("robot", ["arm7", "quadruped", "every_joint"])
def test_parts_cost_less_than_the_whole(shipped, robot):
    """Each dedicated text takes fewer operations than the general ones."""
    model = shipped[robot]
    cost = {
        name: operations(dyn.solver(name), model).total()
        for name in ("rnea", "rnea_spatial", "bias", "coriolis", "inertial", "gravity")
    }
    for part in ("coriolis", "inertial", "gravity"):
        assert cost[part] < cost["rnea"] < cost["rnea_spatial"], cost
    assert cost["coriolis"] < cost["bias"]
    assert cost["gravity"] < cost["inertial"]


@pytest.mark.parametrize(
    "name", dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True)
)
def test_forces_from_outside_cost_nothing_unless_asked_for(name):
    """Without f_ext neither they nor their transforms to the bodies are computed."""
    model = chain(4)
    draw = np.random.default_rng(0)
    total = {}
    for inputs, frame in (((), "body"), (("f_ext",), "body"), (("f_ext",), "base")):
        program = dyn.solver(name).build(
            model, engine="plain", inputs=inputs, f_ext_frame=frame
        )
        width = sum(port.size for port in program.inputs)
        counts = count(program, draw.normal(size=width).tolist(), "folded")
        total[len(inputs), frame] = counts.total()
    assert total[0, "body"] < total[1, "body"] < total[1, "base"]


# -- the command -------------------------------------------------------------------------


def test_dyn_count_prints_operations_by_kind(capsys):
    """Folded unless --literal; by kind and in all."""
    model = dyn.load_urdf(dyn.robots.path("two_link"))
    for flags, how in (((), "folded"), (("--literal",), "literal")):
        assert cli.main(["count", "rnea", "two_link", *flags]) == 0
        lines = capsys.readouterr().out.splitlines()
        counts = operations(dyn.solver("rnea"), model, how)
        assert lines[1].split() == ["mul", "add", "div", "sqrt", "trig", "total"]
        kinds = [counts[op] for op in lines[1].split()[:-1]]
        assert lines[2].split() == [str(x) for x in (*kinds, sum(kinds))]
        assert counts["trig"] == 4


def test_dyn_count_shows_the_order(capsys):
    """A table over chains, the fitted exponent, the exact degree; progress on stderr."""
    assert cli.main(["count", "rnea_spatial", "two_link", "--literal", "--order"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    rows = {
        int(x.split()[0]): x.split()
        for x in lines
        if x.split()[0] in ("2", "4", "8", "16")
    }
    for n, row in rows.items():
        counts = operations(dyn.solver("rnea_spatial"), chain(n), "literal")
        assert row[1] == str(counts["mul"])
        assert row[-1] == str(counts.total())
    assert len(rows) == 4
    assert "exactly a polynomial of degree 1" in lines[-1]
    assert float(lines[-1].split("n^")[1].split()[0]) == pytest.approx(1, abs=0.05)
    assert printed.err.count("counting rnea_spatial on a chain of") == 4


def test_dyn_count_refuses_in_words(capsys):
    """A robot that the solver does not serve, and an unknown solver."""
    fixed = ["quadruped", "--root-joint", "fixed"]
    assert cli.main(["count", "closed_form", *fixed]) == 1
    assert "starts a branch; valid: unbranched chains" in capsys.readouterr().err
    assert cli.main(["count", "rneaa", "arm7"]) == 1
    assert "no solver is called 'rneaa'" in capsys.readouterr().err


def test_point_rows_cost_less_with_inertia_moved(shipped):
    """Inertia that is moved between bodies before tracing saves operations."""
    solver, choice = dyn.solver("point_delassus"), {"points": [("tool", (0, 0, 0.1))]}
    moved, as_given = (
        sum(replace(solver, regrouped=flag).build(
            shipped["arm7"], engine="graph", **choice).graph.counts().values())
        for flag in (solver.regrouped, False)
    )  # fmt: skip
    assert moved < as_given
