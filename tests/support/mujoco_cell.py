"""An arm above a plane in MuJoCo: its own contacts, joint friction and sensor."""

import mujoco
import numpy as np
from _plane_and_arm import DAMPING, FRICTION, GAP, STIFFNESS, Q

import dyn_core as dyn

RADIUS = 0.01  # of the ball at the tool [m]
SHARE = 0.05  # impedance of the contact: small for a spring that adds no mass


class MujocoCell:
    """The cell of examples/_plane_and_arm.py with MuJoCo as the plant, at 2 kHz.

    The URDF is read by MuJoCo, with its joint friction. A ball at the tool touches the
    plane; the sensor is MuJoCo's, between flange and link7.
    """

    cycle = 5e-4

    def __init__(self, arm):
        poses = dyn.solver("forward_kinematics").build(arm, frames=["tool"])
        height = poses(Q)[0][2, 3] - RADIUS - GAP
        (urdf,) = arm.build.description.sources
        spec = mujoco.MjSpec.from_file(urdf)
        spec.compiler.fusestatic = False
        spec.option.timestep = self.cycle
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        contact = {"friction": [FRICTION, 0, 0], "solimp": [SHARE, SHARE, 1e-3, 0.5, 2]}
        ball = mujoco.mjtGeom.mjGEOM_SPHERE
        spec.body("tool").add_geom(type=ball, size=[RADIUS, 0, 0], mass=0.0, **contact)
        plane = mujoco.mjtGeom.mjGEOM_PLANE
        spec.worldbody.add_geom(
            type=plane, size=[2, 2, 1], pos=[0, 0, height], **contact
        )
        spec.body("flange").add_site(name="sensor")
        for kind in ("TORQUE", "FORCE"):
            spec.add_sensor(
                type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"),
                objtype=mujoco.mjtObj.mjOBJ_SITE,
                objname="sensor",
            )
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        self.model = model = spec.compile()
        # MuJoCo counts stiffness and damping by an inertia of its own.
        inverse = (1 - SHARE) * model.body("tool").invweight0[0]
        model.geom_solref[:] = [-STIFFNESS * inverse, -DAMPING * inverse]
        self.data = mujoco.MjData(self.model)
        self.data.qpos[:] = Q
        self.advance(np.zeros(7))

    def advance(self, tau):
        """Simulate a cycle; then the sensor has measured."""
        data = self.data
        data.qfrc_applied[:] = tau
        mujoco.mj_step(self.model, data)
        self.q, self.qd = data.qpos.copy(), data.qvel.copy()
        self.place = data.body("tool").xpos.copy()
        self.reading = -data.sensordata  # MuJoCo's is of link7 on the flange
        self.force = np.zeros(3)
        for k in range(data.ncon):
            f = np.zeros(6)
            mujoco.mj_contactForce(self.model, data, k, f)
            self.force += data.contact[k].frame.reshape(3, 3).T @ f[:3]
