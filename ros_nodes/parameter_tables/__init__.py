"""Parameters of each node as tables; without ROS."""
