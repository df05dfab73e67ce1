"""Wrong arguments of the library: each error is ours and says what would be valid."""

import contextlib
import copy
import inspect
import math
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from enum import Enum
from re import escape

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import require
from dyn_core.batch import map_rows
from dyn_core.control import Payload, Rules
from dyn_core.errors import ModelWarning, NearAttributes
from dyn_core.identification import evaluate
from dyn_core.kinematics import InverseKinematics
from dyn_core.model.checks.robots import in_degrees
from dyn_core.recordings import (
    MotionRecord,
    forward_dynamics,
    inverse_dynamics,
    read_motion,
    run_record,
    write_motion,
)
from dyn_core.reports import write_report
from dyn_core.simulation import loop_report, simulator
from dyn_core.simulation.rollout import Rollout
from dyn_core.spatial import Force, Vector
from dyn_core.tasks import RobotTask
from dyn_core.view.show import run_of


def _run(model, controller=None, duration=0.004, **settings):
    settings = {"progress": False, "engine": "graph", **settings}
    return dyn.simulate(model, controller, duration=duration, **settings)


SETTINGS = [  # settings of simulate, what is said
    ({"duration": -1}, "duration is -1; valid: a finite number of seconds, 0 or more"),
    ({"duration": np.nan}, "duration is nan; valid"),
    ({"duration": np.inf}, "duration is inf; valid"),
    ({"duration": "x"}, "duration is 'x'; valid"),
    ({"period": "a"}, "period must be > 0 and finite, got 'a'"),
    ({"command_timeout": None}, "command_timeout must be > 0 and finite, got None"),
    ({"substeps": 1.5}, "substeps must be >= 1 and whole, got 1.5"),
    ({"substeps": True}, "substeps must be >= 1 and whole, got True"),
    (
        {"dt": 1e-3},
        "no setting is called 'dt'; .*valid for simulate: period, step, .*engine, ",
    ),
    ({"perid": 1e-3}, "did you mean 'period'"),
    ({"qo": [0.0, 0.0]}, "did you mean 'q0'"),
    ({"durration": 1.0}, "did you mean 'duration'"),
    (
        {"world": {}, "step": "rk4"},
        "step changes nothing beside a world; valid: stepper= of dyn.World",
    ),
    (
        {"world": "floor", "forward_dynamics": "aba"},
        "forward_dynamics changes nothing beside a world; valid: solver= of dyn.World",
    ),
    (
        {"world": "floor", "limit_stops": True},
        "limit_stops changes nothing beside a world; valid: limits= of dyn.World",
    ),
    (
        {"world": "floor", "stepp": "rk4"},
        "no setting is called 'stepp'; .*valid for simulate: period, subst",
    ),
    ({"prescribed": 3}, "prescribed is 3; valid: a list of joints"),
    ({"q0": "abc"}, "q0 needs 2 finite numbers, got 'abc'; valid: .*model.position"),
    ({"q0": {"joint1": 1}}, "q0 needs 2 .*; valid: an array, such as model.start()"),
    ({"qd0": ["a", 1]}, "qd0 needs 2 finite numbers"),
    ({"limit_stops": "no"}, "limit_stops is 'no'; valid: True, False"),
    ({"period": 1.0}, "duration is 0.004, less than half a period of 1 s; valid: 0"),
    (
        {"begin": print, "period": 4e-3},
        "begin is called with the second period, and the run has 1",
    ),
    ({"begin": 3}, "begin is 3; valid: a function of the time, or None"),
    ({"progress": "no"}, "progress is 'no'; valid: True, False"),
    (
        {"duration": 1e9, "period": 1e-9},
        "duration 1e.09 s has more than 100000000 periods of 1e-09 s; valid: a longer",
    ),
    ({"duration": 1e300, "period": 1e-300}, "has more than 100000000 periods"),
    (
        {"prescribed": ("joint1",), "forward_dynamics": "dense"},
        "forward_dynamics changes nothing where accelerations are prescribed",
    ),
]


def test_a_report_on_loops_is_of_a_robot():
    """A name in its place was an AttributeError."""
    with pytest.raises(dyn.UnsupportedError, match="loop_report is for a Model, not"):
        loop_report("two_link", [0.0, 0.0])


@pytest.mark.parametrize(("settings", "message"), SETTINGS, ids=str)
def test_bad_settings_of_a_simulation(shipped, settings, message):
    """Unknown names list the valid ones; values of the wrong kind are shown."""
    with pytest.raises(dyn.SettingError, match=message):
        _run(shipped["two_link"], **settings)


@pytest.mark.parametrize("world", [None, {"contacts": False}])
def test_a_start_beyond_a_limit_is_reported(shipped, world):
    """With the joint and how far; not where limits do not act."""
    model = shipped["two_link"]
    q0 = [model.upper[0] + 0.5, 0.0]
    message = "start is beyond the limits of joint joint1 by 0.5 rad: the first"
    with pytest.warns(ModelWarning, match=f"robot 'two_link': the {message}"):
        (warning,) = _run(model, world=world, q0=q0).warnings
    assert message in warning
    free = {"limit_stops": False}
    if world is not None:
        free = {"world": {"limits": False, "contacts": False}}
    assert _run(model, q0=q0, **free).warnings == ()
    assert _run(model, world=world).warnings == ()


@pytest.mark.parametrize("world", [None, {"half_spaces": []}])
def test_degrees_for_radians_are_named_as_such(shipped, world):
    """In the warning of a run, and in the error of one that fails."""
    degrees = [0, 45, 0, -90, 0, 90, 0]
    cause = r"is q0 in degrees\? the start is beyond the limits of joint joint4 by 86.9"
    with pytest.warns(ModelWarning, match=cause):
        warning = _run(shipped["arm7"], q0=degrees, world=world).warnings[0]
        assert warning.startswith("is q0 in degrees? ")
    if world is None:
        error = pytest.raises(dyn.NonFiniteError, match=rf"^{cause}.*; step at t = ")
        with error as caught, pytest.warns(ModelWarning):
            _run(shipped["arm7"], q0=degrees, duration=0.1)
        assert caught.value.name == "q_next"


@pytest.mark.parametrize("world", [None, {"half_spaces": []}])
def test_degrees_of_a_joint_without_limits_are_named_as_such(shipped, world):
    """Whole turns show them; a wheel that has turned a little is nobody's mistake."""
    model = shipped["cart_pole"]
    said = "{} of joint hinge is 90 rad, 14.3 turns; is {} in degrees?"
    with pytest.warns(ModelWarning, match=escape(said.format("the start", "q0"))):
        (warning,) = _run(model, q0=[0.0, 90.0], world=world).warnings
    assert warning == said.format("the start", "q0")
    for turned in (4 * np.pi, -12.0):
        assert _run(model, q0=[0.0, turned], world=world).warnings == ()
    with pytest.warns(ModelWarning, match=escape("-90 rad, -14.3 turns")):
        _run(model, q0=[0.0, -90.0], world=world)
    with pytest.warns(ModelWarning, match=escape(said.format("the lock", "lock"))):
        model.lock({"hinge": 90.0})


@pytest.mark.parametrize("world", [None, {"half_spaces": []}])
def test_degrees_per_second_are_named_as_such(shipped, world):
    """A start somewhat above the velocity limits is nobody's mistake."""
    qd0 = [0, 0, 90, 0, 0, 0, 0]
    (warning,) = _run(shipped["arm7"], qd0=qd0, world=world).warnings
    assert warning == (
        "is qd0 in degrees per second? the start has 41.4 times the velocity limit of"
        " joint joint3"
    )
    assert _run(shipped["arm7"], qd0=[3.0] * 7, world=world).warnings == ()


def test_positions_of_files_in_degrees_are_warned_of(shipped, tmp_path):
    """In what reads a CSV for a robot, and in what shows its rows."""
    model, t = shipped["two_link"], np.arange(4.0)
    q = np.array([[0.0, np.nan], [10.0, 1.0], [-45.0, 2.0], [30.0, 3.0]])
    record = MotionRecord.of_joints(model.joint_names, t, q)
    write_motion(record, tmp_path / "run.csv")
    said = r"is q in degrees\? q is beyond the limits of joint joint1 by 41.9 rad"
    with pytest.warns(dyn.errors.DynWarning, match=rf"run\.csv: {said}"):
        read_motion(tmp_path / "run.csv", model)
    with pytest.warns(dyn.errors.DynWarning, match=f"^{said}"):
        run_of(model, np.nan_to_num(q), t)


