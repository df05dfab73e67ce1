"""Launch the graph `feed_forward` of ros_nodes.graphs."""

from ros_nodes.launching import launch_description


def generate_launch_description():
    """Return the LaunchDescription of the graph `feed_forward`."""
    return launch_description("feed_forward")
