"""Wrong arguments of public functions: each exception is one of ours, with words."""

import warnings

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import planar
from dyn_core.errors import DynError
from dyn_core.export import export
from dyn_core.export.cycle.controller_cycle import control_cycle, cycle_of_options
from dyn_core.export.ros2_control.controller_package import controller_package
from dyn_core.export.ros2_control.hardware_package import hardware_package
from dyn_core.tasks import PayloadMass, Uniform, UniformFactor, named_task, planar_task
from dyn_core.tasks.robots import robot_task

ANY = [
    None,
    "nope",
    "",
    3,
    -1,
    2.5,
    np.nan,
    [],
    [[]],
    [None],
    {},
    {"nope": 1},
    {1: 2},
    b"x",
    object(),
]
NAME = [*ANY, "a\0b", "x" * 3000, "joint 1"]
NAMES = [*ANY, ["nope"], ("joint1", "joint1"), [["joint1"]]]
COUNT = [*ANY, np.inf, [1.0, 2.0]]
NUMBER = [*COUNT, 10**400, np.zeros((0, 2))]
ARRAY = [*ANY, [1, 2, 3], [[1], [2, 3]], np.zeros((2, 3, 4)), np.full(2, np.nan), 10**400,
         np.zeros((0, 2)), np.array(["a"]), np.full(2, 1j)]  # fmt: skip
BOUND = [*NUMBER, True, "1", (0.8, 0.9), [1.0], [[0.5], [0.6]], ["1", "2"]]
MAPPING = [*ANY, {"joint1": np.nan}, {"joint1": "a"}, {"joint1": [1.0, 2.0]}]