def test_a_slide_beyond_its_limits_hides_no_degrees():
    """The slide was farther beyond its limits, in m, and only that joint was asked."""
    model = dyn.load(
        """<robot name="r"><link name="a"/><link name="b"/><link name="c"/>
        <joint name="slide" type="prismatic"><parent link="a"/><child link="b"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
        <joint name="hinge" type="revolute"><parent link="b"/><child link="c"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
    )
    said = "is q in degrees? q is beyond the limits of joint hinge by 8 rad"
    for rows in ([[0.0, 9.0]], [[20.0, 9.0]]):
        assert in_degrees(model, "q", np.array(rows)) == said
    assert in_degrees(model, "q", np.array([[20.0, 6.0]])) == ""


def _line_of_joints():
    """Make a chain on a line whose normal has length 2."""
    bound = {"kind": {0: "line"}, "s": {0: (0.0, 2.0)}}
    return dyn.planar.make_chain([1.0], [1.0, 1.0], constraints=bound)


def _short_window():
    chain = dyn.planar.make_chain([1.0], [1.0, 1.0])
    x, v = [[0, 0], [1, 0]], [[0, 0], [0, 0]]
    dyn.planar.ChainSimulator(chain, x, v, dt=0.01, window=0.03, scheme="quantum")


POSE = [0.3, 0.0, 0.5, 0.0, 0.0, 0.0, 2.0]  # its quaternion has length 2
DOUBTFUL = {
    "pose": lambda arm: InverseKinematics(arm, "tool")(POSE, arm.neutral()),
    "poses": lambda arm: InverseKinematics(arm, "tool").many([POSE, POSE]),
    "load": lambda arm: dyn.load("arm7", lock={"joint4": 90.0}),
    "lock": lambda arm: arm.lock({"joint4": 90.0}),
    "simulate": lambda arm: _run(arm, q0=[90.0] * 7),
    "view": lambda arm: run_of(arm, [90.0] * 7),
    "lqr": lambda arm: dyn.lqr(arm, [90.0] * 7, 1.0, 1.0),
    "kalman": lambda arm: dyn.kalman(arm, [90.0] * 7, {"position": 1e-3}, period=1e-3),
    "turns": lambda arm: _run(dyn.load("cart_pole"), q0=[0.0, 90.0]),
    "turns of lqr": lambda arm: dyn.lqr(dyn.load("cart_pole"), [0.0, 90.0], 1.0, 1.0),
    "rules": lambda arm: Rules(filter_time=0.5),
    "replaced rules": lambda arm: replace(Rules(), filter_time=0.5),
    "former name": lambda arm: dyn.solver("old_name"),
    "chain": lambda arm: _line_of_joints(),
    "window": lambda arm: _short_window(),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_warnings_name_the_line_of_the_user(name, shipped, monkeypatch):
    """Not a line of the library, however deep in it the doubt arises."""
    monkeypatch.setattr(dyn.solver("aba"), "former", "old_name")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextlib.suppress(dyn.DynError):
            DOUBTFUL[name](shipped["arm7"])
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("world", [None, "floor"])
def test_a_start_with_a_scaled_quaternion_is_reported(shipped, world):
    """The run goes on with a unit quaternion; rounding is nothing to speak of."""
    model = shipped["quadruped"]
    q0 = model.neutral()
    q0[2], q0[7:] = 2.0, (0.0, 0.72, -1.44) * 4
    assert _run(model, q0=q0 * (1 + 1e-6), world=world).warnings == ()
    q0[6] = 2.0
    with pytest.warns(
        ModelWarning, match="quaternion of joint root_joint at the start"
    ):
        run = _run(model, q0=q0, world=world)
    assert "has the length 2; it is scaled to 1" in run.warnings[0]
    assert run.q[0, 6] == 1.0


def test_help_on_a_program_says_what_quaternions_are(shipped):
    """Of robots that have some, for solvers that take a position."""
    gravity, model = dyn.solver("gravity"), shipped["quadruped"]
    page = gravity.build(model, engine="graph").__doc__
    assert "Quaternions (joint root_joint) are (x, y, z, w), of unit length" in page
    assert "finite=True refuses others" in page and "model.normalize(q)" in page
    checked = gravity.build(model, engine="graph", finite=True).__doc__
    assert "others are refused" in checked
    assert "Quaternions" not in gravity.build(shipped["arm7"], engine="graph").__doc__


@pytest.mark.parametrize("kind", [dyn.Simulator, dyn.ContactSimulator])
def test_a_time_is_a_number(shipped, kind):
    """Joint forces or a word instead of the time are refused; NumPy's numbers are not."""
    robot = kind(shipped["two_link"])
    for wrong in (np.zeros(2), [0.0, 0.0], "now", None, True):
        with pytest.raises(dyn.SettingError, match="t is .*valid: the time, a number"):
            robot.advance(wrong)
    with pytest.raises(dyn.SettingError, match="now is 'soon'; valid: the time"):
        robot.advance(0.0, now="soon")
    robot.advance(np.float64(0.0))
    robot.advance(1, now=np.float32(1))
    assert not robot.paused


@pytest.mark.parametrize(
    ("robot", "joints", "said"),
    [
        ("arm7", {"joint4": -90}, "is position in degrees? position is beyond the lim"),
        ("cart_pole", {"hinge": 90}, "14.3 turns; is position in degrees?"),
        ("arm7", {"joint4": -2.0}, ""),
        ("cart_pole", {"hinge": 12.0}, ""),
    ],
)
def test_positions_by_name_in_degrees_are_asked_for(shipped, robot, joints, said):
    """As a start, a lock and inverse kinematics do."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        shipped[robot].position(joints)
    assert len(issued) == bool(said)
    assert all(said in str(x.message) for x in issued)


def test_velocities_by_name_in_degrees_are_asked_for(shipped):
    """Far beyond the limit of the joint."""
    with pytest.warns(ModelWarning, match=r"is velocity in degrees per second\?"):
        shipped["arm7"].velocity({"joint1": 90})


@pytest.mark.parametrize("world", [None, {"half_spaces": []}])
def test_joint_forces_without_a_motor_are_reported(shipped, world):
    """A base that is pushed hovers; rounding and joints with motors say nothing."""
    model = shipped["quadruped"]
    push = np.zeros(model.nv)
    push[5], push[6] = 131.0, 1.0
    said = "the controller returned 131 N for root_joint.5, which has no motor"
    with pytest.warns(ModelWarning, match=escape(said)):
        run = _run(model, lambda t, q, qd: push, world=world)
    assert [x for x in run.warnings if said in x and "valid: zeros there" in x]
    push[4], push[5] = 0.01, 0.0  # beside a motor's 1 N·m
    with pytest.warns(ModelWarning, match="returned 0.01 N for root_joint.4"):
        _run(model, lambda t, q, qd: push, world=world)
    push[4], push[5] = 0.0, 1e-12
    assert _run(model, lambda t, q, qd: push, world=world).warnings == ()
    assert _run(model, world=world).warnings == ()


@pytest.mark.parametrize("world", [None, {"contacts": False}])
def test_joint_forces_of_a_prescribed_joint_are_reported(shipped, world):
    """They have no effect; without them, or with zeros, there is nothing to say."""
    model, settings = shipped["two_link"], {"world": world, "prescribed": ["joint2"]}
    with pytest.warns(ModelWarning, match="joint forces of the controller have no"):
        run = _run(model, lambda t, q, qd: [0.0, 1.0], **settings)
    assert "no effect on joint2: the prescribed" in run.warnings[-1]
    passive = dyn.load("two_link", extras={"joints": {"joint2": {"passive": True}}})
    with pytest.warns(ModelWarning, match="joint forces of the controller have no"):
        run = _run(passive, lambda t, q, qd: [0.0, 1.0], **settings)
    assert not [x for x in run.warnings if "it acted" in x]
    assert _run(model, lambda t, q, qd: [1.0, 0.0], **settings).warnings == ()


def test_forces_on_bodies_are_numbers(shipped):
    """When they act, what is none is refused in words."""
    robot = dyn.ContactSimulator(shipped["two_link"], {}, engine="graph", f_ext="abc")
    with pytest.raises(
        dyn.ShapeError, match=r"f_ext: wanted shape \(2, 6\), got 'abc'"
    ):
        robot.advance(0.0)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"kind": "pin", "length": 1.0}, "length changes nothing of kind pin; valid: without it, or kind distance"),
        ({"kind": "distance", "length": 1.0, "axes": ["x"]}, "axes changes nothing of kind distance"),
        ({"kind": "axes", "axes": ["x", "x"]}, "axes are x, x; valid: each once"),
        ({"kind": "rolling_ball", "radius": 0.1, "axes": ["x", "y", "x"]}, "valid: each once"),
        ({"kind": "pin", "a": "link2"}, "both frames are on 'link2'; valid: two links"),
    ],
)  # fmt: skip
def test_entries_of_a_loop_that_change_nothing(shipped, entries, message):
    """Those of another kind, and a loop of one link."""
    with pytest.raises(dyn.ModelError, match=f"loop 'D': .*{message}"):
        shipped["two_link"].with_loops(dyn.make_loop("D", b="link2", **entries))


@pytest.mark.parametrize("option", [{"threads": 2}, {"wait": True}], ids=str)
def test_options_of_machine_code_are_refused_elsewhere(shipped, option):
    """Another engine was asked for, or the solver has none."""
    (name,) = option
    for engine in ("graph", "plain"):
        with pytest.raises(
            dyn.UnsupportedError, match=f"{name}=.*on engine '{engine}'"
        ):
            dyn.solver("rnea").build(shipped["two_link"], engine=engine, **option)

    class OneState(dyn.authoring.NumpySolver):
        name, signature = "one_state", dyn.problems.INVERSE_DYNAMICS

        def solve(self, model, q, qd, qdd, f_ext):
            return 0 * q

    with pytest.raises(dyn.UnsupportedError, match=f"{name}=.*in a NumpySolver; valid"):
        OneState().build(shipped["two_link"], **option)


def test_no_time_is_no_rows(shipped):
    """A duration of zero is a run without rows."""
    assert len(_run(shipped["two_link"], duration=0).t) == 0


def test_a_solver_is_no_function_and_says_how_it_is_built(shipped):
    """It can be called, only to say so: it is refused before anything is computed."""
    model, solver = shipped["two_link"], dyn.solver("rnea")
    usage = r"no function; valid: .* called as dyn\.solver\('rnea'\)\.build\(model\)"
    q = np.zeros((3, 2))
    parts = dict.fromkeys(("initial", "control", "observe", "reward"), solver)
    for refused in (
        lambda: dyn.simulate(model, solver, duration=0.0),
        lambda: dyn.simulate(model, begin=solver, duration=0.01),
        lambda: dyn.cost.custom(solver, 1.0),
        lambda: map_rows(solver.build(model), solver, count=3),
        lambda: RobotTask("task", model, **parts, action_bounds=((-1.0, 1.0),)),
    ):
        with pytest.raises(dyn.SettingError, match=usage):
            refused()
    with pytest.raises(dyn.SettingError, match="program is .*; valid: a Program, as"):
        map_rows(solver, q, q, q)


def test_a_controller_is_a_function_or_has_update(shipped):
    """Both drive the robot alike; anything else is refused, also wrong arguments."""
    model = shipped["two_link"]

    class Object:
        def update(self, t, q, qd):
            return [1.0, -2.0 * t]

    runs = [
        _run(model, controller) for controller in (Object(), Object().update, _constant)
    ]
    np.testing.assert_array_equal(runs[0].tau, runs[1].tau)
    np.testing.assert_array_equal(runs[2].tau, np.full((2, 2), 0.5))
    assert not _run(model).tau.any()
    for wrong in (3, "pd", Object, lambda t: 0.0):
        with pytest.raises(dyn.SettingError, match=r"valid: a function \(t, q, qd\)"):
            _run(model, wrong)


def _constant(t, q, qd):
    return np.full(2, 0.5)


@pytest.mark.parametrize("world", [None, {"contacts": False}])
def test_a_controller_that_returns_nothing_is_told_so(shipped, world):
    """A function without its `return` is refused; `update` may keep a command."""
    model = shipped["two_link"]
    expected = r"controller returned None at t = 0 s; valid: 2 joint forces.*=None"
    with pytest.raises(dyn.SettingError, match=expected):
        _run(model, lambda t, q, qd: None, world=world)

    class Mute:
        def update(self, t, q, qd):
            pass

    (warning,) = _run(model, Mute(), world=world).warnings
    assert "the controller returned no joint forces in the whole run" in warning

    class Slow:
        def update(self, t, q, qd):
            return [1.0, 2.0] if t == 0 else None

    run = _run(model, Slow(), world=world)
    np.testing.assert_array_equal(run.tau, [[1.0, 2.0]] * 2)
    assert run.warnings == ()


@pytest.mark.parametrize("tau", [np.array([1j, 0]), [0.0, 2 + 1e-9j]], ids=str)
def test_commands_are_real_numbers(shipped, tau):
    """An imaginary part is not dropped; where there is none, the type is no matter."""
    model = shipped["two_link"]
    with pytest.raises(
        dyn.ShapeError, match="command, .* wanted real numbers of shape"
    ):
        _run(model, lambda t, q, qd: tau)
    run = _run(model, lambda t, q, qd: np.array([0.5 + 0j, 0.5]))
    np.testing.assert_array_equal(run.tau, np.full((2, 2), 0.5))


@pytest.mark.parametrize("world", [None, {"half_spaces": []}])
def test_a_command_of_wrong_shape_is_one_of_the_controller(shipped, world):
    """Where a controller made it; the simulator's own `command` names only itself."""
    model = shipped["two_link"]
    said = r"^command, which the controller returned: wanted shape \(2,\), got shape "
    for tau, shape in ((0.0, r"\(\)"), (np.zeros(3), r"\(3,\)")):
        with pytest.raises(dyn.ShapeError, match=said + shape):
            _run(model, lambda t, q, qd, tau=tau: tau, world=world)
    with pytest.raises(dyn.ShapeError, match="^command: wanted shape"):
        dyn.Simulator(model, engine="graph").command(0.0, 0.0)


def test_a_command_that_is_not_finite_has_a_time_and_a_joint(shipped):
    """A law that divides by zero is found by both."""
    law = lambda t, q, qd: [0.0, 0.0 if t < 0.002 else math.nan]  # noqa: E731
    with pytest.raises(
        dyn.NonFiniteError, match="finite at t = 0.002 s at joint joint2"
    ):
        _run(shipped["two_link"], law)


def test_a_floating_base_has_forces_in_a_command(shipped):
    """Who gives those of the motors alone is told what else is wanted."""
    message = r"shape .18,., those at .0, 1, 2, 3, 4, 5., of joints of several .*12"
    with pytest.raises(dyn.ShapeError, match=message):
        _run(shipped["quadruped"], lambda t, q, qd: np.zeros(12))


def test_a_loop_is_made_by_a_function(shipped):
    """A name, or a list of loops, is no loop."""
    for wrong in ("left_foot", [dyn.make_loop("a", "point", "b")]):
        with pytest.raises(
            dyn.ModelError, match="a loop is .*valid: results of dyn.make_loop"
        ):
            shipped["quadruped"].with_loops(wrong)


def test_rollouts_take_numbers(shipped):
    """None, a function and imaginary parts are refused for each input."""
    model = shipped["two_link"]
    rollout = Rollout(model, engine="graph")
    good = {"q0": np.zeros(2), "qd0": np.zeros(2), "tau": np.zeros((3, 2)), "dt": 0.01}
    for name in good:
        for wrong in (None, print, 1j * np.ones(2)):
            with pytest.raises(dyn.ShapeError, match=f"{name}: wanted "):
                rollout.run(**{**good, name: wrong})


def test_parameters_of_one_number(shipped):
    """A number, an array of it and a list are the same; no strings, no wrong count."""
    model = shipped["two_link"]
    for damping in (0.25, np.float64(0.25), np.array(0.25), [0.25], 1 / 4):
        changed = model.with_values({"joint1.damping": damping})
        assert list(changed.damping[1]) == [0.25]
    for path, value, message in (
        ("joint1.damping", "a", "joint1.damping takes numbers, got 'a'"),
        ("joint1.damping", None, "joint1.damping takes numbers, got None"),
        ("gravity", 9.81, "gravity takes 3 numbers, got 1"),
        ("joint1.dampng", 1.0, "did you mean 'joint1.damping'"),
    ):
        with pytest.raises(dyn.ModelError, match=message):
            model.with_values({path: value})


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("jacobian", "frame"), ("frame_velocity", "frame"),
        ("frame_bias_acceleration", "frame"), ("operational_inertia", "frame"),
        ("cross_response", "moved"),
    ],
)  # fmt: skip
def test_an_option_that_must_be_given(shipped, name, option):
    """The error names the option and the links, when it is built."""
    message = rf"{name}: give {option}=, the name of a link; valid: base, link1, link2"
    with pytest.raises(dyn.UnsupportedError, match=message):
        dyn.solver(name).build(shipped["two_link"])
    assert f"{option}=<the name of a link>" in dyn.solver(name).describe()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["gravity", "gravity"], "inputs name gravity twice"),
        (["f_ext", "gravity", "f_ext"], "inputs name f_ext twice"),
        (3, "inputs 3; valid: names of optional inputs"),
        ([3], r"inputs \[3\]; valid: names of optional inputs"),
    ],
)
def test_inputs_of_a_build_are_names_each_once(shipped, inputs, message):
    """Refused when it is built."""
    with pytest.raises(dyn.UnsupportedError, match=message):
        dyn.solver("rnea").build(shipped["two_link"], inputs=inputs)


