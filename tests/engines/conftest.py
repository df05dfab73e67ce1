"""What tests of machine code share."""

import pytest

import dyn_core as dyn
from dyn_core.engines.llvm.call.entry import MODES


@pytest.fixture(params=MODES)
def build(request, monkeypatch):
    """Build solvers whose calls are entered in each of the three ways."""
    monkeypatch.setenv("DYN_ENTRY", request.param)

    def make(name, model, **choices):
        program = dyn.solver(name).build(model, engine="native", **choices)
        program.prepare(batch=True)
        assert isinstance(program, dyn.Program)
        return program

    make.mode = request.param
    return make


@pytest.fixture(scope="module")
def arm(shipped):
    """Return the 7-joint arm."""
    return shipped["arm7"]
