"""A name that changed goes on for a minor version, and says the new one."""

import warnings

import pytest

import dyn_core as dyn
from dyn_core.errors import ModelError, SettingError
from dyn_core.validation import Field, Quantity, Table, with_present_names
from ros_nodes.parameter_tables import parameter_files

OLD = Table(Field("radius", Quantity(), "radius", "m", 1.0, former="size"))
GOES = "is now '{}'; the old name goes with the next release"


def test_a_name_of_the_face(monkeypatch):
    """It is the object of the present name; `dir` lists the present one alone."""
    monkeypatch.setitem(dyn._FORMER, "read_urdf", "load_urdf")
    with pytest.warns(DeprecationWarning, match=GOES.format("load_urdf")) as warned:
        assert dyn.read_urdf is dyn.load_urdf
    assert warned[0].filename == __file__
    assert "read_urdf" not in dir(dyn)


def test_a_name_of_a_solver(monkeypatch):
    """It is found by both names; lists have the present one."""
    chosen = dyn.solver("aba")
    monkeypatch.setattr(chosen, "former", "articulated_body")
    with pytest.warns(DeprecationWarning, match=GOES.format("aba")):
        assert dyn.solver("articulated_body") is chosen
    assert "articulated_body" not in dyn.solvers()


def test_an_empty_name_is_no_former_name():
    """Solvers that kept their name have none."""
    with pytest.raises(dyn.SolverNotFound):
        dyn.solver("")


def test_a_key_of_a_file():
    """The value of the former key counts; both keys are refused."""
    with pytest.warns(DeprecationWarning, match=GOES.format("radius")):
        assert OLD.read("file", {"size": 2.0}) == {"radius": 2.0}
    with pytest.raises(ModelError, match="both are there; valid: radius alone"):
        OLD.read("file", {"size": 2.0, "radius": 2.0})
    with pytest.raises(ModelError, match="sise"):
        OLD.read("file", {"sise": 2.0})


def test_present_names_warn_of_nothing():
    """Values are returned as they are."""
    values = {"radius": 2.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert with_present_names("file", values, OLD.fields.values()) is values


def test_where_warnings_are_errors_an_old_name_is_valid():
    """It is valid for a minor version, also under -W error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert OLD.read("file", {"size": 2.0}) == {"radius": 2.0}


def test_a_parameter_in_a_file(monkeypatch, tmp_path):
    """It is checked like the present one."""
    limit = Field("speed", Quantity(0.0, 3.0), "speed", "m/s", 1.0, former="velocity")
    monkeypatch.setitem(parameter_files.NODES["simulator"], "speed", limit)
    path = tmp_path / "p.yaml"
    path.write_text("simulator: {ros__parameters: {velocity: 2.0}}\n")
    with pytest.warns(DeprecationWarning, match=GOES.format("speed")):
        read = parameter_files.read_parameters(path)["simulator"]
    assert read == {"speed": 2.0}
    path.write_text("simulator: {ros__parameters: {velocity: 4.0}}\n")
    with pytest.warns(DeprecationWarning), pytest.raises(SettingError, match="speed"):
        parameter_files.read_parameters(path)