def test_a_misspelt_problem_is_guessed_like_a_solver():
    """The name of a problem with a default solver is valid where that of a solver is."""
    with pytest.raises(dyn.SolverNotFound, match="did you mean 'inverse_dynamics'"):
        dyn.solver("inverse dynamics")


def test_the_name_of_a_problem_without_a_default_points_to_its_solvers():
    """Such a problem is no solver: its solvers are listed."""
    message = "no solver is called 'contact_step'; .*valid for contact_step: contact_"
    with pytest.raises(dyn.SolverNotFound, match=message):
        dyn.solver("contact_step")


def test_random_positions_need_no_generator(shipped):
    """Another one at each call; a seed repeats it."""
    model = shipped["arm7"]
    assert np.any(model.random() != model.random())
    np.testing.assert_array_equal(model.random(3), model.random(3))
    inside = model.random()
    assert ((model.lower <= inside) & (inside <= model.upper)).all()


def test_a_world_is_a_name_a_file_or_a_mapping(shipped, tmp_path):
    """The same in Python as on the command line; another name lists what is valid."""
    path = tmp_path / "world.yaml"
    path.write_text("margin: 0.05\n")
    assert dyn.World.of("floor") == dyn.World() == dyn.World.of(None)
    for world in (
        path,
        str(path),
        "half_spaces:\n- {}\nmargin: 0.05",
        {"margin": 0.05},
    ):
        assert dyn.World.of(world) == dyn.World(margin=0.05)
        assert dyn.ContactSimulator(shipped["two_link"], world).world.margin == 0.05
    run = _run(shipped["two_link"], world="floor")
    assert run.reports[0][0].converged
    for wrong in ("flor", "", "a\0b"):
        with pytest.raises(dyn.ModelError, match="valid for a world: 'floor', a YAML"):
            _run(shipped["two_link"], world=wrong)
    for wrong in (3, True, ["floor"], np.zeros(3)):
        said = "world is .*valid: a mapping with fields of a World, .* or 'floor'"
        with pytest.raises(dyn.ModelError, match=said):
            _run(shipped["two_link"], world=wrong)
    with pytest.raises(dyn.ModelError, match="0.5; valid: newton.*'restitution': 0.5"):
        dyn.World(restitution=0.5)
    half_space = {"material": {"restitution": 0.5}}
    assert (
        dyn.World(half_spaces=[half_space]).half_spaces[0].material.restitution == 0.5
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"step": "rk5"}, "'rk5'; did you mean 'rk4'. valid for step: .*rk4"),
     ({"step": "aba"}, "'aba' solves forward_dynamics, not step; valid: .*rk4"),
     ({"forward_dynamics": "abba"}, "did you mean 'aba'. valid for forward_dynamics: ")],
)  # fmt: skip
def test_an_unknown_solver_of_a_run_lists_those_of_its_kind(shipped, wrong, message):
    """And no other of the 147."""
    with pytest.raises(dyn.DynError, match=message) as caught:
        _run(shipped["two_link"], **wrong)
    assert "admm" not in str(caught.value)


