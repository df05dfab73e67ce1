"""User code is understood by a type checker."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is not installed (test extra)")

RIGHT = """
from typing import Any, NamedTuple, assert_type

import numpy as np

import dyn_core as dyn


class Step(NamedTuple):
    q_next: np.ndarray
    qd_next: np.ndarray


model = dyn.load_urdf("arm7.urdf", root_joint="fixed")
assert_type(dyn.__version__, str)
assert_type(model, dyn.Model)
assert_type(model.nv, int)
assert_type(model.name, str)
assert_type(model.neutral(), np.ndarray)
q: np.ndarray = np.zeros(model.nv)
qd, qdd, tau = q.copy(), q.copy(), q.copy()

known = dyn.solver("rnea").build(model)
assert_type(known, dyn.Program[np.ndarray])
assert_type(known.engine, str)
assert_type(known.inputs[0], dyn.problems.Port)
assert_type(known(q, qd, qdd), np.ndarray)
assert_type(known(q, qd, qdd, status=True)[0], np.ndarray)
assert_type(dyn.solver("gravity").with_options().build(model)(q), np.ndarray)
for name in ("aba", "dense"):
    assert_type(dyn.solver(name).build(model)(q, qd, tau), np.ndarray)
several = dyn.solver("id_derivatives").build(model)(q, qd, qdd)
assert_type(several, dyn.Results)
assert_type(several.dtau_dq, np.ndarray)
assert_type(several[0], np.ndarray)
_, dtau_dqd, _ = several
assert_type(dtau_dqd, np.ndarray)
assert_type(dyn.solver("energy").build(model)(q, qd), dyn.Results[Any])
assert_type(dyn.solver("energy").build(model)(q, qd).kinetic, Any)
assert_type(dyn.solver("mine").build(model), dyn.Program[Any])
assert_type(dyn.solver("mine").build(model)(q, qd), Any)


def of_a_solver(solver: dyn.Solver) -> dyn.Program[np.ndarray]:
    assert_type(dyn.solver(solver).build(model)(q), Any)
    return solver.build(model)



rnea: dyn.Program[np.ndarray] = dyn.solver("rnea").build(model, engine="graph")
assert_type(rnea(q, qd, qdd), np.ndarray)
assert_type(rnea(q, qd, qdd=[0.0] * 7), np.ndarray)
assert_type(rnea(q, qd, qdd, out=tau), np.ndarray)
result, status = rnea(q, qd, qdd, status=True)
assert_type(result, np.ndarray)
assert_type(status, int | np.ndarray)

euler: dyn.Program[Step] = dyn.solver("semi_implicit_euler").build(model)
assert_type(euler(q, qd, tau, 1e-3), Step)
assert_type(euler(q, qd, tau, 1e-3).q_next, np.ndarray)
assert_type(euler(q, qd, tau, 1e-3, status=True)[0].qd_next, np.ndarray)
place = (q.copy(), qd.copy())
assert_type(euler(q, qd, tau, 1e-3, out=place), tuple[np.ndarray, np.ndarray])
"""

WRONG = {
    "dyn.sovler": 'has no attribute "sovler"',
    "rnea(q).q_next": 'has no attribute "q_next"',
    "rnea({})": "No overload variant",
    "model.nvv": 'has no attribute "nvv"',
    "rnea(q, status='yes')": "No overload variant",
    "dyn.load_urdf(3)": "incompatible type",
    "known(q, qd, qdd).q_next": 'has no attribute "q_next"',
    "wrong: dyn.Program[Step] = dyn.solver('rnea').build(model)": "Incompatible types",
    "euler(q, qd, tau, 1e-3).qd": 'has no attribute "qd"',
}


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """Return a function that runs mypy on a script and returns what it prints."""
    folder = tmp_path_factory.mktemp("typing")

    def run(text):
        path = folder / "user.py"
        path.write_text(text, encoding="utf-8")
        options = ["--strict", "--no-error-summary", "--ignore-missing-imports",
                   "--follow-imports=silent", f"--cache-dir={folder / 'cache'}"]  # fmt: skip
        command = [sys.executable, "-m", "mypy", *options, str(path)]
        root = Path(__file__).parents[2]
        done = subprocess.run(command, capture_output=True, text=True, cwd=root)
        assert not done.stderr, done.stderr
        return done.stdout

    return run


def test_types_of_user_code(check):
    """Models, Programs and what calls return have the types that they have."""
    lines = RIGHT if sys.version_info >= (3, 11) else RIGHT.replace("from typing import Any, NamedTuple, assert_type", "from typing import Any, NamedTuple\nfrom typing_extensions import assert_type")  # fmt: skip
    assert check(lines) == ""


def test_mistakes_of_user_code(check):
    """Wrong names and wrong kinds of values are found, each at its line."""
    start = len(RIGHT.splitlines()) + 2
    printed = check("\n".join([RIGHT.rstrip("\n"), "", *WRONG]) + "\n")
    for k, (line, wanted) in enumerate(WRONG.items()):
        (said,) = re.findall(rf"user\.py:{start + k}: error: (.*)", printed) or ("",)
        assert wanted in said, f"{line}: {said or 'nothing found'}"


def test_what_is_annotated_is_what_comes():
    """The types of the script above, at run time."""
    import numpy as np

    import dyn_core as dyn
    from dyn_core import robots

    model = dyn.load_urdf(robots.path("two_link"))
    q = qd = tau = np.zeros(model.nv)
    rnea = dyn.solver("rnea").build(model, engine="graph")
    euler = dyn.solver("semi_implicit_euler").build(model, engine="graph")
    assert type(rnea(q, qd, tau)) is np.ndarray
    assert type(rnea(q, qd, tau, status=True)[1]) is int
    rows = np.zeros((3, model.nv))
    assert type(rnea(rows, qd, tau, status=True)[1]) is np.ndarray
    assert type(euler(q, qd, tau, 1e-3).q_next) is np.ndarray
    assert dyn.Program[np.ndarray].__origin__ is dyn.Program
    assert dyn.Solver[np.ndarray].__origin__ is dyn.Solver
    step, energy = euler(q, qd, tau, 1e-3), dyn.solver("energy").build(model)(q, qd)
    assert isinstance(step, dyn.Results)
    assert {type(part) for part in step} == {np.ndarray}
    assert isinstance(energy, dyn.Results)
    assert {type(part) for part in energy} == {float}
