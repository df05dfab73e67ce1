"""Costs of a plan: derivatives by differences, targets and weights, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg
from scipy.spatial.transform import Rotation

import dyn_core as dyn
from dyn_core.errors import DynWarning, ModelError, SettingError
from dyn_core.prediction import ControlProblem

cost = dyn.cost


def every_cost(model, rng):
    """Return a cost of each kind on links of a robot."""
    last, middle = model.frame_names[-1], model.frame_names[len(model.frame_names) // 2]
    pose = dyn.solver("forward_kinematics").build(model, frames=[last], engine="graph")
    target = pose(model.random(rng))[0]
    return {
        "pose": cost.pose(last, target, weight=[1, 2, 3, 4, 5, 6]),
        "orientation": cost.pose(middle, target, part="orientation"),
        "position": cost.pose(middle, [0.1, 0.2, 0.3], 2.0, part="position"),
        "posture": cost.posture(model.random(rng), 3.0),
        "velocity": cost.velocity(2.0, rng.normal(size=model.nv)),
        "effort": cost.effort(1e-3, rng.normal(size=model.nv)),
        "frame_velocity": cost.frame_velocity(last, 0.3, reference="local"),
        "centre_of_mass": cost.centre_of_mass([0.1, 0.2, 0.3], 5.0),
        "distance": cost.distance(last, [0.0, 0.0, 2.0], 0.1),
        "distance of links": cost.distance(last, middle, 9.0, at_least=True),
        "custom": cost.custom(
            lambda model, q, qd, tau: [qd[0] * tau[0], q[0] * q[1] + qd[1]], [1.0, 2.0]
        ),
    }


@pytest.mark.parametrize("name", ["arm7", "quadruped", "every_joint"])
def test_derivatives_of_each_cost_are_those_of_its_value(name):
    model = dyn.load(name)
    rng, nv, h = np.random.default_rng(1), model.nv, 1e-6
    state = [model.random(rng), rng.normal(size=nv), rng.normal(size=nv)]
    for kind, item in every_cost(model, rng).items():
        settings = item.settings(model, 1)[0]
        build = {"costs": [item], "engine": "graph"}
        value = dyn.solver("knot_cost").build(model, **build)
        slopes_of = dyn.solver("knot_cost_derivatives").build(model, **build)
        result = slopes_of(*state, settings)
        assert result.value == pytest.approx(value(*state, settings), rel=1e-14)
        gradient, slopes = np.concatenate([result.l_x, result.l_u]), []
        for k in range(3 * nv):
            ends = []
            for sign in (1.0, -1.0):
                moved, unit = list(state), sign * h * np.eye(nv)[k % nv]
                number = k // nv
                moved[number] = (
                    model.integrate(state[0], unit) if k < nv else state[number] + unit
                )
                ends.append(value(*moved, settings))
            slopes.append((ends[0] - ends[1]) / (2 * h))
        scale = max(1.0, np.abs(gradient).max())
        np.testing.assert_allclose(gradient, slopes, atol=2e-6 * scale, err_msg=kind)


def test_the_hessian_is_that_of_gauss_newton():
    """Of a linear residual it is exact, and of others positive semidefinite."""
    model, rng = dyn.load("arm7"), np.random.default_rng(2)
    costs = list(every_cost(model, rng).values())
    build = dyn.solver("knot_cost_derivatives").build
    state = model.random(rng), rng.normal(size=7), rng.normal(size=7)
    settings = np.hstack([item.settings(model, 1)[0] for item in costs])
    r = build(model, costs=costs, engine="graph")(*state, settings)
    whole = np.block([[r.l_xx, r.l_ux.T], [r.l_ux, r.l_uu]])
    np.testing.assert_allclose(whole, whole.T, atol=1e-12)
    assert np.linalg.eigvalsh(whole).min() > -1e-9
    effort = cost.effort(np.arange(1.0, 8.0))
    r = build(model, costs=[effort], engine="graph")(
        *state, effort.settings(model, 1)[0]
    )
    np.testing.assert_array_equal(r.l_uu, np.diag(np.arange(1.0, 8.0)))


def test_targets_may_vary_along_the_plan():
    model = dyn.load("arm7")
    rows = np.linspace(0, 1, 11)[:, None] * np.ones(7)
    problem = ControlProblem(
        model, [cost.posture(rows, 2.0, when="always")], duration=2.0, knots=10
    )
    running, ending = problem.settings({})
    np.testing.assert_allclose(running[:, :7], 2.0 * 0.2)
    np.testing.assert_array_equal(running[:, 7:], rows[:-1])
    np.testing.assert_array_equal(ending, np.r_[2.0 * np.ones(7), rows[-1]])
    running, _ = problem.settings({"posture": np.ones(7)})
    np.testing.assert_array_equal(running[:, 7:], 1.0)


@pytest.mark.parametrize("name", ["arm7", "quadruped"])
def test_a_given_target_is_as_one_of_the_cost_itself(name):
    """For each kind of cost, for each time it counts, alone and with rows."""
    model, rng, knots = dyn.load(name), np.random.default_rng(3), 3
    items = [replace(x, name=key) for key, x in every_cost(model, rng).items()]
    items = [
        replace(x, name=f"{x.name} {when}", when=when)
        for x in items
        for when in ("running", "end", "always")
        if x.kind != "effort" or when == "running"
        if x.kind != "custom" or when == "running"  # its function reads tau
    ]
    problem = ControlProblem(model, items, knots=knots)
    for k, item in enumerate(items):
        if item.kind == "custom":
            continue
        one = every_cost(model, rng)[item.name.rsplit(" ", 1)[0]].target
        if one is None:
            one = rng.normal(size=item.target_size(model))
        varying = np.array([np.atleast_1d(one)] * (knots + 1), float)
        last = varying[:, 0, 3] if varying.ndim == 3 else varying[:, -1]
        last += np.arange(knots + 1)  # a view
        for target in (one, varying):
            wanted = [*items[:k], replace(item, target=target), *items[k + 1 :]]
            wanted = ControlProblem(model, wanted, knots=knots).settings({})
            changed = problem.settings({item.name: target})
            for mine, other in zip(changed, wanted, strict=True):
                np.testing.assert_array_equal(mine, other, err_msg=item.name)


def test_targets_do_not_trace_functions_again():
    model, calls = dyn.load("arm7"), []
    mine = cost.custom(lambda model, q, qd, tau: calls.append(1) or [qd[0]])
    problem = ControlProblem(model, [mine, cost.posture()], knots=3)
    problem.settings({"posture": np.zeros(7)})
    before = len(calls)
    problem.settings({"posture": np.ones(7)})
    assert len(calls) == before > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cost.effort(-1.0), "weight is -1.0; valid: finite numbers, 0 or more"),
        (lambda: cost.effort(np.nan), "weight is nan"),
        (lambda: cost.posture(when="later"), "'later'; valid: always, running, end"),
        (lambda: cost.pose("link7", np.eye(4), part="all"), "valid: pose, orientation"),
        (lambda: cost.pose("link7", None), "target is empty"),
        (
            lambda: cost.frame_velocity("link7", reference="base"),
            "reference is 'base'; valid: aligned, local, world",
        ),
        (lambda: cost.custom(None), "function is empty; valid: a function"),
    ],
)
def test_a_cost_that_is_invalid_is_refused(make, message):
    with pytest.raises(SettingError, match=message):
        make()


@pytest.mark.parametrize("name", ["torque", "control"])
def test_a_cost_that_is_unknown_names_those_that_there_are(name):
    message = (
        f"no cost is called '{name}'; did you mean 'effort'.* valid: posture, .*pose"
    )
    with pytest.raises(AttributeError, match=message):
        getattr(dyn.cost, name)
    assert not hasattr(dyn.cost, "__wrapped__")


def test_a_custom_cost_may_divide_by_what_is_zero_at_rest():
    """Its entries are counted without a state; a start where it is not finite is."""
    model, slope = (
        dyn.load("two_link"),
        cost.custom(lambda m, q, qd, tau: [qd[0] / q[0]]),
    )
    costs = [slope, cost.velocity(1.0), cost.effort(1e-2)]
    task = dyn.plan(model, costs, duration=0.1, knots=5)
    assert task.solve([0.5, 0.0], [0.1, 0.0]).converged
    assert not task.solve([0.0, 0.0], [0.0, 0.0]).converged


def test_a_posture_in_degrees_is_asked_about():
    """A plan towards 57 turns ended at the limits, without a word."""
    model = dyn.load("arm7")
    for target in (np.full(7, 90.0), np.full((11, 7), 90.0)):
        with pytest.warns(DynWarning, match="cost posture: is the target in degrees"):
            cost.posture(target).read_target(model)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"costs": []}, "valid: a list of one cost or more"),
        ({"costs": [1.0]}, "valid: a list of one cost or more"),
        ({"knots": 1}, "knots is 1; valid: a whole number, 2"),
        ({"duration": 0.0}, "duration is 0"),
        ({"costs": [cost.posture(np.zeros(3))]}, "valid: 7 finite numbers"),
        ({"costs": [cost.posture(np.full(7, np.nan))]}, "valid: 7 finite numbers"),
        ({"costs": [cost.effort([1.0, 2.0])]}, "valid: one number, or 7"),
        ({"costs": [cost.posture(np.zeros((4, 7)))]}, "valid: 11 rows"),
        ({"passive": ["elbow"]}, "elbow"),
        ({"effort_limits": {"elbow": 1.0}}, "elbow"),
        ({"effort_limits": {"JOINT": (1.0, -1.0)}}, "valid: a number, 0 or more"),
        ({"effort_limits": {"JOINT": (np.inf, np.inf)}}, "valid: a number, 0 or more"),
        ({"effort_limits": {"JOINT": (-np.inf, -np.inf)}}, "valid: a number, 0"),
        ({"effort_limits": [1.0, 2.0]}, "effort_limits is .*by name of the joint"),
        ({"passive": "joint1"}, "passive is 'joint1'; valid: a list of names"),
        ({"passive": all}, "passive is a builtin.*; valid: a list of names"),
        ({"effort_limits": [10.0, 10.0]}, "valid: limits by name.* such as {'joint"),
        ({"passive": 3}, "passive is 3; valid: a list of names"),
        ({"passive": iter(["joint1"])}, "passive is a .*; valid: a list of names"),
        (
            {"passive": ["joint1"], "effort_limits": {"joint1": 5.0}},
            "'joint1' is passive and has effort_limits",
        ),
        (
            {"step_options": {"dtype": "float32"}},
            "step_options.*'dtype'; valid: engine",
        ),
        ({"step_options": {"costs": []}}, "'costs'; valid: engine"),
        ({"costs": [cost.custom(lambda model, q, qd, tau: 1.0)]}, "a list of numbers"),
        (
            {"costs": [cost.custom(lambda q: [q[0]], name="mine")]},
            r"cost mine: function <lambda>: .*takes 1 .*; valid: .*model, q \(7\), qd",
        ),
        (
            {"costs": [cost.custom(lambda model, q, qd, tau: [q[7]], name="mine")]},
            r"cost mine: function <lambda>: .*range; valid: a function of .*, q \(7\)",
        ),
        (
            {"costs": [cost.custom(lambda *_: [1.0 / 0.0], name="ratio")]},
            "cost ratio: function divides by the constant 0; valid: a divisor",
        ),
    ],
)
def test_a_problem_that_is_invalid_is_refused(choices, message):
    model = dyn.load("arm7")
    if "JOINT" in choices.get("effort_limits", ()):
        limits = choices["effort_limits"]
        first = model.joint_names[0]
        limits = {k.replace("JOINT", first): x for k, x in limits.items()}
        choices = {"effort_limits": limits}
    with pytest.raises(SettingError, match=message):
        ControlProblem(model, **{"costs": [cost.effort()], "knots": 10, **choices})


def test_poses_of_different_length_are_refused_by_the_name_of_the_cost():
    ragged = [cost.pose("link7", [[1, 2, 3], [1, 2]])]
    with pytest.raises(SettingError, match=r"cost link7: target is .*; valid: a pose"):
        dyn.plan(dyn.load("arm7"), ragged)


def test_an_unknown_link_is_refused_by_name():
    with pytest.raises(ModelError, match="gripper"):
        dyn.plan(dyn.load("arm7"), [cost.pose("gripper", np.eye(4))])


def test_values_of_costs_are_weighted_squares():
    """Residuals from SciPy's rotations and matrix logarithm, and other solvers."""
    model, rng = dyn.load("arm7"), np.random.default_rng(5)
    q, qd, tau = model.random(rng), rng.normal(size=7), rng.normal(size=7)
    build = {"frames": ["tool", "link4"], "engine": "graph"}
    poses = dyn.solver("forward_kinematics").build(model, **build)
    (tool, link), target = poses(q), poses(model.random(rng))[0]
    apart = np.linalg.norm(tool[:3, 3] - link[:3, 3])
    log = linalg.logm(np.linalg.inv(target) @ tool).real
    twist = np.r_[log[2, 1], log[0, 2], log[1, 0], log[:3, 3]]
    turn = Rotation.from_matrix(target[:3, :3].T @ tool[:3, :3]).as_rotvec()
    speeds, wanted = {}, np.arange(6.0)
    for axes in ("aligned", "local", "world"):
        program = dyn.solver("frame_velocity").build(
            model, frame="tool", reference=axes, engine="graph"
        )
        speeds[axes] = np.asarray(program(q, qd)) - wanted
    six, seven = np.arange(1.0, 7.0), np.arange(1.0, 8.0)
    far, near = apart + 0.1, apart - 0.1
    cases = [
        (cost.pose("tool", target, six), six @ twist**2),
        (cost.pose("tool", target, part="orientation"), turn @ turn),
        (
            cost.pose("tool", target, part="position"),
            ((tool - target)[:3, 3] ** 2).sum(),
        ),
        (cost.posture(tau, seven), seven @ (q - tau) ** 2),
        (cost.velocity(seven, tau), seven @ (qd - tau) ** 2),
        (cost.effort(seven, q), seven @ (tau - q) ** 2),
        (cost.distance("tool", "link4", near), 0.01),
        (cost.distance("tool", link[:3, 3], near), 0.01),
        (cost.distance("tool", "link4", far, at_least=True), 0.01),
        (cost.distance("tool", "link4", near, at_least=True), 0.0),
        *(
            (cost.frame_velocity("tool", six, wanted, reference=axes), six @ speed**2)
            for axes, speed in speeds.items()
        ),
    ]
    for item, doubled in cases:
        program = dyn.solver("knot_cost").build(model, costs=[item], engine="graph")
        value = program(q, qd, tau, item.settings(model, 1)[0])
        assert 2.0 * value == pytest.approx(doubled, rel=1e-8, abs=1e-12), item