def test_a_world_refuses_a_solver_at_once():
    """When it is made, not in the first step."""
    with pytest.raises(dyn.SolverNotFound, match="did you mean 'admm'"):
        dyn.World(solver="adm")
    with pytest.raises(dyn.SignatureError, match="'rnea' solves inverse_dynamics"):
        dyn.World(solver="rnea")
    with pytest.raises(dyn.ModelError, match=r"solver is \[\]; valid: a name"):
        dyn.World.of({"solver": []})
    assert dyn.World(solver="lemke").solver == "lemke"


ARGUMENTS = {"message": "words", "element": "joint1", "name": "q", "wanted": "shape (2,)",
             "got": "shape (3,)", "known": ("aba", "dense"), "failures": ("x failed",),
             "problem": "forward_dynamics", "plugin": "p", "solver": "s (p)", "item": "j1",
             "rows": (3, 4), "residual": 1e-3, "setting": "period", "code": -2, "args": "words", "parts": "words", "kind": "velocity"}  # fmt: skip
ERRORS = [
    kind
    for kind in vars(dyn.errors).values()
    if isinstance(kind, type) and issubclass(kind, dyn.DynError)
]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_errors_keep_all_their_data_in_a_pickle(kind, protocol):
    """Another process raises the same error: words, type and attributes."""
    names = list(inspect.signature(kind.__init__).parameters)[1:]
    error = kind(*(ARGUMENTS[name] for name in names if name != "kwargs"))
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is kind
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_an_infeasible_problem_keeps_its_residual():
    """The error of a solver in another process says how far off it was."""
    error = pickle.loads(pickle.dumps(dyn.InfeasibleError("row 3", None, 0.25)))
    assert error.residual == 0.25


def test_what_is_no_number_is_no_state(shipped):
    """Positions, commands, and starts of what closes loops."""
    model = shipped["two_link"]
    robot = dyn.Simulator(model, engine="graph")
    for bad in (["a", "b"], [[1], [1, 2]], [10**400, 1]):
        for call in (
            lambda x: model.integrate(x, np.zeros(2)),
            lambda x: model.integrate(np.zeros(2), x),
            model.normalize,
            lambda x: dyn.close_loops(model, x),
            lambda x: robot.command(0.0, x),
        ):
            with pytest.raises(dyn.ShapeError, match="wanted numbers of shape"):
                call(bad)
    for joints, message in (
        ([1, 2], "position is .*valid: a mapping"),
        ({"joint1": "a"}, "position: joint1 is 'a'; valid: a number"),
        ({"joint1": np.nan}, "position: joint1 is nan; valid: a finite number"),
    ):
        with pytest.raises(dyn.ModelError, match=message):
            model.position(joints)


def test_a_run_without_enough_memory_is_refused(shipped, monkeypatch):
    """NumPy's words on sizes are not the user's."""

    def no_memory(*_):
        raise MemoryError("Unable to allocate 6.94 EiB for an array")

    monkeypatch.setattr(simulator.np, "full", no_memory)
    with pytest.raises(dyn.SettingError, match="a run of 2 periods needs more memory"):
        _run(shipped["two_link"])


@pytest.mark.parametrize("lock", [{3: 1.0}, {"joint1": 0.0, 3: 1.0}, {None: 0.0}])
def test_joints_to_lock_are_names(shipped, lock):
    """What is no name is no joint, whoever locks."""
    message = "lock: no moving joint is called '(3|None)'; valid: joint"
    with pytest.raises(dyn.ModelError, match=message):
        dyn.load_urdf(dyn.robots.path("two_link"), lock=lock)
    with pytest.raises(dyn.ModelError, match=message):
        shipped["two_link"].lock(lock)


def test_options_of_loading_are_of_their_type():
    """Folders and arguments of xacro are refused in words."""
    for choice, message in (
        ({"package_paths": 3}, "package_paths is 3; valid: a folder, or a list"),
        ({"package_paths": [3]}, "package_paths is .3.; valid"),
        ({"xacro_arguments": "a=b"}, "xacro_arguments is 'a=b'; valid: a mapping"),
    ):
        with pytest.raises(dyn.ModelError, match=message):
            dyn.load("arm7", **choice)


def test_points_of_an_option_are_numbers(shipped):
    """A single number is no point."""
    with pytest.raises(dyn.DynError, match="valid: a list of 3 numbers"):
        dyn.solver("point_impulse").build(
            shipped["two_link"], engine="graph", points=[("link2", 3)]
        )


def test_several_links_where_one_is_wanted_are_refused_as_such(shipped):
    """They were the name of one link in the message."""
    message = r"a link is \['link2', 'tool'\]; valid: the name of one link"
    with pytest.raises(dyn.ModelError, match=message):
        dyn.solver("jacobian").build(shipped["arm7"], frame=["link2", "tool"])


GUESSES = [  # where a setting was guessed, its name, the right words
    (dyn.World, "friction", "mu of a material: extras={'materials': "),
    (dyn.World, "mu", "half_spaces=.{'material': {'mu': 0.5}}."),
    (dyn.World, "floor", "a World has the floor z = 0; half_spaces=.* moves it"),
    (dyn.World, "ground", "a World has the floor z = 0"),
    (dyn.World, "gravity", "dyn.load.source, gravity=.0, 0, -1.6.."),
    (dyn.simulate, "gravity", "dyn.load.source, gravity="),
    (dyn.simulate, "floor", "contacts are those of a world: world='floor'"),
    (dyn.simulate, "contact_solver", r"world=dyn.World\(solver="),
    (dyn.simulate, "stepper", r"world=dyn.World\(.*stepper="),
    (dyn.simulate, "integrator", "did you mean 'step'"),
    (dyn.inverse_kinematics, "q0", "near= is the position that"),
    (dyn.load, "floating", "did you mean 'root_joint'"),
    (dyn.load, "fixed_base", "did you mean 'root_joint'"),
    (dyn.load, "mappings", "did you mean 'xacro_arguments'"),
]


@pytest.mark.parametrize(("call", "name", "said"), GUESSES)
def test_a_setting_that_is_guessed_leads_to_the_right_word(shipped, call, name, said):
    """Words of other simulators, whose nearest spelling is another setting."""
    model = shipped["two_link"]
    first = {dyn.simulate: (model,), dyn.load: ("two_link",),
             dyn.inverse_kinematics: (model, "tool", np.eye(4))}  # fmt: skip
    with pytest.raises(dyn.SettingError, match=f"called '{name}'.*{said}"):
        call(*first.get(call, ()), **{name: 1.0})
    if call is dyn.World:  # as a mapping, too, such as a file
        with pytest.raises(dyn.ModelError, match=f"called '{name}'.*{said}"):
            dyn.simulate(shipped["two_link"], world={name: 1.0}, duration=0.0)


@pytest.mark.parametrize(
    "read",
    [
        lambda it: dyn.load("two_link", extras={"materials": {"default": it}}),
        lambda it: dyn.World(half_spaces=[{"material": it}]),
    ],
)
def test_friction_of_a_material_leads_to_mu(read):
    """Its nearest spelling is restitution; a material has no static friction."""
    for key in ("friction", "static_friction"):
        with pytest.raises(dyn.ModelError, match=f"called '{key}'; .* mu; valid: mu"):
            read({key: 0.5})
    assert read({"mu": 0.5})


def test_a_decimal_comma_is_said_to_be_one(tmp_path):
    """YAML reads 0,5 in braces as 0 and a key 5."""
    file = tmp_path / "extras.yaml"
    for number in ("0,5", "0,08"):
        file.write_text(f"joints: {{joint1: {{damping: {number}}}}}", encoding="utf-8")
        with pytest.raises(
            dyn.ModelError, match=r"joint1: .*decimal point, as in 0\.5"
        ):
            dyn.load("two_link", extras=file)


