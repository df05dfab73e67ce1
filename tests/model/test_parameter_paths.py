"""Parameter paths: which there are, what they change, and derivatives by them."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.errors import ModelError, ModelWarning, UnsupportedError
from dyn_core.model import parameter_paths
from dyn_core.testing import scaled_error

GEARS = [
    {"joints": ["joint4", "joint5"], "ratio": -2.0, "offset": 0.1},
    {"joints": ["joint5", "joint6"], "ratio": 1.5, "offset": 0.2},
]
SPRING = {
    "name": "band", "b": "link5", "at_b": (0.0, 0.1, 0.05), "stiffness": 30.0,
    "rest_length": 0.2, "damping": 2.0,
}  # fmt: skip
EXTRAS = {
    "gears": GEARS,
    "point_springs": [SPRING],
    "springs": {"joint5": {"stiffness": 20.0, "rest": 0.1}},
}
PASSIVE = {"joint_friction": True, "joint_springs": True}
FOUR_BAR = Path(__file__).parents[2] / "examples/four_bar/four_bar.urdf"


def arm(**changes):
    """Return an arm with gears and springs, with other entries of its sidecar."""
    return dyn.load_urdf(robots.path("arm7"), extras={**EXTRAS, **changes})


@pytest.fixture(scope="module")
def every():
    """Return a robot with a screw and a universal joint among others."""
    other = {
        "shoulder": {"type": "helical", "pitch": 0.1},
        "tilt": {"type": "cylindrical"},
        "turn": {"type": "universal"},
    }
    return dyn.load_urdf(robots.path("every_joint"), extras={"joints": other})


def torque(model, inputs=()):
    """Return inverse dynamics with friction and springs as a Program."""
    return dyn.solver("rnea").build(model, engine="plain", inputs=inputs, **PASSIVE)


def draw(model, seed=0):
    rng = np.random.default_rng(seed)
    return model.random(rng), *rng.normal(size=(2, model.nv))


def with_joint(name, **entry):
    """Return a sidecar's entry of one joint."""
    return {"joints": {name: entry}}


CHANGES = {
    "joint3.plug": with_joint("joint3", plug={"xyz": [0.1, -0.2, 0.3], "rpy": [0.3, 0.1, 0.2]}),
    "joint5.stiffness": {"springs": {"joint5": {"stiffness": 7.0, "rest": 0.1}}},
    "joint5.rest": {"springs": {"joint5": {"stiffness": 20.0, "rest": -0.4}}},
    "joint5.ratio": {"gears": [{**GEARS[0], "ratio": 0.7}, GEARS[1]]},
    "joint5.offset": {"gears": [{**GEARS[0], "offset": 0.7}, GEARS[1]]},
    "joint6.ratio": {"gears": [GEARS[0], {**GEARS[1], "ratio": 0.7}]},
    "band.stiffness": {"point_springs": [{**SPRING, "stiffness": 11.0}]},
    "band.rest_length": {"point_springs": [{**SPRING, "rest_length": 0.5}]},
    "band.damping": {"point_springs": [{**SPRING, "damping": 0.5}]},
}  # fmt: skip
NEW = {
    "joint3.plug": (0.1, -0.2, 0.3, 0.3, 0.1, 0.2),
    "joint5.stiffness": 7.0,
    "joint5.rest": -0.4,
    "joint5.ratio": 0.7,
    "joint5.offset": 0.7,
    "joint6.ratio": 0.7,
    "band.stiffness": 11.0,
    "band.rest_length": 0.5,
    "band.damping": 0.5,
}


@pytest.mark.parametrize("path", NEW)
def test_a_changed_robot_is_the_one_loaded_so(path):
    """with_values equals the sidecar that says the same, forces and values alike."""
    loaded, changed = arm(**CHANGES[path]), arm().with_values({path: NEW[path]})
    state = draw(loaded)
    assert scaled_error(torque(changed)(*state), torque(loaded)(*state)) < 1e-13
    assert scaled_error(torque(arm())(*state), torque(loaded)(*state)) > 1e-6
    assert parameter_paths.numbers(changed, path) == list(np.ravel(NEW[path]))
    assert torque(arm(), [path])(*state, NEW[path]) == pytest.approx(
        torque(loaded)(*state), rel=1e-12, abs=1e-12
    )


