"""Launch the graph `guard` of ros_nodes.graphs."""

from ros_nodes.launching import launch_description


def generate_launch_description():
    """Return what ros2 launch starts."""
    return launch_description("guard")
