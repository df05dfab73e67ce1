"""Simulated time over DDS: /clock of the simulator leads a controller's trajectories."""

import numpy as np
import pytest

pytestmark = pytest.mark.ros
START = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
NAMES = [f"joint{k}" for k in range(1, 8)]
GOAL = np.add(START, 0.2)


@pytest.fixture
def nodes(ros):
    """Return a simulator that publishes /clock, and a controller that follows it."""
    from rclpy.parameter import Parameter

    from ros_nodes.computed_torque_node import ComputedTorqueNode
    from ros_nodes.simulator_node import SimulatorNode

    def make(kind, **values):
        settings = {"robot_description_file": "arm7", "engine": "graph",
                    "autostart": False, **values}  # fmt: skip
        overrides = [Parameter(name, value=value) for name, value in settings.items()]
        to = "~/commands:=effort_controller/commands"
        node = kind(parameter_overrides=overrides, cli_args=["--ros-args", "-r", to])
        made.append(node)
        assert node.start(), node.failure

    made = []
    try:
        make(ComputedTorqueNode, use_sim_time=True, state_timeout=10.0)
        make(SimulatorNode, publish_clock=True, update_rate=250,
             initial_positions=START, command_timeout=10.0)  # fmt: skip
        yield made
    finally:
        for node in made:
            node.destroy_node()


def _trajectory(start):
    """Return a way to GOAL that starts at a time and takes 0.5 s."""
    from rclpy.time import Time
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    message = JointTrajectory(joint_names=NAMES)
    message.header.stamp = Time(nanoseconds=round(start * 1e9)).to_msg()
    point = JointTrajectoryPoint(positions=GOAL.tolist(), velocities=[0.0] * 7)
    point.time_from_start.nanosec = 500_000_000
    message.points.append(point)
    return message


def test_a_trajectory_runs_by_the_clock_of_the_simulator(nodes, until):
    """It starts and ends at its simulated times, and stands while the clock stands."""
    from rclpy.node import Node
    from rosgraph_msgs.msg import Clock
    from sensor_msgs.msg import JointState
    from std_srvs.srv import SetBool
    from trajectory_msgs.msg import JointTrajectory

    probe, times, rows = Node("probe"), [], []

    def on_reference(message):
        stamp = message.header.stamp
        rows.append((stamp.sec + 1e-9 * stamp.nanosec, np.array(message.position)))

    def on_clock(message):
        times.append(message.clock.sec + 1e-9 * message.clock.nanosec)

    def wait(done, expected):
        until(done, probe, *nodes, expected=expected, detail=lambda: str(rows[-1:]))

    def pause(data):
        future = client.call_async(SetBool.Request(data=data))
        wait(future.done, "the answer of ~/pause")

    try:
        probe.create_subscription(Clock, "/clock", on_clock, 10)
        probe.create_subscription(
            JointState, "computed_torque/reference", on_reference, 10
        )
        send = probe.create_publisher(
            JointTrajectory, "computed_torque/joint_trajectory", 1
        )
        client = probe.create_client(SetBool, "simulator/pause")
        wait(lambda: len(times) > 5 and len(rows) > 5 and client.service_is_ready(),
             "the clock, and a reference")  # fmt: skip
        wait(lambda: send.get_subscription_count() == 1, "who follows")
        wait(lambda: np.array_equal(rows[-1][1], rows[-5][1]), "a reference at rest")
        rows.clear()
        wait(lambda: rows, "a reference")
        begin, rest = times[-1] + 0.3, rows[-1][1]
        send.publish(_trajectory(begin))
        wait(lambda: (rows[-1][1] - rest > 0.02).all(), "a motion")
        pause(True)
        wait(lambda: len({t for t, _ in rows[-20:]}) == 1, "a clock that stands")
        stood = rows[-1][1]
        rows_before = len(rows)
        wait(lambda: len(rows) > rows_before + 5, "references in the pause")
        for _, q in rows[rows_before:]:
            np.testing.assert_array_equal(q, stood)
        assert (GOAL - stood > 0.02).all()
        pause(False)
        wait(lambda: np.allclose(rows[-1][1], GOAL, atol=1e-9), "the goal")
        stamps = np.array([t for t, _ in rows])
        moved = np.array([np.abs(q - rest).max() for _, q in rows])
        assert stamps[-1] < 100.0  # from zero: not the time of this machine
        assert (np.diff(stamps) >= 0.0).all()
        assert stamps[moved > 0.0][0] >= begin
        assert stamps[-1] >= begin + 0.5
        assert nodes[0].controller.counters["time went back"] == 0
    finally:
        probe.destroy_node()
