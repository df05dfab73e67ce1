"""Parameter tables of the nodes; without ROS."""
