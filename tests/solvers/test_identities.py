"""Every solver x every engine x every shipped robot, and seeded random trees."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.authoring import TracedSolver
from dyn_core.engines import ENGINES, available
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_core.testing.case import Case
from dyn_core.testing.conformance import (
    Finding,
    _largest,
    check,
    refuses_in_words,
    report,
    served_model,
)
from dyn_core.testing.laws.contact_laws import contact_steps_obey_newton
from dyn_core.testing.models import random_model
from dyn_plugins.dynamics.gravity import gravity

NAMES = dyn.solvers(references=True)
ROBOTIC = [name for name in NAMES if dyn.solver(name).signature.system == "robot"]
REFERENCES = set(NAMES) - set(dyn.solvers())
OTHERS = [name for name in NAMES if name not in ROBOTIC]
DEPENDENT = [n for n in NAMES if "dependent" in getattr(dyn.solver(n), "options", {})]
CONTACT_STEPS = [
    *dyn.solvers(dyn.problems.CONTACT_STEP),
    *dyn.solvers(dyn.problems.CONTACT_STEP_DERIVATIVES),
]
BIG = ("every_joint", "arm7")
SLOW = ("deriv", "directional", "_loops")
# By solver: robots that take it 1 to 20 s. Second derivatives of every kind of joint
# are in test_second_derivatives.py, to more digits.
LARGE = {
    **dict.fromkeys(CONTACT_STEPS, ("every_joint",)),
    **dict.fromkeys([n for n in NAMES if any(x in n for x in SLOW)], ("every_joint",)),
    **dict.fromkeys(dyn.solvers(dyn.problems.CONTACT_STEP_DERIVATIVES), BIG),
    **dict.fromkeys(dyn.solvers(dyn.problems.STEP_DERIVATIVES), BIG),
    **dict.fromkeys([name for name in NAMES if "_second_" in name], BIG),
}
RANDOM = 6  # one of each size with --full


def _assert_laws(solver, model, engine, seed=0):
    findings = check(solver, model, engine, seed)
    laws = dyn.default_registry().laws(solver.signature)
    assert len(findings) >= 4 + len(laws)
    broken = [str(finding) for finding in findings if not finding.good]
    assert not broken, f"{solver.name} on {model.name}, {engine}: {broken}"


def _engines(name, whole):
    """Return the engines that a solver takes on shipped robots, and on random trees.

    Machine code or graphs, on the ones or on the others, each in turn; every sixth
    takes plain on shipped robots too, which all are compared with on random trees.
    All with --full; solvers in NumPy are the same on each.
    """
    k, engines = NAMES.index(name), list(available())
    if not hasattr(dyn.solver(name), "algorithm"):
        return ["graph"], ["graph"]
    compiled = [engine for engine in engines if engine != "plain"]
    if whole:
        return engines, compiled
    turn = [compiled[k // 2 % len(compiled)]]
    if name in REFERENCES:  # no user is offered them
        return (turn, []) if sorted(REFERENCES).index(name) % 2 else ([], turn)
    plain = ["plain"] if k % 6 == 0 and name not in LARGE else []
    return ([], turn) if k % 2 else ([*turn, *plain], [])


def pytest_generate_tests(metafunc):
    """Return solver, engine and shipped robot: a seeded rotation, all with --full."""
    whole = metafunc.config.getoption("--full")
    function, names = metafunc.function.__name__, robots.names()
    if function == "test_laws_on_random_trees":
        cases = [(name, e) for name in ROBOTIC for e in _engines(name, whole)[1]]
        metafunc.parametrize(("name", "engine"), cases)
    if function == "test_laws_on_other_systems":
        cases = [
            (name, engine)
            for name in OTHERS
            for engine in dict.fromkeys(sum(_engines(name, whole), []))
        ]
        metafunc.parametrize(("name", "engine"), cases)
    if function != "test_laws_on_shipped_robots":
        return
    cases = []
    for k, name in enumerate(ROBOTIC):
        for engine in _engines(name, whole)[0]:
            n = list(ENGINES).index(engine)
            turn = [
                names[r] for r in np.random.default_rng([k, n]).permutation(len(names))
            ]
            if not whole:
                large = ["quadruped", *LARGE.get(name, ())]
                # In Python each robot takes the same lines of an algorithm, one joint
                # more or less; on random trees each engine is compared with it.
                large += BIG if engine == "plain" else ()
                turn = [robot for robot in turn if robot not in large]
            count = len(names) if whole and engine != "plain" else 1
            cases += [(name, engine, robot) for robot in turn[:count]]
    metafunc.parametrize(("name", "engine", "robot"), cases)


def test_laws_on_shipped_robots(name, engine, robot, shipped):
    """Each law of a solver's Signature holds on each shipped robot and engine.

    A robot that the solver does not serve is refused in words.
    """
    solver = dyn.solver(name)
    if solver.refusal(shipped[robot]) is None:
        _assert_laws(solver, shipped[robot], engine)
    else:
        assert refuses_in_words(solver, shipped[robot])
        (finding,) = check(solver, shipped[robot], engine)
        assert finding.good


def test_laws_on_random_trees(name, engine, full):
    """Each law holds on random trees: a small one, or all with --full.

    Each Program is compared with engine plain on the same tree, so that plain needs no
    turn of its own. Where a tree is refused, in words, its like that the solver serves
    takes its place.
    """
    solver = dyn.solver(name)
    turn = np.random.default_rng([ROBOTIC.index(name), list(ENGINES).index(engine)])
    seeds = range(RANDOM) if full else turn.choice(RANDOM, 1)
    for seed in seeds:
        size = 3 + int(seed) % 6 if full else 3
        tree = random_model(int(seed), size=size)
        served = served_model(solver, int(seed), size)
        assert solver.refusal(tree) is None or refuses_in_words(solver, tree)
        _assert_laws(solver, served, engine, int(seed))


@pytest.mark.parametrize("name", DEPENDENT)
def test_laws_with_dependent_rows_allowed(name):
    """The laws of a Signature hold for least norms, too."""
    solver = dyn.solver(name).with_options(dependent="least_norm")
    _assert_laws(solver, served_model(solver, 1, 3), "graph", 1)


def test_laws_on_other_systems(name, engine, full):
    """Each law holds on random chains, objects, ...: two, or all with --full.

    A reference solver, which takes all the time it wants, gets one that is smaller.
    """
    solver = dyn.solver(name)
    turn = np.random.default_rng([OTHERS.index(name), list(ENGINES).index(engine)])
    count, size = (1, 2) if name in REFERENCES and not full else (2, 3)
    seeds = range(RANDOM) if full else turn.choice(RANDOM, count, replace=False)
    for seed in seeds:
        _assert_laws(solver, served_model(solver, int(seed), size), engine, int(seed))


def test_the_laws_build_each_program_once(shipped, monkeypatch):
    """Laws of one solver, robot and engine share what is built with the same choices."""
    built = []
    build = dyn.authoring.TracedSolver.build

    def counted(solver, model, **choices):
        built.append((solver.name, repr(sorted(choices.items()))))
        return build(solver, model, **choices)

    monkeypatch.setattr(dyn.authoring.TracedSolver, "build", counted)
    check(dyn.solver("aba"), shipped["two_link"], "graph")
    assert {"aba", "rnea", "crba", "bias", "jacobian"} <= {name for name, _ in built}
    assert len(built) == len(set(built)), built


def test_programs_of_other_choices_are_others(shipped):
    """Each choice counts with its type, also inside lists; so does the engine."""
    model = shipped["two_link"]
    case = Case(dyn.solver("aba"), model, "graph", np.random.default_rng(0))
    choices = (
        {}, {"inputs": ["f_ext"]}, {"inputs": ("f_ext",)}, {"inputs": ["gravity"]},
        {"joint_friction": True}, {"joint_friction": np.True_}, {"engine": "plain"},
    )  # fmt: skip
    programs = [case.other("aba", **chosen) for chosen in choices]
    assert len({id(program) for program in programs}) == len(choices)
    for chosen, program in zip(choices, programs, strict=True):
        assert case.other("aba", **chosen) is program
    assert case.other("rnea") is not programs[0]
    alike = Case(case.solver, model, "graph", np.random.default_rng(0))
    assert alike.other("aba") is not programs[0]


def test_a_refusal_without_words_is_noticed(shipped):
    """The suite can fail: a refusal must name the joint and what is valid."""
    algorithm = dyn.solver("rnea").algorithm

    def mute(reason):
        return dyn.authoring.TracedSolver(
            "mute", dyn.problems.INVERSE_DYNAMICS, algorithm, supports=reason
        )

    model = shipped["two_link"]
    for phrase in ("no", f"joint '{model.names[1]}' is bad", "valid: others"):
        (finding,) = check(mute(lambda _, phrase=phrase: phrase), model, "graph")
        assert not finding.good, phrase
    good = f"joint '{model.names[1]}' is bad; valid: others"
    (finding,) = check(mute(lambda _: good), model, "graph")
    assert finding.good
    with pytest.raises(
        dyn.UnsupportedError, match="no random system is served by mute"
    ):
        served_model(mute(lambda _: "no"), 0, 3)


def test_every_signature_has_a_solver_and_laws():
    """No Signature is left without a solver or without a law."""
    registry = dyn.default_registry()
    assert set(dyn.problems.PROBLEMS) <= set(registry.problems())
    for signature in registry.problems():
        assert dyn.solvers(signature), signature.name
        assert registry.laws(signature), signature.name


def test_two_solvers_of_forward_dynamics_are_interchangeable(shipped):
    """`aba` and `dense` have one Signature and give one answer."""
    rng = np.random.default_rng(3)
    model = shipped["arm7"]
    q, qd, tau = model.random(rng), rng.normal(size=7), rng.normal(size=7)
    assert {"aba", "dense"} <= set(dyn.solvers(dyn.problems.FORWARD_DYNAMICS))
    answers = [dyn.solver(n).build(model)(q, qd, tau) for n in ("aba", "dense")]
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-10)


@pytest.mark.parametrize(
    "signature", [dyn.problems.INVERSE_DYNAMICS, dyn.problems.MASS_MATRIX]
)
def test_a_wrong_solver_breaks_laws(signature, shipped):
    """The suite can fail: a solver with one flipped sign does not get through."""
    name = dyn.solvers(signature)[0]
    right = dyn.solver(name)

    def flipped(*args):
        result = right.algorithm(*args)
        if isinstance(result, dict):
            return {k: -v if k[0] != k[1] else v for k, v in result.items()}
        return [None, *[-x for x in result[1:]]]

    wrong = dyn.authoring.TracedSolver("wrong", signature, flipped)
    findings = check(wrong, shipped["arm7"], "graph")
    assert any(not finding.good for finding in findings)


def test_a_case_runs_the_engine_that_is_asked_for():
    """Laws of an engine are those of that engine; NumPy solvers have no choice."""
    model, rng = random_model(0, size=2), np.random.default_rng(0)
    for engine in ("plain", "graph"):
        case = Case(dyn.solver("rnea"), model, engine, rng)
        assert case.program().engine == engine
        assert case.build(dyn.solver("aba"), engine=engine).engine == engine


@pytest.mark.parametrize("name", dyn.solvers(dyn.problems.CONTACT_STEP))
def test_the_law_of_contact_steps_sees_an_impulse(name):
    """A step that loses a part of its impulse on the way breaks the law."""
    model = dyn.load_urdf(robots.path("planar3"))
    case = Case(dyn.solver(name), model, "graph", np.random.default_rng(0))
    (moved, pushed), *_ = contact_steps_obey_newton(case)
    assert scaled_error(moved, pushed) < TOLERANCES["law"]
    assert np.abs(pushed).max() > 1e3 * TOLERANCES["law"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_law_with_nan_anywhere_does_not_hold(place):
    pairs = [(1.0, 1.0)] * 3
    for pairs[place] in (np.nan, 1.0), (1.0, np.nan), (1.0, [1.0]), (1.0, np.inf):
        assert not Finding("law", _largest(pairs), 1e-9).good
    assert not Finding("law", _largest([]), 1e-9).good


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_laws_that_compare_zeros_do_not_count_as_held(shipped, sign):
    """On two_link, in a horizontal plane, no weight has a sign; on random robots it has.

    A robot that was asked for is named with the laws that it cannot test.
    """

    def weight(model, q):
        return [None, *(x * sign for x in gravity(model, q)[1:])]

    solver = TracedSolver("weight", dyn.problems.GRAVITY_FORCE, weight)
    flat, *random = [
        line
        for line in report(solver, [shipped["two_link"]], "graph")
        if not line.startswith("  ")
    ]
    zeros = "gravity_is_bias_at_rest, gravity_is_slope_of_potential"
    assert f"two_link (graph): 4 of 7 laws hold; only zeros in {zeros}" in flat
    assert len(random) == 3
    verdict = "7 of 7" if sign > 0 else "5 of 7"
    assert all(verdict in line and "zeros" not in line for line in random), random


def test_a_solver_for_one_robot_alone_is_tested_on_it(shipped):
    """No random robot is served: those that are asked for are tested, if one is served."""

    class OfTwoLink(TracedSolver):
        def refusal(self, model):
            return None if model.name == "two_link" else "two_link alone"

    solver = OfTwoLink("own", dyn.problems.GRAVITY_FORCE, gravity)
    (line,) = report(solver, [shipped["two_link"]], "graph")
    assert "own on two_link (graph): 4 of 7 laws hold" in line
    with pytest.raises(dyn.UnsupportedError, match="no random system is served by own"):
        next(report(solver, [shipped["arm7"]], "graph"))