def test_places_of_fixed_joints_move_links_and_what_hangs_on_them():
    """A robot in three fixed links with a moving joint behind them, as the file says."""

    def text(xyz, rpy):
        link = '<link name="{}"><inertial><origin xyz="0.1 0.2 0.3"/><mass value="{}"/><inertia ixx=".3" iyy=".2" izz=".25" ixy=".01" ixz="0" iyz="0"/></inertial></link>'
        joint = '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><origin xyz="{}" rpy="{}"/><axis xyz="0 1 0"/></joint>'
        links = "".join(link.format(n, k + 1) for k, n in enumerate("abcde"))
        rows = (
            ("j1", "continuous", "a", "b", "0 0 1", "0 0 0"),
            ("f1", "fixed", "b", "c", xyz, rpy),
            ("f2", "fixed", "c", "d", "0.1 0 0.2", "0 0.3 0"),
            ("j2", "continuous", "d", "e", "0 0.2 0", "0.1 0 0"),
        )
        return (
            f'<robot name="r">{links}{"".join(joint.format(*r) for r in rows)}</robot>'
        )

    moved = dyn.load_urdf(text("0.3 0.2 0.1", "0.1 0.2 0.3"))
    model = dyn.load_urdf(text("0.1 0 0", "0 0 0"))
    new = (0.3, 0.2, 0.1, 0.1, 0.2, 0.3)
    changed = model.with_values({"f1.origin": new, "d.mass": 4.0})
    state = draw(model)
    assert scaled_error(torque(changed)(*state), torque(moved)(*state)) < 1e-13
    pose = dyn.solver("forward_kinematics").build(
        moved, engine="plain", frames=list("cde")
    )
    mine = dyn.solver("forward_kinematics").build(
        changed, engine="plain", frames=list("cde")
    )
    assert scaled_error(mine(state[0]), pose(state[0])) < 1e-13
    locked = model.lock({"j2": 0.4}).with_values({"j2.origin": new})
    wanted = dyn.load_urdf(
        text("0.1 0 0", "0 0 0").replace(
            '<origin xyz="0 0.2 0" rpy="0.1 0 0"/>',
            '<origin xyz="0.3 0.2 0.1" rpy="0.1 0.2 0.3"/>',
        )
    ).lock({"j2": 0.4})
    state = draw(locked)
    assert scaled_error(torque(locked)(*state), torque(wanted)(*state)) < 1e-13


@pytest.mark.parametrize("name", ["slide", "shoulder", "tilt", "sheet"])
def test_another_axis_is_a_joint_about_it(every, name):
    """Directions count, not lengths; planar joints take the axes of their new plane."""
    axis = np.array((0.3, -0.5, 0.8))
    changed = every.with_values({f"{name}.axis": 2.0 * axis})
    i = every.body_of_joint(name)
    wanted = type(every.joint[i]).about(axis)
    for pitch in every.joint[i].geometry("pitch"):
        wanted = wanted.with_geometry("pitch", (pitch,))
    q = np.array(every.joint[i].random(np.random.default_rng(1)))
    vector = dyn.spatial.Vector(q.tolist())
    for one, two in (
        (changed.joint[i].X(vector).matrix().rows, wanted.X(vector).matrix().rows),
        (
            list(map(list, changed.joint[i].S(vector))),
            list(map(list, wanted.S(vector))),
        ),
    ):
        assert np.abs(np.array(one, float) - np.array(two, float)).max() < 1e-14


ONE_OF_EACH = (
    "joint3.plug", "tool_joint.origin", "tool_joint.plug", "joint3.axis", "joint5.ratio",
    "joint5.offset", "joint6.ratio", "joint5.stiffness", "joint5.rest",
    "band.stiffness", "band.rest_length", "band.damping",
)  # fmt: skip