def test_a_limit_of_zero_is_none():
    """As robot files write it."""
    text = """<robot name="r"><link name="base"/><link name="cart"/>
    <joint name="rail" type="prismatic"><parent link="base"/><child link="cart"/>
    <axis xyz="1 0 0"/><limit lower="-5" upper="5" velocity="0" effort="0"/></joint>
    </robot>"""
    bounds = ControlProblem(dyn.load_urdf(text), [cost.velocity()]).bounds
    assert bounds.tau_upper == -bounds.tau_lower == bounds.qd == np.inf
    assert (bounds.q_lower, bounds.q_upper) == (-5.0, 5.0)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (2 * np.eye(4), "last row"),
        (np.diag([2.0, 1.0, 1.0, 1.0]), "not orthonormal"),
        (np.full((4, 4), np.nan), "NaN"),
        (["a"], "numbers"),
    ],
)
def test_targets_that_are_no_pose_name_the_cost(target, message):
    """Of several costs a user must find the wrong one."""
    reach = dyn.cost.pose("tool", target, name="reach")
    with pytest.raises(SettingError, match=f"^cost reach: .*{message}"):
        reach.read_target(dyn.load("arm7"))
    said = (
        r"cost tool: pose: wanted .* or \(3,\) with part='position', got shape \(3,\)"
    )
    with pytest.raises(SettingError, match=said):
        dyn.cost.pose("tool", [0.4, 0.1, 0.5]).read_target(dyn.load("arm7"))
    with pytest.raises(SettingError, match="^cost velocity: target: wanted numbers"):
        dyn.cost.velocity(target=["a"]).read_target(dyn.load("arm7"))


