"""What Programs say of themselves: repr, help, the signature of a call."""

import inspect
import pickle
import pydoc

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.problems import Port, Signature
from dyn_core.problems.describe import describe
from dyn_core.testing.models import chain

ENGINES = available()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_signature_of_a_call_names_the_inputs(engine):
    """Inputs in their order, then out and status; classes keep theirs."""
    program = dyn.solver("rnea").build(chain(2), engine=engine, inputs=["f_ext"])
    signature = inspect.signature(program)
    assert str(signature) == "(q, qd, qdd, f_ext, *, out=None, status=False)"
    x = np.ones((3, 2))
    bound = signature.bind(x[0], x[1], qdd=x[2], f_ext=np.zeros((2, 6)))
    np.testing.assert_array_equal(
        program(*bound.args, **bound.kwargs), program(*x, np.zeros((2, 6)))
    )
    for kind in type(program).__mro__:
        if issubclass(kind, dyn.Program):
            assert inspect.getdoc(kind) not in (None, inspect.getdoc(program))
            assert "recipe" in inspect.signature(dyn.Program).parameters


def test_parameters_that_are_inputs_stand_in_the_signature():
    """They may be left out; a path, no name of Python, goes by keyword."""
    paths = ["armature", "b1.mass"]
    program = dyn.solver("rnea").build(chain(2), engine="graph", inputs=paths)
    signature = inspect.signature(program)
    shown = (
        "(q, qd, qdd, armature=<of the model>, *, out=None, status=False, **parameters)"
    )
    assert str(signature) == shown
    x = np.ones((3, 2))
    bound = signature.bind(*x, **{"b1.mass": 3.0})
    heavy = program(*bound.args, **bound.kwargs)
    assert not np.allclose(heavy, program(*x))


@pytest.mark.parametrize("engine", ENGINES)
def test_help_prints_what_a_user_needs(engine):
    """Problem, equation, Ports with sizes and units, options, engine, source."""
    program = dyn.solver("rnea").build(chain(3), engine=engine, joint_friction=True)
    page = pydoc.plain(pydoc.render_doc(program))
    for part in (
        f"Program rnea for {program.model} on engine {engine}",
        "joint_friction=True",
        "program(q, qd, qdd, *, out=None, status=False) -> tau",
        "tau = H(q) qdd + C(q, qd)",
        "Inputs:", "Outputs:", "(3,)", "rad/s", "N·m | N", "joint forces",
        "f_ext_frame='body'",
        "Source: ",
    ):  # fmt: skip
        assert part in page, part
    assert program.__doc__ == program.describe()
    assert dyn.Program.__doc__.startswith("A solver built for a robot")


def test_help_tells_sign_and_frame_of_external_forces():
    """Every problem with f_ext says on which side of the equation it stands, and where."""
    for name in ("rnea", "aba", "bias", "loop_forward_dynamics", "semi_implicit_euler"):
        page = dyn.solver(name).describe()
        (line,) = [x for x in page.splitlines() if x.strip().startswith("f_ext  ")]
        assert "[moment; force] in body coordinates" in line
        assert "H qdd + C = tau + J.T f_ext" in line


def test_help_of_programs_that_are_not_traced():
    """A NumpySolver's Program has the same page."""

    class AtRest(dyn.authoring.NumpySolver):
        name, signature = "at_rest", dyn.problems.INVERSE_DYNAMICS

        def solve(self, model, q, qd, qdd, f_ext):
            return 0 * q

    program = AtRest().build(chain(2))
    assert "Program at_rest for " in program.__doc__
    assert inspect.signature(program).parameters["status"].default is False


def test_a_repr_fits_in_five_lines():
    """Also with many inputs and long options."""
    model = chain(12)
    paths = [f"{link}.mass" for link in model.child_links[1:]]
    for choices in ({}, {"inputs": ["f_ext", "armature", *paths]}):
        program = dyn.solver("rnea").build(model, engine="graph", **choices)
        lines = repr(program).splitlines()
        assert len(lines) <= 5
        assert lines[0].startswith("<Program rnea for ") and "graph" in lines[0]
        assert "q (12,)" in repr(program) and "tau (12,)" in repr(program)
        again = pickle.loads(pickle.dumps(program))
        assert repr(again) == repr(program)


def test_pages_are_made_when_asked_for(monkeypatch):
    """A build and a call make neither page nor signature."""
    from dyn_core.engines import base

    def refused(program):
        raise AssertionError("asked for")

    for name in ("page", "summary"):
        monkeypatch.setattr(base, name, refused)
    program = dyn.solver("rnea").build(chain(2), engine="graph")
    program(*np.ones((3, 2)))
    with pytest.raises(AssertionError, match="asked for"):
        repr(program)


def test_tables_of_ports_are_aligned():
    """Inputs and outputs share their columns, whichever is wider."""
    ports = (
        Port("a_long_name", (3,), "m", meaning="in"),
        Port("y", (), "", meaning="out"),
    )
    for first, last in (ports, ports[::-1]):
        page = describe(Signature("s", (first,), (last,)))
        rows = [line for line in page.splitlines() if line.startswith("    ")]
        assert sorted(rows) == [
            "    a_long_name  (3,)    m  in",
            "    y            number     out",
        ]