def test_doctor_lists_its_own_arguments(shipped):
    """Those of dyn.load alone left out the one that was meant."""
    for robot in ("two_link", shipped["two_link"]):
        with pytest.raises(dyn.SettingError, match="did you mean 'samples'.*meshes"):
            dyn.doctor(robot, sample=3)


def test_the_words_of_a_guess_are_right():
    """What the sentences above name is read."""
    extras = {"materials": {"default": {"mu": 0.5}}}
    model = dyn.load("quadruped", extras=extras, gravity=[0, 0, -1.6])
    assert model.material("front_left_foot").mu == 0.5
    assert model.parameter("gravity") == [0, 0, -1.6]
    world = dyn.World(half_spaces=[{"material": {"mu": 0.5}}])
    assert world.half_spaces[0].material.mu == 0.5
    assert (
        dyn.World(half_spaces=[{"point": [0, 0, 0.1]}]).half_spaces[0].point[2] == 0.1
    )


def test_names_of_other_libraries_lead_to_their_page():
    """As dyn help does."""
    for name in ("computeGeneralizedGravity", "mj_fullM", "fkine"):
        with pytest.raises(dyn.SolverNotFound, match="docs/other_libraries.md"):
            dyn.solver(name)


ATTRIBUTES = [  # owner, attribute of another library, what is said
    ("model", "n", "no attribute 'n'; did you mean 'nv'"),
    ("model", "links", "did you mean 'frame_names'"),
    ("model", "lowerPositionLimit", "did you mean 'lower'"),
    ("model", "qpos0", "did you mean 'neutral'"),
    ("model", "random_configuration", "did you mean 'random'"),
    ("model", "rnea", r"algorithms: dyn.solver\(NAME\).build\(model\)"),
    ("run", "time", "no attribute 'time'; did you mean 't'"),
    ("run", "to_csv", "did you mean 'save'"),
    ("run", "contact_forces", "did you mean 'reports'"),
    ("run", "animate", "did you mean 'show'"),
    ("dyn", "load_robot", "did you mean 'load'"),
    ("dyn", "buildModelFromUrdf", "did you mean 'load'"),
]


@pytest.mark.parametrize(("owner", "name", "said"), ATTRIBUTES)
def test_an_attribute_of_other_libraries_leads_to_ours(shipped, owner, name, said):
    """An AttributeError still, whose text is made when it is read."""
    model = shipped["two_link"]
    run = _run(model) if owner == "run" else None
    what = {"model": model, "run": run, "dyn": dyn}[owner]
    assert not hasattr(what, name)
    with pytest.raises(AttributeError, match=said):
        getattr(what, name)
    assert pickle.loads(pickle.dumps(model)).nv == copy.deepcopy(model).nv


def test_an_attribute_that_is_asked_for_in_vain_costs_no_search(shipped):
    """`getattr(controller, "reference", None)` of each cycle listed all attributes."""

    class Listed(NearAttributes):
        def __dir__(self):
            raise AssertionError("listed")

    assert not hasattr(Listed(), "near")
    with pytest.raises(AttributeError) as caught:
        _ = shipped["two_link"].njoints
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and "did you mean 'nv'" in str(again)


def test_a_model_cannot_be_changed(shipped):
    """`model.gravity = ...` set an attribute that nothing reads."""
    model = shipped["two_link"]
    for name in ("gravity", "lower", "damping", "mass"):
        with pytest.raises(AttributeError, match=f"{name}: .*immutable.*with_values"):
            setattr(model, name, 1.0)
    with pytest.raises(dyn.ModelError, match=r"a Model comes from dyn.load\(source\)"):
        dyn.Model("arm7")
    copies = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for copied in (model, model.with_values({"gravity": [0, 0, 0]}), *copies):
        with pytest.raises(ValueError, match="read-only"):
            copied.lower[0] = 5.0
        np.testing.assert_array_equal(copied.lower, model.lower)


COPIES = {
    "reorder": lambda m: m.reorder(m.joint_names[::-1]),
    "lock after reorder": lambda m: m.reorder(m.joint_names[::-1]).lock({"joint1": 0}),
    "lock": lambda m: m.lock({"joint1": 0.1}),
    "drive": lambda m: m.drive("joint1", lambda t: (None, (0.0, 0.0, t))),
    "with_values": lambda m: m.with_values({"gravity": [0, 0, 0]}),
    "with_joint": lambda m: m.with_joint("joint1", m.joint[1]),
    "with_forces": lambda m: m.with_forces(lambda m, q, qd: [0.0] * m.nv),
    "resisting": lambda m: m.resisting(friction=False, springs=False),
    "copy": copy.copy,
}


@pytest.mark.parametrize("change", COPIES)
def test_limits_of_a_changed_copy_are_read_only(shipped, change):
    """After `reorder` they were not, nor in what was locked then."""
    other = COPIES[change](shipped["two_link"])
    for name in ("lower", "upper", "velocity_limit", "effort_limit"):
        assert not getattr(other, name).flags.writeable, name


class Labelled:
    """A table or a row of pandas, as far as NumPy and a Program see it."""

    def __init__(self, numbers, **labels):
        self.__dict__.update(labels, numbers=numbers)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numbers, dtype)


@pytest.mark.parametrize("label", ["columns", "index"])
def test_labels_in_another_order_than_the_joints_are_refused(shipped, label):
    """The numbers of a DataFrame were taken by place, whatever its columns say."""
    model = shipped["two_link"]
    rnea = dyn.solver("rnea").build(model, engine="graph")
    q, names = np.array([0.3, 0.7]), list(model.joint_names)
    right = rnea(Labelled(q, **{label: names}), q, q)
    np.testing.assert_array_equal(right, rnea(q, q, q))
    np.testing.assert_array_equal(rnea(Labelled(q, **{label: [0, 1]}), q, q), right)
    with pytest.raises(dyn.ShapeError, match=r"qd: wanted .*\[list\(model.joint_names"):
        rnea(q, Labelled(q, **{label: names[::-1]}), q)


def test_a_function_of_rows_takes_their_range(shipped):
    """A function of one row was a bare TypeError of Python."""
    rnea = dyn.solver("rnea").build(shipped["two_link"], engine="graph")
    for wrong in (lambda row: row, lambda first, last, step: first):
        with pytest.raises(
            dyn.SettingError, match=r"rows .*valid: a .*\(first, last\)"
        ):
            rnea.map(wrong, count=10)
    names = shipped["two_link"].joint_names[::-1]
    q = Labelled(np.zeros((3, 2)), columns=names)
    with pytest.raises(dyn.ShapeError, match="columns in the order of the joints"):
        rnea.map(q, np.zeros(2), np.zeros(2))


def test_types_of_numpy_are_a_dtype(shipped):
    """np.float32 was "a type"."""
    build = dyn.solver("rnea").build
    for dtype in (np.float32, np.dtype("float32"), "float32"):
        assert build(shipped["two_link"], dtype=dtype).dtype == np.float32
    assert build(shipped["two_link"], dtype=np.float64, engine="graph").dtype == float
    with pytest.raises(
        dyn.UnsupportedError, match="dtype the type int32; valid: float64"
    ):
        build(shipped["two_link"], dtype=np.int32)


def test_pinocchios_names_of_frames_lead_to_ours(shipped):
    """LOCAL_WORLD_ALIGNED is aligned; what is called WORLD there is world here."""
    model = shipped["two_link"]
    for theirs, ours in (("LOCAL_WORLD_ALIGNED", "aligned"), ("WORLD", "world")):
        with pytest.raises(
            dyn.UnsupportedError, match=f"Pinocchio's {theirs} is '{ours}'"
        ):
            dyn.solver("jacobian").build(model, frame="link2", reference=theirs)
    with pytest.raises(dyn.UnsupportedError, match="LOCAL_WORLD_ALIGNED is 'aligned'"):
        dyn.solver("jacobian").build(
            model, frame="link2", reference="local_world_aligned"
        )
    with pytest.raises(dyn.UnsupportedError, match="LOCAL_WORLD_ALIGNED is 'aligned'"):
        theirs = Enum("ReferenceFrame", "WORLD LOCAL LOCAL_WORLD_ALIGNED")
        reference = theirs.LOCAL_WORLD_ALIGNED  # as pin.LOCAL_WORLD_ALIGNED
        dyn.solver("jacobian").build(model, frame="link2", reference=reference)
    with pytest.raises(dyn.UnsupportedError, match="valid: local, world, aligned$"):
        dyn.solver("jacobian").build(model, frame="link2", reference="tool")


def test_a_name_where_a_file_is_wanted():
    """load_urdf reads files; names of robots are those of dyn.load."""
    with pytest.raises(
        dyn.ModelError, match=r"dyn\.load\('arm7'\) takes names of robots"
    ):
        dyn.load_urdf("arm7")
    with pytest.raises(dyn.ModelError) as caught:
        dyn.load_urdf("nowhere/arm7.urdf")
    assert "takes names" not in str(caught.value)


