"""Mistakes that newcomers made with tasks, plugins and pages: each names the way out."""

import re
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import TracedSolver
from dyn_core.errors import nearest, unknown_name
from dyn_core.problems import FORWARD_DYNAMICS
from dyn_core.tasks import JointTargets, RobotTask, planar_task
from dyn_core.tasks.robots import robot_task

ROOT = Path(__file__).parents[2]


def _task(**changes):
    model = dyn.load("two_link")
    parts = {
        "name": "mine",
        "model": model,
        "initial": lambda rng, n: (
            np.zeros((n, 2)),
            np.zeros((n, 2)),
            np.zeros((n, 0)),
        ),
        "control": JointTargets.of(model, np.zeros(2), kp=10.0, kd=1.0, scale=0.5),
        "observe": lambda rows: np.concatenate([rows.q, rows.qd], axis=1),
        "reward": lambda before, action, after: -abs(after.q).sum(axis=1),
        "action_bounds": ((-1.0, 1.0),) * 2,
    }
    return RobotTask(**{**parts, **changes})


def test_a_task_wants_three_arrays_to_begin_with():
    """What an episode remembers is easily left out."""
    rng = np.random.default_rng(0)
    assert [x.shape for x in _task().drawn(rng, 3)] == [(3, 2), (3, 2), (3, 0)]
    two = _task(initial=lambda rng, n: (np.zeros((n, 2)), np.zeros((n, 2))))
    with pytest.raises(dyn.ShapeError, match=r"q, qd, memory.*got 2 parts"):
        two.drawn(rng, 3)
    none = _task(initial=lambda rng, n: None)
    with pytest.raises(dyn.ShapeError, match="mine: the result of initial.*got empty"):
        none.drawn(rng, 3)


def test_a_task_wants_a_model():
    """The name of a robot is none."""
    with pytest.raises(dyn.ModelError, match=r"model is 'two_link'.*dyn\.load"):
        _task(model="two_link")


def test_misspelt_attributes_of_a_shipped_task():
    """The nearest is named, for robots and for planar systems."""
    with pytest.raises(dyn.ModelError, match="'rewards'; did you mean 'reward'"):
        robot_task("reach", rewards=None)
    with pytest.raises(dyn.ModelError, match="'substep'; did you mean 'substeps'"):
        planar_task("pendulum", substep=2)


def test_a_parameters_own_group_is_listed_first():
    """Of a hundred parameters a dozen are shown: those of `gains` to one who asked so."""
    valid = [f"collision.{k}" for k in range(50)] + ["gains.elbow.p", "gains.elbow.d"]
    message = unknown_name("parameter", "gains.stiffness", valid)
    assert "valid: gains.elbow.p, gains.elbow.d, collision.0, " in message
    assert message.endswith("... (52 in all)")


def test_names_that_begin_with_the_typed_one_come_first():
    """Before those that differ in a letter; where a list is cut, who lists all."""
    names = ["go1", "arm7", *(f"a{k}" for k in range(20)), "g1_29dof", "G1_23dof"]
    assert nearest("g1", names) == ["g1_29dof", "G1_23dof", "go1"]
    assert nearest("", names) == []
    message = unknown_name("robot", "g1", names)
    assert "did you mean 'g1_29dof' or 'G1_23dof' or 'go1'?" in message
    assert "valid: g1_29dof, G1_23dof, go1, arm7, a0, " in message
    assert message.endswith("... (24 in all: dyn robots)")
    with pytest.raises(dyn.SolverNotFound, match=r"in all: dyn solvers\)"):
        dyn.solver("no_such_solver")
    message = unknown_name("solver", "g1", names, "step")
    assert message.endswith("... (24 in all: dyn solvers step)")


def damped(model, q, qd, tau, f_ext, inner):
    """Forward dynamics with one more damper."""
    less = [None, *(tau[i] - 0.5 * qd[i] for i in model.bodies)]
    return inner(q, qd, less, f_ext)


def test_a_slot_of_ones_own_solver_takes_a_solver():
    """Before a plugin offers it, a name leads nowhere: the error says what would."""
    mine = TracedSolver(
        "mine", FORWARD_DYNAMICS, damped, slots={"inner": FORWARD_DYNAMICS}
    )
    model, zero = dyn.load("two_link"), np.zeros(2)
    with pytest.raises(dyn.SignatureError, match=r"valid: dyn\.solver\('aba'\)"):
        mine.build(model, inner="aba", engine="plain")
    program = mine.build(model, inner=dyn.solver("aba"), engine="plain")
    aba = dyn.solver("aba").build(model, engine="plain")
    qd = np.array([1.0, -2.0])
    np.testing.assert_allclose(
        program(zero, qd, zero), aba(zero, qd, -0.5 * qd), rtol=1e-12
    )


@pytest.mark.parametrize("engine", ["plain", "graph"])
@pytest.mark.parametrize("name", ["two_link", "every_joint", "quadruped"])
def test_a_slot_takes_what_its_algorithm_was_given(name, engine):
    """Lists by body and external forces with the base's entry go on as they are.

    Forces that slip to the next body would change accelerations without an error.
    """
    mine = TracedSolver(
        "handed_on",
        FORWARD_DYNAMICS,
        lambda model, q, qd, tau, f_ext, inner: inner(q, qd, tau, f_ext),
        slots={"inner": FORWARD_DYNAMICS},
    )
    model, rng = dyn.load(name), np.random.default_rng(3)
    q, (qd, tau) = model.random(3), rng.normal(size=(2, model.nv))
    f_ext = rng.normal(size=(model.nb, 6))
    for inner in ("aba", "dense"):
        options = {"engine": engine, "inputs": ["f_ext"]}
        program = mine.build(model, inner=dyn.solver(inner), **options)
        direct = dyn.solver(inner).build(model, **options)
        np.testing.assert_allclose(
            program(q, qd, tau, f_ext), direct(q, qd, tau, f_ext), rtol=1e-12
        )


def test_the_first_page_names_every_extra():
    """Each optional set of packages stands in the table of docs/start.md."""
    project = (ROOT / "pyproject.toml").read_text()
    section = project.split("[project.optional-dependencies]")[1].split("\n[")[0]
    extras = set(re.findall(r"^([\w-]+) = \[", section, re.MULTILINE))
    assert {"ros", "view", "test"} <= extras
    table = (ROOT / "docs" / "start.md").read_text().split("| extra | for |")[1]
    named = set(re.findall(r"`([\w-]+)`", table.split("\n\n")[0]))
    assert named == extras
