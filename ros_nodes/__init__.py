"""ROS 2 nodes: thin wrappers of the controller and the simulator."""