@pytest.mark.parametrize("wrong", ["arm7", None])
def test_what_is_no_model_is_refused(wrong):
    """A name is loaded first: functions of robots take Models."""
    z, word = np.zeros(7), repr(wrong)
    calls = [
        lambda: _run(wrong),
        lambda: dyn.Simulator(wrong),
        lambda: dyn.solver("rnea").build(wrong),
        lambda: dyn.ContactSimulator(wrong),
        lambda: dyn.identify(wrong, z, z, z, z),
        lambda: dyn.base_parameters(wrong),
        lambda: dyn.parameter_names(wrong),
        lambda: dyn.parameters_of(wrong),
        lambda: dyn.with_linear_parameters(wrong, z),
        lambda: dyn.close_loops(wrong, z),
        lambda: dyn.close_rates(wrong, z, z),
    ]
    for call in calls:
        with pytest.raises(
            dyn.UnsupportedError, match=rf"not for {word}; valid: .*dyn\.load"
        ):
            call()


def _of_vectors(model, q):
    return [None, *(dyn.authoring.tanh(q[i]) for i in model.bodies)]


def test_a_function_of_one_number_refuses_a_vector(shipped):
    """The error of an algorithm says how the function is taken of each entry."""
    gravity = dyn.problems.GRAVITY_FORCE
    wrong = dyn.authoring.TracedSolver("of_vectors", gravity, _of_vectors)
    message = (
        r"tanh takes one number, got Vector; of each entry: Vector\(map\(tanh, x\)\)"
    )
    with pytest.raises(dyn.TraceError, match=message):
        wrong.build(shipped["two_link"], engine="graph")(np.zeros(2))
    with pytest.raises(TypeError, match="sqrt takes one number, got str$"):
        dyn.authoring.sqrt("2")
    assert dyn.authoring.tanh(0.0) == 0.0


@pytest.mark.parametrize("engine", ["plain", "graph"])
@pytest.mark.parametrize(
    ("name", "part", "message"),
    [
        ("two_link", lambda S, x: S @ Force.zero(), r"S @ x takes 1 number.* got Force; .*S\.T @ f"),
        ("quadruped", lambda S, x: S @ Force.zero(), r"takes 6 numbers.* got Force; .*S\.T @ f"),
        ("two_link", lambda S, x: S @ Vector([x[0], x[0]]), "takes 1 number, .*got 2"),
        ("two_link", lambda S, x: S @ x[0], "takes 1 number, "),
        ("two_link", lambda S, x: Vector([None]), r"NoneType.* never set.*require\(\)"),
        ("two_link", lambda S, x: x[0] * require(x[0] < 9, dyn.SingularError, "x"), r"NoneType.*require\(\)"),
        ("two_link", lambda S, x: require(x[0] < 9, dyn.SingularError, "x") + 1.0, r"NoneType.*require\(\)"),
        ("two_link", lambda S, x: x**2, r"a Vector is a column.* x \* x"),
    ],
)  # fmt: skip
def test_slips_of_an_algorithm_are_told_in_its_words(
    shipped, engine, name, part, message
):
    """S for S.T, an entry without a number, the result of require, a power."""

    def slips(model, q):
        return [None, *(part(model.joint[i].S(q[i]), q[i]) for i in model.bodies)]

    model = shipped[name]
    wrong = dyn.authoring.TracedSolver("slips", dyn.problems.GRAVITY_FORCE, slips)
    with pytest.raises(dyn.TraceError, match=f"^slips.*{message}"):
        wrong.build(model, engine=engine)(model.neutral())


@pytest.mark.parametrize("engine", ["plain", "graph", "native"])
def test_numbers_of_numpy_are_numbers_in_an_algorithm(shipped, engine):
    """Its scalars enter operators; what it would have to compute is refused."""

    def scaled(model, q):
        parts = (np.float64(2) * x - (x + np.int64(1)) / np.float32(2) for x in q)
        return dyn.spatial.Vector(parts)

    def of_numpy(model, q):
        return [np.sin(x) for x in q]

    offered = dyn.authoring.TracedSolver, dyn.problems.GRAVITY_FORCE
    model, q = shipped["two_link"], np.array([0.3, 0.5])
    program = offered[0]("scaled", offered[1], scaled, by_joint=False)
    answer = program.build(model, engine=engine)(q)
    np.testing.assert_allclose(answer, 2 * q - (q + 1) / 2, atol=1e-15)
    if engine != "plain":
        with pytest.raises(dyn.TraceError, match="the functions of dyn_core.authoring"):
            wrong = offered[0]("of_numpy", offered[1], of_numpy, by_joint=False)
            wrong.build(model, engine=engine)(q)


@pytest.mark.parametrize("sine", [np.sin, math.sin])
def test_a_drive_of_foreign_functions_is_told_of_ours(shipped, sine):
    """The error of a driven joint and of a user's force names the library's sin."""
    model, message = shipped["two_link"], r"dyn_core.authoring( \(sin, cos|, not math)"
    with pytest.raises(dyn.TraceError, match=message):
        model.drive("joint1", lambda t: (None, (0.0, 0.1 * sine(5 * t), 0.0)))
    bent = model.with_forces(lambda model, q, qd: [sine(x) for x in q])
    with pytest.raises(dyn.TraceError, match=message):
        dyn.solver("rnea").build(bent, joint_springs=True)(*np.zeros((3, 2)))
    with pytest.raises(dyn.ModelError, match="drive of joint 'joint1' is 3; valid: a"):
        model.drive("joint1", 3)


def _by_slot(model, q, qd, tau, f_ext, inner):
    return inner(q, qd, tau, f_ext)


def test_a_slot_without_a_solver_says_where_one_is_named(shipped):
    """At a build, or as a default of the TracedSolver."""
    problem = dyn.problems.FORWARD_DYNAMICS
    settings = {"slots": {"inner": problem}}
    empty = dyn.authoring.TracedSolver("by_slot", problem, _by_slot, **settings)
    message = r"slot inner needs a Solver, got None; valid: .* in fills=\{'inner': "
    with pytest.raises(dyn.SignatureError, match=message):
        empty.build(shipped["two_link"], engine="graph")
    settings["fills"] = {"inner": dyn.solver("aba")}
    filled = dyn.authoring.TracedSolver("by_slot", problem, _by_slot, **settings)
    state = np.full((3, 2), 0.3)
    aba = dyn.solver("aba").build(shipped["two_link"], engine="graph")
    program = filled.build(shipped["two_link"], engine="graph")
    np.testing.assert_array_equal(program(*state), aba(*state))


def test_inverse_dynamics_of_loops_without_passive_joints(shipped):
    """All joints have motors: the refusal names the option, and what the file says."""
    loop = dyn.make_loop("rim", "point", shipped["planar3"].frame_names[-1])
    closed = shipped["planar3"].with_loops(loop).without_loops().with_loops(
        dyn.make_loop("rod", "distance", loop.b, length=0.5)
    )  # fmt: skip
    message = r"1 constraint rows and 0 passive .*active= .*model\.active_joints"
    with pytest.raises(dyn.UnsupportedError, match=message):
        dyn.solver("loop_inverse_dynamics").build(closed, engine="graph")


def test_none_and_complex_numbers_are_told_as_such(shipped):
    """None is not an empty array; a state of a run has no imaginary part to lose."""
    model = shipped["arm7"]
    q, qd = model.start(), np.zeros(model.nv)
    rnea = dyn.solver("rnea").build(model, engine="graph")
    for call in (lambda: rnea(None, qd, qd), lambda: model.integrate(None, qd)):
        with pytest.raises(dyn.ShapeError, match="q: wanted numbers .*, got None"):
            call()
    for name, value in (("q0", q + 1e-9j), ("qd0", qd + 1j)):
        with pytest.raises(dyn.SettingError, match=f"{name} needs 7 finite numbers"):
            _run(model, **{name: value})
    with pytest.raises(dyn.ModelError, match="lengths is .*j.*; valid: numbers"):
        dyn.planar.make_chain(lengths=np.array([0.5, 0.4j]), masses=(1, 1, 1))


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("global", "'global'; valid: local, world, al"),
        ("LOCAL", "Pinocchio's LOCAL is"),
    ],
)
def test_an_option_is_named_with_its_solver(shipped, reference, said):
    """Where a function of the solver checks its value, too."""
    with pytest.raises(
        dyn.UnsupportedError, match=f"^jacobian: option reference: {said}"
    ):
        dyn.solver("jacobian").build(shipped["arm7"], frame="tool", reference=reference)


@pytest.mark.parametrize(
    ("what", "name", "near"),
    [
        ("model", "njoints", "nv"),
        ("model", "lowerPositionLimit", "lower"),
        ("model", "effortLimit", "effort_limit"),
        ("model", "link_names", "frame_names"),
        ("model", "q0", "neutral"),
        ("model", "total_mass", "mass"),
        ("model", "joint_nmaes", "joint_names"),
        ("run", "time", "t"),
        ("run", "times", "t"),
        ("run", "torque", "tau"),
        ("plan", "t", "times"),
        ("plan", "K", "gains"),
        ("plan", "u", "tau"),
        ("hold", "gains", "K"),
        ("hold", "eigenvalues", "poles"),
        ("program", "to_c", "export"),
    ],
)
def test_unknown_attributes_lead_to_those_that_are_there(mistaken, what, name, near):
    """Of objects that users hold; the text is made when it is read."""
    assert not hasattr(mistaken[what], name) and hasattr(mistaken[what], near)
    with pytest.raises(AttributeError, match=f"'{name}'; did you mean .*'{near}'"):
        getattr(mistaken[what], name)


