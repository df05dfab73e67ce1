"""The command `dyn demo`, with and without ROS."""
