"""Launch the graph `chain` of ros_nodes.graphs."""

from ros_nodes.launching import launch_description


def generate_launch_description():
    """Return the LaunchDescription of the graph `chain`."""
    return launch_description("chain")