@pytest.fixture(scope="module")
def mistaken():
    """Objects of `cart_pole`, by what they are."""
    pole, up = dyn.load("cart_pole"), np.zeros(2)
    plan = dyn.plan(pole, [dyn.cost.effort(1.0)], duration=0.1, knots=2)
    return {
        "model": pole,
        "run": dyn.simulate(pole, duration=0.01, engine="graph"),
        "plan": plan.solve(up, up),
        "hold": dyn.lqr(pole, up, Q=1.0, R=1.0, motors=["slide"]),
        "program": dyn.solver("rnea").build(pole, engine="graph"),
    }


def test_an_algorithm_is_no_method_of_a_robot(mistaken):
    """There is a way to it; attributes of Python itself have Python's message."""
    with pytest.raises(AttributeError, match=r"dyn\.solver\(NAME\)\.build\(model\)"):
        mistaken["model"].crba(np.zeros(2))
    with pytest.raises(AttributeError, match="__array__'$"):
        str(mistaken["model"].__array__)
    error = pytest.raises(AttributeError, getattr, mistaken["run"], "times").value
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_error_of_a_property_is_its_own():
    """It is no unknown attribute."""

    class Broken(dyn.errors.NearAttributes):
        @property
        def sound(self):
            return [].missing

    with pytest.raises(AttributeError, match="'list' object has no attribute"):
        str(Broken().sound)


def test_objects_are_printed_in_a_line_or_two(mistaken):
    """Regulator and Estimator printed all their arrays."""
    pole, up = mistaken["model"], np.zeros(2)
    noise = {"position": 1e-3}
    seen = dyn.kalman(pole, up, noise, period=0.01, effort_noise=0.1, motors=["slide"])
    assert "K, cost, poles" in repr(mistaken["hold"])
    assert "each 0.01 s" in repr(seen) and len(repr(seen)) < 200
    plan = dyn.plan(pole, [dyn.cost.effort(1.0)], duration=0.1, knots=2)
    assert repr(plan) == "<Plan of 'cart_pole' by box_fddp: 2 knots of 0.05 s, 1 costs>"


def test_a_package_of_this_library_is_no_attribute_before_its_import():
    """`dyn.envs` without `import dyn_core.envs`."""
    code = "import dyn_core as dyn; dyn.envs"
    said = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert "valid: import dyn_core.envs" in said.stderr


def test_costs_of_other_words_lead_to_ours():
    """`terminal`, a time that effort does not have, a number in place of a list."""
    arm, cost = dyn.load("two_link"), dyn.cost
    with pytest.raises(dyn.SettingError, match="'terminal'; did you mean 'end'"):
        cost.velocity(1.0, when="terminal")
    with pytest.raises(dyn.SettingError, match="no setting is called 'when'.*effort"):
        cost.effort(1.0, when="end")
    with pytest.raises(AttributeError, match="'position'; did you mean 'pose'"):
        _ = cost.position
    for function, message in (
        (lambda model, q, qd, tau: q[0] * q[0], r"is one number; valid: .* \[x\]"),
        (lambda model, q, qd, tau: [q[0], None], r"\[%0, None\]; valid: a list"),
        (lambda model, q, qd, tau: [q], r"is \[Vector\(.*\]; valid: a list"),
        (lambda model, q, qd, tau: [q[1][0]], r"Vectors; split_q\(model, q\) of "),
    ):
        with pytest.raises(dyn.SettingError, match=message):
            dyn.plan(arm, [cost.custom(function)], duration=0.1, knots=2)


def test_a_cost_of_the_end_reads_no_joint_forces():
    """There are none at the last state: what a residual made of them was silently 0."""
    arm, custom = dyn.load("two_link"), dyn.cost.custom
    for function in (
        lambda model, q, qd, tau: tau,
        lambda model, q, qd, tau: [q[0], qd[1] + tau[1] * q[0]],
    ):
        with pytest.raises(dyn.SettingError, match="reads tau, .*valid: when="):
            dyn.plan(arm, [custom(function, when="end")], duration=0.1, knots=2)
        for when in ("running", "always"):
            dyn.plan(arm, [custom(function, when=when)], duration=0.1, knots=2)
    at_rest = custom(lambda model, q, qd, tau: [q[0], *qd], when="end")
    dyn.plan(arm, [at_rest], duration=0.1, knots=2)


def test_a_simulator_is_advanced_not_stepped(shipped):
    """`step` names a solver there; other libraries step by it."""
    robot = dyn.Simulator(shipped["two_link"], engine="graph")
    with pytest.raises(dyn.SettingError, match=r"valid: command\(t, tau\), .*advance"):
        robot.step(np.zeros(2))
    assert robot.step == "semi_implicit_euler"
    copied = pickle.loads(pickle.dumps(robot.step))
    assert copied == robot.step and f"{copied}" == "semi_implicit_euler"
    world = dyn.ContactSimulator(shipped["two_link"], engine="graph")
    for name in ("step", "set_torque"):
        with pytest.raises(AttributeError, match="'advance'|valid: command"):
            getattr(world, name)


def test_a_dict_in_place_of_an_array_leads_to_the_model(shipped):
    """Of a Program, and of functions of states."""
    model, z = shipped["two_link"], np.zeros(2)
    rnea = dyn.solver("rnea").build(model, engine="graph")
    named = dict.fromkeys(model.joint_names, 0.1)
    for call in (
        lambda: rnea(named, z, z),
        lambda: rnea(z, named, z),
        lambda: model.integrate(named, z),
        lambda: dyn.Simulator(model, engine="graph").command(0.0, named),
    ):
        with pytest.raises(dyn.ShapeError, match=r"of a dict: model\.position\(q\), "):
            call()


def test_parts_of_a_pose_and_complex_states_are_told_as_such(mistaken):
    """A rotation and a point are no pose; feedback has no imaginary part."""
    reach = InverseKinematics(dyn.load("two_link"), "link2", engine="graph")
    for parts in ((np.eye(3), [0.3, 0.0, 0.5]), ([0.3, 0.0, 0.5], [0, 0, 0, 1])):
        with pytest.raises(dyn.ShapeError, match=r"pose: wanted numbers of shape \(4,"):
            reach(parts)
    with pytest.raises(dyn.ShapeError, match="near: wanted real numbers .*complex"):
        reach.many(np.eye(4)[None], near=[1j, 0.0])
    for state in (([1j, 0], [0, 0]), ([[0, 0]], [[0, 1j]])):
        with pytest.raises(dyn.ShapeError, match="wanted real numbers .*complex"):
            mistaken["hold"].control(*state)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda model: dyn.solver("rnea").build(model, gravity=[0, 0, 0]), r"gravity; gravity belongs to the robot: dyn\.load"),
        (lambda model: dyn.solver("rnea").build(model, payload=1.0), r"inputs=\['LINK\.payload'\]"),
        (lambda model: dyn.plan(model, [dyn.cost.effort()], gravity=0.0), "gravity belongs to the robot"),
        (lambda model: _run(model, effort_limits=[1, 1]), "limits of joint forces belong to the robot"),
        (lambda model: dyn.Simulator(model, effort_limit=1), "limits of joint forces belong to the robot"),
        (lambda model: dyn.ContactSimulator(model, torque_limits=1), "limits of joint forces belong to the robot"),
        (lambda model: model.mass_matrix, r"dyn\.solver\('crba'\)\.build\(model\)\(q\)"),
        (lambda model: model.M, r"dyn\.solver\('crba'\)"),
        (lambda model: model.jacobian, r"dyn\.solver\('jacobian'\)"),
        (lambda model: dyn.mpc, r"dyn\.plan\(model, costs\).*mode='predictive'"),
        (lambda model: model.inertia, r"dyn\.solver\('crba'\).*model\.I has the inertias of the bodies"),
        (lambda model: dyn.check_derivatives, "the command dyn check-derivatives"),
        (lambda model: dyn.env("reach"), r"gymnasium\.make.*dyn_core\.envs.*docs/environments\.md"),
        (lambda model: dyn.ilqr, r"dyn\.plan\(model, costs\)"),
        (lambda model: _run(model).plot(what="q"), "no setting is called 'what'; valid for plot: path$"),
        (lambda model: _run(model).motion.plot(None, "a", None, 3, 4), "plot takes 4 arguments by position, got 5"),
    ],
)  # fmt: skip
def test_a_setting_of_another_place_is_told_where(shipped, mistake, said):
    """Of the robot, of the solvers, of a plan: where the name was looked for in vain."""
    with pytest.raises((dyn.DynError, AttributeError), match=said):
        mistake(shipped["two_link"])


