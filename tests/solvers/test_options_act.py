"""Options of build act, or are refused in words: no solver takes one and ignores it."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.problems import PASSIVE
from dyn_core.testing import random_model
from dyn_core.testing.case import Case

OPTIONS = [
    {"joint_friction": True}, {"joint_springs": True}, {"f_ext_frame": "base"},
    {"matrices": "packed"}, {"matrices": "sparse"},
]  # fmt: skip
SOLVERS = [dyn.solver(name) for name in dyn.solvers(references=True)]
ROBOTS = [solver for solver in SOLVERS if solver.signature.system == "robot"]


@pytest.fixture(scope="module")
def robot():
    """Return a tree with springs and friction in every joint."""
    kinds = ("revolute", "prismatic")
    return random_model(3, size=3, kinds=kinds, mimic=0.0, massless=0.0, branching=0.7)


def _results(solver, model, **choices):
    """Return the flat outputs at one state, with external forces where they go in."""
    names = [port.name for port in solver.signature.inputs if port.optional]
    inputs = ["f_ext"] if "f_ext" in names else []
    case = Case(solver, model, "plain", np.random.default_rng(0))
    program = case.program(inputs=inputs, **choices)
    results = program(*case.arguments(program))
    results = results if isinstance(results, tuple) else (results,)
    return np.concatenate([np.ravel(x) for x in results])


def _forced(solver):
    """Return a copy of a solver whose Signature says that both options act."""
    signature = replace(solver.signature, passive=PASSIVE)
    if hasattr(solver, "algorithm"):
        return replace(solver, signature=signature)
    forced = copy.copy(solver)
    forced.signature = signature
    return forced


@pytest.mark.parametrize("solver", ROBOTS, ids=lambda solver: solver.name)
def test_options_act_or_are_refused(solver, robot):
    """Each changes a number or a shape of the results; what build refuses would not."""
    if solver.refusal(robot) is not None:
        pytest.skip(f"{solver.name} does not serve the robot of this test")
    without = _results(solver, robot)
    for option in OPTIONS:
        (key,) = option
        try:
            results = _results(solver, robot, **option)
        except dyn.UnsupportedError as error:
            assert key in str(error)
            assert "valid: " in str(error) or "NumpySolver" in str(error)
            if key in PASSIVE:
                results = _results(_forced(solver), robot, **option)
                assert np.array_equal(results, without), f"{key} would act"
            continue
        same = results.shape == without.shape and np.array_equal(results, without)
        assert not same, f"{solver.name} takes {option} and ignores it"


def test_other_systems_have_no_joint_friction():
    """Nothing of chains, tasks and layouts changes by options about a robot's joints."""
    others = [solver for solver in SOLVERS if solver not in ROBOTS]
    assert len(others) > 10
    assert not any(solver.signature.acting for solver in others)