@pytest.mark.parametrize(
    ("choices", "message"),
    [({"horizon": 1.0}, "option horizon; did you mean 'duration'"),
     ({"T": 1.0}, "option T; did you mean 'duration'"),
     ({"knot": 20}, "option knot; did you mean 'knots'"),
     ({"engine": "plain"}, "option engine; valid")],
)  # fmt: skip
def test_arguments_of_plans_are_named(choices, message):
    """Those of the problem and the solver; options of a build have no effect here."""
    with pytest.raises(dyn.UnsupportedError, match=message) as error:
        dyn.plan(dyn.load("two_link"), [cost.effort(1.0)], **choices)
    valid = str(error.value).rpartition("valid: ")[2].split(", ")
    assert valid[:4] == ["duration", "knots", "solver", "effort_limits"]
    assert "max_iterations" in valid
    assert "threads" not in valid


@pytest.mark.parametrize("engine", ["graph", "native"])
def test_joint_forces_that_are_no_number_are_not_clipped_to_a_bound(engine):
    """NaN became the upper bound: a plan with a failed feedback drove on with it."""
    model, ones = dyn.load("two_link"), np.ones(2)
    costs = (dyn.cost.effort(1.0),)
    program = dyn.solver("knot_policy").build(
        model, costs=costs, step="semi_implicit_euler", engine=engine
    )
    values = {"q": 0 * ones, "qd": 0 * ones, "lower": -ones, "upper": ones, "dt": 1e-3}
    sizes = {port.name: port.size for port in program.inputs}
    values["settings"] = np.ones(sizes["settings"])
    for tau, wanted in ((np.nan, np.nan), (5.0, 1.0), (-5.0, -1.0), (0.5, 0.5)):
        values["tau_plan"] = tau * ones
        result = program(*(values[port.name] for port in program.inputs))
        np.testing.assert_array_equal(result[2], wanted * ones)
