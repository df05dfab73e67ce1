"""Options of build act, or are refused in words: no solver takes one and ignores it."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.planar.chain.files import load_chain_file
from dyn_core.problems import PASSIVE
from dyn_core.solving.build_options import read_option
from dyn_core.testing import random_model
from dyn_core.testing.case import Case

OPTIONS = [
    {"joint_friction": True}, {"joint_springs": True}, {"f_ext_frame": "base"},
    {"matrices": "packed"}, {"matrices": "sparse"},
]  # fmt: skip
SOLVERS = [dyn.solver(name) for name in dyn.solvers(references=True)]
ROBOTS = [solver for solver in SOLVERS if solver.signature.system == "robot"]


@pytest.fixture(scope="module")
def robot():
    """Return a tree with springs and friction in every joint, and H not constant."""
    kinds = ("revolute", "prismatic")
    return random_model(5, size=3, kinds=kinds, mimic=0.0, massless=0.0, branching=0.7)


def _results(solver, model, **choices):
    """Return the flat outputs at one state, with external forces where they go in."""
    names = [port.name for port in solver.signature.inputs if port.optional]
    inputs = ["f_ext"] if "f_ext" in names else []
    case = Case(solver, model, "plain", np.random.default_rng(0))
    program = case.program(inputs=inputs, **choices)
    return _flat(program(*case.arguments(program)))


def _flat(results):
    """Return all outputs in one array."""
    results = results if isinstance(results, tuple) else (results,)
    return np.concatenate([np.ravel(x) for x in results])


def _forced(solver):
    """Return a copy of a solver whose Signature says that both options act."""
    signature = replace(solver.signature, passive=PASSIVE)
    if hasattr(solver, "algorithm"):
        return replace(solver, signature=signature)
    forced = copy.copy(solver)
    forced.signature = signature
    return forced


@pytest.mark.parametrize("solver", ROBOTS, ids=lambda solver: solver.name)
def test_options_act_or_are_refused(solver, robot):
    """Each changes a number or a shape of the results; what build refuses would not."""
    if solver.refusal(robot) is not None:
        pytest.skip(f"{solver.name} does not serve the robot of this test")
    without = _results(solver, robot)
    for option in OPTIONS:
        (key,) = option
        try:
            results = _results(solver, robot, **option)
        except dyn.UnsupportedError as error:
            assert key in str(error)
            assert "valid: " in str(error) or "NumpySolver" in str(error)
            if key in PASSIVE:
                results = _results(_forced(solver), robot, **option)
                assert np.array_equal(results, without), f"{key} would act"
            continue
        same = results.shape == without.shape and np.array_equal(results, without)
        assert not same, f"{solver.name} takes {option} and ignores it"


NONSENSE = ("no such thing", 3.5j)


CHOOSING = [solver for solver in SOLVERS if solver.options]


@pytest.mark.parametrize("solver", CHOOSING, ids=lambda solver: solver.name)
def test_no_option_takes_nonsense(solver, robot):
    """What an option does not take is refused when building, whatever the engine."""
    systems = {
        "robot": robot,
        "constraint_layout": ConstraintLayout.of("box", "unilateral"),
        "planar_chain": load_chain_file(dyn.robots.chain_path("double_pendulum")).chain,
    }
    system = systems.get(solver.signature.system)
    if system is None or solver.refusal(system) is not None:
        pytest.skip("for another system than those of this test")
    for key in solver.options:
        for engine in ("graph", "plain"):
            for value in NONSENSE:
                with pytest.raises(dyn.DynError):
                    solver.build(system, engine=engine, **{key: value})


def test_options_without_effect_are_refused_at_build(robot):
    """Values that mean nothing, parameters and frames on which nothing depends."""
    joint, link = robot.joint_names[0], robot.frame_names[-1]
    one = {"inputs": ["f_ext"]}
    for name, choices, message in (
        ("joint_reactions", {"gravity": "off"}, "gravity is 'off'; valid: true, off"),
        ("jacobian", {"frame": link, "reference": "up"}, "valid: local, world, align"),
        ("rnea", {"f_ext_frame": "base"}, "valid: inputs=..f_ext.. with it"),
        ("rnea", {"inputs": [f"{joint}.damping"]}, "valid: joint_friction=True"),
        ("aba", {"inputs": [f"{joint}.friction"]}, "valid: joint_friction=True"),
        ("crba", {"inputs": [f"{joint}.damping"]}, "mass_matrix, which has no joint"),
        ("rnea", {"inputs": ["time"]}, "no joint is driven"),
        (
            "contact_euler",
            {"solver_options": {"speed": 3}},
            "no option is called .speed",
        ),
        ("id_derivatives", {"f_ext_fixed": "base"}, "without external forces"),
        ("id_derivatives", {**one, "f_ext_points": {link: (0, 0, 0)}}, "changes noth"),
    ):
        for engine in ("native", "graph", "plain"):
            with pytest.raises(dyn.UnsupportedError, match=message):
                dyn.solver(name).build(robot, engine=engine, **choices)
    kept = dyn.solver("rnea").build(
        robot, engine="graph", joint_friction=True, inputs=[f"{joint}.damping"]
    )
    assert kept.inputs[-1].name == f"{joint}.damping"


def _built(solver, robot, **choices):
    """Return the Program and arguments of a case, always the same ones."""
    case = Case(solver, robot, "graph", np.random.default_rng(0))
    program = case.program(**choices)
    return program, case.arguments(program)


@pytest.fixture(scope="module")
def moving():
    """Return a tree, and one closed by a rod, of hinges in space."""
    tree = random_model(0, size=6, kinds=("revolute",), mimic=0.0, massless=0.0)
    frame = tree.frame_names[-1]
    return tree, tree.with_loops(dyn.make_loop("rod", "distance", frame, length=0.5))


IGNORING = [solver for solver in ROBOTS if solver.signature.ignores]


@pytest.mark.parametrize("solver", IGNORING, ids=lambda solver: solver.name)
def test_parameters_that_no_answer_depends_on_are_refused(solver, moving):
    """What a Signature ignores is refused as an input, and truly not used."""
    robot = moving[solver.name == "loop_constraints"]
    frame, joint = robot.frame_names[-1], robot.joint_names[-1]
    _built(solver, robot, inputs=[f"{joint}.origin"])
    program, arguments = _built(solver, robot)
    wanted = _flat(program(*arguments))
    for what in solver.signature.ignores:
        owner = {"gravity": "", "armature": f"{joint}."}.get(what, f"{frame}.")
        path = owner + what
        with pytest.raises(dyn.UnsupportedError, match=f"{path} changes nothing in"):
            _built(solver, robot, inputs=[path])
        values = [1.5 * x + 0.1 for x in robot.parameter(path)]
        program, _ = _built(solver, robot.with_values({path: values}))
        np.testing.assert_array_equal(_flat(program(*arguments)), wanted)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"solver_options": {"speed": 3}}, "coulomb_newton: no option is called .speed"),
     ({"solver_options": {"tolerance": "x"}}, "option tolerance is 'x'"),
     ({"solver": "lemke", "solver_options": {"facets": 3}}, "valid: an even number"),
     ({"solver": "projected_gauss_seidel", "solver_options": {"relaxation": 2.0}},
      "valid: between 0 and 2")],
)  # fmt: skip
def test_options_of_a_worlds_solver_are_checked_when_it_is_made(settings, message):
    """Not at the first step, where a simulation would be lost."""
    with pytest.raises(dyn.UnsupportedError, match=message):
        dyn.World(**settings)
    with pytest.raises(dyn.UnsupportedError, match=message):
        dyn.World.of(settings)


@pytest.mark.parametrize("value", [None, "a", math.nan, [0.0, 0.0]])
def test_a_lock_is_a_position(value):
    """A joint cannot be locked at nothing."""
    with pytest.raises(dyn.ModelError, match="joint 'joint1' needs 1 finite number"):
        dyn.load_urdf(dyn.robots.path("two_link"), lock={"joint1": value})


def test_other_systems_have_no_joint_friction():
    """Nothing of chains, tasks and layouts changes by options about a robot's joints."""
    others = [solver for solver in SOLVERS if solver not in ROBOTS]
    assert len(others) > 10
    assert not any(solver.signature.acting for solver in others)


