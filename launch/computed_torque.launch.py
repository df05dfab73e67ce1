"""Launch the graph `computed_torque` of ros_nodes.graphs."""

from ros_nodes.launching import launch_description


def generate_launch_description():
    """Return the LaunchDescription of the graph `computed_torque`."""
    return launch_description("computed_torque")
