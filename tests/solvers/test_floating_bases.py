"""Floating bases with loops, such as legged robots whose feet are held: no motor there."""

import numpy as np
import pytest
from least_norm import least_norm

import dyn_core as dyn
from dyn_core.testing import TOLERANCES, scaled_error

FEET = ("front_left", "front_right", "hind_left", "hind_right")


def _near(result, expected):
    assert scaled_error(result, expected) <= TOLERANCES["law"]


@pytest.fixture(scope="module")
def standing(shipped):
    """Return a quadruped whose feet are held by pins at their places, and a position."""
    model = shipped["quadruped"]
    q = model.position(
        {f"{foot}_hip_joint": 0.6 for foot in FEET}
        | {f"{foot}_knee": -1.2 for foot in FEET}
    )
    q[2] = 0.4
    poses = dyn.solver("forward_kinematics").build(model, engine="graph")(q)
    loops = []
    for foot in FEET:
        place = poses[model.frame_names.index(f"{foot}_foot")][:3, 3]
        loops.append(
            dyn.make_loop(foot, "point", f"{foot}_foot", at_a={"xyz": tuple(place)})
        )
    return model.with_loops(*loops), q


def _solve(name, model, *values, **choices):
    return dyn.solver(name).build(model, engine="graph", **choices)(*values)


def _weight(model):
    return model.mass * 9.81


def test_a_floating_base_has_no_motor(shipped, standing):
    """It is none of the active joints, unless the file says `passive: false`."""
    model, _ = standing
    assert "root_joint" in model.joint_names
    assert "root_joint" not in model.active_joints
    assert len(model.active_joints) == 12
    text = """<robot name="hull"><link name="sea"/><link name="hull"><inertial>
    <mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    </link><joint name="thrusters" type="floating"><parent link="sea"/><child link="hull"/>
    </joint></robot>"""
    assert dyn.load_urdf(text).active_joints == ()
    driven = {"joints": {"thrusters": {"passive": False}}}
    assert dyn.load_urdf(text, extras=driven).active_joints == ("thrusters",)


def test_every_inverse_dynamics_leaves_the_base_alone(standing):
    """The joints hold the robot through its feet: no force on the base, equal answers.

    With dependent="least_norm" solvers balance the motion with the least joint
    forces; the feet carry the weight.
    """
    model, q = standing
    still = np.zeros(model.nv)
    tau = _solve(least_norm("rnea_loops"), model, q, still, still)
    assert not tau[:6].any()
    tau_a, x = _solve(
        least_norm("loop_inverse_dynamics"), model, q, still, still, np.zeros(6)
    )
    assert tau_a.shape == (12,)
    _near(tau[6:], tau_a)
    _near(x.reshape(4, 3).sum(axis=0), [0.0, 0.0, _weight(model)])
    _, A, _ = _solve("loop_constraints", model, q, still)
    g = _solve("gravity", model.without_loops(), q)
    _near(tau + A.T @ x, g)


def test_feet_that_cannot_balance_name_the_base(standing):
    """The message named all joints with motors, and not the base that would fall."""
    model, q = standing
    two = model.without_loops().with_loops(*model.loops[:2])
    still = np.zeros(model.nv)
    message = "balance the joints without motors, root_joint, .*such as kind weld"
    with pytest.raises(dyn.InfeasibleError, match=message):
        _solve(least_norm("loop_inverse_dynamics"), two, q, still, still, np.zeros(6))


def test_named_motors_may_be_the_base(standing):
    """active= names what has motors: the base too, whose forces are then the least."""
    model, q = standing
    still = np.zeros(model.nv)
    chosen = {"active": model.joint_names, "dependent": "least_norm"}
    for name, more in (
        ("rnea_loops", ()),
        ("loop_inverse_dynamics", (np.zeros(0),)),
    ):
        answer = _solve(name, model, q, still, still, *more, **chosen)
        tau = answer if name == "rnea_loops" else answer[0]
        assert np.abs(tau[:6]).max() > 0.1


def test_more_motors_than_freedoms_are_counted_without_the_base(standing):
    """12 motors for 6 freedoms: the refusal counts so, and names the least forces."""
    model, _ = standing
    message = "12 active coordinates for 6 freedoms .* valid: rnea_loops with dep"
    for name in ("rnea_loops", "joint_reactions_loops"):
        with pytest.raises(dyn.UnsupportedError, match=message):
            dyn.solver(name).build(model)


def test_control_without_enough_motors_is_refused(shipped):
    """A leg loop of a robot that floats: the base is independent and has no motor."""
    model = shipped["quadruped"]
    rod = dyn.make_loop("rod", "distance", "front_left_foot", "trunk", length=0.3)
    closed = model.with_loops(rod)
    solver = dyn.solver("loop_gravity_compensation")
    knees = [name for name in model.joint_names if name != "front_left_knee"]
    with pytest.raises(dyn.UnsupportedError, match="12 motors for 17 freedoms"):
        solver.build(closed, independent=knees)


def test_motors_of_the_file_are_the_default(shipped):
    """Inverse dynamics of a four-bar needs no active=: the file says what has motors."""
    model = dyn.load("examples/four_bar/four_bar.urdf")
    guess = model.position({"motor": 0.93, "pin_b": -0.5, "pin_c": -1.5})
    q, still = dyn.close_loops(model, guess, fixed=["motor"]), np.zeros(3)
    wanted = _solve("rnea_loops", model, q, still, still)[model.v_slice("motor")]
    names = "loop_inverse_dynamics", "loop_id_derivatives"
    for name in (*names, least_norm(names[0])):
        tau_a = _solve(name, model, q, still, still, np.zeros(2))[0]
        _near(tau_a, wanted)