def check_derivative(model, path, problem):
    """Compare the derivative along a random dp with the complex step."""
    rng, option = np.random.default_rng(5), parameter_paths.acting(model, path)
    choices = {option: True} if option else {}
    program = dyn.solver(f"{problem}_directional").build(
        model, engine="graph", parameter=path, **choices
    )
    q, qd, x = draw(model, 5)
    dp, still = rng.normal(size=program.inputs[-1].shape), np.zeros(model.nv)
    got = program(q, qd, x, still, still, still, dp)
    function = dyn.solver({"id": "rnea", "fd": "aba"}[problem]).build(
        model, engine="plain", inputs=[path], **choices
    )
    value = parameter_paths.value(model, path).reshape(np.shape(dp))
    wanted = function(q, qd, x, value + 1e-30j * dp)
    assert scaled_error(got[0], wanted.real) < 1e-12
    assert scaled_error(got[1], wanted.imag / 1e-30) < 1e-11
    assert np.abs(got[1]).max() > 1e-6


@pytest.mark.parametrize("path", ONE_OF_EACH)
@pytest.mark.parametrize("problem", ["id", "fd"])
def test_derivatives_by_each_kind(problem, path):
    check_derivative(arm(), path, problem)


@pytest.mark.parametrize("problem", ["id", "fd"])
def test_derivatives_by_geometry_of_joints(every, problem):
    paths = [
        path
        for path in parameter_paths.paths(every)
        if path.rpartition(".")[2] in ("axis", "axes", "pitch")
    ]
    assert {path.rpartition(".")[2] for path in paths} == {"axis", "axes", "pitch"}
    for path in paths:
        check_derivative(every, path, problem)


def with_slides():
    """Return the arm whose second and fourth joints slide."""
    text = robots.path("arm7").read_text()
    for name in ("joint2", "joint4"):
        text = text.replace(
            f'<joint name="{name}" type="revolute">',
            f'<joint name="{name}" type="prismatic">',
        )
    model = dyn.load_urdf(text)
    assert [joint.kind for joint in model.joint].count("prismatic") == 2
    return model


def one_of_each_kind(model, rng):
    """Return values by path: of each kind of path, and of each joint's own, one."""
    kinds = {}
    for path in parameter_paths.paths(model):
        kind = parameter_paths.kind_of(model, path)
        kinds.setdefault(kind.path, []).append(path)
    values = {}
    for kind, paths in kinds.items():
        geometry = kind.rpartition(".")[2] in ("axis", "axes", "pitch")
        for path in paths if geometry else [str(rng.choice(paths))]:
            now = np.asarray(model.value(path), float)
            change = 0.2 * rng.normal(size=now.shape)
            values[path] = now * (1 + abs(change)) + 0.01 + change * geometry
    return values


@pytest.mark.parametrize("engine", ["plain", "graph", "native"])
@pytest.mark.parametrize("name", ["arm7", "two_link", "slides", "every", "gears"])
def test_every_path_is_an_input_that_gives_the_changed_robot(every, name, engine):
    """rnea, aba and crba of each; an axis about z was a branch on a symbol."""
    made = {"slides": with_slides, "gears": arm, "every": lambda: every}
    model = made.get(name, lambda: dyn.load(name))()
    rng = np.random.default_rng(7)
    state = draw(model, 7)
    for path, value in one_of_each_kind(model, rng).items():
        option = parameter_paths.acting(model, path)
        changed = model.with_values({path: value})
        for solver in ("rnea", "aba", "crba"):
            if solver == "crba" and (option or path == "gravity"):
                continue  # refused: the mass matrix has no such input
            choices = {option: True} if option else {}
            arguments = state[:1] if solver == "crba" else state
            build = dyn.solver(solver).build
            asked = build(model, engine=engine, inputs=[path], **choices)
            actual = asked(*arguments, value.reshape(asked.inputs[-1].shape))
            wanted = build(changed, engine="plain", **choices)(*arguments)
            assert scaled_error(actual, wanted) < 1e-11, (solver, path)


