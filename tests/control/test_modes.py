"""Modes of the controller: records of plugins, and one from a stranger's file."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import ControlMode, hookimpl
from dyn_core.control import Controller, Rules
from dyn_core.export.cycle.controller_cycle import CYCLES
from dyn_core.problems import BIAS_FORCE, MASS_MATRIX

README = Path(__file__).parents[2] / "dyn_plugins" / "README.md"
Q = np.array([0.4, -0.9])


@pytest.fixture(scope="module")
def two():
    """Return an arm of two joints, the first two of the shipped arm."""
    lock = {f"joint{k}": 0.0 for k in range(3, 8)}
    return dyn.load_urdf(dyn.robots.path("arm7"), lock=lock)


@pytest.fixture
def plugin():
    """Return a function that registers a module made of text, until the test ends."""
    registry, made = dyn.default_registry(), []

    def register(text):
        module = types.ModuleType(f"stranger_{len(made)}")
        sys.modules[module.__name__] = module
        made.append(module)
        exec(compile(text, module.__name__, "exec"), module.__dict__)
        registry.register(module)
        return module

    yield register
    for module in made:
        del sys.modules[module.__name__]
        if registry._has(module):
            registry.unregister(module)


def _of_the_page():
    """Return the plugin with a mode that dyn_plugins/README.md shows."""
    page = README.read_text(encoding="utf-8").split("## A mode of the controller")[1]
    return re.search("```python\n(.*?)```", page, re.DOTALL)[1]


def _controller(model, **settings):
    rules = Rules(good_samples=1)
    free = {"state_bounds": None, "effort_slew": 1e12}
    return Controller(model, engine="graph", rules=rules, **free | settings)


def _pushed(controller):
    """Return the effort where the reference is at Q and the robot 0.05 beside it."""
    controller.update(0.0, Q, 0 * Q)
    return controller.update(0.01, Q + 0.05, 0 * Q)


def test_a_mode_of_a_stranger_runs_in_a_controller(plugin, two):
    """One file, as on the page: spring, reference, gains and parameter act."""
    before = dyn.default_registry().modes()
    plugin(_of_the_page())
    assert list(dyn.default_registry().modes()) == [*before, "soft"]
    gains = {"kp": [300.0, 120.0], "kd": [10.0, 4.0]}
    stiff = _pushed(_controller(two, mode="impedance", **gains))
    weight = _pushed(_controller(two, mode="impedance", kp=0.0, kd=gains["kd"]))
    soft = _controller(two, mode="soft", **gains)
    np.testing.assert_allclose(_pushed(soft), (stiff + weight) / 2, atol=1e-9)
    assert (soft.stiff, soft.solver_used) == (True, "rnea")
    soft.set_parameters({"softness": 1.0})
    np.testing.assert_allclose(soft.update(0.02, Q + 0.05, 0 * Q), weight, atol=1e-9)
    with pytest.raises(dyn.SettingError, match=r"softness is 2\.0; valid: .* 1"):
        soft.set_parameters({"softness": 2.0})
    soft.estop(0.03)
    assert not soft.update(0.03, Q + 0.05, 0 * Q).any()


def test_the_law_of_the_page_is_for_all_joints(plugin, shipped):
    """It subtracted positions, which a robot with quaternions has more of."""
    plugin(_of_the_page())
    model, n = shipped["quadruped"], shipped["quadruped"].nv
    q, still, one = model.start(), np.zeros(n), np.ones(n)
    moved = np.asarray(model.integrate(q, 0.1 * one))
    law = dyn.solver("soft_springs").build(model, engine="graph")
    force = [
        law(q, still, reference, still, still, one, one, 0.5)
        for reference in (q, moved)
    ]
    np.testing.assert_allclose(force[1] - force[0], 0.05, atol=1e-9)


def test_its_parameters_are_read_and_refused_in_words(plugin, two):
    """A parameter of another mode, and one of another type."""
    plugin(_of_the_page())
    for settings, message in (
        ({"mode": "gravity", "parameters": {"softness": 0.1}},
         "no parameter of mode gravity is called 'softness'"),
        ({"mode": "soft", "parameters": {"softnes": 0.1}}, "did you mean 'softness'"),
        ({"mode": "soft", "parameters": {"softness": "x"}}, "softness is 'x'; valid"),
        ({"mode": "sotf"}, "mode 'sotf'; valid: .*gravity.*soft"),
        ({"mode": 3}, "mode '3'; valid: computed_torque"),
    ):  # fmt: skip
        with pytest.raises(dyn.SettingError, match=message):
            _controller(two, **settings)


def test_a_law_with_inputs_that_nothing_provides_is_refused(plugin, two):
    """The error names the input and those that there are."""
    text = _of_the_page().replace('"softness",\n                    Q', '"other",\n Q')
    plugin(text)
    with pytest.raises(
        dyn.SettingError, match="mode soft: no input of the law is called"
    ):
        _controller(two, mode="soft")


def test_a_solver_for_a_slot_that_a_law_lacks_is_refused(two):
    """It would have no effect."""

    class Plugin:
        @hookimpl
        def dyn_control_modes(self):
            return [ControlMode("inertia", MASS_MATRIX, "crba", "not a law")]

    plugin = Plugin()
    dyn.default_registry().register(plugin, "inertia")
    try:
        with pytest.raises(dyn.SettingError, match="'crba' has no slot inverse_dynami"):
            _controller(two, mode="inertia", inverse_dynamics="rnea")
    finally:
        dyn.default_registry().unregister(plugin)


def test_a_mode_whose_slot_is_its_problem_takes_its_own_solver(two):
    """By its name as by default; a solver of another problem is refused."""

    class Plugin:
        @hookimpl
        def dyn_control_modes(self):
            return [ControlMode("weight", BIAS_FORCE, "bias", "weight", "bias_force")]

    plugin = Plugin()
    dyn.default_registry().register(plugin, "weight")
    try:
        auto, named = (
            _pushed(_controller(two, mode="weight", law_solver=x))
            for x in ("auto", "bias")
        )
        with pytest.raises(dyn.SignatureError, match="'gravity' solves gravity_force"):
            _controller(two, mode="weight", law_solver="gravity")
    finally:
        dyn.default_registry().unregister(plugin)
    assert named.any() and (named == auto).all()


@pytest.mark.parametrize("mode", ["computed_torque", "impedance", "gravity"])
def test_a_solver_that_a_mode_does_not_use_is_refused(two, mode):
    """The law of these modes is chosen by inverse_dynamics alone."""
    with pytest.raises(dyn.SettingError, match="law_solver is 'zz'; valid for mode"):
        _controller(two, mode=mode, law_solver="zz")


@pytest.mark.parametrize(
    ("name", "said"), [("zz", "called 'zz'"), ("aba", "'aba' sol")]
)
def test_a_wrong_solver_is_refused_in_a_mode_without_its_slot(two, name, said):
    """Nothing that is misspelt passes, also where it has no effect."""
    with pytest.raises(dyn.DynError, match=said):
        _controller(two, mode="cartesian", inverse_dynamics=name)


def test_the_modes_of_this_project_are_what_the_controller_says():
    """Names, order and flags; a mode is exportable where it has a cycle."""
    modes = dyn.default_registry().modes()
    assert list(modes)[:3] == ["computed_torque", "impedance", "gravity"]
    exported = {mode.problem for mode in modes.values() if mode.exportable}
    assert exported == {problem for _, problem, *_ in CYCLES.values()}
    assert all(f"{m.solver}_cycle" in CYCLES for m in modes.values() if m.exportable)
    assert [name for name, mode in modes.items() if mode.stiff] == ["impedance"]
    assert [name for name, mode in modes.items() if mode.tracks] == ["computed_torque"]
    for mode in modes.values():
        assert dyn.solver(mode.solver).signature == mode.problem
        assert mode.follows or mode.status
