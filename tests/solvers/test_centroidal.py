"""Centroidal momentum and the zero-moment point: Pinocchio, a stand, refusals."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.errors import ModelWarning

UP = (0, 0, -9.81)


def _build(name, model, **choices):
    return dyn.solver(name).build(model, engine="graph", **choices)


def test_against_pinocchio():
    """Ag of ccrba, and centerOfMass with its derivatives."""
    pin = pytest.importorskip("pinocchio")
    path = str(dyn.robots.path("arm7"))
    model, theirs = dyn.load_urdf(path), pin.buildModelFromUrdf(path)
    data, rng = theirs.createData(), np.random.default_rng(1)
    order = [theirs.joints[theirs.getJointId(n)].idx_v for n in model.joint_names]
    state = rng.normal(size=(3, 7))
    q, qd, qdd = (np.zeros(7) for _ in range(3))
    q[order], qd[order], qdd[order] = state
    A, com = _build("centroidal_matrix", model)(state[0])
    Ag = pin.ccrba(theirs, data, q, qd)[:, order]
    np.testing.assert_allclose(A, np.vstack([Ag[3:], Ag[:3]]), atol=1e-13)
    pin.centerOfMass(theirs, data, q, qd, qdd)
    result = _build("centre_of_mass", model)(*state)
    for got, wanted in zip(
        result, (data.com[0], data.vcom[0], data.acom[0]), strict=True
    ):
        np.testing.assert_allclose(got, wanted, atol=1e-12)
    np.testing.assert_allclose(com, data.com[0], atol=1e-14)


def test_a_robot_that_stands_rests_below_its_centre_of_mass(shipped):
    """Still: the point is the projection of the centre of mass; push is the weight.

    Thrown with -g: the point moves against the acceleration of the centre of mass.
    """
    model = shipped["quadruped"]
    q, still = model.random(np.random.default_rng(2)), np.zeros(model.nv)
    program = _build("zero_moment_point", model, height=-0.4, normal=(0, 0, 2))
    p, push = program(q, still, still)
    com = _build("momentum", model)(q, still).com
    np.testing.assert_allclose(p, [*com[:2], -0.4], atol=1e-12)
    np.testing.assert_allclose(push, 9.81 * model.mass)
    q = model.neutral()
    accelerated = still.copy()
    accelerated[3] = 2.0  # of the trunk, along x: nothing turns
    com = _build("momentum", model)(q, still).com
    p, _ = program(q, still, accelerated)
    arm = 2.0 / 9.81 * (com[2] + 0.4)
    np.testing.assert_allclose(p, [com[0] - arm, com[1], -0.4], atol=1e-12)


def test_planes_and_forces_that_are_none_are_refused(shipped):
    """No normal; and no force at all, in free fall. A normal may have any length."""
    model = shipped["quadruped"]
    for normal, message in (
        ((0, 0, 0), "valid: not all zero"),
        ((1, 0), "valid: a list of 3 numbers"),
        ((np.nan, 0, 1), "valid: a finite number"),
        (("a", 0, 1), "valid: a number"),
    ):
        with pytest.raises(dyn.UnsupportedError, match=message):
            _build("zero_moment_point", model, normal=normal)
    q, still = model.neutral(), np.zeros(model.nv)
    short, long = (
        _build("zero_moment_point", model, normal=(0.0, 0.0, z))(q, still, still)
        for z in (1e-200, 1e200)
    )
    np.testing.assert_allclose(short[0], long[0], rtol=1e-15)
    weightless = model.rebuilt(gravity=(0.0, 0.0, 0.0))
    program = _build("zero_moment_point", weightless)
    still = np.zeros(model.nv)
    with pytest.raises(dyn.SingularError, match="force along the normal"):
        program(model.neutral(), still, still)


@pytest.mark.parametrize("engine", ["plain", "graph"])
@pytest.mark.parametrize("name", ["centre_of_mass", "centroidal_matrix", "momentum"])
def test_a_robot_without_mass_has_no_centre(name, engine):
    """Kinematics alone is a robot, too; the error says what is missing."""
    robot = """<robot name="r"><link name="base"/><link name="rod"/>
      <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/>
      </joint></robot>"""
    with pytest.warns(ModelWarning):
        model = dyn.load(robot)
    with pytest.raises(dyn.SingularError, match="mass of the moving bodies"):
        program = dyn.solver(name).build(model, engine=engine)
        program(*(np.zeros(port.shape) for port in program.inputs))
