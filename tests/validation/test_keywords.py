"""Unknown keywords of what users write: the nearest valid one is named, then all."""

import inspect
import pickle
from dataclasses import replace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import control, recordings, reports, tasks, view
from dyn_core.contact.collision.height_field import HeightField
from dyn_core.kinematics import InverseKinematics
from dyn_core.model.material import Material
from dyn_core.planar import ChainSimulator, HalfPlane, PlanarObject
from dyn_core.testing import random_model
from dyn_core.validation import known_keywords

# Functions that hand keywords on to others, which check them.
OTHER_WAY = {"doctor", "inverse_kinematics", "make_chain", "plan", "simulate"}
NO_KEYWORDS = {"default_engine", "default_registry"}
FUNCTIONS = sorted(
    name
    for name in dyn.__all__
    if inspect.isfunction(getattr(dyn, name)) and name not in OTHER_WAY | NO_KEYWORDS
)
OTHERS = [
    dyn.World, dyn.HalfSpace, dyn.Simulator, dyn.ContactSimulator, InverseKinematics, HeightField, Material,
    control.Bounds, control.CollisionDetector, control.CollisionSettings,
    control.Controller, control.Envelope, control.Payload, control.PayloadInput,
    control.Rules, control.ShadowSettings, control.Supervisor, control.Tolerances,
    control.Trajectory, control.make_trajectory, tasks.ChainTask, tasks.JointTargets,
    tasks.JointTorques, tasks.PayloadMass, tasks.RobotTask, tasks.Uniform, tasks.Walker,
    recordings.MotionRecord, recordings.read_motion, recordings.write_motion,
    reports.write_report, view.show, ChainSimulator, HalfPlane, PlanarObject,
    random_model, dyn.authoring.Port, dyn.authoring.Signature,
]  # fmt: skip


@pytest.mark.parametrize(
    "target", [*(getattr(dyn, x) for x in FUNCTIONS), *OTHERS], ids=lambda x: x.__name__
)
def test_a_misspelt_keyword_names_the_right_one(target):
    """Python's own sentence lists nothing; the signature stays readable."""
    names = [x for x in inspect.signature(target).parameters if x != "self"]
    right = names[-1]
    wrong = right + "x"
    with pytest.raises(dyn.SettingError) as error:
        target(**{wrong: 1})
    message = str(error.value)
    assert message.startswith(f"no setting is called '{wrong}'; did you mean '{right}'")
    assert message.endswith(f"valid for {target.__name__}: {', '.join(names)}")
    assert error.value.setting == wrong


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dyn.doctor("arm7", sampels=3), "sampels"),
        (
            lambda: dyn.inverse_kinematics(
                dyn.load("arm7"), "tool", np.eye(4), tolernce=1.0
            ),
            "tolernce",
        ),
        (lambda: dyn.make_chain([1.0], [1.0, 1.0], gravty=1.0), "gravity"),
        (lambda: dyn.simulate(dyn.load("two_link"), durration=1.0), "duration"),
    ],
)
def test_keywords_that_are_handed_on_are_checked_where_they_arrive(call, message):
    """Each of the functions left out above refuses them in our own sentence."""
    with pytest.raises(dyn.DynError, match=message):
        call()


def test_too_many_arguments_by_position_lead_to_their_names():
    """Of a function and of a class; Python's TypeError named no other argument."""
    pole = dyn.load("cart_pole")
    assert dyn.simulate(pole, None, 0.01, engine="graph").t[-1] < 0.01
    with pytest.raises(dyn.SettingError, match="4 arguments .* got 5; .* name: period"):
        dyn.lqr(pole, np.zeros(2), 1.0, 1.0, 0.01)
    message = r"World takes \d+ arguments by position, got 99; valid: shapes"
    with pytest.raises(dyn.SettingError, match=message.replace("shapes", r"\w+, ")):
        dyn.World(*range(99))
    places = known_keywords(lambda a, /, b=1, *, c=2: (a, b, c))
    assert places(1, 3, c=4) == (1, 3, 4)
    with pytest.raises(dyn.SettingError, match="2 .* got 3; valid: a, b; by name: c"):
        places(1, 2, 3)


def test_what_is_left_to_python_stays_python():
    """Missing and doubled arguments, and changes of a checked dataclass."""
    with pytest.raises(TypeError, match="required positional argument"):
        dyn.load()
    with pytest.raises(TypeError, match="multiple values"):
        dyn.load("arm7", source="arm7")
    world = dyn.World(margin=0.01)
    assert replace(world, margin=0.02) == dyn.World()
    assert pickle.loads(pickle.dumps(world)) == world
    with pytest.raises(dyn.SettingError, match="did you mean 'margin'"):
        replace(world, margn=0.02)


def test_keywords_beside_any_others_are_not_looked_at():
    """A subclass with keywords of its own hands the rest on; the base's name is in the message."""

    @known_keywords
    class Base:
        def __init__(self, first, *, second=2):
            self.sum = first + second

    class Derived(Base):
        def __init__(self, *, third, **more):
            super().__init__(1, **more)
            self.sum += third

    assert Base(1).sum == 3
    assert Derived(third=4, second=3).sum == 8
    with pytest.raises(dyn.SettingError, match="valid for Base: first, second"):
        Derived(third=4, scnd=3)
    with pytest.raises(TypeError, match="takes any keyword"):
        known_keywords(lambda **settings: settings)