@pytest.mark.parametrize("kind", [dyn.Simulator, dyn.ContactSimulator])
def test_a_payload_is_no_number(shipped, kind):
    """A mass alone was an AttributeError; a negative one is none."""
    robot = kind(shipped["two_link"], payload_link="link2", engine="graph")
    for wrong in (1.5, {"mass": 1.5}, "cup"):
        with pytest.raises(dyn.SettingError, match=r"valid: Payload\(mass, com, iner"):
            robot.attach(wrong)
    with pytest.raises(dyn.SettingError, match="mass -1 kg; valid: above 0"):
        robot.attach(Payload(-1.0))


def test_the_reference_of_a_law_is_recorded(shipped, tmp_path):
    """An attribute `reference` of the law; without one the run says that it has none."""
    model, goal = shipped["two_link"], np.array([0.1, 0.2])

    def law(t, q, qd):
        law.reference = goal * t
        return goal - q

    run = _run(model, law)
    np.testing.assert_array_equal(run.q_ref, goal * run.t[:, None])
    assert "qd, tau, q_ref by row" in repr(run) and run.plot() is not None
    law = lambda t, q, qd: goal - q  # noqa: E731
    run = _run(model, law)
    assert "q_ref (NaN: no law.reference)" in repr(run)
    for call in (lambda: run.plot(reference=1), lambda: run.plot(q_ref=goal)):
        with pytest.raises(dyn.SettingError, match=r"; law\.reference = goal, "):
            call()
    law.reference = goal
    np.testing.assert_array_equal(_run(model, law).q_ref, [goal, goal])
    law.reference = lambda t: goal
    with pytest.raises(dyn.ShapeError, match=r"reference: wanted .*shape \(2,\), got"):
        _run(model, law)


@pytest.mark.parametrize(
    "law",
    [lambda q, qd, t: 0 * q, lambda t, qd, q: 0 * q, lambda q, t: 0 * q,
     lambda x, v, time: 0 * x],
)  # fmt: skip
def test_arguments_of_a_law_in_another_order_are_refused(shipped, law):
    """Positions in place of the time were silently taken; further ones have any name."""
    _run(shipped["two_link"], lambda t, x, v, q=0.0: 0 * x)
    with pytest.raises(dyn.SettingError, match=r"valid: .*function \(t, q, qd\)"):
        _run(shipped["two_link"], law)


def test_a_run_is_a_motion(shipped, tmp_path):
    """What dyn.simulate returns is written and reported as it is."""
    run = _run(shipped["two_link"], duration=0.02)
    write_motion(run, tmp_path / "run.npz")
    assert read_motion(tmp_path / "run.npz").facts["robot"] == "two_link"
    write_report([run], ["first"], tmp_path / "run.html")
    assert "two_link" in (tmp_path / "run.html").read_text()
    tau = inverse_dynamics(shipped["two_link"], run, engine="graph").tau
    assert tau.shape == run.tau.shape
    run = _run(shipped["two_link"], duration=2.0)
    assert evaluate(shipped["two_link"], run).against == "effort"


def test_other_things_than_a_motion_and_a_robot_are_named(shipped, tmp_path):
    """The name of a robot or of a file, and both exchanged."""
    model, file = shipped["two_link"], tmp_path / "run.csv"
    run = _run(model)
    run.save(file)
    robot = "{} is for a Model, not for .*; valid: what dyn.load returns"
    motion = "{} is for a motion, not for .*; valid: read_motion.*, or a run of dyn.sim"
    zeros = np.zeros((3, 2))
    for call, kind, said in (
        (lambda: read_motion(file, "two_link"), robot, "read_motion"),
        (lambda: inverse_dynamics(run, model), robot, "inverse_dynamics"),
        (lambda: forward_dynamics(run, model), robot, "forward_dynamics"),
        (lambda: inverse_dynamics(model, str(file)), motion, "inverse_dynamics"),
        (lambda: forward_dynamics(model, zeros), motion, "forward_dynamics"),
        (lambda: write_motion(zeros, file), motion, "write_motion"),
        (lambda: write_report([str(file)], ["a"], "a.html"), motion, "a report"),
        (lambda: dyn.identify("two_link", *[zeros] * 4), robot, "identify"),
        (lambda: evaluate("two_link", run), robot, "evaluate"),
        (lambda: evaluate(model, str(file)), motion, "evaluate"),
        (lambda: dyn.parameters_of("two_link"), robot, "parameters_of"),
        (lambda: dyn.parameter_names("two_link"), robot, "parameter_names"),
    ):
        with pytest.raises(dyn.DynError, match=f"^{kind.format(said)}"):
            call()


def test_other_things_than_settings_are_named(shipped):
    """They were errors of Python from the inside."""
    model = shipped["two_link"]
    run, program = _run(model, duration=0.02), dyn.solver("rnea").build(model)
    for call, said in (
        (lambda: write_report(run, ["a"], "c.html"), r"a Recording; valid: .*\[run\]"),
        (
            lambda: write_report([run], 3, "c.html"),
            "names: 3; valid: a list of 1 names",
        ),
        (lambda: run_record(run, "law"), "settings is 'law'; valid: a mapping"),
        (
            lambda: run_record("run"),
            "a Recording, not for 'run'; valid: a run of dyn.s",
        ),
        (lambda: program.export(3), "folder is 3; valid: the path of a folder"),
    ):
        with pytest.raises(dyn.DynError, match=said):
            call()


def test_a_build_takes_names(shipped):
    """A frame by position was a TypeError of Python."""
    for name in ("rnea", "inverse_dynamics"):
        solver = dyn.solver(name)
        with pytest.raises(dyn.UnsupportedError, match=r"valid: build\(model, engine="):
            solver.build(shipped["two_link"], "graph")
    said = r"option frame; a list of names: frames=\['tool'\]; valid: engine"
    with pytest.raises(dyn.UnsupportedError, match=said):
        dyn.solver("forward_kinematics").build(shipped["arm7"], frame="tool")
    with pytest.raises(dyn.UnsupportedError, match=r"valid: build\(model, frame='too"):
        dyn.solver("jacobian").build(shipped["arm7"], "tool")


def test_a_matrix_of_gains_is_named_where_it_ends(shipped):
    """It is a batch of gains: the law returns as many commands as joints."""
    model, z = shipped["two_link"], np.zeros(2)
    program = dyn.solver("computed_torque").build(model, engine="graph")
    law = lambda t, q, qd: program(q, qd, z, z, z, np.eye(2), np.eye(2))  # noqa: E731
    with pytest.raises(dyn.ShapeError, match=r"one state.*kp, kd .*a number a joint"):
        _run(model, law)


def test_joints_without_prescribed_motion_have_no_accelerations(shipped):
    """The message had no name."""
    robot = dyn.Simulator(shipped["two_link"], engine="graph")
    with pytest.raises(dyn.ShapeError, match=r"prescribed=\['joint1'\]"):
        robot.accelerate(0.0, [1.0])
    assert robot.counters["acceleration of wrong size"] == 1


def test_sizes_and_the_floor_are_said(shipped):
    """A short start says how many numbers it has; World() has the floor."""
    with pytest.raises(
        dyn.SettingError, match=r"q0 needs 19 finite .*got shape \(12,\);"
    ):
        _run(shipped["quadruped"], q0=np.zeros(12))
    with pytest.raises(dyn.SettingError, match=r"qd0 needs 2 finite .*got shape \(1, "):
        _run(shipped["two_link"], qd0=np.zeros((1, 2)))
    with pytest.raises(dyn.ModelError, match=r"'floor'; valid: dyn\.World\(\)"):
        dyn.World("floor")


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda m: dyn.solver("computeJointJacobians"), "did you mean 'jacobian'"),
        (lambda m: dyn.solver("computeJointJacobian"), "did you mean 'jacobian'"),
        (lambda m: dyn.solver("getFrameJacobian"), "did you mean 'jacobian'"),
        (lambda m: dyn.solver("ikine_LM"), r"dyn\.inverse_kinematics\(model, frame, p"),
        (lambda m: dyn.ikine_LM, "did you mean 'inverse_kinematics'"),
        (lambda m: dyn.solver("integrate"), r"model\.integrate\(q, dv\)"),
        (lambda m: dyn.solver("difference"), r"model\.difference\(q0, q1\)"),
        (lambda m: dyn.RobotWrapper, "did you mean 'load'"),
        (lambda m: dyn.MultibodyPlant, "did you mean 'load'"),
        (lambda m: dyn.MjModel, "did you mean 'load'"),
        (lambda m: dyn.load_model, "did you mean 'load'"),
        (lambda m: dyn.buildModelFromUrdf, "did you mean 'load'"),
        (lambda m: m.getBodyId, "did you mean 'frame_names'"),
        (lambda m: m.getFrameId, "did you mean 'frame_names'"),
        (lambda m: m.getJointId, "did you mean 'joint_names'"),
        (lambda m: dyn.solver("rnea").build(m, engine="graph").export("out", form="ros2_control"), "dyn export SOLVER ROBOT --form ros2_control"),
        (lambda m: dyn.load("README.md"), "README.md: it is no XML.*valid: URDF, xacro, MJCF"),
    ],
)  # fmt: skip
def test_names_of_other_libraries_lead_to_ours(
    shipped, mistake, said, tmp_path, monkeypatch
):
    """Also a form of export that only the command has, and a file of no robot."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("# A robot\n")
    with pytest.raises((dyn.DynError, AttributeError), match=said):
        mistake(shipped["two_link"])