def test_paths_of_loops_are_inputs_and_are_differentiated():
    """aba_loops with an input of the loop: the other robot, and differences."""
    model = dyn.load_urdf(robots.path("arm7"))

    def rod(length, at_a=(0.5, 0.2, 0.4, 0.0, 0.0, 0.0)):
        place = {"xyz": at_a[:3], "rpy": at_a[3:]}
        frame = {"xyz": (0.02, 0.01, 0.03)}
        return dyn.make_loop(
            "rod", "distance", "tool", at_a=place, at_b=frame, length=length
        )

    closed = model.with_loops(rod(0.9))
    q = dyn.close_loops(closed, np.full(7, 0.3), tries=5)
    qd, tau = np.random.default_rng(0).normal(size=(2, 7))
    for path, value in (
        ("rod.length", 0.8),
        ("rod.at_a", (0.4, 0.3, 0.2, 0.1, 0.2, 0.3)),
        ("rod.at_b", (0.0, 0.1, 0.1, 0.1, 0.2, 0.3)),
    ):
        now = parameter_paths.value(closed, path)
        program = dyn.solver("aba_loops").build(closed, engine="graph", inputs=[path])
        changed = closed.with_values({path: value})
        other = dyn.solver("aba_loops").build(changed, engine="graph")
        assert scaled_error(program(q, qd, tau, value), other(q, qd, tau)) < 1e-12
        plain = dyn.solver("aba_loops").build(closed, engine="plain", inputs=[path])
        dp, h = np.random.default_rng(1).normal(size=now.shape), 1e-4
        first = now[0] if len(now) == 1 else now
        dp = dp[0] if len(now) == 1 else dp
        slope = plain(q, qd, tau, first + 1e-30j * dp).imag / 1e-30
        ahead, back = (program(q, qd, tau, first + s * h * dp) for s in (1, -1))
        assert scaled_error(slope, (ahead - back) / (2 * h)) < 1e-5
        assert np.abs(slope).max() > 1e-3
    with pytest.raises(ModelError, match="'rod', of kind distance, has no radius"):
        closed.parameter("rod.radius")
    with pytest.raises(UnsupportedError, match="of a loop"):
        dyn.solver("parameter_jacobian").build(closed, paths=["rod.length"])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("joint3.dampng", "did you mean 'joint3.damping'"),
        ("lnk1.mas", "did you mean 'link1.mass'"),
        ("a.b", "no parameter path 'a.b'; valid: gravity"),
        (
            "joint3.pich",
            r"joint3.pich'(; did you mean 'joint3.(?!pitch)\w+'\?|;) valid",
        ),
        ("jont3.axis", "did you mean 'joint3'"),
        ("joint3.pitch", "of type revolute, has no pitch"),
        ("joint3.ratio", "follows no joint and has no ratio"),
        ("rod.length", "no loop is called 'rod'"),
        ("tol_joint.origin", "did you mean 'tool_joint'"),
        ("bund.rest_length", "did you mean 'band'"),
    ],
)
def test_what_is_not_there_is_refused_in_words(path, message):
    with pytest.raises(ModelError, match=message):
        arm().parameter(path)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, np.float64(np.nan)])
def test_a_parameter_is_finite(wrong):
    """A robot with a mass of NaN would have forces of NaN wherever it is used."""
    with pytest.raises(ModelError, match=r"link2\.mass .*(nan|inf).*valid: finite"):
        arm().with_values({"link2.mass": wrong})


@pytest.mark.parametrize("wrong", [-3.0, np.float64(-1e-9), [-1], np.array([-1.0])])
def test_a_mass_is_not_negative(wrong):
    """As in a file: joint forces of it have the wrong sign. Zero is a mass."""
    with pytest.raises(ModelError, match=r"link2\.mass is .*; valid: at least 0"):
        arm().with_values({"link2.mass": wrong})
    assert arm().with_values({"link2.mass": 0.0}).parameter("link2.mass") == [0.0]


BOUNDED = [x for x in parameter_paths.KINDS if x.minimum > -np.inf]


