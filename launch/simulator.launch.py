"""Launch the graph `simulator` of ros_nodes.graphs."""

from ros_nodes.launching import launch_description


def generate_launch_description():
    """Return the LaunchDescription of the graph `simulator`."""
    return launch_description("simulator")
