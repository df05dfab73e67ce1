"""Mode predictive in the node, over DDS on loopback: a lift beyond the effort limit."""

import numpy as np
import pytest

from ros_nodes.graphs import EFFORTS, GRAPHS
from tests.nodes.guard_watch import Watched

pytestmark = [pytest.mark.ros, pytest.mark.timeout(180)]
LIMIT = 2.5  # effort limit [N·m]; the rod's weight needs up to 4.9
PENDULUM = f"""\
<robot name="pendulum">
  <link name="base"/>
  <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/>
    <axis xyz="0 1 0"/><limit lower="-12" upper="12" effort="{LIMIT}" velocity="15"/>
    <dynamics damping="0.02"/></joint>
</robot>
"""
PARAMS = """\
simulator:
  ros__parameters: {robot_description_file: ROBOT, update_rate: 500, brakes: true}
computed_torque:
  ros__parameters:
    robot_description_file: ROBOT
    mode: predictive
    predictive:
      horizon: 2.0
      knots: 50
      replan_rate: 20.0
      plan_timeout: 10.0
      iterations: 20
      posture_weight: [0.1]
      velocity_weight: [0.0]
      effort_weight: [0.001]
      end_factor: 500.0
"""


def test_a_lift_beyond_the_effort_limit(start, until, ros, tmp_path):
    """The rod swings up and stands; no effort is beyond the limit.

    On a busy machine states are late and the safety stops the robot: as its user would,
    the test activates the controller anew. A rod that falls over the top hangs within
    the limits of its position, from where it can be lifted again.
    """
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    robot = tmp_path / "pendulum.urdf"
    robot.write_text(PENDULUM)
    start(GRAPHS["demo"].nodes, PARAMS.replace("ROBOT", str(robot)))
    watched = Watched()
    node, states, efforts = watched.node, [], []
    node.create_subscription(JointState, "joint_states", states.append, 10)
    node.create_subscription(Float64MultiArray, EFFORTS, efforts.append, 10)
    targets = node.create_publisher(
        Float64MultiArray, "computed_torque/target_posture", 10
    )
    change = watched.client(ChangeState, "computed_torque/change_state")
    goal = Float64MultiArray(data=[np.pi])

    def go_on():
        if watched.said.pop("computed_torque", "").startswith("stopped"):
            for number in (
                Transition.TRANSITION_DEACTIVATE,
                Transition.TRANSITION_ACTIVATE,
            ):
                request = ChangeState.Request(transition=Transition(id=number))
                change.call_async(request)

    node.create_timer(0.1, lambda: targets.publish(goal))  # also before it is active
    node.create_timer(3.0, go_on)

    def stands():
        if not states:
            return False
        q, qd = states[-1].position[0], states[-1].velocity[0]
        return abs(q - np.pi) < 0.02 and abs(qd) < 0.02

    def detail():
        last = [[*x[-1].position, *x[-1].velocity] for x in [states] if x]
        return f"{last}, {len(efforts)} efforts, {watched.said}"

    until(stands, node, expected="the rod upright", patience=120, detail=detail)
    sent = np.array([x.data for x in efforts])
    assert np.isfinite(sent).all() and abs(sent).max() <= LIMIT
    assert abs(sent).max() > 0.9 * LIMIT  # it was needed
    node.destroy_node()
