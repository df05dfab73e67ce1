"""Parameters drawn for each row: they act as in a robot that is built with them."""

import math
import pickle
import re
import warnings

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="gymnasium is not installed")

import dyn_core as dyn
from dyn_core.envs import TaskEnv, TaskVectorEnv, robot_task
from dyn_core.errors import (
    DynWarning,
    ModelError,
    ModelWarning,
    SettingError,
    ShapeError,
)
from dyn_core.tasks import PayloadMass, Uniform, UniformFactor
from dyn_core.tasks.draws import draws_by_path

RESISTANCE = {
    "*.damping": UniformFactor(0.5, 2.0),
    "*.friction": UniformFactor(0.5, 2.0),
}
CASES = {
    "reach": {
        "*.mass": UniformFactor(0.8, 1.2),
        "*.inertia": UniformFactor(0.8, 1.2),
        "link7.mass": Uniform(0.5, 1.0),
        "tool.payload": PayloadMass(0.0, 2.0),
        "joint4.armature": Uniform(0.0, 0.1),
        **RESISTANCE,
    },
    "quadruped_stand": {
        "*.mass": UniformFactor(0.8, 1.2),
        "trunk.payload": PayloadMass(0.0, 3.0),
        **RESISTANCE,
    },
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", CASES)
def test_a_row_is_a_robot_built_with_its_values(name, full):
    """Five steps of rows, and of an environment whose robot has a row's numbers.

    With --full one of each row; building it takes seconds.
    """
    many = TaskVectorEnv(name, 3, values=CASES[name])
    many.reset(seed=2)
    task, states = many.task, many.get_state()
    drawn = list(task.draws)
    assert len(np.unique(states[:, task.layout[drawn[0]]])) == 3
    singles = {}
    for k, row in enumerate(states):
        if k != 1 and not full:
            continue
        values = {path: row[task.layout[path]].tolist() for path in drawn}
        single = TaskEnv(task, model=task.model.with_values(values), values={})
        single.set_state(row[: single.task.ns])
        singles[k] = single
    rng = np.random.default_rng(0)
    for _ in range(5):
        actions = rng.uniform(-1, 1, (3, task.na))
        seen, reward, *_ = many.step(actions)
        for k, single in singles.items():
            alone, gain, *_ = single.step(actions[k])
            np.testing.assert_allclose(seen[k], alone, rtol=1e-12, atol=1e-12)
            assert reward[k] == pytest.approx(gain, rel=1e-12, abs=1e-12)
    assert abs(seen[0] - seen[1]).max() > 1e-6


def test_an_axis_differs_by_row():
    """A branch on its symbol was an error from the inside."""
    axes = Uniform((0.0, 0.9, 0.0), (0.0, 1.0, 0.1))
    many = TaskVectorEnv("reach", num_envs=4, values={"joint2.axis": axes})
    many.reset(seed=0)
    seen, *_ = many.step(np.zeros((4, many.task.na)))
    assert np.isfinite(seen).all()


@pytest.mark.parametrize(
    ("low", "high", "asked"),
    [
        ((0, 0, 9.6), (0, 0, 10.0), r"gravity \(0, 0, 9.6\) m/s² is along \+z"),
        ((-0.1, -0.1, 9.6), (0.1, 0.1, 10.0), r"is along \+z"),
        ((0, 0, -990.0), (0, 0, -970.0), "cm/s² or mm/s²"),
        ((0, 0, -10.0), (0, 0, -9.6), ""),
        ((0, 0, -5.0), (0, 0, 9.8), ""),
        ((1.0, 0, 9.0), (2.0, 0, 9.8), ""),
    ],
)
def test_gravity_that_few_robots_have_is_asked_about(low, high, asked):
    """As dyn.load asks; a range on purpose, from below to above, is not."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        robot_task("reach", values={"gravity": Uniform(low, high)})
    said = [str(x.message) for x in issued if x.category is ModelWarning]
    assert len(said) == bool(asked)
    assert not asked or re.search(f"robot 'arm7': values draw .*{asked}", said[0])


def test_a_star_stands_for_all_that_moves():
    """UniformFactor keeps within its bounds; entries of their own come before a star."""
    model = dyn.load("arm7")
    task = robot_task("reach", values=CASES["reach"])
    masses = [path for path in task.draws if path.endswith(".mass")]
    assert masses == [
        *(f"link{k}.mass" for k in range(1, 7)),
        "tool.mass",
        "link7.mass",
    ]
    state = task.start(np.random.default_rng(1), 200)
    for path in ("link3.mass", "link3.inertia", "joint2.damping", "joint2.friction"):
        nominal = np.array(model.parameter(path))
        factors = (state[:, task.layout[path]] / nominal)[:, nominal != 0]
        assert np.ptp(factors, axis=1).max() < 1e-12  # one factor for all entries
        low, high = (0.8, 1.2) if path.startswith("link") else (0.5, 2.0)
        assert low <= factors.min() < low + 0.1 * (high - low)
        assert high >= factors.max() > high - 0.1 * (high - low)
    assert np.array_equal(task.start(np.random.default_rng(1), 200), state)
    copy = pickle.loads(pickle.dumps(task))
    assert np.array_equal(copy.start(np.random.default_rng(1), 200), state)


def test_a_star_leaves_out_the_path_of_the_whole_robot():
    """`armature` is one parameter of the robot, `*.armature` one of each joint."""
    task = robot_task("reach", values={"*.armature": Uniform(0.0, 0.1)})
    assert list(task.draws) == [f"joint{k}.armature" for k in range(1, 8)]


@pytest.mark.parametrize("kind", [Uniform, UniformFactor, PayloadMass])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (math.nan, 1.0),
        (0.0, math.inf),
        (2.0, 1.0),
        ("much", 1.0),
        (None, 1.0),
        ("1", "2"),
        ((), ()),
        ((0.0, 1.0), (2.0, 2.0, 2.0)),
        ([[0.0]], [[1.0]]),
    ],
)
def test_bounds_that_are_none_are_refused(kind, low, high):
    """A message names the distribution and what is valid."""
    with pytest.raises(SettingError, match=f"{kind.__name__}: low is .*low <= high"):
        kind(low, high)


@pytest.mark.parametrize("draw", [UniformFactor(0.3, 1.0), Uniform(0.3, 1.0)])
@pytest.mark.parametrize("path", ["joint1.friction", "*.friction"])
def test_no_draw_makes_friction_drive_a_joint(draw, path):
    """It would where it is below half the difference of both directions."""
    lopsided = {"joint1.friction": 1.0, "joint1.friction_asymmetry": -0.4}
    model = dyn.load("arm7").with_values(lopsided)
    said = "joint1.friction is drawn down to 0.3, below friction_asymmetry of 0.4"
    with pytest.raises(ModelError, match=said):
        draws_by_path(model, {path: draw})
    assert draws_by_path(model, {path: type(draw)(0.4, 1.0)})


@pytest.mark.parametrize("kind", [UniformFactor, PayloadMass])
def test_factors_and_payloads_are_not_negative(kind):
    """Uniform may be negative, such as gravity."""
    for low, high in ((-0.1, 1.0), ((0.8, 0.9), (1.0, 1.0)), (0.5, [1.0])):
        with pytest.raises(SettingError, match="0 <= low <= high"):
            kind(low, high)
    assert Uniform((0.0, 0.0, -12.0), (0.0, 0.0, -8.0)).low[2] == -12.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"link3.mass": Uniform(-1.0, 1.0)},
            "link3.mass: low is -1.0; valid: at least",
        ),
        ({"*.friction": Uniform(-1.0, 1.0)}, "joint1.friction: low is -1.0"),
        ({"joint1.friction_speed": Uniform(0.0, 1.0)}, "low is 0.0; valid: at least 1"),
        ({"*.stribeck_speed": Uniform(0.0, 1.0)}, "low is 0.0; valid: at least 1e-12"),
        (
            {"joint1.stiffness": UniformFactor(0.5, 1.0)},
            "joint1.stiffness is zero in robot",
        ),
        (
            {"*.stiffness": UniformFactor(0.5, 1.0)},
            r"\*.stiffness is zero in robot 'arm7'",
        ),
        ({"*.mas": UniformFactor(0.5, 1.0)}, r"'arm7' has '\*.mas'; valid: \*.mass"),
        (
            {"*.gravity": UniformFactor(0.5, 1.0)},
            r"'arm7' has '\*.gravity'; valid: \*.mass",
        ),
        ({"link9.mass": UniformFactor(0.5, 1.0)}, "link9"),
        ({"link3.mass": 2.0}, "values of 'link3.mass' are 2.0; valid: Uniform"),
        (
            {"tool.payload": PayloadMass},
            "values of 'tool.payload' are the type PayloadMass; valid",
        ),
        (
            {"tool.payload": UniformFactor(0.5, 1.0)},
            r"tool.payload is zero in robot .*; valid: PayloadMass\(low, high\)",
        ),
        ([("link3.mass", 2.0)], r"reach: values are \[.*; valid: a mapping"),
    ],
)
def test_impossible_values_are_refused_when_building(values, message):
    """What is wrong, and what would be valid."""
    with pytest.raises(ModelError, match=message):
        TaskEnv("reach", values=values)


@pytest.mark.parametrize(
    ("path", "draw"),
    [("link3.mass", PayloadMass(0.0, 1.0)), ("gravity", Uniform(-10.0, -9.0))],
)
def test_another_number_of_entries_is_refused_when_building(path, draw):
    """A payload has ten numbers, gravity three; a mass of a payload is a PayloadMass."""
    with pytest.raises(ShapeError, match=f"values of '{path}'.* numbers a row"):
        TaskEnv("reach", values={path: draw})
    wanted = r"wanted 10 numbers a row, as of PayloadMass\(low, high\), got 1"
    with pytest.raises(ShapeError, match=wanted):
        TaskEnv("reach", values={"tool.payload": Uniform(0.0, 2.0)})


@pytest.mark.parametrize("number", [math.nan, -0.5, math.inf])
def test_functions_that_draw_impossible_numbers_are_refused(number):
    """A function of one's own is checked whenever an episode begins."""
    values = {"link3.mass": lambda rng, n: np.full((n, 1), number)}
    message = (
        f"reach: values draw {number:g} for link3.mass; valid: finite numbers >= 0"
    )
    with pytest.raises(ModelError, match=message):
        TaskEnv("reach", values=values).reset()


def test_a_parameter_of_all_parts_is_led_to_its_star():
    """It was led to that of one joint, such as 'joint7.friction'."""
    for kind in ("mass", "friction"):
        with pytest.raises(ModelError, match=rf"valid: '\*\.{kind}' for all"):
            TaskEnv("reach", values={kind: UniformFactor(0.8, 1.2)})


def test_a_function_of_another_form_is_refused():
    """It was Python's TypeError, without the path."""
    task = robot_task("reach", values={"link3.mass": lambda rng: rng.uniform()})
    with pytest.raises(ModelError, match=r"'link3.mass': .*valid: a function \(rng, n"):
        task.start(np.random.default_rng(0), 1)


def test_factors_in_percent_are_asked_about():
    """80 to 120 make a robot a hundred times heavier."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        UniformFactor(0.8, 30.0)
    assert not caught
    with pytest.warns(DynWarning, match="in percent.* valid: 0.8 for 80 %"):
        UniformFactor(80.0, 120.0)
