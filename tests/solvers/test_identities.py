"""Every solver x every engine x every shipped robot, and seeded random trees."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.engines import ENGINES, available
from dyn_core.testing.conformance import check, refuses_in_words, served_model
from dyn_core.testing.laws import LAWS
from dyn_core.testing.models import random_model

NAMES = dyn.solvers()
ROBOTIC = [name for name in NAMES if dyn.solver(name).signature.system == "robot"]
OTHERS = [name for name in NAMES if name not in ROBOTIC]
RANDOM = 40


def _assert_laws(solver, model, engine, seed=0):
    findings = check(solver, model, engine, seed)
    assert len(findings) >= 4 + len(LAWS[solver.signature])
    broken = [str(finding) for finding in findings if not finding.good]
    assert not broken, f"{solver.name} on {model.name}, {engine}: {broken}"


def pytest_generate_tests(metafunc):
    """Give solver, engine and shipped robot: a seeded rotation, all with --full."""
    if metafunc.function.__name__ != "test_laws_on_shipped_robots":
        return
    names, engines = robots.names(), available()
    kept = {"plain": 1, "graph": 1, "native": 2}
    if "native" not in engines:
        kept["graph"] = 2
    whole = metafunc.config.getoption("--full")
    cases = []
    for k, name in enumerate(ROBOTIC):
        for n, engine in enumerate(engines):
            count = len(names) if whole else kept[engine]
            turn = np.random.default_rng([k, n]).permutation(len(names))[:count]
            cases += [(name, engine, names[r]) for r in sorted(turn)]
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


@pytest.mark.parametrize("engine", available())
@pytest.mark.parametrize("name", ROBOTIC)
def test_laws_on_random_trees(name, engine, full):
    """Each law holds on random trees: one for each engine, or all with --full.

    Where a tree is refused, in words, its like that the solver serves takes its place.
    """
    solver = dyn.solver(name)
    turn = np.random.default_rng([ROBOTIC.index(name), list(ENGINES).index(engine)])
    seeds = range(RANDOM) if full else turn.choice(RANDOM, 1)
    for seed in seeds:
        size = 3 + int(seed) % 6
        tree = random_model(int(seed), size=size)
        served = served_model(solver, int(seed), size)
        assert solver.refusal(tree) is None or refuses_in_words(solver, tree)
        _assert_laws(solver, served, engine, int(seed))


@pytest.mark.parametrize("engine", available())
@pytest.mark.parametrize("name", OTHERS)
def test_laws_on_other_systems(name, engine, full):
    """Each law holds on random chains, objects, ...: two, or all with --full."""
    solver = dyn.solver(name)
    turn = np.random.default_rng([OTHERS.index(name), list(ENGINES).index(engine)])
    seeds = range(RANDOM) if full else turn.choice(RANDOM, 2, replace=False)
    for seed in seeds:
        _assert_laws(solver, served_model(solver, int(seed), 3), engine, int(seed))


def test_a_refusal_without_words_is_noticed(shipped):
    """The suite can fail: a refusal must name the joint and what is valid."""
    text = dyn.solver("rnea").text

    def mute(reason):
        return dyn.TextSolver("mute", dyn.INVERSE_DYNAMICS, text, supports=reason)

    model = shipped["two_link"]
    for words in ("no", f"joint '{model.names[1]}' is bad", "valid: others"):
        (finding,) = check(mute(lambda _, words=words: words), model, "graph")
        assert not finding.good, words
    good = f"joint '{model.names[1]}' is bad; valid: others"
    (finding,) = check(mute(lambda _: good), model, "graph")
    assert finding.good
    with pytest.raises(dyn.UnsupportedError, match="no random robot is served by mute"):
        served_model(mute(lambda _: "no"), 0, 3)


def test_every_signature_has_a_solver_and_laws():
    """No Signature is left without a solver or without a law."""
    for signature in dyn.SIGNATURES:
        assert dyn.solvers(signature), signature.name
        assert LAWS[signature], signature.name


def test_two_solvers_of_forward_dynamics_are_interchangeable(shipped):
    """`aba` and `dense` have one Signature and give one answer."""
    rng = np.random.default_rng(3)
    model = shipped["arm7"]
    q, qd, tau = model.random(rng), rng.normal(size=7), rng.normal(size=7)
    assert {"aba", "dense"} <= set(dyn.solvers(dyn.FORWARD_DYNAMICS))
    answers = [dyn.solver(n).build(model)(q, qd, tau) for n in ("aba", "dense")]
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-10)


@pytest.mark.parametrize("signature", [dyn.INVERSE_DYNAMICS, dyn.MASS_MATRIX])
def test_a_wrong_solver_breaks_laws(signature, shipped):
    """The suite can fail: a solver with one flipped sign does not get through."""
    name = dyn.solvers(signature)[0]
    right = dyn.solver(name)

    def flipped(*args):
        result = right.text(*args)
        if isinstance(result, dict):
            return {k: -v if k[0] != k[1] else v for k, v in result.items()}
        return [None, *[-x for x in result[1:]]]

    wrong = dyn.TextSolver("wrong", signature, flipped)
    findings = check(wrong, shipped["arm7"], "graph")
    assert any(not finding.good for finding in findings)
