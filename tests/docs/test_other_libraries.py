"""docs/other_libraries.md: names here exist, and so do those of installed libraries."""

import re
from pathlib import Path

import pytest

import dyn_core as dyn

PAGE = Path(__file__).parents[2] / "docs" / "other_libraries.md"


def _column(k, pattern):
    """Return names in a column of all tables."""
    names = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and not cells[0].startswith(("-", "to ")):
            names += re.findall(pattern, cells[k])
    assert len(names) > 10
    return names


def test_names_of_this_library_exist():
    """Solvers by name; `dyn.name` and `model.name` are attributes."""
    for name in _column(1, r"`((?:dyn\.|model\.)?[a-z_]+)(?:\(\))?`"):
        owner, _, attribute = name.rpartition(".")
        if owner:
            assert hasattr({"dyn": dyn, "model": dyn.Model}[owner], attribute), name
        else:
            assert name in dyn.solvers(), name


def test_names_of_pinocchio_exist():
    """Functions of its module."""
    pinocchio = pytest.importorskip("pinocchio", reason="pin is not installed")
    elsewhere = {"MeshcatVisualizer"}  # in pinocchio.visualize
    for name in set(_column(2, r"`(\w+)`")) - elsewhere:
        assert hasattr(pinocchio, name), name


def test_names_of_mujoco_exist():
    """Functions of its module."""
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")
    for name in _column(3, r"`(mjd?_\w+)`"):
        assert hasattr(mujoco, name), name


def test_names_of_other_libraries_lead_to_the_solver():
    """An unknown solver that the page lists is answered by ours, of the same sign."""
    solvers, of = dyn.solvers(), {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        ours = re.fullmatch(r"`(\w+)`", cells[1]) if len(cells) == 6 else None
        if ours and ours[1] in solvers:
            for theirs in re.findall(r"(?<!-)`(\w+)`", " ".join(cells[2:])):
                of.setdefault(theirs, set()).add(ours[1])
    assert len(of) > 40
    vague = {"AutoDiffXd", "Expression", "qacc", "mj_rne", "CalcBiasTerm", *solvers}
    for name, ours in of.items():
        if name not in vague:
            with pytest.raises(dyn.SolverNotFound) as caught:
                dyn.solver(name)
            guess = str(caught.value).partition("valid:")[0]
            assert any(f"'{x}'" in guess for x in ours), f"{name}: {guess}"
    with pytest.raises(dyn.SolverNotFound) as caught:
        dyn.solver("CalcGravityGeneralizedForces")  # of the other sign
    assert "did you mean" not in str(caught.value)