@pytest.fixture(scope="module")
def calls():
    """Return by name: a function, its valid arguments, and what to put in their place."""
    arm, state = dyn.load("two_link"), np.array([0.3, 0.4])
    gravity = dyn.solver("gravity").build(arm, engine="plain")
    sim = dyn.Simulator(arm, engine="plain")
    chain, acrobot = dyn.make_chain([0.5], [1.0, 1.0]), planar.planar_object("acrobot")
    layout = dyn.ConstraintLayout((("contact", 3),))
    rates = {"model": arm, "q": state, "qd": state}
    return {
        "load": (dyn.load, {"source": "two_link"},
                 {"source": NAME, "root_joint": NAME, "root": NAME, "tip": NAME,
                  "lock": MAPPING, "extras": MAPPING, "check": NAME, "gravity": ARRAY}),
        "solver": (dyn.solver, {"name": "rnea"}, {"name": NAME, "signature": ANY}),
        "solvers": (dyn.solvers, {}, {"signature": NAME}),
        "build": (dyn.solver("rnea").build, {"model": arm, "engine": "plain"},
                  {"model": ANY, "engine": NAME, "inputs": NAMES, "threads": NUMBER, "dtype": NAME}),
        "program": (gravity, {"q": state}, {"q": ARRAY, "out": ARRAY}),
        "count": (dyn.count, {"what": gravity, "numbers": [0.3, 0.4]},
                  {"what": ANY, "numbers": ARRAY, "how": NAME}),
        "Simulator": (dyn.Simulator, {"model": arm, "engine": "plain"},
                      {"model": ANY, "period": NUMBER, "substeps": NUMBER, "q0": ARRAY, "qd0": ARRAY,
                       "prescribed": NAMES, "step": NAME, "engine": NAME, "payload_link": NAME}),
        "simulate": (dyn.simulate, {"model": arm, "engine": "plain", "duration": 0.002, "progress": False},
                     {"duration": [None, "nope", -1, np.nan, np.inf, [], 10**400], "world": [x for x in MAPPING if x], "begin": [3, "nope", []],
                      "controller": ANY}),
        "command": (sim.command, {"t": 0.0, "tau": state}, {"t": NUMBER, "tau": ARRAY}),
        "advance": (sim.advance, {"t": 0.0}, {"t": NUMBER}),
        "World": (dyn.World, {}, {"solver": NAME, "solver_options": MAPPING, "stepper": NAME, "margin": NUMBER,
                  "half_spaces": NAMES, "gears": NAMES, "restitution": NAME, "max_impacts": NUMBER}),
        "HalfSpace": (dyn.HalfSpace, {}, {"point": ARRAY, "normal": ARRAY, "material": ANY}),
        "close_loops": (dyn.close_loops, {"model": arm, "q": state},
                        {"q": ARRAY, "fixed": NAMES, "tolerance": NUMBER, "rounds": COUNT, "tries": COUNT}),
        "close_rates": (dyn.close_rates, rates, {"q": ARRAY, "qd": ARRAY, "fixed": NAMES, "tolerance": NUMBER}),
        "coupling": (dyn.coupling, {"name": "c", "joints": ("joint1",), "function": lambda q: [q]},
                     {"joints": [None, 3, [None], object(), [["joint1"]]], "function": ANY}),
        "make_loop": (dyn.make_loop, {"name": "l", "kind": "axes", "b": "link2", "axes": ["x"]},
                      {"kind": NAME, "axes": NAMES, "length": NUMBER, "at_b": MAPPING}),
        "user_loop": (dyn.user_loop, {"name": "l", "function": lambda R, p: [p[0]], "b": "link2"},
                      {"function": ANY, "at_b": MAPPING}),
        "make_chain": (dyn.make_chain, {"lengths": [0.5], "masses": [1.0, 1.0]},
                       {"lengths": ARRAY, "masses": ARRAY, "gravity": ARRAY, "lower": ARRAY, "upper": MAPPING,
                        "k_v": ARRAY, "ground": NAMES, "joint_names": NAMES, "constraints": MAPPING}),
        "identify": (dyn.identify, {**rates, "qdd": state, "tau": state},
                     {"q": ARRAY, "tau": ARRAY, "friction": NAME, "only": NAMES, "bounds": MAPPING, "prior": ARRAY}),
        "with_linear_parameters": (dyn.with_linear_parameters, {"model": arm}, {"values": ARRAY}),
        "doctor": (dyn.doctor, {"robot": arm}, {"samples": COUNT, "seed": COUNT}),
        "ConstraintLayout": (dyn.ConstraintLayout, {}, {"parts": NAMES}),
        "ConstraintProblem": (dyn.ConstraintProblem, {"layout": layout, "G": np.eye(3), "b": np.zeros(3)},
                              {"layout": NAMES, "G": ARRAY, "b": ARRAY, "mu": ARRAY, "ids": NAMES}),
        **{f"model.{name}": (getattr(arm, name), {}, {"": NAME})
           for name in ("body_of", "body_of_joint", "frame", "joint_kind", "q_slice", "v_slice", "parameter", "unit", "value", "material")},
        **{f"model.{name}": (getattr(arm, name), {}, {"": MAPPING}) for name in ("lock", "with_values", "position", "velocity")},
        "model.with_joint": (arm.with_joint, {"name": "joint1", "joint": arm.joint[1]}, {"name": NAME, "joint": ANY}),
        "model.random": (arm.random, {}, {"rng": NUMBER}),
        "model.reorder": (arm.reorder, {}, {"names": NAMES}),
        "model.integrate": (arm.integrate, {"q": state, "dv": state}, {"q": ARRAY, "dv": ARRAY}),
        "model.difference": (arm.difference, {"q0": state, "q1": state}, {"q0": ARRAY, "q1": ARRAY}),
        **{f"chain.{name}": (getattr(chain, name), {}, {"": NAME}) for name in ("parameter", "unit")},
        **{f"object.{name}": (getattr(acrobot, name), {}, {"": NAME}) for name in ("parameter", "unit", "value")},
        "planar_object": (planar.planar_object, {}, {"": NAME}),
        **{make.__name__: (make, {}, {"": NAME}) for make in (planar_task, robot_task, named_task)},
        **{kind.__name__: (lambda kind=kind, **bounds: _drawn(kind(**bounds)), {"low": 0.0, "high": 1.0},
                           {"low": BOUND, "high": BOUND}) for kind in (Uniform, UniformFactor, PayloadMass)},
        "control_cycle": (control_cycle, {"name": "computed_torque_cycle", "model": arm}, {"name": NAME, "wrap": NAMES}),
        "cycle_of_options": (cycle_of_options, {"name": "computed_torque_cycle", "model": arm, "options": {}},
                             {"name": NAME, "options": [*MAPPING, *({x: 3} for x in ("rules", "bounds", "state_bounds", "model", "name"))]}),
        "controller_package": (controller_package, {"law": "computed_torque", "model": arm, "folder": "/no/pk", "urdf": "", "options": {}},
                               {"law": NAME, "options": MAPPING}),
        "hardware_package": (hardware_package, {"stepper": "rk4", "model": arm, "folder": "/no/pk", "urdf": "", "options": {}},
                             {"stepper": NAME, "options": MAPPING}),
        "export": (export, {"program": gravity, "folder": "/no/pk"},
                   dict.fromkeys(("target", "variant", "form", "name", "multiply_add"), NAME)),
    }  # fmt: skip


def _drawn(draw):
    """Return two rows of random numbers."""
    rng = np.random.default_rng(0)
    factor = isinstance(draw, UniformFactor)
    return draw.times(np.ones(3), rng, 2) if factor else draw(rng, 2)


def _faults(calls):
    """Iterate over the calls that raise an exception of others."""
    for name, (function, valid, wrong) in calls.items():
        for argument, values in wrong.items():
            for value in values:
                named = {**valid, argument: value} if argument else {}
                try:
                    function(*([] if argument else [value]), **named)
                except DynError as error:
                    if not str(error).strip():
                        yield f"{name}({argument}={value!r:.40}) has no words"
                except Exception as error:
                    yield f"{name}({argument}={value!r:.40}): {type(error).__name__}: {error}"


def test_wrong_arguments_are_refused_in_our_words(calls):
    """None of the values above brings an exception of Python or NumPy to the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert list(_faults(calls)) == []