@pytest.mark.parametrize("inputs", [None, 5, [3], {"a": 1}, ["qd", "qd"]])
def test_inputs_that_are_no_names_are_refused_by_every_solver(inputs):
    """In a sentence that names the option; also by those that read it first."""
    model = dyn.load("two_link")
    for name in dyn.solvers(references=True):
        with pytest.raises(dyn.DynError) as refused:
            dyn.solver(name).build(model, inputs=inputs, engine="graph")
        kinds = dyn.UnsupportedError, dyn.ModelError, dyn.SettingError
        assert isinstance(refused.value, kinds), name


NUMBERS = [
    (solver, key)
    for solver in SOLVERS
    for key, default in solver.options.items()
    if type(default) in (int, float) and key != "height"  # which has any sign
]


@pytest.mark.parametrize(
    ("solver", "key"), NUMBERS, ids=lambda x: getattr(x, "name", x)
)
def test_numbers_of_options_have_a_range(solver, key):
    """Rates, tolerances, counts, factors: negative ones are not computed with."""
    default = solver.options[key]
    assert read_option(solver, None, key, default) == default
    with pytest.raises(dyn.UnsupportedError, match=f"{key}.*valid"):
        read_option(solver, None, key, type(default)(-1))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("contact_euler", {"erp": 2.0}),
        ("contact_moreau_jean_derivatives", {"erp": 1.5}),
        ("contact_anitescu_potra", {"push_out_speed": -1.0}),
        ("contact_terms", {"remaining": 1.5}),
        ("operational_inertia", {"frame": "link1", "damping": -1.0}),
        ("aba_loops", {"alpha": -1.0}),
        ("aba_loops", {"dependent": "least_norm", "tolerance": -1.0}),
        ("fd_derivatives_loops", {"beta": -1.0}),
    ],
)
def test_numbers_beyond_their_range_are_refused_at_build(name, options):
    """With them a step pushed into the ground, or a loop drifted apart ever faster."""
    with pytest.raises(dyn.UnsupportedError, match="valid: a number"):
        dyn.solver(name).build(dyn.load("two_link"), **options)


@pytest.mark.parametrize("rho", [0.0, -1.0])
def test_a_penalty_is_positive(rho):
    """With 0, impulses were infinite; a step and a World check their solver's, too."""
    layout, options = ConstraintLayout.of("contact"), {"rho": rho}
    for build in (
        lambda: dyn.solver("admm").build(layout, **options),
        lambda: dyn.solver("admm_compiled").build(layout, **options),
        lambda: dyn.World(solver="admm", solver_options=options),
        lambda: dyn.solver("contact_euler").build(
            dyn.load("two_link"), contact_solver="admm", solver_options=options
        ),
    ):
        with pytest.raises(dyn.UnsupportedError, match="rho is .*a number above 0"):
            build()