@pytest.mark.parametrize("kind", BOUNDED, ids=lambda kind: kind.path)
def test_numbers_below_their_minimum_are_refused(every, kind):
    """As in files, for each entry; with negative damping, a joint drives itself."""
    ends = {"at_a": {"xyz": (0.1, 0.0, 0.2)}, "at_b": {"xyz": (0.0, 0.0, 0.1)}}
    rod = dyn.make_loop("rod", "distance", "tool", length=0.5, **ends)
    ball = dyn.make_loop("roll", "rolling_ball", "tool", radius=0.3)
    models = arm(), every, arm().with_loops(rod, ball)
    model, path = next(
        (model, path)
        for model in models
        for path in parameter_paths.paths(model)
        if parameter_paths.kind_of(model, path) is kind
    )
    entries = [1.0] * len(model.parameter(path))
    assert model.with_values({path: entries}).parameter(path) == entries
    for wrong in (-1, np.float32(-1e-9), np.array(-0.5)):
        with pytest.raises(ModelError, match=f"{path} is .*; valid: at least"):
            model.with_values({path: [*entries[1:], wrong]})


@pytest.mark.parametrize(
    "values",
    [
        {"joint1.friction_asymmetry": 0.2},
        {"joint1.friction": 0.3, "joint1.friction_asymmetry": -0.4},
        {"joint1.friction": 0.04},
    ],
)
def test_dry_friction_drives_no_joint(values):
    """In both directions; of several changes the outcome counts."""
    model = arm(**with_joint("joint1", friction=[0.15, 0.05]))  # 0.1, asymmetry 0.05
    for asymmetry in (0.6, -0.5):
        both = {"joint1.friction_asymmetry": asymmetry, "joint1.friction": 0.6}
        assert model.with_values(both).parameter("joint1.friction") == [0.6]
    message = r"joint 'joint1': friction \[.*\] must be >= 0 in both directions"
    with pytest.raises(ModelError, match=message):
        model.with_values(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"link2.inertia": (1, 0, 0, 1, 0, 9)}, "'link2': .*breaks the triangle"),
    ],
)
def test_a_simulation_warns_of_changed_inertias_that_no_body_has(values, message):
    """As loading does; of the numbers of a file it warned already."""
    settings = {"duration": 0.002, "period": 0.001}
    with pytest.warns(ModelWarning, match=message):
        dyn.simulate(arm().with_values(values), **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        dyn.simulate(arm().with_values({"link2.mass": 3.0}), **settings)


def test_springs_must_act():
    with pytest.raises(UnsupportedError, match="joint_springs=True"):
        dyn.solver("rnea").build(arm(), inputs=["joint5.rest"])
    with pytest.raises(UnsupportedError, match="joint_springs=True"):
        dyn.solver("id_directional").build(arm(), parameter="band.damping")
    with pytest.raises(UnsupportedError, match="no joint springs"):
        dyn.solver("crba").build(arm(), inputs=["joint5.rest"])


def test_every_path_of_a_robot_is_listed_with_its_kind():
    model = arm()
    paths = parameter_paths.paths(model)
    listed = {parameter_paths.kind_of(model, path).path for path in paths}
    assert {"JOINT.ratio", "SPRING.rest_length", "JOINT.plug", "LINK.payload"} <= listed
    assert "time" not in paths and "joint3.ratio" not in paths
    for path in paths:
        assert model.unit(path)
        assert len(model.parameter(path)) == parameter_paths.size(model, path) > 0


def test_values_of_every_path_may_be_arrays(every):
    """What `value` returns goes back in: plain floats, and Programs are built of it."""
    for model in (arm(), every, dyn.load(FOUR_BAR)):
        values = {
            path: 1.0 * model.value(path)
            for path in parameter_paths.paths(model)
            if not path.endswith(".payload")
        }
        rnea = dyn.solver("inverse_dynamics")
        if model.loops:
            rnea = rnea.with_options(dependent="least_norm")
        for path, value in values.items():
            changed = model.with_values({path: value})
            numbers = parameter_paths.numbers(changed, path)
            assert {type(x) for x in numbers} <= {float}, path
        q = model.random(np.random.default_rng(1))
        if model.loops:
            q = dyn.close_loops(model, q)
        still = np.zeros(model.nv)
        expected = rnea.build(model, **PASSIVE)(q, still, still)
        changed = model.with_values(values)
        actual = rnea.build(changed, **PASSIVE)(q, still, still)
        np.testing.assert_allclose(actual, expected, atol=1e-9)
