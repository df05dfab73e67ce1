"""Launch the graph `demo` of ros_nodes.graphs."""

from ros_nodes.launching import launch_description


def generate_launch_description():
    """Return the LaunchDescription of the graph `demo`."""
    return launch_description("demo")
