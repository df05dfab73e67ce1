"""Launch the graph `contact` of ros_nodes.graphs."""

from ros_nodes.launching import launch_description


def generate_launch_description():
    """Return the LaunchDescription of the graph `contact`."""
    return launch_description("contact")
